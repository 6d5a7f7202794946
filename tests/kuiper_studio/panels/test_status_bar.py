"""The status bar: progress of a run, and its Cancel."""

from __future__ import annotations

import re

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, Qt
from PySide6.QtGui import QClipboard, QImage
from PySide6.QtWidgets import QApplication, QLabel, QProgressBar, QPushButton
from typing_extensions import override

from engine.inputs import InputSource
from kuiper_studio.engine_service.protocol import Progress
from kuiper_studio.panels.status_bar import StatusBar
from kuiper_studio.session import RunState
from kuiper_studio.theme import Scheme


@pytest.fixture
def running(qtbot, empty_session, theme, make_pair, gate):
    """A status bar and the session that it shows, in the middle of a long operator."""
    session = empty_session
    bar = StatusBar(session, theme)
    qtbot.addWidget(bar)
    bar.show()
    session.next_model.set_sources([InputSource("array", array=np.ones(3, np.float32))])
    session.open(
        make_pair(
            "pnnx.Input in 0 1 0 #0=(3)f32",
            "test.Gate slow 1 1 0 1",
            "pnnx.Expression twice 1 1 1 2 expr=mul(@0,2)",
            "pnnx.Output out 1 0 2",
        )
    )
    qtbot.waitUntil(lambda: session.graph is not None and not session.busy)
    gate.close()
    session.resume()
    yield bar, session
    gate.open()
    qtbot.waitUntil(lambda: not session.busy)


def test_long_run_shows_progress_and_can_be_cancelled(qtbot, running, gate):
    bar, session = running
    cancel = bar.findChild(QPushButton, "statusCancel")
    assert not cancel.isVisible()  # not yet: a short step must not make it flicker
    qtbot.waitUntil(cancel.isVisible)
    assert bar.findChild(QLabel, "statusDetail").text().endswith("of 4")
    cancel.click()
    gate.open()
    qtbot.waitUntil(lambda: session.state is RunState.STOPPED)
    assert session.position == 2
    assert not cancel.isVisible()
    assert bar.findChild(QLabel, "statusDetail").text() == "after slow · 2 of 4 run"


def test_a_breakpoint_is_told_as_the_reason(qtbot, running, gate):
    bar, session = running
    gate.open()
    qtbot.waitUntil(lambda: session.state is RunState.FINISHED)
    session.toggle_breakpoint("twice")
    session.restart()
    session.resume()
    qtbot.waitUntil(lambda: session.state is RunState.STOPPED)
    detail = bar.findChild(QLabel, "statusDetail")
    assert detail.text() == "at the breakpoint of twice · 2 of 4 run"
    session.step()
    qtbot.waitUntil(lambda: session.position == 3 and not session.busy)
    assert detail.text() == "after twice · 3 of 4 run"


def test_progress_waits_for_the_next_frame(qtbot, empty_session, theme):
    """Qt's bar paints at once when its value changes, and the whole window with it."""
    bar = StatusBar(empty_session, theme)
    qtbot.addWidget(bar)
    bar.show()
    painted = []

    class Watch(QObject):
        @override
        def eventFilter(self, _watched, event):
            if event.type() is QEvent.Type.Paint:
                painted.append(shown.value())
            return False

    shown, watch = bar.findChild(QProgressBar), Watch()
    shown.installEventFilter(watch)
    empty_session.progress_changed.emit(Progress("writing", 1, 4))
    qtbot.waitUntil(lambda: 1 in painted)
    painted.clear()
    empty_session.progress_changed.emit(Progress("writing", 3, 4))
    assert not painted
    qtbot.waitUntil(lambda: 3 in painted)


def test_counts_of_nan_take_the_colour_of_another_theme(qtbot, empty_session, theme):
    bar = StatusBar(empty_session, theme)
    qtbot.addWidget(bar)
    bar.show_special("NaN 0 Inf 0")
    theme.set_scheme(Scheme.LIGHT)
    label = bar.findChild(QLabel, "statusSpecial")
    assert "#434c5a" in label.styleSheet()  # text2 of the light theme


