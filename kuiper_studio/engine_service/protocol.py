"""The messages between a window and its engine.

The window sends requests; the engine sends replies and events. All are frozen and can be
pickled.

A request that has a `run_id` is carried out when those before it are, and answered by one reply
with the same number: `Done`, `LayersLoaded`, `SelfChecked`, `Compared`, `Extracted`,
`Simulated` or `WorkFailed`. Before it, `Opened` and `Stepped` may come. Replies say where the
session stands, as a `Status`.
Requests with a `ticket` are answered by an `Answer`, in any order and also while a model runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from engine.attention import Attention
    from engine.axes import Layout
    from engine.comparison import Comparison
    from engine.conversion.records import ConversionOptions
    from engine.dump import DumpOptions
    from engine.inputs import ImageOptions, InputSource
    from engine.layers import LayerFile
    from engine.layers.notes import OperatorNote
    from engine.precision import FormatName, KeptOperators, Simulation
    from engine.provenance.records import GridCell
    from engine.runtime.description import GraphDescription
    from engine.self_check import SelfCheck
    from engine.states import OperatorStatus, SessionState, StopReason
    from engine.values import Value, ValueMetadata
    from kuiper_studio.engine_service.channels import ChannelView

__all__ = [
    "AlignRequest",
    "Answer",
    "AttentionRequest",
    "CancelRequest",
    "CloseRequest",
    "CompareRequest",
    "Compared",
    "CorrectRequest",
    "DistancesWanted",
    "Done",
    "Evicted",
    "ExplainRequest",
    "ExportRequest",
    "ExtractRequest",
    "Extracted",
    "FaultNote",
    "FaultsFound",
    "FeedRequest",
    "FetchRequest",
    "LayersLoaded",
    "LoadLayersRequest",
    "MeaningRequest",
    "MeasureRequest",
    "MemoryRequest",
    "Model",
    "NotesRead",
    "OpenRequest",
    "Opened",
    "OtherRun",
    "Outputs",
    "Plan",
    "PrecisionRequest",
    "PrecisionResult",
    "Progress",
    "Record",
    "ReferenceEntry",
    "ReportRequest",
    "Request",
    "ReseedRequest",
    "RestartRequest",
    "RunRequest",
    "SelfCheckRequest",
    "SelfChecked",
    "Simulated",
    "Status",
    "StepBackRequest",
    "Stepped",
    "Supply",
    "SupplyRequest",
    "TraceRequest",
    "Tuned",
    "TuningRequest",
    "UnloadLayersRequest",
    "WeightRequest",
    "WeightsKept",
    "WithdrawRequest",
    "WorkFailed",
]


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of long work.

    Attributes
    ----------
    label : str
        The work, for the status bar.
    done, total : int
        `total` is 0 if it is unknown.
    """

    label: str
    done: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class Supply:
    """A file that overrides operands.

    Attributes
    ----------
    operands : tuple of str
        Outputs of one operator.
    source : InputSource
        Their arrays: an ``.npy``, or an ``.npz``.
    """

    operands: tuple[str, ...]
    source: InputSource


@dataclass(frozen=True, slots=True)
class Model:
    """A model to open.

    Attributes
    ----------
    path : Path
        The ``.param``, the ``.bin``, their folder, or a TorchScript or ONNX file.
    bin : Path or None
    backend : str
        Name of the backend.
    kernels_from : Path or None
        The dump whose kernels compute it, instead of the backend.
    conversion : ConversionOptions or None
        For a TorchScript or ONNX file; None to ask for sizes that it leaves open.
    ncnn_options : str
        Options for a model of ncnn's own format; see `engine.ncnn.options`.
    """

    path: Path
    bin: Path | None
    backend: str
    kernels_from: Path | None
    conversion: ConversionOptions | None = None
    ncnn_options: str = "exact"


