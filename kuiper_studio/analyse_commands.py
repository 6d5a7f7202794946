"""Carries out the commands that compare with a reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtWidgets import QMessageBox

from engine.atomic import format_os_error, written_beside

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from PySide6.QtCore import QSettings
    from PySide6.QtWidgets import QWidget

    from engine.runtime import RuntimeOperand, RuntimeOperator
    from kuiper_studio.file_dialogs import FileDialogs
    from kuiper_studio.session import StudioSession

__all__ = ["AnalyseCommands"]

_RECENT: Final = 8
_KEY: Final = "compare/recent"
_FORMATS: Final = "precision/formats"
_WANTED: Final = "precision/wanted"
_FILES: Final = "References (*.npz *.safetensors *.param *.pt *.onnx *.csv *.json)"


class AnalyseCommands(QObject):
    """Asks for references, reports and studies, and goes from origin to origin.

    Parameters
    ----------
    session : StudioSession
    settings : QSettings
    dialogs : FileDialogs
    selected : callable
        Returns the operators that are selected in the list.
    window : QWidget
        Parent of the dialogs.

    Signals
    -------
    failed : (str, str)
        A file was not written: a title and the reason.
    open_requested : str
        The user wants to open this model.
    """

    failed = Signal(str, str)
    open_requested = Signal(str)

    def __init__(
        self,
        session: StudioSession,
        settings: QSettings,
        dialogs: FileDialogs,
        selected: Callable[[], tuple[RuntimeOperator, ...]],
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._session, self._settings, self._dialogs = session, settings, dialogs
        self._selected, self._window = selected, window
        session.extracted.connect(self._offer_to_open)

    def compare(self) -> None:
        """Ask for a reference, and compare with it."""
        from kuiper_studio.dialogs.compare_dialog import CompareDialog

        dialog = CompareDialog(
            self._recent(), self._choose_file, self._choose_folder, self._window
        )
        if dialog.exec():
            path = str(dialog.reference)
            recent = [path, *(each for each in self._recent() if each != path)]
            self._settings.setValue(_KEY, recent[:_RECENT])
            self._session.compare(path, dialog.tolerance)

    def match_by_hand(self) -> None:
        """Ask which tensor of the reference belongs to the selected operator's output."""
        from kuiper_studio.dialogs.match_dialog import MatchDialog

        session, comparing = self._session, self._session.comparing
        operand = self._matched_operand()
        if operand is None:
            return
        row = comparing.rows.get(operand.name)
        dialog = MatchDialog(
            operand,
            session.tensors.metadata(operand.name),
            comparing.entries,
            row.reference if row is not None else None,
            self._window,
        )
        if dialog.exec():
            session.match_by_hand(operand.name, dialog.key)

    def remove_match(self) -> None:
        """Match the selected operator's output as if no hand had."""
        operand = self._matched_operand()
        if operand is not None:
            self._session.remove_match(operand.name)

    def _matched_operand(self) -> RuntimeOperand | None:
        """Return the shown output of the selected operator, or its first one."""
        session = self._session
        if session.graph is None or not session.selected:
            return None
        outputs = session.graph.operator(session.selected).outputs
        shown = [operand for operand in outputs if operand.name == session.operand]
        return (*shown, *outputs)[0] if outputs else None

    def write_report(self) -> None:
        """Ask where to write the report, and write it."""
        graph = self._session.graph
        if graph is None:
            return
        name = f"{graph.param_path.name.partition('.')[0]}-comparison.html"
        path = self._dialogs.choose_new("report", "Save the report", name, "HTML (*.html)")
        if path is not None:
            self._session.write_report(path)

    def extract(self) -> None:
        """Ask which operators to write as a model of their own, and write them."""
        from kuiper_studio.dialogs.extract_dialog import ExtractDialog

        session, graph = self._session, self._session.graph
        if graph is None:
            return
        chosen = self._selected()
        if session.selected and all(each.name != session.selected for each in chosen):
            chosen = (graph.operator(session.selected),)  # which the list does not show
        dialog = ExtractDialog(
            graph,
            chosen,
            self._dialogs.folder("reproducer"),
            lambda: self._dialogs.choose_folder("reproducer", "Folder of the reproducer"),
            is_compared=session.comparing.comparison is not None,
            parent=self._window,
        )
        if dialog.exec():
            self._dialogs.remember("reproducer", dialog.path)
            session.extract(
                dialog.patterns,
                dialog.path,
                expects_reference=dialog.expects_reference,
                overwrites=dialog.overwrites,
            )

    @Slot(object)
    def _offer_to_open(self, folder: Path) -> None:
        box = QMessageBox(self._window)
        box.setObjectName("extractedBox")
        box.setWindowTitle("Operators extracted")
        box.setTextFormat(Qt.TextFormat.PlainText)
        box.setText(f"The reproducer is in {folder}.")
        box.setInformativeText("Open it here? The present model is closed then.")
        opened = box.addButton("Open", QMessageBox.ButtonRole.AcceptRole)
        box.setDefaultButton(box.addButton("Close", QMessageBox.ButtonRole.RejectRole))
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        model = str(next(folder.glob("*.param")))
        opened.clicked.connect(lambda: self.open_requested.emit(model))
        box.open()

    def simulate_precision(self) -> None:
        """Ask for formats, and simulate them."""
        from kuiper_studio.dialogs.precision_dialog import PrecisionDialog

        formats = str(self._settings.value(_FORMATS, "float16")).split()
        wanted = str(self._settings.value(_WANTED, ""))
        dialog = PrecisionDialog(formats, wanted, self._window)
        if dialog.exec():
            self._settings.setValue(_FORMATS, " ".join(dialog.formats))
            self._settings.setValue(_WANTED, dialog.wanted.text().strip())
            self._session.simulate_precision(dialog.formats, dialog.wanted_error)

    @Slot(str)
    def save_precision(self, text: str) -> None:
        """Ask where to save the table of a format, and save it."""
        graph = self._session.graph
        if graph is None:
            return
        name = f"{graph.param_path.name.partition('.')[0]}-precision.txt"
        path = self._dialogs.choose_new("report", "Save the table", name, "Text (*.txt)")
        if path is None:
            return
        try:
            with written_beside(path, replace=True) as partial:
                partial.write_text(text, encoding="utf-8")
        except OSError as exc:
            reason = f"{path} was not written: {format_os_error(exc)}."
            self.failed.emit("The table was not saved", reason)
        else:
            self._session.workspace.announce(f"table written to {path}")

    def next_origin(self) -> None:
        """Select the next operator where a difference begins."""
        self._select_origin(1)

    def previous_origin(self) -> None:
        """Select the previous operator where a difference begins."""
        self._select_origin(-1)

    def _select_origin(self, step: int) -> None:
        session = self._session
        if session.graph is None:
            return
        index = session.graph.operator(session.selected).index if session.selected else -1
        name = session.comparing.neighbour(index, step)
        if name:
            session.select(name)
            session.show_operand(session.comparing.origins[name].operand)

    def _recent(self) -> list[str]:
        stored = self._settings.value(_KEY, [])
        listed = [stored] if isinstance(stored, str) else list(stored or ())  # type: ignore[call-overload]
        return [str(each) for each in listed]

    def _choose_file(self) -> str:
        return self._dialogs.choose("reference", "Reference", _FILES)

    def _choose_folder(self) -> str:
        return self._dialogs.choose_folder("reference", "Folder of the reference")
