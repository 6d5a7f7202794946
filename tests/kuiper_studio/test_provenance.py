"""Where an element comes from, in the window: through commands, clicks and the history."""

from __future__ import annotations

import numpy as np
import pytest
from driving import choose
from ncnn_files import f32, tagged, write_pair
from PySide6.QtCore import QEvent, QObject, QPoint, Qt
from PySide6.QtWidgets import QMenu, QPushButton, QWidget
from typing_extensions import override

from kuiper_studio.item_models.provenance_rows import TermColumn
from kuiper_studio.session.asking import Place

RNG = np.random.default_rng(5)
INPUT = RNG.normal(size=(1, 3, 8, 8)).astype(np.float32)


@pytest.fixture
def window(open_window, residual, qtbot):
    window = open_window(residual, [INPUT])
    window.session.resume()
    assert window.session.wait_idle(10)
    return window


def explain(window, qtbot, operator, index):
    """Pick an element of an operator's output, and ask where it comes from."""
    window.session.select(operator)
    qtbot.waitUntil(lambda: window.tensor_view.pane.model.array is not None)
    window.tensor_view.pane.show_element(index)
    choose(window, "analyse.explain")
    wait(window, qtbot)


def wait(window, qtbot):
    explaining = window.session.explaining
    qtbot.waitUntil(
        lambda: (
            not explaining.is_ahead
            and (
                bool(explaining.reason)
                or (explaining.provenance is not None and explaining.field is not None)
            )
        ),
        timeout=20_000,  # the first one imports all rules
    )


def cell(window, row, column):
    return window.provenance_panel.model.index(row, column)


def click(window, qtbot, index):
    table = window.provenance_panel.table
    table.scrollTo(index)
    place = table.visualRect(index).center()
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=place)


def test_an_element_of_a_convolution(window, qtbot):
    explain(window, qtbot, "layer1.conv", (0, 2, 3, 4))
    panel = window.provenance_panel
    assert panel.isVisible()
    assert panel.suffix == "1[0, 2, 3, 4]"
    assert panel.title.text() == "nn.Conv2d layer1.conv · 1[0, 2, 3, 4]"
    assert panel.formula.text() == (
        "y[0, 2, 3, 4] = bias[2] + Σ weight[2, c, i, j] · 0[0, c, 2 + i, 3 + j]"
    )
    graph = window.session.graph
    weight = graph.operator("layer1.conv").attributes["weight"].array
    products = INPUT[0, :, 2:5, 3:6].astype(np.float64) * weight[2]
    assert panel.difference.text().startswith("✓ difference ")
    sums = products.sum(axis=(1, 2))
    largest = int(np.abs(sums).argmax())
    numbers = panel.numbers.text().replace("\u00a0", " ")
    assert f"{abs(sums[largest]):.4f} (channel {largest})" in numbers
    first, second = panel.check.text().splitlines()
    number = float(first.split()[-1].replace("−", "-"))
    assert number == pytest.approx(products.sum(), abs=1e-7)  # the third bias is 0
    assert second.startswith("engine float32")
    # The largest product is first, with its input and weight.
    place = np.unravel_index(np.abs(products).argmax(), products.shape)
    c, i, j = (int(each) for each in place)
    assert cell(window, 0, TermColumn.INPUT).data() == f"0[0, {c}, {2 + i}, {3 + j}]"
    assert panel.model.rowCount() == 27
    assert panel.products.isVisible()
    assert panel.sums.isVisible()
    assert panel.field_texts["Region"].text() == "rows 2–4, columns 3–5"
    assert panel.field_texts["Size"].text() == "3×3 of 8×8 · 14.1 %"
    qtbot.waitUntil(panel.field.isVisible)  # the input is fetched
    assert panel.field.box.getRect() == (3.0, 2.0, 3.0, 3.0)


def test_a_click_walks_upstream_and_back(window, qtbot):
    explain(window, qtbot, "add", (0, 1, 2, 2))
    panel, session = window.provenance_panel, window.session
    assert panel.model.rowCount() == 2
    click(window, qtbot, cell(window, 1, TermColumn.INPUT))
    wait(window, qtbot)
    assert session.explaining.place == Place("2", (0, 1, 2, 2))
    assert session.selected == "layer1.relu"
    assert window.tensor_view.picked.index == (0, 1, 2, 2)
    click(window, qtbot, cell(window, 0, TermColumn.INPUT))
    wait(window, qtbot)
    assert session.selected == "layer1.conv"
    for operator, operand in (("layer1.relu", "2"), ("add", "3")):
        choose(window, "view.back")
        wait(window, qtbot)
        assert session.selected == operator
        assert session.explaining.place == Place(operand, (0, 1, 2, 2))
        assert panel.suffix == f"{operand}[0, 1, 2, 2]"
    choose(window, "view.forward")
    wait(window, qtbot)
    assert session.explaining.place == Place("2", (0, 1, 2, 2))


