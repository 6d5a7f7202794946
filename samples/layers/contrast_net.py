"""A model with operators that nothing but its author knows.

usage: python samples/layers/contrast_net.py

Needs the ``samples`` extra (PyTorch, pnnx). Exports ``contrast.pnnx.param`` and ``.bin`` with
both modules kept as operators (pnnx's ``moduleop``), and writes to ``golden.npz`` what
PyTorch computes for ``../unet/scene_1.png``.
"""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.nn import functional

FOLDER = Path(__file__).resolve().parent
MODULES = ("contrast_net.LocalContrast", "contrast_net.Squash")


class LocalContrast(nn.Module):
    """Each value less the mean around it, divided by the spread around it."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.linspace(0.5, 1.0, channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean = self.around(x)
        spread = torch.sqrt(self.around((x - mean) ** 2) + 1e-3)
        return self.gain.reshape(-1, 1, 1) * (x - mean) / spread

    def around(self, x: torch.Tensor) -> torch.Tensor:
        return functional.avg_pool2d(x, 9, 1, 4, count_include_pad=False)


class Squash(nn.Module):
    """To between -1 and 1, steep about 0."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * x / (1 + torch.abs(2 * x))


class ContrastNet(nn.Module):
    """Contrast, squashed, and the edges in both directions."""

    def __init__(self) -> None:
        super().__init__()
        self.contrast = LocalContrast(3)
        self.squash = Squash()
        self.edges = nn.Conv2d(3, 2, 3, padding=1, bias=False)
        sobel = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]])
        with torch.no_grad():
            self.edges.weight.copy_(torch.stack([sobel, sobel.T])[:, None] / 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.edges(self.squash(self.contrast(x))))


def main() -> None:
    # pnnx names the operators by the module that Python knows them in.
    import contrast_net

    net = contrast_net.ContrastNet().eval()
    pixels = np.asarray(Image.open(FOLDER.parent / "unet" / "scene_1.png").convert("RGB"))
    picture = torch.from_numpy(pixels.transpose(2, 0, 1)[None] * np.float32(1 / 255))
    with torch.no_grad(), tempfile.TemporaryDirectory() as scratch:
        contrast = net.contrast(picture)
        squashed = net.squash(contrast)
        torch.jit.trace(net, picture).save(str(Path(scratch, "contrast.pt")))
        pnnx = shutil.which("pnnx", path=sysconfig.get_path("scripts")) or "pnnx"
        shape = ",".join(map(str, picture.shape))
        subprocess.run(
            [pnnx, "contrast.pt", f"inputshape=[{shape}]", f"moduleop={','.join(MODULES)}",
             "fp16=0"],
            cwd=scratch, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for suffix in ("param", "bin"):
            shutil.copyfile(Path(scratch, f"contrast.pnnx.{suffix}"),
                            FOLDER / f"contrast.pnnx.{suffix}")  # fmt: skip
        np.savez_compressed(
            FOLDER / "golden.npz", picture=picture, contrast=contrast, squashed=squashed,
            output=net(picture),
        )  # fmt: skip


if __name__ == "__main__":
    main()
