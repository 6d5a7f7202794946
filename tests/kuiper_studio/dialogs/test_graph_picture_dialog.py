"""The dialog that asks how to draw the graph."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QLabel

from kuiper_studio.dialogs.graph_picture_dialog import GraphPictureDialog


@pytest.fixture
def make(qtbot):
    def made(**chosen: str) -> GraphPictureDialog:
        dialog = GraphPictureDialog(chosen)
        qtbot.addWidget(dialog)
        return dialog

    return made


def choose_size(dialog: GraphPictureDialog, kind: str, amount: str) -> None:
    dialog.sizes.setCurrentIndex(dialog.sizes.findData(kind))
    dialog.amount.setText(amount)


def error(dialog: GraphPictureDialog) -> str:
    return dialog.findChild(QLabel, "graphPictureError").text().strip()


def test_at_first_everything_is_shown_in_the_usual_size(make):
    dialog = make()
    assert dialog.choice == {
        "format": "svg", "size": "usual", "amount": "", "colors": "", "states": "true",
        "thumbnails": "true", "overlay": "true",
    }  # fmt: skip
    assert (dialog.scale, dialog.width_in_pixels) == (None, None)
    assert not dialog.amount.isEnabled()
    assert dialog.amount.isHidden()  # no empty box beside "Usual"


def test_sizes(make):
    dialog = make()
    choose_size(dialog, "scale", "150")
    assert (dialog.scale, dialog.width_in_pixels) == (1.5, None)
    choose_size(dialog, "width", "60000")
    assert (dialog.scale, dialog.width_in_pixels) == (None, 60_000)


@pytest.mark.parametrize(
    ("kind", "amount"),
    [("scale", "0"), ("scale", "10001"), ("width", ""), ("width", "1e3"), ("width", "-5"),
     ("width", "9" * 5000)],
)  # fmt: skip
def test_unusable_sizes_are_told(make, kind, amount):
    dialog = make()
    choose_size(dialog, kind, amount)
    assert error(dialog).startswith(f"The {kind} is a number from 1 to")
    assert not dialog.ok.isEnabled()
    choose_size(dialog, kind, "100")
    assert dialog.ok.isEnabled()


def test_the_last_choice_is_offered_again(make):
    dialog = make()
    choose_size(dialog, "width", "900")
    dialog.parts["states"].setChecked(False)
    dialog.colors.setCurrentText("Light, for paper")
    assert make(**dialog.choice).choice == dialog.choice


def test_a_damaged_choice_is_the_first_one(make):
    assert make(format="gif", size="?", colors="red").choice == make().choice
