"""Embeddings: rows of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine.layers.embedding import embedding, embedding_module
from engine.layers.embedding_bag import (
    embedding_bag,
    embedding_bag_traced,
    find_bounds,
    pooling_of,
)
from engine.layers.ncnn.products import Embed
from engine.provenance.arithmetic import add_up, format_index, grid, make_factor, multiply
from engine.provenance.call import NoBreakdownError, Operand, take
from engine.provenance.records import Breakdown, Factor, Interval, Kind, Step, Terms
from engine.provenance.rules.pooling import choose
from engine.provenance.table import explains, locates

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from engine.provenance.call import Call
    from engine.provenance.records import Box

__all__ = [
    "explain_bag",
    "explain_embedding",
    "find_bag",
    "locate_bag",
    "locate_embedding",
    "name_of_indices",
]


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


def find_bag(call: Call, number: int) -> npt.NDArray[np.int64]:
    """Return the flat places of the indices of a bag that count."""
    given = call.arguments
    input = call.array(name_of_indices(call))
    offsets = given["offsets"]
    starts, stops = find_bounds(
        input.value,
        offsets.value if isinstance(offsets, Operand) else offsets,
        include_last_offset=bool(given["include_last_offset"]),
    )
    places = np.arange(starts[number], stops[number])
    padding = given["padding_idx"]
    if padding is None:
        return places
    numbers = input.value.reshape(-1)[places]
    kept: npt.NDArray[np.int64] = places[numbers != padding % given["weight"].shape[0]]
    return kept


def name_of_indices(call: Call) -> str:
    """Return the argument that has the numbers of the rows."""
    return "indices" if call.layer_code is embedding_bag_traced else "input"


@explains(embedding_bag, embedding_bag_traced)
def explain_bag(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum the rows of a bag, their mean, or choose the largest element."""
    given, method = call.arguments, pooling_of(call.arguments["mode"])
    if given.get("max_norm") is not None:
        raise NoBreakdownError("rows of limited norm have no breakdown")
    number, column = index
    input, places = call.array(name_of_indices(call)), find_bag(call, number)
    at = np.stack(np.unravel_index(places, input.shape), axis=1)
    numbers = take(input, input.name, at)
    rows = numbers.values.astype(np.int64)
    table = given["weight"]
    found = take(table, "weight", np.stack([rows, np.full(len(rows), column)], axis=1))
    factors, scale, what = [found], 1.0, f"{found.name}[{numbers.name}[k], {column}]"
    if method == "mean":
        scale, what = 1 / max(1, len(rows)), f"1/{max(1, len(rows))} · Σ {what}"
        factors.append(make_factor("1 / count", np.full(len(rows), scale)))
    elif given["per_sample_weights"] is not None:
        weights = take(given["per_sample_weights"], "per_sample_weights", at)
        factors.append(weights)
        what = f"Σ {weights.name}[k] · {what}"
    else:
        what = f"Σ {what}"
    terms = multiply(factors, (len(rows),), ("row",))
    if method == "max" and len(rows):
        return choose(index, terms, found.name, np.argmax(terms.products))
    formula = f"y{format_index(index)} = {what} over {len(rows)} rows of bag {number}"
    return add_up(call, formula, terms)


@locates(embedding_bag, embedding_bag_traced)
def locate_bag(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the numbers of the bags, all offsets, and the columns of a computed table."""
    given, input = call.arguments, call.array(name_of_indices(call))
    region = input.whole
    if input.ndim == 2:
        region = (box[0], input.whole[1])
    else:
        bags = [find_bag(call, number) for number in range(box[0].start, box[0].stop)]
        places = np.concatenate(bags)
        ends = (int(places.min()), int(places.max()) + 1) if places.size else (0, 0)
        region = (Interval(*ends),)
    found: dict[str, Box] = {input.name: region}
    for name, part in (
        ("weight", (None, box[1])), ("offsets", (None,)), ("per_sample_weights", region)
    ):  # fmt: skip
        each = given[name]
        if isinstance(each, Operand):
            found[each.name] = tuple([
                Interval.whole(size) if own is None else own
                for size, own in zip(each.shape, part, strict=True)
            ])  # fmt: skip
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
