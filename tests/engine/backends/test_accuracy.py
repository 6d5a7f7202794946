"""Every kernel of an element-wise operator is accurate to a few units in the last place.

The range is all of float32, the expectation float64: see ``tests/accuracy``, which also prints
the table.
"""

from __future__ import annotations

import numpy as np
import pytest

from accuracy.functions import FUNCTIONS
from accuracy.kernels import errors
from accuracy.measure import FEW, RANGES, points, units
from engine.backends import (
    ncnn_lowering,
    numpy_buffers,
    onnx_accurate,
    onnx_nchwc,
    operator_lowerings,
)
from engine.backends.node_kinds import BINARY_FUNCTIONS, UNARY_FUNCTIONS
from engine.backends.subgraph import Node
from engine.layers import registration
from engine.layers.expression import Expression
from engine.layers.onnx.meanings import OnnxExpression

pytest.importorskip("onnxruntime")
pytest.importorskip("ncnn")

COUNT = 1 << 17

# Forms that are not element by element: sums, or what only moves elements.
OTHERS = {
    "AdaptiveAveragePool", "AveragePool", "BatchNorm", "Convolution", "Linear", "MaxPool",
    "MultiheadAttention", "TransposedConvolution", "bmm", "cat", "channel_shuffle",
    "group_norm", "layer_norm", "log_softmax", "matmul", "mm", "pixel_shuffle",
    "scaled_dot_product_attention", "softmax",
}  # fmt: skip
OTHER_NODES = {
    "AveragePool", "BatchNormalization", "Concat", "Conv", "ConvTranspose", "Gemm",
    "GlobalAveragePool", "MaxPool", "Reshape", "Softmax",
}  # fmt: skip
# Nodes that ncnn or ONNX Runtime in NCHWc computes, and a function that has each.
NODES = {
    "Abs": "abs", "Add": "add", "Ceil": "ceil", "Clip": "relu6", "Div": "divide by a number",
    "Floor": "floor", "Gelu": "gelu", "HardSigmoid": "hardsigmoid", "LeakyRelu": "leaky relu",
    "Max": "max", "Min": "min", "Mul": "mul", "Neg": "neg", "Relu": "relu",
    "Sigmoid": "sigmoid", "Sqrt": "sqrt", "Sub": "sub", "Swish": "silu",
}  # fmt: skip
NODES_IN_NCHWC = {
    "Abs": "abs", "Add": "add", "Clip": "relu6", "Div": "mish", "Exp": "exp", "Gelu": "gelu",
    "HardSigmoid": "hardsigmoid", "LeakyRelu": "leaky relu", "Max": "max", "Min": "min",
    "Mul": "mul", "Neg": "neg", "Reciprocal": "sigmoid", "Relu": "relu",
    "Softsign": "softsign", "Sub": "sub",
}  # fmt: skip


def too_large(largest):
    """Return the ranges in which an error is too large."""
    return {
        limits: error for limits, error in zip(RANGES, largest, strict=True) if not error <= FEW
    }


@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_are_a_few_units_in_the_last_place(name):
    function = FUNCTIONS[name]
    found = {strategy: too_large(largest) for strategy, largest in errors(function, COUNT)}
    assert {strategy: ranges for strategy, ranges in found.items() if ranges} == {}
    assert any(strategy.endswith(" numpy") for strategy in found)


@pytest.mark.parametrize(
    ("name", "strategies"),
    [
        ("sigmoid", {"onnxruntime/all", "onnxruntime/nchw", "onnxruntime/nchwc", "ncnn/"}),
        ("silu", {"onnxruntime/all", "onnxruntime/nchw", "onnxruntime/nchwc", "ncnn/"}),
        ("hardswish", {"onnxruntime/all", "onnxruntime/nchw", "onnxruntime/nchwc",
                       "ncnn/"}),
        ("mish", {"onnxruntime/all", "onnxruntime/nchw", "onnxruntime/nchwc"}),
        ("gelu", {"onnxruntime/all", "onnxruntime/nchw", "onnxruntime/nchwc", "ncnn/"}),
        ("gelu by tanh", {"onnxruntime/all", "onnxruntime/nchw", "onnxruntime/nchwc"}),
        ("relu", {"numpy/buffer", "onnxruntime/all", "onnxruntime/nchwc", "ncnn/"}),
        ("mul", {"numpy/buffer", "onnxruntime/all", "onnxruntime/nchwc", "ncnn/"}),
        ("tanh", {"numpy/buffer"}),
        ("elu", set()),
        ("softplus", set()),
    ],
)  # fmt: skip
def test_the_named_kernel_computes(name, strategies):
    """Otherwise a result might be right because NumPy computed it."""
    kernels = {strategy.split()[1] for strategy, _ in errors(FUNCTIONS[name], 1 << 10)}
    assert all(
        any(kernel.startswith(strategy) for kernel in kernels) for strategy in strategies
    )
    assert bool(strategies) == (kernels > {"numpy"})


