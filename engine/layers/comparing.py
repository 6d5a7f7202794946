"""Operators that compare tensors: equality, closeness and membership."""

from __future__ import annotations

import numpy as np

from engine.errors import LayerError
from engine.layers.elementwise import Operand
from engine.layers.registry import register
from engine.promotion import result_dtype
from engine.values import Array

__all__ = ["allclose", "equal", "isclose", "isin", "isreal"]


@register("torch.isclose", "Tensor.isclose", "aten::isclose")
def isclose(
    input: Array,
    other: Array,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Whether elements are nearly equal: ``torch.isclose``.

    Parameters
    ----------
    input, other : ndarray, of one dtype, broadcast to one shape
    rtol, atol : float
        They may differ by ``atol + rtol * abs(other)``.
    equal_nan : bool
        Whether NaN counts as equal to NaN.

    Returns
    -------
    bool ndarray of the common shape
    """
    if input.dtype != other.dtype:
        raise LayerError(
            f"{input.dtype} and {other.dtype} cannot be compared: convert one of them"
        )
    with np.errstate(all="ignore"):
        return np.asarray(np.isclose(input, other, rtol, atol, equal_nan))


@register("torch.allclose", "Tensor.allclose", "aten::allclose")
def allclose(
    input: Array,
    other: Array,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> bool:
    """Whether all elements are nearly equal: ``torch.allclose``.

    Parameters as ``torch.isclose``.

    Returns
    -------
    bool
    """
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


@register("torch.equal", "Tensor.equal", "aten::equal")
def equal(input: Array, other: Array) -> bool:
    """Whether two tensors have the same shape and elements: ``torch.equal``.

    Returns
    -------
    bool
        NaN is equal to nothing.
    """
    return bool(np.array_equal(input, other))


@register("torch.isin", "aten::isin")
def isin(
    elements: Operand,
    test_elements: Operand,
    assume_unique: bool = False,
    invert: bool = False,
) -> Array:
    """Whether each element is one of others: ``torch.isin``.

    Parameters
    ----------
    elements, test_elements : ndarray of any shape, or number
    assume_unique : bool
        No effect on the result.
    invert : bool
        Whether to test that it is none of them.

    Returns
    -------
    bool ndarray of the shape of `elements`
    """
    dtype = result_dtype(elements, test_elements)
    return np.isin(np.asarray(elements, dtype), np.asarray(test_elements, dtype), invert=invert)


@register("torch.isreal", "Tensor.isreal", "aten::isreal")
def isreal(input: Array) -> Array:
    """Whether the imaginary part of each element is zero: ``torch.isreal``.

    Returns
    -------
    bool ndarray of the same shape
    """
    return np.asarray(np.isreal(input))
