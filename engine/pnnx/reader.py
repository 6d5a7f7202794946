"""Reads ``.param`` text.

Follows Graph::load of ncnn's ``tools/pnnx/src/ir.cpp`` (a4d2ea1, July 2026). Where pnnx
crashes or continues with wrong data, there are errors with their line: a wrong magic number,
counts that do not match, a duplicate name or key, an operand without a producer above, a
malformed token, an unknown dtype. Other deviations:

- An operand that an operator takes twice can have two names: ``$input=1 $other=1``. pnnx
  gives both to its first use, so the second name wins. Where there are fewer names than
  uses the last ones are named, for in Python positional arguments come first.
- Parameters, weights, names and annotations may stand in any order, but nothing in front of
  them may begin with ``#``.
- ``()`` is the shape of a single number. pnnx writes it and crashes on it.
- A word without ``=`` behind a string belongs to that string, since pnnx writes strings
  with blanks as they are (``equation=ij, jk->ik``).

As in pnnx, the last annotation of an operand counts.

The reader assumes that lines are correct; `engine.pnnx.diagnosis` finds the error in a wrong
one. Texts that recur in other lines are parsed once.
"""

from __future__ import annotations

import math
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from engine.collector import collector_paused
from engine.errors import ModelFileError
from engine.file_versions import Watched
from engine.foreign_files import explain_foreign
from engine.pnnx.attribute import DTYPES, ITEMSIZES, Attribute, MissingWeights
from engine.pnnx.diagnosis import (
    explain_operands,
    explain_operators,
    explain_unknown_operand,
    shorten,
)
from engine.pnnx.graph import Graph, Operand, Operator
from engine.pnnx.parameter import Parameter, ParameterType

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from engine.file_versions import FileVersion
    from engine.pnnx.graph import Shape

__all__ = [
    "LARGEST_DIM",
    "MAGIC",
    "Counts",
    "LineError",
    "Reader",
    "Section",
    "decode_param",
    "parse_annotation",
    "read_bytes",
    "read_graph",
]

_T = TypeVar("_T")

MAGIC: Final = "7767517"
LARGEST_DIM: Final = 2**31 - 1  # pnnx's own limit
_LARGEST_SIZE: Final = 2**63 - 1
_LARGEST_RANK: Final = 32  # of NumPy 1
# Blanks for str.split that are none for C.
_BLANKS_OF_PYTHON: Final = ("\x1c", "\x1d", "\x1e", "\x1f")


def read_graph(path: Path) -> tuple[Graph, list[str]]:
    """Read a ``.param`` file.

    Parameters
    ----------
    path : Path

    Returns
    -------
    graph : Graph
        Its attributes are bound to `MissingWeights`.
    lines : list of str
        Of the file, for the line numbers of later errors.

    Raises
    ------
    ModelFileError
        With path, line and reason.
    """
    reader = Reader(path)
    return reader.read(), reader.lines


def read_bytes(path: Path) -> tuple[bytes, FileVersion]:
    """Read the whole of a ``.param`` file.

    Raises
    ------
    ModelFileError
        If it cannot be read, is not a ``.param``, or changes meanwhile.
    """
    try:
        if not path.is_file():
            raise ModelFileError(path, "there is no such file")
        with path.open("rb", 0) as file:
            watched = Watched(path, file.fileno())
            _check_head(path, file.read(64))
            file.seek(0)
            data = file.readall()
            if watched.was_written:
                raise ModelFileError(path, "it changed while it was read; open it again")
    except OSError as exc:
        raise ModelFileError(path, f"it cannot be read: {exc.strerror}") from None
    return data, watched.version


def decode_param(path: Path, data: bytes) -> str:
    """Decode a ``.param``; blanks of every kind become spaces.

    Raises
    ------
    ModelFileError
        If it is not text.
    """
    zero = data.find(b"\0")
    if zero >= 0:
        line = data.count(b"\n", 0, zero) + 1
        raise ModelFileError(path, "the line has a zero byte, so this is not text", line)
    try:
        text = data.decode()
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        raise ModelFileError(path, "the line is not UTF-8 text", line) from None
    for blank in "\r\t\v\f":
        text = text.replace(blank, " ")
    return text


