"""Backends: who computes an operator.

NumPy is the readable reference and computes every operator that is registered. ONNX Runtime
and ncnn compute those that they have a form for; a session that is told to use one of them
falls back to NumPy for the rest. ``auto`` finds the fastest for each operator by trying.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from engine.backends.automatic import Automatic, agrees, alone, guarded, made
from engine.backends.choices import Choices, cache_folder
from engine.backends.kernel import Backend, Kernel, NumpyKernel, SpecializedKernel
from engine.backends.ncnn_net import NcnnBackend
from engine.backends.onnx_runtime import OnnxRuntimeBackend
from engine.errors import SessionStateError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.backends.kernel import Chooser, Program
    from engine.runtime import RuntimeOperator
    from engine.values import Value

__all__ = [
    "BACKEND_NAMES",
    "Backend",
    "Kernel",
    "agrees",
    "cache_folder",
    "libraries",
    "make_kernels",
]

BACKEND_NAMES: Final = ("auto", "numpy", "onnxruntime", "ncnn")

_LIBRARIES: Final = (OnnxRuntimeBackend(), NcnnBackend())


def libraries() -> dict[str, Backend]:
    """Backends besides NumPy that are installed, by name."""
    return {library.name: library for library in _LIBRARIES if library.available()}


@cache
def _choices() -> Choices:
    return Choices()


def make_kernels(name: str, operators: Sequence[RuntimeOperator]) -> list[Kernel]:
    """Kernel of each operator.

    Parameters
    ----------
    name : str
        One of `BACKEND_NAMES`.
    operators : sequence of RuntimeOperator

    Raises
    ------
    SessionStateError
        If there is no such backend, or its library is not installed.
    """
    if name not in BACKEND_NAMES:
        raise SessionStateError(
            f"there is no backend {name!r}; choose one of {', '.join(BACKEND_NAMES)}"
        )
    if name == "numpy":
        return [NumpyKernel(operator) for operator in operators]
    installed = libraries()
    if name == "auto":
        backends: Sequence[Backend] = tuple(installed.values())
        choose: Chooser = Automatic(backends, _choices()).choose
    elif name in installed:
        backends = (installed[name],)
        choose = _Pinned(installed[name]).choose
    else:
        raise SessionStateError(
            f"backend {name} needs the package {name!r}, which is not installed: "
            f"pip install {name}"
        )
    # What is random has one source of numbers, and that is NumPy's.
    return [
        SpecializedKernel(operator, choose)
        if not operator.random and any(backend.supports(operator) for backend in backends)
        else NumpyKernel(operator)
        for operator in operators
    ]


class _Pinned:
    """Chooses one backend wherever it can compute."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def choose(self, operator: RuntimeOperator, inputs: Sequence[Value]) -> tuple[str, Program]:
        for make in self._backend.programs(operator, inputs).values():
            program = made(make)
            if program is not None:
                return self._backend.name, guarded(operator, program)
        return "numpy", alone(operator)
