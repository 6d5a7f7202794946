"""YOLOv5's detection head, which pnnx can keep as one operator (``moduleop``)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from typing_extensions import override

from engine.errors import InferStatus, LayerError, ParameterError, describe_shapes
from engine.layers.activations import sigmoid
from engine.layers.convolution import Convolution
from engine.layers.layer import Layer
from engine.layers.registry import register
from engine.values import Array

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Detect"]

_BOX: Final = 5  # x, y, w, h and the score that there is an object


@dataclass(frozen=True, slots=True)
class _Level:
    """One resolution of the head.

    Attributes
    ----------
    convolution : Convolution
        C to A * (5 + classes) channels, window 1.
    stride : float
        Pixels of the model's input per cell.
    grid, anchors : ndarray of shape (1, A, H, W, 2)
        Cell coordinates (column, row), and width and height of the anchors in pixels.
    """

    convolution: Convolution
    stride: float
    grid: Array
    anchors: Array


@register("models.yolo.Detect")
class Detect(Layer):
    """YOLOv5's ``models.yolo.Detect``, exported with its constants.

    For each level: convolve by 1x1 to A anchors times (5 + classes), take the sigmoid s, and

    ``xy = (s * 2 - 0.5 + grid) * stride``, ``wh = (s * 2) ** 2 * anchor_grid``;

    score and classes stay unchanged. The result is one list of the boxes of all levels. From
    YOLOv5 6.1 on the exported grid already contains the -0.5; its first cell shows it.

    Parameters
    ----------
    m.0.weight, m.0.bias, m.1.weight, ... : ndarray
        The convolutions.
    pnnx_0, pnnx_1, ... : ndarray
        The constants: the strides (levels,), and for each level a grid and an anchor grid of
        shape (1, A, H, W, 2). They are recognised by shape and content: a grid differs from
        cell to cell, an anchor grid does not. Both are extended for other input sizes.
    """

    def __init__(self, **attributes: Array) -> None:
        count = sum(bool(re.fullmatch(r"m_\d+_weight", name)) for name in attributes)
        self._convolutions = []
        for level in range(count):
            weight = attributes.get(f"m_{level}_weight")
            if weight is None:
                raise ParameterError("weight", f"attribute m.{level}.weight is missing")
            self._convolutions.append(Convolution(weight, attributes.get(f"m_{level}_bias")))
        constants = {k: v for k, v in attributes.items() if re.fullmatch(r"pnnx_\d+", k)}
        self._strides = _find_strides(constants, count)
        self._pairs = _find_pairs(constants, self._strides)
        self._levels: tuple[_Level, ...] = ()

    @override
    def forward(self, *inputs: Array) -> Array:
        if len(inputs) != len(self._convolutions):
            raise LayerError(
                f"{len(inputs)} inputs were given for {len(self._convolutions)} levels",
                InferStatus.kInferArraySizeMismatch,
            )
        if not self._levels:  # lazy, because it reads the constants
            self._levels = tuple(
                _Level(convolution, float(stride), *_order_pair(*pair))
                for convolution, stride, pair in zip(
                    self._convolutions, np.asarray(self._strides), self._pairs, strict=True
                )
            )
        boxes = [
            _decode_boxes(level, image)
            for level, image in zip(self._levels, inputs, strict=True)
        ]
        return np.concatenate(boxes, axis=1)


def _number(name: str) -> int:
    return int(name.rpartition("_")[2])


def _find_strides(constants: Mapping[str, Array], levels: int) -> Array:
    for array in constants.values():
        if levels and array.shape == (levels,):
            return array
    raise ParameterError("strides", f"no pnnx_* attribute holds {levels} strides")


def _find_pairs(constants: Mapping[str, Array], strides: Array) -> list[tuple[Array, Array]]:
    """Two constants of the same shape for each level, in level order.

    Finer levels have smaller strides, and larger grids.
    """
    by_cells: dict[tuple[int, ...], list[Array]] = {}
    for name in sorted(constants, key=_number):
        array = constants[name]
        if array.ndim == 5 and array.shape[-1] == 2:
            by_cells.setdefault(array.shape, []).append(array)
    found = [by_cells[shape] for shape in sorted(by_cells, key=_count_cells, reverse=True)]
    if len(found) != strides.size or any(len(arrays) != 2 for arrays in found):
        raise ParameterError(
            "grids",
            f"the pnnx_* attributes hold no grid and anchor grid of shape 1×A×H×W×2 for each "
            f"of {strides.size} levels",
        )
    pairs: list[Any] = [()] * strides.size
    for (first, second), level in zip(found, np.argsort(np.asarray(strides)), strict=True):
        pairs[level] = (first, second)
    return pairs


def _count_cells(shape: tuple[int, ...]) -> int:
    return shape[2] * shape[3]


def _order_pair(first: Array, second: Array) -> tuple[Array, Array]:
    """Order a pair as grid, anchor grid.

    A grid of one cell is ambiguous. pnnx writes the anchor grid first in that case.
    """
    if np.all(first == first[:, :, :1, :1]):
        return np.asarray(second), np.asarray(first)
    return np.asarray(first), np.asarray(second)


def _decode_boxes(level: _Level, image: Array) -> Array:
    """Boxes of one level; (N, A * H * W, 5 + classes)."""
    if image.ndim != 4:
        raise LayerError(f"a level has shape {describe_shapes([image.shape])}, not N×C×H×W")
    scores = sigmoid(level.convolution.forward(image))
    samples, channels, rows, columns = scores.shape
    anchors = level.anchors.shape[1]
    if channels % anchors or channels // anchors < _BOX:
        raise LayerError(f"{channels} channels do not hold boxes of {anchors} anchors")
    boxes = scores.reshape(samples, anchors, channels // anchors, rows, columns)
    boxes = np.ascontiguousarray(boxes.transpose(0, 1, 3, 4, 2))
    grid, anchor_grid = _extend_grids(level, rows, columns)
    offset = 0.0 if level.grid[0, 0, 0, 0, 0] < 0 else -0.5
    boxes[..., 0:2] = (boxes[..., 0:2] * 2 + offset + grid) * boxes.dtype.type(level.stride)
    boxes[..., 2:4] = (boxes[..., 2:4] * 2) ** 2 * anchor_grid
    return boxes.reshape(samples, -1, channels // anchors)


def _extend_grids(level: _Level, rows: int, columns: int) -> tuple[Array, Array]:
    """Return grid and anchor grid for a number of cells; the exported ones if they fit."""
    if level.grid.shape[2:4] == (rows, columns):
        return level.grid, level.anchors
    cells = np.stack(np.meshgrid(np.arange(columns), np.arange(rows)), axis=-1)
    grid = cells.astype(level.grid.dtype) + level.grid[:, :, :1, :1]
    return grid, level.anchors[:, :, :1, :1]