def _check_head(path: Path, head: bytes) -> None:
    """Refuse other files before reading all of them."""
    if not head:
        raise ModelFileError(path, "it is empty; export the model again")
    if known := explain_foreign(path, head):
        raise ModelFileError(path, known)
    if head.startswith(b"PK"):
        raise ModelFileError(path, "it contains weights; open the .param file of the model")
    first = head.partition(b"\n")[0].strip()
    if first != MAGIC.encode():
        shown = shorten(first.decode(errors="backslashreplace"))
        raise ModelFileError(
            path, f"a .param file of PNNX begins with {MAGIC} and not with {shown}", 1
        )


def _split_at_spaces(text: str, _separator: str | None, limit: int) -> list[str]:
    """Do as ``text.split(None, limit)`` with no blank but the space."""
    parts: list[str] = []
    rest = text.strip(" ")
    while rest and len(parts) != limit:
        part, _, rest = rest.partition(" ")
        parts.append(part)
        rest = rest.lstrip(" ")
    return [*parts, rest] if rest else parts


class LineError(Exception):
    """An error in the current line."""


class Counts(dict[str, int]):
    """Counts of operands by their token."""

    def __missing__(self, token: str) -> int:
        count = self[token] = _parse_count(token)
        return count


class Section(NamedTuple):
    """Parameters and weights of a line; equal operators share one."""

    params: dict[str, Parameter]
    weights: dict[str, tuple[str, tuple[int, ...]]]


