"""Explains the origins of a comparison, on the reference's own inputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from engine.comparison.aligning.calls import COPY, function_of
from engine.comparison.crossed import find_crossed
from engine.comparison.layouts import has_same_elements
from engine.comparison.measures import relative_distance
from engine.comparison.reasons import (
    Explanation,
    Surroundings,
    Tail,
    diagnose_input,
    find_explanation,
    is_activation,
    make_case,
)
from engine.comparison.spans import Span
from engine.cost import is_free
from engine.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from engine.comparison.known_weights import KnownWeights
    from engine.comparison.reasons import Case, Reason
    from engine.inputs import ImageOptions, SourceImage
    from engine.runtime import RuntimeOperand, RuntimeOperator
    from engine.values import Array, Value

__all__ = ["Explained", "Explainer", "Known"]

_MOST_EXPLAINED: Final = 16  # origins; after so many, the cause lies elsewhere
# Operations, not seconds: a busy machine finds the same reasons as one at rest.
_MOST_WORK: Final = 1e11  # for each
_MOST_WORK_OF_ALL: Final = 6e11
_OF_PREPARED: Final = 1e2  # for an element of an input that is prepared in another way
_MOST_SUSPECTS: Final = 24  # operators of an origin
_WHOLE: Final = 0.999  # share of a reason that leaves nothing to others
_EXACT: Final = 1 - 1e-9  # share of a reason that leaves only rounding
_LIKELY: Final = 3  # likelihood of a setting of the operator
_FUNCTION: Final = 2  # likelihood of a function of the result
_BEST: Final = (_WHOLE, _LIKELY + 1)  # rank of a setting that leaves nothing
_IDLE: Final = frozenset({"identity", "dropout", "alias"})
_OF_MOVES: Final = frozenset(
    {"axis", "parameter", "input_layout", "channel_order", "expression"}
)
_AGREES: Final = 1e-4  # relative distance of a corrected result


class _SlowError(Exception):
    """Trying alternatives takes too many operations."""


@dataclass(frozen=True)
class Known:
    """What is known of the operands of the model.

    Attributes
    ----------
    ours : callable
        Returns our value of an operand; None if there is none.
    theirs : callable
        Returns the reference's value in our layout; None if it does not show it.
    computed : mapping of str to Value
        What our operators give on the reference's values, by operand that it does not show.
    shows : callable
        Whether the reference has a tensor for an operand.
    repeats : callable
        Whether the reference shows for an operand only the tensor of its producer's own input.
    feeds : callable
        Whether the reference's own call that gives the tensor of a second operand is known to
        read that of the first.
    agrees : callable
        Whether the reference's tensor is what our operator gives on its inputs.
    lost : callable
        Returns the tensors, by key, that only the reference computes an operand from.
    weights : KnownWeights
    unread : tuple of RuntimeOperator
        Those whose results nobody reads.
    images : mapping of str to SourceImage
        What inputs were made from, by operand.
    """

    ours: Callable[[RuntimeOperand], Value]
    theirs: Callable[[RuntimeOperand], Array | None]
    computed: Mapping[str, Value]
    shows: Callable[[RuntimeOperand], bool]
    repeats: Callable[[RuntimeOperand], bool]
    feeds: Callable[[RuntimeOperand, RuntimeOperand], bool]
    agrees: Callable[[RuntimeOperand], bool]
    lost: Callable[[RuntimeOperand], Mapping[str, Array]]
    weights: KnownWeights
    unread: tuple[RuntimeOperator, ...]
    images: Mapping[str, SourceImage]

    def value(self, operand: RuntimeOperand) -> Value:
        """Return the reference's value, what stands in for it, or our constant."""
        theirs = self.theirs(operand)
        if theirs is not None:
            return theirs
        if operand.name in self.computed:
            return self.computed[operand.name]
        constant = operand.producer is not None and operand.producer.is_constant
        return self.ours(operand) if constant else None

    def surroundings(self, operator: RuntimeOperator) -> Surroundings:
        """Return what lies around an operator."""
        return Surroundings(operator, self.value, self.lost, unread=self.unread)


