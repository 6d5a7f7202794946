"""Item model of an operator's inputs and outputs: one row per operand and peer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import (
    QObject,
    Qt,
)
from typing_extensions import override

from engine.text import format_count, format_dtype, format_shape
from engine.values import ArrayMetadata
from kuiper_studio.item_models.rows_model import Index, RowsModel
from kuiper_studio.item_models.text import tip_text

if TYPE_CHECKING:
    import numpy as np

    from engine.runtime import RuntimeOperand, RuntimeOperator
    from kuiper_studio.session import StudioSession

__all__ = ["OperandColumn", "OperandRow", "OperandsModel"]


class OperandColumn(IntEnum):
    """Columns of the table."""

    DIRECTION = 0
    OPERAND = 1
    SHAPE = 2
    DTYPE = 3
    PEER = 4


_HEADERS: Final = (
    ("", ""),
    ("Operand", ""),
    ("Shape", ""),
    ("Type", ""),
    ("Producer or consumer", ""),
)


@dataclass(frozen=True, slots=True)
class OperandRow:
    """One row.

    Attributes
    ----------
    operand : RuntimeOperand
    direction : str
        ``in`` or ``out``; ``""`` in a row for a further consumer.
    argument : str
        PyTorch's name of the input; ``""`` if the file has none.
    peer : RuntimeOperator or None
        The producer of an input, one consumer of an output.
    """

    operand: RuntimeOperand
    direction: str
    argument: str
    peer: RuntimeOperator | None


class OperandsModel(RowsModel):
    """Operands of an operator or a group.

    Parameters
    ----------
    session : StudioSession
        Source of computed shapes.
    """

    def __init__(self, session: StudioSession, parent: QObject | None = None) -> None:
        super().__init__(_HEADERS, parent=parent)
        self._session = session
        self._rows: tuple[OperandRow, ...] = ()

    def show_operator(self, operator: RuntimeOperator | None) -> None:
        """Show an operator, or nothing."""
        self.show_rows(_rows_of(operator) if operator is not None else ())

    def show_rows(self, rows: tuple[OperandRow, ...]) -> None:
        """Show other rows, such as those of a group."""
        self.beginResetModel()
        self._rows = rows
        self.endResetModel()

    def refresh(self) -> None:
        """Update the shapes."""
        if self._rows:
            last = self.index(len(self._rows) - 1, OperandColumn.DTYPE)
            self.dataChanged.emit(self.index(0, OperandColumn.SHAPE), last)

    def row_at(self, row: int) -> OperandRow:
        """Return the data of a row."""
        return self._rows[row]

    def _display(self, row: OperandRow, column: int) -> str:
        if not row.direction and column != OperandColumn.PEER:
            return ""
        match column:
            case OperandColumn.DIRECTION:
                return row.direction
            case OperandColumn.OPERAND:
                return row.operand.name
            case OperandColumn.SHAPE:
                return self._shape_text(row)
            case OperandColumn.DTYPE:
                return format_dtype(self._facts(row)[1])
            case _:
                return row.peer.name if row.peer is not None else ""

    def _shape_text(self, row: OperandRow) -> str:
        """Return the shape, how many members a tuple has, or a number itself."""
        metadata = self._session.tensors.metadata(row.operand.name)
        if isinstance(metadata, tuple):
            return format_count(len(metadata), "member")
        if isinstance(metadata, int | float):
            return str(metadata)
        return format_shape(self._facts(row)[0]) or "?"

    def _facts(
        self, row: OperandRow
    ) -> tuple[tuple[int | str | None, ...] | None, np.dtype[Any] | None]:
        """Return the computed shape and dtype, else the exported ones."""
        metadata = self._session.tensors.metadata(row.operand.name)
        if isinstance(metadata, ArrayMetadata):
            return metadata.shape, metadata.dtype
        return row.operand.shape, row.operand.dtype

    def _tool_tip(self, row: OperandRow, column: int) -> str:
        match column:
            case OperandColumn.OPERAND:
                named = f" ({row.argument})" if row.argument else ""
                return f"Show operand {row.operand.name}{named} in the tensor view"
            case OperandColumn.PEER if row.peer is not None:
                return f"Select {row.peer.type} {row.peer.name} (#{row.peer.index})"
            case OperandColumn.SHAPE:
                dtype = self._facts(row)[1]
                seen = f"{self._shape_text(row)} {format_dtype(dtype)}".strip()
                layout = self._session.layouts.find(row.operand.name)
                exported = format_shape(row.operand.shape)
                lines = (
                    seen,
                    layout.text() if layout is not None else "",
                    f"exported as {exported}" if exported else "",
                )
                return "\n".join(filter(None, lines))
        return ""

    @override
    def count_rows(self) -> int:
        return len(self._rows)

    # Overrides of Qt methods

    @override
    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        row = self._rows[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole | Qt.ItemDataRole.AccessibleTextRole:
                return self._display(row, index.column())
            case Qt.ItemDataRole.ToolTipRole:
                return tip_text(self._tool_tip(row, index.column())) or None
        return None


def _rows_of(operator: RuntimeOperator) -> tuple[OperandRow, ...]:
    rows = [
        OperandRow(operand, "in", argument, operand.producer)
        for operand, argument in zip(operator.inputs, operator.input_names, strict=True)
    ]
    for operand in operator.outputs:
        peers = tuple(dict.fromkeys(operand.consumers))
        rows.append(OperandRow(operand, "out", "", peers[0] if peers else None))
        rows.extend(OperandRow(operand, "", "", peer) for peer in peers[1:])
    return tuple(rows)
