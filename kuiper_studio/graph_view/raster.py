"""Rasterises thousands of lines and cells with NumPy, for small zoom.

All lines of a layout are horizontal or vertical, so NumPy can set their pixels at once. A
QPainter call for each would take longer than a frame.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from kuiper_studio.layout.model import Floats

    _Runs = tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], npt.NDArray[np.intp]]

__all__ = ["MOST_LINES", "Raster", "fill_cells"]

_ONE: Final = np.int16(1)
_FEW_LINES: Final = 3000  # lines that are set one by one in less time than counting takes
MOST_LINES: Final = 12_000
"""More lines are left out; they could not be told apart."""


class Raster:
    """Draws horizontal and vertical lines, one pixel wide.

    Parameters
    ----------
    width, height : int
        Of the picture.

    Attributes
    ----------
    picture : ndarray of shape (height, width), uint32
        The last picture; its memory is reused.
    """

    def __init__(self, width: int, height: int) -> None:
        self.picture = np.zeros((height, width), np.uint32)
        # Reused from frame to frame: fresh memory would take longer than the rest.
        self._across = np.zeros((height, width + 1), np.int16)
        self._down = np.zeros((height + 1, width), np.int16)

    def paint(self, segments: Floats, ink: int, base: int) -> npt.NDArray[np.uint32]:
        """Paint lines on an empty picture.

        Parameters
        ----------
        segments : ndarray of shape (M, 4)
            Left, top, right and bottom end of each, in pixels; at most `MOST_LINES`. Those
            that are neither horizontal nor vertical are drawn along their longer side.
        ink, base : int
            Colours.

        Returns
        -------
        ndarray of shape (height, width), uint32
            `picture`.
        """
        height, width = self.picture.shape
        left, top, right, bottom = np.floor(segments).T
        level = right - left >= bottom - top
        rows = _runs((height, width), top[level], left[level], right[level])
        columns = _runs((width, height), left[~level], top[~level], bottom[~level])
        self.picture[...] = base
        if len(segments) <= _FEW_LINES:
            for picture, runs in ((self.picture, rows), (self.picture.T, columns)):
                for at, first, behind in zip(*(part.tolist() for part in runs), strict=True):
                    picture[at, first:behind] = ink
            return self.picture
        across, down = self._across, self._down
        _mark(across, rows)
        _mark(down.T, columns)
        # Sum up starts and ends of runs to the number of runs at each pixel.
        np.cumsum(across, axis=1, dtype=np.int16, out=across)
        for above, below in pairwise(down):  # faster than numpy.cumsum down columns
            np.add(below, above, out=below)
        drawn = across[:, :width]
        drawn |= down[:height]
        np.copyto(self.picture, np.uint32(ink), where=drawn.astype(np.bool_))
        return self.picture


def _runs(shape: tuple[int, int], place: Floats, start: Floats, end: Floats) -> _Runs:
    """Clip runs of pixels to the picture.

    Parameters
    ----------
    shape : (int, int)
        Number and length of the rows.
    place, start, end : ndarray of shape (M,)

    Returns
    -------
    tuple of three ndarrays
        Row, first pixel, and the one after the last.
    """
    places, length = shape
    inside = (place >= 0) & (place < places) & (end >= 0) & (start < length)
    at = place[inside].astype(np.intp)
    first = np.maximum(start[inside], 0).astype(np.intp)
    behind = np.minimum(end[inside], length - 1).astype(np.intp) + 1
    return at, first, behind


def _mark(counts: npt.NDArray[np.int16], runs: _Runs) -> None:
    """Add 1 where each run begins, and subtract 1 after its end.

    Parameters
    ----------
    counts : ndarray of shape (places, length + 1)
        Written to, at first with zeros.
    runs : tuple of three ndarrays
    """
    at, first, behind = runs
    counts[...] = 0
    np.add.at(counts, (at, first), _ONE)
    np.subtract.at(counts, (at, behind), _ONE)


def fill_cells(
    picture: npt.NDArray[np.uint32], rects: Floats, colors: npt.NDArray[np.uint32]
) -> None:
    """Fill rectangles; later ones lie over earlier ones.

    Parameters
    ----------
    picture : ndarray of shape (height, width)
        Written to.
    rects : ndarray of shape (N, 4)
        Left, top, right and bottom in pixels. Each fills one pixel at least.
    colors : ndarray of shape (N,)
    """
    height, width = picture.shape
    left, top, right, bottom = np.floor(rects + 0.5).astype(np.intp).T
    left, right = np.clip(left, 0, width), np.clip(np.maximum(right, left + 1), 0, width)
    top, bottom = np.clip(top, 0, height), np.clip(np.maximum(bottom, top + 1), 0, height)
    across, down = right - left, bottom - top
    rows = _each(top, down)
    owner = np.repeat(np.arange(len(rects)), down)
    pixels = _each(rows * width + left[owner], across[owner])
    picture.reshape(-1)[pixels] = np.repeat(colors, across * down)


def _each(start: npt.NDArray[np.intp], count: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Concatenate ``start[i], start[i] + 1, …``, ``count[i]`` numbers for each `i`."""
    before = np.cumsum(count) - count
    offsets: npt.NDArray[np.intp] = np.arange(count.sum()) + np.repeat(start - before, count)
    return offsets
