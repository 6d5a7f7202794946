"""Names the dimensions of an operand by their factors."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Final

from engine.axes.factors import Rank
from engine.axes.layout import SPATIAL, Axis, Kind, Layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.axes.factors import Dim, Dims, Factors
    from engine.axes.layout import Size

__all__ = ["name_dims"]

_POSITIONS: Final = SPATIAL | {Kind.TOKEN}
_HINTS: Final = {
    "dist": Kind.DISTILLATION_TOKEN,
    "reg": Kind.REGISTER_TOKEN,
    "det": Kind.BOX,
    "query": Kind.QUERY,
    "cls": Kind.CLASS_TOKEN,
    "class": Kind.CLASS_TOKEN,
}


def name_dims(factors: Factors, dims: Dims) -> Layout:
    """Return the meanings of dimensions.

    Parameters
    ----------
    factors : Factors
        Settled.
    dims : Dims

    Returns
    -------
    Layout
    """
    return _Namer(factors, dims).name()


class _Namer:
    """Names the factors of one operand together, because a meaning may depend on others."""

    def __init__(self, factors: Factors, dims: Dims) -> None:
        self.factors = factors
        self.dims = dims
        self.members = [self._members(dim) for dim in dims]
        # The factors that are split into windows or patches, and the dimensions of their parts.
        self.places: dict[int, list[int]] = {}
        self.shown: set[int] = set()
        for place, members in enumerate(self.members):
            self.shown |= {*members, *factors.leaves(members)}
            for member in members:
                for whole in self._wholes(member):
                    self.places.setdefault(whole, []).append(place)

    def name(self) -> Layout:
        axes = [self._axis(place) for place in range(len(self.dims))]
        self._name_scores(axes)
        self._name_channels(axes)
        return Layout(tuple(axes))

    def _members(self, dim: Dim) -> list[int]:
        """Return the factors of a dimension; complete sequences of parts become their whole.

        Rows and columns stay apart, even if a product of matrices made them one factor.
        """
        found = [leaf for leaf in self.factors.leaves(dim) if self.factors.sizes[leaf] != 1]
        merged = self.factors.merge(found.copy())
        whole = self.factors.find(dim[0])
        if len(dim) == 1 and len(merged) > 1 and self.factors.is_split_to(whole, found[0]):
            merged = [whole]  # its parts also complete others, by which they were merged
        if len(merged) == 1 and self.factors.kind(merged[0]) in {Kind.FEATURE, Kind.UNKNOWN}:
            kinds = {self.factors.kind(leaf) for leaf in found}
            if len(kinds) > 1 and kinds <= SPATIAL:
                return found
        return merged or [self.factors.find(dim[0])]

    def _axis(self, place: int) -> Axis:
        members, size = self.members[place], self.factors.extent(self.dims[place])
        if len(members) == 1:
            return self._single(members[0], place)
        half = len(members) // 2
        if members[:half] == members[half:]:
            sides = self._runs(members[:half], place)
            pair = [
                Axis(kind, _total(sides), sides[0].factors if len(sides) == 1 else ())
                for kind in (Kind.QUERY, Kind.KEY)
            ]
            return Axis(Kind.UNKNOWN, size, tuple(pair))
        runs = self._runs(members, place)
        kinds = {axis.kind for axis in runs}
        if len(runs) == 1:
            return replace(runs[0], size=size)
        if kinds <= {Kind.BATCH, Kind.WINDOW}:
            return Axis(Kind.WINDOW, size, runs[-1].factors)
        if len(kinds) == 1:
            return Axis(runs[0].kind, size)
        if self._is_unfolded(members):
            return Axis(self.factors.kind(members[0]), size)
        if Kind.FEATURE in kinds and Kind.BATCH not in kinds:
            return Axis(Kind.FEATURE, size, runs)
        return Axis(Kind.UNKNOWN, size, runs)

    def _is_unfolded(self, members: list[int]) -> bool:
        """Whether features were split into positions inside the cells of a coarser grid."""
        outer, *inner = members
        return self.factors.kind(outer) in SPATIAL and all(
            self.factors.kind(each) is Kind.FEATURE and self.factors.wholes(each)
            for each in inner
        )

    def _runs(self, members: list[int], place: int) -> tuple[Axis, ...]:
        """Return the axes of a flattened dimension; neighbouring factors form one grid."""
        axes: list[Axis] = []
        grid: list[Axis] = []
        is_outer = True
        for _, group in groupby(members, self._run):
            parts = list(group)
            axis = self._plain(parts[0])
            if len(parts) > 1:
                kind = self._kind_of_parts(parts)
                axis = Axis(kind, self.factors.extent(tuple(parts)), shift=axis.shift)
            if axis.kind in SPATIAL:
                grid.append(replace(axis, stride=min(map(self._stride, parts))))
                is_outer &= any(self._is_window(part, place) for part in parts)
                continue
            axes += _fold_grid(grid, is_outer=is_outer)
            grid, is_outer = [], True
            axes.append(axis)
        return (*axes, *_fold_grid(grid, is_outer=is_outer))

    def _run(self, member: int) -> tuple[int, Kind | None]:
        """Return what neighbouring factors share that are parts of one axis."""
        kind = self.factors.kind(member)
        return self.factors.origin(member), kind if kind in SPATIAL else None

    def _kind_of_parts(self, parts: list[int]) -> Kind:
        """Return what neighbouring parts of one axis mean: those by head are features."""
        kinds = {self.factors.kind(part) for part in parts}
        origin = self.factors.origin(parts[0])
        return self.factors.kind(origin if len(kinds) > 1 else parts[0])

    def _plain(self, member: int) -> Axis:
        shift = self._shift(member)
        return Axis(self.factors.kind(member), self.factors.sizes[member], shift=shift)

    def _shift(self, member: int) -> int:
        for factor in (member, *self.factors.wholes(member)):
            if factor in self.factors.shifts:
                return self.factors.shifts[factor][1]
        return 0

    def _single(self, member: int, place: int) -> Axis:
        axis = self._plain(member)
        if axis.kind in SPATIAL:
            axis = replace(axis, stride=self._stride(member))
            if self._is_window(member, place):
                return Axis(Kind.WINDOW, axis.size, (axis,))
        if axis.kind is Kind.TOKEN and self._is_window(member, place):
            return Axis(Kind.WINDOW, axis.size)
        if axis.kind is Kind.UNKNOWN and member in self.factors.mixed:
            return self._mixed(axis, self.factors.mixed[member])
        segments = self.factors.segments.get(member)
        if segments is None or axis.kind not in {Kind.TOKEN, Kind.BOX}:
            return axis
        named = self._segments(segments)
        grids = [segment for segment in named if segment.grid]
        if not grids:
            return axis
        # Positions of several scales without attention are the boxes of a detector.
        is_box = member in self.factors.ranked or member not in self.factors.attended
        scales = len(grids) > 1 and is_box and self.factors.rank(member) <= Rank.DERIVED
        return Axis(Kind.BOX if scales else axis.kind, axis.size, (), named)

    def _mixed(self, axis: Axis, dim: Dim) -> Axis:
        """Return an axis of which only the meanings are known, not the size of each."""
        kinds = [self.factors.kind(member) for member in self._members(dim)]
        parts = [Axis(kind, None) for kind, _ in groupby(kinds)]
        if len(parts) == 1:
            return replace(axis, kind=parts[0].kind)
        return Axis(Kind.UNKNOWN, axis.size, tuple(parts))

    def _is_window(self, member: int, place: int) -> bool:
        """Whether a factor counts windows whose inside is another dimension.

        Attention sees one window at a time. Without it, the part in front counts windows, as
        the samples of a batch. It may be the inner one: windows then interleave, as the grids
        of MaxViT and the patches of MobileViT.
        """
        own = self._is_apart([member])
        if own and member in self.factors.slid:
            return True  # windows that overlap, which are no parts of the picture
        others = self._other_parts(member, place)
        if any(
            self.factors.kind(each) is Kind.FEATURE for _, parts in others for each in parts
        ):
            return False
        if any(self._is_apart(parts) is not own for _, parts in others):
            return own
        return bool(others) and place < others[0][0]

    def _other_parts(self, member: int, place: int) -> list[tuple[int, list[int]]]:
        """Return the other dimensions with parts of what a factor is a part of."""
        found: dict[int, list[int]] = {}
        for whole in self._wholes(member):
            for other in self.places.get(whole, ()):
                members = self.members[other]
                if other != place and self._are_parts(whole, member, members):
                    found.setdefault(other, members)
        return [*found.items()]

    def _is_apart(self, members: list[int]) -> bool:
        """Whether attention sees single positions of a part of the factors."""
        return not self.factors.apart.isdisjoint(self.factors.leaves(members))

    def _wholes(self, member: int) -> list[int]:
        """Return the positions that a factor was split from, the nearest first."""
        found = [*self.factors.wholes(member)]
        for whole in found:
            found += [each for each in self.factors.wholes(whole) if each not in found]
        return [whole for whole in found if self.factors.kind(whole) in _POSITIONS]

    def _are_parts(self, whole: int, member: int, members: list[int]) -> bool:
        """Whether a factor and one of a dimension are different parts of a whole."""
        factors = self.factors
        parts, own = {*factors.leaves((whole,))}, {*factors.leaves((member,))}
        others = {*factors.leaves(members)}
        if own & others:
            return False  # fewer queries of the same positions, such as one for each window
        if own <= parts:
            return not (parts - own).isdisjoint(others)
        splits = [{factors.find(part) for part in split} for split in factors.splits(whole)]
        return any(member in s and not (s - {member}).isdisjoint(members) for s in splits)

    def _stride(self, member: int) -> int:
        """Return how far neighbouring positions of a factor are apart, as far as is shown."""
        factors = self.factors
        own = factors.leaves((member,))
        for whole in reversed(self._wholes(member)):
            for parts in (factors.leaves((whole,)), *factors.splits(whole)):
                shown = [factors.find(part) for part in parts]
                shown = [part for part in shown if part in self.shown]
                last = own[-1] if own[-1] in shown else member
                if last in shown and len(shown) > len(own):
                    return factors.size(tuple(shown[shown.index(last) + 1 :])) or 1
        return 1

    # Segments

    def _segments(self, segments: Sequence[Dim]) -> tuple[Axis, ...]:
        axes = [self._segment(segment) for segment in segments]
        if not any(axis.grid for axis in axes):
            return tuple(axes)
        found: list[Axis] = []
        for axis, segment in zip(axes, segments, strict=True):
            kind = axis.kind if axis.grid else self._special(segment, axis, found)
            found.append(Axis(kind, axis.size, axis.factors))
        return tuple(found)

    def _segment(self, segment: Dim) -> Axis:
        runs = self._runs(self._members(segment), -1)
        if len(runs) == 1:
            return runs[0]
        return Axis(Kind.TOKEN, self.factors.extent(segment), runs)

    def _special(self, segment: Dim, axis: Axis, before: list[Axis]) -> Kind:
        """Return the meaning of tokens beside a grid, by the name of their weight if known."""
        factors, kinds = self.factors, {each.kind for each in before}
        if axis.kind is Kind.TOKEN and factors.rank(segment[0]) >= Rank.STATED:
            return Kind.TOKEN  # numbers of an embedding: a text
        hint = factors.hints.get(factors.find(segment[0]), "").lower()
        for word, kind in _HINTS.items():
            if word in hint and not (kind is Kind.CLASS_TOKEN and kind in kinds):
                return kind
        if axis.size != 1:  # without a weight they come from an input, such as a text
            return Kind.REGISTER_TOKEN if hint else Kind.TOKEN
        return Kind.DISTILLATION_TOKEN if Kind.CLASS_TOKEN in kinds else Kind.CLASS_TOKEN

    # Meanings that depend on the other dimensions

    def _name_scores(self, axes: list[Axis]) -> None:
        """Name the two dimensions of scores, positions by positions, queries and keys."""
        if len(axes) < 2:
            return
        places = [p for p, axis in enumerate(axes) if axis.size != 1 and _is_sequence(axis)]
        pair = self._repeated() or tuple(places[-2:])
        if len(pair) < 2:
            return
        sides = [axis.kind in SPATIAL for axis in axes]
        if sides[pair[0]] and sides[pair[1]] and sum(sides) > 2:
            return  # scores of one side of an image, for each position of the other
        repeats = self.members[pair[0]] == self.members[pair[1]]
        others = {axis.kind for axis in axes}
        if not repeats and not others.isdisjoint({Kind.FEATURE, Kind.DISTANCE}):
            return  # features of windows of positions, or scores by distance
        for place, kind in zip(pair, (Kind.QUERY, Kind.KEY), strict=True):
            axis = axes[place]
            axes[place] = Axis(kind, axis.size, axis.factors, axis.segments, axis.shift)

    def _repeated(self) -> tuple[int, ...]:
        """Return the only two dimensions with the same positions; empty otherwise."""
        seen: dict[tuple[int, ...], int] = {}
        pairs: list[tuple[int, int]] = []
        for place, members in enumerate(self.members):
            if self.factors.extent(self.dims[place]) == 1:
                continue
            kinds = {self.factors.kind(member) for member in members}
            key = tuple(members)
            if key in seen and not kinds & {Kind.FEATURE, Kind.BATCH, Kind.HEAD}:
                pairs.append((seen[key], place))
            seen[key] = place
        return pairs[0] if len(pairs) == 1 else ()

    def _name_channels(self, axes: list[Axis]) -> None:
        """Call the features of positions of an image or a signal channels."""
        positions = [p for p, axis in enumerate(axes) if _is_position(axis)]
        if any(axis.kind in {Kind.HEAD, Kind.CHANNEL} for axis in axes):
            return
        origins: set[int] = set()
        for place, axis in enumerate(axes):
            if axis.kind is not Kind.FEATURE:
                continue
            if len(positions) > 1 or any(place < position for position in positions):
                if axis.size != 1:
                    origins.add(self.factors.origin(self.members[place][0]))
                if len(origins) > 1:
                    return  # features of each channel
                axes[place] = replace(axis, kind=Kind.CHANNEL)


def _fold_grid(axes: list[Axis], *, is_outer: bool) -> list[Axis]:
    """Fold neighbouring positions to tokens, or to windows if other dimensions are inside."""
    if not axes or (len(axes) == 1 and not is_outer):
        return axes
    if not is_outer and len({axis.kind for axis in axes}) == 1:
        return [Axis(axes[0].kind, _total(axes))]  # parts of a signal that follow each other
    return [Axis(Kind.WINDOW if is_outer else Kind.TOKEN, _total(axes), tuple(axes))]


def _total(axes: Sequence[Axis]) -> Size:
    sizes = [axis.size for axis in axes if isinstance(axis.size, int)]
    return math.prod(sizes) if len(sizes) == len(axes) else None


def _is_sequence(axis: Axis) -> bool:
    return axis.kind in {Kind.TOKEN, Kind.TIME, Kind.BOX}


def _is_position(axis: Axis) -> bool:
    if axis.kind is Kind.TIME and axis.size == 1:  # a single picture is no film
        return False
    return axis.kind in SPATIAL or (axis.kind is Kind.WINDOW and len(axis.factors) == 1)
