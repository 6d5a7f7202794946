"""Losses, which measure the distance of an output from a target.

pnnx keeps losses as ``aten::`` operators. The functional types share their code. Each loss is a
formula per element or sample, reduced at the end.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from engine.errors import InferStatus, LayerError, describe_shapes
from engine.layers.distance import pairwise_distance
from engine.layers.registry import register
from engine.layers.softmax import log_softmax
from engine.layers.windows import working_dtype
from engine.promotion import DType, float_dtype, promote
from engine.values import Array

__all__ = [
    "Reduction",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "margin_ranking_loss",
    "method_of",
    "mse_loss",
    "nll_loss",
    "poisson_nll_loss",
    "reduce_losses",
    "smooth_l1_loss",
    "soft_margin_loss",
]

_REDUCTIONS: Final[dict[int | str, str]] = {0: "none", 1: "mean", 2: "sum"}  # PyTorch's numbers
_COSINE_EPS: Final = 1e-12
_LOWEST_LOG: Final = -100.0  # PyTorch's lower limit of logarithms in a binary cross entropy

Reduction = int | str


def method_of(reduction: Reduction) -> Reduction:
    """Return the name of a reduction; an unknown one as it is given."""
    return _REDUCTIONS.get(reduction, reduction)


def reduce_losses(values: Array, reduction: Reduction) -> Array:
    """Reduce values to their mean or sum, in double precision, or return them unchanged.

    Parameters
    ----------
    values : ndarray of any shape, floating-point
    reduction : str or int
        ``mean``, ``sum`` or ``none``, or PyTorch's number for it.

    Returns
    -------
    ndarray of shape (), or `values`
    """
    method = method_of(reduction)
    if method == "none":
        return values
    if method not in {"mean", "sum"}:
        raise LayerError(f"reduction={reduction} is not one of none, mean and sum")
    total = np.sum(values, dtype=np.float64)
    with np.errstate(all="ignore"):
        result = total / np.float64(values.size) if method == "mean" else total
    return np.asarray(result, values.dtype)


def _make_shape_error(input: Array, target: Array) -> LayerError:
    return LayerError(
        f"an input of shape {describe_shapes([input.shape])} does not fit targets of "
        f"shape {describe_shapes([target.shape])}",
        InferStatus.kInferArraySizeMismatch,
    )


def _promote_pair(input: Array, target: Array) -> tuple[Array, Array, DType]:
    """Convert to the dtype to compute in and broadcast; also return the result's dtype."""
    try:
        x, y = np.broadcast_arrays(*promote(input, target))
    except ValueError:
        shapes = describe_shapes([input.shape, target.shape])
        raise LayerError(
            f"input and target of shapes {shapes} do not fit",
            InferStatus.kInferArraySizeMismatch,
        ) from None
    dtype = float_dtype(x.dtype)
    work = working_dtype(dtype)
    return x.astype(work, copy=False), y.astype(work, copy=False), dtype


@register("F.mse_loss", "aten::mse_loss")
def mse_loss(input: Array, target: Array, reduction: Reduction = "mean") -> Array:
    """Squared differences: ``F.mse_loss``.

    Parameters
    ----------
    input, target : ndarray of any shape
    reduction : str
        ``mean``, ``sum`` or ``none``.

    Returns
    -------
    ndarray of shape (), or of the input's shape with ``none``
    """
    x, y, dtype = _promote_pair(input, target)
    return reduce_losses(np.square(x - y), reduction).astype(dtype, copy=False)


@register("F.l1_loss", "aten::l1_loss")
def l1_loss(input: Array, target: Array, reduction: Reduction = "mean") -> Array:
    """Absolute differences: ``F.l1_loss``; as ``F.mse_loss``."""
    x, y, dtype = _promote_pair(input, target)
    return reduce_losses(np.abs(x - y), reduction).astype(
        np.empty(0, dtype).real.dtype, copy=False
    )


@register("F.smooth_l1_loss", "aten::smooth_l1_loss")
def smooth_l1_loss(
    input: Array, target: Array, reduction: Reduction = "mean", beta: float = 1.0
) -> Array:
    """Differences, squared where they are less than `beta`: ``F.smooth_l1_loss``.

    ``d ** 2 / (2 * beta)`` there, ``d - beta / 2`` elsewhere; else as ``F.mse_loss``.
    """
    if beta == 0:
        return l1_loss(input, target, reduction)
    x, y, dtype = _promote_pair(input, target)
    d = np.abs(x - y)
    values = np.where(d < beta, np.square(d) / (2 * beta), d - beta / 2)
    return reduce_losses(values, reduction).astype(dtype, copy=False)


