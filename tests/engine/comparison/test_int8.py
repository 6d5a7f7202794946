"""Quantised pairs of ncnn against results in float32."""

from __future__ import annotations

import numpy as np
import pytest
from int8_pairs import write_int8_pair
from ncnn_files import f32, tagged, write_pair

import engine
from array_reference import align_with, reference_of
from array_reference import compare as compare_arrays
from engine.comparison import Status
from engine.comparison.aligning import Born
from engine.comparison.excuses import Excuses
from engine.comparison.reasons import explain
from engine.comparison.references import Reference, ReferenceTensor
from engine.comparison.requantised import find_requantised

LINES = (
    "Input in0 0 1 in0 0=16 1=16 2=3",
    "Convolution first 1 1 in0 1 0=8 1=3 4=1 5=1 6=216 9=1",
    "ConvolutionDepthWise deep 1 1 1 2 0=8 1=3 4=1 5=1 6=72 7=8",
    "Convolution mix 1 1 2 3 0=16 1=1 5=1 6=128 9=1",
    "Split twice 1 2 3 3a 3b",
    "Convolution side 1 1 3a 4 0=16 1=3 4=1 5=1 6=2304",
    "BinaryOp sum 2 1 4 3b 5 0=0",
    "ReLU act 1 1 5 6",
    "Pooling pool 1 1 6 7 0=1 4=1",
    "InnerProduct fc 1 1 7 8 0=10 1=1 2=160",
)
SHAPES = {
    "first": (8, 3, 3, 3), "deep": (8, 1, 3, 3), "mix": (16, 8, 1, 1), "side": (16, 16, 3, 3),
    "fc": (10, 16),
}  # fmt: skip
QUANTISED = ["first", "deep", "mix", "side", "fc"]


def write_float_pair(folder, lines=LINES, name="float.ncnn"):
    rng = np.random.default_rng(11)
    data = b""
    for shape in SHAPES.values():
        size = np.sqrt(np.prod(shape[1:]))
        data += tagged((rng.standard_normal(shape) / size).astype(np.float32))
        data += f32(rng.standard_normal(shape[0]) / 4)
    return write_pair(folder, lines, data, name)


def run(param, image, backend="numpy"):
    session = engine.Session(engine.load(param), backend=backend)
    session.feed([image])
    session.run()
    return session


def record(session, hidden=()):
    """The tensors of a run but some, under names that say nothing."""
    names = [o.name for op in session.graph.operators for o in op.outputs]
    names = [name for name in names if name not in hidden]
    arrays = {f"x{i}": np.array(session.value(name)) for i, name in enumerate(names)}
    tensors = [ReferenceTensor(k, lambda array=a: array) for k, a in arrays.items()]
    return Reference("theirs", tensors, (), ("x0",), (f"x{len(names) - 1}",))


@pytest.fixture
def image():
    return np.random.default_rng(2).standard_normal((3, 16, 16)).astype(np.float32)


@pytest.fixture
def compared(tmp_path, image):
    """A function that compares an int8 pair with a float pair."""
    exact = write_float_pair(tmp_path)
    float_run = run(exact, image)

    def compare(change=None, backend="numpy", hidden=(), **options):
        reference = record(float_run, hidden)
        param = write_int8_pair(exact, [image], tmp_path, change=change, **options)
        return engine.compare(run(param, image, backend), reference)

    return compare


def statuses(found):
    return {row.operator.name: row.status for row in found.rows}


@pytest.mark.parametrize("backend", ["numpy", "ncnn"])
def test_int8_is_no_fault(compared, backend):
    if backend == "ncnn":
        pytest.importorskip("ncnn")
    found = compared(backend=backend)
    assert (found.verdict, found.origins, found.unmatched.ours) == ("same", (), ())
    named = [name for name, status in statuses(found).items() if status is Status.INT8]
    assert named == QUANTISED
    rows = [row for row in found.rows if row.status is Status.INT8]
    assert {row.reason for row in rows} == {"it computes in int8"}
    assert all(row.born > found.tolerances.float32 for row in rows)


