"""Reductions: sums, means and extremes along dimensions, and running sums."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.layers import extremes, norm, reduction, scan
from engine.layers.arguments import axes_of
from engine.layers.differences import diff
from engine.layers.ncnn import shapes as ncnn
from engine.provenance.arithmetic import (
    add_up,
    format_index,
    grid,
    make_factor,
    multiply,
    require_terms,
    take_root,
)
from engine.provenance.call import NoBreakdownError, Operand, is_array, rounding, take
from engine.provenance.records import Breakdown, Interval, Kind, Step, Terms
from engine.provenance.rules.elementwise import explain_function, locate_elementwise
from engine.provenance.rules.pooling import choose, mean_of
from engine.provenance.table import codes_of, explains, locates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.provenance.call import Call
    from engine.provenance.records import Box, Factor
    from engine.values import Array

__all__ = [
    "LOGSUMS",
    "MEANS",
    "NORMS",
    "PRODUCTS_OF",
    "SPREADS",
    "SUMS",
    "difference_weights",
    "explain_extreme",
    "explain_mean",
    "explain_sum",
    "locate_reduction",
    "norm_of",
    "read_order",
    "reduced_axes",
    "spread_divisor",
]

SUMS, MEANS = codes_of("torch.sum"), codes_of("torch.mean")
_EXTREMES = codes_of("torch.amax", "torch.amin")
_NAN_SUMS, _NAN_MEANS = codes_of("torch.nansum"), codes_of("torch.nanmean")
PRODUCTS_OF, LOGSUMS = codes_of("torch.prod"), codes_of("torch.logsumexp")
_TRUTHS = codes_of("torch.all", "torch.any")
_OTHERS = (*PRODUCTS_OF, *_NAN_SUMS, *_NAN_MEANS, *_TRUTHS, *LOGSUMS)
_BOTH = (extremes.maximum, extremes.minimum)
SPREADS = (reduction.var, reduction.std, reduction.var_mean, reduction.std_mean)
NORMS = (norm.norm, norm.vector_norm, norm.frobenius_norm, norm.linalg_norm)
_ALONG = (
    extremes.argmax, extremes.argmin, extremes.median, extremes.nanmedian, extremes.mode,
    extremes.kthvalue, *NORMS,
)  # fmt: skip
_SORTS = (extremes.topk, extremes.sort, extremes.argsort, extremes.msort)


def reduced_axes(call: Call) -> tuple[int, ...]:
    """Return the dimensions that are reduced."""
    layer, ndim = call.layer, call.array("input").ndim
    if isinstance(layer, ncnn.Reduction):
        return layer.places(ndim)
    dim = call.arguments.get("dim")
    if isinstance(dim, Operand):
        dim = tuple(dim.value.reshape(-1).tolist())
    if call.layer_code in {extremes.mode, extremes.kthvalue} and dim is None:
        dim = -1
    return axes_of(dim, ndim)


def _aligned(call: Call, items: tuple[Any, ...], axes: tuple[int, ...]) -> list[Any]:
    """Return an item for each dimension of the input; None for those that are reduced."""
    ndim = call.array("input").ndim
    if len(axes) == ndim:
        return [None] * ndim  # of all ncnn makes one dimension
    if len(items) == ndim:
        return [None if axis in axes else items[axis] for axis in range(ndim)]
    if len(items) != ndim - len(axes):
        raise NoBreakdownError("the result's dimensions are unclear")
    left = iter(items)
    return [None if axis in axes else next(left) for axis in range(ndim)]


@locates(*SUMS, *MEANS, *_EXTREMES, *_OTHERS, *SPREADS, *_ALONG, ncnn.Reduction)
def locate_reduction(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the reduced dimensions as a whole."""
    input = call.array("input")
    found = _aligned(call, box, reduced_axes(call))
    whole = input.whole
    return {input.name: tuple([each or whole[axis] for axis, each in enumerate(found)])}


