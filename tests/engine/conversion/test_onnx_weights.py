"""Weights beside an ONNX file; the onnx package reads what the exporter gets."""

from __future__ import annotations

import os

import numpy as np
import pytest

import engine
from engine.conversion.inspection import inspect
from engine.errors import ConversionError

onnx = pytest.importorskip("onnx")
make_node, make_graph = onnx.helper.make_node, onnx.helper.make_graph
from_array, to_array = onnx.numpy_helper.from_array, onnx.numpy_helper.to_array
FLOAT = onnx.TensorProto.FLOAT
WEIGHT = np.arange(12, dtype="f").reshape(3, 4) - 5


def value(name, shape):
    return onnx.helper.make_tensor_value_info(name, FLOAT, shape)


def model_of(nodes, weights=(), functions=()):
    """A model of x (2, 3) and y (2, 4)."""
    tensors = [from_array(array, name) for name, array in dict(weights).items()]
    graph = make_graph(nodes, "g", [value("x", (2, 3))], [value("y", (2, 4))], tensors)
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("own", 1)]
    return onnx.helper.make_model(
        graph, opset_imports=opsets, functions=functions, ir_version=8
    )


def save(model, path, **options):
    path.parent.mkdir(exist_ok=True)
    options = {"location": f"{path.name}_data", **options}
    onnx.save(model, path, save_as_external_data=True, size_threshold=0, **options)
    return path


def copied(path, tmp_path):
    """What the exporter gets, in a folder without the weights."""
    target = tmp_path / "exporter" / "model.onnx"
    target.parent.mkdir()
    inspect(path).copy_to(target)
    return onnx.load(target, load_external_data=False)


PRODUCT = [make_node("MatMul", ["x", "w"], ["m"]), make_node("Add", ["m", "b"], ["y"])]


@pytest.mark.parametrize("options", [{}, {"all_tensors_to_one_file": False, "location": ""}])
def test_weights_beside_the_file_are_in_the_copy(tmp_path, options):
    bias = np.float32([1, 2, 3, 4])
    path = save(
        model_of(PRODUCT, {"w": WEIGHT, "b": bias}), tmp_path / "in" / "m.onnx", **options
    )
    found = copied(path, tmp_path)
    weight, other = found.graph.initializer
    np.testing.assert_array_equal(to_array(weight), WEIGHT)
    np.testing.assert_array_equal(to_array(other), bias)
    assert [node.op_type for node in found.graph.node] == ["MatMul", "Add"]
    assert found.opset_import[0].version == 17


def test_weights_of_nodes_branches_and_functions_are_in_the_copy(tmp_path):
    branches = [
        make_graph(
            [make_node("MatMul", ["x", "inner"], [name])],
            name, [], [value(name, (2, 4))], [from_array(WEIGHT * sign, "inner")],
        )
        for name, sign in (("then", 1), ("else", -1))
    ]  # fmt: skip
    body = [
        make_node("Constant", [], ["k"], value=from_array(np.float32([7, 8]))),
        make_node("Identity", ["k"], ["out"]),
    ]
    function = onnx.helper.make_function(
        "own", "F", [], ["out"], body, [onnx.helper.make_opsetid("", 17)]
    )
    nodes = [
        make_node("Constant", [], ["c"], value=from_array(np.array([True]))),
        make_node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1]),
    ]
    model = model_of(nodes, functions=[function])
    path = save(model, tmp_path / "in" / "m.onnx", convert_attribute=True)
    found = copied(path, tmp_path)
    constant, branch = found.graph.node
    assert to_array(constant.attribute[0].t).tolist() == [True]
    weights = {each.name: to_array(each.g.initializer[0]) for each in branch.attribute}
    np.testing.assert_array_equal(weights["then_branch"], WEIGHT)
    np.testing.assert_array_equal(weights["else_branch"], -WEIGHT)
    (kept,) = found.functions
    assert to_array(kept.node[0].attribute[0].t).tolist() == [7, 8]


def test_links_of_a_cache_of_downloads_are_followed(tmp_path):
    """As huggingface_hub keeps files: links from a snapshot into a folder of contents."""
    weights = {"w": WEIGHT, "b": np.zeros(4, "f")}
    real = save(model_of(PRODUCT, weights), tmp_path / "in" / "model.onnx")
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "main" / "onnx"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    for name, blob in (("model.onnx", "ab12"), ("model.onnx_data", "cd34")):
        real.with_name(name).replace(blobs / blob)
        (snapshot / name).symlink_to(f"../../../blobs/{blob}")
    found = copied(snapshot / "model.onnx", tmp_path)
    np.testing.assert_array_equal(to_array(found.graph.initializer[0]), WEIGHT)


def test_a_link_to_the_model_alone_finds_its_weights(tmp_path):
    real = save(model_of(PRODUCT, {"w": WEIGHT}), tmp_path / "in" / "model.onnx")
    link = tmp_path / "link.onnx"
    link.symlink_to(real)
    found = copied(link, tmp_path)
    np.testing.assert_array_equal(to_array(found.graph.initializer[0]), WEIGHT)


def _entries(model):
    (weight,) = model.graph.initializer
    return {each.key: each for each in weight.external_data}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"offset": "4096"}, "lies beyond the end of 'm.onnx_data'"),
        ({"length": "49"}, "lies beyond the end"),
        ({"offset": "-4"}, "lies beyond the end"),
        ({"length": "many"}, "the place of 'w' is no number"),
    ],
)
def test_weights_that_are_not_there_are_refused(tmp_path, change, words):
    path = save(model_of(PRODUCT[:1], {"w": WEIGHT}), tmp_path / "in" / "m.onnx")
    model = onnx.load(path, load_external_data=False)
    for key, text in change.items():
        _entries(model)[key].value = text
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ConversionError, match=words):
        inspect(path)


def test_more_than_protobuf_holds_is_refused(tmp_path):
    path = save(model_of(PRODUCT[:1], {"w": WEIGHT}), tmp_path / "in" / "m.onnx")
    model = onnx.load(path, load_external_data=False)
    _entries(model)["length"].value = str(3 << 30)
    path.write_bytes(model.SerializeToString())
    os.truncate(path.with_name("m.onnx_data"), 3 << 30)  # takes no place on the disk
    with pytest.raises(ConversionError, match=r"pnnx reads at most .* as TorchScript instead"):
        inspect(path)


def test_a_model_with_weights_beside_it_computes(real_exporter, tmp_path):
    """Also where a shape is among them, which pnnx needs before it computes."""
    nodes = [
        make_node("Transpose", ["w"], ["t"], perm=[1, 0]),
        make_node("MatMul", ["x", "t"], ["m"]),
        make_node("Reshape", ["m", "shape"], ["y"]),
    ]
    weights = {"w": WEIGHT.T.copy(), "shape": np.array([2, 4])}
    path = save(
        model_of(nodes, weights), tmp_path / "my model.onnx", location="all weights.bin"
    )
    x = np.float32([[1, 0, 2], [0, -1, 1]])
    graph = engine.load(path)
    assert {version.path.name for version in graph.versions} == {
        "my model.onnx", "all weights.bin",
    }  # fmt: skip
    session = engine.Session(graph, backend="numpy")
    session.feed([x])
    session.run()
    expected = [
        [sum(x[i, k] * WEIGHT[k, j] for k in range(3)) for j in range(4)] for i in (0, 1)
    ]
    np.testing.assert_allclose(session.outputs()[0], expected)
