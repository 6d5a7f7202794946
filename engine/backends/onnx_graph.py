"""A small ONNX model, written node by node, for one operator.

Inputs and outputs may be declared in another shape than the operands have, as long as the
bytes are the same: an unbatched image goes in as a batch of one, a stack of rows as one
matrix, and nothing is copied for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import onnx
from onnx import helper, numpy_helper

from engine.backends.forms import NoFormError, Operand

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["OnnxGraph", "OnnxModel"]

_OPSET: Final = 20
_IR_VERSION: Final = 9
_LAID_OUT: Final = frozenset(["Conv", "MaxPool", "AveragePool", "GlobalAveragePool"])


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """A finished model.

    Attributes
    ----------
    content : bytes
        As ONNX stores it.
    inputs : tuple of Operand
        The operands that it reads, in the shapes that it declares.
    output : str
    shape : tuple of int or None
        What shape the output is to be given afterwards; None as it comes.
    has_convolution : bool
        Whether ONNX Runtime would change the layout of images for it.
    above_infinity : tuple of int
        Which of the operator's inputs must hold neither NaN nor -inf.
    finite : bool
        Whether the output must hold neither NaN nor infinities.
    """

    content: bytes
    inputs: tuple[Operand, ...]
    output: str
    shape: tuple[int, ...] | None
    has_convolution: bool
    above_infinity: tuple[int, ...] = ()
    finite: bool = False


class OnnxGraph:
    """Collects nodes, constants and the operands that they read."""

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._inputs: dict[str, Operand] = {}
        self._above_infinity: list[int] = []
        self._finite = False
        self._count = 0

    def read(
        self, operand: object, shape: Sequence[int] | None = None, *, integers: bool = False
    ) -> str:
        """Read an operand.

        Parameters
        ----------
        operand : Operand, ndarray or number
            An array or number is a constant.
        shape : sequence of int, optional
            To read it in, of as many elements; its own without.
        integers : bool
            Whether it may be of int64.

        Returns
        -------
        str
            Name of the value.

        Raises
        ------
        NoFormError
            If it is anything else.
        """
        if not isinstance(operand, Operand):
            return self.constant(operand, shape)
        if operand.dtype != np.float32 and not integers:
            raise NoFormError(f"an operand of {operand.dtype}")
        wanted = operand.shape if shape is None else tuple(shape)
        if math.prod(wanted) != math.prod(operand.shape):
            raise NoFormError(f"{operand.shape} cannot be read as {wanted}")
        name = f"{operand.name}_{'x'.join(map(str, wanted))}"
        self._inputs[name] = Operand(name, operand.index, wanted, operand.dtype)
        return name

    def constant(self, value: object, shape: Sequence[int] | None = None) -> str:
        """Add a constant: an array, or a float32 from a number."""
        if isinstance(value, (bool, complex, str)) or value is None:
            raise NoFormError(f"{value!r} is no constant here")
        array = np.asarray(value)
        if not isinstance(value, np.ndarray) and array.dtype != np.int64:
            array = array.astype(np.float32)
        if array.dtype not in {np.dtype(np.float32), np.dtype(np.int64)}:
            raise NoFormError(f"a constant of {array.dtype} is not supported")
        if shape is not None:
            array = array.reshape(shape)
        name = self._name("c")
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def integers(self, *values: int) -> str:
        """Add a constant list of int64."""
        return self.constant(np.asarray(values, np.int64))

    def node(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        """Add a node.

        Parameters
        ----------
        op_type : str
            As ONNX names it.
        *inputs : str
            Names of values, ``""`` for an optional one that is left out.
        **attributes
            Those that are None are left out.

        Returns
        -------
        str
            Name of the output.
        """
        output = self._name("v")
        given = {k: v for k, v in attributes.items() if v is not None}
        self._nodes.append(helper.make_node(op_type, inputs, [output], **given))
        return output

    def require_above_infinity(self, operand: Operand) -> None:
        """Leave the work to the reference where an operand holds NaN or -inf.

        For nodes that pass over them.
        """
        self._above_infinity.append(operand.index)

    def require_finite(self) -> None:
        """Leave the work to the reference where the output holds NaN or infinities.

        For nodes that make them where there are none, or of others.
        """
        self._finite = True

    def finish(self, result: str, shape: tuple[int, ...] | None) -> OnnxModel:
        """Close the model.

        Parameters
        ----------
        result : str
            Name of the value that comes out.
        shape : tuple of int or None
            See `OnnxModel.shape`.
        """
        produced = {name for node in self._nodes for name in node.output}
        if not self._inputs or result not in produced:
            raise NoFormError("nothing is computed")
        kinds = {np.dtype(np.float32): onnx.TensorProto.FLOAT,
                 np.dtype(np.int64): onnx.TensorProto.INT64}  # fmt: skip
        declared = [
            helper.make_tensor_value_info(o.name, kinds[o.dtype], o.shape)
            for o in self._inputs.values()
        ]
        outputs = [helper.make_empty_tensor_value_info(result)]
        graph = helper.make_graph(self._nodes, "operator", declared, outputs, self._constants)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", _OPSET)],
            ir_version=_IR_VERSION,
            producer_name="kuiper-studio",
        )
        return OnnxModel(
            model.SerializeToString(),
            tuple(self._inputs.values()),
            result,
            shape,
            any(node.op_type in _LAID_OUT for node in self._nodes),
            tuple(self._above_infinity),
            self._finite,
        )

    def _name(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"
