"""Carries out requests with the engine's session, which only the server uses.

Requests that change the session are queued. The thread that calls `work` carries them out in
order. `answers` sends what the window looks at, `idle_work` does what nobody waits for.
"""

from __future__ import annotations

import hashlib
import logging
import math
import time
from collections import deque
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from threading import Condition
from typing import TYPE_CHECKING, Final, TypeAlias, get_args

import numpy as np

import engine
from engine.conversion.records import ConversionOptions
from engine.conversion.suffixes import is_source
from engine.errors import EngineError
from engine.inputs import load_inputs, load_outputs
from engine.layers import layer_files
from engine.memory_bound import default_bound
from engine.runtime.description import describe
from engine.states import OperatorStatus, SessionState, StopReason
from kuiper_studio.engine_service.answers import Answers, LookedAt, Wanted
from kuiper_studio.engine_service.idle_work import IdleWork
from kuiper_studio.engine_service.plans import resolve
from kuiper_studio.engine_service.protocol import (
    CancelRequest,
    CloseRequest,
    Compared,
    CompareRequest,
    CorrectRequest,
    Done,
    ExportRequest,
    Extracted,
    ExtractRequest,
    FeedRequest,
    LayersLoaded,
    LoadLayersRequest,
    MemoryRequest,
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
    TuningRequest,
    UnloadLayersRequest,
    WithdrawRequest,
    WorkFailed,
)
from kuiper_studio.engine_service.reports import SECONDS_BETWEEN_REPORTS, Reports
from kuiper_studio.engine_service.served import CancelledError, Execution, Served

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from engine.runtime import RuntimeGraph
    from engine.runtime.description import GraphDescription
    from engine.session import Session, StepRecord
    from engine.values import Array, Value
    from kuiper_studio.engine_service.compared_run import ComparedRun
    from kuiper_studio.engine_service.plans import ResolvedPlan
    from kuiper_studio.engine_service.protocol import Request, Supply

__all__ = ["EngineServer"]

_log = logging.getLogger(__name__)

_ALWAYS_USABLE: Final = frozenset({"auto", "numpy"})
_LARGEST_SENT: Final = 64 << 20  # bytes of a value that is sent before anybody asks for it
_RUNNABLE: Final = frozenset({SessionState.READY, SessionState.STOPPED})


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


