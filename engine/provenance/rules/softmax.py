"""Softmax and its logarithm."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from engine.layers.ncnn.shapes import softmax as ncnn_softmax
from engine.layers.softmax import log_softmax, softmax, softmax2d, softmin
from engine.provenance.arithmetic import format_index, grid, make_factor
from engine.provenance.call import NoBreakdownError, rounding, take
from engine.provenance.records import Breakdown, Interval, Kind, Step, Terms
from engine.provenance.table import explains, locates

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.provenance.call import Call
    from engine.provenance.records import Box

__all__ = ["CODES", "explain_softmax", "locate_softmax", "softmax_axis"]

CODES = (softmax, softmin, softmax2d, log_softmax, ncnn_softmax)


def softmax_axis(call: Call) -> int:
    """Return the dimension of the rows."""
    ndim = call.array("input").ndim
    dim = call.arguments.get("axis" if call.layer_code is ncnn_softmax else "dim")
    if call.layer_code is softmax2d:
        return ndim - 3
    if dim is None:
        return 0 if ndim in {0, 1, 3} else 1
    if not isinstance(dim, int):
        raise NoBreakdownError("dim is computed")
    return dim % ndim if ndim else 0


@locates(*CODES)
def locate_softmax(call: Call, box: Box) -> Mapping[str, Box]:
    """Return whole rows."""
    input, axis = call.array("input"), softmax_axis(call)
    if not input.ndim:
        return {input.name: ()}
    return {input.name: (*box[:axis], Interval.whole(input.shape[axis]), *box[axis + 1 :])}


@explains(*CODES)
def explain_softmax(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Divide one exponential by the sum of all of its row."""
    input, axis = call.array("input"), softmax_axis(call)
    if not index:
        raise NoBreakdownError("the softmax of a number is 1")
    rows = [[place] for place in index]
    size = input.shape[axis]
    x = take(input, "input", grid(*rows[:axis], range(size), *rows[axis + 1 :]))
    sign = -1.0 if call.layer_code is softmin else 1.0
    values = sign * x.values
    peak = float(values.max())
    with np.errstate(all="ignore"):
        powers = np.exp(values - peak)
        total = float(powers.sum())
    chosen = index[axis]
    own = rounding(call.dtype)
    work = min(own, rounding(np.dtype(np.float32)))
    relative = 8 * (math.sqrt(size) + 4) * work
    place = format_index(index)
    row = format_index([*index[:axis], "j", *index[axis + 1 :]])
    inner = f"{'−' if sign < 0 else ''}{x.name}"
    steps = (Step("max of the row", peak), Step("Σ of the exponentials", total))
    distance = abs(float(values[chosen]) - peak)  # its rounding is an exponent's
    if math.isinf(distance):  # hidden by a mask: exactly 0
        distance = 0.0
    if call.layer_code is log_softmax:
        result = float(values[chosen]) - peak - math.log(total)
        formula = (
            f"y{format_index(index)} = {inner}{format_index(index)} − log Σ exp({inner}{row})"
        )
        error = relative * (1 + distance + abs(peak)) + 2 * own * abs(result)
        ones = make_factor("1", np.ones(1))
        only = take(input, "input", grid(*rows))
        terms = Terms((only, ones), only.values.copy(), (1,), ("term",))
        offset = -peak - math.log(total)
        return Breakdown(
            Kind.NORMALISED, formula, terms, result, error, offset, "−log Σ exp", steps=steps
        )
    result = float(powers[chosen]) / total
    formula = f"y{place} = exp({inner}{place} − max) / Σ exp({inner}{row} − max)"
    error = (
        relative * result * (1 + distance) + 2 * own * result + float(np.finfo(np.float32).tiny)
    )
    terms = Terms((x,), powers, (size,), ("term",))
    return Breakdown(Kind.SHARE, formula, terms, result, error, chosen=chosen, steps=steps)
