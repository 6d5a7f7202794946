"""Where the cells of an operand's picture lie on an input of the model, by receptive fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import TensorError
from engine.provenance.explaining import check_index
from engine.provenance.fields import FieldWalk
from engine.provenance.records import GridAlignment
from engine.values import ArrayMetadata

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.provenance.records import GridCell, Interval
    from engine.session import Session

__all__ = ["align_grid"]


def align_grid(
    session: Session,
    operand: str,
    source: str,
    axes: tuple[int, int],
    cells: Sequence[GridCell],
) -> GridAlignment | None:
    """Return how a grid of elements lies on an input: a cell lies about its field's middle.

    Parameters
    ----------
    session : Session
        In which the operand has a value. It does not change.
    operand : str
    source : str
        The input of the model.
    axes : (int, int)
        Rows and columns of the input.
    cells : sequence of GridCell
        Three: one, one of another row in its column, one of another column in its row. In a
        grid of a single row, or column, the place is the same.

    Returns
    -------
    GridAlignment or None
        None if the grid's rows and columns do not run along those of the input.

    Raises
    ------
    UnknownNameError, ValueNotComputedError
        As `Session.value`.
    TensorError
        If the operand is no tensor, or has no such elements.
    """
    metadata, whole = session.metadata(operand), session.metadata(source)
    if not isinstance(metadata, ArrayMetadata) or not isinstance(whole, ArrayMetadata):
        raise TensorError(f"operand {operand} or {source} is no tensor")
    walk = FieldWalk(session)
    fields = []
    for cell in cells:
        boxes = walk.follow(operand, check_index(metadata.shape, cell.index))
        if source not in boxes:
            return None
        fields.append((boxes[source][axes[0]], boxes[source][axes[1]]))
    first, below, beside = cells
    if _middle(fields[1][1]) != _middle(fields[0][1]):
        return None  # another row is elsewhere across the input, too
    if _middle(fields[2][0]) != _middle(fields[0][0]):
        return None
    sizes = whole.shape[axes[0]], whole.shape[axes[1]]
    rows = _line((fields[0][0], fields[1][0]), (first.row, below.row), sizes[0])
    columns = _line((fields[0][1], fields[2][1]), (first.column, beside.column), sizes[1])
    if any(line is not None and line[1] <= 0 for line in (rows, columns)):
        return None
    extent = (_length(fields[0][0]), _length(fields[0][1]))
    return GridAlignment(source, sizes, rows, columns, extent)


def _length(interval: Interval) -> int:
    low, high = interval.reach
    return high - low


def _middle(interval: Interval) -> float:
    return sum(interval.reach) / 2


def _line(
    fields: tuple[Interval, Interval], places: tuple[int, int], size: int
) -> tuple[float, float] | None:
    """Return where the first cell of a line begins on the input, and the size of a cell.

    Returns
    -------
    (float, float) or None
        None if both cells depend on the whole axis, so that their middles say nothing.
    """
    middles = [_middle(each) for each in fields]
    whole = [each for each in fields if (each.start, each.stop) == (0, size)]
    if any(each.low is None for each in whole) or (
        len(whole) == 2 and middles[0] == middles[1] and places[0] != places[1]
    ):
        return None
    if places[0] == places[1]:
        return float(fields[0].reach[0]), float(_length(fields[0]))
    step = (middles[1] - middles[0]) / (places[1] - places[0])
    return middles[0] - (places[0] + 0.5) * step, step
