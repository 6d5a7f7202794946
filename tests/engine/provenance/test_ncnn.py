"""Layers of ncnn's own format: terms and regions against ncnn's numbers and by perturbation."""

from __future__ import annotations

import numpy as np
import pytest
from ncnn_files import f32, tagged, write_pair

import engine
from engine.provenance.gradients import effective_weight
from engine.provenance.records import Kind

SUM, ACTIVATED, MOVE, FUNCTION = Kind.SUM, Kind.ACTIVATED, Kind.MOVE, Kind.FUNCTION
NORMALISED, CHOICE, SHARE = Kind.NORMALISED, Kind.CHOICE, Kind.SHARE

# Line of the layer behind its name, shapes of its inputs, counts of its weights (negative
# without a tag), kind, and whether its effective weight is known.
CASES = {
    "conv": ("Convolution 0=2 1=3 4=1 5=1 6=54", [(3, 5, 6)], [54, -2], SUM, True),
    "conv-relu": (
        "Convolution 0=2 1=3 4=1 5=1 6=54 9=1", [(3, 5, 6)], [54, -2], ACTIVATED, True,
    ),
    "conv-leaky": (
        "Convolution 0=2 1=3 11=2 3=2 5=0 6=36 9=2 -23310=1,0.1", [(3, 6, 7)], [36],
        ACTIVATED, True,
    ),
    "conv-same": (
        "Convolution 0=2 1=4 3=2 4=-233 6=96 9=4", [(3, 7, 6)], [96], ACTIVATED, True,
    ),
    "conv-of-a-vector": ("Convolution 0=4 1=1 5=1 6=12 9=6 -23310=2,0.2,0.5", [(3,)],
                         [12, -4], ACTIVATED, True),
    "depthwise": (
        "ConvolutionDepthWise 0=4 1=3 2=2 4=2 5=1 6=36 7=4 9=5", [(4, 6, 6)], [36, -4],
        ACTIVATED, True,
    ),
    "groups": ("ConvolutionDepthWise 0=4 1=3 5=0 6=72 7=2", [(4, 5, 5)], [72], SUM, True),
    "conv1d": ("Convolution1D 0=2 1=3 4=1 5=1 6=18", [(3, 7)], [18, -2], SUM, True),
    "deconv": ("Deconvolution 0=2 1=3 3=2 4=1 5=1 6=54", [(3, 4, 5)], [54, -2], SUM, True),
    "deconv-grouped": (
        "DeconvolutionDepthWise 0=4 1=3 3=2 18=1 19=1 5=0 6=72 7=2 9=3 -23310=2,-1.0,1.0",
        [(4, 3, 4)], [72], ACTIVATED, True,
    ),
    "deconv-same": ("Deconvolution 0=2 1=4 3=2 4=-233 20=6 21=8 6=96", [(3, 4, 3)], [96], SUM,
                    True),
    "inner-of-an-image": ("InnerProduct 0=4 1=1 2=240 9=1", [(3, 4, 5)], [240, -4], ACTIVATED,
                          True),
    "inner-of-rows": ("InnerProduct 0=4 1=1 2=20", [(3, 5)], [20, -4], SUM, True),
    "gemm": ("Gemm 0=0.5 1=2.0 2=0 3=1 5=1 6=1 8=4 9=5 10=4", [(3, 5)], [20, 4], SUM, True),
    "gemm-transposed": ("Gemm 2=1 3=0 14=1 10=-1", [(5, 3), (5, 4)], [], SUM, True),
    "gemm-column": ("Gemm 3=1 5=1 6=1 7=3 8=4 9=5 10=1", [(3, 5)], [20, 3], SUM, True),
    "matmul": ("MatMul 0=1", [(2, 3, 5), (2, 4, 5)], [], SUM, True),
    "sdpa": ("SDPA 5=1", [(2, 3, 4), (2, 5, 4), (2, 5, 4), (3, 5)], [], SUM, False),
    "sdpa-shared-heads": ("SDPA 6=0.3", [(4, 3, 4), (2, 5, 4), (2, 5, 4)], [], SUM, False),
    "multihead": ("MultiHeadAttention 0=4 1=2 2=16", [(5, 4)], [16, -4] * 4, SUM, True),
    "multihead-mask": ("MultiHeadAttention 0=4 1=2 2=16 5=1", [(3, 4), (5, 4), (5, 4), (3, 5)],
                       [16, -4] * 4, SUM, False),
    "multihead-own-mask": ("MultiHeadAttention 0=4 1=2 2=16 5=1", [(5, 4), (5, 5)],
                           [16, -4] * 4, SUM, False),
    "pool": ("Pooling 0=0 1=3 2=2 3=1", [(2, 6, 7)], [], CHOICE, True),
    "pool-mean": ("Pooling 0=1 1=3 2=2 3=1 5=0", [(2, 6, 7)], [], SUM, True),
    "pool-mean-padding": ("Pooling 0=1 1=3 2=2 3=1 5=1 6=1", [(2, 7, 7)], [], SUM, True),
    "pool-global": ("Pooling 0=1 4=1", [(3, 4, 5)], [], SUM, True),
    "pool-global-max": ("Pooling 0=0 4=1", [(3, 4, 5)], [], CHOICE, False),
    "pool-adaptive": ("Pooling 0=1 7=1 8=2 18=3", [(2, 7, 5)], [], SUM, True),
    "batchnorm": ("BatchNorm 0=3 1=1e-5", [(3, 4, 4)], [-3] * 4, NORMALISED, True),
    "layernorm": ("LayerNorm 0=6 1=1e-5", [(3, 4, 6)], [-6, -6], NORMALISED, True),
    "layernorm-vector": ("LayerNorm 0=6 1=1e-5", [(6,)], [-6, -6], NORMALISED, True),
    "layernorm-plane": ("LayerNorm 0=24 2=0", [(3, 4, 6)], [], NORMALISED, True),
    "groupnorm": ("GroupNorm 0=2 1=4", [(4, 3, 3)], [-4, -4], NORMALISED, True),
    "instancenorm": ("InstanceNorm 0=3", [(3, 4, 4)], [-3, -3], NORMALISED, True),
    "rmsnorm": ("RMSNorm 0=6", [(3, 6)], [-6], NORMALISED, True),
    "scale": ("Scale 0=3 1=1", [(3, 4, 4)], [-3, -3], SUM, True),
    "bias": ("Bias 0=3", [(3, 4, 4)], [-3], SUM, True),
    "prelu": ("PReLU 0=3", [(3, 4, 4)], [-3], FUNCTION, True),
    "softmax": ("Softmax 0=1 1=1", [(3, 5, 4)], [], SHARE, True),
    "add": ("BinaryOp 0=0", [(3, 4, 5), (3, 4, 5)], [], FUNCTION, True),
    "multiply-channels": ("BinaryOp 0=2", [(3, 4, 5), (3,)], [], FUNCTION, True),
    "multiply-rows": ("BinaryOp 0=2", [(5,), (3, 4, 5)], [], FUNCTION, True),
    "multiply-planes": ("BinaryOp 0=7", [(3, 4, 5), (3, 4)], [], FUNCTION, True),
    "multiply-number": ("BinaryOp 0=2 1=1 2=1.5", [(3, 4)], [], FUNCTION, True),
    "eltwise": ("Eltwise 0=1 -23301=2,0.5,2.0", [(3, 4), (3, 4)], [], FUNCTION, True),
    "exp": ("UnaryOp 0=7", [(3, 4)], [], FUNCTION, True),
    "swish": ("Swish", [(3, 4)], [], FUNCTION, True),
    "hardswish": ("HardSwish 0=0.1666667 1=0.5", [(3, 4)], [], FUNCTION, True),
    "clip": ("Clip 0=-0.5 1=0.5", [(3, 4)], [], FUNCTION, True),
    "glu": ("GLU 0=0", [(4, 3)], [], FUNCTION, False),
    "mean": ("Reduction 0=3 1=0 -23303=2,1,2 4=1 5=1", [(3, 4, 5)], [], SUM, True),
    "sum-of-all": ("Reduction 0=0 2=0.5", [(3, 4, 5)], [], SUM, True),
    "largest": ("Reduction 0=4 1=0 -23303=1,0 4=0 5=1", [(3, 4, 5)], [], CHOICE, False),
    "cumsum": ("CumulativeSum 0=1", [(3, 4)], [], SUM, False),
    "bilinear": ("Interp 0=2 3=7 4=9", [(2, 4, 5)], [], SUM, True),
    "bilinear-corners": ("Interp 0=2 1=2 2=2 6=1", [(2, 4, 5)], [], SUM, True),
    "bilinear-rows": ("Interp 0=2 2=1.8 4=9", [(4, 5)], [], SUM, True),
    "bicubic": ("Interp 0=3 3=7 4=9", [(2, 5, 5)], [], SUM, True),
    "nearest": ("Interp 0=1 1=2 2=2", [(2, 4, 5)], [], SUM, True),
    "reshape": ("Reshape 0=20 1=3", [(3, 4, 5)], [], MOVE, True),
    "flatten": ("Flatten", [(3, 4, 5)], [], MOVE, True),
    "permute": ("Permute 0=3", [(3, 4, 5)], [], MOVE, True),
    "concat": ("Concat 0=0", [(3, 4), (2, 4)], [], MOVE, True),
    "crop": ("Crop -23309=1,1 -23310=1,3 -23311=1,1", [(3, 4, 5)], [], MOVE, True),
    "squeeze": ("Squeeze -23303=1,0", [(1, 4, 5)], [], MOVE, True),
    "expand": ("ExpandDims -23303=1,0", [(4, 5)], [], MOVE, True),
    "flip": ("Flip -23300=1,1", [(3, 4)], [], MOVE, True),
    "tile": ("Tile 0=0 1=2", [(3, 4)], [], MOVE, True),
    "shuffle": ("ShuffleChannel 0=2", [(4, 2, 2)], [], MOVE, True),
    "pixelshuffle": ("PixelShuffle 0=2", [(4, 2, 3)], [], MOVE, True),
    "reorg": ("Reorg 0=2", [(2, 4, 4)], [], MOVE, True),
    "unit-positions": ("Normalize 0=0 1=0 2=1e-4 3=3 4=1 9=0", [(3, 4, 5)], [-3], NORMALISED,
                       True),
    "unit-channels": ("Normalize 0=1 1=1 2=1e-3 3=1 4=0 9=1", [(3, 4, 5)], [-1], NORMALISED,
                      True),
    "unit-all": ("Normalize 0=1 1=0 2=0.5 3=3 4=1 9=2", [(3, 4, 5)], [-3], NORMALISED, True),
    "unit-row": ("Normalize 0=1 1=1 2=1e-4 3=1 4=1 9=0", [(3, 4)], [-1], NORMALISED, True),
    "copy-to": ("CopyTo 0=1 1=1 2=1", [(3, 4, 5), (1, 2, 3)], [], MOVE, True),
    # ijm,kjm->ijk: of a product of two matrices ncnn 1.0.20260526 gives another shape.
    "einsum": ("Einsum -23300=12,105,106,109,44,107,106,109,45,62,105,106,107",
               [(2, 3, 4), (5, 3, 4)], [], SUM, True),
    "padding": ("Padding 0=1 1=0 2=2 3=1 4=0 5=0.5", [(2, 3, 4)], [], MOVE, True),
    "padding-reflect": ("Padding 0=1 1=1 2=1 3=1 4=2", [(2, 3, 4)], [], MOVE, True),
}  # fmt: skip


