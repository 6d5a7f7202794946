"""Zero points, which pnnx drops from quantised models; expected numbers are those of ONNX."""

from __future__ import annotations

import numpy as np
import pytest

import engine

onnx = pytest.importorskip("onnx")
make_node, from_array = onnx.helper.make_node, onnx.numpy_helper.from_array
PROTO = onnx.TensorProto


def write_model(path, nodes, weights, shape=(2, 3)):
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes, "g", [value("x", PROTO.FLOAT, shape)], [value("y", PROTO.FLOAT, None)],
        [each if isinstance(each, PROTO) else from_array(each, name)
         for name, each in weights.items()],
    )  # fmt: skip
    opset = [onnx.helper.make_opsetid("", 21)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=10), path)
    return path


def computed(path, x):
    session = engine.Session(engine.load(path), backend="numpy")
    session.feed([x])
    session.run()
    return session


def quantised(x, scale, zero, low, high):
    """As ONNX defines it, element by element; halves go to the even integer."""
    return [[min(max(round(v / scale) + zero, low), high) for v in row] for row in x.tolist()]


X = np.float32([[-1, 0.25, 0.75], [2.5, -3, 100]])


@pytest.mark.parametrize(
    ("dtype", "zero", "typed"),
    [(np.uint8, 114, False), (np.int8, -5, False), (np.int8, 0, True), (np.int16, -300, True)],
)
def test_each_zero_point_is_restored(real_exporter, tmp_path, dtype, zero, typed):
    """Also those that the file has as numbers instead of bytes."""
    first = np.dtype(dtype).type(zero)
    if typed:
        code = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        first = onnx.helper.make_tensor("zero", code, (), [zero])
    nodes = [
        make_node("QuantizeLinear", ["x", "step", "zero"], ["q"]),
        make_node("DequantizeLinear", ["q", "step", "zero"], ["d"]),
        make_node("QuantizeLinear", ["d", "step", "other"], ["r"]),
        make_node("DequantizeLinear", ["r", "step", "other"], ["y"]),
    ]
    weights = {"step": np.float32(0.5), "zero": first, "other": np.uint8(3)}
    session = computed(write_model(tmp_path / "m.onnx", nodes, weights), X)
    info = np.iinfo(dtype)
    want = quantised(X, 0.5, zero, info.min, info.max)
    (found,) = [session.value(op.outputs[0].name) for op in session.graph.operators
                if op.name == "QuantizeLinear_0"]  # fmt: skip
    assert (found.dtype, found.tolist()) == (np.dtype(dtype), want)
    between = (np.float32(want) - zero) * np.float32(0.5)
    last = (np.float32(quantised(between, 0.5, 3, 0, 255)) - 3) * np.float32(0.5)
    np.testing.assert_allclose(session.outputs()[0], last)
    assert session.graph.conversion.notes == ()


def test_a_product_of_integers_has_its_zero_points(real_exporter, tmp_path):
    """As in networks of which only the weights are quantised."""
    weight = np.array([[1, -2], [3, 4], [-5, 100]], np.int8)
    nodes = [
        make_node("DynamicQuantizeLinear", ["x"], ["q", "step", "zero"]),
        make_node("MatMulInteger", ["q", "w", "zero", "wz"], ["m"]),
        make_node("Cast", ["m"], ["f"], to=PROTO.FLOAT),
        make_node("Mul", ["f", "step"], ["y"]),
    ]
    path = write_model(tmp_path / "m.onnx", nodes, {"w": weight, "wz": np.int8(7)})
    x = np.float32([[0, 255, 51], [102, 0, 204]])  # a step of 1, and a zero point of 0
    found = computed(path, x).outputs()[0]
    expected = [
        [sum(x[i, k] * (int(weight[k, j]) - 7) for k in range(3)) for j in range(2)]
        for i in range(2)
    ]
    np.testing.assert_allclose(found, expected)


def test_what_cannot_be_restored_is_told(real_exporter, tmp_path):
    """A .bin has no uint16."""
    nodes = [
        make_node("QuantizeLinear", ["x", "step", "zero"], ["q"]),
        make_node("DequantizeLinear", ["q", "step", "zero"], ["y"]),
    ]
    weights = {"step": np.float32(0.5), "zero": np.uint16(3000)}
    graph = engine.load(write_model(tmp_path / "m.onnx", nodes, weights))
    (note,) = graph.conversion.notes
    assert note.startswith("pnnx lost a constant of QuantizeLinear 'QuantizeLinear_0'")


@pytest.mark.parametrize("simplified", [None, b"", b"\xff" * 40])
def test_without_the_simplified_model_the_loss_is_told(data, exporter, simplified):
    exporter(
        "import zipfile\nprint('unknown constant scalar type 3')\n"
        "with zipfile.ZipFile('model.pnnx.bin', 'w'): pass\n"
        "open('model.pnnx.param', 'w').write('7767517\\n4 3\\n"
        "pnnx.Input in0 0 1 0 #0=(1,3)f32\\n"
        "pnnx.Expression pnnx_expr_1 0 1 1 expr=None\\n"
        "DequantizeLinear d_0 2 1 0 1 2\\npnnx.Output out0 1 0 2\\n')\n"
        + (
            ""
            if simplified is None
            else f"open('model.pnnxsim.onnx', 'wb').write({simplified!r})"
        )
    )
    graph = engine.load(data / "small.onnx")
    (note,) = graph.conversion.notes
    assert note == (
        "pnnx lost a constant of DequantizeLinear 'd_0': what follows from it is wrong"
    )
