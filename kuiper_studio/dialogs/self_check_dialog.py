"""Shows the result of a self-check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QSize, Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication, QKeySequence, QPalette
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QComboBox,
    QDialog,
    QFrame,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QPushButton,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from engine.self_check import Verdict
from engine.text import format_count
from kuiper_studio.dialogs.screen_room import room_on_screen
from kuiper_studio.icons import icon, pixmap
from kuiper_studio.item_models.comparisons import (
    ComparisonColumn,
    ComparisonsModel,
)
from kuiper_studio.item_models.operator_rows import ROW_ROLE, SortModel, table_text
from kuiper_studio.sort_header import SortHeader

if TYPE_CHECKING:
    from PySide6.QtCore import QObject
    from PySide6.QtGui import QKeyEvent

    from engine.self_check import Comparison, SelfCheck
    from kuiper_studio.theme import Theme

__all__ = ["SelfCheckDialog"]

_ROW_HEIGHT: Final = 22
_TOLERANCES: Final = ("1e-6", "1e-5", "1e-4", "1e-3", "1e-2")
_WIDTHS: Final = {
    ComparisonColumn.INDEX: 52,
    ComparisonColumn.NAME: 140,
    ComparisonColumn.TYPE: 112,
    ComparisonColumn.KERNEL: 186,
    ComparisonColumn.VERDICT: 70,
    ComparisonColumn.LARGEST: 74,
    ComparisonColumn.RELATIVE: 80,
    ComparisonColumn.OF_ELEMENT: 80,
    ComparisonColumn.BEYOND: 64,
    ComparisonColumn.MS: 54,
    ComparisonColumn.REFERENCE_MS: 76,
}
_WORDS: Final = frozenset(
    {ComparisonColumn.NAME, ComparisonColumn.TYPE, ComparisonColumn.VERDICT}
)
_TOKENS: Final = {Verdict.AGREES: "done", Verdict.DIFFERS: "fail", Verdict.LEFT: "text3"}


class SelfCheckDialog(QDialog):
    """The result of a self-check, in a window that stays open.

    Parameters
    ----------
    theme : Theme

    Signals
    -------
    operator_chosen : str
        Name of the operator whose row was chosen.
    check_requested : float
        The user wants another check, with this tolerance.
    """

    operator_chosen = Signal(object)
    check_requested = Signal(float)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("selfCheckDialog")
        self.setWindowTitle("Self-check")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.resize(QSize(1200, 520).boundedTo(room_on_screen(self)))
        self._theme = theme
        self._found: SelfCheck | None = None
        self._icon = QLabel()
        self._title = _label("selfCheckTitle", "title")
        self._summary = _label("selfCheckSummary", "secondary")
        self._summary.setWordWrap(True)
        self.only_differing = QCheckBox("Only differences")
        self.model = ComparisonsModel(self)
        self.shown: SortModel[Comparison] = SortModel(self.model, self)
        self.table = _Table(theme, self.shown, self)
        self.tolerance = QComboBox()
        self.tolerance.addItems(_TOLERANCES)
        self.tolerance.setAccessibleName("Tolerance")
        self._build()
        self.only_differing.toggled.connect(self._on_only_differing)
        self.table.selectionModel().currentRowChanged.connect(self._on_row_changed)
        theme.changed.connect(self._show_verdict)
        self._close.setFocus()  # or the table would select its first row

    def show_result(self, found: SelfCheck) -> None:
        """Show a result, the largest difference first."""
        self._found = found
        self.model.show_result(found)
        differing = len(found.differing)
        self.only_differing.setText(f"Only differences ({differing})")
        self.only_differing.setEnabled(bool(differing))
        self.only_differing.setChecked(bool(differing))
        self.table.sortByColumn(ComparisonColumn.RELATIVE, Qt.SortOrder.DescendingOrder)
        self.table.scrollToTop()
        text = f"{found.tolerance:.0e}".replace("e-0", "e-")
        if self.tolerance.findText(text) < 0:
            self.tolerance.addItem(text)
        self.tolerance.setCurrentText(text)
        self._show_verdict()

    # Building

    def _build(self) -> None:
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addWidget(self._title)
        words.addWidget(self._summary)
        top = QHBoxLayout()
        top.setContentsMargins(16, 14, 16, 10)
        top.setSpacing(12)
        top.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        top.addLayout(words, 1)
        top.addWidget(self.only_differing, 0, Qt.AlignmentFlag.AlignBottom)
        line = QFrame()
        line.setProperty("role", "line")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(top)
        column.addWidget(line)
        column.addWidget(self.table, 1)
        column.addLayout(self._make_bottom())

    def _make_bottom(self) -> QHBoxLayout:
        caption = QLabel("Tolerance")
        caption.setProperty("role", "secondary")
        caption.setBuddy(self.tolerance)
        self.tolerance.setToolTip("Largest allowed relative difference; absolute below 1")
        again = QPushButton("Check again")
        again.setObjectName("selfCheckAgain")
        again.clicked.connect(self._ask_again)
        copy = QPushButton("Copy")
        copy.setObjectName("selfCheckCopy")
        copy.setIcon(icon("copy", self._theme))
        copy.setToolTip("Copy the summary and the rows that are shown")
        copy.clicked.connect(self.copy_text)
        close = QPushButton("Close")
        close.clicked.connect(self.close)
        self._close = close
        for button in (again, copy, close):
            button.setAutoDefault(False)
        row = QHBoxLayout()
        row.setContentsMargins(16, 10, 16, 12)
        row.setSpacing(8)
        for widget in (caption, self.tolerance, again):
            row.addWidget(widget)
        row.addStretch(1)
        row.addWidget(copy)
        row.addWidget(close)
        return row

    # Answers

    @Slot()
    def copy_text(self) -> None:
        """Copy the summary and the rows that are shown."""
        text = f"{self._summary.text()}\n\n{table_text(self.shown)}\n"
        QGuiApplication.clipboard().setText(text)

    @Slot(bool)
    def _on_only_differing(self, only: bool) -> None:  # noqa: FBT001 - Qt's signal
        self.shown.show_only((lambda row: row.verdict is Verdict.DIFFERS) if only else None)

    @Slot()
    def _ask_again(self) -> None:
        self.check_requested.emit(float(self.tolerance.currentText()))

    @Slot(QModelIndex, QModelIndex)
    def _on_row_changed(self, index: QModelIndex, _before: QModelIndex) -> None:
        comparison = index.data(ROW_ROLE)
        if comparison is not None:
            self.operator_chosen.emit(comparison.operator.name)

    @Slot()
    def _show_verdict(self) -> None:
        found = self._found
        if found is None:
            return
        names = {comparison.operator.name for comparison in found.differing}
        if names:
            look = ("warning", "fail")
            title = format_count(len(names), "operator differs", "operators differ")
        elif found.agrees and found.compared:
            look, title = ("check", "done"), "All backends agree with NumPy"
        else:
            look, title = ("warning", "warn"), "Some operators could not be checked"
        self._icon.setPixmap(pixmap(look[0], self._theme, look[1], 20))
        self._title.setText(title)
        self._summary.setText(found.summary)


class _Table(QTableView):
    """The table of comparisons; a click on a title sorts it, Ctrl+C copies a row."""

    def __init__(self, theme: Theme, model: SortModel[Comparison], parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("selfCheckTable")
        self.setAccessibleName("Comparisons")
        self.setModel(model)
        self.setItemDelegate(_Delegate(theme, self))
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setProperty("headed", True)  # noqa: FBT003 - Qt's signature
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(_ROW_HEIGHT)
        header = SortHeader(theme, self)
        header.setFixedHeight(_ROW_HEIGHT)
        header.setStretchLastSection(True)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        for column, width in _WIDTHS.items():
            header.resizeSection(column, width)

    # Overrides of Qt methods

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        comparison = self.currentIndex().data(ROW_ROLE)
        if event.matches(QKeySequence.StandardKey.Copy) and comparison is not None:
            QGuiApplication.clipboard().setText(comparison.sentence)
            return
        super().keyPressEvent(event)


class _Delegate(QStyledItemDelegate):
    """Paints numbers in a monospaced font, and the verdict in its colour."""

    def __init__(self, theme: Theme, parent: QObject) -> None:
        super().__init__(parent)
        self._theme = theme

    # Overrides of Qt methods

    @override
    def initStyleOption(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        super().initStyleOption(option, index)
        column = index.column()
        if column not in _WORDS:
            option.font = self._theme.mono_font()
        if column == ComparisonColumn.VERDICT:
            token = _TOKENS[index.data(ROW_ROLE).verdict]
            option.palette.setColor(QPalette.ColorRole.Text, self._theme.color(token))


def _label(name: str, role: str) -> QLabel:
    label = QLabel()
    label.setObjectName(name)
    label.setProperty("role", role)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label
