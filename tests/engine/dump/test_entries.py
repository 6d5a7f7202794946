"""Which operators and values a dump takes."""

from __future__ import annotations

import numpy as np
import pytest

from engine.dump import DumpOptions, select_operators
from engine.dump.entries import collect_entries
from engine.errors import ExportError, UnknownNameError


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        pytest.param(None, list(range(25)), id="all"),
        pytest.param((), [], id="none"),
        pytest.param(("pool",), [20], id="name"),
        pytest.param(("nn.Linear",), [22], id="type"),
        pytest.param(("7",), [7], id="index"),
        pytest.param(("block1.*",), [4, 7], id="star"),
        pytest.param(("convbn2d_?",), [1, 3, 5, 8, 10, 11, 14, 16, 17], id="question mark"),
        pytest.param(("nn.Linear", "pool", "20"), [20, 22], id="union in order"),
        pytest.param(("*",), list(range(25)), id="everything"),
    ],
)
def test_select_operators(digits, patterns, expected):
    found = select_operators(digits.graph, patterns)
    assert [operator.index for operator in found] == expected


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        pytest.param(
            "clasifier",
            "the graph has no operator named 'clasifier'; did you mean 'classifier'?",
            id="nearest name",
        ),
        pytest.param(
            "nn.Conv3d",
            "the graph has no operator named 'nn.Conv3d'; did you mean 'nn.Conv2d'?",
            id="nearest type",
        ),
        pytest.param("[a-z]*", "the graph has no operator named '[a-z]*'", id="no brackets"),
        pytest.param("25", "the graph has no operator named '25'", id="index too high"),
        pytest.param("POOL", "the graph has no operator named 'POOL'", id="case counts"),
    ],
)
def test_select_nothing(digits, pattern, sentence):
    with pytest.raises(UnknownNameError) as caught:
        select_operators(digits.graph, (pattern,))
    assert str(caught.value).startswith(sentence)


def test_brackets_in_names_are_meant(make_pair):
    import engine

    graph = engine.load(make_pair("test.Op x[0] 0 1 a", "test.Op x0 0 1 b"))
    assert [op.name for op in select_operators(graph, ("x[0]",))] == ["x[0]"]


def test_stars_do_not_take_for_ever(session_with):
    session = session_with({"a" * 250: np.zeros(1)}, operator_type="a" * 250)
    with pytest.raises(UnknownNameError):  # backtracking would take longer than the world
        select_operators(session.graph, ("*" * 200 + "b",))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({}, ["0", *map(str, range(1, 24))], id="all"),
        pytest.param({"operators": ("pool",)}, ["0", "20"], id="inputs come along"),
        pytest.param({"operators": ("pool",), "inputs": False}, ["20"], id="without inputs"),
        pytest.param({"outputs": False}, ["0"], id="inputs alone"),
        pytest.param(
            {"operators": ("classifier",), "weights": True, "inputs": False, "outputs": False},
            ["classifier.bias", "classifier.weight"],
            id="weights of chosen operators",
        ),
        pytest.param({"inputs": False, "outputs": False}, [], id="nothing"),
    ],
)
def test_what_is_taken(digits, options, expected):
    entries = collect_entries(digits, DumpOptions(**options))
    assert [entry.name for entry in entries] == expected


def test_arrays_are_the_sessions_own(digits):
    entry = collect_entries(digits, DumpOptions(operators=("pool",), inputs=False))[0]
    assert entry.load(None) is digits.value("20")


VALUES = [
    pytest.param(np.zeros((2, 3)), [("tensor", (), (2, 3), None)], id="array"),
    pytest.param(True, [("bool", (), (), True)], id="bool"),
    pytest.param(7, [("int", (), (), 7)], id="int"),
    pytest.param(1 << 90, [("int", (), None, 1 << 90)], id="long int"),
    pytest.param(0.5, [("float", (), (), 0.5)], id="float"),
    pytest.param(float("nan"), [("float", (), (), "nan")], id="nan"),
    pytest.param(1j, [("complex", (), (), "1j")], id="complex"),
    pytest.param("zeros", [("str", (), None, "zeros")], id="text"),
    pytest.param(None, [("NoneType", (), None, None)], id="none"),
    pytest.param((), [("tuple", (), None, [])], id="empty tuple"),
    pytest.param(
        (np.zeros(2), (3, None)),
        [
            ("tensor", (0,), (2,), None),
            ("int", (1, 0), (), 3),
            ("NoneType", (1, 1), None, None),
        ],
        id="nested tuple",
    ),
    pytest.param(np.array(["a"]), [("tensor", (), None, None)], id="array of text"),
    pytest.param(np.array([None]), [("tensor", (), None, None)], id="array of objects"),
]


@pytest.mark.parametrize(("value", "expected"), VALUES)
def test_values_of_all_kinds(session_with, value, expected):
    entries = collect_entries(session_with({"x": value}), DumpOptions())
    assert [
        (e.kind, e.member, None if e.metadata is None else e.metadata.shape, e.value)
        for e in entries
    ] == expected


def test_weights_of_a_model_without(make_pair):
    import engine

    param = make_pair(
        "nn.Linear fc 0 1 x @weight=(2,2)f32", weights={"fc.weight": np.eye(2, dtype="f4")}
    )
    param.with_suffix(".bin").unlink()
    session = engine.Session(engine.load(param))
    with pytest.raises(ExportError, match="no weights to write: .* without its .bin"):
        collect_entries(session, DumpOptions(weights=True))


def test_a_weight_that_pnnx_did_not_store(make_pair):
    import engine

    session = engine.Session(engine.load(make_pair("test.Op q 0 1 x @packed=(4)null")))
    entries = collect_entries(session, DumpOptions(weights=True))
    assert [(e.name, e.stored_dtype, e.metadata) for e in entries] == [
        ("q.packed", "null", None)
    ]
