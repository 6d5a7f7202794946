"""The properties panel of the selected operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QModelIndex, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QFrame,
    QLabel,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from engine.errors import capitalized
from engine.text import format_bytes, format_count, format_duration
from kuiper_studio.icons import icon
from kuiper_studio.item_models import (
    OperandColumn,
    OperandsModel,
    ParametersModel,
    boundary_rows,
    group_rows,
)
from kuiper_studio.item_models.statuses import DisplayStatus, operator_status
from kuiper_studio.panels.note_view import NoteView
from kuiper_studio.panels.operator_header import OperatorHeader
from kuiper_studio.panels.panel import Panel
from kuiper_studio.panels.property_tables import OperandTable, ParameterTable
from kuiper_studio.panels.section import Section, SectionTabs
from kuiper_studio.panels.shape_formula import SizeFormula, size_formulas
from kuiper_studio.panels.weight_list import WeightList
from kuiper_studio.turns import take_turn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QShowEvent

    from engine.runtime import RuntimeOperator
    from kuiper_studio.layout.groups import Group
    from kuiper_studio.session import StudioSession
    from kuiper_studio.theme import Theme

__all__ = ["PropertiesPanel"]


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
        self._later.timeout.connect(lambda: take_turn(self, self.catch_up))
        self._operator: RuntimeOperator | None = None
        self._group: Group | None = None  # that is selected
        self._shown_group: Group | None = None
        self._is_stale = False
        self._lock = self._make_lock_action()
        self._header = OperatorHeader(session, theme)
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
        self.parameter_table = ParameterTable(theme, self.parameters)
        self.parameter_table.setObjectName("parametersTable")
        self.parameter_table.setAccessibleName("Parameters")
        self.operand_table = OperandTable(theme, self.operands)
        self.operand_table.setObjectName("operandsTable")
        self.operand_table.setAccessibleName("Inputs and outputs")
        self._no_parameters = _note("This operator has no parameters.")
        parameters = _column(self.parameter_table, self._no_parameters, top=4, bottom=4)
        self.weights = WeightList(theme)
        self._formula = QLabel()
        self._formula.setProperty("role", "formula")
        self._formula.setTextFormat(Qt.TextFormat.RichText)
        self._formula.setContentsMargins(12, 5, 10, 6)
        self._formula.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._parameter_section = Section("", parameters, theme)
        self._attribute_section = Section("Attributes", self.weights, theme)
        self.weights.follow_in_tab_order(self._attribute_section.head)
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
        self.operand_table.clicked.connect(self._follow_link)
        self.operand_table.activated.connect(self._follow_link)
        self._header.layers_requested.connect(self.layers_requested)
        self._header.seed_requested.connect(self.seed_requested)
        self._tabs.chosen.connect(self._go_to_section)
        self._scroll.verticalScrollBar().valueChanged.connect(self._on_scrolled)
        self._attribute_section.head.toggled.connect(self.weights.request_summaries)
        self.weights.weight_requested.connect(self.weight_requested)
        self._on_graph_changed()

    # Slots of session signals

    @Slot()
    def _on_graph_changed(self) -> None:
        self._lock.setChecked(False)
        self._operator = self._group = self._shown_group = None
        self._show(None)
        self.weights.forget()
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
        self._show_weights(operator)
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
        return capitalized(self.session.why_not_run(operator.name))

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

    def _show_weights(self, operator: RuntimeOperator | None) -> None:
        attributes = operator.attributes if operator is not None else {}
        self._attribute_section.setVisible(bool(attributes))
        self._tabs.setTabEnabled(1, bool(attributes))
        elements = format_count(sum(a.size for a in attributes.values()), "value")
        size = format_bytes(sum(a.nbytes for a in attributes.values()))
        self._attribute_section.head.set_suffix(f"{elements} · {size}")
        self.weights.show_operator(operator)

    def show_weight(self) -> None:
        """Show the focused weight, or else the largest, in the tensor view."""
        self._lock.setChecked(False)
        self.catch_up()
        self.weights.show_tensor(self.focusWidget())

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
        self.weights.request_summaries()

    @override
    def sizeHint(self) -> QSize:
        return QSize(274, 600)


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
