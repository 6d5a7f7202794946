"""torchvision's SSD, RetinaNet and FCOS: class scores and box deltas about default boxes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from typing_extensions import override

from engine.errors import MeaningError
from engine.meanings.boxes import BOX_OPTIONS, select_boxes
from engine.meanings.names import class_names
from engine.meanings.registry import Fit, Reading, register_reading
from engine.meanings.scores import probabilities, sigmoid, softmax

if TYPE_CHECKING:
    import numpy.typing as npt

    from engine.meanings.ends import Ends
    from engine.meanings.registry import Option, ReadingContext
    from engine.meanings.results import Boxes
    from engine.values import Array

__all__ = ["Fcos", "RetinaNet", "Ssd", "apply_deltas", "retina_anchors", "ssd_boxes"]

_GROWTH: Final = math.log(
    1000 / 16
)  # the most that a default box grows, as torchvision bounds it
_RETINA_SIDES: Final = (32, 64, 128, 256, 512)
_STRIDES: Final = (8, 16, 32, 64, 128)  # of the pyramids of RetinaNet and FCOS
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
    for side, stride in zip(_RETINA_SIDES, _STRIDES, strict=True):
        scales = np.array([side, int(side * 2 ** (1 / 3)), int(side * 2 ** (2 / 3))])
        high = np.sqrt(np.array([0.5, 1.0, 2.0]))
        wides = (1 / high[:, np.newaxis] * scales).reshape(-1)
        highs = (high[:, np.newaxis] * scales).reshape(-1)
        base = np.round(np.stack([-wides, -highs, wides, highs], 1) / 2)
        corners = np.tile(_corners(size, stride), 2)[:, np.newaxis]
        made.append((corners + base).reshape(-1, 4))
    return np.concatenate(made)


def _corners(size: tuple[int, int], stride: int) -> npt.NDArray[np.int64]:
    """Return x and y of the upper left corner of each cell, row by row."""
    rows, columns = (-(-each // stride) for each in size)
    down, across = np.meshgrid(
        np.arange(rows) * (size[0] // rows),
        np.arange(columns) * (size[1] // columns),
        indexing="ij",
    )
    return np.stack([across, down], -1).reshape(-1, 2)


def _cells(size: tuple[int, int]) -> int:
    return sum(-(-size[0] // each) * -(-size[1] // each) for each in _STRIDES)


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
        return count == 9 * _cells(size)

    @override
    def anchors(self, size: tuple[int, int], count: int) -> Array | None:
        return retina_anchors(size)

    @override
    def score(self, scores: Array) -> tuple[Array, Array | None]:
        return probabilities(scores), None


@register_reading
class Fcos(Reading):
    """Scores (N, cells, classes), edges (N, cells, 4) and centreness (N, cells, 1)."""

    name: ClassVar[str] = "fcos"
    title: ClassVar[str] = "Boxes: FCOS of torchvision"
    options: ClassVar[tuple[Option, ...]] = BOX_OPTIONS
    _missing: ClassVar[str] = (
        "no three outputs have scores, edges and centreness for each cell at strides 8 to 128"
    )

    def _find(self, ends: Ends) -> tuple[int, int, int] | None:
        """Return the places of scores, edges and centreness."""
        size = ends.size
        if size is None:
            return None
        of_cells = {
            place: output.shape[2]
            for place, output in enumerate(ends.outputs)
            if len(output.shape) == 3 and output.shape[1] == _cells(size)
        }
        edges = [place for place, numbers in of_cells.items() if numbers == 4]
        centreness = [place for place, numbers in of_cells.items() if numbers == 1]
        if len(of_cells) != 3 or not edges or not centreness:
            return None
        (scores,) = of_cells.keys() - {edges[-1], centreness[-1]}
        return scores, edges[-1], centreness[-1]

    @override
    def fits(self, ends: Ends) -> Fit:
        found = self._find(ends)
        if found is None:
            return Fit(0, self._missing)
        _, cells, classes = ends.outputs[found[0]].shape
        return Fit(
            0.95, f"outputs have {classes} scores, edges and centreness of {cells} cells"
        )

    @override
    def read(self, context: ReadingContext) -> Boxes:
        found, size = self._find(context.ends), context.ends.size
        if found is None or size is None:
            raise MeaningError(self._missing)
        scores, edges, centreness = (context.of_sample(place) for place in found)
        made = [(_corners(size, stride), stride) for stride in _STRIDES]
        centres = np.concatenate([corners for corners, _ in made]).astype(np.float64)
        strides = np.repeat([stride for _, stride in made], [len(each) for each, _ in made])
        far = edges.astype(np.float64) * strides[:, np.newaxis]
        corners = np.concatenate([centres - far[:, :2], centres + far[:, 2:]], 1)
        sure = np.sqrt(sigmoid(scores) * sigmoid(centreness))
        return select_boxes(context, corners, sure)[0]
