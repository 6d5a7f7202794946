"""Half precision: weights stored as float16, and arithmetic on halves."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from crosscheck.draw import Draw
from crosscheck.specification import Case, specs

# No products: pnnx widens weights that are halves and not what they meet, and ends.
LAYERS = {
    "batch_norm": (lambda: nn.BatchNorm2d(3), (2, 3, 4, 4)),
    "layer_norm": (lambda: nn.LayerNorm(5), (2, 3, 5)),
    "embedding": (lambda: nn.Embedding(9, 4), None),
    "group_norm": (lambda: nn.GroupNorm(1, 3), (2, 3, 4, 4)),
}


@specs(dict.fromkeys(LAYERS, ()), tolerance=5e-3)
def layer(draw: Draw, name: str):
    make, shape = LAYERS[name]
    x = draw.integers(0, 8, 2, 3) if shape is None else draw.normal(*shape, dtype=torch.float16)
    return Case(make().half(), x)


FUNCTIONS = {
    "add": lambda x: x + x * 2,
    "softmax": lambda x: torch.softmax(x, -1),
    "sum": lambda x: x.sum(1),
    "mean": lambda x: x.mean((0, 1)),
    "matmul": lambda x: x @ x.transpose(1, 2),
    "exp": torch.exp,
    "gelu": functional.gelu,
    "max": lambda x: x.max(1),
    "pool": lambda x: functional.max_pool1d(x, 2),
    "average": lambda x: functional.avg_pool1d(x, 2),
    "compare": lambda x: x > 0.5,
    "cat": lambda x: torch.cat([x, x], 1),
    "to_float": lambda x: x.float() * 2,
    "to_int": lambda x: (x * 10).int(),
    "clamp": lambda x: x.clamp(-0.5, 0.5),
    "pow": lambda x: x**2,
    "std": lambda x: x.std(1),
    "norm": lambda x: functional.layer_norm(x, (4,)),
    "cumsum": lambda x: torch.cumsum(x, 1),
    "interpolate": lambda x: functional.interpolate(x, scale_factor=2),
    "pad": lambda x: functional.pad(x, (1, 2)),
}


@specs(dict.fromkeys(FUNCTIONS, ()), tolerance=5e-3)
def function(draw: Draw, name: str):
    return Case(FUNCTIONS[name], draw.normal(2, 3, 4, dtype=torch.float16))