@dataclass(frozen=True)
class Explained:
    """Which operator is to blame for an origin, and why.

    Attributes
    ----------
    operator : RuntimeOperator
    among : tuple of RuntimeOperator
        Others that explain it as well.
    reasons : tuple of Reason
        Best first; empty if no known one applies.
    above : tuple of RuntimeOperand
        The nearest results upstream that the reference shows.
    """

    operator: RuntimeOperator
    among: tuple[RuntimeOperator, ...] = ()
    reasons: tuple[Reason, ...] = ()
    above: tuple[RuntimeOperand, ...] = ()


class _Blamed(NamedTuple):
    """An operator with its explanation."""

    operator: RuntimeOperator
    explanation: Explanation

    @property
    def rank(self) -> tuple[float, int]:
        """How well it explains, and how likely."""
        first = self.explanation.reasons[0]
        return round(min(first.explains, _WHOLE), 3), self.explanation.likelihood

    @property
    def is_exact(self) -> bool:
        """Whether it leaves only rounding, which a similar function does not."""
        return self.explanation.reasons[0].explains >= _EXACT


def _same_above(operator: RuntimeOperator) -> list[RuntimeOperator]:
    """Return the operator that gives an activation its input, if it is the same activation."""
    source = operator.inputs[0].producer if operator.inputs else None
    if source is None or function_of(source.type) != function_of(operator.type):
        return []
    return [source]


def _is_open(found: Sequence[_Blamed]) -> bool:
    """Whether others may be likelier to blame, or explain what these leave."""
    return max((each.rank for each in found), default=(0.0, 0)) < (_WHOLE, _LIKELY)


def _is_explained(found: Sequence[_Blamed]) -> bool:
    """Whether one of these leaves nothing to explain."""
    return any(each.rank[0] >= _WHOLE for each in found)


