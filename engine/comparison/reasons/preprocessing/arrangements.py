"""Our input in other layouts, turned, and with its channels in another order."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from engine.comparison.reasons.preprocessing.normalisation import channel_axis
from engine.comparison.reasons.reason import Change, Reason

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.values import Array

__all__ = ["Step", "Way", "arranged"]

# How rows and columns may be turned: transposed, rows reversed, columns reversed.
_TURNS: Final = {
    (False, False, True): "has its columns in reverse order. Flip the picture",
    (False, True, False): "has its rows in reverse order. Flip the picture",
    (False, True, True): "is upside down. Turn the picture by 180°",
    (True, False, False): "is with rows and columns exchanged. Transpose the picture",
    (True, True, False): "is turned by 90° to the left. Turn the picture",
    (True, False, True): "is turned by 90° to the right. Turn the picture",
    (True, True, True): "is mirrored about its second diagonal. Transpose and turn the picture",
}


class Step(NamedTuple):
    """What is prepared in another way.

    Attributes
    ----------
    kind, text : str
        Of its reason.
    changes : tuple of Change
    """

    kind: str
    text: str
    changes: tuple[Change, ...]

    def as_reason(self, share: float) -> Reason:
        """Return it as a reason that explains a share of the difference."""
        return Reason(self.kind, share, self.text, self.changes)


class Way(NamedTuple):
    """An input as another preparation gives it.

    Attributes
    ----------
    array : ndarray
        In the shape of the reference's input.
    steps : tuple of Step
        What is done to ours.
    is_pixels : bool
        Whether it has pixels of 0 to 255, not the numbers of ours.
    order : tuple of int
        Channels of ours; empty for the same order.
    inner : (slice, slice) or None
        Rows and columns within a border.
    border : tuple of float
        Number of each channel in the border.
    """

    array: Array
    steps: tuple[Step, ...] = ()
    is_pixels: bool = False
    order: tuple[int, ...] = ()
    inner: tuple[slice, slice] | None = None
    border: tuple[float, ...] = ()

    def reordered(self, order: Sequence[int]) -> Way:
        """Return it with its channels in another order."""
        axis = channel_axis(self.array.shape)
        assert axis is not None  # noqa: S101 - it has several channels
        is_reverse = tuple(order) == (2, 1, 0)
        words = "in reverse: BGR instead of RGB, or RGB instead of BGR. Change the order"
        if not is_reverse:
            words = f"in the order {tuple(order)} of ours"
        text = f"The channels of the reference's input are ours {words}."
        change = Change("order", "BGR" if is_reverse else tuple(order))
        return self._replace(
            array=np.take(self.array, order, axis),
            steps=(*self.steps, Step("channel_order", text, (change,))),
            order=tuple(order),
        )


def arranged(ours: Array, shape: tuple[int, ...]) -> Iterator[Way]:
    """Return our input in the layouts and channel orders that have a given shape."""
    for way in _layouts(ours, shape):
        yield way
        axis = channel_axis(way.array.shape)
        count = way.array.shape[axis] if axis is not None else 1
        same, *orders = itertools.permutations(range(count))
        for order in sorted(orders, key=lambda o: o != same[::-1]):
            yield way.reordered(order)


def _layouts(ours: Array, shape: tuple[int, ...]) -> Iterator[Way]:
    if ours.shape == shape:
        yield Way(ours)
    if ours.ndim != len(shape) or ours.ndim < 3 or ours.size != math.prod(shape):
        return
    lead = tuple(range(ours.ndim - 3))
    c, h, w = range(ours.ndim - 3, ours.ndim)
    named = {
        "NHWC where ours is NCHW": (*lead, h, w, c),
        "NCHW where ours is NHWC": (*lead, w, c, h),
        "NHWC with rows and columns exchanged": (*lead, w, h, c),
    }
    for words, order in named.items():
        moved = ours.transpose(order)
        change = Change("dims", order)
        if moved.shape == shape:
            text = f"The reference's input is {words}. Transpose the input by {order}."
            yield Way(moved, (Step("input_layout", text, (change,)),))
        elif ours.shape == shape:
            text = f"The reference's memory is {words}. Transpose the input by {order}."
            steps = (Step("input_layout", text, (change,)),)
            yield Way(moved.reshape(shape), steps)
            sizes = [shape[axis] for axis in order]
            yield Way(ours.reshape(sizes).transpose(np.argsort(order)), steps)
    yield from _turned(ours, shape)


def _turned(ours: Array, shape: tuple[int, ...]) -> Iterator[Way]:
    last = channel_axis(ours.shape) == ours.ndim - 1
    h, w = (ours.ndim - 3, ours.ndim - 2) if last else (ours.ndim - 2, ours.ndim - 1)
    for (is_transposed, *flips), words in _TURNS.items():
        turned = ours.swapaxes(h, w) if is_transposed else ours
        axes = tuple(axis for axis, is_flipped in zip((h, w), flips, strict=True) if is_flipped)
        turned = np.flip(turned, axes) if axes else turned
        if turned.shape == shape:
            change = (
                Change("flip", axes) if not is_transposed else Change("dims", (h, w, *axes))
            )
            text = f"The reference's input {words}."
            yield Way(turned, (Step("input_layout", text, (change,)),))
