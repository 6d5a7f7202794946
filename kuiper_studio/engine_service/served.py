"""The open model, as the parts of the server share it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from engine.errors import EngineError, SessionStateError
from kuiper_studio.engine_service.channel_totals import RunTotals

if TYPE_CHECKING:
    from engine.pnnx.attribute import WeightArchive
    from engine.runtime import RuntimeGraph
    from engine.session import Session
    from engine.store import StepOutputs
    from kuiper_studio.engine_service.compared_run import ComparedRun
    from kuiper_studio.engine_service.plans import ResolvedPlan

__all__ = ["CancelledError", "Execution", "Served"]


class CancelledError(Exception):
    """The window cancelled the work, or has asked for something more urgent."""


class Execution(NamedTuple):
    """An execution of an operator that was reported."""

    serial: int
    outputs: StepOutputs
    source: bytes  # tells the inputs of the pass from others


class Served:
    """The open model, its session and what the window knows of it.

    Only the thread that works changes it. The thread that answers reads it meanwhile.

    Attributes
    ----------
    graph : RuntimeGraph or None
    session : Session or None
        Of the graph, once it is created.
    generation : int
        Tells the model from those that were open before.
    executions : dict of int to Execution
        By the operator's index.
    source : bytes
        Digest of the inputs.
    plan : ResolvedPlan or None
        What the session is fed with.
    compared : ComparedRun or None
        The last comparison, while it holds.
    totals : RunTotals
        What channels held in all passes.
    uncounted : set of int
        Operators whose channels are not in the totals.
    """

    def __init__(self) -> None:
        self.graph: RuntimeGraph | None = None
        self.session: Session | None = None
        self.generation = 0
        self.executions: dict[int, Execution] = {}
        self.source = b""
        self.plan: ResolvedPlan | None = None
        self.compared: ComparedRun | None = None
        self.totals = RunTotals()
        self.uncounted: set[int] = set()

    @property
    def archive(self) -> WeightArchive | None:
        """Weights of the model."""
        return self.graph.file.archive if self.graph is not None else None

    def opened_session(self) -> Session:
        """Return the session of the open model, or raise."""
        if self.session is None:
            raise EngineError("no model is open")
        return self.session

    def last_compared(self) -> ComparedRun:
        """Return the last comparison, or raise."""
        if self.compared is None:
            raise SessionStateError("nothing has been compared; compare first")
        return self.compared

    def execution_of(self, name: str, serial: int) -> Execution | None:
        """Return the execution that made an operand, if it belongs to the current pass."""
        if self.session is None:
            return None
        operand = self.session.graph.operands.get(name)
        producer = operand.producer if operand is not None else None
        found = self.executions.get(producer.index) if producer is not None else None
        return found if found is not None and found.serial == serial else None

    def evicted(self) -> frozenset[str]:
        """Return the operands of this pass whose values would be computed again."""
        session = self.session
        if session is None or session.memory_limit is None:
            return frozenset()
        present = (each for i, each in self.executions.items() if i < session.position)
        return frozenset(
            name for each in present if each.outputs.resident is None for name in each.outputs
        )

    def count_anew(self) -> None:
        """Forget the totals, because operands will hold something else with the same input.

        What was computed before and still holds is counted again.
        """
        self.totals.clear()
        position = self.session.position if self.session is not None else 0
        self.uncounted = {index for index in self.executions if index < position}

    def let_go(self) -> None:
        """Forget the model."""
        self.graph = self.session = self.compared = None
        self.generation = 0
        self.executions.clear()
        self.source = b""
        self.count_anew()
