"""The kernels of an earlier run, to get the same numbers again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.backends.kernel import (
    ALONE,
    REFERENCE,
    SUPPLIED,
    NumpyKernel,
    SpecializedKernel,
    alone,
    backend_of,
    made,
)
from engine.errors import InferenceError, InferStatus, SessionStateError
from engine.values import describe_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.backends.kernel import Backend, Kernel, Program
    from engine.runtime import RuntimeOperator
    from engine.values import Value

__all__ = ["Recorded"]

_NOT_COMPUTED: Final = ("", SUPPLIED)


class Recorded:
    """Makes the kernels of operators as an earlier run had them.

    Parameters
    ----------
    names : mapping of str to str
        Kernels by operator; NumPy computes what was not computed then.
    operators : sequence of RuntimeOperator
    installed : mapping of str to Backend

    Raises
    ------
    SessionStateError
        If an operator is missing, which means another model, or a library is.
    """

    def __init__(
        self,
        names: Mapping[str, str],
        operators: Sequence[RuntimeOperator],
        installed: Mapping[str, Backend],
    ) -> None:
        self._names, self._installed = names, installed
        for operator in operators:
            self._check(operator)

    def _check(self, operator: RuntimeOperator) -> None:
        name = self._names.get(operator.name)
        if name is None:
            raise SessionStateError(
                f"the recorded kernels are of another model: they have none for "
                f"{operator.type} {operator.name!r}"
            )
        backend = backend_of(name)
        if name not in _NOT_COMPUTED and backend not in {REFERENCE, *self._installed}:
            raise SessionStateError(
                f"{operator.name!r} was computed by {backend}, which is not installed here; "
                "choose a backend that is"
            )

    def make(self, operator: RuntimeOperator) -> Kernel:
        """Make the kernel of an operator."""
        if self._names[operator.name] in {REFERENCE, *_NOT_COMPUTED}:
            return NumpyKernel(operator)
        return SpecializedKernel(operator, self._choose)

    def _choose(
        self, operator: RuntimeOperator, inputs: Sequence[Value]
    ) -> tuple[str, Program]:
        name = self._names[operator.name]
        if name == ALONE:
            return name, alone(operator)
        backend, _, variant = name.partition("/")
        make = self._installed[backend].programs(operator, inputs).get(variant)
        program = None if make is None else made(make)
        if program is None:
            # Another kernel would compute it, with other numbers than were asked for.
            raise InferenceError(
                operator.name,
                operator.type,
                [describe_value(value) for value in inputs],
                f"its recorded kernel {name} cannot compute it here; choose a backend",
                InferStatus.kInferLayerNotImplement,
            )
        return name, program
