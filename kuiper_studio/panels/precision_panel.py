"""The precision panel: what formats of lower precision lose, and what to keep in float32."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QPushButton,
    QWidget,
)
from typing_extensions import override

from engine.text import format_brief, format_count
from kuiper_studio.item_models.operator_rows import table_text
from kuiper_studio.item_models.precision_rows import PrecisionColumn, PrecisionRowsModel
from kuiper_studio.panels.panel import Panel, plain_label
from kuiper_studio.panels.result_dock import TITLES
from kuiper_studio.panels.result_table import ResultTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.precision import Loss, OperatorPrecision
    from kuiper_studio.engine_service.protocol import PrecisionResult
    from kuiper_studio.session import StudioSession
    from kuiper_studio.theme import Theme

__all__ = ["PrecisionPanel"]

_C = PrecisionColumn
_WIDTHS: Final[Mapping[int, int]] = {
    _C.KEEP: 30,
    _C.INDEX: 52,
    _C.OPERATOR: 112,
    _C.AT_OUTPUT: 84,
    _C.ALONE: 86,
    _C.CUMULATIVE: 112,
    _C.HEADROOM: 66,
    _C.UNDERFLOW: 66,
    _C.WEIGHTS: 86,
}


class PrecisionPanel(Panel):
    """The last simulation of formats of lower precision.

    Parameters
    ----------
    session : StudioSession
    theme : Theme

    Signals
    -------
    simulation_requested
        The user wants to simulate formats.
    save_requested : str
        Text of the table, to be saved.
    """

    simulation_requested = Signal()
    save_requested = Signal(str)

    def __init__(
        self, session: StudioSession, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__("precision", TITLES["precision"], session, theme, parent)
        self.model = PrecisionRowsModel(self)
        self.table = ResultTable(
            "precisionTable", "Operators in the format", self.model, _WIDTHS, theme, self
        )
        self.table.set_empty_text("See what float16 or int8 would lose: Analyse → Precision…")
        self.shown = self.table.shown
        self.formats = QComboBox()
        self.formats.setAccessibleName("Format")
        self.summary = plain_label("precisionSummary", "subtitle")
        self.choice = plain_label("precisionChoice", "secondary")
        self._simulate = QPushButton("Precision…")
        self._simulate.setToolTip("Simulate storing weights and outputs in other formats")
        self._copy = QPushButton("Copy for ncnn")
        self._copy.setToolTip("Copy the lines that have ncnn keep these operators in float32")
        self._save = QPushButton("Save…")
        self._save.setToolTip("Save the table and the lines for ncnn as text")
        self._build()
        session.precision.changed.connect(self._show)
        session.selection_changed.connect(self.table.go_to)
        self.formats.currentIndexChanged.connect(self._show_format)
        self._simulate.clicked.connect(self.simulation_requested)
        self._copy.clicked.connect(self._on_copy)
        self._save.clicked.connect(self._on_save)
        self.table.row_chosen.connect(self._on_row_chosen)
        self._show()

    @override
    def keyboard_target(self) -> QWidget:
        return self.table

    def _build(self) -> None:
        actions = QHBoxLayout()
        actions.setSpacing(6)
        for widget in (self.formats, self._simulate, self._copy, self._save):
            actions.addWidget(widget)
        actions.addStretch(1)
        self.lay_out_head((self.summary, self.choice), self.table, actions)

    @property
    def _result(self) -> PrecisionResult | None:
        """The format that is shown."""
        results, place = self.session.precision.results, self.formats.currentIndex()
        return results[place] if 0 <= place < len(results) else None

    def _lines(self) -> tuple[str, ...]:
        """Return what ncnn takes to keep the chosen operators in float32."""
        from engine.precision import ncnn_lines  # not before a simulation was made

        kept = self._result.kept if self._result is not None else None
        return ncnn_lines(kept.kept, kept.format) if kept is not None else ()

    # Slots

    @Slot()
    def _show(self) -> None:
        results = self.session.precision.results
        self.formats.blockSignals(True)  # noqa: FBT003 - Qt's signature
        self.formats.clear()
        self.formats.addItems([each.simulation.format.name for each in results])
        self.formats.blockSignals(False)  # noqa: FBT003
        self.formats.setVisible(bool(results))
        self._show_format()

    @Slot()
    def _show_format(self) -> None:
        result = self._result
        self.model.show(result)
        self.table.sortByColumn(_C.AT_OUTPUT, Qt.SortOrder.DescendingOrder)
        self.table.scrollToTop()
        self._save.setVisible(result is not None)
        self._copy.setVisible(result is not None and bool(self._lines()))
        self.set_suffix(result.simulation.format.name if result is not None else "")
        self.choice.setToolTip("")
        if result is None:
            self.summary.setText("Nothing simulated")
            self.choice.setText("Weights and outputs can be stored in float16 or int8.")
            return
        simulation, kept = result.simulation, result.kept
        self.summary.setText(f"All in {simulation.format.name}: {_off(simulation.output)}")
        if kept is None:
            self.choice.setText(
                "That is of the model's output. With a wanted error, operators are chosen that "
                "have to stay in float32."
            )
            return
        if not kept.kept and kept.reached:
            self.choice.setText("No operator has to stay in float32 for the wanted error.")
            return
        count = format_count(len(kept.kept), "operator")
        wanted = format_brief(kept.wanted_error)
        outcome = "as wanted" if kept.reached else f"more than the wanted {wanted}"
        low, high = map(format_brief, kept.spread)
        self.choice.setText(f"With {count} in float32: {_off(kept.output)}, {outcome}")
        self.choice.setToolTip(
            f"With sums in other orders, as in another library: {low} … {high}. "
            "The highest counts."
        )

    @Slot()
    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText("\n".join(self._lines()))

    @Slot()
    def _on_save(self) -> None:
        parts = [
            self.summary.text(),
            self.choice.text(),
            table_text(self.model, untitled="keep"),
            *self._lines(),
        ]
        self.save_requested.emit("\n".join(parts) + "\n")

    @Slot(object)
    def _on_row_chosen(self, row: OperatorPrecision) -> None:
        if row.operator.name != self.session.selected:
            self.session.select(row.operator.name)


def _off(loss: Loss) -> str:
    if not loss.relative:
        return "no error"
    relative, snr = format_brief(loss.relative, 2), format_brief(loss.snr)
    return f"off by {relative} of the largest number, {snr} dB"
