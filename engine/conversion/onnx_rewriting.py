"""Rewrites nodes of an ONNX file that pnnx reads in another sense than ONNX.

Most of these need sizes, which few files have between their nodes. pnnx infers them, and writes
them into the model that it simplified. So such a node gets a note in the copy that pnnx
converts. pnnx keeps notes, though it names everything anew. Where the sizes then show that
it took a node wrong, pnnx converts another copy, in which that node is written otherwise.

Field numbers are those of ``onnx.proto3``.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

from engine.conversion.node_meanings import AT_ONCE, BY_SIZES, NodeSizes
from engine.conversion.onnx_constants import find_floats, find_integers
from engine.conversion.onnx_file import read_input, read_weight_name
from engine.conversion.onnx_nodes import OnnxNode, encode_note, read_node
from engine.conversion.onnx_weights import FilePart, write_parts
from engine.conversion.protobuf import (
    BYTES,
    VARINT,
    Field,
    WireError,
    encode_bytes,
    encode_head,
    encode_integer,
    read_bytes,
    read_fields,
    read_integers,
    read_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from engine.conversion.node_meanings.sizes import Sizes

__all__ = ["find_control_flow", "has_inner_nodes", "prepare_copy", "read_opset", "rewrite_copy"]

_GRAPH, _OPSET, _FUNCTION = 7, 8, 25  # of ModelProto
_OPSET_DOMAIN, _OPSET_VERSION = 1, 2  # of OperatorSetIdProto
_NODE, _INITIALIZER = 1, 5  # of GraphProto
_INPUT: Final = 11  # of GraphProto
_VALUES: Final = (_INPUT, 12, 13)  # of GraphProto: inputs, outputs and what is between
_FUNCTION_NODE: Final = 7  # of FunctionProto
_NODE_TYPE, _ATTRIBUTE = 4, 5  # of NodeProto
_INNER_GRAPHS: Final = (6, 11)  # of AttributeProto
_DIMS, _TENSOR_NAME = 1, 8  # of TensorProto
_VALUE_NAME, _VALUE_TYPE = 1, 2  # of ValueInfoProto
_TENSOR_TYPE, _SHAPE, _DIM, _DIM_VALUE = 1, 2, 1, 1  # of what is in it, from outside to inside
_ELEMENT_TYPE: Final = 1  # of TypeProto.Tensor
_UINT8, _BOOL = 2, 9  # of TensorProto.DataType
_NOTE: Final = "Kuiper Studio, node "
_MOST_NESTED: Final = 16


class _Place(NamedTuple):
    """A node and where it is."""

    number: int
    field: Field
    node: OnnxNode


def has_inner_nodes(copy: Path) -> bool:
    """Whether branches or functions have nodes in them that may have to be rewritten.

    They are at the top of the model that pnnx simplified, where the branch is known.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    try:
        with copy.open("rb") as file:
            return any(
                type_ in AT_ONCE or type_ in BY_SIZES
                for place in _inner_graphs(file)
                for type_ in _types_in(file, place)
            )
    except WireError:  # which pnnx will tell
        return False


