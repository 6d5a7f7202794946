"""Convolution over one, two or three spatial axes.

There are three algorithms. A 1x1 convolution is a matrix product. A depthwise convolution sums
its taps. Any other convolution gathers the windows of a block of outputs as columns and
multiplies once per group. Temporary arrays stay below `_COLUMN_BYTES` for any image.
"""

from __future__ import annotations

import itertools
import math
from typing import Final

import numpy as np
from typing_extensions import override

from engine.errors import InferStatus, LayerError, ParameterError
from engine.layers.arguments import require_products
from engine.layers.layer import Ints, PreparingLayer
from engine.layers.padding import PADDING_MODES, pad_axes
from engine.layers.registry import register
from engine.layers.windows import (
    Windows,
    blocks,
    new_output,
    per_axis,
    ready,
    require_image,
    working_dtype,
)
from engine.promotion import DType, promote_types
from engine.values import Array

__all__ = [
    "Convolution",
    "check_bias",
    "check_channels",
    "check_kernel",
    "convolution",
    "require_channels",
]

_COLUMN_BYTES: Final = 8 << 20  # bytes of gathered windows; about a processor's cache
_LONG_ROWS: Final = 2  # least channels per pixel of a row for an inner loop over channels
_TAP_BYTES: Final = 1 << 19  # bytes of the depthwise output that is computed at a time


