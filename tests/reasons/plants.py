"""Faults to plant: PyTorch computes the truth, and our operator differs.

A plant is a function of a random generator. It returns the operator of the file, the inputs,
the truth, and the kinds of right first reasons. It returns no kinds if there must be no
explanation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - the field's own name

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator

PLANTS: dict[str, Callable[[Generator], Planted]] = {}


@dataclass
class Planted:
    """An operator of ours and the reference's result.

    Attributes
    ----------
    type, params, weights
        Of our operator.
    inputs : list of ndarray
    expected : ndarray
    kinds : set of str
        Right first reasons.
    names : tuple of str
        Argument names of the inputs.
    """

    type: str
    params: dict[str, Any]
    weights: dict[str, np.ndarray]
    inputs: list[np.ndarray]
    expected: np.ndarray
    kinds: set[str]
    names: tuple[str, ...] = field(default=())


def plant(function: Callable[[Generator], Planted]) -> Callable[[Generator], Planted]:
    """Add a plant to the table, under the name of its function."""
    PLANTS[function.__name__] = function
    return function


def normal(rng: Generator, *shape: int, scale: float = 1.0) -> np.ndarray:
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def tensor(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.array(array))


def pick(rng: Generator, *items: Any) -> Any:
    return items[int(rng.integers(len(items)))]


class Conv:
    """A random convolution of ours and PyTorch's function for it."""

    def __init__(
        self, rng: Generator, *, rank: int = 0, transposed: bool = False, **fixed: Any
    ) -> None:
        self.rank = rank or int(rng.integers(1, 4))
        self.transposed = transposed
        groups = fixed.pop("groups", pick(rng, 1, 1, 2))
        per = fixed.pop("per_group", int(rng.integers(2, 7)))
        outs = int(rng.integers(2, 7)) * groups
        ins = per * groups
        kernel = fixed.pop("kernel", pick(rng, (3,), (3,), (2,), (5,)) * self.rank)
        lead = (ins, outs // groups) if transposed else (outs, per)
        fan = np.sqrt(per * np.prod(kernel))
        self.weights = {"weight": normal(rng, *lead, *kernel, scale=1 / fan)}
        with_bias = fixed.pop("bias", bool(rng.integers(2)))
        if with_bias:
            self.weights["bias"] = normal(rng, outs)
        size = fixed.pop("size", {1: 24, 2: 14, 3: 9}[self.rank])
        self.x = normal(rng, pick(rng, 1, 2), ins, *(size + n for n in range(self.rank)))
        self.values = {
            "stride": (pick(rng, 1, 1, 2),) * self.rank,
            "padding": (int(rng.integers(0, 2)),) * self.rank,
            "dilation": (1,) * self.rank,
            "groups": groups,
            **fixed,
        }
        self.ins, self.outs, self.kernel = ins, outs, kernel
        if not transposed:
            self.values.setdefault("padding_mode", "zeros")

    def truth(self, x: np.ndarray | None = None, **changes: Any) -> np.ndarray:
        weights = {k: changes.pop(k) for k in list(changes) if k in {"weight", "bias"}}
        weights = {**self.weights, **weights}
        values = {**self.values, **changes}
        mode = values.pop("padding_mode", "zeros")
        data = tensor(self.x if x is None else x)
        if mode != "zeros":
            pads = [p for p in reversed(values["padding"]) for _ in range(2)]
            data = F.pad(data, pads, mode=mode)
            values["padding"] = (0,) * self.rank
        name = f"conv_transpose{self.rank}d" if self.transposed else f"conv{self.rank}d"
        bias = weights.get("bias")
        with torch.no_grad():
            result = getattr(F, name)(
                data,
                tensor(weights["weight"]),
                None if bias is None else tensor(bias),
                **values,
            )
        return result.numpy()

    def planted(
        self, expected: np.ndarray, *kinds: str, weights: Any = None, **changes: Any
    ) -> Planted:
        params = {
            "in_channels": self.ins,
            "out_channels": self.outs,
            "kernel_size": self.kernel,
            "bias": "bias" in (self.weights if weights is None else weights),
            **self.values,
            **changes,
        }
        name = "ConvTranspose" if self.transposed else "Conv"
        return Planted(
            f"nn.{name}{self.rank}d", params, self.weights if weights is None else weights,
            [self.x], expected, set(kinds),
        )  # fmt: skip


# Windows


@plant
def conv_padding(rng: Generator) -> Planted:
    conv = Conv(rng)
    theirs = tuple(int(n) for n in rng.integers(0, 3, conv.rank))
    ours = conv.values["padding"]
    if theirs == ours:
        theirs = (ours[0] + 1,) * conv.rank
    return conv.planted(conv.truth(padding=theirs), "padding")


@plant
def conv_padding_mode(rng: Generator) -> Planted:
    conv = Conv(rng, padding=(1,) * 2, rank=2, kernel=(3, 3), stride=(1, 1))
    mode = pick(rng, "reflect", "replicate", "circular")
    if rng.integers(2):
        return conv.planted(conv.truth(padding_mode=mode), "padding")
    return conv.planted(conv.truth(), "padding", padding_mode=mode)


@plant
def conv_uneven_padding(rng: Generator) -> Planted:
    conv = Conv(rng, rank=2, kernel=(3, 3), stride=(2, 2), padding=(1, 1), size=12)
    conv.x = conv.x[..., :12, :12].copy()
    padded = np.pad(conv.x, ((0, 0), (0, 0), (0, 1), (0, 1)))
    return conv.planted(conv.truth(padded, padding=(0, 0)), "padding")


@plant
def conv_stride(rng: Generator) -> Planted:
    conv = Conv(rng)
    ours = conv.values["stride"][0]
    return conv.planted(conv.truth(stride=(pick(rng, *({1, 2, 3} - {ours})),) * conv.rank),
                        "stride")  # fmt: skip


@plant
def conv_dilation(rng: Generator) -> Planted:
    conv = Conv(rng, kernel=None or (3,) * 3, rank=3) if rng.integers(3) == 0 else Conv(
        rng, kernel=(3, 3), rank=2)  # fmt: skip
    return conv.planted(conv.truth(dilation=(2,) * conv.rank), "dilation")


@plant
def conv_dilation_and_padding(rng: Generator) -> Planted:
    conv = Conv(rng, kernel=(3, 3), rank=2, padding=(1, 1))
    return conv.planted(conv.truth(dilation=(2, 2), padding=(2, 2)), "dilation")


@plant
def transposed_windows(rng: Generator) -> Planted:
    conv = Conv(rng, transposed=True, rank=2, kernel=(3, 3), stride=(2, 2), padding=(1, 1))
    kind = pick(rng, "padding", "stride", "dilation")
    value = {"padding": (0, 0), "stride": (3, 3), "dilation": (2, 2)}[kind]
    return conv.planted(conv.truth(**{kind: value}), kind)


@plant
def transposed_output_padding(rng: Generator) -> Planted:
    conv = Conv(rng, transposed=True, rank=2, kernel=(3, 3), stride=(2, 2), padding=(1, 1))
    return conv.planted(conv.truth(output_padding=(1, 1)), "padding")


@plant
def conv_groups(rng: Generator) -> Planted:
    groups = pick(rng, 2, 4)
    conv = Conv(rng, rank=2, groups=groups, per_group=2)
    truth = conv.truth()
    dense = np.tile(conv.weights["weight"], (1, groups, 1, 1))
    if rng.integers(2):  # the rest of the weight is other numbers
        dense = normal(rng, *dense.shape)
        kernels = conv.outs // groups
        for g in range(groups):
            rows = slice(g * kernels, (g + 1) * kernels)
            dense[rows, g * 2 : g * 2 + 2] = conv.weights["weight"][rows]
    return conv.planted(truth, "groups", weights={**conv.weights, "weight": dense}, groups=1)


def pool(rng: Generator, kind: str, **more: Any) -> tuple[dict[str, Any], np.ndarray]:
    values = {"kernel_size": (3, 3), "stride": (2, 2), "padding": (1, 1), "ceil_mode": False}
    return {**values, **more}, normal(rng, 2, 3, 14, 13)


def pooled(kind: str, x: np.ndarray, values: dict[str, Any]) -> np.ndarray:
    with torch.no_grad():
        return getattr(F, f"{kind}_pool2d")(tensor(x), **values).numpy()


def pool_plant(rng: Generator, change: str, *options: Any, kind: str = "") -> Planted:
    name = kind or pick(rng, "max", "avg")
    values, x = pool(rng, name)
    if change == "ceil_mode":
        x = normal(rng, 2, 3, 14, 14)
        values["padding"] = (0, 0)
    old = values.get(change, {"count_include_pad": True, "dilation": (1, 1)}.get(change))
    new = pick(rng, *(o for o in options if o != old))
    if rng.integers(2) and change in {"ceil_mode", "count_include_pad"}:
        old, new = new, old
    theirs, ours = {**values, change: new}, {**values, change: old}
    kinds = {"kernel_size": "parameter"}.get(change, change)
    type_ = f"nn.{name.title()}Pool2d"
    if rng.integers(2):
        type_ = f"F.{name}_pool2d"
    return Planted(type_, ours, {}, [x], pooled(name, x, theirs), {kinds})


@plant
def pool_padding(rng: Generator) -> Planted:
    return pool_plant(rng, "padding", (0, 0), (1, 0))


@plant
def pool_stride(rng: Generator) -> Planted:
    return pool_plant(rng, "stride", (1, 1), (3, 3), (2, 1))


@plant
def pool_dilation(rng: Generator) -> Planted:
    return pool_plant(rng, "dilation", (2, 2), kind="max")


@plant
def pool_kernel(rng: Generator) -> Planted:
    return pool_plant(rng, "kernel_size", (2, 2), (4, 4), (5, 5))


@plant
def pool_ceil_mode(rng: Generator) -> Planted:
    return pool_plant(rng, "ceil_mode", True)


@plant
def pool_count_include_pad(rng: Generator) -> Planted:
    return pool_plant(rng, "count_include_pad", False, kind="avg")


# Weights


def linear(rng: Generator, rows: int = 20) -> tuple[dict[str, np.ndarray], np.ndarray]:
    ins, outs = int(rng.integers(4, 13)), int(rng.integers(3, 9))
    weights = {"weight": normal(rng, outs, ins), "bias": normal(rng, outs)}
    return weights, normal(rng, 2, rows, ins)


def linear_truth(x: np.ndarray, weights: dict[str, np.ndarray]) -> np.ndarray:
    bias = weights.get("bias")
    return F.linear(
        tensor(x), tensor(weights["weight"]), None if bias is None else tensor(bias)
    ).numpy()


def linear_plant(
    x: np.ndarray, weights: dict[str, np.ndarray], expected: np.ndarray, *kinds: str
) -> Planted:
    outs, ins = weights["weight"].shape
    params = {"in_features": ins, "out_features": outs, "bias": "bias" in weights}
    return Planted("nn.Linear", params, weights, [x], expected, set(kinds))


def disturbed(rng: Generator, weight: np.ndarray) -> np.ndarray:
    """Return a weight with one element, some, one channel, or all changed."""
    other = weight.copy()
    how = int(rng.integers(4))
    if how == 0:
        other.flat[int(rng.integers(other.size))] += np.float32(pick(rng, 0.5, -1, 3))
    elif how == 1:
        places = rng.choice(other.size, min(4, other.size), replace=False)
        other.flat[places] = 0
        other.flat[places[0]] += 2
    elif how == 2:
        other[int(rng.integers(len(other)))] += normal(rng, *other.shape[1:])
    else:
        other += normal(rng, *other.shape, scale=0.05)
    return other


@plant
def conv_weight_values(rng: Generator) -> Planted:
    conv = Conv(rng, rank=2, kernel=(3, 3), size=20, stride=(1, 1))
    other = disturbed(rng, conv.weights["weight"])
    return conv.planted(
        conv.truth(), "weight_values", weights={**conv.weights, "weight": other}
    )


@plant
def transposed_weight_values(rng: Generator) -> Planted:
    conv = Conv(rng, rank=2, kernel=(3, 3), transposed=True, size=16)
    other = disturbed(rng, conv.weights["weight"])
    return conv.planted(
        conv.truth(), "weight_values", weights={**conv.weights, "weight": other}
    )


@plant
def linear_weight_values(rng: Generator) -> Planted:
    weights, x = linear(rng)
    ours = {**weights, "weight": disturbed(rng, weights["weight"])}
    return linear_plant(x, ours, linear_truth(x, weights), "weight_values")


@plant
def norm_weight_values(rng: Generator) -> Planted:
    norm = Norm(rng, pick(rng, "batch", "group", "layer", "instance"))
    name = pick(rng, "weight", "weight", "running_var") if norm.kind == "batch" else "weight"
    other = norm.weights[name].copy()
    some = rng.choice(len(other), pick(rng, 1, len(other)), replace=False)
    other[some] *= rng.uniform(1.5, 3, len(some)).astype(np.float32)
    return norm.planted(norm.truth(), "weight_values", weights={name: other})


@plant
def embedding_values(rng: Generator) -> Planted:
    table, index = normal(rng, 20, 6), rng.integers(0, 20, (2, 9))
    other = table.copy()
    other[index[0, 0], 2] += 1
    return Planted(
        "nn.Embedding", {"num_embeddings": 20, "embedding_dim": 6}, {"weight": other}, [index],
        F.embedding(tensor(index), tensor(table)).numpy(), {"weight_values"},
    )  # fmt: skip


@plant
def index_rows(rng: Generator) -> Planted:
    """The rows that a model drew when it was exported, as ViLT draws patches."""
    x, count = normal(rng, 1, 12, 6), int(rng.integers(2, 12))
    theirs, ours = rng.permutation(12)[:count], rng.permutation(12)[:count]
    ours[0] = (theirs[0] + 1) % 12
    lists = tuple(f"{[0] * count},{ours.tolist()}".replace(" ", "").split(","))
    return Planted(
        "Tensor.index", {"expr": lists}, {}, [x],
        tensor(x)[torch.zeros(count, dtype=torch.long), tensor(theirs)].numpy(), {"parameter"},
    )  # fmt: skip


@plant
def prelu_values(rng: Generator) -> Planted:
    x, slopes = normal(rng, 2, 5, 6, 6), rng.uniform(0, 0.5, 5).astype(np.float32)
    other = slopes.copy()
    other[int(rng.integers(5))] += 0.2
    return Planted(
        "nn.PReLU", {"num_parameters": 5}, {"weight": other}, [x],
        F.prelu(tensor(x), tensor(slopes)).numpy(), {"weight_values"},
    )  # fmt: skip


@plant
def attribute_values(rng: Generator) -> Planted:
    weight = normal(rng, 1, 5, 8)
    return Planted("pnnx.Attribute", {}, {"data": disturbed(rng, weight)}, [], weight,
                   {"weight_values", "scale"})  # fmt: skip


@plant
def conv_layout(rng: Generator) -> Planted:
    conv = Conv(rng, rank=2, groups=1, kernel=(3, 3), per_group=int(rng.integers(2, 9)))
    weight = conv.weights["weight"]
    how = int(rng.integers(7))
    orders = ((1, 0, 2, 3), (2, 3, 1, 0), (0, 2, 3, 1), (2, 3, 0, 1), (0, 1, 3, 2))
    if how < 5:
        other = weight.transpose(orders[how]).reshape(weight.shape)
    else:
        other = np.flip(weight, (2, 3)) if how == 5 else np.flip(weight, (3,))
    return conv.planted(
        conv.truth(), "weight_layout", weights={**conv.weights, "weight": other}
    )


@plant
def conv_channels_permuted(rng: Generator) -> Planted:
    conv = Conv(rng, rank=2, groups=1, kernel=(3, 3), per_group=6, bias=False)
    weight = conv.weights["weight"]
    if rng.integers(2):
        other = weight[rng.permutation(len(weight))]
        if np.array_equal(other, weight):
            other = weight[::-1]
    else:
        other = weight[:, ::-1] if rng.integers(2) else np.roll(weight, 3, 1)
    return conv.planted(
        conv.truth(), "weight_layout", weights={**conv.weights, "weight": other}
    )


@plant
def transposed_layout(rng: Generator) -> Planted:
    conv = Conv(rng, rank=2, groups=1, kernel=(3, 3), per_group=4, transposed=True)
    weight = conv.weights["weight"]
    other = pick(rng, np.flip(weight, (2, 3)), weight.swapaxes(2, 3),
                 weight.transpose(1, 0, 2, 3).reshape(weight.shape))  # fmt: skip
    if np.array_equal(other, weight):
        other = np.flip(weight, (2, 3))
    return conv.planted(
        conv.truth(), "weight_layout", weights={**conv.weights, "weight": other}
    )


@plant
def linear_layout(rng: Generator) -> Planted:
    weights = {"weight": normal(rng, 6, 24), "bias": normal(rng, 6)}
    x = normal(rng, 3, 24)
    truth = linear_truth(x, weights)
    weight = weights["weight"]
    other = pick(
        rng,
        weight.T.reshape(weight.shape),
        weight.reshape(6, 4, 6).transpose(0, 2, 1).reshape(weight.shape),
        weight.reshape(6, 3, 8).transpose(0, 2, 1).reshape(weight.shape),
        weight[:, ::-1],
    )
    return linear_plant(x, {**weights, "weight": np.ascontiguousarray(other)}, truth,
                        "weight_layout")  # fmt: skip


@plant
def linear_transposed(rng: Generator) -> Planted:
    weights, x = {"weight": normal(rng, 7, 7), "bias": normal(rng, 7)}, normal(rng, 2, 7)
    ours = {**weights, "weight": np.ascontiguousarray(weights["weight"].T)}
    return linear_plant(x, ours, linear_truth(x, weights), "weight_layout")


class Recurrent:
    """A random layer of PyTorch with gates, its input and its result."""

    def __init__(self, rng: Generator) -> None:
        self.kind = pick(rng, "LSTM", "GRU")
        self.gates = {"LSTM": 4, "GRU": 3}[self.kind]
        torch.manual_seed(int(rng.integers(1 << 30)))
        module = getattr(torch.nn, self.kind)(4, 5, batch_first=True)
        self.x = normal(rng, 2, 6, 4)
        with torch.no_grad():
            self.truth = module(tensor(self.x))[0].numpy()
        self.weights = {k: v.detach().numpy() for k, v in module.named_parameters()}

    def planted(self, weights: dict[str, np.ndarray]) -> Planted:
        """Give the layer other weights, in another order."""
        params = {"input_size": 4, "hidden_size": 5, "num_layers": 1, "bias": True,
                  "batch_first": True, "bidirectional": False}  # fmt: skip
        return Planted(f"nn.{self.kind}", params, weights, [self.x], self.truth,
                       {"weight_layout"})  # fmt: skip


@plant
def gate_order(rng: Generator) -> Planted:
    layer = Recurrent(rng)
    order = np.arange(layer.gates)
    while (order == np.arange(layer.gates)).all():
        order = rng.permutation(layer.gates)
    return layer.planted(
        {k: v.reshape(layer.gates, 5, -1)[order].reshape(v.shape)
         for k, v in layer.weights.items()}
    )  # fmt: skip


@plant
def gates_transposed(rng: Generator) -> Planted:
    layer = Recurrent(rng)
    name = pick(rng, "weight_ih_l0", "weight_hh_l0")
    right = layer.weights[name]
    others = [right.T.reshape(right.shape), right.reshape(right.T.shape).T]
    if name == "weight_hh_l0":
        others.append(np.concatenate([gate.T for gate in np.split(right, layer.gates)]))
    return layer.planted({**layer.weights, name: np.ascontiguousarray(pick(rng, *others))})


@plant
def bias_missing_or_other(rng: Generator) -> Planted:
    what = pick(rng, "conv", "linear", "norm", "transposed")
    if what == "linear":
        weights, x = linear(rng)
        target, truth = weights, linear_truth(x, weights)
    elif what == "norm":
        norm = Norm(rng, pick(rng, "batch", "group", "layer"))
        target, truth = norm.weights, norm.truth()
    else:
        conv = Conv(rng, rank=2, kernel=(3, 3), transposed=what == "transposed", bias=True)
        target, truth = conv.weights, conv.truth()
    how = int(rng.integers(4 if what != "norm" else 3))
    bias = target["bias"].copy()
    if how == 0:
        bias[:] = 0
    elif how == 1:
        bias[int(rng.integers(len(bias)))] += np.float32(pick(rng, -1, 0.3))
    elif how == 2:
        bias += normal(rng, len(bias))
    ours = {**target, "bias": bias}
    if how == 3:
        ours = {"weight": target["weight"]}
    if what == "linear":
        return linear_plant(x, ours, truth, "bias")
    if what == "norm":
        return norm.planted(truth, "bias", weights=ours)
    return conv.planted(truth, "bias", weights=ours)


@plant
def bias_extra(rng: Generator) -> Planted:
    conv = Conv(rng, rank=2, kernel=(3, 3), bias=False)
    ours = {**conv.weights, "bias": normal(rng, conv.outs)}
    return conv.planted(conv.truth(), "bias", weights=ours)


# Normalisation


class Norm:
    """A random normalisation of ours and PyTorch's function for it."""

    def __init__(self, rng: Generator, kind: str) -> None:
        self.kind, channels = kind, 6
        self.x = normal(rng, 3, channels, 7, 8) * 0.7 + 0.4
        self.params: dict[str, Any] = {"eps": 1e-5}
        shape: Any = channels
        if kind == "layer":
            self.x = normal(rng, 3, 10, 12) + 0.4
            shape = 12
            self.params |= {"normalized_shape": (12,), "elementwise_affine": True}
        elif kind == "group":
            self.params |= {"num_groups": 3, "num_channels": channels, "affine": True}
        else:
            self.params |= {"num_features": channels, "affine": True}
        self.weights = {
            "weight": rng.uniform(0.5, 2, shape).astype(np.float32),
            "bias": normal(rng, shape),
        }
        if kind == "batch":
            self.weights["running_mean"] = normal(rng, channels, scale=0.3)
            self.weights["running_var"] = rng.uniform(0.3, 2, channels).astype(np.float32)
        names = {"batch": "BatchNorm2d", "layer": "LayerNorm", "instance": "InstanceNorm2d"}
        self.type = f"nn.{names.get(kind, 'GroupNorm')}"

    def truth(self, **changes: Any) -> np.ndarray:
        params = {**self.params, **{k: v for k, v in changes.items() if k in self.params}}
        weights = {**self.weights, **{k: v for k, v in changes.items() if k in self.weights}}
        w = {k: None if v is None else tensor(v) for k, v in weights.items()}
        x, eps = tensor(changes.get("x", self.x)), params["eps"]
        if self.kind == "batch":
            own = w["running_mean"] is None
            return F.batch_norm(
                x, w["running_mean"], w["running_var"], w["weight"], w["bias"], own, 0.1, eps
            ).numpy()
        if self.kind == "layer":
            return F.layer_norm(x, (12,), w["weight"], w["bias"], eps).numpy()
        if self.kind == "group":
            return F.group_norm(x, params["num_groups"], w["weight"], w["bias"], eps).numpy()
        return F.instance_norm(x, None, None, w["weight"], w["bias"], True, 0.1, eps).numpy()

    def planted(
        self, expected: np.ndarray, *kinds: str, weights: Any = None, **changes: Any
    ) -> Planted:
        ours = {**self.weights, **(weights or {})}
        params = {**self.params, **changes}
        return Planted(self.type, params, ours, [self.x], expected, set(kinds))


@plant
def norm_eps(rng: Generator) -> Planted:
    norm = Norm(rng, pick(rng, "batch", "group", "layer", "instance"))
    norm.x = norm.x * np.float32(pick(rng, 1, 0.1, 0.03))
    eps = pick(rng, 1e-3, 1e-2, 3e-3, 5e-4)
    return norm.planted(norm.truth(eps=eps), "eps")


@plant
def norm_batch_statistics(rng: Generator) -> Planted:
    norm = Norm(rng, "batch")
    return norm.planted(norm.truth(running_mean=None, running_var=None), "normalization")


@plant
def norm_without_affine(rng: Generator) -> Planted:
    norm = Norm(rng, pick(rng, "batch", "group", "layer"))
    which = pick(rng, ("weight",), ("weight", "bias"))
    if rng.integers(2):  # the file has none
        own = {k: np.full_like(norm.weights[k], k == "weight") for k in ("weight", "bias")}
        return norm.planted(norm.truth(), "normalization", weights=own)
    kind = "normalization" if len(which) == 2 else "weight_values"
    return norm.planted(norm.truth(**dict.fromkeys(which)), kind)


@plant
def norm_other_axes(rng: Generator) -> Planted:
    norm = Norm(rng, "group")
    w = [tensor(norm.weights[k]) for k in ("weight", "bias")]
    truth = F.instance_norm(tensor(norm.x), None, None, *w, True).numpy()
    return norm.planted(truth, "normalization", "groups")


@plant
def norm_unbiased(rng: Generator) -> Planted:
    norm = Norm(rng, "layer")
    x = tensor(norm.x)
    z = (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True) + 1e-5)
    if rng.integers(2):
        z = (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-5)
    truth = z * tensor(norm.weights["weight"]) + tensor(norm.weights["bias"])
    return norm.planted(truth.numpy(), "normalization")


