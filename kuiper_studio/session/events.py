"""The frozen values that cross threads or reach the views."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping
    from datetime import datetime
    from pathlib import Path

    from engine.dump import DumpOptions
    from engine.inputs import ImageOptions, InputSource
    from engine.layers import LayerFile
    from engine.runtime import RuntimeGraph
    from engine.self_check import SelfCheck
    from engine.session import SessionState, StepRecord
    from engine.shapes import InputShapes
    from engine.store import StepOutputs
    from engine.values import Array, Value

__all__ = [
    "CloseRequest",
    "ExportRequest",
    "Failure",
    "Fed",
    "FeedRequest",
    "FilesNotice",
    "LayersLoaded",
    "LoadLayersRequest",
    "LogEntry",
    "LookedRequest",
    "MemoryRequest",
    "OpenRequest",
    "Opened",
    "Progress",
    "RecallRequest",
    "Recalled",
    "ReseedRequest",
    "Reseeded",
    "RestartRequest",
    "RunEnded",
    "RunRequest",
    "RunState",
    "SelfCheckRequest",
    "SelfChecked",
    "StepBackRequest",
    "Stepped",
    "SuppliesChanged",
    "Supply",
    "SupplyRequest",
    "WithdrawRequest",
    "WorkFailed",
]


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
class Progress:
    """Long work under way.

    Attributes
    ----------
    label : str
        What is done, for the status bar.
    done, total : int
        `total` 0 means that the end is not known.
    """

    label: str
    done: int = 0
    total: int = 0


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
    """What went wrong, for the banner.

    Attributes
    ----------
    title, reason, hint : str
        One sentence each; `hint` says what to do and may be empty.
    operator : str
        Name of the operator that failed; ``""`` where none did.
    suspect : str
        Name of the operator where the cause may lie; ``""`` where nothing points to one.
    layer_file : Path or None
        The user's file of layers that is wrong, where one is.
    reload : bool
        Whether opening the model anew may help.
    """

    title: str
    reason: str
    hint: str = ""
    operator: str = ""
    suspect: str = ""
    layer_file: Path | None = None
    reload: bool = False


@dataclass(frozen=True, slots=True)
class FilesNotice:
    """The files of the open model are others by now, for its banner.

    Attributes
    ----------
    title, text : str
        A sentence each.
    can_reload : bool
        Whether the files are there.
    """

    title: str
    text: str
    can_reload: bool


@dataclass(frozen=True, slots=True)
class Supply:
    """A file that stands for what operands would hold.

    Attributes
    ----------
    operands : tuple of str
        Outputs of one operator.
    source : InputSource
        Their arrays: an ``.npy``, or an ``.npz``.
    """

    operands: tuple[str, ...]
    source: InputSource


# Requests: session to worker


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """Open a pair.

    Attributes
    ----------
    param : Path
        The ``.param``, the ``.bin``, or their folder.
    kernels_from : Path or None
        A dump, whose kernels compute the model instead of the backend.
    seed : int or None
        None for that of the dump.
    """

    run_id: int
    param: Path
    bin: Path | None
    backend: str
    kernels_from: Path | None
    seed: int | None
    memory: MemoryRequest


@dataclass(frozen=True, slots=True)
class CloseRequest:
    """Let go of the model and its values. Has no answer."""


@dataclass(frozen=True, slots=True)
class MemoryRequest:
    """Keep at most so many bytes of values, and refuse what needs more. Has no answer.

    Attributes
    ----------
    limit : int or None
        None to keep all.
    bound : int or None
        None for half of the machine's memory.
    """

    limit: int | None
    bound: int | None


@dataclass(frozen=True, slots=True, eq=False)
class RecallRequest:
    """Compute values again that were dropped.

    Attributes
    ----------
    operand : str
        The one that is wanted.
    outputs : StepOutputs
        What it was computed with.
    cancel : threading.Event
        Set by the GUI thread to stop between operators.
    """

    operand: str
    outputs: StepOutputs = field(repr=False)
    cancel: threading.Event = field(repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class LookedRequest:
    """Take note that somebody looks at values, which are dropped last then. Has no answer."""

    outputs: StepOutputs = field(repr=False)


@dataclass(frozen=True, slots=True)
class LoadLayersRequest:
    """Run the user's files of layers, in order, up to the first that is wrong."""

    run_id: int
    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class FeedRequest:
    """Load the sources and feed them; the session goes to the start."""

    run_id: int
    sources: Mapping[str, InputSource]
    options: ImageOptions
    shapes: InputShapes


