"""Diagnoses preprocessing: how a reference's input was prepared differently from ours."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from engine.comparison.reasons.discrepancy import Discrepancy
from engine.comparison.reasons.fitting import plain_numbers
from engine.comparison.reasons.reason import Change, Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from engine.values import Array

__all__ = ["Affine", "describe_affine", "diagnose_input"]

# Well-known mean and std, for pixels from 0 to 1.
_KNOWN: Final = (
    ("ImageNet's", (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    ("CLIP's", (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)),
    ("those of Inception and MobileNet", (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
    ("those of Caffe, BGR", (104 / 255, 117 / 255, 123 / 255), (1 / 255, 1 / 255, 1 / 255)),
    ("CIFAR-10's", (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    ("COCO's", (0.406, 0.456, 0.485), (0.225, 0.224, 0.229)),
)  # fmt: skip
_NEAR: Final = 2e-3
_LEAST: Final = 0.9
_FEW: Final = 4
_FILLS: Final = (114, 0, 128, 127, 255)
_PLAIN: Final = 1e-5


class Affine(NamedTuple):
    """A scale and offset per channel, as a reason.

    Attributes
    ----------
    kind : {"scale", "mean_std"}
    text : str
    changes : tuple of Change
    """

    kind: str
    text: str
    changes: tuple[Change, ...]


class _Rearranged(NamedTuple):
    """Our input in another layout or order.

    Attributes
    ----------
    array : ndarray
    reasons : tuple of (str, str, Change)
        Kind, text and change of each step.
    """

    array: Array
    reasons: tuple[tuple[str, str, Change], ...]


def describe_affine(scales: Array, offsets: Array) -> Affine:
    """Explain ``reference = scale * ours + offset``, one number per channel.

    Parameters
    ----------
    scales, offsets : ndarray of shape (C,)
    """
    size = float(np.abs(scales).max(initial=0.0))
    scales, offsets = _snapped(scales), _snapped(offsets)
    plain = bool(np.all(np.abs(offsets) <= 1e-4 * max(size, 1e-30)))
    if plain and np.allclose(scales, scales[0], rtol=1e-4):
        factor = float(scales[0])
        inverse = 1 / factor if factor else 0.0
        words = f"1/{inverse:.6g}" if abs(factor) < 1 and inverse else f"{factor:.6g}"
        return Affine(
            "scale",
            f"The reference's input is {words} times ours. Multiply scale by that factor.",
            (Change("scale", factor),),
        )
    for name, *pair in _KNOWN:
        known = _as_known(name, np.array(pair[0]), np.array(pair[1]), scales, offsets)
        if known is not None:
            return known
    with np.errstate(divide="ignore", invalid="ignore"):
        mean, std = -offsets / scales, 1 / scales
    return Affine(
        "mean_std",
        f"The reference's input is ours less mean={_list(mean)} over std={_list(std)}. "
        "Set this mean and std.",
        (Change("mean", _floats(mean)), Change("std", _floats(std))),
    )


def _snapped(numbers: Array) -> Array:
    def snap(number: float) -> float:
        for plain in plain_numbers(number):
            if abs(plain - number) <= _PLAIN * abs(number):
                return plain
        return number

    return np.array([snap(float(number)) for number in numbers])


def _as_known(
    name: str, mean: Array, std: Array, scales: Array, offsets: Array
) -> Affine | None:
    """Recognise a well-known mean and std, on the reference's side or ours."""
    if len(scales) != len(mean):
        return None
    for unit in (1.0, 255.0):
        # The reference is ours, scaled by the unit and normalised.
        if _near(scales, 1 / (unit * std)) and _near(offsets, -mean / std):
            words = f"mean={_list(mean)} and std={_list(std)} ({name})"
            scale = "" if unit == 1 else " after a scale of 1/255"
            changes = [Change("mean", _floats(mean)), Change("std", _floats(std))]
            if unit != 1:
                changes.insert(0, Change("scale", 1 / 255))
            text = (
                f"The reference normalises the input by {words}{scale}, ours does not. Set "
                "them."
            )
            return Affine("mean_std", text, tuple(changes))
        # Ours is the reference, scaled by the unit and normalised.
        if _near(scales, unit * std) and _near(offsets, unit * mean):
            text = (
                f"Our input is normalised by mean={_list(mean)} and std={_list(std)} ({name}), "
                "the reference's is not. Set mean=0 and std=1."
            )
            changes = [Change("mean", (0.0,)), Change("std", (1.0,))]
            return Affine("mean_std", text, tuple(changes))
    return None


def _near(found: Array, wanted: Array) -> bool:
    return bool(np.all(np.abs(found - wanted) <= _NEAR * np.abs(wanted).max()))


def _floats(numbers: Array) -> tuple[float, ...]:
    return tuple(float(number) for number in numbers)


def _list(numbers: Array) -> str:
    return f"({', '.join(f'{float(number):.4g}' for number in numbers)})"


