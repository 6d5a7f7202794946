"""Inputs in the main window: messages about them, their sizes, archives of several."""

from __future__ import annotations

import numpy as np
import pytest
from driving import CHAIN, dock, drop, trigger
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton

from kuiper_studio.item_models import OperatorColumn
from kuiper_studio.open_commands import sizes_key
from kuiper_studio.session import RunState


def test_a_message_about_an_input_goes_with_the_next_one(qtbot, window, tmp_path, image):
    bad, good = tmp_path / "bad.npy", tmp_path / "good.npy"
    np.save(bad, np.zeros((7, 7), np.float32))
    np.save(good, image)
    for path in (bad, tmp_path / "a.txt.gz"):
        window.opening.feed_files([str(path)])
        qtbot.waitUntil(window.banner.isVisible)
        assert "The input cannot be used" in window.banner.plain_text()
        window.opening.feed_files([str(good)])
        qtbot.waitUntil(lambda: not window.session.busy)
        assert not window.banner.isVisible()
        assert window.session.failure is None


def test_a_card_forgets_what_was_wrong_with_a_mended_file(qtbot, window, tmp_path, image):
    path = tmp_path / "x.npy"
    path.write_bytes(b"no array")
    card = window.input_panel.cards["0"]
    card.use_file(str(path))
    qtbot.waitUntil(lambda: card.findChild(QLabel, "inputError").isVisible())
    np.save(path, image)
    card.use_file(str(path))
    qtbot.waitUntil(lambda: bool(window.session.fed_shapes) and not window.session.busy)
    qtbot.waitUntil(lambda: "1×2×4×4" in card.preview.accessibleName())
    assert not card.findChild(QLabel, "inputError").isVisible()


class TestSizes:
    OPEN = (
        "pnnx.Input in 0 1 x #x=(1,2,%h,?)f32",
        "nn.ReLU relu 1 1 x y #y=(1,2,%h,?)f32",
        "pnnx.Output out 1 0 y",
    )

    @pytest.fixture
    def window(self, open_window, make_pair):
        return open_window(make_pair(*self.OPEN))

    @pytest.mark.parametrize("command", ["debug.step", "debug.continue", "debug.runToSelected"])
    def test_running_without_an_input_leads_to_the_panel(self, qtbot, window, command):
        dock(window, "input").hide()
        window.input_panel.cards["x"].choice.activated.emit(1)  # random
        qtbot.waitUntil(lambda: window.session.inputs and not window.session.busy)
        trigger(qtbot, window, command)
        assert window.input_panel.isVisible()
        assert window.input_panel.question.text() == (
            "What are the sizes of %h and dimension 3 of input x?"
        )
        assert not window.banner.isVisible()
        assert window.focusWidget() is window.input_panel.cards["x"].sizes.fields[2]

    def test_no_input_at_all(self, qtbot, open_window, make_pair):
        window = open_window(make_pair(*CHAIN))
        trigger(qtbot, window, "debug.step")
        assert window.input_panel.question.text() == "Choose an input to run the model."
        assert window.focusWidget() is window.input_panel.cards["0"].choice

    def test_answers_are_remembered(self, qtbot, window, open_window, settings):
        path = window.session.model_path
        window.input_panel.cards["x"].sizes.fields[2].setValue(6)
        window.input_panel.cards["x"].sizes.fields[3].setValue(7)
        window.input_panel.use_sizes.click()
        window.close()
        again = open_window(path, ["random"])
        assert again.session.fed_shapes == {"x": (1, 2, 6, 7)}
        again.close()
        again = open_window(path, ["random"])  # and not for one time only
        assert again.session.fed_shapes == {"x": (1, 2, 6, 7)}
        again.input_panel.cards["x"].sizes.reset.click()
        assert not again.session.input_shapes
        again.close()
        assert not open_window(path).session.input_shapes

    def test_what_is_remembered_may_not_fit_any_more(self, window, settings, open_window):
        key = sizes_key(window.session.graph)
        path = window.session.model_path
        window.close()
        settings.setValue(key, ["nobody=3"])
        assert not open_window(path).session.input_shapes

    def test_other_sizes_than_exported_are_not_remembered(self, qtbot, open_window, make_pair):
        window = open_window(make_pair(*CHAIN), ["random"])
        window.input_panel.cards["0"].sizes.fields[2].setValue(9)
        qtbot.waitUntil(lambda: not window.session.busy)
        assert window.session.fed_shapes == {"0": (1, 2, 9, 4)}
        path = window.session.model_path
        window.close()
        assert open_window(path, ["random"]).session.fed_shapes == {"0": (1, 2, 4, 4)}

    def test_shapes_shown_are_those_computed(self, qtbot, open_window, make_pair):
        window = open_window(make_pair(*CHAIN), ["random"])
        window.input_panel.cards["0"].sizes.fields[2].setValue(9)
        qtbot.waitUntil(lambda: not window.session.busy)
        trigger(qtbot, window, "debug.continue")
        model = window.operators_panel.model
        assert model.index(1, OperatorColumn.OUTPUT).data() == "2×9×4"
        assert model.index(1, OperatorColumn.OUTPUT).data(Qt.ItemDataRole.ToolTipRole) == (
            "1: 1×2×9×4"
        )
        window.session.select("relu")
        window.properties_panel.catch_up()
        operands = window.properties_panel.operands
        shown = [operands.index(row, 2).data() for row in range(operands.rowCount())]
        assert shown == ["1×2×9×4", "1×2×9×4"]
        assert window.graph_view.canvas._state.shape("1") == "2×9×4"
        assert "1×2×9×4" in window.tensor_view.pane.model.describe()


