"""Tells differences that rounding makes, along the network, from those of an operator."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.comparison.measures import relative_distance
from engine.comparison.row_making import inherited_part
from engine.comparison.rows import Status
from engine.comparison.spans import Span

if TYPE_CHECKING:
    from engine.comparison.aligned import Aligned
    from engine.comparison.rows import Row
    from engine.runtime import RuntimeOperand
    from engine.values import Array, Value

__all__ = ["Rounding"]

_ROUNDED: Final = 1e-6  # relative distance that rounding in one operator reaches
_ACCUMULATED: Final = 10.0  # multiple of the tolerance that rounding may reach downstream
_ULPS: Final = 4.0  # times what one rounding of the inputs changes, that rounding may add
_TRIALS: Final = 2  # of such a rounding
_SUSPECT: Final = 20.0  # multiple of the typical rounding of the operators


class Rounding:
    """Marks the rows of a comparison that differ by rounding only.

    Parameters
    ----------
    aligned : Aligned
    """

    def __init__(self, aligned: Aligned) -> None:
        self._aligned, self._rows = aligned, aligned.rows
        self._small = aligned.tolerances.float32 / _ACCUMULATED
        self._rounded: set[str] = set()  # operands whose operators err by rounding only

    def excuse_accumulated(self) -> None:
        """Mark rows that differ only by accumulated rounding, if no operator is wrong."""
        rows = self._rows.values()
        if any(row.status is Status.ORIGIN or (row.born or 0.0) > self._small for row in rows):
            return
        most = self._aligned.tolerances.float32 * _ACCUMULATED
        for row in tuple(rows):
            relative = row.measures.relative if row.measures is not None else math.inf
            if row.status is Status.INHERITED and relative <= most:
                self._rows[row.operand] = replace(row, status=Status.ROUNDING)

    def measure_born(self) -> None:
        """Compute on the reference's inputs what our run only tells a bound of.

        An ill-conditioned operator, such as a sigmoid of large numbers, adds more to the
        distance of the whole run than it errs itself.
        """
        aligned = self._aligned
        for row in tuple(self._rows.values()):
            if row.born is None or row.born <= _ROUNDED or row.status is Status.NOT_COMPARED:
                continue
            operand = aligned.session.graph.operand(row.operand)
            span = Span.above(operand, aligned.is_shown)
            found = aligned.as_numbers(operand, span.compute(aligned.given))
            theirs = aligned.theirs(operand)
            if theirs is None or not isinstance(found, np.ndarray):
                continue
            if found.shape != theirs.shape:
                continue
            born = min(row.born, relative_distance(found, theirs))
            if born > _ROUNDED:
                self._note_rounding(span, found, born)
            inherited = inherited_part(row.measures, born)
            self._rows[row.operand] = replace(row, born=born, inherited=inherited)

    def _note_rounding(self, span: Span, found: Array, born: float) -> None:
        """Note a difference that is no larger than what rounding of the inputs makes of it.

        A sigmoid of large sums, say, changes by much more than its inputs were rounded by.
        """
        rng, aligned = np.random.default_rng(0), self._aligned

        def rounded(of: RuntimeOperand) -> Value:
            value = aligned.given(of)
            if not isinstance(value, np.ndarray) or value.dtype != np.float32:
                return value
            with np.errstate(over="ignore"):
                apart = rng.uniform(-1, 1, value.shape).astype(np.float32)
                return np.asarray(value * (1 + np.finfo(np.float32).eps * apart))

        for _ in range(_TRIALS):
            aligned.check_cancelled()
            other = aligned.as_numbers(span.end, span.compute(rounded))
            if not isinstance(other, np.ndarray) or other.shape != found.shape:
                return
            if born <= _ULPS * relative_distance(other, found):
                self._rounded.add(span.end.name)
                return

    def suspects(self) -> list[Row]:
        """Return the rows of operators with more than rounding, if none is beyond tolerance."""
        rows = [row for row in self._rows.values() if row.operand not in self._rounded]
        born = [row.born for row in rows if row.born]
        typical = float(np.median(born)) if born else 0.0
        worst = max(born, default=0.0)
        return [
            row
            for row in rows
            if row.born and row.born > _SUSPECT * typical and row.born > worst / 2
        ]

    def excuse_amplified(self) -> bool:
        """Mark what differs by rounding that the network amplifies; return whether all does.

        Every operator that differs, and all upstream, give the reference's results on the
        reference's inputs.
        """
        rows = tuple(self._rows.values())
        if any((r.born or 0.0) > self._small and r.operand not in self._rounded for r in rows):
            return False
        if any(row.status is Status.NOT_COMPARED and self._is_apart(row) for row in rows):
            return False
        for row in rows:
            if row.status is Status.INHERITED:
                reason = "all operators upstream agree: the network amplifies rounding"
                self._rows[row.operand] = replace(row, status=Status.ROUNDING, reason=reason)
        return True

    def _is_apart(self, row: Row) -> bool:
        return row.measures is None or row.measures.relative > self._aligned.tolerances.float32
