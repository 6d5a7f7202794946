"""The banner over the centre: where a comparison differs, and why an operator does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from kuiper_studio.badges import BADGE_SIZE, paint_badge
from kuiper_studio.elided_label import ElidedLabel, ElidedLines
from kuiper_studio.item_models.comparison_rows import BORN
from kuiper_studio.item_models.comparison_texts import (
    MOST_SHOWN,
    describe_beginning,
    explain_origin,
    format_share,
    format_verdict,
    shown_reasons,
    split_reason,
)
from kuiper_studio.item_models.difference_marks import operator_marks
from kuiper_studio.panels.message_banner import make_close_button, paint_strip
from kuiper_studio.panels.panel import Panel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from PySide6.QtGui import QAction, QKeyEvent, QPaintEvent, QResizeEvent

    from engine.comparison import Comparison, Origin
    from engine.comparison.reasons import Reason
    from kuiper_studio.item_models.comparison_rows import DifferenceLook
    from kuiper_studio.item_models.difference_marks import DifferenceMark
    from kuiper_studio.session import StudioSession
    from kuiper_studio.theme import Theme

__all__ = ["OriginBanner"]

_HEIGHT: Final = 84
_BAR: Final = QSize(112, 6)
_ROOMY: Final = 840  # pixels, where buttons have whole texts
# Of actions where there is less room, for the reasons are read first.
_SHORT: Final = {
    "analyse.worstElement": "Worst element",
    "analyse.nextOrigin": "Next",
    "analyse.report": "Report…",
    "analyse.extract": "Extract…",
}


class _Badge(QWidget):
    """The badge of an operator."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme, self._look = theme, BORN
        self.setFixedSize(20, 20)

    def show_look(self, look: DifferenceLook) -> None:
        self._look = look
        self.update()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        centre = QRectF(self.rect()).center()
        paint_badge(painter, self._theme, self._look, centre, BADGE_SIZE)
        painter.end()


