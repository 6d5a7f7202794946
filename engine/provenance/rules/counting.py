"""Counts of elements in intervals, and vectors of a one at the place of a number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.layers.quantiles import find_edges, histc
from engine.layers.searching import bincount, one_hot
from engine.provenance.arithmetic import format_index, require_terms
from engine.provenance.call import NoBreakdownError, take
from engine.provenance.records import Breakdown, Kind, Terms
from engine.provenance.slopes import wide
from engine.provenance.table import explains, locates

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from engine.provenance.call import Call
    from engine.provenance.records import Box

__all__ = ["COUNTS", "explain_count", "explain_one_hot", "locate_count", "locate_one_hot"]

COUNTS: Final = (histc, bincount)


@explains(*COUNTS)
def explain_count(call: Call, index: tuple[int, ...]) -> Breakdown:
    """List the elements that are counted."""
    input, arguments = call.array("input"), call.arguments
    if arguments.get("weights") is not None:
        raise NoBreakdownError("weights are added, and no elements counted")
    (place,) = index
    value = input.value
    if call.layer_code is bincount:
        inside, text = value == place, f"equal to {place}"
    else:
        # Each may be an operand.
        bins, low, high = (wide(arguments[name]).item() for name in ("bins", "min", "max"))
        edges = find_edges(value, int(bins), (low, high), around=1)
        low, high = edges[place], edges[place + 1]
        last = place == len(edges) - 2  # the last interval has both of its ends
        inside = (value >= low) & ((value <= high) if last else (value < high))
        text = f"from {low:g} {'to' if last else 'to below'} {high:g}"
    places: npt.NDArray[Any] = np.argwhere(inside)
    require_terms(len(places))
    elements = take(input, "input", places.astype(np.int64).reshape(-1, input.ndim))
    formula = f"y{format_index(index)} = number of elements of {input.name} {text}"
    terms = Terms((elements,), np.ones(len(places)), (len(places),), ("element",))
    return Breakdown(Kind.FUNCTION, formula, terms, float(len(places)), 0.0)


@locates(*COUNTS)
def locate_count(call: Call, box: Box) -> Mapping[str, Box]:  # noqa: ARG001 - of all alike
    """Return everything: each element may be counted."""
    return {each.name: each.whole for each in call.arrays}


@explains(one_hot)
def explain_one_hot(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Compare one number with the place."""
    element = take(call.array("input"), "input", np.array([index[:-1]], np.int64))
    total = float(element.values[0] == index[-1])
    name = f"{element.name}{format_index(index[:-1])}"
    formula = f"y{format_index(index)} = 1 if {name} = {index[-1]}, else 0"
    terms = Terms((element,), np.array([total]), (1,), ("term",))
    return Breakdown(Kind.FUNCTION, formula, terms, total, 0.0)


@locates(one_hot)
def locate_one_hot(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the numbers at the same positions."""
    return {call.array("input").name: box[:-1]}