@dataclass(frozen=True, slots=True)
class Plan:
    """Inputs and overrides of a model, and the operator to run to; see `plans.resolve`.

    Attributes
    ----------
    sources : tuple of InputSource
        In the order of the inputs; a single one may be used for all.
    options : ImageOptions or None
        For pictures; None for the defaults.
    shapes : tuple of str
        Sizes of the inputs in the command line's notation.
    supplies : tuple of (str, InputSource) or Supply
        Overrides: with the name of an operand or operator, or with the names of the operands.
    place : str or None
        Operator to run to, ignoring breakpoints; ``""`` for the end, None to stay at the start.
    """

    sources: tuple[InputSource, ...] = ()
    options: ImageOptions | None = None
    shapes: tuple[str, ...] = ()
    supplies: tuple[tuple[str, InputSource] | Supply, ...] = ()
    place: str | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """State of the engine's session.

    Attributes
    ----------
    generation : int
        Number of the request that opened its model; 0 without a model.
    state : SessionState
    position : int
        Index of the next operator, or of the failed one; the number of operators at the end.
        Operators from there on have no values.
    stop : StopReason or None
        Why the run stopped there; None if it has not run.
    fed : mapping of str to tuple of int
        Shapes of the inputs, by operand name; empty while nothing is fed.
    supplied : mapping of str to str
        Sources of overridden operands, by name.
    supplies : tuple of Supply
        The overrides, to repeat them.
    seed : int
        The random seed.
    evicted : frozenset of str
        Operands whose values were evicted.
    """

    generation: int
    state: SessionState
    position: int
    stop: StopReason | None = None
    fed: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    supplied: Mapping[str, str] = field(default_factory=dict)
    supplies: tuple[Supply, ...] = ()
    seed: int = 0
    evicted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Outputs:
    """Metadata of the outputs of one execution of an operator.

    Attributes
    ----------
    serial : int
        Unique number of the execution.
    by_operand : mapping of str to ValueMetadata
        In order.
    """

    serial: int
    by_operand: Mapping[str, ValueMetadata] = field(repr=False)

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_operand)

    def __contains__(self, name: object) -> bool:
        return name in self.by_operand

    def __len__(self) -> int:
        return len(self.by_operand)

    def metadata(self, name: str) -> ValueMetadata:
        """Return the metadata of a value."""
        return self.by_operand[name]


@dataclass(frozen=True, slots=True)
class Record:
    """One executed step; see `engine.runtime.executor.StepRecord`.

    Attributes
    ----------
    index : int
        Position in execution order.
    outputs : Outputs
    seconds : float
        Time in the kernel.
    status : OperatorStatus
    kernel : str
        The backend and, after a slash, its kernel.
    kernel_text : str
        Description of the kernel.
    reason : str
        Why it did not run; ``""`` if it ran.
    overrides : mapping of str to str
        Sources of overridden outputs, by name.
    seed : int or None
        Seed of its random numbers; None if it drew none.
    """

    index: int
    outputs: Outputs = field(repr=False)
    seconds: float
    status: OperatorStatus
    kernel: str = ""
    kernel_text: str = ""
    reason: str = ""
    overrides: Mapping[str, str] = field(default_factory=dict)
    seed: int | None = None

    @property
    def backend(self) -> str:
        """Backend: ``numpy``, ``onnxruntime``, ``ncnn``, ``supplied``, or ``""``."""
        return self.kernel.partition("/")[0]

    @property
    def random(self) -> bool:
        """Whether the outputs depend on the seed."""
        return self.seed is not None

    @property
    def metadata(self) -> tuple[ValueMetadata, ...]:
        """Metadata of the outputs, in order."""
        return tuple(self.outputs.by_operand.values())


# Requests: window to engine


@dataclass(frozen=True, slots=True)
class MemoryRequest:
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


@dataclass(frozen=True, slots=True)
class TuningRequest:
    """Allow the engine to tune kernels while it rests, or not. Has no reply.

    Attributes
    ----------
    allowed : bool
    """

    allowed: bool


@dataclass(frozen=True, slots=True)
class OpenRequest:
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


@dataclass(frozen=True, slots=True)
class CloseRequest:
    """Close the model and drop its values."""

    run_id: int


@dataclass(frozen=True, slots=True)
class CancelRequest:
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


