"""The table of operators, and how its rows are painted."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QItemSelectionModel, QModelIndex, QPoint, QRect, QRectF, Qt, Signal
from PySide6.QtGui import QFontMetrics, QPainter, QPixmap
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QWidget
from typing_extensions import override

from kuiper_studio.badges import paint_badge
from kuiper_studio.icons import pixmap
from kuiper_studio.item_models import OperatorColumn, OperatorRole
from kuiper_studio.item_models.statuses import NONFINITE, QUIET, STATUS_LOOKS, DisplayStatus
from kuiper_studio.panels.table import Index, RowDelegate, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from PySide6.QtCore import QObject
    from PySide6.QtGui import QContextMenuEvent, QFont, QKeyEvent, QMouseEvent, QResizeEvent

    from engine.runtime import RuntimeOperator
    from kuiper_studio.item_models import RowCells
    from kuiper_studio.item_models.difference_marks import DifferenceMark
    from kuiper_studio.layout.groups import OutlineRow
    from kuiper_studio.theme import Theme

__all__ = ["SAMPLED_ROWS", "OperatorDelegate", "OperatorTable"]

SAMPLED_ROWS: Final = 500
"""Number of rows that decide the column widths."""
_MARK_SIZE: Final = 14.0  # of a comparison's mark
_NAME_MARK: Final = 12  # side of a mark beside the name
_TIME_WIDTH: Final = 34  # of its sorted title
_VALUE_WIDTH: Final = 58
_LEAST_TITLES: Final = 96  # pixels that type and name have before other columns give way
_LEAST_CELL: Final = 4
_END_GAP: Final = 5  # to the right of the times without a scroll bar
_DIMMED: Final = 0.4  # opacity of rows beside those that the user looks for
_INDENT: Final = 12  # of rows in an open group
_TWISTY: Final = 10  # side of the arrow before a group's name
_TWISTY_SLACK: Final = 3  # around it, also taken for a click on it
_BAR: Final = 7  # from the bar of a family to the type
_GUIDE: Final = 5  # from the line below an open group's arrow to its name
# What a group's name and the number of its operators are written across.
_GROUP_LINE: Final = frozenset(
    {OperatorColumn.TYPE, OperatorColumn.NAME, OperatorColumn.OUTPUT}
)
_COUNT_GAP: Final = 8
_SIDEWAYS: Final = frozenset({Qt.Key.Key_Left, Qt.Key.Key_Right})


class OperatorDelegate(RowDelegate):
    """Paints the rows of the operators table."""

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(theme, parent)
        self.bold_mono = theme.mono_font(weight=600)
        self._cells: dict[int, RowCells] = {}  # by row

    @override
    def begin_painting(self) -> None:
        self._cells.clear()

    @override
    def draw_cell(
        self, painter: QPainter, rect: QRect, index: Index, *, selected: bool
    ) -> None:
        if rect.width() < _LEAST_CELL:
            return
        row = index.row()
        if row not in self._cells:
            self._cells[row] = index.data(OperatorRole.CELLS)
        cells, column = self._cells[row], index.column()
        if not selected and cells.is_dimmed:
            painter.setOpacity(_DIMMED)
        if cells.outline is None:
            self._draw_part(painter, rect, column, cells, selected=selected)
        else:
            self._draw_in_outline(
                painter, rect, column, cells, cells.outline, selected=selected
            )
        painter.setOpacity(1.0)

    def _draw_part(
        self, painter: QPainter, rect: QRect, column: int, cells: RowCells, *, selected: bool
    ) -> None:
        match column:
            case OperatorColumn.BREAKPOINT:
                if cells.has_breakpoint:
                    self._draw_icon(painter, rect, "breakpoint", "bp", 12)
            case OperatorColumn.STATE:
                status = cells.status
                nonfinite = status is DisplayStatus.EXECUTED and cells.is_nonfinite
                look = NONFINITE if nonfinite else STATUS_LOOKS[status]
                token = "selTxt" if selected and status in QUIET else look.token
                self._draw_icon(painter, rect, look.icon, token, look.size)
            case OperatorColumn.DIFFERENCE:
                self._draw_mark(painter, rect, cells.mark)
            case OperatorColumn.FAMILY:
                self._draw_bar(painter, rect, rect.right() + 1, cells)
            case OperatorColumn.TYPE | OperatorColumn.NAME:
                self._draw_title(painter, rect, column, cells, selected=selected)
            case column:
                color = self.theme.color("selTxt" if selected else "text2")
                is_index = column == OperatorColumn.INDEX
                font = self.mono if is_index else self.small_mono
                gap = 0 if is_index else 1
                if column == OperatorColumn.MS:
                    gap += max(0, rect.width() - _TIME_WIDTH)
                area = rect.adjusted(0, 0, -gap, 0)
                align = Qt.AlignmentFlag.AlignRight
                self.draw_text(painter, area, cells.texts[column], font, color, align)

    def _draw_bar(self, painter: QPainter, rect: QRect, left: int, cells: RowCells) -> None:
        """Paint the colour of a family before a type that begins at `left`."""
        if cells.family is not None:
            bar = QRectF(left - _BAR, rect.center().y() - 6.5, 3, 14)
            painter.fillRect(bar, self.theme.color(cells.family.token))

    def _draw_in_outline(
        self,
        painter: QPainter,
        rect: QRect,
        column: int,
        cells: RowCells,
        row: OutlineRow,
        *,
        selected: bool,
    ) -> None:
        """Paint a cell of a list with groups.

        What stands before a name is painted in the column of the families for the outermost
        rows, and beside the type for those in groups.
        """
        is_inner = row.depth > 0
        is_type = column == OperatorColumn.TYPE
        names = rect.left() if is_type else rect.right() + 1
        left = names + _INDENT * row.depth
        has_mark = is_type if is_inner else column == OperatorColumn.FAMILY
        if is_type or column == OperatorColumn.FAMILY:
            for level in range(1, row.depth) if is_type else range(min(row.depth, 1)):
                guide = QRect(names + _INDENT * level - _GUIDE, rect.top(), 1, rect.height())
                painter.fillRect(guide, self.theme.color("line"))
        if row.group is not None:
            if has_mark:
                name = "chevron-down" if row.is_open else "chevron-right"
                place = QRect(left - _TWISTY, rect.top(), _TWISTY, rect.height())
                token = "selTxt" if selected else "text2"
                self._draw_icon(painter, place, name, token, _TWISTY)
            if column in _GROUP_LINE:
                self._draw_group(painter, rect, cells, row, selected=selected)
            elif column != OperatorColumn.FAMILY:
                self._draw_part(painter, rect, column, cells, selected=selected)
            return
        if has_mark:
            self._draw_bar(painter, rect, left, cells)
        if column != OperatorColumn.FAMILY:
            indent = _INDENT * row.depth if is_type else 0
            area = rect.adjusted(indent, 0, 0, 0)
            self._draw_part(painter, area, column, cells, selected=selected)

    def _draw_group(
        self,
        painter: QPainter,
        rect: QRect,
        cells: RowCells,
        row: OutlineRow,
        *,
        selected: bool,
    ) -> None:
        """Paint the part in a cell of a group's name and the number of its operators."""
        table = self.parent()
        if not isinstance(table, OperatorTable):
            return
        line = table.group_line(row)
        line.setTop(rect.top())
        line.setBottom(rect.bottom())
        status = cells.status
        color = self.theme.color("selTxt" if selected else "text2")
        count = cells.texts[OperatorColumn.OUTPUT]
        painter.setClipRect(rect, Qt.ClipOperation.IntersectClip)
        align = Qt.AlignmentFlag.AlignRight
        self.draw_text(painter, line, count, self.small_mono, color, align)
        taken = QFontMetrics(self.small_mono).horizontalAdvance(count) + _COUNT_GAP
        if not selected and status not in QUIET:
            color = self.theme.color("text")
        font = self.bold_mono if status is DisplayStatus.CURRENT else self.mono
        name = cells.texts[OperatorColumn.TYPE]
        cut = Qt.TextElideMode.ElideMiddle
        self.draw_text(painter, line.adjusted(1, 0, -taken, 0), name, font, color, cut=cut)

    def _draw_title(
        self, painter: QPainter, rect: QRect, column: int, cells: RowCells, *, selected: bool
    ) -> None:
        """Paint a type or name, in a quieter colour if it has not run."""
        status, text = cells.status, cells.texts[column]
        quiet = status in QUIET
        color = self.theme.color("selTxt" if selected else "text2" if quiet else "text")
        if column == OperatorColumn.TYPE:
            font = self.bold if status == DisplayStatus.CURRENT else self.ui
            area = rect.adjusted(1, 0, -4, 0)
            text = _short_type(text, font, area.width())
            self.draw_text(painter, area, text, font, color, cut=Qt.TextElideMode.ElideRight)
            return
        area = rect.adjusted(0, 0, -2, 0)
        for is_marked, name, token in (
            (cells.is_random, "dice", "text2"),
            (cells.is_bookmarked, "bookmark", "link"),
        ):
            if is_marked:
                self._draw_name_mark(painter, area, name, "selTxt" if selected else token)
                area.setRight(area.right() - _NAME_MARK - 3)
        # Names of one module begin alike.
        self.draw_text(painter, area, text, self.mono, color, cut=Qt.TextElideMode.ElideLeft)

    def _draw_mark(self, painter: QPainter, rect: QRect, mark: DifferenceMark | None) -> None:
        if mark is not None:
            painter.save()
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            centre = QRectF(rect).center()
            paint_badge(painter, self.theme, mark.look, centre, _MARK_SIZE)
            painter.restore()

    def _draw_name_mark(self, painter: QPainter, area: QRect, name: str, token: str) -> None:
        """Paint a mark at the right end of the name."""
        place = QRect(area.right() - _NAME_MARK, area.top(), _NAME_MARK, area.height())
        self._draw_icon(painter, place, name, token, _NAME_MARK)

    def _draw_icon(
        self, painter: QPainter, rect: QRect, name: str, token: str, size: int
    ) -> None:
        scale = painter.device().devicePixelRatioF()
        drawn: QPixmap = pixmap(name, self.theme, token, size, scale)
        left = rect.left() + (rect.width() - size) // 2
        painter.drawPixmap(left, rect.top() + (rect.height() - size) // 2, drawn)


class OperatorTable(Table):
    """The table of operators; a click in the gutter at the left sets a breakpoint.

    Signals
    -------
    menu_requested : (QModelIndex, QPoint)
        A context menu is wanted for a row, at a global position.
    left_at_top
        The up key was pressed in the first row.
    twisty_clicked : QModelIndex
        The arrow of a group was clicked.
    sideways : (QModelIndex, bool)
        The left or the right key was pressed in a list with groups; true for the right one.
    """

    menu_requested = Signal(QModelIndex, QPoint)
    left_at_top = Signal()
    twisty_clicked = Signal(QModelIndex)
    sideways = Signal(QModelIndex, bool)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self._wanted_type_width = self._good_type_width = self._wanted_name_width = 0
        self._output_width = self._indent = 0
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)

    def fit_columns(self, operators: Sequence[RuntimeOperator], output_characters: int) -> None:
        """Set the column widths.

        Parameters
        ----------
        operators : sequence of RuntimeOperator
            All of them; the first ones decide the width of the types.
        output_characters : int
            Length of the longest shape.
        """
        digits = max(2, len(str(len(operators) - 1)))
        header = self.horizontalHeader()
        widths = {
            OperatorColumn.BREAKPOINT: 20,
            OperatorColumn.STATE: 14,
            OperatorColumn.DIFFERENCE: 20,
            OperatorColumn.INDEX: round(6.6 * digits) + 3,
            OperatorColumn.FAMILY: 10,
        }
        self._output_width = min(max(44, 6 * output_characters + 2), 102)
        for column, width in widths.items():
            header.resizeSection(column, width)
        types = {operator.type for operator in operators[:SAMPLED_ROWS]}
        names = (operator.name for operator in operators[:SAMPLED_ROWS])
        self._wanted_type_width = _widest(types, self._theme.ui_font()) + 7
        # The next operator's is bold.
        self._good_type_width = _widest(types, self._theme.ui_font(weight=600)) + 8
        self._wanted_name_width = _widest(names, self._theme.mono_font()) + 4
        self._share_width()

    def show_differences(self, *, shown: bool) -> None:
        """Show or hide the marks of a comparison."""
        self.setColumnHidden(OperatorColumn.DIFFERENCE, not shown)
        self._share_width()

    def show_values(self, *, shown: bool) -> None:
        """Show or hide the values of what operators are coloured by."""
        self.setColumnHidden(OperatorColumn.VALUE, not shown)
        self._share_width()

    def set_depth(self, depth: int) -> None:
        """Make room for rows in so many open groups."""
        self._indent = _INDENT * depth
        self._share_width()

    def select_row(self, index: Index) -> None:
        """Make a row the only selected one without scrolling, whatever keys are held."""
        auto = self.hasAutoScroll()
        self.setAutoScroll(False)
        flags = QItemSelectionModel.SelectionFlag
        self.selectionModel().setCurrentIndex(index, flags.ClearAndSelect | flags.Rows)
        self.setAutoScroll(auto)

    def bring_into_view(self, index: Index) -> None:
        """Scroll to a row that is not in view, with room for the next steps.

        Scrolling repaints all rows.
        """
        if not self.viewport().rect().contains(self.visualRect(index)):
            self.scrollTo(index, QAbstractItemView.ScrollHint.PositionAtCenter)

    def group_line(self, row: OutlineRow) -> QRect:
        """Return the left and right end of a group's name with its count, in the viewport."""
        left = self.columnViewportPosition(OperatorColumn.TYPE) + _INDENT * row.depth
        output = OperatorColumn.OUTPUT
        right = self.columnViewportPosition(output) + self.columnWidth(output) - 1
        return QRect(left, 0, right - left, 1)

    def _is_twisty(self, event: QMouseEvent) -> bool:
        """Return whether the arrow of a group is under the mouse."""
        place = event.position().toPoint()
        row: OutlineRow | None = self.indexAt(place).data(OperatorRole.OUTLINE)
        if row is None or row.group is None or event.button() is not Qt.MouseButton.LeftButton:
            return False
        right = self.group_line(row).left()
        return right - _TWISTY - _TWISTY_SLACK <= place.x() < right + _TWISTY_SLACK

    def _share_width(self) -> None:
        """Give types their preferred width within limits, and names the rest."""
        header = self.horizontalHeader()
        barred = self.viewport().width() < self.contentsRect().width()
        gap = 0 if barred else _END_GAP
        has_value = not self.isColumnHidden(OperatorColumn.VALUE)
        wanted = {
            OperatorColumn.OUTPUT: self._output_width,
            OperatorColumn.MS: _TIME_WIDTH + (0 if has_value else gap),
            OperatorColumn.VALUE: _VALUE_WIDTH + gap if has_value else 0,
        }
        shared = {OperatorColumn.TYPE, OperatorColumn.NAME}
        fixed = set(OperatorColumn) - shared - set(wanted)
        room = self.viewport().width() - sum(header.sectionSize(column) for column in fixed)
        for column in (OperatorColumn.OUTPUT, OperatorColumn.MS):
            if room - sum(wanted.values()) < _LEAST_TITLES:
                wanted[column] = 1  # the least that Qt shows
        for column, width in wanted.items():
            header.resizeSection(column, width)
        free = max(0, room - sum(wanted.values()))
        wanted_types = self._wanted_type_width + self._indent
        for_types = round(min(max(wanted_types, 0.3 * free), 0.52 * free))
        spare = free - for_types - self._wanted_name_width
        for_types += max(0, min(spare, self._good_type_width + self._indent - for_types))
        header.resizeSection(OperatorColumn.TYPE, for_types)
        header.resizeSection(OperatorColumn.NAME, free - for_types)

    # Overrides of Qt methods

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._share_width()

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        if self._is_twisty(event):
            self.twisty_clicked.emit(self.indexAt(event.position().toPoint()))
            return
        super().mousePressEvent(event)

    @override
    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if self._is_twisty(event):
            self.twisty_clicked.emit(self.indexAt(event.position().toPoint()))
            return
        super().mouseDoubleClickEvent(event)

    @override
    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        by_mouse = event.reason() is event.Reason.Mouse
        index = self.indexAt(event.pos()) if by_mouse else self.currentIndex()
        if index.isValid():
            here = event.globalPos()
            if not by_mouse:
                here = self.viewport().mapToGlobal(self.visualRect(index).bottomLeft())
            self.menu_requested.emit(index, here)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Up and self.currentIndex().row() == 0:
            self.left_at_top.emit()
            return
        if event.key() in _SIDEWAYS and not event.modifiers():
            index = self.currentIndex()
            if index.data(OperatorRole.OUTLINE) is not None:
                self.sideways.emit(index, event.key() == Qt.Key.Key_Right)
                return
        super().keyPressEvent(event)


@lru_cache(maxsize=2048)  # rows are painted again at every step
def _short_type(type_: str, font: QFont, width: int) -> str:
    """A type, without what stands before its last dot where it has no room."""
    fits = QFontMetrics(font).horizontalAdvance(type_) <= width
    return type_ if fits else type_.rpartition(".")[2]


def _widest(texts: Iterable[str], font: QFont) -> int:
    metrics = QFontMetrics(font)
    return max((metrics.horizontalAdvance(text) for text in texts), default=0)
