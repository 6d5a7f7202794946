"""A number or a movement for each pixel: depth, disparity, optical flow."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from typing_extensions import override

from engine.meanings.registry import Fit, Option, OutputReading, register_reading
from engine.meanings.results import Field, FlowField

if TYPE_CHECKING:
    from engine.meanings.ends import Ends, OutputEnd
    from engine.meanings.registry import ReadingContext
    from engine.values import Array

__all__ = ["Depth", "Flow"]

_BEHIND: Final = 8  # operators in which a result is compared with the greatest around it


@register_reading
class Depth(OutputReading):
    """Depth or disparity: (N, 1, H, W) or (N, H, W)."""

    name: ClassVar[str] = "depth"
    title: ClassVar[str] = "Depth"
    options: ClassVar[tuple[Option, ...]] = (
        Option(
            "range", "Colours", "choice", "least … greatest",
            "Which values have the ends of the colours",
            ("least … greatest", "1 … 99 %", "0 … greatest"),
        ),
    )  # fmt: skip

    @override
    def fits_output(self, output: OutputEnd, ends: Ends) -> Fit:
        shape, size = output.shape, ends.size
        planes = shape[:1] + shape[2:] if len(shape) == 4 and shape[1] == 1 else shape
        if len(planes) != 3 or not output.is_real or size is None:
            return Fit(0, "no output has one number for each pixel of an input picture")
        height, width = planes[1:]
        if (
            not (height and width)
            or size[0] / height != size[1] / width
            or height * 4 < size[0]
        ):
            return Fit(0, "no output has one number for each pixel of the input picture")
        reason = "an output has one number for each pixel"
        if ends.integers and ends.picture is not None:
            return Fit(0.4, f"{reason}, but a text asks for it")
        if output.ends_with("where") and output.ends_with("eq", among=_BEHIND):
            return Fit(0.3, f"{reason}, but only peaks are kept, as of key points")
        if output.ends_with("sigmoid", "hardsigmoid"):
            return Fit(0.4, f"{reason}, from 0 to 1")
        score = 0.7 if len(shape) == 3 or output.ends_with("relu", "softplus") else 0.5
        return Fit(score, reason)

    @override
    def read_output(self, values: Array, output: OutputEnd, context: ReadingContext) -> Field:
        plane = values[0] if values.ndim == 3 else values
        finite = plane[np.isfinite(plane)]
        if not finite.size:
            return Field(plane.astype(np.float32), 0.0, 1.0, "no number is finite")
        low, high = float(finite.min()), float(finite.max())
        if context.text("range") == "1 … 99 %":
            low, high = (float(each) for each in np.percentile(finite, [1, 99]))
        elif context.text("range") == "0 … greatest":
            low = min(0.0, low)
        return Field(plane.astype(np.float32), low, high)


@register_reading
class Flow(OutputReading):
    """Optical flow: (N, 2, H, W), to the right and down."""

    name: ClassVar[str] = "flow"
    title: ClassVar[str] = "Optical flow"

    @override
    def fits_output(self, output: OutputEnd, ends: Ends) -> Fit:
        shape = output.shape
        if len(shape) != 4 or shape[1] != 2 or not output.is_real or min(shape[2:]) < 2:
            return Fit(0, "no output has two numbers for each pixel")
        pictures = [each for each in ends.inputs if len(each) == 4 and each[1] in {1, 3}]
        two = len(pictures) >= 2 or any(
            len(each) == 4 and each[1] in {2, 6} for each in ends.inputs
        )
        if two:
            return Fit(0.9, "two pictures give two numbers for each pixel")
        return Fit(0.2, "an output has two numbers for each pixel, but there is one picture")

    @override
    def read_output(
        self, values: Array, output: OutputEnd, context: ReadingContext
    ) -> FlowField:
        moved = values.astype(np.float32)
        speeds = np.hypot(moved[0], moved[1])
        finite = speeds[np.isfinite(speeds)]
        most, mean = (
            (float(finite.max()), float(finite.mean(dtype=np.float64)))
            if finite.size
            else (0.0, 0.0)
        )
        note = "the hue is the direction, red to the right, and the strength the speed"
        return FlowField(moved, most, mean, note)
