"""Backends: who computes an operator.

A backend gives a kernel for an operator, or None where it has none. The NumPy backend is
the readable reference and has every operator that is registered; ``auto`` asks the backends
in order of preference. Only NumPy is there today.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from engine.errors import SessionStateError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.runtime import RuntimeOperator
    from engine.values import Value

    Kernel = Callable[[Sequence[Value]], tuple[Value, ...]]

__all__ = ["BACKENDS", "Backend", "NumpyBackend", "choose_backends"]


class Backend(Protocol):
    """Gives kernels.

    Attributes
    ----------
    name : str
        As in ``Session(graph, backend=name)`` and in step records.
    """

    name: str

    def kernel(self, operator: RuntimeOperator) -> Kernel | None:
        """Kernel of an operator, or None where this backend has none."""
        ...


class NumpyBackend:
    """Runs the operators' own layers."""

    name = "numpy"

    @staticmethod
    def kernel(operator: RuntimeOperator) -> Kernel | None:
        """Kernel of an operator; an operator without a layer raises when it is run."""
        return operator.forward


BACKENDS: Final[dict[str, Backend]] = {"numpy": NumpyBackend()}


def choose_backends(name: str) -> tuple[Backend, ...]:
    """Backends to ask, in order of preference.

    Parameters
    ----------
    name : str
        A backend's name, or ``auto``.

    Raises
    ------
    SessionStateError
        If there is no such backend.
    """
    if name == "auto":
        return tuple(BACKENDS.values())
    if name not in BACKENDS:
        raise SessionStateError(
            f"there is no backend {name!r}; choose one of auto, {', '.join(BACKENDS)}"
        )
    return (BACKENDS[name],)
