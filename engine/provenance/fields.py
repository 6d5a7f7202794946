"""Receptive fields: which part of the model's inputs an element depends on.

A region of an operand, a box, is followed upstream through every operator. It never misses a
position: where an operator has no rule, all of its inputs count, and the result says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary, ref

from engine.collector import collector_paused
from engine.errors import TensorError
from engine.layers import size as sizes
from engine.layers.binding import code_of
from engine.provenance.call import CANNOT, Call
from engine.provenance.explaining import check_index, location_of
from engine.provenance.masked import leave_out_hidden
from engine.provenance.records import Interval, ReceptiveField, Source, join_boxes
from engine.values import ArrayMetadata

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.provenance.records import Box
    from engine.provenance.table import Locate
    from engine.runtime import RuntimeOperator
    from engine.runtime.operator import OperatorLabel
    from engine.session import Session
    from engine.store import StepOutputs

__all__ = ["FieldWalk", "receptive_field"]

_SIZES = frozenset({sizes.size, sizes.dim_count, sizes.element_count})


def receptive_field(session: Session, operand: str, index: Sequence[int]) -> ReceptiveField:
    """Return which part of the model's inputs an element depends on.

    The region of each input is a box. Changing what lies outside never changes the element,
    as long as no shape changes. Where all operators are convolutions and poolings whose windows
    leave no gaps, no smaller box has this property.

    Parameters
    ----------
    session : Session
        In which the operand has a value. It does not change.
    operand : str
    index : sequence of int
        One number per dimension; negative numbers count from the end.

    Returns
    -------
    ReceptiveField

    Raises
    ------
    UnknownNameError, ValueNotComputedError
        As `Session.value`.
    TensorError
        If the operand is no tensor, or has no such element.
    """
    metadata = session.metadata(operand)
    if not isinstance(metadata, ArrayMetadata):
        raise TensorError(f"operand {operand} is no tensor")
    place = check_index(metadata.shape, index)
    walk = FieldWalk(session)
    with collector_paused():  # collecting took three quarters of the time in a deep network
        boxes = walk.follow(operand, place)
        passed = walk.operators
        walk.remembers = False
        moved = _move(walk, operand, place, metadata.shape)
    sources = []
    for each in session.graph.input_operands:
        box = boxes.get(each.name)
        found = session.metadata(each.name) if box is not None else None
        if box is None or not isinstance(found, ArrayMetadata):
            continue
        steps = [_step(each.name, axis, box, place, moved) for axis in range(len(box))]
        stride = tuple([step for step, _ in steps])
        offset = tuple([start for _, start in steps])
        sources.append(Source(each.name, found.shape, box, stride, offset))
    guessed = tuple(walk.guessed.values())
    return ReceptiveField(operand, place, tuple(sources), guessed, passed)


class _Moved(NamedTuple):
    """What two other elements depend on.

    Attributes
    ----------
    steps : dict of int to (int, int)
        By dimension, counted from the last: how far the element moves along it in both.
    boxes : tuple of (mapping of str to Box)
        Of both elements, by operand.
    """

    steps: dict[int, tuple[int, int]]
    boxes: tuple[Mapping[str, Box], ...]


def _move(
    walk: FieldWalk, operand: str, index: tuple[int, ...], shape: tuple[int, ...]
) -> dict[int, _Moved]:
    """Return what other elements along each spatial dimension depend on.

    The dimensions are counted from the last. Two elements each, because the regions of a
    transposed convolution do not move by equal steps. Rows and columns share theirs: an element
    moves by one row and two columns, the other by two rows and one column. So a region that
    follows one dimension moves twice as far in one of them; one that follows both does not.
    """
    found: dict[int, _Moved] = {}
    wide = [axis for axis in range(-1, -min(len(shape) - 2, 3) - 1, -1) if shape[axis] >= 3]
    plane = [axis for axis in wide if axis >= -2]
    for axes in (plane, [axis for axis in wide if axis < -2]):
        steps: dict[int, tuple[int, int]] = {}
        for axis, far in zip(axes, ((1, 2), (2, 1)), strict=False):
            sign = 1 if index[axis] + 2 < shape[axis] else -1
            steps[axis] = (sign * far[0], sign * far[1])
        boxes = []
        for each in range(2 if steps else 0):
            other = list(index)
            for axis, far in steps.items():
                other[axis] += far[each]
            boxes.append(walk.follow(operand, tuple(other)))
        found |= dict.fromkeys(steps, _Moved(steps, tuple(boxes)))
    return found


def _step(
    name: str, axis: int, box: Box, index: tuple[int, ...], moved: Mapping[int, _Moved]
) -> tuple[int | None, int | None]:
    """Return the stride and the offset of an axis; None where they are unknown."""
    from_last = axis - len(box)
    found = moved.get(from_last)
    low, high = box[axis][2:]
    if found is None or low is None or high is None:
        return None, None
    distances = set()
    for far, boxes in zip(found.steps[from_last], found.boxes, strict=True):
        other = boxes[name][axis] if name in boxes else Interval(0, 0)
        if other.low is None or other.high is None:
            return None, None
        distances |= {(other.low - low) / far, (other.high - high) / far}
    distance = distances.pop()
    if distances or not distance or not distance.is_integer():
        return None, None
    return int(distance), low - int(distance) * index[from_last]


class _Located(NamedTuple):
    """The regions of an operator's inputs, by operand, that a region depends on.

    Attributes
    ----------
    regions : mapping of str to Box
    guessed : bool
        Whether all of them count because there is no rule.
    """

    regions: Mapping[str, Box]
    guessed: bool = False


class _Rule(NamedTuple):
    """How the regions of an operator's inputs are found.

    Attributes
    ----------
    call : Call
    locate : Locate or None
        None if there is no rule.
    others : mapping of str to Box
        Inputs that are no arrays, such as a computed size.
    """

    call: Call
    locate: Locate | None
    others: Mapping[str, Box]


class _Known(NamedTuple):
    """What walks have found at an operator.

    Attributes
    ----------
    step : ref of StepOutputs
        The step that it holds for: regions may depend on values, such as indices.
    found : dict of (int, Box) to _Located
        By output and region.
    """

    step: ref[StepOutputs]
    found: dict[tuple[int, Box], _Located]


_KNOWN: Final[WeakKeyDictionary[Session, dict[str, _Known]]] = WeakKeyDictionary()
_MOST_KNOWN: Final = 256  # regions of one operator


class FieldWalk:
    """Follows boxes upstream; what was found once in a run is not computed again.

    Parameters
    ----------
    session : Session

    Attributes
    ----------
    guessed : dict of str to OperatorLabel
        Operators whose inputs all counted, by name.
    operators : int
        How many operators the last walk passed.
    remembers : bool
        Whether later walks, also of others, shall not compute again what this one finds.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._rules: dict[tuple[str, int], _Rule] = {}
        self._known = _KNOWN.setdefault(session, {})
        self.guessed: dict[str, OperatorLabel] = {}
        self.operators = 0
        self.remembers = True

    def follow(self, operand: str, index: tuple[int, ...]) -> Mapping[str, Box]:
        """Return the boxes of all operands that an element depends on."""
        boxes: dict[str, Box] = {
            operand: tuple([Interval(at, at + 1, at, at + 1) for at in index])
        }
        graph = self._session.graph
        producer = graph.operand(operand).producer
        waiting = {producer.index} if producer is not None else set()
        self.operators = 0
        while waiting:
            position = max(waiting)  # all consumers of its outputs have been passed
            waiting.remove(position)
            operator = graph.operators[position]
            if not operator.inputs:
                continue
            self.operators += 1
            reached = [graph.operand(name) for name in self._pass(operator, boxes)]
            waiting |= {each.producer.index for each in reached if each.producer is not None}
        return boxes

    def _pass(self, operator: RuntimeOperator, boxes: dict[str, Box]) -> set[str]:
        """Add the regions that an operator's outputs depend on; return their operands."""
        reached: set[str] = set()
        for place, output in enumerate(operator.outputs):
            box = boxes.get(output.name)
            if box is None or output.name in self._session.overrides:
                continue
            located = self._look_up(operator, place, box)
            if located.guessed:
                self.guessed[operator.name] = operator.label
            for name, region in located.regions.items():
                boxes[name] = join_boxes(boxes.get(name), region)
            reached |= located.regions.keys()
        return reached

    def _look_up(self, operator: RuntimeOperator, place: int, box: Box) -> _Located:
        """Return the regions of the inputs, which no other walk through this step computes."""
        record = self._session.record(operator.name)
        if record is None:
            return self._locate(operator, place, box)
        known = self._known.get(operator.name)
        if known is None or known.step() is not record.outputs:
            known = self._known[operator.name] = _Known(ref(record.outputs), {})
        if len(known.found) >= _MOST_KNOWN:
            known.found.clear()
        key = place, box
        found = known.found.get(key)
        if found is None:
            found = self._locate(operator, place, box)
            if self.remembers:
                known.found[key] = found
        return found

    def _locate(self, operator: RuntimeOperator, place: int, box: Box) -> _Located:
        layer = operator.layer
        if layer is not None and code_of(layer) in _SIZES:
            return _Located({})
        try:
            rule = self._rule(operator, place)
            if rule.locate is not None:
                regions = leave_out_hidden(
                    self._session, rule.call.operator, rule.locate(rule.call, box)
                )
                return _Located({**regions, **rule.others})
        except CANNOT:
            pass
        found: dict[str, Box] = {}
        for each in operator.inputs:
            metadata = self._session.metadata(each.name)
            found[each.name] = (
                tuple([Interval.whole(size) for size in metadata.shape])
                if isinstance(metadata, ArrayMetadata)
                else ()
            )
        return _Located(found, guessed=True)

    def _rule(self, operator: RuntimeOperator, place: int) -> _Rule:
        key = operator.name, place
        found = self._rules.get(key)
        if found is None:
            call = Call.of(self._session, operator, place)
            pairs = zip(call.operator.inputs, call.inputs, strict=True)
            others: dict[str, Box] = {
                each.name: () for each, given in pairs
                if isinstance(given, (tuple, int, float, str))
            }  # fmt: skip
            found = self._rules[key] = _Rule(call, location_of(call.layer), others)
        return found
