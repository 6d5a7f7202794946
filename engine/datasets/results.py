"""Reads the results of a sweep.

The folder of a sweep, version 1:

======================= ==================================================================
``summary.json``        model, options, inputs with those that failed, and ``operands``: by
                        name the operator, type, shape and dtype, and over all elements
                        ``count``, ``min``, ``max``, ``mean``, ``std``, ``nan``, ``inf`` and
                        ``zeros``, and ``constant``; written last, so that it is there
                        when the sweep is done
``statistics.npz``      channels, histograms and extreme inputs of all operands, one after
                        the other; read by `open_sweep`
``<study>.npz``         what another study gathered
``dump.zarr``           the tensors, if asked for
``inputs.txt``, ``.npy`` names of the inputs, a JSON text a line, and where each line begins
``shards/``             the results of tasks, for a resumption
======================= ==================================================================

Nothing here needs Dask or Zarr.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from weakref import finalize

import numpy as np

from engine.atomic import format_os_error
from engine.datasets.dump import DUMP
from engine.datasets.failures import FailedInput
from engine.datasets.histograms import BINS
from engine.datasets.inputs import InputReader, InputSet
from engine.datasets.model import OperandFacts
from engine.datasets.plan import SHARDS
from engine.datasets.shard import read_arrays
from engine.datasets.statistics import STATISTICS, saturation_bounds
from engine.errors import SweepError
from engine.file_versions import read_regular

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from engine.datasets.studies import Arrays
    from engine.values import Array

__all__ = [
    "SUMMARY",
    "SUMMARY_VERSION",
    "ChannelSummary",
    "ExtremeInputs",
    "Histogram",
    "OperandSummary",
    "OutlierInput",
    "Sweep",
    "SweptInputs",
    "SweptModel",
    "open_sweep",
    "summaries_of",
]

SUMMARY: Final = "summary.json"
SUMMARY_VERSION: Final = 1
_LARGEST_SUMMARY: Final = 64 << 20  # bytes
_OUTLIES: Final = 3.0  # standard deviations


@dataclass(frozen=True, slots=True)
class SweptModel:
    """The model that a sweep ran.

    Attributes
    ----------
    name : str
        Of its ``.param``, or of the ``.pt`` or ``.onnx`` it was made of.
    param, bin : str or None
        Paths when it ran.
    sha256, bin_sha256 : str or None
        Of these files.
    operators : int
    """

    name: str
    param: str
    bin: str | None
    sha256: str
    bin_sha256: str | None
    operators: int


@dataclass(frozen=True)
class SweptInputs:
    """The inputs of a sweep.

    Attributes
    ----------
    set : InputSet
        Which there were; `InputReader` reads them again.
    count : int
        All of them.
    done : int
        Those that ran.
    failed_count : int
    failed : tuple of FailedInput
        The first thousand of them.
    """

    set: InputSet
    done: int
    failed_count: int
    failed: tuple[FailedInput, ...] = field(repr=False)

    @property
    def count(self) -> int:
        """Number of all inputs."""
        return self.set.count

    def name(self, index: int) -> str:
        """Return the path of an input, or its place in the array.

        Raises
        ------
        IndexError
            If there is no such input.
        SweepError
            If the listing or the array cannot be read.
        """
        return self._reader.name(index)

    @cached_property
    def _reader(self) -> InputReader:
        reader = InputReader(self.set)
        finalize(self, reader.close)  # a listing stays open for the next name
        return reader


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of an operand's finite elements.

    Attributes
    ----------
    counts : ndarray of int64, shape (2048,)
        Every element is counted in the bin it lies in, the lower end of which belongs to it.
    edges : ndarray of float64, shape (2049,)
        Multiples of the width, which is a power of two.
    step : int
        One of so many elements was counted: 1 for all. The largest of all inputs.
    """

    counts: npt.NDArray[np.int64] = field(repr=False)
    edges: npt.NDArray[np.float64] = field(repr=False)
    step: int

    @property
    def width(self) -> float:
        """Width of a bin: at most a 1024th of the range, if elements differ by less."""
        return float(self.edges[1] - self.edges[0])


@dataclass(frozen=True, slots=True)
class ExtremeInputs:
    """Inputs that excite channels most, or least, the first of equals before the others.

    Attributes
    ----------
    inputs : ndarray of int64, shape (C, K)
        Numbers of inputs in the data set; -1 where there are no more.
    values : ndarray of float64, shape (C, K)
        The channel's largest element with that input; NaN where there are no more.
    """

    inputs: npt.NDArray[np.int64] = field(repr=False)
    values: npt.NDArray[np.float64] = field(repr=False)


