"""The files of a soak: models, inputs, layers and invalid files."""

from __future__ import annotations

import zipfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from ncnn_files import F16, f32, tagged
from ncnn_files import write_pair as write_ncnn_pair

from engine.conversion.executable import find_pnnx
from engine.errors import ConversionError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DUMPS", "Files", "make_files", "write_branches", "write_ncnn", "write_pair"]

_ONNX: Final = Path(__file__).parents[1] / "engine" / "conversion" / "data" / "small.onnx"
IMAGE: Final = "(1,3,8,8)f32"
_CONVOLUTION: Final = (
    "nn.Conv2d conv 1 1 0 1 bias=True dilation=(1,1) groups=1 in_channels=3 kernel_size=(3,3) "
    "out_channels=4 padding=({0},{0}) padding_mode=zeros stride=(1,1) @bias=(4)f32 "
    f"@weight=(4,3,3,3)f32 $input=0 #0={IMAGE} #1=(1,4,8,8)f32"
)
DUMPS: Final = tuple(f"dump_{number}" for number in range(5))
LAYERS: Final = '''
from engine.layers import register


@register("soak.Own", replace=True)
def own(x):
    """Add one."""
    return x + 1
'''


@dataclass(frozen=True)
class Files:
    """Paths of all files.

    Attributes
    ----------
    folder : Path
    models : list of Path
        Valid ``.param`` files of PNNX and of ncnn, and files to convert if pnnx is there.
    bad : list of Path
        Invalid files.
    arrays : list of Path
        ``.npy`` and ``.npz`` files; some of them fit some inputs.
    references : list of Path
        What can be compared with, besides models; some of it is invalid or not there yet.
    layers, bad_layers : Path
    """

    folder: Path
    models: list[Path] = field(default_factory=list)
    bad: list[Path] = field(default_factory=list)
    arrays: list[Path] = field(default_factory=list)
    references: list[Path] = field(default_factory=list)
    layers: Path = Path()
    bad_layers: Path = Path()


def write_pair(
    folder: Path, name: str, lines: tuple[str, ...], weights: Mapping[str, np.ndarray]
) -> Path:
    """Write a pair; return the path of the ``.param``."""
    operands = {
        operand
        for line in lines
        for operand in line.split()[4 : 4 + sum(map(int, line.split()[2:4]))]
    }
    param = folder / f"{name}.pnnx.param"
    text = "\n".join(["7767517", f"{len(lines)} {len(operands)}", *lines])
    param.write_text(text + "\n", encoding="utf-8")
    with zipfile.ZipFile(folder / f"{name}.pnnx.bin", "w") as archive:
        for entry, array in weights.items():
            archive.writestr(entry, np.ascontiguousarray(array).tobytes())
    return param


def write_branches(folder: Path, rng: np.random.Generator, name: str = "branches") -> Path:
    """Write a small network for images with a skip and new random weights."""
    weights = {
        "conv.bias": rng.normal(size=4).astype(np.float32),
        "conv.weight": rng.normal(size=(4, 3, 3, 3)).astype(np.float32),
    }
    lines = (
        f"pnnx.Input in 0 1 0 #0={IMAGE}",
        _CONVOLUTION.format(1),
        "nn.ReLU relu 1 1 1 2 #1=(1,4,8,8)f32 #2=(1,4,8,8)f32",
        "nn.SiLU silu 1 1 1 3 #1=(1,4,8,8)f32 #3=(1,4,8,8)f32",
        "pnnx.Expression sum 2 1 2 3 4 expr=add(@0,mul(@1,2)) #4=(1,4,8,8)f32",
        "torch.flatten flat 1 1 4 5 end_dim=-1 start_dim=1 #5=(1,256)f32",
        "F.softmax scores 1 1 5 6 dim=1 #6=(1,256)f32",
        "pnnx.Output out 1 0 6",
    )
    return write_pair(folder, name, lines, weights)


