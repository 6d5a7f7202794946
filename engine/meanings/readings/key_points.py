"""Key points from maps of where each point is."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from typing_extensions import override

from engine.meanings.names import BODY
from engine.meanings.registry import Fit, Option, OutputReading, register_reading
from engine.meanings.results import KeyPoints

if TYPE_CHECKING:
    from engine.meanings.ends import Ends, OutputEnd
    from engine.meanings.registry import ReadingContext
    from engine.values import Array

__all__ = ["HeatMaps", "has_limbs"]

_COUNTS: Final = frozenset({16, 17, 21, 68, 98, 133})  # bodies, hands and faces
_MOST_POINTS: Final = 512
_FEWEST_LIMBS: Final = 8


@register_reading
class HeatMaps(OutputReading):
    """(N, points, H, W): the greatest value of each map is a point."""

    name: ClassVar[str] = "heatmaps"
    title: ClassVar[str] = "Key points: heat maps"
    options: ClassVar[tuple[Option, ...]] = (
        Option(
            "refine", "Between cells", "choice", "a quarter",
            "Move a point by a quarter of a cell to the greater neighbour, as the papers do",
            ("a quarter", "no"),
        ),
    )  # fmt: skip

    @override
    def fits_output(self, output: OutputEnd, ends: Ends) -> Fit:
        shape, size = output.shape, ends.size
        if len(shape) != 4 or not output.is_real or size is None or min(shape[2:]) < 8:
            return Fit(0, "no output has maps over an input picture")
        if not 2 <= shape[1] <= _MOST_POINTS or size[0] * shape[3] != size[1] * shape[2]:
            return Fit(0, "no output has a map for each of some points")
        if has_limbs(output, ends):
            reason = "an output has two numbers for each limb, and another one maps of points"
            points = min(ends.outputs, key=lambda each: each.shape[1]) is output
            return Fit(0.7 if points else 0.2, reason)
        smaller = size[0] / shape[2]
        known = shape[1] in _COUNTS and smaller in {2, 4}
        body = shape[1] == len(BODY)
        score = 0.85 if known and body else 0.65 if known and shape[1] != 21 else 0.25
        return Fit(score, f"an output has {shape[1]} maps of {shape[3]}×{shape[2]} cells")

    @override
    def read_output(
        self, values: Array, output: OutputEnd, context: ReadingContext
    ) -> KeyPoints:
        count, height, width = values.shape
        maps = np.where(np.isfinite(values), values, -np.inf).astype(np.float64)
        best = maps.reshape(count, -1).argmax(1)
        rows, columns = np.divmod(best, width)
        points = np.stack([columns, rows, maps.reshape(count, -1).max(1)], 1).astype(np.float64)
        if context.text("refine") != "no":
            _refine(points, maps)
        tall, wide = context.ends.size or (height, width)
        points[:, 0] = (points[:, 0] + 0.5) * wide / width
        points[:, 1] = (points[:, 1] + 0.5) * tall / height
        names = BODY if count == len(BODY) else context.labels
        if len(names) != count:
            names = tuple(f"point {place}" for place in range(count))
        return KeyPoints(points, names, (tall, wide))


def has_limbs(output: OutputEnd, ends: Ends) -> bool:
    """Whether one output has vectors of limbs and the other maps of points, as of OpenPose."""
    shapes = [each.shape for each in ends.outputs]
    if len(shapes) != 2 or any(len(shape) != 4 for shape in shapes):
        return False
    few, many = sorted(shape[1] for shape in shapes)
    same_grid = shapes[0][2:] == shapes[1][2:] == output.shape[2:]
    return same_grid and few >= _FEWEST_LIMBS and many == 2 * few


def _refine(points: Array, maps: Array) -> None:
    """Move points a quarter of a cell to the greater neighbour; at an edge not."""
    _, height, width = maps.shape
    cells = points[:, :2].astype(np.int64).tolist()
    for place, (x, y) in enumerate(cells):
        if 0 < x < width - 1:
            points[place, 0] += np.sign(maps[place, y, x + 1] - maps[place, y, x - 1]) / 4
        if 0 < y < height - 1:
            points[place, 1] += np.sign(maps[place, y + 1, x] - maps[place, y - 1, x]) / 4
