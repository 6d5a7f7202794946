"""What is found out about an attention; loads no layer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from engine.differences import Difference

__all__ = ["MOST_WEIGHTS", "AttentionScores", "Place", "Stage"]

MOST_WEIGHTS: Final = 1 << 23
"""Weights that are kept as they are; 32 MB."""


class Place(NamedTuple):
    """What is looked at.

    Attributes
    ----------
    heads : int
        Number of heads; 0 for the last dimension before queries and keys.
    sample : int
        Sequence of tokens: of the batch, or of all its windows.
    query : int
    """

    heads: int = 0
    sample: int = 0
    query: int = 0


@dataclass(frozen=True, slots=True)
class Stage:
    """An intermediate result of an attention.

    Attributes
    ----------
    name : str
        A formula, such as ``q·kᵀ / √64``.
    shape : tuple of int
    low, high : float or None
        Least and greatest finite number of the samples that were computed; None for none.
    operand : str
        The operand that it is; ``""`` for one that the operator does not show.
    """

    name: str
    shape: tuple[int, ...]
    low: float | None = None
    high: float | None = None
    operand: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class AttentionScores:
    """The weights of an attention.

    Attributes
    ----------
    shape : tuple of int
        (N, H, L, S): samples, heads, queries and keys.
    first : int
        The first sample of `weights`; 0 where all are there.
    weights : ndarray of shape (n, H, L, S), float32
        Of all samples, or of one. If that would be more than `MOST_WEIGHTS`, each element is
        the largest of `block` weights.
    block : (int, int)
        Queries and keys per element; (1, 1) for weights as they are.
    rows : ndarray of shape (H, S), float32
        Weights of the query that is looked at.
    stages : tuple of Stage
    output : str
        The operand that `difference` is about.
    difference : Difference or None
        Between the output that these weights give and the operand; None if they cannot be
        compared.
    note : str
        Why they cannot; ``""`` if they can.
    """

    shape: tuple[int, int, int, int]
    first: int
    weights: npt.NDArray[np.float32] = field(repr=False)
    block: tuple[int, int]
    rows: npt.NDArray[np.float32] = field(repr=False)
    stages: tuple[Stage, ...]
    output: str
    difference: Difference | None = None
    note: str = ""
