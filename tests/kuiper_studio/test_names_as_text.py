"""Names that look like HTML, or have a mnemonic's sign, are shown as they are."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QSettings, Qt
from PySide6.QtGui import QAction, QTextDocument
from PySide6.QtGui import Qt as GuiQt
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QLabel,
    QWidget,
)

from kuiper_studio.app import make_window
from kuiper_studio.item_models.text import caption_text, tip_text
from kuiper_studio.session import RunState

NAMES = ("<b>in</b>", "<u>sum</u>", "A<br>B", "R&amp;D&lt;", "<h1>out</h1>")
MARKS = ("<b>", "<u>", "<i>", "<br>", "<s>", "<em>", "<h1>")
MODEL = (
    f"pnnx.Input {NAMES[0]} 0 1 <i>x</i> #<i>x</i>=(1,3,8,8)f32",
    f"nn.ReLU {NAMES[1]} 1 1 <i>x</i> 1 #1=(1,3,8,8)f32",
    f"<s>type</s> {NAMES[2]} 1 1 1 2 words=<em>param</em> #2=(1,3,8,8)f32",
    f"nn.ReLU {NAMES[3]} 1 1 1 3 #3=(1,3,8,8)f32",
    f"pnnx.Output {NAMES[4]} 1 0 3",
)


def plain(text: str) -> str:
    """What Qt shows of a tool tip."""
    if not GuiQt.mightBeRichText(text):
        return text
    document = QTextDocument()
    document.setHtml(text)
    return document.toPlainText()


@pytest.mark.parametrize("text", [*NAMES, "two\nlines of <b>", "a  b <p>", "plain", ""])
def test_a_tool_tip_shows_the_text_itself(qapp, text):
    assert plain(tip_text(text)) == text


def test_a_plain_tool_tip_stays_as_it_is():
    assert tip_text("conv1\nran, 0.5 > 0.4 ms") == "conv1\nran, 0.5 > 0.4 ms"


def test_a_caption_has_no_mnemonic():
    assert caption_text("R&D") == "R&&D"


@pytest.fixture
def window(qtbot, make_pair, tmp_path):
    path = make_pair(*MODEL, name="R&D <b>model")
    settings = QSettings(str(tmp_path / "settings.ini"), QSettings.Format.IniFormat)
    made = make_window(path, ["ones"], settings=settings, backend="numpy")
    qtbot.addWidget(made)
    made.show()
    made.findChild(QAction, "debug.continue").trigger()
    qtbot.waitUntil(lambda: made.session.state is RunState.FINISHED)
    return made


def tool_tips(window):
    """Every tool tip of the window's widgets and lists."""
    for widget in window.findChildren(QWidget):
        yield widget.toolTip()
        model = widget.model() if isinstance(widget, QAbstractItemView) else None
        if model is not None:
            for row in range(model.rowCount()):
                for column in range(model.columnCount()):
                    yield model.index(row, column).data(Qt.ItemDataRole.ToolTipRole) or ""


def test_the_window_takes_no_name_for_html(window, qtbot):
    for name in NAMES:
        window.session.select(name)
        qtbot.wait(20)
        for tip in filter(GuiQt.mightBeRichText, tool_tips(window)):
            assert "<" in plain(tip) or "&" in plain(tip), tip
        for label in window.findChildren(QLabel):
            if label.textFormat() is Qt.TextFormat.AutoText:
                assert not any(mark in label.text() for mark in MARKS), label.text()


def test_a_name_with_an_ampersand_is_whole_on_its_button(window):
    for button in window.findChildren(QAbstractButton):
        assert "&" not in button.text().replace("&&", ""), button.text()
