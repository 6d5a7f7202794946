"""Position and zoom of a channel on its canvas. No Qt.

Canvas coordinates are logical pixels; a *view* is (left, top, width, height).
"""

from __future__ import annotations

import math
from typing import Final

__all__ = ["Viewport", "fit_zoom", "zoom_steps"]

_STEPS: Final = (
    1 / 64, 1 / 48, 1 / 32, 1 / 24, 1 / 16, 1 / 12, 1 / 8, 1 / 6, 1 / 4, 1 / 3, 1 / 2,
    1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128,
)  # fmt: skip
_LARGEST: Final = 64  # maximum zoom of fitting
_LEAST_SIDE: Final = 24
_MARGIN: Final = 6.0  # above and below a fitted plane, for the ring of the focus
# A whole number is used that fills this part of the length. From 8 on one always does, so cells
# that are large enough to compare by eye are equal.
_GOOD_SHARE: Final = 7 / 8


def zoom_steps(zoom: float, steps: int) -> float:
    """Return the zoom some steps further in, or out if `steps` is negative."""
    if steps > 0:
        above = [step for step in _STEPS if step > zoom * 1.001]
        return above[min(steps, len(above)) - 1] if above else zoom
    below = [step for step in _STEPS if step < zoom * 0.999]
    return below[max(steps, -len(below))] if below else zoom


def fit_zoom(plane: tuple[int, int], area: tuple[float, float]) -> float:
    """Return the zoom that shows a whole plane, a whole number where that wastes little room.

    The plane stays away from the upper and lower edge, unless a whole number is only possible
    up to there.

    Parameters
    ----------
    plane : (int, int)
        Rows and columns.
    area : (float, float)
        Width and height.

    Returns
    -------
    float
        If one side is so long that the other would be a thin line, a zoom at which the short
        side is visible; the user pans along the long one.
    """
    clear = _fit_zoom(plane, (area[0], max(area[1] - 2 * _MARGIN, 1.0)))
    up_to_edge = _fit_zoom(plane, area)
    return up_to_edge if up_to_edge.is_integer() and not clear.is_integer() else clear


def _fit_zoom(plane: tuple[int, int], area: tuple[float, float]) -> float:
    rows, columns = plane
    zoom = max(min(area[0] / columns, area[1] / rows), 1e-6)
    shorter = min(rows, columns)
    thin = zoom * shorter
    if thin < _LEAST_SIDE < zoom * max(rows, columns):
        room = area[1] if rows < columns else area[0]
        visible = max(zoom, min(max(_LEAST_SIDE / shorter, 1.0), room / shorter))
        # By and by: a pixel more or less of room must not make it ten times as large.
        share = min(1.0, 2 * (1 - thin / _LEAST_SIDE))
        zoom *= (visible / zoom) ** share
    whole = math.floor(zoom)
    return float(min(_LARGEST, whole)) if whole >= _GOOD_SHARE * zoom else zoom


