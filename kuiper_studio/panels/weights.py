"""Makes pictures of weights: pages of tiles and their colours; no Qt."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kuiper_studio.colormaps import lookup_table

if TYPE_CHECKING:
    import numpy.typing as npt

    from engine.values import Array

__all__ = [
    "DIVERGING",
    "Mosaic",
    "TilePages",
    "diverging_colors",
    "lay_out_tiles",
    "rgb_colors",
]

DIVERGING: Final = np.ascontiguousarray(lookup_table("RdBu_r")[:, :3])
NAN_COLOR: Final = (255, 0, 200)
MAX_TILES: Final = 1024
_PAGE: Final = 132  # pixels of each side; a panel has no more room


def diverging_colors(values: Array, limit: float) -> npt.NDArray[np.uint8]:
    """Map numbers to colours: blue below zero, white at zero, red above, NaN magenta.

    Parameters
    ----------
    values : ndarray of shape (...)
        Real.
    limit : float
        The number of the darkest red; its negative is the darkest blue.

    Returns
    -------
    ndarray of uint8 of shape (..., 3)
    """
    numbers = np.asarray(values, dtype=np.float64)
    scale = limit if limit > 0 else 1.0
    with np.errstate(invalid="ignore"):
        places = np.nan_to_num(np.clip(numbers / scale, -1, 1) * 127.5 + 127.5)
    colors = DIVERGING[places.astype(np.uint8)]
    colors[np.isnan(numbers)] = NAN_COLOR
    return colors


def rgb_colors(values: Array, limit: float) -> npt.NDArray[np.uint8]:
    """Map triples to colours: grey at zero, a weight of `limit` in full colour.

    Parameters
    ----------
    values : ndarray of shape (..., 3)
        Real; red, green, blue.
    limit : float

    Returns
    -------
    ndarray of uint8 of the same shape
    """
    numbers = np.asarray(values, dtype=np.float64) / (limit if limit > 0 else 1.0)
    with np.errstate(invalid="ignore"):
        shares = np.clip(numbers, -1, 1) * 127.5 + 127.5
    colors = np.nan_to_num(shares).astype(np.uint8)
    colors[np.isnan(numbers).any(axis=-1)] = NAN_COLOR
    return colors


@dataclass(frozen=True, slots=True)
class TilePages:
    """A weight cut into pages, each a set of equal tiles.

    Parameters
    ----------
    shape : tuple of int
        Of the weight.
    transposed : bool
        Whether input channels come first, as in transposed convolutions.
    rgb : bool
        Whether the three input channels of a filter are the colours of one tile; see
        `can_be_rgb`.
    """

    shape: tuple[int, ...]
    transposed: bool = False
    rgb: bool = False

    @property
    def can_be_rgb(self) -> bool:
        """Whether the filters may read red, green and blue."""
        shape = self.shape
        return (
            len(shape) == 4 and shape[1] == 3 and not self.transposed
            and math.prod(shape[2:]) > 1
        )  # fmt: skip

    @property
    def share_pages(self) -> bool:
        """Whether each filter is one tile, so that many are on a page."""
        return self.depthwise or self.rgb

    @property
    def depthwise(self) -> bool:
        """Whether each filter has one channel: then filters share a page."""
        return len(self.shape) >= 4 and self.shape[1] == 1

    @property
    def per_page(self) -> int:
        """How many filters share a page: as many as fit with all their elements."""
        high, wide = (max(1, _PAGE // (size + 1)) for size in self.shape[-2:])
        return max(1, min(MAX_TILES, high * wide) // self._tiles_per_filter)

    @property
    def _tiles_per_filter(self) -> int:
        return 1 if self.rgb else math.prod(self.shape[1:-2])

    @property
    def count(self) -> int:
        """Number of pages; 0 for no picture."""
        if len(self.shape) < 2 or 0 in self.shape:
            return 0
        if len(self.shape) == 2:
            return 1
        if self.share_pages:
            return -(-self.shape[0] // self.per_page)
        return self.shape[0]

    def caption(self, page: int) -> str:
        """Return the caption of a page, such as ``out 0 of 64``; ``""`` for a single page."""
        if self.count <= 1 and not self.rgb:
            return ""
        axis = "in" if self.transposed else "out"
        if self.share_pages:
            chosen = range(self.shape[0])[self._on_page(page)]
            return f"{axis} {chosen[0]}–{chosen[-1]} of {self.shape[0]}"
        return f"{axis} {page} of {self.shape[0]}"

    def tiles(self, array: Array, page: int) -> Array:
        """Return the tiles of a page.

        Returns
        -------
        ndarray of shape (T, H, W), or (T, H, W, 3) of colours
            A view of `array`; at most 1024 tiles.
        """
        if len(self.shape) == 2:
            return array[np.newaxis]
        if self.rgb:
            return np.moveaxis(array[self._on_page(page)], 1, -1)
        if self.depthwise:
            chosen: Array = array[self._on_page(page)]
        else:
            chosen = array[page : page + 1]
        return chosen.reshape(-1, *self.shape[-2:])[:MAX_TILES]

    def _on_page(self, page: int) -> slice:
        """Return which filters share a page."""
        return slice(page * self.per_page, (page + 1) * self.per_page)

    def page_of(self, place: int) -> int:
        """Return the page of a filter along the first dimension."""
        if self.share_pages:
            return place // self.per_page
        return min(place, max(0, self.count - 1))

    def index(self, page: int, tile: int, row: int, column: int) -> tuple[int, ...]:
        """Return the index into the weight of an element of a tile, of RGB of its red."""
        if self.rgb:
            return page * self.per_page + tile, 0, row, column
        if len(self.shape) == 2:
            return row, column
        if len(self.shape) == 3:
            return page, row, column
        leading = self.shape[:-2] if self.depthwise else self.shape[1:-2]
        before = page * self.per_page * self._tiles_per_filter if self.depthwise else 0
        place = tile + before
        inner = tuple(int(i) for i in np.unravel_index(place, leading))
        return (*inner, row, column) if self.depthwise else (page, *inner, row, column)


@dataclass(frozen=True, slots=True)
class Mosaic:
    """Arrangement of tiles in a picture of limited size, in whole pixels.

    Attributes
    ----------
    columns, rows : int
        Of tiles.
    scale : int
        Pixels per element.
    step : int
        Elements per shown element: 1, or more if a tile is too large for the picture.
    gap : int
        Between tiles.
    tile : (int, int)
        Shown elements of a tile: rows, columns.
    """

    columns: int
    rows: int
    scale: int
    step: int
    gap: int
    tile: tuple[int, int]

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the picture, gaps around it included."""
        high = self.rows * (self.tile[0] * self.scale + self.gap) + self.gap
        wide = self.columns * (self.tile[1] * self.scale + self.gap) + self.gap
        return high, wide

    def paint(
        self, tiles: Array, limit: float, background: tuple[int, int, int]
    ) -> npt.NDArray[np.uint8]:
        """Paint the tiles.

        Parameters
        ----------
        tiles : ndarray of shape (T, H, W), or (T, H, W, 3) of colours
        limit : float
            See `diverging_colors`.
        background : (int, int, int)
            Colour of the gaps.

        Returns
        -------
        ndarray of uint8 of shape (height, width, 3)
        """
        picture = np.empty((*self.size, 3), dtype=np.uint8)
        picture[:] = background
        shown = tiles[:, :: self.step, :: self.step]
        colors = rgb_colors(shown, limit) if shown.ndim == 4 else diverging_colors(shown, limit)
        large = colors.repeat(self.scale, axis=1).repeat(self.scale, axis=2)
        high, wide = large.shape[1] + self.gap, large.shape[2] + self.gap
        for place, tile in enumerate(large):
            top = self.gap + place // self.columns * high
            left = self.gap + place % self.columns * wide
            picture[top : top + large.shape[1], left : left + large.shape[2]] = tile
        return picture

    def element_at(self, x: int, y: int) -> tuple[int, int, int] | None:
        """Return tile, row and column of the element under a pixel; None in a gap."""
        high = self.tile[0] * self.scale + self.gap
        wide = self.tile[1] * self.scale + self.gap
        tile_row, in_y = divmod(y - self.gap, high)
        tile_column, in_x = divmod(x - self.gap, wide)
        row, column = in_y // self.scale, in_x // self.scale
        inside = 0 <= tile_row < self.rows and 0 <= tile_column < self.columns
        if not inside or row >= self.tile[0] or column >= self.tile[1]:
            return None
        return tile_row * self.columns + tile_column, row * self.step, column * self.step


