"""The timeline: the cost of operators in execution order as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRect, QSize, Qt, Slot
from PySide6.QtGui import QAction, QActionGroup, QFontMetrics, QPainter
from PySide6.QtWidgets import QComboBox, QLabel, QMenu, QSizePolicy, QVBoxLayout, QWidget
from typing_extensions import override

from engine.text import format_count, format_duration
from kuiper_studio.icons import icon
from kuiper_studio.panels.panel import Panel
from kuiper_studio.panels.timeline_canvas import TimelineCanvas
from kuiper_studio.panels.timeline_model import Measure, Scale, TimelineModel

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent

    from kuiper_studio.session import Record, StudioSession
    from kuiper_studio.theme import Theme

__all__ = ["TimelinePanel"]


class _Legend(QWidget):
    """Legend of measured and estimated bars."""

    _WORDS = ("measured", "estimate")
    _MARK = 9
    _GAP = 10

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setAccessibleName("Filled bars are measured, outlined bars are estimates")
        self.setToolTip("Filled bars are measured; outlined ones are estimates")
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def _places(self) -> list[tuple[int, str]]:
        metrics = QFontMetrics(self._theme.ui_font(11))
        places, x = [], 0
        for word in self._WORDS:
            places.append((x, word))
            x += self._MARK + 5 + metrics.horizontalAdvance(word) + self._GAP
        return [*places, (x, "")]

    # Overrides of Qt methods

    @override
    def sizeHint(self) -> QSize:
        return QSize(self._places()[-1][0], 16)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setFont(self._theme.ui_font(11))
        *places, _end = self._places()
        for x, word in places:
            mark = QRect(x, 4, self._MARK, self._MARK)
            solid = word == self._WORDS[0]
            painter.fillRect(mark, self._theme.color("focus", 1.0 if solid else 0.16))
            painter.setPen(self._theme.color("focus"))
            painter.drawRect(mark.adjusted(0, 0, -1, -1))
            painter.setPen(self._theme.color("text2"))
            text = QRect(x + self._MARK + 5, 0, 120, self.height())
            painter.drawText(text, Qt.AlignmentFlag.AlignVCenter, word)
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
        """Set the quantity that heights show."""
        self.measure_box.setCurrentIndex(list(Measure).index(measure))

    def _make_measure_box(self) -> QComboBox:
        box = QComboBox()
        box.setObjectName("timelineMeasure")
        box.setProperty("dense", True)  # noqa: FBT003 - Qt's signature
        for measure in Measure:
            box.addItem(f"Height: {measure.value}", measure)
        box.setAccessibleName("The quantity that the height of a bar shows")
        box.setToolTip("The quantity that the height of a bar shows")
        box.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        return box

    def _make_scale_action(self) -> QAction:
        action = QAction(icon("more", self.theme), "Scale", self)
        action.setToolTip("Scale of the heights")
        menu = QMenu(self)
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
        self.measure_box.currentIndexChanged.connect(self._on_measure_chosen)
        self.canvas.bar_size_changed.connect(self._update_summary)

    # Slots

    @Slot(int)
    def _on_measure_chosen(self, index: int) -> None:
        self.canvas.set_measure(self.measure_box.itemData(index))

    @Slot(object)
    def _on_scale_chosen(self, action: QAction) -> None:
        self.set_scale(action.data())

    @Slot()
    def _on_graph_changed(self) -> None:
        graph = self.session.graph
        operators = graph.operators if graph is not None else ()
        model = TimelineModel(operators)
        self._note_records(model)
        self.canvas.set_model(model)
        self._update_summary()

    def _note_records(self, model: TimelineModel) -> None:
        found = (self.session.record(operator.name) for operator in model.operators)
        model.note([record for record in found if record is not None], self.session.tensors)

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

    @Slot(object)
    def _on_recalled(self, _operand: str) -> None:
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
        if not model.any_measured:
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
