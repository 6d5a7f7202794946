"""Compares a session with a reference and finds the operators where differences begin."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.array_files import is_numeric
from engine.comparison.aligning import align
from engine.comparison.corrections import read_corrections
from engine.comparison.explaining import Explainer, Known
from engine.comparison.fingerprints import FingerprintIndex
from engine.comparison.known_weights import KnownWeights
from engine.comparison.matching import Matcher
from engine.comparison.measures import Meter, Tolerances, relative_distance
from engine.comparison.pairs import Pair, measure_pair
from engine.comparison.references import open_reference_for
from engine.comparison.references.sessions import names_of_members, run_to_end
from engine.comparison.requantised import dequantise, find_requantised
from engine.comparison.rounded_weights import (
    explain_by_float16,
    explain_by_int8,
    explain_by_reference_int8,
    find_clipping,
)
from engine.comparison.rows import (
    Comparison,
    Origin,
    Row,
    Status,
    Unmatched,
    UnmatchedTensor,
    is_empty,
)
from engine.comparison.second_input import check_with_second_input
from engine.comparison.spans import Span
from engine.comparison.ties import is_tie
from engine.errors import EngineError, ParameterError
from engine.ncnn.options import NcnnOptions
from engine.ncnn.types import PREFIX, is_quantized
from engine.states import OperatorStatus
from engine.text import format_brief, format_names, format_shape
from engine.threads import thread_count
from engine.values import ArrayMetadata

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from engine.comparison.aligning import Alignment, Born
    from engine.comparison.explaining import Explained
    from engine.comparison.matching import Match
    from engine.comparison.measures import Measures
    from engine.comparison.references import Reference
    from engine.runtime import RuntimeGraph, RuntimeOperand, RuntimeOperator
    from engine.session import Session
    from engine.values import Array, Value

__all__ = ["compare"]

_SHARE_BEFORE: Final = 0.9  # share of the elements within a thousandth at the inputs
_SHARE_BEHIND: Final = 0.6  # the same at the output, for an operator that could not run
_ROUNDED: Final = 1e-6  # relative distance that rounding in one operator reaches
_ACCUMULATED: Final = 10.0  # multiple of the tolerance that rounding may reach downstream
_ULPS: Final = 4.0  # times what one rounding of the inputs changes, that rounding may add
_TRIALS: Final = 2  # of such a rounding
_SUSPECT: Final = 20.0  # multiple of the typical rounding of the operators
_BY_CHANCE: Final = "holds for one input only"
_IN_16_BITS: Final = "ncnn stores numbers in 16 bits, as the options of the run have it"


def compare(
    session: Session,
    reference: Reference | Session | RuntimeGraph | str | Path,
    tolerances: Tolerances | float | None = None,
    *,
    corrections: Mapping[str, str | None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Compare a session with a reference.

    Parameters
    ----------
    session : Session
        With inputs; not changed. If it has not finished, a copy runs to the end.
    reference : Reference, or what `engine.open_reference` takes
    tolerances : Tolerances or float, optional
        A number is the tolerance for float32.
    corrections : mapping of str to str or None, optional
        By our operand, the key of the reference's tensor, or None for an operand without one;
        default the matches in the file beside the model.
    progress : callable, optional
        Called with the number of operators done and the total, also while a copy or a reference
        runs; an exception ends the comparison.

    Returns
    -------
    Comparison

    Raises
    ------
    SessionStateError
        If the session has no input.
    ReferenceFileError, DumpFileError
        If the reference cannot be read.
    """
    if not isinstance(tolerances, Tolerances):
        tolerances = Tolerances() if tolerances is None else Tolerances(float32=tolerances)
    run = run_to_end(session, progress)
    reference = open_reference_for(run, reference, progress)
    if corrections is None:
        corrections = read_corrections(run.graph.source_path, reference.title)
    count = len(run.graph.operators)

    def check_cancelled() -> None:
        if progress is not None:
            progress(count, count)

    # NumPy warns of a signalling NaN, which a file may hold, when it converts it.
    with np.errstate(invalid="ignore"), _arranging_values(run):
        index = FingerprintIndex(reference)
        matcher = Matcher(run.graph, reference, index, corrections)
        alignment = align(run, reference, index, matcher, tolerances.float32, progress)
        check_with_second_input(
            run, reference, index, matcher, alignment, tolerances.float32, progress
        )
        report = _Report(run, reference, index, matcher, alignment, tolerances, check_cancelled)
        return report.make()


