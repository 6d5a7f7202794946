"""Hands the shown channel on to views that lay it over something else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from engine.axes.layout import Kind as AxisKind
from kuiper_studio.shown_plane import ShownPlane
from kuiper_studio.tensor_view.numbers import format_range
from kuiper_studio.tensor_view.reading import Kind

if TYPE_CHECKING:
    from engine.values import Array
    from kuiper_studio.tensor_view.images import Coloring
    from kuiper_studio.tensor_view.view_model import TensorViewModel

__all__ = ["shown_plane"]

_PLANES: Final = (
    frozenset({AxisKind.ROW, AxisKind.COLUMN}),
    frozenset({AxisKind.FREQUENCY, AxisKind.TIME}),
)


def shown_plane(
    model: TensorViewModel, coloring: Coloring, *, is_error: bool = False
) -> ShownPlane | None:
    """Return the channel that is shown.

    Parameters
    ----------
    model : TensorViewModel
    coloring : Coloring
        Of its values; for the error, with the range of that.
    is_error : bool, optional
        The difference from the reference instead of the values.

    Returns
    -------
    ShownPlane or None
        None if no picture is shown, or the reference is not.
    """
    from engine.provenance.records import GridCell

    if model.reading.kind is not Kind.PLANES or (is_error and model.other is None):
        return None
    values = model.difference_plane() if is_error else model.plane
    rows, columns = values.shape
    if not values.size:
        return None
    title = f"channel {model.channel}" if model.reading.channels > 1 else ""
    return ShownPlane(
        model.name,
        f"{title} · error".removeprefix(" · ") if is_error else title,
        format_range(coloring.low, coloring.high),
        values,
        coloring.paint(values),
        _shares(values, coloring.low, coloring.high),
        tuple([GridCell(*at, _index(model, *at)) for at in _corners(rows, columns)]),
        _is_image(model),
        lambda row, column: _index(model, row, column),
        model.choice.pick,
    )


def _corners(rows: int, columns: int) -> tuple[tuple[int, int], ...]:
    """Return three cells that are far apart, and away from the edges where there is room."""
    top, left = rows // 4, columns // 4
    return (top, left), (rows - 1 - top, left), (top, columns - 1 - left)


def _index(model: TensorViewModel, row: int, column: int) -> tuple[int, ...]:
    element = model.element(row, column)
    return element.index if element is not None else ()


def _is_image(model: TensorViewModel) -> bool | None:
    if model.plan is not None:
        return True
    if model.layout is None:
        return None
    return any(set(model.layout.kinds) >= plane for plane in _PLANES)


def _shares(values: Array, low: float, high: float) -> Array:
    with np.errstate(invalid="ignore", over="ignore"):
        plain = np.nan_to_num(np.asarray(values, np.float64), nan=low, posinf=high, neginf=low)
        if low < 0 < high:
            return np.clip(np.abs(plain) / max(-low, high), 0.0, 1.0)
        span = high - low
        if not span > 0:
            return np.ones(values.shape)
        return np.clip((plain - low) / span, 0.0, 1.0)
