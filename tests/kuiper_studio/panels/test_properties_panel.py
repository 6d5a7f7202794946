from __future__ import annotations

import numpy as np
import pytest
from on_screen import find, texts
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QFontMetricsF, QGuiApplication
from PySide6.QtWidgets import (
    QAbstractButton,
    QCheckBox,
    QLabel,
    QPushButton,
    QScrollArea,
    QScrollBar,
    QTabBar,
    QToolButton,
)

from engine.inputs import InputSource
from kuiper_studio.item_models import OperandColumn
from kuiper_studio.panels import weight_list as module
from kuiper_studio.panels.operator_header import OperatorHeader
from kuiper_studio.panels.properties_panel import PropertiesPanel
from kuiper_studio.panels.section import SectionHead
from kuiper_studio.panels.weight_canvas import Histogram, ValueStrip, WeightPicture
from kuiper_studio.panels.weight_view import _Head, summarize
from kuiper_studio.theme import LIGHT, Scheme


@pytest.fixture
def panel(qtbot, studio, theme) -> PropertiesPanel:
    made = PropertiesPanel(studio, theme)
    qtbot.addWidget(made)
    made.resize(274, 700)
    made.show()
    return made


def header(panel) -> str:
    return texts(panel.findChild(OperatorHeader))


def tabs(panel) -> QTabBar:
    return find(panel, QTabBar, "Parts of the properties")


def scroll_bar(panel) -> QScrollBar:
    return find(panel, QScrollArea, "Properties of the operator").verticalScrollBar()


def section(panel, title: str) -> QAbstractButton:
    """The head of a section."""
    return find(panel, SectionHead, title)


def range_of(weight) -> str:
    """The range at the head of a weight."""
    return weight.head.accessibleDescription()


def in_colour(weight) -> QCheckBox:
    """What shows each filter of a weight in colour."""
    return find(weight, QCheckBox, "RGB")


def test_header(panel, studio, step) -> None:
    studio.select("layer1.conv")
    assert header(panel).split("\n")[:2] == ["nn.Conv2d", "CONV"]
    # 4 x 8 x 8 outputs of 3 x 3 x 3 products each
    assert "6.912 KMAC" in header(panel)
    assert "Pending" in header(panel)
    step(studio, 1)
    studio.select("layer1.conv")
    assert "Next to run" in header(panel)
    step(studio, 1)
    studio.select("layer1.conv")
    assert "Executed" in header(panel)
    assert "s · 6.912 KMAC" in header(panel)


@pytest.mark.parametrize(
    ("kind", "marks", "left"),
    [
        ("nn.ReLU", ("ACT", "Pending"), ("ACT", "Pending")),
        ("nn.ConvTranspose2d", ("CONV", "Cannot run"), ("Cannot run",)),
        ("torch.scaled_dot_product_attention", ("ATTN", "Cannot run"), ()),
    ],
)
def test_a_long_type_takes_the_room_of_its_marks(
    panel, make_pair, studio, settle, kind, marks, left
) -> None:
    lines = ("pnnx.Input in 0 1 0 #0=(2)f32", f"{kind} op 1 1 0 1", "pnnx.Output out 1 0 1")
    studio.open(make_pair(*lines))
    settle(studio)
    studio.select("op")
    assert tuple(text for text in header(panel).splitlines() if text in marks) == left
    (glyph,) = (each for each in panel.findChildren(QLabel) if each.toolTip() == marks[1])
    assert glyph.isVisible()
    panel.resize(700, 700)
    assert tuple(text for text in header(panel).splitlines() if text in marks) == marks
    name = find(panel, QLabel, kind)
    assert name.width() >= name.sizeHint().width()


