"""Losses: a formula of the elements at one position or of one sample, and their mean or sum."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from engine.layers import losses
from engine.provenance.arithmetic import (
    add_up,
    format_index,
    grid,
    make_factor,
    require_terms,
)
from engine.provenance.call import Operand, is_array, rounding, take
from engine.provenance.records import Breakdown, Interval, Kind, Terms
from engine.provenance.slopes import wide
from engine.provenance.table import explains, locates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.provenance.call import Call
    from engine.provenance.records import Box, Factor
    from engine.values import Array

__all__ = [
    "BY_CLASS",
    "BY_ELEMENT",
    "Losses",
    "class_axis",
    "explain_loss",
    "explain_sample",
    "has_classes",
    "is_reduced",
    "locate_loss",
    "locate_sample",
    "losses_of",
    "numbers_of",
    "read_losses",
]

BY_ELEMENT: Final = (
    losses.mse_loss, losses.l1_loss, losses.smooth_l1_loss, losses.huber_loss,
    losses.soft_margin_loss, losses.hinge_embedding_loss, losses.margin_ranking_loss,
    losses.kl_div, losses.poisson_nll_loss, losses.binary_cross_entropy,
    losses.binary_cross_entropy_with_logits,
)  # fmt: skip
BY_CLASS: Final = (losses.nll_loss, losses.cross_entropy)


class Losses(NamedTuple):
    """The losses of all elements or samples before they are reduced, in float64.

    Attributes
    ----------
    values : ndarray of float64
    share : float
        What each counts in the result.
    """

    values: Array
    share: float


def numbers_of(call: Call) -> dict[str, Any]:
    """Return the arguments as numbers; those of real numbers in float64."""
    return {
        name: each if not is_array(each)
        else wide(each) if each.dtype.kind == "f"
        else each.value if isinstance(each, Operand) else each
        for name, each in call.arguments.items()
    }  # fmt: skip


def losses_of(call: Call, numbers: Mapping[str, Any]) -> Array:
    """Return the losses of other numbers before they are reduced."""
    with np.errstate(all="ignore"):
        return np.asarray(call.layer_code(**{**numbers, "reduction": "none"}), np.float64)


def is_reduced(call: Call) -> bool:
    """Whether the result is the mean or the sum."""
    return losses.method_of(call.arguments["reduction"]) != "none"


def has_classes(call: Call) -> bool:
    """Whether targets are numbers of classes; else there is a probability of each class."""
    return call.layer_code in BY_CLASS and call.arguments["target"].dtype.kind in "iu"


def read_losses(call: Call) -> Losses:
    """Return the losses of an operator that has run."""
    numbers = numbers_of(call)
    values = losses_of(call, numbers)
    if losses.method_of(numbers["reduction"]) != "mean":
        return Losses(values, 1.0)
    total: Any = np.float64(values.size)
    if has_classes(call):  # the mean is weighted by the right classes
        given = (numbers["target"], numbers["weight"], "none", numbers["ignore_index"])
        total = losses.nll_loss(np.full_like(numbers["input"], -1.0), *given).sum()
    with np.errstate(all="ignore"):
        return Losses(values, float(1.0 / total))


def _places(operand: Operand, index: Sequence[Any], whole: Any) -> list[Any]:
    """Return an item for each dimension of an operand that is broadcast to the losses."""
    own = index[len(index) - operand.ndim :]
    return [item if size > 1 else whole for item, size in zip(own, operand.shape, strict=True)]


def _error(call: Call, found: Losses, count: int) -> float:
    """Return how far formulas in the operator's own precision may be from the exact losses."""
    size = math.prod(
        [1 + float(np.abs(each.value).max(initial=0)) for each in call.arrays
         if each.dtype.kind == "f"]
    )  # fmt: skip
    error = 16 * rounding(call.dtype) * count * abs(found.share) * size
    return error if math.isfinite(error) else math.inf


@explains(*BY_ELEMENT)
def explain_loss(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Add up the losses of all elements, or compute one of them."""
    found = read_losses(call)
    shape = found.values.shape
    if not is_reduced(call):
        factors = [
            take(each, each.name, np.array([_places(each, index, 0)], np.int64).reshape(1, -1))
            for each in call.arrays
        ]
        return _one(call, index, factors, found)
    rows = grid(*[range(size) for size in shape])
    factors = [
        take(
            each,
            each.name,
            np.where(np.array(each.shape) > 1, rows[:, len(shape) - each.ndim :], 0),
        )
        for each in call.arrays
    ]
    return _sum(call, factors, found)


def _one(
    call: Call, index: tuple[int, ...], factors: Sequence[Factor], found: Losses
) -> Breakdown:
    """Return one loss as a function of its elements."""
    values = np.concatenate([factor.values for factor in factors])
    names = ", ".join([factor.name for factor in factors])
    formula = f"y{format_index(index)} = {_name_of(call)}({names})"
    total = float(found.values[index])
    error = _error(call, found, 1) + 8 * rounding(call.dtype) * abs(total)
    terms = Terms(tuple(factors), values, (len(values),), ("operand",))
    return Breakdown(Kind.FUNCTION, formula, terms, total, error)


def _sum(call: Call, factors: Sequence[Factor], found: Losses) -> Breakdown:
    """Return the mean or the sum of all losses."""
    values = found.values.reshape(-1)
    share = make_factor("share", np.full(len(values), found.share))
    loss = make_factor("loss", values)
    with np.errstate(all="ignore"):
        products = values * found.share
    shape = found.values.shape or (1,)
    axes = tuple([f"dim {axis}" for axis in range(len(shape))])
    terms = Terms((*factors, loss, share), products, shape, axes)
    result = add_up(call, f"y = Σ {_name_of(call)} · {found.share:.6g}", terms)
    return replace(result, error=result.error + _error(call, found, len(values)))


def _name_of(call: Call) -> str:
    return call.operator.type.rpartition(".")[2].rpartition(":")[2]


def class_axis(call: Call) -> int:
    """Return the dimension of the classes."""
    return 0 if call.array("input").ndim == 1 else 1


@explains(*BY_CLASS)
def explain_sample(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Add up the losses of all samples, or compute one of the scores of its classes."""
    input, found = call.array("input"), read_losses(call)
    if is_reduced(call):
        require_terms(found.values.size)
        factors = []
        if has_classes(call):
            rows = grid(*[range(size) for size in found.values.shape])
            factors.append(call.elements("target", rows))
        return _sum(call, factors, found)
    axis = class_axis(call)
    places: list[Sequence[int]] = [[at] for at in index]
    places.insert(axis, range(input.shape[axis]))
    return _one(call, index, [take(input, "input", grid(*places))], found)


@locates(*BY_ELEMENT)
def locate_loss(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the same positions of all operands, or all of them."""
    if is_reduced(call):
        return {each.name: each.whole for each in call.arrays}
    return {each.name: tuple(_places(each, box, Interval(0, 1))) for each in call.arrays}


@locates(*BY_CLASS)
def locate_sample(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the scores of all classes, or everything."""
    found = {each.name: each.whole for each in call.arrays}
    if is_reduced(call):
        return found
    input, axis = call.array("input"), class_axis(call)
    row = (*box[:axis], input.whole[axis], *box[axis:])
    found[input.name] = row
    target = call.arguments["target"]
    if isinstance(target, Operand):
        found[target.name] = box if has_classes(call) else row
    return found
