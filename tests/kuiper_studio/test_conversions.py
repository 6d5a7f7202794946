"""Files that pnnx converts, in the window; the exporter is a program of the test."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from on_screen import error_of
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QPushButton

from engine.conversion.records import ConversionOptions
from engine.inputs import parse_source
from kuiper_studio.analyse_commands import _references_beside
from kuiper_studio.app import make_window
from kuiper_studio.dialogs.conversion_dialog import ConversionDialog
from kuiper_studio.session import RunState, StudioSession

DATA = Path(__file__).parents[1] / "engine" / "conversion" / "data"
PAIR = """
import zipfile
with zipfile.ZipFile("model.pnnx.bin", "w"): pass
sizes = [a for a in sys.argv if a.startswith("inputshape=")]
shape = sizes[0][12:].split("]")[0] if sizes else "1,3,8,8"
open("model.pnnx.param", "w").write(
    "7767517\\n3 2\\n"
    f"pnnx.Input in0 0 1 0 #0=({shape})f32\\n"
    f"nn.ReLU relu 1 1 0 1 #0=({shape})f32 #1=({shape})f32\\n"
    "pnnx.Output out0 1 0 1\\n"
)
"""


@pytest.fixture
def exporter(tmp_path, monkeypatch):
    """A function that makes a Python program the exporter."""
    monkeypatch.setenv("KUIPER_STUDIO_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    def make(program=PAIR):
        path = folder / "pnnx"
        path.write_text(f"#!{sys.executable}\nimport os, sys, signal, time\n{program}")
        path.chmod(0o755)

    make()
    return make


@pytest.fixture
def window(qtbot, exporter):
    window = make_window()
    qtbot.addWidget(window)
    window.show()
    yield window
    window.close()


@pytest.fixture
def source(tmp_path):
    """A function that copies a model of the tests."""

    def copy(name):
        path = tmp_path / name
        path.write_bytes((DATA / name).read_bytes())
        return path

    return copy


def wait(qtbot, window):
    qtbot.waitUntil(lambda: not window.session.busy, timeout=20_000)


def answered(window, answer):
    """Answer the dialog when it comes; gives the list of the dialogs that did."""
    seen = []

    def look():
        for dialog in window.findChildren(ConversionDialog):
            if dialog.isVisible():
                seen.append(dialog)
                answer(dialog)
                return
        timer.start()

    timer = QTimer(window, singleShot=True, interval=20)
    timer.timeout.connect(look)
    timer.start()
    return seen


def test_the_window_shows_the_source(qtbot, window, source):
    path = source("traced.pt")
    window.opening.open_dropped([str(path)])
    wait(qtbot, window)
    assert window.session.model_path == path
    assert window.windowTitle() == "traced.pt — Kuiper Studio"
    assert [entry.path for entry in window.opening.recent_models.entries()] == [str(path)]
    assert window.session.graph.conversion.source == path


def test_a_folder_stands_for_its_only_file_to_convert(qtbot, window, source):
    path = source("traced.pt")
    window.opening.open_dropped([str(path.parent)])
    wait(qtbot, window)
    assert window.session.model_path == path
    assert window.opening.recent_models.entries()[0].path == str(path)


def test_the_log_tells_whether_the_exporter_ran(qtbot, window, source):
    path = source("traced.pt")
    for words in ("converted with pnnx: ", "converted with pnnx earlier: "):
        window.opening.open_model(path)
        wait(qtbot, window)
        said = [entry.text for entry in window.session.workspace.log_entries]
        opened = [text for text in said if text.startswith("opened traced.pt, ")]
        assert words in opened[-1]


def test_progress_is_in_the_words_of_the_exporter(qtbot, window, source, exporter):
    exporter("print('############# pass_level3', flush=True)\ntime.sleep(0.3)\n" + PAIR)
    labels = []
    window.session.progress_changed.connect(lambda p: labels.append(p and p.label))
    window.opening.open_model(source("traced.pt"))
    wait(qtbot, window)
    assert "Converting traced.pt: pass_level3" in labels
    assert labels[-1] is None


def test_progress_has_no_times_and_warnings(qtbot, window, source, exporter):
    line = (
        "shape_inference ...      2026-11-23 17:19:35 [W:onnxruntime:pnnx] Unknown CPU vendor"
    )
    exporter(f"print({line!r}, flush=True)\ntime.sleep(0.3)\n{PAIR}")
    labels = []
    window.session.progress_changed.connect(lambda p: labels.append(p and p.label))
    window.opening.open_model(source("traced.pt"))
    wait(qtbot, window)
    assert "Converting traced.pt: shape_inference" in labels
    assert not any("onnxruntime" in (label or "") for label in labels)


def test_a_reference_is_converted_in_the_words_of_the_exporter_until_it_is_cancelled(
    qtbot, window, source, exporter
):
    session, path = window.session, source("traced.pt")
    window.opening.open_model(path)
    wait(qtbot, window)
    session.set_source_list([parse_source("ones")] * len(session.graph.input_operands))
    wait(qtbot, window)
    exporter("print('############# pass_level3', flush=True)\ntime.sleep(60)")
    engine_before, labels = session.engine_pid, []
    session.progress_changed.connect(lambda p: labels.append(p and p.label))
    session.studies.compare(path)
    qtbot.waitUntil(lambda: "Converting traced.pt: pass_level3" in labels, timeout=20_000)
    window.findChild(QPushButton, "statusCancel").click()
    wait(qtbot, window)
    assert session.workspace.log_entries[-1].text == "the comparison was cancelled"
    assert session.graph is not None
    assert session.engine_pid == engine_before  # nothing had to be ended


def test_cancelling_leaves_what_was_open(qtbot, window, source, exporter):
    window.opening.open_default_sample()
    wait(qtbot, window)
    before = window.session.model_path
    exporter("print('at work', flush=True)\ntime.sleep(60)")
    window.opening.open_model(source("traced.pt"))
    qtbot.waitUntil(lambda: "at work" in str(window.session.progress), timeout=20_000)
    window.session.stop()
    wait(qtbot, window)
    assert window.session.model_path == before
    assert window.session.failure is None
    assert "cancelled" in window.session.workspace.log_entries[-1].text


def test_cancelling_the_first_model_leaves_the_start_page(qtbot, window, source, exporter):
    exporter("print('at work', flush=True)\ntime.sleep(60)")
    window.opening.open_model(source("traced.pt"))
    qtbot.waitUntil(lambda: "at work" in str(window.session.progress), timeout=20_000)
    window.session.stop()
    wait(qtbot, window)
    assert window.session.graph is None
    assert window.session.state is RunState.EMPTY


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux to end it with its parent")
def test_an_engine_that_is_ended_takes_the_exporter_with_it(qtbot, source, exporter, tmp_path):
    note = tmp_path / "note"
    exporter(f"open({str(note)!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)")
    session = StudioSession(engine="process")
    try:
        session.open(source("traced.pt"))
        qtbot.waitUntil(lambda: note.exists() and bool(note.read_text()), timeout=20_000)
        stat = Path(f"/proc/{note.read_text()}/stat")
        os.kill(session.engine_pid, signal.SIGKILL)
        qtbot.waitUntil(
            lambda: not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z",
            timeout=5000,
        )
    finally:
        session.close()


def test_a_failure_is_a_banner_and_its_words_are_in_the_log(qtbot, window, source, exporter):
    exporter("print('Unknown builtin op: my::op.')\nsys.exit(255)")
    with qtbot.waitSignal(window.session.failed, timeout=20_000) as caught:
        window.opening.open_model(source("traced.pt"))
    assert "the operator my::op" in caught.args[0].reason
    texts = [entry.text for entry in window.session.workspace.log_entries]
    assert "pnnx: Unknown builtin op: my::op." in texts


def test_sizes_are_asked_for_and_remembered(qtbot, window, source):
    path = source("no_sizes.pt")

    def answer(dialog):
        assert [field.text() for field in dialog.sizes] == [""]
        dialog.sizes[0].setText("1,3")
        assert dialog.ok.isEnabled()
        dialog.sizes[0].setText("1,x")
        assert not dialog.ok.isEnabled()
        dialog.sizes[0].setText("2,3,4,4")
        dialog.accept()

    seen = answered(window, answer)
    window.opening.open_model(path)
    qtbot.waitUntil(lambda: window.session.graph is not None, timeout=20_000)
    wait(qtbot, window)
    assert window.session.graph.input_operands[0].shape == (2, 3, 4, 4)

    seen = answered(window, lambda dialog: dialog.reject())
    window.opening.open_model(path)
    qtbot.waitUntil(lambda: bool(seen), timeout=20_000)
    assert seen[0].sizes[0].text() == "2,3,4,4"


def test_a_window_asks_when_it_is_shown(qtbot, exporter, source):
    window = make_window()
    qtbot.addWidget(window)
    window.session.open(source("no_sizes.pt"))
    wait(qtbot, window)
    assert not window.findChildren(ConversionDialog)
    seen = answered(window, lambda dialog: dialog.accept())  # empty: without sizes
    window.show()
    qtbot.waitUntil(lambda: window.session.graph is not None, timeout=20_000)
    assert len(seen) == 1
    window.close()


def test_open_dimensions_are_suggested_and_rejecting_opens_nothing(qtbot, window, source):
    seen = answered(window, lambda dialog: dialog.reject())
    window.opening.open_model(source("open.onnx"))
    qtbot.waitUntil(lambda: bool(seen), timeout=20_000)
    wait(qtbot, window)
    assert seen[0].sizes[0].text() == "1,3,224,224"
    assert not seen[0].types[0].isEnabled()  # the file says it
    assert window.session.graph is None
    assert window.session.failure is None


def test_a_changed_source_is_told_and_reloaded_with_its_sizes(qtbot, window, source):
    path = source("no_sizes.pt")
    window.session.open(path, conversion=ConversionOptions(("1,3,4,4",)))
    wait(qtbot, window)
    with qtbot.waitSignal(window.session.files_changed, timeout=10_000):
        path.write_bytes((DATA / "traced.pt").read_bytes())
    assert "no_sizes.pt" in window.session.files_notice.title
    window.session.reload()
    wait(qtbot, window)
    assert window.session.graph.input_operands[0].shape == (1, 3, 4, 4)
    assert all(version.is_current() for version in window.session.graph.versions)


def test_what_the_dialog_gives(qtbot, theme):
    from engine.conversion.source_inputs import SourceInput

    given = (SourceInput("ids", ("%batch", 16), "i64"), SourceInput("mask"))
    dialog = ConversionDialog(Path("bert.onnx"), given, ConversionOptions(), theme)
    qtbot.addWidget(dialog)
    assert [field.text() for field in dialog.sizes] == ["1,16", ""]
    assert not dialog.ok.isEnabled()  # the other size is missing
    dialog.set_size(1, "1,16i64")
    assert dialog.types[1].currentText() == "i64"
    assert dialog.ok.isEnabled()
    assert dialog.options == ConversionOptions(("1,16i64", "1,16i64"))
    dialog.seconds[0].setText("2,16")
    assert dialog.options.shapes2 == ("2,16i64", "1,16i64")
    for field in (*dialog.sizes, *dialog.seconds):
        field.clear()
    assert dialog.options == ConversionOptions()


def test_a_type_may_be_written_behind_a_size(qtbot, theme):
    from engine.conversion.source_inputs import SourceInput

    given = (SourceInput("ids"),)
    dialog = ConversionDialog(Path("bert.pt"), given, ConversionOptions(), theme)
    qtbot.addWidget(dialog)
    dialog.sizes[0].setText("1,16i65")
    assert not dialog.ok.isEnabled()
    dialog.sizes[0].setText("1,16i64")
    assert dialog.types[0].currentText() == "i64"
    assert dialog.options == ConversionOptions(("1,16i64",))
    dialog.seconds[0].setText("1,32i64")
    assert dialog.options.shapes2 == ("1,32i64",)


@pytest.mark.parametrize(
    ("field", "typed", "fault"),
    [
        ("sizes", "1,3,x", "a size is missing"),
        ("sizes", "1,big", "'big' is no size"),
        ("seconds", "1,3,0", "'0' is no size"),
    ],
)
def test_a_wrong_size_is_quoted_as_it_was_typed(qtbot, theme, field, typed, fault):
    from engine.conversion.source_inputs import SourceInput

    given = (SourceInput("input"),)
    dialog = ConversionDialog(Path("net.pt"), given, ConversionOptions(), theme)
    qtbot.addWidget(dialog)
    dialog.sizes[0].setText("1,3,8")
    getattr(dialog, field)[0].setText(typed)
    what_to_do = "write whole numbers from 1, such as 1,3,224,224."
    assert error_of(dialog) == f"Shape '{typed}': {fault}; {what_to_do}"


def test_inputs_can_be_added_where_the_file_says_none(qtbot, theme):
    dialog = ConversionDialog(Path("m.pt"), (), ConversionOptions(("1,3", "1,4")), theme)
    qtbot.addWidget(dialog)
    assert [field.text() for field in dialog.sizes] == ["1,3", "1,4"]
    (more,) = [b for b in dialog.findChildren(QPushButton) if b.text() == "Another input"]
    more.click()
    dialog.sizes[2].setText("5")
    assert dialog.options.shapes == ("1,3f32", "1,4f32", "5f32")


def test_the_ncnn_pair_of_the_conversion_is_a_reference(
    qtbot, window, source, exporter, tmp_path
):
    ncnn = "7767517\n2 2\nInput in0 0 1 in0\nReLU relu 1 1 in0 out0\n"
    exporter(
        f"{PAIR}\nopen('model.ncnn.param', 'w').write({ncnn!r})\n"
        "open('model.ncnn.bin', 'wb').close()"
    )
    values = np.linspace(-1, 1, 192, dtype=np.float32).reshape(1, 3, 8, 8)
    np.save(tmp_path / "in.npy", values)
    path = source("traced.pt")
    window.opening.open_model(path)
    wait(qtbot, window)
    window.opening.feed_files([str(tmp_path / "in.npy")])
    wait(qtbot, window)
    seen = []

    def look():
        dialog = QApplication.activeModalWidget()
        if dialog is None:
            timer.start()
            return
        (made,) = dialog.beside
        seen.append((made.text(), Path(made.toolTip()).is_file()))
        made.click()
        dialog.ok.click()

    timer = QTimer(window, singleShot=True, interval=20)
    timer.timeout.connect(look)
    timer.start()
    window.actions_by_id["analyse.compare"].trigger()
    wait(qtbot, window)
    assert seen == [("model.ncnn.param", True)]
    comparison = window.session.comparing.comparison
    assert comparison.verdict == "same"
    assert {row.operator.name for row in comparison.rows} == {"in0", "relu"}
    users = path.with_name("traced.ncnn.param")
    users.write_text(ncnn)
    assert _references_beside(window.session.graph) == [users]
