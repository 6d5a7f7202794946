"""The self-check: compares every library with the reference, on a model and data.

The model is run once with NumPy. Every library that has a lowering of an operator then computes
it from the reference's inputs, by each of its kernels, so that a difference belongs to the
operator that it is found at and not to one before. Then consecutive operators are fused, as a
session may do, and compared up to the first that differs.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Final

from engine.backends import REFERENCE, all_backends, backend_of, usable_libraries
from engine.backends.fusion import Draft, FusedSubgraph, Strategy, part_of, supported_parts
from engine.backends.kernel import NumpyKernel, try_to_make
from engine.backends.lowering import SpecialNumbersError
from engine.backends.onnx_runtime import OnnxRuntimeBackend
from engine.backends.subgraph import Subgraph
from engine.differences import TOLERANCE, Difference, difference
from engine.errors import EngineError, SessionStateError
from engine.layers.exactness import is_elementwise
from engine.memory_bound import current_room
from engine.runtime.activity import announce
from engine.states import OperatorStatus, SessionState
from engine.text import format_brief, format_count
from engine.threads import thread_count
from engine.values import materialise, value_nbytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from engine.backends import Backend
    from engine.backends.fusion import Part
    from engine.backends.kernel import CompiledKernel
    from engine.runtime import OperatorLabel, RuntimeOperator
    from engine.session import Session, StepRecord
    from engine.values import Value

__all__ = ["Comparison", "SelfCheck", "Verdict", "self_check"]

_NAMES_SHOWN: Final = 5
_ROW: Final = 32  # operators that are computed at once


class Verdict(Enum):
    """Verdict of a comparison.

    LEFT: the library does not compute this operator, so NumPy does.
    """

    AGREES = "agrees"
    DIFFERS = "differs"
    LEFT = "left to NumPy"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of one operator with one kernel.

    Attributes
    ----------
    operator : OperatorLabel
    kernel : str
        The backend and which of its kernels, e.g. ``onnxruntime/all-2``.
    verdict : Verdict
    difference : Difference
        Of the operator's outputs from the reference's.
    seconds, reference_seconds : float
        Time of the kernel and of NumPy.
    reason : str
        Why NumPy computes it; ``""`` if the library does.
    """

    operator: OperatorLabel
    kernel: str
    verdict: Verdict
    difference: Difference = field(default_factory=Difference)
    seconds: float = 0.0
    reference_seconds: float = 0.0
    reason: str = ""

    @property
    def sentence(self) -> str:
        """The result as text, with the operator."""
        far, who = (
            self.difference,
            f"{self.operator.type} {self.operator.name} by {self.kernel}",
        )
        if self.verdict is Verdict.LEFT:
            return f"{who} is left to NumPy: {self.reason}"
        if far.unlike:
            return f"{who} gives {far.unlike}"
        if not far.largest:
            return f"{who} is equal"
        count = format_count(far.count, "element")
        beyond = f", {format_count(far.beyond)} of {count} beyond the tolerance"
        text = (
            f"{who} differs by up to {format_brief(far.largest)}, "
            f"{format_brief(far.relative, 2)} of the largest number"
            f"{beyond if far.beyond else ''}: {far.where}"
        )
        if not far.of_element:
            return text
        of_element = format_brief(far.of_element, 2)
        return f"{text}; relative to the element by up to {of_element}, {far.element}"


