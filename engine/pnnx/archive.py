"""The ``.bin`` file: a ZIP archive with one stored entry per weight, read on demand.

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
- The file is never mapped, because the exporter rewrites it in place. Requested bytes are
  copied to a private file, which is mapped. A weight is accepted if the file has certainly not
  changed since it was opened, or if its CRC-32 is that of the directory.
- Sizes are written as Zip64 only where they need it, which pnnx accepts, and so do older
  readers such as KuiperInfer's. Entries carry the date 1980-01-01: equal weights give equal
  files.
"""

from __future__ import annotations

import os
import struct
import zipfile
import zlib
from functools import cached_property
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from engine.errors import ModelFileError
from engine.file_versions import Watched
from engine.pnnx.private_copy import PrivateCopy, read_at

if TYPE_CHECKING:
    import io
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    import numpy.typing as npt

__all__ = ["Archive", "checksums", "write_archive"]

_LOCAL: Final = struct.Struct("<4s5H3L2H")
_CENTRAL: Final = struct.Struct("<4s6H3L5H2L")
_END: Final = struct.Struct("<4s4H2LH")
_END64: Final = struct.Struct("<4sQ2H2L4Q")
_LOCATOR64: Final = struct.Struct("<4sLQL")
_EXTRA: Final = struct.Struct("<2H")
_ALL64: Final = struct.Struct("<2H3Q")  # an extra field with both sizes and the offset
# The fields of a usual central header that are checked.
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
_SMALL: Final = 4 << 20  # reading these bytes takes less time than building a hundred layers

_DAMAGED: Final = "the file is damaged; copy or export it again"
_WRITTEN: Final = "it changed while it was opened; open the model again"
_LOST: Final = (
    "it changed after the model was opened, before these bytes were read; reload the model"
)


