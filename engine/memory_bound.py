"""The memory bound, which is checked before memory is allocated.

The bound is for the values of a session together with what an operator adds. Inside `bounded`
every array of NumPy is compared with what is left, and any MemoryError becomes a
`MemoryBoundError` with one sentence. Code whose arrays take no memory at first, such as
stretched views, calls `require_memory`.

A memory *limit* (see `engine.store`) is different: it makes a session evict values and
recompute them, and never refuses anything.
"""

from __future__ import annotations

import ctypes
import math
import os
import sys
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from engine.allocator import get_allocator_setter, make_checked_allocator
from engine.errors import LayerError, MemoryBoundError
from engine.text import format_bytes, format_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextvars import Token
    from types import TracebackType

    import numpy as np


__all__ = [
    "Room",
    "bounded",
    "current_room",
    "default_bound",
    "format_memory_error",
    "format_refusal",
    "machine_memory",
    "require_extent",
    "require_memory",
]

_PROCESS_GROUPS: Final = Path("/proc/self/cgroup")
_GROUPS: Final = Path("/sys/fs/cgroup")
_UNKNOWN: Final = 8 << 30  # for a machine of unknown memory


@dataclass(slots=True)
class Room:
    """Memory for values; their owner updates `held`.

    Attributes
    ----------
    bound : int
        Bytes that values may take in all.
    held : int
        Bytes that they take already.
    refused : int
        Bytes of the last array that was refused.
    """

    bound: int
    held: int = 0
    refused: int = 0

    @property
    def left(self) -> int:
        """Bytes that may be added."""
        return self.bound - self.held


_ROOM: Final[ContextVar[Room | None]] = ContextVar("room", default=None)


def current_room() -> Room:
    """Memory of the current work; by default that of a machine without values."""
    return _ROOM.get() or Room(default_bound())


class bounded:  # noqa: N801 - a context manager
    """Apply a bound to a block of code.

    Parameters
    ----------
    room : Room

    Raises
    ------
    MemoryBoundError
        Instead of any MemoryError of the block.
    """

    __slots__ = ("_before", "_room", "_token")

    def __init__(self, room: Room) -> None:
        self._room = room
        self._token: Token[Room | None] | None = None

    def __enter__(self) -> None:
        if _ROOM.get() is not self._room:
            self._token = _ROOM.set(self._room)
            use, allocator = _allocators()
            self._before = use(allocator)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        sentence = format_memory_error(error) if isinstance(error, MemoryError) else ""
        if self._token is not None:
            _allocators()[0](self._before)
            _ROOM.reset(self._token)
        if sentence:
            raise MemoryBoundError(sentence) from error


@cache
def _allocators() -> tuple[Callable[[object], object], object]:
    """Return NumPy's setter of allocators, and the allocator that checks the bound."""

    def fits(nbytes: int) -> bool:
        present = _ROOM.get()
        if present is None or nbytes <= present.bound - present.held:
            return True
        present.refused = nbytes
        return False

    return get_allocator_setter(), make_checked_allocator(fits)


def require_extent(shape: Sequence[int], dtype: np.dtype[Any]) -> None:
    """Check an array with overlapping elements, such as a stretched view.

    It takes no memory, but readers and writers process all of it.

    Raises
    ------
    LayerError
        If it exceeds the bound.
    """
    _require(shape, dtype, Room(current_room().bound))


def require_memory(shape: Sequence[int], dtype: np.dtype[Any]) -> None:
    """Check that there is room for an array, before allocation or long work.

    Raises
    ------
    LayerError
        If there is not.
    """
    _require(shape, dtype, current_room())


def _require(shape: Sequence[int], dtype: np.dtype[Any], present: Room) -> None:
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes > present.left:
        raise LayerError(format_refusal(_format_array(shape, dtype), nbytes, present))


def format_refusal(what: str, nbytes: int, present: Room) -> str:
    """Format the message that something exceeds the bound, and what to do.

    Parameters
    ----------
    what : str
    nbytes : int
        Bytes that it would take.
    present : Room
    """
    taken = f", of which {format_bytes(present.held)} are taken" if present.held else ""
    return (
        f"{what} would take {format_bytes(nbytes)}; the memory bound is "
        f"{format_bytes(present.bound)}{taken}: --memory-bound raises it, or Debug → Memory… "
        "in the window"
    )


def format_memory_error(error: MemoryError) -> str:
    """Format a MemoryError: beyond the bound, or more than the machine has."""
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    present = current_room()
    refused, present.refused = present.refused, 0
    if refused and shape is None:  # NumPy gives no more details
        return format_refusal("an array", refused, present)
    if shape is None or dtype is None:
        return f"not enough memory: {error}" if str(error) else "not enough memory"
    what, nbytes = _format_array(shape, dtype), math.prod(shape) * dtype.itemsize
    if nbytes > present.left:
        return format_refusal(what, nbytes, present)
    return f"not enough memory: {what} would take {format_bytes(nbytes)}"


def _format_array(shape: Sequence[int], dtype: np.dtype[Any]) -> str:
    return f"an array {format_shape(shape)} of {dtype}"


# The machine's memory


@cache
def default_bound() -> int:
    """Return half of the memory that this process may have."""
    return machine_memory() // 2


def machine_memory(process: Path = _PROCESS_GROUPS, groups: Path = _GROUPS) -> int:
    """Return the bytes of memory that this process may have: the lowest of all limits.

    Parameters
    ----------
    process, groups : Path
        Linux's list of the process's control groups, and the folder of their files.
    """
    known = [*_physical(), *_address_space(), *_of_control_groups(process, groups)]
    return min(known, default=_UNKNOWN)


def _physical() -> Iterator[int]:
    if sys.platform == "win32":
        status = _MemoryStatus(ctypes.sizeof(_MemoryStatus))
        if ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
            yield status.total
    else:
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


class _MemoryStatus(ctypes.Structure):
    """``MEMORYSTATUSEX`` of Windows."""

    _fields_ = [  # type: ignore[mutable-override]
        ("length", ctypes.c_uint32),
        ("load", ctypes.c_uint32),
        ("total", ctypes.c_uint64),
        ("rest", ctypes.c_uint64 * 6),
    ]


def _address_space() -> Iterator[int]:
    if sys.platform != "win32":
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        if soft != resource.RLIM_INFINITY:
            yield soft


def _of_control_groups(process: Path, groups: Path) -> Iterator[int]:
    """Yield the limits of the process's groups and of their parents."""
    try:
        lines = process.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, kinds, path = line.split(":", 2)
        if not kinds:  # version 2
            yield from _limits(groups, path, "memory.max")
        elif "memory" in kinds.split(","):
            yield from _limits(groups / "memory", path, "memory.limit_in_bytes")


def _limits(top: Path, path: str, file: str) -> Iterator[int]:
    # In a container the path may be the host's, of which only the top is visible.
    inner = top / path.strip("/")
    for folder in (inner, *inner.parents):
        try:
            text = (folder / file).read_text().strip()
        except OSError:
            text = ""
        if text.isdecimal():
            yield int(text)
        if folder == top:
            return
