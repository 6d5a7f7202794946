"""Operators that make tensors of random numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.errors import LayerError

LIKE = np.zeros((300, 500), np.float32)  # 150 000 numbers
LONGS, DOUBLES = np.zeros(60_000, np.int64), np.zeros(60_000)
NONE = (None,) * 3  # layout, device, pin_memory


class TestNewTensors:
    @pytest.mark.parametrize(
        ("operator_type", "operands", "params"),
        [
            ("torch.rand", (), {"size": (2, 3)}),
            ("torch.randn", (), {"size": (2, 3)}),
            ("aten::rand", ((2, 3), None, None, "cpu", False), {}),
            ("aten::randn", ((2, 3), None, None, "cpu", False), {}),
        ],
    )
    def test_float32_by_default(self, run, operator_type, operands, params):
        result = run(operator_type, *operands, **params)
        assert (result.shape, result.dtype) == ((2, 3), np.float32)

    @pytest.mark.parametrize(
        ("dtype", "expected"),
        [("torch.double", "f8"), ("torch.half", "f2"), (7, "f8"), ("torch.cfloat", "c8")],
    )
    @pytest.mark.parametrize("operator_type", ["aten::rand", "aten::randn"])
    def test_dtype(self, run, operator_type, dtype, expected):
        assert run(operator_type, (4,), dtype, *NONE).dtype == expected
        with_a_generator = run(operator_type, (4,), None, dtype, *NONE)
        assert with_a_generator.dtype == expected

    @pytest.mark.parametrize("operator_type", ["torch.rand_like", "torch.randn_like"])
    @pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c16"])
    def test_like_another(self, run, operator_type, dtype):
        result = run(operator_type, np.ones((2, 0, 3), dtype), dtype=None)
        assert (result.shape, result.dtype) == ((2, 0, 3), dtype)
        result = run(operator_type, np.ones(2, "i8"), dtype="torch.float")
        assert (result.shape, result.dtype) == ((2,), "f4")

    def test_like_another_with_operands_only(self, run):
        result = run("aten::rand_like", LIKE, 7, None, None, False, None)
        assert (result.shape, result.dtype) == (LIKE.shape, "f8")
        assert abs(result.mean() - 0.5) < 0.005

    @pytest.mark.parametrize(
        ("operator_type", "mean", "deviation"),
        [("torch.rand", 0.5, 1 / math.sqrt(12)), ("torch.randn", 0, 1)],
    )
    def test_moments(self, run, operator_type, mean, deviation):
        result = run(operator_type, size=(150_000,))
        assert abs(result.mean() - mean) < 0.013
        assert abs(result.std() - deviation) < 0.01

    def test_no_integers(self, run):
        with pytest.raises(LayerError, match="int64 cannot hold them"):
            run("torch.randn", size=(2,), dtype="torch.long")


class TestIntegers:
    @pytest.mark.parametrize(
        ("operator_type", "operands", "params", "expected"),
        [
            ("aten::randint", (3, (60_000,), 4, *NONE), {}, {0, 1, 2}),
            ("aten::randint", (2, 5, (60_000,), 4, *NONE), {}, {2, 3, 4}),
            pytest.param(
                "aten::randint", (-1, 2, (60_000,), None, 4, *NONE), {}, {-1, 0, 1},
                id="with a generator",
            ),
            ("torch.randint", (), {"high": 3, "size": (60_000,)}, {0, 1, 2}),
            ("torch.randint", (), {"low": 2, "high": 5, "size": (60_000,)}, {2, 3, 4}),
            ("aten::randint_like", (LONGS, 3, None, *NONE, None), {}, {0, 1, 2}),
            ("aten::randint_like", (DOUBLES, -1, 2, None, *NONE, None), {}, {-1, 0, 1}),
        ],
    )  # fmt: skip
    def test_each_as_likely(self, run, operator_type, operands, params, expected):
        result = run(operator_type, *operands, **params)
        assert result.dtype == (operands[0].dtype if "like" in operator_type else np.int64)
        values, counts = np.unique(result, return_counts=True)
        assert set(values.tolist()) == expected
        # 60 000 draws of three: a deviation of sqrt(60000 * 2 / 9) = 115
        np.testing.assert_allclose(counts, 20_000, atol=600)

    @pytest.mark.parametrize("dtype", ["torch.float", "torch.uint8", "torch.int"])
    def test_dtype(self, run, dtype):
        result = run("torch.randint", high=5, size=(1000,), dtype=dtype)
        assert str(result.dtype) == {"torch.float": "float32", "torch.int": "int32"}.get(
            dtype, "uint8"
        )
        assert set(result.tolist()) == {0, 1, 2, 3, 4}

    def test_named_operands(self, run):
        names = ("input", "low", "high")
        result = run("torch.randint_like", np.zeros(100, "f4"), 7, 8, names=names, dtype=None)
        assert result.dtype == np.float32
        assert (result == 7).all()

    @pytest.mark.parametrize(("low", "high"), [(3, 3), (5, 2)])
    def test_nothing_between(self, run, low, high):
        with pytest.raises(LayerError, match=f"no integer from {low} up to {high}"):
            run("torch.randint", low=low, high=high, size=(2,))

    def test_no_size(self, run):
        with pytest.raises(LayerError, match="an upper bound and a size"):
            run("aten::randint", 5, None, *NONE)

    @pytest.mark.parametrize("count", [0, 1, 1000])
    @pytest.mark.parametrize(("dtype", "expected"), [(None, "i8"), ("torch.float", "f4")])
    def test_permutation(self, run, count, dtype, expected):
        result = run("aten::randperm", count, dtype, *NONE)
        assert result.dtype == expected
        assert sorted(result.tolist()) == list(range(count))
        assert count < 2 or result.tolist() != list(range(count))

    def test_every_permutation_comes(self, run):
        seen = [tuple(run("torch.randperm", n=3, seed=seed)) for seed in range(120)]
        assert len(set(seen)) == 6
        assert max(map(seen.count, set(seen))) < 45  # 20 and a deviation of 4

    def test_negative_count(self, run):
        with pytest.raises(LayerError, match="n=-1 is negative"):
            run("torch.randperm", n=-1)


class TestNormal:
    MEANS = np.array([[-100], [0], [50]], np.float32)

    def test_of_tensors(self, run):
        std = np.broadcast_to(np.array([1, 10], np.float64), (40_000, 1, 2))
        result = run("aten::normal", self.MEANS, std, None)
        assert (result.shape, result.dtype) == ((40_000, 3, 2), np.float32)
        np.testing.assert_allclose(result.mean(0), np.tile(self.MEANS, 2), atol=0.3)
        np.testing.assert_allclose(result.std(0), [[1, 10]] * 3, rtol=0.02)

    def test_of_a_tensor_and_a_number(self, run):
        result = run("aten::normal", np.full(40_000, 3, "f8"), 2.0, None)
        assert result.dtype == np.float64
        assert abs(result.mean() - 3) < 0.05
        assert abs(result.std() - 2) < 0.04
        result = run("aten::normal", 3.0, np.full(40_000, 2, "f2"), None)
        assert result.dtype == np.float16
        assert abs(result.astype("f8").mean() - 3) < 0.05

    @pytest.mark.parametrize("generator", [(), (None,)])
    def test_of_numbers_and_a_size(self, run, generator):
        result = run("aten::normal", 3.0, 2.0, (200, 200), *generator, 7, None, "cpu", False)
        assert (result.shape, result.dtype) == ((200, 200), np.float64)
        assert abs(result.mean() - 3) < 0.05

    @pytest.mark.parametrize("names", [("",) * 4, ("input", "mean", "std", "generator")])
    def test_into_a_tensor(self, run, names):
        """``Tensor.normal_``, which pnnx takes for ``torch.normal``."""
        result = run("torch.normal", LIKE, 3.0, 2.0, None, names=names)
        assert (result.shape, result.dtype) == (LIKE.shape, np.float32)
        assert abs(result.mean() - 3) < 0.03
        assert abs(result.std() - 2) < 0.02

    def test_no_deviation_gives_the_means(self, run):
        result = run("aten::normal", self.MEANS, np.zeros(3, "f4"), None)
        np.testing.assert_array_equal(result, np.tile(self.MEANS, 3))

    @pytest.mark.parametrize(
        ("mean", "std", "sentence"),
        [
            (np.zeros(2), np.array([1.0, -1.0]), "std is negative"),
            (np.zeros(2), np.ones(3), "mean and std do not broadcast: their shapes are 2, 3"),
        ],
    )
    def test_refusals(self, run, mean, std, sentence):
        with pytest.raises(LayerError, match=sentence):
            run("aten::normal", mean, std, None)


class TestFills:
    """In-place methods, which give a new tensor here."""

    @pytest.mark.parametrize(
        ("name", "arguments", "mean", "deviation"),
        [
            pytest.param("uniform", (1.0, 4.0), 2.5, 3 / math.sqrt(12), id="uniform"),
            pytest.param("exponential", (4.0,), 0.25, 0.25, id="exponential"),
            # Means exp(m + s²/2), variances (exp(s²) - 1) exp(2m + s²)
            pytest.param("log_normal", (0.5, 0.25), 1.70107, 0.43203, id="log_normal"),
            # Means 1 / p, variances (1 - p) / p²
            pytest.param("geometric", (0.4,), 2.5, math.sqrt(0.6) / 0.4, id="geometric"),
            pytest.param("random", (2, 8), 4.5, math.sqrt(35 / 12), id="random"),
            pytest.param("random", (6,), 2.5, math.sqrt(35 / 12), id="random from 0"),
            pytest.param("random", (), 2**23, 2**24 / math.sqrt(12), id="random anything"),
        ],
    )
    def test_moments(self, run, name, arguments, mean, deviation):
        result = run(f"aten::{name}", LIKE, *arguments, None)
        assert (result.shape, result.dtype) == (LIKE.shape, np.float32)
        wide = result.astype(np.float64)
        # 150 000 numbers: a deviation of the mean of .0026 of one
        assert abs(wide.mean() - mean) < 0.013 * deviation
        assert abs(wide.std() - deviation) < 0.02 * deviation

    def test_cauchy_has_quartiles_only(self, run):
        result = run("aten::cauchy", LIKE, 3.0, 2.0, None)
        np.testing.assert_allclose(np.quantile(result, [0.25, 0.5, 0.75]), [1, 3, 5], atol=0.06)

    @pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
    def test_limits(self, run, dtype):
        like = np.zeros(200_000, dtype)
        even = run("aten::uniform", like, 5.0, 5.25, None)
        assert even.dtype == dtype
        assert even.min() >= 5
        assert even.max() < 5.25
        clocks = run("aten::exponential", like, 1.0, None)
        assert clocks.min() > 0
        assert np.isfinite(np.log(clocks)).all()
        assert run("aten::geometric", like, 0.9, None).min() == 1

    @pytest.mark.parametrize(
        ("dtype", "least", "most"),
        [
            ("?", 0, 1),
            ("u1", 0, 255),
            ("i1", 0, 127),
            ("i2", 0, 2**15 - 1),
            ("i8", 0, 2**63 - 1),
            ("f2", 0, 2**11),
            ("f4", 0, 2**24),
            ("f8", 0, 2**53),
        ],
    )
    def test_as_far_as_the_dtype_counts(self, run, dtype, least, most):
        result = run("aten::random", np.zeros(50_000, dtype), None)
        assert result.dtype == dtype
        assert least <= result.min() < 0.01 * most + 1
        assert 0.99 * most - 1 < result.max() <= most
        if dtype == "u1":
            assert len(np.unique(result)) == 256

    def test_integers_can_be_filled_with_trials(self, run):
        assert run("aten::geometric", np.zeros(9, "i4"), 0.5, None).dtype == np.int32

    def test_the_bounds_may_coincide(self, run):
        assert (run("aten::uniform", LIKE, 2.0, 2.0, None) == 2).all()

    @pytest.mark.parametrize(
        ("name", "arguments", "sentence"),
        [
            ("uniform", (2.0, 1.0), "the range from 2.0 up to 1.0 is empty"),
            ("exponential", (0.0,), "lambd=0.0 is not larger than 0"),
            ("cauchy", (0.0, -1.0), "sigma=-1.0 is not larger than 0"),
            ("log_normal", (0.0, 0.0), "std=0.0 is not larger than 0"),
            ("geometric", (0.0,), "p=0.0 does not lie between 0 and 1"),
            ("geometric", (1.0,), "p=1.0 does not lie between 0 and 1"),
            ("random", (3, 3), "no integer from 3 up to 3"),
        ],
    )
    def test_refusals(self, run, name, arguments, sentence):
        with pytest.raises(LayerError, match=sentence):
            run(f"aten::{name}", LIKE, *arguments, None)

    @pytest.mark.parametrize(
        ("name", "arguments"),
        [
            ("uniform", (0, 1)),
            ("exponential", (1,)),
            ("cauchy", (0, 1)),
            ("log_normal", (0, 1)),
        ],
    )
    def test_continuous_ones_need_floats(self, run, name, arguments):
        with pytest.raises(LayerError, match="int32 cannot hold them"):
            run(f"aten::{name}", np.zeros(3, "i4"), *arguments, None)


@pytest.mark.parametrize(
    ("operator_type", "operands"),
    [
        ("torch.rand_like", (LIKE,)),
        ("torch.randn_like", (LIKE,)),
        ("aten::randint", (1000, (50,), None, *NONE)),
        ("aten::randperm", (50, None, *NONE)),
        ("aten::normal", (LIKE, 1.0, None)),
        ("aten::uniform", (LIKE, 0.0, 1.0, None)),
        ("aten::exponential", (LIKE, 1.0, None)),
        ("aten::random", (LIKE, None)),
        ("aten::cauchy", (LIKE, 0.0, 1.0, None)),
        ("aten::geometric", (LIKE, 0.1, None)),
        ("aten::log_normal", (LIKE, 0.0, 1.0, None)),
    ],
)
def test_seeds(run, operator_type, operands):
    once = run(operator_type, *operands, seed=3)
    np.testing.assert_array_equal(run(operator_type, *operands, seed=3), once)
    assert (run(operator_type, *operands, seed=4) != once).any()
