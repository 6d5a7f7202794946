"""PyTorch with hooks that gather what a sweep gathers, for `benchmarks.data_sets`.

Written as one would write it for speed: every pass over an output is a call of PyTorch, and
channels are merged in float64. Convolutions and batch norms are fused before. The outputs are
those of modules: the additions of a residual network have none, so they are not seen.
"""

from __future__ import annotations

import math
from collections import Counter

import torch
from torch.fx.experimental.optimization import fuse

BINS = 2048
TOP = 8
RUN = 16  # neighbours that a sample takes together


class Gathered:
    """What the channels of one output held: exact ones, extreme inputs, and a histogram.

    Counts, range, mean, squares, NaN, infinities, zeros, inputs with nothing but zeros, the
    inputs with the largest and least maxima, and of all channels together the mean and spread
    of root mean squares and a histogram.
    """

    def __init__(self, channels, sample):
        self._sample = sample
        self._count = 0
        self._low = torch.full((channels,), math.inf)
        self._high = torch.full((channels,), -math.inf)
        self._mean, self._squares = torch.zeros((2, channels), dtype=torch.float64)
        self._zeros, self._dead, self._nan, self._inf = torch.zeros(
            (4, channels), dtype=torch.int64
        )
        self._most = torch.full((channels, TOP), -math.inf), torch.full((channels, TOP), -1)
        self._least = torch.full((channels, TOP), math.inf), torch.full((channels, TOP), -1)
        self._level = [0, 0.0, 0.0]
        self._histogram, self._width, self._first = torch.zeros(BINS, dtype=torch.int64), 0.0, 0

    def add(self, index, value):
        rows = value.detach().transpose(0, 1).reshape(value.shape[1], -1)
        size = rows.shape[1]
        low, high = torch.aminmax(rows, dim=1)
        variance, mean = torch.var_mean(rows, dim=1, correction=0)
        if not torch.isfinite(mean).all():
            self._nan += torch.isnan(rows).sum(dim=1)
            self._inf += torch.isinf(rows).sum(dim=1)
            rows = torch.nan_to_num(rows, 0.0, 0.0, 0.0)
            variance, mean = torch.var_mean(rows, dim=1, correction=0)
        zeros = size - torch.count_nonzero(rows, dim=1)
        self._zeros += zeros
        self._dead += zeros == size
        self._low, self._high = torch.minimum(self._low, low), torch.maximum(self._high, high)
        mean, squares = mean.double(), variance.double() * size
        apart, count = mean - self._mean, self._count + size
        self._squares += squares + apart * apart * (self._count * size / count)
        self._mean += apart * (size / count)
        self._count = count
        self._most = self._rank(self._most, high, index, largest=True)
        self._least = self._rank(self._least, high, index, largest=False)
        level = math.sqrt(float((squares + size * mean * mean).sum()) / rows.numel())
        self._level[0] += 1
        apart = level - self._level[1]
        self._level[1] += apart / self._level[0]
        self._level[2] += apart * (level - self._level[1])
        self._add_to_histogram(index, rows.reshape(-1), float(low.min()), float(high.max()))

    @staticmethod
    def _rank(kept, values, index, *, largest):
        worst = kept[0][:, -1]
        better = values > worst if largest else values < worst
        if not better.any():
            return kept
        joined = torch.cat([kept[0][better], values[better, None]], dim=1)
        inputs = torch.cat([kept[1][better], torch.full((len(joined), 1), index)], dim=1)
        best, order = torch.topk(joined, TOP, dim=1, largest=largest)
        kept[0][better], kept[1][better] = best, torch.gather(inputs, 1, order)
        return kept

    def _add_to_histogram(self, index, flat, low, high):
        step = -(-flat.numel() // self._sample)
        if step > 1:
            runs = flat[: flat.numel() // RUN * RUN].reshape(-1, RUN)
            flat = runs[index % step :: step].reshape(-1)
        low, high = min(low, float(self._low.min())), max(high, float(self._high.max()))
        width = 2.0 ** math.ceil(math.log2(max(high - low, 1e-30) / (BINS - 2)))
        if width > self._width or math.floor(low / width) < self._first:
            first = math.floor(low / width)
            moved = torch.zeros_like(self._histogram)
            used = torch.nonzero(self._histogram)[:, 0]
            if used.numel():
                places = ((used + self._first).double() * (self._width / width)).floor().long()
                moved.index_add_(0, places - first, self._histogram[used])
            self._histogram, self._width, self._first = moved, width, first
        places = (flat / self._width).floor_().long() - self._first
        self._histogram += torch.bincount(places, minlength=BINS)[:BINS]


def run_with_hooks(module, inputs, sample):
    """Run inputs one by one, with hooks at all modules without modules in them.

    Parameters
    ----------
    module : torch.nn.Module
    inputs : sequence of ndarray
    sample : int
        Elements of an output and input that a histogram counts.
    """
    fused = fuse(module.eval())
    found = {}
    calls = Counter()
    index = 0

    def gather(name, value):
        key = name, calls[name]  # a module can be called twice
        calls[name] += 1
        if key not in found:
            found[key] = Gathered(value.shape[1], sample)
        found[key].add(index, value)

    for name, each in fused.named_modules():
        if name and not list(each.children()):
            each.register_forward_hook(lambda _m, _i, out, name=name: gather(name, out))
    with torch.inference_mode():
        for number, item in enumerate(inputs):
            index = number  # of the input, for the hooks
            calls.clear()
            value = torch.from_numpy(item[None].copy())
            gather("input", value)
            fused(value)
    return found
