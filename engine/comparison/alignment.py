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

import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from engine.array_files import is_numeric
from engine.backends import make_kernels
from engine.comparison.fingerprints import is_telling
from engine.comparison.layouts import Layout, has_same_elements
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
from engine.comparison.measures import Meter, relative_distance
from engine.comparison.pairs import Numbers
from engine.comparison.requantised import dequantise, find_requantised
from engine.cost import is_free
from engine.errors import EngineError
from engine.ncnn.options import NcnnOptions
from engine.ncnn.types import PREFIX, is_quantized
from engine.runtime.executor import run_kernel
from engine.states import OperatorStatus
from engine.text import format_shape
from engine.values import ArrayMetadata, materialise_all

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Collection,
        Hashable,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )

    from engine.backends.kernel import Kernels
    from engine.comparison.fingerprints import FingerprintIndex, Similar
    from engine.comparison.matching import Matcher
    from engine.comparison.references import Reference
    from engine.runtime import RuntimeOperand, RuntimeOperator
    from engine.session import Session
    from engine.values import Array, Value

__all__ = ["Alignment", "Born", "align", "make_kernels_for"]

# Limits on the distance of fingerprints.
_EXACT: Final = 2e-4  # rounding
_ROUNDED: Final = 2e-3  # rounding, float16 included
_CORRELATED: Final = 1 - 1e-6  # rows that are equal up to scale and shift
_CENTRED: Final = 1e-4  # largest mean of a row that is normalized, relative to its deviation
_UNIT: Final = 1e-2  # by how much the deviation of what is normalized differs from 1
_NEAR: Final = 5e-2
_ALIKE: Final = 0.6
_CONFIRMING: Final = 3e-3  # relative to the largest element
_FEW: Final = 1 << 12  # elements that are looked at together
_FEW_RESULTS: Final = 5  # that do not show how much a reference rounds
_RECENT: Final = 64
_UNUSUAL: Final = 30.0  # multiple of the usual rounding
_CLEARLY: Final = 3.0  # times nearer than the next one

_ADDED: Final = 0.1  # share of the tolerance that rounding in one operator may add

_MOST_UNCONFIRMED: Final = 12  # consecutive stand-ins where the reference is dense
_MOST_DECISIONS: Final = 3  # times the number of operators
_IN_ORDER: Final = 32  # tensors tried downstream of the inputs
_AHEAD: Final = 3  # operators that a trial looks ahead
_OF_COMPOSITE: Final = 24  # calls that may compute an attention or a recurrent layer
_TO_BIAS: Final = 2  # calls from a product of matrices to the sum with its bias
_MOST_TRIALS: Final = 4  # operators that one trial runs
_TELLING: Final = 1.5  # evidence that names a match, even if a trial confirms it
_ENOUGH: Final = 2.0  # evidence for a match that no trial confirms
_CONFIRMED: Final = 5.0  # what a trial counts
_OF_SHAPES: Final = frozenset({"shape", "size", "constantofshape"})
_COMPOSITE: Final = re.compile(r"attention|lstm|gru|rnn|einsum")
_LAYER: Final = re.compile(rf"conv|mm$|linear|matmul|innerproduct|{_COMPOSITE.pattern}")


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
    computed : dict of str to Value
        What our operators give on the reference's values, by operand that it does not show.
    numbers : dict of str to Numbers
        Of our run's values, by matched operand, where the walk has measured them.
    by_chance : dict of str to str
        Tensors by operands that have their elements for this input only; these are no matches.
    remarks : dict of str to str
        On matches that could be chance, by operand.
    """

    matches: dict[str, Match] = field(default_factory=dict)
    born: dict[str, Born] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    stand_ins: frozenset[str] = frozenset()
    computed: dict[str, Value] = field(default_factory=dict)
    numbers: dict[str, Numbers] = field(default_factory=dict)
    by_chance: dict[str, str] = field(default_factory=dict)
    remarks: dict[str, str] = field(default_factory=dict)


def align(
    session: Session,
    reference: Reference,
    index: FingerprintIndex,
    matcher: Matcher,
    tolerance: float,
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
    tolerance : float
        Relative distance up to which a value of our run stands for the reference's.
    progress : callable, optional
        Called with the number of operators done and the total; an exception ends the walk.
    """
    return _Walk(session, reference, index, matcher, tolerance).run(progress)


class _Above(NamedTuple):
    """The surroundings of an operator in the reference.

    Attributes
    ----------
    tensors : set of str
        Keys of the nearest tensors upstream that are matched.
    operators : tuple of RuntimeOperator
        Ours from there to the operator, including it.
    steps : int
        How many follow each other.
    """

    tensors: set[str]
    operators: tuple[RuntimeOperator, ...]
    steps: int