def find_control_flow(path: Path) -> str:
    """Return the type of the first node with branches, such as ``If``.

    Return ``""`` if there is none, no such file, or if it is not ONNX.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            _, graph = _find_graph(file)
            for node in _messages(file, graph, _NODE):
                if any(_graphs_of(file, node)):
                    return _type_of(file, node)
    except (FileNotFoundError, WireError):
        pass
    return ""


class _Inner(NamedTuple):
    """The message of a branch or a function, and the number of its field for nodes."""

    place: Field
    number: int


def _inner_graphs(file: BinaryIO) -> Iterator[_Inner]:
    for field in read_fields(file, 0, file.seek(0, 2)):
        if field.wire != BYTES:
            continue
        if field.number == _FUNCTION:
            yield _Inner(field, _FUNCTION_NODE)
        elif field.number == _GRAPH:
            for node in _messages(file, field, _NODE):
                yield from _graphs_of(file, node)


def _graphs_of(file: BinaryIO, node: Field) -> Iterator[_Inner]:
    for attribute in _messages(file, node, _ATTRIBUTE):
        for number in _INNER_GRAPHS:
            for graph in _messages(file, attribute, number):
                yield _Inner(graph, _NODE)


def _types_in(file: BinaryIO, inner: _Inner, depth: int = 0) -> Iterator[str]:
    """Yield the types of the nodes of a branch or a function, and of those in them."""
    for node in _messages(file, inner.place, inner.number):
        yield _type_of(file, node)
        if depth < _MOST_NESTED:
            for graph in _graphs_of(file, node):
                yield from _types_in(file, graph, depth + 1)


def _type_of(file: BinaryIO, node: Field) -> str:
    for field in _messages(file, node, _NODE_TYPE):
        return read_text(file, field)
    return ""


def prepare_copy(copy: Path, prepared: Path) -> bool:
    """Rewrite nodes for which no sizes are needed, and give notes to those for which they are.

    Inputs of bool, which pnnx cannot read, become those of uint8.

    Parameters
    ----------
    copy : Path
        The ONNX file.
    prepared : Path
        The file to write, where anything changes.

    Returns
    -------
    bool
        Whether it was written.

    Raises
    ------
    OSError
        If a file cannot be read or written.
    """
    try:
        with copy.open("rb") as file:
            opset, graph = _find_graph(file)
            changes = [*_prepare_inputs(file, graph), *_prepare_nodes(file, graph, opset)]
    except WireError:  # which pnnx will tell
        return False
    return _write(copy, graph, changes, prepared)


def rewrite_copy(prepared: Path, simplified: Path, rewritten: Path) -> bool:
    """Rewrite nodes with notes that pnnx took wrong, as their sizes show.

    Parameters
    ----------
    prepared : Path
        The ONNX file that pnnx got.
    simplified : Path
        The ONNX file that it simplified.
    rewritten : Path
        The file to write, where anything changes.

    Returns
    -------
    bool
        Whether it was written.

    Raises
    ------
    OSError
        If a file cannot be read or written.
    """
    try:
        with simplified.open("rb") as file:
            known = _read_sizes(file)
    except (FileNotFoundError, WireError):  # it ended before it simplified the model
        return False
    with prepared.open("rb") as file:
        opset, graph = _find_graph(file)
        floats = find_floats(file, graph)
        changes: list[tuple[Field, bytes]] = []
        for _, field, node in _nodes(file, graph):
            if node.type not in BY_SIZES or node.note not in known:
                continue
            numbers = tuple(map(floats.get, node.inputs))
            sizes = known[node.note]._replace(numbers=numbers)
            if new := BY_SIZES[node.type].rewrite(node, opset, sizes):
                changes.append((field, _encode_nodes(new)))
    return _write(prepared, graph, changes, rewritten)


def read_opset(path: Path) -> int:
    """Read the version of ONNX's operators that a file uses.

    Raises
    ------
    OSError
        If it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return _find_graph(file)[0]
    except WireError as exc:  # pnnx read it
        raise OSError(str(exc)) from exc


def _prepare_nodes(file: BinaryIO, graph: Field, opset: int) -> Iterator[tuple[Field, bytes]]:
    """Yield the fields of nodes that change, and what to write there."""
    integers = cache(lambda: find_integers(file, graph))
    for number, field, node in _nodes(file, graph):
        at_once, by_sizes = AT_ONCE.get(node.type), BY_SIZES.get(node.type)
        if at_once and (new := at_once(node, opset, integers)):
            yield field, _encode_nodes(new)
        elif by_sizes and by_sizes.concerns(node, opset):
            message = read_bytes(file, field)
            note = encode_note(f"{_NOTE}{number}")
            yield field, encode_bytes(_NODE, message + note)


def _prepare_inputs(file: BinaryIO, graph: Field) -> Iterator[tuple[Field, bytes]]:
    """Yield the inputs of bool, and what to write there; the casts come before all nodes."""
    fields = [f for f in read_fields(file, graph.value, graph.end) if f.wire == BYTES]
    weights = {read_weight_name(file, f) for f in fields if f.number == _INITIALIZER}
    casts: list[OnnxNode] = []
    for field in (f for f in fields if f.number == _INPUT):
        given = read_input(file, field)
        if given.dtype != "bool" or given.name in weights:
            continue
        number = f"{given.name}/number"
        casts.append(OnnxNode("Cast", (number,), (given.name,), {"to": _BOOL}))
        # Fields behind others of their numbers replace them, or what is in them.
        dtype = encode_bytes(_TENSOR_TYPE, encode_integer(_ELEMENT_TYPE, _UINT8))
        new = encode_bytes(_VALUE_NAME, number.encode()) + encode_bytes(_VALUE_TYPE, dtype)
        yield field, encode_bytes(_INPUT, read_bytes(file, field) + new)
    if casts:
        yield graph._replace(start=graph.value, end=graph.value), _encode_nodes(casts)


