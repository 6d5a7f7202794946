"""Tries alternatives of large operators on a small part first.

Most alternatives explain nothing, and a small part shows it: a corner of the image and a few
output channels, some elements, rows or steps. Only promising ones are tried on everything.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.backends.blas import one_blas_thread
from engine.comparison.reasons.case import DROPPED, Alternative, Case, make_case
from engine.comparison.reasons.discrepancy import Discrepancy, step_over
from engine.comparison.reasons.normalizing import norm_family
from engine.comparison.reasons.sliding import sliding_of
from engine.comparison.reasons.unfolding import unfold
from engine.errors import EngineError
from engine.layers import build_layer
from engine.layers.exactness import is_elementwise

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from engine.comparison.reasons.sliding import Sliding
    from engine.comparison.reasons.tails import Tail
    from engine.layers import OperatorCall
    from engine.values import Array, Value

__all__ = ["make_preview", "make_screen", "with_few_channels"]

_LARGE: Final = 1 << 16  # elements of input and output from which a part pays off
_LARGE_LAYER: Final = 1 << 20  # multiply-accumulates from which it does
_ELEMENTS: Final = 1 << 13
_ROWS: Final = 16
_STEPS: Final = 8  # of a sequence
_CHANNELS: Final = 8
_PLACES: Final = 5  # of each spatial axis, at least
_CLIPPED: Final = ("out_channels", "in_channels", "num_features", "out_features")
_CHANNEL_AXES: Final = {"nn.Conv1d": 1, "nn.Conv2d": 1, "nn.Conv3d": 1, "nn.Linear": -1}
_LOCAL: Final = frozenset({"eps"})


@dataclass(frozen=True)
class Preview:
    """A small part of a case.

    Attributes
    ----------
    small : Case
        Its expected result may be larger than the result of a cut alternative.
    cut : callable
        Restricts an alternative to the part; returns None if it cannot be tried there.
    trim : callable
        Takes a cut alternative; returns the part of the results to compare, or None.
    compute : callable or None
        Takes a cut alternative; returns what `small` gives with it, sooner than its layer.
    """

    small: Case
    cut: Callable[[Alternative], Alternative | None]
    trim: Callable[[Alternative], tuple[slice, ...] | None]
    compute: Callable[[Alternative], Value] | None = None
    _known: dict[tuple[tuple[int, int], ...], Discrepancy] = field(default_factory=dict)

    def left(self, alternative: Alternative) -> float | None:
        """Return how much of the part's difference is left; None if the part cannot tell."""
        cut = self.cut(alternative)
        region = self.trim(cut) if cut is not None else None
        if cut is None or region is None:
            return None
        expected = self.small.expected
        if not isinstance(expected, np.ndarray):
            return None
        moves = 0.0 if cut.by_element else cut.moves
        if moves:  # of a part it would be another function
            cut = replace(cut, after=None)
        if cut.swapped:
            reverse = self.small.reverse_discrepancy
            undone = expected if cut.after is None else cut.after(expected)
            return None if reverse.is_rounding else reverse.left(undone, moves)
        discrepancy = self._discrepancy_in(region, expected)
        if discrepancy.is_rounding:
            return None
        result = self.small.finish(self.own_result_of(cut))
        if not isinstance(result, np.ndarray):
            return math.inf
        found = result[region] if result.ndim == expected.ndim else result
        return discrepancy.left(found, moves)

    def own_result_of(self, cut: Alternative) -> Value:
        """Compute what our operator gives with a cut alternative, before what follows it."""
        # A second thread would be waited for longer than so small a product takes.
        with one_blas_thread:
            return (self.compute or self.small.own_result_of)(cut)

    def _discrepancy_in(self, region: tuple[slice, ...], expected: Array) -> Discrepancy:
        """Return the difference in a region, which most alternatives have in common."""
        key = tuple([(each.start, each.stop) for each in region])
        if key not in self._known:
            ours = self.small.ours
            comparable = isinstance(ours, np.ndarray) and ours.shape == expected.shape
            mine = ours[region] if comparable else None  # type: ignore[index,call-overload]
            noise = _cut_noise(self.small.noise, lambda noise: noise[region])
            self._known[key] = Discrepancy(self.small.finish(mine), expected[region], noise)
        return self._known[key]


