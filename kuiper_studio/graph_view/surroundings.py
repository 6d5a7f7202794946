"""Paints what is around the boxes of the canvas: dots behind, legend and minimap beside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QPointF, QRectF, Qt

from kuiper_studio.graph_view.legend import legend_entries, paint_legend, paint_scale
from kuiper_studio.graph_view.painter import dot_tile

if TYPE_CHECKING:
    from PySide6.QtGui import QPainter, QPixmap

    from kuiper_studio.graph_view.minimap import Minimap
    from kuiper_studio.graph_view.state import SceneState
    from kuiper_studio.graph_view.viewport import Viewport
    from kuiper_studio.theme import Theme

__all__ = ["Surroundings"]

_DOTS_FROM: Final = 0.6  # zoom


class Surroundings:
    """Paints them where the viewport leaves room.

    Parameters
    ----------
    theme : Theme
    viewport : Viewport
    """

    def __init__(self, theme: Theme, viewport: Viewport) -> None:
        self._theme, self._viewport = theme, viewport
        self._dots: tuple[tuple[object, ...], QPixmap] | None = None

    def paint_behind(self, painter: QPainter, whole: QRectF, ratio: float) -> None:
        """Paint the ground of the whole canvas, with dots that move with the scene.

        Parameters
        ----------
        painter : QPainter
        whole : QRectF
        ratio : float
            Device pixels per pixel.
        """
        painter.fillRect(whole, self._theme.color("base"))
        zoom = self._viewport.camera.zoom
        if zoom < _DOTS_FROM:
            return
        key = (zoom, ratio, self._theme.tokens)
        if self._dots is None or self._dots[0] != key:
            self._dots = (key, dot_tile(self._theme, zoom, ratio))
        tile = self._dots[1]
        pitch = tile.width() / ratio
        origin = self._viewport.camera.origin * zoom
        offset = QPointF(round(origin.x()) % pitch, round(origin.y()) % pitch)
        painter.drawTiledPixmap(self._viewport.scene_rect, tile, offset)

    def paint_notice(self, painter: QPainter, whole: QRectF, text: str) -> None:
        """Say why there are no boxes."""
        painter.setPen(self._theme.color("text3"))
        painter.setFont(self._theme.ui_font(12))
        painter.drawText(whole, Qt.AlignmentFlag.AlignCenter, text)

    def paint_beside(
        self,
        painter: QPainter,
        whole: QRectF,
        minimap: Minimap | None,
        state: SceneState | None,
    ) -> None:
        """Paint legend and minimap over what boxes and edges reach beyond the scene's part.

        Parameters
        ----------
        painter : QPainter
        whole : QRectF
        minimap : Minimap or None
        state : SceneState or None
            What the legend explains; None for no legend.
        """
        scene, frame = self._viewport.scene_rect, self._viewport.map_frame
        foot = QRectF(scene.bottomLeft(), whole.bottomRight())
        side = QRectF(scene.topRight(), whole.bottomRight())
        base, line = self._theme.color("base"), self._theme.color("line")
        if foot.height() > 0:
            painter.fillRect(foot, base)
            painter.fillRect(QRectF(foot.left(), foot.top(), foot.width(), 1), line)
        if side.width() > 0:
            painter.fillRect(side, base)
            painter.fillRect(QRectF(side.left(), 0, 1, side.height()), line)
        if minimap is not None and not frame.isNull():
            minimap.paint(painter, frame, self._viewport.camera.visible)
        if state is None:
            return
        if not frame.isNull():
            foot.setRight(frame.left())
        if state.overlay is not None:
            taken = paint_scale(painter, self._theme, state.overlay, foot)
            foot.setLeft(foot.left() + taken)
        paint_legend(painter, self._theme, legend_entries(state), foot)
