"""Statistics and histograms against the standard library's exact arithmetic and NumPy."""

from __future__ import annotations

import math
import statistics as stdlib
import threading
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from engine.statistics import channel_statistics, histogram, sampling_step, statistics

inf, nan = math.inf, math.nan


def exact(values):
    """Mean and population deviation of finite numbers, in rational arithmetic."""
    numbers = [Fraction(value) for value in values]
    return float(stdlib.mean(numbers)), math.sqrt(stdlib.pvariance(numbers))


def test_a_small_tensor():
    s = statistics(np.array([[1.0, -2.0, 0.0], [nan, inf, -inf], [-0.0, nan, 4.0]], np.float32))
    assert (s.count, s.finite, s.zeros, s.nan, s.pinf, s.ninf) == (9, 5, 2, 2, 1, 1)
    assert (s.min, s.max, s.mean) == (-2.0, 4.0, pytest.approx(0.6, rel=1e-7))
    assert s.std == pytest.approx(math.sqrt((1 + 4 + 16) / 5 - 0.36), rel=1e-6)
    assert s.zero_fraction == 2 / 9
    assert (s.dtype, s.shape) == (np.float32, (3, 3))


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("bool", [True, False, True, True]),
        ("uint8", [0, 255, 7, 7]),
        ("int8", [-128, 127, 0]),
        ("int16", [-32768, 32767, 5]),
        ("int32", [-(2**31), 2**31 - 1, 3]),
        ("int64", [-(2**62), 2**62 + 2**40, 1024]),
        ("uint64", [0, 2**63]),
        ("float16", [0.5, -65504.0, 2.25]),
        ("float32", [1e30, -1e30, 5e29]),
        ("float32", [1e-30, 2e-30, 4e-30]),
        ("float64", [1e100, -1e90, 2e99]),
    ],
)
def test_dtypes(dtype, values):
    array = np.array(values, dtype)
    s = statistics(array)
    mean, std = exact(array.tolist())
    assert (s.min, s.max) == (min(array.tolist()), max(array.tolist()))
    assert isinstance(s.min, float if "float" in dtype else int)
    assert s.mean == pytest.approx(mean, rel=1e-6)
    assert s.std == pytest.approx(std, rel=1e-6)
    assert s.zeros == values.count(0)
    assert s.dtype == array.dtype


def test_complex_numbers_count_by_magnitude():
    array = np.array([3 + 4j, 0j, complex(nan, 1), complex(inf, 0), 5j], np.complex64)
    s = statistics(array)
    assert (s.min, s.max, s.zeros, s.nan, s.pinf, s.ninf) == (0.0, 5.0, 1, 1, 1, 0)
    assert s.mean == pytest.approx(10 / 3)
    assert histogram(array, 0, 5, 5).tolist() == [1, 0, 0, 0, 2]


@pytest.mark.parametrize("array", [np.zeros(0), np.zeros((2, 0, 3)), np.full((2, 2), nan)])
def test_nothing_finite(array):
    s = statistics(array)
    assert (s.count, s.nan, s.zeros, s.finite) == (array.size, array.size, 0, 0)
    assert s.zero_fraction == 0
    assert all(map(math.isnan, (s.min, s.max, s.mean, s.std)))
    assert histogram(array, 0, 1, 4).tolist() == [0, 0, 0, 0]


def test_a_scalar():
    s = statistics(np.array(2.5, np.float32))
    assert (s.count, s.min, s.max, s.mean, s.std, s.shape) == (1, 2.5, 2.5, 2.5, 0.0, ())


@pytest.mark.parametrize("value", [0.1, -1e20, 3e38, 1e-40])
def test_constant_data_has_no_deviation(value):
    array = np.full(200_000, value, np.float32)
    s = statistics(array)
    assert s.min == s.max == s.mean == float(np.float32(value))
    assert s.std == 0.0


def test_a_small_deviation_from_a_large_mean():
    array = 1000 + np.random.default_rng(5).normal(size=300_000).astype(np.float32) * 0.01
    s = statistics(array)
    assert s.mean == pytest.approx(array.mean(dtype=np.float64), rel=1e-9)
    assert s.std == pytest.approx(array.std(dtype=np.float64), rel=1e-4)


def test_chunks_of_unlike_data():
    """Parts that differ by orders of magnitude, and special values in one of them."""
    array = np.concatenate([np.full(70_000, 1e4), np.linspace(-1, 1, 140_001), [nan, inf]])
    s = statistics(array.astype(np.float32))
    finite = array[:-2].astype(np.float32).astype(np.float64)
    assert s.mean == pytest.approx(finite.mean(), rel=1e-6)
    assert s.std == pytest.approx(finite.std(), rel=1e-6)
    assert (s.min, s.max, s.nan, s.pinf, s.zeros) == (-1, 1e4, 1, 1, 1)


