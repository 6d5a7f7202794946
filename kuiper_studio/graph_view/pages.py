"""Writes a painted scene as SVG, PNG or PDF, of any size in bounded memory."""

from __future__ import annotations

import math
import re
import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QBuffer, QIODevice, QMarginsF, QPointF, QRectF, QSize, QSizeF
from PySide6.QtGui import QImage, QPageLayout, QPageSize, QPainter, QPdfWriter
from PySide6.QtSvg import QSvgGenerator

from engine.atomic import format_os_error, write_file, written_beside
from engine.errors import ExportError
from engine.text import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

    from kuiper_studio.graph_view.painter import ScenePainter
    from kuiper_studio.theme import Theme

__all__ = ["PICTURE_FORMS", "Page", "Rendered", "Size", "write_data", "write_page"]

_CSS_DPI: Final = 96  # dots per inch at which browsers show a pixel as a pixel
_POINTS: Final = 72 / _CSS_DPI
_LONGEST_PAGE: Final = 14_400.0  # points: the most that readers of PDF show
_PNG_SCALE: Final = 2.0
# A PNG whose size nobody chose is one that every viewer opens.
_USUAL_SIDE: Final = 16_384
_USUAL_PIXELS: Final = 100_000_000
# One whose size was chosen is limited by time: a thousand million pixels take a minute.
_MOST_SIDE: Final = 1_000_000
_MOST_PIXELS: Final = 4_000_000_000
_STRIP_BYTES: Final = 32 * 1024 * 1024
_MOST_ROWS: Final = 512
_TILE: Final = 16_384  # pixels across; Qt paints up to 32 767
_PNG_HEAD: Final = b"\x89PNG\r\n\x1a\n"
_UP: Final = 2  # PNG's filter by which equal rows become zeros
# Control characters and non-characters in UTF-8, which Qt does not escape.
_NOT_IN_XML: Final = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]")
# The window brings its fonts along, an SVG does not: browsers would take a serif font.
_SVG_FAMILY: Final = re.compile(rb'(?<= font-family="|\nfont-family=")[^"]*')
_OTHER_SANS: Final = "Arial, Helvetica, sans-serif"
_OTHER_MONO: Final = "DejaVu Sans Mono, Menlo, Consolas, monospace"


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a picture: one of both, or what is usual for the format.

    Attributes
    ----------
    scale : float or None
        Pixels per unit of the drawing.
    width : int or None
        In pixels.
    """

    scale: float | None = None
    width: int | None = None

    def scale_of(self, area: QRectF) -> float | None:
        """Return the pixels per unit for a part of the scene; None for what is usual."""
        return self.width / area.width() if self.width is not None else self.scale


@dataclass(frozen=True, slots=True)
class Rendered:
    """A written picture.

    Attributes
    ----------
    path : Path
    width, height : int
        In pixels.
    scale : float
        Pixels per unit of the drawing.
    note : str
        Message for the user, e.g. that a PNG had to be made smaller; or ``""``.
    """

    path: Path
    width: int
    height: int
    scale: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """A scene to be written.

    Attributes
    ----------
    painter : ScenePainter
    theme : Theme
    area : QRectF
        Part of the scene.
    size : Size
    """

    painter: ScenePainter
    theme: Theme
    area: QRectF
    size: Size

    def paint(self, target: QPainter, area: QRectF, scale: float) -> None:
        """Paint a part of the scene at the target's origin."""
        target.fillRect(QRectF(QPointF(0, 0), area.size() * scale), self.theme.color("base"))
        self.painter.paint(target, area, scale, keep=False)


def write_page(page: Page, path: Path, form: str) -> Rendered:
    """Write a scene to a file, whole or not at all.

    Parameters
    ----------
    page : Page
    path : Path
        An existing file is replaced.
    form : str
        One of `PICTURE_FORMS`.

    Raises
    ------
    ExportError
        If the file cannot be written, or would have more pixels than is sensible.
    """
    return _WRITERS[form](page, path)


