"""Writes the whole graph as a picture or as data, with or without a display."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from engine.collector import collector_paused
from engine.errors import ExportError
from kuiper_studio.graph_view.geometry import Geometry
from kuiper_studio.graph_view.pages import (
    PICTURE_FORMS,
    Page,
    Rendered,
    Size,
    write_data,
    write_page,
)
from kuiper_studio.graph_view.painter import ScenePainter
from kuiper_studio.graph_view.scene import lay_out, make_scene
from kuiper_studio.graph_view.state import SceneState
from kuiper_studio.layout import Orientation, layout
from kuiper_studio.layout.files import format_graph, write_attributes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from engine.runtime import RuntimeGraph
    from kuiper_studio.engine_service.summary import Summary
    from kuiper_studio.session import StudioSession
    from kuiper_studio.theme import Theme

__all__ = [
    "Rendered",
    "Shown",
    "Size",
    "prepare_scene",
    "render_graph",
    "write_layout",
    "write_scene",
]

_MARGIN: Final = 24.0
_STAGES: Final = 3  # stages: scene, layout, picture


@dataclass(frozen=True, slots=True)
class Shown:
    """What a picture of the graph shows.

    Attributes
    ----------
    states : bool
        The statuses of the run, breakpoints, bookmarks and the marks of a comparison.
    thumbnails : bool
        Pictures of the outputs, with their ranges.
    overlay : bool
        The colours of a quantity, where operators have them.
    """

    states: bool = True
    thumbnails: bool = True
    overlay: bool = True


def render_graph(
    graph: RuntimeGraph,
    path: Path,
    theme: Theme,
    orientation: Orientation = "left-right",
    session: StudioSession | None = None,
    summaries: Mapping[int, Summary] | None = None,
    form: str = "",
    size: Size | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Rendered:
    """Write a model's graph as ``.svg``, ``.png`` or ``.pdf``.

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
    form : {'svg', 'png', 'pdf'}, optional
        Format; default by the suffix.
    size : Size, optional
        Default what is usual for the format.
    progress : callable, optional
        Called with the number of stages done, and of all.

    Returns
    -------
    Rendered

    Raises
    ------
    ExportError
        If the suffix is another one, the file cannot be written, or it would have more pixels
        than is sensible.
    """
    state = SceneState(make_scene(graph), session)
    state.summaries.update(summaries or {})
    return write_scene(state, path, theme, orientation, form, size, progress=progress)


def prepare_scene(
    graph: RuntimeGraph,
    session: StudioSession,
    summaries: Mapping[int, Summary],
    shown: Shown,
) -> SceneState:
    """Read from a session all that a picture shows, so that another thread may draw it.

    Parameters
    ----------
    graph : RuntimeGraph
        The session's.
    session : StudioSession
    summaries : mapping of int to Summary
        By index of the operator.
    shown : Shown
    """
    state = SceneState(make_scene(graph), session)
    state.summaries.update(summaries)
    state.detach(overlay=shown.overlay)
    if not shown.states:
        state.hide_run()
    return state


def write_scene(
    state: SceneState,
    path: Path,
    theme: Theme,
    orientation: Orientation = "left-right",
    form: str = "",
    size: Size | None = None,
    *,
    thumbnails: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Rendered:
    """Lay a scene out and write it; see `render_graph`."""
    form = form or path.suffix.lower().removeprefix(".")
    if form not in PICTURE_FORMS:
        raise ExportError(f"{path.name}: a graph picture is an .svg, .png or .pdf file")
    show = progress or (lambda _done, _total: None)
    show(1, _STAGES)
    geometry = Geometry(state.scene, lay_out(state.scene, orientation))
    show(2, _STAGES)
    area = geometry.bounds.adjusted(-_MARGIN, -_MARGIN, _MARGIN, _MARGIN)
    painter = ScenePainter(theme, geometry, state, thumbnails=thumbnails)
    return write_page(Page(painter, theme, area, size or Size()), path, form)


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
        write_data(path, format_graph(placed, form))
