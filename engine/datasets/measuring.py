"""Measures the channels of each input in one go through an operand.

An operand comes as ``(inputs, channels, elements)`` or ``(inputs, elements, channels)``. Sums
are taken in the operand's own float32 over pieces of at most 512 elements and in float64
beyond. Where little is left of the squares after the mean is taken off, the distances from a
number near the mean are summed instead, and elements that are not finite, or whose squares
float32 cannot hold, are summed in float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.statistics import add_rows, dot_rows

if TYPE_CHECKING:
    import numpy.typing as npt

    from engine.values import Array

__all__ = ["Measured", "as_real", "measure"]

_PIECE: Final = 512  # elements that are summed in float32
_SHORTEST: Final = 128  # pieces, where the length of a row has such a divisor
_BLOCK: Final = 1 << 17  # elements that stay in the cache
_BYTES: Final = 8  # of a word
_MOST_WORDS: Final = 255  # whose bytes, 0 or 1, add up without a carry
_NARROW: Final = (1e-15, 1e15)  # squares between these fit float32
_LEFT: Final = 4  # of the squares less than one in so many is left: too much has cancelled


@dataclass(slots=True)
class Measured:
    """What channels hold, for each input by itself; arrays of shape (inputs, channels).

    Attributes
    ----------
    size : int
        Elements of a channel.
    low, high, mean, squares : ndarray of float64
        Of the finite elements; inf, -inf, 0 and 0 where there are none. `squares` is the sum of
        the squared distances from the mean.
    finite, zeros, nan, pinf, ninf : ndarray of int64
        Numbers of such elements.
    """

    size: int
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]
    mean: npt.NDArray[np.float64]
    squares: npt.NDArray[np.float64]
    finite: npt.NDArray[np.int64]
    zeros: npt.NDArray[np.int64]
    nan: npt.NDArray[np.int64]
    pinf: npt.NDArray[np.int64]
    ninf: npt.NDArray[np.int64]


def as_real(array: Array) -> Array:
    """Convert numbers to float32 or float64, exactly; complex ones by their magnitude."""
    if array.dtype.kind == "c":
        array = np.abs(array)
    if array.dtype in {np.dtype(np.float32), np.dtype(np.float64)}:
        return array
    small = array.dtype.itemsize <= 2
    return array.astype(np.float32 if small else np.float64)


def measure(array: Array, axis: int) -> Measured:
    """Measure every channel of every input.

    Parameters
    ----------
    array : ndarray of float32 or float64, of shape (inputs, …)
    axis : int
        Of the channels; 0 where there are none, and all elements of an input count as one.

    Returns
    -------
    Measured
    """
    inputs = len(array)
    if axis == 0:
        rows = np.ascontiguousarray(array).reshape(inputs, 1, -1)
    elif axis == array.ndim - 1 and array.ndim > 2:
        return _measure_columns(
            np.ascontiguousarray(array).reshape(inputs, -1, array.shape[-1])
        )
    else:
        moved = np.ascontiguousarray(np.moveaxis(array, axis, 1))
        rows = moved.reshape(inputs, array.shape[axis], -1)
    flat = rows.reshape(-1, rows.shape[-1]) if rows.size else rows.reshape(0, 0)
    return _shaped(_of_rows(flat), rows.shape[0], rows.shape[1], rows.shape[2])


def _shaped(columns: _Columns, inputs: int, channels: int, size: int) -> Measured:
    shape = (inputs, channels)
    if not size:
        empty = np.zeros(shape)
        count = np.zeros(shape, np.int64)
        return Measured(
            0, empty + np.inf, empty - np.inf, empty, empty, count, count, count, count, count
        )
    arrays = (each.reshape(shape) for each in columns.arrays)
    return Measured(size, *arrays)


class _Columns:
    """Facts of rows: low, high, mean, squares, finite, zeros, nan, pinf, ninf."""

    def __init__(
        self, low: Array, high: Array, mean: Array, squares: Array, zeros: Array, size: int
    ) -> None:
        none = np.zeros(len(low), np.int64)
        finite = np.full(len(low), size, np.int64)
        self.arrays = [
            low, high, mean, squares, finite, zeros, none, none.copy(), none.copy(),
        ]  # fmt: skip

    def put(self, where: Array, facts: list[Array]) -> None:
        for mine, theirs in zip(self.arrays, facts, strict=True):
            mine[where] = theirs


# Rows: the elements of a channel lie together


def _of_rows(rows: Array) -> _Columns:
    count, size = rows.shape
    if size <= 1:  # a number is its own mean
        value = rows.reshape(-1)[:count].astype(np.float64)
        found = _Columns(
            value, value.copy(), value.copy(), np.zeros(len(value)),
            (value == 0).astype(np.int64), size,
        )  # fmt: skip
        wrong = ~np.isfinite(value)
    else:
        low, high, total, squares, zeros = _sums_of_rows(rows)
        found, wrong = _moments(low, high, total, squares, zeros, size, rows.dtype)
        cancelled = _cancelled(found, squares) & ~wrong
        if cancelled.any():
            _sum_distances(found, rows, np.flatnonzero(cancelled))
    if wrong.any():
        where = np.flatnonzero(wrong)
        step = max(1, _BLOCK // max(size, 1))
        for begin in range(0, len(where), step):
            some = where[begin : begin + step]
            found.put(some, _carefully(rows[some]))
    return found


def _sums_of_rows(rows: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Least, largest, sum, sum of squares and zeros of each row."""
    size = rows.shape[1]
    length = _length_of_piece(size)
    rest = size % length
    parts = [_sums_of_pieces(rows if not rest else rows[:, : size - rest], length)]
    if rest:
        parts.append(_sums_of_pieces(rows[:, size - rest :], rest))
    low = np.minimum.reduce([part[0] for part in parts])
    high = np.maximum.reduce([part[1] for part in parts])
    total, squares, zeros = (
        np.add.reduce([part[place] for part in parts]) for place in (2, 3, 4)
    )
    return low.astype(np.float64), high.astype(np.float64), total, squares, zeros


