"""The banner over the centre that reports changed files of the model."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QWidget
from typing_extensions import override

from kuiper_studio.icons import pixmap
from kuiper_studio.panels.message_banner import make_close_button, paint_strip

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent

    from kuiper_studio.session import StudioSession
    from kuiper_studio.theme import Theme

__all__ = ["FilesBanner"]


class FilesBanner(QFrame):
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
        super().__init__(parent)
        self.setObjectName("filesNotice")
        self._session, self._theme = session, theme
        self._hidden = False
        self._icon, self._text = QLabel(), QLabel()
        self._text.setWordWrap(True)
        self._text.setTextFormat(Qt.TextFormat.RichText)
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._reload = QPushButton("Reload model")
        self._reload.clicked.connect(self.reload_requested)
        close = make_close_button(theme)
        close.clicked.connect(session.dismiss_files_notice)
        row = QHBoxLayout(self)
        row.setContentsMargins(20, 5, 14, 6)
        row.setSpacing(10)
        row.addWidget(self._icon)
        row.addWidget(self._text, 1)
        row.addWidget(self._reload)
        row.addWidget(close)
        session.files_changed.connect(self._refresh)
        theme.changed.connect(self._refresh)
        self._refresh()

    def plain_text(self) -> str:
        """The text of the notice; ``""`` for none."""
        notice = self._session.files_notice
        return f"{notice.title}. {notice.text}" if notice is not None else ""

    @Slot(bool)
    def give_way(self, to_failure: bool) -> None:  # noqa: FBT001 - a slot
        """Hide while a failure is shown that offers to reload, too."""
        self._hidden = to_failure
        self._refresh()

    @Slot()
    def _refresh(self) -> None:
        notice = self._session.files_notice
        self.setVisible(notice is not None and not self._hidden)
        if notice is None:
            return
        scale = self.devicePixelRatioF()
        self._icon.setPixmap(pixmap("warning", self._theme, "warn", 16, scale))
        self._text.setText(f"<b>{html.escape(notice.title)}.</b> {html.escape(notice.text)}")
        self._reload.setEnabled(notice.can_reload)
        self.setAccessibleName(self.plain_text())
        self.update()

    # Override of a Qt method

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        paint_strip(self, self._theme, "curBg", "warn")
