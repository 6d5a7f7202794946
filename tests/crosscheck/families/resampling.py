"""Resizing, sampling, shuffling, folding and padding of images."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from crosscheck.draw import FLOATS, Draw
from crosscheck.specification import Case, spec, specs

MODES = {
    1: ("nearest", "linear", "nearest-exact", "area"),
    2: ("nearest", "bilinear", "bicubic", "nearest-exact", "area"),
    3: ("nearest", "trilinear", "nearest-exact", "area"),
}


def resizing(draw: Draw, *, exact: bool):
    rank = draw.turn(1, 2, 3)
    modes = [
        m
        for m in MODES[rank]
        if exact or m in {"nearest", "linear", "bilinear", "bicubic", "trilinear"}
    ]
    mode = draw.one(*modes)
    options = {"mode": mode}
    if mode.endswith(("linear", "cubic")):
        options["align_corners"] = draw.one(None, True, False)
    if draw.turn(True, False):
        options["size"] = draw.window(rank, 1, 9)
    else:
        factor = draw.one(2, 0.5, 1.5, 1.3, 3)
        options["scale_factor"] = draw.one(
            factor, tuple(draw.number(0.6, 2.5) for _ in range(rank))
        )
        if draw.flag(0.4):
            options["recompute_scale_factor"] = draw.flag()
    return options, draw.normal(draw.integer(1, 2), draw.integer(1, 3), *draw.shape(rank, 2, 6))


@spec("F.interpolate", "F.upsample", tolerance=1e-4)
def interpolate(draw: Draw):
    options, x = resizing(draw, exact=True)
    return Case(lambda x: functional.interpolate(x, **options), x)


@spec("F.interpolate", tolerance=1e-4)
def interpolate_with_antialias(draw: Draw):
    mode = draw.one("bilinear", "bicubic")
    # Of images of one column PyTorch mixes no rows.
    size, aligned = (draw.integer(1, 9), draw.integer(2, 9)), draw.flag()
    x = draw.normal(1, 2, *draw.shape(2, 3, 9))
    return Case(
        lambda x: functional.interpolate(
            x, size, mode=mode, align_corners=aligned, antialias=True
        ),
        x,
    )


@spec("F.upsample")
def interpolate_bytes(draw: Draw):
    x = draw.integers(0, 255, 1, draw.integer(1, 5), *draw.shape(2, 2, 9), dtype=torch.uint8)
    size, aligned = draw.shape(2, 2, 12), draw.flag()
    return Case(
        lambda x: functional.interpolate(x, size, mode="bilinear", align_corners=aligned), x
    )


@spec("nn.Upsample", tolerance=1e-4)
def upsample(draw: Draw):
    options, x = resizing(draw, exact=False)
    return Case(nn.Upsample(**options), x)


@spec(
    "nn.UpsamplingNearest2d",
    "nn.UpsamplingBilinear2d",
    "F.upsample_nearest",
    "F.upsample_bilinear",
)
def old_upsampling(draw: Draw):
    options = draw.one({"size": draw.shape(2, 1, 9)}, {"scale_factor": draw.integer(1, 3)})
    kind = draw.turn(
        nn.UpsamplingNearest2d(**options), nn.UpsamplingBilinear2d(**options),
        lambda x: functional.upsample_nearest(x, **options),
        lambda x: functional.upsample_bilinear(x, **options),
    )  # fmt: skip
    return Case(kind, draw.normal(1, 2, *draw.shape(2, 2, 6)))


@spec("F.grid_sample", tolerance=1e-4)
def grid_sample(draw: Draw):
    rank = draw.turn(2, 3)
    batch = draw.integer(1, 2)
    mode = draw.one("bilinear", "nearest", *(("bicubic",) if rank == 2 else ()))
    padding, aligned = draw.one("zeros", "border", "reflection"), draw.flag()
    x = draw.normal(batch, draw.integer(1, 3), *draw.shape(rank, 2, 6))
    grid = draw.uniform(-1.6, 1.6, batch, *draw.shape(rank, 1, 5), rank)
    return Case(lambda x, g: functional.grid_sample(x, g, mode, padding, aligned), x, grid)


@spec("F.affine_grid")
def affine_grid(draw: Draw):
    rank = draw.turn(2, 3)
    batch, aligned = draw.integer(1, 3), draw.flag()
    size = (batch, draw.integer(1, 3), *draw.shape(rank, 1, 5))
    theta = draw.normal(batch, rank, rank + 1)
    return Case(lambda t: functional.affine_grid(t, size, aligned), theta)


@spec("nn.PixelShuffle", "F.pixel_shuffle", "nn.PixelUnshuffle", "F.pixel_unshuffle")
def pixels(draw: Draw):
    factor = draw.integer(1, 3)
    lead, (height, width) = draw.shape(draw.integer(0, 2), 1, 3), draw.shape(2, 1, 3)
    channels = draw.integer(1, 3)
    small = draw.normal(*lead, channels * factor**2, height, width)
    large = draw.normal(*lead, channels, height * factor, width * factor)
    match draw.turn(0, 1, 2, 3):
        case 0:
            return Case(nn.PixelShuffle(factor), small)
        case 1:
            return Case(lambda x: functional.pixel_shuffle(x, factor), small)
        case 2:
            return Case(nn.PixelUnshuffle(factor), large)
        case _:
            return Case(lambda x: functional.pixel_unshuffle(x, factor), large)


@spec("nn.ChannelShuffle", "aten::channel_shuffle")
def channel_shuffle(draw: Draw):
    groups = draw.integer(1, 3)
    x = draw.normal(draw.integer(1, 2), groups * draw.integer(1, 3), *draw.shape(2, 1, 3))
    return Case(
        draw.turn(nn.ChannelShuffle(groups), lambda x: functional.channel_shuffle(x, groups)), x
    )


@spec("nn.ChannelShuffle")
def channel_shuffle_written_out(draw: Draw):
    groups, each = draw.integer(2, 3), draw.integer(2, 3)
    batch, height, width = draw.shape(3, 1, 3)

    def shuffle(x):
        y = x.view(batch, groups, each, height, width).transpose(1, 2).contiguous()
        return y.view(batch, groups * each, height, width)

    return Case(shuffle, draw.normal(batch, groups * each, height, width))


def windows(draw: Draw):
    kernel, dilation = draw.window(2, 1, 3), draw.window(2, 1, 2)
    return kernel, dilation, draw.window(2, 0, 2), draw.window(2, 1, 2)


@spec("nn.Unfold", "F.unfold")
def unfold(draw: Draw):
    options = windows(draw)
    x = draw.normal(
        *draw.shape(draw.integer(0, 1), 1, 2), draw.integer(1, 3), *draw.shape(2, 5, 8)
    )
    if x.ndim == 3:
        x = x[None]
    return Case(draw.turn(nn.Unfold(*options), lambda x: functional.unfold(x, *options)), x)


@spec("nn.Fold", "F.fold")
def fold(draw: Draw):
    options = windows(draw)
    size = draw.shape(2, 5, 8)
    columns = functional.unfold(draw.normal(1, draw.integer(1, 2), *size), *options)
    x = draw.normal(draw.integer(1, 2), *columns.shape[1:])
    return Case(
        draw.turn(nn.Fold(size, *options), lambda x: functional.fold(x, size, *options)), x
    )


# Padding ------------------------------------------------------------------------------------

PADS = {
    f"{kind}Pad{rank}d": rank
    for kind in ("Constant", "Reflection", "Replication", "Zero", "Circular")
    for rank in (1, 2, 3)
}
WRITTEN = {
    *(f"ConstantPad{n}d" for n in (1, 2, 3)), *(f"ReplicationPad{n}d" for n in (1, 2, 3)),
    "ReflectionPad1d", "ReflectionPad2d", "ZeroPad2d",
}  # fmt: skip


@specs({name: (f"nn.{name}" if name in WRITTEN else "F.pad",) for name in PADS})
def padding_module(draw: Draw, name: str):
    rank = PADS[name]
    low = -1 if name.startswith(("Constant", "Zero")) and draw.flag(0.3) else 0
    sizes = draw.one(draw.integer(0, 2), tuple(draw.integer(low, 2) for _ in range(2 * rank)))
    more = (draw.number(-3, 3),) if name.startswith("Constant") else ()
    batch = (2,) if draw.flag(0.8) else ()
    return Case(
        getattr(nn, name)(sizes, *more), draw.normal(*batch, 2, *draw.shape(rank, 3, 5))
    )


@spec("F.pad")
def padding_function(draw: Draw):
    mode = draw.turn("constant", "reflect", "replicate", "circular")
    rank = draw.integer(1, 4) if mode == "constant" else draw.integer(1, 3)
    if mode == "constant":
        count = draw.integer(1, rank)
        sizes = [draw.integer(-1 if draw.flag(0.2) else 0, 3) for _ in range(2 * count)]
        x = draw.tensor(*draw.shape(rank, 3, 5), dtype=draw.one(*FLOATS, torch.int64))
        value = draw.one(None, draw.integer(-3, 3))
        return Case(lambda x: functional.pad(x, sizes, mode, value), x)
    sizes = [draw.integer(0, 2) for _ in range(2 * rank)]
    x = draw.normal(*draw.shape(draw.integer(1, 2), 1, 2), *draw.shape(rank, 3, 5))
    return Case(lambda x: functional.pad(x, sizes, mode), x)
