"""Walks through our graph on the reference's values; matches and measures in one pass.

Each operator of ours computes from the *reference's* inputs. So a difference belongs to the
operator where it is found, whatever is wrong upstream. A result with the elements of a tensor
of the reference is matched with that tensor.

Where nothing fits, the operator is either fused in the reference, or it is the one that
differs. The walk continues with the result of our operator, its *stand-in*. If a result
downstream equals a tensor of the reference again, the stand-ins are confirmed: the reference
only does not show them. Otherwise the first stand-in is matched by other evidence, above all by
trial: with the right tensor in its place, the operators downstream give tensors of the
reference again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.array_files import is_numeric
from engine.backends import make_kernels
from engine.comparison.layouts import Layout
from engine.comparison.matching import (
    ALIGNMENT,
    CONTENT,
    HAND,
    INPUT,
    NAME,
    OUTPUT,
    WEIGHTS,
    Match,
)
from engine.comparison.measures import relative_distance
from engine.errors import EngineError
from engine.runtime.executor import run_kernel
from engine.text import format_shape
from engine.values import ArrayMetadata, materialise_all

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from engine.comparison.fingerprints import FingerprintIndex, Similar
    from engine.comparison.matching import Matcher
    from engine.comparison.references import Reference
    from engine.runtime import RuntimeOperand, RuntimeOperator
    from engine.session import Session
    from engine.values import Array, Value

__all__ = ["Alignment", "Born", "align"]

# Limits on the distance of fingerprints.
_EXACT: Final = 2e-4  # rounding
_ROUNDED: Final = 2e-3  # rounding, float16 included
_NEAR: Final = 5e-2
_ALIKE: Final = 0.6
_CONFIRMING: Final = 3e-3  # relative to the largest element
_CLEARLY: Final = 3.0  # times nearer than the next one

_MOST_UNCONFIRMED: Final = 12  # consecutive stand-ins where the reference is dense
_MOST_DECISIONS: Final = 3  # times the number of operators
_IN_ORDER: Final = 32  # tensors tried downstream of the inputs
_AHEAD: Final = 3  # operators that a trial looks ahead
_MOST_TRIALS: Final = 4  # operators that one trial runs
_TELLING: Final = 1.5  # evidence that names a match, even if a trial confirms it
_ENOUGH: Final = 2.0  # evidence for a match that no trial confirms
_CONFIRMED: Final = 5.0  # what a trial counts


@dataclass(frozen=True, slots=True)
class Born:
    """The result of one of our operators on the reference's inputs.

    Attributes
    ----------
    relative : float
        Distance from the reference's output, relative to its largest element; 1 if they cannot
        be compared.
    note : str
        Why they cannot be compared; ``""`` if they can.
    measured : bool
        Whether it ran at all.
    group : tuple of str
        Operands upstream that the reference does not show and nothing confirms: the difference
        may begin at one of them.
    """

    relative: float = 0.0
    note: str = ""
    measured: bool = True
    group: tuple[str, ...] = ()


@dataclass(slots=True)
class Alignment:
    """The result of the walk.

    Attributes
    ----------
    matches : dict of str to Match
        By operand.
    born : dict of str to Born
        By operand, for those that were matched and computed.
    shapes : dict of str to tuple of int
        By matched operand: the shape in which to read the reference's tensor.
    stand_ins : frozenset of str
        Operands that the reference does not show, confirmed by results downstream.
    """

    matches: dict[str, Match] = field(default_factory=dict)
    born: dict[str, Born] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    stand_ins: frozenset[str] = frozenset()


def align(
    session: Session,
    reference: Reference,
    index: FingerprintIndex,
    matcher: Matcher,
    progress: Callable[[int, int], None] | None = None,
) -> Alignment:
    """Match the operands of a session with the tensors of a reference.

    Parameters
    ----------
    session : Session
        At its end.
    reference : Reference
    index : FingerprintIndex
        Of the reference.
    matcher : Matcher
    progress : callable, optional
        Called with the number of operators done and the total; an exception ends the walk.
    """
    with session.within_bound():
        return _Walk(session, reference, index, matcher).run(progress)


class _Walk:
    def __init__(
        self, session: Session, reference: Reference, index: FingerprintIndex, matcher: Matcher
    ) -> None:
        self._session, self._reference = session, reference
        self._index, self._matcher = index, matcher
        self._operators = session.graph.operators
        self._kernels = make_kernels(_backend_of(session), self._operators, session.excluded)
        self._result = Alignment()
        self._taken: dict[str, str] = {}  # operand by its matched tensor
        self._stand_ins: dict[str, Value] = {}
        self._same_as: dict[str, tuple[str, Layout]] = {}  # stand-ins that they take as input
        # By stand-in: itself and the unconfirmed ones that it was computed from.
        self._waiting: dict[str, frozenset[str]] = {}
        self._confirmed: set[str] = set()
        self._given_up: set[str] = set()
        self._blocked: set[int] = set()
        self._failures: dict[str, str] = {}  # by operand without a stand-in
        dense = 2 * len(index.shapes) >= len(session.graph.operands)
        self._limit = _MOST_UNCONFIRMED if dense else len(self._operators)

    def run(self, progress: Callable[[int, int], None] | None) -> Alignment:
        total = len(self._operators)
        for operator in self._operators:
            if progress is not None:
                progress(operator.index, total)
            self._visit(operator)
        # A decision may undo one downstream, so their number is bounded.
        for _ in range(_MOST_DECISIONS * total):
            open_ = self._first_open()
            if open_ is None:
                break
            if progress is not None:
                progress(open_[0].index, total)
            self._decide(*open_)
        self._finish()
        return self._result

    def _finish(self) -> None:
        result = self._result
        for name, (key, layout) in self._same_as.items():
            if name in self._stand_ins and name not in result.matches:
                self._match(name, Match(key, CONTENT, 0.8, layout), self._stand_ins[name])
        for name, born in result.born.items():
            known = self._confirmed | result.matches.keys()
            group = tuple(o for o in born.group if o not in known)
            result.born[name] = Born(born.relative, born.note, born.measured, group)
        result.stand_ins = frozenset(self._confirmed - result.matches.keys())

    # Visiting the operators

    def _visit(self, operator: RuntimeOperator) -> None:
        if operator.is_output:
            return
        if operator.is_input:
            for operand in operator.outputs:
                self._match_input(operand)
            return
        arguments = self._arguments(operator)
        waiting = self._waiting_for(operator)
        if arguments is None or len(waiting - self._given_up) > self._limit:
            self._blocked.add(operator.index)
            return
        self._blocked.discard(operator.index)
        results, failure = self._try(operator, arguments)
        for operand, result in zip(operator.outputs, results, strict=True):
            if operand.name not in self._result.matches:
                self._settle(operator, operand, result, waiting, failure)

    def _arguments(
        self, operator: RuntimeOperator, instead: Mapping[str, Value] | None = None
    ) -> list[Value] | None:
        """Return the reference's values of the inputs; None if one is unknown."""
        found: list[Value] = []
        for operand in operator.inputs:
            name = operand.name
            if instead is not None and name in instead:
                found.append(instead[name])
            elif name in self._result.matches:
                match = self._result.matches[name]
                shape = self._result.shapes[name]
                value = self._as_ours(name, match.key, match.layout, shape)
                if value is None:
                    return None
                found.append(value)
            elif name in self._stand_ins:
                found.append(self._stand_ins[name])
            else:
                return None
        return found

    def _as_ours(
        self, operand: str, key: str, layout: Layout, shape: tuple[int, ...]
    ) -> Array | None:
        """Return a tensor in our operand's shape and dtype; None if it cannot be read."""
        try:
            value = layout.to_ours(self._reference.array(key), shape)
        except EngineError:
            return None
        dtype = self._dtype_of(operand)
        if dtype is not None and value.dtype != dtype:
            with np.errstate(invalid="ignore", over="ignore"):
                value = value.astype(dtype)
        value = value.view()
        value.flags.writeable = False
        return value

    def _dtype_of(self, operand: str) -> np.dtype[np.generic] | None:
        stand_in = self._stand_ins.get(operand)
        if isinstance(stand_in, np.ndarray):
            return stand_in.dtype
        if self._session.has_value(operand):
            metadata = self._session.metadata(operand)
            if isinstance(metadata, ArrayMetadata):
                return metadata.dtype
        return self._session.graph.operand(operand).dtype

    def _try(
        self, operator: RuntimeOperator, arguments: Sequence[Value]
    ) -> tuple[tuple[Value, ...], str]:
        """Compute an operator; without a result, the reason and None for each output."""
        nothing = (None,) * len(operator.outputs)
        if operator.error is not None:
            return nothing, operator.reason
        if operator.random:
            return nothing, "it draws random numbers"
        try:
            results, _ = run_kernel(operator, self._kernels[operator.index], arguments, None)
            return tuple(materialise_all(results)), ""
        except EngineError as exc:
            return nothing, str(exc)

    def _waiting_for(self, operator: RuntimeOperator) -> frozenset[str]:
        """Return the unconfirmed stand-ins upstream."""
        sets = (self._waiting.get(operand.name, frozenset()) for operand in operator.inputs)
        return frozenset().union(*sets) - self._confirmed

    # One operand

    def _match_input(self, operand: RuntimeOperand) -> None:
        name = operand.name
        fed = self._session.value(name)
        if not isinstance(fed, np.ndarray):
            return
        matcher = self._matcher
        for key, matched_by in (
            (matcher.corrected(name), HAND),
            (matcher.inputs.get(name), INPUT),
            (matcher.named(operand), NAME),
        ):
            found = matcher.layout(key, [fed.shape]) if key is not None else None
            if key is not None and found is not None:
                self._match(name, Match(key, matched_by, 1.0, found[1]), None, found[0])
                return
        similar = self._index.similar(fed, _EXACT)
        if similar:
            first = min(similar, key=lambda each: self._reference.index[each.key])
            self._match(name, Match(first.key, CONTENT, 0.9, first.layout), None, fed.shape)
        else:  # the reference does not show the input: take it as the same
            self._stand_ins[name] = fed

    def _settle(
        self,
        operator: RuntimeOperator,
        operand: RuntimeOperand,
        result: Value,
        waiting: frozenset[str],
        failure: str,
    ) -> None:
        """Match an operand by hand, name or content, or use our result as its stand-in."""
        name = operand.name
        if failure:
            self._failures[name] = failure
            self._waiting[name] = waiting | {name}
        match = self._known(operand, result)
        if match is not None:
            shape = self._shape_for(match.key, operand, result)
            if shape is not None:
                match, shape = self._as_of_inputs(operator, match, shape)
                self._match(name, match, result, shape, waiting)
                return
        if failure:
            return
        if not isinstance(result, np.ndarray) or not is_numeric(result) or not result.size:
            self._stand_ins[name], self._waiting[name] = result, waiting
            return
        if self._matcher.is_corrected(name):  # it has no counterpart
            self._stand_ins[name], self._waiting[name] = result, waiting
            return
        found = self._by_content(operator, operand, result, certain=bool(waiting))
        if found is not None:
            self._match(name, found, result, result.shape, waiting)
            return
        self._stand_ins[name] = result
        self._waiting[name] = waiting | {name}
        own = self._inputs_of(operator)
        for similar in self._index.similar(result, _EXACT):
            if similar.key in own:
                self._same_as[name] = (similar.key, similar.layout)
                break

    def _known(self, operand: RuntimeOperand, result: Value) -> Match | None:
        """Return the match by hand or name."""
        matcher = self._matcher
        if matcher.is_corrected(operand.name):
            key, matched_by = matcher.corrected(operand.name), HAND
        else:
            key, matched_by = matcher.named(operand), NAME
        if key is None:
            return None
        found = matcher.layout(key, self._shapes_of(operand, result))
        return Match(key, matched_by, 1.0, found[1]) if found is not None else None

    def _as_of_inputs(
        self, operator: RuntimeOperator, match: Match, shape: tuple[int, ...]
    ) -> tuple[Match, tuple[int, ...]]:
        """Read a tensor of the same name in its own layout, if the inputs are read in theirs.

        A reference that has the inputs in our layout has the output in ours, too: another one
        is a fault of the operator.
        """
        theirs = self._index.shapes[match.key]
        if match.matched_by != NAME or _is_plain(match.layout, theirs, shape):
            return match, shape
        for operand in operator.inputs:
            known = self._result.matches.get(operand.name)
            if known is None or known.matched_by not in {NAME, INPUT}:
                return match, shape
            own = self._result.shapes[operand.name]
            if not _is_plain(known.layout, self._index.shapes[known.key], own):
                return match, shape
        return Match(match.key, NAME, match.confidence), theirs

    def _shape_for(
        self, key: str, operand: RuntimeOperand, result: Value
    ) -> tuple[int, ...] | None:
        found = self._matcher.layout(key, self._shapes_of(operand, result))
        return found[0] if found is not None else None

    def _shapes_of(self, operand: RuntimeOperand, result: Value) -> list[tuple[int, ...]]:
        """Return the possible shapes of an operand: computed here, in the run, in the file."""
        shapes = [result.shape] if isinstance(result, np.ndarray) else []
        if self._session.has_value(operand.name):
            shape = getattr(self._session.metadata(operand.name), "shape", None)
            if shape is not None:
                shapes.append(tuple(shape))
        if operand.shape is not None and all(type(size) is int for size in operand.shape):
            shapes.append(tuple(size for size in operand.shape if isinstance(size, int)))
        return list(dict.fromkeys(shapes))

    def _inputs_of(self, operator: RuntimeOperator) -> set[str]:
        """Return the tensors that the inputs of an operator are matched with."""
        matches, same = self._result.matches, self._same_as
        return {
            key
            for operand in operator.inputs
            for key in (
                matches[operand.name].key
                if operand.name in matches
                else same.get(operand.name, ("", Layout()))[0],
            )
        }

    def _by_content(
        self,
        operator: RuntimeOperator,
        operand: RuntimeOperand,
        result: Array,
        *,
        certain: bool,
    ) -> Match | None:
        """Return the match with the tensor that has a result's elements.

        With `certain` they may differ only by rounding.
        """
        own = self._inputs_of(operator)
        similar = [
            each
            for each in self._index.similar(result, _NEAR, own)
            if not any(self._index.equal(each.key, key) for key in own if key)
        ]
        if not similar:
            return None
        best = similar[0]
        rivals = [s for s in similar[1:] if not self._index.equal(s.key, best.key)]
        if best.distance > _EXACT:
            if operator.is_constant or (certain and best.distance > _ROUNDED):
                return None
            if rivals and rivals[0].distance < _CLEARLY * best.distance:
                return None
            return Match(best.key, CONTENT, 0.6, best.layout)
        bound = max(_EXACT / 10, _CLEARLY * best.distance)
        chosen = self._likeliest(operator, operand, [s for s in similar if s.distance <= bound])
        unique = len([s for s in rivals if s.distance <= bound]) == 0
        matched_by, confidence = CONTENT, 0.9 if unique else 0.5
        if chosen.key in self._anchored(operator):
            matched_by, confidence = WEIGHTS, 0.95
        elif chosen.key == self._matcher.outputs.get(operand.name):
            matched_by, confidence = OUTPUT, 0.95
        elif chosen.key in self._matcher.modules(operator):
            matched_by, confidence = NAME, 0.95
        return Match(chosen.key, matched_by, confidence, chosen.layout)

    def _likeliest(
        self, operator: RuntimeOperator, operand: RuntimeOperand, similar: Sequence[Similar]
    ) -> Similar:
        """Choose among tensors with the same elements."""
        if len(similar) == 1:
            return similar[0]
        named = {*self._matcher.modules(operator), *self._anchored(operator)}
        pinned = self._matcher.outputs.get(operand.name)
        behind = self._behind(operator)

        def rank(each: Similar) -> tuple[bool, bool, bool, bool, int]:
            place = self._reference.index[each.key]
            return (
                each.key != pinned,
                each.key not in named,
                each.key in self._taken,
                place <= behind,
                place,
            )

        return min(similar, key=rank)

    def _behind(self, operator: RuntimeOperator) -> int:
        """Return the index of the last input in the reference's order; -1 for none."""
        if not self._reference.ordered:
            return -1
        places = [self._reference.index.get(key, -1) for key in self._inputs_of(operator)]
        return max(places, default=-1)

    def _anchored(self, operator: RuntimeOperator) -> tuple[str, ...]:
        """Return the outputs of the reference's operators with the same weights."""
        if not operator.has_attributes:
            return ()
        return tuple(key for each in self._matcher.anchors(operator) for key in each.outputs)

    def _match(
        self,
        operand: str,
        match: Match,
        result: Value,
        shape: tuple[int, ...] | None = None,
        waiting: frozenset[str] = frozenset(),
    ) -> None:
        """Store a match and measure what is born there; `result` is ours, if computed."""
        if shape is None:
            shape = result.shape if isinstance(result, np.ndarray) else ()
        self._result.matches[operand], self._result.shapes[operand] = match, shape
        self._taken.setdefault(match.key, operand)
        producer = self._session.graph.operand(operand).producer
        computed = producer is not None and not producer.is_input
        if isinstance(result, np.ndarray) or computed:
            born = self._measure(operand, match, result, shape)
            group = tuple(sorted(waiting - {operand}, key=self._place_of))
            self._result.born[operand] = Born(born.relative, born.note, born.measured, group)
            agrees = born.relative < _CONFIRMING and not born.note
            if agrees and not any(self._is_shown(name, match.key) for name in waiting):
                self._confirmed |= waiting
        self._stand_ins.pop(operand, None)
        self._waiting.pop(operand, None)

    def _place_of(self, operand: str) -> int:
        return self._session.graph.operand(operand).index

    def _measure(
        self, operand: str, match: Match, result: Value, shape: tuple[int, ...]
    ) -> Born:
        if operand in self._failures and not isinstance(result, np.ndarray):
            producer = self._session.graph.operand(operand).producer
            unknown = producer is not None and (producer.error is not None or producer.random)
            return Born(1.0, self._failures[operand], measured=not unknown)
        if not isinstance(result, np.ndarray):
            return Born(1.0, f"it gives {type(result).__name__}, no tensor")
        try:
            array = self._reference.array(match.key)
        except EngineError as exc:
            return Born(1.0, str(exc), measured=False)
        if result.size != array.size:
            shapes = format_shape(result.shape), format_shape(array.shape)
            return Born(1.0, f"it gives {shapes[0]}, the reference {shapes[1]}")
        if result.shape != shape:  # another shape with as many elements
            shapes = format_shape(result.shape), format_shape(shape)
            return Born(1.0, f"it gives {shapes[0]} instead of {shapes[1]}")
        theirs = match.layout.to_ours(array, shape)
        distance = relative_distance(result, theirs)
        return Born(distance if np.isfinite(distance) else 1.0)

    def _is_shown(self, operand: str, key: str) -> bool:
        """Whether the reference has another tensor for a stand-in, upstream of a tensor.

        Both lead to the reference's tensors: what follows hides the difference, as a softmax
        hides an offset and a normalization a scale.
        """
        target = self._session.graph.operand(operand)
        result, producer = self._stand_ins.get(operand), target.producer
        if producer is None or not isinstance(result, np.ndarray) or operand in self._same_as:
            return False
        own = self._inputs_of(producer)
        if "" in own or not own:
            return False
        places = self._reference.index
        for other in self._near(own):
            if other in self._taken or other in own or places[other] >= places[key]:
                continue
            found = self._matcher.layout(other, self._shapes_of(target, result))
            if found is None or self._is_fused(target, result, other, found[1], found[0]):
                continue
            if self._confirms(target, other, found[1], found[0]):
                return True
        return False

    # Unconfirmed stand-ins

    def _first_open(self) -> tuple[RuntimeOperator, RuntimeOperand] | None:
        """Return the first operand with an unconfirmed stand-in."""
        for operator in self._operators:
            for operand in operator.outputs:
                name = operand.name
                if name in self._result.matches or name in self._given_up:
                    continue
                unknown = name in self._failures and operator.index not in self._blocked
                waits = name in self._waiting.get(name, ()) and name not in self._confirmed
                if (unknown or waits) and self._matters(operand):
                    return operator, operand
        return None

    def _matters(self, operand: RuntimeOperand) -> bool:
        """Whether a result computed from an operand is unconfirmed too."""
        matches = self._result.matches
        return any(
            consumer.is_output
            or consumer.index in self._blocked
            or any(
                o.name not in matches and o.name not in self._confirmed
                for o in consumer.outputs
            )
            or any(
                operand.name in self._result.born[o.name].group
                for o in consumer.outputs
                if o.name in self._result.born
            )
            for consumer in operand.consumers
        )

    def _decide(self, operator: RuntimeOperator, operand: RuntimeOperand) -> None:
        """Match an operand by its evidence and by trial, or leave it unmatched."""
        name, result = operand.name, self._stand_ins.get(operand.name)
        if self._read_inputs_as_theirs(operator) or self._shift_inputs(operator, operand):
            return
        best: tuple[float, Match, tuple[int, ...]] | None = None
        for key, evidence, matched_by, shape, layout in self._possible(
            operator, operand, result
        ):
            score, confidence, why = evidence, min(0.9, 0.3 + 0.15 * evidence), matched_by
            if self._confirms(operand, key, layout, shape):
                score, confidence = score + _CONFIRMED, min(0.95, 0.8 + 0.05 * evidence)
                why = matched_by if evidence >= _TELLING else ALIGNMENT
            if best is None or score > best[0]:
                best = (score, Match(key, why, confidence, layout), shape)
            if score >= _CONFIRMED:
                break
        confirmed = best is not None and best[0] >= _CONFIRMED
        if not confirmed and self._skip(operator, operand, result):
            return
        if best is None or best[0] < _ENOUGH:
            self._given_up.add(name)
            self._refresh(set())
            return
        self._replace(name, best[1], result, best[2])

    def _possible(
        self, operator: RuntimeOperator, operand: RuntimeOperand, result: Value
    ) -> Iterator[tuple[str, float, str, tuple[int, ...], Layout]]:
        """Return the candidates of an operand's size, best first.

        A tensor of a downstream operator that the reference fused with ours is no candidate. If
        weights or name say that it is ours as well, the reference does not show our operand.
        """
        for key, evidence, matched_by in self._candidates(operator, operand, result):
            found = self._matcher.layout(key, self._shapes_of(operand, result))
            if found is None:
                continue
            shape, layout = found
            if not self._is_fused(operand, result, key, layout, shape):
                yield key, evidence, matched_by, shape, layout
            elif matched_by in {WEIGHTS, NAME}:
                return

    def _replace(
        self, operand: str, match: Match, result: Value, shape: tuple[int, ...]
    ) -> None:
        """Match an operand, and recompute the results of its stand-in."""
        waiting = self._waiting.get(operand, frozenset())
        self._match(operand, match, result, shape, waiting)
        self._refresh({operand})

    def _refresh(self, changed: set[str]) -> None:
        """Recompute the results of operands that changed, and compute those that waited."""
        for operator in self._operators:
            if operator.is_output or operator.is_input:
                continue
            stale = any(operand.name in changed for operand in operator.inputs)
            if not stale and operator.index not in self._blocked:
                continue
            names = [operand.name for operand in operator.outputs]
            before = {name: self._forget(name) for name in names}
            self._visit(operator)
            for name, match in before.items():
                now = self._result.matches.get(name)
                if (
                    now is None
                    or match is None
                    or (now.key, now.layout) != (match.key, match.layout)
                ):
                    changed.add(name)

    def _forget(self, operand: str) -> Match | None:
        """Forget an operand's results, and return its match."""
        for known in (self._stand_ins, self._waiting, self._same_as, self._failures):
            known.pop(operand, None)
        self._given_up.discard(operand)
        self._result.born.pop(operand, None)
        match = self._result.matches.pop(operand, None)
        if match is not None and self._taken.get(match.key) == operand:
            del self._taken[match.key]
        return match

    def _candidates(
        self, operator: RuntimeOperator, operand: RuntimeOperand, result: Value
    ) -> Iterator[tuple[str, float, str]]:
        """Return the tensors that may match an operand, with evidence, best first."""
        evidence: dict[str, float] = {}
        matched_by: dict[str, str] = {}

        def add(key: str, amount: float, why: str) -> None:
            evidence[key] = evidence.get(key, 0.0) + amount
            matched_by.setdefault(key, why)

        pinned = self._matcher.outputs.get(operand.name)
        if pinned is not None:
            add(pinned, 4.0, OUTPUT)
        for key, amount, why in self._named(operator):
            add(key, amount, why)
        own = self._inputs_of(operator)
        if isinstance(result, np.ndarray) and is_numeric(result):
            for similar in self._index.similar(result, _ALIKE, own):
                add(similar.key, 2 * (1 - similar.distance), CONTENT)
        near = self._near(own)
        for rank, key in enumerate(self._following(operator, operand, result)):
            add(key, 0.5 - 0.01 * rank + (0.7 if key in near else 0.0), ALIGNMENT)
        free = [
            key
            for key in evidence
            if key == pinned or (key not in own and key not in self._taken)
        ]
        for key in sorted(free, key=lambda key: -evidence[key]):
            yield key, evidence[key], matched_by[key]

    def _named(self, operator: RuntimeOperator) -> Iterator[tuple[str, float, str]]:
        """Return outputs of operators of the same weights, and of the module of that name."""
        if len(operator.outputs) != 1:
            return
        for key in self._anchored(operator):
            yield key, 3.0, WEIGHTS
        for key in self._matcher.modules(operator):
            yield key, 2.5, NAME

    def _following(
        self, operator: RuntimeOperator, operand: RuntimeOperand, result: Value
    ) -> list[str]:
        """Return the next tensors of an operand's size downstream of its inputs, in order."""
        behind = self._behind(operator)
        sizes = {int(np.prod(s, dtype=np.int64)) for s in self._shapes_of(operand, result)}
        keys = [key for size in sizes for key in self._index.of_size(size)]
        places = self._reference.index
        constant = operator.is_constant
        keys = [
            key
            for key in keys
            if (places[key] > behind or constant)
            and (self._reference.by_key[key].role == "constant") == constant
            and key not in self._taken
        ]
        return sorted(keys, key=places.__getitem__)[:_IN_ORDER]

    def _near(self, keys: Collection[str]) -> set[str]:
        """Return tensors that the reference computes from given ones in a few operators."""
        found: set[str] = set()
        level = {key for key in keys if key}
        for _ in range(_AHEAD):
            level = {
                output
                for key in level
                for call in self._reference.consumers.get(key, ())
                for output in call.outputs
            } - found
            found |= level
        return found

    def _is_fused(
        self,
        operand: RuntimeOperand,
        result: Value,
        key: str,
        layout: Layout,
        shape: tuple[int, ...],
    ) -> bool:
        """Whether a tensor belongs rather to a downstream operator that is fused with ours.

        A fused operator stands for the last of its group. That one does not change the tensor,
        as an activation does not change its own output, and its result is nearer.
        """
        value = self._as_ours(operand.name, key, layout, shape)
        if value is None or not isinstance(result, np.ndarray):
            return False
        for consumer in operand.consumers:
            arguments = self._arguments(consumer, {operand.name: value})
            if consumer.is_output or arguments is None:
                continue
            again, _ = self._try(consumer, arguments)
            for output, unchanged in zip(consumer.outputs, again, strict=True):
                given = self._stand_ins.get(output.name)
                if (
                    isinstance(given, np.ndarray)
                    and isinstance(unchanged, np.ndarray)
                    and given.shape == value.shape == result.shape == unchanged.shape
                    and np.array_equal(unchanged, value)
                    and relative_distance(given, value) < relative_distance(result, value)
                ):
                    return True
        return False

    # Trials

    def _confirms(
        self, operand: RuntimeOperand, key: str, layout: Layout, shape: tuple[int, ...]
    ) -> bool:
        """Whether operators downstream give the reference's tensors when they take this one."""
        value = self._as_ours(operand.name, key, layout, shape)
        return value is not None and self._leads_on({operand.name: value}, operand, key)

    def _leads_on(self, values: dict[str, Value], start: RuntimeOperand, key: str) -> bool:
        waiting = {consumer.index: 1 for consumer in start.consumers}
        trials = 0
        while waiting and trials < _MOST_TRIALS:
            index = min(waiting)
            depth = waiting.pop(index)
            operator = self._operators[index]
            if operator.is_output or operator.random:
                continue
            arguments = self._arguments(operator, values)
            if arguments is None:
                continue
            trials += 1
            results, failure = self._try(operator, arguments)
            if failure:
                continue
            for operand, result in zip(operator.outputs, results, strict=True):
                if self._is_new(result, key):
                    return True
                values[operand.name] = result
                if depth < _AHEAD:
                    waiting |= {c.index: depth + 1 for c in operand.consumers}
        return False

    def _is_new(self, result: Value, key: str) -> bool:
        """Whether a result equals a tensor downstream of a given one, and is not only that one.

        What only moves elements, as a permutation, does so with any tensor.
        """
        if not isinstance(result, np.ndarray) or not is_numeric(result) or result.size < 2:
            return False
        if not np.ptp(result.reshape(-1)[: 1 << 16].astype(np.float64, copy=False)):
            return False
        places = self._reference.index
        found = any(
            not self._index.equal(each.key, key)
            and (not self._reference.ordered or places[each.key] > places[key])
            for each in self._index.similar(result, _ROUNDED, {key})
        )
        return found and not _has_same_elements(result, self._reference.array(key))

    def _read_inputs_as_theirs(self, operator: RuntimeOperator) -> bool:
        """Match an input in the reference's own layout, if only then what follows agrees.

        By its elements a tensor is found in any layout; so an operator that permutes or joins
        along other axes than the reference's seems to agree.
        """
        for source in operator.inputs:
            found = self._in_own_layout(source)
            if found is None or not self._leads_on({source.name: found[1]}, source, found[0]):
                continue
            first, key, value = self._first_in_other_layout(source, *found)
            self._shift(first, Match(key, ALIGNMENT, 0.8), value.shape)
            return True
        return False

    def _in_own_layout(self, operand: RuntimeOperand) -> tuple[str, Array] | None:
        """Return the matched tensor as the reference has it; None if that is how ours is."""
        name, producer = operand.name, operand.producer
        match, stand_in = self._result.matches.get(name), self._stand_ins.get(name)
        if producer is None or producer.is_input:
            return None
        if match is not None and match.matched_by != HAND:
            key, layout, ours = match.key, match.layout, self._result.shapes[name]
        elif name in self._same_as and isinstance(stand_in, np.ndarray):
            (key, layout), ours = self._same_as[name], stand_in.shape
        else:
            return None
        shape = self._index.shapes[key]
        if _is_plain(layout, shape, ours):
            return None
        shape = (1,) * (len(ours) - len(shape)) + shape
        value = self._as_ours(name, key, Layout(), shape)
        return (key, value) if value is not None else None

    def _first_in_other_layout(
        self, operand: RuntimeOperand, key: str, value: Array
    ) -> tuple[RuntimeOperand, str, Array]:
        """Return the operand upstream from which on a layout differs, and its tensor."""
        while operand.producer is not None and len(operand.producer.inputs) == 1:
            producer, (source,) = operand.producer, operand.producer.inputs
            found = self._in_own_layout(source)
            if found is None:
                break
            results, failure = self._try(producer, [found[1]])
            result = None if failure else results[producer.outputs.index(operand)]
            if not isinstance(result, np.ndarray) or result.shape != value.shape:
                break
            if relative_distance(result, value) > _ROUNDED:
                break
            operand, (key, value) = source, found
        return operand, key, value

    def _shift_inputs(self, operator: RuntimeOperator, operand: RuntimeOperand) -> bool:
        """Match an input with a tensor further downstream, if the operator then agrees.

        Then an operator whose activation is missing in ours is matched with the activation's
        output.
        """
        for source in operator.inputs:
            match = self._result.matches.get(source.name)
            producer = source.producer
            if match is None or producer is None or producer.is_input:
                continue
            if match.matched_by in {HAND, OUTPUT} or len(producer.outputs) != 1:
                continue
            shape = self._result.shapes[source.name]
            for key in self._after(match.key):
                found = self._matcher.layout(key, [shape])
                if found is None:
                    continue
                other = Match(key, ALIGNMENT, 0.8, found[1])
                value = found[1].to_ours(self._reference.array(key), shape)
                arguments = self._arguments(operator, {source.name: value})
                if arguments is None:
                    continue
                results, failure = self._try(operator, arguments)
                place = operator.outputs.index(operand)
                if not failure and self._is_new(results[place], key):
                    self._shift(source, other, shape)
                    if operand.name not in self._result.matches:
                        self._given_up.add(operand.name)
                    return True
        return False

    def _after(self, key: str) -> list[str]:
        """Return the next tensors of the same size."""
        size = int(np.prod(self._index.shapes[key], dtype=np.int64))
        places = self._reference.index
        keys = [
            each
            for each in self._index.of_size(size)
            if places[each] > places[key] and each not in self._taken
        ]
        near = self._near({key})
        keys.sort(key=lambda each: (each not in near, places[each]))
        return keys[:_AHEAD]

    def _shift(self, operand: RuntimeOperand, match: Match, shape: tuple[int, ...]) -> None:
        producer = operand.producer
        assert producer is not None  # noqa: S101 - the caller has looked
        self._forget(operand.name)
        arguments = self._arguments(producer)
        result: Value = None
        if arguments is not None:
            results, _ = self._try(producer, arguments)
            result = results[producer.outputs.index(operand)]
        self._match(operand.name, match, result, shape)
        self._refresh({operand.name})

    def _skip(self, operator: RuntimeOperator, operand: RuntimeOperand, result: Value) -> bool:
        """Match an operator that the reference lacks with its own input, if that fits."""
        for key in self._inputs_of(operator):
            found = self._matcher.layout(key, self._shapes_of(operand, result)) if key else None
            if found is None:
                continue
            if self._confirms(operand, key, found[1], found[0]):
                match = Match(key, ALIGNMENT, 0.7, found[1])
                self._replace(operand.name, match, result, found[0])
                return True
        return False


def _is_plain(layout: Layout, theirs: tuple[int, ...], ours: tuple[int, ...]) -> bool:
    """Whether two shapes are equal up to axes of size 1, and the elements in the same order."""
    return not layout.axes and [n for n in theirs if n > 1] == [n for n in ours if n > 1]


def _has_same_elements(one: Array, other: Array) -> bool:
    """Whether two tensors may have the same elements in whatever order."""
    if one.size != other.size or one.dtype.kind == "c" or other.dtype.kind == "c":
        return False
    one, other = one.astype(np.float64), other.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        return all(
            np.isclose(measure(one), measure(other), rtol=1e-5)
            for measure in (
                np.min,
                np.max,
                lambda x: np.abs(x).sum(),
                lambda x: np.square(x).sum(),
            )
        )


def _backend_of(session: Session) -> str | dict[str, str]:
    if session.backend != "recorded":
        return session.backend if session.backend != "auto" else "numpy"
    return {record.operator.name: record.kernel for record in session.records}