def make(folder, name, backend="numpy"):
    line, shapes, counts, *_ = CASES[name]
    rng = np.random.default_rng(sum(map(ord, name)))
    kind, _, arguments = line.partition(" ")
    blobs = " ".join(f"in{place}" for place in range(len(shapes)))
    lines = [
        f"Input in{place} 0 1 in{place}" + (f" 0={shape[0]}" if len(shape) == 1 else "")
        for place, shape in enumerate(shapes)
    ]
    lines.append(f"{kind} op {len(shapes)} 1 {blobs} y {arguments}")
    weights = b""
    for count in counts:
        array = rng.normal(size=abs(count)).astype(np.float32)
        if kind == "BatchNorm":
            array = np.abs(array) + 0.5  # one of them is the variance
        weights += tagged(array) if count > 0 else f32(array)
    session = engine.Session(engine.load(write_pair(folder, lines, weights)), backend)
    session.feed([rng.normal(size=shape).astype(np.float32) for shape in shapes])
    session.run()
    return session, rng


def draw_index(rng, shape):
    return tuple(int(rng.integers(size)) for size in shape)


@pytest.mark.parametrize("name", CASES)
def test_an_element_is_what_its_terms_say(tmp_path, name):
    pytest.importorskip("ncnn")
    session, rng = make(tmp_path, name, "ncnn")
    kind = CASES[name][3]
    shape = session.value("y").shape
    for _ in range(6):
        index = draw_index(rng, shape)
        found = engine.explain_element(session, "y", index)
        assert found.reason == ""
        assert found.kind is kind
        assert found.agrees, (index, found.value, found.breakdown)
        assert found.breakdown.error <= 3e-3 * (1 + abs(found.value))
        for factor in found.breakdown.terms.factors:
            if not factor.is_operand:
                continue
            array = session.value(factor.name)
            for at, value in zip(factor.indices.tolist(), factor.values.tolist(), strict=True):
                assert value == (0.0 if -1 in at else float(array[tuple(at)]))


