"""Inverts the bool masks of attentions that pnnx fused into modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.pnnx import load, save
from engine.pnnx.fused_masks import find_fused_bool_mask
from engine.text import format_count

if TYPE_CHECKING:
    from pathlib import Path

    from engine.pnnx import Graph, Operator

__all__ = ["invert_masks"]


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
    if b"nn.MultiheadAttention" not in param.read_bytes():
        return ""
    graph = load(param, weights)
    places = [(each, find_fused_bool_mask(each)) for each in graph.operators]
    found = [(attention, place) for attention, place in places if place is not None]
    if not found:
        return ""
    for attention, place in found:
        _invert(graph, attention, place)
    save(graph, param, weights)
    count = format_count(len(found), "attention")
    return (
        f"pnnx took the bool masks of {count} for the opposite; they are right here, but not "
        "in the ncnn pair, for which the model needs masks of float32"
    )


def _invert(graph: Graph, attention: Operator, place: int) -> None:
    mask = attention.inputs[place]
    name = f"{attention.name}_inverted_mask"
    operator = graph.new_operator_before("torch.logical_not", name, attention)
    operator.add_input(mask, "input")
    inverted = graph.new_operand(name)
    inverted.shape, inverted.dtype = mask.shape, "bool"
    operator.add_output(inverted)
    attention.replace_input(place, inverted)
