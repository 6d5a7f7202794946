"""Attention: a query averages the values by the weights of its keys."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from engine.layers.attention import scaled_dot_product_attention
from engine.layers.multihead_attention import MultiheadAttention
from engine.provenance.arithmetic import (
    add_up,
    format_index,
    grid,
    make_factor,
    multiply,
    sum_error,
)
from engine.provenance.call import NoBreakdownError, Operand, take
from engine.provenance.records import Breakdown, Interval, Kind, join_boxes
from engine.provenance.table import explains, locates

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from engine.provenance.call import Call
    from engine.provenance.records import Box

__all__ = ["explain_attention", "locate_attention", "locate_multihead"]


def _aligned(operand: Operand, lead: Box, last: tuple[Interval, ...]) -> Box:
    """Return a region with the batch dimensions of another, where they are not broadcast."""
    own = operand.shape[: -len(last)]
    batch = lead[len(lead) - len(own) :]
    kept = [
        each if size > 1 else Interval.whole(size)
        for each, size in zip(batch, own, strict=True)
    ]
    return (*kept, *last)


def _heads(call: Call, lead: Box, operand: Operand) -> Box:
    """Return the batch region of keys or values, where heads may be shared."""
    query = call.array("query")
    if not call.arguments["enable_gqa"] or query.ndim < 3:
        return lead
    group = query.shape[-3] // operand.shape[-3]
    heads = lead[-1]
    return (*lead[:-1], Interval(heads.start // group, (heads.stop - 1) // group + 1))


@locates(scaled_dot_product_attention)
def locate_attention(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the queries, all of their keys, and the columns of the values."""
    query, key, value = (call.array(name) for name in ("query", "key", "value"))
    lead, rows, columns = box[:-2], box[-2], box[-1]
    keys = Interval.whole(key.shape[-2])
    if call.arguments["is_causal"]:
        keys = Interval(0, max(1, min(rows.stop, key.shape[-2])))
    found: dict[str, Box] = {}
    for operand, region in (
        (query, _aligned(query, lead, (rows, Interval.whole(query.shape[-1])))),
        (key, _aligned(key, _heads(call, lead, key), (keys, Interval.whole(key.shape[-1])))),
        (value, _aligned(value, _heads(call, lead, value), (keys, columns))),
    ):
        found[operand.name] = join_boxes(found.get(operand.name), region)
    mask = call.arguments["attn_mask"]
    if isinstance(mask, Operand):
        found[mask.name] = mask.whole
    return found


@explains(scaled_dot_product_attention)
def explain_attention(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum the values of all keys times the weights of the keys."""
    query, key, value = (call.array(name) for name in ("query", "key", "value"))
    given = call.arguments
    if given["dropout_p"] or given["enable_gqa"]:
        raise NoBreakdownError("attention with dropout or shared heads has no breakdown")
    lead, row, column = index[:-2], index[-2], index[-1]

    def batch(operand: Operand) -> tuple[int, ...]:
        own = operand.shape[:-2]
        places = lead[len(lead) - len(own) :]
        return tuple([at if size > 1 else 0 for at, size in zip(places, own, strict=True)])

    scale = given["scale"]
    if scale is None:
        scale = 1 / math.sqrt(max(1, query.shape[-1]))
    q = query.value[(*batch(query), row)].astype(np.float64)
    k = key.value[batch(key)].astype(np.float64)
    with np.errstate(all="ignore"):
        scores = k @ (q * float(scale))
    bound = float(np.abs(k * q).sum(axis=1).max(initial=0.0) * abs(float(scale)))
    _add_mask(call, scores, lead, row)
    peak = float(scores.max(initial=-np.inf))
    with np.errstate(all="ignore"):
        powers = np.exp(scores - (peak if math.isfinite(peak) else 0.0))
    sum_of_powers = float(powers.sum())
    shares = powers / (sum_of_powers or 1.0)
    count = key.shape[-2]
    places = grid(*[[at] for at in batch(value)], range(count), [column])
    v = take(value, "value", places)
    weights = make_factor("weight of the key", shares)
    terms = multiply([v, weights], (count,), ("key",))
    queries = format_index([*batch(query), row, ":"])
    formula = (
        f"y{format_index(index)} = Σ p[k] · "
        f"{v.name}{format_index([*batch(value), 'k', column])}, "
        f"p = softmax({query.name}{queries} · {key.name}{format_index([*batch(key), 'k', ':'])}"
        f" · {float(scale):.4g})"
    )
    found = add_up(call, formula, terms)
    # A score's rounding error is the relative error of its weight.
    magnitude = float(np.abs(terms.products).sum())
    more = (
        2
        * magnitude
        * sum_error(bound + abs(peak if math.isfinite(peak) else 0), len(q), call.dtype, 0.0)
    )
    error = found.error + more
    return Breakdown(Kind.SUM, formula, terms, found.total, error)


def _add_mask(
    call: Call,
    scores: npt.NDArray[np.float64],
    lead: tuple[int, ...],
    row: int,
) -> None:
    """Apply the mask to the scores of one query, in place."""
    mask, count = call.arguments["attn_mask"], len(scores)
    if call.arguments["is_causal"]:
        scores[row + 1 :] = -np.inf
    if mask is None:
        return
    values = mask.value if isinstance(mask, Operand) else np.asarray(mask)
    shape = (*call.shape[:-1], count)
    part = np.broadcast_to(values, shape)[(*lead, row)]
    if part.dtype == np.bool_:
        scores[~part] = -np.inf
    else:
        scores += part


@locates(MultiheadAttention)
def locate_multihead(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the queries, and all keys and values of the sample."""
    layer, inputs = call.layer, call.arrays
    if not isinstance(layer, MultiheadAttention) or call.place or len(box) != 3:
        return {each.name: each.whole for each in inputs}
    sample = 0 if layer.batch_first else 1
    found: dict[str, Box] = {}
    for place, each in enumerate(inputs):
        if each.ndim != 3 or each.shape[sample] != call.shape[sample] or place > 2:
            found[each.name] = each.whole
            continue
        region = list(each.whole)
        region[sample] = box[sample]
        if place == 0 and len(inputs) > 1 and inputs.count(each) == 1:
            names = [other.name for other in inputs]
            if names.count(each.name) == 1:
                region[1 - sample] = box[1 - sample]
        found[each.name] = tuple(region)
    return found
