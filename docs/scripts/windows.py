"""Windows of which the scripts beside this one make pictures; no display is needed."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PIL import Image
from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QApplication, QDialog, QWidget

if TYPE_CHECKING:
    from kuiper_studio.main_window import MainWindow

ROOT: Final = Path(__file__).resolve().parents[2]
SAMPLES: Final = ROOT / "samples"
PICTURES: Final = ROOT / "docs" / "pictures"
SIZE: Final = (1440, 900)
COLOURS: Final = 128
COLOURS_OF_PHOTOGRAPHS: Final = 256
SECONDS_FOR_LATE_PICTURES: Final = 1.0
MOST_SECONDS: Final = 60.0


def handle_events(seconds: float) -> None:
    """Let the window work for a while."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        QApplication.processEvents()
        time.sleep(0.01)


def wait_idle(window: MainWindow) -> None:
    """Let the window work until the engine rests, and all parts are painted."""
    from kuiper_studio.turns import turns_are_left

    handle_events(0.1)
    deadline = time.monotonic() + MOST_SECONDS
    while window.session.busy or turns_are_left():
        if time.monotonic() > deadline:
            raise TimeoutError("the engine does not come to rest")
        handle_events(0.05)


def run(window: MainWindow, *commands: str) -> None:
    """Run commands of the window by their ids, one after the other."""
    for command in commands:
        window.actions_by_id[command].trigger()
        wait_idle(window)


def prepare() -> None:
    """Show nothing on a screen, and nothing of the user's."""
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    os.environ["HOME"] = "/home"  # where exports go to, and nobody's own folder
    PICTURES.mkdir(exist_ok=True)


def save(widget: QWidget, name: str, colours: int = COLOURS) -> None:
    """Write a picture of a widget, with few colours so that it is small."""
    handle_events(SECONDS_FOR_LATE_PICTURES)
    path = PICTURES / f"{name}.png"
    widget.grab().save(str(path))
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(colours, dither=Image.Dither.NONE).save(
            path, optimize=True
        )
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1e3:.0f} kB")


def save_dialog(name: str) -> None:
    """Write a picture of the dialog that is open, and close it."""
    dialog = QApplication.activeModalWidget()
    assert isinstance(dialog, QDialog), "no dialog is open"
    save(dialog, name)
    dialog.reject()


def part(window: MainWindow, name: str) -> QWidget:
    """A dock or the central widget of a window, by its objectName."""
    found = window.findChild(QWidget, name)
    assert found is not None, name
    return found


def open_sample(folder: Path, name: str, picture: str, scheme: str) -> MainWindow:
    """Open a sample with one of its pictures."""
    return open_window(folder, SAMPLES / name, SAMPLES / name / picture, scheme)


def open_window(folder: Path, model: Path, source: Path, scheme: str) -> MainWindow:
    """Open a model with an input; nothing of the user's settings is read."""
    from kuiper_studio.app import make_window
    from kuiper_studio.theme import Scheme, Theme

    settings = QSettings(str(folder / "settings.ini"), QSettings.Format.IniFormat)
    window = make_window(
        model,
        [source],
        theme=Theme(Scheme(scheme)),
        settings=settings,
        backend="numpy",
    )
    window.resize(*SIZE)
    window.show()
    wait_idle(window)
    return window
