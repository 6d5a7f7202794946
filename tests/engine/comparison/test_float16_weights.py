"""Float16 weights of one side against the weights before rounding of the other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from ncnn_files import F16, f32, stored_by_pnnx, tagged, write_pair

import engine
from array_reference import compare, reference_of
from comparison_network import make_weights, truth
from engine.comparison import Status, float16_weights
from engine.comparison.fingerprints import FingerprintIndex
from engine.comparison.matching import Matcher
from engine.comparison.reasons import explain
from engine.comparison.references import Reference, ReferenceOperator, ReferenceTensor
from engine.comparison.references.reference import hash_weight, is_same_weight

LINES = (
    "Input in0 0 1 in0 0=8 1=8 2=3",
    "Convolution conv 1 1 in0 1 0=4 1=3 4=1 5=1 6=108",
    "ReLU act 1 1 1 2",
    "Split twice 1 2 2 2a 2b",
    "Convolution mix 1 1 2a 3 0=4 1=1 5=1 6=16",
    "BinaryOp sum 2 1 3 2b 4 0=0",
    "ReLU last 1 1 4 5",
    "Flatten flat 1 1 5 6",
    "InnerProduct fc 1 1 6 7 0=5 1=1 2=1280",
)


def make_rounded_session(folder, image, weights):
    data = b"".join(
        tagged(weights[f"{name}.weight"].astype(np.float16), F16) + f32(weights[f"{name}.bias"])
        for name in ("conv", "mix", "fc")
    )
    session = engine.Session(engine.load(write_pair(folder, LINES, data)), backend="numpy")
    session.feed([image[0]])
    return session


def reference(arrays):
    tensors = [ReferenceTensor(f"x{k}", lambda array=a: array) for k, a in arrays.items()]
    return Reference("theirs", tensors, (), ("x0",), ("x7",))


def test_float16_weights_are_no_fault(tmp_path, image, tensors):
    session = make_rounded_session(tmp_path, image, make_weights())
    found = engine.compare(session, reference(tensors), 1e-5)
    assert (found.verdict, found.origins, found.unmatched.ours) == ("same", (), ())
    rounded = [row for row in found.rows if row.status is Status.FLOAT16_WEIGHTS]
    assert [row.operator.name for row in rounded] == ["conv", "mix", "fc"]
    assert {row.reason for row in rounded} == {"the model's weights are float16"}


def test_float16_weights_excuse_no_wrong_graph(tmp_path, image, tensors):
    """Layers without weights are not excused, whatever the others have."""
    lines = [line.replace("ReLU last 1 1 4 5", "Sigmoid last 1 1 4 5") for line in LINES]
    make_rounded_session(tmp_path, image, make_weights())
    path = tmp_path / "m.ncnn.param"
    path.write_text("\n".join(["7767517", f"{len(lines)} 99", *lines, ""]))
    session = engine.Session(engine.load(path), backend="numpy")
    session.feed([image[0]])
    found = engine.compare(session, reference(tensors), 1e-5)
    assert [origin.operator.name for origin in found.origins] == ["last"]


def changed(key, index, factor):
    """Change some numbers of a weight."""
    weights = make_weights()
    weights[key][index] *= factor
    return weights


FAULTS = [
    pytest.param("conv.weight", (1, 2, 0, 1), 1.1, id="element"),
    pytest.param("conv.weight", 3, 1.01, id="channel"),
    pytest.param("mix.bias", 2, 1.05, id="bias"),
    pytest.param("mix.weight", ..., 1.005, id="scale"),
    pytest.param("fc.weight", ..., -1, id="sign"),
    pytest.param("fc.bias", 4, 1.5, id="last bias"),
]


@pytest.mark.parametrize(("key", "index", "factor"), FAULTS)
def test_a_fault_beyond_rounding_is_named(tmp_path, image, tensors, key, index, factor):
    session = make_rounded_session(tmp_path, image, changed(key, index, factor))
    found = engine.compare(session, reference(tensors), 1e-5)
    assert found.verdict == "differs"
    assert [origin.operator.name for origin in found.origins] == [key.partition(".")[0]]


@pytest.mark.parametrize("seed", range(8))
def test_a_result_of_few_channels_is_excused(tmp_path, seed):
    """One output alone errs by more or less than the deviation of many."""
    rng = np.random.default_rng(seed)
    weight, x = (rng.standard_normal(s).astype(np.float32) for s in ((1, 64), (64,)))
    lines = ("Input in0 0 1 in0 0=64", "InnerProduct fc 1 1 in0 1 0=1 1=0 2=64")
    path = write_pair(tmp_path, lines, tagged(weight.astype(np.float16), F16))
    session = engine.Session(engine.load(path), backend="numpy")
    session.feed([x])
    exact = (weight.astype(np.float64) @ x).astype(np.float32)
    tensors = [ReferenceTensor("x", lambda: x), ReferenceTensor("y", lambda: exact)]
    found = engine.compare(session, Reference("theirs", tensors, (), ("x",), ("y",)), 1e-6)
    assert (found.verdict, found.origins) == ("same", ())


def make_small(tmp_path, zeros=0.0):
    """A linear layer of small weights as pnnx writes it, and its exact result."""
    rng = np.random.default_rng(4)
    weight = (rng.standard_normal((300, 200)) * 2e-3).astype(np.float32)
    x = rng.standard_normal(200).astype(np.float32)
    stored = weight.astype(np.float16)
    stored[np.abs(weight) < max(zeros, 2.0**-14)] = 0  # float16 below has fewer digits
    lines = ("Input in0 0 1 in0 0=200", "InnerProduct fc 1 1 in0 1 0=300 1=0 2=60000")
    exact = (weight.astype(np.float64) @ x).astype(np.float32)
    return write_pair(tmp_path, lines, tagged(stored, F16)), x, weight, exact


@pytest.mark.parametrize(("zeros", "verdict"), [(0.0, "same"), (2e-4, "differs")])
def test_numbers_that_float16_cannot_hold_are_zeros(tmp_path, zeros, verdict):
    path, x, _, exact = make_small(tmp_path, zeros)
    session = engine.Session(engine.load(path), backend="numpy")
    session.feed([x])
    tensors = [ReferenceTensor("x", lambda: x), ReferenceTensor("y", lambda: exact)]
    found = engine.compare(session, Reference("theirs", tensors, (), ("x",), ("y",)), 1e-5)
    assert found.verdict == verdict


def test_the_reference_has_zeros_for_them(tmp_path):
    path, x, weight, _ = make_small(tmp_path)
    theirs = engine.Session(engine.load(path), backend="numpy")
    theirs.feed([x])
    lines = path.read_text().splitlines()[2:]
    exact = write_pair(tmp_path, lines, tagged(weight), "exact.ncnn")
    session = engine.Session(engine.load(exact), backend="numpy")
    session.feed([x])
    found = engine.compare(session, engine.open_reference(theirs), 1e-5)
    assert (found.verdict, found.origins) == ("same", ())
    assert found.rows[-1].reason == "the reference's weights are float16"


# References that fuse operators, as ncnn does: they show few results.


@pytest.mark.parametrize("factor", [1.0, 1.01])
def test_the_weights_of_a_model_say_how_they_were_rounded(
    tmp_path, make_session, image, factor
):
    """All rounded in one direction, they err by more than random rounding does."""
    weights = make_weights()
    halves = np.abs(weights["conv.weight"]).astype(np.float16)
    exact = halves.astype(np.float32) + np.float32(0.45) * np.spacing(halves).astype(np.float32)
    weights["conv.weight"] = exact
    reference = make_session(weights=weights)
    weights["conv.weight"] = exact * np.float32(factor)
    ours = make_rounded_session(tmp_path, np.abs(image), weights)
    reference.feed([np.abs(image)])
    found = engine.compare(ours, reference, 1e-5)
    assert [origin.operator.name for origin in found.origins] == ["conv"] * (factor != 1)


FUSED = {
    "activation": ("0", "2", "3", "4", "5", "6", "7"),
    "input": ("2", "3", "4", "5", "6", "7"),
    "sum": ("0", "1", "2", "5", "6", "7"),
    "all": ("0", "7"),
}


def round_by_definition(weights):
    """As pnnx does: biases in float32; halves away from 0, and 0 below 2**-14."""
    found = {}
    for key, weight in weights.items():
        exact = weight.astype(np.float64)
        steps = 2.0 ** (np.floor(np.log2(np.abs(exact))) - 10)
        rounded = np.sign(exact) * np.floor(np.abs(exact) / steps + 0.5) * steps
        rounded[np.abs(exact) < 2.0**-14] = 0
        found[key] = weight if key.endswith("bias") else rounded.astype(np.float32)
    return found


def cut_by_definition(weights):
    """As ncnn does in a linear layer when it loads it: towards 0, subnormal ones as well."""
    found = {}
    for key, weight in weights.items():
        exact = weight.astype(np.float64)
        steps = 2.0 ** (np.maximum(np.floor(np.log2(np.abs(exact))), -14) - 10)
        cut = np.trunc(exact / steps) * steps
        found[key] = weight if key.endswith("bias") else cut.astype(np.float32)
    return found


@pytest.fixture
def fused(image):
    """A function that makes a reference that shows some results of weights."""

    def make(weights, shown):
        arrays = truth(image, weights)
        return reference({key: arrays[key].astype(np.float32) for key in shown})

    return make


def find_origins(session, expected):
    """The operators that differ, where the matches are given."""
    names = [o.name for op in session.graph.operators for o in op.outputs]
    keys = {name: f"x{'0' if name == 'in0' else name}" for name in names}
    known = {tensor.key for tensor in expected.tensors}
    matches = {name: key if key in known else None for name, key in keys.items()}
    found = engine.compare(session, expected, 1e-5, corrections=matches)
    assert found.verdict == "differs"
    return [row.operator.name for row in found.rows if row.status is Status.ORIGIN]


@pytest.mark.parametrize("rounded", [round_by_definition, cut_by_definition])
@pytest.mark.parametrize("shown", FUSED.values(), ids=FUSED)
def test_float16_weights_of_a_fusing_reference_are_no_fault(
    make_session, fused, shown, rounded
):
    weights = make_weights()
    weights["mix.weight"][1, 2] = 1 + 2.0**-11  # to even is 1, away from 0 is 1 + 2**-10
    weights["mix.weight"][0, 3] = 5e-5
    expected = fused(rounded(weights), shown)
    found = engine.compare(make_session(weights=weights), expected, 1e-5)
    assert (found.verdict, found.origins) == ("same", ())
    reasons = [row.reason for row in found.rows if row.status is Status.FLOAT16_WEIGHTS]
    assert set(reasons) == {"the reference's weights are float16"}


@pytest.mark.parametrize("shown", FUSED.values(), ids=FUSED)
def test_float16_weights_are_no_fault_beside_a_fusing_reference(tmp_path, image, fused, shown):
    session = make_rounded_session(tmp_path, image, make_weights())
    found = engine.compare(session, fused(make_weights(), shown), 1e-5)
    assert (found.verdict, found.origins) == ("same", ())


FAULTS_OF_FUSED = [
    pytest.param("conv.weight", (1, 2, 0, 1), 1.1, "activation", "act", id="element"),
    pytest.param("conv.bias", 3, 1.05, "activation", "act", id="bias"),
    pytest.param("conv.weight", 2, 1.01, "input", "act", id="channel"),
    pytest.param("mix.weight", ..., 1.005, "sum", "last", id="scale"),
    pytest.param("conv.weight", ..., 1.02, "all", "fc", id="among all"),
]


@pytest.mark.parametrize(("key", "index", "factor", "shown", "seen"), FAULTS_OF_FUSED)
def test_a_fault_beside_a_fusing_reference_of_rounded_weights_is_named(
    make_session, fused, key, index, factor, shown, seen
):
    session = make_session(weights=changed(key, index, factor))
    expected = fused(round_by_definition(make_weights()), FUSED[shown])
    assert find_origins(session, expected) == [seen]


@pytest.mark.parametrize(("key", "index", "factor", "shown", "seen"), FAULTS_OF_FUSED)
def test_a_fault_of_rounded_weights_beside_a_fusing_reference_is_named(
    tmp_path, image, fused, key, index, factor, shown, seen
):
    session = make_rounded_session(tmp_path, image, changed(key, index, factor))
    assert find_origins(session, fused(make_weights(), FUSED[shown])) == [seen]


@pytest.mark.parametrize(("wrong", "verdict"), [(0.0, "same"), (0.05, "differs")])
def test_numbers_that_ncnn_stores_in_16_bits_are_no_fault(tmp_path, wrong, verdict):
    """The file is exact; the options that people deploy with are not."""
    rng = np.random.default_rng(5)
    weight, x = (rng.standard_normal(s).astype(np.float32) for s in ((300, 200), (200,)))
    lines = ("Input in0 0 1 in0 0=200", "InnerProduct fc 1 1 in0 1 0=300 1=0 2=60000")
    stored = weight.copy()
    stored[7, 3] += wrong
    graph = engine.load(write_pair(tmp_path, lines, tagged(stored)))
    session = engine.Session(graph, ncnn_options="deployed")
    session.feed([x])
    exact = (weight.astype(np.float64) @ x).astype(np.float32)
    tensors = [ReferenceTensor("x", lambda: x), ReferenceTensor("y", lambda: exact)]
    found = engine.compare(session, Reference("theirs", tensors, (), ("x",), ("y",)))
    assert (found.verdict, len(found.origins)) == (verdict, int(verdict == "differs"))
    if verdict == "same":
        assert found.rows[-1].status is Status.FLOAT16_WEIGHTS
        assert "in 16 bits" in found.rows[-1].reason


@pytest.mark.parametrize("changed_row", [None, 117])
def test_float16_weights_of_a_large_linear_layer(make_pair, monkeypatch, changed_row):
    """Roundings that do not agree on some rows and features are not tried on the whole."""
    rng = np.random.default_rng(2)
    weight = rng.standard_normal((256, 320)).astype(np.float32)
    x = rng.standard_normal((32, 320)).astype(np.float32)
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(32,320)f32",
        "nn.Linear fc 1 1 0 1 bias=False in_features=320 out_features=256 "
        "@weight=(256,320)f32 #0=(32,320)f32 #1=(32,256)f32",
        "pnnx.Output out 1 0 1 #1=(32,256)f32",
        weights={"fc.weight": weight},
    )
    theirs = weight.astype(np.float16).astype(np.float64)
    theirs[np.abs(weight) < 2.0**-14] = 0  # as pnnx stores them
    if changed_row is not None:
        theirs[changed_row] *= 1.5
    result = (x @ theirs.T).astype(np.float32)
    whole = []
    copy = float16_weights.with_weights
    monkeypatch.setattr(
        float16_weights, "with_weights", lambda *args: whole.append(args) or copy(*args)
    )
    session = engine.Session(engine.load(path), backend="numpy")
    session.feed([x])
    tensors = [ReferenceTensor("x", lambda: x), ReferenceTensor("y", lambda: result)]
    found = engine.compare(session, Reference("theirs", tensors, (), ("x",), ("y",)), 1e-5)
    if changed_row is None:
        assert found.verdict == "same"
        assert len(whole) <= 2  # both ways to the nearest, which differ in halves
        assert found.rows[-1].reason == "the reference's weights are float16"
    else:
        assert [origin.operator.name for origin in found.origins] == ["fc"]
        assert not whole


def stored_as_halves(weight):
    """As pnnx does, which writes 0 for what float16 holds with fewer digits."""
    stored = weight.astype(np.float16)
    stored[np.abs(weight) < 2.0**-14] = 0
    return tagged(stored, F16)


LINEAR_FAULTS = [
    pytest.param(10, "weight", (7, 3), "weight_values", "weight[7, 3] is", id="element"),
    pytest.param(10, "weight", 7, "weight_values", "The weight of channel 7", id="channel"),
    pytest.param(10, "bias", 5, "bias", "The bias of channel 5 is", id="bias"),
    pytest.param(1, "bias", 5, "weight_values", "Only output channel 5 of 40", id="one row"),
]


@pytest.mark.parametrize(("rows", "key", "index", "kind", "text"), LINEAR_FAULTS)
def test_a_fault_on_top_of_float16_has_its_reason(tmp_path, rows, key, index, kind, text):
    """Fewer rows than features: some change of all weights would explain what differs."""
    rng = np.random.default_rng(3)
    right = {
        name: rng.standard_normal(shape).astype(np.float32)
        for name, shape in (("weight", (40, 64)), ("bias", (40,)))
    }
    x = rng.standard_normal((rows, 64)).astype(np.float32)
    wrong = {name: array.copy() for name, array in right.items()}
    wrong[key][index] = wrong[key][index] * 3 + (1 if key == "bias" else 0)
    data = stored_as_halves(wrong["weight"]) + f32(wrong["bias"])
    lines = ("Input in0 0 1 in0", "InnerProduct it 1 1 in0 out0 0=40 1=1 2=2560")
    operator = engine.load(write_pair(tmp_path, lines, data)).operator("it")
    exact = (x.astype(np.float64) @ right["weight"].T + right["bias"]).astype(np.float32)
    (reason, *_) = explain(operator, [x], exact)
    assert (reason.kind, reason.text[: len(text)]) == (kind, text)


@pytest.mark.parametrize(
    ("key", "index", "kind"),
    [("bias", 3, "bias"), ("weight", (5, 2), "weight_values")],
    ids=["bias", "weight"],
)
def test_inputs_that_hardly_vary(tmp_path, key, index, kind):
    """All weights err, which is almost an offset of each channel, but only one is wrong."""
    rng = np.random.default_rng(7)
    x = rng.uniform(1, 2, (16, 1, 1)) + 0.03 * rng.standard_normal((16, 12, 12))
    x = x.astype(np.float32)
    right = {"weight": rng.standard_normal((8, 16)) / 4, "bias": rng.uniform(1, 2, 8)}
    wrong = {name: array.copy() for name, array in right.items()}
    wrong[key][index] += 0.5
    lines = ("Input in0 0 1 in0", "Convolution it 1 1 in0 out0 0=8 1=1 5=1 6=128")
    data = stored_as_halves(wrong["weight"]) + f32(wrong["bias"])
    operator = engine.load(write_pair(tmp_path, lines, data)).operator("it")
    exact = np.einsum("oc,chw->ohw", right["weight"], x) + right["bias"][:, None, None]
    (reason, *_) = explain(operator, [x], exact.astype(np.float32))
    assert reason.kind == kind
    (change,) = reason.changes
    apart = np.abs(change.value.reshape(wrong[key].shape) - wrong[key]) > 1e-2
    assert np.argwhere(apart).tolist() == [list(np.atleast_1d(index))]


def test_the_hash_of_a_rounded_weight_tells_no_fault(tmp_path):
    """It differs in any case, so what explains the result by other weights is no better."""
    rng = np.random.default_rng(9)
    weight, bias = (rng.standard_normal(s).astype(np.float32) for s in ((40, 64), (40,)))
    x = rng.standard_normal((10, 64)).astype(np.float32)
    rounded = cut_by_definition({"weight": weight})["weight"]  # errs by up to a whole step
    lines = (
        "Input in0 0 1 in0", "InnerProduct it 1 1 in0 1 0=40 1=1 2=2560",
        "TanH end 1 1 1 out0",
    )  # fmt: skip
    data = stored_as_halves(np.roll(rounded, 1, 0)) + f32(np.roll(bias, 1))
    made = (x.astype(np.float64) @ weight.T + bias).astype(np.float32)
    arrays = {"x": x, "made": made, "tanh": np.tanh(made)}
    calls = (
        ("linear", ("x",), "made", {"weight": weight, "bias": bias}),
        ("tanh", ("made",), "tanh", {}),
    )
    (origin,) = compare(
        write_pair(tmp_path, lines, data), reference_of(arrays, calls), x
    ).origins
    assert (origin.operator.name, origin.reasons[0].kind) == ("it", "weight_layout")


@dataclass(frozen=True)
class Recorded:
    """The hashes of an older recording."""

    float32: str
    float16: str
    size: int = 128
    pnnx: str = ""
    is_half: bool = False


def test_a_rounded_weight_is_known_by_its_hash(tmp_path):
    """Usual rounding takes the nearest even number for one that lies between two."""
    rng = np.random.default_rng(12)
    weight = rng.standard_normal((16, 8)).astype(np.float32)
    weight[0] = 1 + 2.0**-11 * np.arange(1, 16, 2)  # between two of float16
    weight[1] = np.float32([1e-5, -1e-5, 3e-5, -6e-5, 2.0**-14, 0, 65504, -0.1])
    calls = [
        ReferenceOperator(name, "linear", (), ("y",), partial(dict, weight=hash_weight(array)))
        for name, array in (("right", weight), ("other", weight + 0.5))
    ]
    reference = Reference("theirs", [ReferenceTensor("y", lambda: weight)], calls)
    lines = ("Input in0 0 1 in0", "InnerProduct it 1 1 in0 out0 0=16 1=0 2=128")
    found = {}
    for name, stored in (("pnnx", stored_by_pnnx(weight)), ("even", weight.astype(np.float16))):
        (tmp_path / name).mkdir()
        graph = engine.load(write_pair(tmp_path / name, lines, tagged(stored, F16)))
        matcher = Matcher(graph, reference, FingerprintIndex(reference), {})
        found[name] = [each.name for each in matcher.anchors(graph.operator("it"))]
    assert found == {"pnnx": ["right"], "even": ["right"]}
    # What is not rounded is no float16 of anything.
    exact, other = hash_weight(weight), hash_weight(weight * np.float32(1 + 2.0**-20))
    assert not is_same_weight(other, exact)
    # Older recordings have no hash of what pnnx writes.
    older = Recorded(exact.float32, exact.float16)
    assert is_same_weight(hash_weight(stored_by_pnnx(weight)), older)
    assert not is_same_weight(other, older)