def changed(layer, key, index, factor):
    """A change of one array of a layer before it is written."""

    def change(name, arrays):
        if name == layer:
            arrays[key][index] *= factor

    return change


FAULTS = [
    pytest.param("first", "weight", (1, 2, 0, 1), -3, id="element"),
    pytest.param("side", "weight", 3, 1.1, id="channel"),
    pytest.param("deep", "weight", ..., 0.9, id="scale"),
    pytest.param("mix", "bias", 2, 2, id="bias"),
    pytest.param("fc", "weight", ..., -1, id="sign"),
    pytest.param("side", "input", 0, 4, id="input scale"),
]


@pytest.mark.parametrize(("layer", "key", "index", "factor"), FAULTS)
def test_a_fault_beyond_int8_is_named(compared, layer, key, index, factor):
    found = compared(changed(layer, key, index, factor))
    assert found.verdict == "differs"
    assert [origin.operator.name for origin in found.origins] == [layer]
    others = {name: s for name, s in statuses(found).items() if name != layer}
    assert Status.ORIGIN not in others.values()


@pytest.mark.parametrize(
    ("errs", "status"), [(0.5, Status.INT8), (1.9, Status.INT8), (2.1, Status.ORIGIN)]
)
def test_a_kernel_may_err_twice_as_much_as_its_layer(tmp_path, image, errs, status):
    """A kernel of a library may round otherwise than the layer that int8 explains."""
    exact = write_float_pair(tmp_path)
    ours = run(write_int8_pair(exact, [image], tmp_path), image)
    aligned = align_with(ours, record(run(exact, image)))
    row, mix = aligned.rows["3"], ours.graph.operator("mix")
    born = Born(errs * row.born)
    tolerance = aligned.tolerances.float32
    assert tolerance < 0.1 * row.born  # so that it does not decide
    found, reason = Excuses(aligned).find(mix, mix.outputs[0], born, tolerance)
    assert (found, bool(reason)) == (status, status is Status.INT8)


# Operands that a reference which fuses operators does not show.
FUSED = {"sum": ("4", "5"), "two layers": ("1", "2"), "pool": ("6", "7")}


@pytest.mark.parametrize("hidden", FUSED.values(), ids=FUSED)
def test_int8_is_no_fault_beside_a_fusing_reference(compared, hidden):
    found = compared(hidden=hidden)
    assert (found.verdict, found.origins) == ("same", ())
    assert Status.INT8 in statuses(found).values()


FAULTS_OF_FUSED = [
    pytest.param("side", "weight", 3, 2, "sum", "act", id="channel"),
    pytest.param("deep", "weight", ..., 0.7, "two layers", "mix", id="scale"),
    pytest.param("first", "bias", 2, -4, "two layers", "mix", id="bias"),
    pytest.param("fc", "weight", ..., -1, "pool", "fc", id="sign"),
]


@pytest.mark.parametrize(("layer", "key", "index", "factor", "hidden", "seen"), FAULTS_OF_FUSED)
def test_a_fault_among_fused_layers_is_an_origin(
    compared, layer, key, index, factor, hidden, seen
):
    found = compared(changed(layer, key, index, factor), hidden=FUSED[hidden])
    assert found.verdict == "differs"
    assert statuses(found)[seen] is Status.ORIGIN


CHAIN = ("first", "deep")
"""Layers whose results are int8: the next layer takes them as they are."""


@pytest.mark.parametrize("backend", ["numpy", "ncnn"])
@pytest.mark.parametrize("hidden", [(), ("1",), ("2",), ("1", "2"), ("2", "3")])
def test_a_result_in_int8_stands_for_its_numbers(compared, backend, hidden):
    if backend == "ncnn":
        pytest.importorskip("ncnn")
    found = compared(backend=backend, hidden=hidden, requantised=CHAIN)
    assert (found.verdict, found.origins) == ("same", ())
    shown = {name: row for row in found.rows for name in [row.operand]}
    assert {"1", "2", "3"} - set(hidden) <= shown.keys()
    assert all(shown[name].status is Status.INT8 for name in {"1", "2", "3"} - set(hidden))


