"""Searches the operators of a graph by a text; nothing in the text is evaluated.

All terms of a text must match. They are separated by blanks, commas or ``and``; ``not``, or
``-`` at the start, negates the next one, and quotes make anything plain text::

    conv  layer1.*           name or type contains it, or an output is named so
    type:Conv  name:layer1  operand:53     an operand that is produced or taken
    1x64x56x56  *x64x*x*     shape of an output; a batch of 1 may be left out
    float16  dtype:i64       dtype of an output
    stride=2  kernel_size=(3,3)  groups>1  expr=add*       parameters
    weight 64x3x7x7  weight float16
    has nan  has inf  is constant  max>100  min<-5  zeros>0.9       values of outputs
"""

from __future__ import annotations

import difflib
import fnmatch
import operator as operators_of_python
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.errors import SearchError
from engine.text import format_dtype

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from engine.runtime import RuntimeOperand, RuntimeOperator
    from engine.shapes import ExportedShape

    Flags = npt.NDArray[np.bool_]
    Floats = npt.NDArray[np.float64]

__all__ = ["Found", "OperatorIndex", "Search", "ValueTable", "parse_search", "text_matcher"]


# What is searched


@dataclass(frozen=True, slots=True, eq=False)
class ValueTable:
    """What is known of the values of each operator's outputs; arrays of shape (N,).

    Attributes
    ----------
    known : ndarray of bool
        Whether all outputs are measured.
    low, high : ndarray of float64
        Least and largest element, infinite ones included; NaN where every element is NaN.
    zeros : ndarray of float64
        Share of zeros among the elements.
    nan, inf : ndarray of float64
        Number of NaN, and of infinite elements of either sign.
    """

    known: Flags
    low: Floats
    high: Floats
    zeros: Floats
    nan: Floats
    inf: Floats

    @classmethod
    def empty(cls, count: int) -> ValueTable:
        """Return the table of operators of which nothing is known."""
        return cls(np.zeros(count, np.bool_), *np.full((5, count), np.nan))

    @property
    def largest(self) -> Floats:
        """Largest absolute value, shape (N,); NaN where nothing is known."""
        largest: Floats = np.fmax(np.abs(self.low), np.abs(self.high))
        return largest


class OperatorIndex:
    """What a search looks up of the operators of a graph, each column made when it is needed.

    Parameters
    ----------
    operators : sequence of RuntimeOperator
        In execution order.
    shape_of : callable, optional
        Returns the shape of an operand; the exported one by default.
    """

    def __init__(
        self,
        operators: Sequence[RuntimeOperator],
        shape_of: Callable[[RuntimeOperand], ExportedShape | None] | None = None,
    ) -> None:
        self.operators = operators
        self._shape_of = shape_of or (lambda operand: operand.shape)

    def __len__(self) -> int:
        return len(self.operators)

    @cached_property
    def types(self) -> list[str]:
        """Types in lower case."""
        return [operator.type.lower() for operator in self.operators]

    @cached_property
    def names(self) -> list[str]:
        """Names in lower case."""
        return [operator.name.lower() for operator in self.operators]

    @cached_property
    def texts(self) -> list[str]:
        """Type and name in lower case, apart by a line feed, which no word has."""
        return [f"{type_}\n{name}" for type_, name in zip(self.types, self.names, strict=True)]

    @cached_property
    def producers(self) -> dict[str, list[int]]:
        """Operators by the name of an output."""
        return _grouped(
            (operand.name, operator.index)
            for operator in self.operators
            for operand in operator.outputs
        )

    @cached_property
    def users(self) -> dict[str, list[int]]:
        """Operators by the name of an output or input."""
        return _grouped(
            (operand.name, operator.index)
            for operator in self.operators
            for operand in (*operator.inputs, *operator.outputs)
        )

    @cached_property
    def shapes(self) -> dict[tuple[str, ...], list[int]]:
        """Operators by the shape of an output, its dimensions as texts."""
        return _grouped(
            (_dimensions_of(shape), operator.index)
            for operator in self.operators
            for operand in operator.outputs
            if (shape := self._shape_of(operand)) is not None
        )

    def forget_shapes(self) -> None:
        """Look shapes up again when they are needed: a run may have given others."""
        self.__dict__.pop("shapes", None)

    @cached_property
    def dtypes(self) -> dict[str, list[int]]:
        """Operators by the dtype of an output, as PNNX names it."""
        return _grouped(
            (format_dtype(operand.dtype), operator.index)
            for operator in self.operators
            for operand in operator.outputs
        )

    @cached_property
    def parameters(self) -> dict[str, list[tuple[int, object]]]:
        """Operators and values by the name of a parameter in lower case."""
        found: dict[str, list[tuple[int, object]]] = {}
        for operator in self.operators:
            for name, value in operator.params.items():
                found.setdefault(name.lower(), []).append((operator.index, value))
        return found

    @cached_property
    def weight_shapes(self) -> dict[tuple[str, ...], list[int]]:
        """Operators by the shape of a weight, its dimensions as texts."""
        return _grouped(
            (tuple(map(str, weight.shape)), operator.index)
            for operator in self._weighted
            for weight in operator.attributes.values()
        )

    @cached_property
    def weight_dtypes(self) -> dict[str, list[int]]:
        """Operators by the dtype of a weight in the file."""
        return _grouped(
            (weight.stored_dtype, operator.index)
            for operator in self._weighted
            for weight in operator.attributes.values()
        )

    @property
    def _weighted(self) -> Iterator[RuntimeOperator]:
        return (operator for operator in self.operators if operator.has_attributes)

    @cached_property
    def with_outputs(self) -> Flags:
        """Whether each operator has an output, shape (N,)."""
        return np.array([bool(operator.outputs) for operator in self.operators], np.bool_)

    def prepare(self) -> Iterator[None]:
        """Make the columns that most searches need, one each time the next is asked for."""
        for column in ("texts", "producers", "shapes", "dtypes", "parameters"):
            getattr(self, column)
            yield


