"""Attention: each query averages the values, weighted by its match with their keys.

The scores of all queries against all keys would be large. They are computed for a block of
queries at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np
from numpy.random import Generator

from engine.errors import InferStatus, LayerError, describe_shapes
from engine.layers.arguments import require_products
from engine.layers.dropout import drop
from engine.layers.random_numbers import require_probability
from engine.layers.registry import register
from engine.layers.windows import new_output, working_dtype
from engine.promotion import promote_types
from engine.values import Array

__all__ = [
    "attend",
    "attention_scores",
    "attention_weights",
    "normalise_scores",
    "prepare_attention",
    "scaled_dot_product_attention",
]

_MOST_SCORES: Final = 1 << 36  # each score needs an exponential
_SCORE_BYTES: Final = 32 << 20  # scores of a block; a single query may have more


@register(
    "F.scaled_dot_product_attention", "aten::scaled_dot_product_attention",
    random_unless={"dropout_p": 0},
)  # fmt: skip
def scaled_dot_product_attention(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    rng: Generator,
) -> Array:
    """Mix values by matching queries with keys: ``F.scaled_dot_product_attention``.

    ``softmax(query @ key.T * scale + attn_mask) @ value``.

    Parameters
    ----------
    query : ndarray of shape (..., H, L, E)
    key : ndarray of shape (..., H, S, E)
    value : ndarray of shape (..., H, S, V)
    attn_mask : ndarray, broadcast to (..., H, L, S), optional
        Added to the scores; a bool mask is true for keys to attend to.
    dropout_p : float
        Probability of dropping a weight, even at inference; the others are divided by ``1 -
        dropout_p``.
    is_causal : bool
        Whether query l attends only to keys up to l.
    scale : float, optional
        ``1 / sqrt(E)`` by default.
    enable_gqa : bool
        Whether `key` and `value` may have fewer heads, each for a group of queries.

    Returns
    -------
    ndarray of shape (..., H, L, V)
        A new array; 0 for a query that attends to no key.
    """
    require_probability(dropout_p, "dropout_p")
    key, value, mask = prepare_attention(
        query, key, value, attn_mask, is_causal=is_causal, enable_gqa=enable_gqa
    )
    thin = partial(drop, p=dropout_p, rng=rng) if dropout_p else None
    return attend(query, key, value, mask, scale, thin)


def prepare_attention(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None = None,
    *,
    is_causal: bool = False,
    enable_gqa: bool = False,
) -> tuple[Array, Array, Array | None]:
    """Return the key, the value and the mask that `attend` takes.

    Parameters as in ``F.scaled_dot_product_attention``.

    Raises
    ------
    LayerError
        If there are two masks, or if heads cannot be shared.
    """
    if is_causal and attn_mask is not None:
        raise LayerError("attn_mask and is_causal=True exclude each other")
    if enable_gqa:
        key, value = (_repeat_heads(array, query) for array in (key, value))
    if is_causal:
        attn_mask = np.tri(query.shape[-2], key.shape[-2], dtype=np.bool_)
    return key, value, attn_mask


def attend(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None = None,
    scale: float | None = None,
    thin: Callable[[Array], Array] | None = None,
) -> Array:
    """Compute attention in blocks of queries.

    Parameters and result as in ``F.scaled_dot_product_attention``; `thin` drops some weights.

    Raises
    ------
    LayerError
        If the shapes do not fit.
    """
    dtype = promote_types(promote_types(query.dtype, key.dtype), value.dtype)
    _require_shapes(query, key, value)
    query, key, value = (
        array.astype(working_dtype(dtype), copy=False) for array in (query, key, value)
    )
    batch = _broadcast_batch(query, key, value)
    rows, columns = query.shape[-2], key.shape[-2]
    query = np.broadcast_to(query, (*batch, *query.shape[-2:]))
    if mask is not None:
        mask = _broadcast_mask(mask, (*batch, rows, columns))
    require_products(math.prod((*batch, rows, columns)), _MOST_SCORES)
    result = new_output((*batch, rows, value.shape[-1]), query.dtype)
    row_bytes = math.prod((*batch, columns)) * query.dtype.itemsize
    step = max(1, _SCORE_BYTES // max(1, row_bytes))
    for start in range(0, rows, step):
        run = (..., slice(start, start + step), slice(None))
        part = None if mask is None else mask[run]
        weights = attention_weights(query[run], key, part, scale)
        np.matmul(weights if thin is None else thin(weights), value, out=result[run])
    return result.astype(dtype, copy=False)


def attention_weights(
    query: Array,
    key: Array,
    mask: Array | None = None,
    scale: float | None = None,
    unseen: float = 0.0,
) -> Array:
    """Compute the weights of each query, which sum to 1 over the keys.

    Parameters
    ----------
    query : ndarray of shape (..., L, E)
    key : ndarray of shape (..., S, E)
    mask : ndarray that broadcasts to (..., L, S), optional
        Added to the scores; a bool mask is true for keys to attend to.
    scale : float, optional
        ``1 / sqrt(E)`` by default.
    unseen : float
        Weights of a query that attends to no key.

    Returns
    -------
    ndarray of shape (..., L, S)
        A new array.
    """
    return normalise_scores(attention_scores(query, key, mask, scale), unseen)


def attention_scores(
    query: Array, key: Array, mask: Array | None = None, scale: float | None = None
) -> Array:
    """Compute the match of each query with each key, before it is normalised.

    Parameters as in `attention_weights`.

    Returns
    -------
    ndarray of shape (..., L, S)
        A new array; -inf for a key that the mask leaves out.
    """
    if scale is None:
        scale = 1 / math.sqrt(max(1, query.shape[-1]))
    scores: Array = np.matmul(query * query.dtype.type(scale), key.swapaxes(-1, -2))
    if mask is not None and mask.dtype == np.bool_:
        np.copyto(scores, -np.inf, where=~mask)
    elif mask is not None:
        scores += mask
    return scores


def normalise_scores(scores: Array, unseen: float = 0.0) -> Array:
    """Compute the softmax over the keys, in place.

    Parameters
    ----------
    scores : ndarray of shape (..., L, S)
        Overwritten.
    unseen : float
        Weights of a query that attends to no key.

    Returns
    -------
    ndarray
        `scores`.
    """
    peak = scores.max(-1, keepdims=True, initial=-np.inf)
    scores -= np.where(np.isneginf(peak), 0, peak)
    np.exp(scores, out=scores)
    total = scores.sum(-1, keepdims=True)
    scores /= np.where(total == 0, 1, total)
    if unseen != 0 and not total.all():
        np.copyto(scores, unseen, where=total == 0)
    return scores


def _repeat_heads(array: Array, query: Array) -> Array:
    """Repeat each head for the group of queries that shares it."""
    wanted, heads = query.shape[-3], array.shape[-3]
    if not heads or wanted % heads:
        raise LayerError(
            f"{heads} heads of keys and values cannot be shared among {wanted} heads of "
            "queries",
            InferStatus.kInferArraySizeMismatch,
        )
    return np.repeat(array, wanted // heads, -3)


def _require_shapes(query: Array, key: Array, value: Array) -> None:
    if min(query.ndim, key.ndim, value.ndim) < 2 or not (
        query.shape[-1] == key.shape[-1] and key.shape[-2] == value.shape[-2]
    ):
        raise _make_shape_error(query, key, value)


def _broadcast_batch(query: Array, key: Array, value: Array) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    except ValueError:
        raise _make_shape_error(query, key, value) from None


def _make_shape_error(query: Array, key: Array, value: Array) -> LayerError:
    shapes = describe_shapes([query.shape, key.shape, value.shape])
    return LayerError(
        f"query, key and value do not fit: their shapes are {shapes}",
        InferStatus.kInferArraySizeMismatch,
    )


def _broadcast_mask(mask: Array, shape: tuple[int, ...]) -> Array:
    try:
        return np.broadcast_to(mask, shape)
    except ValueError:
        raise LayerError(
            f"a mask of shape {describe_shapes([mask.shape])} does not fit the scores "
            f"{describe_shapes([shape])}",
            InferStatus.kInferArraySizeMismatch,
        ) from None
