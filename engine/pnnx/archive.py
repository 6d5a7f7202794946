"""The ``.bin`` file: a ZIP archive of stored entries, one for each weight, mapped in place.

Follows StoreZipReader and StoreZipWriter of ncnn's ``tools/pnnx/src/storezip.cpp`` (a4d2ea1,
July 2026). Deviations:

- The directory at the end says where entries are, as in every other ZIP reader; pnnx walks
  from one local header to the next. So archives with data descriptors, which pnnx refuses,
  can be read, and a file cut short is noticed.
- Every offset and size is checked against the file before it is used. Entries that are
  compressed, encrypted, named twice, or that overlap are errors.
- As in pnnx, an entry's own local header says where its bytes begin. It is read when they are
  first asked for, not when the archive is opened: 5000 such headers all over a file of a GB
  that is not in the system's cache took a third of a second, its directory a hundredth.
- Sizes are written as Zip64 only where they need it, which pnnx accepts, and so do older
  readers such as KuiperInfer's. Entries carry the date 1980-01-01: equal weights give equal
  files.
"""

from __future__ import annotations

import mmap
import os
import struct
import zipfile
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.errors import ModelFileError

if TYPE_CHECKING:
    import io
    from collections.abc import Iterable
    from pathlib import Path

    import numpy.typing as npt

__all__ = ["Archive", "directory_of", "write_archive"]

_LOCAL: Final = struct.Struct("<4s5H3L2H")
_CENTRAL: Final = struct.Struct("<4s6H3L5H2L")
_END: Final = struct.Struct("<4s4H2LH")
_END64: Final = struct.Struct("<4sQ2H2L4Q")
_LOCATOR64: Final = struct.Struct("<4sLQL")
_EXTRA: Final = struct.Struct("<2H")
_ALL64: Final = struct.Struct("<2H3Q")  # an extra field with both sizes and the offset
# What is looked at of a central header when all is as usual.
_CENTRAL_FACTS: Final = struct.Struct("<4s4x2H8x2L3H8xL")
_LOCAL_MAGIC: Final = b"PK\x03\x04"
_CENTRAL_MAGIC: Final = b"PK\x01\x02"
_END_MAGIC: Final = b"PK\x05\x06"
_END64_MAGIC: Final = b"PK\x06\x06"
_LOCATOR64_MAGIC: Final = b"PK\x06\x07"
_LONGEST_COMMENT: Final = 0xFFFF
_IN_EXTRA: Final = 0xFFFFFFFF
_ZIP64_ID: Final = 1
_ENCRYPTED: Final = 1
_UTF8: Final = 0x800
_CHUNK: Final = 1 << 24

_DAMAGED: Final = "the file is damaged; copy or export it again"


class Archive:
    """An open ``.bin``: where each entry lies, and views of them.

    The file stays mapped as long as any view of it lives. Safe to use from several threads.

    Parameters
    ----------
    path : Path

    Attributes
    ----------
    path : Path
    entries : dict of str to (int, int)
        Offset and size of each entry's bytes, both within the file; for `view` alone, which
        knows better where an entry of an odd archive begins.

    Raises
    ------
    ModelFileError
        If the file cannot be read or is no sound archive of stored entries.
    """

    __slots__ = (
        "_data", "_descriptor", "_extra", "_lock", "_map", "_shifted", "_unchecked", "entries",
        "path",
    )  # fmt: skip

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries: dict[str, tuple[int, int]] = {}
        self._descriptor = -1
        self._lock = Lock()
        # Of local headers that have not been read: what their extra fields should measure, and,
        # as soon as that matters, the names by offset.
        self._extra: int | None = None
        self._unchecked: dict[int, str] | None = None
        self._shifted: dict[int, int] = {}
        try:
            with _open(path) as file:
                self._descriptor = os.dup(file.fileno())
                self._map = mmap.mmap(self._descriptor, 0, access=mmap.ACCESS_READ)
            self._data = np.frombuffer(self._map, np.uint8)
            self._read_directory()
        except OSError as exc:
            raise ModelFileError(path, f"it cannot be read: {exc.strerror}") from None
        except ValueError as exc:
            raise ModelFileError(path, str(exc)) from None

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def view(self, offset: int, nbytes: int) -> npt.NDArray[np.uint8]:
        """Bytes of an entry, read-only, not copied.

        Parameters
        ----------
        offset, nbytes : int
            From `entries`.

        Raises
        ------
        ModelFileError
            If the entry's local header does not go with the directory.
        """
        if self._extra is not None:
            with self._lock:
                offset = self._checked(offset, self._extra)
        return self._data[offset : offset + nbytes]

    def _checked(self, offset: int, expected: int) -> int:
        """Where the bytes begin that were taken to lie at `offset`."""
        if self._unchecked is None:
            self._unchecked = {begin: name for name, (begin, _) in self.entries.items()}
        key = self._unchecked.get(offset)
        if key is not None:
            name = key.encode()
            header = offset - expected - len(name) - _LOCAL.size
            try:
                extra = _local_extra(self._descriptor, header, name)
            except (_UnusualError, struct.error):
                reason = f"entry {_show(name)} is not where it should be; {_DAMAGED}"
                raise ModelFileError(self.path, reason) from None
            except OSError as exc:
                raise ModelFileError(self.path, f"it cannot be read: {exc.strerror}") from None
            if extra > expected:
                reason = f"entry {_show(name)} reaches into what follows; {_DAMAGED}"
                raise ModelFileError(self.path, reason)
            if extra < expected:
                self._shifted[offset] = offset - expected + extra
            del self._unchecked[offset]
        return self._shifted.get(offset, offset)

    def _read_directory(self) -> None:
        start, size, count = _find_directory(self._map)
        directory = self._map[start : start + size]
        try:
            self.entries, self._extra = _read_as_usual(
                self._descriptor, directory, start, count
            )
        except (_UnusualError, UnicodeDecodeError, OverflowError, struct.error):
            self._read_with_care(directory, start, count)

    def _read_with_care(self, directory: bytes, start: int, count: int) -> None:
        size = len(directory)
        spans: list[tuple[int, int, str]] = []
        position = 0
        while position < size:
            name, header, nbytes, position = _read_entry(directory, position)
            offset = _data_offset(self._map, header, name, start)
            if offset + nbytes > start:
                raise ValueError(f"entry {_show(name)} reaches beyond its end; {_DAMAGED}")
            key = _decode(name)
            if key in self.entries:
                raise ValueError(f"it has two entries named {key!r}; {_DAMAGED}")
            self.entries[key] = (offset, nbytes)
            spans.append((header, offset + nbytes, key))
        if len(spans) != count:
            raise ValueError(f"it lists {len(spans)} entries and counts {count}; {_DAMAGED}")
        spans.sort()
        for (_, end, key), (begin, _, following) in pairwise(spans):
            if begin < end:
                raise ValueError(f"entries {key!r} and {following!r} overlap; {_DAMAGED}")