@plant
def norm_rms(rng: Generator) -> Planted:
    norm = Norm(rng, "layer")
    x = tensor(norm.x)
    z = x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-5)
    truth = z * tensor(norm.weights["weight"]) + tensor(norm.weights["bias"])
    return norm.planted(truth.numpy(), "normalization")


@plant
def group_norm_groups(rng: Generator) -> Planted:
    norm = Norm(rng, "group")
    return norm.planted(norm.truth(num_groups=pick(rng, 1, 2)), "groups", "normalization")


# Activations


@plant
def activation_missing(rng: Generator) -> Planted:
    _, function = pick(
        rng,
        ("relu", F.relu), ("relu6", lambda x: F.relu6(3 * x / 3)), ("sigmoid", torch.sigmoid),
        ("silu", F.silu), ("gelu", F.gelu), ("tanh", torch.tanh), ("hardswish", F.hardswish),
        ("gelu tanh", lambda x: F.gelu(x, approximate="tanh")),
        ("leaky", lambda x: F.leaky_relu(x, 0.1)),
        ("odd leaky", lambda x: F.leaky_relu(x, 0.37)),
        ("clamp", lambda x: torch.clamp(x, -0.5, 0.8)), ("mish", F.mish), ("elu", F.elu),
        ("softmax", lambda x: torch.softmax(x, 1)), ("softplus", F.softplus),
    )  # fmt: skip
    if rng.integers(2):
        conv = Conv(rng, rank=2, kernel=(3, 3))
        truth = conv.truth() * np.float32(3)
        conv.weights = {k: v * np.float32(3) for k, v in conv.weights.items()}
        return conv.planted(function(tensor(conv.truth())).numpy(), "activation_missing")
    weights, x = linear(rng)
    truth = linear_truth(x, weights)
    return linear_plant(x, weights, function(tensor(truth)).numpy(), "activation_missing")


