"""Quantiles: one or two elements of a sorted row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.layers.quantiles import nanquantile, quantile
from engine.provenance.arithmetic import add_up, format_index, make_factor, multiply
from engine.provenance.call import NoBreakdownError, Operand, take
from engine.provenance.records import Interval
from engine.provenance.table import explains, locates

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from engine.provenance.call import Call
    from engine.provenance.records import Box, Breakdown

__all__ = ["QUANTILES", "explain_quantile", "locate_quantile", "quantile_of"]

QUANTILES: Final = (quantile, nanquantile)


def _shares(call: Call) -> npt.NDArray[Any]:
    given = call.arguments["q"]
    array = given.value if isinstance(given, Operand) else given
    return np.asarray(array, call.array("input").dtype)


def _rows(call: Call, items: tuple[Any, ...]) -> list[Any]:
    """Return an item for each dimension of the input; None for those that are sorted."""
    input, dim = call.array("input"), call.arguments["dim"]
    items = items[_shares(call).ndim :]
    if dim is None or not input.ndim:
        return [None] * input.ndim
    axis = int(dim) % input.ndim
    after = axis + 1 if call.arguments["keepdim"] else axis
    return [*items[:axis], None, *items[after:]]


def quantile_of(
    call: Call, index: tuple[int, ...]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return the places of the elements that make a quantile, and their weights.

    Raises
    ------
    NoBreakdownError
        If there is none among the elements.
    """
    input, shares = call.array("input"), _shares(call)
    rows = _rows(call, index)
    part = tuple([slice(None) if each is None else each for each in rows])
    row = input.value[part].reshape(-1)
    known = np.flatnonzero(~np.isnan(row))
    if not known.size or (known.size < row.size and call.layer_code is quantile):
        raise NoBreakdownError("an element is NaN")
    order = known[np.argsort(row[known], kind="stable")]
    share = shares[index[0]] if shares.ndim else shares
    rank = share * shares.dtype.type(len(order) - 1)
    low, high = int(np.floor(rank)), int(np.ceil(rank))
    method = call.arguments["interpolation"]
    if method in {"lower", "higher", "nearest"} or low == high:
        chosen = [{"lower": low, "higher": high}.get(method, int(np.rint(rank)))]
        weights = [1.0]
    else:
        weight = 0.5 if method == "midpoint" else float(rank - low)
        chosen, weights = [low, high], [1 - weight, weight]
    sizes = [size for size, each in zip(input.shape, rows, strict=True) if each is None]
    inside = iter(np.unravel_index(order[chosen], sizes) if sizes else ())
    places = np.zeros((len(chosen), input.ndim), np.int64)
    for axis, each in enumerate(rows):
        places[:, axis] = next(inside) if each is None else each
    return places, np.array(weights)


@explains(*QUANTILES)
def explain_quantile(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Interpolate between two elements."""
    places, weights = quantile_of(call, index)
    elements = take(call.array("input"), "input", places)
    terms = multiply((elements, make_factor("weight", weights)), (len(weights),), ("element",))
    formula = f"y{format_index(index)} = Σ weight · {elements.name} in order"
    return add_up(call, formula, terms)


@locates(*QUANTILES)
def locate_quantile(call: Call, box: Box) -> Mapping[str, Box]:
    """Return whole rows, and the shares."""
    input, shares = call.array("input"), call.arguments["q"]
    rows = _rows(call, box)
    whole = input.whole
    found: dict[str, Box] = {
        input.name: tuple([each or whole[axis] for axis, each in enumerate(rows)])
    }
    if isinstance(shares, Operand):
        place = (Interval(box[0].start, box[0].stop),) if shares.ndim else ()
        found.setdefault(shares.name, place)
    return found
