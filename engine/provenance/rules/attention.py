"""Attention: a query averages the values by the weights of its keys."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from engine.layers.attention import scaled_dot_product_attention
from engine.layers.multihead_attention import MultiheadAttention, split_inputs
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
from engine.provenance.records import Breakdown, Interval, Kind, Step, join_boxes
from engine.provenance.table import explains, locates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from engine.provenance.call import Call
    from engine.provenance.records import Box
    from engine.values import Array

__all__ = [
    "MultiheadInputs",
    "Projection",
    "QueryHeads",
    "explain_attention",
    "explain_multihead",
    "locate_attention",
    "locate_multihead",
    "mix_heads",
    "read_attention",
    "read_multihead",
    "seen_keys",
]


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


def read_attention(call: Call) -> Call:
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


def _mask_box(shape: tuple[int, ...], lead: Box, rows: Interval) -> Box:
    """Return the region of a mask for some queries, and all of their keys."""
    scores = (*lead, rows)[-len(shape) + 1 :] if len(shape) > 1 else ()
    kept = [
        each if size > 1 else Interval.whole(size)
        for each, size in zip(scores, shape, strict=False)
    ]
    return (*kept, Interval.whole(shape[-1]))


def seen_keys(mask: Operand | Array, box: Box, count: int, *, seen: bool = True) -> Interval:
    """Return the keys that a query of a region of a mask may attend to.

    Parameters
    ----------
    mask : Operand or ndarray
        Of bool, or added to the scores.
    box : Box
        All keys of some queries.
    count : int
        Of keys.
    seen : bool, optional
        What a bool mask has for a key that is attended to.
    """
    whole = Interval.whole(count)
    values = (mask.value if isinstance(mask, Operand) else mask)[
        tuple([slice(each.start, each.stop) for each in box])
    ]
    if values.shape[-1] != count or values.dtype.kind not in "bf":
        return whole
    if values.dtype.kind == "b":
        attends = values if seen else ~values
    else:
        # The smallest number hides a key as infinity does, unless all keys of a query have it.
        attends = ~(values <= np.finfo(values.dtype).min / 2)
        attends |= ~attends.any(axis=-1, keepdims=True) & ~np.isneginf(values)
    places = np.flatnonzero(attends.any(axis=tuple(range(attends.ndim - 1))))
    return Interval(int(places[0]), int(places[-1]) + 1) if places.size else whole


@locates(scaled_dot_product_attention, ncnn.SDPA)
def locate_attention(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the queries, the keys that no mask hides, and the columns of the values."""
    call = read_attention(call)
    query, key, value = (call.array(name) for name in ("query", "key", "value"))
    lead, rows, columns = box[:-2], box[-2], box[-1]
    mask, keys = call.arguments["attn_mask"], Interval.whole(key.shape[-2])
    hidden = None if mask is None else _mask_box(mask.shape, lead, rows)
    if call.arguments["is_causal"]:
        keys = Interval(0, max(1, min(rows.stop, key.shape[-2])))
    elif hidden is not None:
        keys = seen_keys(mask, hidden, key.shape[-2])
    found: dict[str, Box] = {}
    for operand, region in (
        (query, _aligned(query, lead, (rows, Interval.whole(query.shape[-1])))),
        (key, _aligned(key, _heads(call, lead, key), (keys, Interval.whole(key.shape[-1])))),
        (value, _aligned(value, _heads(call, lead, value), (keys, columns))),
    ):
        found[operand.name] = join_boxes(found.get(operand.name), region)
    if isinstance(mask, Operand) and hidden is not None:
        found[mask.name] = join_boxes(found.get(mask.name), hidden)
    return found