@plant
def activation_extra(rng: Generator) -> Planted:
    x = normal(rng, 2, 4, 8, 8)
    type_ = pick(rng, "nn.ReLU", "nn.SiLU", "F.sigmoid", "nn.GELU", "F.relu6", "nn.Tanh")
    return Planted(type_, {}, {}, [x], x, {"activation_extra"})


@plant
def activation_other(rng: Generator) -> Planted:
    x = normal(rng, 2, 4, 8, 8, scale=4)
    ours, theirs = pick(
        rng,
        ("nn.ReLU", F.silu), ("nn.ReLU", F.relu6), ("nn.SiLU", F.relu), ("nn.GELU", F.relu),
        ("nn.Sigmoid", torch.tanh), ("nn.Hardswish", F.silu), ("F.relu", F.gelu),
        ("nn.ReLU", lambda t: F.leaky_relu(t, 0.2)),
    )  # fmt: skip
    return Planted(ours, {}, {}, [x], theirs(tensor(x)).numpy(),
                   {"activation_missing", "activation_extra"})  # fmt: skip


# Parameters


@plant
def parameter_numbers(rng: Generator) -> Planted:
    x = normal(rng, 2, 4, 7, 7, scale=2)
    t = tensor(x)
    slope = float(np.round(rng.uniform(0.05, 0.4), 2))
    return pick(
        rng,
        Planted("nn.LeakyReLU", {"negative_slope": 0.01}, {}, [x],
                F.leaky_relu(t, slope).numpy(), {"parameter"}),
        Planted("nn.ELU", {"alpha": 1.0}, {}, [x], F.elu(t, 1 + slope).numpy(), {"parameter"}),
        Planted("nn.GELU", {"approximate": "none"}, {}, [x],
                F.gelu(t, approximate="tanh").numpy(), {"parameter"}),
        Planted("nn.Hardtanh", {"min_val": -1.0, "max_val": 1.0}, {}, [x],
                F.hardtanh(t, -1, 1 + slope).numpy(), {"parameter"}),
        Planted("nn.Softplus", {"beta": 1.0, "threshold": 20.0}, {}, [x],
                F.softplus(t, 1 + 3 * slope).numpy(), {"parameter"}),
        Planted("nn.LocalResponseNorm", {"size": 3, "alpha": 0.1, "beta": 0.75, "k": 1.0}, {},
                [x], F.local_response_norm(t, 3, 0.1, 0.75, 2.0).numpy(), {"parameter"}),
        Planted("nn.PixelShuffle", {"upscale_factor": 2}, {}, [normal(rng, 1, 36, 4, 4)],
                None, {"parameter"}),
        Planted("F.normalize", {"p": 2.0, "dim": 1, "eps": 1e-12}, {}, [x],
                F.normalize(t, 1.0, 1).numpy(), {"parameter"}),
        Planted("torch.roll", {"shifts": (1,), "dims": (2,)}, {}, [x],
                torch.roll(t, (2,), (2,)).numpy(), {"parameter"}),
    )  # fmt: skip


