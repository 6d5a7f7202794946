"""Colour tables, values to colours, and channels side by side."""

from __future__ import annotations

import numpy as np
import pytest

from engine.pictures import (
    COLOR_MAPS,
    DIVERGING_MAPS,
    NAN_COLOR,
    NINF_COLOR,
    PINF_COLOR,
    TileGrid,
    colorize,
    default_map,
    enlarge,
    finite_range,
    fitted_range,
    lookup_table,
    quantize,
    real_values,
    render_picture,
    shrink,
    telling_channel,
    tile_grid,
    tile_pictures,
    tile_sheet,
)

GREY = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 4, axis=1)
GREY[:, 3] = 255


# Colour tables; single entries of the published tables, typed from them


@pytest.mark.parametrize(
    ("name", "entry", "color"),
    [
        pytest.param("viridis", 0, (0x44, 0x01, 0x54), id="viridis-low"),
        pytest.param("viridis", 128, (33, 145, 140), id="viridis-middle"),
        pytest.param("viridis", 255, (0xFD, 0xE7, 0x25), id="viridis-high"),
        pytest.param("magma", 128, (183, 55, 121), id="magma-middle"),
        pytest.param("inferno", 128, (188, 55, 84), id="inferno-middle"),
        pytest.param("cividis", 255, (0xFF, 0xEA, 0x46), id="cividis-high"),
        pytest.param("grey", 77, (77, 77, 77), id="grey"),
        pytest.param("RdBu_r", 0, (0x05, 0x30, 0x61), id="RdBu-blue-below"),
        pytest.param("RdBu_r", 255, (0x67, 0x00, 0x1F), id="RdBu-red-above"),
        pytest.param("RdBu_r", 51, (0x43, 0x93, 0xC3), id="RdBu-third-class"),
        pytest.param("PuOr", 0, (0x7F, 0x3B, 0x08), id="PuOr-orange-below"),
    ],
)
def test_table_entries(name, entry, color):
    table = lookup_table(name).astype(int)
    assert np.abs(table[entry, :3] - color).max() <= 1


@pytest.mark.parametrize("name", COLOR_MAPS)
def test_tables_are_opaque_shared_and_protected(name):
    table = lookup_table(name)
    assert table.shape == (256, 4)
    assert table.dtype == np.uint8
    assert (table[:, 3] == 255).all()
    assert table is lookup_table(name)
    with pytest.raises(ValueError, match="read-only"):
        table[0, 0] = 1


@pytest.mark.parametrize("name", sorted(DIVERGING_MAPS))
def test_diverging_maps_are_white_at_zero(name):
    middle = lookup_table(name)[127:129, :3]
    assert (middle >= 244).all()


def test_unknown_map():
    with pytest.raises(KeyError):
        lookup_table("jet")


# Ranges


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(-1, 1, "RdBu_r"), (0, 1, "viridis"), (-2, 0, "viridis"), (3, 4, "viridis")],
)
def test_default_map(low, high, expected):
    assert default_map(low, high) == expected


@pytest.mark.parametrize(
    ("low", "high", "symmetric", "expected"),
    [
        pytest.param(0, 2, False, (0, 2), id="as-is"),
        pytest.param(-1, 2, True, (-2, 2), id="symmetric"),
        pytest.param(0, 0, False, (-1e-6, 1e-6), id="zeros"),
        pytest.param(0, 0, True, (-1e-6, 1e-6), id="zeros-symmetric"),
        pytest.param(500, 500, False, (499.9995, 500.0005), id="constant"),
        pytest.param(0, 5e-324, False, (-1e-6, 1e-6), id="all-but-zero"),
        pytest.param(0, 1e-290, False, (0, 1e-290), id="tiny"),
        pytest.param(-1.7e308, 1.7e308, False, (-1.7e308, 1.7e308), id="huge"),
        pytest.param(-8, -8, True, (-8, 8), id="constant-symmetric"),
    ],
)
def test_fitted_range(low, high, symmetric, expected):
    found = fitted_range(low, high, symmetric=symmetric)
    assert found == pytest.approx(expected, abs=0)
    assert found[0] < found[1]


