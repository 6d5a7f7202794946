"""Tokens, their places, and the words that are none."""

from __future__ import annotations

import math

import pytest

from engine.errors import ExpressionError
from engine.expression.lexer import TokenKind, tokenize


def test_tokens_know_where_they_stand():
    tokens = tokenize(" add( @10 ,[x.y])")
    assert [(t.kind, t.text, t.start, t.end) for t in tokens] == [
        (TokenKind.NAME, "add", 1, 4),
        (TokenKind.OPEN, "(", 4, 5),
        (TokenKind.OPERAND, "@10", 6, 9),
        (TokenKind.COMMA, ",", 10, 11),
        (TokenKind.OPEN_LIST, "[", 11, 12),
        (TokenKind.NAME, "x.y", 12, 15),
        (TokenKind.CLOSE_LIST, "]", 15, 16),
        (TokenKind.CLOSE, ")", 16, 17),
    ]


@pytest.mark.parametrize("text", ["", "   ", "\t\n"])
def test_blanks_alone_are_no_tokens(text):
    assert tokenize(text) == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-3", -3),
        ("+7", 7),
        ("0012", 12),
        ("0" * 5000, 0),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("2.5", 2.5),
        ("3.", 3.0),
        (".5", 0.5),
        ("1.000000e-7", 1e-7),
        ("1.000000e10", 1e10),
        ("1e999", math.inf),
        ("inf", math.inf),
        ("-inf", -math.inf),
        ("0.000000e+00+4.000000e+00j", 4j),
        ("1.200000e+00-9.000000e-01j", 1.2 - 0.9j),
        ("1.2+-0.9j", 1.2 - 0.9j),
        ("1++2j", 1 + 2j),
        ("4j", 4j),
        ("-4j", -4j),
        ("inf-infj", complex(math.inf, -math.inf)),
        ("True", True),
        ("False", False),
        ("None", None),
    ],
)
def test_constants(text, value):
    (token,) = tokenize(text)
    assert token.kind is TokenKind.CONSTANT
    assert type(token.value) is type(value)
    assert token.value == value


@pytest.mark.parametrize("text", ["nan", "-nan"])
def test_nan(text):
    (token,) = tokenize(text)
    assert isinstance(token.value, float)
    assert math.isnan(token.value)


@pytest.mark.parametrize("text", ["torch.float", "infinite", "_x", "cuda:0", "Truely", "e1"])
def test_other_words_are_names(text):
    (token,) = tokenize(text)
    assert (token.kind, token.value) == (TokenKind.NAME, text)


@pytest.mark.parametrize(
    ("text", "position", "reason"),
    [
        ("add(@0,#)", 7, "'#' is not allowed"),
        ("  'x'", 2, '"\'" is not allowed'),
        ("é", 0, "'é' is not allowed"),
        ("add(@0*2)", 6, "'*' is not allowed"),
        ("@", 0, "an operand is @ with a number, such as @0"),
        ("[@,1]", 1, "an operand is @ with a number, such as @0"),
        ("@x", 1, "'x' is not allowed after '@'"),
        ("@0+1", 2, "'+' is not allowed after '@0'"),
        ("@-1", 1, "'-' is not allowed after '@'"),
        ("12abc", 2, "'a' is not allowed after '12'"),
        ("1.2.3", 3, "'.' is not allowed after '1.2'"),
        ("1+2", 1, "'+' is not allowed after '1'"),
        ("-@0", 0, "'-' is not allowed"),
        ("a@b", 1, "'@' is not allowed after 'a'"),
        (":", 0, "':' is not allowed"),
        ("[1,9223372036854775808]", 3, "the integer does not fit 64 bits"),
        ("-9223372036854775809", 0, "the integer does not fit 64 bits"),
        ("@" + "9" * 5000, 0, "the integer does not fit 64 bits"),
    ],
)
def test_errors_point_at_the_character(text, position, reason):
    with pytest.raises(ExpressionError) as caught:
        tokenize(text)
    assert (caught.value.position, caught.value.reason) == (position, reason)
    assert caught.value.text == text
