"""Distances and angles between vectors."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.errors import LayerError

A = np.array([[1, 2], [3, 4]], np.float32)
B = np.array([[4, 6], [3, 4]], np.float32)


@pytest.mark.parametrize(
    ("p", "expected"),
    [(2.0, [5, 0]), (1.0, [7, 0]), (math.inf, [4, 0]), (3.0, [91 ** (1 / 3), 0])],
)
@pytest.mark.parametrize("operator_type", ["F.pairwise_distance", "nn.PairwiseDistance"])
def test_pairwise_distance(run, operator_type, p, expected):
    result = run(operator_type, A, B, p=p, eps=0.0, keepdim=False)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, expected, rtol=1e-6)
    assert run(operator_type, A, B, p=p, keepdim=True).shape == (2, 1)


def test_eps_is_added_to_each_difference(run):
    result = run("F.pairwise_distance", A, A, eps=0.5)
    np.testing.assert_allclose(result, [math.sqrt(0.5)] * 2, rtol=1e-6)


@pytest.mark.parametrize(
    ("dim", "expected"),
    [(1, [16 / math.sqrt(5 * 52), 1]), (0, [13 / math.sqrt(250), 28 / math.sqrt(20 * 52)])],
)
def test_cosine_similarity(run, dim, expected):
    result = run("F.cosine_similarity", A, B, dim=dim)
    np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_cosine_with_nothing(run):
    assert run("F.cosine_similarity", A * 0, B).tolist() == [0, 0]


@pytest.mark.parametrize("name", ["pairwise_distance", "cosine_similarity"])
@pytest.mark.parametrize("shapes", [[(3, 5), (3, 5)], [(4, 3, 5), (1, 5)], [(2, 1, 4), (3, 4)]])
def test_against_pytorch(run, name, shapes):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    x, y = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    expected = getattr(torch.nn.functional, name)(torch.from_numpy(x), torch.from_numpy(y))
    result = run(f"F.{name}", x, y)
    np.testing.assert_allclose(result, expected.numpy(), rtol=2e-6, atol=2e-6)


def test_all_pairs_by_hand(run):
    x = np.array([[0, 0], [3, 4], [0, 1]], np.float32)
    expected = [[0, 5, 1], [5, 0, 18**0.5], [1, 18**0.5, 0]]
    np.testing.assert_allclose(run("torch.cdist", x, x), expected, rtol=1e-6)
    np.testing.assert_allclose(run("F.pdist", x, p=1.0), [7, 1, 6])
    assert run("torch.dist", x[1], x[2], np.inf).item() == 3


def test_vectors_that_cannot_be_compared(run):
    with pytest.raises(LayerError, match="vectors of shapes 3×2, 3×4 cannot be compared"):
        run("torch.cdist", np.ones((3, 2)), np.ones((3, 4)))


@pytest.mark.parametrize("p", [0.0, 1.0, 1.5, 2.0, np.inf])
def test_all_pairs_against_pytorch(run, p):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    left = rng.standard_normal((2, 1, 5, 3), dtype=np.float32)
    right = rng.standard_normal((4, 6, 3), dtype=np.float32)
    expected = torch.cdist(*map(torch.from_numpy, (left, right)), p=p)
    found = run("torch.cdist", left, right, p=p)
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-4, atol=1e-5)
    expected = torch.nn.functional.pdist(torch.from_numpy(right[0]), p=p)
    np.testing.assert_allclose(run("F.pdist", right[0], p=p), expected.numpy(), rtol=1e-4)
