"""Resized images: weighted sums of neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine.layers.ncnn.resizing import Interp
from engine.layers.resampling import (
    RAW_MODES,
    interpolate,
    interpolation_taps,
    upsample_bilinear,
    upsample_nearest,
)
from engine.provenance.arithmetic import add_up, format_index, grid, make_factor, multiply
from engine.provenance.call import NoBreakdownError, take
from engine.provenance.rules.pooling import area_reads
from engine.provenance.rules.windows import AXIS_NAMES, Table, read_box
from engine.provenance.table import explains, locates

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from engine.provenance.call import Call
    from engine.provenance.records import Box, Breakdown
    from engine.provenance.rules.windows import AxisReads

__all__ = ["RESIZES", "explain_resize", "locate_resize", "resize_taps"]

RESIZES: tuple[Any, ...] = (
    interpolate,
    upsample_nearest,
    upsample_bilinear,
    Interp,
    *RAW_MODES,
)


def resize_taps(call: Call) -> tuple[list[AxisReads], list[npt.NDArray[np.float64]]]:
    """Return the positions of each axis, and their weights; (taps, outputs)."""
    if isinstance(call.layer, Interp):
        return _ncnn_taps(call, call.layer)
    given, input = call.arguments, call.array("input")
    mode = given.get("mode", "bilinear" if call.layer_code is upsample_bilinear else "nearest")
    size, scale, antialias = (
        given.get("size"),
        given.get("scale_factor"),
        given.get("antialias"),
    )
    if call.layer_code in RAW_MODES:
        mode, antialias = RAW_MODES[call.layer_code]
        size, scale = given["output_size"], _raw_scales(call)
    corners = given.get("align_corners", call.layer_code is upsample_bilinear)
    sizes, counts = input.shape[2:], call.shape[2:]
    if not all(isinstance(each, (int, float, tuple, type(None))) for each in (size, scale)):
        size, scale = counts, None
    found = interpolation_taps(
        input.shape,
        input.dtype,
        size,
        scale,
        mode,
        align_corners=bool(corners),
        recompute_scale_factor=bool(given.get("recompute_scale_factor")),
        antialias=bool(antialias),
    )
    weights = [np.asarray(each, np.float64) for _, each in found]
    if mode == "area":  # windows of several lengths: their taps differ in number
        return area_reads(sizes, counts), weights
    return [
        Table(length, places) for length, (places, _) in zip(sizes, found, strict=True)
    ], weights


def _raw_scales(call: Call) -> Any:
    """Return the scales of a traced resize, which has them as a list or one by one."""
    given, ndim = call.arguments, call.array("input").ndim
    single = [given[f"scales_{axis}"] for axis in "dhw"[5 - ndim :]]
    found = tuple([each for each in single if each is not None])
    return found or given["scale_factors"]


def _ncnn_taps(
    call: Call, layer: Interp
) -> tuple[list[AxisReads], list[npt.NDArray[np.float64]]]:
    """Return the same for an image of ncnn, which has no batch."""
    input = call.arrays[0]
    sizes, counts = input.shape[1:], call.shape[1:]
    if not sizes:
        raise NoBreakdownError("a vector that is spread over an image has no breakdown")
    if sizes == counts or layer.mode == "nearest":
        places = [np.arange(size) for size in sizes]
        if sizes != counts:
            places = layer.nearest_places(sizes, counts)
        return (
            [Table(size, own[np.newaxis]) for size, own in zip(sizes, places, strict=True)],
            [np.ones((1, count)) for count in counts],
        )
    flat = (1,) * (2 - len(sizes))  # rows are an image of one row
    found = interpolation_taps(
        (1, input.shape[0], *flat, *sizes),
        input.dtype,
        (*flat, *counts),
        layer.scales_of(2),
        layer.mode,
        align_corners=layer.aligns,
        recompute_scale_factor=False,
        antialias=False,
    )[-len(sizes) :]
    return (
        [Table(size, places) for size, (places, _) in zip(sizes, found, strict=True)],
        [np.asarray(weights, np.float64) for _, weights in found],
    )


@locates(*RESIZES)
def locate_resize(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the neighbours."""
    reads, _ = resize_taps(call)
    split = len(box) - len(reads)
    window = read_box(reads, box[split:])
    return {} if window is None else {call.arrays[0].name: (*box[:split], *window)}


@explains(*RESIZES)
def explain_resize(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum the neighbours times their weights."""
    if call.dtype.kind != "f":
        raise NoBreakdownError("an image of bytes is rounded")
    reads, weights = resize_taps(call)
    places, shares = [], []
    lead = index[: len(index) - len(reads)]
    for axis, weight, place in zip(reads, weights, index[len(lead) :], strict=True):
        taps = axis.positions(np.array([place]))[0]
        places.append(taps[taps >= 0])
        shares.append(weight[taps >= 0, place])
    x = take(call.arrays[0], "input", grid(*[[each] for each in lead], *places))
    total = shares[0]
    for share in shares[1:]:
        total = np.multiply.outer(total, share)
    factor = make_factor("weight", total.reshape(-1))
    rank = len(places)
    names = ["i", "j", "k"][:rank]
    formula = (
        f"y{format_index(index)} = Σ weight{format_index(names)} · "
        f"{x.name}{format_index([*lead, *names])}"
    )
    terms = multiply([x, factor], [len(each) for each in places], AXIS_NAMES[rank])
    return add_up(call, formula, terms)
