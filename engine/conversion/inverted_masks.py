"""Inverts the bool masks of attentions that pnnx fused into modules.

In ``F.scaled_dot_product_attention`` true is a key to attend to, in ``nn.MultiheadAttention``
one to ignore. pnnx makes the one the other and leaves the mask as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.pnnx import load, save
from engine.text import format_count

if TYPE_CHECKING:
    from pathlib import Path

    from engine.pnnx import Graph, Operator

__all__ = ["invert_masks"]

_TYPE: Final = "nn.MultiheadAttention"
_MASK: Final = "attn_mask"


def invert_masks(param: Path, weights: Path) -> str:
    """Put an operator behind each mask that means the opposite of what it meant.

    Parameters
    ----------
    param, weights : Path
        The pair; both files are replaced if it has such a mask.

    Returns
    -------
    str
        A remark on the ncnn pair, where they are left; ``""`` if there are none.

    Raises
    ------
    OSError, ModelFileError, ExportError
        If the files cannot be read or written.
    """
    if _TYPE.encode() not in param.read_bytes():
        return ""
    graph = load(param, weights)
    found = [each for each in graph.operators if _is_inverted(each)]
    if not found:
        return ""
    for attention in found:
        _invert(graph, attention)
    save(graph, param, weights)
    count = format_count(len(found), "attention")
    return (
        f"pnnx took the bool masks of {count} for the opposite; they are right here, but not "
        "in the ncnn pair, for which the model needs masks of float32"
    )


def _is_inverted(operator: Operator) -> bool:
    """Whether pnnx fused it; only then the mask comes from a reshape of a named input."""
    mask = operator.named_input(_MASK) if operator.type == _TYPE else None
    above = mask.producer if mask else None
    return (
        above is not None and above.input_names == [_MASK] and above.inputs[0].dtype == "bool"
    )


def _invert(graph: Graph, attention: Operator) -> None:
    place = attention.input_names.index(_MASK)
    mask = attention.inputs[place]
    name = f"{attention.name}_inverted_mask"
    operator = graph.new_operator_before("torch.logical_not", name, attention)
    operator.add_input(mask, "input")
    inverted = graph.new_operand(name)
    inverted.shape, inverted.dtype = mask.shape, "bool"
    operator.add_output(inverted)
    attention.replace_input(place, inverted)
