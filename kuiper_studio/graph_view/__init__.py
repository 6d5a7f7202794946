"""The graph of the model, drawn: boxes, edges, and where the run stands.

`GraphView` is the widget of the window; `render.render_graph` writes the same drawing to a
file. From a model to the picture: `scene` (what there is) → `kuiper_studio.layout` (where it
is) → `geometry` → `painter`; `state` follows the session.
"""

from __future__ import annotations

from kuiper_studio.graph_view.view import GraphView

__all__ = ["GraphView"]
