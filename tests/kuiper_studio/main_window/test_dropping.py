"""The window says what dropping files does, and leaves them where they are."""

from __future__ import annotations

import numpy as np
import pytest
from driving import CHAIN, CORNER, drag, drop
from PySide6.QtCore import QMimeData, QPoint, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDragMoveEvent
from PySide6.QtWidgets import QLabel, QWidget

STRANGE = (
    "pnnx.Input in 0 1 0 #0=(3)f32",
    "aten::strange strange 1 1 0 1 #0=(3)f32 #1=(3)f32",
    "pnnx.Output out 1 0 1",
)

TWO_INPUTS = (
    "pnnx.Input left 0 1 0 #0=(3)f32",
    "pnnx.Input right 0 1 1 #1=(3)f32",
    "pnnx.Expression sum 2 1 0 1 2 expr=add(@0,@1)",
    "pnnx.Output out 1 0 2",
)


def hint(window):
    """What is said over the window; ``""`` for nothing."""
    shown = window.findChild(QWidget, "dropHint")
    return "".join(label.text() for label in shown.findChildren(QLabel)) * shown.isVisible()


@pytest.fixture
def window(open_window, make_pair, image):
    return open_window(make_pair(*CHAIN), [image])


class TestWords:
    @pytest.mark.parametrize(
        ("names", "words"),
        [
            (["net.onnx"], "Open net.onnx"),
            (["cat.png", "net.pnnx.param"], "Open net.pnnx.param with cat.png"),
            (["a.npy", "net.pt", "names.txt"], "Open net.pt with 2 files"),
            (["cat.png"], "Use cat.png as the input"),
            (["a.npy", "b.npy"], "Use a.npy as the input, not b.npy"),
            (["names.txt"], "Use names.txt as class labels"),
            (["notes.pdf"], "notes.pdf cannot be an input"),
            (["tensors.safetensors"], "Compare with tensors.safetensors…"),
            ([f"{'n' * 60}.png"], f"Use {'n' * 24}…{'n' * 19}.png as the input"),
        ],
    )
    def test_with_a_model(self, window, names, words):
        drag(window, *(f"/a/{name}" for name in names))
        assert hint(window) == words

    def test_with_two_inputs(self, open_window, make_pair):
        window = open_window(make_pair(*TWO_INPUTS))
        for names, words in (
            ("ab", "Use 2 files as inputs"),
            ("abcd", "Use 2 files as inputs, not 2 files"),
            ("a", "Use a.npy as the input"),
        ):
            drag(window, *(f"/a/{name}.npy" for name in names))
            assert hint(window) == words

    def test_without_a_model(self, open_window):
        window = open_window()
        drag(window, "/a/cat.png")
        assert hint(window) == "Open a model first"

    def test_a_folder_without_a_model(self, window, tmp_path):
        (tmp_path / "dump").mkdir()
        drag(window, tmp_path / "dump")
        assert hint(window) == "Compare with dump…"

    def test_a_folder_with_a_file_to_convert(self, window, tmp_path):
        folder = tmp_path / "exported"
        folder.mkdir()
        (folder / "net.onnx").touch()
        drag(window, folder)
        assert hint(window) == "Open exported"
        np.save(folder / "relu.npy", np.zeros(3))  # which may be its input
        drag(window, folder)
        assert hint(window) == "Open exported"

    def test_over_an_operator_that_cannot_run(self, qtbot, open_window, make_pair):
        window = open_window(make_pair(*STRANGE), [np.zeros(3, np.float32)])
        window.graph_view.fit()
        canvas = window.graph_view.canvas
        qtbot.waitUntil(lambda: not canvas.box_rect("strange").isNull())
        drag(window, "/a/three.npy")
        assert hint(window) == "Use three.npy as the input"
        at = canvas.mapTo(window, canvas.box_rect("strange").center().toPoint())
        data = QMimeData()
        data.setUrls([QUrl.fromLocalFile("/a/three.npy")])
        for place, words in (
            (at, "Use three.npy as the output of strange"),
            (CORNER.toPoint(), "Use three.npy as the input"),
        ):
            window.dragMoveEvent(
                QDragMoveEvent(place, Qt.CopyAction, data, Qt.LeftButton, Qt.NoModifier)
            )
            assert hint(window) == words


def test_the_words_go_when_the_drag_leaves_or_ends(window, tmp_path, image):
    drag(window, "/a/cat.png")
    window.dragLeaveEvent(QDragLeaveEvent())
    assert hint(window) == ""
    np.save(tmp_path / "x.npy", image)
    drag(window, tmp_path / "x.npy")
    drop(window, tmp_path / "x.npy")
    assert hint(window) == ""


def test_a_file_that_would_be_moved_is_left_where_it_is(window, tmp_path, image):
    np.save(tmp_path / "x.npy", image)
    shift = Qt.KeyboardModifier.ShiftModifier  # with which file managers move
    assert drag(window, tmp_path / "x.npy", keys=shift) == Qt.CopyAction
    assert drop(window, tmp_path / "x.npy", keys=shift) == Qt.CopyAction


def test_files_beyond_the_inputs_are_named(window, tmp_path, image):
    for name in ("a.npy", "b.npy", "c.npy"):
        np.save(tmp_path / name, image)
    drop(window, *(tmp_path / name for name in ("a.npy", "b.npy", "c.npy")))
    told = window.findChild(QLabel, "statusAnnouncement")
    assert told.isVisible()
    assert told.text() == "not used: b.npy, c.npy; the model has 1 input"
    drop(window, tmp_path / "b.npy")
    assert window.session.inputs["0"].path == tmp_path / "b.npy"


def test_what_is_no_file_is_not_taken(window):
    data = QMimeData()
    data.setText("resnet18.onnx")
    event = QDragEnterEvent(QPoint(5, 5), Qt.CopyAction, data, Qt.LeftButton, Qt.NoModifier)
    event.ignore()
    window.dragEnterEvent(event)
    assert not event.isAccepted()
    assert hint(window) == ""
