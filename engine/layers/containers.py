"""``prim::`` operators that pack and unpack tuples, lists and dictionaries.

A list, a tuple and the values of a dictionary are each a Python tuple here; the values inside
are not copied.
"""

from __future__ import annotations

import numpy as np
from typing_extensions import override

from engine.errors import InferStatus, LayerError
from engine.layers.annotations import OperandOf
from engine.layers.arguments import as_int, require_few
from engine.layers.layer import Layer, OperatorCall, Outputs
from engine.layers.registry import register
from engine.values import Value, describe_value

__all__ = ["Unpack", "construct", "construct_dictionary", "member"]


@register("prim::TupleConstruct", "prim::ListConstruct")
def construct(*members: Value) -> Value:
    """Pack the inputs into a tuple or list.

    An input may come more than once, and may itself be a tuple.
    """
    return members


@register("prim::DictConstruct")
def construct_dictionary(*entries: Value) -> Value:
    """Pack the values of a dictionary into a tuple, in its order.

    The inputs are keys and values in turn; the keys are dropped.
    """
    if len(entries) % 2:
        raise LayerError(f"the key {describe_value(entries[-1])} has no value")
    return entries[1::2]


@register("prim::TupleUnpack", "prim::ListUnpack")
class Unpack(Layer):
    """Unpack a tuple or list: one output per member."""

    def __init__(self, operator: OperatorCall) -> None:
        self._count = operator.output_count

    @override
    def forward(self, members: Value) -> Outputs:
        """Unpack the members.

        Parameters
        ----------
        members : tuple, or ndarray of shape (N, ...)
            A tensor gives its parts along the first dimension, as in Python.

        Raises
        ------
        LayerError
            If there are more or fewer members than outputs.
        """
        if isinstance(members, np.ndarray) and members.ndim:
            require_few(len(members), "the list")
            members = tuple(members)
        if not isinstance(members, tuple):
            raise LayerError(f"{describe_value(members)} cannot be unpacked")
        if len(members) != self._count:
            raise LayerError(
                f"the input has {len(members)} members, the operator {self._count} outputs",
                InferStatus.kInferArraySizeMismatch,
            )
        return Outputs(members)


@register("prim::TupleIndex", "aten::__getitem__")
def member(input: OperandOf[Value], index: Value) -> Value:
    """Take one member out of a tuple or list: TorchScript's ``values[index]``.

    Parameters
    ----------
    input : tuple
    index : int
        Negative ones count from the end.
    """
    if not isinstance(input, tuple):
        raise LayerError(f"{describe_value(input)} cannot be unpacked")
    number = as_int(index, "index")
    if not -len(input) <= number < len(input):
        raise LayerError(f"there is no member {number} among {len(input)}")
    return input[number]
