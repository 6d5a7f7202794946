"""A comparison in the engine's process, and the reference's tensors for the window."""

from __future__ import annotations

from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from engine.comparison import (
    compare,
    open_reference_for,
    read_corrections,
    write_corrections,
)
from engine.comparison.references.sessions import reference_of_session, run_to_end
from engine.comparison.report import write_report
from engine.errors import EngineError, InferenceError
from engine.inputs import load_inputs, source_images
from engine.values import ArrayMetadata
from kuiper_studio.engine_service.plans import resolve
from kuiper_studio.engine_service.protocol import OtherRun, ReferenceEntry
from kuiper_studio.engine_service.repeating import command_of
from kuiper_studio.engine_service.studies import RUNNABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from engine.comparison import Comparison, Reference
    from engine.inputs import SourceImage
    from engine.session import Session
    from engine.values import Array
    from kuiper_studio.engine_service.plans import ResolvedPlan
    from kuiper_studio.engine_service.protocol import CompareRequest

__all__ = ["ComparedRun", "compare_run"]


def compare_run(
    session: Session,
    request: CompareRequest,
    serial: int,
    report: Callable[[int, int], None],
    plan: ResolvedPlan | None,
    converting: Callable[[str], None],
) -> ComparedRun:
    """Compare a session with a reference; see `engine.compare`.

    Parameters
    ----------
    session : Session
        Fed; it stays as it is.
    request : CompareRequest
    serial : int
        Number under which the window fetches the reference's tensors.
    report : callable
        Called with the number of operators done, and of all, and with zeros where none can be
        counted; what it raises ends the comparison.
    plan : ResolvedPlan or None
        What the session was fed with.
    converting : callable
        Called with each line of the exporter, if the reference has to be converted.
    """
    running = _without_end(report)
    run = run_to_end(session, running)
    if isinstance(request.reference, OtherRun):
        reference = _run_otherwise(session, request.reference, running)
    else:
        reference = open_reference_for(run, request.reference, running, converting)
    corrections = read_corrections(run.graph.source_path, reference.title)
    images = {}
    if plan is not None:
        sources = list(plan.inputs.values())
        images = source_images(sources, run.graph.input_operands, plan.options)
    comparison = compare(
        run,
        reference,
        request.tolerance,
        corrections=corrections,
        images=images,
        progress=report,
    )
    command = command_of(session, request, plan)
    return ComparedRun(serial, session, reference, comparison, command, corrections, images)


def _without_end(report: Callable[[int, int], None]) -> Callable[[int, int], None]:
    """Tell of a run: the total twice would mean that it is over, and reasons are sought."""
    return lambda done, total: report(min(done, max(total - 1, 0)), total)


def _run_otherwise(
    session: Session, other: OtherRun, report: Callable[[int, int], None]
) -> Reference:
    """Run the model of a session with another backend, seed or input."""
    run = session.fork(other.backend)
    run.reseed(other.seed)
    if other.plan is not None:
        plan, operands = resolve(run.graph, other.plan), run.graph.input_operands
        with run.within_bound():
            sources = list(plan.inputs.values())
            run.feed(load_inputs(sources, operands, plan.options, plan.shapes))
    with suppress(InferenceError):  # what ran before it can be compared
        while run.state in RUNNABLE:
            report(run.position, len(run.graph.operators))
            run.step()
    return reference_of_session(run, other.name)


class ComparedRun:
    """A session that was compared, and the reference.

    Parameters
    ----------
    serial : int
    session : Session
    reference : Reference
    comparison : Comparison
    command : tuple of str
        The command line that repeats the comparison; empty for none.
    corrections : mapping of str to str or None
        The matches by hand that hold.
    images : mapping of str to SourceImage
        What inputs were made from, by operand.
    """

    def __init__(
        self,
        serial: int,
        session: Session,
        reference: Reference,
        comparison: Comparison,
        command: tuple[str, ...],
        corrections: Mapping[str, str | None],
        images: Mapping[str, SourceImage],
    ) -> None:
        self.serial, self.comparison, self.corrections = serial, comparison, corrections
        self._images = images
        self._session, self._reference, self._command = session, reference, command
        self._rows = {row.operand: row for row in comparison.rows}
        self._lock = Lock()  # a reference is not for several threads

    def metadata(self) -> Mapping[str, ArrayMetadata]:
        """Return shape and dtype of the reference's tensors, by our operand."""
        found = {}
        for name, row in self._rows.items():
            shape = row.shape if row.measures is not None else row.reference_shape
            if shape is not None and row.reference_dtype:
                found[name] = ArrayMetadata(shape, np.dtype(row.reference_dtype))
        return found

    def entries(self) -> tuple[ReferenceEntry, ...]:
        """Return the reference's tensors that can be read."""
        shapes = {row.reference: row.reference_shape for row in self._rows.values()}
        found = []
        for tensor in self._reference.tensors:
            shape = shapes.get(tensor.key)
            if shape is None:
                try:
                    with self._lock:
                        shape = self._reference.array(tensor.key).shape
                except EngineError:
                    continue
            found.append(ReferenceEntry(tensor.key, tensor.operator, tensor.type, shape))
        return tuple(found)

    def correct(
        self,
        corrections: Mapping[str, str | None],
        serial: int,
        report: Callable[[int, int], None],
    ) -> ComparedRun:
        """Compare again with other matches by hand; nobody may read tensors meanwhile."""
        with self._lock:
            comparison = compare(
                run_to_end(self._session, _without_end(report)),
                self._reference,
                self.comparison.tolerances,
                corrections=corrections,
                images=self._images,
                progress=report,
            )
        return ComparedRun(
            serial,
            self._session,
            self._reference,
            comparison,
            self._command,
            corrections,
            self._images,
        )

    def write_corrections(self) -> str:
        """Write the matches by hand beside the model; return why they were not written."""
        path, title = self._session.graph.source_path, self._reference.title
        try:
            if read_corrections(path, title) != self.corrections:
                write_corrections(path, title, self.corrections)
        except EngineError as exc:
            return str(exc)
        return ""

    def value(self, operand: str) -> Array:
        """Return the reference's tensor, in the layout of our operand.

        Raises
        ------
        EngineError
            If it cannot be read.
        """
        with self._lock:
            return self._rows[operand].load(self._reference)

    def expected(self, operand: str) -> Array | None:
        """Return what the reference has for an operand; see `Comparison.expected`."""
        with self._lock:
            return self.comparison.expected(operand, self._reference)

    def write_report(self, path: Path, check_cancelled: Callable[[], None]) -> Path:
        """Write the page; see `engine.comparison.report`."""
        with self._lock:
            return write_report(
                self.comparison,
                run_to_end(self._session, lambda *_: check_cancelled()),
                self._reference,
                path,
                command=self._command,
                check_cancelled=check_cancelled,
            )
