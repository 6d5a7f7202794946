"""The properties panel of the selected operator."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QModelIndex, QRect, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QAction, QCursor, QPainter
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from engine.cost import Cost, cost
from engine.errors import EngineError, ModelFileError, UnsupportedOperatorError, capitalized
from engine.int8_scales import find_scales
from engine.text import format_amount, format_bytes, format_count, format_duration
from kuiper_studio.background import Background, Done
from kuiper_studio.elided_label import ElidedLabel
from kuiper_studio.families import family_of
from kuiper_studio.icons import icon, pixmap
from kuiper_studio.item_models import (
    OperandColumn,
    OperandsModel,
    ParameterColumn,
    ParametersModel,
    boundary_rows,
    group_rows,
)
from kuiper_studio.item_models.statuses import STATUS_LOOKS, DisplayStatus, operator_status
from kuiper_studio.item_models.text import tip_text
from kuiper_studio.panels.note_view import NoteView
from kuiper_studio.panels.panel import Panel
from kuiper_studio.panels.random_row import RandomRow
from kuiper_studio.panels.section import Section, SectionTabs
from kuiper_studio.panels.shape_formula import SizeFormula, size_formulas
from kuiper_studio.panels.table import Index, RowDelegate, Table
from kuiper_studio.panels.weight_view import WeightSummary, WeightView, summarize
from kuiper_studio.theme import restyle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QKeyEvent, QMouseEvent, QPaintEvent, QResizeEvent, QShowEvent

    from engine.runtime import RuntimeAttribute, RuntimeOperator
    from engine.values import Array
    from kuiper_studio.layout.groups import Group
    from kuiper_studio.session import StudioSession
    from kuiper_studio.theme import Theme

__all__ = ["PropertiesPanel"]

PARAMETER_ROW: Final = 20
OPERAND_ROW: Final = 24
# Largest weights whose statistics are computed at once, and without a click.
AT_ONCE: Final = 1 << 18
UNASKED: Final = 1 << 24

_MEASURED_ROWS: Final = 200  # number of operands that decide the column widths
_FIGURE: Final = 6.7  # the width of a character of the monospaced font
_MOST_FOR_NAMES: Final = 0.62  # of the table of parameters


@dataclass(frozen=True, slots=True)
class WeightKey:
    """Key of a weight of a model."""

    graph_number: int
    operator: str
    name: str


class _Header(QFrame):
    """Type, family, state, name, index and cost of the operator, and why it cannot run.

    Signals
    -------
    layers_requested
        The user wants to load a layer for an operator that has none.
    seed_requested
        The user wants to choose the seed that an operator draws by.
    """

    layers_requested = Signal()
    seed_requested = Signal()

    def __init__(self, session: StudioSession, theme: Theme) -> None:
        super().__init__()
        self._session = session
        self._theme = theme
        self._family = "other"
        self.setProperty("role", "panel")
        self._type = ElidedLabel("title")
        self._chip = QLabel()
        self._chip.setTextFormat(Qt.TextFormat.PlainText)
        self._glyph, self._status = QLabel(), QLabel()
        self._name = ElidedLabel("mono2")
        self._index = QLabel()
        self._index.setProperty("role", "mono2")
        self._cost = QLabel()
        self._cost.setProperty("role", "mono2")
        self._reason = QLabel()
        self._reason.setTextFormat(Qt.TextFormat.PlainText)
        self._reason.setProperty("role", "secondary")
        self._reason.setWordWrap(True)
        self._reason.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._kernel = ElidedLabel("mono2")
        self._kernel.setObjectName("propertiesKernel")
        self._file = ElidedLabel("secondary")
        self._random = RandomRow(theme)
        self._random.seed_requested.connect(self.seed_requested)
        self._load = QPushButton("Load layers…")
        self._load.setProperty("role", "link")
        self._load.setToolTip("Run a Python file with your own layers")
        self._load.clicked.connect(self.layers_requested)
        column = self._column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 10, 8)
        column.setSpacing(2)
        self._first_row = self._row(self._type, self._chip, self._glyph, self._status)
        column.addLayout(self._first_row)
        self._second_row = self._row(self._name, self._index, None, self._cost)
        column.addLayout(self._second_row)
        column.addWidget(self._kernel)
        column.addWidget(self._file)
        column.addWidget(self._random)
        column.addWidget(self._reason)
        column.addWidget(self._load, 0, Qt.AlignmentFlag.AlignLeft)

    @staticmethod
    def _row(
        first: ElidedLabel, second: QLabel, glyph: QLabel | None, last: QLabel
    ) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(6)
        row.addWidget(first)
        row.addWidget(second)
        row.addStretch(1)
        if glyph is not None:
            row.addWidget(glyph)
        row.addWidget(last)
        return row

    def show_operator(
        self, operator: RuntimeOperator, status: DisplayStatus, note: str, reason: str
    ) -> None:
        """Describe an operator; `note` comes before its cost."""
        theme = self._theme
        family = family_of(operator.type)
        self._family = family.token
        color = theme.color(family.token).name()
        self._type.setText(operator.type)
        self._chip.setText(family.label)
        self._chip.setFont(theme.ui_font(9, 700))
        restyle(self._chip, _chip_style(color))
        look = STATUS_LOOKS[status]
        ink, scale = look.text_token, self.devicePixelRatioF()
        self._glyph.setPixmap(pixmap(look.icon, theme, ink, 13, scale))
        self._glyph.setToolTip(look.text)
        self._status.setText(look.text)
        restyle(self._status, f"color: {theme.color(ink).name()}; font-weight: 600;")
        self._name.setText(operator.name)
        self._index.setText(f"#{operator.index}")
        found = _cost_text(cost(operator, self._session.tensors))
        self._cost.setText(" · ".join(part for part in (note, found) if part))
        self._cost.setToolTip(
            "Measured time, and multiply-accumulates or operations of one run"
        )
        record = self._session.record(operator.name)
        kernel = (
            record.kernel if status is DisplayStatus.EXECUTED and record is not None else ""
        )
        pinned = self._session.pinned_kernel(operator.name)
        self._kernel.setText(f"by {kernel}" if kernel else f"pinned to {pinned}")
        kernel = kernel or pinned
        self._kernel.setToolTip(self._session.describe_kernel(kernel))
        self._kernel.setVisible(bool(kernel))
        self._reason.setText(reason)
        self._reason.setVisible(bool(reason))
        file = operator.layer_file
        self._file.setText(f"layer from {file.name}" if file is not None else "")
        self._file.setToolTip(tip_text(str(file or "")))
        self._file.setVisible(file is not None)
        self._load.setVisible(isinstance(operator.error, UnsupportedOperatorError))
        self._random.show_text(self._session.random_text(operator.name))
        self._make_room()
        self.update()

    def show_group(self, group: Group) -> None:
        """Name a group."""
        color = self._theme.color("text2").name()
        self._family = "ctl"
        self._type.setText(group.name)
        self._chip.setText(f"×{len(group.children)}" if group.is_stack else "GROUP")
        self._chip.setFont(self._theme.ui_font(9, 700))
        restyle(self._chip, _chip_style(color))
        self._name.setText("equal blocks" if group.is_stack else "of operators")
        for label in (self._glyph, self._status, self._index, self._cost):
            label.clear()
        for widget in (self._kernel, self._reason, self._file, self._load):
            widget.hide()
        self._random.show_text("")
        self._make_room()
        self.update()

    def _make_room(self) -> None:
        """Leave out what the colour and the glyph say as well, where the type is long."""
        margins = self._column.contentsMargins()
        room = self.width() - margins.left() - margins.right()
        shown = (self._type, self._chip, self._glyph, self._status)
        gaps = self._first_row.spacing() * len(shown)
        missing = sum(label.sizeHint().width() for label in shown) + gaps - room
        for label in (self._chip, self._status):
            label.setVisible(missing <= 0)
            if missing > 0:
                missing -= label.sizeHint().width() + self._first_row.spacing()
        labels = (self._name, self._index, self._cost)
        gaps = self._second_row.spacing() * len(labels)
        is_full = sum(label.sizeHint().width() for label in labels) + gaps > room
        self._put_cost_below(is_below=is_full and bool(self._cost.text()))

    def _put_cost_below(self, *, is_below: bool) -> None:
        """Give the cost a line of its own, or the end of the name's."""
        column, row = self._column, self._second_row
        if is_below is (column.indexOf(self._cost) >= 0):
            return
        if is_below:
            row.removeWidget(self._cost)
            column.insertWidget(column.indexOf(row) + 1, self._cost)
        else:
            column.removeWidget(self._cost)
            row.addWidget(self._cost)

    # Overrides of Qt methods

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._make_room()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = QPainter(self)
        painter.fillRect(0, 0, 3, self.height(), self._theme.color(self._family))
        painter.end()


