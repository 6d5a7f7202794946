"""Operators that draw from distributions that their inputs describe."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError

ROWS = 20_000


def spread(*numbers: float, dtype: str = "f4") -> np.ndarray:
    """Each number in a column of its own, many times."""
    return np.tile(np.array(numbers, dtype), (ROWS, 1))


class TestBernoulli:
    CHANCES = (0.0, 0.1, 0.5, 1.0)

    @pytest.mark.parametrize(
        ("operator_type", "operands"),
        [
            ("torch.bernoulli", (spread(*CHANCES),)),
            ("aten::bernoulli", (spread(*CHANCES), None)),
            ("aten::bernoulli", (spread(9, 9, 9, 9), np.array(CHANCES), None)),
        ],
    )
    def test_shares(self, run, operator_type, operands):
        result = run(operator_type, *operands)
        assert result.dtype == np.float32
        assert set(np.unique(result)) == {0, 1}
        shares = result.mean(0)
        assert shares[[0, 3]].tolist() == [0, 1]
        np.testing.assert_allclose(shares[1:3], [0.1, 0.5], atol=0.018)

    @pytest.mark.parametrize(("p", "expected"), [(0.0, 0), (1.0, 1), (0, 0), (1, 1)])
    def test_never_and_always(self, run, p, expected):
        assert (run("Tensor.bernoulli", spread(5), p=p) == expected).all()

    @pytest.mark.parametrize("dtype", ["?", "u1", "i8", "f2", "f8"])
    def test_into_any_dtype(self, run, dtype):
        result = run("aten::bernoulli", np.zeros(2000, dtype), 0.25, None)
        assert result.dtype == dtype
        assert 400 < result.sum(dtype=np.float64) < 600  # 500 and a deviation of 19

    @pytest.mark.parametrize("p", [-0.1, 1.1, np.nan])
    def test_no_probability(self, run, p):
        with pytest.raises(LayerError, match="a probability does not lie from 0 to 1"):
            run("torch.bernoulli", np.array([0.5, p], "f4"))

    def test_shapes_that_do_not_fit(self, run):
        with pytest.raises(LayerError, match="cannot broadcast shapes 3, 2"):
            run("aten::bernoulli", np.zeros(2, "f4"), np.ones(3), None)


class TestMultinomial:
    @pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
    @pytest.mark.parametrize("replacement", [False, True])
    def test_first_draws_follow_the_weights(self, run, dtype, replacement):
        weights = spread(2, 0, 5, 3, dtype=dtype)
        result = run("aten::multinomial", weights, 2, replacement, None)
        assert (result.shape, result.dtype) == ((ROWS, 2), np.int64)
        counts = np.bincount(result[:, 0], minlength=4) / ROWS
        np.testing.assert_allclose(counts, [0.2, 0, 0.5, 0.3], atol=0.018)
        assert counts[1] == 0

    def test_without_replacement_none_comes_twice(self, run):
        weights = spread(1, 2, 3)
        result = run("torch.multinomial", weights, num_samples=3, replacement=False)
        assert (np.sort(result, 1) == [0, 1, 2]).all()
        # Place 2 comes last with the chance 1/6 * 2/5 + 2/6 * 1/4 = .15
        assert abs((result[:, 2] == 2).mean() - 0.15) < 0.013

    def test_with_replacement_they_come_again(self, run):
        result = run("torch.multinomial", np.array([1, 3], "f4"), num_samples=ROWS,
                     replacement=True)  # fmt: skip
        assert result.shape == (ROWS,)
        assert abs(result.mean() - 0.75) < 0.016

    def test_weight_zero_never_comes(self, run):
        weights = np.array([0, 1, 0], "f4")
        result = run("torch.multinomial", weights, num_samples=1000, replacement=True)
        assert (result == 1).all()

    @pytest.mark.parametrize(
        ("weights", "count", "sentence"),
        [
            ([0, 0], 1, "not all 0"),
            ([1, -1], 1, "none negative"),
            ([1, np.inf], 1, "finite"),
            ([1, np.nan], 1, "finite"),
            ([1, 1], 3, "cannot draw 3 of 2 indices without replacement"),
            ([1, 1], 0, "cannot draw 0 of 2 indices"),
            ([[[1, 1]]], 1, "input has 3 dimensions"),
        ],
    )
    def test_refusals(self, run, weights, count, sentence):
        with pytest.raises(LayerError, match=sentence):
            run("torch.multinomial", np.array(weights, "f4"), num_samples=count)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_poisson(run, dtype):
    result = run("aten::poisson", spread(0, 0.5, 20, dtype=dtype), None)
    assert result.dtype == dtype
    wide = result.astype(np.float64)
    np.testing.assert_allclose(wide.mean(0), [0, 0.5, 20], atol=0.16)
    np.testing.assert_allclose(wide.var(0), [0, 0.5, 20], atol=1.1)
    assert (wide == np.round(wide)).all()


@pytest.mark.parametrize("rate", [-1, np.nan])
def test_poisson_needs_rates(run, rate):
    with pytest.raises(LayerError, match="a rate is negative or NaN"):
        run("torch.poisson", np.array([rate], "f4"))


def test_binomial(run):
    result = run("aten::binomial", spread(0, 10, 10, 10), np.array([0.5, 0, 0.3, 1]), None)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result.mean(0), [0, 0, 3, 10], atol=0.06)
    np.testing.assert_allclose(result.var(0), [0, 0, 2.1, 0], atol=0.12)


@pytest.mark.parametrize(
    ("count", "prob", "sentence"),
    [(2, 1.5, "a probability does not lie"), (-1, 0.5, "a number of trials is negative")],
)
def test_binomial_refusals(run, count, prob, sentence):
    with pytest.raises(LayerError, match=sentence):
        run("torch.binomial", np.array([count], "f4"), np.array([prob], "f4"))


def test_gamma(run):
    result = run("aten::_standard_gamma", spread(0.5, 4), None)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result.mean(0), [0.5, 4], atol=0.08)
    np.testing.assert_allclose(result.var(0), [0.5, 4], atol=0.35)


def test_dirichlet(run):
    result = run("aten::_sample_dirichlet", spread(1, 2, 5), None)
    np.testing.assert_allclose(result.sum(-1), 1, rtol=1e-6)
    np.testing.assert_allclose(result.mean(0), [1 / 8, 2 / 8, 5 / 8], atol=0.006)
    with pytest.raises(LayerError, match="larger than 0"):
        run("aten::_sample_dirichlet", np.array([1, 0], "f4"), None)


class TestGumbelSoftmax:
    LOGITS = np.tile(np.log(np.array([0.2, 0.5, 0.3], "f4")), (ROWS, 1))

    def test_hard_draws_by_the_softmax(self, run):
        result = run("F.gumbel_softmax", self.LOGITS, hard=True)
        assert result.dtype == np.float32
        assert (np.sort(result, 1) == [0, 0, 1]).all()
        np.testing.assert_allclose(result.mean(0), [0.2, 0.5, 0.3], atol=0.018)

    def test_soft_sums_to_one_along_the_axis(self, run):
        result = run("F.gumbel_softmax", self.LOGITS.T.copy(), tau=0.5, dim=0)
        np.testing.assert_allclose(result.sum(0), 1, rtol=1e-5)
        largest = np.bincount(result.argmax(0)) / ROWS
        np.testing.assert_allclose(largest, [0.2, 0.5, 0.3], atol=0.018)


@pytest.mark.parametrize(
    ("operator_type", "operands"),
    [
        ("torch.bernoulli", (spread(0.5),)),
        ("aten::multinomial", (spread(1, 1, 1), 1, False, None)),
        ("aten::multinomial", (spread(1, 1, 1), 1, True, None)),
        ("torch.poisson", (spread(3),)),
        ("torch.binomial", (spread(9), spread(0.5))),
        ("aten::_standard_gamma", (spread(3), None)),
        ("aten::_sample_dirichlet", (spread(3, 3), None)),
        ("F.gumbel_softmax", (spread(3, 3),)),
    ],
)
def test_seeds(run, operator_type, operands):
    once = run(operator_type, *operands, seed=3)
    np.testing.assert_array_equal(run(operator_type, *operands, seed=3), once)
    assert (run(operator_type, *operands, seed=4) != once).any()