def make_preview(case: Case) -> Callable[[Alternative], float | None] | None:
    """Return a function that tries alternatives on a small part; None for a small case."""
    expected = case.expected
    if not isinstance(expected, np.ndarray):
        return None
    if case.tail is not None and not case.tail.is_local:
        return _of_last_layer(case, case.tail)
    if not _is_large(case, expected):
        return None
    return _first_of([*_parts(case), _of_elements(case)])


def _first_of(previews: Iterable[Preview | None]) -> Callable[[Alternative], float | None]:
    """Return a function that asks previews until one can tell."""
    known = [each for each in previews if each is not None]

    def left(alternative: Alternative) -> float | None:
        found = (preview.left(alternative) for preview in known)
        return next((value for value in found if value is not None), None)

    return left


def _is_large(case: Case, expected: Array) -> bool:
    """Whether an alternative takes so long that a small part pays off."""
    taken = sum(value.size for value in case.inputs if isinstance(value, np.ndarray))
    return taken + expected.size >= _LARGE or case.macs * expected.size >= _LARGE_LAYER


def _call_of_channels(case: Case, weights: Mapping[str, Array]) -> OperatorCall:
    """Return the call of an operator with the weights of some channels."""
    params = {name: value for name, value in case.params.items() if name not in _CLIPPED}
    return replace(case.call, params=params, attributes=weights)


def with_few_channels(case: Case) -> Case | None:
    """Return the case of a layer with those channels that differ most, without its tail.

    Of other operators all is left; None if the tail does not tell what the result should be.
    """
    ours, wanted, told = case.ours, case.wanted, case.told
    if not isinstance(ours, np.ndarray) or not isinstance(wanted, np.ndarray):
        return None
    if ours.shape != wanted.shape:
        return None
    whole = replace(case, expected=wanted, known=told, tail=None, preview=None)
    axis = _CHANNEL_AXES.get(case.type)
    if axis is None or ours.ndim < 2 or case.value("groups", 1) != 1:
        return whole
    chosen = _worst_of(ours, wanted, axis)
    weights = {name: np.take(w, chosen, 0) for name, w in case.weights.items()}
    return replace(
        whole,
        call=_call_of_channels(case, weights),
        ours=np.take(ours, chosen, axis),
        expected=np.take(wanted, chosen, axis),
        known=None if told is None else np.take(told, chosen, axis),
    )


def _of_last_layer(case: Case, tail: Tail) -> Callable[[Alternative], float | None] | None:
    """Try alternatives with some channels of the large layer that a tail ends with.

    All that comes before is computed in whole, but for functions of what the layer reads.
    """
    parts, expected = tail.split(), case.expected
    if parts is None or tail.macs < _LARGE_LAYER or not isinstance(expected, np.ndarray):
        return None
    before, last = parts
    axis = _CHANNEL_AXES.get(last.type)
    layer = make_case(last, (), expected, ours=expected) if axis is not None else None
    given, ours = before(case.ours), case.finish(case.ours)
    if axis is None or layer is None or not isinstance(ours, np.ndarray):
        return None
    if ours.shape != expected.shape or ours.ndim < 2 or layer.value("groups", 1) != 1:
        return None
    chosen = _worst_of(ours, expected, axis)
    weights = {name: np.take(w, chosen, 0) for name, w in layer.weights.items()}
    small = replace(layer, call=_call_of_channels(layer, weights))

    def apply(value: Value) -> Value:
        if value is None:
            return None
        with one_blas_thread:
            return replace(small, inputs=(value,)).run(Alternative("", ""))

    kept = np.take(ours, chosen, axis)
    discrepancy = Discrepancy(kept, np.take(expected, chosen, axis))
    again = apply(given)
    # What is shown may be reshaped: then its channels are not those of the layer.
    is_part = isinstance(again, np.ndarray) and Discrepancy(again, kept).is_rounding
    if discrepancy.is_rounding or not is_part:
        return None

    whole = replace(layer, inputs=(given,), ours=ours)
    of_next = _first_of(_parts(whole) if given is case.ours else ())

    def left(alternative: Alternative) -> float | None:
        if alternative.swapped:
            return None
        as_input = _as_input_of_next(alternative)
        seen = of_next(as_input) if as_input is not None else None
        if seen is not None:
            return seen
        found = apply(before(case.own_result_of(alternative)))
        return math.inf if found is None else discrepancy.left(found)

    return left


