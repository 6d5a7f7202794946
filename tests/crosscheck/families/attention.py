"""Attention and the layers of transformers."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional

from crosscheck.draw import Draw
from crosscheck.specification import Case, spec, specs


class Attention(nn.Module):
    """Multi-head attention; its weights are averaged, for pnnx does not say otherwise."""

    def __init__(self, inner: nn.Module, *, need_weights: bool) -> None:
        super().__init__()
        self.inner, self.need_weights = inner, need_weights

    def forward(self, query, key=None, value=None, attn_mask=None):
        key = query if key is None else key
        value = key if value is None else value
        result, weights = self.inner(
            query, key, value, attn_mask=attn_mask, need_weights=self.need_weights
        )
        return (result, weights) if self.need_weights else result


@spec("nn.MultiheadAttention", tolerance=1e-4)
def multihead(draw: Draw):
    heads = draw.integer(1, 3)
    width = heads * draw.integer(1, 4)
    options = draw.keywords(
        bias=draw.flag(), add_bias_kv=draw.flag(), add_zero_attn=draw.flag(0.4),
        batch_first=draw.flag(),
    )  # fmt: skip
    batch, length, source = draw.integer(1, 3), draw.integer(1, 5), draw.integer(1, 5)

    def sequence(count, size):
        shape = [count, batch]
        if options.get("batch_first"):
            shape.reverse()
        return draw.normal(*shape, size)

    inputs = [sequence(length, width)]
    match draw.turn("same", "key and value", "same key and value", "other widths"):
        case "key and value":
            inputs += [sequence(source, width), sequence(source, width)]
        case "same key and value":
            inputs += [sequence(source, width)]
        case "other widths":
            options |= {"kdim": draw.integer(1, 5), "vdim": draw.integer(1, 5)}
            inputs += [sequence(source, options["kdim"]), sequence(source, options["vdim"])]
    module = nn.MultiheadAttention(width, heads, **options)
    return Case(Attention(module, need_weights=draw.flag()), *inputs)


@spec("nn.MultiheadAttention", tolerance=1e-4)
def multihead_with_mask(draw: Draw):
    heads = draw.integer(1, 3)
    width, batch, length = heads * draw.integer(1, 3), draw.integer(1, 2), draw.integer(2, 5)
    module = nn.MultiheadAttention(width, heads, batch_first=draw.flag())
    shape = [length, batch] if not module.batch_first else [batch, length]
    mask_shape = draw.one((length, length), (batch * heads, length, length))
    mask = draw.normal(*mask_shape)
    inner = Attention(module, need_weights=draw.flag())
    return Case(Masked(inner), draw.normal(*shape, width), mask)


class Masked(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x, mask):
        return self.inner(x, x, x, mask)


# Not at level 0, where pnnx leaves operators that write into their operands.
@spec("nn.MultiheadAttention", tolerance=1e-4, levels=(1, 2))
def multihead_with_padding(draw: Draw):
    heads = draw.integer(1, 3)
    width, batch = heads * draw.integer(1, 3), draw.integer(1, 3)
    # More than samples: pnnx writes either mask alike, and only the shape tells.
    length = batch + draw.integer(1, 3)
    module = nn.MultiheadAttention(width, heads, batch_first=True, bias=draw.flag())
    mask = draw.normal(batch, length)
    if draw.flag():
        mask = mask > 1
        mask[:, 0] = False
    return Case(Padded(module), draw.normal(batch, length, width), mask)


class Padded(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x, mask):
        return self.inner(x, x, x, key_padding_mask=mask, need_weights=False)[0]


@spec("F.scaled_dot_product_attention", tolerance=1e-4)
def scaled_dot_product(draw: Draw):
    heads, batch = draw.integer(1, 3), draw.integer(1, 2)
    length, source, width = draw.integer(1, 5), draw.integer(1, 5), draw.integer(1, 5)
    query = draw.normal(batch, heads, length, width)
    key = draw.normal(batch, heads, source, width)
    value = draw.normal(batch, heads, source, draw.integer(1, 5))
    function = functional.scaled_dot_product_attention
    more = draw.keywords(scale=draw.number(0.1, 2))
    match draw.turn("plain", "mask", "causal", "booleans", "grouped"):
        case "plain":
            return Case(lambda q, k, v: function(q, k, v, **more), query, key, value)
        case "mask":
            mask = draw.normal(*draw.broadcastable((batch, heads, length, source)))
            return Case(
                lambda q, k, v, m: function(q, k, v, m, **more), query, key, value, mask
            )
        case "booleans":
            mask = draw.booleans(batch, heads, length, source, chance=0.8)
            mask[..., 0] = True
            return Case(
                lambda q, k, v, m: function(q, k, v, m, **more), query, key, value, mask
            )
        case "causal":
            return Case(
                lambda q, k, v: function(q, k, v, is_causal=True, **more), query, key, value
            )
        case _:
            query = draw.normal(batch, heads * 2, length, width)
            return Case(
                lambda q, k, v: function(q, k, v, enable_gqa=True, **more), query, key, value
            )


@spec("F.scaled_dot_product_attention", tolerance=1e-4)
def written_out(draw: Draw):
    """What pnnx recognises as attention."""
    width = draw.integer(2, 5)
    query, key, value = (draw.normal(2, 3, draw.integer(2, 2), width) for _ in range(3))
    scale = math.sqrt(width)
    match draw.turn("divided", "multiplied", "masked"):
        case "divided":
            return Case(
                lambda q, k, v: torch.softmax(q @ k.transpose(-2, -1) / scale, -1) @ v,
                query, key, value,
            )  # fmt: skip
        case "multiplied":
            return Case(
                lambda q, k, v: torch.softmax(q * (1 / scale) @ k.transpose(-2, -1), -1) @ v,
                query, key, value,
            )  # fmt: skip
        case _:
            return Case(
                lambda q, k, v, m: torch.softmax(q @ k.transpose(-2, -1) / scale + m, -1) @ v,
                query, key, value, draw.normal(2, 1, 2, 2),
            )  # fmt: skip


@specs({"encoder": (), "decoder": ()}, tolerance=2e-4)
def transformer_layer(draw: Draw, name: str):
    heads = draw.integer(1, 3)
    width = heads * draw.integer(1, 3)
    options = draw.keywords(
        dim_feedforward=draw.integer(2, 6), activation=draw.one("relu", "gelu"),
        batch_first=draw.flag(), norm_first=draw.flag(),
    )  # fmt: skip
    x = draw.normal(draw.integer(1, 4), draw.integer(1, 3), width)
    if name == "encoder":
        layer = nn.TransformerEncoderLayer(width, heads, **options)
        if draw.flag(0.3):
            layer = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        return Case(layer, x)
    return Case(nn.TransformerDecoderLayer(width, heads, **options), x, draw.normal(*x.shape))
