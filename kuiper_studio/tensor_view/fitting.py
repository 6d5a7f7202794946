"""Fits a tensor to the shape of another one, by broadcasting or by a slice. No Qt."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from engine.text import format_shape

if TYPE_CHECKING:
    from engine.values import Array

__all__ = ["Fitted", "fit"]


@dataclass(frozen=True, slots=True)
class Fitted:
    """A tensor that has been fitted to a shape.

    Attributes
    ----------
    array : ndarray
        Of that shape; a view.
    words : str
        How it was fitted; ``""`` where it has the shape.
    expression : str
        Gives it in Python, with ``{}`` for what gives the whole tensor.
    start, last : int
        First of the indexes of the slice, and the greatest that it may be; 0 where it was
        broadcast.
    """

    array: Array = field(repr=False, compare=False)
    words: str = ""
    expression: str = "{}"
    start: int = 0
    last: int = 0


def fit(array: Array, shape: tuple[int, ...], start: int = 0) -> Fitted | None:
    """Fit a tensor to a shape.

    Parameters
    ----------
    array : ndarray
    shape : tuple of int
    start : int, optional
        Where a slice begins; beyond its last place it is the last one.

    Returns
    -------
    Fitted or None
        None where it neither broadcasts to the shape nor has a slice of it. A slice is along
        one dimension, of which leading ones may be left out.
    """
    if array.shape == shape:
        return Fitted(array)
    try:
        spread = np.broadcast_to(array, shape)
    except ValueError:
        return _slice(array, shape, start)
    words = f"broadcast from {format_shape(array.shape) or 'one number'}"
    return Fitted(spread, words, f"numpy.broadcast_to({{}}, {shape})")


def _slice(array: Array, shape: tuple[int, ...], start: int) -> Fitted | None:
    leading = array.ndim - len(shape)
    if leading < 0:
        return None
    wanted = (1,) * leading + shape
    pairs = zip(array.shape, wanted, strict=True)
    unlike = [axis for axis, (one, other) in enumerate(pairs) if one != other]
    if len(unlike) != 1 or array.shape[unlike[0]] < wanted[unlike[0]]:
        # Leading dimensions of 1 alone are left out without a slice.
        return None if unlike else Fitted(array.reshape(shape), "", f"{{}}.reshape({shape})")
    axis = unlike[0]
    size, count = array.shape[axis], wanted[axis]
    start = min(max(start, 0), size - count)
    places = tuple([slice(None)] * axis + [slice(start, start + count)])
    chosen = str(start) if count == 1 else f"{start} to {start + count - 1}"
    colons = ":, " * axis
    text = f"{{}}[{colons}{start}:{start + count}]"
    if leading:
        text += f".reshape({shape})"
    return Fitted(
        array[places].reshape(shape), f"{chosen} of {size} along dimension {axis}", text, start,
        size - count,
    )  # fmt: skip
