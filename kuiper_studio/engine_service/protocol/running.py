"""Messages that open a model, feed it and run it, and what the engine reports of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from engine.layers import LayerFile
    from engine.layers.notes import OperatorNote
    from engine.runtime.description import GraphDescription
    from engine.states import SessionState
    from engine.values import Value
    from kuiper_studio.engine_service.protocol.sessions import (
        Model,
        Plan,
        Record,
        Status,
        Supply,
    )

__all__ = [
    "CancelRequest",
    "CloseRequest",
    "Done",
    "FaultNote",
    "FaultsFound",
    "FeedRequest",
    "LayersLoaded",
    "LoadLayersRequest",
    "MemoryRequest",
    "NotesRead",
    "OpenRequest",
    "Opened",
    "ReseedRequest",
    "RestartRequest",
    "RunRequest",
    "StepBackRequest",
    "Stepped",
    "SupplyRequest",
    "Tuned",
    "TuningRequest",
    "UnloadLayersRequest",
    "WeightsKept",
    "WithdrawRequest",
    "WorkFailed",
]


class MemoryRequest(NamedTuple):
    """Set the memory limit and the memory bound. Has no reply.

    Attributes
    ----------
    limit : int or None
        In bytes; None for no limit.
    bound : int or None
        In bytes; None for half of the machine's memory.
    """

    limit: int | None
    bound: int | None


class TuningRequest(NamedTuple):
    """Allow the engine to tune kernels while it rests, or not. Has no reply.

    Attributes
    ----------
    allowed : bool
    """

    allowed: bool


class OpenRequest(NamedTuple):
    """Open a model, feed it and run it to the requested operator.

    `Opened` is sent as soon as the model is open. If that fails, the previous model stays open.

    Attributes
    ----------
    model : Model
    plan : Plan
    seed : int or None
        None for the dump's seed.
    memory : MemoryRequest
    keeps_place : bool
        Whether to run to the current position of the engine's session instead of the plan's.
    tunes : bool
        See `TuningRequest`.
    """

    run_id: int
    model: Model
    plan: Plan
    seed: int | None
    memory: MemoryRequest
    keeps_place: bool = False
    tunes: bool = True


class CloseRequest(NamedTuple):
    """Close the model and drop its values."""

    run_id: int


class CancelRequest(NamedTuple):
    """Stop runs between operators; their replies are as at a normal end.

    Attributes
    ----------
    run_id : int
        Number of the last request to stop.
    opening : int
        Number of a request to open a model, which is skipped if it has not begun; 0 for none.
    ticket : int
        Ticket of the last value that is not to be recomputed.
    """

    run_id: int = 0
    opening: int = 0
    ticket: int = 0


class LoadLayersRequest(NamedTuple):
    """Run layer files, in order, up to the first that fails."""

    run_id: int
    paths: tuple[Path, ...]


class UnloadLayersRequest(NamedTuple):
    """Unload all layer files."""

    run_id: int


class FeedRequest(NamedTuple):
    """Feed the model; the session goes to the start and clears overrides."""

    run_id: int
    plan: Plan


class SupplyRequest(NamedTuple):
    """Override outputs of an operator by files; the session goes back to it.

    Attributes
    ----------
    supply : Supply
    steps_over : bool
        Whether to step over the operator then, if it is the next one.
    """

    run_id: int
    supply: Supply
    steps_over: bool = False


class WithdrawRequest(NamedTuple):
    """Clear overrides of operands."""

    run_id: int
    operands: tuple[str, ...]


class ReseedRequest(NamedTuple):
    """Set the random seed; the session goes back to the first random operator."""

    run_id: int
    seed: int


class RestartRequest(NamedTuple):
    """Go to the first operator."""

    run_id: int


class StepBackRequest(NamedTuple):
    """Undo the last step, or the failed one."""

    run_id: int


class RunRequest(NamedTuple):
    """Run operators, if any can run.

    Attributes
    ----------
    steps : int or None
        Largest number; None for no limit.
    until : str or None
        Name of the operator to stop before.
    breakpoints : frozenset of str
        Names of operators to stop before, unless the run begins there.
    """

    run_id: int
    steps: int | None
    until: str | None
    breakpoints: frozenset[str]


@dataclass(frozen=True, slots=True)
class Opened:
    """A model is open, but not fed yet.

    Attributes
    ----------
    graph : GraphDescription
    seconds : float
        Time to open it.
    state : SessionState
        NEED_INPUT, or READY for a model without inputs.
    kernels : mapping of str to str
        Kernels of the dump in use, by operator; empty without one.
    kernel_texts : mapping of str to str
        Description of each kernel.
    seed : int
        The random seed of its session.
    is_kept : bool
        Whether all its weights stay available when the files change.
    """

    run_id: int
    graph: GraphDescription = field(repr=False)
    seconds: float
    state: SessionState
    kernels: Mapping[str, str]
    kernel_texts: Mapping[str, str]
    seed: int
    is_kept: bool


@dataclass(frozen=True, slots=True)
class NotesRead:
    """Notes on the operator types of a model.

    Attributes
    ----------
    generation : int
        Of the model.
    notes : mapping of str to OperatorNote
        By type.
    """

    generation: int
    notes: Mapping[str, OperatorNote] = field(repr=False)


class FaultNote(NamedTuple):
    """A fault of the export, as text; see `engine.runtime.export_faults.ExportFault`.

    Attributes
    ----------
    operator : str
        Its name.
    what, remedy : str
        What is wrong, and how to export correctly; in lower case.
    sentence : str
        All of it, with the line of the file.
    certain : bool
    """

    operator: str
    what: str
    remedy: str
    sentence: str
    certain: bool


class FaultsFound(NamedTuple):
    """Faults of the export that the file of a model itself shows.

    Attributes
    ----------
    generation : int
        Of the model.
    faults : tuple of FaultNote
        In order of execution.
    """

    generation: int
    faults: tuple[FaultNote, ...]


class WeightsKept(NamedTuple):
    """All weights of a model are read or copied."""

    generation: int


class Tuned(NamedTuple):
    """How far the engine has tuned kernels, which it does while nothing is asked for.

    Attributes
    ----------
    generation : int
    done, total : int
        Operators; equal when the next inputs use what was fastest.
    wrong : tuple of str
        Kernels that computed, and that differ from NumPy.
    """

    generation: int
    done: int
    total: int
    wrong: tuple[str, ...] = ()


class LayersLoaded(NamedTuple):
    """Layer files were loaded.

    Attributes
    ----------
    files : tuple of LayerFile
        Files of the request.
    all : tuple of LayerFile
        All loaded files.
    """

    run_id: int
    files: tuple[LayerFile, ...]
    all: tuple[LayerFile, ...]


@dataclass(frozen=True, slots=True)
class Stepped:
    """Operators have been executed.

    Attributes
    ----------
    records : tuple of Record
    position : int
        Index of the operator that runs next.
    values : mapping of str to Value
        The value that the window shows next: the first output of the last operator, or its
        first input if it has no output.
    """

    run_id: int
    records: tuple[Record, ...]
    position: int
    values: Mapping[str, Value] = field(default_factory=dict, repr=False)


class Done(NamedTuple):
    """A request has been carried out, or cancelled.

    Attributes
    ----------
    status : Status
    passed_by : tuple of int
        Indexes of operators that a run skipped because they have no layer.
    text : str
        Description of an action that is not visible otherwise.
    stepped : Stepped or None
        The last operators of a run that have not been reported yet.
    """

    run_id: int
    status: Status
    passed_by: tuple[int, ...] = ()
    text: str = ""
    stepped: Stepped | None = None


class WorkFailed(NamedTuple):
    """A request failed.

    Attributes
    ----------
    error : Exception
    status : Status
    record : Record or None
        Record of the failed operator, if any.
    supply : Supply or None
        The override that failed, if any.
    """

    run_id: int
    error: Exception
    status: Status
    record: Record | None = None
    supply: Supply | None = None
