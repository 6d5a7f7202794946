"""Several panels in one dock, whose header is their tabs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtWidgets import (
    QDockWidget,
    QFrame,
    QHBoxLayout,
    QTabWidget,
    QToolButton,
    QWidget,
)

from kuiper_studio.icons import icon

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kuiper_studio.panels.panel import Panel
    from kuiper_studio.theme import Theme

__all__ = ["TabbedPanels"]


class TabbedPanels(QTabWidget):
    """Panels as tabs; at the right the current panel's widgets and actions, and a close button.

    Parameters
    ----------
    panels : sequence of Panel
    theme : Theme
    dock : QDockWidget
        Closed by the button.
    """

    def __init__(self, panels: Sequence[Panel], theme: Theme, dock: QDockWidget) -> None:
        super().__init__(dock)
        self._panels, self._theme = tuple(panels), theme
        self.setDocumentMode(True)
        self.setAccessibleName(dock.windowTitle())
        self.tabBar().setAccessibleName(dock.windowTitle())
        self._corner = QFrame()
        self._corner.setProperty("role", "head")
        self._row = QHBoxLayout(self._corner)
        self._row.setContentsMargins(0, 0, 4, 0)
        self._row.setSpacing(2)
        self.setCornerWidget(self._corner, Qt.Corner.TopRightCorner)
        self._corner_parts: list[list[QWidget]] = []
        for panel in panels:
            self.addTab(panel, panel.windowTitle())
            panel.suffix_changed.connect(self._on_suffix_changed)
            self._corner_parts.append(self._make_corner_parts(panel))
        close = self._button()
        close.setIcon(icon("close", theme, "text2"))
        close.setToolTip(f"Close {dock.windowTitle().lower()}")
        close.setAccessibleName(close.toolTip())
        close.clicked.connect(dock.close)
        self.currentChanged.connect(self._on_current_changed)
        self._on_suffix_changed()
        self._on_current_changed(0)

    def _make_corner_parts(self, panel: Panel) -> list[QWidget]:
        """Return the header widgets of a panel, then its actions as buttons."""
        holder = QWidget()
        row = QHBoxLayout(holder)
        row.setContentsMargins(10, 0, 6, 0)
        row.setSpacing(10)
        for widget in panel.title_widgets():
            row.addWidget(widget)
        self._row.addWidget(holder)
        parts: list[QWidget] = [holder]
        for action in panel.title_actions():
            button = self._button()
            button.setDefaultAction(action)
            if action.menu() is not None:
                button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
            parts.append(button)
        return parts

    def _button(self) -> QToolButton:
        button = QToolButton()
        button.setProperty("dense", True)  # noqa: FBT003 - Qt's signature
        button.setIconSize(QSize(15, 15))
        self._row.addWidget(button)
        return button

    @Slot(int)
    def _on_current_changed(self, index: int) -> None:
        for place, parts in enumerate(self._corner_parts):
            for part in parts:
                part.setVisible(place == index)

    @Slot()
    def _on_suffix_changed(self, _text: str = "") -> None:
        for place, panel in enumerate(self._panels):
            self.setTabText(place, f"{panel.windowTitle()} {panel.suffix}".rstrip())
