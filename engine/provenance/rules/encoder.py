"""A whole layer of a transformer's encoder, which PyTorch's fast path computes at once."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from engine.layers.activations import gelu, relu
from engine.layers.multihead_attention import Heads, combine_masks, transformer_encoder_layer
from engine.provenance.arithmetic import add_up, format_index, grid, make_factor, multiply
from engine.provenance.call import Operand, rounding, take
from engine.provenance.records import Breakdown, Step
from engine.provenance.rules.attention import Projection, QueryHeads, mix_heads
from engine.provenance.table import explains, locates

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from engine.provenance.call import Call
    from engine.provenance.records import Box
    from engine.values import Array

__all__ = ["Encoder", "explain_encoder", "locate_encoder", "read_encoder"]

_UNIT: Final = rounding(np.dtype(np.float32))
_STEEPEST: Final = 1.13  # slope of GELU
_KEY_PADDING: Final = 1  # PyTorch's mask_type of a mask of keys


@dataclass(frozen=True, slots=True, eq=False)
class Encoder:
    """The arguments of a layer.

    Attributes
    ----------
    src : Operand
    given : dict of str to object
        All arguments by name.
    """

    src: Operand
    given: dict[str, Any]

    def number(self, name: str) -> npt.NDArray[np.float64]:
        """Return a weight in float64."""
        given = self.given[name]
        return np.asarray(given.value if isinstance(given, Operand) else given, np.float64)

    @property
    def heads(self) -> int:
        """Number of heads."""
        return int(self.given["num_heads"])

    @property
    def norm_first(self) -> bool:
        """Whether the blocks are normalised before instead of after the sum."""
        return bool(self.given["norm_first"])

    @property
    def mask(self) -> Array | None:
        """The mask, which broadcasts to samples, heads, queries and keys.

        It is additive, or bool and true for keys to attend to.
        """
        mask = self.given["mask"]
        if mask is None:
            return None
        values = mask.value if isinstance(mask, Operand) else np.asarray(mask)
        if self.given["mask_type"] == _KEY_PADDING:
            values = values[:, np.newaxis, np.newaxis]
        samples, tokens, width = self.src.shape
        like = np.broadcast_to(0.0, (samples, self.heads, tokens, width // self.heads))
        return combine_masks([values], Heads(like, like, like), 0)

    def activate(self, hidden: Array) -> npt.NDArray[np.float64]:
        """Apply the activation between the linear layers."""
        return np.asarray((gelu if self.given["use_gelu"] else relu)(hidden))

    def normalise(self, x: Array) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return normalised rows, before weight and bias, and their deviations."""
        centred = x - x.mean(-1, keepdims=True)
        squares = np.square(centred).mean(-1, keepdims=True)
        spread = np.sqrt(squares + float(self.given["eps"]))
        return centred / spread, spread


def read_encoder(call: Call) -> Encoder:
    """Return the arguments of a layer."""
    return Encoder(call.array("src"), call.arguments)


class _Row(NamedTuple):
    """The numbers of one token, and how far rounding in float32 may take each of them."""

    values: npt.NDArray[np.float64]
    errors: npt.NDArray[np.float64]

    def plus(self, other: _Row) -> _Row:
        """Add two rows."""
        values = self.values + other.values
        return _Row(values, self.errors + other.errors + 2 * _UNIT * np.abs(values))

    def times(self, weight: Array, bias: Array) -> _Row:
        """Multiply by a matrix, and add a bias."""
        values, squares = weight @ self.values + bias, np.square(weight)
        own = 4 * (math.sqrt(len(self.values)) + 4) * _UNIT
        rounded = own * np.sqrt(squares @ np.square(self.values))
        brought = 2 * np.sqrt(squares @ np.square(self.errors))
        return _Row(values, rounded + brought + 2 * _UNIT * (np.abs(values) + np.abs(bias)))

    def normalised(self, encoder: Encoder, number: int) -> _Row:
        """Apply the first or the second normalisation."""
        weight, bias = (encoder.number(f"norm_{name}_{number}") for name in ("weight", "bias"))
        normal, spread = encoder.normalise(self.values)
        values = normal * weight + bias
        moved = self.errors + self.errors.mean() + 8 * _UNIT * np.abs(self.values).max()
        stretched = math.sqrt(np.square(self.errors).mean()) / spread
        errors = np.abs(weight) * (moved / spread + np.abs(normal) * (stretched + 8 * _UNIT))
        return _Row(values, errors + 4 * _UNIT * (np.abs(values) + np.abs(bias)))


