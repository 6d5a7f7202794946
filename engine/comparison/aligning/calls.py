"""The reference's own graph: what it computes from which tensors, and by what kind of call.

Some references show only tensors; then there are no calls.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from engine.comparison.aligning.limits import AHEAD
from engine.comparison.reasons import is_activation

if TYPE_CHECKING:
    from collections.abc import Collection

    from engine.comparison.references import Reference

__all__ = ["COPY", "Calls", "function_of", "is_composite", "is_layer"]

COPY: Final = "ncnn.Split"
"""Gives each of its readers the same value."""

_TO_BIAS: Final = 2  # calls from a product of matrices to the sum with its bias
_OF_SHAPES: Final = frozenset({"shape", "size", "constantofshape"})
_COMPOSITE: Final = re.compile(r"attention|lstm|gru|rnn|einsum")
_LAYER: Final = re.compile(rf"conv|mm$|linear|matmul|innerproduct|{_COMPOSITE.pattern}")


class Calls:
    """The calls of a reference.

    Parameters
    ----------
    reference : Reference

    Attributes
    ----------
    by_output : dict of str to ReferenceOperator
    """

    def __init__(self, reference: Reference) -> None:
        self._reference = reference
        self.by_output = {key: call for call in reference.operators for key in call.outputs}

    def near(self, keys: Collection[str], calls: int = AHEAD) -> set[str]:
        """Return the tensors that are computed from given ones in a few calls."""
        found: set[str] = set()
        level = {*keys}
        for _ in range(calls):
            level = {
                output
                for key in level
                for call in self._reference.consumers.get(key, ())
                for output in call.outputs
            } - found
            found |= level
        return found

    def functions_of(self, key: str) -> set[str]:
        """Return the functions of the calls that read a tensor; see `function_of`."""
        return {function_of(call.type) for call in self._reference.consumers.get(key, ())}

    def count_layers(self, key: str, sources: Collection[str], most: int) -> int:
        """Count the layers that lead to a tensor from given ones, to one more than `most`."""
        count, waiting, seen = 0, [key], {*sources}
        while waiting and count <= most:
            call = self.by_output.get(waiting.pop())
            if call is None or seen.issuperset(call.outputs):
                continue
            seen.update(call.outputs)
            if function_of(call.type) in _OF_SHAPES:  # only sizes lead through it
                continue
            count += is_layer(call.type)
            waiting += [each for each in call.inputs if each not in seen]
        return count

    def end_of_layer(self, key: str, layer: Collection[str]) -> str:
        """Return the last tensor of a layer that the reference computes in several calls.

        Such as a product of matrices, and a sum with the bias, which may be the wrong weight.

        Parameters
        ----------
        key : str
            A tensor of the layer.
        layer : collection of str
            All tensors that the reference computes with weights of the layer's name.
        """
        others = self.near({key}, _TO_BIAS).intersection(layer)
        ends = [each for each in others if not is_layer(self.by_output[each].type)]
        return max(ends, key=self._reference.index.__getitem__, default=key)

    def behind_activation(self, key: str) -> str:
        """Return what the only call that reads a tensor gives, if that is an activation.

        A tensor that is read otherwise is returned as it is.
        """
        readers = self._reference.consumers.get(key, ())
        if len(readers) != 1 or not is_activation(function_of(readers[0].type)):
            return key
        outputs = readers[0].outputs
        return outputs[0] if len(outputs) == 1 else key


def is_layer(type_: str) -> bool:
    """Whether a type multiplies by matrices, which others do not make up for."""
    return _LAYER.search(function_of(type_)) is not None


def is_composite(type_: str) -> bool:
    """Whether some libraries compute a type by several layers."""
    return _COMPOSITE.search(function_of(type_)) is not None


def function_of(type_: str) -> str:
    """Return a type without the library's prefix, in small letters, such as leakyrelu."""
    return type_.rpartition(".")[2].rpartition("::")[2].replace("_", "").lower()
