"""Which slice of a value is shown: channel, fixed axes, pick and rectangle. No Qt."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import override

from engine.pictures import finite_range, telling_channel
from engine.tensor import Tensor
from kuiper_studio.engine_service.channels import ChannelView
from kuiper_studio.tensor_view.axis_roles import COLORS
from kuiper_studio.tensor_view.complex_parts import Part, part_values
from kuiper_studio.tensor_view.element import subtract
from kuiper_studio.tensor_view.places import Region
from kuiper_studio.tensor_view.reading import Kind
from kuiper_studio.tensor_view.shown_value import ShownValue, clamped

if TYPE_CHECKING:
    from engine.values import Array
    from kuiper_studio.tensor_view.element import Counterpart
    from kuiper_studio.tensor_view.places import Place

__all__ = ["ShownSlice"]


class ShownSlice(ShownValue):
    """The slice of a value that is shown, and that of what is beside it.

    Attributes
    ----------
    channel_reason : str
        Why the channel is shown, where the user chose none: ``most variance``. It is then the
        most telling one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.channel_reason = ""
        self._planes: Array | None = None
        self._plane: tuple[int, Array] | None = None  # with its channel
        self._colors: Array | None = None

    # What is beside it

    def set_counterpart(self, counterpart: Counterpart | None) -> None:
        """Show something beside the value, at the channel that differs most."""
        self.counterpart = counterpart
        self.channel = self._first_channel()

    @property
    def counterpart_names(self) -> tuple[str, str]:
        """Names of both sides, for captions."""
        return self.counterpart.names if self.counterpart is not None else ("", "")

    @property
    def other(self) -> Array | None:
        """The reference's tensor beside the array, if it is there and has the same shape."""
        if self.counterpart is None or self.array is None:
            return None
        theirs = self.counterpart.array
        return theirs if theirs is not None and theirs.shape == self.array.shape else None

    # The chosen place

    def set_fixed(self, position: int, place: int) -> None:
        """Choose the index of one of the reading's fixed axes."""
        axes = list(self.choice.fixed)
        axes[position] = clamped(place, self.reading.fixed[position].size)
        self.choice = replace(self.choice, fixed=tuple(axes))
        self._drop_sample()

    def set_channel(self, channel: int) -> None:
        """Choose a channel."""
        self.channel = clamped(channel, self.reading.channels)
        self.choice = replace(self.choice, channel=self.channel)
        self.channel_reason = ""

    def set_colors(self, colors: tuple[int, int, int]) -> None:
        """Choose the positions of the colour axis that are red, green and blue."""
        axis = self.reading.color_axis
        if axis is not None:
            size = self.reading.shape[axis]
            red, green, blue = (clamped(color, size) for color in colors)
            self.choice = replace(self.choice, colors=(red, green, blue))
            self._drop_sample()

    def set_pick(self, pick: tuple[int, int] | None) -> None:
        """Pick an element by row and column; None for none."""
        if pick is not None:
            rows, columns = self.reading.plane
            pick = clamped(pick[0], rows), clamped(pick[1], columns)
        self.choice = replace(self.choice, pick=pick)

    def set_region(self, region: Region | None) -> None:
        """Choose a rectangle of the picture; None for none."""
        if region is not None:
            is_picture = self.reading.kind is Kind.PLANES
            region = region.within(self.reading.plane) if is_picture else None
        self.choice = replace(self.choice, region=region)

    def set_places(self, places: tuple[Place, ...]) -> bool:
        """Choose an element by its index, or a rectangle by ranges of rows and columns.

        Parameters
        ----------
        places : tuple of int or slice
            One per dimension of the array, within its shape; slices have both ends.

        Returns
        -------
        bool
            As `set_place`.

        Raises
        ------
        ValueError
            In a sentence, if a range is of another dimension.
        """
        is_other = self.set_place(self.check_places(places))
        rows, columns = self.reading.row_axis, self.reading.column_axis
        is_ranged = any(isinstance(place, slice) for place in places)
        if is_ranged and rows is not None and columns is not None:
            (top, bottom), (left, right) = (_ends(places[axis]) for axis in (rows, columns))
            self.set_region(Region(top, left, bottom, right))
        return is_other

    def check_places(self, places: tuple[Place, ...]) -> tuple[int, ...]:
        """Return the first element of an index with ranges; raise as `set_places` does."""
        reading = self.reading
        pictures = reading.kind is Kind.PLANES and self.plan is None
        ranged = {axis for axis, place in enumerate(places) if isinstance(place, slice)}
        if ranged and not pictures:
            raise ValueError("ranges are for pictures that are not folded; name one element")
        if not ranged <= {reading.row_axis, reading.column_axis}:
            pair = f"dimensions {reading.row_axis} and {reading.column_axis}"
            raise ValueError(f"ranges are for rows and columns, {pair}")
        first = tuple([each.start if isinstance(each, slice) else each for each in places])
        if self.plan is not None and self.part_with(first) is None:
            raise ValueError("that element is in no picture; W shows the tensor as it is")
        return first

    def set_place(self, index: tuple[int, ...]) -> bool:
        """Choose an element of the array: its axes, its channel, and the pick.

        Returns
        -------
        bool
            Whether another part of a dimension is shown for it: a class token is beside the
            picture of its grid.
        """
        if self.array is None or len(index) != self.array.ndim or not self.has_picture:
            return False
        is_other = False
        if self.plan is not None:
            part = self.part_with(index)
            is_other = part not in (None, self.parts[1])
            if part is not None and is_other:
                self.set_part(part)
            place = self.plan.place(index)
            if place is None:
                return False
            index = place
        reading = self.reading
        for position, axis in enumerate(reading.fixed):
            if self.choice.fixed[position] != index[axis.axis]:
                self.set_fixed(position, index[axis.axis])
        if reading.channel_axis is not None:
            self.set_channel(index[reading.channel_axis])
        row = index[reading.row_axis] if reading.row_axis is not None else 0
        column = index[reading.column_axis] if reading.column_axis is not None else 0
        self.set_pick((row, column))
        return is_other

    # Complex numbers

    def set_complex_part(self, part: Part) -> None:
        """Choose what is shown of complex numbers, in a range of its own."""
        self.choice = replace(
            self.choice, complex_part=part, range=None, axis=None, symmetric=None
        )
        self._drop_values()
        self._drop_sample()

    @property
    def is_complex(self) -> bool:
        """Whether the numbers are complex."""
        return self.array is not None and self.array.dtype.kind == "c"

    @property
    def shown_part(self) -> Part:
        """What is shown of complex numbers; magnitudes of others are the numbers themselves."""
        return self.choice.complex_part if self.is_complex else Part.MAGNITUDE

    @property
    def _is_phase(self) -> bool:
        return self.shown_part is Part.PHASE

    def _real(self, array: Array) -> Array:
        return part_values(array, self.choice.complex_part)

    # Shown values

    @property
    def planes(self) -> Array:
        """Real values of the chosen sample, shape (C, H, W); a vector's is (1, 1, K)."""
        if self._planes is None:
            self._planes = self._real(self._sample(self.array).data)
        return self._planes

    @property
    def plane(self) -> Array:
        """Real values of the chosen channel, shape (H, W), without gaps in memory."""
        if self._plane is None or self._plane[0] != self.channel:
            self._plane = self.channel, np.ascontiguousarray(self.planes[self.channel])
        return self._plane[1]

    def color_plane(self) -> Array | None:
        """Real values of the chosen channel in red, green and blue, shape (3, H, W).

        None where no axis is shown as colours.
        """
        colors = self._color_planes()
        return colors[:, self.channel] if colors is not None else None

    def _color_planes(self) -> Array | None:
        if self.reading.color_axis is None or self.counterpart is not None:
            return None
        if self._colors is None:
            found = [
                self._real(self._sample(self.array, color).data) for color in range(COLORS)
            ]
            self._colors = np.stack(found)
        return self._colors

    @property
    def raw_plane(self) -> Array:
        """The array's elements of the chosen channel, shape (H, W); a vector's is (K, 1)."""
        return self._as_table(self._slice(self.array)) if self.has_picture else np.zeros((0, 0))

    @property
    def copied(self) -> Array:
        """The array's elements of the rectangle, or of the channel; a vector's is (1, K)."""
        if not self.has_picture:
            return np.zeros((0, 0))
        plane, region = self._slice(self.array), self.choice.region
        return plane[region.slices] if region is not None else plane

    def other_raw_plane(self) -> Array:
        """Return the reference's elements, shaped as `raw_plane`."""
        return self._as_table(self._slice(self.other))

    def raw_difference(self) -> Array:
        """Return the difference from the reference's elements, shaped as `raw_plane`."""
        return self._as_table(self._difference_slice())

    def other_plane(self) -> Array:
        """Return real values of the reference's chosen channel, shape (H, W)."""
        return self._real(self._slice(self.other))

    def difference_plane(self) -> Array:
        """Return the difference of the chosen channel from the reference's, shape (H, W)."""
        return self._real(self._difference_slice())

    def channel_view(self) -> ChannelView | None:
        """Return which channels are looked at beside the reference's; None for none."""
        if self.other is None:
            return None
        fixed = zip(self.reading.fixed, self.choice.fixed, strict=True)
        return self._view_of(self.other, tuple([(axis.axis, place) for axis, place in fixed]))

    def counted_view(self) -> ChannelView | None:
        """Return which channels are counted over all inputs; None for none."""
        if self.array is None or self.reading.kind is not Kind.PLANES:
            return None
        return self._view_of(self.array, ()) if self.reading.channels > 1 else None

    def _view_of(self, array: Array, fixed: tuple[tuple[int, int], ...]) -> ChannelView | None:
        if self.members or self.reading.channel_axis is None:
            return None
        return ChannelView(array.shape, self.reading.channel_axis, fixed, self.plan)

    def _difference_slice(self) -> Array:
        return subtract(self._slice(self.array), self._slice(self.other))

    def _slice(self, array: Array | None) -> Array:
        """Return an array's elements of the chosen channel; a vector's is (1, K)."""
        channel = 0 if self.reading.kind is Kind.VECTOR else self.channel
        return self._sample(array).slice(channel)

    def _as_table(self, plane: Array) -> Array:
        return plane.T if self.reading.kind is Kind.VECTOR else plane

    # Helpers

    @override
    def _adopt_member(self) -> None:
        super()._adopt_member()
        sizes = [axis.size for axis in self.reading.fixed]
        fixed = self.choice.fixed if len(self.choice.fixed) == len(sizes) else (0,) * len(sizes)
        self.choice = replace(self.choice, fixed=tuple(map(clamped, fixed, sizes)))
        if self.choice.pick is not None and self.has_picture:
            self.set_pick(self.choice.pick)
        self.set_region(self.choice.region)
        self._drop_values()
        self._drop_sample()
        self.channel = self._first_channel()

    def _drop_values(self) -> None:
        """Drop what is known of the whole array."""

    def _drop_sample(self) -> None:
        """Drop what is known of the chosen sample."""
        self._planes = self._plane = self._colors = None

    def _first_channel(self) -> int:
        """The channel that was chosen, as far as it is there, or the most telling one."""
        self.channel_reason = ""
        if self.reading.kind is not Kind.PLANES or self.reading.channels == 1:
            return 0
        if self.choice.channel is None:
            worst = self.counterpart.worst if self.counterpart is not None else ()
            axis = self.reading.channel_axis
            if axis is not None and self.array is not None and len(worst) == self.array.ndim:
                place = self.plan.place(worst) if self.plan is not None else worst
                if place is not None:
                    self.channel_reason = "differs most"
                    return place[axis]
            channel = telling_channel(self.planes)
            shown = finite_range(self.planes[channel])
            if shown is not None and shown[0] < shown[1]:  # else all of them are constant
                self.channel_reason = "most variance"
            return channel
        return clamped(self.choice.channel, self.reading.channels)

    def _sample(self, array: Array | None, color: int = 0) -> Tensor:
        """Return a view of the chosen sample as KuiperInfer's channels, rows and cols."""
        if array is None or not self.has_picture:
            return Tensor(np.zeros(0))
        if self.plan is not None:
            own = self._folded if array is self.array else None
            array = self.plan.fold(array) if own is None else own
        reading = self.reading
        chosen: list[int | slice] = [slice(None)] * array.ndim
        for axis, place in zip(reading.fixed, self.choice.fixed, strict=True):
            chosen[axis.axis] = place
        if reading.color_axis is not None:
            size = reading.shape[reading.color_axis]
            chosen[reading.color_axis] = clamped(self.choice.colors[color], size)
        sample = array[tuple(chosen)]
        if reading.kind is not Kind.PLANES:
            return Tensor(sample)
        wanted = [reading.channel_axis, reading.row_axis, reading.column_axis]
        shown = sorted([axis for axis in wanted if axis is not None])
        order = [shown.index(axis) for axis in wanted if axis is not None]
        missing = tuple([place for place, axis in enumerate(wanted) if axis is None])
        return Tensor(np.expand_dims(sample.transpose(order), missing))


def _ends(place: Place) -> tuple[int, int]:
    return (place.start, place.stop) if isinstance(place, slice) else (place, place + 1)
