from __future__ import annotations

import gc

import pytest
from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QColor, QIcon, QImage, QPainter

from kuiper_studio.icons import app_icon, icon, pixmap, tinted_svg
from kuiper_studio.theme import DARK, LIGHT, Scheme, Theme


def ink(image: QImage) -> set[str]:
    """Colours of the opaque pixels."""
    return {
        image.pixelColor(x, y).name().upper()
        for x in range(image.width())
        for y in range(image.height())
        if image.pixelColor(x, y).alpha() == 255
    }


@pytest.fixture
def theme(qapp) -> Theme:
    return Theme(Scheme.DARK)


def test_icon_has_the_colour_of_the_token(theme) -> None:
    image = icon("stop", theme, "fail").pixmap(QSize(64, 64), 1.0).toImage()
    assert ink(image) == {DARK.fail}


def test_icon_follows_the_theme(theme) -> None:
    stop = icon("stop", theme, "text")
    theme.set_scheme(Scheme.LIGHT)
    assert ink(stop.pixmap(QSize(64, 64), 1.0).toImage()) == {LIGHT.text}


def test_fixed_colour(theme) -> None:
    image = icon("breakpoint", theme, "#FFFFFF").pixmap(QSize(32, 32), 1.0).toImage()
    assert ink(image) == {"#FFFFFF"}


def test_disabled_icon_is_faded(theme) -> None:
    image = icon("breakpoint", theme).pixmap(QSize(32, 32), 1.0, QIcon.Mode.Disabled).toImage()
    assert image.pixelColor(16, 16).alpha() == pytest.approx(0.55 * 255, abs=2)


@pytest.mark.parametrize("scale", [1.0, 1.5, 2.0])
def test_icon_is_sharp_at_any_scale(theme, scale: float) -> None:
    drawn = icon("play", theme).pixmap(QSize(18, 18), scale)
    assert drawn.size() == QSize(18, 18) * scale
    assert drawn.devicePixelRatio() == scale


def test_icon_is_painted_inside_its_rectangle(theme) -> None:
    image = QImage(40, 40, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(QColor("black"))
    painter = QPainter(image)
    icon("breakpoint", theme, "#FFFFFF").paint(painter, 10, 10, 20, 20, Qt.AlignCenter)
    painter.end()
    assert image.pixelColor(20, 20) == QColor("white")
    assert image.pixelColor(4, 4) == image.pixelColor(35, 35) == QColor("black")


def test_icons_survive_copies_and_collection(theme) -> None:
    first = icon("open", theme)
    second = QIcon(first)
    del first
    gc.collect()
    assert not second.isNull()
    assert not second.pixmap(18, 18).isNull()


def test_unknown_icon(theme) -> None:
    with pytest.raises(FileNotFoundError):
        icon("no-such-icon", theme)


def test_pixmap_and_svg(theme) -> None:
    assert pixmap("check", theme, "done", 15, 2.0).width() == 30
    assert b"currentColor" not in tinted_svg("check", "#102030")
    assert b"#102030" in tinted_svg("check", "#102030")


def test_app_icon(qapp) -> None:
    assert {size.width() for size in app_icon().availableSizes()} >= {16, 32, 64, 256}
