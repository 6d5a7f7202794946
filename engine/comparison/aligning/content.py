"""Matches a result with the tensor of the reference that has its elements.

Several tensors may have them, and one that is only near may be another's. Then names, weights
and places decide.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.comparison.aligning.calls import COPY
from engine.comparison.aligning.limits import (
    ALIKE,
    CLEARLY,
    CONFIRMING,
    EXACT,
    NEAR,
    ROUNDED,
)
from engine.comparison.aligning.state import Reading
from engine.comparison.fingerprints import is_telling
from engine.comparison.layouts import layouts_between
from engine.comparison.matching import CONTENT, NAME, OUTPUT, WEIGHTS, Match
from engine.comparison.measures import relative_distance
from engine.cost import is_free

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.comparison.aligning.tools import Tools
    from engine.comparison.fingerprints import Similar
    from engine.comparison.layouts import Layout
    from engine.runtime import RuntimeOperand, RuntimeOperator
    from engine.values import Array

__all__ = ["Content"]

_IMAGE: Final = 3  # axes: channels, rows and columns
_ROUNDING: Final = EXACT / 10  # what rounding to float32 reaches


class Content:
    """Finds tensors by their elements.

    Parameters
    ----------
    tools : Tools
    """

    def __init__(self, tools: Tools) -> None:
        self._index, self._matcher = tools.sides.index, tools.sides.matcher
        self._reference, self._state = tools.sides.reference, tools.state
        self._values, self._structure, self._labels = (
            tools.values,
            tools.structure,
            tools.labels,
        )

    def match_of(
        self, operator: RuntimeOperator, operand: RuntimeOperand, result: Array
    ) -> Match | None:
        """Return the match with the tensor that has a result's elements; None for none.

        What was computed from unconfirmed stand-ins may differ only by rounding.
        """
        similar, inputs = self._similar(operator, operand, result)
        # An operator that permutes has the elements of its input, too.
        unchanged = min([i.distance for i in inputs if not i.layout.axes], default=np.inf)
        if not similar or CLEARLY * unchanged <= similar[0].distance:
            return None
        if similar[0].distance <= EXACT:
            if _is_as_near(inputs, similar[0].distance):
                return None
            return self._match_equal(operator, operand, result, similar)
        waiting = self._state.waiting_for(operator)
        limit = self._values.rounding_of(operator, waiting)
        if operator.is_constant or (waiting and similar[0].distance > limit):
            return None
        found = self._match_alike(operator, operand, similar, unchanged)
        if found is None:
            return None
        return replace(found, layout=self._layout_of(operator, result.shape, similar[0]))

    def repeated_by(
        self, operator: RuntimeOperator, operand: RuntimeOperand, result: Array
    ) -> Reading | None:
        """Return the input that a result is equal to; None for none."""
        own = self._state.inputs_of(operator)
        for similar in self._index.similar(result, EXACT):
            if similar.key in own and self._is_whole(operator, operand, result, similar):
                return Reading(similar.key, result.shape, similar.layout)
        return None

    def _is_whole(
        self,
        operator: RuntimeOperator,
        operand: RuntimeOperand,
        result: Array,
        similar: Similar,
    ) -> bool:
        """Whether no element tells a result from its input, if those of the fingerprint do not.

        A clamp may change a few elements in thousands.
        """
        if similar.distance > EXACT or operator.type == COPY or is_free(operator.type):
            return True
        distance = self._distance(operand, result, similar)
        return distance is None or distance <= CONFIRMING

    def _distance(
        self, operand: RuntimeOperand, result: Array, similar: Similar
    ) -> float | None:
        """Return the relative distance of all elements; None if the tensor cannot be read."""
        reading = Reading(similar.key, result.shape, similar.layout)
        theirs = self._values.read(operand.name, reading)
        return None if theirs is None else relative_distance(result, theirs)

    def _similar(
        self, operator: RuntimeOperator, operand: RuntimeOperand, result: Array
    ) -> tuple[list[Similar], list[Similar]]:
        """Return the tensors like a result, those of its inputs apart.

        An operator that changes little has a result like its own input. What is not clearly
        nearer than that is no match.
        """
        own = self._state.inputs_of(operator)
        similar = self._index.similar(result, NEAR)
        found = [each for each in similar if each.key in own]
        if found:
            similar = self._index.similar(result, NEAR, own)
        inputs = [i for i in found if self._is_whole(operator, operand, result, i)]
        apart = {i.key for i in found} - {i.key for i in inputs}
        similar = [
            each
            for each in similar
            if not any(self._index.equal(each.key, key) for key in own if key not in apart)
        ]
        return similar, inputs

    def _match_alike(
        self,
        operator: RuntimeOperator,
        operand: RuntimeOperand,
        similar: Sequence[Similar],
        unchanged: float,
    ) -> Match | None:
        """Match the one tensor that is near, if its place fits too."""
        best = similar[0]
        rivals = [s.distance for s in similar if not self._index.equal(s.key, best.key)]
        if min([unchanged, *rivals]) < CLEARLY * best.distance or best.unlike > ALIKE:
            return None
        if not self._labels.is_placed(operator, operand, best.key):
            return None
        if self._labels.names_another(operator, best.key):
            return None
        if self._structure.givers(best.key, operand.name):
            return None
        return Match(best.key, CONTENT, 0.6, best.layout)

    def _layout_of(
        self, operator: RuntimeOperator, shape: tuple[int, ...], similar: Similar
    ) -> Layout:
        """Return the layout of a tensor that is near, as which it may seem to be exchanged.

        A kernel that is stored transposed gives nearly that, where its input hardly varies. A
        layer with weights exchanges no axes of an image that its input has in order.
        """
        layout = similar.layout
        if len(layout.axes) < _IMAGE or similar.distance <= ROUNDED:
            return layout
        readings = [self._state.reading_of(each.name) for each in operator.inputs]
        is_exchanged = any(each is not None and each.layout.axes for each in readings)
        theirs = self._index.shapes[similar.key]
        if not operator.has_attributes or is_exchanged or theirs is None:
            return layout
        plain = next(layouts_between(shape, theirs))
        return layout if plain.axes else plain

    def _match_equal(
        self,
        operator: RuntimeOperator,
        operand: RuntimeOperand,
        result: Array,
        similar: Sequence[Similar],
    ) -> Match | None:
        """Match the likeliest of the tensors that are equal up to rounding."""
        bound = max(_ROUNDING, CLEARLY * similar[0].distance)
        equal = [each for each in similar if each.distance <= bound]
        if not is_telling(result):
            equal = [e for e in equal if self._is_equal_constant(operator, operand, result, e)]
        if not equal:
            return None
        if any(self._labels.is_of_twin(operator, each.key) for each in equal):
            own = self._values.fit(self._labels.own_of_twin(operator), operand, result)
            return own.match(NAME, 0.9) if own is not None else None
        chosen = self._likeliest(operator, operand, equal)
        unique = all(self._index.equal(each.key, equal[0].key) for each in equal)
        matched_by, confidence = CONTENT, 0.9 if unique else 0.5
        if self._matcher.is_anchored(operator, chosen.key):
            matched_by, confidence = WEIGHTS, 0.95
        elif chosen.key == self._matcher.outputs.get(operand.name):
            matched_by, confidence = OUTPUT, 0.95
        elif chosen.key in self._matcher.modules(operator):
            matched_by, confidence = NAME, 0.95
        return Match(chosen.key, matched_by, confidence, chosen.layout)

    def _is_equal_constant(
        self,
        operator: RuntimeOperator,
        operand: RuntimeOperand,
        result: Array,
        similar: Similar,
    ) -> bool:
        """Whether a tensor is ours, though its fingerprint is that of a constant.

        All elements must agree, and more than the elements must say so.
        """
        if not self._labels.is_placed(operator, operand, similar.key):
            return False
        distance = self._distance(operand, result, similar)
        return distance is not None and distance < CONFIRMING

    def _likeliest(
        self, operator: RuntimeOperator, operand: RuntimeOperand, similar: Sequence[Similar]
    ) -> Similar:
        """Choose among tensors with the same elements."""
        if len(similar) == 1:
            return similar[0]
        named = self._labels.of(operator)
        pinned = self._matcher.outputs.get(operand.name)

        def rank(each: Similar) -> tuple[bool, bool, bool, bool, int]:
            return (
                each.key != pinned,
                each.key not in named,
                each.key in self._state.taken,
                not self._structure.is_behind(operator, each.key),
                self._reference.index[each.key],
            )

        return min(similar, key=rank)


def _is_as_near(inputs: Sequence[Similar], distance: float) -> bool:
    """Whether inputs are about as near as a tensor that differs by more than rounding.

    Where the branch of a residual block adds little, all sums in a row are alike.
    """
    nearest = min([each.distance for each in inputs], default=np.inf)
    return distance > max(_ROUNDING, nearest / CLEARLY)
