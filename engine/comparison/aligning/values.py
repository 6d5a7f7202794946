"""The reference's values, and what our operators compute from them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.array_files import is_numeric
from engine.comparison.aligning.calls import function_of
from engine.comparison.aligning.limits import EXACT, NEAR, ROUNDED
from engine.comparison.aligning.state import Reading
from engine.comparison.computing import Computing
from engine.comparison.layouts import has_same_elements
from engine.comparison.measures import relative_distance
from engine.cost import is_free
from engine.errors import EngineError
from engine.ncnn.types import is_quantized
from engine.states import OperatorStatus
from engine.values import ArrayMetadata

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from engine.comparison.aligning.state import Sides, State
    from engine.runtime import RuntimeOperand, RuntimeOperator
    from engine.values import Array, Value

__all__ = ["Values", "shape_in_file"]

_KEEPING_ORDER: Final = frozenset(
    {"reshape", "view", "flatten", "unflatten", "squeeze", "unsqueeze", "reshapeas", "viewas"}
)


def shape_in_file(operand: RuntimeOperand) -> tuple[int, ...] | None:
    """Return the shape that the file states for an operand; None if a size is open."""
    if operand.shape is None or not all(type(size) is int for size in operand.shape):
        return None
    return tuple(size for size in operand.shape if isinstance(size, int))


class Values:
    """Reads the reference's values, and computes our operators on them.

    Parameters
    ----------
    sides : Sides
    state : State

    Attributes
    ----------
    in_numpy : bool
        Whether NumPy computes all operators.
    """

    def __init__(self, sides: Sides, state: State) -> None:
        self._sides, self._state, self._session = sides, state, sides.session
        self._computing = Computing(sides.session)
        self.in_numpy = self._computing.in_numpy
        # Layers that compute in int8: on the reference's values they are only near it.
        self._quantised = {o.index for o in sides.operators if is_quantized(o.params)}

    # Reading

    def read(self, operand: str, reading: Reading) -> Array | None:
        """Return a tensor in an operand's shape and dtype; None if it cannot be read."""
        try:
            array = self._sides.reference.array(reading.key)
            value = reading.layout.to_ours(array, reading.shape)
        except EngineError:
            return None
        dtype = self._dtype_of(operand)
        if dtype is not None and value.dtype != dtype:
            with np.errstate(invalid="ignore", over="ignore"):
                value = value.astype(dtype)
        value = value.view()
        value.flags.writeable = False
        return value

    def _dtype_of(self, operand: str) -> np.dtype[np.generic] | None:
        stand_in = self._state.stand_ins.get(operand)
        if isinstance(stand_in, np.ndarray):
            return stand_in.dtype
        if operand in self._computing.requantised:
            return np.dtype(np.float32)
        if self._session.has_value(operand):
            metadata = self._session.metadata(operand)
            if isinstance(metadata, ArrayMetadata):
                return metadata.dtype
        return self._session.graph.operand(operand).dtype

    def fit(self, key: str | None, operand: RuntimeOperand, result: Value) -> Reading | None:
        """Return how to read a tensor for an operand; None if it has another size.

        In its own shape, if the file states that one and ours has only as many elements.
        """
        reading = self._sides.fit(key, self.shapes_of(operand, result))
        if reading is None or reading.layout.axes or self._sides.has_plain_shape(reading):
            return reading
        theirs = self._sides.index.shapes[reading.key]
        changed = self.changes_shape(operand, reading.key, theirs)
        return Reading(reading.key, theirs) if changed else reading

    def changes_shape(self, operand: RuntimeOperand, key: str, theirs: tuple[int, ...]) -> bool:
        """Whether the file states a tensor's shape for an operand, and for all that it reads.

        Then a result of another shape is the operator's fault. What reads a wrong shape gives
        one as well. Of several results a tensor may be another's, unless the reference's call
        has as many, and this one at the same place.
        """
        producer = operand.producer
        if producer is None or theirs != shape_in_file(operand):
            return False
        if len(producer.outputs) > 1:
            place = producer.outputs.index(operand)
            if self._places.get(key) != (place, len(producer.outputs)):
                return False
        return all(map(self._has_stated_shape, producer.inputs))

    @cached_property
    def _places(self) -> Mapping[str, tuple[int, int]]:
        """Which result of how many of its call each tensor of the reference is."""
        return {
            key: (place, len(call.outputs))
            for call in self._sides.reference.operators
            for place, key in enumerate(call.outputs)
        }

    def shapes_of(self, operand: RuntimeOperand, result: Value) -> list[tuple[int, ...]]:
        """Return the possible shapes of an operand: computed here, in the run, in the file."""
        shapes = [result.shape] if isinstance(result, np.ndarray) else []
        if self._session.has_value(operand.name):
            shape = getattr(self._session.metadata(operand.name), "shape", None)
            if shape is not None:
                shapes.append(tuple(shape))
        of_file = shape_in_file(operand)
        return list(dict.fromkeys([*shapes, of_file] if of_file is not None else shapes))

    def _has_stated_shape(self, operand: RuntimeOperand) -> bool:
        """Whether the value that an operand is read as has the shape that the file states."""
        reading = self._state.reading_of(operand.name)
        stand_in = self._state.stand_ins.get(operand.name)
        shape = reading.shape if reading is not None else getattr(stand_in, "shape", None)
        return shape is not None and shape == shape_in_file(operand)

    def fit_own(self, key: str, operand: RuntimeOperand) -> Reading | None:
        """Return a tensor in its own shape, for an operand whose shape the file does not state.

        Without the axes of size 1 that the inputs lack, as those of ncnn lack the batch.
        """
        theirs, producer = self._sides.index.shapes.get(key), operand.producer
        if theirs is None or producer is None or operand.shape is not None:
            return None
        sources = [o for o in producer.inputs if self._state.is_matched(o.name)]
        sources = sources or [*self._session.graph.input_operands]
        readings = [self._state.reading_of(each.name) for each in sources]
        lacking = {
            len(self._sides.index.shapes[each.key]) - len(each.shape)
            for each in readings
            if each is not None and self._sides.is_plain(each)
        }
        if len(lacking) != 1:
            return None
        (count,) = lacking
        if count < 0 or any(size != 1 for size in theirs[:count]):
            return None
        return self._sides.fit(key, [theirs[count:]])

    def has_elements_of(self, key: str, result: Value) -> bool:
        """Whether a result has a tensor's elements in whatever order."""
        try:
            theirs = self._sides.reference.array(key)
        except EngineError:
            return False
        return isinstance(result, np.ndarray) and has_same_elements(theirs, result)

    def only_moves(self, operator: RuntimeOperator, result: Value) -> bool:
        """Whether a result has the elements of the first input in another order or shape.

        Others may only tell the shape. Not if it is the input itself: the reference may compute
        where we have an identity.
        """
        if not isinstance(result, np.ndarray) or not is_free(operator.type):
            return False
        if not operator.inputs or len(operator.outputs) != 1:
            return False
        name = operator.inputs[0].name
        reading = self._state.reading_of(name) or self._state.repeated.get(name)
        if reading is None:
            ours = self._state.stand_ins.get(name)
            return isinstance(ours, np.ndarray) and has_same_elements(ours, result)
        if not self.has_elements_of(reading.key, result):
            return False
        if result.shape != reading.shape:
            return True
        theirs = self.read(name, reading)
        return theirs is not None and relative_distance(result, theirs) > EXACT

    def may_move(
        self,
        operator: RuntimeOperator,
        operand: RuntimeOperand,
        reading: Reading,
        result: Value,
    ) -> bool:
        """Whether a tensor has the elements of a result that were only moved.

        A reshape keeps their order, whatever is wrong with its parameters.
        """
        if function_of(operator.type) not in _KEEPING_ORDER:
            return self.has_elements_of(reading.key, result)
        theirs = self.read(operand.name, reading)
        if theirs is None or not isinstance(result, np.ndarray) or theirs.size != result.size:
            return False
        return relative_distance(result.reshape(-1), theirs.reshape(-1)) <= EXACT

    # Computing

    def arguments(
        self, operator: RuntimeOperator, instead: Mapping[str, Value] | None = None
    ) -> list[Value] | None:
        """Return the reference's values of an operator's inputs; None if one is unknown.

        Parameters
        ----------
        operator : RuntimeOperator
        instead : mapping of str to Value, optional
            Values to take instead, by operand.
        """
        found: list[Value] = []
        for operand in operator.inputs:
            name = operand.name
            reading = self._state.reading_of(name)
            if instead is not None and name in instead:
                found.append(instead[name])
            elif reading is not None:
                value = self.read(name, reading)
                if value is None:
                    return None
                found.append(value)
            elif name in self._state.stand_ins:
                found.append(self._state.stand_ins[name])
            else:
                return None
        return found

    def knows_inputs(self, operator: RuntimeOperator) -> bool:
        """Whether the reference's values of all inputs are known, or ours instead."""
        names = [operand.name for operand in operator.inputs]
        state = self._state
        return all(state.is_matched(name) or name in state.stand_ins for name in names)

    def compute(
        self, operator: RuntimeOperator, arguments: Sequence[Value]
    ) -> tuple[tuple[Value, ...], str]:
        """Compute an operator; without a result, return None for each output, and why."""
        return self._computing.compute(operator, arguments)

    def compute_one(
        self,
        operator: RuntimeOperator,
        operand: RuntimeOperand,
        arguments: Sequence[Value] | None,
    ) -> Value:
        """Return one result of an operator; None if there is none."""
        if arguments is None:
            return None
        return self.compute(operator, arguments)[0][operator.outputs.index(operand)]

    def of_run(self, operator: RuntimeOperator) -> tuple[Value, ...] | None:
        """Return the results of our run, if it took the reference's inputs up to rounding."""
        session, record = self._session, self._session.record(operator.name)
        if session.memory_limit is not None:  # they may have to be computed again
            return None
        if record is None or record.status is not OperatorStatus.EXECUTED:
            return None
        if record.overrides or record.random:
            return None
        if any(operand.name not in self._state.as_run for operand in operator.inputs):
            return None
        results = [session.value(operand.name) for operand in operator.outputs]
        return self._computing.dequantise(operator, results)

    def tensor_of_run(self, operand: str) -> Array | None:
        """Return the tensor of our run, whose numbers a row shows; None if it is not there.

        Nor is one in int8, because its row shows the numbers that it stands for.
        """
        if not self._session.is_resident(operand) or operand in self._computing.requantised:
            return None
        value = self._session.value(operand)
        return value if isinstance(value, np.ndarray) and is_numeric(value) else None

    def is_quantised(self, operator: RuntimeOperator | None) -> bool:
        """Whether an operator computes in int8."""
        return operator is not None and operator.index in self._quantised

    def rounding_of(self, operator: RuntimeOperator, stand_ins: Iterable[str]) -> float:
        """Return how far rounding may take a result that was computed from stand-ins."""
        graph = self._session.graph
        producers = (operator, *(graph.operand(name).producer for name in stand_ins))
        return NEAR if any(map(self.is_quantised, producers)) else ROUNDED
