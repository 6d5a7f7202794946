"""What several rules compute alike: grids of indices, sums and their errors, texts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.layers.ncnn.activations import activate
from engine.provenance.call import NoBreakdownError, rounding
from engine.provenance.records import Breakdown, Factor, Kind, Step, Terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from engine.provenance.call import Call

__all__ = [
    "activate_sum",
    "add_up",
    "break_down_constant",
    "format_index",
    "grid",
    "make_factor",
    "multiply",
    "require_terms",
    "sum_error",
    "take_root",
]

_MOST_TERMS: Final = 1 << 20  # a breakdown is read by people
_SAFETY: Final = 4.0


def require_terms(count: int) -> None:
    """Refuse a breakdown that nobody could read.

    Raises
    ------
    NoBreakdownError
        With the number of terms.
    """
    if count > _MOST_TERMS:
        raise NoBreakdownError(f"{count} terms are more than the {_MOST_TERMS} that are shown")


def grid(*axes: Sequence[int] | npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return all combinations of positions, the last axis fastest; shape (T, D)."""
    require_terms(math.prod([len(axis) for axis in axes]))
    if not axes:
        return np.zeros((1, 0), np.int64)
    places = np.meshgrid(*[np.asarray(axis, np.int64) for axis in axes], indexing="ij")
    return np.stack(places, axis=-1).reshape(-1, len(axes))


def make_factor(name: str, values: npt.NDArray[np.float64]) -> Factor:
    """Make a factor of numbers without an index.

    Parameters
    ----------
    name : str
        What they are.
    values : ndarray of float64, shape (T,)
    """
    none = np.zeros((len(values), 0), np.int64)
    return Factor(name, is_operand=False, indices=none, values=values)


def multiply(
    factors: Sequence[Factor], shape: Sequence[int], axes: Sequence[str], scale: float = 1.0
) -> Terms:
    """Multiply factors term by term."""
    with np.errstate(all="ignore"):
        products = np.full(len(factors[0].values), scale, np.float64)
        for factor in factors:
            products = products * factor.values
    return Terms(tuple(factors), products, tuple(shape), tuple(axes))


def sum_error(magnitude: float, count: int, dtype: np.dtype[Any], total: float) -> float:
    """Return how far a sum in the operator's precision may be from the exact one.

    Rounding errors of n additions grow like the root of n times the size of the partial sums;
    the bound has room for kernels that transform their operands first, such as Winograd's.

    Parameters
    ----------
    magnitude : float
        How large a partial sum gets.
    count : int
        How many they were.
    dtype : dtype
        Of the result; halves are added in float32.
    total : float
    """
    own = rounding(dtype)
    work = min(own, rounding(np.dtype(np.float32)))
    found = _SAFETY * (math.sqrt(count) + 4) * work * magnitude + 2 * own * abs(total)
    return found if math.isfinite(found) else math.inf


def add_up(
    call: Call,
    formula: str,
    terms: Terms,
    offset: float | None = None,
    offset_name: str = "",
    *,
    steps: tuple[Step, ...] = (),
) -> Breakdown:
    """Make the breakdown of a sum."""
    with np.errstate(all="ignore"):
        total = float(terms.products.sum()) + (offset or 0.0)
        magnitude = _largest_sum(terms.products) + abs(offset or 0.0)
    if call.dtype.kind in "iu":
        total = float(int(total)) if math.isfinite(total) else total
    error = sum_error(magnitude, len(terms.products), call.dtype, total)
    return Breakdown(Kind.SUM, formula, terms, total, error, offset, offset_name, steps=steps)


def activate_sum(
    call: Call, found: Breakdown, activation: tuple[int, Sequence[float]]
) -> Breakdown:
    """Apply the activation that a layer of ncnn applies to its sums.

    Parameters
    ----------
    call : Call
    found : Breakdown
        Of the sum.
    activation : (int, sequence of float)
        Its kind and its parameters.
    """
    kind = activation[0]
    if not kind:
        return found
    ends = np.array([0.0, -found.error, found.error]) + found.total
    with np.errstate(all="ignore"):
        total, *sides = (float(each) for each in activate(ends, *activation))
    # They rise or fall between the ends, but for dips, which are flat.
    error = max(abs(side - total) for side in sides) + 8 * rounding(call.dtype) * abs(total)
    name = _ACTIVATIONS[kind]
    left, _, right = found.formula.partition(" = ")
    return Breakdown(
        Kind.ACTIVATED, f"{left} = {name}({right})", found.terms, total, error, found.offset,
        found.offset_name, steps=(*found.steps, Step(f"sum before {name}", found.total)),
    )  # fmt: skip


def take_root(call: Call, found: Breakdown, order: float) -> Breakdown:
    """Take the root of a sum, and say how far its error takes the root."""
    ends = np.maximum(np.array([0.0, -found.error, found.error]) + found.total, 0.0)
    with np.errstate(all="ignore"):
        total, *sides = (float(each) for each in np.power(ends, 1 / order))
        error = max(abs(side - total) for side in sides) + 16 * rounding(call.dtype) * total
    if found.total < 0:
        total = math.nan
    name = "sum before the root"
    return Breakdown(
        Kind.ACTIVATED, found.formula, found.terms, total,
        error if math.isfinite(error) else math.inf, found.offset, found.offset_name,
        steps=(*found.steps, Step(name, found.total)),
    )  # fmt: skip


_ACTIVATIONS: Final = ("", "relu", "leaky_relu", "clip", "sigmoid", "mish", "hard_swish")


def _largest_sum(products: npt.NDArray[np.float64]) -> float:
    """Return how large a partial sum of products gets, in whatever order they are added."""
    if not products.size:
        return 0.0
    in_order = float(np.abs(np.cumsum(products)).max())
    # In another order it is a random walk, of a few times its usual length.
    return min(
        max(in_order, 8 * float(np.linalg.norm(products))), float(np.abs(products).sum())
    )


def break_down_constant(index: tuple[int, ...], value: float) -> Breakdown:
    """Break down an element that is made of no operand's elements.

    Parameters
    ----------
    index : tuple of int
    value : float
        That the operator puts there.

    Returns
    -------
    Breakdown
        Of one term without factors, and no error.
    """
    term = Terms((), np.array([value]), (1,), ("term",))
    formula = f"y{format_index(index)} = {value:g}, a constant of the operator"
    return Breakdown(Kind.MOVE, formula, term, value, 0.0)


def format_index(index: Sequence[object]) -> str:
    """Format an index: ``[0, 41, 31, 33]``."""
    return f"[{', '.join(map(str, index))}]"
