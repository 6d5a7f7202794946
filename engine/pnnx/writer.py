"""Writes pairs like Graph::save of ncnn's ``tools/pnnx/src/ir.cpp``.

(a4d2ea1, July 2026.) Deviations: parameters keep the text they were read with; symbols keep
their names in shapes, where pnnx writes -233; what its reader could not read is not written
but an error; both files appear together and whole, or not at all.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.atomic import written_beside
from engine.errors import ExportError
from engine.pnnx.archive import write_archive
from engine.pnnx.attribute import DTYPES
from engine.pnnx.parameter import Parameter, ParameterType
from engine.pnnx.reader import LARGEST_DIM, MAGIC

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.pnnx.attribute import Attribute
    from engine.pnnx.graph import Graph, Operand, Operator

__all__ = ["param_text", "save"]

_COLUMN: Final = 24  # bytes
_BLANKS: Final = frozenset(" \t\n\r\v\f\0")
_LONGEST_ENTRY: Final = 0xFFFF


def save(graph: Graph, param_path: str | Path, bin_path: str | Path | None) -> None:
    """Write a graph as a pair that pnnx reads, and that reads back as an equal graph.

    Parameters
    ----------
    graph : Graph
    param_path, bin_path : path
        Replaced at the end, when all is written; weights may be read from the very file
        that is replaced. With None for `bin_path` only the structure is written.

    Raises
    ------
    ExportError
        If the graph cannot be written (a name with a blank, an operand without producer) or
        the files cannot.
    ModelFileError
        If there are no weights to write.
    """
    text = param_text(graph)
    param = Path(param_path)
    weights = Path(bin_path) if bin_path is not None else None
    for path in filter(None, (param, weights)):
        if path.is_dir():
            raise ExportError(f"{path}: a folder has this name; choose another")
    try:
        with ExitStack() as stack:
            if weights is not None:
                partial = stack.enter_context(written_beside(weights))
                write_archive(partial, ((name, a.data) for name, a in graph.weights()))
            partial = stack.enter_context(written_beside(param))
            partial.write_bytes(text.encode())
    except OSError as exc:
        raise ExportError(f"{param}: the model could not be written: {exc.strerror}") from exc


def param_text(graph: Graph) -> str:
    """Text of the ``.param`` file.

    Raises
    ------
    ExportError
        If reading it back would not give the same graph.
    """
    _check_connections(graph)
    _check_entries(graph)
    lines = [MAGIC, f"{len(graph.operators)} {len(graph.operands)}"]
    lines += (" ".join(_tokens(operator, graph)) for operator in graph.operators)
    return "\n".join([*lines, ""])


def _tokens(operator: Operator, graph: Graph) -> Iterator[str]:
    yield _pad(operator.type)
    yield _pad(operator.name)
    yield f"{len(operator.inputs)} {len(operator.outputs)}"
    yield from (operand.name for operand in operator.inputs)
    yield from (operand.name for operand in operator.outputs)
    yield from (f"{key}={operator.params[key].text}" for key in sorted(operator.params))
    yield from (f"@{key}={_weight(operator.attrs[key])}" for key in sorted(operator.attrs))
    for name, operand in zip(operator.input_names, operator.inputs, strict=True):
        if name:
            yield f"${name}={operand.name}"
    silent = graph.unannotated.get(operator.name, frozenset())
    format_os_error = (operand for operand in operator.inputs if operand.name not in silent)
    for operand in (*format_os_error, *operator.outputs):
        if operand.shape is not None:
            yield f"#{operand.name}={_annotation(operand)}"


def _pad(text: str) -> str:
    return text + " " * (_COLUMN - len(text.encode()))


def _weight(attribute: Attribute) -> str:
    return f"({','.join(map(str, attribute.shape))}){attribute.dtype}"


def _annotation(operand: Operand) -> str:
    dims = ",".join("?" if dim is None else str(dim) for dim in operand.shape or ())
    return f"({dims}){operand.dtype or 'null'}"


def _check_connections(graph: Graph) -> None:
    """Check that the lines can be read in order."""
    produced: dict[str, Operand] = {}
    names: set[str] = set()
    for operator in graph.operators:
        _check_words(operator)
        if operator.name in names:
            raise ExportError(f"two operators are named {operator.name!r}")
        names.add(operator.name)
        for operand in operator.inputs:
            if produced.get(operand.name) is not operand:
                raise ExportError(
                    f"operator {operator.name!r} takes operand {operand.name!r}, which no "
                    "operator before it produces"
                )
        for operand in operator.outputs:
            _check_operand(operator, operand)
            if operand.name in produced:
                raise ExportError(f"operand {operand.name!r} is produced twice")
            produced[operand.name] = operand
    for name, operand in graph.operands.items():
        if produced.get(name) is not operand:
            raise ExportError(f"operand {name!r} has no producer; remove it or add one")
    if len(produced) > len(graph.operands):
        name = next(iter(produced.keys() - graph.operands.keys()))
        raise ExportError(f"operand {name!r} is not of this graph")


def _check_words(operator: Operator) -> None:
    """Check everything in an operator's line that is free text."""
    where = f"operator {operator.name!r}"
    for word in (operator.type, operator.name):
        _check_word(word, where)
    for key, parameter in operator.params.items():
        _check_key(key, where)
        if key[0] in "@$" or key.lstrip("-").isdigit() or not _is_readable(parameter):
            raise ExportError(f"{where}: parameter {key}={parameter.text!r} cannot be written")
    for key in operator.attrs:
        _check_key(key, where)
    if len(operator.input_names) != len(operator.inputs):
        raise ExportError(f"{where} has not as many input names as inputs")
    named: set[str] = set()
    for name, operand in zip(operator.input_names, operator.inputs, strict=True):
        if name:
            _check_key(name, where)
            named.add(operand.name)
        elif operand.name in named:
            raise ExportError(
                f"{where} takes operand {operand.name!r} twice and names only the first use"
            )
    if len({*filter(None, operator.input_names)}) < sum(map(bool, operator.input_names)):
        raise ExportError(f"{where} has two inputs for the same argument")