class Reader:
    """Builds a graph line by line.

    Parameters
    ----------
    path : Path
        The ``.param`` file, which is read here.
    copy : tuple of bytes and FileVersion, optional
        What the file held and when, where that is known; then it is not read.

    Attributes
    ----------
    lines : list of str
        Of the file, without blanks but the space.
    plain : bool
        Whether ``str.split`` finds the same words as C would.
    marks : int
        How often ``#`` is in the file.
    version : FileVersion
        Of the file, when it was read.

    Raises
    ------
    ModelFileError
        If the file cannot be read or is no ``.param``.
    """

    def __init__(self, path: Path, copy: tuple[bytes, FileVersion] | None = None) -> None:
        data, self.version = read_bytes(path) if copy is None else copy
        text = decode_param(path, data)
        self.lines = text.split("\n")
        while not (last := self.lines.pop().rstrip(" ")):
            pass
        self.lines.append(last)
        self.plain = text.isascii() and not any(blank in text for blank in _BLANKS_OF_PYTHON)
        self.marks = text.count("#")
        self._path = path
        self._number = 0  # of the line at hand
        self._split: Callable[[str, str | None, int], list[str]] = (
            str.split if self.plain else _split_at_spaces
        )
        self._missing = MissingWeights(path)
        self._operators: dict[str, Operator] = {}
        self._operands: dict[str, Operand] = {}
        # Operators that have not an annotation for every operand, and those that they have.
        self._sparse: list[tuple[Operator, list[str]]] = []
        self._parameters: dict[str, Parameter] = {}
        self._sections: dict[str, Section] = {}
        self._annotations: dict[str, tuple[Shape, str | None]] = {}

    def read(self) -> Graph:
        """Read all lines and check them together.

        Raises
        ------
        ModelFileError
            With path, line and reason.
        """
        operator_count, operand_count = self.read_header()
        try:
            with collector_paused():
                produced = self._read_operators()
        except LineError as exc:
            raise ModelFileError(self._path, str(exc), self._number) from None
        except KeyError as exc:  # only operands are looked up without asking
            reason = explain_unknown_operand(self.lines, self._number, exc.args[0])
            raise ModelFileError(self._path, reason, self._number) from None
        self._check_names(produced)
        # pnnx may count operands that it has dropped together with their operators.
        self._check_count("operators", operator_count, len(self._operators))
        if operand_count < len(self._operands):
            self._check_count("operands", operand_count, len(self._operands))
        graph = Graph(self._operators, self._operands)
        graph.unannotated = self._find_unannotated()
        return graph

    def read_header(self) -> tuple[int, int]:
        """Read how many operators and operands the file should have."""
        header = self.lines[1] if len(self.lines) > 1 else ""
        try:
            operators, operands = map(_parse_count, header.split())
        except (ValueError, LineError):
            reason = f"the counts of operators and operands belong here, not {shorten(header)}"
            raise ModelFileError(self._path, reason, 2) from None
        return operators, operands

    def _check_count(self, what: str, expected: int, found: int) -> None:
        if expected != found:
            raise ModelFileError(
                self._path,
                f"the header counts {expected} {what} and the file has {found}; it was cut "
                "short or edited, export it again or correct the header",
                2,
            )

    def _check_names(self, produced: int) -> None:
        """Check that names are unique, and that every operand has one."""
        if len(self._operators) < len(self.lines) - 2:
            reason, line = explain_operators(self.lines)
            raise ModelFileError(self._path, reason, line)
        if len(self._operands) < produced or "=" in "".join(self._operands):
            reason, line = explain_operands(self.lines)
            raise ModelFileError(self._path, reason, line)

    def _find_unannotated(self) -> dict[str, frozenset[str]]:
        """Inputs whose shapes only other lines say, by operator; see `Graph.unannotated`."""
        found: dict[str, frozenset[str]] = {}
        for operator, notes in self._sparse:
            said = {note.partition("=")[0] for note in notes}
            shaped = {o.name for o in operator.inputs if o.shape is not None}
            if not shaped <= said:
                found[operator.name] = frozenset(shaped - said)
        return found

    def _read_operators(self) -> int:
        """Read the lines of the operators; return how many operands they produce."""
        split, counts = self._split, Counts()
        operands, operators, annotations = self._operands, self._operators, self._annotations
        produced = 0
        for number, line in enumerate(islice(self.lines, 2, None), 3):
            self._number = number
            head, *notes = line.split(" #")
            columns = split(head, None, 4)
            if len(columns) != 5:
                columns = _complete(columns)
            kind, name, inputs, outputs, rest = columns
            taken = counts[inputs]
            count = taken + counts[outputs]
            names = split(rest, None, count)
            section = _pop_section(names, taken, count) if len(names) != count else ""
            operator = Operator(kind, name)
            operators[name] = operator
            operator.input_names = [""] * taken
            for operand_name in names[:taken]:
                operand = operands[operand_name]
                operand.consumers.append(operator)
                operator.inputs.append(operand)
            for operand_name in names[taken:]:
                operand = operands[operand_name] = Operand(operand_name, operator)
                operator.outputs.append(operand)
            produced += count - taken
            if section:
                self._read_section(operator, section)
            for note in notes:
                operand_name, _, text = note.partition("=")
                annotation = annotations.get(text) or self._annotation(operator, text)
                operand = operands[operand_name]
                operand.shape, operand.dtype = annotation
            if len(notes) != count:
                self._sparse.append((operator, notes))
        return produced

    def _read_section(self, operator: Operator, text: str) -> None:
        """Read parameters, weights and argument names."""
        if "$" in text:
            text, *names = f" {text}".split(" $")
            surplus = self._name_inputs(operator, names)
            text = f"{text} {surplus}" if surplus else text
        section = self._sections.get(text)
        if section is None:
            section = self._sections[text] = self.parse_section(text)
        params, weights = section
        if operator.params or operator.attrs:  # a part of it stood behind an annotation
            twice = [*operator.params.keys() & params.keys(), *operator.attrs.keys() & weights]
            if twice:
                raise LineError(f"{twice[0]!r} appears twice")
        operator.params.update(params)
        for key, (dtype, shape) in weights.items():
            operator.attrs[key] = Attribute(dtype, shape, self._missing)

    def parse_section(self, text: str) -> Section:
        """Parse parameters and weights.

        Raises
        ------
        LineError
            If something is wrong with them.
        """
        section = Section({}, {})
        last = ""  # key of the parameter just read
        for token in self._split(text, None, -1):
            key, equals, value = token.partition("=")
            if not equals:
                self._continue_string(section.params, last, token)
            elif key.startswith("@"):
                last = ""
                self._add(section.weights, key[1:], _parse_weight(token, value))
            else:
                last = key
                self._add(section.params, key, self._parameter(key, value))
        return section

    @staticmethod
    def _add(section: dict[str, _T], key: str, value: _T) -> None:
        if not key:
            raise LineError("a parameter or weight has no name")
        if key in section:
            raise LineError(f"{key!r} appears twice")
        section[key] = value

    def _parameter(self, key: str, text: str) -> Parameter:
        parameter = self._parameters.get(text)
        if parameter is None:
            try:
                parameter = self._parameters[text] = Parameter.parse(text)
            except ValueError as exc:
                raise LineError(f"parameter {key!r}: {exc}") from None
        if key.lstrip("-").isdigit():
            raise LineError(
                f"{shorten(f'{key}={text}')} is a parameter of ncnn's own format; open the "
                ".pnnx.param file of the model"
            )
        return parameter

    def _continue_string(self, params: dict[str, Parameter], key: str, word: str) -> None:
        """Add a word to the string before it."""
        string = params.get(key)
        if string is None or string.type is not ParameterType.STRING:
            raise LineError(f"{shorten(word)} is not of the form key=value")
        params[key] = self._parameter(key, f"{string.text} {word}")

    def _name_inputs(self, operator: Operator, chunks: list[str]) -> str:
        """Give the inputs their argument names; return what stood between those."""
        surplus: list[str] = []
        pairs: list[tuple[str, str]] = []
        for chunk in chunks:
            token, *others = (self._split(chunk, None, -1) if " " in chunk else None) or (
                chunk,
            )
            surplus += others
            argument, _, operand_name = token.partition("=")
            pairs.append((argument, operand_name))
        places: dict[str, list[int]] = {}
        for place, operand in enumerate(operator.inputs):
            places.setdefault(operand.name, []).append(place)
        for argument, operand_name in reversed(pairs):
            free = places.get(operand_name)
            if not free or not argument:
                raise LineError(
                    f"{shorten(f'${argument}={operand_name}')} names no input of the operator"
                )
            operator.input_names[free.pop()] = argument
        if len({argument for argument, _ in pairs}) < len(pairs):
            raise LineError("two inputs are for the same argument")
        return " ".join(surplus)

    def _annotation(self, operator: Operator, text: str) -> tuple[Shape, str | None]:
        """Parse a shape and dtype; read whatever stands behind them in the line."""
        token, *others = self._split(text, None, -1) or ("",)
        annotation = parse_annotation(token)
        if others:
            self._read_section(operator, " ".join(others))
        else:
            self._annotations[text] = annotation
        return annotation


