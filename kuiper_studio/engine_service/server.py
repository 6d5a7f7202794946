"""Carries out requests with the engine's session, which only the server uses.

Requests that change the session are queued. The thread that calls `work` carries them out in
order. A second thread sends values and weights, also while a model runs.
"""

from __future__ import annotations

import hashlib
import importlib
import logging
import math
import time
from collections import deque
from contextlib import suppress
from dataclasses import replace
from functools import cache
from queue import PriorityQueue
from threading import Condition, Thread
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

import engine
from engine.conversion.records import ConversionOptions
from engine.conversion.suffixes import is_source
from engine.errors import EngineError, SessionStateError
from engine.inputs import load_inputs, load_outputs
from engine.layers import layer_files
from engine.memory_bound import default_bound
from engine.pnnx.archive import Archive
from engine.runtime.description import collect_notes, describe
from engine.states import OperatorStatus, SessionState, StopReason
from engine.values import LazyArray
from kuiper_studio.engine_service.channel_totals import RunTotals
from kuiper_studio.engine_service.channels import ChannelView, measure_channels
from kuiper_studio.engine_service.plans import resolve
from kuiper_studio.engine_service.protocol import (
    AlignRequest,
    Answer,
    AttentionRequest,
    CancelRequest,
    CloseRequest,
    Compared,
    CompareRequest,
    CorrectRequest,
    DistancesWanted,
    Done,
    Evicted,
    ExplainRequest,
    ExportRequest,
    Extracted,
    ExtractRequest,
    FeedRequest,
    FetchRequest,
    LayersLoaded,
    LoadLayersRequest,
    MeaningRequest,
    MeasureRequest,
    MemoryRequest,
    NotesRead,
    Opened,
    OpenRequest,
    Outputs,
    PrecisionRequest,
    Progress,
    Record,
    ReportRequest,
    ReseedRequest,
    RestartRequest,
    RunRequest,
    SelfChecked,
    SelfCheckRequest,
    Simulated,
    Status,
    StepBackRequest,
    Stepped,
    SupplyRequest,
    TraceRequest,
    Tuned,
    TuningRequest,
    UnloadLayersRequest,
    WeightRequest,
    WeightsKept,
    WithdrawRequest,
    WorkFailed,
)
from kuiper_studio.engine_service.summary import MEASURES, measure, summarise

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from engine.runtime import RuntimeGraph
    from engine.runtime.description import GraphDescription
    from engine.session import Session, StepRecord
    from engine.store import StepOutputs
    from engine.values import Array, Value
    from kuiper_studio.engine_service.channel_totals import ChannelTotals
    from kuiper_studio.engine_service.channels import ChannelDistances
    from kuiper_studio.engine_service.compared_run import ComparedRun
    from kuiper_studio.engine_service.plans import ResolvedPlan
    from kuiper_studio.engine_service.protocol import Request, Supply

__all__ = ["EngineServer"]

_log = logging.getLogger(__name__)

# Interval of record bundles during a free run; the window repaints as often.
_SECONDS_BETWEEN_REPORTS: Final = 1 / 10
_LONG: Final = 0.2  # seconds after which a recomputation shows its progress
# Weights are copied ahead in pieces of 10 ms, for files that take up to a third of a second.
# Weights of larger files are read on use, because the copy needs as much disk space.
_PIECE: Final = 16 << 20
_LARGEST_AHEAD: Final = 512 << 20
_ALWAYS_USABLE: Final = frozenset({"auto", "numpy"})
_LARGEST_SENT: Final = 64 << 20  # bytes of a value that is sent before anybody asks for it
_LARGEST_COUNTED: Final = 1 << 22  # elements of an operand that nobody looks at; some 20 ms
# Channels are counted when nothing has been asked for this long, then kernels are tuned.
_REST_BEFORE_COUNTING: Final = 0.4
# Kernels are tuned when nothing has been asked for this long: whoever steps is not disturbed.
_REST_BEFORE_TUNING: Final = 1.0
_SECONDS_BETWEEN_TUNED: Final = 0.25
_RUNNABLE: Final = frozenset({SessionState.READY, SessionState.STOPPED})


class _CancelledError(Exception):
    """The window cancelled the work."""


class _SupplyError(Exception):
    """A file cannot override the outputs of an operator.

    Parameters
    ----------
    supply : Supply
    reason : EngineError
    """

    def __init__(self, supply: Supply, reason: EngineError) -> None:
        super().__init__(reason)
        self.supply, self.reason = supply, reason


class _NotesWanted(NamedTuple):
    """A model whose notes are still to be sent."""

    run_id: int
    graph: RuntimeGraph


_Loaded: TypeAlias = "tuple[RuntimeGraph, GraphDescription]"
_Wanted: TypeAlias = "FetchRequest | MeasureRequest | WeightRequest | _NotesWanted"
_EXPLAINING: Final = {
    "terms": "Explaining the element",
    "field": "Finding the receptive field",
    "weight": "Computing the effective weight",
    "check": "Computing the element with noise",
}
_LookedAt: TypeAlias = (
    FetchRequest
    | ExplainRequest
    | TraceRequest
    | AlignRequest
    | AttentionRequest
    | MeaningRequest
)


