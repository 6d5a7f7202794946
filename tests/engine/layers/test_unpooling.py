"""Max unpooling."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError

VALUES = np.array([[[5, 7], [8, 9]]], np.float32)
PLACES = np.array([[[1, 2], [12, 15]]])


@pytest.mark.parametrize(
    ("params", "width"),
    [({}, 4), ({"output_size": (5, 5)}, 5), ({"output_size": (1, 5, 5)}, 5)],
)
def test_values(run, params, width):
    y = run("nn.MaxUnpool2d", VALUES, PLACES, kernel_size=2, **params)
    expected = np.zeros((1, width, width), np.float32)
    for place, value in zip(PLACES.ravel(), VALUES.ravel(), strict=True):
        expected[0, place // width, place % width] = value
    np.testing.assert_array_equal(y, expected)
    assert y.dtype == np.float32


def test_undoes_pooling(run):
    x = np.random.default_rng(1).random((2, 3, 8), dtype=np.float32)
    largest, places = run("nn.MaxPool1d", x, kernel_size=2, return_indices=True)
    y = run("F.max_unpool1d", largest, places, kernel_size=2, stride=2)
    np.testing.assert_array_equal(y, np.where(np.isin(x, largest), x, 0))


def test_an_index_outside(run):
    with pytest.raises(LayerError, match="index 15 is outside of the output's 3×3"):
        run("nn.MaxUnpool2d", VALUES, PLACES, kernel_size=2, output_size=(3, 3))


def test_other_shapes(run):
    with pytest.raises(LayerError) as caught:
        run("nn.MaxUnpool2d", VALUES, PLACES[:, :1], kernel_size=2)
    assert str(caught.value) == "the input has shape 1×2×2, the indices 1×1×2"


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(("kernel", "stride", "padding"), [(2, None, 0), (3, 2, 1), (2, 3, 0)])
def test_against_pytorch(run, rank, kernel, stride, padding):
    torch = pytest.importorskip("torch")
    functional = torch.nn.functional
    x = torch.from_numpy(
        np.random.default_rng(rank).standard_normal((2, 3, *(9, 8, 7)[:rank]), dtype=np.float32)
    )
    largest, places = getattr(functional, f"max_pool{rank}d")(
        x, kernel, stride, padding, return_indices=True
    )
    size = tuple(x.shape[2:])
    expected = getattr(functional, f"max_unpool{rank}d")(
        largest, places, kernel, stride, padding, output_size=size
    )
    found = run(
        f"F.max_unpool{rank}d", largest.numpy(), places.numpy(), kernel_size=kernel,
        stride=stride, padding=padding, output_size=size,
    )  # fmt: skip
    # Where windows overlap a value may come back twice, to the same place.
    np.testing.assert_array_equal(found, expected.numpy())


@pytest.mark.parametrize(("kind", "more"), [("2d", ()), ("3d", ((1, 2, 2), (0, 0, 0)))])
def test_as_torchscript_calls_it(run, kind, more):
    values, places, size = VALUES, PLACES, (4, 4)
    if kind == "3d":
        values, places, size = VALUES[np.newaxis], PLACES[np.newaxis], (1, 4, 4)
    y = run(f"aten::max_unpool{kind}", values, places, size, *more)
    expected = run("nn.MaxUnpool2d", VALUES, PLACES, kernel_size=2)
    np.testing.assert_array_equal(y.reshape(1, 4, 4), expected)
