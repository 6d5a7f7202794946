"""The canvas of the timeline, with mouse and keyboard."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QEvent, QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QHelpEvent, QPainter, QPen, QPixmap
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget
from typing_extensions import override

from engine.text import format_amount, format_count, format_duration
from kuiper_studio.focus_ring import draw_focus_ring, is_by_keyboard
from kuiper_studio.item_models.module_runs import module_runs
from kuiper_studio.item_models.statuses import (
    DISPLAY_STATUS,
    NONFINITE,
    STATUS_LOOKS,
    DisplayStatus,
)
from kuiper_studio.panels.timeline_errors import ErrorPainter
from kuiper_studio.panels.timeline_model import Measure, Scale, TimelineModel
from kuiper_studio.panels.timeline_painter import Geometry, TimelinePainter
from kuiper_studio.session import RunState

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtGui import (
        QFocusEvent,
        QKeyEvent,
        QMouseEvent,
        QPaintEvent,
        QResizeEvent,
    )

    from engine.runtime import RuntimeOperator
    from kuiper_studio.session import StudioSession
    from kuiper_studio.theme import Theme

__all__ = ["TimelineCanvas"]

_RUNNABLE: Final = frozenset({RunState.READY, RunState.STOPPED, RunState.FINISHED})


class TimelineCanvas(QWidget):
    """Bars of the session's operators; the picture is cached until something changes.

    Parameters
    ----------
    session : StudioSession
    theme : Theme

    Signals
    -------
    bar_size_changed : int
        The number of operators per bar.
    menu_requested : (str, QPoint)
        A context menu is wanted for the operator of that name, at a global position.
    """

    bar_size_changed = Signal(int)
    menu_requested = Signal(object, QPoint)

    def __init__(
        self, session: StudioSession, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._session, self._theme = session, theme
        self.model = TimelineModel()
        self._modules = module_runs(())
        self._measure, self._scale = Measure.TIME, Scale.LINEAR
        self._picture: QPixmap | None = None
        self._painted: TimelinePainter | None = None
        self._hovered = -1
        self._ringed = False
        self._bar_size = 1
        self.setObjectName("timelineCanvas")
        self.setAccessibleName("Timeline")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumHeight(60)
        theme.changed.connect(self.refresh)

    # What is shown

    @property
    def measure(self) -> Measure:
        """The quantity that heights show."""
        return self._measure

    @property
    def bar_size(self) -> int:
        """Number of operators per bar."""
        return self._bar_size

    def set_model(self, model: TimelineModel) -> None:
        """Show a model."""
        self.model = model
        self._modules = module_runs(model.operators)
        self._hovered = -1
        self._check_bar_size()
        self.refresh()

    def set_measure(self, measure: Measure) -> None:
        """Set the quantity that heights show."""
        self._measure = measure
        self.refresh()

    def set_scale(self, scale: Scale) -> None:
        """Set the scale of heights."""
        self._scale = scale
        self.refresh()

    def refresh(self) -> None:
        """Repaint the picture, after a change of its contents."""
        self._picture = None
        self._describe()
        self.update()

    def show_selection(self) -> None:
        """Move the ring of the selection; the picture stays."""
        self._describe()
        self.update()

    def geometry_of_bars(self) -> Geometry:
        """Return the current geometry."""
        return Geometry(self.width(), self.height(), len(self.model))

    def operator_at(self, x: float) -> RuntimeOperator | None:
        """Return the operator at a position; of several in a bar the one it shows."""
        if not len(self.model):
            return None
        bar = self.geometry_of_bars().bar_at(x)
        if bar < 0:
            return None
        index = int(self._current_painter().shown[bar])
        return self.model.operators[index]

    def tip(self, operator: RuntimeOperator) -> str:
        """Return the tool tip, as rich text, of the bar that shows an operator."""
        size, index = self._bar_size, operator.index
        lines = [
            f"#{index}  <b>{escape(operator.type)}</b>",
            escape(operator.name),
            escape(self._facts(operator)),
        ]
        if size > 1:
            first = index - index % size
            last = min(first + size, len(self.model)) - 1
            word = "worst" if self._measure is Measure.ERROR else "costliest"
            lines.insert(0, f"#{first} to #{last}, of which the {word} is:")
        return "<p style='white-space: pre'>" + "<br>".join(lines) + "</p>"

    def _facts(self, operator: RuntimeOperator) -> str:
        parts = [self._time_text(operator)]
        macs = float(self.model.macs[operator.index])
        if macs:
            parts.append(format_amount(macs, "MAC"))
        if operator.index in self.model.nonfinite:
            parts.append(NONFINITE.detail)
        mark = self.model.marks.get(operator.name)
        if mark is not None:
            parts.append(mark.text)
        return " · ".join(filter(None, parts))

    def _time_text(self, operator: RuntimeOperator) -> str:
        status = DISPLAY_STATUS[self._session.status(operator.name)]
        record = self._session.record(operator.name)
        supplied = self._session.supplied_text(operator.name)
        if supplied:
            return supplied
        if status is DisplayStatus.EXECUTED and record is not None:
            return f"{format_duration(record.seconds)} measured"
        if status is DisplayStatus.PENDING:
            seconds = float(self.model.seconds()[operator.index])
            if not self.model.any_measured or not seconds:
                return "not run yet"
            return f"estimate ≈ {format_duration(seconds)}"
        return STATUS_LOOKS[status].detail

    def _describe(self) -> None:
        """Describe the selection for screen readers."""
        session = self._session
        text = f"{format_count(len(self.model), 'operator')} in execution order, "
        text += f"{session.position - session.skipped} executed."
        if self.model.marks:
            text += f" Beside the reference: {self.model.marks.count_text}."
        if session.graph is not None and session.selected:
            operator = session.graph.operator(session.selected)
            text += f" Selected: #{operator.index} {operator.type} {operator.name}"
            text += f", {self._facts(operator)}." if self._facts(operator) else "."
        self.setAccessibleDescription(text)

    def _check_bar_size(self) -> None:
        size = self.geometry_of_bars().bar_size
        if size != self._bar_size:
            self._bar_size = size
            self.bar_size_changed.emit(size)

    # Painting

    def _current_painter(self) -> TimelinePainter:
        if self._picture is None or self._painted is None:
            space = self.geometry_of_bars()
            if self._measure is Measure.ERROR:
                self._painted = ErrorPainter(self._theme, space, self.model)
            else:
                self._painted = TimelinePainter(
                    self._theme, space, self.model, self._measure, self._scale
                )
        return self._painted

    def _current_picture(self) -> QPixmap:
        scale = self.devicePixelRatioF()
        if self._picture is not None and self._picture.devicePixelRatioF() == scale:
            return self._picture
        painted = self._current_painter()
        picture = QPixmap(self.size() * scale)
        picture.setDevicePixelRatio(scale)
        painter = QPainter(picture)
        painted.paint(painter, self._session.position, self._breakpoints(), self._modules)
        painter.end()
        self._picture = picture
        return picture

    def _breakpoints(self) -> list[int]:
        graph = self._session.graph
        if graph is None:
            return []
        names = self._session.breakpoints
        return sorted(graph.operator(name).index for name in names)

    def _paint_overlay(self, painter: QPainter) -> None:
        space, painted = self.geometry_of_bars(), self._current_painter()
        if 0 <= self._hovered < len(painted.heights):
            left, right = space.bar_span(self._hovered)
            area = QRectF(left, 0, right - left, space.base)
            painter.fillRect(area, self._theme.color("text", 0.10))
        graph = self._session.graph
        if graph is not None and self._session.selected:
            bar = graph.operator(self._session.selected).index // space.bar_size
            rect = space.bar_rect(bar, max(int(painted.heights[bar]), 3))
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(self._theme.color("focus"), 1.5))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(rect).adjusted(-2.5, -2.5, 2.5, 2.5), 2, 2)

    # Mouse and keyboard

    def _set_hovered(self, bar: int) -> None:
        if bar != self._hovered:
            self._hovered = bar
            self.update()

    def _run_to(self, operator: RuntimeOperator) -> None:
        if self._session.state in _RUNNABLE:
            self._session.run_to(operator.name)

    def _walk(self, place: Callable[[int], int]) -> None:
        """Select the operator at ``place(index)``, of the selected one's index."""
        graph, session = self._session.graph, self._session
        if graph is None:
            return
        last = len(graph.operators) - 1
        at = graph.operator(session.selected).index if session.selected else session.position
        session.select(graph.operators[min(max(place(at), 0), last)].name)

    # Overrides of Qt methods

    @override
    def sizeHint(self) -> QSize:
        return QSize(800, 80)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        if not len(self.model):
            painter.fillRect(self.rect(), self._theme.color("base"))
            painter.setFont(self._theme.ui_font())
            painter.setPen(self._theme.color("text3"))
            text = "Open a model to see its operators in execution order."
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, text)
        else:
            painter.drawPixmap(0, 0, self._current_picture())
            self._paint_overlay(painter)
        if self._ringed:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
            draw_focus_ring(painter, self._theme, self.rect())
        painter.end()

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._picture = None
        self._check_bar_size()

    @override
    def event(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            operator = self.operator_at(event.pos().x())
            if operator is None:
                QToolTip.hideText()
            else:
                QToolTip.showText(event.globalPos(), self.tip(operator), self)
            return True
        return super().event(event)

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._set_hovered(self.geometry_of_bars().bar_at(event.position().x()))

    @override
    def leaveEvent(self, event: QEvent) -> None:
        self._set_hovered(-1)

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        operator = self.operator_at(event.position().x())
        if operator is not None and event.button() is Qt.MouseButton.LeftButton:
            self._session.select(operator.name)

    @override
    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        operator = self.operator_at(event.position().x())
        if operator is not None and event.button() is Qt.MouseButton.LeftButton:
            self._run_to(operator)

    @override
    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        graph, session = self._session.graph, self._session
        operator = self.operator_at(event.pos().x())
        if event.reason() is QContextMenuEvent.Reason.Keyboard and graph and session.selected:
            operator = graph.operator(session.selected)
        if operator is not None:
            self.menu_requested.emit(operator.name, event.globalPos())

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        moves: dict[int, Callable[[int], int]] = {
            Qt.Key.Key_Left: lambda at: at - 1,
            Qt.Key.Key_Right: lambda at: at + 1,
            Qt.Key.Key_PageUp: lambda at: at - 10,
            Qt.Key.Key_PageDown: lambda at: at + 10,
            Qt.Key.Key_Home: lambda _: 0,
            Qt.Key.Key_End: lambda _: len(self.model) - 1,
        }
        graph, plain = self._session.graph, not event.modifiers()
        if plain and event.key() in moves:
            self._walk(moves[event.key()])
        elif (
            plain
            and event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}
            and graph is not None
            and self._session.selected
        ):
            self._run_to(graph.operator(self._session.selected))
        else:
            super().keyPressEvent(event)

    @override
    def focusInEvent(self, event: QFocusEvent) -> None:
        self._ringed = is_by_keyboard(event)
        super().focusInEvent(event)
        self.update()

    @override
    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._ringed = False
        super().focusOutEvent(event)
        self.update()
