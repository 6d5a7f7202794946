"""Checks on a second input what only the elements match.

Zeros, constants and what an operator happens not to change have the elements of other tensors,
too: a ReLU of positive numbers those of its input. Our operators compute again on what the
reference gives for the second input. A match that is no chance holds for it as well.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.array_files import is_numeric
from engine.comparison.computing import Computing
from engine.comparison.matching import CONTENT, Match
from engine.comparison.measures import relative_distance
from engine.comparison.spans import Span
from engine.comparison.ties import is_tie
from engine.cost import is_free
from engine.errors import EngineError
from engine.ncnn.types import is_quantized

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from engine.comparison.aligning import Alignment
    from engine.comparison.fingerprints import FingerprintIndex
    from engine.comparison.matching import Matcher
    from engine.comparison.references import Reference
    from engine.runtime import RuntimeOperand
    from engine.session import Session
    from engine.values import Array, Value

__all__ = ["check_with_second_input"]

_ROUNDED: Final = 2e-3  # relative distance that rounding reaches, float16 included
_ROUNDED_TO_INT8: Final = 5e-2
_ULPS: Final = 10.0  # times the distance for the first input, for another one

_HOLDS: Final = 0.95  # confidence of a match that was checked
_UNCHECKED: Final = 0.8  # of one that could not be
_AMBIGUOUS: Final = 0.5
_REMARK: Final = "only its elements match it, and for this input those of other tensors do too"


def check_with_second_input(
    session: Session,
    reference: Reference,
    index: FingerprintIndex,
    matcher: Matcher,
    alignment: Alignment,
    tolerance: float,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Drop matches of an alignment that hold for one input only.

    Where the reference has a copy of the tensor that holds, that one is matched instead. If the
    reference cannot compute again, such matches stay, with less confidence. Nothing is computed
    if names, weights or positions say all.

    Parameters
    ----------
    session : Session
        Finished; not changed.
    reference : Reference
    index : FingerprintIndex
        Of the reference.
    matcher : Matcher
    alignment : Alignment
        It is changed.
    tolerance : float
        Relative distance up to which results agree.
    progress : callable, optional
        See `engine.compare`.
    """
    check = _Check(session, reference, index, matcher, alignment, progress)
    doubtful = check.find_doubtful(tolerance)
    if any(not _is_view(operand) for operand in doubtful):
        check.run(doubtful)


def _is_view(operand: RuntimeOperand) -> bool:
    """Whether an operand has the elements of another one for every input."""
    return operand.producer is not None and is_free(operand.producer.type)


