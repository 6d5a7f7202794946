"""Two tabs side by side: which of them go together, and how far they are apart. No Qt."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.pictures import finite_range, real_values
from engine.text import format_shape
from kuiper_studio.tensor_view.element import Counterpart, subtract
from kuiper_studio.tensor_view.facts import thinned
from kuiper_studio.tensor_view.fitting import Fitted, fit

if TYPE_CHECKING:
    from engine.values import Array, Value

__all__ = ["Pair", "pair_up"]

# Beyond this many elements ranges come from evenly spaced ones, so that a step stays quick.
_EXACT: Final = 1 << 20
_SAMPLED: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class Pair:
    """A tab and the one beside it.

    Attributes
    ----------
    name : str
        What the tab is found by.
    ours, theirs : ndarray
        Of one shape.
    source : ndarray
        The whole tensor that `theirs` is of.
    fitted : Fitted
        How it was fitted.
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
    source: Array = field(repr=False, compare=False)
    fitted: Fitted
    counterpart: Counterpart
    shared_range: tuple[float, float] | None
    expression: str

    @property
    def is_alike(self) -> bool:
        """Whether both are whole tensors of one shape."""
        return self.source is self.theirs

    @property
    def last(self) -> int:
        """Greatest index that a slice may begin at."""
        return self.fitted.last


def pair_up(
    name: str,
    ours: Value,
    theirs: Value,
    titles: tuple[str, str],
    expression: str = "",
    start: int = 0,
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
    start : int, optional
        Where a slice of `theirs` begins, if it has to be one.

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
    source, fitted = theirs, fit(theirs, ours.shape, start)
    if fitted is None:
        shapes = f"{format_shape(theirs.shape)} to {format_shape(ours.shape)}"
        reason = f"{other} does not fit beside {mine}: {shapes} is no broadcast or slice"
        if fit(ours, theirs.shape) is not None:
            reason += f". {mine} fits beside {other}: go to that tab first"
        raise ValueError(f"{reason}.")
    theirs = fitted.array
    most = _EXACT if ours.size <= _EXACT else _SAMPLED
    few, fewer = (thinned(each, most) for each in (ours, theirs))
    found = [finite_range(real_values(each)) for each in (few, fewer)]
    ends = [end for each in found if each is not None for end in each]
    apart = finite_range(real_values(subtract(few, fewer)))
    largest = max(map(abs, apart)) if apart is not None else math.inf
    return Pair(
        name, ours, theirs, source, fitted, Counterpart(theirs, largest=largest, names=titles),
        (min(ends), max(ends)) if ends else None, fitted.expression.format(expression),
    )  # fmt: skip
