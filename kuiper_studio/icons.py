"""Line icons from SVG files, in a colour of the theme that follows its changes."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from PySide6.QtCore import (
    QByteArray,
    QLibraryInfo,
    QPoint,
    QRect,
    QRectF,
    QSize,
    Qt,
    QVersionNumber,
)
from PySide6.QtGui import QIcon, QIconEngine, QImage, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QToolButton
from typing_extensions import override

from kuiper_studio.resource_paths import resources

if TYPE_CHECKING:
    from PySide6.QtWidgets import QLineEdit

    from kuiper_studio.theme import Theme

__all__ = ["app_icon", "icon", "mark_as_search", "pixmap", "tinted_svg"]

_DISABLED_OPACITY = 0.55
# Qt 6.8 changed the unit of QIconEngine.scaledPixmap's size to logical pixels.
_SIZE_IN_DEVICE_PIXELS = QLibraryInfo.version() < QVersionNumber(6, 8)


def icon(name: str, theme: Theme, token: str = "text2") -> QIcon:  # noqa: S107 - a colour
    """Make an icon from ``resources/icons/<name>.svg`` in a colour of the theme.

    It reads the colour each time it is painted, so it follows the theme.

    Parameters
    ----------
    name : str
    theme : Theme
    token : str
        Of the theme, or a fixed colour ``#RRGGBB``, as on a primary button.

    Raises
    ------
    FileNotFoundError
        There is no such icon.
    """
    _source(name)
    return QIcon(_TintedEngine(name, theme, token))


def mark_as_search(field: QLineEdit, theme: Theme) -> None:
    """Give a field a glass at its start and, while there is text, a button that clears it."""
    field.setClearButtonEnabled(True)
    _name_new_button(field, "Clear")
    field.addAction(icon("search", theme, "text3"), field.ActionPosition.LeadingPosition)
    _name_new_button(field, "Search")


def _name_new_button(field: QLineEdit, name: str) -> None:
    """Name the button that Qt has just put into a field, for screen readers."""
    # Not among `children`: one is of a class that PySide6 does not know. It would make every
    # class of Qt to find the nearest, which takes 15 ms.
    for button in field.findChildren(QToolButton):
        if not button.accessibleName():
            button.setAccessibleName(name)


def pixmap(name: str, theme: Theme, token: str, size: int, scale: float = 1.0) -> QPixmap:
    """Render an icon of `size` logical pixels for a device pixel ratio of `scale`."""
    return _render(name, _color(theme, token), size, size, scale)


def app_icon() -> QIcon:
    """Icon of the application's windows."""
    result = QIcon()
    svg = (resources() / "icons" / "kuiper-studio.svg").read_bytes()
    for size in (16, 24, 32, 48, 64, 128, 256):
        result.addPixmap(QPixmap.fromImage(_draw(svg, size, size)))
    return result


def tinted_svg(name: str, color: str) -> bytes:
    """Return an icon's SVG with ``currentColor`` replaced by `color` (``#RRGGBB``)."""
    return _source(name).replace(b"currentColor", color.encode())


def _color(theme: Theme, token: str) -> str:
    return token if token.startswith("#") else theme.color(token).name()


@lru_cache(maxsize=256)
def _source(name: str) -> bytes:
    return (resources() / "icons" / f"{name}.svg").read_bytes()


def _draw(svg: bytes, width: int, height: int) -> QImage:
    image = QImage(width, height, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    side = min(width, height)
    target = QRectF((width - side) / 2, (height - side) / 2, side, side)
    QSvgRenderer(QByteArray(svg)).render(painter, target)
    painter.end()
    return image


@lru_cache(maxsize=1024)
def _render(name: str, color: str, width: int, height: int, scale: float) -> QPixmap:
    image = _draw(tinted_svg(name, color), round(width * scale), round(height * scale))
    result = QPixmap.fromImage(image)
    result.setDevicePixelRatio(scale)
    return result


class _TintedEngine(QIconEngine):
    """Paints one SVG in the current colour of a token."""

    def __init__(self, name: str, theme: Theme, token: str) -> None:
        super().__init__()
        self._name = name
        self._theme = theme
        self._token = token

    def _pixmap(self, size: QSize, mode: QIcon.Mode, scale: float) -> QPixmap:
        color = _color(self._theme, self._token)
        solid = _render(self._name, color, size.width(), size.height(), scale)
        if mode is not QIcon.Mode.Disabled:
            return solid
        faded = QPixmap(solid.size())
        faded.setDevicePixelRatio(solid.devicePixelRatio())
        faded.fill(Qt.GlobalColor.transparent)
        painter = QPainter(faded)
        painter.setOpacity(_DISABLED_OPACITY)
        painter.drawPixmap(QPoint(0, 0), solid)
        painter.end()
        return faded

    # Overrides of Qt methods

    @override
    def paint(
        self, painter: QPainter, rect: QRect, mode: QIcon.Mode, state: QIcon.State
    ) -> None:
        scale = painter.device().devicePixelRatioF()
        painter.drawPixmap(rect, self._pixmap(rect.size(), mode, scale))

    @override
    def pixmap(self, size: QSize, mode: QIcon.Mode, state: QIcon.State) -> QPixmap:
        return self._pixmap(size, mode, 1.0)

    @override
    def scaledPixmap(
        self, size: QSize, mode: QIcon.Mode, state: QIcon.State, scale: float
    ) -> QPixmap:
        if _SIZE_IN_DEVICE_PIXELS:
            size = size / scale
        return self._pixmap(size, mode, scale)

    @override
    def clone(self) -> QIconEngine:
        return _TintedEngine(self._name, self._theme, self._token)

    @override
    def isNull(self) -> bool:
        return False
