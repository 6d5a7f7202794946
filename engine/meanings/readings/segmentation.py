"""The class of each pixel."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from typing_extensions import override

from engine.errors import MeaningError
from engine.meanings.masks import read_mask, resize_nearest
from engine.meanings.names import NAMES, class_names
from engine.meanings.readings.key_points import has_limbs
from engine.meanings.registry import Fit, Option, OutputReading, register_reading
from engine.meanings.results import LabelMap, Row
from engine.meanings.scores import probabilities
from engine.text import format_share

if TYPE_CHECKING:
    import numpy.typing as npt

    from engine.meanings.ends import Ends, OutputEnd
    from engine.meanings.registry import ReadingContext
    from engine.values import Array

__all__ = ["MASK", "MOST_CLASSES", "Segmentation", "describe_labels", "expected_labels"]

MOST_CLASSES: Final = 4096
MASK: Final = Option(
    "mask", "Mask", "file", "",
    "A picture or .npy whose values are the right classes; 255 where none is known",
)  # fmt: skip
_SCORE_OF_SIZE: Final = {1: 0.8, 2: 0.6, 4: 0.6, 8: 0.6, 16: 0.4}  # by how much it is smaller


@register_reading
class Segmentation(OutputReading):
    """The best class of each pixel, and how well a mask is met."""

    name: ClassVar[str] = "segmentation"
    title: ClassVar[str] = "Segmentation"
    options: ClassVar[tuple[Option, ...]] = (
        Option(
            "threshold", "Threshold", "fraction", 0.5,
            "A pixel with at least this probability is foreground, where there is one class",
        ),
        NAMES,
        MASK,
    )  # fmt: skip

    @override
    def fits_output(self, output: OutputEnd, ends: Ends) -> Fit:
        shape, size = output.shape, ends.size
        if len(shape) == 3 and output.is_integer and shape[1:] == size:
            return Fit(0.95, "an output has a whole number for each pixel of the input")
        if _is_asked(output, ends):
            return Fit(0.6, "an output has one score for each pixel, for a text")
        if len(shape) != 4 or not output.is_real or min(shape[2:]) < 2 or size is None:
            return Fit(0, "no output has scores of classes for each pixel of an input picture")
        count, (height, width) = shape[1], shape[2:]
        smaller = size[0] // height
        if count > MOST_CLASSES or (height * smaller, width * smaller) != size:
            return Fit(0, "no output has the size of the input picture")
        reason = f"an output has {count} scores for each {smaller}×{smaller} pixels"
        if smaller == 1:
            reason = f"an output has {count} scores for each pixel"
        if ends.has_steps or output.ends_with("layernorm", "layer_norm", among=2):
            return Fit(0.3, f"{reason}, rather features or the noise of a step")
        return Fit(_score(output, ends, smaller), reason)

    @override
    def options_for(self, ends: Ends) -> tuple[Option, ...]:
        has_one = any(
            (len(each.shape) == 4 and each.shape[1] == 1) or _is_asked(each, ends)
            for each in ends.outputs
        )
        return self.options if has_one else self.options[1:]

    @override
    def read_output(
        self, values: Array, output: OutputEnd, context: ReadingContext
    ) -> LabelMap:
        if values.ndim == 2 and output.is_integer:
            labels = np.clip(values, -1, MOST_CLASSES).astype(np.int32)
            count = max(int(labels.max(initial=0)) + 1, 2)
        elif values.ndim == 2 or len(values) == 1:
            plane = values if values.ndim == 2 else values[0]
            with np.errstate(invalid="ignore"):
                sure = probabilities(plane) >= context.number("threshold")
            labels, count = sure.astype(np.int32), 2
        else:
            bounded = np.where(np.isnan(values), -np.inf, values)
            labels, count = bounded.argmax(0).astype(np.int32), len(values)
        names = class_names(count, context.labels, context.text("names"))
        if count == 2 and len(context.labels) != 2:
            names = ("background", "foreground")
        return describe_labels(labels, names, expected_labels(context, labels.shape))


def _score(output: OutputEnd, ends: Ends, smaller: int) -> float:
    """Return how well an output fits that is so many times smaller than the picture."""
    score, count, picture = _SCORE_OF_SIZE.get(smaller, 0), output.shape[1], ends.picture
    if count == 1:
        return 0.75 if output.ends_with("sigmoid", "hardsigmoid") else 0.45
    if output.ends_with("softmax", "log_softmax"):
        return min(score + 0.15, 0.95)
    if count in {3, 4} and picture is not None and smaller == 1:
        return 0.5 if picture[1] == 1 else 0.4  # rather a picture
    if count > 256 or has_limbs(output, ends):
        return min(score, 0.3)  # rather features, or maps of limbs and points
    return score


def _is_asked(output: OutputEnd, ends: Ends) -> bool:
    """Whether an output has a score for each pixel, and an input is a text, as of CLIPSeg."""
    shape = output.shape
    return ends.integers and output.is_real and len(shape) == 3 and shape[1:] == ends.size


def expected_labels(
    context: ReadingContext, shape: tuple[int, ...]
) -> npt.NDArray[np.int32] | None:
    """Return the user's mask at the size of the labels; None without one."""
    path = context.text("mask")
    return resize_nearest(read_mask(path), shape) if path else None


def describe_labels(
    labels: npt.NDArray[np.int32],
    names: tuple[str, ...],
    expected: npt.NDArray[np.int32] | None,
) -> LabelMap:
    """Return the class of each pixel with the share of each class, and how a mask is met."""
    if labels.min(initial=0) < 0 or labels.max(initial=0) >= MOST_CLASSES:
        raise MeaningError("the output has numbers that are no classes")
    counts = np.bincount(labels.reshape(-1), minlength=1)
    shares = counts / labels.size
    order = np.argsort(-counts, kind="stable")
    present = [int(each) for each in order if counts[each]]
    note, overlap = "", {}
    if expected is not None:
        overlap = _overlaps(labels, expected)
        present += sorted(overlap.keys() - set(present))
        known = expected >= 0
        right = float((labels == expected)[known].mean()) if known.any() else 0.0
        mean = float(np.mean(list(overlap.values()))) if overlap else 0.0
        note = (
            f"mean IoU {mean:.3f} over {len(overlap)} classes; "
            f"{format_share(right)} of pixels right"
        )
    rows = []
    for entry in present:
        share = float(shares[entry]) if entry < len(shares) else 0.0
        detail = f"IoU {overlap[entry]:.3f}" if entry in overlap else ""
        name = names[entry] if entry < len(names) else str(entry)
        rows.append(Row(entry, name, f"{100 * share:.1f} %", share, detail))
    return LabelMap(labels, tuple(rows), len(names), expected, note)


def _overlaps(
    labels: npt.NDArray[np.int32], expected: npt.NDArray[np.int32]
) -> dict[int, float]:
    """Return the intersection over union of each class, over pixels that the mask knows."""
    known = expected >= 0
    ours, theirs = labels[known], expected[known]
    count = int(max(ours.max(initial=0), theirs.max(initial=0))) + 1
    shared = np.bincount(ours[ours == theirs], minlength=count)
    union = np.bincount(ours, minlength=count) + np.bincount(theirs, minlength=count) - shared
    return {int(each): float(shared[each] / union[each]) for each in np.flatnonzero(union)}
