"""Distinguishes differences due to int8 from faults.

ncnn's own tools quantise the weights of layers to int8; their inputs are rounded too.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from engine.comparison.measures import measure, relative_distance
from engine.comparison.rounded_weights import is_as_large, stored_weights, with_weights
from engine.errors import EngineError
from engine.pnnx import Attribute, Parameter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from engine.runtime import RuntimeOperator
    from engine.values import Array, Value

    Compute: TypeAlias = Callable[[Sequence[RuntimeOperator]], Array | None]

__all__ = [
    "explain_by_int8",
    "explain_by_reference_int8",
    "find_clipping",
    "spread_scales",
]

# Of an input rounded to int8. Rounding alone errs by 0.29 steps; numbers beyond 127 steps are
# clipped, which calibration does to few of them.
_MOST_STEPS: Final = 2.0
_LEAST_COSINE: Final = 0.99
_INT8: Final = 127
_ROUNDED_BY: Final = 0.51  # steps; the digits of float32 add to the half
_BY_FLOAT16: Final = _INT8 / 2**11  # steps that float16 adds, from which ncnn's tools quantise


def explain_by_int8(
    compute: Compute,
    inputs: Mapping[RuntimeOperator, Value],
    theirs: Array,
    tolerance: float,
    scale: float | None = None,
) -> str:
    """Find whether the rounding of quantised layers of ncnn explains a difference.

    The layers are computed in float32 from their int8 weights: that must differ from the
    reference as rounding weights to int8 does. The rounding of an input needs no simulation,
    because the input and its scale are known. It must keep the input as it is, up to few
    clipped numbers.

    Parameters
    ----------
    compute : callable
        As for `float16_weights.explain_by_float16`.
    inputs : mapping of RuntimeOperator to Value
        The reference's input of each quantised layer, or what stands in for it.
    theirs : ndarray
        The reference's result.
    tolerance : float
        Relative distance up to which results are the same.
    scale : float, optional
        Steps per unit of our result, if that is int8 too: then it must keep the one in float32.

    Returns
    -------
    str
        A sentence; ``""`` if it does not.
    """
    found = {operator: _read_quantised(operator, array) for operator, array in inputs.items()}
    layers = {operator: each for operator, each in found.items() if each is not None}
    if len(layers) < len(found):
        return ""

    def compute_finer(generator: np.random.Generator) -> Array | None:
        twins = []
        for operator, (weight, scales) in layers.items():
            offsets = generator.random(weight.shape, np.float32) - np.float32(0.5)
            twins.append(_in_float(operator, (weight + offsets) / scales))
        return compute(twins)

    exact = compute([_in_float(o, weight / scales) for o, (weight, scales) in layers.items()])
    if exact is None or exact.shape != theirs.shape:
        return ""
    if scale is not None:
        ours = compute([])
        if ours is None or not _is_kept(ours, exact, scale):
            return ""
    same = relative_distance(exact, theirs) <= tolerance
    return "it computes in int8" if same or is_as_large(exact, theirs, compute_finer) else ""


def explain_by_reference_int8(
    compute: Callable[[Sequence[RuntimeOperator], Mapping[str, Value]], Array | None],
    inputs: Mapping[RuntimeOperator, Value],
    known: Mapping[str, Array],
    theirs: Array,
    tolerance: float,
) -> str:
    """Find whether a difference is that the reference computes in int8.

    Its int8 weight must be ours rounded, and our operator must give its result from that weight
    and from the input as rounded by its scale.

    Parameters
    ----------
    compute : callable
        Takes copies of operators, and values by operand in place of the reference's. Returns
        the result; None without one.
    inputs : mapping of RuntimeOperator to Value
        The input of each of our operators with a weight.
    known : mapping of str to ndarray
        The reference's weights, by ncnn's names.
    theirs : ndarray
        The reference's result.
    tolerance : float
        Relative distance up to which results are the same.

    Returns
    -------
    str
        A sentence; ``""`` if it is not.
    """
    names = ("weight", "weight_int8_scales", "bottom_int8_scales")
    if len(inputs) != 1 or not known.keys() >= {*names}:
        return ""
    ((operator, array),) = inputs.items()
    whole, scales, bottom = (known[name] for name in names)
    weight = stored_weights(operator).get("weight")
    if weight is None or whole.dtype != np.int8 or weight.shape != whole.shape:
        return ""
    if not isinstance(array, np.ndarray) or not bottom.size:
        return ""
    steps = spread_scales(scales, weight)
    rounded = _round_input(array, float(bottom[0]))
    if steps is None or rounded is None:
        return ""
    is_ours = (np.abs(weight * steps - whole) <= _ROUNDED_BY + _BY_FLOAT16).all()
    if not is_ours or not _is_kept(rounded, array, float(bottom[0])):
        return ""
    twin = with_weights(operator, {"weight": whole / steps})
    found = compute([twin], {operator.inputs[0].name: rounded})
    if found is None or found.shape != theirs.shape:
        return ""
    same = relative_distance(found, theirs) <= tolerance
    if "top_int8_scales" in known:  # its result is rounded, too, and some of it the other way
        top = float(known["top_int8_scales"][0])
        again = _round_input(found, top)
        apart = np.inf if again is None else np.abs(again - theirs).max(initial=0) * abs(top)
        same = bool(apart <= 2 * _ROUNDED_BY)
    return "the reference computes in int8" if same else ""


def _read_quantised(operator: RuntimeOperator, array: Value) -> tuple[Array, Array] | None:
    """Return the int8 weight of a layer, as float32, and its scales in a shape that fits.

    None if it cannot be read, or its scale does not keep the input.
    """
    stored = stored_weights(operator)
    weight, scales = stored.get("weight"), stored.get("weight_int8_scales")
    steps = stored.get("bottom_int8_scales")
    if weight is None or scales is None or steps is None or weight.dtype != np.int8:
        return None
    if not isinstance(array, np.ndarray):
        return None
    kept = _round_input(array, float(steps[0]))
    if kept is None or not _is_kept(kept, array, float(steps[0])):
        return None
    per_output = spread_scales(scales, weight)
    return (weight.astype(np.float32), per_output) if per_output is not None else None


def spread_scales(scales: Array, weight: Array) -> Array | None:
    """Return the scales of a weight in a shape that fits; None for scales that cannot be."""
    if not scales.size or len(weight) % scales.size:
        return None
    per_output = np.repeat(scales, len(weight) // scales.size).astype(np.float32)
    if not np.isfinite(per_output).all() or not per_output.all():
        return None
    return per_output.reshape(-1, *(1,) * (weight.ndim - 1))


def _in_float(operator: RuntimeOperator, weight: Array) -> RuntimeOperator:
    """Return a copy of a quantised layer that computes in float32."""
    whole = {"weight": Attribute.from_array(weight)}
    return operator.copy_with(whole, {"int8_scale_term": Parameter.parse("0")})


def find_clipping(operator: RuntimeOperator, array: Value) -> str:
    """Describe how much of a quantised layer's input its scale clips; ``""`` for little."""
    steps = operator.attributes.get("bottom_int8_scales")
    if steps is None or not isinstance(array, np.ndarray):
        return ""
    try:
        scale = float(steps.array[0])
    except EngineError:
        return ""
    kept = _round_input(array, scale)
    if kept is None or _is_kept(kept, array, scale):
        return ""
    clipped = np.count_nonzero(np.abs(array) * abs(scale) > _INT8 + 0.5) / array.size
    return (
        f"its input scale {scale:g} clips {clipped:.1%} of the numbers"
        if clipped
        else f"its input scale {scale:g} is too small for the numbers"
    )


def _round_input(array: Array, scale: float) -> Array | None:
    """Return an input as a quantised layer reads it; None for one that it cannot."""
    if not math.isfinite(scale) or not scale or array.dtype.kind != "f":
        return None
    with np.errstate(all="ignore"):
        steps = array * np.float32(scale)
        whole = np.trunc(steps + np.copysign(np.float32(0.5), steps))  # halves away from 0
        return np.asarray(np.clip(whole, -_INT8, _INT8) / np.float32(scale))


def _is_kept(rounded: Array, array: Array, scale: float) -> bool:
    """Whether an input is kept when it is rounded, up to few clipped numbers."""
    found = measure(rounded, array)
    near = found.cosine is None or found.cosine >= _LEAST_COSINE
    return near and found.rmse * abs(scale) <= _MOST_STEPS
