"""The messages between a window and its engine.

Requests go to the engine, replies and events come back. All are frozen and can be pickled.

A request that has a `run_id` is carried out when those before it are, and answered by one reply
with the same number: `Done`, `LayersLoaded`, `SelfChecked`, `Compared` or `WorkFailed`. Before
it, `Opened` and `Stepped` may come. Replies say where the session stands, as a `Status`.
Requests with a `ticket` are answered by an `Answer`, in any order and also while a model runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from engine.comparison import Comparison
    from engine.conversion.records import ConversionOptions
    from engine.dump import DumpOptions
    from engine.inputs import ImageOptions, InputSource
    from engine.layers import LayerFile
    from engine.layers.notes import OperatorNote
    from engine.runtime import OperatorLabel
    from engine.runtime.description import GraphDescription
    from engine.self_check import SelfCheck
    from engine.states import OperatorStatus, SessionState, StopReason
    from engine.values import Value, ValueMetadata

__all__ = [
    "Answer",
    "CancelRequest",
    "CloseRequest",
    "CompareRequest",
    "Compared",
    "Done",
    "Evicted",
    "ExportRequest",
    "FeedRequest",
    "FetchRequest",
    "LayersLoaded",
    "LoadLayersRequest",
    "MemoryRequest",
    "Model",
    "NotesRead",
    "OpenRequest",
    "Opened",
    "Outputs",
    "Plan",
    "Progress",
    "Record",
    "ReportRequest",
    "Request",
    "ReseedRequest",
    "RestartRequest",
    "RunRequest",
    "SelfCheckRequest",
    "SelfChecked",
    "Status",
    "StepBackRequest",
    "Stepped",
    "Supply",
    "SupplyRequest",
    "Tuned",
    "UnloadLayersRequest",
    "WeightRequest",
    "WeightsKept",
    "WithdrawRequest",
    "WorkFailed",
]


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


@dataclass(frozen=True, slots=True)
class Model:
    """What is opened.

    Attributes
    ----------
    path : Path
        The ``.param``, the ``.bin``, their folder, or a TorchScript or ONNX file.
    bin : Path or None
    backend : str
        Who computes it.
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
    """What a model is fed, and how far it is run then; see `plans.resolve`.

    Attributes
    ----------
    sources : tuple of InputSource
        In the order of the inputs; a single one may serve all.
    options : ImageOptions or None
        For pictures; None for the usual ones.
    shapes : tuple of str
        Sizes of the inputs, as the command line writes them.
    supplies : tuple of (str, InputSource) or Supply
        Outputs that are supplied; with the name of an operand or operator, or with those of
        the operands.
    place : str or None
        Operator to run to, past all breakpoints; ``""`` for the end, None to stay at the start.
    """

    sources: tuple[InputSource, ...] = ()
    options: ImageOptions | None = None
    shapes: tuple[str, ...] = ()
    supplies: tuple[tuple[str, InputSource] | Supply, ...] = ()
    place: str | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """Where the engine's session stands.

    Attributes
    ----------
    generation : int
        Number of the request that opened its model; 0 without a model.
    state : SessionState
    position : int
        Index of the operator that runs next, or that has failed; the number of operators at
        the end. What is behind it has no values.
    stop : StopReason or None
        Why it stands there; None where it has not run.
    fed : mapping of str to tuple of int
        Shapes of the inputs, by operand name; empty while nothing is fed.
    supplied : mapping of str to str
        Operands that are supplied, and where each comes from.
    supplies : tuple of Supply
        Where from, so that it can be done again.
    seed : int
        The random seed.
    evicted : frozenset of str
        Operands whose values a memory limit has dropped.
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
    """What one execution of an operator gave, without the elements of its arrays.

    Attributes
    ----------
    serial : int
        Number of the execution; another one has another.
    by_operand : mapping of str to ValueMetadata
        In order.
    """

    serial: int
    by_operand: Mapping[str, ValueMetadata] = field(repr=False)

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_operand)

    def __len__(self) -> int:
        return len(self.by_operand)

    def metadata(self, name: str) -> ValueMetadata:
        """What is known of a value without its elements."""
        return self.by_operand[name]


@dataclass(frozen=True, slots=True)
class Record:
    """One executed step; see `engine.runtime.executor.StepRecord`.

    Attributes
    ----------
    index : int
        Position in execution order.
    operator : OperatorLabel
    outputs : Outputs
    seconds : float
        Time in the kernel.
    status : OperatorStatus
    kernel : str
        Who computed it: the backend and, behind a slash, which of its kernels.
    kernel_text : str
        The same in words.
    reason : str
        Why it did not run; ``""`` when it did.
    overrides : mapping of str to str
        The outputs that the user supplied, and where each comes from.
    seed : int or None
        The seed that it drew random numbers by; None where it drew none.
    """

    index: int
    operator: OperatorLabel
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
        """Who computed it: ``numpy``, ``onnxruntime``, ``ncnn``, ``supplied``, or nobody."""
        return self.kernel.partition("/")[0]

    @property
    def random(self) -> bool:
        """Whether another seed would have given other numbers."""
        return self.seed is not None

    @property
    def metadata(self) -> tuple[ValueMetadata, ...]:
        """What is known of the outputs without their elements, in order."""
        return tuple(self.outputs.by_operand.values())


# Requests: window to engine


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


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """Open a model, feed it and run it to where it is wanted.

    `Opened` comes as soon as the model is there. If that fails, the model before stays open.

    Attributes
    ----------
    model : Model
    plan : Plan
    seed : int or None
        None for that of the dump.
    memory : MemoryRequest
    keeps_place : bool
        Whether it is run to where the engine's session stands by then, instead of the place
        in the plan.
    """

    run_id: int
    model: Model
    plan: Plan
    seed: int | None
    memory: MemoryRequest
    keeps_place: bool = False


@dataclass(frozen=True, slots=True)
class CloseRequest:
    """Let go of the model and its values."""

    run_id: int


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """End runs between operators; they are answered as if they had come to their end.

    Attributes
    ----------
    run_id : int
        Of the last request that is not to run any further.
    opening : int
        Of a request to open a model, which is passed over if it has not begun; 0 for none.
    ticket : int
        Of the last value that is not to be computed again.
    """

    run_id: int = 0
    opening: int = 0
    ticket: int = 0


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """Send a value, or a summary of it; answered by an `Answer`.

    A value that a memory limit has dropped is computed again, as soon as there is nothing else
    to do; `Evicted` tells.

    Attributes
    ----------
    ticket : int
    operand : str
    serial : int
        Of the execution that the value is from.
    what : str
        ``value`` for a `Value`, ``summary`` for a `Summary`.
    """

    ticket: int
    operand: str
    serial: int
    what: Literal["value", "summary"]


@dataclass(frozen=True, slots=True)
class WeightRequest:
    """Send the bytes of a weight; answered by an `Answer` with an array of uint8.

    Attributes
    ----------
    ticket : int
    generation : int
        Of the model that it belongs to; the engine may have opened another by then.
    offset, nbytes : int
        Where it lies in the ``.bin``.
    """

    ticket: int
    generation: int
    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class LoadLayersRequest:
    """Run the user's files of layers, in order, up to the first that is wrong."""

    run_id: int
    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class UnloadLayersRequest:
    """Go back to the engine's own layers."""

    run_id: int