def test_names_of_parameters_are_not_cut(panel, make_pair, studio, settle) -> None:
    lines = ("pnnx.Input in 0 1 0 #0=(2)f32", "custom.Op op 1 1 0 1 elementwise_affine=True")
    studio.open(make_pair(*lines, "pnnx.Output out 1 0 1"))
    settle(studio)
    studio.select("op")
    table = panel.parameter_table
    metrics = QFontMetricsF(panel.theme.mono_font(11))
    assert table.columnWidth(0) - 18 >= metrics.horizontalAdvance("elementwise_affine")
    assert table.columnWidth(1) >= 100


def test_a_weight_without_room_shows_its_whole_shape(qtbot, theme) -> None:
    """Its head looks as one without a dtype; with room it does not."""
    alike = {}
    for width in (180, 400):
        heads = [_Head(theme), _Head(theme)]
        for head, dtype in zip(heads, ("f32", ""), strict=True):
            qtbot.addWidget(head)
            head.show_weight("bias", "768", dtype)
            head.set_range("-0.0431 … 0.0439")
            head.resize(width, 26)
        alike[width] = heads[0].grab().toImage() == heads[1].grab().toImage()
    assert alike == {180: True, 400: False}


def test_patient_panel_shows_the_selection_that_lasts(qtbot, studio, theme) -> None:
    panel = PropertiesPanel(studio, theme, patience=20)
    qtbot.addWidget(panel)
    panel.show()
    filled = []
    panel.parameters.modelReset.connect(lambda: filled.append(panel.operator.name))
    for name in ("layer1.conv", "layer1.relu", "strange"):
        studio.select(name)
    qtbot.waitUntil(lambda: bool(filled))
    assert filled == ["strange"]
    studio.select("layer1.conv")
    panel.catch_up()
    assert filled[-1] == "layer1.conv"


def test_patient_panel_takes_the_colours_of_a_theme_at_once(qtbot, studio, theme) -> None:
    panel = PropertiesPanel(studio, theme, patience=10_000)
    qtbot.addWidget(panel)
    panel.show()
    studio.select("layer1.conv")
    panel.catch_up()
    theme.set_scheme(Scheme.LIGHT)
    assert LIGHT.conv.lower() in find(panel, QLabel, "CONV").styleSheet().lower()
    assert LIGHT.text.lower() in texts(panel).lower()


def test_patient_panel_follows_the_run(qtbot, studio, theme, step) -> None:
    panel = PropertiesPanel(studio, theme, patience=20)
    qtbot.addWidget(panel)
    panel.show()
    studio.select("in")
    assert "Next to run" in header(panel)
    step(studio, 1)
    studio.select("in")
    qtbot.waitUntil(lambda: "Executed" in header(panel))


def test_the_cost_gives_way_to_the_name(qtbot, panel, studio, step) -> None:
    step(studio, 2)
    studio.select("layer1.conv")
    name = find(panel, QLabel, "layer1.conv")
    (cost,) = (each for each in panel.findChildren(QLabel) if "KMAC" in each.text())
    for width, is_below in ((500, False), (220, True), (500, False)):
        panel.resize(width, 700)
        qtbot.waitUntil(lambda b=is_below: (cost.y() > name.geometry().bottom()) == b)
        assert cost.text() in header(panel)
        assert name.width() >= name.sizeHint().width()


def test_who_computed_it(qtbot, panel, studio, settle) -> None:
    studio.set_backend("ncnn")
    qtbot.waitUntil(lambda: "0" in studio.inputs and not studio.busy)
    studio.resume()
    settle(studio)
    kernel = panel.findChild(QLabel, "propertiesKernel")
    for name, text, tip in (
        ("layer1.conv", "by ncnn/winograd", "ncnn, Winograd's transformation"),
        ("layer1.relu", "by numpy", "NumPy, the reference"),
        ("in", None, None),
        ("strange", None, None),
    ):
        studio.select(name)
        assert kernel.isVisible() == (text is not None)
        if text is not None:
            assert (kernel.text(), kernel.toolTip()) == (text, tip)


