"""NumPy with reused buffers, for operators of one pass over the elements.

The reference spends most of its time for such an operator on page faults of fresh memory. With
a buffer, one thread is as fast as a library's two, and no other threads are awake that would
slow down the next convolution.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from engine.backends.buffers import Buffer
from engine.backends.lowering import LoweringError, LoweringTable, Operand
from engine.backends.node_kinds import ELEMENTWISE
from engine.expression import Call, Constant, OperandRef
from engine.layers.activations import hardtanh, relu, relu6, tanh
from engine.layers.expression import Expression
from engine.layers.onnx.meanings import OnnxExpression

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.backends.kernel import CompiledKernel
    from engine.runtime import RuntimeOperator
    from engine.values import Array, Value

__all__ = ["NumpyBuffers"]

_FLOAT32: Final = np.dtype(np.float32)
_UFUNCS: Final = {
    name: row.ufunc for row in ELEMENTWISE.values() if row.ufunc for name in row.functions
}


class _Pass(NamedTuple):
    """One pass over the elements.

    Attributes
    ----------
    compute : callable
        Takes the input arrays and the output array.
    shape : tuple of int
        Shape of the output.
    """

    compute: Callable[[Sequence[Any], Array], object]
    shape: tuple[int, ...]


_LOWERINGS: Final[LoweringTable[None, _Pass]] = LoweringTable()


class NumpyBuffers:
    """Computes operators that are one pass over float32 elements."""

    name = "numpy"
    packages: tuple[str, ...] = ()

    def describe(self, variant: str) -> str:
        """Describe a variant of `variants`."""
        return "NumPy, into a reused buffer" if variant == "buffer" else variant

    def load(self, *, whole: bool) -> None:
        """Do nothing: NumPy is loaded."""

    def supports(self, operator: RuntimeOperator) -> bool:
        """Return whether an operator may have a kernel for some inputs."""
        return _LOWERINGS.has(operator)

    def variants(
        self, operator: RuntimeOperator, inputs: Sequence[Value]
    ) -> dict[str, Callable[[], CompiledKernel]]:
        """Return the one variant of a kernel."""
        operands = [
            Operand(f"x{index}", index, value.shape, value.dtype)
            for index, value in enumerate(inputs)
            if isinstance(value, np.ndarray) and value.dtype == _FLOAT32 and value.size
        ]
        if len(operands) < len(inputs) or len(operator.outputs) != 1:
            return {}
        try:
            found = _LOWERINGS.write(None, operator, operands)
        except LoweringError:
            return {}
        return {"buffer": lambda: _compile(found)}


def _compile(work: _Pass) -> CompiledKernel:
    buffer = Buffer(work.shape, _FLOAT32)

    def run(inputs: Sequence[Value]) -> tuple[Value, ...]:
        buffer.renew()
        with np.errstate(all="ignore"):  # inf and NaN are results here, as in PyTorch
            work.compute(inputs, buffer.memory)
        return (buffer.shown,)

    return run


@_LOWERINGS.register(relu)
def _relu(_: None, input: Operand) -> _Pass:
    return _Pass(lambda arrays, out: np.maximum(arrays[0], 0, out=out), input.shape)


@_LOWERINGS.register(relu6)
def _relu6(_: None, input: Operand) -> _Pass:
    return _hardtanh(_, input, 0.0, 6.0)


@_LOWERINGS.register(hardtanh)
def _hardtanh(_: None, input: Operand, min_val: float = -1.0, max_val: float = 1.0) -> _Pass:
    return _Pass(lambda arrays, out: np.clip(arrays[0], min_val, max_val, out=out), input.shape)


@_LOWERINGS.register(tanh)
def _tanh(_: None, input: Operand) -> _Pass:
    return _Pass(lambda arrays, out: np.tanh(arrays[0], out=out), input.shape)


@_LOWERINGS.register(Expression, OnnxExpression)
def _expression(_: None, layer: Expression, *operands: Operand) -> _Pass:
    """Compile one operation of tensors, or of a tensor and a number."""
    *leaves, call = layer.expression.nodes
    ufunc = _UFUNCS.get(call.name) if isinstance(call, Call) else None
    if ufunc is None or not isinstance(call, Call) or len(call.children) != 2:
        raise LoweringError("more than one operation")
    if len(leaves) != 2 or not any(isinstance(leaf, OperandRef) for leaf in leaves):
        raise LoweringError("more than one operation")
    left, right = (_make_reader(layer.expression.nodes[child.index]) for child in call.children)
    shapes = (o.shape for o in operands)
    return _Pass(
        lambda arrays, out: ufunc(left(arrays), right(arrays), out=out),
        np.broadcast_shapes(*shapes),
    )


def _make_reader(node: object) -> Callable[[Sequence[Any]], Any]:
    """Return a leaf of an expression: an input or a number."""
    if isinstance(node, OperandRef):
        place = node.operand
        return lambda arrays: arrays[place]
    if isinstance(node, Constant) and type(node.value) in {int, float}:
        number = float(node.value)  # type: ignore[arg-type]
        return lambda _: number
    raise LoweringError("neither a tensor nor a number")
