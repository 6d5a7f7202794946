"""The source image brought to the input's size in the ways of the usual libraries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from engine.comparison.reasons.preprocessing.arrangements import Step, Way
from engine.comparison.reasons.preprocessing.normalisation import (
    channel_axis,
    explained_squares,
    listed,
)
from engine.comparison.reasons.reason import Change
from engine.image_methods import RESAMPLINGS
from engine.image_resizing import ImageResizer, shrunk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from engine.image_methods import Resampling
    from engine.inputs import ImageOptions
    from engine.values import Array, Value

__all__ = ["Found", "Plan", "Search", "resized"]

# torch's own methods: what interpolate takes, the words, and the nearest setting.
_OF_TORCH: Final[Mapping[str, tuple[Mapping[str, Any], str, Resampling | None]]] = {
    "torch bilinear": (
        {"mode": "bilinear"}, RESAMPLINGS["opencv-bilinear"], "opencv-bilinear"
    ),
    "torch bicubic": ({"mode": "bicubic"}, RESAMPLINGS["opencv-bicubic"], "opencv-bicubic"),
    "torch aligned": (
        {"mode": "bilinear", "align_corners": True},
        "bilinear with aligned corners as in torch",
        None,
    ),
    "torch smooth bilinear": (
        {"mode": "bilinear", "antialias": True},
        "bilinear with antialias as in torch",
        "bilinear",
    ),
    "torch smooth bicubic": (
        {"mode": "bicubic", "antialias": True},
        "bicubic with antialias as in torch",
        "bicubic",
    ),
    "torch area": ({"mode": "area"}, "means of areas as in torch", None),
}  # fmt: skip
_MOST_MARGIN: Final = 1.25  # of the shorter side, around a cut
_AROUND: Final = 6  # pixels about a shorter side that are tried then
_FINALISTS: Final = 2  # places whose methods are tried
_LOOKED_AT: Final = 112  # rows and columns, about, of those that are measured
_LEFT: Final = 0.1  # share of the reference's variance beyond which a way explains nothing
_OFF: Final = 0.5  # by which a border may miss a whole number
_EXACT: Final = 1e-6  # share that less than the rounding of pixels leaves
_DETAIL: Final = 4  # pixels of a picture for one of the reference, while the place is searched


@dataclass(frozen=True, slots=True, order=True)
class Plan:
    """Where a picture goes.

    Attributes
    ----------
    kind : {"resize", "crop", "letterbox", "cut"}
    size : (int, int)
        Rows and columns of the whole picture after resizing.
    start : (int, int)
        First row and column: of the picture, for a letterbox of the frame.
    method : str
        A resampling, or one of torch.
    """

    kind: str
    size: tuple[int, int]
    start: tuple[int, int] = (0, 0)
    method: str = "bilinear"


class Found(NamedTuple):
    """How well a plan explains the reference.

    Attributes
    ----------
    left : float
        Share of the reference's variance that is left over, after a scale and offset for each
        channel.
    is_reverse : bool
        Whether the channels fit better in reverse order.
    plan : Plan
    """

    left: float
    is_reverse: bool
    plan: Plan


def resized(
    image: Array,
    reference: Array,
    options: ImageOptions,
    check_cancelled: Callable[[], None],
) -> list[Way]:
    """Return the image in the way that explains a reference's input best.

    Parameters
    ----------
    image : ndarray of uint8, shape (H, W, C)
    reference : ndarray of shape (…, C, rows, columns) or (…, rows, columns, C)
    options : ImageOptions
        Of our input.
    check_cancelled : callable
        Called before each way that is tried; an exception stops.

    Returns
    -------
    list of Way
        At most one; none where nothing explains most of it.
    """
    axis = channel_axis(reference.shape)
    if axis is None or reference.shape[axis] != image.shape[2]:
        return []
    frame = _Frame(image, np.moveaxis(reference, axis, -1), check_cancelled)
    found = frame.search()
    if found is None:
        return []
    pixels, inner = frame.picture(found.plan)
    array = pixels if axis == reference.ndim - 1 else np.moveaxis(pixels, -1, -3)
    border, fill = frame.border(found)
    words = frame.describe(found.plan)
    whole = None
    if border:
        whole, around = _describe_fill(border, fill)
        words = f"{words}; the border is {around}"
    text, changes = frame.advise(found.plan, words, whole, options)
    steps = [Step("resizing", text, changes)]
    theirs = "BGR" if found.is_reverse else "RGB"
    if theirs != options.order:
        text = (
            f"The reference's input is {theirs}, ours is {options.order}. Set order={theirs}."
        )
        steps.append(Step("channel_order", text, (Change("order", theirs),)))
    array = np.broadcast_to(array, reference.shape)
    if found.is_reverse:
        array = np.flip(array, axis)
    return [Way(array, tuple(steps), is_pixels=True, inner=inner, border=border)]


def _describe_fill(border: tuple[float, ...], fill: Array) -> tuple[int | None, str]:
    """Say what a border is made of; with the pixel, if it is one of whole numbers."""
    pixel = round(float(fill.mean()))
    if np.abs(fill - pixel).max() < _OFF and 0 <= pixel <= 255:
        return pixel, str(pixel)
    if not any(border):
        return None, "0 after normalising"
    return None, f"({', '.join(f'{each:.4g}' for each in fill)})"


class Search(ABC):
    """Tries the ways to bring an image to the size of an input.

    Parameters
    ----------
    image : ndarray of uint8, shape (H, W, C)
    frame : (int, int)
        Rows and columns of the input.
    check_cancelled : callable
        Called before each way that is tried; an exception stops.
    """

    coarse: ClassVar[int] = 6
    """Pixels between shorter sides that are tried first."""
    promising: ClassVar[float] = 0.5
    """Share that a place may leave, beyond which no method is tried for it."""

    def __init__(
        self, image: Array, frame: tuple[int, int], check_cancelled: Callable[[], None]
    ) -> None:
        self._rows, self._columns = frame
        self._image, self._resizer = image, ImageResizer(image)
        # Where a photograph goes shows at a few of its pixels, in a fraction of the time.
        small = shrunk(image, (_DETAIL * self._rows, _DETAIL * self._columns))
        self._small = self._resizer if small is image else ImageResizer(small)
        self._check_cancelled = check_cancelled

    @abstractmethod
    def left_of(self, pixels: Array, inner: tuple[slice, slice] | None) -> tuple[float, bool]:
        """Return the share of the reference that is left, and whether the order is reverse.

        Parameters
        ----------
        pixels : ndarray of float64, shape (rows, columns, C)
        inner : (slice, slice) or None
            Where the picture is within a border.
        """

    def search(self) -> Found | None:
        """Return the best plan: first where the picture goes, then how it is resized."""
        rough = [self._measure(plan, self._small) for plan in self._first_plans()]
        near = list(self._refined(min(rough).plan))
        near += [replace(plan, method="bicubic") for plan in near]
        rough += [self._measure(plan, self._small) for plan in near]
        promising = [each for each in sorted(rough) if each.left <= self.promising]
        places = dict.fromkeys(replace(each.plan, method="bilinear") for each in promising)
        names = [*RESAMPLINGS, *_OF_TORCH]
        plans = [
            replace(place, method=name)
            for place in sorted(list(places)[:_FINALISTS])  # of two that both fit, the smaller
            for name in (names if place.kind != "cut" else [place.method])
        ]
        found: list[Found] = []
        for plan in plans:
            found.append(self._measure(plan, self._resizer))
            if found[-1].left <= _EXACT:
                break
        best = min(found, default=None)
        return best if best is not None and best.left <= _LEFT else None

    def _first_plans(self) -> Iterator[Plan]:
        height, width = self._image.shape[:2]
        rows, columns = self._rows, self._columns
        yield Plan("resize", (rows, columns))
        if height >= rows and width >= columns:
            yield Plan("cut", (height, width), _centre(height, width, rows, columns))
        least = max(rows / height, columns / width)
        steps = np.arange(1, _MOST_MARGIN, self.coarse / min(rows, columns))
        for margin in steps.tolist():
            yield self._crop(height * least * margin, width * least * margin)
        zoom = min(rows / height, columns / width)
        size = max(1, round(height * zoom)), max(1, round(width * zoom))
        yield Plan("letterbox", size)
        yield Plan("letterbox", size, _centre(rows, columns, *size))

    def _crop(self, height: float, width: float) -> Plan:
        size = max(self._rows, round(height)), max(self._columns, round(width))
        return Plan("crop", size, _centre(*size, self._rows, self._columns))

    def _refined(self, plan: Plan) -> Iterator[Plan]:
        """Return plans near one, whose sizes and starts are rounded in other ways."""
        if plan.kind != "crop":
            return
        height, width = self._image.shape[:2]
        middle = min(plan.size)
        for side in range(middle - _AROUND, middle + _AROUND + 1):
            longer = side * max(height, width) / min(height, width)
            for other in {round(longer), int(longer)}:
                size = (other, side) if height > width else (side, other)
                apart = size[0] - self._rows, size[1] - self._columns
                if min(apart) < 0:
                    continue
                for start in {(apart[0] // 2, apart[1] // 2),
                              (round(apart[0] / 2), round(apart[1] / 2))}:  # fmt: skip
                    yield Plan("crop", size, start)

    def _measure(self, plan: Plan, resizer: ImageResizer) -> Found:
        self._check_cancelled()
        return Found(*self.left_of(*self._picture(plan, resizer)), plan)

    def picture(self, plan: Plan) -> tuple[npt.NDArray[np.float64], tuple[slice, slice] | None]:
        """Return pixels of shape (rows, columns, C), and where they are within a border."""
        return self._picture(plan, self._resizer)

    def _picture(
        self, plan: Plan, resizer: ImageResizer
    ) -> tuple[npt.NDArray[np.float64], tuple[slice, slice] | None]:
        if plan.kind != "letterbox":
            return self._resize(plan, resizer), None
        (height, width), (top, left) = plan.size, plan.start
        inner = slice(top, top + height), slice(left, left + width)
        pixels = np.zeros((self._rows, self._columns, self._image.shape[2]))
        pixels[inner] = self._resize(plan, resizer)
        return pixels, inner

    def _resize(self, plan: Plan, resizer: ImageResizer) -> npt.NDArray[np.float64]:
        if plan.kind == "cut":
            top, left = plan.start
            part = self._image[top : top + self._rows, left : left + self._columns]
            return part.astype(np.float64)
        start, size = plan.start, (self._rows, self._columns)
        if plan.kind == "letterbox":
            start, size = (0, 0), plan.size
        if plan.method in _OF_TORCH:
            arguments = _OF_TORCH[plan.method][0]
            found = resizer.interpolate(plan.size, arguments, start, size)
            return found.astype(np.float64)
        resampling = cast("Resampling", plan.method)
        return resizer.resize(plan.size, resampling, start, size).astype(np.float64)

    def advise(
        self, plan: Plan, words: str, border: float | None, ours: ImageOptions
    ) -> tuple[str, tuple[Change, ...]]:
        """Return the difference with what to do, and the options to change."""
        changes = self._settings(plan, border, ours)
        texts = [f"{each.name.replace('_', ' ')}={each.value}" for each in changes]
        advice = f"Set {listed(texts)}" if texts else "Prepare it the same way"
        text = f"The reference's image is {words}. {advice}."
        return text, tuple(changes) or (Change("fit", plan.kind),)

    def _settings(self, plan: Plan, border: float | None, ours: ImageOptions) -> list[Change]:
        """Return the options that give a plan and differ from ours; none where none does."""
        method = plan.method
        resampling = _OF_TORCH[method][2] if method in _OF_TORCH else method
        is_boxed = plan.kind == "letterbox"
        if resampling is None or (is_boxed and (border is None or not self._is_centred(plan))):
            return []
        wanted: dict[str, Value] = {"resampling": resampling}
        if plan.kind == "cut":
            wanted = {}  # nothing is resized
        wanted["fit"] = "crop" if plan.kind == "cut" else plan.kind
        if wanted["fit"] == "crop":
            wanted["shorter_side"] = min(plan.size)
        if is_boxed:
            wanted["border"] = border
        return [
            Change(name, wanted[name])
            for name in ("fit", "shorter_side", "border", "resampling")
            if name in wanted and wanted[name] != getattr(ours, name)
        ]

    def _is_centred(self, plan: Plan) -> bool:
        return plan.start == _centre(self._rows, self._columns, *plan.size)

    def describe(self, plan: Plan) -> str:
        """Say what a plan does to the image."""
        frame = f"{self._rows}×{self._columns}"
        if plan.kind == "cut":
            return f"cut to {frame} in the centre, not resized"
        if plan.method in _OF_TORCH:
            how = _OF_TORCH[plan.method][1]
        else:
            how = RESAMPLINGS[cast("Resampling", plan.method)]
        if plan.kind == "resize":
            return f"stretched to {frame}, {how}"
        if plan.kind == "crop":
            side = min(plan.size)
            return f"resized until its shorter side is {side}, then cut to {frame}; {how}"
        where = "in the centre" if any(plan.start) else "at the upper left"
        return f"letterboxed: its longer side fits {frame}, {where}; {how}"


class _Frame(Search):
    """The picture that a reference shows, and an image that may be its source.

    Parameters
    ----------
    image : ndarray of shape (H, W, C)
    reference : ndarray of shape (…, rows, columns, C)
    check_cancelled : callable
    """

    def __init__(
        self, image: Array, reference: Array, check_cancelled: Callable[[], None]
    ) -> None:
        rows, columns, channels = reference.shape[-3:]
        super().__init__(image, (rows, columns), check_cancelled)
        self._target = reference.reshape(-1, rows, columns, channels)[0].astype(np.float64)
        self._step = max(1, min(rows, columns) // _LOOKED_AT)
        self._total = _variance(self._target[:: self._step, :: self._step])

    @override
    def left_of(self, pixels: Array, inner: tuple[slice, slice] | None) -> tuple[float, bool]:
        target, left = self._target, 0.0
        if inner is not None:
            left = _variance(target[_around(target, inner)])
            pixels, target = pixels[inner], target[inner]
        few = (slice(None, None, self._step),) * 2
        pixels, target = pixels[few], target[few]
        orders = [pixels, pixels[..., ::-1]] if pixels.shape[-1] == 3 else [pixels]
        unexplained = [_unexplained(each, target) for each in orders]
        least = int(np.argmin(unexplained))
        left = left / self._step**2 + unexplained[least]
        return left / (self._total or 1.0), least == 1

    def border(self, found: Found) -> tuple[tuple[float, ...], Array]:
        """Return the reference's numbers around the picture, one a channel, and as pixels."""
        pixels, inner = self.picture(found.plan)
        if inner is None:
            return (), np.empty(0)
        if found.is_reverse:
            pixels = pixels[..., ::-1]
        around = _around(self._target, inner)
        if not around.any():
            return (), np.empty(0)
        numbers = self._target[around].mean(axis=0)
        x, y = (each[inner].reshape(-1, len(numbers)) for each in (pixels, self._target))
        spread = x.std(axis=0)
        scales = np.divide(y.std(axis=0), spread, out=np.ones_like(spread), where=spread > 0)
        return tuple(numbers.tolist()), x.mean(axis=0) + (numbers - y.mean(axis=0)) / scales


def _around(target: Array, inner: tuple[slice, slice]) -> Array:
    """Return which pixels lie around a part of a picture."""
    around = np.ones(target.shape[:2], np.bool_)
    around[inner] = False
    return around


def _centre(height: int, width: int, rows: int, columns: int) -> tuple[int, int]:
    return (height - rows) // 2, (width - columns) // 2


def _variance(array: Array) -> float:
    """Return the squared distances from each channel's mean."""
    flat = array.reshape(-1, array.shape[-1])
    return float(np.square(flat - flat.mean(axis=0)).sum()) if len(flat) else 0.0


def _unexplained(pixels: Array, target: Array) -> float:
    """Return what a scale and offset for each channel leaves of a target's squares."""
    squares, explained = explained_squares(pixels, target)
    return float((squares - np.maximum(explained, 0)).sum())  # nothing inverts a picture
