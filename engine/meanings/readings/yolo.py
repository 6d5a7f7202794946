"""Heads of YOLOv5 to v11: decoded boxes, raw maps, masks and key points."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from typing_extensions import override

from engine.errors import MeaningError
from engine.meanings.boxes import BOX_OPTIONS, corners_of, select_boxes, turned_corners
from engine.meanings.names import BODY
from engine.meanings.registry import Fit, Option, Reading, register_reading
from engine.meanings.scores import probabilities, sigmoid, softmax

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.meanings.ends import Ends, OutputEnd
    from engine.meanings.registry import ReadingContext
    from engine.meanings.results import Boxes
    from engine.values import Array

__all__ = [
    "YoloAnchors",
    "YoloEndToEnd",
    "YoloFree",
    "YoloFreeMaps",
    "YoloMaps",
    "YoloPose",
    "YoloTurned",
]

_STRIDES: Final = (8, 16, 32, 64)
# Sizes of the anchors of YOLOv5, in pixels, by stride.
_ANCHORS: Final = {
    8: ((10, 13), (16, 30), (33, 23)),
    16: ((30, 61), (62, 45), (59, 119)),
    32: ((116, 90), (156, 198), (373, 326)),
}
_BINS: Final = 16  # by which YOLOv8 and later describe the distance of an edge
_POSE: Final = 4 + 1 + 3 * len(BODY)
_PROTOTYPES: Final = 32
_DOTA: Final = 15  # classes of the data set that turned boxes are trained on
_FEWEST: Final = 64  # boxes of a dense head
_POSITIVE: Final = 0.99  # share of sizes


def _cells(size: tuple[int, int], strides: Sequence[int]) -> int:
    return sum(-(-size[0] // stride) * -(-size[1] // stride) for stride in strides)


def _dense_counts(ends: Ends) -> dict[int, int]:
    """Return how many boxes a head has by how many each cell has: 1, or 3 with anchors."""
    size = ends.size
    if size is None:
        return {}
    return {
        each * _cells(size, _STRIDES[:levels]): each for each in (1, 3) for levels in (3, 4)
    }


def _place(ends: Ends, rank: int, test: Callable[[tuple[int, ...]], bool]) -> int | None:
    """Return the place of the first real output of a rank that passes a test."""
    for place, output in enumerate(ends.outputs):
        if output.is_real and len(output.shape) == rank and test(output.shape):
            return place
    return None


def _maps_by_size(outputs: Sequence[OutputEnd], size: tuple[int, int]) -> dict[int, int]:
    """Return the places of maps by their stride; empty if they are no pyramid."""
    found: dict[int, int] = {}
    for place, output in enumerate(outputs):
        height, width = output.shape[2:4]
        stride = size[0] // height if height else 0
        if stride in _STRIDES and (height * stride, width * stride) == size:
            found.setdefault(stride, place)
    return found if len(found) >= 2 else {}


def _grid(height: int, width: int) -> Array:
    """Return x and y of each cell, shape (height, width, 2)."""
    rows, columns = np.meshgrid(np.arange(height), np.arange(width), indexing="ij")
    return np.stack([columns, rows], -1).astype(np.float64)


class _Yolo(Reading):
    options: ClassVar[tuple[Option, ...]] = BOX_OPTIONS


class _YoloHead(_Yolo):
    """A head that is one output; subclasses say how well one fits, and what its numbers are.

    Attributes
    ----------
    missing : str
        Why none fits, where there is none.
    """

    missing: ClassVar[str] = ""

    def find(self, ends: Ends) -> tuple[int | None, bool]:
        """Return the place of the output; whether its size is that of the input's cells."""
        return _find_free(ends)

    def fit_head(self, output: OutputEnd, ends: Ends, *, known: bool) -> Fit | None:
        """Return how well an output fits; None if it does not."""
        raise NotImplementedError

    def read_head(self, values: Array, context: ReadingContext) -> Boxes:
        """Read what the output has for the sample."""
        raise NotImplementedError

    @override
    def fits(self, ends: Ends) -> Fit:
        place, known = self.find(ends)
        fit = None
        if place is not None:
            fit = self.fit_head(ends.outputs[place], ends, known=known)
        return fit or Fit(0, self.missing)

    @override
    def read(self, context: ReadingContext) -> Boxes:
        place, _ = self.find(context.ends)
        if place is None or not self.fits(context.ends).score:
            raise MeaningError(self.missing)
        return self.read_head(context.of_sample(place), context)


