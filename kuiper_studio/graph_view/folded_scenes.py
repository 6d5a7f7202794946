"""The scenes of a model whose operators are in groups, some of them open."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from kuiper_studio.graph_view.scene import BoxMaker, assembled, make_edge, make_edges
from kuiper_studio.layout.nested import LevelLayouts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from engine.runtime import RuntimeGraph, RuntimeOperand
    from kuiper_studio.graph_view.folding import Folding
    from kuiper_studio.graph_view.scene import Box, Edge, Scene
    from kuiper_studio.layout.groups import Group

__all__ = ["FoldedScenes", "Wires"]

_EDGES_FOR_A_BOX: Final = 4  # that take as long to make


@dataclass(frozen=True, slots=True, eq=False)
class Wires:
    """Each operand's way to each input that takes it, as numbers.

    Attributes
    ----------
    sources, targets : ndarray of shape (E,), int64
        Operators, in the order of consumers and their inputs.
    nets : ndarray of shape (E,), int64
        Number of the operand.
    operands : tuple of RuntimeOperand
    names : tuple of str
        Of all operators.
    """

    sources: npt.NDArray[np.int64]
    targets: npt.NDArray[np.int64]
    nets: npt.NDArray[np.int64]
    operands: tuple[RuntimeOperand, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, graph: RuntimeGraph) -> Wires:
        """List the wires of a graph; on any thread."""
        numbers: dict[str, int] = {}
        found = [
            (
                operand.producer.index,
                operator.index,
                numbers.setdefault(operand.name, len(numbers)),
                operand,
            )
            for operator in graph.operators
            for operand in operator.inputs
            if operand.producer is not None
        ]
        ends = np.array([wire[:3] for wire in found], np.int64).reshape(-1, 3)
        operands = tuple(wire[3] for wire in found)
        sources, targets, nets = ends.T.copy()
        return cls(sources, targets, nets, operands, _names(graph))

    @classmethod
    def cut(cls, graph: RuntimeGraph) -> Wires:
        """List no wires, for a graph that is shown as one group."""
        none = np.zeros(0, np.int64)
        return cls(none, none, none, (), _names(graph))


def _names(graph: RuntimeGraph) -> tuple[str, ...]:
    return tuple(operator.name for operator in graph.operators)


class FoldedScenes:
    """Makes one scene after another of a graph, as groups open and close.

    Boxes and the layouts of frames that do not change are used again.

    Parameters
    ----------
    graph : RuntimeGraph
    wires : Wires
        Of the graph.
    """

    def __init__(self, graph: RuntimeGraph, wires: Wires) -> None:
        self._graph, self._wires = graph, wires
        self._maker = BoxMaker()
        self._boxes: dict[int | tuple[int, int], Box] = {}
        self._layouts = LevelLayouts()
        self._flat: Scene | None = None
        self._prepared = 0  # operators whose boxes were made ahead
        self._opened: Scene | None = None  # all groups are open; it lacks their frames
        count = len(graph.operators)
        self._opened_edges: list[Edge] = []  # as far as they were made ahead
        self._edges_left = self._make_edges(np.arange(count), [False] * count)

    @property
    def are_prepared(self) -> bool:
        """Whether all boxes and edges have been made."""
        return self._opened is not None

    def prepare(self, count: int) -> None:
        """Make the boxes of some more operators ahead, then edges.

        Making them all when the last group opens would take longer than a frame.
        """
        first = self._prepared
        if first < len(self._graph.operators):
            self._prepared = min(first + count, len(self._graph.operators))
            for place in range(first, self._prepared):
                self._box(place)
        elif self._opened is None:
            more = tuple(islice(self._edges_left, _EDGES_FOR_A_BOX * count))
            self._opened_edges += more
            if not more:
                self._make_opened()

    def _make_opened(self) -> Scene:
        """Build the scene of all operators without frames, of what was made ahead."""
        if self._opened is None:
            graph = self._graph
            boxes = tuple(map(self._box, range(len(graph.operators))))
            edges = (*self._opened_edges, *self._edges_left)
            self._opened_edges.clear()
            self._opened = assembled(graph, self._maker, boxes, edges, self._wires.names)
        return self._opened

    def make_flat(self) -> Scene:
        """Build the scene without groups, every operator in a box of its own."""
        if self._flat is None:
            graph = self._graph
            boxes = tuple(map(self._box, range(len(graph.operators))))
            self._flat = assembled(
                graph, self._maker, boxes, make_edges(graph), self._wires.names
            )
        return self._flat

    def make(self, folding: Folding) -> Scene:
        """Build the scene of what is visible."""
        visible = folding.visible(self._maker.frame_width)
        if len(visible.boxes) == len(self._graph.operators):
            scene = self._make_opened()
        else:
            boxes = tuple(map(self._box, visible.boxes))
            starts = np.array([box.index for box in boxes], np.int64)
            is_closed = [box.card is not None for box in boxes]
            edges = tuple(self._make_edges(starts, is_closed))
            scene = assembled(self._graph, self._maker, boxes, edges, self._wires.names)
        return replace(
            scene,
            frames=tuple(map(self._maker.frame, visible.frames)),
            nest=visible.nest,
            known_layouts=self._layouts,
        )

    def _box(self, item: int | Group) -> Box:
        key = item if isinstance(item, int) else (item.first, item.last)
        known = self._boxes.get(key)
        if known is None:
            operators = self._graph.operators
            known = self._boxes[key] = (
                self._maker.box(operators[item])
                if isinstance(item, int)
                else self._maker.card(item, operators)
            )
        return known

    def _make_edges(
        self, starts: npt.NDArray[np.int64], is_closed: Sequence[bool]
    ) -> Iterator[Edge]:
        """Make an edge for each operand between two boxes; one for all at a closed group.

        Parameters
        ----------
        starts : ndarray of shape (N,), int64
            First operator of each box.
        is_closed : sequence of bool
            Whether the box is a closed group.
        """
        wires = self._wires
        sources = np.searchsorted(starts, wires.sources, "right") - 1
        targets = np.searchsorted(starts, wires.targets, "right") - 1
        passing = np.flatnonzero(sources != targets)
        pairs = sources[passing] * len(starts) + targets[passing]
        _, begins, inverse = np.unique(pairs, return_index=True, return_inverse=True)
        begun = begins[inverse]  # the first wire between the same two boxes
        keys = begun * (int(wires.nets.max(initial=0)) + 1) + wires.nets[passing]
        _, firsts, counts = np.unique(keys, return_index=True, return_counts=True)
        order = np.lexsort((firsts, begun[firsts], targets[passing[firsts]]))
        firsts, counts = firsts[order], counts[order]
        bundles = np.flatnonzero(np.diff(begun[firsts], prepend=-1, append=-1))
        kept = passing[firsts]
        operands = [wires.operands[wire] for wire in kept.tolist()]
        ends = list(zip(sources[kept].tolist(), targets[kept].tolist(), strict=True))
        times = counts.tolist()
        for begin, end in pairwise(bundles.tolist()):
            source, target = ends[begin]
            if is_closed[source] or is_closed[target]:
                yield make_edge(source, target, operands[end - 1], 1, end - begin)
                continue
            for place in range(begin, end):
                yield make_edge(source, target, operands[place], times[place], 1)