class Archive:
    """An open ``.bin``: the offsets of its entries, and views of them.

    Views are of a private copy and stay valid when the file changes. Thread-safe.

    Parameters
    ----------
    path : Path

    Attributes
    ----------
    path : Path
    entries : dict of str to (int, int)
        Offset and size of each entry's bytes, both within the file; only for `view`, which
        finds the actual start in unusual archives.
    version : FileVersion
        The file's, when it was opened.
    directory : bytes
        The file's directory: names, sizes, offsets and checksums.

    Raises
    ------
    ModelFileError
        If the file cannot be read or is not a valid archive of stored entries.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries: dict[str, tuple[int, int]] = {}
        self._descriptor = -1
        self._lock = Lock()
        # Expected size of the extra fields of unread local headers.
        self._extra: int | None = None
        # The whole file, or a private file for requested bytes.
        self._whole: npt.NDArray[np.uint8] | None = None
        self._private: PrivateCopy | None = None
        self._sure = False  # whether `_whole` is the opened file
        # By the offsets in `entries`:
        self._begins: dict[int, int] = {}  # start of the bytes, by the local header
        self._views: dict[int, npt.NDArray[np.uint8]] = {}
        self._copied: dict[int, int] = {}  # number of copied bytes of an entry
        self._ahead: list[tuple[int, int]] | None = None  # entries to copy, in reverse order
        try:
            with _open(path) as file:
                self._descriptor = os.dup(file.fileno())
            self._watched = Watched(path, self._descriptor)
            self.version = self._watched.version
            self.directory = self._read_directory()
        except OSError as exc:
            raise ModelFileError(path, f"it cannot be read: {exc.strerror}") from None
        except ValueError as exc:
            reason = _WRITTEN if self._watched.was_written else str(exc)
            raise ModelFileError(path, reason) from None
        self._require_same()

    def __del__(self) -> None:
        self._close()

    def keep(self) -> None:
        """Copy what is cheap to copy, when the model is certain to be this one.

        That is all of a small file, and of any file if the file system shares blocks. Otherwise
        weights are copied on demand, so a model of many GB opens as fast as a small one.

        Raises
        ------
        ModelFileError
            If the file has changed since it was opened.
        """
        with self._lock:
            self._take_whole()
            self._sure = self._watched.is_untouched
            self._require_same()
            if self._whole is not None:
                self._close()

    def view(self, offset: int, nbytes: int) -> npt.NDArray[np.uint8]:
        """Return the bytes of an entry.

        Parameters
        ----------
        offset, nbytes : int
            From `entries`.

        Returns
        -------
        ndarray of shape (nbytes,)
            Read-only; a view of the private copy, which is made on first use.

        Raises
        ------
        ModelFileError
            If the entry's local header contradicts the directory, or if the file changed before
            these bytes were read.
        """
        with self._lock:
            known = self._views.get(offset)
            if known is None or known.size != nbytes:
                known = self._views[offset] = self._read(offset, nbytes)
            return known

    def copy_ahead(self, nbytes: int) -> bool:
        """Copy some bytes ahead, before a change of the file can lose them.

        Parameters
        ----------
        nbytes : int
            About how many bytes.

        Returns
        -------
        bool
            Whether there is more. False if something cannot be copied, which is reported when
            it is requested.
        """
        with self._lock:
            if self._ahead is None:
                lies_ready = self._whole is not None
                self._ahead = [] if lies_ready else list(self.entries.values())[::-1]
            try:
                while self._ahead and self._private is not None and nbytes > 0:
                    nbytes -= self._copy_some(self._private, self._ahead, nbytes)
            except (OSError, ModelFileError):
                self._ahead.clear()
                return False
            if not self._ahead and self._private is not None:
                self._close()
            return bool(self._ahead) and self._private is not None

    @property
    def is_kept(self) -> bool:
        """Whether all weights are copied."""
        with self._lock:
            return self._whole is not None or all(
                offset in self._views for offset, nbytes in self.entries.values() if nbytes
            )

    # Helpers; the lock is held

    def _close(self) -> None:
        """Close the file, when everything is copied."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        if self._private is not None:
            self._private.close()

    def _take_whole(self) -> None:
        """Copy the whole file, or create a private one to copy pieces to."""
        size = self.version.size
        try:
            if size <= _SMALL:
                whole = read_at(self._descriptor, 0, size)
                if len(whole) == size:
                    self._whole = np.frombuffer(whole, np.uint8)
                return
            self._private = PrivateCopy(self.path.parent, size)
        except OSError:
            return  # requested bytes will be read into memory, or raise the error
        if self._private.clone(self._descriptor):
            self._whole = self._private.data

    def _copy_some(
        self, private: PrivateCopy, entries: list[tuple[int, int]], most: int
    ) -> int:
        """Copy the next piece of the last entry; return its number of bytes."""
        offset, nbytes = entries[-1]
        left = nbytes - self._copied.get(offset, 0)
        if offset in self._views or left <= most:
            if offset not in self._views:
                self._views[offset] = self._read(offset, nbytes)
            entries.pop()
            return left
        done = nbytes - left
        private.copy(self._descriptor, self._begin(offset) + done, most)
        self._copied[offset] = done + most
        return most

    def _read(self, offset: int, nbytes: int) -> npt.NDArray[np.uint8]:
        """Return the bytes of an entry, verified to be of the opened file."""
        try:
            begin = self._begin(offset)
            if self._whole is not None:
                data, sure = self._whole[begin : begin + nbytes], self._sure
            else:
                data = self._copy(begin, nbytes, self._copied.pop(offset, 0))
                sure = self._watched.is_untouched
        except OSError as exc:
            raise ModelFileError(self.path, f"it cannot be read: {exc.strerror}") from None
        if not sure:
            self._require_stated(offset, data, nbytes)
        return data

    def _copy(self, begin: int, nbytes: int, done: int) -> npt.NDArray[np.uint8]:
        """Copy the rest of a piece of the file; shorter if the file is."""
        if self._private is not None:
            try:
                if not self._private.copy(self._descriptor, begin + done, nbytes - done):
                    return self._private.data[:0]
                return self._private.data[begin : begin + nbytes]
            except OSError:
                self._private = None  # the disk is full, so copy into memory
        return np.frombuffer(read_at(self._descriptor, begin, nbytes), np.uint8)

    def _require_same(self) -> None:
        if self._watched.was_written:
            raise ModelFileError(self.path, _WRITTEN)

    def _require_stated(self, offset: int, data: npt.NDArray[np.uint8], nbytes: int) -> None:
        """Check bytes, which may be another file's, by the checksum of the directory."""
        written = self._whole is None and self._watched.was_written
        name, stated = self._stated[offset]
        # Some writers omit the checksum.
        sound = zlib.crc32(data.data) == stated or not (stated or written)
        if data.size != nbytes or (written and not sound):
            raise ModelFileError(self.path, _LOST)
        if not sound:
            reason = f"entry {_show(name)} has a wrong checksum; {_DAMAGED}"
            raise ModelFileError(self.path, reason)

    @cached_property
    def _stated(self) -> dict[int, tuple[bytes, int]]:
        """Name and CRC-32 of each entry, by its offset."""
        return {
            self.entries[_decode(entry.name)][0]: (entry.name, entry.checksum)
            for entry in _read_entries(self.directory)
        }

    def _begin(self, offset: int) -> int:
        """Return the actual start of the bytes that were expected at `offset`."""
        if self._extra is None:
            return offset
        if offset not in self._begins:
            self._begins[offset] = offset + self._shift(offset, self._extra)
        return self._begins[offset]

    def _shift(self, offset: int, expected: int) -> int:
        """Return how much longer an entry's extra field is than expected."""
        name = self._names[offset].encode()
        try:
            header = offset - expected - len(name) - _LOCAL.size
            extra = _local_extra(self._bytes, header, name)
        except (_UnusualError, struct.error):
            damage = f"entry {_show(name)} is not where it should be; {_DAMAGED}"
        else:
            if extra <= expected:
                return extra - expected
            damage = f"entry {_show(name)} reaches into what follows; {_DAMAGED}"
        lost = self._whole is None and self._watched.was_written
        raise ModelFileError(self.path, _LOST if lost else damage)

    @cached_property
    def _names(self) -> dict[int, str]:
        return {offset: name for name, (offset, _) in self.entries.items()}

    def _bytes(self, offset: int, nbytes: int) -> bytes:
        if self._whole is not None:
            return self._whole[offset : offset + nbytes].tobytes()
        return read_at(self._descriptor, offset, nbytes)

    def _read_directory(self) -> bytes:
        start, size, count = _find_directory(self._bytes, self.version.size)
        directory = self._bytes(start, size)
        try:
            self.entries, self._extra = _read_as_usual(self._bytes, directory, start, count)
        except (_UnusualError, UnicodeDecodeError, OverflowError, struct.error):
            self._read_with_care(directory, start, count)
        return directory

    def _read_with_care(self, directory: bytes, start: int, count: int) -> None:
        size = len(directory)
        spans: list[tuple[int, int, str]] = []
        position = 0
        while position < size:
            entry = _read_entry(directory, position)
            position = entry.following
            offset = _data_offset(self._bytes, entry, start)
            if offset + entry.nbytes > start:
                raise ValueError(
                    f"entry {_show(entry.name)} reaches beyond its end; {_DAMAGED}"
                )
            key = _decode(entry.name)
            if key in self.entries:
                raise ValueError(f"it has two entries named {key!r}; {_DAMAGED}")
            self.entries[key] = (offset, entry.nbytes)
            spans.append((entry.header, offset + entry.nbytes, key))
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


