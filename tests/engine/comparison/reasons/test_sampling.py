"""Alternatives of an operator before a large layer, of which a few channels are tried first."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from engine.comparison.reasons import Change, Tail, explain
from engine.comparison.reasons.case import Case

RNG = np.random.default_rng(5)
CHANNELS, SIDE = 64, 12  # 64 · 64 · 9 · 144 multiply-accumulates


@pytest.fixture
def network(make_pair):
    """A ReLU before a convolution that is large."""
    weight = RNG.standard_normal((CHANNELS, CHANNELS, 3, 3)).astype(np.float32)
    size = f"1,{CHANNELS},{SIDE},{SIDE}"
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0=({size})f32",
        f"F.relu act 1 1 0 1 $input=0 #0=({size})f32 #1=({size})f32",
        f"nn.Conv2d conv 1 1 1 2 bias=False dilation=(1,1) groups=1 in_channels={CHANNELS} "
        f"kernel_size=(3,3) out_channels={CHANNELS} padding=(1,1) padding_mode=zeros "
        f"stride=(1,1) @weight=({CHANNELS},{CHANNELS},3,3)f32 #1=({size})f32 #2=({size})f32",
        "pnnx.Output out 1 0 2",
        weights={"conv.weight": weight},
    )
    return engine.load(path)


def softsign(x):
    return x / (1 + np.abs(x))


@pytest.mark.parametrize("shown_as", [None, (CHANNELS * SIDE, SIDE)])
def test_a_function_before_a_large_layer_is_named(network, monkeypatch, shown_as):
    """The whole layer is computed for few of some forty functions, unless it is reshaped."""
    act, conv = network.operator("act"), network.operator("conv")
    tail = Tail([act.outputs[0]], [conv], conv.outputs[0], {}, shown_as)
    x = RNG.standard_normal((1, CHANNELS, SIDE, SIDE)).astype(np.float32)
    expected = tail(softsign(x))
    whole = []
    compute = Tail.__call__
    monkeypatch.setattr(
        Tail, "__call__", lambda self, value: whole.append(self) or compute(self, value)
    )
    first = explain(act, [x], expected, tail=tail)[0]
    assert first.kind == "activation_missing"
    assert "softsign" in first.text
    assert first.explains > 0.9999
    computed = sum(each is tail for each in whole)
    assert (computed < 20) is (shown_as is None)


# Large layers: as few elements as a small image has, but many multiplications.

OUTPUTS, INPUTS, PLACES = 64, 64, 7
ROWS, FEATURES = 40, 256


@pytest.fixture
def convolution(make_pair):
    """A function that makes a convolution of a small image with many channels."""

    def make(weight):
        inside, outside = (f"1,{n},{PLACES},{PLACES}" for n in (INPUTS, OUTPUTS))
        path = make_pair(
            f"pnnx.Input in 0 1 0 #0=({inside})f32",
            f"nn.Conv2d conv 1 1 0 1 bias=False dilation=(1,1) groups=1 in_channels={INPUTS} "
            f"kernel_size=(3,3) out_channels={OUTPUTS} padding=(1,1) padding_mode=zeros "
            f"stride=(1,1) @weight=({OUTPUTS},{INPUTS},3,3)f32 #0=({inside})f32 "
            f"#1=({outside})f32",
            "pnnx.Output out 1 0 1",
            weights={"conv.weight": weight},
        )
        return engine.load(path).operator("conv")

    return make


@pytest.fixture
def linear(make_pair):
    """A function that makes a linear layer of some rows."""

    def make(weight):
        size = f"{ROWS},{FEATURES}"
        path = make_pair(
            f"pnnx.Input in 0 1 0 #0=({size})f32",
            f"nn.Linear fc 1 1 0 1 bias=False in_features={FEATURES} out_features={FEATURES} "
            f"@weight=({FEATURES},{FEATURES})f32 #0=({size})f32 #1=({size})f32",
            "pnnx.Output out 1 0 1",
            weights={"fc.weight": weight},
        )
        return engine.load(path).operator("fc")

    return make


def convolved(x, weight):
    """Add up the products of each of the nine places of the kernel."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))).astype(np.float64)
    total = np.zeros((1, OUTPUTS, PLACES, PLACES))
    for row in range(3):
        for column in range(3):
            part = padded[:, :, row : row + PLACES, column : column + PLACES]
            total += np.einsum("oi,nihw->nohw", weight[:, :, row, column], part)
    return total.astype(np.float32)


