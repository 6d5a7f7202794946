"""The canvas that shows the graph and handles its events.

It paints the scene itself instead of holding a graphics item per operator. NumPy finds the
visible rectangles, so the cost of panning depends only on what is on the screen.
"""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import (
    QEvent,
    QPoint,
    QPointF,
    QRectF,
    Qt,
    QTimer,
    Signal,
    Slot,
)
from PySide6.QtGui import QContextMenuEvent, QHelpEvent, QNativeGestureEvent, QPainter, QPen
from PySide6.QtWidgets import QToolTip, QWidget
from typing_extensions import override

from engine.text import format_count
from kuiper_studio.background import Background, Done
from kuiper_studio.focus_ring import draw_focus_ring, is_by_keyboard
from kuiper_studio.graph_view.box_summaries import BoxSummaries
from kuiper_studio.graph_view.cards import CHEVRON_ROOM, title_left
from kuiper_studio.graph_view.geometry import Geometry
from kuiper_studio.graph_view.grouping import Grouping, Groups, find_groups_of
from kuiper_studio.graph_view.legend import LEGEND_HEIGHT
from kuiper_studio.graph_view.minimap import Minimap
from kuiper_studio.graph_view.painter import FULL_FROM, ScenePainter
from kuiper_studio.graph_view.pointer import Pointer
from kuiper_studio.graph_view.scene import Scene, lay_out
from kuiper_studio.graph_view.state import NONE, SceneState
from kuiper_studio.graph_view.surroundings import Surroundings
from kuiper_studio.graph_view.tips import box_tip, describe, edge_tip, group_tip
from kuiper_studio.graph_view.uncollected import UncollectedGraph
from kuiper_studio.graph_view.viewport import ANIMATION_MS, Viewport
from kuiper_studio.graph_view.walk import Step, neighbour
from kuiper_studio.item_models.text import tip_text
from kuiper_studio.layout import Layout, Orientation
from kuiper_studio.session import RunState

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from PySide6.QtGui import (
        QFocusEvent,
        QKeyEvent,
        QMouseEvent,
        QPaintEvent,
        QResizeEvent,
        QWheelEvent,
    )

    from kuiper_studio.engine_service.summary import Summary
    from kuiper_studio.graph_view.anchoring import Anchor
    from kuiper_studio.graph_view.folding import Crumb
    from kuiper_studio.item_models.overlays import Overlay
    from kuiper_studio.item_models.statuses import DisplayStatus
    from kuiper_studio.layout.groups import Group, OutlineRow
    from kuiper_studio.session import Record, StudioSession
    from kuiper_studio.theme import Theme

__all__ = ["GraphCanvas"]

_LAID_OUT_AT_ONCE: Final = 600  # operators; larger graphs are laid out on another thread
_REFOLDED_AT_ONCE: Final = 400  # edges; of more the picture before is shown meanwhile
_WIDE: Final = 1.6
_WHEEL_DOUBLING: Final = 480.0  # eighths of a degree that double the zoom
_WHEEL_PAN: Final = 0.5
_REST_MS: Final = 300  # before values in closed groups are measured
_PREPARED_AT_ONCE: Final = 100  # boxes of closed groups, between two events
_LEAST_WITH_LEGEND: Final = 110  # pixels


