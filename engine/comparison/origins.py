"""Names the operators where differences begin, and says in a sentence what is wrong."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from engine.comparison.aligning.calls import COPY
from engine.comparison.explaining import Explainer
from engine.comparison.rows import Origin, Status
from engine.comparison.spans import Span
from engine.errors import ParameterError
from engine.states import OperatorStatus
from engine.text import format_brief, format_names

if TYPE_CHECKING:
    from engine.comparison.aligned import Aligned
    from engine.comparison.explaining import Explained
    from engine.comparison.rows import Row
    from engine.runtime import RuntimeOperator
    from engine.runtime.export_faults import ExportFault

__all__ = ["Origins"]


class Origins:
    """Finds the origins of a comparison.

    Parameters
    ----------
    aligned : Aligned
        With its rows.
    """

    def __init__(self, aligned: Aligned) -> None:
        self._aligned, self._rows = aligned, aligned.rows
        self._session, self._graph = aligned.session, aligned.session.graph
        self._explainer = Explainer(aligned.known, aligned.check_cancelled)

    def blame_refused(self) -> None:
        """Mark operators as origins whose own parameters or weights their layer refuses."""
        for row in tuple(self._rows.values()):
            operator = self._graph.operators[row.operator.index]
            if row.status is Status.NOT_COMPARED and isinstance(operator.error, ParameterError):
                self._rows[row.operand] = replace(row, status=Status.ORIGIN)

    def excuse_corrected(self) -> None:
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
        operator = self._explainer.correction_of(self._graph.operand(row.operand))
        if operator is None:
            return False
        reason = f"it agrees once {operator.type} {operator.name!r} is corrected"
        self._rows[row.operand] = replace(row, status=Status.INHERITED, reason=reason)
        return True

    def find(self) -> tuple[Origin, ...]:
        """Return the origins in execution order, one for several results of an operator."""
        found: dict[tuple[str, str], Origin] = {}
        for row in self._rows.values():
            if row.status is Status.ORIGIN:
                origin = self.of(row)
                found.setdefault((row.operator.name, origin.operator.name), origin)
        return (*found.values(), *self._refused()) or self._failed()

    def of(self, row: Row) -> Origin:
        """Return the origin that a row shows."""
        explained = self._explain(row)
        return Origin(
            explained.operator.label,
            row.operand,
            row.reference,
            row.measures.worst_index if row.measures is not None else (),
            row.born,
            row.inherited,
            _text(row, explained) + self._text_of_fault(explained.operator),
            tuple([each.label for each in explained.among]),
            explained.reasons,
        )

    def _explain(self, row: Row) -> Explained:
        operand = self._graph.operand(row.operand)
        explained = self._explainer.explain_origin(operand, self._suspects_of(row))
        if explained.reasons:
            return explained
        faulty = [o for o in (explained.operator, *explained.among) if o.name in self._faults]
        if len(faulty) != 1:
            return explained
        return replace(explained, operator=faulty[0], among=())

    @cached_property
    def _faults(self) -> dict[str, ExportFault]:
        """What the file itself shows to be wrong, by operator."""
        return {each.operator.name: each for each in self._graph.export_faults if each.certain}

    def _text_of_fault(self, operator: RuntimeOperator) -> str:
        fault = self._faults.get(operator.name)
        return f"; {fault.sentence}" if fault is not None else ""

    def _suspects_of(self, row: Row) -> tuple[RuntimeOperator, ...]:
        """Return the operators upstream that the reference does not show and nothing clears.

        Where it shows only an operator's own input, there may be a call that ours lacks.
        """
        aligned = self._aligned
        born, repeats = aligned.alignment.born.get(row.operand), aligned.repeats
        names = {*(born.group if born is not None else ()), *self._doubtful}
        hidden = {self._graph.operand(name).producer for name in names}
        end = self._graph.operand(row.operand)
        span = Span.above(end, lambda o: aligned.is_shown(o) and not repeats(o))
        hidden |= {o for o in span.operators if any(map(repeats, o.outputs))}
        hidden -= {end.producer, None}
        hidden -= {o for o in hidden if o is not None and (o.is_constant or o.type == COPY)}
        return tuple([o for o in span.operators if o in hidden])

    @cached_property
    def _doubtful(self) -> frozenset[str]:
        """Operands that the reference does not show, and that origins are computed from."""
        found = [row.operand for row in self._rows.values() if row.status is Status.ORIGIN]
        born = [self._aligned.alignment.born.get(name) for name in found]
        return frozenset([name for each in born if each is not None for name in each.group])

    def _refused(self) -> tuple[Origin, ...]:
        """Return the operators whose layer refuses them and that no tensor is matched with."""
        return tuple([
            _origin_without_row(operator, _text_of_refusal(operator, operator.error))
            for operator in self._graph.operators
            if isinstance(operator.error, ParameterError) and operator.outputs
            and not any(operand.name in self._rows for operand in operator.outputs)
        ])  # fmt: skip

    def _failed(self) -> tuple[Origin, ...]:
        """Return the operator that failed in our run, where the reference goes on."""
        computed = [r for r in self._rows.values() if self._session.has_value(r.operand)]
        used = {row.reference for row in computed}
        if all(tensor.key in used for tensor in self._aligned.reference.tensors):
            return ()
        return tuple([
            self._of_failure(record.operator, record.reason.partition("; ")[0])
            for record in self._session.records
            if record.status is OperatorStatus.FAILED and record.operator.outputs
        ])  # fmt: skip

    def _of_failure(self, failed: RuntimeOperator, text: str) -> Origin:
        """Return an operator that failed, or the one above whose line contradicts itself.

        Only where the reference shows nothing between them.
        """
        span = Span.above(failed.outputs[0], self._aligned.is_shown)
        faulty = [o for o in span.operators if o.name in self._faults and o is not failed]
        if not faulty:
            reasons = self._explainer.explain_failure(failed)
            return replace(_origin_without_row(failed, text), reasons=reasons)
        operator = faulty[-1]
        what = self._faults[operator.name].what
        origin = _origin_without_row(
            operator, f"{operator.type} {operator.name!r}: {what}; so {text}"
        )
        return replace(origin, reasons=self._explainer.explain_failure(operator))


def _origin_without_row(operator: RuntimeOperator, text: str) -> Origin:
    return Origin(operator.label, operator.outputs[0].name, "", (), None, None, text)


def _text(row: Row, explained: Explained) -> str:
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
        return f"{row.reason}{_text_of_span(explained)}"
    if row.reason:
        named = row.reason.startswith(f"{row.operator.type} {row.operator.name!r}")
        what = "on the reference's inputs: "
        if place:
            what = "differs: " if named else f"differs{place}: "
        what += row.reason
    else:
        share = format_brief(row.born) if row.born is not None else "some"
        what = f"differs on the reference's inputs by {share} of the largest element{place}"
    return f"{who} {what}{_text_of_span(explained)}"


def _text_of_refusal(operator: RuntimeOperator, error: ParameterError) -> str:
    return f"{operator.type} {operator.name!r} cannot run: {error.reason}"


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
