"""Sizes that decide what a node means, and how far numbers reach in pnnx."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Sizes = tuple[int | None, ...]  # None where a size is open
    Integers = Callable[[], Mapping[str, tuple[int, ...]]]  # the graph's small constants

__all__ = ["LAST", "MOST_WRITTEN", "NodeSizes", "known_sizes"]

LAST: Final = 2**31 - 1
"""From here on, bounds of slices mean the end."""
MOST_WRITTEN: Final = 1 << 24
"""Elements of a constant; a file may state any size."""


class NodeSizes(NamedTuple):
    """The sizes of a node's inputs and outputs.

    Attributes
    ----------
    inputs, outputs : tuple of Sizes or None
        None where not even the number of sizes is known.
    numbers : tuple of tuple of float or None
        What the inputs are, if they are small constants of float32.
    """

    inputs: tuple[Sizes | None, ...]
    outputs: tuple[Sizes | None, ...]
    numbers: tuple[tuple[float, ...] | None, ...] = ()


def known_sizes(sizes: Sizes | None) -> tuple[int, ...] | None:
    """Return sizes of which none is open, or larger than what pnnx counts with."""
    if sizes is None:
        return None
    known = tuple(each for each in sizes if each is not None and 0 <= each <= LAST)
    return known if len(known) == len(sizes) else None
