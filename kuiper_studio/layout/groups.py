"""Finds groups of operators: modules by their names, and blocks that repeat.

Operators come in execution order. Every group is an interval of it, so no path leaves a group
and comes back: a graph of collapsed groups has no cycles.
"""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    import numpy.typing as npt

__all__ = ["Group", "OutlineRow", "Path", "find_groups", "name_range"]

Path: TypeAlias = tuple[str, ...]
"""Modules of an operator, outermost first."""

_NUMBER: Final = re.compile(r"\d+")
_LEAST: Final = 4  # operators of a group; smaller modules are shown as their operators
_FLAT: Final = 20  # a group with so few operators has no groups inside
_MOST_ITEMS: Final = 40  # of a group; more are cut into blocks
_CHUNK: Final = (8, 24)  # items of a block that is cut off
_MOST_PERIOD: Final = 400  # items of a block that is looked for
_LEAST_UNIT: Final = 3  # operators of a block that repeats
_SURE_UNIT: Final = 5  # operators of a block that repeats only once


@dataclass(frozen=True, slots=True)
class Group:
    """Consecutive operators that are shown as one.

    Attributes
    ----------
    name : str
        Path of the module, such as ``layer1.0``; ``block 3`` where there is none; ``""`` for
        the whole graph.
    first, last : int
        Indexes of the operators, both included.
    children : tuple of Group
        Groups inside, in order and without overlap. Operators between them are the group's
        own.
    is_stack : bool
        Whether the children are equal blocks, which fill the group.
    """

    name: str
    first: int
    last: int
    children: tuple[Group, ...] = ()
    is_stack: bool = False

    @property
    def size(self) -> int:
        """Number of operators."""
        return self.last - self.first + 1

    def items(self) -> Iterator[int | Group]:
        """Iterate over the group's own operators and the groups inside, in order."""
        place = self.first
        for child in self.children:
            yield from range(place, child.first)
            yield child
            place = child.last + 1
        yield from range(place, self.last + 1)

    def path_to(self, operator: int) -> tuple[Group, ...]:
        """Return the groups inside this one that an operator lies in, outermost first."""
        path: list[Group] = []
        group: Group | None = self
        while group is not None:
            group = next((c for c in group.children if c.first <= operator <= c.last), None)
            if group is not None:
                path.append(group)
        return tuple(path)


@dataclass(frozen=True, slots=True)
class OutlineRow:
    """A row of the operators as a list with groups, some of them open.

    Attributes
    ----------
    item : int or Group
        Index of an operator, or a group.
    depth : int
        Number of open groups around it.
    name : str
        Of a group; ``""`` for an operator.
    is_open : bool
        Whether what is in the group follows.
    """

    item: int | Group
    depth: int
    name: str = ""
    is_open: bool = False

    @property
    def group(self) -> Group | None:
        """The group; None for an operator."""
        return None if isinstance(self.item, int) else self.item

    @property
    def first(self) -> int:
        """Index of the operator, or of the group's first one."""
        return self.item if isinstance(self.item, int) else self.item.first

    @property
    def last(self) -> int:
        """Index of the operator, or of the group's last one."""
        return self.item if isinstance(self.item, int) else self.item.last


def find_groups(
    paths: Sequence[Path | None],
    kinds: Sequence[Hashable],
    edges: Iterable[tuple[int, int, Hashable]],
) -> Group:
    """Group the operators of a graph.

    Modules come from the paths; an operator of unknown path belongs to the module on the side
    to which more operands connect it. Then equal consecutive blocks are found, by their
    operators and the edges inside, and what is still long is cut where few operands pass.

    Parameters
    ----------
    paths : sequence of tuple of str, or None
        Modules of each operator, in execution order; empty for one that lies in no module,
        None where it is not known.
    kinds : sequence of hashable
        Equal for operators that compute the same, apart from their weights.
    edges : iterable of (int, int, hashable)
        Producer, consumer and operand, in the order of the consumers' inputs.

    Returns
    -------
    Group
        The whole graph.
    """
    if not paths:
        return Group("", 0, -1)
    finder = _Finder(paths, kinds, edges)
    root = finder.modules(0, len(paths), 0)
    return _numbered(finder.refined(root, flat=0))


