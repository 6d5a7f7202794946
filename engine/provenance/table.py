"""The tables from the code of an operator to its rules.

`explains` registers a function that breaks one element down to its terms. `locates` registers
one that returns, for a region of an output, the regions of the inputs that it depends on.
`passes_back` registers one that returns, for the gradient by an output, those by the inputs.
`moves` registers code that only moves elements: all of this follows from running it on the
numbers of the elements (see `engine.provenance.rules.moving`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from engine.layers.binding import code_of
from engine.layers.registry import registration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.layers import Layer
    from engine.provenance.call import Call
    from engine.provenance.records import Box, Breakdown
    from engine.provenance.slopes import Gradient

__all__ = [
    "Backward",
    "Explain",
    "Locate",
    "codes_of",
    "explains",
    "find_explanation",
    "find_gradient",
    "find_location",
    "find_moved",
    "locates",
    "moves",
    "passes_back",
]

Explain: TypeAlias = "Callable[[Call, tuple[int, ...]], Breakdown]"
Locate: TypeAlias = "Callable[[Call, Box], Mapping[str, Box]]"
"""From a region to regions by operand; an operand that is missing has no influence."""
Backward: TypeAlias = "Callable[[Call, Gradient], Mapping[str, Gradient]]"
"""From the gradient by an output to those by operands; a missing one has no influence."""
Code: TypeAlias = "Callable[..., Any]"
Rule = TypeVar("Rule", bound="Callable[..., Any]")

_EXPLANATIONS: Final[dict[Code, Explain]] = {}
_LOCATIONS: Final[dict[Code, Locate]] = {}
_GRADIENTS: Final[dict[Code, Backward]] = {}
_MOVED: Final[dict[Code, tuple[str, ...]]] = {}


def codes_of(*types: str) -> tuple[Code, ...]:
    """Return the engine's own code of operator types that are registered from a table."""
    found = [registration(each) for each in types]
    return tuple([each.target for each in found if each is not None and each.file is None])


def explains(*codes: Code) -> Callable[[Rule], Rule]:
    """Register a rule that breaks an element down."""

    def decorate(rule: Rule) -> Rule:
        _EXPLANATIONS.update(dict.fromkeys(codes, rule))
        return rule

    return decorate


def locates(*codes: Code) -> Callable[[Rule], Rule]:
    """Register a rule that finds regions of the inputs."""

    def decorate(rule: Rule) -> Rule:
        _LOCATIONS.update(dict.fromkeys(codes, rule))
        return rule

    return decorate


def passes_back(*codes: Code) -> Callable[[Rule], Rule]:
    """Register a rule that takes a gradient back to the inputs."""

    def decorate(rule: Rule) -> Rule:
        _GRADIENTS.update(dict.fromkeys(codes, rule))
        return rule

    return decorate


def moves(*codes: Code, arguments: tuple[str, ...] = ()) -> None:
    """Register code that only moves elements.

    Parameters
    ----------
    *codes : callable
    arguments : tuple of str
        The arguments whose elements are moved; by default every operand.
    """
    _MOVED.update(dict.fromkeys(codes, arguments))


def find_explanation(layer: Layer) -> Explain | None:
    """Return the rule that breaks an element down, or None."""
    return _EXPLANATIONS.get(code_of(layer))


def find_location(layer: Layer) -> Locate | None:
    """Return the rule that finds regions, or None."""
    return _LOCATIONS.get(code_of(layer))


def find_gradient(layer: Layer) -> Backward | None:
    """Return the rule that takes a gradient back, or None."""
    return _GRADIENTS.get(code_of(layer))


def find_moved(layer: Layer) -> tuple[str, ...] | None:
    """Return the arguments whose elements are moved, empty for all; None if it does more."""
    return _MOVED.get(code_of(layer))
