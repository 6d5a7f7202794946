"""Finds module inputs that repeat one of the module's own weights.

Two modules may share (tie) a weight, as the head and the embedding of a language model do. pnnx
then writes the weight three times: once per module, and once as a ``pnnx.Attribute``. It passes
the attribute to the second module, before the module's own input. PyTorch's module has no such
argument.
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

# For these types pnnx replaces the module's input by the weight.
_INPUT_REPLACED: Final = ("nn.ConvTranspose1d", "nn.ConvTranspose2d", "nn.ConvTranspose3d")


def find_tied_inputs(graph: Graph, operators: Sequence[Operator]) -> dict[str, frozenset[int]]:
    """Find inputs that repeat a weight of their operator.

    This reads no weights. Weights of equal shape and dtype count as equal if their checksums in
    the directory of the ``.bin`` are equal, or if there are no checksums.

    Parameters
    ----------
    graph : Graph
        The graph of the file.
    operators : sequence of Operator
        Operators of the graph.

    Returns
    -------
    dict of str to frozenset of int
        Input indices by operator name. An operator keeps at least one input, unless pnnx is
        known to replace the input of its type.
    """
    found: dict[str, frozenset[int]] = {}
    checksum_of: Mapping[str, int] | None = None
    for operator in operators:
        if not operator.attrs or not operator.type.startswith("nn."):
            continue
        if len(operator.inputs) < 2 and operator.type not in _INPUT_REPLACED:
            continue
        if checksum_of is None:
            archive = graph.archive
            checksum_of = checksums(archive.directory) if archive is not None else {}
        indices = _find_tied_indices(operator, checksum_of)
        if indices:
            found[operator.name] = indices
    return found


def _find_tied_indices(operator: Operator, checksum_of: Mapping[str, int]) -> frozenset[int]:
    least = 0 if operator.type in _INPUT_REPLACED else 1
    indices: list[int] = []
    for index, operand in enumerate(operator.inputs):
        remaining = len(operator.inputs) - len(indices)
        if remaining > least and _repeats_weight(operand, operator, checksum_of):
            indices.append(index)
    return frozenset(indices)


def _repeats_weight(
    operand: Operand, operator: Operator, checksum_of: Mapping[str, int]
) -> bool:
    """Return whether an input is equal to a weight of the operator."""
    producer = operand.producer
    if producer is None or producer.type != _WEIGHT_TYPE or _WEIGHT_KEY not in producer.attrs:
        return False
    data = producer.attrs[_WEIGHT_KEY]
    checksum = checksum_of.get(f"{producer.name}.{_WEIGHT_KEY}")
    return any(
        (own.shape, own.dtype) == (data.shape, data.dtype)
        and checksum_of.get(f"{operator.name}.{key}") == checksum
        for key, own in operator.attrs.items()
    )