_Item: TypeAlias = "int | Group"


@dataclass(slots=True)
class _Finder:
    """What is known of the graph while its groups are found."""

    paths: Sequence[Path | None]
    kinds: list[int]
    inputs: list[list[int]]
    crossing: npt.NDArray[np.intp]  # operands that pass before each operator
    fan: list[int]  # consumers of each operator
    _signatures: dict[Hashable, int] = field(default_factory=dict)

    def __init__(
        self,
        paths: Sequence[Path | None],
        kinds: Sequence[Hashable],
        edges: Iterable[tuple[int, int, Hashable]],
    ) -> None:
        count = len(paths)
        numbers: dict[Hashable, int] = {}
        self.paths = paths
        self.kinds = [numbers.setdefault(kind, len(numbers)) for kind in kinds]
        self.inputs = [[] for _ in range(count)]
        self.fan = [0] * count
        self._signatures = {}
        reach: dict[tuple[int, Hashable], int] = {}
        for source, target, operand in edges:
            self.inputs[target].append(source)
            self.fan[source] += 1
            reach[source, operand] = max(target, reach.get((source, operand), source))
        steps = np.zeros(count + 1, np.intp)
        for (source, _), target in reach.items():
            steps[source + 1] += 1
            steps[target + 1] -= 1
        self.crossing = np.cumsum(steps)

    def cut(self, first: int, last: int) -> int:
        """Return the place from `first` to `last` before which the fewest operands pass.

        Of equal ones that behind an operator with the most consumers, where a block with a
        skip begins; then the last one.
        """
        places = range(first, last + 1)
        return min(places, key=lambda n: (self.crossing[n], -self.fan[n - 1], -n))

    # Modules

    def modules(self, begin: int, end: int, depth: int, name: Path = ()) -> Group:
        """Group operators by the modules at a depth of their paths, and inside them."""
        runs: list[tuple[str, int, int]] = []  # module, first and last known operator
        for place in range(begin, end):
            path = self.paths[place]
            if path is None:
                continue
            label = path[depth] if len(path) > depth else ""
            if runs and runs[-1][0] == label:
                runs[-1] = (label, runs[-1][1], place)
            else:
                runs.append((label, place, place))
        starts = [begin]
        for (_, _, known), (_, following, _) in pairwise(runs):
            starts.append(self.cut(known + 1, following))
        children = []
        for (label, _, _), first, stop in zip(runs, starts, [*starts[1:], end], strict=False):
            if label:
                children.append(self.modules(first, stop, depth + 1, (*name, label)))
        group = Group(".".join(name), begin, end - 1, tuple(children))
        if len(children) == 1 and children[0].size == group.size:
            return replace(children[0], name=group.name)
        return group

    # Blocks

    def refined(self, group: Group, flat: int = _FLAT) -> Group:
        """Leave out what is too small, fold equal blocks, and cut what is too long."""
        if group.size <= flat:
            return replace(group, children=())
        items: list[_Item] = []
        for item in group.items():
            items += [item] if isinstance(item, int) else self._promoted(item, group)
        before = 0
        items = self._folded(items)
        while len(items) > _MOST_ITEMS and len(items) != before:
            before = len(items)
            items = self._folded(self._chunked(items))
        groups = tuple(item for item in items if isinstance(item, Group))
        if len(groups) == 1 and groups[0].size == group.size:
            return replace(groups[0], name=group.name)
        return replace(group, children=groups)

    def _promoted(self, child: Group, parent: Group) -> list[_Item]:
        """Return a group, or what is in it: of a small one, and of most of its parent."""
        if child.size < _LEAST:
            return list(range(child.first, child.last + 1))
        refined = self.refined(child)
        if 2 * child.size > parent.size and refined.children and not refined.is_stack:
            return list(refined.items())
        return [refined]

    def signature(self, first: int, last: int) -> int:
        """Return a number that is the same for equal blocks.

        Their operators are of the same kinds, in the same order, and take their inputs from
        the same places inside; inputs from outside are told apart, not where they are from.
        """
        outside: dict[int, int] = {}
        parts = []
        for place in range(first, last + 1):
            sources = tuple(
                place - source if source >= first else ~outside.setdefault(source, len(outside))
                for source in self.inputs[place]
            )
            parts.append((self.kinds[place], sources))
        return self._signatures.setdefault(tuple(parts), len(self._signatures))

    def _folded(self, items: list[_Item]) -> list[_Item]:
        """Replace equal consecutive blocks by a stack of them."""
        if len(items) < 2:
            return items
        tokens = np.array([self._token(item) for item in items], np.intp)
        free = np.ones(len(items), np.bool_)
        queue = [(-(length // p) * p, p, start, length) for start, length, p in _runs(tokens)]
        heapq.heapify(queue)
        stacks: dict[int, tuple[int, Group]] = {}  # by their first item: items, and the stack
        while queue:
            _, period, start, length = heapq.heappop(queue)
            if free[start : start + length].all():
                found = self._stack(items, start, length, period)
                if found is None:
                    continue
                begin, count, stack = found
                stacks[begin] = count, stack
                free[begin : begin + count] = False
            taken = np.flatnonzero(~free[start : start + length]).tolist()
            for low, high in pairwise([-1, *taken, length]):
                size = high - low - 1
                if size >= 2 * period:
                    covered = -(size // period) * period
                    heapq.heappush(queue, (covered, period, start + low + 1, size))
        result: list[_Item] = []
        place = 0
        while place < len(items):
            count, item = stacks.get(place, (1, items[place]))
            result.append(item)
            place += count
        return result

    def _token(self, item: _Item) -> int:
        """Return a number that is the same for equal items; negative for groups."""
        if isinstance(item, int):
            return self.kinds[item]
        # Modules of unlike names are told apart even if they are equal: "left" and "right".
        key = (self.signature(item.first, item.last), _NUMBER.sub("0", item.name))
        return ~self._signatures.setdefault(key, len(self._signatures))

    def _stack(
        self, items: list[_Item], start: int, length: int, period: int
    ) -> tuple[int, int, Group] | None:
        """Fold the longest row of equal blocks: its first item, its length, and the stack."""
        firsts = [_first(item) for item in items[start : start + length]]
        lasts = [_last(item) for item in items[start : start + length]]
        single = period == 1
        if single and isinstance(items[start], int):
            return None
        size, count = lasts[period - 1] - firsts[0] + 1, length // period
        least = _SURE_UNIT if count == 2 else _LEAST_UNIT
        if size < least and not single:
            return None
        shifts = range(min(period, length - 2 * period + 1))
        shift = min(
            shifts,
            key=lambda n: (
                self.crossing[firsts[n + period]],
                -self.fan[firsts[n + period] - 1],
                -((length - n) // period),
                n,
            ),
        )
        starts = range(shift, length - period + 1, period)
        blocks = [
            (firsts[n], lasts[n + period - 1], self.signature(firsts[n], lasts[n + period - 1]))
            for n in starts
        ]
        low, high = _longest_equal([block[2] for block in blocks])
        if high - low < 2 or (high - low == 2 and size < _SURE_UNIT and not single):
            return None
        begin = start + starts[low]
        members = [
            self._block(items[begin + n * period : begin + (n + 1) * period])
            for n in range(high - low)
        ]
        name = name_range([member.name for member in members])
        stack = Group(name, members[0].first, members[-1].last, tuple(members), is_stack=True)
        return begin, (high - low) * period, stack

    def _block(self, items: list[_Item]) -> Group:
        if len(items) == 1 and isinstance(items[0], Group):
            return items[0]
        groups = tuple(item for item in items if isinstance(item, Group))
        first, last = _first(items[0]), _last(items[-1])
        named = [group.name for group in groups if group.name]
        block = Group(name_range(named) if named else "", first, last, groups)
        return replace(block, children=()) if block.size <= _FLAT else block

    def _chunked(self, items: list[_Item]) -> list[_Item]:
        """Cut a long row into blocks, where few operands pass."""
        least, most = _CHUNK
        result: list[_Item] = []
        place = 0
        while place < len(items):
            rest = len(items) - place
            if rest <= most:
                count = rest
            else:
                ends = range(place + least, place + most + 1)
                count = min(ends, key=lambda n: (self.crossing[_first(items[n])], -n)) - place
            part = items[place : place + count]
            result += [self._block(part)] if count >= _LEAST else part
            place += count
        return result


def _first(item: _Item) -> int:
    return item if isinstance(item, int) else item.first


def _last(item: _Item) -> int:
    return item if isinstance(item, int) else item.last


def _runs(tokens: npt.NDArray[np.intp]) -> Iterator[tuple[int, int, int]]:
    """Find where a row of tokens repeats itself: start, length and the period."""
    count = len(tokens)
    for period in range(1, min(count // 2, _MOST_PERIOD) + 1):
        same = tokens[period:] == tokens[:-period]
        edges = np.flatnonzero(np.diff(same.astype(np.int8), prepend=0, append=0))
        begins, ends = edges[::2], edges[1::2]
        long = np.flatnonzero(ends - begins >= period)
        for begin, end in zip(begins[long].tolist(), ends[long].tolist(), strict=True):
            if not _has_shorter_period(tokens[begin : begin + period]):
                yield begin, end - begin + period, period


def _has_shorter_period(unit: npt.NDArray[np.intp]) -> bool:
    """Return whether a unit is itself a shorter one, repeated."""
    count = len(unit)
    return any(
        count % period == 0 and bool((unit[period:] == unit[:-period]).all())
        for period in range(1, count // 2 + 1)
    )


def _longest_equal(numbers: Sequence[int]) -> tuple[int, int]:
    """Return begin and end of the longest row of equal numbers, the first of equal ones."""
    best = (0, 0)
    begin = 0
    for place in range(1, len(numbers) + 1):
        if place == len(numbers) or numbers[place] != numbers[begin]:
            if place - begin > best[1] - best[0]:
                best = begin, place
            begin = place
    return best


def name_range(names: Sequence[str]) -> str:
    """Return a name for a row of groups, such as ``layer1.0…2``; ``""`` without names."""
    first, last = names[0], names[-1]
    if not first or first == last:
        return first
    ours, others = first.split("."), last.split(".")
    differing = [
        n for n, pair in enumerate(zip(ours, others, strict=False)) if len(set(pair)) > 1
    ]
    if len(ours) != len(others) or len(differing) != 1:
        return f"{first} … {last}"
    (place,) = differing
    begin, end = ours[place].partition("…")[0], others[place].rpartition("…")[2]
    stem = end.rstrip("0123456789")
    ours[place] = f"{begin}…{end[len(stem) :] if begin.startswith(stem) else end}"
    return ".".join(ours)


def _numbered(group: Group) -> Group:
    """Give the groups without a name numbers, in order."""
    counts: dict[str, int] = defaultdict(int)

    def visit(group: Group, outer: str) -> Group:
        children = []
        for child in group.children:
            name = child.name
            if name or child.is_stack:
                inner = outer
            else:
                counts[outer] += 1
                inner = f"{outer}.{counts[outer]}" if outer else str(counts[outer])
                name = f"block {inner}"
            named = visit(replace(child, name=name), "" if child.name else inner)
            if not name:
                named = replace(
                    named, name=name_range([block.name for block in named.children])
                )
            children.append(named)
        return replace(group, children=tuple(children))

    return visit(group, "")
