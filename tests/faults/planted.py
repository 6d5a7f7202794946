"""What a fault is, and how parameters and weights of an operator are changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.pnnx import Attribute, Parameter

if TYPE_CHECKING:
    from engine.pnnx import Operator

__all__ = ["Planted", "change_parameter", "replace_weight", "value_of", "weights_of"]


@dataclass(frozen=True)
class Planted:
    """A fault that was planted.

    Attributes
    ----------
    reasons : str
        Right first reasons, separated by commas.
    operator : str
        Name of the changed operator.
    also : tuple of str
        Operators that are also right answers, because the values do not distinguish them.
    """

    reasons: str
    operator: str
    also: tuple[str, ...] = ()


def change_parameter(kind: str, operator: Operator, key: str, value: Any) -> Planted | None:
    if value is None or value == operator.params[key].value:
        return None
    operator.params[key] = Parameter.of(value)
    return Planted(kind, operator.name)


def value_of(operator: Operator, key: str) -> Any:
    parameter = operator.params.get(key)
    return parameter.value if parameter is not None else None


def weights_of(operator: Operator, least: int = 1) -> list[str]:
    return [
        key
        for key, attribute in operator.attrs.items()
        if attribute.dtype == "f32" and len(attribute.shape) >= least
    ]


def replace_weight(operator: Operator, key: str, array: np.ndarray) -> None:
    operator.attrs[key] = Attribute.from_array(np.ascontiguousarray(array, np.float32))
