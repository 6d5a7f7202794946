"""Normalisation by stored statistics, or by those of the input."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import override

from engine.errors import InferStatus, LayerError, ParameterError, describe_shapes
from engine.layers.annotations import WeightOf
from engine.layers.arguments import as_ints, axes_of
from engine.layers.layer import Ints, Layer, OperatorCall, Outputs
from engine.layers.registry import register
from engine.layers.windows import axis_taps, ready, spatial_rank, working_dtype
from engine.values import Array, Value

if TYPE_CHECKING:
    from engine.promotion import DType

__all__ = [
    "BatchNorm",
    "InstanceNorm",
    "batch_norm",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "local_response_norm",
    "normalize",
    "rms_norm",
]


@register("nn.BatchNorm1d", "nn.BatchNorm2d", "nn.BatchNorm3d")
class BatchNorm(Layer):
    """Normalise each channel by stored statistics: ``torch.nn.BatchNorm1d``, ``...2d``, ``3d``.

    ``y[n, c] = (x[n, c] - running_mean[c]) / sqrt(running_var[c] + eps) * weight[c] +
    bias[c]``.

    Parameters
    ----------
    running_mean, running_var : ndarray of shape (C,), optional
        By default the batch's own mean and (biased) variance per channel.
    weight, bias : ndarray of shape (C,), optional
    eps : float
    num_features : int
        C; only compared with the statistics.
    affine : bool
        Whether there are weight and bias.
    """

    def __init__(
        self,
        call: OperatorCall,
        running_mean: Array | None = None,
        running_var: Array | None = None,
        weight: Array | None = None,
        bias: Array | None = None,
        eps: float = 1e-5,
        num_features: int | None = None,
        affine: bool = True,
    ) -> None:
        rank = spatial_rank(call)
        self.ndims = {2, 3} if rank == 1 else {rank + 2}
        self.arguments = (running_mean, running_var, weight, bias)
        names = ("running_mean", "running_var", "weight", "bias")
        for name, array in zip(names, self.arguments, strict=True):
            if array is not None and num_features not in {None, array.size}:
                raise ParameterError(
                    "num_features",
                    f"num_features={num_features}, but {name} has {array.size} numbers",
                )
        self.eps = eps

    @override
    def forward(self, input: Array) -> Array:
        if input.ndim not in self.ndims:
            wanted = " or ".join(map(str, sorted(self.ndims)))
            raise LayerError(
                f"the input has {input.ndim} dimensions, not {wanted}: its shape is "
                f"{describe_shapes([input.shape])}",
                InferStatus.kInferArraySizeMismatch,
            )
        return batch_norm(input, *self.arguments, eps=self.eps)


@register(
    "aten::batch_norm",
    operands="input weight bias running_mean running_var training momentum eps _",
)
@register("F.batch_norm", "torch.batch_norm")
def batch_norm(
    input: Array,
    running_mean: Array | None = None,
    running_var: Array | None = None,
    weight: Array | None = None,
    bias: Array | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Array:
    """Normalise each channel by given statistics: ``torch.nn.functional.batch_norm``.

    Parameters
    ----------
    input : ndarray of shape (N, C, ...)
    running_mean, running_var : ndarray of shape (C,), optional
        By default, or with `training`, the input's own mean and (biased) variance.
    weight, bias : ndarray of shape (C,), optional
    eps : float

    Returns
    -------
    ndarray of shape (N, C, ...)
        ``(x - mean) / sqrt(var + eps) * weight + bias``.
    """
    if input.ndim < 2:
        raise LayerError(f"batch norm needs a channel axis; the input has shape {input.shape}")
    work = working_dtype(input.dtype)
    x = input.astype(work, copy=False)
    if training or running_mean is None or running_var is None:
        others = (0, *range(2, input.ndim))
        return _apply_affine(_standardize(x, others, eps), weight, bias, 1).astype(
            input.dtype, copy=False
        )
    scale = 1 / np.sqrt(_reshape_per_channel(running_var, input, 1, work) + work.type(eps))
    if weight is not None:
        scale *= _reshape_per_channel(weight, input, 1, work)
    shift = -_reshape_per_channel(running_mean, input, 1, work) * scale
    if bias is not None:
        shift += _reshape_per_channel(bias, input, 1, work)
    result: Array = x * scale
    result += shift
    return result.astype(input.dtype, copy=False)


@register("nn.InstanceNorm1d", "nn.InstanceNorm2d", "nn.InstanceNorm3d")
class InstanceNorm(Layer):
    """Normalise each channel of each sample: ``torch.nn.InstanceNorm1d``, ``...2d``, ``3d``.

    ``y[n, c] = (x[n, c] - mean(x[n, c])) / sqrt(var(x[n, c]) + eps) * weight[c] + bias[c]``
    with the biased variance; by stored statistics where `track_running_stats`.

    Parameters
    ----------
    weight, bias, running_mean, running_var : ndarray of shape (C,), optional
    eps : float
    num_features : int
        C; only compared with the weight.
    affine, track_running_stats : bool
        Whether there are weight and bias; whether there are stored statistics.
    """

    def __init__(
        self,
        call: OperatorCall,
        weight: Array | None = None,
        bias: Array | None = None,
        running_mean: Array | None = None,
        running_var: Array | None = None,
        eps: float = 1e-5,
        num_features: int | None = None,
        affine: bool = False,
        track_running_stats: bool = False,
    ) -> None:
        if weight is not None and num_features not in {None, weight.size}:
            raise ParameterError(
                "num_features",
                f"num_features={num_features}, but the weight has {weight.size} numbers",
            )
        self.rank = spatial_rank(call)
        self.arguments = (running_mean, running_var, weight, bias)
        self.own = running_mean is None or running_var is None
        self.eps = eps

    @override
    def forward(self, input: Array) -> Array:
        batch = input[np.newaxis] if input.ndim == self.rank + 1 else input
        result = instance_norm(batch, *self.arguments, self.own, eps=self.eps)
        return result.reshape(input.shape)


@register(
    "aten::instance_norm",
    operands="input weight bias running_mean running_var use_input_stats momentum eps _",
)
@register("F.instance_norm", "torch.instance_norm")
def instance_norm(
    input: Array,
    running_mean: Array | None = None,
    running_var: Array | None = None,
    weight: Array | None = None,
    bias: Array | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Array:
    """Normalise each channel of each sample: ``torch.nn.functional.instance_norm``.

    Parameters
    ----------
    input : ndarray of shape (N, C, ...)
    running_mean, running_var : ndarray of shape (C,), optional
        Used only without `use_input_stats`.
    weight, bias : ndarray of shape (C,), optional
    use_input_stats : bool
        Whether to compute mean and (biased) variance of the input.
    eps : float

    Returns
    -------
    ndarray of shape (N, C, ...)
    """
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, eps=eps)
    x = input.astype(working_dtype(input.dtype), copy=False)
    result = _standardize(x, tuple(range(2, input.ndim)), eps)
    return _apply_affine(result, weight, bias, 1).astype(input.dtype, copy=False)


@register("aten::group_norm", operands="input num_groups weight bias eps _")
@register("nn.GroupNorm", "F.group_norm", "torch.group_norm")
def group_norm(
    input: Array,
    num_groups: int,
    weight: WeightOf[Array | None] = None,
    bias: WeightOf[Array | None] = None,
    eps: float = 1e-5,
    num_channels: int | None = None,
    affine: bool = True,
) -> Array:
    """Normalise groups of channels of each sample: ``torch.nn.GroupNorm``.

    Parameters
    ----------
    input : ndarray of shape (N, C, ...)
    num_groups : int
        C / num_groups channels share mean and (biased) variance.
    weight, bias : ndarray of shape (C,), optional
    eps : float

    Returns
    -------
    ndarray of shape (N, C, ...)
        ``(x - mean) / sqrt(var + eps) * weight + bias``.
    """
    if input.ndim < 2 or num_groups < 1 or input.shape[1] % num_groups:
        raise LayerError(
            f"num_groups={num_groups} cannot divide the channels of "
            f"{describe_shapes([input.shape])}",
            InferStatus.kInferArraySizeMismatch,
        )
    x = input.astype(working_dtype(input.dtype), copy=False)
    per_group = input.size // max(len(input) * num_groups, 1)
    groups = x.reshape(len(input), num_groups, per_group)
    result = _standardize(groups, (2,), eps).reshape(input.shape)
    return _apply_affine(result, weight, bias, 1).astype(input.dtype, copy=False)


@register("aten::layer_norm", operands="input normalized_shape weight bias eps _")
@register("nn.LayerNorm", "F.layer_norm", "torch.layer_norm")
def layer_norm(
    input: Array,
    normalized_shape: Ints | Array,
    weight: WeightOf[Array | None] = None,
    bias: WeightOf[Array | None] = None,
    eps: float = 1e-5,
    elementwise_affine: bool = True,
) -> Array:
    """Normalise over the last axes: ``torch.nn.LayerNorm``.

    Parameters
    ----------
    input : ndarray of shape (..., S...)
    normalized_shape : tuple of int
        S...; these axes share mean and (biased) variance.
    weight, bias : ndarray of shape (S...), optional
    eps : float

    Returns
    -------
    ndarray of shape (..., S...)
        ``(x - mean) / sqrt(var + eps) * weight + bias``.
    """
    axes = _find_normalized_axes(input, normalized_shape)
    x = input.astype(working_dtype(input.dtype), copy=False)
    result = _standardize(x, axes, eps)
    if weight is not None:
        result *= ready(weight, x.dtype)
    if bias is not None:
        result += ready(bias, x.dtype)
    return result.astype(input.dtype, copy=False)


@register("aten::native_layer_norm")
def native_layer_norm(
    input: Array,
    normalized_shape: Ints | Array,
    weight: Array | None,
    bias: Array | None,
    eps: float,
) -> Outputs:
    """Normalise over the last axes, and return the statistics: ``torch.native_layer_norm``.

    Parameters
    ----------
    input, normalized_shape, weight, bias, eps
        As in ``F.layer_norm``.

    Returns
    -------
    result, mean, rstd : ndarray
        Mean and the reciprocal of the standard deviation, their last axes of size 1.
    """
    axes = _find_normalized_axes(input, normalized_shape)
    result = layer_norm(input, normalized_shape, weight, bias, eps)
    return Outputs([result, *_compute_statistics(input, axes, eps)])


@register("aten::native_group_norm", operands="input weight bias _ _ _ num_groups eps")
def native_group_norm(
    input: Array, num_groups: int, weight: Array | None, bias: Array | None, eps: float
) -> Outputs:
    """Normalise groups of channels, and return the statistics: ``torch.native_group_norm``.

    Parameters
    ----------
    input, num_groups, weight, bias, eps
        As in ``F.group_norm``.

    Returns
    -------
    result, mean, rstd : ndarray
        Mean and the reciprocal of the standard deviation have the shape (N, num_groups).
    """
    result = group_norm(input, num_groups, weight, bias, eps)
    groups = input.reshape(len(input), num_groups, -1)
    mean, rstd = _compute_statistics(groups, (2,), eps)
    return Outputs([result, mean[..., 0], rstd[..., 0]])


@register("nn.RMSNorm", "F.rms_norm", "torch.rms_norm", "aten::rms_norm")
def rms_norm(
    input: Array,
    normalized_shape: Ints | Array,
    weight: WeightOf[Array | None] = None,
    eps: float | None = None,
    elementwise_affine: bool = True,
) -> Array:
    """Divide by the root mean square of the last axes: ``torch.nn.RMSNorm``.

    Parameters
    ----------
    input : ndarray of shape (..., S...)
    normalized_shape : tuple of int
        S...
    weight : ndarray of shape (S...), optional
    eps : float, optional
        The dtype's epsilon by default.

    Returns
    -------
    ndarray of shape (..., S...)
        ``x / sqrt(mean(x ** 2) + eps) * weight``.
    """
    axes = _find_normalized_axes(input, normalized_shape)
    x = input.astype(working_dtype(input.dtype), copy=False)
    small = x.dtype.type(np.finfo(x.dtype).eps if eps is None else eps)
    result: Array = x / np.sqrt(np.square(x).mean(axes, keepdims=True) + small)
    if weight is not None:
        result *= ready(weight, x.dtype)
    return result.astype(input.dtype, copy=False)


@register("nn.LocalResponseNorm", "F.local_response_norm")
def local_response_norm(
    input: Array, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Array:
    """Normalise over neighbouring channels: ``torch.nn.LocalResponseNorm``.

    Parameters
    ----------
    input : ndarray of shape (N, C, ...)
    size : int
        Number of neighbouring channels, size // 2 of them before.
    alpha, beta, k : float
        Factor, power and offset of the formula.

    Returns
    -------
    ndarray of shape (N, C, ...)
        ``x / (k + alpha / size * sum over neighbours of x ** 2) ** beta``.
    """
    if input.ndim < 3 or size < 1:
        raise LayerError(f"size={size} channels of {describe_shapes([input.shape])}")
    x = input.astype(working_dtype(input.dtype), copy=False)
    squares, total = np.square(x), np.zeros_like(x)
    channels = input.shape[1]
    for outputs, inputs in axis_taps(channels, channels, size, 1, 1, size // 2):
        total[:, outputs] += squares[:, inputs]
    result: Array = x / np.power(total * (alpha / size) + k, beta)
    return result.astype(input.dtype, copy=False)


@register("F.normalize")
def normalize(input: Array, p: float = 2.0, dim: Ints = 1, eps: float = 1e-12) -> Array:
    """Divide by the p-norm along axes: ``torch.nn.functional.normalize``.

    Parameters
    ----------
    input : ndarray of shape (...)
    p : float
        Exponent of the norm; may be inf.
    dim : int or tuple of int
    eps : float
        Smallest divisor.

    Returns
    -------
    ndarray of the same shape
        ``x / max(norm(x), eps)``.
    """
    axes = axes_of(dim, input.ndim)
    x = np.abs(input.astype(working_dtype(input.dtype), copy=False))
    if np.isinf(p):
        norm = (x.max if p > 0 else x.min)(axis=axes, keepdims=True)
    elif p == 0:
        norm = np.count_nonzero(x, axis=axes, keepdims=True).astype(x.dtype)
    else:
        norm = np.power(np.power(x, p).sum(axis=axes, keepdims=True), 1 / p)
    result: Array = input / np.maximum(norm, eps).astype(x.dtype)
    return result.astype(input.dtype, copy=False)


def _standardize(x: Array, axes: tuple[int, ...], eps: float) -> Array:
    """Subtract the mean over axes and divide by the standard deviation; a new array."""
    result: Array = x - x.mean(axes, keepdims=True)
    variance = np.square(result).mean(axes, keepdims=True)
    result /= np.sqrt(variance + x.dtype.type(eps))
    return result


def _compute_statistics(x: Array, axes: tuple[int, ...], eps: float) -> tuple[Array, Array]:
    """Mean over axes, and the reciprocal of the standard deviation; the axes have size 1."""
    wide = x.astype(np.float64)
    mean = wide.mean(axes, keepdims=True)
    rstd = 1 / np.sqrt(wide.var(axes, keepdims=True) + eps)
    return mean.astype(x.dtype), rstd.astype(x.dtype)


def _find_normalized_axes(input: Array, normalized_shape: Value) -> tuple[int, ...]:
    """The last axes, checked against `normalized_shape`."""
    shape = as_ints(normalized_shape, "normalized_shape")
    if not shape or input.shape[-len(shape) :] != shape:
        raise LayerError(
            f"the input's last sizes must be {describe_shapes([shape])}; its shape is "
            f"{describe_shapes([input.shape])}",
            InferStatus.kInferArraySizeMismatch,
            pinned_by="normalized_shape",
        )
    return tuple(range(-len(shape), 0))


def _apply_affine(x: Array, weight: Array | None, bias: Array | None, axis: int) -> Array:
    """Scale and shift each channel in place."""
    if weight is not None:
        x *= _reshape_per_channel(weight, x, axis, x.dtype)
    if bias is not None:
        x += _reshape_per_channel(bias, x, axis, x.dtype)
    return x


def _reshape_per_channel(values: Array, x: Array, axis: int, dtype: DType) -> Array:
    """Reshape (C,) to (C, 1...), which broadcasts with `x`."""
    if values.size != x.shape[axis]:
        raise LayerError(
            f"the input has {x.shape[axis]} channels, the layer takes {values.size}",
            InferStatus.kInferArraySizeMismatch,
        )
    return ready(values, dtype).reshape(-1, *(1,) * (x.ndim - axis - 1))
