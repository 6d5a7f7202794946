"""Pooling to a given output size."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from engine.errors import LayerError, ParameterError

RNG = np.random.default_rng


def slow_windows(size, count):
    return [
        range(math.floor(o * size / count), math.ceil((o + 1) * size / count))
        for o in range(count)
    ]


def slow_adaptive(x, counts, reduce):
    rank = len(counts)
    sizes = x.shape[-rank:]
    results = np.zeros((*x.shape[:-rank], *counts))
    windows = [slow_windows(size, count) for size, count in zip(sizes, counts, strict=True)]
    for lead in np.ndindex(*x.shape[:-rank]):
        for o in np.ndindex(*counts):
            axes = [w[i] for i, w in zip(o, windows, strict=True)]
            places = list(itertools.product(*axes))
            values = [float(x[(*lead, *p)]) for p in places]
            flat = [int(np.ravel_multi_index(p, sizes)) for p in places]
            results[(*lead, *o)] = reduce(values, flat)
    return results


@pytest.mark.parametrize("size", [3 * 4099, 3 * 4099 + 1])
@pytest.mark.parametrize("axis", [-1, -2])
def test_long_windows(run, size, axis):
    image = RNG(4).standard_normal((2, 1, size, 5)).astype(np.float32)
    image[0, 0, size // 2, 1] = np.nan
    image, counts = (image, (3, 5)) if axis == -2 else (image.swapaxes(-1, -2), (5, 3))
    windows = [slice(w.start, w.stop) for w in slow_windows(size, 3)]
    parts = [np.moveaxis(image, axis, 0)[w].astype(np.float64) for w in windows]
    for operator_type, reduce in (
        ("nn.AdaptiveMaxPool2d", np.max), ("nn.AdaptiveAvgPool2d", np.mean)
    ):  # fmt: skip
        expected = np.stack([reduce(part, axis=0) for part in parts], axis)
        found = run(operator_type, image, output_size=counts)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        assert found.dtype == np.float32


def test_work_is_bounded_by_the_data(run):
    """Not by the length of a window, which is millions of steps in Python."""
    image = np.zeros((1, 1, 5_000_003), np.float32)
    image[0, 0, [1, 2_000_000, 5_000_002]] = 1, 2, 3
    found = run("F.adaptive_max_pool1d", image, output_size=(3,))
    np.testing.assert_array_equal(found, [[[1, 2, 3]]])
    with pytest.raises(LayerError, match="positions of a window are too many"):
        run("F.adaptive_max_pool1d", image, output_size=(3,), return_indices=True)


ROW = np.array([[1, 2, 3, 4, 5, 6, 7]], np.float32)


@pytest.mark.parametrize(
    ("operator_type", "output_size", "expected"),
    [
        pytest.param("nn.AdaptiveAvgPool1d", (1,), [4], id="all"),
        # Windows 0..2, 2..4, 4..6: neighbours share an element.
        pytest.param("nn.AdaptiveAvgPool1d", (3,), [2, 4, 6], id="overlapping"),
        pytest.param("nn.AdaptiveAvgPool1d", (2,), [2.5, 5.5], id="two"),
        pytest.param("nn.AdaptiveAvgPool1d", 7, [1, 2, 3, 4, 5, 6, 7], id="same"),
        pytest.param("nn.AdaptiveAvgPool1d", (0,), [1, 2, 3, 4, 5, 6, 7], id="0-keeps"),
        pytest.param("F.adaptive_avg_pool1d", None, [1, 2, 3, 4, 5, 6, 7], id="none-keeps"),
        pytest.param("F.adaptive_max_pool1d", (3,), [3, 5, 7], id="max"),
        # Windows 0..0, 0..1, 1..2, 2..3, 3..3, 3..4, 4..5, 5..6, 6..6.
        pytest.param("nn.AdaptiveMaxPool1d", (9,), [1, 2, 3, 4, 4, 5, 6, 7, 7], id="larger"),
    ],
)
def test_values(run, operator_type, output_size, expected):
    y = run(operator_type, ROW, output_size=output_size)
    np.testing.assert_allclose(y, [expected], rtol=1e-6)
    assert y.dtype == np.float32


def test_output_size_as_an_operand(run):
    x = np.arange(16, dtype=np.float32).reshape(1, 4, 4)
    names = ("input", "output_size")
    expected = [[[2.5, 4.5], [10.5, 12.5]]]
    for size in ((2, 2), np.array([2, 2])):
        y = run("F.adaptive_avg_pool2d", x, size, names=names)
        np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("counts", [(1, 1, 1), (2, 3, 4), (5, 2, 6), (7, 6, 5), (9, 1, 7)])
@pytest.mark.parametrize("batched", [True, False])
def test_against_the_definition(run, rank, counts, batched):
    counts = counts[:rank]
    shape = (2, 2, *(7, 6, 5)[:rank])[0 if batched else 1 :]
    x = RNG(sum(counts)).integers(-9, 9, shape).astype(np.float32)
    y = run(f"nn.AdaptiveAvgPool{rank}d", x, output_size=counts)
    mean = slow_adaptive(x, counts, lambda v, f: sum(v) / len(v))
    np.testing.assert_allclose(y, mean, rtol=1e-5, atol=1e-6)
    values, indices = run(
        f"nn.AdaptiveMaxPool{rank}d", x, output_size=counts, return_indices=True
    )
    np.testing.assert_array_equal(values, slow_adaptive(x, counts, lambda v, f: max(v)))
    first = slow_adaptive(x, counts, lambda v, f: f[v.index(max(v))])
    np.testing.assert_array_equal(indices, first)
    assert indices.dtype == np.int64
    alone = run(f"F.adaptive_max_pool{rank}d", x, output_size=counts, return_indices=False)
    np.testing.assert_array_equal(alone, values)


@pytest.mark.parametrize(
    ("output_size", "shape", "message"),
    [
        ((2, 2, 2), (1, 4, 4), "output_size=(2, 2, 2) needs 2 numbers"),
        ((-1, 2), (1, 4, 4), "spatial size (4, 4) cannot be pooled to output_size=(-1, 2)"),
        ((1, 1), (1, 0, 4), "spatial size (0, 4) cannot be pooled to output_size=(1, 1)"),
        (
            (1, 1),
            (4, 4),
            "input has 2 dimensions, not 4 (or 3 without a batch): its shape is 4×4",
        ),
    ],
)
def test_wrong_sizes(run, output_size, shape, message):
    with pytest.raises((LayerError, ParameterError)) as caught:
        run("nn.AdaptiveAvgPool2d", np.zeros(shape, "f4"), output_size=output_size)
    assert str(caught.value) == message


@pytest.mark.parametrize("dtype", ["f2", "f8"])
def test_dtypes(run, dtype):
    y = run("nn.AdaptiveAvgPool2d", np.ones((1, 5, 5), dtype), output_size=(2, 3))
    assert y.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(y, np.ones((1, 2, 3)))


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 13])
def test_against_pytorch(run, rank, count):
    torch = pytest.importorskip("torch")
    x = RNG(count).standard_normal((2, 3, *(8, 11, 9)[:rank]), dtype=np.float32)
    x[0, 0, 3] = np.nan
    counts = (count, 4, 7)[:rank]
    given = torch.from_numpy(x)
    functional = torch.nn.functional
    expected = getattr(functional, f"adaptive_avg_pool{rank}d")(given, counts)
    found = run(f"F.adaptive_avg_pool{rank}d", x, output_size=counts)
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-5, atol=1e-6)
    pairs = getattr(functional, f"adaptive_max_pool{rank}d")(given, counts, return_indices=True)
    both = run(f"F.adaptive_max_pool{rank}d", x, output_size=counts, return_indices=True)
    for ours, theirs in zip(both, pairs, strict=True):
        np.testing.assert_array_equal(ours, theirs.numpy())