class _Walk:
    def __init__(
        self,
        session: Session,
        reference: Reference,
        index: FingerprintIndex,
        matcher: Matcher,
        tolerance: float,
    ) -> None:
        self._session, self._reference, self._tolerance = session, reference, tolerance
        self._index, self._matcher = index, matcher
        self._operators = session.graph.operators
        self._kernels = make_kernels_for(session)
        self._result, self._meter = Alignment(), Meter()
        self._taken: dict[str, str] = {}  # operand by its matched tensor
        # Operands whose value in our run is the one here, up to rounding; their distances.
        self._as_run: dict[str, float] = {}
        self._stand_ins: dict[str, Value] = {}
        self._same_as: dict[str, tuple[str, Layout]] = {}  # stand-ins that they take as input
        # By stand-in: itself and the unconfirmed ones that it was computed from.
        self._waiting: dict[str, frozenset[str]] = {}
        self._confirmed: set[str] = set()
        self._given_up: set[str] = set()
        self._blocked: set[int] = set()
        self._rounding: list[float] = []  # distances of results on the reference's own inputs
        self._weighted: list[float] = []  # those of operators with weights, perhaps float16
        self._failures: dict[str, str] = {}  # by operand without a stand-in
        self._calls = {key: call for call in reference.operators for key in call.outputs}
        # Layers that compute in int8: on the reference's values they are only near it.
        self._quantised = {op.index for op in self._operators if is_quantized(op.params)}
        self._requantised = find_requantised(session.graph)
        dense = 2 * len(index.shapes) >= len(session.graph.operands)
        self._limit = _MOST_UNCONFIRMED if dense else len(self._operators)

    def run(self, progress: Callable[[int, int], None] | None) -> Alignment:
        total = len(self._operators)
        for operator in self._operators:
            if progress is not None:
                progress(operator.index, total)
            self._visit(operator)
        self._decide_all(progress)
        if self._shift_before_origins():
            self._decide_all(progress)
        self._finish()
        return self._result

    def _decide_all(self, progress: Callable[[int, int], None] | None) -> None:
        total = len(self._operators)
        # A decision may undo one downstream, so their number is bounded.
        for _ in range(_MOST_DECISIONS * total):
            open_ = self._first_open()
            if open_ is None:
                break
            if progress is not None:
                progress(open_[0].index, total)
            self._decide(*open_)

    def _shift_before_origins(self) -> bool:
        """Match the inputs of operators that differ further downstream, if they agree then.

        A linear layer without its bias gives a tensor of a reference that adds the bias in a
        call of its own. Return whether an input was matched so.
        """
        shifted, least = False, max(self._tolerance, _CONFIRMING)
        for operator in self._operators:
            for operand in operator.outputs:
                born = self._result.born.get(operand.name)
                if born is not None and born.measured and born.relative > least:
                    shifted |= self._read_inputs_as_theirs(operator) or self._shift_inputs(
                        operator, operand
                    )
        return shifted

    def _finish(self) -> None:
        self._match_ends()
        result = self._result
        for operator in self._operators:
            if operator.index in self._blocked:
                self._match_unreached(operator)
        for name, (key, layout) in self._same_as.items():
            if name in self._stand_ins and name not in result.matches:
                self._match(name, Match(key, CONTENT, 0.8, layout), self._stand_ins[name])
        known = self._confirmed | result.matches.keys()
        for name, born in result.born.items():
            group = tuple(o for o in born.group if o not in known)
            result.born[name] = Born(born.relative, born.note, born.measured, group)
        result.stand_ins = frozenset(self._confirmed - result.matches.keys())
        result.computed = self._stand_ins

    def _match_ends(self) -> None:
        """Match an output with the reference's, if the reference goes on computing.

        Our result is then a tensor within the reference: the model lacks its last operators.
        """
        ends, calls = self._matcher.outputs, len(self._reference.operators)
        used = {match.key for match in self._result.matches.values()}
        for name, key in ends.items():
            match, operand = self._result.matches.get(name), self._session.graph.operand(name)
            if match is None or match.matched_by == HAND or match.key in ends.values():
                continue
            if key in used or operand.producer is None or operand.producer.is_input:
                continue
            shape = self._result.shapes[name]
            found = self._matcher.layout(key, [shape])
            if found is None or key not in self._near({match.key}, calls):
                continue
            inside = self._as_ours(name, match.key, match.layout, shape)
            end = self._as_ours(name, key, found[1], shape)
            if inside is None or end is None or relative_distance(inside, end) <= _EXACT:
                continue
            self._shift(operand, Match(key, OUTPUT, 0.9, found[1]), shape)

    def _match_unreached(self, operator: RuntimeOperator) -> None:
        """Match by name what cannot be computed because an operator upstream fails.

        The reference has it, so the failure is a difference. An operator that has no layer, or
        draws random numbers, is none.
        """
        sources = [o for o in operator.inputs if o.name in self._failures]
        for source in sources:
            producer = source.producer
            if producer is None or producer.error is not None or producer.random:
                return
        if not sources or any(o.name in self._result.matches for o in sources):
            return
        above = self._waiting_for(operator)
        for operand in operator.outputs:
            self._failures[operand.name] = self._failures[sources[0].name]
            self._waiting[operand.name] = above | {operand.name}
            match = self._known(operand, None)
            shape = self._shape_for(match.key, operand, None) if match is not None else None
            if match is not None and shape is not None:
                self._match(operand.name, match, None, shape, above)

    # Visiting the operators

    def _visit(self, operator: RuntimeOperator) -> None:
        if operator.is_output:
            return
        if operator.is_input:
            for operand in operator.outputs:
                self._match_input(operand)
            return
        self._blocked.discard(operator.index)
        waiting = self._waiting_for(operator)
        if len(waiting - self._given_up) > self._limit:
            self._blocked.add(operator.index)
        elif not self._take_run(operator, waiting):
            self._compute(operator, waiting)

    def _compute(self, operator: RuntimeOperator, waiting: frozenset[str]) -> None:
        """Compute an operator from the reference's values, if they are known."""
        self._leave_run(operator.inputs)
        arguments = self._arguments(operator)
        if arguments is None:
            self._blocked.add(operator.index)
            return
        results, failure = self._try(operator, arguments)
        self._settle_all(operator, results, waiting, failure)

    def _take_run(self, operator: RuntimeOperator, waiting: frozenset[str]) -> bool:
        """Take the results of our run, if its inputs were the reference's up to rounding.

        If they agree with the reference's results as well, or are not shown there, the operator
        need not compute again: what it adds to the distance is born there. If it adds more than
        rounding, it computes. Where our run does not agree, nothing changes.
        """
        results = self._results_of_run(operator)
        if results is None:
            return False
        open_ = [o.name for o in operator.outputs if o.name not in self._result.matches]
        above = [self._as_run[operand.name] for operand in operator.inputs]
        inherited = max(above, default=0.0)
        self._settle_all(operator, results, waiting)
        found = {name: self._result.born.get(name, Born(inherited)) for name in open_}
        agrees = all(b.relative <= self._tolerance and not b.note for b in found.values())
        added = {name: max(0.0, born.relative - inherited) for name, born in found.items()}
        if agrees and max(added.values(), default=0.0) <= _ADDED * self._tolerance:
            for name in self._result.born.keys() & added:
                self._result.born[name] = replace(found[name], relative=added[name])
        else:
            before = {name: self._forget(name) for name in open_}
            if not agrees:
                return False
            self._compute(operator, waiting)
            if any(self._result.matches.get(name) != match for name, match in before.items()):
                return True
        self._as_run.update({name: born.relative for name, born in found.items()})
        return True

    def _leave_run(self, operands: Iterable[RuntimeOperand]) -> None:
        """Compute stand-ins that are our run's values from the reference's values instead.

        How far they are from the reference is unknown, because it does not show them.
        """
        level = [*operands]
        producers: dict[int, RuntimeOperator] = {}
        while level:
            operand = level.pop()
            producer = operand.producer
            if producer is None or producer.is_input or operand.name not in self._stand_ins:
                continue
            if self._as_run.pop(operand.name, None) is not None:
                producers[producer.index] = producer
                level += producer.inputs
        for _, producer in sorted(producers.items()):
            arguments = self._arguments(producer)
            if arguments is None:
                continue
            results, failure = self._try(producer, arguments)
            for operand, result in zip(producer.outputs, results, strict=True):
                if operand.name in self._stand_ins and not failure:
                    self._stand_ins[operand.name] = result

    def _results_of_run(self, operator: RuntimeOperator) -> tuple[Value, ...] | None:
        session, record = self._session, self._session.record(operator.name)
        if session.memory_limit is not None:  # they may have to be computed again
            return None
        if record is None or record.status is not OperatorStatus.EXECUTED:
            return None
        if record.overrides or record.random:
            return None
        if any(operand.name not in self._as_run for operand in operator.inputs):
            return None
        return self._dequantise(operator, [session.value(o.name) for o in operator.outputs])

    def _dequantise(
        self, operator: RuntimeOperator, results: Iterable[Value]
    ) -> tuple[Value, ...]:
        scales = self._requantised
        pairs = zip(operator.outputs, results, strict=True)
        return tuple([dequantise(value, scales.get(o.name)) for o, value in pairs])

    def _settle_all(
        self,
        operator: RuntimeOperator,
        results: Sequence[Value],
        waiting: frozenset[str],
        failure: str = "",
    ) -> None:
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
        if operand in self._requantised:
            return np.dtype(np.float32)
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
            with self._session.within_bound():
                results, _ = run_kernel(
                    operator, self._kernels[operator.index], arguments, None
                )
                return self._dequantise(operator, materialise_all(results)), ""
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
                break
        else:
            similar = self._index.similar(fed, _EXACT)
            if similar:
                first = min(similar, key=lambda each: self._reference.index[each.key])
                match = Match(first.key, CONTENT, 0.9, first.layout)
                self._match(name, match, None, fed.shape)
            else:  # the reference does not show the input: take it as the same
                self._stand_ins[name] = fed
        distance = self._distance_of_fed(name, fed)
        if distance <= self._tolerance:
            self._as_run[name] = distance

    def _distance_of_fed(self, operand: str, fed: Array) -> float:
        match = self._result.matches.get(operand)
        if match is None:
            return 0.0
        shape = self._result.shapes[operand]
        theirs = self._as_ours(operand, match.key, match.layout, shape)
        if theirs is None or theirs.shape != fed.shape:
            return np.inf
        return relative_distance(fed, theirs)

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
        similar, unchanged = self._similar(operator, result)
        if not similar or _CLEARLY * unchanged <= similar[0].distance:
            return None
        if similar[0].distance <= _EXACT:
            return self._match_equal(operator, operand, result, similar)
        limit = self._rounding_of(operator, self._waiting_for(operator))
        if operator.is_constant or (certain and similar[0].distance > limit):
            return None
        return self._match_alike(operator, operand, similar, unchanged)

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
        if min([unchanged, *rivals]) < _CLEARLY * best.distance or best.unlike > _ALIKE:
            return None
        if not self._is_placed(operator, operand, best.key):
            return None
        return Match(best.key, CONTENT, 0.6, best.layout)

    def _match_equal(
        self,
        operator: RuntimeOperator,
        operand: RuntimeOperand,
        result: Array,
        similar: Sequence[Similar],
    ) -> Match | None:
        """Match the likeliest of the tensors that are equal up to rounding."""
        bound = max(_EXACT / 10, _CLEARLY * similar[0].distance)
        equal = [each for each in similar if each.distance <= bound]
        if not is_telling(result):
            equal = [e for e in equal if self._is_equal_constant(operator, operand, result, e)]
            if not equal:
                return None
        if any(self._is_of_twin(operator, each.key) for each in equal):
            return None
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

    def _similar(self, operator: RuntimeOperator, result: Array) -> tuple[list[Similar], float]:
        """Return the tensors like a result, without its inputs, and the distance of these.

        An operator that changes little has a result like its own input. What is not clearly
        nearer than that is no match.
        """
        own = self._inputs_of(operator)
        similar = self._index.similar(result, _NEAR)
        inputs = [each for each in similar if each.key in own]
        if inputs:
            similar = self._index.similar(result, _NEAR, own)
        similar = [
            each
            for each in similar
            if not any(self._index.equal(each.key, key) for key in own if key)
        ]
        # An operator that permutes has the elements of its input, too.
        unchanged = [each.distance for each in inputs if not each.layout.axes]
        return similar, min(unchanged, default=np.inf)

    def _is_placed(self, operator: RuntimeOperator, operand: RuntimeOperand, key: str) -> bool:
        """Whether a tensor may be an operand's by more than its elements.

        Its name or weights say so, or the reference computes it from the inputs in a few calls.
        Where the reference does not show the call, the order must do, if it is known.
        """
        named = {*self._matcher.modules(operator), *self._anchored_in_place(operator)}
        named |= self._matcher.layers(operator)
        if key in named or key == self._matcher.outputs.get(operand.name):
            return True
        sources, _, steps = self._above(operator)
        if not sources:
            return True
        if key not in self._calls:
            behind = self._behind(operator)
            return self._reference.ordered and self._reference.index[key] > behind
        return key in self._near(sources, _AHEAD * steps)

    def _has_more_layers(self, operator: RuntimeOperator, key: str) -> bool:
        """Whether more layers than ours lead from the nearest matched tensors to another one.

        Attention and recurrent layers are several in some references.
        """
        sources, between, _ = self._above(operator)
        ours = [each.type for each in between if _is_layer(each.type)]
        if not sources or any(_is_composite(type_) for type_ in ours):
            return False
        return self._layers_to(key, sources, len(ours)) > len(ours)

    def _layers_to(self, key: str, sources: Collection[str], most: int) -> int:
        """Count the layers that lead to a tensor from given ones, up to one more."""
        count, waiting, seen = 0, [key], {*sources}
        while waiting and count <= most:
            each = waiting.pop()
            call = self._calls.get(each)
            if call is None or seen.issuperset(call.outputs):
                continue
            seen.update(call.outputs)
            if _function(call.type) in _OF_SHAPES:  # only sizes lead through it
                continue
            count += _is_layer(call.type)
            waiting += [each for each in call.inputs if each not in seen]
        return count

    def _above(self, operator: RuntimeOperator) -> _Above:
        """Return the nearest matched tensors upstream, and the operators between."""
        found: set[str] = set()
        seen, level, steps = {operator.index: operator}, [operator], 0
        while level and steps < _MOST_UNCONFIRMED:
            steps += 1
            above: list[RuntimeOperator] = []
            for each in level:
                found |= self._inputs_of(each) - {""}
                above += [
                    operand.producer
                    for operand in each.inputs
                    if operand.name not in self._result.matches
                    and operand.producer is not None
                    and operand.producer.index not in seen
                ]
                seen |= {producer.index: producer for producer in above}
            level = above
        return _Above(found, tuple(seen.values()), steps)

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
        if not self._is_placed(operator, operand, similar.key):
            return False
        theirs = self._as_ours(operand.name, similar.key, similar.layout, result.shape)
        return theirs is not None and relative_distance(result, theirs) < _CONFIRMING

    def _rounding_of(self, operator: RuntimeOperator, stand_ins: Collection[str]) -> float:
        """Return how far rounding may take a result that was computed from stand-ins."""
        operands = map(self._session.graph.operand, stand_ins)
        producers = {operator.index, *(o.producer.index for o in operands if o.producer)}
        return _ROUNDED if self._quantised.isdisjoint(producers) else _NEAR

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

    def _anchored_in_place(self, operator: RuntimeOperator) -> tuple[str, ...]:
        """Return the outputs of `_anchored` that are no other layer's.

        If our model has the weights of two layers exchanged, they name the wrong one. Then the
        reference computes a tensor of that size from our operator's inputs by another call of
        the same type.
        """
        keys = self._anchored(operator)
        if not keys:
            return ()
        sources, _, steps = self._above(operator)
        near = self._near(sources, _AHEAD * steps)
        if not near:
            return keys
        rivals = {self._kind_of(key) for key in near.difference(keys)}
        return tuple(
            key
            for key in keys
            if self._kind_of(key) not in rivals
            or (key in near and not self._has_more_layers(operator, key))
        )

    def _kind_of(self, key: str) -> tuple[str, tuple[int, ...] | None]:
        """Return the type of the call that gives a tensor, and the tensor's shape."""
        return self._calls[key].type, self._index.shapes.get(key)

    def _is_of_twin(self, operator: RuntimeOperator, key: str) -> bool:
        """Whether a tensor is of the reference's layer that has another layer's name.

        If two of our layers take the same tensor and have each other's weights, the elements
        name the wrong one.
        """
        own = self._matcher.layers(operator)
        if not own or key in own:
            return False
        twin = self._layers.get(key)
        if twin is None or _shapes_of_weights(twin) != _shapes_of_weights(operator):
            return False
        return not own.isdisjoint(self._anchored(twin))

    @cached_property
    def _layers(self) -> Mapping[str, RuntimeOperator]:
        """Our layers by the outputs of the reference's of the same names."""
        return {key: o for o in self._operators for key in self._matcher.layers(o)}

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
        self._result.numbers.pop(operand, None)
        self._as_run.pop(operand, None)
        self._taken.setdefault(match.key, operand)
        producer = self._session.graph.operand(operand).producer
        computed = producer is not None and not producer.is_input
        if isinstance(result, np.ndarray) or computed:
            born = self._measure(operand, match, result, shape)
            group = tuple(sorted(waiting - {operand}, key=self._place_of))
            self._result.born[operand] = Born(born.relative, born.note, born.measured, group)
            quantised = producer is not None and producer.index in self._quantised
            near = born.relative < (_NEAR if quantised else self._confirming())
            agrees = near and not born.note and _varies(result)
            if not waiting and born.relative < _CONFIRMING:
                self._rounding.append(born.relative)
                if producer is not None and producer.has_attributes:
                    self._weighted.append(born.relative)
            if (
                agrees
                and not self._repeats_upstream(operand, match.key, waiting)
                and not any(self._is_shown(name, match.key) for name in waiting)
            ):
                self._confirmed |= waiting
        self._stand_ins.pop(operand, None)
        self._waiting.pop(operand, None)

    def _repeats_upstream(self, operand: str, key: str, stand_ins: Collection[str]) -> bool:
        """Whether a tensor follows from stand-ins only because these repeat their inputs.

        What another reader of the same tensor gives, an operand upstream has already.
        """
        repeated = any(name in self._same_as for name in stand_ins)
        return repeated and self._is_taken_upstream(key, operand)

    def _confirming(self) -> float:
        """Return the distance up to which a result confirms what it was computed from.

        Where the results so far differ by the rounding of float32, so does a right one; a small
        fault that later layers dilute differs by more.
        """
        if len(self._rounding) < _FEW_RESULTS:
            return _CONFIRMING
        usual = median((self._weighted or self._rounding)[-_RECENT:])
        return min(_CONFIRMING, max(self._tolerance, _UNUSUAL * usual))

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
            array = self._reference.read(match.key)
        except EngineError as exc:
            return Born(1.0, str(exc), measured=False)
        if result.size != array.size:
            shapes = format_shape(result.shape), format_shape(array.shape)
            return Born(1.0, f"it gives {shapes[0]}, the reference {shapes[1]}")
        theirs = match.layout.to_ours(array, shape)
        if result.shape != shape:  # another shape with as many elements
            shapes = format_shape(result.shape), format_shape(shape)
            if self._is_misshapen_above(operand) and not match.layout.axes:
                distance = relative_distance(result.reshape(-1), theirs.reshape(-1))
                if distance <= self._tolerance:
                    return Born(distance)
            return Born(1.0, f"it gives {shapes[0]} instead of {shapes[1]}")
        if self._is_of_run(operand, result):
            measures, *described = self._meter.measure(result, theirs)
            self._result.numbers[operand] = Numbers(measures, *described)
            distance = measures.relative
        else:
            distance = relative_distance(result, theirs)
        return Born(distance if np.isfinite(distance) else 1.0)

    def _is_misshapen_above(self, operand: str) -> bool:
        """Whether an input already has, or is read in, another shape than the reference's."""
        producer = self._session.graph.operand(operand).producer
        result = self._result
        for name in [o.name for o in producer.inputs] if producer is not None else []:
            match, born = result.matches.get(name), result.born.get(name)
            if born is not None and born.note:
                return True
            if match is not None and not _is_plain(
                Layout(), self._index.shapes[match.key], result.shapes[name]
            ):
                return True
        return False

    def _is_of_run(self, operand: str, result: Array) -> bool:
        """Whether a result is the very value of our run, whose measures a row shows."""
        session = self._session
        return session.is_resident(operand) and session.value(operand) is result

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
        calls = _OF_COMPOSITE if _is_composite(producer.type) else _AHEAD
        for other in self._near(own, calls):
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
        self._leave_run([operand])
        name, result = operand.name, self._stand_ins.get(operand.name)
        if (
            self._match_all_of_failed(operator)
            or self._read_inputs_as_theirs(operator)
            or self._shift_inputs(operator, operand)
        ):
            return
        best: tuple[float, Match, tuple[int, ...]] | None = None
        for key, evidence, matched_by, shape, layout in self._possible(
            operator, operand, result
        ):
            score, confidence, why = evidence, min(0.9, 0.3 + 0.15 * evidence), matched_by
            telling = self._has_more_layers(operator, key)
            if self._confirms(operand, key, layout, shape, telling=telling):
                score, confidence = score + _CONFIRMED, min(0.95, 0.8 + 0.05 * evidence)
                why = matched_by if evidence >= _TELLING else ALIGNMENT
            if best is None or score > best[0]:
                best = (score, Match(key, why, confidence, layout), shape)
            if score >= _CONFIRMED:
                break
        confirmed = best is not None and best[0] >= _CONFIRMED
        placed = best is not None and self._is_placed(operator, operand, best[1].key)
        certain = confirmed and placed
        if certain and best is not None and best[1].matched_by in {CONTENT, ALIGNMENT}:
            certain = self._is_next(operator, operand, result, best[1], best[2])
        if not ((confirmed and placed) or self._leads_to_twin(operator)) and self._shift_inputs(
            operator, operand, over_layers=True
        ):
            return
        # The weights of the next layer give its result of this one's input, too.
        beside = confirmed and placed and _is_layer(operator.type)
        if not (certain or beside) and self._skip(operator, operand, result):
            return
        if best is None or not (confirmed or (best[0] >= _ENOUGH and placed)):
            self._given_up.add(name)
            self._refresh(set())
            return
        self._replace(name, best[1], result, best[2])

    def _leads_to_twin(self, operator: RuntimeOperator) -> bool:
        """Whether the next layer could have an operator's weights, and it that layer's.

        With the weights of the next layer an operator agrees with that one's input, too.
        """
        seen, level = set[int](), [operator]
        while level:
            below = [c for each in level for operand in each.outputs for c in operand.consumers]
            found = {each.index: each for each in below if each.index not in seen}
            layers = [each for each in found.values() if _is_layer(each.type)]
            if layers:
                shapes = _shapes_of_weights(operator)
                return operator.has_attributes and shapes in map(_shapes_of_weights, layers)
            seen.update(found)
            level = list(found.values())
        return False

    def _match_all_of_failed(self, operator: RuntimeOperator) -> bool:
        """Match all results of an operator that fails at once, if what follows agrees then.

        Each alone leads nowhere: what follows often reads several of them.
        """
        outputs = operator.outputs
        if len(outputs) < 2 or not all(operand.name in self._failures for operand in outputs):
            return False
        for keys in self._sets_of_results(operator):
            found = [
                self._matcher.layout(key, self._shapes_of(operand, None))
                for key, operand in zip(keys, outputs, strict=True)
            ]
            matched = [
                (operand, key, *each)
                for operand, key, each in zip(outputs, keys, found, strict=True)
                if each is not None
            ]
            values: dict[str, Value] = {
                operand.name: self._as_ours(operand.name, key, layout, shape)
                for operand, key, shape, layout in matched
            }
            if len(matched) < len(outputs) or not any(
                self._leads_on(dict(values), operand, key) for operand, key, *_ in matched
            ):
                continue
            for operand, key, shape, layout in matched:
                waiting = self._waiting.get(operand.name, frozenset())
                self._match(
                    operand.name, Match(key, ALIGNMENT, 0.8, layout), None, shape, waiting
                )
            self._refresh({operand.name for operand in outputs})
            return True
        return False

    def _sets_of_results(self, operator: RuntimeOperator) -> Iterator[tuple[str, ...]]:
        """Return tensors near the inputs of an operator, one for each of its results.

        Of one call; or, where the reference takes the parts one by one, the next ones.
        """
        places, near = self._reference.index, self._near(self._inputs_of(operator))
        keys = sorted(near - self._taken.keys(), key=places.__getitem__)
        count, calls = len(operator.outputs), [self._calls[key].outputs for key in keys]
        yield from dict.fromkeys(c for c in calls if len(c) == count and near.issuperset(c))
        shapes = self._shapes_of(operator.outputs[0], None)
        fits = [key for key in keys if self._matcher.layout(key, shapes) is not None]
        if len(fits) >= count:
            yield tuple(fits[:count])

    def _is_next(
        self,
        operator: RuntimeOperator,
        operand: RuntimeOperand,
        result: Value,
        match: Match,
        shape: tuple[int, ...],
    ) -> bool:
        """Whether the reference computes a tensor from an operator's inputs as its next step.

        What agrees further on belongs rather to another operator of the same kind, and what is
        the input normalized to a normalization downstream.
        """
        if match.key in self._calls and match.key not in self._near(
            self._inputs_of(operator), 1
        ):
            return False
        value = self._as_ours(operand.name, match.key, match.layout, shape)
        return not self._normalizes(operator, value) or self._normalizes(operator, result)

    def _possible(
        self, operator: RuntimeOperator, operand: RuntimeOperand, result: Value
    ) -> Iterator[tuple[str, float, str, tuple[int, ...], Layout]]:
        """Return the candidates of an operand's size, best first.

        A tensor of a downstream operator that the reference fused with ours is no candidate. If
        weights or name say that it is ours as well, the reference does not show our operand. An
        operator that only moves elements gives no others, whatever is wrong with it.
        """
        only_moves = self._only_moves(operator, result)
        without = self._given_without(operator, operand)
        for key, evidence, matched_by in self._candidates(operator, operand, result):
            found = self._matcher.layout(key, self._shapes_of(operand, result))
            if found is None:
                continue
            guessed = only_moves and matched_by in {CONTENT, ALIGNMENT}
            if guessed and not self._has_elements_of(key, result):
                continue  # the reference's operator also computes
            shape, layout = found
            if matched_by in {CONTENT, ALIGNMENT} and key in without:
                continue
            if self._is_step_of_norm(operand, result, key, layout, shape):
                continue
            if not self._is_fused(operand, result, key, layout, shape):
                yield key, evidence, matched_by, shape, layout
            elif matched_by in {WEIGHTS, NAME}:
                return

    def _only_moves(self, operator: RuntimeOperator, result: Value) -> bool:
        """Whether a result has the elements of the reference's input in another order or shape.

        Not if it is the input itself: the reference may compute where we have an identity.
        """
        if not isinstance(result, np.ndarray) or not is_free(operator.type):
            return False
        if len(operator.inputs) != 1 or len(operator.outputs) != 1:
            return False
        name = operator.inputs[0].name
        match = self._result.matches.get(name)
        if match is None or not self._has_elements_of(match.key, result):
            return False
        if result.shape != self._result.shapes[name]:
            return True
        theirs = self._as_ours(name, match.key, match.layout, result.shape)
        return theirs is not None and relative_distance(result, theirs) > _EXACT

    def _has_elements_of(self, key: str, result: Value) -> bool:
        try:
            theirs = self._reference.array(key)
        except EngineError:
            return False
        return isinstance(result, np.ndarray) and has_same_elements(theirs, result)

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
        self._as_run.pop(operand, None)
        self._result.born.pop(operand, None)
        match = self._result.matches.pop(operand, None)
        if match is not None and self._taken.get(match.key) == operand:
            del self._taken[match.key]
        return match

    def _candidates(
        self, operator: RuntimeOperator, operand: RuntimeOperand, result: Value
    ) -> Iterator[tuple[str, float, str]]:
        """Return the tensors that may match an operand, with evidence, best first.

        A copy of a tensor that an operand upstream has is none, unless the result equals it.
        """
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
        own, equal = self._inputs_of(operator), set()
        if isinstance(result, np.ndarray) and is_numeric(result):
            for similar in self._index.similar(result, _ALIKE, own):
                if similar.distance <= _EXACT:
                    equal.add(similar.key)
                add(similar.key, 2 * (1 - max(similar.distance, similar.unlike)), CONTENT)
        near = self._near(own)
        for rank, key in enumerate(self._following(operator, operand, result)):
            add(key, 0.5 - 0.01 * rank + (0.7 if key in near else 0.0), ALIGNMENT)
        twins = [key for key in evidence if self._is_of_twin(operator, key)]
        others = own.union(*(self._index.copies(key) for key in twins))
        free = [
            key
            for key in evidence
            if key == pinned or (key not in others and key not in self._taken)
        ]
        free.sort(key=lambda key: -evidence[key])
        for key in self._before_readers(operand, free):
            guessed = matched_by[key] in {CONTENT, ALIGNMENT} and key not in equal
            if not guessed or not self._is_taken_upstream(key, operand.name):
                yield key, evidence[key], matched_by[key]

    def _before_readers(self, operand: RuntimeOperand, keys: Sequence[str]) -> list[str]:
        """Return tensors, the input of a call that our reader makes before its output.

        Where a sum before a ReLU is lost, say, what is left may be like the ReLU's output.
        """
        functions = {_function(consumer.type) for consumer in operand.consumers}
        found: list[str] = []
        for key in keys:
            call = self._calls.get(key)
            if call is not None and _function(call.type) in functions:
                found += [each for each in call.inputs if each in keys]
            found.append(key)
        return list(dict.fromkeys(found))

    def _named(self, operator: RuntimeOperator) -> Iterator[tuple[str, float, str]]:
        """Return outputs of operators of the same weights, and of the module of that name."""
        if len(operator.outputs) != 1:
            return
        layers = self._matcher.layers(operator)
        for key in self._anchored_in_place(operator):
            yield self._end_of_layer(key, layers), 3.0, WEIGHTS
        for key in self._matcher.modules(operator):
            yield key, 2.5, NAME
        for key in layers:
            yield key, 2.5, NAME

    def _end_of_layer(self, key: str, layers: Collection[str]) -> str:
        """Return the last tensor of a layer that the reference computes in several calls.

        Such as a product of matrices, and a sum with the bias, which may be the wrong weight.

        Parameters
        ----------
        layers : collection of str
            All tensors that the reference computes with weights of the layer's name.
        """
        others = self._near({key}, _TO_BIAS).intersection(layers)
        ends = [each for each in others if not _is_layer(self._calls[each].type)]
        return max(ends, key=self._reference.index.__getitem__, default=key)

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

    def _near(self, keys: Collection[str], calls: int = _AHEAD) -> set[str]:
        """Return tensors that the reference computes from given ones in a few calls."""
        found: set[str] = set()
        level = {key for key in keys if key}
        for _ in range(calls):
            level = {
                output
                for key in level
                for call in self._reference.consumers.get(key, ())
                for output in call.outputs
            } - found
            found |= level
        return found

    def _given_without(self, operator: RuntimeOperator, operand: RuntimeOperand) -> set[str]:
        """Return the tensors that what reads a function gives of the function's own input.

        If they are the reference's, the function is one too many, or changes nothing.
        """
        if operator.has_attributes or len(operator.inputs) != 1 or len(operand.consumers) != 1:
            return set()
        (reader,), arguments = operand.consumers, self._arguments(operator)
        if reader.is_output or reader.random or arguments is None:
            return set()
        given = self._arguments(reader, {operand.name: arguments[0]})
        results, failure = self._try(reader, given) if given is not None else ((), "unknown")
        if failure or not isinstance(results[0], np.ndarray) or not is_numeric(results[0]):
            return set()
        similar = self._index.similar(results[0], _EXACT)
        return {each.key for each in similar} - self._inputs_of(operator)

    def _is_step_of_norm(
        self,
        operand: RuntimeOperand,
        result: Value,
        key: str,
        layout: Layout,
        shape: tuple[int, ...],
    ) -> bool:
        """Whether a tensor belongs rather inside a normalization that reads an operand.

        Some references normalize, scale and shift in calls of their own. What is normalized
        already is confirmed by the normalization, which does not change it.
        """
        if _is_normalized(result) or not any(
            "norm" in _function(consumer.type) for consumer in operand.consumers
        ):
            return False
        return _is_normalized(self._as_ours(operand.name, key, layout, shape))

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
        self,
        operand: RuntimeOperand,
        key: str,
        layout: Layout,
        shape: tuple[int, ...],
        *,
        telling: bool = False,
    ) -> bool:
        """Whether operators downstream give the reference's tensors when they take this one.

        A plain function, such as a ReLU, gives them of every tensor that the reference applies
        it to. With `telling` an operator with weights or another input must be among them.
        """
        value = self._as_ours(operand.name, key, layout, shape)
        if value is None:
            return False
        return self._leads_on({operand.name: value}, operand, key, telling=telling)

    def _leads_on(
        self,
        values: dict[str, Value],
        start: RuntimeOperand,
        key: str,
        *,
        telling: bool = False,
        reader: RuntimeOperator | None = None,
    ) -> bool:
        """Whether what follows an operand, or only one reader, gives tensors further on."""
        readers = start.consumers if reader is None else (reader,)
        waiting = {consumer.index: 1 for consumer in readers}
        trials, limit = 0, _ROUNDED
        told: set[str] = set()
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
            limit = _NEAR if index in self._quantised else limit
            results, failure = self._try(operator, arguments)
            if failure:
                continue
            tells = operator.has_attributes or len(operator.inputs) > 1
            tells = tells or any(operand.name in told for operand in operator.inputs)
            for operand, result in zip(operator.outputs, results, strict=True):
                if (tells or not telling) and self._is_new(operand.name, result, key, limit):
                    return True
                values[operand.name] = result
                told |= {operand.name} if tells else set()
                if depth < _AHEAD:
                    waiting |= {c.index: depth + 1 for c in operand.consumers}
        return False

    def _is_new(self, operand: str, result: Value, key: str, limit: float = _ROUNDED) -> bool:
        """Whether a result equals a tensor downstream of a given one, and is not only that one.

        What only moves elements, as a permutation, does so with any tensor. A tensor that an
        operand upstream has confirms nothing either: a normalization gives it again from twice
        its input.
        """
        if not isinstance(result, np.ndarray) or not is_numeric(result) or result.size < 2:
            return False
        if not np.ptp(result.reshape(-1)[: 1 << 16].astype(np.float64, copy=False)):
            return False
        places = self._reference.index
        found = any(
            not self._index.equal(each.key, key)
            and (not self._reference.ordered or places[each.key] > places[key])
            and not self._is_taken_upstream(each.key, operand)
            for each in self._index.similar(result, limit, {key})
        )
        return found and not has_same_elements(result, self._reference.array(key))

    def _is_taken_upstream(self, key: str, operand: str) -> bool:
        """Whether a tensor, or a copy of it, is matched with an operand before a given one."""
        place = self._place_of(operand)
        return any(
            other in self._taken and self._place_of(self._taken[other]) < place
            for other in self._index.copies(key)
        )

    def _read_inputs_as_theirs(self, operator: RuntimeOperator) -> bool:
        """Match an input in the reference's own layout, if only then what follows agrees.

        By its elements a tensor is found in any layout; so an operator that permutes or joins
        along other axes than the reference's seems to agree.
        """
        for source in operator.inputs:
            found = self._in_own_layout(source)
            if found is None or not self._leads_on(
                {source.name: found[1]}, source, found[0], reader=operator
            ):
                continue
            first, key, value = self._first_in_other_layout(source, *found)
            self._shift(first, Match(key, ALIGNMENT, 0.8), value.shape)
            return True
        return any(self._read_as_shaped(operator, source) for source in operator.inputs)

    def _read_as_shaped(self, operator: RuntimeOperator, source: RuntimeOperand) -> bool:
        """Match an operand with the reference's axes of size 1, if what follows needs them.

        What keeps or drops such axes has the right elements, and only its readers refuse them.
        """
        shaped = self._as_shaped(source)
        if not shaped:
            return False
        match, shape = self._result.matches[source.name], self._result.shapes[source.name]
        theirs = self._index.shapes[match.key]
        if shape == (1, *theirs) or (
            _without_batch(shape) == _without_batch(theirs)
            and not any(operand.name in self._failures for operand in operator.outputs)
        ):
            return False  # references without a batch have the same axes at other places
        ours = self._as_ours(source.name, match.key, match.layout, shape)
        if self._leads_on({source.name: ours}, source, match.key, reader=operator):
            return False
        for value in shaped:
            if self._leads_on({source.name: value}, source, match.key, reader=operator):
                first, shape = self._first_shaped(source, value.shape)
                match = replace(self._result.matches[first.name], matched_by=ALIGNMENT)
                self._shift(first, match, shape)
                return True
        return False

    def _as_shaped(self, operand: RuntimeOperand) -> list[Array]:
        """Return the matched tensor with the reference's axes of size 1, if ours are others."""
        match, producer = self._result.matches.get(operand.name), operand.producer
        if match is None or match.matched_by == HAND or match.layout.axes:
            return []
        if producer is None or producer.is_input or producer.is_constant:
            return []
        theirs, ours = self._index.shapes[match.key], self._result.shapes[operand.name]
        if ours == theirs:
            return []
        found = [
            self._as_ours(operand.name, match.key, match.layout, shape)
            for shape in (theirs, (1, *theirs))
            if shape != ours
        ]
        return [value for value in found if value is not None]

    def _first_shaped(
        self, operand: RuntimeOperand, shape: tuple[int, ...]
    ) -> tuple[RuntimeOperand, tuple[int, ...]]:
        """Return the operand upstream from which on axes of size 1 differ, and its shape."""
        while operand.producer is not None and len(operand.producer.inputs) == 1:
            producer, (source,) = operand.producer, operand.producer.inputs
            for before in self._as_shaped(source):
                results, failure = self._try(producer, [before])
                result = None if failure else results[producer.outputs.index(operand)]
                if isinstance(result, np.ndarray) and result.shape == shape:
                    operand, shape = source, before.shape
                    break
            else:
                break
        return operand, shape

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

    def _shift_inputs(
        self, operator: RuntimeOperator, operand: RuntimeOperand, *, over_layers: bool = False
    ) -> bool:
        """Match an input with a tensor further downstream, if the operator then agrees.

        Then an operator whose activation is missing in ours is matched with the activation's
        output. An input that is only normalized stays: a normalization gives the same twice.
        Layers between are passed only with `over_layers`: an operator with the weights of a
        later one agrees with that one's input, too.
        """
        for source in operator.inputs:
            match = self._result.matches.get(source.name)
            producer = source.producer
            if match is None or producer is None or producer.is_input:
                continue
            if match.matched_by in {HAND, OUTPUT} or len(producer.outputs) != 1:
                continue
            shape = self._result.shapes[source.name]
            born = self._result.born.get(source.name, Born(np.inf)).relative
            if born > self._tolerance and operand.name in self._result.matches:
                continue
            now = self._as_ours(source.name, match.key, match.layout, shape)
            moves = self._only_moves(producer, now)
            after = self._after(match.key, over_layers=over_layers)
            for key in dict.fromkeys([*self._beside(source, match.key), *after]):
                found = self._matcher.layout(key, [shape])
                if found is None or (moves and not self._has_elements_of(key, now)):
                    continue
                other = Match(key, ALIGNMENT, 0.8, found[1])
                value = found[1].to_ours(self._reference.array(key), shape)
                arguments = self._arguments(operator, {source.name: value})
                if arguments is None:
                    continue
                results, _ = self._try(operator, arguments)
                result = results[operator.outputs.index(operand)]
                if (
                    self._is_new(operand.name, result, key)
                    and self._is_match(operand.name, result)
                    and not _is_normalized_of(value, now)
                ):
                    if not self._is_one_too_many(operator, operand):
                        self._shift(source, other, shape)
                        self._give_up_unmatched(operand)
                    return True
        return False

    def _is_one_too_many(self, operator: RuntimeOperator, operand: RuntimeOperand) -> bool:
        """Match an operator without weights with its own input, if what follows agrees then."""
        if operand.name in self._result.matches or operator.has_attributes:
            return False
        return self._skip(operator, operand, self._stand_ins.get(operand.name))

    def _give_up_unmatched(self, operand: RuntimeOperand) -> None:
        if operand.name not in self._result.matches:
            self._given_up.add(operand.name)

    def _is_match(self, operand: str, result: Value) -> bool:
        """Whether a result is the tensor that an operand is matched with, if it is."""
        match = self._result.matches.get(operand)
        if match is None:
            return True
        shape = self._result.shapes[operand]
        return self._measure(operand, match, result, shape).relative <= _ROUNDED

    def _normalizes(self, operator: RuntimeOperator, value: Value) -> bool:
        """Whether a tensor is an input of an operator, normalized."""
        arguments = self._arguments(operator) or []
        return any(_is_normalized_of(value, each) for each in arguments)

    def _after(self, key: str, *, over_layers: bool) -> list[str]:
        """Return the next tensors of the same size, those behind layers only on demand."""
        size = int(np.prod(self._index.shapes[key], dtype=np.int64))
        places = self._reference.index
        keys = [
            each
            for each in self._index.of_size(size)
            if places[each] > places[key] and each not in self._taken
        ]
        near = self._near({key})
        keys.sort(key=lambda each: (each not in near, places[each]))
        return [k for k in keys[:_AHEAD] if over_layers or not self._layers_to(k, {key}, 0)]

    def _beside(self, operand: RuntimeOperand, key: str) -> list[str]:
        """Return tensors of other calls that read the same, if two of our operands have one.

        A cosine that is a sine in ours has the tensor of the sine beside it.
        """
        producer, matches = operand.producer, self._result.matches
        shared = [name for name, match in matches.items() if match.key == key]
        if producer is None or len(shared) < 2:
            return []
        near = self._near(self._inputs_of(producer), 1)
        size = int(np.prod(self._index.shapes[key], dtype=np.int64))
        keys = [each for each in self._index.of_size(size) if each in near]
        return [each for each in keys if each not in self._taken]

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


