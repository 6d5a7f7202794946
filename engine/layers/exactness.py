"""Which operators compute each element by itself, and right to a few units in the last place.

A result of theirs is compared with another element by element. Sums are not among them, nor
what cancels as a sum does where PyTorch computes it: such an element may be anything that is
small beside what it was computed from.
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
    """Say of a layer's function that it computes each element by itself."""
    _FUNCTIONS.add(function)
    return function


def is_elementwise(layer: Layer | None) -> bool:
    """Whether a layer computes each element by itself.

    An expression does that if it is a single call: the difference of two results may cancel.
    """
    if isinstance(layer, Expression):
        return sum(isinstance(node, Call) for node in layer.expression.nodes) == 1
    return isinstance(layer, FunctionLayer) and layer.target in _FUNCTIONS
