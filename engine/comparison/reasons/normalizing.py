"""Alternatives of normalisation: statistics, axes, weight and bias."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.comparison.reasons.case import DROPPED, Alternative
from engine.comparison.reasons.reason import Change

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.comparison.reasons.case import Case
    from engine.values import Array

__all__ = ["norm_axes", "norm_family", "other_normalizations"]

_TYPE: Final = re.compile(r"(batch|instance|group|layer|rms)_?norm", re.IGNORECASE)


def norm_family(case: Case) -> str:
    """Return ``batch``, ``instance``, ``group``, ``layer`` or ``rms``; ``""`` for others."""
    found = _TYPE.search(case.type)
    x = case.input
    return found[1].lower() if found and x is not None and x.dtype.kind == "f" else ""


def other_normalizations(case: Case) -> Iterator[Alternative]:
    """Return other ways to normalise, with the same weight and bias."""
    family = norm_family(case)
    if not family or case.input is None:
        return
    yield from _statistics(case, family)
    yield from _without_affine(case)
    yield from _by_other_axes(case, family)
    yield Alternative(
        "normalization",
        "The reference returns the input unchanged here. Remove the normalisation.",
        result=case.input,
    )


def _statistics(case: Case, family: str) -> Iterator[Alternative]:
    x = case.input
    stored = [name for name in ("running_mean", "running_var") if name in case.weights]
    if stored:
        yield Alternative(
            "normalization",
            "The reference normalises by the batch's own mean and variance, the file by stored "
            "ones. Set the reference to evaluation mode, or drop running_mean and running_var.",
            tuple(Change(name, None) for name in stored),
            weights=dict.fromkeys(stored, DROPPED),
            params={"track_running_stats": False} if family == "instance" else {},
        )
    assert x is not None  # noqa: S101 - the caller has checked it
    own = norm_axes(case, family)
    kinds = (
        (0, False, True, "the mean subtracted"),
        (1, False, True, "the unbiased variance (n - 1)"),
        (0, True, True, "eps added to the standard deviation, not to the variance"),
        (1, True, True, "the unbiased standard deviation plus eps"),
        (0, False, False, "no mean subtracted"),
    )
    for ddof, outside, centred, words in kinds:
        if stored and (outside or not centred):
            continue
        if (ddof, outside, centred) == (0, False, family != "rms"):
            continue  # ours
        result = _normalized(case, own, ddof, outside=outside, centred=centred)
        if result is not None:
            text = f"The reference normalises with {words}. Normalise so, or export it again."
            yield Alternative("normalization", text, result=result)
            if family == "rms" and centred:
                yield from _with_bias(case, own, result)


def _with_bias(case: Case, axes: tuple[int, ...], result: Array) -> Iterator[Alternative]:
    """Return a layer norm with the bias that a norm by root mean squares has lost."""
    if case.pair is None or case.pair[1].shape != result.shape:
        return
    others = tuple(axis for axis in range(result.ndim) if axis not in axes)
    rest = (case.pair[1] - result).astype(np.float64)
    if rest.size < 2 * math.prod(rest.shape[axis] for axis in axes):
        return  # one element per bias tells nothing
    offsets = rest.mean(others, keepdims=True)
    bias = offsets.reshape([rest.shape[axis] for axis in axes]).astype(np.float32)
    yield Alternative(
        "normalization",
        "The reference subtracts the mean and adds a bias (layer norm), the file does neither. "
        "Use a layer norm.",
        (Change("bias", bias),), result=(result + offsets).astype(result.dtype),
        fitted=bias.size, least=0.995,
    )  # fmt: skip


def _without_affine(case: Case) -> Iterator[Alternative]:
    present = [name for name in ("weight", "bias") if name in case.weights]
    flags = {name: DROPPED for name in ("affine", "elementwise_affine") if name in case.params}
    for name in reversed(present):
        yield Alternative(
            "bias" if name == "bias" else "weight_values",
            f"The reference has no {name}, the file has one. Drop the {name}.",
            (Change(name, None),),
            flags,
            {name: DROPPED},
        )
    if len(present) == 2:
        yield Alternative(
            "normalization",
            "The reference has neither weight nor bias. Drop both.",
            tuple(Change(name, None) for name in present),
            flags,
            dict.fromkeys(present, DROPPED),
        )


def _by_other_axes(case: Case, family: str) -> Iterator[Alternative]:
    """Return normalisation over the axes of the other families."""
    x = case.input
    assert x is not None  # noqa: S101 - checked by the caller
    if x.ndim < 2:
        return
    rest = tuple(range(2, x.ndim))
    named = {
        "of each sample over all its elements (layer norm)": (1, *rest),
        "of each channel of each sample (instance norm)": rest,
        "of each channel over the batch (batch norm)": (0, *rest),
        "over the channels (layer norm of NHWC)": (1,),
        "over the last axis": (x.ndim - 1,),
    }
    for count in range(2, x.ndim):
        named[f"over the last {count} axes"] = tuple(range(x.ndim - count, x.ndim))
    own = norm_axes(case, family)
    for words, axes in named.items():
        if not axes or (family != "group" and axes == own):
            continue
        result = _normalized(case, axes, 0, outside=False, centred=family != "rms")
        if result is not None:
            text = f"The reference normalises {words}. Normalise so, or export it again."
            yield Alternative("normalization", text, result=result)


def norm_axes(case: Case, family: str) -> tuple[int, ...]:
    """Return the axes that share statistics, counted from the front."""
    x = case.input
    assert x is not None  # noqa: S101 - the caller has checked it
    rest = tuple(range(2, x.ndim))
    if family in {"layer", "rms"}:
        shape = case.value("normalized_shape")
        count = len(shape) if isinstance(shape, tuple) else 1
        return tuple(range(x.ndim - count, x.ndim))
    return (0, *rest) if family == "batch" else rest


def _normalized(
    case: Case, axes: tuple[int, ...], ddof: int, *, outside: bool, centred: bool
) -> Array | None:
    """Normalise by the data's statistics, apply weight and bias; None if they do not fit."""
    x = case.input
    assert x is not None  # noqa: S101 - the caller has checked it
    if not x.size or x.ndim < 2:
        return None
    groups = case.value("num_groups") if norm_family(case) == "group" else None
    wide = x.astype(np.float64)
    if groups and axes == norm_axes(case, "group"):
        if x.shape[1] % groups:
            return None
        wide, axes = wide.reshape(len(x), groups, -1), (2,)
    count = math.prod(wide.shape[axis] for axis in axes)
    if count <= ddof:
        return None
    mean: Any = wide.mean(axes, keepdims=True) if centred else 0.0
    variance = np.square(wide - mean).sum(axes, keepdims=True) / (count - ddof)
    eps = float(case.value("eps", 1e-5) or 0.0)
    with np.errstate(all="ignore"):
        divisor = np.sqrt(variance) + eps if outside else np.sqrt(variance + eps)
        result: Array = ((wide - mean) / divisor).reshape(x.shape)
    for name in ("weight", "bias"):
        values = case.weight(name)
        if values is None:
            continue
        if norm_family(case) not in {"layer", "rms"}:
            values = values.reshape(-1, *(1,) * (x.ndim - 2))
        try:
            result = result * values if name == "weight" else result + values
        except ValueError:
            return None
    return result.astype(x.dtype)
