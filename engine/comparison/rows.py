"""The result of a comparison: rows, origins, and unmatched tensors.

The window reads them, and imports nothing that computes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from engine.plain import plain
from engine.runtime.operator import INPUT_TYPES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.comparison.layouts import Layout
    from engine.comparison.measures import Measures, Tolerances
    from engine.comparison.references import Reference
    from engine.runtime import OperatorLabel
    from engine.statistics import TensorStatistics
    from engine.values import Array

__all__ = ["Comparison", "Origin", "Row", "Status", "Unmatched", "UnmatchedTensor", "is_empty"]


class Status(Enum):
    """Status of a row.

    SAME: within the tolerance.
    INHERITED: it differs, but the operator gives the same on the reference's inputs.
    ORIGIN: the operator differs on the reference's inputs.
    ROUNDING: it differs a little, and only by the rounding of all operators upstream.
    TIE: it takes another of several equal elements.
    RANDOM: both have drawn random numbers.
    FLOAT16_WEIGHTS: one side has the weights rounded to float16, and that explains it.
    INT8: the operator computes in int8, and that explains it.
    NOT_COMPARED: one side has no value, or the operator cannot run on these inputs.
    """

    SAME = "same"
    INHERITED = "inherited"
    ORIGIN = "origin"
    ROUNDING = "rounding"
    TIE = "tie"
    RANDOM = "random"
    FLOAT16_WEIGHTS = "float16 weights"
    INT8 = "int8"
    NOT_COMPARED = "not compared"

    @property
    def is_excused(self) -> bool:
        """Whether the difference is no fault."""
        return self in {Status.TIE, Status.RANDOM, Status.FLOAT16_WEIGHTS, Status.INT8}


@dataclass(frozen=True, slots=True)
class Row:
    """An operand compared with the reference's tensor.

    Attributes
    ----------
    operator : OperatorLabel
        Its producer.
    operand : str
    reference : str
        Key of the reference's tensor.
    matched_by : str
        See `engine.comparison.matching.Match`.
    confidence : float
        Of the match, 0 to 1.
    layout : Layout
        How the reference's axes differ.
    shape, reference_shape : tuple of int or None
        None for no value.
    dtype, reference_dtype : str
    measures : Measures or None
        Of our own run; None if they cannot be compared.
    statistics, reference_statistics : TensorStatistics or None
    born : float or None
        Distance from the reference when the operator runs on the reference's inputs, relative
        to the reference's largest element; 1 where they cannot be compared, e.g. for another
        shape; None where it was not measured. Where our run is within the tolerance at its
        inputs and output, what it adds to the distance.
    inherited : float or None
        The rest of the distance of the whole run.
    amplification : float or None
        Distance of the output over the largest one of the inputs, each of the whole run; None
        for equal inputs.
    status : Status
    reason : str
        Why it was not compared, or a remark on the status or the match; ``""`` for none.
    excused : bool
        Whether it inherits only what is no fault: rounded weights, a tie or random numbers
        upstream, and no origin.
    """

    operator: OperatorLabel
    operand: str
    reference: str
    matched_by: str
    confidence: float
    layout: Layout
    shape: tuple[int, ...] | None
    reference_shape: tuple[int, ...] | None
    dtype: str
    reference_dtype: str
    measures: Measures | None
    statistics: TensorStatistics | None
    reference_statistics: TensorStatistics | None
    born: float | None
    inherited: float | None
    amplification: float | None
    status: Status
    reason: str = ""
    excused: bool = False

    def load(self, reference: Reference) -> Array:
        """Load the reference's tensor, in our layout if it has as many elements.

        Raises
        ------
        EngineError
            If it cannot be read.
        """
        array = reference.array(self.reference)
        if self.shape is None or math.prod(self.shape) != array.size:
            return array
        return self.layout.to_ours(array, self.shape)

    def to_json(self) -> dict[str, Any]:
        """Return the row as strict JSON can hold it; null where nothing was measured."""
        measures = self.measures
        numbers = {
            name: _number(getattr(measures, name)) if measures is not None else None
            for name in ("max_abs", "max_rel", "nmse", "cosine", "snr_db", "within_permille")
        }
        return {
            "operator": self.operator.name,
            "type": self.operator.type,
            "operand": self.operand,
            "reference": self.reference,
            "matched_by": self.matched_by,
            "confidence": self.confidence,
            "layout": self.layout.name,
            "shape": plain(self.shape),
            "reference_shape": plain(self.reference_shape),
            "dtype": self.dtype,
            "reference_dtype": self.reference_dtype,
            **numbers,
            "non_finite": measures.non_finite if measures is not None else None,
            "worst_index": plain(measures.worst_index) if measures is not None else None,
            "statistics": _numbers_of(self.statistics),
            "reference_statistics": _numbers_of(self.reference_statistics),
            "born": _number(self.born),
            "inherited": _number(self.inherited),
            "amplification": _number(self.amplification),
            "status": self.status.value,
            "reason": self.reason,
            "excused": self.excused,
        }


@dataclass(frozen=True, slots=True)
class Origin:
    """An operator where a difference begins.

    Attributes
    ----------
    operator : OperatorLabel
    operand : str
        The output that differs.
    reference : str
        Key of the reference's tensor.
    index : tuple of int
        Of the element that differs most; empty where they cannot be compared.
    born, inherited : float or None
        As in its row.
    text : str
        What is wrong, in a sentence.
    among : tuple of OperatorLabel
        Operators upstream that the reference does not show: the difference may begin there
        instead.
    reasons : tuple
        Of `engine.comparison.reasons`: kind, share that it explains, text.
    """

    operator: OperatorLabel
    operand: str
    reference: str
    index: tuple[int, ...]
    born: float | None
    inherited: float | None
    text: str
    among: tuple[OperatorLabel, ...] = ()
    reasons: tuple[Any, ...] = field(default=())

    @property
    def unexplained(self) -> str:
        """What is said of it without reasons."""
        if self.operator.type in INPUT_TYPES:
            return "No known way to prepare an input explains it. Give both the same input."
        return "No known reason explains it."

    def to_json(self) -> dict[str, Any]:
        """Return the origin as strict JSON can hold it."""
        return {
            "operator": self.operator.name,
            "type": self.operator.type,
            "operand": self.operand,
            "reference": self.reference,
            "index": list(self.index),
            "born": _number(self.born),
            "inherited": _number(self.inherited),
            "text": self.text,
            "among": [each.name for each in self.among],
            "reasons": [
                {"kind": each.kind, "explains": _number(each.explains), "text": each.text}
                for each in self.reasons
            ],
        }


@dataclass(frozen=True, slots=True)
class UnmatchedTensor:
    """An operand of ours, or a tensor of the reference, without a counterpart.

    Attributes
    ----------
    operand : str
        Our operand, or the key of the reference's tensor.
    reason : str
    is_open : bool
        Whether nothing shows that it is right: neither results downstream, nor that it is a
        constant of the model.
    """

    operand: str
    reason: str
    is_open: bool = True


@dataclass(frozen=True, slots=True)
class Unmatched:
    """The unmatched tensors of both sides.

    Attributes
    ----------
    ours, reference : tuple of UnmatchedTensor
    """

    ours: tuple[UnmatchedTensor, ...] = ()
    reference: tuple[UnmatchedTensor, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return both lists as strict JSON can hold them."""
        return {
            side: [{"operand": each.operand, "reason": each.reason} for each in listed]
            for side, listed in (("ours", self.ours), ("reference", self.reference))
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing a session with a reference.

    Attributes
    ----------
    verdict : {"same", "differs"}
        ``"differs"`` also where nothing but inputs matches a tensor of the reference: nothing
        shows that they are the same.
    rows : tuple of Row
        One per matched operand, in execution order.
    origins : tuple of Origin
        Where differences begin, in execution order; several if they are independent.
    unmatched : Unmatched
    reference : str
        Title of the reference.
    tolerances : Tolerances
    missing_outputs : tuple of str
        Output operands of the model that were not compared, because they have no value or no
        counterpart.
    reference_failure : str
        Which operator the reference's run could not compute first, and why; ``""`` if none is
        known.
    """

    verdict: str
    rows: tuple[Row, ...] = field(repr=False)
    origins: tuple[Origin, ...]
    unmatched: Unmatched = field(repr=False)
    reference: str
    tolerances: Tolerances
    missing_outputs: tuple[str, ...] = ()
    reference_failure: str = ""

    @property
    def checked(self) -> int:
        """Number of operands without a value that agree on the reference's inputs."""
        return sum(
            row.measures is None and row.born is not None and row.status is Status.NOT_COMPARED
            for row in self.rows
        )

    @property
    def reservation(self) -> str:
        """What an equal verdict leaves out: ``outputs not compared``; ``""`` for nothing."""
        if not self.missing_outputs:
            return ""
        known = sum(row.measures is not None for row in self.rows) + self.checked
        left = len(self.rows) - known + sum(each.is_open for each in self.unmatched.ours)
        most = "most operands and the " if left > known else ""
        return f"{most}outputs not compared"

    @property
    def advice(self) -> str:
        """Why nothing was compared, and what to do; ``""`` if something was."""
        if self.origins or not is_empty(self.rows, self.unmatched):
            return ""
        inputs = " but its inputs" if self.rows else ""
        return (
            f"No tensor of {self.reference}{inputs} matches an operand by name, values or "
            "place. Another reference may, or match one by hand."
        )

    def to_json(self) -> dict[str, Any]:
        """Return the result as strict JSON can hold it."""
        return {
            "verdict": self.verdict,
            "reference": self.reference,
            "origins": [origin.to_json() for origin in self.origins],
            "rows": [row.to_json() for row in self.rows],
            "unmatched": self.unmatched.to_json(),
            "missing_outputs": list(self.missing_outputs),
            "reference_failure": self.reference_failure,
        }

    def expected(self, operand: str, reference: Reference) -> Array | None:
        """Return what the reference has for an operand of ours.

        Parameters
        ----------
        operand : str
        reference : Reference
            The one that was compared.

        Returns
        -------
        ndarray or None
            In our layout; in the reference's where the operand has no value. None where nothing
            matches, or has another shape. It may share memory with the reference: do not write
            to it.

        Raises
        ------
        EngineError
            If it cannot be read.
        """
        row = next((row for row in self.rows if row.operand == operand), None)
        if row is None or (row.measures is None and row.shape is not None):
            return None
        return row.load(reference)


def is_empty(rows: Sequence[Row], unmatched: Unmatched) -> bool:
    """Whether nothing is known of what a model computes, though the reference has more."""
    known = any(row.operator.type not in INPUT_TYPES for row in rows)
    return not known and (not rows or bool(unmatched.reference))


def _number(value: float | None) -> float | None:
    """Return a finite number; None for others, which JSON lacks."""
    shown = plain(value)
    return shown if isinstance(shown, (int, float)) else None


def _numbers_of(found: TensorStatistics | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        name: _number(getattr(found, name))
        for name in ("min", "max", "mean", "std", "zeros", "nan", "pinf", "ninf")
    }