@pytest.mark.parametrize(
    ("low", "high", "symmetric", "kind", "expected"),
    [
        pytest.param(1, 1, False, "b", (0, 1), id="all-true"),
        pytest.param(0, 0, False, "b", (0, 1), id="all-false"),
        pytest.param(1, 1, True, "b", (-1, 1), id="true-symmetric"),
        pytest.param(7, 7, False, "i", (6.5, 7.5), id="one-integer"),
        pytest.param(2**62, 2**62, False, "u", (2**62 * 0.999999, 2**62 * 1.000001), id="huge"),
        pytest.param(3, 9, False, "i", (3, 9), id="integers"),
    ],
)
def test_range_of_values_that_are_no_floats(low, high, symmetric, kind, expected):
    found = fitted_range(low, high, symmetric=symmetric, kind=kind)
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 5, 3], (1, 5)),
        ([np.nan, 2, np.inf, -np.inf, 4], (2, 4)),
        ([np.nan, np.inf], None),
        ([], None),
    ],
)
def test_finite_range(values, expected):
    assert finite_range(np.array(values, np.float32)) == expected


@pytest.mark.parametrize(
    ("array", "expected", "dtype"),
    [
        pytest.param(np.array([3 + 4j]), [5], np.float64, id="complex"),
        pytest.param(np.array([True, False]), [1, 0], np.uint8, id="bool"),
        pytest.param(np.array([1.5], np.float16), [1.5], np.float32, id="half"),
        pytest.param(np.array([-7], np.int16), [-7], np.int16, id="int16"),
    ],
)
def test_real_values(array, expected, dtype):
    values = real_values(array)
    assert values.dtype == dtype
    assert values.tolist() == expected


class TestTellingChannel:
    def test_most_variance(self):
        """Against a loop over the elements of planes so small that all are looked at."""
        planes = (
            np.random.default_rng(4).normal(size=(7, 5, 6)) * np.arange(1, 8)[::-1, None, None]
        )
        planes[3] *= 20
        spread = []
        for plane in planes.tolist():
            values = [value for row in plane for value in row]
            mean = sum(values) / len(values)
            spread.append(sum((value - mean) ** 2 for value in values) / len(values))
        assert telling_channel(planes) == spread.index(max(spread)) == 3

    def test_zeros_are_passed_over_in_large_planes(self):
        planes = np.zeros((300, 200, 100), np.float16)
        planes[211] = np.linspace(-1, 1, 100)
        assert telling_channel(planes) == 211

    def test_the_first_of_equals(self):
        assert telling_channel(np.ones((4, 3, 3))) == 0

    def test_a_single_one(self):
        assert telling_channel(np.full((1, 3, 3), np.nan)) == 0

    def test_special_values_count_as_zero(self):
        planes = np.full((3, 2, 2), np.nan, np.float32)
        planes[0, 0, 0] = np.inf
        planes[2] = [[0, 1], [2, 3]]
        assert telling_channel(planes) == 2

    def test_numbers_whose_squares_are_infinite(self):
        planes = np.ones((2, 2, 2))
        planes[1] = [[1e308, -1e308], [0, 0]]
        assert telling_channel(planes) == 0


def test_real_values_are_not_copied():
    array = np.zeros(3, np.float32)
    assert real_values(array) is array


# Values to colours


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint8])
def test_quantize_divides_the_range_evenly(dtype):
    values = np.array([-1, 0, 1, 2, 3, 4, 9]).astype(dtype)
    expected = [255 if v > 3 else int(v * 64) for v in np.maximum(values.astype(float), 0)]
    assert quantize(values, 0, 4).tolist() == expected


@pytest.mark.parametrize(
    ("values", "low", "high", "expected"),
    [
        pytest.param([-1.5e308, 0, 1.5e308], -1.5e308, 1.5e308, [0, 128, 255], id="huge"),
        pytest.param([0, 1e-40, 2e-40], 0, 2e-40, [0, 128, 255], id="denormal"),
        pytest.param([-np.inf, np.inf], 0, 1, [0, 255], id="infinite"),
        pytest.param([1e6, 1e6 + 0.5], 1e6, 1e6 + 1, [0, 128], id="far-from-zero"),
    ],
)
def test_quantize_extremes(values, low, high, expected):
    assert quantize(np.array(values, np.float64), low, high).tolist() == expected


def test_quantize_float32_of_extreme_ranges():
    values = np.array([-3e38, 0, 3e38], np.float32)
    assert quantize(values, -3e38, 3e38).tolist() == [0, 128, 255]


def test_quantize_with_a_range_for_each_channel():
    values = np.array([[[1.0]], [[1.0]]], np.float32)
    low, high = np.zeros((2, 1, 1)), np.array([2.0, 4.0]).reshape(2, 1, 1)
    assert quantize(values, low, high).ravel().tolist() == [128, 64]


