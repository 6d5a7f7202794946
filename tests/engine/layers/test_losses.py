"""Losses."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.errors import LayerError

RNG = np.random.default_rng(9)
X = np.array([0.5, -2.0, 3.0], np.float32)
Y = np.array([0.0, 1.0, 3.5], np.float32)


def some(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("name", "params", "expected"),
    [
        ("mse_loss", {}, [0.25, 9, 0.25]),
        ("l1_loss", {}, [0.5, 3, 0.5]),
        ("smooth_l1_loss", {"beta": 2.0}, [0.0625, 2, 0.0625]),
        ("smooth_l1_loss", {"beta": 0.0}, [0.5, 3, 0.5]),
        ("huber_loss", {"delta": 2.0}, [0.125, 4, 0.125]),
        ("soft_margin_loss", {}, [math.log(2), math.log1p(math.exp(2)), 2.7536e-5]),
        ("poisson_nll_loss", {}, [math.exp(0.5), math.exp(-2) + 2, math.exp(3) - 10.5]),
    ],
)
def test_values(run, name, params, expected):
    values = run(f"F.{name}", X, Y, reduction="none", **params)
    np.testing.assert_allclose(values, expected, rtol=1e-4)
    assert run(f"F.{name}", X, Y, **params) == pytest.approx(np.mean(expected), rel=1e-5)
    total = run(f"aten::{name}", X, Y, reduction=2, **params)
    assert total == pytest.approx(np.sum(expected), rel=1e-5)
    assert total.dtype == np.float32


def test_cross_entropy_by_hand(run):
    logits = np.log(np.array([[1, 3], [1, 1], [7, 1]], np.float32))
    target = np.array([1, 0, 0])
    expected = [-math.log(0.75), -math.log(0.5), -math.log(0.875)]
    values = run("F.cross_entropy", logits, target, reduction="none")
    np.testing.assert_allclose(values, expected, rtol=1e-5)
    target = np.array([1, -100, 0])
    mean = run("aten::cross_entropy_loss", logits, target, None, 1, -100, 0.0)
    assert mean == pytest.approx((expected[0] + expected[2]) / 2, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "operands", "params", "sentence"),
    [
        ("F.mse_loss", (X, Y[:2]), {}, "input and target of shapes 3, 2 do not fit"),
        (
            "F.mse_loss",
            (X, Y),
            {"reduction": "most"},
            "reduction=most is not one of none, mean",
        ),
        ("F.nll_loss", (some(2, 3), np.array([0, 3])), {}, "not one of the 3 classes"),
        ("F.nll_loss", (some(2, 3), np.array([0])), {}, "does not fit targets of shape 1"),
    ],
)
def test_refusals(run, name, operands, params, sentence):
    with pytest.raises(LayerError, match=sentence):
        run(name, *operands, **params)


SIGNS = np.where(RNG.random((4, 5)) < 0.5, -1, 1).astype(np.float32)
SHARES = RNG.random((4, 5)).astype(np.float32)
CASES = [
    ("mse_loss", (some(4, 5), some(4, 5)), {}),
    ("smooth_l1_loss", (some(4, 5), some(4, 5)), {"beta": 0.5}),
    ("huber_loss", (some(4, 5), some(4, 5)), {"delta": 0.5}),
    ("soft_margin_loss", (some(4, 5), SIGNS), {}),
    ("hinge_embedding_loss", (some(4, 5), SIGNS), {"margin": 0.5}),
    ("margin_ranking_loss", (some(4, 5), some(4, 5), SIGNS), {"margin": 0.3}),
    ("triplet_margin_loss", (some(4, 5), some(4, 5), some(4, 5)), {"p": 1.5}),
    ("triplet_margin_loss", (some(4, 5), some(4, 5), some(4, 5)), {"swap": True}),
    ("kl_div", (some(4, 5), SHARES), {}),
    ("kl_div", (some(4, 5), some(4, 5)), {"log_target": True}),
    ("poisson_nll_loss", (some(4, 5), 3 * SHARES), {"full": True}),
    ("poisson_nll_loss", (3 * SHARES, SHARES), {"log_input": False}),
    ("binary_cross_entropy", (SHARES, np.round(SHARES)), {}),
    ("binary_cross_entropy", (np.round(SHARES), SHARES, SHARES), {}),
    ("binary_cross_entropy_with_logits", (some(4, 5), SHARES), {}),
    ("nll_loss", (some(4, 5), np.array([1, 4, 0, 2])), {}),
    ("nll_loss", (some(4, 5), np.array([1, 4, 0, 2]), SHARES[0]), {"ignore_index": 4}),
    ("nll_loss", (some(5), np.array(3)), {}),
    ("cross_entropy", (some(4, 5, 3), RNG.integers(0, 5, (4, 3))), {}),
    ("cross_entropy", (some(4, 5), np.array([1, 4, 0, 2]), SHARES[1]), {"ignore_index": 0}),
    ("cross_entropy", (some(4, 5), np.array([1, 4, 0, 2])), {"label_smoothing": 0.2}),
    (
        "cross_entropy",
        (some(4, 5), np.array([1, 4, 0, 2]), SHARES[1]),
        {"label_smoothing": 0.2, "ignore_index": 2},
    ),
    ("cross_entropy", (some(4, 5), SHARES), {"label_smoothing": 0.1}),
    ("cross_entropy", (some(4, 5), SHARES, SHARES[0]), {}),
]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("name", "operands", "params"), CASES)
@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")
def test_against_pytorch(run, name, operands, params, reduction):
    torch = pytest.importorskip("torch")
    function = getattr(torch.nn.functional, name)
    tensors = [torch.from_numpy(np.array(x)) for x in operands]
    expected = function(*tensors, reduction=reduction, **params).numpy()
    found = run(f"F.{name}", *operands, reduction=reduction, **params)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("target", "margin", "expected"),
    [([1, -1], 0.0, [1 - 0.6, 0.8]), ([-1, 1], 0.5, [0.1, 1 - 0.8])],
)
def test_cosine_embedding_loss(run, target, margin, expected):
    x = np.array([[1, 0], [0, 2]], np.float32)
    y = np.array([[0.6, 0.8], [0.6, 0.8]], np.float32)
    operands = (x, y, np.array(target, np.float32), margin)
    result = run("aten::cosine_embedding_loss", *operands, 0)
    np.testing.assert_allclose(result, expected, rtol=1e-5)
    mean = run("F.cosine_embedding_loss", *operands)
    np.testing.assert_allclose(mean, np.mean(expected), rtol=1e-5)


@pytest.mark.parametrize(
    ("p", "weight", "expected"),
    [(1, None, [1.5 / 3, 2 / 3]), (2, None, [1.25 / 3, 2 / 3]), (1, [2, 1, 3], [1.0, 2.0])],
)
def test_multi_margin_loss(run, p, weight, expected):
    x = np.array([[0.5, 0.5, 0], [1, 1, 1]], np.float32)
    target = np.array([0, 2])
    shares = None if weight is None else np.array(weight, np.float32)
    operands = (x, target, p, 1.0, shares)
    np.testing.assert_allclose(run("aten::multi_margin_loss", *operands, 0), expected)
    total = run("F.multi_margin_loss", *operands, "sum")
    np.testing.assert_allclose(total, np.sum(expected), rtol=1e-6)


def test_multi_margin_loss_of_no_class(run):
    with pytest.raises(LayerError, match="a target is not one of the 2 classes"):
        run("aten::multi_margin_loss", np.ones((1, 2), np.float32), np.array([2]))
    with pytest.raises(LayerError, match="does not fit targets"):
        run("aten::multi_margin_loss", np.ones((1, 2), np.float32), np.array([1, 1]))


def test_complex_numbers_are_as_far_apart_as_points(run):
    x, y = np.array([3 + 4j, 1], np.complex64), np.array([0, 1], np.complex64)
    values = run("F.l1_loss", x, y, reduction="none")
    np.testing.assert_array_equal(values, np.float32([5, 0]), strict=True)


def test_several_right_classes(run):
    # Classes 3 and 0 are right: what stands behind the first -1 does not count.
    x, target = np.float32([0.1, 0.2, 0.4, 0.8]), np.array([3, 0, -1, 1])
    expected = (1 - (0.8 - 0.2) + 1 - (0.8 - 0.4) + 1 - (0.1 - 0.2) + 1 - (0.1 - 0.4)) / 4
    assert run("F.multilabel_margin_loss", x, target) == pytest.approx(expected)
    batch = run("aten::multilabel_margin_loss", np.stack([x, x]), np.stack([target] * 2), 0)
    np.testing.assert_allclose(batch, np.float32([expected] * 2), rtol=1e-6, strict=True)
    with pytest.raises(LayerError, match="shape 4 does not fit targets of shape 2"):
        run("F.multilabel_margin_loss", x, target[:2])
    with pytest.raises(LayerError, match="not one of the 4 classes"):
        run("F.multilabel_margin_loss", x, target + 1)