def _find_graph(file: BinaryIO) -> tuple[int, Field]:
    """Return the version of ONNX's operators, and the graph."""
    opset, graph = 1, None
    size = file.seek(0, 2)
    for field in read_fields(file, 0, size):
        if field.wire != BYTES:
            continue
        if field.number == _GRAPH:
            graph = field
        elif field.number == _OPSET:
            domain, version = "", 1
            for each in read_fields(file, field.value, field.end):
                if each.number == _OPSET_DOMAIN:
                    domain = read_text(file, each)
                elif each.number == _OPSET_VERSION and each.wire == VARINT:
                    version = each.value
            if domain in ("", "ai.onnx"):
                opset = version
    if graph is None:
        raise WireError("there is no graph in it")
    return opset, graph


def _nodes(file: BinaryIO, graph: Field) -> Iterator[_Place]:
    """Yield the nodes of ONNX's own operators; those of branches and functions are left out."""
    places = (
        field
        for field in read_fields(file, graph.value, graph.end)
        if field.number == _NODE and field.wire == BYTES
    )
    for number, field in enumerate(places):
        node = read_node(file, field)
        is_onnx = node is not None and node.domain in ("", "ai.onnx")
        if node is not None and is_onnx and node.inputs and node.outputs:
            yield _Place(number, field, node)


def _encode_nodes(nodes: Sequence[OnnxNode]) -> bytes:
    return b"".join(encode_bytes(_NODE, node.encode()) for node in nodes)


def _write(
    source: Path, graph: Field, changes: Sequence[tuple[Field, bytes]], target: Path
) -> bool:
    """Write a file with other fields of its graph; return whether there are any."""
    if not changes:
        return False
    parts: list[bytes | FilePart] = []
    taken = graph.value
    grown = 0
    for field, new in sorted(changes, key=lambda change: change[0].start):
        parts += [FilePart(source, taken, field.start), new]
        grown += len(new) - (field.end - field.start)
        taken = field.end
    head = encode_head(_GRAPH, graph.end - graph.value + grown)
    size = source.stat().st_size
    before = FilePart(source, 0, graph.start)
    write_parts([before, head, *parts, FilePart(source, taken, size)], target)
    return True


def _read_sizes(file: BinaryIO) -> dict[str, NodeSizes]:
    """Return the sizes of inputs and outputs of the nodes with notes, by their notes."""
    _, graph = _find_graph(file)
    sizes: dict[str, Sizes] = {}
    for field in read_fields(file, graph.value, graph.end):
        if field.wire != BYTES:
            continue
        if field.number in _VALUES:
            sizes.update(_read_value(file, field))
        elif field.number == _INITIALIZER:
            sizes.update(_read_weight(file, field))
    known: dict[str, NodeSizes] = {}
    for _, _, node in _nodes(file, graph):
        if node.note.startswith(_NOTE):
            inputs = tuple(map(sizes.get, node.inputs))
            outputs = tuple(map(sizes.get, node.outputs))
            known[node.note] = NodeSizes(inputs, outputs)
    return known


def _read_value(file: BinaryIO, place: Field) -> dict[str, Sizes]:
    """Return the sizes of a value by its name; nothing if not even their number is known."""
    name, sizes = "", None
    for field in read_fields(file, place.value, place.end):
        if field.number == _VALUE_NAME:
            name = read_text(file, field)
        elif field.number == _VALUE_TYPE:
            for kind in _messages(file, field, _TENSOR_TYPE):
                for shape in _messages(file, kind, _SHAPE):
                    dims = _messages(file, shape, _DIM)
                    sizes = tuple(_read_dim(file, dim) for dim in dims)
    return {} if sizes is None else {name: sizes}


def _messages(file: BinaryIO, place: Field, number: int) -> Iterator[Field]:
    for field in read_fields(file, place.value, place.end):
        if field.number == number and field.wire == BYTES:
            yield field


def _read_dim(file: BinaryIO, place: Field) -> int | None:
    for field in read_fields(file, place.value, place.end):
        if field.number == _DIM_VALUE and field.wire == VARINT:
            return field.value
    return None


def _read_weight(file: BinaryIO, place: Field) -> dict[str, Sizes]:
    name = ""
    sizes: list[int] = []
    for field in read_fields(file, place.value, place.end):
        if field.number == _DIMS:
            sizes += read_integers(file, field)
        elif field.number == _TENSOR_NAME:
            name = read_text(file, field)
    return {name: tuple(sizes)}
