"""The model and the widgets of a pane, which its controls share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kuiper_studio.tensor_view.reading import Kind

if TYPE_CHECKING:
    from kuiper_studio.tensor_view.actions import TensorActions
    from kuiper_studio.tensor_view.axis_strip import AxisStrip
    from kuiper_studio.tensor_view.body import Body
    from kuiper_studio.tensor_view.canvas import ElementCanvas
    from kuiper_studio.tensor_view.index_bar import IndexBar
    from kuiper_studio.tensor_view.measuring import Measurer
    from kuiper_studio.tensor_view.plane_canvas import PlaneCanvas
    from kuiper_studio.tensor_view.range_bar import RangeBar
    from kuiper_studio.tensor_view.side_by_side import CanvasesBySide
    from kuiper_studio.tensor_view.tool_strip import ToolStrip
    from kuiper_studio.tensor_view.vector_plot import VectorPlot
    from kuiper_studio.tensor_view.view_model import TensorViewModel

__all__ = ["PaneParts"]


@dataclass(frozen=True, slots=True, eq=False)
class PaneParts:
    """The model, the actions and the widgets of a pane.

    Attributes
    ----------
    model : TensorViewModel
    actions : TensorActions
    measurer : Measurer
    tools : ToolStrip
    axes : AxisStrip
    index_bar : IndexBar
    body : Body
    range_bar : RangeBar
    """

    model: TensorViewModel
    actions: TensorActions
    measurer: Measurer
    tools: ToolStrip
    axes: AxisStrip
    index_bar: IndexBar
    body: Body
    range_bar: RangeBar

    @property
    def canvases(self) -> CanvasesBySide[PlaneCanvas] | CanvasesBySide[VectorPlot]:
        """The canvases for the kind of value."""
        is_vector = self.model.reading.kind is Kind.VECTOR
        return self.body.vectors if is_vector else self.body.planes

    @property
    def all_canvases(self) -> tuple[ElementCanvas, ...]:
        """The canvases for every kind of value."""
        return self.body.canvases

    @property
    def zoomable(self) -> PlaneCanvas | VectorPlot:
        """What the commands of the zoom are for."""
        return self.canvases.ours