@plant
def interpolation(rng: Generator) -> Planted:
    x = normal(rng, 1, 3, 7, 9)
    t = tensor(x)
    size = (15, 20)
    if rng.integers(2):
        ours, theirs = pick(rng, (True, False), (False, True))
        params = {"size": size, "mode": "bilinear", "align_corners": ours}
        truth = F.interpolate(t, size, mode="bilinear", align_corners=theirs)
        return Planted("F.interpolate", params, {}, [x], truth.numpy(), {"align_corners"})
    mode = pick(rng, "nearest", "bicubic", "nearest-exact", "area")
    params = {"size": size, "mode": "bilinear", "align_corners": False}
    if rng.integers(2):
        params = {"size": size, "mode": mode}
        mode = "bilinear"
    truth = F.interpolate(t, size, mode=mode)
    return Planted("F.interpolate", params, {}, [x], truth.numpy(), {"parameter"})


@plant
def grid_corners(rng: Generator) -> Planted:
    x = normal(rng, 1, 3, 7, 9)
    grid = rng.uniform(-0.9, 0.9, (1, 5, 6, 2)).astype(np.float32)
    params = {"mode": "bilinear", "padding_mode": "zeros", "align_corners": False}
    truth = F.grid_sample(tensor(x), tensor(grid), align_corners=True).numpy()
    return Planted("F.grid_sample", params, {}, [x, grid], truth, {"align_corners"},
                   ("input", "grid"))  # fmt: skip


