"""Operators of torchvision, defined here by slow loops; pnnx knows them by their schema."""

from __future__ import annotations

import math

import torch

from crosscheck.draw import Draw
from crosscheck.specification import Case, spec

LIBRARY = torch.library.Library("torchvision", "FRAGMENT")


def define(schema: str):
    """Define an operator, unless torchvision has it."""
    name = schema.partition("(")[0]

    def decorate(function):
        if not hasattr(torch.ops.torchvision, name):
            LIBRARY.define(schema)
            LIBRARY.impl(name, function, "CPU")
        return function

    return decorate


@define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
def suppressed(boxes, scores, limit):
    kept = []
    for i in sorted(range(len(scores)), key=lambda i: -scores[i].item()):
        if all(overlap(boxes[i].tolist(), boxes[j].tolist()) <= limit for j in kept):
            kept.append(i)
    return torch.tensor(kept, dtype=torch.int64)


def overlap(one, other):
    width = max(0, min(one[2], other[2]) - max(one[0], other[0]))
    height = max(0, min(one[3], other[3]) - max(one[1], other[1]))
    areas = [(b[2] - b[0]) * (b[3] - b[1]) for b in (one, other)]
    return width * height / (sum(areas) - width * height)


def at(image, y, x):
    """Channels at a place between pixels; outside of the image 0, near its edge the edge."""
    height, width = image.shape[1:]
    if not (-1 <= y <= height and -1 <= x <= width):
        return torch.zeros(len(image))
    y, x = max(y, 0.0), max(x, 0.0)
    top, left = min(int(y), height - 1), min(int(x), width - 1)
    below, right = min(top + 1, height - 1), min(left + 1, width - 1)
    y, x = (float(top) if top == height - 1 else y), (float(left) if left == width - 1 else x)
    down, over = y - top, x - left
    return (
        image[:, top, left] * (1 - down) * (1 - over) + image[:, top, right] * (1 - down) * over
        + image[:, below, left] * down * (1 - over) + image[:, below, right] * down * over
    )  # fmt: skip


@define("roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, "
        "SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor")  # fmt: skip
def aligned_regions(images, rois, scale, rows, columns, ratio, aligned):
    result = torch.zeros(len(rois), images.shape[1], rows, columns)
    for k, (number, *corners) in enumerate(rois.tolist()):
        x1, y1, x2, y2 = (c * scale - (0.5 if aligned else 0) for c in corners)
        height, width = y2 - y1, x2 - x1
        if not aligned:
            height, width = max(height, 1.0), max(width, 1.0)
        down, over = height / rows, width / columns
        samples = [ratio if ratio > 0 else math.ceil(size) for size in (down, over)]
        for i in range(rows):
            for j in range(columns):
                for a in range(samples[0]):
                    for b in range(samples[1]):
                        y = y1 + (i + (a + 0.5) / samples[0]) * down
                        x = x1 + (j + (b + 0.5) / samples[1]) * over
                        result[k, :, i, j] += at(images[int(number)], y, x)
                result[k, :, i, j] /= max(samples[0] * samples[1], 1)
    return result


def boxes(draw: Draw, count: int, size: float):
    corners = draw.uniform(0, size, count, 2)
    return torch.cat([corners, corners + draw.uniform(0.5, size / 2, count, 2)], 1)


@spec("pnnx.custom_op.torchvision.nms")
def nms(draw: Draw):
    count, limit = draw.integer(1, 12), draw.number(0.1, 0.7)
    scores = draw.distinct(count)
    return Case(
        lambda b, s: torch.ops.torchvision.nms(b, s, limit), boxes(draw, count, 10), scores
    )


@spec("pnnx.custom_op.torchvision.roi_align", tolerance=1e-4)
def roi_align(draw: Draw):
    batch, count = draw.integer(1, 2), draw.integer(1, 3)
    size = draw.integer(6, 9)
    images = draw.normal(batch, draw.integer(1, 3), size, size)
    rois = torch.cat(
        [draw.integers(0, batch - 1, count, 1).float(), boxes(draw, count, size * 2)], 1
    )
    options = (0.5, draw.integer(1, 3), draw.integer(1, 3), draw.one(-1, 1, 2), draw.flag())
    return Case(lambda x, r: torch.ops.torchvision.roi_align(x, r, *options), images, rois)