def test_operator_without_layer(panel, studio, settle) -> None:
    studio.select("strange")
    assert "Cannot run" in header(panel)
    assert "my.Strange" in header(panel)
    studio.resume()
    settle(studio)
    studio.select("tail")
    assert "Blocked" in header(panel)


def test_failed_operator(qtbot, open_model, failing, theme, settle) -> None:
    session = open_model(failing)
    panel = PropertiesPanel(session, theme)
    qtbot.addWidget(panel)
    panel.show()
    session.resume()
    settle(session)
    assert session.selected == "sum"
    assert "Failed" in header(panel)
    assert "×" in header(panel)


def test_parameters(panel, studio) -> None:
    studio.select("layer1.conv")
    assert panel.parameters.rowCount() == 9
    studio.select("layer1.relu")
    assert "This operator has no parameters." in texts(panel)
    assert not tabs(panel).isTabEnabled(1)


def test_weights(panel, studio) -> None:
    studio.select("layer1.conv")
    weight, bias = panel.weights.views.values()
    assert (weight.name, bias.name) == ("weight", "bias")
    assert weight.head.isChecked()
    assert not bias.head.isChecked()
    assert range_of(bias) == "−0.25 … 1"
    values = studio.graph.operator("layer1.conv").attributes["weight"].array
    shown = texts(weight)
    assert f"{values.max():.4f}" in shown
    assert f"{values.mean():.4f}".replace("-", "−") in shown
    assert "0.0 %" in shown
    assert "out 0–3 of 4" in shown  # in colour
    bias.unfold()
    assert "25.0 %" in texts(bias)  # one zero of four


def test_pages_turn(qtbot, panel, studio) -> None:
    studio.select("layer1.conv")
    view = panel.weights.views["weight"]
    in_colour(view).click()
    assert "out 0 of 4" in texts(view)
    turn = find(view, QToolButton, "Next page (right arrow on the picture)")
    qtbot.mouseClick(turn, Qt.LeftButton)
    assert "out 1 of 4" in texts(view)
    picture = view.findChild(WeightPicture)
    qtbot.keyClick(picture, Qt.Key_Left)
    assert "out 0 of 4" in texts(view)
    qtbot.keyClick(picture, Qt.Key_Left)
    assert "out 0 of 4" in texts(view)
    qtbot.keyClick(picture, Qt.Key_PageDown)
    assert "out 3 of 4" in texts(view)


def test_element_under_the_mouse(panel, studio) -> None:
    studio.select("layer1.conv")
    view = panel.weights.views["weight"]
    in_colour(view).click()
    picture = view.findChild(WeightPicture)
    values = studio.graph.operator("layer1.conv").attributes["weight"].array
    assert picture.describe(QPoint(4, 4)) == f"[0, 0, 0, 0] = {values[0, 0, 0, 0]!r}".replace(
        "np.", ""
    )
    assert picture.describe(QPoint(0, 0)) == ""


def test_copying_a_weight(qtbot, panel, studio) -> None:
    studio.select("layer1.conv")
    copy = find(panel, QToolButton, "Copy the Python expression of weight")
    qtbot.mouseClick(copy, Qt.LeftButton)
    expected = "graph.operator('layer1.conv').attributes['weight']"
    assert QGuiApplication.clipboard().text() == expected


def test_large_weights_are_worked_out_beside_the_window(
    qtbot, panel, studio, monkeypatch
) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 0)
    studio.select("layer1.conv")
    bias = panel.weights.views["bias"]
    assert range_of(bias) == ""
    qtbot.waitUntil(lambda: range_of(bias) == "−0.25 … 1")
    # Known now: shown at once when the operator is selected again.
    studio.select("layer1.relu")
    studio.select("layer1.conv")
    assert range_of(panel.weights.views["bias"]) == "−0.25 … 1"


def test_a_late_answer_finds_another_operator(qtbot, panel, studio, monkeypatch) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 0)
    studio.select("layer1.conv")
    studio.select("layer1.relu")
    qtbot.waitUntil(lambda: len(panel.weights._summaries) == 2)
    assert panel.weights.views == {}


