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
    from engine.values import Array, Value

__all__ = ["SAMPLE", "STATISTICS", "StatisticsStudy"]

STATISTICS: Final = "statistics"
"""Name of the study."""
SAMPLE: Final = 1 << 14
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
        return _Gatherer(self, model)

    def merge(self, one: Arrays, other: Arrays) -> Arrays:
        """Merge two ranges of inputs."""
        merged = _merged_sums(one, other)
        merged["saturated"] = one["saturated"] + other["saturated"]
        return merged | _merged_histograms(one, other) | _merged_covariance(one, other)


_MEASURED: Final = (
    "low", "high", "mean", "squares", "finite", "zeros", "nan", "pinf", "ninf",
)  # fmt: skip
_ADDED: Final = ("elements", "zeros", "nan", "pinf", "ninf", "dead", "inputs")
_RANKED: Final = {"most": True, "least": False, "loud": True, "quiet": False}


class _Gatherer:
    """Statistics of one shard.

    Its arrays are flat: all channels of all operands one after the other (``channel_…``), and
    one entry an operand (``input_…``: of the root mean square of each input).
    """

    def __init__(self, study: StatisticsStudy, model: LoadedModel) -> None:
        operands = model.spec.operands
        self._study = study
        self._operands = [
            _OperandCounts(study, facts, saturation_bounds(facts, model.parameters(facts)))
            for facts in operands
        ]
        self._begins = np.cumsum([0, *(facts.channels for facts in operands)])
        self._waiting: list[tuple[npt.NDArray[np.int64], Measured]] = []
        self._folded: Arrays | None = None
        self._saturated = np.zeros(self._begins[-1], np.int64)

    def add(self, indices: Sequence[int], values: Mapping[str, Array]) -> None:
        reals = [as_real(values[each.facts.name]) for each in self._operands]
        measured = measure(
            [(real, each.axis) for real, each in zip(reals, self._operands, strict=True)]
        )
        for place, (each, real) in enumerate(zip(self._operands, reals, strict=True)):
            at = slice(self._begins[place], self._begins[place + 1])
            each.count(indices, real, measured, at)
            saturated = each.saturated(real)
            if saturated is not None:
                self._saturated[at] += saturated
        self._waiting.append((np.asarray(indices, np.int64), measured))
        if sum(len(each[0]) for each in self._waiting) >= _FOLDED:
            self._fold()

    def finish(self) -> Arrays:
        self._fold()
        found = self._folded if self._folded is not None else self._nothing()
        found["saturated"] = self._saturated
        parts = [each.finish() for each in self._operands]
        for name in parts[0]:
            found[name] = np.concatenate([part[name] for part in parts])
        return found

    def _fold(self) -> None:
        """Merge the measures of the inputs that came since the last time."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        indices = np.concatenate([each[0] for each in waiting])
        measured = [each[1] for each in waiting]
        columns = {
            name: np.concatenate([getattr(each, name) for each in measured])
            for name in _MEASURED
        }
        sizes = np.concatenate(
            [np.broadcast_to(each.size, each.low.shape) for each in measured]
        )
        finite, mean, squares = _pooled(columns["finite"], columns["mean"], columns["squares"])
        folded: Arrays = {
            "channel_finite": finite,
            "channel_mean": mean,
            "channel_squares": squares,
            "channel_low": columns["low"].min(axis=0),
            "channel_high": columns["high"].max(axis=0),
            "elements": sizes.sum(axis=0),
            "dead": ((columns["zeros"] == sizes) & (sizes > 0)).sum(axis=0),
            "inputs": np.full(len(self._operands), len(indices)),
        }
        for name in ("zeros", "nan", "pinf", "ninf"):
            folded[name] = columns[name].sum(axis=0)
        folded |= self._extremes(indices, columns)
        if self._folded is not None:
            folded = _merged_sums(self._folded, folded)
        self._folded = folded

    def _extremes(self, indices: Array, columns: Mapping[str, Array]) -> Arrays:
        """Inputs that excite channels most and least, and root mean squares of inputs."""
        top = self._study.top
        excited = columns["high"].T  # the largest element is how much it is excited
        found = _both_extremes(("most", "least"), excited, indices, top)
        finite = columns["finite"].astype(np.float64)
        begins = self._begins[:-1]
        with np.errstate(all="ignore"):
            power = columns["squares"] + finite * columns["mean"] ** 2
            sums = (np.add.reduceat(each, begins, axis=1) for each in (power, finite))
            level = np.sqrt(np.divide(*sums))
        known = np.isfinite(level)
        level = np.where(known, level, 0.0)
        counted, mean, squares = _pooled(known.astype(np.int64), level, np.zeros(level.shape))
        found |= {
            "input_finite": counted,
            "input_mean": mean,
            "input_squares": squares,
            "input_low": np.min(level, axis=0, where=known, initial=np.inf),
            "input_high": np.max(level, axis=0, where=known, initial=-np.inf),
        }
        ranked = np.where(known, level, np.nan).T
        return found | _both_extremes(("loud", "quiet"), ranked, indices, top)

    def _nothing(self) -> Arrays:
        """What a shard without a readable input has."""
        channels, operands = int(self._begins[-1]), len(self._operands)
        top = self._study.top
        found: Arrays = {}
        for prefix, count in (("channel", channels), ("input", operands)):
            found |= {
                f"{prefix}_finite": np.zeros(count, np.int64),
                f"{prefix}_mean": np.zeros(count),
                f"{prefix}_squares": np.zeros(count),
                f"{prefix}_low": np.full(count, np.inf),
                f"{prefix}_high": np.full(count, -np.inf),
            }
        for name in _ADDED:
            found[name] = np.zeros(operands if name == "inputs" else channels, np.int64)
        for name in _RANKED:
            rows = channels if name in {"most", "least"} else operands
            found[f"{name}_values"] = np.full((rows, top), np.nan)
            found[f"{name}_inputs"] = np.full((rows, top), -1, np.int64)
        return found


class _OperandCounts:
    """Histogram, saturation and covariance of one operand over a shard.

    Parameters
    ----------
    study : StatisticsStudy
    facts : OperandFacts
    bounds : (float, float) or None
        Where the operator is saturated.

    Attributes
    ----------
    facts : OperandFacts
    axis : int
        Of the channels in a batch, 0 for none.
    """

    def __init__(
        self, study: StatisticsStudy, facts: OperandFacts, bounds: tuple[float, float] | None
    ) -> None:
        self.facts = facts
        self.axis = 0 if facts.axis is None else facts.axis + 1
        self._is_exact = study.histograms == "exact"
        self._bounds = bounds
        self._histogram = PowerHistogram()
        self._step = 1
        self._covariance = _Covariance(facts) if study.covariance else None

    def count(self, indices: Sequence[int], real: Array, measured: Measured, at: slice) -> None:
        """Count elements into the histogram, and into the covariance."""
        if self._covariance is not None:
            self._covariance.add(real, self.axis)
        # Channels without finite elements are inf and -inf, which changes no range.
        low, high = measured.low[:, at].min().item(), measured.high[:, at].max().item()
        if low > high:
            return
        self._histogram.cover(low, high)
        flat = real.reshape(len(real), -1)
        if not self._is_exact and flat.shape[1] > SAMPLE:
            sample = self._sample_of(indices, flat)
        else:
            sample = flat.reshape(-1)
        if int(measured.finite[:, at].sum()) != real.size:
            sample = sample[np.isfinite(sample)]
        self._histogram.add(sample)

    def _sample_of(self, indices: Sequence[int], flat: Array) -> Array:
        """Take runs of neighbours, from another beginning for each input."""
        step = -(-flat.shape[1] // SAMPLE)
        self._step = max(self._step, step)
        runs = flat[:, : flat.shape[1] // _RUN * _RUN].reshape(len(flat), -1, _RUN)
        return np.concatenate(
            [
                run[index % step :: step].reshape(-1)
                for index, run in zip(indices, runs, strict=True)
            ]
        )

    def saturated(self, real: Array) -> Array | None:
        """Count the elements at the ends of the operator's range, by channel."""
        if self._bounds is None:
            return None
        low, high = self._bounds
        flags = (real <= low) | (real >= high)
        others = tuple(axis for axis in range(real.ndim) if axis != self.axis or not axis)
        return np.asarray(np.count_nonzero(flags, axis=others)).reshape(-1)

    def finish(self) -> Arrays:
        """Return the arrays of this operand."""
        found = self._histogram
        arrays = {
            "histogram": found.counts[np.newaxis],
            "exponent": np.array([found.exponent]),
            "first": np.array([found.first]),
            "range": np.array([[found.low, found.high]]),
            "step": np.array([self._step]),
        }
        return arrays | (self._covariance.finish() if self._covariance is not None else {})


