"""Operators that return a tensor's shape or an element as a Python number."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.errors import LayerError
from engine.layers.annotations import OperandOf
from engine.layers.arguments import axis_of, require_array
from engine.layers.registry import register
from engine.values import Array, Value, describe_value

__all__ = ["as_python", "dim_count", "element_count", "size"]


@register("Tensor.size", "aten::size")
def size(input: Array, dim: int | None = None) -> Value:
    """Return the length of a dimension: ``Tensor.size``.

    Parameters
    ----------
    input : ndarray of any shape
    dim : int, optional

    Returns
    -------
    int, or tuple of int without `dim`
    """
    shape: tuple[int, ...] = require_array(input, "input").shape
    if dim is None:
        return shape
    if not shape:
        raise LayerError("a 0-d tensor has no dimensions to measure")
    return shape[axis_of(dim, len(shape))]


@register("Tensor.dim", "aten::dim")
def dim_count(input: Array) -> int:
    """Return the number of dimensions as an integer: ``Tensor.dim``."""
    return input.ndim


@register("Tensor.numel", "torch.numel", "aten::numel")
def element_count(input: Array) -> int:
    """Return the number of elements as an integer: ``torch.numel``."""
    return input.size


@register("Tensor.item", "aten::item", "aten::ScalarImplicit")
def item(input: OperandOf[Value]) -> Value:
    """Return a tensor's only element as a Python number: ``Tensor.item``."""
    number: Value = as_python(input)
    return number


@register("aten::Int", "aten::IntImplicit")
def to_int(input: OperandOf[Value]) -> int:
    """Return a tensor's only element, truncated to an integer: TorchScript's ``int(x)``."""
    return int(as_python(input))


@register("aten::Float", "aten::FloatImplicit")
def to_float(input: OperandOf[Value]) -> float:
    """Return a tensor's only element as a floating-point number: TorchScript's ``float(x)``."""
    return float(as_python(input))


@register("aten::Bool")
def to_bool(input: OperandOf[Value]) -> bool:
    """Return whether a tensor's only element is not zero: TorchScript's ``bool(x)``."""
    return bool(as_python(input))


@register("aten::Complex", "aten::ComplexImplicit")
def to_complex(input: OperandOf[Value], imag: Value = 0) -> complex:
    """Return a tensor's only element, or two numbers, as a complex number: ``complex(x, y)``.

    The second one is `imag`.
    """
    return complex(as_python(input), as_python(imag)) if imag else complex(as_python(input))


@register("prim::NumToTensor")
def to_tensor(input: OperandOf[Value]) -> Array:
    """Convert a number to a 0-d tensor of 64 bits: TorchScript's int in a trace."""
    return np.asarray(as_python(input))


@register("aten::len")
def length(input: OperandOf[Value]) -> int:
    """Return the length of a list, or of a tensor's first dimension: TorchScript's ``len``."""
    if isinstance(input, tuple) or (isinstance(input, np.ndarray) and input.ndim):
        return len(input)
    raise LayerError(f"{describe_value(input)} has no length")


def as_python(value: Value) -> Any:
    """Convert a number or a tensor with one element to a Python number.

    Returns
    -------
    bool, int, float or complex

    Raises
    ------
    LayerError
        If it is neither.
    """
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.item()
    if isinstance(value, (bool, int, float, complex)):
        return value
    raise LayerError(f"{describe_value(value)} is not one number")