class _Sent(NamedTuple):
    """An execution that was reported."""

    serial: int
    outputs: StepOutputs
    source: bytes  # tells the inputs of the pass from others


class EngineServer:
    """Serves one engine session by messages.

    Parameters
    ----------
    send : callable
        Called with each reply, on several threads.
    rested : callable, optional
        Called when the engine becomes idle.
    """

    def __init__(
        self, send: Callable[[object], None], rested: Callable[[], None] = lambda: None
    ) -> None:
        self._send, self._rest = send, rested
        self._prepared: tuple[Path, Path | None, RuntimeGraph, GraphDescription] | None = None
        self._graph: RuntimeGraph | None = None
        self._session: Session | None = None  # of the graph, once it is created
        self._generation = 0
        self._stop: StopReason | None = None  # why the session stands where it does
        self._destination: str | None = None  # where an opened model was to be run to
        self._untunable: Session | None = None  # that tuning has failed in
        self._kept_told = 0  # generation whose weights are known to be there
        self._fed: dict[str, tuple[int, ...]] = {}
        self._supplies: dict[tuple[str, ...], Supply] = {}
        self._serial = 0
        self._compared: ComparedRun | None = None
        self._sent: dict[int, _Sent] = {}  # by the operator's index
        self._source = b""
        self._tunes = True
        self._totals = RunTotals()
        self._uncounted: set[int] = set()  # operators whose channels are not in the totals
        self._queue: deque[Request] = deque()
        self._arrived = Condition()
        self._closed = False
        # What is done when there is no other work: values to recompute, elements to explain,
        # and attention to compute.
        self._idle_work: deque[_LookedAt] = deque()
        self._cancelled = 0  # runs up to this number are cancelled
        self._passed_over: set[int] = set()  # cancelled requests to open models
        self._cancelled_ticket = 0  # and values up to this one
        # Values before summaries, and each in the order of the tickets.
        self._wanted: PriorityQueue[tuple[int, int, _Wanted | None]] = PriorityQueue()
        self._sender = Thread(target=self._send_wanted, name="values", daemon=True)
        self._sender.start()
        self._reports = _Reports(self._report)
        self._handlers: dict[type, Callable[..., None]] = {
            OpenRequest: self._open,
            CloseRequest: self._close,
            LoadLayersRequest: self._load_layers,
            UnloadLayersRequest: self._unload_layers,
            FeedRequest: self._feed,
            SupplyRequest: self._supply,
            WithdrawRequest: self._withdraw,
            ReseedRequest: self._reseed,
            RestartRequest: self._restart,
            StepBackRequest: self._step_back,
            RunRequest: self._run,
            ExportRequest: self._export,
            SelfCheckRequest: self._self_check,
            CompareRequest: self._compare,
            CorrectRequest: self._correct,
            ReportRequest: self._write_report,
            ExtractRequest: self._extract,
            PrecisionRequest: self._simulate,
            MemoryRequest: self._limit_memory,
            TuningRequest: self._allow_tuning,
            FetchRequest: self._recompute,
            ExplainRequest: self._explain,
            TraceRequest: self._trace,
            AlignRequest: self._align,
            AttentionRequest: self._attend,
            MeaningRequest: self._read_output,
        }

    # Receiving requests, on any thread

    def receive(self, request: Request) -> None:
        """Queue a request for `work`, or carry it out at once."""
        if isinstance(request, CancelRequest):
            self._cancelled = max(self._cancelled, request.run_id)
            self._cancelled_ticket = max(self._cancelled_ticket, request.ticket)
            self._passed_over.add(request.opening)
        elif isinstance(request, FetchRequest):
            rank = 0 if request.what == "value" else 1
            self._wanted.put((rank, request.ticket, request))
        elif isinstance(request, WeightRequest):
            self._wanted.put((0, request.ticket, request))
        elif isinstance(request, MeasureRequest):
            self._wanted.put((2, request.ticket, request))
        elif isinstance(
            request,
            (ExplainRequest, TraceRequest, AlignRequest, AttentionRequest, MeaningRequest),
        ):
            self._look(request)
        else:
            with self._arrived:
                self._queue.append(request)
                self._arrived.notify()

    def _look(self, request: _LookedAt) -> None:
        """Queue what is computed once there is no other work."""
        with self._arrived:
            self._idle_work.append(request)
            self._arrived.notify()

    def close(self) -> None:
        """Stop serving and cancel the current work."""
        self._cancelled = math.inf  # type: ignore[assignment]
        with self._arrived:
            self._closed = True
            self._arrived.notify()
        self._wanted.put((-1, 0, None))

    def prepare(self, model: Path, bin_path: Path | None) -> None:
        """Read a model that is likely to be opened; what is wrong with it is not told yet."""
        if is_source(model):  # takes long, and may be cancelled
            return
        with suppress(EngineError, OSError):
            graph = engine.load(model, bin_path)
            self._prepared = model, bin_path, graph, describe(graph)

    def _take_prepared(self, request: OpenRequest) -> _Loaded | None:
        """Return the prepared model, if it is the requested one and its files are unchanged."""
        prepared, self._prepared = self._prepared, None
        if prepared is None or prepared[:2] != (request.model.path, request.model.bin):
            return None
        graph, description = prepared[2:]
        current = all(version.is_current() for version in graph.versions)
        return (graph, description) if current and not layer_files() else None

    def work(self) -> None:
        """Carry out requests until `close`."""
        while True:
            with self._arrived:
                while not (self._closed or self._has_work()):
                    if not self._arrived.wait(self._rest_before_idling()):
                        break
                if self._closed:
                    break
                request = self._next()
            if request is not None:
                self.handle(request)
                self._rest()
            elif self._archive_to_copy() is not None:
                self._copy_ahead()
            elif self._uncounted:
                self._count_channels()
            else:
                self._tune()
                self._rest()
            self._tell_kept()
        self._graph = self._session = None
        self._sender.join()
        self._reports.close()

    def handle(self, request: Request) -> None:
        """Carry out a request; send any error as a `WorkFailed`."""
        run_id = getattr(request, "run_id", -1)
        try:
            self._handlers[type(request)](request)
        except _SupplyError as exc:
            self._fail(run_id, exc.reason, exc.supply)
        except EngineError as exc:
            self._fail(run_id, exc)
        except Exception as exc:  # noqa: BLE001
            # Last frame of this thread: a bug lost here leaves the window waiting.
            _log.exception("request %d crashed", run_id)
            self._fail(run_id, EngineError(str(exc) or type(exc).__name__))

    def _has_work(self) -> bool:
        return bool(self._queue or self._idle_work or self._archive_to_copy())

    def _next(self) -> Request | None:
        """What to do first; None to copy weights, or to tune kernels."""
        if self._queue:
            return self._queue.popleft()
        return self._idle_work.popleft() if self._idle_work else None

    def _is_cancelled(self, run_id: int) -> Callable[[], bool]:
        return lambda: self._is_over(run_id)

    def _is_over(self, run_id: int) -> bool:
        return self._cancelled >= run_id

    def _check_cancelled(self, run_id: int) -> Callable[[], None]:
        def check() -> None:
            if self._is_over(run_id):
                raise _CancelledError

        return check

    # The model

    def _open(self, request: OpenRequest) -> None:
        if request.run_id in self._passed_over:
            self._done(request.run_id)
            return
        started = time.perf_counter()
        self._tunes = request.tunes
        model = request.model
        graph, description = self._take_prepared(request) or self._load(request)
        dump, seed = model.kernels_from, request.seed
        kernels = engine.kernels_of(dump) if dump is not None else {}
        if seed is None:
            seed = _seed_of(dump) if dump is not None else 0
        # The window draws the graph while backends are imported, unless the request names a
        # backend that may be unusable.
        at_once = dump is None and model.backend in _ALWAYS_USABLE
        session = None if at_once else _make_session(graph, kernels, seed, request)
        place = self._place() if request.keeps_place else request.plan.place
        self._let_go()
        self._graph, self._session, self._generation = graph, session, request.run_id
        archive = graph.file.archive
        self._send(
            Opened(
                request.run_id,
                description,
                time.perf_counter() - started,
                SessionState.NEED_INPUT if graph.input_operands else SessionState.READY,
                dict(kernels),
                {name: _describe_kernel(name) for name in kernels.values()},
                seed,
                archive is None or archive.is_kept,
            )
        )
        if session is None:
            session = self._session = _make_session(graph, kernels, seed, request)
        self._wanted.put((0, 0, _NotesWanted(request.run_id, graph)))
        plan = resolve(graph, replace(request.plan, place=place))
        self._feed_sources(session, plan)
        for supply in plan.supplies:
            self._override(session, supply)
        if plan.place is None or session.state not in _RUNNABLE:
            self._done(request.run_id)
            return
        self._destination = plan.place
        self._go(RunRequest(request.run_id, None, plan.place or None, frozenset()))
        if not self._is_over(request.run_id):
            self._destination = None

    def _load(self, request: OpenRequest) -> _Loaded:
        model = request.model

        def report(line: str) -> None:
            # Behind dots come times, and in between warnings of libraries.
            if words := line.partition("...")[0].strip("# -"):
                self._send(Progress(f"Converting {model.path.name}: {words}"))

        graph = engine.load(
            model.path,
            model.bin,
            conversion=model.conversion or ConversionOptions(asks=True),
            report=report,
            is_cancelled=self._is_cancelled(request.run_id),
        )
        return graph, describe(graph)

    def _archive_to_copy(self) -> Archive | None:
        """Return the archive whose weights are copied while there is no other work."""
        archive = self._graph.file.archive if self._graph is not None else None
        if not isinstance(archive, Archive) or archive.version.size > _LARGEST_AHEAD:
            return None
        return None if archive.is_kept else archive

    def _copy_ahead(self) -> None:
        """Copy some weights, so that they stay available when the files are rewritten."""
        archive = self._archive_to_copy()
        if archive is not None:
            archive.copy_ahead(_PIECE)

    def _tell_kept(self) -> None:
        """Report once that all weights are available, because they were copied or used."""
        archive = self._graph.file.archive if self._graph is not None else None
        if archive is not None and archive.is_kept and self._kept_told != self._generation:
            self._kept_told = self._generation
            self._send(WeightsKept(self._generation))

    def _rest_before_idling(self) -> float | None:
        """Seconds without a request until there is something to do; None for nothing."""
        if self._uncounted:
            return _REST_BEFORE_COUNTING
        return _REST_BEFORE_TUNING if self._tunable_session() is not None else None

    def _count_channels(self) -> None:
        """Add channels of this pass to the totals, until something is asked for."""

        def check() -> None:
            if self._is_wanted():
                raise _CancelledError

        while self._uncounted and not self._is_wanted():
            index = self._uncounted.pop()
            sent = self._sent.get(index)
            resident = sent.outputs.resident if sent is not None else None
            for operand, held in (resident or {}).items():
                # A lazy array is read without being kept in NumPy's order.
                value = held.read() if isinstance(held, LazyArray) else held
                if sent is None or not isinstance(value, np.ndarray):
                    continue
                if value.size > _LARGEST_COUNTED:
                    continue
                try:
                    self._totals.count(operand, value, sent.source, check_cancelled=check)
                except _CancelledError:
                    self._uncounted.add(index)
                    return
                except Exception:  # noqa: BLE001 - nobody has asked for it
                    _log.exception("channels of operand %s were not counted", operand)

    def _count_anew(self) -> None:
        """Forget the totals, because operands will hold something else with the same input.

        What was computed before and still holds is counted again.
        """
        self._totals.clear()
        position = self._session.position if self._session is not None else 0
        self._uncounted = {index for index in self._sent if index < position}

    def _is_wanted(self) -> bool:
        """Whether there is more urgent work."""
        return bool(self._closed or self._queue or self._idle_work)

    def _tunable_session(self) -> Session | None:
        """The session, at the end of a pass whose kernels can be tuned."""
        session = self._session
        if (
            session is None
            or not self._tunes
            or session is self._untunable
            or session.state is not SessionState.FINISHED
            or session.tuned == len(session.graph.operators)
        ):
            return None
        return session

    def _tune(self) -> None:
        """Try kernels until something is asked for, which waits for one trial at most."""
        session = self._tunable_session()
        if session is None:
            return
        total, due = len(session.graph.operators), 0.0

        def report() -> None:
            nonlocal due
            if time.monotonic() >= due:
                due = time.monotonic() + _SECONDS_BETWEEN_TUNED
                self._send(Tuned(self._generation, session.tuned, total))

        try:
            if session.tune(on_trial=report, cancelled=self._is_wanted):
                wrong = session.wrong_kernels
                self._send(Tuned(self._generation, total, total, wrong))
        except Exception:  # noqa: BLE001 - nobody has asked for it
            _log.exception("kernels were not tuned")
            self._untunable = session

    def _place(self) -> str | None:
        """Return the position of the session, as in `Plan`."""
        session = self._session
        if self._destination is not None:
            return self._destination
        if session is None or not session.position:
            return None
        following = session.graph.operators[session.position :]
        return following[0].name if following else ""

    def _close(self, request: CloseRequest) -> None:
        self._let_go()
        self._done(request.run_id)

    def _let_go(self) -> None:
        self._graph = self._session = self._stop = self._destination = None
        self._compared = None
        self._generation = 0
        self._sent.clear()
        self._source = b""
        self._count_anew()
        self._fed = {}
        self._supplies.clear()

    def _load_layers(self, request: LoadLayersRequest) -> None:
        from engine.layers import load_layers

        files = tuple(load_layers(path) for path in request.paths)
        self._send(LayersLoaded(request.run_id, files, layer_files()))

    def _unload_layers(self, request: UnloadLayersRequest) -> None:
        from engine.layers import unload_layers

        unload_layers()
        self._done(request.run_id)

    def _allow_tuning(self, request: TuningRequest) -> None:
        self._tunes = request.allowed

    def _limit_memory(self, request: MemoryRequest) -> None:
        if self._session is not None:
            self._session.memory_limit = request.limit
            bound = request.bound
            self._session.memory_bound = default_bound() if bound is None else bound

    # Inputs

    def _feed(self, request: FeedRequest) -> None:
        session = self._opened_session()
        self._destination = None
        self._feed_sources(session, resolve(session.graph, request.plan))
        self._done(request.run_id)

    def _feed_sources(self, session: Session, plan: ResolvedPlan) -> None:
        """Feed the inputs, if there is a source for each."""
        operands = session.graph.input_operands
        if not operands or len(plan.inputs) < len(operands):
            return
        self._compared = None
        self._stop, self._fed = None, {}
        is_overridden = bool(session.overrides)
        try:
            with session.within_bound():
                sources = list(plan.inputs.values())
                values = load_inputs(sources, operands, plan.options, plan.shapes)
                session.feed(values)
        except EngineError:
            session.clear_inputs()  # it must not run with the previous inputs
            raise
        if is_overridden:
            self._count_anew()
        self._source = _digest(values)
        self._fed = {name: value.shape for name, value in values.items()}

    def _supply(self, request: SupplyRequest) -> None:
        session = self._opened_session()
        self._override(session, request.supply)
        name = request.supply.operands[0]
        producer = session.graph.operand(name).producer
        is_next = producer is not None and producer.index == session.position
        if request.steps_over and is_next and session.state in _RUNNABLE:
            self._go(RunRequest(request.run_id, 1, None, frozenset()))
        else:
            self._done(request.run_id)

    def _override(self, session: Session, supply: Supply) -> None:
        self._compared = None
        operands = [session.graph.operand(name) for name in supply.operands]
        try:
            with session.within_bound():
                values = load_outputs(supply.source, operands)
                session.override_all(values, supply.source.text)
        except EngineError as exc:
            raise _SupplyError(supply, exc) from exc
        self._supplies[supply.operands] = supply
        self._count_anew()

    def _withdraw(self, request: WithdrawRequest) -> None:
        self._compared = None
        session = self._opened_session()
        session.clear_override(*request.operands)
        self._count_anew()
        self._done(request.run_id)

    def _reseed(self, request: ReseedRequest) -> None:
        self._compared = None
        if self._session is not None:  # the model that was asked for could be opened
            self._session.reseed(request.seed)
            self._count_anew()
        self._done(request.run_id)

    # Running

    def _restart(self, request: RestartRequest) -> None:
        self._opened_session().restart()
        self._stop = self._destination = None
        self._done(request.run_id)

    def _step_back(self, request: StepBackRequest) -> None:
        session = self._opened_session()
        session.step_back()
        self._destination = None
        self._stop = self._why(session, "step")
        self._done(request.run_id)

    def _run(self, request: RunRequest) -> None:
        session = self._session
        # Runs queued after a failure, or after the end, do nothing.
        if session is None or session.state not in _RUNNABLE or self._is_over(request.run_id):
            self._done(request.run_id)
        else:
            self._destination = None
            self._go(request)

    def _go(self, request: RunRequest) -> None:
        session = self._opened_session()
        reports = self._reports
        reports.begin(request.run_id)
        first = session.position
        session.breakpoints = set(request.breakpoints)
        try:
            if request.steps == 1:
                with suppress(_CancelledError):
                    reports.add(session.step(self._check_cancelled(request.run_id)))
            else:
                session.run(request.until, reports.add, self._is_cancelled(request.run_id))
        except BaseException:
            reports.flush()
            raise
        finally:
            self._rest()
        self._stop = self._why(session, "step" if request.steps == 1 else "", request.until)
        # Send one message, so that the window does not paint before the end of the run.
        last = reports.take()
        stepped = self._stepped(request.run_id, last) if last else None
        self._done(request.run_id, self._passed_by(session, first), stepped=stepped)

    @staticmethod
    def _passed_by(session: Session, first: int) -> tuple[int, ...]:
        """Return the operators without a layer that the run skipped, from `first` on."""
        operators = session.graph.operators[first : session.position]
        return tuple(
            operator.index
            for operator in operators
            if session.status(operator.name) is OperatorStatus.UNSUPPORTED
        )

    @staticmethod
    def _why(session: Session, asked: str, until: str | None = None) -> StopReason | None:
        """Return why a run stopped."""
        operators = session.graph.operators
        if session.position == len(operators):
            return StopReason("end")
        name = operators[session.position].name
        if session.state is SessionState.FAILED:
            return StopReason("failed", name)
        if not session.position:
            return None
        if asked == "step":
            return StopReason("step", name)
        if name == until:
            return StopReason("operator", name)
        return StopReason("breakpoint" if name in session.breakpoints else "cancelled", name)

    def _report(self, run_id: int, records: Sequence[StepRecord]) -> None:
        self._send(self._stepped(run_id, records))

    def _stepped(self, run_id: int, records: Sequence[StepRecord]) -> Stepped:
        reports = tuple(map(self._record, records))
        return Stepped(run_id, reports, records[-1].index + 1, self._followed(records[-1]))

    def _record(self, record: StepRecord) -> Record:
        """Convert a record to its message, and remember its execution."""
        self._serial += 1
        self._sent[record.index] = _Sent(self._serial, record.outputs, self._source)
        self._uncounted.add(record.index)
        metadata = {name: record.outputs.metadata(name) for name in record.outputs}
        return Record(
            record.index,
            Outputs(self._serial, metadata),
            record.seconds,
            record.status,
            record.kernel,
            _describe_kernel(record.kernel),
            record.reason,
            dict(record.overrides),
            record.seed,
        )

    def _followed(self, record: StepRecord) -> dict[str, Value]:
        """Return the value that the window shows next, if it is not too large.

        It is the first output of the operator, or its first input if it has no output.
        """
        outputs, operator = record.outputs, record.operator
        name = next(iter(outputs), None)
        if name is None and operator.inputs:
            operand = operator.inputs[0]
            sent = self._sent.get(operand.producer.index) if operand.producer else None
            if sent is not None:
                name, outputs = operand.name, sent.outputs
        values = outputs.fetch_resident()
        if name is None or values is None:
            return {}
        value = values.get(name)  # the operator may have been skipped
        if not isinstance(value, np.ndarray) or value.nbytes > _LARGEST_SENT:
            return {}
        return {name: np.ascontiguousarray(value)}

    def _export(self, request: ExportRequest) -> None:
        from engine.dump import write_dump

        session = self._opened_session()

        def report(done: int, total: int) -> None:
            self._send(Progress(f"Exporting to {request.path.name}", done, total))

        cancelled = self._is_cancelled(request.run_id)
        written = write_dump(session, request.path, request.options, report, cancelled)
        self._done(request.run_id, text=f"exported to {written}")

    def _self_check(self, request: SelfCheckRequest) -> None:
        from engine.self_check import self_check

        session = self._opened_session()

        def report(done: int, total: int) -> None:
            self._send(Progress(f"Self-check: {done} of {total}", done, total))

        cancelled = self._is_cancelled(request.run_id)
        found = self_check(session, request.tolerance, report, cancelled)
        self._send(SelfChecked(request.run_id, found, self._status()))

    def _compare(self, request: CompareRequest) -> None:
        from kuiper_studio.engine_service.compared_run import compare_run

        session, name = self._opened_session(), request.reference.name

        def make(serial: int, report: Callable[[int, int], None]) -> ComparedRun:
            return compare_run(session, request, serial, report)

        self._send_compared(request.run_id, f"Comparing with {name}", make)

    def _correct(self, request: CorrectRequest) -> None:
        before = self._last_compared()

        def make(serial: int, report: Callable[[int, int], None]) -> ComparedRun:
            return before.correct(request.corrections, serial, report)

        self._compared = None  # the sending thread reads nothing of the reference meanwhile
        try:
            self._send_compared(request.run_id, "Comparing again", make)
        finally:
            self._keep_compared(before)

    def _keep_compared(self, before: ComparedRun) -> None:
        """Go back to the comparison before, unless there is another one."""
        if self._compared is None:
            self._compared = before

    def _send_compared(
        self,
        run_id: int,
        label: str,
        make: Callable[[int, Callable[[int, int], None]], ComparedRun],
    ) -> None:
        due = 0.0

        def report(done: int, total: int) -> None:
            nonlocal due
            check_cancelled()
            if time.monotonic() >= due:
                due = time.monotonic() + _SECONDS_BETWEEN_REPORTS
                self._send(Progress(label, done, total))

        check_cancelled = self._check_cancelled(run_id)
        self._serial += 1
        try:
            compared = make(self._serial, report)
        except _CancelledError:
            self._send(Compared(run_id, None, None, self._status()))
            return
        self._compared = compared
        self._send(
            Compared(
                run_id,
                compared.comparison,
                Outputs(compared.serial, compared.metadata()),
                self._status(),
                compared.entries(),
                compared.corrections,
                compared.write_corrections(),
            )
        )

    def _last_compared(self) -> ComparedRun:
        if self._compared is None:
            raise SessionStateError("nothing has been compared; compare first")
        return self._compared

    def _write_report(self, request: ReportRequest) -> None:
        compared = self._last_compared()
        written = compared.write_report(request.path, self._check_cancelled(request.run_id))
        self._done(request.run_id, text=f"report written to {written}")

    def _extract(self, request: ExtractRequest) -> None:
        from kuiper_studio.engine_service.studies import extract_operators

        compared = self._last_compared() if request.expects_reference else None
        expected = compared.expected if compared is not None else lambda _: None
        check_cancelled = self._check_cancelled(request.run_id)
        path = None
        with suppress(_CancelledError):
            session = self._opened_session()
            path = extract_operators(session, request, expected, check_cancelled)
        self._send(Extracted(request.run_id, path, self._status()))

    def _simulate(self, request: PrecisionRequest) -> None:
        from kuiper_studio.engine_service.studies import simulate_formats

        def report(done: int, total: int) -> None:
            self._send(Progress("Simulating precision", done, total))

        cancelled = self._is_cancelled(request.run_id)
        results = simulate_formats(self._opened_session(), request, report, cancelled)
        self._send(Simulated(request.run_id, results, self._status()))

    def _done(
        self,
        run_id: int,
        passed_by: tuple[int, ...] = (),
        text: str = "",
        stepped: Stepped | None = None,
    ) -> None:
        self._send(Done(run_id, self._status(), passed_by, text, stepped))

    def _status(self) -> Status:
        session = self._session
        if session is None:
            return Status(self._generation, SessionState.NEED_INPUT, 0)
        supplied = {name: given.source for name, given in session.overrides.items()}
        supplies = (s for names, s in self._supplies.items() if supplied.keys() >= set(names))
        evicted: list[str] = []
        if session.memory_limit is not None:
            present = [sent for index, sent in self._sent.items() if index < session.position]
            evicted = [
                name for s in present if s.outputs.resident is None for name in s.outputs
            ]
        return Status(
            self._generation,
            session.state,
            session.position,
            self._stop,
            self._fed,
            supplied,
            tuple(supplies),
            session.seed,
            frozenset(evicted),
        )

    def _opened_session(self) -> Session:
        if self._session is None:
            raise EngineError("no model is open")
        return self._session

    def _fail(self, run_id: int, error: EngineError, supply: Supply | None = None) -> None:
        session = self._session
        record = None
        if session is not None:
            failed = session.failed_operator
            if failed is not None and error is session.error:
                found = session.record(failed.name)
                record = self._record(found) if found is not None else None
                self._stop = self._why(session, "")
        self._send(WorkFailed(run_id, error, self._status(), record, supply))

    # Values and weights, also while a model runs

    def _send_wanted(self) -> None:
        """Send requested values and weights; runs on its own thread."""
        while (request := self._wanted.get()[2]) is not None:
            if isinstance(request, _NotesWanted):
                self._send(NotesRead(request.run_id, collect_notes(request.graph)))
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

    def _weight(self, request: WeightRequest) -> Answer:
        graph, generation = self._graph, self._generation
        archive = graph.file.archive if graph is not None else None
        if archive is None or request.generation != generation:
            raise EngineError("another model has been opened")
        return Answer(request.ticket, archive.view(request.offset, request.nbytes), found=True)

    def _measure(self, request: MeasureRequest) -> Answer:
        rows = np.full((len(request.executions), len(MEASURES)), np.nan)
        for row, (index, serial) in zip(rows, request.executions, strict=True):
            sent = self._sent.get(index)
            values = None
            if sent is not None and sent.serial == serial:
                values = sent.outputs.fetch_resident()
            if values is not None:
                row[:] = measure(values.values())
        return Answer(request.ticket, rows, found=True)

    def _value(self, request: FetchRequest) -> Answer | None:
        """The answer; None where it comes when the value has been computed again."""
        compared = self._compared
        if compared is not None and compared.serial == request.serial:
            return self._answer(request, compared.value(request.operand))
        outputs = self._outputs_of(request)
        if outputs is None:
            return Answer(request.ticket, reason="the value is of an earlier pass")
        values = outputs.fetch_resident()
        if values is not None:
            outputs.touch()
            return self._answer(request, values[request.operand])
        self._send(Evicted(request.ticket))
        self._look(request)
        return None

    def _outputs_of(self, request: _LookedAt) -> StepOutputs | None:
        """Return the outputs of a request, if they belong to the current pass."""
        sent = self._sent_of(request)
        return sent.outputs if sent is not None else None

    def _sent_of(self, request: _LookedAt) -> _Sent | None:
        """Return the execution of a request, if it belongs to the current pass."""
        session = self._session
        if session is None:
            return None
        operand = session.graph.operands.get(request.operand)
        producer = operand.producer if operand is not None else None
        sent = self._sent.get(producer.index) if producer is not None else None
        return sent if sent is not None and sent.serial == request.serial else None

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
        sent, view, found = self._sent_of(request), request.wanted, None
        if sent is None:
            raise EngineError("the value is of an earlier pass")
        if isinstance(value, np.ndarray) and isinstance(view, ChannelView):
            found = self._totals.count(request.operand, value, sent.source, view)
        if found is None:
            raise EngineError("the channels are not counted")
        return found

    def _distances(self, request: FetchRequest, value: Value) -> ChannelDistances:
        """Measure how far the channels of a value are from the reference's."""
        compared, wanted = self._compared, request.wanted
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

    def _recompute(self, request: FetchRequest) -> None:
        """Recompute an evicted value and send it."""
        check_cancelled = self._check_looked_at(
            request, f"Computing operand {request.operand} again"
        )

        def make() -> Answer:
            outputs = self._outputs_of(request)
            if outputs is None:
                return Answer(request.ticket)
            return self._answer(request, outputs.fetch(request.operand, check_cancelled))

        self._send_made(request, make)

    def _attend(self, request: AttentionRequest) -> None:
        """Compute the weights of an attention and send them."""
        check_cancelled = self._check_looked_at(request, "Computing attention")

        def make() -> Answer:
            from kuiper_studio.engine_service.studies import look_at_attention

            if self._outputs_of(request) is None:
                return Answer(request.ticket, reason="the attention is of an earlier pass")
            found = look_at_attention(self._opened_session(), request, check_cancelled)
            return Answer(request.ticket, found, found=True)

        self._send_made(request, make)

    def _read_output(self, request: MeaningRequest) -> None:
        """Say what the outputs mean."""
        check_cancelled = self._check_looked_at(request, "Reading the output")

        def make() -> Answer:
            from kuiper_studio.engine_service.studies import read_meaning

            if self._outputs_of(request) is None:
                return Answer(request.ticket, reason="the output is of an earlier pass")
            found = read_meaning(self._opened_session(), request, check_cancelled)
            return Answer(request.ticket, found, found=True)

        self._send_made(request, make)

    def _check_looked_at(self, request: _LookedAt, text: str) -> Callable[[], None]:
        """Return a check that work on a request may go on; it also shows its progress."""
        started, told = time.perf_counter(), False

        def check_cancelled() -> None:
            nonlocal told
            # The user's requests are more urgent.
            if self._queue or self._closed or request.ticket <= self._cancelled_ticket:
                raise _CancelledError
            if not told and time.perf_counter() - started >= _LONG:
                self._send(Progress(text))
                told = True

        return check_cancelled

    def _send_made(
        self,
        request: _LookedAt,
        make: Callable[[], Answer],
    ) -> None:
        """Send an answer, or the reason why there is none."""
        answer = Answer(request.ticket)
        try:
            answer = make()
        except _CancelledError:
            pass
        except EngineError as exc:
            answer = Answer(request.ticket, reason=str(exc))
        except Exception as exc:  # noqa: BLE001 - somebody waits for an answer
            _log.exception("what is looked at of operand %s failed", request.operand)
            answer = Answer(request.ticket, reason=str(exc) or type(exc).__name__)
        self._send(answer)

    def _explain(self, request: ExplainRequest) -> None:
        """Say where an element comes from, or what it depends on."""
        check_cancelled = self._check_looked_at(request, _EXPLAINING[request.what])

        def make() -> Answer:
            if self._outputs_of(request) is None:
                return Answer(request.ticket, reason="the value is of an earlier pass")
            session = self._opened_session()
            with session.within_bound():
                found = _explain_element(session, request, check_cancelled)
            return Answer(request.ticket, found, found=True)

        self._send_made(request, make)

    def _align(self, request: AlignRequest) -> None:
        """Lay the picture of an operand over an input."""

        def make() -> Answer:
            from engine.provenance.alignment import align_grid

            if self._outputs_of(request) is None:
                return Answer(request.ticket, reason="the value is of an earlier pass")
            found = align_grid(
                self._opened_session(),
                request.operand,
                request.source,
                request.axes,
                request.cells,
            )
            return Answer(request.ticket, found, found=True)

        self._send_made(request, make)

    def _trace(self, request: TraceRequest) -> None:
        """Follow a place through all operands."""
        check_cancelled = self._check_looked_at(request, "Following the place")

        def make() -> Answer:
            if self._outputs_of(request) is None:
                return Answer(request.ticket, reason="the value is of an earlier pass")
            session = self._opened_session()
            with session.within_bound():
                found = engine.trace_place(
                    session, request.operand, request.index, request.layouts, check_cancelled
                )
            return Answer(request.ticket, found, found=True)

        self._send_made(request, make)


