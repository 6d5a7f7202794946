"""Returns unused memory to the system."""

from __future__ import annotations

import ctypes
import mmap
import sys
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.values import address_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.runtime import RuntimeOperator
    from engine.values import Array

__all__ = [
    "aligned",
    "register_trim",
    "release_weights",
    "trim_heap",
    "trim_libraries",
    "unload",
]

_others: Final[list[Callable[[], object]]] = []


def register_trim(trim: Callable[[], object]) -> None:
    """Register a function that frees a library's spare memory, for `trim_libraries`."""
    _others.append(trim)


def trim_libraries() -> None:
    """Free the memory that libraries keep for the next call."""
    for trim in _others:
        trim()


@cache
def _trim() -> Callable[[int], object] | None:
    """Return glibc's ``malloc_trim``; None with another C library."""
    if sys.platform != "linux":
        return None
    trim: Callable[[int], object] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return trim


def trim_heap() -> None:
    """Return the memory that libraries used during compilation to the system.

    Prepared weights and rejected kernels leave holes in the heap, several times as large as the
    weights of a network. Takes less than a millisecond.
    """
    trim = _trim()
    if trim is not None:
        trim(0)


def release_weights(operator: RuntimeOperator) -> None:
    """Free an operator's weights, which a library has in its own layout.

    The pages of the file go back to the system, and the layer frees its prepared copy.
    """
    if operator.layer is not None:
        operator.layer.release()
    for attribute in operator.attributes.values():
        unload(attribute.array)


def aligned(array: Array) -> Array:
    """Return an array as libraries read it: C-contiguous and aligned.

    If that takes a copy, as for most weights in a file, the pages go back to the system.
    """
    found = np.require(array, None, ["C", "A"])
    if found is not array:
        unload(array)
    return found


def unload(array: Array) -> None:
    """Return the pages of a mapped file under an array to the system.

    Reading the array loads them again, from the system's file cache or the file. Other arrays
    are ignored.
    """
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    base: object = root.base
    mapped = base.obj if isinstance(base, memoryview) else base
    advice = getattr(mmap, "MADV_DONTNEED", None)
    if advice is None or not isinstance(mapped, mmap.mmap) or not array.flags.c_contiguous:
        return
    begin = address_of(array) - address_of(root)
    first = begin // mmap.PAGESIZE * mmap.PAGESIZE
    mapped.madvise(advice, first, begin + array.nbytes - first)
