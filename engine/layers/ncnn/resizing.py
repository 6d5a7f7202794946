"""Padding and resizing of images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from typing_extensions import override

from engine.errors import LayerError, ParameterError, describe_shapes
from engine.layers.layer import Layer, OperatorCall
from engine.layers.ncnn.expression import evaluate_sizes
from engine.layers.ncnn.table import layer
from engine.layers.padding import pad
from engine.layers.resampling import interpolate
from engine.memory_bound import require_memory
from engine.ncnn.types import Params
from engine.values import Array

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Interp", "Padding"]

_MODES: Final = {0: "constant", 1: "replicate", 2: "reflect"}
_LARGEST: Final = 1 << 15
_NEAREST, _BILINEAR, _BICUBIC = 1, 2, 3


@layer("Padding")
class Padding(Layer):
    """Put a border around an image.

    Parameters
    ----------
    **given
        Parameters of ncnn, and optionally one padding value per channel.
    """

    def __init__(self, call: OperatorCall, **given: Any) -> None:
        params = Params(call.params)
        names = ("top", "bottom", "left", "right", "front", "behind")
        self.sides = {name: params.integer(name) for name in names}
        if not all(0 <= size <= _LARGEST for size in self.sides.values()):
            raise ParameterError(
                "top", f"a border of {tuple(self.sides.values())} is out of range"
            )
        kind = params.integer("type")
        if kind not in _MODES:
            raise ParameterError("type", f"type={kind} is not a border of ncnn")
        self.mode, self.value = _MODES[kind], params.number("value")
        self.values = call.attributes.get("per_channel_pad")

    def _pads(self, ndim: int) -> tuple[int, ...]:
        sides = self.sides
        pairs = (("left", "right"), ("top", "bottom"), ("front", "behind"))
        used, unused = pairs[: min(ndim, 3)], pairs[min(ndim, 3) :]
        if any(sides[name] for pair in unused for name in pair):
            raise LayerError(f"a border of more axes than the {ndim} of the image")
        return tuple(sides[name] for pair in used for name in pair)

    @override
    def forward(self, input: Array) -> Array:
        pads = self._pads(input.ndim)
        if not any(pads):
            return input
        if self.mode == "reflect" and any(
            size <= max(pads[2 * place : 2 * place + 2])
            for place, size in enumerate(input.shape[::-1][: len(pads) // 2])
        ):
            raise LayerError(
                f"the border {pads} is wider than {describe_shapes([input.shape])}"
            )
        if self.values is None:
            return pad(input, pads, self.mode, self.value if self.mode == "constant" else None)
        if self.mode != "constant" or any(pads[4:]) or len(self.values) != input.shape[0]:
            raise LayerError(f"{len(self.values)} numbers do not fit the channels")
        padded = pad(input, pads, value=0)
        inside = pad(np.ones(input.shape, np.bool_), pads, value=False)
        values = self.values.reshape(-1, *(1,) * (input.ndim - 1)).astype(np.float32)
        return np.where(inside, padded, values)


@layer("Interp")
class Interp(Layer):
    """Resize an image.

    Parameters
    ----------
    **given
        Parameters of ncnn.
    """

    def __init__(self, call: OperatorCall, **given: Any) -> None:
        params = Params(call.params)
        self.kind = params.integer("resize_type")
        if self.kind not in {_NEAREST, _BILINEAR, _BICUBIC}:
            raise ParameterError("resize_type", f"resize_type={self.kind} is unknown")
        self.size = params.integer("output_height"), params.integer("output_width")
        self.scale = params.number("height_scale", 1.0), params.number("width_scale", 1.0)
        self.aligns = bool(params.integer("align_corner"))
        self.is_dynamic = bool(params.integer("dynamic_target_size"))
        self.expression = str(call.params.get("size_expr", ""))
        if not all(0 <= size <= _LARGEST for size in self.size):
            raise ParameterError("output_height", f"{self.size} is not a size of an image")
        if not all(0 < scale <= _LARGEST for scale in self.scale):
            raise ParameterError("height_scale", f"{self.scale} is not a scale of an image")

    @property
    def mode(self) -> str:
        """PyTorch's name of the kind."""
        return {_NEAREST: "nearest", _BILINEAR: "bilinear"}.get(self.kind, "bicubic")

    def _find_target_sizes(self, inputs: tuple[Array, ...]) -> tuple[int, int]:
        x = inputs[0]
        if self.expression:
            sizes = evaluate_sizes(self.expression, [array.shape for array in inputs])
            if len(sizes) not in {1, 2}:
                raise LayerError(f"{len(sizes)} sizes do not fit an image")
            return (sizes[1] if len(sizes) == 2 else x.shape[-2]), sizes[0]
        if self.is_dynamic:
            if len(inputs) != 2 or inputs[1].ndim < 2:
                raise LayerError("the operand with the wanted size is missing")
            return inputs[1].shape[-2], inputs[1].shape[-1]
        rows, columns = x.shape[-2:] if x.ndim > 1 else (1, 1)
        height, width = self.size
        return (
            height or int(np.float32(rows) * np.float32(self.scale[0])),
            width or int(np.float32(columns) * np.float32(self.scale[1])),
        )

    @override
    def forward(self, *inputs: Array) -> Array:
        x = inputs[0]
        height, width = self._find_target_sizes(inputs)
        if not (1 <= height <= _LARGEST and 1 <= width <= _LARGEST):
            raise LayerError(f"{height}×{width} is not a size of an image")
        if x.ndim == 1:
            require_memory((x.size, height, width), x.dtype)
            column = x[:, np.newaxis, np.newaxis]
            return np.ascontiguousarray(np.broadcast_to(column, (x.size, height, width)))
        if x.ndim > 3:
            raise LayerError(f"{describe_shapes([x.shape])} is not an image")
        if self.kind == _BICUBIC and min(x.shape[-1], x.shape[-2] if x.ndim == 3 else 4) < 4:
            raise LayerError(f"{describe_shapes([x.shape])} is too small for bicubic")
        target = (height, width) if x.ndim == 3 else (width,)
        if x.shape[1:] == target:
            return x
        batch = x[np.newaxis]
        if self.kind == _NEAREST:
            require_memory((x.shape[0], *target), x.dtype)
            for axis, places in enumerate(self.nearest_places(x.shape[1:], target), 1):
                x = np.take(x, places, axis)
            return x
        image = batch if x.ndim == 3 else batch[:, :, np.newaxis]
        sizes = target if x.ndim == 3 else (1, *target)
        scales = self.scales_of(len(sizes))
        result = interpolate(image, sizes, scales, self.mode, self.aligns)[0]
        return np.asarray(result if x.ndim == 3 else result[:, 0])

    def scales_of(self, rank: int) -> tuple[float, ...] | None:
        """Return the scale of each axis behind the channels; None where a size is wanted.

        Positions are those of the scale, as in PyTorch, also where the size is rounded. ncnn
        does so since autumn 2026; before, only for nearest.
        """
        if self.size[1] or self.expression or self.is_dynamic:
            return None
        return tuple(float(np.float32(scale)) for scale in self.scale[-rank:])

    def nearest_places(self, sizes: Sequence[int], target: Sequence[int]) -> list[Array]:
        """Return which position each result repeats, for each axis behind the channels.

        Parameters
        ----------
        sizes, target : sequence of int
            Of the image and the result.
        """
        found = []
        scales = self.scales_of(len(target)) or (None,) * len(target)
        for size, count, scale in zip(sizes, target, scales, strict=True):
            wanted = scale is None
            step = np.float32(size) / np.float32(count) if wanted else 1 / np.float32(scale)
            places = (np.arange(count, dtype=np.float32) * step).astype(np.int64)
            found.append(np.minimum(places, size - 1))
        return found
