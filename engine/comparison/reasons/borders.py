"""Alternatives of borders and sizes: what is put around an image, and what it is resized to."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.comparison.reasons.fitting import fit_number
from engine.comparison.reasons.ncnn_twins import Border, add_batch, put_border
from engine.comparison.reasons.parameters import set_parameter
from engine.comparison.reasons.sliding import sliding_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.comparison.reasons.case import Alternative, Case
    from engine.values import Array

__all__ = ["other_borders", "other_sizes"]

_RESIZES: Final = frozenset({"F.interpolate", "F.upsample", "nn.Upsample"})
_MOST: Final = 64  # alternatives of one parameter
_LARGEST: Final = 32  # border
_FIT_LEAST: Final = 0.99
_VALUES: Final = (-255.0, -4.0, -1.0, -0.5, -0.1, 0.0, 0.1, 0.5, 1.0, 4.0, 255.0)


def other_borders(case: Case) -> Iterator[Alternative]:
    """Return other borders that give the expected size, and another number in them."""
    if case.twin is not None and case.twin.border is not None:
        yield from _other_numbers(case, case.twin.border)
        yield from _other_sides(case, case.twin.border)
    elif case.type == "F.pad":
        old, x, shape = case.value("pad"), case.input, case.expected_shape
        if isinstance(old, tuple) and x is not None and shape is not None:
            totals = [[wanted - size] for size, wanted in _axes_of(x, shape, len(old) // 2)]
            for pads in _splits(old, totals):
                yield set_parameter("pad", pads, old)


def _axes_of(x: Array, shape: tuple[int, ...], count: int) -> list[tuple[int, int]]:
    """Return input and expected size of some axes, from the last on."""
    if len(shape) != x.ndim or count > x.ndim:
        return []
    return list(zip(x.shape[::-1], shape[::-1], strict=True))[:count]


def _splits(old: tuple[int, ...], totals: list[list[int]]) -> Iterable[tuple[int, ...]]:
    """Return pairs for each axis that have one of its sums, the nearest to the old first."""
    if 2 * len(totals) != len(old):
        return ()
    choices = [
        [
            (before, total - before)
            for total in sums
            if 0 <= total <= _LARGEST
            for before in range(total + 1)
        ]
        for sums in totals
    ]
    found = [
        tuple(itertools.chain.from_iterable(pairs)) for pairs in itertools.product(*choices)
    ]
    found.sort(key=lambda pads: sum(abs(a - b) for a, b in zip(pads, old, strict=True)))
    return [pads for pads in found if pads != old][:_MOST]


def _other_numbers(case: Case, border: Border) -> Iterator[Alternative]:
    """Return the number in the border that fits best."""

    def score(value: float) -> float:
        return -case.left(_with_border(case, border, border._replace(value=value)))

    best = border._replace(value=fit_number(score, _VALUES))
    if best != border:
        yield replace(_with_border(case, border, best), fitted=1, least=_FIT_LEAST)


def _other_sides(case: Case, border: Border) -> Iterator[Alternative]:
    """Return borders with which each axis gets its expected size."""
    windows, shape = sliding_of(case), case.expected_shape
    (x,) = case.given
    if windows is None or shape is None or not isinstance(x, np.ndarray):
        return
    if x.ndim != windows.rank + 1 or len(shape) != x.ndim + 1:
        return
    totals = []
    for axis in range(windows.rank)[::-1]:
        size, wanted = x.shape[axis + 1], shape[axis + 2]
        totals.append(
            [n for n in range(_LARGEST) if windows.count(size + n, axis, {}) == wanted]
        )
    for pads in _splits(border.pads, totals):
        yield _with_border(case, border, border._replace(pads=pads))


def _with_border(case: Case, border: Border, other: Border) -> Alternative:
    """Return the alternative with another border around the input."""
    (x,) = case.given
    assert isinstance(x, np.ndarray)  # noqa: S101 - an image
    name = "pad_value" if other.pads == border.pads else "padding"
    new, old = (
        getattr(each, "value" if name == "pad_value" else "pads") for each in (other, border)
    )
    inputs = [add_batch(put_border(x, other))]
    return replace(set_parameter(name, new, old, "padding"), params={}, inputs=inputs)


def other_sizes(case: Case) -> Iterator[Alternative]:
    """Return the reference's size of a resized image, or the scale that gives it."""
    x, shape = case.input, case.expected_shape
    if case.type not in _RESIZES or x is None or shape is None or len(shape) != x.ndim:
        return
    sizes, scales = case.value("size"), case.value("scale_factor")
    if isinstance(sizes, tuple) and shape[2:] != sizes:
        yield set_parameter("size", shape[2:], sizes)
    elif isinstance(scales, tuple) and isinstance(case.ours, np.ndarray):
        wanted = tuple(new / old for new, old in zip(shape[2:], x.shape[2:], strict=True))
        if shape != case.ours.shape:
            yield set_parameter("scale_factor", wanted, scales, "scale")
