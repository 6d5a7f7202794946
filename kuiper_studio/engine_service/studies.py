"""Studies that leave a session as it is: reproducers, precision, attention, outputs."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from engine.attention.results import Place
from engine.attention.scores import compute_attention, compute_rollout
from engine.attention.window_rollout import compute_window_rollout
from engine.axes import infer_layouts
from engine.dump import select_operators
from engine.errors import InferenceError
from engine.output_reading import read_output
from engine.precision import choose_float32, simulate_precision
from engine.reproducer import output_names, write_reproducer
from engine.states import SessionState
from engine.values import ArrayMetadata
from kuiper_studio.engine_service.protocol import PrecisionResult

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from engine.attention.results import AttentionScores
    from engine.output_reading import Meaning
    from engine.session import Session
    from engine.values import Array, Value
    from kuiper_studio.engine_service.protocol import (
        AttentionRequest,
        ExtractRequest,
        MeaningRequest,
        PrecisionRequest,
    )

__all__ = [
    "RUNNABLE",
    "extract_operators",
    "look_at_attention",
    "read_meaning",
    "simulate_formats",
]

RUNNABLE: Final = frozenset({SessionState.READY, SessionState.STOPPED})


def extract_operators(
    session: Session,
    request: ExtractRequest,
    reference_value: Callable[[str], Array | None],
    check_cancelled: Callable[[], None],
) -> Path:
    """Write operators as a model of their own; see `engine.write_reproducer`.

    Parameters
    ----------
    session : Session
        If it has not come as far, a copy is run.
    request : ExtractRequest
    reference_value : callable
        Returns the reference's tensor of an operand of ours, or None.
    check_cancelled : callable
        Called between operators; what it raises ends the work.
    """
    chosen = select_operators(session.graph, request.operators)
    run = _run_past(session, max(operator.index for operator in chosen), check_cancelled)
    expected = {}
    if request.expects_reference:
        for name in output_names(run, chosen):
            value = reference_value(name)
            if value is not None:
                expected[name] = value
    return write_reproducer(
        run,
        request.operators,
        request.path,
        expected=expected or None,
        overwrite=request.overwrites,
    )


def _run_past(session: Session, index: int, check_cancelled: Callable[[], None]) -> Session:
    """Return a session of the same run that has come past an operator, as far as it can."""
    if session.position > index or session.state not in RUNNABLE:
        return session
    kernels = {record.operator.name: record.kernel for record in session.records}
    run = session.fork(session.backend if session.backend != "recorded" else kernels)
    with suppress(InferenceError):  # what the failed one takes may be all that is needed
        while run.position <= index and run.state in RUNNABLE:
            check_cancelled()
            run.step()
    return run


def simulate_formats(
    session: Session,
    request: PrecisionRequest,
    report: Callable[[int, int], None],
    cancelled: Callable[[], bool],
) -> tuple[PrecisionResult, ...]:
    """Simulate formats, and choose operators to keep in float32 where an error is wanted.

    Returns
    -------
    tuple of PrecisionResult
        One per format; empty if the work was cancelled.
    """
    if request.wanted_error is None:
        found = simulate_precision(
            session, request.formats, progress=report, cancelled=cancelled
        )
        return () if cancelled() else tuple(PrecisionResult(each) for each in found)
    results = []
    for place, name in enumerate(request.formats):

        def tell(done: int, total: int, place: int = place) -> None:
            report(place * total + done, len(request.formats) * total)

        kept = choose_float32(
            session, name, request.wanted_error, progress=tell, cancelled=cancelled
        )
        if cancelled():
            return ()
        results.append(PrecisionResult(kept.simulation, kept))
    return tuple(results)


def look_at_attention(
    session: Session, request: AttentionRequest, check_cancelled: Callable[[], None]
) -> AttentionScores | Array:
    """Compute the weights of an attention, or the rollout of several.

    Parameters
    ----------
    session : Session
    request : AttentionRequest
    check_cancelled : callable
        Called before each value is read; what it raises ends the work.
    """

    def read(operand: str) -> Value:
        check_cancelled()
        return session.value(operand, check_cancelled)

    with session.within_bound():
        if request.of_windows:
            shapes = {
                name: found.shape
                for name in session.graph.operands
                if session.has_value(name)
                and isinstance(found := session.metadata(name), ArrayMetadata)
            }
            layouts = infer_layouts(session.graph, shapes)
            return compute_window_rollout(
                session.graph, request.blocks, read, layouts.get, request.sample
            )
        if request.blocks:
            return compute_rollout(session.graph, request.blocks, read, request.sample)
        place = Place(request.heads, request.sample, request.query)
        return compute_attention(session.graph, request.attention, read, place)


def read_meaning(
    session: Session, request: MeaningRequest, check_cancelled: Callable[[], None]
) -> Meaning:
    """Read the outputs of a session; see `engine.output_reading.read_output`.

    Parameters
    ----------
    session : Session
    request : MeaningRequest
    check_cancelled : callable
        Called while values are read; what it raises ends the work.
    """
    with session.within_bound():
        return read_output(
            session,
            request.reading,
            options=dict(request.options),
            labels=request.labels,
            sample=request.sample,
            check_cancelled=check_cancelled,
        )
