"""Output memory that is taken once and written again when nobody looks at it any more.

Fresh memory costs a page fault for every 4 KiB, more than many operators take to compute.
But arrays that were handed out must never change under their holder, so a buffer is used
again only while nobody else refers to it or to a view of it.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

import numpy as np

if TYPE_CHECKING:
    from engine.promotion import DType
    from engine.values import Array

__all__ = ["Buffer", "let_go"]

_NO_MEMORY: Final = np.empty(0)
_changing: Final = threading.Lock()


class Buffer:
    """Memory of one output.

    Parameters
    ----------
    shape : tuple of int
    dtype : dtype
    presented : tuple of int, optional
        Shape to hand out, of as many elements; `shape` without.

    Attributes
    ----------
    memory : ndarray
        Writable, C-contiguous, of `shape`.
    """

    __slots__ = ("__weakref__", "_dtype", "_idle", "_presented", "_shape", "_shown", "memory")

    def __init__(
        self, shape: tuple[int, ...], dtype: DType, presented: tuple[int, ...] | None = None
    ) -> None:
        self._shape, self._dtype = shape, dtype
        self._presented = shape if presented is None else presented
        self.memory = self._shown = _NO_MEMORY
        self._take_memory()
        # How many references there are while nobody else has any differs between Pythons.
        self._idle = self._references()

    def renew(self) -> bool:
        """Make sure that nobody else refers to the memory.

        Returns
        -------
        bool
            Whether new memory had to be taken, because somebody keeps the last result, or
            the memory was let go.
        """
        if self.memory is not _NO_MEMORY and self._references() == self._idle:
            return False
        with _changing:
            self._take_memory()
        return True

    def let_go(self) -> None:
        """Take no memory up until the next result."""
        _buffer_of.pop(id(self.memory), None)
        self.memory = self._shown = _NO_MEMORY

    @property
    def shown(self) -> Array:
        """Read-only view of the memory."""
        return self._shown

    def _references(self) -> tuple[int, int]:
        return sys.getrefcount(self._shown), sys.getrefcount(self.memory)

    def _take_memory(self) -> None:
        self.let_go()
        self.memory = np.empty(self._shape, self._dtype)
        self._shown = self.memory.reshape(self._presented)
        self._shown.flags.writeable = False
        _buffer_of[id(self.memory)] = self


# By the identity of the memory; no other array has it while the buffer holds on to it.
_buffer_of: WeakValueDictionary[int, Buffer] = WeakValueDictionary()


def let_go(array: Array) -> None:
    """Have the buffer that an array lies in, if it lies in one, take no memory up any more.

    Whoever refers to the array has it for as long as they like.
    """
    while isinstance(array.base, np.ndarray):
        array = array.base
    with _changing:  # what is read by one thread may be computed anew by another
        buffer = _buffer_of.get(id(array))
        if buffer is not None and buffer.memory is array:
            buffer.let_go()
