"""The running kernel of a process, readable by another process after a crash.

Native code can end a process by a signal, and then nothing in it can report what it was doing.
So it writes operator and kernel, before it enters native code, to memory that it shares with
its parent process.
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
import zlib
from typing import Any, Final, NamedTuple

__all__ = ["Activity", "ActivityNote"]

_NBYTES: Final = 4096
_HEAD: Final = struct.Struct("<I2H")  # CRC-32 of the names, and the length of each
_LONGEST_NAME: Final = (_NBYTES - _HEAD.size) // 2
_NOTHING: Final = bytes(_HEAD.size)


class Activity(NamedTuple):
    """The operator and kernel that a process was running.

    Attributes
    ----------
    operator : str
        Its name.
    kernel : str
        The kernel's name, such as ``ncnn/all-2``.
    """

    operator: str
    kernel: str

    @property
    def library(self) -> str:
        """The backend that the kernel belongs to."""
        return self.kernel.partition("/")[0]


class ActivityNote:
    """Shared memory for one `Activity`.

    It has no name in a file system and disappears with the last process that holds it. A forked
    child shares it; `multiprocessing` passes it as an argument. One thread writes at a time. A
    reader gets None for an incomplete note.

    Examples
    --------
    >>> note = ActivityNote()
    >>> note.write("conv1", "ncnn")
    >>> note.read()
    Activity(operator='conv1', kernel='ncnn')
    """

    _close_descriptor: Final = staticmethod(os.close)  # `os` may be gone at exit

    def __init__(self) -> None:
        self._attach(_create())

    @classmethod
    def inherited(cls, descriptor: int) -> ActivityNote:
        """Open the note of an inherited `descriptor`, and own it."""
        note = cls.__new__(cls)
        note.__setstate__(descriptor)
        return note

    @property
    def descriptor(self) -> int:
        """The descriptor that a child process inherits; not on Windows."""
        if not isinstance(self._handle, int):
            raise OSError("a note has no descriptor on this system")
        return self._handle

    def _attach(self, handle: int | str) -> None:
        self._handle = handle
        self._memory = _map(handle)

    # For `multiprocessing`, which pickles what it gives to a process that it starts. A process
    # that only watches imports this module, and typing-extensions would take most of its time.

    def __getstate__(self) -> object:  # type: ignore[explicit-override]
        if isinstance(self._handle, str):
            return self._handle
        from multiprocessing.reduction import DupFd

        return DupFd(self._handle)

    def __setstate__(self, handle: Any) -> None:  # noqa: ANN401 - not named by `multiprocessing`
        self._attach(handle if isinstance(handle, (int, str)) else handle.detach())

    def __del__(self) -> None:
        if "_memory" in self.__dict__:
            self.close()

    def close(self) -> None:
        """Release the memory; the note can no longer be used."""
        self._memory.close()
        if isinstance(self._handle, int) and self._handle >= 0:
            self._close_descriptor(self._handle)
            self._handle = -1

    def write(self, operator: str, kernel: str) -> None:
        """Note the running kernel; takes about a microsecond.

        Parameters
        ----------
        operator, kernel : str
            Names; very long ones are truncated.
        """
        first = operator.encode(errors="surrogatepass")[:_LONGEST_NAME]
        second = kernel.encode(errors="surrogatepass")[:_LONGEST_NAME]
        names = first + second
        head = _HEAD.pack(zlib.crc32(names, len(first)), len(first), len(second))
        self._memory[: _HEAD.size + len(names)] = head + names

    def clear(self) -> None:
        """Note that no kernel is running."""
        self._memory[: _HEAD.size] = _NOTHING

    def read(self) -> Activity | None:
        """Return the last note; None if no kernel is running or the note is damaged."""
        checksum, first, second = _HEAD.unpack_from(self._memory)
        names = self._memory[_HEAD.size : _HEAD.size + first + second]
        if not names or zlib.crc32(names, first) != checksum:
            return None
        return Activity(
            names[:first].decode(errors="replace"), names[first:].decode(errors="replace")
        )


if sys.platform == "win32":

    def _create() -> str:
        return f"kuiper-studio-{os.getpid()}-{os.urandom(8).hex()}"

    def _map(handle: int | str) -> mmap.mmap:
        return mmap.mmap(-1, _NBYTES, tagname=str(handle))

else:

    def _create() -> int:
        if sys.platform == "linux":
            descriptor = os.memfd_create("kuiper-studio-activity")
        else:
            from tempfile import TemporaryFile

            with TemporaryFile(prefix="kuiper-") as file:
                descriptor = os.dup(file.fileno())
        os.ftruncate(descriptor, _NBYTES)
        return descriptor

    def _map(handle: int | str) -> mmap.mmap:
        return mmap.mmap(int(handle), _NBYTES)
