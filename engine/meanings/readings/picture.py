"""Pictures that a model makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from typing_extensions import override

from engine.meanings.registry import Fit, Option, OutputReading, register_reading
from engine.meanings.results import Picture

if TYPE_CHECKING:
    from engine.meanings.ends import Ends, OutputEnd
    from engine.meanings.registry import ReadingContext
    from engine.values import Array

__all__ = ["MadePicture"]

_RANGES: Final = {"0 … 1": (0.0, 1.0), "-1 … 1": (-1.0, 1.0), "0 … 255": (0.0, 255.0)}
_SLACK: Final = 0.25  # by how much of a range values may pass its ends
_SHARE: Final = 0.02  # of the values may lie farther out


@register_reading
class MadePicture(OutputReading):
    """A picture of one channel or in colour: super-resolution, denoising, diffusion."""

    name: ClassVar[str] = "picture"
    title: ClassVar[str] = "Picture"
    options: ClassVar[tuple[Option, ...]] = (
        Option(
            "range", "Range", "choice", "automatic", "Values of black and white",
            ("automatic", *_RANGES, "least … greatest"),
        ),
        Option("order", "Channels", "choice", "RGB", "Order of the colours", ("RGB", "BGR")),
    )  # fmt: skip

    @override
    def fits_output(self, output: OutputEnd, ends: Ends) -> Fit:
        shape, picture = output.shape, ends.picture
        if len(shape) != 4 or shape[1] not in {1, 3, 4} or min(shape[2:]) < 8:
            return Fit(0, "no output has one, three or four channels")
        if output.ends_with("softmax", "log_softmax"):
            return Fit(0.1, "an output has as many channels as a picture, but after a softmax")
        reason = f"an output has {shape[1]} channels and {shape[3]}×{shape[2]} pixels"
        if picture is None:
            # A decoder or generator makes a picture of features; maps of a detector are small.
            return Fit(0.6 if shape[1] == 3 and min(shape[2:]) >= 32 else 0.3, reason)
        larger = shape[2] / picture[2]
        if shape[1] == picture[1] and larger == shape[3] / picture[3] and larger >= 1:
            return Fit(0.9 if shape[1] == 3 or larger > 1 else 0.7, f"{reason}, as the input")
        if shape[1] == 3 and larger >= 1:
            return Fit(0.7, reason)
        return Fit(0.3, reason)

    @override
    def read_output(self, values: Array, output: OutputEnd, context: ReadingContext) -> Picture:
        planes = values[:3] if len(values) >= 3 else values[:1]
        planes = planes.astype(np.float64)
        if context.text("order") == "BGR":
            planes = planes[::-1]
        low, high = _find_range(planes, context.text("range"))
        bounded = np.nan_to_num((planes - low) / ((high - low) or 1.0), posinf=1.0, neginf=0.0)
        shades = np.round(np.clip(bounded, 0, 1) * 255).astype(np.uint8)
        pixels = np.broadcast_to(np.moveaxis(shades, 0, 2), (*shades.shape[1:], 3))
        note = "the first three of four channels" if len(values) == 4 else ""
        return Picture(np.ascontiguousarray(pixels), low, high, _scale(output, context), note)


def _find_range(planes: Array, wanted: str) -> tuple[float, float]:
    """Return what is black and what is white."""
    if wanted in _RANGES:
        return _RANGES[wanted]
    finite = planes[np.isfinite(planes)]
    if not finite.size:
        return 0.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    if wanted == "automatic":
        for black, white in _RANGES.values():
            slack = _SLACK * (white - black)
            outside = (finite < black - slack) | (finite > white + slack)
            # Values that use little of a range have another one.
            if outside.mean() <= _SHARE and high - low > (white - black) / 16:
                return black, white
    return low, high


def _scale(output: OutputEnd, context: ReadingContext) -> tuple[int, int] | None:
    size = context.ends.size
    if size is None or any(
        own % side for own, side in zip(output.shape[2:], size, strict=True)
    ):
        return None
    return output.shape[2] // size[0], output.shape[3] // size[1]
