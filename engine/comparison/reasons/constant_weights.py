"""Products of matrices whose weight is a constant operand, as those of a linear layer.

Where a module keeps its matrix transposed, or a function is given it, pnnx writes the matrix
as an operator of its own, ``pnnx.Attribute``, that gives it to the product.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.comparison.reasons.reason import Change, Reason
    from engine.runtime import RuntimeOperator
    from engine.values import Array

__all__ = ["ConstantProduct", "ConstantWeight", "in_own_words", "product_of"]

_CONSTANT: Final = "pnnx.Attribute"
_DATA: Final = "data"  # the one attribute of that


class _Arguments(NamedTuple):
    """Arguments of a function that multiplies matrices.

    Attributes
    ----------
    names : tuple of str
        In order.
    input, weight, bias : str
        Those that are such of a linear layer; ``""`` for none.
    is_transposed : bool
        Whether the weight has its outputs last, unlike that of a linear layer.
    """

    names: tuple[str, ...]
    input: str
    weight: str
    bias: str
    is_transposed: bool = True


_PRODUCTS: Final[Mapping[str, _Arguments]] = {
    "addmm": _Arguments(("input", "mat1", "mat2"), "mat1", "mat2", "input"),
    "linear": _Arguments(
        ("input", "weight", "bias"), "input", "weight", "bias", is_transposed=False
    ),
    "matmul": _Arguments(("input", "other"), "input", "other", ""),
    "mm": _Arguments(("input", "mat2"), "input", "mat2", ""),
}


class ConstantWeight(NamedTuple):
    """A constant operand that is a linear layer's weight or bias.

    Attributes
    ----------
    name : str
        Of the operator that gives it.
    array : ndarray
        As a linear layer has it.
    is_transposed : bool
        Whether the file has its transpose.
    """

    name: str
    array: Array
    is_transposed: bool

    def in_file(self, array: Array) -> Array:
        """Return such a weight as the file has it."""
        return np.ascontiguousarray(array.T) if self.is_transposed else array


class ConstantProduct(NamedTuple):
    """A product with a constant matrix.

    Attributes
    ----------
    place : int
        Of the input that is multiplied.
    weights : mapping of str to ConstantWeight
        By the names of ``nn.Linear``.
    """

    place: int
    weights: Mapping[str, ConstantWeight]


def product_of(operator: RuntimeOperator) -> ConstantProduct | None:
    """Return an operator as a product with a constant matrix; None if it is none."""
    arguments = _PRODUCTS.get(operator.type.rpartition(".")[2].rpartition("::")[2])
    if arguments is None or operator.has_attributes:
        return None
    if any(operator.params.get(factor, 1) != 1 for factor in ("alpha", "beta")):
        return None
    given = operator.input_names
    if len(given) > len(arguments.names):
        return None
    named = zip(given, arguments.names, strict=False)
    places = {name or by_order: place for place, (name, by_order) in enumerate(named)}
    weights: dict[str, ConstantWeight] = {}
    for own, name, ndim in (("weight", arguments.weight, 2), ("bias", arguments.bias, 1)):
        if name not in places:
            continue
        producer = operator.inputs[places[name]].producer
        stored = producer.attributes.get(_DATA) if producer is not None else None
        if producer is None or producer.type != _CONSTANT or stored is None:
            return None
        if not stored.is_stored or stored.dtype.kind != "f" or len(stored.shape) != ndim:
            return None
        turned = arguments.is_transposed and own == "weight"
        array = stored.array.T if turned else stored.array
        weights[own] = ConstantWeight(producer.name, array, turned)
    if "weight" not in weights or arguments.input not in places:
        return None
    return ConstantProduct(places[arguments.input], weights)


def in_own_words(reasons: Sequence[Reason], product: ConstantProduct) -> tuple[Reason, ...]:
    """Return reasons of a linear layer with the names that the file has for its weights."""

    def rename(change: Change) -> Change:
        own = product.weights.get(change.name)
        if own is None:
            return change
        value = change.value
        array = own.in_file(value) if isinstance(value, np.ndarray) else value
        return replace(change, name=f"{own.name}.{_DATA}", value=array)

    words = " ".join(
        f"The {name} is '{each.name}'{', transposed' if each.is_transposed else ''}."
        for name, each in product.weights.items()
    )
    return tuple([
        replace(
            each,
            text=f"{each.text} {words}",
            changes=tuple(map(rename, each.changes)),
        )
        for each in reasons
    ])  # fmt: skip
