"""Reads and writes the nodes of an ONNX graph.

Field numbers are those of ``onnx.proto3``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, Final

from engine.conversion.protobuf import (
    BYTES,
    VARINT,
    Field,
    encode_bytes,
    encode_float,
    encode_integer,
    read_bytes,
    read_fields,
    read_floats,
    read_integers,
    read_text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.values import Array

    _Number = int | float | str | tuple[int, ...] | tuple[float, ...]
    AttributeValue = _Number | bytes  # bytes are the message of any other attribute

__all__ = ["OnnxNode", "constant_node", "encode_note", "read_node"]

# Of NodeProto
_INPUT, _OUTPUT, _TYPE, _ATTRIBUTE, _NOTE, _DOMAIN = 1, 2, 4, 5, 6, 7
# Of AttributeProto
_NAME, _FLOAT, _INTEGER, _TEXT, _FLOATS, _INTEGERS, _KIND = 1, 2, 3, 4, 7, 8, 20
_TENSOR: Final = 5
_FLOAT_KIND, _INTEGER_KIND, _TEXT_KIND, _TENSOR_KIND = 1, 2, 3, 4
_FLOATS_KIND, _INTEGERS_KIND = 6, 7
_DIMS, _DATA_TYPE, _RAW_DATA = 1, 2, 9  # of TensorProto
_DTYPES: Final = {"<f4": 1, "<i8": 7}
_ZEROS: Final[Mapping[int, _Number]] = {
    _FLOAT_KIND: 0.0,
    _INTEGER_KIND: 0,
    _TEXT_KIND: "",
    _FLOATS_KIND: (),
    _INTEGERS_KIND: (),
}
_LONGEST_NODE: Final = 1 << 20  # bytes of a node that may be read as a whole


@dataclass(frozen=True, slots=True)
class OnnxNode:
    """A node.

    Attributes
    ----------
    type : str
    inputs, outputs : tuple of str
        Names; ``""`` where an optional one is left out.
    attributes : mapping of str to int, float, str, tuple of int, tuple of float or bytes
        Bytes are the message of an attribute of another kind.
    note : str
        Its documentation, which pnnx keeps.
    domain : str
    """

    type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    note: str = ""
    domain: str = ""

    def encode(self) -> bytes:
        """Encode the message without its field."""
        return b"".join(
            (
                *(encode_bytes(_INPUT, name.encode()) for name in self.inputs),
                *(encode_bytes(_OUTPUT, name.encode()) for name in self.outputs),
                encode_bytes(_TYPE, self.type.encode()),
                *(
                    encode_bytes(_ATTRIBUTE, _encode_attribute(name, value))
                    for name, value in self.attributes.items()
                ),
                encode_bytes(_DOMAIN, self.domain.encode()) if self.domain else b"",
            )
        )

    def integer(self, name: str, default: int) -> int:
        """Return an attribute that is an integer."""
        value = self.attributes.get(name, default)
        return value if isinstance(value, int) else default

    def integers(self, name: str) -> tuple[int, ...] | None:
        """Return an attribute that is a list of integers; None if it is left out."""
        value = self.attributes.get(name)
        if not isinstance(value, tuple):
            return None
        return tuple(each for each in value if isinstance(each, int))

    def floats(self, name: str) -> tuple[float, ...] | None:
        """Return an attribute that is a list of floats; None if it is left out."""
        value = self.attributes.get(name)
        return tuple(map(float, value)) if isinstance(value, tuple) else None

    def text(self, name: str, default: str) -> str:
        """Return an attribute that is a text."""
        value = self.attributes.get(name, default)
        return value if isinstance(value, str) else default


def read_node(file: BinaryIO, place: Field) -> OnnxNode | None:
    """Read a node; None if it is too large to be of any use, such as one with weights."""
    if place.end - place.value > _LONGEST_NODE:
        return None
    texts: dict[int, str] = {}
    inputs: list[str] = []
    outputs: list[str] = []
    attributes: dict[str, AttributeValue] = {}
    for each in read_fields(file, place.value, place.end):
        if each.number == _ATTRIBUTE and each.wire == BYTES:
            name, value = _read_attribute(file, each)
            attributes[name] = value
        elif each.number in (_INPUT, _OUTPUT):
            (inputs if each.number == _INPUT else outputs).append(read_text(file, each))
        elif each.number in (_TYPE, _DOMAIN):
            texts[each.number] = read_text(file, each)
        elif each.number == _NOTE:  # a stack, which may be long, in files of old exporters
            texts[_NOTE] = read_bytes(file, each).decode("utf-8", "replace")
    return OnnxNode(
        texts.get(_TYPE, ""), tuple(inputs), tuple(outputs), attributes,
        texts.get(_NOTE, ""), texts.get(_DOMAIN, ""),
    )  # fmt: skip


def constant_node(name: str, values: Array) -> OnnxNode:
    """Make a node that gives a constant of float32 or int64."""
    tensor = (
        *(encode_integer(_DIMS, size) for size in values.shape),
        encode_integer(_DATA_TYPE, _DTYPES[values.dtype.str]),
        encode_bytes(_RAW_DATA, values.tobytes()),
    )
    message = (
        encode_bytes(_NAME, b"value"),
        encode_bytes(_TENSOR, b"".join(tensor)),
        encode_integer(_KIND, _TENSOR_KIND),
    )
    return OnnxNode("Constant", (), (name,), {"value": b"".join(message)})


def encode_note(text: str) -> bytes:
    """Encode the field of a node's documentation; behind another one it replaces it."""
    return encode_bytes(_NOTE, text.encode())


def _read_attribute(file: BinaryIO, place: Field) -> tuple[str, AttributeValue]:
    name, kind = "", 0
    integers: list[int] = []
    floats: list[float] = []
    value: _Number | None = None
    for each in read_fields(file, place.value, place.end):
        if each.number == _NAME:
            name = read_text(file, each)
        elif each.number == _KIND and each.wire == VARINT:
            kind = each.value
        elif each.number == _INTEGER and each.wire == VARINT:
            (value,) = read_integers(file, each)
        elif each.number == _FLOAT:
            (value,) = read_floats(file, each)
        elif each.number == _TEXT and each.wire == BYTES:
            value = read_bytes(file, each).decode("utf-8", "replace")
        elif each.number == _INTEGERS:
            integers += read_integers(file, each)
        elif each.number == _FLOATS:
            floats += read_floats(file, each)
    if value is None:  # a writer may leave zeros out
        value = tuple(integers or floats) or _ZEROS.get(kind)
    return name, read_bytes(file, place) if value is None else value


def _encode_attribute(name: str, value: AttributeValue) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, tuple):
        is_floats = any(isinstance(each, float) for each in value)
        kind = _FLOATS_KIND if is_floats else _INTEGERS_KIND
        data = b"".join(
            encode_float(_FLOATS, each)
            if isinstance(each, float)
            else encode_integer(_INTEGERS, each)
            for each in value
        )
    elif isinstance(value, str):
        kind, data = _TEXT_KIND, encode_bytes(_TEXT, value.encode())
    elif isinstance(value, float):
        kind, data = _FLOAT_KIND, encode_float(_FLOAT, value)
    else:
        kind, data = _INTEGER_KIND, encode_integer(_INTEGER, value)
    return encode_bytes(_NAME, name.encode()) + data + encode_integer(_KIND, kind)
