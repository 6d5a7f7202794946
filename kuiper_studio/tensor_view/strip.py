"""Where the bars of a vector lie: which entries are in view, and how wide. No Qt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from engine.values import Array

__all__ = ["Span", "Strip", "spans"]

_WIDEST: Final = 96.0  # pixels a bar, zoomed by hand
_WIDEST_FITTED: Final = 56.0
_FACTOR: Final = 1.5


@dataclass(frozen=True, slots=True)
class Span:
    """One bar: an entry, or the extremes of several that share a pixel.

    Attributes
    ----------
    first, last : int
        Entries it stands for; the last one is behind the end.
    low, high : float
        Least and greatest of their finite values; NaN where there is none.
    special : float
        A value that is not finite, where there is one; otherwise 0.
    """

    first: int
    last: int
    low: float
    high: float
    special: float = 0.0


class Strip:
    """Zoom and place of a vector along the horizontal axis.

    Attributes
    ----------
    count : int
        Number of entries.
    left, width : float
        Of the plot, in pixels.
    zoom : float
        Pixels an entry.
    start : float
        The entry at the left edge, fractions of it cut off.
    fitting : bool
        Whether all entries are kept in view.
    """

    def __init__(self) -> None:
        self.count = 1
        self.left = 0.0
        self.width = 1.0
        self.zoom = 1.0
        self.start = 0.0
        self.fitting = True

    @property
    def text(self) -> str:
        """The zoom as a ratio: ``12 : 1``, ``1 : 3.5``."""
        return f"{self.zoom:.3g} : 1" if self.zoom >= 1 else f"1 : {1 / self.zoom:.3g}"

    def set_count(self, count: int) -> None:
        """Show another number of entries; they are fitted."""
        if count != self.count:
            self.count, self.fitting = count, True
        self.settle()

    def set_extent(self, left: float, width: float) -> None:
        """Take note of where the plot is."""
        self.left, self.width = left, max(width, 1.0)
        self.settle()

    def settle(self) -> None:
        """Fit where fitting, otherwise stay within the entries."""
        if self.fitting:
            self.zoom = min(self.width / self.count, _WIDEST_FITTED)
        else:
            self.zoom = min(max(self.zoom, self.width / self.count), _WIDEST)
        most = max(0.0, self.count - self.width / self.zoom)
        self.start = min(max(self.start, 0.0), most)

    def fit(self) -> None:
        """Show all entries, and go on doing so."""
        self.fitting = True
        self.settle()

    def set_zoom(self, zoom: float, about: float | None = None) -> None:
        """Zoom, keeping a place of the plot (its middle) where it is."""
        x = self.left + self.width / 2 if about is None else about
        entry = self.entry(x)
        self.fitting, self.zoom = False, min(zoom, _WIDEST)
        self.start = entry - (x - self.left) / self.zoom
        self.settle()

    def zoom_by(self, steps: int, about: float | None = None) -> None:
        """Zoom some steps in, or out where `steps` is negative."""
        self.set_zoom(self.zoom * _FACTOR**steps, about)

    def pan(self, across: float) -> None:
        """Move the entries by some pixels, as far as there are more."""
        before = self.start
        self.start -= across / self.zoom
        self.settle()
        self.fitting = self.fitting and self.start == before

    def reveal(self, entry: int) -> None:
        """Move so far that an entry is seen."""
        shown = self.width / self.zoom
        self.start = min(max(self.start, entry + 1 - shown), float(entry))
        self.settle()

    def entry(self, x: float) -> float:
        """The entry at a place, with fractions."""
        return self.start + (x - self.left) / self.zoom

    def x_of(self, entry: float) -> float:
        """Where an entry begins."""
        return self.left + (entry - self.start) * self.zoom

    def entry_at(self, x: float) -> int | None:
        """Number of the entry at a place; None outside of the plot."""
        entry = int(np.floor(self.entry(x)))
        inside = self.left <= x < self.left + self.width and 0 <= entry < self.count
        return entry if inside else None

    def visible(self) -> tuple[int, int]:
        """First entry in view, and the one behind the last."""
        first = max(0, int(np.floor(self.start)))
        return first, min(self.count, int(np.ceil(self.start + self.width / self.zoom)))


def spans(values: Array, strip: Strip, pixel: float = 1.0) -> list[Span]:
    """The bars that are in view.

    Parameters
    ----------
    values : ndarray of shape (K,)
        Real.
    strip : Strip
    pixel : float, optional
        Width of the narrowest bar that is of use; entries narrower than it are joined.
    """
    first, last = strip.visible()
    group = max(1, int(np.ceil(pixel / strip.zoom)))
    starts = np.arange(first - first % group, last, group)
    stop = min(len(values), int(starts[-1]) + group)
    shown = values[starts[0] : stop].astype(np.float64)
    finite = np.isfinite(shown)
    places = starts - starts[0]
    low = np.minimum.reduceat(np.where(finite, shown, np.inf), places)
    high = np.maximum.reduceat(np.where(finite, shown, -np.inf), places)
    special = np.zeros(len(starts))
    if not finite.all():
        special[np.flatnonzero(~finite) // group] = shown[~finite]
    ends = np.minimum(starts + group, len(values))
    nothing = low > high
    low[nothing] = high[nothing] = np.nan
    columns = (starts, ends, low, high, special)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [Span(*row) for row in rows]
