"""Resolves a plan for a model: the source of each input, and the operator to run to.

Engine and window call the same function: the engine to carry the plan out, the window to show
it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from engine.errors import EngineError
from engine.inputs import ImageOptions, InputSource, named_outputs, spread_source
from engine.shapes import InputShapes, parse_shapes
from kuiper_studio.engine_service.protocol import Plan, Supply

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.runtime import RuntimeGraph

__all__ = ["ResolvedPlan", "resolve"]


class ResolvedPlan(NamedTuple):
    """A plan for one model.

    Attributes
    ----------
    inputs : dict of str to InputSource
        By operand name, in order. Incomplete if the plan has too few sources.
    options : ImageOptions
    shapes : InputShapes
    supplies : tuple of Supply
    place : str or None
        As in `Plan`; None if the model has no such operator.
    misfit : EngineError or None
        Error for a request that does not fit the model.
    dropped : tuple of str
        A sentence for each setting of an earlier model that does not fit this one.
    """

    inputs: dict[str, InputSource]
    options: ImageOptions
    shapes: InputShapes
    supplies: tuple[Supply, ...]
    place: str | None
    misfit: EngineError | None
    dropped: tuple[str, ...]


def resolve(graph: RuntimeGraph, plan: Plan) -> ResolvedPlan:
    """Resolve a plan for a model.

    Parameters
    ----------
    graph : RuntimeGraph
        Only its structure is used.
    plan : Plan

    Returns
    -------
    ResolvedPlan
    """
    operands = graph.input_operands
    names = [operand.name for operand in operands]
    inputs = dict(zip(names, spread_source(plan.sources, len(names)), strict=False))
    dropped: list[str] = []
    shapes, misfit = InputShapes(), None
    supplies: tuple[Supply, ...] = ()
    try:
        shapes = parse_shapes(plan.shapes, operands)
        supplies = _find_supplies(graph, plan.supplies, dropped)
    except EngineError as exc:
        misfit = exc
    options = plan.options or ImageOptions()
    shapes, options = _size_pictures(graph, inputs, shapes, options)
    place = plan.place
    if place and not _has_operator(graph, place):
        dropped.append(f"{place}, where the model stood, is gone; it is at the start")
        place = None
    return ResolvedPlan(inputs, options, shapes, supplies, place, misfit, tuple(dropped))


def _find_supplies(
    graph: RuntimeGraph,
    wanted: Sequence[tuple[str, InputSource] | Supply],
    dropped: list[str],
) -> tuple[Supply, ...]:
    """Return the overrides that fit the graph; names given by the user must exist."""
    found = []
    for supply in wanted:
        if isinstance(supply, Supply):
            missing = [name for name in supply.operands if name not in graph.operands]
            if missing:
                dropped.append(f"operand {missing[0]} is supplied no more: it is gone")
            else:
                found.append(supply)
        else:
            name, source = supply
            outputs = tuple(operand.name for operand in named_outputs(graph, name))
            found.append(Supply(outputs, source))
    return tuple(found)


def _size_pictures(
    graph: RuntimeGraph,
    inputs: Mapping[str, InputSource],
    shapes: InputShapes,
    options: ImageOptions,
) -> tuple[InputShapes, ImageOptions]:
    """Derive the sizes of inputs from the size of pictures, unless they are set."""
    if options.size is None:
        return shapes, options
    sizes = dict(shapes.shapes)
    for operand in graph.input_operands:
        source = inputs.get(operand.name)
        if source is None or source.kind != "image" or operand.name in sizes:
            continue
        if operand.shape is None or len(operand.shape) < 3:
            return shapes, options
        sizes[operand.name] = (*(None,) * (len(operand.shape) - 2), *options.size)
    return InputShapes(sizes, shapes.symbols), replace(options, size=None)


def _has_operator(graph: RuntimeGraph, name: str) -> bool:
    return any(operator.name == name for operator in graph.operators)