def _open(path: Path) -> io.FileIO:
    if not path.is_file():
        raise ModelFileError(path, "there is no such file")
    file = path.open("rb", 0)
    if file.seek(0, os.SEEK_END) == 0:
        file.close()
        raise ModelFileError(path, "it is empty; copy or export it again")
    return file


def directory_of(path: Path) -> bytes:
    """What a ``.bin`` says of its weights: their names, sizes, places and checksums.

    Raises
    ------
    ModelFileError
        If the file cannot be read or has no directory.
    """
    try:
        with _open(path) as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        with data:
            start, size, _ = _find_directory(data)
            return data[start : start + size]
    except OSError as exc:
        raise ModelFileError(path, f"it cannot be read: {exc.strerror}") from None
    except ValueError as exc:
        raise ModelFileError(path, str(exc)) from None


class _UnusualError(Exception):
    """An archive that is not as pnnx writes it: of another kind, or damaged."""


def _read_as_usual(
    descriptor: int, directory: bytes, start: int, count: int
) -> tuple[dict[str, tuple[int, int]], int]:
    """Offset and size of every entry of an archive as pnnx writes it, and how long extras are.

    Entries follow each other without a gap, behind local headers of one size. So where the
    first and the last of these headers are as they should be, and everything between two
    entries is as long as such a header, the others are taken to be alike until their bytes
    are asked for: of a file of many GB nothing is read but its directory.
    """
    entries: dict[str, tuple[int, int]] = {}
    position, end = 0, -1
    extra = 0  # bytes behind the name in every local header
    name = b""
    header = 0
    for _ in range(count):
        (magic, flags, method, packed, size, name_length, extra_length, comment_length,
         header) = _CENTRAL_FACTS.unpack_from(directory, position)  # fmt: skip
        extras = position + _CENTRAL.size + name_length
        name = directory[position + _CENTRAL.size : extras]
        position = extras + extra_length + comment_length
        if size == packed == header == _IN_EXTRA:
            kind, length, size, packed, header = _ALL64.unpack_from(directory, extras)
            if kind != _ZIP64_ID or not _ALL64.size - _EXTRA.size <= length < extra_length:
                raise _UnusualError
        if end < 0:
            end, extra = header, _local_extra(descriptor, header, name)
        if (
            magic != _CENTRAL_MAGIC
            or method
            or flags & ~_UTF8
            or packed != size
            or header != end
        ):
            raise _UnusualError
        offset = header + _LOCAL.size + name_length + extra
        end = offset + size
        entries[name.decode()] = offset, size
    if len(entries) != count or position != len(directory) or (entries and end != start):
        raise _UnusualError
    if entries and _local_extra(descriptor, header, name) != extra:
        raise _UnusualError
    return entries, extra


def _local_extra(descriptor: int, header: int, name: bytes) -> int:
    """Length of the extra field in the local header of an entry.

    Read, not mapped: the system would fetch a good deal of what lies around it as well.
    """
    os.lseek(descriptor, header, os.SEEK_SET)
    data = os.read(descriptor, _LOCAL.size + len(name))
    name_length, extra_length = _LOCAL.unpack_from(data)[-2:]
    if data[:4] != _LOCAL_MAGIC or name_length != len(name) or data[_LOCAL.size :] != name:
        raise _UnusualError
    return int(extra_length)


