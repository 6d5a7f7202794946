"""Runs a model in NumPy with some operators in a format of lower precision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from engine.errors import EngineError, SessionStateError
from engine.pnnx import Attribute
from engine.precision.formats import is_float, round_to, round_value
from engine.precision.loss import LOST, measure_loss, measure_storage
from engine.recipes import WEIGHT
from engine.states import OperatorStatus, SessionState
from engine.values import flatten_value

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from engine.precision.formats import Format
    from engine.precision.loss import Loss, Storage
    from engine.runtime import RuntimeOperator
    from engine.session import Session
    from engine.values import Array, Value

__all__ = ["CancelledError", "LoweredRuns", "RunFailedError"]

_MATRIX: Final = 2  # dimensions of the smallest weight that int8 schemes round
_ULP: Final = 2.0**-23  # by which sums of float32 differ in another order, relative


class CancelledError(Exception):
    """The caller has cancelled the work."""


class RunFailedError(Exception):
    """An operator fails with rounded numbers, but not with exact ones."""


class LoweredRuns:
    """Runs of one model with some operators in a format.

    Parameters
    ----------
    session : Session
        With inputs; not changed. Its model runs once in float32.
    cancelled : callable, optional
        Asked between operators; True ends a run.

    Attributes
    ----------
    reference : Session
        The run in float32, by NumPy.
    operators : tuple of RuntimeOperator
        Those that ran and have floating-point weights or outputs.
    computed : int
        Number of operators computed in all runs so far.

    Raises
    ------
    SessionStateError
        If the session has no input.
    InferenceError
        If an operator fails.
    """

    def __init__(self, session: Session, cancelled: Callable[[], bool] | None = None) -> None:
        if session.state is SessionState.NEED_INPUT:
            raise SessionStateError("the session has no input yet: feed() it first")
        self.reference = session.fork("numpy")
        self._cancelled = cancelled
        self.reference.run(cancelled=cancelled)
        self.require_going()
        self._ran = [
            operator
            for operator in self.reference.graph.operators
            if not (operator.is_input or operator.is_output)
            and self.reference.status(operator.name) is OperatorStatus.EXECUTED
        ]
        self.operators = tuple(operator for operator in self._ran if self._stores(operator))
        self.computed = 0
        self._last_use = {
            operand.name: max((each.index for each in operand.consumers), default=-1)
            for operator in self._ran
            for operand in operator.outputs
        }
        self._of_model = [
            operand.name
            for operand in self.reference.graph.output_operands
            if self.reference.has_value(operand.name)
        ]
        self._copies: dict[tuple[str, int], RuntimeOperator] = {}

    @property
    def passes(self) -> float:
        """Total work of all runs, in passes of the model."""
        return self.computed / len(self._ran) if self._ran else 0.0

    @property
    def outputs(self) -> list[Value]:
        """The model's outputs in float32."""
        return [self.reference.value(name) for name in self._of_model]

    def require_going(self) -> None:
        """Raise an error if the caller has cancelled.

        Raises
        ------
        CancelledError
        """
        if self._cancelled is not None and self._cancelled():
            raise CancelledError

    def outputs_of(self, operator: RuntimeOperator) -> list[Value]:
        """Return an operator's outputs in float32."""
        return [self.reference.value(operand.name) for operand in operator.outputs]

    def rounded_weights(
        self,
        operator: RuntimeOperator,
        format: Format,  # noqa: A002
    ) -> dict[str, tuple[Array, Array]]:
        """Return the weights that a format changes, each before and after.

        int8 rounds only weights of two dimensions or more: vectors such as biases stay in
        float32, as in every library.
        """
        if operator.type == WEIGHT:  # its output is the weight, which is rounded as an output
            return {}
        axis = (1 if "ConvTranspose" in operator.type else 0) if format.per_channel else None
        return {
            key: (attribute.array, round_to(attribute.array, format, axis))
            for key, attribute in operator.attributes.items()
            if attribute.dtype.kind == "f"
            and not (format.is_scaled and attribute.ndim < _MATRIX)
        }

    def run(
        self,
        lowered: Collection[int],
        format: Format,  # noqa: A002 - the field's word
        visit: Callable[[RuntimeOperator, Sequence[Value]], None] | None = None,
        *,
        reading: bool = True,
        noise: np.random.Generator | None = None,
    ) -> list[Value]:
        """Run the model with some operators in a format.

        Computes only these and the operators that depend on them.

        Parameters
        ----------
        lowered : collection of int
            Indices of operators that hold their weights and store their outputs in `format`.
        format : Format
        visit : callable, optional
            Called with each computed operator and its outputs.
        reading : bool
            Whether lowered operators also read float32 inputs in `format`, as in ncnn.
        noise : numpy.random.Generator, optional
            Changes the last digit of what is computed, as another order of its sums does.

        Returns
        -------
        list of Value
            The model's outputs.

        Raises
        ------
        RunFailedError
            If an operator fails with rounded numbers.
        CancelledError
        """
        changed: dict[str, Value] = {}
        for operator in self._ran:
            low = operator.index in lowered
            if not low and not self._depends_on(operator, changed):
                continue
            self.require_going()
            inputs = self._inputs_of(operator, changed)
            if low and reading:
                inputs = self._read(operator, inputs, lowered, format)
            results = self._compute(operator, inputs, format if low else None, noise)
            changed |= results
            if visit is not None:
                visit(operator, list(results.values()))
            for operand in operator.inputs:
                used_up = self._last_use.get(operand.name) == operator.index
                if used_up and operand.name not in self._of_model:
                    changed.pop(operand.name, None)
        return [self._value(name, changed) for name in self._of_model]

    def measure(
        self,
        lowered: Collection[int],
        format: Format,  # noqa: A002
        visit: Callable[[RuntimeOperator, Sequence[Value]], None] | None = None,
        *,
        reading: bool = True,
        noise: np.random.Generator | None = None,
    ) -> Loss:
        """Return the loss of the model's outputs in a run; see `run`.

        Returns
        -------
        Loss
            `LOST` if an operator fails with rounded numbers.

        Raises
        ------
        CancelledError
        """
        try:
            found = self.run(lowered, format, visit, reading=reading, noise=noise)
        except RunFailedError:
            return LOST
        return measure_loss(found, self.outputs)

    def measure_outputs(
        self,
        operator: RuntimeOperator,
        format: Format,  # noqa: A002
    ) -> Storage | None:
        """Measure how well a format can store an operator's outputs; None without numbers."""
        exact = self.outputs_of(operator)
        if not any(map(is_float, flatten_value(tuple(exact)))):
            return None
        return measure_storage(exact, [round_value(v, format) for v in exact], format)

    def run_alone(
        self,
        operator: RuntimeOperator,
        format: Format,  # noqa: A002
    ) -> list[Value]:
        """Return the outputs of one operator in a format, computed from float32 inputs.

        Raises
        ------
        RunFailedError, CancelledError
            As for `run`.
        """
        self.require_going()
        return list(self._compute(operator, self._inputs_of(operator, {}), format).values())

    def forget_weights(self) -> None:
        """Free the rounded weights of earlier runs."""
        self._copies.clear()

    def _value(self, name: str, changed: Mapping[str, Value]) -> Value:
        return changed[name] if name in changed else self.reference.value(name)

    def _inputs_of(
        self, operator: RuntimeOperator, changed: Mapping[str, Value]
    ) -> list[Value]:
        if self._is_given(operator):  # its inputs may be missing
            return []
        return [self._value(operand.name, changed) for operand in operator.inputs]

    def _depends_on(self, operator: RuntimeOperator, changed: Mapping[str, Value]) -> bool:
        inputs = operator.inputs
        return any(o.name in changed for o in inputs) and not self._is_given(operator)

    def _is_given(self, operator: RuntimeOperator) -> bool:
        names = {operand.name for operand in operator.outputs}
        return bool(names) and names <= self.reference.overrides.keys()

    def _read(
        self,
        operator: RuntimeOperator,
        inputs: Sequence[Value],
        lowered: Collection[int],
        format: Format,  # noqa: A002
    ) -> list[Value]:
        """Round the inputs that are stored in float32."""
        return [
            value
            if operand.producer is not None and operand.producer.index in lowered
            else round_value(value, format)
            for operand, value in zip(operator.inputs, inputs, strict=False)
        ]

    def _compute(
        self,
        operator: RuntimeOperator,
        inputs: Sequence[Value],
        format: Format | None,  # noqa: A002
        noise: np.random.Generator | None = None,
    ) -> dict[str, Value]:
        names = [operand.name for operand in operator.outputs]
        overrides = self.reference.overrides
        results = {name: overrides[name].value for name in names if name in overrides}
        self.computed += 1
        with self.reference.within_bound():
            if len(results) < len(names):
                used = operator if format is None else self._in(operator, format)
                seed = self.reference.seed
                generator = operator.generator(seed) if operator.random else None
                try:
                    found = used.forward(inputs, generator)
                except EngineError as exc:
                    raise RunFailedError(str(exc)) from exc
                if noise is not None:
                    found = tuple(_in_other_order(value, noise) for value in found)
                results = dict(zip(names, found, strict=True)) | results
            if format is None:
                return results
            return {name: round_value(value, format) for name, value in results.items()}

    def _in(self, operator: RuntimeOperator, format: Format) -> RuntimeOperator:  # noqa: A002
        """Return a copy of an operator with rounded weights."""
        if not operator.has_attributes:
            return operator
        key = format.name, operator.index
        if key not in self._copies:
            weights = self.rounded_weights(operator, format)
            changed = {k: Attribute.from_array(new) for k, (_, new) in weights.items()}
            self._copies[key] = operator.copy_with(changed)
        return self._copies[key]

    def _stores(self, operator: RuntimeOperator) -> bool:
        members = flatten_value(tuple(self.outputs_of(operator)))
        return any(map(is_float, members)) or any(
            np.dtype(each.dtype).kind == "f" for each in operator.attributes.values()
        )


def _in_other_order(value: Value, noise: np.random.Generator) -> Value:
    """Return float32 numbers with other last digits; whole ones, which are exact, stay."""
    if not isinstance(value, np.ndarray) or value.dtype != np.float32:
        return value
    factors = 1 + _ULP * noise.uniform(-1, 1, value.shape)
    changed = (value * factors).astype(np.float32)
    return np.where(value == np.rint(value), value, changed)