@pytest.mark.parametrize("name", CASES)
def test_what_lies_outside_has_no_influence(tmp_path, name):
    session, rng = make(tmp_path, name)
    index = draw_index(rng, session.value("y").shape)
    assert engine.receptive_field(session, "y", index).guessed == ()
    assert engine.check_field(session, "y", index).is_same


@pytest.mark.parametrize("name", ["pool-global", "pool-global-max"])
def test_a_global_pooling_reads_its_whole_channel(tmp_path, name):
    session, _ = make(tmp_path, name)
    field = engine.receptive_field(session, "y", (2,))
    assert field.inputs[0].slices == (slice(2, 3), slice(0, 4), slice(0, 5))


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name][4]])
def test_effective_weights_are_difference_quotients(tmp_path, name):
    session, rng = make(tmp_path, name)
    fed = [session.value(f"in{place}").copy() for place in range(len(CASES[name][1]))]
    index = draw_index(rng, session.value("y").shape)
    for place, value in enumerate(fed):
        found = engine.effective_weight(session, "y", index, f"in{place}").gradient
        assert found.shape == value.shape
        for at in rng.permutation(list(np.ndindex(value.shape)))[:12]:
            ends = []
            for sign in (1, -1):
                moved = [each.copy() for each in fed]
                moved[place][tuple(at)] += sign * 2.0**-9
                other = session.fork("numpy")
                other.feed(moved)
                other.run()
                ends.append(float(other.value("y")[index]))
            quotient = (ends[0] - ends[1]) * 2.0**8
            assert found[tuple(at)] == pytest.approx(quotient, abs=3e-3 + 0.01 * abs(quotient))


