"""Marks element-wise operators, whose results are accurate to a few units in the last place.

These results are compared element by element. Sums are not element-wise. Neither are operators
that cancel like a sum in PyTorch: their small elements may have any relative error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from engine.expression import Call
from engine.layers.binding import FunctionLayer
from engine.layers.expression import Expression

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.layers.layer import Layer

__all__ = ["is_elementwise", "mark_elementwise"]

Function = TypeVar("Function", bound="Callable[..., Any]")

_FUNCTIONS: Final[set[Callable[..., Any]]] = set()


def mark_elementwise(function: Function) -> Function:
    """Mark a layer's function as element-wise."""
    _FUNCTIONS.add(function)
    return function


def is_elementwise(layer: Layer | None) -> bool:
    """Return whether a layer is element-wise.

    An expression is element-wise if it is a single call. The difference of two results may
    cancel.
    """
    if isinstance(layer, Expression):
        return sum(isinstance(node, Call) for node in layer.expression.nodes) == 1
    return isinstance(layer, FunctionLayer) and layer.target in _FUNCTIONS
