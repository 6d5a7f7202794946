from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import numpy as np
import pytest
from on_screen import texts
from PIL import Image
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QLabel

from engine.inputs import ImageOptions, InputSource
from kuiper_studio.panels.input_panel import InputPanel
from kuiper_studio.panels.input_preview import InputPreview, load_preview
from kuiper_studio.session import RunState

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def picture(tmp_path) -> Path:
    """A red picture of 20 columns and 10 rows."""
    path = tmp_path / "red.png"
    Image.new("RGB", (20, 10), (255, 0, 0)).save(path)
    return path


@pytest.fixture
def panel(qtbot, studio, theme) -> InputPanel:
    made = InputPanel(studio, theme)
    qtbot.addWidget(made)
    made.resize(346, 300)
    made.show()
    return made


@pytest.fixture
def card(panel):
    return panel.cards["0"]


@pytest.fixture
def use_picture(card, picture, studio, settle):
    card.use_file(str(picture))
    settle(studio)


def value(studio, step) -> np.ndarray:
    """What the model is fed."""
    step(studio)
    return studio.tensors.value("0")


def type_into(qtbot, field, text: str) -> None:
    field.selectAll()
    qtbot.keyClicks(field, text)
    qtbot.keyClick(field, Qt.Key_Return)


def test_title(panel) -> None:
    assert panel.objectName() == "input"
    assert panel.suffix == "operand 0"


def test_constant(card) -> None:
    assert texts(card).startswith("ones\n")
    assert card.choice.currentText() == "Ones"
    assert "→ 1×3×8×8" in texts(card)


def test_picture(qtbot, panel, card, use_picture, studio, step) -> None:
    assert studio.inputs["0"].kind == "image"
    assert texts(card).startswith("red.png\n")
    qtbot.waitUntil(lambda: "20×10 RGB" in texts(card))
    assert "20×10 RGB\n→ 1×3×8×8\nf32, bilinear" in texts(card)
    assert panel.editor.isVisible()
    fed = value(studio, step)
    assert fed[0, 0].min() == fed[0, 0].max() == 1
    assert fed[0, 1:].max() == 0


def test_preprocessing(qtbot, panel, use_picture, studio, settle, step) -> None:
    editor = panel.editor
    type_into(qtbot, editor.mean, "0.5 0.25 0")
    type_into(qtbot, editor.std, "0.5")
    settle(studio)
    assert studio.image_options == ImageOptions(mean=(0.5, 0.25, 0.0), std=(0.5,))
    fed = value(studio, step)
    assert [float(plane.mean()) for plane in fed[0]] == [1.0, -0.5, 0.0]


def test_order_and_fit(panel, use_picture, studio, settle) -> None:
    editor = panel.editor
    editor.order.setCurrentText("BGR")
    editor.order.activated.emit(1)
    editor.fit.setCurrentText("crop")
    editor.fit.activated.emit(1)
    settle(studio)
    assert studio.image_options == ImageOptions(order="BGR", fit="crop")


def test_long_names_leave_the_panel_as_wide_as_it_is(qtbot, panel, use_picture, studio, settle):
    options = ImageOptions(fit="letterbox", resampling="opencv-bilinear")
    studio.set_inputs({}, options)
    settle(studio)
    facts = panel.cards["0"]._facts
    qtbot.waitUntil(lambda: "opencv-bilinear\nletterboxed" in facts.text())
    view = panel._scroll.viewport()
    qtbot.waitUntil(lambda: panel._scroll.widget().width() == view.width())  # laid out
    assert facts.fontMetrics().horizontalAdvance("f32, opencv-bilinear") <= facts.width()
    for field in (panel.editor.fit, panel.editor.border, panel.editor.mean):
        right = field.mapTo(panel, QPoint(field.width(), 0)).x()
        assert right <= view.mapTo(panel, QPoint(view.width(), 0)).x()


def test_an_error_below_the_last_box_is_scrolled_to(qtbot, panel, use_picture, studio, settle):
    panel.resize(346, 200)
    studio.set_inputs({}, ImageOptions(fit="letterbox"))
    settle(studio)
    panel.editor.border.setText("300")
    panel.editor.border.editingFinished.emit()
    error = panel._editor_error
    assert error.text() == "Border: 300 is more than the largest pixel, 255."
    qtbot.waitUntil(lambda: error.visibleRegion().boundingRect() == error.rect())


