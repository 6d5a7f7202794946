"""Files and folders that are either whole or not there."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["written_beside"]


@contextmanager
def written_beside(destination: Path) -> Iterator[Path]:
    """Write beside the destination and take its name at the end.

    Parameters
    ----------
    destination : Path
        A file or a folder, there already or not.

    Yields
    ------
    Path
        Where to write; does not exist yet. When the block raises, it is removed and the
        destination stays as it was.
    """
    holder = Path(tempfile.mkdtemp(prefix=".kuiper-", dir=destination.parent))
    try:
        partial = holder / "new"
        yield partial
        if destination.is_dir():
            destination.rename(holder / "old")
            try:
                partial.rename(destination)
            except OSError:
                (holder / "old").rename(destination)
                raise
        else:
            partial.replace(destination)
    finally:
        shutil.rmtree(holder, ignore_errors=True)
