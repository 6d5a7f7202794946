"""Finds the bool masks of attentions that pnnx fused into modules.

In ``F.scaled_dot_product_attention`` true is a key to attend to, in ``nn.MultiheadAttention``
one to ignore. pnnx makes the one the other and leaves the mask as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["find_fused_bool_mask"]


class _Operand(Protocol):
    @property
    def dtype(self) -> object: ...
    @property
    def producer(self) -> _Operator | None: ...


class _Operator(Protocol):
    """An operator of the file, or one that runs."""

    @property
    def type(self) -> str: ...
    @property
    def inputs(self) -> Sequence[_Operand]: ...
    @property
    def input_names(self) -> Sequence[str]: ...


def find_fused_bool_mask(operator: _Operator) -> int | None:
    """Find the bool mask of an attention that pnnx fused, which means the opposite.

    pnnx writes the same lines for a module of the model. Only a fused mask comes from a
    reshape whose input is named ``attn_mask``.

    Parameters
    ----------
    operator : Operator or RuntimeOperator

    Returns
    -------
    int or None
        The place of the mask among the inputs; None if there is no such mask.
    """
    if operator.type != "nn.MultiheadAttention" or "attn_mask" not in operator.input_names:
        return None
    place = operator.input_names.index("attn_mask")
    reshape = operator.inputs[place].producer
    if reshape is None or list(reshape.input_names) != ["attn_mask"]:
        return None
    return place if reshape.inputs[0].dtype == "bool" else None
