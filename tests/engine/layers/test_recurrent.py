"""Recurrent layers and cells."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from engine.errors import LayerError, ParameterError

RNG = np.random.default_rng(8)
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def some(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def weights_of(kind, inputs, hidden, layers=1, bias=True, directions=1, projection=0):
    rows, out = GATES[kind] * hidden, projection or hidden
    weights = {}
    for number in range(layers):
        for suffix in ("", "_reverse")[:directions]:
            end = f"l{number}{suffix}"
            weights[f"weight_ih_{end}"] = some(rows, directions * out if number else inputs)
            weights[f"weight_hh_{end}"] = some(rows, out)
            if bias:
                weights[f"bias_ih_{end}"] = some(rows)
                weights[f"bias_hh_{end}"] = some(rows)
            if projection:
                weights[f"weight_hr_{end}"] = some(out, hidden)
    return weights


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def slow_step(kind, x, hidden, memory, w):
    """One step for one sample, unit by unit."""

    def gate(number, unit, part=(1, 1)):
        row = number * len(hidden) + unit
        total = 0.0
        if part[0]:
            total += float(w["weight_ih_l0"][row] @ x) + float(w["bias_ih_l0"][row])
        if part[1]:
            total += float(w["weight_hh_l0"][row] @ hidden) + float(w["bias_hh_l0"][row])
        return total

    units = range(len(hidden))
    if kind == "RNN":
        return [math.tanh(gate(0, u)) for u in units], memory
    if kind == "GRU":
        result = []
        for u in units:
            r, z = sigmoid(gate(0, u)), sigmoid(gate(1, u))
            n = math.tanh(gate(2, u, (1, 0)) + r * gate(2, u, (0, 1)))
            result.append((1 - z) * n + z * hidden[u])
        return result, memory
    memory = [
        sigmoid(gate(1, u)) * memory[u] + sigmoid(gate(0, u)) * math.tanh(gate(2, u))
        for u in units
    ]
    return [sigmoid(gate(3, u)) * math.tanh(memory[u]) for u in units], memory


@pytest.mark.parametrize("kind", GATES)
def test_against_a_slow_loop(run, kind):
    weights, x = weights_of(kind, 3, 4), some(5, 2, 3)
    outputs = run(f"nn.{kind}", x, weights=weights, input_size=3, hidden_size=4)
    for sample in range(2):
        hidden, memory = np.zeros(4), np.zeros(4)
        for step in range(5):
            hidden, memory = slow_step(kind, x[step, sample], hidden, memory, weights)
            hidden, memory = np.array(hidden), np.array(memory)
            np.testing.assert_allclose(outputs[0][step, sample], hidden, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(outputs[1][0, sample], hidden, rtol=1e-4, atol=1e-5)
        if kind == "LSTM":
            np.testing.assert_allclose(outputs[2][0, sample], memory, rtol=1e-4, atol=1e-5)
    assert [y.shape for y in outputs] == [(5, 2, 4), *[(1, 2, 4)] * (len(outputs) - 1)]


@pytest.mark.parametrize("kind", GATES)
def test_backwards_is_forwards_of_the_reversed(run, kind):
    both, x = weights_of(kind, 3, 4, directions=2), some(5, 2, 3)
    y = run(f"nn.{kind}", x, weights=both, bidirectional=True)[0]
    turned = {k.removesuffix("_reverse"): v for k, v in both.items() if "reverse" in k}
    backwards = run(f"nn.{kind}", x[::-1], weights=turned)[0][::-1]
    np.testing.assert_allclose(y[..., 4:], backwards, rtol=1e-6)


@pytest.mark.parametrize("kind", GATES)
def test_a_sequence_in_two_parts(run, kind):
    weights, x = weights_of(kind, 3, 4, layers=2), some(6, 2, 3)
    params = {"weights": weights, "num_layers": 2}
    whole = run(f"nn.{kind}", x, **params)
    first = run(f"nn.{kind}", x[:4], **params)
    second = run(f"nn.{kind}", x[4:], *first[1:], **params)
    np.testing.assert_allclose(np.concatenate([first[0], second[0]]), whole[0], rtol=1e-5)
    for last, expected in zip(second[1:], whole[1:], strict=True):
        np.testing.assert_allclose(last, expected, rtol=1e-5)


@pytest.mark.parametrize("kind", GATES)
def test_layouts(run, kind):
    weights, x = weights_of(kind, 3, 4, layers=2, directions=2), some(5, 2, 3)
    params = {"weights": weights, "num_layers": 2, "bidirectional": True}
    y, *states = run(f"nn.{kind}", x, **params)
    turned, *same = run(f"nn.{kind}", x.swapaxes(0, 1), batch_first=True, **params)
    np.testing.assert_array_equal(turned, y.swapaxes(0, 1))
    flat, *flat_states = run(f"nn.{kind}", x[:, 1], batch_first=True, **params)
    np.testing.assert_allclose(flat, y[:, 1], rtol=1e-5, atol=1e-6)
    for state, other, of_sample in zip(states, same, flat_states, strict=True):
        np.testing.assert_array_equal(state, other)
        np.testing.assert_allclose(of_sample, state[:, 1], rtol=1e-5, atol=1e-6)


def test_states_first(run):
    params = {"weights": weights_of("LSTM", 3, 4)}
    x = some(5, 2, 3)
    y, *states = run("nn.LSTM", x, **params)
    swapped = run("nn.LSTM", x, pnnx_rnn_output_swapped=1, **params)
    for ours, expected in zip(swapped, (*states, y), strict=True):
        np.testing.assert_array_equal(ours, expected)


@pytest.mark.parametrize("layout", ["batch", "batch_first", "alone"])
@pytest.mark.parametrize("kind", GATES)
def test_learnt_states_come_in_front(run, kind, layout):
    """pnnx writes what a traced module captures before its own input, of equal widths too."""
    weights = weights_of(kind, 4, 4, layers=2)
    batch = () if layout == "alone" else (2,)
    states = [some(2, *batch, 4) for _ in range(2 if kind == "LSTM" else 1)]
    x = some(5, *batch, 4)
    if layout == "batch_first":
        x = x.swapaxes(0, 1)
    facts = {"input_size": 4, "hidden_size": 4, "num_layers": 2}
    facts["batch_first"] = layout == "batch_first"
    behind = run(f"nn.{kind}", x, *states, weights=weights, **facts)
    in_front = run(f"nn.{kind}", *states, x, weights=weights, **facts)
    for one, other in zip(behind, in_front, strict=True):
        np.testing.assert_array_equal(one, other)


def test_halves_stay_halves(run):
    weights = {k: v.astype(np.float16) for k, v in weights_of("GRU", 3, 4).items()}
    y, state = run("nn.GRU", some(5, 2, 3).astype(np.float16), weights=weights)
    assert y.dtype == state.dtype == np.float16


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"num_layers": 2}, "the model has no attribute @weight_ih_l1"),
        ({"num_layers": 0}, "num_layers=0 is less than 1"),
        ({"bidirectional": True}, "the model has no attribute @weight_ih_l0_reverse"),
        ({"hidden_size": 5}, "weight_ih_l0 has the shape 4×3, not 5×3"),
        ({"bias": False}, "'bias_ih_l0' is not known to this layer"),
        ({"nonlinearity": "sine"}, "nonlinearity=sine is neither tanh nor relu"),
        ({"depth": 3}, "'depth' is not known to this layer"),
        ({"weights": {}}, "weight_ih_l0 is not a matrix, or missing"),
    ],
)
def test_wrong_parameters(run, changes, sentence):
    params = {"weights": weights_of("RNN", 3, 4), "hidden_size": 4} | changes
    with pytest.raises(ParameterError, match=sentence):
        run("nn.RNN", some(5, 2, 3), **params)


@pytest.mark.parametrize(
    ("shapes", "sentence"),
    [
        ([(5, 2, 4)], "the last of size 3; its shape is 5×2×4"),
        ([(5, 2, 3), (2, 2, 4)], "a state has the shape 2×2×4, not 1×2×4"),
        ([(0, 2, 3)], "the sequence is empty"),
    ],
)
def test_wrong_shapes(run, shapes, sentence):
    with pytest.raises(LayerError, match=sentence):
        run("nn.RNN", *(some(*shape) for shape in shapes), weights=weights_of("RNN", 3, 4))


CASES = [
    (kind, layers, directions, bias, batch_first, projection, batched)
    for kind, layers, directions, (bias, batch_first, batched), projection in itertools.product(
        GATES,
        (1, 3),
        (1, 2),
        ((True, False, True), (False, True, True), (True, False, False)),
        (0, 2),
    )
    if kind == "LSTM" or not projection
]


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize(
    ("kind", "layers", "directions", "bias", "batch_first", "projection", "batched"), CASES
)
def test_against_pytorch(run, kind, layers, directions, bias, batch_first, projection, batched):
    torch = pytest.importorskip("torch")
    options = {
        "num_layers": layers, "bidirectional": directions == 2, "bias": bias,
        "batch_first": batch_first,
    }  # fmt: skip
    if kind == "LSTM":
        options["proj_size"] = projection
    elif kind == "RNN":
        options["nonlinearity"] = "relu" if bias else "tanh"
    weights = weights_of(kind, 3, 4, layers, bias, directions, projection)
    module = getattr(torch.nn, kind)(3, 4, **options)
    module.load_state_dict({k: torch.from_numpy(v) for k, v in weights.items()})
    module.eval()
    x = some(*((2, 5) if batch_first else (5, 2)), 3) if batched else some(5, 3)
    middle = (2,) if batched else ()
    states = [some(layers * directions, *middle, projection or 4)]
    if kind == "LSTM":
        states.append(some(layers * directions, *middle, 4))
    given = tuple(map(torch.from_numpy, states))
    y, last = module(torch.from_numpy(x), given if kind == "LSTM" else given[0])
    expected = [y, *(last if kind == "LSTM" else [last])]
    results = run(f"nn.{kind}", x, *states, weights=weights, **options)
    traced = {"RNN": f"aten::rnn_{options.get('nonlinearity')}"}.get(
        kind, f"aten::{kind.lower()}"
    )
    for ours, theirs in zip(results, expected, strict=True):
        np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-4, atol=1e-5)
    hx = tuple(states) if kind == "LSTM" else states[0]
    params = tuple(p.detach().numpy() for p in module.parameters())
    if batched:
        again = run(
            traced, x, hx, params, bias, layers, 0.0, False, directions == 2, batch_first
        )
        for ours, theirs in zip(again, results, strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", ["RNNCell", "GRUCell", "LSTMCell"])
def test_cells_against_pytorch(run, kind, bias, batched):
    torch = pytest.importorskip("torch")
    module = getattr(torch.nn, kind)(3, 4, bias=bias)
    weights = {name: p.detach().numpy() for name, p in module.named_parameters()}
    x = some(2, 3) if batched else some(3)
    states = [some(2, 4) if batched else some(4) for _ in range(1 + (kind == "LSTMCell"))]
    given = tuple(map(torch.from_numpy, states))
    expected = module(torch.from_numpy(x), given if kind == "LSTMCell" else given[0])
    hx = tuple(states) if kind == "LSTMCell" else states[0]
    results = run(f"nn.{kind}", x, hx, weights=weights, bias=bias)
    results, expected = (r if isinstance(r, tuple) else (r,) for r in (results, expected))
    for ours, theirs in zip(results, expected, strict=True):
        assert ours.shape == tuple(theirs.shape)
        np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-5, atol=1e-6)
    without = run(f"nn.{kind}", x, weights=weights, bias=bias)
    first = without[0] if isinstance(without, tuple) else without
    zeros = module(torch.from_numpy(x))
    zeros = zeros[0] if isinstance(zeros, tuple) else zeros
    np.testing.assert_allclose(first, zeros.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_a_cell_with_a_state_of_another_size(run):
    weights = {"weight_ih": some(4, 3), "weight_hh": some(4, 4)}
    with pytest.raises(LayerError, match="input and states of shapes 2×3, 2×5 do not fit"):
        run("nn.RNNCell", some(2, 3), some(2, 5), weights=weights, bias=False)


class TestDropout:
    """Between two layers that hand on what they get, as a layer in training mode does."""

    UNITS, STEPS = 50, 200

    @pytest.fixture
    def handed_on(self, run):
        one, none = np.eye(self.UNITS, dtype="f4"), np.zeros((self.UNITS, self.UNITS), "f4")
        x = np.full((self.STEPS, self.UNITS), 3, "f4")  # without a batch

        def compute(dropout, train, layers=2, seed=0):
            params, hx = (one, none) * layers, np.zeros((layers, self.UNITS), "f4")
            arguments = (False, layers, dropout, train, False, False)
            return run("aten::rnn_relu", x, hx, params, *arguments, seed=seed)[0]

        return compute

    def test_what_comes_through(self, handed_on):
        result = handed_on(0.25, True)
        np.testing.assert_allclose(np.unique(result), [0, 4])
        # 10 000 numbers: a deviation of sqrt(.25 * .75 / 10000) = .0043
        assert abs((result == 4).mean() - 0.75) < 0.022
        np.testing.assert_array_equal(handed_on(0.25, True), result)
        assert (handed_on(0.25, True, seed=1) != result).any()

    @pytest.mark.parametrize(
        ("dropout", "train", "layers"), [(0.25, False, 2), (0.0, True, 2), (0.25, True, 1)]
    )
    def test_nothing_is_dropped(self, handed_on, dropout, train, layers):
        assert (handed_on(dropout, train, layers) == 3).all()

    def test_no_probability(self, handed_on):
        with pytest.raises(LayerError, match="dropout=2.0 is not a probability"):
            handed_on(2.0, True)
