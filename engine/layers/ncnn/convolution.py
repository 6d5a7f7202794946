"""Convolutions and transposed convolutions, of one to three spatial axes."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from typing_extensions import override

from engine.errors import LayerError, ParameterError, describe_shapes
from engine.layers.convolution import Convolution
from engine.layers.layer import Layer, OperatorCall
from engine.layers.ncnn.activations import activate, check_activation
from engine.layers.ncnn.normalization import to_int8
from engine.layers.ncnn.table import LARGEST, Sliding, layer, require_weights
from engine.layers.padding import pad
from engine.layers.transposed_convolution import TransposedConvolution
from engine.layers.windows import Windows
from engine.memory_bound import require_memory
from engine.ncnn.types import Params
from engine.values import Array

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "NcnnConvolution",
    "NcnnDeconvolution",
    "Pairs",
    "keeps_size",
    "read_pads",
    "read_windows",
    "require_pads",
    "resolve_pads",
    "same_pads",
    "spatial_rank",
]

Pairs = tuple[tuple[int, int], ...]

_SAME_UPPER: Final = -233
_SAME_LOWER: Final = -234
_AXES: Final = ("d", "h", "w")
_SIDES: Final = (
    ("pad_front", "pad_behind"),
    ("pad_top", "pad_bottom"),
    ("pad_left", "pad_right"),
)


def spatial_rank(kind: str) -> int:
    """Return the number of spatial axes of a type, such as 1 for ``Convolution1D``."""
    return {"1D": 1, "3D": 3}.get(kind[-2:], 2)


def read_windows(params: Params, name: str, rank: int, default: int) -> tuple[int, ...]:
    """Read ``kernel``, ``stride`` or ``dilation`` of each axis; w is the default for all.

    Raises
    ------
    ParameterError
        If a number is out of range.
    """
    width = params.integer(f"{name}_w", default)
    numbers = tuple(params.integer(f"{name}_{axis}", width) for axis in _AXES[3 - rank :])
    if not all(1 <= number <= LARGEST for number in numbers):
        raise ParameterError(
            f"{name}_w", f"{name} {numbers} is not at least 1 and at most {LARGEST}"
        )
    return numbers


def read_pads(params: Params, rank: int) -> Pairs:
    """Read the padding before and after each axis."""
    left = params.integer("pad_left")
    pairs = []
    for before, after in _SIDES[3 - rank :]:
        first = params.integer(before, left)
        pairs.append((first, params.integer(after, first)))
    return tuple(pairs)


def require_pads(pads: Pairs) -> None:
    """Check padding that may not be negative.

    Raises
    ------
    ParameterError
        If a number is out of range.
    """
    if not all(0 <= number <= LARGEST for pair in pads for number in pair):
        raise ParameterError("pad_left", f"padding {pads} is not 0 to {LARGEST}")


def same_pads(
    sizes: Sequence[int], extents: Sequence[int], strides: Sequence[int], *, upper: bool
) -> Pairs:
    """Return the padding that gives one window for every `stride` positions.

    Parameters
    ----------
    sizes, extents, strides : sequence of int
        Of the image and the windows.
    upper : bool
        Whether an odd position is added after the axis, not before. The depth of a volume
        always has it after.

    Raises
    ------
    LayerError
        If one axis has positions to spare while another needs some: ncnn would take a negative
        border, and write beyond its result.
    """
    totals = [
        extent + (size - 1) // stride * stride - size
        for size, extent, stride in zip(sizes, extents, strides, strict=True)
    ]
    if min(totals) < 0 < max(totals):
        raise LayerError(
            f"a border of {describe_shapes([tuple(totals)])} positions would keep the size, "
            "and ncnn cannot crop and pad at once"
        )
    pairs = [(max(0, total) // 2, (max(0, total) + 1) // 2) for total in totals]
    if upper:
        return tuple(pairs)
    depth = len(pairs) - 2  # only volumes have one, their first axis
    return tuple(pair if axis < depth else pair[::-1] for axis, pair in enumerate(pairs))


def keeps_size(pads: Pairs) -> bool:
    """Whether padding stands for as much as keeps the size."""
    return {number for pair in pads for number in pair} in ({_SAME_UPPER}, {_SAME_LOWER})


def resolve_pads(
    pads: Pairs, sizes: Sequence[int], extents: Sequence[int], strides: Sequence[int]
) -> Pairs:
    """Return the padding of an image; see `same_pads` for that which keeps the size."""
    special = pads[0][0]
    if special >= 0:
        return pads
    return same_pads(sizes, extents, strides, upper=special == _SAME_UPPER)


def _flatten_pads(pairs: Pairs) -> tuple[int, ...]:
    """Return padding in the order of ``F.pad``: the last axis first."""
    return tuple(number for pair in reversed(pairs) for number in pair)


class _Windowed(Layer):
    """Base of convolutions and transposed convolutions."""

    _dynamic: str = "dynamic_weight"

    def __init__(self, call: OperatorCall, **given: Any) -> None:
        self.params = params = Params(call.params)
        self.rank = rank = spatial_rank(call.type)
        self.outputs = params.size("num_output")
        self.groups = params.size("group", 1) if "DepthWise" in call.type else 1
        if self.outputs % self.groups:
            raise ParameterError("group", f"group={self.groups} cannot divide {self.outputs}")
        self.kernel = read_windows(params, "kernel", rank, 0)
        self.stride = read_windows(params, "stride", rank, 1)
        self.dilation = read_windows(params, "dilation", rank, 1)
        self.pads = read_pads(params, rank)
        numbers = params.array("activation_params")
        self.activation = params.integer("activation_type"), numbers
        check_activation(*self.activation)
        if any(number > LARGEST for pair in self.pads for number in pair):
            raise ParameterError("pad_left", f"padding {self.pads} is larger than {LARGEST}")
        self.has_bias = bool(params.integer("bias_term"))
        self.weight, self.bias = call.attributes.get("weight"), call.attributes.get("bias")
        self.is_dynamic = bool(params.integer(self._dynamic))
        require_weights(call)

    @property
    def extents(self) -> tuple[int, ...]:
        """Number of positions from the first to the last tap of a window."""
        return tuple(d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation, strict=True))

    def weights_of(self, operands: Sequence[Array]) -> tuple[Array, Array | None]:
        """Return the weight and the bias, which may be operands."""
        if self.weight is not None and not self.is_dynamic:
            return self.weight, self.bias
        if len(operands) != 1 + self.has_bias:
            raise LayerError("the operands are not an image, a weight and maybe a bias")
        return operands[0], operands[1] if self.has_bias else None

    def require_image(self, shape: Sequence[int], channels: int) -> None:
        """Check an image of shape (C, H...).

        Raises
        ------
        LayerError
            With the shape.
        """
        if len(shape) != self.rank + 1 or shape[0] != channels:
            raise LayerError(
                f"the layer takes {channels} channels and {self.rank} more axes, not "
                f"{describe_shapes([tuple(shape)])}"
            )


@layer(
    "Convolution", "Convolution1D", "Convolution3D",
    "ConvolutionDepthWise", "ConvolutionDepthWise1D", "ConvolutionDepthWise3D",
)  # fmt: skip
class NcnnConvolution(_Windowed):
    """Slide kernels over an image and sum the products, then apply an activation.

    Padding of -233 or -234 keeps one result per `stride` positions; an odd position is added at
    the end or at the start. With `int8_scale_term` input and weight are rounded to int8 by
    their scales, and the sums are divided by both. Above 100 the result is int8 too.

    Parameters
    ----------
    **given
        Parameters and weights of ncnn.
    """

    def __init__(self, call: OperatorCall, **given: Any) -> None:
        super().__init__(call, **given)
        self.pad_value = self.params.number("pad_value")
        self.int8 = self.params.integer("int8_scale_term")
        self.scales = {
            name: np.asarray(call.attributes[f"{name}_int8_scales"], np.float32)
            for name in ("weight", "bottom", "top")
            if f"{name}_int8_scales" in call.attributes
        }
        numbers = {number for pair in self.pads for number in pair}
        if min(numbers) < 0 and not keeps_size(self.pads):
            raise ParameterError("pad_left", f"padding {self.pads} is negative")
        if not self.is_dynamic:
            self._inner = self._make_layer(*self.weights_of(()))

    def _make_layer(self, weight: Array, bias: Array | None) -> Convolution:
        if weight.ndim != self.rank + 2 or weight.shape[0] != self.outputs:
            raise LayerError(f"a weight of shape {weight.shape} does not fit the parameters")
        if not self.is_dynamic and weight.shape[2:] != self.kernel:
            raise LayerError(f"a weight of shape {weight.shape} does not fit the kernel")
        if self.int8:
            weight, bias = self._quantize_weight(weight), None
        return Convolution(
            weight, bias, self.stride, 0, self.dilation, self.groups,
        )  # fmt: skip

    def _quantize_weight(self, weight: Array) -> Array:
        """Return the weight as integers in float64, which sums their products exactly."""
        if weight.dtype != np.int8:
            scales = self._repeat_scales("weight").reshape(-1, *(1,) * (weight.ndim - 1))
            weight = to_int8(weight * scales)
        return weight.astype(np.float64)

    def _repeat_scales(self, name: str) -> Array:
        scales = self.scales[name]
        return np.repeat(scales, self.outputs // scales.size)

    def _resolve_pads(self, sizes: Sequence[int]) -> Pairs:
        return resolve_pads(self.pads, sizes, self.extents, self.stride)

    def require_shapes(self, *shapes: tuple[int, ...]) -> Sliding | None:
        """Check the operands' shapes; return the windows."""
        shape, *others = shapes
        channels = self._channels(others[0] if others else None)
        if self._is_vector(shape, channels):
            return None
        self.require_image(shape, channels)
        sizes = shape[1:]
        windows = Windows(self.kernel, self.stride, self.dilation, self._resolve_pads(sizes))
        windows.counts(sizes)
        return Sliding(windows, shape, self.outputs, channels)

    def _channels(self, weight: tuple[int, ...] | None) -> int:
        if self.weight is not None and not self.is_dynamic:
            weight = self.weight.shape
        if weight is None or len(weight) != self.rank + 2 or weight[0] != self.outputs:
            raise LayerError(f"a weight of shape {weight} does not fit the parameters")
        if self.is_dynamic and weight[2:] != self.kernel:
            raise LayerError(f"a weight of shape {weight} does not fit the kernel")
        return weight[1] * self.groups

    def _is_vector(self, shape: tuple[int, ...], channels: int) -> bool:
        """Return whether the operand has only channels: an image of one pixel."""
        return self.rank == 2 and self.kernel == (1, 1) and shape == (channels,)

    @override
    def forward(self, *inputs: Array) -> Array:
        image, *operands = inputs
        inner = self._make_layer(*self.weights_of(operands)) if self.is_dynamic else self._inner
        bias = self.weights_of(operands)[1]
        channels = self._channels(operands[0].shape if operands else None)
        vector = self._is_vector(image.shape, channels)
        x = image.reshape(-1, 1, 1) if vector else image
        self.require_image(x.shape, channels)
        pads = self._resolve_pads(x.shape[1:])
        if self.int8 and x.dtype != np.int8:
            x = to_int8(x * self.scales["bottom"][0])
        if any(map(any, pads)):
            x = pad(x, _flatten_pads(pads), value=self.pad_value)
        result = inner.forward(x.astype(np.float64) if self.int8 else x)
        if self.int8:
            result = self._dequantize_sums(result, bias)
        result = activate(result, *self.activation)
        if self.int8 > 100:
            result = to_int8(result * self.scales["top"][0])
        return result.reshape(-1) if vector else result

    def _dequantize_sums(self, sums: Array, bias: Array | None) -> Array:
        """Convert sums of products of int8 to the numbers that they represent."""
        scales = self._repeat_scales("weight") * self.scales["bottom"][0]
        inverse = np.divide(1, scales, out=np.zeros_like(scales), where=scales != 0)
        column = (-1, *(1,) * self.rank)
        result = sums.astype(np.float32) * inverse.reshape(column)
        return result if bias is None else np.asarray(result + bias.reshape(column))


