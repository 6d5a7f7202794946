"""Images that are read at computed positions."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.layers.deformable_convolution import DeformConv2d, deform_conv2d
from engine.layers.grid_sampling import affine_grid, grid_sample
from engine.provenance.back.windows import occupied
from engine.provenance.call import NoBreakdownError
from engine.provenance.rules.deformable import positions_of, read_deformable
from engine.provenance.rules.sampling import neighbours_of
from engine.provenance.slopes import STEP, accumulate, wide
from engine.provenance.table import passes_back

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.provenance.call import Call
    from engine.provenance.rules.deformable import Deformable
    from engine.provenance.slopes import Gradient


@passes_back(grid_sample)
def _sampled(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Give each pixel its share, and each position the slope of what is read there."""
    image, positions = call.array("input"), call.array("grid")
    samples, channels, *sizes = image.shape
    flat = gradient.reshape(samples, channels, -1)
    points = wide(positions).reshape(samples, -1, positions.shape[-1])
    result = np.zeros((samples, channels, int(np.prod(sizes))))
    for sample in range(samples):
        chosen = np.flatnonzero(flat[sample].any(axis=0))
        if not chosen.size:
            continue
        axes = neighbours_of(call, points[sample, chosen])
        for combination in itertools.product(*axes):
            number: Any = 0
            share: Any = 1.0
            for each, size in zip(combination, sizes, strict=True):
                number = number * size + each.place
                share = share * np.where(each.inside, each.share, 0.0)
            number = np.broadcast_to(number, chosen.shape)
            for channel in range(channels):
                np.add.at(
                    result[sample, channel], number, flat[sample, channel, chosen] * share
                )
    found: dict[str, Gradient] = {image.name: result.reshape(image.shape)}
    accumulate(found, positions.name, _by_position(call, gradient))
    return found


def _by_position(call: Call, gradient: Gradient) -> Gradient:
    """Return the gradient by the positions, by quotients of differences."""
    image, positions = call.array("input"), call.array("grid")
    points, pixels = wide(positions), wide(image)
    result = np.zeros(positions.shape)
    for axis in range(positions.shape[-1]):
        step = np.zeros(positions.shape[-1])
        step[axis] = STEP
        ends = []
        for sign in (1.0, -1.0):
            given = {image.name: pixels, positions.name: points + sign * step}
            values: list[Any] = [given[each.name] for each in call.arrays]
            ends.append(np.asarray(call.operator.forward(values)[0], np.float64))
        result[..., axis] = (gradient * (ends[0] - ends[1])).sum(axis=1) / (2 * STEP)
    return result


@passes_back(affine_grid)
def _mapped(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Sum over the positions, times each of them."""
    theta, sizes = call.array("theta"), call.shape[1:-1]
    rank = len(sizes)
    spatial = tuple(range(1, rank + 1))
    lines = []
    for count in reversed(sizes):
        line = np.linspace(-1, 1, count) if count > 1 else np.zeros(count)
        lines.append(line if call.arguments["align_corners"] else line * (count - 1) / count)
    result = np.zeros(theta.shape)
    flowing = gradient.reshape(len(gradient), *sizes, rank)
    for place, line in enumerate(lines):
        axis = rank - place  # x belongs to the last axis
        shape = [1] * flowing.ndim
        shape[axis] = -1
        result[:, :, place] = (flowing * line.reshape(shape)).sum(axis=spatial)
    result[:, :, rank] = flowing.sum(axis=spatial)
    return {theta.name: result}


@passes_back(DeformConv2d, deform_conv2d)
def _deformed(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Spread over the pixels beside each position, the offsets and the mask."""
    given = read_deformable(call)
    found: dict[str, Gradient] = {}
    image, offset, mask = (
        None if each is None else np.zeros(each.shape)
        for each in (given.input, given.offset, given.mask)
    )
    if image is None or offset is None:
        raise NoBreakdownError("an operand is missing")
    rows, columns = occupied(gradient, 2)
    for sample in np.flatnonzero(gradient.any(axis=(1, 2, 3))).tolist():
        _deform_sample(given, gradient, sample, (rows, columns), (image, offset, mask))
    for operand, part in (
        (given.input, image), (given.offset, offset), (given.mask, mask)
    ):  # fmt: skip
        if operand is not None and part is not None:
            accumulate(found, operand.name, part)
    return found


def _deform_sample(
    given: Deformable,
    gradient: Gradient,
    sample: int,
    area: tuple[slice, slice],
    results: tuple[Gradient, Gradient, Gradient | None],
) -> None:
    """Add the gradients of one sample to the results."""
    layer, input = given.layer, given.input
    by_image, by_offset, by_mask = results
    weight = wide(layer.weight)
    outputs, taken = weight.shape[:2]
    taps = layer.windows.tap_count
    flowing = gradient[sample][:, area[0], area[1]].reshape(
        layer.groups, outputs // layer.groups, -1
    )
    kernel = weight.reshape(layer.groups, outputs // layer.groups, taken, taps)
    columns = np.einsum("goct,gop->gctp", kernel, flowing).reshape(-1, taps, flowing.shape[-1])
    places = positions_of(given, sample, *area).reshape(given.offset_groups, taps, 2, -1)
    pixels = wide(input)[sample]
    channels = np.split(np.arange(input.shape[1]), given.offset_groups)
    shape = [part.stop - part.start for part in area]
    for group, own in enumerate(channels):
        for tap in range(taps):
            position = places[group, tap]
            lower = np.floor(position)
            share = position - lower
            number = group * taps + tap
            factor: Any = 1.0
            if given.mask is not None:
                factor = wide(given.mask)[sample, number, area[0], area[1]].reshape(-1)
            values = np.zeros((len(own), position.shape[1]))
            slopes = np.zeros((2, *values.shape))
            for corner in itertools.product((0, 1), repeat=2):
                at = [(lower[axis] + corner[axis]).astype(np.int64) for axis in (0, 1)]
                inside = (at[0] >= 0) & (at[0] < input.shape[2])
                inside &= (at[1] >= 0) & (at[1] < input.shape[3])
                at = [np.where(inside, each, 0) for each in at]
                parts = [share[axis] if corner[axis] else 1 - share[axis] for axis in (0, 1)]
                read = pixels[own][:, at[0], at[1]] * inside
                values += read * parts[0] * parts[1]
                for axis in (0, 1):
                    slopes[axis] += read * parts[1 - axis] * (1 if corner[axis] else -1)
                flow = columns[own, tap] * factor * parts[0] * parts[1] * inside
                for channel, line in zip(own.tolist(), flow, strict=True):
                    np.add.at(by_image[sample, channel], (at[0], at[1]), line)
            for axis in (0, 1):
                flow = (columns[own, tap] * slopes[axis] * factor).sum(axis=0)
                by_offset[sample, 2 * number + axis, area[0], area[1]] += flow.reshape(shape)
            if by_mask is not None:
                flow = (columns[own, tap] * values).sum(axis=0)
                by_mask[sample, number, area[0], area[1]] += flow.reshape(shape)