def test_tuning_is_told_beside_the_run(qtbot, empty_session, theme):
    bar = StatusBar(empty_session, theme)
    qtbot.addWidget(bar)
    detail = bar.findChild(QLabel, "statusDetail")
    before = detail.text()
    empty_session.tuning.progressed.emit("Tuning kernels… 12 of 51")
    assert detail.text() == f"{before} · Tuning kernels… 12 of 51"
    empty_session.tuning.progressed.emit("")
    assert detail.text() == before
    empty_session.tuning.progressed.emit("Tuning kernels… 13 of 51")
    empty_session.state_changed.emit()  # something else was asked for
    assert detail.text() == before


def test_other_work_stands_for_the_state(qtbot, empty_session, theme):
    """Not "Finished" before "Comparing with"."""
    bar = StatusBar(empty_session, theme)
    qtbot.addWidget(bar)
    bar.show()
    state, detail = bar.findChild(QLabel, "statusState"), bar.findChild(QLabel, "statusDetail")
    assert state.isVisible()
    empty_session.progress_changed.emit(Progress("Comparing with net.onnx", 1, 4))
    assert detail.text() == "Comparing with net.onnx"
    assert not state.isVisible()
    empty_session.progress_changed.emit(None)
    assert state.isVisible()


def test_a_click_on_cancel_leaves_the_keyboard_where_it_is(qtbot, open_window, make_pair):
    lines = "pnnx.Input in 0 1 0 #0=(3)f32", "nn.ReLU act 1 1 0 1", "pnnx.Output out 1 0 1"
    window = open_window(make_pair(*lines), ["ones"])
    session, canvas = window.session, window.graph_view.canvas
    assert session.wait_idle(10)
    canvas.setFocus()
    session.progress_changed.emit(Progress("Comparing with net.onnx", 1, 4))
    cancel = window.status_bar.findChild(QPushButton, "statusCancel")
    qtbot.waitUntil(cancel.isVisible)
    qtbot.mouseClick(cancel, Qt.MouseButton.LeftButton)
    session.progress_changed.emit(None)
    qtbot.waitUntil(lambda: not cancel.isVisible())
    assert window.focusWidget() is canvas


def test_what_is_copied_is_told(qtbot, studio, theme, monkeypatch):
    # The platform of the tests does not tell who has copied.
    monkeypatch.setattr(QClipboard, "ownsClipboard", lambda _: True)
    bar = StatusBar(studio, theme)
    qtbot.addWidget(bar)
    bar.resize(1200, 24)
    bar.show()
    said = bar.findChild(QLabel, "statusAnnouncement")
    clipboard = QApplication.clipboard()
    clipboard.setText("")  # as of a log without lines
    QApplication.processEvents()
    assert not said.isVisible()
    for text, words in (("0.97932667", "copied 0.97932667"), ("1,2\n3,4\n", "copied 2 lines")):
        clipboard.setText(text)
        qtbot.waitUntil(said.isVisible)
        assert said.text() == words
    clipboard.setImage(QImage(2, 2, QImage.Format.Format_RGB32))
    assert said.text() == "copied as a picture"
    monkeypatch.setattr(QClipboard, "ownsClipboard", lambda _: False)
    clipboard.setText("from another program")
    QApplication.processEvents()
    assert said.text() == "copied as a picture"


def test_cancel_stays_in_its_place(qtbot, empty_session, theme):
    bar = StatusBar(empty_session, theme)
    qtbot.addWidget(bar)
    bar.resize(1200, 24)
    bar.show()
    cancel = bar.findChild(QPushButton, "statusCancel")
    places = set()
    for words in ("pass_level5", "inline module = torchvision.models.vision_transformer.MLP"):
        empty_session.progress_changed.emit(Progress(f"Converting net.pt: {words}"))
        QApplication.processEvents()
        places.add(cancel.mapTo(bar, QPoint(0, 0)).x())
    assert len(places) == 1


