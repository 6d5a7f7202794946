"""Softmax and attention."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from engine.layers.attention import prepare_attention, scaled_dot_product_attention
from engine.layers.multihead_attention import Heads, MultiheadAttention, combine_masks
from engine.layers.ncnn.products import SDPA, MultiHeadAttention
from engine.layers.softmax import log_softmax, softmin
from engine.provenance.call import NoBreakdownError, Operand
from engine.provenance.rules.attention import read_attention, read_multihead
from engine.provenance.rules.softmax import CODES, softmax_axis
from engine.provenance.slopes import accumulate, softmax, unbroadcast, wide
from engine.provenance.table import passes_back

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.provenance.call import Call
    from engine.provenance.slopes import Gradient
    from engine.values import Array


__all__ = ["attend_backward", "split_heads"]


@passes_back(*CODES)
def _shared(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    given, axis = call.array("input"), softmax_axis(call)
    sign = -1.0 if call.layer_code is softmin else 1.0
    shares = softmax(sign * wide(given), axis)
    if call.layer_code is log_softmax:
        back = gradient - shares * gradient.sum(axis=axis, keepdims=True)
    else:
        back = shares * (gradient - (gradient * shares).sum(axis=axis, keepdims=True))
    return {given.name: sign * back}


@passes_back(scaled_dot_product_attention, SDPA)
def _attended(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    call = read_attention(call)
    given = call.arguments
    operands = [call.array(name) for name in ("query", "key", "value")]
    if given["dropout_p"]:
        raise NoBreakdownError("attention with dropout is not followed")
    given_mask = given["attn_mask"]
    mask = given_mask.value if isinstance(given_mask, Operand) else given_mask
    query, key, value = (wide(each) for each in operands)
    key, value, mask = prepare_attention(
        query, key, value, mask, is_causal=given["is_causal"], enable_gqa=given["enable_gqa"]
    )
    *backs, by_score = attend_backward(query, key, value, mask, given["scale"], gradient)
    found: dict[str, Gradient] = {}
    for operand, back in zip(operands, backs, strict=True):
        if given["enable_gqa"] and back.shape[-3] != operand.shape[-3]:
            groups = (*back.shape[:-3], operand.shape[-3], -1, *back.shape[-2:])
            back = back.reshape(groups).sum(axis=-3)  # noqa: PLW2901 - heads that share
        accumulate(found, operand.name, unbroadcast(back, operand.shape))
    if isinstance(given_mask, Operand) and given_mask.dtype.kind == "f":
        accumulate(found, given_mask.name, unbroadcast(by_score, given_mask.shape))
    return found


def attend_backward(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None,
    scale: float | None,
    gradient: Gradient,
) -> tuple[Array, Array, Array, Array]:
    """Return the gradients by queries, keys, values and scores; any batch dimensions.

    The mask is additive, or bool and true for keys to attend to.
    """
    factor = 1 / np.sqrt(max(1, query.shape[-1])) if scale is None else float(scale)
    scores = query @ key.swapaxes(-1, -2) * factor
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == np.bool_ else scores + mask
    shares = softmax(scores)
    by_value = shares.swapaxes(-1, -2) @ gradient
    by_share = gradient @ value.swapaxes(-1, -2)
    by_score = shares * (by_share - (by_share * shares).sum(axis=-1, keepdims=True))
    scaled = by_score * factor
    return scaled @ key, scaled.swapaxes(-1, -2) @ query, by_value, by_score


@passes_back(MultiheadAttention)
def _multihead(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Go back through the output projection, the heads and the projections of the inputs."""
    if call.place:
        raise NoBreakdownError("the weights of the keys are not followed")
    layer, used, mask, padding = read_multihead(call)
    is_flat = gradient.ndim == 2
    batched = partial(_batch, layer=layer, is_flat=is_flat)
    query, key, value = (
        split_heads(
            np.concatenate([
                batched(wide(each)) @ wide(projection.weight).T
                + (0 if projection.bias is None else projection.bias),
                *rows,
            ], axis=1),
            layer.heads,
        )
        for each, projection, rows in zip(
            used, layer.projections, _extra_rows(layer, gradient), strict=True
        )
    )  # fmt: skip
    masks = [each.value for each in (mask, padding) if each is not None]
    count = len(layer.extra_rows[0])
    whole = combine_masks(masks, Heads(query, key, value), count) if masks else None
    mixed = split_heads(batched(gradient) @ wide(layer.output.weight), layer.heads)
    *backs, by_score = attend_backward(query, key, value, whole, None, mixed)
    found: dict[str, Gradient] = {}
    for operand, back, projection in zip(used, backs, layer.projections, strict=True):
        own = _project_back(back, wide(projection.weight))
        length = operand.shape[-2 if is_flat or layer.batch_first else 0]
        own = own[:, :length]  # without the additional keys
        accumulate(found, operand.name, own[0] if is_flat else batched(own))
    for each in (mask, padding):
        if each is not None and each.dtype.kind == "f":
            accumulate(found, each.name, _by_mask(each, by_score, layer))
    return found


