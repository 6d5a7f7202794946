"""Where a session and its operators stand."""

from __future__ import annotations

from enum import Enum

__all__ = ["OperatorStatus", "SessionState"]


class SessionState(Enum):
    """Where a session stands."""

    NEED_INPUT = "need input"
    READY = "ready"
    STOPPED = "stopped"
    FINISHED = "finished"
    FAILED = "failed"


class OperatorStatus(Enum):
    """What became of an operator.

    BLOCKED: an input is missing, because an operator upstream could not run.
    """

    PENDING = "pending"
    EXECUTED = "executed"
    FAILED = "failed"
    BLOCKED = "blocked"
    UNSUPPORTED = "unsupported"
