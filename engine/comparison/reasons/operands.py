"""Alternatives of an operator's input: layout, channel order, scale, mean and std."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.comparison.reasons.case import Alternative
from engine.comparison.reasons.preprocessing import describe_affine, recognise
from engine.comparison.reasons.reason import Change
from engine.comparison.reasons.results import functions_giving, is_activation
from engine.comparison.reasons.sliding import sliding_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engine.comparison.reasons.case import Case
    from engine.values import Array, Value

__all__ = [
    "activated_gates",
    "input_affine",
    "opposite_masks",
    "other_input_activation",
    "other_input_layout",
    "other_input_order",
]

_FEW: Final = 4  # channels up to which every order is tried, or each is scaled separately
# Activations that layers of ncnn apply to their own results.
_FUSED: Final = ("relu", "leaky_relu", "sigmoid", "mish", "hardswish")
_WEIGHTY: Final = ("nn.Conv", "nn.Linear", "F.conv")


def other_input_order(case: Case) -> Iterator[Alternative]:
    """Return the channels of an image in another order."""
    x = case.input
    if x is None or x.ndim not in {3, 4} or x.dtype.kind not in "fiu" or not x.size:
        return
    axis = x.ndim - 3
    if not 2 <= x.shape[axis] <= _FEW or sliding_of(case) is None:
        return
    count = x.shape[axis]
    orders = [tuple(range(count))[::-1]]
    orders += [o for o in itertools.permutations(range(count)) if o not in orders][1:]
    for order in orders:
        words = "BGR, ours are RGB" if order == (2, 1, 0) else f"in the order {order} of ours"
        yield Alternative(
            "channel_order",
            f"The channels of the reference's input are {words}. Reorder the input's channels.",
            (Change("order", order),),
            inputs=_with_first(case, np.take(x, order, axis)),
        )


def other_input_layout(case: Case) -> Iterator[Alternative]:
    """Return the input transposed, or its memory read in another layout."""
    x = case.input
    if x is None or x.ndim not in {3, 4, 5} or not x.size or case.expected_shape is None:
        return
    last = tuple(range(x.ndim))
    orders = {
        "NHWC": (0, *last[2:], 1),
        "NCHW": (0, x.ndim - 1, *last[1:-1]),
        "with rows and columns exchanged": (*last[:-2], last[-1], last[-2]),
    }
    for words, order in orders.items():
        moved = x.transpose(order)
        changes = (Change("dims", order),)
        text = f"The reference reads the input as {words}. Transpose the input by {order}."
        if moved.shape == x.shape:
            yield Alternative("input_layout", text, changes, inputs=_with_first(case, moved))
            continue
        back = x.reshape(moved.shape).transpose(np.argsort(order))
        for other in (moved.reshape(x.shape), back, moved):
            yield Alternative("input_layout", text, changes, inputs=_with_first(case, other))
    windows = sliding_of(case)
    spatial = windows.rank if windows is not None else x.ndim - 2
    for axis, word in ((-1, "columns"), (-2, "rows"))[:spatial]:
        text = f"The {word} of the reference's input are in reverse order. Flip the input."
        yield Alternative(
            "input_layout", text, (Change("flip", x.ndim + axis),),
            inputs=_with_first(case, np.flip(x, axis)),
        )  # fmt: skip


def activated_gates(case: Case) -> Iterator[Alternative]:
    """Return an activation of an input that is smaller than the result, such as a gate.

    Before numbers for each channel are fitted, which would explain as much.
    """
    yield from _activated(case, lambda size, most: 1 < size < most)


def other_input_activation(case: Case) -> Iterator[Alternative]:
    """Return an activation of any other input, which the graph of the file lacks."""
    yield from _activated(case, lambda size, most: size == 1 or size >= most)


def _activated(case: Case, fits: Callable[[int, int], bool]) -> Iterator[Alternative]:
    if is_activation(case.type):
        return
    most = math.prod(case.expected_shape or ())
    for place, x in enumerate(case.inputs[:_FEW]):
        if not isinstance(x, np.ndarray) or x.dtype.kind != "f" or not fits(x.size, most):
            continue
        which = "the input" if len(case.inputs) == 1 else f"input {place}"
        above = case.surroundings.fusing_above(place) if case.surroundings else None
        for name, function in functions_giving(x, None):
            fusing = above if name.startswith(_FUSED) else None
            where = which if fusing is None else f"the result of {fusing.name}"
            change = "Add it before" if fusing is None else "Add it there"
            yield Alternative(
                "activation_missing",
                f"The reference applies {name} to {where}, the file does not. {change}.",
                before=(place, function),
                at=fusing,
                least=0.995,
            )


def opposite_masks(case: Case) -> Iterator[Alternative]:
    """Return a bool operand inverted: modules and functions read masks of keys oppositely."""
    for place, x in enumerate(case.inputs):
        if place and isinstance(x, np.ndarray) and x.dtype == np.bool_:
            inputs = [*case.inputs[:place], ~x, *case.inputs[place + 1 :]]
            yield Alternative(
                "expression",
                f"True of input {place}, a mask, is false in the reference: what it keeps is "
                "ignored here. Invert the mask, or export the model with a float mask.",
                (Change("invert", place),),
                inputs=inputs,
            )


def input_affine(case: Case) -> Iterator[Alternative]:
    """Return the scale and offset of each input channel that fit best.

    The operator is linear, so it runs once per channel and once with ones in the channel's
    place.
    """
    x = case.input
    if x is None or case.pair is None or x.ndim != 4 or x.dtype.kind != "f":
        return
    channels = x.shape[1]
    if channels > _FEW or not case.type.startswith(_WEIGHTY) or sliding_of(case) is None:
        return
    orders = [tuple(range(channels))]
    if channels == 3:
        orders.append((2, 1, 0))
    for order in orders:
        yield from _fitted(case, np.take(x, order, 1), order)


def _fitted(case: Case, x: Array, order: tuple[int, ...]) -> Iterator[Alternative]:
    assert case.pair is not None  # noqa: S101 - the caller has checked it
    channels = x.shape[1]
    base = _run(case, np.zeros_like(x))
    columns = []
    for channel in range(channels):
        for values in (x[:, channel], np.ones_like(x[:, channel])):
            alone = np.zeros_like(x)
            alone[:, channel] = values
            result = _run(case, alone)
            if result is None or base is None:
                return
            columns.append((result - base).reshape(-1))
    expected = case.pair[1].astype(np.float64).reshape(-1)
    if base is None or not np.isfinite(expected).all():
        return
    # First one scale for all, without an offset.
    whole = np.sum(columns[0::2], 0)
    target = expected - base.reshape(-1)
    square = float(np.square(whole).sum())
    swapped = order != tuple(range(channels))
    if square:
        factor = float(whole @ target) / square
        yield from _affine(case, x, order, np.full(channels, factor), np.zeros(channels), 1)
    matrix = np.stack(columns, 1)
    if not np.isfinite(matrix).all():
        return
    numbers, *_ = np.linalg.lstsq(matrix, target, rcond=1e-9)
    if not swapped or square:
        yield from _affine(case, x, order, numbers[0::2], numbers[1::2], 2 * channels)


def _affine(
    case: Case, x: Array, order: tuple[int, ...], scales: Array, offsets: Array, fitted: int
) -> Iterator[Alternative]:
    assert case.input is not None  # noqa: S101 - the caller has checked it
    shape = (-1, *(1,) * (x.ndim - 2))
    other = (x * scales.reshape(shape) + offsets.reshape(shape)).astype(x.dtype)
    ours = recognise(case.input)
    base = ours.reordered(order) if ours is not None else None
    found = describe_affine(scales, offsets, base, ours)
    if found is None:
        return
    swapped = order != tuple(range(len(order)))
    text = f"{found.text} The channels are BGR as well." if swapped else found.text
    kind = "channel_order" if swapped else found.kind
    yield Alternative(
        kind, text, found.changes, inputs=_with_first(case, other), fitted=fitted, least=0.98
    )


def _run(case: Case, x: Array) -> Array | None:
    result = case.run(Alternative("mean_std", "", inputs=_with_first(case, x)))
    return result.astype(np.float64) if isinstance(result, np.ndarray) else None


def _with_first(case: Case, x: Array) -> list[Value]:
    return [np.ascontiguousarray(x), *case.inputs[1:]]