@explains(scaled_dot_product_attention, ncnn.SDPA)
def explain_attention(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum the values of all keys times the weights of the keys."""
    call = read_attention(call)
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
    """Return the queries, and the keys and values that no mask hides."""
    query, key, value, mask = _split(call)
    keys, found = Interval.whole(key.shape[0]), {each.name: each.whole for each in call.arrays}
    if mask is not None:
        found[mask.name] = _mask_box(mask.shape, (Interval.whole(mask.shape[0]),), box[0])
        keys = seen_keys(mask, found[mask.name], key.shape[0])
    regions: dict[str, Box] = {}
    for each, rows in ((query, box[0]), (key, keys), (value, keys)):
        regions[each.name] = join_boxes(regions.get(each.name), (rows, each.whole[1]))
    return {**found, **regions}


def _split(call: Call) -> tuple[Operand, Operand, Operand, Operand | None]:
    """Return query, key, value and mask of ncnn's attention."""
    layer = call.layer
    if not isinstance(layer, ncnn.MultiHeadAttention):
        raise NoBreakdownError("attention with these operands has no breakdown")
    return layer.split(call.arrays)


class Projection(NamedTuple):
    """A product with a matrix.

    Attributes
    ----------
    weight, bias : ndarray
    """

    weight: Array
    bias: Array


class QueryHeads(NamedTuple):
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
    masks : list of ndarray
        Of the query, each of shape (S,) or (H, S); true for keys to ignore.
    extra : tuple of ndarray
        Additional keys and values, projected; shape (K, E).
    row : int
        Of the query.
    unseen : float
        Weights of a query that attends to no key.
    """

    heads: int
    projections: Sequence[Any]
    output: Any
    scale: float
    sequences: tuple[npt.NDArray[np.float64], ...]
    masks: list[Array]
    extra: tuple[Array, Array]
    row: int
    unseen: float = math.nan


def _read_heads(call: Call, index: tuple[int, ...]) -> QueryHeads:
    layer = call.layer
    if isinstance(layer, ncnn.MultiHeadAttention):
        *operands, mask = _split(call)
        query, key, value, out = (
            Projection(*layer.weights[name]) for name in ("q", "k", "v", "out")
        )
        sequences = tuple([each.value.astype(np.float64) for each in operands])
        masks = [] if mask is None else [mask.value[..., index[0], :]]
        none = np.zeros((0, len(query.weight)))
        return QueryHeads(
            layer.heads, (query, key, value), out, layer.scale, sequences, masks, (none, none),
            index[0],
        )  # fmt: skip
    given = read_multihead(call)
    torch_layer = given.layer
    is_flat = torch_layer.is_flat(given.sequences)  # type: ignore[arg-type] # dimensions
    if call.place:  # weights, of samples, perhaps heads, and queries
        sample, row = 0 if is_flat else index[0], index[-2]
    else:
        sample, row = (0, index[0]) if is_flat else index[:2]
        if not torch_layer.batch_first and not is_flat:
            sample, row = row, sample
    sequences = tuple([
        (
            each.value if each.ndim == 2
            else each.value[sample] if torch_layer.batch_first
            else each.value[:, sample]
        ).astype(np.float64)
        for each in given.sequences
    ])  # fmt: skip
    width = len(torch_layer.projections[0].weight)
    return QueryHeads(
        torch_layer.heads,
        torch_layer.projections,
        torch_layer.output,
        1 / math.sqrt(width // torch_layer.heads),
        sequences,
        _rows_of_masks(given, sample, row),
        torch_layer.extra_rows,
        row,
        torch_layer.unseen,
    )


class MultiheadInputs(NamedTuple):
    """The operands of a module of attention.

    Attributes
    ----------
    layer : MultiheadAttention
    sequences : tuple of Operand
        Queries, keys and values.
    mask, padding : Operand or None
        Of scores, and of the keys of a sample.
    """

    layer: MultiheadAttention
    sequences: tuple[Operand, Operand, Operand]
    mask: Operand | None
    padding: Operand | None


def read_multihead(call: Call) -> MultiheadInputs:
    """Return the operands of a module of attention by what they are.

    Raises
    ------
    NoBreakdownError
        If one is no tensor.
    """
    layer, given = call.layer, call.arguments
    operands: Any = given["operands"]
    mask, padding = given.get("attn_mask"), given.get("key_padding_mask")
    if not isinstance(layer, MultiheadAttention) or not all(
        isinstance(each, Operand) for each in operands
    ):
        raise NoBreakdownError("attention with these operands has no breakdown")
    # Only their shapes and dtypes count here.
    operands, mask = layer.sort_operands(tuple(operands), mask)
    sequences, padding = split_inputs(operands, padding)
    query, key, value = cast("list[Operand]", sequences)
    if mask is None and given.get("key_padding_mask") is None:
        mask, padding = padding, None  # an operand that the file does not name
    return MultiheadInputs(layer, (query, key, value), mask, padding)  # type: ignore[arg-type]


def _rows_of_masks(given: MultiheadInputs, sample: int, row: int) -> list[Array]:
    """Return the masks of one query, each of shape (S,) or (H, S)."""
    heads = given.layer.heads
    of_heads = slice(sample * heads, (sample + 1) * heads)
    places: dict[str, Any] = {"N": sample, "L": row, "1": 0, "H": of_heads}
    return [
        mask.value[tuple([places[axis] for axis in _axes_of_mask(given, mask)[:-1]])]
        for mask in (given.mask, given.padding)
        if mask is not None
    ]


def _axes_of_mask(given: MultiheadInputs, mask: Operand) -> str:
    """Return a letter for each dimension of a mask.

    N are samples, H the heads of all samples, L queries and S keys; 1 stands for any sample.
    """
    query, key, _ = given.sequences
    batch_first = given.layer.batch_first
    rows, count = (
        each.shape[-2 if batch_first or each.ndim == 2 else 0] for each in (query, key)
    )
    if mask.ndim < 3:
        is_padding = mask is given.padding or mask.shape != (rows, count)
        return "S" if mask.ndim == 1 else "NS" if is_padding else "LS"
    if mask.shape[0] == 1:
        return "1LS"
    return "NLS" if mask.shape[0] == query.shape[0 if batch_first else 1] else "HLS"


def _region_of_mask(
    given: MultiheadInputs, mask: Operand, samples: Interval, rows: Interval
) -> Box:
    """Return the region of a mask for some queries, and all of their keys."""
    heads = given.layer.heads
    regions = {
        "N": samples,
        "H": Interval(samples.start * heads, samples.stop * heads),
        "1": Interval.whole(1),
        "L": rows,
        "S": Interval.whole(mask.shape[-1]),
    }
    return tuple([regions[axis] for axis in _axes_of_mask(given, mask)])


@locates(MultiheadAttention)
def locate_multihead(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the queries, and the keys and values of the sample that no mask hides."""
    given = read_multihead(call)
    layer, sequences = given.layer, given.sequences
    is_flat = layer.is_flat(sequences)  # type: ignore[arg-type] # only asked for dimensions
    if is_flat:
        samples, rows = Interval.whole(1), box[-2]
    elif call.place:  # weights, of samples, perhaps heads, and queries
        samples, rows = box[0], box[-2]
    else:
        samples, rows = box[:2] if layer.batch_first else box[1::-1]
    place = -2 if layer.batch_first or is_flat else 0
    count = sequences[1].shape[place]
    keys = Interval.whole(count)
    found: dict[str, Box] = {}
    for mask in (given.mask, given.padding):
        if mask is not None:
            region = _region_of_mask(given, mask, samples, rows)
            seen = seen_keys(mask, region, count, seen=False)
            keys = Interval(max(keys.start, seen.start), min(keys.stop, seen.stop))
            found[mask.name] = join_boxes(found.get(mask.name), region)
    for part, each in enumerate(sequences):
        region_of_each = list(each.whole)
        if not is_flat:
            region_of_each[0 if layer.batch_first else 1] = samples
        region_of_each[place] = rows if part == 0 else keys
        found[each.name] = join_boxes(found.get(each.name), tuple(region_of_each))
    return found


class _Asked(NamedTuple):
    """How a query attends, by head.

    Attributes
    ----------
    query : ndarray of shape (H, D)
    scores, shares : ndarray of shape (H, S + K)
        Of all keys; the additional ones are last. Shares are the weights.
    """

    query: npt.NDArray[np.float64]
    scores: npt.NDArray[np.float64]
    shares: npt.NDArray[np.float64]


def _bias_of(projection: Any) -> npt.NDArray[np.float64]:
    if projection.bias is None:
        return np.zeros(len(projection.weight))
    return np.asarray(projection.bias, np.float64)


def _ask(layer: QueryHeads) -> _Asked:
    """Compute the weights of the keys: scores are ``(q W_k) · x`` for every key x."""
    heads, scale = layer.heads, layer.scale
    of_query, of_key = (np.asarray(each.weight, np.float64) for each in layer.projections[:2])
    queries, keys, _ = layer.sequences
    asked = queries[layer.row]
    q = (of_query @ asked + _bias_of(layer.projections[0])).reshape(heads, -1)
    reach = np.matmul(q[:, np.newaxis], of_key.reshape(heads, -1, of_key.shape[-1]))[:, 0]
    constant = (q * _bias_of(layer.projections[1]).reshape(heads, -1)).sum(1, keepdims=True)
    scores = (reach @ keys.T + constant) * scale
    for mask in layer.masks:
        _ignore(scores, mask)
    extra = _cut(layer.extra[0], heads, q.shape[1])
    more = np.matmul(extra, q[..., np.newaxis])[..., 0] * scale
    scores = np.concatenate([scores, more], axis=1)
    peaks = scores.max(axis=1, keepdims=True)
    is_unseen = np.isneginf(peaks)
    if not np.isfinite(peaks[~is_unseen]).all() or (is_unseen.any() and layer.unseen):
        raise NoBreakdownError("the query attends to no key, or its scores are not finite")
    powers = np.exp(scores - np.where(is_unseen, 0.0, peaks))
    return _Asked(q, scores, powers / np.where(is_unseen, 1.0, powers.sum(1, keepdims=True)))


def _cut(rows: Array, heads: int, width: int) -> npt.NDArray[np.float64]:
    """Split rows by heads; shape (H, K, D)."""
    found: npt.NDArray[np.float64] = rows.reshape(len(rows), heads, width).astype(np.float64)
    return found.swapaxes(0, 1)


def _explain_weight(call: Call, layer: QueryHeads, index: tuple[int, ...]) -> Breakdown:
    """Divide one exponential by the sum of all keys, or average that over the heads."""
    found, key = _ask(layer), index[-1]
    _, score = _head_errors(layer, found)
    shares = found.shares[:, key]
    place = format_index(index)
    if len(index) - (not _is_flat(call)) == 3:  # heads are apart
        head = index[-3]
        scores = found.scores[head]
        powers = make_factor("exp(score − max)", np.exp(scores - scores.max()))
        terms = multiply([powers], (len(scores),), ("key",))
        formula = f"y{place} = exp(score of key {key} − max) / Σ exp(score − max), head {head}"
        steps = (Step("score", float(scores[key])), Step("max", float(scores.max())))
        total = float(shares[head])
        error = 4 * float(score[head]) * total + 2 * rounding(call.dtype)
        return Breakdown(Kind.SHARE, formula, terms, total, error, chosen=int(key), steps=steps)
    factors = [
        make_factor("weight in the head", shares),
        make_factor("1 / heads", np.full(layer.heads, 1 / layer.heads)),
    ]
    terms = multiply(factors, (layer.heads,), ("head",))
    formula = f"y{place} = 1/{layer.heads} · Σ p[h], p[h] = softmax(scores of head h)[{key}]"
    result = add_up(call, formula, terms)
    error = result.error + 4 * float((score * shares).mean())
    return replace(result, error=error)


def _is_flat(call: Call) -> bool:
    given = read_multihead(call)
    return given.layer.is_flat(given.sequences)  # type: ignore[arg-type] # dimensions


@explains(MultiheadAttention, ncnn.MultiHeadAttention)
def explain_multihead(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum the results of the heads times a row of the output projection, and the bias.

    The query's own path is followed only: a head's result is the projection of the average of
    the inputs. The second output is the weights.
    """
    layer = _read_heads(call, index)
    if call.place:
        return _explain_weight(call, layer, index)
    heads, scale = layer.heads, layer.scale
    mixed, wrong = mix_heads(layer)
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
    result = add_up(call, formula, terms, offset, name)
    error = result.error + 2 * float(np.linalg.norm(output.values * wrong.reshape(-1)))
    return Breakdown(Kind.SUM, formula, terms, result.total, error, offset, name)


def mix_heads(
    layer: QueryHeads,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the results of the heads, and how far rounding may take them; shape (H, D)."""
    heads, found, x = layer.heads, _ask(layer), layer.sequences[2]
    count, width = len(x), found.query.shape[1]
    shares, more = found.shares[:, :count], found.shares[:, count:]
    values = np.asarray(layer.projections[2].weight, np.float64)
    average = (shares @ x)[..., np.newaxis]
    shift = _bias_of(layer.projections[2]).reshape(heads, -1) * shares.sum(1, keepdims=True)
    mixed = np.matmul(values.reshape(heads, -1, x.shape[1]), average)[..., 0] + shift
    mixed += np.matmul(more[:, np.newaxis], _cut(layer.extra[1], heads, width))[:, 0]
    wrong, _ = _head_errors(layer, found)
    return mixed, wrong


def _head_errors(
    layer: QueryHeads, found: _Asked
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return how far rounding in float32 may take the heads.

    Errors of single products are independent, so that those of a sum grow like its length.

    Returns
    -------
    ndarray of shape (H, D)
        Errors of their results.
    ndarray of shape (H,)
        Errors of their scores.
    """
    queries, keys, x = layer.sequences
    asked, query = queries[layer.row], found.query * layer.scale
    scores, shares = (each[:, : len(x)] for each in (found.scores, found.shares))
    heads, size = query.shape
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
    # Of keys with a weight: a mask may add the smallest number to the others.
    finite = np.where(np.isfinite(scores) & (shares > 0), np.abs(scores), 0.0)
    score = unit * (np.sqrt(np.square(inexact).sum(axis=1)) + finite.max(axis=1))
    wrong = unit * spread + 4 * score[:, np.newaxis] * spread
    return np.asarray(wrong, np.float64), np.asarray(score, np.float64)


def _ignore(scores: npt.NDArray[np.float64], mask: Array) -> None:
    """Apply a mask of one query, of shape (S,) or (H, S), to its scores in place."""
    if mask.dtype == np.bool_:
        scores[np.broadcast_to(mask, scores.shape)] = -np.inf
    else:
        scores += mask