def _as_input_of_next(alternative: Alternative) -> Alternative | None:
    """Return an element-wise function of a result as one of the input of what reads it."""
    if alternative.runs or alternative.after is None or not alternative.by_element:
        return None
    inputs = None if alternative.result is None else [alternative.result]
    return Alternative("", "", inputs=inputs, before=(0, alternative.after))


def make_screen(
    case: Case,
) -> Callable[[Collection[str], Callable[[Array], Array]], float | None] | None:
    """Return a function that changes weights on a small part; None for a small case.

    It takes names of weights and a change of each element. It returns the largest distance
    from what is expected, than which that of the whole is no smaller; None if the part cannot
    tell.
    """
    if case.input is None or not isinstance(case.expected, np.ndarray):
        return None
    if not _is_large(case, case.expected):
        return None
    part = _of_operator(case)
    return partial(_distance_in, part) if part is not None else None


def _distance_in(
    part: Preview, names: Collection[str], change: Callable[[Array], Array]
) -> float | None:
    small = part.small
    weights = {name: change(w) for name, w in small.weights.items() if name in names}
    changed = Alternative("", "", weights=weights)
    region = part.trim(changed)
    found = part.own_result_of(changed)
    if region is None or not isinstance(found, np.ndarray):
        return None
    if not isinstance(small.expected, np.ndarray) or found.ndim != small.expected.ndim:
        return None
    with np.errstate(invalid="ignore", over="ignore"):
        return float(np.abs(found[region] - small.expected[region]).max())


def _parts(case: Case) -> tuple[Preview | None, ...]:
    """Return small parts of an operator, the smallest first."""
    if sliding_of(case) is not None:
        narrow = _corner(case, narrow=True)
        return _unfolded(narrow), narrow, _corner(case)
    return (_of_operator(case),)


def _of_operator(case: Case) -> Preview | None:
    """Return a small part of an operator; None if no part represents it."""
    if sliding_of(case) is not None:
        corner = _corner(case)
        return _unfolded(corner) or corner
    if "LSTM" in case.type or "GRU" in case.type:
        return _first_steps(case)
    family = norm_family(case)
    if family in {"layer", "rms"}:
        return _some_rows(case)
    if case.type == "nn.Linear":
        return _some_features(case)
    if family == "batch":
        return _first_places(case)
    return _some_elements(case) if _is_elementwise(case) else None


def _is_elementwise(case: Case) -> bool:
    if case.type == "pnnx.Expression":
        return "size" not in str(case.params.get("expr"))
    try:
        return is_elementwise(build_layer(case.call, case.table))
    except EngineError:
        return False


def _everything(alternative: Alternative) -> tuple[slice, ...]:  # noqa: ARG001
    return ()


