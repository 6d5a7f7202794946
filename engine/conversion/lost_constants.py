"""Restores constants that pnnx drops from an ONNX model: single integers of 8 or 16 bits.

They are the zero points of quantised models. pnnx writes ``None`` in their places, and one for
all. The model that it simplified, which it writes beside the result, still has them, and its
nodes have the names of the operators.

Field numbers are those of ``onnx.proto3``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import numpy as np

from engine.conversion.protobuf import (
    BYTES,
    VARINT,
    Field,
    WireError,
    read_bytes,
    read_fields,
    read_integers,
    read_text,
)
from engine.pnnx import Attribute, load, save

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from engine.pnnx import Graph, Operand, Operator
    from engine.values import Array

__all__ = ["restore_constants"]

_LOST: Final = re.compile(r"^unknown constant scalar type")
_GRAPH: Final = 7  # of ModelProto
_NODE, _INITIALIZER = 1, 5  # of GraphProto
_NODE_INPUT, _NODE_NAME = 1, 3  # of NodeProto
_DIMS, _DATA_TYPE, _INTEGERS, _NAME, _RAW_DATA = 1, 2, 5, 8, 9  # of TensorProto
# The dtypes whose constants are lost, by ONNX's numbers; those that a .bin can have.
_DTYPES: Final[Mapping[int, np.dtype[Any]]] = {
    2: np.dtype("u1"),
    3: np.dtype("i1"),
    5: np.dtype("<i2"),
}


def restore_constants(
    lines: Iterable[str], simplified: Path, param: Path, weights: Path
) -> str:
    """Put the constants that pnnx dropped back into a pair.

    Parameters
    ----------
    lines : iterable of str
        pnnx's output, which says whether it dropped any.
    simplified : Path
        The ONNX model that pnnx simplified.
    param, weights : Path
        The pair; both files are replaced if something was dropped.

    Returns
    -------
    str
        A remark on the constants that are still lost; ``""`` if there are none.

    Raises
    ------
    OSError, ModelFileError, ExportError
        If the files cannot be read or written.
    """
    if not any(map(_LOST.match, lines)):
        return ""
    try:
        with simplified.open("rb") as file:
            nodes, constants = _read_model(file)
    except (FileNotFoundError, WireError):
        nodes, constants = {}, {}
    graph = load(param, weights)
    lost = [each for each in graph.operators if _is_lost(each)]
    without = [each for one in lost for each in _restore(graph, one, nodes, constants)]
    save(graph, param, weights)
    if not without:
        return ""
    named = f"{without[0].type} {without[0].name!r}"
    return f"pnnx lost a constant of {named}: what follows from it is wrong"


def _is_lost(operator: Operator) -> bool:
    return (
        operator.type == "pnnx.Expression"
        and not operator.inputs
        and operator.params["expr"].text == "None"
    )


def _restore(
    graph: Graph,
    lost: Operator,
    nodes: Mapping[str, Sequence[str]],
    constants: Mapping[str, Array],
) -> list[Operator]:
    """Give each consumer of a lost constant its own; return the consumers left without."""
    (nothing,) = lost.outputs
    made: dict[str, Operand] = {}
    for consumer in dict.fromkeys(nothing.consumers):
        names = nodes.get(consumer.name, ())
        if len(names) != len(consumer.inputs):
            continue
        for place, name in enumerate(names):
            if consumer.inputs[place] is not nothing or name not in constants:
                continue
            if name not in made:
                made[name] = _add_constant(graph, lost, constants[name])
            consumer.replace_input(place, made[name])
    left = list(nothing.consumers)
    if not left:
        graph.remove_operator(lost)
    return left


def _add_constant(graph: Graph, before: Operator, value: Array) -> Operand:
    count = 0
    while (name := f"pnnx_zero_{count}") in graph.operands or graph.get_operator(name):
        count += 1
    operator = graph.new_operator_before("pnnx.Attribute", name, before)
    operator.attrs["data"] = Attribute.from_array(value)
    operand = graph.new_operand(name)
    operand.shape, operand.dtype = value.shape, operator.attrs["data"].dtype
    operator.add_output(operand)
    return operand


def _read_model(file: BinaryIO) -> tuple[dict[str, list[str]], dict[str, Array]]:
    """Return the inputs of the nodes by their names, and the constants of one element."""
    nodes: dict[str, list[str]] = {}
    constants: dict[str, Array] = {}
    size = file.seek(0, 2)
    for model_field in read_fields(file, 0, size):
        if model_field.number != _GRAPH or model_field.wire != BYTES:
            continue
        for field in read_fields(file, model_field.value, model_field.end):
            if field.wire != BYTES:
                continue
            if field.number == _NODE:
                name, inputs = _read_node(file, field)
                nodes[name] = inputs
            elif field.number == _INITIALIZER:
                constants.update(_read_constant(file, field))
    return nodes, constants


def _read_node(file: BinaryIO, place: Field) -> tuple[str, list[str]]:
    name, inputs = "", []
    for field in read_fields(file, place.value, place.end):
        if field.number == _NODE_NAME:
            name = read_text(file, field)
        elif field.number == _NODE_INPUT:
            inputs.append(read_text(file, field))
    return name, [each for each in inputs if each]  # pnnx leaves the empty ones out


def _read_constant(file: BinaryIO, place: Field) -> dict[str, Array]:
    """Return a constant of one element by its name; nothing for any other weight."""
    name, count, data = "", 1, b""
    dtype: np.dtype[Any] | None = None
    numbers: list[int] = []
    for field in read_fields(file, place.value, place.end):
        if field.number == _DIMS:
            for size in read_integers(file, field):
                count *= size
        elif field.number == _DATA_TYPE and field.wire == VARINT:
            dtype = _DTYPES.get(field.value)
        elif field.number == _NAME:
            name = read_text(file, field)
        elif field.number == _RAW_DATA and field.end - field.value <= np.int16().nbytes:
            data = read_bytes(file, field)
        elif field.number == _INTEGERS and count == 1:
            numbers = read_integers(file, field)
    if dtype is None or count != 1:
        return {}
    if len(data) == dtype.itemsize:
        return {name: np.frombuffer(data, dtype)}
    return {name: np.array(numbers).astype(dtype)} if len(numbers) == 1 else {}