@dataclass(frozen=True, slots=True)
class SupplyRequest:
    """Use files instead of what operators would compute; the session goes back to them."""

    run_id: int
    supplies: tuple[Supply, ...]


@dataclass(frozen=True, slots=True)
class WithdrawRequest:
    """Have operands computed again that were supplied."""

    run_id: int
    operands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReseedRequest:
    """Take another seed; the session goes back to the first operator that draws by it."""

    run_id: int
    seed: int


@dataclass(frozen=True, slots=True)
class RestartRequest:
    """Go to the first operator."""

    run_id: int


@dataclass(frozen=True, slots=True)
class StepBackRequest:
    """Undo the last step."""

    run_id: int


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Run some operators.

    Attributes
    ----------
    steps : int or None
        How many at most; None for no limit.
    until : str or None
        Name of the operator to stop before.
    breakpoints : frozenset of str
        Names of operators to stop before, unless the run begins there.
    cancel : threading.Event
        Set by the GUI thread to stop between operators.
    """

    run_id: int
    steps: int | None
    until: str | None
    breakpoints: frozenset[str]
    cancel: threading.Event = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """Write a dump of what has been computed."""

    run_id: int
    path: Path
    options: DumpOptions
    cancel: threading.Event = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class SelfCheckRequest:
    """Compare every backend with NumPy on the present model and inputs."""

    run_id: int
    tolerance: float
    cancel: threading.Event = field(repr=False, compare=False)


# Responses: worker to session


@dataclass(frozen=True, slots=True)
class Opened:
    """A model is open.

    Attributes
    ----------
    kernels : mapping of str to str
        Those of a dump that it is computed by, by operator; empty without one.
    seed : int
        What its session draws by.
    """

    run_id: int
    graph: RuntimeGraph
    seconds: float
    kernels: Mapping[str, str]
    seed: int


@dataclass(frozen=True, slots=True)
class LayersLoaded:
    """The user's files of layers have been run."""

    run_id: int
    files: tuple[LayerFile, ...]


@dataclass(frozen=True, slots=True)
class Fed:
    """The inputs are in place, and the session stands at the start."""

    run_id: int
    values: Mapping[str, Array] = field(repr=False)


@dataclass(frozen=True, slots=True)
class SuppliesChanged:
    """Operands were supplied or taken back.

    Attributes
    ----------
    supplied : mapping of str to str
        All that are supplied now, and where each comes from.
    state : SessionState
    position : int
        Where the session stands now; what was computed from there on is gone.
    """

    run_id: int
    supplied: Mapping[str, str]
    state: SessionState
    position: int


@dataclass(frozen=True, slots=True)
class Reseeded:
    """The session has another seed.

    Attributes
    ----------
    graph : RuntimeGraph
        The session's.
    state : SessionState
    position : int
        Where the session stands now; what was computed from there on is gone.
    """

    run_id: int
    graph: RuntimeGraph
    state: SessionState
    position: int


@dataclass(frozen=True, slots=True)
class Stepped:
    """Operators have been executed."""

    run_id: int
    records: tuple[StepRecord, ...]
    position: int


@dataclass(frozen=True, slots=True)
class RunEnded:
    """A run, restart or export has come to its end."""

    run_id: int
    state: SessionState
    position: int
    text: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Recalled:
    """Answer to a `RecallRequest`.

    Attributes
    ----------
    operand : str
    outputs : StepOutputs
    values : mapping of str to Value, or None
        None where they were not computed.
    reason : str
        Why they cannot be; ``""`` where they could, or were cancelled.
    """

    operand: str
    outputs: StepOutputs = field(repr=False)
    values: Mapping[str, Value] | None = field(default=None, repr=False)
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SelfChecked:
    """A self-check has come to its end, or was cancelled."""

    run_id: int
    found: SelfCheck
    state: SessionState


@dataclass(frozen=True, slots=True)
class WorkFailed:
    """A request failed.

    Attributes
    ----------
    error : Exception
    record : StepRecord or None
        Of the operator that failed, where one did.
    state : SessionState or None
        Where the engine's session stands now.
    position : int
    """

    run_id: int
    error: Exception
    record: StepRecord | None = None
    state: SessionState | None = None
    position: int = 0