def test_the_operator_is_selected_after_the_answer(window, qtbot, monkeypatch):
    explain(window, qtbot, "add", (0, 1, 2, 2))
    panel, session = window.provenance_panel, window.session
    shown = []
    session.selection_changed.connect(lambda _: shown.append(panel.title.text()))
    click(window, qtbot, cell(window, 1, TermColumn.INPUT))
    assert session.selected == "add"
    wait(window, qtbot)
    assert session.selected == "layer1.relu"
    assert shown == ["nn.ReLU layer1.relu · 2[0, 1, 2, 2]"]
    # One that takes long is selected meanwhile.
    monkeypatch.setattr(session.explaining.client, "send", lambda request: None)
    click(window, qtbot, cell(window, 0, TermColumn.INPUT))
    qtbot.waitUntil(lambda: session.selected == "layer1.conv")


def test_maps_are_shown_when_the_last_of_their_values_has_come(window, qtbot, monkeypatch):
    explain(window, qtbot, "layer1.conv", (0, 1, 2, 2))
    panel, tensors = window.provenance_panel, window.session.tensors
    qtbot.waitUntil(panel.maps.isVisible)
    for late in ("1", "0"):  # the output, the input
        look = tensors.look
        monkeypatch.setattr(
            tensors, "look", lambda name, look=look, late=late: name != late and look(name)
        )
        panel._show_maps()
        assert not panel.maps.isVisible()
        monkeypatch.undo()
        tensors.recalled.emit(late)
        assert panel.maps.isVisible()


def test_what_is_shown_is_not_painted_again(window, qtbot):
    explain(window, qtbot, "layer1.conv", (0, 1, 2, 2))
    panel, tensors = window.provenance_panel, window.session.tensors
    qtbot.waitUntil(lambda: panel.maps.isVisible() and panel.field.isVisible())
    qtbot.wait(300)  # until pictures of the graph have come
    panel.scroll_area.ensureWidgetVisible(panel.maps)
    qtbot.wait(50)
    painted = []

    class Painted(QObject):
        @override
        def eventFilter(self, watched, event):
            if event.type() is QEvent.Type.Paint and panel.isAncestorOf(watched):
                painted.append(watched.objectName())
            return False

    noted = Painted()
    for part in panel.findChildren(QWidget):
        part.installEventFilter(noted)
    for operand in ("0", "1"):  # their pictures in the graph
        tensors.recalled.emit(operand)
    qtbot.wait(50)
    assert painted == []
    panel.maps.update()
    qtbot.waitUntil(lambda: panel.maps.objectName() in painted)


def test_values_of_the_maps_come_while_the_field_is_computed(window, qtbot, monkeypatch):
    explain(window, qtbot, "layer1.relu", (0, 1, 2, 2))
    explaining = window.session.explaining
    wanted = []
    monkeypatch.setattr(
        window.session.tensors,
        "look",
        lambda name: wanted.append((name, explaining.field is None)),
    )
    window.session.explain("1", (0, 1, 2, 2))
    wait(window, qtbot)
    assert wanted[:2] == [("1", True), ("0", True)]


def test_a_quick_step_leaves_the_one_before_in_the_history(window, qtbot):
    explain(window, qtbot, "add", (0, 1, 2, 2))
    session = window.session
    session.explain("2", (0, 1, 2, 2))
    assert session.explaining.is_ahead
    session.explain("1", (0, 1, 2, 2))
    wait(window, qtbot)
    assert session.selected == "layer1.conv"
    for operator, operand in (("layer1.relu", "2"), ("add", "3")):
        choose(window, "view.back")
        wait(window, qtbot)
        assert session.selected == operator
        assert session.explaining.place == Place(operand, (0, 1, 2, 2))


def test_what_the_user_selects_meanwhile_stays_selected(window, qtbot):
    explain(window, qtbot, "add", (0, 1, 2, 2))
    session = window.session
    click(window, qtbot, cell(window, 1, TermColumn.INPUT))
    session.select("layer1.conv")
    assert not session.explaining.is_ahead
    wait(window, qtbot)
    assert session.selected == "layer1.conv"
    assert session.explaining.place == Place("2", (0, 1, 2, 2))