def _is_layer(type_: str) -> bool:
    """Whether a type multiplies by matrices, which others do not make up for."""
    return _LAYER.search(_function(type_)) is not None


def _is_composite(type_: str) -> bool:
    """Whether some libraries compute a type by several layers."""
    return _COMPOSITE.search(_function(type_)) is not None


def _shapes_of_weights(operator: RuntimeOperator) -> Hashable:
    """Return what layers have in common that can have each other's weights."""
    return operator.type, tuple([(n, each.shape) for n, each in operator.attributes.items()])


def _function(type_: str) -> str:
    return type_.rpartition(".")[2].rpartition("::")[2].lower()


def _is_normalized_of(value: Value, other: Value) -> bool:
    """Whether a tensor is another one with each row scaled and shifted, and means of 0.

    A row has the elements of a sample, of a channel, or along the last axis. The mean of groups
    of them is 0, so that of a sample is.
    """
    if not isinstance(value, np.ndarray) or not isinstance(other, np.ndarray):
        return False
    if (
        value.shape != other.shape
        or value.dtype.kind != "f"
        or value.ndim < 2
        or not value.size
    ):
        return False
    samples = value.reshape(len(value), -1).astype(np.float64)
    if (np.abs(samples.mean(1)) > _CENTRED * samples.std(1)).any():
        return False
    for length in {samples.shape[1], value[:1, :1].size, value.shape[-1]} - {1, 2}:
        rows = [each.reshape(-1, length).astype(np.float64) for each in (value, other)]
        one, two = (each - each.mean(1, keepdims=True) for each in rows)
        norms = np.linalg.norm(one, axis=1) * np.linalg.norm(two, axis=1)
        products = np.abs((one * two).sum(1))
        if (norms > 0).all() and (products >= _CORRELATED * norms).all():
            return True
    return False


