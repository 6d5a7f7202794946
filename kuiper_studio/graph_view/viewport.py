"""Where the canvas looks: the camera, how it moves, and what is under a point.

Legend and minimap have room of their own beside the scene.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import (
    QEasingCurve,
    QObject,
    QPointF,
    QRectF,
    QSizeF,
    QVariantAnimation,
    Signal,
    Slot,
)
from PySide6.QtWidgets import QStyle

from kuiper_studio.graph_view.anchoring import Anchor
from kuiper_studio.graph_view.camera import LEAST_ZOOM, Camera
from kuiper_studio.graph_view.framing import (
    MARGIN,
    resting_centre,
    revealing_centre,
    zoom_across,
)
from kuiper_studio.graph_view.painter import FULL_FROM
from kuiper_studio.graph_view.state import NONE
from kuiper_studio.layout.nested import TAB_HEIGHT
from kuiper_studio.session import RunState

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtWidgets import QWidget

    from kuiper_studio.graph_view.geometry import Geometry
    from kuiper_studio.graph_view.minimap import Minimap
    from kuiper_studio.session import StudioSession

__all__ = ["ANIMATION_MS", "Viewport"]

ANIMATION_MS: Final = 150
"""How long the camera moves to another place."""
_FIT_FROM: Final = 0.7  # a new graph that fits at this zoom is shown whole
_HOME_FROM: Final = 0.8  # least zoom at which another begins, to show more of its rows
_LEVELS: Final = (
    0.05, 0.1, 0.15, 0.2, 0.25, 0.35, 0.5, 0.7, 0.85, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0,
)  # fmt: skip


class Viewport(QObject):
    """The part of the scene that the canvas shows.

    Parameters
    ----------
    canvas : QWidget
    session : StudioSession
    foot : callable
        Returns the height that the legend takes.

    Attributes
    ----------
    camera : Camera
    map_frame : QRectF
        Frame of the minimap in view coordinates; null when it is not shown.
    reduced_motion : bool
        Whether the camera jumps instead of moving.
    untouched : bool
        Whether the graph is still where it was first shown.

    Signals
    -------
    moved
        The camera is elsewhere, or has another zoom.
    """

    moved = Signal()

    def __init__(
        self, canvas: QWidget, session: StudioSession, foot: Callable[[], float]
    ) -> None:
        super().__init__(canvas)
        self.camera = Camera()
        self.map_frame = QRectF()
        self.reduced_motion = False
        self.untouched = True
        self._canvas, self._session, self._foot = canvas, session, foot
        self._geometry: Geometry | None = None
        self._minimap: Minimap | None = None
        self._animation = QVariantAnimation(self)
        self._animation.setDuration(ANIMATION_MS)
        self._animation.setEasingCurve(QEasingCurve.Type.OutCubic)
        self._animation.valueChanged.connect(self._on_animated)

    def take(self, geometry: Geometry | None, minimap: Minimap | None) -> None:
        """Look at another layout; None while there is none."""
        self._geometry, self._minimap = geometry, minimap

    # What is seen

    @property
    def scene_rect(self) -> QRectF:
        """The part of the canvas that shows the scene; legend and minimap are beside it."""
        return QRectF(QPointF(0.0, 0.0), self.camera.size)

    def box_at(self, point: QPointF) -> int:
        """Return the box under a view point, or NONE."""
        if self._geometry is None or not self.scene_rect.contains(point):
            return NONE
        slack = 3 / self.camera.zoom if self.camera.zoom < FULL_FROM else 0.0
        return self._geometry.box_at(self.camera.to_scene(point), slack)

    def edge_at(self, point: QPointF) -> int:
        """Return the edge under a view point, or NONE."""
        if self._geometry is None or not self.scene_rect.contains(point):
            return NONE
        if self.box_at(point) != NONE:
            return NONE
        return self._geometry.edge_at(self.camera.to_scene(point), self.camera.zoom)

    def title_at(self, point: QPointF) -> int:
        """Return the frame whose title is under a view point, or NONE."""
        if self._geometry is None or not self.scene_rect.contains(point):
            return NONE
        there = self.camera.to_scene(point)
        frame = self._geometry.frame_at(there)
        if frame == NONE or there.y() > self._geometry.frame_rect(frame).top() + TAB_HEIGHT:
            return NONE
        return frame

    # Moving

    def fit(self) -> None:
        """Show the whole graph."""
        if self._geometry is None:
            return
        self.stop()
        self.camera.size = self._room()
        self.camera.show(self._geometry.bounds, MARGIN, 1.0)
        self._after_move()

    def zoom_in(self) -> None:
        """Zoom to the next larger level."""
        zoom = self.camera.zoom
        self._zoom_about_middle(next((z for z in _LEVELS if z > zoom * 1.001), _LEVELS[-1]))

    def zoom_out(self) -> None:
        """Zoom to the next smaller level."""
        smaller = [level for level in _LEVELS if level < self.camera.zoom * 0.999]
        self._zoom_about_middle(smaller[-1] if smaller else self.camera.least_zoom)

    def zoom_reset(self) -> None:
        """Zoom to 100 %."""
        self._zoom_about_middle(1.0)

    def _zoom_about_middle(self, zoom: float) -> None:
        self.zoom_about(self.scene_rect.center(), zoom)

    def zoom_about(self, point: QPointF, zoom: float) -> None:
        """Change the zoom; what is under a view point stays there."""
        self.stop()
        self.camera.zoom_about(point, zoom)
        self._after_move()

    def zoom_to_area(self, area: QRectF) -> None:
        """Make an area of the view fill it."""
        self.stop()
        corner = self.camera.to_scene(area.topLeft())
        self.camera.show(QRectF(corner, area.size() / self.camera.zoom), 0.0)
        self._after_move()

    def pan(self, dx: float, dy: float) -> None:
        """Move the picture by view pixels."""
        self.stop()
        self.camera.pan(dx, dy)
        self._after_move()

    def in_minimap(self, point: QPointF) -> bool:
        """Whether a view point lies in the minimap."""
        return self.map_frame.contains(point)

    def move_by_minimap(self, point: QPointF) -> None:
        """Centre on what the minimap shows under a view point."""
        if self._minimap is None:
            return
        self.stop()
        self.camera.centre_on(self._minimap.to_scene(point - self.map_frame.topLeft()))
        self._after_move()

    def go_home(self) -> None:
        """Show a new graph: all of it if it fits well, else its start at 100 %."""
        if self._geometry is None:
            return
        self.stop()
        camera, bounds = self.camera, self._geometry.bounds
        camera.size = self._room()
        camera.least_zoom = LEAST_ZOOM
        fitting = camera.zoom_to_show(bounds, MARGIN)
        camera.zoom = min(fitting, 1.0)
        camera.centre_on(bounds.center())
        if fitting < _FIT_FROM:
            camera.zoom = 1.0
            self.reserve()
            across = zoom_across(self._geometry, camera.size)
            camera.zoom = min(max(across, _HOME_FROM), 1.0)
            camera.centre_on(resting_centre(self._geometry, camera, 0))
        self.untouched = True
        self._after_move(touched=False)

    def go_to(self, centre: QPointF, *, animated: bool = True) -> None:
        """Centre on a point of the scene."""
        self.stop()
        still = self.reduced_motion or not self._canvas.isVisible()
        hint = QStyle.StyleHint.SH_Widget_Animation_Duration
        running = self._session.state is RunState.RUNNING
        if not animated or still or running or not self._canvas.style().styleHint(hint):
            self._on_animated(centre)
            return
        self._animation.setStartValue(self.camera.centre)
        self._animation.setEndValue(centre)
        self._animation.start()

    def go_to_box(self, box: int, *, animated: bool = True) -> None:
        """Centre on a box, and on what is beside it along the flow."""
        if self._geometry is not None:
            self.go_to(resting_centre(self._geometry, self.camera, box), animated=animated)

    def reveal(self, box: int, *, animated: bool = True) -> None:
        """Centre on a box along each axis on which it is not well visible."""
        if self._geometry is None:
            return
        running = self._animation.state() is QVariantAnimation.State.Running
        centre = self._animation.endValue() if running else self.camera.centre
        target = revealing_centre(self._geometry, self.camera, box, centre)
        if target != centre:
            self.go_to(target, animated=animated)

    def stop(self) -> None:
        """Stay where the camera is."""
        self._animation.stop()

    def make_anchor(self, box: int, frame: int | None) -> Anchor | None:
        """Remember where a frame, or else a box, is seen; None if there is neither."""
        if self._geometry is None:
            return None
        if frame is not None:
            return Anchor.at_frame(frame, self._geometry, self.camera, self.scene_rect)
        if box == NONE:
            return None
        return Anchor.at_box(box, self._geometry, self.camera, self.scene_rect)

    def restore(self, anchor: Anchor) -> None:
        """Show what was remembered in its place, in another layout."""
        if self._geometry is not None:
            self.reserve()
            anchor.restore(self._geometry, self.camera, self.scene_rect)
            self._after_move()

    @Slot(object)
    def _on_animated(self, centre: QPointF) -> None:
        self.camera.centre_on(centre)
        self._after_move()

    def _after_move(self, *, touched: bool = True) -> None:
        if self._geometry is not None:
            self.reserve()
            self.camera.keep_near(self._geometry.bounds)
        if touched:
            self.untouched = False
        self.moved.emit()

    # Room for legend and minimap

    def reserve(self) -> None:
        """Divide the canvas: legend and minimap cover nothing of the scene."""
        camera = self.camera
        camera.size = self._room()
        self.map_frame = QRectF()
        if self._minimap is None or self._geometry is None:
            return
        if not camera.visible.contains(self._geometry.bounds):
            self.map_frame = self._minimap.place(QSizeF(self._canvas.size()))
            camera.size = self._room(self._minimap.reserved(self.map_frame))

    def _room(self, beside: tuple[float, float] = (0.0, 0.0)) -> QSizeF:
        """Return the scene's part of the canvas, when the minimap takes `beside` of it."""
        width = self._canvas.width() - beside[0]
        height = self._canvas.height() - max(self._foot(), beside[1])
        return QSizeF(max(width, 1.0), max(height, 1.0))

    def follow_size(self) -> None:
        """Keep the centre when the canvas has another size."""
        centre = self.camera.centre
        self.reserve()
        self.camera.centre_on(centre)