@dataclass(frozen=True, slots=True)
class DistancesWanted:
    """How far the channels of a value are from the reference's.

    Attributes
    ----------
    comparison : int
        Serial number of the comparison.
    view : ChannelView
    limit : float
        Difference up to which elements count as equal.
    """

    comparison: int
    view: ChannelView
    limit: float


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """Send a value, or a summary of it; answered by an `Answer`.

    An evicted value is recomputed as soon as there is no other work; `Evicted` announces it.

    Attributes
    ----------
    ticket : int
    operand : str
    serial : int
        Number of the execution that computed the value.
    what : str
        ``value`` for a `Value`, ``summary`` for a `Summary`, ``distances`` for
        `ChannelDistances`, ``totals`` for `ChannelTotals`.
    wanted : DistancesWanted, ChannelView or None
        Of which channels.
    """

    ticket: int
    operand: str
    serial: int
    what: Literal["value", "summary", "distances", "totals"]
    wanted: DistancesWanted | ChannelView | None = None


@dataclass(frozen=True, slots=True)
class MeasureRequest:
    """Measure what operators gave; answered by an `Answer`, also while a model runs.

    Its result is an array of shape (K, 6), float64: a row of `summary.MEASURES` for each
    operator. A row of NaN is an operator whose values are evicted or of an earlier execution;
    nothing is recomputed.

    Attributes
    ----------
    ticket : int
    executions : tuple of (int, int)
        Index of each operator, and number of its execution.
    """

    ticket: int
    executions: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class ExplainRequest:
    """Say where an element comes from; answered by an `Answer` as soon as the engine rests.

    Attributes
    ----------
    ticket : int
    operand : str
    serial : int
        Number of the execution that computed the value.
    index : tuple of int
    what : str
        ``terms`` for a `Provenance`, ``field`` for a `ReceptiveField`, ``weight`` for an
        `EffectiveWeight`, ``check`` for a `FieldCheck`.
    source : str
        The input whose weight is asked for.
    """

    ticket: int
    operand: str
    serial: int
    index: tuple[int, ...]
    what: Literal["terms", "field", "weight", "check"]
    source: str = ""


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """Follow a place through all operands; answered by an `Answer` as soon as the engine rests.

    Attributes
    ----------
    ticket : int
    operand : str
    serial : int
        Number of the execution that computed the value.
    index : tuple of int
    layouts : dict of str to Layout
        The user's, by operand.
    """

    ticket: int
    operand: str
    serial: int
    index: tuple[int, ...]
    layouts: dict[str, Layout]


@dataclass(frozen=True, slots=True)
class AlignRequest:
    """Lay the picture of an operand over an input; answered by an `Answer`.

    That is done as soon as the engine rests. The result is a `GridAlignment`, or None if the
    picture is none of the input.

    Attributes
    ----------
    ticket : int
    operand : str
    serial : int
        Number of the execution that computed the value.
    source : str
        The input.
    axes : (int, int)
        Its rows and columns.
    cells : tuple of GridCell
        See `engine.provenance.alignment.align_grid`.
    """

    ticket: int
    operand: str
    serial: int
    source: str
    axes: tuple[int, int]
    cells: tuple[GridCell, ...]


@dataclass(frozen=True, slots=True)
class AttentionRequest:
    """Compute the weights of an attention; answered by an `Answer`.

    That is done as soon as there is no other work. The result is an `AttentionScores`, or the
    rollout of several blocks: an array of shape (T, T), or of (T, rows, columns) for a window.

    Attributes
    ----------
    ticket : int
    attention : Attention
    serial : int
        Number of the execution that computed its output.
    heads : int
        Number of its heads; 0 if it is not known.
    sample, query : int
        What is looked at; see `engine.attention.results.Place`.
    blocks : tuple of (Attention, int)
        Those of a rollout and their heads; empty for weights.
    of_windows : bool
        Whether the rollout is over a picture of which the blocks see windows.
    """

    ticket: int
    attention: Attention
    serial: int
    heads: int = 0
    sample: int = 0
    query: int = 0
    blocks: tuple[tuple[Attention, int], ...] = ()
    of_windows: bool = False

    @property
    def operand(self) -> str:
        """The output of the attention."""
        return self.attention.output


