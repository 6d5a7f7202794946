"""Carries out the commands that change what holds for every model: theme and preferences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QTimer, Signal, Slot
from PySide6.QtGui import QActionGroup
from PySide6.QtWidgets import QWidget

from engine.text import number_style
from kuiper_studio.appearance import (
    MONO_FAMILY,
    is_still,
    store_numbers,
    store_size,
    store_still,
    stored_size,
)
from kuiper_studio.commands import COMMANDS
from kuiper_studio.desktop_motion import desktop_is_still
from kuiper_studio.tensor_view import TENSOR_COMMANDS
from kuiper_studio.theme import Scheme

if TYPE_CHECKING:
    from PySide6.QtCore import QSettings

    from kuiper_studio.commands import Commands
    from kuiper_studio.debug_commands import DebugCommands
    from kuiper_studio.dialogs.preferences_dialog import Preferences
    from kuiper_studio.export_commands import ExportCommands
    from kuiper_studio.file_dialogs import FileDialogs
    from kuiper_studio.graph_view import GraphView
    from kuiper_studio.keymap import Keyed
    from kuiper_studio.session import StudioSession
    from kuiper_studio.theme import Theme

__all__ = ["PreferenceCommands"]

_ASK_DESKTOP_MS: Final = 300  # after the start, what it says of motion
_SCHEME_OF: Final = {
    "view.themeSystem": Scheme.SYSTEM,
    "view.themeLight": Scheme.LIGHT,
    "view.themeDark": Scheme.DARK,
}


class PreferenceCommands(QObject):
    """Asks for preferences, stores them, and has the window use them.

    Parameters
    ----------
    session : StudioSession
    settings : QSettings
    theme : Theme
    dialogs : FileDialogs
    commands : Commands
    graph_view : GraphView
    debugging : DebugCommands
    exporting : ExportCommands
    window : QWidget

    Signals
    -------
    keys_changed
        The user has chosen other keys; they are stored.
    """

    keys_changed = Signal()

    def __init__(
        self,
        session: StudioSession,
        settings: QSettings,
        theme: Theme,
        dialogs: FileDialogs,
        commands: Commands,
        graph_view: GraphView,
        debugging: DebugCommands,
        exporting: ExportCommands,
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._session, self._settings, self._theme = session, settings, theme
        self._dialogs, self._commands, self._window = dialogs, commands, window
        self._debugging, self._exporting = debugging, exporting
        self._viewport = graph_view.canvas.viewport
        schemes = QActionGroup(self)
        for command in _SCHEME_OF:
            schemes.addAction(commands.actions[command])
        theme.changed.connect(self._show_scheme)

    def restore(self) -> None:
        """Use what the last run has stored."""
        self._viewport.reduced_motion = is_still(self._settings)
        QTimer.singleShot(_ASK_DESKTOP_MS, self._use_motion)
        self._show_scheme()

    # The theme

    def toggle_theme(self) -> None:
        """Switch between the light and the dark theme."""
        self._use_theme(Scheme.LIGHT if self._theme.dark else Scheme.DARK)

    def use_system_theme(self) -> None:
        """Follow the desktop's theme."""
        self._use_theme(Scheme.SYSTEM)

    def use_light_theme(self) -> None:
        """Use the light theme."""
        self._use_theme(Scheme.LIGHT)

    def use_dark_theme(self) -> None:
        """Use the dark theme."""
        self._use_theme(Scheme.DARK)

    def _use_theme(self, scheme: Scheme) -> None:
        self._settings.setValue("theme", scheme.value)
        self._theme.set_scheme(scheme)
        self._show_scheme()

    @Slot()
    def _show_scheme(self) -> None:
        for command, scheme in _SCHEME_OF.items():
            self._commands.actions[command].setChecked(scheme is self._theme.scheme)

    # The dialog

    def ask(self) -> None:
        """Ask for what holds for every model, and use it."""
        from kuiper_studio.dialogs.preferences_dialog import PreferencesDialog

        present = self._present()
        commands: tuple[Keyed, ...] = (*COMMANDS, *TENSOR_COMMANDS)
        dialog = PreferencesDialog(present, self._window, commands=commands)
        if dialog.exec():
            self._use_for_models(dialog.preferences, present)
            self._use_in_window(dialog.preferences, present)

    def _present(self) -> Preferences:
        from kuiper_studio.dialogs.preferences_dialog import Preferences

        session = self._session
        return Preferences(
            self._theme.scheme,
            session.backend,
            session.memory.limit,
            session.memory.bound,
            session.seed,
            self._dialogs.folder("dump"),
            self._exporting.preferred_format,
            session.ncnn_options,
            self._commands.keymap,
            number_style(),
            stored_size(self._settings),
            str(self._settings.value(MONO_FAMILY, "")),
            is_still(self._settings),
            session.tuning.allowed,
        )

    def _use_for_models(self, chosen: Preferences, present: Preferences) -> None:
        """Use what says how models are computed and exported."""
        self._session.memory.set_limit(chosen.limit)
        self._session.memory.set_bound(chosen.bound)
        self._session.set_seed(chosen.seed)
        if chosen.backend != present.backend:
            self._debugging.set_preferred_backend(chosen.backend)
        self._debugging.set_preferred_ncnn_options(chosen.ncnn_options)
        self._debugging.set_tuning(allowed=chosen.tuning)
        self._dialogs.set_folder("dump", chosen.folder)
        self._exporting.set_preferred_format(chosen.format)

    def _use_in_window(self, chosen: Preferences, present: Preferences) -> None:
        """Use what says how the window looks, and which keys it has."""
        if chosen.scheme is not present.scheme:
            self._use_theme(chosen.scheme)
        if chosen.keymap != present.keymap:
            chosen.keymap.store(self._settings)
            self.keys_changed.emit()
        store_size(self._settings, chosen.interface_size)
        self._settings.setValue(MONO_FAMILY, chosen.mono_family)
        store_still(self._settings, still=chosen.still)
        self._use_motion()
        if chosen.numbers != present.numbers:
            store_numbers(self._settings, chosen.numbers)
            for widget in self._window.findChildren(QWidget):
                # PySide 6.9 knows only an update with an index of item views.
                QWidget.update(widget)

    @Slot()
    def _use_motion(self) -> None:
        """Animate nothing where the user wants that, here or in the whole desktop."""
        self._viewport.reduced_motion = is_still(self._settings) or desktop_is_still()
