"""Matches our operands with a reference's tensors without computing.

`engine.comparison.alignment` computes: it finds the tensor that equals our operator's result on
the reference's inputs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from engine.comparison.layouts import SAME_LAYOUT, Layout, layouts_between
from engine.comparison.references.sessions import LISTS, hash_weights
from engine.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.comparison.fingerprints import FingerprintIndex
    from engine.comparison.references import Reference, ReferenceOperator
    from engine.runtime import RuntimeGraph, RuntimeOperand, RuntimeOperator

__all__ = [
    "ALIGNMENT",
    "CONTENT",
    "HAND",
    "INPUT",
    "NAME",
    "OUTPUT",
    "WEIGHTS",
    "Match",
    "Matcher",
]

HAND: Final = "hand"
NAME: Final = "name"
INPUT: Final = "input"
OUTPUT: Final = "output"
WEIGHTS: Final = "weights"
CONTENT: Final = "content"
ALIGNMENT: Final = "alignment"

_TRUSTED: Final = 0.8  # share of the equal names whose sizes must agree too


@dataclass(frozen=True, slots=True)
class Match:
    """The reference's tensor that matches one of our operands.

    Attributes
    ----------
    key : str
        Of the reference's tensor.
    matched_by : str
        ``hand``, ``name``, ``input``, ``output``, ``weights``, ``content`` or ``alignment``.
    confidence : float
        0 to 1.
    layout : Layout
    """

    key: str
    matched_by: str
    confidence: float
    layout: Layout = SAME_LAYOUT


class Matcher:
    """Matches by hand, name, position and weights.

    Parameters
    ----------
    graph : RuntimeGraph
    reference : Reference
    index : FingerprintIndex
        Of the reference.
    corrections : mapping of str to str or None
        By operand, the key of the tensor, or None for an operand that has none.
    """

    def __init__(
        self,
        graph: RuntimeGraph,
        reference: Reference,
        index: FingerprintIndex,
        corrections: Mapping[str, str | None],
    ) -> None:
        self._graph, self._reference, self._index = graph, reference, index
        self._corrections = corrections

    def layout(
        self, key: str, shapes: Sequence[tuple[int, ...]]
    ) -> tuple[tuple[int, ...], Layout] | None:
        """Return the first of our shapes that a tensor has in any layout, and that layout."""
        theirs = self._index.shapes.get(key)
        if theirs is None:
            return None
        for ours in shapes:
            for layout in layouts_between(ours, theirs):
                return ours, layout
        return None

    def is_corrected(self, operand: str) -> bool:
        """Whether the user matched an operand by hand, or marked it as unmatched."""
        return operand in self._corrections

    def corrected(self, operand: str) -> str | None:
        """Return the tensor that the user matched by hand; None for none."""
        return self._corrections.get(operand)

    def named(self, operand: RuntimeOperand) -> str | None:
        """Return the tensor of the same name, if names mean the same in both models."""
        name, producer = operand.name, operand.producer
        tensor = self._reference.by_key.get(name)
        if tensor is not None and name in self._index.shapes and producer is not None:
            same = tensor.operator == producer.name if tensor.operator else self._keys_agree
            if same:
                return name
        if producer is None or len(producer.outputs) != 1 or not self._names_of_operators:
            return None
        return self._by_operator.get(producer.name)

    @cached_property
    def _keys_agree(self) -> bool:
        """Whether keys of arrays without a manifest are names of our operands."""
        known = self._graph.operands
        common = [key for key in self._index.shapes if key in known]
        if 2 * len(common) < len(self._index.shapes):
            return False
        fitting = sum(self._fits(self._index.shapes[key], known[key]) for key in common)
        return fitting >= _TRUSTED * len(common)

    @cached_property
    def _names_of_operators(self) -> bool:
        """Whether tensors are arrays named like our operators."""
        return not self._reference.operators

    @cached_property
    def _by_operator(self) -> Mapping[str, str]:
        names = {operator.name for operator in self._graph.operators}
        return (
            {
                tensor.key: tensor.key
                for tensor in self._reference.tensors
                if tensor.key in names
                and tensor.key in self._index.shapes
                and self._fits(
                    self._index.shapes[tensor.key],
                    self._graph.operator(tensor.key).outputs[0],
                )
            }
            if not self._keys_agree
            else {}
        )

    @staticmethod
    def _fits(shape: tuple[int, ...], operand: RuntimeOperand) -> bool:
        """Whether a shape fits an operand."""
        ours = operand.shape
        if ours is None or not all(isinstance(size, int) for size in ours):
            return True
        return math.prod(shape) == math.prod(size for size in ours if isinstance(size, int))

    def modules(self, operator: RuntimeOperator) -> tuple[str, ...]:
        """Return the outputs of the module that has an operator's name, in order."""
        return self._by_module.get(operator.name, ())

    @cached_property
    def _by_module(self) -> Mapping[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for tensor in self._reference.tensors:
            for name in tensor.names:
                found[name] = (*found.get(name, ()), tensor.key)
        return found

    # Positions

    @cached_property
    def inputs(self) -> Mapping[str, str]:
        """Tensors of the model's inputs, by operand."""
        return self._by_position(
            [operand.name for operand in self._graph.input_operands], self._reference.inputs
        )

    @cached_property
    def outputs(self) -> Mapping[str, str]:
        """Tensors of the model's outputs, by operand."""
        ours = [name for o in self._graph.output_operands for name in _members(o)]
        return self._by_position(ours, self._reference.outputs)

    def _by_position(self, ours: Sequence[str], theirs: Sequence[str]) -> dict[str, str]:
        readable = [key for key in theirs if key in self._index.shapes]
        if len(ours) == len(readable):
            return dict(zip(ours, readable, strict=True))
        return {name: name for name in ours if name in readable}

    # Weights

    def anchors(self, operator: RuntimeOperator) -> tuple[ReferenceOperator, ...]:
        """Return the reference's operators with the same weights as one of our operators.

        Only weights that occur once in each model count.
        """
        found = [
            theirs
            for hashes in _hashes(operator)
            for theirs in (self._by_weight.get(hashes[0]) or self._by_weight.get(hashes[1]),)
            if theirs is not None
        ]
        return tuple(dict.fromkeys(found))

    @cached_property
    def _by_weight(self) -> Mapping[str, ReferenceOperator | None]:
        """Operators of the reference by the hash of a weight; None if several have it."""
        found: dict[str, ReferenceOperator | None] = {}
        for operator in self._reference.operators:
            for hashes in operator.weights().values():
                for text in (hashes.float32, hashes.float16):
                    known = found.get(text, operator)
                    found[text] = operator if known is operator else None
        return found

    def same_when_rounded(self, operator: RuntimeOperator) -> bool:
        """Whether the reference has our weights only rounded to float16."""
        rounded = [
            (exact in self._by_weight, half in self._by_weight)
            for exact, half in _hashes(operator)
        ]
        return any(half for _, half in rounded) and not any(exact for exact, _ in rounded)


def _hashes(operator: RuntimeOperator) -> list[tuple[str, str]]:
    """Return the hashes of an operator's weights, exact and rounded, the largest ones first."""
    if not operator.has_attributes:
        return []
    sizes = {key: attribute.size for key, attribute in operator.attributes.items()}
    try:
        hashes = hash_weights(operator)
    except EngineError:  # the operator reports the error when it runs
        return []
    ordered = sorted(hashes.items(), key=lambda item: -sizes[item[0]])
    return [(each.float32, each.float16) for _, each in ordered]


def _members(operand: RuntimeOperand) -> list[str]:
    producer = operand.producer
    if producer is None or producer.type not in LISTS:
        return [operand.name]
    return [name for each in producer.inputs for name in _members(each)]
