"""Normalisations, as modules and as functions; dropout, which does nothing at inference."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from crosscheck.draw import FLOATS, Draw
from crosscheck.specification import Case, spec, specs


def images(draw: Draw, channels: int, rank: int, *, batch: bool = True):
    lead = (draw.integer(1, 3),) if batch else ()
    return draw.normal(*lead, channels, *draw.shape(rank, 2, 5)) * 2 + 0.5


@spec("nn.BatchNorm1d", "nn.BatchNorm2d", "nn.BatchNorm3d")
def batch_norm(draw: Draw):
    rank, channels = draw.turn(1, 2, 3), draw.integer(1, 5)
    module = getattr(nn, f"BatchNorm{rank}d")(
        channels, **draw.keywords(eps=draw.number(0.001, 0.5), affine=draw.flag())
    )
    x = images(draw, channels, rank)
    return Case(module, x[..., 0] if rank == 1 and draw.flag(0.3) else x)


@spec("F.batch_norm")
def batch_norm_function(draw: Draw):
    channels, rank = draw.integer(1, 4), draw.integer(0, 3)
    eps = draw.number(0.001, 0.1)
    x, mean = images(draw, channels, rank), draw.normal(channels)
    variance = draw.uniform(0.3, 2, channels)
    if draw.turn(True, False):
        return Case(
            lambda x, m, v, w, b: functional.batch_norm(x, m, v, w, b, eps=eps),
            x, mean, variance, draw.normal(channels), draw.normal(channels),
        )  # fmt: skip
    return Case(lambda x, m, v: functional.batch_norm(x, m, v, eps=eps), x, mean, variance)


@spec("nn.InstanceNorm1d", "nn.InstanceNorm2d", "nn.InstanceNorm3d", tolerance=1e-4)
def instance_norm(draw: Draw):
    rank, channels = draw.turn(1, 2, 3), draw.integer(1, 4)
    # With running statistics pnnx writes the wrong ones for some, see below.
    module = getattr(nn, f"InstanceNorm{rank}d")(
        channels, **draw.keywords(eps=draw.number(0.001, 0.5), affine=draw.flag(),
                                  track_running_stats=draw.flag(0.3))
    )  # fmt: skip
    return Case(module, images(draw, channels, rank, batch=draw.flag(0.8)))


@spec("F.instance_norm", tolerance=1e-4)
def instance_norm_function(draw: Draw):
    channels, rank, eps = draw.integer(1, 4), draw.integer(1, 3), draw.number(0.001, 0.1)
    x = images(draw, channels, rank)
    if draw.turn(True, False):
        return Case(
            lambda x, w, b: functional.instance_norm(x, weight=w, bias=b, eps=eps),
            x, draw.normal(channels), draw.normal(channels),
        )  # fmt: skip
    return Case(lambda x: functional.instance_norm(x, eps=eps), x)


@spec("nn.GroupNorm", "F.group_norm", tolerance=1e-4)
def group_norm(draw: Draw):
    groups = draw.integer(1, 3)
    channels, eps = groups * draw.integer(1, 3), draw.number(0.0001, 0.1)
    x = images(draw, channels, draw.integer(0, 3))
    match draw.turn("module", "function", "plain function"):
        case "module":
            return Case(nn.GroupNorm(groups, channels, eps, affine=draw.flag(0.7)), x)
        case "function":
            return Case(
                lambda x, w, b: functional.group_norm(x, groups, w, b, eps),
                x, draw.normal(channels), draw.normal(channels),
            )  # fmt: skip
        case _:
            return Case(lambda x: functional.group_norm(x, groups, eps=eps), x)


@specs({
    "layer_norm": ("nn.LayerNorm", "F.layer_norm"), "rms_norm": ("nn.RMSNorm", "F.rms_norm"),
}, tolerance=1e-4)  # fmt: skip
def over_last_dims(draw: Draw, name: str):
    rank = draw.integer(1, 4)
    shape = draw.shape(rank, 2, 6)
    inner = shape[draw.integer(max(0, rank - 2), rank - 1) :]
    x = draw.normal(*shape, dtype=draw.one(torch.float32, *FLOATS))
    layer = name == "layer_norm"
    function = getattr(functional, name)
    more = draw.keywords(eps=draw.number(0.0001, 0.1))
    weights = [draw.normal(*inner, dtype=x.dtype) for _ in range(2 if layer else 1)]
    match draw.turn("module", "function", "plain function"):
        case "module":
            kind = nn.LayerNorm if layer else nn.RMSNorm
            # Not without a bias alone: pnnx drops the weight too.
            return Case(kind(inner, elementwise_affine=draw.flag(0.7), **more), x.float())
        case "function":
            return Case(lambda x, *w: function(x, inner, *w, **more), x, *weights)
        case _:
            return Case(lambda x: function(x, inner, **more), x)


@spec("nn.LocalResponseNorm", "F.local_response_norm")
def local_response_norm(draw: Draw):
    size = draw.integer(1, 5)
    more = draw.keywords(
        alpha=draw.number(0.0001, 1), beta=draw.number(0.2, 1.5), k=draw.number(0.5, 2)
    )
    x = images(draw, draw.integer(1, 7), draw.integer(1, 3))
    if draw.turn(True, False):
        return Case(nn.LocalResponseNorm(size, **more), x)
    return Case(lambda x: functional.local_response_norm(x, size, **more), x)


@spec("F.normalize")
def normalize(draw: Draw):
    rank = draw.integer(1, 4)
    p, dim = draw.one(1, 2, 2.0, 3, 0.5), draw.dim(rank)
    x = draw.normal(*draw.shape(rank, 1, 5))
    more = draw.keywords(eps=draw.number(0.001, 1))
    return Case(lambda x: functional.normalize(x, p=p, dim=dim, **more), x)


DROPOUTS = {
    "Dropout": "dropout", "Dropout2d": "dropout2d", "Dropout3d": "dropout3d",
    "AlphaDropout": "alpha_dropout", "FeatureAlphaDropout": "feature_alpha_dropout",
    "Dropout1d": "dropout1d",
}  # fmt: skip


@specs(dict.fromkeys(DROPOUTS, ()))
def dropout(draw: Draw, name: str):
    rank = {"Dropout1d": 3, "Dropout2d": 4, "Dropout3d": 5}.get(name, draw.integer(2, 4))
    x = draw.normal(*draw.shape(rank, 1, 4))
    p = draw.number(0.1, 0.9)
    if draw.turn(True, False):
        return Case(nn.Sequential(getattr(nn, name)(p), nn.ReLU()), x)
    function = getattr(functional, DROPOUTS[name])
    return Case(lambda x: function(x, p, training=False) + 1, x)


@spec("nn.Conv2d", levels=(2,))
def weight_norm(draw: Draw):
    # Not the spectral one, on which pnnx ends.
    conv = nn.Conv2d(draw.integer(1, 3), 4, 2)
    return Case(nn.utils.weight_norm(conv), draw.normal(1, conv.in_channels, 5, 5))
