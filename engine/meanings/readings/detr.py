"""DETR and its kin: one class and one box for each query."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from typing_extensions import override

from engine.errors import MeaningError
from engine.meanings.boxes import BOX_OPTIONS, corners_of, select_boxes
from engine.meanings.names import class_names
from engine.meanings.registry import Fit, Option, Reading, register_reading
from engine.meanings.scores import probabilities, softmax

if TYPE_CHECKING:
    from engine.meanings.ends import Ends
    from engine.meanings.registry import ReadingContext
    from engine.meanings.results import Boxes

__all__ = ["Detr"]

_MOST_QUERIES: Final = 1000


@register_reading
class Detr(Reading):
    """Logits (N, queries, classes) and boxes (N, queries, 4): centre and size from 0 to 1."""

    name: ClassVar[str] = "detr"
    title: ClassVar[str] = "Boxes: DETR, RT-DETR"
    options: ClassVar[tuple[Option, ...]] = (
        *BOX_OPTIONS,
        Option(
            "scores", "Scores", "choice", "automatic",
            "Softmax, whose last class is for no object (DETR), or sigmoid (Deformable DETR, "
            "RT-DETR). Automatic: softmax for 92 classes or at most 100 queries",
            ("automatic", "softmax", "sigmoid"),
        ),
    )  # fmt: skip

    def _find(self, ends: Ends) -> tuple[int, int] | None:
        for place, boxes in enumerate(ends.outputs):
            if len(boxes.shape) != 3 or boxes.shape[2] != 4 or boxes.shape[1] > _MOST_QUERIES:
                continue
            for other, logits in enumerate(ends.outputs):
                shape = logits.shape
                if other != place and len(shape) == 3 and shape[:2] == boxes.shape[:2]:
                    return (other, place) if shape[2] > 1 else None
        return None

    @override
    def fits(self, ends: Ends) -> Fit:
        found = self._find(ends)
        if found is None:
            return Fit(0, "no two outputs have classes and boxes of the same queries")
        _, queries, classes = ends.outputs[found[0]].shape
        sure = ends.outputs[found[1]].ends_with("sigmoid") or queries in {100, 300, 900}
        reason = f"two outputs have {classes} classes and boxes of {queries} queries"
        if any(each.shape[1:] == (queries, 1) for each in ends.outputs):
            return Fit(0.4, f"{reason}, and a third one how central each place is, as of FCOS")
        if ends.size is None and not sure:
            return Fit(0.4, f"{reason}, but no input is a picture")
        return Fit(0.9 if sure else 0.6, reason)

    @override
    def read(self, context: ReadingContext) -> Boxes:
        found = self._find(context.ends)
        if found is None:
            raise MeaningError(self.fits(context.ends).reason)
        logits, centred = (context.of_sample(place) for place in found)
        queries, count = logits.shape
        how = context.text("scores")
        if how == "automatic":
            how = "softmax" if count == 92 or queries <= 100 else "sigmoid"
        if how == "softmax":
            scores, count = softmax(logits)[:, :-1], count - 1
        else:
            scores = probabilities(logits)
        height, width = context.ends.size or (1, 1)
        corners = corners_of(centred) * np.array([width, height, width, height])
        # Numbers of classes are those of COCO's annotations, but RT-DETR counts to 80.
        names = class_names(count, context.labels, context.text("names"))
        note = f"{how} of {queries} queries"
        return select_boxes(context, corners, scores, names=names, note=note)[0]