def write_large(folder: Path, rng: np.random.Generator) -> Path:
    """Write a network of large operands, whose statistics are measured on other threads.

    A picture of 48 channels becomes tokens, then heads of an attention. So the number and the
    meaning of channels change from operand to operand.
    """
    weights = {
        "widen.bias": rng.normal(size=48).astype(np.float32),
        "widen.weight": rng.normal(size=(48, 3, 1, 1)).astype(np.float32),
        "grow.bias": rng.normal(size=96).astype(np.float32),
        "grow.weight": rng.normal(size=(96, 48)).astype(np.float32),
    }
    lines = (
        f"pnnx.Input in 0 1 0 #0={IMAGE}",
        "nn.Upsample up 1 1 0 1 mode=nearest size=(64,64) #1=(1,3,64,64)f32",
        (
            "nn.Conv2d widen 1 1 1 2 bias=True dilation=(1,1) groups=1 in_channels=3 "
            "kernel_size=(1,1) out_channels=48 padding=(0,0) padding_mode=zeros stride=(1,1) "
            "@bias=(48)f32 @weight=(48,3,1,1)f32 $input=1 #2=(1,48,64,64)f32"
        ),
        "torch.flatten flat 1 1 2 3 end_dim=-1 start_dim=2 #3=(1,48,4096)f32",
        "torch.transpose tokens 1 1 3 4 dim0=1 dim1=2 $input=3 #4=(1,4096,48)f32",
        (
            "nn.Linear grow 1 1 4 5 bias=True in_features=48 out_features=96 @bias=(96)f32 "
            "@weight=(96,48)f32 $input=4 #5=(1,4096,96)f32"
        ),
        "Tensor.reshape split 1 1 5 6 shape=(1,4096,6,16) $input=5 #6=(1,4096,6,16)f32",
        "Tensor.permute heads 1 1 6 7 dims=(0,2,1,3) $input=6 #7=(1,6,4096,16)f32",
        "F.softmax scores 1 1 7 8 dim=-1 $input=7 #8=(1,6,4096,16)f32",
        "pnnx.Output out 1 0 8",
    )
    return write_pair(folder, "large", lines, weights)


def write_ncnn(folder: Path, rng: np.random.Generator, name: str = "deployed") -> Path:
    """Write the same kind of network as an ncnn pair, with new random weights."""
    lines = [
        "Input in0 0 1 in0 0=8 1=8 2=3",
        "Convolution conv 1 1 in0 1 0=4 1=3 4=1 5=1 6=108",
        "Split split 1 2 1 2 3",
        "ReLU relu 1 1 2 4",
        "Swish silu 1 1 3 5",
        "BinaryOp sum 2 1 4 5 6 0=0",
        "Pooling pool 1 1 6 7 0=0 1=2 2=2",
        "InnerProduct fc 1 1 7 8 0=5 1=1 2=320",
        "Softmax scores 1 1 8 out0 0=0 1=1",
    ]
    weights = b"".join(
        [
            tagged(rng.normal(size=108).astype(np.float16), F16), f32(rng.normal(size=4)),
            tagged(rng.normal(size=320).astype(np.float32)), f32(rng.normal(size=5)),
        ]
    )  # fmt: skip
    return write_ncnn_pair(folder, lines, weights, f"{name}.ncnn")