def _complete(columns: list[str]) -> list[str]:
    """Columns of an operator that has nothing behind its counts."""
    if len(columns) < 4:
        raise LineError(
            "an operator needs a type, a name and the counts of its inputs and outputs; "
            "the file may have been cut short here"
        )
    return [*columns, ""]


def _pop_section(names: list[str], taken: int, count: int) -> str:
    """Remove what follows the operands from the list."""
    if len(names) < count:
        raise LineError(
            f"the line counts {taken} inputs and {count - taken} outputs and names "
            f"{len(names)} operands; the file may have been cut short here"
        )
    return names.pop()


def _parse_count(token: str) -> int:
    if not (token.isascii() and token.isdigit() and len(token) < 10):
        raise LineError(f"{shorten(token)} is not a number of operands")
    return int(token)


def _parse_weight(token: str, text: str) -> tuple[str, tuple[int, ...]]:
    dims, dtype = _parse_shape(text)
    shape = tuple(dim for dim in dims if isinstance(dim, int))
    if len(shape) < len(dims):
        raise LineError(f"weight {shorten(token)} leaves a dimension open")
    # zeros aside, for NumPy multiplies the other dimensions even then
    size = math.prod(filter(None, shape)) * ITEMSIZES[dtype]
    if len(shape) > _LARGEST_RANK or size > _LARGEST_SIZE:
        raise LineError(f"weight {shorten(token)} is larger than any array")
    return dtype, shape


def parse_annotation(text: str) -> tuple[Shape, str | None]:
    """Parse the shape and dtype of an operand.

    Raises
    ------
    LineError
        If the text is none.
    """
    shape, dtype = _parse_shape(text)
    return shape, (None if dtype == "null" else dtype)


def _parse_shape(text: str) -> tuple[Shape, str]:
    inner, bracket, dtype = text.rpartition(")")
    if not bracket or not inner.startswith("("):
        raise LineError(f"{shorten(text)} is not a shape and dtype such as (1,3,224,224)f32")
    if dtype not in DTYPES:
        raise LineError(
            f"{shorten(text)} has a dtype that PNNX does not know; those are "
            f"{', '.join(DTYPES)}"
        )
    dims = inner[1:].split(",") if len(inner) > 1 else []
    return tuple(map(_parse_dim, dims)), dtype


def _parse_dim(text: str) -> int | str | None:
    if text in {"?", "-1"}:
        return None
    if text.startswith("%"):
        return text
    if text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= LARGEST_DIM:
        return int(text)
    raise LineError(f"{shorten(text)} is not the size of a dimension")
