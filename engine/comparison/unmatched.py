"""Says of the tensors of both sides that have no counterpart why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.comparison.rows import Unmatched, UnmatchedTensor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.comparison.aligned import Aligned
    from engine.comparison.matching import Matcher
    from engine.runtime import RuntimeOperand, RuntimeOperator

__all__ = ["find_unmatched"]

_BY_CHANCE: Final = "holds for one input only"


def find_unmatched(
    aligned: Aligned, matcher: Matcher, unreadable: Mapping[str, str]
) -> Unmatched:
    """Return the tensors of both sides without a row, with the reason of each.

    Parameters
    ----------
    aligned : Aligned
    matcher : Matcher
    unreadable : mapping of str to str
        Why tensors of the reference could not be read, by key.
    """
    rows, stand_ins = aligned.rows, aligned.alignment.stand_ins
    ours = [
        UnmatchedTensor(
            operand.name,
            _why(aligned, matcher, operator, operand),
            is_open=not operator.is_constant and operand.name not in stand_ins,
        )
        for operator in aligned.session.graph.operators
        for operand in operator.outputs
        if operand.name not in rows
    ]
    used = {row.reference for row in rows.values()}
    reasons = dict.fromkeys(aligned.alignment.by_chance.values(), _BY_CHANCE)
    reasons |= unreadable
    theirs = [
        UnmatchedTensor(
            tensor.key, reasons.get(tensor.key, "no operand of the model has its elements")
        )
        for tensor in aligned.reference.tensors
        if tensor.key not in used
    ]
    return Unmatched(tuple(ours), tuple(theirs))


def _why(
    aligned: Aligned, matcher: Matcher, operator: RuntimeOperator, operand: RuntimeOperand
) -> str:
    name, session = operand.name, aligned.session
    if matcher.is_corrected(name) and matcher.corrected(name) is None:
        return "it was marked by hand as having no counterpart"
    if name in aligned.alignment.by_chance:
        return _BY_CHANCE
    if name in aligned.alignment.stand_ins:
        return "the reference does not show it; the operators that read it agree"
    if operator.is_constant:
        return "it is a constant of the model"
    record = session.record(operator.name)
    if record is not None and not session.has_value(name):
        return record.reason or "it has no value"
    value = session.metadata(name) if session.has_value(name) else None
    if value is not None and not hasattr(value, "dtype"):
        return f"it is a {type(value).__name__}, not a tensor"
    return "no tensor of the reference fits"
