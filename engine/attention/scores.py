"""The weights of an attention, computed from the operands of a run.

An operator that computes attention as a whole keeps no weights. They are computed again from
its operands, with the code of its layer: projections, masks, scale. Whether the weights are
those that the operator used is shown by its output: weights times values, projected, must equal
it.

Networks have up to thousands of queries and keys, and dozens of heads. Weights of more than
`MOST_WEIGHTS` elements are computed for some queries at a time, and only reduced ones are kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from engine.attention.results import MOST_WEIGHTS, AttentionScores, Place, Stage
from engine.differences import Difference, difference
from engine.errors import LayerError, describe_shapes
from engine.layers.attention import (
    attention_scores,
    normalise_scores,
    prepare_attention,
    scaled_dot_product_attention,
)
from engine.layers.binding import FunctionLayer
from engine.layers.multihead_attention import MultiheadAttention, join_heads
from engine.layers.ncnn import products as ncnn
from engine.layers.windows import working_dtype
from engine.pictures import finite_range
from engine.promotion import promote_types

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from engine.attention.finding import Attention
    from engine.runtime import RuntimeGraph, RuntimeOperator
    from engine.values import Array, Value

__all__ = ["compute_attention", "compute_rollout", "rollout"]

_BLOCK: Final = 1 << 20  # weights that are computed together
_SIDE: Final = 128  # rows and columns of weights that are reduced

Read: TypeAlias = Callable[[str], "Value"]
_Range: TypeAlias = tuple[float, float] | None


class _Parts(NamedTuple):
    """What weights are computed from.

    Attributes
    ----------
    query : ndarray of shape (N, H, L, D)
    key : ndarray of shape (N, H, S, D)
    value : ndarray of shape (N, H, S, V)
    mask : ndarray of shape (N, H, L, S) or None
    scale : float or None
    unseen : float
    finish : callable
        Makes samples of the output of the heads' results, shape (n, H, L, V).
    output : ndarray
        The operator's own output; samples first.
    formulas : tuple of str
        Of q, k and v, and of the output; the latter is empty if nothing follows the product.
    note : str
    """

    query: Array
    key: Array
    value: Array
    mask: Array | None
    scale: float | None
    unseen: float
    finish: Callable[[Array], Array]
    output: Array
    formulas: tuple[str, str, str, str]
    note: str = ""


def compute_attention(
    graph: RuntimeGraph, attention: Attention, read: Read, place: Place
) -> AttentionScores:
    """Compute the weights of an attention from the values of a run.

    Parameters
    ----------
    graph : RuntimeGraph
    attention : Attention
        Of the graph.
    read : callable
        Returns the value of an operand.
    place : Place

    Returns
    -------
    AttentionScores

    Raises
    ------
    LayerError
        If the values have no weights of queries for keys.
    EngineError
        If a value cannot be read.
    """
    with np.errstate(all="ignore"):  # inf and NaN are results here, as in PyTorch
        if attention.weights:
            return _read_weights(graph, attention, read, place)
        parts = _prepare(graph.operator(attention.operator), read, place.heads)
        return _compute(parts, attention.output, place)


# Operators that compute attention as a whole


def _prepare(operator: RuntimeOperator, read: Read, heads: int) -> _Parts:
    values = [read(operand.name) for operand in operator.inputs]
    output = _as_array(read(operator.outputs[0].name))
    layer = operator.layer
    positional: tuple[Any, ...] = tuple(values)
    named: dict[str, Any] = {}
    target: object = layer
    if isinstance(layer, FunctionLayer):
        positional, named = layer.arguments(values)
        target, named = layer.owner or layer.target, {**layer.static, **named}
    if isinstance(target, MultiheadAttention):
        return _prepare_module(target, output, *positional, **named)
    if isinstance(target, ncnn.MultiHeadAttention):
        return _prepare_ncnn_module(target, output, *positional)
    if isinstance(target, ncnn.SDPA) and not target.has_cache:
        query, key, value, *mask = positional
        return _prepare_function(
            heads, output, query, key, value, mask[0] if mask else None,
            scale=target.scale or None, enable_gqa=True,
        )  # fmt: skip
    if target is scaled_dot_product_attention:
        return _prepare_function(heads, output, *positional, **named)
    raise LayerError(f"{operator.name} is not computed by this program's own layer")


def _prepare_module(
    layer: MultiheadAttention,
    output: Array,
    *operands: Array,
    attn_mask: Array | None = None,
    key_padding_mask: Array | None = None,
) -> _Parts:
    operands, attn_mask = layer.sort_operands(operands, attn_mask)
    split, mask = layer.make_heads(operands, attn_mask, key_padding_mask)
    if mask is not None:
        mask = np.broadcast_to(mask, (*split.query.shape[:3], split.key.shape[2]))
    flat = layer.is_flat(operands)
    axis = 0 if layer.batch_first else 1
    samples = np.expand_dims(output, axis) if flat else output

    def finish(mixed: Array) -> Array:
        return np.moveaxis(layer.project(join_heads(mixed)), axis, 0)

    return _Parts(
        *_in_working_dtype(*split),
        mask,
        None,
        layer.unseen,
        finish,
        np.moveaxis(samples, axis, 0),
        ("q = x·Wq + bq", "k = x·Wk + bk", "v = x·Wv + bv", "out_proj"),
    )


def _prepare_ncnn_module(
    layer: ncnn.MultiHeadAttention, output: Array, *operands: Array
) -> _Parts:
    """Project the operands of a module of ncnn, which has no batch."""
    *sequences, mask = layer.split(operands)
    heads = [
        layer.project(x, name).reshape(1, len(x), layer.heads, -1).swapaxes(1, 2)
        for name, x in zip("qkv", sequences, strict=True)
    ]
    query, key, value = _in_working_dtype(*heads)
    if mask is not None:
        mask = np.broadcast_to(mask, (*query.shape[:3], key.shape[2]))

    def finish(mixed: Array) -> Array:
        rows = mixed.swapaxes(1, 2).reshape(*mixed.shape[::2], -1)
        return layer.project(rows, "out")

    usual = math.isclose(layer.scale, 1 / math.sqrt(query.shape[-1]), rel_tol=1e-6)
    return _Parts(
        query,
        key,
        value,
        mask,
        None if usual else layer.scale,
        0.0,
        finish,
        output[np.newaxis],
        ("q = x·Wq + bq", "k = x·Wk + bk", "v = x·Wv + bv", "x·Wo + bo"),
    )


def _prepare_function(
    heads: int,
    output: Array,
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,  # noqa: FBT001, FBT002 - arguments of the operator
    scale: float | None = None,
    enable_gqa: bool = False,  # noqa: FBT001, FBT002
) -> _Parts:
    key, value, mask = prepare_attention(
        query, key, value, attn_mask, is_causal=is_causal, enable_gqa=enable_gqa
    )
    batch = np.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    lead = _split_heads(batch, heads)

    def spread(array: Array) -> Array:
        return np.broadcast_to(array, (*batch, *array.shape[-2:])).reshape(
            *lead, *array.shape[-2:]
        )

    if mask is not None:
        sides = (*batch, query.shape[-2], key.shape[-2])
        mask = np.broadcast_to(mask, sides).reshape(*lead, *sides[-2:])
    note = "the operator drops weights at random" if dropout_p else ""
    query, key, value = _in_working_dtype(query, key, value)
    return _Parts(
        spread(query),
        spread(key),
        spread(value),
        mask,
        scale,
        0.0,
        lambda mixed: mixed,
        output.reshape(*lead, *output.shape[-2:]),
        ("q", "k", "v", ""),
        note,
    )


def _in_working_dtype(query: Array, key: Array, value: Array) -> tuple[Array, Array, Array]:
    dtype = working_dtype(promote_types(promote_types(query.dtype, key.dtype), value.dtype))
    query, key, value = (array.astype(dtype, copy=False) for array in (query, key, value))
    return query, key, value


def _split_heads(batch: tuple[int, ...], heads: int) -> tuple[int, int]:
    """Split the dimensions before queries and keys into samples and heads."""
    heads = heads or (batch[-1] if batch else 1)
    total = math.prod(batch)
    if total % max(1, heads):
        raise LayerError(f"{total} score matrices cannot be those of {heads} heads")
    return total // max(1, heads), heads


def _compute(parts: _Parts, output: str, place: Place) -> AttentionScores:
    samples, heads, queries = parts.query.shape[:3]
    keys = parts.key.shape[2]
    shape = samples, heads, queries, keys
    collected = _Collected(shape, place)
    mixed = np.empty(
        (collected.count, heads, queries, parts.value.shape[-1]), parts.value.dtype
    )
    scores_range: _Range = None
    chosen = slice(collected.first, collected.first + collected.count)
    for part, run in collected.blocks():
        of = slice(chosen.start + part.start, chosen.start + part.stop)
        mask = None if parts.mask is None else parts.mask[of, :, run]
        scores = attention_scores(parts.query[of, :, run], parts.key[of], mask, parts.scale)
        scores_range = _join(scores_range, finite_range(scores))
        weights = normalise_scores(scores, parts.unseen)
        collected.add(part, run, weights)
        np.matmul(weights, parts.value[of], out=mixed[part, :, run])
    result = parts.finish(mixed)
    found = None
    if not parts.note:
        expected = parts.output[chosen]
        found = difference([result.astype(expected.dtype, copy=False)], [expected])
    stages = [
        _stage(name, array)
        for name, array in zip(
            parts.formulas, (parts.query, parts.key, parts.value), strict=False
        )
    ]
    masked = " + mask" if parts.mask is not None else ""
    stages += [
        _stage_of(f"q·kᵀ {_scale_text(parts)}{masked}", shape, scores_range),
        _stage_of("softmax", shape, collected.range),
        _stage("· v", mixed),
    ]
    if parts.formulas[3]:
        stages.append(_stage(parts.formulas[3], result))
    return collected.scores(tuple(stages), output, found, parts.note)


def _scale_text(parts: _Parts) -> str:
    if parts.scale is None:
        return f"/ √{parts.query.shape[-1]}"
    return f"· {parts.scale:.4g}"


class _Collected:
    """The weights that are kept, while they are computed.

    Attributes
    ----------
    first, count : int
        The samples that are computed.
    range : (float, float) or None
    """

    def __init__(self, shape: tuple[int, int, int, int], place: Place) -> None:
        samples, heads, queries, keys = shape
        if 0 in shape or not (0 <= place.sample < samples and 0 <= place.query < queries):
            raise LayerError(
                f"the weights {describe_shapes([shape])} have no sample {place.sample} with a "
                f"query {place.query}"
            )
        self.shape, self._place = shape, place
        one = heads * queries * keys
        self.first, self.count = (
            (0, samples) if samples * one <= MOST_WEIGHTS else (place.sample, 1)
        )
        self.block = (1, 1)
        if one > MOST_WEIGHTS:
            self.block = (-(-queries // _SIDE), -(-keys // _SIDE))
        sides = [-(-size // step) for size, step in zip(shape[2:], self.block, strict=True)]
        self._weights = np.empty((self.count, heads, *sides), np.float32)
        self._rows = np.zeros((heads, keys), np.float32)
        self.range: _Range = None

    def blocks(self) -> Iterator[tuple[slice, slice]]:
        """Yield samples, counted from `first`, and queries that are computed together."""
        _, heads, queries, keys = self.shape
        step = max(1, _BLOCK // max(1, heads * queries * keys))
        run = queries
        if step == 1:
            rows = max(1, _BLOCK // (heads * keys))
            run = -(-rows // self.block[0]) * self.block[0]
        for sample in range(0, self.count, step):
            for query in range(0, queries, run):
                yield (
                    slice(sample, min(sample + step, self.count)),
                    slice(query, min(query + run, queries)),
                )

    def add(self, samples: slice, queries: slice, weights: Array) -> None:
        """Keep weights of shape (n, H, l, S)."""
        self.range = _join(self.range, finite_range(weights))
        wanted = self._place.sample - self.first - samples.start
        row = self._place.query - queries.start
        if 0 <= wanted < len(weights) and 0 <= row < weights.shape[2]:
            self._rows[:] = weights[wanted, :, row]
        down, across = self.block
        if self.block != (1, 1):
            starts = np.arange(0, weights.shape[3], across)
            weights = np.maximum.reduceat(weights, starts, axis=3)
            weights = np.maximum.reduceat(weights, np.arange(0, weights.shape[2], down), axis=2)
        first = queries.start // down
        self._weights[samples, :, first : first + weights.shape[2]] = weights

    def scores(
        self,
        stages: tuple[Stage, ...],
        output: str,
        found: Difference | None,
        note: str,
    ) -> AttentionScores:
        """Return what was collected."""
        return AttentionScores(
            self.shape, self.first, self._weights, self.block, self._rows, stages, output,
            found, note,
        )  # fmt: skip


# Attention that is written out


def _read_weights(
    graph: RuntimeGraph, attention: Attention, read: Read, place: Place
) -> AttentionScores:
    """Read weights that are an operand; check them by the product with the values."""
    values = {name: _as_array(read(name)) for name in attention.operands}
    weights = _by_head(values[attention.weights], place.heads)
    collected = _Collected(weights.shape, place)
    chosen = slice(collected.first, collected.first + collected.count)
    for part, run in collected.blocks():
        collected.add(part, run, weights[chosen][part, :, run])
    names = (
        ("q", attention.query), ("k", attention.key), ("q·kᵀ, scaled", attention.scores),
        ("softmax", attention.weights), ("v", attention.value), ("· v", attention.output),
    )  # fmt: skip
    stages = tuple([_stage(name, values[operand], operand) for name, operand in names])
    found, note = _check_product(graph, attention, read, values)
    return collected.scores(stages, attention.output, found, note)


def _by_head(array: Array, heads: int) -> Array:
    """Bring weights into the shape (N, H, L, S)."""
    if array.ndim < 2:
        raise LayerError(f"weights of shape {describe_shapes([array.shape])} have no queries")
    if array.ndim == 2:
        heads = 1
    return array.reshape(*_split_heads(array.shape[:-2], heads), *array.shape[-2:])


def _check_product(
    graph: RuntimeGraph, attention: Attention, read: Read, values: Mapping[str, Array]
) -> tuple[Difference | None, str]:
    """Compare the product of weights and values with the operand of the run."""
    product = graph.operands[attention.output].producer
    if product is None or product.type not in {"torch.matmul", "torch.bmm", "ncnn.MatMul"}:
        return None, "the product with the values is no plain one"
    if product.params.get("transB"):
        return None, "the product with the values is transposed"
    left, right = (_as_array(read(operand.name)) for operand in product.inputs)
    return difference([np.matmul(left, right)], [values[attention.output]]), ""


# Rollout


def compute_rollout(
    graph: RuntimeGraph, blocks: Sequence[tuple[Attention, int]], read: Read, sample: int
) -> npt.NDArray[np.float32]:
    """Compute the rollout of several attentions of a run; see `rollout`.

    Parameters
    ----------
    graph : RuntimeGraph
    blocks : sequence of (Attention, int)
        Attentions and their heads, the first one first.
    read : callable
        Returns the value of an operand.
    sample : int

    Returns
    -------
    ndarray of shape (T, T), float32

    Raises
    ------
    LayerError
        If there are too many tokens, or not the same in all blocks.
    """
    layers: list[Array] = []
    for attention, heads in blocks:
        found = compute_attention(graph, attention, read, Place(heads, sample))
        *_, queries, keys = found.shape
        if found.block != (1, 1):
            raise LayerError(f"{queries} tokens are too many for a rollout")
        if queries != keys or (layers and layers[0].shape[-1] != queries):
            raise LayerError("the blocks do not have the same tokens")
        layers.append(found.weights[sample - found.first].mean(0, keepdims=True))
    return rollout(layers).astype(np.float32)


def rollout(layers: Sequence[Array]) -> Array:
    """Multiply the weights of several blocks: how much each token takes of each input token.

    The heads are averaged. The residual connection adds the token itself, and the sum is
    normalised (Abnar and Zuidema, *Quantifying Attention Flow in Transformers*, 2020).

    Parameters
    ----------
    layers : sequence of ndarray of shape (H, T, T)
        Weights of the blocks, the first one first; at least one.

    Returns
    -------
    ndarray of shape (T, T), float64
        A new array; rows sum to 1.
    """
    flow: Array | None = None
    for weights in layers:
        mixed = weights.mean(0, dtype=np.float64)
        mixed = (mixed + np.eye(len(mixed))) / (mixed.sum(-1, keepdims=True) + 1)
        flow = mixed if flow is None else mixed @ flow
    if flow is None:
        raise ValueError("there is no block")
    return flow


# Ranges


def _as_array(value: Value) -> Array:
    if not isinstance(value, np.ndarray):
        raise LayerError("an operand of the attention is no tensor")
    return value


def _stage(name: str, array: Array, operand: str = "") -> Stage:
    return _stage_of(name, array.shape, finite_range(array), operand)


def _stage_of(name: str, shape: tuple[int, ...], found: _Range, operand: str = "") -> Stage:
    low, high = found or (None, None)
    return Stage(name, shape, low, high, operand)


def _join(one: _Range, other: _Range) -> _Range:
    if one is None or other is None:
        return one or other
    return min(one[0], other[0]), max(one[1], other[1])
