"""A memory limit in the window: what was dropped is there when somebody looks at it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from driving import trigger
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QLabel, QPushButton

from kuiper_studio.dialogs.graph_picture_dialog import GraphPictureDialog
from kuiper_studio.dialogs.memory_dialog import MemoryDialog
from kuiper_studio.session import RunState

SHAPE = (1, 2, 16, 16)
BYTES = 4 * 2 * 16 * 16
LENGTH = 30


def lines(kinds=None):
    """A chain of operators that each add one."""
    spelt = "(1,2,16,16)f32"
    kinds = {
        k: f"test.Gate op{k} 1 1 {k - 1} {k} #{k}={spelt}"
        if k in (kinds or ())
        else f"pnnx.Expression op{k} 1 1 {k - 1} {k} expr=add(@0,1) #{k}={spelt}"
        for k in range(1, LENGTH + 1)
    }
    return [
        f"pnnx.Input in 0 1 0 #0={spelt}",
        *kinds.values(),
        f"pnnx.Output out 1 0 {LENGTH}",
    ]


def expected(k):
    return np.arange(512, dtype=np.float32).reshape(SHAPE) + k


@pytest.fixture
def gate(gate):
    """The gate that adds one, too."""
    gate.compute = lambda x: x + np.float32(1)
    return gate


@pytest.fixture
def window(qtbot, open_window, make_pair, gate):
    """A window in which the chain has run to its end, with a limit of nothing."""

    def make(kinds=None, limit=0):
        path = make_pair(*lines(kinds), name=f"limit-{limit}")  # each window has its own
        made = open_window(path, [expected(0)])
        made.session.memory.set_limit(limit)
        trigger(qtbot, made, "debug.continue")
        qtbot.waitUntil(lambda: made.session.state is RunState.FINISHED, timeout=10_000)
        return made

    return make


def label(window, name):
    return window.findChild(QLabel, name)


def shows(window, k):
    """Whether the tensor view has the picture of an operand of the chain."""
    view = window.tensor_view
    return (
        view.pane.isVisible()
        and view.pane.model.name == str(k)
        and np.array_equal(view.pane.model.array, expected(k))
    )


def message(window):
    view = window.tensor_view
    return " ".join(each.text() for each in view.message.findChildren(QLabel))


def test_an_old_operand_shows_its_picture(qtbot, window):
    limited, free = window(), window(limit=None)
    assert limited.session.is_evicted("5")
    assert not free.session.is_evicted("5")
    for each in (limited, free):
        each.session.select("op5")
    qtbot.waitUntil(lambda: shows(limited, 5))
    qtbot.waitUntil(lambda: shows(free, 5))
    qtbot.wait(100)  # late pictures and statistics
    pictures = [each.tensor_view.pane.grab().toImage() for each in (limited, free)]
    assert pictures[0] == pictures[1]
    assert limited.session.position == LENGTH + 2
    assert limited.session.state is RunState.FINISHED


def test_looking_through_all_of_them(qtbot, window):
    limited = window(limit=4 * BYTES)
    for k in range(LENGTH, 0, -1):
        limited.session.select(f"op{k}")
        qtbot.waitUntil(lambda k=k: shows(limited, k))


def test_a_locked_tab_has_its_value_after_each_run(qtbot, window):
    limited = window()
    limited.session.select("op3")
    qtbot.waitUntil(lambda: shows(limited, 3))
    limited.tensor_view.lock()
    trigger(qtbot, limited, "debug.restart")
    assert "has no value yet" in message(limited)
    trigger(qtbot, limited, "debug.continue")
    qtbot.waitUntil(lambda: shows(limited, 3))
    assert limited.session.operand != "3"


def test_facts_of_dropped_values_are_shown(qtbot, window):
    limited = window()
    session = limited.session
    assert (session.tensors.metadata("7").shape, session.tensors.metadata("7").dtype) == (
        SHAPE,
        np.float32,
    )
    assert session.tensors.has_value("7")
    assert session.tensors.metadata("nothing") is None


def test_boxes_get_their_thumbnails(qtbot, window):
    limited = window()
    view = limited.graph_view
    view.zoom_reset()
    view.center_on("op10")
    qtbot.waitUntil(lambda: view.canvas.summary("op10") is not None, timeout=10_000)
    found = view.canvas.summary("op10")
    assert (found.low, found.high) == (10, 521)
    assert found.pixels is not None


def test_tips_say_what_is_dropped(qtbot, window):
    tips = []
    for limit in (0, None):
        canvas = window(limit=limit).graph_view.canvas
        canvas.viewport.reduced_motion = True
        canvas.center_on("op20")
        tips.append(canvas.tip_at(canvas.box_rect("op20").center()))
    sentence = "evicted by the memory limit, recomputed when you look at it"
    assert [sentence in tip for tip in tips] == [True, False]


def test_the_graph_is_saved_with_all_its_pictures(qtbot, window, tmp_path, monkeypatch):
    saved = []
    monkeypatch.setattr(GraphPictureDialog, "exec", lambda _: True)
    for name, limit in (("free", None), ("tight", 0)):
        (tmp_path / name).mkdir()
        made, path = window(limit=limit), tmp_path / name / "graph.svg"
        monkeypatch.setattr(made.file_dialogs, "choose_new", lambda *_, path=path: path)
        made.session.select("op30")
        trigger(qtbot, made, "file.exportGraph")
        qtbot.waitUntil(path.exists, timeout=10_000)
        qtbot.waitUntil(
            lambda made=made: "saved to" in made.session.workspace.log_entries[-1].text
        )
        saved.append(path.read_text(encoding="utf-8"))
    assert saved[0].count("<image") == saved[1].count("<image") >= LENGTH
    assert saved[0] == saved[1]


def test_saving_the_graph_is_given_up_with_the_run(qtbot, window, tmp_path, monkeypatch, gate):
    limited = window({5})
    monkeypatch.setattr(GraphPictureDialog, "exec", lambda _: True)
    monkeypatch.setattr(limited.file_dialogs, "choose_new", lambda *_: tmp_path / "graph.svg")
    gate.close()
    trigger(qtbot, limited, "file.exportGraph")
    limited.session.restart()
    gate.open()
    qtbot.waitUntil(lambda: not limited.session.busy and not limited.session.tensors.recalling)
    assert not (tmp_path / "graph.svg").exists()


class TestLong:
    """Values that take long to compute again."""

    def test_busy_cancel_and_again(self, qtbot, window, gate):
        limited = window({5})
        gate.close()
        limited.session.select("op8")
        # Until the engine has said that it was dropped, it may be on its way.
        qtbot.waitUntil(lambda: "dropped to stay within the memory limit" in message(limited))
        assert "is being fetched" in message(limited)
        assert "It is being computed again." in message(limited)
        limited.session.stop()
        gate.open()
        qtbot.waitUntil(lambda: "was cancelled" in message(limited))
        assert limited.session.position == LENGTH + 2
        limited.session.select("op9")
        qtbot.waitUntil(lambda: shows(limited, 9))
        limited.session.select("op8")
        qtbot.waitUntil(lambda: shows(limited, 8))

    def test_progress_is_shown(self, qtbot, window, gate):
        limited = window({5, 6})
        gate.close()
        limited.session.select("op8")
        qtbot.wait(300)
        gate.open()
        # The next operator asks whether to go on, and tells that it has taken long.
        seen = []
        limited.session.progress_changed.connect(seen.append)
        qtbot.waitUntil(lambda: shows(limited, 8))
        assert [p.label for p in seen if p is not None] == ["Computing operand 8 again"]
        # Another operand may still be computed: the one that properties and pictures look at.
        qtbot.waitUntil(lambda: limited.session.progress is None)

    def test_commands_come_first(self, qtbot, window, gate):
        limited = window({5})
        gate.close()
        limited.session.select("op8")
        qtbot.waitUntil(lambda: "is being fetched" in message(limited))
        limited.session.step_back()
        assert limited.session.busy
        gate.open()
        qtbot.waitUntil(lambda: not limited.session.busy)
        assert limited.session.position == LENGTH + 1
        limited.session.select("op8")
        qtbot.waitUntil(lambda: shows(limited, 8))

    def test_what_is_looked_at_is_gone(self, qtbot, window, gate):
        limited = window({5})
        gate.close()
        limited.session.select("op8")
        qtbot.waitUntil(lambda: "is being fetched" in message(limited))
        limited.session.restart()
        gate.open()
        qtbot.waitUntil(lambda: not limited.session.busy)
        assert "has no value yet" in message(limited)

    def test_closing(self, qtbot, window, gate):
        limited = window({5})
        gate.close()
        limited.session.select("op8")
        limited.session.close_model()
        gate.open()
        qtbot.waitUntil(lambda: not limited.session.tensors.recalling)
        assert limited.session.state is RunState.EMPTY

    def test_it_fails(self, qtbot, window, gate):
        limited = window({5})
        gate.fault = "it is broken now"
        limited.session.select("op8")
        qtbot.waitUntil(lambda: "it is broken now" in message(limited))
        assert limited.session.state is RunState.FINISHED
        gate.fault = ""
        limited.session.select("op3")
        qtbot.waitUntil(lambda: shows(limited, 3))
        limited.session.select("op8")
        qtbot.waitUntil(lambda: shows(limited, 8))


class TestSetting:
    @pytest.fixture
    def answer(self, monkeypatch):
        """A function that has the dialog answered with an amount, or with no limit."""

        def with_(text):
            def fill(dialog):
                if text is None:
                    dialog.everything.setChecked(True)
                else:
                    dialog.limited.setChecked(True)
                    dialog.amount.setText(text)
                dialog.accept()
                return dialog.result()

            monkeypatch.setattr(MemoryDialog, "exec", fill)

        return with_

    def test_it_counts_at_once_and_is_shown(self, qtbot, window, answer):
        free = window(limit=None)
        assert not label(free, "statusMemory").isVisible()
        answer("3 kB")
        trigger(qtbot, free, "debug.memoryLimit")
        assert free.session.memory.limit == 3000
        assert label(free, "statusMemory").isVisible()
        assert label(free, "statusMemory").text() == "memory limit 3 kB"
        qtbot.waitUntil(lambda: not free.session.tensors.at_hand("5"))
        answer(None)
        trigger(qtbot, free, "debug.memoryLimit")
        assert free.session.memory.limit is None
        assert not label(free, "statusMemory").isVisible()

    def test_it_is_remembered(self, qtbot, open_window, settings, answer):
        window = open_window()
        answer("2GiB")
        trigger(qtbot, window, "debug.memoryLimit")
        window.close()
        window = open_window()
        assert window.session.memory.limit == 2 << 30
        answer(None)
        trigger(qtbot, window, "debug.memoryLimit")
        window.close()
        window = open_window()
        assert window.session.memory.limit is None
        window.close()
        settings.setValue("memoryLimit", "nonsense")
        assert open_window().session.memory.limit is None

    def test_the_bound(self, qtbot, open_window, settings, answer, monkeypatch):
        window = open_window()
        shown: dict[str, Any] = {}

        def fill(dialog):
            shown["before"] = dialog.most.text(), dialog.most.placeholderText()
            dialog.most.setText("much")
            shown["wrong"] = dialog.findChild(QLabel, "memoryError").text()
            assert not dialog.ok.isEnabled()
            dialog.most.setText(shown["wanted"])
            dialog.accept()
            return dialog.result()

        monkeypatch.setattr(MemoryDialog, "exec", fill)
        for text, bound in (("3GiB", 3 << 30), ("", None)):
            shown["wanted"] = text
            trigger(qtbot, window, "debug.memoryLimit")
            assert window.session.memory.bound == bound
            window.close()
            window = open_window()
            assert window.session.memory.bound == bound
            assert window.session.memory.limit is None
            assert "is not an amount of memory" in shown["wrong"]
        assert shown["before"][0] == "3 GiB"
        assert shown["before"][1].endswith("GB, half of this machine's memory")

    def test_both_are_remembered(self, open_window):
        window = open_window()
        window.session.memory.set_limit(5000)
        window.session.memory.set_bound(6000)
        window.close()
        again = open_window()
        assert (again.session.memory.limit, again.session.memory.bound) == (5000, 6000)

    @pytest.mark.parametrize("before", [True, False])
    def test_the_bound_holds_for_the_model(self, qtbot, open_window, make_pair, before):
        """Set before the model is opened, or while it is open."""
        window = open_window()
        if before:
            window.session.memory.set_bound(3 * BYTES)
        window.opening.open_model(make_pair(*lines()))
        qtbot.waitUntil(lambda: window.session.graph is not None)
        window.session.set_inputs({"0": array_source(expected(0))})
        qtbot.waitUntil(lambda: window.session.state is RunState.READY)
        window.session.memory.set_bound(3 * BYTES)
        trigger(qtbot, window, "debug.continue")
        failure = window.session.failure
        assert failure is not None
        assert "op3" in f"{failure.title} {failure.reason}"
        assert "the memory bound is 6.1 kB, of which 6.1 kB are taken" in failure.reason
        assert window.session.tensors.at_hand("2")
        window.session.memory.set_bound(None)
        window.session.restart()
        qtbot.waitUntil(lambda: not window.session.busy)
        trigger(qtbot, window, "debug.continue")
        qtbot.waitUntil(lambda: window.session.state is RunState.FINISHED)

    def test_inputs_beyond_the_bound(self, qtbot, open_window, make_pair):
        window = open_window(make_pair(*lines()), [expected(0)])
        window.session.memory.set_bound(BYTES - 1)
        window.session.set_inputs({"0": array_source(expected(1))})
        qtbot.waitUntil(lambda: window.session.failure is not None)
        assert "the memory bound is 2.0 kB" in window.session.failure.reason
        assert window.session.state is not RunState.READY

    def test_models_that_are_opened_later_have_it(self, qtbot, open_window, make_pair):
        window = open_window()
        window.session.memory.set_limit(0)
        window.opening.open_model(make_pair(*lines()))
        qtbot.waitUntil(lambda: window.session.graph is not None)
        window.session.set_inputs({"0": array_source(expected(0))})
        qtbot.waitUntil(lambda: window.session.state is RunState.READY)
        trigger(qtbot, window, "debug.continue")
        assert not window.session.tensors.at_hand("5")


def array_source(array):
    from engine.inputs import InputSource

    return InputSource("array", array=array)


class TestDialog:
    @pytest.fixture
    def dialog(self, qtbot, studio):
        def make(limit=None):
            studio.memory.set_limit(limit)
            made = MemoryDialog(studio)
            qtbot.addWidget(made)
            made.show()
            return made

        return make

    def button(self, dialog):
        return next(b for b in dialog.findChildren(QPushButton) if b.isDefault())

    def test_without_a_limit(self, qtbot, dialog):
        made = dialog()
        assert made.everything.isChecked()
        assert made.amount.text() == "500 MB"
        # Three images of 4×8×8, which the sum needs at once, and three of 4×4×4.
        text = label(made, "memoryFacts").text()
        assert "keeps 3.8 kB" in text
        assert "need 3.1 kB at once" in text
        qtbot.mouseClick(self.button(made), Qt.MouseButton.LeftButton)
        assert (made.result(), made.limit) == (QDialog.DialogCode.Accepted, None)

    def test_an_amount_is_written(self, qtbot, dialog):
        made = dialog()
        made.amount.selectAll()
        qtbot.keyClicks(made.amount, "1.5 GB")
        assert made.limited.isChecked()
        qtbot.keyClick(made.amount, Qt.Key.Key_Return)
        assert (made.result(), made.limit) == (QDialog.DialogCode.Accepted, 1_500_000_000)

    @pytest.mark.parametrize("text", ["", "much", "-1", "5 M"])
    def test_what_is_no_amount(self, qtbot, dialog, text):
        made = dialog(1000)
        assert made.limited.isChecked()
        assert made.amount.text() == "1 kB"
        made.amount.setText(text)
        assert "is not an amount of memory, such as 500MB" in label(made, "memoryError").text()
        assert not self.button(made).isEnabled()
        made.everything.setChecked(True)
        assert label(made, "memoryError").text() == " "
        assert self.button(made).isEnabled()

    def test_without_a_model(self, qtbot, empty_session):
        made = MemoryDialog(empty_session)
        qtbot.addWidget(made)
        assert not label(made, "memoryFacts").isVisibleTo(made)
