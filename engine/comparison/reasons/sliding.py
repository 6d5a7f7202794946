"""Alternatives of sliding windows: padding, stride, dilation, kernel size, groups."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.comparison.reasons.case import DROPPED, Alternative
from engine.comparison.reasons.parameters import WINDOWED, format_value, set_parameter
from engine.comparison.reasons.reason import Change

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.comparison.reasons.case import Case

__all__ = ["Sliding", "other_groups", "other_windows", "sliding_of"]

_FAMILIES: Final = {"convtranspose": "transpose", "conv": "conv"}
_NAMES: Final = ("padding", "stride", "dilation", "kernel_size")
_LARGEST: Final = 4  # largest stride and dilation tried one by one
_DILATIONS: Final = (6, 8, 12, 16, 18, 24, 32, 36)  # of spatial pyramids and of sound
_LARGEST_KERNEL: Final = 16
_LARGEST_NUMBER: Final = 32
_MOST: Final = 24  # alternatives of one parameter

Ints = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Sliding:
    """The windows of an operator, one number per spatial axis.

    Attributes
    ----------
    family : {"conv", "transpose", "pool"}
    padding, stride, dilation, kernel_size : tuple of int
    output_padding : tuple of int
    ceil_mode : bool
    """

    family: str
    padding: Ints
    stride: Ints
    dilation: Ints
    kernel_size: Ints
    output_padding: Ints
    ceil_mode: bool

    @property
    def rank(self) -> int:
        """Number of spatial axes."""
        return len(self.kernel_size)

    def count(self, size: int, axis: int, changes: Mapping[str, int]) -> int:
        """Return the output size of an axis, with some parameters changed."""
        numbers: list[int] = [changes.get(name, getattr(self, name)[axis]) for name in _NAMES]
        padding, stride, dilation, kernel = numbers
        reach = dilation * (kernel - 1)
        if self.family == "transpose":
            extra = changes.get("output_padding", self.output_padding[axis])
            return (size - 1) * stride - 2 * padding + reach + extra + 1
        room = size + 2 * padding - reach - 1
        if room < 0:
            return 0
        count = room // stride + 1
        if self.ceil_mode and room % stride and count * stride < size + padding:
            count += 1
        return count

    def choices(self, name: str, axis: int, dilation: int = 0) -> list[int]:
        """Return values of a parameter to try, perhaps with another dilation."""
        old: int = getattr(self, name)[axis]
        reach = (dilation or self.dilation[axis]) * (self.kernel_size[axis] - 1)
        found = {
            "padding": range(max(reach + 2, old + 3)),
            "stride": range(1, max(_LARGEST, self.kernel_size[axis], 2 * old) + 1),
            "dilation": range(1, max(_LARGEST, old + 2) + 1),
            "kernel_size": range(1, min(_LARGEST_KERNEL, max(7, 2 * old)) + 1),
            "output_padding": range(max(self.stride[axis], self.dilation[axis])),
        }[name]
        numbers = {*range(found.start, min(found.stop, _LARGEST_NUMBER))}
        if name == "dilation":
            numbers.update(_DILATIONS)
        elif dilation in _DILATIONS:
            numbers.add(reach // 2)
        return sorted(numbers, key=lambda number: (abs(number - old), number))


def sliding_of(case: Case) -> Sliding | None:
    """Return the windows of a convolution or pooling; None for other operators."""
    found = WINDOWED.search(case.type)
    if found is None:
        return None
    rank = int(found[2])
    family = _FAMILIES.get(found[1].lower().replace("_", ""), "pool")
    weight = case.weight()
    kernel = _expand(case.value("kernel_size"), rank)
    if family != "pool":
        if weight is None or weight.ndim != rank + 2:
            return None
        kernel = weight.shape[2:]
    stride = _expand(case.value("stride", 1), rank) or (kernel if family == "pool" else None)
    dilation = _expand(case.value("dilation", 1), rank)
    if kernel is None or stride is None or dilation is None:
        return None
    if min(*kernel, *stride, *dilation) < 1:
        return None
    padding = _expand(case.value("padding", 0), rank) or tuple(
        d * (k - 1) // 2 if case.value("padding") == "same" else 0
        for d, k in zip(dilation, kernel, strict=True)
    )
    return Sliding(
        family, padding, stride, dilation, kernel,
        _expand(case.value("output_padding", 0), rank) or (0,) * rank,
        bool(case.value("ceil_mode", default=False)),
    )  # fmt: skip


def other_windows(case: Case) -> Iterator[Alternative]:
    """Return windows that give the expected size, those with one changed parameter first."""
    windows, sizes = sliding_of(case), _sizes(case)
    if windows is None:
        return
    if sizes is None:
        yield from _of_open_size(case, windows)
        return
    names = [name for name in _NAMES if name != "kernel_size" or windows.family == "pool"]
    if windows.family == "pool" and "dilation" not in case.arguments:
        names.remove("dilation")
    if windows.family == "transpose":
        names.append("output_padding")
    for name in names:
        for values in _fitting(windows, name, sizes):
            yield set_parameter(name, values, case.value(name), least=_least(case))
    if windows.family == "conv":
        yield from _uneven_padding(case, windows, sizes)
    for pair in itertools.combinations(names, 2):
        yield from _pairs(case, windows, pair, sizes)


def _of_open_size(case: Case, windows: Sliding) -> Iterator[Alternative]:
    """Return windows with one other parameter, where only what follows tells the size.

    A file of ncnn has no shapes.
    """
    x, rank = case.input, windows.rank
    if case.tail is None or case.expected_shape is not None or windows.family == "transpose":
        return
    if x is None or x.ndim != rank + 2:
        return
    for name in ("stride", "padding", "dilation"):
        if name == "dilation" and windows.family == "pool":
            continue
        for number in windows.choices(name, 0):
            values = (number,) * rank
            sizes = [windows.count(x.shape[a + 2], a, {name: number}) for a in range(rank)]
            if values != getattr(windows, name) and min(sizes) > 0:
                yield set_parameter(name, values, case.value(name), least=_least(case))


def other_groups(case: Case) -> Iterator[Alternative]:
    """Return other groups: those that fit the weight, or the weight's diagonal blocks."""
    windows, input_, weight = sliding_of(case), case.input, case.weights.get("weight")
    if windows is None or input_ is None or weight is None or windows.family == "pool":
        return
    if input_.ndim <= windows.rank:
        return
    old = case.value("groups", 1)
    channels = input_.shape[-windows.rank - 1]
    of_group = weight.shape[1] if windows.family == "conv" else None
    free = {"in_channels": DROPPED, "out_channels": DROPPED}
    for groups in _divisors(channels):
        if groups == old:
            continue
        params = {"groups": groups, **free}
        text = f"The reference has {groups} groups, the file {old}. Set groups={groups}."
        change = (Change("groups", groups),)
        if of_group is None or of_group * groups == channels:
            yield Alternative("groups", text, change, params)
        elif old == 1 and not weight.shape[0] % groups:
            blocks = _diagonal(weight, groups)
            text = f"{text} Keep only the diagonal blocks of the weight."
            changes = (*change, Change("weight", blocks))
            yield Alternative("groups", text, changes, params, {"weight": blocks})


