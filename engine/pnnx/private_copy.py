"""A private unnamed copy of a file, made piece by piece.

Mapping the user's file would be unsafe when it is rewritten: reading a page beyond its new end
kills the process (SIGBUS), and reading others returns new bytes. So the mapping is of a private
file of the same size, with holes where nothing is copied yet. It has no name, takes only the
space of what was copied, and disappears with its last view.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import sys
import tempfile
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.cache import cache_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy.typing as npt

__all__ = ["PrivateCopy", "read_at"]

_CHUNK: Final = 1 << 20
_CLONE: Final = 0x40049409  # FICLONE of Linux, which Python's fcntl does not name


if sys.platform == "win32":

    def _pread(descriptor: int, nbytes: int, offset: int) -> bytes:
        os.lseek(descriptor, offset, os.SEEK_SET)
        return os.read(descriptor, nbytes)

    def _pwrite(descriptor: int, data: bytes, offset: int) -> int:
        os.lseek(descriptor, offset, os.SEEK_SET)
        return os.write(descriptor, data)

else:
    _pread, _pwrite = os.pread, os.pwrite


def read_at(descriptor: int, offset: int, nbytes: int) -> bytes:
    """Read some bytes of a file; fewer at its end."""
    data = _pread(descriptor, nbytes, offset)
    if not data or len(data) == nbytes:
        return data
    # Linux reads at most two GB at once.
    return data + read_at(descriptor, offset + len(data), nbytes - len(data))


class PrivateCopy:
    """An unnamed file for the bytes of another one.

    Parameters
    ----------
    folder : Path
        Of the other file. If unnamed files are unsupported or forbidden there, the private file
        is in the user's cache folder or the temporary folder.
    nbytes : int
        Its size.

    Attributes
    ----------
    data : ndarray of uint8 of shape (nbytes,)
        Read-only, mapped; zero where nothing is copied.

    Raises
    ------
    OSError
        If no such file can be created.
    """

    def __init__(self, folder: Path, nbytes: int) -> None:
        self._file = -1
        for file in _files(folder):
            with contextlib.suppress(OSError):
                os.ftruncate(file, nbytes)
                mapped = mmap.mmap(file, nbytes, access=mmap.ACCESS_READ)
                self._file = file
                break
            os.close(file)
        else:
            raise OSError("no folder for a private copy")
        self.data: npt.NDArray[np.uint8] = np.frombuffer(mapped, np.uint8)

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Stop copying; `data` stays valid."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def clone(self, source: int) -> bool:
        """Copy all of another file at once, if the file system shares blocks.

        Returns
        -------
        bool
            Whether it succeeded; if not, nothing has changed.
        """
        if sys.platform != "linux":
            return False
        import fcntl

        try:
            fcntl.ioctl(self._file, _CLONE, source)
        except OSError:
            return False
        return True

    def copy(self, source: int, offset: int, nbytes: int) -> bool:
        """Copy a piece to the same offset.

        Returns
        -------
        bool
            False if the other file is shorter.

        Raises
        ------
        OSError
            If it cannot be read, or this one cannot be written, as when the disk is full.
        """
        if sys.platform == "linux":
            with contextlib.suppress(OSError):  # unsupported by a file system, or between two
                while nbytes:
                    count = os.copy_file_range(source, self._file, nbytes, offset, offset)
                    if not count:
                        return False
                    offset, nbytes = offset + count, nbytes - count
        while nbytes:
            piece = read_at(source, offset, min(nbytes, _CHUNK))
            if not piece:
                return False
            count = _pwrite(self._file, piece, offset)
            offset, nbytes = offset + count, nbytes - count
        return True


def _files(folder: Path) -> Iterator[int]:
    """Yield descriptors of new unnamed files, in one folder after the other."""
    if sys.platform == "linux":
        for place in (folder, cache_folder()):
            with contextlib.suppress(OSError):
                yield os.open(place, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    with contextlib.suppress(OSError), tempfile.TemporaryFile(prefix="kuiper-") as file:
        yield os.dup(file.fileno())
