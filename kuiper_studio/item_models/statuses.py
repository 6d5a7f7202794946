"""The status of an operator as views show it, and one table of their texts and colours.

Graph, operators table, timeline, properties and tool tips read it. The status bar reads the
table of run states beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from engine.states import OperatorStatus
from kuiper_studio.session import RunState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kuiper_studio.session import Record, StudioSession

__all__ = [
    "BY_SEVERITY",
    "DISPLAY_STATUS",
    "NONFINITE",
    "PROBLEMS",
    "QUIET",
    "STATUS_LOOKS",
    "DisplayStatus",
    "RunLook",
    "StatusLook",
    "operator_status",
    "recorded_statuses",
    "run_look",
]


class DisplayStatus(IntEnum):
    """Status of an operator as views show it; an integer, so that arrays can hold it.

    PLAIN: in a drawing of the model without a run.
    """

    PENDING = 0
    EXECUTED = 1
    FAILED = 2
    BLOCKED = 3
    UNSUPPORTED = 4
    CURRENT = 5
    SUPPLIED = 6
    PLAIN = 7


@dataclass(frozen=True, slots=True)
class StatusLook:
    """Text, colours and icon of a status.

    Attributes
    ----------
    text : str
        One to three words, capitalised.
    token : str
        Colour of its mark.
    icon : str
        Name of its mark, both as an icon and as a glyph of the graph; ``""`` for none.
    text_token : str
        Colour of its text.
    detail : str
        Text of the tool tip; `text` if it says no more.
    word : str
        Its word in the operators' filter, as in ``state:next``.
    size : int
        Side of its icon in tables, in logical pixels.
    """

    text: str
    token: str
    icon: str
    text_token: str
    detail: str
    word: str
    size: int = 13


STATUS_LOOKS: Final[Mapping[DisplayStatus, StatusLook]] = MappingProxyType({
    DisplayStatus.CURRENT: StatusLook(
        "Next to run", "cur", "play-filled", "cur", "next to run", "next"),
    DisplayStatus.EXECUTED: StatusLook(
        "Executed", "done", "check", "done", "executed", "run"),
    DisplayStatus.PENDING: StatusLook(
        "Pending", "ctl", "pending", "text2", "pending", "pending", 12),
    DisplayStatus.FAILED: StatusLook(
        "Failed", "fail", "cross", "fail", "failed", "failed", 12),
    DisplayStatus.BLOCKED: StatusLook(
        "Blocked", "ctl", "pending", "text2", "blocked: an input was not computed", "blocked",
        12),
    DisplayStatus.UNSUPPORTED: StatusLook(
        "Cannot run", "unsup", "unsupported", "unsup", "cannot run", "unsupported"),
    DisplayStatus.SUPPLIED: StatusLook(
        "Supplied", "edit", "supply", "edit", "supplied by you", "supplied"),
    DisplayStatus.PLAIN: StatusLook("", "ctl", "", "text2", "", ""),
})  # fmt: skip

# Beside the status: an output is known to hold NaN or Inf.
NONFINITE: Final = StatusLook(
    "Holds NaN or Inf", "nan", "warning", "nan", "holds NaN or Inf", "nonfinite"
)

DISPLAY_STATUS: Final[Mapping[OperatorStatus, DisplayStatus]] = MappingProxyType(
    {status: DisplayStatus[status.name] for status in OperatorStatus}
)
# Of the operators of a closed group the last of these is shown.
BY_SEVERITY: Final = (
    DisplayStatus.EXECUTED,
    DisplayStatus.SUPPLIED,
    DisplayStatus.CURRENT,
    DisplayStatus.PENDING,
    DisplayStatus.BLOCKED,
    DisplayStatus.UNSUPPORTED,
    DisplayStatus.FAILED,
    DisplayStatus.PLAIN,
)
PROBLEMS: Final = frozenset(
    {DisplayStatus.FAILED, DisplayStatus.UNSUPPORTED, DisplayStatus.BLOCKED}
)
# Not yet reached, or never: the name has the quieter colour.
QUIET: Final = frozenset({DisplayStatus.PENDING, DisplayStatus.BLOCKED})


# Looking up an enum member takes longer than the rest of a query.
_EXECUTED: Final = OperatorStatus.EXECUTED
_SHOWN_EXECUTED: Final = DisplayStatus.EXECUTED


@dataclass(frozen=True, slots=True)
class RunLook:
    """Text, colour and icon of a run state in the status bar.

    Attributes
    ----------
    text, token, icon : str
    """

    text: str
    token: str
    icon: str = ""


_RUN_LOOKS: Final[Mapping[RunState, RunLook]] = MappingProxyType({
    RunState.EMPTY: RunLook("Ready", "text2"),
    RunState.LOADING: RunLook("Opening", "text2"),
    RunState.NEED_INPUT: RunLook("Needs an input", "warn", "image"),
    RunState.READY: RunLook("Ready", "done", "play"),
    RunState.STOPPED: RunLook("Stopped", "cur", "pause"),
    RunState.RUNNING: RunLook("Running", "focus", "continue"),
    RunState.FINISHED: RunLook("Finished", "done", "check"),
    RunState.FAILED: RunLook("Failed", "fail", "warning"),
})  # fmt: skip


# At the end, where some operators were passed by.
_FINISHED_IN_PART: Final = RunLook("Finished in part", "warn", "warning")


def run_look(session: StudioSession) -> RunLook:
    """How the state of the run looks; a warning at the end of one that passed some by."""
    if session.state is RunState.FINISHED and session.skipped:
        return _FINISHED_IN_PART
    return _RUN_LOOKS[session.state]


def operator_status(session: StudioSession, operator: str) -> DisplayStatus:
    """Return the status of an operator; of several that apply, the most important."""
    status = session.status(operator)
    if status is OperatorStatus.FAILED:
        return DisplayStatus.FAILED
    if session.is_current(operator):
        return DisplayStatus.CURRENT
    if status is OperatorStatus.EXECUTED:
        record = session.record(operator)
        if record is not None and record.overrides:
            return DisplayStatus.SUPPLIED
    return DISPLAY_STATUS[status]


def recorded_statuses(records: Iterable[Record]) -> list[DisplayStatus]:
    """Return what many records say of their operators; not which of them runs next."""
    return [
        _SHOWN_EXECUTED if record.status is _EXECUTED else DISPLAY_STATUS[record.status]
        for record in records
    ]
