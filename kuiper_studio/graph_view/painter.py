"""Paints the scene: edges, boxes and what marks the selection, at three levels of detail.

At 70 % and above everything; below it boxes with label and type; below 35 % cells in the
colour of the family. Only what lies in the visible part is touched, and boxes are kept as
pixmaps, so that panning over thousands of operators stays within a frame.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen, QPixmap

from kuiper_studio.graph_view.boxes import MARGIN, BoxLook, BoxPainter
from kuiper_studio.graph_view.scene import BOX_HEIGHT, TEXT_SCALE, fonts
from kuiper_studio.graph_view.state import NONE, BoxState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kuiper_studio.graph_view.geometry import Geometry
    from kuiper_studio.graph_view.state import SceneState
    from kuiper_studio.theme import Theme

__all__ = ["CELLS_BELOW", "FULL_FROM", "ScenePainter"]

FULL_FROM: Final = 0.7
CELLS_BELOW: Final = 0.35
_LEAST_CELL: Final = 6.0  # pixels across the flow
_LEAST_CELL_ALONG: Final = 1.5
_PENDING_CELL: Final = 0.6
_CACHE_BYTES: Final = 96 * 1024 * 1024
_RING_DISTANCE: Final = 4.0
_DOT_RADIUS: Final = 2.6
_DASH: Final = (4.0, 3.0)
_LABEL_DISTANCE: Final = 4.0
_LABEL_HEIGHT: Final = 11.0


class ScenePainter:
    """Paints a laid-out scene in the colours of a theme.

    Parameters
    ----------
    theme : Theme
    geometry : Geometry
    state : SceneState
    """

    def __init__(self, theme: Theme, geometry: Geometry, state: SceneState) -> None:
        self._theme = theme
        self._geometry = geometry
        self._state = state
        self._boxes = BoxPainter(theme)
        self._pixmaps: dict[int, tuple[BoxLook, QPixmap]] = {}
        self._pixmap_key: tuple[object, ...] = ()
        self._pixmap_bytes = 0
        self._edge_metrics = QFontMetricsF(fonts().edge)
        self.hovered_edge = NONE
        self.step_key = "F10"

    def forget(self) -> None:
        """Drop what is kept: the theme has changed."""
        self._pixmap_key = ()

    def look(self, index: int) -> BoxLook:
        """What a box shows now."""
        state = self._state
        box = state.scene.boxes[index]
        return BoxLook(
            box,
            state.shown(index),
            state.shape(box.operand),
            state.summaries.get(index),
            index in state.breakpoints,
            index == state.suspect,
            self.step_key,
            index in state.supplied,
        )

    # Whole scene

    def paint(
        self, painter: QPainter, visible: QRectF, zoom: float, *, keep: bool = True
    ) -> None:
        """Paint what is visible.

        Parameters
        ----------
        painter : QPainter
            In view coordinates: the visible part's top left corner is at its origin.
        visible : QRectF
            Part of the scene.
        zoom : float
        keep : bool
            Paint boxes by way of pixmaps that are kept; False for vector graphics.
        """
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.scale(zoom, zoom)
        painter.translate(-visible.topLeft())
        if zoom < CELLS_BELOW:
            self._paint_far(painter, visible, zoom)
        else:
            self._paint_edges(painter, visible, zoom)
            painter.restore()
            painter.save()
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            self._paint_boxes(painter, visible, zoom, keep=keep)
            painter.scale(zoom, zoom)
            painter.translate(-visible.topLeft())
        self._paint_ring(painter, zoom)
        painter.restore()

    # Boxes

    def _paint_boxes(
        self, painter: QPainter, visible: QRectF, zoom: float, *, keep: bool
    ) -> None:
        ratio = painter.device().devicePixelRatioF()
        if keep:
            self._use_key((zoom, ratio, self._theme.tokens))
        area = visible.adjusted(-MARGIN, -MARGIN, MARGIN, MARGIN)
        corners = self._geometry.rects
        for index in self._geometry.boxes_in(area).tolist():
            x = (float(corners[index, 0]) - visible.left()) * zoom
            y = (float(corners[index, 1]) - visible.top()) * zoom
            if keep:
                margin = math.ceil(MARGIN * zoom)
                at = QPointF(
                    round(x * ratio) / ratio - margin, round(y * ratio) / ratio - margin
                )
                painter.drawPixmap(at, self._pixmap(index, zoom, ratio))
            else:
                painter.save()
                painter.translate(x, y)
                self._paint_box(painter, self.look(index), zoom)
                painter.restore()

    def _paint_box(self, painter: QPainter, look: BoxLook, zoom: float) -> None:
        if zoom < FULL_FROM:
            self._boxes.paint_small(painter, look, zoom)
        else:
            painter.scale(zoom, zoom)
            self._boxes.paint(painter, look)

    def _use_key(self, key: tuple[object, ...]) -> None:
        if key != self._pixmap_key or self._pixmap_bytes > _CACHE_BYTES:
            self._pixmaps.clear()
            self._pixmap_key, self._pixmap_bytes = key, 0

    def _pixmap(self, index: int, zoom: float, ratio: float) -> QPixmap:
        look = self.look(index)
        known = self._pixmaps.get(index)
        if known is not None and known[0] == look:
            return known[1]
        margin = math.ceil(MARGIN * zoom)
        width = math.ceil(look.box.width * zoom) + 2 * margin
        height = math.ceil(BOX_HEIGHT * zoom) + 2 * margin
        pixmap = QPixmap(math.ceil(width * ratio), math.ceil(height * ratio))
        pixmap.setDevicePixelRatio(ratio)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.translate(margin, margin)
        self._paint_box(painter, look, zoom)
        painter.end()
        self._pixmaps[index] = look, pixmap
        self._pixmap_bytes += pixmap.width() * pixmap.height() * 4
        return pixmap

    def _paint_ring(self, painter: QPainter, zoom: float) -> None:
        selected = self._state.selected
        if selected == NONE:
            return
        scale = max(zoom, 0.6)  # stays visible from far
        distance = _RING_DISTANCE * scale / zoom
        pen = QPen(self._theme.color("focus"), 1.5 * scale / zoom)
        painter.setPen(pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        rect = self._geometry.rect(selected)
        rect.adjust(-distance, -distance, distance, distance)
        painter.drawRoundedRect(rect, 5 + distance, 5 + distance)

    # Edges

    def _paint_edges(self, painter: QPainter, visible: QRectF, zoom: float) -> None:
        state, geometry = self._state, self._geometry
        shown = geometry.edges_in(visible.adjusted(-8, -8, 8, 8)).tolist()
        lit = state.lit()
        pending, computed = self._pens()
        done = [edge for edge in shown if state.computed(edge)]
        self._draw_edges(painter, [e for e in shown if not state.computed(e)], pending)
        self._draw_edges(painter, done, computed)
        if lit:
            pen = QPen(self._theme.color("focus"), 2.5)
            self._draw_edges(painter, sorted(lit), pen, whole=True)
        hovered = self.hovered_edge
        if hovered != NONE:
            pen = QPen(computed if state.computed(hovered) else pending)
            if hovered in lit:
                pen = QPen(self._theme.color("focus"), 2.5)
            pen.setWidthF(pen.widthF() + 1)
            self._draw_edges(painter, [hovered], pen, whole=True)
        if zoom >= FULL_FROM:
            self._paint_labels(painter, visible)

    def _pens(self) -> tuple[QPen, QPen]:
        pending = QPen(self._theme.color("ctl"), 1.4)
        pending.setCapStyle(Qt.PenCapStyle.FlatCap)
        pending.setDashPattern([length / 1.4 for length in _DASH])
        computed = QPen(self._theme.color("text2"), 1.8)
        computed.setCapStyle(Qt.PenCapStyle.FlatCap)
        return pending, computed

    def _draw_edges(
        self, painter: QPainter, edges: Iterable[int], pen: QPen, *, whole: bool = False
    ) -> None:
        geometry = self._geometry
        skips = geometry.layout.skips
        heads = QPen(Qt.PenStyle.NoPen)
        for edge in edges:
            painter.setPen(pen)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawPath(geometry.path(edge, whole=whole))
            painter.setPen(heads)
            painter.setBrush(pen.color())
            painter.drawPolygon(geometry.arrow(edge))
            if skips[edge]:
                x, y = geometry.layout.routes[edge][0].tolist()
                painter.drawEllipse(QPointF(x, y), _DOT_RADIUS, _DOT_RADIUS)

    def _paint_labels(self, painter: QPainter, visible: QRectF) -> None:
        layout, state = self._geometry.layout, self._state
        points, room = layout.label_points, layout.label_room
        area = visible.adjusted(-100, -100, 100, 100)
        near = (
            (room > 0)
            & (points[:, 0] > area.left())
            & (points[:, 0] < area.right())
            & (points[:, 1] > area.top())
            & (points[:, 1] < area.bottom())
        )
        painter.setFont(fonts().edge)
        for number in near.nonzero()[0].tolist():
            edge = state.scene.edges[number]
            skip = bool(layout.skips[number])
            text = edge.text(state.shape(edge.operand), skip=skip)
            width = self._edge_metrics.horizontalAdvance(text) / TEXT_SCALE
            across = not self._geometry.left_right and not skip
            if text and (across or width + _LABEL_DISTANCE <= room[number]):
                x, y = points[number].tolist()
                self._paint_label(painter, x, y, int(layout.label_sides[number]), text, width)

    def _paint_label(
        self, painter: QPainter, x: float, y: float, side: int, text: str, width: float
    ) -> None:
        """Write beside or on a line, on a patch that keeps other lines off the text."""
        painter.save()
        painter.translate(x, y)
        if self._geometry.left_right or side == 0:
            if side == 0 and not self._geometry.left_right:
                painter.rotate(-90)
            left = -width / 2
            top = side * (_LABEL_DISTANCE + _LABEL_HEIGHT / 2) - _LABEL_HEIGHT / 2
        else:
            left = _LABEL_DISTANCE + 3 if side > 0 else -_LABEL_DISTANCE - 3 - width
            top = -_LABEL_HEIGHT / 2
        patch = 4.0 if side == 0 else 1.0
        area = QRectF(left - patch, top, width + 2 * patch, _LABEL_HEIGHT)
        painter.fillRect(area, self._theme.color("base"))
        painter.setPen(self._theme.color("text2"))
        painter.scale(1 / TEXT_SCALE, 1 / TEXT_SCALE)
        painter.drawText(QPointF(left * TEXT_SCALE, (top + 8.6) * TEXT_SCALE), text)
        painter.restore()

    # From far

    def _paint_far(self, painter: QPainter, visible: QRectF, zoom: float) -> None:
        geometry, state = self._geometry, self._state
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
        pen = QPen(self._theme.color("ctl"), 0)
        painter.setPen(pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPath(geometry.far_path)
        lit = QPen(self._theme.color("focus"), 2)
        lit.setCosmetic(True)
        painter.setPen(lit)
        for edge in sorted(state.lit()):
            painter.drawPolyline(geometry.polygon(edge))
        painter.setPen(Qt.PenStyle.NoPen)
        area = visible.adjusted(-MARGIN, -MARGIN, MARGIN, MARGIN)
        for color, rects in self._cells(geometry.boxes_in(area).tolist(), zoom):
            painter.setBrush(color)
            painter.drawRects(rects)
        self._paint_far_breakpoints(painter, zoom)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)

    def _cells(self, indices: Iterable[int], zoom: float) -> list[tuple[QColor, list[QRectF]]]:
        """Cells by colour; opaque, so that edges do not shine through."""
        state, rects = self._state, self._geometry.rect_list
        if BOX_HEIGHT * zoom < _LEAST_CELL:
            rects = self._geometry.grown_rects(_LEAST_CELL / zoom, _LEAST_CELL_ALONG / zoom)
        base = self._theme.color("base")
        groups: dict[tuple[str, bool], list[QRectF]] = {}
        for index in indices:
            shown = state.shown(index)
            token = _CELL_TOKEN.get(shown, state.scene.boxes[index].family.token)
            faded = shown in _FADED
            groups.setdefault((token, faded), []).append(rects[index])
        return [
            (_mixed(self._theme.color(token), base, _PENDING_CELL if faded else 1.0), there)
            for (token, faded), there in groups.items()
        ]

    def _paint_far_breakpoints(self, painter: QPainter, zoom: float) -> None:
        painter.setBrush(self._theme.color("bp"))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for index in self._state.breakpoints:
            corner = self._geometry.rect_list[index].topLeft()
            painter.drawEllipse(corner, 4 / zoom, 4 / zoom)


_CELL_TOKEN: Final = {BoxState.CURRENT: "cur", BoxState.FAILED: "fail"}
_FADED: Final = frozenset({BoxState.PENDING, BoxState.BLOCKED})


def _mixed(color: QColor, base: QColor, share: float) -> QColor:
    """`share` of one colour over another one."""
    parts = (
        (color.red(), base.red()),
        (color.green(), base.green()),
        (color.blue(), base.blue()),
    )
    return QColor(*(round(part * share + under * (1 - share)) for part, under in parts))


def dot_tile(theme: Theme, zoom: float, ratio: float) -> QPixmap:
    """One cell of the canvas's dots."""
    pitch = max(4, round(20 * zoom * ratio))
    tile = QPixmap(pitch, pitch)
    tile.fill(Qt.GlobalColor.transparent)
    painter = QPainter(tile)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    pen = QPen(theme.color("line"), 1.6 * ratio)
    pen.setCapStyle(Qt.PenCapStyle.RoundCap)
    painter.setPen(pen)
    middle = QPointF(pitch / 2, pitch / 2)
    painter.drawLine(QLineF(middle, middle))
    painter.end()
    tile.setDevicePixelRatio(ratio)
    return tile
