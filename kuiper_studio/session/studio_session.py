"""StudioSession: what the window shows, and the only way to change it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import (
    QCoreApplication,
    QDeadlineTimer,
    QEventLoop,
    QObject,
    QTimer,
    Signal,
    Slot,
)

from engine.collector import collector_paused
from engine.differences import TOLERANCE
from engine.errors import (
    DumpFileError,
    EngineError,
    ExportError,
    FeedError,
    InferenceError,
    LayerFileError,
    OpenShapeError,
    SessionStateError,
)
from engine.inputs import ImageOptions, InputSource, named_outputs
from engine.runtime.description import DescribedLayers, graph_of
from engine.runtime.kernel import SUPPLIED, backend_of
from engine.shapes import InputShapes, parse_shapes
from engine.states import OperatorStatus, SessionState
from engine.statistics import TensorStatistics, statistics
from engine.text import format_count, format_duration, format_exact_bytes
from kuiper_studio.engine_service.protocol import (
    Answer,
    CancelRequest,
    CloseRequest,
    Evicted,
    ExportRequest,
    Fed,
    FeedRequest,
    FetchRequest,
    LayersLoaded,
    LoadLayersRequest,
    MemoryRequest,
    NotesRead,
    Opened,
    OpenRequest,
    Progress,
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
    Supply,
    SupplyRequest,
    UnloadLayersRequest,
    WeightsKept,
    WithdrawRequest,
    WorkFailed,
)
from kuiper_studio.engine_service.transport import default_engine
from kuiper_studio.session.client import EngineClient, RemoteWeights
from kuiper_studio.session.events import Failure, LogEntry, RunState
from kuiper_studio.session.file_watch import FileWatch
from kuiper_studio.session.hints import hint_for, suspect_for
from kuiper_studio.session.losses import Losses, describe_loss, exclude_kernel
from kuiper_studio.session.opening import LoadQueue, Model, Opening, Wanted, make_notice
from kuiper_studio.session.values import Key, Values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from engine.dump import DumpOptions
    from engine.layers import LayerFile
    from engine.runtime import RuntimeGraph, RuntimeOperator
    from engine.values import Value, ValueMetadata
    from kuiper_studio.engine_service.protocol import Outputs, Record, Request
    from kuiper_studio.engine_service.summary import Summary
    from kuiper_studio.engine_service.transport import EngineKind, EngineLost
    from kuiper_studio.session.events import FilesNotice
    from kuiper_studio.session.file_watch import FileChange

__all__ = ["StudioSession", "dump_name"]

_STATE_OF: Final = {
    SessionState.NEED_INPUT: RunState.NEED_INPUT,
    SessionState.READY: RunState.READY,
    SessionState.STOPPED: RunState.STOPPED,
    SessionState.FINISHED: RunState.FINISHED,
    SessionState.FAILED: RunState.FAILED,
}
_LOG_LIMIT: Final = 2000
_LISTED: Final = 50  # of what may be as many as there are operators
_WAKE_MS: Final = 10
_STOP_MS: Final = 1500  # for what is stopped to end by itself
_STEP_MS: Final = 50  # a single step that takes longer is announced as a run


class StudioSession(QObject):
    """The one source of truth for the views.

    Lives on the GUI thread; every method is called there. `close` must be called before it
    is dropped, because it ends the engine.

    Parameters
    ----------
    backend : str
        Who computes at first.
    engine : {"process", "thread"}, optional
        Where the engine runs; in a process of its own by default.

    Signals
    -------
    graph_changed
        Another model is open, or none.
    state_changed
        `state` is another one. That a single step is RUNNING is told only when it takes a
        while: everything would be disabled and enabled again within one frame.
    position_changed
        Another operator is next.
    stepped
        Tuple of Record, newly executed, in order.
    stepped_back
        Name of the operator whose step was undone.
    values_reset
        What was computed was dropped, all of it or from some operator on.
    inputs_changed
        Other input sources, sizes, image options, or their values.
    input_needed
        Something was to run, and an input or its size is not known.
    supplies_changed
        Outputs were supplied or taken back.
    seed_changed
        Operators that are random draw by another seed.
    backend_changed
        The model is computed by another backend, or by the kernels of a dump.
    notes_changed
        What there is to know of the types of operators is there.
    selection_changed
        Name of the selected operator, ``""`` for none.
    operand_changed
        Name of the operand shown as a tensor, ``""`` for none.
    breakpoints_changed
        The set of breakpoints is another one.
    labels_changed
        Other class labels.
    layers_changed
        Files of the user's own layers came or went.
    memory_limit_changed
        Another part of the values is kept, or another number of bytes is the most for them.
    recalled
        Name of an operand whose value or summary has come, or cannot be had.
    self_checked
        A `SelfCheck` that was not cancelled.
    files_changed
        The files of the open model were written again or are gone, or that is no longer so.
    progress_changed
        A `Progress`, or None when nothing long is under way.
    logged
        A `LogEntry`.
    announced
        What was done that leaves no other trace in the window, such as a file that was written.
    failed
        A `Failure`.
    """

    graph_changed = Signal()
    state_changed = Signal()
    position_changed = Signal()
    stepped = Signal(object)
    stepped_back = Signal(str)
    values_reset = Signal()
    inputs_changed = Signal()
    input_needed = Signal()
    supplies_changed = Signal()
    seed_changed = Signal()
    backend_changed = Signal()
    notes_changed = Signal()
    selection_changed = Signal(str)
    operand_changed = Signal(str)
    breakpoints_changed = Signal()
    labels_changed = Signal()
    layers_changed = Signal()
    memory_limit_changed = Signal()
    recalled = Signal(str)
    self_checked = Signal(object)
    files_changed = Signal()
    progress_changed = Signal(object)
    logged = Signal(object)
    announced = Signal(str)
    failed = Signal(object)

    def __init__(  # noqa: PLR0915 - what it has until it is taken apart
        self,
        parent: QObject | None = None,
        backend: str = "auto",
        engine: EngineKind | None = None,
    ) -> None:
        super().__init__(parent)
        self._backend = backend
        self._seed = 0
        self._memory = MemoryRequest(limit=None, bound=None)
        self._client = EngineClient(engine or default_engine(), self)
        self._values = Values(self._client)
        self._weights: RemoteWeights | None = None
        self._described: DescribedLayers | None = None
        self._opened_by = 0
        self._graph: RuntimeGraph | None = None
        self._model: Model | None = None
        self._loads = LoadQueue()
        self._kernels: Mapping[str, str] = {}
        self._kernel_texts: dict[str, str] = {}
        self._state = RunState.EMPTY
        self._position = 0
        self._selected = self._operand = ""
        self._outputs: dict[str, Outputs] = {}
        self._records: dict[str, Record] = {}
        self._evicted: frozenset[str] = frozenset()
        self._statistics: dict[str, TensorStatistics] = {}
        self._sources: dict[str, InputSource] = {}
        self._shapes = InputShapes()
        self._fed: dict[str, tuple[int, ...]] = {}
        self._supplies: tuple[Supply, ...] = ()
        self._supplied: dict[str, str] = {}
        self._supplying: tuple[Supply, ...] = ()
        self._supply_when_fed: tuple[Supply, ...] = ()
        self._step_over = ""
        self._passed_by: list[RuntimeOperator] = []
        self._return_to: str | None = None  # see `_place`; until that is reached
        self._return_run = -1
        self._image_options = ImageOptions()
        self._labels: tuple[str, ...] = ()
        self._layer_files: tuple[LayerFile, ...] = ()
        self._breakpoints: set[str] = set()
        self._failure: Failure | None = None
        self._notice: FilesNotice | None = None
        self._progress: Progress | None = None
        self._log_entries: list[LogEntry] = []
        self._run_id = 0
        self._kept_run = -1
        self._busy = False
        self._deferred: tuple[int | None, str | None] | None = None
        self._losses = Losses()
        self._connect()

    # What there is to see

    @property
    def graph(self) -> RuntimeGraph | None:
        """The open model."""
        return self._graph

    @property
    def model_path(self) -> Path | None:
        """The ``.param`` of the open model."""
        return self._graph.param_path if self._graph is not None else None

    @property
    def backend(self) -> str:
        """Name of the backend that models are run on; ``recorded`` for a dump's kernels."""
        awaited = self._loads.awaited
        model = awaited.model if awaited is not None else self._model
        return "recorded" if model is not None and model.kernels_from else self._backend

    @property
    def kernels_from(self) -> Path | None:
        """The dump whose kernels compute the model; None where a backend does."""
        return self._model.kernels_from if self._model is not None else None

    @property
    def kernels_text(self) -> str:
        """Whose kernels the dump's are, ``3 by onnxruntime, 8 by numpy``; ``""`` for none."""
        used = (k for k in self._kernels.values() if k not in {"", SUPPLIED})
        counts = Counter(map(backend_of, used))
        return ", ".join(f"{count} by {backend}" for backend, count in counts.most_common())

    def pinned_kernel(self, operator: str) -> str:
        """The kernel that a dump names for an operator; ``""`` for none."""
        kernel = self._kernels.get(operator, "")
        return "" if kernel == SUPPLIED else kernel

    def describe_kernel(self, kernel: str) -> str:
        """Say in words what the name of a kernel means."""
        return self._kernel_texts.get(kernel, kernel)

    @property
    def seed(self) -> int:
        """What operators that are random draw by."""
        return self._seed

    @property
    def memory_limit(self) -> int | None:
        """Most bytes of computed values to keep; None for all."""
        return self._memory.limit

    @property
    def memory_bound(self) -> int | None:
        """Most bytes that values may take; None for half of the machine's memory."""
        return self._memory.bound

    def random_text(self, operator: str) -> str:
        """``random, seed 7``; ``""`` for an operator that draws nothing, or drew nothing."""
        if self._graph is None:
            return ""
        record = self._records.get(operator)
        if record is not None and record.status is OperatorStatus.EXECUTED:
            return f"random, seed {record.seed}" if record.random else ""
        return f"random, seed {self._seed}" if self._graph.operator(operator).random else ""

    @property
    def state(self) -> RunState:
        """What is going on."""
        return self._state

    @property
    def busy(self) -> bool:
        """Whether the worker has a request to finish."""
        return self._busy

    @property
    def position(self) -> int:
        """Index of the operator that runs next; the number of operators at the end."""
        return self._position

    @property
    def current(self) -> RuntimeOperator | None:
        """The operator that runs next, or that has failed."""
        if self._graph is None or self._position >= len(self._graph.operators):
            return None
        return self._graph.operators[self._position]

    @property
    def selected(self) -> str:
        """Name of the selected operator, ``""`` for none."""
        return self._selected

    @property
    def operand(self) -> str:
        """Name of the operand shown as a tensor, ``""`` for none."""
        return self._operand

    @property
    def inputs(self) -> Mapping[str, InputSource]:
        """Input sources by operand name."""
        return self._sources

    @property
    def input_shapes(self) -> InputShapes:
        """The sizes that are asked for."""
        return self._shapes

    @property
    def fed_shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Shapes of what is fed now, by operand name; empty while nothing is."""
        return self._fed

    @property
    def supplied(self) -> Mapping[str, str]:
        """Operands that were supplied, and where each comes from."""
        return self._supplied

    def supplied_text(self, operator: str) -> str:
        """Where the outputs of an operator come from; ``""`` where none was supplied."""
        if self._graph is None or not self._supplied:
            return ""
        names = (operand.name for operand in self._graph.operator(operator).outputs)
        sources = dict.fromkeys(self._supplied[n] for n in names if n in self._supplied)
        return f"supplied from {', '.join(Path(s).name for s in sources)}" if sources else ""

    @property
    def image_options(self) -> ImageOptions:
        """How pictures become tensors."""
        return self._image_options

    @property
    def labels(self) -> tuple[str, ...]:
        """Class labels; empty where no file was given."""
        return self._labels

    @property
    def layer_files(self) -> tuple[LayerFile, ...]:
        """Files of the user's own layers, in the order they were first loaded."""
        return self._layer_files

    @property
    def breakpoints(self) -> frozenset[str]:
        """Names of operators that a run stops before."""
        return frozenset(self._breakpoints)

    @property
    def failure(self) -> Failure | None:
        """What failed last and has not been dismissed."""
        return self._failure

    @property
    def files_notice(self) -> FilesNotice | None:
        """What became of the files of the open model, if that has not been dismissed."""
        return self._notice

    @property
    def progress(self) -> Progress | None:
        """Long work under way."""
        return self._progress

    @property
    def log_entries(self) -> tuple[LogEntry, ...]:
        """The log, oldest first."""
        return tuple(self._log_entries)

    def value(self, operand: str) -> Value:
        """Value of an operand, read-only.

        None when it has none yet (see `has_value`), and while it is not here (see `look`).
        """
        key = self._key(operand)
        return self._values.value(key) if key is not None else None

    def has_value(self, operand: str) -> bool:
        """Whether an operand has been computed."""
        return operand in self._outputs

    def at_hand(self, operand: str) -> bool:
        """Whether an operand has been computed, and `value` gives what came out."""
        key = self._key(operand)
        return key is not None and self._values.has(key)

    def summary(self, operand: str) -> Summary | None:
        """Range, special values and picture of an operand's value; None until `want` got it."""
        key = self._key(operand)
        return self._values.summary(key) if key is not None else None

    def fetch(self, operand: str) -> Value:
        """Value of an operand, waited for: read-only, or None where there is none.

        Raises
        ------
        EngineError
            If it cannot be computed again, or the engine ends meanwhile.
        """
        key = self._key(operand)
        if key is None:
            return None
        if not self._values.has(key):
            serial = key.outputs.serial
            call = self._client.call(
                lambda ticket: FetchRequest(ticket, operand, serial, "value")
            )
            answer = call.result()
            if not answer.found:
                raise EngineError(answer.reason)
            self._values.put(key, answer.result)  # type: ignore[arg-type]
        return self._values.value(key)

    def metadata(self, operand: str) -> ValueMetadata:
        """What is known of an operand's value, dropped or not; None when it has none yet."""
        outputs = self._outputs.get(operand)
        return outputs.metadata(operand) if outputs is not None else None

    def _key(self, operand: str) -> Key | None:
        outputs = self._outputs.get(operand)
        return Key(outputs, operand) if outputs is not None else None

    def record(self, operator: str) -> Record | None:
        """Record of an operator in the present pass."""
        return self._records.get(operator)

    def status(self, operator: str) -> OperatorStatus:
        """What became of an operator; UNSUPPORTED is known before it is reached."""
        record = self._records.get(operator)
        if record is not None:
            return record.status
        if self._graph is None or self._graph.operator(operator).error is None:
            return OperatorStatus.PENDING
        outputs = self._graph.operator(operator).outputs
        if outputs and all(operand.name in self._supplied for operand in outputs):
            return OperatorStatus.PENDING
        return OperatorStatus.UNSUPPORTED

    @property
    def skipped(self) -> int:
        """Number of operators passed by without running: without a layer, or blocked."""
        left_out = {OperatorStatus.UNSUPPORTED, OperatorStatus.BLOCKED}
        return sum(record.status in left_out for record in self._records.values())

    def is_current(self, operator: str) -> bool:
        """Whether an operator runs next."""
        current = self.current
        return current is not None and current.name == operator

    def statistics(self, operand: str) -> TensorStatistics | None:
        """Statistics of an operand's value, cached; None where it is no computed array."""
        import numpy as np

        known = self._statistics.get(operand)
        if known is None:
            value = self.value(operand)
            if not isinstance(value, np.ndarray):
                return None
            known = self._statistics[operand] = statistics(value)
        return known

    # The engine

    @property
    def engine_pid(self) -> int | None:
        """Number of the engine's process; None where the engine is a thread."""
        return self._client.pid

    def wait_idle(self, seconds: float = 30.0) -> bool:
        """Handle events until nothing is under way; whether that is so in the end."""
        deadline = QDeadlineTimer(round(seconds * 1000))
        waker = QTimer(interval=_WAKE_MS)
        waker.start()
        while (self._busy or self._loads.awaited) and not deadline.hasExpired():
            # Asleep between events, or the engine's thread would wait for the interpreter.
            QCoreApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
        return not (self._busy or self._loads.awaited)

    # Opening and closing

    def open(
        self,
        path: str | Path,
        bin_path: str | Path | None = None,
        kernels_from: str | Path | None = None,
    ) -> None:
        """Open a pair by either of its files; the present model stays until that worked.

        With `kernels_from`, a dump, it is computed as in `use_kernels_of`.
        """
        bin_, dump = (Path(p) if p is not None else None for p in (bin_path, kernels_from))
        wanted, self._loads.prepared = self._loads.prepared, Wanted()
        model = Model(Path(path), bin_, self._backend, dump)
        self._ask_for(Opening(model, wanted, takes_seed=dump is not None))

    def reload(self) -> None:
        """Run the files of layers and open the present model anew.

        It gets the same inputs, supplied outputs and breakpoints as far as they fit, and is
        run to where it stood.
        """
        opening = self._loads.awaited or self._as_it_is(with_place=True)
        if opening is None:
            return
        if self._layer_files:
            opening = replace(opening, with_layers=True)
            self._loads.ask_for_layers(tuple(file.path for file in self._layer_files))
        self._ask_for(opening)

    def close_model(self) -> None:
        """Close the model, or what is being opened; what is under way is cancelled."""
        self._stop_running()
        self._next_run()
        self._loads.clear()
        self._model = self._return_to = None
        self._kernels = {}
        self._sources = {}
        self._labels = ()
        self._step_over = ""
        self._passed_by.clear()
        self._busy = False
        self._set_progress(None)
        self._adopt(None)
        self._client.send(CloseRequest())
        self._set_state(RunState.EMPTY)
        self.backend_changed.emit()

    def set_backend(self, name: str) -> None:
        """Run on another backend, not by the kernels of a dump; the model is opened anew."""
        if name != self.backend:
            self._backend = name
            self._reopen(None)
            self.backend_changed.emit()

    def use_kernels_of(self, dump: str | Path) -> None:
        """Compute each operator as an earlier dump was, by its seed, for the same numbers.

        The model is opened anew, inputs stay. It holds for this model, until another backend
        is chosen; where it cannot be done, everything stays as it is.
        """
        self._reopen(Path(dump))

    def forget_kernels(self) -> None:
        """Go back to the backend from before `use_kernels_of`; the model is opened anew."""
        self.set_backend(self._backend)

    def set_seed(self, seed: int) -> None:
        """Have operators that are random draw by another seed; silent when nothing changes.

        What the first of them gave is dropped, and all that was computed behind it.
        """
        awaited = self._loads.awaited
        if seed == self._seed and not (awaited is not None and awaited.takes_seed):
            return
        self._loads.change(lambda opening: replace(opening, takes_seed=False))
        self._note_seed(seed)
        if self._graph is not None or self._loads.opening is not None:
            self._stop_running()
            # Without a number of its own: what is under way is carried out before.
            self._send(ReseedRequest(self._run_id, seed))

    def set_memory_limit(self, limit: int | None) -> None:
        """Keep at most so many bytes of computed values; silent when nothing changes.

        The others are computed again when they are looked at.
        """
        shown = format_exact_bytes(limit) if limit is not None else "none"
        self._set_memory(replace(self._memory, limit=limit), f"memory limit {shown}")

    def set_memory_bound(self, bound: int | None) -> None:
        """Let values take at most so many bytes; None for half of the machine's memory.

        Silent when nothing changes. An operator that needs more fails.
        """
        shown = (
            format_exact_bytes(bound) if bound is not None else "half of the machine's memory"
        )
        self._set_memory(replace(self._memory, bound=bound), f"memory bound {shown}")

    # Layers of the user's own

    def load_layers(self, path: str | Path) -> None:
        """Run a Python file with layers; the model is opened anew with them, inputs stay."""
        self._load_layers((Path(path),))

    def unload_layers(self) -> None:
        """Go back to the engine's own layers; the model is opened anew, inputs stay."""
        if self._client.is_process:
            self._restart_engine()  # what a file has changed is gone with the interpreter
        else:
            self._client.send(UnloadLayersRequest())
        self.log("info", "layers of your own are unloaded")
        self._note_layers(())
        opening = self._loads.awaited or self._as_it_is()
        if opening is not None:
            self._ask_for(opening)

    # Inputs

    def set_inputs(
        self,
        sources: Mapping[str, InputSource],
        options: ImageOptions | None = None,
    ) -> None:
        """Choose the inputs and go to the start.

        Parameters
        ----------
        sources : mapping of str to InputSource
            By operand name; the others keep theirs.
        options : ImageOptions, optional
            For pictures; the present ones when not given.
        """
        if options is not None:
            self._image_options = options
        self._return_to = None
        self._sources = {**self._sources, **sources}
        self.inputs_changed.emit()
        self._feed()

    def set_source_list(self, sources: Sequence[InputSource]) -> None:
        """Choose the inputs in order; a single ``.npz``, random or constant serves all."""
        if self._graph is not None and sources:
            wanted = [operand.name for operand in self._graph.input_operands]
            spread = _spread(tuple(sources), len(wanted))
            self.set_inputs(dict(zip(wanted, spread, strict=False)))

    def prepare_source_list(
        self, sources: Sequence[InputSource], options: ImageOptions | None = None
    ) -> None:
        """Choose the inputs, in order, of the model that is opened next.

        A single ``.npz``, random or constant source serves all inputs.
        """
        self._loads.prepared = replace(self._loads.prepared, sources=tuple(sources))
        if options is not None:
            self._image_options = options

    def set_shapes(self, shapes: InputShapes) -> None:
        """Choose the sizes of the inputs and go to the start; silent when nothing changes."""
        if shapes != self._shapes:
            self._return_to = None
            self._shapes = shapes
            self.inputs_changed.emit()
            self._feed()

    def prepare_shapes(self, texts: Sequence[str]) -> None:
        """Choose the sizes, as the command line writes them, of the model opened next."""
        self._loads.prepared = replace(self._loads.prepared, shapes=tuple(texts))

    def prepare_supplies(self, supplies: Sequence[tuple[str, InputSource]]) -> None:
        """Supply operands, or all outputs of operators, of the model that is opened next.

        Parameters
        ----------
        supplies : sequence of (str, InputSource)
            Name of the operand or operator, and the file.
        """
        self._loads.prepared = replace(self._loads.prepared, supplies=tuple(supplies))

    def prepare_labels(self, labels: tuple[str, ...]) -> None:
        """Choose the class labels of the model that is opened next."""
        self._loads.prepared = replace(self._loads.prepared, labels=labels)

    def set_labels(self, labels: tuple[str, ...]) -> None:
        """Choose class labels; silent when nothing changes."""
        if labels != self._labels:
            self._labels = labels
            self.labels_changed.emit()

    # Supplying

    def supply(self, operator: str, source: InputSource) -> None:
        """Use a file instead of what an operator would compute, and go on from there.

        Also of an operator that could run. The values behind it are dropped. Stays until it
        is withdrawn or another input is chosen.

        Parameters
        ----------
        operator : str
        source : InputSource
            An ``.npy``, or an ``.npz`` with an array per output.
        """
        if self._graph is None or self._busy or not self.can_supply(operator):
            return
        outputs = self._graph.operator(operator).outputs
        self._step_over = operator
        self._supply((Supply(tuple(operand.name for operand in outputs), source),))

    def can_supply(self, operator: str) -> bool:
        """Whether an operator has outputs that could be supplied."""
        if self._graph is None or not operator:
            return False
        found = self._graph.operator(operator)
        return bool(found.outputs) and not found.is_input

    def withdraw(self, operator: str) -> None:
        """Have an operator's outputs computed again that were supplied."""
        if self._graph is None or self._busy:
            return
        outputs = tuple(operand.name for operand in self._graph.operator(operator).outputs)
        self._stop_running()
        self._send(WithdrawRequest(self._next_run(), outputs))

    # Running

    def step(self) -> None:
        """Run one operator."""
        self._run(steps=1)

    def resume(self) -> None:
        """Run to the next breakpoint or the end."""
        self._run()

    def run_to(self, operator: str) -> None:
        """Run until an operator is next; one that has run already is reached from the start."""
        if self._graph is None:
            return
        if self._graph.operator(operator).index < self._position:
            self.restart()
        self._run(until=operator)

    def step_back(self) -> None:
        """Undo the last step, or the failed one; other operators keep their values."""
        undone = self.current if self._state is RunState.FAILED else self._before_current()
        if self._graph is None or self._busy or undone is None:
            return
        self._records.pop(undone.name, None)
        for operand in undone.outputs:
            self._outputs.pop(operand.name, None)
            self._statistics.pop(operand.name, None)
        self._failure = None
        self._position = undone.index
        self._send(StepBackRequest(self._next_run()))
        self.stepped_back.emit(undone.name)
        self.position_changed.emit()
        previous = self._before_current()
        self._follow(previous or undone)

    def restart(self) -> None:
        """Go to the first operator; inputs stay."""
        if self._graph is None or self._loads.opening is not None:
            return
        self._stop_running()
        self._return_to = None
        self._forget_values()
        self._send(RestartRequest(self._next_run()))

    def stop(self) -> None:
        """Stop a run between operators, or cancel an export; when idle go to the start."""
        if self._busy:
            self._client.send(CancelRequest(self._run_id))
            self._overdue.start()
        elif self._values.recomputing:
            for operand in self._values.cancel():
                self.recalled.emit(operand)
            self._set_progress(None)
        elif self._records:
            self.restart()

    def toggle_breakpoint(self, operator: str) -> None:
        """Set or clear a breakpoint."""
        if self._graph is None or not operator:
            return
        self._breakpoints ^= {self._graph.operator(operator).name}
        self.breakpoints_changed.emit()

    def clear_breakpoints(self) -> None:
        """Delete all breakpoints; silent when there are none."""
        if self._breakpoints:
            self._breakpoints.clear()
            self.breakpoints_changed.emit()

    # Looking

    def select(self, operator: str) -> None:
        """Select an operator and show its output; silent when nothing changes."""
        if operator == self._selected:
            return
        self._selected = operator
        self.selection_changed.emit(operator)
        if self._graph is not None and operator:
            self._show_operand_of(self._graph.operator(operator))

    def show_operand(self, operand: str) -> None:
        """Show an operand as a tensor; silent when nothing changes."""
        key = self._key(operand)
        if key is not None and self._values.why_not(key):
            self._values.try_again(key)
            self._operand = operand
            self.operand_changed.emit(operand)
        elif operand != self._operand:
            self._operand = operand
            self.operand_changed.emit(operand)

    def look(self, operand: str) -> bool:
        """Have the value of an operand here that the user looks at.

        Returns
        -------
        bool
            Whether it is. Otherwise it comes, and `recalled` tells; see `is_coming` and
            `why_dropped`.
        """
        key = self._key(operand)
        return key is not None and self._values.look(key)

    def is_coming(self, operand: str) -> bool:
        """Whether the value of an operand is on its way and will be here in a moment."""
        key = self._key(operand)
        return key is not None and self._values.is_coming(key)

    @property
    def recalling(self) -> str:
        """The operand that is being computed again; ``""`` for none."""
        return self._values.recomputing

    def want(self, operand: str) -> None:
        """Have the summary of an operand's value made when there is time; `recalled` tells."""
        key = self._key(operand)
        if key is not None:
            self._values.want(key)

    def is_given_up(self, operand: str) -> bool:
        """Whether the value of an operand was dropped and is not computed again."""
        key = self._key(operand)
        return key is not None and bool(self._values.why_not(key))

    def is_evicted(self, operand: str) -> bool:
        """Whether a memory limit has dropped a value, which is computed again if looked at."""
        return operand in self._evicted and not self.at_hand(operand)

    def why_dropped(self, operand: str) -> str:
        """Why the value of an operand is not at hand, in a sentence or two; else ``""``."""
        key = self._key(operand)
        if key is None or self._values.has(key):
            return ""
        if not (self._values.is_evicted(key) or self._values.why_not(key)):
            return ""
        limit = f" of {format_exact_bytes(self._memory.limit)}" if self._memory.limit else ""
        what = self._values.why_not(key) or (
            "It will be computed again when the run has stopped."
            if self._busy
            else "It is being computed again."
        )
        return f"It was dropped to stay within the memory limit{limit}. {what}"

    def dismiss_files_notice(self) -> None:
        """Take note of what became of the files; the banner goes until they change again."""
        self._set_notice(None)

    def dismiss_failure(self) -> None:
        """Take note of a failure; its banner goes."""
        self._failure = None

    def export_dump(self, path: str | Path, options: DumpOptions) -> None:
        """Write a dump of what has been computed."""
        if self._graph is None or self._busy:
            return
        self._set_progress(Progress(f"Exporting to {Path(path).name}"))
        self._send(ExportRequest(self._next_run(), Path(path), options))

    def self_check(self, tolerance: float = TOLERANCE) -> None:
        """Compare every backend with NumPy on the model and its inputs; see `self_checked`."""
        if self._graph is None or self._busy:
            return
        self._set_progress(Progress("Self-check", 0, len(self._graph.operators)))
        self._send(SelfCheckRequest(self._next_run(), tolerance))

    def announce(self, text: str) -> None:
        """Log what was done, and tell it to whoever is looking; see `announced`."""
        self.log("info", text)
        self.announced.emit(text)

    def log(self, level: str, text: str) -> None:
        """Add a line to the log."""
        entry = LogEntry(datetime.now().astimezone(), level, text)
        self._log_entries.append(entry)
        del self._log_entries[:-_LOG_LIMIT]
        self.logged.emit(entry)

    def close(self) -> None:
        """End the engine; the session is of no use afterwards."""
        self._overdue.stop()
        self._values.forget()
        self._files.watch(())
        self._loads.clear()
        self._next_run()
        self._client.close()

    # Inside

    def _connect(self) -> None:
        self._long_step = QTimer(self, singleShot=True, interval=_STEP_MS)
        self._long_step.timeout.connect(self.state_changed)
        self._overdue = QTimer(self, singleShot=True, interval=_STOP_MS)
        self._overdue.timeout.connect(self._on_overdue)
        self._files = FileWatch(self)
        self._files.changed.connect(self._on_files_changed)
        self._client.received.connect(self._on_received)
        self._client.lost.connect(self._on_lost)
        self._client.spare_lost.connect(self._on_spare_lost)
        self._handlers: dict[type, Callable[..., None]] = {
            Opened: self._on_opened,
            WeightsKept: self._on_weights_kept,
            NotesRead: self._on_notes_read,
            LayersLoaded: self._on_layers_loaded,
            Fed: self._on_fed,
            SuppliesChanged: self._on_supplied,
            Reseeded: self._on_reseeded,
            Stepped: self._on_stepped,
            RunEnded: self._on_ended,
            Evicted: self._on_evicted,
            Answer: self._on_answered,
            SelfChecked: self._on_self_checked,
            WorkFailed: self._on_failed,
            Progress: self._on_progressed,
        }

    def _next_run(self, *, keep_steps: bool = False) -> int:
        """Number of the next request.

        `keep_steps`: it leaves the present model as it is, at least if it fails, so what a
        run has done up to then still counts.
        """
        self._kept_run = self._run_id if keep_steps else -1
        self._run_id += 1
        return self._run_id

    def _send(self, request: Request) -> None:
        self._busy = True
        self._overdue.stop()
        self._client.send(request)

    def _stop_running(self) -> None:
        """Ask a run to end; its late answers are dropped by their number."""
        if self._busy:
            self._client.send(CancelRequest(self._run_id))
        self._deferred = None
        if self._state is RunState.RUNNING:
            self._set_state(RunState.STOPPED)

    def _run(
        self, steps: int | None = None, until: str | None = None, *, stops: bool = True
    ) -> None:
        if self._state is RunState.NEED_INPUT and not self._busy:
            self.input_needed.emit()
        if self._graph is None or self._state not in {RunState.READY, RunState.STOPPED}:
            return
        if self._busy:  # inputs are being read, or a restart is under way
            self._deferred = (steps, until)
            return
        if stops:  # the user goes elsewhere
            self._return_to = None
        self._failure = None
        self._passed_by.clear()
        if steps == 1:
            self._state = RunState.RUNNING
            self._long_step.start()
        else:
            self._set_state(RunState.RUNNING)
        breakpoints = frozenset(self._breakpoints if stops else ())
        self._send(RunRequest(self._next_run(), steps, until, breakpoints))

    # What is asked for, one at a time

    def _ask_for(self, opening: Opening) -> None:
        """Open a model, as soon as what was asked for before is there."""
        self._stop_running()
        self._loads.ask(opening)
        self._load_next()

    def _load_layers(self, paths: tuple[Path, ...]) -> None:
        self._stop_running()
        self._loads.ask_for_layers(paths)
        self._load_next()

    def _load_next(self) -> None:
        """Ask the worker for layers or for a model, if it has answered about the last."""
        wanted = self._loads.take()
        if wanted is None:
            return
        run_id = self._loads.run_id = self._next_run(keep_steps=True)
        if isinstance(wanted, Opening):
            self._open(run_id, wanted)
        else:
            names = ", ".join(path.name for path in wanted)
            self._set_progress(Progress(f"Loading layers of {names}"))
            loaded = tuple(file.path for file in self._layer_files)
            if self._client.is_process and loaded:
                # All of them in a fresh interpreter; the engine stays until that has worked.
                wanted = tuple(dict.fromkeys((*loaded, *wanted)))
                self._busy = True
                self._client.try_spare(LoadLayersRequest(run_id, wanted))
            else:
                self._send(LoadLayersRequest(run_id, wanted))

    def _open(self, run_id: int, opening: Opening) -> None:
        model = opening.model
        self._set_progress(Progress(f"Opening {model.path.name}"))
        if self._graph is None:
            self._set_state(RunState.LOADING)
        self._send(
            OpenRequest(
                run_id,
                model.path,
                model.bin,
                model.backend,
                model.kernels_from,
                None if opening.takes_seed else self._seed,
                self._memory,
            )
        )

    def _answered(self, run_id: int) -> Opening | None:
        """Take note that a load has been answered; returns the model that it was."""
        if run_id == self._run_id:  # nothing else has been asked for since
            self._busy = False
            self._set_progress(None)
        return self._loads.answered()

    def _reopen(self, kernels_from: Path | None) -> None:
        """Open the model anew, computed by the kernels of a dump or by the backend."""
        opening = self._loads.awaited or self._as_it_is()
        if opening is not None:
            model = replace(opening.model, backend=self._backend, kernels_from=kernels_from)
            takes_seed = kernels_from is not None
            self._ask_for(replace(opening, model=model, takes_seed=takes_seed))

    def _as_it_is(self, *, with_place: bool = False) -> Opening | None:
        """The present model, its inputs, labels, breakpoints and selection."""
        graph, model = self._graph, self._model
        if graph is None or model is None:
            return None
        named = (operand.name for operand in graph.input_operands)
        wanted = Wanted(
            tuple(self._sources[name] for name in named if name in self._sources),
            self._labels,
            self.breakpoints,
            self._selected,
            self._operand,
            self._shapes.texts,
            (*self._supplies, *self._supplying, *self._supply_when_fed),
        )
        return Opening(model, wanted, with_place=with_place)

    def _place(self) -> str | None:
        """Operator at which the model stands or to which it is run; ``""`` for the end."""
        if self._return_to is not None or not self._position:
            return self._return_to
        current = self.current
        return current.name if current is not None else ""

    def _graph_of(self, answer: Opened) -> RuntimeGraph:
        """The graph that the engine has opened, as the window has it."""
        archive = answer.graph.archive
        self._weights = RemoteWeights(self._client, archive) if archive is not None else None
        if self._weights is not None:
            self._weights.is_kept = answer.is_kept
        self._described = DescribedLayers(answer.graph)
        return graph_of(answer.graph, self._described, self._weights)

    def _note_layers(self, files: tuple[LayerFile, ...]) -> None:
        self._layer_files = files
        self.layers_changed.emit()

    def _log_layers(self, file: LayerFile) -> None:
        self.log("info", f"layers of {file.path.name}: {', '.join(file.types)}")

    def _note_seed(self, seed: int) -> None:
        if seed != self._seed:
            self._seed = seed
            self.log("info", f"random seed {seed}")
            self.seed_changed.emit()

    def _idle(self, state: RunState) -> None:
        """A request has ended; go on with a run that waited for it."""
        self._busy = False
        self._set_progress(None)
        self._set_state(state)
        self._loads.give(giving=False)
        self._load_next()
        if self._busy:
            return
        if self._return_to is not None and state in {RunState.READY, RunState.STOPPED}:
            self._go_to_place(self._return_to)
        elif (loss := self._losses.take_untold()) is not None:
            self._failure = loss
            self.failed.emit(loss)
        elif self._deferred is not None:
            steps, until = self._deferred
            self._deferred = None
            self._run(steps, until)

    def _go_to_place(self, place: str) -> None:
        """Run to where the model stood before it was reloaded, past all breakpoints."""
        self._run(until=place or None, stops=False)
        self._return_run = self._run_id

    def _feed(self) -> None:
        if self._graph is None:
            return
        wanted = {operand.name for operand in self._graph.input_operands}
        if not wanted <= self._sources.keys():
            return
        if self._loads.awaited is not None:
            # They are for what is open by then: the next model, or this one if that fails.
            sources = tuple(source for n, source in self._sources.items() if n in wanted)
            self._loads.change(lambda opening: _with_sources(opening, sources))
            return
        self._stop_running()
        if self._supplied:
            self.log("info", "supplied outputs were dropped: they belong to the input before")
            self._set_supplied({})
        self._forget_values()
        self._set_progress(Progress("Reading inputs"))
        self._send(
            FeedRequest(
                self._next_run(), dict(self._sources), self._image_options, self._shapes
            )
        )

    def _supply(self, supplies: tuple[Supply, ...]) -> None:
        self._stop_running()
        self._supplying = supplies
        names = ", ".join(Path(supply.source.text).name for supply in supplies)
        self._set_progress(Progress(f"Reading {names}"))
        self._send(SupplyRequest(self._next_run(), supplies))

    def _set_supplied(self, supplied: Mapping[str, str]) -> None:
        """Take note of what is supplied now, and of the files that it came from."""
        self._supplied = dict(supplied)
        latest = {s.operands: s for s in (*self._supplies, *self._supplying)}
        self._supplies = tuple(
            supply for names, supply in latest.items() if self._supplied.keys() >= set(names)
        )
        self._supplying = ()
        self.supplies_changed.emit()

    def _give(self, graph: RuntimeGraph, wanted: Wanted, place: str | None) -> None:
        """Use what was chosen for a model before it was open, and run it to its place."""
        self.set_labels(wanted.labels)
        named = [operand.name for operand in graph.input_operands]
        self._set_state(RunState.NEED_INPUT if named else RunState.READY)
        try:
            if wanted.shapes:
                self._shapes = parse_shapes(wanted.shapes, graph.input_operands)
            supplies = self._supplies_for(graph, wanted)
            self._supply_when_fed = supplies if named else ()
        except EngineError as exc:
            self._report(Failure("What was asked for does not fit the model", str(exc)))
            supplies = ()
        spread = _spread(wanted.sources, len(named)) if wanted.sources else ()
        sources = dict(zip(named, spread, strict=False))
        self._size_pictures(graph, sources)
        self.inputs_changed.emit()
        if sources:
            self.set_inputs(sources)
        elif supplies and not named:
            self._supply(supplies)
        self._return_to = self._place_in(graph, place)
        self._loads.give(giving=self._busy)
        if not self._busy:
            self._idle(self._state)

    def _supplies_for(self, graph: RuntimeGraph, wanted: Wanted) -> tuple[Supply, ...]:
        """What can be supplied of what was; a name that the user gave must be there."""
        found = []
        for supply in wanted.supplies:
            if isinstance(supply, Supply):
                missing = [name for name in supply.operands if name not in graph.operands]
                if missing:
                    self.log("warning", f"operand {missing[0]} is supplied no more: it is gone")
                    continue
                found.append(supply)
            else:
                name, source = supply
                outputs = tuple(operand.name for operand in named_outputs(graph, name))
                found.append(Supply(outputs, source))
        return tuple(found)

    def _place_in(self, graph: RuntimeGraph, place: str | None) -> str | None:
        """Where to run a model to; None where the operator is gone."""
        if place and place not in {operator.name for operator in graph.operators}:
            self.log("warning", f"{place}, where the model stood, is gone; it is at the start")
            return None
        return place

    def _restore_breakpoints(self, graph: RuntimeGraph, wanted: frozenset[str]) -> None:
        names = {operator.name for operator in graph.operators}
        for name in sorted(wanted - names):
            self.log("warning", f"the breakpoint at {name} is dropped: the operator is gone")
        self._breakpoints = set(wanted & names)
        if self._breakpoints:
            self.breakpoints_changed.emit()

    def _size_pictures(self, graph: RuntimeGraph, sources: Mapping[str, InputSource]) -> None:
        """Turn a size of pictures into sizes of the inputs, where those are not asked for."""
        size = self._image_options.size
        if size is None:
            return
        shapes = dict(self._shapes.shapes)
        for operand in graph.input_operands:
            source = sources.get(operand.name)
            if source is None or source.kind != "image" or operand.name in shapes:
                continue
            if operand.shape is None or len(operand.shape) < 3:
                return
            shapes[operand.name] = (*(None,) * (len(operand.shape) - 2), *size)
        self._shapes = InputShapes(shapes, self._shapes.symbols)
        self._image_options = replace(self._image_options, size=None)

    def _report(self, failure: Failure) -> None:
        self._failure = failure
        self.log("error", failure.reason)
        self.failed.emit(failure)

    def _adopt(self, graph: RuntimeGraph | None) -> None:
        self._graph = graph
        self._files.watch(graph.file.versions if graph is not None else ())
        self._set_notice(None)
        self._failure = None
        self._shapes, self._fed = InputShapes(), {}
        self._supplies, self._supplied = (), {}
        self._supplying = self._supply_when_fed = ()
        self._breakpoints.clear()
        self._selected = self._operand = ""
        self._forget_values(silent=True)
        self.graph_changed.emit()
        self.selection_changed.emit("")
        self.operand_changed.emit("")
        self.inputs_changed.emit()
        self.labels_changed.emit()

    def _go_back_to(self, position: int) -> None:
        """Drop what was computed from an operator on; the engine has done so already."""
        if self._graph is None:
            return
        self._failure = None
        self._position = position
        for operator in self._graph.operators[position:]:
            if self._records.pop(operator.name, None) is not None:
                for operand in operator.outputs:
                    self._outputs.pop(operand.name, None)
                    self._statistics.pop(operand.name, None)
        self.values_reset.emit()
        self.position_changed.emit()

    def _forget_values(self, *, silent: bool = False) -> None:
        self._outputs.clear()
        self._evicted = frozenset()
        self._values.forget()
        self._records.clear()
        self._statistics.clear()
        self._failure = None
        self._position = 0
        if self._state is not RunState.EMPTY and self._graph is not None:
            fed = {o.name for o in self._graph.input_operands} <= self._sources.keys()
            self._set_state(RunState.READY if fed else RunState.NEED_INPUT)
        if not silent:
            self.values_reset.emit()
            self.position_changed.emit()

    def _set_state(self, state: RunState) -> None:
        if state is not self._state:
            self._state = state
            self._long_step.stop()
            self.state_changed.emit()

    def _set_memory(self, memory: MemoryRequest, text: str) -> None:
        if memory != self._memory:
            self._memory = memory
            self.log("info", text)
            self.memory_limit_changed.emit()
            self._client.send(memory)

    def _set_notice(self, notice: FilesNotice | None) -> None:
        if notice != self._notice:
            self._notice = notice
            self.files_changed.emit()

    def _set_progress(self, progress: Progress | None) -> None:
        if progress != self._progress:
            self._progress = progress
            self.progress_changed.emit(progress)

    def _show_operand_of(self, operator: RuntimeOperator) -> None:
        """Show the first output; of an operator that has none, its first input."""
        shown = [o.name for o in operator.outputs] or [o.name for o in operator.inputs]
        if shown:
            self.show_operand(shown[0])

    def _before_current(self) -> RuntimeOperator | None:
        if self._graph is None or not 0 < self._position <= len(self._graph.operators):
            return None
        return self._graph.operators[self._position - 1]

    def _follow(self, last: RuntimeOperator) -> None:
        """Select the operator that is next, and show what was computed last."""
        following = self.current or last
        if following.name != self._selected:
            self._selected = following.name
            self.selection_changed.emit(following.name)
        self._show_operand_of(last)

    # The engine ends, or is to

    def _restart_engine(self) -> None:
        """Start the engine anew; it has neither model nor layers."""
        self._busy = False
        self._overdue.stop()
        self._next_run()
        self._values.forget()
        self._client.restart()

    @Slot()
    def _on_overdue(self) -> None:
        """What was stopped goes on, in a single operator perhaps: end the engine."""
        if self._busy and self._client.is_process:
            self._losses.by_force = True
            self._client.kill()

    @Slot(object)
    def _on_lost(self, lost: EngineLost) -> None:
        """Start the engine anew, and bring the model back to where it was."""
        stopped = self._losses.by_force
        failure = describe_loss(self._graph, lost, stopped=stopped)
        self.log("warning" if stopped else "error", f"{failure.title}: {failure.reason}")
        if self._graph is not None and failure.operator:
            exclude_kernel(self._graph, lost)
            self._return_to = failure.operator
        before = self._as_it_is(with_place=True)
        opened = self._loads.opening is not None and self._graph is None
        self._deferred, self._step_over = None, ""
        self._loads.clear()
        self._set_progress(None)
        self._restart_engine()
        layers, self._layer_files = self._layer_files, ()
        if self._losses.note(failure) and before is not None:
            self._loads.ask_for_layers(tuple(file.path for file in layers))
            self._ask_for(before)
        else:
            self._give_up(failure, opened=opened)

    @Slot(object)
    def _on_spare_lost(self, lost: EngineLost) -> None:
        """Files of layers have ended the interpreter that was to run them."""
        reason = "it was stopped" if self._losses.by_force else lost.reason
        self._losses.by_force = False
        error = EngineError(f"the process that ran the files of layers ended: {reason}")
        self._on_failed(WorkFailed(self._loads.run_id, error))

    def _give_up(self, failure: Failure, *, opened: bool) -> None:
        """Leave the engine without a model: it ends whenever it gets this one."""
        self._losses.take_untold()
        self._forget_values(silent=self._graph is None)
        self._set_state(RunState.EMPTY if self._graph is None else RunState.FAILED)
        title = "The model cannot be opened" if opened else failure.title
        hint = "Reload the model to try again." if self._graph is not None else ""
        self._report(replace(failure, title=title, hint=hint, reload=self._graph is not None))

    # Replies of the engine; a late one to an earlier request is dropped

    @Slot(object)
    def _on_received(self, reply: object) -> None:
        self._handlers[type(reply)](reply)

    def _on_opened(self, answer: Opened) -> None:
        opening = self._loads.opening
        if answer.run_id != self._loads.run_id or opening is None:
            return
        self._answered(answer.run_id)
        before = self.kernels_from
        # A run that was interrupted has told all its steps by now.
        place = self._place() if opening.with_place else None
        self._model, self._kernels = opening.model, answer.kernels
        self._kernel_texts = dict(answer.kernel_texts)
        self._opened_by = answer.run_id
        graph = self._graph_of(answer)
        self._sources = {}
        self._labels = ()
        self._set_state(RunState.LOADING)
        with collector_paused():  # views make objects for every operator and operand
            self._adopt(graph)
        weights = f" and {graph.bin_path.name}" if graph.bin_path else ", structure only"
        self.log(
            "info",
            f"opened {graph.param_path.name}{weights}: "
            f"{format_count(len(graph.operators), 'operator')} in "
            f"{format_duration(answer.seconds)}",
        )
        if self.kernels_from is not None:
            self.log("info", f"kernels of {dump_name(self.kernels_from)}: {self.kernels_text}")
        elif before is not None:
            self.log("info", f"kernels of {dump_name(before)} are used no more")
        if opening.takes_seed:
            self._note_seed(answer.seed)
        self.backend_changed.emit()
        reasons = Counter(operator.reason for operator in graph.unsupported)
        for reason, count in list(reasons.items())[:_LISTED]:
            self.log(
                "warning",
                f"{format_count(count, 'operator')}: {reason}" if count > 1 else reason,
            )
        names = [operator.name for operator in graph.operators]
        if names:
            selected = opening.wanted.selected
            self.select(selected if selected in names else names[0])
        if opening.wanted.operand in graph.operands:
            self.show_operand(opening.wanted.operand)
        self._restore_breakpoints(graph, opening.wanted.breakpoints)
        self._give(graph, opening.wanted, place)

    def _on_layers_loaded(self, answer: LayersLoaded) -> None:
        if self._client.adopt_spare():
            self._values.forget()
        for file in answer.files:  # a fact, whatever was asked for since
            self._log_layers(file)
        self._note_layers(answer.all)
        if answer.run_id != self._loads.run_id:
            return
        self._answered(answer.run_id)
        opening = self._loads.awaited or self._as_it_is()
        if opening is not None:
            self._ask_for(opening)
        elif not self._busy:
            self._idle(self._state)

    @Slot(object)
    def _on_files_changed(self, changes: tuple[FileChange, ...]) -> None:
        if self._graph is None or not changes:
            self._set_notice(None)
            return
        kept = self._weights is None or self._weights.is_kept
        notice = make_notice(changes, datetime.now().astimezone(), kept=kept)
        self.log("warning", notice.title)
        self._set_notice(notice)

    def _on_fed(self, answer: Fed) -> None:
        if answer.run_id != self._run_id:
            return
        self._fed = dict(answer.shapes)
        self.inputs_changed.emit()
        shown = ", ".join(f"{name} = {self._sources[name].text}" for name in answer.shapes)
        self.log("info", f"inputs: {shown}")
        supplies, self._supply_when_fed = self._supply_when_fed, ()
        if supplies:
            self._supply(supplies)
        else:
            self._idle(RunState.READY)

    def _on_supplied(self, answer: SuppliesChanged) -> None:
        if answer.run_id != self._run_id:
            return
        self._set_supplied(answer.supplied)
        for name, source in answer.supplied.items():
            self.log("info", f"operand {name} is supplied from {source}")
        self._go_back_to(answer.position)
        over, self._step_over = self._step_over, ""
        self._idle(_STATE_OF[answer.state])
        if over and self.is_current(over):
            self.step()

    def _on_reseeded(self, answer: Reseeded) -> None:
        if self._graph is not None and answer.opened_by == self._opened_by:
            following = self._graph.operators[answer.position : answer.position + 1]
            if any(operator.name in self._records for operator in following):
                self._go_back_to(answer.position)
        if answer.run_id == self._run_id:  # nothing else has been asked for since
            self._idle(_STATE_OF[answer.state])

    def _on_stepped(self, answer: Stepped) -> None:
        if answer.run_id not in {self._run_id, self._kept_run}:
            return
        if self._graph is None:
            return
        for record in answer.records:
            self._records[record.operator.name] = record
            self._kernel_texts[record.kernel] = record.kernel_text
            self._outputs.update(dict.fromkeys(record.outputs, record.outputs))
            if record.status is OperatorStatus.UNSUPPORTED:  # blocked ones follow from it
                self.log("warning", record.reason)
                self._passed_by.append(self._graph.operators[record.index])
        last = answer.records[-1]
        for name, value in answer.values.items():
            key = self._key(name)
            if key is not None:
                self._values.put(key, value)
        self._position = answer.position
        self.stepped.emit(answer.records)
        self.position_changed.emit()
        if answer.run_id != self._return_run:
            self._follow(self._graph.operators[last.index])

    def _on_ended(self, answer: RunEnded) -> None:
        if answer.run_id != self._run_id:
            return
        self._evicted = answer.evicted
        if answer.text:
            self.announce(answer.text)
        passed_by, self._passed_by = self._passed_by, []
        if answer.run_id == self._return_run:
            self._return_to, self._return_run = None, -1
        elif self._losses.untold is None:
            self._losses.note_success()
        self._idle(_STATE_OF[answer.state])
        if passed_by:
            self.failed.emit(self._describe_passed_by(passed_by))

    def _on_weights_kept(self, answer: WeightsKept) -> None:
        if answer.run_id == self._opened_by and self._weights is not None:
            self._weights.is_kept = True

    def _on_notes_read(self, answer: NotesRead) -> None:
        if answer.run_id == self._opened_by and self._described is not None:
            self._described.notes.update(answer.notes)
            self.notes_changed.emit()

    def _on_evicted(self, answer: Evicted) -> None:
        operand = self._values.note_evicted(answer.ticket)
        if operand:
            self.recalled.emit(operand)

    def _on_answered(self, answer: Answer) -> None:
        operand = self._values.take(answer)
        if not self._busy and not self._values.recomputing:
            self._set_progress(None)
        if operand:
            if answer.reason:
                self.log("error", answer.reason)
            self.recalled.emit(operand)

    def _on_self_checked(self, answer: SelfChecked) -> None:
        if answer.run_id != self._run_id:
            return
        found = answer.found
        for comparison in found.differing[:_LISTED]:
            self.log("warning", f"self-check: {comparison.sentence}")
        self.log("info" if found.agrees else "warning", f"self-check: {found.summary}")
        self._idle(_STATE_OF[answer.state])
        if not found.cancelled:
            self.self_checked.emit(found)

    def _on_failed(self, answer: WorkFailed) -> None:
        if answer.run_id == self._loads.run_id:
            self._on_not_loaded(answer)
        elif answer.run_id == self._run_id:
            self._on_work_failed(answer)
            self._loads.give(giving=False)
            self._load_next()

    def _on_not_loaded(self, answer: WorkFailed) -> None:
        """A model cannot be opened, or layers not be loaded: what was open stays as it was."""
        opening = self._answered(answer.run_id)
        self._deferred = None
        if self._graph is None:
            self._set_state(RunState.EMPTY)
        elif answer.state is not None and not self._busy:
            self._set_state(_STATE_OF[answer.state])
        if opening is None:
            self._client.drop_spare()
            self._loads.layers_failed()
        elif self._misses_kernels(opening, answer.error):
            self._drop_kernels(opening, str(answer.error))
            return
        self._failure = self._describe(answer, opening)
        self.log("error", str(answer.error))
        self.failed.emit(self._failure)
        if self._model is not None and self._loads.awaited is None:
            self._backend = self._model.backend
            self.backend_changed.emit()
        if opening is not None and opening.wanted.chosen_late:
            self._feed()
        if self._busy:
            self._load_next()
        else:
            self._idle(self._state)

    def _misses_kernels(self, opening: Opening, error: Exception) -> bool:
        """Whether a model was reloaded that the kernels of its dump no longer fit."""
        return (
            opening.model.kernels_from is not None
            and opening.model == self._model
            and isinstance(error, SessionStateError)
        )

    def _drop_kernels(self, opening: Opening, reason: str) -> None:
        self.log("warning", reason)
        self.announce(f"the model has changed, and is computed by {self._backend} again")
        model = replace(opening.model, kernels_from=None)
        self._ask_for(self._loads.awaited or replace(opening, model=model))

    def _on_work_failed(self, answer: WorkFailed) -> None:
        self._busy = False
        self._step_over = ""
        deferred, self._deferred = self._deferred, None
        self._return_to, self._return_run = None, -1
        self._set_progress(None)
        if isinstance(answer.error, OpenShapeError):
            self._ask_for_sizes(answer.error, asked_to_run=deferred is not None)
            return
        if self._supplying and self._graph is not None:
            self._report_not_supplied(self._graph, answer)
            return
        self._failure = self._describe(answer, None)
        self.log("error", str(answer.error))
        unfed = answer.state is SessionState.NEED_INPUT and bool(self._fed)
        failed = None
        if answer.record is not None and self._graph is not None:
            failed = self._graph.operators[answer.record.index]
            self._records[failed.name] = answer.record
            self._position = answer.position
        if answer.state is not None and self._graph is not None:
            self._set_state(_STATE_OF[answer.state])
        if failed is not None:
            self.stepped.emit((answer.record,))
            self.position_changed.emit()
            self._selected = failed.name
            self.selection_changed.emit(self._selected)
            self._show_operand_of(failed)
        self.failed.emit(self._failure)
        if unfed:
            self._fed = {}
            self.inputs_changed.emit()

    def _report_not_supplied(self, graph: RuntimeGraph, answer: WorkFailed) -> None:
        """What failed is the file: the session stands where it did."""
        producers = [
            graph.operand(name).producer for s in self._supplying for name in s.operands
        ]
        operator = producers[0].name if producers and producers[0] is not None else ""
        self._supplying = ()
        self.log("error", str(answer.error))
        if answer.state is not None:
            self._set_state(_STATE_OF[answer.state])
        title = f"The output of {operator} was not supplied"
        self.failed.emit(Failure(title, str(answer.error), operator=operator))

    def _ask_for_sizes(self, error: OpenShapeError, *, asked_to_run: bool) -> None:
        """Inputs cannot be made up before their sizes are known; that is no failure."""
        self.log("info", str(error))
        self._fed = {}
        self._set_state(RunState.NEED_INPUT)
        self.inputs_changed.emit()
        if asked_to_run:
            self.input_needed.emit()

    def _on_progressed(self, progress: Progress) -> None:
        if self._busy or self._values.recomputing:
            self._set_progress(progress)

    def _describe_passed_by(self, operators: Sequence[RuntimeOperator]) -> Failure:
        first = operators[0]
        others = len(operators) - 1
        title = f"{first.name} cannot run"
        if others:
            title = f"{first.name} and {format_count(others, 'other')} cannot run"
        blocked = sum(r.status is OperatorStatus.BLOCKED for r in self._records.values())
        hint = "Supply its output from a file, and the run goes on from there."
        if blocked:
            behind = format_count(blocked, "operator behind it is", "operators behind it are")
            hint = f"{behind} blocked. {hint}"
        return Failure(title, first.reason, hint, first.name)

    def _describe(self, answer: WorkFailed, opening: Opening | None) -> Failure:
        error = answer.error
        dump = opening.model.kernels_from if opening is not None else None
        if dump is not None and isinstance(error, (DumpFileError, SessionStateError)):
            hint = "Open the model without them."
            if self._graph is not None:
                hint = "The model stays as it is, and is computed as before."
            title = f"The kernels of the dump {dump_name(dump)} cannot be used"
            return Failure(title, str(error), hint)
        if isinstance(error, LayerFileError):
            return Failure("The layers cannot be loaded", str(error), layer_file=error.path)
        if isinstance(error, InferenceError):
            title, graph = f"{error.operator} failed", self._graph
            if graph is None:
                return Failure(title, error.reason, operator=error.operator)
            hint, suspect = hint_for(graph, error), suspect_for(graph, error)
            changed = not all(version.is_current() for version in graph.file.versions)
            return Failure(title, error.reason, hint, error.operator, suspect, reload=changed)
        if answer.record is not None:
            name = answer.record.operator.name
            return Failure(f"{name} failed", str(error), operator=name)
        reason = str(error) or type(error).__name__
        if opening is not None:
            again = self._model is not None and opening.model.path == self._model.path
            title = "The model cannot be reloaded" if again else "The model cannot be opened"
            hint = "The one before stays open." if self._graph is not None else ""
            return Failure(title, reason, hint, reload=again)
        if self._graph is None:
            return Failure("The model cannot be opened", reason)
        titles = {
            FeedError: "The input cannot be used",
            ExportError: "The dump was not written",
        }
        found = (title for kind, title in titles.items() if isinstance(error, kind))
        return Failure(next(found, "That did not work"), reason)


def dump_name(path: Path) -> str:
    """What a dump is called: its folder may be named by the manifest in it."""
    return path.parent.name if path.name == "manifest.json" else path.name


def _with_sources(opening: Opening, sources: tuple[InputSource, ...]) -> Opening:
    return replace(opening, wanted=replace(opening.wanted, sources=sources, chosen_late=True))


def _spread(sources: tuple[InputSource, ...], count: int) -> tuple[InputSource, ...]:
    """A single source that can serve all inputs, as many times as there are inputs."""
    only = sources[0]
    if len(sources) > 1 or only.kind not in {"npz", "random", "constant"}:
        return sources
    return tuple(replace(only, seed=only.seed + place) for place in range(count))
