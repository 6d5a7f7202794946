"""The bar in which an index is typed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QSizePolicy,
    QToolButton,
    QWidget,
)
from typing_extensions import override

from kuiper_studio.elided_label import ElidedLabel
from kuiper_studio.icons import icon

if TYPE_CHECKING:
    from PySide6.QtGui import QKeyEvent

    from kuiper_studio.theme import Theme

__all__ = ["IndexBar"]

_HEIGHT: Final = 35
_FIELD: Final = 220


class IndexBar(QFrame):
    """A field for an index, and what is there or what is wrong with it.

    Parameters
    ----------
    theme : Theme

    Signals
    -------
    edited
        The text, after each change.
    entered
        The text, when Enter is pressed.
    dismissed
        Esc, or the button that closes it.
    """

    edited = Signal(str)
    entered = Signal(str)
    dismissed = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setObjectName("indexBar")
        self.setFixedHeight(_HEIGHT)
        label = QLabel("Go to &index")
        label.setProperty("role", "secondary")
        label.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Preferred)
        self.field = QLineEdit()
        self.field.setAccessibleName("Index")
        self.field.setFont(theme.mono_font())
        self.field.setFixedWidth(_FIELD)
        self.field.setToolTip(
            "A number for each dimension: 0, 12, 7, 3. Negative ones count from the end. "
            "Ranges of rows and columns choose a rectangle: 0, 12, 0:8, 4:12. "
            "Where there is a row or an entry for each class label, its label will do"
        )
        label.setBuddy(self.field)
        self.answer = ElidedLabel()
        self.answer.setObjectName("indexAnswer")
        self.answer.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self._close = QToolButton()
        self._close.setToolTip("Close (Esc)")
        self._close.setAccessibleName("Close the index field")
        row = QHBoxLayout(self)
        row.setContentsMargins(10, 0, 6, 0)
        row.setSpacing(8)
        row.addWidget(label)
        row.addWidget(self.field)
        row.addWidget(self.answer, 1)
        row.addWidget(self._close)
        self.field.textChanged.connect(self.edited)
        self.field.returnPressed.connect(self._on_return)
        self._close.clicked.connect(self.dismissed)
        theme.changed.connect(self._tint)
        self._tint()
        self.hide()

    def begin(self, text: str) -> None:
        """Show the bar with an index to change."""
        self.show()
        self.field.setText(text)
        self.field.selectAll()
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.edited.emit(text)

    def show_answer(self, text: str, *, is_error: bool = False) -> None:
        """Say what is there, or what is wrong."""
        self.answer.setText(text)
        self.answer.setProperty("role", "error" if is_error else "mono2")
        self.answer.style().polish(self.answer)

    @Slot()
    def _on_return(self) -> None:
        self.entered.emit(self.field.text())

    @Slot()
    def _tint(self) -> None:
        self._close.setIcon(icon("close", self._theme, "text2"))

    # Overrides of Qt methods

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.dismissed.emit()
        else:
            super().keyPressEvent(event)