def test_the_formula_of_an_activated_sum(tmp_path):
    session, _ = make(tmp_path, "conv-relu")
    found = engine.explain_element(session, "y", (1, 0, 2)).breakdown
    assert found.formula == (
        "y[1, 0, 2] = relu(bias[1] + Σ weight[1, c, i, j] · in0[c, −1 + i, 1 + j])"
    )
    assert found.total == max(0.0, found.terms.products.sum() + found.offset)
    assert found.steps[-1].name == "sum before relu"
    assert found.steps[-1].value == found.terms.products.sum() + found.offset


def test_what_is_rounded_has_a_region_only(tmp_path):
    lines = ["Input in0 0 1 in0", "Convolution c 1 1 in0 y 0=2 1=3 4=1 5=1 6=54 8=2"]
    weights = tagged(np.ones(54, np.float32)) + f32([0, 0, 20, 30, 40])  # bias, scales
    session = engine.Session(engine.load(write_pair(tmp_path, lines, weights)), "numpy")
    session.feed([np.ones((3, 6, 6), np.float32)])
    session.run()
    found = engine.explain_element(session, "y", (0, 2, 0))
    assert found.kind is Kind.UNKNOWN
    assert found.reason == "Sums of rounded numbers have no breakdown."
    field = engine.receptive_field(session, "y", (0, 2, 0))
    assert field.guessed == ()
    assert field.inputs[0].slices == (slice(0, 3), slice(1, 4), slice(0, 2))


