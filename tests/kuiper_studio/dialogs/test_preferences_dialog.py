"""Preferences: what is asked for, what is refused, and that it holds in the next window."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QLabel

from kuiper_studio.dialogs.export_dialog import ExportDialog
from kuiper_studio.dialogs.preferences_dialog import Preferences, PreferencesDialog
from kuiper_studio.theme import Scheme

PRESENT = Preferences(Scheme.DARK, "auto", None, None, 3, "", "folder")


@pytest.fixture
def dialog(qtbot):
    made = PreferencesDialog(PRESENT)
    qtbot.addWidget(made)
    return made


def error(dialog):
    return dialog.findChild(QLabel, "preferencesError").text().strip()


def test_the_present_ones_are_shown_and_stay(dialog):
    assert dialog.scheme.currentText() == "Dark"
    assert dialog.backend.currentText() == "auto"
    assert dialog.seed.text() == "3"
    dialog.seed.setText("4")
    dialog.seed.setText("3")
    assert dialog.preferences == PRESENT


def test_every_field_counts(dialog, tmp_path):
    dialog.scheme.setCurrentText("Light")
    dialog.backend.setCurrentText("numpy")
    dialog.limit.setText("200 MB")
    dialog.bound.setText("2 GB")
    dialog.seed.setText("11")
    dialog.folder.setText(str(tmp_path))
    dialog.format.setCurrentText("One .npz")
    assert dialog.preferences == Preferences(
        Scheme.LIGHT, "numpy", 200_000_000, 2_000_000_000, 11, str(tmp_path), "npz"
    )
    assert not error(dialog)


@pytest.mark.parametrize(
    ("field", "text", "said"),
    [
        ("limit", "much", "much"),
        ("seed", "-1", "whole number"),
        ("folder", "/no/such", "is not a folder"),
    ],
)
def test_unusable_values_are_reported(dialog, field, text, said):
    getattr(dialog, field).setText(text)
    assert said in error(dialog)
    assert not dialog.ok.isEnabled()
    getattr(dialog, field).setText("5" if field == "seed" else "")
    assert not error(dialog)
    assert dialog.ok.isEnabled()


def test_kernels_of_a_dump_may_stay(qtbot):
    dialog = PreferencesDialog(replace(PRESENT, backend="recorded"))
    qtbot.addWidget(dialog)
    dialog.seed.setText("5")
    assert dialog.preferences.backend == "recorded"


def test_preferences_apply_now_and_in_the_next_window(
    qtbot, open_window, residual, tmp_path, monkeypatch
):
    wanted = Preferences(
        Scheme.LIGHT, "numpy", 200_000_000, 2_000_000_000, 11, str(tmp_path), "npz"
    )

    def accept(dialog):
        dialog.preferences = wanted
        return True

    monkeypatch.setattr(PreferencesDialog, "exec", accept)
    window = open_window(residual, ["ones"])
    window.findChild(QAction, "edit.preferences").trigger()
    qtbot.waitUntil(lambda: not window.session.busy, timeout=10_000)
    assert window.theme.scheme is Scheme.LIGHT
    window.close()
    session = open_window(residual, ["ones"]).session
    assert (session.backend, session.seed) == ("numpy", 11)
    assert (session.memory_limit, session.memory_bound) == (200_000_000, 2_000_000_000)
    asked = []
    monkeypatch.setattr(ExportDialog, "exec", lambda dialog: asked.append(dialog.chosen_format))
    again = open_window(residual, ["ones"])
    again.findChild(QAction, "file.exportDump").trigger()
    assert asked == ["npz"]
    assert again.file_dialogs.folder("dump") == str(tmp_path)


def test_cancelled_they_change_nothing(qtbot, open_window, residual, monkeypatch, settings):
    monkeypatch.setattr(PreferencesDialog, "exec", lambda _: False)
    window = open_window(residual)
    window.findChild(QAction, "edit.preferences").trigger()
    assert window.session.backend == "auto"
    assert settings.value("backend") is None
