"""Finds faults of the export: places where the file differs from the model.

Only the file is checked: no data are run and no weights are read. A fault is certain if the
file contradicts itself, or if pnnx writes such lines for one reason only. All others are
reported as suspicions.
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
from engine.pnnx.fused_masks import find_fused_bool_mask
from engine.runtime.storage import VIEWS
from engine.shapes import fits
from engine.text import format_count, format_shape
from engine.values import flatten_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from engine.runtime.operator import RuntimeOperand, RuntimeOperator
    from engine.values import Array, Value

__all__ = ["ExportFault", "find_export_faults"]

# Elements of a placeholder array; one byte each, in memory that is never touched.
_MOST: Final = 1 << 28
_MOST_SELECTED: Final = 1 << 20  # elements that a trial indexing may select
_MOST_MOVED: Final = 1 << 22  # elements of a placeholder that a trial may copy
# Operators that, like views, only move elements: the shape alone says what they return.
_SHUFFLES: Final = frozenset(
    f"{prefix}{name}"
    for prefix, names in (
        ("nn.", ("PixelShuffle", "PixelUnshuffle")),
        ("F.", ("pixel_shuffle", "pixel_unshuffle")),
        ("torch.", ("pixel_shuffle", "pixel_unshuffle")),
    )
    for name in names
)

_PLAIN_EXPORT: Final = (
    "export the model with optlevel=0, which keeps the operators that PyTorch traced"
)
_FLOAT_MASK: Final = (
    "use a float mask in the model, with 0 for keys to attend to and -inf for keys to ignore"
)
_FUSED_MASK: Final = re.compile(r"(?:attn_ht|sdpa_ht|reshape)(?:_\d+)+")

_DIVISIONS: Final = frozenset(
    f"{prefix}{name}"
    for prefix in ("torch.", "Tensor.", "aten::")
    for name in ("div", "divide", "true_divide")
)
_INDEX: Final = frozenset({"Tensor.index", "aten::index"})
_INDEXED: Final = _INDEX | {"Tensor.index_put", "torch.index_put", "aten::index_put"}
# Attentions of ncnn, and its layers that move bytes.
_ADD_MASKS: Final = frozenset({"ncnn.SDPA", "ncnn.MultiHeadAttention"})
_KEEP_BYTES: Final = frozenset(
    f"ncnn.{name}"
    for name in ("Split", "Reshape", "Flatten", "Permute", "Squeeze", "ExpandDims", "Noop")
)
# Names of constants that pnnx computed, and what assigns a slice.
_FOLDED: Final = "pnnx_fold_"
_WRITE: Final = "Tensor.slice_copy"
_SCATTERS: Final = frozenset({"aten::scatter", "torch.scatter", "Tensor.scatter"})
# Calls in an expression that do not return the shape of their arguments.
_SHAPELESS: Final = frozenset({"size", "int"})

# pnnx numbers operators in passes: first the GELUs that it fused from a formula, then the
# operators of `_LATER_NAMES`, then PyTorch's own GELUs.
_GELU_NAME: Final = re.compile(r"F\.gelu_(\d+)")
_LATER_NAMES: Final = re.compile(r"F\.(?:relu|softmax|scaled_dot_product_attention)_(\d+)")
# Names of the layers before GELU in networks that use gelu_new: GPT-2 and GPT-Neo, GPT-J and
# CodeGen, T5, Bloom.
_BEFORE_GELU_NEW: Final = frozenset({"c_fc", "fc_in", "wi_0", "dense_h_to_4h"})


_ATTENTION: Final = "nn.MultiheadAttention"
_RESHAPES: Final = frozenset({"Tensor.reshape", "Tensor.view", "torch.reshape"})


@dataclass(frozen=True, slots=True)
class ExportFault:
    """An operator that the file states differently from the model.

    Attributes
    ----------
    operator : RuntimeOperator
    what : str
        What is wrong, in lower case.
    remedy : str
        How to export the model correctly.
    certain : bool
        False for a suspicion.
    stops : bool
        Whether this operator or one downstream fails. If not, the results are wrong.
    """

    operator: RuntimeOperator
    what: str
    remedy: str
    certain: bool = True
    stops: bool = True

    @property
    def sentence(self) -> str:
        """One sentence: line, operator, what is wrong and what to do."""
        where = f"{self.operator.place}, {self.operator.type} {self.operator.name!r}"
        return self._format(where)

    @property
    def reason(self) -> str:
        """Like `sentence`, without type and name of the operator."""
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
        Whether pnnx converted an ONNX model. ONNX divides integers without a remainder.

    Returns
    -------
    tuple of ExportFault
        In order; at most one per operator.
    """
    checks: list[Callable[[RuntimeOperator], ExportFault | None]] = [
        _find_lost_input, _find_inverted_mask, _find_lost_dims, _find_misplaced_size,
        _find_wrong_view,
        _find_wrong_query, _find_wrong_broadcast, _find_byte_mask,
    ]  # fmt: skip
    if not from_onnx:
        checks += [
            _find_lost_rounding, _find_wrong_index, _find_kept_writes, _GeluSuspicion(operators)
        ]  # fmt: skip
    found = (_find_first(operator, checks) for operator in operators)
    return tuple([fault for fault in found if fault is not None])


