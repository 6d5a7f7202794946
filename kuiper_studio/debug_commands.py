"""Carries out the debug commands that need a dialog or the selected operator."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Signal, Slot

from engine.backend_names import BACKEND_NAMES, missing_packages
from engine.errors import EngineError, SessionStateError
from engine.inputs import parse_array_file, parse_seed
from engine.ncnn.options import EXACT, NcnnOptions
from engine.text import parse_bytes

if TYPE_CHECKING:
    from PySide6.QtCore import QSettings
    from PySide6.QtWidgets import QWidget

    from engine.self_check import SelfCheck
    from kuiper_studio.dialogs.self_check_dialog import SelfCheckDialog
    from kuiper_studio.file_dialogs import FileDialogs
    from kuiper_studio.session import StudioSession
    from kuiper_studio.theme import Theme

__all__ = ["DebugCommands"]

_ARRAY_FILES: Final = "NumPy files (*.npy *.npz)"
_DUMP_FILES: Final = "Dumps (manifest.json *.safetensors)"


class DebugCommands(QObject):
    """Asks for seed, memory and files, and remembers seed and memory between runs.

    Parameters
    ----------
    session : StudioSession
    theme : Theme
    settings : QSettings
    dialogs : FileDialogs
    window : QWidget
        Parent of the dialogs.

    Signals
    -------
    failed : (str, str)
        A file cannot be used: a title and the reason.
    """

    failed = Signal(str, str)

    def __init__(
        self,
        session: StudioSession,
        theme: Theme,
        settings: QSettings,
        dialogs: FileDialogs,
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._session, self._theme, self._settings = session, theme, settings
        self._dialogs, self._window = dialogs, window
        self._self_check: SelfCheckDialog | None = None
        session.seed_changed.connect(self._remember_seed)
        session.memory.changed.connect(self._remember_memory)
        session.studies.self_checked.connect(self._show_self_check)
        session.graph_changed.connect(self._close_self_check)

    # The selected operator

    def run_to_selected(self) -> None:
        """Run up to the selected operator."""
        if self._session.selected:
            self._session.run_to(self._session.selected)

    def toggle_breakpoint(self) -> None:
        """Set or clear the selected operator's breakpoint."""
        self._session.toggle_breakpoint(self._session.selected)

    def supply_selected(self) -> None:
        """Ask for a file that overrides the selected operator's output."""
        self.choose_output(self._session.selected)

    def withdraw_selected(self) -> None:
        """Clear the override of the selected operator."""
        self._session.withdraw(self._session.selected)

    @Slot(object)
    def choose_output(self, operator: str) -> None:
        """Ask for a file, and override an operator's output with it."""
        path = self._dialogs.choose("output", f"Output of {operator}", _ARRAY_FILES)
        if path:
            self.supply_output(operator, path)

    def supply_output(self, operator: str, path: str) -> None:
        """Override an operator's output with a file."""
        self._dialogs.remember("output", path)
        try:
            source = parse_array_file(path)
        except EngineError as exc:
            self.failed.emit("The file cannot be used", str(exc))
            return
        self._session.supply(operator, source)

    def select_previous(self) -> None:
        """Select the operator before the selected one."""
        self._select_beside(-1)

    def select_next(self) -> None:
        """Select the operator after the selected one."""
        self._select_beside(1)

    def _select_beside(self, distance: int) -> None:
        graph = self._session.graph
        if graph is None or not self._session.selected:
            return
        index = graph.operator(self._session.selected).index + distance
        if 0 <= index < len(graph.operators):
            self._session.select(graph.operators[index].name)

    # How to run

    def choose_seed(self) -> None:
        """Ask for the random seed."""
        from kuiper_studio.dialogs.seed_dialog import SeedDialog

        dialog = SeedDialog(self._session, self._theme, self._window)
        if dialog.exec():
            self._session.set_seed(dialog.seed)

    def choose_memory_limit(self) -> None:
        """Ask for memory limit and memory bound."""
        from kuiper_studio.dialogs.memory_dialog import MemoryDialog

        dialog = MemoryDialog(self._session, self._window)
        if dialog.exec():
            self._session.memory.set_limit(dialog.limit)
            self._session.memory.set_bound(dialog.bound)

    def choose_kernels(self) -> None:
        """Ask for a dump, and use its kernels."""
        path = self._dialogs.choose("dump", "Use the kernels of a dump", _DUMP_FILES)
        if path:
            self._session.use_kernels_of(path)

    # Settings remembered between runs

    def restore(self) -> None:
        """Set the session's seed, backend and memory from the settings."""
        with suppress(ValueError):  # the file was edited by hand
            self._session.set_seed(parse_seed(str(self._settings.value("seed", "0"))))
        backend = str(self._settings.value("backend", ""))
        asked = self._session.backend  # on the command line
        if asked == "auto" and backend in BACKEND_NAMES and not missing_packages(backend):
            self._session.set_backend(backend)
        options = str(self._settings.value("ncnnOptions", EXACT.text))
        with suppress(SessionStateError):  # the file was edited by hand
            self._session.set_ncnn_options(NcnnOptions.parse(options).text)
        allowed = str(self._settings.value("tuning", "true")) != "false"
        self._session.tuning.allow(allowed=allowed)
        # Both are read first, because setting one remembers both.
        limit = self._remembered_bytes("memoryLimit")
        bound = self._remembered_bytes("memoryBound")
        self._session.memory.set_limit(limit)
        self._session.memory.set_bound(bound)

    def set_preferred_backend(self, name: str) -> None:
        """Use a backend, now and in runs of the window to come."""
        if name in BACKEND_NAMES:  # no dump's kernels, which are of a single model
            self._settings.setValue("backend", name)
            self._session.set_backend(name)

    def set_preferred_ncnn_options(self, options: str) -> None:
        """Use options of ncnn, now and in runs of the window to come."""
        self._settings.setValue("ncnnOptions", options)
        self._session.set_ncnn_options(options)

    def set_tuning(self, *, allowed: bool) -> None:
        """Tune kernels at rest or not, now and in runs of the window to come."""
        self._settings.setValue("tuning", str(allowed).lower())
        self._session.tuning.allow(allowed=allowed)

    def _remembered_bytes(self, key: str) -> int | None:
        try:
            return parse_bytes(str(self._settings.value(key, "")))
        except ValueError:  # nothing was chosen, or the file was edited by hand
            return None

    @Slot()
    def _remember_seed(self) -> None:
        self._settings.setValue("seed", str(self._session.seed))

    @Slot()
    def _remember_memory(self) -> None:
        for key, nbytes in (
            ("memoryLimit", self._session.memory.limit),
            ("memoryBound", self._session.memory.bound),
        ):
            self._settings.setValue(key, "" if nbytes is None else str(nbytes))

    # Self-check

    @Slot(object)
    def _show_self_check(self, found: SelfCheck) -> None:
        """Show the result, in the open dialog if there is one."""
        from kuiper_studio.dialogs.self_check_dialog import SelfCheckDialog

        dialog = self._self_check
        if dialog is None:
            dialog = self._self_check = SelfCheckDialog(self._theme, self._window)
            dialog.operator_chosen.connect(self._session.select)
            dialog.check_requested.connect(self._session.studies.self_check)
            dialog.finished.connect(self._on_self_check_closed)
        dialog.show_result(found)
        dialog.show()
        dialog.raise_()

    @Slot()
    def _on_self_check_closed(self) -> None:
        self._self_check = None

    @Slot()
    def _close_self_check(self) -> None:
        if self._self_check is not None:
            self._self_check.close()  # its rows belong to another model
