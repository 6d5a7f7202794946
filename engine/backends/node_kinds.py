"""The table of element-wise nodes and the libraries that compute them.

Kinds of nodes have ONNX's names. A node has an entry for a library only if the library is
accurate to a few units in the last place, element by element (`tests/accuracy`). ONNX Runtime's
own Tanh, Elu, Softplus, Mish, HardSwish and Gelu with ``approximate=tanh`` are not; nor are
ncnn's TanH, ELU, Mish, HardSwish, Swish, exponential and logarithm. Gelu is accurate after
refinement (`Subgraph.refine`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "BINARY_FUNCTIONS",
    "ELEMENTWISE",
    "INTEGER_KINDS",
    "UNARY_FUNCTIONS",
    "Elementwise",
]


@dataclass(frozen=True, slots=True)
class Elementwise:
    """One kind of element-wise node.

    Attributes
    ----------
    kind : str
    operands : int
        Number of operands that are not constants.
    functions : tuple of str
        Its names in an expression; with one operand also in ``torch``.
    integers : bool
        Whether ONNX Runtime computes it for int64 as PyTorch does.
    nchwc : bool
        Whether ONNX Runtime may compute it in NCHWc: zeros in the padding stay finite.
    ncnn : str
        Type of ncnn's layer; ``""`` if there is none, or it is inaccurate.
    ncnn_op_type : int or None
        Operation of that layer, if it has several.
    ufunc : callable or None
        NumPy's function, if it is as fast as a library with a reused buffer.
    """

    kind: str
    operands: int = 1
    functions: tuple[str, ...] = ()
    integers: bool = False
    nchwc: bool = False
    ncnn: str = ""
    ncnn_op_type: int | None = None
    ufunc: Callable[..., Any] | None = None


_ROWS: Final = (
    Elementwise("Relu", nchwc=True, ncnn="ReLU"),
    Elementwise("LeakyRelu", nchwc=True, ncnn="ReLU"),
    Elementwise("Clip", nchwc=True, ncnn="Clip"),
    Elementwise("Sigmoid", ncnn="Sigmoid"),
    Elementwise("Swish", ncnn="Swish"),
    Elementwise("HardSigmoid", nchwc=True, ncnn="HardSigmoid"),
    Elementwise("Gelu", nchwc=True, ncnn="GELU"),
    Elementwise("Softsign", nchwc=True),
    Elementwise("Abs", 1, ("abs",), integers=True, nchwc=True, ncnn="UnaryOp", ncnn_op_type=0),
    Elementwise("Neg", 1, ("neg",), integers=True, nchwc=True, ncnn="UnaryOp", ncnn_op_type=1),
    Elementwise("Floor", 1, ("floor",), ncnn="UnaryOp", ncnn_op_type=2),
    Elementwise("Ceil", 1, ("ceil",), ncnn="UnaryOp", ncnn_op_type=3),
    Elementwise("Sqrt", 1, ("sqrt",), ncnn="UnaryOp", ncnn_op_type=5),
    Elementwise("Exp", 1, ("exp",), nchwc=True),
    Elementwise("Cos", 1, ("cos",)),
    Elementwise("Erf", 1, ("erf",)),
    Elementwise("Log", 1, ("log",)),
    Elementwise("Reciprocal", 1, ("reciprocal",)),
    Elementwise("Sin", 1, ("sin",)),
    Elementwise("Tan", 1, ("tan",)),
    Elementwise(
        "Add", 2, ("add",), integers=True, nchwc=True, ncnn="BinaryOp", ncnn_op_type=0,
        ufunc=np.add,
    ),
    Elementwise(
        "Sub", 2, ("sub",), integers=True, nchwc=True, ncnn="BinaryOp", ncnn_op_type=1,
        ufunc=np.subtract,
    ),
    Elementwise(
        "Mul", 2, ("mul",), integers=True, nchwc=True, ncnn="BinaryOp", ncnn_op_type=2,
        ufunc=np.multiply,
    ),
    Elementwise(
        "Div", 2, ("div",), ncnn="BinaryOp", ncnn_op_type=3, ufunc=np.true_divide,
    ),
    Elementwise(
        "Max", 2, ("maximum", "max"), integers=True, nchwc=True, ncnn="BinaryOp",
        ncnn_op_type=4, ufunc=np.maximum,
    ),
    Elementwise(
        "Min", 2, ("minimum", "min"), integers=True, nchwc=True, ncnn="BinaryOp",
        ncnn_op_type=5, ufunc=np.minimum,
    ),
)  # fmt: skip

ELEMENTWISE: Final = {row.kind: row for row in _ROWS}
UNARY_FUNCTIONS: Final = {
    name: row.kind for row in _ROWS if row.operands == 1 for name in row.functions
}
BINARY_FUNCTIONS: Final = {
    name: row.kind for row in _ROWS if row.operands > 1 for name in row.functions
}
INTEGER_KINDS: Final = frozenset(row.kind for row in _ROWS if row.integers)
