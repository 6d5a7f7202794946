"""The opening that brings back the open model as it is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kuiper_studio.engine_service.protocol import OpenRequest, Plan, SupplyRequest
from kuiper_studio.session.opening import Looks, Opening

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.runtime import RuntimeGraph
    from kuiper_studio.engine_service.protocol import Request
    from kuiper_studio.session.model_inputs import ModelInputs
    from kuiper_studio.session.opened_model import OpenedModel
    from kuiper_studio.session.view import SessionView

__all__ = ["opening_as_shown"]


def opening_as_shown(
    view: SessionView,
    opened: OpenedModel,
    inputs: ModelInputs,
    pending: Sequence[Request],
    *,
    with_place: bool,
) -> Opening:
    """Describe the open model, with its inputs, overrides, labels, breakpoints and selection.

    Parameters
    ----------
    view : SessionView
        It shows the model.
    opened : OpenedModel
    inputs : ModelInputs
    pending : sequence of Request
        Overrides that are asked for, and a position that an engine runs to, are part of it.
    with_place : bool
        Whether to run it to its position.
    """
    coming = (each.supply for each in pending if isinstance(each, SupplyRequest))
    supplies = (*view.snapshot.supplies, *coming)
    sources = inputs.sources_of(opened.graph)
    place, keeps = _place_of(view, pending) if with_place else (None, False)
    shown = _source_of(opened.graph, view.operand)
    return Opening(
        opened.model,
        Plan(sources, None, inputs.shapes.texts, supplies, place),
        Looks(view.workspace.labels, view.breakpoints, view.selected, *shown),
        keeps_place=keeps,
    )


def _source_of(graph: RuntimeGraph, operand: str) -> tuple[str, int]:
    """Return the operator that makes an operand, and which of its outputs that is."""
    producer = graph.operand(operand).producer if operand else None
    if producer is None:
        return "", 0
    return producer.name, [each.name for each in producer.outputs].index(operand)


def _place_of(view: SessionView, pending: Sequence[Request]) -> tuple[str | None, bool]:
    """Return the position or destination of the model, and whether to ask the engine."""
    for request in pending:
        if isinstance(request, OpenRequest) and request.plan.place is not None:
            return request.plan.place, False
    if not view.position:
        return None, True
    return view.current.name if view.current is not None else "", True
