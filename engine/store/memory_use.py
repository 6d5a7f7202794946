"""How much memory values take: memory that several arrays share counts once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from engine.values import LazyArray

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from engine.values import Array, Held

__all__ = ["MemoryUse", "sizes_of"]


class MemoryUse:
    """Bytes of the memory that arrays lie in, once however many views of it there are.

    Attributes
    ----------
    nbytes : int
    """

    def __init__(self) -> None:
        self.nbytes = 0
        self._sizes: dict[int, int] = {}
        self._counts: dict[int, int] = {}
        self._memory_of: dict[Hashable, tuple[int, ...]] = {}

    def __contains__(self, holder: Hashable) -> bool:
        return holder in self._memory_of

    def add(self, holder: Hashable, sizes: Mapping[int, int]) -> None:
        """Count what a holder's values lie in.

        Parameters
        ----------
        holder : hashable
        sizes : mapping of int to int
            See `sizes_of`; memory that is counted already keeps its first size.
        """
        counts = self._counts
        for key, nbytes in sizes.items():
            if key in counts:
                counts[key] += 1
            else:
                counts[key] = 1
                self._sizes[key] = nbytes
                self.nbytes += nbytes
        self._memory_of[holder] = tuple(sizes)

    def remove(self, holder: Hashable) -> None:
        """Stop counting a holder's values; an unknown holder is passed over."""
        for key in self._memory_of.pop(holder, ()):
            self._counts[key] -= 1
            if not self._counts[key]:
                self.nbytes -= self._sizes.pop(key)
                del self._counts[key]

    def clear(self) -> None:
        """Stop counting everything."""
        self.nbytes = 0
        self._sizes.clear()
        self._counts.clear()
        self._memory_of.clear()

    def sizes_of(self, holder: Hashable) -> dict[int, int]:
        """Bytes of what a holder's values lie in, by identity, also where others share it."""
        return {key: self._sizes[key] for key in self._memory_of[holder]}

    def new_in(self, sizes: Mapping[int, int]) -> int:
        """Bytes that values would add."""
        return sum([nbytes for key, nbytes in sizes.items() if key not in self._sizes])


def sizes_of(values: Iterable[Held]) -> dict[int, int]:
    """Bytes of the memory that values lie in, by its identity; lazy arrays stay as they are."""
    sizes: dict[int, int] = {}
    for value in values:
        if isinstance(value, np.ndarray):
            owner = _owner(value)
            sizes[id(owner)] = owner.nbytes
        elif isinstance(value, LazyArray):
            sizes[id(value)] = math.prod(value.shape) * value.dtype.itemsize
        elif isinstance(value, tuple):
            sizes |= sizes_of(value)
    return sizes


def _owner(array: Array) -> Array:
    """The array whose memory an array lies in."""
    while isinstance(base := array.base, np.ndarray):
        array = base
    return array
