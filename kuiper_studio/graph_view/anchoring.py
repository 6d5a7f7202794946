"""What stays in its place in the view while groups open or close."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kuiper_studio.graph_view.framing import entry_point, least_pan, within_reach

if TYPE_CHECKING:
    from PySide6.QtCore import QPointF, QRectF

    from kuiper_studio.graph_view.camera import Camera
    from kuiper_studio.graph_view.geometry import Geometry

__all__ = ["Anchor"]


@dataclass(frozen=True, slots=True)
class Anchor:
    """A box or frame, and where it is seen.

    Attributes
    ----------
    operator : int
        The operator, or the first one of the group.
    point : QPointF
        Where the flow enters its box or frame in the view.
    """

    operator: int
    point: QPointF

    @classmethod
    def at_box(cls, box: int, geometry: Geometry, camera: Camera, room: QRectF) -> Anchor:
        """Remember where a box is seen; `room` is the scene's part of the view."""
        return cls._at(
            geometry.scene.boxes[box].index, geometry.rect(box), geometry, camera, room
        )

    @classmethod
    def at_frame(cls, frame: int, geometry: Geometry, camera: Camera, room: QRectF) -> Anchor:
        """Remember where a frame is seen; see `at_box`."""
        first = geometry.scene.frames[frame].group.first
        return cls._at(first, geometry.frame_rect(frame), geometry, camera, room)

    @classmethod
    def _at(
        cls, operator: int, rect: QRectF, geometry: Geometry, camera: Camera, room: QRectF
    ) -> Anchor:
        point = camera.to_view(entry_point(geometry, rect))
        return cls(operator, within_reach(point, room))

    def restore(self, geometry: Geometry, camera: Camera, room: QRectF) -> None:
        """Move the camera so that the box or frame is seen there, as far as it can be.

        Parameters
        ----------
        geometry : Geometry
            Of the scene after the change; a frame may have become a box, or a box a frame.
        camera : Camera
        room : QRectF
            The scene's part of the view.
        """
        rect = self._rect_in(geometry)
        camera.origin = entry_point(geometry, rect) - self.point / camera.zoom
        # If hardly anything of it would be seen there, it moves as far as it must.
        moved = least_pan(camera.rect_to_view(rect), room)
        camera.pan(moved.x(), moved.y())

    def _rect_in(self, geometry: Geometry) -> QRectF:
        for number, frame in enumerate(geometry.scene.frames):
            if frame.group.first == self.operator:
                return geometry.frame_rect(number)
        return geometry.rect(geometry.scene.box_of(self.operator))
