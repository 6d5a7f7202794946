"""Runs whole data sets through a model, on one machine or many.

`sweep` runs every input and gathers statistics of all operands and channels, dumps, or what
other studies want to know. Its results are a folder, which `open_sweep` reads. Work is spread
by Dask, loops over values are compiled by Numba, dumps are written by Zarr: the extra
``datasets``. Without them results can still be read.

`plan` says what a task is, `shard` runs one, `running` and `cluster` run all. A task returns a
few arrays for each study (`studies`), which are merged in a tree.
"""

from __future__ import annotations

from engine.datasets.extra import has_extra, require_extra
from engine.datasets.failures import FailedInput
from engine.datasets.inputs import InputReader, InputSet
from engine.datasets.model import LoadedModel, OperandFacts
from engine.datasets.options import SweepOptions
from engine.datasets.pool import WorkerPool
from engine.datasets.results import (
    ChannelSummary,
    ExtremeInputs,
    Histogram,
    OperandSummary,
    OutlierInput,
    Sweep,
    SweptInputs,
    SweptModel,
    open_sweep,
)
from engine.datasets.running import sweep
from engine.datasets.statistics import StatisticsStudy
from engine.datasets.studies import Arrays, Gatherer, ReadsFiles, Study

__all__ = [
    "Arrays",
    "ChannelSummary",
    "ExtremeInputs",
    "FailedInput",
    "Gatherer",
    "Histogram",
    "InputReader",
    "InputSet",
    "LoadedModel",
    "OperandFacts",
    "OperandSummary",
    "OutlierInput",
    "ReadsFiles",
    "StatisticsStudy",
    "Study",
    "Sweep",
    "SweepOptions",
    "SweptInputs",
    "SweptModel",
    "WorkerPool",
    "has_extra",
    "open_sweep",
    "require_extra",
    "sweep",
]