@register("nn.Conv1d", "nn.Conv2d", "nn.Conv3d")
class Convolution(PreparingLayer[Array]):
    """Slide kernels over an image and sum the products: ``torch.nn.Conv1d``, ...

    Each output is the sum of a window of the input times the kernel, plus a bias:
    ``y[n, o, p] = bias[o] + sum over c, t of weight[o, c, t] * x[n, c, p * stride +
    t * dilation - padding]``, where c runs over the C / groups channels of o's group.
    Sizes: ``Hout = (H + 2 * padding - dilation * (Kh - 1) - 1) // stride + 1``.

    Parameters
    ----------
    weight : ndarray of shape (O, C / groups, K...)
        K... is the kernel size, one number per spatial axis.
    bias : ndarray of shape (O,), optional
    stride, dilation : int or tuple of int
    padding : int, tuple of int, None, ``"same"`` or ``"valid"``
        Positions on both sides. ``"same"`` keeps the size and needs stride 1; an odd position
        is added at the end. ``"valid"`` is 0. For layers with a `padding_mode` pnnx writes two
        other forms: twice as many numbers, as for ``F.pad`` (before and after, last axis
        first), or None for ``"same"``.
    groups : int
        Number of independent convolutions of groups of channels; C makes a depthwise one.
    padding_mode : str
        ``zeros``, ``reflect``, ``replicate`` or ``circular``.
    in_channels, out_channels : int
        C and O, compared with the weight's shape.
    kernel_size : int or tuple of int
        K..., compared with the weight's shape.
    """

    def __init__(
        self,
        weight: Array,
        bias: Array | None = None,
        stride: Ints = 1,
        padding: Ints | str | None = 0,
        dilation: Ints = 1,
        groups: int = 1,
        padding_mode: str = "zeros",
        in_channels: int | None = None,
        out_channels: int | None = None,
        kernel_size: Ints | None = None,
    ) -> None:
        check_kernel(weight, kernel_size, groups)
        check_channels("in_channels", in_channels, weight.shape[1] * groups)
        check_channels("out_channels", out_channels, weight.shape[0])
        if padding_mode not in {"zeros", *PADDING_MODES}:
            raise ParameterError(
                "padding_mode",
                f"padding_mode={padding_mode} is not one of zeros, {', '.join(PADDING_MODES)}",
            )
        check_bias(bias, weight.shape[0])
        kernel = weight.shape[2:]
        rank = len(kernel)
        strides = per_axis("stride", stride, rank, least=1)
        dilations = per_axis("dilation", dilation, rank, least=1)
        super().__init__()
        self.weight, self.bias = weight, bias
        self.groups, self.padding_mode = groups, padding_mode
        self.windows = Windows(
            kernel, strides, dilations, _resolve_paddings(padding, kernel, strides, dilations)
        )

    @override
    def forward(self, input: Array) -> Array:
        windows = self.windows
        rank = windows.rank
        require_image(input, rank)
        require_channels(input, rank, self.weight.shape[1] * self.groups)
        if self.padding_mode != "zeros":
            input = pad_axes(input, windows.padding, self.padding_mode)
            windows = Windows(
                windows.kernel, windows.stride, windows.dilation, ((0, 0),) * rank
            )
        dtype = promote_types(input.dtype, self.weight.dtype)
        work = working_dtype(dtype)
        batch = input if input.ndim == rank + 2 else input[np.newaxis]
        counts = windows.counts(batch.shape[2:])
        require_products(len(batch) * math.prod(counts) * self.weight.size)
        output = new_output((len(batch), self.weight.shape[0], *counts), work)
        self._compute(batch.astype(work, copy=False), windows, output)
        shape = (*input.shape[: -rank - 1], *output.shape[1:])
        return output.reshape(shape).astype(dtype, copy=False)

    def _compute(self, batch: Array, windows: Windows, output: Array) -> None:
        """Fill `output`, of shape (N, O, H'...), from `batch`, of shape (N, C, H...)."""
        weight = self.prepared(output.dtype)
        bias = None if self.bias is None else ready(self.bias, output.dtype)
        if windows.is_pointwise:
            _convolve_pointwise(batch, weight, bias, windows, output)
        elif weight.shape[2] == windows.tap_count:
            _convolve_depthwise(batch, weight, bias, windows, output)
        else:
            _convolve_general(batch, weight, bias, windows, output)

    @override
    def prepare(self, dtype: DType) -> Array:
        """Reshape the weight to (G, O / G, C / G * K)."""
        kernels, *kernel = self.weight.shape
        shape = (self.groups, kernels // self.groups, math.prod(kernel))
        return ready(self.weight, dtype).reshape(shape)


@register(
    "F.conv1d", "F.conv2d", "F.conv3d", "torch.conv1d", "torch.conv2d", "torch.conv3d",
    "aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::_convolution_mode",
)  # fmt: skip
def convolution(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Array:
    """Slide computed kernels over an image and sum the products: ``F.conv2d``, ...

    Parameters
    ----------
    input : ndarray of shape (N, C, H...) or (C, H...)
    weight : ndarray of shape (O, C / groups, K...)
    bias : ndarray of shape (O,), optional
    stride, padding, dilation, groups
        As for `Convolution`.

    Returns
    -------
    ndarray of shape (N, O, H'...) or (O, H'...)
    """
    return Convolution(weight, bias, stride, padding, dilation, groups).forward(input)


def _convolve_pointwise(
    batch: Array, weight: Array, bias: Array | None, windows: Windows, output: Array
) -> None:
    steps = tuple(slice(None, None, stride) for stride in windows.stride)
    samples, groups = len(batch), len(weight)
    positions = math.prod(output.shape[2:])
    columns = batch[:, :, *steps].reshape(samples, groups, weight.shape[2], positions)
    products = output.reshape(samples, groups, weight.shape[1], positions)
    np.matmul(weight, columns, out=products)
    if bias is not None:
        output += _reshape_per_channel(bias, windows.rank)


def _convolve_depthwise(
    batch: Array, weight: Array, bias: Array | None, windows: Windows, output: Array
) -> None:
    """Depthwise convolution: sum the taps, a few channels at a time."""
    groups, per_group, _ = weight.shape
    sizes, counts = batch.shape[2:], output.shape[2:]
    if per_group == 1 and groups > _LONG_ROWS * counts[-1]:
        _convolve_depthwise_by_position(batch, weight, bias, windows, output)
        return
    by_tap = weight.reshape(groups, per_group, -1, *(1,) * windows.rank)
    total = output.reshape(len(batch), groups, per_group, *counts)
    total[...] = (
        0
        if bias is None
        else _reshape_per_channel(bias, windows.rank).reshape(
            groups, per_group, *(1,) * windows.rank
        )
    )
    step = max(1, _TAP_BYTES // (total[:1, :1].nbytes or 1))
    whole = tuple(slice(0, count) for count in counts)
    scratch = np.empty((step, per_group, *counts), output.dtype)
    for sample, start in itertools.product(range(len(batch)), range(0, groups, step)):
        image = batch[sample, start : start + step, np.newaxis]
        kernels = by_tap[start : start + step]
        sums = total[sample, start : start + step]
        products = scratch[: len(image)]
        for tap, outputs, inputs in windows.taps(sizes, whole):
            product = products[:, :, *outputs]
            np.multiply(image[:, :, *inputs], kernels[:, :, tap], out=product)
            sums[:, :, *outputs] += product


def _convolve_depthwise_by_position(
    batch: Array, weight: Array, bias: Array | None, windows: Windows, output: Array
) -> None:
    """Like `_convolve_depthwise`, for many channels of small images, with channels innermost.

    NumPy's inner loops then run along the channels, and not along rows of a few pixels.
    """
    sizes, counts = batch.shape[2:], output.shape[2:]
    kernels = np.ascontiguousarray(weight[:, 0].T)
    total = np.empty((*counts, len(weight)), output.dtype)
    step = max(1, _TAP_BYTES // (total[0].nbytes or 1))
    scratch = np.empty((step, *total.shape[1:]), output.dtype)
    others = tuple(slice(0, count) for count in counts[1:])
    for sample in range(len(batch)):
        image = np.ascontiguousarray(np.moveaxis(batch[sample], 0, -1))
        for start in range(0, counts[0], step):
            rows = slice(start, min(start + step, counts[0]))
            sums = total[rows]
            sums[...] = 0 if bias is None else bias
            for tap, outputs, inputs in windows.taps(sizes, (rows, *others)):
                product = scratch[: len(sums)][outputs]
                np.multiply(image[inputs], kernels[tap], out=product)
                sums[outputs] += product
        output[sample] = np.moveaxis(total, -1, 0)


def _convolve_general(
    batch: Array, weight: Array, bias: Array | None, windows: Windows, output: Array
) -> None:
    """Gather the windows of each block of outputs as columns, and multiply."""
    samples, channels = batch.shape[:2]
    sizes, counts = batch.shape[2:], output.shape[2:]
    products = output.reshape(samples, *weight.shape[:2], math.prod(counts))
    offset = None if bias is None else bias.reshape(*weight.shape[:2], 1)
    column_bytes = channels * windows.tap_count * output.itemsize
    for sample in range(samples):
        end = 0
        for block in blocks(counts, column_bytes, _COLUMN_BYTES):
            columns = _gather_columns(batch[sample], windows, sizes, block)
            begin, end = end, end + columns.shape[-1]
            target = products[sample, :, :, begin:end]
            np.matmul(weight, columns.reshape(len(weight), weight.shape[2], -1), out=target)
            if offset is not None:
                target += offset


def _gather_columns(
    image: Array, windows: Windows, sizes: tuple[int, ...], block: tuple[slice, ...]
) -> Array:
    """Gather the windows of a block of outputs.

    Parameters
    ----------
    image : ndarray of shape (C, H...)
    windows : Windows
    sizes : tuple of int
        H...
    block : tuple of slice
        Of P outputs in all.

    Returns
    -------
    ndarray of shape (C, K, P)
        Zero where a window reaches into the padding.
    """
    counts = tuple(part.stop - part.start for part in block)
    taps = list(windows.taps(sizes, block))
    make = np.empty if len(taps) == windows.tap_count else np.zeros
    columns = make((len(image), windows.tap_count, *counts), image.dtype)
    for tap, outputs, inputs in taps:
        target = columns[:, tap]
        covered = target[:, *outputs]
        if covered.shape != target.shape:
            target[...] = 0
        covered[...] = image[:, *inputs]
    return columns.reshape(len(image), windows.tap_count, -1)


def _reshape_per_channel(values: Array, rank: int) -> Array:
    """Reshape (O,) to (O, 1...), which broadcasts with an image."""
    return values.reshape(-1, *(1,) * rank)


def check_kernel(weight: Array, kernel_size: Ints | None, groups: int) -> None:
    """Check a kernel's shape.

    Parameters
    ----------
    weight : ndarray of shape (A, B, K...)
    kernel_size : int or tuple of int, optional
        The value of the parameter.
    groups : int
        Divides A.

    Raises
    ------
    ParameterError
        With both numbers.
    """
    kernel = weight.shape[2:]
    if len(kernel) not in {1, 2, 3} or 0 in weight.shape:
        raise ParameterError("weight", f"a weight of shape {weight.shape} is not a kernel")
    if kernel_size is not None:
        wanted = kernel_size if isinstance(kernel_size, tuple) else (kernel_size,) * len(kernel)
        if wanted != kernel:
            raise ParameterError(
                "kernel_size", f"kernel_size={kernel_size}, but the weight's kernel is {kernel}"
            )
    if groups < 1 or weight.shape[0] % groups:
        raise ParameterError(
            "groups", f"groups={groups} cannot divide {weight.shape[0]} channels of the weight"
        )


def check_channels(name: str, given: int | None, actual: int) -> None:
    """Compare a number of channels with that of the weight.

    Raises
    ------
    ParameterError
        With both numbers.
    """
    if given is not None and given != actual:
        raise ParameterError(name, f"{name}={given}, but the weight has {actual}")


def check_bias(bias: Array | None, channels: int) -> None:
    """Check that there is one bias per output channel.

    Raises
    ------
    ParameterError
        With both numbers.
    """
    if bias is not None and bias.shape != (channels,):
        raise ParameterError(
            "bias", f"the bias has shape {bias.shape}, there are {channels} output channels"
        )


def require_channels(input: Array, rank: int, channels: int) -> None:
    """Check the number of channels of an image.

    Raises
    ------
    LayerError
        With both numbers.
    """
    if input.shape[-rank - 1] != channels:
        raise LayerError(
            f"the input has {input.shape[-rank - 1]} channels, the layer takes {channels}",
            InferStatus.kInferArraySizeMismatch,
        )


def _resolve_paddings(
    padding: Ints | str | None,
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
) -> tuple[tuple[int, int], ...]:
    """Padding before and after, per spatial axis."""
    if padding == "valid":
        return ((0, 0),) * len(kernel)
    if padding == "same" or padding is None:
        if any(stride != 1 for stride in strides):
            raise ParameterError("padding", f"padding=same needs stride 1, not {strides}")
        totals = [d * (k - 1) for k, d in zip(kernel, dilations, strict=True)]
        return tuple((total // 2, total - total // 2) for total in totals)
    if isinstance(padding, str):
        raise ParameterError("padding", f"padding={padding} is neither same nor valid")
    rank = len(kernel)
    if isinstance(padding, tuple) and len(padding) == 2 * rank:
        numbers = per_axis("padding", padding, 2 * rank)
        return tuple((numbers[2 * i], numbers[2 * i + 1]) for i in reversed(range(rank)))
    return tuple((p, p) for p in per_axis("padding", padding, rank))
