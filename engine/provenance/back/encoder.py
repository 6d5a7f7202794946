"""A whole layer of a transformer's encoder."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from engine.layers.multihead_attention import join_heads, transformer_encoder_layer
from engine.provenance.back.attention import attend_backward, split_heads
from engine.provenance.call import NoBreakdownError, Operand
from engine.provenance.rules.encoder import read_encoder
from engine.provenance.slopes import accumulate, softmax, wide
from engine.provenance.table import passes_back
from engine.special import erf

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.provenance.call import Call
    from engine.provenance.rules.encoder import Encoder
    from engine.provenance.slopes import Gradient
    from engine.values import Array

    Back = Callable[[Gradient], Gradient]


@passes_back(transformer_encoder_layer)
def _encoded(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Go back through both blocks, and around them."""
    layer = _Layer(read_encoder(call))
    x, backs = wide(layer.encoder.src), []
    for number, block in ((1, layer.attend), (2, layer.feed)):
        if layer.encoder.norm_first:
            inner, through_norm = layer.norm(x, number)
            made, through_block = block(inner)
            x = x + made
            backs.append((through_block, through_norm))
        else:
            made, through_block = block(x)
            x, through_norm = layer.norm(x + made, number)
            backs.append((through_norm, through_block))
    for last, first in reversed(backs):
        if layer.encoder.norm_first:
            gradient = gradient + first(last(gradient))
        else:
            gradient = last(gradient)
            gradient = gradient + first(gradient)
    accumulate(layer.found, layer.encoder.src.name, gradient)
    return layer.found


class _Layer:
    """The parts of a layer; each returns its result, and how a gradient goes back to its input.

    Parameters
    ----------
    encoder : Encoder

    Attributes
    ----------
    found : dict of str to ndarray
        The gradients by the weights, which grow as the parts are gone back through.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.found: dict[str, Gradient] = {}

    def _add(self, name: str, gradient: Gradient) -> None:
        """Add a gradient by a weight; those of the samples and tokens are summed."""
        given = self.encoder.given[name]
        if isinstance(given, Operand):
            whole = gradient.reshape(-1, gradient.shape[-1]).sum(0)
            accumulate(self.found, given.name, whole)

    def norm(self, x: Array, number: int) -> tuple[Array, Back]:
        """Normalise."""
        names = [f"norm_{name}_{number}" for name in ("weight", "bias")]
        weight, bias = map(self.encoder.number, names)
        normal, spread = self.encoder.normalise(x)

        def back(gradient: Gradient) -> Gradient:
            self._add(names[0], gradient * normal)
            self._add(names[1], gradient)
            scaled = gradient * weight
            through = normal * (scaled * normal).mean(-1, keepdims=True)
            return np.asarray((scaled - through - scaled.mean(-1, keepdims=True)) / spread)

        return normal * weight + bias, back

    def linear(self, x: Array, names: tuple[str, str]) -> tuple[Array, Back]:
        """Multiply by a weight and add a bias."""
        weight, bias = map(self.encoder.number, names)

        def back(gradient: Gradient) -> Gradient:
            given = self.encoder.given[names[0]]
            if isinstance(given, Operand):
                rows = (each.reshape(-1, each.shape[-1]) for each in (gradient, x))
                by_row, inputs = rows
                accumulate(self.found, given.name, by_row.T @ inputs)
            self._add(names[1], gradient)
            return np.asarray(gradient @ weight)

        return x @ weight.T + bias, back

    def attend(self, x: Array) -> tuple[Array, Back]:
        """Mix the tokens by their matches."""
        heads, mask = self.encoder.heads, self.encoder.mask
        given_mask = self.encoder.given["mask"]
        if isinstance(given_mask, Operand) and given_mask.dtype.kind == "f":
            raise NoBreakdownError("a mask that is added is not followed")
        joined, through_inputs = self.linear(x, ("qkv_weight", "qkv_bias"))
        query, key, value = (split_heads(each, heads) for each in np.split(joined, 3, axis=-1))
        scores = query @ key.swapaxes(-1, -2) / math.sqrt(query.shape[-1])
        if mask is not None:
            is_bool = mask.dtype == np.bool_
            scores = np.where(mask, scores, -np.inf) if is_bool else scores + mask
        mixed = join_heads(softmax(scores) @ value)
        result, through_output = self.linear(mixed, ("proj_weight", "proj_bias"))

        def back(gradient: Gradient) -> Gradient:
            own = split_heads(through_output(gradient), heads)
            *parts, _ = attend_backward(query, key, value, mask, None, own)
            return through_inputs(np.concatenate([join_heads(each) for each in parts], -1))

        return result, back

    def feed(self, x: Array) -> tuple[Array, Back]:
        """Pass each token through both linear layers."""
        hidden, through_first = self.linear(x, ("ffn_weight_1", "ffn_bias_1"))
        active = self.encoder.activate(hidden)
        result, through_second = self.linear(active, ("ffn_weight_2", "ffn_bias_2"))
        if self.encoder.given["use_gelu"]:
            density = np.exp(-np.square(hidden) / 2) / math.sqrt(2 * math.pi)
            slopes = (1 + erf(hidden / math.sqrt(2))) / 2 + hidden * density
        else:
            slopes = np.asarray(hidden > 0, np.float64)
        return result, lambda gradient: through_first(through_second(gradient) * slopes)