def write_data(path: Path, data: bytes) -> None:
    """Write a file, whole or not at all; raises `ExportError`."""
    try:
        write_file(path, data)
    except OSError as exc:
        raise _cannot_write(path, exc) from exc


def _cannot_write(path: Path, error: OSError) -> ExportError:
    return ExportError(f"{path} cannot be written: {format_os_error(error)}")


# Vector graphics


def _write_svg(page: Page, path: Path) -> Rendered:
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    generator = QSvgGenerator()
    generator.setOutputDevice(buffer)
    scale = page.size.scale_of(page.area) or 1.0
    drawn, shown = _pixels(page.area, 1.0), _pixels(page.area, scale)
    generator.setResolution(_CSS_DPI)
    generator.setSize(shown)
    generator.setViewBox(QRectF(QPointF(0, 0), QSizeF(drawn)))
    generator.setTitle(path.stem)
    target = QPainter(generator)
    page.paint(target, page.area, 1.0)
    target.end()
    data = _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}".encode(), bytes(buffer.data().data()))
    write_data(path, _with_other_fonts(data, page.theme.mono_font().family()))
    return Rendered(path, shown.width(), shown.height(), scale)


def _with_other_fonts(svg: bytes, mono: str) -> bytes:
    """Name fonts of the same kind after each font, for programs that lack it."""

    def others(match: re.Match[bytes]) -> bytes:
        kind = _OTHER_MONO if match[0].decode() == mono else _OTHER_SANS
        return match[0] + f", {kind}".encode()

    return _SVG_FAMILY.sub(others, svg)


def _write_pdf(page: Page, path: Path) -> Rendered:
    """Write one page, or several where one would be longer than readers of PDF show."""
    scale = page.size.scale_of(page.area) or 1.0
    sheets = _cut(page.area, _LONGEST_PAGE / _POINTS / scale)
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QPdfWriter(buffer)
    writer.setResolution(_CSS_DPI)
    writer.setTitle(path.stem)
    writer.setCreator("Kuiper Studio")
    target = QPainter()
    for number, sheet in enumerate(sheets):
        points = sheet.size() * scale * _POINTS
        exact = QPageSize.SizeMatchPolicy.ExactMatch
        size = QPageSize(points, QPageSize.Unit.Point, path.stem, exact)
        writer.setPageLayout(
            QPageLayout(size, QPageLayout.Orientation.Portrait, QMarginsF(0, 0, 0, 0))
        )
        if number:
            writer.newPage()
        else:
            target.begin(writer)
        target.save()
        target.scale(scale, scale)
        page.paint(target, sheet, 1.0)
        target.restore()
    target.end()
    write_data(path, bytes(buffer.data().data()))
    whole = _pixels(page.area, scale)
    note = ""
    if len(sheets) > 1:
        note = (
            f"{len(sheets)} pages, because one is at most {_LONGEST_PAGE / 72:.0f} inches long"
        )
    return Rendered(path, whole.width(), whole.height(), scale, note)


def _cut(area: QRectF, longest: float) -> list[QRectF]:
    """Cut an area into parts of equal size, in the order of reading."""
    columns, rows = (max(1, math.ceil(s / longest)) for s in (area.width(), area.height()))
    width, height = area.width() / columns, area.height() / rows
    return [
        QRectF(area.left() + column * width, area.top() + row * height, width, height)
        for row in range(rows)
        for column in range(columns)
    ]


def _pixels(area: QRectF, scale: float) -> QSize:
    return QSize(math.ceil(area.width() * scale), math.ceil(area.height() * scale))


def _percent(scale: float) -> str:
    return f"{100 * scale:.0f} %" if scale >= 0.1 else f"{100 * scale:.2g} %"


# Pixels


