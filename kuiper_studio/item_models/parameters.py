"""Item model of one operator's parameters."""

from __future__ import annotations

import textwrap
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import (
    QObject,
    Qt,
)
from typing_extensions import override

from kuiper_studio.item_models.explanation import parameter_meanings
from kuiper_studio.item_models.rows_model import Index, RowsModel
from kuiper_studio.item_models.text import param_text, tip_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.runtime import RuntimeOperator

__all__ = ["ParameterColumn", "ParametersModel"]

_TIP_WIDTH: Final = 60  # characters in a line of a tool tip


class ParameterColumn(IntEnum):
    """Columns of the table."""

    NAME = 0
    VALUE = 1


_HEADERS: Final = (("Parameter", ""), ("Value", ""))


class ParametersModel(RowsModel):
    """Parameters of an operator in the file's order, or facts of something else."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(_HEADERS, parent=parent)
        self._rows: tuple[tuple[str, str, str], ...] = ()
        self._meanings: dict[str, str] = {}

    def show_operator(self, operator: RuntimeOperator | None) -> None:
        """Show an operator, or nothing."""
        parameters = operator.parameters if operator is not None else {}
        self._meanings = parameter_meanings(operator) if operator is not None else {}
        self._show(
            (name, param_text(p.value), p.type.name.lower().replace("_", " "))
            for name, p in parameters.items()
        )

    def show_facts(self, facts: Iterable[tuple[str, str, str]]) -> None:
        """Show facts of something else: name, value and meaning of each."""
        self._meanings = {}
        self._show(facts)

    def _show(self, rows: Iterable[tuple[str, str, str]]) -> None:
        self.beginResetModel()
        self._rows = tuple(rows)
        self.endResetModel()

    @override
    def count_rows(self) -> int:
        return len(self._rows)

    # Overrides of Qt methods

    @override
    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        name, value, kind = self._rows[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return name if index.column() == ParameterColumn.NAME else value
            case Qt.ItemDataRole.ToolTipRole:
                meaning = textwrap.fill(self._meanings.get(name, ""), _TIP_WIDTH)
                return tip_text(f"{name} = {value}\n{kind}\n{meaning}".rstrip())
        return None