@plant
def pad_numbers(rng: Generator) -> Planted:
    x = normal(rng, 1, 3, 7, 9)
    pad = (1, 2, 0, 1)
    how = int(rng.integers(3))
    if how == 0:
        truth, ours = F.pad(tensor(x), (2, 1, 1, 0)), {"pad": pad, "mode": "constant"}
    elif how == 1:
        truth, ours = F.pad(tensor(x), pad, "reflect"), {"pad": pad, "mode": "constant"}
    else:
        truth, ours = F.pad(tensor(x), (1, 1, 1, 1)), {"pad": (0, 0, 0, 0), "mode": "constant"}
    return Planted("F.pad", ours, {}, [x], truth.numpy(), {"padding", "parameter"})


@plant
def axis(rng: Generator) -> Planted:
    x = normal(rng, 3, 4, 5, 6)
    t = tensor(x)
    a, b = rng.permutation(4)[:2].tolist()
    cube = tensor(normal(rng, 4, 4, 4))
    c, d = rng.permutation(3)[:2].tolist()
    return pick(
        rng,
        Planted("F.softmax", {"dim": a}, {}, [x], torch.softmax(t, b).numpy(), {"axis"}),
        Planted("nn.LogSoftmax", {"dim": a}, {}, [x], torch.log_softmax(t, b).numpy(),
                {"axis"}),
        Planted("torch.mean", {"dim": (a,), "keepdim": False}, {}, [x],
                torch.mean(t, b).numpy(), {"axis"}),
        Planted("torch.sum", {"dim": (c,), "keepdim": False}, {}, [cube.numpy()],
                torch.sum(cube, d).numpy(), {"axis"}),
        Planted("torch.argmax", {"dim": c, "keepdim": False}, {}, [cube.numpy()],
                torch.argmax(cube, d).numpy(), {"axis"}),
        Planted("torch.permute", {"dims": (0, 2, 3, 1)}, {}, [x],
                t.permute(0, 3, 1, 2).contiguous().numpy(), {"axis"}),
        Planted("torch.cat", {"dim": c}, {}, [cube.numpy(), 2 * cube.numpy()],
                torch.cat([cube, 2 * cube], d).numpy(), {"axis"}),
        Planted("F.normalize", {"p": 2.0, "dim": a, "eps": 1e-12}, {}, [x],
                F.normalize(t, dim=b).numpy(), {"axis"}),
        Planted("torch.flip", {"dims": (a,)}, {}, [x], torch.flip(t, (b,)).numpy(), {"axis"}),
        Planted("torch.cumsum", {"dim": c}, {}, [cube.numpy()], torch.cumsum(cube, d).numpy(),
                {"axis"}),
    )  # fmt: skip


