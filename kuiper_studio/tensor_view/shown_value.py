"""How a value is read: the member of a tuple, what its axes mean and where they go. No Qt."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.axes.layout import SPATIAL
from engine.text import format_dtype, format_shape
from engine.values import flatten_value
from kuiper_studio.tensor_view.annotations import label_axis
from kuiper_studio.tensor_view.axis_roles import (
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
from kuiper_studio.tensor_view.choice import Choice
from kuiper_studio.tensor_view.reading import Kind, Reading, read_plan, read_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.axes import Layout, ViewPlan
    from engine.int8_scales import Scales
    from engine.values import Array, Value
    from kuiper_studio.tensor_view.element import Counterpart

__all__ = ["ShownValue", "clamped"]

_MOST_CLASSES: Final = 8000  # without names; a longer series is rather a sound


class ShownValue:
    """A value, and how its axes are read; remembers the user's choices by operand.

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
        The one that is shown.
    counterpart : Counterpart or None
        What is shown beside the array.
    shared_range : tuple of float or None
        Least and greatest value of all that is compared.
    scales : Scales or None
        Of an int8 weight.
    labels : tuple of str
        Names of classes or tokens, for a dimension that has them.
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
        self._layout_of_member: Callable[[int], Layout | None] | None = None
        self.plan: ViewPlan | None = None
        self._possible: ViewPlan | None = None
        self._folded: Array | None = None
        self.reading = Reading(Kind.TEXT, ())
        self.choice = Choice()
        self.channel = 0
        self._members: tuple[Value, ...] = ()
        self.counterpart: Counterpart | None = None
        self.shared_range: tuple[float, float] | None = None
        self.scales: Scales | None = None
        self.labels: tuple[str, ...] = ()

    # The value

    def set_value(
        self,
        name: str,
        value: Value,
        expression: str = "",
        shared_range: tuple[float, float] | None = None,
        counterpart: Counterpart | None = None,
        layout: Layout | None = None,
        scales: Scales | None = None,
        layout_of_member: Callable[[int], Layout | None] | None = None,
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
        scales : Scales, optional
            Of an int8 weight.
        layout_of_member : callable, optional
            Returns instead what the dimensions of the value mean, or those of a member of a
            tuple, by its index.
        """
        self.scales = scales
        self._layout_of_member = layout_of_member
        self.counterpart = counterpart
        self.layout = layout
        self.shared_range = shared_range
        self._expression = expression or f"session.value({name!r})"
        self._choices[self.name] = self.choice
        self.name, self.value = name, value
        self._members = tuple(flatten_value(value))
        self.choice = self._choices.get(name, Choice())
        self._adopt_member()

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
    def may_be_scores(self) -> bool:
        """Whether the elements may be scores of classes: they are not a signal, or too many."""
        if self.array is not None and self.array.size > _MOST_CLASSES:
            return False
        if self.layout is None:
            return True
        long = (axis for axis in self.layout.axes if axis.size != 1)
        return all(axis.kind not in SPATIAL for axis in long)

    @property
    def label_axis(self) -> int | None:
        """The dimension of the array whose positions have labels."""
        if self.array is None:
            return None
        return label_axis(self.labels, self.array.shape, self.layout)

    @property
    def can_fold(self) -> bool:
        """Whether the layout says how to fold positions to pictures."""
        return self._possible is not None

    def expression(self, index: tuple[int, ...]) -> str:
        """Return the Python expression of an element, given an engine's session."""
        member = "".join(f"[{place}]" for place in self._member_path())
        place = f"[{', '.join(map(str, index))}]" if index else "[()]"
        return f"{self._expression}{member}{place}"

    # How it is read

    def set_member(self, member: int) -> None:
        """Choose a member of a tuple."""
        self.choice = replace(self.choice, member=clamped(member, max(1, self.members)))
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

    @property
    def parts(self) -> tuple[tuple[str, ...], int]:
        """Words of the parts that one dimension joins, and which of them is folded."""
        if self.plan is None or self.layout is None:
            return (), -1
        from engine.axes import parts_of

        parts, first = parts_of(self.layout)
        chosen = self.choice.part
        return tuple([part.text() for part in parts]), chosen if chosen >= 0 else first

    def part_with(self, index: tuple[int, ...]) -> int | None:
        """Return which of the `parts` an element is in; None for none of them."""
        words, folded = self.parts
        if self.layout is None or self.array is None:
            return None
        from engine.axes import plan_view

        choices: list[int] = [folded, *range(len(words))]
        for part in choices:
            plan = plan_view(self.layout, self.array.shape, part)
            if plan is not None and plan.place(index) is not None:
                return part
        return None

    def set_part(self, part: int) -> None:
        """Choose which part is folded: a class token, or the grid."""
        self.choice = replace(
            self.choice, part=part, fixed=(), channel=None, pick=None, region=None
        )
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

    # Helpers

    def _adopt_member(self) -> None:
        if self.choice.member >= max(1, self.members):
            self.choice = replace(self.choice, member=0)
        if self._layout_of_member is not None:
            self.layout = self._layout_of_member(self.choice.member)
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

    def _member_path(self) -> tuple[int, ...]:
        if not self.members:
            return ()
        return list(_paths(self.value))[self.choice.member]


def _paths(value: Value, path: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
    """Return the index paths of members of nested tuples, in the order of `flatten_value`."""
    if not isinstance(value, tuple):
        return [path]
    return [found for place, item in enumerate(value) for found in _paths(item, (*path, place))]


def clamped(place: int, size: int) -> int:
    """Return the nearest place among `size` of them."""
    return min(max(place, 0), size - 1)