class Viewport:
    """Zoom and position of a plane.

    Attributes
    ----------
    plane : (int, int)
        Rows and columns.
    view : (float, float, float, float)
        Its part of the canvas.
    scale : float
        Device pixels per logical pixel.
    zoom : float
        Logical pixels per element.
    origin : (float, float)
        Left and top of the plane on the canvas.
    fitting : bool
        Whether the zoom follows the view's size.
    """

    def __init__(self) -> None:
        self.plane = (1, 1)
        self.view = (0.0, 0.0, 1.0, 1.0)
        self.scale = 1.0
        self.zoom = 1.0
        self.origin = (0.0, 0.0)
        self.fitting = True

    @property
    def text(self) -> str:
        """The zoom as a ratio: ``5 : 1``, ``1 : 2.3``."""
        return f"{self.zoom:.3g} : 1" if self.zoom >= 1 else f"1 : {1 / self.zoom:.3g}"

    @property
    def pixels(self) -> tuple[int, int]:
        """Rows and columns of the picture: the plane's, or fewer if it is shrunk."""
        rows, columns = self.plane
        factor = self.zoom * self.scale
        if factor >= 1:
            return rows, columns
        return max(1, round(rows * factor)), max(1, round(columns * factor))

    @property
    def cell(self) -> tuple[float, float]:
        """Width and height of an element; if it is shrunk, of its share of the picture."""
        if self.zoom * self.scale >= 1:
            return self.zoom, self.zoom
        rows, columns = self.pixels
        return columns / self.scale / self.plane[1], rows / self.scale / self.plane[0]

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the picture."""
        return self.cell[0] * self.plane[1], self.cell[1] * self.plane[0]

    # Changing

    def set_plane(self, plane: tuple[int, int]) -> None:
        """Set the plane; one of another shape is fitted."""
        if plane != self.plane:
            self.plane, self.fitting = plane, True
        self.settle()

    def set_view(self, view: tuple[float, float, float, float], scale: float) -> None:
        """Set the size of the canvas."""
        self.view, self.scale = view, scale
        self.settle()

    def settle(self) -> None:
        """Fit the plane in fitting mode, else keep the picture in view."""
        if self.fitting:
            self.zoom = fit_zoom(self.plane, self.view[2:])
            self.move_to(*self.view[:2])
        else:
            self.move_to(*self.origin)

    def fit(self) -> None:
        """Show the whole plane, also after resizing."""
        self.fitting = True
        self.settle()

    def set_zoom(self, zoom: float, about: tuple[float, float] | None = None) -> None:
        """Zoom about a position of the canvas, by default its centre."""
        left, top, width, height = self.view
        x, y = about or (left + width / 2, top + height / 2)
        inside = (x - self.origin[0]) / self.zoom, (y - self.origin[1]) / self.zoom
        self.fitting, self.zoom = False, zoom
        self.move_to(x - inside[0] * zoom, y - inside[1] * zoom)

    def zoom_by(self, steps: int, about: tuple[float, float] | None = None) -> None:
        """Zoom some steps in, or out if `steps` is negative."""
        self.set_zoom(zoom_steps(self.zoom, steps), about)

    def pan(self, across: float, down: float) -> None:
        """Move the picture, within its ends."""
        before = self.origin
        self.move_to(before[0] + across, before[1] + down)
        self.fitting = self.fitting and self.origin == before

    def move_to(self, x: float, y: float) -> None:
        """Set the picture's top left within its ends; a small picture is centred."""
        left, top, width, height = self.view
        x = _within(x, left, left + width, self.size[0])
        y = _within(y, top, top + height, self.size[1])
        self.origin = round(x * self.scale) / self.scale, round(y * self.scale) / self.scale

    def follow(self, other: Viewport) -> None:
        """Take zoom and position from another viewport, whose view has the same size."""
        self.fitting = other.fitting
        if self.fitting:
            self.settle()
        else:
            self.zoom = other.zoom
            (x, y), view = other.origin, other.view
            self.move_to(x - view[0] + self.view[0], y - view[1] + self.view[1])

    def reveal(self, row: int, column: int) -> None:
        """Move the picture to make an element visible."""
        x, y, wide, high = self.cell_rect(row, column)
        left, top, width, height = self.view
        across = max(0.0, left - x) - max(0.0, x + wide - left - width)
        down = max(0.0, top - y) - max(0.0, y + high - top - height)
        if across or down:
            self.pan(across, down)

    # Queries

    def element_at(self, x: float, y: float) -> tuple[int, int] | None:
        """Return row and column of the element at a position of the canvas."""
        left, top, width, height = self.view
        if not (left <= x < left + width and top <= y < top + height):
            return None
        column = math.floor((x - self.origin[0]) / self.cell[0])
        row = math.floor((y - self.origin[1]) / self.cell[1])
        inside = 0 <= row < self.plane[0] and 0 <= column < self.plane[1]
        return (row, column) if inside else None

    def cell_rect(self, row: int, column: int) -> tuple[float, float, float, float]:
        """Return left, top, width and height of an element."""
        wide, high = self.cell
        return self.origin[0] + column * wide, self.origin[1] + row * high, wide, high

    def visible(self) -> tuple[int, int, int, int]:
        """Return first and last column, first and last row of the visible picture.

        Counted in `pixels`; the last ones are exclusive.
        """
        rows, columns = self.pixels
        width, height = self.size
        left, top = self.view[0] - self.origin[0], self.view[1] - self.origin[1]
        across, down = columns / width, rows / height
        return (
            max(0, math.floor(left * across)),
            min(columns, math.ceil((left + self.view[2]) * across)),
            max(0, math.floor(top * down)),
            min(rows, math.ceil((top + self.view[3]) * down)),
        )


def _within(start: float, low: float, high: float, size: float) -> float:
    """Return the nearest start at which a length covers a span, or is centred in it."""
    if size <= high - low:
        return low + (high - low - size) / 2
    return min(max(start, high - size), low)
