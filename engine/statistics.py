"""Statistics and histograms of tensors and their channels.

Arrays are gone through once, in chunks that stay in the processor's cache, so that a tensor
of any size costs no memory to speak of; large ones in two halves at the same time. Not-a-number
and infinite elements are counted and otherwise left out. Complex numbers enter by their
magnitude, bools as 0 and 1.

Everything here takes all elements into account. Only a histogram may be asked to look at
every n-th of them (`sampling_step` says of how many it is worth it), because to count into
bins takes ten times as long as all the rest.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy.typing as npt

    from engine.values import Array

__all__ = [
    "Accumulator",
    "ChannelStatistics",
    "Scratch",
    "TensorStatistics",
    "add_rows",
    "add_up",
    "channel_statistics",
    "dot_rows",
    "find_twins",
    "histogram",
    "sampling_step",
    "statistics",
]

T = TypeVar("T")

_CHUNK: Final = 1 << 19  # elements; short enough for a cache, long enough to share the GIL
_BINNED: Final = 1 << 17  # elements of a chunk for a histogram, which needs more memory
_BLOCK: Final = 1 << 16  # elements of small channels that are worked on together
_IN_HALVES: Final = 1 << 20  # elements from which a second thread is worth its start
_ROW: Final = 512  # elements that are added up as they are; the sums of rows as float64
_RUN: Final = 16  # neighbours that a sample takes together, for they come from memory so
_LARGEST_EXACT: Final = 1 << 21  # elements
_SAMPLE: Final = 1 << 18  # elements, at most; a thousand for each of 256 bins
# Squares of numbers between these neither over- nor underflow, nor do sums of many.
_NARROW: Final = (1e-15, 1e15)
_WIDE: Final = (1e-140, 1e140)
_BELOW_ONE: Final = math.nextafter(1.0, 0.0)  # scaled numbers are below 1
_SHORTEST: Final = 1e-290  # range whose inverse steps are still finite in float64
_LONGER: Final = 2.0**600


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


def statistics(array: Array, threads: int = 2) -> TensorStatistics:
    """Compute the statistics of all elements.

    Parameters
    ----------
    array : ndarray of any shape, numbers of any dtype
        Complex numbers count by magnitude; one with a nan part is nan, with an infinite
        part +inf. Not copied, whatever its strides.
    threads : int, optional
        That go through a large array, at most two.

    Returns
    -------
    TensorStatistics
        All exact but for `mean` and `std`, whose errors are below a millionth of `std` and
        of the larger of both.
    """
    total = moments = _go_through(array, threads)
    biggest = max(-total.low, total.high)
    if total.low < total.high and not _WIDE[0] < biggest < _WIDE[1]:
        # Their squares overflow float64.
        moments = _go_through(array, threads, -math.frexp(biggest)[1])
    return total.statistics(array, moments)


def histogram(
    array: Array, low: float, high: float, bins: int = 256, step: int = 1
) -> npt.NDArray[np.int64]:
    """Count the finite elements in equal steps of a range.

    Parameters
    ----------
    array : ndarray of any shape, numbers of any dtype
        Complex numbers count by magnitude.
    low, high : float
        Both ends belong to the range; what lies outside is not counted. Where they are
        equal all elements of that value are in the middle bin.
    bins : int, optional
    step : int, optional
        Look at one of `step` elements only: at runs of neighbours, evenly spread over the
        array. Made for large ones; of a small one nothing may be left.

    Returns
    -------
    ndarray of shape (bins,), int64
        An element at the boundary of two bins is in the upper one, up to rounding.

    Raises
    ------
    ValueError
        If the range is not finite or not ordered, or `bins` or `step` is less than 1.
    """
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ValueError(f"the range {low} to {high} is not finite and ordered")
    if bins < 1:
        raise ValueError(f"a histogram needs at least one bin, not {bins}")
    if step < 1:
        raise ValueError(f"a histogram looks at one of 1 or more elements, not of {step}")

    def count(chunks: Iterator[Array]) -> _Bins:
        found = _Bins(low, high, bins)
        for chunk in chunks:
            found.add(chunk)
        return found

    total, *others = _in_parts(count, array, _BINNED, step)
    for other in others:
        total.counts += other.counts
    return total.counts


def sampling_step(size: int) -> int:
    """Return the sampling step with which a histogram takes a few milliseconds.

    Parameters
    ----------
    size : int
        Of the array.

    Returns
    -------
    int
        1 up to two million elements. A prime otherwise, so that no regular pattern hides
        between the samples.
    """
    step = -(-size // _SAMPLE) if size > _LARGEST_EXACT else 1
    while any(step % divisor == 0 for divisor in range(2, math.isqrt(step) + 1)):
        step += 1
    return step


def channel_statistics(
    array: Array, axis: int, check_cancelled: Callable[[], None] | None = None
) -> ChannelStatistics:
    """Compute the statistics of every channel.

    Parameters
    ----------
    array : ndarray of any shape with C entries along `axis`
        Complex numbers count by magnitude.
    axis : int
    check_cancelled : callable, optional
        Called before each part; may raise to give up.

    Returns
    -------
    ChannelStatistics
    """
    channels = np.moveaxis(array, axis, 0)
    size = math.prod(channels.shape[1:])
    if size >= _BLOCK:
        parts = [_of_channel(channel) for channel in _checked(channels, check_cancelled)]
    else:
        step = _BLOCK // max(size, 1)
        blocks = (channels[i : i + step] for i in range(0, len(channels), step))
        parts = [
            _of_block(block.reshape(len(block), size))
            for block in _checked(blocks, check_cancelled)
        ]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    if not columns:
        columns = [np.empty(0, dtype) for dtype in [np.float64] * 4 + [np.int64] * 4]
    return ChannelStatistics(*columns)


def _in_parts(
    work: Callable[[Iterator[Array]], T],
    array: Array,
    length: int,
    step: int = 1,
    threads: int = 2,
) -> list[T]:
    """Call `work` with the chunks of an array, with two threads for a large one.

    Parameters
    ----------
    work : callable
        Takes chunks: 1-D arrays of real numbers.
    array : ndarray
    length : int
        Of a chunk, at most.
    step : int
        One of so many elements is in the chunks.
    threads : int
        With 1 it goes through all arrays by itself.
    """
    flat = _flat(array)
    if flat is None:
        return [work(_chunks_of_any(array, length, step))]
    if flat.size < _IN_HALVES or threads < 2:
        return [work(_chunks_of(flat, length, step))]
    middle = flat.size // 2
    with ThreadPoolExecutor(1) as helper:
        try:
            second = helper.submit(work, _chunks_of(flat[middle:], length, step))
        except RuntimeError:  # the system lets no more threads start
            return [work(_chunks_of(flat, length, step))]
        return [work(_chunks_of(flat[:middle], length, step)), second.result()]


def _flat(array: Array) -> Array | None:
    """Return all elements in memory order; None if they are not contiguous."""
    plain = array.flags.forc and array.flags.aligned and array.dtype.isnative
    return array.ravel(order="K") if plain else None


def _chunks_of(flat: Array, length: int, step: int) -> Iterator[Array]:
    """Yield chunks of a contiguous 1-D array, one run of neighbours in `step`."""
    if step > 1:
        runs = flat[: flat.size // _RUN * _RUN].reshape(-1, _RUN)
        flat = runs[::step].reshape(-1)  # a copy
    for begin in range(0, flat.size, length):
        yield _real(flat[begin : begin + length])


def _chunks_of_any(array: Array, length: int, step: int) -> Iterator[Array]:
    """Yield chunks of an array of any strides and byte order."""
    parts = np.nditer(
        array,
        flags=["external_loop", "buffered", "zerosize_ok"],
        op_dtypes=array.dtype.newbyteorder("="),
        order="K",
        casting="equiv",
        buffersize=length,
    )
    first = 0
    for part in parts:
        chunk = np.asarray(part)  # with one operand no tuple, but the array itself
        if first < chunk.size:
            yield _real(np.ascontiguousarray(chunk[first::step]))
        first = (first - chunk.size) % step


def _real(values: Array) -> Array:
    """Convert numbers to a dtype that is fast and exact enough here."""
    if values.dtype.kind == "c":
        return np.abs(values)
    if values.dtype.kind == "b":
        return values.view(np.uint8)
    return values.astype(np.float32) if values.dtype == np.float16 else values


def _go_through(array: Array, threads: int, exponent: int = 0) -> Accumulator:
    """Add up an array, see `Accumulator`."""

    def add_up(chunks: Iterator[Array]) -> Accumulator:
        total = Accumulator(exponent)
        # Values at the ends of the floats overflow on the way to their mean.
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            for chunk in chunks:
                total.add(chunk)
        return total

    total, *others = _in_parts(add_up, array, _CHUNK, threads=threads)
    for other in others:
        total.join(other)
    return total


class Accumulator:
    """Adds up chunks; sums are kept in Python's own 64-bit and unbounded numbers.

    Parameters
    ----------
    exponent : int, optional
        Mean and deviation are worked out of the elements times two to this power.
    scratch : Scratch, optional
        To share with others of the same thread.

    Attributes
    ----------
    low, high : int or float
        Least and largest finite element so far; inf and -inf for none.
    finite, zeros, nan, pinf, ninf : int
        Numbers of such elements so far.
    """

    def __init__(self, exponent: int = 0, scratch: Scratch | None = None) -> None:
        self.low: int | float = math.inf
        self.high: int | float = -math.inf
        self.finite = self.zeros = self.nan = self.pinf = self.ninf = 0
        self._exponent = exponent
        self._mean = 0.0
        self._squares = 0.0  # of the distances from the mean
        self._scratch = scratch or Scratch()

    def add(self, chunk: Array) -> float:
        """Add a 1-D chunk of real numbers, not empty.

        Returns
        -------
        float
            Sum of the squares of its finite elements, scaled by the exponent.
        """
        low, high = _bounds(chunk)
        if not (math.isfinite(low) and math.isfinite(high)):
            self.nan += int(np.count_nonzero(np.isnan(chunk)))
            self.pinf += int(np.count_nonzero(chunk == np.inf))
            self.ninf += int(np.count_nonzero(chunk == -np.inf))
            chunk = chunk[np.isfinite(chunk)]
            if not chunk.size:
                return 0.0
            low, high = _bounds(chunk)
        if low <= 0 <= high:
            zero = np.equal(chunk, 0, out=self._scratch.array(chunk.size, np.bool_))
            self.zeros += int(np.count_nonzero(zero))
        self.low, self.high = min(self.low, low), max(self.high, high)
        if self._exponent:
            chunk = np.ldexp(chunk, self._exponent)
            low, high = math.ldexp(low, self._exponent), math.ldexp(high, self._exponent)
        mean, apart, squares = self._moments(chunk, low, high)
        self._join(chunk.size, mean, apart)
        return squares

    def join(self, other: Accumulator) -> None:
        """Add the sums of another accumulator."""
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.zeros += other.zeros
        self.nan += other.nan
        self.pinf += other.pinf
        self.ninf += other.ninf
        if other.finite:
            self._join(other.finite, other._mean, other._squares)

    def statistics(self, array: Array, moments: Accumulator | None = None) -> TensorStatistics:
        """Return the statistics of an array whose chunks were added.

        Parameters
        ----------
        array : ndarray
        moments : Accumulator, optional
            Of the same array, whose mean and deviation count.
        """
        moments = moments or self
        known = self.finite > 0
        return TensorStatistics(
            count=array.size,
            min=self.low if known else math.nan,
            max=self.high if known else math.nan,
            mean=moments.mean if known else math.nan,
            std=moments.deviation if known else math.nan,
            zeros=self.zeros,
            nan=self.nan,
            pinf=self.pinf,
            ninf=self.ninf,
            dtype=array.dtype,
            shape=array.shape,
        )

    @property
    def mean(self) -> float:
        """Mean of the finite elements, of which there must be some."""
        return self._back(self._mean)

    @property
    def deviation(self) -> float:
        """Their standard deviation."""
        return self._back(math.sqrt(self._squares / self.finite))

    def _back(self, number: float) -> float:
        """Undo the scaling of a value, limited to the range of the elements."""
        if self._exponent:
            number = max(-_BELOW_ONE, min(number, _BELOW_ONE))
        return math.ldexp(number, -self._exponent)

    def _join(self, finite: int, mean: float, squares: float) -> None:
        if not self.finite:  # otherwise the square of a large mean times zero would be NaN
            self.finite, self._mean, self._squares = finite, mean, squares
            return
        # Chan, Golub, LeVeque: merges two sets with known means and squares.
        both = self.finite + finite
        apart = mean - self._mean
        self._mean += apart * (finite / both)
        self._squares += squares + apart * apart * (self.finite * finite / both)
        self.finite = both

    def _moments(self, values: Array, low: float, high: float) -> tuple[float, float, float]:
        """Mean of finite values, and sums of the squared distances from it and from 0."""
        if low == high:
            mean = float(low)
            return mean, 0.0, values.size * mean * mean
        small = values.dtype == np.float32 or values.dtype.itemsize <= 2
        narrow = small and _NARROW[0] < max(-low, high) < _NARROW[1]
        working: npt.NDArray[Any] = values.astype(
            np.float32 if narrow else np.float64, copy=False
        )
        total, squares = add_up(working)
        apart = squares - total * total / values.size
        if apart * 4 >= squares:
            return total / values.size, apart, squares
        # The mean is so large that too much of the difference has cancelled. Distances from a
        # number near the mean have no such mean.
        if narrow and not _NARROW[0] < high - low:
            working = working.astype(np.float64)
        real = working.dtype.type
        near = real(total / values.size)
        distances = np.subtract(working, near, out=self._scratch.array(values.size, real))
        total, moved = add_up(distances)
        apart = moved - total * total / values.size
        return float(near) + total / values.size, max(apart, 0.0), squares


def _bounds(chunk: Array) -> tuple[int | float, int | float]:
    """Return the least and the largest element; NaN if there is one."""
    # By the ufuncs: the methods take as long as hundreds of elements to call them.
    return np.minimum.reduce(chunk).item(), np.maximum.reduce(chunk).item()


def add_up(values: Array) -> tuple[float, float]:
    """Return the sum of values and of their squares, as exact as if all were float64.

    Parameters
    ----------
    values : ndarray of shape (N,), float32 or float64
        float32 only if no square over- or underflows.
    """
    rest = values.size // _ROW * _ROW
    rows = values[:rest].reshape(-1, _ROW)
    total = np.add.reduce(add_rows(rows), dtype=np.float64)
    squares = np.add.reduce(dot_rows(rows, rows), dtype=np.float64)
    if rest < values.size:
        others = values[rest:].astype(np.float64)
        total += others.sum()
        squares += np.dot(others, others)
    return float(total), float(squares)


def find_twins(rows: Array, facts: Array, left_out: Array) -> Array:
    """Return the first equal row of each; only those with equal facts are compared.

    Parameters
    ----------
    rows : ndarray of shape (N, ...)
    facts : ndarray of shape (N, F)
        Numbers that equal rows have in common.
    left_out : ndarray of bool, shape (N,)
        Rows that are not compared.

    Returns
    -------
    ndarray of int64, shape (N,)
        -1 for a row that is not compared, or is the first of its kind.
    """
    twins = np.full(len(rows), -1)
    groups: dict[bytes, list[int]] = {}
    for row in np.flatnonzero(~left_out).tolist():
        alike = groups.setdefault(facts[row].tobytes(), [])
        for other in alike:
            if np.array_equal(rows[other], rows[row], equal_nan=True):
                twins[row] = other
                break
        else:
            alike.append(row)
    return twins


def dot_rows(one: Array, other: Array) -> Array:
    """Return the dot product of each row.

    Parameters
    ----------
    one, other : ndarray of shape (N, M), of one dtype

    Returns
    -------
    ndarray of shape (N,), of that dtype
    """
    return np.asarray(np.vecdot(one, other))


def add_rows(rows: Array) -> Array:
    """Return the sum of each row, in the array's own dtype.

    Parameters
    ----------
    rows : ndarray of shape (N, M)

    Returns
    -------
    ndarray of shape (N,)
    """
    return np.asarray(np.einsum("ij->i", rows))  # twice as fast as add.reduce


class _Bins:
    """Counts chunks into equal steps of a range."""

    def __init__(self, low: float, high: float, bins: int) -> None:
        self.counts = np.zeros(bins, np.int64)
        self._low, self._high = low, high
        self._scratch = Scratch()

    def add(self, chunk: Array) -> None:
        """Add a 1-D chunk of real numbers."""
        low, high, bins = self._low, self._high, self.counts.size
        if not (chunk.min() >= low and chunk.max() <= high):
            chunk = chunk[(chunk >= low) & (chunk <= high)]
        if low == high:
            self.counts[bins // 2] += chunk.size
            return
        if not chunk.size:
            return
        if not math.isfinite(high - low):  # the width of the range overflows
            chunk, low, high = chunk.astype(np.float64) / 2, low / 2, high / 2
        elif high - low < _SHORTEST:
            chunk = chunk.astype(np.float64) * _LONGER
            low, high = low * _LONGER, high * _LONGER
        small = chunk.dtype == np.float32 or chunk.dtype.itemsize <= 2
        narrow = small and _NARROW[0] < high - low < _NARROW[1] and bins <= 4096
        real: type[np.floating[Any]] = np.float32 if narrow else np.float64
        steps = self._scratch.array(chunk.size, real)
        np.subtract(chunk, real(low), out=steps, dtype=real)
        np.multiply(steps, real(bins / (high - low)), out=steps)
        places = self._scratch.array(chunk.size, np.intp)
        np.copyto(places, steps, casting="unsafe")
        counts = np.bincount(places, minlength=bins + 1)
        self.counts += counts[:bins]
        self.counts[bins - 1] += counts[bins]  # the upper end belongs to the last bin


class Scratch:
    """Reusable memory for the results of chunks.

    Allocating it for every chunk would take longer than the computation.
    """

    def __init__(self) -> None:
        self._arrays: dict[type[np.generic], Array] = {}

    def array(self, size: int, dtype: type[np.generic]) -> Array:
        """Give an array of shape (size,), which the next call with `dtype` gives again."""
        found = self._arrays.get(dtype)
        if found is None or found.size < size:
            found = self._arrays[dtype] = np.empty(size, dtype)
        return found[:size]


def _checked(parts: Iterable[Array], check: Callable[[], None] | None) -> Iterator[Array]:
    for part in parts:
        if check is not None:
            check()
        yield part


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
        # A float64 cannot hold the squares of very large and very small numbers.
        biggest = np.maximum(-low, high)
        exponents = np.where((biggest > 0) & np.isfinite(biggest), np.frexp(biggest)[1], 0)
        scaled = np.ldexp(values, -exponents[:, np.newaxis])
        mean = np.sum(scaled, axis=1, where=finite) / counts
        apart = np.where(finite, scaled - mean[:, np.newaxis], 0.0)
        std = np.sqrt(np.sum(apart * apart, axis=1) / counts)
        limit = np.where(counts > 0, _BELOW_ONE, np.nan)
        mean, std = (
            np.ldexp(np.clip(found, -limit, limit), exponents) for found in (mean, std)
        )
    low[counts == 0] = high[counts == 0] = np.nan
    return (
        low, high, mean, std,
        (values == 0).sum(axis=1),
        np.isnan(values).sum(axis=1),
        (values == np.inf).sum(axis=1),
        (values == -np.inf).sum(axis=1),
    )  # fmt: skip
