"""Reasons for a difference."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from engine.values import Held

__all__ = ["KINDS", "Change", "Reason", "kind_of_weight"]

KINDS: Final = (
    "weight_values", "weight_layout", "bias", "padding", "stride", "dilation", "groups",
    "ceil_mode", "count_include_pad", "align_corners", "eps", "normalization",
    "activation_missing", "activation_extra", "axis", "scale", "channel_order", "mean_std",
    "input_layout", "resizing", "precision", "expression", "parameter",
)  # fmt: skip
"""Every kind of reason."""


@dataclass(frozen=True, slots=True)
class Change:
    """A setting that makes the operator, or the input, equal to the reference's.

    Attributes
    ----------
    name : str
        A parameter or weight of the operator, or an option of the preprocessing.
    value : Value
        None for a weight that the reference lacks. Lazy only while alternatives are tried.
    """

    name: str
    value: Held = field(repr=False)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a result differs from the expected one; verified on the data.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    explains : float
        Share of the squared difference that vanishes once the reason is removed, from 0 to 1.
        If the shapes differ, or ours is further from the expected numbers than their mean is,
        it is the share of their variance. Fitted numbers reduce the share by as much as they
        could explain by chance. Of two reasons that explain only together, the first has its
        share alone (1 if shapes differ), the second the rest.
    text : str
        The difference, and the change to make.
    changes : tuple of Change
        The change for programs; empty if nothing can be set.
    """

    kind: str
    explains: float
    text: str
    changes: tuple[Change, ...] = field(default=(), compare=False)


def kind_of_weight(name: str) -> str:
    """Return ``bias`` for the name of a bias, else ``weight_values``."""
    own = name.rpartition(".")[2]
    return "bias" if own.startswith("bias") or own.endswith("_bias") else "weight_values"
