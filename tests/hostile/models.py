"""Makes the model of a seed."""

from __future__ import annotations

import random
import zipfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from hostile.any_operator import any_operator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

__all__ = ["ENDS", "Maker", "Model", "model_of", "write_model"]

Thing = TypeVar("Thing")

ENDS: Final = (
    0, 1, 2, 3, 4, 7, 8, 16, 31, 64, 1000, (1 << 15) - 1, 1 << 15, (1 << 15) + 1, 1 << 16,
    100_000, 1_000_000, 1 << 20, 1 << 24, (1 << 30) - 1, 1 << 30, (1 << 30) + 2, (1 << 31) - 8,
    (1 << 31) - 1, 1 << 31, (1 << 31) + 1, (1 << 32) - 1, 1 << 32, (1 << 32) + 1, 1 << 40,
    1 << 61, 1 << 62, (1 << 62) + 1, (1 << 63) - 1,
)  # fmt: skip
_BELOW: Final = (-1, -2, -7, -(1 << 31) - 1, -(1 << 31), -(1 << 62), -(1 << 63))
_SHAPES: Final = (
    (1, 4, 8, 8),
    (1, 4, 64, 64),
    (1, 4, 64, 64),
    (1, 32, 40, 40),
    (4, 64, 64),
    (4, 8, 8),
    (2, 3, 5),
    (1, 8, 8),
    (1, 16, 1700),
    (8, 8),
    (12,),
    (5000,),
    (1, 2, 3, 4, 5),
    (1, 8, 9, 9, 9),
    (1, 3, 1, 3000),
)
_FLOATS: Final = (
    "0.0", "1.0", "-1.0", "0.5", "1e-5", "1e-45", "1e30", "-1e30", "1e38", "1e300", "-1e308",
    "nan", "inf", "-inf", "65536.0", "2147483648.0",
)  # fmt: skip
_OF_A_NORM: Final = ("weight", "bias", "running_mean", "running_var")
_DTYPES: Final = (
    "torch.float", "torch.double", "torch.half", "torch.long", "torch.int", "torch.bool",
    "torch.uint8", "torch.complex64", "None",
)  # fmt: skip


@dataclass
class Model:
    """A model in the form of its file.

    Attributes
    ----------
    lines : list of str
        Operators, without the counts.
    weights : dict of str to ndarray
        By ``operator.attribute``.
    """

    lines: list[str] = field(default_factory=list)
    weights: dict[str, np.ndarray] = field(default_factory=dict)


def write_model(model: Model, folder: Path) -> Path:
    """Write the pair of files; return the path of the ``.param``."""
    names = {
        name
        for line in model.lines
        for words in [line.split()]
        for name in words[4 : 4 + int(words[2]) + int(words[3])]
    }
    text = "\n".join(["7767517", f"{len(model.lines)} {len(names)}", *model.lines, ""])
    path = folder / "m.pnnx.param"
    path.write_text(text, encoding="utf-8")
    with zipfile.ZipFile(folder / "m.pnnx.bin", "w") as archive:
        for name, array in model.weights.items():
            archive.writestr(name, np.ascontiguousarray(array).tobytes())
    return path


def model_of(seed: int) -> Model:
    """Make the model of a seed, always the same one."""
    return Maker(seed).make()


