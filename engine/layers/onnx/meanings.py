"""Replaces layers whose meaning differs in files made from ONNX.

pnnx writes operators of ONNX as PyTorch's types, but some keep ONNX's meaning. Quotients of
integers are integers. Sizes and constants are tensors. A tensor may represent its own sizes,
because pnnx drops ``Shape``. The layers of such a graph come from a table in which the layers
of this module replace PyTorch's. No other code depends on the origin of a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from typing_extensions import override

from engine.expression import FUNCTIONS, Function, OperandRef
from engine.expression.functions import Elementwise, truncated_quotient
from engine.layers import arithmetic, attribute, concatenate, size, slicing, split
from engine.layers.arguments import axis_of
from engine.layers.elementwise import Operand, apply
from engine.layers.expression import Expression, to_tensor
from engine.layers.layer import NOWHERE, Ints, OperatorCall
from engine.promotion import is_numbers
from engine.values import Array, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.layers.registry import Registration

__all__ = ["OnnxExpression", "cat", "onnx_table"]

Target = TypeVar("Target", bound="Callable[..., Any]")

_MEANINGS: Final[dict[Callable[..., Any], Callable[..., Any]]] = {}


def onnx_table(table: Mapping[str, Registration]) -> Mapping[str, Registration]:
    """Replace layers with PyTorch's meaning in a table by layers with ONNX's.

    Registrations of user files stay.
    """
    return {
        **table,
        **{
            name: replace(entry, target=_MEANINGS[entry.target])
            for name, entry in table.items()
            if entry.target in _MEANINGS
        },
    }


def _replaces(target: Callable[..., Any]) -> Callable[[Target], Target]:
    """Declare that the decorated code replaces `target` in files made from ONNX."""

    def decorate(meaning: Target) -> Target:
        _MEANINGS[target] = meaning
        return meaning

    return decorate


# Numbers


def _quotient(a: Array, b: Array) -> Array:
    return truncated_quotient(a, b) if a.dtype.kind in "iu" else np.asarray(np.divide(a, b))


def _power(base: Any, exponent: Any) -> Value:
    power = FUNCTIONS["pow"].apply(base, exponent)
    integer = isinstance(base, int) or getattr(base, "dtype", np.dtype(float)).kind in "iu"
    if isinstance(power, float) and integer:
        return int(power)
    if isinstance(power, np.ndarray) and integer:
        return power.astype(np.asarray(base).dtype)
    return power


_FUNCTIONS: Final[Mapping[str, Function]] = {
    **FUNCTIONS,
    "div": Function("div", 2, 2, Elementwise(_quotient, "bifc")),
    "pow": Function("pow", 2, 2, _power),
}


@_replaces(arithmetic.div)
def div(input: Operand, other: Operand, rounding_mode: str | None = None) -> Value:
    """Quotient; integers give integers, truncated towards zero."""
    if rounding_mode is None:
        return apply(_FUNCTIONS["div"].apply, input, other)
    return arithmetic.div(input, other, rounding_mode)


@_replaces(Expression)
class OnnxExpression(Expression):
    """Compute an expression; integers stay integers, sizes and constants are tensors."""

    functions = _FUNCTIONS
    gives_tensors = True

    def __init__(self, operator: OperatorCall, expr: Any) -> None:
        super().__init__(operator, expr)
        is_plain = isinstance(self.expression.root, OperandRef)
        self._stated = operator.output_shape if is_plain else None

    @override
    def forward(self, *operands: Value) -> Value:
        """Evaluate on the operands; one alone may represent its sizes.

        Returns
        -------
        Value
        """
        result = super().forward(*operands)
        if not isinstance(result, np.ndarray) or self._stated != (result.ndim,):
            return result
        # What has more elements than stated, or no integers, stands for its own sizes.
        is_sizes = result.size != self._stated[0] or result.dtype.kind not in "iu"
        return np.array(result.shape, np.int64) if is_sizes else result


# Sizes and constants


@_replaces(size.size)
def size_tensor(input: Array, dim: int | None = None, *, call: OperatorCall = NOWHERE) -> Value:
    """Return the size of a dimension, or of all, as a tensor."""
    return to_tensor(size.size(input, dim), annotated=call.output_shape is not None)


@_replaces(attribute.constant)
def constant(value: Any = None, *, call: OperatorCall = NOWHERE) -> Value:
    """Return a constant as a tensor."""
    return to_tensor(attribute.constant(value), annotated=call.output_shape is not None)


@_replaces(concatenate.cat)
def cat(*tensors: Value, dim: int = 0, call: OperatorCall = NOWHERE) -> Array:
    """Join tensors; numbers and tensors may represent members of a list of sizes."""
    arrays = tuple(np.array(t) if is_numbers(t) else t for t in tensors)
    members = concatenate.members_of(arrays)
    return concatenate.cat(*_restore_sizes(members, call), dim=dim)


def _restore_sizes(members: tuple[Array, ...], call: OperatorCall) -> tuple[Array, ...]:
    """Restore the members of a list of sizes.

    pnnx drops the operators that make lists of them. A number represents a list of one. A
    tensor represents its sizes, as many as the result's annotated length allows.
    """
    shape = call.output_shape
    if shape is None or len(shape) != 1 or not isinstance(shape[0], int):
        return members
    lists = [m.reshape(-1) if m.ndim < 2 else None for m in members]
    known = sum(len(numbers) for numbers in lists if numbers is not None)
    if known != shape[0]:  # a vector of floats among sizes also represents its size
        lists = [
            None if m.dtype.kind != "i" else numbers
            for m, numbers in zip(members, lists, strict=True)
        ]
        known = sum(len(numbers) for numbers in lists if numbers is not None)
    left = shape[0] - known
    result: list[Array] = []
    for member, numbers in zip(members, lists, strict=True):
        own = np.array(member.shape, np.int64)[:left] if numbers is None else numbers
        left -= len(own) if numbers is None else 0
        result.append(own)
    return tuple(result) if left == 0 else members


# Indices


@_replaces(slicing.select)
def select(input: Array, dim: int, index: Ints, *, call: OperatorCall = NOWHERE) -> Array:
    """Select one index of a dimension; the index may have dimensions."""
    taken = slicing.select(input, dim, index)
    if isinstance(index, tuple):
        return taken
    return _restore_index_dims(taken, axis_of(dim, input.ndim), call)


@_replaces(split.unbind)
def unbind(input: Array, dim: int = 0, *, call: OperatorCall = NOWHERE) -> tuple[Array, ...]:
    """Split into slices; the indices may have dimensions."""
    parts = split.unbind(input, dim)
    return tuple(_restore_index_dims(part, axis_of(dim, input.ndim), call) for part in parts)


def _restore_index_dims(taken: Array, axis: int, call: OperatorCall) -> Array:
    """Restore the dimensions of a single index in ONNX.

    pnnx writes a ``Gather`` of one index in the same form, whether the index is a number, a
    list of one or has more dimensions. The annotated shape shows which.
    """
    shape = call.output_shape
    more = 0 if shape is None else len(shape) - taken.ndim
    if more <= 0:
        return taken
    return taken.reshape(*taken.shape[:axis], *(1,) * more, *taken.shape[axis:])
