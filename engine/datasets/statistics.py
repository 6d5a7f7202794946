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
from engine.datasets.measuring import Elements, Measurer, as_real
from engine.datasets.moments import Moments
from engine.datasets.ranking import Ranking, merge_ranked

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from engine.datasets.measuring import Measured
    from engine.datasets.model import LoadedModel, OperandFacts
    from engine.datasets.studies import Arrays
    from engine.datasets.values import BatchValues
    from engine.values import Array, Value

__all__ = ["STATISTICS", "StatisticsStudy", "sample_size"]

STATISTICS: Final = "statistics"
"""Name of the study."""

_GROUP: Final = 512  # elements of a group that are measured sooner than they are converted
_RUN: Final = 16  # neighbours that a sample takes together
_SAMPLES: Final = (1 << 11, 1 << 14)  # least and most elements of an operand and input
_ALL_SAMPLES: Final = 1 << 22  # elements of an operand, about
_MOST_COVARIED: Final = 1024  # channels


def sample_size(inputs: int) -> int:
    """Return how many elements of an operand each of so many inputs gives to a histogram."""
    least, most = _SAMPLES
    return max(least, min(_ALL_SAMPLES // max(inputs, 1), most))


@dataclass(frozen=True, slots=True)
class StatisticsStudy:
    """Statistics of every operand and channel.

    Attributes
    ----------
    top : int
        Inputs that are kept for each channel.
    histograms : {"sampled", "exact"}
    covariance : bool
    sample : int
        Elements of an operand and input beyond which a sampled histogram takes a sample.
    """

    top: int = 8
    histograms: Literal["sampled", "exact"] = "sampled"
    covariance: bool = False
    sample: int = _SAMPLES[1]

    @property
    def name(self) -> str:
        """Name of the study."""
        return STATISTICS

    @property
    def key(self) -> str:
        """The options, and the version of the arrays."""
        return f"4 {self.top} {self.histograms} {self.covariance} {self.sample}"

    def operands(self, model: LoadedModel) -> Sequence[str]:
        """Return all wanted operands."""
        return list(model.facts)

    def start(self, model: LoadedModel) -> _Gatherer:
        """Begin a shard."""
        return _Gatherer(self, model)

    def merge(self, one: Arrays, other: Arrays) -> Arrays:
        """Merge two ranges of inputs."""
        sums = _merged_sums(one, other)
        return sums | _merged_histograms(one, other) | _merged_covariance(one, other)


_COUNTED: Final = (  # as `add_counts` has them
    "elements", "zeros", "nan", "pinf", "ninf", "saturated", "dead",
)  # fmt: skip
_ADDED: Final = (*_COUNTED, "inputs")
_RANKED: Final = {"most": True, "least": False, "loud": True, "quiet": False}


class _Gatherer:
    """Statistics of one shard.

    Its arrays are flat: all channels of all operands one after the other (``channel_…``), and
    one entry an operand (``input_…``: of the root mean square of each input).
    """

    def __init__(self, study: StatisticsStudy, model: LoadedModel) -> None:
        operands = model.spec.operands
        self._operands = [_OperandCounts(study, facts) for facts in operands]
        self._begins = np.cumsum([0, *(facts.channels for facts in operands)])
        self._measurer = Measurer(
            [each.axis for each in self._operands],
            [facts.channels for facts in operands],
            [saturation_bounds(facts, model.parameters(facts)) for facts in operands],
        )
        channels = int(self._begins[-1])
        self._channels, self._levels = Moments.none(channels), Moments.none(len(operands))
        self._excited = Ranking(("most", "least"), channels, study.top)
        self._unusual = Ranking(("loud", "quiet"), len(operands), study.top)
        self._counts = np.zeros((len(_COUNTED), channels), np.int64)
        self._inputs = 0

    def add(self, indices: Sequence[int], values: BatchValues) -> None:
        operands, numbers = self._operands, np.asarray(indices, np.int64)

        def read(place: int) -> Elements:
            return operands[place].read(values)

        def see(place: int, elements: Elements, low: float, high: float) -> None:
            operands[place].see(numbers, elements, low, high)

        self._merge(numbers, self._measurer.measure(len(indices), read, see))

    def _merge(self, indices: npt.NDArray[np.int64], measured: Measured) -> None:
        """Merge what the inputs of a batch hold, of all operands."""
        from engine.datasets.compiled import add_counts

        self._inputs += len(indices)
        add_counts(measured.size, measured.counts, self._counts)
        self._excited.add(indices, measured.facts[1])  # the largest element is how much it is
        level = self._levels_of(measured)
        self._unusual.add(indices, level)
        known = np.isfinite(level)
        for place in range(len(indices)):
            low, high, mean, squares = measured.facts[:, place]
            self._channels.merge(Moments(measured.counts[0, place], mean, squares, low, high))
            here = known[place]
            self._levels.merge(
                Moments(
                    here.astype(np.int64),
                    np.where(here, level[place], 0.0),
                    np.zeros(len(here)),
                    np.where(here, level[place], np.inf),
                    np.where(here, level[place], -np.inf),
                )
            )

    def _levels_of(self, measured: Measured) -> Array:
        """Root mean square of each operand and input; NaN where it is not known."""
        mean, squares = measured.facts[2:]
        finite = measured.counts[0].astype(np.float64)
        with np.errstate(all="ignore"):
            power = squares + finite * mean**2
            sums = (
                np.add.reduceat(each, self._begins[:-1], axis=1) for each in (power, finite)
            )
            level = np.sqrt(np.divide(*sums))
        return np.where(np.isfinite(level), level, np.nan)

    def finish(self) -> Arrays:
        found = {
            **dict(zip(_COUNTED, self._counts, strict=True)),
            "inputs": np.full(len(self._operands), self._inputs),
            **self._channels.to_arrays("channel"),
            **self._levels.to_arrays("input"),
            **self._excited.finish(),
            **self._unusual.finish(),
        }
        parts = [each.finish() for each in self._operands]
        for name in parts[0]:
            found[name] = np.concatenate([part[name] for part in parts])
        return found


class _OperandCounts:
    """Histogram and covariance of one operand over a shard.

    Parameters
    ----------
    study : StatisticsStudy
    facts : OperandFacts

    Attributes
    ----------
    facts : OperandFacts
    axis : int
        Of the channels in a batch, 0 for none.
    """

    def __init__(self, study: StatisticsStudy, facts: OperandFacts) -> None:
        self.facts = facts
        self.axis = 0 if facts.axis is None else facts.axis + 1
        self._sample = study.sample if study.histograms == "sampled" else None
        self._histogram = PowerHistogram()
        self._step = 1
        self._covariance = _Covariance(facts) if study.covariance else None

    def read(self, values: BatchValues) -> Elements:
        """Return the elements of a batch, as they lie where channels are measured so."""
        name = self.facts.name
        blocks = values.blocks(name) if self.axis == 1 and self._covariance is None else None
        if blocks is not None and blocks[0, 0].size >= _GROUP:
            return Elements(as_real(blocks), blocked=True)
        return Elements(as_real(values[name]))

    def see(
        self, indices: npt.NDArray[np.int64], elements: Elements, low: float, high: float
    ) -> None:
        """Count elements in the histogram, and take all of them for the covariance.

        Of many elements only runs of neighbours are counted, from another beginning for each
        input.

        Parameters
        ----------
        indices : ndarray
            Of the inputs in the data set.
        elements : Elements
        low, high : float
            Of the finite elements; inf and -inf if there are none.
        """
        if self._covariance is not None:
            self._covariance.add(elements.array, self.axis)
        if low > high:
            return
        flat = elements.array.reshape(len(elements.array), -1)
        size = flat.shape[1]
        step = 1 if self._sample is None else max(1, -(-size // self._sample))
        self._step = max(self._step, step)
        self._histogram.cover(low, high)
        order = (elements.pixels, elements.width) if step > 1 else (size, 1)
        self._histogram.add_runs(flat, indices % step, _RUN, step, order)

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


def _merged_sums(one: Arrays, other: Arrays) -> Arrays:
    merged: Arrays = {name: one[name] + other[name] for name in _ADDED}
    for prefix in ("channel", "input"):
        moments = Moments.from_arrays(one, prefix)
        moments.merge(Moments.from_arrays(other, prefix))
        merged |= moments.to_arrays(prefix)
    for name, largest in _RANKED.items():
        merged |= merge_ranked(one, other, name, largest=largest)
    return merged


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