def test_colorize_marks_special_values():
    values = np.array([0.0, np.nan, np.inf, -np.inf], np.float32)
    assert [tuple(c) for c in colorize(values, 0, 1, GREY).tolist()] == [
        (0, 0, 0, 255),
        NAN_COLOR,
        PINF_COLOR,
        NINF_COLOR,
    ]


def test_colorize_without_marks():
    values = np.array([np.nan, np.inf, -np.inf], np.float32)
    colors = colorize(values, 0, 1, GREY, special=False)
    assert colors.tolist() == [[0, 0, 0, 0], [255, 255, 255, 255], [0, 0, 0, 255]]


def test_colorize_leaves_the_values_alone():
    values = np.array([[1.0, np.nan]], np.float32)
    values.flags.writeable = False
    assert colorize(values, 0, 1, GREY).shape == (1, 2, 4)


# Sizes


def test_shrink_averages_what_falls_on_a_pixel():
    plane = np.arange(16, dtype=np.float32).reshape(1, 4, 4)
    # Means of the four 2 x 2 blocks, by hand
    assert shrink(plane, 2, 2).tolist() == [[[2.5, 4.5], [10.5, 12.5]]]


def test_shrink_of_uneven_sizes_against_a_loop():
    rng = np.random.default_rng(3)
    plane = rng.normal(size=(7, 5))
    expected = np.empty((3, 2))
    for row, (top, bottom) in enumerate([(0, 2), (2, 4), (4, 7)]):
        for column, (left, right) in enumerate([(0, 2), (2, 5)]):
            expected[row, column] = plane[top:bottom, left:right].mean()
    np.testing.assert_allclose(shrink(plane, 3, 2), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("special", "expected"), [(np.nan, np.nan), (np.inf, np.inf), (-np.inf, -np.inf)]
)
def test_shrink_loses_no_special_value(special, expected):
    plane = np.zeros((1, 4, 4), np.float32)
    plane[0, 1, 2] = special
    small = shrink(plane, 2, 2)
    np.testing.assert_array_equal(small, [[[0, expected], [0, 0]]])


def test_shrink_of_large_values_stays_finite():
    plane = np.full((1, 2, 2), 3e38, np.float32)
    np.testing.assert_allclose(shrink(plane, 1, 1), [[[3e38]]], rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float16])
def test_shrink_of_other_dtypes_does_not_overflow(dtype):
    plane = np.full((1, 8, 8), 200, dtype)
    assert shrink(plane, 2, 2).tolist() == [[[200, 200], [200, 200]]]


def test_shrink_to_the_same_size_is_the_array():
    plane = np.zeros((1, 3, 3), np.float32)
    assert shrink(plane, 3, 3) is plane


def test_shrink_takes_some_of_very_many_elements():
    plane = np.ones((1, 2000, 2000), np.float32)
    assert (shrink(plane, 10, 10) == 1).all()


def test_enlarge_repeats():
    plane = np.array([[[1, 2]]])
    assert enlarge(plane, 2, 3).tolist() == [[[1, 1, 1, 2, 2, 2], [1, 1, 1, 2, 2, 2]]]
    assert enlarge(plane, 1, 1) is plane


# Mosaics


@pytest.mark.parametrize(
    ("count", "plane", "area", "columns", "tile"),
    [
        pytest.param(64, (56, 56), (269, 269), 8, (31, 31), id="64-shrunken"),
        pytest.param(4, (7, 7), (60, 60), 2, (28, 28), id="whole-multiple"),
        pytest.param(1, (10, 10), (95, 95), 1, (90, 90), id="single"),
        # 2 columns would leave 19 pixels of height for a tile, enough for 10 only.
        pytest.param(6, (10, 20), (186, 63), 3, (60, 30), id="wide-channels"),
    ],
)
def test_tile_grid(count, plane, area, columns, tile):
    grid = tile_grid(count, plane, area)
    assert (grid.columns, (grid.tile_width, grid.tile_height)) == (columns, tile)
    assert grid.width <= area[0]
    assert grid.height <= area[1]


def test_tile_grid_prefers_full_rows():
    # 7 columns would give 32 pixels a tile and one tile alone in the last row.
    grid = tile_grid(64, (56, 56), (250, 330))
    assert 64 % grid.columns == 0


