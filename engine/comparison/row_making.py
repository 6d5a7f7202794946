"""Makes the row of each operand that is matched: numbers, status and reason."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.array_files import is_numeric
from engine.comparison.excuses import Excuses
from engine.comparison.measures import Meter
from engine.comparison.pairs import Pair, measure_pair
from engine.comparison.rows import Row, Status
from engine.errors import EngineError
from engine.text import format_shape
from engine.values import ArrayMetadata

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.comparison.aligned import Aligned
    from engine.comparison.aligning import Born
    from engine.comparison.matching import Match
    from engine.comparison.measures import Measures
    from engine.runtime import RuntimeOperand, RuntimeOperator
    from engine.values import Array

__all__ = ["inherited_part", "make_rows"]

_SHARE_BEFORE: Final = 0.9  # share of the elements within a thousandth at the inputs
_AGREES: Final = "it agrees on the reference's inputs; the run has no value"
_SHARE_BEHIND: Final = 0.6  # the same at the output, for an operator that could not run


def make_rows(aligned: Aligned, reference_shapes: Mapping[str, tuple[int, ...] | None]) -> None:
    """Add the rows of all operands that are matched to those of a comparison.

    Parameters
    ----------
    aligned : Aligned
    reference_shapes : mapping of str to tuple of int or None
        By key of the reference.
    """
    maker = _RowMaker(aligned, reference_shapes)
    for pair in maker.pairs():
        aligned.check_cancelled()
        aligned.rows[pair.operand.name] = maker.row(pair)


def inherited_part(measures: Measures | None, born: float | None) -> float | None:
    """Return the distance of the whole run less what is born here; None for no distance."""
    if measures is None:
        return None
    return max(0.0, _finite(measures.relative) - (born or 0.0))


class _RowMaker:
    def __init__(
        self, aligned: Aligned, reference_shapes: Mapping[str, tuple[int, ...] | None]
    ) -> None:
        self._aligned, self._shapes = aligned, reference_shapes
        self._session, self._alignment = aligned.session, aligned.alignment
        self._excuses, self._meter = Excuses(aligned), Meter()

    def pairs(self) -> Iterator[Pair]:
        for operator in self._session.graph.operators:
            for operand in operator.outputs:
                match = self._alignment.matches.get(operand.name)
                if match is not None:
                    measured = self._measured(operator, operand, match)
                    yield measured or self._pair(operator, operand, match)

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

    def _pair(self, operator: RuntimeOperator, operand: RuntimeOperand, match: Match) -> Pair:
        theirs, ours, reason = None, None, ""
        try:
            theirs = self._aligned.reference.read(match.key)
            theirs = match.layout.to_ours(theirs, self._alignment.shapes[operand.name])
            value = self._aligned.as_numbers(operand, self._session.value(operand.name))
            ours = value if isinstance(value, np.ndarray) and is_numeric(value) else None
        except EngineError as exc:
            reason = str(exc)
        if ours is not None and theirs is not None and ours.shape != theirs.shape:
            reason = (
                f"it is {format_shape(ours.shape)}, the reference {format_shape(theirs.shape)}"
            )
        numbers = measure_pair(ours, theirs, self._meter)
        shown = _metadata_of(ours), _metadata_of(theirs)
        return Pair(operator, operand, match, shown[0], shown[1], numbers, reason)

    def row(self, pair: Pair) -> Row:
        operator, operand, match, ours, theirs, numbers, reason = pair
        born, measures = self._alignment.born.get(operand.name), numbers.measures
        tolerance = self._aligned.tolerances.of(theirs) if theirs is not None else 0.0
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
            reference_shape=self._shapes.get(match.key),
            dtype=ours.dtype.name if ours is not None else "",
            reference_dtype=theirs.dtype.name if theirs is not None else "",
            measures=measures,
            statistics=numbers.statistics,
            reference_statistics=numbers.reference_statistics,
            born=number,
            inherited=inherited_part(measures, number),
            amplification=self._amplification(operator, measures),
            status=status,
            reason=why or reason,
        )

    def _amplification(
        self, operator: RuntimeOperator, measures: Measures | None
    ) -> float | None:
        before = [each.relative for each in self._measures_of_inputs(operator)]
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
            return self._excuses.find(operator, operand, born, tolerance)
        if agrees:
            return Status.SAME, ""
        if measures is None:
            agrees = born is not None and born.measured and not self._has_value(operand)
            return Status.NOT_COMPARED, _AGREES if agrees else note
        if born is not None and born.measured:
            return Status.INHERITED, ""
        if self._falls(operator, measures):
            return Status.ORIGIN, note
        return Status.NOT_COMPARED, note

    def _has_value(self, operand: RuntimeOperand) -> bool:
        return self._session.has_value(operand.name)

    def _agrees_as_bytes(
        self, operand: RuntimeOperand, measures: Measures, metadata: ArrayMetadata | None
    ) -> bool:
        """Whether 8-bit integers agree up to the rounding of what they were made from."""
        if metadata is None or metadata.dtype not in {np.dtype(np.int8), np.dtype(np.uint8)}:
            return False
        theirs = self._aligned.theirs(operand)
        if theirs is None:
            return False
        tolerances = self._aligned.tolerances
        largest = float(np.abs(theirs.astype(np.float64)).max(initial=0.0)) or 1.0
        near = measures.cosine is None or measures.cosine >= tolerances.cosine
        return near and measures.rmse / largest <= tolerances.rmse

    def _falls(self, operator: RuntimeOperator, measures: Measures) -> bool:
        """Whether the share within a thousandth drops from the inputs to the output."""
        before = [each.within_permille for each in self._measures_of_inputs(operator)]
        return (
            bool(before)
            and min(before) > _SHARE_BEFORE
            and measures.within_permille < _SHARE_BEHIND
        )

    def _measures_of_inputs(self, operator: RuntimeOperator) -> list[Measures]:
        rows = [self._aligned.rows.get(operand.name) for operand in operator.inputs]
        return [row.measures for row in rows if row is not None and row.measures is not None]


def _metadata_of(array: Array | None) -> ArrayMetadata | None:
    return ArrayMetadata(array.shape, array.dtype) if array is not None else None


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 1.0
