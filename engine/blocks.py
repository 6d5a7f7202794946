"""Memory for arrays that are read one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from engine.memory_bound import current_room

if TYPE_CHECKING:
    from engine.values import Array

__all__ = ["Blocks"]

_BLOCK: Final = 32 << 20  # bytes; NumPy asks the system for huge pages from 4 MiB on
_ALIGNMENT: Final = 64  # bytes


class Blocks:
    """Cuts arrays from large blocks. Not thread-safe.

    The system takes longer to provide fresh memory page by page than to copy a file into it; a
    block comes in huge pages. A block is freed with the last array that was cut from it.
    """

    def __init__(self) -> None:
        self._block: Array = np.empty(0, np.uint8)

    def take(self, nbytes: int) -> Array:
        """Return memory.

        Parameters
        ----------
        nbytes : int

        Returns
        -------
        ndarray of shape (nbytes,), uint8
            Uninitialised.
        """
        if nbytes > self._block.size:
            self._block = np.empty(max(nbytes, min(_BLOCK, current_room().left)), np.uint8)
        taken = self._block[:nbytes]
        self._block = self._block[-(-nbytes // _ALIGNMENT) * _ALIGNMENT :]
        return taken
