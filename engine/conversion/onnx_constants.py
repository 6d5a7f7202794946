"""Reads the few numbers that nodes of an ONNX graph get as constants, such as axes or scales.

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
    read_floats,
    read_integers,
    read_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.conversion.onnx_nodes import OnnxNode

__all__ = ["find_floats", "find_integers"]

_NODE, _INITIALIZER = 1, 5  # of GraphProto
# Of TensorProto
_DATA_TYPE, _FLOAT_DATA, _INT32_DATA, _INT64_DATA, _NAME, _RAW_DATA = 2, 4, 5, 7, 8, 9
_TENSOR: Final = 5  # of AttributeProto
_INTEGERS: Final[Mapping[int, np.dtype[Any]]] = {6: np.dtype("<i4"), 7: np.dtype("<i8")}
_FLOATS: Final[Mapping[int, np.dtype[Any]]] = {1: np.dtype("<f4")}
_LONGEST: Final = 512  # bytes of a tensor that is read


def find_integers(file: BinaryIO, graph: Field) -> dict[str, tuple[int, ...]]:
    """Find the small weights and constants of int32 and int64 of a graph, by their names."""
    found = _find(file, graph, _INTEGERS)
    for node in _constants(file, graph):
        one, several = map(node.attributes.get, ("value_int", "value_ints"))
        if isinstance(one, int):
            found[node.outputs[0]] = (one,)
        elif isinstance(several, tuple):
            found[node.outputs[0]] = several
    return found


def find_floats(file: BinaryIO, graph: Field) -> dict[str, tuple[float, ...]]:
    """Find the small weights and constants of float32 of a graph, by their names."""
    return _find(file, graph, _FLOATS)


def _find(
    file: BinaryIO, graph: Field, dtypes: Mapping[int, np.dtype[Any]]
) -> dict[str, tuple[Any, ...]]:
    found: dict[str, tuple[Any, ...]] = {}
    for field in _small_fields(file, graph, _INITIALIZER):
        name, values = _read_tensor(file, field, dtypes)
        if values is not None:
            found[name] = values
    for node in _constants(file, graph):
        values = _read_constant(node.attributes.get("value"), dtypes)
        if values is not None:
            found[node.outputs[0]] = values
    return found


def _constants(file: BinaryIO, graph: Field) -> Iterator[OnnxNode]:
    for field in _small_fields(file, graph, _NODE):
        node = read_node(file, field)
        if node is not None and node.type == "Constant":
            yield node


def _small_fields(file: BinaryIO, graph: Field, number: int) -> Iterator[Field]:
    for field in read_fields(file, graph.value, graph.end):
        is_wanted = field.number == number and field.wire == BYTES
        if is_wanted and field.end - field.value <= _LONGEST:
            yield field


def _read_constant(
    tensor: object, dtypes: Mapping[int, np.dtype[Any]]
) -> tuple[Any, ...] | None:
    if not isinstance(tensor, bytes):
        return None
    message = io.BytesIO(tensor)
    for field in read_fields(message, 0, len(tensor)):
        if field.number == _TENSOR and field.wire == BYTES:
            return _read_tensor(message, field, dtypes)[1]
    return None


def _read_tensor(
    file: BinaryIO, place: Field, dtypes: Mapping[int, np.dtype[Any]]
) -> tuple[str, tuple[Any, ...] | None]:
    """Return the name and the numbers of a tensor; None for other dtypes."""
    name, data = "", b""
    dtype: np.dtype[Any] | None = None
    numbers: list[int] | list[float] = []
    for field in read_fields(file, place.value, place.end):
        if field.number == _DATA_TYPE and field.wire == VARINT:
            dtype = dtypes.get(field.value)
        elif field.number == _NAME:
            name = read_text(file, field)
        elif field.number == _RAW_DATA:
            data = read_bytes(file, field)
        elif field.number in (_INT32_DATA, _INT64_DATA):
            numbers = [*numbers, *read_integers(file, field)]
        elif field.number == _FLOAT_DATA:
            numbers = [*numbers, *read_floats(file, field)]
    if dtype is None or len(data) % dtype.itemsize:
        return name, None
    return name, tuple(numbers or np.frombuffer(data, dtype).tolist())