@pytest.mark.parametrize("matched", ["names", "content"])
def test_results_in_int8_on_both_sides_are_compared(tmp_path, image, matched):
    param = write_int8_pair(write_float_pair(tmp_path), [image], tmp_path, requantised=CHAIN)
    theirs = run(param, image)
    if matched == "content":
        theirs = record(theirs)
    found = engine.compare(run(param, image), theirs)
    assert (found.verdict, found.origins) == ("same", ())


FAULTS_OF_CHAIN = [
    pytest.param("first", "weight", (1, 2, 0, 1), -3, id="element"),
    pytest.param("deep", "weight", ..., 0.9, id="scale"),
    pytest.param("mix", "bias", 2, 2, id="bias"),
    pytest.param("first", "top", 0, 0.5, id="steps"),
    pytest.param("deep", "top", 0, 3, id="clipping"),
]


@pytest.mark.parametrize(("layer", "key", "index", "factor"), FAULTS_OF_CHAIN)
def test_a_fault_among_results_in_int8_is_named(compared, layer, key, index, factor):
    found = compared(changed(layer, key, index, factor), requantised=CHAIN)
    assert found.verdict == "differs"
    assert [origin.operator.name for origin in found.origins] == [layer]


def compare_float(folder, image, **options):
    """Compare the float pair with an int8 pair."""
    exact = write_float_pair(folder)
    theirs = write_int8_pair(exact, [image], folder, **options)
    return engine.compare(run(exact, image), run(theirs, image))


@pytest.mark.parametrize("chain", [(), CHAIN], ids=["float results", "int8 results"])
def test_a_reference_in_int8_is_no_fault(tmp_path, image, chain):
    found = compare_float(tmp_path, image, requantised=chain)
    assert (found.verdict, found.origins) == ("same", ())
    rows = [row for row in found.rows if row.status is Status.INT8]
    assert [row.operator.name for row in rows] == QUANTISED
    assert {row.reason for row in rows} == {"the reference computes in int8"}


def test_int8_weights_that_were_float16_are_no_fault(tmp_path, image):
    """pnnx writes float16, which ``ncnn2int8`` then quantises."""

    def halve(_name, arrays):
        arrays["weight"][:] = arrays["weight"].astype(np.float16)

    found = compare_float(tmp_path, image, change=halve)
    assert (found.verdict, found.origins) == ("same", ())


@pytest.mark.parametrize(("layer", "key", "index", "factor"), FAULTS)
@pytest.mark.parametrize("chain", [(), CHAIN], ids=["float results", "int8 results"])
def test_a_difference_from_a_reference_in_int8_is_named(
    tmp_path, image, layer, key, index, factor, chain
):
    change = changed(layer, key, index, factor)
    found = compare_float(tmp_path, image, change=change, requantised=chain)
    assert found.verdict == "differs"
    assert [origin.operator.name for origin in found.origins] == [layer]


def test_a_clipping_scale_is_named(compared, image):
    """The scale maps the largest number to 4 × 127 steps, so all above 127 are clipped."""
    found = compared(changed("first", "input", 0, 4))
    (origin,) = found.origins
    scale = 4 * 127 / np.abs(image).max()
    share = np.mean(np.abs(image) * scale > 127.5)
    assert f"its input scale {scale:g} clips {share:.1%} of the numbers" in origin.text


def test_other_operators_are_not_excused(compared, tmp_path, image):
    """Only the rounding of its own layer explains a difference."""
    param = write_int8_pair(write_float_pair(tmp_path), [image], tmp_path)
    param.write_text(param.read_text().replace("ReLU act", "Sigmoid act"))
    reference = record(run(tmp_path / "float.ncnn.param", image))
    found = engine.compare(run(param, image), reference)
    assert [origin.operator.name for origin in found.origins] == ["act"]