class _ShareBar(QWidget):
    """A bar as long as the share of the difference that a reason explains."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme, self._share = theme, 0.0
        self.setFixedHeight(_BAR.height())

    def show_share(self, share: float) -> None:
        self._share = share
        self.update()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), self._theme.color("line"))
        filled = QRectF(0, 0, self._share * self.width(), self.height())
        painter.fillRect(filled, self._theme.color("div"))
        painter.end()


class _Reasons(QWidget):
    """The likeliest reason, its share and the change to make, and a line for each other one."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._first = ElidedLines("subtitle", 2)
        self._bar = _ShareBar(theme)
        self._share, self._change = ElidedLabel("secondary"), ElidedLabel("secondary")
        self._others = [(QLabel(), ElidedLabel("secondary")) for _ in range(MOST_SHOWN - 1)]
        share = QHBoxLayout()
        share.setSpacing(8)
        share.addWidget(self._bar)
        share.addWidget(self._share)
        share.addStretch(1)
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(8)
        grid.setVerticalSpacing(2)
        grid.setColumnStretch(1, 1)
        grid.addWidget(self._first, 0, 0, 1, 2)
        grid.addLayout(share, 1, 0, 1, 2)
        grid.addWidget(self._change, 2, 0, 1, 2)
        for row, (other, text) in enumerate(self._others, start=3):
            other.setProperty("role", "mono2")
            grid.addWidget(other, row, 0)
            grid.addWidget(text, row, 1, Qt.AlignmentFlag.AlignLeft)
        grid.setRowStretch(3 + len(self._others), 1)

    def fit(self, *, roomy: bool) -> None:
        """Leave less room to the bar than to its share where there is little."""
        self._bar.setFixedWidth(_BAR.width() if roomy else _BAR.width() // 3)

    def show_reasons(self, reasons: Sequence[Reason], unexplained: str) -> None:
        """Show reasons, the likeliest first; without any, that nothing explains."""
        first, change = unexplained, ""
        if reasons:
            self._bar.show_share(reasons[0].explains)
            self._share.setText(f"explains {format_share(reasons[0])}")
            # Beside others there is no room for a line of its own.
            first, change = (
                split_reason(reasons[0]) if len(reasons) == 1 else (reasons[0].text, "")
            )
        self._first.set_most(1 if len(reasons) > 2 else 2)
        self._change.setText(change)
        self._show(first, reasons)

    def show_note(self, text: str) -> None:
        """Show a text instead of reasons."""
        self._first.set_most(3)
        self._change.setText("")
        self._show(text, ())

    def _show(self, first: str, reasons: Sequence[Reason]) -> None:
        self._first.show_text(first, _change_of(reasons[0]) if len(reasons) > 1 else "")
        self._bar.setVisible(bool(reasons))
        self._share.setVisible(bool(reasons))
        self._change.setVisible(bool(self._change.text()))
        for place, (share, text) in enumerate(self._others, start=1):
            for label in (share, text):
                label.setVisible(place < len(reasons))
            if place < len(reasons):
                share.setText(format_share(reasons[place]))
                text.show_text(reasons[place].text, _change_of(reasons[place]))


class OriginBanner(Panel):
    """Shows why the selected operator is an origin, and offers what to do about it.

    It appears with an origin of a comparison. While other operators are selected it stays and
    says how each compares, so that the graph below does not move. Once closed it returns with
    another origin, or with the next comparison.

    Parameters
    ----------
    session : StudioSession
    theme : Theme
    actions : sequence of QAction
        What the banner offers, the likeliest first.

    Signals
    -------
    shown_changed
        The banner has something to show, or nothing any more.
    """

    shown_changed = Signal()

    def __init__(
        self,
        session: StudioSession,
        theme: Theme,
        actions: Sequence[QAction],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__("origin", "Why it differs", session, theme, parent)
        self._origin: Origin | None = None
        self._is_shown = False
        self._dismissed: set[str] = set()
        self._marks: Mapping[str, DifferenceMark] = {}
        self._badge = _Badge(theme)
        self.verdict = ElidedLabel("title")
        self.text = ElidedLines("secondary", 3)
        self._reasons = _Reasons(theme)
        self.buttons = [_make_button(action) for action in actions]
        self.close_button = make_close_button(theme)
        self._build()
        self.close_button.clicked.connect(self._dismiss)
        session.comparing.changed.connect(self._on_compared)
        session.selection_changed.connect(self._refresh)
        theme.changed.connect(self.update)

    # Building

    def _build(self) -> None:
        self.setFixedHeight(_HEIGHT)
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(16, 9, 8, 8)
        self._row.setSpacing(14)
        self._row.addLayout(self._make_head())
        self._row.addWidget(_make_divider())
        self._row.addWidget(self._reasons)
        self._row.addLayout(self._make_buttons())
        self._row.addWidget(self.close_button, 0, Qt.AlignmentFlag.AlignTop)

    def _make_head(self) -> QVBoxLayout:
        title = QHBoxLayout()
        title.setSpacing(8)
        title.addWidget(self._badge)
        title.addWidget(self.verdict)
        title.addStretch(1)
        column = QVBoxLayout()
        column.setSpacing(1)
        column.addLayout(title)
        column.addWidget(self.text)
        column.addStretch(1)
        return column

    def _make_buttons(self) -> QGridLayout:
        grid = QGridLayout()
        grid.setSpacing(6)
        for place, button in enumerate(self.buttons):
            grid.addWidget(button, place // 2, place % 2)
        self.buttons[0].setProperty("role", "primary")
        grid.setRowStretch(2, 1)
        return grid

    # What is shown

    @property
    def is_shown(self) -> bool:
        """Whether there is something to show."""
        return self._is_shown

    @Slot()
    def _on_compared(self) -> None:
        self._dismissed.clear()
        self._marks = operator_marks(self.session)
        self._origin = None
        self._refresh()

    @Slot()
    def _refresh(self) -> None:
        comparing, selected = self.session.comparing, self.session.selected
        comparison, origin = comparing.comparison, comparing.origins.get(selected)
        was_shown = self._is_shown
        if comparison is None or not comparing.origins:
            self._is_shown = False
        elif origin is not None:
            self._is_shown = selected not in self._dismissed
            if origin is not self._origin:
                self._show_origin(comparison, origin)
        elif was_shown:
            self._show_other(comparison, selected)
        self._origin = origin
        if self._is_shown != was_shown:
            self.shown_changed.emit()

    def _show_origin(self, comparison: Comparison, origin: Origin) -> None:
        reasons = shown_reasons(origin)
        self._show_head(comparison, BORN, origin.text)
        self._reasons.show_reasons(reasons, origin.unexplained)
        # A text that nothing explains names all operators that may be to blame.
        for place, stretch in ((0, 4 if reasons else 8), (2, 5)):
            self._row.setStretch(place, stretch)
        verdict = format_verdict(comparison)
        self.setAccessibleDescription(f"{verdict}\n{explain_origin(origin)}")

    def _show_other(self, comparison: Comparison, name: str) -> None:
        mark = self._marks.get(name)
        text = f"{name!r}: {mark.text}" if mark is not None else ""
        note = describe_beginning(comparison)
        self._show_head(comparison, mark.look if mark is not None else BORN, text)
        self._reasons.show_note(note)
        self.setAccessibleDescription("\n".join([format_verdict(comparison), text, note]))

    def _show_head(self, comparison: Comparison, look: DifferenceLook, text: str) -> None:
        self._badge.show_look(look)
        self.verdict.setText(format_verdict(comparison).removeprefix("≠ "))  # as the badge
        self.text.setText(text)

    @Slot()
    def _dismiss(self) -> None:
        if self._is_shown:
            self._dismissed.add(self.session.selected)
            self._is_shown = False
            self.shown_changed.emit()

    # Overrides

    @override
    def keyboard_target(self) -> QWidget:
        return self.buttons[0]

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self._dismiss()
        else:
            super().keyPressEvent(event)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        roomy = self.width() >= _ROOMY
        self._reasons.fit(roomy=roomy)
        for button in self.buttons:
            whole = button.accessibleName()
            button.setText(whole if roomy else _SHORT.get(button.objectName(), whole))

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        paint_strip(self, self.theme, "panel", "div", "line")


def _change_of(reason: Reason) -> str:
    """Return the change to make: where there is little room, that must be read."""
    return split_reason(reason)[1]


def _make_button(action: QAction) -> QPushButton:
    button = QPushButton(action.text().replace("&", ""))
    button.setAccessibleName(button.text())
    button.setObjectName(action.objectName())
    button.setIcon(action.icon())

    def follow() -> None:
        button.setEnabled(action.isEnabled())
        button.setToolTip(action.toolTip())  # says what is missing

    follow()
    action.changed.connect(follow)
    button.clicked.connect(action.trigger)
    return button


def _make_divider() -> QFrame:
    line = QFrame()
    line.setProperty("role", "divider")
    return line
