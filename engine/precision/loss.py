"""Measures what values lose in a format of lower precision."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.precision.formats import is_float
from engine.values import flatten_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.precision.formats import Format
    from engine.values import Array, Value

__all__ = ["LOST", "Loss", "LossSums", "Storage", "measure_loss", "measure_storage"]

_CHUNK: Final = 1 << 16  # elements; with their temporaries they fit a second-level cache


@dataclass(frozen=True, slots=True)
class Loss:
    """The distance of values from their float32 values.

    Attributes
    ----------
    relative : float
        Largest absolute difference, relative to the largest absolute expected number; inf if a
        number became NaN or infinite, or if no value has the same shape.
    snr : float
        Signal-to-noise ratio in dB; inf for no difference, -inf for an infinite one.
    cosine : float
        Cosine of the angle between the two, 1 for no difference, 0 for an infinite one.
    """

    relative: float = 0.0
    snr: float = math.inf
    cosine: float = 1.0


LOST: Final = Loss(math.inf, -math.inf, 0.0)


@dataclass(frozen=True, slots=True)
class Storage:
    """How well a format can store some values.

    Attributes
    ----------
    headroom : float or None
        Largest finite number of the format, relative to the largest absolute value; below 1
        values overflow, inf where all are 0. None for int8, whose scale follows the values.
    underflow : float
        Share of the non-zero elements that become 0 or subnormal.
    loss : Loss
        Loss from storing only these values.
    """

    headroom: float | None
    underflow: float
    loss: Loss


def measure_storage(
    values: Sequence[Value],
    rounded: Sequence[Value],
    format: Format,  # noqa: A002 - the field's word
) -> Storage:
    """Measure how well a format can store values.

    Parameters
    ----------
    values : sequence of Value
        Only floating-point arrays count.
    rounded : sequence of Value
        The same, stored in `format`.
    format : Format
    """
    largest, nonzero, under = 0.0, 0, 0
    for before, after in zip(_arrays(values), _arrays(rounded), strict=True):
        for one, other in _chunks(before, after):
            finite = np.isfinite(one)
            largest = max(largest, float(np.abs(one).max(where=finite, initial=0.0)))
            counts = finite & (one != 0)
            size = np.abs(other)
            nonzero += int(np.count_nonzero(counts))
            under += int(np.count_nonzero(counts & ((size == 0) | (size < format.smallest))))
    headroom = None
    if format.largest is not None:
        headroom = format.largest / largest if largest else math.inf
    share = under / nonzero if nonzero else 0.0
    return Storage(headroom, share, measure_loss(rounded, values))


def measure_loss(found: Sequence[Value], expected: Sequence[Value]) -> Loss:
    """Measure the distance of values from the expected ones.

    Parameters
    ----------
    found, expected : sequence of Value
        One per output. Arrays of floating-point numbers are measured together; others must be
        equal.

    Returns
    -------
    Loss
        `LOST` if members, shapes or dtypes differ, if other values differ, or if only one of
        two numbers is NaN or infinite.
    """
    sums = LossSums()
    sums.add(found, expected)
    return sums.loss


class LossSums:
    """Sums over the elements of several values, in float64, for their common loss.

    Sums of different values merge, so inputs may be measured in any order and place.
    """

    __slots__ = (
        "_furthest", "_largest", "_lost", "_noise", "_power", "_product", "_signal",
    )  # fmt: skip

    def __init__(self) -> None:
        self._furthest = self._largest = 0.0
        self._noise = self._signal = self._power = self._product = 0.0
        self._lost = False

    def add(self, found: Sequence[Value], expected: Sequence[Value]) -> None:
        """Add values and the expected ones; see `measure_loss`."""
        mine, theirs = list(flatten_value(tuple(found))), list(flatten_value(tuple(expected)))
        self._lost = (
            self._lost
            or len(mine) != len(theirs)
            or not all(self._add_value(*pair) for pair in zip(mine, theirs, strict=True))
        )

    def merge(self, other: LossSums) -> None:
        """Add the sums of other values; `other` stays as it is."""
        self._furthest = max(self._furthest, other._furthest)
        self._largest = max(self._largest, other._largest)
        self._noise += other._noise
        self._signal += other._signal
        self._power += other._power
        self._product += other._product
        self._lost = self._lost or other._lost

    def _add_value(self, found: Value, expected: Value) -> bool:
        """Add a value; return whether it can be measured."""
        if not (isinstance(found, np.ndarray) and isinstance(expected, np.ndarray)):
            return type(found) is type(expected) and found == expected
        if found.shape != expected.shape or found.dtype != expected.dtype:
            return False
        if not is_float(expected):
            return np.array_equal(found, expected)
        return all(self._add(*pair) for pair in _chunks(found, expected))

    def _add(self, found: Array, expected: Array) -> bool:
        finite = np.isfinite(expected)
        if not finite.all():
            same = (found == expected) | (np.isnan(found) & np.isnan(expected))
            if not same[~finite].all():
                return False
            found, expected = found[finite], expected[finite]
        if not np.isfinite(found).all():
            return False
        if found.size:
            away = found - expected
            self._furthest = max(self._furthest, float(np.abs(away).max()))
            self._largest = max(self._largest, float(np.abs(expected).max()))
            self._noise += float(away @ away)
            self._signal += float(expected @ expected)
            self._power += float(found @ found)
            self._product += float(found @ expected)
        return True

    @property
    def loss(self) -> Loss:
        """The loss over all added values."""
        if self._lost:
            return LOST
        if not self._furthest:
            return Loss()
        relative = self._furthest / self._largest if self._largest else math.inf
        snr = -math.inf
        if self._signal:
            snr = 10 * math.log10(self._signal / self._noise) if self._noise else math.inf
        norms = math.sqrt(self._signal) * math.sqrt(self._power)
        cosine = max(-1.0, min(1.0, self._product / norms)) if norms else 0.0
        return Loss(relative, snr, cosine)


def _arrays(values: Sequence[Value]) -> list[Array]:
    flat = flatten_value(tuple(values))
    return [v for v in flat if isinstance(v, np.ndarray) and is_float(v)]


def _chunks(one: Array, other: Array) -> Iterable[tuple[Array, Array]]:
    """Yield flat chunks of both arrays in float64."""
    mine, theirs = one.reshape(-1), other.reshape(-1)
    for start in range(0, mine.size, _CHUNK):
        piece = slice(start, start + _CHUNK)
        yield mine[piece].astype(np.float64), theirs[piece].astype(np.float64)