def _find_first(
    operator: RuntimeOperator, checks: Iterable[Callable[[RuntimeOperator], ExportFault | None]]
) -> ExportFault | None:
    faults = (check(operator) for check in checks)
    return next((fault for fault in faults if fault is not None), None)


# Lines that contradict themselves


def _find_lost_input(operator: RuntimeOperator) -> ExportFault | None:
    """Find a module whose only input is its own weight."""
    if operator.inputs or not operator.tied_inputs:
        return None
    return ExportFault(
        operator,
        "pnnx replaced its input by its weight, which another module shares",
        "give the module a copy of the weight before the export: "
        "module.weight = torch.nn.Parameter(module.weight.detach().clone())",
    )


def _find_wrong_view(operator: RuntimeOperator) -> ExportFault | None:
    """Find a view or a shuffle of pixels that is impossible for the stated shapes."""
    if not (operator.type in VIEWS or operator.type in _SHUFFLES):
        return None
    if operator.layer_file is not None or operator.random or not operator.inputs:
        return None
    shape = _get_known_shape(operator.inputs[0])
    constants = operator.constants()
    if shape is None or operator.checked_layer is None:
        return None
    if operator.type in _SHUFFLES and math.prod(shape) > _MOST_MOVED:
        return None
    if len(constants) < len(operator.inputs) - 1:
        return None
    others = [constants[index] for index in sorted(constants)]
    try:
        views = operator.forward([_make_placeholder(shape), *others])
    except EngineError as exc:
        return _make_contradiction(operator, getattr(exc, "reason", str(exc)))
    stated = [operand.shape for operand in operator.outputs]
    wrong = [
        f"it turns {format_shape(shape)} into {format_shape(view.shape)}, but its line states "
        f"{format_shape(states)}"
        for view, states in zip(views, stated, strict=True)
        if isinstance(view, np.ndarray) and states and not fits(view.shape, states)
    ]
    return _make_contradiction(operator, wrong[0]) if wrong else None


def _find_lost_dims(operator: RuntimeOperator) -> ExportFault | None:
    """Find a reshape to another number of dimensions than its line states.

    pnnx leaves out those that the model takes from the sizes of a tensor.
    """
    wanted = operator.params.get("shape")
    stated = operator.outputs[0].shape if operator.outputs else None
    if operator.type not in _RESHAPES or not isinstance(wanted, tuple) or stated is None:
        return None
    if len(wanted) == len(stated):
        return None
    return _make_contradiction(
        operator,
        f"it reshapes to {format_count(len(wanted), 'dimension')}, but its line states "
        f"{format_shape(stated)}",
    )