@dataclass(frozen=True, slots=True)
class MeaningRequest:
    """Read the outputs of the model; answered by an `Answer`.

    That is done as soon as there is no other work. The result is an
    `engine.output_reading.Meaning`.

    Attributes
    ----------
    ticket : int
    operand : str
        The first output.
    serials : tuple of int
        Numbers of the executions that computed the outputs.
    reading : str
        Name of a reading; ``""`` for the one that fits best.
    options : tuple of (str, value)
        Of the reading, by name.
    labels : tuple of str
        Names of classes.
    sample : int
        Which one of the batch.
    """

    ticket: int
    operand: str
    serials: tuple[int, ...]
    reading: str = ""
    options: tuple[tuple[str, float | int | str], ...] = ()
    labels: tuple[str, ...] = field(default=(), repr=False)
    sample: int = 0

    @property
    def serial(self) -> int:
        """Number of the execution that computed the first output."""
        return self.serials[0]


@dataclass(frozen=True, slots=True)
class WeightRequest:
    """Send the bytes of a weight; answered by an `Answer` with an array of uint8.

    Attributes
    ----------
    ticket : int
    generation : int
        Generation of its model; the engine may have opened another one meanwhile.
    offset, nbytes : int
        Position and size in the ``.bin``.
    """

    ticket: int
    generation: int
    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class LoadLayersRequest:
    """Run layer files, in order, up to the first that fails."""

    run_id: int
    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class UnloadLayersRequest:
    """Unload all layer files."""

    run_id: int


@dataclass(frozen=True, slots=True)
class FeedRequest:
    """Feed the model; the session goes to the start and clears overrides."""

    run_id: int
    plan: Plan


@dataclass(frozen=True, slots=True)
class SupplyRequest:
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


@dataclass(frozen=True, slots=True)
class WithdrawRequest:
    """Clear overrides of operands."""

    run_id: int
    operands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReseedRequest:
    """Set the random seed; the session goes back to the first random operator."""

    run_id: int
    seed: int


@dataclass(frozen=True, slots=True)
class RestartRequest:
    """Go to the first operator."""

    run_id: int


@dataclass(frozen=True, slots=True)
class StepBackRequest:
    """Undo the last step, or the failed one."""

    run_id: int


@dataclass(frozen=True, slots=True)
class RunRequest:
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
class ExportRequest:
    """Write a dump of the computed values."""

    run_id: int
    path: Path
    options: DumpOptions


@dataclass(frozen=True, slots=True)
class SelfCheckRequest:
    """Compare every backend with NumPy on the current model and inputs."""

    run_id: int
    tolerance: float


@dataclass(frozen=True, slots=True)
class OtherRun:
    """Another run of the open model.

    Attributes
    ----------
    backend : str
        Name of the backend.
    seed : int
        The random seed.
    plan : Plan or None
        Its inputs; None for those of the session, with its overrides.
    """

    backend: str
    seed: int
    plan: Plan | None = None

    @property
    def name(self) -> str:
        """What it is, for messages."""
        given = ", ".join(source.text for source in self.plan.sources) if self.plan else ""
        inputs = f", input {given}" if given else ""
        return f"another run ({self.backend}, seed {self.seed}{inputs})"


@dataclass(frozen=True, slots=True)
class CompareRequest:
    """Compare the model and its inputs with a reference; answered by `Compared`.

    Attributes
    ----------
    reference : Path or OtherRun
        What `engine.open_reference` opens, or another run of the model.
    tolerance : float or None
        For float32, relative to the reference's largest element; None for the default.
    """

    run_id: int
    reference: Path | OtherRun
    tolerance: float | None = None


@dataclass(frozen=True, slots=True)
class CorrectRequest:
    """Compare again with the same reference and other matches by hand; answered by `Compared`.

    Attributes
    ----------
    corrections : mapping of str to str or None
        All matches by hand: by operand, the key of the reference's tensor, or None for an
        operand that the reference does not have.
    undoes : bool
        Whether they are those from before the last correction.
    """

    run_id: int
    corrections: Mapping[str, str | None]
    undoes: bool = False


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """Write the last comparison as a page of HTML."""

    run_id: int
    path: Path


@dataclass(frozen=True, slots=True)
class ExtractRequest:
    """Write operators as a model of their own; answered by `Extracted`.

    Attributes
    ----------
    operators : tuple of str
        Names, types or execution indexes, with ``*`` and ``?``.
    path : Path
        Of the folder.
    expects_reference : bool
        Whether the tensors of the last comparison's reference are expected, not ours.
    overwrites : bool
        Whether to replace what is a reproducer already.
    """

    run_id: int
    operators: tuple[str, ...]
    path: Path
    expects_reference: bool = False
    overwrites: bool = False