def test_layers_in_float32_stay_exact(compared):
    found = compared(skip=("side",), change=changed("side", "weight", (0, 0, 0, 0), 1))
    (row,) = (row for row in found.rows if row.operator.name == "side")
    assert row.status is Status.INHERITED
    assert row.born < 1e-5
    assert found.verdict == "same"


@pytest.mark.parametrize("layer", QUANTISED)
def test_ncnn_runs_the_pair(tmp_path, image, layer):
    """Ncnn's own result of each quantised layer is near the float one's."""
    pytest.importorskip("ncnn")
    exact = write_float_pair(tmp_path)
    param = write_int8_pair(exact, [image], tmp_path)
    ours, theirs = (run(path, image, "ncnn") for path in (param, exact))
    name = ours.graph.operator(layer).outputs[0].name
    assert ours.record(layer).kernel == "ncnn/exact"
    near = (
        np.abs(ours.value(name) - theirs.value(name)).max() / np.abs(theirs.value(name)).max()
    )
    assert 1e-4 < near < 0.05


def test_halves_of_the_input_are_rounded_as_by_ncnn(tmp_path):
    """Away from 0; to the even one they would be other steps."""
    image = np.tile(np.float32([0.5, 1.5, -2.5, 127]), (3, 16, 4))
    found = compare_float(tmp_path, image)
    assert (found.verdict, found.origins) == ("same", ())


REASONS = [
    pytest.param("side", "weight", ..., 0.6, "scale", "times ours before", id="scale"),
    pytest.param("side", "bias", 3, -6, "bias", "bias of channel 3", id="bias"),
    pytest.param("side", "weight", (5, 2, 1, 1), -9, "weight_values", "channel 5", id="one"),
    pytest.param(
        "first",
        "weight",
        (1, 2, 0, 1),
        -3,
        "weight_values",
        "weight[1, 2, 0, 1]",
        id="one before a ReLU",
    ),
    pytest.param("mix", "weight", 7, 0.5, "weight_values", "weight of channel 7", id="channel"),
    pytest.param(
        "mix",
        "weight",
        (5, slice(4)),
        -1,
        "weight_values",
        "Only output channel 5 of 16 differs. The rounding of stored weights leaves uncertain",
        id="several",
    ),
    pytest.param("mix", "bias", 2, 5, "bias", "bias of channel 2", id="bias before a ReLU"),
    pytest.param(
        "first", "weight", ..., 0.7, "scale", "times ours before", id="scale before a ReLU"
    ),
    pytest.param(
        "deep", "weight", (slice(None), 0, slice(None, None, -1)), 1, None, "", id="right"
    ),
]


@pytest.mark.parametrize(("layer", "key", "index", "factor", "kind", "text"), REASONS)
def test_a_fault_on_top_of_int8_has_its_reason(compared, layer, key, index, factor, kind, text):
    """As if the layer computed in float32; rounding of its weights is no difference."""
    found = compared(changed(layer, key, index, factor))
    if kind is None:
        assert found.origins == ()
        return
    (origin,) = found.origins
    assert origin.operator.name == layer
    assert origin.reasons[0].kind == kind
    assert text in origin.reasons[0].text


def test_a_wrong_padding_on_top_of_int8(tmp_path, image):
    float_run = run(write_float_pair(tmp_path), image)
    param = write_int8_pair(tmp_path / "float.ncnn.param", [image], tmp_path)
    text = param.read_text()
    param.write_text(text.replace("4 0=16 1=3 4=1", "4 0=16 1=3 4=0"))
    operator = engine.load(param).operator("side")
    (reason, *_) = explain(operator, [float_run.value("3a")], float_run.value("4"))
    assert reason.kind == "padding"
    assert "Set padding=(1, 1)." in reason.text


