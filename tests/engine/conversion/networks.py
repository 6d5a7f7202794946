"""Two networks of the kinds that users bring: a text encoder, and a detector."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Detector", "TextEncoder"]


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
