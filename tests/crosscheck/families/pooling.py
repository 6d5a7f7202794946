"""Poolings of all ranks."""

from __future__ import annotations

from unittest import mock

from torch import nn
from torch.nn import functional

from crosscheck.draw import Draw
from crosscheck.specification import Case, spec


def images(draw: Draw, rank: int, least: int = 4, dtype=None):
    batch = () if draw.flag(0.2) else (draw.integer(1, 2),)
    shape = (*batch, draw.integer(1, 3), *draw.shape(rank, least, least + 5))
    return draw.distinct(*shape) if dtype is None else draw.normal(*shape, dtype=dtype)


def windows(draw: Draw, rank: int, *, dilated: bool = False):
    """Kernel, stride, padding and dilation that fit together."""
    kernel = draw.window(rank, 1, 3)
    stride = draw.one(None, draw.window(rank, 1, 3))
    half = kernel // 2 if isinstance(kernel, int) else tuple(k // 2 for k in kernel)
    padding = draw.one(0, half)
    return kernel, stride, padding, draw.window(rank, 1, 2) if dilated else 1


@spec("nn.MaxPool1d", "nn.MaxPool2d", "nn.MaxPool3d",
      "F.max_pool1d", "F.max_pool2d", "F.max_pool3d")  # fmt: skip
def maximum(draw: Draw):
    rank = draw.turn(1, 2, 3)
    kernel, stride, padding, dilation = windows(draw, rank, dilated=True)
    more = {
        "stride": stride, "padding": padding, "dilation": dilation, "ceil_mode": draw.flag(),
        "return_indices": draw.flag(0.3),
    }  # fmt: skip
    x = images(draw, rank, 5)
    if draw.turn(True, False):
        return Case(getattr(nn, f"MaxPool{rank}d")(kernel, **more), x)
    function = getattr(functional, f"max_pool{rank}d")
    return Case(lambda x: function(x, kernel, **more), x)


@spec("nn.AvgPool1d", "nn.AvgPool2d", "nn.AvgPool3d",
      "F.avg_pool1d", "F.avg_pool2d", "F.avg_pool3d")  # fmt: skip
def average(draw: Draw):
    rank = draw.turn(1, 2, 3)
    kernel, stride, padding, _ = windows(draw, rank)
    more = {
        "stride": stride, "padding": padding, "ceil_mode": draw.flag(),
        "count_include_pad": draw.flag(),
    }  # fmt: skip
    if rank > 1 and draw.flag(0.3):
        more["divisor_override"] = draw.integer(1, 7)
    x = images(draw, rank)
    if draw.turn(True, False):
        return Case(getattr(nn, f"AvgPool{rank}d")(kernel, **more), x)
    function = getattr(functional, f"avg_pool{rank}d")
    return Case(lambda x: function(x, kernel, **more), x)


@spec("nn.AdaptiveAvgPool1d", "nn.AdaptiveAvgPool2d", "nn.AdaptiveAvgPool3d",
      "F.adaptive_avg_pool1d", "F.adaptive_avg_pool2d", "F.adaptive_avg_pool3d")  # fmt: skip
def adaptive_average(draw: Draw):
    return adaptive(draw, "Avg", "avg", {})


@spec("nn.AdaptiveMaxPool1d", "nn.AdaptiveMaxPool2d", "nn.AdaptiveMaxPool3d",
      "F.adaptive_max_pool1d", "F.adaptive_max_pool2d", "F.adaptive_max_pool3d")  # fmt: skip
def adaptive_maximum(draw: Draw):
    return adaptive(draw, "Max", "max", {"return_indices": draw.flag(0.3)})


def adaptive(draw: Draw, big: str, small: str, more: dict):
    rank = draw.turn(1, 2, 3)
    size = draw.window(rank, 1, 6)
    if rank > 1 and draw.flag(0.3):
        size = tuple(draw.one(None, draw.integer(1, 5)) for _ in range(rank))
    x = images(draw, rank)
    if draw.turn(True, False):
        return Case(getattr(nn, f"Adaptive{big}Pool{rank}d")(size, **more), x)
    function = getattr(functional, f"adaptive_{small}_pool{rank}d")
    return Case(lambda x: function(x, size, **more), x)


@spec("nn.LPPool1d", "nn.LPPool2d", "F.lp_pool1d", "F.lp_pool2d")
def power_average(draw: Draw):
    rank = draw.turn(1, 2)
    kernel = draw.integer(1, 3) if rank == 1 else draw.window(rank, 1, 3)
    stride = draw.one(None, draw.integer(1, 3))
    power, ceil = draw.one(1, 2, 3, 1.5), draw.flag()
    # Odd powers of negative numbers have no real root.
    x = images(draw, rank).abs()
    if draw.turn(True, False):
        return Case(getattr(nn, f"LPPool{rank}d")(power, kernel, stride, ceil), x)
    function = getattr(functional, f"lp_pool{rank}d")
    return Case(lambda x: function(x, power, kernel, stride, ceil), x)


@spec("aten::max_unpool2d")
def unpooling(draw: Draw):
    kernel = draw.integer(2, 3)
    pool = nn.MaxPool2d(kernel, return_indices=True)
    unpool = nn.MaxUnpool2d(kernel)
    x = draw.distinct(draw.integer(1, 2), draw.integer(1, 3), *draw.shape(2, 6, 9))
    return Case(Unpooling(pool, unpool), x)


class Unpooling(nn.Module):
    def __init__(self, pool: nn.Module, unpool: nn.Module) -> None:
        super().__init__()
        self.pool, self.unpool = pool, unpool

    def forward(self, x):
        # PyTorch 2.13 checks the size in a way that tracing does not survive.
        with mock.patch.object(functional, "_check_unpool_output_size"):
            return self.unpool(*self.pool(x))