def _is_normalized(value: Value) -> bool:
    """Whether each sample has a mean of 0 and a deviation of 1."""
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f" or value.ndim < 2:
        return False
    samples = value.reshape(len(value), -1).astype(np.float64)
    means, deviations = samples.mean(1), samples.std(1)
    return bool((np.abs(means) < _CENTRED).all() and (np.abs(deviations - 1) < _UNIT).all())


def _varies(result: Value) -> bool:
    """Whether a result is a tensor of unequal elements; a constant confirms nothing."""
    if not isinstance(result, np.ndarray) or not result.size:
        return False
    flat, first = result.reshape(-1), result.flat[0]
    return any((flat[at : at + _FEW] != first).any() for at in range(0, flat.size, _FEW))


def _is_plain(layout: Layout, theirs: tuple[int, ...], ours: tuple[int, ...]) -> bool:
    """Whether two shapes are equal up to axes of size 1, and the elements in the same order."""
    return not layout.axes and [n for n in theirs if n > 1] == [n for n in ours if n > 1]


def _without_batch(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape without leading axes of size 1, which references add and drop."""
    return shape[next((n for n, size in enumerate(shape) if size != 1), len(shape)) :]


def make_kernels_for(session: Session) -> Kernels:
    """Make the kernels that compute a session's operators on a reference's values."""
    return make_kernels(
        _backend_of(session),
        session.graph.operators,
        session.excluded,
        NcnnOptions.parse(session.ncnn_options),
    )


def _backend_of(session: Session) -> str | dict[str, str]:
    """Return what computes: the session's kernels, or NumPy where the session chooses freely.

    Layers of ncnn's format always run as the session has run them.
    """
    operators = session.graph.operators
    if session.backend == "recorded":
        return {record.operator.name: record.kernel for record in session.records}
    of_ncnn = bool(operators) and operators[0].type.startswith(PREFIX)
    return "numpy" if session.backend == "auto" and not of_ncnn else session.backend
