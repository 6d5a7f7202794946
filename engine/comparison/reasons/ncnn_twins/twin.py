"""What stands for a layer of ncnn."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from engine.layers.padding import pad

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from engine.layers import OperatorCall
    from engine.values import Array, Value

__all__ = ["Border", "Twin", "add_batch", "put_border", "renamed"]


class Border(NamedTuple):
    """What a convolution of ncnn puts around an image.

    Attributes
    ----------
    pads : tuple of int
        ``(left, right, top, bottom, ...)``
    value : float
    """

    pads: tuple[int, ...]
    value: float


@dataclass(frozen=True)
class Twin:
    """A layer of ncnn in PyTorch's words.

    Attributes
    ----------
    call : OperatorCall
    names : mapping of str to str
        PyTorch's names of the weights that ncnn names otherwise.
    convert : callable or None
        Gives weights by ncnn's names as PyTorch has them, where they do not only have other
        names. Some may be missing.
    is_batched : bool
        Whether PyTorch's operator takes and gives a batch axis in front.
    arrange : callable or None
        Gives the inputs the shapes that PyTorch's operator takes, before the batch axis.
    activation : callable or None
        What the layer applies to its result.
    border : Border or None
        What is put around the input, as PyTorch's operator does not.
    """

    call: OperatorCall
    names: Mapping[str, str] = field(default_factory=dict)
    convert: Callable[[Mapping[str, Array]], dict[str, Array]] | None = None
    is_batched: bool = True
    arrange: Callable[[Sequence[Value]], Sequence[Value]] | None = None
    activation: Callable[[Array], Array] | None = None
    border: Border | None = None

    def take(self, inputs: Sequence[Value]) -> tuple[Value, ...]:
        """Return the inputs of ncnn's layer as those of PyTorch's operator."""
        arranged = inputs if self.arrange is None else self.arrange(inputs)
        if self.border is not None:
            image, *others = arranged
            if isinstance(image, np.ndarray):
                arranged = (put_border(image, self.border), *others)
        return tuple(map(add_batch, arranged)) if self.is_batched else tuple(arranged)

    def rename(self, weights: Mapping[str, Array]) -> dict[str, Array]:
        """Return weights by PyTorch's names, in the shapes of the twin's."""
        if self.convert is not None:
            return self.convert(weights)
        found = {self.names.get(name, name): array for name, array in weights.items()}
        own = self.call.attributes
        return {
            name: array.reshape(own[name].shape)
            if name in own and array.size == own[name].size
            else array
            for name, array in found.items()
        }

    def rename_all(self, names: frozenset[str] | None) -> frozenset[str] | None:
        """Return PyTorch's names of weights; those that are converted are known by them."""
        if names is None or self.convert is not None:
            return names
        return frozenset(self.names.get(name, name) for name in names)


def add_batch(value: Value) -> Value:
    """Return a tensor as a batch of one; any other value as it is."""
    return value[np.newaxis] if isinstance(value, np.ndarray) else value


def put_border(image: Array, border: Border) -> Array:
    """Return an image with a border around it."""
    return pad(image, border.pads, value=border.value)


def renamed(
    call: OperatorCall, type_: str, params: Mapping[str, Value], **names: str
) -> OperatorCall:
    """Return a call of another type, with weights of other names."""
    weights = {names.get(name, name): array for name, array in call.attributes.items()}
    return replace(
        call, type=type_, params=params, attributes=weights, constants={}, output_shapes=()
    )
