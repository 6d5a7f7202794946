"""Reads ncnn's ``.param`` text.

Follows Net::load_param and ParamDict::load_param of ncnn (a4d2ea1, July 2026). Deviations:

- Text that ncnn would misread is an error with its line: a number of more than 15 characters,
an invalid number, an id beyond 31, a blob that no layer above produces.
- Layers of the same name get a number appended, because operators are found by name.
- A type unknown to ncnn, such as one that pnnx could not convert, keeps its name; its
parameters are named by their ids.
- The counts of the header may be larger than the file needs.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from engine.collector import collector_paused
from engine.errors import ModelFileError
from engine.ncnn.types import PREFIX, TYPES, weight_specs
from engine.pnnx.attribute import Attribute, MissingWeights
from engine.pnnx.diagnosis import shorten
from engine.pnnx.graph import Graph, Operand, Operator
from engine.pnnx.parameter import Parameter, ParameterType
from engine.pnnx.reader import LineError, decode_param

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from engine.file_versions import FileVersion
    from engine.pnnx.graph import Shape

__all__ = ["INPUT", "OUTPUT", "is_ncnn", "ncnn_name", "read_graph"]

INPUT: Final = f"{PREFIX}Input"
OUTPUT: Final = f"{PREFIX}Output"
"""Type of the operator that ends a blob without consumers; not a layer of the file."""

_FIRST_LINE: Final = 3
_MOST_IDS: Final = 32
_ARRAY_ID: Final = -23300
_SHAPE_HINTS: Final = 30
_COMMON: Final = {31: "featmask"}
_LONGEST_NUMBER: Final = 15
_LONGEST_TEXT: Final = 255
_INT: Final = re.compile(r"-?[0-9]+")
_FLOAT: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?")
_KEY: Final = re.compile(r"-?[0-9]+=")
_LARGEST_INT: Final = 2**31

# Number of axes of the images that layers of these types take, channels included.
_RANKS: Final = {
    "Convolution": 3, "ConvolutionDepthWise": 3, "Deconvolution": 3,
    "DeconvolutionDepthWise": 3, "Convolution1D": 2, "ConvolutionDepthWise1D": 2,
    "Deconvolution1D": 2, "Convolution3D": 4, "ConvolutionDepthWise3D": 4,
}  # fmt: skip
# Types that pass an input on unchanged to the layer that determines its rank and dtype.
_PASSING: Final = frozenset({f"{PREFIX}Split", f"{PREFIX}Noop"})
# Types whose result has as many axes and channels; of their first operand.
_KEEPING: Final = _PASSING | {
    f"{PREFIX}{kind}"
    for kind in ("BatchNorm", "Clip", "Dropout", "Padding", "Pooling", "ReLU", "Scale", "Swish")
}


def ncnn_name(operator_type: str) -> str:
    """Return ncnn's name of an operator's type; ``""`` for a type unknown to ncnn."""
    name = operator_type.removeprefix(PREFIX)
    return name if name != operator_type and name in TYPES else ""


def is_ncnn(data: bytes) -> bool:
    """Whether a ``.param`` is in ncnn's format, not PNNX.

    Parameters
    ----------
    data : bytes
        Contents of the file, whose first line both formats share.

    Returns
    -------
    bool
        Decided by the first line with a parameter, weight or annotation: ncnn's keys are
        integers. In a file without any, decided by the layer ``Input``.
    """
    plain_input = False
    start = data.find(b"\n") + 1
    while start:
        end = data.find(b"\n", start)
        words = data[start : end if end >= 0 else None].split()
        for word in words[4:]:
            if b"=" in word:
                return _KEY.match(word.decode("latin-1")) is not None
        plain_input = plain_input or words[:1] == [b"Input"]
        start = end + 1
    return plain_input


def read_graph(path: Path, data: bytes, version: FileVersion) -> Graph:
    """Read a ``.param`` of ncnn.

    Parameters
    ----------
    path : Path
        For errors.
    data : bytes
        Contents of the file.
    version : FileVersion
        Of the file when it was read.

    Returns
    -------
    Graph
        Its attributes are bound to `MissingWeights`. A layer with contradictory parameters has
        no attributes.

    Raises
    ------
    ModelFileError
        With path, line and reason.
    """
    reader = _Reader(path, decode_param(path, data).split("\n"))
    with collector_paused():
        graph = reader.read()
    graph.format, graph.param_version = "ncnn", version
    return graph


class _Reader:
    """Builds a graph line by line."""

    def __init__(self, path: Path, lines: Sequence[str]) -> None:
        self._path, self._lines = path, lines
        self._missing = MissingWeights(path)
        self._operators: dict[str, Operator] = {}
        self._operands: dict[str, Operand] = {}

    def read(self) -> Graph:
        header = self._lines[1].split() if len(self._lines) > 1 else []
        if len(header) != 2 or not all(word.isdecimal() and len(word) < 10 for word in header):
            shown = shorten(" ".join(header))
            reason = f"expected the counts of layers and blobs, not {shown}"
            raise ModelFileError(self._path, reason, 2)
        layers, blobs = map(int, header)
        for number, line in enumerate(self._lines[2:], _FIRST_LINE):
            words = line.split()
            if not words:
                continue
            try:
                self._read_layer(words, line)
            except LineError as exc:
                raise ModelFileError(self._path, str(exc), number) from None
        for what, counted, found in (
            ("layers", layers, len(self._operators)),
            ("blobs", blobs, len(self._operands)),
        ):
            if counted < found or (what == "layers" and counted != found):
                raise ModelFileError(
                    self._path,
                    f"the header counts {counted} {what}, but the file has {found}; it was cut "
                    "short or edited: export it again or correct the header",
                    2,
                )
        self._add_outputs()
        self._annotate_inputs()
        return Graph(self._operators, self._operands)

    def _read_layer(self, words: list[str], line: str) -> None:
        if len(words) < 4:
            raise LineError(
                "a layer needs a type, a name and the counts of its inputs and outputs; "
                "the file may have been cut short here"
            )
        kind, name = words[:2]
        taken, given = map(_parse_count, words[2:4])
        names = words[4 : 4 + taken + given]
        if len(names) < taken + given:
            raise LineError(
                f"the line counts {taken} inputs and {given} outputs, but names {len(names)} "
                "blobs; the file may have been cut short here"
            )
        known = kind in TYPES
        operator = Operator(f"{PREFIX}{kind}" if known else kind, self._free_name(name))
        for blob in names[:taken]:
            operand = self._operands.get(blob)
            if operand is None:
                raise LineError(f"no layer above produces blob {shorten(blob)}")
            operator.add_input(operand)
        for blob in names[taken:]:
            if blob in self._operands:
                raise LineError(f"a layer above produces blob {shorten(blob)} already")
            operator.outputs.append(Operand(blob, operator))
            self._operands[blob] = operator.outputs[-1]
            operator.outputs[-1].dtype = "f32"
        self._operators[operator.name] = operator
        self._read_params(operator, kind, _split_params(line, 4 + taken + given))
        if known:
            self._list_weights(operator, kind)

    def _free_name(self, name: str) -> str:
        """Return the name, with a number appended if another layer has it."""
        free, number = name, 1
        while free in self._operators:
            number += 1
            free = f"{name}.{number}"
        return free

    def _read_params(self, operator: Operator, kind: str, words: Sequence[str]) -> None:
        names = TYPES[kind].names if kind in TYPES else {}
        for word in words:
            key, equals, text = word.partition("=")
            if not equals or not _INT.fullmatch(key) or len(key) > _LONGEST_NUMBER:
                raise LineError(f"{shorten(word)} is not of the form id=value")
            number = int(key)
            counted = number <= _ARRAY_ID
            number = _ARRAY_ID - number if counted else number
            if not 0 <= number < _MOST_IDS:
                raise LineError(f"ncnn has no parameter of id {key}")
            parameter = _parse_value(text, counted=counted)
            if number == _SHAPE_HINTS:
                _annotate(operator.outputs, parameter)
                continue
            name = names.get(number) or _COMMON.get(number) or str(number)
            if name in operator.params:
                raise LineError(f"the parameter of id {number} appears twice")
            operator.params[name] = parameter

    def _list_weights(self, operator: Operator, kind: str) -> None:
        values = {name: parameter.value for name, parameter in operator.params.items()}
        try:
            specs = weight_specs(kind, values)
        except ValueError:
            return  # the layer, or its check, reports the error
        for spec in specs:
            operator.attrs[spec.name] = Attribute("f32", spec.shape, self._missing)

    def _add_outputs(self) -> None:
        """Add an output operator for every blob that no layer reads."""
        for operand in [o for o in self._operands.values() if not o.consumers]:
            operator = Operator(OUTPUT, self._free_name(f"output_{operand.name}"))
            operator.add_input(operand)
            self._operators[operator.name] = operator

    def _annotate_inputs(self) -> None:
        """Set dtypes and ranks of the inputs, from the layers that read them."""
        for operator in self._operators.values():
            if operator.type != INPUT or not operator.outputs:
                continue
            operand = operator.outputs[0]
            if operand.shape is None:
                operand.shape = _shape_of_input(operator)
            taken = _first_consumer(operand, _PASSING)
            if taken is not None and ncnn_name(taken.type) == "Embed":
                operand.dtype = "i32"  # its indexes are the bits of integers
            taken = _first_consumer(operand, _KEEPING)
            kind = ncnn_name(taken.type) if taken is not None else ""
            if taken is not None and operand.shape is None and kind in _RANKS:
                operand.shape = (_channels_of(taken, kind), *(None,) * (_RANKS[kind] - 1))


def _shape_of_input(operator: Operator) -> Shape | None:
    sides = [operator.params.get(name) for name in ("c", "d", "h", "w")]
    shape = tuple(side.value for side in sides if side is not None and side.value)
    if not shape or not all(isinstance(side, int) and side > 0 for side in shape):
        return None
    return shape  # type: ignore[return-value] # of integers


def _first_consumer(operand: Operand, passed: Collection[str]) -> Operator | None:
    """Return the layer whose first operand is this one, or what layers of some types make."""
    while operand.consumers:
        first = operand.consumers[0]
        given = [first.params.get(side) for side in ("front", "behind")]
        grows = any(each is not None and each.value for each in given)  # in channels
        if first.type not in passed or not first.outputs or grows:
            return first if first.inputs[0] is operand else None
        operand = first.outputs[0]
    return None


def _channels_of(operator: Operator, kind: str) -> int | None:
    weight = operator.attrs.get("weight")
    if weight is None:
        return None
    group = operator.params.get("group") if "DepthWise" in kind else None
    groups = group.value if group is not None and isinstance(group.value, int) else 1
    return weight.shape[1] * groups if groups > 0 else None


def _annotate(operands: Sequence[Operand], hints: Parameter) -> None:
    """Set the shape of each operand from its number of axes, width, height and channels."""
    if not isinstance(hints.value, tuple):
        return
    numbers = [number for number in hints.value if isinstance(number, int)]
    for place, operand in enumerate(operands):
        rank, *sides = numbers[4 * place : 4 * place + 4] or (0,)
        if len(sides) == 3 and 1 <= rank <= 3 and min(sides[:rank]) > 0:
            operand.shape = tuple(reversed(sides[:rank]))


def _parse_count(word: str) -> int:
    if not (word.isascii() and word.isdigit() and len(word) < 10):
        raise LineError(f"{shorten(word)} is not a number of blobs")
    return int(word)


def _split_params(line: str, skipped: int) -> list[str]:
    """Split the parameters of a line; quoted text may contain blanks."""
    rest = line.split(None, skipped)
    text = rest[skipped] if len(rest) > skipped else ""
    if '"' not in text:
        return text.split()
    return re.findall(r'[^\s"]+"[^"]*"?|\S+', text)


def _parse_value(text: str, *, counted: bool) -> Parameter:
    """Read the value of a parameter; `counted` for an array preceded by its length."""
    if counted:
        count, *numbers = text.split(",")
        if not _INT.fullmatch(count) or len(count) > 9 or int(count) != len(numbers):
            raise LineError(f"{shorten(text)} is not an array: a length and as many elements")
        return _array(numbers)
    if text[:1].isalpha() or text[:1] == '"':
        string = text.strip('"')
        if len(string) > _LONGEST_TEXT or not string:
            raise LineError(f"{shorten(text)} is not a text that ncnn reads")
        return Parameter(ParameterType.STRING, string, string)
    if "," in text:
        return _array(text.removesuffix(",").split(","))
    value = _parse_number(text)
    kind = ParameterType.INT if isinstance(value, int) else ParameterType.FLOAT
    return Parameter(kind, value, text)


def _array(words: Sequence[str]) -> Parameter:
    values = tuple(map(_parse_number, words))
    text = f"({','.join(words)})"
    if not values:
        return Parameter(ParameterType.NULL, None, text)
    if all(isinstance(value, int) for value in values):
        return Parameter(ParameterType.INT_ARRAY, values, text)
    return Parameter(ParameterType.FLOAT_ARRAY, tuple(map(float, values)), text)


def _parse_number(text: str) -> int | float:
    if len(text) > _LONGEST_NUMBER:
        raise LineError(
            f"ncnn reads at most {_LONGEST_NUMBER} characters of a number, but {shorten(text)} "
            f"has {len(text)}"
        )
    if _INT.fullmatch(text):
        value = int(text)
        if not -_LARGEST_INT <= value < _LARGEST_INT:
            raise LineError(f"{shorten(text)} does not fit in 32 bits")
        return value
    if not _FLOAT.fullmatch(text):
        raise LineError(f"{shorten(text)} is not a number")
    return float(text)
