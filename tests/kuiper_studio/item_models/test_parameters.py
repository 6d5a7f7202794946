from __future__ import annotations

from PySide6.QtCore import Qt

from kuiper_studio.item_models import ParametersModel


def test_parameters_with_their_types(studio, qtmodeltester) -> None:
    model = ParametersModel()
    model.show_operator(studio.graph.operator("layer1.conv"))
    rows = {
        model.index(row, 0).data(): (
            model.index(row, 1).data(),
            model.index(row, 1).data(Qt.ItemDataRole.ToolTipRole).splitlines()[1],
        )
        for row in range(model.rowCount())
    }
    assert rows["kernel_size"] == ("(3, 3)", "int array")
    assert rows["padding_mode"] == ("'zeros'", "string")
    assert rows["bias"] == ("True", "bool")
    assert rows["groups"] == ("1", "int")
    qtmodeltester.check(model)


def test_nothing_to_show() -> None:
    model = ParametersModel()
    model.show_operator(None)
    assert model.rowCount() == 0