@register_reading
class YoloAnchors(_YoloHead):
    """(N, boxes, 5 + classes): centre, size, objectness and classes."""

    name: ClassVar[str] = "yolov5"
    title: ClassVar[str] = "Boxes: YOLOv5, v6, v7, YOLOX"
    options: ClassVar[tuple[Option, ...]] = (
        *BOX_OPTIONS,
        Option(
            "grid", "Grid", "choice", "automatic",
            "Whether boxes are in pixels, or about the cells of the grid (YOLOX). Automatic: "
            "about the cells where sizes are negative, as logarithms are",
            ("automatic", "pixels", "YOLOX"),
        ),
    )  # fmt: skip

    missing: ClassVar[str] = "no output has boxes with objectness for the cells of the input"

    @override
    def find(self, ends: Ends) -> tuple[int | None, bool]:
        counts = _dense_counts(ends)
        place = _place(ends, 3, lambda shape: shape[1] in counts and shape[2] > 5)
        if place is not None:
            return place, True
        return _place(ends, 3, lambda shape: shape[1] >= _FEWEST and shape[2] == 85), False

    @override
    def fit_head(self, output: OutputEnd, ends: Ends, *, known: bool) -> Fit:
        _, boxes, numbers = output.shape
        reason = f"an output has {boxes} boxes with objectness and {numbers - 5} classes"
        return Fit(0.95 if known else 0.8, reason)

    @override
    def read_head(self, values: Array, context: ReadingContext) -> Boxes:
        rows, how = values, context.text("grid")
        cells = _one_per_cell(context.ends, len(rows))
        if cells is None and how == "YOLOX":
            raise MeaningError("the output does not have one box for each cell of the input")
        if cells is None or how == "pixels" or (how == "automatic" and _has_pixels(rows)):
            return _read_anchored(context, rows)
        spread = rows.astype(np.float64)
        with np.errstate(over="ignore"):
            spread[:, 2:4] = np.exp(spread[:, 2:4]) * cells[:, 2:]
        spread[:, :2] = (spread[:, :2] + cells[:, :2]) * cells[:, 2:]
        return _read_anchored(context, spread, "decoded from the grid, as YOLOX does")


