"""Backends: the libraries that compute operators.

NumPy is the readable reference and computes every operator that is registered. ONNX Runtime and
ncnn compute the operators that they have a lowering for. NumPy computes the others. ``auto``
chooses by rules, and by an autotuner between passes.
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import TYPE_CHECKING, Final

from engine.backend_names import (
    BACKEND_NAMES,
    installed_version,
    missing_packages,
    require_installed,
)
from engine.backends.autotuner import Autotuner
from engine.backends.buffers import detach_buffer
from engine.backends.exclusions import Exclusions
from engine.backends.fusing_kernels import FusingKernels
from engine.backends.fusion import SubgraphName, is_fused
from engine.backends.kernel import (
    ONE_THREAD,
    REFERENCE,
    SUPPLIED,
    Backend,
    Kernel,
    Kernels,
    NumpyKernel,
    SpecializedKernel,
    backend_of,
    candidates,
    one_thread_kernel,
)
from engine.backends.ncnn_file_kernels import NcnnFileBackend, make_layer_kernels
from engine.backends.numpy_buffers import NumpyBuffers
from engine.backends.onnx_runtime import OnnxRuntimeBackend
from engine.backends.recorded import RecordedKernels
from engine.backends.tuning_cache import TuningCache
from engine.errors import SessionStateError
from engine.ncnn.options import EXACT
from engine.ncnn.types import PREFIX

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Mapping, Sequence

    from engine.backends.kernel import Chooser, CompiledKernel
    from engine.ncnn.options import NcnnOptions
    from engine.runtime import RuntimeOperator
    from engine.values import Value

__all__ = [
    "BACKEND_NAMES",
    "REFERENCE",
    "SUPPLIED",
    "Backend",
    "Kernel",
    "Kernels",
    "all_backends",
    "backend_of",
    "describe_kernel",
    "detach_buffer",
    "installed_version",
    "is_fused",
    "libraries",
    "make_kernels",
    "missing_packages",
    "require_backend",
    "usable_libraries",
]

_LIBRARIES: Final = (OnnxRuntimeBackend(), NcnnFileBackend())
_BUFFERS: Final = NumpyBuffers()


def libraries() -> dict[str, Backend]:
    """Return the installed backends besides NumPy, by name."""
    return {
        library.name: library for library in _LIBRARIES if not missing_packages(library.name)
    }


def describe_kernel(name: str) -> str:
    """Describe a kernel by its name, such as ``onnxruntime/all-2``."""
    fused = SubgraphName.read(name)
    if fused is not None:
        return fused.description
    backend, _, variant = name.partition("/")
    words = {
        REFERENCE: "NumPy, the reference",
        ONE_THREAD: "NumPy, the reference, 1 thread",
        SUPPLIED: "supplied by the user",
    }
    known = {_BUFFERS.name: _BUFFERS, **libraries()}
    if name in words or backend not in known:
        return words.get(name, name)
    return known[backend].describe(variant)


@cache
def _tuning_cache() -> TuningCache:
    return TuningCache()


def require_backend(name: str) -> None:
    """Check that a session can use a backend.

    Raises
    ------
    SessionStateError
        If there is no such backend, or its library is not installed.
    """
    require_installed(name)
    if name in libraries() and (reason := _load(libraries()[name], whole=True)):
        raise SessionStateError(f"backend {name} cannot be loaded: {reason}")


def usable_libraries() -> tuple[Backend, ...]:
    """Return the backends besides NumPy that are installed and can be loaded."""
    return tuple(library for library in libraries().values() if not _load(library))


def all_backends() -> tuple[Backend, ...]:
    """Return every backend that has kernels of its own, including NumPy with buffers."""
    return (_BUFFERS, *usable_libraries())


def _load(library: Backend, *, whole: bool = False) -> str:
    """Load a library; return the error of its installation, or ``""``."""
    try:
        library.load(whole=whole)
    except Exception as exc:  # noqa: BLE001 - a broken installation may raise anything
        return str(exc) or type(exc).__name__
    return ""


def make_kernels(
    name: str | Mapping[str, str],
    operators: Sequence[RuntimeOperator],
    excluded: Mapping[str, Collection[str]] | None = None,
    ncnn_options: NcnnOptions | None = None,
) -> Kernels:
    """Make the kernels of the operators.

    Parameters
    ----------
    name : str, or mapping of str to str
        One of `BACKEND_NAMES`, or the kernels of an earlier run by operator.
    operators : sequence of RuntimeOperator
    excluded : mapping of str to collection of str, optional
        The libraries that must not compute an operator: not alone, not fused with others, not
        in a trial. This overrides the tuning cache and earlier runs. Another library or NumPy
        computes the operator.
    ncnn_options : NcnnOptions, optional
        Options of ncnn for a model in ncnn's own format. Only ncnn and NumPy compute its
        layers.

    Raises
    ------
    SessionStateError
        If there is no such backend, its library is not installed, the earlier run was of
        another model, or an excluded library is NumPy or unknown.
    """
    exclusions = Exclusions(excluded, [library.name for library in _LIBRARIES])
    if operators and operators[0].type.startswith(PREFIX):
        return _kernels_of_layers(name, operators, exclusions, ncnn_options)
    if not isinstance(name, str):
        usable = {each.name: each for each in all_backends()}
        return RecordedKernels(operators, name, usable, exclusions)
    require_backend(name)
    if name == "numpy":
        return Kernels(operators, NumpyKernel)
    choosing = _Choosing(name, exclusions)
    if name == "auto":
        return FusingKernels(
            operators,
            choosing.make,
            choosing.tune,
            _tuning_cache(),
            exclusions,
            fuses=OnnxRuntimeBackend.name in libraries(),
        )
    return Kernels(operators, choosing.make)


def _kernels_of_layers(
    name: str | Mapping[str, str],
    operators: Sequence[RuntimeOperator],
    excluded: Exclusions,
    options: NcnnOptions | None,
) -> Kernels:
    if isinstance(name, str):
        require_backend(name)
    usable = any(library.name == NcnnFileBackend.name for library in usable_libraries())
    return make_layer_kernels(name, operators, excluded, (options or EXACT) if usable else None)


class _Choosing:
    """Makes kernels that choose among libraries when they get their inputs.

    Parameters
    ----------
    name : str
        ``auto``, or the one library.
    excluded : Exclusions
    """

    def __init__(self, name: str, excluded: Exclusions) -> None:
        self._name, self._excluded = name, excluded

    @cached_property
    def _backends(self) -> tuple[Backend, ...]:
        if self._name == "auto":
            return all_backends()
        return tuple(each for each in usable_libraries() if each.name == self._name)

    @cached_property
    def _autotuner(self) -> Autotuner:
        return Autotuner(self._backends, _tuning_cache(), self._excluded)

    @cached_property
    def _choose(self) -> Chooser:
        if self._name == "auto":
            return self._autotuner.choose
        return _Pinned(self._backends[0]).choose

    def tune(
        self, operator: RuntimeOperator, inputs: Sequence[Value]
    ) -> Generator[None, None, tuple[str, CompiledKernel]]:
        """Find the fastest kernel of an operator; see `Autotuner.tune`."""
        return self._autotuner.tune(operator, inputs)

    def make(self, operator: RuntimeOperator) -> Kernel:
        """Make the kernel of an operator."""
        # Random operators always use NumPy's generator.
        excluded = self._excluded[operator.name]
        allowed = [each for each in self._backends if each.name not in excluded]
        if not operator.random and any(b.supports(operator) for b in allowed):
            return SpecializedKernel(operator, self._choose)
        return NumpyKernel(operator)


class _Pinned:
    """Chooses one backend for every operator that it can compute."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def choose(
        self, operator: RuntimeOperator, inputs: Sequence[Value]
    ) -> tuple[str, CompiledKernel]:
        for name, compile_kernel in candidates(self._backend, operator, inputs).items():
            compiled = compile_kernel()
            if compiled is not None:
                return name, compiled
        return ONE_THREAD, one_thread_kernel(operator)
