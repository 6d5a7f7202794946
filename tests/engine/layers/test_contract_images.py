"""What every operator on images, activation and normalisation promises.

There is one case for each of their registered types (raw ``aten::`` forms are the same code,
called in another way): it must compute on read-only inputs, leave them as they are, give
float32 for float32, and give the same twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.layers import OperatorCall, build_layer, registered_types, registration
from engine.values import flatten_value

MODULES = {
    "activations",
    "adaptive_pooling",
    "convolution",
    "dropout",
    "linear",
    "normalization",
    "padding",
    "pooling",
    "resampling",
    "softmax",
    "transposed_convolution",
    "unpooling",
    "yolo_detect",
}
SPATIAL = (7, 6, 5)


def owned_types() -> list[str]:
    return [
        name
        for name in registered_types()
        if registration(name).target.__module__ in {f"engine.layers.{m}" for m in MODULES}
        and not name.startswith("aten::")
        and name != "aten::native_dropout"  # gives a mask of bools beside
    ]


def image(rank: int, channels: int = 4) -> np.ndarray:
    shape = (2, channels, *SPATIAL[:rank])
    return np.random.default_rng(rank).standard_normal(shape, dtype=np.float32)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).random(shape, dtype=np.float32) + 0.5


def _convolution(name: str, rank: int) -> dict[str, Any]:
    case: dict[str, Any] = {"operands": [image(rank)], "params": {"stride": (2,) * rank}}
    weight = numbers(6 if "Transpose" not in name and "transpose" not in name else 4,
                     4 if "Transpose" not in name and "transpose" not in name else 6,
                     *(3,) * rank)  # fmt: skip
    if name.startswith("nn."):
        return case | {"weights": {"weight": weight, "bias": numbers(6)}}
    case["operands"] += [weight, numbers(6)]
    return case | {"names": ("input", "weight", "bias")}


def _norm(name: str, rank: int) -> dict[str, Any]:
    statistics = [numbers(4) for _ in range(4)]
    names = ("running_mean", "running_var", "weight", "bias")
    if name.startswith("nn."):
        params = {"num_features": 4, "eps": 1e-5}
        weights = dict(zip(names, statistics, strict=True))
        return {"operands": [image(rank)], "weights": weights, "params": params}
    return {"operands": [image(rank), *statistics], "names": ("input", *names)}


def _grouped(name: str) -> dict[str, Any]:
    params = {"num_groups": 2, "eps": 1e-5}
    return {"operands": [image(2), numbers(4), numbers(4)], "params": params} | {
        "names": ("input", "weight", "bias")
    }


def _layer_norm(name: str) -> dict[str, Any]:
    operands = [image(1), numbers(7)]
    return {"operands": operands, "names": ("input", "weight")} | {
        "params": {"normalized_shape": (7,), "eps": 1e-5}
    }


def _head(name: str) -> dict[str, Any]:
    grid = np.stack(np.meshgrid(np.arange(6), np.arange(7)), -1)[None, None]
    weights = {
        "m.0.weight": numbers(6, 4, 1, 1),
        "m.0.bias": numbers(6),
        "pnnx_0": np.ones((1, 1, 7, 6, 2), np.float32),
        "pnnx_1": grid.astype(np.float32),
        "pnnx_2": np.array([8], np.float32),
    }
    return {"operands": [image(2)], "weights": weights}


def _unpooling(name: str, rank: int) -> dict[str, Any]:
    places = np.arange(2**rank).reshape(1, 1, *(2,) * rank)
    return {"operands": [numbers(*places.shape), places], "params": {"kernel_size": 2}}


def _simple(operands: Any = None, **params: Any) -> Any:
    return lambda name: {"operands": operands or [image(2)], "params": params}


def _ranked(**params: Any) -> Any:
    return lambda name, rank: {"operands": [image(rank)], "params": params}


def _padding(name: str, rank: int) -> dict[str, Any]:
    return {"operands": [image(rank)], "params": {"padding": (1, 2) * rank}}


# By the type without its package and its number of spatial axes.
CASES: dict[str, Any] = {
    "Conv": _convolution,
    "conv": _convolution,
    "ConvTranspose": _convolution,
    "conv_transpose": _convolution,
    "torch.convolution": _simple(
        [image(2), numbers(6, 4, 3, 3), numbers(6)],
        stride=1,
        padding=1,
        dilation=1,
        transposed=False,
        output_padding=0,
        groups=1,
    ),
    "MaxPool": _ranked(kernel_size=2),
    "max_pool": _ranked(kernel_size=3, stride=2, padding=1),
    "AvgPool": _ranked(kernel_size=2),
    "avg_pool": _ranked(kernel_size=3, stride=2, padding=1),
    "LPPool": _ranked(kernel_size=2, norm_type=2.0),
    "lp_pool": _ranked(kernel_size=2, norm_type=2.0),
    "AdaptiveAvgPool": _ranked(output_size=2),
    "adaptive_avg_pool": _ranked(output_size=3),
    "AdaptiveMaxPool": _ranked(output_size=2),
    "adaptive_max_pool": _ranked(output_size=3),
    "MaxUnpool": _unpooling,
    "max_unpool": _unpooling,
    "BatchNorm": _norm,
    "InstanceNorm": _norm,
    "ConstantPad": _padding,
    "ZeroPad": _padding,
    "ReflectionPad": _padding,
    "ReplicationPad": _padding,
    "CircularPad": _padding,
    "Dropout": _ranked(),
    "dropout": _ranked(),
    "batch_norm": lambda name: _norm(name, 2),
    "instance_norm": lambda name: _norm(name, 2),
    "GroupNorm": _grouped,
    "group_norm": _grouped,
    "LayerNorm": _layer_norm,
    "layer_norm": _layer_norm,
    "RMSNorm": _layer_norm,
    "rms_norm": _layer_norm,
    "LocalResponseNorm": _simple(size=3),
    "local_response_norm": _simple(size=3),
    "Linear": lambda name: {"operands": [numbers(3, 4)], "weights": {"weight": numbers(2, 4)}},
    "linear": _simple([numbers(3, 4), numbers(2, 4)]),
    "Bilinear": lambda name: {
        "operands": [numbers(3, 4), numbers(3, 5)],
        "weights": {"weight": numbers(2, 4, 5)},
    },
    "bilinear": _simple([numbers(3, 4), numbers(3, 5), numbers(2, 4, 5)]),
    "PReLU": _simple([image(2), numbers(4)]),
    "prelu": _simple([image(2), numbers(4)]),
    "Threshold": _simple(threshold=0.1, value=2.0),
    "threshold": _simple(threshold=0.1, value=2.0),
    "pad": _simple(pad=(1, 2), mode="reflect"),
    "constant_pad_nd": _simple(pad=(1, 2), value=0.5),
    "Upsample": _simple(scale_factor=(2.0, 1.5), mode="bilinear"),
    "interpolate": _simple(size=(3, 9), mode="bicubic"),
    "upsample": _simple(size=(3, 9)),
    "UpsamplingNearest": _ranked(scale_factor=2.0),
    "UpsamplingBilinear": _ranked(scale_factor=2.0),
    "upsample_nearest": _simple(scale_factor=2.0),
    "upsample_bilinear": _simple(size=(3, 4)),
    "models.yolo.Detect": _head,
}


def case_of(name: str) -> dict[str, Any]:
    """The case of a type; operators without arguments need no row of their own."""
    bare = name.partition(".")[2]
    if bare[-2:] in {"1d", "2d", "3d"} and bare[:-2] in CASES:
        return CASES[bare[:-2]](name, int(bare[-2]))
    if name in CASES or bare in CASES:
        chosen = CASES[name] if name in CASES else CASES[bare]
        return chosen(name, 2) if bare in {"Dropout", "dropout"} else chosen(name)
    return {"operands": [image(2)]}


def test_every_module_is_covered():
    found = {registration(name).target.__module__.rpartition(".")[2] for name in owned_types()}
    assert found == MODULES


def read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("name", owned_types())
def test_contract(name):
    case = case_of(name)
    operands = [read_only(array) for array in case["operands"]]
    weights = {key: read_only(array) for key, array in case.get("weights", {}).items()}
    layer = build_layer(
        OperatorCall(
            name="op",
            type=name,
            params=case.get("params", {}),
            attributes=weights,
            input_names=case.get("names", ("",) * len(operands)),
        )
    )
    first = tuple(flatten_value(layer.forward(*operands)))
    second = tuple(flatten_value(layer.forward(*operands)))
    for once, again in zip(first, second, strict=True):
        assert isinstance(once, np.ndarray)
        assert once.dtype == np.float32
        assert once.size
        np.testing.assert_array_equal(once, again)
    for array, original in zip(operands, case["operands"], strict=True):
        np.testing.assert_array_equal(array, original)
    for key, array in weights.items():
        np.testing.assert_array_equal(array, case["weights"][key])


@pytest.mark.parametrize("name", owned_types())
def test_every_type_is_documented(name):
    """The first line, which the app shows, says what is computed and PyTorch's name."""
    text = registration(name).target.__doc__
    assert text
    assert text.splitlines()[0].endswith(".")