def test_the_side_of_a_crop_and_the_border_of_a_letterbox(panel, use_picture, studio, settle):
    editor = panel.editor
    assert not editor.shorter_side.isVisible()
    assert not editor.border.isVisible()
    editor.fit.setCurrentText("crop")
    editor.fit.activated.emit(1)
    settle(studio)
    assert editor.shorter_side.isVisible()
    editor.shorter_side.setText("256")
    editor.shorter_side.editingFinished.emit()
    editor.resampling.setCurrentText("opencv-bilinear")
    editor.resampling.activated.emit(5)
    settle(studio)
    wanted = ImageOptions(fit="crop", shorter_side=256, resampling="opencv-bilinear")
    assert studio.image_options == wanted
    assert "opencv-bilinear\ncropped" in panel.cards["0"]._facts.text()
    for text in ("0", "x", "1000000"):
        editor.shorter_side.setText(text)
        editor.shorter_side.editingFinished.emit()
        assert editor.shorter_side.property("invalid")
    editor.shorter_side.setText("")
    editor.shorter_side.editingFinished.emit()
    editor.fit.setCurrentText("letterbox")
    editor.fit.activated.emit(2)
    settle(studio)
    assert editor.border.isVisible()
    assert not editor.shorter_side.isVisible()
    editor.border.setText("300")
    editor.border.editingFinished.emit()
    assert editor.border.property("invalid")
    editor.border.setText("0")
    editor.border.editingFinished.emit()
    assert studio.image_options.border == 0
    assert studio.image_options.shorter_side is None


def test_preset(panel, use_picture, studio, settle) -> None:
    place = panel.editor.preset.findText("ImageNet")
    panel.editor.preset.activated.emit(place)
    settle(studio)
    assert studio.image_options.mean == (0.485, 0.456, 0.406)
    assert panel.editor.mean.text() == "0.485 0.456 0.406"
    assert panel.editor.scale.text() == "1/255"
    assert panel.editor.preset.currentText() == "ImageNet"


def test_wrong_fields_are_explained_and_change_nothing(
    qtbot, panel, use_picture, studio
) -> None:
    before = studio.image_options
    type_into(qtbot, panel.editor.std, "0")
    assert studio.image_options == before
    assert panel.editor.std.property("invalid")
    assert "Std: std must not be 0: pixels are divided by it." in texts(panel)
    type_into(qtbot, panel.editor.std, "1")
    assert not panel.editor.std.property("invalid")
    assert "Std: std" not in texts(panel)


def test_leaving_a_field_as_it_is_changes_nothing(qtbot, panel, use_picture, studio) -> None:
    with qtbot.assertNotEmitted(studio.inputs_changed):
        panel.editor.scale.setFocus()
        qtbot.keyClick(panel.editor.scale, Qt.Key_Return)


def test_random_with_a_seed(qtbot, card, studio, settle, step) -> None:
    place = card.choice.findText("Random")
    card.choice.setCurrentIndex(place)
    card.choice.activated.emit(place)
    settle(studio)
    assert studio.inputs["0"] == InputSource("random", seed=0)
    type_into(qtbot, card.number, "7")
    settle(studio)
    expected = np.random.default_rng(7).random((1, 3, 8, 8), dtype=np.float32)
    assert np.array_equal(value(studio, step), expected)


def test_wrong_seed(qtbot, card, studio, settle) -> None:
    place = card.choice.findText("Random")
    card.choice.activated.emit(place)
    settle(studio)
    type_into(qtbot, card.number, "x")
    assert "'x' is not a seed; write a whole number, e.g. 0." in texts(card)
    assert studio.inputs["0"].seed == 0


def test_own_constant(qtbot, card, studio, settle) -> None:
    place = card.choice.findText("Constant")
    card.choice.setCurrentIndex(place)
    card.choice.activated.emit(place)
    type_into(qtbot, card.number, "1/4")
    settle(studio)
    assert studio.inputs["0"] == InputSource("constant", value=0.25)
    assert texts(card).startswith("constant 0.25\n")


