"""One operator of a run, as the rules see it."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeGuard

import numpy as np

from engine.errors import EngineError
from engine.layers.binding import FunctionLayer, code_of
from engine.layers.containers import Unpack
from engine.provenance.records import Factor, Interval
from engine.runtime.members import LISTS
from engine.values import ArrayMetadata

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from engine.layers import Layer
    from engine.provenance.records import Box
    from engine.runtime import RuntimeOperator
    from engine.session import Session
    from engine.values import Array, Value

__all__ = ["CANNOT", "Call", "NoBreakdownError", "Operand", "is_array", "rounding"]

_HALF: Final = np.dtype(np.float16)


class NoBreakdownError(Exception):
    """A rule cannot break down these arguments; its text is the reason."""


# What a rule may raise on arguments that it was not written for. They must not hide what is
# known about the others.
CANNOT: Final = (
    NoBreakdownError, EngineError, ArithmeticError, LookupError, TypeError, ValueError
)  # fmt: skip


class Operand:
    """An array that goes into an operator; read when a rule needs its elements.

    Parameters
    ----------
    session : Session
    name : str
    metadata : ArrayMetadata

    Attributes
    ----------
    name : str
    shape : tuple of int
    dtype : dtype
    """

    def __init__(self, session: Session, name: str, metadata: ArrayMetadata) -> None:
        self._session, self.name = session, name
        self.shape, self.dtype = metadata.shape, np.dtype(metadata.dtype)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @cached_property
    def value(self) -> Array:
        """The elements; read-only."""
        return np.asarray(self._session.value(self.name))

    @property
    def whole(self) -> Box:
        """The region of all elements."""
        return tuple([Interval.whole(size) for size in self.shape])


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """An operator with its bound arguments.

    Attributes
    ----------
    operator : RuntimeOperator
    layer : Layer
        Whose code runs.
    inputs : tuple of (Operand or Value)
        One for each input operand; arrays as `Operand`.
    arguments : dict of str to object
        By the names of the code's arguments, with defaults. Weights of a function are arrays.
    place : int
        Which output is explained.
    shape : tuple of int
        Of that output.
    dtype : dtype
        Of that output.
    """

    operator: RuntimeOperator
    layer: Layer
    inputs: tuple[Operand | Value, ...]
    arguments: dict[str, Any]
    place: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, session: Session, operator: RuntimeOperator, place: int) -> Call:
        """Bind an operator that has run; for one that unpacks, that which made the member.

        Raises
        ------
        NoBreakdownError
            If the output is no array, or the operator has no layer.
        EngineError
            If a weight cannot be read.
        """
        metadata = session.metadata(operator.outputs[place].name)
        operator, place = _maker(operator, place)
        layer = operator.layer
        if layer is None:
            raise NoBreakdownError(f"{operator.type} has no layer")
        if not isinstance(metadata, ArrayMetadata):
            raise NoBreakdownError("the operand is no tensor")
        inputs = tuple([_describe(session, operand.name) for operand in operator.inputs])
        owner = layer.owner if isinstance(layer, FunctionLayer) else None
        return cls(
            operator,
            owner or layer,
            inputs,
            _bind(layer, inputs),
            place,
            metadata.shape,
            np.dtype(metadata.dtype),
        )

    def array(self, name: str) -> Operand:
        """Return an argument that is an operand.

        Raises
        ------
        NoBreakdownError
            If it is none.
        """
        found = self.arguments.get(name)
        if not isinstance(found, Operand):
            raise NoBreakdownError(f"{name} of {self.operator.type} is no operand")
        return found

    def elements(self, name: str, indices: npt.NDArray[np.int64]) -> Factor:
        """Return elements of an argument, an operand or a weight.

        Parameters
        ----------
        name : str
            Of the argument.
        indices : ndarray of int64, shape (T, D)
        """
        return take(self.arguments[name], name, indices)

    @property
    def layer_code(self) -> Callable[..., Any]:
        """The registered code of the layer."""
        return code_of(self.layer)

    @property
    def arrays(self) -> tuple[Operand, ...]:
        """The inputs that are arrays."""
        return tuple([each for each in self.inputs if isinstance(each, Operand)])

    def forward(self, values: Sequence[Value]) -> Value:
        """Run the operator on other values, and return the output that is explained."""
        found = self.operator.forward(list(values))
        if len(found) == 1 and isinstance(found[0], tuple):  # unpacked by the next operator
            found = found[0]
        return found[self.place]


def take(source: Operand | Array, label: str, indices: npt.NDArray[np.int64]) -> Factor:
    """Return elements of an operand or a weight; zeros where an index is -1."""
    is_operand = isinstance(source, Operand)
    array = source.value if isinstance(source, Operand) else source
    inside = np.asarray((indices >= 0).all(axis=1))
    values = np.asarray(array[tuple(np.where(inside[:, np.newaxis], indices, 0).T)])
    if values.dtype.kind == "c":
        raise NoBreakdownError("complex numbers have no breakdown")
    found = np.where(inside, values.astype(np.float64), 0.0)
    marked = np.where(inside[:, np.newaxis], indices, -1)
    return Factor(
        source.name if isinstance(source, Operand) else label, is_operand, marked, found
    )


def is_array(value: object) -> TypeGuard[Operand | Array]:
    """Whether an argument is an operand or a weight."""
    return isinstance(value, (Operand, np.ndarray))


def rounding(dtype: np.dtype[Any]) -> float:
    """Return the largest relative error of rounding to a dtype; 0 for integers."""
    if dtype.kind != "f":
        return 0.0
    return float(np.finfo(dtype).eps) / 2


def _maker(operator: RuntimeOperator, place: int) -> tuple[RuntimeOperator, int]:
    """Follow a member of a tuple to the operator that made it, and to its place there."""
    while operator.layer is not None and code_of(operator.layer) is Unpack:
        given = operator.inputs[0].producer
        if given is None:
            raise NoBreakdownError(f"nothing makes what {operator.type} unpacks")
        if given.type in LISTS:
            member = given.inputs[place]
            if member.producer is None:
                raise NoBreakdownError(f"nothing makes operand {member.name}")
            operator = member.producer
            place = [each.name for each in operator.outputs].index(member.name)
        elif given.type == "pnnx.Input" or not given.inputs:
            raise NoBreakdownError("a tuple that the model is given has no breakdown")
        else:
            return given, place
    return operator, place


def _describe(session: Session, name: str) -> Operand | Value:
    metadata = session.metadata(name)
    if isinstance(metadata, ArrayMetadata):
        return Operand(session, name, metadata)
    return session.value(name)


def _bind(layer: Layer, inputs: Sequence[object]) -> dict[str, Any]:
    """Return the arguments of a layer's code by name."""
    if isinstance(layer, FunctionLayer):
        positional, named = layer.arguments(inputs)
        bound = _signature_of(layer.target).bind_partial(
            *positional, **{**layer.static, **named}
        )
    else:
        bound = _signature_of(layer.forward).bind_partial(*inputs)
    bound.apply_defaults()
    return dict(bound.arguments)


def _signature_of(code: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a function or a method."""
    function = getattr(code, "__func__", None)
    # Of the function: a method would keep its layer, and so the weights, in the cache.
    return _signature(function or code, is_method=function is not None)


@lru_cache(maxsize=1024)
def _signature(function: Callable[..., Any], *, is_method: bool) -> inspect.Signature:
    found = inspect.signature(function)
    parameters = list(found.parameters.values())
    return found.replace(parameters=parameters[1:]) if is_method else found