def _write_png(page: Page, path: Path) -> Rendered:
    area, wanted, note = page.area, page.size.scale_of(page.area), ""
    scale = wanted if wanted is not None else _usual_scale(area)
    # The width that was asked for, whatever the quotient's last digit.
    width = page.size.width or math.ceil(area.width() * scale)
    height = max(1, math.ceil(area.height() * scale))
    if wanted is None:
        width, height = min(width, _USUAL_SIDE), min(height, _USUAL_SIDE)
        if scale < 1:
            note = (
                "the graph is too large for a PNG and was drawn at "
                f"{_percent(scale)}; an SVG shows all of it"
            )
    _check_pixels(path, width, height)
    try:
        with written_beside(path) as partial, partial.open("wb") as file:
            _stream_png(file, width, height, _paint_strips(page, width, height, scale))
    except OSError as exc:
        raise _cannot_write(path, exc) from exc
    return Rendered(path, width, height, scale, note)


def _usual_scale(area: QRectF) -> float:
    return min(
        _PNG_SCALE,
        _USUAL_SIDE / max(area.width(), area.height()),
        math.sqrt(_USUAL_PIXELS / (area.width() * area.height())),
    )


def _check_pixels(path: Path, width: int, height: int) -> None:
    if max(width, height) > _MOST_SIDE:
        raise ExportError(
            f"{path.name} would be {width} x {height} pixels, but a side has at most "
            f"{format_count(_MOST_SIDE)}; choose a smaller size, or SVG"
        )
    if width * height > _MOST_PIXELS:
        raise ExportError(
            f"{path.name} would have {format_count(width * height)} pixels, but at most "
            f"{format_count(_MOST_PIXELS)} are drawn; choose a smaller size, or SVG"
        )


def _paint_strips(
    page: Page, width: int, height: int, scale: float
) -> Iterator[np.ndarray[tuple[int, ...], np.dtype[np.uint8]]]:
    """Yield the rows of a picture, shape (rows, width, 4) in Qt's order of RGB32."""
    rows = max(1, min(_MOST_ROWS, height, _STRIP_BYTES // (4 * width)))
    strip = np.empty((rows, width, 4), np.uint8)
    for top in range(0, height, rows):
        for left in range(0, width, _TILE):
            across, down = min(_TILE, width - left), min(rows, height - top)
            image = QImage(
                strip[0, left:].data, across, down, 4 * width, QImage.Format.Format_RGB32
            )
            corner = page.area.topLeft() + QPointF(left / scale, top / scale)
            target = QPainter(image)
            page.paint(target, QRectF(corner, QSizeF(across, down) / scale), scale)
            target.end()
        yield strip[: min(rows, height - top)]


def _stream_png(
    file: BinaryIO,
    width: int,
    height: int,
    strips: Iterator[np.ndarray[tuple[int, ...], np.dtype[np.uint8]]],
) -> None:
    file.write(_PNG_HEAD)
    _write_chunk(file, b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    packer = zlib.compressobj(6)
    above: np.ndarray[tuple[int, ...], np.dtype[np.uint8]] = np.zeros((1, 3 * width), np.uint8)
    for strip in strips:
        pixels = strip[:, :, 2::-1] if _IS_LITTLE else strip[:, :, 1:]
        rows = pixels.reshape(len(strip), 3 * width)
        filtered = np.empty((len(rows), 1 + 3 * width), np.uint8)
        filtered[:, 0] = _UP
        np.subtract(rows[:1], above, out=filtered[:1, 1:])
        np.subtract(rows[1:], rows[:-1], out=filtered[1:, 1:])
        above = rows[-1:].copy()
        _write_chunk(file, b"IDAT", packer.compress(filtered.data))
    _write_chunk(file, b"IDAT", packer.flush())
    _write_chunk(file, b"IEND", b"")


_IS_LITTLE: Final = np.little_endian


def _write_chunk(file: BinaryIO, name: bytes, data: bytes) -> None:
    if data or name == b"IEND":
        file.write(struct.pack(">I", len(data)))
        file.write(name + data)
        file.write(struct.pack(">I", zlib.crc32(name + data)))


_WRITERS: Final = {"svg": _write_svg, "png": _write_png, "pdf": _write_pdf}
PICTURE_FORMS: Final = tuple(_WRITERS)
