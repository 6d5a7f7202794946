"""StudioSession: the only way to change what the window shows."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Slot

from engine.collector import collector_paused
from engine.conversion.source_inputs import SourceInput
from engine.errors import (
    ConversionCancelledError,
    ConversionError,
    OpenShapeError,
    OpenSourceError,
    SessionStateError,
)
from engine.file_versions import FileVersion
from engine.inputs import ImageOptions, InputSource, spread_source
from engine.states import OperatorStatus
from engine.text import format_count
from kuiper_studio.engine_service.plans import ResolvedPlan, resolve
from kuiper_studio.engine_service.protocol import (
    Answer,
    CloseRequest,
    Compared,
    Done,
    Evicted,
    ExportRequest,
    Extracted,
    FaultsFound,
    FeedRequest,
    LayersLoaded,
    LoadLayersRequest,
    Model,
    NotesRead,
    Opened,
    OpenRequest,
    OtherRun,
    Progress,
    ReseedRequest,
    RestartRequest,
    RunRequest,
    SelfChecked,
    Simulated,
    StepBackRequest,
    Stepped,
    Supply,
    SupplyRequest,
    Tuned,
    UnloadLayersRequest,
    WeightsKept,
    WithdrawRequest,
    WorkFailed,
)
from kuiper_studio.engine_service.transport import default_engine
from kuiper_studio.session.client import EngineClient
from kuiper_studio.session.events import Failure, RunState
from kuiper_studio.session.failures import (
    describe_failure,
    describe_missing_weights,
    describe_opening,
    describe_passed_by,
    describe_supply,
    dump_name,
)
from kuiper_studio.session.file_watch import FileWatch
from kuiper_studio.session.losses import Losses, blame
from kuiper_studio.session.model_inputs import ModelInputs
from kuiper_studio.session.next_model import NextModel
from kuiper_studio.session.opened_model import OpenedModel
from kuiper_studio.session.opening import (
    Looks,
    Opening,
    SizesQuestion,
    make_notice,
    tell_changed_inputs,
)
from kuiper_studio.session.opening_log import describe_opened, describe_unsupported
from kuiper_studio.session.reopening import opening_as_shown
from kuiper_studio.session.snapshot import Snapshot, advance
from kuiper_studio.session.studies import Studies
from kuiper_studio.session.view import SessionView

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from PySide6.QtCore import QObject

    from engine.conversion.records import ConversionOptions
    from engine.dump import DumpOptions
    from engine.runtime import RuntimeGraph
    from engine.shapes import InputShapes
    from kuiper_studio.engine_service.protocol import Request
    from kuiper_studio.engine_service.transport import EngineKind, EngineLost
    from kuiper_studio.session.file_watch import FileChange
    from kuiper_studio.session.snapshot import Reply

__all__ = ["StudioSession"]

_LISTED: Final = 50  # of what may be as many as there are operators
_MOST_STEPS: Final = 32  # that wait for each other
_RUNNABLE: Final = frozenset({RunState.READY, RunState.STOPPED})


class StudioSession(SessionView):
    """The one source of truth for the views.

    It sends requests to the engine and turns replies into a `Snapshot`. Requests are carried
    out in order; those sent while the engine is busy wait.

    Lives on the GUI thread; call every method there. Call `close` at the end: it ends the
    engine.

    Parameters
    ----------
    backend : str
        The initial backend.
    engine : {"process", "thread"}, optional
        Where the engine runs; in a process of its own by default.

    Attributes
    ----------
    studies : Studies
        Self-checks, comparisons, reproducers and simulations.
    next_model : NextModel
        What is set ahead for the model that is opened next.
    """

    def __init__(
        self,
        parent: QObject | None = None,
        backend: str = "auto",
        engine: EngineKind | None = None,
    ) -> None:
        super().__init__(EngineClient(engine or default_engine()), backend, parent)
        self.studies = Studies(
            self._begin,
            lambda: self._graph,
            self.comparing,
            self.precision,
            self.workspace,
            self,
        )
        self._losses = Losses()
        self.next_model = NextModel()
        self._connect()

    # Opening and closing

    def open(
        self,
        path: str | Path,
        bin_path: str | Path | None = None,
        kernels_from: str | Path | None = None,
        conversion: ConversionOptions | None = None,
    ) -> None:
        """Open a model; the present one stays until that worked.

        Parameters
        ----------
        path : path
            Either file of a pair, or a TorchScript or ONNX file.
        bin_path : path, optional
        kernels_from : path, optional
            A dump; it is computed as in `use_kernels_of`.
        conversion : ConversionOptions, optional
            Sizes for a conversion. By default those that the file leaves open are asked for;
            see `sizes_needed`.
        """
        bin_, dump = (Path(p) if p is not None else None for p in (bin_path, kernels_from))
        plan, looks = self.next_model.take()
        model = Model(Path(path), bin_, self._backend, dump, conversion, self._ncnn_options)
        self._ask_for(Opening(model, plan, looks, takes_seed=dump is not None))

    def open_with_sizes(self, question: SizesQuestion, conversion: ConversionOptions) -> None:
        """Open what was asked for before, now with sizes for its conversion."""
        opening = question.opening
        self._ask_for(replace(opening, model=replace(opening.model, conversion=conversion)))

    def reload(self) -> None:
        """Run the layer files and reload the open model.

        Inputs, overrides and breakpoints stay as far as they fit, and the model runs to its
        previous position.
        """
        opening = self._openings.awaited or self._as_it_is(with_place=True)
        if opening is None:
            return
        files = self._layer_paths()
        if files:
            self._load_layers(files, opening)
        else:
            self._ask_for(opening)

    def use_weights(self, bin_path: str | Path) -> None:
        """Reload the open model with another ``.bin``; inputs and overrides stay."""
        opening = self._openings.awaited or self._as_it_is()
        if opening is not None:
            model = replace(opening.model, bin=Path(bin_path))
            self._ask_for(replace(opening, model=model))

    def close_model(self) -> None:
        """Close the model, or cancel opening one; cancel pending work."""
        self._client.drop_spare()
        self._requests.close_model()
        self._openings.forget()
        self.next_model.clear()
        self._told = Snapshot(seed=self._told.seed)
        self._set_progress(None)
        self.workspace.set_labels(())
        self._adopt(None, ModelInputs(options=self._inputs.options))
        self._refresh()
        self.backend_changed.emit()

    def set_backend(self, name: str) -> None:
        """Set the backend, also instead of the kernels of a dump; reloads the model."""
        if name != self.backend:
            self._backend = name
            self._reopen(None)
            self.backend_changed.emit()

    def set_ncnn_options(self, options: str) -> None:
        """Compute models of ncnn's own format with these options; such a one is opened anew.

        Parameters
        ----------
        options : str
            See `engine.ncnn.options`.
        """
        if options != self._ncnn_options:
            self._ncnn_options = options
            if self._graph is not None and self._graph.file.format == "ncnn":
                self._reopen(None)

    def use_kernels_of(self, dump: str | Path) -> None:
        """Use the kernels and the seed of a dump, to reproduce its numbers.

        Reloads the model; inputs stay. This applies to the open model until another backend is
        chosen. If it fails, nothing changes.
        """
        self._reopen(Path(dump))

    def forget_kernels(self) -> None:
        """Use the backend from before `use_kernels_of` again; reloads the model."""
        self.set_backend(self._backend)

    def set_seed(self, seed: int) -> None:
        """Set the random seed; silent when nothing changes.

        The results of the first random operator, and of all operators after it, are dropped.
        """
        awaited = self._openings.awaited
        if seed == self.seed and not (awaited is not None and awaited.takes_seed):
            return
        if self._graph is not None or awaited is not None:
            if awaited is None:
                self._requests.cancel()
            self._ask(lambda run_id: ReseedRequest(run_id, seed))
        else:
            self._tell(replace(self._told, seed=seed))

    # Layer files

    def load_layers(self, path: str | Path) -> None:
        """Run a layer file and reload the model with its layers; inputs stay."""
        self._load_layers((Path(path),), None)

    def unload_layers(self) -> None:
        """Unload all layer files and reload the model; inputs stay."""
        opening = self._openings.awaited or self._as_it_is()
        if self._client.is_process:
            self._restart_engine()  # a fresh interpreter, without side effects of the files
        else:
            self._requests.ask(UnloadLayersRequest)
        self.workspace.log("info", "your own layers are unloaded")
        self.workspace.set_layer_files(())
        if opening is not None:
            self._ask_for(opening)

    # Inputs

    def set_inputs(
        self,
        sources: Mapping[str, InputSource],
        options: ImageOptions | None = None,
    ) -> None:
        """Set the inputs and go to the start.

        Parameters
        ----------
        sources : mapping of str to InputSource
            By operand name; other inputs keep their sources.
        options : ImageOptions, optional
            For pictures; unchanged by default.
        """
        if options is not None:
            self._inputs.options = options
        self._inputs.sources = {**self._inputs.sources, **sources}
        self._watch_inputs()
        self.inputs_changed.emit()
        self._feed()

    def set_source_list(self, sources: Sequence[InputSource]) -> None:
        """Set the inputs in order; a single ``.npz``, random or constant is used for all."""
        if self._graph is not None and sources:
            wanted = [operand.name for operand in self._graph.input_operands]
            self.set_inputs(
                dict(zip(wanted, spread_source(sources, len(wanted)), strict=False))
            )

    def set_shapes(self, shapes: InputShapes) -> None:
        """Set the sizes of the inputs and go to the start; silent when nothing changes."""
        if shapes != self._inputs.shapes:
            self._inputs.shapes = shapes
            self.inputs_changed.emit()
            self._feed()

    # Overrides

    def supply(self, operator: str, source: InputSource) -> None:
        """Override the outputs of an operator by a file, and continue after it.

        This also works for an operator that can run. Values downstream are dropped. The
        override stays until it is cleared or another input is set.

        Parameters
        ----------
        operator : str
        source : InputSource
            An ``.npy``, or an ``.npz`` with an array per output.
        """
        if self._graph is None or self.busy or not self.can_supply(operator):
            return
        outputs = self._graph.operator(operator).outputs
        supply = Supply(tuple(operand.name for operand in outputs), source)
        self._set_progress(Progress(f"Reading {Path(source.text).name}"))
        self._ask(lambda run_id: SupplyRequest(run_id, supply, steps_over=True))

    def can_supply(self, operator: str) -> bool:
        """Return whether the outputs of an operator can be overridden."""
        if self._graph is None or not operator:
            return False
        found = self._graph.operator(operator)
        return bool(found.outputs) and not found.is_input

    def withdraw(self, operator: str) -> None:
        """Clear the override of an operator's outputs."""
        if self._graph is None or self.busy:
            return
        outputs = tuple(operand.name for operand in self._graph.operator(operator).outputs)
        self._ask(lambda run_id: WithdrawRequest(run_id, outputs))

    # Running

    def step(self) -> None:
        """Run one operator, after pending steps; ignored if too many are pending."""
        if not self.is_stepping or sum(1 for _ in self._requests.pending()) < _MOST_STEPS:
            self._run(steps=1)

    def resume(self) -> None:
        """Run to the next breakpoint or the end."""
        self._run()

    def run_to(self, operator: str) -> None:
        """Run until an operator is next; from the start if it has already run."""
        if self._graph is None:
            return
        if self._graph.operator(operator).index < self.position:
            self.restart()
        self._run(until=operator)

    def step_back(self) -> None:
        """Undo the last step, or the failed one; other operators keep their values."""
        if self._graph is None or not (self.position or self.state is RunState.FAILED):
            return
        if self.state is not RunState.RUNNING:
            self._ask(StepBackRequest)

    def restart(self) -> None:
        """Go to the first operator; inputs stay."""
        if self._graph is None or self._openings.awaited is not None:
            return
        self._requests.cancel()
        self._ask(RestartRequest)

    def stop(self) -> None:
        """Stop a run between operators, or cancel an export; when idle go to the start.

        If the work does not end, kill and restart the engine.
        """
        if self.busy:
            self._requests.stop()
        elif self.tensors.recalling:
            self.tensors.cancel()
            self._set_progress(None)
        elif self._snapshot.records:
            self.restart()

    def toggle_breakpoint(self, operator: str) -> None:
        """Set or clear a breakpoint."""
        if self._graph is not None and operator:
            name = self._graph.operator(operator).name
            change = "cleared" if name in self.breakpoints else "set"
            self._change_breakpoints(
                f"breakpoint of {name} {change}", self.breakpoints ^ {name}
            )

    def clear_breakpoints(self) -> None:
        """Clear all breakpoints; silent when there are none."""
        if self.breakpoints:
            count = format_count(len(self.breakpoints), "breakpoint")
            self._change_breakpoints(f"{count} deleted", frozenset())

    def _change_breakpoints(self, change: str, names: frozenset[str]) -> None:
        self.undoing.note(change, partial(self._set_breakpoints, self.breakpoints))
        self._set_breakpoints(names)

    def _set_breakpoints(self, names: frozenset[str]) -> None:
        self._tell(replace(self._told, breakpoints=names))

    def export_dump(self, path: str | Path, options: DumpOptions) -> None:
        """Write a dump of the computed values."""
        self._begin(
            Progress(f"Exporting to {Path(path).name}"),
            lambda run_id: ExportRequest(run_id, Path(path), options),
        )

    def other_run(
        self, backend: str, seed: int, sources: Sequence[InputSource] = ()
    ) -> OtherRun:
        """Describe another run of the model, to compare with; see `Studies.compare`.

        Parameters
        ----------
        backend : str
        seed : int
        sources : sequence of InputSource, optional
            In the order of the inputs; the present inputs when not given.
        """
        return OtherRun(backend, seed, self._inputs.plan(sources) if sources else None)

    def close(self) -> None:
        """End the engine. The session cannot be used afterwards."""
        self.sweeping.close()
        self._requests.forget_overdue()
        self.tensors.forget()
        self._files.watch(())
        self._input_files.watch(())
        self._client.close()

    # Requests

    def _connect(self) -> None:
        self._requests.overdue.connect(self._on_overdue)
        self._files = FileWatch(self)
        self._files.changed.connect(self._on_files_changed)
        self._input_files = FileWatch(self)
        self._input_files.changed.connect(self._on_input_files_changed)
        self._client.received.connect(self._on_received)
        self._client.lost.connect(self._on_lost)
        self._client.spare_lost.connect(self._on_spare_lost)
        self._handlers: dict[type, Callable[..., None]] = {
            Opened: self._on_opened,
            Stepped: self._on_stepped,
            Done: self._on_done,
            LayersLoaded: self._on_layers_loaded,
            SelfChecked: self._on_studied,
            Compared: self._on_studied,
            Extracted: self._on_studied,
            Simulated: self._on_studied,
            WorkFailed: self._on_failed,
            WeightsKept: self._on_weights_kept,
            Tuned: self._on_tuned,
            NotesRead: self._on_notes_read,
            FaultsFound: self._on_faults_found,
            Evicted: self._on_evicted,
            Answer: self._on_answered,
            Progress: self._on_progressed,
        }

    def _ask(self, make_request: Callable[[int], Request]) -> int:
        run_id = self._requests.ask(make_request)
        self._refresh()
        return run_id

    def _begin(self, progress: Progress, make_request: Callable[[int], Request]) -> None:
        """Send a request with the progress of its work, unless the engine is busy."""
        if self._graph is not None and not self.busy:
            self._set_progress(progress)
            self._ask(make_request)

    def _run(self, steps: int | None = None, until: str | None = None) -> None:
        if self.state is RunState.NEED_INPUT and not self.busy:
            self.input_needed.emit()
        if self._graph is None or not (self.state in _RUNNABLE or self.is_stepping):
            return
        self._failure = None
        breakpoints = self.breakpoints
        self._ask(lambda run_id: RunRequest(run_id, steps, until, breakpoints))

    def _feed(self) -> None:
        graph = self._graph
        if graph is None or not graph.input_operands or not self._inputs.suffice(graph):
            return
        self._requests.cancel()
        plan = self._inputs.plan(self._inputs.sources_of(graph))
        self._set_progress(Progress("Reading inputs"))
        self._ask(lambda run_id: FeedRequest(run_id, plan))

    # Opening

    def _ask_for(self, opening: Opening) -> None:
        """Request to open a model; replaces earlier requests that have not begun."""
        self._set_progress(Progress(f"Opening {opening.model.path.name}"))
        self._openings.ask_for(opening, self._inputs.options, self.seed)
        self._refresh()

    def _load_layers(self, paths: tuple[Path, ...], opening: Opening | None) -> None:
        """Run layer files, and open a model if that succeeds."""
        names = ", ".join(path.name for path in paths)
        self._set_progress(Progress(f"Loading layers of {names}"))
        self._openings.load_layers(paths, self._layer_paths(), opening)
        self._refresh()

    def _layer_paths(self) -> tuple[Path, ...]:
        return tuple(file.path for file in self.workspace.layer_files)

    def _reopen(self, kernels_from: Path | None) -> None:
        """Reload the model with the kernels of a dump or with the backend."""
        opening = self._openings.awaited or self._as_it_is()
        if opening is not None:
            model = replace(
                opening.model,
                backend=self._backend,
                kernels_from=kernels_from,
                ncnn_options=self._ncnn_options,
            )
            takes_seed = kernels_from is not None
            self._ask_for(replace(opening, model=model, takes_seed=takes_seed))

    def _as_it_is(self, *, with_place: bool = False) -> Opening | None:
        """Return the open model with all that belongs to it; None if there is none."""
        if self._opened is None:
            return None
        pending = [request for _, request in self._requests.pending()]
        return opening_as_shown(
            self, self._opened, self._inputs, pending, with_place=with_place
        )

    def _adopt(self, opened: OpenedModel | None, inputs: ModelInputs) -> None:
        """Show another model, or none."""
        self._forget_studies()  # while the views still show their model
        self.sweeping.forget()
        self._opened = opened
        self._files.watch(opened.graph.versions if opened is not None else ())
        self._set_notice(None)
        self._failure = None
        self._export_faults = ()
        self._inputs = inputs
        self._watch_inputs()
        self._selected = self._operand = ""
        self.tensors.forget()
        self.explaining.clear()
        self.tracing.clear()
        self.aligning.clear()
        self._snapshot = replace(self._told, seed=self.seed)
        self._long_step.stop()
        self.graph_changed.emit()
        self.selection_changed.emit("")
        self.operand_changed.emit("")
        self.state_changed.emit()

    # Replies of the engine

    @Slot(object, object)
    def _on_received(self, reply: object, request: Request | None) -> None:
        handle = self._handlers[type(reply)]
        with self._replying():
            if request is None:
                handle(reply)
            else:
                handle(reply, request)

    def _on_opened(self, answer: Opened, request: OpenRequest) -> None:
        opening = self._openings.take(answer.run_id)
        if opening is None:
            return  # nobody waits for it
        before = self.kernels_from
        opened = OpenedModel(opening.model, answer, self._client)
        graph = opened.graph
        plan = self._fed_soon(graph, resolve(graph, request.plan))
        names = {operator.name for operator in graph.operators}
        breakpoints = opening.looks.breakpoints & names
        self._told = replace(advance(self._told, answer), breakpoints=breakpoints)
        with collector_paused():  # views make objects for every operator and operand
            self._adopt(opened, ModelInputs(plan.inputs, plan.shapes, plan.options))
        self._log_opened(graph, answer.seconds, before)
        self.backend_changed.emit()
        self._look_at(graph, opening.looks)
        self.workspace.set_labels(opening.looks.labels)
        for name in sorted(opening.looks.breakpoints - names):
            text = f"the breakpoint at {name} is dropped: the operator is gone"
            self.workspace.log("warning", text)
        if breakpoints:
            self.breakpoints_changed.emit()
        for text in plan.dropped:
            self.workspace.log("warning", text)
        self.inputs_changed.emit()
        if plan.misfit is not None:
            title = "What was asked for does not fit the model"
            self._report(Failure(title, str(plan.misfit)))
        elif not graph.has_weights:
            self._report(describe_missing_weights(graph))
        if plan.inputs:
            self._set_progress(Progress("Reading inputs"))
        self._refresh()

    def _fed_soon(self, graph: RuntimeGraph, plan: ResolvedPlan) -> ResolvedPlan:
        """Return the plan with inputs that were set while the model was being opened."""
        for _, request in self._requests.pending():
            if isinstance(request, FeedRequest):
                later = resolve(graph, request.plan)
                if len(later.inputs) == len(graph.input_operands):
                    plan = plan._replace(
                        inputs=later.inputs, options=later.options, shapes=later.shapes
                    )
        return plan

    def _log_opened(self, graph: RuntimeGraph, seconds: float, before: Path | None) -> None:
        log = self.workspace.log
        log("info", describe_opened(graph, seconds))
        passed_over = self._opened.passed_over if self._opened is not None else None
        if passed_over is not None and graph.bin_path is not None:
            text = f"weights are of {graph.bin_path.name}; {passed_over.name} does not fit"
            self.workspace.announce(f"{text}: damaged, or of another model", "warning")
        for note in graph.conversion.notes if graph.conversion is not None else ():
            log("warning", note)
        if self.kernels_from is not None:
            log("info", f"kernels of {dump_name(self.kernels_from)}: {self.kernels_text}")
        elif before is not None:
            log("info", f"kernels of {dump_name(before)} are used no more")
        for text in describe_unsupported(graph)[:_LISTED]:
            log("warning", text)

    def _look_at(self, graph: RuntimeGraph, looks: Looks) -> None:
        """Restore the selection and the shown output, or select the first operator."""
        names = [operator.name for operator in graph.operators]
        if names:
            self.select(looks.selected if looks.selected in names else names[0])
        if looks.producer in names:
            outputs = graph.operator(looks.producer).outputs
            if looks.output < len(outputs):
                self.show_operand(outputs[looks.output].name)

    def _on_stepped(self, answer: Stepped, request: Request, end: Done | None = None) -> None:
        """Process executed steps, and with the last ones the end of the run."""
        if self._opened is None:
            return
        if isinstance(request, OpenRequest | FeedRequest):
            self._set_progress(None)  # the inputs have been read
        goes_back = len(self._told.records) > answer.records[0].index
        self._told = advance(self._told, answer)
        if goes_back:  # to an operator that was overridden
            self._failure = None
            self.values_reset.emit()
        self._opened.note_kernels(answer.records)
        for record in answer.records:
            if record.status is OperatorStatus.UNSUPPORTED:  # blocked ones follow from it
                self.workspace.log("warning", record.reason)
        if end is None:
            self._refresh()
        else:
            self._settle(end, request)
        for name, value in answer.values.items():
            self.tensors.put(name, value)
        self.stepped.emit(answer.records)
        self.position_changed.emit()
        if not isinstance(request, OpenRequest):
            self._follow(answer.records[-1].index)

    def _on_done(self, answer: Done, request: Request) -> None:
        if isinstance(request, CloseRequest):
            return
        self._openings.take(answer.run_id)  # a request that was skipped
        if isinstance(request, ReseedRequest):
            self._told = replace(self._told, seed=request.seed)
        if answer.status.generation != self._told.generation:
            self._refresh()  # a request to an engine without the model
            return
        if answer.stepped is not None:
            self._on_stepped(answer.stepped, request, answer)
        else:
            self._settle(answer, request)
        if answer.text:
            self.workspace.announce(answer.text)
        if isinstance(request, FeedRequest) or (
            isinstance(request, OpenRequest) and self._snapshot.fed
        ):
            self._log_fed()
        if isinstance(request, RunRequest) and self._losses.pending is None:
            self._losses.note_success()
        loss = None if self.busy else self._losses.take_pending()
        if loss is not None:
            self._failure = loss
            self.failed.emit(loss)
        if answer.passed_by and self._graph is not None:
            passed_by = [self._graph.operators[index] for index in answer.passed_by]
            self.failed.emit(describe_passed_by(passed_by, self._snapshot.records))

    def _log_fed(self) -> None:
        shown = self._inputs.describe(self._snapshot.fed)
        if shown:
            self.workspace.log("info", f"inputs: {shown}")

    def _settle(self, reply: Reply, request: Request) -> None:
        """Update the snapshot at the end of a request."""
        before = self._told
        self._told = advance(before, reply)
        dropped = len(before.records) - len(self._told.records)
        moved = before.position != self._told.position
        if dropped > 0:
            self._failure = None
            if not self._told.records:
                self.tensors.forget()
        elif isinstance(request, (FeedRequest, RestartRequest)):
            self._failure = None
        if isinstance(request, FeedRequest):
            self._forget_studies()
        if isinstance(request, FeedRequest) and before.supplied and not self._told.supplied:
            text = "supplied outputs were dropped: they belong to the input before"
            self.workspace.log("info", text)
        for name in self._told.supplied.keys() - before.supplied.keys():
            source = self._told.supplied[name]
            self.workspace.log("info", f"operand {name} is supplied from {source}")
        self._refresh()
        undone = self.current
        if isinstance(request, StepBackRequest) and dropped > 0 and undone is not None:
            self.stepped_back.emit(undone.name)
            self.position_changed.emit()
            self._follow(max(self.position - 1, 0))
        elif dropped > 0:
            self.values_reset.emit()
            self.position_changed.emit()
        elif moved:
            self.position_changed.emit()

    def _on_layers_loaded(self, answer: LayersLoaded, _: LoadLayersRequest) -> None:
        present = self._openings.awaited
        if self._client.adopt_spare():
            self.tensors.forget()
            self._openings.forget_asked()
        elif present is not None:
            present = None  # the same engine opens it afterwards
        opening = self._openings.take_after_layers(answer.run_id)
        for file in answer.files:
            registered = (*file.types, *file.readings)
            text = f"layers of {file.path.name}: {', '.join(registered)}"
            self.workspace.log("info", text)
        self.workspace.set_layer_files(answer.all)
        if self._openings.awaited is None:
            opening = present or opening or self._as_it_is()
            if opening is not None:
                self._ask_for(opening)
        self._refresh()

    def _on_studied(
        self, answer: SelfChecked | Compared | Extracted | Simulated, request: Request
    ) -> None:
        self._settle(answer, request)
        self.studies.take(answer, request)

    def _on_failed(self, answer: WorkFailed, request: Request) -> None:
        opening = self._openings.take(answer.run_id)
        if opening is not None:
            self._on_not_opened(answer, opening)
        elif isinstance(request, LoadLayersRequest):
            self._openings.take_after_layers(answer.run_id)
            self._client.drop_spare()
            self._refresh()
            self._report(describe_failure(self._graph, answer))
        else:
            self._on_work_failed(answer, request)

    def _on_not_opened(self, answer: WorkFailed, opening: Opening) -> None:
        """Report that a model cannot be opened; the open model stays."""
        error, model = answer.error, opening.model
        if isinstance(error, OpenSourceError):
            self._refresh()
            inputs = tuple(SourceInput(*given) for given in error.inputs)
            self.sizes_needed.emit(SizesQuestion(opening, inputs))
            return
        if isinstance(error, ConversionCancelledError):
            self._refresh()
            self.workspace.announce(f"{model.path.name} was not opened: {error}")
            return
        for line in error.log[-_LISTED:] if isinstance(error, ConversionError) else ():
            self.workspace.log("info", f"pnnx: {line}")
        is_same = self._model is not None and self._model.path == model.path
        if (
            model.kernels_from is not None
            and model == self._model
            and isinstance(error, SessionStateError)
        ):
            # The reloaded model changed: the kernels of the dump no longer fit.
            self.workspace.log("warning", str(error))
            text = f"the model has changed, and is computed by {self._backend} again"
            self.workspace.announce(text)
            model = replace(model, kernels_from=None)
            self._ask_for(self._openings.awaited or replace(opening, model=model))
            return
        self._refresh()
        is_open = self._graph is not None
        failure = describe_opening(error, model.kernels_from, is_open=is_open, again=is_same)
        if self._graph is not None and is_same:
            failure = replace(failure, lacks_weights=not self._graph.has_weights)
        if self._model is not None and self._openings.awaited is None:
            self._backend = self._model.backend
            self.backend_changed.emit()
        if is_open and answer.status.generation != self._told.generation:
            self._bring_back(failure, instead_of=model)
        else:
            self._report(failure)

    def _bring_back(self, failure: Failure, *, instead_of: Model) -> None:
        """Reopen the shown model: the engine was restarted for one that cannot be opened."""
        present = self._as_it_is(with_place=True)
        if self._openings.awaited is not None:
            self._report(failure)  # the next one may take its place
        elif present is None or present.model == instead_of:
            self._give_up(failure, opened=False)
        else:
            self._losses.pending = failure  # reported once the model is back at its position
            self._ask_for(replace(present, keeps_place=False))

    def _on_work_failed(self, answer: WorkFailed, request: Request) -> None:
        if answer.status.generation != self._told.generation:
            self._refresh()
            return
        asked_to_run = any(isinstance(r, RunRequest) for _, r in self._requests.pending())
        self._settle(answer, request)
        graph, record = self._graph, answer.record
        if graph is None:
            return
        if isinstance(answer.error, OpenShapeError):
            # Random inputs need known sizes; unknown sizes are not a failure.
            self.workspace.log("info", str(answer.error))
            if asked_to_run:
                self.input_needed.emit()
        elif answer.supply is not None:
            self._report(describe_supply(graph, answer.supply, answer.error), stays=False)
        else:
            if record is not None:
                self.stepped.emit((record,))
                self.position_changed.emit()
                failed = graph.operators[record.index]
                self._selected = failed.name
                self.selection_changed.emit(self._selected)
                self._show_operand_of(failed)
            self._report(describe_failure(graph, answer, request))

    def _on_weights_kept(self, answer: WeightsKept) -> None:
        if answer.generation == self._told.generation and self._opened is not None:
            self._opened.note_weights_kept()

    def _on_tuned(self, answer: Tuned) -> None:
        if answer.generation == self._told.generation:
            self.tuning.take(answer)

    def _on_notes_read(self, answer: NotesRead) -> None:
        if answer.generation == self._told.generation and self._opened is not None:
            self._opened.add_notes(answer.notes)
            self.notes_changed.emit()

    def _on_faults_found(self, answer: FaultsFound) -> None:
        if answer.generation != self._told.generation or self._graph is None:
            return
        self._export_faults = answer.faults
        for fault in answer.faults[:_LISTED]:
            self.workspace.log("warning" if fault.certain else "info", fault.sentence)
        self.export_faults_changed.emit()

    def _on_evicted(self, answer: Evicted) -> None:
        operand = self.tensors.note_evicted(answer)
        if operand:
            self.tensors.recalled.emit(operand)

    def _on_answered(self, answer: Answer) -> None:
        takers = (
            self.comparing.distances,
            self.channel_totals,
            self.explaining,
            self.tracing,
            self.aligning,
            self.measuring,
        )
        if any(taker.take(answer) for taker in takers):
            return
        if self.attentions.take(answer) or self.meanings.take(answer):
            if not self.busy and not self.tensors.recalling:
                self._set_progress(None)
            return
        compared = self.comparing.tensors.take(answer)
        if compared:
            self.comparing.tensors.recalled.emit(compared)
            return
        operand = self.tensors.take(answer)
        if not self.busy and not self.tensors.recalling:
            self._set_progress(None)
        if operand:
            if answer.reason:
                self.workspace.log("error", answer.reason)
            self.tensors.recalled.emit(operand)

    def _on_progressed(self, progress: Progress) -> None:
        looked_for = self.attentions.is_waiting or self.meanings.is_waiting
        if self.busy or self.tensors.recalling or looked_for:
            self._set_progress(progress)

    @Slot(object)
    def _on_files_changed(self, changes: tuple[FileChange, ...]) -> None:
        if self._opened is None or not changes:
            self._set_notice(None)
            return
        kept = self._opened.keeps_weights
        notice = make_notice(changes, datetime.now().astimezone(), kept=kept)
        self.workspace.log("warning", notice.title)
        self._set_notice(notice)

    def _watch_inputs(self) -> None:
        """Watch the files of the open model's inputs, as they are now."""
        graph = self._graph
        sources = self._inputs.sources_of(graph) if graph is not None else ()
        paths = dict.fromkeys(each.path for each in sources if each.path is not None)
        found = (FileVersion.of(path) for path in paths)
        self._input_files.watch(tuple(each for each in found if each is not None))

    @Slot(object)
    def _on_input_files_changed(self, changes: tuple[FileChange, ...]) -> None:
        told = tell_changed_inputs(changes)
        if told:
            self.workspace.announce(told, "warning")

    # End of the engine

    def _restart_engine(self) -> None:
        """Restart the engine, without model and layers."""
        self._requests.forget_overdue()
        self._openings.forget()
        for asked in (self.tensors, self.attentions, self.meanings):
            asked.forget()
        self._forget_studies()
        self._client.restart()

    @Slot()
    def _on_overdue(self) -> None:
        """Kill the engine, because stopped work did not end."""
        if self._client.is_process:
            self._losses.by_force = True
            self._client.kill()

    @Slot(object)
    def _on_lost(self, lost: EngineLost) -> None:
        """Restart the engine and run the model to its previous position."""
        stopped = self._losses.by_force
        failure = blame(self._graph, lost, self._requests.first, stopped=stopped)
        level = "warning" if stopped else "error"
        self.workspace.log(level, f"{failure.title}: {failure.reason}")
        opening = self._opening_after(failure, stopped=stopped)
        opened = self._openings.awaited is not None and self._graph is None
        layers = self._layer_paths()
        self._restart_engine()
        if self._losses.note(failure) and opening is not None:
            if opening.model != self._model:  # another model is being opened
                self._losses.take_pending()
            self.workspace.set_layer_files(())
            if layers:
                self._load_layers(layers, opening)
            else:
                self._ask_for(opening)
        elif self._graph is not None or opened or not stopped:
            self._give_up(failure, opened=opened)
        else:
            self._losses.take_pending()  # the model was closed
            self._refresh()

    def _opening_after(self, failure: Failure, *, stopped: bool) -> Opening | None:
        """Return what to open after a restart of the engine; None for nothing."""
        first = self._requests.first
        awaited = self._openings.awaited
        if stopped and awaited is not None and not isinstance(first, OpenRequest):
            return awaited  # its request was queued after the stopped one
        opening = self._as_it_is(with_place=True)
        if opening is None:
            return None
        place = failure.operator or opening.plan.place
        return replace(opening, plan=replace(opening.plan, place=place), keeps_place=False)

    @Slot(object)
    def _on_spare_lost(self, lost: EngineLost) -> None:
        """Report that layer files ended the interpreter that ran them."""
        reason = "it was stopped" if self._losses.by_force else lost.reason
        self._losses.by_force = False
        self._client.drop_spare()
        self._openings.forget_after_layers()
        self._refresh()
        text = f"the process that ran the files of layers ended: {reason}"
        self._report(Failure("The layers cannot be loaded", text))

    def _give_up(self, failure: Failure, *, opened: bool) -> None:
        """Leave the engine without a model, because the model ends it every time."""
        self._losses.take_pending()
        is_open = self._graph is not None
        state = RunState.FAILED if is_open else RunState.EMPTY
        self._told = Snapshot(self._told.generation, state, seed=self._told.seed)
        self._refresh()
        if is_open:
            self.values_reset.emit()
            self.position_changed.emit()
        title = "The model cannot be opened" if opened else failure.title
        hint = "Reload the model to try again." if is_open else ""
        self._report(replace(failure, title=title, hint=hint, reload=is_open))
