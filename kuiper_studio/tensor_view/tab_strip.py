"""The tabs of the tensor view: one that follows the session, and locked ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import QAction, QFontMetrics, QPainter
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QSizePolicy,
    QTabBar,
    QToolButton,
    QWidget,
)
from typing_extensions import override

from kuiper_studio.elided_label import ElidedLabel
from kuiper_studio.focus_ring import is_by_keyboard
from kuiper_studio.icons import icon, pixmap
from kuiper_studio.item_models.text import caption_text, elided
from kuiper_studio.tensor_view.sides import SideBar
from kuiper_studio.tensor_view.tool_strip import tool_button

if TYPE_CHECKING:
    from PySide6.QtGui import QFocusEvent, QPaintEvent, QResizeEvent

    from kuiper_studio.theme import Theme

__all__ = ["TabLabel", "TabStrip", "TensorTabs"]

_HEIGHT: Final = 30
_ICON: Final = 15
_CLOSE: Final = 16
_PADDING: Final = 10
_LEAST_AXES: Final = 90  # width below which nothing of the words is left
_LEAST_TABS: Final = 180  # width that the tabs keep, with buttons to scroll them
_LONGEST: Final = 28  # characters of a name


@dataclass(frozen=True, slots=True)
class TabLabel:
    """What a tab shows.

    Attributes
    ----------
    title : str
    number : str
        The operand's name, after the title.
    icon : str
    tip : str
    """

    title: str
    number: str = ""
    icon: str = "target"
    tip: str = ""


class TensorTabs(QTabBar):
    """Tabs with an icon, a name, and an operand in a fainter colour.

    Parameters
    ----------
    theme : Theme
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("tensorTabs")
        self.setAccessibleName("Tensors")
        self._theme = theme
        self._hovered = -1
        self._ringed = False
        self.setDrawBase(False)
        self.setExpanding(False)
        self.setMouseTracking(True)
        self.setUsesScrollButtons(True)
        self.setFixedHeight(_HEIGHT)
        theme.changed.connect(self.update)

    def label(self, index: int) -> TabLabel:
        """Return the label of a tab."""
        found = self.tabData(index)
        return found if isinstance(found, TabLabel) else TabLabel("")

    def set_label(self, index: int, label: TabLabel) -> None:
        """Change the label of a tab, if it differs."""
        if label == self.tabData(index):
            return
        self.setTabData(index, label)
        text = f"{label.title} {label.number}".strip()
        self.setTabToolTip(index, label.tip or text)
        # The text is the accessible name; it is painted below.
        self.setTabText(index, caption_text(text))
        self.updateGeometry()  # which the text alone does not while the bar is hidden

    def _paint_tab(self, painter: QPainter, index: int) -> None:
        theme, rect, label = self._theme, self.tabRect(index), self.label(index)
        current = index == self.currentIndex()
        surface = "base" if current else "hover" if index == self._hovered else "panel"
        painter.fillRect(rect, theme.color(surface))
        painter.fillRect(QRect(rect.right(), rect.top(), 1, rect.height()), theme.color("line"))
        if current:
            painter.fillRect(
                QRect(rect.left(), rect.top(), rect.width(), 2), theme.color("focus")
            )
        else:
            painter.fillRect(
                QRect(rect.left(), rect.bottom(), rect.width(), 1), theme.color("line")
            )
        token = "text" if current else "text2"
        glyph = pixmap(label.icon, theme, token, _ICON, self.devicePixelRatioF())
        x = rect.left() + _PADDING
        painter.drawPixmap(QPoint(x, rect.center().y() - _ICON // 2), glyph)
        x += _ICON + 6
        flags = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        for text, font, ink in (
            (elided(label.title, _LONGEST), theme.ui_font(12, 600 if current else 400), token),
            (elided(label.number, _LONGEST), theme.mono_font(), "text3"),
        ):
            painter.setFont(font)
            painter.setPen(theme.color(ink))
            width = QFontMetrics(font).horizontalAdvance(text)
            painter.drawText(QRect(x, rect.top() + 1, width + 2, rect.height()), flags, text)
            x += width + 6
        if current and self._ringed:
            painter.setPen(theme.color("focus"))
            painter.drawRect(rect.adjusted(3, 4, -4, -4))

    def _set_hovered(self, index: int) -> None:
        if index != self._hovered:
            self._hovered = index
            self.update()

    # Overrides of Qt methods

    @override
    def tabSizeHint(self, index: int) -> QSize:
        label = self.label(index)
        # As wide as when it is selected, so that selecting moves nothing.
        title = QFontMetrics(self._theme.ui_font(12, 600))
        number = QFontMetrics(self._theme.mono_font())
        width = 2 * _PADDING + _ICON + 6
        width += title.horizontalAdvance(elided(label.title, _LONGEST))
        if label.number:
            width += 6 + number.horizontalAdvance(elided(label.number, _LONGEST))
        return QSize(width + (_CLOSE + 4 if index else 4), _HEIGHT)

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(min(self.sizeHint().width(), _LEAST_TABS), _HEIGHT)

    @override
    def minimumTabSizeHint(self, index: int) -> QSize:
        return self.tabSizeHint(index)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for index in range(self.count()):
            self._paint_tab(painter, index)
        painter.end()

    @override
    def focusInEvent(self, event: QFocusEvent) -> None:
        self._ringed = is_by_keyboard(event)
        super().focusInEvent(event)

    @override
    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._ringed = False
        super().focusOutEvent(event)

    @override
    def event(self, event: QEvent) -> bool:
        if event.type() in {QEvent.Type.HoverMove, QEvent.Type.HoverEnter}:
            self._set_hovered(self.tabAt(self.mapFromGlobal(self.cursor().pos())))
        elif event.type() in {QEvent.Type.HoverLeave, QEvent.Type.Leave}:
            self._set_hovered(-1)
        return super().event(event)


class TabStrip(QFrame):
    """The tabs, a lock button, and a description of the shown tensor.

    Parameters
    ----------
    theme : Theme
    lock : QAction
        Keeps the current tensor in its own tab.
    channels_last : QAction
        Switched on where the last dimension is read as the channel; marked then.

    Attributes
    ----------
    tabs : TensorTabs
        The first one follows the session and cannot be closed.
    sides : SideBar
        Shown for an operand that was compared.

    Signals
    -------
    close_requested
        Index of a tab.
    menu_requested
        Global position for the menu.
    """

    close_requested = Signal(int)
    menu_requested = Signal(object)

    def __init__(
        self,
        theme: Theme,
        lock: QAction,
        channels_last: QAction,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setObjectName("tensorTabStrip")
        self.setFixedHeight(_HEIGHT)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.tabs = TensorTabs(theme)
        self.tabs.addTab("")
        self.sides = SideBar()
        self.sides.hide()
        self._text = QLabel()
        self._text.setObjectName("tensorShape")
        self._text.setProperty("role", "mono2")
        self._axes = ElidedLabel("secondary")
        self._axes.setObjectName("tensorAxes")
        self._mark = tool_button(channels_last)
        self._mark.setObjectName("channelsLastMark")
        self._more = QToolButton()
        self._more.setIcon(icon("more", theme))
        self._more.setIconSize(QSize(_ICON, _ICON))
        self._more.setProperty("dense", True)  # noqa: FBT003 - Qt's signature
        self._more.setFixedSize(24, 24)
        self._more.setToolTip("All commands for tensors")
        self._more.setAccessibleName("Tensor menu")
        self._more.clicked.connect(self._on_more)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 6, 0)
        row.setSpacing(2)
        row.addWidget(self.tabs)
        row.addWidget(tool_button(lock))
        row.addStretch(1)
        row.addWidget(self.sides)
        row.addWidget(self._mark)
        row.addWidget(self._axes)
        row.addSpacing(6)
        row.addWidget(self._text)
        row.addSpacing(4)
        row.addWidget(self._more)
        self._mark.hide()
        theme.changed.connect(self.update)

    def add_locked(self, label: TabLabel) -> int:
        """Add a tab that can be closed; return its index."""
        index = self.tabs.addTab("")
        self.tabs.set_label(index, label)
        close = QToolButton()
        close.setIcon(icon("close", self._theme, "text3"))
        close.setIconSize(QSize(11, 11))
        close.setStyleSheet("QToolButton { min-width: 0; min-height: 0; padding: 0; }")
        close.setFixedSize(_CLOSE, _CLOSE)
        close.setToolTip("Close this tab")
        close.setAccessibleName(f"Close {label.title}")
        close.clicked.connect(self._on_close_clicked)
        self.tabs.setTabButton(index, QTabBar.ButtonPosition.RightSide, close)
        return index

    def show_text(
        self,
        text: str,
        *,
        axes: str = "",
        words: bool = False,
        tip: str = "",
        channels_last: bool = False,
    ) -> None:
        """Show a shape, or a description, at the right, and mark how the shape is read.

        Parameters
        ----------
        text : str
        axes : str
            What the dimensions of the shape mean.
        words : bool
            Whether `text` is a description.
        tip : str
        channels_last : bool
        """
        self._mark.setVisible(channels_last)
        self._axes.setText(axes)
        self._text.setText(text)
        self._text.setToolTip(tip)
        role = "secondary" if words else "mono2"
        if self._text.property("role") != role:
            self._text.setProperty("role", role)
            self._text.style().unpolish(self._text)
            self._text.style().polish(self._text)
        self._make_room()

    def _make_room(self) -> None:
        """Shorten what the dimensions mean and the names of the sides before tabs and shape.

        The shape goes before a side has no name: tool tips and properties have it, too.
        """
        layout, tabs, axes = self.layout(), self.tabs, self._axes
        axes.show()
        self._text.show()
        if layout is None:
            return
        if not self.sides.isHidden():
            self.sides.name_sides(briefly=False)
            layout.invalidate()
            spare = self.width() - layout.minimumSize().width()
            self.sides.name_sides(briefly=spare < 0)
            layout.invalidate()
            axes.hide()
            self._text.setVisible(self.width() >= layout.minimumSize().width())
            axes.show()
        layout.invalidate()
        left = self.width() - layout.minimumSize().width() + axes.minimumSizeHint().width()
        left -= tabs.sizeHint().width() - tabs.minimumSizeHint().width()  # without scrolling
        axes.setVisible(left >= min(axes.sizeHint().width(), _LEAST_AXES))
        axes.setMaximumWidth(max(left, 0))

    @Slot()
    def _on_close_clicked(self) -> None:
        button = self.sender()
        for index in range(self.tabs.count()):
            if self.tabs.tabButton(index, QTabBar.ButtonPosition.RightSide) is button:
                self.close_requested.emit(index)
                return

    @Slot()
    def _on_more(self) -> None:
        below = QPoint(0, self._more.height())
        self.menu_requested.emit(self._more.mapToGlobal(below))

    # Overrides of Qt methods

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        self._make_room()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), self._theme.color("panel"))
        painter.fillRect(
            QRect(0, self.height() - 1, self.width(), 1), self._theme.color("line")
        )
        painter.end()
