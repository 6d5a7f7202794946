"""What is said of recurrent layers of ncnn whose numbers are wrong."""

from __future__ import annotations

import numpy as np
import pytest
from ncnn_files import F16, tagged, write_pair

import engine
from array_reference import compare, reference_of
from engine.comparison.reasons import explain

WIDTH, INPUTS = 90, 6


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


ROWS = normal(1, 14, INPUTS)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gru(rows, weight, bias, state_weight):
    """A GRU by its definition; the gates are r, z and n, and the last bias is inside of n."""
    h, made = np.zeros(state_weight.shape[1]), []
    for row in rows.astype(np.float64):
        x, own = (weight @ row).reshape(3, -1) + bias[:3], (state_weight @ h).reshape(3, -1)
        r, z = sigmoid(x[:2] + own[:2])
        h = (1 - z) * np.tanh(x[2] + r * (own[2] + bias[3])) + z * h
        made.append(h)
    return np.float32(made)


def lstm(rows, weight, bias, state_weight):
    """An LSTM by its definition; gates are i, f, o and g as in ncnn."""
    h = c = np.zeros(state_weight.shape[1])
    made = []
    for row in rows.astype(np.float64):
        i, f, o, g = (weight @ row + state_weight @ h).reshape(4, -1) + bias
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        made.append(h)
    return np.float32(made)


def made_weights(gates, biases):
    return (
        normal(2, gates * WIDTH, INPUTS) / 2,
        normal(3, biases, WIDTH) / 4,
        normal(4, gates * WIDTH, WIDTH) / 12,
    )


KINDS = {"GRU": (gru, made_weights(3, 4)), "LSTM": (lstm, made_weights(4, 4))}


def layer(folder, kind, weights, tag=0, after=()):
    """A pair of one recurrent layer, perhaps with others behind it."""
    size = KINDS[kind][1][0].size
    dtype = np.float16 if tag else np.float32
    data = b"".join(tagged(each.astype(dtype), tag) for each in weights)
    lines = ("Input in0 0 1 in0", f"{kind} it 1 1 in0 1 0={WIDTH} 1={size}", *after)
    return write_pair(folder, lines, data)


def with_one(array, index, number):
    array = array.copy()
    array[index] = number
    return array


@pytest.mark.parametrize("tag", [0, F16], ids=["float32", "float16"])
@pytest.mark.parametrize(
    ("kind", "gate", "text"),
    [
        # PyTorch's arrays: r, z, n of the input and of the state; i, f, g, o.
        ("GRU", 0, "1 of 270 numbers of bias_ih_l0"),
        ("GRU", 2, "1 of 270 numbers of bias_ih_l0"),
        ("GRU", 3, "1 of 270 numbers of bias_hh_l0"),
        ("LSTM", 1, "1 of 360 numbers of bias_ih_l0"),
        ("LSTM", 2, "1 of 360 numbers of bias_ih_l0"),
    ],
)
def test_a_bias_of_a_wide_layer(tmp_path, kind, gate, text, tag):
    """One number of a gate, so wrong that the gate saturates."""
    compute, (weight, bias, state_weight) = KINDS[kind]
    wrong = (weight, with_one(bias, (gate, 31), 2.5), state_weight)
    operator = engine.load(layer(tmp_path, kind, wrong, tag)).operator("it")
    (reason, *_) = explain(operator, [ROWS], compute(ROWS, weight, bias, state_weight))
    assert (reason.kind, reason.text[: len(text)]) == ("bias", text)
    (change,) = reason.changes
    place = {"GRU": [0, 1, 2, 2], "LSTM": [0, 1, 3, 2]}[kind][gate] * WIDTH + 31
    assert change.value[place] == pytest.approx(bias[gate, 31], abs=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_of_one_unit(tmp_path, kind):
    """A row of the state's matrix: the sequence tells too little for its numbers."""
    compute, (weight, bias, state_weight) = KINDS[kind]
    wrong = (weight, bias, with_one(state_weight, WIDTH + 31, normal(5, WIDTH) / 3))
    operator = engine.load(layer(tmp_path, kind, wrong)).operator("it")
    (reason, *_) = explain(operator, [ROWS], compute(ROWS, weight, bias, state_weight))
    assert reason.kind == "weight_values"
    assert "only unit 31 of 90 differs" in reason.text


COPIES = ("Split both 1 2 1 2 3", "TanH a 1 1 2 out0", "Sigmoid b 1 1 3 out1")


def by_steps(kind, weights):
    """A reference that computes a layer by calls of its own, and shows what is made of it."""
    made = KINDS[kind][0](ROWS, *weights)
    order = {"GRU": [0, 1, 2], "LSTM": [0, 1, 3, 2]}[kind]  # PyTorch's
    matrices = {
        name: array.reshape(len(order), WIDTH, -1)[order]
        for name, array in (("ih", weights[0]), ("hh", weights[2]))
    }
    arrays = {"in": ROWS, "gates": ROWS @ weights[0].T, "made": made}
    arrays |= {"a": np.tanh(made), "b": sigmoid(made)}
    calls = (
        ("linear", ("in",), "gates", {"ih": matrices["ih"]}),
        ("steps", ("gates",), "made", {"hh": matrices["hh"]}),
        ("tanh", ("made",), "a", {}),
        ("sigmoid", ("made",), "b", {}),
    )
    return reference_of(arrays, calls)


@pytest.mark.parametrize("tag", [0, F16], ids=["float32", "float16"])
@pytest.mark.parametrize(("place", "name"), [(0, "weight_ih_l0"), (2, "weight_hh_l0")])
@pytest.mark.parametrize("kind", KINDS)
def test_hashes_tell_a_matrix_that_differs(tmp_path, kind, place, name, tag):
    """The reference shows the result behind ncnn's copy, which is not to blame."""
    _, right = KINDS[kind]
    wrong = list(right)
    wrong[place] = right[place] * (1 + normal(6, *right[place].shape) / 3)
    path = layer(tmp_path, kind, wrong, tag, COPIES)
    (origin,) = compare(path, by_steps(kind, right), ROWS).origins
    assert (origin.operator.name, origin.among) == ("it", ())
    assert origin.reasons[0].kind == "weight_values"
    assert origin.reasons[0].text.startswith(f"{name} differs, as the hashes tell")


def test_a_layer_of_which_nothing_is_known_is_named_instead_of_its_copy(tmp_path):
    compute, right = KINDS["LSTM"]
    wrong = [each * (1 + normal(6, *each.shape) / 3) for each in right]
    path = layer(tmp_path, "LSTM", wrong, after=COPIES)
    made = compute(ROWS, *right)
    arrays = {"in": ROWS, "steps": made[:, np.newaxis], "made": made[np.newaxis]}
    arrays |= {"a": np.tanh(arrays["made"]), "b": sigmoid(arrays["made"])}
    calls = (
        ("stack", ("in",), "steps", {}), ("transpose", ("steps",), "made", {}),
        ("tanh", ("made",), "a", {}), ("sigmoid", ("made",), "b", {}),
    )  # fmt: skip
    (origin,) = compare(path, reference_of(arrays, calls), ROWS).origins
    assert (origin.operator.name, origin.among) == ("it", ())
    assert "seen at ncnn.Split 'both'" in origin.text