@layer(
    "Deconvolution", "Deconvolution1D", "Deconvolution3D",
    "DeconvolutionDepthWise", "DeconvolutionDepthWise1D", "DeconvolutionDepthWise3D",
)  # fmt: skip
class NcnnDeconvolution(_Windowed):
    """Spread each number by a kernel and sum, crop the padding, apply an activation.

    The weight has the shape (outputs, inputs / group, kernel...).

    Parameters
    ----------
    **given
        Parameters and weights of ncnn.
    """

    def __init__(self, call: OperatorCall, **given: Any) -> None:
        super().__init__(call, **given)
        params, rank = self.params, self.rank
        right = params.integer("output_pad_right")
        names = ("output_pad_behind", "output_pad_bottom")
        extra = [params.integer(name, right) for name in names[3 - rank :]]
        self.output_padding = (*extra, right)
        width = params.integer("output_w")
        self.output_sizes = tuple(
            params.integer(f"output_{axis}", width) for axis in _AXES[3 - rank :]
        )
        numbers = [number for pair in self.pads for number in pair]
        self._upper = _SAME_UPPER in numbers
        has_pads = any(n > 0 for n in numbers)
        self._is_cut_to_size = not has_pads and min(self.output_sizes) > 0
        special = {number for number in numbers if number < 0}
        if not special <= {_SAME_UPPER, _SAME_LOWER} or (special and has_pads):
            raise ParameterError("pad_left", f"padding {self.pads} is negative")
        if self._is_cut_to_size and not special:
            raise ParameterError("output_w", "output_w needs a padding of -233 or -234")
        if not self.is_dynamic:
            weight, bias = self.weights_of(())
            if weight.shape[2:] != self.kernel:
                raise ParameterError("weight", f"a weight of shape {weight.shape} does not fit")
            self._inner = self._make_layer(self._transpose_weight(weight), bias)

    def _transpose_weight(self, weight: Array) -> Array:
        """Return the weight with its input channels first, as in PyTorch."""
        outputs, inputs, *kernel = weight.shape
        grouped = weight.reshape(self.groups, outputs // self.groups, inputs, *kernel)
        return np.swapaxes(grouped, 1, 2).reshape(-1, outputs // self.groups, *kernel)

    def _make_layer(self, weight: Array, bias: Array | None) -> TransposedConvolution:
        return TransposedConvolution(
            weight, bias, self.stride, 0, 0, self.groups, self.dilation
        )

    def cuts_of(self, sizes: Sequence[int]) -> Pairs:
        """Return how much to crop before and after each axis of the whole result.

        Parameters
        ----------
        sizes : sequence of int
            Of the whole result.
        """
        if not self._is_cut_to_size:  # then ncnn ignores -233 and -234
            return tuple((max(0, before), max(0, after)) for before, after in self.pads)
        totals = [size - wanted for size, wanted in zip(sizes, self.output_sizes, strict=True)]
        pairs = [(total // 2, total - total // 2) for total in totals]
        return tuple(pair if self._upper else pair[::-1] for pair in pairs)

    def require_shapes(self, *shapes: tuple[int, ...]) -> Sliding:
        """Check the operands' shapes; return the windows."""
        shape, *others = shapes
        if self.weight is not None and not self.is_dynamic:
            channels = self.weight.shape[1] * self.groups
        else:
            weight = others[0] if others else ()
            if len(weight) != self.rank + 2 or weight[1] * self.groups != self.outputs:
                raise LayerError(f"a weight of shape {weight} does not fit the parameters")
            channels = weight[0]
        self.require_image(shape, channels)
        whole = Windows(self.kernel, self.stride, self.dilation, ((0, 0),) * self.rank)
        self._require_cuts(whole.spread_sizes(shape[1:], self.output_padding))
        return Sliding(whole, shape, self.outputs, channels, self.output_padding)

    def _extend(self, whole: Array, bias: Array | None) -> Array:
        """Add the output padding, which has the bias only; of any size, unlike in PyTorch."""
        if not any(self.output_padding):
            return whole
        shape = (len(whole), *map(operator.add, whole.shape[1:], self.output_padding))
        require_memory(shape, whole.dtype)
        result = np.zeros(shape, whole.dtype)
        if bias is not None:
            result += bias.reshape(-1, *(1,) * self.rank)
        result[:, *map(slice, whole.shape[1:])] = whole
        return result

    def _require_cuts(self, sizes: Sequence[int]) -> None:
        for size, (before, after) in zip(sizes, self.cuts_of(sizes), strict=True):
            if before < 0 or after < 0 or before + after >= size:
                raise LayerError(
                    f"{before} and {after} cannot be cropped from {size} positions"
                )

    @override
    def forward(self, *inputs: Array) -> Array:
        image, *operands = inputs
        inner = self._make_layer(*self.weights_of(operands)) if self.is_dynamic else self._inner
        self.require_image(image.shape, len(inner.weight))
        whole = self._extend(inner.forward(image), inner.bias)
        sizes = whole.shape[1:]
        self._require_cuts(sizes)
        cuts = (
            slice(before, size - after)
            for size, (before, after) in zip(sizes, self.cuts_of(sizes), strict=True)
        )
        return activate(np.ascontiguousarray(whole[:, *cuts]), *self.activation)