class _UnusualError(Exception):
    """An archive that differs from pnnx's: of another kind, or damaged."""


class _Entry(NamedTuple):
    """An entry of the directory.

    Attributes
    ----------
    name : bytes
    header : int
        Offset of the local header.
    nbytes, checksum : int
    following : int
        Where the next entry begins in the directory.
    """

    name: bytes
    header: int
    nbytes: int
    checksum: int
    following: int


def _read_as_usual(
    read: Callable[[int, int], bytes], directory: bytes, start: int, count: int
) -> tuple[dict[str, tuple[int, int]], int]:
    """Return offset and size of every entry of pnnx's archive, and the size of extra fields.

    Entries follow each other without a gap, behind local headers of one size. So where the
    first and the last of these headers are as they should be, and everything between two
    entries is as long as such a header, the others are taken to be alike until their bytes
    are asked for: of a file of many GB nothing is read but its directory.
    """
    entries: dict[str, tuple[int, int]] = {}
    position, end = 0, -1
    extra = 0  # bytes after the name in every local header
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
            end, extra = header, _local_extra(read, header, name)
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
    if entries and _local_extra(read, header, name) != extra:
        raise _UnusualError
    return entries, extra


def _local_extra(read: Callable[[int, int], bytes], header: int, name: bytes) -> int:
    """Length of the extra field in the local header of an entry."""
    data = read(header, _LOCAL.size + len(name))
    name_length, extra_length = _LOCAL.unpack_from(data)[-2:]
    if data[:4] != _LOCAL_MAGIC or name_length != len(name) or data[_LOCAL.size :] != name:
        raise _UnusualError
    return int(extra_length)


