"""Colours, fonts and spacing of the window, for both themes.

Views get every colour and font from `Theme`; painted canvases read its tokens and repaint on
`Theme.changed`. `Theme.apply` sets the application's style, palette, fonts and style sheet,
and again whenever the theme changes. Contrast ratios are 4.5:1 for text, and 3:1 for marks and
borders of controls.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Qt, QTemporaryDir, Signal
from PySide6.QtGui import QColor, QFont, QGuiApplication, QPalette

from kuiper_studio.resource_paths import load_fonts, resources

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication, QWidget

__all__ = ["DARK", "LIGHT", "TOKEN_NAMES", "Scheme", "Theme", "Tokens", "restyle"]


class Scheme(Enum):
    """The user's choice of theme."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


@dataclass(frozen=True, slots=True)
class Tokens:
    """One theme's colours as ``#RRGGBB``."""

    window: str
    panel: str
    base: str
    raised: str
    hover: str
    line: str
    sel: str
    selTxt: str  # noqa: N815
    curBg: str  # noqa: N815
    failBg: str  # noqa: N815
    text: str
    text2: str
    text3: str
    link: str
    focus: str
    ctl: str
    primary: str
    cur: str
    onCur: str  # noqa: N815
    done: str
    bp: str
    edit: str
    fail: str
    unsup: str
    nan: str
    pinf: str
    ninf: str
    div: str
    warn: str
    io: str
    conv: str
    lin: str
    act: str
    norm: str
    pool: str
    expr: str
    shape: str
    attn: str
    red: str
    other: str


DARK: Final = Tokens(
    window="#1A1D23", panel="#20242B", base="#16191E", raised="#2A2F38", hover="#303641",
    line="#333A45", sel="#1F4A82", selTxt="#FFFFFF", curBg="#3A2F17", failBg="#3B2022",
    text="#E6EAF0", text2="#B1BAC7", text3="#98A3B2", link="#7DB8FF", focus="#5CA8FF",
    ctl="#7A8597", primary="#2F6FC4", cur="#FFC24A", onCur="#16191E", done="#58C08A",
    bp="#FF6B61", edit="#D79BFF", fail="#FF7A70", unsup="#C7A07A", nan="#FF6AD5",
    pinf="#FF9F40", ninf="#58B7FF", div="#E8C547", warn="#F0B04A",
    io="#A7B0BD", conv="#5CA8FF", lin="#4FC3D9", act="#FF8A5B", norm="#45C49A",
    pool="#E08FC4", expr="#E3CF57", shape="#B7A6FF", attn="#FF9DB0", red="#A8CF6B",
    other="#A7B0BD",
)  # fmt: skip

LIGHT: Final = Tokens(
    window="#EDEFF2", panel="#F8F9FA", base="#FFFFFF", raised="#FFFFFF", hover="#E6EAEF",
    line="#D3D8DF", sel="#CFE3FC", selTxt="#1A1F27", curBg="#FFF1D6", failBg="#FDECEA",
    text="#1A1F27", text2="#434C5A", text3="#576170", link="#0B57BD", focus="#0F62D0",
    ctl="#77818F", primary="#0F62D0", cur="#985400", onCur="#FFFFFF", done="#187A48",
    bp="#C92A22", edit="#8A35C9", fail="#BE1E17", unsup="#7E5526", nan="#B3008A",
    pinf="#B35300", ninf="#0062B8", div="#7A6200", warn="#8F5600",
    io="#5D6774", conv="#0B62C4", lin="#00728A", act="#B8430E", norm="#00764F",
    pool="#A6307C", expr="#766000", shape="#5B44C2", attn="#B32B50", red="#4C6E10",
    other="#5D6774",
)  # fmt: skip

_MONO: Final = "JetBrains Mono"
_families: Final = {"mono": _MONO}

TOKEN_NAMES: Final = tuple(field.name for field in fields(Tokens))


