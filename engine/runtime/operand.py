"""An operand of the executable graph: what flows along one edge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from engine.tensor import Tensor

if TYPE_CHECKING:
    import numpy as np

    from engine.runtime.operator import RuntimeOperator
    from engine.values import Array

__all__ = ["RuntimeOperand"]


class RuntimeOperand:
    """A tensor's place in the graph, shared by its producer and all its consumers.

    Values live in sessions, not here, so that one graph serves many sessions.

    Attributes
    ----------
    name : str
    index : int
        Position among the graph's operands.
    producer : RuntimeOperator or None
    consumers : tuple of RuntimeOperator
        One entry per use: an operator that takes the operand twice is there twice.
    shape : tuple of int, str or None, or None
        As the exporter saw it; a None dimension is unknown (``?``), a str one a symbol.
        None as a whole: the file does not say.
    dtype : numpy.dtype or None
        None where the file does not say.
    """

    __slots__ = ("consumers", "dtype", "index", "name", "producer", "shape")

    def __init__(
        self,
        name: str,
        index: int,
        shape: tuple[int | str | None, ...] | None,
        dtype: np.dtype[Any] | None,
    ) -> None:
        self.name, self.index, self.shape, self.dtype = name, index, shape, dtype
        self.producer: RuntimeOperator | None = None
        self.consumers: tuple[RuntimeOperator, ...] = ()

    @staticmethod
    def tensors(value: Array) -> list[Tensor]:
        """Split a value of this operand into KuiperInfer's per-sample tensors.

        Parameters
        ----------
        value : ndarray of shape (N, C, H, W), or fewer dimensions

        Returns
        -------
        list of Tensor
            N tensors that alias `value`.
        """
        return Tensor.batch(value)

    @override
    def __repr__(self) -> str:
        return f"RuntimeOperand({self.name!r}, shape={self.shape}, dtype={self.dtype})"
