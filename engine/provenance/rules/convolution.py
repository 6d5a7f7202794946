"""Convolutions, also grouped, dilated and transposed ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from engine.layers.convolution import Convolution, convolution
from engine.layers.ncnn.convolution import NcnnConvolution, NcnnDeconvolution
from engine.layers.transposed_convolution import (
    TransposedConvolution,
    either_convolution,
    transposed_convolution,
)
from engine.provenance.arithmetic import activate_sum, add_up, format_index, grid, multiply
from engine.provenance.call import NoBreakdownError, Operand, take
from engine.provenance.records import Interval
from engine.provenance.rules.windows import AXIS_NAMES, Sliding, Spreading, read_box, sliding
from engine.provenance.table import explains, locates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.provenance.call import Call
    from engine.provenance.records import Box, Breakdown
    from engine.provenance.rules.windows import AxisReads
    from engine.values import Array

__all__ = ["CONVOLUTIONS", "explain_convolution", "locate_convolution", "read_convolution"]

CONVOLUTIONS: Final = (
    Convolution, convolution, TransposedConvolution, transposed_convolution, either_convolution,
    NcnnConvolution, NcnnDeconvolution,
)  # fmt: skip


class _Convolution(NamedTuple):
    """The arguments of a convolution.

    Attributes
    ----------
    input : Operand
    weight, bias : Operand or ndarray
        Shape (O, C / groups, K...), or (C, O / groups, K...) with `inputs_first`.
    groups : int
    reads : list of AxisReads
        By spatial axis.
    inputs_first : bool
    activation : (int, sequence of float)
        That a layer of ncnn applies to the sums; 0 for none.
    """

    input: Operand
    weight: Operand | Array
    bias: Operand | Array | None
    groups: int
    reads: list[AxisReads]
    inputs_first: bool
    activation: tuple[int, Sequence[float]] = (0, ())

    @property
    def rank(self) -> int:
        """Number of spatial axes."""
        return len(self.reads)

    @property
    def per_group(self) -> int:
        """Output channels of a group."""
        if self.inputs_first:
            return self.weight.shape[1]
        return self.weight.shape[0] // self.groups

    @property
    def taken(self) -> int:
        """Input channels of a group."""
        if self.inputs_first:
            return self.weight.shape[0] // self.groups
        return self.weight.shape[1]


def read_convolution(call: Call, *, only_regions: bool = False) -> _Convolution:
    """Return the arguments of a convolution, however it was called.

    Parameters
    ----------
    call : Call
    only_regions : bool
        Whether it does not matter what the numbers are: rounded ones, or a padding by others.
    """
    layer, given = call.layer, call.arguments
    if isinstance(layer, (NcnnConvolution, NcnnDeconvolution)):
        return _read_ncnn(call, layer, only_regions=only_regions)
    input = call.array("input")
    weight: Any = given.get("weight")
    bias: Any = given.get("bias")
    if isinstance(layer, (Convolution, TransposedConvolution)):
        weight, bias = layer.weight, layer.bias
    else:
        # Only the shape counts: the layer's class resolves the paddings.
        blank = np.broadcast_to(np.zeros((), np.float32), weight.shape)
        options = given["stride"], given["padding"]
        if given.get("transposed") or ("output_padding" in given and "transposed" not in given):
            layer = TransposedConvolution(
                blank,
                None,
                *options,
                given["output_padding"],
                given["groups"],
                given["dilation"],
            )
        else:
            layer = Convolution(blank, None, *options, given["dilation"], given["groups"])
    windows = layer.windows
    sizes = input.shape[-windows.rank :]
    if isinstance(layer, TransposedConvolution):
        axes = zip(
            sizes,
            windows.kernel,
            windows.stride,
            windows.dilation,
            windows.padding,
            strict=True,
        )
        reads: list[AxisReads] = [Spreading(size, k, s, d, p[0]) for size, k, s, d, p in axes]
        return _Convolution(input, weight, bias, layer.groups, reads, inputs_first=True)
    reads = sliding(windows, sizes, layer.padding_mode)
    return _Convolution(input, weight, bias, layer.groups, reads, inputs_first=False)


def _read_ncnn(
    call: Call, layer: NcnnConvolution | NcnnDeconvolution, *, only_regions: bool
) -> _Convolution:
    """Return the arguments of a convolution of ncnn, whose images have no batch."""
    input, *operands = call.arrays
    weight: Any
    weight, bias = layer.weights_of(operands)  # type: ignore[arg-type] # only handed on
    shapes = [each.shape for each in call.arrays]
    reads: list[AxisReads] = []
    if isinstance(layer, NcnnDeconvolution):
        found = layer.require_shapes(*shapes)
        sizes = found.windows.spread_sizes(input.shape[1:], layer.output_padding)
        axes = zip(
            input.shape[1:], layer.kernel, layer.stride, layer.dilation, layer.cuts_of(sizes),
            strict=True,
        )  # fmt: skip
        reads = [Spreading(size, k, s, d, cut[0]) for size, k, s, d, cut in axes]
    elif layer.int8 and not only_regions:
        raise NoBreakdownError("sums of rounded numbers have no breakdown")
    elif (sliding_over := layer.require_shapes(*shapes)) is not None:
        windows = sliding_over.windows
        padded = layer.pad_value and any(map(any, windows.padding))
        if padded and not only_regions:
            raise NoBreakdownError("padding by a number has no breakdown")
        reads = sliding(windows, input.shape[1:])
    elif isinstance(weight, Operand):
        raise NoBreakdownError("a computed weight of a vector has no breakdown")
    else:  # a vector counts as an image of one pixel
        weight = weight.reshape(weight.shape[:2])
    by_input = isinstance(layer, NcnnDeconvolution) and isinstance(weight, Operand)
    return _Convolution(input, weight, bias, layer.groups, reads, by_input, layer.activation)


@explains(*CONVOLUTIONS)
def explain_convolution(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum the products of a window and a kernel, and the bias."""
    conv = read_convolution(call)
    split = len(index) - conv.rank
    *lead, channel = index[:split]
    group, own = divmod(channel, conv.per_group)
    channels = range(group * conv.taken, (group + 1) * conv.taken)
    places = [
        axis.positions(np.array([place]))[0]
        for axis, place in zip(conv.reads, index[split:], strict=True)
    ]
    taps = [range(len(axis)) for axis in places]
    if conv.inputs_first:
        weights = grid(channels, [own], *taps)
    else:
        weights = grid([channel], range(conv.taken), *taps)
    inputs = grid(*[[each] for each in lead], channels, *places)
    factors = take(conv.input, "input", inputs), take(conv.weight, "weight", weights)
    shape = (conv.taken, *map(len, taps))
    terms = multiply(factors, shape, ("channel", *AXIS_NAMES[conv.rank]))
    offset, offset_name = None, ""
    if conv.bias is not None:
        bias = take(conv.bias, "bias", grid([channel]))
        offset, offset_name = float(bias.values[0]), f"{bias.name}[{channel}]"
    formula = _formula(conv, factors[0].name, factors[1].name, index, channels, offset_name)
    return activate_sum(
        call, add_up(call, formula, terms, offset, offset_name), conv.activation
    )