def test_huge_weights_wait_until_they_are_asked_for(qtbot, panel, studio, monkeypatch) -> None:
    monkeypatch.setattr(module, "UNASKED", 4)
    monkeypatch.setattr(module, "AT_ONCE", 0)
    studio.select("layer1.conv")
    qtbot.waitUntil(lambda: range_of(panel.weights.views["bias"]) != "")
    # The first one is unfolded, which asks for it.
    qtbot.waitUntil(lambda: range_of(panel.weights.views["weight"]) != "")


def test_a_hidden_panel_shows_a_huge_weight_when_it_is_shown(
    qtbot, panel, studio, monkeypatch
) -> None:
    monkeypatch.setattr(module, "UNASKED", 4)
    panel.hide()
    studio.select("layer1.conv")
    panel.show()
    assert range_of(panel.weights.views["weight"]) != ""


def test_a_weight_of_a_folded_section_is_read_to_be_shown(
    qtbot, panel, studio, monkeypatch
) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 0)
    section(panel, "Attributes").setChecked(False)
    studio.select("layer1.conv")
    with qtbot.waitSignal(panel.weight_requested) as heard:
        panel.show_weight()
    assert heard.args[:2] == ["layer1.conv", "weight"]


def test_nothing_is_left_of_another_operator(panel, make_pair, studio, settle) -> None:
    """A kernel in colour, with filters, then two vectors of equal values, and back."""
    kernel = np.arange(24, dtype=np.float32).reshape(2, 3, 2, 2)
    lines = (
        "pnnx.Input in 0 1 0 #0=(1,3,8,8)f32",
        (
            "nn.Conv2d conv 1 1 0 1 bias=False dilation=(1,1) groups=1 in_channels=3 "
            "kernel_size=(2,2) out_channels=2 padding=(0,0) padding_mode=zeros stride=(1,1) "
            "@weight=(2,3,2,2)f32 #1=(1,2,7,7)f32"
        ),
        (
            "nn.BatchNorm2d bn 1 1 1 2 affine=True eps=1e-05 num_features=2 @weight=(2)f32 "
            "@bias=(2)f32 @running_mean=(2)f32 @running_var=(2)f32"
        ),
        "pnnx.Output out 1 0 2",
    )
    ones = np.ones(2, np.float32)
    names = ("weight", "bias", "running_mean", "running_var")
    weights = {f"bn.{name}": ones for name in names} | {"conv.weight": kernel}
    studio.open(make_pair(*lines, weights=weights))
    settle(studio)
    studio.select("conv")
    (weight,) = panel.weights.views.values()
    in_colour(weight).click()
    shown = texts(weight)
    assert "out 0 of 2" in shown
    assert "norms" in shown
    studio.select("bn")
    first = panel.weights.views["weight"]
    assert first.head.text() == "weight"
    assert range_of(first) == "1 … 1"
    shown = texts(first)
    assert "out" not in shown
    assert first.findChild(ValueStrip).isVisible()
    assert not first.findChild(WeightPicture).isVisible()
    assert not in_colour(first).isVisible()
    panel.weights.views["bias"].unfold()
    studio.select("conv")
    (weight,) = panel.weights.views.values()
    assert weight.findChild(WeightPicture).isVisible()
    assert in_colour(weight).isChecked()
    assert "23" in texts(weight)
    studio.select("bn")
    assert not panel.weights.views["bias"].head.isChecked()
    assert panel.weights.views["bias"].body.isHidden()


def test_structure_only(qtbot, residual, empty_session, theme) -> None:
    residual.with_name("residual.pnnx.bin").unlink()
    panel = PropertiesPanel(empty_session, theme)
    qtbot.addWidget(panel)
    panel.show()
    empty_session.open(residual)
    qtbot.waitUntil(lambda: empty_session.graph is not None and not empty_session.busy)
    empty_session.select("layer1.conv")
    assert "opened without its .bin" in texts(panel)
    assert panel.parameters.rowCount() == 9


