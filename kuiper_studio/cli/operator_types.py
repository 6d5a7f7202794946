"""The operator types that have a layer, and the notes on them."""

from __future__ import annotations

import fnmatch
import textwrap
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from engine.errors import UnsupportedOperatorError
from engine.layers import registered_types
from engine.layers.notes import note, remove_marks
from kuiper_studio.cli.terminal import printable, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.layers.notes import ArgumentNote, OperatorNote

__all__ = ["find_notes", "note_facts", "say_note", "say_notes"]

_WIDTH: Final = 88
_LONGEST_TYPE: Final = 40


def find_notes(patterns: Sequence[str]) -> list[OperatorNote]:
    """Return the notes on the types that match a pattern, or on all types without patterns.

    Raises
    ------
    UnsupportedOperatorError
        If a pattern matches nothing; suggests the nearest type.
    """
    known = registered_types()
    found: set[str] = set() if patterns else set(known)
    for pattern in patterns:
        fitting = fnmatch.filter(known, pattern)
        if not fitting:
            raise UnsupportedOperatorError("", pattern, known)
        found.update(fitting)
    return [note(name) for name in sorted(found)]


def note_facts(found: OperatorNote) -> dict[str, Any]:
    """Return a note as strict JSON can hold it, without markup."""
    facts: dict[str, Any] = _unmarked(asdict(found))
    return {**facts, "file": str(found.file) if found.file is not None else None}


def _unmarked(facts: Any) -> Any:  # noqa: ANN401 - whatever a note holds
    if isinstance(facts, str):
        return remove_marks(facts)
    if isinstance(facts, dict):
        return {key: _unmarked(value) for key, value in facts.items()}
    if isinstance(facts, (tuple, list)):
        return [_unmarked(item) for item in facts]
    return facts


def say_notes(notes: Sequence[OperatorNote]) -> None:
    """Print a line for each note."""
    width = min(max(len(found.type) for found in notes), _LONGEST_TYPE)
    for found in notes:
        say(f"{printable(found.type).ljust(width)}  {remove_marks(found.summary)}".rstrip())


def say_note(found: OperatorNote) -> None:
    """Print a note in full."""
    say(found.type + (f" — {found.reference}" if found.reference else ""))
    for paragraph in (found.summary, *found.details):
        if paragraph:
            _say_wrapped(remove_marks(paragraph))
    if found.arguments:
        say()
        say("arguments:")
        for argument in found.arguments:
            _say_wrapped(_argument_text(argument), "  ")
    for result in found.returns:
        say()
        _say_wrapped(f"returns: {remove_marks(result)}")
    if found.same:
        say()
        _say_wrapped(f"also for: {', '.join(found.same)}")
    if found.file is not None:
        say()
        say(f"layer from: {found.file}")
    if found.url:
        say()
        say(found.url)


def _argument_text(argument: ArgumentNote) -> str:
    default = f", default {argument.default}" if argument.default else ""
    if argument.default == "None":
        default = "" if "optional" in argument.accepts else ", optional"
    accepts = f": {remove_marks(argument.accepts)}" if argument.accepts else ""
    meaning = f". {remove_marks(argument.meaning)}" if argument.meaning else ""
    return f"{argument.name} ({argument.kind}{default}){accepts}{meaning}"


def _say_wrapped(text: str, indent: str = "") -> None:
    further = f"{indent}    " if indent else ""
    for line in textwrap.wrap(
        text, _WIDTH, initial_indent=indent, subsequent_indent=further, break_long_words=False
    ):
        say(line)
