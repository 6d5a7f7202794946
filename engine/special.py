"""Special functions that NumPy lacks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from engine.values import Array

__all__ = ["digamma", "erf", "erfc_of_positive", "erfinv", "gelu_of_negative"]

# erf(x) = x P(x²) / Q(x²) for |x| <= 3.95, where float32 reaches 1: a rational function
# fitted here to math.erf for the least relative error (2e-8 in exact arithmetic). All
# coefficients are positive, so nothing cancels. Highest power first.
_LARGEST: Final = np.float32(3.95)
_NUMERATOR: Final = np.array(
    [2.02590968e-06, 2.8468846e-04, 3.80817940e-03, 5.28755039e-02, 1.91550672e-01,
     1.12837911e00],
    np.float32,
)  # fmt: skip
_DENOMINATOR: Final = np.array(
    [3.78318582e-05, 1.17073068e-03, 1.50551265e-02, 1.14559785e-01, 5.03090024e-01, 1.0],
    np.float32,
)
# erfc(x) = exp(-x²) t P(t) with t = 1 / (1 + x / 2) from 0.3 on, fitted here likewise: 7e-9
# in double precision, which is exact in float32. Highest power first.
_TAIL: Final = np.array(
    [-1.314600921892e-02, -5.563457149509e-03, 1.942550973952e-01, -4.061127860309e-01,
     2.373037306545e-01, -1.609389832091e-02, 2.020367135566e-01, 2.427810531544e-01,
     2.824509992344e-01, 2.820814334080e-01],
)  # fmt: skip
# x Phi(x) = exp(-x² / 2) (P(x) / Q(x) - 1 / sqrt(2 pi)) for x <= -0.5, fitted here likewise, to
# 6e-9. The quotient goes to 0 for large -x, so that its rounding counts for less than one in
# the whole factor. All terms are positive there. Highest power first.
_GELU_NUMERATOR: Final = np.array(
    [-7.99639430e-03, 6.16625994e-02, -2.22542673e-01, 3.98951590e-01], np.float32
)
_GELU_DENOMINATOR: Final = np.array(
    [-2.00488921e-02, 1.54353857e-01, -6.21816158e-01, 1.42397988e00, -1.81134737e00, 1.0],
    np.float32,
)
_GELU_FARTHEST: Final = np.float32(-16)  # where the result is 0
_CHUNK: Final = 1 << 15  # elements; the temporaries of a chunk stay in the cache


def erf(x: Array, *, fine: bool = True) -> Array:
    """Error function, element by element.

    Parameters
    ----------
    x : ndarray of any shape, float16, float32 or float64
    fine : bool
        Whether it matters that between 1 and 4 the polynomials' rounding is up to 6 units in
        the last place.

    Returns
    -------
    ndarray of the same shape and dtype
        A new array. Within 4 units in the last place in float32; float64 is exact to the
        last digits but about twenty times slower.
    """
    flat = np.ascontiguousarray(x).reshape(-1)
    result = np.empty_like(flat)
    double = x.dtype == np.float64
    kernel = _erf64 if double else _fine_erf32 if fine else _erf32
    for start in range(0, flat.size, _CHUNK):
        chunk = slice(start, start + _CHUNK)
        result[chunk] = kernel(flat[chunk])
    return result.reshape(x.shape)


def _erf64(x: Array) -> Array:
    return np.fromiter(map(math.erf, x.tolist()), np.float64, x.size)


def _erf32(x: Array) -> Array:
    clipped = np.clip(x.astype(np.float32, copy=False), -_LARGEST, _LARGEST)
    square = clipped * clipped
    result = clipped * _polynomial(_NUMERATOR, square) / _polynomial(_DENOMINATOR, square)
    return np.clip(result, np.float32(-1), np.float32(1), out=result)


def _fine_erf32(x: Array) -> Array:
    result = _erf32(x)
    far = np.flatnonzero(np.abs(x) > 1)
    wide = x.take(far).astype(np.float64)
    rest = 1 - erfc_of_positive(np.abs(wide), in_float32=True)
    result.put(far, np.copysign(rest, wide))
    return result


def erfc_of_positive(x: Array, *, in_float32: bool) -> Array:
    """``1 - erf(x)`` without loss where that is small.

    Parameters
    ----------
    x : ndarray of float64 and shape (N,)
        Not below 0.3.
    in_float32 : bool
        Whether the result need not be more exact than float32, which is ten times as fast.

    Returns
    -------
    ndarray of float64 and shape (N,)
        A new array.
    """
    if not in_float32:
        return np.fromiter(map(math.erfc, x.tolist()), np.float64, x.size)
    place = 1 / (1 + x / 2)
    result: Array = np.exp(-x * x) * place * _polynomial(_TAIL, place)
    return result


def gelu_of_negative(x: Array) -> Array:
    """``x / 2 * (1 + erf(x / sqrt(2)))`` without loss where that is small.

    Parameters
    ----------
    x : ndarray of float32 and shape (N,)
        Not above -0.5.

    Returns
    -------
    ndarray of float32 and shape (N,)
        A new array. Within 4 units in the last place.
    """
    result = np.empty_like(x)
    for start in range(0, x.size, _CHUNK):
        chunk = slice(start, start + _CHUNK)
        result[chunk] = _gelu32_of_negative(x[chunk])
    return result


def _gelu32_of_negative(x: Array) -> Array:
    near = np.maximum(x, _GELU_FARTHEST)  # beyond, the polynomials would overflow
    factor = _polynomial(_GELU_NUMERATOR, near)
    factor /= _polynomial(_GELU_DENOMINATOR, near)
    # 1, but infinite where x is: infinity times 0 is NaN, in PyTorch too.
    factor *= np.divide(x, near, out=near)
    # In double precision, for the exponential makes a relative error of an absolute one.
    power = x.astype(np.float64)
    power *= power
    power *= -0.5
    np.exp(power, out=power)
    wide = factor.astype(np.float64)
    wide -= 1 / math.sqrt(2 * math.pi)
    wide *= power
    return wide


def _polynomial(coefficients: Array, x: Array) -> Array:
    """Horner's scheme, highest power first."""
    result: Array = x * coefficients[0]
    result += coefficients[1]
    for coefficient in coefficients[2:]:
        result *= x
        result += coefficient
    return result