@locates(*_BOTH)
def locate_extreme(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the reduced dimensions, or the elements of both tensors."""
    if _compares(call):
        return locate_elementwise(call, box)
    return locate_reduction(call, box)


def _compares(call: Call) -> bool:
    """Whether two tensors are compared element by element."""
    given = call.arguments
    return given.get("other") is not None or isinstance(given.get("dim"), Operand)


@locates(*_SORTS)
def locate_sort(call: Call, box: Box) -> Mapping[str, Box]:
    """Return whole rows."""
    input = call.array("input")
    axis = _sorted_axis(call)
    return {input.name: _whole_along(input, box, axis)}


def _sorted_axis(call: Call) -> int:
    """Return the dimension that is sorted; ``torch.msort`` sorts the first."""
    ndim, dim = call.array("input").ndim, call.arguments.get("dim", 0)
    return int(dim) % ndim if ndim else 0


def _whole_along(input: Operand, box: Box, axis: int) -> Box:
    if not input.ndim:
        return ()
    return (*box[:axis], Interval.whole(input.shape[axis]), *box[axis + 1 :])


def _elements(call: Call, index: tuple[int, ...]) -> tuple[Factor, list[int], list[str]]:
    """Return the elements that are reduced, and the reduced sizes and their names."""
    input, axes = call.array("input"), reduced_axes(call)
    rows = _aligned(call, index, axes)
    places = [
        range(input.shape[axis]) if row is None else [row] for axis, row in enumerate(rows)
    ]
    sizes = [input.shape[axis] for axis in sorted(axes)]
    names = [f"dim {axis}" for axis in sorted(axes)]
    return take(input, "input", grid(*places)), sizes, names


@explains(*SUMS)
def explain_sum(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum elements."""
    elements, sizes, names = _elements(call, index)
    formula = f"y{format_index(index)} = Σ {elements.name} over {len(elements.values)} elements"
    return add_up(call, formula, multiply([elements], sizes, names))


@explains(*MEANS)
def explain_mean(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum elements, each divided by their number."""
    elements, sizes, names = _elements(call, index)
    return mean_of(call, index, elements, float(max(1, len(elements.values))), sizes, names)


@explains(*_EXTREMES, *_BOTH)
def explain_extreme(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Choose the largest or the smallest element."""
    if call.layer_code in _BOTH and _compares(call):
        return explain_function(call, index)
    if call.place:
        return explain_choice(call, index)
    elements, sizes, names = _elements(call, index)
    smallest = call.layer_code in {extremes.minimum, *codes_of("torch.amin")}
    chosen = (np.argmin if smallest else np.argmax)(elements.values)
    return choose(index, multiply([elements], sizes, names), elements.name, chosen)


@explains(*_NAN_SUMS, *_NAN_MEANS)
def explain_sum_of_numbers(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum the elements that are not NaN, or divide each by their number."""
    elements, sizes, names = _elements(call, index)
    known = ~np.isnan(elements.values)
    elements = replace(elements, values=np.where(known, elements.values, 0.0))
    count = int(known.sum())
    if call.layer_code in _NAN_MEANS:
        if not count:
            raise NoBreakdownError("all elements are NaN")
        return mean_of(call, index, elements, float(count), sizes, names)
    formula = f"y{format_index(index)} = Σ {elements.name} over {count} elements"
    return add_up(call, formula, multiply([elements], sizes, names))


@explains(*PRODUCTS_OF, *_TRUTHS)
def explain_product_of_all(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Multiply elements, or say whether they are true."""
    elements, sizes, names = _elements(call, index)
    values = elements.values
    name = call.operator.type.rpartition(".")[2].rpartition(":")[2]
    with np.errstate(all="ignore"):
        total = {"all": values.all, "any": values.any}.get(name, values.prod)()
    word = "Π" if name == "prod" else f"{name} of"
    formula = f"y{format_index(index)} = {word} {elements.name} over {len(values)} elements"
    terms = Terms((elements,), values, tuple(sizes), tuple(names))
    error = 8 * rounding(call.dtype) * (len(values) + 1) * abs(float(total))
    return Breakdown(Kind.FUNCTION, formula, terms, float(total), error)


@explains(*LOGSUMS)
def explain_log_of_sum(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum exponentials, and take the logarithm."""
    elements, sizes, names = _elements(call, index)
    return log_of_sum(call, index, elements, sizes, names)


def log_of_sum(
    call: Call,
    index: tuple[int, ...],
    elements: Factor,
    sizes: Sequence[int],
    names: Sequence[str],
) -> Breakdown:
    """Make the breakdown of the logarithm of a sum of exponentials."""
    peak = float(elements.values.max(initial=-np.inf))
    shift = peak if math.isfinite(peak) else 0.0
    with np.errstate(all="ignore"):
        powers = np.exp(elements.values - shift)
        total = float(np.log(powers.sum())) + shift
    terms = Terms((elements,), powers, tuple(sizes), tuple(names))
    formula = f"y{format_index(index)} = log Σ exp({elements.name}) over {len(powers)} elements"
    relative = 8 * (math.sqrt(len(powers)) + 4) * rounding(call.dtype)
    error = relative * (1 + abs(shift)) + 2 * rounding(call.dtype) * abs(total)
    steps = Step("max", shift), Step("Σ exp(x − max)", float(powers.sum()))
    return Breakdown(Kind.ACTIVATED, formula, terms, total, error, steps=steps)


@explains(*SPREADS)
def explain_spread(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum the squared distances from the mean, divided by their number; std takes the root."""
    elements, sizes, names = _elements(call, index)
    values, count = elements.values, len(elements.values)
    mean = float(values.mean()) if count else math.nan
    if call.place:
        return mean_of(call, index, elements, float(max(1, count)), sizes, names)
    divisor = spread_divisor(call, count)
    squares = make_factor("(x − mean)²", np.square(values - mean))
    share = make_factor("1 / count", np.full(count, 1 / divisor if divisor else math.inf))
    terms = replace(
        multiply([squares, share], sizes, names), factors=(elements, squares, share)
    )
    is_root = call.layer_code in {reduction.std, reduction.std_mean}
    text = f"1/{divisor:g} · Σ ({elements.name} − mean)² over {count} elements"
    formula = f"y{format_index(index)} = {f'√({text})' if is_root else text}"
    magnitude = float(np.square(values).mean()) if count else 0.0
    found = add_up(call, formula, terms, steps=(Step("mean", mean),))
    error = found.error + 8 * rounding(call.dtype) * magnitude
    found = replace(found, kind=Kind.SUM, error=error)
    return take_root(call, found, 2.0) if is_root else found


def spread_divisor(call: Call, count: int) -> float:
    """Return what the squared distances are divided by."""
    given = call.arguments
    correction = given.get("correction")
    if correction is None:
        unbiased = given.get("unbiased")
        correction = 1 if unbiased is None else unbiased
    if isinstance(correction, Operand):
        correction = correction.value.item()
    return max(0.0, count - float(correction))


@explains(*NORMS)
def explain_norm(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum powers of magnitudes, and take the root."""
    elements, sizes, names = _elements(call, index)
    return norm_of(call, index, elements, read_order(call), sizes, names)


def read_order(call: Call) -> float:
    """Return the order of a norm."""
    given: Any = call.arguments.get("ord", call.arguments.get("p", 2))
    if (
        call.layer_code is norm.linalg_norm
        and given is not None
        and len(reduced_axes(call)) > 1
    ):
        raise NoBreakdownError("the norm of a matrix has no breakdown")
    if given is None or given == "fro":
        return 2.0
    if isinstance(given, Operand):
        return float(given.value)
    return float(given)


def norm_of(
    call: Call,
    index: tuple[int, ...],
    elements: Factor,
    order: float,
    sizes: Sequence[int],
    names: Sequence[str],
) -> Breakdown:
    """Make the breakdown of a norm of elements."""
    sizes_of = np.abs(elements.values)
    magnitudes = make_factor("|x|", sizes_of)
    if math.isinf(order):
        terms = Terms((elements, magnitudes), sizes_of, tuple(sizes), tuple(names))
        chosen = int((np.argmax if order > 0 else np.argmin)(sizes_of))
        return choose(index, terms, f"|{elements.name}|", chosen)
    with np.errstate(all="ignore"):
        powers = np.power(sizes_of, order) if order else (sizes_of != 0).astype(np.float64)
    factor = make_factor(f"|x|^{order:g}", powers)
    terms = Terms((elements, factor), powers, tuple(sizes), tuple(names))
    text = f"Σ |{elements.name}|^{order:g} over {len(powers)} elements"
    root = f"({text})^(1/{order:g})" if order not in {0.0, 1.0, 2.0} else text
    formula = f"y{format_index(index)} = {f'√({text})' if order == 2 else root}"
    found = add_up(call, formula, terms)
    return found if order in {0.0, 1.0} else take_root(call, found, order)


_WORDS: Final[dict[Any, str]] = {
    extremes.argmax: "position of the largest",
    extremes.argmin: "position of the smallest",
    extremes.median: "median",
    extremes.nanmedian: "median",
    extremes.mode: "most frequent",
    extremes.kthvalue: "k-th smallest",
    extremes.topk: "one of the sorted",
    extremes.sort: "one of the sorted",
    extremes.msort: "one of the sorted",
    extremes.argsort: "position of one of the sorted",
    scan.cummax: "largest so far",
    scan.cummin: "smallest so far",
}
_POSITIONS: Final = frozenset({extremes.argmax, extremes.argmin, extremes.argsort})


@explains(
    extremes.argmax, extremes.argmin, extremes.median, extremes.nanmedian, extremes.mode,
    extremes.kthvalue, *_SORTS, scan.cummax, scan.cummin,
)  # fmt: skip
def explain_choice(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Choose one of several elements, or say where it is.

    The operator itself chooses, among copies of these elements alone.
    """
    rows = locate_choice(call, index)
    elements = take(call.array("input"), "input", grid(*rows))
    sizes = [len(row) for row in rows]
    total = _choose(call, index, elements, sizes)
    is_position = call.place > 0 or call.layer_code in _POSITIONS
    word = _WORDS.get(call.layer_code, "extreme")
    if is_position and not word.startswith("position"):
        word = f"position of the {word}"
    varied = [axis for axis, size in enumerate(sizes) if size > 1]
    shape = [sizes[axis] for axis in varied] or [1]
    names = [f"dim {axis}" for axis in varied] or ["term"]
    terms = multiply([elements], shape, names)
    chosen = int(total) if is_position else _first_equal(elements.values, total)
    count = len(elements.values)
    formula = f"y{format_index(index)} = {word} of {count} elements of {elements.name}"
    kind = Kind.FUNCTION if is_position else Kind.CHOICE
    return Breakdown(kind, formula, terms, total, 0.0, chosen=chosen)


def _choose(
    call: Call, index: tuple[int, ...], elements: Factor, sizes: Sequence[int]
) -> float:
    """Run the operator on copies of the elements, which have these sizes along its axes."""
    alone = elements.values.astype(call.array("input").dtype).reshape(sizes)
    values = [
        alone if isinstance(each, Operand) and each.name == elements.name
        else each.value if isinstance(each, Operand) else each
        for each in call.inputs
    ]  # fmt: skip
    found = np.asarray(call.forward(values))
    if found.ndim != len(index):
        return float(found[()])
    # Along an axis of one element, whichever it is, the copy is the first.
    keeps_axes = len(call.shape) == len(sizes)
    at = [place if keeps_axes and sizes[axis] > 1 else 0 for axis, place in enumerate(index)]
    return float(found[tuple(at)])


def _first_equal(values: Array, number: float) -> int | None:
    """Return the first position of a number, which may be NaN; None if it is not there."""
    equal = np.flatnonzero(np.isnan(values) if math.isnan(number) else values == number)
    return int(equal[0]) if equal.size else None


def locate_choice(call: Call, index: tuple[int, ...]) -> list[Sequence[int]]:
    """Return the positions along each dimension of the elements that are chosen from."""
    input, code = call.array("input"), call.layer_code
    if code in _SORTS or code in {scan.cummax, scan.cummin}:
        axis = _sorted_axis(call)
        rows: list[Sequence[int]] = [[place] for place in index]
        if rows:
            stop = index[axis] + 1 if code not in _SORTS else input.shape[axis]
            rows[axis] = range(stop)
        return rows
    aligned = _aligned(call, index, reduced_axes(call))
    return [
        range(input.shape[axis]) if row is None else [row] for axis, row in enumerate(aligned)
    ]


@explains(ncnn.Reduction)
def explain_ncnn_reduction(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum elements times a factor, or choose the largest or the smallest."""
    layer = call.layer
    if not isinstance(layer, ncnn.Reduction) or layer.operation not in {0, 3, 4, 5}:
        raise NoBreakdownError("only sums, means and extremes are broken down")
    elements, sizes, names = _elements(call, index)
    coefficient, count = float(layer.coefficient), max(1, len(elements.values))
    if layer.operation in {4, 5} and coefficient == 1:
        chosen = (np.argmax if layer.operation == 4 else np.argmin)(elements.values)
        return choose(index, multiply([elements], sizes, names), elements.name, chosen)
    if layer.operation in {4, 5}:
        raise NoBreakdownError("an extreme times a factor has no breakdown")
    if layer.operation == 3:
        return mean_of(call, index, elements, count / coefficient, sizes, names)
    scale = "" if coefficient == 1 else f"{coefficient:g} · "
    formula = f"y{format_index(index)} = {scale}Σ {elements.name} over {count} elements"
    return add_up(call, formula, multiply([elements], sizes, names, coefficient))


def _scanned(call: Call) -> int:
    """Return the dimension of a running sum, or of the like."""
    name = "axis" if call.layer_code is ncnn.cumulative_sum else "dim"
    return int(call.arguments[name])


@explains(scan.cumsum, ncnn.cumulative_sum)
def explain_running_sum(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum the elements up to a position."""
    input, axis = call.array("input"), _scanned(call)
    if not index:
        raise NoBreakdownError("the sum of a number is the number")
    axis %= input.ndim
    rows = [[place] for place in index]
    before = range(index[axis] + 1)
    elements = take(input, "input", grid(*rows[:axis], before, *rows[axis + 1 :]))
    formula = f"y{format_index(index)} = Σ {elements.name} over {len(before)} elements"
    return add_up(call, formula, multiply([elements], (len(before),), (f"dim {axis}",)))


@explains(scan.cumprod, scan.logcumsumexp)
def explain_running_product(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Multiply the elements up to a position, or take the logarithm of their exponentials."""
    input, axis = call.array("input"), _scanned(call)
    if not index:
        raise NoBreakdownError("one number has no breakdown")
    axis %= input.ndim
    rows: list[Sequence[int]] = [[place] for place in index]
    rows[axis] = range(index[axis] + 1)
    elements = take(input, "input", grid(*rows))
    count = len(elements.values)
    if call.layer_code is scan.logcumsumexp:
        return log_of_sum(call, index, elements, (count,), (f"dim {axis}",))
    with np.errstate(all="ignore"):
        total = float(elements.values.prod())
    formula = f"y{format_index(index)} = Π {elements.name} over {count} elements"
    terms = Terms((elements,), elements.values, (count,), (f"dim {axis}",))
    error = 8 * rounding(call.dtype) * (count + 1) * abs(total)
    return Breakdown(Kind.FUNCTION, formula, terms, total, error)


@locates(
    scan.cumsum, scan.cumprod, scan.logcumsumexp, scan.cummax, scan.cummin, ncnn.cumulative_sum
)  # fmt: skip
def locate_scan(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the elements up to a position."""
    input, axis = call.array("input"), _scanned(call)
    if not input.ndim:
        return {input.name: ()}
    axis %= input.ndim
    return {input.name: (*box[:axis], Interval(0, box[axis].stop), *box[axis + 1 :])}


_MOST_DIFFERENCES: Final = 1029  # the binomials of more are beyond float64


def difference_weights(call: Call) -> tuple[int, list[int]]:
    """Return the dimension of differences of neighbours, and what each neighbour counts."""
    input, arguments = call.array("input"), call.arguments
    times = int(arguments["n"])
    if any(is_array(arguments[name]) for name in ("prepend", "append")):
        raise NoBreakdownError("what is joined to the elements first is not followed")
    if input.dtype.kind == "b":
        raise NoBreakdownError("whether neighbours differ is no sum")
    if times > _MOST_DIFFERENCES:
        raise NoBreakdownError(f"the weights of {times} differences are too large")
    return int(arguments["dim"]) % input.ndim, [
        (-1) ** (times - place) * math.comb(times, place) for place in range(times + 1)
    ]


@explains(diff)
def explain_difference(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Subtract neighbours, as often as the operator does."""
    axis, weights = difference_weights(call)
    count = len(weights)
    require_terms(count)
    rows: list[Sequence[int]] = [[place] for place in index]
    rows[axis] = range(index[axis], index[axis] + count)
    elements = take(call.array("input"), "input", grid(*rows))
    counted = make_factor("weight", np.array(weights, np.float64))
    formula = (
        f"y{format_index(index)} = Σ {elements.name} · {counted.name} over {count} neighbours"
    )
    return add_up(call, formula, multiply([elements, counted], (count,), (f"dim {axis}",)))


@locates(diff)
def locate_difference(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the neighbours too."""
    axis, weights = difference_weights(call)
    own = Interval(box[axis].start, box[axis].stop + len(weights) - 1)
    return {call.array("input").name: (*box[:axis], own, *box[axis + 1 :])}
