"""What is in a tensor, in a few numbers: statistics, histograms, statistics per channel.

Arrays are gone through once, in chunks that stay in the processor's cache, so that a tensor
of any size costs no memory to speak of. Not-a-number and infinite elements are counted and
otherwise left out. Complex numbers enter by their magnitude, bools as 0 and 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from engine.values import Array

__all__ = [
    "ChannelStatistics",
    "TensorStatistics",
    "channel_statistics",
    "histogram",
    "statistics",
]

_CHUNK: Final = 1 << 16  # elements; with their temporaries they fit a second-level cache
_SAMPLE_STEP: Final = 61  # a prime, so that no regular pattern hides between samples


@dataclass(frozen=True, slots=True)
class TensorStatistics:
    """Statistics of all elements of a tensor.

    Attributes
    ----------
    count : int
        Number of elements, finite or not.
    min, max : int or float
        Of the finite elements; int for integers and bools. nan where nothing is finite.
    mean, std : float
        Of the finite elements; the standard deviation is that of the population. nan where
        nothing is finite.
    zeros : int
        Elements equal to 0, of either sign.
    nan, pinf, ninf : int
        Not-a-number, +inf and -inf elements.
    dtype : numpy.dtype
    shape : tuple of int
    """

    count: int
    min: int | float
    max: int | float
    mean: float
    std: float
    zeros: int
    nan: int
    pinf: int
    ninf: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def finite(self) -> int:
        """Number of finite elements."""
        return self.count - self.nan - self.pinf - self.ninf

    @property
    def zero_fraction(self) -> float:
        """Share of zeros among all elements; 0 where there are none."""
        return self.zeros / self.count if self.count else 0.0


@dataclass(frozen=True, slots=True)
class ChannelStatistics:
    """Statistics of each channel of a tensor; arrays of shape (C,).

    Attributes
    ----------
    min, max, mean, std : ndarray of float64
        Of the channel's finite elements, as in `TensorStatistics`.
    zeros, nan, pinf, ninf : ndarray of int64
    """

    min: npt.NDArray[np.float64]
    max: npt.NDArray[np.float64]
    mean: npt.NDArray[np.float64]
    std: npt.NDArray[np.float64]
    zeros: npt.NDArray[np.int64]
    nan: npt.NDArray[np.int64]
    pinf: npt.NDArray[np.int64]
    ninf: npt.NDArray[np.int64]


def statistics(array: Array) -> TensorStatistics:
    """Compute the statistics of all elements.

    Parameters
    ----------
    array : ndarray of any shape, numbers of any dtype
        Complex numbers count by magnitude; one with a nan part is nan, with an infinite
        part +inf. Not copied, whatever its strides.

    Returns
    -------
    TensorStatistics
    """
    total = _Accumulator()
    # Values at the ends of the floats overflow on the way to their mean.
    with np.errstate(over="ignore", invalid="ignore"):
        for chunk in _chunks(array):
            total.add(chunk)
        return total.result(array)


def histogram(array: Array, low: float, high: float, bins: int = 256) -> npt.NDArray[np.int64]:
    """Count the finite elements in equal steps of a range.

    Parameters
    ----------
    array : ndarray of any shape, numbers of any dtype
        Complex numbers count by magnitude.
    low, high : float
        Both ends belong to the range; what lies outside is not counted. Where they are
        equal all elements of that value are in the middle bin.
    bins : int, optional

    Returns
    -------
    ndarray of shape (bins,), int64
        An element at the boundary of two bins is in the upper one, up to rounding.

    Raises
    ------
    ValueError
        If the range is not finite or not ordered, or `bins` is less than 1.
    """
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ValueError(f"the range {low} to {high} is not finite and ordered")
    if bins < 1:
        raise ValueError(f"a histogram needs at least one bin, not {bins}")
    counts = np.zeros(bins, np.int64)
    for chunk in _chunks(array):
        inside = _inside(chunk, low, high)
        if low == high:
            counts[bins // 2] += inside.size
        elif inside.size:
            counts += _count_bins(inside, low, high, bins)
    return counts


def channel_statistics(array: Array, axis: int) -> ChannelStatistics:
    """Compute the statistics of every channel.

    Parameters
    ----------
    array : ndarray of any shape with C entries along `axis`
        Complex numbers count by magnitude.
    axis : int

    Returns
    -------
    ChannelStatistics
    """
    channels = np.moveaxis(array, axis, 0)
    size = math.prod(channels.shape[1:])
    if size >= _CHUNK:
        parts = [_of_channel(channel) for channel in channels]
    else:
        step = _CHUNK // max(size, 1)
        blocks = (channels[i : i + step] for i in range(0, len(channels), step))
        parts = [_of_block(block.reshape(len(block), size)) for block in blocks]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    if not columns:
        columns = [np.empty(0, dtype) for dtype in [np.float64] * 4 + [np.int64] * 4]
    return ChannelStatistics(*columns)


def _chunks(array: Array) -> Iterator[Array]:
    """All elements as 1-D arrays of at most `_CHUNK` real numbers, in any order."""
    parts = np.nditer(
        array,
        flags=["external_loop", "buffered", "zerosize_ok"],
        order="K",
        buffersize=_CHUNK,
    )
    for part in parts:
        yield _real(np.asarray(part))  # with one operand no tuple, but the array itself


def _real(values: Array) -> Array:
    """Numbers that the arithmetic here is fast and exact enough for."""
    if values.dtype.kind == "c":
        return np.abs(values)
    if values.dtype.kind == "b":
        return values.view(np.uint8)
    return values.astype(np.float32) if values.dtype == np.float16 else values


class _Accumulator:
    """Adds up chunks; sums are kept in Python's own 64-bit and unbounded numbers."""

    def __init__(self) -> None:
        self.low: int | float = math.inf
        self.high: int | float = -math.inf
        self.finite = self.zeros = self.nan = self.pinf = self.ninf = 0
        self.mean = 0.0
        self.squares = 0.0  # of the distances from the mean

    def add(self, chunk: Array) -> None:
        """Add a 1-D chunk of real numbers."""
        self.zeros += int(np.count_nonzero(chunk == 0))
        low, high = chunk.min().item(), chunk.max().item()
        if not (math.isfinite(low) and math.isfinite(high)):
            self.nan += int(np.count_nonzero(np.isnan(chunk)))
            self.pinf += int(np.count_nonzero(chunk == np.inf))
            self.ninf += int(np.count_nonzero(chunk == -np.inf))
            chunk = chunk[np.isfinite(chunk)]
            if not chunk.size:
                return
            low, high = chunk.min().item(), chunk.max().item()
        self.low, self.high = min(self.low, low), max(self.high, high)
        mean, squares = _moments(chunk, low, high)
        # Chan, Golub, LeVeque: joining two sets of which mean and squares are known.
        both = self.finite + chunk.size
        apart = mean - self.mean
        self.mean += apart * (chunk.size / both)
        self.squares += squares + apart * apart * (self.finite * chunk.size / both)
        self.finite = both

    def result(self, array: Array) -> TensorStatistics:
        """Give the statistics of `array`, whose chunks were added."""
        known = self.finite > 0
        return TensorStatistics(
            count=array.size,
            min=self.low if known else math.nan,
            max=self.high if known else math.nan,
            mean=self.mean if known else math.nan,
            std=math.sqrt(self.squares / self.finite) if known else math.nan,
            zeros=self.zeros,
            nan=self.nan,
            pinf=self.pinf,
            ninf=self.ninf,
            dtype=array.dtype,
            shape=array.shape,
        )