def test_array_file(qtbot, card, studio, settle, tmp_path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.arange(192, dtype=np.float32).reshape(1, 3, 8, 8))
    card.use_file(str(path))
    settle(studio)
    qtbot.waitUntil(lambda: "1×3×8×8 f32" in texts(card))
    assert card.preview._picture.image is not None


def test_array_that_does_not_fit_is_explained_in_place(
    qtbot, card, studio, settle, tmp_path
) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.zeros((1, 5, 8), np.float32))
    card.use_file(str(path))
    settle(studio)
    error = card.findChild(QLabel, "inputError")
    qtbot.waitUntil(error.isVisible)


def test_missing_and_unknown_files_are_explained(card, studio, tmp_path) -> None:
    before = studio.inputs["0"]
    card.use_file(str(tmp_path / "gone.png"))
    assert "there is no such file" in texts(card)
    card.use_file(str(tmp_path / "x.txt"))
    assert "is not an image" in texts(card)
    assert studio.inputs["0"] == before


def test_broken_picture(qtbot, card, studio, settle, tmp_path) -> None:
    path = tmp_path / "broken.png"
    path.write_bytes(b"not a picture")
    card.use_file(str(path))
    settle(studio)
    qtbot.waitUntil(lambda: "cannot be read" in texts(card))


def test_drop(card, picture, studio, settle) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(picture))])
    enter = QDragEnterEvent(QPoint(5, 5), Qt.CopyAction, data, Qt.LeftButton, Qt.NoModifier)
    card.dragEnterEvent(enter)
    assert enter.isAccepted()
    card.dropEvent(QDropEvent(QPointF(5, 5), Qt.CopyAction, data, Qt.LeftButton, Qt.NoModifier))
    settle(studio)
    assert studio.inputs["0"].path == picture


def test_other_files_are_left_to_the_window(card) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile("/a/m.param")])
    enter = QDragEnterEvent(QPoint(5, 5), Qt.CopyAction, data, Qt.LeftButton, Qt.NoModifier)
    card.dragEnterEvent(enter)
    assert not enter.isAccepted()


def test_a_card_for_each_input(qtbot, open_model, make_pair, theme) -> None:
    path = make_pair(
        "pnnx.Input a 0 1 0 #0=(3)f32",
        "pnnx.Input b 0 1 1 #1=(3)f32",
        "pnnx.Expression sum 2 1 0 1 2 expr=add(@0,@1)",
        "pnnx.Output out 1 0 2",
    )
    panel = InputPanel(open_model(path), theme)
    qtbot.addWidget(panel)
    assert list(panel.cards) == ["0", "1"]
    assert panel.suffix == ""


def test_without_a_model(panel, studio) -> None:
    studio.close_model()
    assert panel.cards == {}
    assert texts(panel) == "No model is open."
    assert not panel.title_actions()[0].isEnabled()


