"""Attention: a query averages the values by the weights of its keys."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from engine.layers.attention import scaled_dot_product_attention
from engine.layers.multihead_attention import MultiheadAttention
from engine.layers.ncnn import products as ncnn
from engine.provenance.arithmetic import (
    add_up,
    format_index,
    grid,
    make_factor,
    multiply,
    sum_error,
)
from engine.provenance.call import NoBreakdownError, Operand, rounding, take
from engine.provenance.records import Breakdown, Interval, Kind, join_boxes
from engine.provenance.table import explains, locates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from engine.provenance.call import Call
    from engine.provenance.records import Box
    from engine.values import Array

__all__ = ["explain_attention", "explain_multihead", "locate_attention", "locate_multihead"]


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


def _read_attention(call: Call) -> Call:
    """Return a call with PyTorch's arguments."""
    layer = call.layer
    if not isinstance(layer, ncnn.SDPA):
        return call
    if layer.has_cache or call.place:
        raise NoBreakdownError("attention with a cache has no breakdown")
    query, key, value, *mask = call.arrays
    arguments = {
        "query": query, "key": key, "value": value, "attn_mask": mask[0] if mask else None,
        "scale": layer.scale or None, "enable_gqa": True, "is_causal": False, "dropout_p": 0.0,
    }  # fmt: skip
    return replace(call, arguments=arguments)


