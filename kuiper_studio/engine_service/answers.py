"""Answers what the window wants to look at: values, weights, and what is computed from them.

Values and weights are sent by a thread of their own, also while a model runs. What must be
computed first waits until there is no other work.
"""

from __future__ import annotations

import importlib
import logging
import time
from queue import PriorityQueue
from threading import Thread
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

import engine
from engine.errors import EngineError
from engine.runtime.description import collect_notes
from kuiper_studio.engine_service.channels import ChannelView, measure_channels
from kuiper_studio.engine_service.protocol import (
    AlignRequest,
    Answer,
    AttentionRequest,
    DistancesWanted,
    Evicted,
    ExplainRequest,
    FaultNote,
    FaultsFound,
    FetchRequest,
    MeaningRequest,
    MeasureRequest,
    NotesRead,
    Progress,
    TraceRequest,
    WeightRequest,
)
from kuiper_studio.engine_service.served import CancelledError
from kuiper_studio.engine_service.summary import MEASURES, measure, summarise

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.runtime import RuntimeGraph
    from engine.values import Value
    from kuiper_studio.engine_service.channel_totals import ChannelTotals
    from kuiper_studio.engine_service.channels import ChannelDistances
    from kuiper_studio.engine_service.served import Execution, Served

__all__ = ["Answers", "LookedAt", "Wanted"]

_log = logging.getLogger(__name__)

_LONG: Final = 0.2  # seconds after which a computation shows its progress

Wanted: TypeAlias = FetchRequest | MeasureRequest | WeightRequest
LookedAt: TypeAlias = (
    FetchRequest
    | ExplainRequest
    | TraceRequest
    | AlignRequest
    | AttentionRequest
    | MeaningRequest
)

_EXPLAINING: Final = {
    "terms": "Explaining the element",
    "field": "Finding the receptive field",
    "weight": "Computing the effective weight",
    "check": "Computing the element with noise",
}


class _NotesWanted(NamedTuple):
    """A model whose notes are still to be sent."""

    run_id: int
    graph: RuntimeGraph


