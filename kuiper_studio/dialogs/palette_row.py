"""Paints the rows of the command palette."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QPointF, QRect, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetrics,
    QFontMetricsF,
    QPainter,
    QTextCharFormat,
    QTextLayout,
)
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem
from typing_extensions import override

from kuiper_studio.dialogs.palette_model import Index, PaletteEntry, PaletteRole
from kuiper_studio.families import family_of
from kuiper_studio.icons import pixmap

if TYPE_CHECKING:
    from kuiper_studio.theme import Theme

__all__ = ["HEADING", "ROW", "PaletteRowDelegate"]

ROW: Final = 28
HEADING: Final = 26
_LEFT: Final = 38
_RIGHT: Final = 14
_DISABLED: Final = 0.55


class PaletteRowDelegate(QStyledItemDelegate):
    """Mark, text with the matched letters bold, note beside it, key or index at the right.

    Parameters
    ----------
    theme : Theme
    """

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme

    def _draw_heading(self, painter: QPainter, rect: QRect, text: str) -> None:
        painter.setFont(self._theme.ui_font(11, 600))
        painter.setPen(self._theme.color("text3"))
        area = rect.adjusted(14, 4, -_RIGHT, 0)
        painter.drawText(area, Qt.AlignmentFlag.AlignVCenter, text)

    def _draw_entry(
        self, painter: QPainter, rect: QRect, entry: PaletteEntry, *, selected: bool
    ) -> None:
        theme = self._theme
        if not entry.enabled:
            painter.setOpacity(_DISABLED)
        main = theme.color("selTxt" if selected else "text")
        quiet = theme.color("selTxt" if selected else "text3")
        self._draw_mark(painter, rect, entry, selected=selected)
        right = self._draw_right(painter, rect, entry.shortcut, quiet)
        left = rect.left() + _LEFT
        left += self._draw_text(painter, left, right, rect, entry, main) + 10
        painter.setOpacity(1.0)  # what is missing is for reading
        font = theme.mono_font(10) if entry.operand is not None else theme.ui_font(11)
        painter.setFont(font)
        painter.setPen(quiet)
        area = QRect(left, rect.top(), max(0, right - left - 8), rect.height())
        note = " · ".join(filter(None, (entry.note, entry.missing)))
        shown = QFontMetrics(font).elidedText(note, Qt.TextElideMode.ElideMiddle, area.width())
        painter.drawText(area, Qt.AlignmentFlag.AlignVCenter, shown)

    def _draw_mark(
        self, painter: QPainter, rect: QRect, entry: PaletteEntry, *, selected: bool
    ) -> None:
        """Paint the tick or icon of a command, bar of an operator or grid of an operand."""
        scale = painter.device().devicePixelRatioF()
        left, top = rect.left() + 13, rect.top() + (ROW - 15) // 2
        token = "selTxt" if selected else "text2"
        if entry.operator is not None:
            bar = QRect(rect.left() + 19, rect.top() + 7, 3, 14)
            painter.fillRect(bar, self._theme.color(family_of(entry.operator.type).token))
        elif entry.operand is not None:
            painter.drawPixmap(left, top, pixmap("grid", self._theme, token, 15, scale))
        elif entry.action is not None and entry.action.isChecked():
            painter.drawPixmap(left, top, pixmap("check", self._theme, token, 15, scale))
        elif entry.action is not None:
            entry.action.icon().paint(painter, left, top, 15, 15)

    def _draw_right(self, painter: QPainter, rect: QRect, text: str, color: QColor) -> int:
        """Paint keys or an index; return where they begin."""
        font = self._theme.mono_font()
        width = QFontMetrics(font).horizontalAdvance(text)
        painter.setFont(font)
        painter.setPen(color)
        area = rect.adjusted(0, 0, -_RIGHT, 0)
        flags = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(area, flags, text)
        return area.right() - width - 10

    def _draw_text(
        self,
        painter: QPainter,
        left: int,
        right: int,
        rect: QRect,
        entry: PaletteEntry,
        color: QColor,
    ) -> int:
        """Paint the text, names of the model in the monospaced font; return its width."""
        text, places = self._elide(entry, right - left)
        ui = self._theme.ui_font()
        layout = QTextLayout(text, ui)
        layout.setFormats(self._formats(entry, text, places))
        layout.beginLayout()
        line = layout.createLine()
        line.setLineWidth(max(right - left, 1))
        layout.endLayout()
        painter.setPen(color)
        height = QFontMetricsF(ui).height()
        layout.draw(painter, QPointF(left, rect.top() + (ROW - height) / 2))
        return round(line.naturalTextWidth())

    def _elide(self, entry: PaletteEntry, room: int) -> tuple[str, tuple[int, ...]]:
        """Elide a text in the middle, with the indexes of its matches."""
        start = entry.names_from or 0
        head, name = entry.text[:start], entry.text[start:]
        font = self._theme.mono_font() if start else self._theme.ui_font()
        room -= QFontMetrics(self._theme.ui_font()).horizontalAdvance(head)
        shown = QFontMetrics(font).elidedText(name, Qt.TextElideMode.ElideMiddle, room)
        if shown == name:
            return entry.text, entry.places
        return head + shown, tuple(place for place in entry.places if place < start)

    def _formats(
        self, entry: PaletteEntry, text: str, places: tuple[int, ...]
    ) -> list[QTextLayout.FormatRange]:
        theme, start = self._theme, entry.names_from
        ranges = []
        if start is not None:
            ranges.append(_range(start, len(text) - start, theme.mono_font()))
        for place in places:
            name = start is not None and place >= start
            font = theme.mono_font(11, 700) if name else theme.ui_font(12, 700)
            ranges.append(_range(place, 1, font))
        return ranges

    # Overrides of Qt methods

    @override
    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        entry: PaletteEntry = index.data(PaletteRole.ENTRY)
        return QSize(200, HEADING if entry.is_heading else ROW)

    @override
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        rect: QRect = option.rect
        entry: PaletteEntry = index.data(PaletteRole.ENTRY)
        state: QStyle.StateFlag = option.state
        selected = bool(state & QStyle.StateFlag.State_Selected)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if selected:
            painter.fillRect(rect, self._theme.color("sel"))
        if entry.is_heading:
            self._draw_heading(painter, rect, entry.text)
        else:
            self._draw_entry(painter, rect, entry, selected=selected)
        painter.restore()


def _range(start: int, length: int, font: QFont) -> QTextLayout.FormatRange:
    part = QTextLayout.FormatRange()
    part.start, part.length = start, length
    look = QTextCharFormat()
    look.setFont(font)
    part.format = look
    return part
