"""The header of the graph: title, breadcrumb, menu of colours and zoom buttons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QMenu, QToolButton, QWidget
from typing_extensions import override

from kuiper_studio.icons import icon
from kuiper_studio.item_models.text import caption_text, tip_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent, QPaintEvent

    from kuiper_studio.theme import Theme

__all__ = ["Header"]

_HEIGHT = 30
_BUTTON = 24
_COLORS_MOST = 150


_SEPARATOR = " › "


class _Crumbs(QLabel):
    """A label that elides its text in the middle, of parts that can be clicked.

    Signals
    -------
    clicked : int
        Index of the part.
    """

    clicked = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self.parts: tuple[str, ...] = ()
        self._at = 0  # the part that Enter goes to, while it has the focus
        self.setMouseTracking(True)
        self.setAccessibleName("Groups around the selection")

    def show_parts(self, parts: tuple[str, ...]) -> None:
        """Show parts; where there is more than the model, Tab reaches them."""
        self.parts, self._at = parts, len(parts) - 1
        text = _SEPARATOR.join(parts)
        self.setText(text)
        self.setToolTip(tip_text(text))
        several = len(parts) > 1
        policy = Qt.FocusPolicy.TabFocus if several else Qt.FocusPolicy.NoFocus
        if self.focusPolicy() != policy:
            self.setFocusPolicy(policy)
        self._describe()

    def _describe(self) -> None:
        shown = self.parts[self._at] if self.hasFocus() and self.parts else self.text()
        self.setAccessibleDescription(shown)

    def _span(self, part: int) -> tuple[float, float]:
        """Return left end and width of a part."""
        metrics = self.fontMetrics()
        before = _SEPARATOR.join((*self.parts[:part], ""))
        left = float(metrics.horizontalAdvance(before))
        return left, float(metrics.horizontalAdvance(self.parts[part]))

    def part_at(self, x: float) -> int:
        """Return the part at a place; -1 for none, and where the text is elided."""
        metrics = self.fontMetrics()
        if metrics.horizontalAdvance(self.text()) > self.width():
            return -1
        for number in range(len(self.parts)):
            left, width = self._span(number)
            if left <= x <= left + width:
                return number
        return -1

    # Overrides of Qt methods

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self.part_at(event.position().x()) > 0:
            self.setCursor(Qt.CursorShape.PointingHandCursor)
        else:
            self.unsetCursor()

    @override
    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        part = self.part_at(event.position().x())
        if part > 0 and event.button() is Qt.MouseButton.LeftButton:
            self.clicked.emit(part)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Left and Right go from part to part, Enter shows the group of one."""
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()), 0)
        if step:
            self._at = min(max(self._at + step, 1), len(self.parts) - 1)
            self._describe()
            self.update()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self.clicked.emit(self._at)
        else:
            super().keyPressEvent(event)

    @override
    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._describe()
        self.update()

    @override
    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._describe()
        self.update()

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(0, super().minimumSizeHint().height())

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        elide = Qt.TextElideMode.ElideMiddle
        text = self.fontMetrics().elidedText(self.text(), elide, self.width())
        painter.drawText(self.rect(), self.alignment(), text)
        if self.hasFocus() and self.parts:
            left, width = self._span(self._at)
            if text != self.text():  # elided, so all of it
                left, width = 0.0, float(self.width())
            middle = (self.height() + self.fontMetrics().height()) / 2
            painter.fillRect(QRectF(left, middle, width, 2.0), self.palette().accent())
        painter.end()


