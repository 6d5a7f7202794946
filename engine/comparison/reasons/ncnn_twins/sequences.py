"""Recurrent layers and attentions of ncnn in PyTorch's words."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.comparison.reasons.ncnn_twins.twin import Twin, renamed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from engine.layers import OperatorCall
    from engine.ncnn.types import Params
    from engine.values import Array, Value

__all__ = ["attention", "gru", "lstm", "rnn"]

_BOTH: Final = 2  # directions
_IFGO: Final = (0, 1, 3, 2)  # ncnn has the gates of an LSTM in the order i, f, o, g
_PLAIN: Final = 3  # a GRU adds so many biases before a gate, and one inside of it
_PROJECTED: Final = ("q_weight", "k_weight", "v_weight")


def lstm(call: OperatorCall, params: Params, inputs: Sequence[Value]) -> Twin | None:
    """Return ``nn.LSTM``."""
    outputs = params.size("num_output")
    hidden = params.size("hidden_size", outputs)
    sizes: dict[str, Value] = {"hidden_size": hidden}
    if hidden != outputs:
        sizes["proj_size"] = outputs

    def reorder(gates: Array) -> Array:
        parts = gates.reshape(len(_IFGO), -1, *gates.shape[1:])
        return parts[list(_IFGO)].reshape(gates.shape)

    def split(bias: Array) -> tuple[Array, Array]:
        whole = reorder(bias.reshape(-1))
        return whole, np.zeros_like(whole)

    return _recurrent(call, params, inputs, "nn.LSTM", sizes, reorder, split)


def gru(call: OperatorCall, params: Params, inputs: Sequence[Value]) -> Twin | None:
    """Return ``nn.GRU``."""

    def split(bias: Array) -> tuple[Array, Array]:
        # The reset gate multiplies the second bias of the new gate, which is the last row.
        inner = np.zeros_like(bias[:_PLAIN])
        inner[-1] = bias[_PLAIN]
        return bias[:_PLAIN].reshape(-1), inner.reshape(-1)

    sizes: dict[str, Value] = {"hidden_size": params.size("num_output")}
    return _recurrent(call, params, inputs, "nn.GRU", sizes, np.asarray, split)


def rnn(call: OperatorCall, params: Params, inputs: Sequence[Value]) -> Twin | None:
    """Return ``nn.RNN``."""

    def split(bias: Array) -> tuple[Array, Array]:
        return bias.reshape(-1), np.zeros_like(bias.reshape(-1))

    sizes: dict[str, Value] = {"hidden_size": params.size("num_output")}
    return _recurrent(call, params, inputs, "nn.RNN", sizes, np.asarray, split)


def _recurrent(
    call: OperatorCall,
    params: Params,
    inputs: Sequence[Value],
    type_: str,
    sizes: Mapping[str, Value],
    reorder: Callable[[Array], Array],
    split: Callable[[Array], tuple[Array, Array]],
) -> Twin | None:
    """Return a layer in one or both directions; None for one backwards, or with states."""
    direction = params.integer("direction")
    matrix = call.attributes.get("weight_xc")
    if direction not in {0, _BOTH} or len(inputs) != 1 or matrix is None:
        return None

    def convert(weights: Mapping[str, Array]) -> dict[str, Array]:
        found: dict[str, Array] = {}
        for name, both in weights.items():
            for place, array in enumerate(both):
                end = "_l0_reverse" if place else "_l0"
                if name == "bias_c":
                    found[f"bias_ih{end}"], found[f"bias_hh{end}"] = split(array)
                else:
                    kind = {"weight_xc": "ih", "weight_hc": "hh", "weight_hr": "hr"}[name]
                    found[f"weight_{kind}{end}"] = (
                        array if name == "weight_hr" else reorder(array)
                    )
        return found

    made = renamed(
        call, type_,
        {
            "input_size": matrix.shape[2], **sizes, "num_layers": 1,
            "bias": True, "batch_first": True, "bidirectional": direction == _BOTH,
        },
    )  # fmt: skip
    return Twin(replace(made, attributes=convert(call.attributes)), convert=convert)


def attention(call: OperatorCall, params: Params, _: Sequence[Value]) -> Twin | None:
    """Return ``nn.MultiheadAttention``; None with a mask, a cache, or a scale of its own."""
    embed, heads = params.size("embed_dim"), params.size("num_heads", 1)
    if not {*_PROJECTED} <= call.attributes.keys() or heads < 1 or embed % heads:
        return None
    queries, keys, values = (call.attributes[name].shape[1] for name in _PROJECTED)
    usual = 1 / math.sqrt(embed // heads)
    if any(map(params.integer, ("attn_mask", "kv_cache"))) or queries != embed:
        return None
    if not math.isclose(params.number("scale", usual), usual, rel_tol=1e-6):
        return None

    def convert(weights: Mapping[str, Array]) -> dict[str, Array]:
        return _projections(weights, stacked=keys == values == embed)

    sizes: dict[str, Value] = {
        "num_heads": heads, "embed_dim": embed, "kdim": keys, "vdim": values, "bias": True,
        "add_bias_kv": False, "add_zero_attn": False, "batch_first": True,
    }  # fmt: skip
    made = renamed(call, "nn.MultiheadAttention", sizes)
    return Twin(replace(made, attributes=convert(call.attributes)), convert=convert)


def _projections(weights: Mapping[str, Array], *, stacked: bool) -> dict[str, Array]:
    """Return the weights of an attention by PyTorch's names, those of which all are known."""
    found = {
        name: weights[own]
        for name, own in (("out_proj.weight", "out_weight"), ("out_proj.bias", "out_bias"))
        if own in weights
    }
    sources: dict[str, tuple[str, ...]] = {"in_proj_bias": ("q_bias", "k_bias", "v_bias")}
    if stacked:
        sources["in_proj_weight"] = _PROJECTED
    else:
        sources |= {f"{name[0]}_proj_weight": (name,) for name in _PROJECTED}
    for name, parts in sources.items():
        if weights.keys() >= {*parts}:
            found[name] = np.concatenate([weights[part] for part in parts])
    return found
