"""Regions of interest: means of samples of an image, within boxes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.layers.regions import (
    check_boxes,
    find_image,
    place_samples,
    roi_align,
    roi_align_extension,
)
from engine.layers.windows import per_axis
from engine.provenance.arithmetic import add_up, format_index, grid, make_factor, multiply
from engine.provenance.call import NoBreakdownError, Operand, rounding, take
from engine.provenance.records import Breakdown, Interval
from engine.provenance.table import explains, locates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from engine.layers.regions import Samples
    from engine.provenance.call import Call
    from engine.provenance.records import Box
    from engine.values import Array

__all__ = [
    "ALIGNED",
    "boxes_of",
    "explain_aligned",
    "locate_aligned",
    "samples_of",
    "shares_of_part",
]

ALIGNED: Final = (roi_align, roi_align_extension)
_MOST_BOXES: Final = 1 << 12  # that are looked at for a region; more count as all


def boxes_of(call: Call) -> tuple[Array, Operand | None]:
    """Return the boxes as rows of five numbers, and the operand that has them."""
    given = call.arguments["rois" if call.layer_code is roi_align_extension else "boxes"]
    operand = given if isinstance(given, Operand) else None
    input: Any = call.array("input")  # only its shape counts
    return check_boxes(input, given if operand is None else operand.value), operand


def samples_of(call: Call, roi: Array) -> tuple[Samples, Samples]:
    """Return where a box reads along rows and columns."""
    given = call.arguments
    if call.layer_code is roi_align_extension:
        counts = (int(given["pooled_height"]), int(given["pooled_width"]))
    else:
        counts = (call.shape[2], call.shape[3])
    return place_samples(
        roi,
        call.array("input").shape,
        per_axis("output_size", counts, 2),
        given["spatial_scale"],
        given["sampling_ratio"],
        given["aligned"],
    )


def shares_of_part(
    samples: Samples, part: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
    """Return the pixels of a part along an axis, and their shares of its mean."""
    pixels = np.concatenate([samples.lower[part], samples.upper[part]])
    shares = np.concatenate([samples.rest[part], samples.share[part]]).astype(np.float64)
    if not pixels.size:
        return np.zeros(0, np.int64), np.zeros(0)
    first = int(pixels.min())
    sums = np.bincount(pixels - first, shares) / samples.lower.shape[1]
    used = np.flatnonzero(sums)
    return used + first, sums[used]


@explains(*ALIGNED)
def explain_aligned(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum the pixels of a part of a box, times their shares of its samples."""
    number, channel, *parts = index
    boxes, _ = boxes_of(call)
    input: Any = call.array("input")
    image = find_image(boxes[number], input.shape[0])
    axes = [
        shares_of_part(samples, part)
        for samples, part in zip(samples_of(call, boxes[number]), parts, strict=True)
    ]
    (rows, of_rows), (columns, of_columns) = axes
    x = take(input, "input", grid([image], [channel], rows, columns))
    shares = make_factor("weight", np.multiply.outer(of_rows, of_columns).reshape(-1))
    terms = multiply([x, shares], (len(rows), len(columns)), ("row", "column"))
    corners = ", ".join([f"{float(each):.4g}" for each in boxes[number][1:]])
    formula = (
        f"y{format_index(index)} = Σ weight · {x.name}[{image}, {channel}, …] in part "
        f"({parts[0]}, {parts[1]}) of box {number}, ({corners})"
    )
    found = add_up(call, formula, terms)
    # A rounded position moves the weights of its neighbours.
    sizes = input.shape[2:]
    unit = 8 * rounding(np.dtype(np.float32)) * (2 + max(sizes))
    more = unit * float(np.abs(x.values).max(initial=0.0))
    return Breakdown(found.kind, formula, terms, found.total, found.error + more)


@locates(*ALIGNED)
def locate_aligned(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the boxes, and the pixels that they read in this run."""
    input: Any = call.array("input")
    boxes, operand = boxes_of(call)
    if not operand:  # a list of boxes has no element of its own
        raise NoBreakdownError("boxes in a list are not followed")
    numbers = range(box[0].start, box[0].stop)
    if len(numbers) > _MOST_BOXES:
        return {each.name: each.whole for each in call.arrays}
    reached: list[Sequence[int]] = []
    for number in numbers:
        image = find_image(boxes[number], input.shape[0])
        spans = []
        for samples, part in zip(samples_of(call, boxes[number]), box[2:], strict=True):
            chosen = slice(part.start, part.stop)
            lower, upper = samples.lower[chosen], samples.upper[chosen]
            if lower.size:
                spans += [int(lower.min()), int(upper.max()) + 1]
        if len(spans) == 4:
            reached.append((image, image + 1, *spans))
    found: dict[str, Box] = {operand.name: (box[0], operand.whole[1])}
    if reached:
        ends = np.array(reached)
        first, last = ends[:, 0::2].min(axis=0), ends[:, 1::2].max(axis=0)
        images, rows, columns = (
            Interval(int(low), int(high)) for low, high in zip(first, last, strict=True)
        )
        found[input.name] = (images, box[1], rows, columns)
    return found