def _batch(array: Array, layer: MultiheadAttention, *, is_flat: bool) -> Array:
    """Return an array with the samples first, or one that has them first as it was."""
    if is_flat:
        return array[np.newaxis]
    return array if layer.batch_first else array.swapaxes(0, 1)


def _extra_rows(layer: MultiheadAttention, gradient: Gradient) -> list[list[Array]]:
    """Return what is appended to queries, keys and values; each of shape (N, K, E)."""
    samples = 1 if gradient.ndim == 2 else gradient.shape[0 if layer.batch_first else 1]
    keys, values = (
        np.broadcast_to(rows, (samples, *rows.shape)) for rows in layer.extra_rows
    )  # fmt: skip
    return [[], [keys], [values]]


def _by_mask(mask: Operand, by_score: Gradient, layer: MultiheadAttention) -> Gradient:
    """Return the gradient by an additive mask from that by the scores, of (N, H, L, S)."""
    samples, heads, rows, columns = by_score.shape
    columns -= len(layer.extra_rows[0])
    part = by_score[..., :columns]
    if mask.shape == (samples, columns) and mask.shape != (rows, columns):
        return np.asarray(part.sum(axis=(1, 2)))
    if mask.ndim == 3 and mask.shape[0] == samples * heads:
        return part.reshape(mask.shape)
    if mask.ndim == 3:
        return unbroadcast(part.sum(axis=1), mask.shape)
    return unbroadcast(part, mask.shape)


@passes_back(MultiHeadAttention)
def _ncnn_multihead(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Do the same for the module of ncnn, which has no batch."""
    layer = call.layer
    if not isinstance(layer, MultiHeadAttention):
        raise NoBreakdownError("this is no module of attention")
    *used, mask = layer.split(call.arrays)
    names = ("q", "k", "v")
    heads = [
        split_heads(
            (wide(each) @ wide(layer.weights[name][0]).T + layer.weights[name][1])[np.newaxis],
            layer.heads,
        )
        for name, each in zip(names, used, strict=True)
    ]  # fmt: skip
    mixed = split_heads((gradient @ wide(layer.weights["out"][0]))[np.newaxis], layer.heads)
    values = None if mask is None else wide(mask)
    query, key, value = heads
    *backs, by_score = attend_backward(query, key, value, values, layer.scale, mixed)
    found: dict[str, Gradient] = {}
    for name, operand, back in zip(names, used, backs, strict=True):
        accumulate(found, operand.name, _project_back(back, wide(layer.weights[name][0]))[0])
    if mask is not None:
        accumulate(found, mask.name, unbroadcast(by_score, mask.shape))
    return found


def _project_back(by_head: Array, weight: Array) -> Array:
    """Return the gradient by a sequence, of (N, L, E), from that by its heads."""
    joined = by_head.swapaxes(1, 2).reshape(by_head.shape[0], by_head.shape[2], -1)
    back: Array = joined @ weight
    return back


def split_heads(array: Array, heads: int) -> Array:
    """From (N, L, H * D) to (N, H, L, D)."""
    samples, length, width = array.shape
    return array.reshape(samples, length, heads, width // heads).swapaxes(1, 2)