@dataclass(frozen=True, slots=True)
class ChannelSummary:
    """What the channels of an operand held over the data set; arrays of shape (C,).

    Attributes
    ----------
    axis : int or None
        Of the channels, in the operand's shape; None if all elements count as one channel.
    count : ndarray of int64
        Elements, finite or not.
    min, max, mean, std : ndarray of float64
        Of the finite elements; NaN where there are none.
    nan, inf, zeros : ndarray of int64
    dead : ndarray of float64
        Share of the inputs with which all elements are 0: a channel with 1 is dead.
    saturated : ndarray of float64
        Share of elements at the ends of the operator's range; NaN for operators without.
    most, least : ExtremeInputs
    covariance : ndarray of float64 of shape (C, C), or None
        If it was asked for; with at most 1024 channels.
    """

    axis: int | None
    count: npt.NDArray[np.int64] = field(repr=False)
    min: npt.NDArray[np.float64] = field(repr=False)
    max: npt.NDArray[np.float64] = field(repr=False)
    mean: npt.NDArray[np.float64] = field(repr=False)
    std: npt.NDArray[np.float64] = field(repr=False)
    nan: npt.NDArray[np.int64] = field(repr=False)
    inf: npt.NDArray[np.int64] = field(repr=False)
    zeros: npt.NDArray[np.int64] = field(repr=False)
    dead: npt.NDArray[np.float64] = field(repr=False)
    saturated: npt.NDArray[np.float64] = field(repr=False)
    most: ExtremeInputs = field(repr=False)
    least: ExtremeInputs = field(repr=False)
    covariance: npt.NDArray[np.float64] | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class OutlierInput:
    """An input with which an operand is unusually large or small.

    Attributes
    ----------
    index : int
        In the data set.
    level : float
        Root mean square of the operand's elements.
    deviations : float
        How many standard deviations that is from the mean of all inputs.
    """

    index: int
    level: float
    deviations: float


@dataclass(frozen=True)
class OperandSummary:
    """What an operand held over the data set.

    Attributes
    ----------
    name, operator, type : str
        Of the operand, and its producer.
    shape : tuple of int
        With one input, without the batch.
    dtype : str
    constant : bool
        Whether it is computed from no input of the model.
    count : int
        Elements, finite or not.
    min, max, mean, std : float
        Of the finite elements; NaN where there are none.
    nan, inf, zeros : int
    channels : ChannelSummary
    histogram : Histogram
    outliers : tuple of OutlierInput
        Inputs more than three standard deviations off, the farthest first.
    """

    name: str
    operator: str
    type: str
    shape: tuple[int, ...]
    dtype: str
    constant: bool
    count: int
    min: float
    max: float
    mean: float
    std: float
    nan: int
    inf: int
    zeros: int
    channels: ChannelSummary = field(repr=False)
    histogram: Histogram = field(repr=False)
    outliers: tuple[OutlierInput, ...] = field(repr=False)

    @property
    def dead_channels(self) -> npt.NDArray[np.int64]:
        """Numbers of the channels that were 0 with every input; none of a `constant`."""
        if self.constant:  # a bias of zeros says nothing about the inputs
            return np.empty(0, np.int64)
        return np.flatnonzero(self.channels.dead == 1)

    def quantile(self, share: float) -> float:
        """Return the value that a share of the finite elements is below.

        Parameters
        ----------
        share : float
            From 0 to 1.

        Returns
        -------
        float
            Interpolated in the bin of the histogram: off by at most the bin's width. NaN where
            nothing is finite.
        """
        counts = self.histogram.counts
        total = int(counts.sum())
        if not total:
            return math.nan
        target = min(max(share, 0.0), 1.0) * total
        sums = np.cumsum(counts)
        place = min(int(np.searchsorted(sums, target)), BINS - 1)
        before = int(sums[place] - counts[place])
        within = (target - before) / max(int(counts[place]), 1)
        value = float(self.histogram.edges[place]) + within * self.histogram.width
        return min(max(value, self.min), self.max)


