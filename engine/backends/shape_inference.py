"""Finds the parts of a subgraph without computing operators.

A subgraph needs the shapes of its operands and the memory layout of NumPy's views, but no
elements. So uninitialised memory stands in for the result of an operator. Its shape is inferred
from the lowered nodes. NumPy only runs operators that move elements or return views.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from engine.backends.estimates import (
    estimate_cost,
    estimate_fused_seconds,
    estimate_numpy_seconds,
)
from engine.backends.fusion import Part, Role, lay_out_as_fused, part_of
from engine.backends.lowering import LoweringError
from engine.backends.subgraph import Subgraph, lower_operator
from engine.cost import is_free
from engine.errors import EngineError
from engine.memory_bound import current_room
from engine.runtime.activity import announce
from engine.runtime.kernel import REFERENCE
from engine.values import materialise, value_nbytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from engine.promotion import DType
    from engine.runtime import RuntimeOperator
    from engine.values import Array, Held, Value

__all__ = ["Inferred", "infer_parts", "infer_result"]

_COPIES: Final = 3  # bytes of all results of a subgraph while it is made


class Inferred(NamedTuple):
    """Consecutive operators that may be fused.

    Attributes
    ----------
    parts : list of Part
        The operators that have a role, up to the first that has none or whose shape cannot be
        inferred.
    stand_ins : dict of str to Value
        Their results, with the right shape, dtype and memory layout, but undefined elements.
    numpy_seconds : float
        Estimated time of NumPy for them.
    """

    parts: list[Part]
    stand_ins: dict[str, Value]
    numpy_seconds: float


def infer_parts(
    row: Sequence[RuntimeOperator], values: Mapping[str, Held], limit: float = np.inf
) -> Inferred:
    """Find the roles of consecutive operators in a subgraph.

    Parameters
    ----------
    row : sequence of RuntimeOperator
    values : mapping of str to Held
        The known operands.
    limit : float, optional
        Estimated seconds that a run of the subgraph may take. It ends after the operator that
        exceeds them.
    """
    # One inference that confirms the file's shapes takes a tenth of the time of one inference
    # per operator.
    return (
        _infer_parts(row, values, limit, stated=True)
        or _infer_parts(row, values, limit, stated=False)
        or Inferred([], {}, 0.0)
    )


def _infer_parts(
    row: Iterable[RuntimeOperator], values: Mapping[str, Held], limit: float, *, stated: bool
) -> Inferred | None:
    """Find the roles, with the file's shapes if `stated`; None if these are wrong."""
    parts: list[Part] = []
    stand_ins: dict[str, Value] = {}
    graph = Subgraph()
    spent, taken, numpy_seconds = 0.0, 0, 0.0
    for operator in row:
        names = [operand.name for operand in operator.inputs]
        if spent > limit or not all(name in stand_ins or name in values for name in names):
            break
        inputs = [
            stand_ins[name] if name in stand_ins else materialise(values[name])
            for name in names
        ]
        try:
            stand_in = _stand_in(operator, names, inputs, stated=stated)
        except (LoweringError, EngineError):  # the operator's own kernel reports the error
            break
        output = lay_out_as_fused(stand_in, inputs)
        part = part_of(graph, operator, inputs, [output])
        taken += value_nbytes(output)
        if part is None or taken > current_room().left / _COPIES:
            break
        if part.role is not Role.CONSTANT:
            found = estimate_cost(operator, inputs, output)
            part.seconds = estimate_fused_seconds(found)
            numpy_seconds += estimate_numpy_seconds(operator, found)
        spent += part.seconds
        parts.append(part)
        stand_ins[part.output] = output
    if stated and not _is_confirmed(graph, parts, stand_ins):
        return None
    return Inferred(parts, stand_ins, numpy_seconds)


def _is_confirmed(
    graph: Subgraph, parts: Iterable[Part], stand_ins: Mapping[str, Value]
) -> bool:
    """Return whether the results of a subgraph have the shapes of their stand-ins."""
    given = [stand_ins[part.output] for part in parts if part.given]
    if not given:
        return True
    from engine.backends.onnx_lowering import infer_outputs

    inferred = infer_outputs(graph)[: len(given)]
    return inferred == [
        (array.shape, array.dtype) for array in given if isinstance(array, np.ndarray)
    ]


def _stand_in(
    operator: RuntimeOperator, names: Sequence[str], inputs: Sequence[Value], *, stated: bool
) -> Value:
    """Return uninitialised memory in the layout of an operator's result.

    Raises
    ------
    LoweringError
        If its shape cannot be inferred.
    EngineError
        If the operator fails.
    """
    from engine.backends.operator_lowerings import LOWERINGS

    if not inputs:
        return operator.forward(inputs)[0]
    if not LOWERINGS.has(operator):
        if not is_free(operator.type):  # it may take long, or be a layer of the user
            raise LoweringError("no result without computing it")
        announce(operator.name, REFERENCE)
        return operator.forward(inputs)[0]
    output = operator.outputs[0]
    if stated and output.shape is not None and output.dtype is not None:
        sizes = [size for size in output.shape if isinstance(size, int)]
        if len(sizes) == len(output.shape):
            return _memory(tuple(sizes), output.dtype)
    return infer_result(operator, names, inputs)


def infer_result(
    operator: RuntimeOperator, names: Sequence[str], inputs: Sequence[Value]
) -> Array:
    """Return uninitialised memory in the layout of a result that ONNX Runtime may compute.

    Parameters
    ----------
    operator : RuntimeOperator
    names : sequence of str
        Names of the inputs.
    inputs : sequence of Value

    Raises
    ------
    LoweringError
        If its shape cannot be inferred.
    """
    from engine.backends.onnx_lowering import infer_outputs
    from engine.backends.operator_lowerings import LOWERINGS

    graph = Subgraph()
    lower_operator(graph, operator, inputs, names, "result", LOWERINGS)
    (found,) = infer_outputs(graph)
    if found is None:
        raise LoweringError("a result of unknown shape")
    return _memory(*found)


def _memory(shape: tuple[int, ...], dtype: DType) -> Array:
    """Return memory whose pages the system provides only when they are read.

    Raises
    ------
    LoweringError
        If there is no room for such a result.
    """
    if math.prod(shape) * dtype.itemsize > current_room().left / _COPIES:
        raise LoweringError("no room for the result")
    memory = np.zeros(shape, dtype)
    memory.flags.writeable = False
    return memory
