"""Convolutions and transposed convolutions of all ranks, as modules and as functions."""

from __future__ import annotations

from torch import nn
from torch.nn import functional

from crosscheck.draw import Draw
from crosscheck.specification import Case, spec

CONV = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
TRANSPOSED = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}


def images(draw: Draw, channels: int, rank: int, least: int):
    """An input, with or without a batch."""
    batch = () if draw.flag(0.2) else (draw.integer(1, 3),)
    return draw.normal(*batch, channels, *draw.shape(rank, least, least + 5))


def sizes(draw: Draw, rank: int, *, transposed: bool = False):
    """Kernel, stride, dilation; and the input that they need."""
    kernel, dilation = draw.window(rank, 1, 3), draw.window(rank, 1, 2)
    stride = draw.window(rank, 1, 3)
    return kernel, stride, dilation, 1 if transposed else 5


@spec("nn.Conv1d", "nn.Conv2d", "nn.Conv3d")
def convolution_module(draw: Draw):
    rank, groups = draw.turn(1, 2, 3), draw.integer(1, 3)
    channels, out_channels = groups * draw.integer(1, 3), groups * draw.integer(1, 3)
    kernel, stride, dilation, least = sizes(draw, rank)
    mode = draw.one("zeros", "zeros", "reflect", "replicate", "circular")
    padding = draw.window(rank, 0, 3)
    if draw.flag(0.2):
        padding, stride = draw.one("same", "valid"), 1
    module = CONV[rank](
        channels, out_channels, kernel, stride, padding, dilation, groups,
        bias=draw.flag(), padding_mode=mode,
    )  # fmt: skip
    return Case(module, images(draw, channels, rank, least))


@spec("F.conv1d", "F.conv2d", "F.conv3d")
def convolution_function(draw: Draw):
    rank, groups = draw.turn(1, 2, 3), draw.integer(1, 3)
    channels, out_channels = draw.integer(1, 2), groups * draw.integer(1, 2)
    kernel, stride, dilation, least = sizes(draw, rank)
    kernel = (kernel,) * rank if isinstance(kernel, int) else kernel
    padding = draw.window(rank, 0, 2)
    if draw.flag(0.2):
        padding, stride = draw.one("same", "valid"), 1
    function = getattr(functional, f"conv{rank}d")
    weight = draw.normal(out_channels, channels, *kernel)
    x = images(draw, channels * groups, rank, least)
    if draw.turn(True, False):
        return Case(
            lambda x, w, b: function(x, w, b, stride, padding, dilation, groups),
            x, weight, draw.normal(out_channels),
        )  # fmt: skip
    return Case(lambda x, w: function(x, w, None, stride, padding, dilation, groups), x, weight)


def transposed_options(draw: Draw, rank: int):
    kernel, stride, dilation, _ = sizes(draw, rank, transposed=True)

    def each(value):
        return (value,) * rank if isinstance(value, int) else value

    padding = draw.window(rank, 0, 1)
    reach = [d * (k - 1) for d, k in zip(each(dilation), each(kernel), strict=True)]
    padding = tuple(min(p, r // 2) for p, r in zip(each(padding), reach, strict=True))
    room = [max(s, d) - 1 for s, d in zip(each(stride), each(dilation), strict=True)]
    extra = tuple(draw.integer(0, r) for r in room)
    return kernel, stride, padding, extra, dilation


@spec("nn.ConvTranspose1d", "nn.ConvTranspose2d", "nn.ConvTranspose3d")
def transposed_module(draw: Draw):
    rank, groups = draw.turn(1, 2, 3), draw.integer(1, 3)
    channels, out_channels = groups * draw.integer(1, 2), groups * draw.integer(1, 3)
    kernel, stride, padding, extra, dilation = transposed_options(draw, rank)
    module = TRANSPOSED[rank](
        channels, out_channels, kernel, stride, padding, extra, groups, draw.flag(), dilation
    )
    return Case(module, images(draw, channels, rank, 2))


@spec("F.conv_transpose1d", "F.conv_transpose2d", "F.conv_transpose3d")
def transposed_function(draw: Draw):
    rank, groups = draw.turn(1, 2, 3), draw.integer(1, 3)
    channels, out_channels = groups * draw.integer(1, 2), draw.integer(1, 2)
    kernel, stride, padding, extra, dilation = transposed_options(draw, rank)
    kernel = (kernel,) * rank if isinstance(kernel, int) else kernel
    function = getattr(functional, f"conv_transpose{rank}d")
    weight = draw.normal(channels, out_channels, *kernel)
    x = images(draw, channels, rank, 2)
    bias = draw.normal(out_channels * groups)
    if draw.turn(True, False):
        return Case(
            lambda x, w, b: function(x, w, b, stride, padding, extra, groups, dilation),
            x, weight, bias,
        )  # fmt: skip
    return Case(
        lambda x, w: function(x, w, None, stride, padding, extra, groups, dilation), x, weight
    )


@spec("nn.Conv1d", "nn.Conv2d", "nn.Conv3d")
def with_batch_norm(draw: Draw):
    """Folded into the convolution by pnnx."""
    rank = draw.turn(1, 2, 3)
    norm = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}[rank]
    kind = draw.turn(CONV, TRANSPOSED)[rank]
    channels, out_channels = draw.integer(1, 4), draw.integer(1, 4)
    module = nn.Sequential(
        kind(channels, out_channels, 2, bias=draw.flag()),
        norm(out_channels, affine=draw.flag(0.8)),
    )
    return Case(module, draw.normal(2, channels, *draw.shape(rank, 3, 6)))