def make_files(folder: Path, samples: Path, rng: np.random.Generator) -> Files:
    """Write all files into an empty folder."""
    files = Files(folder)
    models = files.models
    models.append(write_branches(folder, rng))
    failing = (
        f"pnnx.Input in 0 1 0 #0={IMAGE}",
        _CONVOLUTION.format(0),
        "pnnx.Expression sum 2 1 1 0 2 expr=add(@0,@1)",
        "nn.ReLU tail 1 1 2 3",
        "pnnx.Output out 1 0 3",
    )
    weights = {
        "conv.bias": np.zeros(4, np.float32),
        "conv.weight": np.ones((4, 3, 3, 3), np.float32),
    }
    models.append(write_pair(folder, "failing", failing, weights))
    unknown = (
        f"pnnx.Input in 0 1 0 #0={IMAGE}",
        "soak.Own own 1 1 0 1 #1=(1,3,8,8)f32",
        "nn.ReLU tail 1 1 1 2 #2=(1,3,8,8)f32",
        "nn.Sigmoid side 1 1 0 3 #3=(1,3,8,8)f32",
        "pnnx.Output out 2 0 2 3",
    )
    models.append(write_pair(folder, "unknown", unknown, {}))
    random = (
        "pnnx.Input in 0 1 0 #0=(4,5)f32",
        "F.dropout thin 1 1 0 1 p=0.500000 training=True #1=(4,5)f32",
        "torch.log logs 1 1 1 2 #2=(4,5)f32",
        "pnnx.Expression spoiled 1 1 2 3 expr=sub(@0,@0) #3=(4,5)f32",
        "pnnx.Output out 1 0 3",
    )
    models.append(write_pair(folder, "random", random, {}))
    open_sizes = (
        "pnnx.Input a 0 1 in0 #in0=(1,%h,?)f32",
        "pnnx.Input b 0 1 in1 #in1=(%h)f32",
        "nn.ReLU relu 1 1 in0 x #x=(1,%h,?)f32",
        "pnnx.Output out 2 0 x in1",
    )
    models.append(write_pair(folder, "sizes", open_sizes, {}))
    one = ("pnnx.Input in 0 1 0 #0=(7)f32", "pnnx.Output out 1 0 0")
    models.append(write_pair(folder, "one", one, {}))
    chain = [f"nn.ReLU r{i} 1 1 {i} {i + 1} #{i + 1}=(2,2)f32" for i in range(300)]
    long = ("pnnx.Input in 0 1 0 #0=(2,2)f32", *chain, "pnnx.Output out 1 0 300")
    models.append(write_pair(folder, "long", long, {}))
    no_inputs = ("soak.Missing odd 0 1 x #x=(3)f32", "pnnx.Output out 1 0 x")
    models.append(write_pair(folder, "no_inputs", no_inputs, {}))
    models.append(write_large(folder, rng))
    models.append(write_ncnn(folder, rng))
    models.extend(sorted(samples.glob("*/*.pnnx.param")))
    with suppress(ConversionError):  # pnnx is not there
        find_pnnx(_ONNX)
        models.append(_ONNX)
    _make_others(files, rng)
    return files


def _make_others(files: Files, rng: np.random.Generator) -> None:
    folder = files.folder
    for name, text in {
        "empty.param": "",
        "words.param": "no model at all",
        "cut.param": "7767517\n3 2\npnnx.Input in 0 1 0\n",
    }.items():
        (folder / name).write_text(text)
        files.bad.append(folder / name)
    files.bad.append(folder / "missing.param")
    shapes = {"image": (1, 3, 8, 8), "small": (4, 5), "three": (3,), "wide": (1, 256)}
    arrays = {name: rng.normal(size=s).astype(np.float32) for name, s in shapes.items()}
    arrays["nan"] = np.full((1, 3, 8, 8), np.nan, np.float32)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
        files.arrays.append(folder / f"{name}.npy")
    np.savez(
        folder / "both.npz", in0=np.ones((1, 2, 3), np.float32), in1=np.ones(2, np.float32)
    )
    (folder / "broken.npy").write_bytes(b"\x93NUMPY\x01\x00")
    files.arrays.extend([folder / "both.npz", folder / "broken.npy", folder / "gone.npy"])
    files.references.extend([*(folder / name for name in DUMPS), folder, *files.arrays])
    layers, bad = folder / "own.py", folder / "bad.py"
    layers.write_text(LAYERS)
    bad.write_text("def wrong(:\n")
    object.__setattr__(files, "layers", layers)
    object.__setattr__(files, "bad_layers", bad)
