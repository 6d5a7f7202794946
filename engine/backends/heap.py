"""Memory that nobody needs any more, or not soon, given to the system."""

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
    "keeps_memory",
    "release_weights",
    "trim_heap",
    "trim_libraries",
    "unload",
]

_others: Final[list[Callable[[], object]]] = []


def keeps_memory(give_back: Callable[[], object]) -> None:
    """Have `trim_libraries` call what gives back the memory that a library keeps."""
    _others.append(give_back)


def trim_libraries() -> None:
    """Have libraries give back what they keep for the next call, maybe of a kernel now gone."""
    for give_back in _others:
        give_back()


@cache
def _trim() -> Callable[[int], object] | None:
    """The function of glibc; None with another C library."""
    if sys.platform != "linux":
        return None
    trim: Callable[[int], object] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return trim


def trim_heap() -> None:
    """Give memory to the system that libraries took while they were made ready.

    What a library takes to prepare the weights of an operator, and a kernel that was tried and
    not chosen, leaves holes between what is kept: several times the weights of a network in
    all. Takes less than a millisecond.
    """
    trim = _trim()
    if trim is not None:
        trim(0)


def release_weights(operator: RuntimeOperator) -> None:
    """Let go of an operator's weights, which a library has in a layout of its own.

    The pages of the file go to the system, and so does what the layer prepared of them.
    """
    if operator.layer is not None:
        operator.layer.release()
    for attribute in operator.attributes.values():
        unload(attribute.array)


def aligned(array: Array) -> Array:
    """An array as libraries read it: C-contiguous, each number at an address that suits it.

    Where that takes a copy, as of most weights in a file, its pages go to the system.
    """
    found = np.require(array, None, ["C", "A"])
    if found is not array:
        unload(array)
    return found


def unload(array: Array) -> None:
    """Give the pages of a mapped file to the system that an array lies in.

    Whoever looks at the array gets them again, from the file or, sooner, from the system's
    memory of it. Arrays elsewhere are passed over.
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