def _least(case: Case) -> float:
    """Return the smallest share: where our shape is wrong, few numbers agree by chance."""
    return 0.9 if case.discrepancy.is_comparable else 0.5


def _expand(value: Any, rank: int) -> Ints | None:  # noqa: ANN401 - of any type
    if isinstance(value, int) and not isinstance(value, bool):
        return (value,) * rank
    if isinstance(value, tuple) and all(isinstance(item, int) for item in value):
        return value * rank if len(value) == 1 else value if len(value) == rank else None
    return None


def _sizes(case: Case) -> list[tuple[int, int]] | None:
    """Return input and expected size of each spatial axis."""
    windows, shape, input_ = sliding_of(case), case.expected_shape, case.input
    if windows is None or shape is None or input_ is None or len(shape) != input_.ndim:
        return None
    rank = windows.rank
    return list(zip(input_.shape[-rank:], shape[-rank:], strict=True))


def _fitting(windows: Sliding, name: str, sizes: list[tuple[int, int]]) -> Iterator[Ints]:
    """Return values of a parameter with which each axis gets its expected size."""
    old = getattr(windows, name)
    per_axis = [
        [v for v in windows.choices(name, axis) if windows.count(size, axis, {name: v}) == want]
        for axis, (size, want) in enumerate(sizes)
    ]
    combinations = [values for values in itertools.product(*per_axis) if values != old]
    # Equal numbers of all axes are the usual ones.
    combinations.sort(key=lambda values: len(set(values)) > 1)
    yield from combinations[:_MOST]


