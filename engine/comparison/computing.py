"""Our operators, computed again on a reference's values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.backends import make_kernels
from engine.comparison.requantised import dequantise, find_requantised
from engine.errors import EngineError
from engine.ncnn.options import NcnnOptions
from engine.ncnn.types import PREFIX
from engine.runtime.executor import run_kernel
from engine.values import materialise_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.runtime import RuntimeOperator
    from engine.session import Session
    from engine.values import Value

__all__ = ["Computing"]


class Computing:
    """Computes operators of a session as its run did, but on other values.

    Parameters
    ----------
    session : Session

    Attributes
    ----------
    requantised : dict of str to float
        Scales of results that are int8 in the run, by operand; here they are numbers again.
    in_numpy : bool
        Whether NumPy computes all operators.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        backend = _backend_of(session)
        self.in_numpy = backend == "numpy"
        self._kernels = make_kernels(
            backend,
            session.graph.operators,
            session.excluded,
            NcnnOptions.parse(session.ncnn_options),
        )
        self.requantised = find_requantised(session.graph)

    def compute(
        self, operator: RuntimeOperator, arguments: Sequence[Value]
    ) -> tuple[tuple[Value, ...], str]:
        """Compute an operator; without a result, return None for each output, and why."""
        nothing = (None,) * len(operator.outputs)
        if operator.error is not None:
            return nothing, operator.reason
        if operator.random:
            return nothing, "it draws random numbers"
        try:
            with self._session.within_bound():
                results, _ = run_kernel(
                    operator, self._kernels[operator.index], arguments, None
                )
                return self.dequantise(operator, materialise_all(results)), ""
        except EngineError as exc:
            return nothing, str(exc)

    def dequantise(
        self, operator: RuntimeOperator, results: Iterable[Value]
    ) -> tuple[Value, ...]:
        """Return the results of an operator as numbers."""
        scales = self.requantised
        pairs = zip(operator.outputs, results, strict=True)
        return tuple([dequantise(value, scales.get(o.name)) for o, value in pairs])


def _backend_of(session: Session) -> str | dict[str, str]:
    """Return what computes: the session's kernels, or NumPy where the session chooses freely.

    Layers of ncnn's format always run as the session has run them.
    """
    operators = session.graph.operators
    if session.backend == "recorded":
        return {record.operator.name: record.kernel for record in session.records}
    of_ncnn = bool(operators) and operators[0].type.startswith(PREFIX)
    return "numpy" if session.backend == "auto" and not of_ncnn else session.backend
