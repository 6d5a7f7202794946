"""Windows: poolings and resized images."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.layers.adaptive_pooling import AdaptiveAveragePool, AdaptiveMaxPool
from engine.layers.folding import fold
from engine.layers.ncnn.pooling import Pooling
from engine.layers.pooling import AveragePool, MaxPool, PowerPool, count_taps_inside
from engine.provenance.call import NoBreakdownError
from engine.provenance.rules.pooling import pool_reads
from engine.provenance.rules.resizing import RESIZES, resize_taps
from engine.provenance.rules.sampling import fold_reads
from engine.provenance.slopes import wide
from engine.provenance.table import passes_back

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from engine.provenance.call import Call
    from engine.provenance.rules.windows import AxisReads
    from engine.provenance.slopes import Gradient
    from engine.values import Array

__all__ = ["add_at", "mesh", "occupied", "tap_reads", "taps_of", "within"]


def mesh(places: Sequence[Array]) -> Any:
    """Return an index of positions along the last dimensions."""
    return (..., *np.ix_(*places))


def within(places: Sequence[Any]) -> Any:
    """Return an index into the last dimensions."""
    return (..., *places)


def add_at(result: Array, places: Sequence[Array], part: Array) -> None:
    """Add at positions along the last dimensions, of which some may come more than once."""
    if all(len(np.unique(each)) == len(each) for each in places):
        result[mesh(places)] += part
    else:
        np.add.at(result, mesh(places), part)


def occupied(gradient: Gradient, rank: int) -> tuple[slice, ...]:
    """Return the smallest region along the last dimensions with all that is not zero."""
    places: Array = np.any(gradient, axis=tuple(range(gradient.ndim - rank)))
    found = []
    for axis in range(rank):
        line = np.flatnonzero(
            places.any(axis=tuple(each for each in range(rank) if each != axis))
        )
        found.append(slice(int(line[0]), int(line[-1]) + 1) if line.size else slice(0, 0))
    return tuple(found)


def tap_reads(
    reads: Sequence[AxisReads], area: Sequence[slice], tap: Sequence[int]
) -> tuple[list[Array], list[Array]]:
    """Return the outputs within an area that have a tap, and the positions it reads."""
    sources, targets = [], []
    for axis, part, number in zip(reads, area, tap, strict=True):
        places = axis.positions(np.arange(part.start, part.stop))[:, number]
        inside = np.flatnonzero(places >= 0)
        sources.append(inside)
        targets.append(places[inside])
    return sources, targets


def taps_of(
    reads: Sequence[AxisReads], counts: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], list[Array], list[Array]]]:
    """Yield each tap of a window with its outputs and positions."""
    area = [slice(0, count) for count in counts]
    lengths = [axis.positions(np.zeros(1, np.int64)).shape[1] for axis in reads]
    for tap in itertools.product(*map(range, lengths)):
        yield tap, *tap_reads(reads, area, tap)


@passes_back(MaxPool, AdaptiveMaxPool)
def _largest(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Give the gradient to the element that was chosen, the first of equal ones."""
    if call.place:
        raise NoBreakdownError("the position of an element has no slope")
    given = call.array("input")
    if isinstance(call.layer, Pooling) and call.layer.is_global:
        flat = wide(given).reshape(given.shape[0], -1)
        whole = np.zeros(flat.shape)
        whole[np.arange(len(flat)), flat.argmax(axis=1)] = gradient.reshape(-1)
        return {given.name: whole.reshape(given.shape)}
    reads = pool_reads(call)
    counts = call.shape[-len(reads) :]
    values = wide(given)
    best = np.full(call.shape, -np.inf)
    chosen = np.full(call.shape, -1)
    taps = list(taps_of(reads, counts))
    for number, (_, sources, targets) in enumerate(taps):
        at, read = mesh(sources), values[mesh(targets)]
        better = (read > best[at]) | (chosen[at] < 0)
        best[at] = np.where(better, read, best[at])
        chosen[at] = np.where(better, number, chosen[at])
    result = np.zeros(given.shape)
    for number, (_, sources, targets) in enumerate(taps):
        at = mesh(sources)
        add_at(result, targets, np.where(chosen[at] == number, gradient[at], 0.0))
    return {given.name: result}


