"""The dialog that asks for a seed."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QLabel, QPushButton, QToolButton

from kuiper_studio.dialogs.seed_dialog import SeedDialog


@pytest.fixture
def dialog(qtbot, open_model, noisy, theme, settle) -> SeedDialog:
    session = open_model(noisy)
    session.set_seed(7)
    settle(session)
    made = SeedDialog(session, theme)
    qtbot.addWidget(made)
    made.show()
    return made


def button(dialog, text) -> QPushButton:
    return next(b for b in dialog.findChildren(QPushButton) if b.text() == text)


def error(dialog) -> str:
    return dialog.findChild(QLabel, "seedError").text().strip()


def write(qtbot, dialog, text) -> None:
    dialog.number.selectAll()
    qtbot.keyClick(dialog.number, Qt.Key.Key_Delete)
    qtbot.keyClicks(dialog.number, text)


def test_it_shows_the_present_seed_and_what_it_is_for(dialog) -> None:
    assert dialog.number.text() == "7"
    assert (
        dialog.findChild(QLabel, "seedPurpose")
        .text()
        .startswith("This model has 2 random operators.")
    )


def test_a_model_without_random_operators(qtbot, studio, theme) -> None:
    made = SeedDialog(studio, theme)
    qtbot.addWidget(made)
    purpose = made.findChild(QLabel, "seedPurpose").text()
    assert purpose.startswith("This model has no random operator.")


def test_another_seed(qtbot, dialog) -> None:
    write(qtbot, dialog, " 41 ")
    qtbot.keyClick(dialog.number, Qt.Key.Key_Return)
    assert dialog.result() == QDialog.DialogCode.Accepted
    assert dialog.seed == 41


def test_cancel(qtbot, dialog) -> None:
    write(qtbot, dialog, "41")
    qtbot.mouseClick(button(dialog, "Cancel"), Qt.MouseButton.LeftButton)
    assert dialog.result() == QDialog.DialogCode.Rejected


@pytest.mark.parametrize("text", ["", "-1", "1.5", "seven", "1" * 21])
def test_invalid_seeds_are_refused(qtbot, dialog, text) -> None:
    write(qtbot, dialog, text)
    assert error(dialog) == "A seed is a whole number of at most 20 digits, such as 0."
    assert not button(dialog, "Use seed").isEnabled()
    qtbot.keyClick(dialog.number, Qt.Key.Key_Return)
    assert dialog.isVisible()
    write(qtbot, dialog, "3")
    assert error(dialog) == ""
    assert button(dialog, "Use seed").isEnabled()


def test_the_die_draws_a_seed(qtbot, dialog) -> None:
    die = dialog.findChild(QToolButton)
    seen = set()
    for _ in range(5):
        qtbot.mouseClick(die, Qt.MouseButton.LeftButton)
        seen.add(dialog.number.text())
    assert len(seen) > 1
    assert dialog.seed == int(dialog.number.text()) < 1_000_000
