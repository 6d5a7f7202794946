"""Output memory that is taken once and written again when nobody looks at it any more.

Fresh memory costs a page fault for every 4 KiB, more than many operators take to compute.
But arrays that were handed out must never change under their holder, so a buffer is used
again only while nobody else refers to it or to a view of it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from engine.promotion import DType
    from engine.values import Array

__all__ = ["Buffer"]


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

    __slots__ = ("_idle", "_presented", "_shown", "memory")

    def __init__(
        self, shape: tuple[int, ...], dtype: DType, presented: tuple[int, ...] | None = None
    ) -> None:
        self._presented = shape if presented is None else presented
        self.memory = np.empty(shape, dtype)
        self._shown = self._view()
        # How many references there are while nobody else has any differs between Pythons.
        self._idle = self._references()

    def renew(self) -> bool:
        """Make sure that nobody else refers to the memory.

        Returns
        -------
        bool
            Whether new memory had to be taken, because somebody keeps the last result.
        """
        if self._references() == self._idle:
            return False
        self.memory = np.empty(self.memory.shape, self.memory.dtype)
        self._shown = self._view()
        return True

    @property
    def shown(self) -> Array:
        """Read-only view of the memory."""
        return self._shown

    def _references(self) -> tuple[int, int]:
        return sys.getrefcount(self._shown), sys.getrefcount(self.memory)

    def _view(self) -> Array:
        view = self.memory.reshape(self._presented)
        view.flags.writeable = False
        return view