class Sweep:
    """The results of a sweep, read-only.

    Parameters
    ----------
    path : path
        Its folder.

    Attributes
    ----------
    path : Path
    model : SweptModel
    inputs : SweptInputs
    options : mapping
        As they were asked for.
    studies : tuple of str
        Names of what was gathered.
    remarks : tuple of str
        Sentences on how the inputs ran.

    Raises
    ------
    SweepError
        If it is no finished sweep.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        summary = self._read_summary()
        try:
            self.model = SweptModel(**summary["model"])
            inputs = summary["inputs"]
            self.inputs = SweptInputs(
                InputSet(**inputs["set"]),
                int(inputs["done"]),
                int(inputs["failed_count"]),
                tuple(FailedInput(**each) for each in inputs["failed"]),
            )
            self.options: Mapping[str, Any] = MappingProxyType(summary["options"])
            self.studies: tuple[str, ...] = tuple(summary["studies"])
            self.remarks = tuple([str(each) for each in summary.get("remarks", ())])
            self._facts = [_facts_of(name, row) for name, row in summary["operands"].items()]
        except (KeyError, TypeError, ValueError, AttributeError) as exc:
            raise SweepError(f"{self.path / SUMMARY} is not as expected: {exc!r}") from exc

    @property
    def dump(self) -> Path | None:
        """The dump, if there is one."""
        path = self.path / DUMP
        return path if path.is_dir() else None

    @cached_property
    def operands(self) -> Mapping[str, OperandSummary]:
        """Statistics by operand, in execution order; empty if they were not gathered.

        Raises
        ------
        SweepError
            If they cannot be read.
        """
        if STATISTICS not in self.studies:
            return MappingProxyType({})
        try:
            found = summaries_of(self._facts, self.study(STATISTICS))
        except (KeyError, ValueError, IndexError) as exc:
            where = self.path / f"{STATISTICS}.npz"
            raise SweepError(f"{where} does not fit the summary: {exc}") from exc
        return MappingProxyType({each.name: each for each in found})

    def study(self, name: str) -> Arrays:
        """Return the arrays that a study gathered.

        Raises
        ------
        SweepError
            If there are none, or they cannot be read.
        """
        if name not in self.studies:
            raise SweepError(f"{self.path} has no {name!r}; it has {', '.join(self.studies)}")
        return read_arrays(self.path / f"{name}.npz")

    def _lacking(self) -> str:
        """Say what there is instead of a summary."""
        if not self.path.is_dir():
            return f"there is no folder {self.path}"
        if (self.path / SHARDS).is_dir():
            return (
                f"{self.path} holds a sweep that is not finished; run the same inputs into it "
                "to go on"
            )
        return f"{self.path} has no {SUMMARY}: it holds no results of a sweep"

    def _read_summary(self) -> dict[str, Any]:
        path = self.path / SUMMARY
        try:
            summary = json.loads(read_regular(path, _LARGEST_SUMMARY))
        except FileNotFoundError as exc:
            raise SweepError(self._lacking()) from exc
        except OSError as exc:
            raise SweepError(f"{path} cannot be read: {format_os_error(exc)}") from exc
        except ValueError as exc:
            raise SweepError(f"{path} cannot be read: {exc}") from exc
        if not isinstance(summary, dict) or summary.get("sweep") != SUMMARY_VERSION:
            raise SweepError(f"{path} is not of version {SUMMARY_VERSION} of a sweep")
        return summary


def open_sweep(path: str | Path) -> Sweep:
    """Open the folder of a finished sweep.

    Parameters
    ----------
    path : path

    Returns
    -------
    Sweep
        Arrays are read when they are first looked at.

    Raises
    ------
    SweepError
        If it is no finished sweep.
    """
    return Sweep(path)


def _facts_of(name: str, row: Mapping[str, Any]) -> OperandFacts:
    axis = row["axis"]
    shape = tuple(int(size) for size in row["shape"])
    if axis is not None and not 0 <= axis < len(shape):
        raise ValueError(f"{name} has no axis {axis}")
    return OperandFacts(
        name,
        str(row["operator"]),
        str(row["type"]),
        shape,
        str(row["dtype"]),
        bool(row["batched"]),
        axis,
        tuple(str(word) for word in row["dimensions"]),
        bool(row.get("constant")),  # older summaries do not say it,
    )


def summaries_of(facts: list[OperandFacts], arrays: Arrays) -> list[OperandSummary]:
    """Make the summaries of operands from the merged arrays of their statistics."""
    found = []
    begin = covaried = products = 0
    for place, each in enumerate(facts):
        channels = slice(begin, begin + each.channels)
        begin = channels.stop
        covariance = None
        if "covaried_count" in arrays:
            count = int(arrays["covaried_channels"][place])
            square = arrays["covaried_products"][products : products + count * count]
            elements = int(arrays["covaried_count"][place])
            if count and elements:
                covariance = square.reshape(count, count) / elements
            covaried, products = covaried + count, products + count * count
        found.append(_summary_of(each, place, channels, arrays, covariance))
    if begin != len(arrays["channel_mean"]):
        raise ValueError("it has other channels")
    return found


def _summary_of(
    facts: OperandFacts,
    place: int,
    at: slice,
    arrays: Arrays,
    covariance: Array | None,
) -> OperandSummary:
    part = {
        name: arrays[name][at]
        for name in (
            "channel_finite", "channel_mean", "channel_squares", "channel_low",
            "channel_high", "elements", "zeros", "nan", "pinf", "ninf", "dead", "saturated",
        )
    }  # fmt: skip
    if len(part["channel_mean"]) != facts.channels:
        raise ValueError(f"it lacks channels of {facts.name}")
    finite, mean, squares = (part[f"channel_{name}"] for name in ("finite", "mean", "squares"))
    total = int(finite.sum())
    pooled = float((mean * (finite / max(total, 1))).sum())
    apart = float((squares + finite * np.where(finite > 0, mean - pooled, 0.0) ** 2).sum())
    width = np.ldexp(1.0, int(arrays["exponent"][place]))
    edges = (int(arrays["first"][place]) + np.arange(BINS + 1.0)) * width
    return OperandSummary(
        facts.name,
        facts.operator,
        facts.type,
        facts.shape,
        facts.dtype,
        facts.constant,
        count=int(part["elements"].sum()),
        min=float(part["channel_low"].min(initial=np.inf)) if total else math.nan,
        max=float(part["channel_high"].max(initial=-np.inf)) if total else math.nan,
        mean=pooled if total else math.nan,
        std=math.sqrt(max(apart, 0.0) / total) if total else math.nan,
        nan=int(part["nan"].sum()),
        inf=int(part["pinf"].sum() + part["ninf"].sum()),
        zeros=int(part["zeros"].sum()),
        channels=_channels_of(facts, place, at, arrays, part, covariance),
        histogram=Histogram(arrays["histogram"][place], edges, int(arrays["step"][place])),
        outliers=_outliers_of(place, arrays),
    )


def _channels_of(
    facts: OperandFacts,
    place: int,
    at: slice,
    arrays: Arrays,
    part: Mapping[str, Array],
    covariance: Array | None,
) -> ChannelSummary:
    finite = part["channel_finite"]
    some = finite > 0
    with np.errstate(all="ignore"):
        std = np.sqrt(part["channel_squares"] / finite)
        saturated = part["saturated"] / part["elements"]
    if saturation_bounds(facts) is None:
        saturated = np.full(len(finite), np.nan)
    return ChannelSummary(
        facts.axis,
        part["elements"],
        np.where(some, part["channel_low"], np.nan),
        np.where(some, part["channel_high"], np.nan),
        np.where(some, part["channel_mean"], np.nan),
        np.where(some, std, np.nan),
        part["nan"],
        part["pinf"] + part["ninf"],
        part["zeros"],
        part["dead"] / max(int(arrays["inputs"][place]), 1),
        saturated,
        ExtremeInputs(arrays["most_inputs"][at], arrays["most_values"][at]),
        ExtremeInputs(arrays["least_inputs"][at], arrays["least_values"][at]),
        covariance,
    )


def _outliers_of(place: int, arrays: Arrays) -> tuple[OutlierInput, ...]:
    count, mean = int(arrays["input_finite"][place]), float(arrays["input_mean"][place])
    spread = math.sqrt(max(float(arrays["input_squares"][place]), 0.0) / max(count, 1))
    if not spread:
        return ()
    found: dict[int, OutlierInput] = {}
    for name in ("loud", "quiet"):
        pairs = zip(
            arrays[f"{name}_inputs"][place].tolist(),
            arrays[f"{name}_values"][place].tolist(),
            strict=True,
        )
        for index, level in pairs:
            deviations = (level - mean) / spread
            if index >= 0 and abs(deviations) > _OUTLIES:
                found[index] = OutlierInput(index, level, deviations)
    return tuple(sorted(found.values(), key=lambda each: (-abs(each.deviations), each.index)))