@contextmanager
def _arranging_values(session: Session) -> Iterator[None]:
    """Arrange a session's values on another thread, ahead of the block that reads them.

    A library leaves them in its own layout until they are first read.
    """
    if session.memory_limit is not None or thread_count() < 2:
        yield
        return
    names = [o.name for operator in session.graph.operators for o in operator.outputs]

    def arrange() -> None:
        for name in names:
            if session.is_resident(name):
                session.value(name)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(arrange)  # what it raises, the first reader of the value meets again
        yield


class _Report:
    """Makes the rows of an alignment."""

    def __init__(
        self,
        session: Session,
        reference: Reference,
        index: FingerprintIndex,
        matcher: Matcher,
        alignment: Alignment,
        tolerances: Tolerances,
        check_cancelled: Callable[[], None],
    ) -> None:
        self._session, self._reference, self._index = session, reference, index
        self._matcher, self._alignment, self._tolerances = matcher, alignment, tolerances
        self._requantised = find_requantised(session.graph)
        options = NcnnOptions.parse(session.ncnn_options).enabled
        self._in_16_bits = _is_of_ncnn(session) and not options.isdisjoint({"fp16", "bf16"})
        self._rows: dict[str, Row] = {}
        self._rounded: set[str] = set()  # operands whose operators err by rounding only
        self._known = Known(
            self._our_value, self._reference_array, alignment.computed, self._is_shown,
            self._repeats, self._is_same, KnownWeights(reference, self._key_of),
        )  # fmt: skip
        self._check_cancelled = check_cancelled
        self._explainer = Explainer(self._known, check_cancelled)

    def make(self) -> Comparison:
        for pair in self._pairs(Meter()):
            self._check_cancelled()
            self._rows[pair.operand.name] = self._row(pair)
        self._blame_refused()
        self._excuse_rounding()
        self._excuse_corrected()
        rows = tuple(self._rows.values())
        origins = self._origins(rows) + self._refused()
        origins = origins or self._failed()
        differs = bool(origins) or self._has_unexcused()
        if differs and not origins:
            self._measure_born()
            origins = self._suspects()
            differs = bool(origins) or not self._excuse_amplified()
        self._mark_excused()
        self._add_remarks()
        rows, unmatched = tuple(self._rows.values()), self._unmatched()
        return Comparison(
            "differs" if differs or is_empty(rows, unmatched) else "same",
            rows,
            origins,
            unmatched,
            self._reference.title,
            self._tolerances,
            self._missing_outputs(),
        )

    def _missing_outputs(self) -> tuple[str, ...]:
        compared = {name for name, row in self._rows.items() if row.measures is not None}
        outputs = self._session.graph.output_operands
        names = [name for operand in outputs for name in names_of_members(operand)]
        return tuple([name for name in names if name not in compared])

    # Rows

    def _pairs(self, meter: Meter) -> Iterator[Pair]:
        for operator in self._session.graph.operators:
            for operand in operator.outputs:
                match = self._alignment.matches.get(operand.name)
                if match is not None:
                    yield self._measured(operator, operand, match) or self._pair(
                        operator, operand, match, meter
                    )

    def _measured(
        self, operator: RuntimeOperator, operand: RuntimeOperand, match: Match
    ) -> Pair | None:
        """Return a pair that the walk has measured, without reading the reference again."""
        numbers = self._alignment.numbers.get(operand.name)
        if numbers is None:
            return None
        ours = self._session.metadata(operand.name)
        assert isinstance(ours, ArrayMetadata)  # noqa: S101 - only tensors are measured
        assert numbers.reference_statistics is not None  # noqa: S101 - so is the reference's
        theirs = ArrayMetadata(ours.shape, numbers.reference_statistics.dtype)
        return Pair(operator, operand, match, ours, theirs, numbers, "")

    def _pair(
        self, operator: RuntimeOperator, operand: RuntimeOperand, match: Match, meter: Meter
    ) -> Pair:
        theirs, ours, reason = None, None, ""
        try:
            theirs = self._reference.read(match.key)
            theirs = match.layout.to_ours(theirs, self._alignment.shapes[operand.name])
            scale = self._requantised.get(operand.name)
            value = dequantise(self._session.value(operand.name), scale)
            ours = value if isinstance(value, np.ndarray) and is_numeric(value) else None
        except EngineError as exc:
            reason = str(exc)
        if ours is not None and theirs is not None and ours.shape != theirs.shape:
            reason = (
                f"it is {format_shape(ours.shape)}, the reference {format_shape(theirs.shape)}"
            )
        numbers = measure_pair(ours, theirs, meter)
        shown = _metadata_of(ours), _metadata_of(theirs)
        return Pair(operator, operand, match, shown[0], shown[1], numbers, reason)

    def _row(self, pair: Pair) -> Row:
        operator, operand, match, ours, theirs, numbers, reason = pair
        born, measures = self._alignment.born.get(operand.name), numbers.measures
        tolerance = self._tolerances.of(theirs) if theirs is not None else 0.0
        status, why = self._status(operator, operand, born, measures, theirs, tolerance)
        number = born.relative if born is not None and born.measured else None
        if operator.is_input and measures is not None:
            number = _finite(measures.relative)
        return Row(
            operator=operator.label,
            operand=operand.name,
            reference=match.key,
            matched_by=match.matched_by,
            confidence=round(match.confidence, 3),
            layout=match.layout,
            shape=ours.shape if ours is not None else None,
            reference_shape=self._index.shapes.get(match.key),
            dtype=ours.dtype.name if ours is not None else "",
            reference_dtype=theirs.dtype.name if theirs is not None else "",
            measures=measures,
            statistics=numbers.statistics,
            reference_statistics=numbers.reference_statistics,
            born=number,
            inherited=_inherited(measures, number),
            amplification=self._amplification(operator, measures),
            status=status,
            reason=why or reason,
        )

    def _amplification(
        self, operator: RuntimeOperator, measures: Measures | None
    ) -> float | None:
        before = [
            row.measures.relative
            for operand in operator.inputs
            for row in (self._rows.get(operand.name),)
            if row is not None and row.measures is not None
        ]
        largest = max(before, default=0.0)
        if measures is None or not largest or not math.isfinite(largest):
            return None
        return measures.relative / largest

    def _status(
        self,
        operator: RuntimeOperator,
        operand: RuntimeOperand,
        born: Born | None,
        measures: Measures | None,
        theirs: ArrayMetadata | None,
        tolerance: float,
    ) -> tuple[Status, str]:
        """Return the status of a row, and a remark on it."""
        agrees = measures is not None and (
            measures.relative <= tolerance or self._agrees_as_bytes(operand, measures, theirs)
        )
        if operator.random:
            return Status.RANDOM, "both have drawn random numbers"
        if operator.is_input:
            return (Status.SAME if agrees else Status.ORIGIN), ""
        note = born.note if born is not None else ""
        if born is not None and born.measured and (born.relative > tolerance or note):
            return self._excused(operator, operand, born, tolerance)
        if agrees:
            return Status.SAME, ""
        if measures is None:
            return Status.NOT_COMPARED, note
        if born is not None and born.measured:
            return Status.INHERITED, ""
        if self._falls(operator, measures):
            return Status.ORIGIN, note
        return Status.NOT_COMPARED, note

    def _agrees_as_bytes(
        self, operand: RuntimeOperand, measures: Measures, metadata: ArrayMetadata | None
    ) -> bool:
        """Whether 8-bit integers agree up to the rounding of what they were made from."""
        if metadata is None or metadata.dtype not in {np.dtype(np.int8), np.dtype(np.uint8)}:
            return False
        theirs = self._reference_array(operand)
        if theirs is None:
            return False
        largest = float(np.abs(theirs.astype(np.float64)).max(initial=0.0)) or 1.0
        near = measures.cosine is None or measures.cosine >= self._tolerances.cosine
        return near and measures.rmse / largest <= self._tolerances.rmse

    def _falls(self, operator: RuntimeOperator, measures: Measures) -> bool:
        """Whether the share within a thousandth drops from the inputs to the output."""
        before = [
            row.measures.within_permille
            for operand in operator.inputs
            for row in (self._rows.get(operand.name),)
            if row is not None and row.measures is not None
        ]
        return (
            bool(before)
            and min(before) > _SHARE_BEFORE
            and measures.within_permille < _SHARE_BEHIND
        )

    def _excused(
        self,
        operator: RuntimeOperator,
        operand: RuntimeOperand,
        born: Born,
        tolerance: float,
    ) -> tuple[Status, str]:
        """Return the status and reason that excuse a difference, or those of an origin."""
        theirs = self._reference_array(operand) if not born.note else None
        if theirs is None:
            return Status.ORIGIN, born.note
        span, scale = Span.above(operand, self._is_shown), self._requantised.get(operand.name)
        given = cache(self._given)  # reading a tensor may take longer than the operator

        def compute(
            twins: Sequence[RuntimeOperator], instead: Mapping[str, Value] | None = None
        ) -> Array | None:
            self._check_cancelled()

            def value(of: RuntimeOperand) -> Value:
                others = instead or {}
                return others[of.name] if of.name in others else given(of)

            found = dequantise(span.compute(value, twins), scale)
            return found if isinstance(found, np.ndarray) else None

        ours = cache(partial(compute, ()))
        arguments = self._reference_inputs(operator)
        quantised = [each for each in span.operators if is_quantized(each.params)]
        is_known = len(arguments) == len(operator.inputs)
        found = ours() if is_known or quantised else None
        if found is not None and is_known:
            ties = self._tolerances.float32
            if is_tie(operator, arguments, found, theirs, ties):
                return Status.TIE, "it takes another of several equal elements"
            reduced = self._in_16_bits and born.relative <= self._tolerances.float16
            if reduced and relative_distance(found, theirs) <= tolerance:
                return Status.FLOAT16_WEIGHTS, _IN_16_BITS
        if not quantised:
            known = self._known.weights.of_producer(operand)
            rounding = explain_by_float16(
                compute, ours, span.operators, known, theirs, tolerance, given
            )
            if rounding:
                return Status.FLOAT16_WEIGHTS, rounding
            weighted = [each for each in span.operators if "weight" in each.attributes]
            inputs = {each: given(each.inputs[0]) for each in weighted if each.inputs}
            rounding = explain_by_reference_int8(compute, inputs, known, theirs, tolerance)
            return (Status.INT8 if rounding else Status.ORIGIN), rounding
        inputs = {each: given(each.inputs[0]) for each in quantised if each.inputs}
        rounding = explain_by_int8(compute, inputs, theirs, tolerance, scale)
        # The kernel may err by more than the layer that explains it.
        own = relative_distance(found, theirs) if found is not None else math.inf
        if rounding and born.relative <= 2 * own + tolerance:
            return Status.INT8, rounding
        clipping = [find_clipping(each, array) for each, array in inputs.items()]
        return Status.ORIGIN, next(filter(None, clipping), "")

    def _reference_inputs(self, operator: RuntimeOperator) -> dict[int, Array]:
        found: dict[int, Array] = {}
        for place, operand in enumerate(operator.inputs):
            if self._is_shown(operand):
                value = self._given(operand)
                if isinstance(value, np.ndarray):
                    found[place] = value
        return found

    def _given(self, operand: RuntimeOperand) -> Value:
        """Return the reference's value, or what stands in for it, in the operand's dtype."""
        value = self._known.value(operand)
        if not isinstance(value, np.ndarray) or operand.dtype is None:
            return value
        return value.astype(operand.dtype, copy=False)

    def _reference_array(self, operand: RuntimeOperand) -> Array | None:
        """Return the reference's tensor in our layout; None where there is none."""
        match = self._alignment.matches.get(operand.name)
        if match is None:
            return None
        try:
            array = self._reference.array(match.key)
        except EngineError:
            return None
        shape = self._alignment.shapes[operand.name]
        return match.layout.to_ours(array, shape) if math.prod(shape) == array.size else array

    def _key_of(self, operand: RuntimeOperand) -> str | None:
        match = self._alignment.matches.get(operand.name)
        return match.key if match is not None else None

    def _is_shown(self, operand: RuntimeOperand) -> bool:
        return operand.name in self._alignment.matches

    def _repeats(self, operand: RuntimeOperand) -> bool:
        """Whether an operand has only the tensor of its producer's own input, unchanged."""
        producer, matches = operand.producer, self._alignment.matches
        if producer is None or len(producer.inputs) != 1:
            return False
        name, source = operand.name, producer.inputs[0].name
        if name not in matches or source not in matches:
            return False
        shapes = self._alignment.shapes
        return matches[name].is_same_as(matches[source]) and shapes[name] == shapes[source]

    def _is_same(self, operand: RuntimeOperand) -> bool:
        """Whether our operator gives the reference's tensor on its inputs."""
        row = self._rows.get(operand.name)
        return row is not None and row.born is not None and row.status is not Status.ORIGIN

    def _our_value(self, operand: RuntimeOperand) -> Value:
        if not self._session.has_value(operand.name):
            return None
        scale = self._requantised.get(operand.name)
        return dequantise(self._session.value(operand.name), scale)

    # Verdict

    def _blame_refused(self) -> None:
        """Mark operators as origins whose own parameters or weights their layer refuses."""
        for row in tuple(self._rows.values()):
            operator = self._session.graph.operators[row.operator.index]
            if row.status is Status.NOT_COMPARED and isinstance(operator.error, ParameterError):
                self._rows[row.operand] = replace(row, status=Status.ORIGIN)

    def _refused(self) -> tuple[Origin, ...]:
        """Return the operators whose layer refuses them and that no tensor is matched with."""
        return tuple(
            Origin(
                operator.label, operator.outputs[0].name, "", (), None, None,
                _text_of_refusal(operator, operator.error), (), (),
            )
            for operator in self._session.graph.operators
            if isinstance(operator.error, ParameterError) and operator.outputs
            and not any(operand.name in self._rows for operand in operator.outputs)
        )  # fmt: skip

    def _failed(self) -> tuple[Origin, ...]:
        """Return the operator that failed in our run, where the reference goes on."""
        failed = [r for r in self._session.records if r.status is OperatorStatus.FAILED]
        if not self._unmatched().reference:
            return ()
        return tuple(
            Origin(
                record.operator.label, record.operator.outputs[0].name, "", (), None, None,
                record.reason.partition("; ")[0], (), (),
            )
            for record in failed if record.operator.outputs
        )  # fmt: skip

    def _excuse_rounding(self) -> None:
        """Mark rows that differ only by accumulated rounding, if no operator is wrong."""
        small = self._tolerances.float32 / _ACCUMULATED
        rows = self._rows.values()
        if any(row.status is Status.ORIGIN or (row.born or 0.0) > small for row in rows):
            return
        most = self._tolerances.float32 * _ACCUMULATED
        for row in tuple(rows):
            relative = row.measures.relative if row.measures is not None else math.inf
            if row.status is Status.INHERITED and relative <= most:
                self._rows[row.operand] = replace(row, status=Status.ROUNDING)

    def _measure_born(self) -> None:
        """Compute on the reference's inputs what our run only tells a bound of.

        An ill-conditioned operator, such as a sigmoid of large numbers, adds more to the
        distance of the whole run than it errs itself.
        """
        for row in tuple(self._rows.values()):
            if row.born is None or row.born <= _ROUNDED or row.status is Status.NOT_COMPARED:
                continue
            operand = self._session.graph.operand(row.operand)
            span = Span.above(operand, self._is_shown)
            computed = span.compute(self._given)
            found = dequantise(computed, self._requantised.get(row.operand))
            theirs = self._reference_array(operand)
            if theirs is None or not isinstance(found, np.ndarray):
                continue
            if found.shape != theirs.shape:
                continue
            born = min(row.born, relative_distance(found, theirs))
            if born > _ROUNDED:
                self._note_rounding(span, found, born)
            inherited = _inherited(row.measures, born)
            self._rows[row.operand] = replace(row, born=born, inherited=inherited)

    def _note_rounding(self, span: Span, found: Array, born: float) -> None:
        """Note a difference that is no larger than what rounding of the inputs makes of it.

        A sigmoid of large sums, say, changes by much more than its inputs were rounded by.
        """
        rng, end = np.random.default_rng(0), span.end.name

        def rounded(of: RuntimeOperand) -> Value:
            value = self._given(of)
            if not isinstance(value, np.ndarray) or value.dtype != np.float32:
                return value
            with np.errstate(over="ignore"):
                apart = rng.uniform(-1, 1, value.shape).astype(np.float32)
                return np.asarray(value * (1 + np.finfo(np.float32).eps * apart))

        scale = self._requantised.get(end)
        for _ in range(_TRIALS):
            self._check_cancelled()
            other = dequantise(span.compute(rounded), scale)
            if not isinstance(other, np.ndarray) or other.shape != found.shape:
                return
            if born <= _ULPS * relative_distance(other, found):
                self._rounded.add(end)
                return

    def _excuse_amplified(self) -> bool:
        """Mark what differs by rounding that the network amplifies; return whether all does.

        Every operator that differs, and all upstream, give the reference's results on the
        reference's inputs.
        """
        small, rows = self._tolerances.float32 / _ACCUMULATED, tuple(self._rows.values())
        if any((row.born or 0.0) > small and row.operand not in self._rounded for row in rows):
            return False
        if any(row.status is Status.NOT_COMPARED and self._is_apart(row) for row in rows):
            return False
        for row in rows:
            if row.status is Status.INHERITED:
                reason = "all operators upstream agree: the network amplifies rounding"
                self._rows[row.operand] = replace(row, status=Status.ROUNDING, reason=reason)
        return True

    def _is_apart(self, row: Row) -> bool:
        return row.measures is None or row.measures.relative > self._tolerances.float32

    def _excuse_corrected(self) -> None:
        """Mark origins as inherited that agree once another operator is corrected.

        The reference does not show that operator's result, and several that read it differ.
        """
        found = [row for row in self._rows.values() if row.status is Status.ORIGIN]
        left = [
            row for row in found if not self._excuse(row) and not self._explain(row).reasons
        ]
        for row in left:  # by what was found downstream
            self._excuse(row)

    def _excuse(self, row: Row) -> bool:
        """Mark an origin as inherited, if it agrees once another operator is corrected."""
        operator = self._explainer.correction_of(self._session.graph.operand(row.operand))
        if operator is None:
            return False
        reason = f"it agrees once {operator.type} {operator.name!r} is corrected"
        self._rows[row.operand] = replace(row, status=Status.INHERITED, reason=reason)
        return True

    def _explain(self, row: Row) -> Explained:
        return self._explainer.explain_origin(
            self._session.graph.operand(row.operand), self._suspects_of(row)
        )

    def _suspects_of(self, row: Row) -> tuple[RuntimeOperator, ...]:
        """Return the operators upstream that the reference does not show and nothing clears.

        Where it shows only an operator's own input, there may be a call that ours lacks.
        """
        born, graph = self._alignment.born.get(row.operand), self._session.graph
        names = born.group if born is not None else ()
        hidden = {graph.operand(name).producer for name in names}
        end = graph.operand(row.operand)
        span = Span.above(end, lambda o: self._is_shown(o) and not self._repeats(o))
        hidden |= {o for o in span.operators if any(map(self._repeats, o.outputs))}
        hidden -= {end.producer, None}
        return tuple([o for o in span.operators if o in hidden and not o.is_constant])

    def _has_unexcused(self) -> bool:
        """Whether an operand differs, and no tie and nothing random upstream explains it."""
        excused = self._downstream(lambda row: row.status.is_excused)
        return any(
            row.status is Status.INHERITED and row.operand not in excused
            for row in self._rows.values()
        )

    def _mark_excused(self) -> None:
        """Mark rows that inherit only what is no fault."""
        excused = self._downstream(lambda row: row.status.is_excused)
        faulty = self._downstream(lambda row: row.status is Status.ORIGIN)
        inherits = excused - faulty
        for name, row in self._rows.items():
            if row.status is Status.INHERITED and name in inherits:
                reason = row.reason or "what differs upstream is no fault"
                self._rows[name] = replace(row, excused=True, reason=reason)

    def _add_remarks(self) -> None:
        """Say of rows, where there is nothing else to say, that their match may be chance."""
        for name, remark in self._alignment.remarks.items():
            row = self._rows[name]
            if not row.reason:
                self._rows[name] = replace(row, reason=remark)

    def _downstream(self, begins: Callable[[Row], bool]) -> set[str]:
        """Return the operands whose rows satisfy a condition, and all downstream."""
        found: set[str] = set()
        for operator in self._session.graph.operators:
            above = any(operand.name in found for operand in operator.inputs)
            for operand in operator.outputs:
                row = self._rows.get(operand.name)
                if above or (row is not None and begins(row)):
                    found.add(operand.name)
        return found

    def _origins(self, rows: Iterable[Row]) -> tuple[Origin, ...]:
        """Return the origins of rows, one for several results of an operator."""
        found: dict[tuple[str, str], Origin] = {}
        for row in rows:
            if row.status is Status.ORIGIN:
                origin = self._origin(row)
                found.setdefault((row.operator.name, origin.operator.name), origin)
        return tuple(found.values())

    def _origin(self, row: Row) -> Origin:
        explained = self._explain(row)
        return Origin(
            explained.operator.label,
            row.operand,
            row.reference,
            row.measures.worst_index if row.measures is not None else (),
            row.born,
            row.inherited,
            self._text(row, explained),
            tuple([each.label for each in explained.among]),
            explained.reasons,
        )

    def _text(self, row: Row, explained: Explained) -> str:
        operator = explained.operator
        who = f"{operator.type} {operator.name!r}"
        if row.operator.type == "pnnx.Input":
            return f"{who} has other values than the reference"
        seen = f"seen at {row.operator.type} {row.operator.name!r}"
        if operator.is_input:
            return f"{who} has other values than the reference, {seen}"
        if isinstance(operator.error, ParameterError):
            return _text_of_refusal(operator, operator.error)
        place = "" if operator.name == row.operator.name else f", {seen}"
        if not place and row.reason.startswith(who):
            return f"{row.reason}{self._text_of_span(explained)}"
        if row.reason:
            what = f"differs{place}: " if place else "on the reference's inputs: "
            what += row.reason
        else:
            share = format_brief(row.born) if row.born is not None else "some"
            what = f"differs on the reference's inputs by {share} of the largest element{place}"
        return f"{who} {what}{self._text_of_span(explained)}"

    @staticmethod
    def _text_of_span(explained: Explained) -> str:
        """Say where else a difference may begin."""
        if not explained.among:
            return ""
        others = format_names([each.name for each in explained.among])
        count = len(explained.among) + 1
        if explained.reasons:
            return f"; {others} would explain it as well"
        above = format_names([o.producer.name for o in explained.above if o.producer])
        between = f" between {above} and it" if above else " upstream of it"
        return (
            f"; the reference shows nothing{between}, so one of {count} operators differs: "
            f"this one, {others}"
        )

    def _suspects(self) -> tuple[Origin, ...]:
        """Return the operators with more than rounding, if none exceeds the tolerance."""
        rows = [row for row in self._rows.values() if row.operand not in self._rounded]
        born = [row.born for row in rows if row.born]
        typical = float(np.median(born)) if born else 0.0
        worst = max(born, default=0.0)
        return tuple(
            self._origin(row)
            for row in rows
            if row.born and row.born > _SUSPECT * typical and row.born > worst / 2
        )

    # Unmatched tensors

    def _unmatched(self) -> Unmatched:
        ours = [
            UnmatchedTensor(operand.name, self._why(operator, operand))
            for operator in self._session.graph.operators
            for operand in operator.outputs
            if operand.name not in self._rows
        ]
        used = {row.reference for row in self._rows.values()}
        reasons = dict.fromkeys(self._alignment.by_chance.values(), _BY_CHANCE)
        reasons |= self._index.unreadable
        theirs = [
            UnmatchedTensor(
                tensor.key, reasons.get(tensor.key, "no operand of the model has its elements")
            )
            for tensor in self._reference.tensors
            if tensor.key not in used
        ]
        return Unmatched(tuple(ours), tuple(theirs))

    def _why(self, operator: RuntimeOperator, operand: RuntimeOperand) -> str:
        name = operand.name
        if self._matcher.is_corrected(name) and self._matcher.corrected(name) is None:
            return "it was marked by hand as having no counterpart"
        if name in self._alignment.by_chance:
            return _BY_CHANCE
        if name in self._alignment.stand_ins:
            return "the reference does not show it; the operators that read it agree"
        if operator.is_constant:
            return "it is a constant of the model"
        record = self._session.record(operator.name)
        if record is not None and not self._session.has_value(name):
            return record.reason or "it has no value"
        value = self._session.metadata(name) if self._session.has_value(name) else None
        if value is not None and not hasattr(value, "dtype"):
            return f"it is a {type(value).__name__}, not a tensor"
        return "no tensor of the reference fits"


def _is_of_ncnn(session: Session) -> bool:
    return any(operator.type.startswith(PREFIX) for operator in session.graph.operators[:1])


def _metadata_of(array: Array | None) -> ArrayMetadata | None:
    return ArrayMetadata(array.shape, array.dtype) if array is not None else None


def _text_of_refusal(operator: RuntimeOperator, error: ParameterError) -> str:
    return f"{operator.type} {operator.name!r} cannot run: {error.reason}"


def _inherited(measures: Measures | None, born: float | None) -> float | None:
    if measures is None:
        return None
    return max(0.0, _finite(measures.relative) - (born or 0.0))


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 1.0
