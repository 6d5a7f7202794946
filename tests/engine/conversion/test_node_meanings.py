"""Nodes of ONNX that pnnx takes for others; onnxruntime and slow loops tell the truth."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from engine.conversion.onnx_rewriting import (
    find_control_flow,
    has_inner_nodes,
    prepare_copy,
    rewrite_copy,
)
from engine.conversion.records import ConversionOptions

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


def open_sizes(path, *axes):
    """Leave sizes of the input of a model open."""
    model = onnx.load(path)
    for axis in axes:
        model.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = f"d{axis}"
    onnx.save(model, path)


def computed(path, inputs, options=None):
    session = engine.Session(engine.load(path, conversion=options), backend="numpy")
    session.feed(list(inputs.values()))
    session.run()
    return session.outputs()


def compare_with_onnxruntime(path, inputs, options=None):
    onnxruntime = pytest.importorskip("onnxruntime")
    reference = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    expected = reference.run(None, inputs)
    found = computed(path, inputs, options)
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


IMAGE = {"x": normal(2, 3, 8, 9)}
RESIZED = {"x": normal(1, 2, 5, 6)}
SCALES = {"s": np.float32([1, 1, 1.6, 0.5])}
THIRDS = {"s": np.float32([1, 1, 1 / 3, 1 / 3]), "roi": np.zeros(0, "f")}
MATRIX = {"x": normal(3, 4)}
THREE = {"a": normal(3, 4), "b": normal(4), "c": normal(3, 1)}


def pooling(type_, **attributes):
    return make_node(type_, ["x"], ["y"], **attributes)


def resize(**attributes):
    return make_node("Resize", ["x", "", "s"], ["y"], **attributes)


@pytest.mark.parametrize(
    ("opset", "node", "inputs", "weights"),
    [
        *(
            (opset, pooling(type_, auto_pad=pad, kernel_shape=[3, 2], strides=[s, s]),
             IMAGE, {})
            for opset, type_, pad, s in (
                (11, "MaxPool", "SAME_UPPER", 1), (11, "MaxPool", "SAME_LOWER", 2),
                (10, "MaxPool", "SAME_LOWER", 2), (11, "AveragePool", "SAME_UPPER", 1),
                (11, "AveragePool", "SAME_LOWER", 2),
            )
        ),
        (11, pooling("MaxPool", kernel_shape=[3, 3], pads=[1, 1, 0, 0]), IMAGE, {}),
        *(
            (11, make_node("Conv", ["x", "w"], ["y"], auto_pad=pad, strides=[2, 3]), IMAGE,
             {"w": normal(4, 3, 4, 3)})
            for pad in ("SAME_UPPER", "SAME_LOWER")
        ),
        (11, make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2],
                       output_shape=[16, 20]), IMAGE, {"w": normal(3, 2, 3, 3)}),
        (11, make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2],
                       output_shape=[14, 16]), IMAGE, {"w": normal(3, 2, 3, 3)}),
        (13, make_node("SpaceToDepth", ["x"], ["y"], blocksize=2),
         {"x": normal(2, 3, 4, 6)}, {}),
        *(
            (9, make_node("PRelu", ["x", "s"], ["y"]), {"x": normal(2, 4, 3, 4)},
             {"s": normal(*shape)})
            for shape in ((4,), (3, 1), (4, 1, 1), (1,), (4, 3, 4))
        ),
        *(
            (13, make_node(type_, names, ["y"]), {each: THREE[each] for each in names}, {})
            for type_, names in (("Max", ["a", "b", "c"]), ("Min", ["a", "c", "b"]))
        ),
        *(
            (13, resize(coordinate_transformation_mode=place, **others), RESIZED, SCALES)
            for place, others in (
                ("asymmetric", {"mode": "linear"}), ("asymmetric", {"mode": "cubic"}),
                ("half_pixel", {"mode": "cubic", "cubic_coeff_a": -0.5}),
                ("half_pixel", {"mode": "cubic", "exclude_outside": 1}),
                ("half_pixel", {"mode": "nearest"}), ("align_corners", {"mode": "linear"}),
                ("half_pixel", {"mode": "nearest", "nearest_mode": "floor"}),
                ("asymmetric", {"mode": "nearest", "nearest_mode": "floor"}),
            )
        ),
        (13, make_node("Resize", ["x", "roi", "s"], ["y"], nearest_mode="floor"),
         {"x": normal(1, 2, 9, 15)}, THIRDS),
        (11, make_node("Resize", ["x", "roi", "s"], ["y"], nearest_mode="ceil",
                       coordinate_transformation_mode="tf_half_pixel_for_nn"),
         {"x": normal(1, 2, 9, 15)}, THIRDS),
        *(
            (opset, make_node(type_, ["x", "s"], ["y"], mode="linear"), {"x": normal(*shape)},
             {"s": np.float32(scales)})
            for opset, type_, shape, scales in (
                (9, "Upsample", (1, 2, 3, 4), [1, 1, 2, 3]),
                (9, "Upsample", (1, 2, 4), [1, 1, 2]),
                (10, "Resize", (1, 2, 6, 5), [1, 1, 0.5, 1.6]),
                (10, "Resize", (1, 2, 9, 9), [1, 1, 0.5, 1.6]),
                (10, "Resize", (1, 2, 7), [1, 1, 1.3]),
                (10, "Resize", (2, 7), [1.5, 2]),
                (10, "Resize", (1, 6, 4, 3), [1, 2, 1.5, 1]),
                (10, "Resize", (1, 2, 3, 4, 5), [1, 1, 2, 1.5, 1]),
            )
        ),
        (7, make_node("Upsample", ["x"], ["y"], mode="linear", scales=[1.0, 1, 1.5, 1.3]),
         RESIZED, {}),
        (10, make_node("Resize", ["x", "s"], ["y"], mode="nearest"), RESIZED,
         {"s": np.float32([1, 1, 1.6, 0.5])}),
        *(
            (13, make_node("Einsum", ["x", "w"], ["y"], equation=equation), IMAGE,
             {"w": normal(*shape)})
            for equation, shape in (
                ("...ij,...jk->...ik", (2, 3, 9, 4)), ("b...i, ji -> b...j", (5, 9)),
                ("...i,...i->...", (2, 3, 8, 9)),
            )
        ),
        (18, resize(mode="linear", antialias=1), {"x": normal(1, 2, 8, 8)},
         {"s": np.float32([1, 1, 0.5, 0.5])}),
    ],
)  # fmt: skip
def test_a_node_computes_what_onnx_says(real_exporter, tmp_path, opset, node, inputs, weights):
    compare_with_onnxruntime(
        write_model(tmp_path / "m.onnx", opset, [node], inputs, weights), inputs
    )


@pytest.mark.parametrize("in_nodes", [False, True])
def test_a_slice_backwards_turns_around(real_exporter, tmp_path, in_nodes):
    """Channels from the last one on, rows from the one but last, and every other column."""
    numbers = {"s": [-1, 6, 1], "e": [-9, -8, 8], "a": [1, -2, 3], "p": [-1, -1, 2]}
    weights = {name: np.array(each) for name, each in numbers.items()}
    nodes = [make_node("Slice", ["x", *numbers], ["y"])]
    if in_nodes:
        constants = [
            make_node("Constant", [], [name], value=onnx.numpy_helper.from_array(each))
            for name, each in weights.items()
        ]
        nodes, weights = [*constants, *nodes], {}
    path = write_model(tmp_path / "m.onnx", 13, nodes, IMAGE, weights)
    (found,) = computed(path, IMAGE)
    np.testing.assert_array_equal(found, IMAGE["x"][:, ::-1, 6:0:-1, 1:8:2])


def node(type_, *inputs, to="y", to_=None, **attributes):
    """A node that gives `to`; a cast has an attribute of that name."""
    more = {} if to_ is None else {"to": to_}
    return make_node(type_, inputs, [to], **attributes, **more)


SIZES = node("Shape", "x", to="s")
THIRD = node("Gather", "s", "two", to="g")


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize(
    "nodes",
    [
        [node("Shape", "x")],
        [node("Shape", "x", start=1, end=-1)],
        [SIZES, node("Cast", "s", to_=1)],
        [SIZES, node("Add", "s", "s")],
        [SIZES, node("Equal", "s", "two", to="e"), node("Where", "e", "s", "two")],
        [SIZES, node("ReduceMax", "s", keepdims=0)],
        [SIZES, node("Gather", "s", "last")],
        [SIZES, node("Gather", "s", "both")],
        [SIZES, THIRD, node("Cast", "g", to="c", to_=1), node("Div", "x", "c")],
        [SIZES, THIRD, node("Range", "zero", "g", "two")],
        [SIZES, THIRD, node("Unsqueeze", "g", "none", to="u"),
         node("Concat", "u", "last", to="k", axis=0), node("Reshape", "x", "k")],
        [SIZES, node("Slice", "s", "none", "two_", to="p"),
         node("Concat", "p", "last", to="k", axis=0), node("Reshape", "x", "k")],
        [node("Unsqueeze", "x", "two_", to="d"), node("Concat", "d", "d", to="f", axis=2),
         node("Shape", "f", to="s"), node("Slice", "s", "none", "two_", to="p"),
         node("Slice", "s", "four", "five", to="q"),
         node("Concat", "p", "last", "q", to="k", axis=0), node("Reshape", "f", "k")],
    ],
)  # fmt: skip
def test_sizes_of_a_tensor_are_numbers(real_exporter, tmp_path, nodes, is_open):
    """pnnx takes them for the tensor itself, also where it keeps sizes open."""
    weights = {
        "zero": np.int64(0), "two": np.int64(2), "none": np.array([0]), "two_": np.array([2]),
        "last": np.array([-1]), "both": np.array([1, 3]), "four": np.array([4]),
        "five": np.array([5]),
    }  # fmt: skip
    inputs = {"x": normal(2, 3, 4, 5)}
    path = write_model(tmp_path / "m.onnx", 15, nodes, inputs, weights)
    other = ConversionOptions(("1,3,6,5",), ("4,3,4,7",)) if is_open else None
    if is_open:
        open_sizes(path, 0, 2, 3)
    compare_with_onnxruntime(path, inputs, other)


@pytest.mark.parametrize("step", [1, -1])
def test_slices_of_open_sizes_stay(real_exporter, tmp_path, step):
    """pnnx removes those that state the same open sizes before and behind them."""
    bounds = {"s": [1, -1][step < 0], "e": [-2, 1][step < 0], "a": 3, "p": step}
    weights = {name: np.array([each]) for name, each in bounds.items()}
    nodes = [node("Slice", "x", *weights, to="c"), node("Relu", "c")]
    x = normal(2, 3, 4, 8)
    path = write_model(tmp_path / "m.onnx", 13, nodes, {"x": x}, weights)
    open_sizes(path, 3)
    (found,) = computed(path, {"x": x}, ConversionOptions(("2,3,4,5",), ("2,3,4,7",)))
    expected = x[..., 1:-2] if step == 1 else x[..., :1:-1]
    np.testing.assert_array_equal(found, np.maximum(expected, 0))


@pytest.mark.parametrize("axes", [[], ["none"]])
@pytest.mark.parametrize(
    "type_", ["ReduceSum", "ReduceMax", "ReduceL1", "ReduceLogSum", "ReduceSumSquare"]
)
def test_no_axes_reduce_nothing(real_exporter, tmp_path, type_, axes):
    nodes = [
        make_node("Exp", ["x"], ["e"]),
        make_node(type_, ["e", *axes], ["r"], noop_with_empty_axes=1),
        make_node("Neg", ["r"], ["y"]),
    ]
    weights = {each: np.zeros(0, np.int64) for each in axes}
    path = write_model(tmp_path / "m.onnx", 18, nodes, MATRIX, weights)
    compare_with_onnxruntime(path, MATRIX)


def test_indices_of_a_pooling_are_those_of_the_whole_tensor(real_exporter, tmp_path):
    """Also behind it, where its inverse puts the values back."""
    nodes = [
        make_node("MaxPool", ["x"], ["p", "i"], kernel_shape=[2, 3], strides=[2, 3]),
        make_node("MaxUnpool", ["p", "i"], ["y"], kernel_shape=[2, 3], strides=[2, 3]),
    ]
    path = write_model(tmp_path / "m.onnx", 12, nodes, IMAGE, outputs=("y", "i"))
    unpooled, indices = computed(path, IMAGE)
    expected = np.zeros_like(IMAGE["x"])
    for image in range(2):
        for channel in range(3):
            for row in range(0, 8, 2):
                for column in range(0, 9, 3):
                    window = IMAGE["x"][image, channel, row : row + 2, column : column + 3]
                    down, along = divmod(int(window.argmax()), 3)
                    place = (image, channel, row + down, column + along)
                    expected[place] = window.max()
                    found = indices[image, channel, row // 2, column // 3]
                    assert found == np.ravel_multi_index(place, expected.shape)
    np.testing.assert_array_equal(unpooled, expected)


@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 3, 4, 5), (1, 2, 4, 5, 6)])
def test_indices_of_a_pooling_may_count_columns_first(real_exporter, tmp_path, shape):
    x = {"x": normal(*shape)}
    kernel = [2] * (len(shape) - 2)
    nodes = [make_node("MaxPool", ["x"], ["y", "i"], kernel_shape=kernel, storage_order=1)]
    path = write_model(tmp_path / "m.onnx", 12, nodes, x, outputs=("y", "i"))
    compare_with_onnxruntime(path, x)


@pytest.mark.parametrize("opset", [9, 13])
@pytest.mark.parametrize("far", [2**31, 2**31 + 5, 2**32 - 1, 2**40, 2**63 - 2])
def test_bounds_of_slices_may_be_anywhere(real_exporter, tmp_path, opset, far):
    bounds = {"starts": [1, -far], "ends": [far, 2], "axes": [1, 2]}
    weights = {name: np.array(each) for name, each in bounds.items()}
    node = make_node("Slice", ["x", *bounds], ["y"])
    if opset < 10:
        weights, node = {}, make_node("Slice", ["x"], ["y"], **bounds)
    path = write_model(tmp_path / "m.onnx", opset, [node], IMAGE, weights)
    (found,) = computed(path, IMAGE)
    np.testing.assert_array_equal(found, IMAGE["x"][:, 1:, :2])


@pytest.mark.parametrize("far", [2**31, 2**40, 2**63 - 1])
def test_slices_backwards_may_begin_anywhere(real_exporter, tmp_path, far):
    numbers = {"s": [far, far], "e": [-far, 1], "a": [1, 3], "p": [-1, -2]}
    weights = {name: np.array(each) for name, each in numbers.items()}
    path = write_model(
        tmp_path / "m.onnx", 13, [make_node("Slice", ["x", *numbers], ["y"])], IMAGE, weights
    )
    (found,) = computed(path, IMAGE)
    np.testing.assert_array_equal(found, IMAGE["x"][:, ::-1, :, :1:-2])


@pytest.mark.parametrize("start", [-1, -3, 0, 2, 4, 5, 100])
@pytest.mark.parametrize("end", [-1, -4, -6, -100, -(2**63), 0, 3, 100])
def test_slices_backwards_stay_within_the_dimension(real_exporter, tmp_path, start, end):
    x = {"x": normal(5, 3)}
    numbers = {"s": [start], "e": [end], "a": [0], "p": [-1]}
    weights = {name: np.array(each) for name, each in numbers.items()}
    nodes = [make_node("Slice", ["x", *numbers], ["part"]), make_node("Relu", ["part"], ["y"])]
    path = write_model(tmp_path / "m.onnx", 13, nodes, x, weights)
    (found,) = computed(path, x)
    np.testing.assert_array_equal(found, np.maximum(x["x"][start:end:-1], 0))


@pytest.mark.parametrize("names", [["y", "", "v"], ["y", "", "", "c"], ["y", "i", "", "c"]])
def test_unused_outputs_in_between_keep_their_places(real_exporter, tmp_path, names):
    x = {"x": np.float32([3, 1, 3, 2, 2, 3])}
    path = write_model(
        tmp_path / "m.onnx", 11, [make_node("Unique", ["x"], names)], x,
        outputs=[name for name in names if name],
    )  # fmt: skip
    expected = {"y": [1, 2, 3], "i": [1, 3, 0], "v": [2, 0, 2, 1, 1, 2], "c": [1, 2, 3]}
    found = computed(path, x)
    assert [each.tolist() for each in found] == [expected[name] for name in names if name]


def branch(node, name):
    float32 = onnx.TensorProto.FLOAT
    output = onnx.helper.make_tensor_value_info(name, float32, MATRIX["x"].shape)
    return onnx.helper.make_graph([node], "branch", [], [output])


OTHERS = [
    make_node("Neg", ["x"], ["n"]),
    make_node("ReduceMean", ["x"], ["m"], axes=[1], keepdims=1),
]


def choice():
    return make_node(
        "If", ["c"], ["y"],
        then_branch=branch(make_node("Max", ["x", "m", "n"], ["t"]), "t"),
        else_branch=branch(make_node("Softmax", ["x"], ["e"], axis=0), "e"),
    )  # fmt: skip


@pytest.mark.parametrize("chosen", [True, False])
def test_nodes_of_a_branch_that_is_known_are_found(real_exporter, tmp_path, chosen):
    weights = {"c": np.array(chosen)}
    path = write_model(tmp_path / "m.onnx", 11, [*OTHERS, choice()], MATRIX, weights)
    compare_with_onnxruntime(path, MATRIX)


def test_a_branch_that_depends_on_values_is_told(real_exporter, tmp_path):
    nodes = [
        make_node("ReduceSum", ["x"], ["s"], keepdims=0),
        make_node("Greater", ["s", "zero"], ["c"]),
        *OTHERS,
        choice(),
    ]
    weights = {"zero": np.float32(0)}
    path = write_model(tmp_path / "m.onnx", 11, nodes, MATRIX, weights)
    (note,) = engine.load(path).conversion.notes
    assert note.startswith(
        "the operator If has branches that depend on values, and is not computed"
    )


def test_a_loop_is_refused_by_name(real_exporter, tmp_path):
    value = onnx.helper.make_tensor_value_info
    types = onnx.TensorProto
    body = onnx.helper.make_graph(
        [make_node("Identity", ["go"], ["on"]), make_node("Add", ["old", "w"], ["new"])],
        "body",
        [value("i", types.INT64, []), value("go", types.BOOL, []),
         value("old", types.FLOAT, [3, 4])],
        [value("on", types.BOOL, []), value("new", types.FLOAT, [3, 4])],
    )  # fmt: skip
    path = write_model(
        tmp_path / "m.onnx", 11, [make_node("Loop", ["n", "c", "x"], ["y"], body=body)], MATRIX,
        {"n": np.array(3), "c": np.array(True), "w": normal(4)},
    )  # fmt: skip
    with pytest.raises(
        engine.errors.ConversionError, match=r"of the operator Loop, that .* trace the model"
    ):
        engine.load(path)


def test_nodes_of_a_function_are_found(real_exporter, tmp_path):
    function = onnx.helper.make_function(
        "mine", "Shares", ["a"], ["b"], [make_node("Softmax", ["a"], ["b"])],
        [onnx.helper.make_opsetid("", 11)],
    )  # fmt: skip
    x = {"x": normal(2, 3, 4)}
    path = write_model(tmp_path / "m.onnx", 11, [make_node("Neg", ["x"], ["y"])], x)
    model = onnx.load(path)
    model.functions.append(function)
    model.opset_import.append(onnx.helper.make_opsetid("mine", 1))
    model.graph.node[0].CopyFrom(make_node("Shares", ["x"], ["y"], domain="mine"))
    onnx.save(model, path)
    compare_with_onnxruntime(path, x)


def test_inputs_of_bool_stay_bool(real_exporter, tmp_path):
    inputs = {"x": normal(2, 3), "chosen": np.array([[True, False, True]])}
    nodes = [
        make_node("Neg", ["x"], ["n"]),
        make_node("Not", ["chosen"], ["others"]),
        make_node("Where", ["others", "x", "n"], ["y"]),
    ]
    path = write_model(tmp_path / "m.onnx", 13, nodes, inputs, outputs=("y", "others"))
    found, others = computed(path, inputs)
    np.testing.assert_array_equal(found, inputs["x"] * [[-1, 1, -1]])
    assert others.tolist() == [[False, True, False]]
    graph = engine.load(path)
    assert [operand.dtype for operand in graph.input_operands] == [np.float32, np.bool_]


def test_sizes_of_a_bool_input_may_be_given(real_exporter, tmp_path):
    graph = onnx.helper.make_graph(
        [make_node("Not", ["x"], ["y"])], "g",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.BOOL, ["rows", 2])],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.BOOL, ["rows", 2])],
    )  # fmt: skip
    opsets = [onnx.helper.make_opsetid("", 13)]
    onnx.save(
        onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "m.onnx"
    )
    loaded = engine.load(tmp_path / "m.onnx", conversion=engine.ConversionOptions(("3,2",)))
    session = engine.Session(loaded, backend="numpy")
    session.feed([np.array([[True, False]] * 3)])
    session.run()
    (found,) = session.outputs()
    assert found.tolist() == [[False, True]] * 3


def test_outputs_that_are_constants_are_missed(real_exporter, tmp_path):
    nodes = [make_node("Add", ["x", "w"], ["y"])]
    path = write_model(
        tmp_path / "m.onnx", 13, nodes, MATRIX, {"w": normal(4)}, outputs=("y", "w")
    )
    (note,) = engine.load(path).conversion.notes
    assert note.startswith("pnnx left out 1 of 2 outputs; it keeps none that is a constant")


@pytest.mark.parametrize("opset", [10, 16])
def test_regions_lie_where_the_opset_says(real_exporter, tmp_path, opset):
    nodes = [
        make_node("RoiAlign", ["x", "r", "b"], ["y"], output_height=2, output_width=3,
                  sampling_ratio=2, spatial_scale=0.8),
    ]  # fmt: skip
    regions = np.float32([[0, 0, 3, 3], [1, 1, 5, 4.5], [2, 2, 2.5, 2.5]])
    inputs = {"x": IMAGE["x"][:1], "r": regions}
    weights = {"b": np.zeros(3, np.int64)}
    path = write_model(tmp_path / "m.onnx", opset, nodes, inputs, weights)
    compare_with_onnxruntime(path, inputs)


def test_damaged_nodes_are_left_to_the_exporter(tmp_path):
    """Nothing raises, whatever the bytes are; sizes are taken from the damaged file itself."""
    nodes = [
        make_node("Slice", ["x", "s", "e", "a", "p"], ["f"]),
        make_node("MaxPool", ["f"], ["m", "i"], kernel_shape=[3, 2], auto_pad="SAME_UPPER"),
        make_node("Conv", ["m", "w"], ["c"], auto_pad="SAME_LOWER", strides=[2, 2]),
        make_node("SpaceToDepth", ["c"], ["d"], blocksize=2),
        make_node("Softmax", ["d"], ["z"]),
        make_node("If", ["k"], ["y"], then_branch=branch(make_node("Max", ["z"], ["t"]), "t")),
    ]
    weights = {
        name: np.array([each]) for name, each in zip("seap", (-1, -9, 3, -1), strict=True)
    }
    weights["w"] = normal(2, 3, 1, 1)
    path = write_model(tmp_path / "m.onnx", 11, nodes, IMAGE, weights)
    content = path.read_bytes()
    drawn = np.random.default_rng(0)
    prepared, rewritten = tmp_path / "prepared.onnx", tmp_path / "rewritten.onnx"
    assert prepare_copy(path, prepared)
    assert rewrite_copy(prepared, prepared, rewritten)
    assert has_inner_nodes(path)
    assert find_control_flow(path) == "If"
    for _ in range(100):
        damaged = bytearray(content)
        for place in drawn.integers(len(content), size=3):
            damaged[place] = drawn.integers(256)
        path.write_bytes(damaged)
        prepared.unlink(missing_ok=True)
        rewritten.unlink(missing_ok=True)
        has_inner_nodes(path)
        find_control_flow(path)
        if prepare_copy(path, prepared):
            rewrite_copy(prepared, prepared, rewritten)


@pytest.mark.parametrize(
    ("opset", "shape", "node"),
    [
        (9, (1, 1, 1 << 20, 1 << 20), make_node("Upsample", ["x", "s"], ["y"], mode="linear")),
        (11, (1 << 20, 1 << 20, 4, 4),
         make_node("MaxPool", ["x"], ["y", "i"], kernel_shape=[2, 2])),
        (11, (1, 3, 4, 4), make_node("SpaceToDepth", ["x"], ["y"], blocksize=1 << 62)),
    ],
    ids=["weights of a resize", "places of planes", "blocks"],
)  # fmt: skip
def test_sizes_that_no_constant_can_have_are_left_to_the_exporter(tmp_path, opset, shape, node):
    """A file may state any; their constants would take terabytes."""
    float32 = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [node], "g",
        [onnx.helper.make_tensor_value_info("x", float32, shape)],
        [onnx.helper.make_tensor_value_info("y", float32, shape)],
        [onnx.numpy_helper.from_array(np.ones(4, "f"), "s")],
    )  # fmt: skip
    path, prepared = tmp_path / "m.onnx", tmp_path / "prepared.onnx"
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=8
    )
    onnx.save(model, path)
    assert prepare_copy(path, prepared)
    assert not rewrite_copy(prepared, prepared, tmp_path / "rewritten.onnx")


def test_nodes_behind_others_that_were_rewritten_are_found(real_exporter, tmp_path):
    nodes = [
        make_node("Max", ["x", "a", "b"], ["m"]),
        make_node("Softmax", ["m"], ["y"], axis=0),
    ]
    weights = {"a": normal(4), "b": normal(3, 1)}
    path = write_model(tmp_path / "m.onnx", 11, nodes, MATRIX, weights)
    compare_with_onnxruntime(path, MATRIX)
