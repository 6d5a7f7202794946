"""Fractional max pooling: a slow loop, PyTorch, and what chance may not change."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from engine.errors import LayerError, ParameterError


def starts(sample: np.float32, size: int, count: int, kernel: int) -> list[int]:
    """Graham's pseudorandom sequence, shifted so that it begins at 0."""
    if count == 1:
        return [size - kernel]
    apart = np.float32(size - kernel) / np.float32(count - 1)
    first = int(sample * apart)
    inner = [int((np.float32(i) + sample) * apart) - first for i in range(count - 1)]
    return [*inner, size - kernel]


def slow(x: np.ndarray, kernel: tuple, sizes: tuple, samples: np.ndarray) -> tuple:
    rank = len(kernel)
    order = (1, 0) if rank == 2 else (0, 1, 2)
    values = np.empty((*x.shape[:2], *sizes), x.dtype)
    places = np.empty(values.shape, np.int64)
    strides = [int(np.prod(x.shape[3 + axis :])) for axis in range(rank)]
    for n, c in itertools.product(*map(range, x.shape[:2])):
        begin = [
            starts(samples[n, c, order[axis]], x.shape[2 + axis], sizes[axis], kernel[axis])
            for axis in range(rank)
        ]
        for place in itertools.product(*map(range, sizes)):
            corner = [begin[axis][place[axis]] for axis in range(rank)]
            cells = [
                tuple(a + b for a, b in zip(corner, tap, strict=True))
                for tap in itertools.product(*map(range, kernel))
            ]
            best = max(cells, key=lambda cell: x[(n, c, *cell)])
            values[(n, c, *place)] = x[(n, c, *best)]
            places[(n, c, *place)] = sum(a * b for a, b in zip(best, strides, strict=True))
    return values, places


CASES = [
    pytest.param((7, 9), (2, 3), (3, 4), id="2d"),
    pytest.param((6, 6), (3, 2), (1, 5), id="2d, one row"),
    pytest.param((5, 6, 8), (2, 2, 3), (3, 4, 5), id="3d"),
]


@pytest.fixture
def draw():
    rng = np.random.default_rng(2)
    return lambda *shape: rng.random(shape, np.float32)


@pytest.mark.parametrize(("image", "kernel", "sizes"), CASES)
def test_given_places(run, draw, image, kernel, sizes):
    x, samples = draw(2, 3, *image), draw(2, 3, len(image))
    name = f"aten::fractional_max_pool{len(image)}d"
    values, places = run(name, x, kernel, sizes, samples)
    expected, expected_places = slow(x, kernel, sizes, samples)
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(places, expected_places)
    assert places.dtype == np.int64


@pytest.mark.parametrize(("image", "kernel", "sizes"), CASES)
@pytest.mark.parametrize("batch", [True, False])
def test_pytorch(run, draw, image, kernel, sizes, batch):
    torch = pytest.importorskip("torch")
    x, samples = draw(2, 3, *image), draw(2, 3, len(image))
    x[0, 1, ..., 3] = np.nan
    if not batch:
        x, samples = x[0], samples[:1]
    name = f"fractional_max_pool{len(image)}d"
    function = getattr(torch.ops.aten, name)
    expected = function(torch.from_numpy(x), kernel, sizes, torch.from_numpy(samples))
    ours = run(f"aten::{name}", x, kernel, sizes, samples)
    for one, other in zip(ours, expected, strict=True):
        np.testing.assert_array_equal(one, other.numpy())


@pytest.mark.parametrize(
    ("params", "shape"),
    [
        ({"output_size": (3, 4)}, (2, 3, 3, 4)),
        ({"output_size": 5}, (2, 3, 5, 5)),
        ({"output_ratio": (0.5, 0.75)}, (2, 3, 4, 7)),
        ({"output_ratio": 0.5}, (2, 3, 4, 5)),
    ],
    ids=str,
)
def test_drawn_places(run, draw, params, shape):
    x = draw(2, 3, 9, 10)
    params = {"kernel_size": 2, "return_indices": True, **params}
    values, places = run("nn.FractionalMaxPool2d", x, **params)
    assert values.shape == shape
    flat = x.reshape(2, 3, 90)
    taken = np.take_along_axis(flat, places.reshape(2, 3, -1), 2)
    np.testing.assert_array_equal(values, taken.reshape(shape))
    seen = {run("F.fractional_max_pool2d", x, **params, seed=s)[0].tobytes() for s in range(9)}
    assert len(seen) > 1
    again = run("nn.FractionalMaxPool2d", x, **params)[0]
    np.testing.assert_array_equal(again, values)


def test_one_result_without_indices(run, draw):
    results = run("F.fractional_max_pool3d", draw(2, 5, 5, 5), kernel_size=2, output_size=2)
    assert [r.shape for r in results] == [(2, 2, 2, 2)]


@pytest.mark.parametrize(
    ("sizes", "samples", "sentence"),
    [
        ((5, 2), (1, 1, 2), "5 windows of 3 are too many for an axis of 6"),
        ((2, 2), (1, 1, 3), r"of shape 1×1×3 are not 2 numbers for each of 1 planes"),
    ],
)
def test_refusals(run, draw, sizes, samples, sentence):
    with pytest.raises(LayerError, match=sentence):
        run("aten::fractional_max_pool2d", draw(1, 1, 6, 6), 3, sizes, draw(*samples))


def test_no_size(run, draw):
    with pytest.raises(ParameterError, match="output_size and output_ratio are missing"):
        run("nn.FractionalMaxPool2d", draw(1, 6, 6), kernel_size=2)