_Loaded: TypeAlias = "tuple[RuntimeGraph, GraphDescription]"


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
        self._served = Served()
        self._stop: StopReason | None = None  # why the session stands where it does
        self._destination: str | None = None  # where an opened model was to be run to
        self._fed: dict[str, tuple[int, ...]] = {}
        self._supplies: dict[tuple[str, ...], Supply] = {}
        self._serial = 0
        self._queue: deque[Request] = deque()
        # What is computed when there is no other work.
        self._looked_at: deque[LookedAt] = deque()
        self._arrived = Condition()
        self._closed = False
        self._cancelled = 0  # runs up to this number are cancelled
        self._passed_over: set[int] = set()  # cancelled requests to open models
        self._cancelled_ticket = 0  # and what was to be looked at, up to this one
        self._answers = Answers(
            self._served, send, self._look, lambda: bool(self._queue), self._is_ticket_cancelled
        )
        self._idle_work = IdleWork(self._served, send, self._is_wanted)
        self._reports = Reports(self._report)
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
            **dict.fromkeys(get_args(LookedAt), self._answers.compute),
        }

    # Receiving requests, on any thread

    def receive(self, request: Request) -> None:
        """Queue a request for `work`, or carry it out at once."""
        if isinstance(request, CancelRequest):
            self._cancelled = max(self._cancelled, request.run_id)
            self._cancelled_ticket = max(self._cancelled_ticket, request.ticket)
            self._passed_over.add(request.opening)
        elif isinstance(request, Wanted):
            self._answers.want(request)
        elif isinstance(request, LookedAt):
            self._look(request)
        else:
            with self._arrived:
                self._queue.append(request)
                self._arrived.notify()

    def _look(self, request: LookedAt) -> None:
        """Queue what is computed once there is no other work."""
        with self._arrived:
            self._looked_at.append(request)
            self._arrived.notify()

    def close(self) -> None:
        """Stop serving and cancel the current work."""
        self._cancelled = math.inf  # type: ignore[assignment]
        with self._arrived:
            self._closed = True
            self._arrived.notify()
        self._answers.end()

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
                    if not self._arrived.wait(self._idle_work.rest_before()):
                        break
                if self._closed:
                    break
                request = self._next()
            if request is not None:
                self.handle(request)
            else:
                self._idle_work.go_on()
            self._rest()
            self._idle_work.tell_kept()
        self._served.graph = self._served.session = None
        self._answers.join()
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
        return bool(self._queue or self._looked_at or self._idle_work.is_pressing)

    def _next(self) -> Request | None:
        """What to do first; None for what nobody waits for."""
        if self._queue:
            return self._queue.popleft()
        return self._looked_at.popleft() if self._looked_at else None

    def _is_wanted(self) -> bool:
        """Whether there is anything to do that somebody waits for."""
        return bool(self._closed or self._queue or self._looked_at)

    def _is_ticket_cancelled(self, ticket: int) -> bool:
        return self._closed or ticket <= self._cancelled_ticket

    def _is_cancelled(self, run_id: int) -> Callable[[], bool]:
        return lambda: self._is_over(run_id)

    def _is_over(self, run_id: int) -> bool:
        return self._cancelled >= run_id

    def _check_cancelled(self, run_id: int) -> Callable[[], None]:
        def check() -> None:
            if self._is_over(run_id):
                raise CancelledError

        return check

    # The model

    def _open(self, request: OpenRequest) -> None:
        if request.run_id in self._passed_over:
            self._done(request.run_id)
            return
        started = time.perf_counter()
        self._idle_work.tunes = request.tunes
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
        served = self._served
        served.graph, served.session, served.generation = graph, session, request.run_id
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
            session = served.session = _make_session(graph, kernels, seed, request)
        self._answers.want_notes(request.run_id, graph)
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

        graph = engine.load(
            model.path,
            model.bin,
            conversion=model.conversion or ConversionOptions(asks=True),
            report=partial(self._report_conversion, model.path.name),
            is_cancelled=self._is_cancelled(request.run_id),
        )
        return graph, describe(graph)

    def _report_conversion(self, name: str, line: str) -> None:
        """Tell a line of the exporter."""
        # Behind dots come times, and in between warnings of libraries.
        if words := line.partition("...")[0].strip("# -"):
            self._send(Progress(f"Converting {name}: {words}"))

    def _place(self) -> str | None:
        """Return the position of the session, as in `Plan`."""
        session = self._served.session
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
        self._served.let_go()
        self._stop = self._destination = None
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
        self._idle_work.tunes = request.allowed

    def _limit_memory(self, request: MemoryRequest) -> None:
        if self._served.session is not None:
            self._served.session.memory_limit = request.limit
            bound = request.bound
            self._served.session.memory_bound = default_bound() if bound is None else bound

    # Inputs

    def _feed(self, request: FeedRequest) -> None:
        session = self._served.opened_session()
        self._destination = None
        self._feed_sources(session, resolve(session.graph, request.plan))
        self._done(request.run_id)

    def _feed_sources(self, session: Session, plan: ResolvedPlan) -> None:
        """Feed the inputs, if there is a source for each."""
        self._served.plan = None
        operands = session.graph.input_operands
        if not operands or len(plan.inputs) < len(operands):
            return
        self._served.compared = None
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
            self._served.count_anew()
        self._served.source, self._served.plan = _digest(values), plan
        self._fed = {name: value.shape for name, value in values.items()}

    def _supply(self, request: SupplyRequest) -> None:
        session = self._served.opened_session()
        self._override(session, request.supply)
        name = request.supply.operands[0]
        producer = session.graph.operand(name).producer
        is_next = producer is not None and producer.index == session.position
        if request.steps_over and is_next and session.state in _RUNNABLE:
            self._go(RunRequest(request.run_id, 1, None, frozenset()))
        else:
            self._done(request.run_id)

    def _override(self, session: Session, supply: Supply) -> None:
        self._served.compared = None
        operands = [session.graph.operand(name) for name in supply.operands]
        try:
            with session.within_bound():
                values = load_outputs(supply.source, operands)
                session.override_all(values, supply.source.text)
        except EngineError as exc:
            raise _SupplyError(supply, exc) from exc
        self._supplies[supply.operands] = supply
        self._served.count_anew()

    def _withdraw(self, request: WithdrawRequest) -> None:
        self._served.compared = None
        session = self._served.opened_session()
        session.clear_override(*request.operands)
        self._served.count_anew()
        self._done(request.run_id)

    def _reseed(self, request: ReseedRequest) -> None:
        self._served.compared = None
        if self._served.session is not None:  # the model that was asked for could be opened
            self._served.session.reseed(request.seed)
            self._served.count_anew()
        self._done(request.run_id)

    # Running

    def _restart(self, request: RestartRequest) -> None:
        self._served.opened_session().restart()
        self._stop = self._destination = None
        self._done(request.run_id)

    def _step_back(self, request: StepBackRequest) -> None:
        session = self._served.opened_session()
        session.step_back()
        self._destination = None
        self._stop = self._why(session, "step")
        self._done(request.run_id)

    def _run(self, request: RunRequest) -> None:
        session = self._served.session
        # Runs queued after a failure, or after the end, do nothing.
        if session is None or session.state not in _RUNNABLE or self._is_over(request.run_id):
            self._done(request.run_id)
        else:
            self._destination = None
            self._go(request)

    def _go(self, request: RunRequest) -> None:
        session = self._served.opened_session()
        reports = self._reports
        reports.begin(request.run_id)
        first = session.position
        session.breakpoints = set(request.breakpoints)
        try:
            if request.steps == 1:
                with suppress(CancelledError):
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
        served = self._served
        served.executions[record.index] = Execution(self._serial, record.outputs, served.source)
        served.uncounted.add(record.index)
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
            producer = operand.producer
            sent = self._served.executions.get(producer.index) if producer else None
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

        session = self._served.opened_session()

        def report(done: int, total: int) -> None:
            self._send(Progress(f"Exporting to {request.path.name}", done, total))

        cancelled = self._is_cancelled(request.run_id)
        written = write_dump(session, request.path, request.options, report, cancelled)
        self._done(request.run_id, text=f"exported to {written}")

    def _self_check(self, request: SelfCheckRequest) -> None:
        from engine.self_check import self_check

        session = self._served.opened_session()

        def report(done: int, total: int) -> None:
            self._send(Progress(f"Self-check: {done} of {total}", done, total))

        cancelled = self._is_cancelled(request.run_id)
        found = self_check(session, request.tolerance, report, cancelled)
        self._send(SelfChecked(request.run_id, found, self._status()))

    def _compare(self, request: CompareRequest) -> None:
        from kuiper_studio.engine_service.compared_run import compare_run

        session, name = self._served.opened_session(), request.reference.name

        def make(serial: int, report: Callable[[int, int], None]) -> ComparedRun:
            converting = partial(self._report_conversion, name)
            return compare_run(session, request, serial, report, self._served.plan, converting)

        self._send_compared(request.run_id, f"Comparing with {name}", make)

    def _correct(self, request: CorrectRequest) -> None:
        before = self._served.last_compared()

        def make(serial: int, report: Callable[[int, int], None]) -> ComparedRun:
            return before.correct(request.corrections, serial, report)

        # The thread that answers reads nothing of the reference meanwhile.
        self._served.compared = None
        try:
            self._send_compared(request.run_id, "Comparing again", make)
        finally:
            self._keep_compared(before)

    def _keep_compared(self, before: ComparedRun) -> None:
        """Go back to the comparison before, unless there is another one."""
        if self._served.compared is None:
            self._served.compared = before

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
            if total and time.monotonic() >= due:
                due = time.monotonic() + SECONDS_BETWEEN_REPORTS
                # What follows the last operator cannot be counted.
                rest = Progress(f"{label}: finding origins and reasons")
                self._send(rest if done == total else Progress(label, done, total))

        check_cancelled = self._check_cancelled(run_id)
        self._serial += 1
        try:
            compared = make(self._serial, report)
        except CancelledError:
            self._send(Compared(run_id, None, None, self._status()))
            return
        self._served.compared = compared
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

    def _write_report(self, request: ReportRequest) -> None:
        compared = self._served.last_compared()
        written = compared.write_report(request.path, self._check_cancelled(request.run_id))
        self._done(request.run_id, text=f"report written to {written}")

    def _extract(self, request: ExtractRequest) -> None:
        from kuiper_studio.engine_service.studies import extract_operators

        compared = self._served.last_compared() if request.expects_reference else None
        expected = compared.expected if compared is not None else lambda _: None
        check_cancelled = self._check_cancelled(request.run_id)
        path = None
        with suppress(CancelledError):
            session = self._served.opened_session()
            path = extract_operators(session, request, expected, check_cancelled)
        self._send(Extracted(request.run_id, path, self._status()))

    def _simulate(self, request: PrecisionRequest) -> None:
        from kuiper_studio.engine_service.studies import simulate_formats

        def report(done: int, total: int) -> None:
            self._send(Progress("Simulating precision", done, total))

        cancelled = self._is_cancelled(request.run_id)
        results = simulate_formats(self._served.opened_session(), request, report, cancelled)
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
        session = self._served.session
        if session is None:
            return Status(self._served.generation, SessionState.NEED_INPUT, 0)
        supplied = {name: given.source for name, given in session.overrides.items()}
        supplies = (s for names, s in self._supplies.items() if supplied.keys() >= set(names))
        return Status(
            self._served.generation,
            session.state,
            session.position,
            self._stop,
            self._fed,
            supplied,
            tuple(supplies),
            session.seed,
            self._served.evicted(),
        )

    def _fail(self, run_id: int, error: EngineError, supply: Supply | None = None) -> None:
        session = self._served.session
        record = None
        if session is not None:
            failed = session.failed_operator
            if failed is not None and error is session.error:
                found = session.record(failed.name)
                record = self._record(found) if found is not None else None
                self._stop = self._why(session, "")
        self._send(WorkFailed(run_id, error, self._status(), record, supply))


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
