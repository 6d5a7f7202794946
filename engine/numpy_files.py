"""NumPy's files, read without believing them.

Nothing is unpickled, and the size that a header claims is compared with the file's before
memory is taken.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from tokenize import TokenError
from typing import TYPE_CHECKING, BinaryIO, Final

import numpy as np

from engine.atomic import spoken
from engine.errors import FeedError, spell_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from engine.values import Array

__all__ = ["MAX_BYTES", "read_npy", "read_npz"]

MAX_BYTES: Final = 8 << 30
"""No array that is fed is larger."""


def read_npy(path: Path) -> Array:
    """Read an ``.npy``.

    Returns
    -------
    ndarray
        Read-only.

    Raises
    ------
    FeedError
        If it cannot be read, or holds no numbers.
    """
    try:
        with path.open("rb") as file:
            return _read_array(file, path.stat().st_size, str(path))
    except OSError as exc:
        raise FeedError(f"{path} cannot be read: {spoken(exc)}") from exc


def read_npz(
    path: Path, choose: Callable[[tuple[str, ...]], Mapping[str, str]]
) -> dict[str, Array]:
    """Read some arrays of an ``.npz``.

    Parameters
    ----------
    path : Path
    choose : callable
        Takes the names of the arrays, in the file's order, and gives the name of the array
        for each key of the result; what it raises ends the reading.

    Returns
    -------
    dict of str to ndarray
        By the keys of what `choose` gave. Read-only.

    Raises
    ------
    FeedError
        If it cannot be read, or holds no numbers.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = {
                info.filename.removesuffix(".npy"): info
                for info in archive.infolist()
                if info.filename.endswith(".npy")
            }
            loaded = {}
            for key, name in choose(tuple(members)).items():
                with archive.open(members[name]) as file:
                    size = members[name].file_size
                    loaded[key] = _read_array(file, size, f"{name} in {path}")  # type: ignore[arg-type]
            return loaded
    except OSError as exc:
        raise FeedError(f"{path} cannot be read as .npz: {spoken(exc)}") from exc
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as exc:
        reason = str(exc) or "it is cut short"
        raise FeedError(f"{path} cannot be read as .npz: {reason}") from exc


def _read_array(file: BinaryIO, available: int, where: str) -> Array:
    """Read one ``.npy`` whose bytes are at most `available`."""
    try:
        version = np.lib.format.read_magic(file)
        read_header = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }.get(version)
        if read_header is None:
            raise FeedError(f"{where} is of .npy version {version}, which is not supported")
        shape, fortran, dtype = read_header(file)
    except (ValueError, SyntaxError, TokenError, RecursionError, MemoryError) as exc:
        raise FeedError(f"{where} is no .npy array: its header cannot be read") from exc
    if dtype.hasobject or dtype.kind not in "?biufc":
        raise FeedError(f"{where} holds {dtype}, not numbers")
    wanted = math.prod(shape) * dtype.itemsize
    if wanted > available or wanted > MAX_BYTES:
        raise FeedError(
            f"{where} claims {spell_shape(shape)} {dtype}, {wanted} bytes, but has {available}"
        )
    data = file.read(wanted)
    if len(data) != wanted:
        raise FeedError(f"{where} is cut short: {len(data)} of {wanted} bytes")
    array = np.frombuffer(data, dtype=dtype)
    return array.reshape(shape, order="F" if fortran else "C")
