"""Prints the result of a self-check as a table or as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.plain import plain
from engine.self_check import Verdict
from engine.text import format_brief, format_count, format_milliseconds
from kuiper_studio.cli.terminal import say, say_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.self_check import Comparison, SelfCheck

__all__ = ["check_facts", "say_check"]

_HEADS: Final = (
    "largest difference", "relative to the largest", "relative to the element",
    "beyond tolerance", "",
)  # fmt: skip


def check_facts(found: SelfCheck) -> dict[str, Any]:
    """Return the result of a self-check as strict JSON can hold it."""
    return {
        "libraries": list(found.libraries),
        "tolerance": found.tolerance,
        "seconds": found.seconds,
        "operators": found.operator_count,
        "compared": len(found.compared),
        "differing": len(found.differing),
        "comparisons": [_comparison_facts(comparison) for comparison in found.comparisons],
        "alone": [operator.name for operator in found.alone],
        "not_run": [
            {"index": operator.index, "name": operator.name, "reason": reason}
            for operator, reason in found.not_run.items()
        ],
        "error": str(found.error) if found.error is not None else "",
    }


def _comparison_facts(comparison: Comparison) -> dict[str, Any]:
    far = comparison.difference
    facts: dict[str, Any] = {
        "index": comparison.operator.index,
        "name": comparison.operator.name,
        "type": comparison.operator.type,
        "kernel": comparison.kernel,
        "verdict": comparison.verdict.value,
        "reason": comparison.reason,
    }
    if comparison.verdict is not Verdict.LEFT:
        facts |= {
            "largest": plain(far.largest),
            "relative": plain(far.relative),
            "beyond": far.beyond,
            "count": far.count,
            "member": far.member,
            "place": list(far.place),
            "found": plain(far.found),
            "expected": plain(far.expected),
            "unlike": far.unlike,
            "relative_of_element": plain(far.of_element),
            "element": {
                "member": far.element.member,
                "place": list(far.element.place),
                "found": plain(far.element.found),
                "expected": plain(far.element.expected),
            },
            "seconds": comparison.seconds,
            "reference_seconds": comparison.reference_seconds,
        }
    return facts


def say_check(found: SelfCheck, *, everything: bool) -> None:
    """Print a table of the operators that differ, or of all, and a summary."""
    shown = found.comparisons if everything else found.differing
    if shown:
        say_table(_rows(shown), right={0, 4, 5, 6, 7, 8})
        say()
    say(found.summary)
    if everything and found.alone:
        say(f"computed by NumPy only: {', '.join(operator.name for operator in found.alone)}")


def _rows(comparisons: Sequence[Comparison]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("#", "type", "name", "kernel", "ms", *_HEADS)]
    for comparison in comparisons:
        operator = comparison.operator
        spent = format_milliseconds(comparison.seconds) if comparison.seconds else ""
        named = (str(operator.index), operator.type, operator.name, comparison.kernel, spent)
        rows.append((*named, *_found(comparison)))
    return rows


def _found(comparison: Comparison) -> tuple[str, ...]:
    far = comparison.difference
    if comparison.verdict is Verdict.LEFT:
        return "", "", "", "", f"left to NumPy: {comparison.reason}"
    if far.unlike:
        return "", "", "", "", far.unlike
    beyond = f"{format_count(far.beyond)} of {format_count(far.count)}" if far.beyond else ""
    numbers = (format_brief(number) for number in (far.largest, far.relative, far.of_element))
    return *numbers, beyond, far.words
