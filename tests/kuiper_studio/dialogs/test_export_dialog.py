"""The export dialog: what it asks, refuses, and hands on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtWidgets import QDialog, QFileDialog, QLabel, QPushButton

from engine.dump import DumpOptions, write_dump
from engine.inputs import InputSource
from engine.session import Session
from kuiper_studio.dialogs.export_dialog import ExportDialog
from kuiper_studio.session import StudioSession
from kuiper_studio.theme import Scheme, Theme

# f32 arrays of 256 bytes; the split gives two of 128, and the linear layer weighs 256.
NET = (
    "pnnx.Input in 0 1 0 #0=(8,8)f32",
    "nn.ReLU a&b 1 1 0 1",
    "torch.chunk halves 1 1 1 2 chunks=2 dim=0",
    "nn.Linear fc 1 1 1 3 bias=False in_features=8 out_features=8 @weight=(8,8)f32",
    "pnnx.Output out 1 0 3",
)


@pytest.fixture
def session(qapp):
    made = StudioSession()
    yield made
    made.close()


@pytest.fixture(params=[Scheme.DARK, Scheme.LIGHT], ids=["dark", "light"])
def theme(request, qapp):
    return Theme(request.param)


@pytest.fixture
def opened(qtbot, session, make_pair):
    """A session with two operators run: the input and the ReLU."""
    open_model(qtbot, session, make_pair(*NET, weights={"fc.weight": np.ones((8, 8), "f4")}))
    session.run_to("halves")
    qtbot.waitUntil(lambda: session.position == 2 and not session.busy)
    session.select("a&b")
    return session


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "dumps"
    place.mkdir()
    return place


@pytest.fixture
def dialog(qtbot, opened, theme, folder):
    made = ExportDialog(opened, theme, str(folder))
    qtbot.addWidget(made)
    made.show()
    return made


def open_model(qtbot, session, path):
    session.next_model.set_sources([InputSource("array", array=np.ones((8, 8), "f4"))])
    session.open(path)
    qtbot.waitUntil(lambda: session.graph is not None and not session.busy)


def text(dialog, name):
    return dialog.findChild(QLabel, name).text()


def size(dialog):
    return text(dialog, "exportSize")


def error(dialog):
    """What is told to be wrong; the button agrees with it."""
    told = text(dialog, "exportError")
    assert dialog.export_button.isEnabled() == (not told)
    assert dialog.export_button.toolTip() == told
    return told


def test_proposes_a_folder(dialog, folder):
    assert dialog.destination.text() == str(folder / "m_dump")
    assert dialog.options() == DumpOptions()
    assert dialog.all_operators.text() == "All 5 operators"
    assert dialog.selected_operator.text() == "Only the selected one, a&&b"
    assert error(dialog) == ""
    assert size(dialog) == "2 arrays, 512 B · 2 operators have no value yet"


def test_accept_hands_on_the_request(dialog, folder):
    dialog.formats["npz"].click()
    dialog.selected_operator.click()
    dialog.inputs.click()
    dialog.weights.click()
    dialog.export_button.click()
    assert dialog.result() == QDialog.DialogCode.Accepted
    path, options = dialog.request
    assert path == folder / "m_dump.npz"
    assert options == DumpOptions(
        "npz", ("1",), inputs=False, outputs=True, weights=True, sha256=False
    )


def test_cancel_hands_on_nothing(dialog):
    cancel = [b for b in dialog.findChildren(QPushButton) if b.text() == "Cancel"]
    cancel[0].click()
    assert dialog.request is None


def test_request_is_what_the_session_writes(qtbot, opened, dialog, folder):
    dialog.export_button.click()
    opened.export_dump(*dialog.request)
    qtbot.waitUntil(lambda: not opened.busy)
    written = {path.name for path in (folder / "m_dump").rglob("*.npy")}
    assert written == {"000__0.npy", "001_nn.ReLU__1.npy"}


def test_size_counts_members_and_weights(qtbot, opened, dialog):
    opened.resume()
    qtbot.waitUntil(lambda: opened.position == 5 and not opened.busy)
    assert size(dialog) == "5 arrays, 1.0 kB"  # two of them halves
    dialog.weights.click()
    assert size(dialog) == "6 arrays, 1.3 kB"
    dialog.formats["png"].click()
    assert size(dialog) == "6 pictures"
    dialog.formats["folder"].click()
    dialog.statistics_only.click()
    assert size(dialog) == "6 rows"


def test_sha256_is_written_where_ticked(dialog):
    assert not dialog.options().sha256
    dialog.sha256.click()
    assert dialog.options().sha256
    dialog.formats["npz"].click()  # which holds arrays alone
    assert not dialog.sha256.isEnabled()
    assert not dialog.options().sha256


@pytest.mark.parametrize(
    ("typed", "matches", "told"),
    [
        pytest.param("nn.*", "2 operators", "", id="type"),
        pytest.param("0, halves", "2 operators", "", id="index-and-name"),
        pytest.param("a*", "1 operator", "", id="one"),
        pytest.param("", "", "Name at least one operator, type or index.", id="none"),
        pytest.param("halve", "", "No operator matches halve: did you mean halves?", id="near"),
        pytest.param("0 zzz", "", "No operator matches zzz.", id="unknown"),
    ],
)
def test_patterns(dialog, typed, matches, told):
    dialog.named_operators.click()
    dialog.patterns.setText(typed)
    assert text(dialog, "exportMatches") == matches
    assert error(dialog) == told


def test_typing_patterns_chooses_them(qtbot, dialog):
    qtbot.keyClicks(dialog.patterns, "1")
    assert dialog.named_operators.isChecked()
    assert dialog.options().operators == ("1",)
    assert size(dialog) == "2 arrays, 512 B"


def test_nothing_selected(qtbot, session, theme, folder, make_pair):
    open_model(qtbot, session, make_pair(*NET, weights={"fc.weight": np.ones((8, 8), "f4")}))
    session.select("")
    made = ExportDialog(session, theme, str(folder))
    qtbot.addWidget(made)
    assert not made.selected_operator.isEnabled()
    assert made.selected_operator.text() == "Only the selected one, none"
    assert error(made).startswith("No chosen operator has a value. Run the model")
    made.weights.click()
    assert error(made) == ""
    assert size(made).startswith("1 array, 256 B · 4 operators have no value yet")


def test_nothing_chosen(dialog):
    dialog.inputs.click()
    dialog.outputs.click()
    assert error(dialog) == "Choose inputs, outputs or weights."


class TestDestination:
    def test_must_be_named_and_lie_in_a_folder(self, dialog, folder):
        dialog.destination.setText("  ")
        assert error(dialog) == "Choose where to write the dump."
        dialog.destination.setText(str(folder / "none" / "x"))
        assert error(dialog).startswith(f"{folder / 'none'} is not a folder; create it")

    def test_earlier_dump_may_be_replaced(self, qtbot, opened, dialog, folder):
        engine_session = Session(opened.graph)
        engine_session.feed([np.ones((8, 8), "f4")])
        write_dump(engine_session, folder / "old")
        assert not dialog.overwrite.isVisible()
        dialog.destination.setText(str(folder / "old"))
        assert dialog.overwrite.isVisible()
        assert "already has a dump" in error(dialog)
        dialog.overwrite.click()
        assert error(dialog) == ""
        assert dialog.options().overwrite
        dialog.destination.setText(str(folder / "new"))
        assert not dialog.overwrite.isVisible()
        assert not dialog.options().overwrite

    def test_other_folder_is_never_replaced(self, dialog, folder):
        (folder / "photos").mkdir()
        (folder / "photos" / "cat.jpg").touch()
        dialog.destination.setText(str(folder / "photos"))
        assert not dialog.overwrite.isVisible()
        assert "is not a dump; choose a new folder" in error(dialog)

    def test_model_is_never_replaced(self, opened, dialog):
        dialog.formats["npz"].click()
        dialog.destination.setText(str(opened.model_path))
        assert not dialog.overwrite.isVisible()
        assert "is the model itself" in error(dialog)

    def test_place_that_cannot_be_looked_at(self, dialog, folder, monkeypatch):
        def refuse(*_):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("kuiper_studio.dialogs.export_dialog.check_destination", refuse)
        dialog.destination.setText(str(folder / "secret"))
        assert error(dialog).startswith(f"{folder / 'secret'} cannot be read: ")

    def test_home_is_meant_by_a_tilde(self, dialog, folder, monkeypatch):
        monkeypatch.setenv("HOME", str(folder))
        monkeypatch.setenv("USERPROFILE", str(folder))
        dialog.destination.setText("~/mine")
        dialog.export_button.click()
        assert dialog.request[0] == folder / "mine"

    def test_follows_the_format(self, dialog, folder):
        dialog.formats["safetensors"].click()
        assert dialog.destination.text() == str(folder / "m_dump.safetensors")
        assert not dialog.statistics_only.isEnabled()
        dialog.formats["png"].click()
        assert dialog.destination.text() == str(folder / "m_pictures")

    def test_own_name_is_kept(self, dialog, folder):
        dialog.destination.setText(str(folder / "mine"))
        dialog.formats["npz"].click()
        assert dialog.destination.text() == str(folder / "mine.npz")
        dialog.formats["safetensors"].click()
        assert dialog.destination.text() == str(folder / "mine.safetensors")
        dialog.formats["folder"].click()
        assert dialog.destination.text() == str(folder / "mine")
        dialog.destination.setText("")
        dialog.formats["npz"].click()
        assert dialog.destination.text() == ""

    def test_proposed_name_is_a_new_one(self, qtbot, opened, theme, folder):
        (folder / "m_dump").mkdir()
        (folder / "m_dump_2").mkdir()
        made = ExportDialog(opened, theme, str(folder))
        qtbot.addWidget(made)
        assert made.destination.text() == str(folder / "m_dump_3")

    def test_home_where_the_last_folder_is_gone(self, qtbot, opened, theme, folder):
        made = ExportDialog(opened, theme, str(folder / "gone"))
        qtbot.addWidget(made)
        assert Path(made.destination.text()).parent == Path.home()

    @pytest.mark.parametrize(
        ("kind", "answer", "expected"),
        [
            pytest.param("folder", "there", "there", id="folder"),
            pytest.param("npz", "there", "there.npz", id="suffix-added"),
            pytest.param("npz", "there.npz", "there.npz", id="suffix-kept"),
            pytest.param("npz", "", "m_dump.npz", id="cancelled"),
        ],
    )
    def test_browse(self, dialog, folder, monkeypatch, kind, answer, expected):
        chosen = str(folder / answer) if answer else ""
        monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_, **__: (chosen, ""))
        dialog.formats[kind].click()
        browse = [b for b in dialog.findChildren(QPushButton) if b.text() == "Browse…"]
        browse[0].click()
        assert dialog.destination.text() == str(folder / expected)


def test_waits_for_a_run(qtbot, session, theme, folder, make_pair, gate):
    lines = (
        "pnnx.Input in 0 1 0 #0=(8,8)f32",
        "test.Gate slow 1 1 0 1",
        "pnnx.Output out 1 0 1",
    )
    open_model(qtbot, session, make_pair(*lines))
    gate.close()
    session.resume()
    made = ExportDialog(session, theme, str(folder))
    qtbot.addWidget(made)
    assert error(made).startswith("The model is running")
    gate.open()
    qtbot.waitUntil(lambda: not session.busy)
    assert error(made) == ""
    assert size(made) == "2 arrays, 512 B"