_COLOR: Final = re.compile(r"@(?P<token>[A-Za-z]\w*)(?:/(?P<percent>\d+))?")
_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)
_IMAGE: Final = re.compile(r"@image\((?P<icon>[\w-]+),(?P<token>\w+)\)")


def _value(tokens: Tokens, name: str) -> str:
    if name not in TOKEN_NAMES:
        raise KeyError(name)
    return str(getattr(tokens, name))


@lru_cache(maxsize=256)
def _color(value: str) -> QColor:
    return QColor(value)


class Theme(QObject):
    """The current theme.

    Signals
    -------
    changed
        The tokens have changed; repaint.
    """

    changed = Signal()

    def __init__(self, scheme: Scheme = Scheme.SYSTEM, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._scheme = scheme
        self._tokens = self._resolve()
        self._app: QApplication | None = None
        self._prepared: QApplication | None = None
        self._images = QTemporaryDir()
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._on_system_changed)

    @property
    def scheme(self) -> Scheme:
        """The user's choice."""
        return self._scheme

    @property
    def tokens(self) -> Tokens:
        """The current colours."""
        return self._tokens

    @property
    def dark(self) -> bool:
        """Whether the dark tokens are in use."""
        return self._tokens is DARK

    def set_scheme(self, scheme: Scheme) -> None:
        """Choose a theme; emits only changes."""
        self._scheme = scheme
        self._refresh()

    def prepare(self, app: QApplication) -> None:
        """Set what widgets measure by: the Fusion style, palette and fonts."""
        load_fonts()
        app.setStyle("Fusion")
        app.setFont(self.ui_font())
        app.setPalette(self.palette())
        self._prepared = app

    def apply(self, app: QApplication) -> None:
        """Set style, palette, fonts and style sheet of the application, now and on changes.

        Creating widgets takes half the time after `prepare` and before this: with a style sheet
        Qt looks up the style of each again whenever its parent changes.
        """
        if self._prepared is not app:
            self.prepare(app)
        self._app = app
        app.setStyleSheet(self.style_sheet())

    def style_sheet(self) -> str:
        """Return ``resources/style.qss`` with colours and icons of the current tokens.

        Raises
        ------
        KeyError
            If the style sheet names an unknown token.
        """
        text = (resources() / "style.qss").read_text(encoding="utf-8")
        text = _IMAGE.sub(self._image_url, _COMMENT.sub("", text))
        return _COLOR.sub(self._css_color, text)

    def color(self, token: str, alpha: float = 1.0) -> QColor:
        """Return the colour of a token; `alpha` from 0 to 1."""
        value = QColor(_color(getattr(self._tokens, token)))
        if alpha < 1.0:
            value.setAlphaF(alpha)
        return value

    @staticmethod
    def ui_font(pixels: float = 12, weight: int = 400) -> QFont:
        """Return the proportional font at a size in logical pixels."""
        return _font("Inter", QFont.StyleHint.SansSerif, pixels, weight)

    @staticmethod
    def mono_font(pixels: float = 11, weight: int = 400) -> QFont:
        """Return the monospaced font for numbers, names and shapes, in logical pixels."""
        return _font(_families["mono"], QFont.StyleHint.Monospace, pixels, weight)

    @staticmethod
    def set_mono_family(family: str) -> None:
        """Choose the family of `mono_font`, before widgets are made; ``""`` for the usual."""
        _families["mono"] = family or _MONO

    def palette(self) -> QPalette:
        """Palette for the Fusion style."""
        palette = QPalette()
        roles = {
            QPalette.ColorRole.Window: "window", QPalette.ColorRole.WindowText: "text",
            QPalette.ColorRole.Base: "base", QPalette.ColorRole.AlternateBase: "panel",
            QPalette.ColorRole.Text: "text", QPalette.ColorRole.Button: "raised",
            QPalette.ColorRole.ButtonText: "text", QPalette.ColorRole.BrightText: "fail",
            QPalette.ColorRole.ToolTipBase: "raised", QPalette.ColorRole.ToolTipText: "text",
            QPalette.ColorRole.PlaceholderText: "text3", QPalette.ColorRole.Link: "link",
            QPalette.ColorRole.LinkVisited: "link", QPalette.ColorRole.Highlight: "sel",
            QPalette.ColorRole.HighlightedText: "selTxt", QPalette.ColorRole.Midlight: "hover",
            QPalette.ColorRole.Mid: "line", QPalette.ColorRole.Dark: "ctl",
            QPalette.ColorRole.Light: "hover", QPalette.ColorRole.Shadow: "line",
            QPalette.ColorRole.Accent: "focus",
        }  # fmt: skip
        for role, token in roles.items():
            palette.setColor(role, self.color(token))
        faded = self.color("text3", 0.55)
        for role in (
            QPalette.ColorRole.WindowText,
            QPalette.ColorRole.Text,
            QPalette.ColorRole.ButtonText,
        ):
            palette.setColor(QPalette.ColorGroup.Disabled, role, faded)
        return palette

    def _resolve(self) -> Tokens:
        if self._scheme is Scheme.SYSTEM:
            system = QGuiApplication.styleHints().colorScheme()
            return DARK if system is Qt.ColorScheme.Dark else LIGHT
        return DARK if self._scheme is Scheme.DARK else LIGHT

    def _refresh(self) -> None:
        tokens = self._resolve()
        if tokens is not self._tokens:
            self._tokens = tokens
            self._dress()
            self.changed.emit()

    def _dress(self) -> None:
        if self._app is not None:
            self._app.setPalette(self.palette())
            # When a style sheet replaces another, Qt polishes each widget for itself and again
            # for each of its ancestors; removing one and setting one polish it once each, which
            # takes a third of the time.
            self._app.setStyleSheet("")
            self._app.setStyleSheet(self.style_sheet())

    def _css_color(self, match: re.Match[str]) -> str:
        value = _value(self._tokens, match["token"])
        if match["percent"] is None:
            return value
        color = QColor(value)
        alpha = round(int(match["percent"]) * 2.55)
        return f"rgba({color.red()}, {color.green()}, {color.blue()}, {alpha})"

    def _image_url(self, match: re.Match[str]) -> str:
        # Style sheets read images from files only, so a tinted copy is in a temporary folder
        # as long as the theme exists. The colour is in the name because Qt caches.
        color = _value(self._tokens, match["token"])
        path = Path(self._images.filePath(f"{match['icon']}-{color[1:]}.svg"))
        if not path.exists():
            svg = (resources() / "icons" / f"{match['icon']}.svg").read_text(encoding="utf-8")
            path.write_text(svg.replace("currentColor", color), encoding="utf-8")
        return f'url("{path.as_posix()}")'

    def _on_system_changed(self, _scheme: Qt.ColorScheme) -> None:
        self._refresh()


def restyle(widget: QWidget, style_sheet: str) -> None:
    """Set a widget's style sheet if it changes: setting it makes Qt lay it out again."""
    if widget.styleSheet() != style_sheet:
        widget.setStyleSheet(style_sheet)


def _font(family: str, hint: QFont.StyleHint, pixels: float, weight: int) -> QFont:
    # A copy may be changed, and shares what Qt has looked up for the font.
    return QFont(_made_font(family, hint, pixels, weight))


@lru_cache(maxsize=256)
def _made_font(family: str, hint: QFont.StyleHint, pixels: float, weight: int) -> QFont:
    font = QFont(family)
    font.setStyleHint(hint)
    font.setPixelSize(max(1, round(pixels)))
    font.setWeight(QFont.Weight(weight))
    # Tabular figures, and no ligatures: "->" in a name is two characters.
    for tag, on in (("tnum", 1), ("calt", 0), ("liga", 0)):
        font.setFeature(QFont.Tag(tag), on)
    return font
