"""Pooling."""

from __future__ import annotations

from typing import Any

import numpy as np
from typing_extensions import override

from engine.errors import LayerError, ParameterError, describe_shapes
from engine.layers.adaptive_pooling import adaptive_average, adaptive_largest
from engine.layers.layer import Layer, OperatorCall
from engine.layers.ncnn.convolution import (
    Pairs,
    read_pads,
    read_windows,
    require_pads,
    same_pads,
    spatial_rank,
)
from engine.layers.ncnn.table import LARGEST, Sliding, layer
from engine.layers.pooling import average, largest
from engine.layers.windows import Windows
from engine.memory_bound import require_memory
from engine.ncnn.types import UNSET, Params
from engine.values import Array

__all__ = ["Pooling"]

_FULL, _VALID, _SAME_UPPER, _SAME_LOWER = range(4)


@layer("Pooling", "Pooling1D", "Pooling3D")
class Pooling(Layer):
    """Take the largest number of each window, or the mean.

    With `pad_mode` 0 a last window may extend beyond the end, with 1 it may not; 2 and 3 keep
    one window per `stride` positions. A mean counts the padding only with
    `avgpool_count_include_pad`, or with 2 and 3. It never counts positions beyond the padding.

    Parameters
    ----------
    **given
        Parameters of ncnn.
    """

    def __init__(self, call: OperatorCall, **given: Any) -> None:
        params = Params(call.params)
        self.rank = rank = spatial_rank(call.type)
        self.kind = params.integer("pooling_type")
        self.mode = params.integer("pad_mode")
        self.is_global = bool(params.integer("global_pooling"))
        self.counts_pad = bool(params.integer("avgpool_count_include_pad"))
        if self.kind not in {0, 1} or not _FULL <= self.mode <= _SAME_LOWER:
            raise ParameterError(
                "pooling_type",
                f"pooling_type={self.kind} or pad_mode={self.mode} is unknown",
            )
        self.sizes: tuple[int, ...] | None = None
        if params.integer("adaptive_pooling"):
            width = params.integer("out_w")
            self.sizes = tuple(params.integer(f"out_{a}", width) for a in "dhw"[3 - rank :])
            keeps = rank > 1  # whether -233 keeps the size of the image
            if not all((keeps and s == UNSET) or 1 <= s <= LARGEST for s in self.sizes):
                raise ParameterError("out_w", f"an output size of {self.sizes} is out of range")
        elif not self.is_global:
            self.kernel = read_windows(params, "kernel", rank, 0)
            self.stride = read_windows(params, "stride", rank, 1)
            self.pads = read_pads(params, rank)
            require_pads(self.pads)
            if self.mode in {_SAME_UPPER, _SAME_LOWER}:
                self._count_same_padding()

    def _count_same_padding(self) -> None:
        """Count what `pad_mode` adds; ncnn leaves out only what `pad_left`, ... name."""
        if self.kind == 1 and not self.counts_pad and any(map(any, self.pads)):
            raise ParameterError(
                "pad_left", f"padding {self.pads} contradicts pad_mode={self.mode}"
            )
        self.counts_pad = True

    def require_shapes(self, *shapes: tuple[int, ...]) -> Sliding | None:
        """Check the operand's shape; return the windows."""
        (shape,) = shapes
        self._require_image(shape)
        if self.sizes is not None:
            require_memory((shape[0], *_resolve_sizes(self.sizes, shape)), np.dtype(np.float32))
        elif not self.is_global:
            windows, tails = self._make_windows(shape[1:])
            pads = [(a, b + tail) for (a, b), tail in zip(windows.padding, tails, strict=True)]
            whole = Windows(self.kernel, self.stride, windows.dilation, tuple(pads))
            return Sliding(whole, shape, shape[0])
        return None

    def _require_image(self, shape: tuple[int, ...]) -> None:
        if len(shape) != self.rank + 1:
            raise LayerError(
                f"the layer takes {self.rank + 1} axes, not {describe_shapes([shape])}"
            )

    def _make_windows(self, sizes: tuple[int, ...]) -> tuple[Windows, tuple[int, ...]]:
        """Return the windows, and how far the last one of each axis extends beyond the end."""
        pads: Pairs = self.pads
        tails = (0,) * self.rank
        if self.mode in {_SAME_UPPER, _SAME_LOWER}:
            upper = self.mode == _SAME_UPPER
            pads = same_pads(sizes, self.kernel, self.stride, upper=upper)
        padded = [size + sum(pair) for size, pair in zip(sizes, pads, strict=True)]
        for size, kernel in zip(padded, self.kernel, strict=True):
            if kernel > size:
                raise LayerError(f"a window of {kernel} does not fit in {size} positions")
        if self.mode == _FULL:
            tails = tuple(
                (kernel - size) % stride
                for size, kernel, stride in zip(padded, self.kernel, self.stride, strict=True)
            )
        return Windows(self.kernel, self.stride, (1,) * self.rank, pads), tails

    @override
    def forward(self, input: Array) -> Array:
        self._require_image(input.shape)
        if self.is_global:
            flat = input.reshape(input.shape[0], -1)
            return flat.max(1) if self.kind == 0 else np.asarray(flat.mean(1, np.float32))
        if self.sizes is not None:
            sizes = _resolve_sizes(self.sizes, input.shape)
            require_memory((input.shape[0], *sizes), input.dtype)
            return (adaptive_largest if self.kind == 0 else adaptive_average)(input, sizes)
        windows, tails = self._make_windows(input.shape[1:])
        pads = tuple((a, b + tail) for (a, b), tail in zip(windows.padding, tails, strict=True))
        whole = Windows(self.kernel, self.stride, windows.dilation, pads)
        if self.kind == 0:
            found = largest(input, whole)
            if not any(map(any, pads)):
                return found
            return np.asarray(np.maximum(found, np.asarray(_lowest(found.dtype), found.dtype)))
        if self.counts_pad:
            return average(input, whole, divisor_override=whole.tap_count)
        found = average(input, whole, count_include_pad=False)
        for axis, ((_, after), kernel) in enumerate(zip(pads, self.kernel, strict=True), 1):
            if after >= kernel:  # the last window is all padding, and ncnn divides by 0
                found[(slice(None),) * axis + (-1,)] = np.nan
        return found


def _lowest(dtype: np.dtype[Any]) -> float:
    """Return what ncnn pads with before it looks for the largest number."""
    return -128.0 if dtype == np.int8 else float(np.finfo(np.float32).min)


def _resolve_sizes(sizes: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the output sizes; -233 keeps the size of the image."""
    return tuple(
        own if size == UNSET else size for size, own in zip(sizes, shape[1:], strict=True)
    )