@dataclass(frozen=True, slots=True)
class PrecisionRequest:
    """Simulate formats of lower precision; answered by `Simulated`.

    Attributes
    ----------
    formats : tuple of str
        See `engine.precision`.
    wanted_error : float or None
        For which operators to keep in float32 are chosen; None to choose none.
    """

    run_id: int
    formats: tuple[FormatName, ...]
    wanted_error: float | None = None


Request: TypeAlias = (
    OpenRequest
    | CloseRequest
    | CancelRequest
    | MemoryRequest
    | TuningRequest
    | FetchRequest
    | MeasureRequest
    | ExplainRequest
    | TraceRequest
    | AlignRequest
    | AttentionRequest
    | MeaningRequest
    | WeightRequest
    | LoadLayersRequest
    | UnloadLayersRequest
    | FeedRequest
    | SupplyRequest
    | WithdrawRequest
    | ReseedRequest
    | RestartRequest
    | StepBackRequest
    | RunRequest
    | ExportRequest
    | SelfCheckRequest
    | CompareRequest
    | CorrectRequest
    | ReportRequest
    | ExtractRequest
    | PrecisionRequest
)

# Replies: engine to window


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


@dataclass(frozen=True, slots=True)
class FaultNote:
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


@dataclass(frozen=True, slots=True)
class FaultsFound:
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


@dataclass(frozen=True, slots=True)
class WeightsKept:
    """All weights of a model are read or copied."""

    generation: int


@dataclass(frozen=True, slots=True)
class Tuned:
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


@dataclass(frozen=True, slots=True)
class LayersLoaded:
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


@dataclass(frozen=True, slots=True)
class Done:
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


@dataclass(frozen=True, slots=True)
class Evicted:
    """The value of a `FetchRequest` was evicted; it is recomputed before the answer.

    Attributes
    ----------
    ticket : int
        Of the request.
    """

    ticket: int


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """Answer to a request with a ticket.

    Attributes
    ----------
    ticket : int
    result : object
        The requested value.
    found : bool
        Whether it exists.
    reason : str
        Why it does not; ``""`` if it does, or if it was cancelled.
    """

    ticket: int
    result: object = field(default=None, repr=False)
    found: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SelfChecked:
    """A self-check ended or was cancelled."""

    run_id: int
    found: SelfCheck
    status: Status


@dataclass(frozen=True, slots=True)
class ReferenceEntry:
    """A tensor of a reference.

    Attributes
    ----------
    key : str
    operator, type : str
        What gave it; ``""`` where the reference does not say.
    shape : tuple of int
    """

    key: str
    operator: str
    type: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison has ended.

    Attributes
    ----------
    comparison : Comparison or None
        None if it was cancelled.
    tensors : Outputs or None
        The reference's tensors in our layout, by our operand; fetched as values are.
    entries : tuple of ReferenceEntry
        All tensors of the reference that can be read, in order.
    corrections : mapping of str to str or None
        The matches by hand that hold; see `CorrectRequest`.
    note : str
        Why those are not in the file beside the model; ``""`` where they are.
    """

    run_id: int
    comparison: Comparison | None
    tensors: Outputs | None
    status: Status
    entries: tuple[ReferenceEntry, ...] = field(default=(), repr=False)
    corrections: Mapping[str, str | None] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, slots=True)
class Extracted:
    """Operators were written as a model of their own.

    Attributes
    ----------
    path : Path or None
        Of the folder; None if the work was cancelled.
    """

    run_id: int
    path: Path | None
    status: Status


@dataclass(frozen=True, slots=True)
class PrecisionResult:
    """A format of lower precision.

    Attributes
    ----------
    simulation : Simulation
    kept : KeptOperators or None
        The choice of operators to keep in float32, where an error was wanted.
    """

    simulation: Simulation
    kept: KeptOperators | None = None


@dataclass(frozen=True, slots=True)
class Simulated:
    """Formats were simulated.

    Attributes
    ----------
    results : tuple of PrecisionResult
        One per format; empty if the work was cancelled.
    """

    run_id: int
    results: tuple[PrecisionResult, ...]
    status: Status


@dataclass(frozen=True, slots=True)
class WorkFailed:
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
