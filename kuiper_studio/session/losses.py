"""What to say and to do when the engine's process has ended by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.errors import capitalized
from kuiper_studio.session.events import Failure

if TYPE_CHECKING:
    from engine.runtime import RuntimeGraph
    from kuiper_studio.engine_service.transport import EngineLost

__all__ = ["Losses", "describe_loss", "exclude_kernel"]

_MOST: Final = 2  # losses one behind the other after which nobody tries again unasked


class Losses:
    """Losses of the engine one behind the other.

    Attributes
    ----------
    by_force : bool
        Whether the engine is being ended because what it does was stopped.
    untold : Failure or None
        To be told when the model is where it was before.
    """

    def __init__(self) -> None:
        self.by_force = False
        self.untold: Failure | None = None
        self._count = 0

    def note(self, failure: Failure) -> bool:
        """Take note of a loss; whether the model should be brought back at once."""
        forced, self.by_force = self.by_force, False
        self.untold = failure
        self._count = 0 if forced else self._count + 1
        return self._count <= _MOST

    def note_success(self) -> None:
        """Take note that the engine has done what the user asked for."""
        self._count = 0

    def take_untold(self) -> Failure | None:
        """The failure to tell now, once."""
        failure, self.untold = self.untold, None
        return failure


def describe_loss(graph: RuntimeGraph | None, lost: EngineLost, *, stopped: bool) -> Failure:
    """Say which operator and library were at work, and what was done.

    Parameters
    ----------
    graph : RuntimeGraph or None
        That the engine had.
    lost : EngineLost
    stopped : bool
        Whether the user has ended what took too long.
    """
    activity = lost.activity
    operator, library = "", ""
    if graph is not None and activity is not None:
        known = any(each.name == activity.operator for each in graph.operators)
        operator = activity.operator if known else ""
        library = activity.library
    if stopped:
        title = f"{operator or 'What was under way'} was stopped"
        reason = "It did not end by itself, so the engine was started anew."
        return Failure(title, reason, operator=operator)
    if not operator:
        hint = "It was started anew, and the model is where it was before."
        return Failure("The engine ended", f"{capitalized(lost.reason)}.", hint)
    hint = "The engine was started anew, and the model stands before this operator."
    if _is_to_blame(lost):
        hint = f"{library} does not compute this operator from now on. {hint}"
    reason = f"{capitalized(lost.reason)}, while {library} computed it."
    return Failure(f"The engine ended in {operator}", reason, hint, operator)


def exclude_kernel(graph: RuntimeGraph, lost: EngineLost) -> None:
    """Keep a library that ended the engine away from these operators of this model."""
    # What knows the libraries is large, and seldom needed here.
    from engine.exclusions import ExclusionCache, model_key, operators_at_work

    key = model_key(graph.file)
    if key is not None and lost.activity is not None and _is_to_blame(lost):
        operators = operators_at_work(graph, lost.activity)
        ExclusionCache().remember(key, operators, lost.activity.library)


def _is_to_blame(lost: EngineLost) -> bool:
    """Whether a library is at fault which NumPy can stand in for."""
    return lost.is_fault and lost.activity is not None and lost.activity.library != "numpy"
