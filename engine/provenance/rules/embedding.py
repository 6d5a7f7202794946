"""Embeddings: rows of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine.layers.embedding import embedding, embedding_module
from engine.layers.ncnn.products import Embed
from engine.provenance.arithmetic import add_up, format_index, grid, multiply
from engine.provenance.call import NoBreakdownError, Operand, take
from engine.provenance.records import Breakdown, Factor, Interval, Kind, Step, Terms
from engine.provenance.table import explains, locates

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.provenance.call import Call
    from engine.provenance.records import Box

__all__ = ["explain_embedding", "locate_embedding"]


@explains(embedding, embedding_module)
def explain_embedding(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Return the element of the row that the number chooses."""
    if call.arguments["max_norm"] is not None:
        raise NoBreakdownError("rows of limited norm have no breakdown")
    number = take(call.array("input"), "input", grid(*[[place] for place in index[:-1]]))
    row = int(number.values[0])
    found: Factor = take(call.arguments["weight"], "weight", grid([row], [index[-1]]))
    text = f"{number.name}{format_index(index[:-1])}"
    element = f"{found.name}[{row}, {index[-1]}]"
    formula = f"y{format_index(index)} = {found.name}[{text}, {index[-1]}] = {element}"
    terms = Terms((found, number), found.values, (1,), ("term",))
    steps = (Step(f"row {text}", float(row)),)
    return Breakdown(Kind.MOVE, formula, terms, float(found.values[0]), 0.0, steps=steps)


@locates(embedding, embedding_module)
def locate_embedding(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the numbers at the same positions, and the columns of a computed table."""
    found: dict[str, Box] = {call.array("input").name: box[:-1]}
    table = call.arguments["weight"]
    if isinstance(table, Operand):
        found[table.name] = (Interval.whole(table.shape[0]), box[-1])
    return found


@explains(Embed)
def explain_ncnn_embedding(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Return the element of the row that the number chooses, with the bias added."""
    layer, input = call.layer, call.array("input")
    if not isinstance(layer, Embed) or layer.has_scale:
        raise NoBreakdownError("a quantised table has no breakdown")
    # Blobs of ncnn are float32, and keep whole numbers as bits.
    numbers = input.value if input.dtype.kind in "iu" else input.value.view(np.int32)
    row = int(np.clip(numbers[index[0]], 0, len(layer.weight) - 1))
    found = take(layer.weight, "weight", grid([row], [index[1]]))
    steps = (Step(f"row {input.name}[{index[0]}]", float(row)),)
    terms = multiply([found], (1,), ("term",))
    offset, name = None, ""
    if layer.bias is not None:
        offset, name = float(layer.bias[index[1]]), f"bias[{index[1]}]"
    formula = (
        f"y{format_index(index)} = {f'{name} + ' if name else ''}weight[{row}, {index[1]}]"
    )
    return add_up(call, formula, terms, offset, name, steps=steps)


@locates(Embed)
def locate_ncnn_embedding(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the numbers at the same positions."""
    return {call.array("input").name: box[:1]}
