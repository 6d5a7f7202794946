"""The banner over the centre that says that the model's files are others by now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal, Slot

from kuiper_studio.panels.message_banner import MessageBanner

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from kuiper_studio.session import StudioSession
    from kuiper_studio.theme import Theme

__all__ = ["FilesBanner"]


class FilesBanner(MessageBanner):
    """Shows the session's `FilesNotice`, and offers to reload the model.

    Parameters
    ----------
    session : StudioSession
    theme : Theme

    Signals
    -------
    reload_requested
    """

    reload_requested = Signal()

    def __init__(
        self, session: StudioSession, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__(theme, parent, warning=True)
        self.setObjectName("filesNotice")
        self._session = session
        self._reload = self.add_button("Reload model", "primary")
        self._reload.clicked.connect(self.reload_requested)
        self.closed.connect(session.dismiss_files_notice)
        session.files_changed.connect(self._show_notice)

    @Slot()
    def _show_notice(self) -> None:
        notice = self._session.files_notice
        if notice is None:
            self.clear()
            return
        self._reload.setEnabled(notice.can_reload)
        self.show_message(notice.title, notice.text)
