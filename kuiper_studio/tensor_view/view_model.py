"""State of the tensor view: which slice of a value, which range, which map. No Qt.

The view reads the model and changes it by its methods; nothing here paints. Choices of the user
are stored per operand and restored when it is shown again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from typing_extensions import override

from engine.pictures import (
    DIVERGING_MAPS,
    LEAST_SPAN,
    default_map,
    finite_range,
    fitted_range,
    telling_channel,
)
from engine.tensor import Tensor
from engine.text import format_count, format_dtype, format_shape
from engine.values import flatten_value
from kuiper_studio.engine_service.channels import ChannelView
from kuiper_studio.tensor_view.axis_roles import (
    COLORS,
    AxisRole,
    Roles,
    ShownAxis,
    are_possible,
    offered_roles,
    read_roles,
    roles_of,
    swap_roles,
    with_role,
)
from kuiper_studio.tensor_view.channel_order import (
    ChannelKeys,
    Order,
    SpecialChannels,
    descending,
    keys_over_all,
)
from kuiper_studio.tensor_view.complex_parts import PHASE_MAP, PHASE_RANGE, Part, part_values
from kuiper_studio.tensor_view.facts import (
    ChannelFacts,
    channel_facts,
    percentile_range,
    thinned,
)
from kuiper_studio.tensor_view.places import Region
from kuiper_studio.tensor_view.reading import Kind, Reading, read_plan, read_shape

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.axes import Layout, ViewPlan
    from engine.comparison import Measures
    from engine.values import Array, Value
    from kuiper_studio.engine_service.channel_totals import ChannelTotals
    from kuiper_studio.tensor_view.places import Place

__all__ = [
    "PAGE_SIZE",
    "Choice",
    "Counterpart",
    "Element",
    "Scope",
    "TensorViewModel",
    "ValueRange",
    "subtract",
]

PAGE_SIZE: Final = 256
# Beyond this many elements the range comes from evenly spaced ones until the exact one is
# measured.
_RANGE_LIMIT: Final = 1 << 18
_WINDOW: Final = 0.1  # of the range, about the value under the mouse


class Scope(Enum):
    """The values that an automatic range is fitted to."""

    CHANNEL = "this channel"
    TENSOR = "this tensor"
    TYPE = "this type"
    RUN = "the whole run"

    @property
    def is_wide(self) -> bool:
        """Whether it is of more than the shown tensor."""
        return self in {Scope.TYPE, Scope.RUN}


@dataclass(frozen=True, slots=True)
class ValueRange:
    """The values at the two ends of a colour map; `low` is below `high`."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Choice:
    """The user's choices for one operand; None means automatic.

    Attributes
    ----------
    member : int
        Of a tuple.
    fixed : tuple of int
        Indexes of the fixed axes.
    channel : int or None
    pick : (int, int) or None
        Row and column of the picked element.
    region : Region or None
        Rectangle of a picture whose statistics are shown.
    color_map : str or None
    scope : Scope or None
        None where all operands share a scope.
    range, axis : ValueRange or None
        Range of the colours, and axis of the range bar.
    symmetric : bool or None
        Whether the range is symmetric about zero.
    complex_part : Part
        What is shown of complex numbers.
    is_log : bool
        Whether colours have a logarithmic scale.
    channels_last : bool
        Whether the last dimension is read as the channel.
    folded : bool
        Whether positions are folded to pictures, where the layout says how.
    part : int
        Which of the parts that one dimension joins is folded; -1 for the first grid.
    colors : (int, int, int)
        Positions of the colour axis that are red, green and blue.
    """

    member: int = 0
    fixed: tuple[int, ...] = ()
    channel: int | None = None
    pick: tuple[int, int] | None = None
    region: Region | None = None
    color_map: str | None = None
    scope: Scope | None = None
    range: ValueRange | None = None
    axis: ValueRange | None = None
    symmetric: bool | None = None
    is_log: bool = False
    complex_part: Part = Part.MAGNITUDE
    channels_last: bool = False
    folded: bool = True
    part: int = -1
    colors: tuple[int, int, int] = (0, 1, 2)


