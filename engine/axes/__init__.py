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

from engine.axes import rules  # registers the rules
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
    "rules",
    "weight_layout",
]