def erfinv(x: Array) -> Array:
    """Inverse of the error function, element by element.

    Parameters
    ----------
    x : floating-point ndarray of any shape

    Returns
    -------
    ndarray of the same shape and dtype
        A new array: infinite at 1 and -1, NaN beyond. A guess with an error of a few
        thousandths (Winitzki 2008), and two steps of Halley's method in float64.
    """
    wide = np.asarray(x, np.float64)
    with np.errstate(all="ignore"):
        logarithm = np.log1p(-wide * wide)
        term = 2 / (np.pi * 0.147) + logarithm / 2
        guess = np.copysign(np.sqrt(np.sqrt(term * term - logarithm / 0.147) - term), wide)
        for _ in range(2):
            error = _erf64(guess.reshape(-1)).reshape(guess.shape) - wide
            step = error / (2 / math.sqrt(math.pi) * np.exp(-guess * guess))
            guess = guess - step / (1 + guess * step)
    ends = np.where(np.abs(wide) == 1, np.copysign(np.inf, wide), np.nan)
    return np.asarray(np.where(np.abs(wide) < 1, guess, ends), x.dtype)


# Coefficients of 1 / x² in the asymptotic series of digamma, from Bernoulli's numbers.
_DIGAMMA: Final = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 5 / 660, -691 / 32760, 1 / 12)


def digamma(x: Array) -> Array:
    """Logarithmic derivative of the gamma function, element by element.

    Parameters
    ----------
    x : floating-point ndarray of any shape

    Returns
    -------
    ndarray of the same shape and dtype
        A new array: NaN at negative integers; infinite at 0, against its sign.
    """
    wide = np.asarray(x, np.float64)
    with np.errstate(all="ignore"):
        # Reflected to the right of a half, then moved to where the series is good.
        left = wide < 0.5
        place = np.where(left, 1 - wide, wide)
        total = np.where(left, -np.pi / np.tan(np.pi * (wide - np.round(wide))), 0.0)
        for _ in range(10):
            near = place < 10
            total = total - np.where(near, 1 / place, 0)
            place = place + near
        square = 1 / (place * place)
        series = sum(c * square ** (k + 1) for k, c in enumerate(_DIGAMMA))
        total = total + np.log(place) - 0.5 / place - series
    total = np.where((wide < 0) & (wide == np.floor(wide)), np.nan, total)
    return np.asarray(np.where(wide == 0, -np.copysign(np.inf, wide), total), x.dtype)