@passes_back(AveragePool, AdaptiveAveragePool)
def _averaged(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Share the gradient among the elements of the window."""
    reads, given, layer = pool_reads(call), call.array("input"), call.layer
    rank = len(reads)
    counts, sizes = call.shape[-rank:], given.shape[-rank:]
    divisor: Any = np.ones(())
    for axis, (read, size, count) in enumerate(zip(reads, sizes, counts, strict=True)):
        if isinstance(layer, AveragePool):
            line = count_taps_inside(
                layer.windows, axis, size, count, padded=layer.count_include_pad
            )
        else:
            line = (read.positions(np.arange(count)) >= 0).sum(axis=1)
        divisor = np.multiply.outer(divisor, np.maximum(line, 1))
    if isinstance(layer, AveragePool) and layer.divisor_override is not None:
        divisor = float(layer.divisor_override)
    if isinstance(layer, Pooling) and layer.counts_pad:
        windows = layer.require_shapes(given.shape)
        divisor = divisor if windows is None else float(windows.windows.tap_count)
    shared = gradient / divisor
    result = np.zeros(given.shape)
    for _, sources, targets in taps_of(reads, counts):
        add_at(result, targets, shared[mesh(sources)])
    return {given.name: result}


@passes_back(Pooling)
def _pooled(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Go back through a pooling of ncnn."""
    layer, given = call.layer, call.array("input")
    if not isinstance(layer, Pooling) or layer.kind == 0:
        return _largest(call, gradient)
    if not layer.is_global:
        return _averaged(call, gradient)
    count = np.prod(given.shape[1:])
    shared = gradient.reshape(-1, *(1,) * (given.ndim - 1)) / count
    return {given.name: np.broadcast_to(shared, given.shape).copy()}


@passes_back(PowerPool)
def _powered(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Multiply by the slopes of the root and of the powers."""
    reads, given, layer = pool_reads(call), call.array("input"), call.layer
    if not isinstance(layer, PowerPool):
        raise NoBreakdownError("this is no pooling")
    x, order = wide(given), float(layer.power)
    counts = call.shape[-len(reads) :]
    taps = list(taps_of(reads, counts))
    with np.errstate(all="ignore"):
        powers, slopes = np.power(x, order), order * np.power(x, order - 1)
        sums, inside = np.zeros(call.shape), np.zeros(counts)
        for _, sources, targets in taps:
            sums[mesh(sources)] += powers[mesh(targets)]
            inside[mesh(sources)] += 1
        share = layer.windows.tap_count / np.maximum(inside, 1)
        flowing = gradient * share * np.power(sums * share, 1 / order - 1) / order
    flowing = np.where(np.isfinite(flowing), flowing, 0.0)
    result = np.zeros(given.shape)
    for _, sources, targets in taps:
        add_at(result, targets, flowing[mesh(sources)])
    return {given.name: result * slopes}


@passes_back(fold)
def _unfolded(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Give each window what its positions have."""
    given, reads = call.array("input"), fold_reads(call)
    sizes = [int(axis.positions(np.zeros(1, np.int64)).shape[1]) for axis in reads]
    counts = [axis.size for axis in reads]
    channels = call.shape[-3]
    samples = math.prod(given.shape[:-2])
    columns = np.zeros((samples, channels, math.prod(sizes), *counts))
    flowing = gradient.reshape(samples, channels, *call.shape[-2:])
    for tap, sources, targets in taps_of(reads, call.shape[-2:]):
        part = columns[:, :, tap[0] * sizes[1] + tap[1]]
        part[mesh(targets)] = flowing[mesh(sources)]
    return {given.name: columns.reshape(given.shape)}


@passes_back(*RESIZES)
def _resized(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Give each neighbour its share."""
    (reads, shares), given = resize_taps(call), call.arrays[0]
    result = np.zeros(given.shape)
    for tap, sources, targets in taps_of(reads, call.shape[-len(reads) :]):
        part = gradient[mesh(sources)]
        for axis, (share, number, kept) in enumerate(zip(shares, tap, sources, strict=True)):
            line = share[number, kept]
            part = part * line.reshape([-1 if each == axis else 1 for each in range(len(tap))])
        add_at(result, targets, part)
    return {given.name: result}
