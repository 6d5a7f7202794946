"""Activations, as modules and as functions."""

from __future__ import annotations

from torch import nn
from torch.nn import functional

from crosscheck.draw import Draw
from crosscheck.specification import Case, spec, specs


def anything(draw: Draw):
    """Numbers on both sides of zero, some of them large."""
    return draw.normal(*draw.shape(draw.integer(1, 5), 1, 5)) * draw.one(1, 1, 4, 30)


# Module: function, and what its parameters are drawn from.
TABLE = {
    "CELU": ("celu", lambda n: {"alpha": n(0.2, 3)}),
    "ELU": ("elu", lambda n: {"alpha": n(0.2, 3)}),
    "Hardshrink": ("hardshrink", lambda n: {"lambd": n(0, 1.5)}),
    "Hardsigmoid": ("hardsigmoid", lambda n: {}),
    "Hardswish": ("hardswish", lambda n: {}),
    "Hardtanh": ("hardtanh", lambda n: {"min_val": n(-3, 0), "max_val": n(0, 3)}),
    "LeakyReLU": ("leaky_relu", lambda n: {"negative_slope": n(-0.5, 1)}),
    "LogSigmoid": ("logsigmoid", lambda n: {}),
    "Mish": ("mish", lambda n: {}),
    "ReLU": ("relu", lambda n: {}),
    "ReLU6": ("relu6", lambda n: {}),
    "SELU": ("selu", lambda n: {}),
    "SiLU": ("silu", lambda n: {}),
    "Sigmoid": ("sigmoid", lambda n: {}),
    "Softplus": ("softplus", lambda n: {"beta": n(0.3, 3), "threshold": n(2, 20)}),
    "Softshrink": ("softshrink", lambda n: {"lambd": n(0, 1.5)}),
    "Softsign": ("softsign", lambda n: {}),
    "Tanh": ("tanh", lambda n: {}),
    "Tanhshrink": ("tanhshrink", lambda n: {}),
}


@specs({big: (f"nn.{big}", f"F.{small}") for big, (small, _) in TABLE.items()})
def simple(draw: Draw, name: str):
    small, options = TABLE[name]
    more = draw.keywords(**options(draw.number))
    function = getattr(functional, small)
    as_module = draw.turn(True, False)
    return Case(
        getattr(nn, name)(**more) if as_module else lambda x: function(x, **more),
        anything(draw),
    )


@spec("nn.GELU", "F.gelu")
def gelu(draw: Draw):
    kind = draw.one("none", "tanh")
    function = lambda x: functional.gelu(x, approximate=kind)  # noqa: E731
    return Case(draw.turn(nn.GELU(kind), function), anything(draw))


@spec("nn.Threshold", "F.threshold")
def threshold(draw: Draw):
    limit, value = draw.number(-1, 1), draw.number(-9, 9)
    function = lambda x: functional.threshold(x, limit, value)  # noqa: E731
    return Case(draw.turn(nn.Threshold(limit, value), function), anything(draw))


@spec("F.prelu")  # also the module: its weight becomes an attribute
def prelu(draw: Draw):
    channels = draw.integer(1, 4)
    x = draw.normal(draw.integer(1, 3), channels, *draw.shape(draw.integer(0, 3), 1, 4))
    count = draw.one(1, channels)
    if draw.turn(True, False):
        return Case(nn.PReLU(count), x)
    return Case(functional.prelu, x, draw.normal(count))


@spec("nn.RReLU", "F.rrelu")
def rrelu(draw: Draw):
    lower = draw.number(0, 0.3)
    upper = lower + draw.number(0, 0.5)
    function = lambda x: functional.rrelu(x, lower, upper)  # noqa: E731
    return Case(draw.turn(nn.RReLU(lower, upper), function), anything(draw))


@spec("nn.GLU", "F.glu")
def glu(draw: Draw):
    rank = draw.integer(1, 4)
    dim = draw.dim(rank)
    shape = [2 * n if i == dim % rank else n for i, n in enumerate(draw.shape(rank, 1, 4))]
    return Case(draw.turn(nn.GLU(dim), lambda x: functional.glu(x, dim)), draw.normal(*shape))


SOFT = {"Softmax": "softmax", "LogSoftmax": "log_softmax", "Softmin": "softmin"}


@specs({big: (f"nn.{big}", f"F.{small}") for big, small in SOFT.items()})
def soft(draw: Draw, name: str):
    function = getattr(functional, SOFT[name])
    x = anything(draw)
    dim = draw.dim(x.ndim)
    # Not with a dtype: pnnx drops it.
    return Case(draw.turn(getattr(nn, name)(dim), lambda x: function(x, dim)), x)


@spec("nn.Softmax2d")
def softmax_of_channels(draw: Draw):
    return Case(nn.Softmax2d(), draw.normal(*draw.shape(draw.integer(3, 4), 1, 5)))