@dataclass(frozen=True, slots=True)
class SelfCheck:
    """The result of a self-check.

    Attributes
    ----------
    libraries : tuple of str
        The compared libraries.
    tolerance : float
    comparisons : tuple of Comparison
        In execution order.
    alone : tuple of OperatorLabel
        Operators that only NumPy can compute.
    not_run : mapping of OperatorLabel to str
        Those that failed or could not run, and why; ``""`` for those that the check did not
        come to, or that lack an input.
    error : EngineError or None
        Error of the reference.
    cancelled : bool
        Whether the check was cancelled.
    seconds : float
    """

    libraries: tuple[str, ...]
    tolerance: float
    comparisons: tuple[Comparison, ...] = field(repr=False)
    alone: tuple[OperatorLabel, ...] = field(repr=False)
    not_run: Mapping[OperatorLabel, str] = field(repr=False)
    error: EngineError | None
    cancelled: bool
    seconds: float

    @property
    def differing(self) -> tuple[Comparison, ...]:
        """The comparisons beyond the tolerance."""
        return tuple(c for c in self.comparisons if c.verdict is Verdict.DIFFERS)

    @property
    def compared(self) -> tuple[Comparison, ...]:
        """The comparisons with a result."""
        return tuple(c for c in self.comparisons if c.verdict is not Verdict.LEFT)

    @property
    def operator_count(self) -> int:
        """Number of compared operators."""
        return len({c.operator.index for c in self.compared})

    @property
    def agrees(self) -> bool:
        """Whether nothing differs, and everything was compared that can be."""
        return not (self.differing or self.not_run or self.cancelled)

    @property
    def summary(self) -> str:
        """The result in a few sentences."""
        compared, worst = len(self.compared), self.worst
        whom = " and ".join(self.libraries)
        text = f"{format_count(self.operator_count, 'operator')}, "
        text += f"{format_count(compared, 'comparison')} with {whom}"
        parts = [f"{text}: {self._verdict}." if compared else f"{text}."]
        if worst is not None and not worst.difference.unlike:
            far, furthest = worst.difference, self.furthest
            parts.append(
                f"The largest difference is {format_brief(far.largest, 2)}, "
                f"{format_brief(far.relative, 2)} of the largest number: "
                f"{worst.operator.name} by {worst.kernel}."
            )
            if furthest is not None and furthest.difference.of_element:
                of_element = format_brief(furthest.difference.of_element, 2)
                parts.append(
                    f"Relative to an element it is {of_element}: "
                    f"{furthest.operator.name} by {furthest.kernel}."
                )
        if self.cancelled:
            parts.insert(0, "Cancelled before the end.")
        elif self.error is not None:
            parts.append(f"It ended early: {self.error}.")
        elif self.not_run:
            count = len(self.not_run)
            parts.append(f"{format_count(count, 'operator')} could not run: {self.obstacle}.")
        return " ".join(parts)

    @property
    def _verdict(self) -> str:
        names = list(dict.fromkeys(c.operator.name for c in self.differing))
        if not names:
            return f"all agree to {format_brief(self.tolerance)}"
        shown = ", ".join(names[:_NAMES_SHOWN])
        more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
        tolerance = format_brief(self.tolerance)
        return f"{len(self.differing)} differ by more than {tolerance}, in {shown}{more}"

    @property
    def obstacle(self) -> str:
        """Why the first operator could not run."""
        return next(filter(None, self.not_run.values()), "an input is missing")

    @property
    def worst(self) -> Comparison | None:
        """The one with the largest difference, relative to the largest number."""
        return max(self.compared, key=lambda c: c.difference.relative, default=None)

    @property
    def furthest(self) -> Comparison | None:
        """The one with the largest difference relative to an element."""
        return max(self.compared, key=lambda c: c.difference.of_element, default=None)


