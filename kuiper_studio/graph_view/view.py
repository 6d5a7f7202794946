"""GraphView: the canvas with its header."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QPoint, Signal, Slot
from PySide6.QtWidgets import QVBoxLayout, QWidget

from kuiper_studio.graph_view.canvas import GraphCanvas
from kuiper_studio.graph_view.find_bar import FindBar
from kuiper_studio.graph_view.header import Header
from kuiper_studio.item_models.module_runs import module_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from PySide6.QtCore import QPointF, QRectF

    from kuiper_studio.item_models.overlays import Overlay
    from kuiper_studio.session import StudioSession
    from kuiper_studio.theme import Theme

__all__ = ["GraphView"]

_MODEL_SUFFIX: Final = re.compile(r"(\.pnnx)?\.param$", re.IGNORECASE)

# With a banner above, the window then fits 540 pixels less its title.
_LEAST_HEIGHT: Final = 84


class GraphView(QWidget):
    """The graph of the open model.

    Parameters
    ----------
    session : StudioSession
    theme : Theme
    parent : QWidget, optional

    Signals
    -------
    zoom_changed
        The zoom, 1.0 for 100 %.
    tensor_requested
        An operand was double-clicked: the tensor view should get the focus.
    menu_requested
        Name of the operator, ``""`` for none, and the place on the screen.
    """

    zoom_changed = Signal(float)
    tensor_requested = Signal()
    menu_requested = Signal(object, QPoint)

    def __init__(
        self, session: StudioSession, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("graph")
        self.setMinimumHeight(_LEAST_HEIGHT)
        self._session = session
        self.header = Header(theme)
        self.find_bar = FindBar(session, theme)
        self.canvas = GraphCanvas(session, theme)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.header)
        column.addWidget(self.find_bar)
        column.addWidget(self.canvas, 1)
        self.header.zoom_in_requested.connect(self.zoom_in)
        self.header.zoom_out_requested.connect(self.zoom_out)
        self.header.zoom_reset_requested.connect(self.zoom_reset)
        self.header.fit_requested.connect(self.fit)
        self.header.crumb_clicked.connect(self._on_crumb_clicked)
        self.canvas.groups_changed.connect(self._on_place_changed)
        self.find_bar.closed.connect(self._on_find_closed)
        self.canvas.zoom_changed.connect(self.header.show_zoom)
        self.canvas.zoom_changed.connect(self.zoom_changed)
        self.canvas.tensor_requested.connect(self.tensor_requested)
        self.canvas.menu_requested.connect(self.menu_requested)
        session.overlaying.changed.connect(self._on_overlay_changed)
        session.graph_changed.connect(self._on_place_changed)
        session.graph_changed.connect(self._on_overlay_changed)
        session.selection_changed.connect(self._on_place_changed)
        self._on_place_changed()
        self._on_overlay_changed()
        self.header.show_zoom(self.canvas.zoom)

    def keyboard_target(self) -> QWidget:
        """What takes the keyboard when the user goes to the graph."""
        return self.canvas

    @property
    def zoom(self) -> float:
        """The zoom, 1.0 for 100 %."""
        return self.canvas.zoom

    @property
    def orientation(self) -> str:
        """Direction of the flow: ``left-right`` or ``top-down``."""
        return self.canvas.orientation

    @Slot()
    def fit(self) -> None:
        """Show the whole graph."""
        self.canvas.viewport.fit()

    @Slot()
    def zoom_in(self) -> None:
        """Zoom to the next larger level."""
        self.canvas.viewport.zoom_in()

    @Slot()
    def zoom_out(self) -> None:
        """Zoom to the next smaller level."""
        self.canvas.viewport.zoom_out()

    @Slot()
    def zoom_reset(self) -> None:
        """Zoom to 100 %."""
        self.canvas.viewport.zoom_reset()

    def center_on(self, name: str) -> None:
        """Centre on an operator."""
        self.canvas.center_on(name)

    def set_orientation(self, choice: str) -> None:
        """Choose the direction of the flow: ``auto``, ``left-right`` or ``top-down``."""
        self.canvas.set_orientation(choice)

    def turn_orientation(self) -> None:
        """Switch between left-right and top-down."""
        turned = "top-down" if self.orientation == "left-right" else "left-right"
        self.canvas.set_orientation(turned)

    def set_legend_visible(self, visible: bool) -> None:  # noqa: FBT001 - as QWidget.setVisible
        """Show or hide the legend."""
        self.canvas.set_legend_visible(visible)

    @property
    def overlay(self) -> Overlay | None:
        """What the boxes are coloured by; None where it is their family."""
        return self.canvas.overlay

    def show_keys(self, keys: Mapping[str, str]) -> None:
        """Show the keys of the window's commands, by id, in tool tips and boxes."""
        self.header.show_keys(keys)
        self.canvas.set_step_key(keys.get("debug.step", ""))

    def box_rect(self, name: str) -> QRectF:
        """Return the rectangle of an operator's box in the canvas; null when not laid out."""
        return self.canvas.box_rect(name)

    def operator_at(self, point: QPointF | QPoint) -> str:
        """Return the name of the operator under a point of the canvas, ``""`` for none."""
        return self.canvas.operator_at(point)

    @Slot()
    def _on_find_closed(self) -> None:
        if self.find_bar.isAncestorOf(self.focusWidget()):
            self.canvas.setFocus()

    @Slot()
    def _on_overlay_changed(self) -> None:
        overlay = self.canvas.overlay
        self.header.show_colors(overlay.title if overlay is not None else "")

    @Slot()
    @Slot(object)
    def _on_place_changed(self, _name: str = "") -> None:
        path = self._session.model_path
        model = _MODEL_SUFFIX.sub("", path.name) if path else ""
        graph, selected = self._session.graph, self._session.selected
        if self.canvas.is_grouped:
            self.header.show_breadcrumb(model, *(c.text for c in self.canvas.crumbs()))
            return
        module = module_path(graph.operator(selected)) if graph and selected else ()
        self.header.show_breadcrumb(model, ".".join(module))

    @Slot(int)
    def _on_crumb_clicked(self, number: int) -> None:
        crumbs = self.canvas.crumbs()
        if number < len(crumbs):
            self.canvas.pick_group(crumbs[number].group)