def test_operand_links(qtbot, panel, studio) -> None:
    studio.select("add")

    def click(row: int, column: OperandColumn) -> None:
        cell = panel.operand_table.visualRect(panel.operands.index(row, column))
        qtbot.mouseClick(panel.operand_table.viewport(), Qt.LeftButton, pos=cell.center())

    click(1, OperandColumn.OPERAND)
    assert (studio.selected, studio.operand) == ("add", "2")
    click(0, OperandColumn.PEER)
    assert studio.selected == "layer1.conv"


def test_operand_links_by_keyboard(qtbot, panel, studio) -> None:
    studio.select("add")
    table = panel.operand_table
    table.setCurrentIndex(panel.operands.index(1, OperandColumn.DIRECTION))
    qtbot.keyClick(table, Qt.Key_Left)
    qtbot.keyClick(table, Qt.Key_Return)
    assert studio.operand == "2"
    qtbot.keyClick(table, Qt.Key_Right)
    qtbot.keyClick(table, Qt.Key_Return)
    assert studio.selected == "layer1.relu"


def test_formula(panel, studio) -> None:
    studio.select("layer1.conv")
    assert "H = ⌊(8 + 2·1 − 1·(3−1) − 1) / 1⌋ + 1" in texts(panel)
    assert "same for W" in texts(panel)
    assert section(panel, "Output shape").isVisible()
    studio.select("add")
    assert not section(panel, "Output shape").isVisible()


def test_formula_uses_the_computed_shape(qtbot, open_model, make_pair, theme, step) -> None:
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,1,?,?)f32",
        "nn.MaxPool2d pool 1 1 0 1 ceil_mode=False dilation=(1,1) kernel_size=(2,2) "
        "padding=(0,0) return_indices=False stride=(2,2)",
        "pnnx.Output out 1 0 1",
    )
    array = np.zeros((1, 1, 6, 6), np.float32)
    session = open_model(path, InputSource("array", array=array))
    panel = PropertiesPanel(session, theme)
    qtbot.addWidget(panel)
    panel.show()
    session.select("pool")
    assert not section(panel, "Output shape").isVisible()
    step(session, 1)
    session.select("pool")
    assert "(6 + 2·0 − 1·(2−1) − 1) / 2" in texts(panel)


def test_lock(panel, studio) -> None:
    (lock,) = panel.title_actions()
    studio.select("layer1.conv")
    lock.trigger()
    studio.select("add")
    assert panel.operator.name == "layer1.conv"
    lock.trigger()
    assert panel.operator.name == "add"


def test_following_a_link_unlocks(panel, studio) -> None:
    studio.select("add")
    panel.title_actions()[0].trigger()
    panel.operand_table.activated.emit(panel.operands.index(0, OperandColumn.PEER))
    assert panel.operator.name == "layer1.conv"


def test_nothing_selected(panel, studio) -> None:
    studio.close_model()
    assert "Select an operator" in texts(panel)
    assert panel.operator is None


def test_tabs_lead_to_the_parts(qtbot, panel, studio) -> None:
    studio.select("layer1.conv")
    panel.resize(274, 260)
    section(panel, "Operands").setChecked(False)
    tabs(panel).tabBarClicked.emit(2)
    assert section(panel, "Operands").isChecked()
    bar = scroll_bar(panel)
    qtbot.waitUntil(lambda: bar.value() > 0)
    assert tabs(panel).currentIndex() > 0


