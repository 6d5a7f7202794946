"""Other ways of resizing an input that the reference does not show, but what is made of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from typing_extensions import override

from engine.comparison.reasons.case import Alternative
from engine.comparison.reasons.preprocessing.normalisation import Normalisation, channel_axis
from engine.comparison.reasons.preprocessing.resizing import Search
from engine.comparison.reasons.sampling import with_few_channels
from engine.image_resizing import with_channels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.comparison.reasons.case import Case
    from engine.inputs import ImageOptions
    from engine.values import Array

__all__ = ["other_input_resizing"]

_BORDERS: Final = (114, 0, 128, 255)  # pixels around a letterboxed image


def other_input_resizing(case: Case) -> Iterator[Alternative]:
    """Return the image of the input, resized in the way that explains the result best."""
    x = case.input
    axis = channel_axis(x.shape) if x is not None else None
    if case.source is None or x is None or axis is None or x.shape[axis] not in {1, 3}:
        return
    image, options = case.source
    few = with_few_channels(case)
    if few is None:
        return
    search = _SearchBehind(few, with_channels(image, x.shape[axis]), options, axis)
    found = search.search()
    if found is None:
        return
    pixels, inner = search.picture(found.plan)
    words = search.describe(found.plan)
    border = None
    if inner is not None:
        _, border = search.best_border(pixels, inner)
        words = f"{words}; the border is {border}"
        pixels = _framed(pixels, inner, border)
    text, changes = search.advise(found.plan, words, border, options)
    inputs = [search.prepare(pixels), *case.inputs[1:]]
    yield Alternative("resizing", text, changes, inputs=inputs)


class _SearchBehind(Search):
    """Compares what an operator gives with the reference's.

    Parameters
    ----------
    case : Case
        Of the operator that reads the input; its result is what is expected.
    image : ndarray of uint8, shape (H, W, C)
    options : ImageOptions
        With which our input was made from the image.
    axis : int
        Of the input's channels.
    """

    # Edges tell more than pixels where a picture is, but only near its place.
    coarse: ClassVar[int] = 2
    promising: ClassVar[float] = math.inf

    def __init__(self, case: Case, image: Array, options: ImageOptions, axis: int) -> None:
        assert case.input is not None  # noqa: S101 - the caller has checked it
        self._case, self._axis, self._options = case, axis, options
        rows, columns = np.delete(case.input.shape, axis)[-2:].tolist()
        self._normalisation = Normalisation.of_options(options, image.shape[2])
        wanted = np.asarray(case.expected, np.float64)
        self._told = np.ones(wanted.shape, np.bool_) if case.told is None else case.told
        self._wanted = wanted[self._told]
        self._total = float(np.square(self._wanted - self._wanted.mean()).sum()) or 1.0
        cost = case.work + image.size

        def check() -> None:
            case.check_cancelled()
            case.spend(cost)

        super().__init__(image, (rows, columns), check)

    @override
    def left_of(self, pixels: Array, inner: tuple[slice, slice] | None) -> tuple[float, bool]:
        if inner is not None:
            return self.best_border(pixels, inner)[0], False
        return self._left(pixels), False

    def best_border(self, pixels: Array, inner: tuple[slice, slice]) -> tuple[float, int]:
        """Return the share that is left with the border that leaves least, and the border."""
        return min((self._left(_framed(pixels, inner, each)), each) for each in _BORDERS)

    def prepare(self, pixels: Array) -> Array:
        """Make an input of pixels of shape (rows, columns, C), as ours was made."""
        ours = self._case.input
        assert ours is not None  # noqa: S101 - as above
        if self._options.order == "BGR":
            pixels = pixels[..., ::-1]
        normal = pixels * self._normalisation.factors + self._normalisation.offsets
        planes = np.moveaxis(normal, -1, self._axis - ours.ndim)
        return np.broadcast_to(planes.astype(ours.dtype), ours.shape)

    def _left(self, pixels: Array) -> float:
        inputs = [np.ascontiguousarray(self.prepare(pixels)), *self._case.inputs[1:]]
        result = self._case.run(Alternative("resizing", "", inputs=inputs))
        if not isinstance(result, np.ndarray) or result.shape != self._told.shape:
            return math.inf
        return float(np.square(result[self._told] - self._wanted).sum()) / self._total


def _framed(pixels: Array, inner: tuple[slice, slice], border: int) -> Array:
    framed = np.full_like(pixels, border)
    framed[inner] = pixels[inner]
    return framed
