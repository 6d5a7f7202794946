from __future__ import annotations

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPushButton

from kuiper_studio.panels.failure_banner import FailureBanner
from kuiper_studio.panels.message_banner import MessageBanner, mark_differences
from kuiper_studio.session import Failure


def bold(text: str) -> str:
    return f'<b style="color:red">{text}</b>'


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("6 is 1×64×54×54, 3 is 1×64×56×56.", ["54", "54", "56", "56"]),
        ("1×3×8 and 1×3×8", []),
        ("1×3×8 and 4×4", []),
        ("no shapes, but 3 numbers", []),
        ("2×3 and 2×4 and 5×3×1", ["3", "4"]),
    ],
)
def test_differing_dimensions_are_marked(text: str, marked: list[str]) -> None:
    shown = mark_differences(text, "red")
    assert shown.count("<b ") == len(marked)
    for dim in marked:
        assert bold(dim) in shown


def test_markup_in_a_message_is_text() -> None:
    assert "&lt;b&gt;" in mark_differences("operand <b> is 1×2, not 1×3", "red")


@pytest.fixture
def failed(open_model, failing, settle):
    session = open_model(failing)
    session.resume()
    settle(session)
    return session


@pytest.fixture
def banner(qtbot, failed, theme) -> FailureBanner:
    made = FailureBanner(failed, theme)
    qtbot.addWidget(made)
    made.show_failure(failed.failure)
    return made


def button(banner, text: str) -> QPushButton:
    return next(b for b in banner.findChildren(QPushButton) if b.text().startswith(text))


def test_what_failed_and_where_to_look(banner) -> None:
    lines = banner.plain_text().splitlines()
    assert lines[0] == "sum failed (pnnx.Expression, operator #2)"
    assert "1×3×6×6" in lines[1]
    assert "conv" in lines[2]
    assert banner.concerns_operator
    assert not banner.isHidden()


def test_buttons_lead_to_suspect_and_failed(banner, failed) -> None:
    button(banner, "Go to conv").click()
    assert failed.selected == "conv"
    button(banner, "Go to sum").click()
    assert failed.selected == "sum"


def test_details_are_copied(banner) -> None:
    button(banner, "Copy details").click()
    text = QGuiApplication.clipboard().text()
    assert "sum failed" in text
    assert "expr = 'add(@0,@1)'" in text
    assert "input 1: 1×3×6×6, exported as 1×3×8×8" in text


def test_closing_dismisses(banner, failed) -> None:
    banner.closed.emit()
    assert banner.isHidden()
    assert failed.failure is None
    assert not banner.concerns_operator


def test_failure_without_operator(banner) -> None:
    banner.show_failure(Failure("The input cannot be used", "x.npy is cut short"))
    assert button(banner, "Go to").isHidden()
    assert not banner.concerns_operator
    assert banner.plain_text() == "The input cannot be used\nx.npy is cut short"


def test_plain_message(qtbot, theme) -> None:
    banner = MessageBanner(theme)
    qtbot.addWidget(banner)
    assert banner.isHidden()
    banner.show_message("Title", "Reason", "Hint")
    assert banner.accessibleName() == "Title\nReason\nHint"
    banner.clear()
    assert banner.isHidden()