STORED = {
    "OHWI": lambda w: w.transpose(0, 2, 3, 1).reshape(w.shape),
    "read as OHWI": lambda w: w.reshape(OUTPUTS, 3, 3, INPUTS).transpose(0, 3, 1, 2),
    "HWIO": lambda w: w.transpose(2, 3, 1, 0).reshape(w.shape),
    "turned": lambda w: np.rot90(w, 1, (2, 3)),
    "flipped": lambda w: w[:, :, :, ::-1],
    "inputs reversed": lambda w: w[:, ::-1],
    "outputs reversed": lambda w: w[::-1],
    "outputs interleaved": lambda w: (
        w.reshape(2, OUTPUTS // 2, INPUTS, 3, 3).swapaxes(0, 1).reshape(w.shape)
    ),
}


@pytest.mark.parametrize("stored", STORED)
def test_the_layout_of_a_large_convolution_is_found(convolution, stored):
    weight = RNG.standard_normal((OUTPUTS, INPUTS, 3, 3)).astype(np.float32)
    x = RNG.standard_normal((1, INPUTS, PLACES, PLACES)).astype(np.float32)
    operator = convolution(np.ascontiguousarray(STORED[stored](weight)))
    reasons = {each.kind: each for each in explain(operator, [x], convolved(x, weight))}
    reason = reasons["weight_layout"]
    assert reason.explains > 0.9999
    if reason.changes[0].name == "weight":  # else it is the order of the result's channels
        found = reason.changes[0].value
        assert isinstance(found, np.ndarray)
        np.testing.assert_array_equal(found, weight)


@pytest.mark.parametrize(
    "store",
    [
        lambda w: w.T,
        lambda w: w[:, ::-1],
        lambda w: w.reshape(FEATURES, 16, 16).swapaxes(1, 2).reshape(w.shape),
        lambda w: w.reshape(4, FEATURES // 4, FEATURES).swapaxes(0, 1).reshape(w.shape),
    ],
    ids=["transposed", "reversed", "image", "interleaved"],
)
def test_the_layout_of_a_large_linear_layer_is_found(linear, store):
    weight = RNG.standard_normal((FEATURES, FEATURES)).astype(np.float32)
    x = RNG.standard_normal((ROWS, FEATURES)).astype(np.float32)
    operator = linear(np.ascontiguousarray(store(weight)))
    expected = (x.astype(np.float64) @ weight.T).astype(np.float32)
    reasons = {each.kind: each for each in explain(operator, [x], expected)}
    assert reasons["weight_layout"].explains > 0.9999


def test_a_function_of_the_input_of_a_large_layer_is_found(linear):
    weight = RNG.standard_normal((FEATURES, FEATURES)).astype(np.float32)
    x = RNG.standard_normal((ROWS, FEATURES)).astype(np.float32)
    expected = (softsign(x.astype(np.float64)) @ weight.T).astype(np.float32)
    first = explain(linear(weight), [x], expected)[0]
    assert first.kind == "activation_missing"
    assert "softsign to the input" in first.text
    assert first.explains > 0.9999


def test_a_function_of_many_results_that_only_the_file_has_is_found(linear):
    weight = RNG.uniform(-0.01, 0.01, (FEATURES, FEATURES)).astype(np.float32)
    x = RNG.uniform(-1, 1, (ROWS, FEATURES)).astype(np.float32)
    ours = x.astype(np.float64) @ weight.T
    assert np.abs(ours).max() < 0.9
    first = explain(linear(weight), [x], np.arctanh(ours).astype(np.float32))[0]
    assert first.kind == "activation_extra"
    assert "applies tanh here" in first.text
    assert first.explains > 0.9999


def in_8_bits(array):
    step = np.abs(array).max() / 127
    return np.round(array / step) * step


@pytest.mark.parametrize("what", ["outputs", "outputs and weights", "weights", "ours"])
def test_8_bits_of_a_large_layer_are_found(linear, what):
    """The step depends on all elements, of which a part does not tell."""
    weight = RNG.standard_normal((FEATURES, FEATURES)).astype(np.float32)
    x = RNG.standard_normal((ROWS, FEATURES)).astype(np.float32)
    theirs = in_8_bits(weight) if "weights" in what else weight
    expected = x.astype(np.float64) @ theirs.T
    if "outputs" in what:
        expected = in_8_bits(expected)
    ours = in_8_bits(x @ weight.T).astype(np.float32) if what == "ours" else None
    first = explain(linear(weight), [x], expected.astype(np.float32), ours=ours)[0]
    assert first.kind == "precision"
    assert ("Our result" if what == "ours" else what) in first.text
    assert "int8" in first.text


@pytest.mark.parametrize("kind", ["convolution", "linear"])
def test_a_large_layer_is_seldom_computed_in_whole(request, monkeypatch, kind):
    """Nothing explains other numbers of the weight; that takes few of its channels to see."""
    shape, size = {
        "convolution": ((OUTPUTS, INPUTS, 3, 3), (1, INPUTS, PLACES, PLACES)),
        "linear": ((FEATURES, FEATURES), (ROWS, FEATURES)),
    }[kind]
    weight, other = (RNG.standard_normal(shape).astype(np.float32) for _ in range(2))
    x = RNG.standard_normal(size).astype(np.float32)
    expected = convolved(x, other) if kind == "convolution" else x @ other.T
    operator = request.getfixturevalue(kind)(weight)
    sizes, run = [], Case.run

    def count(case, alternative):
        sizes.append(case.weights["weight"].shape)
        return run(case, alternative)

    monkeypatch.setattr(Case, "run", count)
    assert explain(operator, [x], expected) == ()
    assert len(sizes) > 30
    assert sizes.count(shape) < len(sizes) / 5


WIDTH, SIZE = 16, 24  # of an image that is larger than the parts of it that are tried


@pytest.mark.parametrize("file_mode", ["zeros", "circular"])
def test_borders_that_go_on_at_the_other_side_are_seen_on_a_part(make_pair, file_mode):
    """The first windows reach to the end of the image, which the part lacks."""
    size = f"1,{WIDTH},{SIZE},{SIZE}"
    weight = RNG.standard_normal((WIDTH, WIDTH, 3, 3)).astype(np.float32)
    turned = np.ascontiguousarray(weight[:, :, ::-1])
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0=({size})f32",
        f"nn.Conv2d conv 1 1 0 1 bias=False dilation=(1,1) groups=1 in_channels={WIDTH} "
        f"kernel_size=(3,3) out_channels={WIDTH} padding=(1,1) padding_mode={file_mode} "
        f"stride=(1,1) @weight=({WIDTH},{WIDTH},3,3)f32 #0=({size})f32 #1=({size})f32",
        "pnnx.Output out 1 0 1",
        weights={"conv.weight": weight if file_mode == "zeros" else turned},
    )
    x = RNG.standard_normal((1, WIDTH, SIZE, SIZE)).astype(np.float32)
    around = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), "wrap").astype(np.float64)
    expected = np.zeros(x.shape)
    for row in range(3):
        for column in range(3):
            part = around[:, :, row : row + SIZE, column : column + SIZE]
            expected += np.einsum("oi,nihw->nohw", weight[:, :, row, column], part)
    first = explain(engine.load(path).operator("conv"), [x], expected.astype(np.float32))[0]
    assert first.explains > 0.9999
    if file_mode == "zeros":
        assert first.changes[0] == Change("padding_mode", "circular")
    else:
        assert first.kind == "weight_layout"
        assert "flipped along axis 2" in first.text
