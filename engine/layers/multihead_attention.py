"""Multi-head attention: projections around attention, and a whole encoder layer of it.

A module's bool masks are true for keys to *ignore*, the opposite of
``F.scaled_dot_product_attention``. They are inverted first.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from typing_extensions import override

from engine.errors import InferStatus, LayerError, ParameterError, describe_shapes
from engine.layers.activations import gelu, relu
from engine.layers.attention import attend, attention_weights
from engine.layers.layer import Layer, OperatorCall, Outputs
from engine.layers.linear import Linear, linear
from engine.layers.normalization import layer_norm
from engine.layers.registry import register
from engine.layers.windows import working_dtype
from engine.values import Array

__all__ = ["Heads", "MultiheadAttention", "combine_masks", "join_heads", "split_inputs"]

_KEY_PADDING: Final = 1  # PyTorch's mask_type of a key padding mask


@register("nn.MultiheadAttention")
class MultiheadAttention(Layer):
    """Attention of several heads between projections: ``torch.nn.MultiheadAttention``.

    Queries, keys and values are projected to E features and split into `num_heads` heads. The
    results of all heads are concatenated and projected again.

    Parameters
    ----------
    num_heads : int
    out_proj_weight : ndarray of shape (E, E)
    out_proj_bias : ndarray of shape (E,), optional
    in_proj_weight : ndarray of shape (3 E, E), optional
        Stacked projections of queries, keys and values, or else:
    q_proj_weight, k_proj_weight, v_proj_weight : ndarray of shape (E, E), (E, K), (E, V)
    in_proj_bias : ndarray of shape (3 E,), optional
    bias_k, bias_v : ndarray of shape (1, 1, E), optional
        An additional key and value, which every query attends to.
    add_zero_attn : bool
        Whether there is an additional key and value of zeros.
    batch_first : bool
        Whether shapes are (N, L, E) instead of (L, N, E).
    average_attn_weights : bool
        Whether the second output is the mean over the heads.
    need_weights : bool, optional
        Whether to compute the second output; by default if the operator has two outputs.
    embed_dim, kdim, vdim : int
        E, K and V; only checked against the weights.
    bias, add_bias_kv : bool
        Whether these attributes exist.
    """

    def __init__(
        self,
        call: OperatorCall,
        num_heads: int,
        out_proj_weight: Array,
        out_proj_bias: Array | None = None,
        in_proj_weight: Array | None = None,
        in_proj_bias: Array | None = None,
        q_proj_weight: Array | None = None,
        k_proj_weight: Array | None = None,
        v_proj_weight: Array | None = None,
        bias_k: Array | None = None,
        bias_v: Array | None = None,
        add_zero_attn: bool = False,
        batch_first: bool = False,
        average_attn_weights: bool = True,
        need_weights: bool | None = None,
        embed_dim: int | None = None,
        kdim: int | None = None,
        vdim: int | None = None,
        bias: bool = True,
        add_bias_kv: bool = False,
        dropout: float = 0.0,
    ) -> None:
        if in_proj_weight is not None:
            weights: tuple[Array | None, ...] = tuple(
                _split_in_three(in_proj_weight, "in_proj_weight")
            )
        else:
            weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        biases = (
            (None,) * 3
            if in_proj_bias is None
            else _split_in_three(in_proj_bias, "in_proj_bias")
        )
        self.projections: list[Linear] = []
        for name, weight, shift, size in zip(
            "qkv", weights, biases, (embed_dim, kdim, vdim), strict=True
        ):
            if weight is None:
                raise ParameterError(f"{name}_proj_weight", f"{name}_proj_weight is missing")
            self.projections.append(Linear(weight, shift, in_features=size))
        self._widths = {weight.shape[-1] for weight in weights if weight is not None}
        width = out_proj_weight.shape[-1]
        if num_heads < 1 or width % num_heads:
            raise ParameterError(
                "num_heads", f"num_heads={num_heads} cannot divide embed_dim={width}"
            )
        self.output = Linear(out_proj_weight, out_proj_bias)
        self._extra = () if bias_k is None or bias_v is None else (bias_k, bias_v)
        self._zero = add_zero_attn
        self.heads, self.batch_first = num_heads, batch_first
        self._average = average_attn_weights
        self._need_weights = call.output_count > 1 if need_weights is None else need_weights

    @override
    def forward(
        self,
        *operands: Array,
        attn_mask: Array | None = None,
        key_padding_mask: Array | None = None,
    ) -> Outputs:
        """Compute the outputs.

        Parameters
        ----------
        *operands : ndarray of shape (L, N, E), (S, N, K) and (S, N, V)
            Query, key and value. Without a value, the key is the value; without a key, the
            query is all three. May lack the batch axis N.
        attn_mask : ndarray of shape (L, S) or (N * num_heads, L, S), optional
            Added to the scores; a bool mask is true for keys to ignore.
        key_padding_mask : ndarray of shape (N, S), optional
            The same for all queries of a sample.

        Returns
        -------
        Outputs
            ndarray of shape (L, N, E), and ndarray of shape (N, L, S) with the weights.

        Notes
        -----
        pnnx names the last operand ``attn_mask`` if there is any mask. The key padding mask of
        a traced module comes first. So an operand that cannot be a mask counts as the last
        sequence.
        """
        return Outputs(self.compute(*self.sort_operands(operands, attn_mask), key_padding_mask))

    def sort_operands(
        self, operands: tuple[Array, ...], attn_mask: Array | None
    ) -> tuple[tuple[Array, ...], Array | None]:
        """Return sequences and mask, where the file may name the last sequence a mask."""
        if attn_mask is not None and self._is_sequence(attn_mask, operands):
            return (*operands, attn_mask), None
        return operands, attn_mask

    def _is_sequence(self, array: Array, operands: tuple[Array, ...]) -> bool:
        """Return whether an operand is a key or value and cannot be a mask."""
        sequences = [x for x in operands if x.dtype != np.bool_ and x.ndim == array.ndim]
        if array.dtype == np.bool_ or array.shape[-1] not in self._widths:
            return False
        if not sequences:
            return array.ndim == 3  # all other operands are masks
        length_axis = 1 if array.ndim == 3 and self.batch_first else 0
        samples = sequences[0].shape[1 - length_axis] if array.ndim == 3 else 1
        scores = (sequences[0].shape[length_axis], sequences[-1].shape[length_axis])
        masks = {scores, (samples, *scores), (samples * self.heads, *scores)}
        return array.shape not in masks

    def compute(
        self,
        operands: tuple[Array, ...],
        attn_mask: Array | None = None,
        key_padding_mask: Array | None = None,
    ) -> tuple[Array, Array | None]:
        """Compute the outputs; parameters and result as in `forward`."""
        heads, mask = self.make_heads(operands, attn_mask, key_padding_mask)
        flat = self.is_flat(operands)
        mixed, weights = self._attend(heads, mask)
        if weights is not None and self._average:
            weights = weights.mean(1)
        if flat and weights is not None:
            weights = weights[0]
        return self.project(mixed, flat=flat), weights

    def make_heads(
        self,
        operands: tuple[Array, ...],
        attn_mask: Array | None = None,
        key_padding_mask: Array | None = None,
    ) -> tuple[Heads, Array | None]:
        """Project the sequences, split them into heads, and combine the masks.

        Returns
        -------
        Heads
        ndarray that broadcasts to (N, H, L, S), or None
            As `attention_weights` takes it.
        """
        sequences, other_mask = split_inputs(operands, key_padding_mask)
        if other_mask is key_padding_mask and other_mask is not None and other_mask.ndim == 2:
            other_mask = other_mask[:, np.newaxis, np.newaxis]  # of keys, whatever the sizes
        axis = 0 if self.batch_first else 1
        batches = [s if s.ndim == 3 else np.expand_dims(s, axis) for s in sequences]
        if len({s.shape[axis] for s in batches}) > 1:
            raise LayerError(
                "query, key and value have unequal batch sizes: their shapes are "
                f"{describe_shapes([s.shape for s in sequences])}",
                InferStatus.kInferArraySizeMismatch,
            )
        heads = self._project_inputs(batches)
        masks = [m for m in (attn_mask, other_mask) if m is not None]
        return heads, combine_masks(masks, heads, self._extra_count) if masks else None

    @staticmethod
    def is_flat(operands: tuple[Array, ...]) -> bool:
        """Whether the sequences lack the batch axis."""
        return max(x.ndim for x in operands) == 2

    def project(self, mixed: Array, *, flat: bool = False) -> Array:
        """Project what the heads mixed to the first output.

        Parameters
        ----------
        mixed : ndarray of shape (N, L, E)
        flat : bool
            Whether the output lacks the batch axis.
        """
        axis = 0 if self.batch_first else 1
        result = self.output.forward(mixed if self.batch_first else mixed.swapaxes(0, 1))
        return np.squeeze(result, axis) if flat else result

    @property
    def is_plain(self) -> bool:
        """Whether no attention weights are returned and there are no additional keys."""
        return not (self._need_weights or self._extra or self._zero)

    @property
    def extra_rows(self) -> tuple[Array, Array]:
        """Additional keys and values, projected; two of shape (K, E)."""
        width = self.projections[0].weight.shape[0]
        rows = [each.reshape(1, -1) for each in self._extra] or [np.zeros((0, width))] * 2
        zero = np.zeros((int(self._zero), width), rows[0].dtype)
        key, value = (np.concatenate([each, zero]) for each in rows)
        return key, value

    @property
    def unseen(self) -> float:
        """Weights of a query that attends to no key.

        If it returns weights, PyTorch returns NaN for such a query.
        """
        return np.nan if self._need_weights else 0.0

    @property
    def _extra_count(self) -> int:
        return bool(self._extra) + self._zero

    def _project_inputs(self, batches: list[Array]) -> Heads:
        """Project, split into heads, and append the additional keys and values."""
        projected = []
        for place, (sequence, projection) in enumerate(
            zip(batches, self.projections, strict=True)
        ):
            x = projection.forward(sequence)
            if not self.batch_first:
                x = x.swapaxes(0, 1)
            if place and self._extra:
                row = self._extra[place - 1].astype(x.dtype).reshape(1, 1, -1)
                x = np.concatenate([x, np.broadcast_to(row, (len(x), 1, x.shape[2]))], 1)
            if place and self._zero:
                x = np.pad(x, ((0, 0), (0, 1), (0, 0)))
            projected.append(_cut(x, self.heads))
        return Heads(*projected)

    def _attend(self, heads: Heads, mask: Array | None) -> tuple[Array, Array | None]:
        """Result of shape (N, L, E), and weights of shape (N, H, L, S) where needed."""
        if not self._need_weights:
            return join_heads(attend(*heads, mask)), None
        dtype = heads.query.dtype
        query, key, value = (x.astype(working_dtype(dtype), copy=False) for x in heads)
        weights = attention_weights(query, key, mask, unseen=self.unseen)
        mixed = np.matmul(weights, value).astype(dtype, copy=False)
        return join_heads(mixed), weights.astype(dtype, copy=False)


class Heads(NamedTuple):
    """Queries, keys and values, split into heads.

    Attributes
    ----------
    query : ndarray of shape (N, H, L, D)
    key, value : ndarray of shape (N, H, S, D)
    """

    query: Array
    key: Array
    value: Array


def _split_in_three(array: Array, name: str) -> tuple[Array, Array, Array]:
    if len(array) % 3:
        raise ParameterError(name, f"{name} of shape {array.shape} cannot be split in three")
    size = len(array) // 3
    return array[:size], array[size : 2 * size], array[2 * size :]


def split_inputs(
    operands: tuple[Array, ...], key_padding_mask: Array | None
) -> tuple[list[Array], Array | None]:
    """Return query, key and value, and a key padding mask that the file does not name."""
    if not operands:
        raise LayerError("there is no query", InferStatus.kInferInputsEmpty)
    ndim = max(x.ndim for x in operands)
    sequences = [x for x in operands if x.dtype != np.bool_ and x.ndim == ndim]
    others = [x for x in operands if x.dtype == np.bool_ or x.ndim != ndim]
    if ndim not in {2, 3} or len(sequences) not in {1, 2, 3} or len(others) > 1:
        shapes = describe_shapes([x.shape for x in operands])
        raise LayerError(
            f"operands of shapes {shapes} are no query, key and value",
            InferStatus.kInferArraySizeMismatch,
        )
    while len(sequences) < 3:
        sequences.append(sequences[-1])
    return sequences, others[0] if others else key_padding_mask


def _cut(x: Array, heads: int) -> Array:
    """From (N, L, H * D) to (N, H, L, D)."""
    return x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)


def join_heads(x: Array) -> Array:
    """From (N, H, L, D) to (N, L, H * D)."""
    batch, heads, rows, size = x.shape
    return x.swapaxes(1, 2).reshape(batch, rows, heads * size)


def combine_masks(masks: list[Array], heads: Heads, extra: int) -> Array:
    """Combine all masks into one: additive, or bool and true for keys to attend to.

    Parameters
    ----------
    masks : list of ndarray
        In the module's convention.
    heads : Heads
    extra : int
        Number of additional keys, which the masks do not cover.
    """
    shape = (*heads.query.shape[:3], heads.key.shape[2] - extra)
    placed = [_reshape_mask(mask, shape) for mask in masks]
    result: Array
    if all(mask.dtype == np.bool_ for mask in placed):
        left_out = placed[0] if len(placed) == 1 else placed[0] | placed[1]
        result = ~left_out
    else:
        result = np.zeros((), heads.query.dtype)
        for mask in placed:
            result = result + _to_additive(mask, heads.query)
    if extra:
        widths = ((0, 0),) * (result.ndim - 1) + ((0, extra),)
        result = np.pad(result, widths, constant_values=result.dtype == np.bool_)
    return result


def _to_additive(mask: Array, like: Array) -> Array:
    if mask.dtype != np.bool_:
        return mask.astype(like.dtype, copy=False)
    added: Array = np.where(mask, like.dtype.type(-np.inf), like.dtype.type(0))
    return added


def _reshape_mask(mask: Array, shape: tuple[int, int, int, int]) -> Array:
    """Bring a mask into a shape that broadcasts to (N, H, L, S)."""
    batch, heads, rows, columns = shape
    if mask.shape == (batch, columns) and mask.shape != (rows, columns):
        mask = mask[:, np.newaxis, np.newaxis]
    elif mask.ndim == 3 and len(mask) == batch * heads:
        mask = mask.reshape(batch, heads, *mask.shape[1:])
    elif mask.ndim == 3:
        mask = mask[:, np.newaxis]
    try:
        np.broadcast_to(mask, shape)
    except ValueError:
        raise LayerError(
            f"a mask of shape {describe_shapes([mask.shape])} does not fit {batch} samples of "
            f"{heads} heads with {rows} queries and {columns} keys",
            InferStatus.kInferArraySizeMismatch,
        ) from None
    return mask


@register("aten::_native_multi_head_attention")
def native_multi_head_attention(
    query: Array,
    key: Array,
    value: Array,
    embed_dim: int,
    num_head: int,
    qkv_weight: Array,
    qkv_bias: Array | None,
    proj_weight: Array,
    proj_bias: Array | None,
    mask: Array | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> Outputs:
    """Attention of several heads, as PyTorch's fast path computes it.

    Parameters
    ----------
    query, key, value : ndarray of shape (N, L, E)
    embed_dim, num_head : int
    qkv_weight, qkv_bias : ndarray of shape (3 E, E) and (3 E,)
    proj_weight, proj_bias : ndarray of shape (E, E) and (E,)
    mask : ndarray of shape (L, L), (N, L) or (N, num_head, L, L), optional
        Added to the scores; a bool mask is true for keys to ignore.
    need_weights, average_attn_weights : bool
        Whether to return the weights, and whether as a mean over the heads.
    mask_type : int, optional
        1 for a mask of shape (N, L).

    Returns
    -------
    Outputs
        ndarray of shape (N, L, E), and the weights or None.
    """
    operands = (query, key, value)
    weights = (qkv_weight, qkv_bias, proj_weight, proj_bias)
    return Outputs(
        _run_native(
            operands, weights, num_head, mask, mask_type, need_weights, average_attn_weights
        )
    )


def _run_native(
    operands: tuple[Array, ...],
    weights: tuple[Array | None, ...],
    heads: int,
    mask: Array | None,
    mask_type: int | None,
    need_weights: bool = False,
    average: bool = True,
) -> tuple[Array, Array | None]:
    in_weight, in_bias, out_weight, out_bias = weights
    if out_weight is None:
        raise LayerError("the weight of the output projection is missing")
    layer = MultiheadAttention(
        OperatorCall("", "", {}),
        num_heads=heads,
        out_proj_weight=out_weight,
        out_proj_bias=out_bias,
        in_proj_weight=in_weight,
        in_proj_bias=in_bias,
        batch_first=True,
        average_attn_weights=average,
        need_weights=need_weights,
    )
    if mask is not None and mask_type == _KEY_PADDING:
        mask = mask[:, np.newaxis, np.newaxis]
    return layer.compute(operands, mask)


@register("aten::_transformer_encoder_layer_fwd")
def transformer_encoder_layer(
    src: Array,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Array,
    qkv_bias: Array,
    proj_weight: Array,
    proj_bias: Array,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Array,
    norm_bias_1: Array,
    norm_weight_2: Array,
    norm_bias_2: Array,
    ffn_weight_1: Array,
    ffn_bias_1: Array,
    ffn_weight_2: Array,
    ffn_bias_2: Array,
    mask: Array | None = None,
    mask_type: int | None = None,
) -> Array:
    """One layer of a transformer's encoder: ``torch.nn.TransformerEncoderLayer``.

    Self-attention, then two linear layers with an activation between them. Each block has a
    residual connection and a normalisation: after the sum or, with `norm_first`, before the
    block.

    Parameters
    ----------
    src : ndarray of shape (N, L, E)
    embed_dim, num_heads : int
    qkv_weight, qkv_bias : ndarray of shape (3 E, E) and (3 E,)
    proj_weight, proj_bias : ndarray of shape (E, E) and (E,)
    use_gelu : bool
        GELU instead of ReLU.
    norm_first : bool
    eps : float
        Of both normalisations.
    norm_weight_1, norm_bias_1, norm_weight_2, norm_bias_2 : ndarray of shape (E,)
    ffn_weight_1, ffn_bias_1 : ndarray of shape (F, E) and (F,)
    ffn_weight_2, ffn_bias_2 : ndarray of shape (E, F) and (E,)
    mask, mask_type
        As in ``aten::_native_multi_head_attention``.

    Returns
    -------
    ndarray of shape (N, L, E)
        A new array.
    """
    weights = (qkv_weight, qkv_bias, proj_weight, proj_bias)

    def attention(x: Array) -> Array:
        return _run_native((x, x, x), weights, num_heads, mask, mask_type)[0]

    def feed_forward(x: Array) -> Array:
        hidden = linear(x, ffn_weight_1, ffn_bias_1)
        return linear((gelu if use_gelu else relu)(hidden), ffn_weight_2, ffn_bias_2)

    size = src.shape[-1]
    for inner, weight, bias in (
        (attention, norm_weight_1, norm_bias_1),
        (feed_forward, norm_weight_2, norm_bias_2),
    ):
        if norm_first:
            src = src + inner(layer_norm(src, size, weight, bias, eps))
        else:
            src = layer_norm(src + inner(src), size, weight, bias, eps)
    return src
