from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from kuiper_studio.item_models import OperandColumn, OperandsModel


@pytest.fixture
def model(studio) -> OperandsModel:
    return OperandsModel(studio)


def table(model) -> list[tuple[str, ...]]:
    return [
        tuple(model.index(row, column).data() for column in OperandColumn)
        for row in range(model.rowCount())
    ]


def test_inputs_and_outputs(studio, model, qtmodeltester) -> None:
    model.show_operator(studio.graph.operator("add"))
    assert table(model) == [
        ("in", "1", "1×4×8×8", "f32", "layer1.conv"),
        ("in", "2", "1×4×8×8", "f32", "layer1.relu"),
        ("out", "3", "1×4×8×8", "f32", "layer2.pool"),
    ]
    qtmodeltester.check(model)


def test_each_consumer_has_a_row(studio, model) -> None:
    model.show_operator(studio.graph.operator("layer1.conv"))
    assert table(model) == [
        ("in", "0", "1×3×8×8", "f32", "in"),
        ("out", "1", "1×4×8×8", "f32", "layer1.relu"),
        ("", "", "", "", "add"),
    ]
    assert model.row_at(0).argument == "input"
    assert model.row_at(2).operand.name == "1"


def test_ends_of_the_model(studio, model) -> None:
    model.show_operator(studio.graph.operator("out"))
    assert table(model) == [("in", "6", "1×4×4×4", "f32", "tail")]
    model.show_operator(None)
    assert model.rowCount() == 0


def test_computed_shapes_win(open_model, failing, step) -> None:
    session = open_model(failing)
    model = OperandsModel(session)
    model.show_operator(session.graph.operator("conv"))
    heard = []
    model.dataChanged.connect(lambda first, last: heard.append((first.row(), last.row())))
    step(session, 2)
    model.refresh()
    assert heard == [(0, 1)]
    assert model.index(1, OperandColumn.SHAPE).data() == "1×3×6×6"
    tip = model.index(1, OperandColumn.SHAPE).data(Qt.ItemDataRole.ToolTipRole)
    assert tip == "1×3×6×6 f32\nexported as 1×3×8×8"


def test_shape_not_known(open_model, make_pair) -> None:
    path = make_pair("pnnx.Input in 0 1 0", "pnnx.Output out 1 0 0")
    session = open_model(path)
    model = OperandsModel(session)
    model.show_operator(session.graph.operator("in"))
    assert table(model) == [("out", "0", "?", "", "out")]


def test_a_tuple_has_members_and_a_number_is_shown(open_model, make_pair, step) -> None:
    lines = (
        "pnnx.Input in 0 1 0 #0=(2,6)f32",
        "aten::size size 1 1 0 1",
        "prim::Constant three 0 1 2 value=3",
        "prim::TupleConstruct all 3 1 0 1 2 3",
        "pnnx.Output out 1 0 3",
    )
    session = open_model(make_pair(*lines))
    model = OperandsModel(session)
    model.show_operator(session.graph.operator("all"))
    assert [row[2] for row in table(model)] == ["2×6", "?", "?", "?"]
    step(session, 4)
    model.refresh()
    assert [row[2] for row in table(model)] == ["2×6", "2 members", "3", "3 members"]
