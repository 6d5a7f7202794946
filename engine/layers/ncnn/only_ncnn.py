"""Layers that only ncnn computes, with checks of what they would read or write beyond.

ncnn trusts its operands here. The sizes follow its sources (a4d2ea1, July 2026).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from typing_extensions import override

from engine.errors import LayerError, ParameterError, describe_shapes
from engine.layers.layer import LibraryLayer, OperatorCall
from engine.layers.ncnn.table import LARGEST, layer, require_weights
from engine.memory_bound import require_memory
from engine.ncnn.types import UNSET, Params

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.values import Array

__all__ = ["OnlyNcnn"]

_FLOAT: Final = np.dtype(np.float32)
_BOX: Final = 5  # numbers of a box besides its classes: a corner, two sides, a score
_ANCHORS: Final = 9  # of Proposal: three shapes at three scales


class OnlyNcnn(LibraryLayer):
    """A layer that only ncnn computes.

    Parameters
    ----------
    call : OperatorCall
    **given
        Parameters and weights of ncnn.
    """

    def __init__(self, call: OperatorCall, **given: Any) -> None:
        super().__init__("NumPy has no code for this type of ncnn; choose the backend ncnn")
        self.params = Params(call.params)

    def require_operands(self, *operands: Array) -> None:
        """Check the operands before ncnn gets them.

        Raises
        ------
        LayerError
            If ncnn would read or write beyond an array.
        """

    def _require_counts(self, *names: str) -> None:
        for name in names:
            if not 0 <= self.params.integer(name) <= LARGEST:
                raise ParameterError(name, "it is out of range")


def _refuse(what: str, *operands: Array) -> LayerError:
    return LayerError(f"{what}: {describe_shapes([array.shape for array in operands])}")


def _require_flat(*operands: Array) -> None:
    """Check for operands without a gap between channels."""
    if any(array.ndim > 2 for array in operands):
        raise _refuse("rows are needed", *operands)


@layer("SPP")
class SpatialPyramidPooling(OnlyNcnn):
    """Pool at several scales; ncnn makes room for two channels, whatever the image has."""

    @override
    def require_operands(self, *operands: Array) -> None:
        raise LayerError("ncnn writes beyond the result of an SPP")


@layer("PriorBox")
class PriorBox(OnlyNcnn):
    """Boxes of several shapes around each position of an image."""

    @override
    def require_operands(self, *operands: Array) -> None:
        least, most, shapes = (
            self.params.array(name) for name in ("min_sizes", "max_sizes", "aspect_ratios")
        )
        if not least or len(most) not in {0, len(least)}:
            raise ParameterError("min_sizes", "there must be as many as max_sizes")
        unknown = UNSET in (
            self.params.integer("image_width"), self.params.integer("image_height")
        )  # fmt: skip
        if len(operands) < 2 and (most or not unknown or not shapes):
            raise LayerError("the image is missing")
        counts = len(least) * (1 + 2 * len(shapes)) + len(most) + len(shapes)
        require_memory((*operands[0].shape[-2:], counts, 8), _FLOAT)


@layer("DetectionOutput")
class DetectionOutput(OnlyNcnn):
    """Boxes from locations, confidences and priors, without overlapping ones."""

    @override
    def require_operands(self, *operands: Array) -> None:
        _require_flat(*operands)
        location, confidence, priors = operands[:3]
        classes = self.params.integer("num_class")
        if classes == UNSET:  # as MXNet: a row of each class and of each prior
            count, classes = priors.shape[0] if priors.ndim == 2 else 1, confidence.shape[0]
            sizes = priors.size, location.size, confidence.size
        else:
            count = priors.shape[-1] // 4
            if priors.ndim != 2 or len(priors) < 2:
                raise _refuse("the priors need boxes and variances", priors)
            sizes = priors.shape[1], location.size, confidence.size
        if classes < 1 or any(
            size < wanted * count for size, wanted in zip(sizes, (4, 4, classes), strict=True)
        ):
            raise _refuse(f"the operands are not of {count} boxes", *operands)
        self._require_counts("nms_top_k", "keep_top_k")


@layer("Proposal")
class Proposal(OnlyNcnn):
    """Boxes of a region proposal network."""

    @override
    def require_operands(self, *operands: Array) -> None:
        scores, moves, image = operands
        if (
            scores.ndim != 3
            or moves.ndim != 3
            or scores.shape[1:] != moves.shape[1:]
            or len(scores) < 2 * _ANCHORS
            or len(moves) < 4 * _ANCHORS
            or image.size < 3
            or image.ndim > 2
        ):
            raise _refuse(f"the operands are not of {_ANCHORS} anchors", *operands)
        self._require_counts("pre_nms_topN", "after_nms_topN")


@layer("YoloDetectionOutput", "Yolov3DetectionOutput")
class YoloDetectionOutput(OnlyNcnn):
    """Boxes of YOLO heads, without overlapping ones."""

    _counts: ClassVar[tuple[int, int]] = (20, 5)  # ncnn's defaults

    def __init__(self, call: OperatorCall, **given: Any) -> None:
        super().__init__(call, **given)
        self._masked = "v3" in call.type

    @override
    def require_operands(self, *operands: Array) -> None:
        classes, boxes = (
            self.params.integer(name, default)
            for name, default in zip(("num_class", "num_box"), self._counts, strict=True)
        )
        if not (1 <= boxes <= LARGEST and 1 <= classes <= LARGEST):
            raise ParameterError("num_box", f"{boxes} boxes of {classes} classes")
        sides = self.params.array("biases")
        used: Sequence[float] = range(boxes)
        if self._masked:
            used = self.params.array("mask")
            scales = self.params.array("anchors_scale")
            if len(used) < boxes * len(operands) or len(scales) < len(operands):
                raise ParameterError("mask", "it is too short for the operands")
        if not all(0 <= 2 * int(place) + 1 < len(sides) for place in used):
            raise ParameterError("biases", f"{len(sides)} are too few")
        for array in operands:
            if array.ndim != 3 or len(array) != boxes * (classes + _BOX):
                raise _refuse(f"it is not of {boxes} boxes of {classes} classes", array)


@layer("Requantize")
class Requantize(OnlyNcnn):
    """Numbers in int32 to int8, by a scale of each row or channel."""

    def __init__(self, call: OperatorCall, **given: Any) -> None:
        super().__init__(call, **given)
        require_weights(call)

    @override
    def require_operands(self, *operands: Array) -> None:
        (array,) = operands
        count = len(array) if array.ndim > 1 else 1
        for name in ("scale_in_data_size", "scale_out_data_size", "bias_data_size"):
            size = self.params.integer(name, 0 if name.startswith("bias") else 1)
            if 1 < size < count:
                raise ParameterError(name, f"{size} numbers do not fit {count} channels")


class _Windowed(OnlyNcnn):
    """Base of the transforms of windows."""

    def __init__(self, call: OperatorCall, **given: Any) -> None:
        super().__init__(call, **given)
        self.size = self.params.integer("n_fft")
        self.hop = self.params.integer("hoplen", self.size // 4)
        length = self.params.integer("winlen", self.size)
        if not 1 <= length <= self.size <= LARGEST or not 1 <= self.hop <= LARGEST:
            raise ParameterError(
                "n_fft", f"windows of {length} of {self.size} every {self.hop}"
            )
        if not 0 <= self.params.integer("window_type") <= 2:
            raise ParameterError("window_type", "it is unknown")
        self.is_centred = self.params.integer("center", 1) == 1


@layer("Spectrogram")
class Spectrogram(_Windowed):
    """Frequencies of overlapping windows of a signal."""

    @override
    def require_operands(self, *operands: Array) -> None:
        (signal,) = operands
        border = self.size // 2 if self.is_centred else 0
        mirrored = self.params.integer("pad_type", 2) == 2
        frames = (signal.size + 2 * border - self.size) // self.hop + 1
        if signal.ndim != 1 or frames < 1 or (mirrored and border >= signal.size):
            raise _refuse(f"it is no signal with a window of {self.size}", signal)
        if not 0 <= self.params.integer("power") <= 2:
            raise ParameterError("power", "it is unknown")
        require_memory((self.size, frames, 2), _FLOAT)


@layer("InverseSpectrogram")
class InverseSpectrogram(_Windowed):
    """A signal of the frequencies of its windows."""

    @override
    def require_operands(self, *operands: Array) -> None:
        (array,) = operands
        sizes = {self.size, self.size // 2 + 1}
        if array.ndim != 3 or array.shape[2] != 2 or len(array) not in sizes:
            raise _refuse(f"it has not the frequencies of {self.size} samples", array)
        samples = (array.shape[1] - 1) * self.hop + self.size
        if self.is_centred and array.shape[1] < 2 and self.size % 2 == 0:
            raise _refuse("one window in the middle has no sample", array)
        require_memory((math.prod((samples, 2)),), _FLOAT)
