"""Dialogs on a small screen: 1920x1080 at 200 % has 960 x 540."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QRect
from PySide6.QtGui import QScreen
from PySide6.QtWidgets import QPushButton, QWidget

from kuiper_studio.commands import COMMANDS
from kuiper_studio.dialogs.preferences_dialog import Preferences, PreferencesDialog
from kuiper_studio.dialogs.screen_room import room_on_screen
from kuiper_studio.dialogs.self_check_dialog import SelfCheckDialog
from kuiper_studio.dialogs.shortcuts import ShortcutsSheet
from kuiper_studio.theme import Scheme, Theme

SCREEN = QRect(0, 0, 960, 540)
PRESENT = Preferences(Scheme.DARK, "auto", None, None, 3, "", "folder")


@pytest.fixture
def small_screen(monkeypatch):
    monkeypatch.setattr(QScreen, "availableGeometry", lambda _screen: SCREEN)


def test_room_is_less_than_the_screen_by_a_frame(qtbot, small_screen):
    window = QWidget()
    qtbot.addWidget(window)
    for widget in (window, QWidget(window)):
        room = room_on_screen(widget)
        assert 900 <= room.width() < 960
        assert 450 <= room.height() < 540


@pytest.mark.parametrize("name", ["preferences", "shortcuts", "self-check"])
def test_all_of_a_dialog_is_on_the_screen(qtbot, small_screen, name):
    theme = Theme(Scheme.LIGHT)
    dialog = {
        "preferences": lambda: PreferencesDialog(PRESENT, commands=COMMANDS),
        "shortcuts": lambda: ShortcutsSheet([], theme),
        "self-check": lambda: SelfCheckDialog(theme),
    }[name]()
    qtbot.addWidget(dialog)
    dialog.show()
    room = room_on_screen(dialog)
    assert dialog.size().boundedTo(room) == dialog.size()
    assert dialog.minimumSizeHint().boundedTo(room) == dialog.minimumSizeHint()
    inside = QRect(0, 0, dialog.width(), dialog.height())
    for button in dialog.findChildren(QPushButton):
        if button.isVisible():
            assert inside.contains(
                QRect(button.mapTo(dialog, button.rect().topLeft()), button.size())
            )
