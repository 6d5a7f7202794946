"""Deformable convolution: an operand says where each tap of a window reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from engine.layers.deformable_convolution import DeformConv2d, deform_conv2d
from engine.provenance.arithmetic import add_up, format_index, grid, make_factor, multiply
from engine.provenance.call import NoBreakdownError, rounding, take
from engine.provenance.records import Breakdown, Interval
from engine.provenance.table import explains, locates

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from engine.provenance.call import Call, Operand
    from engine.provenance.records import Box

__all__ = [
    "Deformable",
    "explain_deformable",
    "locate_deformable",
    "positions_of",
    "read_deformable",
]

_CORNERS: Final = np.array([(0, 0), (0, 1), (1, 0), (1, 1)])
_MOST_POSITIONS: Final = 1 << 18  # that are looked at for a region; more count as all


class Deformable(NamedTuple):
    """The arguments of a deformable convolution.

    Attributes
    ----------
    layer : DeformConv2d
    input, offset : Operand
    mask : Operand or None
    offset_groups : int
        Groups of channels with offsets of their own.
    """

    layer: DeformConv2d
    input: Operand
    offset: Operand
    mask: Operand | None
    offset_groups: int


def read_deformable(call: Call) -> Deformable:
    """Return the arguments of a deformable convolution."""
    layer, given = call.layer, call.arguments
    mask: Any = given["mask"]
    if not isinstance(layer, DeformConv2d):
        names = ("stride", "pad", "dilation")
        stride, padding, dilation = ((given[f"{n}_h"], given[f"{n}_w"]) for n in names)
        weight, bias = given["weight"], given["bias"]
        layer = DeformConv2d(weight, bias, stride, padding, dilation, given["groups"])
        mask = mask if given["use_mask"] else None
    offset = call.array("offset")
    groups = offset.shape[1] // (2 * layer.windows.tap_count)
    return Deformable(layer, call.array("input"), offset, mask, groups)


def positions_of(found: Deformable, sample: int, rows: slice, columns: slice) -> Any:
    """Return where the taps of outputs read; shape (groups, taps, 2, rows, columns)."""
    windows = found.layer.windows
    offsets = found.offset.value[sample, :, rows, columns].astype(np.float64)
    shape = (found.offset_groups, *windows.kernel, 2, *offsets.shape[1:])
    places = offsets.reshape(shape)
    for axis, part in enumerate((rows, columns)):
        outputs = np.arange(part.start, part.stop) * windows.stride[axis]
        taps = np.arange(windows.kernel[axis]) * windows.dilation[axis]
        starts = np.add.outer(taps, outputs) - windows.padding[axis][0]
        sizes = [1] * 5
        sizes[1 + axis], sizes[3 + axis] = starts.shape
        # Without the axis of the two coordinates: groups, taps, outputs.
        places[:, :, :, axis] += starts.reshape(sizes)
    if not np.isfinite(places).all():
        raise NoBreakdownError("an offset is not finite")
    return places.reshape(found.offset_groups, windows.tap_count, 2, *offsets.shape[1:])


@locates(DeformConv2d, deform_conv2d)
def locate_deformable(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the pixels that the offsets of this run lead to, and the offsets."""
    found = read_deformable(call)
    layer, input = found.layer, found.input
    per_group = len(layer.weight) // layer.groups
    taken = layer.weight.shape[1]
    first, last = box[1].start // per_group, (box[1].stop - 1) // per_group
    channels = Interval(first * taken, (last + 1) * taken)
    regions: dict[str, Box] = {}
    for each in (found.offset, found.mask):
        if each is not None:
            regions[each.name] = (box[0], Interval.whole(each.shape[1]), *box[2:])
    rows, columns = (slice(each.start, each.stop) for each in box[2:])
    pixels = input.whole[2:]
    count = (box[2].stop - box[2].start) * (box[3].stop - box[3].start)
    if count * (box[0].stop - box[0].start) * found.offset.shape[1] <= _MOST_POSITIONS:
        samples = range(box[0].start, box[0].stop)
        places = np.stack([positions_of(found, each, rows, columns) for each in samples])
        pixels = tuple([
            _reach(places[:, :, :, axis], size) for axis, size in enumerate(input.shape[2:])
        ])  # fmt: skip
        if any(each.start == each.stop for each in pixels):
            return regions
    # An operand may be image and offsets.
    if input.name in regions:
        return {each.name: each.whole for each in call.arrays}
    regions[input.name] = (box[0], channels, *pixels)
    return regions


def _reach(places: npt.NDArray[np.float64], size: int) -> Interval:
    """Return the pixels beside positions along an axis."""
    low, high = np.floor(places.min()), np.floor(places.max()) + 2
    start = int(np.clip(low, 0, size))
    return Interval(start, max(start, int(np.clip(high, 0, size))))


@explains(DeformConv2d, deform_conv2d)
def explain_deformable(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum the pixels beside each position, times their shares, the mask and the kernel."""
    found = read_deformable(call)
    layer, input = found.layer, found.input
    sample, channel, row, column = index
    taken, taps = layer.weight.shape[1], layer.windows.tap_count
    group = channel // (len(layer.weight) // layer.groups)
    inside = grid(range(taken), *map(range, layer.windows.kernel), range(4))
    c, i, j, corner = inside.T
    channels = group * taken + c
    offset_group = channels // (input.shape[1] // found.offset_groups)
    tap = i * layer.windows.kernel[1] + j
    places = positions_of(found, sample, slice(row, row + 1), slice(column, column + 1))
    position = places[offset_group, tap, :, 0, 0]
    lower = np.floor(position)
    pixels = (lower + _CORNERS[corner]).astype(np.int64)
    shares = np.abs(1 - _CORNERS[corner] - (position - lower)).prod(axis=1)
    outside = (pixels < 0) | (pixels >= input.shape[2:])
    pixels[outside.any(axis=1)] = -1
    at = np.column_stack([np.full(len(c), sample), channels, pixels])
    x = take(input, "input", at)
    weight = take(layer.weight, "weight", np.column_stack([np.full(len(c), channel), c, i, j]))
    factors = [x, weight, make_factor("share", shares)]
    if found.mask is not None:
        numbers = np.full((len(c), 2), (row, column))
        mask = np.column_stack([np.full(len(c), sample), offset_group * taps + tap, numbers])
        factors.append(take(found.mask, "mask", mask))
    shape = (taken, taps, 4)
    terms = multiply(factors, shape, ("channel", "tap", "neighbour"))
    offset, name = None, ""
    if layer.bias is not None:
        offset, name = float(layer.bias[channel]), f"bias[{channel}]"
    masked = f" · {found.mask.name}" if found.mask is not None else ""
    formula = (
        f"y{format_index(index)} = {f'{name} + ' if name else ''}"
        f"Σ weight[{channel}, c, i, j] · "
        f"{x.name}[{sample}, c, place(i, j) + {found.offset.name}]{masked}"
    )
    result = add_up(call, formula, terms, offset, name)
    # A rounded position moves the shares of its neighbours.
    unit = 8 * rounding(np.dtype(np.float32)) * (1 + float(np.abs(position).max()))
    moved = multiply([each for each in factors if each.name != "share"], shape, terms.axes)
    more = unit * float(np.abs(moved.products).sum())
    return Breakdown(
        result.kind, formula, terms, result.total, result.error + more, offset, name
    )
