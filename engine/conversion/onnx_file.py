"""Reads the inputs of an ONNX file, and the files with its weights.

ONNX is protobuf: each field has a number, a wire type and a value. Only the needed fields are
read and all others skipped, so a file of many GB takes as long as a small one. Field
numbers are those of ``onnx.proto3``.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

from engine.conversion.source_inputs import SourceInput
from engine.errors import ConversionError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.shapes import ExportedShape

__all__ = ["OnnxFile", "read_onnx"]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_GRAPH: Final = 7  # of ModelProto
_INITIALIZER, _INPUT = 5, 11  # of GraphProto
_SPARSE_INITIALIZER: Final = 15
_VALUE_NAME, _VALUE_TYPE = 1, 2  # of ValueInfoProto
_TENSOR_TYPE: Final = 1  # of TypeProto
_ELEMENT_TYPE, _SHAPE = 1, 2  # of TypeProto.Tensor
_DIM: Final = 1  # of TensorShapeProto
_DIM_VALUE, _DIM_PARAM = 1, 2  # of TensorShapeProto.Dimension
_TENSOR_NAME, _EXTERNAL_DATA = 8, 13  # of TensorProto
_KEY, _VALUE = 1, 2  # of StringStringEntryProto
_LONGEST_NAME: Final = 1 << 16  # bytes
_MOST_INPUTS: Final = 8192
_MOST_DIMS: Final = 64
# pnnx's names of element types by ONNX's numbers.
_DTYPES: Final = {
    1: "f32", 2: "u8", 3: "i8", 5: "i16", 6: "i32", 7: "i64", 9: "bool", 10: "f16", 11: "f64",
    14: "c64", 15: "c128", 16: "bf16",
}  # fmt: skip


class OnnxFile(NamedTuple):
    """The description of an ONNX file.

    Attributes
    ----------
    inputs : tuple of SourceInput
        Inputs that are not weights.
    external : tuple of Path
        Files beside it that hold weights.
    """

    inputs: tuple[SourceInput, ...]
    external: tuple[Path, ...]


class _Field(NamedTuple):
    """A field: its number, and its integer or the position of its bytes."""

    number: int
    wire: int
    value: int  # the integer, or where the bytes begin
    end: int  # where the bytes end


class _WireError(ValueError):
    """The bytes are not protobuf."""


def read_onnx(path: Path) -> OnnxFile:
    """Read the inputs of an ONNX file and the names of files beside it.

    Raises
    ------
    ConversionError
        If it is not an ONNX file, is incomplete, or names a file outside of its folder.
    OSError
        If it cannot be read.
    """
    with path.open("rb") as file:
        try:
            return _read_model(path, file)
        except _WireError as exc:
            raise ConversionError(
                path,
                f"it is not an ONNX model, or it is incomplete ({exc}); copy or export "
                "it again",
            ) from exc


def _read_model(path: Path, file: BinaryIO) -> OnnxFile:
    inputs: dict[str, SourceInput] = {}
    weights: set[str] = set()
    external: dict[Path, None] = {}
    found = False
    for model_field in _fields(file, 0, os.fstat(file.fileno()).st_size):
        if model_field.number != _GRAPH or model_field.wire != _BYTES:
            continue
        found = True
        for field in _fields(file, model_field.value, model_field.end):
            if field.wire != _BYTES:
                continue
            if field.number == _INPUT and len(inputs) < _MOST_INPUTS:
                given = _read_input(file, field)
                inputs[given.name] = given
            elif field.number == _INITIALIZER:
                name, location = _read_weight(file, field)
                weights.add(name)
                if location is not None:
                    external[_beside(path, location)] = None
            elif field.number == _SPARSE_INITIALIZER:
                raise ConversionError(path, "it has sparse weights, which pnnx cannot read")
    if not found:
        raise _WireError("there is no graph in it")
    wanted = (given for name, given in inputs.items() if name not in weights)
    return OnnxFile(tuple(wanted), tuple(external))


def _read_input(file: BinaryIO, place: _Field) -> SourceInput:
    name, shape, dtype = "", None, ""
    for field in _fields(file, place.value, place.end):
        if field.number == _VALUE_NAME:
            name = _text(file, field)
        elif field.number == _VALUE_TYPE and field.wire == _BYTES:
            for kind in _fields(file, field.value, field.end):
                if kind.number == _TENSOR_TYPE and kind.wire == _BYTES:
                    dtype, shape = _read_tensor_type(file, kind)
    return SourceInput(name, shape, dtype)


def _read_tensor_type(file: BinaryIO, place: _Field) -> tuple[str, ExportedShape | None]:
    dtype, shape = "", None
    for field in _fields(file, place.value, place.end):
        if field.number == _ELEMENT_TYPE and field.wire == _VARINT:
            dtype = _DTYPES.get(field.value, "")
        elif field.number == _SHAPE and field.wire == _BYTES:
            dims: list[int | str | None] = []
            for dim in _fields(file, field.value, field.end):
                if dim.number == _DIM and dim.wire == _BYTES:
                    dims.append(_read_dim(file, dim))
                if len(dims) > _MOST_DIMS:
                    raise _WireError("an input has too many dimensions")
            shape = tuple(dims)
    return dtype, shape


def _read_dim(file: BinaryIO, place: _Field) -> int | str | None:
    for field in _fields(file, place.value, place.end):
        if field.number == _DIM_VALUE and field.wire == _VARINT and 0 < field.value < 1 << 31:
            return field.value
        if field.number == _DIM_PARAM and (name := _text(file, field)):
            return f"%{name}"
    return None


def _read_weight(file: BinaryIO, place: _Field) -> tuple[str, str | None]:
    """Return the name of a weight, and the external file that holds it, if any."""
    name, location = "", None
    for field in _fields(file, place.value, place.end):
        if field.number == _TENSOR_NAME:
            name = _text(file, field)
        elif field.number == _EXTERNAL_DATA and field.wire == _BYTES:
            entry = {
                part.number: _text(file, part)
                for part in _fields(file, field.value, field.end)
                if part.number in (_KEY, _VALUE)
            }
            if entry.get(_KEY) == "location":
                location = entry.get(_VALUE, "")
    return name, location


def _beside(path: Path, location: str) -> Path:
    """Return the file of a location, which must be below the folder of the model.

    Raises
    ------
    ConversionError
        If it is elsewhere, or not a file.
    """
    parts = PurePosixPath(location).parts
    below = bool(parts) and ".." not in parts and "\0" not in location
    outside = PurePosixPath(location).is_absolute() or PureWindowsPath(location).drive
    folder = path.parent.resolve()
    found = folder / location if below and not outside else None
    if found is None or not found.resolve().is_relative_to(folder):
        raise ConversionError(path, f"it names weights in {location!r}, outside of its folder")
    if not found.is_file():
        raise ConversionError(
            path,
            f"its weights are in {location!r}, which is missing; put it beside the model",
        )
    return found


def _fields(file: BinaryIO, start: int, end: int) -> Iterator[_Field]:
    """Yield the fields between two positions; the caller may seek the file meanwhile."""
    position = start
    while position < end:
        file.seek(position)
        key, position = _varint(file, position, end)
        number, wire = key >> 3, key & 7
        value = 0
        if wire == _VARINT:
            value, position = _varint(file, position, end)
            yield _Field(number, wire, value, position)
        elif wire in (_FIXED64, _FIXED32):
            position += 8 if wire == _FIXED64 else 4
            yield _Field(number, wire, value, position)
        elif wire == _BYTES:
            length, position = _varint(file, position, end)
            if length > end - position:
                raise _WireError("it ends too soon")
            yield _Field(number, wire, position, position + length)
            position += length
        else:
            raise _WireError("it is no protobuf")


def _varint(file: BinaryIO, position: int, end: int) -> tuple[int, int]:
    """Return an integer stored in 7 bits per byte, and the position after it."""
    value = 0
    for shift in range(0, 70, 7):
        byte = file.read(1) if position < end else b""
        if not byte:
            raise _WireError("it ends too soon")
        position += 1
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value, position
    raise _WireError("it is no protobuf")


def _text(file: BinaryIO, field: _Field) -> str:
    if field.wire != _BYTES or field.end - field.value > _LONGEST_NAME:
        raise _WireError("a name in it is not a text")
    file.seek(field.value)
    return file.read(field.end - field.value).decode("utf-8", "replace")
