"""The messages between a window and its engine.

The window sends requests; the engine sends replies and events. None can be changed, and all can
be pickled. Most are named tuples: a window imports dozens of them before it is seen, and Python
makes such a class in a fifth of the time of a dataclass. Dataclasses are those that are looked
up, because they equal no message of another type, and those with defaults of their own.

A request that has a `run_id` is carried out when those before it are, and answered by one reply
with the same number: `Done`, `LayersLoaded`, `SelfChecked`, `Compared`, `Extracted`,
`Simulated` or `WorkFailed`. Before it, `Opened` and `Stepped` may come. Replies say where the
session stands, as a `Status`.
Requests with a `ticket` are answered by an `Answer`, in any order and also while a model runs.

`sessions` has what the messages are about, `running` those of a model and its runs, `questions`
those with a ticket, and `studies` those of long work with one result.
"""

from __future__ import annotations

from typing import TypeAlias

from kuiper_studio.engine_service.protocol.questions import (
    AlignRequest,
    Answer,
    AttentionRequest,
    DistancesWanted,
    Evicted,
    ExplainRequest,
    FetchRequest,
    MeaningRequest,
    MeasureRequest,
    TraceRequest,
    WeightRequest,
)
from kuiper_studio.engine_service.protocol.running import (
    CancelRequest,
    CloseRequest,
    Done,
    FaultNote,
    FaultsFound,
    FeedRequest,
    LayersLoaded,
    LoadLayersRequest,
    MemoryRequest,
    NotesRead,
    Opened,
    OpenRequest,
    ReseedRequest,
    RestartRequest,
    RunRequest,
    StepBackRequest,
    Stepped,
    SupplyRequest,
    Tuned,
    TuningRequest,
    UnloadLayersRequest,
    WeightsKept,
    WithdrawRequest,
    WorkFailed,
)
from kuiper_studio.engine_service.protocol.sessions import (
    Model,
    Outputs,
    Plan,
    Progress,
    Record,
    Status,
    Supply,
)
from kuiper_studio.engine_service.protocol.studies import (
    Compared,
    CompareRequest,
    CorrectRequest,
    ExportRequest,
    Extracted,
    ExtractRequest,
    OtherRun,
    PrecisionRequest,
    PrecisionResult,
    ReferenceEntry,
    ReportRequest,
    SelfChecked,
    SelfCheckRequest,
    Simulated,
)

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
