"""Goes on behind operators of ours that nothing can be computed of.

pnnx leaves operators in a file of ncnn that ncnn lacks, and a model may have layers that nobody
has written. What reads their results waits for values that the reference may have. A tensor is
the missing input of an operator if the operator then gives the tensor that the reference
computes from it: one with the same weights, or one that is matched already.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.comparison.aligning.elements import varies
from engine.comparison.aligning.limits import AHEAD, ROUNDED
from engine.comparison.matching import ALIGNMENT
from engine.comparison.measures import relative_distance

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from engine.comparison.aligning.state import Reading
    from engine.comparison.aligning.tools import Tools
    from engine.comparison.aligning.walk import Walk
    from engine.runtime import RuntimeOperand, RuntimeOperator
    from engine.values import Value

__all__ = ["Resuming"]

_CONFIDENCE: Final = 0.8


class Resuming:
    """Finds the missing inputs of operators that our run could not compute either.

    Parameters
    ----------
    tools : Tools
    walk : Walk
    """

    def __init__(self, tools: Tools, walk: Walk) -> None:
        self._sides, self._state, self._values = tools.sides, tools.state, tools.values
        self._calls, self._matches, self._walk = tools.structure.calls, tools.matches, walk

    def resume(self, progress: Callable[[int, int], None] | None) -> bool:
        """Match missing inputs until no more are found; return whether there were some."""
        if not self._state.blocked or not self._sides.reference.operators:
            return False
        found = False
        while self._step(progress):
            found = True
        return found

    def _step(self, progress: Callable[[int, int], None] | None) -> bool:
        """Find inputs by weights and by matched tensors; where that ends, by weights alone."""
        operators = self._sides.operators
        found = self._adopt_all(self._find_by_weights, operators, progress)
        found |= self._adopt_all(self._find_by_result, tuple(reversed(operators)), progress)
        return found or self._adopt_all(self._find_of_wrong, operators, progress)

    def _adopt_all(
        self,
        find: Callable[[RuntimeOperator, RuntimeOperand], Reading | None],
        operators: Sequence[RuntimeOperator],
        progress: Callable[[int, int], None] | None,
    ) -> bool:
        adopted: set[str] = set()
        for operator in operators:
            if operator.index not in self._state.blocked:
                continue
            if progress is not None:
                progress(operator.index, len(operators))
            missing = self._missing(operator)
            if missing is not None and (reading := find(operator, missing)) is not None:
                match = reading.match(ALIGNMENT, _CONFIDENCE)
                self._matches.adopt(missing.name, match, reading.shape)
                adopted.add(missing.name)
        self._walk.refresh(adopted)
        return bool(adopted)

    def _missing(self, operator: RuntimeOperator) -> RuntimeOperand | None:
        """Return the one input that neither our run nor the walk knows; None for others."""
        if operator.error is not None or operator.random or operator.is_output:
            return None
        state, session = self._state, self._sides.session
        unknown = {
            operand.name: operand
            for operand in operator.inputs
            if not state.is_matched(operand.name) and operand.name not in state.stand_ins
        }
        if len(unknown) != 1:
            return None
        ((name, operand),) = unknown.items()
        return operand if not session.has_value(name) else None

    # By weights

    def _find_by_weights(
        self, operator: RuntimeOperator, missing: RuntimeOperand
    ) -> Reading | None:
        """Return the input of a call with an operator's weights, if it gives its tensor."""
        for call in self._sides.matcher.anchors(operator):
            ends = {*call.outputs} | self._calls.near(call.outputs, AHEAD)
            for reading in self._readings(call.inputs):
                (result, *_), _ = self._compute(operator, missing, reading)
                if self._is_one_of(result, ends):
                    return reading
        return None

    def _find_of_wrong(
        self, operator: RuntimeOperator, missing: RuntimeOperand
    ) -> Reading | None:
        """Return the input of a call with an operator's weights, though the results differ."""
        shapes = self._sides.index.shapes
        for call in self._sides.matcher.anchors(operator):
            sizes = {math.prod(shapes[key]) for key in call.outputs if key in shapes}
            for reading in self._readings(call.inputs):
                (result, *_), _ = self._compute(operator, missing, reading)
                if isinstance(result, np.ndarray) and result.size in sizes:
                    return reading
        return None

    def _is_one_of(self, result: Value, keys: Collection[str]) -> bool:
        if not isinstance(result, np.ndarray) or not varies(result):
            return False
        similar = self._sides.index.similar(result, ROUNDED)
        return any(each.key in keys for each in similar)

    # By what follows

    def _find_by_result(
        self, operator: RuntimeOperator, missing: RuntimeOperand
    ) -> Reading | None:
        """Return the tensor from which an operator gives one that it is matched with."""
        for place, operand in enumerate(operator.outputs):
            end = self._state.reading_of(operand.name)
            theirs = self._values.read(operand.name, end) if end is not None else None
            if end is None or theirs is None or not varies(theirs):
                continue
            for reading in self._readings(self._above(end.key)):
                results, _ = self._compute(operator, missing, reading)
                result = results[place]
                if not isinstance(result, np.ndarray) or result.shape != theirs.shape:
                    continue
                if relative_distance(result, theirs) <= ROUNDED:
                    return reading
        return None

    def _above(self, key: str) -> list[str]:
        """Return the tensors that one is computed from, the nearest first, and itself.

        Itself stands behind its direct inputs: a copy gives it again, but so may an operator
        of the reference that happens to change nothing.
        """
        found: dict[str, None] = {}
        level = [key]
        for _ in range(AHEAD):
            calls = [self._calls.by_output.get(each) for each in level]
            level = [each for call in calls if call is not None for each in call.inputs]
            found |= dict.fromkeys(level)
            found.setdefault(key)
        return list(found)

    # Both

    def _readings(self, keys: Iterable[str]) -> Iterator[Reading]:
        """Yield how tensors may be read where our shape is unknown.

        As the reference has them, without a batch, and as a matrix of rows.
        """
        for key in keys:
            theirs = self._sides.index.shapes.get(key)
            if theirs is None or self._sides.reference.by_key[key].role == "constant":
                continue
            unbatched = theirs[1:] if theirs[:1] == (1,) else theirs
            shapes = [unbatched, theirs] if self._lacks_batch() else [theirs, unbatched]
            if len(theirs) > 1:
                shapes.append((math.prod(theirs[:-1]), theirs[-1]))
            for shape in dict.fromkeys(shapes):
                reading = self._sides.fit(key, [shape])
                if reading is not None and not reading.layout.axes:
                    yield reading

    def _lacks_batch(self) -> bool:
        """Whether our tensors lack a batch axis that the reference's have."""
        result, shapes = self._state.result, self._sides.index.shapes
        pairs = ((result.shapes[o], shapes[match.key]) for o, match in result.matches.items())
        return any(len(theirs) > 1 and theirs == (1, *ours) for ours, theirs in pairs)

    def _compute(
        self, operator: RuntimeOperator, missing: RuntimeOperand, reading: Reading
    ) -> tuple[Sequence[Value], str]:
        """Compute an operator from a tensor; None for each result that there is not."""
        value = self._values.read(missing.name, reading)
        arguments = self._values.arguments(operator, {missing.name: value})
        if value is None or arguments is None:
            return (None,) * len(operator.outputs), ""
        return self._values.compute(operator, arguments)
