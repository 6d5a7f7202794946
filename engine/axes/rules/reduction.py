"""Reductions over dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.axes.factors import Rank
from engine.axes.layout import Kind
from engine.axes.registry import rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.axes.call import Call, Results
    from engine.axes.factors import Dims
    from engine.axes.layout import Size
    from engine.runtime import RuntimeOperator

__all__ = ["drop"]

_RESHAPES: Final = frozenset({"Tensor.reshape", "Tensor.view", "torch.flatten"})
_MOST_RESHAPES: Final = 3


@rule("mean", "sum", "max", "min", "amax", "amin", "prod", "var", "std", "norm", "logsumexp",
      "argmax", "argmin", "any", "all", "median", "topk", "kthvalue", "mode")  # fmt: skip
def reduce(call: Call) -> Results:
    """Reduce dimensions, which are dropped or keep the size 1."""
    dims = call.first
    if dims is None:
        return []
    places = call.places("dim", len(dims))
    if places is None:
        places = call.places("axis", len(dims))
    if call.operator.type.endswith("topk"):
        place = call.place("dim", len(dims), -1)
        call.factors.ranked |= {*dims[place]} if place is not None else set()
    _claim_codes(call, dims, places or ())
    return [drop(call, dims, places, at) for at in range(len(call.shapes))]


def _claim_codes(call: Call, dims: Dims, places: tuple[int, ...]) -> None:
    """Name the codes among which a quantiser chooses the nearest, to look it up."""
    if len(places) != 1 or not call.operator.type.endswith(("argmin", "argmax")):
        return
    readers = [*call.operator.outputs[0].consumers]
    for _ in range(_MOST_RESHAPES):
        if not any(each.type in _RESHAPES for each in readers):
            break
        readers = [
            reader
            for each in readers
            for reader in (_first_readers(each) if each.type in _RESHAPES else (each,))
        ]
    count = call.factors.size(dims[places[0]])
    is_nearest = call.operator.type.endswith("argmin")
    for each in readers:
        is_lookup = each.type.endswith("mbedding") and _rows_of_table(each) == count
        if is_lookup or (is_nearest and each.type.endswith("one_hot")):
            call.factors.claim(dims[places[0]], Kind.VOCABULARY, Rank.STATED)


def _first_readers(operator: RuntimeOperator) -> Sequence[RuntimeOperator]:
    """Return what reads the first result; a file may have none where a type needs one."""
    return operator.outputs[0].consumers if operator.outputs else ()


def _rows_of_table(embedding: RuntimeOperator) -> Size:
    weight = embedding.attributes.get("weight")
    shape = embedding.tied_inputs[0].shape if embedding.tied_inputs else None
    shape = weight.shape if weight is not None else shape
    return shape[0] if shape else None


@rule("onehot")
def encode_one_hot(call: Call) -> Results:
    """Add a dimension with a one at the place of each number, such as a code's."""
    dims, shape = call.first, call.shape
    if dims is None or shape is None or len(shape) != len(dims) + 1:
        return []
    made = (call.factors.make(shape[-1]),)
    producer = call.operator.inputs[0].producer
    if producer is not None and producer.type.endswith("argmin"):
        call.factors.claim(made, Kind.VOCABULARY, Rank.STATED)
    return [call.fit((*dims, made))]


def drop(call: Call, dims: Dims, places: tuple[int, ...] | None, at: int = 0) -> Dims | None:
    """Return the dimensions of an output without the reduced ones, or with size 1 there."""
    shape = call.shapes[at]
    if shape is None:
        return None
    if len(shape) == len(dims):
        return call.fit(dims, at)
    if places is None:
        return None
    return call.fit([dim for place, dim in enumerate(dims) if place not in places], at)
