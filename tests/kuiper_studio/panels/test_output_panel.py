"""The output panel: classes, boxes and label maps over the input, as a user sees them."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import Qt
from reading_tools import centred

from engine.layers import unload_layers
from engine.meanings.results import Boxes

RNG = np.random.default_rng(5)
SIZE = 64
CELLS = 64 + 16 + 4
BOXES = {
    3: ((4, 8, 36, 56), 1, 0.9),
    9: ((40, 10, 60, 30), 0, 0.6),
    20: ((0, 40, 20, 60), 1, 0.3),
}


def detector():
    """A head of two classes for a picture of 64×64, with three boxes in it."""
    head = np.full((1, 6, CELLS), 1e-3, np.float32)
    head[0, :4] = 4
    for place, (box, entry, score) in BOXES.items():
        head[0, :4, place] = centred(box)
        head[0, 4 + entry, place] = score
    return head


@pytest.fixture
def show(qtbot, open_window, make_pair, tmp_path):
    """A function that opens a model with these outputs, runs it, and shows what they mean."""

    def make(*outputs, size=SIZE, batch=1):
        lines = [f"pnnx.Input in 0 1 x #x=({batch},3,{size},{size})f32"]
        weights = {}
        for place, values in enumerate(outputs):
            shape = ",".join(str(each) for each in values.shape)
            kind = f"({shape})f32"
            lines += [f"pnnx.Attribute a{place} 0 1 o{place} @data={kind} #o{place}={kind}"]
            weights[f"a{place}.data"] = values
        lines += [f"pnnx.Output out{place} 1 0 o{place}" for place in range(len(outputs))]
        lines += ["pnnx.Output end 1 0 x"] if not outputs else []
        picture = RNG.uniform(0, 1, (batch, 3, size, size)).astype(np.float32)
        window = open_window(make_pair(*lines, weights=weights), [picture])
        assert window.session.wait_idle(10)
        window.session.resume()
        assert window.session.wait_idle(10)
        window.actions_by_id["analyse.output"].trigger()
        panel = window.output_panel
        qtbot.waitUntil(lambda: panel.meaning is not None, timeout=10_000)
        return window

    return make


@pytest.fixture
def detected(show):
    return show(detector())


def texts(panel):
    return [row.name for row in panel.table.rows.rows]


def test_boxes_over_the_input(detected) -> None:
    panel = detected.output_panel
    assert panel.isVisible()
    assert panel.reading.currentText() == "Automatic: Boxes: YOLOv8, v9, v11"
    assert panel.why.text() == "An output has 84 boxes with 2 classes."
    result = panel.meaning.result
    np.testing.assert_allclose(result.corners, [box for box, *_ in BOXES.values()], atol=1e-4)
    assert texts(panel) == ["1", "0", "1"]
    assert panel.suffix == "3"
    assert panel.canvas.isVisible()
    assert "3 of 3 boxes above the threshold, 84 in all" in panel.note.text()
    area, box = panel.canvas.area(), panel.canvas.box_area(0)
    assert box.width() / area.width() == pytest.approx(32 / SIZE)


def test_the_threshold_by_its_slider(qtbot, detected) -> None:
    panel = detected.output_panel
    panel.options.field("threshold").setValue(70)
    qtbot.waitUntil(lambda: len(texts(panel)) == 1)
    assert detected.session.meanings.choice.options == {"threshold": 0.7}
    panel.options.field("threshold").setValue(100)
    qtbot.waitUntil(lambda: not texts(panel))
    assert isinstance(panel.meaning.result, Boxes)
    assert "None of 84 boxes above the threshold." in panel.note.text()


def test_box_and_row_are_selected_together(qtbot, detected) -> None:
    panel = detected.output_panel
    at = panel.canvas.box_area(1).center().toPoint()
    qtbot.mouseClick(panel.canvas, Qt.MouseButton.LeftButton, pos=at)
    assert (panel.canvas.selected, panel.table.chosen) == (1, 1)
    panel.table.setCurrentIndex(panel.table.rows.index(0))
    assert panel.canvas.selected == 0
    panel.canvas.setFocus()
    qtbot.keyClick(panel.canvas, Qt.Key.Key_Down)
    assert panel.table.chosen == 1
    qtbot.keyClick(panel.canvas, Qt.Key.Key_Escape)
    assert (panel.canvas.selected, panel.table.chosen) == (-1, -1)


def test_labels_name_the_boxes(qtbot, detected) -> None:
    panel = detected.output_panel
    detected.session.workspace.set_labels(("cat", "dog"))
    qtbot.waitUntil(lambda: texts(panel) == ["dog", "cat", "dog"])


def test_another_reading_and_the_way_back(qtbot, detected) -> None:
    panel = detected.output_panel
    place = panel.reading.findData("classification")
    panel.reading.setCurrentIndex(place)
    panel.reading.activated.emit(place)
    qtbot.waitUntil(lambda: panel.message.text() == "No output is one vector of scores.")
    assert detected.session.meanings.choice.reading == "classification"
    panel.reading.setCurrentIndex(0)
    panel.reading.activated.emit(0)
    qtbot.waitUntil(lambda: len(texts(panel)) == 3)


def test_classes_of_a_sample(qtbot, show) -> None:
    scores = np.zeros((2, 1000), np.float32)
    scores[0, 817] = scores[1, 751] = 9
    window = show(scores, batch=2)
    panel = window.output_panel
    assert panel.table.rows.rows[0].name == "sports car"
    assert not panel.canvas.isVisible()
    panel.sample.setValue(1)
    qtbot.waitUntil(lambda: panel.table.rows.rows[0].name == "racer")
    assert "classes in all" in panel.note.text()


def test_a_class_of_a_label_map_is_shown_alone(qtbot, show) -> None:
    scores = np.zeros((1, 3, SIZE, SIZE), np.float32)
    scores[0, 1, :, 32:] = scores[0, 2, 40:] = 5
    scores[0, 1, 40:] -= 1
    window = show(scores)
    panel = window.output_panel
    place = panel.reading.findData("segmentation")
    panel.reading.setCurrentIndex(place)
    panel.reading.activated.emit(place)
    qtbot.waitUntil(lambda: texts(panel) == ["0", "1", "2"] or texts(panel) == ["2", "0", "1"])
    assert panel.opacity.isVisible()
    at = panel.canvas.area()
    point = at.topLeft() + (at.bottomRight() - at.topLeft()) * 0.9
    qtbot.mouseClick(panel.canvas, Qt.MouseButton.LeftButton, pos=point.toPoint())
    assert panel.table.rows.rows[panel.table.chosen].entry == 2
    overlay = panel.canvas.overlay
    assert overlay.pixelColor(60, 60).alpha() == 255
    assert overlay.pixelColor(2, 2).alpha() < 128


def test_a_mask_is_compared_over_the_picture(qtbot, show, tmp_path) -> None:
    scores = np.zeros((1, 2, SIZE, SIZE), np.float32)
    scores[0, 1, :, 16:48] = 5
    mask = np.zeros((SIZE, SIZE), np.uint8)
    mask[:, 32:] = 1
    np.save(tmp_path / "mask.npy", mask)
    window = show(scores)
    panel, meanings = window.output_panel, window.session.meanings
    meanings.choose("segmentation")
    qtbot.waitUntil(lambda: len(texts(panel)) == 2)
    assert not panel.mask_view.isVisible()
    meanings.set_option("mask", str(tmp_path / "mask.npy"))
    qtbot.waitUntil(panel.legend.isVisible)
    assert panel.mask_view.currentText() == "Agreement"
    # A quarter each: background of both, false, agreement, missed.
    assert panel.legend.texts == ("agreement 25.0 %", "false 25.0 %", "missed 25.0 %")
    shown = [panel.canvas.overlay.pixelColor(x, 5).name() for x in (20, 40, 60)]
    assert shown == ["#d55e00", "#009e73", "#56b4e9"]
    assert panel.canvas.overlay.pixelColor(5, 5).alpha() == 0
    place = panel.canvas.area().center()
    assert panel.canvas.text_at(place).endswith("mask: foreground")
    panel.table.setCurrentIndex(panel.table.rows.index(texts(panel).index("background")))
    assert panel.legend.texts == ("agreement 25.0 %", "false 25.0 %", "missed 25.0 %")
    assert panel.canvas.overlay.pixelColor(5, 5).name() == "#009e73"
    panel.mask_view.setCurrentText("Mask")
    assert not panel.legend.isVisible()
    assert panel.table.has_swatches


def test_nothing_fits(show) -> None:
    panel = show(RNG.standard_normal((1, 50, 768)).astype(np.float32)).output_panel
    assert panel.reading.currentText() == "Automatic: nothing fits"
    assert panel.message.text().startswith("No meaning is known for these outputs.")
    assert not panel.canvas.isVisible()


def test_before_the_run(detected) -> None:
    panel = detected.output_panel
    detected.actions_by_id["debug.restart"].trigger()
    assert detected.session.wait_idle(10)
    assert panel.message.text() == "The model has not run to its end. Continue with F5."
    assert not panel.table.isVisible()


def test_the_choice_is_remembered(qtbot, detected) -> None:
    panel, session = detected.output_panel, detected.session
    panel.options.field("threshold").setValue(50)
    path = session.graph.source_path
    detected.opening.open_model(path)
    assert session.wait_idle(10)
    assert session.meanings.choice.options == {"threshold": 0.5}


@pytest.fixture
def unloaded():
    """Whatever layer files a test loads are unloaded at its end."""
    yield
    unload_layers()


@pytest.mark.usefixtures("unloaded")
def test_a_reading_of_the_user(qtbot, detected, tmp_path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from engine.meanings import Fit, Reading, register_reading\n"
        "from engine.meanings.results import Classes, Row\n"
        "@register_reading\n"
        "class Sum(Reading):\n"
        "    name, title = 'sum', 'Sum'\n"
        "    def fits(self, ends):\n"
        "        return Fit(1, 'mine fits all')\n"
        "    def read(self, context):\n"
        "        return Classes((Row(0, 'sum', str(context.arrays[0].shape)),), 1)\n"
    )
    detected.session.load_layers(file)
    assert detected.session.wait_idle(10)
    assert [each.readings for each in detected.session.workspace.layer_files] == [("sum",)]
    detected.session.resume()
    assert detected.session.wait_idle(10)
    panel = detected.output_panel
    qtbot.waitUntil(lambda: panel.reading.currentText() == "Automatic: Sum", timeout=10_000)
    assert panel.table.rows.rows[0].text == "(1, 6, 84)"


def test_tokens_along_time(qtbot, show) -> None:
    """A letter of the time line and its row are chosen together; blanks are none."""
    best = (0, 2, 2, 0, 0, 3, 3, 3, 0, 0)
    values = np.zeros((1, 10, 12), np.float32)
    values[0, range(10), best] = 5
    panel = show(values).output_panel
    panel.reading.setCurrentIndex(panel.reading.findData("ctc"))
    panel.reading.activated.emit(panel.reading.currentIndex())
    qtbot.waitUntil(lambda: texts(panel) == ["2", "3"])
    assert panel.canvas.isVisible()
    assert panel.note.text().startswith("“2 3”. Blank is token 0")
    area = panel.canvas.area()

    def at(frame):
        place = area.center()
        place.setX(area.left() + (frame + 0.5) / len(best) * area.width())
        return place

    assert [panel.canvas.row_at(at(frame)) for frame in (0, 1, 2, 4, 7)] == [-1, 0, 0, -1, 1]
    assert panel.canvas.text_at(at(4)).startswith("0.08 s  blank")
    qtbot.mouseClick(panel.canvas, Qt.MouseButton.LeftButton, pos=at(6).toPoint())
    assert panel.table.chosen == 1
    panel.canvas.grab()
