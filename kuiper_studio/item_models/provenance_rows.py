"""Item model of the terms that make an element, the largest first."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from PySide6.QtCore import QObject, Qt
from typing_extensions import override

from engine.provenance.records import Kind
from engine.text import format_number
from kuiper_studio.item_models.operator_rows import LOOK_ROLE, CellLook
from kuiper_studio.item_models.provenance_texts import format_element
from kuiper_studio.item_models.rows_model import Index, RowsModel
from kuiper_studio.item_models.text import tip_text
from kuiper_studio.session.asking import Place

if TYPE_CHECKING:
    from engine.provenance.records import Breakdown, Factor, Terms

__all__ = ["PLACE_ROLE", "TermColumn", "TermsModel"]

PLACE_ROLE: Final = Qt.ItemDataRole.UserRole + 4
"""The `Place` that a cell leads to, or None."""

_MOST_ROWS: Final = 500


class TermColumn(IntEnum):
    """Columns of the table."""

    INPUT = 0
    VALUE = 1
    WEIGHT = 2
    PRODUCT = 3


_COLUMNS: Final = (
    ("Input", "Index of the element that went in; a click goes there"),
    ("value", "Its value"),
    ("weight", "What it was multiplied with"),
    ("product", "What it adds to the element"),
)


class _Cell(NamedTuple):
    """One factor of a term.

    Attributes
    ----------
    text : str
        Its index.
    value : float
    place : Place or None
        Where it leads; None for a weight and for padding.
    """

    text: str
    value: float
    place: Place | None


class _Row(NamedTuple):
    """One term.

    Attributes
    ----------
    cells : tuple of _Cell
    product : float
    """

    cells: tuple[_Cell, ...]
    product: float


class TermsModel(RowsModel):
    """The terms of a breakdown, or of one of its channels, by size."""

    def __init__(self, parent: QObject | None = None) -> None:
        right = (TermColumn.VALUE, TermColumn.WEIGHT, TermColumn.PRODUCT)
        super().__init__(_COLUMNS, right, parent)
        self._terms: Terms | None = None
        self._order: list[int] = []  # of the listed terms
        self._made: dict[int, _Row] = {}  # those that were looked at
        self._of_factors = False  # whether each factor is a row of its own
        self.left_out = 0
        self.rest = 0.0

    def show(self, breakdown: Breakdown | None, group: int | None = None) -> None:
        """Show terms.

        Parameters
        ----------
        breakdown : Breakdown or None
        group : int, optional
            Position along the first dimension of the terms; all by default.

        Notes
        -----
        `left_out` is the number of terms that are too small to be listed, and `rest` their sum.
        """
        self.beginResetModel()
        self._terms, self._order, self._of_factors = None, [], False
        self._made.clear()
        self.left_out, self.rest = 0, 0.0
        if breakdown is not None:
            self._fill(breakdown, group)
        self.endResetModel()

    def _fill(self, breakdown: Breakdown, group: int | None) -> None:
        terms = self._terms = breakdown.terms
        if breakdown.kind is Kind.FUNCTION and terms.shape == (len(terms.factors),):
            self._order, self._of_factors = list(range(len(terms.factors))), True
            return
        size = len(terms.products) // max(1, terms.shape[0] if terms.shape else 1)
        chosen = np.arange(len(terms.products))
        if group is not None:
            chosen = chosen[group * size : (group + 1) * size]
        magnitudes = np.abs(np.nan_to_num(terms.products[chosen], nan=np.inf))
        order = chosen[np.argsort(-magnitudes, kind="stable")]
        shown, rest = order[:_MOST_ROWS], order[_MOST_ROWS:]
        self.left_out, self.rest = len(rest), float(terms.products[rest].sum())
        self._order = shown.tolist()

    def _row(self, number: int) -> _Row:
        """Return a row, which is made when it is looked at."""
        found = self._made.get(number)
        terms = self._terms
        if found is None and terms is not None:
            at = self._order[number]
            if self._of_factors:
                factor = terms.factors[at]
                found = _Row((_cell(factor, 0),), float(factor.values[0]))
            else:
                cells = tuple([_cell(each, at, terms) for each in terms.factors])
                found = _Row(cells, float(terms.products[at]))
            self._made[number] = found
        if found is None:
            raise IndexError(number)
        return found

    def row_of(self, term: int) -> int:
        """Return the row of a term; -1 if it is not listed."""
        return self._order.index(term) if term in self._order else -1

    # Overrides of `RowsModel` and Qt

    @override
    def count_rows(self) -> int:
        return len(self._order)

    @override
    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        row, column = self._row(index.row()), TermColumn(index.column())
        if role in {Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole}:
            return _text(row, column)
        if role == PLACE_ROLE:
            return _place(row, column)
        if role == LOOK_ROLE:
            return CellLook("link" if _place(row, column) is not None else "text2")
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return self.alignment(column)
        if role == Qt.ItemDataRole.ToolTipRole:
            texts = [f"{cell.text} = {cell.value:.9g}" for cell in row.cells]
            return tip_text(" · ".join([*texts]) + f"\nproduct {row.product:.9g}")
        return None


def _cell(factor: Factor, term: int, terms: Terms | None = None) -> _Cell:
    at = 0 if len(factor.values) == 1 else term
    index = tuple(factor.indices[at].tolist())
    value = float(factor.values[at])
    if any(place < 0 for place in index):
        return _Cell("padding", value, None)
    text = format_element(factor.name, index) if index or factor.is_operand else factor.name
    if terms is not None and not index and not factor.is_operand and len(terms.products) > 1:
        # Numbers that the operator computes: what tells them apart is their place.
        places = np.unravel_index(term, terms.shape)
        text = " · ".join([
            f"{axis} {int(place)}" for axis, place in zip(terms.axes, places, strict=True)
        ])  # fmt: skip
        text = f"{factor.name} · {text}" if len(terms.axes) == 1 else text
    return _Cell(text, value, Place(factor.name, index) if factor.is_operand else None)


def _text(row: _Row, column: TermColumn) -> str:
    if column is TermColumn.PRODUCT:
        return format_number(row.product)
    if column is TermColumn.WEIGHT:
        return " · ".join([format_number(cell.value) for cell in row.cells[1:]])
    if not row.cells:
        return "constant" if column is TermColumn.INPUT else ""
    return (
        row.cells[0].text if column is TermColumn.INPUT else format_number(row.cells[0].value)
    )


def _place(row: _Row, column: TermColumn) -> Place | None:
    """Return where a cell leads: the weight's to a second operand, the others to the first."""
    places = [cell.place for cell in row.cells]
    if column is TermColumn.WEIGHT:
        return next((place for place in places[1:] if place is not None), None)
    if column is TermColumn.PRODUCT:
        return None
    return places[0] if places else None
