"""Distances and angles between vectors, and cross products."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine.layers.distance import cdist, cosine_similarity, pairwise_distance
from engine.layers.matrices import cross, linalg_cross
from engine.provenance.back.reduction import norm_slopes
from engine.provenance.rules.distances import vector_axis
from engine.provenance.slopes import accumulate, unbroadcast, wide
from engine.provenance.table import passes_back

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.provenance.call import Call, Operand
    from engine.provenance.slopes import Gradient


def _both(one: Operand, two: Operand, parts: tuple[Gradient, Gradient]) -> dict[str, Gradient]:
    found: dict[str, Gradient] = {}
    for operand, part in zip((one, two), parts, strict=True):
        accumulate(found, operand.name, unbroadcast(part, operand.shape))
    return found


@passes_back(cosine_similarity)
def _angled(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Go back through the product of two vectors of length 1."""
    one, two = call.array("x1"), call.array("x2")
    left, right = np.broadcast_arrays(wide(one), wide(two))
    axis, eps = vector_axis(call), float(call.arguments["eps"])
    lengths = [np.sqrt(np.square(x).sum(axis=axis, keepdims=True)) for x in (left, right)]
    units = [x / np.maximum(length, eps)
             for x, length in zip((left, right), lengths, strict=True)]  # fmt: skip
    kept = np.expand_dims(gradient, axis)
    cosine = (units[0] * units[1]).sum(axis=axis, keepdims=True)
    parts = [
        kept * (other - np.where(length > eps, cosine * own, 0.0)) / np.maximum(length, eps)
        for own, other, length in zip(units, reversed(units), lengths, strict=True)
    ]
    return _both(one, two, (parts[0], parts[1]))


@passes_back(pairwise_distance)
def _apart(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Multiply by the slopes of the norm of the difference."""
    one, two = call.array("x1"), call.array("x2")
    difference = wide(one) - wide(two) + float(call.arguments["eps"])
    slopes = norm_slopes(difference, float(call.arguments["p"]), (difference.ndim - 1,))
    kept = gradient if call.arguments["keepdim"] else gradient[..., np.newaxis]
    return _both(one, two, (slopes * kept, -slopes * kept))


@passes_back(cdist)
def _all_apart(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Do the same for every vector of one list and every one of another."""
    one, two = call.array("x1"), call.array("x2")
    left, right = wide(one), wide(two)
    parts = (
        np.zeros((*gradient.shape[:-1], left.shape[-1])),
        np.zeros((*gradient.shape[:-2], right.shape[-2], right.shape[-1])),
    )
    order = float(call.arguments["p"])
    for row in range(left.shape[-2]):  # all differences at once would be large
        flowing = gradient[..., row, :, np.newaxis]
        if not flowing.any():
            continue
        difference = left[..., row, np.newaxis, :] - right
        back = norm_slopes(difference, order, (difference.ndim - 1,)) * flowing
        parts[0][..., row, :] = back.sum(axis=-2)
        parts[1][...] -= back
    return _both(one, two, parts)


@passes_back(cross, linalg_cross)
def _crossed(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Cross the gradient with the other vectors."""
    one, two = call.array("input"), call.array("other")
    left, right = np.broadcast_arrays(wide(one), wide(two))
    axis = vector_axis(call)
    return _both(
        one, two, (np.cross(right, gradient, axis=axis), np.cross(gradient, left, axis=axis))
    )
