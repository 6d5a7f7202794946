"""Compares a session with a reference and finds the operators where differences begin."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from engine.backends.blas import one_blas_thread
from engine.comparison.aligned import Aligned
from engine.comparison.aligning import align
from engine.comparison.corrections import read_corrections
from engine.comparison.fingerprints import FingerprintIndex
from engine.comparison.input_sizes import blame_sizes, find_other_sizes
from engine.comparison.matching import Matcher
from engine.comparison.measures import Tolerances
from engine.comparison.origins import Origins
from engine.comparison.references import open_reference_for
from engine.comparison.references.sessions import names_of_members, run_to_end
from engine.comparison.rounding import Rounding
from engine.comparison.row_making import make_rows
from engine.comparison.rows import Comparison, Status, is_empty
from engine.comparison.second_input import check_with_second_input
from engine.comparison.unmatched import find_unmatched
from engine.threads import thread_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from engine.comparison.references import Reference
    from engine.comparison.rows import Origin
    from engine.inputs import SourceImage
    from engine.runtime import RuntimeGraph
    from engine.session import Session

__all__ = ["compare"]


def compare(
    session: Session,
    reference: Reference | Session | RuntimeGraph | str | Path,
    tolerances: Tolerances | float | None = None,
    *,
    corrections: Mapping[str, str | None] | None = None,
    images: Mapping[str, SourceImage] | None = None,
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
    images : mapping of str to SourceImage, optional
        What inputs were made from, by operand: so another way of resizing can be found.
    progress : callable, optional
        Called with the number of operators done and the total, also while a copy or a reference
        runs; with the total twice while origins and reasons are sought. An exception ends the
        comparison.

    Returns
    -------
    Comparison

    Raises
    ------
    SessionStateError
        If the session has no input.
    ReferenceFileError, DumpFileError
        If the reference, or each of its tensors, cannot be read.
    """
    if not isinstance(tolerances, Tolerances):
        tolerances = Tolerances() if tolerances is None else Tolerances(float32=tolerances)
    run = run_to_end(session, progress)
    reference = open_reference_for(run, reference, progress)
    if corrections is None:
        corrections = read_corrections(run.graph.source_path, reference.title)
    count = len(run.graph.operators)

    def check_cancelled() -> None:
        if progress is not None:
            progress(count, count)

    # NumPy warns of a signalling NaN, which a file may hold, when it converts it. Where other
    # programs compute, the threads of BLAS wait for each other longer than one needs for all.
    with np.errstate(invalid="ignore"), one_blas_thread, _arranging_values(run):
        index = FingerprintIndex(reference)
        index.require_any()
        matcher = Matcher(run.graph, reference, index, corrections)
        alignment = align(run, reference, index, matcher, tolerances.float32, progress)
        check_with_second_input(
            run, reference, index, matcher, alignment, tolerances.float32, progress
        )
        aligned = Aligned(run, reference, alignment, tolerances, check_cancelled, images or {})
        make_rows(aligned, index.shapes)
        sizes = find_other_sizes(run, matcher, index.shapes)
        differs, origins = (True, blame_sizes(aligned, sizes)) if sizes else _judge(aligned)
        _mark_excused(aligned)
        _add_remarks(aligned)
        rows = tuple(aligned.rows.values())
        unmatched = find_unmatched(aligned, matcher, index.unreadable)
        return Comparison(
            "differs" if differs or is_empty(rows, unmatched) else "same",
            rows,
            origins,
            unmatched,
            reference.title,
            tolerances,
            _missing_outputs(aligned),
            reference.failure,
        )


@contextmanager
def _arranging_values(session: Session) -> Iterator[None]:
    """Arrange a session's values on another thread, ahead of the block that reads them.

    A library leaves them in its own layout until they are first read.
    """
    if session.memory_limit is not None or thread_count() < 2:
        yield
        return
    names = [o.name for operator in session.graph.operators for o in operator.outputs]

    def arrange() -> None:
        for name in names:
            if session.is_resident(name):
                session.value(name)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(arrange)  # what it raises, the first reader of the value meets again
        yield


def _judge(aligned: Aligned) -> tuple[bool, tuple[Origin, ...]]:
    """Return whether the model differs, and where; mark the rows that are no fault."""
    origins, rounding = Origins(aligned), Rounding(aligned)
    origins.blame_refused()
    rounding.excuse_accumulated()
    origins.excuse_corrected()
    found = origins.find()
    if found:
        return True, found
    if not _has_unexcused(aligned):
        return False, ()
    rounding.measure_born()
    found = tuple([origins.of(row) for row in rounding.suspects()])
    return bool(found) or not rounding.excuse_amplified(), found


def _has_unexcused(aligned: Aligned) -> bool:
    """Whether an operand differs, and no tie and nothing random upstream explains it."""
    excused = aligned.downstream(lambda row: row.status.is_excused)
    return any(
        row.status is Status.INHERITED and row.operand not in excused
        for row in aligned.rows.values()
    )


def _mark_excused(aligned: Aligned) -> None:
    """Mark rows that inherit only what is no fault."""
    excused = aligned.downstream(lambda row: row.status.is_excused)
    faulty = aligned.downstream(lambda row: row.status is Status.ORIGIN)
    inherits = excused - faulty
    for name, row in aligned.rows.items():
        if row.status is Status.INHERITED and name in inherits:
            reason = row.reason or "what differs upstream is no fault"
            aligned.rows[name] = replace(row, excused=True, reason=reason)


def _add_remarks(aligned: Aligned) -> None:
    """Say of rows, where there is nothing else to say, that their match may be chance."""
    for name, remark in aligned.alignment.remarks.items():
        row = aligned.rows[name]
        if not row.reason:
            aligned.rows[name] = replace(row, reason=remark)


def _missing_outputs(aligned: Aligned) -> tuple[str, ...]:
    compared = {name for name, row in aligned.rows.items() if row.measures is not None}
    outputs = aligned.session.graph.output_operands
    names = [name for operand in outputs for name in names_of_members(operand)]
    return tuple([name for name in names if name not in compared])
