"""Reads the few integers that nodes of an ONNX graph get as constants, such as axes.

Field numbers are those of ``onnx.proto3``.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import numpy as np

from engine.conversion.onnx_nodes import read_node
from engine.conversion.protobuf import (
    BYTES,
    VARINT,
    Field,
    read_bytes,
    read_fields,
    read_integers,
    read_text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["find_integers"]

_NODE, _INITIALIZER = 1, 5  # of GraphProto
_DATA_TYPE, _INT32_DATA, _INT64_DATA, _NAME, _RAW_DATA = 2, 5, 7, 8, 9  # of TensorProto
_TENSOR: Final = 5  # of AttributeProto
_DTYPES: Final[Mapping[int, np.dtype[Any]]] = {6: np.dtype("<i4"), 7: np.dtype("<i8")}
_LONGEST: Final = 512  # bytes of a tensor that is read


def find_integers(file: BinaryIO, graph: Field) -> dict[str, tuple[int, ...]]:
    """Find the small weights and constants of int32 and int64 of a graph, by their names."""
    found: dict[str, tuple[int, ...]] = {}
    for field in read_fields(file, graph.value, graph.end):
        if field.wire != BYTES or field.end - field.value > _LONGEST:
            continue
        if field.number == _INITIALIZER:
            name, values = _read_tensor(file, field)
            if values is not None:
                found[name] = values
        elif field.number == _NODE and (node := read_node(file, field)):
            values = _read_constant(node.attributes) if node.type == "Constant" else None
            if values is not None:
                found[node.outputs[0]] = values
    return found


def _read_constant(attributes: Mapping[str, object]) -> tuple[int, ...] | None:
    one, several, tensor = map(attributes.get, ("value_int", "value_ints", "value"))
    if isinstance(one, int):
        return (one,)
    if isinstance(several, tuple):
        return several
    if not isinstance(tensor, bytes):
        return None
    message = io.BytesIO(tensor)
    for field in read_fields(message, 0, len(tensor)):
        if field.number == _TENSOR and field.wire == BYTES:
            return _read_tensor(message, field)[1]
    return None


def _read_tensor(file: BinaryIO, place: Field) -> tuple[str, tuple[int, ...] | None]:
    """Return the name and the integers of a tensor; None for other numbers."""
    name, data = "", b""
    dtype: np.dtype[Any] | None = None
    numbers: list[int] = []
    for field in read_fields(file, place.value, place.end):
        if field.number == _DATA_TYPE and field.wire == VARINT:
            dtype = _DTYPES.get(field.value)
        elif field.number == _NAME:
            name = read_text(file, field)
        elif field.number == _RAW_DATA:
            data = read_bytes(file, field)
        elif field.number in (_INT32_DATA, _INT64_DATA):
            numbers += read_integers(file, field)
    if dtype is None or len(data) % dtype.itemsize:
        return name, None
    return name, tuple(numbers or np.frombuffer(data, dtype).tolist())