class _Check:
    def __init__(
        self,
        session: Session,
        reference: Reference,
        index: FingerprintIndex,
        matcher: Matcher,
        alignment: Alignment,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self._session, self._reference, self._alignment = session, reference, alignment
        self._index, self._matcher, self._progress = index, matcher, progress

    def find_doubtful(self, tolerance: float) -> list[RuntimeOperand]:
        """Return the operands that only their elements match, in execution order."""
        found = []
        for operator in self._session.graph.operators:
            if operator.is_input or operator.is_constant or operator.random:
                continue
            for operand in operator.outputs:
                match = self._alignment.matches.get(operand.name)
                born = self._alignment.born.get(operand.name)
                if match is None or match.matched_by != CONTENT or born is None:
                    continue
                # What differs already is no chance. Weights give no other layer's elements.
                if not born.measured or born.note or born.relative > tolerance:
                    continue
                if not operator.has_attributes or len(self._index.copies(match.key)) > 1:
                    found.append(operand)
        return found

    def run(self, doubtful: Sequence[RuntimeOperand]) -> None:
        again = self._reference.again
        second = None
        if again is not None:
            try:
                second = again(self._progress)
            except EngineError:  # the model does not take it: nothing is known
                second = None
        if second is None:
            for operand in doubtful:
                self._doubt(operand)
            return
        trial = _Trial(self._session, second, self._alignment)
        count = len(self._session.graph.operators)
        for operand in doubtful:
            if self._progress is not None:
                self._progress(count, count)
            self._decide(operand, trial)

    def _doubt(self, operand: RuntimeOperand) -> None:
        """Lower the confidence in a match that cannot be checked."""
        match = self._alignment.matches[operand.name]
        ambiguous = self._is_ambiguous(operand, match.key)
        confidence = min(match.confidence, _AMBIGUOUS if ambiguous else _UNCHECKED)
        self._alignment.matches[operand.name] = replace(match, confidence=confidence)
        if ambiguous:
            self._alignment.remarks[operand.name] = _REMARK

    def _is_ambiguous(self, operand: RuntimeOperand, key: str) -> bool:
        """Whether tensors of the same shape have the same elements, or operands the tensor.

        Not those that views and the like give, which have the elements of their inputs always.
        """
        alignment, shapes = self._alignment, self._index.shapes
        if _is_view(operand):
            return False
        if sum(shapes[each] == shapes[key] for each in self._index.copies(key)) > 1:
            return True
        name, graph = operand.name, self._session.graph
        sharing = [
            o for o, match in alignment.matches.items() if match.key == key and o != name
        ]
        return any(
            other != name
            and alignment.shapes[other] == alignment.shapes[name]
            and not _is_view(graph.operand(other))
            for other in sharing
        )

    def _decide(self, operand: RuntimeOperand, trial: _Trial) -> None:
        name, alignment = operand.name, self._alignment
        match, shape = alignment.matches[name], alignment.shapes[name]
        computed = trial.compute(operand)
        if computed is None or not trial.has(match.key):
            self._doubt(operand)
            return
        limit = max(_ROUNDED, _ULPS * alignment.born[name].relative)
        for other in self._candidates(match, shape):
            if trial.agrees(operand, computed, other, limit):
                if other.key != match.key:
                    alignment.numbers.pop(name, None)
                alignment.matches[name] = replace(other, confidence=_HOLDS)
                return
        alignment.by_chance[name] = match.key
        alignment.computed[name] = self._value_of(match, shape)
        for known in (alignment.matches, alignment.born, alignment.shapes, alignment.numbers):
            known.pop(name, None)

    def _candidates(self, match: Match, shape: tuple[int, ...]) -> Iterator[Match]:
        """Return a match, and those with the copies of its tensor."""
        yield match
        value = self._value_of(match, shape)
        for key in self._index.copies(match.key):
            found = self._matcher.layout(key, [shape])
            if found is None or key == match.key:
                continue
            other = Match(key, CONTENT, match.confidence, found[1])
            if np.array_equal(self._value_of(other, shape), value, equal_nan=True):
                yield other

    def _value_of(self, match: Match, shape: tuple[int, ...]) -> Array:
        return match.layout.to_ours(self._reference.array(match.key), shape)


class _Trial:
    """Our operators on what the reference gives for the second input."""

    def __init__(self, session: Session, second: Reference, alignment: Alignment) -> None:
        self._session, self._second, self._alignment = session, second, alignment
        self._computing = Computing(session)
        self._inputs: dict[str, Value] = {}

    def has(self, key: str) -> bool:
        """Whether the reference has a tensor for the second input."""
        return key in self._second.by_key

    def _shows(self, operand: RuntimeOperand) -> bool:
        match = self._alignment.matches.get(operand.name)
        return match is not None and self.has(match.key)

    def compute(self, operand: RuntimeOperand) -> Array | None:
        """Return our result; None if something that it needs is unknown, or random."""
        span = Span.above(operand, self._shows)
        known: dict[str, Value] = {}
        for operator in span.operators:
            if operator.is_constant:
                known |= {o.name: self._session.value(o.name) for o in operator.outputs}
                continue
            arguments = []
            for source in operator.inputs:
                if source.name not in known:
                    known[source.name] = self._given(source)
                arguments.append(known[source.name])
            if any(each is None for each in arguments):
                return None
            results, failure = self._computing.compute(operator, arguments)
            if failure:
                return None
            known |= {o.name: r for o, r in zip(operator.outputs, results, strict=True)}
        producer = operand.producer
        self._inputs = {o.name: known.get(o.name) for o in producer.inputs} if producer else {}
        result = known.get(operand.name)
        return result if isinstance(result, np.ndarray) and is_numeric(result) else None

    def _given(self, operand: RuntimeOperand) -> Value:
        match = self._alignment.matches.get(operand.name)
        shape = self._alignment.shapes.get(operand.name)
        if match is None or shape is None:
            return None
        value = self._read(match, shape)
        session = self._session
        if value is None or not session.has_value(operand.name):
            return value
        dtype = getattr(session.metadata(operand.name), "dtype", value.dtype)
        with np.errstate(invalid="ignore", over="ignore"):
            return value.astype(dtype, copy=False)

    def _read(self, match: Match, shape: tuple[int, ...]) -> Array | None:
        if not self.has(match.key):
            return None
        try:
            array = self._second.array(match.key)
        except EngineError:
            return None
        return match.layout.to_ours(array, shape) if array.size == np.prod(shape) else None

    def agrees(
        self, operand: RuntimeOperand, computed: Array, match: Match, limit: float
    ) -> bool:
        """Whether the last computed result is that of the reference."""
        theirs = self._read(match, computed.shape)
        producer = operand.producer
        if theirs is None or producer is None:
            return False
        if is_quantized(producer.params):
            limit = max(limit, _ROUNDED_TO_INT8)
        if relative_distance(computed, theirs) <= limit:
            return True
        given = {
            place: value
            for place, source in enumerate(producer.inputs)
            for value in (self._inputs.get(source.name),)
            if isinstance(value, np.ndarray)
        }
        return is_tie(producer, given, computed, theirs, limit)
