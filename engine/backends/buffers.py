"""Output memory that is allocated once and reused when nothing refers to it.

Fresh memory costs a page fault per 4 KiB, more than many operators take to compute. But a
returned array must never change, so a buffer is reused only when nothing else refers to it or
to a view of it.
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

__all__ = ["Buffer", "detach_buffer"]

_NO_MEMORY: Final = np.empty(0)
_changing: Final = threading.Lock()


class Buffer:
    """Memory of one output.

    Parameters
    ----------
    shape : tuple of int
    dtype : dtype
    presented : tuple of int, optional
        Shape of the returned view, with as many elements; default `shape`.

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
        # The number of references of an unused buffer differs between Python versions.
        self._idle = self._references()

    def renew(self) -> bool:
        """Allocate new memory if something else refers to the current one.

        Returns
        -------
        bool
            Whether new memory was allocated, because the last result is still in use or the
            memory was freed.
        """
        if self.memory is not _NO_MEMORY and self._references() == self._idle:
            return False
        with _changing:
            self._take_memory()
        return True

    def release(self) -> None:
        """Free the memory until the next result."""
        _buffer_of.pop(id(self.memory), None)
        self.memory = self._shown = _NO_MEMORY

    @property
    def shown(self) -> Array:
        """Return a read-only view of the memory."""
        return self._shown

    def _references(self) -> tuple[int, int]:
        return sys.getrefcount(self._shown), sys.getrefcount(self.memory)

    def _take_memory(self) -> None:
        self.release()
        self.memory = np.empty(self._shape, self._dtype)
        self._shown = self.memory.reshape(self._presented)
        self._shown.flags.writeable = False
        _buffer_of[id(self.memory)] = self


# By id of the memory, which is unique while the buffer holds it.
_buffer_of: WeakValueDictionary[int, Buffer] = WeakValueDictionary()


def detach_buffer(array: Array) -> None:
    """Detach an array from its buffer, if it is in one, so that its memory can be freed.

    The array itself stays valid.
    """
    while isinstance(array.base, np.ndarray):
        array = array.base
    with _changing:  # one thread may read what another recomputes
        buffer = _buffer_of.get(id(array))
        if buffer is not None and buffer.memory is array:
            buffer.release()
