"""States of a session and statuses of its operators."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

__all__ = ["ExecutedStep", "OperatorStatus", "SessionState", "StopReason"]


class SessionState(Enum):
    """State of a session.

    Attributes
    ----------
    NEED_INPUT
        `Session.feed` has not been called.
    READY
        At the first operator.
    STOPPED
        Between two operators.
    FINISHED
        All have run.
    FAILED
        An operator failed; `Session.error` says why.
    """

    NEED_INPUT = "need input"
    READY = "ready"
    STOPPED = "stopped"
    FINISHED = "finished"
    FAILED = "failed"


class OperatorStatus(Enum):
    """Status of an operator in a pass.

    Attributes
    ----------
    PENDING
        It has not run yet.
    EXECUTED
        Its outputs have values.
    FAILED
        It raised an error.
    BLOCKED
        An input is missing, because an upstream operator could not run.
    UNSUPPORTED
        It cannot run; `RuntimeOperator.reason` says why.
    """

    PENDING = "pending"
    EXECUTED = "executed"
    FAILED = "failed"
    BLOCKED = "blocked"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True)
class StopReason:
    """Why a run has stopped.

    Attributes
    ----------
    kind : {"end", "step", "breakpoint", "operator", "failed", "cancelled"}
        ``operator`` is the one that the run was to stop before.
    operator : str
        Name of the operator that runs next, or that has failed; ``""`` at the end.
    """

    kind: Literal["end", "step", "breakpoint", "operator", "failed", "cancelled"]
    operator: str = ""


class ExecutedStep:
    """What follows from kernel and seed of a step, for its records in both processes."""

    __slots__ = ()
    kernel: str
    seed: int | None

    @property
    def backend(self) -> str:
        """Backend: ``numpy``, ``onnxruntime``, ``ncnn``, ``supplied``, or ``""``."""
        return self.kernel.partition("/")[0]

    @property
    def random(self) -> bool:
        """Whether it drew random numbers, so that the outputs depend on the seed."""
        return self.seed is not None
