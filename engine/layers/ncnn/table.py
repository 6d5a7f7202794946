"""The table from ncnn's types to code in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

from engine.errors import ParameterError
from engine.layers.layer import OperatorCall
from engine.layers.registry import Registration
from engine.layers.windows import Windows
from engine.ncnn.types import PREFIX, weight_specs

__all__ = ["LARGEST", "LAYERS", "Sliding", "layer", "require_weights"]

Target = TypeVar("Target", bound=Callable[..., Any])

LAYERS: Final[dict[str, Registration]] = {}
"""Layers by type, with its prefix."""

LARGEST: Final = 1 << 15
"""The largest window, stride, padding, side or number of boxes that a layer may have."""


class Sliding(NamedTuple):
    """Windows of a layer, for the limits that a library's arguments must respect.

    Attributes
    ----------
    windows : Windows
    shape : tuple of int
        Shape (C, H...) of the image.
    outputs : int
        Channels of the result.
    gathered : int
        Channels whose windows are gathered for a product; 0 for a pooling.
    output_padding : tuple of int or None
        Of a transposed convolution; None for another layer.
    """

    windows: Windows
    shape: tuple[int, ...]
    outputs: int
    gathered: int = 0
    output_padding: tuple[int, ...] | None = None


def require_weights(call: OperatorCall) -> None:
    """Check that a layer has the weights that its parameters ask for.

    Raises
    ------
    ParameterError
        If one is missing, or the parameters contradict each other.
    """
    try:
        specs = weight_specs(call.type.removeprefix(PREFIX), call.params)
    except ValueError as exc:
        raise ParameterError("weight", str(exc)) from None
    for spec in specs:
        if spec.name not in call.attributes:
            raise ParameterError(spec.name, f"its weight {spec.name} is missing")


def layer(*kinds: str) -> Callable[[Target], Target]:
    """Register a function or a `Layer` class for types of ncnn.

    Arguments have the names of ncnn's parameters and weights, as listed in `engine.ncnn.types`.
    The registry of PyTorch's types does not contain them, so a PNNX file cannot use them.
    """

    def decorate(target: Target) -> Target:
        for kind in kinds:
            LAYERS[f"{PREFIX}{kind}"] = Registration(f"{PREFIX}{kind}", target)
        return target

    return decorate