def _check_operand(operator: Operator, operand: Operand) -> None:
    where = f"operand {operand.name!r}"
    _check_key(operand.name, where)
    if operand.producer is not operator:
        raise ExportError(f"{where} is an output of {operator.name!r} and not produced by it")
    if operand.dtype is not None and operand.dtype not in DTYPES:
        raise ExportError(f"{where} has dtype {operand.dtype!r}, which PNNX does not know")
    for dim in operand.shape or ():
        symbol = isinstance(dim, str) and dim.startswith("%") and "," not in dim
        if isinstance(dim, str):
            _check_word(dim, where)
        if not (symbol or dim is None or (isinstance(dim, int) and 0 <= dim <= LARGEST_DIM)):
            raise ExportError(f"{where} has a dimension {dim!r}, which PNNX cannot write")


def _check_key(key: str, where: str) -> None:
    _check_word(key, where)
    if "=" in key:
        raise ExportError(f"{where}: {key!r} has an equals sign, which PNNX cannot write")


def _check_word(word: str, where: str) -> None:
    if not word or word.startswith("#") or not _BLANKS.isdisjoint(word):
        raise ExportError(f"{where}: {word!r} is empty or has a blank, or a # in front")


def _is_readable(parameter: Parameter) -> bool:
    """Return whether a text would be read back unchanged; strings may have blanks."""
    first, *others = parameter.text.split(" ")
    if not _BLANKS.isdisjoint("".join((first, *others))):
        return False
    if not others:
        return True
    # "%" makes a string of anything, the first word alone need not be one
    string = parameter.type is ParameterType.STRING and not first.startswith("(")
    return (
        string
        and Parameter.parse(first).type is ParameterType.STRING
        and all(word and "=" not in word and word[0] not in "#$" for word in others)
    )


def _check_entries(graph: Graph) -> None:
    """Check that every weight can have an entry of its own."""
    entries: set[str] = set()
    for name, _ in graph.weights():
        if name in entries:
            raise ExportError(f"two weights would both be named {name!r} in the .bin")
        if len(name.encode()) > _LONGEST_ENTRY:
            raise ExportError(f"the name of weight {name[:40]}… is too long")
        entries.add(name)