def test_names_of_functions(tmp_path):
    session, _ = make(tmp_path, "multiply-channels")
    found = engine.explain_element(session, "y", (2, 1, 3)).breakdown
    assert found.formula == "y[2, 1, 3] = mul(in0[2, 1, 3], in1[2])"
    session, _ = make(tmp_path, "exp")
    assert "exp(in0[0, 1])" in engine.explain_element(session, "y", (0, 1)).breakdown.formula


def test_rows_of_a_table(tmp_path):
    table = np.arange(12, dtype=np.float32).reshape(4, 3)
    lines = ["Input in0 0 1 in0", "Embed e 1 1 in0 y 0=3 1=4 2=1 3=12"]
    path = write_pair(tmp_path, lines, tagged(table) + f32([0.5, 0.25, 0]))
    session = engine.Session(engine.load(path), "numpy")
    session.feed([np.array([2, 1], np.int32)])
    session.run()
    found = engine.explain_element(session, "y", (0, 1))
    assert found.value == found.breakdown.total == 7.25
    assert found.breakdown.formula == "y[0, 1] = bias[1] + weight[2, 1]"
    field = engine.receptive_field(session, "y", (0, 1))
    assert field.inputs[0].slices == (slice(0, 1),)


def test_stored_arrays_are_the_end(tmp_path):
    lines = ["MemoryData m 0 1 y 0=3"]
    session = engine.Session(engine.load(write_pair(tmp_path, lines, f32([1, 2, 3]))), "numpy")
    session.run()
    found = engine.explain_element(session, "y", (1,))
    assert (found.kind, found.value) == (Kind.WEIGHT, 2.0)


@pytest.mark.parametrize(
    ("kind", "count"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)], ids=["lstm", "gru", "rnn"]
)
@pytest.mark.parametrize(
    ("direction", "rows"), [(0, slice(0, 3)), (1, slice(2, 5)), (2, slice(0, 5))]
)
def test_rows_that_a_recurrent_layer_has_read(tmp_path, kind, count, direction, rows):
    rng = np.random.default_rng(direction)
    sides = 2 if direction == 2 else 1
    sizes = [sides * count * 2 * 3, sides * (4 if kind == "GRU" else count) * 2,
             sides * count * 2 * 2]  # fmt: skip
    weights = b"".join(tagged(rng.normal(size=size).astype(np.float32)) for size in sizes)
    lines = ["Input in0 0 1 in0", f"{kind} r 1 1 in0 y 0=2 1={sizes[0]} 2={direction}"]
    session = engine.Session(engine.load(write_pair(tmp_path, lines, weights)), "numpy")
    session.feed([rng.normal(size=(5, 3)).astype(np.float32)])
    session.run()
    field = engine.receptive_field(session, "y", (2, 1))
    assert field.guessed == ()
    assert field.inputs[0].slices == (rows, slice(0, 3))
    assert engine.check_field(session, "y", (2, 1)).is_same


