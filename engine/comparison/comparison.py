"""Compares a session with a reference and finds the operators where differences begin."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.array_files import is_numeric
from engine.comparison.alignment import align
from engine.comparison.corrections import read_corrections
from engine.comparison.explaining import Explainer
from engine.comparison.fingerprints import FingerprintIndex
from engine.comparison.float16_weights import explain_by_float16
from engine.comparison.matching import Matcher
from engine.comparison.measures import Tolerances, measure
from engine.comparison.references import Reference, open_reference
from engine.comparison.references.sessions import run_to_end
from engine.comparison.rows import Origin, Row, Status, Unmatched, UnmatchedTensor
from engine.comparison.ties import is_tie
from engine.errors import EngineError, UnsupportedOperatorError
from engine.statistics import statistics
from engine.text import format_brief, format_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from engine.comparison.alignment import Alignment, Born
    from engine.comparison.matching import Match
    from engine.comparison.measures import Measures
    from engine.runtime import RuntimeGraph, RuntimeOperand, RuntimeOperator
    from engine.session import Session
    from engine.values import Array, Value

__all__ = ["Comparison", "compare"]

_SHARE_BEFORE: Final = 0.9  # share of the elements within a thousandth at the inputs
_SHARE_BEHIND: Final = 0.6  # the same at the output, for an operator that could not run
_ACCUMULATED: Final = 10.0  # multiple of the tolerance that rounding may reach downstream
_SUSPECT: Final = 20.0  # multiple of the typical rounding of the operators


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing a session with a reference.

    Attributes
    ----------
    verdict : {"same", "differs"}
    rows : tuple of Row
        One per matched operand, in execution order.
    origins : tuple of Origin
        Where differences begin, in execution order; several if they are independent.
    unmatched : Unmatched
    reference : str
        Title of the reference.
    tolerances : Tolerances
    missing_outputs : tuple of str
        Output operands of the model that were not compared, because they have no value or no
        counterpart.
    """

    verdict: str
    rows: tuple[Row, ...] = field(repr=False)
    origins: tuple[Origin, ...]
    unmatched: Unmatched = field(repr=False)
    reference: str
    tolerances: Tolerances
    missing_outputs: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the result as strict JSON can hold it."""
        return {
            "verdict": self.verdict,
            "reference": self.reference,
            "origins": [origin.to_json() for origin in self.origins],
            "rows": [row.to_json() for row in self.rows],
            "unmatched": self.unmatched.to_json(),
        }


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
        Called with the number of operators done and the total; an exception ends the
        comparison.

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
    run = run_to_end(session)
    if not isinstance(reference, Reference):
        fed = [run.value(operand.name) for operand in run.graph.input_operands]
        reference = open_reference(reference, fed, backend=session.backend)
    if corrections is None:
        corrections = read_corrections(run.graph.source_path, reference.title)
    count = len(run.graph.operators)

    def check_cancelled() -> None:
        if progress is not None:
            progress(count, count)

    # NumPy warns of a signalling NaN, which a file may hold, when it converts it.
    with np.errstate(invalid="ignore"):
        index = FingerprintIndex(reference)
        matcher = Matcher(run.graph, reference, index, corrections)
        alignment = align(run, reference, index, matcher, progress)
        report = _Report(run, reference, index, matcher, alignment, tolerances, check_cancelled)
        return report.make()


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
        self._rows: dict[str, Row] = {}
        self._explainer = Explainer(self._our_value, self._reference_array, check_cancelled)

    def make(self) -> Comparison:
        for operator in self._session.graph.operators:
            for operand in operator.outputs:
                match = self._alignment.matches.get(operand.name)
                if match is not None:
                    self._rows[operand.name] = self._row(operator, operand, match)
        self._blame_refused()
        self._excuse_rounding()
        rows = tuple(self._rows.values())
        origins = tuple(self._origin(row) for row in rows if row.status is Status.ORIGIN)
        differs = bool(origins) or self._has_unexcused()
        if differs and not origins:
            origins = self._suspects()
        return Comparison(
            "differs" if differs else "same",
            rows,
            origins,
            self._unmatched(),
            self._reference.title,
            self._tolerances,
            self._missing_outputs(),
        )

    def _missing_outputs(self) -> tuple[str, ...]:
        compared = {name for name, row in self._rows.items() if row.measures is not None}
        names = [operand.name for operand in self._session.graph.output_operands]
        return tuple([name for name in names if name not in compared])

    # Rows

    def _row(self, operator: RuntimeOperator, operand: RuntimeOperand, match: Match) -> Row:
        name = operand.name
        born = self._alignment.born.get(name)
        theirs, ours, reason = None, None, ""
        try:
            theirs = self._reference.array(match.key)
            theirs = match.layout.to_ours(theirs, self._alignment.shapes[name])
            value = self._session.value(name)
            ours = value if isinstance(value, np.ndarray) and is_numeric(value) else None
        except EngineError as exc:
            reason = str(exc)
        measures = None
        if ours is not None and theirs is not None:
            if ours.shape == theirs.shape:
                measures = measure(ours, theirs)
            else:
                reason = (
                    f"it is {format_shape(ours.shape)}, the reference "
                    f"{format_shape(theirs.shape)}"
                )
        tolerance = self._tolerances.of(theirs) if theirs is not None else 0.0
        status, why = self._status(operator, operand, born, measures, theirs, tolerance)
        number = born.relative if born is not None and born.measured else None
        if operator.is_input and measures is not None:
            number = _finite(measures.relative)
        return Row(
            operator=operator.label,
            operand=name,
            reference=match.key,
            matched_by=match.matched_by,
            confidence=round(match.confidence, 3),
            layout=match.layout,
            shape=ours.shape if ours is not None else None,
            reference_shape=self._index.shapes.get(match.key),
            dtype=ours.dtype.name if ours is not None else "",
            reference_dtype=theirs.dtype.name if theirs is not None else "",
            measures=measures,
            statistics=statistics(ours, threads=1) if ours is not None else None,
            reference_statistics=statistics(theirs, threads=1) if theirs is not None else None,
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
        theirs: Array | None,
        tolerance: float,
    ) -> tuple[Status, str]:
        """Return the status of a row, and a remark on it."""
        agrees = measures is not None and self._agrees(measures, theirs, tolerance)
        if operator.random:
            return Status.RANDOM, "both have drawn random numbers"
        if operator.is_input:
            return (Status.SAME if agrees else Status.ORIGIN), ""
        note = born.note if born is not None else ""
        if born is not None and born.measured and (born.relative > tolerance or note):
            return self._excused(operator, operand, born, theirs, tolerance)
        if agrees:
            return Status.SAME, ""
        if measures is None:
            return Status.NOT_COMPARED, note
        if born is not None and born.measured:
            return Status.INHERITED, ""
        if self._falls(operator, measures):
            return Status.ORIGIN, note
        return Status.NOT_COMPARED, note

    def _agrees(self, measures: Measures, theirs: Array | None, tolerance: float) -> bool:
        if measures.relative <= tolerance:
            return True
        if theirs is None or theirs.dtype not in {np.dtype(np.int8), np.dtype(np.uint8)}:
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
        theirs: Array | None,
        tolerance: float,
    ) -> tuple[Status, str]:
        """Return the status and reason that excuse a difference; None for a fault."""
        arguments = self._reference_inputs(operator)
        if theirs is not None and not born.note and len(arguments) == len(operator.inputs):
            found = self._compute(operator, operand, arguments)
            ties = self._tolerances.float32
            if found is not None and is_tie(operator, arguments, found, theirs, ties):
                return Status.TIE, "it takes another of several equal elements"

            def compute(twin: RuntimeOperator) -> Array | None:
                return self._compute(twin, operand, arguments)

            rounding = explain_by_float16(compute, operator, theirs, tolerance)
            if rounding:
                return Status.FLOAT16_WEIGHTS, rounding
        return Status.ORIGIN, born.note

    def _reference_inputs(self, operator: RuntimeOperator) -> dict[int, Array]:
        found: dict[int, Array] = {}
        for place, operand in enumerate(operator.inputs):
            array = self._reference_array(operand)
            if array is not None:
                dtype = operand.dtype if operand.dtype is not None else array.dtype
                found[place] = array.astype(dtype, copy=False)
        return found

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

    def _our_value(self, operand: RuntimeOperand) -> Value:
        has_value = self._session.has_value(operand.name)
        return self._session.value(operand.name) if has_value else None

    def _compute(
        self, operator: RuntimeOperator, operand: RuntimeOperand, inputs: Mapping[int, Array]
    ) -> Array | None:
        try:
            results = operator.forward([inputs[i] for i in range(len(operator.inputs))])
        except EngineError:
            return None
        result = results[operator.outputs.index(operand) if operand in operator.outputs else 0]
        return result if isinstance(result, np.ndarray) else None

    # Verdict

    def _blame_refused(self) -> None:
        """Mark operators as origins that their layer refuses, if other values explain them.

        Without such an explanation the layer may only lack what the model needs.
        """
        for row in tuple(self._rows.values()):
            operator = self._session.graph.operators[row.operator.index]
            if row.status is not Status.NOT_COMPARED or operator.error is None:
                continue
            if isinstance(operator.error, UnsupportedOperatorError):
                continue
            if self._explainer.explain(operator):
                self._rows[row.operand] = replace(row, status=Status.ORIGIN)

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

    def _has_unexcused(self) -> bool:
        """Whether an operand differs, and no tie and nothing random upstream explains it."""
        excused: set[str] = set()
        for operator in self._session.graph.operators:
            above = any(operand.name in excused for operand in operator.inputs)
            for operand in operator.outputs:
                row = self._rows.get(operand.name)
                if above or (row is not None and row.status.is_excused):
                    excused.add(operand.name)
                elif row is not None and row.status is Status.INHERITED:
                    return True
        return False

    def _origin(self, row: Row) -> Origin:
        born = self._alignment.born.get(row.operand)
        group = born.group if born is not None else ()
        operators = self._session.graph.operators
        producers = [self._session.graph.operand(name).producer for name in group]
        among = tuple(p.label for p in producers if p is not None and not p.is_constant)
        # The reference does not show the tensors between the operators of a group.
        explained = () if among else self._explainer.explain(operators[row.operator.index])
        return Origin(
            row.operator,
            row.operand,
            row.reference,
            row.measures.worst_index if row.measures is not None else (),
            row.born,
            row.inherited,
            self._text(row),
            among,
            explained,
        )

    @staticmethod
    def _text(row: Row) -> str:
        who = f"{row.operator.type} {row.operator.name!r}"
        if row.operator.type == "pnnx.Input":
            return f"{who} has other values than the reference"
        if row.reason:
            return f"{who} on the reference's inputs: {row.reason}"
        share = format_brief(row.born) if row.born is not None else "some"
        return f"{who} differs on the reference's inputs by {share} of the largest element"

    def _suspects(self) -> tuple[Origin, ...]:
        """Return the operators with more than rounding, if none exceeds the tolerance."""
        born = [row.born for row in self._rows.values() if row.born]
        typical = float(np.median(born)) if born else 0.0
        worst = max(born, default=0.0)
        return tuple(
            self._origin(row)
            for row in self._rows.values()
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
        theirs = [
            UnmatchedTensor(
                tensor.key,
                self._index.unreadable.get(
                    tensor.key, "no operand of the model has its elements"
                ),
            )
            for tensor in self._reference.tensors
            if tensor.key not in used
        ]
        return Unmatched(tuple(ours), tuple(theirs))

    def _why(self, operator: RuntimeOperator, operand: RuntimeOperand) -> str:
        name = operand.name
        if self._matcher.is_corrected(name) and self._matcher.corrected(name) is None:
            return "it was marked by hand as having no counterpart"
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


def _inherited(measures: Measures | None, born: float | None) -> float | None:
    if measures is None:
        return None
    return max(0.0, _finite(measures.relative) - (born or 0.0))


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 1.0
