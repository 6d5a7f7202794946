"""Which inputs of a module only repeat a weight that it has anyway.

Two modules may share a weight, as the head of a language model and its embedding do. pnnx
then writes the weight three times: for each of the modules, and as a ``pnnx.Attribute``, which
the second one takes in front of its own input. PyTorch's module has no such argument.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.pnnx.archive import checksums

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.pnnx import Graph, Operand, Operator

__all__ = ["NONE", "find_tied_inputs"]

NONE: Final[frozenset[int]] = frozenset()

_WEIGHT_TYPE: Final = "pnnx.Attribute"
_WEIGHT_KEY: Final = "data"

# For these pnnx writes the weight in the place of what the module takes, not in front of it.
_LOSING: Final = ("nn.ConvTranspose1d", "nn.ConvTranspose2d", "nn.ConvTranspose3d")


def find_tied_inputs(graph: Graph, operators: Sequence[Operator]) -> dict[str, frozenset[int]]:
    """Find inputs that repeat a weight of their operator.

    Weights are not read: those of equal shape and dtype are compared by the checksums in the
    directory of the ``.bin``, or are taken to be equal where it has none.

    Parameters
    ----------
    graph : Graph
        Of the file.
    operators : sequence of Operator
        Its operators.

    Returns
    -------
    dict of str to frozenset of int
        Places of such inputs by the operator's name. An operator keeps one input at least,
        unless its type is known to lose what it takes.
    """
    found: dict[str, frozenset[int]] = {}
    stated: Mapping[str, int] | None = None
    for operator in operators:
        if not operator.attrs or not operator.type.startswith("nn."):
            continue
        if len(operator.inputs) < 2 and operator.type not in _LOSING:
            continue
        if stated is None:
            stated = checksums(graph.archive.directory) if graph.archive is not None else {}
        places = _tied_places(operator, stated)
        if places:
            found[operator.name] = places
    return found


def _tied_places(operator: Operator, stated: Mapping[str, int]) -> frozenset[int]:
    kept = 0 if operator.type in _LOSING else 1
    places: list[int] = []
    for place, operand in enumerate(operator.inputs):
        if len(operator.inputs) - len(places) > kept and _repeats(operand, operator, stated):
            places.append(place)
    return frozenset(places)


def _repeats(operand: Operand, operator: Operator, stated: Mapping[str, int]) -> bool:
    """Whether an input holds what a weight of the operator does."""
    producer = operand.producer
    if producer is None or producer.type != _WEIGHT_TYPE or _WEIGHT_KEY not in producer.attrs:
        return False
    data = producer.attrs[_WEIGHT_KEY]
    checksum = stated.get(f"{producer.name}.{_WEIGHT_KEY}")
    return any(
        (own.shape, own.dtype) == (data.shape, data.dtype)
        and stated.get(f"{operator.name}.{key}") == checksum
        for key, own in operator.attrs.items()
    )
