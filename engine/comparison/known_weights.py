"""The reference's weights of our operators, or which of them differ."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Final

from engine.comparison.references.sessions import hash_weights
from engine.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.comparison.references import Reference, ReferenceOperator
    from engine.runtime import RuntimeOperand, RuntimeOperator
    from engine.values import Array

__all__ = ["KnownWeights"]

_MOST_ABOVE: Final = 3  # operators without weights
_WORD: Final = re.compile(r"[a-z_]+")
_PRODUCTS: Final = ("mm", "gemm", "matmul", "innerproduct")  # what computes a linear layer


class KnownWeights:
    """Finds the reference's weights of our operators.

    Parameters
    ----------
    reference : Reference
    key_of : callable
        Returns the key of the tensor that an operand is matched with; None for none.
    """

    def __init__(
        self, reference: Reference, key_of: Callable[[RuntimeOperand], str | None]
    ) -> None:
        self._reference, self._key_of = reference, key_of

    def arrays(self, operator: RuntimeOperator) -> Mapping[str, Array]:
        """Return the reference's weights of an operator, by our names; empty if unknown.

        They are those of another model's operator, or arrays named like ours:
        ``layer1.conv.weight``.
        """
        theirs = self._counterpart(operator)
        names = operator.attributes
        try:
            if theirs is not None:
                found = theirs.arrays()
                if found:
                    return {name: found[_named(name, found)] for name in names}
            keys = {name: f"{operator.name}.{name}" for name in names}
            known = self._reference.by_key
            return {n: self._reference.array(k) for n, k in keys.items() if k in known}
        except EngineError:
            return {}

    def differing(self, operator: RuntimeOperator) -> frozenset[str] | None:
        """Return the names of the weights that differ; None if it is unknown."""
        theirs = self._counterpart(operator)
        if theirs is None:
            return None
        try:
            ours, others = hash_weights(operator), theirs.weights()
        except EngineError:
            return None
        if not others:
            return None
        return frozenset(
            name
            for name, each in ours.items()
            if others[_named(name, others)].float32 != each.float32
        )

    def of_producer(self, operand: RuntimeOperand) -> Mapping[str, Array]:
        """Return the weights of what gives the tensor of an operand, by the reference's names.

        They are of the nearest operator that has some, where others without any follow it, such
        as an activation. Empty if they are unknown.
        """
        theirs = self._by_output.get(self._key_of(operand))
        try:
            for _ in range(_MOST_ABOVE):
                if theirs is None or len(theirs.inputs) != 1 or theirs.weights():
                    break
                theirs = self._by_output.get(theirs.inputs[0])
            return theirs.arrays() if theirs is not None else {}
        except EngineError:
            return {}

    def _counterpart(self, operator: RuntimeOperator) -> ReferenceOperator | None:
        """Return the reference's operator with the same weights' names and kind."""
        if not operator.has_attributes:
            return None
        keys = [self._key_of(operand) for operand in operator.outputs]
        producers = [self._by_output[key] for key in keys if key in self._by_output]
        for theirs in (*producers, self._by_name.get(operator.name)):
            if theirs is not None and _is_same_kind(operator, theirs):
                return theirs
        return None

    @cached_property
    def _by_output(self) -> Mapping[str | None, ReferenceOperator]:
        return {key: each for each in self._reference.operators for key in each.outputs}

    @cached_property
    def _by_name(self) -> Mapping[str, ReferenceOperator]:
        return {each.name: each for each in self._reference.operators}


def _is_same_kind(ours: RuntimeOperator, theirs: ReferenceOperator) -> bool:
    """Whether two operators have the same kind, and weights of the same names."""
    word = _WORD.match(ours.type.rpartition(".")[2].lower())
    kind = theirs.type.lower()
    if word is None:
        return False
    linear = word[0] == "linear" and any(each in kind for each in _PRODUCTS)
    if not linear and word[0].rstrip("d_") not in kind:
        return False
    try:
        names = theirs.weights()
    except EngineError:
        return False
    found = {_named(name, names) for name in ours.attributes}
    return "" not in found and len(found) == len(names)


def _named(name: str, theirs: Mapping[str, object]) -> str:
    """Return the reference's name of a weight: ours, perhaps with a path before; or ``""``."""
    fitting = [each for each in theirs if each == name or each.endswith(f".{name}")]
    return fitting[0] if len(fitting) == 1 else ""
