"""Measures how much of a difference an alternative explains."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.values import flatten_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.values import Array, Value

__all__ = ["Discrepancy", "arrays_of"]

# Rounding, in units of the dtype's epsilon and relative to the largest number.
_ROUNDING: Final = {2: 2.0, 4: 32.0, 8: 1024.0}
_LARGE: Final = 1 << 18  # elements from which a sample is compared first
_ELEMENTS: Final = 1 << 14
_TELLING: Final = 0.1  # share of the usual difference that a sample must have
_HOPELESS: Final = 0.95  # remaining share of the sample's difference, above which the rest is
# skipped
_FINER: Final = 0.1  # smaller residuals, relative to the largest difference, count as zero


def arrays_of(value: Value) -> list[Array]:
    """Return the tensors and numbers of a value as arrays, in order."""
    numbers = (np.ndarray, bool, int, float, complex)
    return [np.asarray(item) for item in flatten_value(value) if isinstance(item, numbers)]


def step_over(shape: Sequence[int], most: int) -> int:
    """Return a step through the elements of an array that has some of every index.

    A step that has a factor in common with an axis would never meet some of its indices, such
    as the one channel that is wrong.

    Parameters
    ----------
    shape : sequence of int
    most : int
        About how many elements are wanted.
    """
    step = max(-(-math.prod(shape) // most), 1)
    while any(size and math.gcd(step, size) > 1 for size in shape):
        step += 1
    return step


class Discrepancy:
    """The difference between a result and the expected one.

    Parameters
    ----------
    ours : Value
        None if there is no result.
    expected : Value
    noise : float or ndarray, optional
        By how much elements may differ beside rounding to their dtype. An array has the shape
        of the only expected one.

    Attributes
    ----------
    is_comparable : bool
        Whether both have the same shapes.
    is_rounding : bool
        Whether there is no difference beyond rounding.
    largest : float
        Largest absolute difference, beyond `noise` if that is an array; 0 if they are not
        comparable.
    floor : float or ndarray
        Differences of elements up to this are rounding; an array if `noise` is one.
    """

    def __init__(self, ours: Value, expected: Value, noise: float | Array = 0.0) -> None:
        self._expected = arrays_of(expected)
        mine = arrays_of(ours) if ours is not None else []
        self._scale = max((_largest_number(array) for array in self._expected), default=0.0)
        self._count = sum(array.size for array in self._expected)
        self.is_comparable = bool(mine) and _same_shapes(mine, self._expected)
        rounding: float | Array = np.maximum(self._rounding(mine), noise)
        large = self.is_comparable and self._count > _LARGE
        self._mine = mine if large else None
        if self.is_comparable:
            distances = self._distances(mine)
            self.is_rounding = all(bool((each <= rounding).all()) for each in distances)
            if isinstance(rounding, np.ndarray):  # where it is large, it hides nothing
                distances = [np.where(each <= rounding, 0, each) for each in distances]
            self.largest = max((float(d.max()) for d in distances if d.size), default=0.0)
            # A result that is no better than a constant explains nothing, however wrong ours
            # is.
            self._squares = sum(float(np.square(d).sum()) for d in distances)
            self._total = min(self._squares, sum(_spread(array) for array in self._expected))
            known = isinstance(rounding, np.ndarray)
            self.floor = rounding if known else min(rounding, _FINER * self.largest)
        else:
            self.largest = 0.0
            self._total = sum(_spread(array) for array in self._expected)
            self.floor, self.is_rounding = rounding, False

    @property
    def count(self) -> int:
        """Number of expected elements."""
        return self._count

    @cached_property
    def is_constant(self) -> bool:
        """Whether all expected elements are equal."""
        return all(
            array.size == 0 or (array == array.flat[0]).all() for array in self._expected
        )

    @property
    def scale(self) -> float:
        """Largest absolute value of the expected numbers."""
        return self._scale

    def floor_over(self, axes: tuple[int, ...]) -> float | Array:
        """Return the largest floor along axes, which an array keeps with size 1."""
        if isinstance(self.floor, np.ndarray):
            return np.asarray(self.floor.max(axes, keepdims=True))
        return self.floor

    def share(self, candidate: Value, fitted: int = 0) -> float:
        """Return the share of the squared difference that a candidate explains.

        Parameters
        ----------
        candidate : Value
            Another result.
        fitted : int
            Number of values fitted to the expected result.

        Returns
        -------
        float
            From 0 to 1; 0 if the shapes differ from the expected ones, or if more values were
            fitted than half of the elements.
        """
        if not self._count or 2 * fitted > self._count:
            return 0.0
        freedom = self._count / (self._count - fitted)
        return min(1.0, max(0.0, 1 - self.left(candidate) * freedom))

    def left(self, candidate: Value, moves: float = 0.0) -> float:
        """Return how much of the squared difference a candidate leaves.

        Parameters
        ----------
        candidate : Value
        moves : float
            By how much its elements may still change: what is left then at least.

        Returns
        -------
        float
            1 for as much as ours has, inf if the shapes differ from the expected ones.
        """
        found = arrays_of(candidate)
        if not _same_shapes(found, self._expected):
            return math.inf
        seen = 0.0 if moves else self._seen(found)
        if seen > _HOPELESS:
            return seen
        left = 0.0
        for apart in self._distances(found):
            distance = apart - moves if moves else apart
            distance[distance <= self.floor] = 0
            left += float(np.square(distance).sum())
        return left / self._total if self._total else float(left > 0)

    def _seen(self, found: list[Array]) -> float:
        """Return what a candidate leaves on a sample of large arrays; 0 for small ones."""
        if self._mine is None:
            return 0.0
        sums, count = [0.0, 0.0], 0
        for mine, other, expected in zip(self._mine, found, self._expected, strict=True):
            few = slice(None, None, step_over(expected.shape, _ELEMENTS))
            wanted = expected.reshape(-1)[few]
            count += wanted.size
            for place, array in enumerate((other, mine)):
                distance = _distance(array.reshape(-1)[few], wanted, self._scale)
                if isinstance(self.floor, np.ndarray):
                    distance[distance <= self.floor.reshape(-1)[few]] = 0
                sums[place] += float(np.square(distance).sum())
        usual = self._squares * count / self._count
        return sums[0] / sums[1] if sums[1] > _TELLING * usual else 0.0

    def _distances(self, found: list[Array]) -> list[Array]:
        return [
            _distance(one, other, self._scale)
            for one, other in zip(found, self._expected, strict=True)
        ]

    def _rounding(self, mine: list[Array]) -> float:
        """Return the rounding of the coarsest floating-point dtype."""
        floats = [a.dtype for a in (*mine, *self._expected) if a.dtype.kind in "fc"]
        steps = [
            float(np.finfo(dtype).eps) * _ROUNDING.get(np.finfo(dtype).dtype.itemsize, 32.0)
            for dtype in floats
        ]
        return max(steps, default=0.0) * self._scale


def _same_shapes(found: list[Array], expected: list[Array]) -> bool:
    return [array.shape for array in found] == [array.shape for array in expected]


def _distance(found: Array, expected: Array, scale: float) -> Array:
    """Return absolute differences; `scale` where NaN or an infinity differs."""
    work = np.complex128 if "c" in found.dtype.kind + expected.dtype.kind else np.float64
    with np.errstate(invalid="ignore", over="ignore"):
        distance: Array = np.atleast_1d(np.abs(found.astype(work) - expected.astype(work)))
    if not np.isfinite(distance).all():
        same = (found == expected) | ((found != found) & (expected != expected))  # noqa: PLR0124
        distance[np.atleast_1d(same)] = 0
        distance[~np.isfinite(distance)] = scale or 1.0
    return distance


def _largest_number(array: Array) -> float:
    sizes = np.abs(array.astype(np.complex128 if array.dtype.kind == "c" else np.float64))
    return float(sizes.max(where=np.isfinite(sizes), initial=0.0))


def _spread(array: Array) -> float:
    """Return the sum of squared distances from the mean, or of squares of a constant."""
    wide = np.abs(array.astype(np.complex128)) if array.dtype.kind == "c" else array
    finite = wide[np.isfinite(wide)].astype(np.float64)
    if not finite.size:
        return float(array.size)
    return float(np.square(finite - finite.mean()).sum()) or float(np.square(finite).sum()) or 1
