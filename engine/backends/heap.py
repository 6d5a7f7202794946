"""Memory that the C library has back and keeps for later, given to the system."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["trim_heap"]


@cache
def _trim() -> Callable[[int], object] | None:
    """The function of glibc; None with another C library."""
    if sys.platform != "linux":
        return None
    trim: Callable[[int], object] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return trim


def trim_heap() -> None:
    """Give memory to the system that libraries took while they were made ready.

    What a library takes to prepare the weights of an operator, and a program that was tried
    and not chosen, leaves holes between what is kept: several times the weights of a network
    in all. Takes less than a millisecond.
    """
    trim = _trim()
    if trim is not None:
        trim(0)
