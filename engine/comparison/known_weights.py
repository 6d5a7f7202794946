"""The reference's weights of our operators, or which of them differ."""

from __future__ import annotations

import re
from collections import deque
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.comparison.aligning.calls import COPY, function_of, is_layer
from engine.comparison.reasons.constant_weights import product_of
from engine.comparison.reasons.inner_weights import OUTPUT_WEIGHT, PROJECTIONS
from engine.comparison.reasons.ncnn_twins import converted_weights
from engine.comparison.references.reference import hash_weight, is_same_weight
from engine.comparison.references.sessions import hash_weights
from engine.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from engine.comparison.reasons.constant_weights import ConstantProduct
    from engine.comparison.references import Reference, ReferenceOperator, WeightHash
    from engine.runtime import RuntimeOperand, RuntimeOperator
    from engine.values import Array

__all__ = ["KnownWeights"]

_MOST_ABOVE: Final = 3  # operators without weights
_MOST_CALLS: Final = 48  # that may compute an attention with its projections
_MOST_OF_STEPS: Final = 1 << 15  # that may compute a sequence step by step
_WORD: Final = re.compile(r"[a-z_]+")
_PRODUCTS: Final = ("mm", "gemm", "matmul", "innerproduct")  # what computes a linear layer


class KnownWeights:
    """Finds the reference's weights of our operators.

    Parameters
    ----------
    reference : Reference
    key_of : callable
        Returns the key of the tensor that an operand is matched with; None for none.
    """

    def __init__(
        self, reference: Reference, key_of: Callable[[RuntimeOperand], str | None]
    ) -> None:
        self._reference, self._key_of = reference, key_of

    def arrays(self, operator: RuntimeOperator) -> Mapping[str, Array]:
        """Return the reference's weights of an operator, by our names; empty if unknown.

        They are those of another model's operator, or arrays named like ours:
        ``layer1.conv.weight``.
        """
        theirs = self._counterpart(operator)
        names = operator.attributes
        try:
            if theirs is not None:
                found = theirs.arrays()
                if found:
                    return {name: found[_named(name, found)] for name in names}
            keys = {name: f"{operator.name}.{name}" for name in names}
            known = self._reference.by_key
            return {n: self._reference.array(k) for n, k in keys.items() if k in known}
        except EngineError:
            return {}

    def differing(self, operator: RuntimeOperator) -> frozenset[str] | None:
        """Return the names of the weights that differ; None if it is unknown.

        Those of which the reference has no hash do not count. Constant operands of a product
        have the names of a linear layer's weights, those that ncnn has in other arrays
        PyTorch's names.
        """
        product = product_of(operator)
        try:
            if product is not None:
                return self._differing_of_product(operator, product)
            converted = converted_weights(operator)
            if OUTPUT_WEIGHT in converted or OUTPUT_WEIGHT in operator.attributes:
                return self._differing_of_attention(operator, converted)
            if converted:
                return self._differing_matrices(operator, converted)
            ours, theirs = hash_weights(operator), self._hashes(operator)
        except EngineError:
            return None
        differing = frozenset(
            name
            for name in ours.keys() & theirs.keys()
            if not any(is_same_weight(ours[name], other) for other in theirs[name])
        )
        if ours and ours.keys() <= theirs.keys():
            return differing
        # A reference that computes the bias tells nothing of it. A wrong matrix is one anyway.
        certain = any(len(operator.attributes[name].shape) > 1 for name in differing)
        return differing if certain else None

    def _differing_matrices(
        self, operator: RuntimeOperator, converted: Mapping[str, Array]
    ) -> frozenset[str] | None:
        """Return the matrices of a recurrent layer of ncnn that the reference does not have.

        It may compute each step by calls of its own. Unknown if it has all, or no such sizes.
        Of the biases, which ncnn adds up, no hash tells.
        """
        known = self._between(operator, _MOST_OF_STEPS)
        matrices = {name: array for name, array in converted.items() if array.ndim > 1}
        if not all(array.size in known for array in matrices.values()):
            return None
        absent = [n for n, array in matrices.items() if not _is_among(known[array.size], array)]
        return frozenset(absent) or None

    def _differing_of_product(
        self, operator: RuntimeOperator, product: ConstantProduct
    ) -> frozenset[str] | None:
        """Return the constant operands that the reference's layer does not have.

        Unknown if it has no weight of the size of one. It may keep the matrix transposed.
        """
        known: dict[int, list[WeightHash]] = {}
        for each in self._nearest(operator):
            known.setdefault(each.size, []).append(each)
        arrays = {name: each.array for name, each in product.weights.items()}
        if any(array.size not in known for array in arrays.values()):
            return None
        return frozenset(
            name
            for name, array in arrays.items()
            if not any(_is_among(known[a.size], a) for a in (array, array.T))
        )

    def _differing_of_attention(
        self, operator: RuntimeOperator, converted: Mapping[str, Array]
    ) -> frozenset[str] | None:
        """Return the weights of an attention that the reference does not take for its tensor.

        It may compute the projections of queries, keys and values one by one. Unknown if it
        has no weights of such sizes.
        """
        known = self._between(operator)
        own = {n: a.array for n, a in operator.attributes.items() if a.is_stored}
        stored = converted or own
        absent = {name for name, array in stored.items() if not _has(known, name, array)}
        sizes = {array.size for array in stored.values() if array.ndim > 1}
        tells = any(size in known or size // 3 in known for size in sizes)
        return frozenset(absent) if tells else None

    def _between(
        self, operator: RuntimeOperator, most: int = _MOST_CALLS
    ) -> Mapping[int, list[WeightHash]]:
        """Return hashes by size of weights from an operator's inputs to its first result."""
        ends = {self._key_of(operand) for operand in operator.inputs}
        waiting, seen = deque([self._key_of_result(operator)]), set[str | None]()
        found: dict[int, list[WeightHash]] = {}
        while waiting and len(seen) < most:
            key = waiting.popleft()
            call = self._by_output.get(key)
            if key in seen or key in ends or call is None:
                continue
            seen.add(key)
            for each in _as_stored(call):
                found.setdefault(each.size, []).append(each)
            waiting += call.inputs
        return found

    def _key_of_result(self, operator: RuntimeOperator) -> str | None:
        """Return the key of an operator's first result, or of a copy that ncnn makes of it."""
        (result, *_) = operator.outputs
        copies = [o for c in result.consumers if c.type == COPY for o in c.outputs]
        return next((key for o in (result, *copies) if (key := self._key_of(o))), None)

    def _hashes(self, operator: RuntimeOperator) -> Mapping[str, Sequence[WeightHash]]:
        """Return what the weights of an operator may be in the reference, by our names."""
        theirs = self._counterpart(operator)
        if theirs is not None:
            known = theirs.weights()
            return {n: [known[_named(n, known)]] for n in operator.attributes} if known else {}
        names = {name: f"{operator.name}.{name}" for name in operator.attributes}
        if self._by_weight.keys() >= {*names.values()}:
            return {name: [self._by_weight[full]] for name, full in names.items()}
        return self._of_sizes(operator)

    def _of_sizes(self, operator: RuntimeOperator) -> Mapping[str, Sequence[WeightHash]]:
        """Return the weights of the same sizes of what computes an operator's tensor.

        They have names of their own in ONNX.
        """
        sizes = {name: each.size for name, each in operator.attributes.items()}
        if len({*sizes.values()}) < len(sizes) or len(operator.outputs) != 1:
            return {}
        found = self._nearest(operator)
        fitting = {n: [h for h in found if h.size == size] for n, size in sizes.items()}
        return {name: hashes for name, hashes in fitting.items() if hashes}

    def _nearest(self, operator: RuntimeOperator) -> list[WeightHash]:
        """Return the weights of the layer that gives an operator's tensor, and of its bias.

        A product of matrices and the sum with its bias may be two calls. Empty if it is
        unknown which layer that is.
        """
        call = self._by_output.get(self._key_of(operator.outputs[0]))
        found: list[WeightHash] = []
        for _ in range(_MOST_ABOVE):
            if call is None:
                return []
            found += _as_stored(call)
            above = [
                c for k in call.inputs if (c := self._by_output.get(k)) and self._computes(c)
            ]
            if is_layer(call.type):
                below = [c for k in call.outputs for c in self._reference.consumers.get(k, ())]
                found += [h for c in below if _is_sum(c.type) for h in c.weights().values()]
                break
            if len(above) != 1:
                return []
            (call,) = above
        return found

    def of_producer(self, operand: RuntimeOperand) -> Mapping[str, Array]:
        """Return the weights of what gives the tensor of an operand, by the reference's names.

        They are of the nearest operator that has some, where others without any follow it, such
        as an activation. Empty if they are unknown.
        """
        theirs = self._by_output.get(self._key_of(operand))
        try:
            for _ in range(_MOST_ABOVE):
                if theirs is None or len(theirs.inputs) != 1 or theirs.weights():
                    break
                theirs = self._by_output.get(theirs.inputs[0])
            return theirs.arrays() if theirs is not None else {}
        except EngineError:
            return {}

    def _counterpart(self, operator: RuntimeOperator) -> ReferenceOperator | None:
        """Return the reference's operator with the same weights' names and kind."""
        if not operator.has_attributes:
            return None
        keys = [self._key_of(operand) for operand in operator.outputs]
        producers = [self._by_output[key] for key in keys if key in self._by_output]
        for theirs in (*producers, self._by_name.get(operator.name)):
            if theirs is not None and _is_same_kind(operator, theirs):
                return theirs
        return None

    @cached_property
    def _by_output(self) -> Mapping[str | None, ReferenceOperator]:
        return {key: each for each in self._reference.operators for key in each.outputs}

    def _computes(self, call: ReferenceOperator) -> bool:
        """Whether a call reads more than constants."""
        known = self._reference.by_key
        return any(known[key].role != "constant" for key in call.inputs)

    @cached_property
    def _by_weight(self) -> Mapping[str, WeightHash]:
        """The reference's weights by name, as of modules that it computes in several calls."""
        return {n: each for o in self._reference.operators for n, each in o.weights().items()}

    @cached_property
    def _by_name(self) -> Mapping[str, ReferenceOperator]:
        return {each.name: each for each in self._reference.operators}


def _as_stored(call: ReferenceOperator) -> list[WeightHash]:
    """Return the weights of a call, as a linear layer stores what a product has transposed."""
    known = call.weights()
    return [each for name, each in known.items() if f"{name} transposed" not in known]


def _is_among(known: Sequence[WeightHash], array: Array) -> bool:
    ours = hash_weight(array)
    return any(is_same_weight(ours, each) for each in known)


def _has(known: Mapping[int, Sequence[WeightHash]], name: str, array: Array) -> bool:
    """Whether a weight is among those of some hashes, as a whole or in three parts."""
    stacked = name in PROJECTIONS and name.startswith("in_proj") and not len(array) % 3
    ways = [[array], np.split(array, 3)] if stacked else [[array]]
    return any(
        all(_is_among(known.get(part.size, ()), part) for part in parts) for parts in ways
    )


def _is_sum(operator_type: str) -> bool:
    return function_of(operator_type) == "add"


def _is_same_kind(ours: RuntimeOperator, theirs: ReferenceOperator) -> bool:
    """Whether two operators have the same kind, and weights of the same names."""
    word = _WORD.match(ours.type.rpartition(".")[2].lower())
    kind = theirs.type.lower().replace("_", "")
    if word is None:
        return False
    linear = word[0] == "linear" and any(each in kind for each in _PRODUCTS)
    if not linear and word[0].replace("_", "").rstrip("d") not in kind:
        return False
    try:
        names = theirs.weights()
    except EngineError:
        return False
    found = {_named(name, names) for name in ours.attributes}
    return "" not in found and len(found) == len(names)


def _named(name: str, theirs: Mapping[str, object]) -> str:
    """Return the reference's name of a weight: ours, perhaps with a path before; or ``""``."""
    fitting = [each for each in theirs if each == name or each.endswith(f".{name}")]
    return fitting[0] if len(fitting) == 1 else ""
