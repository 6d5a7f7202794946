"""Carries out the commands that compare with a reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot
from PySide6.QtWidgets import QMessageBox

from engine.conversion.suffixes import sources_in
from engine.errors import EngineError
from engine.paths import is_file, is_folder
from kuiper_studio.remembered_models import settings_key

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from PySide6.QtCore import QSettings
    from PySide6.QtWidgets import QWidget

    from engine.runtime import RuntimeGraph, RuntimeOperand, RuntimeOperator
    from kuiper_studio.file_dialogs import FileDialogs
    from kuiper_studio.session import StudioSession

__all__ = ["AnalyseCommands"]

_RECENT: Final = 8
_KEY: Final = "compare/recent"
_FORMATS: Final = "precision/formats"
_WANTED: Final = "precision/wanted"
# Suffixes of what may lie beside a model: other forms of it, and recordings.
_NCNN: Final = ".ncnn.param"
_BESIDE: Final = (_NCNN, ".pnnx.param", ".onnx", ".pt", ".npz", ".safetensors")
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
    open_requested : list of str
        The user wants to open this model, with these inputs.
    """

    failed = Signal(str, str)
    open_requested = Signal(list)

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
        session.studies.extracted.connect(self._offer_to_open)

    def compare(self) -> None:
        """Ask for a reference, and compare with it."""
        self._ask_what_to_compare_with("")

    def offer_to_compare(self, path: str) -> None:
        """Ask whether to compare with a file or folder that was dropped."""
        # Not before the drop has ended: its source waits.
        QTimer.singleShot(0, self, lambda: self._ask_what_to_compare_with(path))

    def is_reference(self, path: Path) -> bool:
        """Whether a dropped file or folder is one to compare with, and no input or model."""
        graph = self._session.graph
        if graph is None:
            return False
        suffix = path.suffix.lower()
        if suffix == ".npz":
            return _count_arrays(path) > len(graph.input_operands)
        if suffix == ".safetensors" or not is_folder(path):
            return suffix == ".safetensors"
        from engine.dump import has_manifest

        return has_manifest(path) or not (any(path.glob("*.param")) or sources_in(path))

    def _ask_what_to_compare_with(self, path: str) -> None:
        from kuiper_studio.dialogs.compare_dialog import CompareDialog

        session, graph = self._session, self._session.graph
        if graph is None:
            return
        last = settings_key("reference", graph.source_path)
        dialog = CompareDialog(
            self._recent(),
            self._choose_file,
            self._choose_folder,
            self._window,
            first=path or str(self._settings.value(last, "")),
            beside=_references_beside(graph),
            backend=session.backend,
            seed=session.seed,
        )
        if not dialog.exec():
            return
        if dialog.is_other_run:
            other = session.other_run(dialog.backend, dialog.seed, dialog.sources)
            session.studies.compare(other, dialog.tolerance)
            return
        chosen = str(dialog.reference)
        recent = [chosen, *(each for each in self._recent() if each != chosen)]
        self._settings.setValue(_KEY, recent[:_RECENT])
        self._settings.setValue(last, chosen)
        session.studies.compare(chosen, dialog.tolerance)

    def match_by_hand(self) -> None:
        """Ask which tensor of the reference belongs to the selected operator's output.

        An operator without outputs gives way to the first one that lacks a match.
        """
        from kuiper_studio.dialogs.match_dialog import MatchDialog

        session, comparing = self._session, self._session.comparing
        operand = self._matched_operand() or self._first_unmatched()
        if operand is None:
            return
        row = comparing.rows.get(operand.name)
        dialog = MatchDialog(
            operand,
            session.tensors.metadata(operand.name),
            comparing.entries,
            {row.reference: row.operator.name for row in comparing.rows.values()},
            row.reference if row is not None else None,
            self._window,
        )
        if dialog.exec():
            session.studies.match_by_hand(operand.name, dialog.key)

    def remove_match(self) -> None:
        """Match the selected operator's output as if no hand had."""
        operand = self._matched_operand()
        if operand is not None:
            self._session.studies.remove_match(operand.name)

    def _matched_operand(self) -> RuntimeOperand | None:
        """Return the shown output of the selected operator, or its first one."""
        session = self._session
        if session.graph is None or not session.selected:
            return None
        outputs = session.graph.operator(session.selected).outputs
        shown = [operand for operand in outputs if operand.name == session.operand]
        return (*shown, *outputs)[0] if outputs else None

    def _first_unmatched(self) -> RuntimeOperand | None:
        """Select the first operator whose output lacks a match, and return that output."""
        session, lacking = self._session, self._session.comparing.lacking
        if session.graph is None or not lacking:
            return None
        operand = session.graph.operand(lacking[0])
        if operand.producer is not None:
            session.select(operand.producer.name)
        return operand

    def write_report(self) -> None:
        """Ask where to write the report, and write it."""
        graph = self._session.graph
        if graph is None:
            return
        name = f"{graph.param_path.name.partition('.')[0]}-comparison.html"
        path = self._dialogs.choose_new("report", "Save the report", name, "HTML (*.html)")
        if path is not None:
            self._session.studies.write_report(path)

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
            session.studies.extract(
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
        files = [str(next(folder.glob("*.param"))), str(folder / "inputs.npz")]
        opened.clicked.connect(lambda: self.open_requested.emit(files))
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
            self._session.studies.simulate_precision(dialog.formats, dialog.wanted_error)

    @Slot(str)
    def save_precision(self, text: str) -> None:
        """Ask where to save the table of a format, and save it."""
        from engine.atomic import format_os_error, written_beside

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


def _references_beside(graph: RuntimeGraph) -> list[Path]:
    """Return what lies beside a model and has its name, and the ncnn pair that pnnx made of it.

    The pair is left out where the user's own lies beside the model.
    """
    model = graph.source_path
    stem = model.name.partition(".")[0]
    places = {suffix: model.with_name(f"{stem}{suffix}") for suffix in _BESIDE}
    made = graph.conversion.ncnn_param if graph.conversion is not None else None
    if made is not None and not is_file(places[_NCNN]):
        places[_NCNN] = made
    return [path for path in places.values() if path != model and is_file(path)]


def _count_arrays(path: Path) -> int:
    """Return the number of arrays in an ``.npz``; 0 where it cannot be read."""
    from engine.numpy_files import read_npz

    names: list[str] = []

    def choose(found: tuple[str, ...]) -> dict[str, str]:
        names.extend(found)
        return {}  # nothing is read

    try:
        read_npz(path, choose)
    except EngineError:
        return 0
    return len(names)
