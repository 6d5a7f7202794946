"""Prints what the outputs of a run mean, as lines or for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import MeaningError
from engine.meanings.results import Boxes, KeyPoints, Transcript
from engine.output_reading import read_output
from kuiper_studio.cli.terminal import say

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from engine.output_reading import Meaning
    from engine.session import Session

__all__ = ["meaning_facts", "read_meaning", "say_meaning"]


def read_meaning(
    session: Session, arguments: argparse.Namespace, labels: Sequence[str]
) -> Meaning | None:
    """Read the outputs of a session at its end; return None if nobody asks for that.

    Parameters
    ----------
    session : Session
    arguments : Namespace
        With the arguments of ``run``.
    labels : sequence of str
        Names of classes.
    """
    if arguments.meaning is None:
        return None
    given: dict[str, float | int | str] = {}
    for option in arguments.meaning_option:
        name, equals, value = option.partition("=")
        if not equals:
            raise MeaningError(f"--meaning-option takes NAME=VALUE, not {option}")
        given[name] = value
    meaning = read_output(session, arguments.meaning, options=given, labels=tuple(labels))
    unknown = given.keys() - {option.name for option in meaning.options}
    if meaning.options and unknown:
        known = ", ".join(option.name for option in meaning.options)
        raise MeaningError(
            f"{meaning.reading} has no option {', '.join(sorted(unknown))}; it has {known}"
        )
    return meaning


def say_meaning(meaning: Meaning | None) -> None:
    """Print a reading as lines; nothing without one."""
    if meaning is None:
        return
    if meaning.result is None:
        say(meaning.reason)
        return
    say(f"{meaning.title}:")
    if isinstance(meaning.result, Transcript):
        say(f"  {meaning.result.text}")
    for row in meaning.result.rows:
        detail = f"  {row.detail}" if row.detail else ""
        say(f"  {row.text:>12}  {row.name}{detail}")
    if meaning.result.note:
        say(f"  {meaning.result.note}")


def meaning_facts(meaning: Meaning | None) -> dict[str, Any]:
    """Return a reading as strict JSON can hold it, below the key ``meaning``."""
    return {"meaning": _facts(meaning)} if meaning is not None else {}


def _facts(meaning: Meaning) -> dict[str, Any]:
    result = meaning.result
    facts: dict[str, Any] = {
        "reading": meaning.reading or None,
        "reason": meaning.reason or None,
        "fits": {fit.name: fit.score for fit in meaning.fits if fit.score > 0},
    }
    if result is None:
        return facts
    facts["note"] = result.note
    facts["rows"] = [
        {"entry": row.entry, "name": row.name, "text": row.text, "detail": row.detail}
        for row in result.rows
    ]
    if isinstance(result, Boxes):
        for row, corners, score in zip(
            facts["rows"], result.corners.tolist(), result.scores.tolist(), strict=True
        ):
            row |= {"corners": corners, "score": score}
        for row, turned in zip(
            facts["rows"],
            result.turned.tolist() if result.turned is not None else (),
            strict=False,
        ):
            row |= {"turned": turned}
    if isinstance(result, Transcript):
        facts["text"] = result.text
    if isinstance(result, KeyPoints):
        for row, (x, y, score) in zip(facts["rows"], result.points.tolist(), strict=True):
            row |= {"x": x, "y": y, "score": score}
    return facts
