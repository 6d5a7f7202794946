"""Range and colours of a pane: its commands, its range bar and what the canvases then show."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Signal, Slot

from engine.statistics import sampling_step
from engine.text import format_count
from kuiper_studio.tensor_view.choice import Scope
from kuiper_studio.tensor_view.facts import rebin
from kuiper_studio.tensor_view.images import Coloring
from kuiper_studio.tensor_view.measuring import Answer, What
from kuiper_studio.tensor_view.numbers import format_range
from kuiper_studio.tensor_view.reading import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kuiper_studio.tensor_view.choice import DataSetValues
    from kuiper_studio.tensor_view.complex_parts import Part
    from kuiper_studio.tensor_view.pane_parts import PaneParts
    from kuiper_studio.tensor_view.pane_statistics import PaneStatistics

__all__ = ["PaneColors"]

_DIFFERENCES: Final = "RdBu_r"  # colour map of differences


class PaneColors(QObject):
    """Carries out what the user chooses for range and colours.

    Parameters
    ----------
    parts : PaneParts
    measures : PaneStatistics

    Signals
    -------
    refreshed
        Everything has the chosen colours.
    part_chosen
        Another part of complex numbers is to be shown.
    range_changed : str
        The current range, formatted.
    """

    refreshed = Signal()
    part_chosen = Signal()
    range_changed = Signal(str)

    def __init__(self, parts: PaneParts, measures: PaneStatistics, parent: QObject) -> None:
        super().__init__(parent)
        self._parts, self._measures = parts, measures
        self._model, self._range_bar = parts.model, parts.range_bar
        self._measured: tuple[object, ...] = ()
        self._window: tuple[float, float] | None = None
        parts.measurer.answered.connect(self._on_answered)
        parts.range_bar.range_chosen.connect(self._on_range_chosen)
        parts.actions.map_chosen.connect(self._on_map_chosen)
        parts.actions.scope_chosen.connect(self._on_scope_chosen)
        parts.actions.part_chosen.connect(self._on_part_chosen)

    # What is shown

    @Slot()
    def refresh(self) -> None:
        """Repaint with the chosen range and colours."""
        model, actions = self._model, self._parts.actions
        coloring, self._window = self.coloring(), None
        if model.reading.kind is Kind.VECTOR:
            self._parts.body.vector.set_coloring(coloring)
        elif model.reading.kind is Kind.PLANES:
            self._parts.body.plane.set_coloring(coloring)
            self._parts.body.mosaic.set_coloring(coloring, model.page_range())
        self.color_counterpart(coloring)
        self._range_bar.set_range((model.axis.low, model.axis.high), coloring)
        self._range_bar.set_problem(self._range_problem())
        automatic = model.choice.color_map is None
        self._parts.tools.show_map(model.color_map, automatic=automatic)
        self._parts.tools.show_scope(model.scope)
        actions.show_choice(model.choice.color_map or "", model.scope)
        actions.show_checked("tensor.symmetric", checked=model.symmetric)
        actions.show_part(model.choice.complex_part)
        actions.show_checked("tensor.log", checked=model.choice.is_log)
        self.refreshed.emit()
        self._show_backdrop(model.axis.low, model.axis.high)
        self._show_histogram()
        shown = model.has_picture and model.data_range is not None
        self.range_changed.emit(format_range(coloring.low, coloring.high) if shown else "")

    def color_counterpart(self, coloring: Coloring) -> None:
        """Repaint what is beside the value."""
        canvases = self._parts.canvases
        if not canvases.is_split or self._model.other is None:
            return
        canvases.theirs.set_coloring(coloring)
        canvases.difference.set_coloring(self.error_coloring())
        canvases.arrange()

    def coloring(self) -> Coloring:
        """The current mapping of values to colours."""
        used = self._model.range
        return Coloring(
            used.low,
            used.high,
            self._model.color_map,
            known=self._model.data_range is not None,
            mark_special=self._parts.actions["tensor.nan"].isChecked(),
            mark_clipped=self._parts.actions["tensor.clip"].isChecked(),
            is_log=self._model.choice.is_log,
        )

    def error_coloring(self) -> Coloring:
        """The mapping of differences from the reference to colours."""
        if self._model.other is None:
            return self.coloring()
        used = self._model.difference_range()
        return replace(
            self.coloring(), low=used.low, high=used.high, color_map=_DIFFERENCES, known=True
        )

    def _range_problem(self) -> str:
        if not self._model.has_picture or self._model.data_range is not None:
            return ""
        facts = self._measures.facts
        if facts is not None and facts.nan == facts.count:
            return "All values are NaN"
        return "No value is finite"

    def _show_histogram(self) -> None:
        model = self._model
        if not model.has_picture or model.data_range is None:
            return
        axis, values = model.axis, model.scoped_values()
        channel = model.channel if model.scope is Scope.CHANNEL else -1
        wanted = (id(values), channel, axis, id(model.other))
        if wanted == self._measured:
            return
        self._measured = wanted
        counts = self._parts.measurer.ask(What.HISTOGRAM, values, axis.low, axis.high)
        self._range_bar.set_histogram(counts, sampling_step(values.size))
        others = model.other_values()
        if others is None:
            self._parts.measurer.forget(What.REFERENCE)
            self._range_bar.set_outline(None)
        else:
            outline = self._parts.measurer.ask(What.REFERENCE, others, axis.low, axis.high)
            self._range_bar.set_outline(outline)

    def show_data_set(self, values: DataSetValues | None) -> None:
        """Show what the operand held over a data set; silent when nothing changes."""
        before = self._model.data_set
        known = before.counts if before is not None else None
        if known is not (values.counts if values is not None else None):
            self._model.data_set = values
            self.refresh()

    def _show_backdrop(self, low: float, high: float) -> None:
        values = self._model.data_set
        if values is None:
            self._range_bar.set_backdrop(None)
            return
        inputs = format_count(values.inputs, "input")
        tip = f"Behind it: the data set, {inputs}, {format_range(values.low, values.high)}"
        self._range_bar.set_backdrop(rebin(values.counts, values.edges, low, high), tip)

    def forget(self) -> None:
        """Measure the histogram again: there is another value."""
        self._measured = ()

    @Slot(object)
    def _on_answered(self, answer: Answer) -> None:
        if answer.what is What.HISTOGRAM:
            step = sampling_step(self._model.scoped_values().size)
            self._range_bar.set_histogram(answer.result, step)
        elif answer.what is What.REFERENCE:
            self._range_bar.set_outline(answer.result)

    # Contrast at the pointer

    @Slot(bool)
    def set_hover_contrast(self, checked: bool) -> None:  # noqa: FBT001 - a slot
        """Stretch the colours about the value under the mouse, or no longer."""
        if not checked:
            self.stretch_about(None)

    def stretch_about(self, value: float | None) -> None:
        """Stretch the colours of the shown channel about a value; None for the whole range."""
        window = None
        if value is not None and self._parts.actions["tensor.hoverContrast"].isChecked():
            window = self._model.window_about(value)
        if window == self._window:
            return
        self._window = window
        coloring = replace(self.coloring(), window=window)
        canvases = self._parts.canvases
        canvases.ours.set_coloring(coloring)
        if canvases.is_split and self._model.other is not None:
            canvases.theirs.set_coloring(coloring)
        low, high = window or (coloring.low, coloring.high)
        self.range_changed.emit(format_range(low, high))

    # Commands and controls

    def set_wide_ranges(self, ranges: Mapping[Scope, tuple[float, float]]) -> None:
        """Set the ranges of all that was computed, by scope; silent when nothing changes."""
        if self._model.set_wide_ranges(ranges) and self._model.scope.is_wide:
            self.refresh()

    @Slot(float, float)
    def _on_range_chosen(self, low: float, high: float) -> None:
        self._model.set_range(low, high)
        self.refresh()

    @Slot(str)
    def _on_map_chosen(self, name: str) -> None:
        self._model.set_map(name or None)
        self.refresh()

    @Slot(object)
    def _on_part_chosen(self, part: Part) -> None:
        self._model.set_complex_part(part)
        self.forget()
        self.part_chosen.emit()

    @Slot(object)
    def _on_scope_chosen(self, scope: Scope) -> None:
        self._model.set_scope(scope)
        self.refresh()

    @Slot()
    def zoom_range(self) -> None:
        """Stretch the range over the whole bar."""
        self._model.zoom_axis()
        self.refresh()

    @Slot()
    def autofit(self) -> None:
        """Fit the range to the values, now and after each step."""
        self._model.autofit()
        self.refresh()

    @Slot()
    def reset_range(self) -> None:
        """Use the range 0 to 1, or -1 to 1 where values change sign."""
        self._model.reset_range()
        self.refresh()

    @Slot()
    def cut_percentiles(self) -> None:
        """Exclude the lowest and highest percent of the values from the range."""
        self._model.cut_percentiles()
        self.refresh()

    @Slot(bool)
    def set_symmetric(self, symmetric: bool) -> None:  # noqa: FBT001 - Qt's signal
        """Switch the symmetric range about 0 on or off."""
        self._model.set_symmetric(symmetric)
        self.refresh()

    @Slot(bool)
    def set_log(self, is_log: bool) -> None:  # noqa: FBT001 - Qt's signal
        """Give the colours a logarithmic scale, or a linear one."""
        self._model.set_log(is_log)
        self.refresh()
