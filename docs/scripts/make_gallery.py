"""Make the pictures of the gallery from real runs of the samples; needs no display.

Run by ``make pictures``, or with the names of some of them.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDockWidget, QSplitter
from windows import (
    COLOURS_OF_PHOTOGRAPHS,
    SAMPLES,
    SECONDS_FOR_LATE_PICTURES,
    handle_events,
    open_sample,
    open_window,
    part,
    prepare,
    run,
    save,
    wait_idle,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kuiper_studio.main_window import MainWindow

WINDOW: Final = (1280, 820)


def show(window: MainWindow, operator: str) -> None:
    """Select an operator, whose output the window then shows."""
    window.session.select(operator)
    wait_idle(window)


def pick(window: MainWindow, operator: str, index: tuple[int, ...]) -> None:
    """Pick an element of an operator's output."""
    show(window, operator)
    window.tensor_view.pane.show_element(index)
    wait_idle(window)


def enlarge(window: MainWindow, dock: str, width: int) -> None:
    """Give a dock at the right more room."""
    found = window.findChild(QDockWidget, dock)
    assert found is not None, dock
    window.resizeDocks([found], [width], Qt.Orientation.Horizontal)
    wait_idle(window)


def share(window: MainWindow, height: int) -> None:
    """Give the tensor view a height; the graph has the rest."""
    splitter = window.findChild(QSplitter, "centralSplitter")
    assert splitter is not None
    splitter.setSizes([window.height() - height, height])
    wait_idle(window)


def feature_maps(folder: Path) -> None:
    """All channels of a convolution."""
    window = open_sample(folder, "unet", "scene_1.png", "dark")
    run(window, "debug.continue")
    share(window, 470)
    show(window, "down2.relu2")
    save(part(window, "tensor"), "gallery-channels", COLOURS_OF_PHOTOGRAPHS)
    window.close()


def attention(folder: Path) -> None:
    """What a patch of a photograph looks at."""
    window = open_sample(folder, "gaze", "palace.png", "dark")
    window.resize(*WINDOW)
    run(window, "debug.continue", "analyse.attention")
    enlarge(window, "attention", 760)
    handle_events(SECONDS_FOR_LATE_PICTURES)  # the weights are computed at rest
    panel = window.attention_panel
    panel.tiles.setCurrentIndex(1)
    panel.query.setValue(5 * 12 + 6)
    wait_idle(window)
    save(part(window, "attention"), "gallery-attention", COLOURS_OF_PHOTOGRAPHS)
    window.close()


def tokens(folder: Path) -> None:
    """Tokens folded to the picture that they are of."""
    window = open_sample(folder, "gaze", "palace.png", "light")
    run(window, "debug.continue")
    share(window, 430)
    show(window, "query")
    window.tensor_view.pane.show_channel(1)
    save(part(window, "tensor"), "gallery-tokens", COLOURS_OF_PHOTOGRAPHS)
    window.close()


def provenance(folder: Path) -> None:
    """The terms of one element of a convolution, and the part of the picture behind it."""
    window = open_sample(folder, "unet", "scene_1.png", "light")
    run(window, "debug.continue")
    operand = window.session.graph.operator("convbn2d_5").outputs[0].name
    window.session.explain(operand, (0, 9, 12, 10))
    enlarge(window, "provenance", 560)
    save(part(window, "provenance"), "gallery-provenance", COLOURS_OF_PHOTOGRAPHS)
    window.close()


def history(folder: Path) -> None:
    """One place through all operators."""
    window = open_sample(folder, "digits", "mistaken.png", "dark")
    run(window, "debug.continue")
    pick(window, "block1.relu2", (0, 4, 12, 14))
    run(window, "analyse.history")
    enlarge(window, "history", 520)
    save(part(window, "history"), "gallery-history")
    window.close()


def comparison(folder: Path) -> None:
    """Where a faulty conversion begins to differ from PyTorch, and why."""
    model = folder / "unet"
    shutil.copytree(SAMPLES / "unet", model)
    param = model / "unet.pnnx.param"
    lines = param.read_text(encoding="utf-8").splitlines()
    lines = [
        line.replace("padding_mode=zeros", "padding_mode=replicate")
        if line.split()[1:2] == ["convbn2d_3"]
        else line
        for line in lines
    ]
    param.write_text("\n".join(lines) + "\n", encoding="utf-8")
    reference = SAMPLES / "unet" / "golden.npz"
    with np.load(reference) as golden:
        np.save(folder / "scene.npy", golden["0"])
    window = open_window(folder, model, folder / "scene.npy", "dark")
    window.resize(*WINDOW)
    run(window, "debug.continue")
    window.session.studies.compare(reference)
    wait_idle(window)
    run(window, "analyse.nextOrigin", "view.centerCurrent")
    save(window, "gallery-comparison", COLOURS_OF_PHOTOGRAPHS)
    window.close()


def colours(folder: Path) -> None:
    """The graph by the multiply-accumulates of its operators."""
    window = open_sample(folder, "unet", "scene_2.png", "light")
    run(window, "debug.continue", "view.colorByMacs", "view.mostValue")
    save(part(window, "graph"), "gallery-colours")
    window.close()


def filters(folder: Path) -> None:
    """Weights of a first convolution in colour."""
    window = open_sample(folder, "unet", "scene_1.png", "dark")
    run(window, "debug.continue")
    show(window, "convbn2d_0")
    save(part(window, "properties"), "gallery-filters", COLOURS_OF_PHOTOGRAPHS)
    window.close()


def nan(folder: Path) -> None:
    """How far one element that is not a number spreads."""
    picture = np.zeros((1, 1, 32, 32), np.float32)
    picture[0, 0, 6:26, 12:20] = 1
    picture[0, 0, 16, 16] = np.nan
    source = folder / "nan.npy"
    np.save(source, picture)
    window = open_window(folder, SAMPLES / "digits", source, "dark")
    window.resize(*WINDOW)
    run(window, "debug.continue", "view.colorByNonfinite")
    show(window, "block2.relu1")
    save(window, "gallery-nan")
    window.close()


def answer(folder: Path) -> None:
    """The scores of a digit as bars."""
    window = open_sample(folder, "digits", "digit_8.png", "light")
    run(window, "debug.continue")
    share(window, 330)
    show(window, "F.softmax_1")
    save(part(window, "tensor"), "gallery-answer")
    window.close()


GALLERY: Final[Mapping[str, Callable[[Path], None]]] = {
    "channels": feature_maps,
    "attention": attention,
    "tokens": tokens,
    "provenance": provenance,
    "history": history,
    "comparison": comparison,
    "colours": colours,
    "filters": filters,
    "nan": nan,
    "answer": answer,
}


def main(names: list[str]) -> int:
    """Make the named pictures, or all."""
    prepare()
    for name in names or GALLERY:
        with tempfile.TemporaryDirectory() as folder:
            GALLERY[name](Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
