"""Embeddings: rows of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.layers.embedding import embedding, embedding_module
from engine.provenance.arithmetic import format_index, grid
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