def saturation_bounds(
    facts: OperandFacts, params: Mapping[str, Value] | None = None
) -> tuple[float, float] | None:
    """Return the values at and beyond which an operator of bounded range is saturated.

    Parameters
    ----------
    facts : OperandFacts
    params : mapping of str to value, optional
        Of the operator: some have a range of their own.

    Returns
    -------
    (float, float) or None
        An element is saturated if it is at most the first or at least the second. None for
        operators whose range has no such ends.
    """
    bare = facts.type.rpartition(".")[2].lower().replace("_", "")
    low, high = (params or {}).get("min_val"), (params or {}).get("max_val")
    if bare == "hardtanh" and isinstance(low, int | float) and isinstance(high, int | float):
        return float(low), float(high)
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


def _merged_sums(one: Arrays, other: Arrays) -> Arrays:
    """Merge what is folded within a shard too."""
    merged: Arrays = {}
    for prefix in ("channel", "input"):
        merged |= _merged_moments(one, other, prefix)
    for name in _ADDED:
        merged[name] = one[name] + other[name]
    for name, largest in _RANKED.items():
        values, inputs = (
            np.concatenate([one[f"{name}_{what}"], other[f"{name}_{what}"]], axis=1)
            for what in ("values", "inputs")
        )
        merged |= _ranked(name, values, inputs, one[f"{name}_values"].shape[1], largest=largest)
    return merged


def _both_extremes(names: tuple[str, str], values: Array, indices: Array, top: int) -> Arrays:
    """Return the inputs with the largest and with the least value of each row."""
    known = np.isfinite(values)
    inputs = np.where(known, indices, -1)
    values = np.where(known, values, np.nan)
    missing = top - values.shape[1]
    if missing > 0:
        values = np.pad(values, ((0, 0), (0, missing)), constant_values=np.nan)
        inputs = np.pad(inputs, ((0, 0), (0, missing)), constant_values=-1)
    most = _ranked(names[0], values, inputs, top, largest=True)
    return most | _ranked(names[1], values, inputs, top, largest=False)


def _ranked(name: str, values: Array, inputs: Array, top: int, *, largest: bool) -> Arrays:
    """Return the first `top` of each row, the first of equals before the others."""
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
