"""Loops over arrays that Numba compiles, for what takes NumPy several passes.

They are plain Python too, as the tests run them. Each is compiled for the types of its
arguments when it is first called, and the code is kept as Numba does: beside this file, or in
the user's cache. Nothing runs in threads. Sums may be taken in another order than is written
here, which depends on shapes and on the processor, but not on where arrays lie.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import numba
import numpy as np
from numba.core.caching import FunctionCache
from typing_extensions import override

from engine.datasets.prefetching import prefetch

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.values import Array

__all__ = ["add_counts", "count_runs", "measure_columns", "measure_rows", "rank"]

F = TypeVar("F", bound="Callable[..., Any]")
_Number: TypeAlias = Any  # of the type of the array's elements

_PIECE: Final = 4096  # elements that are added up before their sum is added to others
_LINE: Final = 64  # bytes that a processor reads at once
_AHEAD: Final = 2048  # elements: what is fetched arrives while these are added up
_STEPS: Final = 4  # that are added up in registers: what is read and written for each counts
_LANES: Final = 128  # columns with which loops over columns are worth their start
_LEAST_ROWS: Final = 16  # of lanes, for which these are worth joining
_LEAST: Final = 1e-140  # float64 holds squares of numbers between these, and their sum
_MOST: Final = 1e140
# Too much has cancelled if less than one in so many is left of the squares. Of these a sum has
# lost less than 10⁻¹⁴, and so the rest less than one in five millions.
_LEFT: Final = 2.0**24
# What of floating point need not be as written. NaN and infinity count, so not all of it.
_FREEDOM: Final = {"reassoc", "contract", "nsz"}


class _Kept(FunctionCache):  # type: ignore[misc]  # Numba has no types
    """Code of a function for other processes; without it each compiles its own."""

    @override
    def load_overload(self, sig: object, target_context: object) -> object:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # noqa: BLE001 - damaged files raise anything
            with suppress(OSError):
                self.flush()
            return None

    @override
    def save_overload(self, sig: object, data: object) -> None:
        with suppress(OSError):
            super().save_overload(sig, data)


def _inner(function: F) -> F:
    """Let Numba compile a function as part of those that call it."""
    found: F = numba.njit(nogil=True, fastmath=_FREEDOM)(function)
    return found


def _compiled(function: F) -> F:
    """Let Numba compile a function, and keep the code for other processes."""
    found = _inner(function)
    if not numba.config.DISABLE_JIT:
        with suppress(
            RuntimeError
        ):  # neither the package nor a cache of the user can be written
            found._cache = _Kept(function)  # type: ignore[attr-defined]  # noqa: SLF001
    return found


# Channels


@_inner
def _ordered(bits: _Number, most: _Number) -> _Number:
    """Turn the bits of floats into integers of the same order, and back.

    NaN are beyond infinity, or below negative infinity: so the ends of a range tell whether all
    elements are finite. As floats, elements that may be NaN are compared one by one only.
    """
    return bits ^ most if bits < 0 else bits


@_inner
def _sums_of_piece(
    row: Array, bits: Array, most: _Number
) -> tuple[_Number, _Number, float, float, int]:
    """Return least and largest key, sum, sum of squares and zeros."""
    whole = bits.dtype.type
    low = high = whole(_ordered(bits[0], most))
    total = squares = 0.0
    zeros = 0
    for place in range(row.size):
        value = np.float64(row[place])
        total += value
        squares += value * value
        key = whole(_ordered(bits[place], most))
        low = min(low, key)
        high = max(high, key)
        zeros += row[place] == 0
    return low, high, total, squares, zeros


@_inner
def _sums_of_long_row(
    row: Array, bits: Array, most: _Number
) -> tuple[_Number, _Number, float, float, int]:
    low, high, total, squares, zeros = _sums_of_piece(row[:_PIECE], bits[:_PIECE], most)
    for begin in range(_PIECE, row.size, _PIECE):
        end = begin + _PIECE
        part = _sums_of_piece(row[begin:end], bits[begin:end], most)
        low, high = min(low, part[0]), max(high, part[1])
        total, squares, zeros = total + part[2], squares + part[3], zeros + part[4]
    return low, high, total, squares, zeros


@_inner
def _settle(
    size: int, low: float, high: float, total: float, squares: float
) -> tuple[bool, float, float]:
    """Return whether sums tell what a channel holds, its mean, and the squares around it."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return False, 0.0, 0.0
    if low == high:
        return True, low, 0.0
    mean = total / size
    apart = max(squares - total * mean, 0.0)
    biggest = max(-low, high)
    suffices = _LEAST < biggest < _MOST and apart * _LEFT >= squares
    return suffices, min(max(mean, low), high), apart