def _formula(
    conv: _Convolution,
    input: str,
    weight: str,
    index: Sequence[int],
    channels: range,
    bias: str,
) -> str:
    split = len(index) - conv.rank
    *lead, channel = index[:split]
    taps = ["i", "j", "k"][: conv.rank]
    first = channels.start
    c_in = f"{first} + c" if first else "c"
    places = [
        _place(axis, place, tap)
        for axis, place, tap in zip(conv.reads, index[split:], taps, strict=True)
    ]
    own = [c_in, channel % conv.per_group] if conv.inputs_first else [channel, "c"]
    product = f"{weight}{format_index([*own, *taps])}"
    term = f"{product} · {input}{format_index([*lead, c_in, *places])}"
    start = f"{bias} + " if bias else ""
    return f"y{format_index(index)} = {start}Σ {term}"


def _place(axis: AxisReads, place: int, tap: str) -> str:
    """Format the position that a tap reads."""
    if isinstance(axis, Spreading):
        spread = _times(axis.dilation, tap)
        return f"({place + axis.before} − {spread}) / {axis.stride}"
    if not isinstance(axis, Sliding):
        return tap
    start = place * axis.stride - axis.before
    step = _times(axis.dilation, tap)
    return f"{start} + {step}" if start >= 0 else f"−{-start} + {step}"


def _times(number: int, name: str) -> str:
    return name if number == 1 else f"{number}{name}"


@locates(*CONVOLUTIONS)
def locate_convolution(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the windows of the input, and the kernels where they are computed."""
    conv = read_convolution(call, only_regions=True)
    split = len(box) - conv.rank
    channels = box[split - 1]
    first = channels.start // conv.per_group
    last = (channels.stop - 1) // conv.per_group
    found: dict[str, Box] = {}
    window = read_box(conv.reads, box[split:])
    taken = Interval(first * conv.taken, (last + 1) * conv.taken)
    if window is not None:
        found[conv.input.name] = (*box[: split - 1], taken, *window)
    if isinstance(conv.weight, Operand):
        whole = conv.weight.whole
        if not conv.inputs_first:
            whole = (Interval(channels.start, channels.stop), *whole[1:])
        found[conv.weight.name] = whole
    if isinstance(conv.bias, Operand):
        found[conv.bias.name] = (Interval(channels.start, channels.stop),)
    return found