def test_tabs_lead_to_the_parts_by_keyboard(qtbot, panel, studio) -> None:
    studio.select("layer1.conv")
    panel.resize(274, 260)
    section(panel, "Operands").setChecked(False)
    tabs(panel).setFocus()
    qtbot.keyClick(tabs(panel), Qt.Key.Key_Right)
    bar = scroll_bar(panel)
    qtbot.waitUntil(lambda: bar.value() > 0)
    assert tabs(panel).currentIndex() == 1
    qtbot.keyClick(tabs(panel), Qt.Key.Key_Right)
    assert section(panel, "Operands").isChecked()


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        ([1.0, 2.0], 1, 2),
        ([3.0, 3.0], 2.5, 3.5),
        ([np.nan, np.inf], -0.5, 0.5),
    ],
)
def test_histogram_always_has_a_range(values, low: float, high: float) -> None:
    summary = summarize(np.array(values, np.float32))
    assert (summary.low, summary.high) == (low, high)


def test_histogram_of_a_large_weight_is_of_a_sample(qtbot, theme) -> None:
    summary = summarize(np.linspace(0, 1, 2**21 + 1, dtype=np.float32))
    assert (summary.step, summary.statistics.count) == (11, 2**21 + 1)
    assert abs(summary.counts.sum() - 2**21 / 11) <= 32  # two runs of 16
    shown = Histogram(theme)
    qtbot.addWidget(shown)
    shown.show_counts(summary.counts, summary.low, summary.high, summary.step)
    assert shown.toolTip().endswith(" of a sample, one of 11 values")


def test_complex_weights_have_no_range() -> None:
    with pytest.raises(TypeError, match="complex numbers have no range"):
        summarize(np.ones(3, np.complex64))


def test_about_the_selected_operator(panel, studio) -> None:
    studio.select("layer2.pool")
    assert section(panel, "About").accessibleDescription() == "torch.nn.MaxPool2d"
    assert "Largest value of each window." in panel.note_view.text()
    studio.select("strange")
    assert section(panel, "About").accessibleDescription() == ""
    assert "There is no layer for this type" in panel.note_view.text()


def test_explaining_unfolds_and_shows_the_note(qtbot, panel, studio) -> None:
    studio.select("layer1.conv")
    section(panel, "About").setChecked(False)
    scroll_bar(panel).setValue(0)
    panel.explain()
    assert panel.note_view.isVisible()
    qtbot.waitUntil(lambda: tabs(panel).tabText(tabs(panel).currentIndex()) == "About")
    area = find(panel, QScrollArea, "Properties of the operator").viewport()
    top = panel.note_view.mapTo(area, QPoint(0, 0)).y()
    assert 0 <= top < area.height()


def test_explaining_is_about_the_selected_operator(panel, studio) -> None:
    studio.select("layer1.conv")
    panel.title_actions()[0].trigger()
    studio.select("tail")
    assert panel.operator.name == "layer1.conv"
    panel.explain()
    assert panel.operator.name == "tail"


class TestRandom:
    @pytest.fixture
    def noisy_panel(self, qtbot, open_model, noisy, theme) -> PropertiesPanel:
        made = PropertiesPanel(open_model(noisy), theme)
        qtbot.addWidget(made)
        made.show()
        return made

    def test_only_operators_that_are_random_say_so(self, noisy_panel, step) -> None:
        session = noisy_panel.session
        for name, shown in (("relu", False), ("thin", True), ("whole", False)):
            session.select(name)
            assert ("Random, seed 0" in header(noisy_panel)) == shown
        step(session, 5)
        for name, shown in (("relu", False), ("thin", True), ("whole", False)):
            session.select(name)
            assert ("Random, seed 0" in header(noisy_panel)) == shown

    def test_another_seed(self, noisy_panel, settle) -> None:
        session = noisy_panel.session
        session.select("thin")
        session.set_seed(12)
        assert "Random, seed 12" in header(noisy_panel)
        settle(session)

    def test_the_link_asks_for_one(self, qtbot, noisy_panel) -> None:
        noisy_panel.session.select("thin")
        link = noisy_panel.findChild(QPushButton, "propertiesSeed")
        with qtbot.waitSignal(noisy_panel.seed_requested):
            qtbot.mouseClick(link, Qt.MouseButton.LeftButton)
