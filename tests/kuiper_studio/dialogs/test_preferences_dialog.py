"""Preferences: what is asked for, what is refused, and that it holds in the next window."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QLabel

from engine.text import NumberStyle, format_number, number_style, set_number_style
from kuiper_studio.appearance import restore_numbers, scale_interface
from kuiper_studio.commands import COMMANDS
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
    assert (session.memory.limit, session.memory.bound) == (200_000_000, 2_000_000_000)
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


class TestKeys:
    """The page of keys, and the search over all pages."""

    @pytest.fixture
    def dialog(self, qtbot):
        made = PreferencesDialog(PRESENT, commands=COMMANDS)
        qtbot.addWidget(made)
        made.show()
        return made

    def select(self, dialog, command):
        row = next(n for n, c in enumerate(COMMANDS) if c.id == command)
        item = dialog.keys.table.topLevelItem(row)
        dialog.keys.table.setCurrentItem(item)
        return item

    def test_a_conflict_is_shown_at_once_and_bars_the_way(self, dialog):
        item = self.select(dialog, "debug.restart")
        dialog.keys.editor.setKeySequence(QKeySequence("F10"))
        assert (
            error(dialog)
            == "F10 belongs to Debug: Step and Debug: Restart: change one of them."
        )
        assert "conflict" in item.text(2)
        assert dialog.findChild(QLabel, "keysUsedBy").text() == "Also of Debug: Step"
        assert not dialog.ok.isEnabled()
        dialog.keys.reset.click()
        assert not error(dialog)
        assert dialog.preferences == PRESENT

    def test_a_key_is_taken_away(self, dialog):
        self.select(dialog, "debug.step")
        dialog.keys.editor.clear()
        assert dialog.preferences.keymap.changes == {"debug.step": ()}
        dialog.keys.reset_all.click()
        assert dialog.preferences == PRESENT

    @pytest.mark.parametrize(
        ("text", "pages"),
        [
            ("Ctrl+Shift+F9", ["Keys"]),
            ("refuse more", ["Memory"]),
            ("decimals", ["Appearance"]),
            ("renderdoc", ["Keys"]),  # a preset
        ],
    )
    def test_search(self, dialog, text, pages):
        dialog.search.setText(text)
        items = [dialog.page_list.item(n) for n in range(dialog.page_list.count())]
        assert [item.text() for item in items if not item.isHidden()] == pages
        assert dialog.page_list.currentItem().text() == pages[0]
        dialog.search.clear()
        assert not any(item.isHidden() for item in items)

    def test_a_page_or_preset_is_sought_by_its_name(self, dialog):
        dialog.search.setText("jetbrains")
        table = dialog.keys.table
        rows = [table.topLevelItem(row) for row in range(table.topLevelItemCount())]
        assert not any(row.isHidden() for row in rows)
        dialog.search.setText("memory")
        assert dialog.limit.isVisible()
        assert dialog.bound.isVisible()

    def test_nothing_is_found(self, dialog):
        dialog.search.setText("Zzyzx")
        shown = [each.text() for each in dialog.findChildren(QLabel) if each.isVisible()]
        assert [text for text in shown if text.strip()] == [
            "No setting, command or key matches “Zzyzx”."
        ]
        dialog.search.clear()
        assert dialog.scheme.isVisible()


def test_numbers_look_as_chosen(dialog):
    shown = dialog.findChild(QLabel, "preferencesNumbers")
    assert shown.text().split() == ["0.00012", "0.5000", "1234.5678", "9.877e+06"]
    dialog.decimals.setValue(1)
    dialog.exponent.setValue(2)
    assert shown.text().split() == ["1e-04".replace("-", "−"), "0.50", "1e+03", "1e+07"]
    assert dialog.preferences.numbers == NumberStyle(1, 2)
    assert number_style() == NumberStyle()  # until the dialog is accepted


def test_looks_are_kept_for_the_next_start(open_window, settings, monkeypatch):
    window = open_window()

    def choose(dialog):
        dialog.interface_size.setCurrentText("150 %")
        dialog.decimals.setValue(2)
        dialog.still.setChecked(True)
        return True

    monkeypatch.setattr(PreferencesDialog, "exec", choose)
    try:
        window.findChild(QAction, "edit.preferences").trigger()
        assert window.graph_view.canvas.viewport.reduced_motion
        assert format_number(0.5) == "0.50"
        set_number_style(NumberStyle())
        restore_numbers(settings)
        assert format_number(0.5) == "0.50"
    finally:
        set_number_style(NumberStyle())
    monkeypatch.delenv("QT_SCALE_FACTOR", raising=False)
    scale_interface(settings)
    assert os.environ["QT_SCALE_FACTOR"] == "1.5"
    monkeypatch.setenv("QT_SCALE_FACTOR", "1.25")
    scale_interface(settings)
    assert os.environ["QT_SCALE_FACTOR"] == "1.25"


def test_tuning_is_remembered(open_window, settings, monkeypatch):
    window = open_window()
    assert window.session.tuning.allowed

    def choose(dialog):
        dialog.tuning.setChecked(False)
        return True

    monkeypatch.setattr(PreferencesDialog, "exec", choose)
    window.findChild(QAction, "edit.preferences").trigger()
    assert not window.session.tuning.allowed
    window.close()
    assert not open_window().session.tuning.allowed


def test_the_list_that_has_the_keyboard_is_ringed(qtbot, qapp, theme, dialog):
    theme.apply(qapp)
    dialog.show()
    qtbot.waitActive(dialog)

    def side():
        return dialog.page_list.grab().toImage().pixelColor(0, 40).rgb()

    dialog.page_list.setFocus()
    qtbot.waitUntil(lambda: side() == theme.color("focus").rgb())
    dialog.scheme.setFocus()
    qtbot.waitUntil(lambda: side() != theme.color("focus").rgb())
