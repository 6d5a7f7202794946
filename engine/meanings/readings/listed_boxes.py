"""Boxes that a model has decoded and listed: corners, scores, and perhaps classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from typing_extensions import override

from engine.errors import MeaningError
from engine.meanings.boxes import BOX_OPTIONS, select_boxes
from engine.meanings.registry import Fit, Option, Reading, register_reading

if TYPE_CHECKING:
    from engine.meanings.ends import Ends
    from engine.meanings.registry import ReadingContext
    from engine.meanings.results import Boxes
    from engine.values import Array

__all__ = ["ListedBoxes"]


class _Places(NamedTuple):
    boxes: int
    scores: int
    classes: int | None


@register_reading
class ListedBoxes(Reading):
    """Boxes (…, n, 4) with scores (…, n) and classes (…, n), or scores (…, n, classes)."""

    name: ClassVar[str] = "boxes"
    title: ClassVar[str] = "Boxes: corners and scores"
    options: ClassVar[tuple[Option, ...]] = (
        *BOX_OPTIONS,
        Option(
            "background", "Class 0", "choice", "automatic",
            "Whether class 0 is background. Automatic: it is where each box has several scores",
            ("automatic", "background", "an object"),
        ),
    )  # fmt: skip

    def _find(self, ends: Ends) -> _Places | None:
        for place, boxes in enumerate(ends.outputs):
            if len(boxes.shape) not in {2, 3} or boxes.shape[-1] != 4 or not boxes.is_real:
                continue
            lists = [
                other
                for other, each in enumerate(ends.outputs)
                if other != place and each.shape == boxes.shape[:-1]
            ]
            real = [other for other in lists if ends.outputs[other].is_real]
            whole = [other for other in lists if other not in real]
            if real:
                return _Places(place, real[0], next(iter(whole or real[1:]), None))
            for other, each in enumerate(ends.outputs):
                same = each.shape[:-1] == boxes.shape[:-1]
                if other != place and same and each.shape[-1] >= 2:
                    return _Places(place, other, None)
        return None

    @override
    def fits(self, ends: Ends) -> Fit:
        found = self._find(ends)
        if found is None:
            return Fit(0, "no two outputs have corners and scores of the same boxes")
        count = ends.outputs[found.boxes].shape[-2]
        score = 0.85 if found.classes is not None else 0.6
        reason = f"outputs have corners and scores of {count} boxes"
        if any(each.shape[1:] == (count, 1) for each in ends.outputs):
            return Fit(0.4, f"{reason}, and how central each place is, as of FCOS")
        if ends.size is None and found.classes is None:
            return Fit(0.4, f"{reason}, but no input is a picture")
        return Fit(score, reason)

    @override
    def read(self, context: ReadingContext) -> Boxes:
        found = self._find(context.ends)
        if found is None:
            raise MeaningError(self.fits(context.ends).reason)
        batched = len(context.ends.outputs[found.boxes].shape) == 3

        def get(place: int) -> Array:
            return context.of_sample(place) if batched else context.arrays[place]

        corners, scores = get(found.boxes).astype(np.float64), get(found.scores)
        size = context.ends.size
        if size is not None and corners.size and np.nanmax(np.abs(corners)) <= 2:
            corners = corners * np.array([size[1], size[0], size[1], size[0]])
        first = context.text("background")
        if scores.ndim == 1:
            classes = np.zeros(len(scores), np.int64)
            if found.classes is not None:
                classes = np.nan_to_num(get(found.classes)).astype(np.int64)
            if first == "background":
                scores = np.where(classes == 0, -1.0, scores)
            return select_boxes(context, corners, scores, classes=classes)[0]
        skipped = 0 if first == "an object" else 1
        best = scores[:, skipped:]
        return select_boxes(context, corners, best.max(1), classes=best.argmax(1) + skipped)[0]
