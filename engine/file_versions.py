"""Detects whether a file was changed while it is in use."""

from __future__ import annotations

import errno
import os
import stat
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["FileVersion", "Watched", "open_steady", "read_regular"]

# File times advance by the system's tick, at most a hundredth of a second, and on some file
# systems by two seconds. A file that is written twice within that may look unchanged.
_COARSEST_TICK: Final = 2_000_000_000  # ns
# Without O_NONBLOCK, to open a pipe is to wait for whoever writes to it.
_TO_READ: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class FileVersion(NamedTuple):
    """Identity, size and time of a file, which change when it is written or replaced.

    Attributes
    ----------
    path : Path
    device, inode, size, modified : int
        As in `os.stat`, the time in ns.
    """

    path: Path
    device: int
    inode: int
    size: int
    modified: int

    @classmethod
    def of(cls, path: Path) -> FileVersion | None:
        """Return the version at this path now; None if there is no file."""
        try:
            return cls._from(path, path.stat())
        except OSError:
            return None

    @classmethod
    def opened(cls, path: Path, descriptor: int) -> FileVersion:
        """Return the version of an open file, which may no longer be at this path."""
        return cls._from(path, os.fstat(descriptor))

    @classmethod
    def _from(cls, path: Path, status: os.stat_result) -> FileVersion:
        return cls(path, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)

    def is_current(self) -> bool:
        """Return whether the file at the path is still this version."""
        return self == FileVersion.of(self.path)


class Watched:
    """Watches an open file for changes.

    Parameters
    ----------
    path : Path
    descriptor : int
        Of the file, which must stay open.

    Attributes
    ----------
    version : FileVersion
        At the beginning.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self._descriptor = descriptor
        self.version = FileVersion.opened(path, descriptor)
        self._changed = os.fstat(descriptor).st_ctime_ns
        age = time.time_ns() - max(self.version.modified, self._changed)
        self._settled = age > _COARSEST_TICK

    @property
    def was_written(self) -> bool:
        """Return whether it has certainly changed."""
        return FileVersion.opened(self.version.path, self._descriptor) != self.version

    @property
    def is_untouched(self) -> bool:
        """Return whether it has certainly not changed.

        Neither is certain for a file that was renamed or removed, or that was too young at the
        beginning for its times to prove anything.
        """
        return (
            self._settled
            and not self.was_written
            and os.fstat(self._descriptor).st_ctime_ns == self._changed
        )


@contextmanager
def open_steady(path: Path) -> Iterator[BinaryIO]:
    """Open a file that ends to read all of it, and fail if it changes meanwhile.

    Raises
    ------
    OSError
        If it cannot be opened, is a pipe or a device, or changed while the block read it: the
        data may be a mix of two files.
    """
    with _open_regular(path) as file:
        watched = Watched(path, file.fileno())
        yield file
        if watched.was_written:
            raise OSError("it changed while it was read; choose it again")


def read_regular(path: Path, most: int) -> bytes:
    """Read the whole of a file that ends: no pipe, and no device.

    Parameters
    ----------
    path : Path
    most : int
        Bytes that it may have.

    Raises
    ------
    OSError
        If it is no such file, is longer, or cannot be read.
    """
    with _open_regular(path) as file:
        data = file.read(most + 1)
        if len(data) > most:
            raise OSError(errno.EINVAL, f"it has more than {most} bytes", str(path))
        return data


@contextmanager
def _open_regular(path: Path) -> Iterator[BinaryIO]:
    with open(os.open(path, _TO_READ), "rb") as file:  # noqa: PTH123 - of a descriptor
        status = os.fstat(file.fileno())
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, "it is a folder", str(path))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is a device or a pipe, not a file", str(path))
        yield file