def test_the_text_of_a_menu_entry_is_not_drawn_over_cells(qtbot, studio, theme):
    bar = StatusBar(studio, theme)
    qtbot.addWidget(bar)
    bar.resize(1200, 24)
    bar.show()
    backend = bar.findChild(QLabel, "statusBackend")
    announced = bar.findChild(QLabel, "statusAnnouncement")
    qtbot.waitUntil(backend.isVisible)
    bar.showMessage("Compare every operand")
    QApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)
    studio.workspace.announce("saved")
    QApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)
    assert not backend.isVisible()
    assert not announced.isVisible()
    bar.clearMessage()
    qtbot.waitUntil(backend.isVisible)
    assert announced.isVisible()
    assert announced.text() == "saved"


def test_work_that_ends_under_the_text_of_a_menu_entry_shows_no_cells(
    qtbot, open_window, make_pair
):
    """Qt lays the bar out anew when its height changes, and shows what it had hidden."""
    lines = "pnnx.Input in 0 1 0 #0=(3)f32", "nn.ReLU act 1 1 0 1", "pnnx.Output out 1 0 1"
    window = open_window(make_pair(*lines), ["ones"])
    session, bar = window.session, window.status_bar
    assert session.wait_idle(10)
    backend = bar.findChild(QLabel, "statusBackend")
    height = bar.sizeHint().height()
    session.progress_changed.emit(Progress("Comparing with net.onnx", 1, 4))
    qtbot.waitUntil(bar.findChild(QPushButton, "statusCancel").isVisible)
    QApplication.processEvents()
    assert bar.sizeHint().height() == height
    bar.showMessage("Compare every operand")
    session.progress_changed.emit(None)
    bar.show_range("-2 … 2")
    QApplication.processEvents()
    assert not backend.isVisible()
    assert not bar.findChild(QLabel, "statusState").isVisible()
    bar.clearMessage()
    qtbot.waitUntil(backend.isVisible)


PAIR = "[0, 42, 66, 22] relu 0.19370885, layer1.0.conv1 0.3018372, difference 0.10812835"


@pytest.mark.parametrize("width", [1440, 1366, 1024])
def test_no_number_is_cut(qtbot, open_window, make_pair, width):
    window = open_window(
        make_pair(
            "pnnx.Input in 0 1 0 #0=(3)f32",
            *(f"nn.ReLU stage.block.number{i}.activation 1 1 {i} {i + 1}" for i in range(60)),
            "pnnx.Output out 1 0 60",
        ),
        ["ones"],
    )
    window.session.run_to("stage.block.number41.activation")
    qtbot.waitUntil(lambda: window.session.position == 42 and not window.session.busy)
    window.resize(width, 900)
    bar = window.status_bar
    bar.show_hovered(PAIR)
    bar.show_picked(PAIR)
    bar.show_range("\u221244.048 … 44.048")
    bar.show_special("NaN 0 Inf 0")
    bar.show_zoom("2 : 1")
    qtbot.wait(1)

    ranged = bar.findChild(QLabel, "statusRange")
    assert ranged.fontMetrics().horizontalAdvance(ranged.text()) <= ranged.width()
    detail = bar.findChild(QLabel, "statusDetail").shown_text
    assert re.fullmatch(r".*… ?|.*(?<!\d)42 of 62 run", detail)
    for name in ("statusHovered", "statusPicked"):
        words = (
            bar.findChild(QLabel, name).shown_text.removeprefix("picked ").removesuffix(" …")
        )
        assert f"{PAIR} ".startswith(f"{words} ")
        assert "0.19370885" in words


def test_what_other_parts_tell_goes_first(qtbot, empty_session, theme):
    bar = StatusBar(empty_session, theme)
    qtbot.addWidget(bar)
    bar.show_picked(PAIR)
    bar.show_range("0 … 1")
    bar.show_zoom("2 : 1")
    zoom, ranged = (bar.findChild(QLabel, f"status{name}") for name in ("Zoom", "Range"))
    for width, has_zoom in ((1600, True), (600, False), (1600, True)):
        bar.resize(width, 26)
        bar.show()
        qtbot.waitUntil(lambda: zoom.isVisible() is has_zoom)  # noqa: B023 - called here
        assert ranged.isVisible()