def test_enter_walks_too(window, qtbot):
    explain(window, qtbot, "layer1.relu", (0, 0, 0, 0))
    table = window.provenance_panel.table
    table.setFocus()
    table.setCurrentIndex(cell(window, 0, TermColumn.INPUT))
    qtbot.keyClick(table, Qt.Key.Key_Return)
    wait(window, qtbot)
    assert window.session.explaining.place == Place("1", (0, 0, 0, 0))


def test_the_contents_stay_until_the_answer_comes(window, qtbot, monkeypatch):
    explain(window, qtbot, "layer1.conv", (0, 2, 3, 4))
    panel, session = window.provenance_panel, window.session
    before = panel.formula.text()
    session.explain("1", (0, 0, 1, 1))
    assert panel.suffix == "1[0, 0, 1, 1]"
    assert panel.formula.isVisible()
    assert panel.formula.text() == before
    wait(window, qtbot)
    assert panel.formula.text().startswith("y[0, 0, 1, 1] =")
    monkeypatch.setattr(session.explaining.client, "send", lambda request: None)
    session.explain("1", (0, 0, 2, 2))
    qtbot.waitUntil(lambda: panel.end.text() == "The engine is at work.")
    assert panel.title.text() == "1[0, 0, 2, 2]"
    assert not panel.formula.isVisible()
    assert not panel.field_texts


def test_a_channel_is_chosen_by_its_bar(window, qtbot):
    explain(window, qtbot, "layer1.conv", (0, 2, 3, 4))
    panel = window.provenance_panel
    bar = QPoint(panel.sums.width() // 2, 20)  # of the second of three channels
    qtbot.mouseClick(panel.sums, Qt.MouseButton.LeftButton, pos=bar)
    rows = [cell(window, row, TermColumn.INPUT).data() for row in range(9)]
    assert panel.model.rowCount() == 9
    assert all(text.startswith("0[0, 1, ") for text in rows)
    assert panel.rest.text().startswith("Only channel 1;")
    qtbot.mouseClick(panel.sums, Qt.MouseButton.LeftButton, pos=bar)
    assert panel.model.rowCount() == 27


def test_a_product_leads_upstream(window, qtbot):
    explain(window, qtbot, "layer1.conv", (0, 2, 3, 4))
    products = window.provenance_panel.products
    qtbot.mouseClick(products, Qt.MouseButton.LeftButton, pos=QPoint(3, 3))
    wait(window, qtbot)
    assert window.session.explaining.place == Place("0", (0, 0, 2, 3))
    panel = window.provenance_panel
    assert panel.end.text() == "An element of the model's input: here it begins."
    assert panel.table.isHidden()
    assert panel.products.isHidden()


def test_the_largest_of_a_window(window, qtbot):
    explain(window, qtbot, "layer2.pool", (0, 1, 2, 3))
    panel = window.provenance_panel
    assert panel.formula.text() == "y[0, 1, 2, 3] = max of 4 elements of 3"
    assert panel.difference.text() == "✓ difference 0 · nothing is rounded"
    assert panel.model.rowCount() == 4
    assert panel.field_texts["Region"].text() == "rows 3–6, columns 5–8".replace("8", "7")
    assert panel.sums.isHidden()


def test_a_result_of_the_model_is_explained_when_the_run_has_ended(
    open_window, make_pair, qtbot
):
    """The output operator, which is selected then, has no operand of its own."""
    chain = (
        "pnnx.Input in 0 1 0 #0=(1,3,8,8)f32",
        "nn.ReLU relu 1 1 0 1 #0=(1,3,8,8)f32 #1=(1,3,8,8)f32",
        "pnnx.Output out 1 0 1",
    )
    window = open_window(make_pair(*chain), [INPUT])
    session, pane = window.session, window.tensor_view.pane
    session.resume()
    assert session.wait_idle(10)
    assert session.selected == "out"
    qtbot.waitUntil(lambda: pane.model.array is not None)
    pane.show_element((0, 2, 3, 4))
    choose(window, "analyse.explain")
    wait(window, qtbot)
    assert window.provenance_panel.title.text() == "nn.ReLU relu · 1[0, 2, 3, 4]"


def test_without_an_element_it_says_what_to_do(window, qtbot):
    window.session.select("layer1.relu")
    announced = []
    window.session.workspace.announced.connect(announced.append)
    choose(window, "analyse.explain")
    assert announced == ["Click an element of the tensor, or press an arrow key in it"]
    panel = window.provenance_panel
    assert panel.isVisible()
    assert panel.title.text() == "No element chosen"
    assert "(P)" in panel.end.text()


def test_it_is_in_the_menus(window):
    menu = QMenu(window)
    window.tensor_view.fill_menu(menu)
    assert window.actions_by_id["analyse.explain"] in menu.actions()


def test_another_input_is_explained_again(window, qtbot):
    explain(window, qtbot, "layer1.relu", (0, 0, 1, 1))
    before = window.session.explaining.provenance.value
    window.session.restart()
    assert window.session.wait_idle(10)
    panel = window.provenance_panel
    assert panel.end.text() == "Operand 2 has not been computed."
    assert panel.formula.isHidden()
    window.session.resume()
    assert window.session.wait_idle(10)
    wait(window, qtbot)
    assert window.session.explaining.provenance.value == before
    assert panel.formula.text() == "y[0, 0, 1, 1] = relu(1[0, 0, 1, 1])"


def test_another_model_forgets_the_element(window, qtbot, make_pair):
    explain(window, qtbot, "layer1.relu", (0, 0, 1, 1))
    window.session.close_model()
    assert window.session.wait_idle(10)
    assert window.session.explaining.place is None
    assert window.provenance_panel.title.text() == "No element chosen"


def test_an_operator_without_a_rule_names_what_it_depends_on(open_window, make_pair, qtbot):
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(2,3,4)f32",
        "torch.renorm p 1 1 0 1 p=2 dim=0 maxnorm=1 #1=(2,3,4)f32",
        "pnnx.Output out 1 0 1",
    )
    window = open_window(path, [np.ones((2, 3, 4), np.float32)])
    window.session.resume()
    assert window.session.wait_idle(10)
    explain(window, qtbot, "p", (1, 2, 0))
    panel = window.provenance_panel
    assert panel.end.text() == "There is no breakdown for torch.renorm yet."
    links = [each for each in panel.findChildren(QPushButton) if not each.isHidden()]
    (link,) = [each for each in links if each.property("role") == "link"]
    assert link.text() == "depends on 0, all of 2×3×4"
    link.click()
    wait(window, qtbot)
    assert window.session.explaining.place == Place("0", (0, 1, 1))


