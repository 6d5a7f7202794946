"""Reads the inputs of an ONNX file, and where its weights are.

Field numbers are those of ``onnx.proto3``.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

from engine.conversion.onnx_weights import FilePart, find_parts
from engine.conversion.protobuf import BYTES, VARINT, Field, WireError, read_fields, read_text
from engine.conversion.source_inputs import SourceInput
from engine.errors import ConversionError

if TYPE_CHECKING:
    from pathlib import Path

    from engine.shapes import ExportedShape

__all__ = ["OnnxFile", "read_input", "read_onnx", "read_weight_name"]

_GRAPH: Final = 7  # of ModelProto
_INITIALIZER, _INPUT, _OUTPUT = 5, 11, 12  # of GraphProto
_SPARSE_INITIALIZER: Final = 15
_VALUE_NAME, _VALUE_TYPE = 1, 2  # of ValueInfoProto
_TENSOR_TYPE: Final = 1  # of TypeProto
_ELEMENT_TYPE, _SHAPE = 1, 2  # of TypeProto.Tensor
_DIM: Final = 1  # of TensorShapeProto
_DIM_VALUE, _DIM_PARAM = 1, 2  # of TensorShapeProto.Dimension
_TENSOR_NAME: Final = 8  # of TensorProto
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
    parts : tuple of bytes or FilePart
        The file with its external weights in itself; empty if it has none.
    output_count : int
    """

    inputs: tuple[SourceInput, ...]
    parts: tuple[bytes | FilePart, ...]
    output_count: int


def read_onnx(path: Path) -> OnnxFile:
    """Read the inputs of an ONNX file, and where its weights are.

    Raises
    ------
    ConversionError
        If it is not an ONNX file, or it or its weights are incomplete or not beside it.
    OSError
        If it cannot be read.
    """
    with path.open("rb") as file:
        try:
            return _read_model(path, file)
        except WireError as exc:
            raise ConversionError(
                path,
                f"it is not an ONNX model, or it is incomplete ({exc}); copy or export "
                "it again",
            ) from exc


def _read_model(path: Path, file: BinaryIO) -> OnnxFile:
    inputs: dict[str, SourceInput] = {}
    weights: set[str] = set()
    size = os.fstat(file.fileno()).st_size
    found, outputs = False, 0
    for model_field in read_fields(file, 0, size):
        if model_field.number != _GRAPH or model_field.wire != BYTES:
            continue
        found = True
        for field in read_fields(file, model_field.value, model_field.end):
            if field.wire != BYTES:
                continue
            if field.number == _INPUT and len(inputs) < _MOST_INPUTS:
                given = read_input(file, field)
                inputs[given.name] = given
            elif field.number == _OUTPUT:
                outputs += 1
            elif field.number == _INITIALIZER:
                weights.add(read_weight_name(file, field))
            elif field.number == _SPARSE_INITIALIZER:
                raise ConversionError(path, "it has sparse weights, which pnnx cannot read")
    if not found:
        raise WireError("there is no graph in it")
    wanted = (given for name, given in inputs.items() if name not in weights)
    return OnnxFile(tuple(wanted), find_parts(path, file, size), outputs)


def read_weight_name(file: BinaryIO, place: Field) -> str:
    """Read the name of a tensor; ``""`` if it has none."""
    for field in read_fields(file, place.value, place.end):
        if field.number == _TENSOR_NAME:
            return read_text(file, field)
    return ""


def read_input(file: BinaryIO, place: Field) -> SourceInput:
    """Read an input of a graph."""
    name, shape, dtype = "", None, ""
    for field in read_fields(file, place.value, place.end):
        if field.number == _VALUE_NAME:
            name = read_text(file, field)
        elif field.number == _VALUE_TYPE and field.wire == BYTES:
            for kind in read_fields(file, field.value, field.end):
                if kind.number == _TENSOR_TYPE and kind.wire == BYTES:
                    dtype, shape = _read_tensor_type(file, kind)
    return SourceInput(name, shape, dtype)


def _read_tensor_type(file: BinaryIO, place: Field) -> tuple[str, ExportedShape | None]:
    dtype, shape = "", None
    for field in read_fields(file, place.value, place.end):
        if field.number == _ELEMENT_TYPE and field.wire == VARINT:
            dtype = _DTYPES.get(field.value, "")
        elif field.number == _SHAPE and field.wire == BYTES:
            dims: list[int | str | None] = []
            for dim in read_fields(file, field.value, field.end):
                if dim.number == _DIM and dim.wire == BYTES:
                    dims.append(_read_dim(file, dim))
                if len(dims) > _MOST_DIMS:
                    raise WireError("an input has too many dimensions")
            shape = tuple(dims)
    return dtype, shape


def _read_dim(file: BinaryIO, place: Field) -> int | str | None:
    for field in read_fields(file, place.value, place.end):
        if field.number == _DIM_VALUE and field.wire == VARINT and 0 < field.value < 1 << 31:
            return field.value
        if field.number == _DIM_PARAM and (name := read_text(file, field)):
            return f"%{name}"
    return None