def _find_misplaced_size(operator: RuntimeOperator) -> ExportFault | None:
    """Find a reshape to a constant size where its line states an open one, or another.

    pnnx puts a known size in place of -1, and takes a list of sizes before it for one.
    """
    stated = operator.outputs[0].shape if operator.outputs else None
    if operator.type not in _RESHAPES or len(operator.inputs) != 2 or stated is None:
        return None
    members = _list_members(operator.inputs[1])
    if len(members) != len(stated):
        return None
    wrong = [
        (member, size)
        for member, size in zip(members, stated, strict=True)
        if isinstance(member, int) and member > 0 and member != size
    ]
    if not wrong:
        return None
    return _make_contradiction(
        operator,
        f"it reshapes to a size of {wrong[0][0]}, but its line states {format_shape(stated)}",
    )


def _list_members(sizes: RuntimeOperand) -> list[int | None]:
    """Return the constants of a list of sizes, and None for each that is none."""
    producer = sizes.producer
    layer = producer.checked_layer if producer is not None else None
    if producer is None or not isinstance(layer, Expression):
        return []
    members: list[int | None] = []
    root = layer.expression.root
    for node in root.children if isinstance(root, ListNode) else ():
        if isinstance(node, Constant) and isinstance(node.value, int):
            members.append(node.value)
            continue
        shape = producer.inputs[node.operand].shape if isinstance(node, OperandRef) else None
        count = shape[0] if shape is not None and len(shape) == 1 else 1
        if not isinstance(count, int):
            return []
        members += [None] * count
    return members


def _find_wrong_query(operator: RuntimeOperator) -> ExportFault | None:
    """Find an attention whose query has lost a dimension that its keys have."""
    if operator.type != _ATTENTION or operator.input_names[:2] != ("query", "key"):
        return None
    query, key = (operand.shape for operand in operator.inputs[:2])
    if query is None or key is None or len(query) == len(key):
        return None
    return _make_contradiction(
        operator,
        f"its query of {format_shape(query)} has other dimensions than its key of "
        f"{format_shape(key)}",
    )


def _find_wrong_broadcast(operator: RuntimeOperator) -> ExportFault | None:
    """Find an expression whose operands do not broadcast to the stated shape."""
    layer, stated = (
        operator.checked_layer,
        operator.outputs[0].shape if operator.outputs else None,
    )
    if not isinstance(layer, Expression) or not stated:
        return None
    nodes = layer.expression.nodes
    if layer.gives_tensors and isinstance(layer.expression.root, OperandRef):
        return None  # an operand alone may represent its sizes
    if any(isinstance(n, ListNode) or _is_call(n, _SHAPELESS) for n in nodes):
        return None
    used = {node.operand for node in nodes if isinstance(node, OperandRef)}
    shapes = [_get_known_shape(operator.inputs[index]) for index in sorted(used)]
    known = [shape for shape in shapes if shape is not None]
    if not known or len(known) < len(shapes):
        return None
    listed = " and ".join(format_shape(shape) for shape in known)
    try:
        result = np.broadcast_shapes(*known)
    except ValueError:
        return _make_contradiction(operator, f"{listed} cannot be broadcast")
    if fits(result, stated):
        return None
    return _make_contradiction(
        operator,
        f"it turns {listed} into {format_shape(result)}, but its line states "
        f"{format_shape(stated)}",
    )


def _make_contradiction(operator: RuntimeOperator, what: str) -> ExportFault:
    """Report a stated shape that this line or another one does not allow."""
    if _FUSED_MASK.fullmatch(operator.name):
        return ExportFault(
            operator,
            f"pnnx fused an attention and gave its mask an impossible shape: {what}",
            "expand the mask to batch × heads × queries × keys in the model, or "
            + _PLAIN_EXPORT,
        )
    return ExportFault(operator, f"the line contradicts itself: {what}", _PLAIN_EXPORT)


def _find_lost_rounding(operator: RuntimeOperator) -> ExportFault | None:
    """Find an integer division that lost its rounding mode."""
    if not _divides(operator) or not _needs_integers(operator):
        return None
    return ExportFault(
        operator,
        "its division must return integers, but pnnx dropped the rounding_mode",
        "write a // b or torch.floor_divide(a, b) in the model, or " + _PLAIN_EXPORT,
    )