@dataclass(frozen=True, slots=True)
class Element:
    """One element of a tensor.

    Attributes
    ----------
    index : tuple of int
        Into the array.
    value : generic
        The array's element.
    text : str
        `value` in full precision.
    color : str
        Its colour in the picture, ``#RRGGBB``; ``""`` if it is not painted.
    own : str
        Whose `value` is, where both sides are shown; else ``""``.
    compared : str
        The other side's element and the difference, where both sides are shown; else ``""``.
    colored : str
        The elements that are green and blue beside it; ``""`` where none are.
    """

    index: tuple[int, ...]
    value: Any
    text: str
    color: str = ""
    own: str = ""
    compared: str = ""
    colored: str = ""

    @override
    def __str__(self) -> str:
        """Index and value, as the status bar shows them."""
        place = f"[{', '.join(map(str, self.index))}]"
        own = f"{self.own} " if self.own else ""
        return f"{place} {own}{self.text}{self.colored}{self.compared}"


@dataclass(frozen=True, slots=True, eq=False)
class Counterpart:
    """What a value is compared with, while both are shown.

    Attributes
    ----------
    array : ndarray or None
        The reference's tensor, of the same shape; None while it is fetched.
    measures : Measures or None
        How far the value is from it; None where it is no reference.
    worst : tuple of int
        Index of that element, where the tensors differ by more than rounding; else empty.
    limit : float
        Difference up to which elements count as equal.
    largest : float
        Largest absolute difference; infinite where the channels give the range themselves.
    names : (str, str)
        Of the value and of what is beside it, as an element's text has them.
    """

    array: Array | None
    measures: Measures | None = None
    worst: tuple[int, ...] = ()
    limit: float = 0.0
    largest: float = math.inf
    names: tuple[str, str] = ("ours", "reference")