KINDS = [kind for function in FUNCTIONS.values() for kind in function.kinds]
CALLS = {params["expr"].partition("(")[0] for _, params in KINDS if "expr" in params}


@pytest.mark.parametrize("lowerings", [operator_lowerings.LOWERINGS, numpy_buffers._LOWERINGS])
def test_every_lowering_has_an_entry(lowerings):
    names = {lower.__name__ for lower in lowerings._lowerings}
    assert names & OTHERS in (OTHERS, set())
    elementwise = {lower for lower in lowerings._lowerings if lower.__name__ not in OTHERS}
    elementwise.remove(OnnxExpression)  # the same, in a file that was made from ONNX
    assert elementwise <= {registration(kind).target for kind, _ in KINDS}
    assert Expression in elementwise


@pytest.mark.parametrize(
    "calls",
    [
        {*UNARY_FUNCTIONS, *BINARY_FUNCTIONS, "square"},
        {*numpy_buffers._UFUNCS},
    ],
)
def test_every_call_of_an_expression_has_an_entry(calls):
    assert calls <= CALLS


@pytest.mark.parametrize(
    ("writer", "others", "nodes", "strategy"),
    [
        (ncnn_lowering._Writer, OTHER_NODES, NODES, "ncnn/elempack"),
        (onnx_nchwc._Writer, {"Conv", "MaxPool", "AveragePool", "GlobalAveragePool",
                                "Concat"}, NODES_IN_NCHWC, "onnxruntime/nchwc"),
    ],
)  # fmt: skip
def test_every_node_has_an_entry(writer, others, nodes, strategy):
    assert set(writer._writers) - others == set(nodes)
    for name in nodes.values():
        if strategy.startswith("onnx") and not onnx_nchwc.nchwc_block_size():
            continue
        assert any(strategy in kernel for kernel, _ in errors(FUNCTIONS[name], 1 << 10)), name


@pytest.mark.parametrize("name", ["sigmoid", "silu"])
def test_the_librarys_own_sigmoid_would_fail(name, monkeypatch):
    """Its error is 3 % at -11, and six times the number at -17.7."""
    own = {
        "Sigmoid": lambda node, constant: [node],
        "Swish": lambda node, constant: [
            Node("Sigmoid", node.inputs, "gate"),
            Node("Mul", (*node.inputs, "gate"), node.output),
        ],
    }
    monkeypatch.setattr(onnx_accurate, "_EXPANSIONS", own)
    function = FUNCTIONS[name]
    found = {strategy: too_large(largest) for strategy, largest in errors(function, COUNT)}
    wrong = {
        strategy.split()[1].partition("-")[0] for strategy, ranges in found.items() if ranges
    }
    assert {"onnxruntime/all", "onnxruntime/nchw"} <= wrong
    assert not {"numpy", "ncnn/elempack"} & wrong
    assert all((-17.0, -5.0) in ranges for ranges in found.values() if ranges)


def test_units_in_the_last_place():
    """A unit is 2**-23 above 1, and half as much below."""
    found = np.float32([1 + 2**-23, 1 - 2**-24, 1, np.nan, np.inf, 1, np.nan, -0.0, 1e-39])
    right = np.float64([1, 1, 1, np.nan, np.inf, np.inf, 1, 0, 0])
    expected = [1, 0.5, 0, 0, 0, np.inf, np.inf, 0, 0]
    assert units(found, right).tolist() == expected
    # infinity follows the largest number, and is right only beyond half a unit
    found, right = np.float32([np.inf, 3.4028235e38]), np.float64([3.4028235e38, 3.40283e38])
    assert units(found, right).tolist() == [np.inf, pytest.approx(32, abs=1)]


def test_points():
    x = points(1 << 16)
    assert x.dtype == np.float32
    assert 1 << 16 <= x.size < 1.1 * (1 << 16)
    assert np.isfinite(x).all()
    exponents = np.unique(x.view(np.uint32) << 1 >> 24)
    assert exponents.tolist() == list(range(255))
    assert {0.0, -0.0} <= set(x.tolist())
    for place in (-17.7, -11, -3, 3, 88):
        assert np.count_nonzero(np.abs(x - place) < 0.1) > 50
