"""Networks to plant faults into: ``python -m faults.networks FOLDER [NAME ...]`` exports them.

Small networks of the kinds that people deploy. Weights are random, from a seed. The folder gets
the files of ``python -m benchmarks.networks``, so both can share it. Needs PyTorch and pnnx.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pnnx
import torch
import torch.nn.functional as F  # noqa: N812 - the field's own name
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["NETWORKS", "export"]

_LETTERS = {"float32": "f32", "int64": "i64"}


class _Attention(nn.Module):
    """Attention with separate projections, written out."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)

    def _split(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        return x.reshape(batch, length, self.heads, width // self.heads).permute(0, 2, 1, 3)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, v = (self._split(each(x)) for each in (self.query, self.key, self.value))
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores + mask
        mixed = F.softmax(scores, dim=-1) @ v
        return self.out(mixed.permute(0, 2, 1, 3).reshape(x.shape))


class _EncoderBlock(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention = _Attention(width, heads)
        self.norm1, self.norm2 = (nn.LayerNorm(width, eps=1e-12) for _ in range(2))
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.norm1(x + self.attention(x, mask))
        return self.norm2(x + self.narrow(F.gelu(self.wide(x))))


class Bert(nn.Module):
    """An encoder of token ids, with a mask and a pooled output."""

    def __init__(self, width: int = 48, heads: int = 4, length: int = 20) -> None:
        super().__init__()
        self.words, self.kinds = nn.Embedding(200, width), nn.Embedding(2, width)
        self.places = nn.Parameter(torch.randn(1, length, width))
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.blocks = nn.ModuleList(_EncoderBlock(width, heads) for _ in range(3))
        self.pool, self.head = nn.Linear(width, width), nn.Linear(width, 5)

    def forward(self, ids: Tensor, kinds: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        x = self.norm(self.words(ids) + self.kinds(kinds) + self.places)
        hidden = (1.0 - mask)[:, None, None, :] * -100.0
        for block in self.blocks:
            x = block(x, hidden)
        return x, self.head(torch.tanh(self.pool(x[:, 0])))


class _Conv(nn.Sequential):
    def __init__(self, taken: int, made: int, kernel: int = 1, stride: int = 1) -> None:
        super().__init__(
            nn.Conv2d(taken, made, kernel, stride, (kernel - 1) // 2, bias=False),
            nn.BatchNorm2d(made),
            nn.SiLU(),
        )


class _Csp(nn.Module):
    """A cross-stage partial block."""

    def __init__(self, taken: int, made: int, *, adds: bool) -> None:
        super().__init__()
        half = made // 2
        self.one, self.two = _Conv(taken, half), _Conv(taken, half)
        self.inner1, self.inner2 = _Conv(half, half), _Conv(half, half, 3)
        self.last, self.adds = _Conv(made, made), adds

    def forward(self, x: Tensor) -> Tensor:
        one = self.one(x)
        inner = self.inner2(self.inner1(one))
        one = one + inner if self.adds else inner
        return self.last(torch.cat([one, self.two(x)], 1))


class Yolo(nn.Module):
    """A detector: CSP blocks, spatial pyramid pooling, two scales, heads on a grid."""

    def __init__(self, width: int = 12, classes: int = 3) -> None:
        super().__init__()
        w = width
        self.stem, self.down1 = _Conv(3, w, 6, 2), _Conv(w, 2 * w, 3, 2)
        self.csp1, self.down2 = _Csp(2 * w, 2 * w, adds=True), _Conv(2 * w, 4 * w, 3, 2)
        self.csp2, self.narrow = _Csp(4 * w, 4 * w, adds=True), _Conv(4 * w, 2 * w)
        self.pool, self.merge = nn.MaxPool2d(5, 1, 2), _Conv(8 * w, 4 * w)
        self.side, self.csp3 = _Conv(4 * w, 2 * w), _Csp(4 * w, 2 * w, adds=False)
        self.small = nn.Conv2d(2 * w, 3 * (5 + classes), 1)
        self.large = nn.Conv2d(4 * w, 3 * (5 + classes), 1)

    def forward(self, x: Tensor) -> Tensor:
        fine = self.csp1(self.down1(self.stem(x)))
        coarse = self.narrow(self.csp2(self.down2(fine)))
        pooled = [coarse]
        for _ in range(3):
            pooled.append(self.pool(pooled[-1]))
        coarse = self.merge(torch.cat(pooled, 1))
        up = F.interpolate(self.side(coarse), scale_factor=2.0, mode="nearest")
        fine = self.csp3(torch.cat([up, fine], 1))
        return torch.cat(
            [self._decode(self.small(fine), 4), self._decode(self.large(coarse), 8)], 1
        )

    @staticmethod
    def _decode(x: Tensor, stride: int) -> Tensor:
        batch, channels, height, width = x.shape
        x = x.reshape(batch, 3, channels // 3, height, width).permute(0, 1, 3, 4, 2).sigmoid()
        rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        grid = torch.stack([columns, rows], -1).float()
        centre = (x[..., :2] * 2 - 0.5 + grid) * stride
        size = (x[..., 2:4] * 2) ** 2 * (3.0 * stride)
        return torch.cat([centre, size, x[..., 4:]], -1).reshape(batch, -1, channels // 3)


class _Residual(nn.Module):
    """Two convolutions behind group norms, perhaps with a time embedded between."""

    def __init__(self, taken: int, made: int, time: int = 0) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, taken), nn.GroupNorm(4, made)
        self.conv1 = nn.Conv2d(taken, made, 3, padding=1)
        self.conv2 = nn.Conv2d(made, made, 3, padding=1)
        self.side = nn.Conv2d(taken, made, 1)
        self.time = nn.Linear(time, made) if time else None

    def forward(self, x: Tensor, time: Tensor | None = None) -> Tensor:
        inner = self.conv1(F.silu(self.norm1(x)))
        if self.time is not None and time is not None:
            inner = inner + self.time(F.silu(time))[:, :, None, None]
        return self.conv2(F.silu(self.norm2(inner))) + self.side(x)


class _ImageAttention(nn.Module):
    """Attention among the pixels of an image."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.attention = nn.GroupNorm(4, width), _Attention(width, 2)

    def forward(self, x: Tensor) -> Tensor:
        batch, width, rows, columns = x.shape
        flat = self.norm(x).flatten(2).permute(0, 2, 1)
        return x + self.attention(flat).permute(0, 2, 1).reshape(batch, width, rows, columns)


class AttentionUnet(nn.Module):
    """A U-Net with transposed convolutions, group norms, and attention in the middle."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        w = width
        self.stem = nn.Conv2d(3, w, 3, padding=1)
        self.fine, self.coarse = _Residual(w, w), _Residual(w, 2 * w)
        self.middle, self.attention = _Residual(2 * w, 4 * w), _ImageAttention(4 * w)
        self.dilated = nn.Conv2d(4 * w, 4 * w, 3, padding=2, dilation=2, groups=4)
        self.up1 = nn.ConvTranspose2d(4 * w, 2 * w, 4, 2, 1)
        self.up2 = nn.ConvTranspose2d(2 * w, w, 2, 2)
        self.merge1, self.merge2 = _Residual(4 * w, 2 * w), _Residual(2 * w, w)
        self.pool = nn.AvgPool2d(3, 2, 1, ceil_mode=False, count_include_pad=False)
        self.head, self.mask = nn.Conv2d(w, 2, 1), nn.Conv2d(4 * w, 1, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        fine = self.fine(self.stem(x))
        coarse = self.coarse(self.pool(fine))
        middle = self.attention(self.middle(F.max_pool2d(coarse, 2)))
        middle = middle + F.leaky_relu(self.dilated(middle), 0.1)
        x = self.merge1(torch.cat([self.up1(middle), coarse], 1))
        x = self.merge2(torch.cat([self.up2(x), fine], 1))
        mask = F.interpolate(
            self.mask(middle), size=(32, 32), mode="bilinear", align_corners=False
        )
        return self.head(x), mask.sigmoid()


class Recurrent(nn.Module):
    """Frames of sound: a convolution, an LSTM in both directions, a GRU, a normalised head."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.conv = nn.Conv1d(20, width, 5, stride=2, padding=2)
        self.norm = nn.BatchNorm1d(width)
        self.lstm = nn.LSTM(width, width, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(2 * width, width, num_layers=2, batch_first=True)
        self.layer_norm, self.head = nn.LayerNorm(width), nn.Linear(width, 11)
        self.gate = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.norm(self.conv(x))).permute(0, 2, 1)
        x, _ = self.lstm(x)
        x, _ = self.gru(torch.tanh(x))
        x = self.layer_norm(x * torch.sigmoid(self.gate(x)))
        return F.log_softmax(self.head(x), dim=-1)


class Diffusion(nn.Module):
    """A denoiser: noise, a time embedded by sines, and a context for cross attention."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        w = width
        self.register_buffer("rates", torch.exp(-torch.arange(w / 2) * 4.0 / w))
        self.time1, self.time2 = nn.Linear(w, 4 * w), nn.Linear(4 * w, 4 * w)
        self.stem = nn.Conv2d(4, w, 3, padding=1)
        self.fine = _Residual(w, w, 4 * w)
        self.down = nn.Conv2d(w, 2 * w, 3, stride=2, padding=1)
        self.coarse, self.attention = _Residual(2 * w, 2 * w, 4 * w), _ImageAttention(2 * w)
        self.query, self.keys = nn.Linear(2 * w, 2 * w), nn.Linear(12, 4 * w)
        self.context_norm = nn.LayerNorm(2 * w)
        self.up = nn.Conv2d(2 * w, w, 3, padding=1)
        self.merge = _Residual(2 * w, w, 4 * w)
        self.norm, self.head = nn.GroupNorm(4, w), nn.Conv2d(w, 4, 3, padding=1)

    def forward(self, x: Tensor, time: Tensor, context: Tensor) -> Tensor:
        angles = time[:, None] * self.rates
        time = self.time2(F.silu(self.time1(torch.cat([angles.sin(), angles.cos()], 1))))
        fine = self.fine(self.stem(x), time)
        coarse = self.attention(self.coarse(self.down(fine), time))
        batch, width, rows, columns = coarse.shape
        flat = coarse.flatten(2).permute(0, 2, 1)
        keys, values = self.keys(context).chunk(2, dim=-1)
        scores = self.query(self.context_norm(flat)) @ keys.transpose(1, 2) * width**-0.5
        flat = flat + F.softmax(scores, dim=-1) @ values
        coarse = flat.permute(0, 2, 1).reshape(batch, width, rows, columns)
        up = self.up(
            F.interpolate(coarse, scale_factor=2.0, mode="bilinear", align_corners=True)
        )
        x = self.merge(torch.cat([up, fine], 1), time)
        return self.head(F.silu(self.norm(x)))


def _image(*shape: int) -> Callable[[], tuple[Tensor, ...]]:
    return lambda: (torch.rand(*shape),)


def _tokens() -> tuple[Tensor, ...]:
    mask = torch.ones(1, 20)
    mask[:, 16:] = 0
    return torch.randint(0, 200, (1, 20)), torch.randint(0, 2, (1, 20)), mask


def _noise() -> tuple[Tensor, ...]:
    return torch.randn(1, 4, 16, 16), torch.tensor([7.0]), torch.randn(1, 6, 12)


NETWORKS: dict[str, tuple[type[nn.Module], Callable[[], tuple[Tensor, ...]]]] = {
    "bert": (Bert, _tokens),
    "yolo": (Yolo, _image(1, 3, 64, 64)),
    "attention_unet": (AttentionUnet, _image(1, 3, 32, 32)),
    "recurrent": (Recurrent, lambda: (torch.randn(1, 20, 60),)),
    "diffusion": (Diffusion, _noise),
}
"""By name, the network and a function that draws its inputs."""


def export(name: str, folder: Path) -> None:
    """Write all files of a network: TorchScript, ONNX, both pairs, and inputs."""
    make, draw = NETWORKS[name]
    torch.manual_seed(0)
    network, inputs = make().eval(), draw()
    _draw_norms(network)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tracing warns of sizes that it takes for constants
        traced = torch.jit.trace(network, inputs)
        traced.save(str(folder / f"{name}.pt"))
        torch.onnx.export(
            network, inputs, str(folder / f"{name}.onnx"), dynamo=False, opset_version=17
        )
    arrays = [each.numpy() for each in inputs]
    np.savez(folder / f"{name}.inputs.npz", **{f"in{i}": a for i, a in enumerate(arrays)})
    shapes = ",".join(f"{list(a.shape)}{_LETTERS[a.dtype.name]}" for a in arrays)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        traced.save(f"{scratch}/{name}.pt")
        command = [pnnx.EXEC_PATH, f"{name}.pt", f"inputshape={shapes}".replace(" ", "")]
        subprocess.run([*command, "fp16=0"], cwd=scratch, capture_output=True, check=True)
        for file in ("pnnx.param", "pnnx.bin", "ncnn.param", "ncnn.bin"):
            Path(scratch, f"{name}.{file}").replace(folder / f"{name}.{file}")


def _draw_norms(network: nn.Module) -> None:
    """Draw weights and statistics of norms, which are all 0 and 1 at first."""
    for module in network.modules():
        if isinstance(module, (nn.LayerNorm, nn.GroupNorm, _BatchNorm)):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, std=0.2)
        if isinstance(module, _BatchNorm):
            nn.init.normal_(module.running_mean, std=0.2)
            nn.init.uniform_(module.running_var, 0.1, 0.5)


def main(arguments: Sequence[str] | None = None) -> int:
    """Export networks."""
    parser = argparse.ArgumentParser(prog="python -m faults.networks", description=__doc__)
    parser.add_argument("folder", metavar="FOLDER", type=Path)
    parser.add_argument("names", metavar="NAME", nargs="*")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.names or NETWORKS:
        export(name, options.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
