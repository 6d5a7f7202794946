"""The filter language of the operators list, without Qt.

All words, separated by blanks, must match. ``-`` before a word negates it; quotes protect
blanks::

    relu                type or name contains it
    type:Conv name:layer1 family:pool
    #12  #10-20         index
    ms>1  ms<=0.5       measured time
    diff>1e-4           difference from the reference, relative to its maximum
    shape:64  shape:64x56x56   a dimension, or consecutive dimensions, of an output
    kernel:ncnn         the kernel that computed it, e.g. onnxruntime/all-2
    state:failed        next, run, pending, failed, blocked, unsupported, breakpoint, problem,
                        nonfinite, random; after a comparison born, inherited, equal, other
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from engine.search import text_matcher
from kuiper_studio.item_models.statuses import NONFINITE, STATUS_LOOKS

__all__ = ["STATES", "FilterError", "OperatorFacts", "OperatorFilter", "parse_filter"]


class OperatorFacts(Protocol):
    """The properties of an operator that a filter can query, computed on demand."""

    @property
    def index(self) -> int:
        """Index in execution order."""
        ...

    @property
    def type(self) -> str:
        """Operator type."""
        ...

    @property
    def name(self) -> str:
        """Operator name."""
        ...

    @property
    def family(self) -> str:
        """Token and label of the family, for example ``conv CONV``."""
        ...

    @property
    def states(self) -> frozenset[str]:
        """The words of `STATES` that apply."""
        ...

    @property
    def ms(self) -> float | None:
        """Milliseconds; None before it ran."""
        ...

    @property
    def diff(self) -> float | None:
        """Difference from the reference, relative to its maximum; None if not compared."""
        ...

    @property
    def kernel(self) -> str:
        """Kernel that computed it; ``""`` before it ran."""
        ...

    @property
    def shapes(self) -> tuple[tuple[int | str | None, ...], ...]:
        """Shapes of the outputs."""
        ...


Test = Callable[[OperatorFacts], bool]

STATES: Final = (
    *(look.word for look in STATUS_LOOKS.values() if look.word),
    "breakpoint",
    "problem",
    NONFINITE.word,
    "random",
    # Of a comparison with a reference
    "born",
    "inherited",
    "equal",
    "other",
)


class FilterError(ValueError):
    """A filter with a syntax error; the message says how to write it."""


@dataclass(frozen=True, slots=True)
class OperatorFilter:
    """A parsed filter; an empty one accepts everything."""

    tests: tuple[Test, ...] = ()

    def accepts(self, facts: OperatorFacts) -> bool:
        """Return whether all words match."""
        for test in self.tests:  # noqa: SIM110 - a generator takes as long as most tests
            if not test(facts):
                return False
        return True


def parse_filter(text: str) -> OperatorFilter:
    """Parse a filter.

    Raises
    ------
    FilterError
        If a word has a syntax error.
    """
    if text.count('"') % 2:
        raise FilterError('a quotation mark is not closed: add "')
    words = re.findall(r'(?:[^\s"]|"[^"]*")+', text)
    return OperatorFilter(tuple(_parse_word(word) for word in words))


def _parse_word(word: str) -> Test:
    if len(word) > 1 and word[0] in "-!":
        inner = _parse_word(word[1:])
        return lambda facts: not inner(facts)
    word = word.replace('"', "")
    if word.startswith("#"):
        return _index_test(word)
    compared = re.fullmatch(r"(ms|diff)(<=|>=|<|>|=)(.*)", word, re.IGNORECASE)
    if compared:
        return _number_test(compared[1].lower(), compared[2], compared[3])
    key, colon, value = word.partition(":")
    # "::" is part of names such as aten::add.
    if not colon or not key or value.startswith(":"):
        return _text_test(word)
    make = _KEYED.get(key.lower())
    if make is None:
        known = ", ".join(f"{name}:" for name in _KEYED)
        raise FilterError(f"{key}: is unknown; use {known} #index, ms>1 or diff>1e-4")
    if not value:
        raise FilterError(f"{key}: needs a value after the colon")
    return make(value)


def _matcher(value: str) -> Callable[[str], bool]:
    """Match a substring, ignoring case; with ``*`` or ``?`` a pattern for the whole text."""
    matches = text_matcher(value)
    return lambda text: matches(text.lower())


def _text_test(value: str) -> Test:
    matches = _matcher(value)
    return lambda facts: matches(facts.type) or matches(facts.name)


def _type_test(value: str) -> Test:
    matches = _matcher(value)
    return lambda facts: matches(facts.type)


def _name_test(value: str) -> Test:
    matches = _matcher(value)
    return lambda facts: matches(facts.name)


def _family_test(value: str) -> Test:
    matches = _matcher(value)
    return lambda facts: matches(facts.family)


def _kernel_test(value: str) -> Test:
    matches = _matcher(value)
    return lambda facts: bool(facts.kernel) and matches(facts.kernel)


def _state_test(value: str) -> Test:
    wanted = {state for state in STATES if state.startswith(value.lower())}
    if not wanted:
        raise FilterError(f"state:{value} is unknown; use {', '.join(STATES)}")
    return lambda facts: not wanted.isdisjoint(facts.states)


def _shape_test(value: str) -> Test:
    dims = tuple(dim for dim in re.split(r"[x×,]", value.lower()) if dim)
    if not dims or not all(re.fullmatch(r"\d+|\?|%?[a-z_]\w*", dim) for dim in dims):
        raise FilterError(f"shape:{value} is not a shape; write shape:64 or shape:64x56x56")

    def holds(facts: OperatorFacts) -> bool:
        return any(_contains(shape, dims) for shape in facts.shapes)

    return holds


def _contains(shape: tuple[int | str | None, ...], dims: tuple[str, ...]) -> bool:
    texts = ["?" if dim is None else str(dim).lower() for dim in shape]
    starts = range(len(texts) - len(dims) + 1)
    return any(texts[start : start + len(dims)] == list(dims) for start in starts)


def _index_test(word: str) -> Test:
    match = re.fullmatch(r"#(\d{1,9})(?:-(\d{1,9}))?", word)
    if match is None:
        raise FilterError(f"{word} is not an index; write #12 or #10-20")
    first = int(match[1])
    last = int(match[2]) if match[2] else first
    return lambda facts: first <= facts.index <= last


_COMPARE: Final = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
}

_EXAMPLES: Final = {
    "ms": "a time; write ms>1 or ms<=0.5",
    "diff": "a number; write diff>1e-4",
}


def _number_test(key: str, sign: str, value: str) -> Test:
    try:
        limit = float(value)
    except ValueError:
        raise FilterError(f"{key}{sign}{value} is not {_EXAMPLES[key]}") from None
    compare, number = _COMPARE[sign], operator.attrgetter(key)

    def holds(facts: OperatorFacts) -> bool:
        found = number(facts)
        return found is not None and bool(compare(found, limit))

    return holds


_KEYED: Final[dict[str, Callable[[str], Test]]] = {
    "type": _type_test,
    "name": _name_test,
    "family": _family_test,
    "shape": _shape_test,
    "kernel": _kernel_test,
    "state": _state_test,
}
