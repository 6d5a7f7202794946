"""The frame that every operator's computation lives in.

A layer is built once from an operator's parameters and attributes, where every check
happens, and then only computes. What it needs to know of its operator comes as an
`OperatorCall`; it never sees the graph.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.promotion import DType
    from engine.values import Array, Value

__all__ = [
    "NOWHERE",
    "Floats",
    "Ints",
    "Layer",
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

    An operator of the file may use fewer outputs than the layer gives (``torch.max`` with a
    dim and no indices); the frame then drops the rest. A plain tuple, by contrast, is one
    list-valued output.
    """

    __slots__ = ()


class Layer(ABC):
    """Computes one operator.

    Attributes
    ----------
    generator : str
        Argument of `forward` that takes the random numbers; ``""`` where none are drawn. The
        frame that binds the layer sets it.
    """

    generator: str = ""

    @abstractmethod
    def forward(self, *inputs: Any, **named: Any) -> object:
        """Compute the outputs.

        Parameters
        ----------
        *inputs : Value
            The operator's inputs in file order; arrays are read-only. A layer names them
            as PyTorch does and annotates what they must be.
        **named : Value
            Inputs that the file names out of order.

        Returns
        -------
        Value or Outputs
            May alias the inputs.

        Raises
        ------
        LayerError
            With what is wrong; the runtime adds which operator it was.
        """

    def release(self) -> None:  # noqa: B027 - most have prepared nothing
        """Let go of what was prepared for computing, such as weights in another layout.

        The next `forward` prepares it again. Called where a library computes instead, which
        has a form of its own of the weights.
        """


class PreparingLayer(Layer, Generic[Weights]):
    """A layer that computes with weights in another form, made when it is first needed.

    The form depends on the dtype that is computed in.
    """

    def __init__(self) -> None:
        self._prepared: dict[DType, Weights] = {}

    def prepared(self, dtype: DType) -> Weights:
        """Give the weights as they are computed with."""
        weights = self._prepared.get(dtype)
        if weights is None:
            weights = self._prepared[dtype] = self.prepare(dtype)
        return weights

    @abstractmethod
    def prepare(self, dtype: DType) -> Weights:
        """Make that form of the weights."""

    @override
    def release(self) -> None:
        """Let go of the weights in the form that was prepared."""
        self._prepared.clear()


@dataclass(frozen=True, slots=True)
class Storage:
    """How an operator's first input lies in the memory of another, as PyTorch has them.

    Attributes
    ----------
    offset : int
        Place of its first element, in elements of the other.
    strides : tuple of int
        Steps along its dimensions.
    unknown : str
        Why it is not known how it lies; ``""`` where it is.
    """

    offset: int = 0
    strides: tuple[int, ...] = ()
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class OperatorCall:
    """What a layer may know of the operator that it is built for.

    Attributes
    ----------
    name, type : str
        Of the engine's own layers, operators without weights share one when nothing but
        their names differs; so the name is for errors while it is built.
    params : mapping of str to Value
        Parameters as plain values.
    attributes : mapping of str to Array
        Weights; read-only. Zeros of their shapes and dtypes while the operator is only checked,
        which is done without reading them: a layer is built anew with what they hold.
    input_names : tuple of str
        PyTorch's argument name of each input, ``""`` where the file gives none.
    output_count : int
    constants : mapping of int to Value
        By place, the inputs whose value the file itself gives (by a ``prim::Constant``, say).
    output_shapes : tuple
        Annotated shape of each output, None where the file gives none; empty where it is not
        known.
    storage : Storage or None
        Of a type that reads memory by steps; None where the first input lies by itself.
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
        """Annotated shape of the first output; None where it is not known."""
        return self.output_shapes[0] if self.output_shapes else None


# For code that is called without a file.
NOWHERE: Final = OperatorCall("", "", {})