@pytest.fixture
def run_recurrent(tmp_path):
    """Runs a recurrent layer of ncnn on seeded numbers; gives session and weights."""

    def run(kind, count, direction, outputs=2, hidden=2):
        rng = np.random.default_rng(7)
        sides = 2 if direction == 2 else 1
        shapes = [(sides, count * hidden, 3), (sides, 4 if count > 1 else 1, hidden),
                  (sides, count * hidden, outputs)]  # fmt: skip
        shapes += [(sides, outputs, hidden)] if outputs != hidden else []
        given = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
        lines = ["Input in0 0 1 in0",
                 f"{kind} r 1 1 in0 y 0={outputs} 1={given[0].size} 2={direction}"
                 + (f" 3={hidden}" if outputs != hidden else "")]  # fmt: skip
        path = write_pair(tmp_path, lines, b"".join(tagged(each) for each in given))
        session = engine.Session(engine.load(path), "numpy")
        session.feed([rng.normal(size=(5, 3)).astype(np.float32)])
        session.run()
        return session, given

    return run


@pytest.mark.parametrize("direction", [0, 2])
@pytest.mark.parametrize(
    ("kind", "count", "outputs"),
    [("LSTM", 4, 2), ("LSTM", 4, 3), ("GRU", 3, 2), ("RNN", 1, 2)],
    ids=["lstm", "projected", "gru", "rnn"],
)
def test_gates_of_a_recurrent_layer(run_recurrent, kind, count, outputs, direction):
    session, given = run_recurrent(kind, count, direction, outputs)
    x = session.value("in0").astype(np.float64)
    for row, column in ((0, 0), (3, outputs - 1), (4, outputs * (1 + direction // 2) - 1)):
        found = engine.explain_element(session, "y", (row, column))
        assert found.agrees
        assert abs(found.value - found.breakdown.total) < 1e-5
        terms = found.breakdown.terms
        weight = given[3 if outputs == 3 else 0]
        places = [tuple(each) for each in terms.factors[1].indices.tolist()]
        side = column // outputs
        assert {place[0] for place in places} == {side}
        assert terms.factors[1].values.tolist() == [float(weight[place]) for place in places]
        if outputs == 2:  # ncnn has the output's gate of an LSTM before the new cell
            order = {"LSTM": [0, 1, 3, 2], "GRU": [0, 1, 2], "RNN": [0]}[kind]
            wanted = [weight[side, gate * 2 + column % 2] @ x[row] for gate in order]
            np.testing.assert_allclose(terms.partial_sums, wanted, rtol=1e-6)
            names = [step.name for step in found.breakdown.steps]
            assert names[0].startswith("state's part of")


@pytest.mark.parametrize("direction", [0, 2])
@pytest.mark.parametrize(("kind", "count"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_slopes_through_a_recurrent_layer(run_recurrent, kind, count, direction):
    session, _ = run_recurrent(kind, count, direction)
    x = session.value("in0")
    found = effective_weight(session, "y", (3, 1), "in0").gradient
    for place in ((0, 2), (3, 0), (4, 1)):
        sides = []
        for step in (-1e-2, 1e-2):
            moved = x.copy()
            moved[place] += step
            session.feed([moved])
            session.run()
            sides.append(float(session.value("y")[3, 1]))
        assert found[place] == pytest.approx((sides[1] - sides[0]) / 2e-2, abs=2e-3)


def test_a_layer_that_only_runs_backwards_says_so(run_recurrent):
    session, _ = run_recurrent("GRU", 3, 1)
    found = engine.explain_element(session, "y", (1, 1))
    assert "only runs backwards" in found.reason
