"""What else is known of an element: the label of its row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.axes.layout import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.axes import Layout

__all__ = ["label_axis"]


def label_axis(
    labels: Sequence[str], shape: Sequence[int], layout: Layout | None = None
) -> int | None:
    """Return the dimension whose positions have labels.

    Parameters
    ----------
    labels : sequence of str
    shape : sequence of int
    layout : Layout, optional
        A vocabulary may have more positions than tokens, which fill it up.

    Returns
    -------
    int or None
        None where it is not exactly one.
    """
    if len(labels) < 2:
        return None
    fitting = [axis for axis, size in enumerate(shape) if size == len(labels)]
    if not fitting and layout is not None and layout.shape == tuple(shape):
        fitting = [
            axis
            for axis, each in enumerate(layout.axes)
            if each.kind is Kind.VOCABULARY and shape[axis] > len(labels)
        ]
    return fitting[0] if len(fitting) == 1 else None
