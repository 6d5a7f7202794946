"""Header of a dock: bold title, monospaced suffix, buttons and a close button."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QSizePolicy, QToolButton, QWidget
from typing_extensions import override

from kuiper_studio.elided_label import ElidedLabel
from kuiper_studio.icons import icon

if TYPE_CHECKING:
    from PySide6.QtGui import QAction

    from kuiper_studio.panels.panel import Panel
    from kuiper_studio.theme import Theme

__all__ = ["DockTitleBar"]

HEIGHT = 30


class DockTitleBar(QFrame):
    """Header for QDockWidget.setTitleBarWidget, and for any other pane.

    The labels let mouse events through, so that the dock can still be dragged and floated.

    Signals
    -------
    close_requested
        The close button was pressed.
    """

    close_requested = Signal()

    def __init__(self, title: str, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setProperty("role", "head")
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        bold = QLabel(title)
        bold.setProperty("role", "subtitle")
        self._suffix = ElidedLabel("mono2")
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(10, 0, 4, 0)
        self._row.setSpacing(2)
        self._row.addWidget(bold)
        self._row.addSpacing(4)
        self._row.addWidget(self._suffix)
        self._row.addStretch(1)
        self._close = self._make_button("close", f"Close {title}")
        self._close.clicked.connect(self.close_requested)
        self._row.addWidget(self._close)

    @classmethod
    def of(cls, panel: Panel, theme: Theme) -> DockTitleBar:
        """Header with a panel's title, suffix, widgets and actions; it follows the suffix."""
        bar = cls(panel.windowTitle(), theme)
        bar.set_suffix(panel.suffix)
        panel.suffix_changed.connect(bar.set_suffix)
        for widget in panel.title_widgets():
            bar.add_widget(widget)
            bar.add_gap(8)
        for action in panel.title_actions():
            bar.add_action_button(action)
        return bar

    def set_suffix(self, text: str) -> None:
        """Change the text beside the title."""
        self._suffix.setText(text)

    def add_widget(self, widget: QWidget) -> None:
        """Add a widget at the right, before the close button."""
        self._row.insertWidget(self._row.count() - 1, widget)

    def add_gap(self, pixels: int) -> None:
        """Add space at the right, before the close button."""
        self._row.insertSpacing(self._row.count() - 1, pixels)

    def add_action_button(self, action: QAction) -> QToolButton:
        """Add an action at the right, before the close button; one with a menu opens it."""
        button = self._make_button("", action.toolTip())
        button.setDefaultAction(action)
        if action.menu() is not None:
            button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.add_widget(button)
        return button

    def _make_button(self, icon_name: str, tip: str) -> QToolButton:
        button = QToolButton(self)
        button.setProperty("dense", True)  # noqa: FBT003 - Qt's signature
        button.setIconSize(QSize(15, 15))
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.setToolTip(tip)
        button.setAccessibleName(tip)
        if icon_name:
            button.setIcon(icon(icon_name, self._theme, "text2"))
        return button

    # Overrides of Qt methods

    @override
    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width(), HEIGHT)

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(super().minimumSizeHint().width(), HEIGHT)