@dataclass(frozen=True)
class _Corner:
    """A corner of the image, with some output channels.

    Attributes
    ----------
    whole : Case
    area : tuple of slice
        Of the spatial axes of the input.
    channels : ndarray of int or None
        Output channels; None for all.
    axis : int
        Axis of the output channels in the weight; -1 for a pooling, which takes them from its
        input.
    """

    whole: Case
    area: tuple[slice, ...]
    channels: Array | None
    axis: int

    def cut_input(self, value: Array) -> Array:
        """Cut an image."""
        value = value[(slice(0, 1), slice(None), *self.area)]
        if self.axis < 0 and self.channels is not None:
            value = np.take(value, self.channels, 1)
        return np.ascontiguousarray(value)

    def cut_weights(self, weights: Mapping[str, Any]) -> dict[str, Any]:
        """Take the output channels of weights."""
        channels = self.channels
        if channels is None:
            return dict(weights)
        return {
            name: w if w is DROPPED else np.take(w, channels, self._axis_of(w))
            for name, w in weights.items()
        }

    def _axis_of(self, weight: Any) -> int:  # noqa: ANN401 - an array, perhaps lazy
        return 0 if len(weight.shape) == 1 else self.axis

    def cut_result(self, value: Value) -> Value:
        """Take the output channels of a result."""
        if not isinstance(value, np.ndarray) or self.channels is None:
            return value[:1] if isinstance(value, np.ndarray) else value
        if value.ndim < 2 or self.channels.max(initial=0) >= value.shape[1]:
            return None
        return self.cut_channels(value)

    def cut_channels(self, result: Array) -> Array:
        """Take the output channels of the first of a batch."""
        return result[:1] if self.channels is None else np.take(result[:1], self.channels, 1)

    def cut(self, alternative: Alternative) -> Alternative | None:
        """Restrict an alternative to the part; None if it does not apply to a part."""
        if not _is_runnable(alternative):
            return None
        if "groups" in alternative.params:
            return self._cut_blocks(alternative)
        inputs = alternative.inputs
        if inputs is not None:
            first, x = inputs[0], self.whole.input
            if x is None or not isinstance(first, np.ndarray) or first.shape != x.shape:
                return None
            inputs = [self.cut_input(first), *inputs[1:]]
        if not _has_same_shapes(alternative.weights, self.whole.weights):
            return None
        return replace(
            alternative, weights=self.cut_weights(alternative.weights), inputs=inputs
        )

    def _cut_blocks(self, alternative: Alternative) -> Alternative | None:
        """Restrict groups, of the weight's diagonal blocks, to some channels without groups.

        The rest of the weight is zero there.
        """
        blocks, whole = alternative.weights.get("weight"), self.whole.weights.get("weight")
        if alternative.weights.keys() != {"weight"} or blocks is None or whole is None:
            return None
        if self.axis or self.channels is None or self.whole.value("groups", 1) != 1:
            return None
        groups = alternative.params["groups"]
        if blocks.shape != (len(whole), whole.shape[1] // groups, *whole.shape[2:]):
            return None
        weight = np.zeros((len(self.channels), *whole.shape[1:]), whole.dtype)
        for row, channel in zip(weight, self.channels, strict=True):
            start = channel * groups // len(whole) * blocks.shape[1]
            row[start : start + blocks.shape[1]] = blocks[channel]
        return replace(alternative, params={}, weights={"weight": weight})


def _corner(case: Case, *, narrow: bool = False) -> Preview | None:
    """Return a corner of the image, and the output channels that differ most.

    A narrow one has room for the operator's own windows, and for others that are no larger.
    """
    windows, x, expected = sliding_of(case), case.input, case.expected
    if windows is None or x is None or not isinstance(expected, np.ndarray):
        return None
    rank = windows.rank
    if x.ndim != rank + 2 or expected.ndim != x.ndim or not case.type.startswith("nn."):
        return None
    area = tuple(slice(0, side) for side in _sides(windows, x.shape[2:], narrow=narrow))
    pooled = windows.family == "pool"
    free = pooled or case.value("groups", 1) == 1
    channels = _worst_channels(case, expected.shape[1], 1) if free else None
    axis = {"pool": -1, "transpose": 1}.get(windows.family, 0)
    corner = _Corner(case, area, channels, axis)
    call = _call_of_channels(case, corner.cut_weights(case.weights))
    small = replace(
        case, call=call, inputs=(corner.cut_input(x), *case.inputs[1:]),
        ours=corner.cut_result(case.ours), expected=corner.cut_result(expected),
        noise=_cut_noise(case.noise, corner.cut_channels),
    )  # fmt: skip
    sizes = tuple(x.shape[2:])
    own = _inside(small, sizes, Alternative("", ""))

    def trim(alternative: Alternative) -> tuple[slice, ...] | None:
        is_own = not (alternative.params or alternative.type)
        least = _PLACES if narrow else 1
        return own if is_own else _inside(small, sizes, alternative, least)

    return Preview(small, corner.cut, trim)


def _unfolded(corner: Preview | None) -> Preview | None:
    """Return a corner for alternatives of weights alone, which share its windows."""
    unfolded = unfold(corner.small) if corner is not None else None
    if corner is None or unfolded is None:
        return None

    def cut(alternative: Alternative) -> Alternative | None:
        found = None if alternative.has_other_inputs else corner.cut(alternative)
        return found if found is not None and unfolded.takes(found) else None

    return replace(corner, cut=cut, compute=unfolded.own_result_of)


def _sides(windows: Sliding, sizes: Sequence[int], *, narrow: bool) -> list[int]:
    """Return how far a corner goes; a wide one has room for windows of another size, too."""
    axes = zip(sizes, windows.kernel_size, windows.stride, windows.dilation, strict=True)
    return [
        min(size, dilation * (kernel - 1) + 1 + _PLACES * stride)
        if narrow
        else min(size, 4 * (kernel - 1) + 2 + _PLACES * max(stride, 2))
        for size, kernel, stride, dilation in axes
    ]


def _inside(
    small: Case, sizes: tuple[int, ...], alternative: Alternative, least: int = 1
) -> tuple[slice, ...] | None:
    """Return the positions whose windows stay inside the cut; None for fewer than `least`."""
    changed = replace(small, call=small.changed_call(alternative))
    windows, is_circular = sliding_of(changed), changed.value("padding_mode") == "circular"
    x, expected = small.input, small.expected
    if windows is None or x is None or not isinstance(expected, np.ndarray):
        return None
    places = []
    for axis, (size, whole) in enumerate(zip(x.shape[2:], sizes, strict=True)):
        start, stop = 0, expected.shape[axis + 2]
        if size < whole:
            reach = windows.dilation[axis] * (windows.kernel_size[axis] - 1)
            stride = windows.stride[axis]
            stop = (size - 1 - reach) // stride + 1
            if windows.family == "transpose":
                stop = size * stride - windows.padding[axis]
            if is_circular:  # the first windows reach to the end of the whole image
                start = -(-windows.padding[axis] // stride)
            if stop - start < least:
                return None
        if stop <= start:
            return None
        places.append(slice(start, stop))
    return (slice(0, 1), slice(None), *places)


def _cut_noise(noise: float | Array, cut: Callable[[Array], Array]) -> float | Array:
    return cut(noise) if isinstance(noise, np.ndarray) else noise


def _worst_channels(case: Case, count: int, axis: int) -> Array:
    if count <= _CHANNELS:
        return np.arange(count)
    if case.pair is None:
        return np.arange(_CHANNELS)
    return _worst_of(*case.pair, axis, case.noise)


def _worst_of(ours: Array, expected: Array, axis: int, noise: float | Array = 0.0) -> Array:
    """Return the channels along an axis that differ most beyond the noise."""
    apart = np.maximum(np.abs(expected.astype(np.float32) - ours) - noise, 0)
    distance = np.moveaxis(apart, axis, 0)
    sums = distance.reshape(len(distance), -1).sum(1)
    worst: Array = np.argsort(-np.nan_to_num(sums, nan=np.inf))[:_CHANNELS]
    return np.sort(worst)


def _is_runnable(alternative: Alternative) -> bool:
    """Return whether an alternative changes only things that the part has too."""
    if alternative.swapped or alternative.result is not None or alternative.type:
        return False
    return alternative.runs and _may_be_cut(alternative)


def _may_be_cut(alternative: Alternative) -> bool:
    """Return whether what is done to the result can be done, or left out, in a part."""
    is_whole = alternative.after is not None and not alternative.by_element
    return not is_whole or alternative.moves > 0


def _parted(case: Case, part: Callable[[Array], Array], *, local: bool = True) -> Preview:
    """Return the part of a case whose inputs and results are cut the same way."""

    def cut_all(values: Sequence[Value]) -> list[Value]:
        return [part(v) if isinstance(v, np.ndarray) and v.ndim else v for v in values]

    ours, expected = (
        part(value) if isinstance(value, np.ndarray) else value
        for value in (case.ours, case.expected)
    )
    noise = _cut_noise(case.noise, part)
    small = replace(
        case, inputs=tuple(cut_all(case.inputs)), ours=ours, expected=expected, noise=noise
    )

    def cut(alternative: Alternative) -> Alternative | None:
        if not _is_runnable(alternative):
            return None
        if not local and (alternative.weights or alternative.params.keys() - _LOCAL):
            return None
        inputs = alternative.inputs
        if inputs is None:
            return alternative
        shapes = [[np.shape(v) for v in values if isinstance(v, np.ndarray)]
                  for values in (inputs, case.inputs)]  # fmt: skip
        return replace(alternative, inputs=cut_all(inputs)) if shapes[0] == shapes[1] else None

    return Preview(small, cut, _everything)


def _some_elements(case: Case) -> Preview | None:
    shapes = {v.shape for v in case.inputs if isinstance(v, np.ndarray) and v.ndim}
    if case.weights or case.pair is None or shapes != {case.pair[1].shape}:
        return None
    step = step_over(case.pair[1].shape, _ELEMENTS)
    return _parted(case, lambda value: value.reshape(-1)[::step])


def _some_rows(case: Case) -> Preview | None:
    x = case.input
    if x is None or case.pair is None or len(case.inputs) != 1:
        return None
    length = case.value("normalized_shape")
    keep = len(length) if isinstance(length, tuple) else 1
    if x.ndim <= keep:
        return None
    rows = math.prod(x.shape[:-keep])
    step = step_over(x.shape[:-keep], _ROWS)
    return _parted(case, lambda value: value.reshape(rows, *value.shape[-keep:])[::step])


def _some_features(case: Case) -> Preview | None:
    """Return some rows of a linear layer, with the output features that differ most."""
    parted, weight = _some_rows(case), case.weights.get("weight")
    if parted is None or weight is None or not isinstance(parted.small.expected, np.ndarray):
        return parted
    features = _worst_channels(case, len(weight), -1)
    wanted = [parted.small.ours, parted.small.expected]
    ours, expected = (np.take(v, features, -1) for v in wanted if isinstance(v, np.ndarray))
    noise = _cut_noise(parted.small.noise, lambda noise: np.take(noise, features, -1))
    weights = {name: np.take(w, features, 0) for name, w in case.weights.items()}
    call = _call_of_channels(case, weights)
    small = replace(parted.small, call=call, ours=ours, expected=expected, noise=noise)

    def cut(alternative: Alternative) -> Alternative | None:
        found = parted.cut(alternative)
        if found is None or not _has_same_shapes(found.weights, case.weights):
            return None
        cut_weights = {
            name: w if w is DROPPED else np.take(w, features, 0)
            for name, w in found.weights.items()
        }
        return replace(found, weights=cut_weights)

    return Preview(small, cut, _everything)


def _has_same_shapes(weights: Mapping[str, Any], known: Mapping[str, Array]) -> bool:
    """Whether weights are in the file, too, with the same shapes; a missing one counts."""
    return all(
        w is DROPPED or (name in known and w.shape == known[name].shape)
        for name, w in weights.items()
    )


def _first_places(case: Case) -> Preview | None:
    x = case.input
    if x is None or x.ndim < 3 or "running_var" not in case.weights or case.pair is None:
        return None
    area = (slice(0, 1), slice(None), *(slice(0, _PLACES) for _ in x.shape[2:]))
    return _parted(case, lambda value: value[area], local=False)


def _first_steps(case: Case) -> Preview | None:
    x, expected = case.input, case.expected
    if x is None or x.ndim != 3 or any("_reverse" in name for name in case.weights):
        return None
    if len(case.inputs) != 1 or case.pair is None or not isinstance(expected, np.ndarray):
        return None
    if case.value("batch_first", default=False):
        return _parted(case, lambda value: value[:1, :_STEPS])
    return _parted(case, lambda value: value[:_STEPS, :1])


def _of_elements(case: Case) -> Preview | None:
    """Return some elements of the results, for element-wise functions."""
    if case.pair is None or case.pair[0].size <= _ELEMENTS:
        return None
    step = step_over(case.pair[0].shape, _ELEMENTS)
    x = (
        case.input
        if case.input is not None and case.input.shape == case.pair[0].shape
        else None
    )
    whole = replace(case, inputs=() if x is None else (x,))
    parted = _parted(whole, lambda value: value.reshape(-1)[::step])

    def cut(alternative: Alternative) -> Alternative | None:
        if alternative.runs or alternative.after is None or not _may_be_cut(alternative):
            return None
        if alternative.result is None:
            return alternative
        return replace(alternative, result=parted.small.input) if x is not None else None

    return replace(parted, cut=cut)
