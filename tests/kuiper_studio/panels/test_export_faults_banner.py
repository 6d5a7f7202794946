"""Faults of the export are told when a model is opened."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QTextDocumentFragment
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QPushButton

SHUFFLED = (
    "pnnx.Input x 0 1 0 #0=(1,4,6,6)f32",
    "nn.ReLU act 1 1 0 1 #0=(1,4,6,6)f32 #1=(1,4,6,6)f32",
    "nn.PixelShuffle fold 1 1 1 2 upscale_factor=2 #1=(1,4,6,6)f32 #2=(1,4,6,6)f32",
    "nn.PixelUnshuffle back 1 1 2 3 downscale_factor=3 #2=(1,4,6,6)f32 #3=(1,4,6,6)f32",
    "pnnx.Output y 1 0 3",
)
IMAGE = np.ones((1, 4, 6, 6), np.float32)


@pytest.fixture
def window(make_pair, open_window):
    return open_window(make_pair(*SHUFFLED, name="shuffled"), [IMAGE])


@pytest.fixture
def banner(qtbot, window):
    qtbot.waitUntil(window.export_faults_banner.isVisible, timeout=10_000)
    return window.export_faults_banner


def buttons(banner):
    found = banner.findChildren(QPushButton)
    return {button.text(): button for button in found if button.isVisibleTo(banner)}


def test_each_is_told_and_can_be_gone_to(window, banner):
    assert banner.plain_text() == (
        "The export is not what the model was, at 2 operators. fold: the line contradicts "
        "itself: it turns 1×4×6×6 into 1×1×12×12, but its line states 1×4×6×6. Export the "
        "model with optlevel=0, which keeps the operators that PyTorch traced."
    )
    buttons(banner)["Go to operator"].click()
    assert window.session.selected == "fold"
    buttons(banner)["Next"].click()
    assert "back: the line contradicts itself: it turns 1×4×6×6 into 1×36×2×2" in (
        banner.plain_text()
    )
    buttons(banner)["Go to operator"].click()
    assert window.session.selected == "back"
    buttons(banner)["Next"].click()
    assert ". fold: " in banner.plain_text()


def test_the_log_has_them(window, banner):
    entries = window.session.workspace.log_entries
    told = [entry.text for entry in entries if entry.level == "warning"]
    assert any("shuffled.pnnx.param:5, nn.PixelShuffle 'fold'" in text for text in told)
    assert any("shuffled.pnnx.param:6, nn.PixelUnshuffle 'back'" in text for text in told)


def test_closed_it_stays_so_until_the_model_is_opened_again(qtbot, window, banner, settle):
    banner.close_button.click()
    assert not banner.isVisible()
    window.actions_by_id["debug.continue"].trigger()
    settle(window.session)
    assert not banner.isVisible()
    window.actions_by_id["file.reload"].trigger()
    qtbot.waitUntil(banner.isVisible, timeout=10_000)


def test_a_failure_is_told_in_its_place(qtbot, make_pair, open_window, settle):
    lines = (*SHUFFLED[:3], "pnnx.Expression e 2 1 1 2 3 expr=add(@0,@1)", SHUFFLED[-1])
    window = open_window(make_pair(*lines), [IMAGE])
    qtbot.waitUntil(window.export_faults_banner.isVisible, timeout=10_000)
    assert list(buttons(window.export_faults_banner)) == ["Go to operator"]
    window.actions_by_id["debug.continue"].trigger()
    settle(window.session)
    assert "fold" in window.banner.plain_text()
    assert not window.export_faults_banner.isVisible()
    window.actions_by_id["debug.restart"].trigger()
    settle(window.session)
    assert window.export_faults_banner.isVisible()


def test_another_model_has_none(qtbot, window, banner, residual, settle):
    window.session.open(residual)
    settle(window.session)
    assert not banner.isVisible()
    assert window.session.export_faults == ()


def shown_lines(banner):
    """The lines that the text takes, and its plain text."""
    label = max(banner.findChildren(QLabel), key=lambda each: len(each.text()))
    document = QTextDocumentFragment.fromHtml(label.text()).toPlainText()
    return round(label.height() / label.fontMetrics().lineSpacing()), document, label


def test_two_lines_and_a_link_to_the_rest(qtbot, window, banner):
    qtbot.waitUntil(lambda: shown_lines(banner)[0] == 2)
    graph_height = window.graph_view.height()
    _, text, label = shown_lines(banner)
    assert text.startswith("The export is not what the model was, at 2 operators. fold: ")
    assert text.endswith(" … more…")
    assert "optlevel=0" in banner.plain_text()
    label.setFocus()
    QTest.keyClick(label, Qt.Key.Key_Tab)  # to the link
    QTest.keyClick(label, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: shown_lines(banner)[0] > 2)
    assert shown_lines(banner)[1] == f"{banner.plain_text()} less"
    label.linkActivated.emit("#")
    qtbot.waitUntil(lambda: shown_lines(banner)[0] == 2)
    qtbot.waitUntil(lambda: window.graph_view.height() == graph_height)
    buttons(banner)["Next"].click()
    assert "operators. back: " in shown_lines(banner)[1]
    assert shown_lines(banner)[1].endswith(" … more…")


def test_what_fits_has_no_link(qtbot, banner):
    banner.show_notice("A title", "a short text.")
    assert shown_lines(banner)[1] == "A title. a short text."


def test_all_fits_a_small_screen_at_twice_the_size(qtbot, window, banner, settle):
    """1920x1080 has 960x540 then; the title of the window takes some of it."""
    window.actions_by_id["debug.step"].trigger()
    window.actions_by_id["debug.step"].trigger()
    settle(window.session)
    pane = window.tensor_view.pane
    assert pane.axes.isVisible()
    window.resize(960, 516)
    qtbot.waitUntil(lambda: not pane.axes.isVisible())
    assert window.height() == 516
    qtbot.waitUntil(lambda: shown_lines(banner)[0] <= 2)
    assert shown_lines(banner)[1].endswith(" … more…")
    track = pane.range_bar.track
    foot = track.mapTo(window.tensor_view, track.rect().bottomLeft()).y()
    assert foot <= window.tensor_view.height()
    assert track.height() >= track.minimumSizeHint().height()
    window.resize(1440, 900)
    qtbot.waitUntil(pane.axes.isVisible)