class TestSizes:
    OPEN = (
        "pnnx.Input a 0 1 in0 #in0=(?,3,%h,%w)f32",
        "pnnx.Input b 0 1 in1 #in1=(1,%h,%w)f32",
        "nn.ReLU relu 1 1 in0 x",
        "pnnx.Output out 2 0 x in1",
    )

    @pytest.fixture
    def opened(self, qtbot, open_model, make_pair, theme) -> InputPanel:
        """The panel of a model whose inputs share two symbols, and are to be ones."""
        made = InputPanel(open_model(make_pair(*self.OPEN)), theme)
        qtbot.addWidget(made)
        made.resize(346, 500)
        made.show()
        return made

    def test_fields_of_the_exported_size(self, card) -> None:
        assert [field.value() for field in card.sizes.fields] == [1, 3, 8, 8]
        assert not card.sizes.reset.isEnabled()
        tip = card.sizes.fields[2].toolTip()
        assert tip == "Dimension 2 of input 0, height, exported as 8"

    def test_another_size_and_back(self, qtbot, panel, card, studio, settle, step) -> None:
        card.sizes.fields[3].setValue(6)
        settle(studio)
        assert value(studio, step).shape == (1, 3, 8, 6)
        assert "1×3×8×6" in texts(card)
        card.sizes.reset.click()
        settle(studio)
        assert studio.fed_shapes == {"0": (1, 3, 8, 8)}
        assert not card.sizes.reset.isEnabled()

    def test_typing_takes_effect_with_enter(self, qtbot, card, studio, settle) -> None:
        field = card.sizes.fields[2]
        field.setFocus()
        field.selectAll()
        qtbot.keyClicks(field, "16")
        assert studio.fed_shapes == {"0": (1, 3, 8, 8)}
        qtbot.keyClick(field, Qt.Key_Return)
        settle(studio)
        assert studio.fed_shapes == {"0": (1, 3, 16, 8)}

    def test_open_dimensions_are_asked_for_once(self, opened) -> None:
        assert (
            opened.question.text()
            == "What are the sizes of dimension 0 of input in0, %h and %w?"
        )
        first, second = opened.cards["in0"].sizes, opened.cards["in1"].sizes
        assert [f.text() for f in first.fields] == ["1", "3", "%h 224", "%w 224"]
        assert [f.property("open") for f in first.fields] == [True, False, True, True]
        assert [f.text() for f in second.fields] == ["1"]
        assert not opened.cards["in0"].preview.isVisible()

    def test_the_proposal_is_taken(self, opened, settle) -> None:
        opened.use_sizes.click()
        settle(opened.session)
        assert opened.session.fed_shapes == {"in0": (1, 3, 224, 224), "in1": (1, 224, 224)}
        assert not opened.question.isVisible()
        assert opened.cards["in0"].preview.isVisible()

    def test_nothing_is_taken_before_enter(self, qtbot, opened, settle) -> None:
        session = opened.session
        fields = opened.cards["in0"].sizes.fields
        fields[2].setValue(5)
        assert not session.input_shapes
        fields[3].setFocus()
        fields[3].selectAll()
        qtbot.keyClicks(fields[3], "6")
        qtbot.keyClick(fields[3], Qt.Key_Return)
        settle(session)
        assert session.fed_shapes == {"in0": (1, 3, 5, 6), "in1": (1, 5, 6)}
        # From now on each change counts, in both inputs.
        fields[2].setValue(7)
        settle(session)
        assert session.fed_shapes == {"in0": (1, 3, 7, 6), "in1": (1, 7, 6)}

    def test_reset_asks_again(self, opened, settle) -> None:
        opened.use_sizes.click()
        settle(opened.session)
        opened.cards["in0"].sizes.reset.click()
        settle(opened.session)
        assert opened.question.isVisible()
        assert opened.session.state is RunState.NEED_INPUT

    def test_the_cursor_goes_where_something_is_missing(self, opened) -> None:
        opened.ask()
        assert opened.focusWidget() is opened.cards["in0"].sizes.fields[0]

    def test_pictures_have_a_size(self, opened, picture, settle) -> None:
        opened.cards["in0"].use_file(str(picture))
        settle(opened.session)
        assert not opened.question.isVisible()
        # The other input follows the picture of 20 columns and 10 rows.
        assert opened.session.fed_shapes == {"in0": (1, 3, 10, 20), "in1": (1, 10, 20)}
        assert [f.value() for f in opened.cards["in0"].sizes.fields] == [1, 3, 10, 20]

    def test_arrays_have_their_size(self, card, studio, settle, tmp_path) -> None:
        np.save(tmp_path / "x.npy", np.zeros((2, 3, 9, 7), np.float32))
        card.use_file(str(tmp_path / "x.npy"))
        settle(studio)
        assert [f.value() for f in card.sizes.fields] == [2, 3, 9, 7]
        assert not any(f.isEnabled() for f in card.sizes.fields)

    def test_an_input_of_unknown_rank(
        self, qtbot, open_model, make_pair, theme, settle
    ) -> None:
        session = open_model(make_pair("pnnx.Input in 0 1 0", "pnnx.Output out 1 0 0"))
        panel = InputPanel(session, theme)
        qtbot.addWidget(panel)
        panel.show()
        assert panel.question.text() == "What is the size of input 0?"
        whole = panel.cards["0"].sizes.whole
        type_into(qtbot, whole, "2,x")
        assert panel.cards["0"].findChild(QLabel, "inputError").text() == (
            "shape '0=2,x': a size is missing; write whole numbers from 1, such as 1,3,224,224."
        )
        type_into(qtbot, whole, "2,5")
        settle(session)
        assert session.fed_shapes == {"0": (2, 5)}
        assert whole.text() == "2×5"

    def test_a_size_that_the_command_line_gives_to_pictures(
        self, qtbot, empty_session, residual, picture, theme
    ) -> None:
        session = empty_session
        source = InputSource("image", path=picture)
        session.next_model.set_sources([source], ImageOptions(size=(6, 4)))
        session.open(residual)
        qtbot.waitUntil(lambda: bool(session.fed_shapes))
        assert session.fed_shapes == {"0": (1, 3, 6, 4)}
        assert session.image_options.size is None
        panel = InputPanel(session, theme)
        qtbot.addWidget(panel)
        assert [f.value() for f in panel.cards["0"].sizes.fields] == [1, 3, 6, 4]