class _Reports:
    """Reports records in bundles at regular intervals.

    Parameters
    ----------
    report : callable
        Called with the number of the run and records, on the running thread or on another,
        never on both at once.
    """

    def __init__(self, report: Callable[[int, Sequence[StepRecord]], None]) -> None:
        self._report = report
        self._run_id = 0
        self._bundle: list[StepRecord] = []
        self._due = math.inf  # when to report the bundle
        self._changed = Condition()
        self._closed = False
        self._thread = Thread(target=self._watch, name="reports", daemon=True)
        self._thread.start()

    def begin(self, run_id: int) -> None:
        """Begin a run."""
        self._run_id = run_id

    def add(self, record: StepRecord) -> None:
        """Add a record."""
        with self._changed:
            self._bundle.append(record)
            if self._due == math.inf:
                self._due = time.monotonic() + _SECONDS_BETWEEN_REPORTS
                self._changed.notify()

    def take(self) -> list[StepRecord]:
        """Return the records that have not been reported, and clear them."""
        with self._changed:
            bundle, self._bundle = self._bundle, []
            self._due = math.inf
            return bundle

    def flush(self) -> None:
        """Report the current bundle."""
        with self._changed:
            bundle = self.take()
            if bundle:
                self._report(self._run_id, bundle)

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _watch(self) -> None:
        """Report a bundle that is due while an operator is still running."""
        with self._changed:
            while not self._closed:
                remaining = self._due - time.monotonic()
                if remaining <= 0:
                    self.flush()
                else:
                    self._changed.wait(None if remaining == math.inf else remaining)