class TensorViewModel:
    """A value and the choices that decide what is shown of it.

    Attributes
    ----------
    name : str
        Of the operand.
    value : Value
        The whole value.
    array : ndarray or None
        The value, or the chosen member of a tuple; None if that is not an array.
    layout : Layout or None
        What the dimensions of the array mean, if that is known.
    plan : ViewPlan or None
        How the array is folded; None if it is shown as it is.
    reading : Reading
        Of the folded array.
    choice : Choice
    channel : int
        The one that is shown; the most telling one where the user chose none.
    channel_reason : str
        Why it is shown, where the user chose none: ``most variance``.
    counterpart : Counterpart or None
        What is shown beside the array.
    order : Order
        Of the channels, for all operands.
    keys : ChannelKeys or None
        Of the shown channels; None while they are measured.
    over_all : bool
        Whether channels are ordered by their numbers over all inputs that were run, as far as
        these are known.
    """

    def __init__(self) -> None:
        self._choices: dict[str, Choice] = {}
        self._roles: dict[str, Roles] = {}  # the user's, by the meaning of the axes
        self._usual = Reading(Kind.TEXT, ())  # of the folded array, without the user's roles
        self.name = ""
        self.value: Value = None
        self._expression = ""
        self.array: Array | None = None
        self.layout: Layout | None = None
        self.plan: ViewPlan | None = None
        self._possible: ViewPlan | None = None
        self._folded: Array | None = None
        self.reading = Reading(Kind.TEXT, ())
        self.choice = Choice()
        self.channel = 0
        self.channel_reason = ""
        self._members: tuple[Value, ...] = ()
        self._all: Array | None = None
        self._ranged = False
        self._tensor_range: tuple[float, float] | None = None
        self._shared_range: tuple[float, float] | None = None
        self._shared_scope = Scope.TENSOR
        self._wide_ranges: dict[Scope, tuple[float, float]] = {}
        self.counterpart: Counterpart | None = None
        self._planes: Array | None = None
        self._colors: Array | None = None
        self._plane_ranges: dict[int, tuple[float, float] | None] = {}
        self._facts: tuple[int, ChannelFacts] | None = None
        self._estimated = False
        self.order = Order.NUMBER
        self.keys: ChannelKeys | None = None
        self.over_all = False
        self._totals: tuple[ChannelTotals, ChannelKeys] | None = None
        self._sequence: Array | None = None  # the channels as they are ordered
        self._page_planes: tuple[int, Array] | None = None

    # The value

    def set_value(
        self,
        name: str,
        value: Value,
        expression: str = "",
        shared_range: tuple[float, float] | None = None,
        counterpart: Counterpart | None = None,
        layout: Layout | None = None,
    ) -> None:
        """Show a value, with the earlier choices for its name as far as they fit.

        Parameters
        ----------
        name : str
        value : Value
        expression : str, optional
            Gives the value in Python; by default that of an operand.
        shared_range : tuple of float, optional
            Least and greatest value of all that is compared, instead of this value's own.
        counterpart : Counterpart, optional
            What is shown beside it.
        layout : Layout, optional
            What the dimensions mean; ignored where it has another shape.
        """
        self.counterpart = counterpart
        self.layout = layout
        self._shared_range = shared_range
        self._expression = expression or f"session.tensors.value({name!r})"
        self._choices[self.name] = self.choice
        self.name, self.value = name, value
        self._members = tuple(flatten_value(value))
        self.choice = self._choices.get(name, Choice())
        self._adopt_member()

    def set_counterpart(self, counterpart: Counterpart | None) -> None:
        """Show something beside the value, at the channel that differs most."""
        self.counterpart = counterpart
        self._plane_ranges.clear()  # they are of both
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

    def set_layout(self, layout: Layout | None) -> bool:
        """Set what the dimensions mean; return whether that shows the value in another way."""
        self.layout = layout
        if self.array is None or self._find_plan(self.array) == self._possible:
            return False
        self._adopt_member()
        return True

    def forget_choices(self) -> None:
        """Forget the choices for all operands."""
        self._choices.clear()
        self.choice = Choice()
        self._shared_scope = Scope.TENSOR

    def remembered(self, name: str) -> Choice | None:
        """Return the choices for an operand, if it has been shown."""
        return self.choice if name == self.name else self._choices.get(name)

    @property
    def members(self) -> int:
        """Number of members of a tuple, including nested ones; 0 if it is not a tuple."""
        return len(self._members) if isinstance(self.value, tuple) else 0

    @property
    def member_value(self) -> Value:
        """The value, or the chosen member of a tuple."""
        if not isinstance(self.value, tuple):
            return self.value
        return self._members[self.choice.member] if self._members else ()

    @property
    def has_picture(self) -> bool:
        """Whether there are values with a range."""
        return self.reading.kind in {Kind.PLANES, Kind.VECTOR, Kind.NUMBER}

    @property
    def has_channels(self) -> bool:
        """Whether the channel dimension makes a difference."""
        return self.has_picture and self.array is not None and self.array.ndim > 2

    @property
    def is_channels_last(self) -> bool:
        """Whether the last dimension is read as the channel."""
        return self.choice.channels_last and self.has_channels

    def describe(self) -> str:
        """Describe shape and dtype: ``1×64×56×56 f32``."""
        prefix = f"[{self.choice.member}] " if self.members else ""
        if self.array is None:
            return prefix + type(self.member_value).__name__
        return f"{prefix}{format_shape(self.array.shape)} {format_dtype(self.array.dtype)}"

    def describe_axes(self) -> str:
        """Describe what the dimensions mean: ``class + 7×7 tokens × features``."""
        if self.array is None or self.layout is None or self.layout.shape != self.array.shape:
            return ""
        return self.layout.text()

    @property
    def can_fold(self) -> bool:
        """Whether the layout says how to fold positions to pictures."""
        return self._possible is not None

    # Choices

    def set_member(self, member: int) -> None:
        """Choose a member of a tuple."""
        self.choice = replace(self.choice, member=_clamped(member, max(1, self.members)))
        self._adopt_member()

    def set_channels_last(self, channels_last: bool) -> None:  # noqa: FBT001 - from a menu
        """Set the channel dimension: the last one, or the one before rows and columns."""
        self.choice = replace(
            self.choice, channels_last=channels_last, fixed=(), channel=None, pick=None,
            region=None,
        )  # fmt: skip
        if channels_last:
            self._roles.pop(self.meaning, None)
        self._adopt_member()

    def set_folded(self, folded: bool) -> None:  # noqa: FBT001 - from a menu
        """Fold positions to pictures, or show the array as it is."""
        self.choice = replace(
            self.choice, folded=folded, part=-1, channels_last=False, fixed=(), channel=None,
            pick=None, region=None,
        )  # fmt: skip
        self._adopt_member()

    # The roles of the axes

    @property
    def meaning(self) -> str:
        """What the user's roles are remembered by: the axes in words, or else the operand."""
        if self.plan is not None:
            words = " × ".join([role.name for role in self.plan.roles])
        else:
            words = self.describe_axes() or self.name
        return f"{len(self.reading.shape)} axes: {words}"

    @property
    def roles(self) -> Roles:
        """Where each axis of the folded array goes."""
        return roles_of(self.reading)

    @property
    def has_own_roles(self) -> bool:
        """Whether the user has chosen where the axes go."""
        return self.roles != roles_of(self._usual)

    @property
    def chosen_roles(self) -> Mapping[str, Roles]:
        """The roles that the user has chosen, by the meaning of the axes."""
        return self._roles

    def restore_roles(self, roles: Mapping[str, Roles]) -> bool:
        """Restore roles; return whether the value is shown in another way."""
        before, self._roles = self.roles, dict(roles)
        self._adopt_member()
        return self.roles != before

    def axes(self) -> tuple[ShownAxis, ...]:
        """Return the axes that are longer than 1, in their order."""
        if not self.has_picture:
            return ()
        reading, roles = self.reading, self.roles
        places = self._places()
        return tuple(
            [
                ShownAxis(
                    axis, name, size, roles[axis], places.get(axis, 0),
                    offered_roles(roles, reading.shape, axis),
                )
                for axis, (name, size) in enumerate(
                    zip(self._axis_names(), reading.shape, strict=True)
                )
                if size > 1
            ]
        )  # fmt: skip

    def set_role(self, axis: int, role: AxisRole) -> None:
        """Choose where an axis goes; the one that was there takes its place."""
        self._set_roles(with_role(self.roles, axis, role))

    def swap_axes(self, one: int, other: int) -> None:
        """Exchange where two axes go."""
        self._set_roles(swap_roles(self.roles, one, other))

    def reset_roles(self) -> None:
        """Show the axes as they are by default."""
        self._set_roles(roles_of(self._usual))

    def set_colors(self, colors: tuple[int, int, int]) -> None:
        """Choose the positions of the colour axis that are red, green and blue."""
        axis = self.reading.color_axis
        if axis is not None:
            size = self.reading.shape[axis]
            red, green, blue = (_clamped(color, size) for color in colors)
            self.choice = replace(self.choice, colors=(red, green, blue))
            self._drop_sample()

    @property
    def parts(self) -> tuple[tuple[str, ...], int]:
        """Words of the parts that one dimension joins, and which of them is folded."""
        if self.plan is None or self.layout is None:
            return (), -1
        from engine.axes import parts_of

        parts, first = parts_of(self.layout)
        chosen = self.choice.part
        return tuple([part.text() for part in parts]), chosen if chosen >= 0 else first

    def set_part(self, part: int) -> None:
        """Choose which part is folded: a class token, or the grid."""
        self.choice = replace(
            self.choice, part=part, fixed=(), channel=None, pick=None, region=None
        )
        self._adopt_member()

    def _set_roles(self, roles: Roles) -> None:
        if roles == self.roles or not are_possible(roles, self.reading.shape):
            return
        places = self._places()
        usual = roles == roles_of(self._usual)
        self._roles.pop(self.meaning, None)
        if not usual:
            self._roles[self.meaning] = roles
        sliders = [axis for axis, role in enumerate(roles) if role is AxisRole.SLIDER]
        facet = roles.index(AxisRole.FACET) if AxisRole.FACET in roles else -1
        self.choice = replace(
            self.choice,
            fixed=tuple([places.get(axis, 0) for axis in sliders]),
            channel=places.get(facet),
            pick=None,
            region=None,
        )
        self._adopt_member()

    def _places(self) -> dict[int, int]:
        """Return the chosen indexes of the axes of which one is chosen."""
        reading = self.reading
        chosen = zip(reading.fixed, self.choice.fixed, strict=True)
        places = {axis.axis: place for axis, place in chosen}
        if reading.channel_axis is not None:
            places[reading.channel_axis] = self.channel
        return places

    def _axis_names(self) -> tuple[str, ...]:
        """Return what the axes of the folded array are."""
        if self.plan is not None:
            return tuple([role.name for role in self.plan.roles])
        names = self._usual.names
        if self.array is None or self.layout is None or self.layout.shape != self.array.shape:
            return names
        pairs = zip(self.layout.axes, names, strict=True)
        return tuple([axis.text() if axis.is_named else name for axis, name in pairs])

    def set_fixed(self, position: int, place: int) -> None:
        """Choose the index of one of the reading's fixed axes."""
        axes = list(self.choice.fixed)
        axes[position] = _clamped(place, self.reading.fixed[position].size)
        self.choice = replace(self.choice, fixed=tuple(axes))
        self._drop_sample()

    def set_channel(self, channel: int) -> None:
        """Choose a channel."""
        self.channel = _clamped(channel, self.reading.channels)
        self.choice = replace(self.choice, channel=self.channel)
        self.channel_reason = ""

    def set_pick(self, pick: tuple[int, int] | None) -> None:
        """Pick an element by row and column; None for none."""
        if pick is not None:
            rows, columns = self.reading.plane
            pick = _clamped(pick[0], rows), _clamped(pick[1], columns)
        self.choice = replace(self.choice, pick=pick)

    def set_region(self, region: Region | None) -> None:
        """Choose a rectangle of the picture; None for none."""
        if region is not None:
            is_picture = self.reading.kind is Kind.PLANES
            region = region.within(self.reading.plane) if is_picture else None
        self.choice = replace(self.choice, region=region)

    def set_places(self, places: tuple[Place, ...]) -> None:
        """Choose an element by its index, or a rectangle by ranges of rows and columns.

        Parameters
        ----------
        places : tuple of int or slice
            One per dimension of the array, within its shape; slices have both ends.

        Raises
        ------
        ValueError
            In a sentence, if a range is of another dimension.
        """
        self.set_place(self.check_places(places))
        rows, columns = self.reading.row_axis, self.reading.column_axis
        is_ranged = any(isinstance(place, slice) for place in places)
        if is_ranged and rows is not None and columns is not None:
            (top, bottom), (left, right) = (_ends(places[axis]) for axis in (rows, columns))
            self.set_region(Region(top, left, bottom, right))

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
        if self.plan is not None and self.plan.place(first) is None:
            raise ValueError("that element is in no picture; W shows the tensor as it is")
        return first

    def set_place(self, index: tuple[int, ...]) -> None:
        """Choose an element of the array: its axes, its channel, and the pick."""
        reading = self.reading
        if self.array is None or len(index) != self.array.ndim or not self.has_picture:
            return
        if self.plan is not None:
            place = self.plan.place(index)
            if place is None:  # such as a class token, which is in no picture
                return
            index = place
        for position, axis in enumerate(reading.fixed):
            if self.choice.fixed[position] != index[axis.axis]:
                self.set_fixed(position, index[axis.axis])
        if reading.channel_axis is not None:
            self.set_channel(index[reading.channel_axis])
        row = index[reading.row_axis] if reading.row_axis is not None else 0
        column = index[reading.column_axis] if reading.column_axis is not None else 0
        self.set_pick((row, column))

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

    def set_complex_part(self, part: Part) -> None:
        """Choose what is shown of complex numbers, in a range of its own."""
        self.choice = replace(
            self.choice, complex_part=part, range=None, axis=None, symmetric=None
        )
        self._all, self._ranged = None, False
        self._drop_sample()

    @property
    def is_complex(self) -> bool:
        """Whether the numbers are complex."""
        return self.array is not None and self.array.dtype.kind == "c"

    @property
    def _is_phase(self) -> bool:
        return self.is_complex and self.choice.complex_part is Part.PHASE

    def _real(self, array: Array) -> Array:
        return part_values(array, self.choice.complex_part)

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

    # Shown values

    @property
    def planes(self) -> Array:
        """Real values of the chosen sample, shape (C, H, W); a vector's is (1, 1, K)."""
        if self._planes is None:
            data = self._sample(self.array).data
            if self.is_channels_last or self.has_own_roles:  # each channel is measured alone
                data = np.ascontiguousarray(data)
            self._planes = self._real(data)
        return self._planes

    @property
    def plane(self) -> Array:
        """Real values of the chosen channel, shape (H, W)."""
        plane: Array = self.planes[self.channel]
        return plane

    def color_plane(self) -> Array | None:
        """Real values of the chosen channel in red, green and blue, shape (3, H, W).

        None where no axis is shown as colours.
        """
        colors = self._color_planes()
        return colors[:, self.channel] if colors is not None else None

    def page_color_planes(self) -> Array | None:
        """Real values of the channels of the page in three colours, shape (3, C, H, W)."""
        colors = self._color_planes()
        return colors[:, self.page_channels()] if colors is not None else None

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

    def difference_range(self) -> ValueRange:
        """Return the range of the difference, with zero in the middle."""
        largest = self.counterpart.largest if self.counterpart is not None else 0.0
        if self.scope is Scope.CHANNEL or not math.isfinite(largest):
            found = finite_range(self.difference_plane())
            largest = max(map(abs, found)) if found is not None else 0.0
        return ValueRange(*fitted_range(0.0, largest, symmetric=True))

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

    # The order of the channels

    def set_order(self, order: Order) -> None:
        """Order the channels; by number until their keys are known."""
        self.order = order
        self._follow_keys()

    def set_keys(self, keys: ChannelKeys) -> None:
        """Set what was measured of the channels."""
        self.keys = keys
        self._follow_keys()

    def set_totals(self, totals: ChannelTotals | None) -> None:
        """Set what the channels held over all inputs; None for what is not known."""
        fits = totals is not None and len(totals.low) == self.reading.channels
        self._totals = (totals, keys_over_all(totals)) if totals is not None and fits else None
        if self.over_all and self.order is not Order.LIKENESS:
            self._follow_keys()

    def set_over_all(self, over_all: bool) -> None:  # noqa: FBT001 - from a menu
        """Order by numbers over all inputs, or by those of the shown one."""
        self.over_all = over_all
        if self.order is not Order.LIKENESS:
            self._follow_keys()

    @property
    def special(self) -> SpecialChannels | None:
        """What is special about the channels; None while they are measured."""
        if self.keys is None:
            return None
        totals, over_all = self._totals if self._totals is not None else (None, None)
        return SpecialChannels(self.keys, over_all, totals)

    def set_likeness(self, likeness: Array) -> None:
        """Order the channels by their likeness to one of them."""
        self._arrange(descending(likeness))

    def _follow_keys(self) -> None:
        keys = self._totals[1] if self.over_all and self._totals is not None else self.keys
        if self.order is Order.NUMBER or keys is None or self.order is Order.LIKENESS:
            self._arrange(None)
        else:
            self._arrange(keys.sequence(self.order))

    @property
    def order_text(self) -> str:
        """What the channels are ordered by, in words; ``""`` for their number."""
        if not self.is_ordered:
            return ""
        if not self.over_all or self._totals is None or self.order is Order.LIKENESS:
            return self.order.value
        return f"{self.order.value} in {format_count(self._totals[0].inputs, 'input')}"

    def _arrange(self, sequence: Array | None) -> None:
        self._sequence = sequence
        self._page_planes = self._facts = None

    @property
    def is_ordered(self) -> bool:
        """Whether the channels are in another order than that of their numbers."""
        return self._sequence is not None

    @property
    def place(self) -> int:
        """Place of the chosen channel in the order."""
        if self._sequence is None:
            return self.channel
        return int(np.flatnonzero(self._sequence == self.channel)[0])

    def channel_in_place(self, place: int) -> int:
        """Return the channel at a place in the order, the nearest one that there is."""
        place = _clamped(place, self.reading.channels)
        return place if self._sequence is None else int(self._sequence[place])

    @property
    def page(self) -> int:
        """Number of the page with the chosen channel."""
        return self.place // PAGE_SIZE

    def page_channels(self) -> Array:
        """Numbers of the channels of the page, in order."""
        first = self.page * PAGE_SIZE
        last = min(first + PAGE_SIZE, self.reading.channels)
        return np.arange(first, last) if self._sequence is None else self._sequence[first:last]

    @property
    def pages(self) -> int:
        """Number of pages of channels."""
        return -(-self.reading.channels // PAGE_SIZE)

    def page_planes(self) -> Array:
        """Real values of the channels of the page, shape (at most 256, H, W)."""
        first = self.page * PAGE_SIZE
        if self._sequence is None:
            return self.planes[first : first + PAGE_SIZE]
        if self._page_planes is None or self._page_planes[0] != self.page:
            self._page_planes = self.page, self.planes[self.page_channels()]
        return self._page_planes[1]

    def page_facts(self) -> ChannelFacts:
        """Ranges and special values of the channels of the page; see `page_is_estimated`."""
        if self._facts is None or self._facts[0] != self.page:
            planes = self.page_planes()
            apart = math.ceil(math.sqrt(planes.size / _RANGE_LIMIT)) or 1
            self._facts = self.page, channel_facts(planes[:, ::apart, ::apart])
            self._estimated = apart > 1
        return self._facts[1]

    @property
    def page_is_estimated(self) -> bool:
        """Whether `page_facts` are estimated from some elements."""
        return self._facts is not None and self._facts[0] == self.page and self._estimated

    def set_page_facts(self, facts: ChannelFacts) -> None:
        """Set the exact facts of the page's channels."""
        self._facts, self._estimated = (self.page, facts), False

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
        if self._shared_range is not None:
            return self._shared_range
        if not self._ranged:
            self._tensor_range = finite_range(thinned(self.all_values(), _RANGE_LIMIT))
            self._ranged = True
        return self._tensor_range

    def set_measured_range(self, low: float, high: float) -> None:
        """Set the exact range of the array, which replaces an estimate."""
        if self.is_complex and self.choice.complex_part is not Part.MAGNITUDE:
            return  # magnitudes were measured
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
        return ValueRange(
            *fitted_range(*(self.data_range or (0.0, 1.0)), symmetric=self.symmetric)
        )

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
        """The axis of the range bar: data and range, unless it was zoomed."""
        used = self.range
        if self.choice.axis is not None:
            shown = self.choice.axis
        else:
            low, high = fitted_range(*(self.data_range or (used.low, used.high)))
            shown = ValueRange(low, high)
        return ValueRange(min(shown.low, used.low), max(shown.high, used.high))

    def page_range(self) -> tuple[float | Array, float | Array]:
        """Range of the tiles of the page: one for all, or one per channel."""
        if self.scope is not Scope.CHANNEL or self.choice.range is not None or self._is_phase:
            return self.range.low, self.range.high
        facts = self.page_facts()
        pairs = [
            fitted_range(low, high, symmetric=self.symmetric)
            if math.isfinite(low)
            else (0.0, 1.0)
            for low, high in zip(facts.low.tolist(), facts.high.tolist(), strict=True)
        ]
        ends = np.array(pairs)[:, :, None, None]
        return ends[:, 0], ends[:, 1]

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
        return Element(index, value, str(value), own=own, compared=compared, colored=colored)

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

    def expression(self, index: tuple[int, ...]) -> str:
        """Return the Python expression of an element, given an engine's session."""
        member = "".join(f"[{place}]" for place in self._member_path())
        place = f"[{', '.join(map(str, index))}]" if index else "[()]"
        return f"{self._expression}{member}{place}"

    # Helpers

    def _adopt_member(self) -> None:
        if self.choice.member >= max(1, self.members):
            self.choice = replace(self.choice, member=0)
        value = self.member_value
        if isinstance(value, np.ndarray):
            self.array = value
            self._possible = self._find_plan(value)
            is_folded = self.choice.folded and not self.choice.channels_last
            self.plan = self._possible if is_folded else None
            if self.plan is not None:
                self._folded, self._usual = self.plan.fold(value), read_plan(self.plan)
            else:
                self._folded = None
                self._usual = read_shape(value.shape, channels_last=self.choice.channels_last)
            self.reading = self._read_roles(self._usual)
        else:
            self.array = self._folded = self.plan = self._possible = None
            self.reading = self._usual = Reading(Kind.TEXT, ())
        sizes = [axis.size for axis in self.reading.fixed]
        fixed = self.choice.fixed if len(self.choice.fixed) == len(sizes) else (0,) * len(sizes)
        self.choice = replace(self.choice, fixed=tuple(map(_clamped, fixed, sizes)))
        if self.choice.pick is not None and self.has_picture:
            self.set_pick(self.choice.pick)
        self.set_region(self.choice.region)
        self._all = None
        self._ranged = False
        self._totals = None
        self._drop_sample()
        self.channel = self._first_channel()

    def _find_plan(self, array: Array) -> ViewPlan | None:
        """Return how to fold an array, if its layout says how."""
        if self.layout is None:
            return None
        from engine.axes import plan_view

        return plan_view(self.layout, array.shape, self.choice.part) or plan_view(
            self.layout, array.shape
        )

    def _read_roles(self, usual: Reading) -> Reading:
        """Return how the array is read: as the user has chosen for axes of this meaning."""
        self.reading = usual  # which the meaning depends on
        roles = self._roles.get(self.meaning)
        shown = usual.kind in {Kind.PLANES, Kind.VECTOR} and not self.choice.channels_last
        if not shown or roles is None or not are_possible(roles, usual.shape):
            return usual
        return read_roles(usual.shape, roles, self._axis_names())

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
        return _clamped(self.choice.channel, self.reading.channels)

    def _drop_sample(self) -> None:
        self._planes = self._colors = None
        self._plane_ranges.clear()
        self._facts = self.keys = None
        self._arrange(None)

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
            chosen[reading.color_axis] = _clamped(self.choice.colors[color], size)
        sample = array[tuple(chosen)]
        if reading.kind is not Kind.PLANES:
            return Tensor(sample)
        wanted = [reading.channel_axis, reading.row_axis, reading.column_axis]
        shown = sorted([axis for axis in wanted if axis is not None])
        order = [shown.index(axis) for axis in wanted if axis is not None]
        missing = tuple([place for place, axis in enumerate(wanted) if axis is None])
        return Tensor(np.expand_dims(sample.transpose(order), missing))

    def _member_path(self) -> tuple[int, ...]:
        if not self.members:
            return ()
        return list(_paths(self.value))[self.choice.member]


def subtract(ours: Array, theirs: Array) -> Array:
    """Return the difference of two arrays of one shape, in at least float32.

    Infinities of one sign differ by NaN.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        wide = np.result_type(ours.dtype, theirs.dtype, np.float32)
        return np.subtract(ours, theirs, dtype=wide)


def _paths(value: Value, path: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
    """Return the index paths of members of nested tuples, in the order of `flatten_value`."""
    if not isinstance(value, tuple):
        return [path]
    return [found for place, item in enumerate(value) for found in _paths(item, (*path, place))]


def _ends(place: Place) -> tuple[int, int]:
    return (place.start, place.stop) if isinstance(place, slice) else (place, place + 1)


def _clamped(place: int, size: int) -> int:
    return min(max(place, 0), size - 1)