def test_numbers_that_are_not_finite(open_window, make_pair, qtbot):
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(4,4)f32",
        "torch.sum s 1 1 0 1 dim=(1) keepdim=False #1=(4)f32",
        "pnnx.Output out 1 0 1",
    )
    array = np.full((4, 4), np.nan, np.float32)
    window = open_window(path, [array])
    window.session.resume()
    assert window.session.wait_idle(10)
    explain(window, qtbot, "s", (1,))
    panel = window.provenance_panel
    assert panel.check.text().splitlines()[0].split()[-1] == "nan"
    assert panel.difference.text().startswith("✓ difference 0")
    assert panel.model.rowCount() == 4
    assert not panel.grab().isNull()


def test_the_effective_weight_is_that_of_the_kernel(window, qtbot):
    explain(window, qtbot, "layer1.conv", (0, 2, 3, 4))
    panel, session = window.provenance_panel, window.session
    assert panel.weight.isHidden()
    qtbot.mouseClick(panel.ask_weight, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: session.explaining.weight is not None)
    kernel = session.graph.operator("layer1.conv").attributes["weight"].array[2]
    np.testing.assert_allclose(panel.weight.weights, np.abs(kernel).sum(axis=0), rtol=1e-6)
    assert panel.weight.isVisible()
    assert panel.weight_note.text().startswith("half within ")
    assert not panel.ask_weight.isEnabled()
    explain(window, qtbot, "layer1.conv", (0, 2, 1, 1))  # another element has none yet
    assert panel.weight.isHidden()
    assert panel.ask_weight.isEnabled()


def test_noise_outside_of_the_field_changes_nothing(window, qtbot):
    explain(window, qtbot, "layer1.conv", (0, 2, 3, 4))
    panel = window.provenance_panel
    qtbot.mouseClick(panel.ask_check, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: window.session.explaining.check is not None)
    outside = f"{3 * (64 - 9)} elements"
    text = panel.noise_note.text().replace("\N{NO-BREAK SPACE}", " ")
    assert text == f"✓ noise in {outside} outside the field: value unchanged"


