"""Kernels of an earlier run, to reproduce its numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from typing_extensions import override

from engine.backends.fusion import Draft, FusedSubgraph, SubgraphName, is_fused
from engine.backends.fusion_autotuner import activate, run_one_by_one
from engine.backends.kernel import (
    ONE_THREAD,
    REFERENCE,
    SUPPLIED,
    Kernels,
    NumpyKernel,
    SpecializedKernel,
    backend_of,
    candidates,
    one_thread_kernel,
    signature_of,
    try_to_make,
)
from engine.errors import InferenceError, InferStatus, SessionStateError
from engine.threads import thread_count
from engine.values import describe_value, materialise_all

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.backends.exclusions import Exclusions
    from engine.backends.kernel import Backend, CompiledKernel, Kernel
    from engine.runtime import RuntimeOperator
    from engine.values import Held, Value

__all__ = ["RecordedKernels"]

_NOT_COMPUTED: Final = ("", SUPPLIED)


class RecordedKernels(Kernels):
    """Kernels and subgraphs of an earlier run.

    Parameters
    ----------
    operators : sequence of RuntimeOperator
    names : mapping of str to str
        Kernels by operator; NumPy computes operators that did not run then.
    installed : mapping of str to Backend
    excluded : Exclusions
        NumPy replaces excluded libraries, for a whole subgraph.

    Raises
    ------
    SessionStateError
        If an operator is missing, which means another model, or a library is not installed.
    """

    def __init__(
        self,
        operators: Sequence[RuntimeOperator],
        names: Mapping[str, str],
        installed: Mapping[str, Backend],
        excluded: Exclusions,
    ) -> None:
        super().__init__(operators, self._make_recorded)
        self._names, self._installed = names, installed
        # By the first operator of a subgraph: its name and its operators.
        self._subgraphs: dict[int, tuple[SubgraphName, list[int]]] = {}
        for operator in operators:
            self._check(operator)
        self._names = _exclude(excluded, names)
        for operator in operators:
            name = SubgraphName.read(self._names[operator.name])
            if name is not None and _is_possible(name, operator):
                first_named, indices = self._subgraphs.setdefault(name.first, (name, []))
                if name == first_named:
                    indices.append(operator.index)
        self._built: dict[int, dict[object, FusedSubgraph | None]] = {}

    @override
    def approach(self, index: int, values: Mapping[str, Held]) -> None:
        """Prepare the recorded subgraph that begins here, if there is one."""
        if index not in self._subgraphs:
            return
        name, indices = self._subgraphs[index]
        inputs = self._operators[index].inputs
        signature = signature_of(
            materialise_all(values.get(operand.name) for operand in inputs)
        )
        built = self._built.setdefault(index, {})
        if signature not in built:
            built[signature] = self._make_subgraph(name, values)
        subgraph = built[signature]
        if subgraph is not None:
            activate(subgraph, indices, values, self, self.make_single)

    def _make_subgraph(
        self, name: SubgraphName, values: Mapping[str, Held]
    ) -> FusedSubgraph | None:
        row = self._operators[name.first : name.last + 1]
        parts, results = run_one_by_one(
            row, values, lambda index: NumpyKernel(self._operators[index])
        )
        if len(parts) < len(row):
            return None  # its operators report that it cannot be reproduced
        known = {**values, **results}
        return try_to_make(
            lambda: FusedSubgraph(Draft(parts, known, name.threads, name.strategy))
        )

    def _check(self, operator: RuntimeOperator) -> None:
        name = self._names.get(operator.name)
        if name is None:
            raise SessionStateError(
                f"the recorded kernels are of another model: there is no kernel for "
                f"{operator.type} {operator.name!r}"
            )
        backend = backend_of(name)
        if name not in _NOT_COMPUTED and backend not in {REFERENCE, *self._installed}:
            raise SessionStateError(
                f"{operator.name!r} was computed by {backend}, which is not installed here; "
                "choose a backend that is"
            )

    def _make_recorded(self, operator: RuntimeOperator) -> Kernel:
        if self._names[operator.name] in {REFERENCE, *_NOT_COMPUTED}:
            return NumpyKernel(operator)
        return SpecializedKernel(operator, self._choose)

    def _choose(
        self, operator: RuntimeOperator, inputs: Sequence[Value]
    ) -> tuple[str, CompiledKernel]:
        name = self._names[operator.name]
        if name == ONE_THREAD:
            return name, one_thread_kernel(operator)
        installed = self._installed[backend_of(name)]
        compile_kernel = candidates(installed, operator, inputs).get(name)
        compiled = None if compile_kernel is None else compile_kernel()
        if compiled is None:
            # Another kernel would give other numbers.
            raise InferenceError(
                operator.name,
                operator.type,
                [describe_value(value) for value in inputs],
                f"its recorded kernel {name} cannot compute it here; choose a backend",
                InferStatus.kInferLayerNotImplement,
            )
        return name, compiled


def _exclude(excluded: Exclusions, names: Mapping[str, str]) -> Mapping[str, str]:
    """Return kernels by operator, with NumPy instead of excluded ones.

    If one operator of a subgraph is excluded, NumPy computes all of them.
    """
    gone = {(o, name) for o, name in names.items() if backend_of(name) in excluded[o]}
    subgraphs = {name for _, name in gone if is_fused(name)}
    return {
        operator: REFERENCE if (operator, name) in gone or name in subgraphs else name
        for operator, name in names.items()
    }


def _is_possible(name: SubgraphName, operator: RuntimeOperator) -> bool:
    """Return whether an operator can belong to a subgraph of this name, which may be wrong."""
    return name.first <= operator.index <= name.last and 1 <= name.threads <= thread_count()
