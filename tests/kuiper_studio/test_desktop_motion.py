"""Desktops whose user wants no animation, by files and by the environment."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QAction

from kuiper_studio.desktop_motion import REDUCED_MOTION, desktop_is_still
from kuiper_studio.dialogs.preferences_dialog import PreferencesDialog


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The configuration folder of a desktop without a portal."""
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    monkeypatch.delenv(REDUCED_MOTION, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "text", "still"),
    [
        ("gtk-3.0/settings.ini", "[Settings]\ngtk-enable-animations=0\n", True),
        ("gtk-4.0/settings.ini", "[Settings]\ngtk-enable-animations = false\n", True),
        ("gtk-3.0/settings.ini", "[Settings]\ngtk-enable-animations=1\n", False),
        ("kdeglobals", "[General]\nx=%1\n[KDE]\nAnimationDurationFactor=0\n", True),
        ("kdeglobals", "[KDE]\nAnimationDurationFactor=0.5\n", False),
        ("kdeglobals", "no sections \x00", False),
    ],
)
def test_files_of_the_desktop(folder, name, text, still):
    assert not desktop_is_still()
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    assert desktop_is_still() == still


@pytest.mark.parametrize(("value", "still"), [("1", True), ("0", False)])
def test_the_environment_comes_first(folder, monkeypatch, value, still):
    (folder / "kdeglobals").write_text("[KDE]\nAnimationDurationFactor=0\n")
    monkeypatch.setenv(REDUCED_MOTION, value)
    assert desktop_is_still() == still


def test_the_graph_does_not_glide(open_window, monkeypatch, qtbot):
    monkeypatch.setenv(REDUCED_MOTION, "1")
    window = open_window()
    qtbot.waitUntil(lambda: window.graph_view.canvas.viewport.reduced_motion)
    monkeypatch.setattr(PreferencesDialog, "exec", lambda _dialog: True)
    window.findChild(QAction, "edit.preferences").trigger()
    assert window.graph_view.canvas.viewport.reduced_motion  # also where the preference is off