def _divides(operator: RuntimeOperator) -> bool:
    layer = operator.checked_layer
    if isinstance(layer, Expression):
        return any(_is_call(node, {"div"}) for node in layer.expression.nodes)
    if operator.type not in _DIVISIONS or "rounding_mode" in operator.params:
        return False
    return len(operator.inputs) < 3  # an unnamed third input is the mode


def _needs_integers(operator: RuntimeOperator) -> bool:
    """Return whether the result must be integers although the line computes floats."""
    if any(operand.dtype is None for operand in operator.inputs):
        return False
    try:
        (result,) = operator.forward([_make_single(operand) for operand in operator.inputs])
    except EngineError:
        return False
    output = operator.outputs[0]
    indexed = isinstance(result, tuple) and all(c.type in _INDEXED for c in output.consumers)
    if not indexed and (output.dtype is None or output.dtype.kind not in "iu"):
        return False
    return any(isinstance(v, np.ndarray) and v.dtype.kind == "f" for v in flatten_value(result))


def _find_wrong_index(operator: RuntimeOperator) -> ExportFault | None:
    """Find indices that are floats, out of range, or select another shape than stated."""
    if operator.type not in _INDEX or operator.layer_file is not None:
        return None
    shape, *index_shapes = map(_get_known_shape, operator.inputs)
    stated = _get_known_shape(operator.outputs[0])
    if shape is None or stated is None or math.prod(stated) > _MOST_SELECTED or 0 in shape:
        return None
    indices = _make_placeholder_indices(operator.inputs[1]) if index_shapes else ()
    if indices is None or operator.checked_layer is None:
        return None
    if any(index is not None and index.dtype.kind == "f" for index in indices):
        return _make_index_fault(operator, "its indices are not integers")
    source = np.broadcast_to(np.zeros((), np.int8), shape)
    try:
        (selected,) = operator.forward([source, indices] if index_shapes else [source])
    except EngineError as exc:
        return _make_index_fault(operator, getattr(exc, "reason", str(exc)))
    if isinstance(selected, np.ndarray) and not fits(selected.shape, stated):
        return _make_index_fault(
            operator,
            f"it selects {format_shape(selected.shape)} from {format_shape(shape)}, but its "
            f"line states {format_shape(stated)}",
        )
    return None


