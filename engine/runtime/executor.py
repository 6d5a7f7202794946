"""Executes operators, for sessions and for `RuntimeGraph.forward`.

An operator that cannot run, or whose inputs are missing, has a record with the reason. One that
fails raises an error, with a diagnosis of the whole run if there is one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.errors import InferenceError, LayerError, UnsupportedOperatorError
from engine.memory_bound import format_memory_error
from engine.runtime.activity import announce
from engine.runtime.failure_diagnosis import diagnose_failure
from engine.runtime.kernel import REFERENCE, SUPPLIED
from engine.states import ExecutedStep, OperatorStatus
from engine.store import StepOutputs
from engine.values import describe_value, materialise_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.random import Generator

    from engine.runtime.failure_diagnosis import ShapeOf
    from engine.runtime.kernel import Kernel, KernelTable
    from engine.runtime.operator import RuntimeOperand, RuntimeOperator
    from engine.values import Array, Held, Value, ValueMetadata

__all__ = ["Executor", "OperatorStatus", "Override", "RunInputs", "StepRecord", "run_kernel"]

_NO_OVERRIDES: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class StepRecord(ExecutedStep):
    """One executed step.

    Attributes
    ----------
    index : int
        Position in execution order.
    operator : RuntimeOperator
    outputs : StepOutputs
        A mapping of operand names to values; arrays are read-only. With a memory limit values
        may have been evicted, and are recomputed when they are read.
    seconds : float
        Time in the kernel.
    status : OperatorStatus
    kernel : str
        Name of the kernel: the backend, a slash and its variant, e.g. ``onnxruntime/all-2``;
        ``supplied`` for the user's values, ``""`` if nothing was computed.
    reason : str
        Why it did not run; ``""`` if it did.
    overrides : mapping of str to str
        Source of each overridden output, by operand name.
    seed : int or None
        The seed of its random numbers; None if it drew none.
    """

    index: int
    operator: RuntimeOperator
    outputs: StepOutputs = field(repr=False)
    seconds: float
    status: OperatorStatus
    kernel: str = ""
    reason: str = ""
    overrides: Mapping[str, str] = field(default_factory=dict)
    seed: int | None = None

    @property
    def metadata(self) -> tuple[ValueMetadata, ...]:
        """The outputs without their elements, in order."""
        return tuple([self.outputs.metadata(name) for name in self.outputs])


@dataclass(frozen=True, slots=True)
class Override:
    """A value of the user that replaces a computed one.

    Attributes
    ----------
    value : Value
        Read-only.
    source : str
        Where it comes from, e.g. the name of a file; ``""`` if unknown.
    """

    value: Value = field(repr=False)
    source: str = ""


@dataclass(slots=True)
class RunInputs:
    """The inputs, overrides and seed of a run.

    Attributes
    ----------
    fed : dict of str to Array
        The model's inputs by operand name.
    overrides : dict of str to Override
        By operand name.
    seed : int
        Of the random numbers.
    """

    fed: dict[str, Array] = field(default_factory=dict)
    overrides: dict[str, Override] = field(default_factory=dict)
    seed: int = 0


class Executor:
    """Executes one operator after the other.

    Parameters
    ----------
    operators : sequence of RuntimeOperator
        In execution order.
    input_operands : sequence of RuntimeOperand
        Of the model.
    inputs : RunInputs
        May change between steps.
    kernels : KernelTable, optional
        What computes; the operators' own layers by default.
    """

    def __init__(
        self,
        operators: Sequence[RuntimeOperator],
        input_operands: Sequence[RuntimeOperand],
        inputs: RunInputs,
        kernels: KernelTable | None = None,
    ) -> None:
        self._input_operands, self._inputs, self._kernels = input_operands, inputs, kernels
        self._plans = _Plans(operators)

    def execute(
        self, operator: RuntimeOperator, values: Mapping[str, Held], shape_of: ShapeOf
    ) -> StepRecord:
        """Execute an operator.

        Parameters
        ----------
        operator : RuntimeOperator
        values : mapping of str to Held
            Values of upstream operators, by operand name.
        shape_of : callable
            For a diagnosis: shape of any computed operand by name, also of one that is no
            longer in `values`; None if it has none.

        Raises
        ------
        InferenceError
            If the operator fails.
        """
        inputs, outputs, computes, random = self._plans[operator.index]
        if not computes and operator.is_input:
            fed: dict[str, Held] = {name: self._inputs.fed[name] for name in outputs}
            return self.record(operator, fed, OperatorStatus.EXECUTED)
        overrides = self._inputs.overrides
        given: dict[str, Held] = {}
        if overrides:
            given = {name: overrides[name].value for name in outputs if name in overrides}
        if given and len(given) == len(outputs):
            return self.record(operator, given, OperatorStatus.EXECUTED, SUPPLIED)
        try:
            arguments = [values[name] for name in inputs]
        except KeyError:
            why = _name_missing(inputs, values)
            return self.record(operator, given, OperatorStatus.BLOCKED, reason=why)
        if not computes:
            if operator.is_output:
                return self.record(operator, {}, OperatorStatus.EXECUTED)
            return self.record(
                operator, given, OperatorStatus.UNSUPPORTED, reason=operator.reason
            )
        generator = operator.generator(self._inputs.seed) if random else None
        fresh = generator.bit_generator.state if generator is not None else None
        kernel = self._next_kernel(operator, values)
        try:
            results, seconds = self._compute(operator, kernel, arguments, generator, shape_of)
        except UnsupportedOperatorError as exc:  # of a type that no usable backend computes
            return self.record(operator, given, OperatorStatus.UNSUPPORTED, reason=str(exc))
        drawn = generator is not None and generator.bit_generator.state != fresh
        return StepRecord(
            operator.index,
            operator,
            StepOutputs(dict(zip(outputs, results, strict=True)) | given),
            seconds,
            OperatorStatus.EXECUTED,
            kernel.name if kernel is not None else REFERENCE,
            "",
            self._sources_of(given) if given else _NO_OVERRIDES,
            self._inputs.seed if drawn else None,
        )

    def record(
        self,
        operator: RuntimeOperator,
        outputs: dict[str, Held],
        status: OperatorStatus,
        kernel: str = "",
        reason: str = "",
    ) -> StepRecord:
        """Make the record of a step without a kernel."""
        overrides = self._sources_of(outputs)
        held = StepOutputs(outputs)
        return StepRecord(
            operator.index, operator, held, 0.0, status, kernel, reason, overrides
        )

    def _sources_of(self, outputs: Iterable[str]) -> Mapping[str, str]:
        """Return the sources of an operator's overridden outputs."""
        overrides = self._inputs.overrides
        if not overrides:
            return _NO_OVERRIDES
        return MappingProxyType(
            {name: overrides[name].source for name in outputs if name in overrides}
        )

    def _next_kernel(
        self, operator: RuntimeOperator, values: Mapping[str, Held]
    ) -> Kernel | None:
        if self._kernels is None:
            return None
        self._kernels.approach(operator.index, values)
        return self._kernels[operator.index]

    def _compute(
        self,
        operator: RuntimeOperator,
        kernel: Kernel | None,
        arguments: list[Held],
        generator: Generator | None,
        shape_of: ShapeOf,
    ) -> tuple[Sequence[Held], float]:
        try:
            return run_kernel(operator, kernel, arguments, generator)
        except (LayerError, MemoryError) as exc:  # outside the frame of a layer
            reason = format_memory_error(exc) if isinstance(exc, MemoryError) else str(exc)
            shapes = [describe_value(value) for value in arguments]
            raise InferenceError(operator.name, operator.type, shapes, reason) from exc
        except InferenceError as exc:
            found = diagnose_failure(operator, self._input_operands, shape_of)
            if found is None:
                raise
            raise exc.with_diagnosis(
                found.text, found.suspect, of_export=found.of_export
            ) from exc


