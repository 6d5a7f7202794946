"""Handles the unexpected end of the engine's process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.errors import capitalized
from kuiper_studio.engine_service.protocol import CompareRequest
from kuiper_studio.session.events import Failure

if TYPE_CHECKING:
    from engine.runtime import RuntimeGraph
    from kuiper_studio.engine_service.protocol import Request
    from kuiper_studio.engine_service.transport import EngineLost

__all__ = ["Losses", "blame", "exclude_from_reference"]

_MOST: Final = 2  # consecutive losses after which the model is not reopened automatically


class Losses:
    """Counts consecutive losses of the engine.

    Attributes
    ----------
    by_force : bool
        Whether the window ends the engine because the user stopped its work.
    pending : Failure or None
        Failure to report once the model is back at its position.
    """

    def __init__(self) -> None:
        self.by_force = False
        self.pending: Failure | None = None
        self._count = 0

    def note(self, failure: Failure) -> bool:
        """Count a loss; return whether to reopen the model at once."""
        forced, self.by_force = self.by_force, False
        self.pending = failure
        self._count = 0 if forced else self._count + 1
        return self._count <= _MOST

    def note_success(self) -> None:
        """Reset the count after a request that succeeded."""
        self._count = 0

    def take_pending(self) -> Failure | None:
        """Return the failure to report now, and clear it."""
        failure, self.pending = self.pending, None
        return failure


def blame(
    graph: RuntimeGraph | None, lost: EngineLost, at_work: Request | None, *, stopped: bool
) -> Failure:
    """Describe the loss of the engine, and exclude a library that crashed it.

    Parameters
    ----------
    graph : RuntimeGraph or None
        The engine's graph.
    lost : EngineLost
    at_work : Request or None
        What the engine was carrying out.
    stopped : bool
        Whether the user stopped the work.
    """
    failure = _describe_loss(graph, lost, stopped=stopped)
    reference = at_work.reference if isinstance(at_work, CompareRequest) else None
    if isinstance(reference, Path) and not stopped:
        failure = exclude_from_reference(reference, lost) or failure
    if graph is not None and failure.operator:
        _exclude_kernel(graph, lost)
    return failure


def _describe_loss(graph: RuntimeGraph | None, lost: EngineLost, *, stopped: bool) -> Failure:
    """Describe which operator and library were running, and what the window did.

    Parameters
    ----------
    graph : RuntimeGraph or None
        The engine's graph.
    lost : EngineLost
    stopped : bool
        Whether the user stopped the work.
    """
    activity = lost.activity
    operator, library = "", ""
    if graph is not None and activity is not None:
        known = any(each.name == activity.operator for each in graph.operators)
        operator = activity.operator if known else ""
        library = activity.library
    if stopped:
        title = f"{operator or 'The engine'} was stopped"
        reason = "It did not react, so the engine was restarted."
        return Failure(title, reason, operator=operator)
    if not operator:
        hint = "It was restarted, and the model is back at its position."
        return Failure("The engine ended", f"{capitalized(lost.reason)}.", hint)
    hint = "The engine was restarted, and the model is back at this operator."
    if _is_to_blame(lost):
        hint = f"From now on {library} does not compute this operator. {hint}"
    reason = f"{capitalized(lost.reason)}, while {library} computed it."
    return Failure(f"The engine ended in {operator}", reason, hint, operator)


def _exclude_kernel(graph: RuntimeGraph, lost: EngineLost) -> None:
    """Exclude a library that crashed the engine from these operators of this model."""
    # Imported here, because the backends are large and rarely needed.
    from engine.exclusions import exclude_library

    if lost.activity is not None and _is_to_blame(lost):
        exclude_library(graph, lost.activity)


def exclude_from_reference(reference: Path, lost: EngineLost) -> Failure | None:
    """Exclude a library that crashed the engine in a reference that is a model.

    Returns
    -------
    Failure or None
        None if it was not in the reference.
    """
    from engine.exclusions import exclude_in_reference

    activity = lost.activity
    if activity is None or not _is_to_blame(lost):
        return None
    if not exclude_in_reference(reference, activity):
        return None
    title = f"The engine ended in {activity.operator} of {reference.name}"
    reason = f"{capitalized(lost.reason)}, while {activity.library} computed it."
    hint = f"From now on {activity.library} does not compute this operator. Compare again."
    return Failure(title, reason, hint)


def _is_to_blame(lost: EngineLost) -> bool:
    """Return whether a library crashed that NumPy can replace."""
    return lost.is_fault and lost.activity is not None and lost.activity.library != "numpy"
