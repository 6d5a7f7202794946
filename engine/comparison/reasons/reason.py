"""What an explanation of a difference says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from engine.values import Value

__all__ = ["KINDS", "Change", "Reason"]

KINDS: Final = (
    "weight_values", "weight_layout", "bias", "padding", "stride", "dilation", "groups",
    "ceil_mode", "count_include_pad", "align_corners", "eps", "normalization",
    "activation_missing", "activation_extra", "axis", "scale", "channel_order", "mean_std",
    "input_layout", "precision", "expression", "parameter",
)  # fmt: skip
"""Every kind of reason."""


@dataclass(frozen=True, slots=True)
class Change:
    """What to set so that the operator, or the input, is the reference's.

    Attributes
    ----------
    name : str
        A parameter or weight of the operator, or an option of the preprocessing.
    value : Value
        None where a weight is not there in the reference.
    """

    name: str
    value: Value = field(repr=False)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a result differs from the expected one, tried on the data.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    explains : float
        Share of the squared difference that is gone once the reason is removed, from 0 to 1.
        Where the shapes differ, or ours is further from the expected numbers than their mean
        is, it is the share of their variance. Numbers that were fitted to the data cost as
        much as they could have explained by chance. Of two reasons that explain only together,
        the first has its share alone (1 if shapes differ), the second what that leaves.
    text : str
        What differs, and what to change.
    changes : tuple of Change
        The same for programs; empty where nothing can be set.
    """

    kind: str
    explains: float
    text: str
    changes: tuple[Change, ...] = field(default=(), compare=False)
