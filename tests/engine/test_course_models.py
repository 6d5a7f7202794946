"""The models of the KuiperInfer course, against arithmetic written out here.

Weights are read from the archives directly, so that nothing but the file is shared with the
engine.
"""

from __future__ import annotations

import math
import zipfile

import numpy as np
import pytest

import engine

pytestmark = pytest.mark.shared


def weights_of(path, **shapes):
    """Weights by entry name; ``op1__bias`` asks for the entry ``op1.bias``."""
    with zipfile.ZipFile(path) as archive:
        return {
            entry: np.frombuffer(archive.read(entry), "<f4").reshape(shape)
            for entry, shape in ((name.replace("__", "."), s) for name, s in shapes.items())
        }


def run(shared, name, *inputs):
    graph = engine.load(shared / "models" / f"{name}.pnnx.param")
    session = engine.Session(graph, backend="numpy")
    session.feed(list(inputs))
    session.run()
    return session


def draw(*shape, seed):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def test_linear(shared):
    w = weights_of(
        shared / "models" / "test_linear.pnnx.bin",
        linear__weight=(128, 32),
        linear__bias=(128,),
    )
    x = draw(1, 32, seed=1)
    expected = [
        sum(float(w["linear.weight"][o, i]) * float(x[0, i]) for i in range(32))
        + float(w["linear.bias"][o])
        for o in range(128)
    ]
    session = run(shared, "test_linear", x)
    np.testing.assert_allclose(session.value("1"), [expected], rtol=1e-5, atol=1e-6)
    (output,) = session.outputs()
    assert output.dtype == np.float32
    np.testing.assert_allclose(output, [[sigmoid(y) for y in expected]], rtol=1e-5, atol=1e-6)


def test_linear_of_ones(shared):
    """A row of ones sums the weights: the course's own check."""
    w = weights_of(
        shared / "models" / "test_linear.pnnx.bin",
        linear__weight=(128, 32),
        linear__bias=(128,),
    )
    session = run(shared, "test_linear", np.ones((1, 32), np.float32))
    sums = [math.fsum([*row, b]) for row, b in zip(*w.values(), strict=True)]
    np.testing.assert_allclose(session.value("1"), [sums], rtol=1e-5, atol=1e-6)


def test_simple_ops(shared):
    x = draw(1, 3, 16, 16, seed=2)
    (output,) = run(shared, "simple_ops", x).outputs()
    expected = np.empty_like(x)
    for place, value in np.ndenumerate(x):
        positive = max(float(value), 0.0)  # three times the same ReLU
        expected[place] = sigmoid(positive) + positive
    np.testing.assert_allclose(output, expected, rtol=1e-6)


def test_simple_ops_hands_one_operand_to_two(shared):
    graph = engine.load(shared / "models" / "simple_ops.pnnx.param")
    relu, sigmoid_of = graph.operator("op4"), graph.operator("op5")
    assert relu.inputs[0] is sigmoid_of.inputs[0] is graph.operator("op3").outputs[0]
    assert graph.operand("2").consumers == (relu, sigmoid_of)


def convolved(x, weight, bias):
    """3x3 convolution with a border of zeros, one tap after the other, in double."""
    padded = np.zeros((*x.shape[:2], x.shape[2] + 2, x.shape[3] + 2))
    padded[:, :, 1:-1, 1:-1] = x
    out = np.zeros((x.shape[0], weight.shape[0], *x.shape[2:])) + bias[:, None, None]
    for row in range(3):
        for col in range(3):
            window = padded[:, :, row : row + x.shape[2], col : col + x.shape[3]]
            out += np.einsum("oc,nchw->nohw", weight[:, :, row, col].astype(float), window)
    return out


def test_simple_ops2(shared):
    w = weights_of(
        shared / "models" / "simple_ops2.pnnx.bin",
        op1__weight=(32, 3, 3, 3), op1__bias=(32,),
        op3__weight=(64, 32, 3, 3), op3__bias=(64,),
        op5__weight=(128, 64, 3, 3), op5__bias=(128,),
    )  # fmt: skip
    x = draw(2, 3, 16, 16, seed=3)
    session = run(shared, "simple_ops2", x)
    expected = x.astype(float)
    for operator, operand in (("op1", "1"), ("op3", "2"), ("op5", "3")):
        expected = convolved(expected, w[f"{operator}.weight"], w[f"{operator}.bias"])
        np.testing.assert_allclose(session.value(operand), expected, rtol=1e-4, atol=1e-5)
    assert session.outputs()[0].shape == (2, 128, 16, 16)


@pytest.mark.parametrize("place", [(0, 0, 0, 0), (1, 31, 15, 15), (0, 7, 0, 9), (1, 20, 8, 8)])
def test_one_element_of_a_convolution_by_hand(shared, place):
    w = weights_of(
        shared / "models" / "simple_ops2.pnnx.bin", op1__weight=(32, 3, 3, 3), op1__bias=(32,)
    )
    x = draw(2, 3, 16, 16, seed=4)
    n, o, row, col = place
    total = float(w["op1.bias"][o])
    for c in range(3):
        for i in range(3):
            for j in range(3):
                r, s = row + i - 1, col + j - 1
                if 0 <= r < 16 and 0 <= s < 16:
                    total += float(w["op1.weight"][o, c, i, j]) * float(x[n, c, r, s])
    assert run(shared, "simple_ops2", x).value("1")[place] == pytest.approx(total, abs=1e-5)
