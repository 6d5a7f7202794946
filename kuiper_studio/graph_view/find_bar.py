"""The find bar: what the user looks for, how many operators it is, and steps through them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QSize, Qt, QTimer, Signal, Slot
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from engine.text import format_count
from kuiper_studio.elided_label import ElidedLabel, ElidedLines
from kuiper_studio.icons import icon, mark_as_search

if TYPE_CHECKING:
    from PySide6.QtGui import QKeyEvent

    from kuiper_studio.session import StudioSession
    from kuiper_studio.theme import Theme

__all__ = ["FindBar"]

_HINT_LINES: Final = 3
_PATIENCE_MS: Final = 500  # until an error is shown: half a term is one while it is typed
_FIELD_WIDTH: Final = (120, 420)
_TIP: Final = (
    "All terms must match; not, or - before a term, negates it\n"
    "conv  layer1.*  type:Conv  name:layer1  operand:53      text, with * for anything\n"
    "1x64x56x56  *x64x*x*  float16      shape and dtype of an output\n"
    "stride=2  kernel_size=(3,3)  groups>1      parameters\n"
    "weight 64x3x7x7  weight float16\n"
    "has nan  has inf  is constant  max>100  min<-5  zeros>0.9      values of outputs"
)


class FindBar(QFrame):
    """The search field, the count, and buttons to step through what is marked.

    Parameters
    ----------
    session : StudioSession
    theme : Theme

    Signals
    -------
    closed
        The user has closed it.
    """

    closed = Signal()

    def __init__(
        self, session: StudioSession, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._session, self._theme = session, theme
        self.setObjectName("findBar")
        self.setAccessibleName("Find in the graph")
        self.setProperty("role", "bar")
        self.field = self._make_field()
        self.count = ElidedLabel("secondary")
        self.count.setObjectName("findCount")
        self._hint = ElidedLines("error", _HINT_LINES)
        self._hint.setObjectName("findHint")
        self._late = QTimer(self, singleShot=True, interval=_PATIENCE_MS)
        self._late.timeout.connect(self._show_hint)
        self._previous = self._make_button("chevron-up", "Previous", "Shift+F3")
        self._next = self._make_button("chevron-down", "Next", "F3")
        self._close = self._make_button("close", "Clear and close", "Esc")
        self._build()
        self.field.textEdited.connect(session.finding.search)
        self.field.textChanged.connect(self._on_text_changed)
        self._previous.clicked.connect(self.go_back)
        self._next.clicked.connect(self.go_on)
        self._close.clicked.connect(self.close_bar)
        session.finding.changed.connect(self._show)
        session.selection_changed.connect(self._show)
        self.hide()
        self._show()

    def _make_field(self) -> QLineEdit:
        field = QLineEdit()
        field.setObjectName("findField")
        field.setProperty("dense", True)  # noqa: FBT003 - Qt's signature
        field.setPlaceholderText("Find, e.g. conv max>100")
        field.setAccessibleName("Find operators")
        field.setToolTip(_TIP)
        field.setMinimumWidth(_FIELD_WIDTH[0])
        field.setMaximumWidth(_FIELD_WIDTH[1])
        mark_as_search(field, self._theme)
        return field

    def _make_button(self, icon_name: str, name: str, key: str) -> QToolButton:
        button = QToolButton()
        button.setProperty("dense", True)  # noqa: FBT003 - Qt's signature
        button.setAutoRaise(True)
        button.setIcon(icon(icon_name, self._theme))
        button.setIconSize(QSize(15, 15))
        button.setFixedSize(24, 24)
        button.setToolTip(f"{name} ({key})")
        button.setAccessibleName(name)
        return button

    def _build(self) -> None:
        row = QHBoxLayout()
        row.setSpacing(6)
        row.addWidget(self.field, 3)
        row.addWidget(self._previous)
        row.addWidget(self._next)
        self.count.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        row.addWidget(self.count, 4)
        row.addWidget(self._close)
        column = QVBoxLayout(self)
        column.setContentsMargins(8, 3, 8, 3)
        column.setSpacing(2)
        column.addLayout(row)
        column.addWidget(self._hint)

    def open_bar(self) -> None:
        """Show the bar, and select its text to type another one."""
        self._session.finding.prepare()
        self.show()
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.field.selectAll()

    @Slot()
    def close_bar(self) -> None:
        """Clear what is marked, and hide the bar."""
        self._session.finding.clear()
        self.hide()
        self.closed.emit()

    @Slot()
    def go_on(self) -> None:
        """Select the next marked operator."""
        self._session.find_next()

    @Slot()
    def go_back(self) -> None:
        """Select the previous marked operator."""
        self._session.find_previous()

    @Slot(str)
    def _on_text_changed(self, text: str) -> None:
        # The button that clears the field does not edit it, for Qt.
        if not text and self._session.finding.text:
            self._session.finding.search("")

    @Slot()
    @Slot(object)
    def _show(self, _name: str = "") -> None:
        finding = self._session.finding
        if self._session.graph is None:
            self.hide()
        elif finding.is_on or finding.start:
            self.show()
        if self.field.text() != finding.text:
            self.field.setText(finding.text)
        self.count.setText(self._count_text())
        if finding.error and self._hint.isHidden():
            self._late.start()
        else:
            self._show_hint()
        for button in (self._previous, self._next):
            button.setEnabled(bool(finding.operators))

    @Slot()
    def _show_hint(self) -> None:
        """Show what is wrong with the search, if anything is."""
        error = self._session.finding.error
        self._late.stop()
        self._hint.setVisible(bool(error))
        self._hint.setText(f"{error[:1].upper()}{error[1:]}." if error else "")
        if bool(self.field.property("invalid")) != bool(error):
            self.field.setProperty("invalid", bool(error))
            self.field.style().unpolish(self.field)
            self.field.style().polish(self.field)

    def _count_text(self) -> str:
        """Say how many operators are marked, and which of them is selected."""
        finding, graph = self._session.finding, self._session.graph
        if finding.start:
            return f"Paths from {finding.start}: select another operator"
        if not finding.is_on or graph is None:
            return ""
        selected = self._session.selected
        place = finding.place_of(graph.operator(selected).index) if selected else -1
        total = len(finding.operators)
        if not total:
            text = f"No operator {finding.title}" if finding.title else "Nothing found"
        elif finding.title:
            text = f"{format_count(total, 'operator')} {finding.title}"
            text = f"{place + 1} of {text}" if place >= 0 else text
        else:
            text = f"{place + 1} of {total}" if place >= 0 else f"{total} found"
        if finding.unknown:
            text += f" · {format_count(finding.unknown, 'operator')} without a value yet"
        return text

    # Overrides of Qt methods

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        match event.key():
            case Qt.Key.Key_Escape:
                self.close_bar()
            case Qt.Key.Key_Return | Qt.Key.Key_Enter:
                is_back = event.modifiers() & Qt.KeyboardModifier.ShiftModifier
                (self.go_back if is_back else self.go_on)()
            case _:
                super().keyPressEvent(event)