def _name_missing(inputs: Iterable[str], values: Mapping[str, Held]) -> str:
    missing = dict.fromkeys(name for name in inputs if name not in values)
    were = "inputs {} were" if len(missing) > 1 else "input {} was"
    return f"its {were.format(', '.join(missing))} not computed"


def run_kernel(
    operator: RuntimeOperator,
    kernel: Kernel | None,
    arguments: Sequence[Held],
    generator: Generator | None,
) -> tuple[Sequence[Held], float]:
    """Compute the outputs of an operator.

    Parameters
    ----------
    operator : RuntimeOperator
    kernel : Kernel or None
        None for the operator's own layer.
    arguments : sequence of Held
        One per input operand.
    generator : Generator or None
        For a random operator, which its own layer computes.

    Returns
    -------
    outputs : sequence of Held
    seconds : float
        Time in the kernel.
    """
    if kernel is not None:
        kernel.prepare(arguments)
    if generator is not None:
        announce(operator.name, REFERENCE)
    started = time.perf_counter()
    if kernel is None or generator is not None:
        results: Sequence[Held] = operator.forward(materialise_all(arguments), generator)
    else:
        results = kernel(arguments)
    seconds = time.perf_counter() - started
    return results, seconds if kernel is None else kernel.spent(seconds)


class _Plan(NamedTuple):
    """The properties of an operator that a step needs.

    Attributes
    ----------
    inputs, outputs : tuple of str
        Names of the operands.
    computes : bool
        Whether a kernel runs: it is not an input or output, and can run.
    random : bool
        Whether it may draw random numbers.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    computes: bool
    random: bool


class _Plans(dict[int, _Plan]):
    """Plans of operators by index, made when they first run.

    Reading the operators at every step would take longer than the rest of the session's work.
    """

    def __init__(self, operators: Sequence[RuntimeOperator]) -> None:
        super().__init__()
        self._operators = operators

    def __missing__(self, index: int) -> _Plan:
        operator = self._operators[index]
        at_end = operator.is_input or operator.is_output
        computes = not at_end and operator.error is None
        plan = self[index] = _Plan(
            tuple([operand.name for operand in operator.inputs]),
            tuple([operand.name for operand in operator.outputs]),
            computes,
            computes and operator.random,
        )
        return plan
