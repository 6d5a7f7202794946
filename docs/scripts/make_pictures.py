"""Make the pictures of the manual from real runs; needs no display.

Run by ``make pictures``.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from PySide6.QtCore import QTimer
from windows import open_sample, part, prepare, run, save, save_dialog, wait_idle


def show_digits(folder: Path) -> None:
    """A run of the sample that tells digits apart."""
    window = open_sample(folder, "digits", "digit_3.png", "light")
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
    window = open_sample(folder, "digits", "mistaken.png", "light")
    run(window, "debug.continue")
    window.session.select("block3.relu2")
    wait_idle(window)
    window.tensor_view.pane.show_element((0, 43, 2, 3))
    run(window, "analyse.explain")
    save(window, "tutorial")
    window.close()


def show_unet(folder: Path) -> None:
    """A run of the sample that finds shapes, in the dark theme."""
    window = open_sample(folder, "unet", "scene_1.png", "dark")
    run(window, "debug.continue")
    save(window, "dark")
    run(window, "view.colorByZeros", "view.mostValue")
    save(part(window, "graph"), "colours")
    window.close()


def main() -> int:
    """Make all pictures."""
    prepare()
    with tempfile.TemporaryDirectory() as folder:
        for show in (show_digits, show_mistake, show_unet):
            show(Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
