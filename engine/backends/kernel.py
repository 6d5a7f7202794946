"""Kernels, which a session calls to compute operators.

A kernel belongs to one operator. Libraries need shapes and dtypes to prepare anything, so a
kernel is *compiled* for its first inputs, and again when shapes or dtypes change.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import numpy as np

from engine.backends.blas import one_blas_thread
from engine.errors import EngineError
from engine.runtime.activity import announce
from engine.runtime.kernel import REFERENCE, SUPPLIED, Kernel, backend_of
from engine.values import materialise_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from engine.runtime import RuntimeOperator
    from engine.values import Array, Held, Value

    CompiledKernel = Callable[[Sequence[Value]], tuple[Value, ...]]
    Chooser = Callable[[RuntimeOperator, Sequence[Value]], tuple[str, "CompiledKernel"]]

Made = TypeVar("Made")

__all__ = [
    "MOST_COMPILED",
    "ONE_THREAD",
    "REFERENCE",
    "SUPPLIED",
    "Backend",
    "Kernel",
    "Kernels",
    "NumpyKernel",
    "SpecializedKernel",
    "backend_of",
    "candidates",
    "one_thread_kernel",
    "signature_of",
    "try_to_make",
]

# This is a kernel of its own, not the reference: matrix products may round differently on one
# thread.
ONE_THREAD: Final = f"{REFERENCE}/one-thread"

MOST_COMPILED: Final = 4  # input sizes that keep a kernel; each kernel holds its outputs


class Backend(Protocol):
    """A library that computes operators.

    Attributes
    ----------
    name : str
        As in ``Session(graph, backend=name)`` and in step records.
    packages : tuple of str
        Required packages.
    """

    name: str
    packages: tuple[str, ...]

    def describe(self, variant: str) -> str:
        """Describe a variant of `variants`."""
        ...

    def load(self, *, whole: bool) -> None:
        """Import the lowerings, and with `whole` the library itself.

        Raises any exception if the installation is broken.
        """
        ...

    def supports(self, operator: RuntimeOperator) -> bool:
        """Return whether an operator may have a kernel for some inputs."""
        ...

    def variants(
        self, operator: RuntimeOperator, inputs: Sequence[Value]
    ) -> Mapping[str, Callable[[], CompiledKernel]]:
        """Return the variants of an operator's kernel for inputs of given shapes and dtypes.

        Returns
        -------
        mapping of str to callable
            By variant, the default one first; empty if the library cannot compute it. Each
            compiles a kernel, which takes such inputs and returns the outputs, read-only and
            not aliasing the inputs. Compiling may raise any exception.
        """
        ...


class NumpyKernel:
    """Runs the operator's own layer: the reference.

    Parameters
    ----------
    operator : RuntimeOperator
    """

    __slots__ = ("_forward", "_operator_name", "name")

    def __init__(self, operator: RuntimeOperator) -> None:
        self.name = REFERENCE
        self._operator_name = operator.name
        self._forward = operator.forward

    def prepare(self, inputs: Sequence[Held]) -> None:
        """Do nothing: NumPy needs no preparation."""

    def __call__(self, inputs: Sequence[Held]) -> tuple[Value, ...]:
        """Compute the outputs."""
        announce(self._operator_name, REFERENCE)
        return self._forward(materialise_all(inputs))

    def spent(self, seconds: float) -> float:
        """Return the time to report for the last call: all of it."""
        return seconds


class SpecializedKernel:
    """Runs a kernel that was chosen and compiled for the inputs' shapes and dtypes.

    If a library's kernel fails, the reference computes instead, or reports the error; `name`
    is then the reference's.

    Parameters
    ----------
    operator : RuntimeOperator
    choose : callable
        Takes the operator and its inputs; returns the kernel's name and the compiled kernel.
    """

    __slots__ = ("_choose", "_chosen", "_compiled_kernels", "_operator", "_signature", "name")

    def __init__(self, operator: RuntimeOperator, choose: Chooser) -> None:
        self._operator, self._choose = operator, choose
        self._chosen: tuple[str, CompiledKernel] = (ONE_THREAD, one_thread_kernel(operator))
        self.name = ""
        self._compiled_kernels: dict[object, tuple[str, CompiledKernel]] = {}
        self._signature: object = None

    def prepare(self, inputs: Sequence[Held]) -> None:
        """Choose a compiled kernel if the shapes or dtypes have changed."""
        values = materialise_all(inputs)
        signature = signature_of(values)
        if signature != self._signature:
            if signature not in self._compiled_kernels:
                while len(self._compiled_kernels) >= MOST_COMPILED:
                    del self._compiled_kernels[next(iter(self._compiled_kernels))]
                self._compiled_kernels[signature] = self._choose(self._operator, values)
            self._chosen = self._compiled_kernels[signature]
            self._signature = signature
        self.name = self._chosen[0]

    def adopt(self, inputs: Sequence[Value], chosen: tuple[str, CompiledKernel]) -> None:
        """Use a kernel for inputs of these shapes and dtypes, from their `prepare` on.

        Parameters
        ----------
        inputs : sequence of Value
        chosen : (str, callable)
            The kernel's name, and the compiled kernel.
        """
        self._compiled_kernels[signature_of(inputs)] = chosen

    def __call__(self, inputs: Sequence[Held]) -> tuple[Value, ...]:
        """Compute the outputs."""
        values = materialise_all(inputs)
        announce(self._operator.name, self.name)
        try:
            return self._chosen[1](values)
        except EngineError:
            raise
        except Exception:  # noqa: BLE001 - whatever a library raises
            self.name = ONE_THREAD
            announce(self._operator.name, ONE_THREAD)
            return one_thread_kernel(self._operator)(values)

    def spent(self, seconds: float) -> float:
        """Return the time to report for the last call: all of it."""
        return seconds


class Kernels(dict[int, "Kernel"]):
    """Kernels by the operators' index, made on first use.

    So opening a model of many operators does not visit all of them.

    Parameters
    ----------
    operators : sequence of RuntimeOperator
    make : callable
        Makes the kernel of an operator.

    Attributes
    ----------
    wrong : list of str
        Names of kernels that were used and whose results differ from NumPy's, as tuning found.
    """

    def __init__(
        self,
        operators: Sequence[RuntimeOperator],
        make: Callable[[RuntimeOperator], Kernel],
    ) -> None:
        super().__init__()
        self._operators, self._make = operators, make
        self.wrong: list[str] = []

    def __missing__(self, index: int) -> Kernel:
        kernel = self[index] = self.make_single(index)
        return kernel

    def make_single(self, index: int) -> Kernel:
        """Make the kernel of a single operator."""
        return self._make(self._operators[index])

    def fed(self, inputs: Iterable[Array]) -> None:
        """Prepare for new inputs of the model."""

    def allow_fusion(self, *, allowed: bool) -> None:
        """Allow or forbid fusing consecutive operators.

        Values of fused operators cannot be recomputed one by one.
        """

    def approach(self, index: int, values: Mapping[str, Held]) -> None:
        """Prepare for the next operator, which may take long.

        Parameters
        ----------
        index : int
        values : mapping of str to Held
            The known operands.
        """

    @property
    def tuned(self) -> int:
        """Number of operators, from the first on, whose kernels need no more trials."""
        return len(self._operators)

    def tune(self, values: Mapping[str, Held]) -> Iterator[None]:  # noqa: ARG002
        """Try kernels for inputs of the present sizes; none here.

        The iterator yields after each trial. The caller may drop it then; another one
        continues.

        Parameters
        ----------
        values : mapping of str to Held
            The operands of a pass.
        """
        return iter(())


def one_thread_kernel(operator: RuntimeOperator) -> CompiledKernel:
    """Run the reference on one thread, so that it does not block other libraries' threads.

    OpenBLAS's threads spin for milliseconds after every matrix product.
    """

    def run(inputs: Sequence[Value]) -> tuple[Value, ...]:
        with one_blas_thread:
            return operator.forward(inputs)

    return run


def candidates(
    backend: Backend, operator: RuntimeOperator, inputs: Sequence[Value]
) -> dict[str, Callable[[], CompiledKernel | None]]:
    """Return the kernels that a backend may have for an operator.

    Returns
    -------
    dict of str to callable
        By name, in the order of `Backend.variants`. Each notes its activity and compiles the
        kernel, or returns None if the library refuses.
    """

    def compile_kernel(name: str, make: Callable[[], CompiledKernel]) -> CompiledKernel | None:
        announce(operator.name, name)
        return try_to_make(make)

    announce(operator.name, backend.name)
    return {
        name: partial(compile_kernel, name, make)
        for variant, make in backend.variants(operator, inputs).items()
        for name in [f"{backend.name}/{variant}"]
    }


def try_to_make(make: Callable[[], Made]) -> Made | None:
    """Compile a kernel; return None if the library refuses."""
    try:
        return make()
    except Exception:  # noqa: BLE001 - whatever a library dislikes, another one computes
        return None


def signature_of(inputs: Sequence[Value]) -> tuple[object, ...]:
    """Return what a compiled kernel depends on: shapes and dtypes of arrays, other values.

    The key of a list contains the keys of its members.

    The key of a number contains its type, because True, 1 and 1.0 are equal.
    """
    return tuple(
        [
            (value.shape, value.dtype.char)
            if isinstance(value, np.ndarray)
            else (type(value), signature_of(value) if isinstance(value, tuple) else value)
            for value in inputs
        ]
    )
