"""Writes arrays in pieces: ``.npy``, ``.npz`` and ``.safetensors``.

Unlike the writers of NumPy and safetensors, these check between pieces whether the export was
cancelled, pass every piece to a callback such as a hash, never copy a whole array, and raise
the system's reason as an OSError.

Elements are written in C order and little-endian, whatever the array's own order is.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import struct
import zipfile
from functools import lru_cache
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import numpy as np

from engine.atomic import start_sync

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from engine.values import Array, ArrayMetadata

    Watch = Callable[[memoryview], None]

__all__ = [
    "SAFETENSORS_DTYPES",
    "is_numeric",
    "pieces",
    "read_safetensors_header",
    "read_safetensors_metadata",
    "write_npy",
    "write_npz",
    "write_safetensors",
]

_PIECE: Final = 1 << 24  # bytes; Linux keeps large pieces of a file in large pages
_BUFFER: Final = 1 << 18  # bytes whose order is reversed at a time
_WORTH_RESERVING: Final = 1 << 16  # bytes
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)

SAFETENSORS_DTYPES: Final = {
    np.dtype(name).newbyteorder("<"): tag
    for name, tag in {
        "bool": "BOOL", "u1": "U8", "i1": "I8", "u2": "U16", "i2": "I16", "u4": "U32",
        "i4": "I32", "u8": "U64", "i8": "I64", "f2": "F16", "f4": "F32", "f8": "F64",
        "c8": "C64",
    }.items()
}  # fmt: skip
"""Safetensors' name of each dtype; only its newer readers know complex64."""

# Limit of its readers: a hostile length must not make them allocate memory.
_LONGEST_HEADER: Final = 100_000_000


def is_numeric(array: Array | ArrayMetadata) -> bool:
    """Return whether an array holds numbers or bools, not objects, text or records."""
    return array.dtype.kind in "biufc"


