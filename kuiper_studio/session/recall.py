"""Which values are computed again that a memory limit has dropped, and in which order."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from kuiper_studio.session.events import RecallRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.store import StepOutputs
    from engine.values import Value
    from kuiper_studio.session.events import Recalled

__all__ = ["Recall"]

_CANCELLED: Final = "Computing it again was cancelled; select it anew to see it."


class Recall:
    """The values that views want to see, of which the engine computes one after the other.

    What the user looks at comes first, and stays at hand as long as it is looked at. Views
    that go through many values find each at hand when it has just been computed.
    """

    def __init__(self) -> None:
        self._wanted: OrderedDict[StepOutputs, str] = OrderedDict()
        self._refused: dict[StepOutputs, str] = {}
        self._looked: tuple[StepOutputs, Mapping[str, Value]] | None = None
        self._latest: tuple[StepOutputs, Mapping[str, Value]] | None = None
        self._current: RecallRequest | None = None

    @property
    def current(self) -> str:
        """The operand that is being computed again; ``""`` for none."""
        return self._current.operand if self._current is not None else ""

    def values(self, outputs: StepOutputs) -> Mapping[str, Value] | None:
        """Values that are at hand; None while they are dropped."""
        kept: Mapping[str, Value] | None = outputs.fetch_resident()
        if kept is None:
            for known in (self._looked, self._latest):
                if known is not None and known[0] is outputs:
                    return known[1]
        return kept

    def why_not(self, outputs: StepOutputs) -> str:
        """Why values are not computed again; ``""`` where they are or will be."""
        return self._refused.get(outputs, "")

    def look(self, operand: str, outputs: StepOutputs) -> None:
        """Want to see a value now, before all others."""
        values = self.values(outputs)
        if values is not None:
            self._looked = outputs, values
        elif outputs not in self._refused:
            self._want(operand, outputs)
            if outputs in self._wanted:
                self._wanted.move_to_end(outputs, last=False)

    def want(self, operand: str, outputs: StepOutputs) -> None:
        """Want to see a value when nothing else is to be done."""
        if self.values(outputs) is None and outputs not in self._refused:
            self._want(operand, outputs)

    def _want(self, operand: str, outputs: StepOutputs) -> None:
        if self._current is None or self._current.outputs is not outputs:
            self._wanted.setdefault(outputs, operand)

    def next(self, is_current: Callable[[str, StepOutputs], bool]) -> RecallRequest | None:
        """What to ask the engine for; None while it is at it, and when nothing is wanted.

        Parameters
        ----------
        is_current : callable
            Whether outputs still belong to the present pass.
        """
        while self._current is None and self._wanted:
            outputs, operand = self._wanted.popitem(last=False)
            if is_current(operand, outputs) and self.values(outputs) is None:
                self._current = RecallRequest(operand, outputs, threading.Event())
                return self._current
        return None

    def pause(self) -> None:
        """Let the engine do something else first."""
        if self._current is not None:
            self._current.cancel.set()

    def cancel(self) -> tuple[str, ...]:
        """Compute nothing of what is wanted; returns what is not even begun."""
        if self._current is not None:
            self._refused[self._current.outputs] = _CANCELLED
        self._refused.update(dict.fromkeys(self._wanted, _CANCELLED))
        waiting = tuple(self._wanted.values())
        self._wanted.clear()
        self.pause()
        return waiting

    def try_again(self, outputs: StepOutputs) -> None:
        """Forget why values were not computed again, and that anything was cancelled."""
        self._refused.pop(outputs, None)
        for each in [o for o, reason in self._refused.items() if reason == _CANCELLED]:
            del self._refused[each]

    def take(self, answer: Recalled) -> None:
        """Take in what the engine has computed, or why it has not."""
        outputs, self._current = answer.outputs, None
        if answer.values is not None:
            self._latest = outputs, answer.values
        elif answer.reason:
            self._refused[outputs] = answer.reason
        elif outputs not in self._refused:  # it had to do something else first
            self._wanted[outputs] = answer.operand
            self._wanted.move_to_end(outputs, last=False)

    def forget(self) -> None:
        """Let go of everything: the values of the pass are gone."""
        self._wanted.clear()
        self._refused.clear()
        self._looked = self._latest = None
        self.pause()