@register("F.huber_loss", "aten::huber_loss")
def huber_loss(
    input: Array, target: Array, reduction: Reduction = "mean", delta: float = 1.0
) -> Array:
    """`delta` times the ``F.smooth_l1_loss`` with `delta` for `beta`: ``F.huber_loss``."""
    x, y, dtype = _promote_pair(input, target)
    d = np.abs(x - y)
    values = np.where(d <= delta, np.square(d) / 2, delta * (d - delta / 2))
    return reduce_losses(values, reduction).astype(dtype, copy=False)


@register("F.soft_margin_loss", "aten::soft_margin_loss")
def soft_margin_loss(input: Array, target: Array, reduction: Reduction = "mean") -> Array:
    """``log(1 + exp(-target * input))``: ``F.soft_margin_loss``; as ``F.mse_loss``."""
    x, y, dtype = _promote_pair(input, target)
    return reduce_losses(np.logaddexp(0, -y * x), reduction).astype(dtype, copy=False)


@register("F.hinge_embedding_loss", "aten::hinge_embedding_loss")
def hinge_embedding_loss(
    input: Array, target: Array, margin: float = 1.0, reduction: Reduction = "mean"
) -> Array:
    """The input where the target is 1, ``max(0, margin - input)`` where it is -1.

    ``F.hinge_embedding_loss``; else as ``F.mse_loss``.
    """
    x, y, dtype = _promote_pair(input, target)
    values = np.where(y == 1, 0, np.maximum(margin - x, 0)) + np.where(y == -1, 0, x)
    return reduce_losses(values, reduction).astype(dtype, copy=False)


@register("F.margin_ranking_loss", "aten::margin_ranking_loss")
def margin_ranking_loss(
    input1: Array,
    input2: Array,
    target: Array,
    margin: float = 0.0,
    reduction: Reduction = "mean",
) -> Array:
    """``max(0, -target * (input1 - input2) + margin)``: ``F.margin_ranking_loss``."""
    x, y, dtype = _promote_pair(input1, input2)
    return reduce_losses(np.maximum(margin - target * (x - y), 0), reduction).astype(dtype)


@register("F.triplet_margin_loss", "aten::triplet_margin_loss")
def triplet_margin_loss(
    anchor: Array,
    positive: Array,
    negative: Array,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: Reduction = "mean",
) -> Array:
    """Margin between distances to a positive and a negative: ``F.triplet_margin_loss``.

    ``max(0, d(anchor, positive) - d(anchor, negative) + margin)`` with the p-norm. With `swap`
    the negative's distance is the smaller of its distances to anchor and positive.
    """
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = np.minimum(far, pairwise_distance(positive, negative, p, eps))
    return reduce_losses(np.maximum(near - far + margin, 0), reduction)


@register("F.cosine_embedding_loss", "aten::cosine_embedding_loss")
def cosine_embedding_loss(
    input1: Array,
    input2: Array,
    target: Array,
    margin: float = 0.0,
    reduction: Reduction = "mean",
) -> Array:
    """Distance of two vectors' cosine from a target: ``F.cosine_embedding_loss``.

    Parameters
    ----------
    input1, input2 : ndarray of shape (N, D) or (D,)
    target : ndarray of shape (N,) or ()
        1 for ``1 - cosine``, -1 for ``max(0, cosine - margin)``.
    margin : float
        Largest cosine without loss for a target of -1.
    reduction : str
        ``mean``, ``sum`` or ``none``.

    Returns
    -------
    ndarray of shape (), or of the target's shape with ``none``
    """
    x, y, dtype = _promote_pair(input1, input2)
    # Like PyTorch: eps is added to the squares, and sums are not compensated.
    products = [np.sum(a * b, -1) for a, b in ((x, y), (x, x), (y, y))]
    cosine = products[0] / np.sqrt((products[1] + _COSINE_EPS) * (products[2] + _COSINE_EPS))
    values = np.where(target == 1, 1 - cosine, 0)
    values = np.where(target == -1, np.maximum(cosine - margin, 0), values)
    return reduce_losses(values, reduction).astype(dtype, copy=False)