def pieces(array: Array) -> Iterator[memoryview]:
    """Yield the bytes of an array, in C order and little-endian.

    Parameters
    ----------
    array : ndarray of any shape, numbers of any dtype

    Yields
    ------
    memoryview
        At most 16 MiB each. Views of the array if its layout allows; else of a buffer that the
        next piece overwrites.
    """
    dtype = array.dtype.newbyteorder("<")
    if array.flags.c_contiguous and array.dtype == dtype:
        flat = array.reshape(-1).view(np.uint8).data
        for begin in range(0, len(flat), _PIECE):
            yield flat[begin : begin + _PIECE]
        return
    parts = np.nditer(
        array,
        flags=["external_loop", "buffered", "zerosize_ok"],
        op_flags=["readonly"],
        op_dtypes=dtype,
        order="C",
        casting="equiv",
        buffersize=max(1, _BUFFER // dtype.itemsize),
    )
    for part in parts:
        yield np.ascontiguousarray(part).view(np.uint8).data


def write_npy(path: str | Path, array: Array, watch: Watch | None = None) -> None:
    """Write a new ``.npy`` file.

    Parameters
    ----------
    path : path
        Must not exist yet.
    array : ndarray of any shape, numbers of any dtype
    watch : callable, optional
        Called with each piece of the array's bytes; what it raises ends the writing.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    # No file object: beside other threads, writing a small array costs mostly interpreter
    # steps, after each of which this thread may have to wait.
    file = os.open(path, _NEW_FILE, 0o666)
    try:
        before = _npy_header(array)
        _reserve(file, len(before) + array.nbytes)
        for piece in pieces(array):
            _write_both(file, before, piece)
            before = b""
            if watch is not None:
                watch(piece)
        if before:  # an array without elements
            _write_both(file, before, memoryview(b""))
        start_sync(file)
    finally:
        os.close(file)


def _reserve(file: int, nbytes: int) -> None:
    """Allocate all the disk space of a new file at once.

    That takes a fifth less time on ext4. If it fails, writing reports the reason.
    """
    if nbytes >= _WORTH_RESERVING and hasattr(os, "posix_fallocate"):
        with contextlib.suppress(OSError):
            os.posix_fallocate(file, 0, nbytes)


def write_npz(
    path: Path, arrays: Iterable[tuple[str, Array]], watch: Watch | None = None
) -> None:
    """Write a new ``.npz`` file, not compressed.

    Parameters
    ----------
    path : Path
        Must not exist yet.
    arrays : iterable of (str, ndarray)
        Unique names without ``.npy``, and the arrays in order.
    watch : callable, optional
        Called with each piece of the arrays' bytes; what it raises ends the writing.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    with path.open("xb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays:
            header = _npy_header(array)
            # Without a date: equal arrays give equal files.
            info = zipfile.ZipInfo(f"{name}.npy")
            info.file_size = len(header) + array.nbytes  # decides whether it needs Zip64
            with archive.open(info, "w") as entry:
                entry.write(header)
                for piece in pieces(array):
                    entry.write(piece)
                    if watch is not None:
                        watch(piece)
            start_sync(file.fileno())


def write_safetensors(
    path: Path,
    arrays: Mapping[str, Array | ArrayMetadata],
    metadata: Mapping[str, str] | None = None,
    watch: Watch | None = None,
    load: Callable[[str], Array] | None = None,
) -> None:
    """Write a new ``.safetensors`` file.

    Parameters
    ----------
    path : Path
        Must not exist yet.
    arrays : mapping of str to ndarray, or to ArrayMetadata
        Of dtypes in `SAFETENSORS_DTYPES`; no name may be ``__metadata__``.
    metadata : mapping of str to str, optional
    watch : callable, optional
        Called with each piece of the arrays' bytes; what it raises ends the writing.
    load : callable, optional
        Returns the array of a name that has only metadata, when it is written.

    Raises
    ------
    ValueError
        If the header is larger than readers accept.
    OSError
        If the file cannot be written.
    """
    # The widest elements first, so that every array is aligned to its itemsize.
    ordered = sorted(arrays.items(), key=lambda item: -item[1].dtype.itemsize)
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    for name, array in ordered:
        begin, end = end, end + array.nbytes
        tag = SAFETENSORS_DTYPES[array.dtype.newbyteorder("<")]
        shape, offsets = list(array.shape), [begin, end]
        header[name] = {"dtype": tag, "shape": shape, "data_offsets": offsets}
    text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > _LONGEST_HEADER:
        raise ValueError(f"the header has {len(text)} bytes, readers accept {_LONGEST_HEADER}")
    with path.open("xb", buffering=0) as file:
        _write_all(file, memoryview(struct.pack("<Q", len(text)) + text))
        for name, array in ordered:
            for piece in pieces(load(name) if load is not None else np.asarray(array)):
                _write_all(file, piece)
                if watch is not None:
                    watch(piece)
            start_sync(file.fileno())


def read_safetensors_metadata(path: Path) -> dict[str, str]:
    """Read the metadata of a ``.safetensors`` file.

    Raises
    ------
    ValueError, RecursionError
        If it is not such a file.
    OSError
        If it cannot be read.
    """
    _, header = read_safetensors_header(path)
    try:
        return {str(key): str(value) for key, value in header.get("__metadata__", {}).items()}
    except AttributeError as exc:
        raise ValueError("the header is not a table of texts") from exc


def read_safetensors_header(path: Path) -> tuple[int, dict[str, Any]]:
    """Read the header of a ``.safetensors`` file; what it says is not checked.

    Returns
    -------
    start : int
        Where the arrays begin, in bytes.
    header : dict of str to Any
        By the name of the array.

    Raises
    ------
    ValueError, RecursionError
        If it is not such a file.
    OSError
        If it cannot be read.
    """
    with path.open("rb") as file:
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
        if not 2 <= length <= _LONGEST_HEADER:
            raise ValueError(f"the header has {length} bytes")
        header = json.loads(file.read(length))
    if not isinstance(header, dict):
        raise ValueError("the header is not a table")  # noqa: TRY004 - of the file, not the call
    return 8 + length, header


def _npy_header(array: Array) -> bytes:
    return _header_of(array.dtype.newbyteorder("<"), array.shape)


@lru_cache(maxsize=4096)
def _header_of(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Return NumPy's header, cached because a network has few different shapes."""
    buffer = io.BytesIO()
    descr = np.lib.format.dtype_to_descr(dtype)
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, header)
    return buffer.getvalue()


def _write_both(file: int, before: bytes, data: memoryview) -> None:
    """Write to a descriptor, which may accept a part at a time."""
    if before and hasattr(os, "writev"):  # not on Windows
        written = os.writev(file, [before, data]) - len(before)
        if written < 0:
            before = before[written:]
        else:
            before, data = b"", data[written:]
    while before:
        before = before[os.write(file, before) :]
    while len(data):
        data = data[os.write(file, data) :]


def _write_all(file: BinaryIO | io.FileIO, data: memoryview) -> None:
    """Write all of `data` to an unbuffered file, which may accept a part at a time."""
    while len(data):
        data = data[file.write(data) :]
