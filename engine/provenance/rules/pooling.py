"""Poolings: the largest element of a window, or its mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine.layers.adaptive_pooling import AdaptiveAveragePool, AdaptiveMaxPool, window_bounds
from engine.layers.ncnn.pooling import Pooling
from engine.layers.pooling import AveragePool, MaxPool, PowerPool, count_taps_inside
from engine.provenance.arithmetic import (
    add_up,
    format_index,
    grid,
    make_factor,
    multiply,
    take_root,
)
from engine.provenance.call import NoBreakdownError, take
from engine.provenance.records import Breakdown, Kind, Terms
from engine.provenance.rules.windows import AXIS_NAMES, Table, read_box, sliding
from engine.provenance.table import explains, locates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.provenance.call import Call, Operand
    from engine.provenance.records import Box, Factor
    from engine.provenance.rules.windows import AxisReads

__all__ = [
    "area_reads",
    "choose",
    "explain_average",
    "explain_largest",
    "locate_pool",
    "mean_of",
    "pool_reads",
]


def area_reads(sizes: Sequence[int], counts: Sequence[int]) -> list[AxisReads]:
    """Return the windows of an adaptive pooling, one for each spatial axis."""
    found: list[AxisReads] = []
    for size, count in zip(sizes, counts, strict=True):
        starts, stops = window_bounds(size, count)
        taps = starts + np.arange(int((stops - starts).max()))[:, np.newaxis]
        found.append(Table(size, np.where(taps < stops, taps, -1)))
    return found


def pool_reads(call: Call) -> list[AxisReads]:
    """Return the windows of a pooling, one for each spatial axis."""
    layer, shape = call.layer, call.array("input").shape
    if isinstance(layer, (AdaptiveAveragePool, AdaptiveMaxPool)):
        return area_reads(shape[-layer.rank :], call.shape[-layer.rank :])
    if isinstance(layer, (AveragePool, MaxPool, PowerPool)):
        windows = layer.windows
        return sliding(windows, shape[-windows.rank :])
    if isinstance(layer, Pooling) and not layer.is_global:
        found = layer.require_shapes(shape)
        if found is None:
            return area_reads(shape[1:], call.shape[1:])
        return sliding(found.windows, shape[1:])
    raise NoBreakdownError(f"{call.operator.type} has no windows")


@locates(MaxPool, AveragePool, PowerPool, AdaptiveAveragePool, AdaptiveMaxPool, Pooling)
def locate_pool(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the windows."""
    if isinstance(call.layer, Pooling) and call.layer.is_global:
        input = call.array("input")
        return {input.name: (box[0], *input.whole[1:])}
    reads = pool_reads(call)
    window = read_box(reads, box[-len(reads) :])
    if window is None:
        return {}
    return {call.array("input").name: (*box[: -len(reads)], *window)}


def _window(call: Call, reads: Sequence[AxisReads], index: tuple[int, ...]) -> Factor:
    """Return the elements of a window that lie inside the input."""
    places = [
        axis.positions(np.array([place]))[0]
        for axis, place in zip(reads, index[-len(reads) :], strict=True)
    ]
    inside = [axis[axis >= 0] for axis in places]
    lead = [[each] for each in index[: -len(reads)]]
    return take(call.array("input"), "input", grid(*lead, *inside))


def _shape(factor: Factor, rank: int) -> tuple[int, ...]:
    """Return the sizes of a window, from the indices of its elements."""
    return tuple([len(np.unique(factor.indices[:, axis])) for axis in range(-rank, 0)])