@pytest.mark.parametrize(
    ("layer", "read", "instead"),
    [("deep", " mix 1 1 2 3", " mix 1 1 2r 3"), ("side", " 2 1 4 3b", " 2 1 4r 3b")],
)
def test_a_lost_activation_is_named_where_it_was_fused(tmp_path, image, layer, read, instead):
    """The layer agrees with what the reference gives to its activation, its reader does not."""
    lines = [line.replace(read, instead) for line in LINES]
    blob = instead.split()[-2]
    place = next(i for i, line in enumerate(LINES) if line.split()[1] == layer) + 1
    lines.insert(place, f"ReLU own 1 1 {blob[0]} {blob}")
    session = run(write_float_pair(tmp_path, lines, "other.ncnn"), image)
    names = [o.name for each in session.graph.operators for o in each.outputs]
    calls = [
        (each.type, tuple(o.name for o in each.inputs), each.outputs[0].name, {})
        for each in session.graph.operators
        if each.inputs and len(each.outputs) == 1
    ]
    arrays = {name: np.array(session.value(name))[np.newaxis] for name in names}
    param = write_int8_pair(write_float_pair(tmp_path), [image], tmp_path)
    (origin,) = engine.compare(run(param, image), reference_of(arrays, calls)).origins
    assert (origin.operator.name, origin.among) == (layer, ())
    assert origin.reasons[0].text.startswith(
        f"The reference applies relu to the result of {layer}"
    )


def test_clipped_inputs_are_no_fault_of_the_weights(compared):
    (origin,) = compared(changed("side", "input", 0, 8)).origins
    assert "clips" in origin.text
    assert origin.reasons == ()


def test_a_copy_of_a_tensor_is_to_blame_for_nothing(compared):
    """What it gives is what it takes, whatever is wrong with the layer that reads it."""
    (origin,) = compared(changed("side", "input", 0, 8)).origins
    assert origin.operator.name == "side"
    assert origin.among == ()
    assert "twice" not in origin.text


@pytest.mark.parametrize(
    ("key", "index", "kind"),
    [("bias", 3, "bias"), ("bias", ..., "bias"), ("weight", 5, "weight_values")],
    ids=["bias", "biases", "weight"],
)
def test_inputs_that_hardly_vary(tmp_path, key, index, kind):
    """Rounding and wrong weights are almost offsets then; what varies tells them apart."""
    rng = np.random.default_rng(7)
    x = rng.uniform(1, 2, (16, 1, 1)) + 0.03 * rng.standard_normal((16, 12, 12))
    x = x.astype(np.float32)
    weight = (rng.standard_normal((8, 16, 1, 1)) / 4).astype(np.float32)
    lines = ("Input in0 0 1 in0", "Convolution it 1 1 in0 out0 0=8 1=1 5=1 6=128")
    data = tagged(weight) + f32(rng.uniform(1, 2, 8))
    exact = write_pair(tmp_path, lines, data, "float.ncnn")
    param = write_int8_pair(exact, [x], tmp_path, change=changed("it", key, index, 0.6))
    (reason, *_) = explain(engine.load(param).operator("it"), [x], run(exact, x).value("out0"))
    assert reason.kind == kind


def write_loud_pair(folder):
    """A layer whose first channel is a hundred times as large as the others."""
    rng = np.random.default_rng(5)
    weight = (rng.standard_normal((8, 16, 1, 1)) / 4).astype(np.float32)
    weight[0] *= 100
    lines = ("Input in0 0 1 in0", "Convolution it 1 1 in0 out0 0=8 1=1 5=1 6=128")
    return write_pair(folder, lines, tagged(weight) + f32(rng.standard_normal(8)), "float.ncnn")


