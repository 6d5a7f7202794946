"""Puts external weights into the ONNX file that pnnx gets.

pnnx reads external weights from one file of a fixed name only, and none where a shape or a
folded constant needs them. Otherwise it goes on with weights that have no meaning. So the copy
that it gets has all weights in itself. Parts of files describe the copy: nothing is read until
it is written.

Field numbers are those of ``onnx.proto3``.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

from engine.conversion.protobuf import (
    BYTES,
    VARINT,
    Field,
    WireError,
    encode_head,
    read_fields,
    read_text,
)
from engine.errors import ConversionError
from engine.text import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["FilePart", "find_parts", "write_parts"]

# Messages that hold tensors: the messages in each of their fields.
_INNER: Final = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor"},
    "function": {7: "node"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph"},
}
_NAME, _RAW_DATA, _EXTERNAL_DATA, _DATA_LOCATION = 8, 9, 13, 14  # of TensorProto
_KEY, _VALUE = 1, 2  # of StringStringEntryProto
_DEEPEST: Final = 100  # messages in each other, which is also protobuf's limit
_LARGEST: Final = (1 << 31) - 1  # bytes of a protobuf file
_LONGEST_NODE: Final = 1 << 24  # bytes of a node that is searched as a whole
_PIECE: Final = 1 << 20  # bytes copied at once


class FilePart(NamedTuple):
    """A part of a file."""

    path: Path
    start: int
    end: int


def find_parts(path: Path, file: BinaryIO, size: int) -> tuple[bytes | FilePart, ...]:
    """Describe the ONNX file with all weights in itself; empty if it has no external ones.

    Parameters
    ----------
    path : Path
    file : file
        Open at that path.
    size : int
        Bytes of it.

    Raises
    ------
    ConversionError
        If weights are missing, outside of its folder, incomplete or too large.
    WireError
        If it is not protobuf.
    """
    parts = _Inliner(path, file).inline("model", 0, size, 0)
    total = sum(map(_length_of, parts or ()))
    if total > _LARGEST:
        raise ConversionError(
            path,
            f"it has {format_bytes(total)} with its weights, and pnnx reads at most "
            f"{format_bytes(_LARGEST)} of ONNX; export the model as TorchScript instead",
        )
    return tuple(parts or ())


def write_parts(parts: Sequence[bytes | FilePart], target: Path) -> None:
    """Write a file of parts.

    Raises
    ------
    OSError
        If it cannot be written, or a part of a file is gone.
    """
    with target.open("xb") as written:
        for part in parts:
            if isinstance(part, bytes):
                written.write(part)
                continue
            with part.path.open("rb") as file:
                file.seek(part.start)
                for start in range(part.start, part.end, _PIECE):
                    piece = file.read(min(_PIECE, part.end - start))
                    written.write(piece)


def _length_of(part: bytes | FilePart) -> int:
    return len(part) if isinstance(part, bytes) else part.end - part.start


class _Inliner:
    """Finds the external weights of a file and describes it with them in their places.

    Parameters
    ----------
    path : Path
    file : file
        Open at that path.
    """

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path, self._file = path, file
        # In a cache of downloads both files may be links into one other folder.
        self._folders = tuple({path.parent.resolve(): 0, path.resolve().parent: 0})

    def inline(self, kind: str, start: int, end: int, depth: int) -> list[bytes | FilePart]:
        """Describe the bytes of a message; empty if nothing in it is external."""
        if depth > _DEEPEST:
            raise WireError("its graphs are too deep")
        parts: list[bytes | FilePart] = []
        taken = start
        for field, inner in self._inner_fields(kind, start, end):
            if inner == "tensor":
                new = self._inline_tensor(field)
            else:
                new = self.inline(inner, field.value, field.end, depth + 1)
            if new:
                length = sum(map(_length_of, new))
                parts.append(FilePart(self._path, taken, field.start))
                parts += [encode_head(field.number, length), *new]
                taken = field.end
        return [*parts, FilePart(self._path, taken, end)] if parts else []

    def _inner_fields(self, kind: str, start: int, end: int) -> Iterator[tuple[Field, str]]:
        known = _INNER[kind]
        for field in read_fields(self._file, start, end):
            inner = known.get(field.number) if field.wire == BYTES else None
            if inner is not None and (inner != "node" or self._may_hold(field)):
                yield field, inner

    def _may_hold(self, node: Field) -> bool:
        """Whether external weights may be in a node; most nodes are passed over."""
        length = node.end - node.value
        if length > _LONGEST_NODE:
            return True
        self._file.seek(node.value)
        return b"location" in self._file.read(length)

    def _inline_tensor(self, place: Field) -> list[bytes | FilePart]:
        kept: list[bytes | FilePart] = []
        entries: dict[str, str] = {}
        name, is_external = "", True
        for field in read_fields(self._file, place.value, place.end):
            if field.number == _EXTERNAL_DATA and field.wire == BYTES:
                pair = {
                    part.number: read_text(self._file, part)
                    for part in read_fields(self._file, field.value, field.end)
                    if part.number in (_KEY, _VALUE)
                }
                entries[pair.get(_KEY, "")] = pair.get(_VALUE, "")
            elif field.number == _DATA_LOCATION and field.wire == VARINT:
                is_external = bool(field.value)
            elif field.number != _RAW_DATA:
                kept.append(FilePart(self._path, field.start, field.end))
                if field.number == _NAME:
                    name = read_text(self._file, field)
        if "location" not in entries or not is_external:
            return []
        data = self._find_data(name, entries)
        return [*kept, encode_head(_RAW_DATA, data.end - data.start), data]

    def _find_data(self, name: str, entries: dict[str, str]) -> FilePart:
        """Find the bytes of a weight."""
        file = self._beside(entries["location"])
        size = file.stat().st_size
        try:
            start = int(entries.get("offset", "0"))
            end = start + int(entries["length"]) if "length" in entries else size
        except ValueError as exc:
            raise WireError(f"the place of {name!r} is no number") from exc
        if not 0 <= start <= end <= size:
            raise ConversionError(
                self._path,
                f"its weight {name!r} lies beyond the end of {entries['location']!r}, which is "
                "incomplete or of another model; copy or export both again",
            )
        return FilePart(file, start, end)

    def _beside(self, location: str) -> Path:
        """Return the file of a location, which must be below the folder of the model.

        Raises
        ------
        ConversionError
            If it is elsewhere, or not a file.
        """
        parts = PurePosixPath(location).parts
        below = bool(parts) and ".." not in parts and "\0" not in location
        named = below and not (
            PurePosixPath(location).is_absolute() or PureWindowsPath(location).drive
        )
        found = [folder / location for folder in self._folders] if named else []
        present = [place for place in found if place.is_file()] or found[:1]
        if not present or not any(map(present[0].resolve().is_relative_to, self._folders)):
            raise ConversionError(
                self._path, f"it names weights in {location!r}, outside of its folder"
            )
        if not present[0].is_file():
            raise ConversionError(
                self._path,
                f"its weights are in {location!r}, which is missing; put it beside the model",
            )
        return present[0]
