"""Summarises a tensor for its box in the graph: range, special values, thumbnail.

It may run on any thread: a tensor goes in, a frozen summary comes out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.pictures import fitted_range, telling_channel
from engine.statistics import TensorStatistics, statistics
from engine.values import flatten_value
from kuiper_studio.colormaps import lookup_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from engine.values import Array, Value

__all__ = ["MEASURES", "THUMBNAIL", "Summary", "measure", "summarise", "thumbnail"]

THUMBNAIL: Final = 66  # sharp in a box at 200 %
MEASURES: Final = ("count", "low", "high", "zeros", "nan", "inf")
"""What `measure` returns, in order."""
_NAN: Final = (0xFF, 0x00, 0xC8, 0xFF)
_PLUS_INF: Final = (0xFF, 0x8A, 0x00, 0xFF)
_MINUS_INF: Final = (0x00, 0x91, 0xFF, 0xFF)


@dataclass(frozen=True, slots=True)
class Summary:
    """Summary of a value.

    Attributes
    ----------
    low, high : float or None
        Of the finite elements; None where there are none.
    count, zeros, nan, pinf, ninf : int
    text : str
        The value itself if it is not an array.
    pixels : bytes or None
        RGBA of a thumbnail of THUMBNAIL x THUMBNAIL.
    """

    low: float | None = None
    high: float | None = None
    count: int = 0
    zeros: int = 0
    nan: int = 0
    pinf: int = 0
    ninf: int = 0
    text: str = ""
    pixels: bytes | None = field(default=None, repr=False)

    @property
    def is_finite(self) -> bool:
        """Whether there is neither NaN nor Inf."""
        return not (self.nan or self.pinf or self.ninf)


def summarise(value: Value) -> Summary:
    """Summarise a value.

    Parameters
    ----------
    value : Value
        For a tuple, its first array is summarised.
    """
    array = next((v for v in flatten_value(value) if isinstance(v, np.ndarray)), None)
    if array is None:
        return Summary(text=str(value))
    if np.iscomplexobj(array):
        array = np.abs(array)
    facts = statistics(array)
    return Summary(
        low=float(facts.min) if facts.finite else None,
        high=float(facts.max) if facts.finite else None,
        count=facts.count,
        zeros=facts.zeros,
        nan=facts.nan,
        pinf=facts.pinf,
        ninf=facts.ninf,
        pixels=_picture_of(array, facts),
    )


def measure(values: Iterable[Value]) -> tuple[float, ...]:
    """Measure the elements of values together.

    Parameters
    ----------
    values : iterable of Value
        Those that are no arrays are left out; complex numbers enter by their magnitude.

    Returns
    -------
    tuple of float
        By `MEASURES`: number of elements, the least and largest one, infinite ones included
        (NaN where there are none), and how many are zero, NaN and infinite.
    """
    arrays = (v for value in values for v in flatten_value(value) if isinstance(v, np.ndarray))
    found = [statistics(array) for array in arrays]
    ends = [end for each in found for end in _ends(each)]
    return (
        float(sum(each.count for each in found)),
        min(ends, default=math.nan),
        max(ends, default=math.nan),
        float(sum(each.zeros for each in found)),
        float(sum(each.nan for each in found)),
        float(sum(each.pinf + each.ninf for each in found)),
    )


def _ends(facts: TensorStatistics) -> list[float]:
    """Return the ends of the range of an array, infinite ones included."""
    ends = [float(facts.min), float(facts.max)] if facts.finite else []
    return ends + [math.inf] * (facts.pinf > 0) + [-math.inf] * (facts.ninf > 0)


def _picture_of(array: Array, facts: TensorStatistics) -> bytes | None:
    if not array.size:
        return None
    return thumbnail(array, signed=facts.min < 0 < facts.max).tobytes()


def thumbnail(array: Array, *, signed: bool) -> npt.NDArray[np.uint8]:
    """Make a thumbnail of the channel that varies most.

    Parameters
    ----------
    array : ndarray
        Real, not empty. The last two axes are rows and columns; the first of four or more
        is the batch, of which the first sample is shown. Vectors, and channels of one
        element, are wrapped into a square.
    signed : bool
        Whether to use diverging colours about zero.

    Returns
    -------
    ndarray of shape (33, 33, 4), uint8
        RGBA, nearest neighbour.
    """
    plane = _plane(array)
    rows = _nearest(plane.shape[0])
    columns = _nearest(plane.shape[1])
    small = plane[np.ix_(rows, columns)].astype(np.float64)
    finite = plane[np.isfinite(plane)].astype(np.float64, copy=False)
    low = float(finite.min()) if finite.size else 0.0
    high = float(finite.max()) if finite.size else 0.0
    low, high = fitted_range(low, high, symmetric=signed, kind=array.dtype.kind)
    table: npt.NDArray[np.uint8] = lookup_table("RdBu_r" if signed else "viridis")
    with np.errstate(invalid="ignore"):
        index = np.clip((small - low) / (high - low) * 255, 0, 255)
    picture = table[np.nan_to_num(index).astype(np.uint8)]
    picture[np.isnan(small)] = _NAN
    picture[np.isposinf(small)] = _PLUS_INF
    picture[np.isneginf(small)] = _MINUS_INF
    return picture


def _nearest(size: int) -> npt.NDArray[np.intp]:
    return ((np.arange(THUMBNAIL) + 0.5) * size / THUMBNAIL).astype(np.intp)


def _plane(array: Array) -> Array:
    if array.ndim >= 4:
        array = array[0]
    if array.ndim >= 3 and array.shape[-2] * array.shape[-1] > 1:
        channels = array.reshape(-1, *array.shape[-2:])
        plane: Array = channels[telling_channel(channels)]
        return plane
    if array.ndim == 2 and min(array.shape) > 1:
        return array
    return _wrapped(array.reshape(-1))


def _wrapped(vector: Array) -> Array:
    """Wrap a vector into rows; repeat the last element to fill the last row."""
    columns = int(np.ceil(len(vector) ** 0.5))
    rows = -(-len(vector) // columns)
    return np.pad(vector, (0, rows * columns - len(vector)), mode="edge").reshape(rows, columns)
