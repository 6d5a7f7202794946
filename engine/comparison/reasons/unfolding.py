"""Convolutions as products of their kernels with the windows of their input."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.comparison.reasons.case import DROPPED
from engine.comparison.reasons.sliding import sliding_of
from engine.errors import EngineError
from engine.layers.padding import pad_axes

if TYPE_CHECKING:
    from engine.comparison.reasons.case import Alternative, Case
    from engine.comparison.reasons.sliding import Sliding
    from engine.values import Array, Value

__all__ = ["Unfolded", "kernels_of", "unfold", "views_of"]

_CONVOLUTIONS: Final = frozenset({"nn.Conv1d", "nn.Conv2d", "nn.Conv3d"})


class Unfolded:
    """A convolution of one image whose windows are gathered once, for any other weights.

    To gather them takes longer than to multiply them by a few kernels.

    Parameters
    ----------
    case : Case
    views : ndarray of shape (1, C, H'..., K...)
        The windows, as `views_of` returns them.
    """

    def __init__(self, case: Case, views: Array) -> None:
        self._case, self._views = case, views

    def takes(self, alternative: Alternative) -> bool:
        """Whether an alternative changes nothing of the layer but weights of this dtype."""
        weights = alternative.weights
        if not weights or alternative.params or alternative.type:
            return False
        if alternative.has_other_inputs or not weights.keys() <= self._case.weights.keys():
            return False
        return all(w is DROPPED or w.dtype == self._views.dtype for w in weights.values())

    def own_result_of(self, alternative: Alternative) -> Value:
        """Compute what the case gives with other weights, as `Case.own_result_of` does."""
        weights = {**self._case.weights, **alternative.weights}
        weight, bias = weights["weight"], weights.get("bias", DROPPED)
        if weight is DROPPED:
            return None
        result = weight.reshape(len(weight), -1) @ self._columns
        if bias is not DROPPED:
            result += bias[:, np.newaxis]
        sizes = self._views.shape[2 : self._views.ndim // 2 + 1]
        image = result.reshape(1, len(weight), *sizes)
        return self._case.own_result_of(replace(alternative, result=self._case.activate(image)))

    @cached_property
    def _columns(self) -> Array:
        """The windows as columns, (C * K, P)."""
        views = self._views[0]
        rank = views.ndim // 2
        last = np.moveaxis(views, range(1, rank + 1), range(-rank, 0))
        return np.asarray(last.reshape(-1, math.prod(views.shape[1 : rank + 1])))


def unfold(case: Case) -> Unfolded | None:
    """Return a case as a product; None if it is no convolution of one image in float32."""
    windows, x = sliding_of(case), case.input
    if windows is None or x is None or case.type not in _CONVOLUTIONS:
        return None
    if len(x) != 1 or x.ndim != windows.rank + 2 or case.value("groups", 1) != 1:
        return None
    if not {*case.weights} <= {"weight", "bias"} or "weight" not in case.weights:
        return None
    if {x.dtype, *(each.dtype for each in case.weights.values())} != {np.dtype(np.float32)}:
        return None
    if case.weights["weight"].shape[1] != x.shape[1]:
        return None
    try:
        views = views_of(case, x, windows)
    except EngineError:  # the layer refuses such a border
        return None
    return None if views is None else Unfolded(case, views)


def views_of(case: Case, batch: Array, windows: Sliding) -> Array | None:
    """Return the window of each output position, of shape (N, C, H'..., K...); a view."""
    pads = [(p, p) for p in windows.padding]
    given = case.value("padding", 0)
    rank = windows.rank
    steps = windows.stride
    if windows.family == "transpose":
        batch = _spread_out(batch, windows.stride)
        reach = [
            d * (k - 1) for d, k in zip(windows.dilation, windows.kernel_size, strict=True)
        ]
        pads = [
            (r - p, r - p + extra)
            for r, p, extra in zip(reach, windows.padding, windows.output_padding, strict=True)
        ]
        steps = (1,) * rank
    elif isinstance(given, tuple) and len(given) == 2 * rank:
        pads = [(given[2 * i], given[2 * i + 1]) for i in reversed(range(rank))]
    if any(min(pair) < 0 for pair in pads):
        return None
    mode = case.value("padding_mode", "zeros")
    if mode in {"zeros", None}:
        batch = np.pad(batch, [(0, 0), (0, 0), *pads])
    else:
        batch = pad_axes(batch, pads, mode)
    spans = [
        d * (k - 1) + 1 for d, k in zip(windows.dilation, windows.kernel_size, strict=True)
    ]
    axes = tuple(range(2, rank + 2))
    if any(size < span for size, span in zip(batch.shape[2:], spans, strict=True)):
        return None
    views = np.lib.stride_tricks.sliding_window_view(batch, spans, axes)
    places = tuple(slice(None, None, step) for step in steps)
    taps = tuple(slice(None, None, d) for d in windows.dilation)
    return views[(slice(None), slice(None), *places, *taps)]


def _spread_out(batch: Array, stride: tuple[int, ...]) -> Array:
    """Insert zeros between elements, which makes a transposed convolution an ordinary one."""
    sizes = [(size - 1) * s + 1 for size, s in zip(batch.shape[2:], stride, strict=True)]
    result = np.zeros((*batch.shape[:2], *sizes), batch.dtype)
    result[(slice(None), slice(None), *(slice(None, None, s) for s in stride))] = batch
    return result


def kernels_of(weight: Array, groups: int, *, transposed: bool) -> Array:
    """Return the weights of each output channel as a row, (O, C / groups * K)."""
    if not transposed:
        return weight.reshape(len(weight), -1)
    channels, kernels, *kernel = weight.shape
    parts = weight.reshape(groups, channels // groups, kernels, *kernel).swapaxes(1, 2)
    flipped = np.flip(parts, tuple(range(3, parts.ndim)))
    return flipped.reshape(groups * kernels, -1)
