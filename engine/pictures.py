"""Makes pictures of tensors: colour tables, values to colours, channels side by side.

Everything here is NumPy on numbers: the window paints these arrays, dumps save them. Colours
are RGBA, ``uint8``, not premultiplied.

The tables are linear between control points. Those of viridis, magma, inferno and cividis
were chosen so that no entry differs by more than 1 from the original tables (S. van der Walt,
N. Smith, E. Firing; J. Nuñez, C. Anderton, R. Renslow; CC0). RdBu and PuOr are the 11-class
schemes of ColorBrewer 2.0 (C. Brewer, M. Harrower, The Pennsylvania State University),
spread evenly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from engine.values import Array

__all__ = [
    "COLOR_MAPS",
    "DIVERGING_MAPS",
    "LEAST_SPAN",
    "NAN_COLOR",
    "NINF_COLOR",
    "PINF_COLOR",
    "TileGrid",
    "colorize",
    "default_map",
    "enlarge",
    "finite_range",
    "fitted_range",
    "lookup_table",
    "quantize",
    "real_values",
    "render_picture",
    "shrink",
    "telling_channel",
    "tile_grid",
    "tile_pictures",
    "tile_sheet",
]

# Elements that are looked at for the channel to show: of all channels, and of each at least.
_TELLING_SAMPLES: Final = 1 << 15
_LEAST_SAMPLES: Final = 16

# Entry (hexadecimal) and colour of each control point.
_KNOTS: Final = {
    "viridis": "00:440154 14:481d6f 23:46307e 3a:3e4c8a 5e:2d718e 84:1f948c 93:1fa287 a2:2ab07f"
    " b3:44bf70 c6:6ccd5a df:aadc32 ed:d0e11c f4:e2e418 fd:f8e621 ff:fde725",
    "cividis": "00:00204d 14:002e6f 1f:01366e 23:12386d 2a:233e6c 3c:3d4a6b 63:64666f 85:828079"
    " ad:aa9f75 d3:d2c066 ec:efd753 fb:ffe642 ff:ffea46",
    "grey": "00:000000 ff:ffffff",
    "magma": "00:000004 07:03030f 14:0e0b2b 25:241253 30:36106b 3a:471078 4b:621980 68:902a81"
    " 83:bc3978 97:db476a a8:ef5d5e b6:f8765c c4:fc9065 d8:feb67c f4:fde9aa ff:fcfdbf",
    "inferno": "00:000004 07:030210 16:120a32 23:260c51 2d:380962 3a:4d0d6c 51:721a6e 69:982766"
    " 80:bc3754 97:da4e3c ac:ef6c23 c1:fa9008 c7:fb9b06 ce:fca80d d9:fbbe23 e5:f6d543"
    " ee:f2e661 f6:f2f482 fe:fafda1 ff:fcffa4",
}
_CLASSES: Final = {
    "RdBu_r": "053061 2166ac 4393c3 92c5de d1e5f0 f7f7f7 fddbc7 f4a582 d6604d b2182b 67001f",
    "PuOr": "7f3b08 b35806 e08214 fdb863 fee0b6 f7f7f7 d8daeb b2abd2 8073ac 542788 2d004b",
}
# For phases: both ends are one colour. Bastian Bechtold's twilight (public domain) at 33 even
# places, read from matplotlib 3.11's table; in between it is off by 2 of 255 at most.
_CYCLES: Final = {
    "twilight": "e2d9e2 d6d7dd c2ced4 aac2cc 93b4c6 80a5c3 7297c1 6887be 6276ba 5f64b5 5e51ad"
    " 5d3da1 592a8f 511b77 45135c 381145 301437 3a113a 4a1342 5f174a 741e4f 872750 983550"
    " a64550 b25652 bb6958 c27c63 c78f72 cca287 d1b5a1 d8c6bd ded3d4 e2d9e2",
}

COLOR_MAPS: Final = (*_KNOTS, *_CLASSES, *_CYCLES)
DIVERGING_MAPS: Final = frozenset(_CLASSES)

NAN_COLOR: Final = (0xFF, 0x00, 0xC8, 0xFF)
PINF_COLOR: Final = (0xFF, 0x8A, 0x00, 0xFF)
NINF_COLOR: Final = (0x00, 0x91, 0xFF, 0xFF)

# Relative width of the range of a single value, and of ranges that count as one, to prevent a
# division by (almost) zero.
_EPSILON: Final = 1e-6
LEAST_SPAN: Final = 1e-300
# Ranges outside of this do not survive float32 arithmetic.
_FLOAT32_SPANS: Final = (1e-30, 1e37)
# Elements that one pixel of a shrunken picture averages, along each axis.
_SAMPLES: Final = 8
_MANY_SAMPLES: Final = 1 << 22
# Maximum number of contiguous pieces to copy one by one; with more it is slower.
_MOST_BREAKS: Final = 4
_MIN_TILE: Final = 6
# Tiles may be this much smaller for the sake of full rows.
_GOOD_SHARE: Final = 0.85


# Colour tables and ranges


@lru_cache(maxsize=len(COLOR_MAPS))
def lookup_table(name: str) -> Array:
    """Colours of a map.

    Parameters
    ----------
    name : str
        One of `COLOR_MAPS`.

    Returns
    -------
    ndarray of shape (256, 4), uint8
        RGBA, opaque, from the low end to the high one. Read-only, shared.

    Raises
    ------
    KeyError
        There is no such map.
    """
    if name in _KNOTS:
        pairs = [knot.split(":") for knot in _KNOTS[name].split()]
        places = np.array([int(place, 16) for place, _ in pairs], np.float64)
        colors = [color for _, color in pairs]
    else:
        colors = (_CLASSES | _CYCLES)[name].split()
        places = np.linspace(0, 255, len(colors))
    points = np.array([list(bytes.fromhex(color)) for color in colors], np.float64)
    table = np.full((256, 4), 255, np.uint8)
    for channel in range(3):
        line = np.interp(np.arange(256), places, points[:, channel])
        table[:, channel] = np.rint(line)
    table.flags.writeable = False
    return table


def default_map(low: float, high: float) -> str:
    """Return the default map of values from `low` to `high`: diverging for both signs."""
    return "RdBu_r" if low < 0 < high else "viridis"


def fitted_range(
    low: float, high: float, *, symmetric: bool = False, kind: str = "f"
) -> tuple[float, float]:
    """Range that shows values from `low` to `high`.

    Parameters
    ----------
    low, high : float
        Finite; `low` not above `high`.
    symmetric : bool, optional
        Zero in the middle.
    kind : str, optional
        Kind of the values' dtype, as NumPy writes it.

    Returns
    -------
    (float, float)
        Never empty: a single value v gets v ± max(1, abs(v)) · 1e-6, a single integer v ± 0.5,
        and bools always have 0 to 1: whether all are true is told by the colour.
    """
    if kind == "b":
        return (-1.0 if symmetric else 0.0), 1.0
    if symmetric:
        high = max(abs(low), abs(high))
        low = -high
    flat = high / 2 - low / 2 < LEAST_SPAN
    least = _EPSILON * max(1.0, abs(low), abs(high)) if flat else 0.0
    if flat and kind in "iu":
        least = max(least, 0.5)
    return low - least, high + least


def real_values(array: Array) -> Array:
    """Return the real values of an array that can be coloured.

    Returns
    -------
    ndarray
        Magnitudes of complex numbers, 0 and 1 for bools, float32 for float16; otherwise
        `array` itself, aliased.
    """
    if array.dtype.kind == "c":
        return np.abs(array)
    if array.dtype.kind == "b":
        return array.view(np.uint8)
    return array.astype(np.float32) if array.dtype.itemsize == 2 and _floats(array) else array


def telling_channel(planes: Array) -> int:
    """Return the channel of the largest variance, estimated from evenly spaced elements.

    Parameters
    ----------
    planes : ndarray of shape (C, H, W)
        Real values, not empty. NaN and infinite ones count as 0.
    """
    if len(planes) == 1:
        return 0
    samples = max(_LEAST_SAMPLES, _TELLING_SAMPLES // len(planes))
    step = math.ceil(math.sqrt(planes[0].size / samples))
    sample = planes[:, ::step, ::step].astype(np.float64).reshape(len(planes), -1)
    sample[~np.isfinite(sample)] = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        variance = sample.var(axis=1)
    return int(np.argmax(np.where(np.isfinite(variance), variance, -1.0)))


def finite_range(array: Array) -> tuple[float, float] | None:
    """Least and greatest finite value of real numbers; None where there is no finite one."""
    if not array.size:
        return None
    low, high = float(array.min()), float(array.max())
    if math.isfinite(low) and math.isfinite(high):
        return low, high
    finite = array[np.isfinite(array)]
    return (float(finite.min()), float(finite.max())) if finite.size else None


def _floats(array: Array) -> bool:
    return array.dtype.kind == "f"


# Values to colours


def quantize(values: Array, low: float | Array, high: float | Array) -> npt.NDArray[np.uint8]:
    """Entries of a 256-entry table for real values.

    Parameters
    ----------
    values : ndarray
        Of a real dtype.
    low, high : float or ndarray
        The range, which 256 equal steps divide; arrays broadcast against `values`. Values
        outside get the ends' entries.

    Returns
    -------
    ndarray of uint8
        A copy; NaN gets any entry.
    """
    low, high = np.asarray(low, np.float64), np.asarray(high, np.float64)
    with np.errstate(all="ignore"):
        span = high - low
        if not np.isfinite(span).all():
            # Both ends are finite but their difference is not: compute in halves.
            values, low, high = values * 0.5, low * 0.5, high * 0.5
            span = high - low
        least, most = _FLOAT32_SPANS
        narrow = values.dtype == np.float32 and span.min() > least and span.max() < most
        dtype = np.float32 if narrow else np.float64
        scaled = np.subtract(values, low.astype(dtype), dtype=dtype)
        scaled *= (256.0 / span).astype(dtype)
        np.clip(scaled, 0, 255, out=scaled)
        entries: npt.NDArray[np.uint8] = scaled.astype(np.uint8)
    return entries


def colorize(
    values: Array,
    low: float | Array,
    high: float | Array,
    table: Array,
    *,
    special: bool = True,
    blue_first: bool = False,
) -> npt.NDArray[np.uint8]:
    """Colours of real values.

    Parameters
    ----------
    values : ndarray of any shape S
    low, high : float or ndarray
        As for `quantize`.
    table : ndarray of shape (256, 4), uint8
    special : bool, optional
        Whether NaN and the infinities get colours of their own. Otherwise NaN is
        transparent, and the infinities have the ends' colours.
    blue_first : bool, optional
        Blue, green, red, alpha instead of red, green, blue, alpha: as windows have it.

    Returns
    -------
    ndarray of shape S + (4,), uint8
    """
    order = [2, 1, 0, 3] if blue_first else [0, 1, 2, 3]

    def packed(color: tuple[int, int, int, int]) -> np.uint32:
        return np.uint32(np.array(color, np.uint8)[order].view(np.uint32)[0])

    colors = np.ascontiguousarray(table[:, order]).view(np.uint32)[:, 0]
    picture = np.take(colors, quantize(values, low, high))
    if _floats(values) and not np.isfinite(values).all():
        picture[np.isnan(values)] = packed(NAN_COLOR if special else (0, 0, 0, 0))
        if special:
            picture[values == np.inf] = packed(PINF_COLOR)
            picture[values == -np.inf] = packed(NINF_COLOR)
    return picture.view(np.uint8).reshape(*values.shape, 4)


# Sizes


def shrink(planes: Array, rows: int, cols: int) -> Array:
    """Make planes smaller by averaging the elements that fall on each pixel.

    Parameters
    ----------
    planes : ndarray of shape (..., H, W)
        Real values.
    rows, cols : int
        1 to H and 1 to W.

    Returns
    -------
    ndarray of shape (..., rows, cols), floating
        Means. A NaN makes its pixel NaN, an infinity infinite, so that marks do not get lost;
        of more than 8 elements along an axis 4 to 8 are taken, evenly spaced, of more than 4
        2 to 4 where there are very many pixels.
    """
    height, width = planes.shape[-2:]
    if (rows, cols) == (height, width):
        return planes
    pixels = math.prod(planes.shape[:-2]) * rows * cols
    samples = _SAMPLES if pixels * _SAMPLES**2 <= _MANY_SAMPLES else _SAMPLES // 2
    steps = [max(1, size // (to * samples) + (size > to * samples))
             for size, to in ((height, rows), (width, cols))]  # fmt: skip
    planes = planes[..., :: steps[0], :: steps[1]]
    dtype = planes.dtype if planes.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    means = _block_means(planes, rows, cols, dtype)
    if dtype == np.float32 and not np.isfinite(means).all():
        means = _block_means(planes, rows, cols, np.dtype(np.float64)).astype(dtype)
    return means


def _block_means(planes: Array, rows: int, cols: int, dtype: np.dtype[np.floating]) -> Array:
    with np.errstate(all="ignore"):
        for axis, count in ((-2, rows), (-1, cols)):
            size = planes.shape[axis]
            if count < size:
                starts = np.arange(count) * size // count
                lengths = np.diff(starts, append=size)
                planes = _run_means(planes, starts, lengths, axis, dtype)
    return planes


def _run_means(
    planes: Array,
    starts: npt.NDArray[np.intp],
    lengths: npt.NDArray[np.intp],
    axis: int,
    dtype: np.dtype[np.floating],
) -> Array:
    """Means of a few elements each along an axis, one after the other for all runs at once.

    `numpy.add.reduceat` takes four times as long.
    """
    planes = np.ascontiguousarray(planes)  # or `numpy.take` makes a copy each time
    means = _take(planes, starts, axis).astype(dtype, copy=False)
    for place in range(1, int(lengths.max())):
        longer = np.flatnonzero(lengths > place)
        more = np.take(planes, starts[longer] + place, axis=axis)
        means[_along(axis, longer, len(starts))] += more
    longer = np.flatnonzero(lengths > 1)
    divisors = lengths[longer].astype(dtype)
    means[_along(axis, longer, len(starts))] /= divisors[:, None] if axis == -2 else divisors
    return means


def _along(axis: int, places: npt.NDArray[np.intp], size: int) -> tuple[Any, ...]:
    """Index of places along the last axis or the one before; a slice where they are all."""
    chosen = slice(None) if len(places) == size else places
    return (..., chosen, slice(None)) if axis == -2 else (..., chosen)


def _take(planes: Array, places: npt.NDArray[np.intp], axis: int) -> Array:
    """Like `numpy.take`, in a third of its time for mostly contiguous indexes."""
    breaks = np.flatnonzero(np.diff(places) != 1) + 1
    if axis != -1 or len(breaks) > _MOST_BREAKS:
        return np.take(planes, places, axis=axis)
    pieces = [planes[..., part[0] : part[-1] + 1] for part in np.split(places, breaks)]
    return np.concatenate(pieces, axis=-1)


def enlarge(planes: Array, vertical: int, horizontal: int) -> Array:
    """Repeat elements a whole number of times; never between values.

    Parameters
    ----------
    planes : ndarray of shape (C, H, W) or (C, H, W, 4)
    vertical, horizontal : int

    Returns
    -------
    ndarray of shape (C, H * vertical, W * horizontal[, 4])
        `planes` itself where both are 1.
    """
    if vertical > 1:
        planes = np.repeat(planes, vertical, axis=1)
    return np.repeat(planes, horizontal, axis=2) if horizontal > 1 else planes


# Mosaics


@dataclass(frozen=True, slots=True)
class TileGrid:
    """How channels are laid out side by side; lengths in pixels.

    Attributes
    ----------
    count : int
        Number of tiles, row by row.
    columns : int
    tile_width, tile_height : int
        Whole multiples of the channel's size where the channel is enlarged.
    gap : int
        Between tiles.
    """

    count: int
    columns: int
    tile_width: int
    tile_height: int
    gap: int

    @property
    def rows(self) -> int:
        """Number of rows of tiles."""
        return -(-self.count // self.columns)

    @property
    def width(self) -> int:
        """Width of the whole."""
        return self.columns * (self.tile_width + self.gap) - self.gap

    @property
    def height(self) -> int:
        """Height of the whole."""
        return self.rows * (self.tile_height + self.gap) - self.gap

    def origin(self, tile: int) -> tuple[int, int]:
        """Left and top of a tile."""
        row, column = divmod(tile, self.columns)
        return column * (self.tile_width + self.gap), row * (self.tile_height + self.gap)

    def tile_at(self, x: float, y: float) -> int | None:
        """Number of the tile at a place; None in the gaps and outside."""
        column, left = divmod(x, self.tile_width + self.gap)
        row, top = divmod(y, self.tile_height + self.gap)
        if left >= self.tile_width or top >= self.tile_height or not 0 <= column < self.columns:
            return None
        tile = int(row) * self.columns + int(column)
        return tile if 0 <= tile < self.count else None


@lru_cache(maxsize=4096)  # dozens are tried for each tensor, and sizes come again
def tile_grid(
    count: int,
    plane: tuple[int, int],
    area: tuple[float, float],
    *,
    gap: int = 3,
    columns: int | None = None,
) -> TileGrid:
    """Lay tiles out as large as an area allows.

    Parameters
    ----------
    count : int
        Number of channels, at least 1.
    plane : (int, int)
        Rows and columns of a channel.
    area : (float, float)
        Width and height in pixels.
    gap : int, optional
    columns : int, optional
        Tiles in a row; chosen for the largest tiles when not given, or for somewhat smaller
        ones that fill all rows.

    Returns
    -------
    TileGrid
        A tile is a whole multiple of the channel, or, where only less fits, as large as
        fits. It is never under 6 pixels: very flat channels are stretched, and the grid may
        be larger than the area.
    """
    if columns is None:
        columns = _best_columns(count, plane, area, gap)
    rows = np.array([-(-count // columns)])
    width, height = _tile_sizes(np.array([columns]), rows, plane, area, gap)
    return TileGrid(count, columns, int(width[0]), int(height[0]), gap)


def _best_columns(
    count: int, plane: tuple[int, int], area: tuple[float, float], gap: int
) -> int:
    """Return the number of tiles per row that makes them largest, by trying all."""
    columns = np.arange(1, min(count, 64) + 1)
    rows = -(-count // columns)
    width, height = _tile_sizes(columns, rows, plane, area, gap)
    fits = (columns * (width + gap) - gap <= area[0]) & (rows * (height + gap) - gap <= area[1])
    tried = fits if fits.any() else np.ones_like(fits)
    # Of equally large tiles the squarer arrangement, and of those the one with fewer columns.
    order = np.lexsort((-columns, -np.abs(columns - rows), width * height))

    def best_of(chosen: npt.NDArray[np.bool_]) -> int:
        return int(order[chosen[order]][-1])

    best = best_of(tried)
    even = fits & (count % columns == 0) & (width >= _GOOD_SHARE * width[best])
    return int(columns[best_of(even) if even.any() else best])


def _tile_sizes(
    columns: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
    plane: tuple[int, int],
    area: tuple[float, float],
    gap: int,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Widths and heights of tiles, by how many are beside and above each other."""
    height, width = plane
    across, down = (area[0] + gap) / columns - gap, (area[1] + gap) / rows - gap
    scale = np.maximum(np.minimum(across / width, down / height), 1e-6)
    scale = np.where(scale >= 1, np.floor(scale), scale)
    return _tile_edges(width, scale), _tile_edges(height, scale)


