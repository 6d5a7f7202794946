"""Reads the wire format of protobuf: fields, and where their bytes are.

Each field has a number, a wire type and a value. Nothing but the needed fields is read, and all
others are skipped, so a file of many GB takes as long as a small one.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "BYTES",
    "VARINT",
    "Field",
    "WireError",
    "encode_bytes",
    "encode_float",
    "encode_head",
    "encode_integer",
    "read_bytes",
    "read_fields",
    "read_floats",
    "read_integers",
    "read_text",
]

VARINT, BYTES = 0, 2  # wire types
_FIXED64, _FIXED32 = 1, 5
_LONGEST_TEXT: Final = 1 << 16  # bytes


class Field(NamedTuple):
    """A field: its number, and its integer or the position of its bytes."""

    number: int
    wire: int
    start: int  # where its key begins
    value: int  # the integer, or where the bytes begin
    end: int  # where the bytes end


class WireError(ValueError):
    """The bytes are not protobuf."""


def read_fields(file: BinaryIO, start: int, end: int) -> Iterator[Field]:
    """Yield the fields between two positions; the caller may seek the file meanwhile."""
    position = start
    while position < end:
        begin = position
        file.seek(position)
        key, position = _varint(file, position, end)
        number, wire = key >> 3, key & 7
        value = 0
        if not number:  # as in a file of zeros
            raise WireError("it is no protobuf")
        if wire == VARINT:
            value, position = _varint(file, position, end)
            yield Field(number, wire, begin, value, position)
        elif wire in (_FIXED64, _FIXED32):
            position += 8 if wire == _FIXED64 else 4
            yield Field(number, wire, begin, value, position)
        elif wire == BYTES:
            length, position = _varint(file, position, end)
            if length > end - position:
                raise WireError("it ends too soon")
            yield Field(number, wire, begin, position, position + length)
            position += length
        else:
            raise WireError("it is no protobuf")


def read_bytes(file: BinaryIO, field: Field) -> bytes:
    """Read the bytes of a field.

    Raises
    ------
    WireError
        If it has none.
    """
    if field.wire != BYTES:
        raise WireError("it is no protobuf")
    file.seek(field.value)
    return file.read(field.end - field.value)


def read_integers(file: BinaryIO, field: Field) -> list[int]:
    """Read integers, which protobuf stores one by one or packed, as 64 bits with a sign."""
    if field.wire != BYTES:
        return [_signed(field.value)]
    numbers, position = [], field.value
    file.seek(position)
    while position < field.end:
        number, position = _varint(file, position, field.end)
        numbers.append(_signed(number))
    return numbers


def read_text(file: BinaryIO, field: Field) -> str:
    """Read the text of a field."""
    if field.wire != BYTES or field.end - field.value > _LONGEST_TEXT:
        raise WireError("a name in it is not a text")
    return read_bytes(file, field).decode("utf-8", "replace")


def read_floats(file: BinaryIO, field: Field) -> list[float]:
    """Read float32, which protobuf stores one by one or packed.

    Raises
    ------
    WireError
        If the field has none.
    """
    start = field.value if field.wire == BYTES else field.end - 4
    count, rest = divmod(field.end - start, 4)
    if field.wire not in (BYTES, _FIXED32) or rest:
        raise WireError("it is no protobuf")
    file.seek(start)
    return list(struct.unpack(f"<{count}f", file.read(4 * count)))


def encode_integer(number: int, value: int) -> bytes:
    """Encode a field of an integer, which may be negative."""
    return _encode_varint(number << 3 | VARINT) + _encode_varint(value % (1 << 64))


def encode_float(number: int, value: float) -> bytes:
    """Encode a field of a float32."""
    return _encode_varint(number << 3 | _FIXED32) + struct.pack("<f", value)


def encode_bytes(number: int, data: bytes) -> bytes:
    """Encode a field of bytes, also of a text or a message."""
    return encode_head(number, len(data)) + data


def encode_head(number: int, length: int) -> bytes:
    """Encode what precedes the bytes of a field: its number, its wire type and its length."""
    return _encode_varint(number << 3 | BYTES) + _encode_varint(length)


def _varint(file: BinaryIO, position: int, end: int) -> tuple[int, int]:
    """Return an integer stored in 7 bits per byte, and the position after it."""
    value = 0
    for shift in range(0, 70, 7):
        byte = file.read(1) if position < end else b""
        if not byte:
            raise WireError("it ends too soon")
        position += 1
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value, position
    raise WireError("it is no protobuf")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _encode_varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
