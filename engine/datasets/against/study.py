"""Compares every input with another model or a dump, row by row, as a study of a sweep."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.array_files import is_numeric
from engine.comparison import compare
from engine.comparison.measures import Meter
from engine.datasets.against.distributions import (
    MEASURES,
    Distributions,
    merge_distributions,
)
from engine.datasets.against.labels import UNKNOWN
from engine.datasets.model import require_operands
from engine.errors import EngineError, SweepError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.comparison.layouts import Layout
    from engine.comparison.measures import Measures
    from engine.comparison.rows import Row
    from engine.datasets.against.others import Other, OtherSpec
    from engine.datasets.model import LoadedModel
    from engine.datasets.studies import Arrays, Gatherer
    from engine.session import Session
    from engine.values import Array

__all__ = ["AGAINST", "AgainstRow", "AgainstStudy", "match_rows"]

AGAINST: Final = "against"
_LISTED: Final = 256  # inputs whose top-1 differs
_COUNTS: Final = (
    "inputs", "failed", "top1", "same_top1", "labelled", "right", "right_reference",
)  # fmt: skip
_VERSION: Final = 2  # of the arrays


@dataclass(frozen=True, slots=True)
class AgainstRow:
    """An operand and the reference's tensor that it is measured against.

    Attributes
    ----------
    operator, type, operand : str
    reference : str
        Key of the tensor.
    matched_by : str
        As in a row of a comparison.
    layout : Layout
    is_output : bool
        Whether it is an output of the model.
    """

    operator: str
    type: str
    operand: str
    reference: str
    matched_by: str
    layout: Layout = field(repr=False)
    is_output: bool = False


def match_rows(
    session: Session, other: Other, index: int
) -> tuple[tuple[AgainstRow, ...], tuple[str, str]]:
    """Match the operands of a model with the other side, on one input.

    Parameters
    ----------
    session : Session
        Fed with the input.
    other : Other
    index : int
        Of the input.

    Returns
    -------
    tuple of AgainstRow
        In execution order, without inputs of the model.
    (str, str)
        The first outputs, as in `AgainstStudy`.

    Raises
    ------
    SweepError
        If nothing but inputs matches.
    """
    inputs = [session.value(operand.name) for operand in session.graph.input_operands]
    arrays = [array for array in inputs if isinstance(array, np.ndarray)]
    reference = other.reference(index, arrays)
    found = compare(session, reference)
    outputs = {operand.name for operand in session.graph.output_operands}
    operands = session.graph.operands
    rows = tuple(
        AgainstRow(
            row.operator.name, row.operator.type, row.operand, row.reference, row.matched_by,
            row.layout, row.operand in outputs,
        )
        for row in found.rows
        if row.operand in operands and _is_measured(row)
    )  # fmt: skip
    computed = [row for row in rows if not session.graph.operator(row.operator).is_input]
    if not computed:
        raise SweepError(
            found.advice or f"No tensor of {found.reference} has the size of one of the model"
        )
    matched = {row.operand: row.reference for row in computed}
    first = next(iter(session.graph.output_operands), None)
    ours = first.name if first is not None else ""
    theirs = matched.get(ours) or next(iter(reference.outputs), "")
    return tuple(computed), (ours, theirs)


def _is_measured(row: Row) -> bool:
    """Whether a row's tensors have as many elements; else nothing is measured."""
    if row.shape is None or row.reference_shape is None:
        return True
    return math.prod(row.shape) == math.prod(row.reference_shape)