def _narrow(values: Array, low: float, high: float) -> bool:
    """Whether float32 is enough: squares of the differences neither over- nor underflow."""
    span = float(high) - float(low)
    return (values.dtype == np.float32 or values.dtype.itemsize <= 2) and (
        span == 0 or 1e-15 < span < 1e15
    )


def _moments(values: Array, low: float, high: float) -> tuple[float, float]:
    """Mean of finite values, and sum of the squared distances from it."""
    real = np.float32 if _narrow(values, low, high) else np.float64
    working: npt.NDArray[Any] = values.astype(real, copy=False)
    # Sums are of distances from a near mean, so that nothing of them cancels.
    near = real(working[::_SAMPLE_STEP].mean(dtype=np.float64))
    apart = np.subtract(working, near)
    total = float(apart.sum())
    squares = float(np.dot(apart, apart)) - total * total / values.size
    return float(near) + total / values.size, max(squares, 0.0)


def _inside(chunk: Array, low: float, high: float) -> Array:
    """Elements within a range; the chunk itself where all are."""
    if chunk.min() >= low and chunk.max() <= high:
        return chunk
    return chunk[(chunk >= low) & (chunk <= high)]


def _count_bins(values: Array, low: float, high: float, bins: int) -> npt.NDArray[np.int64]:
    """Count values that all lie within a range."""
    if not math.isfinite(high - low):  # the range is wider than a float can say
        return _count_bins(values.astype(np.float64) / 2, low / 2, high / 2, bins)
    narrow = _narrow(values, low, high) and bins <= 4096
    real = np.float32 if narrow else np.float64
    above = np.subtract(values.astype(real, copy=False), real(low))
    steps = np.multiply(above, real(bins / (high - low)))
    counts = np.bincount(steps.astype(np.intp), minlength=bins + 1)
    counts[bins - 1] += counts[bins]  # the upper end belongs to the last bin
    return counts[:bins]


def _of_channel(channel: Array) -> tuple[Array, ...]:
    """Statistics of one large channel, as arrays of one element."""
    s = statistics(channel)
    moments = (s.min, s.max, s.mean, s.std)
    counts = (s.zeros, s.nan, s.pinf, s.ninf)
    return (*(np.array([m], np.float64) for m in moments), *(np.array([c]) for c in counts))


def _of_block(block: Array) -> tuple[Array, ...]:
    """Statistics of the rows of a small matrix."""
    values = _real(block).astype(np.float64)
    finite = np.isfinite(values)
    counts = finite.sum(axis=1)
    low = np.min(values, axis=1, where=finite, initial=np.inf)
    high = np.max(values, axis=1, where=finite, initial=-np.inf)
    with np.errstate(all="ignore"):
        mean = np.sum(values, axis=1, where=finite) / counts
        apart = np.where(finite, values - mean[:, np.newaxis], 0.0)
        std = np.sqrt(np.sum(apart * apart, axis=1) / counts)
    low[counts == 0] = high[counts == 0] = np.nan
    return (
        low, high, mean, std,
        (values == 0).sum(axis=1),
        np.isnan(values).sum(axis=1),
        (values == np.inf).sum(axis=1),
        (values == -np.inf).sum(axis=1),
    )  # fmt: skip
