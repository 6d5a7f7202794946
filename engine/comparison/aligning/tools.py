"""What every rule of an alignment works with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.comparison.aligning.labels import Labels
from engine.comparison.aligning.matches import Matches
from engine.comparison.aligning.state import State
from engine.comparison.aligning.structure import Structure
from engine.comparison.aligning.trials import Trials
from engine.comparison.aligning.values import Values

if TYPE_CHECKING:
    from engine.comparison.aligning.state import Sides

__all__ = ["Tools"]


@dataclass(frozen=True, slots=True)
class Tools:
    """Both sides, what is known of them, and what finds out more.

    Attributes
    ----------
    sides : Sides
    state : State
    values : Values
    structure : Structure
    labels : Labels
    trials : Trials
    matches : Matches
    """

    sides: Sides
    state: State
    values: Values
    structure: Structure
    labels: Labels
    trials: Trials
    matches: Matches

    @classmethod
    def of(cls, sides: Sides) -> Tools:
        """Return the tools to align two sides, of which nothing is known yet."""
        state = State()
        values, structure = Values(sides, state), Structure(sides, state)
        trials = Trials(sides, state, values, structure)
        matches = Matches(sides, state, values, structure, trials)
        labels = Labels(sides, structure)
        return cls(sides, state, values, structure, labels, trials, matches)