def _length_of_piece(size: int) -> int:
    if size <= 2 * _PIECE:
        return size
    for length in range(_PIECE, _SHORTEST - 1, -1):
        if size % length == 0:
            return length
    return _PIECE


def _sums_of_pieces(rows: Array, length: int) -> tuple[Array, Array, Array, Array, Array]:
    count = len(rows)
    pieces = np.ascontiguousarray(rows).reshape(-1, length)
    number = len(pieces)
    low, high, total, squares = (np.empty(number, rows.dtype) for _ in range(4))
    zeros = np.empty(number, np.int64)
    step = max(1, _BLOCK // length)
    padded = -(-length // _BYTES) * _BYTES
    zero = np.zeros((min(step, number), padded), np.bool_)
    for begin in range(0, number, step):
        block = pieces[begin : begin + step]
        part = slice(begin, begin + len(block))
        np.minimum.reduce(block, axis=1, out=low[part])
        np.maximum.reduce(block, axis=1, out=high[part])
        total[part] = add_rows(block)
        squares[part] = dot_rows(block, block)
        flags = zero[: len(block)]
        np.equal(block, 0, out=flags[:, :length])
        zeros[part] = _count_flags(flags)
    shape = (count, -1)
    return (
        low.reshape(shape).min(axis=1),
        high.reshape(shape).max(axis=1),
        total.reshape(shape).sum(axis=1, dtype=np.float64),
        squares.reshape(shape).sum(axis=1, dtype=np.float64),
        zeros.reshape(shape).sum(axis=1),
    )


def _count_flags(flags: Array) -> Array:
    """Count the true ones of each row; the rows are whole words long."""
    words = flags.view(np.uint64)
    total: Array = np.zeros(len(words), np.int64)
    for begin in range(0, words.shape[1], _MOST_WORDS):
        sums = np.add.reduce(words[:, begin : begin + _MOST_WORDS], axis=1)
        total += sums.view(np.uint8).reshape(-1, _BYTES).sum(axis=1, dtype=np.int64)
    return total


def _moments(
    low: Array,
    high: Array,
    total: Array,
    squares: Array,
    zeros: Array,
    size: int,
    dtype: np.dtype[Any],
) -> tuple[_Columns, Array]:
    """Mean and squared distances from it; and where these sums cannot be trusted."""
    with np.errstate(all="ignore"):
        mean = total / size
        apart = np.maximum(squares - total * mean, 0.0)
        same = low == high
        mean = np.where(same, low, np.clip(mean, low, high))
        apart[same] = 0.0
        biggest = np.maximum(-low, high)
        least, most = _NARROW if dtype == np.float32 else (1e-140, 1e140)
        held = (biggest == 0) | ((biggest > least) & (biggest < most))
        wrong = ~(held & np.isfinite(total) & np.isfinite(squares)) & ~(same & np.isfinite(low))
    return _Columns(low, high, mean, apart, zeros, size), wrong


def _cancelled(found: _Columns, squares: Array) -> Array:
    low, high, _, apart = found.arrays[:4]
    return (apart * _LEFT < squares) & (low < high)


def _sum_distances(found: _Columns, rows: Array, where: Array) -> None:
    """Sum the distances from a number near the mean of some rows."""
    size = rows.shape[1]
    mean, apart = found.arrays[2], found.arrays[3]
    step = max(1, _BLOCK // size)
    for begin in range(0, len(where), step):
        some = where[begin : begin + step]
        near = mean[some].astype(rows.dtype)
        distances = rows[some] - near[:, np.newaxis]
        _, _, total, squares, _ = _sums_of_rows(distances)
        moved = total / size
        mean[some] = near + moved
        apart[some] = np.maximum(squares - total * moved, 0.0)


def _carefully(rows: Array) -> list[Array]:
    """Facts of rows with any elements, in float64."""
    values = rows.astype(np.float64)
    finite = np.isfinite(values)
    count = finite.sum(axis=1)
    low = np.min(values, axis=1, where=finite, initial=np.inf)
    high = np.max(values, axis=1, where=finite, initial=-np.inf)
    with np.errstate(all="ignore"):
        biggest = np.maximum(np.maximum(-low, high), 0.0)
        exponents = np.where(np.isfinite(biggest), np.frexp(biggest)[1], 0)[:, np.newaxis]
        scaled = np.where(finite, np.ldexp(np.where(finite, values, 0.0), -exponents), 0.0)
        mean = scaled.sum(axis=1) / np.maximum(count, 1)
        distances = np.where(finite, scaled - mean[:, np.newaxis], 0.0)
        apart = np.sum(distances * distances, axis=1)
        mean = np.clip(np.ldexp(mean, exponents[:, 0]), low, high)
        apart = np.ldexp(np.ldexp(apart, exponents[:, 0]), exponents[:, 0])
    mean = np.where(count > 0, mean, 0.0)
    return [
        low, high, mean, apart, count,
        (values == 0).sum(axis=1),
        np.isnan(values).sum(axis=1),
        (values == np.inf).sum(axis=1),
        (values == -np.inf).sum(axis=1),
    ]  # fmt: skip


# Columns: channels are the last axis


def _measure_columns(array: Array) -> Measured:
    """Measure channels along the last axis of an array (inputs, elements, channels)."""
    inputs, size, channels = array.shape
    if not array.size:
        return _shaped(_of_rows(array.reshape(0, 0)), inputs, channels, 0)
    low, high, total, squares, zeros = _sums_of_columns(array)
    found, wrong = _moments(low, high, total, squares, zeros, size, array.dtype)
    rare = wrong | _cancelled(found, squares)
    if rare.any():
        where = np.flatnonzero(rare)
        step = max(1, _BLOCK // size)
        for begin in range(0, len(where), step):
            some = where[begin : begin + step]
            rows = np.ascontiguousarray(array[some // channels, :, some % channels])
            found.put(some, _carefully(rows))
    return _shaped(found, inputs, channels, size)


def _sums_of_columns(array: Array) -> tuple[Array, Array, Array, Array, Array]:
    inputs, size, channels = array.shape
    shape = (inputs, channels)
    low, high = np.full(shape, np.inf), np.full(shape, -np.inf)
    total, squares = np.zeros(shape), np.zeros(shape)
    zeros = np.zeros(shape, np.int64)
    step = max(1, min(_MOST_WORDS, _BLOCK // max(channels * inputs, 1)))
    for begin in range(0, size, step):
        block = array[:, begin : begin + step]
        np.minimum(low, block.min(axis=1), out=low)
        np.maximum(high, block.max(axis=1), out=high)
        total += np.einsum("itc->ic", block)
        squares += np.einsum("itc,itc->ic", block, block)
        flags = np.equal(block, 0).view(np.uint8)
        zeros += np.add.reduce(flags, axis=1, dtype=np.uint8)
    flat = (low, high, total, squares, zeros)
    return tuple(each.reshape(-1) for each in flat)  # type: ignore[return-value]
