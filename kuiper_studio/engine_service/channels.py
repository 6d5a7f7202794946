"""How far the channels of a tensor are from the reference's."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from engine.axes import ViewPlan
    from engine.values import Array

__all__ = ["ChannelDistances", "ChannelView", "measure_channels"]

_BLOCK: Final = 1 << 16  # elements that are measured together; they fit a second-level cache


@dataclass(frozen=True, slots=True)
class ChannelView:
    """Which channels of an array are looked at.

    Attributes
    ----------
    shape : tuple of int
        Of the array.
    axis : int
        Of the channels, in the folded array.
    fixed : tuple of (int, int)
        Other axes of the folded array with one chosen index, and the index.
    plan : ViewPlan or None
        How the array is folded; None if it is looked at as it is.
    """

    shape: tuple[int, ...]
    axis: int
    fixed: tuple[tuple[int, int], ...] = ()
    plan: ViewPlan | None = None

    def channels(self, array: Array) -> Array:
        """Return the channels of an array, shape (C, ...); a view where that is possible."""
        if self.plan is not None:
            array = self.plan.fold(array)
        chosen: list[slice] = [slice(None)] * array.ndim
        for axis, place in self.fixed:
            chosen[axis] = slice(place, place + 1)
        return np.moveaxis(array[tuple(chosen)], self.axis, 0)


@dataclass(frozen=True, slots=True, eq=False)
class ChannelDistances:
    """How far each channel is from the reference's; arrays of shape (C,).

    Attributes
    ----------
    largest : ndarray of float64
        Largest absolute difference; inf where an element is NaN or infinite on one side only.
    mae, rmse : ndarray of float64
        Mean of the absolute differences, and root of the mean of their squares; of the
        elements that are finite on both sides.
    differing : ndarray of int64
        Number of elements whose difference is more than the limit.
    count : int
        Number of elements of a channel.
    """

    largest: npt.NDArray[np.float64] = field(repr=False)
    mae: npt.NDArray[np.float64] = field(repr=False)
    rmse: npt.NDArray[np.float64] = field(repr=False)
    differing: npt.NDArray[np.int64] = field(repr=False)
    count: int


def measure_channels(
    ours: Array, theirs: Array, view: ChannelView, limit: float
) -> ChannelDistances:
    """Measure how far each channel is from the reference's.

    Parameters
    ----------
    ours, theirs : ndarray of the shape of the view, numbers of any dtype
        Not copied as a whole.
    view : ChannelView
    limit : float
        Difference up to which elements count as equal.
    """
    from engine.comparison.measures import distances  # the window's process does without

    mine, others = view.channels(ours), view.channels(theirs)
    total, size = len(mine), math.prod(mine.shape[1:])
    work = np.complex128 if "c" in (ours.dtype.kind, theirs.dtype.kind) else np.float64
    largest, absolute, squares = np.zeros((3, total))
    differing, infinite = np.zeros((2, total), np.int64)
    step = max(1, _BLOCK // size)
    for first in range(0, total, step):
        block = slice(first, first + step)
        one, other = mine[block].reshape(-1, size), others[block].reshape(-1, size)
        for start in range(0, size, _BLOCK):
            part = slice(start, start + _BLOCK)
            apart, wrong = distances(one[:, part].astype(work), other[:, part].astype(work))
            np.maximum(largest[block], apart.max(axis=1), out=largest[block])
            differing[block] += np.count_nonzero(apart > limit, axis=1)
            if wrong:
                special = np.isinf(apart)
                infinite[block] += np.count_nonzero(special, axis=1)
                apart[special] = 0.0
            with np.errstate(over="ignore"):
                absolute[block] += apart.sum(axis=1)
                squares[block] += np.einsum("ij,ij->i", apart, apart)
    finite = np.maximum(size - infinite, 1)
    return ChannelDistances(
        largest, absolute / finite, np.sqrt(squares / finite), differing, size
    )