class Header(QFrame):
    """Title, breadcrumb, menu of colours and zoom buttons.

    Signals
    -------
    zoom_out_requested, zoom_in_requested, zoom_reset_requested, fit_requested
        A button was pressed.
    crumb_clicked : int
        Index of a part of the breadcrumb behind the model.
    """

    crumb_clicked = Signal(int)

    zoom_out_requested = Signal()
    zoom_in_requested = Signal()
    zoom_reset_requested = Signal()
    fit_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setProperty("role", "bar")
        self.setFixedHeight(_HEIGHT)
        title = QLabel("Graph")
        title.setProperty("role", "subtitle")
        title.setFont(theme.ui_font(12, 600))
        self._crumbs = _Crumbs()
        self._crumbs.setTextFormat(Qt.TextFormat.PlainText)
        self._crumbs.setProperty("role", "secondary")
        self._crumbs.setObjectName("graphBreadcrumb")
        self._crumbs.clicked.connect(lambda part: self.crumb_clicked.emit(part - 1))
        self._zoom = self._button("", "Zoom to 100 %", "Ctrl+Home")
        self._zoom.setFont(theme.mono_font(11))
        self._zoom.setFixedWidth(52)
        self._colors = self._button("palette", "Colour by", "")
        self._colors.setObjectName("graphColors")
        self._colors.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        smaller = self._button("minus", "Zoom out", "Ctrl+−")
        larger = self._button("plus", "Zoom in", "Ctrl+=")
        fit = self._button("fit", "Fit graph", "Space")
        self._by_command = (
            (smaller, "view.zoomOut"), (self._zoom, "view.zoomReset"), (larger, "view.zoomIn")
        )  # fmt: skip
        row = QHBoxLayout(self)
        row.setContentsMargins(10, 0, 8, 0)
        row.setSpacing(6)
        row.addWidget(title)
        row.addWidget(self._crumbs, 1)
        row.addWidget(self._colors)
        for button, signal in (
            (smaller, self.zoom_out_requested),
            (self._zoom, self.zoom_reset_requested),
            (larger, self.zoom_in_requested),
            (fit, self.fit_requested),
        ):
            button.clicked.connect(signal)
            row.addWidget(button)
        self.show_zoom(1.0)

    def _button(self, icon_name: str, tip: str, keys: str) -> QToolButton:
        button = QToolButton()
        button.setProperty("dense", True)  # noqa: FBT003 - Qt's signature
        button.setAutoRaise(True)
        if icon_name:
            button.setIcon(icon(icon_name, self._theme))
            button.setIconSize(QSize(15, 15))
            button.setMinimumSize(_BUTTON, _BUTTON)
            button.setMaximumSize(_BUTTON, _BUTTON)
        button.setToolTip(f"{tip} ({keys})" if keys else tip)
        button.setAccessibleName(tip)
        return button

    def show_keys(self, keys: Mapping[str, str]) -> None:
        """Show the keys of the commands that the buttons carry out, by id."""
        for button, command in self._by_command:
            key = keys.get(command, "")
            tip = button.accessibleName()
            button.setToolTip(f"{tip} ({key})" if key else tip)

    def offer_colors(self, menu: QMenu) -> None:
        """Offer a menu of what operators may be coloured by."""
        self._colors.setMenu(menu)

    def show_colors(self, title: str) -> None:
        """Show what operators are coloured by; ``""`` for their family."""
        self._colors.setToolTip(tip_text(f"Coloured by {title}" if title else "Colour by"))
        shown = self._colors.fontMetrics().elidedText(
            title, Qt.TextElideMode.ElideMiddle, _COLORS_MOST
        )
        self._colors.setText(caption_text(shown))
        beside = Qt.ToolButtonStyle.ToolButtonTextBesideIcon
        only = Qt.ToolButtonStyle.ToolButtonIconOnly
        self._colors.setToolButtonStyle(beside if title else only)
        self._colors.setMaximumWidth(_COLORS_MOST + _HEIGHT if title else _BUTTON)

    @property
    def breadcrumb(self) -> str:
        """Breadcrumb: the model, and the groups of what is selected."""
        return self._crumbs.text()

    def show_breadcrumb(self, *parts: str) -> None:
        """Show the parts of the breadcrumb."""
        self._crumbs.show_parts(tuple(filter(None, parts)))

    def show_zoom(self, zoom: float) -> None:
        """Show the zoom in per cent."""
        percent = 100 * zoom
        self._zoom.setText(f"{percent:.0f} %" if percent >= 1 else f"{percent:.1g} %")