@lru_cache(1024)  # of thousands of operands, most have one of a few shapes
def _dimensions_of(shape: ExportedShape) -> tuple[str, ...]:
    return tuple("?" if dim is None else str(dim).lower() for dim in shape)


def _grouped(pairs: Iterable[tuple[Any, int]]) -> dict[Any, list[int]]:
    found: dict[Any, list[int]] = {}
    for key, index in pairs:
        found.setdefault(key, []).append(index)
    return found


# The search


Test = Callable[[OperatorIndex, ValueTable], "Flags"]


@dataclass(frozen=True, slots=True)
class _Term:
    """A term: which operators match, and whether it needs their values."""

    test: Test
    needs_values: bool = False
    negated: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The result of a search.

    Attributes
    ----------
    operators : ndarray of int, shape (K,)
        Indices of the operators that match, in execution order.
    unknown : int
        Number of operators that may match once their values are known.
    """

    operators: npt.NDArray[np.intp]
    unknown: int = 0


@dataclass(frozen=True, slots=True)
class Search:
    """A parsed text; an empty one finds nothing.

    Attributes
    ----------
    terms : tuple
        Conditions, all of which an operator must meet.
    """

    terms: tuple[_Term, ...] = ()

    @property
    def needs_values(self) -> bool:
        """Whether a term asks for values."""
        return any(term.needs_values for term in self.terms)

    def find(self, index: OperatorIndex, values: ValueTable | None = None) -> Found:
        """Find the operators that all terms match.

        Parameters
        ----------
        index : OperatorIndex
        values : ValueTable, optional
            Of the same operators; nothing is known of values by default.

        Raises
        ------
        SearchError
            If no operator has a parameter of a name in the text.
        """
        if not self.terms:
            return Found(np.zeros(0, np.intp))
        if values is None:
            values = ValueTable.empty(len(index))
        holds = np.ones(len(index), np.bool_)
        of_values = holds.copy()
        for term in self.terms:
            matches = term.test(index, values) != term.negated
            if term.needs_values:
                of_values &= matches
            else:
                holds &= matches
        if not self.needs_values:
            return Found(np.flatnonzero(holds))
        holds &= index.with_outputs
        unknown = int(np.count_nonzero(holds & ~values.known))
        return Found(np.flatnonzero(holds & of_values & values.known), unknown)


# Parsing


_TOKEN: Final = re.compile(
    r"""[\s,]*(?:
        (?P<quoted>-?(?:\w+:)?"[^"]*")
      | (?P<sign><=|>=|<|>|=)
      | (?P<tuple>[(\[][^()\[\]"]*[)\]])
      | (?P<word>[^\s"<>=()\[\],]+)
    )""",
    re.VERBOSE,
)
_SHAPE: Final = re.compile(r"(?:\d+|\*|\?)(?:[x×](?:\d+|\*|\?))+")
_ANY_SIZES: Final = re.compile(r"(?:\d+|\*)(?:[x×](?:\d+|\*))*")
# Behind "shape:" also a single dimension, or a symbol.
_DIMENSION: Final = r"(?:\d+|\*|\?|%?[a-z_][a-wyz0-9_]*)"
_ANY_SHAPE: Final = re.compile(rf"{_DIMENSION}(?:[x×]{_DIMENSION})*")
_DTYPE_NAMES: Final = {
    "float64": "f64", "double": "f64", "float32": "f32", "float": "f32", "float16": "f16",
    "half": "f16", "bfloat16": "bf16", "int64": "i64", "long": "i64", "int32": "i32",
    "int": "i32", "int16": "i16", "int8": "i8", "uint8": "u8", "bool": "bool",
    "complex128": "c128", "complex64": "c64", "complex32": "c32",
}  # fmt: skip
# Words such as "int" and "long" are also parts of names: they are dtypes behind "dtype:" only.
_PLAIN_DTYPES: Final = frozenset(_DTYPE_NAMES.values()) | {
    name for name in _DTYPE_NAMES if name[-1].isdigit()
} | {"bfloat16"}  # fmt: skip
_COMPARE: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "<": operators_of_python.lt,
    "<=": operators_of_python.le,
    ">": operators_of_python.gt,
    ">=": operators_of_python.ge,
    "=": operators_of_python.eq,
}
_NUMBERS: Final[dict[str, Callable[[ValueTable], Floats]]] = {
    "max": lambda values: values.high,
    "min": lambda values: values.low,
    "absmax": lambda values: values.largest,
    "zeros": lambda values: values.zeros,
    "nan": lambda values: values.nan,
    "inf": lambda values: values.inf,
}
# These are names of parameters as well: with "=" they are.
_PARAMETERS_TOO: Final = frozenset({"max", "min"})
_HAS: Final[dict[str, Test]] = {
    "nan": lambda _, values: values.nan > 0,
    "inf": lambda _, values: values.inf > 0,
}
_IS: Final[dict[str, Test]] = {
    "constant": lambda _, values: (values.low == values.high) & (values.nan == 0),
}


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str


def parse_search(text: str) -> Search:
    """Parse a search.

    Raises
    ------
    SearchError
        With one sentence that says how to write the term.
    """
    tokens = _tokens(text)
    terms: list[_Term] = []
    place, negated = 0, False
    while place < len(tokens):
        token = tokens[place]
        if token.kind == "word" and token.text.lower() == "and":
            place += 1
            continue
        if token.kind == "word" and token.text.lower() == "not":
            place, negated = place + 1, not negated
            continue
        if len(token.text) > 1 and token.text[0] == "-":
            token, negated = _Token(token.kind, token.text[1:]), not negated
        term, taken = _term(token, tokens[place + 1 :])
        terms.append(_Term(term.test, term.needs_values, negated))
        place, negated = place + 1 + taken, False
    if negated:
        raise SearchError("not needs a term behind it, for example not relu")
    return Search(tuple(terms))


def _tokens(text: str) -> list[_Token]:
    if text.count('"') % 2:
        raise SearchError('a quotation mark is not closed: add "')
    tokens, place = [], 0
    end = len(text.rstrip(" \t,"))
    while place < end:
        match = _TOKEN.match(text, place)
        if match is None:
            if text[place:].lstrip(" \t,")[:1] in {"(", "["}:
                raise SearchError("a bracket is not closed: write kernel_size=(3,3)")
            raise SearchError(f"{text[place:].strip()} is not understood: put it in quotes")
        tokens.append(_Token(str(match.lastgroup), match[str(match.lastgroup)]))
        place = match.end()
    return tokens


def _term(token: _Token, following: Sequence[_Token]) -> tuple[_Term, int]:
    """Make the term that begins with a token; also return how many more tokens it has."""
    word = token.text
    if token.kind == "quoted":
        return _keyed(word.replace('"', ""), is_quoted=word.startswith('"')), 0
    if token.kind != "word":
        raise SearchError(f"{word} needs a name before it, for example stride=2 or max>100")
    follower = following[0] if following else None
    if follower is not None and follower.kind == "sign":
        value = following[1].text.strip('"') if len(following) > 1 else ""
        return _comparison(word, follower.text, value), 2
    low = word.lower()
    if follower is not None and follower.kind == "word":
        wanted = follower.text.lower()
        if low == "has":
            return _of_table(_HAS, low, wanted), 1
        if low == "is":
            return _of_table(_IS, low, wanted), 1
        if low == "weight" and (_ANY_SIZES.fullmatch(wanted) or wanted in _PLAIN_DTYPES):
            return _weight_term(wanted), 1
    return _keyed(word), 0


def _of_table(table: dict[str, Test], word: str, wanted: str) -> _Term:
    if wanted not in table:
        known = " or ".join(f"{word} {each}" for each in table)
        raise SearchError(f"{word} {wanted} is unknown: write {known}")
    return _Term(table[wanted], needs_values=True)


def _keyed(word: str, *, is_quoted: bool = False) -> _Term:
    key, colon, value = word.partition(":")
    # "::" is part of types such as aten::add.
    if is_quoted or not colon or not key or value.startswith(":"):
        return _plain_term(word) if is_quoted else _bare_term(word)
    make = _KEYED.get(key.lower())
    if make is None:
        known = ", ".join(f"{name}:" for name in _KEYED)
        raise SearchError(f"{key}: is unknown: write one of {known}, or put it in quotes")
    if not value:
        raise SearchError(f"{key}: needs a value after the colon")
    return make(value)


def _bare_term(word: str) -> _Term:
    low = word.lower()
    if low in _PLAIN_DTYPES:
        return _dtype_term(low)
    if _SHAPE.fullmatch(low):
        return _shape_term(low)
    return _plain_term(word)


# Terms of the graph


def text_matcher(value: str) -> Callable[[str], bool]:
    """Return a test of texts in lower case.

    A text must contain the value, or match it as a whole where it has ``*`` or ``?``.
    """
    low = value.lower()
    if "*" in low or "?" in low:
        pattern = re.compile(fnmatch.translate(low))
        return lambda text: pattern.match(text) is not None
    return lambda text: low in text


def _plain_term(word: str) -> _Term:
    matches = text_matcher(word)
    is_pattern = "*" in word or "?" in word

    def test(index: OperatorIndex, _: ValueTable) -> Flags:
        if is_pattern:
            found = _flags(map(matches, index.names)) | _flags(map(matches, index.types))
        else:
            found = _flags(map(matches, index.texts))
        found[index.producers.get(word, [])] = True
        return found

    return _Term(test)


def _type_term(value: str) -> _Term:
    matches = text_matcher(value)
    return _Term(lambda index, _: _flags(map(matches, index.types)))


def _name_term(value: str) -> _Term:
    matches = text_matcher(value)
    return _Term(lambda index, _: _flags(map(matches, index.names)))


def _operand_term(value: str) -> _Term:
    return _Term(lambda index, _: _at(index, index.users.get(value, [])))


def _dims(text: str) -> list[str]:
    return re.split("[x×]", text)


def _shape_term(value: str) -> _Term:
    low = value.lower()
    if not _ANY_SHAPE.fullmatch(low):
        raise SearchError(f"{value} is not a shape: write 1x64x56x56, with * for any size")
    fits = _shape_test(_dims(low))

    def fits_shown(shape: tuple[str, ...]) -> bool:
        # Lists and boxes leave out a batch of 1.
        return fits(shape) or (shape[:1] == ("1",) and fits(shape[1:]))

    return _Term(lambda index, _: _of_columns(index, index.shapes, fits_shown))


def _shape_test(dims: list[str]) -> Callable[[tuple[str, ...]], bool]:
    def fits(shape: tuple[str, ...]) -> bool:
        return len(shape) == len(dims) and all(
            want in ("*", dim) for want, dim in zip(dims, shape, strict=True)
        )

    return fits


def _dtype_name(value: str) -> str:
    low = value.lower()
    found = _DTYPE_NAMES.get(low, low)
    if found not in _DTYPE_NAMES.values():
        raise SearchError(f"{value} is not a dtype: write float32, float16, int64 or bool")
    return found


def _dtype_term(value: str) -> _Term:
    name = _dtype_name(value)
    return _Term(lambda index, _: _at(index, index.dtypes.get(name, [])))


def _weight_term(value: str) -> _Term:
    low = value.lower()
    if low not in _DTYPE_NAMES and low not in _PLAIN_DTYPES:
        if not _ANY_SHAPE.fullmatch(low):
            raise SearchError(
                f"weight {value} is unknown: write weight 64x3x7x7 or weight float16"
            )
        fits = _shape_test(_dims(low))
        return _Term(lambda index, _: _of_columns(index, index.weight_shapes, fits))
    name = _dtype_name(low)
    return _Term(lambda index, _: _at(index, index.weight_dtypes.get(name, [])))


_KEYED: Final[dict[str, Callable[[str], _Term]]] = {
    "type": _type_term,
    "name": _name_term,
    "operand": _operand_term,
    "shape": _shape_term,
    "dtype": _dtype_term,
    "weight": _weight_term,
}


# Comparisons


def _comparison(key: str, sign: str, value: str) -> _Term:
    low = key.lower()
    of_values = low in _NUMBERS and not (sign == "=" and low in _PARAMETERS_TOO)
    if not value:
        example = f"{low}>0.5" if of_values else f"{key}=2 or {key}=(3,3)"
        raise SearchError(f"{key}{sign} needs a value: write {example}")
    if of_values or sign != "=":
        return _number_term(low, sign, value, of_values=of_values)
    equals = _parameter_test(value)
    return _Term(lambda index, _: _with_parameter(index, key, equals))


def _number_term(key: str, sign: str, value: str, *, of_values: bool) -> _Term:
    limit = _number(value)
    if limit is None:
        raise SearchError(f"{key}{sign}{value} needs a number: write {key}{sign}100")
    compare = _COMPARE[sign]
    if of_values:
        column = _NUMBERS[key]

        def of_table(_: OperatorIndex, values: ValueTable) -> Flags:
            found: Flags = compare(column(values), limit)
            return found

        return _Term(of_table, needs_values=True)

    def holds(found: object) -> bool:
        members = found if isinstance(found, (tuple, list)) else (found,)
        numbers = [each for each in members if _is_number(each)]
        return bool(numbers) and all(compare(each, limit) for each in numbers)

    return _Term(lambda index, _: _with_parameter(index, key, holds))


def _number(text: str) -> float | None:
    try:
        return float(text.replace("−", "-"))
    except ValueError:
        return None


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _parameter_test(text: str) -> Callable[[object], bool]:
    """Return a test of a parameter: a number also fits a list of nothing else."""
    if text[0] in "([":
        wanted = [part.strip() for part in text[1:-1].split(",") if part.strip()]
        tests = [_member_test(part) for part in wanted]

        def fits_all(value: object) -> bool:
            if not isinstance(value, (tuple, list)) or len(value) != len(tests):
                return False
            return all(test(member) for test, member in zip(tests, value, strict=True))

        return fits_all
    fits = _member_test(text)

    def holds(value: object) -> bool:
        if isinstance(value, (tuple, list)):
            return bool(value) and all(map(fits, value))
        return fits(value)

    return holds


def _member_test(text: str) -> Callable[[object], bool]:
    number, low = _number(text), text.lower()
    matches = text_matcher(low) if "*" in low or "?" in low else low.__eq__

    def fits(value: object) -> bool:
        if _is_number(value):
            return number is not None and value == number
        return bool(matches(str(value).lower()))

    return fits


def _with_parameter(index: OperatorIndex, name: str, holds: Callable[[object], bool]) -> Flags:
    column = index.parameters.get(name.lower())
    if column is None:
        near = difflib.get_close_matches(name.lower(), index.parameters, 1)
        hint = f": do you mean {near[0]}?" if near else ""
        if name.lower() in _KEYED:  # as parameters may be named, too
            hint = f": write {name}: with a colon"
        raise SearchError(f"no operator has a parameter {name}{hint}")
    known: dict[int, bool] = {}  # parameters recur, and are the same objects for equal texts
    found = np.zeros(len(index), np.bool_)
    for place, value in column:
        key = id(value)
        if key not in known:
            known[key] = holds(value)
        found[place] |= known[key]
    return found


# Columns to flags


def _flags(tests: Iterable[bool]) -> Flags:
    return np.fromiter(tests, np.bool_)


def _at(index: OperatorIndex, places: list[int]) -> Flags:
    found = np.zeros(len(index), np.bool_)
    found[places] = True
    return found


def _of_columns(
    index: OperatorIndex,
    column: dict[tuple[str, ...], list[int]],
    fits: Callable[[tuple[str, ...]], bool],
) -> Flags:
    """Return the operators of those keys that fit; there are far fewer than operators."""
    found = np.zeros(len(index), np.bool_)
    for key, places in column.items():
        if fits(key):
            found[places] = True
    return found
