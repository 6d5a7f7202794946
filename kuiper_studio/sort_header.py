"""The titles of a table that sorts: an arrow beside the title says by what, and how."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QPointF, QRect, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPolygonF
from PySide6.QtWidgets import QHeaderView, QTableView
from typing_extensions import override

if TYPE_CHECKING:
    from kuiper_studio.theme import Theme

__all__ = ["SortHeader"]

_PIXELS: Final = 11  # of the font, and
_PADDING: Final = 4  # beside the title, as in the style sheet
_WIDTH, _HEIGHT, _GAP = 7.0, 4.0, 4.0


class SortHeader(QHeaderView):
    """Titles that sort the table on a click.

    The arrow points up where values rise from the first row to the last, and down where they
    fall. It stands after a title at the left of its column and before one at the right, so that
    numbers stay below their title.

    Parameters
    ----------
    theme : Theme
    table : QTableView
    """

    def __init__(self, theme: Theme, table: QTableView) -> None:
        super().__init__(Qt.Orientation.Horizontal, table)
        self._theme = theme
        self.setSectionsClickable(True)
        self.setHighlightSections(False)
        self.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)  # by nothing yet
        table.setHorizontalHeader(self)
        table.setSortingEnabled(True)
        # Qt's arrow points down for rising values, and takes room from the title.
        self.setSortIndicatorShown(False)

    @override
    def paintSection(self, painter: QPainter, rect: QRect, logicalIndex: int) -> None:
        painter.save()
        super().paintSection(painter, rect, logicalIndex)
        painter.restore()
        if logicalIndex == self.sortIndicatorSection():
            self._paint_arrow(painter, rect, logicalIndex)

    def _paint_arrow(self, painter: QPainter, rect: QRect, column: int) -> None:
        flow = Qt.Orientation.Horizontal
        title = str(self.model().headerData(column, flow) or "")
        aligned = self.model().headerData(column, flow, Qt.ItemDataRole.TextAlignmentRole)
        font = self._theme.ui_font(_PIXELS)
        taken = _PADDING + QFontMetrics(font).horizontalAdvance(title) + _GAP
        if not title:
            left = rect.center().x() - _WIDTH / 2
        elif Qt.AlignmentFlag(aligned) & Qt.AlignmentFlag.AlignRight:
            left = max(rect.right() - taken - _WIDTH, rect.left() + 1.0)
        else:
            left = min(rect.left() + taken, rect.right() - _WIDTH)
        top = rect.center().y() - _HEIGHT / 2 + 0.5
        base, tip = top + _HEIGHT, top
        if self.sortIndicatorOrder() == Qt.SortOrder.DescendingOrder:
            base, tip = tip, base
        corners = [(left, base), (left + _WIDTH, base), (left + _WIDTH / 2, tip)]
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.color("text"))
        painter.drawPolygon(QPolygonF([QPointF(x, y) for x, y in corners]))
        painter.restore()
