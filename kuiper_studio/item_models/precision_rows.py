"""Item model of a format of lower precision: one row per operator."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Qt
from typing_extensions import override

from engine.text import format_share
from kuiper_studio.item_models.operator_rows import (
    CellLook,
    Column,
    Face,
    OperatorRowsModel,
    index_column,
    name_column,
    number_column,
)

if TYPE_CHECKING:
    from engine.precision import OperatorPrecision
    from kuiper_studio.engine_service.protocol import PrecisionResult

__all__ = ["PrecisionColumn", "PrecisionRowsModel"]


class PrecisionColumn(IntEnum):
    """Columns of the table."""

    KEEP = 0
    INDEX = 1
    OPERATOR = 2
    AT_OUTPUT = 3
    HEADROOM = 4
    UNDERFLOW = 5
    ALONE = 6
    CUMULATIVE = 7
    WEIGHTS = 8


_C = PrecisionColumn
_COLUMNS: Final[dict[PrecisionColumn, Column[OperatorPrecision]]] = {
    _C.INDEX: index_column(),
    _C.OPERATOR: name_column("The operator whose weights and outputs are in the format"),
    _C.AT_OUTPUT: number_column(
        "model error",
        "Error of the model's output with this operator alone",
        lambda row: row.at_output.relative if row.at_output is not None else None,
    ),
    _C.HEADROOM: number_column(
        "headroom",
        "Largest number of the format over the largest value",
        lambda row: row.outputs.headroom if row.outputs is not None else None,
    ),
    _C.UNDERFLOW: number_column(
        "underflow",
        "Share of the values that become 0 or subnormal",
        lambda row: row.outputs.underflow if row.outputs is not None else None,
        format_share,
    ),
    _C.ALONE: number_column(
        "output error",
        "Error of the operator's own output with this operator alone",
        lambda row: row.alone.relative,
    ),
    _C.CUMULATIVE: number_column(
        "cumulative error",
        "Error of the operator's own output with all operators before it in the format",
        lambda row: row.cumulative.relative,
    ),
    _C.WEIGHTS: number_column(
        "weight error",
        "Error of the weights by storing them",
        lambda row: row.weights.loss.relative if row.weights is not None else None,
    ),
}


class PrecisionRowsModel(OperatorRowsModel["OperatorPrecision"]):
    """Operators of a `Simulation`, in execution order."""

    def __init__(self, parent: QObject | None = None) -> None:
        self._kept: frozenset[int] = frozenset()
        keep: Column[OperatorPrecision] = Column(
            "",
            "Whether the operator has to stay in float32 for the wanted error (f32)",
            lambda row: "f32" if row.operator.index in self._kept else "",
            lambda row: float(row.operator.index in self._kept),
            Qt.AlignmentFlag.AlignLeft,
        )
        columns = {_C.KEEP: keep, **_COLUMNS}
        super().__init__([columns[column] for column in PrecisionColumn], parent)

    def show(self, result: PrecisionResult | None) -> None:
        """Show a format, or none."""
        kept = result.kept.kept if result is not None and result.kept is not None else ()
        self._kept = frozenset(label.index for label in kept)
        self.show_rows(result.simulation.operators if result is not None else ())

    @override
    def look(self, row: OperatorPrecision, column: int) -> CellLook:
        if column == PrecisionColumn.OPERATOR:
            return CellLook("text", Face.TEXT)
        headroom = row.outputs.headroom if row.outputs is not None else None
        overflows = headroom is not None and headroom < 1
        return CellLook("warn" if overflows or row.operator.index in self._kept else "text2")