@dataclass(frozen=True, slots=True)
class FeedRequest:
    """Feed the model; the session goes to the start, and what was supplied is dropped."""

    run_id: int
    plan: Plan


@dataclass(frozen=True, slots=True)
class SupplyRequest:
    """Use files instead of what an operator would compute; the session goes back to it.

    Attributes
    ----------
    supply : Supply
    steps_over : bool
        Whether it steps over the operator then, if that is the next one.
    """

    run_id: int
    supply: Supply
    steps_over: bool = False


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
    """Undo the last step, or the failed one."""

    run_id: int


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Run some operators; nothing where nothing can run.

    Attributes
    ----------
    steps : int or None
        How many at most; None for no limit.
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
    """Write a dump of what has been computed."""

    run_id: int
    path: Path
    options: DumpOptions


@dataclass(frozen=True, slots=True)
class SelfCheckRequest:
    """Compare every backend with NumPy on the present model and inputs."""

    run_id: int
    tolerance: float


@dataclass(frozen=True, slots=True)
class CompareRequest:
    """Compare the model and its inputs with a reference; answered by `Compared`.

    Attributes
    ----------
    reference : Path
        What `engine.open_reference` opens.
    tolerance : float or None
        For float32, relative to the reference's largest element; None for the default.
    """

    run_id: int
    reference: Path
    tolerance: float | None = None


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """Write the last comparison as a page of HTML."""

    run_id: int
    path: Path


Request: TypeAlias = (
    OpenRequest
    | CloseRequest
    | CancelRequest
    | MemoryRequest
    | FetchRequest
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
    | ReportRequest
)

# Replies: engine to window


@dataclass(frozen=True, slots=True)
class Opened:
    """A model is open; it is fed next.

    Attributes
    ----------
    graph : GraphDescription
    seconds : float
        How long that took.
    state : SessionState
        NEED_INPUT, or READY where the model has no inputs.
    kernels : mapping of str to str
        Those of a dump that it is computed by, by operator; empty without one.
    kernel_texts : mapping of str to str
        Each of them in words.
    seed : int
        The random seed of its session.
    is_kept : bool
        Whether its weights are all there, whatever becomes of the files.
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
    """What there is to know of the types of operators in a model.

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
class WeightsKept:
    """All weights of a model are there by now."""

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
    """The user's files of layers have been run.

    Attributes
    ----------
    files : tuple of LayerFile
        That the request named.
    all : tuple of LayerFile
        That are loaded now.
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
        The value that a window shows now: the first output of the last operator, or its first
        input where it has no output.
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
        Indexes of operators that a run has passed by because they have no layer.
    text : str
        What was done, where that leaves no other trace.
    stepped : Stepped or None
        The last operators of a run, where any have not been reported.
    """

    run_id: int
    status: Status
    passed_by: tuple[int, ...] = ()
    text: str = ""
    stepped: Stepped | None = None


@dataclass(frozen=True, slots=True)
class Evicted:
    """The value of a `FetchRequest` was dropped; it is computed again before the answer.

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
        What was asked for.
    found : bool
        Whether it is there.
    reason : str
        Why it is not; ``""`` where it is, or where something else had to be done first.
    """

    ticket: int
    result: object = field(default=None, repr=False)
    found: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SelfChecked:
    """A self-check has come to its end, or was cancelled."""

    run_id: int
    found: SelfCheck
    status: Status


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison has ended.

    Attributes
    ----------
    comparison : Comparison or None
        None if it was cancelled.
    tensors : Outputs or None
        The reference's tensors in our layout, by our operand; fetched as values are.
    """

    run_id: int
    comparison: Comparison | None
    tensors: Outputs | None
    status: Status


@dataclass(frozen=True, slots=True)
class WorkFailed:
    """A request failed.

    Attributes
    ----------
    error : Exception
    status : Status
    record : Record or None
        Of the operator that failed, where one did.
    supply : Supply or None
        The file that cannot be used, where that is what failed.
    """

    run_id: int
    error: Exception
    status: Status
    record: Record | None = None
    supply: Supply | None = None