def test_whole_chunks_without_a_finite_element():
    array = np.concatenate([np.full(200_000, nan), [1.0, 3.0]])
    s = statistics(array)
    assert (s.nan, s.finite, s.mean, s.std) == (200_000, 2, 2.0, 1.0)


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a.transpose(2, 0, 1),
        lambda a: a[::-1, :, ::3],
        lambda a: a[:, 5:6],
        lambda a: np.broadcast_to(a[:1, :1, :1], (40, 50, 60)),
        lambda a: a.astype(">f4"),
    ],
)
def test_strides_do_not_matter(view):
    array = np.random.default_rng(1).normal(size=(40, 50, 60)).astype(np.float32)
    array[3, 5, ::7] = [nan, inf, 0, 0, -inf, nan, nan, 0, 0]
    viewed = view(array)
    s, packed = statistics(viewed), statistics(np.ascontiguousarray(viewed, np.float32))
    assert (s.zeros, s.nan, s.pinf, s.ninf) == (
        packed.zeros,
        packed.nan,
        packed.pinf,
        packed.ninf,
    )
    assert (s.min, s.max) == (packed.min, packed.max)
    assert s.mean == pytest.approx(packed.mean, rel=1e-6, abs=1e-7)
    assert s.std == pytest.approx(packed.std, rel=1e-6, abs=1e-7)
    assert (histogram(viewed, -2, 2) == histogram(np.ascontiguousarray(viewed), -2, 2)).all()


@given(
    hnp.arrays(
        np.float32,
        hnp.array_shapes(max_dims=3, max_side=6),
        elements=st.floats(width=32, min_value=-1e10, max_value=1e10),
    )
)
def test_random_tensors(array):
    s = statistics(array)
    mean, std = exact(array.ravel().tolist())
    scale = max(abs(s.min), abs(s.max), 1e-300)
    assert (s.min, s.max) == (array.min(), array.max())
    assert s.mean == pytest.approx(mean, rel=1e-6, abs=1e-6 * scale)
    assert s.std == pytest.approx(std, rel=1e-5, abs=1e-6 * scale)


@pytest.mark.parametrize(
    "values",
    [
        pytest.param([-1.7e308, 1.7e308, 1.7e308, 0.0], id="ends-of-float64"),
        pytest.param([1.7e308, 1.7e308 * (1 - 2**-50)], id="almost-alike-and-huge"),
        pytest.param([5e-324, 0.0, -1e-323], id="denormal-float64"),
        pytest.param([1e-200, 3e-200], id="squares-underflow"),
        pytest.param([1e-160, 1e160], id="small-and-large"),
    ],
)
def test_ends_of_the_floats(values):
    s = statistics(np.array(values))
    mean, std = exact_std(values)
    assert (s.min, s.max, s.zeros) == (min(values), max(values), values.count(0))
    assert s.mean == pytest.approx(mean, rel=1e-9, abs=5e-324)
    assert s.std == pytest.approx(std, rel=1e-6, abs=5e-324)


def exact_std(values):
    """Mean and deviation of any floats: `math.sqrt` cannot take what the squares become."""
    numbers = [Fraction(value) for value in values]
    mean = sum(numbers) / len(numbers)
    largest = max(abs(number - mean) for number in numbers)
    squares = sum(((number - mean) / largest) ** 2 for number in numbers) / len(numbers)
    return float(mean), float(largest * Fraction(math.sqrt(squares)))


@pytest.mark.parametrize(
    "values",
    [
        pytest.param([1e-45, 3e-45, 0.0, -1e-45], id="denormal"),
        pytest.param([1e-42] * 300 + [2e-42], id="denormal-rows"),
        pytest.param([3.4e38, -3.4e38, 3e38], id="huge"),
        pytest.param([1e4] * 700 + [0.0] * 300, id="constant-parts"),
        pytest.param([16777216.0] * 999 + [16777218.0], id="one-step-apart"),
        pytest.param([1e-14, 1e-14 * (1 + 2**-20)] * 200, id="small-and-alike"),
        pytest.param([255.0, 254.0] * 500, id="white"),
    ],
)
@pytest.mark.parametrize("repeat", [1, 700])
def test_float32_as_exact_as_said(values, repeat):
    array = np.tile(np.array(values, np.float32), repeat)
    s = statistics(array)
    mean, std = exact_std([float(value) for value in np.array(values, np.float32)])
    assert (s.min, s.max) == (array.min(), array.max())
    assert s.std == pytest.approx(std, rel=1e-6)
    assert abs(s.mean - mean) < 1e-6 * max(std, abs(mean))