class Maker:
    """Makes one model, a line at a time."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._arrays = np.random.default_rng(seed)
        self._model = Model()
        self._operands: list[str] = []  # the next operator is likely to read the last one
        self._count = 0

    def make(self) -> Model:
        """Make the model."""
        shape = self._draw.choice(_SHAPES)
        # The first axis of an image without a batch is the channels.
        single = len(shape) == 3 and self._draw.random() < 0.5
        self._rank = min(max(len(shape) - (1 if single else 2), 1), 3)
        self._channels = shape[0] if single or len(shape) < 3 else shape[1]
        self._length = shape[-1]
        self._input(shape)
        if self._draw.random() < 0.2:
            self._input(shape)
        for _ in range(self._draw.choice((1, 1, 1, 2, 3, 6))):
            if self.chance(0.06):
                self._chain()
            elif self.chance(0.3):
                any_operator(self)
            else:
                self._draw.choice(_VECTORS if len(shape) == 1 else _OPERATORS)(self)
        for number, name in enumerate(self._operands[-2:]):
            self._model.lines.append(f"pnnx.Output out{number} 1 0 {name}")
        return self._model

    def _input(self, shape: tuple[int, ...]) -> None:
        name = f"x{len(self._operands)}"
        kind = self._draw.choice(("f32",) * 12 + ("i64", "i64", "f64", "bool", "u8"))
        sizes = ",".join(map(str, shape))
        self._model.lines.append(f"pnnx.Input in{name} 0 1 {name} #{name}=({sizes}){kind}")
        self._operands.append(name)

    # Numbers

    def number(self, *ordinary: int) -> int:
        """Return a number of a parameter: an ordinary one, or an extreme one."""
        if ordinary and self._draw.random() < 0.55:
            return self._draw.choice(ordinary)
        return self._draw.choice(_BELOW if self._draw.random() < 0.1 else ENDS)

    def numbers(self, count: int, *ordinary: int) -> str:
        """Format a list of numbers with this length, or rarely another one."""
        if self._draw.random() < 0.05:
            count = self._draw.choice((0, 1, count + 1))
        same = self.number(*ordinary)
        alike = self._draw.random() < 0.5
        parts = [same if alike else self.number(*ordinary) for _ in range(count)]
        return f"({','.join(map(str, parts))})"

    def real(self) -> str:
        return self._draw.choice(_FLOATS)

    def choice(self, *words: str) -> str:
        return self._draw.choice(words)

    def one_of(self, things: Sequence[Thing]) -> Thing:
        return self._draw.choice(things)

    def chance(self, share: float) -> bool:
        return self._draw.random() < share

    @property
    def rank(self) -> int:
        """Return the number of spatial axes of the first operand, mostly."""
        return self._rank if self._draw.random() < 0.95 else self._draw.choice((1, 2, 3))

    @property
    def axis(self) -> int:
        return (
            self.number(0, 1, -1) if self._draw.random() < 0.3 else self._draw.choice((0, -1))
        )

    # Operators

    def _read(self) -> str:
        return self._draw.choice((*self._operands, *self._operands[-1:] * 3))

    def add(
        self, kind: str, params: str = "", inputs: int = 1, outputs: int = 1,
        weights: dict[str, tuple[int, ...]] | None = None, names: str = "",
    ) -> None:  # fmt: skip
        """Add an operator.

        Parameters
        ----------
        kind, params : str
        inputs, outputs : int
        weights : dict of str to tuple of int
            Shapes of attributes.
        names : str
            Argument names of the operands in order.
        """
        self._count += 1
        name = f"op{self._count}"
        read = [self._read() for _ in range(inputs)]
        given = [f"{name}_{place}" for place in range(outputs)]
        words = [kind, name, str(inputs), str(outputs), *read, *given]
        words += [f"${a}={o}" for a, o in zip(names.split(), read, strict=False)]
        words += params.split()
        for attribute, shape in (weights or {}).items():
            words.append(f"@{attribute}=({','.join(map(str, shape))})f32")
            array = self._arrays.standard_normal(shape).astype(np.float32)
            self._model.weights[f"{name}.{attribute}"] = array
        self._model.lines.append(" ".join(words))
        self._operands += given

    def _chain(self) -> None:
        kind, params = self._draw.choice(
            [("torch.cat", "dim=0"), ("prim::TupleConstruct", ""), ("prim::ListConstruct", ""),
             ("torch.stack", "dim=0"), ("torch.add", ""), ("torch.matmul", ""),
             ("torch.kron", ""), ("torch.outer", "")]
        )  # fmt: skip
        for _ in range(self._draw.choice((3, 12, 40))):
            before = self._operands[-1]
            self.add(kind, params, inputs=2)
            line = self._model.lines[-1].split()
            line[4:6] = [before, before]
            self._model.lines[-1] = " ".join(line)


def _windows(m: Maker, rank: int, *, kernel: bool = True) -> str:
    if m._draw.random() < 0.5:
        return _wide_windows(m, rank, kernel=kernel)
    parts = [f"stride={m.numbers(rank, 1, 2, 3)}", f"padding={m.numbers(rank, 0, 1, 2)}"]
    parts.append(f"dilation={m.numbers(rank, 1, 2)}")
    if kernel:
        parts.append(f"kernel_size={m.numbers(rank, 1, 2, 3)}")
    return " ".join(parts)


def _wide_windows(m: Maker, rank: int, *, kernel: bool) -> str:
    """Return a large padding or stride that still gives few windows."""
    large = max(m.number(), 1)
    axes = [m._draw.random() < 0.7 for _ in range(rank)]
    padding = m._draw.choice((large, large, large // 2, 0))
    dilation = m._draw.choice((1, 1, 1, large))

    def along(number: int, ordinary: int) -> str:
        return f"({','.join(str(number if wide else ordinary) for wide in axes)})"

    parts = [f"stride={along(large, 1)}", f"padding={along(padding, 1)}"]
    parts.append(f"dilation={along(dilation, 1)}")
    if kernel:
        parts.append(f"kernel_size={along(m._draw.choice((3, large)), 3)}")
    return " ".join(parts)


def _convolution(m: Maker) -> None:
    rank = m.rank
    inputs = m._channels
    groups = m._draw.choice((1, 1, 1, 1, inputs, m.number(1)))
    outputs = m._draw.choice((1, 2, 4, 8, inputs))
    kernel = [m._draw.choice((1, 2, 3, 3, 7)) for _ in range(rank)]
    own = inputs // groups if 0 < groups <= inputs else inputs
    outputs *= groups if 0 < groups <= inputs else 1
    m.add(
        f"nn.Conv{rank}d",
        f"bias=True groups={groups} in_channels={inputs} out_channels={outputs} "
        f"kernel_size=({','.join(map(str, kernel))}) {_windows(m, rank, kernel=False)} "
        f"padding_mode={m.choice('zeros', 'zeros', 'reflect', 'replicate', 'circular')}",
        weights={"weight": (outputs, max(own, 1), *kernel), "bias": (outputs,)},
    )


def _transposed(m: Maker) -> None:
    rank = m.rank
    outputs = m._draw.choice((1, 2, 4))
    kernel = [m._draw.choice((1, 2, 3)) for _ in range(rank)]
    m.add(
        f"nn.ConvTranspose{rank}d",
        f"bias=False groups=1 in_channels={m._channels} out_channels={outputs} "
        f"kernel_size=({','.join(map(str, kernel))}) {_windows(m, rank, kernel=False)} "
        f"output_padding={m.numbers(rank, 0, 1)}",
        weights={"weight": (m._channels, outputs, *kernel)},
    )


def _pool(m: Maker) -> None:
    rank = m.rank
    kind = m.choice("MaxPool", "AvgPool", "LPPool")
    flags = f"ceil_mode={m.choice('True', 'False')}"
    windows = _windows(m, rank)
    if m._draw.random() < 0.5:  # large windows are refused unless the padding fits
        kernel = max(m.number(3, 5), 1)
        windows = f"kernel_size={kernel} padding={kernel // 2} stride={m.number(1, 2)}"
    if kind == "MaxPool":
        flags += f" return_indices={m.choice('True', 'False', 'False')}"
    elif kind == "AvgPool":
        flags += f" count_include_pad={m.choice('True', 'False')}"
        windows = " ".join(w for w in windows.split() if not w.startswith("dilation"))
    else:
        flags += f" norm_type={m.real()}"
        windows = " ".join(w for w in windows.split() if w[:3] in {"ker", "str"})
    m.add(f"nn.{kind}{rank}d", f"{windows} {flags}")


def _adaptive(m: Maker) -> None:
    rank = m.rank
    m.add(
        f"nn.Adaptive{m.choice('Avg', 'Max')}Pool{rank}d",
        f"output_size={m.numbers(rank, 1, 3)}",
    )


def _fold(m: Maker) -> None:
    if m._draw.random() < 0.5:
        m.add("nn.Unfold", _windows(m, 2))
    else:
        m.add("nn.Fold", f"output_size={m.numbers(2, 8, 9)} {_windows(m, 2)}")


def _pad(m: Maker) -> None:
    if m._draw.random() < 0.5:
        mode = m.choice("constant", "reflect", "replicate", "circular")
        m.add("F.pad", f"pad={m.numbers(m._draw.choice((2, 4)), 0, 1, 2)} mode={mode}")
    else:
        kind = m.choice("Zero", "Reflection", "Replication", "Circular", "Constant")
        value = " value=1.0" if kind == "Constant" else ""
        m.add(f"nn.{kind}Pad2d", f"padding={m.numbers(4, 0, 1, 2)}{value}")


def _resize(m: Maker) -> None:
    of_rank = {1: "linear", 2: m.choice("bilinear", "bicubic"), 3: "trilinear"}[m._rank]
    mode = m.choice("nearest", "area", "nearest-exact", of_rank, of_rank)
    if m._draw.random() < 0.6:
        m.add("F.interpolate", f"size={m.numbers(m.rank, 1, 7)} mode={mode}")
    else:
        m.add("nn.Upsample", f"scale_factor=({m.real()}) mode={mode} align_corners=False")


def _normalisation(m: Maker) -> None:
    channels = m._channels
    kind = m._draw.randrange(5)
    if kind == 0:
        m.add(
            f"nn.BatchNorm{m.rank}d",
            f"affine=True eps={m.real()} num_features={channels}",
            weights=dict.fromkeys(
                ("weight", "bias", "running_mean", "running_var"), (channels,)
            ),
        )
    elif kind == 1:
        m.add("nn.LocalResponseNorm", f"size={m.number(3, 5)} alpha={m.real()} beta=0.75 k=1.0")
    elif kind == 2:
        m.add("F.group_norm", f"num_groups={m.number(1, 2)} eps={m.real()}")
    elif kind == 3:
        m.add("F.layer_norm", f"normalized_shape=({m._length}) eps={m.real()}")
    else:
        m.add("F.normalize", f"p={m.real()} dim={m.axis} eps={m.real()}")


def _creation(m: Maker) -> None:
    dtype = m._draw.choice(_DTYPES)
    rank = m._draw.choice((1, 2, 3))
    kind = m._draw.randrange(9)
    if kind < 3:
        name = m.choice("zeros", "ones", "empty", "rand", "randn")
        m.add(f"torch.{name}", f"size={m.numbers(rank, 1, 2, 8)} dtype={dtype}", inputs=0)
    elif kind == 3:
        m.add("torch.full", f"size={m.numbers(rank, 2)} fill_value={m.real()} dtype={dtype}", 0)
    elif kind == 4:
        start, end, step = m.number(0), m.number(5, 10), m.number(1, 2)
        m.add("torch.arange", f"start={start} end={end} step={step} dtype={dtype}", inputs=0)
    elif kind == 5:
        m.add(
            "torch.linspace", f"start={m.real()} end={m.real()} steps={m.number(5)}", inputs=0
        )
    elif kind == 6:
        m.add("torch.eye", f"n={m.number(3)} m={m.number(4)}", inputs=0)
    elif kind == 7:
        m.add(f"torch.{m.choice('tril', 'triu')}_indices",
              f"row={m.number(3)} col={m.number(3)} offset={m.number(0)}", 0)  # fmt: skip
    else:
        window = m.choice("hann", "hamming", "blackman", "bartlett", "kaiser")
        m.add(f"torch.{window}_window", f"window_length={m.number(8)}", inputs=0)


def _repetition(m: Maker) -> None:
    rank = m._draw.choice((1, 2, 4, 4, 5))
    kind = m._draw.randrange(5)
    if kind == 0:
        m.add("Tensor.repeat", f"sizes={m.numbers(rank, 1, 2)}")
    elif kind == 1:
        m.add("Tensor.expand", f"sizes={m.numbers(rank, 1, 4, 8, -1)}")
    elif kind == 2:
        m.add("torch.tile", f"dims={m.numbers(rank, 1, 2)}")
    elif kind == 3:
        m.add("torch.repeat_interleave", f"repeats={m.number(2)} dim={m.axis}")
    else:
        m.add("torch.roll", f"shifts={m.numbers(1, 1)} dims={m.numbers(1, 0)}")


def _pieces(m: Maker) -> None:
    kind = m._draw.randrange(6)
    if kind == 0:
        m.add("torch.split", f"split_size_or_sections={m.number(1, 2)} dim={m.axis}")
    elif kind == 1:
        m.add("torch.chunk", f"chunks={m.number(2)} dim={m.axis}")
    elif kind == 2:
        m.add("torch.unbind", f"dim={m.axis}")
    elif kind == 3:
        m.add("torch.tensor_split", f"sections={m.number(2)} dim={m.axis}")
    elif kind == 4:
        m.add("Tensor.slice", f"dim={m.axis} start={m.number(0)} end={m.number(3)} "
              f"step={m.number(1)}")  # fmt: skip
    else:
        m.add("torch.narrow", f"dim={m.axis} start={m.number(0)} length={m.number(1)}")


def _joins(m: Maker) -> None:
    kind = m.choice(
        "torch.cat", "torch.stack", "torch.hstack", "torch.block_diag", "torch.cartesian_prod",
        "torch.meshgrid", "torch.kron", "torch.outer",
    )  # fmt: skip
    dim = f"dim={m.axis}" if kind in {"torch.cat", "torch.stack"} else ""
    m.add(kind, dim, inputs=m._draw.choice((1, 2, 2, 3)))


def _indices(m: Maker) -> None:
    kind = m._draw.randrange(8)
    if kind == 0:
        m.add("F.one_hot", f"num_classes={m.number(-1, 10)}")
    elif kind == 1:
        rows = m._draw.choice((2, 10))
        m.add("nn.Embedding", f"num_embeddings={rows} embedding_dim=3 sparse=False",
              weights={"weight": (rows, 3)})  # fmt: skip
    elif kind == 2:
        m.add("torch.bincount", f"minlength={m.number(0, 5)}")
    elif kind == 3:
        m.add("torch.topk", f"k={m.number(1, 2)} dim={m.axis} largest=True sorted=True", 1, 2)
    elif kind == 4:
        places = f"size={m.numbers(2, 2, 3)} stride={m.numbers(2, 1)}"
        m.add("torch.as_strided", f"{places} storage_offset={m.number(0)}")
    elif kind == 5:
        m.add("torch.index_select", f"dim={m.axis}", inputs=2)
    elif kind == 6:
        m.add("torch.gather", f"dim={m.axis}", inputs=2)
    else:
        m.add("Tensor.unfold", f"dimension={m.axis} size={m.number(2)} step={m.number(1)}")


def _shapes(m: Maker) -> None:
    kind = m._draw.randrange(7)
    if kind == 0:
        m.add("Tensor.reshape", f"shape={m.numbers(2, -1, 2, 8)}")
    elif kind == 1:
        m.add("nn.PixelShuffle", f"upscale_factor={m.number(2)}")
    elif kind == 2:
        m.add("nn.PixelUnshuffle", f"downscale_factor={m.number(2)}")
    elif kind == 3:
        m.add("nn.ChannelShuffle", f"groups={m.number(2)}")
    elif kind == 4:
        m.add("torch.permute", f"dims={m.numbers(4, 0, 1, 2, 3)}")
    elif kind == 5:
        m.add("torch.unsqueeze", f"dim={m.axis}")
    else:
        m.add("torch.flatten", f"start_dim={m.axis} end_dim={m.axis}")


def _elementwise(m: Maker) -> None:
    kind = m._draw.randrange(6)
    if kind == 0:
        m.add(
            f"nn.{m.choice('ReLU', 'Sigmoid', 'GELU', 'SiLU', 'Hardswish', 'Tanh', 'Softmax')}"
        )
    elif kind == 1:
        m.add("nn.Hardtanh", f"min_val={m.real()} max_val={m.real()}")
    elif kind == 2:
        m.add("nn.LeakyReLU", f"negative_slope={m.real()}")
    elif kind == 3:
        m.add("pnnx.Expression", f"expr=add(mul(@0,{m.number(2)}),{m.real()})")
    elif kind == 4:
        m.add(
            "pnnx.Expression", f"expr={m.choice('add', 'mul', 'pow', 'div', 'sub')}(@0,@1)", 2
        )
    else:
        m.add("torch.clamp", f"min={m.real()} max={m.real()}")


def _products(m: Maker) -> None:
    kind = m._draw.randrange(6)
    if kind == 0:
        m.add("torch.matmul", inputs=2)
    elif kind == 1:
        m.add(
            "torch.einsum", f"equation={m.choice('ij,kl->ijkl', 'i,j->ij', 'abcd,efgh->ah')}", 2
        )
    elif kind == 2:
        m.add("F.scaled_dot_product_attention", inputs=3)
    elif kind == 3:
        m.add("torch.cdist", f"p={m.real()}", inputs=2)
    elif kind == 4:
        rows = m._draw.choice((1, 8))
        m.add("nn.Linear", f"bias=True in_features=8 out_features={rows}",
              weights={"weight": (rows, 8), "bias": (rows,)})  # fmt: skip
    else:
        m.add("nn.MultiheadAttention",
              f"embed_dim=8 num_heads={m.number(1, 2)} batch_first=True bias=True "
              "add_zero_attn=False add_bias_kv=False kdim=8 vdim=8",
              weights={"in_proj_weight": (24, 8), "in_proj_bias": (24,),
                       "out_proj.weight": (8, 8), "out_proj.bias": (8,)})  # fmt: skip


def _others(m: Maker) -> None:
    pieces = f"n_fft={m.number(4, 8)} hop_length={m.number(2)} win_length={m.number(4)}"
    pad_mode = m.choice("reflect", "circular", "constant")
    kind = m._draw.randrange(11)
    simple = (
        ("torch.diff", f"n={m.number(1)} dim={m.axis}"),
        ("torch.combinations", f"r={m.number(2)} with_replacement={m.choice('True', 'False')}"),
        ("torch.matrix_power", f"n={m.number(2)}"),
        ("torch.fft.fft", f"n={m.number(8)} dim={m.axis}"),
        ("torch.histc", f"bins={m.number(5)} min={m.real()} max={m.real()}"),
        ("torch.stft", f"{pieces} center=True pad_mode={pad_mode} return_complex=True"),
        ("torch.diag_embed", f"offset={m.number(0)}"),
        ("torch.tril", f"diagonal={m.number(0)}"),
        ("torch.rot90", f"k={m.number(1)} dims={m.numbers(2, 0, 1)}"),
        ("nn.MaxUnpool2d", f"kernel_size={m.numbers(2, 2)} stride={m.numbers(2, 2)}"),
        ("torch.multinomial", f"num_samples={m.number(2)} replacement=True"),
    )  # fmt: skip
    name, params = simple[kind]
    m.add(name, params, inputs=2 if name == "nn.MaxUnpool2d" else 1)


_OPERATORS: Final[tuple[Callable[[Maker], None], ...]] = (
    _convolution, _convolution, _convolution, _transposed, _transposed, _pool, _pool, _adaptive,
    _fold, _pad, _resize, _normalisation, _creation, _creation, _repetition, _pieces, _joins,
    _indices, _shapes, _elementwise, _products, _others,
)  # fmt: skip
_VECTORS: Final[tuple[Callable[[Maker], None], ...]] = (
    _creation,
    _repetition,
    _pieces,
    _joins,
    _joins,
    _indices,
    _shapes,
    _elementwise,
    _others,
    _others,
    _products,
)