@pytest.mark.parametrize("plane", [(1, 56), (56, 1), (500, 2), (2, 2)])
def test_tiles_are_never_too_small_to_hit(plane):
    grid = tile_grid(200, plane, (100, 100))
    assert min(grid.tile_width, grid.tile_height) >= 6


def test_tile_at_is_the_inverse_of_origin():
    grid = TileGrid(7, 3, 10, 8, 2)
    for tile in range(7):
        x, y = grid.origin(tile)
        assert grid.tile_at(x, y) == grid.tile_at(x + 9, y + 7) == tile
        assert grid.tile_at(x + 10, y) is None  # the gap
    assert grid.tile_at(12, 20) is None  # behind the last tile
    assert grid.tile_at(-1, 0) is None
    assert (grid.rows, grid.width, grid.height) == (3, 34, 28)


def test_tile_pictures():
    grid = TileGrid(3, 2, 2, 1, 1)
    tiles = np.zeros((3, 1, 1, 4), np.uint8)
    tiles[:, 0, 0, 0] = [10, 20, 30]
    picture = tile_pictures(tiles, grid)
    assert picture[..., 0].tolist() == [[10, 10, 0, 20, 20], [0] * 5, [30, 30, 0, 0, 0]]


def test_tiles_are_written_over_those_of_another_value():
    grid = TileGrid(3, 2, 4, 4, 1)  # every element of 2 x 1 is 2 x 4 pixels
    sheet = tile_sheet(grid)
    for value in (200, 10):
        tiles = np.full((3, 2, 1, 4), value, np.uint8)
        tiles[:, 1] = value + 1
        picture = tile_pictures(tiles, grid, sheet)
        upper, lower = [value] * 4, [value + 1] * 4
        assert picture[..., 1].tolist() == [
            *[[*upper, 0, *upper]] * 2,
            *[[*lower, 0, *lower]] * 2,
            [0] * 9,
            *[[*upper, 0, 0, 0, 0, 0]] * 2,
            *[[*lower, 0, 0, 0, 0, 0]] * 2,
        ]
        assert np.shares_memory(picture, sheet)


def test_colors_with_blue_first():
    table = GREY.copy()
    table[255] = [1, 2, 3, 255]
    values = np.array([1.0, np.nan, np.inf, -np.inf], np.float32)
    assert colorize(values, 0, 1, table, blue_first=True).tolist() == [
        [3, 2, 1, 255],
        [0xC8, 0x00, 0xFF, 255],
        [0x00, 0x8A, 0xFF, 255],
        [0xFF, 0x91, 0x00, 255],
    ]


# Whole tensors


@pytest.mark.parametrize(
    "shape",
    [(1, 64, 14, 14), (2, 3, 5, 7), (3, 40, 30), (6, 9), (1000,), (1, 10), (), (2, 2, 3, 4, 5)],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, bool, np.complex64])
def test_every_shape_and_dtype_has_a_picture(shape, dtype):
    array = np.random.default_rng(5).integers(-3, 4, shape)
    picture = render_picture(np.asarray(array).astype(dtype))
    assert picture.ndim == 3
    assert picture.dtype == np.uint8
    assert min(picture.shape[:2]) >= 16
    assert picture[..., 3].any()


def test_picture_of_nothing():
    assert render_picture(np.zeros((1, 0, 4))).tolist() == [[[0, 0, 0, 0]]]


def test_picture_of_one_channel_is_its_colours():
    picture = render_picture(np.array([[0.0, 1.0]] * 40), color_map="grey")
    # Elements are squares: 2 columns, 40 rows, each once along both axes at least
    assert picture.shape[0] / picture.shape[1] == pytest.approx(20)
    assert picture[0, 0].tolist() == [0, 0, 0, 255]
    assert picture[0, -1].tolist() == [255, 255, 255, 255]


def test_picture_uses_a_given_range():
    picture = render_picture(np.full((4, 4), 0.5), color_map="grey", value_range=(0, 1))
    assert (picture[..., :3] == 128).all()


def test_picture_is_limited():
    picture = render_picture(np.zeros((1, 300, 64, 64), np.float32), limit=512)
    assert max(picture.shape) <= 512


def test_bars_stand_on_zero():
    picture = render_picture(np.array([1.0, -1.0, np.nan]))
    width = picture.shape[1] // 3
    top, bottom = picture[:40], picture[-40:]
    assert top[:, 0, 3].all()
    assert not bottom[:, 0, 3].any()
    assert not top[:, width, 3].any()
    assert bottom[:, width, 3].all()
    assert (picture[:, -1] == NAN_COLOR).all()
