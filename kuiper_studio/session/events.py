"""Frozen values that the session sends to the views."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

__all__ = ["Failure", "FilesNotice", "LogEntry", "RunState"]


class RunState(Enum):
    """What the window is doing with its model."""

    EMPTY = "no model open"
    LOADING = "opening"
    NEED_INPUT = "needs an input"
    READY = "ready"
    STOPPED = "stopped"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One line of the log.

    Attributes
    ----------
    time : datetime
        Local time.
    level : str
        ``info``, ``warning`` or ``error``.
    text : str
    """

    time: datetime
    level: str
    text: str


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure, for the banner.

    Attributes
    ----------
    title, reason, hint : str
        One sentence each; `hint` says what to do and may be empty.
    operator : str
        Name of the operator that failed; ``""`` for none.
    suspect : str
        Name of the operator that may be the cause; ``""`` for none.
    layer_file : Path or None
        The faulty layer file, if any.
    reload : bool
        Whether to offer reloading the model.
    lacks_weights : bool
        Whether to offer choosing a ``.bin``.
    concerns_input : bool
        Whether to offer choosing another input.
    concerns_study : bool
        Whether it is of a comparison or another study, and is outdated when one begins.
    """

    title: str
    reason: str
    hint: str = ""
    operator: str = ""
    suspect: str = ""
    layer_file: Path | None = None
    reload: bool = False
    lacks_weights: bool = False
    concerns_input: bool = False
    concerns_study: bool = False


@dataclass(frozen=True, slots=True)
class FilesNotice:
    """The files of the open model have changed, for the banner.

    Attributes
    ----------
    title, text : str
        A sentence each.
    can_reload : bool
        Whether the files exist.
    """

    title: str
    text: str
    can_reload: bool
