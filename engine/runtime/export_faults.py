"""Finds what pnnx wrote otherwise than the model has it, as far as the file itself shows.

Nothing is run on data, and no weight is read. A fault is certain where the file contradicts
itself, or where pnnx has only one way to such lines; else it is a suspicion, and is called one.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.errors import EngineError
from engine.expression.nodes import Call, Constant, ListNode, OperandRef
from engine.layers.expression import Expression
from engine.runtime.storage import VIEWS
from engine.shapes import fits
from engine.text import format_shape
from engine.values import flatten_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from engine.runtime.operator import RuntimeOperand, RuntimeOperator
    from engine.values import Array, Value

__all__ = ["ExportFault", "find_export_faults"]

_MOST: Final = 1 << 28  # elements of an empty array, each a byte of memory that is not touched
_MOST_TAKEN: Final = (
    1 << 20
)  # elements that are taken by an index to see the shape of the result

_PLAIN_EXPORT: Final = (
    "export it with optlevel=0, which keeps the operators that PyTorch has traced"
)
_FUSED_MASK: Final = re.compile(r"(?:attn_ht|sdpa_ht|reshape)(?:_\d+)+")

_DIVISIONS: Final = frozenset(
    f"{prefix}{name}"
    for prefix in ("torch.", "Tensor.", "aten::")
    for name in ("div", "divide", "true_divide")
)
_INDEX: Final = frozenset({"Tensor.index", "aten::index"})
_INDEXED: Final = _INDEX | {"Tensor.index_put", "torch.index_put", "aten::index_put"}
# Calls in an expression whose result does not have the shape of their arguments.
_SHAPELESS: Final = frozenset({"size", "int"})

# How pnnx calls what it writes for GELU, and what it names behind formulas of it but in front
# of PyTorch's own.
_GELU_NAME: Final = re.compile(r"F\.gelu_(\d+)")
_LATER_NAMES: Final = re.compile(r"F\.(?:relu|softmax|scaled_dot_product_attention)_(\d+)")
# Layers in front of a GELU in networks of gelu_new: GPT-2 and GPT-Neo, GPT-J and CodeGen, T5,
# Bloom.
_BEFORE_GELU_NEW: Final = frozenset({"c_fc", "fc_in", "wi_0", "dense_h_to_4h"})


@dataclass(frozen=True, slots=True)
class ExportFault:
    """One place where the file is not what the model was.

    Attributes
    ----------
    operator : RuntimeOperator
    what : str
        What is wrong there, in lower case.
    remedy : str
        How to export it otherwise.
    certain : bool
        Whether it can be nothing else.
    stops : bool
        Whether the operator, or one downstream, fails for it; else the results are wrong.
    """

    operator: RuntimeOperator
    what: str
    remedy: str
    certain: bool = True
    stops: bool = True

    @property
    def sentence(self) -> str:
        """Who is at fault, in which line and operator, what is wrong and what to do."""
        where = f"{self.operator.place}, {self.operator.type} {self.operator.name!r}"
        return self._format(where)

    @property
    def reason(self) -> str:
        """The same, where the operator is named already."""
        return self._format(self.operator.place)

    def _format(self, where: str) -> str:
        verb = "is" if self.certain else "may be"
        return f"the export {verb} at fault, not the model: {where}: {self.what}; {self.remedy}"


def find_export_faults(
    operators: Sequence[RuntimeOperator], *, from_onnx: bool = False
) -> tuple[ExportFault, ...]:
    """Find faults of an export.

    Parameters
    ----------
    operators : sequence of RuntimeOperator
        In order of execution.
    from_onnx : bool
        Whether pnnx read an ONNX model, in whose words a division of integers is a whole one.

    Returns
    -------
    tuple of ExportFault
        In order, one for an operator at most.
    """
    checks: list[Callable[[RuntimeOperator], ExportFault | None]] = [
        _lost_input, _turned_mask, _contradicted_view, _contradicted_broadcast
    ]  # fmt: skip
    if not from_onnx:
        checks += [_lost_rounding, _meaningless_index, _GeluSuspicion(operators)]
    found = (_first(operator, checks) for operator in operators)
    return tuple([fault for fault in found if fault is not None])


def _first(
    operator: RuntimeOperator, checks: Iterable[Callable[[RuntimeOperator], ExportFault | None]]
) -> ExportFault | None:
    faults = (check(operator) for check in checks)
    return next((fault for fault in faults if fault is not None), None)


# What contradicts itself


def _lost_input(operator: RuntimeOperator) -> ExportFault | None:
    """A module that takes nothing but its own weight."""
    if operator.inputs or not operator.tied_inputs:
        return None
    return ExportFault(
        operator,
        "what it takes was lost, and in its place stands its weight, which it shares with "
        "another module",
        "give the module a copy of the weight before the export: "
        "module.weight = torch.nn.Parameter(module.weight.detach().clone())",
    )


def _contradicted_view(operator: RuntimeOperator) -> ExportFault | None:
    """An operator that only looks at its input otherwise, and cannot as the line says."""
    if operator.type not in VIEWS or operator.layer_file is not None or operator.random:
        return None
    shape = _known_shape(operator.inputs[0]) if operator.inputs else None
    constants = operator.constants()
    if shape is None or operator.checked_layer is None:
        return None
    if len(constants) < len(operator.inputs) - 1:
        return None
    others = [constants[place] for place in sorted(constants)]
    try:
        views = operator.forward([_empty(shape), *others])
    except EngineError as exc:
        return _contradiction(operator, getattr(exc, "reason", str(exc)))
    stated = [operand.shape for operand in operator.outputs]
    wrong = [
        f"it makes {format_shape(view.shape)} of {format_shape(shape)}, and its line states "
        f"{format_shape(states)}"
        for view, states in zip(views, stated, strict=True)
        if isinstance(view, np.ndarray) and states and not fits(view.shape, states)
    ]
    return _contradiction(operator, wrong[0]) if wrong else None


def _contradicted_broadcast(operator: RuntimeOperator) -> ExportFault | None:
    """An expression of tensors that do not go together, or give another shape than stated."""
    layer, stated = (
        operator.checked_layer,
        operator.outputs[0].shape if operator.outputs else None,
    )
    if not isinstance(layer, Expression) or not stated:
        return None
    nodes = layer.expression.nodes
    if any(isinstance(n, ListNode) or _is_call(n, _SHAPELESS) for n in nodes):
        return None
    used = {node.operand for node in nodes if isinstance(node, OperandRef)}
    shapes = [_known_shape(operator.inputs[place]) for place in sorted(used)]
    known = [shape for shape in shapes if shape is not None]
    if not known or len(known) < len(shapes):
        return None
    listed = " and ".join(format_shape(shape) for shape in known)
    try:
        result = np.broadcast_shapes(*known)
    except ValueError:
        return _contradiction(operator, f"{listed} cannot be broadcast")
    if fits(result, stated):
        return None
    return _contradiction(
        operator,
        f"it makes {format_shape(result)} of {listed}, and its line states "
        f"{format_shape(stated)}",
    )


def _contradiction(operator: RuntimeOperator, what: str) -> ExportFault:
    """A shape that the file states, and another line or the same one does not allow."""
    if _FUSED_MASK.fullmatch(operator.name):
        return ExportFault(
            operator,
            "pnnx has fused an attention and gives its mask a shape that it cannot have: "
            f"{what}",
            "expand the mask to batch × heads × queries × keys in the model, or "
            + _PLAIN_EXPORT,
        )
    return ExportFault(operator, f"the line contradicts itself: {what}", _PLAIN_EXPORT)


def _lost_rounding(operator: RuntimeOperator) -> ExportFault | None:
    """A division that gives whole numbers, and does not say so any more."""
    if not _divides(operator) or not _is_whole(operator):
        return None
    return ExportFault(
        operator,
        "its division must give integers, and pnnx has dropped the rounding_mode",
        "write a // b or torch.floor_divide(a, b) in the model, or " + _PLAIN_EXPORT,
    )


def _divides(operator: RuntimeOperator) -> bool:
    layer = operator.checked_layer
    if isinstance(layer, Expression):
        return any(_is_call(node, {"div"}) for node in layer.expression.nodes)
    if operator.type not in _DIVISIONS or "rounding_mode" in operator.params:
        return False
    return len(operator.inputs) < 3  # without names the third is the mode


def _is_whole(operator: RuntimeOperator) -> bool:
    """Whether integers must come out where the line computes other numbers."""
    if any(operand.dtype is None for operand in operator.inputs):
        return False
    try:
        (result,) = operator.forward([_single(operand) for operand in operator.inputs])
    except EngineError:
        return False
    output = operator.outputs[0]
    indexed = isinstance(result, tuple) and all(c.type in _INDEXED for c in output.consumers)
    if not indexed and (output.dtype is None or output.dtype.kind not in "iu"):
        return False
    return any(isinstance(v, np.ndarray) and v.dtype.kind == "f" for v in flatten_value(result))


def _meaningless_index(operator: RuntimeOperator) -> ExportFault | None:
    """Indices that are no integers, lie outside, or take another shape than stated."""
    if operator.type not in _INDEX or operator.layer_file is not None:
        return None
    shape, *indices = map(_known_shape, operator.inputs)
    stated = _known_shape(operator.outputs[0])
    if shape is None or stated is None or math.prod(stated) > _MOST_TAKEN or 0 in shape:
        return None
    places = _stand_in_indices(operator.inputs[1]) if indices else ()
    if places is None or operator.checked_layer is None:
        return None
    if any(place is not None and place.dtype.kind == "f" for place in places):
        return _lost_index(operator, "it takes numbers that are no integers as indices")
    source = np.broadcast_to(np.zeros((), np.int8), shape)
    try:
        (taken,) = operator.forward([source, places] if indices else [source])
    except EngineError as exc:
        return _lost_index(operator, getattr(exc, "reason", str(exc)))
    if isinstance(taken, np.ndarray) and not fits(taken.shape, stated):
        return _lost_index(
            operator,
            f"it takes {format_shape(taken.shape)} of {format_shape(shape)}, and its line "
            f"states {format_shape(stated)}",
        )
    return None


def _stand_in_indices(listed: RuntimeOperand) -> tuple[Array | None, ...] | None:
    """Zeros for the members of a list of indices; None where their shapes are not known.

    How much a mask of words takes depends on its values.
    """
    producer = listed.producer
    layer = producer.checked_layer if producer is not None else None
    if producer is None or not isinstance(layer, Expression):
        return None
    root = layer.expression.root
    if not isinstance(root, ListNode):
        return None
    found: list[Array | None] = []
    for node in root.children:
        if isinstance(node, Constant) and node.value is None:
            found.append(None)
            continue
        operand = producer.inputs[node.operand] if isinstance(node, OperandRef) else None
        shape = _known_shape(operand) if operand is not None else None
        if operand is None or shape is None or math.prod(shape) > _MOST_TAKEN:
            return None
        if operand.dtype is None or operand.dtype == np.bool_:
            return None
        found.append(np.zeros(shape, operand.dtype))
    return tuple(found)


def _lost_index(operator: RuntimeOperator, what: str) -> ExportFault:
    return ExportFault(
        operator,
        f"its index has lost its meaning: {what}",
        "use torch.index_select or torch.gather with an integer tensor in the model, or "
        + _PLAIN_EXPORT,
    )


# What pnnx can only have made in one way


def _turned_mask(operator: RuntimeOperator) -> ExportFault | None:
    """A mask of words that was fused into a module, in which true means the opposite.

    Of additive masks pnnx makes the same lines. Only for these a reshape takes what it calls
    ``attn_mask``.
    """
    if operator.type != "nn.MultiheadAttention" or "attn_mask" not in operator.input_names:
        return None
    mask = operator.inputs[operator.input_names.index("attn_mask")]
    above = mask.producer
    if above is None or above.input_names != ("attn_mask",):
        return None
    if above.inputs[0].dtype != np.bool_:
        return None
    return ExportFault(
        operator,
        "pnnx has fused scaled_dot_product_attention into a module and left its bool mask as "
        "it is; true was a key that takes part, and is one that is left out here",
        "give a float mask in the model, 0 where a key takes part and -inf where not, or "
        + _PLAIN_EXPORT,
        stops=False,
    )


class _GeluSuspicion:
    """Suspects GELUs of having been computed by tanh.

    pnnx writes formulas of GELU as ``F.gelu``, the one by tanh (``gelu_new``) too. It does so
    before it numbers other operators, or the layer in front has a name of such networks.

    Parameters
    ----------
    operators : sequence of RuntimeOperator
    """

    def __init__(self, operators: Sequence[RuntimeOperator]) -> None:
        numbers = (_LATER_NAMES.fullmatch(operator.name) for operator in operators)
        self._first_later = min((int(n[1]) for n in numbers if n), default=-1)

    def __call__(self, operator: RuntimeOperator) -> ExportFault | None:
        """Suspect an operator."""
        if operator.type != "F.gelu" or "approximate" in operator.params:
            return None
        named = _GELU_NAME.fullmatch(operator.name)
        above = operator.inputs[0].producer if operator.inputs else None
        before = above.name if above is not None else ""
        if named and int(named[1]) < self._first_later:
            why = "the number in its name says that pnnx made it of a formula"
        elif before.rpartition(".")[2] in _BEFORE_GELU_NEW:
            why = f"it follows {before!r}, as in networks of gelu_new"
        else:
            return None
        return ExportFault(
            operator,
            f"{why}, and pnnx writes the formula by tanh (gelu_new) as the exact GELU, which "
            "differs by up to 0.0005",
            "use torch.nn.functional.gelu(x, approximate='tanh') in the model, which it keeps",
            certain=False,
            stops=False,
        )


# Stand-ins


def _is_call(node: object, names: Iterable[str]) -> bool:
    return isinstance(node, Call) and node.name in names


def _known_shape(operand: RuntimeOperand) -> tuple[int, ...] | None:
    """Stated shape; None where a size is open, or too large to stand for it."""
    sizes = operand.shape or (None,)
    known = tuple([size for size in sizes if isinstance(size, int)])
    return known if len(known) == len(sizes) and math.prod(known) <= _MOST else None


def _empty(shape: tuple[int, ...]) -> Array:
    """An array of the shape whose memory nobody touches."""
    return np.zeros(math.prod(shape), np.int8).reshape(shape)


def _single(operand: RuntimeOperand) -> Value:
    """One element, with the dtype and as many dimensions as the operand."""
    return np.ones((1,) * len(operand.shape or ()), operand.dtype)