def _make_placeholder_indices(listed: RuntimeOperand) -> tuple[Array | None, ...] | None:
    """Make zeros for the members of a list of indices; None if a shape is unknown.

    Bool masks also give None: the size of their result depends on their values.
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
        shape = _get_known_shape(operand) if operand is not None else None
        if operand is None or shape is None or math.prod(shape) > _MOST_SELECTED:
            return None
        if operand.dtype is None or operand.dtype == np.bool_:
            return None
        found.append(np.zeros(shape, operand.dtype))
    return tuple(found)


def _make_index_fault(operator: RuntimeOperator, what: str) -> ExportFault:
    return ExportFault(
        operator,
        f"pnnx wrote its index wrongly: {what}",
        "use torch.index_select or torch.gather with an integer tensor in the model, or "
        + _PLAIN_EXPORT,
    )


# Lines that pnnx writes for one reason only


def _find_inverted_mask(operator: RuntimeOperator) -> ExportFault | None:
    """Find a bool mask that pnnx fused into a module, where true means the opposite."""
    if find_fused_bool_mask(operator) is None:
        return None
    return ExportFault(
        operator,
        "pnnx fused scaled_dot_product_attention into a module without inverting its bool "
        "mask; true meant a key to attend to, and now means a key to ignore",
        f"{_FLOAT_MASK}, or {_PLAIN_EXPORT}",
        stops=False,
    )


def _find_byte_mask(operator: RuntimeOperator) -> ExportFault | None:
    """Find a bool mask that is stored as bytes for an attention that adds floats."""
    if operator.type not in _ADD_MASKS or not operator.params.get("attn_mask"):
        return None
    for operand in operator.inputs:
        above = operand.producer
        while above is not None and above.type in _KEEP_BYTES and above.inputs:
            above = above.inputs[0].producer
        if above is None or above.type != "ncnn.MemoryData":
            continue
        if above.attributes["data"].stored_dtype == "i8":
            return ExportFault(
                operator,
                f"its mask {above.name!r} was bool and is stored as bytes, 0 and 1, but ncnn "
                "adds a mask of float32 to the scores",
                _FLOAT_MASK,
            )
    return None


def _find_kept_writes(operator: RuntimeOperator) -> ExportFault | None:
    """Suspect a constant that the model assigns slices or elements of.

    pnnx reads the values of constants at the end of a run, when they are written.
    """
    if operator.type != "pnnx.Attribute" or not operator.name.startswith(_FOLDED):
        return None
    scattered = [
        reader
        for operand in operator.outputs
        for reader in operand.consumers
        if reader.type in _SCATTERS and reader.inputs[0] is operand
    ]
    if scattered and not _is_uniform(operator):
        return _make_write_fault(
            operator,
            f"elements of this constant ({scattered[0].name!r})",
            "use torch.scatter in the model instead of scatter_",
        )
    readers = [reader for operand in operator.outputs for reader in operand.consumers]
    for copy in [each for each in readers if each.type == "Tensor.clone"]:
        readers += [reader for operand in copy.outputs for reader in operand.consumers]
    written = [each for each in readers if each.type == _WRITE and each.input_names[:1]]
    if not any(each.input_names[0] == "self" for each in written):
        return None
    return _make_write_fault(
        operator,
        f"slices of this constant ({written[0].name!r})",
        "join the parts with torch.cat or torch.stack in the model instead of assigning them",
    )


def _make_write_fault(operator: RuntimeOperator, what: str, remedy: str) -> ExportFault:
    return ExportFault(
        operator,
        f"the model assigns {what}, and pnnx stores constants as they are after that: elements "
        "that are not assigned again are wrong",
        remedy,
        certain=False,
        stops=False,
    )


def _is_uniform(operator: RuntimeOperator) -> bool:
    """Whether all numbers of a constant are the same, as before anything was written."""
    attribute = next(iter(operator.attributes.values()), None)
    if (
        attribute is None
        or not attribute.is_stored
        or math.prod(attribute.shape) > _MOST_SELECTED
    ):
        return True
    try:
        values = attribute.array
    except EngineError:
        return True
    return bool((values == values.reshape(-1)[:1]).all())


class _GeluSuspicion:
    """Suspects a GELU that was a tanh formula in the model.

    pnnx writes every GELU formula as the exact ``F.gelu``, including the tanh approximation
    (``gelu_new``). Two signs reveal a formula: the operator has a lower number than operators
    that pnnx names later, or the layer before it has a name used by such networks.

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
            why = "the number in its name shows that pnnx made it from a formula"
        elif before.rpartition(".")[2] in _BEFORE_GELU_NEW:
            why = f"it follows {before!r}, as in networks that use gelu_new"
        else:
            return None
        return ExportFault(
            operator,
            f"{why}, and pnnx writes the tanh formula (gelu_new) as the exact GELU, which "
            "differs by up to 0.0005",
            "use torch.nn.functional.gelu(x, approximate='tanh') in the model, which pnnx "
            "keeps",
            certain=False,
            stops=False,
        )


# Placeholders


def _is_call(node: object, names: Iterable[str]) -> bool:
    return isinstance(node, Call) and node.name in names


def _get_known_shape(operand: RuntimeOperand) -> tuple[int, ...] | None:
    """Return the stated shape; None if a size is dynamic or the shape is too large."""
    sizes = operand.shape or (None,)
    known = tuple([size for size in sizes if isinstance(size, int)])
    return known if len(known) == len(sizes) and math.prod(known) <= _MOST else None


def _make_placeholder(shape: tuple[int, ...]) -> Array:
    """Make an array of a shape, in memory that is never touched."""
    return np.zeros(math.prod(shape), np.int8).reshape(shape)


def _make_single(operand: RuntimeOperand) -> Value:
    """Make an array of one element, with the operand's dtype and number of dimensions."""
    return np.ones((1,) * len(operand.shape or ()), operand.dtype)
