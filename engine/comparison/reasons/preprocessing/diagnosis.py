"""Finds the fewest steps that explain how a reference's input was prepared."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from engine.comparison.reasons.discrepancy import Discrepancy, step_over
from engine.comparison.reasons.preprocessing.arrangements import Step, Way, arranged
from engine.comparison.reasons.preprocessing.normalisation import (
    Normalisation,
    channel_axis,
    describe_affine,
    explained_squares,
    recognise,
)
from engine.comparison.reasons.preprocessing.resizing import resized
from engine.comparison.reasons.reason import Change, Reason
from engine.image_resizing import with_channels
from engine.inputs import ImageOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engine.comparison.reasons.preprocessing.normalisation import Affine
    from engine.values import Array

__all__ = ["diagnose_input"]

_LEAST: Final = 0.9  # share that steps must explain
_WORTH: Final = 3.0  # a step more must leave so many times less
_ROUNDING: Final = 1e-5  # share that is left by rounding
_CLOSE: Final = 1e-3  # share that no other way of resizing has to explain
_HOPELESS: Final = 0.2  # share of a sample's variance that is left
_LOOKED_AT: Final = 1 << 12  # pixels of a sample


class _Diagnosis(NamedTuple):
    """Steps, and the share of the difference that they explain.

    Attributes
    ----------
    share : float
    reasons : tuple of Reason
    """

    share: float = 0.0
    reasons: tuple[Reason, ...] = ()

    @property
    def left(self) -> float:
        """Share that is left."""
        return max(1 - self.share, _ROUNDING)

    @property
    def cost(self) -> float:
        """What a diagnosis with less left, or with fewer steps, has less of."""
        return math.log(self.left) / math.log(_WORTH) + len(self.reasons)


@np.errstate(all="ignore")  # NaN and inf are numbers here
def diagnose_input(
    ours: Array,
    reference: Array,
    *,
    image: Array | None = None,
    options: ImageOptions | None = None,
    check_cancelled: Callable[[], None] | None = None,
) -> tuple[Reason, ...]:
    """Find how a reference's input was prepared differently from ours.

    Tries layouts, turns, channel orders, and a scale and offset per channel together. With the
    source image it also tries ways of resizing.

    Parameters
    ----------
    ours, reference : ndarray of shape (N, C, H, W), (N, H, W, C) or without N
        Our input and the reference's; not written to.
    image : ndarray of uint8 of shape (H, W, 3) or (H, W), optional
        As `engine.inputs.read_image` reads it.
    options : ImageOptions, optional
        With which ours was made from it.
    check_cancelled : callable, optional
        Raises to stop.

    Returns
    -------
    tuple of Reason
        The simplest sequence of steps that explains the difference. Each has the share that all
        explain together. Empty if there is only rounding, or if nothing explains the
        difference.
    """
    check = check_cancelled or (lambda: None)
    if ours.dtype.kind not in "fiu" or reference.dtype.kind not in "fiu":
        return ()
    discrepancy = Discrepancy(ours, reference)
    if discrepancy.is_rounding or not reference.size or not ours.size:
        return ()
    for whose, array in (("the reference's", reference), ("our", ours)):
        if array.size > 1 and (array == array.flat[0]).all():
            text = f"Every element of {whose} input is {array.flat[0]:g}. Use the same input."
            return (Reason("parameter", 1.0, text),)
    axis = channel_axis(ours.shape)
    normalisation = recognise(ours)
    if options is not None and axis is not None:
        normalisation = Normalisation.of_options(options, ours.shape[axis])
    best, target = _Diagnosis(), _planes(reference)
    for way in arranged(ours, reference.shape):
        check()
        best = _better(best, way, target, normalisation, discrepancy)
        if best.left <= _ROUNDING and len(best.reasons) == 1:
            return best.reasons
    if image is not None and best.left > _CLOSE:
        for way in _from_image(image, reference, options or ImageOptions(), check):
            best = _better(best, way, target, normalisation, discrepancy)
    return best.reasons if best.share >= _LEAST else ()


def _from_image(
    image: Array,
    reference: Array,
    options: ImageOptions,
    check_cancelled: Callable[[], None],
) -> Iterator[Way]:
    """Return the image in ways of resizing it, in colour and in grey."""
    axis = channel_axis(reference.shape)
    if axis is None or not np.isfinite(reference).all():
        return
    planes = np.moveaxis(reference, axis, 0)
    count = len(planes)
    if count not in {1, 3}:
        return
    if count == 3 and image.ndim == 3 and _are_alike(planes):
        image = np.repeat(with_channels(image, 1), 3, axis=2)
        text = "The reference's picture is grey, ours has colours. Make it grey."
        step = Step("channel_order", text, (Change("order", "grey"),))
        for way in resized(image, reference, replace(options, order="RGB"), check_cancelled):
            yield way._replace(steps=(*way.steps, step))
        return
    yield from resized(with_channels(image, count), reference, options, check_cancelled)


def _are_alike(planes: Array) -> bool:
    """Whether each channel is the first with another scale and offset."""
    flat = planes.reshape(len(planes), -1).astype(np.float64)
    flat = flat - flat.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(flat, axis=1)
    return bool(np.all(flat @ flat[0] >= (1 - _ROUNDING) * lengths * lengths[0]))


def _better(
    best: _Diagnosis,
    way: Way,
    target: Array,
    ours: Normalisation | None,
    discrepancy: Discrepancy,
) -> _Diagnosis:
    """Return the better one of a diagnosis and those with an arrangement."""
    frame = _Channels(way, target)
    if frame.is_hopeless:
        return best
    for mapped in _mapped(way, frame, ours):
        share = discrepancy.share(mapped.array, mapped.fitted)
        reasons = [step.as_reason(share) for step in way.steps]
        if mapped.affine is not None:
            reasons.append(Reason(mapped.affine.kind, share, *mapped.affine[1:]))
        if reasons and share > 0:
            one = _Diagnosis(share, tuple(reasons))
            best = min(best, one, key=lambda each: each.cost)
    return best


class _Mapped(NamedTuple):
    """Numbers of an arrangement, and how they were scaled.

    Attributes
    ----------
    array : ndarray
    affine : Affine or None
        None where nothing else is to be changed.
    fitted : int
        Numbers that were fitted to the reference.
    """

    array: Array
    affine: Affine | None = None
    fitted: int = 0


def _mapped(way: Way, frame: _Channels, ours: Normalisation | None) -> Iterator[_Mapped]:
    """Return an arrangement as it is, then scaled, then with a scale and offset a channel."""
    base = None if ours is None or way.is_pixels else ours.reordered(way.order)
    if way.is_pixels and ours is not None:
        yield _Mapped(frame.map(ours.factors, ours.offsets))
    elif not way.is_pixels and base == ours:  # the options of channels are exchanged with them
        yield _Mapped(way.array)
    if not frame.is_finite:
        return
    if way.is_pixels:
        base = Normalisation.of_pixels(frame.count)
    for scales, offsets, fitted in frame.fits():
        affine = describe_affine(scales, offsets, base, ours or base)
        yield _Mapped(frame.map(scales, offsets), affine, fitted)


def _planes(array: Array) -> Array:
    """Return float64 with the channels last."""
    axis, wide = channel_axis(array.shape), array.astype(np.float64)
    return wide[..., np.newaxis] if axis is None else np.moveaxis(wide, axis, -1)


class _Channels:
    """An arrangement beside the reference, channel by channel.

    Parameters
    ----------
    way : Way
    target : ndarray of float64
        The reference with the channels last, as `_planes` returns it.
    """

    def __init__(self, way: Way, target: Array) -> None:
        self._axis = channel_axis(way.array.shape)
        self._way = way
        self._x, self._y = _planes(way.array), target
        self.is_finite = bool(np.isfinite(self._x).all() and np.isfinite(self._y).all())
        self.count = self._x.shape[-1]

    @property
    def is_hopeless(self) -> bool:
        """Whether no scale and offset of the channels explains enough."""
        if not self.is_finite or self._way.inner is not None:
            return False
        few = step_over(self._x.shape[:-1], _LOOKED_AT)
        x, y = (each.reshape(-1, self.count)[::few] for each in (self._x, self._y))
        squares, explained = explained_squares(x, y)
        total = float(squares.sum())
        return total > 0 and total - float(np.abs(explained).sum()) > _HOPELESS * total

    def map(self, scales: Array, offsets: Array) -> Array:
        """Return the arrangement with a scale and an offset for each channel."""
        found = self._x * scales + offsets
        if self._way.inner is not None:
            framed = np.empty_like(found)
            framed[...] = self._way.border
            framed[..., *self._way.inner, :] = found[..., *self._way.inner, :]
            found = framed
        return found[..., 0] if self._axis is None else np.moveaxis(found, -1, self._axis)

    def fits(self) -> Iterator[tuple[Array, Array, int]]:
        """Return scales and offsets, and the number of those that were fitted."""
        x, y = self._x, self._y
        bordered = 0
        if self._way.inner is not None:
            x, y = (each[..., *self._way.inner, :] for each in (x, y))
            bordered = self.count
        axes = tuple(range(x.ndim - 1))
        square = float(np.square(x).sum())
        if square:
            factor = np.full(self.count, float((x * y).sum()) / square)
            yield factor, np.zeros(self.count), 1 + bordered
        means = x.mean(axes), y.mean(axes)
        spread = np.square(x - means[0]).sum(axes)
        product = ((x - means[0]) * (y - means[1])).sum(axes)
        scales = np.divide(product, spread, out=np.zeros_like(spread), where=spread > 0)
        if (scales > 0).all():
            yield scales, means[1] - scales * means[0], 2 * self.count + bordered
