"""Prints the outputs of a run as lines or as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from engine.array_files import is_numeric
from engine.plain import plain
from engine.text import format_count, format_duration
from kuiper_studio.cli.report import format_operand
from kuiper_studio.cli.terminal import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.session import Session
    from engine.values import Array, Value

__all__ = ["RunOutput", "find_outputs", "run_facts", "say_run"]

_BEST: Final = 5
_MOST_SAMPLES: Final = 8


class RunOutput(NamedTuple):
    """An output of a model.

    Attributes
    ----------
    name : str
    value : Value
    array : ndarray or None
        None for a value that is no number.
    scores : ndarray of shape (samples, classes) or None
        None where the labels do not fit.
    """

    name: str
    value: Value
    array: Array | None
    scores: Array | None


def find_outputs(session: Session, labels: Sequence[str]) -> tuple[RunOutput, ...]:
    """Return the outputs of a session at its end."""
    found = []
    for index, value in enumerate(session.outputs()):
        array = np.asarray(value)
        numbers = array if is_numeric(array) else None
        scores = _scores_of(array, labels) if numbers is not None else None
        found.append(RunOutput(f"out{index}", value, numbers, scores))
    return tuple(found)


def _scores_of(array: Array, labels: Sequence[str]) -> Array | None:
    if not labels or array.size % len(labels) or array.dtype.kind == "c":
        return None
    classes = array.shape[-1] if array.size != len(labels) else array.size
    return array.reshape(-1, classes) if classes == len(labels) else None


def _best_of(sample: Array, labels: Sequence[str]) -> list[tuple[str, Any]]:
    order = np.argsort(-sample.astype(np.float64), kind="stable")[:_BEST]
    return [(labels[i], sample[i]) for i in order]


def run_facts(
    session: Session, outputs: Sequence[RunOutput], labels: Sequence[str], written: str | None
) -> dict[str, Any]:
    """Return a run as strict JSON can hold it."""
    return {
        "operators": len(session.records),
        "seconds": sum(record.seconds for record in session.records),
        "random": sum(record.random for record in session.records),
        "seed": session.seed,
        "outputs": [_output_facts(output, labels) for output in outputs],
        "written": written,
    }


def _output_facts(output: RunOutput, labels: Sequence[str]) -> dict[str, Any]:
    array = output.array
    if array is None:
        return {"name": output.name, "shape": None, "dtype": None, "value": repr(output.value)}
    facts: dict[str, Any] = {
        "name": output.name, "shape": list(array.shape), "dtype": array.dtype.name
    }  # fmt: skip
    if output.scores is not None:
        facts["best"] = [
            [{"label": label, "score": plain(score)} for label, score in _best_of(row, labels)]
            for row in output.scores
        ]
    return facts


def say_run(session: Session, outputs: Sequence[RunOutput], labels: Sequence[str]) -> None:
    """Print how long a run took, its outputs, and the best classes of each."""
    seconds = sum(record.seconds for record in session.records)
    random = sum(record.random for record in session.records)
    drawn = f", {random} of them random, seed {session.seed}" if random else ""
    say(
        f"{format_count(len(session.records), 'operator')} in {format_duration(seconds)}{drawn}"
    )
    for output in outputs:
        if output.array is None:
            say(f"{output.name}: {output.value!r} is not an array and is not written")
            continue
        say(f"{output.name}: {format_operand(output.array.shape, output.array.dtype.name)}")
        if output.scores is not None:
            _say_best(output.scores, labels)


def _say_best(scores: Array, labels: Sequence[str]) -> None:
    for number, sample in enumerate(scores[:_MOST_SAMPLES]):
        where = f"[{number}] " if len(scores) > 1 else ""
        for label, score in _best_of(sample, labels):
            say(f"  {where}{score:10.4f}  {label}")
    if len(scores) > _MOST_SAMPLES:
        say(f"  and {format_count(len(scores) - _MOST_SAMPLES, 'sample')} more")
