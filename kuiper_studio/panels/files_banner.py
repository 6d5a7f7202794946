"""The banner over the centre that reports changed files of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal, Slot

from kuiper_studio.panels.notice_strip import NoticeStrip

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from kuiper_studio.session import StudioSession
    from kuiper_studio.theme import Theme

__all__ = ["FilesBanner"]


class FilesBanner(NoticeStrip):
    """Shows the session's `FilesNotice` in a line, and offers to reload the model.

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
        super().__init__(theme, parent)
        self.setObjectName("filesNotice")
        self._session = session
        self._gives_way = False
        self._reload = self.add_button("Reload model")
        self._reload.clicked.connect(self.reload_requested)
        self.close_button.clicked.connect(session.dismiss_files_notice)
        session.files_changed.connect(self._refresh)
        self._refresh()

    @Slot(bool)
    def give_way(self, to_failure: bool) -> None:  # noqa: FBT001 - a slot
        """Hide while a failure is shown that offers to reload, too."""
        self._gives_way = to_failure
        self._refresh()

    @Slot()
    def _refresh(self) -> None:
        notice = self._session.files_notice
        if notice is None:
            self.clear()
            return
        self.show_notice(notice.title, notice.text)
        self.setVisible(not self._gives_way)
        self._reload.setEnabled(notice.can_reload)
