"""Carries out the commands of data sets: running them, opening results and their inputs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QObject, QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices

from engine.errors import EngineError, SweepError

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtCore import QSettings
    from PySide6.QtWidgets import QWidget

    from engine.inputs import InputSource
    from engine.runtime import RuntimeGraph
    from kuiper_studio.file_dialogs import FileDialogs
    from kuiper_studio.session import StudioSession

__all__ = ["SweepCommands"]

_INPUTS: Final = "dataset/inputs"
_OPENED: Final = "opened"  # folder of entries of an array that were opened as inputs
_FILES: Final = "Inputs (*.npy *.txt)"


class SweepCommands(QObject):
    """Asks for data sets, and opens their inputs.

    Parameters
    ----------
    session : StudioSession
    settings : QSettings
    dialogs : FileDialogs
    shown : callable
        Returns the operand of the tensor view, and its channel; None for no operand.
    window : QWidget
        Parent of the dialogs.

    Signals
    -------
    failed : (str, str)
        A title and the reason.
    started
        A run has begun, or results are shown.
    """

    failed = Signal(str, str)
    started = Signal()

    def __init__(
        self,
        session: StudioSession,
        settings: QSettings,
        dialogs: FileDialogs,
        shown: Callable[[], tuple[str, int | None] | None],
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._session, self._settings, self._dialogs = session, settings, dialogs
        self._shown, self._window = shown, window
        self._target = ""  # operator to run, when the input is there
        session.sweeping.failed.connect(self._on_failed)
        session.sweeping.changed.connect(self._on_changed)
        session.settled.connect(self._on_settled)

    @Slot()
    def ask(self) -> None:
        """Ask for a data set and run it, or open results."""
        from engine.datasets import has_extra
        from engine.threads import thread_count
        from kuiper_studio.dialogs.sweep_dialog import SweepDialog

        graph = self._session.graph
        if graph is None:
            return
        dialog = SweepDialog(
            str(self._settings.value(_INPUTS, "")),
            str(_default_output(graph)),
            thread_count() if has_extra() else 0,
            lambda title: self._dialogs.choose("dataset", title, _FILES),
            lambda title: self._dialogs.choose_folder("dataset", title),
            self._window,
        )
        if not dialog.exec():
            return
        if dialog.opened:
            self.open_results(dialog.opened)
            return
        inputs = dialog.inputs.text().strip()
        self._settings.setValue(_INPUTS, inputs)
        self.run(inputs, dialog.output.text().strip(), dialog.most_inputs, dialog.workers)

    def run(self, inputs: str, output: str, limit: int | None = None, workers: int = 0) -> None:
        """Run a data set as the open model is set up."""
        from kuiper_studio.engine_service.sweep_process import SweepJob

        session, graph = self._session, self._session.graph
        if graph is None or session.sweeping.is_running:
            return
        session.sweeping.run(
            SweepJob(
                str(graph.param_path.absolute()),
                inputs,
                output,
                limit,
                workers,
                session.image_options,
                session.input_shapes.texts,
                session.backend,
                session.ncnn_options,
                session.seed,
                session.memory.bound,
                tuple([str(each.path) for each in session.workspace.layer_files]),
            )
        )
        self.started.emit()

    def open_results(self, path: str | Path) -> None:
        """Show the results in a folder."""
        try:
            self._session.sweeping.open(path)
        except EngineError as exc:
            self.failed.emit("The results cannot be shown", str(exc))

    @Slot()
    def open_page(self) -> None:
        """Show the page of the results, which is written if it is not there."""
        from engine.datasets.page import PAGE, write_summary_page

        found = self._session.sweeping.found
        if found is None:
            return
        page = found.path / PAGE
        try:
            if not page.is_file():
                write_summary_page(found)
        except EngineError as exc:
            self.failed.emit("The page cannot be shown", str(exc))
            return
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(page.absolute())))

    @Slot(int)
    def open_input(self, index: int) -> None:
        """Open an input of the data set, and run to the operator that is shown."""
        from kuiper_studio.engine_service.sweep_process import image_options

        session, found = self._session, self._session.sweeping.found
        graph, shown = session.graph, self._shown()
        if found is None or graph is None:
            return
        try:
            source = _source_of(found.path, graph, index, self._read(index))
            options = image_options(found.options.get("images") or {})
        except (EngineError, OSError, TypeError) as exc:
            self.failed.emit("The input cannot be opened", str(exc))
            return
        wanted = [operand.name for operand in graph.input_operands]
        session.set_inputs(dict.fromkeys(wanted, source), options)
        producer = graph.operand(shown[0]).producer if shown is not None else None
        # Not before the input is there: a run is refused until then.
        self._target = producer.name if producer is not None else ""

    def _read(self, index: int) -> object:
        from engine.datasets.inputs import InputReader

        found = self._session.sweeping.found
        assert found is not None  # noqa: S101 - the caller looked
        with InputReader(found.inputs.set) as reader:
            return reader.entry(index)

    @Slot()
    def _on_settled(self) -> None:
        session, graph = self._session, self._session.graph
        if not self._target or graph is None or session.busy:
            return
        operator, self._target = graph.operator(self._target), ""
        following = operator.index + 1
        if following < len(graph.operators):
            session.run_to(graph.operators[following].name)
        else:
            session.resume()

    @Slot(str)
    def _on_failed(self, reason: str) -> None:
        self.failed.emit("The data set was not run", reason)

    @Slot()
    def _on_changed(self) -> None:
        if self._session.sweeping.found is not None:
            self.started.emit()


def _default_output(graph: RuntimeGraph) -> Path:
    name = graph.param_path.name.partition(".")[0]
    return graph.param_path.absolute().parent / f"{name}-dataset"


def _source_of(folder: Path, graph: RuntimeGraph, index: int, entry: object) -> InputSource:
    """Return the source of an input; an entry of an array becomes a file beside the results."""
    from engine.array_files import write_npy
    from engine.inputs import parse_source

    if isinstance(entry, Path):
        return parse_source(str(entry))
    if not isinstance(entry, np.ndarray) or len(graph.input_operands) != 1:
        raise SweepError("the model has several inputs, and the data set is one array")
    shape = graph.input_operands[0].shape
    item = entry[np.newaxis] if shape is not None and entry.ndim == len(shape) - 1 else entry
    path = folder / _OPENED / f"{index:06}.npy"
    path.parent.mkdir(exist_ok=True)
    write_npy(path, item)
    return parse_source(str(path))