def _find_directory(data: mmap.mmap) -> tuple[int, int, int]:
    """Offset, size and number of entries of the central directory."""
    end = _find_end(data)
    _, _, _, _, count, size, start, _ = _END.unpack_from(data, end)
    locator = end - _LOCATOR64.size
    if locator >= 0 and data[locator : locator + 4] == _LOCATOR64_MAGIC:
        end = _LOCATOR64.unpack_from(data, locator)[2]
        if end > locator - _END64.size or data[end : end + 4] != _END64_MAGIC:
            raise ValueError(f"its Zip64 directory is not where it should be; {_DAMAGED}")
        *_, count, size, start = _END64.unpack_from(data, end)
    if start + size > end:
        raise ValueError(f"its directory reaches beyond its end; {_DAMAGED}")
    return start, size, count


def _find_end(data: mmap.mmap) -> int:
    """Offset of the record that ends an archive."""
    first = max(0, len(data) - _END.size - _LONGEST_COMMENT)
    end = len(data)
    while True:
        end = data.rfind(_END_MAGIC, first, end)
        if end < 0:
            raise ValueError(
                f"its directory, which belongs at the end, is missing; {_DAMAGED}"
                if data[:2] == b"PK"
                else "it is no weights file of PNNX, which is a ZIP archive"
            )
        # The signature may be part of the comment or of a weight as well.
        comment = end + _END.size
        if comment <= len(data) and comment + _END.unpack_from(data, end)[-1] == len(data):
            return end


def _read_entry(directory: bytes, position: int) -> tuple[bytes, int, int, int]:
    """Name, offset of the local header, size, and where the next entry begins."""
    names = position + _CENTRAL.size
    if names > len(directory) or directory[position : position + 4] != _CENTRAL_MAGIC:
        raise ValueError(f"its directory cannot be read; {_DAMAGED}")
    fields = _CENTRAL.unpack_from(directory, position)
    flags, method, packed, size = fields[3], fields[4], fields[8], fields[9]
    name_length, extra_length, comment_length, header = *fields[10:13], fields[16]
    extras = names + name_length
    following = extras + extra_length + comment_length
    if following > len(directory):
        raise ValueError(f"its directory cannot be read; {_DAMAGED}")
    name = directory[names:extras]
    if method or flags & _ENCRYPTED:
        raise ValueError(
            f"entry {_show(name)} is {'compressed' if method else 'encrypted'}, and weights "
            "can only be mapped as they are; pack the archive again without that"
        )
    if _IN_EXTRA in {size, packed, header}:
        extra = directory[extras : extras + extra_length]
        size, packed, header = _zip64_values(extra, name, (size, packed, header))
    if packed != size:
        raise ValueError(f"entry {_show(name)} has two different sizes; {_DAMAGED}")
    return name, header, size, following


def _zip64_values(
    extra: bytes, name: bytes, values: tuple[int, int, int]
) -> tuple[int, int, int]:
    """Size, packed size and header offset, those too big for 32 bits from the extra field."""
    position = 0
    while position + _EXTRA.size <= len(extra):
        kind, length = _EXTRA.unpack_from(extra, position)
        position += _EXTRA.size
        if kind == _ZIP64_ID:
            wanted = values.count(_IN_EXTRA)
            if wanted * 8 > min(length, len(extra) - position):
                break
            found = iter(struct.unpack_from(f"<{wanted}Q", extra, position))
            size, packed, header = (next(found) if v == _IN_EXTRA else v for v in values)
            return size, packed, header
        position += length
    raise ValueError(f"entry {_show(name)} lacks its Zip64 sizes; {_DAMAGED}")


def _data_offset(data: mmap.mmap, header: int, name: bytes, end: int) -> int:
    """Where the bytes of an entry begin, from its local header."""
    if header + _LOCAL.size > end or data[header : header + 4] != _LOCAL_MAGIC:
        raise ValueError(f"entry {_show(name)} is not where it should be; {_DAMAGED}")
    *_, name_length, extra_length = _LOCAL.unpack_from(data, header)
    names = header + _LOCAL.size
    if data[names : names + name_length] != name:
        raise ValueError(f"entry {_show(name)} has two different names; {_DAMAGED}")
    return int(names + name_length + extra_length)


def _decode(name: bytes) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError:
        raise ValueError(f"entry {_show(name)} is not named in UTF-8; {_DAMAGED}") from None


def _show(name: bytes) -> str:
    return repr(name[:100].decode(errors="backslashreplace"))


def write_archive(path: Path, entries: Iterable[tuple[str, npt.NDArray[np.uint8]]]) -> None:
    """Write a ``.bin``.

    Parameters
    ----------
    path : Path
        Overwritten.
    entries : iterable of (str, ndarray of shape (nbytes,))
        Names and bytes; written one after the other, a piece at a time.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, data in entries:
            info = zipfile.ZipInfo(name)
            info.file_size = data.size  # decides whether the entry needs Zip64
            with archive.open(info, "w") as entry:
                for begin in range(0, data.size, _CHUNK):
                    entry.write(data[begin : begin + _CHUNK].data)