def _one_per_cell(ends: Ends, count: int) -> Array | None:
    """Return column, row and stride of the cell of each box; None without one box per cell."""
    size = ends.size
    for levels in (3, 4) if size is not None else ():
        if size is None or _cells(size, _STRIDES[:levels]) != count:
            continue
        made = []
        for stride in _STRIDES[:levels]:
            grid = _grid(-(-size[0] // stride), -(-size[1] // stride)).reshape(-1, 2)
            made.append(np.concatenate([grid, np.full((len(grid), 1), stride)], 1))
        return np.concatenate(made)
    return None


def _has_pixels(rows: Array) -> bool:
    """Whether sizes are in pixels: then all are positive, unlike logarithms."""
    return bool((rows[:, 2:4] > 0).mean() > _POSITIVE)


def _read_anchored(context: ReadingContext, rows: Array, note: str = "") -> Boxes:
    scores = probabilities(rows[:, 4:])
    corners = corners_of(rows[:, :4])
    return select_boxes(context, corners, scores[:, 1:] * scores[:, :1], note=note)[0]


@register_reading
class YoloMaps(_Yolo):
    """Raw maps, one per stride: (N, 3·(5 + classes), h, w) or (N, 3, h, w, 5 + classes)."""

    name: ClassVar[str] = "yolov5-maps"
    title: ClassVar[str] = "Boxes: YOLOv5 raw maps"

    def _find(self, ends: Ends) -> dict[int, int]:
        size = ends.size
        if size is None:
            return {}
        flat, split = [], []
        for output in ends.outputs:
            shape = output.shape
            if len(shape) == 4 and shape[1] % 3 == 0 and shape[1] > 15:
                flat.append(output)
            elif len(shape) == 5 and shape[1] == 3 and shape[4] > 5:
                split.append(output)
        cut = [
            output.__class__(output.name, (*output.shape[:2], *output.shape[2:4]))
            for output in split
        ]
        wanted = flat or cut
        if len({output.shape[1] for output in wanted}) != 1:
            return {}
        names = {output.name: place for place, output in enumerate(ends.outputs)}
        found = _maps_by_size(wanted, size)
        return {
            stride: names[wanted[place].name]
            for stride, place in found.items()
            if stride in _ANCHORS
        }

    @override
    def fits(self, ends: Ends) -> Fit:
        found = self._find(ends)
        if not found:
            return Fit(0, "no outputs are maps of three boxes per cell at strides 8, 16 and 32")
        shape = ends.outputs[next(iter(found.values()))].shape
        classes = (shape[4] if len(shape) == 5 else shape[1] // 3) - 5
        score = 0.9 if classes == 80 or len(shape) == 5 else 0.6
        if len(found) < sum(len(output.shape) == len(shape) for output in ends.outputs):
            score = 0.3  # maps of something else, such as of objectness alone
        return Fit(score, f"{len(found)} outputs are maps of 3 boxes, {classes} classes each")

    @override
    def read(self, context: ReadingContext) -> Boxes:
        found = self._find(context.ends)
        if not found:
            raise MeaningError(self.fits(context.ends).reason)
        parts = []
        for stride, place in sorted(found.items()):
            values = context.of_sample(place)
            if values.ndim == 3:
                values = values.reshape(3, -1, *values.shape[1:]).transpose(0, 2, 3, 1)
            height, width = values.shape[1:3]
            sure = sigmoid(values)
            anchors = np.array(_ANCHORS[stride], np.float64)[:, np.newaxis, np.newaxis]
            sure[..., :2] = (2 * sure[..., :2] - 0.5 + _grid(height, width)) * stride
            sure[..., 2:4] = (2 * sure[..., 2:4]) ** 2 * anchors
            parts.append(sure.reshape(-1, sure.shape[-1]))
        return _read_anchored(context, np.concatenate(parts))


def _find_free(ends: Ends) -> tuple[int | None, bool]:
    """Return the place of an anchor-free head, (N, 4 + classes, boxes); whether it is sure."""
    counts = {count for count, each in _dense_counts(ends).items() if each == 1}
    place = _place(ends, 3, lambda shape: shape[2] in counts and 4 < shape[1] < shape[2])
    if place is not None:
        return place, True
    known = (84, _POSE, 84 + _PROTOTYPES)
    return _place(ends, 3, lambda shape: shape[2] >= _FEWEST and shape[1] in known), False


def _prototypes(ends: Ends) -> int | None:
    """Return the place of the prototypes of masks."""
    size = ends.size
    return _place(
        ends, 4, lambda s: s[1] == _PROTOTYPES and (size is None or size[0] == 4 * s[2])
    )


@register_reading
class YoloFree(_YoloHead):
    """(N, 4 + classes, boxes), and 32 more with the prototypes of masks."""

    name: ClassVar[str] = "yolov8"
    title: ClassVar[str] = "Boxes: YOLOv8, v9, v11"

    missing: ClassVar[str] = "no output has one box with classes for each cell of the input"

    @override
    def fit_head(self, output: OutputEnd, ends: Ends, *, known: bool) -> Fit:
        _, numbers, boxes = output.shape
        masks = _prototypes(ends) is not None and numbers > 4 + _PROTOTYPES
        classes = numbers - 4 - _PROTOTYPES * masks
        score = 0.95 if known else 0.8
        if numbers == _POSE:
            score -= 0.1  # rather key points
        if _is_turned(output.pieces):
            score = 0.3
        with_masks = " and masks" if masks else ""
        return Fit(score, f"an output has {boxes} boxes with {classes} classes{with_masks}")

    @override
    def read_head(self, values: Array, context: ReadingContext) -> Boxes:
        rows = values.T
        prototypes = _prototypes(context.ends)
        count = rows.shape[1] - 4
        if prototypes is not None and count > _PROTOTYPES:
            count -= _PROTOTYPES
        boxes, kept = select_boxes(
            context, corners_of(rows[:, :4]), probabilities(rows[:, 4 : 4 + count])
        )
        if prototypes is None or count == rows.shape[1] - 4:
            return boxes
        return _with_masks(boxes, rows[kept, 4 + count :], context.of_sample(prototypes))


def _with_masks(boxes: Boxes, weights: Array, prototypes: Array) -> Boxes:
    """Add the masks: weighted sums of prototypes that are positive, cut to the boxes."""
    height, width = prototypes.shape[1:]
    flat = prototypes.reshape(len(prototypes), -1).astype(np.float32)
    masks = (weights.astype(np.float32) @ flat > 0).reshape(-1, height, width)
    scale = np.array([width / boxes.size[1], height / boxes.size[0]] * 2)
    left, top, right, bottom = (boxes.corners * scale).T[:, :, np.newaxis, np.newaxis]
    rows, columns = np.arange(height)[:, np.newaxis], np.arange(width)
    inside = (columns >= left) & (columns < right) & (rows >= top) & (rows < bottom)
    return replace(boxes, masks=masks & inside)


@register_reading
class YoloPose(_YoloHead):
    """(N, 4 + 1 + 3 · points, boxes): persons and their key points."""

    name: ClassVar[str] = "yolov8-pose"
    title: ClassVar[str] = "Key points: YOLO pose"

    missing: ClassVar[str] = "no output has boxes with one class and key points"

    @override
    def fit_head(self, output: OutputEnd, ends: Ends, *, known: bool) -> Fit | None:
        numbers, pieces = output.shape[1], output.pieces
        if (numbers - 5) % 3 or numbers < 8:
            return None
        joined = pieces[:2] == (4, 1) and pieces[2:] == (numbers - 5,)
        score = 0.95 if joined or (numbers == _POSE and known) else 0.3
        if numbers == _POSE and not known:
            score = 0.9
        return Fit(score, f"an output has persons with {(numbers - 5) // 3} key points")

    @override
    def read_head(self, values: Array, context: ReadingContext) -> Boxes:
        rows = values.T
        boxes, kept = select_boxes(
            context, corners_of(rows[:, :4]), probabilities(rows[:, 4:5]), names=("person",)
        )
        count = (rows.shape[1] - 5) // 3
        points = rows[kept, 5:].reshape(len(kept), count, 3).astype(np.float64)
        points[..., 2] = probabilities(points[..., 2])
        return replace(boxes, points=points)


def _is_turned(pieces: tuple[int, ...]) -> bool:
    """Whether an output joins boxes, classes and one more number, the angle."""
    return len(pieces) == 3 and pieces[0] == 4 and pieces[2] == 1


@register_reading
class YoloTurned(_YoloHead):
    """(N, 4 + classes + 1, boxes): centre, size, classes and an angle in radians."""

    name: ClassVar[str] = "yolov8-obb"
    title: ClassVar[str] = "Turned boxes: YOLO OBB"

    missing: ClassVar[str] = "no output has boxes with classes and an angle"

    @override
    def fit_head(self, output: OutputEnd, ends: Ends, *, known: bool) -> Fit | None:
        numbers = output.shape[1]
        if numbers < 6:
            return None
        reason = f"an output has boxes with {numbers - 5} classes and an angle"
        if _is_turned(output.pieces):
            return Fit(0.95 if known else 0.8, reason)
        return Fit(0.4 if numbers == 4 + _DOTA + 1 else 0.1, reason)

    @override
    def read_head(self, values: Array, context: ReadingContext) -> Boxes:
        rows = values.T.astype(np.float64)
        turned = np.concatenate([rows[:, :4], rows[:, -1:]], 1)
        around = turned_corners(turned)
        corners = np.concatenate([around.min(1), around.max(1)], 1)
        scores = probabilities(rows[:, 4:-1])
        return select_boxes(context, corners, scores, turned=turned)[0]


@register_reading
class YoloFreeMaps(_Yolo):
    """Raw maps, one per stride: (N, 64 + classes, h, w), distances of edges in 16 bins."""

    name: ClassVar[str] = "yolov8-maps"
    title: ClassVar[str] = "Boxes: YOLOv8 raw maps"

    def _find(self, ends: Ends) -> dict[int, int]:
        size = ends.size
        outputs = [
            each for each in ends.outputs if len(each.shape) == 4 and each.shape[1] > 4 * _BINS
        ]
        if size is None or len({each.shape[1] for each in outputs}) != 1:
            return {}
        places = [place for place, each in enumerate(ends.outputs) if each in outputs]
        found = _maps_by_size(outputs, size)
        return {stride: places[place] for stride, place in found.items()}

    @override
    def fits(self, ends: Ends) -> Fit:
        found = self._find(ends)
        if not found:
            return Fit(0, "no outputs are maps of 64 bins and classes at strides 8, 16 and 32")
        classes = ends.outputs[next(iter(found.values()))].shape[1] - 4 * _BINS
        score = 0.9 if classes == 80 else 0.55
        return Fit(score, f"{len(found)} outputs are maps of edges and {classes} classes")

    @override
    def read(self, context: ReadingContext) -> Boxes:
        found = self._find(context.ends)
        if not found:
            raise MeaningError(self.fits(context.ends).reason)
        corners, scores = [], []
        for stride, place in sorted(found.items()):
            values = np.moveaxis(context.of_sample(place), 0, 2)
            height, width = values.shape[:2]
            bins = values[..., : 4 * _BINS].reshape(height, width, 4, _BINS)
            left, top, right, bottom = np.moveaxis(softmax(bins) @ np.arange(_BINS), 2, 0)
            x, y = np.moveaxis(_grid(height, width) + 0.5, 2, 0)
            edges = np.stack([x - left, y - top, x + right, y + bottom], -1) * stride
            corners.append(edges.reshape(-1, 4))
            scores.append(sigmoid(values[..., 4 * _BINS :]).reshape(height * width, -1))
        return select_boxes(context, np.concatenate(corners), np.concatenate(scores))[0]


@register_reading
class YoloEndToEnd(_YoloHead):
    """(N, boxes, 6): corners, score and class, without suppression."""

    name: ClassVar[str] = "yolov10"
    title: ClassVar[str] = "Boxes: YOLOv10, end to end"

    missing: ClassVar[str] = "no output has rows of corners, score and class"

    @override
    def find(self, ends: Ends) -> tuple[int | None, bool]:
        place = _place(ends, 3, lambda shape: shape[2] == 6 and 1 <= shape[1] <= 1000)
        return place, ends.size is not None

    @override
    def fit_head(self, output: OutputEnd, ends: Ends, *, known: bool) -> Fit:
        boxes = output.shape[1]
        reason = f"an output has {boxes} rows of corners, score and class"
        if not known:
            return Fit(0.3, f"{reason}, but no input is a picture")
        return Fit(0.9 if boxes in {100, 300} else 0.5, reason)

    @override
    def read_head(self, values: Array, context: ReadingContext) -> Boxes:
        rows = values.astype(np.float64)
        classes = np.nan_to_num(rows[:, 5], posinf=0, neginf=0).astype(np.int64)
        return select_boxes(
            context, rows[:, :4], rows[:, 4], classes=classes, suppresses=False,
            note="the model suppresses overlapping boxes itself",
        )[0]  # fmt: skip
