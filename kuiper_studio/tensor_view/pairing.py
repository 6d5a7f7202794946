"""Two tabs side by side: which of them go together, and how far they are apart. No Qt."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.pictures import finite_range, real_values
from engine.text import format_shape
from kuiper_studio.tensor_view.facts import thinned
from kuiper_studio.tensor_view.view_model import Counterpart, subtract

if TYPE_CHECKING:
    from engine.values import Array, Value

__all__ = ["Pair", "pair_up"]

# Beyond this many elements ranges come from evenly spaced ones, so that a step stays quick.
_EXACT: Final = 1 << 20
_SAMPLED: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class Pair:
    """A tab and the one beside it, of one shape.

    Attributes
    ----------
    name : str
        What the tab is found by.
    ours, theirs : ndarray
    counterpart : Counterpart
        What is shown beside the tab.
    shared_range : (float, float) or None
        Least and greatest finite value of both.
    expression : str
        What gives `theirs` in Python.
    """

    name: str
    ours: Array = field(repr=False, compare=False)
    theirs: Array = field(repr=False, compare=False)
    counterpart: Counterpart
    shared_range: tuple[float, float] | None
    expression: str


def pair_up(
    name: str, ours: Value, theirs: Value, titles: tuple[str, str], expression: str = ""
) -> Pair:
    """Pair two tabs.

    Parameters
    ----------
    name : str
        What the tab is found by.
    ours, theirs : Value
        Of the tab, and of the one to show beside it.
    titles : (str, str)
        Of both.
    expression : str, optional
        What gives `theirs` in Python.

    Raises
    ------
    ValueError
        In a sentence, if they have no difference.
    """
    mine, other = titles
    for title, value in ((mine, ours), (other, theirs)):
        if not isinstance(value, np.ndarray):
            raise ValueError(  # noqa: TRY004 - a sentence for the user
                f"{title} is not one tensor, so that nothing stands beside it."
            )
    assert isinstance(ours, np.ndarray)  # noqa: S101 - for the type checker
    assert isinstance(theirs, np.ndarray)  # noqa: S101
    if ours.shape != theirs.shape:
        raise ValueError(
            "Only tensors of one shape stand side by side, "
            f"not {format_shape(ours.shape)} and {format_shape(theirs.shape)}."
        )
    most = _EXACT if ours.size <= _EXACT else _SAMPLED
    few, fewer = (thinned(each, most) for each in (ours, theirs))
    found = [finite_range(real_values(each)) for each in (few, fewer)]
    ends = [end for each in found if each is not None for end in each]
    apart = finite_range(real_values(subtract(few, fewer)))
    largest = max(map(abs, apart)) if apart is not None else math.inf
    return Pair(
        name, ours, theirs, Counterpart(theirs, largest=largest, names=titles),
        (min(ends), max(ends)) if ends else None, expression,
    )  # fmt: skip