@locates(scaled_dot_product_attention, ncnn.SDPA)
def locate_attention(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the queries, all of their keys, and the columns of the values."""
    call = _read_attention(call)
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


@explains(scaled_dot_product_attention, ncnn.SDPA)
def explain_attention(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum the values of all keys times the weights of the keys."""
    call = _read_attention(call)
    query, key, value = (call.array(name) for name in ("query", "key", "value"))
    given = call.arguments
    if given["dropout_p"]:
        raise NoBreakdownError("attention with dropout has no breakdown")
    lead, row, column = index[:-2], index[-2], index[-1]

    def batch(operand: Operand) -> tuple[int, ...]:
        own = operand.shape[:-2]
        places = list(lead[len(lead) - len(own) :])
        if given["enable_gqa"] and own and query.ndim > 2:  # several queries share a head
            places[-1] //= query.shape[-3] // own[-1]
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


@locates(ncnn.MultiHeadAttention)
def locate_ncnn_multihead(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the queries, and all keys and values."""
    found = {each.name: each.whole for each in call.arrays}
    query, *others = call.arrays
    if others and query.name not in {each.name for each in others}:
        found[query.name] = (box[0], query.whole[1])
    return found


class _Projection(NamedTuple):
    """A product with a matrix.

    Attributes
    ----------
    weight, bias : ndarray
    """

    weight: Array
    bias: Array


class _Heads(NamedTuple):
    """A module of attention, and the operands of one sample.

    Attributes
    ----------
    heads : int
    projections : sequence
        Of queries, keys and values, with `weight` and `bias`.
    output : object
        The projection of the result.
    scale : float
    sequences : tuple of ndarray
        Queries, keys and values; shape (L, E).
    mask : ndarray or None
    sample, row : int
        Of the query.
    """

    heads: int
    projections: Sequence[Any]
    output: Any
    scale: float
    sequences: tuple[npt.NDArray[np.float64], ...]
    mask: Array | None
    sample: int
    row: int


def _read_heads(call: Call, index: tuple[int, ...]) -> _Heads:
    layer = call.layer
    if isinstance(layer, ncnn.MultiHeadAttention):
        *operands, mask = layer.split(call.arrays)
        query, key, value, out = (
            _Projection(*layer.weights[name]) for name in ("q", "k", "v", "out")
        )
        sequences = tuple([each.value.astype(np.float64) for each in operands])
        values = None if mask is None else mask.value
        return _Heads(
            layer.heads, (query, key, value), out, layer.scale, sequences, values, 0, index[0]
        )  # fmt: skip
    if not isinstance(layer, MultiheadAttention) or call.place or len(index) != 3:
        raise NoBreakdownError("only the result of a batch has a breakdown")
    *operands, mask = _sequences(call, layer)
    sample, row = (index[0], index[1]) if layer.batch_first else (index[1], index[0])
    sequences = tuple([
        (each.value[sample] if layer.batch_first else each.value[:, sample]).astype(np.float64)
        for each in operands
        if each is not None
    ])  # fmt: skip
    scale = 1 / math.sqrt(len(layer.projections[0].weight) // layer.heads)
    values = None if mask is None else mask.value
    return _Heads(
        layer.heads, layer.projections, layer.output, scale, sequences, values, sample, row
    )


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


@explains(MultiheadAttention, ncnn.MultiHeadAttention)
def explain_multihead(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum the results of the heads times a row of the output projection, and the bias.

    The query's own path is followed only: scores are ``(q W_k) · x`` for every key x, and a
    head's result is the projection of the average of the inputs.
    """
    layer = _read_heads(call, index)
    heads, scale, mask = layer.heads, layer.scale, layer.mask
    weights = [np.asarray(each.weight, np.float64) for each in layer.projections]
    biases = [
        np.zeros(len(weight)) if each.bias is None else np.asarray(each.bias, np.float64)
        for each, weight in zip(layer.projections, weights, strict=True)
    ]
    queries, keys, x = layer.sequences
    asked = queries[layer.row]
    q = (weights[0] @ asked + biases[0]).reshape(heads, -1)
    of_key, of_value = (each.reshape(heads, -1, each.shape[-1]) for each in weights[1:])
    reach = np.matmul(q[:, np.newaxis], of_key)[:, 0]
    constant = (q * biases[1].reshape(heads, -1)).sum(axis=1, keepdims=True)
    scores = (reach @ keys.T + constant) * scale
    if mask is not None:
        _ignore(scores, mask, layer.sample, layer.row)
    if not np.isfinite(scores.max(axis=1)).all():
        raise NoBreakdownError("the query attends to no key, or its scores are not finite")
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares = powers / powers.sum(axis=1, keepdims=True)
    average = (shares @ x)[..., np.newaxis]
    mixed = np.matmul(of_value, average)[..., 0] + biases[2].reshape(heads, -1)
    wrong = _head_errors(layer, q * scale, scores, shares, (asked, keys, x))
    width, feature = mixed.size, index[-1]
    output = take(layer.output.weight, "out_proj.weight", grid([feature], range(width)))
    results = make_factor("result of the heads", mixed.reshape(-1))
    terms = multiply([results, output], mixed.shape, ("head", "feature"))
    offset, name = None, ""
    if layer.output.bias is not None:
        offset, name = float(layer.output.bias[feature]), f"out_proj.bias[{feature}]"
    formula = (
        f"y{format_index(index)} = {name + ' + ' if name else ''}"
        f"Σ out_proj.weight[{feature}, k] · h[k], "
        f"h = softmax(q · keys · {scale:.4g}) · values, of {heads} heads"
    )
    found = add_up(call, formula, terms, offset, name)
    error = found.error + 2 * float(np.linalg.norm(output.values * wrong.reshape(-1)))
    return Breakdown(Kind.SUM, formula, terms, found.total, error, offset, name)


def _head_errors(
    layer: _Heads,
    query: npt.NDArray[np.float64],
    scores: npt.NDArray[np.float64],
    shares: npt.NDArray[np.float64],
    sequences: tuple[npt.NDArray[np.float64], ...],
) -> npt.NDArray[np.float64]:
    """Return how far rounding in float32 may take the results of the heads; shape (H, D).

    Errors of single products are independent, so that those of a sum grow like its length.

    Parameters
    ----------
    layer : _Heads
    query : ndarray of shape (H, D)
        Scaled.
    scores, shares : ndarray of shape (H, S)
    sequences : tuple of ndarray
        Inputs of the query, of shape (E,), and of keys and values, of shape (S, E).
    """
    heads, size = query.shape
    asked, keys, x = sequences
    squares = [np.square(np.asarray(each.weight, np.float32)) for each in layer.projections]
    of_query, of_key = (
        np.sqrt(square @ np.square(each).astype(np.float32)).reshape(heads, size)
        for square, each in zip(squares, (asked, np.abs(keys).max(axis=0)), strict=False)
    )
    average = (shares @ np.square(x)).astype(np.float32)[..., np.newaxis]
    of_values = squares[2].reshape(heads, -1, x.shape[1])
    spread = np.sqrt(np.matmul(of_values, average)[..., 0])
    unit = 4 * (math.sqrt(x.shape[1]) + 4) * rounding(np.dtype(np.float32))
    inexact = np.hypot(query * of_key, 4 * layer.scale * of_key * of_query)
    finite = np.where(np.isfinite(scores), np.abs(scores), 0.0)
    score = unit * (np.sqrt(np.square(inexact).sum(axis=1)) + finite.max(axis=1))
    return np.asarray(unit * spread + 4 * score[:, np.newaxis] * spread, np.float64)


def _sequences(
    call: Call, layer: MultiheadAttention
) -> tuple[Operand, Operand, Operand, Operand | None]:
    """Return query, key and value, and an additive or bool mask of scores.

    Raises
    ------
    NoBreakdownError
        If there are others, or additional keys.
    """
    mask = call.arguments.get("attn_mask")
    given = [each for each in call.arguments["operands"] if isinstance(each, Operand)]
    plain = not layer.has_extra_keys and call.arguments.get("key_padding_mask") is None
    same = all(each.ndim == 3 for each in given) and 1 <= len(given) <= 3
    if not plain or not same or not (mask is None or isinstance(mask, Operand)):
        raise NoBreakdownError("attention with these operands has no breakdown")
    key = given[min(1, len(given) - 1)]
    if mask is not None and mask.shape not in _mask_shapes(call, layer, key):
        raise NoBreakdownError("attention with this mask has no breakdown")
    return given[0], key, given[-1], mask


def _mask_shapes(
    call: Call, layer: MultiheadAttention, key: Operand
) -> tuple[tuple[int, ...], ...]:
    """Return the shapes of masks for all heads alike, and for each sample and head."""
    samples, length = call.shape[:2] if layer.batch_first else call.shape[1::-1]
    scores = length, key.shape[1 if layer.batch_first else 0]
    return scores, (samples * layer.heads, *scores)


def _ignore(scores: npt.NDArray[np.float64], mask: Array, sample: int, row: int) -> None:
    """Apply a mask to the scores of one query, of shape (H, S), in place."""
    heads = len(scores)
    part = mask[row] if mask.ndim == 2 else mask[sample * heads : (sample + 1) * heads, row]
    if part.dtype == np.bool_:
        scores[np.broadcast_to(part, scores.shape)] = -np.inf
    else:
        scores += part
