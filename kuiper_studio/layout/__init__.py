"""Layered graph layout: takes a graph and sizes, and returns coordinates.

Components and generations come with the graph, found by networkx; rows, lanes and routes are
our own. Knows boxes and edges, no operators, no Qt. `layout` is a pure function of its request,
so it can run on any thread; `files.write_attributes` puts what it found into a graph of
networkx, and that goes into files.
"""

from __future__ import annotations

from kuiper_studio.layout.arrange import layout
from kuiper_studio.layout.model import (
    LAYER_GAPS,
    Layout,
    LayoutCancelledError,
    LayoutRequest,
    Orientation,
)

__all__ = [
    "LAYER_GAPS",
    "Layout",
    "LayoutCancelledError",
    "LayoutRequest",
    "Orientation",
    "layout",
]