def self_check(
    session: Session,
    tolerance: float = TOLERANCE,
    progress: Callable[[int, int], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> SelfCheck:
    """Compare every library with the reference, operator by operator.

    Parameters
    ----------
    session : Session
        Fed; its inputs, supplied outputs, seed and exclusions are used, it stays as it is.
    tolerance : float
        See `engine.differences.difference`. Element-wise operators must agree element by
        element.
    progress : callable, optional
        Called with the number of operators done, and of all.
    cancelled : callable, optional
        Asked between computations; True ends the check.

    Returns
    -------
    SelfCheck
        If an operator failed or the check was cancelled, the results so far.

    Raises
    ------
    SessionStateError
        If the session has no input, or no library is installed.
    """
    backends = usable_libraries()
    if not backends:
        raise SessionStateError(
            "no other backend than NumPy is installed; pip install onnxruntime onnx ncnn"
        )
    if session.state is SessionState.NEED_INPUT:
        raise SessionStateError("the session has no input yet: feed() it first")
    reference = session.fork("numpy")
    return _Check(reference, backends, tolerance, cancelled).run(progress)


class _Check:
    """A running check."""

    def __init__(
        self,
        reference: Session,
        backends: Sequence[Backend],
        tolerance: float,
        cancelled: Callable[[], bool] | None,
    ) -> None:
        self._reference, self._backends = reference, backends
        self._tolerance, self._cancelled = tolerance, cancelled
        self._comparisons: list[Comparison] = []
        self._alone: list[OperatorLabel] = []
        self._ended = False
        names = {backend.name for backend in backends}
        # Fusing needs ONNX Runtime's packages for every library.
        can_fuse = OnnxRuntimeBackend.name in names
        self._strategies = [
            strategy
            for strategy in Strategy
            if can_fuse and backend_of(strategy.value) in names
        ]
        self._row: list[tuple[Part, StepRecord]] = []
        self._values: dict[str, Value] = {}
        self._graph = Subgraph()  # of the operators in the row

    @property
    def _operators(self) -> Sequence[RuntimeOperator]:
        return self._reference.graph.operators

    def run(self, progress: Callable[[int, int], None] | None) -> SelfCheck:
        """Check all operators."""
        started = time.perf_counter()
        error: EngineError | None = None
        operators = self._operators
        for done in range(len(operators)):
            if progress is not None:
                progress(done, len(operators))
            if self._asked_to_end():
                break
            # Before the step: after it a memory limit may evict them.
            inputs = self._inputs_of(operators[done])
            try:
                record = self._reference.step()
            except EngineError as exc:
                error = exc
                break
            with self._reference.within_bound():
                self._check(record, inputs)
                self._follow(record, inputs)
        with self._reference.within_bound():
            self._check_row()
        return SelfCheck(
            tuple(backend.name for backend in self._backends),
            self._tolerance,
            tuple(self._comparisons),
            tuple(self._alone),
            {
                operator.label: operator.reason
                for operator in operators
                if self._reference.status(operator.name) is not OperatorStatus.EXECUTED
            },
            error,
            self._ended,
            time.perf_counter() - started,
        )

    def _asked_to_end(self) -> bool:
        self._ended = self._ended or (self._cancelled is not None and self._cancelled())
        return self._ended

    def _inputs_of(self, operator: RuntimeOperator) -> list[Value]:
        """Inputs of the next operator, but for those that were not computed."""
        names = [operand.name for operand in operator.inputs]
        return [self._reference.value(n) for n in names if self._reference.has_value(n)]

    def _excluded(self, operator: RuntimeOperator) -> frozenset[str]:
        return self._reference.excluded.get(operator.name, frozenset())

    def _check(self, record: StepRecord, inputs: Sequence[Value]) -> None:
        operator = record.operator
        if backend_of(record.kernel) != REFERENCE or record.overrides:
            return
        before = len(self._comparisons)
        excluded = self._excluded(operator)
        for backend in all_backends():
            # Random operators always use NumPy's generator.
            may = not operator.random and backend.name not in excluded
            if may and backend.supports(operator):
                self._comparisons.extend(self._by(backend, record, inputs))
        if len(self._comparisons) == before and not self._ended:
            self._alone.append(operator.label)

    def _by(
        self, backend: Backend, record: StepRecord, inputs: Sequence[Value]
    ) -> Iterator[Comparison]:
        for variant, make in backend.variants(record.operator, inputs).items():
            if self._asked_to_end():
                return
            yield self._compared(record, f"{backend.name}/{variant}", make, inputs)

    def _compared(
        self,
        record: StepRecord,
        kernel: str,
        make: Callable[[], CompiledKernel],
        inputs: Sequence[Value],
        expect: Callable[[], Sequence[Value]] | None = None,
    ) -> Comparison:
        """Compare a kernel with the reference, or with other expected results."""
        comparison = Comparison(record.operator.label, kernel, Verdict.LEFT)
        announce(record.operator.name, kernel)
        try:
            compiled = make()
            started = time.perf_counter()
            found = compiled(inputs)
            seconds = time.perf_counter() - started
        except SpecialNumbersError:
            return replace(comparison, reason="NaN or infinities")
        except Exception as exc:  # noqa: BLE001 - whatever a library raises
            return replace(comparison, reason=str(exc) or type(exc).__name__)
        far = difference(
            found,
            tuple(record.outputs.values()) if expect is None else expect(),
            self._tolerance,
            elementwise=is_elementwise(record.operator.layer),
        )
        return replace(
            comparison,
            verdict=Verdict.AGREES if far.agrees else Verdict.DIFFERS,
            difference=far,
            seconds=seconds,
            reference_seconds=record.seconds,
        )

    # Operators that are fused

    def _follow(self, record: StepRecord, inputs: Sequence[Value]) -> None:
        """Add an operator to the current subgraph, or end it."""
        part, excluded = None, self._excluded(record.operator)
        if self._row and self._excluded(self._row[0][1].operator) != excluded:
            self._check_row()
        usable = (
            bool(self._strategies) and not self._ended and self._reference.memory_limit is None
        )
        if usable and backend_of(record.kernel) == REFERENCE and not record.overrides:
            outputs = tuple(record.outputs.values())
            part = part_of(self._graph, record.operator, inputs, outputs)
            if part is None and self._row:  # but it may begin the next one
                self._check_row()
                part = part_of(self._graph, record.operator, inputs, outputs)
        if part is not None:
            self._row.append((part, record))
            self._values.update(zip(part.sources, inputs, strict=True))
            self._values.update(record.outputs)
        if part is None or len(self._row) == _ROW:
            self._check_row()

    def _check_row(self) -> None:
        row, values = self._row, self._values
        self._row, self._values, self._graph = [], {}, Subgraph()
        if self._ended or sum(part.given for part, _ in row) < 2:
            return
        if value_nbytes(tuple(values.values())) > current_room().left:
            return  # a library would have all of them once more
        excluded = self._excluded(row[0][1].operator)
        for strategy in self._strategies:
            if backend_of(strategy.value) in excluded:
                continue
            parts = supported_parts(strategy, [part for part, _ in row], values)
            subgraph = try_to_make(partial(self._computed, parts, values, strategy))
            if subgraph is not None:  # operators without a role are never fused
                self._check_subgraph(subgraph, row[: len(parts)], values)

    def _computed(
        self, parts: Sequence[Part], values: Mapping[str, Value], strategy: Strategy
    ) -> FusedSubgraph:
        subgraph = FusedSubgraph(Draft(parts, values, thread_count(), strategy))
        subgraph.expect(values, lambda index: NumpyKernel(self._operators[index]))
        subgraph.run()
        return subgraph

    def _check_subgraph(
        self,
        subgraph: FusedSubgraph,
        row: Sequence[tuple[Part, StepRecord]],
        values: Mapping[str, Value],
    ) -> None:
        own = dict(values)  # as they are in the subgraph, as far as it has come
        left: set[str] = set()  # by this subgraph to others, with all that is computed from it
        for part, record in row:
            if not left.isdisjoint(part.sources):
                left.add(part.output)
                continue
            operator, seen = part.operator, [own[name] for name in part.sources]
            if not part.given:
                (own[part.output],) = operator.forward(seen)
                continue
            # Its operands are rounded differently there, which matters for small elements.
            expect = None
            if is_elementwise(operator.layer):
                expect = partial(operator.forward, seen)
            inputs = [values[name] for name in part.sources]
            make = partial(_handing_out, subgraph, part, own)
            found = self._compared(record, subgraph.name, make, inputs, expect)
            self._comparisons.append(found)
            if found.verdict is Verdict.DIFFERS:
                break  # downstream results depend on it
            if found.verdict is Verdict.LEFT:
                left.add(part.output)


def _handing_out(subgraph: FusedSubgraph, part: Part, own: dict[str, Value]) -> CompiledKernel:
    """Read an operator's results from a subgraph, and store them."""

    def compiled(inputs: Sequence[Value]) -> tuple[Value, ...]:
        (found,) = subgraph.result(part.operator.index, inputs)
        own[part.output] = materialise(found)
        return (own[part.output],)

    return compiled
