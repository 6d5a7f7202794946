"""Matches our operands with a reference's tensors without computing.

`engine.comparison.aligning` computes: it finds the tensor that equals our operator's result on
the reference's inputs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

from engine.comparison.layouts import SAME_LAYOUT, Layout, layouts_between
from engine.comparison.references.sessions import hash_weights, names_of_members
from engine.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.comparison.fingerprints import FingerprintIndex
    from engine.comparison.references import Reference, ReferenceOperator, WeightHash
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

_UNKNOWN: Final = -1  # size of a weight in older recordings
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

    def is_same_as(self, other: Match) -> bool:
        """Whether it is the same tensor, read in the same way."""
        return (self.key, self.layout) == (other.key, other.layout)


def _is_given(operand: RuntimeOperand) -> bool:
    return operand.producer is not None and operand.producer.is_input


def _without_ones(shape: tuple[int, ...]) -> list[int]:
    return [size for size in shape if size != 1]


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
        self._ours: dict[int, tuple[WeightHash, ...]] = {}
        self._owners_by_size: dict[tuple[int, str], dict[str, ReferenceOperator | None]] = {}

    def layout(
        self, key: str, shapes: Sequence[tuple[int, ...]]
    ) -> tuple[tuple[int, ...], Layout] | None:
        """Return the first of our shapes that a tensor has in any layout, and that layout.

        Of shapes that differ only in axes of size 1 it is the tensor's own: a sum along a wrong
        axis has another one than the file states.
        """
        theirs = self._index.shapes.get(key)
        if theirs is None:
            return None
        for ours in shapes:
            same = theirs in shapes and _without_ones(ours) == _without_ones(theirs)
            for layout in layouts_between(theirs if same else ours, theirs):
                return theirs if same else ours, layout
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
        if producer is None or producer.name not in self._operators_named:
            return None
        return producer.name if self._names_of_operators else None

    @cached_property
    def _keys_agree(self) -> bool:
        """Whether keys of arrays without a manifest are names of our operands."""
        known = self._graph.operands
        common = [key for key in self._index.shapes if key in known]
        if 2 * len(common) < len(self._index.shapes):
            return False
        fitting = sum(self._fits(self._index.shapes[key], known[key]) for key in common)
        if fitting < _TRUSTED * len(common) or fitting < len(self._operators_named):
            return False
        # As in a Sequential of layers of one size, whose names are numbers as well.
        names = {name for name, operand in self._results.items() if not _is_given(operand)}
        return not names <= self._operators_named or known.keys() <= self._index.shapes.keys()

    @cached_property
    def _results(self) -> Mapping[str, RuntimeOperand]:
        """Results of our operators that have one, by the operator's name."""
        operators = self._graph.operators
        return {each.name: each.outputs[0] for each in operators if len(each.outputs) == 1}

    @cached_property
    def _operators_named(self) -> frozenset[str]:
        """Keys that are names of our operators, of as many elements as the results."""
        return frozenset(
            key
            for key, shape in self._index.shapes.items()
            if key in self._results and self._fits(shape, self._results[key])
        )

    @cached_property
    def _names_of_operators(self) -> bool:
        """Whether tensors are arrays named like our operators."""
        return not self._reference.operators and not self._keys_agree

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

    def layers(self, operator: RuntimeOperator) -> frozenset[str]:
        """Return the outputs of calls whose weights have the names of an operator's."""
        if not operator.has_attributes:
            return frozenset()
        return self._by_weights.get(operator.name, frozenset())

    @cached_property
    def _by_weights(self) -> Mapping[str, frozenset[str]]:
        found: dict[str, frozenset[str]] = {}
        for operator in self._reference.operators:
            for path in {name.rpartition(".")[0] for name in operator.weights()} - {""}:
                found[path] = found.get(path, frozenset()).union(operator.outputs)
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
        ours = [name for o in self._graph.output_operands for name in names_of_members(o)]
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
        found = [self._owner(weight) for weight in self._weights(operator)]
        return tuple(dict.fromkeys(each for each in found if each is not None))

    def is_anchored(self, operator: RuntimeOperator, key: str) -> bool:
        """Whether a tensor is an output of one of `anchors`.

        Hashes only weights of the sizes of those that the reference's operator has.
        """
        theirs = self._producers.get(key)
        if theirs is None:
            return False
        sizes = {weight.size for weight in theirs.weights().values()}
        return any(
            self._owner(weight) is theirs
            for weight in self._weights(operator)
            if weight.size in sizes or _UNKNOWN in sizes
        )

    def _weights(self, operator: RuntimeOperator) -> tuple[WeightHash, ...]:
        """Return the hashes of an operator's weights, the largest ones first."""
        if operator.index not in self._ours:
            self._ours[operator.index] = _hashes(operator)
        return self._ours[operator.index]

    def _owner(self, weight: WeightHash) -> ReferenceOperator | None:
        """Return the one operator of the reference with a weight, maybe rounded to float16.

        Rounds and hashes ours only if the reference has no equal one: it takes longer than
        anything else about it.
        """
        size = weight.size
        if size not in self._by_size and _UNKNOWN not in self._by_size:
            return None
        exact = self._owners(size, "float32")
        if weight.float32 in exact:
            return exact[weight.float32]
        rounded = weight.float16
        return self._owners(size, "float16").get(rounded) or self._owners(size, "pnnx").get(
            rounded
        )

    def _owners(
        self, size: int, precision: Literal["float32", "float16", "pnnx"]
    ) -> Mapping[str, ReferenceOperator | None]:
        """Return the operators with weights of a size by hash; None if several have it."""
        known = self._owners_by_size.get((size, precision))
        if known is None:
            known = self._owners_by_size[size, precision] = {}
            for weight, operator in (
                *self._by_size.get(size, ()), *self._by_size.get(_UNKNOWN, ())
            ):  # fmt: skip
                text = getattr(weight, precision)
                known[text] = operator if known.get(text, operator) is operator else None
        return known

    @cached_property
    def _by_size(self) -> Mapping[int, list[tuple[WeightHash, ReferenceOperator]]]:
        """The reference's weights by size."""
        found: dict[int, list[tuple[WeightHash, ReferenceOperator]]] = {}
        for operator in self._reference.operators:
            for weight in operator.weights().values():
                found.setdefault(weight.size, []).append((weight, operator))
        return found

    @cached_property
    def _producers(self) -> Mapping[str, ReferenceOperator]:
        """The reference's operators by the keys of their outputs."""
        calls = self._reference.operators
        return {key: call for call in reversed(calls) for key in call.outputs}


def _hashes(operator: RuntimeOperator) -> tuple[WeightHash, ...]:
    if not operator.has_attributes:
        return ()
    try:
        hashes = hash_weights(operator).values()
    except EngineError:  # the operator reports the error when it runs
        return ()
    return tuple(sorted(hashes, key=lambda weight: -weight.size))
