"""Splits an expression into tokens with positions.

A word is anything between brackets and commas: a function (``add``), an operand (``@0``),
a number, one of True, False and None, or a bare string. The text decides which one, except for
functions, which the parser looks up.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final, NamedTuple

from engine.errors import ExpressionError

__all__ = ["ConstantValue", "Token", "TokenKind", "tokenize"]

ConstantValue = int | float | complex | bool | str | None


class TokenKind(StrEnum):
    """Kind of a token."""

    OPEN = "("
    CLOSE = ")"
    OPEN_LIST = "["
    CLOSE_LIST = "]"
    COMMA = ","
    OPERAND = "@"
    CONSTANT = "constant"
    NAME = "name"


class Token(NamedTuple):
    """One token.

    Attributes
    ----------
    kind : TokenKind
    text : str
        Source text.
    start, end : int
        Half-open span in the expression.
    value : int, float, complex, bool, str or None
        The index of an operand, the value of a constant; the text otherwise.
    """

    kind: TokenKind
    text: str
    start: int
    end: int
    value: ConstantValue


_PUNCTUATION: Final = {kind.value: kind for kind in list(TokenKind)[:5]}
_WORDS: Final[dict[str, ConstantValue]] = {"True": True, "False": False, "None": None}

# Words are split off first and classified afterwards, so that an error can point at the
# character inside the word. No alternative below can match the same text in two ways, so
# matching is linear for any file.
_TOKEN: Final = re.compile(r"\s*([(),\[\]]|[\w.@:+\-]+|\S)", re.ASCII)
_OPERAND: Final = re.compile(r"@[0-9]*")
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_REAL: Final = r"(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf|nan)"
_FLOAT: Final = re.compile(rf"[+-]?{_REAL}")
# With two signs pnnx means the second: 1.2e+00+-9.0e-01j.
_COMPLEX: Final = re.compile(rf"([+-]?{_REAL})\+?([+-]{_REAL})j")
_IMAGINARY: Final = re.compile(rf"([+-]?{_REAL})j")
_NAME: Final = re.compile(r"[A-Za-z_][\w.:]*", re.ASCII)
_NUMERIC: Final = re.compile(r"[+\-.0-9]|inf|nan")
_INT64_RANGE: Final = range(-(1 << 63), 1 << 63)
_INT64_DIGITS: Final = 19


def tokenize(text: str) -> list[Token]:
    """Split an expression into tokens; blanks between them are dropped.

    Parameters
    ----------
    text : str

    Returns
    -------
    list of Token

    Raises
    ------
    ExpressionError
        At an invalid character, or an invalid word.
    """
    tokens: list[Token] = []
    for match in _TOKEN.finditer(text):
        word, start = match[1], match.start(1)
        kind = _PUNCTUATION.get(word)
        if kind is None:
            tokens.append(_word(text, word, start))
        else:
            tokens.append(Token(kind, word, start, start + 1, word))
    return tokens


def _word(text: str, word: str, start: int) -> Token:
    """Classify a word by its spelling."""
    end = start + len(word)
    if word in _WORDS:
        return Token(TokenKind.CONSTANT, word, start, end, _WORDS[word])
    number = _number(text, word, start)
    if number is not None:
        return Token(TokenKind.CONSTANT, word, start, end, number)
    pattern = _OPERAND if word[0] == "@" else _FLOAT if word[0] in "+-.0123456789" else _NAME
    match = pattern.match(word)
    fits = match.end() if match else 0
    if fits < len(word):
        after = f" after {word[:fits]!r}" if fits else ""
        raise ExpressionError(text, start + fits, f"{word[fits]!r} is not allowed{after}")
    if word == "@":
        raise ExpressionError(text, start, "an operand is @ with a number, such as @0")
    if word[0] == "@":
        return Token(TokenKind.OPERAND, word, start, end, _integer(text, word[1:], start))
    return Token(TokenKind.NAME, word, start, end, word)


def _number(text: str, word: str, start: int) -> int | float | complex | None:
    if not _NUMERIC.match(word):
        return None
    if _INTEGER.fullmatch(word):
        return _integer(text, word, start)
    if _FLOAT.fullmatch(word):
        return float(word)
    match = _COMPLEX.fullmatch(word)
    if match:
        return complex(float(match[1]), float(match[2]))
    match = _IMAGINARY.fullmatch(word)
    return complex(0.0, float(match[1])) if match else None


def _integer(text: str, word: str, start: int) -> int:
    digits = word.lstrip("+-").lstrip("0") or "0"
    if len(digits) <= _INT64_DIGITS:
        value = -int(digits) if word[0] == "-" else int(digits)
        if value in _INT64_RANGE:
            return value
    raise ExpressionError(text, start, "the integer does not fit 64 bits")
