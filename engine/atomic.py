"""Files and folders that are either whole or not there.

Whatever is written for the user is written by `written_beside` or `write_file`: under another
name in the same folder, on the disk before it takes its own, and never over something that
nobody asked to replace. What a process that was killed left behind, `engine.leftovers` finds.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sys
import tempfile
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.leftovers import HOLDER_PREFIX, NEW, OLD, noted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["format_os_error", "start_sync", "write_file", "written_beside"]

_WORDS: Final = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would exceed the allowed size",
    errno.EROFS: "the disk is read-only",
    errno.EACCES: "permission was denied",
    errno.EPERM: "permission was denied",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ENOENT: "there is no such file or folder",
    errno.EISDIR: "it is a folder",
    errno.ENOTDIR: "a part of its path is not a folder",
    errno.EBUSY: "it is in use",
}
_OCCUPIED: Final = frozenset({errno.ENOTEMPTY, errno.EEXIST})
_HERE: Final = -100  # AT_FDCWD of Linux
_RENAME_EXCHANGE: Final = 2
_SYNC_FILE_RANGE_WRITE: Final = 2


def format_os_error(error: OSError) -> str:
    """Format a system error in words, without number and path."""
    if error.errno in _WORDS:
        return _WORDS[error.errno]
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:] or "the system gives no reason"


@contextmanager
def written_beside(
    destination: Path,
    *,
    replace: bool = True,
    durable: bool = True,
    check: Callable[[Path], None] | None = None,
) -> Iterator[Path]:
    """Write beside the destination and take its name at the end.

    Parameters
    ----------
    destination : Path
        A file or a folder, there already or not. A link is followed, so that what it points
        at is replaced and not the link.
    replace : bool, optional
        Whether what is there may be replaced. Without, of two that write the same
        destination at the same time only one succeeds.
    durable : bool, optional
        Whether what was written is to be on the disk before it takes the name, so that it is
        whole even where the power goes, and to be found when this process is killed. Not worth
        its time for what can be made again.
    check : callable, optional
        Called with what is to be replaced, right before it is; raises to leave it there.

    Yields
    ------
    Path
        Temporary path, which does not exist yet. If the block raises, it is removed and the
        destination stays unchanged.

    Raises
    ------
    FileExistsError
        If there is something that may not be replaced.
    OSError
        If it cannot be written there, if the destination is a device or a pipe, or if what
        was written is a file and the destination a folder, or the other way round.
    """
    target = Path(os.path.realpath(destination))
    if target.exists() and not (target.is_file() or target.is_dir()):
        raise OSError(errno.EINVAL, "it is a device or a pipe, not a file", str(target))
    holder = Path(tempfile.mkdtemp(prefix=HOLDER_PREFIX, dir=target.parent))
    partial, earlier = holder / NEW, holder / OLD
    with noted(holder, target) if durable else nullcontext():
        try:
            yield partial
            if durable:
                _sync(partial)
            if check is not None and target.exists():
                check(target)
            _publish(partial, target, earlier, replace=replace)
            if durable:
                _sync_folder(target.parent)
        finally:
            # Not even a failure to put it back may cost the user what was there before.
            if not (earlier.exists() and not target.exists()):
                shutil.rmtree(holder, ignore_errors=True)


def write_file(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Write a file, whole or not at all; see `written_beside`.

    Raises
    ------
    OSError
        If it cannot be written; what was there before is there still.
    """
    with written_beside(path, durable=durable) as partial:
        partial.write_bytes(data)


def start_sync(file: int) -> None:
    """Have the system begin to write a file to the disk, and go on at once.

    What is on its way already when `written_beside` waits for the disk is waited for less: of a
    dump of 100 MB in as many files 10 ms instead of 80.

    Parameters
    ----------
    file : int
        Descriptor.
    """
    if (begin := _sync_file_range()) is not None:
        begin(file, 0, 0, _SYNC_FILE_RANGE_WRITE)


@cache
def _sync_file_range() -> Callable[[int, int, int, int], int] | None:
    if sys.platform != "linux":
        return None
    import ctypes

    function = getattr(ctypes.CDLL(None), "sync_file_range", None)
    if function is not None:
        function.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
    return function


def _publish(new: Path, target: Path, earlier: Path, *, replace: bool) -> None:
    """Give what was written its name."""
    if not new.is_dir():
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder", str(target))
        if replace:
            new.replace(target)
        else:
            _name_anew(new, target)
        return
    while True:
        try:
            new.rename(target)  # nothing and an empty folder alike
        except OSError as exc:
            if exc.errno not in _OCCUPIED:
                raise
            if not replace:
                raise FileExistsError(errno.EEXIST, "it exists already", str(target)) from exc
        else:
            return
        try:
            _exchange(new, target, earlier)
        except FileNotFoundError:
            continue  # somebody else was about to replace it
        return


def _name_anew(new: Path, target: Path) -> None:
    """Give a file a name that no other has; of several at the same time one gets it."""
    try:
        os.link(new, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: the name is taken first
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        new.replace(target)


def _exchange(new: Path, target: Path, earlier: Path) -> None:
    """Put a folder in the place of another, which is moved aside."""
    if _swap(new, target):
        return
    target.rename(earlier)
    try:
        new.rename(target)
    except BaseException:
        if not target.exists():
            earlier.rename(target)
        raise


def _swap(one: Path, other: Path) -> bool:
    """Exchange two names at once, so that there is always either; False if it cannot.

    Raises
    ------
    FileNotFoundError
        If one of them is gone.
    """
    if sys.platform != "linux":
        return False
    import ctypes

    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if not rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _RENAME_EXCHANGE):
        return True
    if ctypes.get_errno() == errno.ENOENT:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(other))
    return False  # file systems that cannot


def _sync(path: Path) -> None:
    """Have the disk hold all that was written below a path."""
    if not path.is_dir():
        _sync_file(path)
        return
    for folder, _, files in os.walk(path):
        for name in files:
            _sync_file(os.path.join(folder, name))  # noqa: PTH118 - of many files
        _sync_folder(folder)


def _sync_file(path: str | Path) -> None:
    file = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _sync_folder(path: str | Path) -> None:
    if os.name == "nt":  # which has no names to write
        return
    # There are file systems whose folders cannot be synced; they see to it themselves.
    with contextlib.suppress(OSError):
        _sync_file(path)
