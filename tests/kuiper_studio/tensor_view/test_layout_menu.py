"""What the menu offers, and what choosing gives."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QMenu

from engine.axes import Axis, Kind, Layout
from kuiper_studio.tensor_view.layout_menu import fill_layout_menu, grids_of

TOKENS = Layout((Axis(Kind.BATCH, 1), Axis(Kind.TOKEN, 50), Axis(Kind.FEATURE, 768)))


@pytest.fixture
def menu(qtbot):
    menu = QMenu()
    qtbot.addWidget(menu)
    return menu


def submenus(menu):
    # Not by QAction.menu, which takes the menu away with the action in PySide 6.9.
    return {each.title(): each for each in menu.findChildren(QMenu)}


def action_of(menu, text):
    return next(action for action in menu.actions() if action.text() == text)


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (49, ["7×7 tokens"]),
        (50, ["class + 7×7 tokens"]),
        (198, ["class + registers + 14×14 tokens"]),
        (261, ["class + 4 registers + 16×16 tokens"]),
        (5, ["class + 2×2 tokens"]),
        (48, []),
        (1, []),
        (0, []),
    ],
)
def test_square_grids_with_and_without_a_class_token(size, words):
    assert [grid.text() for grid in grids_of(size)] == words


def test_each_long_dimension_has_its_menu(menu):
    fill_layout_menu(menu, (1, 50, 768), TOKENS, print, is_chosen=False)
    assert list(submenus(menu)) == ["Dimension 1, 50: tokens", "Dimension 2, 768: features"]
    assert menu.actions()[0].isChecked()
    checked = [
        action.text()
        for action in submenus(menu)["Dimension 1, 50: tokens"].actions()
        if action.isChecked()
    ]
    assert checked == ["tokens"]


def test_filling_again_leaves_no_menu_behind(menu):
    for _ in range(3):
        fill_layout_menu(menu, (1, 50, 768), TOKENS, print, is_chosen=False)
    assert len(menu.findChildren(QMenu)) == 2
    fill_layout_menu(menu, (5,), None, print, is_chosen=False)
    assert list(submenus(menu)) == ["Dimension 0, 5: ?"]


def test_choosing_changes_one_axis(menu):
    chosen = []
    fill_layout_menu(menu, (1, 50, 768), TOKENS, chosen.append, is_chosen=True)
    assert not menu.actions()[0].isChecked()
    action_of(submenus(menu)["Dimension 1, 50: tokens"], "class + 7×7 tokens").trigger()
    assert chosen[0].text() == "class + 7×7 tokens × features"
    action_of(submenus(menu)["Dimension 2, 768: features"], "time").trigger()
    assert chosen[1].text() == "tokens × time"
    menu.actions()[0].trigger()
    assert chosen[2] is None


@pytest.mark.parametrize("layout", [None, TOKENS])
def test_what_is_unknown_can_be_said(menu, layout):
    chosen = []
    fill_layout_menu(menu, (4, 9), layout, chosen.append, is_chosen=False)
    assert list(submenus(menu)) == ["Dimension 0, 4: ?", "Dimension 1, 9: ?"]
    action_of(submenus(menu)["Dimension 1, 9: ?"], "3×3 tokens").trigger()
    assert chosen[0].kinds == (Kind.UNKNOWN, Kind.TOKEN)