def _pairs(
    case: Case, windows: Sliding, names: tuple[str, str], sizes: list[tuple[int, int]]
) -> Iterator[Alternative]:
    """Return pairs of parameters that change together, equally on all axes."""
    found = 0
    first, second = names
    for one, other in _choices_of_both(windows, first, second):
        changes = {first: one, second: other}
        params = {name: (value,) * windows.rank for name, value in changes.items()}
        if any(params[name] == getattr(windows, name) for name in names):
            continue
        if any(windows.count(s, axis, changes) != want for axis, (s, want) in enumerate(sizes)):
            continue
        found += 1
        if found > _MOST:
            return
        theirs = " and ".join(f"{name}={format_value(value)}" for name, value in params.items())
        ours = " and ".join(format_value(case.value(name)) for name in names)
        text = f"The reference has {theirs}, the file {ours}. Set {theirs}."
        main = next(name for name in ("dilation", "kernel_size", "stride", "padding",
                                      "output_padding") if name in names)  # fmt: skip
        kind = {"kernel_size": "parameter", "output_padding": "padding"}.get(main, main)
        edits = tuple(Change(name, value) for name, value in params.items())
        yield Alternative(kind, text, edits, params, least=_least(case))


def _choices_of_both(windows: Sliding, one: str, other: str) -> Iterator[tuple[int, int]]:
    """Return values of two parameters; with another dilation, paddings that it needs."""
    if (one, other) == ("padding", "dilation"):
        for dilation in windows.choices("dilation", 0):
            for padding in windows.choices("padding", 0, dilation):
                yield padding, dilation
        return
    yield from itertools.product(windows.choices(one, 0), windows.choices(other, 0))


def _uneven_padding(
    case: Case, windows: Sliding, sizes: list[tuple[int, int]]
) -> Iterator[Alternative]:
    """Return paddings that differ before and after, like TensorFlow's ``SAME``."""
    if not case.type.startswith("nn."):
        return
    most = max(d * (k - 1) for d, k in zip(windows.dilation, windows.kernel_size, strict=True))
    choices = range(min(most, _LARGEST_KERNEL) + 1)
    for before, after in itertools.product(choices, repeat=2):
        if before == after:
            continue
        fits = all(
            (size + before + after - d * (k - 1) - 1) // stride + 1 == want
            for (size, want), d, k, stride in zip(
                sizes, windows.dilation, windows.kernel_size, windows.stride, strict=True
            )
        )
        if fits:
            value = (before, after) * windows.rank
            yield set_parameter("padding", value, case.value("padding"), least=_least(case))


def _divisors(number: int) -> list[int]:
    return [n for n in range(1, number + 1) if not number % n] if number <= 1 << 12 else []


def _diagonal(weight: np.ndarray[Any, Any], groups: int) -> np.ndarray[Any, Any]:
    """Return the blocks on the diagonal, (O, C, K...) to (O, C / groups, K...)."""
    kernels, channels = weight.shape[0] // groups, weight.shape[1] // groups
    if not channels or math.prod(weight.shape) == 0:
        return weight
    return np.concatenate([
        weight[g * kernels : (g + 1) * kernels, g * channels : (g + 1) * channels]
        for g in range(groups)
    ])  # fmt: skip
