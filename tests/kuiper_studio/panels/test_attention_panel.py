"""The attention panel: heads, the keys of a query, stages and rollout, as a user sees them."""

from __future__ import annotations

import numpy as np
import pytest
from attention_graphs import (
    VIT_SIZE,
    VIT_TOKENS,
    slow_weights,
    text_lines,
    vit_lines,
    vit_weights,
    window_lines,
    window_rollout_by_hand,
    window_weights,
)
from PySide6.QtCore import QPointF, Qt
from PySide6.QtWidgets import QLabel, QPushButton, QWidget

RNG = np.random.default_rng(5)
PICTURE = RNG.standard_normal((1, 3, 8, 8)).astype(np.float32)
TEXT = [RNG.standard_normal((1, 2, 6, 4)).astype(np.float32) for _ in range(3)]


@pytest.fixture
def show(qtbot, open_window, make_pair):
    """A function that opens a model, runs it, and shows the attention of an operator."""

    def make(lines, inputs, operator, weights=None):
        window = open_window(make_pair(*lines, weights=weights), inputs)
        assert window.session.wait_idle(10)
        window.session.resume()
        assert window.session.wait_idle(10)
        window.session.select(operator)
        window.actions_by_id["analyse.attention"].trigger()
        panel = window.attention_panel
        qtbot.waitUntil(lambda: panel.keys.shown is not None, timeout=10_000)
        return window

    return make


@pytest.fixture
def vit(show):
    return show(vit_lines(), [PICTURE], "block1", vit_weights())


