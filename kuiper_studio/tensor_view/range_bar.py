"""The control of the range: a text box for each end, and a bar between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLineEdit, QWidget
from typing_extensions import override

from kuiper_studio.tensor_view.numbers import format_bound, parse_number
from kuiper_studio.tensor_view.range_track import RangeTrack
from kuiper_studio.tensor_view.tool_strip import tool_button

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QAction, QFocusEvent, QKeyEvent, QResizeEvent

    from engine.values import Array
    from kuiper_studio.tensor_view.images import Coloring
    from kuiper_studio.theme import Theme

__all__ = ["RangeBar", "ValueBox"]

_HEIGHT: Final = 60
_SIDES: Final = 16  # of both margins
_SPACE: Final = 2  # between two parts


class ValueBox(QLineEdit):
    """A text box for a finite number: Enter commits, Esc reverts.

    Signals
    -------
    committed
        The entered number. The owner shows it, or calls `refuse`.
    """

    committed = Signal(float)

    def __init__(self, name: str, title: str, theme: Theme) -> None:
        super().__init__()
        self.setObjectName(name)
        self.setAccessibleName(title)
        self.setProperty("dense", True)  # noqa: FBT003 - Qt's signature
        self.setToolTip(f"{title} (Enter commits, Esc reverts)")
        self.setFixedSize(70, 24)
        self.setFont(theme.mono_font())
        self.setStyleSheet('font-family: "JetBrains Mono", monospace; font-size: 11px;')
        self._shown = ""
        self.returnPressed.connect(self._commit)
        self.textEdited.connect(self._on_edited)

    def show_value(self, text: str) -> None:
        """Show a number, unless the user is typing."""
        self._shown = text
        if not (self.hasFocus() and self.isModified()):
            self.revert()

    def revert(self) -> None:
        """Show the current number."""
        self.setText(self._shown)
        self.setCursorPosition(0)
        self._set_invalid(invalid=False)

    def refuse(self) -> None:
        """Mark the entry as wrong."""
        self._set_invalid(invalid=True)

    @Slot()
    def _commit(self) -> None:
        if self.text() == self._shown:
            return  # the number may have more digits than its text
        value = parse_number(self.text())
        if value is None:
            self.refuse()
            return
        self.setModified(False)
        self.committed.emit(value)

    @Slot(str)
    def _on_edited(self, _text: str) -> None:
        self._set_invalid(invalid=False)

    def _set_invalid(self, *, invalid: bool) -> None:
        if bool(self.property("invalid")) != invalid:
            self.setProperty("invalid", invalid)
            self.style().unpolish(self)
            self.style().polish(self)

    # Overrides of Qt methods

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.revert()
            self.selectAll()
            return
        super().keyPressEvent(event)

    @override
    def focusOutEvent(self, event: QFocusEvent) -> None:
        self.revert()
        super().focusOutEvent(event)


class RangeBar(QFrame):
    """Shows and sets the range that the colours span.

    Parameters
    ----------
    theme : Theme
    actions : sequence of QAction
        For the buttons at the right.

    Signals
    -------
    range_chosen
        Low and high.
    """

    range_chosen = Signal(float, float)

    def __init__(
        self, theme: Theme, actions: Sequence[QAction], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("tensorRange")
        self.setProperty("role", "panel")
        self.setFixedHeight(_HEIGHT)
        self._range = (0.0, 1.0)
        self.low_box = ValueBox("tensorRangeLow", "Lower end of the range", theme)
        self.high_box = ValueBox("tensorRangeHigh", "Upper end of the range", theme)
        self.track = RangeTrack(theme)
        row = QHBoxLayout(self)
        row.setContentsMargins(_SIDES // 2, 0, _SIDES // 2, 0)
        row.setSpacing(_SPACE)
        row.addWidget(self.low_box)
        row.addWidget(self.track, 1)
        row.addWidget(self.high_box)
        row.addSpacing(2 * _SPACE)
        self._buttons = [tool_button(action) for action in actions]
        for button in self._buttons:
            row.addWidget(button)
        self.track.range_moved.connect(self.range_chosen)
        self.low_box.committed.connect(self._on_low_entered)
        self.high_box.committed.connect(self._on_high_entered)

    def set_range(self, axis: tuple[float, float], coloring: Coloring) -> None:
        """Show the coloring's range on an axis."""
        self._range = coloring.low, coloring.high
        self.low_box.show_value(format_bound(coloring.low, coloring.high))
        self.high_box.show_value(format_bound(coloring.high, coloring.low))
        self.track.set_range(axis, coloring)

    def set_histogram(self, counts: Array | None, step: int = 1) -> None:
        """Show a histogram over the axis, of one of `step` values."""
        self.track.set_histogram(counts, step)

    def set_outline(self, counts: Array | None) -> None:
        """Outline the histogram of what is compared; None for nothing."""
        self.track.set_outline(counts)

    def set_backdrop(self, counts: Array | None, tip: str = "") -> None:
        """Show another histogram behind; None for nothing."""
        self.track.set_backdrop(counts, tip)

    def set_problem(self, text: str) -> None:
        """Show why there is no range; ``""`` if there is one."""
        for box in (self.low_box, self.high_box):
            box.setEnabled(not text)
            if text:
                box.show_value("—")
        self.track.set_problem(text)

    # Overrides of Qt methods

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(self._width_with(0), _HEIGHT)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        """Show as many buttons as fit; the menu of the range has all of them."""
        super().resizeEvent(event)
        count = len(self._buttons)
        while count and self._width_with(count) > self.width():
            count -= 1
        for place, button in enumerate(self._buttons):
            button.setVisible(place < count)

    def _width_with(self, count: int) -> int:
        """Return the least width with some of the buttons."""
        boxes = self.low_box.width() + self.high_box.width()
        shown = sum(
            min(button.sizeHint().width(), button.maximumWidth())
            for button in self._buttons[:count]
        )
        spaces = _SIDES + _SPACE * (count + 4)
        return boxes + self.track.minimumSizeHint().width() + shown + spaces

    # Slots

    @Slot(float)
    def _on_low_entered(self, value: float) -> None:
        if value < self._range[1]:
            self.range_chosen.emit(value, self._range[1])
            self.low_box.revert()
        else:
            self.low_box.refuse()

    @Slot(float)
    def _on_high_entered(self, value: float) -> None:
        if value > self._range[0]:
            self.range_chosen.emit(self._range[0], value)
            self.high_box.revert()
        else:
            self.high_box.refuse()
