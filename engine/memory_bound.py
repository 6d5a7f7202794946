"""How much memory values may take: asked before it is taken.

A bound holds for what a session has and for what an operator adds to it. Inside `bounded`
every array that NumPy makes is compared with what is left, and MemoryError, wherever it comes
from, becomes one sentence. What takes no memory when it is made, such as a stretched view,
asks by `require_memory`.

A memory *limit* (see `engine.store`) is another thing: it makes a session evict values and
recompute them. It never refuses anything, the bound does.
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
_UNKNOWN: Final = 8 << 30  # a machine that does not say how much it has


@dataclass(slots=True)
class Room:
    """Memory for values; whoever holds them says how much.

    Attributes
    ----------
    bound : int
        Bytes that values may take in all.
    held : int
        Bytes that they take already.
    refused : int
        Bytes that NumPy was refused last.
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
    """Memory that the present work has; by default that of a machine with nothing held."""
    return _ROOM.get() or Room(default_bound())


class bounded:  # noqa: N801 - a context manager
    """Hold what is done inside to a bound.

    Parameters
    ----------
    room : Room

    Raises
    ------
    MemoryBoundError
        In the place of any MemoryError that comes out of it.
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
    """What lets NumPy use an allocator, and the one that asks whether there is room."""

    def fits(nbytes: int) -> bool:
        present = _ROOM.get()
        if present is None or nbytes <= present.bound - present.held:
            return True
        present.refused = nbytes
        return False

    return get_allocator_setter(), make_checked_allocator(fits)


def require_extent(shape: Sequence[int], dtype: np.dtype[Any]) -> None:
    """Check an array whose elements lie in one another's place, such as a stretched one.

    It takes no memory, but whoever looks at it, or writes it down, goes through all of it.

    Raises
    ------
    LayerError
        If it would be too large for the bound.
    """
    _require(shape, dtype, Room(current_room().bound))


def require_memory(shape: Sequence[int], dtype: np.dtype[Any]) -> None:
    """Check that there is room for an array, before memory is taken or work begun.

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
    """Say that something has no room, and what to do.

    Parameters
    ----------
    what : str
    nbytes : int
        That it would take.
    present : Room
    """
    taken = f", of which {format_bytes(present.held)} are taken" if present.held else ""
    return (
        f"{what} would take {format_bytes(nbytes)}; the memory bound is "
        f"{format_bytes(present.bound)}{taken}: --memory-bound raises it, or Debug → Memory… "
        "in the window"
    )


def format_memory_error(error: MemoryError) -> str:
    """Say what a MemoryError means: beyond the bound, or more than the machine has."""
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    present = current_room()
    refused, present.refused = present.refused, 0
    if refused and shape is None:  # by code of NumPy that does not say more
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
    """Half of the memory that this process may have."""
    return machine_memory() // 2


def machine_memory(process: Path = _PROCESS_GROUPS, groups: Path = _GROUPS) -> int:
    """Bytes of memory that this process may have: the least of what the system allows.

    Parameters
    ----------
    process, groups : Path
        Where Linux says which control groups the process is in, and has their files.
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
    """Limits of the groups that the process is in, and of those around them."""
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
    # In a container the path may be that of the host, of which only the top is to be seen.
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
