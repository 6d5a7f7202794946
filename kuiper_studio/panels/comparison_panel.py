"""The comparison panel: the verdict, why, and every operand beside the reference's tensor."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, Qt, Signal, Slot
from PySide6.QtWidgets import (
    QButtonGroup,
    QHBoxLayout,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QWidget,
)
from typing_extensions import override

from engine.text import format_brief, format_count
from kuiper_studio.badges import paint_badge
from kuiper_studio.item_models.comparison_rows import (
    DIFFERING,
    ComparisonRowsModel,
    DifferenceColumn,
    DifferenceKind,
    look_of,
)
from kuiper_studio.item_models.comparison_texts import (
    MOST_SHOWN,
    describe_beginning,
    explain_origin,
    format_verdict,
)
from kuiper_studio.item_models.operator_rows import ROW_ROLE
from kuiper_studio.panels.panel import Panel, plain_label
from kuiper_studio.panels.result_dock import TITLES
from kuiper_studio.panels.result_table import ResultDelegate, ResultTable
from kuiper_studio.turns import take_turn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from PySide6.QtGui import QAction, QPainter

    from engine.comparison import Comparison, Origin, Row
    from kuiper_studio.session import StudioSession
    from kuiper_studio.theme import Theme

__all__ = ["ComparisonPanel"]

_C = DifferenceColumn
_WIDTHS: Final[Mapping[int, int]] = {
    _C.STATUS: 26,
    _C.INDEX: 52,
    _C.OPERATOR: 116,
    _C.MATCHED: 96,
    _C.MAX_ABS: 62,
    _C.ERROR: 62,
    _C.COSINE: 60,
    _C.SNR: 42,
    _C.BORN: 62,
    _C.INHERITED: 68,
}
_BADGE: Final = 13.0  # diameter


class _Delegate(ResultDelegate):
    """Paints the status of a row as its badge in the graph."""

    @override
    def draw_value(
        self, painter: QPainter, rect: QRect, row: Row, column: int, *, selected: bool
    ) -> None:
        if column == DifferenceColumn.STATUS and look_of(row).kind in DIFFERING:
            centre = QPointF(QRectF(rect).center())
            paint_badge(painter, self.theme, look_of(row), centre, _BADGE)
        else:
            super().draw_value(painter, rect, row, column, selected=selected)


class ComparisonPanel(Panel):
    """The last comparison with a reference.

    Parameters
    ----------
    session : StudioSession
    theme : Theme

    Signals
    -------
    compare_requested
        The user wants to compare.
    report_requested
        The user wants a report.
    match_requested
        The user wants to match the selected operator by hand.
    menu_requested : str, QPoint
        The context menu of an operator, and its global position.
    leading
        The first origin of a comparison that has come is about to be selected.
    """

    compare_requested = Signal()
    report_requested = Signal()
    match_requested = Signal()
    menu_requested = Signal(object, QPoint)
    leading = Signal()

    def __init__(
        self, session: StudioSession, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__("comparison", TITLES["comparison"], session, theme, parent)
        self.model = ComparisonRowsModel(self)
        self.table = self._make_table()
        self.shown = self.table.shown
        self.verdict = plain_label("comparisonVerdict", "subtitle")
        self.detail = plain_label("comparisonDetail", "secondary")
        self.reasons = plain_label("comparisonReasons", "secondary")
        self.unmatched = plain_label("comparisonUnmatched", "caption")
        self._compare = QPushButton("Compare…")
        self._compare.setToolTip("Compare with a dump, a recording or another model")
        self._report = QPushButton("Report…")
        self._report.setToolTip("Write the comparison as an HTML page")
        self._match = QPushButton("Match by hand…")
        self._match.setToolTip(
            "Choose the reference's tensor that belongs to the selected operator, or to the"
            " first one without a match where the selected one has no output"
        )
        self._chips = QButtonGroup(self)
        self._gives_way = False
        self._build()
        self._connect()
        self._show()

    def follow(self, compare: QAction, report: QAction, match: QAction) -> None:
        """Enable each button when the command of the window is that does the same."""
        pairs = (self._compare, compare), (self._report, report), (self._match, match)
        for button, action in pairs:
            action.enabledChanged.connect(button.setEnabled)
            button.setEnabled(action.isEnabled())

    @override
    def keyboard_target(self) -> QWidget:
        return self.table

    # Building

    def _make_table(self) -> ResultTable:
        title = "Operands beside the reference's tensors"
        table = ResultTable("comparisonTable", title, self.model, _WIDTHS, self.theme, self)
        table.setItemDelegate(_Delegate(self.theme, table))
        table.sortByColumn(_C.INDEX, Qt.SortOrder.AscendingOrder)
        return table

    def _build(self) -> None:
        self.unmatched.setWordWrap(True)
        buttons = QHBoxLayout()
        buttons.setSpacing(2)
        for kind in DifferenceKind:
            chip = QToolButton()
            chip.setCheckable(True)
            chip.setProperty("dense", True)  # noqa: FBT003 - Qt's signature
            chip.setChecked(kind is DifferenceKind.ALL)
            chip.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
            self._chips.addButton(chip, list(DifferenceKind).index(kind))
            buttons.addWidget(chip)
        buttons.addStretch(1)
        actions = QHBoxLayout()
        actions.setSpacing(6)
        actions.addWidget(self._compare)
        actions.addWidget(self._report)
        actions.addStretch(1)
        foot = QHBoxLayout()
        foot.setContentsMargins(12, 4, 12, 6)
        foot.setSpacing(8)
        foot.addWidget(self.unmatched, 1)
        foot.addWidget(self._match, 0, Qt.AlignmentFlag.AlignRight)
        labels = (self.verdict, self.detail, self.reasons)
        column = self.lay_out_head(labels, self.table, actions, buttons)
        column.addLayout(foot)

    def _connect(self) -> None:
        session = self.session
        session.comparing.changed.connect(self._show)
        session.selection_changed.connect(self._on_selection_changed)
        self._chips.idClicked.connect(self._on_chip_clicked)
        self._compare.clicked.connect(self.compare_requested)
        self._report.clicked.connect(self.report_requested)
        self._match.clicked.connect(self.match_requested)
        self.table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.table.customContextMenuRequested.connect(self._on_menu_requested)
        self.table.row_chosen.connect(self._on_row_chosen)

    # Slots

    @Slot(bool)
    def give_way(self, to_banner: bool) -> None:  # noqa: FBT001 - a slot
        """Hide the reasons while a banner shows them, so that the table has their room."""
        self._gives_way = to_banner
        self.reasons.setVisible(bool(self.reasons.text()) and not to_banner)

    @Slot()
    def _show(self) -> None:
        comparison = self.session.comparing.comparison
        self.model.show(comparison)
        for place, kind in enumerate(DifferenceKind):
            chip = self._chips.button(place)
            count = self.model.count(kind)
            chip.setText(f"{kind.value} {count}")
            chip.setVisible(bool(count))
        self._chips.button(0).setChecked(True)
        self.shown.show_only(None)
        for button in (self._report, self._match):
            button.setVisible(comparison is not None)
        self.table.set_empty_text(
            "Compare the model with a reference: Analyse → Compare…"
            if comparison is None
            else "No operand has a tensor of the reference"
        )
        self.set_suffix(str(len(comparison.rows)) if comparison is not None else "")
        self._show_verdict(comparison)
        self._show_unmatched(comparison)
        if self.session.comparing.is_corrected:
            self._on_selection_changed(self.session.selected)
        elif comparison is not None and comparison.origins:
            take_turn(self, partial(self._go_to_first, self.session.selected))

    def _go_to_first(self, selected: str) -> None:
        """Show the first origin, if the same operator is still selected."""
        comparison = self.session.comparing.comparison
        if comparison is None or self.session.selected != selected:
            return
        if comparison.origins:
            self.leading.emit()
            self.session.select(comparison.origins[0].operator.name)
            self.session.show_operand(comparison.origins[0].operand)

    def _show_verdict(self, comparison: Comparison | None) -> None:
        if comparison is None:
            self.verdict.setText("Nothing compared")
            self.detail.setText("A dump, a recording or another model can be the reference.")
            self._show_reasons(None)
            return
        self.verdict.setText(format_verdict(comparison))
        if comparison.advice:
            self.detail.setText(comparison.advice)
            self._show_reasons(None)
            return
        tolerance = format_brief(comparison.tolerances.float32)
        beside = f"beside {comparison.reference}, tolerance {tolerance}"
        if comparison.verdict == "same":
            missing = comparison.missing_outputs
            compared = format_count(len(comparison.rows), "operand")
            left_out = f"; not compared: {', '.join(missing[:MOST_SHOWN])}" if missing else ""
            if comparison.reference_failure:
                left_out += f"; the reference is incomplete: {comparison.reference_failure}"
            self.detail.setText(f"{compared} {beside}{left_out}")
            self._show_reasons(None)
            return
        begins = describe_beginning(comparison) if comparison.origins else ""
        self.detail.setText(
            " ".join(filter(None, (begins, f"{beside[0].upper()}{beside[1:]}.")))
        )
        self._show_reasons(comparison.origins[0] if comparison.origins else None)

    def _show_reasons(self, origin: Origin | None) -> None:
        """Show why the operators of an origin differ."""
        self.reasons.setText(explain_origin(origin) if origin is not None else "")
        self.give_way(self._gives_way)

    def _show_unmatched(self, comparison: Comparison | None) -> None:
        unmatched = comparison.unmatched if comparison is not None else None
        lost = len(unmatched.ours) if unmatched is not None else 0
        theirs = len(unmatched.reference) if unmatched is not None else 0
        self.unmatched.setText(
            f"Unmatched: {format_count(lost, 'operand')}, {theirs} of the reference"
        )
        lines = [] if unmatched is None else [*unmatched.ours[:20], *unmatched.reference[:20]]
        self.unmatched.setToolTip("\n".join(f"{e.operand}: {e.reason}" for e in lines))
        self.unmatched.setVisible(bool(lost or theirs))

    @Slot(QPoint)
    def _on_menu_requested(self, point: QPoint) -> None:
        row: Row | None = self.table.indexAt(point).data(ROW_ROLE)
        if row is not None:
            place = self.table.viewport().mapToGlobal(point)
            self.menu_requested.emit(row.operator.name, place)

    @Slot(int)
    def _on_chip_clicked(self, place: int) -> None:
        kind = list(DifferenceKind)[place]
        is_all = kind is DifferenceKind.ALL
        self.shown.show_only(None if is_all else lambda row: look_of(row).kind is kind)

    @Slot(object)
    def _on_row_chosen(self, row: Row) -> None:
        if row.operator.name != self.session.selected:
            self.session.select(row.operator.name)
            self.session.show_operand(row.operand)

    @Slot(object)
    def _on_selection_changed(self, name: str) -> None:
        origin = self.session.comparing.origins.get(name)
        if origin is not None:
            self._show_reasons(origin)
        self.table.go_to(name)
