"""Attention as one operator of ONNX, and the rotation that comes before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine.errors import InferStatus, LayerError, describe_shapes
from engine.layers.layer import OperatorCall, Outputs
from engine.layers.registry import register
from engine.layers.windows import working_dtype
from engine.values import Array

if TYPE_CHECKING:
    from engine.promotion import DType

__all__ = ["attention", "rotary_embedding"]


@register("Attention")
def attention(
    *operands: Array,
    call: OperatorCall,
    is_causal: int = 0,
    kv_num_heads: int | None = None,
    q_num_heads: int | None = None,
    qk_matmul_output_mode: int = 0,
    scale: float | None = None,
    softcap: float = 0.0,
    softmax_precision: int | None = None,
    left_window_size: int = -1,
    right_window_size: int = -1,
) -> Outputs:
    """Mix values by matching queries with keys: ONNX ``Attention``.

    ``softmax(query @ key.T * scale + mask) @ value``.

    Parameters
    ----------
    *operands : ndarray
        Query of shape (N, H, L, E) or (N, L, H * E), key and value with S steps. Optional: a
        mask that broadcasts to (N, H, L, S), past keys and values, which precede the new ones,
        and the int64 number (N,) of valid keys.
    is_causal : int
        Whether query l attends only to keys up to l, counted from the end of the past keys.
    kv_num_heads, q_num_heads : int, optional
        Heads of keys and values, and of queries, for operands of three dimensions.
    qk_matmul_output_mode : int
        The fourth output: 0 for the scores, 1 for the scores after `softcap`, 2 for the
        scores with the mask added, 3 for the attention weights.
    scale : float, optional
        ``1 / sqrt(E)`` by default.
    softcap : float
        Scores become ``softcap * tanh(score / softcap)``; 0 for no change.
    softmax_precision : int, optional
        No effect: attention weights are computed in float32 at least.
    left_window_size, right_window_size : int
        Number of keys before and after its own position that a query attends to; -1 for all.

    Returns
    -------
    ndarray of the shape of the query, with the values' last dimension
        0 for a query that attends to no key.
    ndarray of shape (N, H, S, E)
        Keys, past ones included.
    ndarray of shape (N, H, S, V)
        Values, past ones included.
    ndarray of shape (N, H, L, S)
        Scores or attention weights.
    """
    if len(operands) < 3:
        raise LayerError("query, key and value are needed", InferStatus.kInferInputsEmpty)
    query, key, value = operands[:3]
    mask, past, lengths = _read_optional(operands[3:])
    flat = query.ndim == 3
    if flat:
        query = _split_heads(query, q_num_heads)
        key, value = (_split_heads(x, kv_num_heads) for x in (key, value))
    first: Any = 0
    if past:
        first = past[0].shape[2]
        key, value = np.concatenate((past[0], key), 2), np.concatenate((past[1], value), 2)
    elif lengths is not None:
        first = lengths.reshape(-1, 1, 1, 1) - query.shape[2]
    work = working_dtype(query.dtype)
    q, k, v = (x.astype(work, copy=False) for x in (query, key, value))
    k, v = _repeat_heads(k, q), _repeat_heads(v, q)
    by = 1 / np.sqrt(q.shape[-1]) if scale is None else scale
    scores: Array = np.matmul(q * work.type(by), k.swapaxes(-1, -2))
    capped = softcap * np.tanh(scores / work.type(softcap)) if softcap else scores
    added = _to_additive(mask, k.shape[2], work)
    places = np.arange(q.shape[2])[:, np.newaxis] + first
    seen = _make_window_mask(
        places, np.arange(k.shape[2]), 0 if is_causal else right_window_size, left_window_size
    )
    if lengths is not None:
        seen = seen & (np.arange(k.shape[2]) < lengths.reshape(-1, 1, 1, 1))
    added = np.where(seen, added, work.type(-np.inf))
    masked = capped + added
    shares = _softmax_scores(masked, added)
    result = np.matmul(shares, v).astype(query.dtype, copy=False)
    if flat:
        result = result.swapaxes(1, 2).reshape(len(result), result.shape[2], -1)
    shown = (scores, capped, masked, shares)[qk_matmul_output_mode]
    extra = shown.astype(query.dtype, copy=False)
    if call.output_count == 2:  # the file omits keys and values together
        return Outputs((result, extra))
    return Outputs((result, key, value, extra))


def _read_optional(
    operands: tuple[Array, ...],
) -> tuple[Array | None, tuple[Array, ...], Array | None]:
    """Return mask, past keys and values, and numbers of keys; None for missing ones."""
    lengths = [x for x in operands if x.dtype.kind in "iu" and x.ndim == 1]
    rest = tuple(x for x in operands if not (x.dtype.kind in "iu" and x.ndim == 1))
    mask = rest[0] if len(rest) % 2 else None
    return mask, rest[len(rest) % 2 :], lengths[0] if lengths else None


def _split_heads(x: Array, heads: int | None) -> Array:
    """From (N, L, H * E) to (N, H, L, E)."""
    if not heads or x.shape[2] % heads:
        raise LayerError(
            f"{describe_shapes([x.shape])} cannot be split into {heads} heads",
            InferStatus.kInferArraySizeMismatch,
        )
    return x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)


def _repeat_heads(x: Array, query: Array) -> Array:
    """Repeat heads of keys or values for the queries' heads that share them."""
    if not x.shape[1] or query.shape[1] % x.shape[1]:
        raise LayerError(
            f"{x.shape[1]} heads cannot be shared among {query.shape[1]} heads of queries",
            InferStatus.kInferArraySizeMismatch,
        )
    return np.repeat(x, query.shape[1] // x.shape[1], 1)


def _to_additive(mask: Array | None, keys: int, dtype: DType) -> Array:
    """Convert a mask to an additive one; keys beyond its size are ignored."""
    if mask is None:
        return np.zeros((), dtype)
    if mask.dtype == np.bool_:
        mask = np.where(mask, dtype.type(0), dtype.type(-np.inf))
    missing = ((0, 0),) * (mask.ndim - 1) + ((0, keys - mask.shape[-1]),)
    result = np.pad(mask, missing, constant_values=-np.inf)
    return result.astype(dtype, copy=False)


def _make_window_mask(queries: Array, keys: Array, ahead: int, behind: int) -> Array:
    """Return a mask of the keys in a window before and after each query; -1 for all."""
    distance = keys - queries
    seen = np.ones(distance.shape, np.bool_)
    if ahead >= 0:
        seen &= distance <= ahead
    if behind >= 0:
        seen &= -distance <= behind
    return seen


def _softmax_scores(scores: Array, added: Array) -> Array:
    """Softmax over the keys; 0 for a query that attends to none."""
    peak = scores.max(-1, keepdims=True, initial=-np.inf)
    shares = np.exp(scores - np.where(np.isneginf(peak), 0, peak))
    total = shares.sum(-1, keepdims=True)
    blind = np.isneginf(added.max(-1, keepdims=True, initial=-np.inf))
    return np.where(blind, 0, shares / np.where(total == 0, 1, total)).astype(scores.dtype)


@register("RotaryEmbedding")
def rotary_embedding(
    x: Array,
    cos_cache: Array,
    sin_cache: Array,
    position_ids: Array | None = None,
    interleaved: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
) -> Array:
    """Rotate pairs of features by angles of their position: ONNX ``RotaryEmbedding``.

    Parameters
    ----------
    x : ndarray of shape (N, H, L, E) or (N, L, H * E)
    cos_cache, sin_cache : ndarray of shape (P, R / 2), or (N, L, R / 2) without positions
        Cosine and sine of the angles.
    position_ids : int64 ndarray of shape (N, L), optional
        Row of the caches of each step.
    interleaved : int
        Whether pairs are neighbours, instead of one feature from each half.
    num_heads : int
        H, for inputs of three dimensions.
    rotary_embedding_dim : int
        R, the number of rotated features; 0 for all.

    Returns
    -------
    ndarray of the input's shape
    """
    heads = x if x.ndim == 4 else _split_heads(x, num_heads)
    cos, sin = (
        (cache if position_ids is None else cache[position_ids])[:, np.newaxis]
        for cache in (cos_cache, sin_cache)
    )
    count = rotary_embedding_dim or heads.shape[-1]
    result = heads.copy()
    turned = result[..., :count]
    half = count // 2
    parts = (
        (slice(0, None, 2), slice(1, None, 2))
        if interleaved
        else (slice(0, half), slice(half, None))
    )
    first, second = (heads[..., :count][..., part] for part in parts)
    turned[..., parts[0]] = cos * first - sin * second
    turned[..., parts[1]] = sin * first + cos * second
    return result if x.ndim == 4 else result.swapaxes(1, 2).reshape(x.shape)
