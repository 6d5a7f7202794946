"""Quantised operators."""

from __future__ import annotations

import torch

from crosscheck.draw import Draw
from crosscheck.specification import Case, spec, specs


@spec("aten::quantize_per_tensor", "torch.dequantize")
def round_trip(draw: Draw):
    scale, zero = draw.number(0.02, 0.3), draw.integer(-5, 100)
    dtype = draw.one(torch.quint8, torch.qint8, torch.qint32)
    x = draw.normal(*draw.shape(draw.integer(1, 4)))
    return Case(lambda x: torch.quantize_per_tensor(x, scale, zero, dtype).dequantize(), x)


@spec("aten::fake_quantize_per_tensor_affine")
def fake(draw: Draw):
    scale, zero = draw.number(0.02, 0.3), draw.integer(0, 100)
    x = draw.normal(*draw.shape(draw.integer(1, 4)))
    return Case(lambda x: torch.fake_quantize_per_tensor_affine(x, scale, zero, 0, 255), x)


@spec("aten::fake_quantize_per_channel_affine")
def fake_by_channel(draw: Draw):
    rank = draw.integer(1, 3)
    x = draw.normal(*draw.shape(rank))
    axis = draw.integer(0, rank - 1)
    scale, zero = draw.uniform(0.02, 0.3, x.shape[axis]), draw.integers(0, 9, x.shape[axis])
    return Case(
        lambda x, s, z: torch.fake_quantize_per_channel_affine(x, s, z, axis, -20, 90),
        x, scale, zero.to(torch.int32),
    )  # fmt: skip


@specs({name: (f"pnnx.custom_op.quantized.{name}",) for name in ("add", "add_relu", "mul")})
def arithmetic(draw: Draw, name: str):
    # An even zero point: odd ones turn halves up for some elements, and down for others.
    scale, zero = draw.number(0.02, 0.1), 2 * draw.integer(10, 45)
    shape = draw.shape(3)
    function = getattr(torch.ops.quantized, name)
    options = [(draw.number(0.02, 0.1), draw.integer(20, 90), torch.quint8) for _ in range(2)]

    def compute(x, y):
        one, two = (
            torch.quantize_per_tensor(v, *o) for v, o in zip((x, y), options, strict=True)
        )
        return function(one, two, scale, zero).dequantize()

    return Case(compute, draw.normal(*shape), draw.normal(*shape))
