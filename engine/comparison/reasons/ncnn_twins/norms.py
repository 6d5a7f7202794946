"""Normalisations of ncnn in PyTorch's words."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.comparison.reasons.ncnn_twins.twin import Twin, renamed
from engine.layers.ncnn.normalization import find_trailing_axes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.layers import OperatorCall
    from engine.ncnn.types import Params
    from engine.values import Value

__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "rms_norm"]

_EPS: Final = 1e-3  # ncnn's default
_AFFINE: Final = {"gamma": "weight", "beta": "bias"}
_STORED: Final = {"slope": "weight", "mean": "running_mean", "var": "running_var"}


def batch_norm(call: OperatorCall, params: Params, inputs: Sequence[Value]) -> Twin | None:
    """Return ``nn.BatchNorm2d`` and its kin."""
    rank = _spatial_axes(inputs)
    if rank is None:
        return None
    values = {
        "num_features": params.size("channels"), "eps": float(params.number("eps")),
        "affine": True,
    }  # fmt: skip
    made = renamed(call, f"nn.BatchNorm{max(rank, 1)}d", values, **_STORED)
    return Twin(made, _STORED)


def instance_norm(call: OperatorCall, params: Params, inputs: Sequence[Value]) -> Twin | None:
    """Return ``nn.InstanceNorm2d`` and its kin; None for a matrix, which is one channel."""
    rank = _spatial_axes(inputs)
    if rank is None or rank < 2:
        return None
    values = {
        "num_features": params.size("channels"), "eps": float(params.number("eps", _EPS)),
        "affine": bool(call.attributes), "track_running_stats": False,
    }  # fmt: skip
    return Twin(renamed(call, f"nn.InstanceNorm{rank}d", values, **_AFFINE), _AFFINE)


def group_norm(call: OperatorCall, params: Params, _: Sequence[Value]) -> Twin:
    """Return ``nn.GroupNorm``."""
    values = {
        "num_groups": params.size("group", 1), "num_channels": params.size("channels"),
        "eps": float(params.number("eps", _EPS)), "affine": bool(call.attributes),
    }  # fmt: skip
    return Twin(renamed(call, "nn.GroupNorm", values, **_AFFINE), _AFFINE)


def layer_norm(call: OperatorCall, params: Params, inputs: Sequence[Value]) -> Twin | None:
    """Return ``nn.LayerNorm``."""
    return _of_trailing_axes("nn.LayerNorm", call, params, inputs)


def rms_norm(call: OperatorCall, params: Params, inputs: Sequence[Value]) -> Twin | None:
    """Return ``nn.RMSNorm``."""
    return _of_trailing_axes("nn.RMSNorm", call, params, inputs)


def _of_trailing_axes(
    type_: str, call: OperatorCall, params: Params, inputs: Sequence[Value]
) -> Twin | None:
    x = inputs[0]
    if not isinstance(x, np.ndarray):
        return None
    shape = find_trailing_axes(params.size("affine_size"), x.shape)
    made = renamed(
        call, type_,
        {
            "normalized_shape": shape, "eps": float(params.number("eps", _EPS)),
            "elementwise_affine": bool(call.attributes),
        },
        **_AFFINE,
    )  # fmt: skip
    weights = {name: array.reshape(shape) for name, array in made.attributes.items()}
    return Twin(replace(made, attributes=weights), _AFFINE)


def _spatial_axes(inputs: Sequence[Value]) -> int | None:
    """Return how many axes follow the channels; None if there is no tensor."""
    x = inputs[0]
    return x.ndim - 1 if isinstance(x, np.ndarray) and 1 <= x.ndim <= 4 else None
