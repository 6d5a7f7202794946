"""The tables of an operator's parameters and operands, as high as their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QRect, Qt, Slot
from PySide6.QtGui import QCursor
from PySide6.QtWidgets import QHeaderView, QSizePolicy
from typing_extensions import override

from kuiper_studio.item_models import OperandColumn, ParameterColumn
from kuiper_studio.panels.table import Index, RowDelegate, Table

if TYPE_CHECKING:
    from PySide6.QtCore import QAbstractItemModel
    from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QResizeEvent

    from kuiper_studio.theme import Theme

__all__ = ["OperandTable", "ParameterTable"]

_PARAMETER_ROW: Final = 20
_OPERAND_ROW: Final = 24
_MEASURED_ROWS: Final = 200  # number of rows that decide the column widths
_FIGURE: Final = 6.7  # the width of a character of the monospaced font
_MOST_FOR_NAMES: Final = 0.62  # of the table of parameters


class _FittingTable(Table):
    """A table as high as its rows; the panel around it scrolls."""

    def __init__(self, theme: Theme, row_height: int) -> None:
        super().__init__(theme)
        self.show_header(shown=False)
        self.set_row_height(row_height)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def share_width(self) -> None:
        """Divide the width among the columns."""
        raise NotImplementedError

    @Slot()
    def fit(self) -> None:
        """Take the height of the rows, and the widths of their texts."""
        rows = self.model().rowCount() * self.verticalHeader().defaultSectionSize()
        self.setFixedHeight(rows)
        self.share_width()

    @override
    def setModel(self, model: QAbstractItemModel | None) -> None:
        super().setModel(model)
        if model is not None:
            model.modelReset.connect(self.fit)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self.model() is not None:
            self.share_width()


class ParameterTable(_FittingTable):
    """The table of parameters; names have the width that they want, within limits."""

    def __init__(self, theme: Theme, model: QAbstractItemModel) -> None:
        super().__init__(theme, _PARAMETER_ROW)
        self.setModel(model)
        self.setItemDelegate(_ParameterDelegate(theme, self))

    @override
    def share_width(self) -> None:
        model, header = self.model(), self.horizontalHeader()
        rows = range(min(model.rowCount(), _MEASURED_ROWS))
        names = (model.index(row, ParameterColumn.NAME).data() for row in rows)
        wanted = round(_FIGURE * max(map(len, names), default=0)) + 20
        most = round(_MOST_FOR_NAMES * self.viewport().width())
        header.setSectionResizeMode(ParameterColumn.NAME, QHeaderView.ResizeMode.Fixed)
        header.resizeSection(ParameterColumn.NAME, max(122, min(wanted, most)))
        header.setSectionResizeMode(ParameterColumn.VALUE, QHeaderView.ResizeMode.Stretch)


class _ParameterDelegate(RowDelegate):
    """Paints names and values in the monospaced font."""

    @override
    def draw_cell(
        self, painter: QPainter, rect: QRect, index: Index, *, selected: bool
    ) -> None:
        is_name = index.column() == ParameterColumn.NAME
        token = "selTxt" if selected else "text2" if is_name else "text"
        left = 14 if is_name else 4
        area = rect.adjusted(left, 0, -4, 0)
        self.draw_text(painter, area, index.data(), self.mono, self.theme.color(token))


class _OperandDelegate(RowDelegate):
    """Paints operands and peers as links, with a line under each row."""

    @override
    def draw_cell(
        self, painter: QPainter, rect: QRect, index: Index, *, selected: bool
    ) -> None:
        theme = self.theme
        painter.fillRect(
            QRect(rect.left(), rect.bottom(), rect.width(), 1), theme.color("line")
        )
        text = index.data() or ""
        right, left = Qt.AlignmentFlag.AlignRight, Qt.AlignmentFlag.AlignLeft
        plain = theme.color("selTxt" if selected else "text")
        quiet = theme.color("selTxt" if selected else "text2")
        link = theme.color("selTxt" if selected else "link")
        match index.column():
            case OperandColumn.DIRECTION:
                self.draw_text(painter, rect.adjusted(12, 0, 0, 0), text, self.ui, quiet)
            case OperandColumn.OPERAND:
                self.draw_text(
                    painter, rect.adjusted(0, 0, -6, 0), text, self.mono, link, right
                )
            case OperandColumn.SHAPE:
                self.draw_text(painter, rect, text, self.mono, plain, left)
            case OperandColumn.DTYPE:
                self.draw_text(painter, rect.adjusted(4, 0, 0, 0), text, self.mono, quiet)
            case OperandColumn.PEER if text:
                word = "from" if index.sibling(index.row(), 0).data() == "in" else "to"
                font = self.theme.ui_font(11)
                self.draw_text(painter, rect.adjusted(4, 0, 0, 0), word, font, quiet)
                area = rect.adjusted(32, 0, -8, 0)
                self.draw_text(painter, area, text, self.mono, link, right)


class OperandTable(_FittingTable):
    """The table of operands; the cursor shows which cells are links."""

    _LINKS: Final = frozenset({OperandColumn.OPERAND, OperandColumn.PEER})

    def __init__(self, theme: Theme, model: QAbstractItemModel) -> None:
        super().__init__(theme, _OPERAND_ROW)
        self._lengths = [0 for _ in OperandColumn]  # characters of the longest texts
        self.setModel(model)
        self.setItemDelegate(_OperandDelegate(theme, self))
        model.dataChanged.connect(self._measure)

    @override
    def fit(self) -> None:
        self._find_lengths()
        super().fit()

    @Slot()
    def _measure(self) -> None:
        self._find_lengths()
        self.share_width()

    def _find_lengths(self) -> None:
        model = self.model()
        rows = range(min(model.rowCount(), _MEASURED_ROWS))
        self._lengths = [
            max((len(model.index(row, column).data()) for row in rows), default=0)
            for column in OperandColumn
        ]

    @override
    def share_width(self) -> None:
        # Direction, operand, shape and dtype fit their texts; the peer gets the rest.
        header, texts = self.horizontalHeader(), self._lengths
        widths = {
            OperandColumn.DIRECTION: 34,
            OperandColumn.OPERAND: min(90, round(_FIGURE * texts[OperandColumn.OPERAND]) + 8),
            OperandColumn.SHAPE: min(120, round(_FIGURE * texts[OperandColumn.SHAPE]) + 2),
            OperandColumn.DTYPE: round(_FIGURE * texts[OperandColumn.DTYPE]) + 6,
        }
        # A narrow panel hides the dtype, which is in the tool tip, rather than cut a name.
        wanted = sum(widths.values()) + round(_FIGURE * texts[OperandColumn.PEER]) + 40
        self.setColumnHidden(OperandColumn.DTYPE, wanted > self.viewport().width())
        for column, width in widths.items():
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.Fixed)
            header.resizeSection(column, width)
        header.setSectionResizeMode(OperandColumn.PEER, QHeaderView.ResizeMode.Stretch)

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        index = self.indexAt(event.position().toPoint())
        linked = index.isValid() and index.column() in self._LINKS and bool(index.data())
        shape = Qt.CursorShape.PointingHandCursor if linked else Qt.CursorShape.ArrowCursor
        self.viewport().setCursor(QCursor(shape))

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        # A row is selected as a whole; left and right choose between its two links.
        steps = {Qt.Key.Key_Left: OperandColumn.OPERAND, Qt.Key.Key_Right: OperandColumn.PEER}
        column = steps.get(Qt.Key(event.key()))
        if column is None:
            super().keyPressEvent(event)
            return
        self.setCurrentIndex(self.currentIndex().siblingAtColumn(column))