class Explainer:
    """Tries why operators differ.

    Parameters
    ----------
    known : Known
    check_cancelled : callable
        Called between alternatives; an exception ends the comparison.
    """

    def __init__(self, known: Known, check_cancelled: Callable[[], None]) -> None:
        self._known = known
        self._check_cancelled = check_cancelled
        self._explained: dict[str, Explained] = {}
        self._corrections: list[_Blamed] = []
        self._crossed: list[tuple[RuntimeOperator, Span]] = []
        self._spent = self._spent_of_all = 0.0

    def explain(self, operator: RuntimeOperator) -> tuple[Reason, ...]:
        """Return why an operator alone differs, best first; empty for no known reason."""
        if not operator.outputs:
            return ()
        self._spent = 0.0
        return self._explain(operator, None).reasons

    def explain_failure(self, operator: RuntimeOperator) -> tuple[Reason, ...]:
        """Return why an operator fails whose result the reference does not show, best first.

        What it should give is told by the next tensors downstream that the reference shows.
        """
        self._spent = 0.0
        for end in self._shown_below(operator):
            span = Span.above(end, self._is_shown)
            if operator in span.operators and (found := self._explain(operator, span).reasons):
                return found
        return ()

    def _shown_below(self, operator: RuntimeOperator) -> list[RuntimeOperand]:
        """Return the nearest operands downstream that the reference shows, nearest first."""
        found: dict[str, RuntimeOperand] = {}
        seen, level = {operator.index}, [operator]
        while level and len(seen) < _MOST_SUSPECTS:
            operands = [operand for each in level for operand in each.outputs]
            shown = [operand for operand in operands if self._is_shown(operand)]
            found |= {operand.name: operand for operand in shown}
            readers = {c.index: c for o in operands if o not in shown for c in o.consumers}
            level = [reader for index, reader in readers.items() if index not in seen]
            seen |= readers.keys()
        return list(found.values())

    def explain_origin(
        self, operand: RuntimeOperand, suspects: Sequence[RuntimeOperator]
    ) -> Explained:
        """Find the operator that explains an origin, and why.

        Parameters
        ----------
        operand : RuntimeOperand
            The result that differs.
        suspects : sequence of RuntimeOperator
            Those upstream that the reference does not show and that nothing clears.
        """
        known = self._explained.get(operand.name)
        if known is None:
            known = self._explained[operand.name] = self._blame(operand, suspects)
        return known

    def correction_of(self, operand: RuntimeOperand) -> RuntimeOperator | None:
        """Return the operator upstream with whose correction a result agrees; None for none.

        Only operators that explain another origin count. What nothing explains counts as
        corrected where two exchanged results upstream explain what is computed from it.
        """
        for reader, span in self._crossed:
            if self._is_doubtful(operand) and operand.producer in span.operators:
                return reader
        self._spent = 0.0
        try:
            return self._correction_of(operand)
        except _SlowError:
            return None

    def _correction_of(self, operand: RuntimeOperand) -> RuntimeOperator | None:
        expected = self._known.theirs(operand)
        if expected is None or not self._corrections:
            return None
        span = Span.above(operand, self._is_distinct)
        for operator, explanation in self._corrections:
            if operator not in span.operators or explanation.corrected is None:
                continue
            tail = self._tail(span, operator)
            found = tail(explanation.corrected()) if tail is not None else None
            if not isinstance(found, np.ndarray) or found.shape != expected.shape:
                continue
            if relative_distance(found, expected) <= _AGREES:
                return operator
        return None

    # One origin

    def _blame(self, operand: RuntimeOperand, suspects: Sequence[RuntimeOperator]) -> Explained:
        operator = operand.producer
        assert operator is not None  # noqa: S101 - of an origin
        if self._spent_of_all > _MOST_WORK_OF_ALL or len(self._explained) >= _MOST_EXPLAINED:
            return Explained(operator, tuple(suspects))
        self._spent = 0.0
        if operator.is_input:
            return Explained(operator, (), self._diagnose_input(operand))
        span = Span.above(operand, self._is_shown)
        found = self._try_unclear_first(span, suspects)
        if _is_open(found):
            # The reference shows what was moved, but perhaps not how.
            wider = Span.above(operand, lambda each: self._is_whole(each, operand))
            crossed = None if _is_explained(found) else self._crossed_in(wider)
            if crossed is not None:
                return crossed
            found += self._try_moved(wider, span, has_reason=_is_explained(found))
        if found:
            return self._choose(found)
        if operator.type == COPY and suspects:  # a copy is right
            *suspects, operator = suspects
        return Explained(operator, tuple(suspects), (), span.starts)

    def _try_unclear_first(
        self, span: Span, suspects: Sequence[RuntimeOperator]
    ) -> list[_Blamed]:
        """Try the operators that nothing clears; the others if these leave the cause open."""
        unclear = [
            each
            for each in span.operators
            if each in suspects or self._may_be_wrong(each) or each is span.end.producer
        ]
        found = self._try(span, unclear)
        if _is_open(found):
            # What hides most of a difference, as a normalization, seems to clear the others.
            found += self._try(span, [o for o in span.operators if o not in unclear])
        return found

    def _try_moved(self, wider: Span, span: Span, *, has_reason: bool) -> list[_Blamed]:
        """Try the operators of a wider span that only may have moved elements wrongly."""
        others = [o for o in wider.operators if o not in span.operators]
        others = [o for o in others if not self._is_cleared(o, wider)]
        if has_reason:  # as that exchanged parts are read
            others = [o for o in others if not self._has_right_parts(o)]
        return [each for each in self._try(wider, others) if self._may_be_moved(each)]

    def _choose(self, found: Sequence[_Blamed]) -> Explained:
        """Blame the likeliest, and remember its correction for results further down."""
        first, *rest = self._likeliest(found)
        self._corrections.append(first)
        others = [each.operator for each in rest]
        blamed, kind = first.explanation.at or first.operator, first.explanation.reasons[0].kind
        if kind == "activation_extra":
            others += [each for each in _same_above(blamed) if each not in others]
        if kind == "activation_missing" and not others and blamed is first.operator:
            blamed = self._idle_below(blamed) or blamed
        return Explained(blamed, tuple(others), first.explanation.reasons)

    def _crossed_in(self, span: Span) -> Explained | None:
        """Explain what a span ends with by two results that it reads exchanged.

        What nothing explains may be matched with the wrong one of two branches. Then results
        above that are exchanged.
        """
        spans, end = [span], span.end
        if any(map(self._is_doubtful, span.starts)):
            spans += [
                Span.above(end, lambda o: self._is_whole(o, end) and not self._is_doubtful(o))
            ]
        expected = self._known.theirs(end)
        for each in spans:
            try:
                found = find_crossed(each, self._known.value, expected, self._spend)
            except _SlowError:
                return None
            if found is not None:
                reader, reason = found
                self._crossed.append((reader, each))
                return Explained(reader, (), (reason,))
        return None

    def _is_doubtful(self, operand: RuntimeOperand) -> bool:
        """Whether an operand is an origin that nothing explains, or copies its elements."""
        while operand.name not in self._explained:
            producer = operand.producer
            if producer is None or not producer.inputs or not is_free(producer.type):
                return False
            operand = producer.inputs[0]
        return not self._explained[operand.name].reasons

    def _idle_below(self, operator: RuntimeOperator) -> RuntimeOperator | None:
        """Return the only reader of an operator, if it does nothing: there something is lost.

        A reference that fuses both shows one tensor for them.
        """
        readers = [each for operand in operator.outputs for each in operand.consumers]
        if len(readers) != 1 or function_of(readers[0].type) not in _IDLE:
            return None
        return readers[0] if any(map(self._known.repeats, readers[0].outputs)) else None

    def _likeliest(self, found: Sequence[_Blamed]) -> list[_Blamed]:
        """Return those that explain most and are likeliest, in execution order."""
        best = max(each.rank for each in found)
        equal = [each for each in found if each.rank == best]
        equal = [each for each in equal if each.is_exact] or equal
        if best[0] >= _WHOLE and not equal[0].is_exact:
            # A number that is fitted leaves a little, where another function leaves nothing.
            exact = [each for each in found if each.is_exact and each.rank[1] >= _FUNCTION]
            best = max((each.rank for each in exact), default=best)
            equal = [each for each in exact if each.rank == best] or equal
        if best[1] < _LIKELY:
            # A function of what is moved is one of what it is moved from as well.
            acting = [
                each for each in equal if not any(map(self._is_moved, each.operator.outputs))
            ]
            equal = acting or equal
        return sorted(equal, key=lambda each: each.operator.index)

    def _try(self, span: Span, suspects: Sequence[RuntimeOperator]) -> list[_Blamed]:
        """Return the suspects that explain what a span ends with."""
        if len(suspects) == 1 and not suspects[0].is_input:
            return self._try_each(span, suspects, "all")
        # Among several, a parameter is likelier than anything that numbers are fitted for.
        plain = [each for each in suspects if not each.has_attributes]
        heavy = [each for each in suspects if each.has_attributes]
        found: list[_Blamed] = []
        for tried, part in (
            ("settings", plain), ("settings", heavy), ("results", plain), ("results", heavy),
        ):  # fmt: skip
            found += self._try_each(span, part, tried)
            certain = [each.operator for each in found if each.rank == _BEST]
            # An input may be told from its reader's weights only by trying both.
            if any(not each.is_input for each in certain) or (certain and part is heavy):
                break
        best: dict[str, _Blamed] = {}
        for each in sorted(found, key=lambda one: one.rank, reverse=True):
            best.setdefault(each.operator.name, each)
        return list(best.values())

    def _try_each(
        self, span: Span, suspects: Sequence[RuntimeOperator], tried: str
    ) -> list[_Blamed]:
        """Return the suspects that explain it by some alternatives, the nearest first."""
        found = []
        for operator in suspects[: -_MOST_SUSPECTS - 1 : -1]:
            if not operator.is_input:
                explanation = self._explain(operator, span, tried)
            elif tried == "settings":
                explanation = self._explain_input(operator, span)
            else:
                continue
            if explanation.reasons:
                found.append(_Blamed(operator, explanation))
        return found

    def _explain(
        self, operator: RuntimeOperator, span: Span | None, tried: str = "all"
    ) -> Explanation:
        """Try alternatives of an operator; without a span the reference shows its results."""
        tail = None if span is None else self._tail(span, operator)
        inputs = [self._known.value(operand) for operand in operator.inputs]
        expected: Value = self._expected(operator.outputs)
        if span is not None and tail is not None:
            expected = self._known.theirs(span.end)
        if expected is None or any(value is None for value in inputs):
            return Explanation()
        found = self._find(operator, inputs, expected, tail, tried=tried)
        if not found.reasons and tail is None and tried == "all":
            return self._explain_one_of(operator, inputs)
        if found.reasons or span is None or tail is None or not is_free(operator.type):
            return found
        # Perhaps only the shape differs, which is not looked at where the end has another one.
        exact = span.tail(operator, self._known.value)
        return self._find(operator, inputs, expected, exact, tried=tried)

    def _explain_one_of(
        self, operator: RuntimeOperator, inputs: Sequence[Value]
    ) -> Explanation:
        """Try functions of the one result of several that differs, as of a part of a chunk.

        A chunk that gives one wrong part gives the other wrong too: so it is not to blame, and
        what is applied to that part alone may be.
        """
        differing = [
            each
            for each in operator.outputs
            if self._known.shows(each) and not self._known.agrees(each)
        ]
        if len(operator.outputs) < 2 or len(differing) != 1:
            return Explanation()
        place = operator.outputs.index(differing[0])
        expected = self._known.theirs(differing[0])
        case = self._case(operator, inputs, self._expected(operator.outputs), None)
        if case is None or expected is None or not isinstance(case.ours, tuple):
            return Explanation()
        found = self._find_in(case.of_result(place, expected), "results")
        reasons = [replace(each, text=f"Output {place}: {each.text}") for each in found.reasons]
        return Explanation(tuple(reasons), found.likelihood)

    def _tail(self, span: Span, operator: RuntimeOperator) -> Tail | None:
        shown = self._known.theirs(span.end)
        shape = shown.shape if shown is not None else None
        first, *others = operator.outputs
        if span.end in others and any(self._known.theirs(o) is None for o in operator.outputs):
            # The reference shows only this one of several results.
            return Tail((first, *others), (), span.end, {}, shape)
        return span.tail(operator, self._known.value, shape)

    def _explain_input(self, source: RuntimeOperator, span: Span) -> Explanation:
        """Try other inputs of the model, from the first result that the reference shows."""
        (operand,) = source.outputs
        readers = [o for o in span.operators if operand in o.inputs]
        expected = self._known.theirs(span.end)
        if len(readers) != 1 or readers[0].inputs[0] is not operand or expected is None:
            return Explanation()
        (reader,) = readers
        inputs = [self._known.value(each) for each in reader.inputs]
        if any(value is None for value in inputs):
            return Explanation()
        case = self._case(reader, inputs, expected, self._tail(span, reader))
        if case is not None:
            case = replace(case, source=self._image_of(operand, inputs[0]))
        found = self._find_in(case, "inputs")
        if found.inputs is None:
            return Explanation()
        others = found.inputs
        fitted = found.reasons[0].kind in {"scale", "mean_std"}
        return found._replace(
            corrected=lambda: others()[0], likelihood=_LIKELY if fitted else _LIKELY + 1
        )

    def _find(
        self,
        operator: RuntimeOperator,
        inputs: Sequence[Value],
        expected: Value,
        tail: Tail | None,
        *,
        tried: str,
    ) -> Explanation:
        return self._find_in(self._case(operator, inputs, expected, tail), tried)

    def _find_in(self, case: Case | None, tried: str) -> Explanation:
        try:
            return find_explanation(case, tried)
        except (_SlowError, EngineError):
            return Explanation()

    def _case(
        self,
        operator: RuntimeOperator,
        inputs: Sequence[Value],
        expected: Value,
        tail: Tail | None,
    ) -> Case | None:
        """Run an operator on the reference's inputs; None if it cannot be explained."""
        try:
            return make_case(
                operator, inputs, expected, check_cancelled=self._check_cancelled, tail=tail,
                spend=self._spend,
                reference_weights=self._known.weights.arrays(operator),
                differing=self._known.weights.differing(operator),
                surroundings=self._known.surroundings(operator),
            )  # fmt: skip
        except (_SlowError, EngineError):
            return None

    def _diagnose_input(self, operand: RuntimeOperand) -> tuple[Reason, ...]:
        ours, theirs = self._known.ours(operand), self._known.theirs(operand)
        if not isinstance(ours, np.ndarray) or theirs is None:
            return ()
        image, options = self._image_of(operand, ours) or (None, None)
        once = _OF_PREPARED * ours.size + (image.size if image is not None else 0)

        def check() -> None:
            self._check_cancelled()
            self._spend(once)

        try:
            return diagnose_input(
                ours, theirs, image=image, options=options, check_cancelled=check
            )
        except (_SlowError, EngineError):
            return ()

    def _image_of(
        self, operand: RuntimeOperand, ours: Value
    ) -> tuple[Array, ImageOptions] | None:
        """Return the image that our input was made from, and how; None if it is of none."""
        source = self._known.images.get(operand.name)
        if source is None or not isinstance(ours, np.ndarray):
            return None
        image = source.pixels_of(operand, ours)
        return None if image is None else (image, source.options)

    def _expected(self, outputs: Sequence[RuntimeOperand]) -> Value:
        """Return the reference's first result, or all results if all are known."""
        found = [self._known.theirs(operand) for operand in outputs]
        if len(found) > 1 and all(value is not None for value in found):
            return tuple(found)
        return found[0]

    # What the reference shows

    def _is_shown(self, operand: RuntimeOperand) -> bool:
        """Whether the reference has a tensor for an operand that repeats no other."""
        return self._known.shows(operand) and not self._known.repeats(operand)

    def _is_distinct(self, operand: RuntimeOperand) -> bool:
        """Whether the tensor is neither repeated nor only moved."""
        return self._is_shown(operand) and not self._is_moved(operand)

    def _is_whole(self, operand: RuntimeOperand, end: RuntimeOperand) -> bool:
        """Whether the tensor is distinct, and no step of a function that ours lacks.

        A sigmoid of ours agrees with that in a SiLU of the reference, what reads it does not:
        it reads another tensor there.
        """
        producer = operand.producer
        is_step = (
            producer is not None
            and is_activation(producer.type)
            and len(operand.consumers) == 1
            and not self._known.feeds(operand, end)
        )
        return self._is_distinct(operand) and not is_step

    def _may_be_moved(self, blamed: _Blamed) -> bool:
        """Whether an operator that only moves elements is blamed for where it moves them.

        The reference has the same elements there, so none is scaled, say.
        """
        kind = blamed.explanation.reasons[0].kind
        return kind in _OF_MOVES or not all(map(self._is_moved, blamed.operator.outputs))

    def _is_moved(self, operand: RuntimeOperand) -> bool:
        """Whether an operand has the elements of its producer's first input in another order.

        Of a producer with several results they count together, as those of `unbind`. Other
        inputs may only tell the shape.
        """
        producer = operand.producer
        if producer is not None and producer.type == COPY:
            return self._known.shows(producer.inputs[0])
        if producer is None or not is_free(producer.type) or self._known.repeats(operand):
            return False
        if not producer.inputs:
            return False
        before = self._known.value(producer.inputs[0])
        values = [self._known.value(each) for each in producer.outputs]
        parts = [value.reshape(-1) for value in values if isinstance(value, np.ndarray)]
        if not isinstance(before, np.ndarray) or len(parts) < len(values):
            return False
        if sum(part.size for part in parts) != before.size:
            return False
        if (
            function_of(producer.type) in _IDLE
        ):  # a reference may have a norm of no effect there
            return relative_distance(parts[0], before.reshape(-1)) <= _AGREES
        return has_same_elements(before, parts[0] if len(parts) == 1 else np.concatenate(parts))

    def _has_right_parts(self, operator: RuntimeOperator) -> bool:
        """Whether an operator has several results, and the reference shows each as ours."""
        return len(operator.outputs) > 1 and all(map(self._known.agrees, operator.outputs))

    def _is_cleared(self, operator: RuntimeOperator, span: Span) -> bool:
        """Whether what reads an operator beside a span agrees with the reference."""
        readers = [each for operand in operator.outputs for each in operand.consumers]
        others = [each for each in readers if each not in span.operators and each.outputs]
        return any(all(map(self._known.agrees, each.outputs)) for each in others)

    def _may_be_wrong(self, operator: RuntimeOperator) -> bool:
        """Whether the reference does not show an operator at all, and nothing clears it."""
        if operator.is_input:
            (operand,) = operator.outputs
            agrees = [self._known.agrees(o) for c in operand.consumers for o in c.outputs]
            return not self._known.shows(operand) and not any(agrees)
        return any(self._known.repeats(operand) for operand in operator.outputs)

    def _spend(self, operations: float) -> None:
        self._spent += operations
        self._spent_of_all += operations
        if self._spent > _MOST_WORK:
            raise _SlowError
