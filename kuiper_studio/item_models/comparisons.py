"""Item model of a self-check: one row per operator and kernel."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from typing_extensions import override

from engine.self_check import Verdict
from engine.text import format_brief, format_count, format_milliseconds
from kuiper_studio.item_models.operator_rows import (
    Column,
    OperatorRowsModel,
    index_column,
    name_column,
    text_column,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtCore import QObject

    from engine.differences import Difference
    from engine.self_check import Comparison, SelfCheck

__all__ = ["ComparisonColumn", "ComparisonsModel"]


class ComparisonColumn(IntEnum):
    """Columns of the table."""

    INDEX = 0
    NAME = 1
    TYPE = 2
    KERNEL = 3
    VERDICT = 4
    LARGEST = 5
    RELATIVE = 6
    OF_ELEMENT = 7
    BEYOND = 8
    MS = 9
    REFERENCE_MS = 10
    WHERE = 11


def _measured(
    title: str, tip: str, text: Callable[[Comparison], str], key: Callable[[Comparison], float]
) -> Column[Comparison]:
    """Return a column that is empty for operators that were not checked."""
    return Column(title, tip, lambda row: "" if row.verdict is Verdict.LEFT else text(row), key)


def _difference(
    title: str, tip: str, value: Callable[[Difference], float]
) -> Column[Comparison]:
    """Return a column of a difference, which results of other shapes do not have."""

    def text(row: Comparison) -> str:
        return "" if row.difference.unlike else format_brief(value(row.difference))

    def key(row: Comparison) -> float:
        unlike = row.difference.unlike
        return float("inf") if unlike else _floor(row) + value(row.difference)

    return _measured(title, tip, text, key)


def _floor(row: Comparison) -> float:
    """Return what sorts operators that were not checked below all others."""
    return -1.0 if row.verdict is Verdict.LEFT else 0.0


def _beyond(row: Comparison) -> str:
    return format_count(row.difference.beyond) if row.difference.beyond else ""


def _beyond_key(row: Comparison) -> float:
    found = row.difference
    return found.count + 1 if found.unlike else _floor(row) + found.beyond


def _where(row: Comparison) -> str:
    return row.reason or row.difference.unlike or row.difference.words


_C = ComparisonColumn
_COLUMNS: Final[dict[ComparisonColumn, Column[Comparison]]] = {
    _C.INDEX: index_column(),
    _C.NAME: name_column("Name; a click selects it in the window"),
    _C.TYPE: text_column("Type", "Operator type", lambda row: row.operator.type),
    _C.KERNEL: text_column("Kernel", "Library and variant", lambda row: row.kernel),
    _C.VERDICT: text_column(
        "Verdict", "Whether it agrees with NumPy", lambda row: row.verdict.value
    ),
    _C.LARGEST: _difference(
        "Largest",
        "Largest absolute difference of two elements",
        lambda found: found.largest,
    ),
    _C.RELATIVE: _difference(
        "By largest",
        "Largest difference, relative to NumPy's largest number",
        lambda found: found.relative,
    ),
    _C.OF_ELEMENT: _difference(
        "By element",
        "Largest difference of two elements, relative to the larger of them",
        lambda found: found.of_element,
    ),
    _C.BEYOND: _measured(
        "Beyond", "Elements that differ by more than the tolerance", _beyond, _beyond_key
    ),
    _C.MS: _measured(
        "ms",
        "Milliseconds that the kernel took",
        lambda row: format_milliseconds(row.seconds),
        lambda row: row.seconds,
    ),
    _C.REFERENCE_MS: _measured(
        "NumPy ms",
        "Milliseconds that NumPy took",
        lambda row: format_milliseconds(row.reference_seconds),
        lambda row: row.reference_seconds,
    ),
    _C.WHERE: text_column("Where", "Elements that differ most: found, and NumPy's", _where),
}


class ComparisonsModel(OperatorRowsModel["Comparison"]):
    """Rows of a `SelfCheck`, in execution order."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__([_COLUMNS[column] for column in ComparisonColumn], parent)

    def show_result(self, found: SelfCheck) -> None:
        """Show a result."""
        self.show_rows(found.comparisons)

    @override
    def describe(self, row: Comparison) -> str:
        return row.sentence
