"""Graphs of two sizes of input: sizes are operands, and nothing that depends on them folds."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional

from crosscheck.draw import Draw
from crosscheck.specification import Case, specs


def pad_to_multiple(x):
    rest = (4 - x.shape[-1] % 4) % 4
    return functional.pad(x, (0, rest))


def centred(x):
    height, width = x.shape[2] // 2, x.shape[3] // 2
    return x[:, :, height - 1 : height + 2, width - 1 :]


def positions(x):
    rows = torch.arange(x.shape[2], dtype=torch.float32)
    columns = torch.arange(x.shape[3], dtype=torch.float32)
    return x + rows[:, None] * 0.5 - columns


def windows(x):
    """Cut into windows and put together again, as in Swin."""
    n, c, h, w = x.shape
    y = x.view(n, c, h // 2, 2, w // 2, 2).permute(0, 2, 4, 3, 5, 1).reshape(-1, 4, c)
    y = y * 2 + 1
    return y.view(n, h // 2, w // 2, 2, 2, c).permute(0, 5, 1, 3, 2, 4).reshape(n, c, h, w)


def attention(x):
    n, c, h, w = x.shape
    y = x.flatten(2).transpose(1, 2)
    scores = torch.softmax(y @ y.transpose(1, 2) / math.sqrt(c), -1)
    return (scores @ y).transpose(1, 2).reshape(n, c, h, w)


def shuffle(x):
    n, c, h, w = x.shape
    return x.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)


def halves(x):
    left, right = x.chunk(2, dim=3)
    return torch.cat([right, left], dim=3)


def written(x):
    y = x.clone()
    y[:, :, 1 : x.shape[2] - 1] = 0
    return y + x


def causal(x):
    length = x.shape[3]
    mask = torch.triu(torch.full((length, length), float("-inf")), 1)
    return torch.softmax(x.transpose(2, 3) @ x + mask, -1)


# Of an image of shape (N, 4, H, W), with H and W even. Without steps in slices, which pnnx
# takes away where it does not know the sizes.
FUNCTIONS = {
    "view": lambda x: x.view(x.shape[0], -1),
    "view_and_back": lambda x: (x.flatten(1) * 2).view(x.shape),
    "reshape": lambda x: x.reshape(x.size(0), x.size(1) // 2, -1, x.size(3)),
    "permuted": lambda x: x.permute(0, 2, 3, 1).reshape(x.shape[0], -1, x.shape[1]),
    "flatten": lambda x: torch.flatten(x, 1, 2),
    "expand": lambda x: x[:, :, :1].expand(-1, -1, x.shape[2], -1) + 1,
    "expand_as": lambda x: x.mean((2, 3), keepdim=True).expand_as(x) * 1.5,
    "repeat": lambda x: x.mean((2, 3), keepdim=True).repeat(1, 1, x.shape[2], x.shape[3]),
    "interpolate": lambda x: functional.interpolate(x, size=(x.shape[2] * 2, x.shape[3] // 2)),
    "interpolate_bilinear": lambda x: functional.interpolate(
        x, size=(x.shape[2] + 3, x.shape[3] + 1), mode="bilinear", align_corners=True
    ),
    "scaled": lambda x: functional.interpolate(x, scale_factor=1.5, mode="bilinear"),
    "pad": pad_to_multiple,
    "slice": lambda x: x[:, :, : x.shape[2] // 2] - 1,
    "slice_from": lambda x: x[:, :, x.shape[2] // 2 :] * 2,
    "centred": centred,
    "select": lambda x: x[:, :, x.shape[2] - 1] + x[:, :, -1],
    "narrow": lambda x: torch.narrow(x, 2, 1, x.shape[2] - 2) + 1,
    "halves": halves,
    "pooled_to_a_size": lambda x: functional.adaptive_avg_pool2d(x, (x.shape[2] // 2, 3)),
    "global_pool": lambda x: functional.avg_pool2d(x, (x.shape[2], x.shape[3])),
    "positions": positions,
    "windows": windows,
    "attention": attention,
    "shuffle": shuffle,
    "written": written,
    "causal": causal,
    "divided_by_size": lambda x: x.sum((2, 3)) / (x.shape[2] * x.shape[3]),
    "root_of_size": lambda x: x / math.sqrt(x.shape[1]) + x.shape[2] % 3,
    "ones": lambda x: torch.ones(x.shape[2], x.shape[3]) + x,
    "zeros": lambda x: torch.zeros(x.shape[0], 1, x.shape[2], x.shape[3]),
    "full": lambda x: torch.full((x.shape[2],), 2.5),
    "like": lambda x: (torch.ones_like(x), torch.zeros_like(x)),
    "new": lambda x: x.new_zeros(x.shape[0], x.shape[2]),
    "tril": lambda x: torch.tril(torch.ones(x.shape[2], x.shape[3])),
    "linear_space": lambda x: torch.linspace(-1, 1, x.shape[3]) + x,
    "range": lambda x: torch.arange(0, x.shape[3], 2),
    "meshgrid": lambda x: torch.stack(
        torch.meshgrid(torch.arange(x.shape[2]), torch.arange(x.shape[3]), indexing="ij")
    ),
    "grid": lambda x: functional.grid_sample(
        x, functional.affine_grid(torch.eye(2, 3)[None].repeat(x.shape[0], 1, 1), x.shape,
                                  align_corners=False), align_corners=False
    ),
    "unfold": lambda x: functional.fold(
        functional.unfold(x, 2, stride=2), (x.shape[2], x.shape[3]), 2, stride=2
    ),
    "unsqueezed": lambda x: x.unsqueeze(1).expand(-1, 2, -1, -1, -1).flatten(0, 1),
    "topk": lambda x: torch.topk(x.flatten(1), x.shape[2])[0],
    "roll": lambda x: torch.roll(x, (x.shape[2] // 2, 1), (2, 3)),
    "tile": lambda x: torch.tile(x[:, :1, :1], (1, 1, x.shape[2], 1)),
    "unbind": lambda x: torch.stack(torch.unbind(x, 1), 2),
    "unflatten": lambda x: x.unflatten(3, (2, x.shape[3] // 2)),
    "index": lambda x: x[:, torch.arange(x.shape[1] - 1, -1, -1)],
    "gather": lambda x: torch.gather(
        x, 3, torch.zeros(x.shape[0], x.shape[1], x.shape[2], 1, dtype=torch.int64)
    ),
    "masked": lambda x: x.masked_fill(torch.ones(x.shape[2], x.shape[3]).triu(1).bool(), 0),
    "matmul": lambda x: x.transpose(2, 3) @ x,
    "normed": lambda x: functional.normalize(x.flatten(2), dim=1),
    "cumulative": lambda x: torch.cumsum(x, 3) / torch.arange(1, x.shape[3] + 1),
    "unfolded": lambda x: x.unfold(3, 2, 2).sum(-1),
}  # fmt: skip


# At level 0 pnnx leaves operators that write into their operands, and gives several weights one
# name.
@specs(dict.fromkeys(FUNCTIONS, ()), tolerance=1e-4, levels=(1, 2))
def of_images(draw: Draw, name: str):
    def image():
        return draw.normal(
            draw.integer(1, 2), 4, 2 * draw.integer(2, 4), 2 * draw.integer(2, 4)
        )

    return Case(FUNCTIONS[name], image(), other=[image()])


LAYERS = {
    "conv": lambda: nn.Conv2d(4, 3, 3, padding=1, stride=2),
    "transposed": lambda: nn.ConvTranspose2d(4, 3, 2, stride=2),
    "norm": lambda: nn.Sequential(nn.BatchNorm2d(4), nn.InstanceNorm2d(4), nn.GroupNorm(2, 4)),
    "pool": lambda: nn.Sequential(nn.MaxPool2d(2), nn.AvgPool2d(3, 1, 1)),
    "adaptive": lambda: nn.Sequential(nn.AdaptiveAvgPool2d((2, 3)), nn.AdaptiveMaxPool2d(1)),
    "upsample": lambda: nn.Upsample(scale_factor=2, mode="nearest"),
    "pad": lambda: nn.Sequential(nn.ReflectionPad2d(1), nn.ZeroPad2d((1, 0, 2, 1))),
    "head": lambda: nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3)),
    "pixels": lambda: nn.Sequential(nn.PixelShuffle(2), nn.PixelUnshuffle(2)),
    "softmax": lambda: nn.Sequential(nn.Softmax(1), nn.PReLU(4)),
}


@specs(dict.fromkeys(LAYERS, ()), tolerance=1e-4)
def of_layers(draw: Draw, name: str):
    def image():
        return draw.normal(draw.integer(1, 2), 4, *draw.shape(2, 4, 9))

    return Case(LAYERS[name](), image(), other=[image()])


class First(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)[0]


class SelfAttention(First):
    def forward(self, x):
        return self.inner(x, x, x, need_weights=False)[0]


class Transposed(First):
    def forward(self, x):
        return self.inner(x.transpose(1, 2)).transpose(1, 2)


class Embedded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.places = nn.Embedding(16, 4)

    def forward(self, x):
        return x + self.places(torch.arange(x.shape[1]))


SEQUENCES = {
    "linear": lambda: nn.Linear(4, 3),
    "layer_norm": lambda: nn.LayerNorm(4),
    "lstm": lambda: First(nn.LSTM(4, 3, batch_first=True, bidirectional=True)),
    "gru": lambda: First(nn.GRU(4, 3)),
    "rnn": lambda: First(nn.RNN(4, 3)),
    "attention": lambda: SelfAttention(nn.MultiheadAttention(4, 2, batch_first=True)),
    "encoder": lambda: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True),
    "embedding": Embedded,
    "conv": lambda: Transposed(nn.Conv1d(4, 5, 3, padding=1)),
}


@specs(dict.fromkeys(SEQUENCES, ()), tolerance=2e-4, levels=(1, 2))
def of_sequences(draw: Draw, name: str):
    def sequence():
        return draw.normal(draw.integer(1, 3), draw.integer(2, 9), 4)

    return Case(SEQUENCES[name](), sequence(), other=[sequence()])
