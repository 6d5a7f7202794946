"""Keys that a constant mask hides in attention of several operators.

Scores get a mask, a softmax makes weights of them, and a product averages the values. Each of
these operators depends on all keys. Together they do not: a score that the mask made minus
infinity, or the smallest number, has the weight 0 whatever it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from engine.layers import matmul
from engine.layers.binding import code_of
from engine.layers.softmax import softmax
from engine.provenance.records import Interval
from engine.provenance.rules.attention import seen_keys

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.provenance.records import Box
    from engine.runtime import RuntimeOperator
    from engine.session import Session
    from engine.values import Array

__all__ = ["leave_out_hidden"]

_CHOOSING: Final = frozenset({"torch.where", "Tensor.masked_fill", "torch.masked_fill"})
_PRODUCTS: Final = frozenset({matmul.matmul, matmul.bmm})


def leave_out_hidden(
    session: Session, operator: RuntimeOperator, regions: Mapping[str, Box]
) -> Mapping[str, Box]:
    """Return the regions of an operator's inputs without keys that a mask hides.

    Parameters
    ----------
    session : Session
    operator : RuntimeOperator
    regions : mapping of str to Box
        That a region of its output depends on, if nothing is known of the operators before.
    """
    code = code_of(operator.layer) if operator.layer is not None else None
    if code is softmax:
        scores = operator.inputs[0].name
        keys = _seen(session, operator, regions.get(scores))
        return regions if keys is None else {scores: (*regions[scores][:-1], keys)}
    if code not in _PRODUCTS or len(operator.inputs) != 2:
        return regions
    weights, values = operator.inputs
    keys = None
    if weights.producer is not None and weights.name not in session.overrides:
        keys = _seen(session, weights.producer, regions.get(weights.name))
    box = regions.get(values.name, ())
    if keys is None or weights is values or len(box) < 2:
        return regions
    return {
        **regions,
        weights.name: (*regions[weights.name][:-1], keys),
        values.name: (*box[:-2], keys, box[-1]),
    }


def _seen(session: Session, operator: RuntimeOperator, box: Box | None) -> Interval | None:
    """Return the keys that a region of a softmax's result may have a weight of.

    None if the operator is no softmax of scores with a constant mask.
    """
    if operator.layer is None or code_of(operator.layer) is not softmax or not box:
        return None
    scores = operator.inputs[0]
    masking, dim = scores.producer, operator.params.get("dim")
    if masking is None or dim not in {-1, len(box) - 1} or scores.name in session.overrides:
        return None
    place = tuple([slice(each.start, each.stop) for each in box])
    values = np.asarray(session.value(scores.name))
    part, count = values[place], values.shape[-1]
    if values.dtype.kind != "f" or part.shape[-1] != count:
        return None
    hidden = part <= np.finfo(values.dtype).min / 2
    added = _added_mask(session, masking, values.shape)
    if added is not None:
        hidden &= added[place] <= np.finfo(added.dtype).min / 2
    elif masking.type not in _CHOOSING or not _has_constant_choice(masking):
        return None
    whole = tuple([Interval.whole(size) for size in part.shape])
    return seen_keys(np.where(hidden, part, np.zeros((), part.dtype)), whole, count)


def _added_mask(
    session: Session, masking: RuntimeOperator, shape: tuple[int, ...]
) -> Array | None:
    """Return the constant that an expression adds last; None if it adds none."""
    text = str(masking.params.get("expr", "")).replace(" ", "")
    if masking.type != "pnnx.Expression" or not text.startswith("add("):
        return None
    for place, operand in enumerate(masking.inputs):
        is_last = text.startswith(f"add(@{place},") or text.endswith(f",@{place})")
        producer = operand.producer
        if is_last and producer is not None and producer.is_constant:
            value = np.asarray(session.value(operand.name))
            return np.broadcast_to(value, shape) if value.dtype.kind == "f" else None
    return None


def _has_constant_choice(masking: RuntimeOperator) -> bool:
    """Whether a constant says which scores are replaced, and by what."""
    name = "condition" if masking.type == "torch.where" else "mask"
    pairs = zip(masking.input_names, masking.inputs, strict=False)
    chosen = [each.producer for given, each in pairs if given == name]
    return any(producer is not None and producer.is_constant for producer in chosen)
