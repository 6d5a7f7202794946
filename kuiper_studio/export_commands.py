"""Carries out the export commands: dumps, and pictures of tensors and of the graph."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Signal, Slot

from engine.errors import EngineError
from kuiper_studio.background import Background, Done
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
    from kuiper_studio.graph_view.render import Shown, Size
    from kuiper_studio.layout import Orientation
    from kuiper_studio.session import StudioSession
    from kuiper_studio.tensor_view import TensorView
    from kuiper_studio.theme import Theme

__all__ = ["ExportCommands"]

_CHOICE: Final = "export/graphPicture"


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
        self._background = Background(self)
        self._background.finished.connect(self._on_saved)

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
        """Ask how and where to save the graph as a picture, and save it."""
        from kuiper_studio.dialogs.graph_picture_dialog import GraphPictureDialog
        from kuiper_studio.graph_view.pages import PICTURE_FORMS
        from kuiper_studio.graph_view.render import Shown, Size

        graph = self._session.graph
        if graph is None:
            return
        dialog = GraphPictureDialog(self._stored_choice(), self._window)
        if not dialog.exec():
            return
        choice = dialog.choice
        self._settings.setValue(_CHOICE, choice)
        form = choice["format"]
        name = f"{graph.source_path.name.partition('.')[0]}.{form}"
        path = self._dialogs.choose_new(
            "dump", "Save the graph", name, f"{form.upper()} (*.{form})"
        )
        if path is None:
            return
        typed = path.suffix.lower().removeprefix(".")
        form = typed if typed in PICTURE_FORMS else form  # a file is what its name says
        has = {part: choice[part] == "true" for part in ("states", "thumbnails", "overlay")}
        size = Size(dialog.scale, dialog.width_in_pixels)
        save = partial(
            self._save_graph, graph, path, form, size, choice["colors"], Shown(**has)
        )
        if not has["thumbnails"]:
            save({})
            return
        collector = SummaryCollector(self._session, graph, self)
        collector.finished.connect(save)
        collector.start()

    def _stored_choice(self) -> dict[str, str]:
        stored = self._settings.value(_CHOICE)
        if not isinstance(stored, dict):
            return {}
        return {str(name): str(value) for name, value in stored.items()}

    def _save_graph(
        self,
        graph: RuntimeGraph,
        path: Path,
        form: str,
        size: Size,
        colors: str,
        shown: Shown,
        summaries: Mapping[int, Summary],
    ) -> None:
        from kuiper_studio.graph_view.render import prepare_scene, write_scene
        from kuiper_studio.theme import Scheme, Theme

        dark = colors == "dark" or (not colors and self._theme.dark)
        theme = Theme(Scheme.DARK if dark else Scheme.LIGHT, self)  # of this picture alone
        orientation: Orientation = "left-right"
        if self._graph_view.orientation == "top-down":
            orientation = "top-down"
        state = prepare_scene(graph, self._session, summaries, shown)
        write = partial(write_scene, thumbnails=shown.thumbnails)
        self._background.submit(path, write, state, path, theme, orientation, form, size)

    @Slot(object)
    def _on_saved(self, done: Done) -> None:
        from kuiper_studio.graph_view.render import Rendered

        drawn = done.result
        if not isinstance(drawn, Rendered):
            self.failed.emit("The graph was not saved", done.error)
            return
        size = f"{drawn.width}×{drawn.height}"
        note = f"; {drawn.note}" if drawn.note else ""
        self._session.workspace.announce(f"graph saved to {drawn.path}, {size}{note}")
