"""Assigns rows, the ranks across the flow.

A network is mostly chains that fork and join. So the graph is cut into chains, and each
chain gets a straight row of its own: the longest is the main chain, row 0, which reaches
from the first layer to the last; branches lie in the nearest free rows beside it, on one
side, so that the other side is free for the lanes of skip connections. A branch reserves
its row from its fork to its join. A long edge uses a row if it is free.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kuiper_studio.layout.layering import Dag

__all__ = ["Rows", "assign_rows"]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one component.

    Attributes
    ----------
    rows : list of int
        Of each node.
    runs : dict of (int, int) to int
        Row of the edge between two nodes, for edges over more than one layer that have one.
    occupied : list of int
        For each layer the set of its rows that are taken, as bits.
    """

    rows: list[int]
    runs: dict[tuple[int, int], int]
    occupied: list[int]


def assign_rows(dag: Dag, layers: Sequence[int], check: Callable[[], None]) -> Rows:
    """Assign a row to every node of one component.

    Parameters
    ----------
    dag : Dag
    layers : sequence of int
    check : callable
        Called now and then; raises to cancel.
    """
    chains = _chains(dag, layers)
    result = Rows([-1] * len(layers), {}, [0] * (max(layers) + 1))
    result.rows[chains[0][0]] = 0
    main, branches = chains[0], [_Branch.of(chain, dag, layers) for chain in chains[1:]]
    _occupy(result, main, 0, 0, len(result.occupied) - 1)
    # In the order of their forks, so that the chain that a branch starts from has its row; of
    # those from one fork the shortest first, so that no join crosses a longer branch.
    branches.sort(key=lambda branch: (branch.begin, branch.end, branch.chain[0]))
    for number, branch in enumerate(branches):
        if number % 256 == 0:
            check()
        _place(result, branch, layers)
    check()
    _run_long_edges(result, dag, layers)
    return result


@dataclass(frozen=True, slots=True)
class _Branch:
    """A chain, its fork and join, and the layers in which it needs its row."""

    chain: list[int]
    fork: int | None
    join: int | None
    begin: int
    end: int

    @classmethod
    def of(cls, chain: list[int], dag: Dag, layers: Sequence[int]) -> _Branch:
        fork = max(dag.predecessors[chain[0]], key=lambda n: (layers[n], -n), default=None)
        join = min(dag.successors[chain[-1]], key=lambda n: (layers[n], n), default=None)
        begin = layers[chain[0]] if fork is None else layers[fork] + 1
        end = layers[chain[-1]] if join is None else layers[join] - 1
        return cls(chain, fork, join, begin, end)


def _chains(dag: Dag, layers: Sequence[int]) -> list[list[int]]:
    """Cut the graph into chains; the first is a longest path."""
    taken = [False] * len(layers)

    def walk(node: int) -> list[int]:
        chain = [node]
        taken[node] = True
        while True:
            free = [target for target in dag.successors[node] if not taken[target]]
            if not free:
                return chain
            node = min(free, key=lambda n: (-dag.heights[n], layers[n], n))
            taken[node] = True
            chain.append(node)

    starts = sorted(range(len(layers)), key=lambda n: (layers[n], -dag.heights[n], n))
    return [walk(node) for node in starts if not taken[node]]


def _occupy(result: Rows, chain: list[int], row: int, begin: int, end: int) -> None:
    for node in chain:
        result.rows[node] = row
    bit = 1 << row
    for layer in range(begin, end + 1):
        result.occupied[layer] |= bit


def _place(result: Rows, branch: _Branch, layers: Sequence[int]) -> None:
    anchor = -1
    for neighbour in (branch.fork, branch.join):
        if anchor < 0 and neighbour is not None:
            anchor = result.rows[neighbour]
    taken = 0
    for layer in range(branch.begin, branch.end + 1):
        taken |= result.occupied[layer]
    row = _nearest_free(taken, max(anchor, 0))
    _occupy(result, branch.chain, row, branch.begin, branch.end)
    path = [branch.fork, *branch.chain, branch.join]
    for source, target in itertools.pairwise(path):
        if source is not None and target is not None and layers[target] - layers[source] > 1:
            result.runs[source, target] = row


def _nearest_free(taken: int, anchor: int) -> int:
    """Return the free row nearest to a row; of two equally near the later one."""
    after = taken >> anchor
    down = anchor + (~after & (after + 1)).bit_length() - 1
    free_before = ~taken & ((1 << anchor) - 1)
    up = free_before.bit_length() - 1
    return up if up >= 0 and anchor - up < down - anchor else down


def _run_long_edges(result: Rows, dag: Dag, layers: Sequence[int]) -> None:
    """Assign long edges the row of their target, or of their source, where it is free."""
    long_edges = sorted(
        (layers[target] - layers[source], source, target)
        for source, targets in enumerate(dag.successors)
        for target in targets
        if layers[target] - layers[source] > 1 and (source, target) not in result.runs
    )
    for _, source, target in long_edges:
        between = range(layers[source] + 1, layers[target])
        for row in (result.rows[target], result.rows[source]):
            if not any(result.occupied[layer] >> row & 1 for layer in between):
                _occupy(result, [], row, between.start, between.stop - 1)
                result.runs[source, target] = row
                break
