"""Every lowering of ONNX Runtime and ncnn against the NumPy reference.

The reference itself is compared with PyTorch and with values typed by hand in
``tests/engine/layers``.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from engine.backends import backend_of, libraries, make_kernels
from engine.backends.lowering import SpecialNumbersError
from engine.errors import InferenceError

pytest.importorskip("onnxruntime")
pytest.importorskip("ncnn")

BOTH = ("onnxruntime", "ncnn")
ONNX = ("onnxruntime",)
NCNN = ("ncnn",)
NONE = ()


@dataclass(frozen=True)
class Case:
    """An operator with parameters, weights and inputs, and the libraries that compute it."""

    type: str
    shapes: tuple[Any, ...]  # of inputs: shapes of float32, or arrays
    by: tuple[str, ...] = ONNX
    weights: dict[str, Any] = field(default_factory=dict)  # shapes of float32, or arrays
    names: tuple[str, ...] = ()
    outputs: int = 1
    params: dict[str, Any] = field(default_factory=dict)
    tolerance: float = 1e-5

    def arrays(self, shapes) -> list[np.ndarray]:
        rng = np.random.default_rng(zlib.crc32(repr(self.params).encode()))
        return [
            shape.copy()
            if isinstance(shape, np.ndarray)
            else rng.normal(0, 1, shape).astype(np.float32)
            for shape in shapes
        ]

    @property
    def inputs(self) -> list[np.ndarray]:
        return self.arrays(self.shapes)

    def build(self, operator):
        weights = dict(zip(self.weights, self.arrays(self.weights.values()), strict=True))
        return operator(
            self.type, self.inputs, weights, self.names, outputs=self.outputs, **self.params
        )


def conv(shape, out, kernel, by=BOTH, kind="nn.Conv2d", bias=True, groups=1, **params):
    rank = int(kind[-2])
    kernel = (kernel,) * rank if isinstance(kernel, int) else kernel
    channels = shape[-rank - 1]
    weights = {"weight": (out, channels // groups, *kernel)}
    if bias:
        weights["bias"] = (out,)
    every = {"stride": (1,) * rank, "padding": (0,) * rank, "dilation": (1,) * rank,
             "padding_mode": "zeros"} | params  # fmt: skip
    return Case(
        kind, (shape,), by, weights,
        params={"in_channels": channels, "out_channels": out, "kernel_size": kernel,
                "groups": groups, "bias": bias, **every},
    )  # fmt: skip


def transposed(shape, out, kernel, by=BOTH, kind="nn.ConvTranspose2d", bias=True, groups=1,
               **params):  # fmt: skip
    rank = int(kind[-2])
    kernel = (kernel,) * rank if isinstance(kernel, int) else kernel
    channels = shape[-rank - 1]
    weights = {"weight": (channels, out // groups, *kernel)}
    if bias:
        weights["bias"] = (out,)
    every = {"stride": (1,) * rank, "padding": (0,) * rank, "dilation": (1,) * rank,
             "output_padding": (0,) * rank} | params  # fmt: skip
    return Case(
        kind, (shape,), by, weights,
        params={"in_channels": channels, "out_channels": out, "kernel_size": kernel,
                "groups": groups, "bias": bias, **every},
    )  # fmt: skip


def pool(kind, shape, kernel, by=ONNX, **params):
    params = {"ceil_mode": False, "padding": 0, "stride": kernel} | params
    return Case(kind, (shape,), by, params={"kernel_size": kernel, **params})


def maximum(shape, kernel, by=ONNX, kind="nn.MaxPool2d", **params):
    params = {"dilation": 1, "return_indices": False} | params
    return pool(kind, shape, kernel, by, **params)


def average(shape, kernel, by=ONNX, kind="nn.AvgPool2d", **params):
    params = {"count_include_pad": True, "divisor_override": None} | params
    return pool(kind, shape, kernel, by, **params)


def unary(kind, by=ONNX, tolerance=1e-5, **params):
    x = np.concatenate([np.linspace(-9, 9, 101), [-0.0, 0.0, 3, -3, 6, 1, 1e-30, 50, -50]])
    x = np.append(x, np.random.default_rng(2).normal(0, 1, 501)).astype(np.float32)
    return Case(kind, (x.reshape(1, 13, 47),), by, params=params, tolerance=tolerance)


def expression(text, *shapes, by=ONNX):
    return Case("pnnx.Expression", shapes, by, params={"expr": text})


def normal(shape, by=ONNX, kind="nn.BatchNorm2d", affine=True, stored=True, **params):
    channels = shape[1]
    weights = {"weight": (channels,), "bias": (channels,)} if affine else {}
    if stored:
        weights["running_mean"] = (channels,)
        weights["running_var"] = np.linspace(0.1, 3, channels).astype(np.float32)
    params = {"num_features": channels, "eps": 1e-5, "affine": affine} | params
    return Case(kind, (shape,), by, weights, params=params)


def layer_norm(shape, count, by=ONNX, affine=True, bias=True, eps=1e-5):
    sizes = shape[len(shape) - count :]
    weights = {"weight": sizes} if affine else {}
    if affine and bias:
        weights["bias"] = sizes
    return Case("nn.LayerNorm", (shape,), by, weights,
                params={"normalized_shape": sizes, "eps": eps,
                        "elementwise_affine": affine})  # fmt: skip


def group_norm(shape, groups, by=ONNX, affine=True, eps=1e-5):
    weights = {"weight": (shape[1],), "bias": (shape[1],)} if affine else {}
    return Case("nn.GroupNorm", (shape,), by, weights,
                params={"num_groups": groups, "num_channels": shape[1], "eps": eps,
                        "affine": affine})  # fmt: skip


def heads(*shapes, count=2, size=8, by=ONNX, bias=True, extra=None, outputs=1, names=(),
          **params):  # fmt: skip
    params = {"batch_first": False, "add_zero_attn": False} | params
    weights = {"in_proj_weight": (3 * size, size), "out_proj.weight": (size, size)}
    if bias:
        weights |= {"in_proj_bias": (3 * size,), "out_proj.bias": (size,)}
    return Case("nn.MultiheadAttention", shapes, by, weights | (extra or {}), names, outputs,
                params={"num_heads": count, "embed_dim": size, "bias": bias,
                        **params})  # fmt: skip


def windows_heads(*masks, **params):
    """Samples that are long enough to be computed head by head."""
    names = ("query", "attn_mask")[: 1 + len(masks)]
    return heads((3, 33, 8), *masks, names=names, batch_first=True, **params)


INTEGERS = np.arange(24, dtype=np.int64).reshape(2, 3, 4)
DOUBLES = np.linspace(-1, 1, 24).reshape(2, 3, 4)
MASK = np.where(np.eye(5, dtype=bool), 0, -2).astype(np.float32)
MASK_OF_WINDOWS = np.zeros((33, 33), np.float32)
MASK_OF_WINDOWS[:, 20:] = -np.inf
IMAGE = (1, 4, 11, 13)

CASES = {
    # convolutions
    "conv": conv(IMAGE, 6, 3),
    "conv without bias": conv(IMAGE, 6, 3, bias=False),
    "conv padded": conv(IMAGE, 6, 3, padding=(1, 1)),
    "conv padded unevenly": conv(IMAGE, 6, (3, 5), padding=(1, 2)),
    "conv same": conv(IMAGE, 6, 3, padding="same"),
    "conv same even": conv(IMAGE, 6, (4, 2), padding="same"),
    "conv same dilated": conv(IMAGE, 6, 3, padding="same", dilation=(2, 3)),
    "conv valid": conv(IMAGE, 6, 3, padding="valid"),
    "conv strided": conv(IMAGE, 6, 3, stride=(2, 2), padding=(1, 1)),
    "conv strided unevenly": conv(IMAGE, 6, (5, 2), stride=(3, 1)),
    "conv dilated": conv(IMAGE, 6, 3, dilation=(2, 3), padding=(2, 2)),
    "conv of all": conv(IMAGE, 6, (5, 4), stride=(2, 3), dilation=(2, 1), padding=(3, 1)),
    "conv 1x1": conv(IMAGE, 6, 1),
    "conv 1x1 strided": conv(IMAGE, 6, 1, stride=(2, 2)),
    "conv 1x1 padded": conv(IMAGE, 6, 1, padding=(1, 1)),
    "conv 7x7": conv((1, 3, 20, 20), 8, 7, stride=(2, 2), padding=(3, 3)),
    "conv of the whole image": conv((1, 4, 5, 6), 3, (5, 6)),
    "conv of many channels": conv((1, 64, 14, 14), 64, 3, padding=(1, 1)),
    "conv of many channels, odd": conv((1, 33, 9, 7), 35, 3, padding=(1, 1)),
    "conv of groups": conv(IMAGE, 6, 3, groups=2, padding=(1, 1)),
    "conv of groups, 8 each": conv((1, 16, 9, 9), 16, 3, groups=2),
    "conv depthwise": conv((1, 8, 9, 9), 8, 3, groups=8, padding=(1, 1)),
    "conv depthwise, strided": conv((1, 16, 9, 9), 16, 5, groups=16, stride=(2, 2)),
    "conv depthwise, two each": conv((1, 4, 9, 9), 8, 3, groups=4, dilation=(2, 2)),
    "conv unbatched": conv((4, 11, 13), 6, 3, padding=(1, 1)),
    "conv of a batch": conv((2, 4, 11, 13), 6, 3, by=ONNX),
    "conv of a batch, depthwise": conv((3, 4, 7, 7), 4, 3, by=ONNX, groups=4),
    "conv reflected": conv(IMAGE, 6, 3, by=NONE, padding=(1, 1), padding_mode="reflect"),
    "conv replicated": conv(IMAGE, 6, 3, by=NONE, padding=(1, 1), padding_mode="replicate"),
    "conv 1d": conv((1, 4, 20), 6, 3, by=ONNX, kind="nn.Conv1d", padding=(2,), stride=(2,)),
    "conv 1d unbatched": conv((4, 20), 6, 3, by=ONNX, kind="nn.Conv1d", dilation=(3,)),
    "conv 1d depthwise": conv((2, 4, 20), 4, 5, by=ONNX, kind="nn.Conv1d", groups=4),
    "conv 3d": conv((1, 2, 5, 6, 7), 3, 3, by=ONNX, kind="nn.Conv3d", padding=(1, 0, 1)),
    "conv 3d unbatched": conv((2, 5, 6, 7), 4, 2, by=ONNX, kind="nn.Conv3d", groups=2),
    "conv of doubles": Case("nn.Conv2d", (np.ones((1, 2, 4, 4)),), NONE,
                            {"weight": np.ones((2, 2, 3, 3))},
                            params={"kernel_size": (3, 3), "bias": False}),
    # transposed
    "transposed": transposed(IMAGE, 6, 3),
    "transposed without bias": transposed(IMAGE, 6, 3, bias=False),
    "transposed strided": transposed(IMAGE, 6, (4, 2), stride=(2, 2), padding=(1, 0)),
    "transposed dilated": transposed(IMAGE, 6, 3, dilation=(2, 3), padding=(2, 1)),
    "transposed, more room": transposed(IMAGE, 6, 3, by=ONNX, stride=(2, 3),
                                        output_padding=(1, 2)),
    "transposed of groups": transposed(IMAGE, 6, 3, by=ONNX, groups=2),
    "transposed of a batch": transposed((2, 4, 5, 6), 6, 3, by=ONNX, stride=(2, 2)),
    "transposed unbatched": transposed((4, 5, 6), 6, 3, by=NCNN, stride=(2, 2)),
    "transposed 1d": transposed((1, 4, 9), 3, 4, by=ONNX, kind="nn.ConvTranspose1d",
                                stride=(2,)),
    "transposed 3d": transposed((1, 2, 3, 4, 5), 3, 2, by=ONNX, kind="nn.ConvTranspose3d",
                                stride=(2, 1, 2)),
    # products
    "linear": Case("nn.Linear", ((1, 20),), BOTH, {"weight": (7, 20), "bias": (7,)}),
    "linear without bias": Case("nn.Linear", ((1, 20),), BOTH, {"weight": (7, 20)}),
    "linear of a vector": Case("nn.Linear", ((20,),), BOTH, {"weight": (7, 20), "bias": (7,)}),
    "linear of rows": Case("nn.Linear", ((5, 20),), BOTH, {"weight": (7, 20), "bias": (7,)}),
    "linear of a stack": Case("nn.Linear", ((2, 3, 4, 20),), BOTH,
                              {"weight": (7, 20), "bias": (7,)}),
    "linear to one": Case("nn.Linear", ((4, 20),), BOTH, {"weight": (1, 20), "bias": (1,)}),
    "matmul": Case("torch.matmul", ((5, 6), (6, 7))),
    "matmul of stacks": Case("torch.matmul", ((2, 3, 5, 6), (2, 3, 6, 7))),
    "matmul broadcast": Case("torch.matmul", ((3, 5, 6), (6, 7))),
    "matmul broadcast twice": Case("torch.matmul", ((2, 1, 5, 6), (3, 6, 7))),
    "matmul by a vector": Case("torch.matmul", ((2, 5, 6), (6,))),
    "vector by matmul": Case("torch.matmul", ((6,), (2, 6, 7))),
    "matmul of integers": Case("torch.matmul", (INTEGERS, INTEGERS.swapaxes(1, 2).copy())),
    "mm": Case("torch.mm", ((5, 6), (6, 7))),
    "bmm": Case("torch.bmm", ((4, 5, 6), (4, 6, 7))),
    "matmul of doubles": Case("torch.matmul", (DOUBLES, DOUBLES.swapaxes(1, 2).copy()), NONE),
    # pooling
    "max": maximum(IMAGE, 2),
    "max overlapping": maximum(IMAGE, 3, stride=2, padding=1),
    "max uneven": maximum(IMAGE, (3, 2), stride=(1, 3), padding=(1, 0), dilation=(2, 1)),
    "max of a batch": maximum((3, 2, 9, 8), 2),
    "max ceil, nothing left": maximum((1, 2, 8, 8), 2, ceil_mode=True),
    "max ceil, partial": maximum((1, 2, 9, 9), 2, by=NONE, ceil_mode=True),
    "max of nothing but padding": maximum((1, 2, 6, 6), 2, stride=3, padding=1),
    "max with indices": Case("nn.MaxPool2d", (IMAGE,), NONE, outputs=2, params={
        "kernel_size": 2, "stride": 2, "padding": 0, "dilation": 1, "ceil_mode": False,
        "return_indices": True}),
    "max unbatched": maximum((4, 9, 9), 2, by=NONE),
    "max 1d": maximum((1, 4, 15), 3, kind="nn.MaxPool1d", padding=1),
    "max 3d": maximum((1, 2, 5, 6, 7), 2, kind="nn.MaxPool3d"),
    "average": average(IMAGE, 2),
    "average overlapping": average(IMAGE, 3, stride=2, padding=1),
    "average without padding": average(IMAGE, 3, stride=2, padding=1, count_include_pad=False),
    "average uneven": average((2, 3, 9, 8), (3, 2), stride=(1, 2), padding=(1, 0)),
    "average ceil": average(IMAGE, 2, by=NONE, ceil_mode=True),
    "average by a number": average(IMAGE, 2, by=NONE, divisor_override=3),
    "average unbatched": average((4, 9, 9), 2, by=NONE),
    "average 1d": average((1, 4, 15), 3, kind="nn.AvgPool1d", padding=1),
    "average 3d": average((1, 2, 5, 6, 7), 2, kind="nn.AvgPool3d"),
    "adaptive to one": Case("nn.AdaptiveAvgPool2d", (IMAGE,), params={"output_size": (1, 1)}),
    "adaptive of a batch": Case("F.adaptive_avg_pool2d", ((2, 3, 7, 7),),
                                params={"output_size": (1, 1)}),
    "adaptive unbatched": Case("nn.AdaptiveAvgPool2d", ((3, 7, 7),),
                               params={"output_size": (1, 1)}),
    "adaptive 1d": Case("nn.AdaptiveAvgPool1d", ((2, 3, 9),), params={"output_size": 1}),
    "adaptive 3d": Case("nn.AdaptiveAvgPool3d", ((2, 3, 4, 5, 6),),
                        params={"output_size": (1, 1, 1)}),
    "adaptive to more": Case("nn.AdaptiveAvgPool2d", (IMAGE,), NONE,
                             params={"output_size": (3, 4)}),
    "adaptive that does nothing": Case("nn.AdaptiveAvgPool2d", ((1, 3, 1, 1),), NONE,
                                       params={"output_size": (1, 1)}),
    # activations
    "relu": unary("nn.ReLU"),
    "relu of integers": Case("F.relu", (INTEGERS - 9,), NONE),
    "relu of a number": Case("F.relu", ((),)),
    "relu of doubles": Case("F.relu", (DOUBLES,), NONE),
    "relu of nothing": Case("F.relu", ((2, 0, 3),), NONE),
    "relu6": unary("nn.ReLU6"),
    "sigmoid": unary("F.sigmoid"),
    "tanh": unary("nn.Tanh", NONE),
    "hardswish": unary("nn.Hardswish"),
    "hardsigmoid": unary("nn.Hardsigmoid"),
    "hardtanh": unary("nn.Hardtanh", min_val=-1.5, max_val=0.5),
    "softsign": unary("nn.Softsign"),
    "mish": unary("nn.Mish"),
    "silu": unary("nn.SiLU"),
    "gelu": unary("nn.GELU"),
    "gelu by tanh": unary("nn.GELU", approximate="tanh"),
    "leaky relu": unary("nn.LeakyReLU", negative_slope=0.2),
    "elu": unary("nn.ELU", NONE, alpha=1.5),
    "softplus": unary("nn.Softplus", NONE),
    "softplus with beta": unary("nn.Softplus", NONE, beta=2.0),
    "softplus with threshold": unary("nn.Softplus", NONE, threshold=3.0),
    "prelu": Case("nn.PReLU", (IMAGE,), weights={"weight": (4,)}),
    "prelu of one": Case("nn.PReLU", (IMAGE,), weights={"weight": (1,)}),
    "prelu of rows": Case("nn.PReLU", ((5, 4),), weights={"weight": (4,)}),
    "prelu of a vector": Case("nn.PReLU", ((5,),), weights={"weight": (1,)}),
    **{f"torch.{name}": unary(f"torch.{name}", tolerance=tolerance) for name, tolerance in {
        "abs": 0, "ceil": 0, "cos": 1e-5, "erf": 1e-5, "exp": 1e-5, "floor": 0, "log": 1e-5,
        "neg": 0, "reciprocal": 1e-5, "sin": 1e-5, "sqrt": 1e-5, "tan": 1e-4}.items()},
    # expressions
    "add": expression("add(@0,@1)", IMAGE, IMAGE),
    "add broadcast": expression("add(@0,@1)", IMAGE, (4, 1, 13)),
    "add channels": expression("mul(@0,@1)", IMAGE, (1, 4, 1, 1)),
    "add a number": expression("add(@0,1.5)", IMAGE),
    "a number less": expression("sub(2,@0)", IMAGE),
    "of integers": expression("add(@0,@1)", INTEGERS, INTEGERS * 3),
    "of mixed dtypes": expression("add(@0,@1)", INTEGERS, (2, 3, 4), by=NONE),
    "of doubles": expression("add(@0,@1)", DOUBLES, DOUBLES, by=NONE),
    "of integers by a number": expression("mul(@0,1.5)", INTEGERS, by=NONE),
    "of integers divided": expression("div(@0,@1)", INTEGERS, INTEGERS + 1, by=NONE),
    "of integers, plus one": expression("add(@0,1)", INTEGERS),
    "numbers alone": expression("add(mul(2,3),@0)", IMAGE, by=NONE),
    "deep": expression("div(mul(add(@0,@1),exp(@1)),sqrt(add(square(@0),2.0)))",
                       IMAGE, IMAGE),
    "max and min": expression("minimum(maximum(@0,@1),1.0)", IMAGE, IMAGE),
    "a power": expression("pow(@0,2)", IMAGE, by=NONE),
    "rsqrt": expression("rsqrt(add(square(@0),1e-05))", IMAGE, by=NONE),
    "the operand twice": expression("mul(@0,tan(@0))", IMAGE),
    "a list": expression("[@0,@1]", IMAGE, IMAGE, by=NONE),
    "the operand itself": expression("@0", IMAGE, by=NONE),
    # normalisation
    "batch norm": normal(IMAGE),
    "batch norm of a batch": normal((3, 4, 5, 6), eps=1e-3),
    "batch norm, plain": normal(IMAGE, affine=False),
    "batch norm by its own": normal((2, 4, 5, 5), NONE, stored=False),
    "batch norm 1d": normal((2, 4, 9), kind="nn.BatchNorm1d"),
    "batch norm of rows": normal((5, 4), NONE, kind="nn.BatchNorm1d"),
    "batch norm 3d": normal((1, 3, 2, 3, 4), kind="nn.BatchNorm3d"),
    "layer norm": layer_norm((2, 5, 16), 1),
    "layer norm of two": layer_norm((2, 3, 4, 5), 2, eps=1e-3),
    "layer norm of all": layer_norm((4, 5), 2),
    "layer norm, plain": layer_norm((2, 5, 16), 1, affine=False),
    "layer norm without bias": layer_norm((2, 5, 16), 1, bias=False),
    "group norm": group_norm((2, 6, 5, 4), 3),
    "group norm, each channel": group_norm((1, 6, 7), 6, eps=1e-3),
    "group norm, all channels": group_norm((2, 6, 3, 3), 1),
    "group norm, plain": group_norm((2, 6, 5, 4), 2, affine=False),
    "group norm of rows": group_norm((3, 6), 2),
    "softmax": Case("nn.Softmax", ((2, 5, 7),), params={"dim": 1}),
    "softmax of the last": Case("F.softmax", ((2, 5, 7),), params={"dim": -1}),
    "softmax of the first": Case("F.softmax", ((5, 7),), params={"dim": 0}),
    "softmax of one": Case("F.softmax", ((5, 1),), params={"dim": 1}),
    "softmax of doubles": Case("F.softmax", ((5, 7),), NONE,
                               params={"dim": 1, "dtype": "torch.double"}),
    "softmax without dim": Case("F.softmax", ((5, 7),), NONE),
    "log softmax": Case("nn.LogSoftmax", ((2, 5, 7),), params={"dim": 1}),
    # attention
    "sdpa": Case("F.scaled_dot_product_attention", ((1, 2, 5, 8), (1, 2, 6, 8), (1, 2, 6, 4))),
    "sdpa of three axes": Case("F.scaled_dot_product_attention", ((2, 5, 8),) * 3),
    "sdpa scaled": Case("F.scaled_dot_product_attention", ((1, 2, 5, 8),) * 3,
                        params={"scale": 0.25}),
    "sdpa masked": Case("F.scaled_dot_product_attention", (*((1, 2, 5, 8),) * 3, MASK),
                        names=("query", "key", "value", "attn_mask")),
    "sdpa masked by bools": Case(
        "F.scaled_dot_product_attention", (*((1, 2, 5, 8),) * 3, MASK == 0), NONE,
        names=("query", "key", "value", "attn_mask")),
    "sdpa causal": Case("F.scaled_dot_product_attention", ((1, 2, 5, 8),) * 3, NONE,
                        params={"is_causal": True}),
    "sdpa of shared heads": Case(
        "F.scaled_dot_product_attention", ((1, 4, 5, 8), (1, 2, 5, 8), (1, 2, 5, 8)), NONE,
        params={"enable_gqa": True}),
    "sdpa of rows": Case("F.scaled_dot_product_attention", ((5, 8),) * 3, NONE),
    "heads": heads((5, 2, 8)),
    "heads, batch first": heads((2, 5, 8), batch_first=True),
    "heads without bias": heads((2, 5, 8), batch_first=True, bias=False),
    "heads of one sample": heads((5, 1, 8), count=4),
    "heads, across": heads((5, 2, 8), (7, 2, 8)),
    "heads, across, batch first": heads((2, 5, 8), (2, 7, 8), batch_first=True),
    "heads, across, three": heads((5, 2, 8), (7, 2, 8), (7, 2, 8)),
    "heads, masked": heads((5, 2, 8), MASK, names=("query", "attn_mask")),
    "heads, masked each": heads((2, 5, 8), (4, 5, 5), names=("query", "attn_mask"),
                                batch_first=True),
    "heads, across, masked": heads((5, 2, 8), (7, 2, 8), (7, 2, 8), (5, 7),
                                   names=("query", "key", "value", "attn_mask")),
    "heads, masked by truths": heads((5, 2, 8), np.eye(5, dtype=bool), by=NONE,
                                     names=("query", "attn_mask")),
    "heads, a mask for each sample": heads((5, 2, 8), (2, 5, 5), by=NONE, count=4,
                                           names=("query", "attn_mask")),
    "heads of windows": windows_heads(),
    "heads of windows, one mask": windows_heads(MASK_OF_WINDOWS),
    "heads of windows, masked each": windows_heads((6, 33, 33)),
    "heads of windows, without bias": windows_heads(bias=False),
    "heads of windows, three times": heads((3, 33, 8), (3, 33, 8), (3, 33, 8),
                                           batch_first=True),
    "heads unbatched": heads((5, 8), by=NONE),
    "heads with weights": heads((5, 2, 8), by=NONE, outputs=2),
    "heads with a zero": heads((5, 2, 8), by=NONE, add_zero_attn=True),
    "heads with keys": heads((5, 2, 8), by=NONE, add_bias_kv=True,
                             extra={"bias_k": (1, 1, 8), "bias_v": (1, 1, 8)}),
    # moving
    "cat": Case("torch.cat", ((1, 2, 3), (1, 4, 3)), params={"dim": 1}),
    "cat of the last": Case("torch.cat", ((2, 3), (2, 1), (2, 5)), params={"dim": -1}),
    "cat of integers": Case("torch.cat", (INTEGERS, INTEGERS), params={"dim": 2}),
    "cat of mixed": Case("torch.cat", (INTEGERS, (2, 3, 4)), NONE, params={"dim": 0}),
    "cat with nothing": Case("torch.cat", ((2, 3), (0,)), NONE, params={"dim": 0}),
    "channel shuffle": Case("nn.ChannelShuffle", ((2, 6, 3, 4),), params={"groups": 3}),
    "pixel shuffle": Case("nn.PixelShuffle", ((2, 12, 3, 4),), params={"upscale_factor": 2}),
    "pixel shuffle unbatched": Case("nn.PixelShuffle", ((12, 3, 4),), NONE,
                                    params={"upscale_factor": 2}),
}  # fmt: skip


def close(found, expected, tolerance, where=""):
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        if isinstance(theirs, tuple):
            close(mine, theirs, tolerance, where)
            continue
        assert not mine.flags.writeable
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
        finite = theirs[np.isfinite(theirs)] if theirs.dtype.kind == "f" else theirs
        scale = max(1.0, float(np.abs(finite).max(initial=0)))
        np.testing.assert_allclose(
            mine, theirs, rtol=tolerance, atol=tolerance * scale, err_msg=where
        )


def unaligned(array):
    """Return the same array at an odd address."""
    memory = np.zeros(array.nbytes + 1, np.uint8)
    view = memory[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


@pytest.mark.parametrize("library", BOTH)
@pytest.mark.parametrize("name", CASES)
def test_equals_the_reference(operator, name, library):
    """The expected library computes it, for every memory layout of the arrays."""
    case = CASES[name]
    built, inputs = case.build(operator), case.inputs
    expected = built.forward(inputs)
    kernel = make_kernels(library, [built])[0]
    lies = (
        inputs,
        [x.T.copy().T for x in inputs],
        [unaligned(x) for x in inputs],
        [np.repeat(x, 2, -1)[..., ::2] if x.ndim else x for x in inputs],
    )
    for arrays in lies:
        kernel.prepare(arrays)
        close(kernel(arrays), expected, case.tolerance)
        served = library if library in case.by else "numpy"
        assert backend_of(kernel.name) == served, (name, kernel.name)


def specially(inputs, special):
    """Replace some numbers by special ones."""
    rng = np.random.default_rng(3)
    for x in inputs:
        if x.dtype == np.float32 and x.size > 1:
            places = rng.choice(x.size, max(1, x.size // 50), replace=False)
            x.reshape(-1)[places] = special
    return inputs


def leaves_special_numbers(name, variant):
    """Return whether a compiled kernel refuses special numbers."""
    return variant.startswith("winograd") or name.startswith(("max", "sdpa", "heads"))


@pytest.mark.parametrize("library", BOTH)
@pytest.mark.parametrize("name", CASES)
def test_every_variant(operator, name, library):
    """NaN and infinities appear where the reference has them, or the kernel refuses them."""
    case = CASES[name]
    built = case.build(operator)
    variants = libraries()[library].variants(built, case.inputs)
    assert bool(variants) == (library in case.by)
    made = {variant: make() for variant, make in variants.items()}
    for special in (0, np.nan, np.inf, -np.inf):
        inputs = specially(case.inputs, special)
        expected = built.forward(inputs) if made else ()
        for variant, compiled in made.items():
            try:
                found = compiled(inputs)
            except SpecialNumbersError:
                assert special != 0
                assert leaves_special_numbers(name, variant)
            else:
                close(found, expected, case.tolerance, f"{variant} {special}")


def test_special_numbers_are_left_to_the_reference(operator):
    """Only for that call."""
    case = CASES["max"]
    built, plain = case.build(operator), case.inputs
    kernel = make_kernels("onnxruntime", [built])[0]
    for special, backend in ((np.nan, "numpy"), (0, "onnxruntime"), (-np.inf, "numpy")):
        inputs = specially(case.inputs, special)
        kernel.prepare(inputs)
        close(kernel(inputs), built.forward(inputs), 0)
        assert backend_of(kernel.name) == backend
    assert np.isfinite(plain[0]).all()


def test_a_query_without_a_key(operator):
    """PyTorch gives 0, a plain softmax NaN."""
    hidden = np.zeros((5, 5), np.float32)
    hidden[2] = -np.inf
    case = Case("F.scaled_dot_product_attention", (*((1, 2, 5, 8),) * 3, hidden),
                names=("query", "key", "value", "attn_mask"))  # fmt: skip
    built, inputs = case.build(operator), case.inputs
    kernel = make_kernels("onnxruntime", [built])[0]
    kernel.prepare(inputs)
    (found,) = kernel(inputs)
    assert (found[0, :, 2] == 0).all()
    close((found,), built.forward(inputs), 0)


@pytest.mark.parametrize("samples", [1, 3])
def test_a_query_of_a_window_without_a_key(operator, samples):
    """The result equals the reference's, not the library's."""
    hidden = np.zeros((33, 33), np.float32)
    hidden[2] = -np.inf
    case = heads((samples, 33, 8), hidden, names=("query", "attn_mask"), batch_first=True)
    built, inputs = case.build(operator), case.inputs
    kernel = make_kernels("onnxruntime", [built])[0]
    kernel.prepare(inputs)
    close(kernel(inputs), built.forward(inputs), 0)
    assert backend_of(kernel.name) == "numpy"


# A case, and inputs for it that the reference refuses.
REFUSED = {
    "conv, other channels": (CASES["conv"], (1, 5, 11, 13)),
    "conv, five axes": (CASES["conv"], (1, 1, 4, 11, 13)),
    "conv, too small": (CASES["conv"], (1, 4, 2, 13)),
    "conv depthwise, other channels": (CASES["conv depthwise"], (1, 4, 9, 9)),
    "transposed, other channels": (CASES["transposed"], (1, 6, 11, 13)),
    "linear, other features": (CASES["linear"], (20, 1)),
    "linear, more features": (CASES["linear"], (1, 40)),
    "mm of stacks": (CASES["mm"], (2, 5, 6), (2, 6, 7)),
    "bmm of one and four": (CASES["bmm"], (1, 5, 6), (4, 6, 7)),
    "bmm of matrices": (CASES["bmm"], (5, 6), (6, 7)),
    "batch norm of a volume": (CASES["batch norm"], (1, 4, 3, 4, 5)),
    "batch norm, other channels": (CASES["batch norm"], (1, 1, 11, 13)),
    "layer norm of another size": (CASES["layer norm"], (2, 16, 5)),
    "layer norm, plain, of another size": (CASES["layer norm, plain"], (2, 16, 5)),
    "layer norm, fewer axes": (CASES["layer norm of two"], (20,)),
    "group norm, other channels": (CASES["group norm, plain"], (2, 5, 2, 2)),
    "softmax of fewer axes": (CASES["softmax"], (5,)),
    "prelu, other channels": (CASES["prelu"], (4, 1, 2, 4)),
    "sdpa, unequal": (CASES["sdpa"], (1, 2, 5, 8), (1, 3, 6, 8), (1, 2, 6, 4)),
    "sdpa, more masks than samples": (
        CASES["sdpa masked"], (1, 2, 5, 8), (1, 2, 5, 8), (1, 2, 5, 8), (3, 1, 5, 5)),
    "heads of unequal batches": (CASES["heads, across"], (5, 2, 8), (7, 1, 8)),
    "cat of unequal sizes": (CASES["cat"], (1, 2, 3), (1, 2, 4)),
    "channel shuffle of rows": (CASES["channel shuffle"], (2, 6)),
    "pixel shuffle, other channels": (CASES["pixel shuffle"], (2, 6, 3, 4)),
    "expression, unequal": (CASES["add"], (1, 4, 3, 3), (1, 4, 2, 3)),
}  # fmt: skip


@pytest.mark.parametrize("library", BOTH)
@pytest.mark.parametrize("name", REFUSED)
def test_no_library_computes_what_the_reference_refuses(operator, name, library):
    case, *shapes = REFUSED[name]
    built = case.build(operator)
    inputs = [np.ones(shape, np.float32) for shape in shapes]
    kernel = make_kernels(library, [built])[0]
    kernel.prepare(inputs)
    with pytest.raises(InferenceError) as reference:
        built.forward(inputs)
    with pytest.raises(InferenceError) as caught:
        kernel(inputs)
    assert str(caught.value) == str(reference.value)
    assert backend_of(kernel.name) == "numpy"
