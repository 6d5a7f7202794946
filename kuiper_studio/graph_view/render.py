"""Writes the whole graph as a picture or as data, with or without a display."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QBuffer, QIODevice, QPointF, QRectF, QSize, QSizeF
from PySide6.QtGui import QImage, QPainter
from PySide6.QtSvg import QSvgGenerator

from engine.atomic import format_os_error, write_file
from engine.collector import collector_paused
from engine.errors import ExportError
from kuiper_studio.graph_view.geometry import Geometry
from kuiper_studio.graph_view.painter import ScenePainter
from kuiper_studio.graph_view.scene import lay_out, make_scene
from kuiper_studio.graph_view.state import SceneState
from kuiper_studio.layout import Orientation, format_graph, layout, write_attributes
from kuiper_studio.picture_files import write_picture

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from engine.runtime import RuntimeGraph
    from kuiper_studio.engine_service.summary import Summary
    from kuiper_studio.session import StudioSession
    from kuiper_studio.theme import Theme

__all__ = ["Rendered", "render_graph", "write_layout"]

_MARGIN: Final = 24.0
_STAGES: Final = 3  # stages: scene, layout, picture
_LONGEST_SIDE: Final = 16_384
_MOST_PIXELS: Final = 100_000_000
_WIDE: Final = 1.6
_CSS_DPI: Final = 96  # dots per inch at which browsers show a pixel as a pixel
_PNG_SCALE: Final = 2.0
# Control characters and non-characters in UTF-8, which Qt does not escape.
_NOT_IN_XML: Final = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]")


@dataclass(frozen=True, slots=True)
class Rendered:
    """A written picture.

    Attributes
    ----------
    path : Path
    width, height : int
        In pixels.
    scale : float
        Pixels per unit of the drawing; 1.0 in an SVG.
    note : str
        Message for the user, e.g. that a PNG had to be made smaller; or ``""``.
    """

    path: Path
    width: int
    height: int
    scale: float
    note: str = ""


def render_graph(
    graph: RuntimeGraph,
    path: Path,
    theme: Theme,
    orientation: Orientation = "left-right",
    session: StudioSession | None = None,
    summaries: Mapping[int, Summary] | None = None,
    form: str = "",
    progress: Callable[[int, int], None] | None = None,
) -> Rendered:
    """Write a model's graph as ``.svg`` or ``.png``.

    Needs a QGuiApplication, which may run without a display.

    Parameters
    ----------
    graph : RuntimeGraph
    path : Path
        An existing file is replaced.
    theme : Theme
    orientation : {'left-right', 'top-down'}
    session : StudioSession, optional
        Session whose run is drawn with values; without it, the model alone.
    summaries : mapping of int to Summary, optional
        Summaries of the run's values, by index of the operator; see `SummaryCollector`.
    form : {'svg', 'png'}, optional
        Format; default by the suffix.
    progress : callable, optional
        Called with the number of stages done, and of all.

    Returns
    -------
    Rendered

    Raises
    ------
    ExportError
        If the suffix is another one, or the file cannot be written.
    """
    writer = _WRITERS.get(form or path.suffix.lower().removeprefix("."))
    if writer is None:
        raise ExportError(f"{path.name}: a graph picture is an .svg or .png file")
    scene = make_scene(graph)
    state = SceneState(scene, session)
    state.summaries.update(summaries or {})
    show = progress or (lambda _done, _total: None)
    show(1, _STAGES)
    geometry = Geometry(scene, lay_out(scene, orientation))
    show(2, _STAGES)
    area = geometry.bounds.adjusted(-_MARGIN, -_MARGIN, _MARGIN, _MARGIN)
    return writer(path, theme, ScenePainter(theme, geometry, state), area)


def write_layout(
    graph: RuntimeGraph, path: Path, form: str, orientation: Orientation = "left-right"
) -> None:
    """Write a model's graph with positions, layers and routes as data.

    Needs a QGuiApplication, because boxes are as wide as their texts.

    Parameters
    ----------
    graph : RuntimeGraph
    path : Path
        An existing file is replaced.
    form : {'graphml', 'json'}
        See `format_graph`.
    orientation : {'left-right', 'top-down'}

    Raises
    ------
    ExportError
        If the file cannot be written.
    """
    with collector_paused():
        request = make_scene(graph).request(orientation)
        placed = graph.to_networkx()
        write_attributes(placed, request.sizes, layout(request))
        _write(path, format_graph(placed, form))


def _write_svg(path: Path, theme: Theme, painter: ScenePainter, area: QRectF) -> Rendered:
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    generator = QSvgGenerator()
    generator.setOutputDevice(buffer)
    size = QSize(math.ceil(area.width()), math.ceil(area.height()))
    generator.setResolution(_CSS_DPI)
    generator.setSize(size)
    generator.setViewBox(QRectF(QPointF(0, 0), QSizeF(size)))
    generator.setTitle(path.stem)
    _paint(QPainter(generator), theme, painter, area, 1.0)
    data = bytes(buffer.data().data())
    _write(path, _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}".encode(), data))
    return Rendered(path, size.width(), size.height(), 1.0)


def _write_png(path: Path, theme: Theme, painter: ScenePainter, area: QRectF) -> Rendered:
    scale = min(
        _PNG_SCALE,
        _LONGEST_SIDE / max(area.width(), area.height()),
        math.sqrt(_MOST_PIXELS / (area.width() * area.height())),
    )
    size = QSize(math.ceil(area.width() * scale), math.ceil(area.height() * scale))
    image = QImage(
        size.boundedTo(QSize(_LONGEST_SIDE, _LONGEST_SIDE)), QImage.Format.Format_RGB32
    )
    if image.isNull():
        raise ExportError(
            f"{path.name}: not enough memory for {size.width()} x {size.height()} pixels"
        )
    _paint(QPainter(image), theme, painter, area, scale)
    write_picture(image, path, "png")
    note = ""
    if scale < 1:
        note = (
            f"the graph is too large for a PNG and was drawn at {100 * scale:.0f} %; "
            "an SVG shows all of it"
        )
    return Rendered(path, image.width(), image.height(), scale, note)


_WRITERS: Final = {"svg": _write_svg, "png": _write_png}


def _paint(
    target: QPainter, theme: Theme, painter: ScenePainter, area: QRectF, scale: float
) -> None:
    target.fillRect(QRectF(QPointF(0, 0), area.size() * scale), theme.color("base"))
    painter.paint(target, area, scale, keep=False)
    target.end()


def _write(path: Path, data: bytes) -> None:
    """Write the file, whole or not at all."""
    try:
        write_file(path, data)
    except OSError as exc:
        raise ExportError(f"{path} cannot be written: {format_os_error(exc)}") from exc
