"""The interface of kernels, which compute operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.values import Held

__all__ = ["REFERENCE", "SUPPLIED", "Kernel", "KernelTable", "backend_of"]

REFERENCE: Final = "numpy"
"""Name of the kernel that every operator has: its own layer."""
SUPPLIED: Final = "supplied"
"""Name in records for values of the user, instead of a kernel's."""


class Kernel(Protocol):
    """Computes one operator.

    Attributes
    ----------
    name : str
        Kernel of the last result: the backend, a slash and its variant, e.g.
        ``onnxruntime/all-2``.
    """

    name: str

    def prepare(self, inputs: Sequence[Held]) -> None:
        """Prepare for inputs of these shapes and dtypes, which may take long."""
        ...

    def __call__(self, inputs: Sequence[Held]) -> tuple[Held, ...]:
        """Compute the outputs for prepared inputs.

        Returns and raises as `RuntimeOperator.forward` does.
        """
        ...

    def spent(self, seconds: float) -> float:
        """Return the time to report for the last call, which took `seconds`.

        They differ if several operators were computed at once.
        """
        ...


class KernelTable(Protocol):
    """The kernel of each operator, by index."""

    def __getitem__(self, index: int) -> Kernel: ...

    def approach(self, index: int, values: Mapping[str, Held]) -> None:
        """Prepare for the next operator, which may take long.

        Parameters
        ----------
        index : int
        values : mapping of str to Held
            The known operands.
        """
        ...


def backend_of(name: str) -> str:
    """Return the backend of a kernel's name."""
    return name.partition("/")[0]
