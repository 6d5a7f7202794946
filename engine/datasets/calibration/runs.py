"""Runs a model of ncnn's own format with some layers in int8, beside the same in float32."""

from __future__ import annotations

from collections import ChainMap
from typing import TYPE_CHECKING

from engine.backends import make_kernels
from engine.errors import UnsupportedOperatorError
from engine.ncnn.options import EXACT, NcnnOptions
from engine.runtime.executor import Executor, RunInputs
from engine.values import materialise_all

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from engine.runtime import RuntimeGraph, RuntimeOperator
    from engine.runtime.kernel import Kernel, KernelTable
    from engine.values import Array, Held, Value

    Visit = Callable[[RuntimeOperator, Sequence[Value], Sequence[Value]], None]

__all__ = ["Int8Runs", "Visit"]


class Int8Runs:
    """Runs of one model, whose layers compute in float32 or in int8.

    Parameters
    ----------
    graph : RuntimeGraph
        Of ncnn's own format.
    backend : str
        What computes: ``"auto"`` and ``"ncnn"`` are ncnn, ``"numpy"`` NumPy.
    options : NcnnOptions
        Of ncnn.
    """

    def __init__(
        self, graph: RuntimeGraph, backend: str = "auto", options: NcnnOptions = EXACT
    ) -> None:
        self.graph = graph
        self._backend, self._options = backend, options
        self._floats = self._kernels(graph.operators)
        self._consumers = {name: len(o.consumers) for name, o in graph.operands.items()}

    def kernels(self, twins: Mapping[int, RuntimeOperator]) -> Mapping[int, Kernel]:
        """Return kernels of layers in int8.

        Parameters
        ----------
        twins : mapping of int to RuntimeOperator
            By index; see `int8_twin`.
        """
        operators = [twins.get(each.index, each) for each in self.graph.operators]
        made = self._kernels(operators)
        return {index: made[index] for index in twins}

    def run(
        self,
        inputs: Mapping[str, Array],
        int8: Mapping[int, Kernel],
        kept: Collection[int] = (),
        visit: Visit | None = None,
        known: Mapping[str, Held] | None = None,
    ) -> tuple[Value, ...]:
        """Run the model once.

        Parameters
        ----------
        inputs : mapping of str to ndarray
            As `RuntimeGraph.check_inputs` returns them.
        int8 : mapping of int to Kernel
            Layers that compute in int8.
        kept : collection of int
            Those of them that compute in float32 nevertheless.
        visit : callable, optional
            Called after each operator that is computed with its inputs and outputs.
        known : mapping of str to Value, optional
            All values of these inputs in float32. Then only the layers in int8 are computed,
            and what depends on them.

        Returns
        -------
        tuple of Value
            The outputs, in order.

        Raises
        ------
        UnsupportedOperatorError, InferenceError
            If an operator cannot run.
        """
        replaced = {i: k for i, k in int8.items() if i not in kept}
        table = _Mixed(self._floats, replaced)
        executor = Executor(
            self.graph.operators, self.graph.input_operands, RunInputs(dict(inputs)), table
        )
        computed: dict[str, Held] = {}
        values = ChainMap(computed, dict(known or {}))
        left = dict(self._consumers)
        outputs: list[Value] = []
        for operator in self.graph.operators:
            if (
                known is not None
                and operator.index not in replaced
                and not any(operand.name in computed for operand in operator.inputs)
            ):
                if operator.is_output:
                    outputs += materialise_all(known[each.name] for each in operator.inputs)
                continue
            record = executor.execute(operator, values, lambda _: None)
            if record.reason:
                raise operator.error or UnsupportedOperatorError(
                    operator.name, operator.type, reason=record.reason
                )
            taken = materialise_all(values[operand.name] for operand in operator.inputs)
            if operator.is_output:
                outputs += taken
            made = dict(record.outputs.resident or {})
            if visit is not None:
                visit(operator, taken, materialise_all(made.values()))
            computed |= made
            for operand in operator.inputs:
                left[operand.name] -= 1
                if not left[operand.name]:
                    computed.pop(operand.name, None)
        return tuple(outputs)

    def _kernels(self, operators: Sequence[RuntimeOperator]) -> KernelTable:
        return make_kernels(self._backend, operators, ncnn_options=self._options)


class _Mixed:
    """Kernels in float32, some of them replaced."""

    def __init__(self, floats: KernelTable, replaced: Mapping[int, Kernel]) -> None:
        self._floats, self._replaced = floats, replaced

    def __getitem__(self, index: int) -> Kernel:
        return self._replaced.get(index) or self._floats[index]

    def approach(self, index: int, values: Mapping[str, Held]) -> None:
        """Prepare for the next operator."""
        if index not in self._replaced:
            self._floats.approach(index, values)
