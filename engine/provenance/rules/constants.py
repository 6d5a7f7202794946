"""Tensors that are made of no operand's elements: zeros, ranges and the like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.layers import creation
from engine.provenance.arithmetic import break_down_constant
from engine.provenance.call import NoBreakdownError, Operand
from engine.provenance.table import codes_of, explains, locates

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.provenance.call import Call
    from engine.provenance.records import Box, Breakdown

__all__ = ["CONSTANTS", "explain_constant", "locate_constant"]

_SIZED = codes_of(*[
    f"{prefix}{name}{suffix}"
    for name in ("zeros", "ones", "full")
    for prefix, suffix in (("torch.", ""), ("torch.", "_like"), ("Tensor.new_", ""))
])  # fmt: skip
CONSTANTS: Final[tuple[Any, ...]] = (
    *_SIZED, creation.arange, creation.zero, creation.eye, creation.linspace, creation.logspace,
    creation.scalar_tensor,
)  # fmt: skip


@explains(*CONSTANTS)
def explain_constant(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Return the number that the operator puts here; only sizes and numbers go into it."""
    values = [
        np.broadcast_to(np.zeros((), each.dtype), each.shape)
        if isinstance(each, Operand) and each.ndim
        else each.value if isinstance(each, Operand) else each
        for each in call.inputs
    ]  # fmt: skip
    found = np.asarray(call.forward(values))
    if found.shape != call.shape:
        raise NoBreakdownError("its size is computed")
    return break_down_constant(index, float(found[index]))


@locates(*CONSTANTS)
def locate_constant(call: Call, box: Box) -> Mapping[str, Box]:  # noqa: ARG001 - of all alike
    """Return the numbers that are operands; of a tensor only the size counts."""
    return {each.name: each.whole for each in call.arrays if not each.ndim}
