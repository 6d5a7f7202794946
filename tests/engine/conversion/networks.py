"""Networks of the kinds that users bring: a text encoder, and two detectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["DecodingDetector", "Detector", "TextEncoder"]


class TextEncoder(nn.Module):
    """As in BERT: embeddings of words and places, encoder layers, a pooled output."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(40, 16), nn.Embedding(8, 16)
        self.norm = nn.LayerNorm(16)
        self.query, self.key, self.value = (nn.Linear(16, 16) for _ in range(3))
        self.mixed, self.up, self.down = nn.Linear(16, 16), nn.Linear(16, 32), nn.Linear(32, 16)
        self.norms = nn.ModuleList(nn.LayerNorm(16) for _ in range(2))
        self.pooler = nn.Linear(16, 5)
        self.register_buffer("order", torch.arange(6)[None])

    def forward(self, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        x = self.norm(self.words(ids) + self.places(self.order))
        q, k, v = (
            layer(x).view(1, 6, 2, 8).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        hidden = (1.0 - mask)[:, None, None, :] * -10000.0
        weights = torch.softmax(q @ k.transpose(-1, -2) / 8**0.5 + hidden, dim=-1)
        mixed = (weights @ v).transpose(1, 2).reshape(1, 6, 16)
        x = self.norms[0](x + self.mixed(mixed))
        x = self.norms[1](x + self.down(nn.functional.gelu(self.up(x))))
        return x, torch.tanh(self.pooler(x[:, 0]))


class _Block(nn.Sequential):
    def __init__(self, taken: int, given: int, stride: int = 1) -> None:
        super().__init__(
            nn.Conv2d(taken, given, 3, stride, 1, bias=False), nn.BatchNorm2d(given), nn.SiLU()
        )


class Detector(nn.Module):
    """As in YOLO: a pyramid, features joined after upsampling, and a head for each size."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = _Block(3, 8, 2)
        self.middle, self.small = _Block(8, 16, 2), _Block(16, 32, 2)
        self.pool = nn.MaxPool2d(5, 1, 2)
        self.lateral, self.joined = _Block(32, 16), _Block(32, 16)
        self.up = nn.Upsample(scale_factor=2.0, mode="nearest")
        self.heads = nn.ModuleList(nn.Conv2d(c, 18, 1) for c in (16, 32))

    def forward(self, image: Tensor) -> Tensor:
        middle = self.middle(self.stem(image))
        small = self.small(middle)
        small = small + self.pool(small)
        joined = self.joined(torch.cat([self.up(self.lateral(small)), middle], 1))
        found = [
            head(x).view(1, 3, 6, -1).permute(0, 1, 3, 2).reshape(1, -1, 6)
            for head, x in zip(self.heads, (joined, small), strict=True)
        ]
        return torch.cat([f.sigmoid() for f in found], 1)


class _Split(nn.Module):
    """Half of the channels goes on, and through two convolutions; all are joined."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        half = channels // 2
        self.first, self.last = _Block(channels, channels), _Block(3 * half, channels)
        self.inner = nn.Sequential(_Block(half, half), _Block(half, half))

    def forward(self, x: Tensor) -> Tensor:
        one, other = self.first(x).chunk(2, 1)
        return self.last(torch.cat([one, other, other + self.inner(other)], 1))


class _Attention(nn.Module):
    """Of all places of a picture, with two heads, beside a depthwise convolution."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.mixed = nn.Conv2d(channels, 2 * channels, 1)
        self.places = nn.Conv2d(channels, channels, 3, padding=1, groups=channels)

    def forward(self, x: Tensor) -> Tensor:
        count, channels, height, width = x.shape
        size = channels // 4
        q, k, v = (
            self.mixed(x)
            .view(count, 2, 4 * size, height * width)
            .split([size, size, 2 * size], dim=2)
        )
        weights = ((q.transpose(-2, -1) @ k) * size**-0.5).softmax(-1)
        mixed = (v @ weights.transpose(-2, -1)).view(x.shape)
        return mixed + self.places(v.reshape(x.shape))


class DecodingDetector(nn.Module):
    """As in later YOLOs: attention, boxes from distributions of distances, and classes."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(_Block(3, 8, 2), _Block(8, 16, 2), _Split(16))
        self.small = nn.Sequential(_Block(16, 32, 2), _Attention(32))
        self.pool, self.up = nn.MaxPool2d(5, 1, 2), nn.Upsample(scale_factor=2.0)
        self.joined = _Block(16 + 64, 16)
        self.boxes = nn.ModuleList(nn.Conv2d(c, 32, 1) for c in (16, 64))
        self.classes = nn.ModuleList(nn.Conv2d(c, 5, 1) for c in (16, 64))

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        large = self.stem(image)
        small = self.small(large)
        small = torch.cat([small, self.pool(small)], 1)
        large = self.joined(torch.cat([self.up(small), large], 1))
        boxes, scores = [], []
        for stride, x, box, kind in zip(
            (4, 8), (large, small), self.boxes, self.classes, strict=True
        ):
            rows, columns = x.shape[2:]
            # Of float32: pnnx crashes on integers of such sizes in an ONNX file.
            places = [torch.arange(size, dtype=torch.float32) for size in (rows, columns)]
            down, right = torch.meshgrid(*places, indexing="ij")
            centre = torch.stack([right, down]).view(1, 2, -1) + 0.5
            shares = box(x).view(1, 4, 8, -1).softmax(2)
            distances = (shares * torch.arange(8.0).view(1, 1, 8, 1)).sum(2)
            before, after = distances.chunk(2, 1)
            corners = torch.cat([centre - before, centre + after], 1)
            boxes.append(corners * stride)
            scores.append(kind(x).sigmoid().flatten(2))
        best, _ = torch.cat(scores, 2).max(1)
        return torch.cat(boxes, 2), best