@np.errstate(all="ignore")  # NaN and inf are numbers here
def diagnose_input(
    ours: Array,
    reference: Array,
    *,
    image: Array | None = None,
    check_cancelled: Callable[[], None] | None = None,
) -> tuple[Reason, ...]:
    """Find how a reference's input was prepared differently from ours.

    Tries layouts, channel orders, and a scale and offset per channel together. With the source
    image it also tries ways of resizing.

    Parameters
    ----------
    ours, reference : ndarray of shape (N, C, H, W), (N, H, W, C) or without N
        Our input and the reference's; not written to.
    image : ndarray of uint8 of shape (H, W, 3), optional
        RGB, as `engine.inputs.read_image` reads it.
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
    best: tuple[float, int, tuple[Reason, ...]] = (0.0, 0, ())
    ways = itertools.chain(_rearranged(ours, reference.shape), _resized(image, reference))
    for way in ways:
        check()
        for found, scales, offsets, fitted in _mapped(way.array, reference):
            share = discrepancy.share(found, fitted)
            steps = _steps(way, scales, offsets, share)
            # Fewer steps win, unless more of them explain clearly more.
            if steps and (round(share, 3), -len(steps)) > (round(best[0], 3), best[1]):
                best = (share, -len(steps), steps)
        if best[0] > 0.9999 and best[1] == -1:
            break
    return best[2] if best[0] >= _LEAST else ()


def _steps(
    way: _Rearranged, scales: Array | None, offsets: Array | None, share: float
) -> tuple[Reason, ...]:
    steps = [Reason(kind, share, text, (change,)) for kind, text, change in way.reasons]
    if scales is not None and offsets is not None:
        found = describe_affine(scales, offsets)
        steps.append(Reason(found.kind, share, found.text, found.changes))
    return tuple(steps)


def _rearranged(ours: Array, shape: tuple[int, ...]) -> Iterator[_Rearranged]:
    """Return our input in the layouts and channel orders that have a given shape."""
    for array, layout in _layouts(ours, shape):
        axis = _channel_axis(array.shape)
        yield _Rearranged(array, layout)
        if axis is None:
            continue
        count = array.shape[axis]
        orders = [o for o in itertools.permutations(range(count)) if o != tuple(range(count))]
        for order in sorted(orders, key=lambda o: o != tuple(range(count))[::-1]):
            reversed_ = order == (2, 1, 0)
            text = (
                "The channels of the reference's input are ours in reverse: BGR instead of "
                "RGB, or RGB instead of BGR. Change the order."
                if reversed_
                else f"The channels of the reference's input are in the order {order} of ours."
            )
            change = Change("order", "BGR" if reversed_ else order)
            yield _Rearranged(
                np.take(array, order, axis), (*layout, ("channel_order", text, change))
            )


def _layouts(
    ours: Array, shape: tuple[int, ...]
) -> Iterator[tuple[Array, tuple[tuple[str, str, Change], ...]]]:
    if ours.shape == shape:
        yield ours, ()
    if ours.ndim != len(shape) or ours.ndim < 3 or ours.size != np.prod(shape):
        return
    lead = tuple(range(ours.ndim - 3))
    c, h, w = range(ours.ndim - 3, ours.ndim)
    named = {
        "NHWC where ours is NCHW": (*lead, h, w, c),
        "NCHW where ours is NHWC": (*lead, w, c, h),
        "with rows and columns exchanged": (*lead, c, w, h),
        "NHWC with rows and columns exchanged": (*lead, w, h, c),
    }
    for words, order in named.items():
        text = f"The reference's input is {words}. Transpose the input by {order}."
        step = (("input_layout", text, Change("dims", order)),)
        moved = ours.transpose(order)
        if moved.shape == shape:
            yield moved, step
        elif ours.shape == shape:
            text = f"The reference's memory is {words}. Transpose the input by {order}."
            yield moved.reshape(shape), (("input_layout", text, Change("dims", order)),)
            sizes = [shape[axis] for axis in order]
            back = ours.reshape(sizes).transpose(np.argsort(order))
            yield back, (("input_layout", text, Change("dims", order)),)
    if ours.shape == shape:
        for axis, word in ((w, "columns"), (h, "rows")):
            text = f"The {word} of the reference's input are in reverse order. Flip the input."
            yield np.flip(ours, axis), (("input_layout", text, Change("flip", axis)),)


def _channel_axis(shape: Sequence[int]) -> int | None:
    """Return the channel axis: a short axis before rows and columns, or the last one."""
    if len(shape) < 3:
        return None
    for axis in (len(shape) - 3, len(shape) - 1):
        if 2 <= shape[axis] <= _FEW:
            return axis
    return None


def _mapped(
    array: Array, reference: Array
) -> Iterator[tuple[Array, Array | None, Array | None, int]]:
    """Return an input unchanged, then scaled, then with a scale and offset per channel."""
    if array.shape != reference.shape:
        return
    yield array, None, None, 0
    x, y = array.astype(np.float64), reference.astype(np.float64)
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return
    axis = _channel_axis(array.shape)
    channels = array.shape[axis] if axis is not None else 1
    square = float(np.square(x).sum())
    if square:
        factor = np.full(channels, float((x * y).sum()) / square)
        factor = _snapped(factor)
        yield x * factor[0], factor, np.zeros(channels), 1
    others = tuple(n for n in range(x.ndim) if n != axis)
    means = x.mean(others, keepdims=True), y.mean(others, keepdims=True)
    spread = np.square(x - means[0]).sum(others, keepdims=True)
    product = ((x - means[0]) * (y - means[1])).sum(others, keepdims=True)
    scales = np.divide(product, spread, out=np.zeros_like(spread), where=spread > 0)
    offsets = means[1] - scales * means[0]
    if (scales > 0).all():
        yield x * scales + offsets, scales.reshape(-1), offsets.reshape(-1), 2 * channels


def _resized(image: Array | None, reference: Array) -> Iterator[_Rearranged]:
    """Return the image resized to the reference's size by the usual methods."""
    axis = _channel_axis(reference.shape)
    if image is None or axis is None or image.ndim != 3 or image.dtype != np.uint8:
        return
    last = axis == reference.ndim - 1
    rows, columns = reference.shape[-3:-1] if last else reference.shape[-2:]
    if reference.shape[axis] != image.shape[2]:
        return
    for words, change, picture in _pictures(image, rows, columns):
        text = f"The reference's image is {words}. Prepare the image the same way."
        planes = picture if last else np.moveaxis(picture, 2, 0)
        array = np.broadcast_to(planes, reference.shape)
        step = ("parameter", text, change)
        yield _Rearranged(array, (step,))
        order = "The channels of the reference's input are BGR. Set order=BGR."
        swapped = np.take(array, (2, 1, 0), axis)
        yield _Rearranged(swapped, (step, ("channel_order", order, Change("order", "BGR"))))


