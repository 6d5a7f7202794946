"""Scale, mean and std with which pixels of 0 to 255 become an input."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from engine.comparison.reasons.discrepancy import step_over
from engine.comparison.reasons.fitting import plain_numbers
from engine.comparison.reasons.reason import Change

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from engine.inputs import ImageOptions
    from engine.values import Array

__all__ = [
    "Affine",
    "Normalisation",
    "channel_axis",
    "describe_affine",
    "explained_squares",
    "listed",
    "recognise",
]

_UNIT: Final = 1 / 255
# Well-known mean and std, for pixels from 0 to 1; one number stands for all channels.
_KNOWN: Final = (
    ("ImageNet's", (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    ("CLIP's", (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)),
    ("Inception's and MobileNet's", (0.5,), (0.5,)),
    ("CIFAR-10's", (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    ("CIFAR-10's", (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
    ("MNIST's", (0.1307,), (0.3081,)),
)
# And means for pixels from 0 to 255, with a std of 1.
_KNOWN_MEANS: Final = (
    ("ImageNet's", (123.675, 116.28, 103.53)),
    ("Caffe's", (123.68, 116.779, 103.939)),
    ("Caffe's", (123.0, 117.0, 104.0)),
)
_NEAR: Final = 2e-3
_PLAIN: Final = 1e-5
_FEW: Final = 4  # channels that a picture may have
_SAMPLED: Final = 1 << 14  # elements that are looked at
_LEAST: Final = 16  # different pixels, from which whole numbers are no chance
_WHOLE: Final = 1e-2  # how near to a whole number a pixel is
_MOST_ODD: Final = 0.01  # share of pixels that may be no whole numbers


class Affine(NamedTuple):
    """Another scale and offset per channel, as a reason.

    Attributes
    ----------
    kind : {"scale", "mean_std"}
    text : str
    changes : tuple of Change
    """

    kind: str
    text: str
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Normalisation:
    """How pixels of 0 to 255 become numbers: ``(pixel * scale - mean) / std``.

    Attributes
    ----------
    scale : float
    mean, std : tuple of float
        One a channel, in units after `scale`.
    name : str
        Of a well-known mean and std; ``""`` for others.
    """

    scale: float
    mean: tuple[float, ...]
    std: tuple[float, ...]
    name: str = ""

    @classmethod
    def of_options(cls, options: ImageOptions, channels: int) -> Normalisation:
        """Return that of the options with which an image was read."""
        mean, std = (
            values * channels if len(values) == 1 else values
            for values in (options.mean, options.std)
        )
        scale, *rest = options.scale, np.array(mean), np.array(std)
        return cls._known(scale / rest[1], -rest[0] / rest[1]) or cls(scale, mean, std)

    @classmethod
    def of_pixels(cls, channels: int) -> Normalisation:
        """Return that which leaves pixels of 0 to 255 as they are."""
        return cls(1.0, (0.0,) * channels, (1.0,) * channels)

    @classmethod
    def of_map(
        cls, factors: Array, offsets: Array, scale: float | None = None
    ) -> Normalisation:
        """Return that which gives ``factor * pixel + offset``.

        Parameters
        ----------
        factors, offsets : ndarray of shape (C,)
        scale : float, optional
            Taken where several scales would do; default 1/255.
        """
        known = cls._known(factors, offsets)
        if known is not None:
            return known
        size = float(np.abs(factors).max())
        if np.all(np.abs(factors - factors[0]) <= _NEAR * size):
            even = _plain_scale(float(factors.mean()))
            small = np.abs(offsets) <= _NEAR * size * 255
            mean = np.where(small.all(), 0.0, -offsets)
            return cls(even, _tuple(_snapped(mean)), (1.0,) * len(factors))
        scale = _UNIT if scale is None else scale
        std = scale / factors
        return cls(scale, _tuple(_snapped(-offsets * std)), _tuple(_snapped(std)))

    @classmethod
    def _known(cls, factors: Array, offsets: Array) -> Normalisation | None:
        """Recognise a well-known mean and std, also with the channels in reverse."""
        for each in _known_for(len(factors)):
            if _near(factors, each.factors) and _near(offsets, each.offsets):
                return each
        return None

    @property
    def factors(self) -> npt.NDArray[np.float64]:
        """Factors of pixels, of shape (C,)."""
        return self.scale / np.asarray(self.std, np.float64)

    @property
    def offsets(self) -> npt.NDArray[np.float64]:
        """What is added to them then, of shape (C,)."""
        return -np.asarray(self.mean, np.float64) / np.asarray(self.std, np.float64)

    def reordered(self, order: Sequence[int]) -> Normalisation:
        """Return that of channels in another order; the same for an empty one."""
        if not order:
            return self
        mean, std = (tuple(each[place] for place in order) for each in (self.mean, self.std))
        return replace(self, mean=mean, std=std)

    @property
    def words(self) -> str:
        """What the numbers are."""
        if math.isclose(self.scale, 1, rel_tol=_PLAIN):
            text = "pixels of 0 to 255"
        elif math.isclose(self.scale, _UNIT, rel_tol=_PLAIN):
            text = "pixels of 0 to 1"
        elif math.isclose(self.scale, _UNIT * _UNIT, rel_tol=_NEAR):
            text = "pixels that are scaled by 1/255 twice"
        else:
            text = f"pixels that are scaled by {_fraction(self.scale)}"
        owner = f"{self.name} " if self.name else ""
        has_std = any(each != 1 for each in self.std)
        if not has_std and not any(self.mean):
            return text
        if not has_std:
            return f"{text} less {owner}mean={_list(self.mean)}"
        return f"{text}, normalised by {owner}mean={_list(self.mean)} and std={_list(self.std)}"

    def unlike(self, other: Normalisation) -> Affine | None:
        """Explain in what a reference's normalisation, this one, differs from ours.

        Parameters
        ----------
        other : Normalisation
            Ours.

        Returns
        -------
        Affine or None
            None where they are the same.
        """
        changes, settings = [], []
        if not math.isclose(self.scale, other.scale, rel_tol=_NEAR):
            changes.append(Change("scale", self.scale))
            settings.append(f"scale={_fraction(self.scale)}")
        for name, mine, others in (
            ("mean", self.mean, other.mean),
            ("std", self.std, other.std),
        ):
            if not _near(np.array(mine), np.array(others)):
                changes.append(Change(name, mine))
                settings.append(f"{name}={_list(mine)}")
        if not changes:
            return None
        kind = "scale" if [change.name for change in changes] == ["scale"] else "mean_std"
        text = (
            f"The reference's input holds {self.words}; ours holds {other.words}. "
            f"Set {listed(settings)}."
        )
        return Affine(kind, text, tuple(changes))


def recognise(array: Array) -> Normalisation | None:
    """Find how an input was normalised, if its pixels were whole numbers.

    Parameters
    ----------
    array : ndarray of shape (…, C, H, W) or (…, H, W, C)

    Returns
    -------
    Normalisation or None
        None where nothing well-known gives whole numbers of 0 to 255.
    """
    axis = channel_axis(array.shape)
    if axis is None or array.dtype.kind not in "fiu" or not array.size:
        return None
    planes = np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1)
    few = planes[:, :: step_over((planes.shape[1],), _SAMPLED)].astype(np.float64)
    if not np.isfinite(few).all():
        return None
    channels = len(few)
    plain = Normalisation.of_pixels(channels)
    for each in (plain, replace(plain, scale=_UNIT), *_known_for(channels)):
        pixels = (few - each.offsets[:, np.newaxis]) / each.factors[:, np.newaxis]
        if _are_pixels(pixels):
            return each
    return None


def _are_pixels(numbers: Array) -> bool:
    whole = np.rint(numbers)
    odd = np.abs(numbers - whole) > _WHOLE
    if np.mean(odd) > _MOST_ODD or whole.min() < 0 or whole.max() > 255:
        return False
    return len(np.unique(whole)) >= _LEAST


def channel_axis(shape: Sequence[int]) -> int | None:
    """Return the channel axis: a short axis before rows and columns, or the last one."""
    if len(shape) < 3:
        return None
    for axis in (len(shape) - 3, len(shape) - 1):
        if 2 <= shape[axis] <= _FEW:
            return axis
    return len(shape) - 3 if shape[-3] == 1 else None


def describe_affine(
    scales: Array,
    offsets: Array,
    base: Normalisation | None = None,
    ours: Normalisation | None = None,
) -> Affine | None:
    """Explain ``reference = scale * array + offset``, one number per channel.

    Parameters
    ----------
    scales, offsets : ndarray of shape (C,)
    base : Normalisation, optional
        How pixels became the array; None where it is not known.
    ours : Normalisation, optional
        How they became our input, which the array was made from; default `base`.

    Returns
    -------
    Affine or None
        None where nothing has to be changed.
    """
    if base is not None and np.all(scales > 0):
        ours = ours or base
        factors, added = scales * base.factors, scales * base.offsets + offsets
        return Normalisation.of_map(factors, added, ours.scale).unlike(ours)
    size = float(np.abs(scales).max(initial=0.0))
    scales, offsets = _snapped(scales), _snapped(offsets)
    plain = bool(np.all(np.abs(offsets) <= 1e-4 * max(size, 1e-30)))
    if plain and np.allclose(scales, scales[0], rtol=1e-4):
        factor = float(scales[0])
        return Affine(
            "scale",
            f"The reference's input is {_fraction(factor)} times ours. Multiply scale by that "
            "factor.",
            (Change("scale", factor),),
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        mean, std = -offsets / scales, 1 / scales
    return Affine(
        "mean_std",
        f"The reference's input is ours less mean={_list(mean)} over std={_list(std)}. "
        "Set this mean and std.",
        (Change("mean", _tuple(mean)), Change("std", _tuple(std))),
    )


def _known_for(channels: int) -> list[Normalisation]:
    """Return the well-known ones for so many channels, also with the channels in reverse."""
    known = [(unit, *each) for each in _KNOWN for unit in (_UNIT, 1.0)]
    known += [(1.0, name, mean, (1.0,)) for name, mean in _KNOWN_MEANS]
    found = []
    for scale, name, *pair in known:
        mean, std = (each * channels if len(each) == 1 else each for each in pair)
        if len(mean) != channels:
            continue
        found.append(Normalisation(scale, mean, std, name))
        if len(set(mean)) > 1:
            found.append(Normalisation(scale, mean[::-1], std[::-1], name))
    return found


def explained_squares(x: Array, y: Array) -> tuple[Array, Array]:
    """Measure what a scale and an offset for each channel explain.

    Parameters
    ----------
    x, y : ndarray of float64, shape (…, C)

    Returns
    -------
    squares : ndarray of shape (C,)
        Of `y` about its mean.
    explained : ndarray of shape (C,)
        How much of them `x` explains; negative where the scale is negative.
    """
    axes = tuple(range(x.ndim - 1))
    x, y = x - x.mean(axes), y - y.mean(axes)
    squares, products = np.square(x).sum(axes), (x * y).sum(axes)
    explained = np.divide(
        products * np.abs(products), squares, out=np.zeros_like(squares), where=squares > 0
    )
    return np.square(y).sum(axes), explained


def listed(words: Sequence[str]) -> str:
    """Join words as a sentence does: ``a, b and c``."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _near(found: Array, wanted: Array) -> bool:
    size = np.abs(wanted).max()
    return bool(np.all(np.abs(found - wanted) <= _NEAR * (size or np.abs(found).max())))


def _snapped(numbers: Array) -> npt.NDArray[np.float64]:
    """Round numbers to few digits, or a fraction of 1, where that is nearly the same."""
    return np.array([_plain(float(number)) for number in numbers])


def _plain(number: float) -> float:
    for plain in plain_numbers(number):
        if abs(plain - number) <= _PLAIN * abs(number):
            return plain
    return number


def _plain_scale(number: float) -> float:
    """Round a scale of pixels to a usual one where it is near."""
    for usual in (1.0, _UNIT, _UNIT * _UNIT, 2 * _UNIT):
        if math.isclose(number, usual, rel_tol=_NEAR):
            return usual
    return _plain(number * 255) * _UNIT


def _tuple(numbers: Array) -> tuple[float, ...]:
    return tuple(float(number) for number in numbers)


def _fraction(number: float) -> str:
    if 0 < abs(number) < 1:
        return f"1/{1 / number:.6g}"
    return f"{number:.6g}"


def _list(numbers: Sequence[float] | Array) -> str:
    if len(set(numbers)) == 1:
        return f"{float(numbers[0]):.4g}"
    return f"({', '.join(f'{float(number):.4g}' for number in numbers)})"
