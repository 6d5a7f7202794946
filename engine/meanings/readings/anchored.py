"""torchvision's SSD and RetinaNet: class scores and box deltas about default boxes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from typing_extensions import override

from engine.errors import MeaningError
from engine.meanings.boxes import BOX_OPTIONS, select_boxes
from engine.meanings.names import class_names
from engine.meanings.registry import Fit, Reading, register_reading
from engine.meanings.scores import probabilities, softmax

if TYPE_CHECKING:
    import numpy.typing as npt

    from engine.meanings.ends import Ends
    from engine.meanings.registry import Option, ReadingContext
    from engine.meanings.results import Boxes
    from engine.values import Array

__all__ = ["RetinaNet", "Ssd", "apply_deltas", "retina_anchors", "ssd_boxes"]

_GROWTH: Final = math.log(
    1000 / 16
)  # the most that a default box grows, as torchvision bounds it
_RETINA_SIDES: Final = (32, 64, 128, 256, 512)
_RETINA_STRIDES: Final = (8, 16, 32, 64, 128)
_SSD300: Final = (
    (38, 19, 10, 5, 3, 1),
    ((2,), (2, 3), (2, 3), (2, 3), (2,), (2,)),
    (0.07, 0.15, 0.33, 0.51, 0.69, 0.87, 1.05),
    (8, 16, 32, 64, 100, 300),
)
_SSD_LITE: Final = (
    (20, 10, 5, 3, 2, 1),
    ((2, 3),) * 6,
    (*(0.2 + 0.75 * level / 5 for level in range(6)), 1.0),
    (),
)


def ssd_boxes(size: tuple[int, int], count: int) -> npt.NDArray[np.float64] | None:
    """Return the default boxes of torchvision's SSD300 or SSDLite320, as corners in pixels.

    Parameters
    ----------
    size : (int, int)
        Height and width of the input.
    count : int
        Of boxes, which tells the network.

    Returns
    -------
    ndarray of shape (count, 4), or None
    """
    height, width = size
    for grids, ratios, scales, steps in (_SSD300, _SSD_LITE):
        made = []
        for level, side in enumerate(grids):
            own = [(scales[level],) * 2, (math.sqrt(scales[level] * scales[level + 1]),) * 2]
            for ratio in ratios[level]:
                wide = scales[level] * math.sqrt(ratio)
                high = scales[level] / math.sqrt(ratio)
                own += [(wide, high), (high, wide)]
            half = np.clip(np.array(own), 0, 1) / 2
            across, down = (
                (width / steps[level], height / steps[level]) if steps else (side, side)
            )
            rows, columns = np.meshgrid(np.arange(side), np.arange(side), indexing="ij")
            centres = np.stack([(columns + 0.5) / across, (rows + 0.5) / down], -1)
            centres = centres.reshape(-1, 1, 2)
            made.append(np.concatenate([centres - half, centres + half], -1).reshape(-1, 4))
        found = np.concatenate(made)
        if len(found) == count:
            scaled: npt.NDArray[np.float64] = found * np.array([width, height] * 2)
            return scaled
    return None


def retina_anchors(size: tuple[int, int]) -> npt.NDArray[np.float64]:
    """Return the anchors of torchvision's RetinaNet, as corners in pixels.

    Parameters
    ----------
    size : (int, int)
        Height and width of the input.
    """
    made = []
    for side, stride in zip(_RETINA_SIDES, _RETINA_STRIDES, strict=True):
        scales = np.array([side, int(side * 2 ** (1 / 3)), int(side * 2 ** (2 / 3))])
        high = np.sqrt(np.array([0.5, 1.0, 2.0]))
        wides = (1 / high[:, np.newaxis] * scales).reshape(-1)
        highs = (high[:, np.newaxis] * scales).reshape(-1)
        base = np.round(np.stack([-wides, -highs, wides, highs], 1) / 2)
        rows, columns = (-(-each // stride) for each in size)
        down, across = np.meshgrid(
            np.arange(rows) * (size[0] // rows),
            np.arange(columns) * (size[1] // columns),
            indexing="ij",
        )
        shifts = np.stack([across, down, across, down], -1).reshape(-1, 1, 4)
        made.append((shifts + base).reshape(-1, 4))
    return np.concatenate(made)


def _retina_count(size: tuple[int, int]) -> int:
    return 9 * sum(-(-size[0] // each) * -(-size[1] // each) for each in _RETINA_STRIDES)


def apply_deltas(
    anchors: Array, deltas: Array, weights: tuple[float, float, float, float]
) -> npt.NDArray[np.float64]:
    """Move and stretch default boxes, as torchvision's coder does; all as corners.

    Parameters
    ----------
    anchors : ndarray of shape (N, 4)
    deltas : ndarray of shape (N, 4)
        Of x, y, width and height.
    weights : tuple of float
        By which the deltas are divided.
    """
    sizes = anchors[:, 2:] - anchors[:, :2]
    moved = deltas.astype(np.float64) / np.array(weights)
    with np.errstate(over="ignore", invalid="ignore"):
        centres = anchors[:, :2] + sizes / 2 + moved[:, :2] * sizes
        half = np.exp(np.minimum(moved[:, 2:], _GROWTH)) * sizes / 2
    return np.concatenate([centres - half, centres + half], 1)


class _Anchored(Reading):
    options: ClassVar[tuple[Option, ...]] = BOX_OPTIONS
    reason: ClassVar[str] = ""
    weights: ClassVar[tuple[float, float, float, float]] = (1, 1, 1, 1)

    def count_fits(self, count: int, size: tuple[int, int]) -> bool:
        """Return whether there are as many default boxes for an input."""
        raise NotImplementedError

    def anchors(self, size: tuple[int, int], count: int) -> Array | None:
        """Return the default boxes for an input, as corners in pixels."""
        raise NotImplementedError

    def score(self, scores: Array) -> tuple[Array, Array | None]:
        """Return scores from 0 to 1 and the classes that they are of.

        The classes are None where the scores are of every class.
        """
        raise NotImplementedError

    def find(self, ends: Ends) -> tuple[int, int] | None:
        """Return the places of scores and deltas."""
        size = ends.size
        if size is None:
            return None
        for place, deltas in enumerate(ends.outputs):
            shape = deltas.shape
            if len(shape) != 3 or shape[2] != 4 or not self.count_fits(shape[1], size):
                continue
            for other, scores in enumerate(ends.outputs):
                if other != place and scores.shape[:2] == shape[:2] and len(scores.shape) == 3:
                    return other, place
        return None

    @override
    def fits(self, ends: Ends) -> Fit:
        found = self.find(ends)
        if found is None:
            return Fit(0, self.reason)
        _, boxes, classes = ends.outputs[found[0]].shape
        return Fit(0.95, f"two outputs have {classes} scores and deltas of {boxes} boxes")

    @override
    def read(self, context: ReadingContext) -> Boxes:
        found, size = self.find(context.ends), context.ends.size
        if found is None or size is None:
            raise MeaningError(self.reason)
        scores, deltas = (context.of_sample(place) for place in found)
        anchors = self.anchors(size, len(deltas))
        if anchors is None:
            raise MeaningError(self.reason)
        corners = apply_deltas(anchors, deltas, self.weights)
        names = class_names(scores.shape[1], context.labels, context.text("names"))
        sure, classes = self.score(scores)
        return select_boxes(context, corners, sure, classes=classes, names=names)[0]


@register_reading
class Ssd(_Anchored):
    """Scores (N, 8732, classes), 0 for background, and deltas (N, 8732, 4)."""

    name: ClassVar[str] = "ssd"
    title: ClassVar[str] = "Boxes: SSD of torchvision"
    reason: ClassVar[str] = (
        "no two outputs have scores and deltas of as many boxes as SSD300 or SSDLite320"
    )
    weights: ClassVar[tuple[float, float, float, float]] = (10, 10, 5, 5)

    @override
    def count_fits(self, count: int, size: tuple[int, int]) -> bool:
        return count in {8732, 3234}

    @override
    def anchors(self, size: tuple[int, int], count: int) -> Array | None:
        return ssd_boxes(size, count)

    @override
    def score(self, scores: Array) -> tuple[Array, Array | None]:
        sure = softmax(scores)[:, 1:]
        return sure.max(1), sure.argmax(1) + 1


@register_reading
class RetinaNet(_Anchored):
    """Scores (N, boxes, classes) and deltas (N, boxes, 4), nine boxes for each cell."""

    name: ClassVar[str] = "retinanet"
    title: ClassVar[str] = "Boxes: RetinaNet of torchvision"
    reason: ClassVar[str] = (
        "no two outputs have scores and deltas of nine boxes for each cell at strides 8 to 128"
    )

    @override
    def count_fits(self, count: int, size: tuple[int, int]) -> bool:
        return count == _retina_count(size)

    @override
    def anchors(self, size: tuple[int, int], count: int) -> Array | None:
        return retina_anchors(size)

    @override
    def score(self, scores: Array) -> tuple[Array, Array | None]:
        return probabilities(scores), None
