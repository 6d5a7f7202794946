"""The note on the selected operator's type, as its user reads it."""

from __future__ import annotations

import re

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QTextDocument, QTextDocumentFragment

import engine
from engine.layers import load_layers, unload_layers
from kuiper_studio.panels.note_view import NoteView
from kuiper_studio.theme import LIGHT, Scheme


@pytest.fixture
def show(qtbot, theme, make_pair):
    """A function that shows the note on an operator of a line, and gives the view."""

    def show(line):
        graph = engine.load(make_pair("pnnx.Input in 0 1 0 #0=(1,4,8,8)f32", line))
        view = NoteView(theme)
        qtbot.addWidget(view)
        view.resize(274, 400)
        view.show_operator(graph.operators[-1])
        return view

    return show


def plain(view):
    """Paragraphs without markup and places where a long name may go on in the next line."""
    text = QTextDocumentFragment.fromHtml(view.text()).toPlainText()
    return text.replace("\u200b", "").split("\n")


def test_what_it_computes_and_the_models_values(show):
    lines = plain(show("nn.MaxPool2d p 1 1 0 1 kernel_size=(2,2) ceil_mode=True"))
    assert lines[0] == "Largest value of each window."
    assert lines[1].startswith("y[n, c, p] = max over t of x[n, c,")
    assert "In PyTorch torch.nn.MaxPool2d" in lines
    assert "kernel_size (2, 2)" in " ".join(lines)
    text = "\n".join(lines).replace("\u2028", "\n")
    assert "ceil_mode True\nbool\nWhether a last window may extend beyond the image." in text
    assert "dilation 1 by default" in text
    assert "stride\nint or tuple of int, optional\nkernel_size by default." in text
    assert "input operand 0" in text
    assert "Same code as F.max_pool1d," in text
    assert "and 1 more" not in text


def test_the_name_leads_to_its_page(show):
    text = show("nn.ReLU r 1 1 0 1").text()
    page = "https://docs.pytorch.org/docs/stable/generated/torch.nn.ReLU.html"
    assert re.findall(r'<a href="([^"]*)"', text) == [page]


def test_a_long_name_goes_on_in_the_next_line(show):
    line = "F.scaled_dot_product_attention a 3 1 0 0 0 1 attn_mask=None dropout_p=0.0"
    view = show(line)
    assert "torch.nn.functional.scaled_dot_product_attention" in " ".join(plain(view))
    document = QTextDocument()
    document.setDefaultFont(view.font())
    document.setHtml(view.text())
    document.setTextWidth(240)  # of a narrow dock
    assert document.idealWidth() <= 240


def test_a_name_without_a_page_is_no_link(show):
    view = show("pnnx.custom_op.my.op o 1 1 0 1")
    assert "<a " not in view.text()
    assert "In PyTorch torch.ops.my.op" in plain(view)


def test_many_types_are_counted(show):
    text = "\n".join(plain(show("nn.ZeroPad2d p 1 1 0 1 padding=(1,1,1,1)")))
    assert re.search(r"Same code as .*, and \d+ more", text)


def test_an_unknown_type(show):
    assert plain(show("my.Strange s 1 1 0 1 a=1")) == [
        "There is no layer for this type, so there is no description."
    ]


def test_a_users_layer_without_a_docstring(show, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "from engine.layers import register\n"
        "@register('my.Own')\ndef own(input, gain=2):\n    return input\n"
    )
    load_layers(path)
    try:
        lines = plain(show("my.Own s 1 1 0 1"))
    finally:
        unload_layers()
    assert lines[0] == "This layer has no docstring, so there is no description."
    assert "gain 2 by default" in lines


def test_markup_from_outside_is_text(show, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "from engine.layers import register\n"
        "@register('my.Own')\ndef own(input):\n"
        "    '''A <b>bold</b> ``<i>claim</i>``.'''\n    return input\n"
    )
    load_layers(path)
    try:
        view = show("my.Own s 1 1 0 1")
    finally:
        unload_layers()
    assert plain(view)[0] == "A <b>bold</b> <i>claim</i>."


def test_nothing_selected(show):
    view = show("nn.ReLU r 1 1 0 1")
    view.show_operator(None)
    assert view.text() == ""
    assert view.note is None


def test_it_follows_the_theme(show, theme):
    view = show("nn.ReLU r 1 1 0 1")
    theme.set_scheme(Scheme.LIGHT)
    assert LIGHT.link.lower() in view.text()


def test_it_is_reached_by_keys(show):
    view = show("nn.ReLU r 1 1 0 1")
    assert view.focusPolicy() & Qt.FocusPolicy.TabFocus
    assert view.textInteractionFlags() & Qt.TextInteractionFlag.LinksAccessibleByKeyboard
    assert view.textInteractionFlags() & Qt.TextInteractionFlag.TextSelectableByMouse
