"""The picture of the graph: boxes, edges, and the state of the run.

`GraphView` is the widget of the window; `render.render_graph` writes the same drawing to a
file. From a model to the picture: `scene` (boxes and edges) → `kuiper_studio.layout`
(positions) → `geometry` → `painter`; `state` follows the session.
"""

from __future__ import annotations

from kuiper_studio.graph_view.view import GraphView

__all__ = ["GraphView"]
