"""Operators that make and split complex numbers."""

from __future__ import annotations

import numpy as np

from engine.errors import LayerError, describe_shapes
from engine.expression.functions import Elementwise
from engine.layers.elementwise import apply
from engine.layers.registry import register
from engine.promotion import float_dtype
from engine.values import Array, Value

__all__ = ["angle", "complex_of", "conj", "imag", "real", "view_as_complex", "view_as_real"]


@register("torch.complex", "aten::complex")
def complex_of(real: Array, imag: Array) -> Value:
    """Complex number of its two parts: ``torch.complex``.

    Parameters
    ----------
    real, imag : floating-point ndarray, broadcast to one shape

    Returns
    -------
    complex ndarray of the common shape
        complex64 for float32, complex128 for float64.
    """
    return apply(Elementwise(_join_parts, "f"), real, imag)


def _join_parts(real: Array, imag: Array) -> Array:
    parts = np.broadcast_arrays(real, imag)
    return np.stack(parts, axis=-1).view(np.result_type(real, np.complex64))[..., 0]


@register("torch.polar", "aten::polar")
def polar(abs: Array, angle: Array) -> Value:
    """Complex number of its length and angle: ``torch.polar``; as ``torch.complex``."""
    return apply(Elementwise(_from_polar, "f"), abs, angle)


def _from_polar(length: Array, angle: Array) -> Array:
    return _join_parts(length * np.cos(angle), length * np.sin(angle))


@register("torch.real", "aten::real")
def real(input: Array) -> Array:
    """Real part: ``torch.real``.

    Parameters
    ----------
    input : ndarray of any shape

    Returns
    -------
    ndarray of the same shape
        A view of `input`; `input` itself where it is real.
    """
    return input.real


@register("torch.imag", "aten::imag")
def imag(input: Array) -> Array:
    """Imaginary part: ``torch.imag``.

    Parameters
    ----------
    input : complex ndarray of any shape

    Returns
    -------
    ndarray of the same shape
        A view of `input`.
    """
    return _require_complex(input).imag


@register("torch.conj", "Tensor.conj", "aten::conj", "aten::_conj")
@register("torch.conj_physical", "Tensor.conj_physical", "aten::conj_physical")
def conj(input: Array) -> Array:
    """Complex conjugate: ``torch.conj``.

    Parameters
    ----------
    input : ndarray of any shape

    Returns
    -------
    ndarray of the same shape
        A copy; `input` itself where it is real.
    """
    return np.conj(input) if input.dtype.kind == "c" else input


@register("torch.angle", "Tensor.angle", "aten::angle")
def angle(input: Array) -> Array:
    """Angle of a complex number: ``torch.angle``.

    Parameters
    ----------
    input : ndarray of any shape

    Returns
    -------
    ndarray of the same shape, in radians
        Of real numbers: 0, pi where negative, NaN of NaN; float32 for integers.
    """
    if input.dtype.kind == "c":
        return np.angle(input)
    dtype = float_dtype(input.dtype)
    return np.where(np.isnan(input), np.nan, np.where(input < 0, np.pi, 0)).astype(dtype)


@register("torch.view_as_real", "aten::view_as_real")
def view_as_real(input: Array) -> Array:
    """Complex numbers as pairs of real ones: ``torch.view_as_real``.

    Parameters
    ----------
    input : complex ndarray of shape (...)

    Returns
    -------
    ndarray of shape (..., 2)
        A view of `input` where its memory order allows one.
    """
    parts = np.ascontiguousarray(_require_complex(input)[..., np.newaxis])
    return parts.view(input.real.dtype).reshape(*input.shape, 2)


@register("torch.view_as_complex", "aten::view_as_complex")
def view_as_complex(input: Array) -> Array:
    """Pairs of real numbers as complex ones: ``torch.view_as_complex``.

    Parameters
    ----------
    input : floating-point ndarray of shape (..., 2)

    Returns
    -------
    complex ndarray of shape (...)
        A view of `input` where its memory order allows one.
    """
    if input.dtype.kind != "f" or not input.ndim or input.shape[-1] != 2:
        shape = describe_shapes([input.shape])
        raise LayerError(f"{input.dtype} of shape {shape} holds no pairs of real numbers")
    single = input.astype(np.float32) if input.dtype == np.float16 else input
    pairs = np.ascontiguousarray(single)
    return pairs.view(np.result_type(single.dtype, np.complex64)).reshape(input.shape[:-1])


def _require_complex(array: Array) -> Array:
    if array.dtype.kind != "c":
        raise LayerError(f"{array.dtype} is not complex")
    return array
