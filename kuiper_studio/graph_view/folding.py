"""Which groups of the graph are open, and what is visible of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias

from kuiper_studio.layout.groups import Group, OutlineRow, name_range
from kuiper_studio.layout.nested import Nest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["Crumb", "Folding", "Visible", "short_name"]

Interval: TypeAlias = tuple[int, int]

_MOST_BLOCKS: Final = 24  # of a stack that are shown one by one
_MOST_NAME: Final = 22  # characters of a path that is not shortened


@dataclass(frozen=True, slots=True)
class Visible:
    """What is visible of a graph.

    Attributes
    ----------
    boxes : tuple of int or Group
        Operators of open groups, and closed groups, in execution order.
    nest : Nest
        Boxes, by their index, in the frames of open groups.
    frames : tuple of Group
        Open groups in the order of ``nest.frames()``.
    """

    boxes: tuple[int | Group, ...]
    nest: Nest
    frames: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class Crumb:
    """A group around an operator.

    Attributes
    ----------
    group : Group
    text : str
        Its name; ``encoder_layer_5 (6 of 12)`` for one of equal blocks.
    """

    group: Group
    text: str


class Folding:
    """The groups of a graph, each open or closed.

    A stack of equal blocks has no frame: it is split into its blocks, or into smaller stacks
    around one of them.

    Parameters
    ----------
    root : Group
        The whole graph, which is open.
    """

    def __init__(self, root: Group) -> None:
        self.root = root
        self._open: set[Interval] = set()
        self._splits: dict[Interval, tuple[int, ...]] = {}  # begins of the parts, and the end

    @property
    def is_closed(self) -> bool:
        """Whether no group is open."""
        return not (self._open or self._splits)

    # What is visible

    def visible(self, name_width: Callable[[Group], float]) -> Visible:
        """Return what is visible.

        Parameters
        ----------
        name_width : callable
            Returns the width of an open group's name.
        """
        boxes: list[int | Group] = []
        frames: list[Group] = []
        found = self._nest(self.root, name_width, boxes, frames)
        return Visible(tuple(boxes), found, tuple(frames))

    def _nest(
        self,
        group: Group,
        name_width: Callable[[Group], float],
        boxes: list[int | Group],
        frames: list[Group],
    ) -> Nest:
        """Add what is visible in a group to boxes and frames.

        No function in `visible`: one that calls itself, and what it refers to, would wait for
        the cycle collector.
        """
        items: list[int | Nest] = []
        for item in self._items(group):
            if not isinstance(item, int) and _key(item) in self._open:
                frames.append(item)
                items.append(self._nest(item, name_width, boxes, frames))
            else:
                items.append(len(boxes))
                boxes.append(item)
        return Nest(tuple(items), name_width(group) if group is not self.root else 0.0)

    def outline(self) -> tuple[OutlineRow, ...]:
        """Return what is visible as a list: each group, and what is in it where it is open."""
        return tuple(self._rows_in(self.root, 0))

    def _rows_in(self, group: Group, depth: int) -> Iterator[OutlineRow]:
        for item in self._items(group):
            if isinstance(item, int):
                yield OutlineRow(item, depth)
                continue
            is_open = _key(item) in self._open
            yield OutlineRow(item, depth, short_name(item), is_open)
            if is_open:
                yield from self._rows_in(item, depth + 1)

    def _items(self, group: Group) -> list[int | Group]:
        found: list[int | Group] = []
        for item in group.items():
            found += [item] if isinstance(item, int) else self._parts(item)
        return found

    def _parts(self, group: Group) -> list[Group]:
        """Return a group, or the parts of a stack that is split."""
        bounds = self._splits.get(_key(group))
        if bounds is None:
            return [group]
        return [part for piece in _pieces(group, bounds) for part in self._parts(piece)]

    def around(self, operator: int) -> tuple[Group, ...]:
        """Return the visible groups around an operator, outermost first, a closed one last."""
        found: list[Group] = []
        group = self.root
        while True:
            inner = _holding(self._items(group), operator)
            if inner is None:
                return tuple(found)
            found.append(inner)
            if _key(inner) not in self._open:
                return tuple(found)
            group = inner

    def crumbs(self, operator: int) -> tuple[Crumb, ...]:
        """Return the groups around an operator, open or not, outermost first."""
        crumbs: list[Crumb] = []
        outer = self.root
        for group in self.root.path_to(operator):
            text = short_name(group, outer)
            if outer.is_stack:
                number = outer.children.index(group) + 1
                text = f"{text} ({number} of {len(outer.children)})"
            if not group.is_stack or not _is_same_range(group):
                crumbs.append(Crumb(group, text))
            outer = group
        return tuple(crumbs)

    # Opening and closing

    def open(self, group: Group) -> None:
        """Show what is in a group; of a large stack smaller ones."""
        if not group.is_stack:
            self._open.add(_key(group))
            return
        count = len(group.children)
        parts = count if count <= _MOST_BLOCKS else min(math.isqrt(count), _MOST_BLOCKS)
        bounds = (n * count // parts for n in range(parts + 1))
        self._splits[_key(group)] = tuple(bounds)

    def reveal(self, operator: int) -> None:
        """Open the groups around an operator."""
        while (around := self.around(operator)) and _key(around[-1]) not in self._open:
            group = around[-1]
            if group.is_stack:
                self._split_at(group, operator)
            else:
                self._open.add(_key(group))

    def _split_at(self, stack: Group, operator: int) -> None:
        """Split a stack before and behind one of its blocks."""
        number = next(n for n, block in enumerate(stack.children) if operator <= block.last)
        bounds = {0, number, number + 1, len(stack.children)}
        self._splits[_key(stack)] = tuple(sorted(bounds))

    def can_close(self, operator: int) -> bool:
        """Return whether an open group, or a split stack, is around an operator."""
        around = self.around(operator)
        is_framed = bool(around) and _key(around[0]) in self._open
        return is_framed or self._split_around(self.root, operator) is not None

    def close(self, operator: int) -> Group | None:
        """Close the innermost open group around an operator.

        A closed block of a split stack makes it one stack again.

        Returns
        -------
        Group or None
            What is closed now; None where nothing was open.
        """
        around = self.around(operator)
        is_closed = bool(around) and _key(around[-1]) not in self._open
        frames = around[:-1] if is_closed else around
        outer = frames[-1] if frames else self.root
        if is_closed:
            stack = self._split_around(outer, operator)
            if stack is not None:
                del self._splits[_key(stack)]
                return stack
        return self.close_group(outer) if frames else None

    def close_group(self, group: Group) -> Group:
        """Close an open group, whether or not groups in it are open.

        Returns
        -------
        Group
            What is closed now: a stack that was split around the group is one again.
        """
        around = self.around(group.first)
        keys = [_key(each) for each in around]
        place = keys.index(_key(group))
        self._open.discard(_key(group))
        outer = around[place - 1] if place else self.root
        stack = self._split_around(outer, group.first)
        if stack is not None and self._was_revealed(stack):
            del self._splits[_key(stack)]
            return stack
        return group

    def _split_around(self, outer: Group, operator: int) -> Group | None:
        """Return the innermost split stack around an operator, right inside a group."""
        found = None
        candidate = _holding(outer.items(), operator)
        while candidate is not None and _key(candidate) in self._splits:
            found = candidate
            pieces = _pieces(candidate, self._splits[_key(candidate)])
            candidate = _holding(pieces, operator)
        return found

    def _was_revealed(self, stack: Group) -> bool:
        """Return whether a stack is split around one block only, and no block is open."""
        pieces = _pieces(stack, self._splits[_key(stack)])
        parts = [part for piece in pieces for part in self._parts(piece)]
        return any(part.is_stack for part in parts) and not any(
            _key(part) in self._open for part in parts
        )

    def open_all(self) -> None:
        """Show every operator."""
        for group in _every(self.root):
            if group.is_stack:
                self._splits[_key(group)] = tuple(range(len(group.children) + 1))
            elif group is not self.root:
                self._open.add(_key(group))

    def close_all(self) -> None:
        """Close every group."""
        self._open.clear()
        self._splits.clear()


def short_name(group: Group, outer: Group | None = None) -> str:
    """Return a short name: a long path from its last part on that is not a number."""
    name = group.name
    if outer is not None and outer.name and name.startswith(f"{outer.name}."):
        inner = name[len(outer.name) + 1 :]
        if not inner[0].isdigit():
            return inner
    if len(name) <= _MOST_NAME or " " in name:
        return name
    parts = name.split(".")
    place = len(parts) - 1
    while place and parts[place][0].isdigit():
        place -= 1
    return ".".join(parts[place:])


def _key(group: Group) -> Interval:
    return group.first, group.last


def _is_same_range(group: Group) -> bool:
    """Return whether a stack is named after its blocks, which say it better."""
    return "…" in group.name


def _holding(items: Iterable[int | Group], operator: int) -> Group | None:
    """Return the group among some items that an operator lies in."""
    for item in items:
        if not isinstance(item, int) and item.first <= operator <= item.last:
            return item
    return None


def _pieces(stack: Group, bounds: tuple[int, ...]) -> list[Group]:
    """Return the parts of a stack: its blocks, and smaller stacks."""
    pieces = []
    for begin, end in pairwise(bounds):
        blocks = stack.children[begin:end]
        if len(blocks) == 1:
            pieces.append(blocks[0])
        else:
            name = name_range([block.name for block in blocks])
            pieces.append(Group(name, blocks[0].first, blocks[-1].last, blocks, is_stack=True))
    return pieces


def _every(group: Group) -> Iterable[Group]:
    yield group
    for child in group.children:
        yield from _every(child)
