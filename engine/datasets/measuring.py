"""Measures the channels of each input in one go through the operands.

Sums are taken in an operand's own float32 over pieces of at most 512 elements, or 255 steps
along them, and in float64 beyond. Where little is left of the squares after the mean is taken
off, the distances from a number near the mean are summed instead; and elements that are not
finite, or whose squares float32 cannot hold, are summed in float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from engine.statistics import add_rows, dot_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from engine.values import Array

__all__ = ["Measured", "as_real", "measure"]

_PIECE: Final = 512  # elements that are summed in float32
_SHORTEST: Final = 128  # pieces, where the length of a row has such a divisor
_BLOCK: Final = 1 << 17  # elements that stay in the cache
_BYTES: Final = 8  # of a word
_MOST_WORDS: Final = 255  # whose bytes, 0 or 1, add up without a carry
_NARROW: Final = (1e-15, 1e15)  # squares between these fit float32
_WIDE: Final = (1e-140, 1e140)  # likewise float64
_LEFT: Final = 16  # of the squares less than one in so many is left: too much has cancelled

_Sums: TypeAlias = "tuple[Array, Array, Array, Array, Array]"


@dataclass(slots=True)
class Measured:
    """What channels of operands hold, for each input by itself.

    Attributes
    ----------
    size : ndarray of int64, shape (channels,)
        Elements of a channel.
    low, high, mean, squares : ndarray of float64, shape (inputs, channels)
        Of the finite elements; inf, -inf, 0 and 0 where there are none. `squares` is the sum of
        the squared distances from the mean.
    finite, zeros, nan, pinf, ninf : ndarray of int64, shape (inputs, channels)
        Numbers of such elements.
    """

    size: npt.NDArray[np.int64]
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


def measure(operands: Sequence[tuple[Array, int]]) -> Measured:
    """Measure every channel of every input.

    Parameters
    ----------
    operands : sequence of (ndarray, int)
        Arrays of float32 or float64, of shape (inputs, …), with the axis of their channels; 0
        where there are none, and all elements of an input count as one.

    Returns
    -------
    Measured
        The channels of all operands, one operand after the other.
    """
    with np.errstate(all="ignore"):  # what overflows is measured again
        return _measure([_Layout(array, axis) for array, axis in operands])


def _measure(layouts: Sequence[_Layout]) -> Measured:
    parts = [layout.sums() for layout in layouts]
    low, high, total, squares, zeros = (
        np.concatenate([part[place] for part in parts], axis=1) for place in range(5)
    )
    channels = [layout.channels for layout in layouts]
    size = np.repeat([layout.size for layout in layouts], channels)
    narrow = np.repeat([layout.is_narrow for layout in layouts], channels)
    none = np.zeros(low.shape, np.int64)
    mean = np.clip(total / np.maximum(size, 1), low, high)
    apart = np.maximum(squares - total * mean, 0.0)
    same = low == high
    np.copyto(mean, low, where=same)
    apart[same] = 0.0
    biggest = np.maximum(-low, high)
    least, most = (np.where(narrow, _NARROW[end], _WIDE[end]) for end in (0, 1))
    held = (biggest == 0) | (same & np.isfinite(low))
    held |= (biggest > least) & (biggest < most) & np.isfinite(total + squares)
    rare = ~(held & ((apart * _LEFT >= squares) | same)) & (size > 0)
    mean[:, size == 0] = 0.0
    measured = Measured(
        size, low, high, mean, apart, none + size, zeros, none, none.copy(), none.copy()
    )
    if rare.any():
        for layout, (begin, end) in zip(
            layouts, pairwise(np.cumsum([0, *channels]).tolist()), strict=True
        ):
            rows, columns = np.nonzero(rare[:, begin:end])
            if rows.size:
                is_held = held[rows, begin + columns]
                _correct(measured, layout, rows[is_held], columns[is_held], begin)
                _replace(measured, layout, rows[~is_held], columns[~is_held], begin)
    return measured


def _correct(
    measured: Measured, layout: _Layout, inputs: Array, channels: Array, begin: int
) -> None:
    """Sum the distances from numbers near the means of some channels."""
    mean, squares = measured.mean, measured.squares
    step = max(1, _BLOCK // layout.size)
    for first in range(0, len(inputs), step):
        some = inputs[first : first + step], channels[first : first + step]
        at = some[0], some[1] + begin
        rows = layout.rows_of(*some)
        near = mean[at].astype(rows.dtype)
        rows -= near[:, np.newaxis]
        total, apart = _totals(rows)
        moved = total / layout.size
        mean[at] = np.clip(near + moved, measured.low[at], measured.high[at])
        squares[at] = np.maximum(apart - total * moved, 0.0)


def _replace(
    measured: Measured, layout: _Layout, inputs: Array, channels: Array, begin: int
) -> None:
    """Measure some channels with any elements, in float64."""
    step = max(1, _BLOCK // layout.size)
    for first in range(0, len(inputs), step):
        some = inputs[first : first + step], channels[first : first + step]
        facts = _carefully(layout.rows_of(*some))
        at = some[0], some[1] + begin
        for name, values in facts.items():
            getattr(measured, name)[at] = values


class _Layout:
    """An operand by inputs, channels and elements, in the order in which it lies in memory.

    Parameters
    ----------
    array : ndarray of shape (inputs, …)
    axis : int
        Of the channels, 0 for none.
    """

    def __init__(self, array: Array, axis: int) -> None:
        self.is_narrow = array.dtype == np.float32
        self.inputs = len(array)
        self.channels = array.shape[axis] if axis else 1
        self.size = array[0].size // max(self.channels, 1)
        self._last = axis == array.ndim - 1 and array.ndim > 2
        if axis and not self._last:
            array = np.moveaxis(array, axis, 1)
        shape = (self.inputs, self.channels, self.size)
        if self._last:
            shape = (self.inputs, self.size, self.channels)
        self._array = np.ascontiguousarray(array).reshape(shape)

    def rows_of(self, inputs: Array, channels: Array) -> Array:
        """Copy the elements of some channels, a channel a row."""
        if self._last:
            return np.ascontiguousarray(self._array[inputs, :, channels])
        return self._array[inputs, channels]

    def sums(self) -> _Sums:
        """Least, largest, sum, sum of squares and zeros of each channel of each input."""
        shape = (self.inputs, self.channels)
        if not self.size:
            none = np.zeros(shape)
            return none + np.inf, none - np.inf, none, none, np.zeros(shape, np.int64)
        if self._last:
            return self._sums_of_columns()
        if self.size == 1:
            value = self._array.reshape(shape).astype(np.float64)
            return value, value, value, value * value, (value == 0).astype(np.int64)
        found = _sums_of_rows(self._array.reshape(-1, self.size))
        low, high, total, squares, zeros = (each.reshape(shape) for each in found)
        return low, high, total, squares, zeros

    def _sums_of_columns(self) -> _Sums:
        """Sum where channels are the last axis."""
        array, shape = self._array, (self.inputs, self.channels)
        low, high = np.full(shape, np.inf), np.full(shape, -np.inf)
        total, squares = np.zeros(shape), np.zeros(shape)
        zeros = np.zeros(shape, np.int64)
        step = max(1, min(_MOST_WORDS, _BLOCK // max(self.channels * self.inputs, 1)))
        for begin in range(0, self.size, step):
            block = array[:, begin : begin + step]
            np.minimum(low, block.min(axis=1), out=low)
            np.maximum(high, block.max(axis=1), out=high)
            total += np.einsum("itc->ic", block)
            squares += np.einsum("itc,itc->ic", block, block)
            zeros += np.add.reduce((block == 0).view(np.uint8), axis=1, dtype=np.uint8)
        return low, high, total, squares, zeros


def _sums_of_rows(rows: Array) -> _Sums:
    size = rows.shape[1]
    length = _length_of_piece(size)
    rest = size % length
    if not rest:
        return _sums_of_pieces(rows, length)
    main, tail = rows[:, : size - rest], rows[:, size - rest :]
    one, other = _sums_of_pieces(main, length), _sums_of_pieces(tail, rest)
    return (
        np.minimum(one[0], other[0]),
        np.maximum(one[1], other[1]),
        one[2] + other[2],
        one[3] + other[3],
        one[4] + other[4],
    )


def _totals(rows: Array) -> tuple[Array, Array]:
    """Sum, and sum of squares, of each row."""
    count, size = rows.shape
    length = _length_of_piece(size)
    main = np.ascontiguousarray(rows[:, : size - size % length]).reshape(-1, length)
    rest = rows[:, size - size % length :].astype(np.float64)
    totals = add_rows(main).reshape(count, -1), dot_rows(main, main).reshape(count, -1)
    return (
        totals[0].sum(axis=1, dtype=np.float64) + rest.sum(axis=1),
        totals[1].sum(axis=1, dtype=np.float64) + (rest * rest).sum(axis=1),
    )


def _length_of_piece(size: int) -> int:
    if size <= 2 * _PIECE:
        return size
    for length in range(_PIECE, _SHORTEST - 1, -1):
        if size % length == 0:
            return length
    return _PIECE


def _sums_of_pieces(rows: Array, length: int) -> _Sums:
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
        low.reshape(shape).min(axis=1).astype(np.float64),
        high.reshape(shape).max(axis=1).astype(np.float64),
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


def _carefully(rows: Array) -> dict[str, Array]:
    """Facts of rows with any elements, in float64."""
    values = rows.astype(np.float64)
    finite = np.isfinite(values)
    count = finite.sum(axis=1)
    low = np.min(values, axis=1, where=finite, initial=np.inf)
    high = np.max(values, axis=1, where=finite, initial=-np.inf)
    biggest = np.maximum(np.maximum(-low, high), 0.0)
    exponents = np.where(np.isfinite(biggest), np.frexp(biggest)[1], 0)[:, np.newaxis]
    scaled = np.where(finite, np.ldexp(np.where(finite, values, 0.0), -exponents), 0.0)
    mean = scaled.sum(axis=1) / np.maximum(count, 1)
    distances = np.where(finite, scaled - mean[:, np.newaxis], 0.0)
    apart = np.sum(distances * distances, axis=1)
    mean = np.clip(np.ldexp(mean, exponents[:, 0]), low, high)
    apart = np.ldexp(np.ldexp(apart, exponents[:, 0]), exponents[:, 0])
    mean = np.where(count > 0, mean, 0.0)
    return {
        "low": low,
        "high": high,
        "mean": mean,
        "squares": apart,
        "finite": count,
        "zeros": (values == 0).sum(axis=1),
        "nan": np.isnan(values).sum(axis=1),
        "pinf": (values == np.inf).sum(axis=1),
        "ninf": (values == -np.inf).sum(axis=1),
    }
