"""Kernels: what computes an operator in the place of its own layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.values import Held

__all__ = ["REFERENCE", "SUPPLIED", "Kernel", "KernelTable", "backend_of"]

REFERENCE: Final = "numpy"
"""Name of the kernel that every operator has: its own layer."""
SUPPLIED: Final = "supplied"
"""Stands in records where a kernel's name does, for what the user gave."""


class Kernel(Protocol):
    """Computes one operator.

    Attributes
    ----------
    name : str
        Who computed the last result: the backend and, behind a slash, which of its kernels,
        e.g. ``onnxruntime/all-2``.
    """

    name: str

    def prepare(self, inputs: Sequence[Held]) -> None:
        """Get ready for inputs of these shapes and dtypes, which may take long."""
        ...

    def __call__(self, inputs: Sequence[Held]) -> tuple[Held, ...]:
        """Compute the outputs of the inputs it was prepared for.

        Returns and raises as `RuntimeOperator.forward` does.
        """
        ...

    def spent(self, seconds: float) -> float:
        """Time to be stated for the last call, which took `seconds`.

        Another one where several operators were computed at once.
        """
        ...


class KernelTable(Protocol):
    """The kernel of each operator, by index."""

    def __getitem__(self, index: int) -> Kernel: ...

    def approach(self, index: int, values: Mapping[str, Held]) -> None:
        """Hear that an operator comes next, which may take long.

        Parameters
        ----------
        index : int
        values : mapping of str to Held
            Operands that are known by now.
        """
        ...


def backend_of(name: str) -> str:
    """Backend that a kernel's name begins with."""
    return name.partition("/")[0]