def test_what_has_no_derivative_is_said(open_window, make_pair, qtbot):
    lines = "pnnx.Input in 0 1 0", "torch.logcumsumexp odd 1 1 0 1 dim=0", "pnnx.Output o 1 0 1"
    pair = make_pair(*lines)
    window = open_window(pair, [np.ones(4, np.float32)])
    window.session.resume()
    assert window.session.wait_idle(10)
    explain(window, qtbot, "odd", (1,))
    panel = window.provenance_panel
    qtbot.mouseClick(panel.ask_weight, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: "odd" in panel.weight_note.text())
    assert panel.ask_weight.isEnabled()


def test_the_maps_are_joined(window, qtbot):
    explain(window, qtbot, "layer1.conv", (0, 2, 3, 4))
    panel = window.provenance_panel
    qtbot.waitUntil(panel.maps.isVisible)
    weight = window.session.graph.operator("layer1.conv").attributes["weight"].array
    products = INPUT[0, :, 2:5, 3:6].astype(np.float64) * weight[2]
    best = int(np.abs(products.sum(axis=(1, 2))).argmax())
    maps = panel.maps.maps
    assert maps.captions == ("Output 1 · channel 2", f"Input 0 · channel {best}")
    assert (maps.pick, maps.window) == ((3, 4), (2, 3, 3, 3))
    np.testing.assert_array_equal(maps.input, INPUT[0, best])
    for (_, shown), expected in zip(
        maps.matrices,
        (INPUT[0, best, 2:5, 3:6], weight[2, best], products[best]),
        strict=True,
    ):
        np.testing.assert_allclose(shown, expected, rtol=1e-6)
    panel.sums.group_chosen.emit(1)
    assert panel.maps.maps.captions[1] == "Input 0 · channel 1"
    explain(window, qtbot, "layer1.conv", (0, 2, 0, 0))  # a part of the window is padding
    qtbot.waitUntil(lambda: panel.maps.maps is not None and panel.maps.maps.pick == (0, 0))
    padding = [[True, True, True], [True, False, False], [True, False, False]]
    assert panel.maps.maps.missing.tolist() == padding
    window.session.explain("2", (0, 0, 0, 0))  # of an activation
    wait(window, qtbot)
    assert panel.maps.isHidden()


def test_terms_without_an_index_say_where_they_are(open_window, make_pair, qtbot):
    shapes = {"in_proj_weight": (12, 4), "in_proj_bias": (12,), "out_proj.weight": (4, 4),
              "out_proj.bias": (4,)}  # fmt: skip
    texts = " ".join(f"@{k}=({','.join(map(str, v))})f32" for k, v in shapes.items())
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,5,4)f32",
        f"nn.MultiheadAttention a 1 1 0 1 num_heads=2 embed_dim=4 batch_first=True {texts}",
        "pnnx.Output out 1 0 1",
        weights={f"a.{k}": RNG.normal(size=v).astype(np.float32) for k, v in shapes.items()},
    )
    window = open_window(path, [RNG.normal(size=(1, 5, 4)).astype(np.float32)])
    window.session.resume()
    assert window.session.wait_idle(10)
    explain(window, qtbot, "a", (0, 2, 1))
    shown = sorted(cell(window, row, TermColumn.INPUT).data() for row in range(4))
    assert shown == [f"head {head} · feature {at}" for head in (0, 1) for at in (0, 1)]


def test_a_layer_of_ncnn_that_applies_relu(open_window, tmp_path, qtbot):
    lines = ["Input in0 0 1 in0", "Convolution c 1 1 in0 y 0=2 1=3 4=1 5=1 6=54 9=1"]
    weight = RNG.normal(size=(2, 3, 3, 3)).astype(np.float32)
    weight[1] = abs(weight[1])
    path = write_pair(tmp_path, lines, tagged(weight) + f32([0, -99]))
    window = open_window(path, [abs(INPUT[0])])
    window.session.resume()
    assert window.session.wait_idle(10)
    explain(window, qtbot, "c", (1, 3, 4))
    panel = window.provenance_panel
    assert panel.formula.text() == (
        "y[1, 3, 4] = relu(bias[1] + Σ weight[1, c, i, j] · in0[c, 2 + i, 3 + j])"
    )
    assert panel.numbers.text().startswith("= 0.0000  of  −99.0000\u00a0(bias[1])")
    assert panel.check.text().splitlines()[0].split() == ["value", "float64", "0"]
    assert panel.difference.text().startswith("✓ difference 0")
    assert panel.sums.isVisible()
    qtbot.waitUntil(panel.maps.isVisible)
    assert panel.model.rowCount() == 27
    assert panel.field_texts["Region"].text() == "rows 2–4, columns 3–5"
