"""The timeline: cost or error of operators in execution order as bars."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QRect, QSize, Qt, Slot
from PySide6.QtGui import QAction, QActionGroup, QFontMetrics, QPainter
from PySide6.QtWidgets import QComboBox, QLabel, QSizePolicy, QVBoxLayout, QWidget
from typing_extensions import override

from engine.text import format_brief, format_count, format_duration
from kuiper_studio.icons import icon
from kuiper_studio.item_models.difference_marks import operator_marks
from kuiper_studio.menus import make_menu
from kuiper_studio.panels.panel import Panel
from kuiper_studio.panels.timeline_canvas import TimelineCanvas
from kuiper_studio.panels.timeline_model import Measure, Scale, TimelineModel
from kuiper_studio.panels.timeline_painter import ESTIMATE

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent

    from kuiper_studio.session import Record, StudioSession
    from kuiper_studio.theme import Theme

__all__ = ["TimelinePanel"]


class _Sign(Enum):
    """What stands before a word of the legend."""

    SOLID = auto()
    OUTLINED = auto()
    TICK = auto()
    DASHED = auto()


@dataclass(frozen=True, slots=True)
class _Entry:
    """A word of the legend, and the sign before it."""

    sign: _Sign
    token: str
    word: str


_COSTS: Final = (
    _Entry(_Sign.SOLID, "focus", "measured"),
    _Entry(_Sign.OUTLINED, "focus", "estimate"),
)
_COSTS_TEXT: Final = "Filled bars are measured; outlined ones are estimates"
_ERRORS: Final = (
    _Entry(_Sign.SOLID, "ctl", "equal"),
    _Entry(_Sign.SOLID, "div", "born here"),
    _Entry(_Sign.OUTLINED, "div", "inherited"),
    _Entry(_Sign.TICK, "text", "born share"),
)
_ERRORS_TEXT: Final = (
    "Largest difference over the reference's largest element, on a logarithmic scale. "
    "It is born in operators with a filled bar, and inherited by those with an outlined one. "
    "A line across a bar is the share that is born there; the dashed line is the tolerance"
)


class _Legend(QWidget):
    """Legend of the bars, as many words of it as there is room for."""

    _MARK = 9
    _GAP = 10

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._entries: tuple[_Entry, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)
        self.show_entries(_COSTS, _COSTS_TEXT)

    def show_entries(self, entries: tuple[_Entry, ...], text: str) -> None:
        """Show other words; `text` says all of it in sentences."""
        self._entries = entries
        self.setAccessibleName(text)
        self.setToolTip(text)
        self.updateGeometry()
        self.update()

    def _places(self) -> list[int]:
        """Return where each entry begins, and where the last one ends."""
        metrics = QFontMetrics(self._theme.ui_font(11))
        places = [0]
        for entry in self._entries:
            width = self._MARK + 5 + metrics.horizontalAdvance(entry.word) + self._GAP
            places.append(places[-1] + width)
        return places

    def _paint_sign(self, painter: QPainter, x: int, entry: _Entry) -> None:
        color, mark = self._theme.color(entry.token), QRect(x, 4, self._MARK, self._MARK)
        match entry.sign:
            case _Sign.SOLID:
                painter.fillRect(mark, color)
            case _Sign.OUTLINED:
                painter.fillRect(mark, self._theme.color(entry.token, ESTIMATE))
                painter.setPen(color)
                painter.drawRect(mark.adjusted(0, 0, -1, -1))
            case _Sign.TICK:
                painter.fillRect(x, 7, self._MARK, 2, color)
            case _Sign.DASHED:
                for start in (0, 5):
                    painter.fillRect(x + start, 8, 4, 1, color)

    # Overrides of Qt methods

    @override
    def sizeHint(self) -> QSize:
        return QSize(self._places()[-1], 16)

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(0, 16)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setFont(self._theme.ui_font(11))
        for entry, (x, end) in zip(self._entries, pairwise(self._places()), strict=True):
            if end - self._GAP > self.width():
                break
            self._paint_sign(painter, x, entry)
            painter.setPen(self._theme.color("text2"))
            left = x + self._MARK + 5
            text = QRect(left, 0, end - left, self.height())
            painter.drawText(text, Qt.AlignmentFlag.AlignVCenter, entry.word)
        painter.end()


class TimelinePanel(Panel):
    """Bars of all operators, the playhead, breakpoints and modules.

    A click or the arrow keys select an operator, a double click runs to it.

    Parameters
    ----------
    session : StudioSession
    theme : Theme
    """

    def __init__(
        self, session: StudioSession, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__("timeline", "Timeline", session, theme, parent)
        self.canvas = TimelineCanvas(session, theme, self)
        self.legend = _Legend(theme)
        self.summary = QLabel()
        self.summary.setObjectName("timelineSummary")
        self.summary.setProperty("role", "mono2")
        self.summary.setTextFormat(Qt.TextFormat.PlainText)
        self.measure_box = self._make_measure_box()
        self._cost = Measure.TIME  # to return to from the errors of a comparison
        self._shown = session.snapshot
        self._scale_action = self._make_scale_action()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.canvas)
        self._connect()
        self._on_graph_changed()

    def set_scale(self, scale: Scale) -> None:
        """Set the scale of heights."""
        self.canvas.set_scale(scale)

    def set_measure(self, measure: Measure) -> None:
        """Set the quantity that heights show; errors only while there is a comparison."""
        self.measure_box.setCurrentIndex(list(Measure).index(measure))

    def _make_measure_box(self) -> QComboBox:
        box = QComboBox()
        box.setObjectName("timelineMeasure")
        box.setProperty("dense", True)  # noqa: FBT003 - Qt's signature
        for measure in (Measure.TIME, Measure.MACS):
            box.addItem(f"Height: {measure.value}", measure)
        box.setAccessibleName("The quantity that the height of a bar shows")
        box.setToolTip("The quantity that the height of a bar shows")
        box.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        return box

    def _make_scale_action(self) -> QAction:
        action = QAction(icon("more", self.theme), "Scale", self)
        action.setToolTip("Scale of the heights")
        menu = make_menu(self)
        group = QActionGroup(menu)
        for scale in Scale:
            choice = menu.addAction(f"{scale.value} scale")
            choice.setCheckable(True)
            choice.setChecked(scale is Scale.LINEAR)
            choice.setData(scale)
            group.addAction(choice)
        group.triggered.connect(self._on_scale_chosen)
        action.setMenu(menu)
        return action

    def _connect(self) -> None:
        session = self.session
        session.graph_changed.connect(self._on_graph_changed)
        session.stepped.connect(self._on_stepped)
        session.stepped_back.connect(self._on_stepped_back)
        session.values_reset.connect(self._on_values_reset)
        session.settled.connect(self._on_settled)
        session.breakpoints_changed.connect(self.canvas.refresh)
        session.tensors.recalled.connect(self._on_recalled)
        session.measuring.changed.connect(self._on_recalled)
        session.comparing.changed.connect(self._on_compared)
        self.measure_box.currentIndexChanged.connect(self._on_measure_chosen)
        self.canvas.bar_size_changed.connect(self._update_summary)

    # Slots

    @Slot(int)
    def _on_measure_chosen(self, index: int) -> None:
        measure: Measure = self.measure_box.itemData(index)
        if measure is not Measure.ERROR:
            self._cost = measure
        self._scale_action.setEnabled(measure is not Measure.ERROR)
        self.canvas.set_measure(measure)
        self._show_legend()
        self._update_summary()

    def _show_legend(self) -> None:
        if self.canvas.measure is not Measure.ERROR:
            self.legend.show_entries(_COSTS, _COSTS_TEXT)
            return
        tolerance = f"tolerance {format_brief(self.canvas.model.tolerance)}"
        entries = (*_ERRORS, _Entry(_Sign.DASHED, "text2", tolerance))
        self.legend.show_entries(entries, _ERRORS_TEXT)

    @Slot()
    def _on_compared(self) -> None:
        """Show the errors of a comparison that has come; after it the costs again."""
        self._note_marks(self.canvas.model)
        place = list(Measure).index(Measure.ERROR)
        offered = self.measure_box.count() > place
        if self.canvas.model.marks:
            if not offered:
                self.measure_box.addItem(f"Height: {Measure.ERROR.value}", Measure.ERROR)
            self.set_measure(Measure.ERROR)
            self._show_legend()
        elif offered:
            self.set_measure(self._cost)
            self.measure_box.removeItem(place)
        self._refresh()

    def _note_marks(self, model: TimelineModel) -> None:
        comparison = self.session.comparing.comparison
        model.marks = operator_marks(self.session)
        model.tolerance = comparison.tolerances.float32 if comparison is not None else 0.0

    @Slot(object)
    def _on_scale_chosen(self, action: QAction) -> None:
        self.set_scale(action.data())

    @Slot()
    def _on_graph_changed(self) -> None:
        graph = self.session.graph
        operators = graph.operators if graph is not None else ()
        model = TimelineModel(operators, self.session.costs)
        self._note_records(model)
        self._note_marks(model)
        self.canvas.set_model(model)
        self._update_summary()

    def _note_records(self, model: TimelineModel) -> None:
        records = self.session.snapshot.records[: len(model.operators)]
        model.note(records, self.session.tensors)

    @Slot(object)
    def _on_stepped(self, records: tuple[Record, ...]) -> None:
        self.canvas.model.note(records, self.session.tensors)

    @Slot(object)
    def _on_stepped_back(self, operator: str) -> None:
        if self.session.graph is not None:
            self.canvas.model.forget(self.session.graph.operator(operator).index)
        self._refresh()

    @Slot()
    def _on_values_reset(self) -> None:
        self.canvas.model.forget()
        self._note_records(self.canvas.model)
        self._refresh()

    @Slot()
    @Slot(object)
    def _on_recalled(self, _operand: str = "") -> None:
        if self.session.nonfinite != self.canvas.model.nonfinite:
            self._refresh()

    @Slot()
    def _on_settled(self) -> None:
        if self.session.snapshot is not self._shown:
            self._refresh()
        else:  # another selection
            self.canvas.show_selection()

    @Slot()
    def _refresh(self) -> None:
        self._shown = self.session.snapshot
        self.canvas.model.nonfinite = self.session.nonfinite
        self.canvas.refresh()
        self._update_summary()

    @Slot()
    def _update_summary(self) -> None:
        self.summary.setText(self._summary_text())

    def _summary_text(self) -> str:
        model = self.canvas.model
        if not len(model):
            return ""
        parts = []
        if self.canvas.bar_size > 1:
            parts.append(f"{format_count(self.canvas.bar_size, 'operator')} per bar")
        if self.canvas.measure is Measure.ERROR:
            parts.append(model.marks.count_text)
        elif not model.any_measured:
            parts.append("no time measured yet")
        else:
            spent, left = model.spent_and_left()
            parts.append(f"{format_duration(spent)} run")
            if left > 0:
                parts.append(f"≈ {format_duration(left)} left")
        return " · ".join(parts)

    # Overrides of Panel and Qt

    @override
    def keyboard_target(self) -> QWidget:
        return self.canvas

    @override
    def title_widgets(self) -> tuple[QWidget, ...]:
        return (self.legend, self.summary, self.measure_box)

    @override
    def title_actions(self) -> tuple[QAction, ...]:
        return (self._scale_action,)

    @override
    def sizeHint(self) -> QSize:
        return QSize(800, 80)
