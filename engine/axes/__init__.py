"""Meanings of axes, inferred along the graph instead of guessed from a shape.

Every dimension of every operand consists of factors (`factors`). One rule per family of
operators (`rules`) relates the factors of inputs and outputs: a transpose orders them, a
reshape splits and merges them exactly, an addition makes two of them the same. A rule also
notes the evidence of its operator: a convolution has channels, rows and columns, attention has
heads and tokens. The strongest evidence names a factor and all factors that are related to it,
upstream and downstream. Then `naming` names each operand by its factors. `plan` decides how to
show the operand: tokens folded to their grid, windows joined to the image that they were split
from.

>>> from engine.axes import Axis, Kind, Layout
>>> grid = Axis(Kind.TOKEN, 49, (Axis(Kind.ROW, 7), Axis(Kind.COLUMN, 7)))
>>> tokens = Axis(Kind.TOKEN, 50, segments=(Axis(Kind.CLASS_TOKEN, 1), grid))
>>> Layout((Axis(Kind.BATCH, 1), tokens, Axis(Kind.FEATURE, 768))).text()
'class + 7×7 tokens × features'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.lazy_import import lazy_names

if TYPE_CHECKING:
    from engine.axes.inference import infer_layouts
    from engine.axes.layout import Axis, Kind, Layout, Size
    from engine.axes.plan import Role, ViewPlan, parts_of, plan_view
    from engine.axes.weights import weight_layout

__all__ = [
    "Axis",
    "Kind",
    "Layout",
    "Role",
    "Size",
    "ViewPlan",
    "infer_layouts",
    "parts_of",
    "plan_view",
    "weight_layout",
]

# The window needs the words from its start, and infers on another thread.
_HOME = {
    "Axis": "engine.axes.layout",
    "Kind": "engine.axes.layout",
    "Layout": "engine.axes.layout",
    "Role": "engine.axes.plan",
    "Size": "engine.axes.layout",
    "ViewPlan": "engine.axes.plan",
    "infer_layouts": "engine.axes.inference",
    "parts_of": "engine.axes.plan",
    "plan_view": "engine.axes.plan",
    "weight_layout": "engine.axes.weights",
}

__getattr__ = lazy_names(__name__, _HOME)
