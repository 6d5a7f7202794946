"""What tests of readings share: hand-made ends, reading with default options, slow loops."""

from __future__ import annotations

import numpy as np

from engine.meanings import Ends, OutputEnd, ReadingContext, all_readings, find_reading


def ends_of(*arrays, types=(), inputs=((1, 3, 640, 640),), integers=False):
    """What is known of outputs before their values are looked at."""
    types = types or ((),) * len(arrays)
    outputs = tuple(
        OutputEnd(f"out{place}", array.shape, array.dtype.name, kinds)
        for place, (array, kinds) in enumerate(zip(arrays, types, strict=True))
    )
    return Ends(outputs, inputs, integers)


def read(name, *arrays, ends=None, labels=(), sample=0, **options):
    """Read outputs by a reading, with other options than the default ones where named."""
    reading = find_reading(name)
    values = {each.name: each.default for each in reading.options} | options
    context = ReadingContext(ends or ends_of(*arrays), arrays, values, labels, sample)
    return reading.read(context)


def best_of(ends):
    """The name of the reading that fits best, and its score."""
    found = [(reading.fits(ends).score, reading.name) for reading in all_readings()]
    score, name = max(found, key=lambda each: each[0])
    return name, score


def slow_overlap(one, other):
    """Intersection over union of two boxes."""
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    shared = max(wide, 0) * max(high, 0)
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)]
    return shared / (sum(areas) - shared) if sum(areas) > shared else 0.0


def slow_suppress(corners, scores, classes, limit):
    """Indices of the boxes that stay, by a loop over pairs."""
    kept = []
    for place in sorted(range(len(scores)), key=lambda each: -scores[each]):
        if all(
            classes[place] != classes[other]
            or slow_overlap(corners[place], corners[other]) <= limit
            for other in kept
        ):
            kept.append(place)
    return kept


def centred(corners):
    """Centre and size of boxes given by corners."""
    corners = np.asarray(corners, np.float64)
    return np.concatenate(
        [(corners[..., :2] + corners[..., 2:]) / 2, corners[..., 2:] - corners[..., :2]], -1
    )


def logit(probability):
    """The number whose sigmoid is a probability."""
    return np.log(probability / (1 - probability))
