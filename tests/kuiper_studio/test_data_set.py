"""A data set in the window: its run, what it held, and its inputs."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PySide6.QtWidgets import QLabel, QPushButton

from engine.datasets import SweepOptions, sweep
from engine.errors import SweepError
from kuiper_studio.dialogs.sweep_dialog import SweepDialog
from kuiper_studio.engine_service.sweep_process import SweepJob, image_options
from kuiper_studio.panels.data_set_panel import Strip, _icon_of
from kuiper_studio.session import RunState
from kuiper_studio.tensor_view.facts import rebin

CHAIN = (
    "pnnx.Input in 0 1 0 #0=(1,2,4,4)f32",
    "nn.ReLU relu 1 1 0 1 #0=(1,2,4,4)f32 #1=(1,2,4,4)f32",
    "pnnx.Expression twice 1 1 1 2 expr=mul(@0,2) #1=(1,2,4,4)f32 #2=(1,2,4,4)f32",
    "pnnx.Output out 1 0 2",
)
COUNT = 12


@pytest.fixture
def data():
    """Channel 1 is never above 0, so it is dead after the ReLU."""
    found = np.random.default_rng(0).normal(size=(COUNT, 2, 4, 4)).astype(np.float32)
    found[:, 1] = -np.abs(found[:, 1])
    found[5, 0, 2, 2] = 40
    return found


@pytest.fixture
def inputs(data, tmp_path):
    np.save(tmp_path / "set.npy", data)
    return tmp_path / "set.npy"


@pytest.fixture
def model(make_pair):
    return make_pair(*CHAIN)


@pytest.fixture
def window(open_window, model, data):
    return open_window(model, [data[:1]])


@pytest.fixture
def results(model, inputs, tmp_path):
    options = SweepOptions(batch=1, top=3)
    return sweep(model, inputs, tmp_path / "out", options, workers=0)


def show(qtbot, window, operator):
    session = window.session
    qtbot.waitUntil(lambda: session.state is RunState.READY, timeout=10_000)
    for _ in range(session.graph.operator(operator).index + 1):
        session.step()
    name = session.graph.operator(operator).outputs[0].name
    qtbot.waitUntil(lambda: (window.tensor_view.shown_channel or ("",))[0] == name)


def numbers(strip):
    return [strip.item(row).data(256) for row in range(strip.count())]


def test_what_it_held_of_an_operator_that_has_not_run(qtbot, window, results, data):
    qtbot.waitUntil(lambda: window.session.state is RunState.READY, timeout=10_000)
    window.sweeping.open_results(results.path)
    window.session.select("relu")
    panel = window.data_set_panel
    qtbot.waitUntil(lambda: panel.strip.count() == 3)
    assert numbers(panel.strip)[0] == 5  # the input with the spike
    assert panel.channel.isVisible()  # for the tensor view shows none
    panel.channel.setValue(1)
    qtbot.waitUntil(lambda: "all zeros with 12 of 12 inputs" in panel.caption.text())


def test_what_a_data_set_held_is_shown(qtbot, window, results, data):
    show(qtbot, window, "relu")
    window.sweeping.open_results(results.path)
    panel, pane = window.data_set_panel, window.tensor_view.pane
    assert panel.isVisible()
    assert panel.title.text() == "12 inputs"
    assert "1 dead channel" not in panel.detail.text()  # of two operands
    assert "2 dead channels" in panel.detail.text()
    # The range bar spans the data set, whose histogram is behind.
    assert pane.model.axis.high >= 40
    backdrop = pane.range_bar.track._backdrop
    assert backdrop.sum() == pytest.approx(data.size)
    assert "12 inputs, 0 … 40" in pane.range_bar.track.toolTip()
    # The dead channel is marked as dead in all inputs, not only in this one.
    qtbot.waitUntil(lambda: pane.model.special is not None)
    assert pane.model.special.describe(1) == "dead: all zeros, in all 12 inputs"
    assert pane.model.special.describe(0) == ""
    panel.close_results.click()
    assert pane.model.axis.high < 40
    assert pane.range_bar.track._backdrop is None


def test_inputs_that_excite_the_channel(qtbot, window, results, data):
    show(qtbot, window, "relu")
    window.sweeping.open_results(results.path)
    window.tensor_view.pane.show_channel(0)
    peaks = np.maximum(data[:, 0], 0).max(axis=(1, 2))
    panel = window.data_set_panel
    assert numbers(panel.strip) == np.argsort(-peaks, kind="stable")[:3].tolist()
    assert panel.strip.item(0).text() == "40"
    qtbot.waitUntil(lambda: panel._pictures[str(results.path), 5] is not None)
    panel.choice.setCurrentIndex(panel.choice.findData(Strip.LEAST))
    assert numbers(panel.strip) == np.argsort(peaks, kind="stable")[:3].tolist()
    panel.choice.setCurrentIndex(panel.choice.findData(Strip.UNUSUAL))
    assert numbers(panel.strip) == [5]
    window.tensor_view.pane.show_channel(1)
    assert "all zeros with 12 of 12 inputs" in panel.caption.text()


def test_pictures_of_the_strip_have_one_size(qapp):
    """Otherwise an item as high as the first, a wide picture, hides the value of a tall one."""
    for height, width in ((4, 8), (8, 4)):
        icon = _icon_of(np.full((height, width, 3), 200, np.uint8))
        image = icon.pixmap(96, 96).toImage()
        assert (image.width(), image.height()) == (96, 96)
        assert image.pixelColor(48, 48).getRgb() == (200, 200, 200, 255)
        assert image.pixelColor(0, 0).alpha() == 0  # beside the picture, which is centred
        across, down = (2, 26) if width > height else (26, 2)
        assert image.pixelColor(across, down).alpha() == 255


def test_an_input_is_opened_and_run_to_the_operator(qtbot, window, results, data):
    show(qtbot, window, "relu")
    window.sweeping.open_results(results.path)
    panel = window.data_set_panel
    window.tensor_view.pane.show_channel(0)
    panel.strip.itemActivated.emit(panel.strip.item(0))
    qtbot.waitUntil(lambda: window.session.position == 2 and not window.session.busy)
    np.testing.assert_array_equal(window.session.tensors.value("1"), np.maximum(data[5:6], 0))
    qtbot.waitUntil(lambda: window.tensor_view.shown_channel == ("1", 0))
    assert window.session.current.name == "twice"  # where the user goes on


def test_a_run_in_a_process_of_its_own(qtbot, window, inputs, tmp_path):
    sweeping, panel = window.session.sweeping, window.data_set_panel
    window.sweeping.run(str(inputs), str(tmp_path / "new"), 8)
    assert panel.bar.isVisible()
    assert panel.cancel.isVisible()
    assert not panel.run.isEnabled()
    qtbot.waitUntil(lambda: not sweeping.is_running, timeout=60_000)
    assert sweeping.found.inputs.done == 8
    assert panel.title.text() == "8 inputs"
    assert not panel.bar.isVisible()
    assert (tmp_path / "new" / "summary.html").is_file()


def test_a_run_is_cancelled(qtbot, window, inputs, tmp_path):
    sweeping = window.session.sweeping
    failures = []
    sweeping.failed.connect(failures.append)
    window.sweeping.run(str(inputs), str(tmp_path / "new"))
    panel = window.data_set_panel
    panel.cancel.click()
    assert not panel.cancel.isEnabled()
    assert panel.detail.text() == "It ends with the parts that are being computed."
    qtbot.waitUntil(lambda: not sweeping.is_running, timeout=60_000)
    assert sweeping.found is None
    assert not failures
    assert panel.title.text() == "The run was cancelled"
    assert panel.detail.text() == "No part was finished."
    assert not panel.cancel.isVisible()


def test_a_run_that_finished_as_it_was_cancelled_is_shown(
    qtbot, window, inputs, tmp_path, monkeypatch
):
    sweeping, panel = window.session.sweeping, window.data_set_panel
    take = sweeping._take

    def cancel_at_the_end(line):
        take(line)
        if b"finished" in line:
            panel.cancel.click()
            assert sweeping.is_cancelled

    monkeypatch.setattr(sweeping, "_take", cancel_at_the_end)
    window.sweeping.run(str(inputs), str(tmp_path / "new"), 8)
    qtbot.waitUntil(lambda: not sweeping.is_running, timeout=60_000)
    assert sweeping.stopped is None
    assert panel.title.text() == "8 inputs"


def test_how_inputs_ran_and_which_failed_is_said(qtbot, window, results):
    path = results.path / "summary.json"
    summary = json.loads(path.read_bytes())
    summary["remarks"] = ["each input fills its batch alone"]
    failed = {"index": 3, "name": "a.png", "reason": "it is no picture"}
    summary["inputs"] |= {"failed": [failed], "failed_count": 3}
    path.write_text(json.dumps(summary))
    window.sweeping.open_results(results.path)
    panel = window.data_set_panel
    assert panel.how.isVisibleTo(panel)
    assert panel.how.text() == "Each input fills its batch alone."
    assert panel.detail.toolTip() == "a.png: it is no picture\nand 2 more"
    window.session.sweeping.clear()
    assert not panel.how.isVisibleTo(panel)


def test_why_a_run_failed(qtbot, window, tmp_path):
    sweeping = window.session.sweeping
    sweeping.failed.disconnect()  # the window would ask to be read
    with qtbot.waitSignal(sweeping.failed, timeout=60_000) as failed:
        window.sweeping.run(str(tmp_path / "missing"), str(tmp_path / "new"))
    assert "there is no such file or folder" in failed.args[0]


def test_results_of_another_model_are_refused(qtbot, open_window, results, make_pair, data):
    other = make_pair(*CHAIN[:2], "pnnx.Output out 1 0 1")
    window = open_window(other, [data[:1]])
    with pytest.raises(SweepError, match="through another model"):
        window.session.sweeping.open(results.path)
    assert window.session.sweeping.found is None


def test_results_of_another_version_of_the_model_are_shown_and_named(
    qtbot, open_window, results, make_pair, data
):
    """They have the same operators, with another factor, and then other weights too."""
    changed = [line.replace("mul(@0,2)", "mul(@0,3)") for line in CHAIN]
    window = open_window(make_pair(*changed, name="other"), [data[:1]])
    window.sweeping.open_results(results.path)
    panel, sweeping = window.data_set_panel, window.session.sweeping
    assert sweeping.difference == "parameters"
    assert panel.remark.text() == (
        "Another version of the model ran: its parameters were others."
    )
    assert panel.remark.isVisible()
    panel.close_results.click()
    assert panel.remark.isHidden()


def test_results_with_other_weights_are_named(qtbot, open_window, results, make_pair, data):
    model = make_pair(*CHAIN, weights={"relu.unused": np.zeros(3, np.float32)})
    window = open_window(model, [data[:1]])
    window.sweeping.open_results(results.path)
    panel = window.data_set_panel
    qtbot.waitUntil(panel.remark.isVisible)
    assert panel.remark.text() == "Another version of the model ran: its weights were others."


def test_a_sweep_that_is_not_finished_says_so(window, results):
    sweeping = window.session.sweeping
    (results.path / "summary.json").unlink()
    with pytest.raises(SweepError, match="not finished; run the same inputs into it to go on"):
        sweeping.open(results.path)
    with pytest.raises(SweepError, match="holds no results of a sweep"):
        sweeping.open(results.path.parent)
    with pytest.raises(SweepError, match="there is no folder"):
        sweeping.open(results.path / "nowhere")


def test_features_of_tokens_on_their_grid_are_known(
    qtbot, open_window, make_pair, inputs, data, tmp_path
):
    model = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,2,4,4)f32",
        "nn.ReLU relu 1 1 0 1 #0=(1,2,4,4)f32 #1=(1,2,4,4)f32",
        "nn.AvgPool2d pool 1 1 1 2 kernel_size=(1,1) stride=(1,1) padding=(0,0) "
        "ceil_mode=False count_include_pad=True divisor_override=None #2=(1,2,4,4)f32",
        "torch.flatten flat 1 1 2 3 start_dim=2 end_dim=-1 #2=(1,2,4,4)f32 #3=(1,2,16)f32",
        "torch.transpose turn 1 1 3 4 dim0=1 dim1=2 #3=(1,2,16)f32 #4=(1,16,2)f32",
        "pnnx.Output out 1 0 4",
    )
    results = sweep(model, inputs, tmp_path / "out", SweepOptions(batch=1), workers=0)
    window = open_window(model, [data[:1]])
    show(qtbot, window, "turn")
    pane, panel = window.tensor_view.pane, window.data_set_panel
    qtbot.waitUntil(lambda: pane.model.plan is not None)  # 16 tokens are pictures of 4×4
    qtbot.waitUntil(lambda: pane.model.special is not None)
    window.sweeping.open_results(results.path)
    totals = window.session.sweeping.totals("4", pane.model.counted_view())
    assert totals.dead_in.tolist() == [0, 12]
    pane.show_channel(1)
    assert panel.channel.value() == 1
    assert panel.caption.text().startswith("Channel 1 of turn: 0 to 0")


def test_a_channel_is_chosen_that_the_tensor_view_does_not_tell_apart(
    qtbot, open_window, make_pair, inputs, data, tmp_path
):
    model = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,2,4,4)f32",
        "nn.AdaptiveAvgPool2d pool 1 1 0 1 output_size=(1,1) #0=(1,2,4,4)f32 #1=(1,2,1,1)f32",
        "torch.flatten flat 1 1 1 2 start_dim=1 end_dim=-1 #1=(1,2,1,1)f32 #2=(1,2)f32",
        "pnnx.Output out 1 0 2",
    )
    results = sweep(model, inputs, tmp_path / "out", SweepOptions(batch=1), workers=0)
    window = open_window(model, [data[:1]])
    show(qtbot, window, "flat")
    window.sweeping.open_results(results.path)
    panel = window.data_set_panel
    for channel in (0, 1):
        panel.channel.setValue(channel)
        means = data[:, channel].mean(axis=(1, 2))
        assert numbers(panel.strip) == np.argsort(-means, kind="stable")[:8].tolist()
    assert panel.caption.text().startswith("Channel 1 of flat")


def test_what_the_dialog_asks(qtbot, tmp_path):
    chosen = iter([str(tmp_path / "photos"), "", str(tmp_path)])
    dialog = SweepDialog("", "out", 4, lambda _: "", lambda _: next(chosen))
    qtbot.addWidget(dialog)
    assert dialog.workers == 4
    assert not dialog.ok.isEnabled()
    folder = next(
        button
        for button in dialog.findChildren(QPushButton)
        if button.accessibleName() == "Inputs: Folder…"
    )
    folder.click()
    assert dialog.inputs.text() == str(tmp_path / "photos")
    assert dialog.ok.isEnabled()
    assert dialog.most_inputs is None
    dialog.open_results.click()  # nothing is chosen
    assert not dialog.opened
    dialog.open_results.click()
    assert dialog.opened == str(tmp_path)


def test_without_the_libraries_results_can_only_be_opened(qtbot, tmp_path):
    dialog = SweepDialog("a", "b", 0, lambda _: "", lambda _: str(tmp_path))
    qtbot.addWidget(dialog)
    dialog.show()
    line = dialog.findChild(QLabel, "sweepError")
    assert line.isVisible()
    assert "pip install 'kuiper-studio[datasets]'" in line.text()
    assert not dialog.ok.isEnabled()
    dialog.open_results.click()
    assert dialog.opened == str(tmp_path)


def test_what_is_still_to_be_chosen_is_no_error(qtbot, tmp_path):
    dialog = SweepDialog("", "", 2, lambda _: "", lambda _: "")
    qtbot.addWidget(dialog)
    line = dialog.findChild(QLabel, "sweepError")
    assert (line.text(), line.property("role")) == ("Choose the inputs.", "secondary")
    qtbot.keyClicks(dialog.inputs, "photos")
    assert line.text() == "Choose a folder for the results."
    assert line.property("role") == "secondary"
    (tmp_path / "taken").touch()
    dialog.output.setText(str(tmp_path / "taken"))
    assert line.text().endswith("taken is a file.")
    assert line.property("role") == "error"
    dialog.output.clear()
    assert line.property("role") == "secondary"
    assert not dialog.ok.isEnabled()


def test_a_job_crosses_as_json():
    images = image_options({"size": [3, 4], "mean": [0.5], "unknown": 1})
    assert (images.size, images.mean) == ((3, 4), (0.5,))
    job = SweepJob("m.param", "in", "out", 7, 2, images, ("x=1,3",), layers=("l.py",))
    assert SweepJob.from_line(job.to_line()) == job


@pytest.mark.parametrize(("low", "high"), [(0.0, 4.0), (-2.0, 6.0), (0.5, 1.5)])
def test_histograms_over_other_bins(low, high):
    """By a slow loop over small parts of each bin."""
    counts, edges = np.array([4, 0, 8, 2]), np.arange(5.0)
    found = rebin(counts, edges, low, high, bins=8)
    expected, width = np.zeros(8), (high - low) / 8
    for place, count in enumerate(counts):
        for part in (np.arange(1000) + 0.5) / 1000:
            at = int(np.floor((edges[place] + part - low) / width))
            if 0 <= at < 8:
                expected[at] += count / 1000
    np.testing.assert_allclose(found, expected, atol=0.02)
