"""Layered graph layout: numbers in, numbers out.

Knows boxes and edges, no operators, no Qt. `layout` is a pure function of its request, so it
can run on any thread.
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