@_inner
def _measure_any(row: Array, i: int, to: int, facts: Array, counts: Array) -> None:
    """Measure a channel that may hold anything, also what sums would lose."""
    count = zeros = nan = pinf = ninf = 0
    low, high = np.inf, -np.inf
    for each in row:
        value = np.float64(each)
        if math.isfinite(value):
            count += 1
            zeros += value == 0
            low, high = min(low, value), max(high, value)
        else:
            nan += math.isnan(value)
            pinf += int(value > 0)
            ninf += int(value < 0)
    mean = apart = 0.0
    if low < high:
        # By a power of two, so that nothing is lost: distances are twice as large at most.
        exponent = max(math.frexp(max(-low, high))[1] + 1, -1000)
        scale = math.ldexp(1.0, -exponent)
        for each in row:
            if math.isfinite(each):
                mean += np.float64(each) * scale
        mean /= count
        for each in row:
            if math.isfinite(each):
                distance = np.float64(each) * scale - mean
                apart += distance * distance
        mean = min(max(mean / scale, low), high)
        apart = apart / scale / scale
    elif count:
        mean = low
    facts[0, i, to], facts[1, i, to], facts[2, i, to], facts[3, i, to] = low, high, mean, apart
    counts[0, i, to], counts[1, i, to] = count, zeros
    counts[2, i, to], counts[3, i, to], counts[4, i, to] = nan, pinf, ninf


@_inner
def _beyond(row: Array, ends: tuple[_Number, _Number]) -> int:
    """Count elements at or beyond two ends; none where they are NaN."""
    count = 0
    if not math.isnan(ends[0]):
        for place in range(row.size):
            count += (row[place] <= ends[0]) | (row[place] >= ends[1])
    return count


@_compiled
def measure_rows(
    values: Array,
    bits: Array,
    most: _Number,
    ends: tuple[_Number, _Number],
    first: int,
    facts: Array,
    counts: Array,
) -> tuple[float, float]:
    """Measure channels whose elements lie one after the other.

    Parameters
    ----------
    values : ndarray of float32 or float64, shape (inputs, channels, size)
        At least one element a channel.
    bits : ndarray of int32 or int64
        The same memory.
    most : int32 or int64
        The largest there is.
    ends : (float, float)
        Of the type of the elements: one is saturated at most at the first, or at least at the
        second. NaN for none.
    first : int
        Column of the first channel in what follows.
    facts : ndarray of float64, shape (4, inputs, columns)
        Set to the least and the largest finite element of a channel, their mean, and the sum of
        the squared distances from it; inf, -inf, 0 and 0 if none is finite.
    counts : ndarray of int64, shape (6, inputs, columns)
        Set to the numbers of finite elements, zeros, NaN, infinities, negative infinities and
        saturated elements.

    Returns
    -------
    (float, float)
        The least and the largest finite element of all.
    """
    inputs, channels, size = values.shape
    keys = np.empty(2, bits.dtype)
    reach = keys.view(values.dtype)
    counts[2:5, :, first : first + channels] = 0
    least, largest = np.inf, -np.inf
    for i in range(inputs):
        for c in range(channels):
            if size <= _PIECE:
                found = _sums_of_piece(values[i, c], bits[i, c], most)
            else:
                found = _sums_of_long_row(values[i, c], bits[i, c], most)
            keys[0], keys[1] = _ordered(found[0], most), _ordered(found[1], most)
            low, high = np.float64(reach[0]), np.float64(reach[1])
            to = first + c
            suffices, mean, apart = _settle(size, low, high, found[2], found[3])
            if suffices:
                facts[0, i, to], facts[1, i, to] = low, high
                facts[2, i, to], facts[3, i, to] = mean, apart
                counts[0, i, to], counts[1, i, to] = size, found[4]
            else:
                _measure_any(values[i, c], i, to, facts, counts)
            counts[5, i, to] = _beyond(values[i, c], ends)
            least, largest = min(least, facts[0, i, to]), max(largest, facts[1, i, to])
    return least, largest


