"""Paints the scene: edges, boxes and the selection, at three levels of detail.

At 70 % and above it paints everything, below that boxes with label and type, below 35 % cells
in the colour of the family or of the overlay. It paints only the visible part and caches boxes
as pixmaps, so panning over thousands of operators stays within a frame.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QImage, QPainter, QPen, QPixmap

from kuiper_studio.graph_view.boxes import MARGIN, BoxLook, text_size_at
from kuiper_studio.graph_view.cards import CardPainter, paint_frame
from kuiper_studio.graph_view.cells import CellColors
from kuiper_studio.graph_view.colors import level_colors
from kuiper_studio.graph_view.geometry import to_rects
from kuiper_studio.graph_view.raster import MOST_LINES, Raster, fill_cells
from kuiper_studio.graph_view.scene import BOX_HEIGHT, TEXT_SCALE, fonts
from kuiper_studio.graph_view.state import NONE
from kuiper_studio.item_models.comparison_rows import DifferenceKind
from kuiper_studio.item_models.overlays import NO_LEVEL

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from kuiper_studio.graph_view.geometry import Geometry
    from kuiper_studio.graph_view.state import SceneState
    from kuiper_studio.item_models.overlays import Overlay
    from kuiper_studio.layout.model import Floats
    from kuiper_studio.theme import Theme, Tokens

__all__ = ["CELLS_BELOW", "FULL_FROM", "ScenePainter"]

FULL_FROM: Final = 0.7
CELLS_BELOW: Final = 0.35
_LEAST_CELL: Final = 6.0  # pixels across the flow
_LEAST_CELL_ALONG: Final = 1.5
# More of them are rasterised by NumPy.
_MOST_RECTS: Final = 1200
_MOST_POLYLINES: Final = 400
_MOST_NEW: Final = 20  # boxes painted for the first time in one frame
_MOST_EDGES: Final = 160  # with dashes, round corners and heads
# More dashed lines are one device pixel wide: Qt dashes wider ones twenty times slower.
_MOST_WIDE_DASHES: Final = 40
_CACHE_BYTES: Final = 96 * 1024 * 1024
_RING_DISTANCE: Final = 4.0
_DOT_RADIUS: Final = 2.6
_DASH: Final = (4.0, 3.0)
_PENDING: Final = ("ctl", 1.4)
_PENS: Final = (("text2", 1.8), ("div", 2.0), ("div", 3.0))
"""Token and width of an edge with a value, by `SceneState.carried`."""
DIMMED: Final = 0.28
"""Opacity of boxes and edges beside those that the user looks for."""
_LABEL_DISTANCE: Final = 4.0
_LABEL_HEIGHT: Final = 11.0


class ScenePainter:
    """Paints a laid-out scene in the colours of a theme.

    Parameters
    ----------
    theme : Theme
    geometry : Geometry
    state : SceneState
    thumbnails : bool, optional
        Whether boxes have pictures of their outputs.

    Attributes
    ----------
    hovered_edge : int
        The edge under the mouse, or NONE.
    complete : bool
        Whether all boxes were painted in full. Of many new boxes some are left to the next
        frames.
    step_key : str
        The key that steps, shown in the current box.
    """

    def __init__(
        self, theme: Theme, geometry: Geometry, state: SceneState, *, thumbnails: bool = True
    ) -> None:
        self._theme = theme
        self._geometry = geometry
        self._state = state
        self._boxes = CardPainter(theme, thumbnails=thumbnails)
        self._colors = CellColors(theme, state.scene, "base")
        self._pixmaps: dict[int, tuple[BoxLook, QPixmap]] = {}
        self._former: dict[int, tuple[BoxLook, QPixmap]] = {}
        self._pixmap_key: tuple[object, ...] = ()
        self._made = 0
        self._pixmap_bytes = 0
        self._raster: Raster | None = None
        self._tint_key: tuple[Overlay, Tokens] | None = None
        self._tint_table: npt.NDArray[np.uint32] = np.empty(0, np.uint32)
        self._visible: QRectF | None = None  # the part that long lines are clipped to
        self._hairlines = False
        self._edge_metrics = QFontMetricsF(fonts().edge)
        self.hovered_edge = NONE
        self.complete = True
        self.step_key = "F10"

    def forget(self) -> None:
        """Clear the cached pixmaps, after a change of theme."""
        self._pixmap_key = ()

    def look(self, index: int) -> BoxLook:
        """Return what a box shows now."""
        state, overlay = self._state, self._state.overlay
        box = state.scene.boxes[index]
        tint, value = None, ""
        if overlay is not None and overlay.levels[index] != NO_LEVEL:
            tint = int(self._tints(overlay)[overlay.levels[index]])
            value = overlay.box_text(index)
        return BoxLook(
            box,
            state.shown(index),
            state.shape(box.operand),
            state.summaries.get(index),
            index in state.breakpoints,
            index == state.suspect,
            self.step_key,
            index in state.supplied,
            state.marks.get(index),
            index in state.bookmarks,
            tint,
            value,
            int(state.executed[index]),
            int(state.found_counts[index]) if state.found is not None else None,
            self._special(index),
        )

    def _special(self, index: int) -> tuple[int, int, int]:
        nan, pinf, ninf = self._state.special_counts[:, index].tolist()
        return nan, pinf, ninf

    def _tints(self, overlay: Overlay) -> npt.NDArray[np.uint32]:
        key = (overlay, self._theme.tokens)
        if self._tint_key != key:
            self._tint_key, self._tint_table = key, level_colors(self._theme, overlay)
        return self._tint_table

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
            Whether to cache boxes as pixmaps; False for vector graphics.
        """
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if zoom < CELLS_BELOW:
            self._paint_far(painter, visible, zoom, keep=keep)
        else:
            edges = self._geometry.edges_in(visible.adjusted(-8, -8, 8, 8))
            lit = self._state.lit()
            if keep and len(edges) > _MOST_EDGES:
                found = self._geometry.segments_in(visible, 0.0, MOST_LINES)
                self._paint_lines(painter, visible, zoom, found, "ctl")
                # Edges that end here still have round corners and arrow heads.
                edges = self._geometry.ending_in(edges, visible, _MOST_EDGES)
            if keep and len(lit) > _MOST_EDGES:
                found = self._geometry.routes_in(frozenset(lit), visible, MOST_LINES)
                self._paint_lines(painter, visible, zoom, found, "focus")
                lit.intersection_update(edges.tolist())
            self._hairlines = keep and len(edges) > _MOST_WIDE_DASHES
            painter.save()
            painter.scale(zoom, zoom)
            painter.translate(-visible.topLeft())
            self._paint_frames(painter, visible, zoom, keep=keep)
            self._paint_edges(painter, visible, zoom, edges, lit)
            painter.restore()
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
            self._made, self.complete = 0, True
        area = visible.adjusted(-MARGIN, -MARGIN, MARGIN, MARGIN)
        corners = self._geometry.rects
        for index in self._geometry.boxes_in(area).tolist():
            x = (float(corners[index, 0]) - visible.left()) * zoom
            y = (float(corners[index, 1]) - visible.top()) * zoom
            painter.setOpacity(DIMMED if self._state.is_dimmed(index) else 1.0)
            if keep:
                margin = math.ceil(MARGIN * zoom)
                at = QPointF(
                    round(x * ratio) / ratio - margin, round(y * ratio) / ratio - margin
                )
                self._paint_kept(painter, at, index, zoom, ratio)
            else:
                painter.save()
                painter.translate(x, y)
                self._paint_box(painter, self.look(index), zoom, 1.0)
                painter.restore()
        painter.setOpacity(1.0)

    def _paint_box(
        self, painter: QPainter, look: BoxLook, zoom: float, text_size: float
    ) -> None:
        card = look.box.card
        if zoom < FULL_FROM:
            if card is None:
                self._boxes.paint_small(painter, look, zoom)
            else:
                self._boxes.paint_small_card(painter, look, card, zoom)
            return
        painter.scale(zoom, zoom)
        if card is None:
            self._boxes.paint(painter, look, text_size)
        else:
            self._boxes.paint_card(painter, look, card)

    def _use_key(self, key: tuple[object, ...]) -> None:
        if key != self._pixmap_key or self._pixmap_bytes > _CACHE_BYTES:
            if self._pixmaps:
                self._former = self._pixmaps if key[1:] == self._pixmap_key[1:] else {}
            self._pixmaps = {}
            self._pixmap_key, self._pixmap_bytes = key, 0

    def _paint_kept(
        self, painter: QPainter, at: QPointF, index: int, zoom: float, ratio: float
    ) -> None:
        """Paint a box; one of many new ones from its pixmap of another zoom, or as a cell."""
        look = self.look(index)
        known = self._pixmaps.get(index)
        if known is not None and known[0] == look:
            painter.drawPixmap(at, known[1])
            return
        if self._made < _MOST_NEW:
            self._made += 1
            painter.drawPixmap(at, self._pixmap(index, look, zoom, ratio))
            return
        self.complete = False
        margin, width = math.ceil(MARGIN * zoom), math.ceil(look.box.width * zoom)
        size = QSizeF(width + 2 * margin, math.ceil(look.box.height * zoom) + 2 * margin)
        former = known or self._former.get(index)
        if former is not None:
            painter.drawPixmap(QRectF(at, size), former[1], QRectF(former[1].rect()))
        else:
            cell = QRectF(at, size).adjusted(margin, margin, -margin, -margin)
            painter.fillRect(cell, self._theme.color("raised"))

    def _pixmap(self, index: int, look: BoxLook, zoom: float, ratio: float) -> QPixmap:
        margin = math.ceil(MARGIN * zoom)
        width = math.ceil(look.box.width * zoom) + 2 * margin
        height = math.ceil(look.box.height * zoom) + 2 * margin
        pixmap = QPixmap(math.ceil(width * ratio), math.ceil(height * ratio))
        pixmap.setDevicePixelRatio(ratio)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.translate(margin, margin)
        self._paint_box(painter, look, zoom, text_size_at(zoom))
        painter.end()
        self._pixmaps[index] = look, pixmap
        self._pixmap_bytes += pixmap.width() * pixmap.height() * 4
        return pixmap

    def _paint_frames(
        self, painter: QPainter, visible: QRectF, zoom: float, *, keep: bool
    ) -> None:
        # A written picture is painted in parts; its titles are where its frames begin.
        seen_from = visible.left() if keep else -math.inf
        for number in self._geometry.frames_in(visible).tolist():
            frame = self._state.scene.frames[number]
            area = self._geometry.frame_rect(number)
            text = self._state.group_text(frame.group)
            paint_frame(painter, self._theme, frame, area, text, zoom, seen_from)

    def _paint_ring(self, painter: QPainter, zoom: float) -> None:
        rect = self._ringed()
        if rect is None:
            return
        scale = max(zoom, 0.6)  # stays visible from far
        distance = _RING_DISTANCE * scale / zoom
        pen = QPen(self._theme.color("focus"), 1.5 * scale / zoom)
        painter.setPen(pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        rect.adjust(-distance, -distance, distance, distance)
        painter.drawRoundedRect(rect, 5 + distance, 5 + distance)

    def _ringed(self) -> QRectF | None:
        """Return the rectangle of what is selected: a group, or an operator."""
        state, geometry = self._state, self._geometry
        group = state.picked_group
        if group is not None:
            for number, frame in enumerate(state.scene.frames):
                if frame.group == group:
                    return geometry.frame_rect(number)
            return geometry.rect(state.scene.box_of(group.first))
        return geometry.rect(state.selected) if state.selected != NONE else None

    # Edges

    def _paint_edges(
        self,
        painter: QPainter,
        visible: QRectF,
        zoom: float,
        near: npt.NDArray[np.intp],
        lit: set[int],
    ) -> None:
        state = self._state
        self._visible = None if self._hairlines else visible
        shown = ~state.dimmed_among(near)  # painted last, over the dimmed ones
        kinds = 16 * shown + 2 * state.carried[near] + state.computed_among(near)
        for kind in sorted(set(kinds.tolist())):
            carried, computed = divmod(kind % 16, 2)
            pen = self._pen(carried=carried, computed=bool(computed))
            painter.setOpacity(1.0 if kind >= 16 else DIMMED)
            self._draw_edges(painter, near[kinds == kind].tolist(), pen)
        painter.setOpacity(1.0)
        if lit:
            pen = QPen(self._theme.color("focus"), 2.5)
            self._draw_edges(painter, sorted(lit), pen, whole=True)
        hovered = self.hovered_edge
        if hovered != NONE:
            carried = int(state.carried[hovered])
            pen = self._pen(carried=carried, computed=state.computed(hovered))
            if hovered in lit:
                pen = QPen(self._theme.color("focus"), 2.5)
            pen.setWidthF(pen.widthF() + 1)
            self._draw_edges(painter, [hovered], pen, whole=True)
        if zoom >= FULL_FROM:
            self._paint_labels(painter, visible)

    def _paint_lines(
        self, painter: QPainter, visible: QRectF, zoom: float, segments: Floats, token: str
    ) -> None:
        """Paint edges that pass through as plain lines, because there are many."""
        base = QColor(Qt.GlobalColor.transparent).rgba()
        picture = self._rastered(visible, zoom, segments, token, base)
        height, width = picture.shape
        format_ = QImage.Format.Format_ARGB32_Premultiplied
        painter.drawImage(
            QPointF(0, 0), QImage(picture.data, width, height, 4 * width, format_)
        )

    def _rastered(
        self, visible: QRectF, zoom: float, segments: Floats, token: str, base: int
    ) -> npt.NDArray[np.uint32]:
        """Rasterise straight parts of edges in view coordinates."""
        width = max(1, round(visible.width() * zoom))
        height = max(1, round(visible.height() * zoom))
        corner = np.array([visible.left(), visible.top()] * 2)
        if self._raster is None or self._raster.picture.shape != (height, width):
            self._raster = Raster(width, height)
        ink = self._theme.color(token).rgba()
        return self._raster.paint((segments - corner) * zoom, ink, base)

    def _pen(self, *, carried: int, computed: bool) -> QPen:
        """Return the pen of an edge; see `SceneState.carried`."""
        token, width = _PENS[carried] if computed or carried else _PENDING
        pen = QPen(self._theme.color(token), width)
        pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        if not computed and self._hairlines:
            pen.setCosmetic(True)
            pen.setWidthF(1.0)
            pen.setDashPattern(_DASH)
        elif not computed:
            pen.setDashPattern([length / width for length in _DASH])
        return pen

    def _draw_edges(
        self, painter: QPainter, edges: Iterable[int], pen: QPen, *, whole: bool = False
    ) -> None:
        geometry = self._geometry
        skips = geometry.layout.skips
        heads = QPen(Qt.PenStyle.NoPen)
        for edge in edges:
            painter.setPen(pen)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawPath(geometry.path(edge, self._visible, whole=whole))
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
        numbers = near.nonzero()[0]
        dimmed = state.dimmed_among(numbers).tolist()
        for number, is_dimmed in zip(numbers.tolist(), dimmed, strict=True):
            edge = state.scene.edges[number]
            painter.setOpacity(DIMMED if is_dimmed else 1.0)
            skip = bool(layout.skips[number])
            text = edge.text(state.shape(edge.operand), skip=skip)
            width = self._edge_metrics.horizontalAdvance(text) / TEXT_SCALE
            across = not self._geometry.left_right and not skip
            if text and (across or width + _LABEL_DISTANCE <= room[number]):
                x, y = points[number].tolist()
                side = int(layout.label_sides[number])
                self._paint_label(painter, x, y, side, text, width, "text2")
                difference = state.differences.get(edge.operand)
                if difference is None:
                    continue
                width = self._edge_metrics.horizontalAdvance(difference) / TEXT_SCALE
                if across or width + _LABEL_DISTANCE <= room[number]:
                    # On the other side of the line than the shape.
                    self._paint_label(painter, x, y, -side or 1, difference, width, "div")
        painter.setOpacity(1.0)

    def _paint_label(
        self,
        painter: QPainter,
        x: float,
        y: float,
        side: int,
        text: str,
        width: float,
        token: str,
    ) -> None:
        """Write beside or on a line, on a patch that covers other lines."""
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
        painter.setPen(self._theme.color(token))
        painter.scale(1 / TEXT_SCALE, 1 / TEXT_SCALE)
        painter.drawText(QPointF(left * TEXT_SCALE, (top + 8.6) * TEXT_SCALE), text)
        painter.restore()

    # Small zoom

    def _paint_far(
        self, painter: QPainter, visible: QRectF, zoom: float, *, keep: bool
    ) -> None:
        geometry, state = self._geometry, self._state
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
        area = visible.adjusted(-MARGIN, -MARGIN, MARGIN, MARGIN)
        boxes, edges = geometry.boxes_in(area), geometry.edges_in(area)
        many_cells = keep and len(boxes) > _MOST_RECTS
        many_edges = keep and len(edges) > _MOST_POLYLINES
        if many_cells or many_edges:
            self._paint_pixels(painter, visible, zoom, boxes if many_cells else boxes[:0])
        painter.scale(zoom, zoom)
        painter.translate(-visible.topLeft())
        self._paint_frames(painter, visible, zoom, keep=keep)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if not (many_cells or many_edges):
            painter.setPen(QPen(self._theme.color("ctl"), 0))
            for edge in edges.tolist():
                painter.drawPolyline(geometry.polygon(edge))
        lit = QPen(self._theme.color("focus"), 2)
        lit.setCosmetic(True)
        painter.setPen(lit)
        for edge in sorted(state.lit()):
            painter.drawPolyline(geometry.polygon(edge, whole=True))
        painter.setPen(Qt.PenStyle.NoPen)
        if not many_cells:
            rects, colors = self._cell_rects(boxes, zoom), self._colors.of(state, boxes)
            for color in np.unique(colors).tolist():
                painter.setBrush(QColor.fromRgba(color))
                painter.drawRects(to_rects(rects[colors == color]))
        self._paint_far_marks(painter, zoom)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)

    def _paint_pixels(
        self, painter: QPainter, visible: QRectF, zoom: float, boxes: npt.NDArray[np.intp]
    ) -> None:
        """Rasterise edges, and cells over them."""
        found = self._geometry.segments_in(visible, 1.0 / zoom, MOST_LINES)
        base = self._theme.color("base").rgba()
        picture = self._rastered(visible, zoom, found, "ctl", base)
        if len(boxes):
            corner = np.array([visible.left(), visible.top()] * 2)
            cells = (self._cell_rects(boxes, zoom) - corner) * zoom
            fill_cells(picture, cells, self._colors.of(self._state, boxes))
        height, width = picture.shape
        image = QImage(picture.data, width, height, 4 * width, QImage.Format.Format_RGB32)
        painter.drawImage(QPointF(0, 0), image)

    def _cell_rects(self, boxes: npt.NDArray[np.intp], zoom: float) -> Floats:
        if BOX_HEIGHT * zoom >= _LEAST_CELL:
            return self._geometry.rects[boxes]
        return self._geometry.grown(boxes, _LEAST_CELL / zoom, _LEAST_CELL_ALONG / zoom)

    def _paint_far_marks(self, painter: QPainter, zoom: float) -> None:
        """Mark breakpoints, and where differences are born."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for index, mark in self._state.marks.items():
            if mark.kind is DifferenceKind.BORN:
                corner = self._geometry.rect(index).topRight()
                painter.setBrush(self._theme.color("div"))
                painter.drawEllipse(corner, 5 / zoom, 5 / zoom)
        painter.setBrush(self._theme.color("bp"))
        for index in self._state.breakpoints:
            corner = self._geometry.rect(index).topLeft()
            painter.drawEllipse(corner, 4 / zoom, 4 / zoom)


def dot_tile(theme: Theme, zoom: float, ratio: float) -> QPixmap:
    """Make one tile of the canvas's dots."""
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