class TestArchiveForSeveralInputs:
    """An .npz with an array for each of two inputs, in order, whatever their names are."""

    PLUS = (
        "pnnx.Input a 0 1 0 #0=(2,3)f32",
        "pnnx.Input b 0 1 1 #1=(4,2,3)f32",
        "pnnx.Expression plus 2 1 0 1 2 expr=add(@0,@1) #2=(4,2,3)f32",
        "pnnx.Output out 1 0 2",
    )

    @pytest.fixture
    def arrays(self):
        first = np.arange(6, dtype=np.float32).reshape(2, 3)
        return [first, np.arange(24, dtype=np.float32).reshape(4, 2, 3)]

    @pytest.fixture(params=[("x", "y"), ("1", "0")], ids=["in order", "by operand"])
    def archive(self, request, tmp_path, arrays):
        named = dict(zip(request.param, arrays, strict=True))
        if "0" in named:  # named by operand, in another order
            named = {"1": arrays[1], "0": arrays[0]}
        np.savez(tmp_path / "both.npz", **named)
        return tmp_path / "both.npz"

    def told(self, window):
        """What the cards say of their sources, and what is wrong with them."""
        cards = window.input_panel.cards.values()
        names = ("inputFacts", "inputError")
        told = [[card.findChild(QLabel, name).text() for name in names] for card in cards]
        return [(facts.partition("\n")[0], error) for facts, error in told]

    def check(self, qtbot, window, arrays):
        qtbot.waitUntil(lambda: window.session.state is RunState.READY, timeout=10_000)
        qtbot.waitUntil(lambda: self.told(window) == [("2×3 f32", ""), ("4×2×3 f32", "")])
        trigger(qtbot, window, "debug.continue")
        np.testing.assert_array_equal(window.session.fetch("2"), arrays[0] + arrays[1])

    def test_on_the_command_line(self, qtbot, open_window, make_pair, archive, arrays):
        self.check(qtbot, open_window(make_pair(*self.PLUS), [archive]), arrays)

    def test_dropped_on_the_window(self, qtbot, open_window, make_pair, archive, arrays):
        window = open_window(make_pair(*self.PLUS))
        drop(window, archive)
        self.check(qtbot, window, arrays)

    def test_chosen_in_each_card(self, qtbot, open_window, make_pair, archive, arrays):
        window = open_window(make_pair(*self.PLUS))
        first, second = window.input_panel.cards.values()
        first.use_file(str(archive))
        qtbot.waitUntil(lambda: self.told(window)[0] == ("2×3 f32", ""))
        second.use_file(str(archive))
        self.check(qtbot, window, arrays)
        shown = window.findChild(QPushButton, "inputChoice")
        assert shown.text() == "both.npz"  # one file, not "and 1 more"

    def test_chosen_in_one_card_beside_another_source(
        self, qtbot, open_window, make_pair, archive, arrays
    ):
        window = open_window(make_pair(*self.PLUS), ["zeros", "ones"])
        list(window.input_panel.cards.values())[1].use_file(str(archive))
        self.check(qtbot, window, [np.zeros((2, 3)), arrays[1]])