def _packed(value: Value) -> Value:
    """Make the arrays of a value contiguous, so that pickle does not copy them."""
    if isinstance(value, np.ndarray):
        return np.ascontiguousarray(value) if value.ndim else value
    if isinstance(value, tuple):
        return tuple(map(_packed, value))
    return value


def _digest(values: Mapping[str, Array]) -> bytes:
    """Tell inputs apart by their elements."""
    found = hashlib.blake2b(digest_size=16)
    for name, value in values.items():
        found.update(f"{name} {value.dtype} {value.shape}".encode())
        found.update(np.ascontiguousarray(value).data)
    return found.digest()


def _make_session(
    graph: RuntimeGraph, kernels: Mapping[str, str], seed: int, request: OpenRequest
) -> Session:
    return engine.Session(
        graph,
        backend=kernels if request.model.kernels_from is not None else request.model.backend,
        seed=seed,
        memory_limit=request.memory.limit,
        memory_bound=request.memory.bound,
        excluded=_exclusions_of(graph),
        ncnn_options=request.model.ncnn_options,
    )


@cache
def _describe_kernel(name: str) -> str:
    from engine.backends import describe_kernel

    return describe_kernel(name) if name else ""


def _exclusions_of(graph: RuntimeGraph) -> Mapping[str, frozenset[str]]:
    """Return the libraries that are excluded from operators after earlier crashes."""
    from engine.exclusions import ExclusionCache, model_key

    remembered = ExclusionCache()
    if remembered.is_empty:
        return {}
    names = {operator.name for operator in graph.operators}
    found = remembered.load(model_key(graph.file))
    return {name: libraries for name, libraries in found.items() if name in names}


def _seed_of(dump: Path) -> int:
    # Imported here: opening a model does not need the reader of dumps.
    from engine.dump import seed_of

    return seed_of(dump)


def _explain_element(
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
