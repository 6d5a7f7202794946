"""Prints the result of a comparison with a reference as a table or as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.comparison import Status
from engine.text import format_brief, format_count, format_names
from kuiper_studio.cli.terminal import say, say_table

if TYPE_CHECKING:
    from engine.comparison import Comparison, Origin, Row

__all__ = ["say_comparison"]

_HEADS: Final = (
    "#", "type", "name", "operand", "reference", "matched by", "max difference", "cosine",
    "within 1‰", "born", "inherited", "status",
)  # fmt: skip


def say_comparison(found: Comparison, *, everything: bool) -> None:
    """Print the rows that differ, or all, the origins and the verdict."""
    shown = found.rows if everything else [r for r in found.rows if r.status is not Status.SAME]
    if shown:
        say_table([_HEADS, *map(_cells, shown)], right={0, 6, 7, 8, 9, 10})
        say()
    for origin in found.origins:
        _say_origin(origin)
    if everything:
        for side, listed in (
            ("the model", found.unmatched.ours),
            (found.reference, found.unmatched.reference),
        ):
            for each in listed:
                say(f"not matched, {side}: {each.operand}: {each.reason}")
    say(_summary(found))


def _cells(row: Row) -> tuple[str, ...]:
    measures = row.measures
    numbers = ("", "", "")
    if measures is not None:
        cosine = format_brief(measures.cosine) if measures.cosine is not None else ""
        within = f"{measures.within_permille:.1%}"
        numbers = (format_brief(measures.max_abs), cosine, within)
    born, inherited = (
        format_brief(value) if value is not None else "" for value in (row.born, row.inherited)
    )
    matched = f"{row.matched_by} {row.confidence:.0%}"
    if row.layout.name:
        matched += f", {row.layout.name}"
    status = f"{row.status.value}: {row.reason}" if row.reason else row.status.value
    label = row.operator
    return (
        str(label.index), label.type, label.name, row.operand, row.reference, matched,
        *numbers, born, inherited, status,
    )  # fmt: skip


def _say_origin(origin: Origin) -> None:
    say(f"origin: {origin.text}")
    for reason in origin.reasons:
        say(f"  {reason.explains:.0%} {reason.kind}: {reason.text}")


def _summary(found: Comparison) -> str:
    if found.advice:
        return f"nothing compared. {found.advice}"
    compared = sum(row.measures is not None for row in found.rows)
    text = (
        f"{format_count(compared, 'operand')} compared with {found.reference}, "
        f"{format_count(len(found.unmatched.ours))} of the model and "
        f"{format_count(len(found.unmatched.reference))} of the reference not matched"
    )
    for status, cause in (
        (Status.FLOAT16_WEIGHTS, "the rounding of weights to float16"),
        (Status.INT8, "computing in int8"),
    ):
        rounded = sum(row.status is status for row in found.rows)
        if rounded:
            differ = format_count(rounded, "operand differs", "operands differ")
            text += f"; {differ} by {cause}"
    if found.checked:
        agree = format_count(found.checked, "operand agrees", "operands agree")
        text += f"; {agree} on the reference's values, where the run has none"
    same = ", ".join(filter(None, ("same", found.reservation)))
    if found.missing_outputs:
        text += f"; outputs of the model not compared: {format_names(found.missing_outputs)}"
    if found.reference_failure:
        text += f"; the reference is incomplete: {found.reference_failure}"
    if found.verdict == "same":
        return f"{same}: {text}"
    count = format_count(len(found.origins), "origin")
    return f"differs: {count}; {text}"