@plant
def reduction_correction(rng: Generator) -> Planted:
    x = normal(rng, 3, 4, 9)
    params = {"dim": (2,), "unbiased": True, "keepdim": False}
    truth = torch.var(tensor(x), 2, unbiased=False).numpy()
    return Planted("torch.var", params, {}, [x], truth, {"normalization"})


# Scale, channels, inputs, precision


@plant
def scale(rng: Generator) -> Planted:
    factor = float(pick(rng, 2.0, 1 / 255, 0.125, float(rng.uniform(1.2, 3))))
    if rng.integers(2):
        conv = Conv(rng, rank=2, kernel=(3, 3), per_group=6)
        if rng.integers(2):
            return conv.planted(conv.truth(conv.x * np.float32(factor)), "scale")
        return conv.planted(conv.truth() * np.float32(factor), "scale")
    x = normal(rng, 2, 4, 8, 8)
    return Planted("nn.ReLU", {}, {}, [x], np.maximum(x, 0) * np.float32(factor), {"scale"})


@plant
def attention_scale(rng: Generator) -> Planted:
    q, k, v = (normal(rng, 1, 2, 5, 8) for _ in range(3))
    truth = F.scaled_dot_product_attention(*map(tensor, (q, k, v)), scale=0.5).numpy()
    return Planted(
        "F.scaled_dot_product_attention",
        {"attn_mask": None, "dropout_p": 0.0, "is_causal": False}, {}, [q, k, v], truth,
        {"scale"}, ("query", "key", "value"),
    )  # fmt: skip


