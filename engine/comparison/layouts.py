"""Layouts: how the axes of our tensor differ from the reference's, and how to convert.

A reference may have the channels last, no batch axis, or two axes exchanged. Elements in the
same order count as the same layout, whatever the shape says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.values import Array

__all__ = ["SAME_LAYOUT", "Layout", "layouts_between", "squeezed"]

_MOST_AXES: Final = 4  # that are exchanged in all orders
_CHANNELS_LAST: Final = {3: (1, 2, 0), 4: (0, 2, 3, 1)}
_CHANNELS_FIRST: Final = {3: (2, 0, 1), 4: (0, 3, 1, 2)}


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a reference's tensor relative to ours.

    Attributes
    ----------
    axes : tuple of int
        Our axes, without those of size 1, in the reference's order; empty if the elements are
        in the same order.
    name : str
        ``""`` for equal shapes, ``reshaped``, ``no batch axis``, ``with batch axis``, ``NHWC``,
        ``NCHW`` or ``transposed``.
    """

    axes: tuple[int, ...] = ()
    name: str = ""

    def to_ours(self, array: Array, shape: tuple[int, ...]) -> Array:
        """Return a reference's tensor in our layout.

        Parameters
        ----------
        array : ndarray
            Of the reference.
        shape : tuple of int
            Of our tensor, with as many elements.

        Returns
        -------
        ndarray of shape `shape`
            Aliases `array` where the order is the same.
        """
        if not self.axes:
            return array.reshape(shape)
        ours = squeezed(shape)
        theirs = array.reshape([ours[axis] for axis in self.axes])
        return np.ascontiguousarray(theirs.transpose(np.argsort(self.axes))).reshape(shape)

    def sample(self, shape: tuple[int, ...], positions: Array) -> Array:
        """Return our flat positions of elements at flat positions in the reference.

        Parameters
        ----------
        shape : tuple of int
            Of our tensor.
        positions : ndarray of int
            Flat indexes in the reference's tensor.

        Returns
        -------
        ndarray of int
            Flat indexes in our tensor.
        """
        if not self.axes:
            return positions
        ours = squeezed(shape)
        theirs = np.unravel_index(positions, [ours[axis] for axis in self.axes])
        ordered = [theirs[place] for place in np.argsort(self.axes)]
        return np.asarray(np.ravel_multi_index(ordered, ours))


SAME_LAYOUT: Final = Layout()
"""Layout of equal shapes with the elements in the same order."""


def squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape without its axes of size 1."""
    return tuple([size for size in shape if size != 1])


def layouts_between(ours: tuple[int, ...], theirs: tuple[int, ...]) -> Iterator[Layout]:
    """Yield the layouts that a reference's shape may have, the likeliest first.

    Parameters
    ----------
    ours, theirs : tuple of int
        Shapes.

    Yields
    ------
    Layout
        None for shapes of different numbers of elements.
    """
    if math.prod(ours) != math.prod(theirs):
        return
    one, other = squeezed(ours), squeezed(theirs)
    same = Layout((), _name_of_same(ours, theirs))
    if one == other:
        yield same
    if len(one) == len(other) <= _MOST_AXES:
        rank = len(one)
        known = [_CHANNELS_LAST.get(rank), _CHANNELS_FIRST.get(rank)]
        orders = [*filter(None, known), *permutations(range(rank))]
        for axes in dict.fromkeys(orders):
            if axes != tuple(range(rank)) and tuple([one[a] for a in axes]) == other:
                yield Layout(axes, _name_of(axes, len(ours)))
    if one != other:
        yield same


def _name_of_same(ours: tuple[int, ...], theirs: tuple[int, ...]) -> str:
    if ours == theirs:
        return ""
    if ours == (1, *theirs):
        return "no batch axis"
    return "with batch axis" if theirs == (1, *ours) else "reshaped"


def _name_of(axes: tuple[int, ...], rank: int) -> str:
    images = rank >= 4 and len(axes) >= 3
    if images and axes == _CHANNELS_LAST.get(len(axes)):
        return "NHWC"
    return "NCHW" if images and axes == _CHANNELS_FIRST.get(len(axes)) else "transposed"


def has_same_elements(one: Array, other: Array) -> bool:
    """Whether two tensors may have the same elements in whatever order."""
    return one.size == other.size and repeats_elements(one, other)


def repeats_elements(one: Array, other: Array) -> bool:
    """Whether a tensor may have the elements of another, each equally often, in any order."""
    if not other.size or one.size % other.size:
        return not one.size and not other.size
    if one.dtype.kind == "c" or other.dtype.kind == "c":
        return False
    one, other = one.astype(np.float64), other.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        return all(
            np.isclose(measure(one), measure(other), rtol=1e-5)
            for measure in (
                np.min,
                np.max,
                lambda x: np.abs(x).mean(),
                lambda x: np.square(x).mean(),
            )
        )
