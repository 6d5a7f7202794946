"""Layer, the base of every operator's computation.

A layer is built once from an operator's parameters and attributes, with every check, and then
only computes. It gets the properties of its operator as an `OperatorCall` and never sees the
graph.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

from typing_extensions import override

from engine.errors import InferStatus, LayerError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.promotion import DType
    from engine.values import Array, Value

__all__ = [
    "NOWHERE",
    "Floats",
    "Ints",
    "Layer",
    "LibraryLayer",
    "NotInNumpyError",
    "Number",
    "OperatorCall",
    "Outputs",
    "PreparingLayer",
    "Storage",
]

Weights = TypeVar("Weights")

# Annotations that parameters are checked against when a layer is bound.
Ints: TypeAlias = int | tuple[int, ...]
Floats: TypeAlias = float | tuple[float, ...]
Number: TypeAlias = int | float | complex


class Outputs(tuple["Value", ...]):
    """Several results of one operator, in order.

    An operator of the file may use fewer outputs than the layer returns (``torch.max`` with a
    dim and no indices); the runtime then drops the rest. A plain tuple, by contrast, is one
    list-valued output.
    """

    __slots__ = ()


class Layer(ABC):
    """Computes one operator.

    Attributes
    ----------
    generator : str
        Argument of `forward` that takes the random generator; ``""`` for none. Set by the
        binding.
    """

    generator: str = ""

    @abstractmethod
    def forward(self, *inputs: Any, **named: Any) -> object:
        """Compute the outputs.

        Parameters
        ----------
        *inputs : Value
            The operator's inputs in file order; arrays are read-only. A layer uses PyTorch's
            names and annotates the types.
        **named : Value
            Inputs that the file names out of order.

        Returns
        -------
        Value or Outputs
            May alias the inputs.

        Raises
        ------
        LayerError
            With the reason; the runtime adds the operator.
        """

    def release(self) -> None:  # noqa: B027 - most layers prepare nothing
        """Release prepared data, such as weights in another layout.

        The next `forward` prepares it again. Called when a library with its own copy of the
        weights computes instead.
        """


class NotInNumpyError(LayerError):
    """NumPy has no code for an operator with these parameters, but a library does."""


class LibraryLayer(Layer):
    """An operator that only a library computes.

    Parameters
    ----------
    reason : str
        Why NumPy does not compute it.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason

    @override
    def forward(self, *inputs: Any, **named: Any) -> object:
        """Raise an error."""
        raise LayerError(self.reason, InferStatus.kInferLayerNotImplement)


class PreparingLayer(Layer, Generic[Weights]):
    """A layer that prepares its weights on first use.

    The prepared weights depend on the dtype of the computation.
    """

    def __init__(self) -> None:
        self._prepared: dict[DType, Weights] = {}

    def prepared(self, dtype: DType) -> Weights:
        """Return the prepared weights."""
        weights = self._prepared.get(dtype)
        if weights is None:
            weights = self._prepared[dtype] = self.prepare(dtype)
        return weights

    @abstractmethod
    def prepare(self, dtype: DType) -> Weights:
        """Prepare the weights."""

    @override
    def release(self) -> None:
        """Release the prepared weights."""
        self._prepared.clear()


@dataclass(frozen=True, slots=True)
class Storage:
    """Layout of an operator's first input in the storage of another tensor, in PyTorch.

    Attributes
    ----------
    offset : int
        Index of its first element in the other tensor.
    strides : tuple of int
        Steps along its dimensions.
    unknown : str
        Why the layout is unknown; ``""`` if it is known.
    """

    offset: int = 0
    strides: tuple[int, ...] = ()
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class OperatorCall:
    """The properties of an operator that its layer may use.

    Attributes
    ----------
    name, type : str
        Operators without weights that differ only in their names share a layer, except for
        layers of the user; so only errors while the layer is built may use the name.
    params : mapping of str to Value
        Parameters as plain values.
    attributes : mapping of str to Array
        Weights; read-only. While the operator is only checked they are zeros of the right
        shapes and dtypes; the layer is built again with the actual weights.
    input_names : tuple of str
        PyTorch's argument name of each input, ``""`` where the file gives none.
    output_count : int
    constants : mapping of int to Value
        By index, the inputs with a constant value in the file (by a ``prim::Constant``, say).
    output_shapes : tuple
        Annotated shape of each output, None if the file has none; empty if unknown.
    storage : Storage or None
        For a type that reads memory by strides; None if the first input has its own storage.
    """

    name: str
    type: str
    params: Mapping[str, Value]
    attributes: Mapping[str, Array] = field(default_factory=dict)
    input_names: tuple[str, ...] = ()
    output_count: int = 1
    constants: Mapping[int, Value] = field(default_factory=dict)
    output_shapes: tuple[Sequence[object] | None, ...] = ()
    storage: Storage | None = None

    @property
    def output_shape(self) -> Sequence[object] | None:
        """Annotated shape of the first output; None if unknown."""
        return self.output_shapes[0] if self.output_shapes else None


# For code that is called without a file.
NOWHERE: Final = OperatorCall("", "", {})