def _chip_style(color: str) -> str:
    return (
        f"color: {color}; border: 1px solid {color}; border-radius: 3px;"
        "padding: 0 4px; min-height: 13px; max-height: 13px;"
        "font-size: 9px; font-weight: 700;"
    )


def _cost_text(found: Cost) -> str:
    count, unit = (found.macs, "MAC") if found.macs else (found.flops, "FLOP")
    return format_amount(count, unit) if count else ""


class _FittingTable(Table):
    """A table as high as its rows; the panel around it scrolls.

    Signals
    -------
    resized
        The width has changed.
    """

    resized = Signal()

    def __init__(self, theme: Theme, row_height: int) -> None:
        super().__init__(theme)
        self.show_header(shown=False)
        self.set_row_height(row_height)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    @Slot()
    def fit(self) -> None:
        """Set the height to that of the rows."""
        rows = self.model().rowCount() * self.verticalHeader().defaultSectionSize()
        self.setFixedHeight(rows)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.resized.emit()


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


class _OperandTable(_FittingTable):
    """The table of operands; the cursor shows which cells are links."""

    _LINKS: Final = frozenset({OperandColumn.OPERAND, OperandColumn.PEER})

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


class PropertiesPanel(Panel):
    """Parameters, weights and operands of the selected operator.

    Parameters
    ----------
    session : StudioSession
    theme : Theme
    patience : int
        Milliseconds from a selection until it is shown. Filling the panel takes longer than
        the rest of a step, and nobody reads it while a key is held down.

    Signals
    -------
    layers_requested
        The user wants to load a layer for an operator that has none.
    seed_requested
        The user wants to choose the seed that an operator draws by.
    weight_requested : (str, str, ndarray)
        The user wants to see a weight in the tensor view: operator, name and values.
    """

    layers_requested = Signal()
    seed_requested = Signal()
    weight_requested = Signal(str, str, object)

    def __init__(
        self,
        session: StudioSession,
        theme: Theme,
        parent: QWidget | None = None,
        *,
        patience: int = 0,
    ) -> None:
        super().__init__("properties", "Properties", session, theme, parent)
        self._patience = patience
        self._later = QTimer(self, singleShot=True, interval=patience)
        self._later.timeout.connect(self.catch_up)
        self._operator: RuntimeOperator | None = None
        self._group: Group | None = None  # that is selected
        self._shown_group: Group | None = None
        self._summaries: dict[WeightKey, WeightSummary] = {}
        self._weight_views: dict[str, WeightView] = {}
        self._spare_views: list[WeightView] = []  # the first of them show the weights
        self._asked: set[WeightKey] = set()
        self._to_show: WeightKey | None = None  # when it has been read
        self._operand_lengths = [0 for _ in OperandColumn]  # characters of the longest texts
        self._graph_number = 0
        self._is_stale = False
        self._background = Background(self)
        self._background.finished.connect(self._on_summarized)
        self._lock = self._make_lock_action()
        self._header = _Header(session, theme)
        self._tabs = SectionTabs(("Parameters", "Attributes", "Operands", "About"))
        self._tabs.setAccessibleName("Parts of the properties")
        self._empty = QLabel("Select an operator to see its parameters and weights.")
        self._empty.setProperty("role", "secondary")
        self._empty.setWordWrap(True)
        self._empty.setMargin(12)
        self._empty.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._make_sections()
        self._scroll = self._make_scroll_area()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for widget in (self._header, self._tabs, self._scroll):
            column.addWidget(widget)
        column.addWidget(self._empty, 1)
        column.setStretchFactor(self._scroll, 1)
        self._connect()

    @property
    def operator(self) -> RuntimeOperator | None:
        """The shown operator; None while a group is shown."""
        return self._operator

    def select_group(self, group: Group | None) -> None:
        """Show a group that is selected instead of the operator; None for the operator."""
        if group != self._group:
            self._group = group
            self._follow()

    # Building

    def _make_lock_action(self) -> QAction:
        action = QAction(icon("lock-open", self.theme), "Keep this operator", self)
        action.setToolTip("Keep this operator when another one is selected")
        action.setCheckable(True)
        action.toggled.connect(self._on_lock_toggled)
        return action

    def _make_sections(self) -> None:
        theme = self.theme
        self.parameters = ParametersModel(self)
        self.operands = OperandsModel(self.session, self)
        self.parameter_table = _FittingTable(theme, PARAMETER_ROW)
        self.parameter_table.setObjectName("parametersTable")
        self.parameter_table.setAccessibleName("Parameters")
        self.parameter_table.setModel(self.parameters)
        self.parameter_table.setItemDelegate(_ParameterDelegate(theme, self.parameter_table))
        self.operand_table = _OperandTable(theme, OPERAND_ROW)
        self.operand_table.setObjectName("operandsTable")
        self.operand_table.setAccessibleName("Inputs and outputs")
        self.operand_table.setModel(self.operands)
        self.operand_table.setItemDelegate(_OperandDelegate(theme, self.operand_table))
        self._no_parameters = _note("This operator has no parameters.")
        parameters = _column(self.parameter_table, self._no_parameters, top=4, bottom=4)
        self._weights = QWidget()
        self._weight_column = QVBoxLayout(self._weights)
        self._weight_column.setContentsMargins(0, 2, 0, 4)
        self._weight_column.setSpacing(0)
        self._formula = QLabel()
        self._formula.setProperty("role", "formula")
        self._formula.setTextFormat(Qt.TextFormat.RichText)
        self._formula.setContentsMargins(12, 5, 10, 6)
        self._formula.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._parameter_section = Section("", parameters, theme)
        self._attribute_section = Section("Attributes", self._weights, theme)
        self._operand_section = Section("Operands", self.operand_table, theme)
        self._formula_section = Section("Output shape", self._formula, theme)
        self.note_view = NoteView(theme)
        self._note_section = Section("About", self.note_view, theme)

    def _make_scroll_area(self) -> QScrollArea:
        content = QFrame()
        content.setProperty("role", "panel")
        column = QVBoxLayout(content)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for section in (*self._tabbed[:3], self._formula_section, self._note_section):
            column.addWidget(section)
        column.addStretch(1)
        area = QScrollArea()
        area.setAccessibleName("Properties of the operator")
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setWidget(content)
        return area

    @property
    def _tabbed(self) -> tuple[Section, ...]:
        """Return the sections that have a tab, in order."""
        return (
            self._parameter_section,
            self._attribute_section,
            self._operand_section,
            self._note_section,
        )

    def _connect(self) -> None:
        session = self.session
        session.graph_changed.connect(self._on_graph_changed)
        session.selection_changed.connect(self._follow)
        # Every change of position emits one of these, too.
        session.stepped.connect(self._on_progressed)
        session.stepped_back.connect(self._on_progressed)
        session.values_reset.connect(self._on_progressed)
        session.supplies_changed.connect(self._on_progressed)
        session.seed_changed.connect(self._on_progressed)
        session.notes_changed.connect(self._on_notes_changed)
        self.theme.changed.connect(self._on_theme_changed)
        self.parameters.modelReset.connect(self._on_parameters_reset)
        self.parameter_table.resized.connect(self._fit_parameter_columns)
        self.operands.modelReset.connect(self._on_operands_reset)
        self.operands.dataChanged.connect(self._measure_operands)
        self.operand_table.resized.connect(self._fit_operand_columns)
        self.operand_table.clicked.connect(self._follow_link)
        self.operand_table.activated.connect(self._follow_link)
        self._header.layers_requested.connect(self.layers_requested)
        self._header.seed_requested.connect(self.seed_requested)
        self._tabs.chosen.connect(self._go_to_section)
        self._scroll.verticalScrollBar().valueChanged.connect(self._on_scrolled)
        self._attribute_section.head.toggled.connect(self._request_summaries)
        self._on_graph_changed()

    # Slots of session signals

    @Slot()
    def _on_graph_changed(self) -> None:
        self._summaries.clear()
        self._asked.clear()
        self._graph_number += 1
        self._lock.setChecked(False)
        self._operator = self._group = self._shown_group = None
        self._show(None)
        for view in self._spare_views:  # they hold the weights of a model that is gone
            view.deleteLater()
        self._spare_views.clear()
        self.catch_up()

    @Slot()
    def _on_progressed(self) -> None:
        """Update state, times and computed shapes."""
        self._is_stale = True
        self._follow()

    @Slot()
    def _on_theme_changed(self) -> None:
        """Take the new colours at once, with those of the rest of the window."""
        self._is_stale = True
        self.catch_up()

    @Slot()
    def _on_notes_changed(self) -> None:
        if self._operator is not None:
            self.parameters.show_operator(self._operator)
            self._show_note(self._operator)

    @Slot()
    def _follow(self) -> None:
        """Show the selection, at once or when it has been stable for a while."""
        if self._patience and self._operator is not None:
            self._later.start()
        else:
            self.catch_up()

    @Slot()
    def catch_up(self) -> None:
        """Show the session's current state at once."""
        self._later.stop()
        graph, name = self.session.graph, self.session.selected
        operator = graph.operator(name) if graph is not None and name else None
        group = self._group if graph is not None else None
        if self._lock.isChecked() and self._operator is not None:
            operator, group = self._operator, None
        if group is not None:
            if group != self._shown_group or self._is_stale:
                self._show_group(group)
        elif operator is not self._operator or self._shown_group is not None:
            self._show(operator)
        elif operator is not None and self._is_stale:
            self._describe(operator)
            self.operands.refresh()
        self._is_stale = False

    def _show_group(self, group: Group) -> None:
        """Show what a group holds, and what enters and leaves it."""
        graph = self.session.graph
        if graph is None:
            return
        if group != self._shown_group:
            self._show(None)
            self._shown_group = group
            for widget in (self._header, self._tabs, self._scroll):
                widget.show()
            self._empty.hide()
            self._formula_section.hide()
            self._tabs.setTabText(0, "Contents")
            self._tabs.setTabEnabled(3, False)  # noqa: FBT003 - Qt's signature
            self._note_section.hide()
            self.operands.show_rows(
                boundary_rows(graph.operators[group.first : group.last + 1])
            )
        self._header.show_group(group)
        self.parameters.show_facts(group_rows(self.session, group))
        self.operands.refresh()

    def _show(self, operator: RuntimeOperator | None) -> None:
        self._operator, self._shown_group = operator, None
        self._tabs.setTabText(0, "Parameters")
        self._tabs.setTabEnabled(3, True)  # noqa: FBT003 - Qt's signature
        self._note_section.show()
        for widget in (self._header, self._tabs, self._scroll):
            widget.setVisible(operator is not None)
        self._empty.setVisible(operator is None)
        self.parameters.show_operator(operator)
        self.operands.show_operator(operator)
        self._no_parameters.setVisible(operator is not None and not operator.parameters)
        self._fill_weights(operator)
        self._show_note(operator)
        if operator is not None:
            self._describe(operator)
        self._scroll.verticalScrollBar().setValue(0)
        self._tabs.setCurrentIndex(0)

    def _show_note(self, operator: RuntimeOperator | None) -> None:
        self.note_view.show_operator(operator)
        note = self.note_view.note
        self._note_section.head.set_suffix(note.reference if note is not None else "")

    def _describe(self, operator: RuntimeOperator) -> None:
        status = operator_status(self.session, operator.name)
        record = self.session.record(operator.name)
        measured = status is DisplayStatus.EXECUTED and record is not None and record.seconds
        note = format_duration(record.seconds) if measured and record is not None else ""
        self._header.show_operator(operator, status, note, self._reason(operator))
        shape = None
        if operator.inputs:
            metadata = self.session.tensors.metadata(operator.inputs[0].name)
            shape = getattr(metadata, "shape", None) or operator.inputs[0].shape
        formulas = size_formulas(operator, shape)
        self._formula.setText(self._formula_text(formulas))
        self._formula_section.setVisible(bool(formulas))

    def _reason(self, operator: RuntimeOperator) -> str:
        """Return why an operator has not run, or its override; ``""`` for neither."""
        supplied = self.session.supplied_text(operator.name)
        if supplied:
            return f"{capitalized(supplied)}."
        failure = self.session.failure
        if failure is not None and failure.operator == operator.name:
            return capitalized(failure.reason)
        record = self.session.record(operator.name)
        return capitalized((record.reason if record is not None else "") or operator.reason)

    def _formula_text(self, formulas: Sequence[SizeFormula]) -> str:
        """Return two lines for each formula, the result emphasised."""
        strong = f"color: {self.theme.color('text').name()}; font-weight: 700"
        lines = [
            f"{f.axes[0]} = {f.expression}<br>&nbsp; = <span style='{strong}'>{f.size}</span>"
            + (f"&nbsp; same for {' and '.join(f.axes[1:])}" if f.axes[1:] else "")
            for f in formulas
        ]
        return (
            "<p style='white-space: pre; line-height: 140%; margin: 0'>"
            + "<br>".join(lines)
            + "</p>"
        )

    # Weights

    def _fill_weights(self, operator: RuntimeOperator | None) -> None:
        attributes = operator.attributes if operator is not None else {}
        self._attribute_section.setVisible(bool(attributes))
        self._tabs.setTabEnabled(1, bool(attributes))
        # Views are filled again: making them takes several frames.
        while len(self._spare_views) < len(attributes):
            self._add_weight_view()
        for view in self._spare_views[len(attributes) :]:
            view.hide()
        self._weight_views = {}
        if operator is None or not attributes:
            return
        elements = sum(a.size for a in attributes.values())
        size = format_bytes(sum(a.nbytes for a in attributes.values()))
        self._attribute_section.head.set_suffix(f"{format_count(elements, 'value')} · {size}")
        transposed = "transpose" in operator.type.lower()
        # Largest first: a weight before its bias. The first is unfolded.
        weights = sorted(attributes.items(), key=lambda item: -item[1].size)
        for view, (name, attribute) in zip(self._spare_views, weights, strict=False):
            view.show_weight(
                operator.name,
                name,
                attribute,
                unfolded=not self._weight_views,
                transposed=transposed,
                scales=_scales(name, operator),
            )
            view.show()
            self._weight_views[name] = view
        self._request_summaries()

    def _add_weight_view(self) -> None:
        view = WeightView(self.theme)
        view.unfolded.connect(partial(self._request, view, asked=True))
        view.tensor_requested.connect(partial(self._show_tensor, view))
        views = self._spare_views
        before = views[-1].head if views else self._attribute_section.head
        self._weight_column.addWidget(view)
        QWidget.setTabOrder(before, view.head)  # what is new comes last otherwise
        views.append(view)

    @Slot()
    def _request_summaries(self) -> None:
        if self._attribute_section.head.isChecked() and self.isVisible():
            for view in self._weight_views.values():
                self._request(view, asked=view.head.isChecked())

    def _request(self, view: WeightView, *, asked: bool) -> None:
        """Show a weight's summary: cached, computed at once, or later."""
        operator, attribute = self._operator, view.attribute
        if operator is None or attribute is None or not self.isVisible():
            return
        if not asked and attribute.size > UNASKED:
            return
        if not attribute.is_stored:
            if view.head.isChecked():
                view.show_message("The model was opened without its .bin.")
            return
        key = WeightKey(self._graph_number, operator.name, view.name)
        if key not in self._summaries and attribute.size <= AT_ONCE:
            try:
                self._summaries[key] = _summary_of(attribute, view.axis)
            except (TypeError, EngineError) as exc:
                view.show_message(f"No statistics: {exc}.")
                return
        if key in self._summaries:
            view.show_summary(self._summaries[key], attribute.array)
            return
        view.show_message("Computing statistics …")
        if key not in self._asked:
            self._asked.add(key)
            self._background.submit(key, _summary_of, attribute, view.axis)

    def show_weight(self) -> None:
        """Show the focused weight, or else the largest, in the tensor view."""
        self._lock.setChecked(False)
        self.catch_up()
        views = list(self._weight_views.values())
        focus = self.focusWidget()
        chosen = [view for view in views if view.isAncestorOf(focus)]
        if views:
            self._show_tensor((chosen or views)[0])

    def _show_tensor(self, view: WeightView) -> None:
        """Show a weight in the tensor view, at once or when it has been read."""
        operator, attribute = self._operator, view.attribute
        if operator is None or attribute is None:
            return
        if not attribute.is_stored:
            view.unfold()  # it says that it is not there
            return
        key = WeightKey(self._graph_number, operator.name, view.name)
        if key not in self._summaries and attribute.size > AT_ONCE:
            self._to_show = key
            view.unfold()
            self._request(view, asked=True)
            return
        try:
            self.weight_requested.emit(operator.name, view.name, attribute.array)
        except EngineError as exc:
            view.show_message(f"{exc}.")

    @Slot(object)
    def _on_summarized(self, done: Done) -> None:
        key = done.key
        if not isinstance(key, WeightKey) or key.graph_number != self._graph_number:
            return
        self._asked.discard(key)
        if isinstance(done.result, WeightSummary):
            self._summaries[key] = done.result
        if self._operator is None or self._operator.name != key.operator:
            return
        view = self._weight_views[key.name]
        if isinstance(done.result, WeightSummary):
            view.show_summary(done.result, self._operator.attributes[key.name].array)
            if key == self._to_show:
                self._to_show = None
                self._show_tensor(view)
        else:
            view.show_message(f"No statistics: {done.error}.")

    # Operands

    @Slot()
    def _on_operands_reset(self) -> None:
        self.operand_table.fit()
        self._measure_operands()

    @Slot()
    def _measure_operands(self) -> None:
        """Find the longest text of each column."""
        rows = range(min(self.operands.rowCount(), _MEASURED_ROWS))
        self._operand_lengths = [
            max((len(self.operands.index(row, c).data()) for row in rows), default=0)
            for c in OperandColumn
        ]
        self._fit_operand_columns()

    @Slot()
    def _fit_operand_columns(self) -> None:
        """Fit direction, operand, shape and dtype to their texts; the peer gets the rest."""
        header = self.operand_table.horizontalHeader()
        texts = self._operand_lengths
        widths = {
            OperandColumn.DIRECTION: 34,
            OperandColumn.OPERAND: min(90, round(_FIGURE * texts[OperandColumn.OPERAND]) + 8),
            OperandColumn.SHAPE: min(120, round(_FIGURE * texts[OperandColumn.SHAPE]) + 2),
            OperandColumn.DTYPE: round(_FIGURE * texts[OperandColumn.DTYPE]) + 6,
        }
        # A narrow panel hides the dtype, which is in the tool tip, rather than cut a name.
        wanted = sum(widths.values()) + round(_FIGURE * texts[OperandColumn.PEER]) + 40
        narrow = wanted > self.operand_table.viewport().width()
        self.operand_table.setColumnHidden(OperandColumn.DTYPE, narrow)
        for column, width in widths.items():
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.Fixed)
            header.resizeSection(column, width)
        header.setSectionResizeMode(OperandColumn.PEER, QHeaderView.ResizeMode.Stretch)

    @Slot()
    def _on_parameters_reset(self) -> None:
        self.parameter_table.fit()
        self._fit_parameter_columns()

    @Slot()
    def _fit_parameter_columns(self) -> None:
        """Fit the names to their texts, within limits; the values get the rest."""
        rows = range(min(self.parameters.rowCount(), _MEASURED_ROWS))
        names = (self.parameters.index(row, ParameterColumn.NAME).data() for row in rows)
        wanted = round(_FIGURE * max(map(len, names), default=0)) + 20
        most = round(_MOST_FOR_NAMES * self.parameter_table.viewport().width())
        header = self.parameter_table.horizontalHeader()
        header.setSectionResizeMode(ParameterColumn.NAME, QHeaderView.ResizeMode.Fixed)
        header.resizeSection(ParameterColumn.NAME, max(122, min(wanted, most)))
        header.setSectionResizeMode(ParameterColumn.VALUE, QHeaderView.ResizeMode.Stretch)

    @Slot(QModelIndex)
    def _follow_link(self, index: QModelIndex) -> None:
        row = self.operands.row_at(index.row())
        if index.column() == OperandColumn.PEER and row.peer is not None:
            self._lock.setChecked(False)
            self.session.select(row.peer.name)
        elif index.column() == OperandColumn.OPERAND:
            self.session.show_operand(row.operand.name)

    # Tabs

    def explain(self) -> None:
        """Show the explanation of the selected operator's type."""
        self._lock.setChecked(False)
        self.catch_up()
        if self._operator is not None:
            self._go_to_section(self._tabbed.index(self._note_section))
            self.note_view.setFocus(Qt.FocusReason.ShortcutFocusReason)

    @Slot(int)
    def _go_to_section(self, place: int) -> None:
        if not 0 <= place < len(self._tabbed) or not self._tabs.isTabEnabled(place):
            return
        section = self._tabbed[place]
        section.unfold()
        bar = self._scroll.verticalScrollBar()

        def scroll() -> None:
            bar.setValue(section.y())
            self._tabs.setCurrentIndex(place)  # also for a section that cannot reach the top

        # After the layout has placed the unfolded body.
        QTimer.singleShot(0, self, scroll)

    @Slot(int)
    def _on_scrolled(self, position: int) -> None:
        """Select the tab of the section at the top."""
        shown = [
            place
            for place, section in enumerate(self._tabbed)
            if section.isVisible() and section.y() <= position + 4
        ]
        if shown:
            self._tabs.setCurrentIndex(shown[-1])

    @Slot(bool)
    def _on_lock_toggled(self, on: bool) -> None:  # noqa: FBT001 - a slot of toggled
        self._lock.setIcon(icon("lock" if on else "lock-open", self.theme))
        if not on:
            self.catch_up()

    # Overrides of Qt methods

    @override
    def title_actions(self) -> tuple[QAction, ...]:
        return (self._lock,)

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._request_summaries()

    @override
    def sizeHint(self) -> QSize:
        return QSize(274, 600)


def _summary_of(attribute: RuntimeAttribute, axis: int) -> WeightSummary:
    """Read a weight, which may take long, and summarise it."""
    return summarize(attribute.array, axis)


def _scales(name: str, operator: RuntimeOperator) -> Array | None:
    """Return the scales of an int8 weight; None without any, or if they cannot be read."""
    try:
        found = find_scales(name, operator.attributes)
    except ModelFileError:
        return None
    return found.scales if found is not None else None


def _note(text: str) -> QLabel:
    label = QLabel(text)
    label.setProperty("role", "caption")
    label.setContentsMargins(14, 4, 10, 4)
    return label


def _column(*widgets: QWidget, top: int, bottom: int) -> QWidget:
    holder = QFrame()
    holder.setProperty("role", "base")
    column = QVBoxLayout(holder)
    column.setContentsMargins(0, top, 0, bottom)
    column.setSpacing(0)
    for widget in widgets:
        column.addWidget(widget)
    return holder