class Answers:
    """Sends what the window looks at.

    Parameters
    ----------
    served : Served
    send : callable
        Called with each answer, on several threads.
    put_off : callable
        Called with a request that must be computed; its thread calls `compute` in time.
    is_urgent : callable
        Whether there is more urgent work, for which what is computed is put off again.
    is_cancelled : callable
        Whether what a ticket asks for is cancelled.
    """

    def __init__(
        self,
        served: Served,
        send: Callable[[object], None],
        put_off: Callable[[LookedAt], None],
        is_urgent: Callable[[], bool],
        is_cancelled: Callable[[int], bool],
    ) -> None:
        self._served, self._send, self._put_off = served, send, put_off
        self._is_urgent, self._is_cancelled = is_urgent, is_cancelled
        # Values before summaries, and each in the order of the tickets.
        self._wanted: PriorityQueue[tuple[int, int, Wanted | _NotesWanted | None]]
        self._wanted = PriorityQueue()
        self._sender = Thread(target=self._send_wanted, name="values", daemon=True)
        self._sender.start()

    def want(self, request: Wanted) -> None:
        """Answer on the thread of values; may be called on any."""
        rank = 0
        if isinstance(request, MeasureRequest):
            rank = 2
        elif isinstance(request, FetchRequest) and request.what != "value":
            rank = 1
        self._wanted.put((rank, request.ticket, request))

    def want_notes(self, run_id: int, graph: RuntimeGraph) -> None:
        """Send the notes of a model that has been opened."""
        self._wanted.put((0, 0, _NotesWanted(run_id, graph)))

    def end(self) -> None:
        """Answer nothing any more; may be called on any thread."""
        self._wanted.put((-1, 0, None))

    def join(self) -> None:
        """Wait for the thread of values, after `end`."""
        self._sender.join()

    def compute(self, request: LookedAt) -> None:
        """Compute what is looked at; send it, or the reason why there is none.

        It is put off again where something more urgent is asked for meanwhile.
        """
        answer = Answer(request.ticket)
        try:
            answer = self._look_at(request)
        except CancelledError:
            if not self._is_cancelled(request.ticket):
                self._put_off(request)
                return
        except EngineError as exc:
            answer = Answer(request.ticket, reason=str(exc))
        except Exception as exc:  # noqa: BLE001 - somebody waits for an answer
            _log.exception("what is looked at of operand %s failed", request.operand)
            answer = Answer(request.ticket, reason=str(exc) or type(exc).__name__)
        self._send(answer)

    def _execution_of(self, request: LookedAt) -> Execution:
        found = self._served.execution_of(request.operand, request.serial)
        if found is None:
            raise EngineError("the value is of an earlier pass")
        return found

    # Values and weights

    def _send_wanted(self) -> None:
        """Send requested values and weights; runs on its own thread."""
        while (request := self._wanted.get()[2]) is not None:
            if isinstance(request, _NotesWanted):
                self._send(NotesRead(request.run_id, collect_notes(request.graph)))
                self._send_faults(request)
                # The user's first question is answered at once.
                importlib.import_module("engine.provenance.fields")
                continue
            answer: Answer | None
            try:
                if isinstance(request, WeightRequest):
                    answer = self._weight(request)
                elif isinstance(request, MeasureRequest):
                    answer = self._measure(request)
                else:
                    answer = self._value(request)
            except EngineError as exc:
                answer = Answer(request.ticket, reason=str(exc))
            except Exception as exc:  # noqa: BLE001 - somebody waits for an answer
                _log.exception("a value was not sent")
                answer = Answer(request.ticket, reason=str(exc) or type(exc).__name__)
            if answer is not None:
                self._send(answer)

    def _send_faults(self, request: _NotesWanted) -> None:
        """Send the faults of the export that a model's file shows, if there are any."""
        try:
            found = request.graph.export_faults
        except Exception:  # noqa: BLE001 - the window's other questions are to be answered
            _log.exception("faults of the export were not looked for")
            return
        faults = tuple([
            FaultNote(each.operator.name, each.what, each.remedy, each.sentence, each.certain)
            for each in found
        ])  # fmt: skip
        if faults:
            self._send(FaultsFound(request.run_id, faults))

    def _weight(self, request: WeightRequest) -> Answer:
        archive, generation = self._served.archive, self._served.generation
        if archive is None or request.generation != generation:
            raise EngineError("another model has been opened")
        return Answer(request.ticket, archive.view(request.offset, request.nbytes), found=True)

    def _measure(self, request: MeasureRequest) -> Answer:
        rows = np.full((len(request.executions), len(MEASURES)), np.nan)
        for row, (index, serial) in zip(rows, request.executions, strict=True):
            sent = self._served.executions.get(index)
            values = None
            if sent is not None and sent.serial == serial:
                values = sent.outputs.fetch_resident()
            if values is not None:
                row[:] = measure(values.values())
        return Answer(request.ticket, rows, found=True)

    def _value(self, request: FetchRequest) -> Answer | None:
        """The answer; None where it comes when the value has been computed again."""
        compared = self._served.compared
        if compared is not None and compared.serial == request.serial:
            return self._answer(request, compared.value(request.operand))
        outputs = self._execution_of(request).outputs
        values = outputs.fetch_resident()
        if values is not None:
            outputs.touch()
            return self._answer(request, values[request.operand])
        self._send(Evicted(request.ticket))
        self._put_off(request)
        return None

    def _answer(self, request: FetchRequest, value: Value) -> Answer:
        result: object
        match request.what:
            case "value":
                result = _packed(value)
            case "summary":
                result = summarise(value)
            case "distances":
                result = self._distances(request, value)
            case _:
                result = self._totals_of(request, value)
        return Answer(request.ticket, result, found=True)

    def _totals_of(self, request: FetchRequest, value: Value) -> ChannelTotals:
        """Return the totals of the channels of a value, this pass included."""
        source, view, found = self._execution_of(request).source, request.wanted, None
        if isinstance(value, np.ndarray) and isinstance(view, ChannelView):
            found = self._served.totals.count(request.operand, value, source, view)
        if found is None:
            raise EngineError("the channels are not counted")
        return found

    def _distances(self, request: FetchRequest, value: Value) -> ChannelDistances:
        """Measure how far the channels of a value are from the reference's."""
        compared, wanted = self._served.compared, request.wanted
        if (
            compared is None
            or not isinstance(wanted, DistancesWanted)
            or compared.serial != wanted.comparison
        ):
            raise EngineError("another comparison has been made")
        theirs = compared.expected(request.operand)
        shapes = {getattr(each, "shape", None) for each in (value, theirs)}
        if not isinstance(value, np.ndarray) or theirs is None or shapes != {wanted.view.shape}:
            raise EngineError("the reference has no tensor of this shape")
        return measure_channels(value, theirs, wanted.view, wanted.limit)

    # What is computed

    def _look_at(self, request: LookedAt) -> Answer:
        check_cancelled = self._check_of(request)
        execution, session = self._execution_of(request), self._served.opened_session()
        if isinstance(request, FetchRequest):
            value = execution.outputs.fetch(request.operand, check_cancelled)
            return self._answer(request, value)
        found: object
        match request:
            case ExplainRequest():
                with session.within_bound():
                    found = _explain(session, request, check_cancelled)
            case TraceRequest(operand=operand, index=index, layouts=layouts):
                with session.within_bound():
                    found = engine.trace_place(
                        session, operand, index, layouts, check_cancelled
                    )
            case AlignRequest():
                from engine.provenance.alignment import align_grid

                found = align_grid(
                    session, request.operand, request.source, request.axes, request.cells
                )
            case AttentionRequest():
                from kuiper_studio.engine_service.studies import look_at_attention

                found = look_at_attention(session, request, check_cancelled)
            case MeaningRequest():
                from kuiper_studio.engine_service.studies import read_meaning

                found = read_meaning(session, request, check_cancelled)
        return Answer(request.ticket, found, found=True)

    def _check_of(self, request: LookedAt) -> Callable[[], None]:
        """Return a check that work on a request may go on; it also shows its progress."""
        started, told = time.perf_counter(), False

        def check_cancelled() -> None:
            nonlocal told
            if self._is_urgent() or self._is_cancelled(request.ticket):
                raise CancelledError
            if not told and time.perf_counter() - started >= _LONG:
                self._send(Progress(_progress_of(request)))
                told = True

        return check_cancelled


def _progress_of(request: LookedAt) -> str:
    match request:
        case FetchRequest():
            return f"Computing operand {request.operand} again"
        case ExplainRequest():
            return _EXPLAINING[request.what]
        case TraceRequest():
            return "Following the place"
        case AlignRequest():
            return "Laying the picture over the input"
        case AttentionRequest():
            return "Computing attention"
        case MeaningRequest():
            return "Reading the output"


def _packed(value: Value) -> Value:
    """Make the arrays of a value contiguous, so that pickle does not copy them."""
    if isinstance(value, np.ndarray):
        return np.ascontiguousarray(value) if value.ndim else value
    if isinstance(value, tuple):
        return tuple(map(_packed, value))
    return value


def _explain(
    session: engine.Session, request: ExplainRequest, check_cancelled: Callable[[], None]
) -> object:
    """Return what is asked about an element."""
    if request.what == "terms":
        return engine.explain_element(session, request.operand, request.index)
    if request.what == "field":
        return engine.receptive_field(session, request.operand, request.index)
    from engine.provenance.gradients import check_field, effective_weight

    place = request.operand, request.index
    if request.what == "weight":
        return effective_weight(session, *place, request.source, check_cancelled)
    return check_field(session, *place, check_cancelled)
