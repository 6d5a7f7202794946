"""MaskFormer and its kin: one class and one mask for each query."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
from typing_extensions import override

from engine.errors import MeaningError
from engine.meanings.names import NAMES, class_names
from engine.meanings.readings.segmentation import (
    MASK,
    MOST_CLASSES,
    describe_labels,
    expected_labels,
)
from engine.meanings.registry import Fit, Option, Reading, register_reading
from engine.meanings.scores import probabilities, softmax

if TYPE_CHECKING:
    from engine.meanings.ends import Ends
    from engine.meanings.registry import ReadingContext
    from engine.meanings.results import LabelMap

__all__ = ["MaskQueries"]


@register_reading
class MaskQueries(Reading):
    """Logits (N, queries, classes and none) and masks (N, queries, H, W)."""

    name: ClassVar[str] = "masks"
    title: ClassVar[str] = "Segmentation: MaskFormer, EoMT"
    options: ClassVar[tuple[Option, ...]] = (NAMES, MASK)

    def _find(self, ends: Ends) -> tuple[int, int] | None:
        """Return the places of logits and masks."""
        for place, masks in enumerate(ends.outputs):
            if len(masks.shape) != 4 or not masks.is_real or min(masks.shape[2:]) < 2:
                continue
            for other, logits in enumerate(ends.outputs):
                shape = logits.shape
                same = len(shape) == 3 and shape[:2] == masks.shape[:2] and logits.is_real
                if same and 2 < shape[2] <= MOST_CLASSES:
                    return other, place
        return None

    @override
    def fits(self, ends: Ends) -> Fit:
        found = self._find(ends)
        if found is None or ends.size is None:
            return Fit(0, "no two outputs have classes and masks of the same queries")
        _, queries, classes = ends.outputs[found[0]].shape
        reason = f"two outputs have {classes} classes and masks of {queries} queries"
        return Fit(0.9, reason)

    @override
    def read(self, context: ReadingContext) -> LabelMap:
        """Sum the masks of all queries, by the probabilities of their classes.

        The last class is for no object. So the papers make classes of pixels.
        """
        found = self._find(context.ends)
        if found is None:
            raise MeaningError(self.fits(context.ends).reason)
        logits, masks = (context.of_sample(place) for place in found)
        sure = softmax(logits)[:, :-1].astype(np.float32).T
        shown = np.nan_to_num(probabilities(masks).astype(np.float32))
        labels = np.empty(masks.shape[1:], np.int32)
        for row in range(len(labels)):  # all classes of all pixels would be large
            labels[row] = (sure @ shown[:, row]).argmax(0)
        names = class_names(len(sure), context.labels, context.text("names"))
        expected = expected_labels(context, labels.shape)
        return describe_labels(labels, names, expected)