def _tile_edges(length: int, scale: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    edges = np.maximum(1, np.floor(length * scale + 1e-6)).astype(np.int64)
    # Whole repeats of every element, so that all are equally large.
    least = length * -(-_MIN_TILE // length) if length < _MIN_TILE else _MIN_TILE
    return np.where(edges >= _MIN_TILE, edges, least)


def tile_pictures(
    planes: Array, grid: TileGrid, sheet: npt.NDArray[np.uint32] | None = None
) -> npt.NDArray[np.uint8]:
    """Arrange coloured tiles side by side in one picture.

    Parameters
    ----------
    planes : ndarray of shape (C, h, w, 4), uint8
        ``grid.count`` pictures; h and w divide the grid's tile size.
    grid : TileGrid
    sheet : ndarray of uint32, optional
        A `tile_sheet` of this grid to write to, because fresh memory takes longer than tiles.

    Returns
    -------
    ndarray of shape (grid.height, grid.width, 4), uint8
        Transparent between the tiles and behind the last one. A view of the sheet.
    """
    if sheet is None:
        sheet = tile_sheet(grid)
    times = max(1, grid.tile_height // planes.shape[1])
    widened = enlarge(planes, 1, max(1, grid.tile_width // planes.shape[2]))
    pixels = np.ascontiguousarray(widened).view(np.uint32)[..., 0]
    high, wide = grid.tile_height + grid.gap, grid.tile_width + grid.gap
    cells = sheet.reshape(grid.rows, high, grid.columns, wide).transpose(0, 2, 1, 3)
    full, rest = divmod(grid.count, grid.columns)
    whole = full * grid.columns
    for row in range(times):
        places = cells[:, :, row : grid.tile_height : times, : grid.tile_width]
        places[:full] = pixels[:whole].reshape(full, grid.columns, *pixels.shape[1:])
        if rest:
            places[full, :rest] = pixels[whole:]
    picture = sheet.view(np.uint8).reshape(*sheet.shape, 4)
    return picture[: grid.height, : grid.width]


def tile_sheet(grid: TileGrid) -> npt.NDArray[np.uint32]:
    """Give transparent pixels for the tiles of a grid, with the gaps behind the last ones."""
    high, wide = grid.tile_height + grid.gap, grid.tile_width + grid.gap
    return np.zeros((grid.rows * high, grid.columns * wide), np.uint32)


# A whole tensor


def render_picture(
    array: Array,
    *,
    color_map: str | None = None,
    value_range: tuple[float, float] | None = None,
    limit: int = 4096,
) -> npt.NDArray[np.uint8]:
    """Picture of a tensor: all channels side by side, one colour scale for all of them.

    Parameters
    ----------
    array : ndarray of any shape
        The last two dimensions are rows and columns, all before them count as channels. One
        dimension, or only one longer than 1, gives bars about zero.
    color_map : str, optional
        One of `COLOR_MAPS`; by default diverging where values change sign, viridis otherwise.
    value_range : (float, float), optional
        Values at the ends of the map; by default the least and greatest finite value,
        symmetric about zero for a diverging map.
    limit : int, optional
        Pixels along either side at most; larger pictures are shrunk.

    Returns
    -------
    ndarray of shape (H', W', 4), uint8
        A single transparent pixel for an empty array.
    """
    values = real_values(array)
    if not values.size:
        return np.zeros((1, 1, 4), np.uint8)
    found = finite_range(values) or (0.0, 1.0)
    name = color_map if color_map is not None else default_map(*found)
    low, high = value_range or fitted_range(
        *found, symmetric=name in DIVERGING_MAPS, kind=array.dtype.kind
    )
    table = lookup_table(name)
    if max(values.shape, default=1) == values.size:
        return _bars(values.reshape(-1), low, high, table, limit)
    planes = values.reshape(-1, *values.shape[-2:])
    count, height, width = planes.shape
    columns = max(1, min(count, round(math.sqrt(count * height / width))))
    gap = 1 if count > 1 else 0
    # Small channels are enlarged, to be visible.
    factor = max(-(-32 // max(height, width)), -(-_MIN_TILE // min(height, width)))
    rows = -(-count // columns)
    area = (
        min(limit, columns * (width * factor + gap)),
        min(limit, rows * (height * factor + gap)),
    )
    grid = tile_grid(count, (height, width), area, gap=gap, columns=columns)
    small = shrink(planes, min(height, grid.tile_height), min(width, grid.tile_width))
    return tile_pictures(colorize(small, low, high, table), grid)


def _bars(values: Array, low: float, high: float, table: Array, limit: int) -> Array:
    """Bars about zero, each in its own colour; height 96."""
    height = 96
    if values.size > limit:
        values = shrink(values[None], 1, limit)[0]
    colors = colorize(values, low, high, table)
    bottom, top = min(low, 0.0), max(high, 0.0)
    with np.errstate(invalid="ignore"):
        share = (np.clip(values, bottom, top).astype(np.float64) - bottom) / (top - bottom)
    zero = -bottom / (top - bottom)
    edge = (np.arange(height, 0, -1)[:, None] - 0.5) / height
    inside = (edge > np.minimum(share, zero)) & (edge <= np.maximum(share, zero))
    inside |= np.isnan(share)  # a full bar in the colour that says so
    picture: Array = np.where(inside[..., None], colors, np.uint8(0))
    wide = max(1, min(16, limit // max(1, 2 * values.size)))
    return np.repeat(picture, wide, axis=1)