@explains(MaxPool, AdaptiveMaxPool)
def explain_largest(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Choose the largest element of a window."""
    reads = pool_reads(call)
    window = _window(call, reads, index)
    terms = multiply([window], _shape(window, len(reads)), AXIS_NAMES[len(reads)])
    found = choose(index, terms, window.name, np.argmax(window.values))
    if not call.place:
        return found
    sizes = call.array("input").shape[-len(reads) :]
    place = window.indices[found.chosen or 0, -len(reads) :]
    number = float(np.ravel_multi_index(tuple(place.tolist()), sizes))
    formula = (
        f"y{format_index(index)} = position of the largest of {len(window.values)} elements "
        f"of {window.name}, counted over the image"
    )
    return Breakdown(Kind.FUNCTION, formula, terms, number, 0.0, chosen=found.chosen)


@explains(PowerPool)
def explain_power(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum powers of the elements of a window, and take the root."""
    layer, reads = call.layer, pool_reads(call)
    if not isinstance(layer, PowerPool):
        raise NoBreakdownError("this is no pooling")
    window, order = _window(call, reads, index), float(layer.power)
    with np.errstate(all="ignore"):
        powers = make_factor(f"x^{order:g}", np.power(window.values, order))
    shape, axes = _shape(window, len(reads)), AXIS_NAMES[len(reads)]
    # The mean of the existing elements replaces those beyond the end.
    share = layer.windows.tap_count / max(1, len(window.values))
    terms = multiply([powers], shape, axes, share)
    terms = Terms((window, powers), terms.products, terms.shape, terms.axes)
    scale = "" if share == 1 else f"{share:g} · "
    text = f"{scale}Σ {window.name}^{order:g} over {len(window.values)} elements"
    formula = f"y{format_index(index)} = ({text})^(1/{order:g})"
    return take_root(call, add_up(call, formula, terms), order)


def choose(
    index: tuple[int, ...], terms: Terms, name: str, chosen: np.integer | int
) -> Breakdown:
    """Make the breakdown of an element that is one of several."""
    total = float(terms.products[chosen])
    word = "max" if total == terms.products.max() or np.isnan(total) else "min"
    formula = f"y{format_index(index)} = {word} of {len(terms.products)} elements of {name}"
    return Breakdown(Kind.CHOICE, formula, terms, total, 0.0, chosen=int(chosen))


@explains(AveragePool, AdaptiveAveragePool)
def explain_average(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum the elements of a window, each divided by their number."""
    reads, layer = pool_reads(call), call.layer
    window = _window(call, reads, index)
    divisor = float(max(1, len(window.values)))
    if isinstance(layer, AveragePool):
        if layer.divisor_override is not None:
            divisor = float(layer.divisor_override)
        else:
            divisor = float(np.prod([
                count_taps_inside(
                    layer.windows, axis, size, count, padded=layer.count_include_pad
                )[place]
                for axis, (size, count, place) in enumerate(zip(
                    call.array("input").shape[-len(reads) :],
                    call.shape[-len(reads) :],
                    index[-len(reads) :],
                    strict=True,
                ))
            ]))  # fmt: skip
    return mean_of(
        call, index, window, divisor, _shape(window, len(reads)), AXIS_NAMES[len(reads)]
    )


def mean_of(
    call: Call,
    index: tuple[int, ...],
    elements: Factor,
    divisor: float,
    shape: Sequence[int],
    axes: Sequence[str],
) -> Breakdown:
    """Make the breakdown of a mean."""
    if call.dtype.kind != "f":
        raise NoBreakdownError("a mean of integers is rounded")
    share = make_factor("1 / count", np.full(len(elements.values), 1 / divisor))
    terms = multiply([elements, share], shape, axes)
    count = len(elements.values)
    formula = (
        f"y{format_index(index)} = 1/{divisor:g} · Σ {elements.name} over {count} elements"
    )
    return add_up(call, formula, terms)


@explains(Pooling)
def explain_ncnn_pool(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Choose the largest element of a window of ncnn, or sum its elements."""
    layer, input = call.layer, call.array("input")
    if not isinstance(layer, Pooling):
        raise NoBreakdownError("this is no pooling")
    if layer.is_global:
        window = take(input, "input", grid([index[0]], *map(range, input.shape[1:])))
    else:
        window = _window(call, pool_reads(call), index)
    rank = input.ndim - 1
    shape, axes = _shape(window, rank), AXIS_NAMES[rank]
    if layer.kind == 0:
        terms = multiply([window], shape, axes)
        return choose(index, terms, window.name, np.argmax(window.values))
    return mean_of(call, index, window, _divisor(layer, input, window), shape, axes)


def _divisor(layer: Pooling, input: Operand, window: Factor) -> float:
    """Return what a sum over a window of ncnn is divided by."""
    found = layer.require_shapes(input.shape)
    if found is None or not layer.counts_pad:
        return float(len(window.values))
    return float(found.windows.tap_count)
