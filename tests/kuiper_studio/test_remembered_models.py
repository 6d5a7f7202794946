"""What the user chose for a model comes back with it, in another run of the window."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from PySide6.QtGui import QAction

from engine.axes import Axis, Kind, Layout
from engine.inputs import ImageOptions, InputSource
from kuiper_studio import app
from kuiper_studio.app import make_window
from kuiper_studio.cli.arguments import image_options, window_parser
from kuiper_studio.remembered_models import ModelChoices, RememberedModels, settings_key
from kuiper_studio.session import RunState

PLUS = (
    "pnnx.Input a 0 1 0 #0=(1,3,4,4)f32",
    "pnnx.Input b 0 1 1 #1=(1,3,4,4)f32",
    "pnnx.Expression plus 2 1 0 1 2 expr=add(@0,@1) #2=(1,3,4,4)f32",
    "nn.ReLU relu 1 1 2 3 #3=(1,3,4,4)f32",
    "pnnx.Output out 1 0 3",
)
MEAN = (104.0, 117.0, 123.0)
OPTIONS = ImageOptions(None, "letterbox", "BGR", 1.0, MEAN, (2.0,), 256, 7, "opencv-bicubic")
CHOICES = (
    InputSource("random", seed=7),
    InputSource("constant", value=0.123456789),
    InputSource("npz", member="x", path=Path(__file__)),
)


@pytest.fixture
def model(make_pair):
    return make_pair(*PLUS)


@pytest.fixture
def picture(tmp_path):
    path = tmp_path / "red.png"
    Image.new("RGB", (8, 8), (255, 0, 0)).save(path)
    return path


@pytest.fixture
def reopen(qtbot, open_window, settings):
    """A function that opens a model in a new window as the list of recent models does."""

    def do(path, state=RunState.READY):
        window = open_window()
        window.start_page.path_requested.emit(str(path))
        qtbot.waitUntil(lambda: window.session.state is state, timeout=10_000)
        qtbot.waitUntil(lambda: not window.session.busy)
        return window

    return do


@pytest.fixture
def used(qtbot, open_window, model, picture):
    """A window that the model was used in, and closed."""
    window = open_window(model, [InputSource("random", seed=5).text, "ones"])
    session = window.session
    session.set_inputs({"0": InputSource("image", path=picture)}, OPTIONS)
    session.toggle_breakpoint("relu")
    qtbot.waitUntil(lambda: not session.busy)
    window.close()


def warnings(window):
    entries = window.session.workspace.log_entries
    return [entry.text for entry in entries if entry.level == "warning"]


def test_inputs_preprocessing_and_breakpoints_come_back(reopen, used, model, picture):
    session = reopen(model).session
    assert [source.text for source in session.inputs.values()] == [str(picture), "ones"]
    assert session.image_options == OPTIONS
    assert session.breakpoints == {"relu"}
    session.step()
    session.wait_idle()
    red = np.zeros((1, 3, 4, 4), np.float32)  # channels in the order BGR
    red[0, 0], red[0, 1], red[0, 2] = -104 / 2, -117 / 2, (255 - 123) / 2
    np.testing.assert_allclose(session.fetch("0"), red)


@pytest.mark.parametrize("named", ["folder", "weights"])
def test_also_by_the_folder_and_the_weights(reopen, used, model, named):
    path = model.parent if named == "folder" else model.with_suffix(".bin")
    assert reopen(path).session.breakpoints == {"relu"}


@pytest.fixture
def start(qtbot, monkeypatch, settings):
    """A function that opens the window as the command line does."""
    windows = []
    monkeypatch.setattr(app, "make_window", partial(make_window, settings=settings))

    def do(*words):
        arguments = window_parser().parse_args([str(word) for word in words])
        windows.append(app._window_of(arguments, image_options(arguments), 10.0))
        return windows[-1].session

    yield do
    for window in windows:
        window.close()


def test_also_on_the_command_line(start, used, model, picture):
    session = start(model)
    assert [source.text for source in session.inputs.values()] == [str(picture), "ones"]
    assert session.image_options == OPTIONS
    assert session.breakpoints == {"relu"}


@pytest.mark.parametrize(
    ("words", "inputs"),
    [(["--input", "zeros"], {"zeros"}), (["--order", "BGR"], set()), (["--demo", "d"], set())],
)
def test_what_the_command_line_says_comes_first(start, used, model, words, inputs):
    session = start(model, *words)
    assert {source.text for source in session.inputs.values()} == inputs
    assert session.image_options == ImageOptions(order="BGR" if "BGR" in words else "RGB")


def test_what_is_deleted_stays_away(qtbot, reopen, used, model):
    window = reopen(model)
    window.findChild(QAction, "debug.clearBreakpoints").trigger()
    window.session.set_source_list([InputSource("random", seed=3)])
    qtbot.waitUntil(lambda: not window.session.busy)
    window.close()
    session = reopen(model).session
    assert session.breakpoints == set()
    assert [source.text for source in session.inputs.values()] == ["random:3", "random:4"]


def test_files_that_are_gone_are_told_in_one_line(reopen, used, model, picture):
    picture.unlink()
    window = reopen(model, RunState.NEED_INPUT)
    assert warnings(window) == [f"inputs of m.pnnx.param are gone: {picture}"]
    assert window.session.breakpoints == {"relu"}


def test_another_model_has_its_own(qtbot, reopen, used, make_pair):
    other = make_pair(*PLUS, name="other")
    session = reopen(other, RunState.NEED_INPUT).session
    assert (dict(session.inputs), session.breakpoints) == ({}, set())


def test_inputs_that_are_asked_for_come_first(open_window, used, model):
    session = open_window(model, ["zeros"]).session
    assert {source.text for source in session.inputs.values()} == {"zeros"}


def test_every_kind_of_source_is_written_and_read(settings, tmp_path):
    remembered = RememberedModels(settings)
    choices = ModelChoices(CHOICES, OPTIONS, frozenset({"a", "b/c"}))
    remembered.store(tmp_path / "m.param", choices)
    assert remembered.find(tmp_path / "m.param") == choices
    assert remembered.find(tmp_path / "n.param") is None


def test_layouts_are_written_and_read(settings, tmp_path):
    grid = Axis(Kind.TOKEN, 4, (Axis(Kind.ROW, 2), Axis(Kind.COLUMN, 2)))
    tokens = Axis(Kind.TOKEN, 5, segments=(Axis(Kind.CLASS_TOKEN, 1), grid))
    remembered = RememberedModels(settings)
    choices = ModelChoices(layouts={"7": Layout((tokens, Axis(Kind.FEATURE, 8)))})
    remembered.store(tmp_path / "m", choices)
    assert remembered.find(tmp_path / "m") == choices


def test_what_the_user_says_of_dimensions_comes_back(qtbot, reopen, used, model):
    kinds = (Kind.BATCH, Kind.CHANNEL, Kind.ROW, Kind.TIME)
    layout = Layout(tuple([Axis(k, n) for k, n in zip(kinds, (1, 3, 4, 4), strict=True)]))
    window = reopen(model)
    layouts = window.session.layouts
    with qtbot.waitSignal(layouts.changed):
        layouts.find("2")
    layouts.choose("2", layout)
    window.close()
    layouts = reopen(model).session.layouts
    with qtbot.waitSignal(layouts.changed):
        layouts.find("3")
    assert layouts.find("3").text() == "channels × rows × time"


def test_arrays_are_not_remembered_but_breakpoints_are(settings, tmp_path):
    remembered = RememberedModels(settings)
    remembered.store(tmp_path / "m", ModelChoices(CHOICES, OPTIONS))
    array = InputSource("array", array=np.zeros(3))
    remembered.store(tmp_path / "m", ModelChoices((array,), breakpoints=frozenset({"a"})))
    assert remembered.find(tmp_path / "m") == ModelChoices(CHOICES, OPTIONS, frozenset({"a"}))


@pytest.mark.parametrize(
    "text",
    [
        "{", "[]", "3", "{}", '{"sources": [{"kind": "exec"}], "options": {}}', "[" * 100_000,
        ('{"sources": [], "breakpoints": [], "options": {"size": [8], "fit": "crop",'
        ' "order": "BGR", "scale": 1, "mean": [0], "std": [1]}}'),
        ('{"sources": [{"kind": "random", "path": null, "member": "", "seed": Infinity,'
        ' "value": 0}], "options": {}, "breakpoints": []}'),
    ],
)  # fmt: skip
def test_what_somebody_wrote_into_the_settings_is_passed_over(settings, tmp_path, text):
    settings.setValue(settings_key("choices", tmp_path / "m"), text)
    assert RememberedModels(settings).find(tmp_path / "m") is None