def test_preview_of_a_grey_picture(tmp_path, studio) -> None:
    path = tmp_path / "grey.png"
    Image.new("L", (6, 4), 128).save(path)
    inputs = studio.graph.input_operands
    preview = load_preview(InputSource("image", path=path), inputs[0], inputs)
    assert preview.text == "6×4 grey"


def test_preview_of_a_large_made_up_input_takes_little_memory(studio) -> None:
    operand = studio.graph.operand("0")
    tracemalloc.start()
    try:
        for source in (InputSource("random", seed=3), InputSource("constant", value=2.0)):
            preview = load_preview(source, operand, [operand], (1, 3, 4000, 4000))
            assert preview.text == "1×3×4000×4000 f32"
            assert preview.image.size().toTuple() == (500, 500)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 64 << 20  # of 192 MB


def test_preview_of_an_array_shows_its_values(studio) -> None:
    array = np.zeros((1, 1, 2, 3), np.float32)
    array[0, 0, 1, 2] = 5
    inputs = studio.graph.input_operands
    preview = load_preview(InputSource("array", array=array), inputs[0], inputs)
    assert preview.text == "1×1×2×3 f32"
    assert preview.image.pixelColor(2, 1).name() == "#ffffff"
    assert preview.image.pixelColor(0, 0).name() == "#000000"


def test_preview_of_a_long_row_is_a_strip(qtbot, theme, studio) -> None:
    """Its height would be less than a pixel."""
    array = np.zeros((1, 1, 1, 16000), np.float32)
    array[..., 8000:] = 1
    inputs = studio.graph.input_operands
    picture = load_preview(InputSource("array", array=array), inputs[0], inputs)
    preview = InputPreview(theme)
    qtbot.addWidget(preview)
    preview.show_picture(picture, "npy")
    image = preview.grab().toImage()
    middle = image.height() // 2
    for y in (middle - 3, middle + 3):
        assert image.pixelColor(30, y).name() == "#000000"
        assert image.pixelColor(120, y).name() == "#ffffff"


@pytest.mark.parametrize("size", [(60_000, 1), (1, 60_000)])
def test_preview_of_a_long_image_is_a_strip(qtbot, theme, studio, tmp_path, size) -> None:
    """Scaled to the height of the preview, it would have ten million columns."""
    path = tmp_path / "strip.png"
    Image.new("RGB", size, (255, 0, 0)).save(path)
    inputs = studio.graph.input_operands
    picture = load_preview(InputSource("image", path=path), inputs[0], inputs)
    assert picture.text == f"{size[0]}×{size[1]} RGB"
    assert (picture.image.width(), picture.image.height()) in {(300, 1), (1, 170)}
    preview = InputPreview(theme)
    qtbot.addWidget(preview)
    preview.show_picture(picture, "image")
    preview.set_crop((224, 224), 256)
    shown = preview.grab().toImage()
    middle = shown.rect().center()
    assert shown.pixelColor(middle).name() == "#ff0000"  # is kept
    apart = QPoint(40, 0) if size[1] == 1 else QPoint(0, 30)
    assert 0 < shown.pixelColor(middle + apart).red() < 255  # is dimmed


def test_preview_of_an_array_that_is_not_finite(studio) -> None:
    array = np.array([[[[np.nan, np.inf], [-np.inf, 1e308]]]])
    inputs = studio.graph.input_operands
    preview = load_preview(InputSource("array", array=array), inputs[0], inputs)
    assert preview.image is not None
    assert not preview.error