HALVES = 1_500_000  # more than are left to one thread


def test_large_arrays_in_halves():
    """Unlike halves, special values on both sides of the middle and in the last row."""
    array = np.zeros(HALVES, np.float32)
    array[: HALVES // 2] = 3.0
    array[[5, HALVES // 2 - 1]] = nan, inf
    array[[HALVES // 2, -1, -2, -3]] = -inf, 7.0, nan, -1.0
    s = statistics(array)
    assert (s.nan, s.pinf, s.ninf) == (2, 1, 1)
    assert (s.min, s.max) == (-1.0, 7.0)
    assert s.zeros == HALVES // 2 - 4
    threes, finite = HALVES // 2 - 2, HALVES - 4
    assert s.mean == pytest.approx((3.0 * threes + 7 - 1) / finite, rel=1e-7)
    squares = (9.0 * threes + 49 + 1) / finite
    assert s.std == pytest.approx(math.sqrt(squares - s.mean**2), rel=1e-6)
    assert histogram(array, -1, 7, 8).tolist() == [1, s.zeros, 0, 0, threes, 0, 0, 1]


@pytest.mark.parametrize("size", [HALVES, HALVES + 1, HALVES + 257])
def test_large_arrays_without_anything_finite(size):
    for special in (nan, inf, -inf):
        s = statistics(np.full(size, special, np.float32))
        assert (s.nan + s.pinf + s.ninf, s.finite) == (size, 0)
        assert math.isnan(s.mean)
    half = np.full(size, nan, np.float32)
    half[-2:] = 1, 3
    s = statistics(half)
    assert (s.nan, s.min, s.max, s.mean, s.std) == (size - 2, 1, 3, 2, 1)


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("bool", [True, False, True]),
        ("uint8", [0, 255, 7]),
        ("int16", [-300, 300, 0]),
        ("int64", [-5, 2**40, 0]),
        ("float16", [0.5, -2.0, 0.0]),
        ("float64", [1e20, -1e20, 0.0]),
        ("complex64", [3 + 4j, 0, 5j]),
    ],
)
@pytest.mark.parametrize("order", ["C", "F", "strided", "swapped"])
def test_large_arrays_of_any_kind(dtype, values, order):
    array = np.tile(np.array(values, dtype), (3, HALVES // 9))
    arranged = {
        "C": lambda a: a,
        "F": np.asfortranarray,
        "strided": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
        "swapped": lambda a: a.astype(a.dtype.newbyteorder()),
    }[order](array)
    s = statistics(arranged)
    reals = [abs(v) if isinstance(v, complex) else v for v in np.array(values, dtype).tolist()]
    mean, std = exact(reals)
    assert (s.count, s.zeros) == (array.size, array.size // 3)
    assert (s.min, s.max) == (min(reals), max(reals))
    assert s.mean == pytest.approx(mean, rel=1e-6, abs=1e-6 * std)
    assert s.std == pytest.approx(std, rel=1e-6)
    assert histogram(arranged, min(reals), max(reals), 2).sum() == array.size


def test_an_array_that_is_not_aligned():
    data = np.zeros(4 * 1000 + 1, np.uint8)
    array = data[1:].view(np.float32)
    array[:] = np.arange(1000)
    assert not array.flags.aligned
    s = statistics(array)
    assert (s.min, s.max, s.mean) == (0, 999, 499.5)
    assert histogram(array, 0, 1000, 4).tolist() == [250] * 4


class TestSamples:
    @pytest.mark.parametrize(
        ("size", "step"),
        [(0, 1), (1, 1), (2**21, 1), (2**21 + 1, 11), (50_000_000, 191), (10**9, 3821)],
    )
    def test_step(self, size, step):
        assert sampling_step(size) == step
        assert size / step <= 2**21

    @pytest.mark.parametrize("arrange", [lambda a: a, lambda a: np.repeat(a, 2)[::2]])
    def test_share_of_each_value(self, arrange):
        array = arrange(
            np.repeat(np.arange(4.0, dtype=np.float32), [100_000, 300_000, 0, 600_000])
        )
        counts = histogram(array, 0, 4, 4, step=7)
        assert abs(counts.sum() - 1_000_000 / 7) < 20
        np.testing.assert_allclose(counts / counts.sum(), [0.1, 0.3, 0, 0.6], atol=1e-3)

    def test_no_pattern_hides(self):
        # columns of a picture 64 wide, of which a step of 64 would see only one
        array = np.tile(np.arange(64, dtype=np.float32), (40_000, 1))
        counts = histogram(array, 0, 64, 64, step=sampling_step(array.size))
        assert counts.min() > 0.9 * counts.mean()

    def test_of_everything(self):
        array = np.random.default_rng(2).normal(size=(300, 500)).astype(np.float32)
        np.testing.assert_array_equal(histogram(array, -3, 3, step=1), histogram(array, -3, 3))

    @pytest.mark.parametrize("size", [0, 1, 15, 16, 17])
    def test_of_hardly_anything(self, size):
        assert histogram(np.zeros(size), -1, 1, 2, step=5).sum() <= size

    def test_step_that_is_none(self):
        with pytest.raises(ValueError, match="one of 1 or more"):
            histogram(np.zeros(3), 0, 1, step=0)


def test_no_large_temporaries():
    array = np.random.default_rng(0).normal(size=(64, 512, 512)).astype(np.float32)
    array[0, 0, 0] = nan
    tracemalloc.start()
    statistics(array.transpose(1, 0, 2))
    histogram(array, -0.5, 0.5)
    channel_statistics(array, 0)
    channel_statistics(array[:, :64, :64], 0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < array.nbytes / 16


def test_histogram_by_hand():
    array = np.array([0.0, 0.1, 0.25, 0.5, 0.74, 0.75, 1.0, -0.1, 1.1, nan, inf, -inf])
    assert histogram(array, 0.0, 1.0, 4).tolist() == [2, 1, 2, 2]
    assert histogram(array, 0.25, 0.75, 2).tolist() == [1, 3]
    assert histogram(array, 5.0, 6.0, 2).tolist() == [0, 0]
    assert histogram(np.arange(10), 0, 9, 10).tolist() == [1] * 10
    assert histogram(np.array([True, False, True]), 0, 1, 2).tolist() == [1, 2]
    assert histogram(np.arange(256, dtype=np.uint8), -0.5, 255.5).tolist() == [1] * 256
    counts = histogram(array, 0.0, 1.0)
    assert (counts.shape, counts.dtype, counts.sum()) == ((256,), np.int64, 7)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32])
def test_histogram_against_numpy(dtype):
    # multiples of 1/4 never come to lie between a bin's boundary and its rounding
    rng = np.random.default_rng(9)
    array = (rng.integers(-40, 40, 150_000) / 4).astype(dtype)
    for low, high, bins in [(-10, 10, 80), (-5, 5, 20), (-10, 9.75, 79)]:
        expected, _ = np.histogram(array.astype(np.float64), bins, (low, high))
        np.testing.assert_array_equal(histogram(array, low, high, bins), expected)


def test_a_range_of_one_value():
    array = np.array([2.0, 2.0, 3.0, nan])
    assert histogram(array, 2.0, 2.0, 5).tolist() == [0, 0, 2, 0, 0]


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        ([-3e38, 0.0, 3e38], -3e38, 3e38),
        ([1e-40, 2e-40, 3e-40], 1e-40, 3e-40),
        ([1e8, 1e8 + 8, 1e8 + 16], 1e8, 1e8 + 16),
    ],
)
def test_extreme_ranges(values, low, high):
    array = np.array(values, np.float32)
    low, high = float(array[0]), float(array[-1])
    assert histogram(array, low, high, 2).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("low", "high", "bins", "message"),
    [
        (1.0, 0.0, 4, "not finite and ordered"),
        (nan, 0.0, 4, "not finite and ordered"),
        (0.0, inf, 4, "not finite and ordered"),
        (0.0, 1.0, 0, "at least one bin"),
    ],
)
def test_ranges_that_are_none(low, high, bins, message):
    with pytest.raises(ValueError, match=message):
        histogram(np.zeros(3), low, high, bins)


@pytest.mark.parametrize("shape", [(3, 5, 4, 6), (2, 5, 300, 300), (5,), (4, 5, 0)])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.complex64])
def test_channels(shape, dtype):
    rng = np.random.default_rng(4)
    array = (rng.normal(size=shape) * 9).astype(dtype)
    if dtype is not np.int64 and len(shape) > 1 and array.size:
        array[0, 1, 0] = nan
        array[:, 2] = inf
        array[-1, 3, 0] = -inf
        array[0, 4, 0] = 0
    axis = 1 if len(shape) > 1 else 0
    s = channel_statistics(array, axis)
    for c in range(5):
        one = statistics(np.take(array, c, axis))
        for field in ("min", "max", "mean", "std", "zeros", "nan", "pinf", "ninf"):
            values = getattr(s, field)
            assert values.shape == (5,)
            assert values.dtype == (
                np.int64 if field in {"zeros", "nan", "pinf", "ninf"} else np.float64
            )
            np.testing.assert_allclose(values[c], getattr(one, field), rtol=1e-5, atol=1e-5)


