"""Gathers statistics of operands and channels over a data set, and merges them.

Counts, ranges, histograms and the inputs that excite a channel do not depend on the order in
which inputs are merged. Means and variances are merged pairwise in float64 (Chan, Golub,
LeVeque), always in the order of the shards: so they are the same to the last bit whatever the
number of workers, for one size of shard and of batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from engine.datasets.histograms import BINS, PowerHistogram
from engine.datasets.measuring import as_real, measure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from engine.datasets.measuring import Measured
    from engine.datasets.model import LoadedModel, OperandFacts
    from engine.datasets.studies import Arrays
    from engine.values import Array

__all__ = ["SAMPLE", "STATISTICS", "StatisticsStudy"]

STATISTICS: Final = "statistics"
"""Name of the study."""
SAMPLE: Final = 1 << 15
"""Elements of an operand and input beyond which a histogram takes a sample."""

_RUN: Final = 16  # neighbours that a sample takes together
_FOLDED: Final = 64  # inputs whose measures are merged at once
_MOST_COVARIED: Final = 1024  # channels


@dataclass(frozen=True, slots=True)
class StatisticsStudy:
    """Statistics of every operand and channel.

    Attributes
    ----------
    top : int
        Inputs that are kept for each channel.
    histograms : {"sampled", "exact"}
    covariance : bool
    """

    top: int = 8
    histograms: Literal["sampled", "exact"] = "sampled"
    covariance: bool = False

    @property
    def name(self) -> str:
        """Name of the study."""
        return STATISTICS

    @property
    def key(self) -> str:
        """The options, and the version of the arrays."""
        return f"1 {self.top} {self.histograms} {self.covariance}"

    def operands(self, model: LoadedModel) -> Sequence[str]:
        """Return all wanted operands."""
        return list(model.facts)

    def start(self, model: LoadedModel) -> _Gatherer:
        """Begin a shard."""
        return _Gatherer(self, model.spec.operands)

    def merge(self, one: Arrays, other: Arrays) -> Arrays:
        """Merge two ranges of inputs."""
        merged: Arrays = {}
        for prefix in ("channel", "input"):
            merged |= _merged_moments(one, other, prefix)
        for name in _ADDED:
            merged[name] = one[name] + other[name]
        for name, largest in (
            ("most", True),
            ("least", False),
            ("loud", True),
            ("quiet", False),
        ):
            merged |= _merged_extremes(one, other, name, largest=largest)
        merged |= _merged_histograms(one, other)
        merged |= _merged_covariance(one, other)
        return merged


_ADDED: Final = (
    "elements", "zeros", "nan", "pinf", "ninf", "dead", "saturated", "inputs",
)  # fmt: skip


class _Gatherer:
    """Statistics of one shard.

    Its arrays are flat: all channels of all operands one after the other (``channel_…``), and
    one entry an operand (``input_…``: of the root mean square of each input).
    """

    def __init__(self, study: StatisticsStudy, operands: Sequence[OperandFacts]) -> None:
        self._operands = [_OperandTotals(study, facts) for facts in operands]

    def add(self, indices: Sequence[int], values: Mapping[str, Array]) -> None:
        for totals in self._operands:
            totals.add(indices, values[totals.facts.name])

    def finish(self) -> Arrays:
        parts = [totals.finish() for totals in self._operands]
        return {
            name: np.concatenate([part[name] for part in parts])
            for name in (parts[0] if parts else ())
        }


class _OperandTotals:
    """Statistics of one operand over a shard."""

    def __init__(self, study: StatisticsStudy, facts: OperandFacts) -> None:
        self.facts = facts
        self._study = study
        self._axis = 0 if facts.axis is None else facts.axis + 1
        self._bounds = saturation_bounds(facts)
        self._waiting: list[tuple[npt.NDArray[np.int64], Measured, Array | None]] = []
        self._folded: Arrays | None = None
        self._histogram = PowerHistogram()
        self._step = 1
        self._covariance = _Covariance(facts) if study.covariance else None

    def add(self, indices: Sequence[int], value: Array) -> None:
        real = as_real(value)
        measured = measure(real, self._axis)
        saturated = self._saturated(value)
        self._waiting.append((np.asarray(indices, np.int64), measured, saturated))
        self._count(indices, real, measured)
        if self._covariance is not None:
            self._covariance.add(real, self._axis)
        if sum(len(each[0]) for each in self._waiting) >= _FOLDED:
            self._fold()

    def finish(self) -> Arrays:
        self._fold()
        folded = self._folded if self._folded is not None else self._nothing()
        found = self._histogram
        folded["histogram"] = found.counts[np.newaxis]
        folded["exponent"] = np.array([found.exponent])
        folded["first"] = np.array([found.first])
        folded["range"] = np.array([[found.low, found.high]])
        folded["step"] = np.array([self._step])
        if self._covariance is not None:
            folded |= self._covariance.finish()
        return folded

    def _saturated(self, value: Array) -> Array | None:
        """Count the elements at the bounds of the operator, by input and channel."""
        if self._bounds is None:
            return None
        low, high = self._bounds
        flags = (value <= low) | (value >= high)
        axes = tuple(
            axis for axis in range(1, value.ndim) if axis != self._axis or self._axis == 0
        )
        counts: Array = np.count_nonzero(flags, axis=axes)
        return counts.reshape(len(value), -1)

    def _count(self, indices: Sequence[int], real: Array, measured: Measured) -> None:
        """Count elements into the histogram."""
        if not measured.finite.any():
            return
        # Measures of channels without finite elements are inf and -inf, so they do not matter.
        self._histogram.cover(measured.low.min().item(), measured.high.max().item())
        flat = real.reshape(len(real), -1)
        everything = int(measured.finite.sum()) == real.size
        if self._study.histograms == "sampled" and flat.shape[1] > SAMPLE:
            self._step = step = -(-flat.shape[1] // SAMPLE)
            runs = flat[:, : flat.shape[1] // _RUN * _RUN].reshape(len(flat), -1, _RUN)
            # Each input begins elsewhere, so that no place of the operand is left out.
            parts = [
                run[index % step :: step] for index, run in zip(indices, runs, strict=True)
            ]
            sample = np.concatenate([part.reshape(-1) for part in parts])
        else:
            sample = flat.reshape(-1)
        self._histogram.add(sample if everything else sample[np.isfinite(sample)])

    def _fold(self) -> None:
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        indices = np.concatenate([each[0] for each in waiting])
        measured = [each[1] for each in waiting]
        columns = {
            name: np.concatenate([getattr(each, name) for each in measured])
            for name in (
                "low",
                "high",
                "mean",
                "squares",
                "finite",
                "zeros",
                "nan",
                "pinf",
                "ninf",
            )
        }
        sizes = np.concatenate([np.full(len(each.low), each.size) for each in measured])
        shape = columns["low"].shape
        saturated = [each[2] for each in waiting]
        at_bounds = [
            np.zeros(each.low.shape, np.int64) if counts is None else counts
            for each, counts in zip(measured, saturated, strict=True)
        ]
        finite, mean, squares = _pooled(columns["finite"], columns["mean"], columns["squares"])
        folded: Arrays = {
            "channel_finite": finite,
            "channel_mean": mean,
            "channel_squares": squares,
            "channel_low": columns["low"].min(axis=0),
            "channel_high": columns["high"].max(axis=0),
            "elements": np.broadcast_to(sizes.sum(), shape[1:]).copy(),
            "dead": (
                (columns["zeros"] == sizes[:, np.newaxis]) & (sizes > 0)[:, np.newaxis]
            ).sum(axis=0),
            "saturated": np.concatenate(at_bounds).sum(axis=0),
            "inputs": np.array([len(indices)]),
        }
        for name in ("zeros", "nan", "pinf", "ninf"):
            folded[name] = columns[name].sum(axis=0)
        folded |= self._extremes(indices, columns)
        self._folded = folded if self._folded is None else _merged_folds(self._folded, folded)

    def _extremes(self, indices: Array, columns: Mapping[str, Array]) -> Arrays:
        """Inputs that excite channels most and least, and root mean squares of inputs."""
        top = self._study.top
        excited = columns["high"].T  # the largest element is how much it is excited
        none = ~np.isfinite(excited)
        found: Arrays = {}
        for name, largest in (("most", True), ("least", False)):
            found |= _extremes_of(name, excited, none, indices, top, largest=largest)
        finite = columns["finite"].astype(np.float64)
        with np.errstate(all="ignore"):
            power = (columns["squares"] + finite * columns["mean"] ** 2).sum(axis=1)
            level = np.sqrt(power / finite.sum(axis=1))
        silent = ~np.isfinite(level)
        level = np.where(silent, 0.0, level)
        counted, mean, squares = _pooled(
            (~silent).astype(np.int64), level, np.zeros(len(level))
        )
        found |= {
            "input_finite": np.array([counted]),
            "input_mean": np.array([mean]),
            "input_squares": np.array([squares]),
            "input_low": np.array([np.min(level, where=~silent, initial=np.inf)]),
            "input_high": np.array([np.max(level, where=~silent, initial=-np.inf)]),
        }
        for name, largest in (("loud", True), ("quiet", False)):
            found |= _extremes_of(
                name, level[np.newaxis], silent[np.newaxis], indices, top, largest=largest
            )
        return found

    def _nothing(self) -> Arrays:
        """What a shard without a readable input has."""
        channels, top = self.facts.channels, self._study.top
        found: Arrays = {}
        for prefix, count in (("channel", channels), ("input", 1)):
            found |= {
                f"{prefix}_finite": np.zeros(count, np.int64),
                f"{prefix}_mean": np.zeros(count),
                f"{prefix}_squares": np.zeros(count),
                f"{prefix}_low": np.full(count, np.inf),
                f"{prefix}_high": np.full(count, -np.inf),
            }
        for name in _ADDED:
            found[name] = np.zeros(1 if name == "inputs" else channels, np.int64)
        for name, rows in (("most", channels), ("least", channels), ("loud", 1), ("quiet", 1)):
            found[f"{name}_values"] = np.full((rows, top), np.nan)
            found[f"{name}_inputs"] = np.full((rows, top), -1, np.int64)
        return found


def saturation_bounds(facts: OperandFacts) -> tuple[float, float] | None:
    """Return the values at and beyond which an operator of bounded range is saturated.

    Returns
    -------
    (float, float) or None
        An element is saturated if it is at most the first or at least the second. None for
        operators whose range has no such ends.
    """
    bare = facts.type.rpartition(".")[2].lower().replace("_", "")
    return _BOUNDS.get(bare)


_NEAR: Final = 1e-3  # of the range: where a sigmoid's slope is a thousandth
_BOUNDS: Final[Mapping[str, tuple[float, float]]] = {
    "sigmoid": (_NEAR, 1 - _NEAR),
    "hardsigmoid": (0.0, 1.0),
    "tanh": (-1 + _NEAR, 1 - _NEAR),
    "hardtanh": (-1.0, 1.0),
    "relu6": (-np.inf, 6.0),
    "softmax": (-np.inf, 1 - _NEAR),
    "softsign": (-1 + _NEAR, 1 - _NEAR),
}


# Merging


def _pooled(finite: Array, mean: Array, squares: Array) -> tuple[Array, Array, Array]:
    """Count, mean and squared distances of several sets together."""
    count = finite.sum(axis=0)
    weights = finite / np.maximum(count, 1)
    both = (mean * weights).sum(axis=0)
    apart = np.where(finite > 0, mean - both, 0.0)
    return count, both, (squares + finite * apart * apart).sum(axis=0)


def _merged_moments(one: Arrays, other: Arrays, prefix: str) -> Arrays:
    finite, mean, squares = _pooled(
        *(
            np.stack([one[f"{prefix}_{name}"], other[f"{prefix}_{name}"]])
            for name in ("finite", "mean", "squares")
        )
    )
    return {
        f"{prefix}_finite": finite,
        f"{prefix}_mean": mean,
        f"{prefix}_squares": squares,
        f"{prefix}_low": np.minimum(one[f"{prefix}_low"], other[f"{prefix}_low"]),
        f"{prefix}_high": np.maximum(one[f"{prefix}_high"], other[f"{prefix}_high"]),
    }


def _merged_folds(one: Arrays, other: Arrays) -> Arrays:
    """Merge two parts of a shard, whose histogram is kept elsewhere."""
    merged: Arrays = {}
    for prefix in ("channel", "input"):
        merged |= _merged_moments(one, other, prefix)
    for name in _ADDED:
        merged[name] = one[name] + other[name]
    for name, largest in (("most", True), ("least", False), ("loud", True), ("quiet", False)):
        merged |= _merged_extremes(one, other, name, largest=largest)
    return merged


def _extremes_of(
    name: str, values: Array, left_out: Array, indices: Array, top: int, *, largest: bool
) -> Arrays:
    """Return the `top` largest or least of each row with their inputs, the first of equals."""
    signed = values if largest else -values
    left = np.where(left_out, -np.inf, signed)
    rows = np.arange(len(left))
    found = np.full((len(left), top), np.nan)
    inputs = np.full((len(left), top), -1, np.int64)
    for place in range(min(top, left.shape[1])):
        best = left.argmax(axis=1)
        value = left[rows, best]
        there = value > -np.inf
        found[there, place] = values[rows, best][there]
        inputs[there, place] = indices[best][there]
        left[rows, best] = -np.inf
    return {f"{name}_values": found, f"{name}_inputs": inputs}


def _merged_extremes(one: Arrays, other: Arrays, name: str, *, largest: bool) -> Arrays:
    values = np.concatenate([one[f"{name}_values"], other[f"{name}_values"]], axis=1)
    inputs = np.concatenate([one[f"{name}_inputs"], other[f"{name}_inputs"]], axis=1)
    top = one[f"{name}_values"].shape[1]
    keys = np.where(inputs < 0, np.inf, -values if largest else values)
    order = np.argsort(keys, axis=1, kind="stable")[:, :top]
    return {
        f"{name}_values": np.take_along_axis(values, order, axis=1),
        f"{name}_inputs": np.take_along_axis(inputs, order, axis=1),
    }


def _merged_histograms(one: Arrays, other: Arrays) -> Arrays:
    merged: Arrays = {
        "histogram": np.empty_like(one["histogram"]),
        "exponent": np.empty_like(one["exponent"]),
        "first": np.empty_like(one["first"]),
        "range": np.empty_like(one["range"]),
        "step": np.maximum(one["step"], other["step"]),
    }
    for place in range(len(merged["histogram"])):
        total = _histogram_of(one, place)
        total.merge(_histogram_of(other, place))
        merged["histogram"][place] = total.counts
        merged["exponent"][place] = total.exponent
        merged["first"][place] = total.first
        merged["range"][place] = total.low, total.high
    return merged


def _histogram_of(arrays: Arrays, place: int) -> PowerHistogram:
    found = PowerHistogram()
    found.counts = arrays["histogram"][place].reshape(BINS)
    found.exponent = int(arrays["exponent"][place])
    found.first = int(arrays["first"][place])
    found.low, found.high = (float(end) for end in arrays["range"][place])
    return found


# Covariance


class _Covariance:
    """Covariance of the channels of an operand, over positions and inputs."""

    def __init__(self, facts: OperandFacts) -> None:
        self._channels = facts.channels if facts.axis is not None else 0
        if self._channels > _MOST_COVARIED:
            self._channels = 0
        self._count = 0
        self._mean = np.zeros(self._channels)
        self._products = np.zeros((self._channels, self._channels))

    def add(self, real: Array, axis: int) -> None:
        if not self._channels:
            return
        rows = np.moveaxis(real, axis, 0).reshape(self._channels, -1).astype(np.float64)
        rows = rows[:, np.isfinite(rows).all(axis=0)]
        if not rows.shape[1]:
            return
        mean = rows.mean(axis=1)
        rows -= mean[:, np.newaxis]
        self._count, self._mean, self._products = _joined_products(
            (self._count, self._mean, self._products), (rows.shape[1], mean, rows @ rows.T)
        )

    def finish(self) -> Arrays:
        return {
            "covaried_channels": np.array([self._channels]),
            "covaried_count": np.array([self._count]),
            "covaried_mean": self._mean,
            "covaried_products": self._products.reshape(-1),
        }


def _joined_products(
    one: tuple[int, Array, Array], other: tuple[int, Array, Array]
) -> tuple[int, Array, Array]:
    count = one[0] + other[0]
    if not count:
        return one
    apart = other[1] - one[1]
    mean = one[1] + apart * (other[0] / count)
    products = one[2] + other[2] + np.outer(apart, apart) * (one[0] * other[0] / count)
    return count, mean, products


def _merged_covariance(one: Arrays, other: Arrays) -> Arrays:
    if "covaried_count" not in one:
        return {}
    counts, means, products = [], [], []
    place = begin = 0
    for operand, channels in enumerate(one["covaried_channels"].tolist()):
        square = channels * channels
        count, mean, product = _joined_products(
            *(
                (
                    int(each["covaried_count"][operand]),
                    each["covaried_mean"][place : place + channels],
                    each["covaried_products"][begin : begin + square].reshape(channels, -1),
                )
                for each in (one, other)
            )
        )
        counts.append(count)
        means.append(mean)
        products.append(product.reshape(-1))
        place, begin = place + channels, begin + square
    return {
        "covaried_channels": one["covaried_channels"],
        "covaried_count": np.array(counts),
        "covaried_mean": np.concatenate(means),
        "covaried_products": np.concatenate(products),
    }
