"""State of the tensor view: which slice of a value, which range, which map. No Qt.

The view reads the model and changes it by its methods; nothing here paints. Choices of the user
are stored per operand and restored when it is shown again.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
from typing_extensions import override

from engine.pictures import (
    DIVERGING_MAPS,
    LEAST_SPAN,
    default_map,
    finite_range,
    fitted_range,
)
from kuiper_studio.tensor_view.axis_roles import COLORS
from kuiper_studio.tensor_view.channel_pages import RANGE_LIMIT, ChannelPages
from kuiper_studio.tensor_view.choice import DataSetValues, Scope, ValueRange
from kuiper_studio.tensor_view.complex_parts import PHASE_MAP, PHASE_RANGE, Part
from kuiper_studio.tensor_view.element import Element, subtract
from kuiper_studio.tensor_view.facts import percentile_range, thinned
from kuiper_studio.tensor_view.reading import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.values import Array
    from kuiper_studio.tensor_view.element import Counterpart

__all__ = ["TensorViewModel"]

_WINDOW: Final = 0.1  # of the range, about the value under the mouse


class TensorViewModel(ChannelPages):
    """A value and the choices that decide what is shown of it, and in which colours.

    Attributes
    ----------
    data_set : DataSetValues or None
        What the operand held over a data set.
    """

    def __init__(self) -> None:
        super().__init__()
        self._all: Array | None = None
        self._ranged = False
        self._tensor_range: tuple[float, float] | None = None
        self._shared_scope = Scope.TENSOR
        self._wide_ranges: dict[Scope, tuple[float, float]] = {}
        self.data_set: DataSetValues | None = None
        self._plane_ranges: dict[int, tuple[float, float] | None] = {}

    @override
    def set_counterpart(self, counterpart: Counterpart | None) -> None:
        self._plane_ranges.clear()  # they are of both
        super().set_counterpart(counterpart)

    @override
    def forget_choices(self) -> None:
        super().forget_choices()
        self._shared_scope = Scope.TENSOR

    # Choices of range and colours

    def set_map(self, name: str | None) -> None:
        """Choose a colour map; None for automatic."""
        self.choice = replace(self.choice, color_map=name, symmetric=None)

    def set_scope(self, scope: Scope) -> None:
        """Choose the scope of the range, and fit it.

        That of a channel is for this operand, any other for all of them.
        """
        own = scope if scope is Scope.CHANNEL else None
        self.choice = replace(self.choice, scope=own, range=None, axis=None)
        if own is None:
            self._shared_scope = scope
        if scope.is_wide:
            for name, choice in self._choices.items():
                self._choices[name] = replace(choice, scope=None)

    @property
    def needs_wide_ranges(self) -> bool:
        """Whether operands without a scope of their own have one of more than a tensor."""
        return self._shared_scope.is_wide

    def set_wide_ranges(self, ranges: Mapping[Scope, tuple[float, float]]) -> bool:
        """Set the ranges of all that was computed, by scope; return whether they are others."""
        before, self._wide_ranges = self._wide_ranges, dict(ranges)
        return before != self._wide_ranges

    def set_range(self, low: float, high: float) -> None:
        """Set the range; ignored unless `low` is below `high` and both are finite."""
        if self.symmetric:
            # The moved end decides.
            moved = low if low != self.range.low else high
            low, high = -abs(moved), abs(moved)
        finite = math.isfinite(low) and math.isfinite(high)
        if finite and high / 2 - low / 2 >= LEAST_SPAN:
            self.choice = replace(self.choice, range=ValueRange(low, high))

    def set_symmetric(self, symmetric: bool) -> None:  # noqa: FBT001 - from a check box
        """Switch the symmetric range on or off."""
        shown = self.choice.range
        if symmetric and shown is not None:
            shown = ValueRange(*fitted_range(shown.low, shown.high, symmetric=True))
        self.choice = replace(self.choice, symmetric=symmetric, range=shown)

    def set_log(self, is_log: bool) -> None:  # noqa: FBT001 - from a menu
        """Give the colours a logarithmic scale, or a linear one."""
        self.choice = replace(self.choice, is_log=is_log)

    def autofit(self) -> None:
        """Fit the range to the values, now and whenever they change."""
        self.choice = replace(self.choice, range=None, axis=None)

    def reset_range(self) -> None:
        """Show 0 to 1, or −1 to 1 where values change sign."""
        low = -1.0 if self.signed or self.symmetric else 0.0
        self.choice = replace(self.choice, range=ValueRange(low, 1.0), axis=None)

    def zoom_axis(self) -> None:
        """Stretch the current range over the whole bar."""
        self.choice = replace(self.choice, range=self.range, axis=self.range)

    def cut_percentiles(self) -> None:
        """Exclude the lowest and the highest percent of the values from the range."""
        found = percentile_range(self.scoped_values())
        if found is not None:
            low, high = fitted_range(*found, symmetric=self.symmetric)
            self.choice = replace(self.choice, range=ValueRange(low, high), axis=None)

    # Values that the range is of

    def scoped_values(self) -> Array:
        """Real values that the range is fitted to."""
        if self.scope is Scope.CHANNEL and self.reading.kind is Kind.PLANES:
            return self.plane
        return self.all_values()

    def other_values(self) -> Array | None:
        """Real values of the reference in the scope of the range; None where there is none."""
        if self.other is None:
            return None
        is_channel = self.scope is Scope.CHANNEL and self.reading.kind is Kind.PLANES
        return self.other_plane() if is_channel else self._real(self.other)

    def all_values(self) -> Array:
        """Real values of the whole array."""
        if self.array is None:
            return np.empty(0)
        if self._all is None:
            self._all = self._real(self.array)
        return self._all

    # Range and colours

    @property
    def scope(self) -> Scope:
        """The scope of the range."""
        return self.choice.scope or self._shared_scope

    @property
    def tensor_range(self) -> tuple[float, float] | None:
        """Least and greatest finite value of the array; None where nothing is finite.

        Those of two arrays that are compared, while one of them is shown.
        """
        if self.shared_range is not None and self.shown_part is Part.MAGNITUDE:
            return self.shared_range
        if not self._ranged:
            self._tensor_range = finite_range(thinned(self.all_values(), RANGE_LIMIT))
            self._ranged = True
        return self._tensor_range

    def set_measured_range(self, low: float, high: float) -> None:
        """Set the exact range of the array, which replaces an estimate."""
        self._tensor_range = low, high
        self._ranged = True

    @property
    def data_range(self) -> tuple[float, float] | None:
        """Least and greatest finite value of the scope of the range."""
        if self.scope is Scope.CHANNEL and self.reading.kind is Kind.PLANES:
            channel = self.channel
            if channel not in self._plane_ranges:
                shown = [self.plane] if self.other is None else [self.plane, self.other_plane()]
                found = [each for each in map(finite_range, shown) if each is not None]
                lows, highs = zip(*found, strict=True) if found else ((), ())
                self._plane_ranges[channel] = (min(lows), max(highs)) if found else None
            return self._plane_ranges[channel]
        return self._mapped_range

    @property
    def _mapped_range(self) -> tuple[float, float] | None:
        """Range by which the colour map is chosen: of the array, or of a wider scope."""
        own, wide = self.tensor_range, self._wide_ranges.get(self.scope)
        if own is None or wide is None:
            return own
        return min(own[0], wide[0]), max(own[1], wide[1])

    @property
    def signed(self) -> bool:
        """Whether there are values of both signs."""
        used = self._mapped_range
        return used is not None and used[0] < 0 < used[1]

    @property
    def color_map(self) -> str:
        """Name of the colour map; three colours are each from black to full."""
        if self.reading.color_axis is not None:
            return "grey"
        if self._is_phase and self.choice.color_map is None:
            return PHASE_MAP
        return self.choice.color_map or default_map(*(self._mapped_range or (0.0, 1.0)))

    @property
    def symmetric(self) -> bool:
        """Whether the range is symmetric about zero; by default for diverging maps."""
        if self.choice.symmetric is not None:
            return self.choice.symmetric
        if self.reading.color_axis is not None:
            return self.signed
        return self.color_map in DIVERGING_MAPS

    @property
    def range(self) -> ValueRange:
        """The current range."""
        if self.choice.range is not None:
            return self.choice.range
        if self._is_phase:
            return ValueRange(*PHASE_RANGE)
        return ValueRange(*self._fit(*(self.data_range or (0.0, 1.0))))

    def _fit(self, low: float, high: float) -> tuple[float, float]:
        """Return the range that shows values from `low` to `high` of the shown dtype."""
        kind = self.array.dtype.kind if self.array is not None else "f"
        return fitted_range(low, high, symmetric=self.symmetric, kind=kind)

    def window_about(self, value: float) -> tuple[float, float] | None:
        """Return the tenth of the range about a value, to tell it from others near it.

        None where the value is not finite or there is no range.
        """
        used = self.range
        half = _WINDOW * (used.high / 2 - used.low / 2)
        low, high = value - half, value + half
        is_finite = math.isfinite(low) and math.isfinite(high)
        return (low, high) if is_finite and self.data_range is not None and low < high else None

    @property
    def axis(self) -> ValueRange:
        """The axis of the range bar: data, data set and range, unless it was zoomed."""
        used = self.range
        if self.choice.axis is not None:
            shown = self.choice.axis
        else:
            low, high = self.data_range or (used.low, used.high)
            if self.data_set is not None:
                low, high = min(low, self.data_set.low), max(high, self.data_set.high)
            shown = ValueRange(*fitted_range(low, high))
        return ValueRange(min(shown.low, used.low), max(shown.high, used.high))

    def page_range(self) -> tuple[float | Array, float | Array]:
        """Range of the tiles of the page: one for all, or one per channel."""
        if self.scope is not Scope.CHANNEL or self.choice.range is not None or self._is_phase:
            return self.range.low, self.range.high
        facts = self.page_facts()
        pairs = [
            self._fit(low, high) if math.isfinite(low) else (0.0, 1.0)
            for low, high in zip(facts.low.tolist(), facts.high.tolist(), strict=True)
        ]
        ends = np.array(pairs)[:, :, None, None]
        return ends[:, 0], ends[:, 1]

    def difference_range(self) -> ValueRange:
        """Return the range of the difference, with zero in the middle."""
        largest = self.counterpart.largest if self.counterpart is not None else 0.0
        if self.scope is Scope.CHANNEL or not math.isfinite(largest):
            found = finite_range(self.difference_plane())
            largest = max(map(abs, found)) if found is not None else 0.0
        return ValueRange(*fitted_range(0.0, largest, symmetric=True))

    # Elements

    def element(self, row: int, column: int, channel: int | None = None) -> Element | None:
        """Return the element at a position of a picture, by default of the chosen channel."""
        rows, columns = self.reading.plane
        if self.array is None or not self.has_picture:
            return None
        if not (0 <= row < rows and 0 <= column < columns):
            return None
        channel = self.channel if channel is None else channel
        index, *others = [
            self._array_index(channel, row, column, color)
            for color in self.choice.colors[: COLORS if self.is_colored else 1]
        ]
        value, own, compared = self.array[index], "", ""
        pairs = zip(("green", "blue"), others, strict=False)
        colored = "".join([f", {name} {self.array[each]!s}" for name, each in pairs])
        if self.other is not None and self.counterpart is not None:
            theirs = self.other[index]
            distance = subtract(value, theirs)
            own, name = self.counterpart.names
            compared = f", {name} {theirs!s}, difference {distance:+.6g}"
        axis = self.label_axis
        labelled = axis is not None and index[axis] < len(self.labels)
        return Element(
            index,
            value,
            str(value),
            own=own,
            compared=compared,
            colored=colored,
            label=self.labels[index[axis]] if axis is not None and labelled else "",
            meant=self.scales.describe(index, self.array) if self.scales is not None else "",
        )

    def _array_index(self, channel: int, row: int, column: int, color: int) -> tuple[int, ...]:
        index = self.reading.index(self.choice.fixed, channel, row, column, color)
        return self.plan.index(index) if self.plan is not None else index

    @property
    def is_colored(self) -> bool:
        """Whether three positions of an axis are shown as one colour."""
        return self.reading.color_axis is not None and self.counterpart is None

    def picked(self) -> Element | None:
        """The picked element."""
        return self.element(*self.choice.pick) if self.choice.pick is not None else None

    # Helpers

    @override
    def _drop_values(self) -> None:
        super()._drop_values()
        self._all, self._ranged = None, False

    @override
    def _drop_sample(self) -> None:
        super()._drop_sample()
        self._plane_ranges.clear()
