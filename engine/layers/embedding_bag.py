"""Bags of embeddings: rows of a table, summed up bag by bag."""

from __future__ import annotations

from typing import Final

import numpy as np

from engine.errors import InferStatus, LayerError, describe_shapes
from engine.layers.annotations import WeightOf
from engine.layers.embedding import embedding
from engine.layers.layer import Outputs
from engine.layers.registry import register
from engine.layers.windows import new_output, working_dtype
from engine.values import Array

__all__ = ["embedding_bag", "embedding_bag_traced", "find_bounds", "pooling_of"]

_MODES: Final[dict[int | str, str]] = {0: "sum", 1: "mean", 2: "max"}  # PyTorch's numbers
_JOIN: Final = {"sum": np.add, "mean": np.add, "max": np.maximum}


@register("nn.EmbeddingBag", "F.embedding_bag")
def embedding_bag(
    input: Array,
    weight: WeightOf[Array],
    offsets: Array | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str | int = "mean",
    sparse: bool = False,
    per_sample_weights: Array | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
    num_embeddings: int | None = None,
    embedding_dim: int | None = None,
) -> Array:
    """Combine the rows of a table that belong to each bag: ``torch.nn.EmbeddingBag``.

    Parameters
    ----------
    input : integer ndarray of shape (B, N), or of shape (L,) with `offsets`
        Indices of rows.
    weight : ndarray of shape (K, D)
    offsets : integer ndarray of shape (B,), optional
        Start of each bag. A bag ends where the next one starts.
    max_norm, norm_type
        As in ``F.embedding``.
    mode : str
        ``sum``, ``mean`` or ``max``.
    per_sample_weights : ndarray of the shape of `input`, optional
        Factor of each row; for ``sum`` only.
    include_last_offset : bool
        Whether `offsets` also contains the end of the last bag.
    padding_idx : int, optional
        Index to ignore.
    scale_grad_by_freq, sparse, num_embeddings, embedding_dim
        No effect at inference.

    Returns
    -------
    ndarray of shape (B, D)
        0 for an empty bag.
    """
    method = pooling_of(mode)
    if per_sample_weights is not None and method != "sum":
        raise LayerError(f"per_sample_weights are for mode sum, not {method}")
    starts, stops = find_bounds(input, offsets, include_last_offset=include_last_offset)
    indices = input.reshape(-1)
    rows = embedding(indices, weight, max_norm=max_norm, norm_type=norm_type)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape(-1, 1).astype(rows.dtype, copy=False)
    counted = np.ones(indices.shape, np.bool_)
    if padding_idx is not None:
        counted = indices != padding_idx % len(weight)
    before = np.concatenate([[0], np.cumsum(counted)])  # rows that count
    first, last = before[starts], before[stops]
    result = new_output((len(starts), weight.shape[1]), working_dtype(rows.dtype), 0)
    filled = first < last
    if filled.any():
        members = rows[counted][: last[-1]].astype(result.dtype, copy=False)
        result[filled] = _JOIN[method].reduceat(members, first[filled], axis=0)
    if method == "mean":
        result /= np.maximum(last - first, 1).reshape(-1, 1).astype(result.dtype)
    return result.astype(rows.dtype, copy=False)


@register("aten::embedding_bag")
def embedding_bag_traced(
    weight: Array,
    indices: Array,
    offsets: Array,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Array | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Outputs:
    """Combine the rows of each bag; as ``torch.nn.EmbeddingBag``.

    The other three outputs are None. Only the gradient needs them.
    """
    result = embedding_bag(
        indices,
        weight,
        offsets,
        mode=mode,
        per_sample_weights=per_sample_weights,
        include_last_offset=include_last_offset,
        padding_idx=padding_idx,
    )
    return Outputs((result, None, None, None))


def pooling_of(mode: str | int) -> str:
    """Return how rows are combined: ``sum``, ``mean`` or ``max``.

    Raises
    ------
    LayerError
        For any other mode.
    """
    method = _MODES.get(mode, str(mode))
    if method not in _MODES.values():
        raise LayerError(f"mode {mode} is not one of {', '.join(_MODES.values())}")
    return method


def find_bounds(
    input: Array, offsets: Array | None, *, include_last_offset: bool
) -> tuple[Array, Array]:
    """Return where each bag starts and stops in the flattened indices.

    Raises
    ------
    LayerError
        If the shapes or the offsets are none of bags.
    """
    if input.ndim == 2 and offsets is None:
        count, size = input.shape
        bounds = np.arange(count + 1) * size
        return bounds[:-1], bounds[1:]
    if input.ndim != 1 or offsets is None or offsets.ndim != 1:
        shapes = describe_shapes([x.shape for x in (input, offsets) if x is not None])
        raise LayerError(
            "indices must be B×N, or one list with offsets of the bags; the shapes are "
            f"{shapes}",
            InferStatus.kInferArraySizeMismatch,
        )
    bounds = offsets.astype(np.intp)
    if not include_last_offset or not len(bounds):
        bounds = np.append(bounds, len(input))
    if len(bounds) > 1 and (
        bounds[0] or bounds[-1] > len(input) or (np.diff(bounds) < 0).any()
    ):
        raise LayerError(f"offsets must begin with 0, rise and stay below {len(input)}")
    return bounds[:-1], bounds[1:]
