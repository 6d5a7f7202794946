"""The sheet of shortcuts."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QLabel, QPushButton

from kuiper_studio.commands import COMMANDS, make_actions
from kuiper_studio.dialogs.shortcuts import ShortcutsSheet, grouped_shortcuts
from kuiper_studio.theme import Scheme, Theme


@pytest.fixture(params=[Scheme.DARK, Scheme.LIGHT], ids=["dark", "light"])
def theme(request, qapp):
    return Theme(request.param)


@pytest.fixture
def actions(qapp):
    made = []
    for name, text, *keys in (
        ("debug.step", "&Step", "F10"),
        ("file.open", "&Open…", "Ctrl+O"),
        ("debug.stepBack", "Step &back", "F8", "Alt+["),
        ("file.sample", "Open &sample"),
    ):
        action = QAction(text)
        action.setObjectName(name)
        action.setShortcuts([QKeySequence(key) for key in keys])
        made.append(action)
    told = QAction("&Next channel\tPgDown")
    told.setObjectName("tensor.next")
    return [*made, told]


@pytest.fixture
def sheet(qtbot, actions, theme):
    made = ShortcutsSheet(actions, theme)
    qtbot.addWidget(made)
    made.show()
    return made


def shown(sheet):
    """Texts of the visible labels, the caps included."""
    return [label.text() for label in sheet.findChildren(QLabel) if label.isVisible()]


def test_groups_in_the_order_of_the_menus(actions):
    assert grouped_shortcuts(actions) == {
        "File": [("Open", ("Ctrl+O",))],
        "Debug": [("Step", ("F10",)), ("Step back", ("F8", "Alt+["))],
        "Tensor": [("Next channel", ("PgDown",))],
    }


def test_every_key_of_the_window_is_on_it(qapp, qtbot, theme):
    owner = QPushButton()
    qtbot.addWidget(owner)
    rows = [
        key
        for group in grouped_shortcuts(list(make_actions(owner, theme).values())).values()
        for _, keys in group
        for key in keys
    ]
    assert len(rows) == sum(len(command.keys) for command in COMMANDS)


def test_caps(sheet):
    texts = shown(sheet)
    place = texts.index("Step back")
    assert texts[place : place + 5] == ["Step back", "F8", "or", "Alt", "["]
    assert "Open sample" not in texts  # it has no key


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        pytest.param("step", ["Debug", "Step", "F10", "Step back", "F8"], id="name"),
        pytest.param("ctrl+o", ["File", "Open", "Ctrl", "O"], id="key"),
        pytest.param("pgd", ["Tensor", "Next channel", "PgDown"], id="told-key"),
    ],
)
def test_find(sheet, typed, found):
    sheet.box.setText(typed)
    assert [text for text in shown(sheet) if text not in {"or", "Alt", "["}] == found
    sheet.box.clear()
    assert "Open" in shown(sheet)
    assert "Step" in shown(sheet)


def test_nothing_fits(sheet):
    sheet.box.setText("<i>zzz")
    assert shown(sheet) == ["No command or key matches “<i>zzz”."]


def test_closes(qtbot, sheet):
    sheet.findChild(QPushButton).click()
    assert not sheet.isVisible()


def test_both_sides_stay_as_wide(sheet):
    widths = {group.parentWidget().width() for group in sheet.groups}
    assert max(widths) - min(widths) <= 1
    sheet.box.setText("pgd")
    assert sheet.groups[-1].parentWidget().width() in widths