@plant
def channel_order(rng: Generator) -> Planted:
    conv = Conv(rng, rank=2, kernel=(3, 3), groups=1, per_group=3)
    return conv.planted(conv.truth(conv.x[:, ::-1].copy()), "channel_order", "weight_layout")


@plant
def cat_order(rng: Generator) -> Planted:
    a, b, c = (normal(rng, 1, 3, 4, 5) for _ in range(3))
    truth = np.concatenate([c, b, a], 1)
    return Planted("torch.cat", {"dim": 1}, {}, [a, b, c], truth, {"channel_order"})


@plant
def mean_std(rng: Generator) -> Planted:
    conv = Conv(rng, rank=2, kernel=(3, 3), groups=1, per_group=3, size=20)
    conv.x = rng.uniform(0, 1, conv.x.shape).astype(np.float32)
    mean = np.array((0.485, 0.456, 0.406), np.float32).reshape(3, 1, 1)
    std = np.array((0.229, 0.224, 0.225), np.float32).reshape(3, 1, 1)
    if rng.integers(2):
        mean, std = (rng.uniform(0.2, 0.8, (3, 1, 1)).astype(np.float32) for _ in range(2))
    return conv.planted(conv.truth((conv.x - mean) / std), "mean_std")


@plant
def input_layout(rng: Generator) -> Planted:
    conv = Conv(rng, rank=2, kernel=(3, 3), groups=1, per_group=3)
    conv.x = conv.x[..., :14, :14].copy()
    x = conv.x
    how = int(rng.integers(3))
    if how == 0:
        other = x.transpose(0, 2, 3, 1).reshape(x.shape)
    elif how == 1:
        other = x.swapaxes(2, 3).copy()
    else:
        n, c, h, w = x.shape
        other = x.reshape(n, h, w, c).transpose(0, 3, 1, 2).copy()
    return conv.planted(conv.truth(other), "input_layout")


