"""What boxes tell about values."""

from __future__ import annotations

import numpy as np
import pytest

from kuiper_studio.colormaps import lookup_table
from kuiper_studio.engine_service.summary import THUMBNAIL, Summary, summarise, thumbnail


def pixels(summary):
    return np.frombuffer(summary.pixels, np.uint8).reshape(THUMBNAIL, THUMBNAIL, 4)


def test_counts():
    array = np.array([[0, 0, -1.5, np.nan], [np.inf, -np.inf, 3, np.nan]], np.float32)
    summary = summarise(array)
    assert (summary.low, summary.high) == (-1.5, 3)
    assert (summary.count, summary.zeros) == (8, 2)
    assert (summary.nan, summary.pinf, summary.ninf) == (2, 1, 1)


def test_nothing_finite():
    summary = summarise(np.full((1, 1, 2, 2), np.nan))
    assert summary.low is None
    assert summary.high is None
    assert (pixels(summary) == (0xFF, 0x00, 0xC8, 0xFF)).all()


def test_empty():
    summary = summarise(np.zeros((1, 0, 4)))
    assert summary.count == 0
    assert summary.pixels is None


@pytest.mark.parametrize(("value", "text"), [(7, "7"), (None, "None"), ("zeros", "zeros")])
def test_no_array(value, text):
    assert summarise(value) == Summary(text=text)


def test_first_array_of_a_tuple():
    assert summarise((1, (np.array([4.0]), np.array([5.0])))).low == 4


def test_complex_by_magnitude():
    assert summarise(np.array([3 + 4j])).high == 5


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float64"])
def test_dtypes(dtype):
    array = np.arange(32).reshape(1, 2, 4, 4).astype(dtype)
    assert summarise(array).low == 0
    assert pixels(summarise(array)).shape == (66, 66, 4)


def test_channel_of_most_variance_nearest_neighbour():
    array = np.zeros((1, 3, 3, 3), np.float32)
    array[0, 1] = 0.25
    array[0, 2] = np.arange(9).reshape(3, 3)
    picture = thumbnail(array, signed=False)
    table = lookup_table("viridis")
    for row in range(THUMBNAIL):
        for column in range(THUMBNAIL):
            value = array[0, 2, row // 22, column // 22]  # 66 pixels, 3 elements
            assert picture[row, column].tolist() == table[int(value / 8 * 255)].tolist()


def test_signed_is_white_at_zero_and_special_elements_stand_out():
    array = np.array([[-1, 0, 4], [np.nan, np.inf, -np.inf]], np.float32)
    picture = thumbnail(array, signed=True)[[0, -1]][:, [0, 33, -1]]
    table = lookup_table("RdBu_r")
    assert picture[0].tolist() == [table[95].tolist(), table[127].tolist(), table[255].tolist()]
    assert picture[1].tolist() == [
        [255, 0, 200, 255],
        [255, 138, 0, 255],
        [0, 145, 255, 255],
    ]


@pytest.mark.parametrize("number", [0.0, 1.0, -3e30])
def test_constant_has_the_middle_colour(number):
    """As it has in the tensor view."""
    picture = thumbnail(np.full((1, 1, 4, 4), number), signed=False)
    middle_of_viridis = (33, 144, 140, 255)
    np.testing.assert_allclose(picture.reshape(-1, 4), [middle_of_viridis] * 66**2, atol=1)


@pytest.mark.parametrize(
    "shape",
    [(), (1,), (5,), (1, 10), (1, 512, 1, 1), (1, 7, 96), (2, 3, 4, 5, 6), (1, 1, 1, 9)],
)
def test_every_rank(shape):
    array = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    picture = thumbnail(array, signed=False)
    assert picture.shape == (66, 66, 4)
    assert picture.dtype == np.uint8


def test_vector_is_wrapped_row_by_row():
    picture = thumbnail(np.arange(9.0), signed=False)
    table = lookup_table("viridis")
    middles = picture[11::22, 11::22].reshape(9, 4)
    assert middles.tolist() == [table[int(i / 8 * 255)].tolist() for i in range(9)]


def test_all_true_looks_other_than_all_false():
    false, true = (
        thumbnail(np.full((1, 1, 4, 4), truth), signed=False)[16, 16, :3].tolist()
        for truth in (False, True)
    )
    assert (false, true) == ([0x44, 0x01, 0x54], [0xFD, 0xE7, 0x25])  # the ends of viridis