def _adding(count: int) -> Callable[..., None]:
    """Make a loop that adds so many steps at once; the compiler must know their number."""

    @_inner
    def add(
        values: Array,
        bits: Array,
        most: _Number,
        low: Array,
        high: Array,
        total: Array,
        squares: Array,
        zeros: Array,
    ) -> None:
        whole = bits.dtype.type
        for begin in range(0, len(values) - count + 1, count):
            part, own = values[begin : begin + count], bits[begin : begin + count]
            ahead = begin * len(low) + _AHEAD
            for place in range(ahead, ahead + count * len(low), _LINE // values.itemsize):
                prefetch(values, place)
            for c in range(len(low)):
                least, largest = low[c], high[c]
                sums = powers = 0.0
                found = np.int32(0)
                for step in range(count):
                    key = whole(_ordered(own[step, c], most))
                    least, largest = min(least, key), max(largest, key)
                    value = np.float64(part[step, c])
                    sums += value
                    powers += value * value
                    found += part[step, c] == 0
                low[c], high[c] = least, largest
                total[c] += sums
                squares[c] += powers
                zeros[c] += found

    return add


_add_step, _add_steps = _adding(1), _adding(_STEPS)


@_inner
def _add_rows(
    values: Array, bits: Array, most: _Number, keys: Array, sums: Array, zeros: Array
) -> None:
    """Add rows to what their columns hold so far.

    Parameters
    ----------
    values, bits : ndarray, shape (rows, columns)
    most : int
    keys : ndarray, shape (2, lanes)
        Least and largest key of each column. There may be more lanes than columns.
    sums : ndarray of float64, shape (2, lanes)
        Sums, and sums of squares.
    zeros : ndarray of int32, shape (lanes,)
    """
    size, columns = values.shape
    whole = size - size % _STEPS
    low, high = keys[0, :columns], keys[1, :columns]
    total, squares = sums[0, :columns], sums[1, :columns]
    found = zeros[:columns]
    _add_steps(values[:whole], bits[:whole], most, low, high, total, squares, found)
    _add_step(values[whole:], bits[whole:], most, low, high, total, squares, found)


@_inner
def _add_group(
    group: Array,
    own: Array,
    most: _Number,
    keys: Array,
    lanes: tuple[Array, Array],
    sums: Array,
    zeros: Array,
) -> None:
    """Set what the channels of a group hold.

    Parameters
    ----------
    group, own : ndarray, shape (size, width)
        The elements, and their bits.
    most : int
    keys : ndarray, shape (2, lanes)
        A multiple of the width. The first of them are set to the least and the largest key of
        each channel.
    lanes : (ndarray of float64, shape (2, lanes); ndarray of int32, shape (lanes,))
        Room for sums and zeros of a piece.
    sums : ndarray of float64, shape (2, width)
    zeros : ndarray of int64, shape (width,)
    """
    size, width = group.shape
    part, found = lanes
    beside = found.size // width
    rows = size // beside
    left = rows * beside
    joined = group[:left].reshape(rows, found.size)
    joined_own = own[:left].reshape(rows, found.size)
    for c in range(found.size):
        keys[0, c] = keys[1, c] = _ordered(joined_own[0, c], most)
        part[0, c] = part[1, c] = found[c] = 0
    for c in range(width):
        sums[0, c] = sums[1, c] = zeros[c] = 0
    for top in range(0, rows, _PIECE):
        end = min(top + _PIECE, rows)
        _add_rows(joined[top:end], joined_own[top:end], most, keys, part, found)
        if end == rows and left < size:
            _add_rows(group[left:], own[left:], most, keys, part, found)
        for begin in range(0, found.size, width):
            for c in range(width):
                sums[0, c] += part[0, begin + c]
                sums[1, c] += part[1, begin + c]
                zeros[c] += found[begin + c]
                part[0, begin + c] = part[1, begin + c] = found[begin + c] = 0
    for begin in range(width, found.size, width):
        for c in range(width):
            keys[0, c] = min(keys[0, c], keys[0, begin + c])
            keys[1, c] = max(keys[1, c], keys[1, begin + c])


def _counting(count: int) -> Callable[..., None]:
    """Make a loop that looks for elements at or beyond two ends, so many steps at once."""

    @_inner
    def add(values: Array, ends: tuple[_Number, _Number], counts: Array) -> None:
        for begin in range(0, len(values) - count + 1, count):
            part = values[begin : begin + count]
            for c in range(len(counts)):
                found = np.int32(0)
                for step in range(count):
                    found += (part[step, c] <= ends[0]) | (part[step, c] >= ends[1])
                counts[c] += found

    return add


_count_step, _count_steps = _counting(1), _counting(_STEPS)


@_inner
def _count_beyond(
    group: Array, ends: tuple[_Number, _Number], lanes: Array, counts: Array
) -> None:
    """Set how many elements of the channels of a group are at or beyond two ends.

    Parameters
    ----------
    group : ndarray, shape (size, width)
    ends : (float, float)
    lanes : ndarray of int32, shape (lanes,)
        Room for a multiple of the width.
    counts : ndarray of int64, shape (width,)
    """
    size, width = group.shape
    rows = size * width // lanes.size
    left = rows * (lanes.size // width)
    joined = group[:left].reshape(rows, lanes.size)
    whole = rows - rows % _STEPS
    for c in range(lanes.size):
        lanes[c] = 0
    _count_steps(joined[:whole], ends, lanes)
    _count_step(joined[whole:], ends, lanes)
    _count_step(group[left:], ends, lanes[:width])
    for c in range(width):
        counts[c] = 0
        for begin in range(0, lanes.size, width):
            counts[c] += lanes[begin + c]


@_compiled
def measure_columns(
    values: Array,
    bits: Array,
    most: _Number,
    ends: tuple[_Number, _Number],
    first: int,
    facts: Array,
    counts: Array,
) -> tuple[float, float]:
    """Measure channels that are the last axis, or groups of channels that each are.

    The rest is as for `measure_rows`.

    Parameters
    ----------
    values : ndarray of float32 or float64, shape (inputs, groups, size, width)
        A group has `width` channels. At least one element a channel.
    """
    inputs, groups, size, width = values.shape
    # Neighbours of narrow groups lie side by side, as if each were a channel.
    beside = max(min(_LANES // width, size // _LEAST_ROWS), 1)
    keys = np.empty((2, beside * width), bits.dtype)
    lanes = np.empty((2, beside * width)), np.empty(beside * width, np.int32)
    sums, zeros = np.empty((2, width)), np.empty(width, np.int64)
    reach = keys.view(values.dtype)
    counts[2:5, :, first : first + groups * width] = 0
    least, largest = np.inf, -np.inf
    for i in range(inputs):
        for g in range(groups):
            group = values[i, g]
            _add_group(group, bits[i, g], most, keys, lanes, sums, zeros)
            begin = first + g * width
            beyond = counts[5, i, begin : begin + width]
            if math.isnan(ends[0]):
                beyond[:] = 0
            else:
                _count_beyond(group, ends, lanes[1], beyond)
            for c in range(width):
                keys[0, c], keys[1, c] = _ordered(keys[0, c], most), _ordered(keys[1, c], most)
                low, high = np.float64(reach[0, c]), np.float64(reach[1, c])
                to = begin + c
                suffices, mean, apart = _settle(size, low, high, sums[0, c], sums[1, c])
                if suffices:
                    facts[0, i, to], facts[1, i, to] = low, high
                    facts[2, i, to], facts[3, i, to] = mean, apart
                    counts[0, i, to], counts[1, i, to] = size, zeros[c]
                else:
                    _measure_any(group[:, c], i, to, facts, counts)
                least, largest = min(least, facts[0, i, to]), max(largest, facts[1, i, to])
    return least, largest


@_compiled
def add_counts(sizes: Array, counts: Array, totals: Array) -> None:
    """Add up what inputs hold.

    Parameters
    ----------
    sizes : ndarray of int64, shape (columns,)
        Elements of each channel.
    counts : ndarray of int64, shape (6, inputs, columns)
        What `measure_rows` sets.
    totals : ndarray of int64, shape (7, columns)
        Added to: numbers of elements, zeros, NaN, infinities, negative infinities and saturated
        elements, and of inputs whose elements are all 0.
    """
    for i in range(counts.shape[1]):
        for c in range(sizes.size):
            totals[0, c] += sizes[c]
            for kind in range(1, 6):
                totals[kind, c] += counts[kind, i, c]
            totals[6, c] += 0 < sizes[c] == counts[1, i, c]


# Histograms


@_compiled
def count_runs(
    values: Array,
    begins: Array,
    size: int,
    run: int,
    step: int,
    order: tuple[int, int],
    scale: float,
    first: int,
    bins: Array,
) -> None:
    """Count finite elements in bins of one width.

    Parameters
    ----------
    values : ndarray of float32 or float64, shape (inputs, elements)
    begins : ndarray of int64, shape (inputs,)
        Where the first run of elements of each input begins.
    size : int
        Only so many elements of an input count.
    run, step : int
        Length of a run, and distance from its beginning to that of the next.
    order : (int, int)
        Pixels of a channel and width of a group: the elements are (groups, pixels, width) in
        memory, and runs are those of (groups, width, pixels).
    scale : float
        1 / width of a bin, a power of two.
    first : int
        The first bin begins at this multiple of the width.
    bins : ndarray of int64
        Added to. All finite elements lie in them.
    """
    pixels, width = order
    for i in range(values.shape[0]):
        for top in range(begins[i], size, step):
            place, end = top, min(top + run, size)
            while place < end:
                channel, pixel = place // pixels, place % pixels
                stop = min(end, place + pixels - pixel)
                at = (channel // width * pixels + pixel) * width + channel % width
                for _ in range(place, stop):
                    value = np.float64(values[i, at])
                    if math.isfinite(value):
                        # Of a signed place Numba would ask each time whether it is negative.
                        bins[np.uint64(np.int64(math.floor(value * scale)) - first)] += 1
                    at += width
                place = stop


# Ranks


@_compiled
def rank(values: Array, inputs: Array, sign: float, best: Array, best_inputs: Array) -> None:
    """Put inputs among the best of each row, behind those that are as good.

    Parameters
    ----------
    values : ndarray of float64, shape (inputs, rows)
        What is not finite is passed over.
    inputs : ndarray of int64, shape (inputs, rows)
        Their numbers.
    sign : float
        1 if the largest are the best, -1 if the least are.
    best : ndarray of float64, shape (rows, top)
        The best values so far, the best first, and NaN where there are none yet.
    best_inputs : ndarray of int64
        Their inputs.
    """
    last = best.shape[1] - 1
    if last < 0:
        return  # nothing is kept, and compiled code would write beyond the arrays
    for i in range(values.shape[0]):
        for row in range(values.shape[1]):
            value = values[i, row]
            if best[row, last] * sign >= value * sign or not math.isfinite(value):
                continue
            place = last
            while place > 0 and not best[row, place - 1] * sign >= value * sign:
                best[row, place] = best[row, place - 1]
                best_inputs[row, place] = best_inputs[row, place - 1]
                place -= 1
            best[row, place], best_inputs[row, place] = value, inputs[i, row]
