"""Loops over arrays that Numba compiles, for what takes NumPy several passes.

They are plain Python too, as the tests run them. Each is compiled for the types of its
arguments when it is first called, and the code is kept as Numba does: beside this file, or in
the user's cache. Nothing runs in threads. Sums may be taken in another order than is written
here, which depends on shapes and on the processor, but not on where arrays lie.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import numba
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.values import Array

__all__ = ["measure_any", "sum_columns", "sum_rows"]

F = TypeVar("F", bound="Callable[..., Any]")
_Number: TypeAlias = Any  # of the type of the array's elements

_PIECE: Final = 4096  # elements that are added up before their sum is added to others
_COLUMNS: Final = 1024  # whose sums stay in the processor's nearest cache
# What of floating point need not be as written. NaN and infinity count, so not all of it.
_FREEDOM: Final = {"reassoc", "contract", "nsz"}


def _compiled(function: F) -> F:
    """Let Numba compile a function, and keep the code for other processes if it can."""
    try:
        found: F = numba.njit(nogil=True, fastmath=_FREEDOM, cache=True)(function)
    except RuntimeError:  # neither the package nor a cache of the user can be written
        found = numba.njit(nogil=True, fastmath=_FREEDOM)(function)
    return found


def _inner(function: F) -> F:
    """Let Numba compile a function as part of those that call it."""
    found: F = numba.njit(nogil=True, fastmath=_FREEDOM)(function)
    return found


# Sums


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


@_compiled
def sum_rows(
    values: Array,
    bits: Array,
    most: _Number,
    first: int,
    low: Array,
    high: Array,
    total: Array,
    squares: Array,
    zeros: Array,
) -> None:
    """Sum channels whose elements lie one after the other.

    Parameters
    ----------
    values : ndarray of float32 or float64, shape (inputs, channels, size)
        At least one element a channel.
    bits : ndarray of int32 or int64
        The same memory.
    most : int32 or int64
        The largest there is.
    first : int
        Column of the first channel in what follows.
    low, high : ndarray of float64, shape (inputs, columns)
        Set to the least and the largest element of a channel. One of them is NaN if an element
        is.
    total, squares : ndarray of float64
        Set to their sum, and the sum of their squares.
    zeros : ndarray of int64
        Set to how many are 0.
    """
    inputs, channels, size = values.shape
    keys = np.empty(2, bits.dtype)
    ends = keys.view(values.dtype)
    for i in range(inputs):
        for c in range(channels):
            if size <= _PIECE:
                found = _sums_of_piece(values[i, c], bits[i, c], most)
            else:
                found = _sums_of_long_row(values[i, c], bits[i, c], most)
            keys[0], keys[1] = _ordered(found[0], most), _ordered(found[1], most)
            to = first + c
            low[i, to], high[i, to] = ends[0], ends[1]
            total[i, to], squares[i, to], zeros[i, to] = found[2], found[3], found[4]


@_inner
def _add_steps(
    values: Array, bits: Array, most: _Number, keys: Array, sums: Array, zeros: Array
) -> None:
    """Add steps of some columns to what they hold so far, column by column."""
    whole = bits.dtype.type
    low, high, total, squares = keys[0], keys[1], sums[0], sums[1]
    for step in range(values.shape[0]):
        row, own = values[step], bits[step]
        # One loop for each kind of sum: so several columns are computed at once.
        for c in range(row.size):
            key = whole(_ordered(own[c], most))
            low[c] = min(low[c], key)
            high[c] = max(high[c], key)
        for c in range(row.size):
            value = np.float64(row[c])
            total[c] += value
            squares[c] += value * value
        for c in range(row.size):
            zeros[c] += row[c] == 0


@_compiled
def sum_columns(
    values: Array,
    bits: Array,
    most: _Number,
    first: int,
    low: Array,
    high: Array,
    total: Array,
    squares: Array,
    zeros: Array,
) -> None:
    """Sum channels that are the last axis: as `sum_rows`, but of (inputs, size, channels)."""
    inputs, size, channels = values.shape
    width = min(channels, _COLUMNS)
    keys, sums = np.empty((2, width), bits.dtype), np.empty((2, width))
    none = np.empty(width, np.int32)
    ends = keys.view(values.dtype)
    for i in range(inputs):
        for begin in range(0, channels, width):
            end = min(begin + width, channels)
            to = first + begin
            for c in range(end - begin):
                keys[0, c] = keys[1, c] = _ordered(bits[i, 0, begin + c], most)
                total[i, to + c] = squares[i, to + c] = zeros[i, to + c] = 0
            for top in range(0, size, _PIECE):
                steps = slice(top, top + _PIECE)
                sums[:] = 0
                none[:] = 0
                part, own = values[i, steps, begin:end], bits[i, steps, begin:end]
                _add_steps(part, own, most, keys, sums, none)
                for c in range(end - begin):
                    total[i, to + c] += sums[0, c]
                    squares[i, to + c] += sums[1, c]
                    zeros[i, to + c] += none[c]
            for c in range(end - begin):
                keys[0, c], keys[1, c] = _ordered(keys[0, c], most), _ordered(keys[1, c], most)
                low[i, to + c], high[i, to + c] = ends[0, c], ends[1, c]


# Any elements


@_compiled
def measure_any(
    values: Array, inputs: Array, channels: Array, facts: Array, counts: Array
) -> None:
    """Measure channels that may hold anything, also what sums would lose.

    Parameters
    ----------
    values : ndarray of float32 or float64, shape (inputs, channels, size)
        Strides may be any.
    inputs, channels : ndarray of int64
        Which ones.
    facts : ndarray of float64, shape (4, channels)
        Set to the least and the largest finite element, their mean, and the sum of the squared
        distances from it; inf, -inf, 0 and 0 if none is finite.
    counts : ndarray of int64, shape (5, channels)
        Set to the numbers of finite elements, zeros, NaN, infinities and negative infinities.
    """
    for place in range(inputs.size):
        row = values[inputs[place], channels[place]]
        own = counts[:, place]
        own[:] = 0
        low, high = np.inf, -np.inf
        for each in row:
            value = np.float64(each)
            if math.isfinite(value):
                own[0] += 1
                own[1] += value == 0
                low, high = min(low, value), max(high, value)
            else:
                own[2] += math.isnan(value)
                own[3] += value > 0
                own[4] += value < 0
        mean = apart = 0.0
        if own[0] and low < high:
            # By a power of two, so that nothing is lost: distances are twice as large at most.
            exponent = max(math.frexp(max(-low, high))[1] + 1, -1000)
            scale = math.ldexp(1.0, -exponent)
            for each in row:
                if math.isfinite(each):
                    mean += each * scale
            mean /= own[0]
            for each in row:
                if math.isfinite(each):
                    distance = each * scale - mean
                    apart += distance * distance
            mean = min(max(mean / scale, low), high)
            apart = apart / scale / scale
        elif own[0]:
            mean = low
        facts[0, place], facts[1, place] = low, high
        facts[2, place], facts[3, place] = mean, apart