class GraphCanvas(QWidget):
    """The canvas of the graph.

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
        An operand was double-clicked.
    menu_requested
        Name of the operator, ``""`` for none, and the place on the screen.
    groups_changed
        A group was clicked, opened or closed, or groups are shown now or no longer.
    """

    zoom_changed = Signal(float)
    tensor_requested = Signal()
    menu_requested = Signal(object, QPoint)
    groups_changed = Signal()

    def __init__(
        self, session: StudioSession, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("graphCanvas")
        self.setAccessibleName("Graph")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setMouseTracking(True)
        self.setMinimumSize(160, 54)
        self._session, self._theme = session, theme
        self.viewport = Viewport(self, session, self._get_legend_height)
        self._surroundings = Surroundings(theme, self.viewport)
        self._pointer = Pointer(self.viewport, self._click)
        self._scene = Scene()
        self._state = SceneState(self._scene, session)
        self._summaries = BoxSummaries(session, self._state)
        self._geometry: Geometry | None = None
        self._painter: ScenePainter | None = None
        self._step_key = "F10"
        self._minimap: Minimap | None = None
        # Of the scene before, painted until the present one is laid out.
        self._former: tuple[ScenePainter | None, Minimap | None] = None, None
        self._choice: Orientation | None = None
        self._grouping = Grouping()
        self._outline: tuple[OutlineRow, ...] | None = None  # made when somebody asks
        self._anchor: Anchor | None = None  # what stays in its place when the layout is done
        # When the layout is done: box to centre on, and whether the selected one is revealed.
        self._sought, self._reveals = NONE, False
        self._awaited = ""  # operator to centre on when its groups are known
        self._legend_visible = True
        self._focused_by_keyboard = False
        self._layout_cancel, self._layout_number = threading.Event(), 0
        self._uncollected = UncollectedGraph()
        self._layout_waits = False  # waits until the other views have taken the graph
        self._flow = self.orientation  # of the current or pending layout
        self._background = Background(self)
        self._background.finished.connect(self._on_answered)
        self._go_on, self._rest, self._settle, self._ahead = (
            QTimer(self, singleShot=True, interval=delay)
            for delay in (0, _REST_MS, ANIMATION_MS, 0)
        )
        self._connect()
        self._on_graph_changed()

    def _connect(self) -> None:
        session = self._session
        self.viewport.moved.connect(self._on_moved)
        self._go_on.timeout.connect(self.update)
        self._settle.timeout.connect(self._on_settled)
        self._rest.timeout.connect(self._measure_groups)
        self._rest.timeout.connect(self._prepare_boxes)
        self._ahead.timeout.connect(self._prepare_boxes)
        session.graph_changed.connect(self._on_graph_changed)
        session.state_changed.connect(self._on_position_changed)
        session.position_changed.connect(self._on_position_changed)
        session.failed.connect(self._on_position_changed)
        session.stepped.connect(self._on_stepped)
        session.stepped_back.connect(self._on_stepped_back)
        session.values_reset.connect(self._on_values_reset)
        session.tensors.recalled.connect(self._on_recalled)
        session.supplies_changed.connect(self._on_supplies_changed)
        session.selection_changed.connect(self._on_selection_changed)
        session.breakpoints_changed.connect(self._on_breakpoints_changed)
        session.comparing.changed.connect(self._on_compared)
        session.finding.changed.connect(self._on_found)
        session.overlaying.changed.connect(self._on_overlay_changed)
        session.measuring.changed.connect(self._on_measured)
        session.bookmarks.changed.connect(self._on_bookmarks_changed)
        session.settled.connect(self._describe)
        session.settled.connect(self._rest.start)
        self._theme.changed.connect(self._on_theme_changed)

    # What is shown

    @property
    def zoom(self) -> float:
        """View pixels per scene pixel."""
        return self.viewport.camera.zoom

    @property
    def orientation(self) -> Orientation:
        """Direction of the flow."""
        if self._choice is not None:
            return self._choice
        wide = self.width() > _WIDE * self.height()
        return "left-right" if wide else "top-down"

    @property
    def laid_out(self) -> bool:
        """Whether the open graph is laid out, and grouped."""
        return self._geometry is not None and not self._grouping.is_pending

    def box_rect(self, name: str) -> QRectF:
        """Rectangle of an operator's box in view coordinates; null when not laid out."""
        if self._geometry is None or name not in self._scene.index:
            return QRectF()
        return self.viewport.camera.rect_to_view(self._geometry.rect(self._scene.index[name]))

    def operator_at(self, point: QPointF | QPoint) -> str:
        """Return the name of the operator under a view point, ``""`` for none."""
        box = self.viewport.box_at(QPointF(point))
        if box == NONE or self._scene.boxes[box].card is not None:
            return ""
        return self._scene.boxes[box].name

    def group_at(self, point: QPointF | QPoint) -> Group | None:
        """Return the closed group, or the open one by its title, under a view point."""
        box = self.viewport.box_at(QPointF(point))
        if box != NONE:
            card = self._scene.boxes[box].card
            return None if card is None else card.group
        frame = self.viewport.title_at(QPointF(point))
        return None if frame == NONE else self._scene.frames[frame].group

    def operand_at(self, point: QPointF | QPoint) -> str:
        """Return the operand whose edge is under a view point, ``""`` for none."""
        edge = self.viewport.edge_at(QPointF(point))
        return "" if edge == NONE else self._scene.edges[edge].operand

    def tip_at(self, point: QPointF) -> str:
        """Return the tool tip for a view point."""
        box, edge = self.viewport.box_at(point), self.viewport.edge_at(point)
        if box != NONE:
            return box_tip(self._state, self._session, box)
        frame = self.viewport.title_at(point)
        if frame != NONE:
            return group_tip(self._scene.frames[frame].group)
        return edge_tip(self._state, self._session, edge) if edge != NONE else ""

    def box_state(self, name: str) -> DisplayStatus:
        """Return the status that an operator's box shows."""
        return self._state.shown(self._scene.index[name])

    @property
    def overlay(self) -> Overlay | None:
        """What operators are coloured by; None where it is their family."""
        return self._state.operator_overlay

    def summary(self, name: str) -> Summary | None:
        """Return the summary that an operator's box shows; None while it has none."""
        return self._state.summaries.get(self._scene.index[name])

    def minimap_rect(self) -> QRectF:
        """Frame of the minimap in view coordinates; null when it is not shown."""
        return self.viewport.map_frame

    def scene_rect(self) -> QRectF:
        """The part of the canvas that shows the scene; legend and minimap are beside it."""
        return self.viewport.scene_rect

    def visible_area(self) -> QRectF:
        """The visible part of the scene."""
        return self.viewport.camera.visible

    # Navigation

    def center_on(self, name: str) -> None:
        """Centre on an operator."""
        if self._grouping.is_pending and self.is_grouped:
            self._awaited = name
            return
        box = self._scene.index.get(name, NONE)
        if box != NONE and self._scene.boxes[box].card is not None:
            self._open_to(name)
            box = self._scene.index[name]
        if self._geometry is None:
            self._sought = box
        elif box != NONE:
            self.viewport.go_to_box(box)

    def set_orientation(self, choice: str) -> None:
        """Choose the direction of the flow.

        Parameters
        ----------
        choice : {'auto', 'left-right', 'top-down'}
            ``auto``: left-right when the canvas is wider than 1.6 times its height.

        Raises
        ------
        ValueError
            For anything else.
        """
        choices: dict[str, Orientation | None] = {
            "auto": None,
            "left-right": "left-right",
            "top-down": "top-down",
        }
        if choice not in choices:
            raise ValueError(f"orientation is {choice!r}, not one of {', '.join(choices)}")
        self._choice = choices[choice]
        self._lay_out_if_turned()

    @property
    def _has_legend(self) -> bool:
        """Whether the legend is shown: a low canvas leaves its room to the boxes."""
        is_high = self.height() >= _LEAST_WITH_LEGEND
        return self._legend_visible and bool(self._scene.boxes) and is_high

    def set_legend_visible(self, visible: bool) -> None:  # noqa: FBT001 - as QWidget.setVisible
        """Show or hide the legend."""
        self._legend_visible = visible
        if self.viewport.untouched:
            self.viewport.go_home()
        else:
            self.viewport.reserve()
        self.update()

    # Groups

    @property
    def has_groups(self) -> bool:
        """Whether the model has any groups."""
        return self._grouping.exists

    @property
    def is_grouped(self) -> bool:
        """Whether groups are shown."""
        return self._grouping.is_shown

    def set_grouping(self, choice: bool | None) -> None:  # noqa: FBT001 - a state of three
        """Show groups or not; None: by the size of the model."""
        before = self.is_grouped
        self._grouping.choice = choice
        if self.is_grouped != before:
            self._refold(lambda: None, self._state.selected)

    @property
    def outline(self) -> tuple[OutlineRow, ...]:
        """What is visible, as rows of a list; empty without groups."""
        if not self.is_grouped or self._grouping.is_pending:
            return ()
        if self._outline is None:
            self._outline = self._grouping.folding.outline()
        return self._outline

    @property
    def picked_group(self) -> Group | None:
        """The group that the user has clicked."""
        return self._state.picked_group

    def crumbs(self) -> tuple[Crumb, ...]:
        """Return the groups around what is selected, outermost first; none without groups."""
        place = self._state.place
        if not self.is_grouped or place is None:
            return ()
        group = self._state.picked_group
        crumbs = self._grouping.folding.crumbs(place)
        return tuple(c for c in crumbs if group is None or c.group.size >= group.size)

    def pick_group(self, group: Group) -> None:
        """Select a group, and show where it is."""
        self._pick(group)
        frame = self._scene.frame_of(group)
        if self._geometry is None or frame is None:
            self._reveal(self._scene.box_of(group.first))
            return
        area = self._geometry.frame_rect(frame)
        if not self.scene_rect().contains(self.viewport.camera.to_view(area.topLeft())):
            self.viewport.go_to(area.center())

    def leave_group(self) -> None:
        """Select no group, but the operator that is selected besides."""
        if self._state.picked_group is not None:
            self._state.picked_group = None
            self.groups_changed.emit()
            self.update()

    def _pick(self, group: Group) -> None:
        self._state.picked, self._state.picked_group = "", group
        self._describe()
        self.groups_changed.emit()
        self.update()

    @property
    def can_open_group(self) -> bool:
        """Whether a closed group is selected."""
        return self._closed_group() is not None

    @property
    def can_close_group(self) -> bool:
        """Whether an open group is around what is selected."""
        place = self._state.place
        return place is not None and self.is_grouped and self._grouping.folding.can_close(place)

    def _closed_group(self) -> Group | None:
        return None if self._grouping.is_pending else self._state.closed_group

    def open_group(self) -> None:
        """Open the closed group that is selected, or that the selected operator is in."""
        group = self._closed_group()
        if group is not None:
            self._open(group)

    def close_group(self) -> None:
        """Close the innermost open group around what is selected."""
        place = self._state.place
        if place is not None:
            self._close(place)

    def open_all_groups(self) -> None:
        """Show every operator in the frames of its groups."""
        if self.is_grouped and not self._grouping.is_pending:
            self._refold(self._grouping.folding.open_all, self._state.selected)

    def close_all_groups(self) -> None:
        """Close every group."""
        if self.is_grouped:
            self._refold(self._grouping.folding.close_all, self._state.selected)

    def _open(self, group: Group) -> None:
        if self._grouping.is_pending:
            return

        def change() -> None:
            folding = self._grouping.folding
            folding.open(group)
            # A stack has no frame to be selected, so its first part is.
            shown = folding.around(group.first)[-1] if group.is_stack else group
            self._state.picked_group = shown

        self._refold(change, self._scene.box_of(group.first))

    def _close(self, place: int) -> None:
        folding = self._grouping.folding
        if folding.is_closed or not self.is_grouped:
            return
        picked, scene = self._state.picked_group, self._scene
        if picked is not None and scene.frame_of(picked) is None:
            picked = None
        frame = scene.frame_of(picked) if picked is not None else scene.frame_around(place)

        def change() -> None:
            # In a group that is selected others may be open.
            closed = folding.close(place) if picked is None else folding.close_group(picked)
            if closed is not None:
                self._state.picked_group = closed

        self._refold(change, scene.box_of(place), frame)

    def _refold(self, change: Callable[[], None], box: int, frame: int | None = None) -> None:
        """Open or close groups; what the user looks at stays in its place.

        Parameters
        ----------
        change : callable
            Opens or closes them.
        box : int
            The box that stays where the flow enters it, or NONE.
        frame : int, optional
            The frame that does instead.
        """
        anchor = self.viewport.make_anchor(box, frame)
        self.viewport.stop()
        change()
        picked = self._state.picked_group
        sought = self._scene.boxes[self._sought].index if self._sought != NONE else NONE
        self._scene, self._outline = self._grouping.make_scene(), None
        self._sought = self._scene.box_of(sought) if sought != NONE else NONE
        self._state = SceneState(self._scene, self._session, self._state)
        self._state.picked_group = picked if self.is_grouped else None
        self._state.follow_finding()
        self._summaries = BoxSummaries(self._session, self._state)
        self._anchor = anchor
        self._lay_out()
        self._describe()
        self._rest.start()
        self.groups_changed.emit()

    # Layout

    def _lay_out(self) -> None:
        self._layout_cancel.set()
        self._layout_cancel = threading.Event()
        self._layout_number += 1
        self._layout_waits = False
        is_small = len(self._scene.boxes) < _LAID_OUT_AT_ONCE
        # Not of many, whose layout takes a second: a notice says so.
        known = (self._painter, self._minimap) if self._painter is not None else self._former
        self._former = known if is_small else (None, None)
        self._geometry = self._painter = self._minimap = None
        self.viewport.take(None, None)
        self._flow = self.orientation
        if self._grouping.is_pending and self.is_grouped:
            self.update()
            return
        is_quick = self._former[0] is None or len(self._scene.edges) < _REFOLDED_AT_ONCE
        if is_small and is_quick:
            self._accept(lay_out(self._scene, self._flow))
            return
        self._layout_waits = True
        # Not before the other views have taken the graph in as well: the two threads would
        # hand the interpreter to and fro, and all of them had to wait.
        QTimer.singleShot(0, self._begin_layout)
        self.update()

    @Slot()
    def _begin_layout(self) -> None:
        if self._layout_waits:
            self._layout_waits = False
            number, cancelled = self._layout_number, self._layout_cancel.is_set
            self._background.submit(number, lay_out, self._scene, self._flow, cancelled)

    @Slot()
    def _begin_grouping(self) -> None:
        graph = self._session.graph
        if graph is not None and self._grouping.is_pending:
            self._background.submit(graph.source_path, find_groups_of, graph)

    def set_step_key(self, key: str) -> None:
        """Set the key that the next operator's box shows."""
        self._step_key = key
        if self._painter is not None:
            self._painter.step_key = key
        self.update()

    def _accept(self, result: Layout) -> None:
        self._geometry = Geometry(self._scene, result)
        self._painter = ScenePainter(self._theme, self._geometry, self._state)
        self._painter.step_key = self._step_key
        self._minimap = Minimap(self._theme, self._geometry, self._state)
        self.viewport.take(self._geometry, self._minimap)
        self._former = None, None
        anchor, self._anchor = self._anchor, None
        reveals, self._reveals = self._reveals, False
        if anchor is not None:
            self.viewport.restore(anchor)
        else:
            self.viewport.go_home()
        if self._sought != NONE:
            self.viewport.go_to_box(self._sought, animated=False)
            self._sought = NONE
        elif reveals and self._state.selected > (0 if anchor is None else NONE):
            # A new graph is at home, where the first box is.
            self._reveal(self._state.selected, animated=anchor is not None)

    def _lay_out_if_turned(self) -> None:
        """Lay out again if the orientation has changed, and keep the operator in view."""
        if self._flow == self.orientation:
            return
        if self._geometry is not None:
            state = self._state
            kept = state.selected if state.selected != NONE else state.current
            self._sought = kept if not self.viewport.untouched else NONE
        self._lay_out()

    def _get_legend_height(self) -> float:
        return LEGEND_HEIGHT if self._has_legend else 0.0

    @Slot()
    def _on_moved(self) -> None:
        self.zoom_changed.emit(self.zoom)
        self.update()

    def _reveal(self, box: int, *, animated: bool = True) -> None:
        """Make a box well visible, at once or when it is laid out."""
        if self._geometry is None:
            self._reveals |= box == self._state.selected
        else:
            self.viewport.reveal(box, animated=animated)

    # Mouse

    def _click(self, point: QPointF) -> None:
        """Select the operator under a view point, or show the operand of the edge there."""
        box, edge = self.viewport.box_at(point), self.viewport.edge_at(point)
        frame = self.viewport.title_at(point)
        self._state.picked = ""
        card = self._scene.boxes[box].card if box != NONE else None
        if card is not None:
            self._pick(card.group)  # it stays under the mouse, for a second click
        elif box != NONE:
            self._choose(box)
        elif frame != NONE and self._geometry is not None:
            group = self._scene.frames[frame].group
            self._pick(group)
            left = title_left(self._geometry.frame_rect(frame), self.visible_area().left())
            if self.viewport.camera.to_scene(point).x() - left < CHEVRON_ROOM:
                self._close(group.first)
        elif edge != NONE:
            self._state.picked = self._scene.edges[edge].operand
            self._session.show_operand(self._state.picked)
        self.update()

    def _choose(self, box: int) -> None:
        """Select an operator, or a closed group."""
        card = self._scene.boxes[box].card
        if card is not None:
            self.pick_group(card.group)
            return
        self.leave_group()
        self._session.select(self._scene.boxes[box].name)

    def _hover(self, point: QPointF | None) -> None:
        edge = self.viewport.edge_at(point) if point is not None else NONE
        if self._painter is not None and self._painter.hovered_edge != edge:
            self._painter.hovered_edge = edge
            self.update()

    # Keys

    def _walk(self, step: Step) -> None:
        if self._geometry is None or not self._scene.boxes:
            return
        group = self._state.picked_group
        box = self._state.selected if group is None else self._scene.box_of(group.first)
        if box == NONE:
            box = max(self._state.current, 0)
        elif group is None or self._scene.frame_of(group) is None:
            box = neighbour(self._geometry, box, step)
        self._choose(box)

    def _select_end(self, index: int) -> None:
        if self._scene.boxes:
            self._choose(index % len(self._scene.boxes))

    def _show_tensor(self, operand: str) -> None:
        if operand:
            self._session.show_operand(operand)
            self.tensor_requested.emit()

    def _key_handlers(self) -> dict[Qt.Key, Callable[[], None]]:
        flow = (Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Up, Qt.Key.Key_Down)
        if self._geometry is not None and not self._geometry.left_right:
            flow = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Left, Qt.Key.Key_Right)
        steps = (Step.BACK, Step.FORWARD, Step.BEFORE, Step.BEHIND)
        handlers: dict[Qt.Key, Callable[[], None]] = {
            key: partial(self._walk, step) for key, step in zip(flow, steps, strict=True)
        }
        handlers |= {
            Qt.Key.Key_Space: self.viewport.fit,
            Qt.Key.Key_Home: lambda: self._select_end(0),
            Qt.Key.Key_End: lambda: self._select_end(-1),
            Qt.Key.Key_Plus: self.viewport.zoom_in,
            Qt.Key.Key_Equal: self.viewport.zoom_in,
            Qt.Key.Key_Minus: self.viewport.zoom_out,
            Qt.Key.Key_Backspace: self.close_group,
        }
        if self._state.picked_group is not None:
            handlers[Qt.Key.Key_Plus] = self.open_group
            handlers[Qt.Key.Key_Minus] = self.close_group
        for key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            handlers[key] = self._show_selected
        return handlers

    def _show_selected(self) -> None:
        selected = self._state.selected
        closed = selected != NONE and self._scene.boxes[selected].card is not None
        if self._state.picked_group is not None or closed:
            self.open_group()
        elif selected != NONE:
            self._show_tensor(self._scene.boxes[selected].operand)

    # Slots

    @Slot()
    def _on_graph_changed(self) -> None:
        graph = self._session.graph
        self._uncollected.close(is_large=self._scene.operator_count >= _LAID_OUT_AT_ONCE)
        self._anchor = None
        self._grouping.take(graph)
        self._scene, self._outline = self._grouping.make_scene(), None
        self._state = SceneState(self._scene, self._session)
        self._state.follow_finding()
        self._summaries = BoxSummaries(self._session, self._state)
        self._sought, self._awaited, self._reveals = NONE, "", False
        self._painter, self._former = None, (None, None)
        self._lay_out()
        if self._grouping.is_pending:
            QTimer.singleShot(0, self._begin_grouping)
        if self.laid_out and self._scene.operator_count >= _LAID_OUT_AT_ONCE:
            self._uncollected.set_aside()
        self._describe()
        self.groups_changed.emit()

    @Slot()
    @Slot(object)
    def _on_position_changed(self, _failure: object = None) -> None:
        if self._session.state is RunState.RUNNING:
            self._session.measuring.want("groups", on=False)
        before = self._state.current
        self._state.follow_position()
        current = self._state.current
        if self._minimap is not None and self._session.state is RunState.FAILED:
            self._minimap.forget()
            current = self._state.position
        if current not in (before, NONE):
            self._reveal(current)
        elif current == NONE and self._state.selected != NONE:
            # A model that was reloaded runs to its end beside what is selected.
            self._reveal(self._state.selected)
        self.update()

    @Slot(object)
    def _on_stepped(self, records: Sequence[Record]) -> None:
        changed = self._state.apply(records)
        self._summaries.forget(changed)
        if self._minimap is not None:
            if self._session.overlaying.is_on:
                self._minimap.forget()  # another value may change the scale
            else:
                self._minimap.mark(changed)
        self.update()

    @Slot(object)
    def _on_stepped_back(self, operator: str) -> None:
        box = self._state.revert(operator)
        self._summaries.forget((box,))
        self._repaint()

    @Slot()
    def _on_values_reset(self) -> None:
        self._state.refresh()
        self._summaries.forget_all()
        self._repaint()

    @Slot(object)
    def _on_selection_changed(self, _name: str) -> None:
        self._state.follow_selection()
        self._state.picked = ""
        self.leave_group()
        self._open_to_selected()
        if self._state.selected != NONE and self._pointer.idle:
            self._reveal(self._state.selected)
        self.update()

    def _open_to_selected(self) -> None:
        """Open the groups around the selected operator, unless it only follows the run."""
        state, place = self._state, self._state.place
        if place is None or state.selected == NONE:
            return
        follows = self._session.state is not RunState.FAILED and place == self._session.position
        if self._scene.boxes[state.selected].card is not None and not follows:
            self._open_to(self._session.selected)

    def _open_to(self, name: str) -> None:
        """Open the groups around an operator."""
        graph = self._session.graph
        if graph is not None and not self._grouping.is_pending:
            place = graph.operator(name).index
            box = self._scene.index[name]
            self._refold(lambda: self._grouping.folding.reveal(place), box)

    @Slot()
    def _on_breakpoints_changed(self) -> None:
        self._state.follow_breakpoints()
        self.update()

    @Slot()
    def _on_bookmarks_changed(self) -> None:
        self._state.follow_bookmarks()
        self.update()

    @Slot()
    def _on_compared(self) -> None:
        self._state.follow_comparison()
        self._describe()
        self._repaint()

    @Slot()
    def _on_found(self) -> None:
        self._state.follow_finding()
        self._describe()
        self._repaint()

    @Slot()
    def _on_overlay_changed(self) -> None:
        self._state.follow_overlay()
        self._describe()
        self._repaint()

    @Slot()
    def _measure_groups(self) -> None:
        """Have all values measured, to show NaN in closed groups, while nothing runs."""
        rests = self._session.state is not RunState.RUNNING
        self._session.measuring.want("groups", on=rests and self._scene.is_folded)

    @Slot()
    def _prepare_boxes(self) -> None:
        """Make what is in closed groups ahead, some at a time, while nothing runs."""
        rests = self.laid_out and self._session.state is not RunState.RUNNING
        if not (rests and self._grouping.prepare(_PREPARED_AT_ONCE)):
            return
        if not self._grouping.is_prepared:
            self._ahead.start()
        elif self._uncollected.is_set_aside:
            self._uncollected.set_aside()  # these as well

    @Slot()
    def _on_measured(self) -> None:
        self._state.follow_measures()
        if self._session.overlaying.is_on:
            self._on_overlay_changed()
        elif self._scene.is_folded:
            self.update()

    @Slot()
    def _on_supplies_changed(self) -> None:
        self._state.follow_supplies()
        self._repaint()

    @Slot()
    def _on_theme_changed(self) -> None:
        if self._painter is not None:
            self._painter.forget()
        self._repaint()

    @Slot(object)
    def _on_answered(self, answer: Done) -> None:
        if isinstance(answer.result, Groups):
            self._on_grouped(answer.result)
        elif answer.key == self._layout_number and isinstance(answer.result, Layout):
            self._accept(answer.result)
            if self._scene.operator_count >= _LAID_OUT_AT_ONCE:
                self._uncollected.set_aside()

    def _on_grouped(self, found: Groups) -> None:
        """Show the groups of a large model, which are known now."""
        was_shown = self.is_grouped
        if not self._grouping.accept(found):
            return
        if was_shown or self.is_grouped:
            self._state.picked_group = None
            self._refold(lambda: None, NONE)
            if self._awaited:
                self.center_on(self._awaited)
            else:
                self._open_to_selected()
            if self.laid_out:
                self._uncollected.set_aside()
        self._awaited = ""
        self.groups_changed.emit()

    @Slot()
    def _on_settled(self) -> None:
        """Adapt to the canvas's new size: a banner may have taken half of it."""
        self._lay_out_if_turned()
        state = self._state
        box = state.selected if state.selected != NONE else state.current
        if self._geometry is None or box == NONE:
            return
        if self.visible_area().intersects(self._geometry.rect(box)):
            self._reveal(box)

    def _repaint(self) -> None:
        """Paint all boxes anew, those of the minimap too."""
        if self._minimap is not None:
            self._minimap.forget()
        self.update()

    @Slot()
    def _describe(self) -> None:
        self.setAccessibleDescription(describe(self._state) if self._scene.boxes else "")

    # Painting

    def _paint_canvas(self, painter: QPainter) -> None:
        ratio, whole = self.devicePixelRatioF(), QRectF(self.rect())
        self._surroundings.paint_behind(painter, whole, ratio)
        shown = self._painter or self._former[0]
        if shown is None:
            self._surroundings.paint_notice(painter, whole, self._why_empty())
            return
        visible = self.visible_area()
        step = self.zoom * ratio
        # On whole device pixels, so that lines and pixmaps are sharp.
        visible.moveTo(round(visible.x() * step) / step, round(visible.y() * step) / step)
        shown.paint(painter, visible, self.zoom)
        if not shown.complete:
            self._go_on.start()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_overlays(painter)
        self._want_summaries(visible)

    def _why_empty(self) -> str:
        count = self._scene.operator_count
        doing = "Grouping" if self._grouping.is_pending else "Laying out"
        return f"{doing} {format_count(count, 'operator')}…" if count else "No model is open"

    def _paint_overlays(self, painter: QPainter) -> None:
        self._surroundings.paint_beside(
            painter,
            QRectF(self.rect()),
            self._minimap or self._former[1],
            self._state if self._has_legend else None,
        )
        area = self._pointer.area
        if area is not None:
            painter.setPen(QPen(self._theme.color("focus"), 1.4))
            painter.setBrush(self._theme.color("focus", 0.14))
            painter.drawRect(area)
        if self.hasFocus() and self._focused_by_keyboard:
            draw_focus_ring(painter, self._theme, self.rect())

    def _want_summaries(self, visible: QRectF) -> None:
        """Request what is shown in visible boxes."""
        if self._geometry is None or self.zoom < FULL_FROM:
            return
        if self._summaries.want(self._geometry.boxes_in(visible).tolist()):
            self._go_on.start()  # some boxes are painted already

    @Slot(object)
    def _on_recalled(self, operand: str) -> None:
        if self._summaries.take(operand):
            self.update()

    # Overrides of Qt methods

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        self._paint_canvas(painter)
        painter.end()

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        if self.viewport.untouched:
            self._lay_out_if_turned()
            self.viewport.go_home()
        else:
            self.viewport.follow_size()
            self._settle.start()
        super().resizeEvent(event)

    @override
    def wheelEvent(self, event: QWheelEvent) -> None:
        turned = event.angleDelta()
        amount = turned.y() or turned.x()
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.viewport.pan(amount * _WHEEL_PAN, 0.0)
        elif amount:
            zoom = self.zoom * 2 ** (amount / _WHEEL_DOUBLING)
            self.viewport.zoom_about(event.position(), zoom)
        event.accept()

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._pointer.press(event)
        if self._pointer.panning:
            self.setCursor(Qt.CursorShape.ClosedHandCursor)

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._pointer.idle:
            self._hover(event.position())
            return
        self._pointer.move(event)
        if self._pointer.panning:
            self.setCursor(Qt.CursorShape.ClosedHandCursor)
        self.update()

    @override
    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._pointer.release(event)
        self.unsetCursor()
        self.update()

    @override
    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if event.button() is not Qt.MouseButton.LeftButton:
            return
        place = event.position()
        box, edge = self.viewport.box_at(place), self.viewport.edge_at(place)
        group = self.group_at(place)
        if group is not None:
            if box == NONE:
                self._close(group.first)
            else:
                self._open(group)
        elif box != NONE:
            self._show_tensor(self._scene.boxes[box].operand)
        elif edge != NONE:
            self._show_tensor(self._scene.edges[edge].operand)

    @override
    def leaveEvent(self, event: QEvent) -> None:
        self._hover(None)
        super().leaveEvent(event)

    @override
    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        place = QPointF(event.pos())
        name = self.operator_at(place)
        state, group = self._state, self.group_at(place)
        if event.reason() is QContextMenuEvent.Reason.Keyboard:
            group = state.picked_group
            if state.selected != NONE and group is None:
                name = self._session.selected
        elif group is not None:
            self.pick_group(group)
        if name and name != self._session.selected:
            self._session.select(name)
        self.menu_requested.emit(name, event.globalPos())

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        control = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        key = Qt.Key(event.key())
        handler = self._key_handlers().get(key)
        if control:
            handler = self.viewport.zoom_reset if key == Qt.Key.Key_Home else None
        if handler is None:
            super().keyPressEvent(event)
        else:
            handler()

    @override
    def focusInEvent(self, event: QFocusEvent) -> None:
        # The focus ring is for the keyboard only.
        self._focused_by_keyboard = is_by_keyboard(event)
        self.update()
        super().focusInEvent(event)

    @override
    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._pointer.cancel()
        self.update()
        super().focusOutEvent(event)

    @override
    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            QToolTip.showText(
                event.globalPos(), tip_text(self.tip_at(QPointF(event.pos()))), self
            )
            return True
        if isinstance(event, QNativeGestureEvent):
            return self._pinch(event)
        return super().event(event)

    def _pinch(self, event: QNativeGestureEvent) -> bool:
        if event.gestureType() is not Qt.NativeGestureType.ZoomNativeGesture:
            return super().event(event)
        self.viewport.zoom_about(event.position(), self.zoom * (1 + event.value()))
        return True