def test_channels_by_hand():
    array = np.array([[[1, 2], [3, 4]], [[0, 0], [nan, 2]], [[inf, nan], [-inf, nan]]])
    s = channel_statistics(array, 0)
    np.testing.assert_array_equal(s.min, [1, 0, nan])
    np.testing.assert_array_equal(s.max, [4, 2, nan])
    np.testing.assert_allclose(s.mean, [2.5, 2 / 3, nan])
    np.testing.assert_allclose(s.std, [math.sqrt(1.25), math.sqrt(8 / 9), nan])
    assert s.zeros.tolist() == [0, 2, 0]
    assert s.nan.tolist() == [0, 1, 2]
    assert s.pinf.tolist() == [0, 0, 1]
    assert s.ninf.tolist() == [0, 0, 1]


def test_no_channels():
    s = channel_statistics(np.zeros((2, 0, 3)), 1)
    assert s.min.shape == s.nan.shape == (0,)
    assert s.nan.dtype == np.int64


LARGEST = np.finfo(np.float64).max
LEAST = 5e-324


@pytest.mark.parametrize(
    "values",
    [
        [-1e308],
        [1e308, 1e308],
        [LARGEST, -LARGEST],
        [LARGEST, LARGEST, -LARGEST, 0.0],
        [1e154, -1e155, 3e200],
        [1e160, 1e160 * (1 + 1e-10)],
        [1e-160, 3e-160, -7e-170],
        [LEAST, 0.0],
        [LEAST, LEAST * 3, -LEAST],
        [1e308, 1.0, -1e-308],
    ],
)
def test_numbers_whose_squares_no_float_holds(values):
    """Scaled by a power of two, so that the sums are those of ordinary numbers."""
    mean, squares = exact_parts(values)
    for array in (np.array(values), np.array([*values, inf, nan, -inf])):
        s = statistics(array)
        assert (s.min, s.max) == (min(values), max(values))
        assert s.mean == pytest.approx(mean, rel=1e-9, abs=LEAST)
        assert s.std == pytest.approx(squares, rel=1e-6, abs=LEAST)
        channels = channel_statistics(np.stack([array, np.zeros_like(array)]), 0)
        assert channels.mean[0] == pytest.approx(mean, rel=1e-9, abs=LEAST)
        assert channels.std[0] == pytest.approx(squares, rel=1e-6, abs=LEAST)
        assert (channels.mean[1], channels.std[1]) == (0, 0)