@pytest.mark.parametrize(
    ("key", "index", "factor", "kind"),
    [
        ("bias", 3, 1.8, "bias"),
        ("weight", (5, slice(None)), 0.7, "weight_values"),
        ("bias", 3, 1, None),
    ],
    ids=["bias", "weight", "right"],
)
def test_a_fault_in_a_quiet_channel_beside_a_loud_one(tmp_path, key, index, factor, kind):
    """What rounding changes in the loud one is more than the fault."""
    x = np.random.default_rng(6).standard_normal((16, 12, 12)).astype(np.float32)
    exact = write_loud_pair(tmp_path)
    param = write_int8_pair(exact, [x], tmp_path, change=changed("it", key, index, factor))
    reasons = explain(engine.load(param).operator("it"), [x], run(exact, x).value("out0"))
    assert [reason.kind for reason in reasons[:1]] == [kind] * (kind is not None)
    if kind is not None:
        assert f"channel {index if key == 'bias' else 5}" in reasons[0].text


def test_an_activation_in_a_layer_beside_one_of_its_own(tmp_path):
    """Weights tell the layer's call; its result is that of the activation behind it.

    A gate that hardly depends on what it reads agrees with either.
    """
    rng = np.random.default_rng(6)
    weights = {
        "down": (rng.standard_normal((8, 16)) / 4).astype(np.float32),
        "up": (rng.standard_normal((16, 8)) / 8).astype(np.float32),
    }
    biases = {
        name: rng.standard_normal(len(w)).astype(np.float32) for name, w in weights.items()
    }
    lines = (
        "Input in0 0 1 in0", "Split two 1 2 in0 a b", "Pooling pool 1 1 b 1 0=1 4=1",
        "InnerProduct down 1 1 1 2 0=8 1=1 2=128 9=1",
        "InnerProduct up 1 1 2 3 0=16 1=1 2=128", "HardSigmoid gate 1 1 3 4 0=0.02 1=0.5",
        "BinaryOp scale 2 1 a 4 out0 0=2",
    )  # fmt: skip
    data = b"".join(tagged(w) + f32(biases[name]) for name, w in weights.items())
    exact = write_pair(tmp_path, lines, data, "float.ncnn")
    x = rng.uniform(0, 1, (16, 6, 6)).astype(np.float32)
    pooled = x.mean((1, 2))
    down = weights["down"] @ pooled + biases["down"]
    relu = np.maximum(down, 0)
    up = weights["up"] @ relu + biases["up"]
    gate = np.clip(0.02 * up + 0.5, 0, 1)
    values = {"pool": pooled, "down": down, "relu": relu, "up": up, "gate": gate}
    arrays = {"in": x[None]}
    arrays |= {k: v.reshape(1, -1, 1, 1).astype(np.float32) for k, v in values.items()}
    arrays["made"] = (x[None] * arrays["gate"]).astype(np.float32)
    calls = (
        ("mean", ("in",), "pool", {}),
        ("convolution", ("pool",), "down", {"weight": weights["down"], "bias": biases["down"]}),
        ("relu_", ("down",), "relu", {}),
        ("convolution", ("relu",), "up", {"weight": weights["up"], "bias": biases["up"]}),
        ("hardsigmoid", ("up",), "gate", {}),
        ("mul", ("in", "gate"), "made", {}),
    )
    param = write_int8_pair(exact, [x], tmp_path)
    found = compare_arrays(param, reference_of(arrays, calls), x)
    assert (found.verdict, found.origins) == ("same", ())
    matched = {row.operator.name: row.reference for row in found.rows}
    assert (matched["down"], matched["up"]) == ("relu", "up")


def test_results_in_int8_are_in_the_steps_of_the_layer_that_reads_them(tmp_path, image):
    """Copies too; what is not requantised has no steps, though an int8 layer reads it."""
    param = write_float_pair(tmp_path)
    plain = run(param, image)
    steps = {name: 127 / np.abs(plain.value(name)).max() for name in ("1", "3")}
    quantised = write_int8_pair(param, [image], tmp_path, requantised=("first", "mix"))
    found = find_requantised(engine.load(quantised))
    wanted = {"1": steps["1"], "3": steps["3"], "3a": steps["3"], "3b": steps["3"]}
    assert found == pytest.approx(wanted, rel=1e-5)
    assert not find_requantised(engine.load(param))
