"""Small networks: what pnnx fuses when operators stand side by side."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from crosscheck.draw import Draw
from crosscheck.specification import Case, spec, specs

ACTIVATIONS = (
    nn.ReLU, nn.SiLU, nn.GELU, nn.Hardswish, nn.LeakyReLU, nn.Sigmoid, nn.ELU, nn.Mish,
    nn.ReLU6,
)  # fmt: skip


def convolution(draw: Draw, channels: int, out: int, stride: int = 1):
    kernel = draw.one(1, 3)
    groups = draw.one(1, channels if out % channels == 0 else 1)
    layers = [
        nn.Conv2d(channels, out, kernel, stride, kernel // 2, groups=groups, bias=draw.flag()),
        draw.one(nn.BatchNorm2d(out), nn.InstanceNorm2d(out, affine=True), nn.GroupNorm(1, out),
                 nn.Identity()),
        draw.one(*ACTIVATIONS)(),
    ]  # fmt: skip
    return nn.Sequential(*layers)


class Residual(nn.Module):
    def __init__(self, draw: Draw, channels: int) -> None:
        super().__init__()
        self.body = nn.Sequential(*(convolution(draw, channels, channels) for _ in range(2)))
        self.joined = draw.flag()

    def forward(self, x):
        return (
            torch.cat([x, self.body(x)], 1)[:, : x.shape[1]]
            if self.joined
            else x + self.body(x)
        )


class Squeeze(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(channels, 2, 1), nn.Conv2d(2, channels, 1)

    def forward(self, x):
        share = functional.adaptive_avg_pool2d(x, 1)
        return x * torch.sigmoid(self.up(functional.relu(self.down(share))))


class Split(nn.Module):
    def __init__(self, draw: Draw, channels: int) -> None:
        super().__init__()
        self.body = convolution(draw, channels // 2, channels // 2)

    def forward(self, x):
        left, right = x.chunk(2, 1)
        return torch.cat([left * 0.5, self.body(right)], 1)


class Pyramid(nn.Module):
    def __init__(self, draw: Draw, channels: int) -> None:
        super().__init__()
        self.down = convolution(draw, channels, channels, 2)
        self.mode = draw.one("nearest", "bilinear")

    def forward(self, x):
        small = self.down(x)
        return x + functional.interpolate(small, size=x.shape[2:], mode=self.mode)


class Tokens(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(channels)
        self.attention = nn.MultiheadAttention(channels, 2, batch_first=True)
        self.mix = nn.Sequential(
            nn.Linear(channels, 2 * channels), nn.GELU(), nn.Linear(2 * channels, channels)
        )

    def forward(self, x):
        y = x.flatten(2).transpose(1, 2)
        z = self.norm(y)
        y = y + self.attention(z, z, z, need_weights=False)[0]
        y = y + self.mix(self.norm(y))
        return y.transpose(1, 2).reshape(x.shape)


@spec(tolerance=1e-3)
def of_images(draw: Draw):
    channels = 2 * draw.integer(1, 3)
    blocks = [convolution(draw, 3, channels, draw.integer(1, 2))]
    for _ in range(draw.integer(2, 5)):
        kind = draw.one("plain", "residual", "squeeze", "split", "pyramid", "tokens", "pool")
        blocks.append({
            "plain": lambda: convolution(draw, channels, channels),
            "residual": lambda: Residual(draw, channels), "squeeze": lambda: Squeeze(channels),
            "split": lambda: Split(draw, channels), "pyramid": lambda: Pyramid(draw, channels),
            "tokens": lambda: Tokens(channels),
            "pool": lambda: draw.one(nn.MaxPool2d(3, 1, 1), nn.AvgPool2d(3, 1, 1)),
        }[kind]())  # fmt: skip
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 3))
    x = draw.normal(draw.integer(1, 2), 3, *draw.shape(2, 6, 10))
    return Case(nn.Sequential(*blocks, head), x)


# What pnnx has a pass for, written out in operators.
def hard_swish(x):
    return x * functional.relu6(x + 3) / 6


def layer_norm(x):
    mean = x.mean(-1, keepdim=True)
    variance = (x - mean).pow(2).mean(-1, keepdim=True)
    return (x - mean) / torch.sqrt(variance + 1e-5)


def rms_norm(x):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


def pixel_shuffle(x):
    n, c, h, w = x.shape
    y = x.view(n, c // 4, 2, 2, h, w).permute(0, 1, 4, 2, 5, 3)
    return y.reshape(n, c // 4, h * 2, w * 2)


def pixel_unshuffle(x):
    n, c, h, w = x.shape
    y = x.view(n, c, h // 2, 2, w // 2, 2).permute(0, 1, 3, 5, 2, 4)
    return y.reshape(n, c * 4, h // 2, w // 2)


def written(x):
    y = x.clone()
    y[:, 1] = x[:, 0] * 2
    y[:, 2:, :1] = 5
    return y


def written_twice(x):
    # Without +=, of which pnnx folds what comes out into what goes in.
    y = x * 0
    y[:, :2] = x[:, 2:]
    y[..., 0] = x[..., 1] - 1
    y[:, 3] = y[:, 0] * 2
    return y + 1


PATTERNS = {
    "silu": lambda x: x * torch.sigmoid(x),
    "hard_swish": hard_swish,
    "gelu": lambda x: x * 0.5 * (1 + torch.erf(x / 2**0.5)),
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
    "pixel_shuffle": pixel_shuffle,
    "pixel_unshuffle": pixel_unshuffle,
    "adjacent_permutes": lambda x: x.permute(0, 2, 3, 1).permute(0, 3, 1, 2) + 1,
    "adjacent_reshapes": lambda x: x.reshape(-1).reshape(2, -1).reshape(x.shape) * 2,
    "slices_to_split": lambda x: x[:, :2] + x[:, 2:],
    "slices_to_uneven_split": lambda x: (x[:, :1] * 2, x[:, 1:3], x[:, 3:]),
    "selects_to_unbind": lambda x: x[:, 0] + x[:, 1] - x[:, 2] * x[:, 3],
    "slice_and_squeeze": lambda x: x[:, 1:2].squeeze(1) + 1,
    "pads": lambda x: functional.max_pool2d(functional.pad(x, (1, 1, 1, 1)), 3, 1),
    "squeeze_unsqueeze": lambda x: x.unsqueeze(1).squeeze(1) * 3,
    "cat_of_one": lambda x: torch.cat([x], 1) + 1,
    "no_ops": lambda x: (x + 0) * 1 / 1 - 0,
    "expand_to_itself": lambda x: x.expand(x.shape) + 1,
    "shared": lambda x: torch.relu(x) + torch.relu(x),
    "constant": lambda x: x + torch.arange(4.0).reshape(1, 4, 1, 1) * 2,
    "constant_scale": lambda x: x * (torch.ones(4) * 3).view(4, 1, 1) + 2 - 0.5,
    "written": written,
    "written_twice": written_twice,
    "added_in_place": lambda x: torch.zeros_like(x).add_(x).mul_(2).relu_(),
    "unused": lambda x: (x * 2, (x + 1).sum())[0],
    "same_twice": lambda x: (x, x, x + 1),
    "nested": lambda x: (x, (x + 1, [x * 2])),
}


@specs(dict.fromkeys(PATTERNS, ()), tolerance=1e-4, levels=(2,))
def pattern(draw: Draw, name: str):
    x = draw.normal(draw.integer(1, 2), 4, 2 * draw.integer(2, 3), 2 * draw.integer(2, 3))
    return Case(PATTERNS[name], x)


@spec("nn.Conv2d", "nn.Conv1d", tolerance=1e-4)
def padded_convolution(draw: Draw):
    """A pad in front of a convolution, which pnnx may join."""
    rank = draw.turn(1, 2)
    mode = draw.one("constant", "reflect", "replicate", "circular")
    sizes = [draw.integer(0, 2)] * 2 * rank if draw.flag() else list(draw.shape(2 * rank, 0, 2))
    conv = (nn.Conv1d, nn.Conv2d)[rank - 1](2, 3, 3, padding=draw.integer(0, 1))
    return Case(Padded(conv, sizes, mode), draw.normal(1, 2, *draw.shape(rank, 4, 7)))


class Padded(nn.Module):
    def __init__(self, inner: nn.Module, sizes: list[int], mode: str) -> None:
        super().__init__()
        self.inner, self.sizes, self.mode = inner, sizes, mode

    def forward(self, x):
        return self.inner(functional.pad(x, self.sizes, self.mode))


@specs({
    "linear": ("nn.Linear",), "conv": ("nn.Conv2d",), "transposed": ("nn.ConvTranspose2d",),
    "batch_norm": ("nn.BatchNorm2d",), "layer_norm": ("nn.LayerNorm",),
    "group_norm": ("nn.GroupNorm",), "instance_norm": ("nn.InstanceNorm2d",),
    "embedding": ("nn.Embedding",), "prelu": (), "rms_norm": ("nn.RMSNorm",),
}, tolerance=1e-4)  # fmt: skip
def constant_weights(draw: Draw, name: str):
    """Functions of weights that are constants, which pnnx makes modules of."""
    numbers = draw.normal
    x = numbers(2, 4, *draw.shape(2, 3, 6))
    matrix, kernel, four, other = numbers(3, 4), numbers(4, 2, 3, 3), numbers(4), numbers(4)
    bias = draw.one(None, numbers(4))
    functions = {
        "linear": lambda x: functional.linear(x.mean((2, 3)), matrix),
        "conv": lambda x: functional.conv2d(x, kernel, bias, padding=1, groups=2),
        "transposed": lambda x: functional.conv_transpose2d(x, kernel, stride=2, padding=1),
        "batch_norm": lambda x: functional.batch_norm(x, four, other.abs() + 0.5, four, other),
        "layer_norm": lambda x: functional.layer_norm(x.permute(0, 2, 3, 1), (4,), four, other),
        "group_norm": lambda x: functional.group_norm(x, 2, four, other),
        "instance_norm": lambda x: functional.instance_norm(x, weight=four, bias=other),
        "prelu": lambda x: functional.prelu(x, four),
        "rms_norm": lambda x: functional.rms_norm(x.permute(0, 2, 3, 1), (4,), four),
    }
    if name == "embedding":
        return Case(lambda i: functional.embedding(i, matrix), draw.integers(0, 2, 2, 3))
    return Case(functions[name], x)
