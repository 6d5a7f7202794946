"""One place through all operators: what each has there, whatever its resolution and layout."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.axes import infer_layouts, plan_view
from engine.axes.layout import SPATIAL, Axis, Kind, Layout
from engine.errors import EngineError, TensorError
from engine.provenance.explaining import check_index
from engine.provenance.records import PlaceHistory, Relation, Visit
from engine.values import ArrayMetadata

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from engine.axes import ViewPlan
    from engine.runtime import OperatorLabel, RuntimeGraph, RuntimeOperand
    from engine.session import Session
    from engine.values import Array

__all__ = ["trace_place"]

_SEQUENCES: Final = frozenset({Kind.TOKEN, Kind.QUERY, Kind.BOX})
_STRIP: Final = 256  # numbers of a strip
_MOST_WITHOUT_PLACE: Final = 1 << 16  # elements of a row for a whole operand
_BY_NAME: Final = {kind.value: kind for kind in SPATIAL}


def trace_place(
    session: Session,
    operand: str,
    index: Sequence[int],
    layouts: Mapping[str, Layout] | None = None,
    check_cancelled: Callable[[], None] | None = None,
) -> PlaceHistory:
    """Follow the place of an element through all operands.

    The place is a position along rows, columns, planes, time or tokens. In an operand of
    another resolution it is the position at the same share of the axis. Tokens that fold to a
    grid have rows and columns; a class token stays a class token; rolls and windows are undone.
    All elements of an operand at the place, such as its channels, form a row.

    Parameters
    ----------
    session : Session
        In which the operand has a value. It does not change.
    operand : str
    index : sequence of int
        One number per dimension; negative numbers count from the end.
    layouts : mapping of str to Layout, optional
        The user's, by operand.
    check_cancelled : callable, optional
        Called before each operand; its exception ends the work.

    Returns
    -------
    PlaceHistory

    Raises
    ------
    UnknownNameError, ValueNotComputedError
        As `Session.value`.
    TensorError
        If the operand is no tensor of numbers, or has no such element.
    """
    graph = session.graph
    picked = session.value(operand)
    if not isinstance(picked, np.ndarray) or picked.dtype.kind not in "biufc":
        raise TensorError(f"operand {operand} is no tensor of numbers")
    at = check_index(picked.shape, index)
    shapes = {name: _shape(session, name) for name in graph.operands}
    found = infer_layouts(graph, shapes, layouts)
    spot = _spot_of(found.get(operand), picked.shape, at)
    relations = _relations(graph, operand)
    visits, left_out = [], 0
    for operator in graph.operators:
        if operator.is_constant:
            continue
        for each in operator.outputs:
            if check_cancelled is not None:
                check_cancelled()
            if shapes[each.name] is None:
                continue
            layout = found.get(each.name)
            own = at if each.name == operand else None
            relation = relations.get(operator.index, Relation.BESIDE)
            visit = _visit(session, operator.label, each, layout, spot, own, relation)
            if visit is None:
                left_out += 1
            else:
                visits.append(visit)
    return PlaceHistory(operand, at, _describe(spot), tuple(visits), left_out)


def _shape(session: Session, operand: str) -> tuple[int, ...] | None:
    if not session.has_value(operand):
        return None
    metadata = session.metadata(operand)
    return metadata.shape if isinstance(metadata, ArrayMetadata) else None


@dataclass(slots=True)
class _Spot:
    """A place, without a resolution.

    Attributes
    ----------
    batch : int
    shares : dict of Kind to float
        Position along an axis as a share of its length, in [0, 1).
    words : dict of Kind to str
        The same in the picked operand's own positions.
    special : tuple of (Kind, int) or None
        A token that is outside the grid, such as the class token.
    token : float or None
        Position as a share of a sequence without a grid.
    """

    batch: int = 0
    shares: dict[Kind, float] = field(default_factory=dict)
    words: dict[Kind, str] = field(default_factory=dict)
    special: tuple[Kind, int] | None = None
    token: float | None = None

    def note(self, kind: Kind, position: int, size: int) -> None:
        self.shares[kind] = (position + 0.5) / size
        self.words[kind] = f"{position} of {size}"

    @property
    def is_known(self) -> bool:
        return bool(self.shares) or self.special is not None or self.token is not None


def _describe(spot: _Spot) -> str:
    """Return a place in words: ``row 3 of 7 · column 2 of 7``."""
    singular = {
        Kind.ROW: "row",
        Kind.COLUMN: "column",
        Kind.DEPTH: "plane",
        Kind.TIME: "time",
        Kind.FREQUENCY: "frequency",
        Kind.TOKEN: "token",
    }
    order = (Kind.TIME, Kind.FREQUENCY, Kind.DEPTH, Kind.ROW, Kind.COLUMN, Kind.TOKEN)
    parts = [f"{singular[kind]} {spot.words[kind]}" for kind in order if kind in spot.words]
    if spot.special is not None:
        kind, position = spot.special
        parts.append(f"{kind.value} token" + (f" {position}" if position else ""))
    return " · ".join(parts)


def _spot_of(layout: Layout | None, shape: tuple[int, ...], index: tuple[int, ...]) -> _Spot:
    """Return where an element of an operand is."""
    spot = _Spot()
    if layout is None or layout.shape != shape:
        return spot
    plan = _plan_of_windows(layout)
    folded = plan.place(index) if plan is not None else None
    if plan is not None and folded is not None:
        for role, position, size in zip(plan.roles, folded, plan.folded_shape, strict=True):
            if role.name in _BY_NAME:
                spot.note(_BY_NAME[role.name], position, size)
    for axis, position in zip(layout.axes, index, strict=True):
        if axis.kind is Kind.BATCH:
            spot.batch = position
        else:
            _note_axis(spot, axis, position)
    return spot


def _plan_of_windows(layout: Layout) -> ViewPlan | None:
    """Return how windows are joined to the image that they were split from."""
    parts = [part for axis in layout.axes for part in (axis, *axis.factors)]
    if Kind.WINDOW not in layout.kinds and all(part.stride == 1 for part in parts):
        return None
    sizes = [_size(axis) for axis in layout.axes]
    return plan_view(layout, tuple(sizes))


def _note_axis(spot: _Spot, axis: Axis, position: int) -> None:
    """Note the position along one axis, unless the plan of the whole operand told more."""
    part, start = axis, 0
    for segment in axis.segments:
        size = _size(segment)
        if position < start + size:
            part = segment
            break
        start += size
    position -= start
    parts = _spatial_parts(part)
    if parts:
        places = np.unravel_index(position, [_size(each) for each in parts])
        for each, place in zip(parts, places, strict=True):
            if each.kind not in spot.shares:
                size = _size(each)
                spot.note(each.kind, (int(place) - each.shift) % size, size)
    elif part is not axis and part.kind not in _SEQUENCES:
        spot.special = spot.special or (part.kind, position)
    elif axis.kind in _SEQUENCES and spot.token is None and not spot.shares:
        spot.token = (position + start + 0.5) / _size(axis)
        spot.words[Kind.TOKEN] = f"{position + start} of {_size(axis)}"


def _size(axis: Axis) -> int:
    return axis.size if isinstance(axis.size, int) else 1


def _spatial_parts(axis: Axis) -> tuple[Axis, ...]:
    """Return the axes that one dimension flattens, if all have neighbours."""
    if axis.kind in SPATIAL:
        return (axis,)
    inner = axis.factors if axis.kind in _SEQUENCES else ()
    return inner if inner and all(each.kind in SPATIAL for each in inner) else ()


def _select(
    layout: Layout | None, shape: tuple[int, ...], spot: _Spot
) -> tuple[list[int | slice], bool]:
    """Return what selects the place in an operand, and whether the operand has it."""
    chosen: list[int | slice] = [slice(None)] * len(shape)
    if layout is None or layout.shape != shape or 0 in shape:
        return chosen, False
    for place, axis in enumerate(layout.axes):
        if axis.kind is Kind.BATCH:
            chosen[place] = min(spot.batch, shape[place] - 1)
    plan = _plan_of_windows(layout)
    if plan is not None and _select_folded(plan, spot, chosen):
        return chosen, True
    placed: set[Kind] = set()
    for place, axis in enumerate(layout.axes):
        found = _position(axis, spot, placed)
        if found is not None:
            chosen[place] = found
    return chosen, bool(placed)


def _select_folded(plan: ViewPlan, spot: _Spot, chosen: list[int | slice]) -> bool:
    """Select a place in an operand that folds to pictures."""
    kinds = [_BY_NAME.get(role.name) for role in plan.roles]
    if not any(kind in spot.shares for kind in kinds if kind is not None):
        return False
    sizes = plan.folded_shape
    folded = [
        int(spot.shares[kind] * size) if kind is not None and kind in spot.shares else 0
        for kind, size in zip(kinds, sizes, strict=True)
    ]
    index = plan.index(tuple(folded))
    fixed = {
        cell
        for role, kind in zip(plan.roles, kinds, strict=True)
        if kind in spot.shares
        for cell in role.cells
    }
    first = 0
    for dimension, cells in enumerate(plan.cells):
        if fixed.intersection(range(first, first + len(cells))):
            chosen[dimension] = index[dimension]
        first += len(cells)
    return True


def _position(axis: Axis, spot: _Spot, placed: set[Kind]) -> int | None:
    """Return the position of a place along an axis; None if the axis does not have it."""
    start = 0
    for segment in axis.segments or (axis,):
        found = _within(segment, spot, placed, is_part=bool(axis.segments))
        if found is not None:
            return start + found
        start += _size(segment)
    if axis.kind in _SEQUENCES and spot.token is not None and axis.kind not in placed:
        placed.add(axis.kind)
        return int(spot.token * _size(axis))
    return None


def _within(axis: Axis, spot: _Spot, placed: set[Kind], *, is_part: bool) -> int | None:
    if is_part and spot.special is not None and axis.kind is spot.special[0]:
        placed.add(axis.kind)
        return min(spot.special[1], _size(axis) - 1)
    parts = _spatial_parts(axis)
    known = [each for each in parts if each.kind in spot.shares and each.kind not in placed]
    if not parts or len(known) != len(parts):
        return None
    placed.update([each.kind for each in parts])
    sizes = [_size(each) for each in parts]
    places = [
        (int(spot.shares[each.kind] * size) + each.shift) % size
        for each, size in zip(parts, sizes, strict=True)
    ]
    return int(np.ravel_multi_index(places, sizes))


def _relations(graph: RuntimeGraph, operand: str) -> dict[int, Relation]:
    """Return how operators are related to an operand; those beside it are left out."""
    producer = graph.operand(operand).producer
    found: dict[int, Relation] = {}
    if producer is None:
        return found
    found[producer.index] = Relation.PICKED
    above, below = [producer], [producer]
    while above:
        for source in [each.producer for each in above.pop().inputs]:
            if source is not None and source.index not in found:
                found[source.index] = Relation.UPSTREAM
                above.append(source)
    while below:
        for each in below.pop().outputs:
            for consumer in each.consumers:
                if consumer.index not in found:
                    found[consumer.index] = Relation.DOWNSTREAM
                    below.append(consumer)
    return found


def _visit(
    session: Session,
    operator: OperatorLabel,
    operand: RuntimeOperand,
    layout: Layout | None,
    spot: _Spot,
    own: tuple[int, ...] | None,
    relation: Relation,
) -> Visit | None:
    """Return the row of an operand; None if it has neither the place nor few elements."""
    try:
        array = session.value(operand.name)
    except EngineError:  # an evicted value that can no longer be computed
        return None
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "biufc":
        return None
    chosen, is_placed = _select(layout, array.shape, spot)
    if own is not None and not spot.is_known:
        chosen, is_placed = list(own), True
    part = array[tuple(chosen)]
    if not part.size:
        return None
    if not is_placed and (
        part.size > _MOST_WITHOUT_PLACE or (spot.is_known and _has_places(layout))
    ):
        return None
    values = np.asarray(np.abs(part) if part.dtype.kind == "c" else part, np.float64).reshape(
        -1
    )
    finite = values[np.isfinite(values)]
    index = own or _index_of_largest(np.asarray(part), chosen)
    value = array[index]
    return Visit(
        operator=operator,
        operand=operand.name,
        index=index,
        value=float(abs(value)) if array.dtype.kind == "c" else float(value),
        relation=relation,
        is_placed=is_placed,
        count=values.size,
        minimum=float(finite.min()) if finite.size else np.nan,
        maximum=float(finite.max()) if finite.size else np.nan,
        mean=float(finite.mean()) if finite.size else np.nan,
        zeros=int(np.count_nonzero(values == 0)),
        non_finite=values.size - finite.size,
        strip=_strip(values),
    )


def _has_places(layout: Layout | None) -> bool:
    """Whether an operand has positions, of which the place is none."""
    return layout is not None and any(
        _size(part) > 1 and (part.kind in _SEQUENCES or bool(_spatial_parts(part)))
        for axis in layout.axes
        for part in (axis.segments or (axis,))
    )


def _index_of_largest(part: Array, chosen: Sequence[int | slice]) -> tuple[int, ...]:
    """Return the index of the element that is farthest from zero; of a NaN, if there is one."""
    flat = np.abs(part.reshape(-1).astype(np.complex128 if part.dtype.kind == "c" else float))
    rest = iter(np.unravel_index(int(flat.argmax()), part.shape))
    return tuple([each if isinstance(each, int) else int(next(rest)) for each in chosen])


def _strip(values: Array) -> Array:
    """Return at most `_STRIP` numbers: of each run of neighbours the one farthest from zero."""
    with np.errstate(over="ignore"):
        if values.size <= _STRIP:
            return values.astype(np.float32)
        edges = np.linspace(0, values.size, _STRIP + 1).astype(np.intp)
        low = np.minimum.reduceat(values, edges[:-1])
        high = np.maximum.reduceat(values, edges[:-1])
        return np.where(-low > high, low, high).astype(np.float32)
