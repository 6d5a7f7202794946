"""Arithmetic of two or more operands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from typing_extensions import override

from engine.errors import LayerError, ParameterError, describe_shapes
from engine.layers.layer import Floats, Layer
from engine.layers.ncnn.table import layer
from engine.memory_bound import require_memory
from engine.values import Array

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BinaryOp", "extend_axes"]


def _swap_operands(
    function: Callable[[Array, Array], Array],
) -> Callable[[Array, Array], Array]:
    return lambda a, b: function(b, a)


def _floor_divide(a: Array, b: Array) -> Array:
    return np.asarray(np.floor(np.divide(a, b)))


def _remainder(a: Array, b: Array) -> Array:
    """Return the remainder of a division that rounds half to even, as C's ``remainderf``."""
    return np.asarray(a - np.rint(np.divide(a, b)) * b)


_BINARY: Final[tuple[Callable[[Array, Array], Array], ...]] = (
    np.add, np.subtract, np.multiply, np.divide, np.maximum, np.minimum, np.power,
    _swap_operands(np.subtract), _swap_operands(np.divide), _swap_operands(np.power),
    np.arctan2, _swap_operands(np.arctan2), np.fmod, _swap_operands(np.fmod), np.logaddexp,
    _floor_divide, _swap_operands(_floor_divide), _remainder, _swap_operands(_remainder),
)  # fmt: skip


@layer("BinaryOp")
class BinaryOp(Layer):
    """Compute with two operands, or with one and a number.

    An operand of fewer axes gets inner axes: (C,) or (C, H) counts as (C, 1, 1) or (C, H, 1)
    beside (C, H, W). An operand with a single axis that is not C long counts as a row.

    Parameters
    ----------
    op_type : int
        0 add, 1 sub, 2 mul, 3 div, 4 max, 5 min, 6 pow, 7 rsub, 8 rdiv, 9 rpow, 10 atan2,
        11 ratan2, 12 fmod, 13 rfmod, 14 logaddexp, 15 floor_divide, 16 rfloor_divide,
        17 remainder, 18 rremainder; an r in front swaps the operands.
    with_scalar : int
        Whether the second operand is `b`.
    b : float
    """

    def __init__(self, op_type: int = 0, with_scalar: int = 0, b: float = 0.0) -> None:
        if not 0 <= op_type < len(_BINARY):
            raise ParameterError("op_type", f"op_type={op_type} is not an operation of ncnn")
        self._function = _BINARY[op_type]
        self._scalar = np.float32(b) if with_scalar else None

    @override
    def forward(self, *inputs: Array) -> Array:
        if self._scalar is not None:
            return np.asarray(self._function(inputs[0], np.asarray(self._scalar)))
        if len(inputs) != 2:
            raise LayerError("two operands are needed")
        one, other = inputs
        one, other = extend_axes(one, other), extend_axes(other, one)
        try:
            shape = np.broadcast_shapes(one.shape, other.shape)
        except ValueError:
            shapes = describe_shapes([array.shape for array in inputs])
            raise LayerError(f"operands of shapes {shapes} do not fit each other") from None
        require_memory(shape, one.dtype)
        return np.asarray(self._function(one, other))


def extend_axes(array: Array, other: Array) -> Array:
    """Give an operand the axes of the other."""
    missing = other.ndim - array.ndim
    if missing <= 0:
        return array
    if array.ndim == 1 and array.shape[0] != other.shape[0]:
        return array.reshape(*(1,) * missing, -1)
    return array.reshape(*array.shape, *(1,) * missing)


@layer("Eltwise")
def eltwise(*inputs: Array, op_type: int = 0, coeffs: Floats | None = None) -> Array:
    """Multiply, add or compare operands of one shape.

    Parameters
    ----------
    inputs : ndarray
    op_type : int
        0 product, 1 sum, 2 maximum.
    coeffs : tuple of float, optional
        Factors of a sum, one per operand.

    Returns
    -------
    ndarray of the same shape
    """
    if op_type not in {0, 1, 2} or len(inputs) < 2:
        raise LayerError(f"op_type={op_type} of {len(inputs)} operands is unknown")
    if len({array.shape for array in inputs}) > 1:
        shapes = describe_shapes([array.shape for array in inputs])
        raise LayerError(f"operands have different shapes: {shapes}")
    factors = coeffs if isinstance(coeffs, tuple) else ()
    if op_type == 1 and factors and len(factors) != len(inputs):
        raise LayerError(f"{len(factors)} factors do not fit {len(inputs)} operands")
    result = inputs[0]
    if op_type == 1 and factors:
        result = np.asarray(result * np.float32(factors[0]))
    for place, array in enumerate(inputs[1:], 1):
        if op_type == 0:
            result = np.asarray(result * array)
        elif op_type == 2:
            result = np.maximum(result, array)
        else:
            factor = np.float32(factors[place]) if factors else np.float32(1)
            result = np.asarray(result + array * factor)
    return result
