"""The networks that are measured: ``python -m benchmarks.networks FOLDER [NAME ...]`` exports.

Weights are random, from a seed: how fast a network is does not depend on what it has learned.
For each NAME the folder then holds

=========================  ==============================================
NAME.pnnx.param/.bin       for Kuiper Studio
NAME.ncnn.param/.bin       for ncnn
NAME.onnx                  for ONNX Runtime
NAME.pt                    for PyTorch, as TorchScript
NAME.inputs.npz            the input ``in0``
NAME.expected.npz          what PyTorch computes of it, ``out0``
=========================  ==============================================

Needs PyTorch, torchvision and pnnx: the extra ``bench``.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import warnings
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from torch import Tensor, nn

__all__ = ["NETWORKS", "Network", "built", "export"]


class Network(NamedTuple):
    """A network by its name.

    Attributes
    ----------
    size : int
        Of its input: one image of three channels, square.
    convolutional : bool
        Whether convolutions are nearly all of its work.
    """

    size: int = 224
    convolutional: bool = True


NETWORKS: Final = {
    "resnet18": Network(),
    "mobilenet_v2": Network(),
    "squeezenet1_1": Network(),
    "unet": Network(size=256),
    "resnet50": Network(),
    "efficientnet_b0": Network(),
    "vit_b_32": Network(convolutional=False),
    "swin_t": Network(convolutional=False),
    "densenet121": Network(),
    "shufflenet_v2_x1_0": Network(),
}


def built(name: str) -> nn.Module:
    """Build a network in PyTorch, for inference; its weights are random.

    Raises
    ------
    ValueError
        If it is none of `NETWORKS`.
    """
    if name not in NETWORKS:
        raise ValueError(f"nothing here builds {name} in PyTorch")
    network = _unet() if name == "unet" else getattr(_torchvision_models(), name)()
    return network.eval()


def _torchvision_models() -> ModuleType:
    import torch

    try:
        import torchvision.models
    except RuntimeError:
        # Beside another build of PyTorch than its own it finds no compiled operators, asks
        # for these two all the same, and needs none of them for these networks.
        library = torch.library.Library("torchvision", "DEF")
        for operator in ("nms", "qnms"):
            library.define(f"{operator}(Tensor dets, Tensor scores, float limit) -> Tensor")
        import torchvision.models
    return torchvision.models


def _unet(width: int = 32, classes: int = 2) -> nn.Module:
    """Build a U-Net of four levels: the network of images to images that torchvision lacks."""
    import torch
    from torch import nn

    def block(channels: int, made: int) -> nn.Module:
        layers: list[nn.Module] = []
        for taken in (channels, made):
            layers += [nn.Conv2d(taken, made, 3, padding=1), nn.BatchNorm2d(made), nn.ReLU()]
        return nn.Sequential(*layers)

    class UNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            widths = [width << level for level in range(4)]
            steps = list(pairwise(widths))
            self.down = nn.ModuleList([block(3, width), *(block(a, b) for a, b in steps)])
            self.up = nn.ModuleList(
                nn.ConvTranspose2d(b, a, 2, stride=2) for a, b in reversed(steps)
            )
            self.merge = nn.ModuleList(block(b, a) for a, b in reversed(steps))
            self.head = nn.Conv2d(width, classes, 1)

        def forward(self, x: Tensor) -> Tensor:
            passed = [self.down[0](x)]
            for down in self.down[1:]:
                passed.append(down(nn.functional.max_pool2d(passed[-1], 2)))
            x = passed.pop()
            for up, merge in zip(self.up, self.merge, strict=True):
                x = merge(torch.cat([passed.pop(), up(x)], 1))
            return self.head(x)

    return UNet()


def export(name: str, folder: Path) -> None:
    """Write all files of a network.

    Raises
    ------
    ImportError
        If PyTorch, torchvision, onnx or pnnx is not installed.
    """
    import pnnx
    import torch

    size = NETWORKS[name].size
    torch.manual_seed(0)
    network, image = built(name), torch.rand(1, 3, size, size)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of tracing, which sizes it takes for constant
        _measure_norms(network, size)
        expected = network(image)
        traced = torch.jit.trace(network, image)
        traced.save(str(folder / f"{name}.pt"))
        # ONNX has no word for PyTorch's attention in one operator.
        torch.backends.mha.set_fastpath_enabled(False)
        torch.onnx.export(
            network, (image,), str(folder / f"{name}.onnx"), dynamo=False, opset_version=17
        )
        torch.backends.mha.set_fastpath_enabled(True)
    np.savez(folder / f"{name}.inputs.npz", in0=image.numpy())
    np.savez(folder / f"{name}.expected.npz", out0=expected.numpy())
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        traced.save(f"{scratch}/{name}.pt")
        shape = f"inputshape=[1,3,{size},{size}]"
        command = [pnnx.EXEC_PATH, f"{name}.pt", shape, "fp16=0"]
        subprocess.run(command, cwd=scratch, capture_output=True, check=True)
        for kind in ("pnnx", "ncnn"):
            for suffix in ("param", "bin"):
                file = f"{name}.{kind}.{suffix}"
                Path(scratch, file).replace(folder / file)


def _measure_norms(network: nn.Module, size: int) -> None:
    """Give batch norms the statistics of noise, so that numbers neither vanish nor explode."""
    import torch
    from torch.nn.modules.batchnorm import _BatchNorm

    norms = [module for module in network.modules() if isinstance(module, _BatchNorm)]
    if not norms:
        return
    for norm in norms:
        norm.momentum = None  # the mean of all that it sees
        norm.train()
    network(torch.rand(4, 3, size, size))
    network.eval()


def main(arguments: Sequence[str] | None = None) -> None:
    """Export networks, those that the folder does not hold yet."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.networks", description=__doc__)
    parser.add_argument("folder", metavar="FOLDER", type=Path)
    parser.add_argument("names", metavar="NAME", nargs="*")
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(NETWORKS):
        parser.error(f"{', '.join(sorted(unknown))} is none of {', '.join(NETWORKS)}")
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.names or NETWORKS:
        if (options.folder / f"{name}.pnnx.param").exists():
            print(f"{name} is there already")
            continue
        print(f"{name} …", flush=True)
        export(name, options.folder)


if __name__ == "__main__":
    main()
