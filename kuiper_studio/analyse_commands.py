"""Carries out the commands that compare with a reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject

if TYPE_CHECKING:
    from PySide6.QtCore import QSettings
    from PySide6.QtWidgets import QWidget

    from engine.runtime import RuntimeOperand
    from kuiper_studio.file_dialogs import FileDialogs
    from kuiper_studio.session import StudioSession

__all__ = ["AnalyseCommands"]

_RECENT: Final = 8
_KEY: Final = "compare/recent"
_FILES: Final = "References (*.npz *.safetensors *.param *.pt *.onnx *.csv *.json)"


class AnalyseCommands(QObject):
    """Asks for references and reports, and selects origins.

    Parameters
    ----------
    session : StudioSession
    settings : QSettings
    dialogs : FileDialogs
    window : QWidget
        Parent of the dialogs.
    """

    def __init__(
        self,
        session: StudioSession,
        settings: QSettings,
        dialogs: FileDialogs,
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._session, self._settings, self._dialogs = session, settings, dialogs
        self._window = window

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