def exact_parts(values):
    """Mean and deviation, the root drawn of a fraction in the middle of the floats."""
    numbers = [Fraction(value) for value in values]
    variance = stdlib.pvariance(numbers)
    shift = max(abs(n) for n in numbers)
    root = math.sqrt(variance / shift**2) * shift if shift else 0
    return float(stdlib.mean(numbers)), float(root)


def test_large_numbers_in_several_chunks():
    """Each chunk is of one number, and their means are as far apart as floats can be."""
    array = np.repeat([1e308, -1e308, 1e308], 1 << 20)
    s = statistics(array)
    assert s.mean == pytest.approx(1e308 / 3, rel=1e-12)
    assert s.std == pytest.approx(1e308 * math.sqrt(8 / 9), rel=1e-12)


def test_a_histogram_of_the_least_numbers():
    array = np.array([0.0, LEAST, LEAST, 2 * LEAST, 3 * LEAST])
    assert histogram(array, 0.0, 3 * LEAST, 3).tolist() == [1, 2, 2]
    array = np.array([0.0, 0.6e-300, 1.4e-300, 1.8e-300, 2e-300])
    assert histogram(array, 0.0, 2e-300, 2).tolist() == [2, 3]


def test_on_one_thread_where_no_other_may_start(monkeypatch):
    """A large array is gone through in two halves, or else as a whole."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    array = np.arange(1 << 21, dtype=np.float32) % 7
    monkeypatch.setattr(threading.Thread, "start", refuse)
    found = statistics(array)
    assert (found.count, found.min, found.max) == (1 << 21, 0, 6)
    assert found.mean == pytest.approx(3, abs=1e-5)
    assert histogram(array, 0, 6, 7).sum() == 1 << 21
