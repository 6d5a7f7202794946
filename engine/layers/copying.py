"""Operators that return a tensor unchanged, copied, or in another dtype."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from engine.layers.annotations import OperandOf
from engine.layers.arguments import as_dtype, cast
from engine.layers.elementwise import Operand
from engine.layers.registry import register
from engine.promotion import promote
from engine.values import Array, Value

__all__ = ["clone", "identity", "to", "type_as"]

_ELSEWHERE: Final = "device layout pin_memory non_blocking memory_format"


@register("Tensor.contiguous", "aten::contiguous", unused="memory_format")
@register("nn.Identity", "aten::alias")
@register("torch.detach", "Tensor.detach", "aten::detach", "aten::lift_fresh")
@register("torch.resolve_conj", "Tensor.resolve_conj", "aten::resolve_conj")
@register("torch.resolve_neg", "Tensor.resolve_neg", "aten::resolve_neg", "prim::data")
def identity(input: OperandOf[Value], **more: Any) -> Value:
    """Return the input: ``nn.Identity``, ``Tensor.contiguous``, ``Tensor.detach``.

    Memory order does not change a tensor's values, so ``contiguous`` copies nothing. Conjugates
    and negatives are never lazy here, so ``resolve_conj`` does nothing. Parameters of any name
    are accepted and ignored, as by ``nn.Identity``.

    Returns
    -------
    Value
        `input` itself.
    """
    return input


@register("torch.clone", "Tensor.clone", "aten::clone", unused="memory_format")
def clone(input: Array) -> Array:
    """Copy a tensor: ``torch.clone``.

    Parameters
    ----------
    input : ndarray of any shape

    Returns
    -------
    ndarray of the same shape
        A copy.
    """
    return input.copy()


@register("Tensor.copy", "aten::copy", "aten::copy_", unused="non_blocking")
def copy(input: Array, src: Operand) -> Array:
    """Broadcast another tensor to this one's shape and dtype: ``Tensor.copy_``.

    Parameters
    ----------
    input : ndarray of shape S
    src : ndarray or number
        Broadcast to S.

    Returns
    -------
    ndarray of shape S
        A copy.
    """
    return np.broadcast_to(cast(np.asarray(src), input.dtype), input.shape).copy()


@register("aten::_to_copy", operands="input dtype _ _ _ _ _", unused=_ELSEWHERE)
@register(
    "Tensor.to",
    "aten::to",
    operands=(
        "input dtype _ copy _",
        "input _ dtype _ copy _",
        "input dtype _ _ _ _ copy _",
    ),
    unused=_ELSEWHERE,
)
def to(
    input: Operand,
    dtype: Value = None,
    copy: bool = False,
) -> Array:
    """Convert to a dtype: ``Tensor.to``.

    Parameters
    ----------
    input : ndarray of any shape, or number
        In unoptimised graphs of pnnx, constant 0-d tensors are numbers.
    dtype : str or ndarray, optional
        Such as ``torch.float``, or a tensor with the dtype. Floats are truncated towards zero
        for integers. bfloat16 is stored as float32, rounded to its precision.
    copy : bool
        Copy even if the dtype stays.

    Returns
    -------
    ndarray of the same shape
        `input` itself if nothing changes.
    """
    wanted = dtype.dtype if isinstance(dtype, np.ndarray) else as_dtype(dtype)
    (array,) = promote(input)
    result = array if wanted is None else cast(array, wanted)
    if wanted is not None and str(dtype) in {"torch.bfloat16", "15"}:
        result = _round_to_bfloat16(result)
    return result.copy() if copy and result is array else result


def _round_to_bfloat16(array: Array) -> Array:
    """Round float32 to the nearest bfloat16, ties to even."""
    bits = np.ascontiguousarray(array).view(np.uint32)
    rounded = bits + (np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1)))
    rounded &= np.uint32(0xFFFF0000)
    return np.where(np.isnan(array), array, rounded.view(np.float32).reshape(array.shape))


@register("Tensor.type_as", "aten::type_as")
def type_as(input: Array, other: Array) -> Array:
    """Convert to the dtype of another tensor: ``Tensor.type_as``.

    Parameters
    ----------
    input, other : ndarray of any shape

    Returns
    -------
    ndarray of the shape of `input`
        `input` itself if the dtype is the same.
    """
    return cast(input, other.dtype)
