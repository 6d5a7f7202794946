"""Windows as columns, sampling at given positions, and convolution at moved positions."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from typing_extensions import override

from engine.errors import LayerError, ParameterError, describe_shapes
from engine.layers.deformable_convolution import DeformConv2d
from engine.layers.folding import fold, unfold
from engine.layers.grid_sampling import grid_sample
from engine.layers.layer import Layer, OperatorCall
from engine.layers.ncnn.activations import activate, check_activation
from engine.layers.ncnn.convolution import (
    Pairs,
    keeps_size,
    read_pads,
    read_windows,
    require_pads,
    resolve_pads,
)
from engine.layers.ncnn.table import LARGEST, layer, require_weights
from engine.layers.padding import pad
from engine.layers.windows import Windows
from engine.memory_bound import require_memory
from engine.ncnn.types import Params
from engine.values import Array

_FLOAT: Final = np.dtype(np.float32)


class _Columns(Layer):
    """Base of the layers that write windows as columns, or read them."""

    def __init__(self, call: OperatorCall, **given: Any) -> None:
        self.params = params = Params(call.params)
        self.kernel = read_windows(params, "kernel", 2, 0)
        self.stride = read_windows(params, "stride", 2, 1)
        self.dilation = read_windows(params, "dilation", 2, 1)
        self.pads = read_pads(params, 2)

    def _windows(self, pads: Pairs = ((0, 0), (0, 0))) -> Windows:
        return Windows(self.kernel, self.stride, self.dilation, pads)


@layer("Unfold")
class Unfold(_Columns):
    """Write each window of an image as a column: (C, H, W) to (C * Kh * Kw, windows).

    Parameters
    ----------
    **given
        Parameters of ncnn.
    """

    def __init__(self, call: OperatorCall, **given: Any) -> None:
        super().__init__(call, **given)
        self.value = self.params.number("pad_value")
        if not keeps_size(self.pads):
            require_pads(self.pads)

    @override
    def forward(self, input: Array) -> Array:
        if input.ndim != 3:
            raise LayerError(f"{describe_shapes([input.shape])} is not an image")
        sizes = input.shape[1:]
        extents = [d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation, strict=True)]
        pads = top, left = resolve_pads(self.pads, sizes, extents, self.stride)
        counts = self._windows(pads).counts(sizes)
        rows = len(input) * math.prod(self.kernel)
        require_memory((rows, math.prod(counts)), _FLOAT)
        image = pad(input, (*left, *top), value=self.value)
        return unfold(image, self.kernel, self.dilation, 0, self.stride)


@layer("Fold")
class Fold(_Columns):
    """Add columns at the positions of their windows: (C * Kh * Kw, windows) to (C, H, W).

    Parameters
    ----------
    **given
        Parameters of ncnn.
    """

    def __init__(self, call: OperatorCall, **given: Any) -> None:
        super().__init__(call, **given)
        require_pads(self.pads)
        width = self.params.integer("output_w")
        self.sizes = (self.params.integer("output_h", width), width)
        if not all(1 <= size <= LARGEST for size in self.sizes):
            raise ParameterError("output_w", f"the sides {self.sizes} are out of range")

    @override
    def forward(self, input: Array) -> Array:
        whole = tuple(
            size + sum(pair) for size, pair in zip(self.sizes, self.pads, strict=True)
        )
        wanted = math.prod(self._windows().counts(whole))
        taps = math.prod(self.kernel)
        if input.ndim != 2 or len(input) % taps or input.shape[1] != wanted:
            raise LayerError(
                f"{describe_shapes([input.shape])} is not a multiple of {taps} rows of "
                f"{wanted} windows"
            )
        require_memory((len(input) // taps, *whole), _FLOAT)
        image = fold(input, whole, self.kernel, self.dilation, 0, self.stride)
        (top, _), (left, _) = self.pads
        height, width = self.sizes
        return np.ascontiguousarray(image[:, top : top + height, left : left + width])


_SAMPLE_MODES: Final = {1: "bilinear", 2: "nearest", 3: "bicubic"}
_BORDERS: Final = {1: "zeros", 2: "border", 3: "reflection"}


@layer("GridSample")
class GridSample(Layer):
    """Sample an image at given positions, from -1 to 1.

    Operands are an image (C, H, W) and positions (H', W', 2), or a volume (C, D, H, W) and
    positions (D', H', W', 3). With `permute_fusion` the coordinates are the positions' first
    axis.

    Parameters
    ----------
    sample_type : int
        1 bilinear, 2 nearest, 3 bicubic.
    padding_mode : int
        1 zeros, 2 the nearest element, 3 mirrored.
    align_corner, permute_fusion : int
    """

    def __init__(
        self,
        sample_type: int = 1,
        padding_mode: int = 1,
        align_corner: int = 0,
        permute_fusion: int = 0,
    ) -> None:
        if sample_type not in _SAMPLE_MODES or padding_mode not in _BORDERS:
            raise ParameterError("sample_type", "ncnn has no such sampling")
        self.mode, self.border = _SAMPLE_MODES[sample_type], _BORDERS[padding_mode]
        self.aligned, self.permuted = bool(align_corner), bool(permute_fusion)

    @override
    def forward(self, input: Array, grid: Array) -> Array:
        if input.ndim not in {3, 4} or grid.ndim != input.ndim:
            raise LayerError(
                f"{describe_shapes([input.shape, grid.shape])} are not an image and positions"
            )
        positions = np.moveaxis(grid, 0, -1) if self.permuted else grid
        sampled = grid_sample(
            input[np.newaxis], positions[np.newaxis], self.mode, self.border, self.aligned
        )
        return np.asarray(sampled[0])


@layer("DeformableConv2D")
class DeformableConv2D(Layer):
    """Convolve with taps that an operand moves, and a third may weigh.

    Operands are an image (C, H, W), offsets (2 * Kh * Kw, H', W') and factors
    (Kh * Kw, H', W').

    Parameters
    ----------
    **given
        Parameters and weights of ncnn.
    """

    def __init__(self, call: OperatorCall, **given: Any) -> None:
        params = Params(call.params)
        require_weights(call)
        self.activation = params.integer("activation_type"), params.array("activation_params")
        check_activation(*self.activation)
        pairs = read_pads(params, 2)
        require_pads(pairs)
        if any(before != after for before, after in pairs):
            raise ParameterError("pad_left", f"padding {pairs} is uneven")
        self.inner = DeformConv2d(
            call.attributes["weight"],
            call.attributes.get("bias"),
            stride=read_windows(params, "stride", 2, 1),
            padding=tuple(before for before, _ in pairs),
            dilation=read_windows(params, "dilation", 2, 1),
        )

    @override
    def forward(self, *inputs: Array) -> Array:
        if any(array.ndim != 3 for array in inputs):
            shapes = describe_shapes([array.shape for array in inputs])
            raise LayerError(f"{shapes} are not an image and its offsets")
        taps = self.inner.windows.tap_count
        if len(inputs[1]) != 2 * taps:
            raise LayerError(f"{len(inputs[1])} offsets do not move {taps} taps")
        result = self.inner.forward(*(array[np.newaxis] for array in inputs))
        return activate(np.asarray(result[0]), *self.activation)
