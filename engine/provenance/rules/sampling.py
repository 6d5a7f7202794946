"""Positions that are computed: images sampled on a grid, and windows that are added up."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.layers.folding import fold, fold_windows
from engine.layers.grid_sampling import affine_grid, find_neighbours, grid_sample
from engine.provenance.arithmetic import add_up, format_index, grid, make_factor, multiply
from engine.provenance.call import rounding, take
from engine.provenance.records import Breakdown, Interval
from engine.provenance.rules.windows import AxisReads, Spreading, read_box
from engine.provenance.table import explains, locates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.layers.grid_sampling import Neighbour
    from engine.provenance.call import Call
    from engine.provenance.records import Box
    from engine.values import Array

__all__ = [
    "explain_affine_grid",
    "explain_fold",
    "explain_sampled",
    "fold_reads",
    "locate_affine_grid",
    "locate_fold",
    "locate_sampled",
    "neighbours_of",
]

_MOST_POSITIONS: Final = 1 << 18  # that are looked at for a region; more count as all


def neighbours_of(call: Call, positions: Array) -> list[list[Neighbour]]:
    """Return the pixels that positions of shape (P, axes) are sampled from."""
    given = call.arguments
    return find_neighbours(
        call.array("input").shape[2:],
        positions,
        given["mode"],
        given["padding_mode"],
        align_corners=bool(given["align_corners"]),
    )


@locates(grid_sample)
def locate_sampled(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the positions, and the pixels that they lead to in this run."""
    image, positions = call.array("input"), call.array("grid")
    chosen = (box[0], *box[2:], positions.whole[-1])
    found: dict[str, Box] = {positions.name: chosen}
    pixels = image.whole[2:]
    count = math.prod([each.stop - each.start for each in (box[0], *box[2:])])
    if count <= _MOST_POSITIONS:
        part = positions.value[tuple([slice(each.start, each.stop) for each in chosen])]
        reached = []
        for axis in neighbours_of(call, part.reshape(-1, part.shape[-1])):
            places = [
                np.broadcast_to(each.place, each.inside.shape)[each.inside] for each in axis
            ]
            both = np.concatenate([each.reshape(-1) for each in places])
            if not both.size:
                return found
            reached.append(Interval(int(both.min()), int(both.max()) + 1))
        pixels = tuple(reached)
    if image.name in found:  # one operand may be both
        return {image.name: image.whole}
    found[image.name] = (*box[:2], *pixels)
    return found


@explains(grid_sample)
def explain_sampled(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum the pixels beside a position, times their weights."""
    image, positions = call.array("input"), call.array("grid")
    sample, channel, *place = index
    position = positions.value[(sample, *place)]
    axes = neighbours_of(call, position[np.newaxis])
    combinations = list(itertools.product(*axes))
    at, shares = [], []
    for combination in combinations:
        inside = all(bool(np.all(each.inside)) for each in combination)
        pixel = [int(np.ravel(each.place)[0]) if inside else -1 for each in combination]
        at.append([sample if inside else -1, channel if inside else -1, *pixel])
        shares.append(math.prod([float(np.ravel(each.share)[0]) for each in combination]))
    x = take(image, "input", np.array(at, np.int64))
    counts = [len(each) for each in axes]
    terms = multiply(
        [x, make_factor("weight", np.array(shares))],
        counts,
        ("plane", "row", "column")[-len(counts) :],
    )
    spot = ", ".join([f"{float(each):.4g}" for each in position[::-1]])
    formula = (
        f"y{format_index(index)} = Σ weight · {x.name}[{sample}, {channel}, …] at "
        f"({spot}) from {positions.name}{format_index([sample, *place])}"
    )
    found = add_up(call, formula, terms)
    # A rounded position moves the weights of its neighbours.
    sizes = image.shape[2:]
    unit = 8 * rounding(np.dtype(np.float32)) * (2 + max(sizes)) * len(sizes)
    reach = 1 + float(np.abs(position).max()) if position.size else 1.0
    more = unit * reach * float(np.abs(x.values).sum()) if len(combinations) > 1 else 0.0
    return Breakdown(
        found.kind, formula, terms, found.total,
        found.error + more if math.isfinite(more) else math.inf,
    )  # fmt: skip


@locates(affine_grid)
def locate_affine_grid(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the rows of the maps."""
    theta = call.array("theta")
    return {theta.name: (box[0], box[-1], theta.whole[2])}


@explains(affine_grid)
def explain_affine_grid(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum a row of the map times the position in the image."""
    theta, sizes = call.array("theta"), call.shape[1:-1]
    sample, *place, row = index
    position = []
    for at, count in zip(reversed(place), reversed(sizes), strict=True):
        step = (2 * at + 1) / count - 1
        if call.arguments["align_corners"]:
            step = 2 * at / (count - 1) - 1 if count > 1 else 0.0
        position.append(step)
    maps = take(theta, "theta", grid([sample], [row], range(len(position) + 1)))
    factor = make_factor("position", np.array([*position, 1.0]))
    formula = (
        f"y{format_index(index)} = Σ {maps.name}[{sample}, {row}, k] · "
        f"({', '.join([f'{each:.4g}' for each in position])}, 1)[k]"
    )
    return add_up(call, formula, multiply([maps, factor], (len(position) + 1,), ("term",)))


def fold_reads(call: Call) -> list[AxisReads]:
    """Return which windows an image of added windows consists of, by axis."""
    given = call.arguments
    windows, counts = fold_windows(
        given["output_size"], given["kernel_size"], given["dilation"], given["padding"],
        given["stride"],
    )  # fmt: skip
    axes = zip(
        counts, windows.kernel, windows.stride, windows.dilation, windows.padding, strict=True
    )
    return [Spreading(count, k, s, d, p[0]) for count, k, s, d, p in axes]


@locates(fold)
def locate_fold(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the windows that reach a region, in all of their positions."""
    input, reads = call.array("input"), fold_reads(call)
    window = read_box(reads, box[-2:])
    if window is None:
        return {}
    channel, taps = box[-3], math.prod([_taps_of(each) for each in reads])
    rows = Interval(channel.start * taps, channel.stop * taps)
    columns = reads[1].size
    first = window[0].start * columns + window[1].start
    last = (window[0].stop - 1) * columns + window[1].stop
    return {input.name: (*box[:-3], rows, Interval(first, last))}


def _taps_of(axis: AxisReads) -> int:
    return int(axis.positions(np.zeros(1, np.int64)).shape[1])


@explains(fold)
def explain_fold(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum the elements that windows have at a position."""
    input, reads = call.array("input"), fold_reads(call)
    *lead, channel, row, column = index
    taps = [_taps_of(each) for each in reads]
    places = [
        axis.positions(np.array([place]))[0]
        for axis, place in zip(reads, (row, column), strict=True)
    ]
    at: list[Sequence[int]] = []
    for i, j in itertools.product(*map(range, taps)):
        window = places[0][i], places[1][j]
        if min(window) >= 0:
            number = (channel * taps[0] + i) * taps[1] + j
            at.append([*lead, number, int(window[0]) * reads[1].size + int(window[1])])
    indices = np.array(at, np.int64).reshape(len(at), input.ndim)
    x: Any = take(input, "input", indices)
    formula = f"y{format_index(index)} = Σ {x.name} over {len(at)} windows"
    return add_up(call, formula, multiply([x], (len(at),), ("window",)))
