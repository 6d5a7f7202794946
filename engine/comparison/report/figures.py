"""Figures of a report: pictures of tensors as PNG, and the error along the network as SVG."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.comparison.rows import Status
from engine.pages import embed_picture
from engine.pictures import (
    DIVERGING_MAPS,
    default_map,
    finite_range,
    fitted_range,
    real_values,
    render_picture,
)
from engine.text import format_brief

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.comparison.rows import Row
    from engine.values import Array

__all__ = ["TensorPictures", "draw_error_plot", "draw_tensors"]

_DIVERGING: Final = "RdBu_r"
_LIMIT: Final = 384  # pixels along either side of a picture
_MOST_BARS: Final = 400
_WIDTH, _HEIGHT = 1080.0, 170.0
_LEFT, _BOTTOM, _TOP = 44.0, 16.0, 8.0
_DECADES: Final = range(-8, 1, 2)
_FLOOR: Final = 1e-8
# A bar of several rows has the first of these statuses that one of them has.
_RANKS: Final = (Status.ORIGIN, Status.INHERITED, Status.ROUNDING)


@dataclass(frozen=True, slots=True)
class TensorPictures:
    """Pictures of one channel of two tensors and of their difference, as ``data:`` addresses.

    Attributes
    ----------
    ours, reference : str
        Both in the same range and colour map.
    difference : str
        Symmetric about zero; ``""`` where the shapes differ.
    channel : str
        The channel as an index, ``[0, 12]``; ``""`` for the whole tensor.
    value_range, difference_range : str
        Values at the ends of the colour map.
    """

    ours: str
    reference: str
    difference: str
    channel: str
    value_range: str
    difference_range: str


def draw_tensors(ours: Array, reference: Array, worst: tuple[int, ...]) -> TensorPictures:
    """Draw two tensors beside each other.

    Parameters
    ----------
    ours, reference : ndarray of numbers
    worst : tuple of int
        Index of the element that differs most; its channel is drawn. May be empty.
    """
    same_shape = ours.shape == reference.shape
    place = worst[:-2] if same_shape and len(worst) == ours.ndim and ours.ndim > 2 else ()
    mine, theirs = (_plane(array, place) for array in (ours, reference))
    ranges = [found for found in map(finite_range, (mine, theirs)) if found is not None]
    low = min((found[0] for found in ranges), default=0.0)
    high = max((found[1] for found in ranges), default=1.0)
    name = default_map(low, high)
    low, high = fitted_range(low, high, symmetric=name in DIVERGING_MAPS)
    difference, limit = "", 0.0
    if same_shape:
        with np.errstate(invalid="ignore", over="ignore"):
            distance = mine.astype(np.float64) - theirs.astype(np.float64)
        found = finite_range(distance)
        limit = max(map(abs, found)) if found is not None else 0.0
        limit = limit or 1.0
        difference = embed_picture(
            render_picture(
                distance, color_map=_DIVERGING, value_range=(-limit, limit), limit=_LIMIT
            )
        )
    drawn_ours, drawn_theirs = (
        embed_picture(
            render_picture(plane, color_map=name, value_range=(low, high), limit=_LIMIT)
        )
        for plane in (mine, theirs)
    )
    shown = place if same_shape else _first(ours)
    return TensorPictures(
        drawn_ours,
        drawn_theirs,
        difference,
        str(list(shown)) if shown else "",
        f"{format_brief(low)} to {format_brief(high)}",
        f"±{format_brief(limit)}" if difference else "",
    )


def _first(array: Array) -> tuple[int, ...]:
    return (0,) * max(array.ndim - 2, 0)


def _plane(array: Array, place: tuple[int, ...]) -> Array:
    """Return a channel, or all of an array that has one or two axes."""
    values = real_values(array)
    if values.ndim > 2 and values.size:
        values = values[place or _first(values)]
    return values


def draw_error_plot(rows: Sequence[Row], tolerance: float) -> str:
    """Draw the error along the network as SVG, logarithmic.

    Parameters
    ----------
    rows : sequence of Row
        In execution order; if there are many, several share a bar, which shows the largest.
    tolerance : float
        Drawn as a dashed line.
    """
    compared = [row for row in rows if row.measures is not None or row.status is Status.ORIGIN]
    size = -(-len(compared) // _MOST_BARS) or 1
    groups = [compared[start : start + size] for start in range(0, len(compared), size)]
    slot = (_WIDTH - _LEFT) / max(len(groups), 1)
    gap = min(3.0, slot * 0.25)
    parts = [
        f'<svg class="plot" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="img">',
        "<title>Error along the network, logarithmic</title>",
    ]
    for decade in _DECADES:
        y = _y(10.0**decade)
        parts.append(
            f'<line class="grid" x1="{_LEFT:g}" x2="{_WIDTH:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        text = "1" if decade == 0 else f"1e{decade}"
        parts.append(f'<text x="{_LEFT - 6:g}" y="{y + 3:.1f}" text-anchor="end">{text}</text>')
    for index, group in enumerate(groups):
        parts.append(_draw_bar(group, _LEFT + index * slot, slot - gap))
    y = _y(tolerance)
    parts.append(
        f'<line class="tolerance" x1="{_LEFT:g}" x2="{_WIDTH:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
    )
    return "".join([*parts, "</svg>"])


def _draw_bar(group: Sequence[Row], x: float, width: float) -> str:
    found = {row.status for row in group if not row.excused}
    kind = next((status for status in _RANKS if status in found), Status.SAME)
    worst = max(group, key=_relative)
    top = _y(_relative(worst))
    height = max(_HEIGHT - _BOTTOM - top, 1.0)
    title = f"{worst.operator.index} {worst.operator.name}: {format_brief(_relative(worst))}"
    if len(group) > 1:
        title = f"the largest of {len(group)}: {title}"
    bar = (
        f'<rect class="{kind.name.lower()}" x="{x:.1f}" y="{top:.1f}" width="{width:.1f}" '
        f'height="{height:.1f}"><title>{escape(title)}</title></rect>'
    )
    born = max((row.born or 0.0 for row in group), default=0.0)
    if born > _FLOOR:
        y = _y(born)
        bar += (
            f'<line class="born" x1="{x:.1f}" x2="{x + width:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
    return bar


def _relative(row: Row) -> float:
    """Return the height of a row's bar; an origin of another shape has the whole height."""
    if row.measures is not None:
        return row.measures.relative
    return 1.0 if row.status is Status.ORIGIN else 0.0


def _y(value: float) -> float:
    share = (math.log10(min(max(value, _FLOOR), 1.0)) - math.log10(_FLOOR)) / -math.log10(
        _FLOOR
    )
    return _HEIGHT - _BOTTOM - share * (_HEIGHT - _BOTTOM - _TOP)
