"""What is measured of a shown value: statistics, and what is special about its channels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QObject, QTimer, Signal, Slot

from kuiper_studio.tensor_view.channel_order import Order
from kuiper_studio.tensor_view.complex_parts import Part
from kuiper_studio.tensor_view.measuring import Answer, What
from kuiper_studio.tensor_view.reading import Kind

if TYPE_CHECKING:
    from engine.comparison import Measures
    from engine.statistics import TensorStatistics
    from engine.values import Array
    from kuiper_studio.engine_service.channel_totals import ChannelTotals
    from kuiper_studio.engine_service.channels import ChannelDistances
    from kuiper_studio.tensor_view.channel_order import ChannelKeys
    from kuiper_studio.tensor_view.element import Counterpart
    from kuiper_studio.tensor_view.pane_parts import PaneParts
    from kuiper_studio.tensor_view.places import Region

__all__ = ["PaneStatistics"]

_SETTLING: Final = 120  # ms


class PaneStatistics(QObject):
    """Measures the tensor, its channels and a rectangle, and shows what it finds.

    Parameters
    ----------
    parts : PaneParts

    Attributes
    ----------
    facts : TensorStatistics or None
        Of the tensor; None while they are measured.

    Signals
    -------
    measured
        The exact range of the tensor is known.
    ordered
        The channels are in another order.
    region_changed
        Another rectangle is chosen, or none.
    special_changed : str, bool
        The number of NaN and infinite values, formatted; whether there are any.
    rested
        The sample has not changed for a moment.
    """

    measured = Signal()
    ordered = Signal()
    region_changed = Signal()
    special_changed = Signal(str, bool)
    rested = Signal()

    def __init__(self, parts: PaneParts, parent: QObject) -> None:
        super().__init__(parent)
        self._parts, self._panel = parts, parts.body.statistics
        self._model, self._measurer = parts.model, parts.measurer
        self.facts: TensorStatistics | None = None
        self._part = Part.MAGNITUDE  # of complex numbers, that the facts are of
        self._distances: ChannelDistances | None = None
        self._difference: tuple[Counterpart, Measures | None] | None = None
        # Channels are measured when the view rests, not at every step of a held key.
        self._settling = QTimer(self, interval=_SETTLING, singleShot=True)
        self._settling.timeout.connect(self._measure_channels)
        self._settling.timeout.connect(self.rested)
        parts.measurer.answered.connect(self._on_answered)
        parts.actions.order_chosen.connect(self._on_order_chosen)
        for canvas in parts.all_canvases:
            canvas.region_chosen.connect(self._on_region_chosen)

    @Slot(object)
    def _on_answered(self, answer: Answer) -> None:
        if answer.what is What.KEYS:
            self._show_keys(answer.result)
        elif answer.what is What.LIKENESS:
            self._show_likeness(answer.result)
        elif answer.what is What.REGION:
            self._tell_region(answer.result)
        elif answer.what is What.CHANNEL:
            self._tell_channel(answer.result)
        elif answer.what is What.DIFFERENCE:
            self._tell_difference(answer.result)
        elif answer.what is What.DISTANCES:
            self.show_distances(answer.result)
        elif answer.what is What.TENSOR:
            self.facts = answer.result
            if self.facts is not None and np.isfinite(self.facts.min):
                self._model.set_measured_range(float(self.facts.min), float(self.facts.max))
            self._tell_tensor()
            self.measured.emit()

    # The tensor and the channel

    def give(self, facts: TensorStatistics | None) -> None:
        """Use statistics of another tensor, of magnitudes; None if they are not known."""
        self.facts, self._part = facts, Part.MAGNITUDE

    def show_tensor(self) -> None:
        """Show the statistics of the tensor, or measure them first."""
        model, part = self._model, self._model.shown_part
        if model.array is None:
            self._measurer.forget(What.TENSOR)
            self.special_changed.emit("", False)  # noqa: FBT003
            return
        is_known = self.facts is not None and self.facts.shape == model.array.shape
        if not is_known or model.members or self._part is not part:
            values = model.array if part is Part.MAGNITUDE else model.all_values()
            self.facts, self._part = self._measurer.ask(What.TENSOR, values), part
        self._tell_tensor()

    def _tell_tensor(self) -> None:
        facts = self.facts
        self._panel.show_tensor(self._title("Tensor"), facts)
        if facts is None:
            self.special_changed.emit("", False)  # noqa: FBT003
            return
        infinite = facts.pinf + facts.ninf
        some = facts.nan + infinite > 0
        self.special_changed.emit(f"NaN {facts.nan} Inf {infinite}", some)

    def _title(self, what: str) -> str:
        """Say also what of complex numbers is measured."""
        return f"{what}, {self._model.shown_part.value}" if self._model.is_complex else what

    def show_channel(self) -> None:
        """Show the statistics of the channel, if it is one of several."""
        model = self._model
        if model.reading.kind is not Kind.PLANES or model.reading.channels == 1:
            self._measurer.forget(What.CHANNEL)
            self._panel.show_channel("", None)
            return
        self._tell_channel(self._measurer.ask(What.CHANNEL, model.plane))

    def _tell_channel(self, facts: TensorStatistics | None) -> None:
        self._panel.show_channel(self._title(f"Channel {self._model.channel}"), facts)

    # The sample

    def begin_sample(self) -> None:
        """Show nothing that was measured of another sample, or that still is."""
        self.forget_distances()
        for what in (What.KEYS, What.LIKENESS):
            self._measurer.forget(what)
        self._show_special()

    def settle(self) -> None:
        """Measure the channels: now if they are ordered by it, or else at rest."""
        self._settling.start()
        if self._model.order is not Order.NUMBER:
            self._measure_channels()

    def forget_distances(self) -> None:
        """Forget how far channels are from what is beside them: it is something else."""
        self._distances = None
        self._measurer.forget(What.DISTANCES)

    # How far it is from what is beside it

    def show_difference(self) -> None:
        """Show how far the tensor is from what is beside it; that of two tabs is measured."""
        model, counterpart = self._model, self._model.counterpart
        measures = counterpart.measures if counterpart is not None else None
        if counterpart is None or measures is not None or model.other is None:
            self._difference = None
            self._measurer.forget(What.DIFFERENCE)
            self._panel.show_difference(measures)
            return
        if self._difference is None or self._difference[0] is not counterpart:
            self._difference = counterpart, None
            assert model.array is not None  # noqa: S101 - it has the shape of the other one
            self._tell_difference(
                self._measurer.compare(What.DIFFERENCE, model.array, model.other)
            )
        else:
            self._panel.show_difference(self._difference[1])

    def _tell_difference(self, measures: Measures | None) -> None:
        if self._difference is not None:
            self._difference = self._difference[0], measures
            self._panel.show_difference(measures)

    def measure_distances(self) -> None:
        """Measure how far each channel is from that of the tab beside it."""
        model, view = self._model, self._model.channel_view()
        if self._distances is not None or not self.has_errors or view is None:
            return
        if model.array is not None and model.other is not None:
            self.show_distances(
                self._measurer.compare(What.DISTANCES, model.array, model.other, view)
            )

    def show_distances(self, distances: ChannelDistances | None) -> None:
        """Show how far each channel is from the reference's; None until that is measured."""
        self._distances = distances
        counterpart, errors = self._model.counterpart, self._parts.tools.errors
        errors.show_distances(distances, counterpart.limit if counterpart is not None else 0.0)
        self.show_channel_distances()

    def show_channel_distances(self) -> None:
        """Show the strip where channels are compared, and the numbers of the shown one."""
        self._parts.tools.show_errors(shown=self.has_errors)
        self._parts.tools.errors.set_chosen(self._model.channel)
        known = self._distances if self.has_errors else None
        self._panel.show_channel_difference(known, self._model.channel)

    @property
    def has_errors(self) -> bool:
        """Whether channels are compared with those of a reference."""
        model = self._model
        counterpart = model.counterpart
        is_measured = counterpart is not None and counterpart.measures is not None
        compared = (is_measured or model.other is not None) and not model.members
        return compared and model.reading.kind is Kind.PLANES and model.reading.channels > 1

    # The order of the channels, and what is special about them

    @Slot(object)
    def _on_order_chosen(self, order: Order) -> None:
        self._model.set_order(order)
        self._measure_channels()
        self._show_order()

    @Slot()
    def _measure_channels(self) -> None:
        """Measure what the channels are ordered by and marked for."""
        model = self._model
        if model.reading.kind is not Kind.PLANES or model.reading.channels == 1:
            self._measurer.forget(What.KEYS)
            self._measurer.forget(What.LIKENESS)
            return
        if model.keys is None:
            self._show_keys(self._measurer.ask(What.KEYS, model.planes))
        if model.order is Order.LIKENESS and not model.is_ordered:
            found = self._measurer.ask(What.LIKENESS, model.planes, channel=model.channel)
            self._show_likeness(found)

    def _show_keys(self, keys: ChannelKeys | None) -> None:
        if keys is not None:
            self._model.set_keys(keys)
            if self._model.is_ordered:
                self._show_order()
        self._show_special()

    def show_totals(self, totals: ChannelTotals | None) -> None:
        """Show what the channels held over all inputs; None while it is not known."""
        self._model.set_totals(totals)
        self._show_special()
        if self._model.over_all:
            self._show_order()

    @Slot(bool)
    def order_over_all(self, checked: bool) -> None:  # noqa: FBT001 - a slot
        """Order channels by their numbers over all inputs that were run, or by those here."""
        self._model.set_over_all(checked)
        self._show_order()

    def _show_special(self) -> None:
        special = self._model.special
        self._parts.body.mosaic.set_special(special)
        self._panel.show_special_channels(special.summary() if special is not None else "")

    def _show_likeness(self, likeness: Array | None) -> None:
        if likeness is not None and self._model.order is Order.LIKENESS:
            self._model.set_likeness(likeness)
            self._show_order()

    def _show_order(self) -> None:
        self.ordered.emit()
        self._parts.actions.show_order(self._model.order)

    # Rectangles

    @Slot(object)
    def _on_region_chosen(self, region: Region) -> None:
        self._model.set_region(region)
        self.show_region()

    @Slot()
    def clear_region(self) -> None:
        """Choose no rectangle."""
        self._model.set_region(None)
        self.show_region()

    def show_region(self) -> None:
        """Frame the chosen rectangle, and show its statistics."""
        region = self._model.choice.region
        for canvas in self._parts.all_canvases:
            canvas.set_region(region)
        if region is None:
            self._measurer.forget(What.REGION)
            self._panel.show_region("", None)
        else:
            values = self._model.plane[region.slices]
            self._tell_region(self._measurer.ask(What.REGION, values))
        self.region_changed.emit()

    def _tell_region(self, facts: TensorStatistics | None) -> None:
        region = self._model.choice.region
        if region is not None:
            rows, columns = region.plane
            self._panel.show_region(self._title(f"Rectangle {rows}×{columns}"), facts)
