"""Paints the boxes of operators.

A box never changes its size with its state, so stepping moves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QImage, QPainter, QPainterPath, QPen

from engine.text import format_brief, format_short_count
from kuiper_studio.badges import BADGE_SIZE, paint_badge
from kuiper_studio.engine_service.summary import THUMBNAIL, Summary
from kuiper_studio.graph_view.colors import ink_on
from kuiper_studio.graph_view.glyphs import (
    SPECIAL_MARKS,
    SUSPECT_MARK,
    DiscMark,
    paint_disc_mark,
    paint_glyph,
)
from kuiper_studio.graph_view.scene import (
    BOX_HEIGHT,
    DETAIL_LEFT,
    LEFT_INSET,
    RIGHT_INSET,
    TEXT_SCALE,
    Box,
    fonts,
)
from kuiper_studio.graph_view.text import format_range
from kuiper_studio.item_models.comparison_rows import DifferenceKind
from kuiper_studio.item_models.statuses import STATUS_LOOKS, DisplayStatus

if TYPE_CHECKING:
    from kuiper_studio.item_models.difference_marks import DifferenceMark
    from kuiper_studio.theme import Theme

__all__ = ["BoxLook", "BoxPainter", "detail_lines", "text_size_at"]

RADIUS: Final = 5.0
MARGIN: Final = 14.0
"""Margin around a box, for marks that stick out of its corners."""
_BAND: Final = 5.0
_PICTURE_TOP: Final = 54.0
_PICTURE_SIDE: Final = 33.0
_PICTURE_GAP: Final = DETAIL_LEFT - LEFT_INSET - _PICTURE_SIDE
_TEXT_GROWTH: Final = 0.25  # of the zoom beyond 100 %
_BASELINES: Final = {"label": 15.0, "type": 31.0, "name": 46.0, "first": 67.0, "second": 81.0}
_GLYPH_SIZE: Final = 10.0
_BADGE: Final = 15.0
_BREAKPOINT: Final = 18.0
_SMALL_BADGE: Final = 12.0
_BOOKMARK: Final = (14.0, 11.0)  # its height in a whole and in a small box
_BADGE_GAP: Final = 3.0
_MOSTLY_ZERO: Final = 0.5
_PREFIXES: Final = ("nn.", "F.", "torch.", "Tensor.", "pnnx.", "ncnn.", "aten::", "prim::")


@dataclass(frozen=True, slots=True)
class _Style:
    """Colour tokens and strokes of the box for one status.

    Attributes
    ----------
    marked : bool
        Whether the box shows the status's mark.
    word : str
        Text instead of a range; ``""`` for none.
    """

    fill: str = "raised"
    border: str = "ctl"
    width: float = 1.0
    dash: tuple[float, float] | None = None
    title: str = "text"
    text: str = "text2"
    marked: bool = False
    word: str = ""


STYLES: Final = {
    DisplayStatus.PLAIN: _Style(),
    DisplayStatus.PENDING: _Style(title="text2"),
    DisplayStatus.BLOCKED: _Style(title="text2"),
    DisplayStatus.UNSUPPORTED: _Style(
        border="unsup", width=1.5, dash=(5.0, 3.0), word="CANNOT RUN"
    ),
    DisplayStatus.EXECUTED: _Style(marked=True),
    DisplayStatus.SUPPLIED: _Style(marked=True),
    DisplayStatus.CURRENT: _Style(
        fill="curBg", border="cur", width=3.0, marked=True, word="NEXT"
    ),
    DisplayStatus.FAILED: _Style(
        fill="failBg", border="fail", width=3.0, marked=True, word="FAILED"
    ),
}

_PLAIN_FILL: Final = STYLES[DisplayStatus.PLAIN].fill
# Of boxes where a difference is born, if no status says more by its border.
_BORN_STYLES: Final = {
    status: replace(style, border="div", width=2.0)
    for status, style in STYLES.items()
    if style == replace(style, border="ctl", width=1.0, dash=None)
}
_DIFFERING: Final = frozenset({DifferenceKind.BORN, DifferenceKind.INHERITED})

# Their lines begin at the left.
_WITHOUT_PICTURE: Final = frozenset({DisplayStatus.PLAIN, DisplayStatus.UNSUPPORTED})


@dataclass(frozen=True, slots=True)
class BoxLook:
    """Everything that a box shows; two equal looks paint the same.

    Attributes
    ----------
    box : Box
    status : DisplayStatus
    shape : str
        Computed shape, ``""`` where it is not known.
    summary : Summary or None
        None where there is no value, or it has not been looked at yet.
    breakpoint : bool
    suspect : bool
        Whether a failure hints at the operator.
    key : str
        The key that steps, shown in the current box.
    supplied : bool
        Whether the user overrides the operator's output.
    mark : DifferenceMark or None
        What a comparison says about the operator; None without one.
    bookmark : bool
    tint : int or None
        The colour of an overlay, ``0xAARRGGBB``; None for none.
    value : str
        What it stands for; ``""`` for none.
    executed : int
        Of a closed group, how many of its operators have run.
    found : int or None
        How many of them the user looks for; None while nothing is looked for.
    special : (int, int, int)
        How many of its operators are known to have given NaN, +Inf and -Inf.
    """

    box: Box
    status: DisplayStatus
    shape: str = ""
    summary: Summary | None = None
    breakpoint: bool = False
    suspect: bool = False
    key: str = "F10"
    supplied: bool = False
    mark: DifferenceMark | None = None
    bookmark: bool = False
    tint: int | None = None
    value: str = ""
    executed: int = 0
    found: int | None = None
    special: tuple[int, int, int] = (0, 0, 0)

    @property
    def fill(self) -> QColor | None:
        """The colour of an overlay; None where the status has a colour of its own."""
        if self.tint is None or STYLES[self.status].fill != _PLAIN_FILL:
            return None
        return QColor.fromRgba(self.tint)

    @property
    def style(self) -> _Style:
        """Return colours and strokes of the box."""
        if self.is_born:
            return _BORN_STYLES.get(self.status, STYLES[self.status])
        return STYLES[self.status]

    @property
    def has_frame(self) -> bool:
        """Whether there is a picture, or the place of one."""
        has_pixels = self.summary is not None and self.summary.pixels is not None
        return has_pixels or self.status not in _WITHOUT_PICTURE

    @property
    def is_born(self) -> bool:
        """Whether a difference from a reference is born in the operator."""
        return self.mark is not None and self.mark.kind is DifferenceKind.BORN

    @property
    def difference(self) -> str:
        """Return the difference from a reference as the second line says it, or nothing.

        Only a value has a difference: other boxes say what their status is.
        """
        mark = self.mark
        if mark is None or mark.relative is None or self.status is not DisplayStatus.EXECUTED:
            return ""
        if self.is_born:
            return f"BORN {format_brief(mark.relative, 1)}"
        return f"Δ {format_brief(mark.relative, 2)}"

    @property
    def glyph(self) -> tuple[str, str]:
        """Return name and token of the mark of the status; ``""`` for none."""
        status = self.status
        if self.supplied and status in (DisplayStatus.PENDING, DisplayStatus.EXECUTED):
            status = DisplayStatus.SUPPLIED
        look = STATUS_LOOKS[status]
        return look.icon if STYLES[status].marked else "", look.token


def detail_lines(look: BoxLook) -> tuple[str, str]:
    """Return the two lines beside the thumbnail."""
    first, second = look.box.pending
    if look.status is DisplayStatus.CURRENT:
        return STYLES[look.status].word, look.key
    if look.status in (DisplayStatus.FAILED, DisplayStatus.UNSUPPORTED):
        return STYLES[look.status].word, first
    if look.status is DisplayStatus.BLOCKED:
        first, second = STATUS_LOOKS[look.status].text.lower(), ""
    if look.status is DisplayStatus.EXECUTED:
        first, second = look.shape or first, ""
        if look.summary is not None:
            first, second = _value_lines(look.summary, look.box.room)
        second = look.difference[: look.box.room] or second
    return first, look.value if _shows_value(look) else second


def _shows_value(look: BoxLook) -> bool:
    """Return whether the second line is the value that the box is coloured by."""
    return look.fill is not None and 0 < len(look.value) <= look.box.room


def _second_line_look(look: BoxLook) -> tuple[QFont, str]:
    """Return font and token of the second line beside the thumbnail."""
    faces = fonts()
    if _shows_value(look):
        return faces.word, look.style.text
    if look.difference:
        differs = look.mark is not None and look.mark.kind in _DIFFERING
        return (
            faces.word if look.is_born else faces.detail,
            "div" if differs else look.style.text,
        )
    special = look.summary is not None and bool(look.summary.nan)
    return faces.detail, "nan" if special else look.style.text


def _constant_text(value: float, room: int) -> str:
    """Tell the value of all elements, in as many digits as there is room for."""
    texts = [f"all {format_brief(value, digits)}" for digits in (3, 2, 1)]
    return next((text for text in texts if len(text) <= room), texts[-1])


def _value_lines(summary: Summary, room: int) -> tuple[str, str]:
    if summary.text:
        return summary.text[:room], ""
    if not summary.count:
        return "empty", ""
    if summary.low is None or summary.high is None:
        first = "not finite"
    elif summary.low == summary.high:
        first = _constant_text(summary.low, room)
    else:
        first = format_range(summary.low, summary.high, room)
    infinite = summary.pinf + summary.ninf
    if summary.nan:
        return first, f"{format_short_count(summary.nan)} NaN"
    if infinite:
        return first, f"{format_short_count(infinite)} Inf"
    if summary.zeros >= _MOSTLY_ZERO * summary.count and summary.low != summary.high:
        return first, f"{100 * summary.zeros / summary.count:.0f}% zero"
    return first, "0 NaN"


def _badges(look: BoxLook) -> list[DiscMark]:
    """Return the marks at the right corner, from right to left."""
    badges = [SUSPECT_MARK] if look.suspect else []
    counts = look.special
    if look.summary is not None and look.status is DisplayStatus.EXECUTED:
        counts = look.summary.nan, look.summary.pinf, look.summary.ninf
    badges += [mark for mark, count in zip(SPECIAL_MARKS, counts, strict=True) if count]
    return badges


def text_size_at(zoom: float) -> float:
    """Return the size of a box's texts at a zoom, relative to the box.

    Beyond 100 % texts grow less than the box, so that its picture grows more.
    """
    return (1 + _TEXT_GROWTH * (zoom - 1)) / zoom if zoom > 1 else 1.0


@dataclass(frozen=True, slots=True)
class _Places:
    """Where the parts of a box are, by the size of its texts."""

    text_size: float

    @property
    def left(self) -> float:
        """Left end of the texts and of the picture."""
        return _BAND + (LEFT_INSET - _BAND) * self.text_size

    @property
    def picture(self) -> QRectF:
        """The square of the picture: what the lines above it leave."""
        top = _PICTURE_TOP * self.text_size
        side = BOX_HEIGHT - top - (BOX_HEIGHT - _PICTURE_TOP - _PICTURE_SIDE)
        return QRectF(self.left, top, side, side)

    @property
    def detail_left(self) -> float:
        """Left end of the lines beside the picture."""
        return self.picture.right() + _PICTURE_GAP * self.text_size


class BoxPainter:
    """Paints boxes in the colours of a theme, with their top left corner at the origin.

    Parameters
    ----------
    theme : Theme
    thumbnails : bool, optional
        Whether boxes have pictures of their outputs.
    """

    def __init__(self, theme: Theme, *, thumbnails: bool = True) -> None:
        self._theme, self._thumbnails = theme, thumbnails
        self._small_label = QFont(theme.ui_font(9, 700))
        self._small_type = QFont(theme.ui_font(10, 600))
        self._small_metrics = QFontMetricsF(self._small_type)

    def paint(self, painter: QPainter, look: BoxLook, text_size: float = 1.0) -> None:
        """Paint a whole box.

        Parameters
        ----------
        painter : QPainter
        look : BoxLook
        text_size : float
            See `text_size_at`; the picture takes the room that smaller texts leave.
        """
        style, places = look.style, _Places(text_size)
        frame = QRectF(0, 0, look.box.width, BOX_HEIGHT)
        self._paint_frame(painter, frame, look, style)
        if self._thumbnails:
            self._paint_thumbnail(painter, look, places.picture)
        self._paint_texts(painter, look, style, places)
        if look.glyph[0]:
            right = look.box.width - (RIGHT_INSET + _GLYPH_SIZE / 2) * text_size
            centre = QPointF(right, 12 * text_size)
            self._mark(painter, look, centre, _GLYPH_SIZE * text_size)
        self._paint_corners(painter, look)

    def paint_small(self, painter: QPainter, look: BoxLook, zoom: float) -> None:
        """Paint label and type only, in a legible size; in view coordinates."""
        style = look.style
        frame = QRectF(0, 0, look.box.width * zoom, BOX_HEIGHT * zoom)
        self._paint_frame(painter, frame, look, style)
        left = style.width + _BAND + 2
        room = frame.width() - left - 1
        painter.setPen(self._ink(look, look.box.family.token))
        painter.setFont(self._small_label)
        painter.drawText(QPointF(left, 12), look.box.family.label)
        glyph, token = look.glyph
        if glyph and room > 44:
            at = QPointF(frame.width() - 10, 9)
            paint_glyph(painter, glyph, at, 8, self._ink(look, token))
        painter.setPen(self._ink(look, style.title))
        painter.setFont(self._small_type)
        elide = Qt.TextElideMode.ElideMiddle
        shown = self._small_metrics.elidedText(_bare(look.box.type), elide, room)
        painter.drawText(QPointF(left, 25), shown)
        self._paint_small_marks(painter, look, frame)

    # Parts

    def _paint_small_marks(self, painter: QPainter, look: BoxLook, frame: QRectF) -> None:
        if look.breakpoint:
            self._paint_breakpoint(painter, 12)
        if look.bookmark:
            self._paint_bookmark(painter, frame, _BOOKMARK[1])
        corner = QPointF(frame.width() - 1, 0.0)
        if look.mark is not None:
            paint_badge(painter, self._theme, look.mark.look, corner, _SMALL_BADGE)
            corner -= QPointF(_SMALL_BADGE, 0.0)
        for badge in _badges(look):
            paint_disc_mark(painter, self._theme, badge, corner, _SMALL_BADGE)
            corner -= QPointF(_SMALL_BADGE, 0.0)

    def _ink(self, look: BoxLook, token: str) -> QColor:
        """Return the colour of a text or mark; on the colour of an overlay black or white."""
        return ink_on(look.fill) if look.fill is not None else self._theme.color(token)

    def _paint_frame(
        self, painter: QPainter, frame: QRectF, look: BoxLook, style: _Style
    ) -> None:
        half = style.width / 2
        inner = frame.adjusted(half, half, -half, -half)
        outline = QPainterPath()
        outline.addRoundedRect(inner, RADIUS - half, RADIUS - half)
        painter.fillPath(outline, look.fill or self._theme.color(style.fill))
        band = QPainterPath()
        band.addRect(QRectF(inner.left(), inner.top(), half + _BAND, inner.height()))
        painter.fillPath(band & outline, self._theme.color(look.box.family.token))
        pen = QPen(self._theme.color(style.border), style.width)
        if style.dash is not None:
            pen.setCapStyle(Qt.PenCapStyle.FlatCap)
            pen.setDashPattern([length / style.width for length in style.dash])
        painter.setPen(pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPath(outline)

    def _mark(self, painter: QPainter, look: BoxLook, centre: QPointF, size: float) -> None:
        """Paint the mark of the status."""
        glyph, token = look.glyph
        paint_glyph(painter, glyph, centre, size, self._ink(look, token))

    def _paint_thumbnail(self, painter: QPainter, look: BoxLook, square: QRectF) -> None:
        pixels = look.summary.pixels if look.summary is not None else None
        if pixels is not None:
            image = QImage(
                pixels, THUMBNAIL, THUMBNAIL, 4 * THUMBNAIL, QImage.Format.Format_RGBA8888
            )
            painter.drawImage(square, image)
            return
        if not look.has_frame:
            return
        pen = QPen(self._ink(look, "ctl"), 1.0)
        pen.setDashPattern([2.0, 2.0])
        painter.setPen(pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(square.adjusted(0.5, 0.5, -0.5, -0.5))

    def _paint_texts(
        self, painter: QPainter, look: BoxLook, style: _Style, places: _Places
    ) -> None:
        faces, box, size = fonts(), look.box, places.text_size
        scale = size / TEXT_SCALE
        painter.save()
        painter.scale(scale, scale)

        def write(font: QFont, token: str, x: float, line: str, text: str) -> None:
            painter.setFont(font)
            painter.setPen(self._ink(look, token))
            painter.drawText(QPointF(x / scale, _BASELINES[line] * TEXT_SCALE), text)

        write(faces.label, box.family.token, places.left, "label", box.family.label)
        index = str(box.index)
        width = QFontMetricsF(faces.detail).horizontalAdvance(index) * scale
        mark = _GLYPH_SIZE + 5 if look.glyph[0] else 0
        right = box.width - (RIGHT_INSET + mark) * size
        write(faces.detail, style.text, right - width, "label", index)
        write(faces.type, style.title, places.left, "type", box.shown_type)
        write(faces.name, style.text, places.left, "name", box.shown_name)
        first, second = detail_lines(look)
        has_picture = self._thumbnails and look.has_frame
        left = places.detail_left if has_picture else places.left
        if style.word:
            write(faces.word, STATUS_LOOKS[look.status].token, left, "first", first)
        else:
            write(faces.detail, style.text, left, "first", first)
        font, token = _second_line_look(look)
        write(font, token, left, "second", second)
        painter.restore()

    def _paint_corners(self, painter: QPainter, look: BoxLook) -> None:
        if look.breakpoint:
            self._paint_breakpoint(painter, _BREAKPOINT)
        if look.bookmark:
            frame = QRectF(0, 0, look.box.width, look.box.height)
            self._paint_bookmark(painter, frame, _BOOKMARK[0])
        x = look.box.width - 2.0
        if look.mark is not None:
            paint_badge(painter, self._theme, look.mark.look, QPointF(x, -4.0), BADGE_SIZE)
            x -= (BADGE_SIZE + _BADGE) / 2 + _BADGE_GAP
        for badge in _badges(look):
            paint_disc_mark(painter, self._theme, badge, QPointF(x, -4.0), _BADGE)
            x -= _BADGE + _BADGE_GAP

    def _paint_breakpoint(self, painter: QPainter, size: float) -> None:
        centre = QPointF(0.0, 0.0)
        self._glyph(painter, "octagon", centre, size + 4, "base")
        self._glyph(painter, "octagon", centre, size, "bp")

    def _paint_bookmark(self, painter: QPainter, frame: QRectF, size: float) -> None:
        centre = frame.bottomLeft() + QPointF(size * 0.6, 0.0)
        self._glyph(painter, "bookmark", centre, size + 4, "base")
        self._glyph(painter, "bookmark", centre, size, "link")

    def _glyph(
        self, painter: QPainter, name: str, centre: QPointF, size: float, token: str
    ) -> None:
        paint_glyph(painter, name, centre, size, self._theme.color(token))


def _bare(operator_type: str) -> str:
    for prefix in _PREFIXES:
        if operator_type.startswith(prefix):
            return operator_type.removeprefix(prefix)
    return operator_type
