"""Convolutions, poolings, borders and resizing of ncnn in PyTorch's words."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.comparison.reasons.ncnn_twins.twin import Border, Twin, renamed
from engine.layers.ncnn.convolution import read_pads, read_windows, spatial_rank

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.layers import OperatorCall
    from engine.layers.ncnn.convolution import Pairs
    from engine.ncnn.types import Params
    from engine.values import Array, Value

__all__ = ["convolution", "deconvolution", "interp", "padding", "pooling"]

_FULL: Final = 0  # pooling: a last window may lack a part
_VALID: Final = 1
_BORDERS: Final = ("constant", "replicate", "reflect")
_MODES: Final = {1: ("nearest", "nearest"), 2: ("linear", "bilinear"), 3: ("", "bicubic")}


def convolution(call: OperatorCall, params: Params, _: Sequence[Value]) -> Twin | None:
    """Return ``nn.Conv2d`` and its kin, of an image with its border if that is uneven."""
    rank = spatial_rank(call.type)
    pads, weight = read_pads(params, rank), call.attributes.get("weight")
    if weight is None or any(size < 0 for pair in pads for size in pair):
        return None
    value, groups = float(params.number("pad_value")), params.size("group", 1)
    border = None
    if not _are_even(pads) or value:
        border = Border(tuple(size for pair in reversed(pads) for size in pair), value)
        pads = ((0, 0),) * rank
    made = renamed(
        call, f"nn.Conv{rank}d",
        {
            "in_channels": weight.shape[1] * groups,
            "out_channels": weight.shape[0],
            "kernel_size": tuple(weight.shape[2:]),
            "stride": read_windows(params, "stride", rank, 1),
            "padding": tuple(before for before, _ in pads),
            "dilation": read_windows(params, "dilation", rank, 1),
            "groups": groups,
            "padding_mode": "zeros",
            "bias": "bias" in call.attributes,
        },
    )  # fmt: skip
    return Twin(made, border=border)


def deconvolution(call: OperatorCall, params: Params, _: Sequence[Value]) -> Twin | None:
    """Return ``nn.ConvTranspose2d`` and its kin; None where the result is cut to a size."""
    rank, groups = spatial_rank(call.type), params.size("group", 1)
    pads, weight = read_pads(params, rank), call.attributes.get("weight")
    sizes = [params.integer(f"output_{axis}") for axis in "dhw"]
    if weight is None or not _are_even(pads) or any(sizes) or len(weight) % groups:
        return None
    last = params.integer("output_pad_right")
    names = ("output_pad_behind", "output_pad_bottom")[3 - rank :]

    def convert(weights: Mapping[str, Array]) -> dict[str, Array]:
        """Return the weight with its input channels first."""
        found = dict(weights)
        if "weight" in found:
            outputs, inputs, *kernel = found["weight"].shape
            parts = found["weight"].reshape(groups, outputs // groups, inputs, *kernel)
            found["weight"] = parts.swapaxes(1, 2).reshape(-1, outputs // groups, *kernel)
        return found

    made = renamed(
        call, f"nn.ConvTranspose{rank}d",
        {
            "in_channels": weight.shape[1] * groups,
            "out_channels": weight.shape[0],
            "kernel_size": tuple(weight.shape[2:]),
            "stride": read_windows(params, "stride", rank, 1),
            "padding": tuple(before for before, _ in pads),
            "output_padding": (*(params.integer(name, last) for name in names), last),
            "dilation": read_windows(params, "dilation", rank, 1),
            "groups": groups,
            "bias": "bias" in call.attributes,
        },
    )  # fmt: skip
    return Twin(replace(made, attributes=convert(call.attributes)), convert=convert)


def pooling(call: OperatorCall, params: Params, _: Sequence[Value]) -> Twin | None:
    """Return ``nn.MaxPool2d`` and its kin; None for other ways to place the windows."""
    rank, mode = spatial_rank(call.type), params.integer("pad_mode")
    pads = read_pads(params, rank)
    special = ("global_pooling", "adaptive_pooling")
    if any(map(params.integer, special)) or mode not in {_FULL, _VALID} or not _are_even(pads):
        return None
    windows: dict[str, Value] = {
        "kernel_size": read_windows(params, "kernel", rank, 0),
        "stride": read_windows(params, "stride", rank, 1),
        "padding": tuple(before for before, _ in pads),
        "ceil_mode": mode == _FULL,
    }
    if not params.integer("pooling_type"):
        windows |= {"dilation": (1,) * rank, "return_indices": False}
        return Twin(renamed(call, f"nn.MaxPool{rank}d", windows))
    windows["count_include_pad"] = bool(params.integer("avgpool_count_include_pad"))
    return Twin(renamed(call, f"nn.AvgPool{rank}d", windows))


def _are_even(pads: Pairs) -> bool:
    return all(before == after >= 0 for before, after in pads)


def padding(call: OperatorCall, params: Params, inputs: Sequence[Value]) -> Twin | None:
    """Return ``F.pad``; None for a border with a number for each channel."""
    (x,) = inputs
    kind = params.integer("type")
    if not isinstance(x, np.ndarray) or call.attributes or not 0 <= kind < len(_BORDERS):
        return None
    sides = ("left", "right", "top", "bottom", "front", "behind")
    pads = [params.integer(side) for side in sides]
    used = 2 * min(x.ndim, 3)
    if any(pads[used:]):
        return None
    while used > 2 and not any(pads[used - 2 : used]):
        used -= 2
    values: dict[str, Value] = {"pad": tuple(pads[:used]), "mode": _BORDERS[kind]}
    return Twin(renamed(call, "F.pad", {**values, "value": float(params.number("value"))}))


def interp(call: OperatorCall, params: Params, inputs: Sequence[Value]) -> Twin | None:
    """Return ``F.interpolate``; None where the size is computed."""
    x, *others = inputs
    if others or not isinstance(x, np.ndarray) or x.ndim not in {2, 3}:
        return None
    rank = x.ndim - 1
    mode = _MODES.get(params.integer("resize_type"), ("", ""))[rank - 1]
    if not mode or params.integer("dynamic_target_size") or "size_expr" in call.params:
        return None
    sizes = [params.integer(name) for name in ("output_height", "output_width")][-rank:]
    scales = [params.number(name, 1.0) for name in ("height_scale", "width_scale")][-rank:]
    values: dict[str, Value] = {"mode": mode}
    if all(sizes):
        values["size"] = tuple(sizes)
    elif any(sizes):
        return None
    else:
        values["scale_factor"] = tuple(map(float, scales))
    values["align_corners"] = bool(params.integer("align_corner"))
    return Twin(renamed(call, "F.interpolate", values))
