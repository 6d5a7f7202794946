"""Files and folders that are either whole or not there."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["spoken", "written_beside"]

_WORDS: Final = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be larger than allowed",
    errno.EROFS: "the disk can only be read",
    errno.EACCES: "permission was denied",
    errno.EPERM: "permission was denied",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ENOENT: "there is no such file or folder",
    errno.EISDIR: "it is a folder",
    errno.ENOTDIR: "a part of its path is no folder",
    errno.EBUSY: "it is in use",
}


def spoken(error: OSError) -> str:
    """Say in words what the system found wrong, without number and path."""
    if error.errno in _WORDS:
        return _WORDS[error.errno]
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:] or "the system does not say why"


@contextmanager
def written_beside(destination: Path) -> Iterator[Path]:
    """Write beside the destination and take its name at the end.

    Parameters
    ----------
    destination : Path
        A file or a folder, there already or not. A link is followed, so that what it points
        at is replaced and not the link.

    Yields
    ------
    Path
        Where to write; does not exist yet. When the block raises, it is removed and the
        destination stays as it was.

    Raises
    ------
    OSError
        If it cannot be written there, if the destination is a device or a pipe, or if what
        was written is a file and the destination a folder, or the other way round.
    """
    target = Path(os.path.realpath(destination))
    if target.exists() and not (target.is_file() or target.is_dir()):
        raise OSError(errno.EINVAL, "it is a device or a pipe, not a file", str(target))
    holder = Path(tempfile.mkdtemp(prefix=".kuiper-", dir=target.parent))
    partial, earlier = holder / "new", holder / "old"
    try:
        yield partial
        if target.is_dir():
            if not partial.is_dir():
                raise IsADirectoryError(errno.EISDIR, "it is a folder", str(target))
            _exchange(partial, target, earlier)
        else:
            partial.replace(target)
    finally:
        # Not even a failure to put it back may cost the user what was there before.
        if not (earlier.exists() and not target.exists()):
            shutil.rmtree(holder, ignore_errors=True)


def _exchange(new: Path, target: Path, earlier: Path) -> None:
    """Put a folder in the place of another, which is moved aside."""
    try:
        target.rename(earlier)
        new.rename(target)
    except BaseException:
        if earlier.exists() and not target.exists():
            earlier.rename(target)
        raise
