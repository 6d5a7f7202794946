"""The read side of the session: the open model, its run, and the user's settings."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
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

from engine.errors import without_name
from engine.states import OperatorStatus
from engine.text import format_exact_bytes
from kuiper_studio.engine_service.channel_totals import ChannelTotals
from kuiper_studio.engine_service.protocol import (
    FeedRequest,
    Model,
    OpenRequest,
    Progress,
    ReseedRequest,
    RestartRequest,
    RunRequest,
    StepBackRequest,
)
from kuiper_studio.session.aligning import Aligning
from kuiper_studio.session.attentions import Attentions
from kuiper_studio.session.bookmarks import Bookmarks
from kuiper_studio.session.channel_answers import ChannelAnswers
from kuiper_studio.session.comparing import Comparing
from kuiper_studio.session.costs import CostTable
from kuiper_studio.session.events import Failure, RunState
from kuiper_studio.session.explaining import Explaining
from kuiper_studio.session.finding import Finding
from kuiper_studio.session.layouts import Layouts
from kuiper_studio.session.meanings import Meanings
from kuiper_studio.session.measuring import Measuring
from kuiper_studio.session.memory import Memory
from kuiper_studio.session.model_inputs import ModelInputs
from kuiper_studio.session.openings import Openings
from kuiper_studio.session.overlaying import Overlaying
from kuiper_studio.session.precision import Precision
from kuiper_studio.session.requests import Requests
from kuiper_studio.session.snapshot import Snapshot
from kuiper_studio.session.sweeping import Sweeping
from kuiper_studio.session.tensors import Tensors
from kuiper_studio.session.tracing import Tracing
from kuiper_studio.session.tuning import Tuning
from kuiper_studio.session.undoing import Undoing
from kuiper_studio.session.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from engine.inputs import ImageOptions, InputSource
    from engine.runtime import RuntimeGraph, RuntimeOperator
    from engine.shapes import InputShapes
    from engine.values import Value
    from kuiper_studio.engine_service.protocol import FaultNote, Outputs, Record
    from kuiper_studio.session.asking import Place
    from kuiper_studio.session.client import EngineClient
    from kuiper_studio.session.events import FilesNotice
    from kuiper_studio.session.opened_model import OpenedModel

__all__ = ["SessionView"]

_SHORT: Final = (FeedRequest, RestartRequest, StepBackRequest)  # steps may wait for these
_WAKE_MS: Final = 10
_STEP_MS: Final = 100  # a run or a step that takes longer is announced


class SessionView(QObject):
    """The read side of `StudioSession`: everything that views show, and signals of changes.

    Lives on the GUI thread. All signals send names as objects: in a string, Qt would interpret
    U+FEFF or U+FFFE at the start as a byte order mark.

    Parameters
    ----------
    client : EngineClient
    backend : str
        The initial backend.

    Attributes
    ----------
    tensors : Tensors
        The values of operands.
    layouts : Layouts
        What dimensions mean.
    attentions : Attentions
    channel_totals : ChannelAnswers of ChannelTotals
        What channels held over all inputs.
    meanings : Meanings
    comparing : Comparing
        The comparison with a reference.
    explaining : Explaining
        Where an element comes from.
    aligning : Aligning
        Where pictures of operands lie on an input.
    tracing : Tracing
        What all operators have at the place of an element.
    precision : Precision
        Simulated formats of lower precision.
    sweeping : Sweeping
        The data set that was run through the model.
    measuring : Measuring
        What the operators gave.
    finding : Finding
        The operators that the user looks for.
    overlaying : Overlaying
        What the operators of the graph are coloured by.
    bookmarks : Bookmarks
    undoing : Undoing
        Changes of bookmarks and breakpoints, to undo them.
    memory : Memory
        How much the engine may use.
    tuning : Tuning
        Of kernels, while the engine rests.
    workspace : Workspace
        Class labels, layer files, and the log.

    Signals
    -------
    graph_changed
        Another model was opened, or the model was closed.
    state_changed
        `state` changed. RUNNING is sent only if a run or step takes a while; otherwise
        commands would be disabled and enabled within one frame.
    position_changed
        The next operator changed.
    stepped
        Tuple of Record, newly executed, in order.
    stepped_back
        Name of the operator whose step was undone.
    values_reset
        Computed values were dropped, all or from some operator on.
    inputs_changed
        Input sources, sizes, image options or input values changed.
    input_needed
        Something was to run, and an input or its size is not known.
    sizes_needed
        A `SizesQuestion`: a file to convert leaves sizes of its inputs open.
    supplies_changed
        Overrides were set or cleared.
    seed_changed
        The random seed changed.
    backend_changed
        The backend changed, or the use of a dump's kernels.
    notes_changed
        The notes on operator types arrived.
    export_faults_changed
        Faults of the export were found in the model's file.
    selection_changed
        Name of the selected operator, ``""`` for none.
    operand_changed
        Name of the operand shown as a tensor, ``""`` for none.
    breakpoints_changed
        The set of breakpoints changed.
    files_changed
        `files_notice` changed: files of the open model were rewritten or removed.
    progress_changed
        A `Progress`, or None when nothing long is under way.
    failed
        A `Failure`.
    settled
        Emitted after changes: once after all changes by one reply of the engine, and after each
        change by the user. Views that depend on several signals refresh then.
    """

    graph_changed = Signal()
    state_changed = Signal()
    position_changed = Signal()
    stepped = Signal(object)
    stepped_back = Signal(object)
    values_reset = Signal()
    inputs_changed = Signal()
    input_needed = Signal()
    sizes_needed = Signal(object)
    supplies_changed = Signal()
    seed_changed = Signal()
    backend_changed = Signal()
    notes_changed = Signal()
    export_faults_changed = Signal()
    selection_changed = Signal(object)
    operand_changed = Signal(object)
    breakpoints_changed = Signal()
    files_changed = Signal()
    progress_changed = Signal(object)
    failed = Signal(object)
    settled = Signal()

    _export_faults: tuple[FaultNote, ...] = ()

    def __init__(
        self, client: EngineClient, backend: str, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        client.setParent(self)
        self._client, self._backend = client, backend
        self._requests = Requests(client, self)
        self._ncnn_options = "exact"
        self.tensors = Tensors(client, self._outputs_with, self)
        self.layouts = Layouts(
            lambda: self._graph, self.tensors, lambda: self._snapshot.records, self
        )
        self.attentions = Attentions(client, lambda: self._graph, self)
        self.channel_totals = ChannelAnswers(client, "totals", ChannelTotals, self)
        self.comparing = Comparing(client, self)
        self.explaining, self.aligning = (
            Explaining(client, self.tensors, self), Aligning(client, self.tensors, self)
        )  # fmt: skip
        self.tracing = Tracing(client, self.tensors, self.layouts, self)
        self.precision, self.sweeping = Precision(self), Sweeping(lambda: self._graph, self)
        self.measuring = Measuring(client, self)
        self.finding = Finding(lambda: self._graph, self.tensors, self.measuring, self)
        self.overlaying = Overlaying(lambda: self._graph, self.measuring, self)
        self.workspace, self.undoing = Workspace(self), Undoing(self)
        self.memory = Memory(client, self.workspace, self)
        self.tuning = Tuning(client, self.workspace, self)
        self.bookmarks = Bookmarks(lambda: self._graph, self.undoing, self)
        self.meanings = Meanings(
            client, lambda: self._graph, self.tensors, self.workspace, self
        )
        # The model
        self._opened: OpenedModel | None = None
        self._costs: CostTable | None = None
        # The engine's last state, and the shown state
        self._told = self._snapshot = Snapshot()
        self._openings = Openings(client, self._requests, self.memory, self.tuning)
        self._failure: Failure | None = None
        self._notice: FilesNotice | None = None
        self._progress: Progress | None = None
        self._long_step = QTimer(self, singleShot=True, interval=_STEP_MS)
        self._long_step.timeout.connect(self.state_changed)
        self._is_replying = self._is_unsettled = False  # one reply brings several changes
        # The user's settings
        self._selected = self._operand = ""
        self._inputs = ModelInputs()
        for changed in (
            self.state_changed,
            self.position_changed,
            self.stepped,
            self.stepped_back,
            self.values_reset,
            self.inputs_changed,
            self.selection_changed,
            self.operand_changed,
        ):
            changed.connect(self._on_changed)
        self._follow_values()

    def _follow_values(self) -> None:
        """Have what is measured and marked follow the run."""
        self.settled.connect(self.explaining.refresh)
        self.explaining.followed.connect(self._on_followed)
        self.settled.connect(self.tracing.refresh)
        self.graph_changed.connect(self._on_graph_shown)
        self.stepped.connect(self.measuring.follow)
        self.stepped.connect(self._note_costs)
        for dropped in (self.values_reset, self.stepped_back):
            dropped.connect(self._on_values_dropped)
        self.state_changed.connect(self._on_state_shown)
        self.selection_changed.connect(self.finding.follow_selection)

    # State

    @property
    def snapshot(self) -> Snapshot:
        """Position and results of the run."""
        return self._snapshot

    @property
    def graph(self) -> RuntimeGraph | None:
        """The open model."""
        return self._graph

    @property
    def _graph(self) -> RuntimeGraph | None:
        return self._opened.graph if self._opened is not None else None

    @property
    def _model(self) -> Model | None:
        return self._opened.model if self._opened is not None else None

    @property
    def model_path(self) -> Path | None:
        """The file that was opened: a ``.param``, or what a pair was converted from."""
        return self._graph.source_path if self._graph is not None else None

    @property
    def backend(self) -> str:
        """Name of the backend; ``recorded`` for a dump's kernels."""
        awaited = self._openings.awaited
        model = awaited.model if awaited is not None else self._model
        return "recorded" if model is not None and model.kernels_from else self._backend

    @property
    def ncnn_options(self) -> str:
        """Options of ncnn for models of its own format."""
        return self._ncnn_options

    @property
    def kernels_from(self) -> Path | None:
        """The dump whose kernels compute the model; None for a backend."""
        return self._opened.kernels_from if self._opened is not None else None

    @property
    def kernels_text(self) -> str:
        """The dump's kernels by backend, ``3 by onnxruntime, 8 by numpy``; ``""`` for none."""
        return self._opened.kernels_text if self._opened is not None else ""

    def pinned_kernel(self, operator: str) -> str:
        """Return the kernel of an operator in the dump; ``""`` for none."""
        return self._opened.pinned_kernel(operator) if self._opened is not None else ""

    def describe_kernel(self, kernel: str) -> str:
        """Describe a kernel by its name."""
        return self._opened.describe_kernel(kernel) if self._opened is not None else kernel

    @property
    def seed(self) -> int:
        """The random seed."""
        return self._snapshot.seed

    def random_text(self, operator: str) -> str:
        """``random, seed 7``; ``""`` for an operator that draws no random numbers."""
        if self._graph is None:
            return ""
        record = self.record(operator)
        if record is not None and record.status is OperatorStatus.EXECUTED:
            return f"random, seed {record.seed}" if record.random else ""
        return f"random, seed {self.seed}" if self._graph.operator(operator).random else ""

    @property
    def state(self) -> RunState:
        """The shown run state."""
        return self._snapshot.state

    @property
    def busy(self) -> bool:
        """Whether the engine has a request to answer."""
        return self._requests.are_pending

    @property
    def is_stepping(self) -> bool:
        """Whether only single steps are pending, so that more steps may be queued."""
        return self.state is RunState.RUNNING and all(
            request.steps == 1
            if isinstance(request, RunRequest)
            else isinstance(request, _SHORT)
            for _, request in self._requests.pending()
        )

    @property
    def position(self) -> int:
        """Index of the operator that runs next; the number of operators at the end."""
        return self._snapshot.position

    @property
    def current(self) -> RuntimeOperator | None:
        """The next operator, or the failed one."""
        if self._graph is None or self.position >= len(self._graph.operators):
            return None
        return self._graph.operators[self.position]

    def is_current(self, operator: str) -> bool:
        """Whether an operator runs next."""
        current = self.current
        return current is not None and current.name == operator

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
        return self._inputs.sources

    @property
    def input_shapes(self) -> InputShapes:
        """The sizes that the user has set."""
        return self._inputs.shapes

    @property
    def fed_shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Shapes of the current inputs, by operand name; empty if nothing is fed."""
        return self._snapshot.fed

    @property
    def supplied(self) -> Mapping[str, str]:
        """Sources of overridden operands, by name."""
        return self._snapshot.supplied

    def supplied_text(self, operator: str) -> str:
        """Sources of an operator's overridden outputs; ``""`` if none is overridden."""
        supplied = self.supplied
        if self._graph is None or not supplied:
            return ""
        names = (operand.name for operand in self._graph.operator(operator).outputs)
        sources = dict.fromkeys(supplied[n] for n in names if n in supplied)
        return f"supplied from {', '.join(Path(s).name for s in sources)}" if sources else ""

    @property
    def image_options(self) -> ImageOptions:
        """The preprocessing of pictures."""
        return self._inputs.options

    @property
    def breakpoints(self) -> frozenset[str]:
        """Names of operators before which a run stops."""
        return self._snapshot.breakpoints

    @property
    def failure(self) -> Failure | None:
        """The last failure, unless it was dismissed."""
        return self._failure

    @property
    def export_faults(self) -> tuple[FaultNote, ...]:
        """Faults of the export that the model's file shows; found soon after it is open."""
        return self._export_faults

    @property
    def files_notice(self) -> FilesNotice | None:
        """The notice of changed files of the open model, unless it was dismissed."""
        return self._notice

    @property
    def progress(self) -> Progress | None:
        """Progress of long work."""
        return self._progress

    @property
    def costs(self) -> CostTable:
        """Costs of the operators, at the sizes of their last run."""
        if self._costs is None:
            self._costs = CostTable(self._graph.operators if self._graph is not None else ())
            self._note_costs(self._snapshot.records)
        return self._costs

    def record(self, operator: str) -> Record | None:
        """Record of an operator in the current pass."""
        if self._graph is None or not operator:
            return None
        return self._record_at(self._graph.operator(operator).index)

    def status(self, operator: str) -> OperatorStatus:
        """Status of an operator; UNSUPPORTED is known before the run reaches it."""
        if self._graph is None:
            return OperatorStatus.PENDING
        found = self._graph.operator(operator)
        record = self._record_at(found.index)
        if record is not None:
            return record.status
        if found.error is None:
            return OperatorStatus.PENDING
        outputs = found.outputs
        if outputs and all(operand.name in self.supplied for operand in outputs):
            return OperatorStatus.PENDING
        return OperatorStatus.UNSUPPORTED

    def why_not_run(self, operator: str) -> str:
        """Why an operator has no outputs, without its name; ``""`` if it ran or may run."""
        if self._graph is None:
            return ""
        found, record = self._graph.operator(operator), self.record(operator)
        reason = (record.reason if record is not None else "") or found.reason
        return without_name(reason, found.name, found.type)

    @property
    def skipped(self) -> int:
        """Number of skipped operators: without a layer, or blocked."""
        return self._snapshot.records.skipped

    def holds_nonfinite(self, operator: str) -> bool:
        """Return whether an output of an operator is known to have NaN or Inf."""
        record = self.record(operator)
        if record is None:
            return False
        seen = any(map(self.tensors.is_nonfinite, record.outputs))
        return seen or record.index in self.measuring.nonfinite

    @property
    def nonfinite(self) -> frozenset[int]:
        """Indexes of the operators with an output that is known to have NaN or Inf."""
        if self._graph is None:
            return frozenset()
        found = (self._graph.operand(name).producer for name in self.tensors.nonfinite)
        seen = frozenset(producer.index for producer in found if producer is not None)
        return seen | self.measuring.nonfinite

    def is_evicted(self, operand: str) -> bool:
        """Return whether a value was evicted; it is recomputed when it is shown."""
        return operand in self._snapshot.evicted and not self.tensors.at_hand(operand)

    def why_dropped(self, operand: str) -> str:
        """Describe why the value of an operand is not resident; ``""`` if it is."""
        tensors = self.tensors
        if tensors.at_hand(operand):
            return ""
        what = tensors.why_not(operand)
        if not (what or tensors.is_recomputed(operand)):
            return ""
        limit = f" of {format_exact_bytes(self.memory.limit)}" if self.memory.limit else ""
        what = what or (
            "It will be computed again when the run has stopped."
            if self.busy
            else "It is being computed again."
        )
        return f"It was dropped to stay within the memory limit{limit}. {what}"

    # The engine

    @property
    def engine_pid(self) -> int | None:
        """Id of the engine's process; None if the engine is a thread."""
        return self._client.pid

    def fetch(self, operand: str) -> Value:
        """Wait for the value of an operand; see `Tensors.fetch`."""
        return self.tensors.fetch(operand)

    def wait_idle(self, seconds: float = 30.0) -> bool:
        """Handle events until no work is pending; return False on timeout."""
        deadline = QDeadlineTimer(round(seconds * 1000))
        waker = QTimer(interval=_WAKE_MS)
        waker.start()
        while self.busy and not deadline.hasExpired():
            # Sleep between events, so that the engine's thread gets the interpreter.
            QCoreApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
        return not self.busy

    # Selection

    def select(self, operator: str) -> None:
        """Select an operator and show its output; silent when nothing changes.

        Raises
        ------
        UnknownNameError
            If the graph has no such operator; then nothing changes.
        """
        if operator == self._selected:
            return
        # Before any view hears of it: each would fail where nobody catches it.
        named = self._graph.operator(operator) if self._graph is not None and operator else None
        self.explaining.stay()
        self._selected = operator
        self.selection_changed.emit(operator)
        if named is not None:
            self._show_operand_of(named)

    def show_operand(self, operand: str) -> None:
        """Show an operand as a tensor; silent when nothing changes.

        Raises
        ------
        UnknownNameError
            If the graph has no such operand; then nothing changes.
        """
        if self._graph is not None and operand:
            self._graph.operand(operand)
        if self.tensors.try_again(operand) or operand != self._operand:
            self._operand = operand
            self.operand_changed.emit(operand)

    def find_next(self) -> None:
        """Select the next operator that the user looks for; after the last the first."""
        self._select_at(self.finding.after(self._selected_index(-1)))

    def find_previous(self) -> None:
        """Select the one before; before the first the last."""
        self._select_at(self.finding.before(self._selected_index(0)))

    def _selected_index(self, default: int) -> int:
        if self._graph is None or not self._selected:
            return default
        return self._graph.operator(self._selected).index

    def _select_at(self, index: int) -> None:
        if self._graph is not None and index >= 0:
            self.select(self._graph.operators[index].name)

    def explain(self, operand: str, index: tuple[int, ...]) -> None:
        """Ask where an element comes from, select what produces its operand, and show it."""
        self.explaining.catch_up()
        producer = self._graph.operand(operand).producer if self._graph is not None else None
        if producer is not None and (producer.name, operand) != (self._selected, self._operand):
            self.explaining.show_ahead(operand, index)
        elif producer is not None:
            self.explaining.show(operand, index)

    @Slot(object)
    def _on_followed(self, place: Place) -> None:
        if self.show_producer(place.operand):
            self.explaining.moved.emit(place)

    def trace(self, operand: str, index: tuple[int, ...]) -> None:
        """Select what produces an operand, show it, and follow the place of an element."""
        if self.show_producer(operand):
            self.tracing.show(operand, index)

    def show_producer(self, operand: str) -> bool:
        """Select what produces an operand, and show it; return whether anything does."""
        producer = self._graph.operand(operand).producer if self._graph is not None else None
        if producer is None:
            return False
        self.select(producer.name)
        self.show_operand(operand)
        return True

    def dismiss_files_notice(self) -> None:
        """Hide the banner of changed files until they change again."""
        self._set_notice(None)

    def dismiss_failure(self) -> None:
        """Dismiss the failure and its banner."""
        self._failure = None

    # Updates

    @Slot()
    def _on_graph_shown(self) -> None:
        self.measuring.reset(len(self._graph.operators) if self._graph is not None else 0)
        self._costs = None
        self.finding.reset()
        self.overlaying.reset()
        self.bookmarks.reset()
        self.undoing.reset()

    @Slot()
    @Slot(object)
    def _on_values_dropped(self, _operator: str = "") -> None:
        self.measuring.follow(self._snapshot.records[:], anew=True)

    @Slot(object)
    def _note_costs(self, records: Iterable[Record]) -> None:
        if self._costs is not None:
            for record in records:
                self._costs.note(record, self.tensors)

    @Slot()
    def _on_state_shown(self) -> None:
        if self.state is not RunState.RUNNING:
            self.finding.refresh()

    @Slot()
    def _on_changed(self) -> None:
        if self._is_replying:
            self._is_unsettled = True
        else:
            self.settled.emit()

    @contextmanager
    def _replying(self) -> Iterator[None]:
        """Emit `settled` at the end of the block, if anything changed."""
        self._is_replying = True
        try:
            yield
        finally:
            self._is_replying = False
            if self._is_unsettled:
                self._is_unsettled = False
                self.settled.emit()

    def _tell(self, told: Snapshot) -> None:
        """Set the state that the engine or the user reports."""
        self._told = told
        self._refresh()

    def _refresh(self) -> None:
        """Make the snapshot and emit a signal for each change."""
        before = self._snapshot
        asked = [r.seed for _, r in self._requests.pending() if isinstance(r, ReseedRequest)]
        seed = asked[-1] if asked else self._told.seed
        after = self._snapshot = replace(self._told, state=self._state_shown(), seed=seed)
        if not self.busy and not self.tensors.recalling:
            self._set_progress(None)
        if after.seed != before.seed:
            self.workspace.log("info", f"random seed {after.seed}")
            self.seed_changed.emit()
        if after.supplied != before.supplied:
            self.supplies_changed.emit()
        if after.fed != before.fed:
            self.inputs_changed.emit()
        if (after.seed, after.supplied) != (before.seed, before.supplied):
            self._forget_studies()  # they are of other values
        if after.breakpoints != before.breakpoints:
            self.breakpoints_changed.emit()
        if after.state is not before.state:
            self._tell_state()
            if after.state is RunState.FINISHED:
                self._want_results()

    def _forget_studies(self) -> None:
        """Forget what was found out about the present values."""
        self.channel_totals.forget()
        self.comparing.clear()
        self.precision.show(())

    def _want_results(self) -> None:
        """Fetch summaries of the model's outputs, to mark NaN and Inf."""
        if self._graph is not None:
            for operand in self._graph.output_operands:
                self.tensors.want(operand.name)

    def _tell_state(self) -> None:
        self._long_step.stop()
        if self.state is RunState.RUNNING:
            self._long_step.start()
        else:
            self.state_changed.emit()

    def _state_shown(self) -> RunState:
        """Return the run state of the last reply, or of pending requests."""
        feeds = False
        for run_id, request in self._requests.pending():
            if isinstance(request, RunRequest) and not self._requests.is_cancelled(run_id):
                return RunState.RUNNING
            if isinstance(request, OpenRequest):
                if self._graph is None:
                    return RunState.LOADING
                if self._openings.is_awaited(run_id):
                    continue
                feeds = True
                if request.plan.place is not None and not self._requests.is_cancelled(run_id):
                    return RunState.RUNNING
            feeds = feeds or isinstance(request, (FeedRequest, RestartRequest))
        if feeds and self._graph is not None:
            fed = self._inputs.suffice(self._graph)
            return RunState.READY if fed else RunState.NEED_INPUT
        return self._told.state

    def _record_at(self, index: int) -> Record | None:
        records = self._snapshot.records
        return records[index] if index < len(records) else None

    def _outputs_with(self, operand: str) -> Outputs | None:
        """Return the outputs of the current pass that contain an operand."""
        if self._graph is None:
            return None
        found = self._graph.operands.get(operand)
        if found is None or found.producer is None:
            return None
        record = self._record_at(found.producer.index)
        return record.outputs if record is not None and operand in record.outputs else None

    def _report(self, failure: Failure, *, stays: bool = True) -> None:
        """Log and show a failure; until it is dismissed if it `stays`."""
        if stays:
            self._failure = failure
        self.workspace.log("error", failure.reason)
        self.failed.emit(failure)

    def _set_notice(self, notice: FilesNotice | None) -> None:
        if notice != self._notice:
            self._notice = notice
            self.files_changed.emit()

    def _set_progress(self, progress: Progress | None) -> None:
        if progress != self._progress:
            self._progress = progress
            self.progress_changed.emit(progress)

    def _show_operand_of(self, operator: RuntimeOperator) -> None:
        """Show the first output, or the first input of an operator without outputs."""
        shown = [o.name for o in operator.outputs] or [o.name for o in operator.inputs]
        if shown:
            self.show_operand(shown[0])

    def _follow(self, index: int) -> None:
        """Select the next operator and show the last computed output."""
        if self._graph is None:
            return
        last = self._graph.operators[index]
        following = self.current or last
        if following.name != self._selected:
            self._selected = following.name
            self.selection_changed.emit(following.name)
        self._show_operand_of(last)