@register("F.multi_margin_loss", "aten::multi_margin_loss")
def multi_margin_loss(
    input: Array,
    target: Array,
    p: float = 1,
    margin: float = 1.0,
    weight: Array | None = None,
    reduction: Reduction = "mean",
) -> Array:
    """Margin of the right class over all others: ``F.multi_margin_loss``.

    Parameters
    ----------
    input : ndarray of shape (N, C) or (C,)
    target : int64 ndarray of shape (N,) or ()
        Right classes.
    p : int
        Power, 1 or 2.
    margin : float
        Margin by which the right class should lead.
    weight : ndarray of shape (C,), optional
        Weight of each class.
    reduction : str
        ``mean``, ``sum`` or ``none``.

    Returns
    -------
    ndarray of shape (), or of the target's shape with ``none``
        For a sample, the sum of ``weight * max(0, margin - right + other) ** p`` over the
        other classes, divided by C.
    """
    scores = np.atleast_2d(input).astype(working_dtype(input.dtype), copy=False)
    classes = np.atleast_1d(target)
    if classes.shape != scores.shape[:1] or classes.size == 0:
        raise _make_shape_error(input, target)
    if not 0 <= classes.min() <= classes.max() < scores.shape[1]:
        raise LayerError(f"a target is not one of the {scores.shape[1]} classes")
    rows = np.arange(len(scores))
    lack = np.maximum(margin - scores[rows, classes][:, np.newaxis] + scores, 0) ** p
    if weight is not None:
        lack = lack * weight[classes][:, np.newaxis]
    lack[rows, classes] = 0
    values = np.asarray(lack.sum(1) / scores.shape[1], scores.dtype).reshape(target.shape)
    return reduce_losses(values, reduction).astype(input.dtype, copy=False)


@register("F.multilabel_margin_loss", "aten::multilabel_margin_loss")
def multilabel_margin_loss(input: Array, target: Array, reduction: Reduction = "mean") -> Array:
    """Margin of the right classes over all others: ``F.multilabel_margin_loss``.

    Parameters
    ----------
    input : ndarray of shape (N, C) or (C,)
    target : int64 ndarray of the same shape
        Right classes, up to the first -1.
    reduction : str
        ``mean``, ``sum`` or ``none``.

    Returns
    -------
    ndarray of shape (), or (N,) with ``none``
        For a sample, the sum of ``max(0, 1 - right + other)`` over all pairs of a right and a
        wrong class, divided by C.
    """
    scores = np.atleast_2d(input).astype(working_dtype(input.dtype), copy=False)
    classes = np.atleast_2d(target)
    count = scores.shape[1]
    if classes.shape != scores.shape or not count:
        raise _make_shape_error(input, target)
    if not -1 <= classes.min(initial=-1) <= classes.max(initial=-1) < count:
        raise LayerError(f"a target is not one of the {count} classes")
    values = np.empty(len(scores), scores.dtype)
    for sample, (row, own) in enumerate(zip(scores, classes, strict=True)):
        right = own[np.cumsum(own == -1) == 0]
        others = np.delete(row, right)
        lack = 1 - row[right][:, np.newaxis] + others
        values[sample] = np.maximum(lack, 0).sum(dtype=np.float64) / count
    values = values.reshape(input.shape[:-1])
    return reduce_losses(values, reduction).astype(input.dtype, copy=False)


@register("F.kl_div", "aten::kl_div")
def kl_div(
    input: Array, target: Array, reduction: Reduction = "mean", log_target: bool = False
) -> Array:
    """Kullback-Leibler divergence of logarithms of probabilities: ``F.kl_div``.

    ``target * (log(target) - input)``, with `log_target` of logarithms; as ``F.mse_loss``.
    """
    x, y, dtype = _promote_pair(input, target)
    with np.errstate(all="ignore"):
        if log_target:
            values = np.exp(y) * (y - x)
        else:
            values = np.where(y == 0, 0, y * np.log(y)) - y * x
    return reduce_losses(values, reduction).astype(dtype, copy=False)


@register("F.poisson_nll_loss", "aten::poisson_nll_loss")
def poisson_nll_loss(
    input: Array,
    target: Array,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: Reduction = "mean",
) -> Array:
    """Negative logarithm of a Poisson likelihood: ``F.poisson_nll_loss``.

    ``exp(x) - y * x``, or without `log_input` ``x - y * log(x + eps)``; `full` adds
    Stirling's approximation of ``log(y!)`` where y is more than 1. As ``F.mse_loss``.
    """
    x, y, dtype = _promote_pair(input, target)
    with np.errstate(all="ignore"):
        values = np.exp(x) - y * x if log_input else x - y * np.log(x + eps)
        if full:
            stirling = y * np.log(y) - y + 0.5 * np.log(2 * np.pi * y)
            values = values + np.where(y <= 1, 0, stirling)
    return reduce_losses(values, reduction).astype(dtype, copy=False)


@register("F.binary_cross_entropy", "aten::binary_cross_entropy")
def binary_cross_entropy(
    input: Array,
    target: Array,
    weight: Array | None = None,
    reduction: Reduction = "mean",
) -> Array:
    """Cross entropy of probabilities of two classes: ``F.binary_cross_entropy``.

    ``-(y * log(x) + (1 - y) * log(1 - x))``, logarithms at least -100, times `weight`.
    """
    x, y, dtype = _promote_pair(input, target)
    with np.errstate(all="ignore"):
        hit, miss = (np.maximum(np.log(p), _LOWEST_LOG) for p in (x, 1 - x))
    values = (y - 1) * miss - y * hit
    if weight is not None:
        values = values * weight
    return reduce_losses(values, reduction).astype(dtype, copy=False)


