"""The engine's thread.

The worker owns the engine's session; nobody else touches it. It takes frozen requests in
slots and answers with frozen responses by signals, which arrive in slots of
`StudioSession` on the GUI thread.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal, Slot

import engine
from engine.errors import EngineError
from engine.inputs import load_inputs, load_outputs
from engine.memory_bound import default_bound
from engine.pnnx import pair
from kuiper_studio.session.events import (
    CloseRequest,
    ExportRequest,
    Fed,
    FeedRequest,
    LayersLoaded,
    LoadLayersRequest,
    LookedRequest,
    MemoryRequest,
    Opened,
    OpenRequest,
    Progress,
    Recalled,
    RecallRequest,
    Reseeded,
    ReseedRequest,
    RestartRequest,
    RunEnded,
    RunRequest,
    SelfChecked,
    SelfCheckRequest,
    StepBackRequest,
    Stepped,
    SuppliesChanged,
    SupplyRequest,
    WithdrawRequest,
    WorkFailed,
)

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from pathlib import Path

    from engine.runtime import RuntimeGraph
    from engine.session import Session, StepRecord

__all__ = ["Worker"]


class _CancelledError(Exception):
    """The window wants no more of it."""


def _check_cancelled(cancel: threading.Event) -> None:
    if cancel.is_set():
        raise _CancelledError


_log = logging.getLogger(__name__)

# Records are handed over in bundles while running freely: the window repaints at most so often.
_SECONDS_BETWEEN_REPORTS = 1 / 30
_LONG = 0.2  # seconds, after which computing a value again shows its progress
# Weights are copied ahead in pieces that take 10 ms, and of files that take a third of a second
# in all. Larger ones are read when they are needed: the copy takes as much room on the disk.
_PIECE = 16 << 20
_LARGEST_AHEAD = 512 << 20


class Worker(QObject):
    """Runs the engine, one request after the other.

    Signals
    -------
    opened, layers_loaded, fed, supplied, reseeded, stepped, ended, recalled, self_checked,
    failed
        Carry the frozen response of that name.
    progressed
        A `Progress`, while long work goes on.
    """

    opened = Signal(object)
    layers_loaded = Signal(object)
    fed = Signal(object)
    supplied = Signal(object)
    reseeded = Signal(object)
    stepped = Signal(object)
    ended = Signal(object)
    recalled = Signal(object)
    self_checked = Signal(object)
    failed = Signal(object)
    progressed = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._session: Session | None = None

    @Slot(object)
    def handle(self, request: object) -> None:
        """Carry out a request; whatever goes wrong becomes a `WorkFailed`."""
        handlers: dict[type, Callable[..., None]] = {
            OpenRequest: self._open,
            CloseRequest: self._close,
            LoadLayersRequest: self._load_layers,
            FeedRequest: self._feed,
            SupplyRequest: self._supply,
            WithdrawRequest: self._withdraw,
            ReseedRequest: self._reseed,
            RestartRequest: self._restart,
            StepBackRequest: self._step_back,
            RunRequest: self._run,
            ExportRequest: self._export,
            SelfCheckRequest: self._self_check,
            MemoryRequest: self._limit_memory,
            RecallRequest: self._recall,
            LookedRequest: self._take_note,
        }
        run_id = getattr(request, "run_id", -1)
        try:
            handlers[type(request)](request)
        except EngineError as exc:
            self._fail(run_id, exc)
        except Exception as exc:  # noqa: BLE001
            # Last Python frame of this thread: a bug lost here leaves the window waiting.
            _log.exception("request %d crashed", run_id)
            self._fail(run_id, exc)

    def _open(self, request: OpenRequest) -> None:
        started = time.perf_counter()
        graph = engine.load(*pair(request.param, request.bin))
        _ = graph.unsupported  # builds the layers here, for the window will ask for these
        dump, seed = request.kernels_from, request.seed
        kernels = engine.kernels_of(dump) if dump is not None else {}
        if seed is None:
            seed = _seed_of(dump) if dump is not None else 0
        backend = kernels if dump is not None else request.backend
        self._session = engine.Session(
            graph,
            backend=backend,
            seed=seed,
            memory_limit=request.memory.limit,
            memory_bound=request.memory.bound,
        )
        seconds = time.perf_counter() - started
        self.opened.emit(
            Opened(request.run_id, graph, seconds, MappingProxyType(kernels), seed)
        )
        self._copy_ahead(graph)

    def _copy_ahead(self, graph: RuntimeGraph) -> None:
        """Copy weights between requests, so that they stay when the model is exported again."""
        archive, session = graph.file.archive, self._session
        if archive is None or session is None or session.graph is not graph:
            return
        if archive.version.size <= _LARGEST_AHEAD and archive.copy_ahead(_PIECE):
            QTimer.singleShot(0, self, partial(self._copy_ahead, graph))

    def _close(self, _: CloseRequest) -> None:
        self._session = None

    def _load_layers(self, request: LoadLayersRequest) -> None:
        from engine.layers import load_layers

        files = tuple(load_layers(path) for path in request.paths)
        self.layers_loaded.emit(LayersLoaded(request.run_id, files))

    def _feed(self, request: FeedRequest) -> None:
        session = self._opened_session()
        operands = session.graph.input_operands
        sources = [request.sources[operand.name] for operand in operands]
        if len(set(sources)) == 1 and sources[0].kind == "npz" and not sources[0].member:
            sources = sources[:1]  # one archive holds the arrays of all inputs
        try:
            with session.within_bound():
                values = load_inputs(sources, operands, request.options, request.shapes)
                session.feed(values)
        except EngineError:
            session.clear_inputs()  # it must not run on what was fed before
            raise
        self.fed.emit(Fed(request.run_id, values))

    def _supply(self, request: SupplyRequest) -> None:
        session = self._opened_session()
        before = dict(session.overrides)
        try:
            for supply in request.supplies:
                operands = [session.graph.operand(name) for name in supply.operands]
                with session.within_bound():
                    values = load_outputs(supply.source, operands)
                    session.override_all(values, supply.source.text)
        except EngineError:
            if session.overrides != before:  # those before the one that is wrong stay
                self._tell_supplied(request.run_id, session)
            raise
        self._tell_supplied(request.run_id, session)

    def _withdraw(self, request: WithdrawRequest) -> None:
        session = self._opened_session()
        session.clear_override(*request.operands)
        self._tell_supplied(request.run_id, session)

    def _tell_supplied(self, run_id: int, session: Session) -> None:
        supplied = {name: given.source for name, given in session.overrides.items()}
        self.supplied.emit(SuppliesChanged(run_id, supplied, session.state, session.position))

    def _reseed(self, request: ReseedRequest) -> None:
        session = self._session
        if session is None:  # the model that was asked for could not be opened
            return
        session.reseed(request.seed)
        self.reseeded.emit(
            Reseeded(request.run_id, session.graph, session.state, session.position)
        )

    def _restart(self, request: RestartRequest) -> None:
        session = self._opened_session()
        session.restart()
        self.ended.emit(RunEnded(request.run_id, session.state, session.position))

    def _step_back(self, request: StepBackRequest) -> None:
        session = self._opened_session()
        session.step_back()
        self.ended.emit(RunEnded(request.run_id, session.state, session.position))

    def _run(self, request: RunRequest) -> None:
        session = self._opened_session()
        bundle: list[StepRecord] = []
        reported = time.perf_counter()

        def on_step(record: StepRecord) -> None:
            nonlocal reported
            bundle.append(record)
            if time.perf_counter() - reported >= _SECONDS_BETWEEN_REPORTS:
                flush()
                reported = time.perf_counter()

        def flush() -> None:
            if bundle:
                self.stepped.emit(Stepped(request.run_id, tuple(bundle), session.position))
                bundle.clear()

        session.breakpoints = set(request.breakpoints)
        try:
            if request.steps == 1:
                with suppress(_CancelledError):
                    on_step(session.step(partial(_check_cancelled, request.cancel)))
            else:
                session.run(request.until, on_step, request.cancel.is_set)
        finally:
            flush()
        self.ended.emit(RunEnded(request.run_id, session.state, session.position))

    def _limit_memory(self, request: MemoryRequest) -> None:
        if self._session is not None:
            self._session.memory_limit = request.limit
            bound = request.bound
            self._session.memory_bound = default_bound() if bound is None else bound

    def _recall(self, request: RecallRequest) -> None:
        started, told = time.perf_counter(), False

        def check_cancelled() -> None:
            nonlocal told
            _check_cancelled(request.cancel)
            if not told and time.perf_counter() - started >= _LONG:
                self.progressed.emit(Progress(f"Computing operand {request.operand} again"))
                told = True

        values, reason = None, ""
        try:
            values = request.outputs.fetch_all(check_cancelled)
        except _CancelledError:
            pass
        except EngineError as exc:
            reason = str(exc)
        except Exception as exc:  # noqa: BLE001 - somebody waits for an answer
            _log.exception("operand %s was not computed again", request.operand)
            reason = str(exc) or type(exc).__name__
        self.recalled.emit(Recalled(request.operand, request.outputs, values, reason))

    def _take_note(self, request: LookedRequest) -> None:
        request.outputs.touch()

    def _export(self, request: ExportRequest) -> None:
        from engine.dump import write_dump

        session = self._opened_session()

        def report(done: int, total: int) -> None:
            self.progressed.emit(Progress(f"Exporting to {request.path.name}", done, total))

        written = write_dump(
            session, request.path, request.options, report, request.cancel.is_set
        )
        text = f"exported to {written}"
        self.ended.emit(RunEnded(request.run_id, session.state, session.position, text))

    def _self_check(self, request: SelfCheckRequest) -> None:
        from engine.self_check import self_check

        session = self._opened_session()

        def report(done: int, total: int) -> None:
            self.progressed.emit(Progress(f"Self-check: {done} of {total}", done, total))

        found = self_check(session, request.tolerance, report, request.cancel.is_set)
        self.self_checked.emit(SelfChecked(request.run_id, found, session.state))

    def _opened_session(self) -> Session:
        if self._session is None:
            raise EngineError("no model is open")
        return self._session

    def _fail(self, run_id: int, error: Exception) -> None:
        session = self._session
        if session is None:
            self.failed.emit(WorkFailed(run_id, error))
            return
        failed = session.failed_operator
        record = None
        if failed is not None and error is session.error:
            record = session.record(failed.name)
        self.failed.emit(WorkFailed(run_id, error, record, session.state, session.position))


def _seed_of(dump: Path) -> int:
    # What reads dumps is not needed for the first look at a model.
    from engine.dump import seed_of

    return seed_of(dump)