@plant
def precision(rng: Generator) -> Planted:
    conv = Conv(rng, rank=2, kernel=(3, 3))
    how = int(rng.integers(4))
    if how == 3:
        weight = conv.weights["weight"]
        step = np.abs(weight).max() / 127
        return conv.planted(
            conv.truth(weight=np.round(weight / step).astype(np.float32) * step), "precision"
        )
    dtype = pick(rng, torch.float16, torch.bfloat16)

    def rounded(array: np.ndarray) -> np.ndarray:
        return tensor(array).to(dtype).float().numpy()

    if how == 0:
        return conv.planted(rounded(conv.truth()), "precision")
    weights = {k: rounded(v) for k, v in conv.weights.items()}
    if how == 1:
        return conv.planted(conv.truth(**weights), "precision")
    return conv.planted(rounded(conv.truth(rounded(conv.x), **weights)), "precision")


@plant
def precision_of_ours(rng: Generator) -> Planted:
    weights, x = linear(rng)
    ours = {**weights, "weight": weights["weight"].astype(np.float16).astype(np.float32)}
    return linear_plant(x, ours, linear_truth(x, weights), "precision")


# Expressions


@plant
def expression(rng: Generator) -> Planted:
    a, b, c = (rng.uniform(0.5, 2, (2, 3, 4)).astype(np.float32) for _ in range(3))
    s, t, u = map(tensor, (a, b, c))
    number = float(np.round(rng.uniform(0.5, 3), 3))
    ours, truth = pick(
        rng,
        ("sub(@0,@1)", t - s), ("div(@0,@1)", t / s), ("pow(@0,@1)", t**s),
        ("add(@0,@1)", s * t), ("add(@0,mul(@1,@2))", s + t - u), ("mul(@0,2.0)", s * number),
        ("add(mul(@0,@1),1.5)", s * t + number), ("sqrt(add(@0,@1))", s + t),
        ("div(@0,sqrt(add(@1,1e-5)))", s / torch.sqrt(t + 0.1)), ("mul(@0,sigmoid(@1))", None),
        ("maximum(@0,@1)", torch.minimum(s, t)), ("add(sub(@0,@1),@2)", t - s + u),
        ("mul(@0,add(@1,@2))", s * (t + t)), ("pow(@0,2.0)", s**3), ("exp(@0)", torch.exp(-s)),
    )  # fmt: skip
    if truth is None:
        ours, truth = "mul(@0,tanh(@1))", s + torch.tanh(t)
    used = [x for x, name in zip((a, b, c), ("@0", "@1", "@2"), strict=True) if name in ours]
    used = [a, b, c][: max(len(used), 2)]
    return Planted("pnnx.Expression", {"expr": ours}, {}, used, truth.numpy(), {"expression"})


@plant
def binary_type(rng: Generator) -> Planted:
    a, b = (rng.uniform(0.5, 2, (2, 3, 4)).astype(np.float32) for _ in range(2))
    truth = pick(rng, b - a, a + b, a * b)
    return Planted("torch.sub", {}, {}, [a, b], truth, {"expression"})


# Nothing to explain


@plant
def clean(rng: Generator) -> Planted:
    what = pick(rng, "conv", "norm", "linear", "act")
    if what == "conv":
        conv = Conv(rng, transposed=bool(rng.integers(2)))
        return conv.planted(conv.truth())
    if what == "norm":
        norm = Norm(rng, pick(rng, "batch", "group", "layer", "instance"))
        return norm.planted(norm.truth())
    if what == "linear":
        weights, x = linear(rng)
        return linear_plant(x, weights, linear_truth(x, weights))
    x = normal(rng, 2, 4, 8, 8)
    return Planted("nn.GELU", {}, {}, [x], F.gelu(tensor(x)).numpy(), set())


@plant
def foreign(rng: Generator) -> Planted:
    """Return results that no change of the operator explains: noise, or another operator's."""
    what = pick(rng, "noise", "other", "small", "linear", "norm", "act", "pool", "expression")
    conv = Conv(rng, rank=2, kernel=(3, 3), per_group=4)
    truth = conv.truth()
    if what == "noise":
        return conv.planted(truth + normal(rng, *truth.shape, scale=0.2))
    if what == "small":
        return conv.planted(truth + normal(rng, *truth.shape, scale=1e-3))
    if what == "other":
        return conv.planted(normal(rng, *truth.shape))
    if what == "linear":
        weights, x = linear(rng)
        truth = linear_truth(x, weights)
        return linear_plant(x, weights, truth + normal(rng, *truth.shape))
    if what == "norm":
        norm = Norm(rng, pick(rng, "batch", "group", "layer"))
        truth = norm.truth()
        return norm.planted(truth + normal(rng, *truth.shape, scale=0.3))
    x = normal(rng, 2, 4, 8, 8)
    if what == "act":
        return Planted("nn.ReLU", {}, {}, [x], np.cos(5 * x), set())
    if what == "pool":
        y = pooled("max", x, {"kernel_size": 2})
        params = {"kernel_size": (2, 2), "stride": (2, 2), "padding": (0, 0)}
        return Planted("nn.MaxPool2d", params, {}, [x], y + normal(rng, *y.shape), set())
    y = normal(rng, 2, 4, 8, 8)
    return Planted("pnnx.Expression", {"expr": "add(@0,@1)"}, {}, [x, y],
                   x + y + normal(rng, *x.shape), set())  # fmt: skip
