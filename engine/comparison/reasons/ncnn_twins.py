"""Layers of ncnn as calls of PyTorch's operators that compute the same.

The alternatives of parameters and weights are those of PyTorch's operators. A layer of ncnn
has other names for the same numbers, and no batch axis, which PyTorch's need not have either.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.errors import EngineError
from engine.layers.ncnn.activations import activate
from engine.layers.ncnn.convolution import read_pads, read_windows, spatial_rank
from engine.ncnn.types import PREFIX, Params, is_quantized

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.layers import OperatorCall
    from engine.values import Array, Value

__all__ = ["Twin", "twin_of"]

_FULL: Final = 0  # pooling: a last window may lack a part
_VALID: Final = 1
_BY_COLUMN: Final = 4  # a Gemm adds one number for each column


class Twin(NamedTuple):
    """A layer of ncnn in PyTorch's words.

    Attributes
    ----------
    call : OperatorCall
    activation : callable or None
        What the layer applies to its result.
    """

    call: OperatorCall
    activation: Callable[[Array], Array] | None = None


def twin_of(call: OperatorCall) -> Twin | None:
    """Return a layer in PyTorch's words; None if it has none there."""
    make = _MAKERS.get(call.type.removeprefix(PREFIX).removesuffix("1D"))
    if make is None or not call.type.startswith(PREFIX) or is_quantized(call.params):
        return None
    params = Params(call.params)
    try:
        made = make(call, params)
        kind = params.integer("activation_type")
        numbers = params.array("activation_params")
    except (EngineError, ValueError):  # the layer refuses them with the reason
        return None
    if made is None:
        return None
    return Twin(made, partial(activate, kind=kind, params=numbers) if kind else None)


def _renamed(
    call: OperatorCall, type_: str, params: Mapping[str, Value], **names: str
) -> OperatorCall:
    """Return a call of another type, with weights of other names."""
    weights = {names.get(name, name): array for name, array in call.attributes.items()}
    return replace(call, type=type_, params=params, attributes=weights)


def _convolution(call: OperatorCall, params: Params) -> OperatorCall | None:
    rank = spatial_rank(call.type)
    pads, weight = read_pads(params, rank), call.attributes.get("weight")
    if weight is None or not _are_even(pads) or params.number("pad_value"):
        return None
    groups = params.size("group", 1)
    return _renamed(
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


def _pooling(call: OperatorCall, params: Params) -> OperatorCall | None:
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
        return _renamed(call, f"nn.MaxPool{rank}d", windows)
    windows["count_include_pad"] = bool(params.integer("avgpool_count_include_pad"))
    return _renamed(call, f"nn.AvgPool{rank}d", windows)


def _are_even(pads: tuple[tuple[int, int], ...]) -> bool:
    return all(before == after >= 0 for before, after in pads)


def _linear(call: OperatorCall, weight: str, **names: str) -> OperatorCall:
    outputs, inputs = call.attributes[weight].shape
    sizes = {"in_features": inputs, "out_features": outputs, "bias": len(call.attributes) > 1}
    return _renamed(call, "nn.Linear", sizes, **names)


def _inner_product(call: OperatorCall, _: Params) -> OperatorCall:
    return _linear(call, "weight")


def _gemm(call: OperatorCall, params: Params) -> OperatorCall | None:
    """Return a linear layer, as pnnx writes it."""
    plain = not params.integer("transA") and bool(params.integer("transB"))
    plain = plain and params.number("alpha", 1.0) == params.number("beta", 1.0) == 1
    if not plain or not {"B"} <= call.attributes.keys() <= {"B", "C"}:
        return None
    made = _linear(call, "B", B="weight", C="bias")
    bias = made.attributes.get("bias")
    if bias is None:
        return made
    if params.integer("constant_broadcast_type_C") != _BY_COLUMN:
        return None
    return replace(made, attributes={**made.attributes, "bias": bias.reshape(-1)})


def _layer_norm(call: OperatorCall, params: Params) -> OperatorCall:
    return _renamed(
        call, "nn.LayerNorm",
        {
            "normalized_shape": (params.size("affine_size"),),
            "eps": params.number("eps", 1e-3),
            "elementwise_affine": "gamma" in call.attributes,
        },
        gamma="weight", beta="bias",
    )  # fmt: skip


def _softmax(call: OperatorCall, params: Params) -> OperatorCall:
    return _renamed(call, "F.softmax", {"dim": params.integer("axis")})


def _leaky_relu(call: OperatorCall, params: Params) -> OperatorCall | None:
    slope = params.number("slope")
    return _renamed(call, "F.leaky_relu", {"negative_slope": slope}) if slope else None


_MAKERS: Final[Mapping[str, Callable[[OperatorCall, Params], OperatorCall | None]]] = {
    "Convolution": _convolution,
    "ConvolutionDepthWise": _convolution,
    "Gemm": _gemm,
    "InnerProduct": _inner_product,
    "LayerNorm": _layer_norm,
    "Pooling": _pooling,
    "ReLU": _leaky_relu,
    "Softmax": _softmax,
}
