"""Measures the channels of each input, a few operands at a time.

The passes over an operand go through blocks that stay in the processor's cache. Sums are taken
in an operand's own float32 over pieces of at most 512 elements, or 255 steps along them, and in
float64 beyond. Where little is left of the squares after the mean is taken off, the distances
from a number near the mean are summed instead; and elements that are not finite, or whose
squares float32 cannot hold, are summed in float64.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from engine.values import Array

__all__ = ["Measured", "as_real", "join_measured", "measure"]

_PIECE: Final = 512  # elements that are summed in float32
_SHORTEST: Final = 128  # pieces, where the length of a row has such a divisor
_SHORT: Final = 256  # rows of fewer elements are faster as columns
_BLOCK: Final = 1 << 16  # elements that stay in the cache
_BYTES: Final = 8  # of a word
_MOST_FLAGS: Final = 255  # bytes, 0 or 1, that add up without a carry
_NARROW: Final = (1e-15, 1e15)  # squares between these fit float32
_WIDE: Final = (1e-140, 1e140)  # likewise float64
_LEFT: Final = 16  # of the squares less than one in so many is left: too much has cancelled


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
    is_finite : bool
        Whether all elements are finite.
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
    is_finite: bool = True


class _Sums(NamedTuple):
    """Least, largest, sum, sum of squares and zeros of each channel of each input."""

    low: Array
    high: Array
    total: Array
    squares: Array
    zeros: Array


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


def join_measured(parts: Sequence[Measured]) -> Measured:
    """Put the channels of some operands behind those of others."""
    arrays = {
        each.name: np.concatenate([getattr(part, each.name) for part in parts], axis=-1)
        for each in fields(Measured)
        if each.name != "is_finite"
    }
    return Measured(**arrays, is_finite=all(part.is_finite for part in parts))


def _measure(layouts: Sequence[_Layout]) -> Measured:
    parts = [layout.sums() for layout in layouts]
    low, high, total, squares, zeros = (
        np.concatenate([part[place] for part in parts], axis=1) for place in range(5)
    )
    channels = [layout.channels for layout in layouts]
    size = np.repeat([layout.size for layout in layouts], channels)
    limits = [_NARROW if layout.is_narrow else _WIDE for layout in layouts]
    least, most = np.repeat(np.transpose(limits), channels, axis=1)
    mean = np.minimum(np.maximum(total / np.maximum(size, 1), low), high)
    apart = np.maximum(squares - total * mean, 0.0)
    biggest = np.maximum(-low, high)
    fits = (biggest > least) & (biggest < most)
    rare = ~(fits & (apart * _LEFT >= squares)) & (size > 0)
    if not size.all():
        mean[:, size == 0] = 0.0
    none = np.zeros(low.shape, np.int64)
    measured = Measured(
        size, low, high, mean, apart, none + size, zeros, none, none.copy(), none.copy()
    )
    inputs, columns = np.nonzero(rare)
    if not inputs.size:
        return measured
    # A single value needs no sum; infinity is not equal to itself here.
    value = low[inputs, columns]
    same = value - high[inputs, columns] == 0
    mean[inputs[same], columns[same]] = value[same]
    apart[inputs[same], columns[same]] = 0.0
    inputs, columns = inputs[~same], columns[~same]
    held = fits & np.isfinite(total + squares)
    begins = np.cumsum([0, *channels])
    owners = np.searchsorted(begins, columns, side="right") - 1
    for place in np.unique(owners).tolist():
        own = owners == place
        at = inputs[own], columns[own]
        is_held = held[at]
        for chosen, measure_again in ((is_held, _correct), (~is_held, _replace)):
            if chosen.any():
                measure_again(
                    measured, layouts[place], at[0][chosen], at[1][chosen], begins[place]
                )
    return measured


def _correct(
    measured: Measured, layout: _Layout, inputs: Array, columns: Array, begin: int
) -> None:
    """Sum the distances from numbers near the means of some channels."""
    mean, squares = measured.mean, measured.squares
    step = max(1, _BLOCK // layout.size)
    for first in range(0, len(inputs), step):
        at = inputs[first : first + step], columns[first : first + step]
        rows = layout.rows_of(at[0], at[1] - begin)
        near = mean[at].astype(rows.dtype)
        rows -= near[:, np.newaxis]
        total, apart = _totals(rows)
        moved = total / layout.size
        mean[at] = np.minimum(np.maximum(near + moved, measured.low[at]), measured.high[at])
        squares[at] = np.maximum(apart - total * moved, 0.0)


def _replace(
    measured: Measured, layout: _Layout, inputs: Array, columns: Array, begin: int
) -> None:
    """Measure some channels with any elements, in float64."""
    step = max(1, _BLOCK // layout.size)
    for first in range(0, len(inputs), step):
        at = inputs[first : first + step], columns[first : first + step]
        facts = _carefully(layout.rows_of(at[0], at[1] - begin))
        for name, values in facts.items():
            getattr(measured, name)[at] = values
        measured.is_finite &= bool((facts["finite"] == layout.size).all())


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
        """Measure each channel of each input, as if all elements were common numbers."""
        shape = (self.inputs, self.channels)
        if not self.size:
            none = np.zeros(shape)
            return _Sums(none + np.inf, none - np.inf, none, none, np.zeros(shape, np.int64))
        if self._last:
            return _sums_of_columns(self._array)
        if self.size == 1:
            value = self._array.reshape(shape).astype(np.float64)
            return _Sums(value, value, value, value * value, (value == 0).astype(np.int64))
        if self.size < _SHORT and self.channels > 1:
            return _sums_of_columns(self._array.swapaxes(1, 2))
        found = _sums_of_rows(self._array.reshape(-1, self.size))
        return _Sums(*(each.reshape(shape) for each in found))


def _sums_of_columns(array: Array) -> _Sums:
    """Measure the last axis of an array of inputs, elements and channels."""
    inputs, size, channels = array.shape
    shape = (inputs, channels)
    low, high = np.full(shape, np.inf), np.full(shape, -np.inf)
    total, squares = np.zeros(shape), np.zeros(shape)
    zeros = np.zeros(shape, np.int64)
    step = max(1, min(_MOST_FLAGS, _BLOCK // max(channels * inputs, 1)))
    for begin in range(0, size, step):
        block = np.ascontiguousarray(array[:, begin : begin + step])
        np.minimum(low, np.minimum.reduce(block, axis=1), out=low)
        np.maximum(high, np.maximum.reduce(block, axis=1), out=high)
        total += np.einsum("itc->ic", block)
        squares += np.einsum("itc,itc->ic", block, block)
        zeros += np.add.reduce((block == 0).view(np.uint8), axis=1, dtype=np.uint8)
    return _Sums(low, high, total, squares, zeros)


def _sums_of_rows(rows: Array) -> _Sums:
    """Measure each row, whose elements lie one after the other."""
    if rows.shape[1] > _BLOCK:
        return _joined([
            _sums_of_rows(rows[:, begin : begin + _BLOCK])
            for begin in range(0, rows.shape[1], _BLOCK)
        ])  # fmt: skip
    count, size = rows.shape
    length = _length_of_piece(size)
    pieces, rest = divmod(size, length)
    low, high = (np.empty(count, rows.dtype) for _ in range(2))
    total, squares = (np.empty((count, pieces + bool(rest)), rows.dtype) for _ in range(2))
    words = -(-size // _BYTES)
    runs = -(-words // _MOST_FLAGS)
    zeros = np.empty((count, runs), np.uint64)
    step = max(1, min(count, _BLOCK // size))
    flags = np.zeros((step, -(-words // runs) * runs * _BYTES), np.bool_)
    for begin in range(0, count, step):
        block = rows[begin : begin + step]
        part = slice(begin, begin + len(block))
        np.minimum.reduce(block, axis=1, out=low[part])
        np.maximum.reduce(block, axis=1, out=high[part])
        cut = block[:, : size - rest].reshape(len(block), pieces, length)
        np.einsum("rpe->rp", cut, out=total[part, :pieces])
        np.vecdot(cut, cut, out=squares[part, :pieces])
        flag = flags[: len(block)]
        np.equal(block, 0, out=flag[:, :size])
        in_runs = flag.view(np.uint64).reshape(len(block), runs, -1)
        np.add.reduce(in_runs, axis=2, out=zeros[part])
    if rest:
        tail = rows[:, size - rest :]
        np.einsum("re->r", tail, out=total[:, pieces])
        np.vecdot(tail, tail, out=squares[:, pieces])
    return _Sums(
        low.astype(np.float64),
        high.astype(np.float64),
        total.sum(axis=1, dtype=np.float64),
        squares.sum(axis=1, dtype=np.float64),
        zeros.view(np.uint8).sum(axis=1, dtype=np.int64),
    )


def _joined(parts: Sequence[_Sums]) -> _Sums:
    """Join what parts of the same channels hold."""
    low, high, *sums = (np.stack(columns) for columns in zip(*parts, strict=True))
    return _Sums(low.min(axis=0), high.max(axis=0), *(each.sum(axis=0) for each in sums))


def _totals(rows: Array) -> tuple[Array, Array]:
    """Sum, and sum of squares, of each row."""
    count, size = rows.shape
    length = _length_of_piece(size)
    pieces, rest = divmod(size, length)
    cut = rows[:, : size - rest].reshape(count, pieces, length)
    total = np.einsum("rpe->rp", cut).sum(axis=1, dtype=np.float64)
    squares = np.vecdot(cut, cut).sum(axis=1, dtype=np.float64)
    if rest:
        tail = rows[:, size - rest :]
        total += np.einsum("re->r", tail)
        squares += np.vecdot(tail, tail)
    return total, squares


def _length_of_piece(size: int) -> int:
    if size <= 2 * _PIECE:
        return size
    for length in range(_PIECE, _SHORTEST - 1, -1):
        if size % length == 0:
            return length
    return _PIECE


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
