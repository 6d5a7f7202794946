"""What the fields of sizes show, and what changing them asks for."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from engine.shapes import InputShapes
from kuiper_studio.panels.input_sizes import (
    answer,
    change,
    dimensions,
    forget,
    is_requested,
    of_open_dimensions,
    question,
)


@dataclass
class Operand:
    name: str
    shape: tuple[int | str | None, ...] | None


A = Operand("a", (1, 3, "%h", None))
B = Operand("b", ("%h", 16))
C = Operand("c", None)
BOTH = [A, B]


def sizes(row) -> list[tuple[int, str]]:
    """Sizes, with a ? where one is open and a mark where it is repeated."""
    return [(d.size, "?" * d.is_open + "r" * d.is_repeated) for d in row]


@pytest.mark.parametrize(
    ("asked", "fed", "a", "b"),
    [
        (
            InputShapes(),
            {},
            [(1, ""), (3, ""), (224, "?"), (224, "?")],
            [(224, "?r"), (16, "")],
        ),
        (
            InputShapes({}, {"%h": 8}),
            {},
            [(1, ""), (3, ""), (8, ""), (224, "?")],
            [(8, "r"), (16, "")],
        ),
        (
            InputShapes({"a": (2, None, None, 5)}, {"%h": 8}),
            {"a": (1, 3, 7, 7)},
            [(2, ""), (3, ""), (8, ""), (5, "")],
            [(8, "r"), (16, "")],
        ),
        (
            InputShapes(),
            {"a": (1, 3, 7, 9), "b": (7, 16)},
            [(1, ""), (3, ""), (7, ""), (9, "")],
            [(7, "r"), (16, "")],
        ),
        # What contradicts itself is told where it is fed; until then the file counts.
        (
            InputShapes({"b": (4, 16)}, {"%h": 8}),
            {},
            [(1, ""), (3, ""), (224, "?"), (224, "?")],
            [(224, "?r"), (16, "")],
        ),
    ],
)
def test_dimensions(asked, fed, a, b):
    found = dimensions(BOTH, asked, fed)
    assert (sizes(found["a"]), sizes(found["b"])) == (a, b)


def test_dimensions_of_unknown_rank():
    assert dimensions([C], InputShapes(), {}) == {"c": None}
    assert sizes(dimensions([C], InputShapes({"c": (2, 3)}), {})["c"]) == [(2, ""), (3, "")]
    assert sizes(dimensions([C], InputShapes(), {"c": (4,)})["c"]) == [(4, "")]


def test_a_change_asks_for_what_is_not_exported():
    assert change([Operand("a", (1, 3, 8))], InputShapes(), "a", (1, 4, 8)) == InputShapes(
        {"a": (None, 4, None)}
    )
    same = change(
        [Operand("a", (1, 3, 8))], InputShapes({"a": (None, 4, None)}), "a", (1, 3, 8)
    )
    assert same == InputShapes()


def test_a_symbol_is_asked_for_by_its_name():
    # From the command line a shape may have said what the symbol is.
    given = InputShapes({"a": (1, 3, 8, 5)})
    changed = change(BOTH, given, "b", (9, 16))
    assert changed == InputShapes({"a": (None, None, None, 5)}, {"%h": 9})
    assert change(BOTH, given, "b", (None, 17)).symbols == {"%h": 8}


def test_a_shape_of_another_rank_is_dropped():
    assert change(BOTH, InputShapes({"a": (1, 2)}), "b", (9, 16)).shapes == {}


def test_answer():
    assert answer(BOTH, InputShapes(), {"a": (1, 3, 6, 7), "b": (None, 16)}) == InputShapes(
        {"a": (None, None, None, 7)}, {"%h": 6}
    )


def test_forget():
    asked = InputShapes({"a": (2, None, None, 5), "c": (4,)}, {"%h": 9})
    assert forget([*BOTH, C], asked, "a") == InputShapes({"c": (4,)})
    assert [is_requested(operand, asked) for operand in (A, B, C)] == [True, True, True]
    assert not is_requested(B, InputShapes({"a": (2, None, None, 5)}))


def test_of_open_dimensions():
    asked = InputShapes({"a": (2, None, None, 5), "b": (None, 17), "c": (4,)}, {"%h": 9})
    assert of_open_dimensions([A, B, C], asked) == InputShapes(
        {"a": (None, None, None, 5), "c": (4,)}, {"%h": 9}
    )


@pytest.mark.parametrize(
    ("wanted", "asked", "text"),
    [
        (["a", "b"], InputShapes(), "What are the sizes of %h and dimension 3 of input a?"),
        (["a"], InputShapes({}, {"%h": 3}), "What is the size of dimension 3 of input a?"),
        (["b"], InputShapes({}, {"%h": 3}), ""),
        ([], InputShapes(), ""),
    ],
)
def test_question(wanted, asked, text):
    assert question(BOTH, dimensions(BOTH, asked, {}), wanted) == text


def test_a_long_question_is_cut():
    operand = Operand("a", (None,) * 5)
    dims = dimensions([operand], InputShapes(), {})
    assert question([operand], dims, ["a"]) == ("What are the sizes of the 5 open dimensions?")