def lay_out_tiles(tiles: tuple[int, ...], side: int) -> Mosaic:
    """Arrange tiles in a square.

    Parameters
    ----------
    tiles : (int, int, int)
        Number, rows and columns of tiles, all positive.
    side : int
        Of the square, in pixels.

    Returns
    -------
    Mosaic
        With the largest whole-number scale that fits. If none does, elements of the tiles are
        skipped; a thousand small tiles may still need a few pixels more than `side`.
    """
    count, height, width = tiles
    longest = max(height, width)
    step = max(1, -(-longest // (side - 2)))
    tile = (-(-height // step), -(-width // step))
    if count == 1:
        return Mosaic(1, 1, max(1, (side - 2) // max(tile)), step, 1, tile)
    columns, rows = _grid(count, tile)
    while max(columns * (tile[1] + 1), rows * (tile[0] + 1)) > _PAGE and max(tile) > 1:
        step += 1
        tile = (-(-height // step), -(-width // step))
        columns, rows = _grid(count, tile)
    gap = 2
    scale = (side - gap * (max(columns, rows) + 1)) // max(columns * tile[1], rows * tile[0])
    if scale < 3:
        gap = 1
        scale = (side - gap * (max(columns, rows) + 1)) // max(
            columns * tile[1], rows * tile[0]
        )
    return Mosaic(columns, rows, max(1, scale), step, gap, tile)


def _grid(count: int, tile: tuple[int, int]) -> tuple[int, int]:
    """Return columns and rows that make a square of tiles."""
    columns = max(1, round((count * tile[0] / tile[1]) ** 0.5))
    return columns, -(-count // columns)


def largest_magnitude(values: Array) -> float:
    """Return the largest finite absolute value; 0 for none."""
    found: npt.NDArray[Any] = values
    with np.errstate(invalid="ignore"):
        if found.size and not np.isfinite(found.max() - np.float64(found.min())):
            found = found[np.isfinite(found)]
    # Without a copy: a matrix may have millions of elements, and the user waits.
    return max(abs(float(found.min())), abs(float(found.max()))) if found.size else 0.0
