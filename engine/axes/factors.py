"""Factors: the axes of all operands before they have a meaning, and their relations.

A dimension is a tuple of factors, outermost first. There are two relations between factors.

same
    The positions are the same: both sides of an addition, or a dimension before and after a
    transpose. If one factor is split or named, so is the other.
kin
    The meaning is the same, but the positions are not: rows before and after a pooling.

Both are union-find structures. So meanings spread forwards and backwards, and the order of the
operators does not matter.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from engine.axes.layout import SPATIAL, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.axes.layout import Size

__all__ = ["Dim", "Dims", "Factors", "Rank"]

T = TypeVar("T")
Dim: TypeAlias = tuple[int, ...]
"""Factors of one dimension, outermost first."""
Dims: TypeAlias = tuple[Dim, ...]

# A factor may be a part of several wholes, such as windows before and after a shift. More than
# these add nothing.
_MOST_WHOLES: Final = 4
_SEQUENCES: Final = frozenset({Kind.TOKEN, Kind.TIME})


class Rank(IntEnum):
    """Strength of the evidence for a meaning; stronger evidence replaces weaker."""

    GUESSED = 1
    DERIVED = 2
    EXPECTED = 3
    STATED = 4
    DECLARED = 5
    USER = 6


class Factors:
    """All factors of a graph.

    Attributes
    ----------
    sizes : list of (int, str or None)
        By factor.
    segments : dict of int to tuple of Dim
        The dimensions that a factor concatenates, by representative.
    shifts : dict of int to (int, int)
        By factor: the factor that it is a rolled copy of, and the number of positions.
    hints : dict of int to str
        Name of the weight that a factor comes from.
    frames : set of int
        Factors that count pictures beside a batch; see `note_frames`.
    series : set of int
        Factors that count sequences beside a batch; see `note_series`.
    slid : dict of int to Dim
        By factor that counts windows: the dimension along which they lie.
    ranked, attended : set of int
        Factors of which the best positions are chosen, and those beside heads.
    taken : dict of int to Size
        By factor of one position that a mean or a part left: how many there were.
    apart : set of int
        Factors of which attention sees one position at a time; see `note_apart`.
    mixed : dict of int to Dim
        By factor of a flattened dimension that lost or won positions: what was flattened.
    timed : set of int
        Factors of rows that are also taken for time.
    weighed : set of int
        Factors of which attention weighs the positions.
    parted : set of int
        Factors that were split from others, and of which single positions are taken.
    """

    def __init__(self) -> None:
        self.sizes: list[Size] = []
        self.segments: dict[int, tuple[Dim, ...]] = {}
        self.shifts: dict[int, tuple[int, int]] = {}
        self.hints: dict[int, str] = {}
        self.frames: set[int] = set()
        self.series: set[int] = set()
        self.slid: dict[int, Dim] = {}
        self.ranked: set[int] = set()
        self.attended: set[int] = set()
        self.taken: dict[int, Size] = {}
        self.apart: set[int] = set()
        self.mixed: dict[int, Dim] = {}
        self.timed: set[int] = set()
        self.parted: set[int] = set()
        self.weighed: set[int] = set()
        self._same: list[int] = []
        self._kin: list[int] = []
        self._claims: dict[int, tuple[Rank, Kind]] = {}
        self._parts: dict[int, Dim] = {}
        self._other_parts: dict[int, tuple[Dim, ...]] = {}
        self._wholes: dict[int, tuple[int, ...]] = {}
        self._rolled: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return len(self.sizes)

    # Making

    def make(self, size: Size) -> int:
        """Make a factor without evidence."""
        number = len(self.sizes)
        self.sizes.append(size)
        self._same.append(number)
        self._kin.append(number)
        return number

    def make_dims(self, shape: Iterable[Size]) -> Dims:
        """Make a factor for each dimension of a shape."""
        return tuple([(self.make(size),) for size in shape])

    def derive(self, dim: Dim, size: Size) -> Dim:
        """Make a dimension with the same meaning but other positions.

        The factors of a flattened dimension have no counterpart in the new one: only what they
        mean together is known of it.
        """
        made = self.make(size)
        if size == 1:
            self.taken[made] = self.extent(dim)
        long = self._without_ones(dim)
        if len(long) == 1 and self.sizes[long[0]] != 1:  # one position has no meaning to give
            self.relate(made, long[0])
        if len(long) > 1 or self.find(long[0]) in self.mixed:
            self.mixed[made] = self.mixed.get(self.find(long[0]), long)
        return (made,)

    def resample(self, dim: Dim, size: Size) -> Dim:
        """Derive a dimension by a pooling or convolution.

        Windows stay windows, of a picture that is so much smaller.
        """
        made = self.derive(dim, size)
        long = self._without_ones(dim)
        inner = self.find(long[0])
        if len(long) > 1 or not isinstance(size, int) or size < 2:
            return made
        for whole in self.wholes(inner):
            for outer, *rest in self.splits(whole):
                if [self.find(part) for part in rest] == [inner]:
                    smaller = self.whole((outer, *made))
                    self.relate(smaller, whole)
                    for part in (self.find(outer), *made):
                        self._wholes[part] = (*self.wholes(part), smaller)[-_MOST_WHOLES:]
                    return made
        return made

    def take(self, dim: Dim, size: Size) -> Dim:
        """Make a dimension of some of the positions, which may mean something else.

        Positions in a window of a signal are features to the layer that reads them at once.
        """
        made = self.make(size)
        self._wholes[made] = (self.whole(dim),)
        return (made,)

    def roll(self, dim: Dim, shift: int) -> Dim:
        """Return a dimension with its positions rolled; rolling back returns the original."""
        whole = self.whole(dim)
        size = self.sizes[whole]
        base, before = self.shifts.get(whole, (whole, 0))
        base = self.find(base)
        total = (before + shift) % size if isinstance(size, int) and size else before + shift
        if not total:
            return (base,)
        made = self._rolled.get((base, total))
        if made is None:
            made = self.make(size)
            self.relate(made, base)
            self._rolled[base, total] = made
            self.shifts[made] = base, total
        return (made,)

    # Looking

    def find(self, factor: int) -> int:
        """Return the representative of all factors that are the same as this one."""
        return _find(self._same, factor)

    def extent(self, dim: Dim) -> Size:
        """Return the number of positions of a dimension; None if a factor has no known size."""
        return self.sizes[dim[0]] if len(dim) == 1 else self.size(dim)

    def size(self, dim: Dim) -> int | None:
        """Return the number of positions of a dimension; None unless it is a number."""
        total = 1
        for factor in dim:
            size = self.sizes[factor]
            if not isinstance(size, int):
                return None
            total *= size
        return total

    def leaves(self, dim: Iterable[int]) -> list[int]:
        """Return the representatives of the innermost factors, which are not split."""
        found = []
        waiting = list(dim)[::-1]
        while waiting:
            factor = self.find(waiting.pop())
            parts = self._parts.get(factor)
            if parts is None:
                found.append(factor)
            else:
                waiting += parts[::-1]
        return found

    def merge(self, members: list[int]) -> list[int]:
        """Replace each complete sequence of a factor's parts by the factor."""
        start = 0
        while start < len(members):
            found = self._whole_at(members, start)
            if found is None:
                start += 1
            else:
                whole, count = found
                members[start : start + count] = [whole]
                start = 0  # the merged factor may complete another one
        return members

    def _whole_at(self, members: list[int], start: int) -> tuple[int, int] | None:
        """Return the factor whose parts begin at an index, and their number."""
        for whole in self.wholes(members[start]):
            for parts in self.splits(whole):
                if [self.find(part) for part in parts] == members[start : start + len(parts)]:
                    return whole, len(parts)
        return None

    def origin(self, factor: int) -> int:
        """Return the factor that this one was split from, at the first of several splits."""
        factor = self.find(factor)
        while wholes := self.wholes(factor):
            factor = wholes[0]
        return factor

    def is_split_to(self, whole: int, part: int) -> bool:
        """Whether a factor is a part of another one, or of a part of it."""
        waiting, seen = [self.find(part)], set()
        while waiting:
            each = waiting.pop()
            if each == whole:
                return True
            seen.add(each)
            waiting += [other for other in self.wholes(each) if other not in seen]
        return False

    def _is_outer(self, factor: int) -> bool:
        """Whether a factor is the outermost part of what it was split from."""
        factor = self.find(factor)
        return any(
            self.find(outer) == factor
            for whole in self.wholes(factor)
            for outer, *_ in self.splits(whole)
        )

    def _common_origin(self, factors: Iterable[int]) -> int | None:
        """Return what all factors were split from, perhaps at different splits."""
        common: set[int] | None = None
        for factor in factors:
            found, waiting = set(), [self.find(factor)]
            while waiting:
                each = waiting.pop()
                wholes = [whole for whole in self.wholes(each) if whole not in found]
                found |= {*wholes} if wholes else {each}
                waiting += wholes
            roots = {each for each in found if not self.wholes(each)}
            common = roots if common is None else common & roots
        return min(common, default=None) if common else None

    def parts(self, factor: int) -> Dim:
        """Return the parts of a factor; empty if it is not split."""
        return self._parts.get(self.find(factor), ())

    def splits(self, factor: int) -> tuple[Dim, ...]:
        """Return every split of a factor, as its parts."""
        factor = self.find(factor)
        parts = self._parts.get(factor)
        others = self._other_parts.get(factor, ())
        return others if parts is None else (parts, *others)

    def wholes(self, factor: int) -> tuple[int, ...]:
        """Return the factors that this one was split from."""
        return tuple([self.find(whole) for whole in self._wholes.get(self.find(factor), ())])

    def whole(self, dim: Dim) -> int:
        """Return one factor for a dimension; several factors become parts of a new one."""
        if len(dim) == 1:
            return self.find(dim[0])
        leaves = tuple([leaf for leaf in self.leaves(dim) if self.sizes[leaf] != 1])
        if len(leaves) == 1:
            return leaves[0]
        made = self.make(self.extent(dim))
        if self._can_split(made, leaves):
            self._parts[made] = leaves
        origin = self._common_origin(leaves)
        if origin is not None and len({self._side(leaf) for leaf in leaves} - {None}) < 2:
            self.relate(made, origin)
        return made

    def kind(self, factor: int) -> Kind:
        """Return the meaning that was claimed."""
        return self._claims.get(_find(self._kin, factor), (0, Kind.UNKNOWN))[1]

    def rank(self, factor: int) -> int:
        """Return the strength of the evidence for `kind`; 0 without any."""
        return self._claims.get(_find(self._kin, factor), (0,))[0]

    # Relations

    def relate(self, one: int, other: int) -> None:
        """Note that two factors have the same meaning."""
        first, second = _find(self._kin, one), _find(self._kin, other)
        if first == second or self._contradict(first, second):
            return
        self._kin[second] = first
        lost = self._claims.pop(second, None)
        if lost is not None and lost[0] > self._claims.get(first, (0,))[0]:
            self._claims[first] = lost

    def note_frames(self, dim: Dim) -> None:
        """Note that a dimension counts the pictures of several samples: those of a film.

        Windows are no pictures of their own, but parts of one.
        """
        self.frames |= self._beside_batch(dim)

    def note_series(self, dim: Dim) -> None:
        """Note that a dimension counts the sequences of several samples.

        They are the channels of a signal, each of which a model of time series follows alone.
        """
        if len(dim) > 1:
            self.series |= self._beside_batch(dim)

    def note_apart(self, dims: Dims) -> None:
        """Note dimensions in front of an attention, such as windows that it attends inside."""
        self.apart |= {factor for dim in dims for factor in dim}

    def note_attended(self, dims: Dims) -> None:
        """Note the dimensions beside heads, if there are any."""
        leaves = [self.leaves(dim) for dim in dims]
        if any(self.kind(leaf) is Kind.HEAD for each in leaves for leaf in each):
            self.attended |= {self.find(dim[0]) for dim in dims if len(dim) == 1}

    def _beside_batch(self, dim: Dim) -> set[int]:
        leaves = self.leaves(dim)
        return {leaf for leaf in leaves if self.sizes[leaf] != 1 and not self.wholes(leaf)}

    def _contradict(self, first: int, second: int) -> bool:
        """Whether there is certain evidence that two roots have different meanings."""
        one, other = self._claims.get(first), self._claims.get(second)
        if one is None or other is None or one[1] is other[1]:
            return False
        return min(one[0], other[0]) >= Rank.STATED

    def _side(self, factor: int) -> Kind | None:
        """Return which side of an image a factor certainly is of, or was split from."""
        waiting = [factor]
        while waiting:
            each = waiting.pop()
            if self.rank(each) >= Rank.STATED and self.kind(each) in SPATIAL:
                return self.kind(each)
            waiting += self.wholes(each)
        return None

    def claim(self, dim: Dim, kind: Kind, rank: Rank) -> None:
        """Note evidence for the meaning of a dimension, unless it is flattened."""
        if kind is not Kind.BATCH:  # samples and something else, perhaps frames
            dim = self._without_ones(dim)
        if len(dim) != 1:
            return
        root = _find(self._kin, dim[0])
        if rank > self._claims.get(root, (0,))[0]:
            self._claims[root] = rank, kind
        if kind is Kind.TIME and self.kind(root) is Kind.ROW:
            self.timed.add(root)

    def is_timed(self, factor: int) -> bool:
        """Whether a signal runs along a factor, which also counts rows of a picture."""
        root = _find(self._kin, factor)
        return any(_find(self._kin, each) == root for each in self.timed)

    def claim_positions(self, dim: Dim) -> None:
        """Note that attention weighs positions.

        A linear layer may have mixed them before, such as the tokens that GroupViT groups by:
        what looks like features then are tokens.
        """
        self.claim(dim, Kind.TOKEN, Rank.EXPECTED)
        if len(dim) == 1 and self.sizes[dim[0]] != 1:
            self.weighed.add(dim[0])
        if (
            len(dim) == 1
            and self.kind(dim[0]) is Kind.FEATURE
            and self.rank(dim[0]) <= Rank.EXPECTED
        ):
            self._claims[_find(self._kin, dim[0])] = Rank.EXPECTED, Kind.TOKEN

    def replace(self, factor: int, kind: Kind) -> None:
        """Replace a meaning by one that tells more, unless the user gave it."""
        if self.rank(factor) < Rank.USER:
            self._claims[_find(self._kin, factor)] = Rank.DECLARED, kind

    def unify(self, one: Dim, other: Dim) -> None:
        """Note that two dimensions have the same positions, and split factors to match."""
        waiting = [(one, other)]
        while waiting:
            first, second = map(self._without_ones, waiting.pop())
            if len(first) == len(second) == 1:
                waiting += self._join(first[0], second[0])
            elif len(first) == 1 and self._is_leaf(first[0]):
                self._compose(first[0], second)
            elif len(second) == 1 and self._is_leaf(second[0]):
                self._compose(second[0], first)
            else:
                self._align(first, second)

    def unfold(self, dim: Dim) -> Dim:
        """Join the cells of a grid with features that were positions inside them.

        So do transformers that give an image: their last features are the pixels of a patch.
        """
        long = self._without_ones(dim)
        outer, *inner = [self.find(factor) for factor in long]
        kind = self.kind(outer)
        if not inner or kind not in SPATIAL or self.rank(outer) < Rank.STATED:
            return dim
        if any(self.kind(each) is not Kind.UNKNOWN for each in inner):
            return dim
        if any(self.kind(self.origin(each)) is not Kind.FEATURE for each in inner):
            return dim
        made = self.make(self.extent(long))
        self._parts[made] = (outer, *inner)
        for each in (outer, *inner):
            self._wholes[each] = (*self._wholes.get(each, ()), made)[-_MOST_WHOLES:]
        self.claim((made,), kind, Rank.STATED)
        for each in inner:
            self.claim((each,), kind, Rank.STATED)
        return (made,)

    def _without_ones(self, dim: Dim) -> Dim:
        """Return a dimension without flattened factors of size 1, which have no positions."""
        if len(dim) == 1:
            return dim
        return tuple([factor for factor in dim if self.sizes[factor] != 1]) or dim[:1]

    def regroup(self, dims: Sequence[Dim], shape: Sequence[Size]) -> Dims:
        """Distribute the factors of dimensions over those of another shape, as a reshape does.

        Factors are split where the new shape splits them, even if they already have another
        split. If sizes do not divide, dimensions get new factors, except for equal first and
        last dimensions.
        """
        leaves = self.leaves([factor for dim in dims for factor in dim])
        for factors in (leaves, self.merge(leaves.copy())):
            found = self._distribute(factors[::-1], shape)
            if found is not None:
                return found
        return self._regroup_ends(dims, shape)

    def _distribute(self, waiting: list[int], shape: Sequence[Size]) -> Dims | None:
        found: list[Dim] = []
        for size in shape:
            dim = self._take(waiting, size)
            if dim is None:
                return None
            found.append(dim)
        return tuple(found)

    def _regroup_ends(self, dims: Sequence[Dim], shape: Sequence[Size]) -> Dims:
        found = list(self.make_dims(shape))
        for order in (range(min(len(dims), len(shape))), range(-1, -len(found) - 1, -1)):
            for place in order:
                is_there = abs(place) <= len(dims)
                is_open = shape[place] is None and place != 0  # only a batch is likely to stay
                if not is_there or is_open or self.extent(dims[place]) != shape[place]:
                    break
                found[place] = dims[place]
        return tuple(found)

    def _take(self, waiting: list[int], size: Size) -> Dim | None:
        """Pop the factors of one dimension from a stack; None if they do not fit."""
        if not isinstance(size, int) or size < 1:
            fits = waiting and self.sizes[waiting[-1]] == size and size is not None
            return (waiting.pop(),) if fits else None
        if size == 1:
            is_one = waiting and self.sizes[waiting[-1]] == 1
            return (waiting.pop(),) if is_one else (self.make(1),)
        taken: list[int] = []
        rest = size
        while rest != 1:
            if not waiting:
                return None
            have = self.sizes[waiting[-1]]
            if not isinstance(have, int) or have < 1:
                return None
            if rest % have == 0:
                taken.append(waiting.pop())
                rest //= have
            elif have % rest == 0:
                outer, inner = self._split(waiting.pop(), (rest, have // rest))
                taken.append(outer)
                waiting.append(inner)
                rest = 1
            else:
                return None
        ahead = [factor for factor in taken if self.sizes[factor] == 1]
        long = [factor for factor in taken if self.sizes[factor] != 1]
        long = self.merge(long)
        if len(long) > 1 and self._common_origin(long) is not None:
            long = [self.whole(tuple(long))]  # neighbouring parts of one axis
        return (*ahead, *long)

    def _is_leaf(self, factor: int) -> bool:
        return self.find(factor) not in self._parts

    def _split(self, factor: int, sizes: tuple[int, int]) -> Dim:
        factor = self.find(factor)
        for known in self.splits(factor):
            if tuple([self.sizes[part] for part in known]) == sizes:
                return known
        parts = tuple([self.make(size) for size in sizes])
        if factor in self._parts:
            self._other_parts[factor] = (*self._other_parts.get(factor, ()), parts)
        else:
            self._parts[factor] = parts
        for part in parts:
            self._wholes[part] = (factor,)
        return parts

    def _compose(self, factor: int, dim: Dim) -> None:
        """Set the parts of a factor that is not split yet."""
        factor = self.find(factor)
        leaves = tuple([leaf for leaf in self.leaves(dim) if self.sizes[leaf] != 1])
        if len(leaves) == 1:
            self._join(factor, leaves[0])
        elif self._can_split(factor, leaves):
            self._parts[factor] = leaves

    def _can_split(self, factor: int, parts: Dim) -> bool:
        """Whether the sizes of parts multiply to the size of a factor, and each is smaller."""
        size = self.size(parts)
        return len(parts) > 1 and size is not None and size > 1 and size == self.sizes[factor]

    def _join(self, one: int, other: int) -> list[tuple[Dim, Dim]]:
        """Make two factors the same; return their parts and segments that are the same then."""
        first, second = self.find(one), self.find(other)
        if first == second or not self._may_be_same(first, second):
            return []
        may_be_heads = self._may_be_heads(first), self._may_be_heads(second)
        if may_be_heads[1] and not may_be_heads[0]:
            first, second = second, first
        parts = self._parts.get(first), self._parts.get(second)
        self._same[second] = first
        if not (any(may_be_heads) and self.kind(second) is Kind.FEATURE):
            self.relate(first, second)
        _move(self._parts, second, first)
        _move(self._other_parts, second, first)
        own, pieces = self.segments.get(first, ()), self.segments.pop(second, ())
        if len(pieces) > len(own):  # the finer ones tell more
            self.segments[first] = pieces
        same: list[tuple[Dim, Dim]] = []
        if [self.size(each) for each in own] == [self.size(each) for each in pieces]:
            same += zip(own, pieces, strict=True)
        _move(self.shifts, second, first)
        _move(self.hints, second, first)
        _move(self.mixed, second, first)
        wholes = (*self._wholes.get(first, ()), *self._wholes.pop(second, ()))
        if wholes:
            self._wholes[first] = tuple(dict.fromkeys(wholes))[:_MOST_WHOLES]
        if parts[0] is not None and parts[1] is not None:
            same.append((parts[0], parts[1]))
        return same

    def _may_be_same(self, first: int, second: int) -> bool:
        """Whether two factors can be the same, and no certain evidence is against it."""
        if self.sizes[first] != self.sizes[second]:
            return False
        if self.is_split_to(first, second) or self.is_split_to(second, first):
            return False  # a file states a part as long as its whole
        if self._contradict(_find(self._kin, first), _find(self._kin, second)):
            return False
        return len({self._side(first), self._side(second)} - {None}) < 2

    def _may_be_heads(self, factor: int) -> bool:
        """Whether a factor was split from features; other features have another meaning."""
        if self.kind(factor) not in {Kind.UNKNOWN, Kind.HEAD} or not self.wholes(factor):
            return False
        return self.kind(self.origin(factor)) is Kind.FEATURE

    def _align(self, one: Dim, other: Dim) -> None:
        """Make the factors of two flattened dimensions the same, outermost first."""
        first = [leaf for leaf in self.leaves(one) if self.sizes[leaf] != 1][::-1]
        second = [leaf for leaf in self.leaves(other) if self.sizes[leaf] != 1][::-1]
        while first and second:
            left, right = self.find(first.pop()), self.find(second.pop())
            have, wanted = self.sizes[left], self.sizes[right]
            if have == wanted:
                self._join(left, right)
                continue
            if not isinstance(have, int) or not isinstance(wanted, int) or have * wanted == 0:
                return
            if have % wanted == 0 and self._is_leaf(left):
                outer, inner = self._split(left, (wanted, have // wanted))
                self._join(outer, right)
                first.append(inner)
            elif wanted % have == 0 and self._is_leaf(right):
                outer, inner = self._split(right, (have, wanted // have))
                self._join(outer, left)
                second.append(inner)
            else:
                return

    # Meanings that follow from others

    def settle(self) -> None:
        """Give factors without evidence the meaning of their segments, whole or parts."""
        self.apart = {*self.leaves(self.apart)}
        self.ranked = {self.find(factor) for factor in self.ranked}
        self.slid = {self.find(factor): dim for factor, dim in self.slid.items()}
        self._claim_noted()
        for _ in range(3):  # each direction may wait for the other
            changed = self._spread_kinds()
            for factor in range(len(self.sizes)):
                if self._same[factor] == factor and self.rank(factor) < Rank.DERIVED:
                    kind = self._kind_of_segments(factor) or self._kind_of_wholes(factor)
                    if kind is not None:
                        self.claim((factor,), kind, Rank.DERIVED)
                        changed = True
            if not changed:
                return

    def _claim_noted(self) -> None:
        """Name factors by what was noted of them while operators were related."""
        for factor in self.weighed:
            if self.kind(factor) is Kind.BATCH:  # patches that a convolution took for samples
                self.replace(factor, Kind.TOKEN)
        for factor in self.frames:
            if self.kind(factor) in {Kind.UNKNOWN, Kind.TOKEN}:  # attended to along time
                self.claim((factor,), Kind.TIME, Rank.STATED)
        for factor in self.series:
            if self.rank(factor) <= Rank.GUESSED:
                self.claim((factor,), Kind.CHANNEL, Rank.DERIVED)
        for factor in self.parted:
            if self.kind(self.origin(factor)) not in _SEQUENCES:
                self.claim((factor,), Kind.PART, Rank.DERIVED)
            elif self._is_outer(factor):  # the first and the last block of a sequence
                self.claim((factor,), Kind.WINDOW, Rank.DERIVED)

    def _spread_kinds(self) -> bool:
        """Name the segments of features and tokens; return whether anything was new."""
        changed = False
        for factor, segments in self.segments.items():
            kind = self.kind(factor)
            if kind not in {Kind.FEATURE, Kind.TOKEN}:
                continue
            for leaf in self.leaves([each for segment in segments for each in segment]):
                if self.kind(leaf) is Kind.UNKNOWN:
                    self.claim((leaf,), kind, Rank.DERIVED)
                    changed = True
        return changed

    def _kind_of_segments(self, factor: int) -> Kind | None:
        pieces = self.segments.get(factor, ())
        kinds = [self._kind_of_piece(piece) for piece in pieces]
        if Kind.TOKEN in kinds:
            return Kind.TOKEN
        return next((kind for kind in kinds if kind is not Kind.UNKNOWN), None)

    def _kind_of_piece(self, piece: Dim) -> Kind:
        leaves = [leaf for leaf in self.leaves(piece) if self.sizes[leaf] != 1]
        kinds = {self.kind(leaf) for leaf in leaves}
        if len(leaves) > 1 and kinds and kinds <= {*SPATIAL, Kind.TOKEN}:
            return Kind.TOKEN
        return self.kind(piece[0]) if len(piece) == 1 else Kind.UNKNOWN

    def _kind_of_wholes(self, factor: int) -> Kind | None:
        for whole in self.wholes(factor):
            kind = self.kind(whole)
            if kind is not Kind.UNKNOWN:
                return kind
        return None


def _move(table: dict[int, T], source: int, target: int) -> None:
    """Move an entry to another key, unless that has one."""
    if source in table:
        table.setdefault(target, table.pop(source))


def _find(parents: list[int], item: int) -> int:
    while parents[item] != item:
        parents[item] = parents[parents[item]]
        item = parents[item]
    return item
