"""The list of the output panel: classes with bars, boxes, parts of a label map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QAbstractListModel, QModelIndex, QRect, QRectF, Qt
from PySide6.QtGui import QFontMetrics, QPainter
from PySide6.QtWidgets import QHeaderView
from typing_extensions import override

from kuiper_studio.panels.class_colors import class_color
from kuiper_studio.panels.table import RowDelegate, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtWidgets import QWidget

    from engine.meanings.results import Row
    from kuiper_studio.panels.table import Index
    from kuiper_studio.theme import Theme

__all__ = ["OutputRowsModel", "OutputTable"]

_HEIGHT: Final = 34
_BAR: Final = 5
_SWATCH: Final = 10
_ROW: Final = Qt.ItemDataRole.UserRole


class OutputRowsModel(QAbstractListModel):
    """Rows of a result."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows: tuple[Row, ...] = ()

    @property
    def rows(self) -> tuple[Row, ...]:
        """The shown rows."""
        return self._rows

    def show(self, rows: Sequence[Row]) -> None:
        """Show other rows."""
        self.beginResetModel()
        self._rows = tuple(rows)
        self.endResetModel()

    # Overrides of Qt methods

    @override
    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._rows)

    @override
    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid():
            return None
        row = self._rows[index.row()]
        if role == _ROW:
            return row
        text = "  ".join(part for part in (row.name, row.text, row.detail) if part)
        if role in {Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole}:
            return text
        return f"{row.entry}: {text}" if role == Qt.ItemDataRole.ToolTipRole else None


class _Delegate(RowDelegate):
    """Paints a name, its number, a score with a bar, and a detail."""

    def __init__(self, theme: Theme, table: OutputTable) -> None:
        super().__init__(theme, table)
        self._table = table

    @override
    def draw_cell(
        self, painter: QPainter, rect: QRect, index: Index, *, selected: bool
    ) -> None:
        row: Row = index.data(_ROW)
        inner = rect.adjusted(12, 3, -12, -3)
        line = inner.adjusted(0, 0, 0, -_BAR - 3) if row.share >= 0 else inner
        left, right = line.left(), line.right()
        if self._table.has_swatches:
            top = line.center().y() - _SWATCH // 2 + 1
            painter.fillRect(QRect(left, top, _SWATCH, _SWATCH), class_color(row.entry))
            left += _SWATCH + 6
        ink = self.theme.color("selTxt" if selected else "text")
        faint = self.theme.color("selTxt" if selected else "text3")
        align = Qt.AlignmentFlag.AlignRight
        for text, font, color in (
            (row.text, self.mono, ink), (row.detail, self.small_mono, faint)
        ):  # fmt: skip
            if text:
                width = QFontMetrics(font).horizontalAdvance(text)
                area = QRect(right - width, line.top(), width + 1, line.height())
                self.draw_text(painter, area, text, font, color, align)
                right -= width + 12
        font = self.bold if index.row() == 0 else self.ui
        number = str(row.entry) if row.share >= 0 and row.name != str(row.entry) else ""
        room = right - left - (QFontMetrics(self.small_mono).horizontalAdvance(number) + 6)
        area = QRect(left, line.top(), max(room, 0), line.height())
        self.draw_text(painter, area, row.name, font, ink)
        used = min(QFontMetrics(font).horizontalAdvance(row.name), area.width())
        if number:
            beside = QRect(left + used + 6, line.top(), right - left - used - 6, line.height())
            self.draw_text(painter, beside, number, self.small_mono, faint)
        if row.share >= 0:
            bar = QRectF(inner.left(), inner.bottom() - _BAR + 1, inner.width(), _BAR)
            painter.fillRect(bar, self.theme.color("line" if selected else "hover"))
            bar.setWidth(max(2.0, bar.width() * min(row.share, 1.0)) if row.share else 0.0)
            filled = self.theme.color("selTxt" if selected else "focus")
            painter.fillRect(bar, filled)


class OutputTable(Table):
    """The rows of a result.

    Parameters
    ----------
    theme : Theme

    Attributes
    ----------
    rows : OutputRowsModel
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self.rows = OutputRowsModel(self)
        self.has_swatches = False
        self.setObjectName("outputTable")
        self.setAccessibleName("What the output means")
        self.setModel(self.rows)
        self.setItemDelegate(_Delegate(theme, self))
        self.set_row_height(_HEIGHT)
        self.show_header(shown=False)
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Stretch)

    def show_rows(self, rows: Sequence[Row]) -> None:
        """Show rows."""
        self.rows.show(rows)

    def set_swatches(self, shown: bool) -> None:  # noqa: FBT001 - a property of the table
        """Set whether rows have the colours that their classes have in the picture."""
        if shown != self.has_swatches:
            self.has_swatches = shown
            self.viewport().update()

    @property
    def chosen(self) -> int:
        """The current row; -1 for none."""
        return self.currentIndex().row()

    def choose(self, row: int) -> None:
        """Make a row the current one; -1 for none."""
        if row == self.chosen:
            return
        if row < 0:
            self.clearSelection()
            self.setCurrentIndex(QModelIndex())
        else:
            self.setCurrentIndex(self.rows.index(row))