@register("F.binary_cross_entropy_with_logits", "aten::binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(
    input: Array,
    target: Array,
    weight: Array | None = None,
    pos_weight: Array | None = None,
    reduction: Reduction = "mean",
) -> Array:
    """``F.binary_cross_entropy`` of the sigmoid; `pos_weight` is the weight of targets of 1."""
    x, y, dtype = _promote_pair(input, target)
    share = 1 if pos_weight is None else (pos_weight - 1) * y + 1
    values = (1 - y) * x + share * np.logaddexp(0, -x)
    if weight is not None:
        values = values * weight
    return reduce_losses(values, reduction).astype(dtype, copy=False)


@register("F.nll_loss", "aten::nll_loss", "aten::nll_loss_nd")
def nll_loss(
    input: Array,
    target: Array,
    weight: Array | None = None,
    reduction: Reduction = "mean",
    ignore_index: int = -100,
) -> Array:
    """Negative log-likelihood of the right class: ``F.nll_loss``.

    Parameters
    ----------
    input : ndarray of shape (N, C, ...) or (C,)
        Logarithms of probabilities.
    target : int64 ndarray of shape (N, ...) or ()
        Right classes.
    weight : ndarray of shape (C,), optional
        Weight of each class; ``mean`` divides by the sum of the targets' weights.
    reduction : str
        ``mean``, ``sum`` or ``none``.
    ignore_index : int
        Target to ignore.

    Returns
    -------
    ndarray of shape (), or of the target's shape with ``none``
    """
    axis = 0 if input.ndim == 1 else 1
    if input.ndim < 1 or target.shape != (*input.shape[:axis], *input.shape[axis + 1 :]):
        raise _make_shape_error(input, target)
    counted = target != ignore_index
    classes = np.where(counted, target, 0)
    if classes.size and not 0 <= classes.min() <= classes.max() < input.shape[axis]:
        raise LayerError(f"a target is not one of the {input.shape[axis]} classes")
    taken = np.take_along_axis(input, np.expand_dims(classes, axis), axis).squeeze(axis)
    shares = counted.astype(input.dtype)
    if weight is not None:
        shares = shares * weight[classes]
    # The loss of an ignored target may be infinite.
    values = np.where(counted, -taken * shares, 0).astype(input.dtype)
    if method_of(reduction) != "mean":
        return reduce_losses(values, reduction)
    with np.errstate(all="ignore"):
        mean = np.sum(values, dtype=np.float64) / np.sum(shares, dtype=np.float64)
    return np.asarray(mean, input.dtype)


@register("F.cross_entropy", "aten::cross_entropy_loss")
def cross_entropy(
    input: Array,
    target: Array,
    weight: Array | None = None,
    reduction: Reduction = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Array:
    """Cross entropy of the softmax: ``F.cross_entropy``.

    Parameters
    ----------
    input : ndarray of shape (N, C, ...) or (C,)
        Unnormalised logarithms of probabilities.
    target : int64 ndarray of shape (N, ...) or (), or ndarray of the input's shape
        Right classes, or probabilities of all of them.
    weight, reduction, ignore_index
        As in ``F.nll_loss``.
    label_smoothing : float
        Share of the target that is spread evenly over all classes.

    Returns
    -------
    ndarray of shape (), or of shape (N, ...) with ``none``
    """
    axis = 0 if input.ndim == 1 else 1
    logs = log_softmax(input, axis)
    column = (-1, *(1,) * (input.ndim - axis - 1))
    scale = np.ones((), logs.dtype) if weight is None else weight.reshape(column)
    if target.shape == input.shape and target.dtype.kind == "f":
        smooth = target * (1 - label_smoothing) + label_smoothing / input.shape[axis]
        values = np.asarray(-(logs * smooth * scale).sum(axis), logs.dtype)
        if method_of(reduction) != "mean":
            return reduce_losses(values, reduction)
        samples = values.size
        return np.asarray(np.sum(values, dtype=np.float64) / max(samples, 1), logs.dtype)
    right = nll_loss(logs, target, weight, reduction, ignore_index)
    if label_smoothing == 0:
        return right
    counted = target != ignore_index
    spread = np.asarray(np.where(counted, -(logs * scale).sum(axis), 0))
    if method_of(reduction) == "mean":
        shares = counted if weight is None else weight[np.where(counted, target, 0)] * counted
        spread = np.asarray(np.sum(spread, dtype=np.float64) / np.sum(shares, dtype=np.float64))
    else:
        spread = reduce_losses(spread, reduction)
    share = label_smoothing / input.shape[axis]
    return np.asarray((1 - label_smoothing) * right + share * spread, logs.dtype)
