"""A subgraph: consecutive operators as nodes that are independent of any library.

Operators are lowered to it once (`operator_lowerings`, `move_lowerings`). `onnx_lowering`
lowers it to an ONNX model, and `ncnn_lowering` to an ncnn network.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from engine.backends.lowering import LoweringError, Operand
from engine.backends.native_sizes import require_elements

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from engine.backends.lowering import LoweringTable
    from engine.promotion import DType
    from engine.runtime import RuntimeOperator
    from engine.values import Array, Value

__all__ = [
    "Node",
    "Refinement",
    "Result",
    "Subgraph",
    "SubgraphInput",
    "SubgraphOutput",
    "keep_pairs",
    "lower_operator",
]

# Result of a lowering: the value's name, and its final shape if it must be reshaped.
Result: TypeAlias = str | tuple[str, tuple[int, ...]]

_DTYPES: Final = frozenset(map(np.dtype, (np.float32, np.int64)))
# Nodes that sum products of their first two inputs.
_SUMS_OF_PRODUCTS: Final = frozenset(["Attention", "Conv", "ConvTranspose", "Gemm", "MatMul"])
_FACTORS: Final = 2


@dataclass(frozen=True, slots=True)
class Node:
    """One node.

    Attributes
    ----------
    kind : str
        ONNX's name: ``Conv``, ``Gemm``; for a library's own nodes with its domain in front.
    inputs : tuple of str
        Names of values, ``""`` for a missing optional one.
    output : str
        Name of its result.
    attributes : mapping of str to object
    """

    kind: str
    inputs: tuple[str, ...]
    output: str
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SubgraphInput:
    """An input of the subgraph.

    Attributes
    ----------
    name : str
    operand : str
        The operand that it reads; several inputs may read the same one in different shapes.
    shape : tuple of int
        Declared shape.
    dtype : dtype
    """

    name: str
    operand: str
    shape: tuple[int, ...]
    dtype: DType


@dataclass(frozen=True, slots=True)
class SubgraphOutput:
    """A result of one operator.

    Attributes
    ----------
    name : str
    shape : tuple of int or None
        Shape to give it afterwards; None to leave it unchanged.
    above_infinity : tuple of int
        Indices of the operator's inputs that must hold neither NaN nor -inf.
    finite : bool
        Whether the output must hold neither NaN nor infinities.
    """

    name: str
    shape: tuple[int, ...] | None
    above_infinity: tuple[int, ...] = ()
    finite: bool = False


@dataclass(frozen=True, slots=True)
class Refinement:
    """An output whose inexact elements are recomputed after a run.

    Attributes
    ----------
    refine : callable
        Called with operand and result, float32 of shape (N,); writes to the result.
    output : int
        Index of the output.
    operand : str
        Name of the operand that the output is computed from.
    source : int or None
        Index of that operand among the outputs; None if it is an input.
    """

    refine: Callable[[Array, Array], None]
    output: int
    operand: str
    source: int | None


class Subgraph:
    """Nodes, constants, and the operands that they read and compute.

    Attributes
    ----------
    natural : tuple of int or None
        Shape of the current operator's result, if it is known.
    nodes : list of Node
        In order.
    constants : dict of str to ndarray
        By name.
    outputs : list of SubgraphOutput
        One for each operator whose result is returned, in order.
    refinements : list of Refinement
    """

    def __init__(self) -> None:
        self.natural: tuple[int, ...] | None = None
        self.nodes: list[Node] = []
        self.constants: dict[str, Array] = {}
        self.outputs: list[SubgraphOutput] = []
        self.refinements: list[Refinement] = []
        self._inputs: dict[str, SubgraphInput] = {}
        self._ends: list[tuple[str, int]] = []  # operands, and the number of nodes up to each
        # Computed operands: the value's name, and its shape if it is known.
        self._computed: dict[str, tuple[str, tuple[int, ...] | None]] = {}
        self._same: dict[str, str] = {}
        self._reshaped: dict[tuple[str, tuple[int, ...]], str] = {}
        self._above_infinity: list[int] = []
        self._finite = False
        self._refine: tuple[Callable[[Array, Array], None], str] | None = None
        self._given: dict[str, int] = {}  # indices of outputs, by the names of operands
        self._unrefined: set[str] = set()  # values that are refined after the run
        self._count = 0

    @property
    def inputs(self) -> tuple[SubgraphInput, ...]:
        """The inputs."""
        return tuple(self._inputs.values())

    def read(
        self, operand: object, shape: Sequence[int] | None = None, *, integers: bool = False
    ) -> str:
        """Read an operand.

        Parameters
        ----------
        operand : Operand, ndarray or number
            An array or number is a constant.
        shape : sequence of int, optional
            Shape in which to read it, with as many elements; its own by default.
        integers : bool
            Whether it may be int64.

        Returns
        -------
        str
            Name of the value.

        Raises
        ------
        LoweringError
            If its type or dtype is unsupported.
        """
        if not isinstance(operand, Operand):
            return self.constant(operand, shape)
        if operand.dtype != np.float32 and not integers:
            raise LoweringError(f"an operand of {operand.dtype}")
        wanted = operand.shape if shape is None else tuple(shape)
        if math.prod(wanted) != math.prod(operand.shape):
            raise LoweringError(f"{operand.shape} cannot be read as {wanted}")
        source = self._same.get(operand.name, operand.name)
        if source in self._computed:
            return self._reshape(*self._computed[source], wanted)
        name = f"{source}_{'x'.join(map(str, wanted))}"
        self._inputs[name] = SubgraphInput(name, source, wanted, operand.dtype)
        return name

    def _reshape(
        self, name: str, shape: tuple[int, ...] | None, wanted: tuple[int, ...]
    ) -> str:
        if shape == wanted:
            return name
        if (name, wanted) not in self._reshaped:
            sizes = self.integers(*wanted)
            self._reshaped[name, wanted] = self.node("Reshape", name, sizes, allowzero=1)
        return self._reshaped[name, wanted]

    def constant(self, value: object, shape: Sequence[int] | None = None) -> str:
        """Add a constant: an array, or a number as float32."""
        if isinstance(value, (bool, complex, str)) or value is None:
            raise LoweringError(f"{value!r} is not a constant")
        array = np.asarray(value)
        if not isinstance(value, np.ndarray) and array.dtype != np.int64:
            array = array.astype(np.float32)
        if array.dtype not in _DTYPES:
            raise LoweringError(f"a constant of {array.dtype} is not supported")
        if shape is not None:
            array = array.reshape(shape)
        name = self._name("c")
        self.constants[name] = array
        return name

    def integers(self, *values: int) -> str:
        """Add a constant list of int64."""
        return self.constant(np.asarray(values, np.int64))

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node.

        Parameters
        ----------
        kind : str
        *inputs : str
            See `Node`.
        **attributes
            Attributes that are None are omitted.

        Returns
        -------
        str
            Name of the output.

        Raises
        ------
        LoweringError
            If it reads an output that is refined after the run and is not a sum of products.
            In such a sum the error is below the rounding of the other products.
        """
        output = self._name("v")
        if not self._unrefined.isdisjoint(inputs):
            if kind == "Reshape":
                self._unrefined.add(output)
            elif kind not in _SUMS_OF_PRODUCTS or not self._unrefined.isdisjoint(
                inputs[_FACTORS:]
            ):
                raise LoweringError("an operand that is refined after the run")
        given = {k: v for k, v in attributes.items() if v is not None}
        self.nodes.append(Node(kind, inputs, output, given))
        return output

    def require_above_infinity(self, operand: Operand) -> None:
        """Require an operand without NaN and -inf; else the reference computes.

        For nodes that ignore them.
        """
        self._above_infinity.append(operand.index)

    def require_finite(self) -> None:
        """Require an output without NaN and infinities; else the reference computes.

        For nodes that return them in other places than the reference.
        """
        self._finite = True

    def refine(self, operand: Operand, refine: Callable[[Array, Array], None]) -> None:
        """Refine the current operator's result after the run, from its operand.

        For nodes that are inexact for a few numbers.

        Parameters
        ----------
        operand : Operand
        refine : callable
            See `Refinement`.
        """
        self._refine = refine, self._same.get(operand.name, operand.name)

    def give(
        self, operand: str, result: str, shape: tuple[int, ...] | None, *, out: bool = True
    ) -> None:
        """End an operator and set its result.

        Parameters
        ----------
        operand : str
            Name of the operand for downstream operators.
        result : str
            Name of the value.
        shape : tuple of int or None
            See `SubgraphOutput.shape`.
        out : bool
            Whether the subgraph returns it.

        Raises
        ------
        LoweringError
            If nothing was computed, or the result is not refined or cannot be.
        """
        if not self._is_computed(result):
            raise LoweringError("nothing is computed")
        if result in self._unrefined:
            raise LoweringError("an operand that is refined after the run")
        if self._refine is not None:
            self._require_refined(result, *self._refine)
        if out:
            self._given[operand] = len(self.outputs)
            self.outputs.append(
                SubgraphOutput(result, shape, tuple(self._above_infinity), self._finite)
            )
        self._ends.append((operand, len(self.nodes)))
        self._computed[operand] = (result, self.natural if shape is None else None)
        self._above_infinity, self._finite, self._refine = [], False, None

    def _require_refined(
        self, result: str, refine: Callable[[Array, Array], None], operand: str
    ) -> None:
        source = self._given.get(operand)
        if source is None and operand in self._computed:
            raise LoweringError("a result to refine from an operand that is not returned")
        self.refinements.append(Refinement(refine, len(self.outputs), operand, source))
        self._unrefined.add(result)

    def may_give(self, name: str) -> bool:
        """Return whether a value is computed here but is not a returned result."""
        return self._is_computed(name) and all(name != output.name for output in self.outputs)

    def _is_computed(self, name: str) -> bool:
        return any(name == node.output for node in reversed(self.nodes))

    def alias(self, operand: str, other: str) -> None:
        """Declare that an operand has the same elements as another one, perhaps reshaped."""
        self._same[operand] = self._same.get(other, other)

    def values_of(self, operands: Iterable[str]) -> frozenset[str]:
        """The value names of computed operands."""
        return frozenset(self._computed[operand][0] for operand in operands)

    @property
    def pairs(self) -> list[tuple[str | None, str]]:
        """Return the values that each refinement reads and writes; None for no output."""
        return [
            (
                None if r.source is None else self.outputs[r.source].name,
                self.outputs[r.output].name,
            )
            for r in self.refinements
        ]

    def first_operand_beyond(self, count: int) -> str | None:
        """Return the first operand that needs more than `count` nodes; None for no operand."""
        return next((operand for operand, end in self._ends if end > count), None)

    def _name(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"


def keep_pairs(
    free: Collection[str], pairs: Collection[tuple[str | None, str]]
) -> frozenset[str]:
    """Return the values whose pair is also free, or that have no pair.

    A library that returns a value in its own layout must return its pair in the same layout.
    """
    sources = {source for source, result in pairs if result not in free}
    results = {result for source, result in pairs if source not in free or source in sources}
    return frozenset(free) - sources - results


def lower_operator(
    graph: Subgraph,
    operator: RuntimeOperator,
    inputs: Sequence[Value],
    names: Sequence[str],
    output: str,
    lowerings: LoweringTable[Subgraph, Result],
    *,
    natural: tuple[int, ...] | None = None,
    out: bool = True,
) -> None:
    """Lower an operator to nodes of a subgraph.

    Parameters
    ----------
    graph : Subgraph
    operator : RuntimeOperator
    inputs : sequence of Value
        Only shapes and dtypes of arrays are used.
    names : sequence of str
        Names of the inputs in the graph.
    output : str
        Name of its output.
    lowerings : LoweringTable
    natural : tuple of int, optional
        Shape of its output, if it is known.
    out : bool
        Whether the graph returns it.

    Raises
    ------
    LoweringError
        If it cannot be lowered.
    """
    if any(_is_foreign(value) for value in inputs):
        raise LoweringError("another dtype, an empty tensor, or a list of tensors")
    require_elements(*(value.shape for value in inputs if isinstance(value, np.ndarray)))
    if len(operator.outputs) != 1:
        raise LoweringError("several outputs")
    operands = [
        Operand(name, index, value.shape, value.dtype)
        if isinstance(value, np.ndarray)
        else value
        for index, (name, value) in enumerate(zip(names, inputs, strict=True))
    ]
    graph.natural = natural
    result = lowerings.write(graph, operator, operands)
    # A name is a result in its own shape; a pair has the shape to give it.
    value, shape = (result, None) if isinstance(result, str) else result
    graph.give(output, value, shape, out=out)


def _is_foreign(value: Value) -> bool:
    if isinstance(value, tuple):  # an array in a list would become a constant
        return any(isinstance(member, (np.ndarray, tuple)) for member in value)
    return isinstance(value, np.ndarray) and (value.dtype not in _DTYPES or not value.size)
