"""What the names and weights of layers tell of an operator's tensor.

Either may be wrong, as in a model with the weights of two layers exchanged. So they are weighed
against each other, and against what the reference computes from the operator's inputs.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from engine.comparison.aligning.calls import is_layer
from engine.comparison.aligning.limits import EXACT
from engine.comparison.matching import NAME, WEIGHTS
from engine.comparison.measures import relative_distance
from engine.errors import EngineError
from engine.ncnn.types import has_fused_activation

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping

    from engine.comparison.aligning.state import Sides
    from engine.comparison.aligning.structure import Structure
    from engine.runtime import RuntimeOperand, RuntimeOperator

__all__ = ["Labels", "leads_to_twin"]


class Labels:
    """Finds the tensors of layers of the same name, or of the same weights.

    Parameters
    ----------
    sides : Sides
    structure : Structure
    """

    def __init__(self, sides: Sides, structure: Structure) -> None:
        self._sides, self._structure = sides, structure
        self._matcher, self._calls = sides.matcher, structure.calls

    def evidence(self, operator: RuntimeOperator) -> Iterator[tuple[str, float, str]]:
        """Yield tensors with evidence: those of the same weights first.

        Of a layer's calls the last one counts most, such as the sum of a product and a bias.
        """
        if len(operator.outputs) != 1:
            return
        layer = self._layer_in_order(operator)
        for key in self._with_weights_in_place(operator):
            end = self._calls.end_of_layer(key, layer)
            if has_fused_activation(operator.params):
                end = self._calls.behind_activation(end)
            yield end, 3.0, WEIGHTS
        for key in self._matcher.modules(operator):
            yield key, 2.5, NAME
        for key in layer:
            is_end = self._calls.end_of_layer(key, layer) == key
            yield key, 2.5 if is_end else 2.4, NAME

    def of(self, operator: RuntimeOperator) -> set[str]:
        """Return the tensors of the module of an operator's name, or of its weights."""
        return {*self._matcher.modules(operator), *self._with_weights(operator)}

    def is_placed(self, operator: RuntimeOperator, operand: RuntimeOperand, key: str) -> bool:
        """Whether a tensor may be an operand's by more than its elements.

        Its name or weights say so, or its place in the reference's graph does.
        """
        matcher = self._matcher
        return (
            key == matcher.outputs.get(operand.name)
            or key in matcher.modules(operator)
            or key in matcher.layers(operator)
            or key in self._with_weights_in_place(operator)
            or self._structure.is_reached(operator, key)
        )

    def names_another(self, operator: RuntimeOperator, key: str) -> bool:
        """Whether an operator's weights name other tensors, such as its sum with the bias."""
        own = {each for each, _, by in self.evidence(operator) if by == WEIGHTS}
        return bool(own) and key not in own

    def is_of_twin(self, operator: RuntimeOperator, key: str) -> bool:
        """Whether a tensor is of the reference's layer that has another layer's name.

        If two of our layers take the same tensor and have each other's weights, the elements
        name the wrong one. So do those of constants with each other's numbers.
        """
        own = self._own(operator)
        if not own or key in own:
            return False
        twin = self._by_layer.get(key)
        if twin is None or _shapes_of_weights(twin) != _shapes_of_weights(operator):
            return False
        if operator.is_constant:
            return any(self._has_numbers_of(twin, each) for each in own)
        return not own.isdisjoint(self._with_weights(twin))

    def own_of_twin(self, operator: RuntimeOperator) -> str | None:
        """Return the tensor of an operator's name, for one whose elements name its twin."""
        own = sorted(self._own(operator), key=self._sides.reference.index.__getitem__)
        return self._calls.end_of_layer(own[0], own) if own else None

    def _own(self, operator: RuntimeOperator) -> frozenset[str]:
        """Return the tensors of the reference's layer or constant of an operator's name."""
        if operator.is_constant:
            return frozenset(self._matcher.modules(operator))
        return self._matcher.layers(operator)

    def _has_numbers_of(self, constant: RuntimeOperator, key: str) -> bool:
        """Whether a constant of ours is a tensor of the reference."""
        ours = self._sides.session.value(constant.outputs[0].name)
        try:
            theirs = self._sides.reference.array(key)
        except EngineError:
            return False
        if not isinstance(ours, np.ndarray) or ours.shape != theirs.shape:
            return False
        return relative_distance(ours, theirs) <= EXACT

    def _layer_in_order(self, operator: RuntimeOperator) -> list[str]:
        """Return the tensors of the reference's layer of an operator's name, in order."""
        place_of = self._sides.reference.index.__getitem__
        return sorted(self._matcher.layers(operator), key=place_of)

    @cached_property
    def _by_layer(self) -> Mapping[str, RuntimeOperator]:
        """Our layers by the tensors of the reference's of the same names."""
        return {key: o for o in self._sides.operators for key in self._own(o)}

    def _with_weights(self, operator: RuntimeOperator) -> tuple[str, ...]:
        """Return the tensors of the reference's operators with the same weights.

        A constant is none that is computed with it, as a sum with a bias is.
        """
        if not operator.has_attributes:
            return ()
        return tuple(
            key
            for each in self._matcher.anchors(operator)
            if not (operator.is_constant and each.inputs)
            for key in each.outputs
        )

    def _with_weights_in_place(self, operator: RuntimeOperator) -> tuple[str, ...]:
        """Return those of the same weights that are no other layer's.

        If our model has the weights of two layers exchanged, they name the wrong one. Then the
        reference computes a tensor of that size from our operator's inputs by another call of
        the same type.
        """
        keys = self._with_weights(operator)
        near = self._structure.below(operator) if keys else set()
        if not near:
            return keys
        rivals = {self._kind_of(key) for key in near.difference(keys)}
        return tuple(
            key
            for key in keys
            if self._kind_of(key) not in rivals
            or (key in near and not self._structure.has_more_layers(operator, key))
        )

    def _kind_of(self, key: str) -> tuple[str, tuple[int, ...] | None]:
        """Return the type of the call that gives a tensor, and the tensor's shape."""
        return self._calls.by_output[key].type, self._sides.index.shapes.get(key)


def leads_to_twin(operator: RuntimeOperator) -> bool:
    """Whether the next layer could have an operator's weights, and it that layer's.

    With the weights of the next layer an operator agrees with that one's input, too.
    """
    seen, level = set[int](), [operator]
    while level:
        below = [c for each in level for operand in each.outputs for c in operand.consumers]
        found = {each.index: each for each in below if each.index not in seen}
        layers = [each for each in found.values() if is_layer(each.type)]
        if layers:
            shapes = _shapes_of_weights(operator)
            return operator.has_attributes and shapes in map(_shapes_of_weights, layers)
        seen.update(found)
        level = list(found.values())
    return False


def _shapes_of_weights(operator: RuntimeOperator) -> Hashable:
    """Return what layers have in common that can have each other's weights."""
    return operator.type, tuple([(n, each.shape) for n, each in operator.attributes.items()])