@dataclass(frozen=True, slots=True, eq=False)
class AgainstStudy:
    """Measures rows against another model or a dump.

    Attributes
    ----------
    other : OtherSpec
    rows : tuple of AgainstRow
    outputs : (str, str)
        The first output of our model, and of the other by its key; ``""`` where unknown.
    labels : ndarray of int64 of shape (N,), or None
        Class of each of N inputs.
    """

    other: OtherSpec
    rows: tuple[AgainstRow, ...] = field(repr=False)
    outputs: tuple[str, str] = ("", "")
    labels: Array | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """Of the study."""
        return AGAINST

    @property
    def key(self) -> str:
        """Changes with the other side, the rows and the labels."""
        digest = hashlib.sha256(
            repr((_VERSION, self.other.key, self.rows, self.outputs)).encode()
        )
        digest.update(repr([row.layout for row in self.rows]).encode())
        if self.labels is not None:
            digest.update(self.labels.tobytes())
        return digest.hexdigest()

    @property
    def reads(self) -> Sequence[str]:
        """Paths of the other side that a sweep could write over or remove."""
        return self.other.reads

    def operands(self, model: LoadedModel) -> Sequence[str]:
        """Return the operands that it needs: inputs of the model, and those of the rows."""
        names = [operand.name for operand in model.inputs]
        names += [row.operand for row in self.rows]
        return tuple(dict.fromkeys([*names, *filter(None, self.outputs[:1])]))

    def start(self, model: LoadedModel) -> Gatherer:
        """Begin a shard.

        Raises
        ------
        SweepError
            If the sweep is limited to other operators.
        """
        require_operands(model, self.operands(model))
        return _Gatherer(self, [operand.name for operand in model.inputs])

    def merge(self, one: Arrays, other: Arrays) -> Arrays:
        """Merge two ranges of inputs."""
        differing = np.concatenate([one["differing"], other["differing"]])
        return {
            "counts": one["counts"] + other["counts"],
            "differing": differing[:_LISTED],
            **merge_distributions(one, other),
        }


class _Gatherer:
    """Measures the inputs of a shard."""

    def __init__(self, study: AgainstStudy, inputs: Sequence[str]) -> None:
        self._study, self._inputs = study, inputs
        self._other = study.other.open()
        self._found = Distributions(len(study.rows))
        self._counts = dict.fromkeys(_COUNTS, 0)
        self._differing: list[int] = []
        self._meter = Meter()

    def add(self, indices: Sequence[int], values: Mapping[str, Array]) -> None:
        """Measure the inputs of a batch, one by one."""
        read = dict(values)
        for place, index in enumerate(indices):
            mine = {name: array[place] for name, array in read.items()}
            try:
                theirs = self._other.values(index, [mine[name] for name in self._inputs])
            except EngineError:
                self._counts["failed"] += 1
                continue
            self._counts["inputs"] += 1
            self._measure(index, mine, theirs)
            self._count_top1(index, mine, theirs)

    def finish(self) -> Arrays:
        """Return the distributions and counts."""
        return {
            "counts": np.array(list(self._counts.values()), np.int64),
            "differing": np.array(self._differing[:_LISTED], np.int64),
            **self._found.finish(),
        }

    def _measure(
        self, index: int, mine: Mapping[str, Array], theirs: Mapping[str, Array]
    ) -> None:
        for place, row in enumerate(self._study.rows):
            ours, expected = mine.get(row.operand), theirs.get(row.reference)
            if (
                ours is None or expected is None or ours.size != expected.size
                or not (is_numeric(ours) and is_numeric(expected))
            ):  # fmt: skip
                self._found.skip(place)
                continue
            expected = row.layout.to_ours(expected, ours.shape)
            measures = self._meter.measure(ours, expected)[0]
            self._found.add(place, index, _numbers_of(measures))

    def _count_top1(
        self, index: int, mine: Mapping[str, Array], theirs: Mapping[str, Array]
    ) -> None:
        ours, expected = (
            values.get(name)
            for values, name in zip((mine, theirs), self._study.outputs, strict=True)
        )
        if ours is None or expected is None or not ours.size or ours.size != expected.size:
            return
        tops = int(ours.argmax()), int(expected.argmax())
        counts = self._counts
        counts["top1"] += 1
        counts["same_top1"] += tops[0] == tops[1]
        if tops[0] != tops[1]:
            self._differing.append(index)
        labels = self._study.labels
        label = int(labels[index]) if labels is not None else UNKNOWN
        if label != UNKNOWN:
            counts["labelled"] += 1
            counts["right"] += tops[0] == label
            counts["right_reference"] += tops[1] == label


def _numbers_of(measures: Measures) -> tuple[float, ...]:
    """Return the measures in the order of `MEASURES`; NaN for a cosine of zeros."""
    numbers = {name: getattr(measures, name) for name in MEASURES}
    return tuple(float("nan") if numbers[n] is None else float(numbers[n]) for n in MEASURES)