def _find_directory(read: Callable[[int, int], bytes], nbytes: int) -> tuple[int, int, int]:
    """Offset, size and number of entries of the central directory.

    Parameters
    ----------
    read : callable
        From an offset and a number of bytes to those of the file.
    nbytes : int
        Size of the file.
    """
    first, tail, place = _read_end(read, nbytes, 0)  # pnnx writes no comment
    if place < 0:
        first, tail, place = _read_end(read, nbytes, _LONGEST_COMMENT)
    if place < 0:
        raise ValueError(
            f"its directory at the end is missing; {_DAMAGED}"
            if read(0, 2) == b"PK"
            else "it is not a weights file of PNNX, which is a ZIP archive"
        )
    _, _, _, _, count, size, start, _ = _END.unpack_from(tail, place)
    end, locator = first + place, place - _LOCATOR64.size
    if locator >= 0 and tail[locator : locator + 4] == _LOCATOR64_MAGIC:
        end = _LOCATOR64.unpack_from(tail, locator)[2]
        record = read(end, _END64.size) if end <= first + locator - _END64.size else b""
        if len(record) < _END64.size or record[:4] != _END64_MAGIC:
            raise ValueError(f"its Zip64 directory is not where it should be; {_DAMAGED}")
        *_, count, size, start = _END64.unpack(record)
    if start + size > end:
        raise ValueError(f"its directory reaches beyond its end; {_DAMAGED}")
    return start, size, count


def _read_end(
    read: Callable[[int, int], bytes], nbytes: int, comment: int
) -> tuple[int, bytes, int]:
    """Read the last bytes of an archive with a comment of at most so many bytes.

    Returns
    -------
    first : int
        Their offset in the file.
    tail : bytes
    place : int
        Offset of the end record in `tail`; -1 for none.
    """
    first = max(0, nbytes - _LOCATOR64.size - _END.size - comment)
    tail = read(first, nbytes - first)
    return first, tail, _find_end(tail)


def _find_end(tail: bytes) -> int:
    """Return the offset of the end record in an archive's last bytes; -1 for none."""
    end = len(tail)
    while (end := tail.rfind(_END_MAGIC, 0, end)) >= 0:
        # The signature may also be part of the comment or of a weight.
        comment = end + _END.size
        if comment <= len(tail) and comment + _END.unpack_from(tail, end)[-1] == len(tail):
            break
    return end


def checksums(directory: bytes) -> dict[str, int]:
    """CRC-32 of each entry by its name, as an archive's directory states them."""
    return {_decode(entry.name): entry.checksum for entry in _read_entries(directory)}


def _read_entries(directory: bytes) -> Iterator[_Entry]:
    position = 0
    while position < len(directory):
        entry = _read_entry(directory, position)
        position = entry.following
        yield entry


def _read_entry(directory: bytes, position: int) -> _Entry:
    """Read an entry of the directory at an offset."""
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
            "can only be read as they are; pack the archive again without that"
        )
    if _IN_EXTRA in {size, packed, header}:
        extra = directory[extras : extras + extra_length]
        size, packed, header = _zip64_values(extra, name, (size, packed, header))
    if packed != size:
        raise ValueError(f"entry {_show(name)} has two different sizes; {_DAMAGED}")
    return _Entry(name, header, size, fields[7], following)


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


def _data_offset(read: Callable[[int, int], bytes], entry: _Entry, end: int) -> int:
    """Return the start of an entry's bytes, from its local header."""
    data = read(entry.header, _LOCAL.size + len(entry.name)) if entry.header < end else b""
    if len(data) < _LOCAL.size or data[:4] != _LOCAL_MAGIC:
        raise ValueError(f"entry {_show(entry.name)} is not where it should be; {_DAMAGED}")
    *_, name_length, extra_length = _LOCAL.unpack_from(data)
    if name_length != len(entry.name) or data[_LOCAL.size :] != entry.name:
        raise ValueError(f"entry {_show(entry.name)} has two different names; {_DAMAGED}")
    return int(entry.header + _LOCAL.size + name_length + extra_length)


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