def _attend(encoder: Encoder, x: Array, sample: int, row: int) -> _Row:
    """Return what one token of a sample attends to, projected."""
    width = x.shape[1]
    mask = encoder.mask
    masks = []
    if mask is not None:
        shape = (*encoder.src.shape[:1], encoder.heads, len(x), len(x))
        own = np.broadcast_to(mask, shape)[sample, :, row]
        masks = [~own if own.dtype == np.bool_ else own]
    none = np.zeros((0, width))
    heads = QueryHeads(
        encoder.heads,
        [
            Projection(weight, bias)
            for weight, bias in zip(
                np.split(encoder.number("qkv_weight"), 3),
                np.split(encoder.number("qkv_bias"), 3),
                strict=True,
            )
        ],
        None,
        1 / math.sqrt(width // encoder.heads),
        (x, x, x),
        masks,
        (none, none),
        row,
        0.0,
    )
    mixed, wrong = mix_heads(heads)
    found = _Row(mixed.reshape(-1), wrong.reshape(-1))
    return found.times(encoder.number("proj_weight"), encoder.number("proj_bias"))


@explains(transformer_encoder_layer)
def explain_encoder(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum the hidden numbers of the token times a row of the second linear layer.

    What attention and the first linear layer make is one factor; the token itself, which goes
    around the block, is part of the offset.
    """
    encoder = read_encoder(call)
    sample, row, feature = index
    x = encoder.src.value[sample].astype(np.float64)
    seen = x
    if encoder.norm_first:
        weight, bias = encoder.number("norm_weight_1"), encoder.number("norm_bias_1")
        seen = encoder.normalise(x)[0] * weight + bias
    around = _Row(x[row], np.zeros_like(x[row])).plus(_attend(encoder, seen, sample, row))
    if encoder.norm_first:
        inner = around.normalised(encoder, 2)
    else:
        around = inner = around.normalised(encoder, 1)
    hidden = inner.times(encoder.number("ffn_weight_1"), encoder.number("ffn_bias_1"))
    active = encoder.activate(hidden.values)
    hidden = _Row(active, _STEEPEST * hidden.errors + 4 * _UNIT * np.abs(active))
    shift = encoder.number("ffn_bias_2")
    result = around.plus(hidden.times(encoder.number("ffn_weight_2"), shift))
    count = len(active)
    factors = [
        make_factor("hidden", active),
        take(encoder.given["ffn_weight_2"], "ffn_weight_2", grid([feature], range(count))),
    ]
    offset = float(around.values[feature] + shift[feature])
    steps = [Step("the token after attention", float(around.values[feature]))]
    formula = f"z + b + Σ hidden[k] · {factors[1].name}[{feature}, k]"
    if not encoder.norm_first:
        mean = float(result.values.mean())
        spread = float(encoder.normalise(result.values)[1][0])
        scale = float(encoder.number("norm_weight_2")[feature]) / spread
        offset = (offset - mean) * scale + float(encoder.number("norm_bias_2")[feature])
        factors.append(make_factor("scale", np.full(count, scale)))
        steps += [Step("mean", mean), Step("deviation", spread), Step("scale", scale)]
        formula = f"(z + b − mean + Σ hidden[k] · {factors[1].name}[{feature}, k]) · scale + β"
        result = result.normalised(encoder, 2)
    terms = multiply(factors, (count,), ("hidden",))
    text = f"y{format_index(index)} = {formula}, z the token after attention"
    found = add_up(call, text, terms, offset, "token and biases", steps=tuple(steps))
    return replace(found, error=found.error + float(result.errors[feature]))


@locates(transformer_encoder_layer)
def locate_encoder(call: Call, box: Box) -> Mapping[str, Box]:
    """Return all tokens of the samples, and the weights."""
    found = {each.name: each.whole for each in call.arrays}
    src = call.array("src")
    found[src.name] = (box[0], *src.whole[1:])
    return found
