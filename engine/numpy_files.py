"""Reads NumPy's files without trusting them.

Nothing is unpickled, and the size in a header is compared with the file's before memory is
allocated.
"""

from __future__ import annotations

import math
import os
import zipfile
import zlib
from functools import lru_cache
from io import BytesIO
from tokenize import TokenError
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple

import numpy as np

from engine.atomic import format_os_error
from engine.errors import FeedError
from engine.file_versions import open_steady
from engine.memory_bound import Room, current_room, format_refusal
from engine.text import format_shape
from engine.values import ArrayMetadata

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from engine.values import Array

__all__ = ["MOST_DIMENSIONS", "describe_npy", "read_npy", "read_npz"]

MOST_DIMENSIONS: Final = 64
"""That an array may have."""
_LENGTHS: Final = {(1, 0): 2, (2, 0): 4}  # bytes of the header's length, by version
_LONGEST_HEADER: Final = 10_000  # bytes, as NumPy has it
_LARGEST: Final = (1 << 63) - 1  # bytes that NumPy can say, axes of size 0 left out


def describe_npy(path: Path) -> ArrayMetadata:
    """Read shape and dtype of an ``.npy``; the file has room for the elements.

    Raises
    ------
    FeedError
        As `read_npy`.
    """
    try:
        with open_steady(path) as file:
            size = os.fstat(file.fileno()).st_size
            return _read_header(file, size, str(path), 0).metadata
    except OSError as exc:
        raise FeedError(f"{path} cannot be read: {format_os_error(exc)}") from exc


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
        with open_steady(path) as file:
            size = os.fstat(file.fileno()).st_size
            return _read_array(file, size, str(path))
    except OSError as exc:
        raise FeedError(f"{path} cannot be read: {format_os_error(exc)}") from exc


def read_npz(
    path: Path, choose: Callable[[tuple[str, ...]], Mapping[str, str]]
) -> dict[str, Array]:
    """Read some arrays of an ``.npz``.

    Parameters
    ----------
    path : Path
    choose : callable
        Takes the names of the arrays in the file's order, and returns the name of the array for
        each key of the result. Its exceptions end the reading.

    Returns
    -------
    dict of str to ndarray
        By the keys that `choose` returned. Read-only.

    Raises
    ------
    FeedError
        If it cannot be read, or holds no numbers.
    """
    try:
        with open_steady(path) as whole, zipfile.ZipFile(whole) as archive:
            members = {
                info.filename.removesuffix(".npy"): info
                for info in archive.infolist()
                if info.filename.endswith(".npy")
            }
            loaded: dict[str, Array] = {}
            for key, name in choose(tuple(members)).items():
                taken = sum(array.nbytes for array in loaded.values())
                where = f"{name} in {path}"
                loaded[key] = _read_member(archive, members[name], where, taken)
            return loaded
    except OSError as exc:
        raise FeedError(f"{path} cannot be read as .npz: {format_os_error(exc)}") from exc
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as exc:
        reason = str(exc) or "it is cut short"
        raise FeedError(f"{path} cannot be read as .npz: {reason}") from exc


def _read_member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, where: str, taken: int
) -> Array:
    try:
        with archive.open(member) as file:
            return _read_array(file, member.file_size, where, taken)  # type: ignore[arg-type]
    except (FeedError, MemoryError):
        raise
    except Exception as exc:
        # Each compression method has its own exceptions, and may not be installed.
        raise FeedError(f"{where} cannot be unpacked: {str(exc) or 'it is cut short'}") from exc


class _Header(NamedTuple):
    """What an ``.npy`` says of its elements, and whether the first axis varies fastest."""

    metadata: ArrayMetadata
    is_fortran: bool


def _read_array(file: BinaryIO, available: int, where: str, taken: int = 0) -> Array:
    """Read one ``.npy`` of at most `available` bytes."""
    metadata, is_fortran = _read_header(file, available, where, taken)
    data = file.read(metadata.nbytes)
    if len(data) != metadata.nbytes:
        raise FeedError(f"{where} is cut short: {len(data)} of {metadata.nbytes} bytes")
    flat = np.frombuffer(data, metadata.dtype)
    return flat.reshape(metadata.shape, order="F" if is_fortran else "C")


def _read_header(file: BinaryIO, available: int, where: str, taken: int) -> _Header:
    """Read what is before the elements, and check that these can be read."""
    try:
        version = np.lib.format.read_magic(file)
        if version not in _LENGTHS:
            raise FeedError(f"{where} is of .npy version {version}, which is not supported")
        length = file.read(_LENGTHS[version])
        rest = file.read(min(int.from_bytes(length, "little"), _LONGEST_HEADER))
        shape, fortran, dtype = _parse_header(version, length + rest)
    except (ValueError, SyntaxError, TokenError, RecursionError, MemoryError) as exc:
        raise FeedError(f"{where} is not a .npy array: its header cannot be read") from exc
    if dtype.hasobject or dtype.kind not in "?biufc":
        raise FeedError(f"{where} holds {dtype}, not numbers")
    _require_shape(shape, dtype, where)
    wanted = math.prod(shape) * dtype.itemsize
    if wanted > available:
        raise FeedError(
            f"{where} claims {format_shape(shape)} {dtype}, {wanted} bytes, but has {available}"
        )
    present = Room(current_room().bound, current_room().held + taken)
    if wanted > present.left:
        raise FeedError(format_refusal(where, wanted, present))
    return _Header(ArrayMetadata(shape, dtype), fortran)


@lru_cache(maxsize=1024)
def _parse_header(
    version: tuple[int, int], header: bytes
) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Parse the header behind the version; many files of a folder have the same."""
    parse = np.lib.format.read_array_header_1_0
    if version != (1, 0):
        parse = np.lib.format.read_array_header_2_0
    return parse(BytesIO(header))


def _require_shape(shape: tuple[object, ...], dtype: np.dtype[Any], where: str) -> None:
    """Refuse shapes in a header that no array can have."""
    if any(type(size) is not int or size < 0 for size in shape):
        raise FeedError(f"{where} claims the impossible shape {shape}")
    if len(shape) > MOST_DIMENSIONS:
        raise FeedError(
            f"{where} claims {len(shape)} dimensions; arrays have {MOST_DIMENSIONS} at most"
        )
    sizes = [size for size in shape if isinstance(size, int) and size]
    if math.prod(sizes) * dtype.itemsize > _LARGEST:
        raise FeedError(f"{where} claims {format_shape(shape)}, more than an array can have")
