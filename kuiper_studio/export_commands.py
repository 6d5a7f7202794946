"""Carries out the export commands: dumps, and pictures of tensors and of the graph."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from engine.errors import EngineError
from kuiper_studio.graph_view.collector import SummaryCollector

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from PySide6.QtCore import QSettings
    from PySide6.QtWidgets import QWidget

    from engine.dump import Format
    from engine.runtime import RuntimeGraph
    from kuiper_studio.engine_service.summary import Summary
    from kuiper_studio.file_dialogs import FileDialogs
    from kuiper_studio.graph_view import GraphView
    from kuiper_studio.layout import Orientation
    from kuiper_studio.session import StudioSession
    from kuiper_studio.tensor_view import TensorView
    from kuiper_studio.theme import Theme

__all__ = ["ExportCommands"]


class ExportCommands(QObject):
    """Writes what the window shows to files.

    Parameters
    ----------
    session : StudioSession
    theme : Theme
    settings : QSettings
    dialogs : FileDialogs
    graph_view : GraphView
    tensor_view : TensorView
    window : QWidget
        Parent of the dialogs.

    Signals
    -------
    failed : (str, str)
        A file was not written: a title and the reason.
    """

    failed = Signal(str, str)

    def __init__(
        self,
        session: StudioSession,
        theme: Theme,
        settings: QSettings,
        dialogs: FileDialogs,
        graph_view: GraphView,
        tensor_view: TensorView,
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._session, self._theme, self._dialogs = session, theme, dialogs
        self._settings = settings
        self._graph_view, self._tensor_view = graph_view, tensor_view
        self._window = window

    @property
    def preferred_format(self) -> Format:
        """Format of dumps that is offered first."""
        from engine.dump.options import FORMATS

        stored = str(self._settings.value("export/format", ""))
        return next((name for name in FORMATS if name == stored), "folder")

    def set_preferred_format(self, name: Format) -> None:
        """Offer another format of dumps first."""
        self._settings.setValue("export/format", name)

    def export_dump(self) -> None:
        """Ask what to dump and where, and write it."""
        from kuiper_studio.dialogs.export_dialog import ExportDialog

        folder = self._dialogs.folder("dump")
        dialog = ExportDialog(
            self._session, self._theme, folder, self._window, preferred=self.preferred_format
        )
        if dialog.exec() and dialog.request is not None:
            path, options = dialog.request
            self._dialogs.remember("dump", path)
            self._session.export_dump(path, options)

    def export_picture(self) -> None:
        """Save the tensor view's picture."""
        path = self._dialogs.choose_new(
            "dump", "Save the tensor's picture", "tensor.png", "PNG (*.png)"
        )
        if path is None:
            return
        try:
            self._tensor_view.save_picture(path)
        except EngineError as exc:
            self.failed.emit("The picture was not saved", str(exc))
            return
        self._session.workspace.announce(f"picture saved to {path}")

    def export_graph(self) -> None:
        """Save the graph as a picture."""
        graph = self._session.graph
        if graph is None:
            return
        name = f"{graph.source_path.name.partition('.')[0]}.svg"
        path = self._dialogs.choose_new(
            "dump", "Save the graph", name, "SVG (*.svg);;PNG (*.png)"
        )
        if path is None:
            return
        orientation: Orientation = "left-right"
        if self._graph_view.orientation == "top-down":
            orientation = "top-down"
        collector = SummaryCollector(self._session, graph, self)
        collector.finished.connect(partial(self._save_graph, graph, path, orientation))
        collector.start()

    def _save_graph(
        self,
        graph: RuntimeGraph,
        path: Path,
        orientation: Orientation,
        summaries: Mapping[int, Summary],
    ) -> None:
        from kuiper_studio.graph_view.render import render_graph

        try:
            drawn = render_graph(
                graph, path, self._theme, orientation, self._session, summaries
            )
        except EngineError as exc:
            self.failed.emit("The graph was not saved", str(exc))
            return
        self._session.workspace.announce(f"graph saved to {path} {drawn.note}".rstrip())
