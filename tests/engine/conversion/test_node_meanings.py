"""Nodes of ONNX that pnnx takes for others; onnxruntime and slow loops tell the truth."""

from __future__ import annotations

import numpy as np
import pytest

import engine

onnx = pytest.importorskip("onnx")
make_node = onnx.helper.make_node
DRAWN = np.random.default_rng(5)


def normal(*shape):
    return DRAWN.standard_normal(shape).astype("f")


def write_model(path, opset, nodes, inputs, weights=(), outputs=("y",)):
    """Write a model with inputs of the shapes and dtypes of arrays."""
    code = onnx.helper.np_dtype_to_tensor_dtype
    graph = onnx.helper.make_graph(
        nodes, "g",
        [onnx.helper.make_tensor_value_info(name, code(each.dtype), each.shape)
         for name, each in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [onnx.numpy_helper.from_array(np.asarray(each), name)
         for name, each in dict(weights).items()],
    )  # fmt: skip
    opsets = [onnx.helper.make_opsetid("", opset)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
    onnx.save(onnx.shape_inference.infer_shapes(model), path)
    return path


def computed(path, inputs):
    session = engine.Session(engine.load(path), backend="numpy")
    session.feed(list(inputs.values()))
    session.run()
    return session.outputs()


def compare_with_onnxruntime(path, inputs):
    onnxruntime = pytest.importorskip("onnxruntime")
    reference = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    expected = reference.run(None, inputs)
    found = computed(path, inputs)
    assert [each.shape for each in found] == [each.shape for each in expected]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def softmax_of_rows(rows):
    powers = [[np.exp(v - max(row)) for v in row] for row in rows.astype("d")]
    return np.array([[v / sum(row) for v in row] for row in powers])


@pytest.mark.parametrize("axis", [None, 0, 1, 2, -2])
def test_softmax_takes_dimensions_together_before_opset_13(real_exporter, tmp_path, axis):
    x = normal(2, 3, 4)
    attributes = {} if axis is None else {"axis": axis}
    path = write_model(
        tmp_path / "m.onnx", 11,
        [make_node("Relu", ["x"], ["r"]), make_node("Softmax", ["r"], ["y"], **attributes)],
        {"x": x},
    )  # fmt: skip
    (found,) = computed(path, {"x": x})
    rows = {None: 2, 0: 1, 1: 2, 2: 6, -2: 2}[axis]
    expected = softmax_of_rows(np.maximum(x, 0).reshape(rows, -1))
    np.testing.assert_allclose(found, expected.reshape(x.shape), rtol=1e-5)


@pytest.mark.parametrize("type_", ["LogSoftmax", "Hardmax"])
def test_what_is_like_softmax_takes_dimensions_together(real_exporter, tmp_path, type_):
    x = {"x": normal(2, 3, 4)}
    nodes = [make_node(type_, ["x"], ["y"], axis=1)]
    compare_with_onnxruntime(write_model(tmp_path / "m.onnx", 11, nodes, x), x)


@pytest.mark.parametrize(
    ("opset", "axis", "shape"), [(11, 2, (2, 3, 4)), (11, 1, (2, 3)), (13, 1, (2, 3, 4))]
)
def test_a_softmax_that_is_right_stays_alone(real_exporter, tmp_path, opset, axis, shape):
    x = {"x": normal(*shape)}
    nodes = [make_node("Softmax", ["x"], ["y"], axis=axis)]
    path = write_model(tmp_path / "m.onnx", opset, nodes, x)
    compare_with_onnxruntime(path, x)
    types = [each.type for each in engine.load(path).operators]
    assert types == ["pnnx.Input", "F.softmax", "pnnx.Output"]