def _pictures(image: Array, rows: int, columns: int) -> Iterator[tuple[str, Change, Array]]:
    from PIL import Image

    picture = Image.fromarray(image)
    ways = {
        "bilinear": Image.Resampling.BILINEAR,
        "nearest": Image.Resampling.NEAREST,
        "bicubic": Image.Resampling.BICUBIC,
        "area (box)": Image.Resampling.BOX,
        "Lanczos": Image.Resampling.LANCZOS,
    }
    for name, way in ways.items():
        whole = np.asarray(picture.resize((columns, rows), way))
        yield f"stretched to {rows}×{columns}, {name}", Change("fit", "resize"), whole
        yield (
            f"resized by its shorter side and cut to {rows}×{columns} in the centre, {name}",
            Change("fit", "crop"),
            _cut(picture, rows, columns, 1.0, way),
        )
        yield (
            f"resized with a margin of 256/224 and cut to {rows}×{columns}, {name}",
            Change("fit", "crop"),
            _cut(picture, rows, columns, 256 / 224, way),
        )
    for fill in _FILLS:
        yield (
            f"letterboxed: its longer side fits {rows}×{columns}, with a border of {fill}",
            Change("fit", "letterbox"),
            _letterboxed(picture, rows, columns, fill),
        )
    if image.shape[0] >= rows and image.shape[1] >= columns:
        top, left = (image.shape[0] - rows) // 2, (image.shape[1] - columns) // 2
        cut = image[top : top + rows, left : left + columns]
        yield f"cut to {rows}×{columns} in the centre, not resized", Change("fit", "crop"), cut


def _cut(picture: object, rows: int, columns: int, margin: float, way: int) -> Array:
    from PIL import Image

    assert isinstance(picture, Image.Image)  # noqa: S101 - Pillow is imported in functions
    zoom = max(rows * margin / picture.height, columns * margin / picture.width)
    width = max(columns, round(picture.width * zoom))
    height = max(rows, round(picture.height * zoom))
    left, top = (width - columns) // 2, (height - rows) // 2
    # Crop before resizing: a long strip would become very large.
    array = picture.resize(
        (columns, rows),
        Image.Resampling(way),
        box=(
            left * picture.width / width,
            top * picture.height / height,
            (left + columns) * picture.width / width,
            (top + rows) * picture.height / height,
        ),
    )
    return np.asarray(array)


def _letterboxed(picture: object, rows: int, columns: int, fill: int) -> Array:
    from PIL import Image

    assert isinstance(picture, Image.Image)  # noqa: S101 - Pillow is imported in functions
    zoom = min(rows / picture.height, columns / picture.width)
    height, width = max(1, round(picture.height * zoom)), max(1, round(picture.width * zoom))
    result = np.full((rows, columns, 3), fill, np.uint8)
    top, left = (rows - height) // 2, (columns - width) // 2
    inner = picture.resize((width, height), Image.Resampling.BILINEAR)
    result[top : top + height, left : left + width] = np.asarray(inner)
    return result
