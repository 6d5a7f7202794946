"""Measures the channels of operands, input after input.

The passes over an operand go through blocks that stay in the processor's cache; small operands
of one kind are put together, because a pass over few elements takes as long as its call. Sums
are taken in an operand's own float32 over pieces of at most 512 elements, or 255 steps along
them, and in float64 beyond. Where little would be left of the squares after the mean is taken
off, distances from a number near the mean are summed instead: from that of the last input. And
elements that are not finite, or whose squares float32 cannot hold, are summed in float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy.typing as npt

    from engine.values import Array

__all__ = ["Measured", "Measurer", "as_real"]

_PIECE: Final = 256  # elements that are summed in float32
_SHORTEST: Final = 96  # pieces, where the length of a row has such a divisor
_SHORT: Final = 256  # rows of fewer elements are faster as columns
_BLOCK: Final = 1 << 16  # elements that stay in the cache
_BUNDLED: Final = 1 << 18  # elements of small operands that are measured together
_BYTES: Final = 8  # of a word
_MOST_FLAGS: Final = 255  # bytes, 0 or 1, that add up without a carry
_NARROW: Final = (1e-15, 1e15)  # squares between these fit float32
_WIDE: Final = (1e-140, 1e140)  # likewise float64
# Too much has cancelled if less than one in so many is left of the squares: of long rows, whose
# sums are those of many short runs, and of others.
_LEFT: Final = (16, 8)


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


def as_real(array: Array) -> Array:
    """Convert numbers to float32 or float64, exactly; complex ones by their magnitude."""
    if array.dtype.kind == "c":
        array = np.abs(array)
    if array.dtype in {np.dtype(np.float32), np.dtype(np.float64)}:
        return array
    small = array.dtype.itemsize <= 2
    return array.astype(np.float32 if small else np.float64)


class _Sums(NamedTuple):
    """Least, largest, sum, sum of squares and zeros of rows of elements."""

    low: Array
    high: Array
    total: Array
    squares: Array
    zeros: Array


class _Kind(NamedTuple):
    """What operands have in common that can be measured together.

    Attributes
    ----------
    inputs, size : int
        `size` is that of a channel.
    is_narrow : bool
        Whether the elements are float32.
    is_long : bool
        Whether a channel is a long row.
    """

    inputs: int
    size: int
    is_narrow: bool
    is_long: bool


class _Bundle(NamedTuple):
    """Operands that are measured together.

    Attributes
    ----------
    first : int
        Of the operands, which follow one another.
    layouts : list of _Layout
        Of these operands.
    """

    first: int
    layouts: list[_Layout]

    def takes(self, layout: _Layout) -> bool:
        """Return whether an operand is of the same kind, and small like the others."""
        mine = self.layouts[0]
        if mine.is_last or layout.is_last or mine.kind != layout.kind:
            return False
        elements = sum(each.array.size for each in self.layouts)
        return elements + layout.array.size <= _BUNDLED


class Measurer:
    """Measures every channel of every input.

    Parameters
    ----------
    axes : sequence of int
        Axis of the channels of each operand, in arrays of shape (inputs, …); 0 where there are
        none, and all elements of an input count as one channel.
    channels : sequence of int
        Their numbers.
    """

    def __init__(self, axes: Sequence[int], channels: Sequence[int]) -> None:
        self._axes, self._channels = axes, channels
        self._begins: list[int] = np.cumsum([0, *channels]).tolist()
        self._near = np.zeros(self._begins[-1])  # 0 for none

    def measure(
        self, read: Callable[[int], Array], seen: Callable[[int, Array], None]
    ) -> Measured:
        """Measure the next inputs.

        Parameters
        ----------
        read : callable
            Returns the array of an operand, of float32 or float64. It may be called again
            for the same one.
        seen : callable
            Called with each operand and its array, which lies in the cache then.

        Returns
        -------
        Measured
            The channels of all operands, one operand after the other.
        """

        def layouts() -> Iterator[_Layout]:
            for place in range(len(self._axes)):
                array = read(place)
                seen(place, array)
                yield _Layout(array, self._axes[place])

        with np.errstate(all="ignore"):  # what overflows is measured again
            sums, kinds = self._sums_of(layouts())
            return self._measured(sums, kinds, read)

    def _sums_of(self, layouts: Iterator[_Layout]) -> tuple[_Sums, list[_Kind]]:
        """Sum all operands, and return their kinds too."""
        sums: _Sums | None = None
        kinds: list[_Kind] = []
        bundle: _Bundle | None = None
        for place, layout in enumerate(layouts):
            if sums is None:
                shape = layout.inputs, self._begins[-1]
                low, high, total, squares = np.empty((4, *shape))
                sums = _Sums(low, high, total, squares, np.empty(shape, np.int64))
            kinds.append(layout.kind)
            if bundle is not None and bundle.takes(layout):
                bundle.layouts.append(layout)
                continue
            if bundle is not None:
                self._add(bundle, sums)
            bundle = _Bundle(place, [layout])
        assert bundle is not None and sums is not None  # noqa: S101, PT018 - there are operands
        self._add(bundle, sums)
        return sums, kinds

    def _add(self, bundle: _Bundle, sums: _Sums) -> None:
        """Sum the operands of a bundle."""
        first, layouts = bundle
        inputs = layouts[0].inputs
        begins = self._begins[first : first + len(layouts) + 1]
        near = self._near_of(begins, inputs)
        if layouts[0].is_last:
            found = _sums_of_columns(layouts[0].array, near)
        else:
            rows = [layout.array.reshape(-1, layout.size) for layout in layouts]
            found = _sums_of_rows(rows[0] if len(rows) == 1 else np.concatenate(rows), near)
        if inputs == 1 or len(layouts) == 1:
            at = slice(begins[0], begins[-1])
            for target, source in zip(sums, found, strict=True):
                target[:, at] = source.reshape(inputs, -1)
            return
        row = 0
        for begin, end in pairwise(begins):
            part = slice(row, row + inputs * (end - begin))
            for target, source in zip(sums, found, strict=True):
                target[:, begin:end] = source[part].reshape(inputs, -1)
            row = part.stop

    def _near_of(self, begins: Sequence[int], inputs: int) -> Array | None:
        """Return a number near the mean of each row of a bundle, or 0; None if all are 0."""
        near: Array = self._near[begins[0] : begins[-1]]
        if not near.any():
            return None
        if inputs == 1:
            return near
        return np.concatenate(
            [np.tile(self._near[begin:end], inputs) for begin, end in pairwise(begins)]
        )

    def _measured(
        self, sums: _Sums, kinds: Sequence[_Kind], read: Callable[[int], Array]
    ) -> Measured:
        low, high, total, squares, zeros = sums
        size = np.repeat([kind.size for kind in kinds], self._channels)
        limits = [
            (*(_NARROW if kind.is_narrow else _WIDE), _LEFT[not kind.is_long]) for kind in kinds
        ]
        least, most, left = np.repeat(np.transpose(limits), self._channels, axis=1)
        mean = total / np.maximum(size, 1)
        apart = np.maximum(squares - total * mean, 0.0)
        mean += self._near
        mean = np.minimum(np.maximum(mean, low), high)
        biggest = np.maximum(-low, high)
        fits = (biggest > least) & (biggest < most)
        rare = ~(fits & (apart * left >= squares)) & (size > 0)
        if not size.all():
            mean[:, size == 0] = 0.0
        none = np.zeros(low.shape, np.int64)
        measured = Measured(
            size, low, high, mean, apart, none + size, zeros, none, none.copy(), none.copy()
        )
        inputs, columns = np.nonzero(rare)
        if inputs.size:
            # A single value needs no sum; infinity is not equal to itself here.
            value = low[inputs, columns]
            same = value - high[inputs, columns] == 0
            mean[inputs[same], columns[same]] = value[same]
            apart[inputs[same], columns[same]] = 0.0
            held = fits & np.isfinite(total + squares)
            self._measure_again(measured, inputs[~same], columns[~same], held, read)
        # Where squares nearly cancel, the next input starts from the mean.
        last, spread = mean[-1], apart[-1]
        is_near = fits[-1] & (last * last * size * 2 > left * spread) & (spread > 0)
        is_near &= biggest[-1] < _NARROW[1]
        # Rounded, so that what is taken off float32 is what is added again.
        self._near = np.where(is_near, last, 0.0).astype(np.float32).astype(np.float64)
        return measured

    def _measure_again(
        self,
        measured: Measured,
        inputs: Array,
        columns: Array,
        held: Array,
        read: Callable[[int], Array],
    ) -> None:
        """Measure some channels again, whose sums could not be used."""
        owners = np.searchsorted(self._begins, columns, side="right") - 1
        for place in np.unique(owners).tolist():
            layout, begin = _Layout(read(place), self._axes[place]), self._begins[place]
            own = owners == place
            at = inputs[own], columns[own]
            is_held = held[at]
            step = max(1, _BLOCK // layout.size)
            for chosen, again in ((is_held, _from_the_mean), (~is_held, _in_float64)):
                rows, channels = at[0][chosen], at[1][chosen]
                for first in range(0, len(rows), step):
                    some = rows[first : first + step], channels[first : first + step]
                    again(measured, layout.rows_of(some[0], some[1] - begin), some)


def _from_the_mean(measured: Measured, rows: Array, at: tuple[Array, Array]) -> None:
    """Sum the distances from numbers near the means of some channels."""
    near = measured.mean[at].astype(rows.dtype)
    rows -= near[:, np.newaxis]
    total, apart = _totals(rows)
    moved = total / rows.shape[1]
    measured.mean[at] = np.minimum(
        np.maximum(near + moved, measured.low[at]), measured.high[at]
    )
    measured.squares[at] = np.maximum(apart - total * moved, 0.0)


def _in_float64(measured: Measured, rows: Array, at: tuple[Array, Array]) -> None:
    """Measure some channels with any elements."""
    facts = _carefully(rows)
    for name, values in facts.items():
        getattr(measured, name)[at] = values
    measured.is_finite &= bool((facts["finite"] == rows.shape[1]).all())


class _Layout:
    """An operand by inputs, channels and elements, in the order in which it lies in memory.

    Parameters
    ----------
    array : ndarray of shape (inputs, …)
    axis : int
        Of the channels, 0 for none.

    Attributes
    ----------
    array : ndarray of shape (inputs, channels, size), or (inputs, size, channels)
    inputs, channels, size : int
        `size` is that of a channel.
    is_last : bool
        Whether the channels are the last axis.
    kind : _Kind
    """

    def __init__(self, array: Array, axis: int) -> None:
        self.inputs = len(array)
        self.channels = array.shape[axis] if axis else 1
        self.size = array[0].size // max(self.channels, 1)
        self.is_last = axis == array.ndim - 1 and array.ndim > 2
        is_long = not self.is_last and self.size >= _SHORT
        self.kind = _Kind(self.inputs, self.size, array.dtype == np.float32, is_long)
        if axis > 1 and not self.is_last:
            array = np.moveaxis(array, axis, 1)
        shape = (self.inputs, self.channels, self.size)
        if self.is_last:
            shape = (self.inputs, self.size, self.channels)
        self.array = np.ascontiguousarray(array).reshape(shape)

    def rows_of(self, inputs: Array, channels: Array) -> Array:
        """Copy the elements of some channels, a channel a row."""
        if self.is_last:
            return np.ascontiguousarray(self.array[inputs, :, channels])
        return self.array[inputs, channels]


def _sums_of_columns(array: Array, near: Array | None) -> _Sums:
    """Measure the last axis of an array of inputs, elements and channels.

    Totals and squares are those of the distances from `near`, if it is given.
    """
    inputs, size, channels = array.shape
    shape = (inputs, channels)
    off = None if near is None else near.reshape(inputs, 1, channels).astype(array.dtype)
    low, high = np.full(shape, np.inf), np.full(shape, -np.inf)
    total, squares = np.zeros(shape), np.zeros(shape)
    zeros = np.zeros(shape, np.int64)
    step = max(1, min(_MOST_FLAGS, _BLOCK // max(channels * inputs, 1)))
    for begin in range(0, size, step):
        block = array[:, begin : begin + step]
        np.minimum(low, np.minimum.reduce(block, axis=1), out=low)
        np.maximum(high, np.maximum.reduce(block, axis=1), out=high)
        zeros += np.add.reduce((block == 0).view(np.uint8), axis=1, dtype=np.uint8)
        moved = block if off is None else block - off
        total += np.einsum("itc->ic", moved)
        squares += np.einsum("itc,itc->ic", moved, moved)
    return _Sums(low, high, total, squares, zeros)


def _sums_of_rows(rows: Array, near: Array | None) -> _Sums:
    """Measure each row, whose elements lie one after the other.

    Totals and squares are those of the distances from `near`, if it is given.
    """
    count, size = rows.shape
    if not size:
        none = np.zeros(count)
        return _Sums(none + np.inf, none - np.inf, none, none, np.zeros(count, np.int64))
    if size == 1:
        value = rows[:, 0].astype(np.float64)
        return _Sums(value, value, value, value * value, value == 0)
    if size < _SHORT:
        return _sums_of_short_rows(rows, near)
    if size > _BLOCK:
        return _joined(
            [
                _sums_of_rows(rows[:, begin : begin + _BLOCK], near)
                for begin in range(0, size, _BLOCK)
            ]
        )
    length = _length_of_piece(size)
    pieces, rest = divmod(size, length)
    low, high = (np.empty(count, rows.dtype) for _ in range(2))
    total, squares = (np.empty((count, pieces + bool(rest)), rows.dtype) for _ in range(2))
    words = -(-size // _BYTES)
    runs = -(-words // _MOST_FLAGS)
    zeros = np.empty((count, runs), np.uint64)
    step = max(1, min(count, _BLOCK // size))
    moved = np.empty((step, size), rows.dtype) if near is not None else rows
    flags = np.zeros((step, -(-words // runs) * runs * _BYTES), np.bool_)
    ones = np.ones(length, rows.dtype)
    for begin in range(0, count, step):
        block = rows[begin : begin + step]
        part = slice(begin, begin + len(block))
        np.minimum.reduce(block, axis=1, out=low[part])
        np.maximum.reduce(block, axis=1, out=high[part])
        flag = flags[: len(block)]
        np.equal(block, 0, out=flag[:, :size])
        in_runs = flag.view(np.uint64).reshape(len(block), runs, -1)
        np.add.reduce(in_runs, axis=2, out=zeros[part])
        if near is not None and (off := near[part]).any():
            off = off[:, np.newaxis].astype(rows.dtype)
            block = np.subtract(block, off, out=moved[: len(block)])
        cut = block[:, : size - rest].reshape(len(block), pieces, length)
        np.vecdot(cut, ones, out=total[part, :pieces])
        np.vecdot(cut, cut, out=squares[part, :pieces])
        if rest:
            tail = block[:, size - rest :]
            np.einsum("re->r", tail, out=total[part, pieces])
            np.vecdot(tail, tail, out=squares[part, pieces])
    return _Sums(
        low,
        high,
        total.sum(axis=1, dtype=np.float64),
        squares.sum(axis=1, dtype=np.float64),
        zeros.view(np.uint8).sum(axis=1, dtype=np.int64),
    )


def _sums_of_short_rows(rows: Array, near: Array | None) -> _Sums:
    """Measure rows of at most 255 elements, all of a block at the same time.

    Totals and squares are those of the distances from `near`, if it is given.
    """
    count, size = rows.shape
    low, high, total, squares = np.empty((4, count), rows.dtype)
    zeros = np.empty(count, np.uint8)
    step = max(1, _BLOCK // size)
    for begin in range(0, count, step):
        part = slice(begin, begin + step)
        columns = np.ascontiguousarray(rows[part].T)
        np.minimum.reduce(columns, axis=0, out=low[part])
        np.maximum.reduce(columns, axis=0, out=high[part])
        np.add.reduce((columns == 0).view(np.uint8), axis=0, dtype=np.uint8, out=zeros[part])
        if near is not None:
            columns = columns - near[part].astype(rows.dtype)  # the copy may be no copy
        np.add.reduce(columns, axis=0, out=total[part])
        np.add.reduce(columns * columns, axis=0, out=squares[part])
    return _Sums(low, high, total, squares, zeros)


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
    total = np.vecdot(cut, np.ones(length, rows.dtype)).sum(axis=1, dtype=np.float64)
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
