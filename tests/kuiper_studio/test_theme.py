from __future__ import annotations

import re
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import (
    QComboBox,
    QLabel,
    QLineEdit,
    QMainWindow,
    QPushButton,
    QWidget,
)
from typing_extensions import override

from kuiper_studio.resource_paths import resources
from kuiper_studio.theme import DARK, LIGHT, TOKEN_NAMES, Scheme, Theme


@pytest.fixture
def dressed(qapp):
    theme = Theme(Scheme.DARK)
    before = qapp.palette(), qapp.font()
    theme.apply(qapp)
    yield theme
    qapp.setStyleSheet("")
    qapp.setPalette(before[0])
    qapp.setFont(before[1])


def luminance(color: str) -> float:
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


SURFACES = ("base", "panel", "window")
TEXTS = ("text", "text2", "text3", "link")
FAMILY_TOKENS = (
    "io", "conv", "lin", "act", "norm", "pool", "expr", "shape", "attn", "red", "other",
)  # fmt: skip


@pytest.mark.parametrize("tokens", [DARK, LIGHT], ids=["dark", "light"])
class TestContrast:
    @pytest.mark.parametrize("surface", SURFACES)
    @pytest.mark.parametrize("text", TEXTS)
    def test_text(self, tokens, text: str, surface: str) -> None:
        assert contrast(getattr(tokens, text), getattr(tokens, surface)) >= 4.5

    @pytest.mark.parametrize("surface", SURFACES)
    @pytest.mark.parametrize("mark", ["ctl", "focus", "cur", "fail", "done", "bp", "warn"])
    def test_marks(self, tokens, mark: str, surface: str) -> None:
        assert contrast(getattr(tokens, mark), getattr(tokens, surface)) >= 3

    @pytest.mark.parametrize("family", FAMILY_TOKENS)
    def test_families(self, tokens, family: str) -> None:
        for surface in ("base", "raised"):
            assert contrast(getattr(tokens, family), getattr(tokens, surface)) >= 4.5

    @pytest.mark.parametrize(
        ("text", "surface"),
        [
            ("selTxt", "sel"),
            ("text", "curBg"),
            ("cur", "curBg"),
            ("onCur", "cur"),
            ("text", "failBg"),
            ("text2", "failBg"),
            ("fail", "failBg"),
            ("text3", "hover"),
        ],
    )
    def test_pairs(self, tokens, text: str, surface: str) -> None:
        assert contrast(getattr(tokens, text), getattr(tokens, surface)) >= 4.5

    def test_primary_button(self, tokens) -> None:
        assert contrast("#FFFFFF", tokens.primary) >= 4.5


def test_change_is_announced_once(qapp, qtbot) -> None:
    theme = Theme(Scheme.DARK)
    heard = []
    theme.changed.connect(lambda: heard.append(theme.dark))
    theme.set_scheme(Scheme.DARK)
    assert heard == []
    theme.set_scheme(Scheme.LIGHT)
    assert heard == [False]
    assert theme.scheme is Scheme.LIGHT
    assert theme.tokens is LIGHT


def test_colour_with_opacity(qapp) -> None:
    assert Theme(Scheme.DARK).color("focus").name().upper() == DARK.focus
    assert Theme(Scheme.DARK).color("focus", 0.5).alphaF() == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("scheme", [Scheme.DARK, Scheme.LIGHT])
def test_style_sheet_is_filled_in(qapp, scheme: Scheme) -> None:
    theme = Theme(scheme)
    sheet = theme.style_sheet()
    assert "@" not in sheet
    for path in re.findall(r'url\("([^"]+)"\)', sheet):
        assert "currentColor" not in Path(path).read_text()


def test_style_sheet_names_known_tokens_only() -> None:
    source = re.sub(r"/\*.*?\*/", "", (resources() / "style.qss").read_text(), flags=re.DOTALL)
    colours = {name for name in re.findall(r"@(\w+)", source) if name != "image"}
    assert colours <= set(TOKEN_NAMES)
    icons = set(re.findall(r"@image\(([\w-]+),", source))
    assert all((resources() / "icons" / f"{name}.svg").is_file() for name in icons)


def test_unknown_token_is_an_error(qapp, tmp_path, monkeypatch) -> None:
    (tmp_path / "style.qss").write_text("QLabel { color: @nosuch; }")
    monkeypatch.setattr("kuiper_studio.theme.resources", lambda: tmp_path)
    with pytest.raises(KeyError, match="nosuch"):
        Theme(Scheme.DARK).style_sheet()


def test_opacity_in_the_style_sheet(qapp, tmp_path, monkeypatch) -> None:
    (tmp_path / "style.qss").write_text("QLabel { color: @text3/55; }")
    monkeypatch.setattr("kuiper_studio.theme.resources", lambda: tmp_path)
    # 55 % of 255 is 140; #98A3B2 is 152, 163, 178.
    assert "rgba(152, 163, 178, 140)" in Theme(Scheme.DARK).style_sheet()


def test_apply_dresses_the_application_and_follows(qapp, dressed) -> None:
    window = QPalette.ColorRole.Window
    assert qapp.palette().color(window) == QColor(DARK.window)
    assert qapp.font().family() == "Inter"
    assert DARK.focus in qapp.styleSheet()
    dressed.set_scheme(Scheme.LIGHT)
    assert qapp.palette().color(window) == QColor(LIGHT.window)
    assert LIGHT.focus in qapp.styleSheet()


def test_control_heights(qtbot, dressed) -> None:
    window = QMainWindow()
    qtbot.addWidget(window)
    bar = window.addToolBar("main")
    bar.addAction("Open")
    window.menuBar().addMenu("File")
    window.statusBar().showMessage("Ready")
    combo, box, dense = QComboBox(), QLineEdit(), QLineEdit()
    dense.setProperty("dense", True)
    for widget in (combo, box, dense, QPushButton("Go")):
        bar.addWidget(widget)
    window.resize(700, 300)
    window.show()
    assert (window.menuBar().height(), bar.height(), window.statusBar().height()) == (
        28,
        42,
        24,
    )
    assert (combo.sizeHint().height(), box.sizeHint().height()) == (26, 26)
    assert dense.sizeHint().height() == 24


def test_fonts_have_tabular_figures_and_no_ligatures(qapp, dressed) -> None:
    from PySide6.QtGui import QFontMetricsF

    ui, mono = QFontMetricsF(dressed.ui_font()), QFontMetricsF(dressed.mono_font())
    assert ui.horizontalAdvance("1111") == pytest.approx(ui.horizontalAdvance("8888"))
    assert mono.horizontalAdvance("->") == pytest.approx(2 * mono.horizontalAdvance("m"))


class _StyleChanges(QObject):
    """Counts the changes of style of the widgets that it filters."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        self.count += event.type() is QEvent.Type.StyleChange
        return False


def test_a_change_styles_nested_widgets_as_often_as_others(qtbot, qapp, dressed):
    outer = inner = QWidget()
    qtbot.addWidget(outer)
    for _ in range(8):
        inner = QLabel("a", inner)
    outer.show()
    changes = _StyleChanges()
    inner.installEventFilter(changes)
    dressed.set_scheme(Scheme.LIGHT)
    assert 1 <= changes.count <= 2
