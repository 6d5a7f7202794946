"""Qt item models of the window's tables and lists, without widgets."""

from __future__ import annotations

from kuiper_studio.item_models.explanation import ExplainedArgument, explained_arguments
from kuiper_studio.item_models.group_rows import boundary_rows, group_rows
from kuiper_studio.item_models.log import LEVEL_ROLE, LogColumn, LogModel
from kuiper_studio.item_models.operands import OperandColumn, OperandRow, OperandsModel
from kuiper_studio.item_models.operator_order import OperatorsFilterModel
from kuiper_studio.item_models.operator_outline import OutlineModel
from kuiper_studio.item_models.operators import (
    LARGEST_FIRST,
    OperatorColumn,
    OperatorRole,
    OperatorsModel,
    RowCells,
    output_shapes,
)
from kuiper_studio.item_models.parameters import ParameterColumn, ParametersModel

__all__ = [
    "LARGEST_FIRST",
    "LEVEL_ROLE",
    "ExplainedArgument",
    "LogColumn",
    "LogModel",
    "OperandColumn",
    "OperandRow",
    "OperandsModel",
    "OperatorColumn",
    "OperatorRole",
    "OperatorsFilterModel",
    "OperatorsModel",
    "OutlineModel",
    "ParameterColumn",
    "ParametersModel",
    "RowCells",
    "boundary_rows",
    "explained_arguments",
    "group_rows",
    "output_shapes",
]