def expected_vit():
    """The weights of both blocks, shape (blocks, heads, T, T), by loops over patches."""
    weights = vit_weights()
    kernel = weights["patches.weight"].reshape(VIT_SIZE, -1)
    tokens = [weights["cls_token.data"].reshape(-1)]
    for row in range(4):
        for column in range(4):
            patch = PICTURE[0, :, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
            tokens.append(kernel @ patch.reshape(-1))
    x = np.array(tokens, np.float64)
    found = []
    for block in ("block0", "block1"):
        q, k, v = np.split(
            x @ weights[f"{block}.in_proj_weight"].T + weights[f"{block}.in_proj_bias"], 3, 1
        )
        halves = [slice(0, 4), slice(4, 8)]
        each = [slow_weights(q[:, half], k[:, half]) for half in halves]
        mixed = np.hstack([w @ v[:, half] for w, half in zip(each, halves, strict=True)])
        x = (
            x
            + mixed @ weights[f"{block}.out_proj.weight"].T
            + weights[f"{block}.out_proj.bias"]
        )
        found.append(each)
    return np.array(found)


def stages(panel):
    """Name, shape and range of each stage, as they lie from top to bottom."""
    (last,) = [label for label in panel.findChildren(QLabel) if label.text() == "out_proj"]
    cells = [
        each
        for each in last.parentWidget().findChildren(QWidget)
        if isinstance(each, QLabel | QPushButton) and each.isVisible()
    ]
    cells.sort(key=lambda cell: (cell.geometry().center().y() // 8, cell.x()))
    return [cells[at : at + 3] for at in range(0, len(cells), 3)]


def test_fields_wait_for_weights(qtbot, open_window, make_pair) -> None:
    """There is no empty list of heads before anything has run."""
    window = open_window(make_pair(*vit_lines(), weights=vit_weights()), [PICTURE])
    assert window.session.wait_idle(10)
    window.actions_by_id["analyse.attention"].trigger()
    panel = window.attention_panel
    assert "has not run yet" in panel.message.text()
    assert not panel.shown.isVisible()
    window.session.resume()
    qtbot.waitUntil(panel.shown.isVisible, timeout=10_000)
    assert panel.shown.currentText() == "Head 0"


def test_heads_of_a_module(vit) -> None:
    panel, expected = vit.attention_panel, expected_vit()
    assert vit.findChild(type(panel), "attention").isVisible()
    assert panel.chosen.currentText() == "block1"
    np.testing.assert_allclose(panel.heads.tiles, expected[1], rtol=2e-3, atol=1e-5)
    assert panel.verdict.text().startswith("✓ equals operand m1")
    rows = stages(panel)
    assert [row[0].text() for row in rows][4:] == ["softmax", "· v", "out_proj"]
    for name, *facts in rows:  # shape and range are in the line of their stage
        for label in facts:
            assert label.alignment() & Qt.AlignmentFlag.AlignVCenter
            assert label.geometry().top() <= name.geometry().center().y()
            assert label.geometry().bottom() >= name.geometry().center().y()


def test_a_query_picked_on_the_picture(qtbot, vit) -> None:
    panel, expected = vit.attention_panel, expected_vit()
    qtbot.waitUntil(lambda: panel.keys.shown.picture is not None)
    at = panel.keys.cell_area(2, 1).center().toPoint()
    qtbot.mouseClick(panel.keys, Qt.MouseButton.LeftButton, pos=at)
    token = 1 + 2 * 4 + 1
    assert panel.query.value() == token
    shown = panel.keys.shown
    assert shown.query == (2, 1)
    np.testing.assert_allclose(shown.weights, expected[1, 0, token], rtol=2e-3, atol=1e-5)
    np.testing.assert_allclose(
        shown.cells, expected[1, 0, token, 1:].reshape(4, 4), rtol=2e-3, atol=1e-5
    )
    assert panel.value.text() == f"query {token} (2, 1)"
    qtbot.mouseClick(
        panel.keys, Qt.MouseButton.LeftButton, pos=panel.keys.square_area(0).center().toPoint()
    )
    assert panel.query.value() == 0
    assert panel.value.text() == "query class"
    assert panel.keys.shown.query is None


def test_keys_by_keyboard(qtbot, vit) -> None:
    panel = vit.attention_panel
    panel.query.setValue(1)
    panel.keys.setFocus()
    qtbot.keyClick(panel.keys, Qt.Key.Key_Right)
    qtbot.keyClick(panel.keys, Qt.Key.Key_Down)
    assert panel.keys.shown.query == (1, 1)
    qtbot.keyClick(panel.heads, Qt.Key.Key_Right)
    qtbot.keyClick(panel.heads, Qt.Key.Key_Down)
    assert panel.shown.currentData() == 1


def test_a_row_of_a_head_is_a_query(qtbot, vit) -> None:
    panel, expected = vit.attention_panel, expected_vit()
    area = panel.heads.area(1)
    at = area.topLeft() + QPointF(4, area.height() * 5.5 / VIT_TOKENS)
    qtbot.mouseClick(panel.heads, Qt.MouseButton.LeftButton, pos=at.toPoint())
    assert (panel.shown.currentData(), panel.query.value()) == (1, 5)
    np.testing.assert_allclose(
        panel.keys.shown.weights, expected[1, 1, 5], rtol=2e-3, atol=1e-5
    )
    panel.tiles.setCurrentIndex(1)
    np.testing.assert_allclose(
        panel.heads.tiles, expected[1, :, 5, 1:].reshape(2, 4, 4), rtol=2e-3, atol=1e-5
    )


def test_mean_and_largest_of_heads(vit) -> None:
    panel, expected = vit.attention_panel, expected_vit()
    for place, weights in ((2, expected[1].mean(0)), (3, expected[1].max(0))):
        panel.shown.setCurrentIndex(place)
        panel.shown.activated.emit(place)
        np.testing.assert_allclose(panel.keys.shown.weights, weights[0], rtol=2e-3, atol=1e-5)


def test_rollout_over_both_blocks(qtbot, vit) -> None:
    panel, expected = vit.attention_panel, expected_vit().mean(1)
    eye = np.eye(VIT_TOKENS)
    both = ((expected[1] + eye) / 2) @ ((expected[0] + eye) / 2)
    panel.rollout.setChecked(True)
    qtbot.waitUntil(lambda: not panel.shown.isEnabled() and not panel.message.text())
    np.testing.assert_allclose(panel.keys.shown.weights, both[0], rtol=2e-3, atol=1e-5)
    panel.rollout.setChecked(False)
    assert panel.shown.isEnabled()


def test_rollout_over_windows_is_shown_on_the_whole_picture(qtbot, show) -> None:
    picture = RNG.standard_normal((1, 3, 12, 12)).astype(np.float32)
    window = show(window_lines(), [picture], "block1", window_weights())
    panel = window.attention_panel
    each = []
    for place in (0, 1):
        panel.chosen.setCurrentIndex(place)
        panel.chosen.activated.emit(place)
        qtbot.waitUntil(lambda: not panel.message.text())
        each.append(np.array(panel._scores.weights.mean(1)))
    expected = window_rollout_by_hand(each)
    panel.rollout.setChecked(True)
    qtbot.waitUntil(lambda: not panel.shown.isEnabled() and not panel.message.text())
    assert panel.keys.shown.query == (1, 1)  # window 0 of the shifted ones
    np.testing.assert_allclose(
        panel.keys.shown.cells, expected[5].reshape(4, 4), rtol=2e-3, atol=1e-6
    )
    assert "rollout of all blocks of this grid" in panel.caption.text()
    at = panel.keys.cell_area(3, 2).center().toPoint()
    qtbot.mouseClick(panel.keys, Qt.MouseButton.LeftButton, pos=at)
    qtbot.waitUntil(lambda: panel.keys.shown is not None and panel.keys.shown.query == (3, 2))
    np.testing.assert_allclose(
        panel.keys.shown.cells, expected[14].reshape(4, 4), rtol=2e-3, atol=1e-6
    )


def test_another_attention_is_chosen_and_selected(qtbot, vit) -> None:
    panel, expected = vit.attention_panel, expected_vit()
    panel.chosen.setCurrentIndex(0)
    panel.chosen.activated.emit(0)
    assert vit.session.selected == "block0"
    qtbot.waitUntil(lambda: not panel.message.text())
    np.testing.assert_allclose(panel.heads.tiles, expected[0], rtol=2e-3, atol=1e-5)
    vit.session.select("block1")
    assert panel.chosen.currentText() == "block1"


def test_tokens_without_a_grid_are_bars(qtbot, show) -> None:
    window = show(text_lines(), TEXT, "second")  # the product with the values
    panel = window.attention_panel
    assert panel.chosen.currentText() == "soft"
    at = panel.keys.bar_area(4).center().toPoint()
    qtbot.mouseClick(panel.keys, Qt.MouseButton.LeftButton, pos=at)
    assert panel.query.value() == 4
    expected = slow_weights(TEXT[0][0, 0], TEXT[1][0, 0])[4]
    np.testing.assert_allclose(panel.keys.shown.weights, expected, rtol=2e-3, atol=1e-5)
    assert panel.keys.shown.cells is None
    assert not panel.opacity.isVisible()
    assert panel.verdict.text().startswith("✓ equals operand o")


def test_a_causal_attention_opens_at_the_last_query(qtbot, show) -> None:
    shape = "(1,2,6,4)f32"
    lines = [f"pnnx.Input in{n} 0 1 {n} #{n}={shape}" for n in "qkv"]
    named = "is_causal=True $query=q $key=k $value=v"
    lines += [
        f"F.scaled_dot_product_attention att 3 1 q k v o {named}",
        f"pnnx.Output out 1 0 o #o={shape}",
    ]
    panel = show(lines, TEXT, "att").attention_panel
    assert panel.query.value() == 5
    expected = slow_weights(TEXT[0][0, 0], TEXT[1][0, 0])[5]  # the last query sees every key
    np.testing.assert_allclose(panel.keys.shown.weights, expected, rtol=2e-3, atol=1e-5)
    assert "Query 0 sees one key only, so the last query is shown." in panel.caption.text()
    panel.query.setValue(0)  # the user's own choice stays
    assert panel.query.value() == 0
    np.testing.assert_array_equal(panel.keys.shown.weights, [1, 0, 0, 0, 0, 0])
    assert "last query" not in panel.caption.text()


def test_more_heads_than_pictures(show) -> None:
    rng = np.random.default_rng(6)
    inputs = [rng.standard_normal((1, 65, 3, 2)).astype(np.float32) for _ in range(3)]
    panel = show(text_lines(3, 65, 2), inputs, "soft").attention_panel
    assert len(panel.heads.tiles) == 64
    assert "Only the first 64 of 65 heads have pictures." in panel.caption.text()
    assert panel.shown.count() == 65 + 2


def test_before_the_run(vit) -> None:
    panel = vit.attention_panel
    vit.actions_by_id["debug.restart"].trigger()
    assert vit.session.wait_idle(10)
    assert panel.message.text() == "block1 has not run yet. Run to it first."
    assert not panel.heads.isVisible()


def test_a_model_without_attention(open_window, make_pair) -> None:
    window = open_window(
        make_pair(
            "pnnx.Input in 0 1 a #a=(3)f32",
            "F.relu r 1 1 a b #b=(3)f32",
            "pnnx.Output out 1 0 b",
        ),
        [np.ones(3, np.float32)],
    )
    assert window.session.wait_idle(10)
    assert not window.actions_by_id["analyse.attention"].isEnabled()
    assert window.attention_panel.suffix == ""


def test_weights_that_are_not_numbers(show) -> None:
    q, k, v = (each.copy() for each in TEXT)
    q[0, 0, 2] = np.nan
    window = show(text_lines(), [q, k, v], "soft")
    panel = window.attention_panel
    panel.query.setValue(2)
    assert np.isnan(panel.keys.shown.weights).all()
    assert not panel.grab().isNull()


def test_a_stage_leads_to_its_operand(show, qtbot) -> None:
    window = show(text_lines(), TEXT, "soft")
    panel = window.attention_panel
    links = [
        button
        for button in panel.findChildren(QPushButton)
        if button.property("role") == "link"
    ]
    assert links
    operand = links[0].text().split()[-1]
    qtbot.mouseClick(links[0], Qt.MouseButton.LeftButton)
    assert window.session.operand == operand
    assert window.session.selected == window.session.graph.operand(operand).producer.name


def test_another_query_keeps_the_list_of_stages(vit) -> None:
    panel = vit.attention_panel
    first = stages(panel)[0][0]
    panel.query.setValue(3)
    assert stages(panel)[0][0] is first
