"""Base of all panels: title, suffix, and widgets of the dock's header."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QLabel, QLayout, QVBoxLayout, QWidget

from kuiper_studio.elided_label import WrappedLabel

if TYPE_CHECKING:
    from collections.abc import Iterable

    from PySide6.QtGui import QAction

    from kuiper_studio.session import StudioSession
    from kuiper_studio.theme import Theme

__all__ = ["Panel", "plain_label"]


class Panel(QWidget):
    """A view of the session that lives in a dock or a tab.

    Signals
    -------
    suffix_changed : str
        The short text beside the title has changed, for example to ``6 / 51``.
    """

    suffix_changed = Signal(str)

    def __init__(
        self,
        name: str,
        title: str,
        session: StudioSession,
        theme: Theme,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setWindowTitle(title)
        self.setAccessibleName(title)
        self.setProperty("role", "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.session = session
        self.theme = theme
        self._suffix = ""

    @property
    def suffix(self) -> str:
        """Short text beside the title."""
        return self._suffix

    def set_suffix(self, text: str) -> None:
        """Change the text beside the title; emits only changes."""
        if text != self._suffix:
            self._suffix = text
            self.suffix_changed.emit(text)

    def keyboard_target(self) -> QWidget:
        """What takes the keyboard when the user goes to this panel; what follows if it cannot.

        A focus proxy would be the same, but Qt takes a widget that gets a proxy out of the
        order of Tab, and leaves its children going round in a ring.
        """
        return self

    def lay_out_head(
        self, labels: Iterable[QLabel], rest: QWidget, *rows: QLayout
    ) -> QVBoxLayout:
        """Lay out texts and rows of buttons above a line, and the rest below it.

        Parameters
        ----------
        labels : iterable of QLabel
        rest : QWidget
        *rows : QLayout

        Returns
        -------
        QVBoxLayout
            Of all of it.
        """
        head = QVBoxLayout()
        head.setContentsMargins(12, 10, 12, 8)
        head.setSpacing(6)
        for label in labels:
            label.setWordWrap(True)
            head.addWidget(label)
        for row in rows:
            head.addLayout(row)
        line = QFrame()
        line.setProperty("role", "line")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(head)
        column.addWidget(line)
        column.addWidget(rest, 1)
        return column

    def title_widgets(self) -> tuple[QWidget, ...]:
        """Widgets shown in the dock's header, before the actions."""
        return ()

    def title_actions(self) -> tuple[QAction, ...]:
        """Actions shown as buttons in the dock's header."""
        return ()


def plain_label(name: str, role: str) -> QLabel:
    """Make a label of plain text that can be selected, for texts with names of a model."""
    label = WrappedLabel(role)
    label.setWordWrap(False)
    label.setObjectName(name)
    return label
