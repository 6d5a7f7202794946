"""The one table from operator type to the code that computes it.

Each operator's file registers its types with a decorator; registering a type twice is an
error at import. What is registered is either a function with PyTorch's argument names or a
`Layer` class whose ``__init__`` takes parameters and attributes by name and whose
``forward`` takes the operands (see `engine.layers.binding`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from engine.errors import UnsupportedOperatorError
from engine.layers.binding import bind

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.layers.layer import Layer, OperatorCall

__all__ = ["Registration", "build_layer", "register", "registered_types", "registration"]

Target = TypeVar("Target", bound="Callable[..., Any]")


@dataclass(frozen=True, slots=True)
class Registration:
    """What is registered for an operator type.

    Attributes
    ----------
    type : str
    target : callable
        A function, or a `Layer` class.
    """

    type: str
    target: Callable[..., Any]


_registrations: dict[str, Registration] = {}


def register(*types: str) -> Callable[[Target], Target]:
    """Register a function or a `Layer` class for operator types.

    Parameters
    ----------
    *types : str
        Operator types as the file writes them, e.g. ``"nn.ReLU", "F.relu"``.

    Raises
    ------
    ValueError
        If a type is registered already.
    """

    def decorate(target: Target) -> Target:
        for operator_type in types:
            earlier = _registrations.get(operator_type)
            if earlier is not None:
                raise ValueError(
                    f"{operator_type!r} is already registered by "
                    f"{earlier.target.__module__}.{earlier.target.__qualname__}"
                )
            _registrations[operator_type] = Registration(operator_type, target)
        return target

    return decorate


def registration(operator_type: str) -> Registration | None:
    """Look up what is registered for an operator type."""
    return _registrations.get(operator_type)


def registered_types() -> tuple[str, ...]:
    """All operator types that have a layer, sorted."""
    return tuple(sorted(_registrations))


def build_layer(call: OperatorCall) -> Layer:
    """Build the layer of an operator.

    Raises
    ------
    UnsupportedOperatorError
        If its type is not registered.
    ParameterError
        If a parameter or attribute is missing, wrong, or not known to the layer.
    """
    entry = _registrations.get(call.type)
    if entry is None:
        raise UnsupportedOperatorError(call.name, call.type, _registrations)
    return bind(entry.target, call)
