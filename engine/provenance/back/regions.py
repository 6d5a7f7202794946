"""Regions of interest: means of samples of an image, within boxes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine.layers.regions import find_image
from engine.provenance.rules.regions import ALIGNED, boxes_of, samples_of, shares_of_part
from engine.provenance.table import passes_back

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.layers.regions import Samples
    from engine.provenance.call import Call
    from engine.provenance.slopes import Gradient


@passes_back(*ALIGNED)
def _aligned(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Give each pixel its shares of the parts that read it; like PyTorch, boxes have none."""
    input = call.array("input")
    boxes, _ = boxes_of(call)
    result = np.zeros(input.shape)
    for number in np.flatnonzero(gradient.any(axis=(1, 2, 3))).tolist():
        rows, columns = (
            _shares(samples, size)
            for samples, size in zip(
                samples_of(call, boxes[number]), input.shape[2:], strict=True
            )
        )
        image = find_image(boxes[number], input.shape[0])
        result[image] += rows.T @ gradient[number] @ columns
    return {input.name: result}


def _shares(samples: Samples, size: int) -> Gradient:
    """Return the share of each pixel along an axis in each part; shape (parts, size)."""
    parts = len(samples.lower)
    found = np.zeros((parts, size))
    for part in range(parts):
        pixels, shares = shares_of_part(samples, part)
        found[part, pixels] = shares
    return found
