"""Make the pictures of the manual from real runs; needs no display.

Run by ``make pictures``.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PIL import Image
from PySide6.QtCore import QSettings, QTimer
from PySide6.QtWidgets import QApplication, QDialog, QWidget

if TYPE_CHECKING:
    from kuiper_studio.main_window import MainWindow

ROOT: Final = Path(__file__).resolve().parents[2]
SAMPLES: Final = ROOT / "samples"
PICTURES: Final = ROOT / "docs" / "pictures"
SIZE: Final = (1440, 900)
COLOURS: Final = 128
SECONDS_FOR_LATE_PICTURES: Final = 1.0
MOST_SECONDS: Final = 60.0


def handle_events(seconds: float) -> None:
    """Let the window work for a while."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        QApplication.processEvents()
        time.sleep(0.01)


def wait_idle(window: MainWindow) -> None:
    """Let the window work until the engine rests."""
    handle_events(0.1)
    deadline = time.monotonic() + MOST_SECONDS
    while window.session.busy:
        if time.monotonic() > deadline:
            raise TimeoutError("the engine does not come to rest")
        handle_events(0.05)


def run(window: MainWindow, *commands: str) -> None:
    """Run commands of the window by their ids, one after the other."""
    for command in commands:
        window.actions_by_id[command].trigger()
        wait_idle(window)


def save(widget: QWidget, name: str) -> None:
    """Write a picture of a widget, with few colours so that it is small."""
    handle_events(SECONDS_FOR_LATE_PICTURES)
    path = PICTURES / f"{name}.png"
    widget.grab().save(str(path))
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(
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


def open_window(folder: Path, model: str, picture: str, scheme: str) -> MainWindow:
    """Open a sample with one of its pictures; nothing of the user's settings is read."""
    from kuiper_studio.app import make_window
    from kuiper_studio.theme import Scheme, Theme

    settings = QSettings(str(folder / "settings.ini"), QSettings.Format.IniFormat)
    window = make_window(
        SAMPLES / model,
        [SAMPLES / model / picture],
        theme=Theme(Scheme(scheme)),
        settings=settings,
        backend="numpy",
    )
    window.resize(*SIZE)
    window.show()
    wait_idle(window)
    return window


def show_digits(folder: Path) -> None:
    """A run of the sample that tells digits apart."""
    window = open_window(folder, "digits", "digit_3.png", "light")
    session = window.session
    run(window, *["debug.step"] * 8)
    save(window, "window")
    session.toggle_breakpoint("convbn2d_6")
    run(window, "debug.continue", "view.centerCurrent")
    save(part(window, "graph"), "stepping")
    session.select("convbn2d_0")
    wait_idle(window)
    save(part(window, "tensor"), "looking")
    save(part(window, "properties"), "properties")
    save(part(window, "input"), "input")
    session.explain(session.graph.operator("convbn2d_0").outputs[0].name, (0, 5, 9, 12))
    wait_idle(window)
    save(part(window, "provenance"), "provenance")
    QTimer.singleShot(500, lambda: save_dialog("export"))  # it is modal
    run(window, "file.exportDump")
    window.close()


def show_mistake(folder: Path) -> None:
    """The channel that the tutorial leads to."""
    window = open_window(folder, "digits", "mistaken.png", "light")
    run(window, "debug.continue")
    window.session.select("block3.relu2")
    wait_idle(window)
    window.tensor_view.pane.show_element((0, 43, 2, 3))
    run(window, "analyse.explain")
    save(window, "tutorial")
    window.close()


def show_unet(folder: Path) -> None:
    """A run of the sample that finds shapes, in the dark theme."""
    window = open_window(folder, "unet", "scene_1.png", "dark")
    run(window, "debug.continue")
    save(window, "dark")
    run(window, "view.colorByZeros", "view.mostValue")
    save(part(window, "graph"), "colours")
    window.close()


def main() -> int:
    """Make all pictures."""
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    os.environ["HOME"] = "/home"  # where exports go to, and nobody's own folder
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for show in (show_digits, show_mistake, show_unet):
            show(Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
