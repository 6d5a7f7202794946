"""Describes failures for the banner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.errors import (
    DumpFileError,
    ExportError,
    FeedError,
    InferenceError,
    LayerFileError,
    ModelFileError,
    SessionStateError,
    without_name,
)
from engine.states import OperatorStatus
from engine.text import format_count
from kuiper_studio.engine_service.protocol import (
    CompareRequest,
    CorrectRequest,
    ExtractRequest,
    PrecisionRequest,
    ReportRequest,
)
from kuiper_studio.session.events import Failure
from kuiper_studio.session.hints import hint_for, suspect_for

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from engine.runtime import RuntimeGraph, RuntimeOperator
    from kuiper_studio.engine_service.protocol import Record, Request, Supply, WorkFailed

__all__ = [
    "describe_failure",
    "describe_missing_weights",
    "describe_opening",
    "describe_passed_by",
    "describe_supply",
    "dump_name",
]


# What has not been done when a request fails that leaves the run as it is.
_STUDIES: Final[dict[type, str]] = {
    CompareRequest: "The model was not compared",
    CorrectRequest: "The model was not compared again",
    ReportRequest: "The report was not written",
    ExtractRequest: "The operators were not extracted",
    PrecisionRequest: "The formats were not simulated",
}


def dump_name(path: Path) -> str:
    """Return the name of a dump: its folder's, if the path is that of the manifest."""
    return path.parent.name if path.name == "manifest.json" else path.name


def describe_failure(
    graph: RuntimeGraph | None, answer: WorkFailed, request: Request | None = None
) -> Failure:
    """Describe a failure while a model is open.

    Parameters
    ----------
    graph : RuntimeGraph or None
        The open model.
    answer : WorkFailed
    request : Request, optional
        What failed.
    """
    error = answer.error
    if isinstance(error, LayerFileError):
        return Failure("The layers cannot be loaded", str(error), layer_file=error.path)
    if isinstance(error, InferenceError):
        title = f"{error.operator} failed"
        if graph is None:
            return Failure(title, error.reason, operator=error.operator)
        hint, suspect = hint_for(graph, error), suspect_for(graph, error)
        changed = not all(version.is_current() for version in graph.versions)
        return Failure(title, error.reason, hint, error.operator, suspect, reload=changed)
    if answer.record is not None and graph is not None:
        name = graph.operators[answer.record.index].name
        return Failure(f"{name} failed", str(error), operator=name)
    reason = str(error) or type(error).__name__
    if type(request) in _STUDIES:
        return Failure(_STUDIES[type(request)], reason, concerns_study=True)
    if isinstance(error, FeedError):
        return Failure("The input cannot be used", reason, concerns_input=True)
    if isinstance(error, ExportError):
        return Failure("The dump was not written", reason)
    return Failure("The command failed", reason)


def describe_missing_weights(graph: RuntimeGraph) -> Failure:
    """Describe that a model was opened without its weights."""
    count = format_count(len(graph.unsupported), "operator")
    return Failure(
        f"The weights of {graph.source_path.name} are missing",
        f"the model was opened without a .bin file, and {count} cannot run",
        "Choose the .bin file that pnnx wrote together with it.",
        lacks_weights=True,
    )


def describe_opening(
    error: Exception, dump: Path | None, *, is_open: bool, again: bool
) -> Failure:
    """Describe that a model cannot be opened.

    Parameters
    ----------
    error : Exception
    dump : Path or None
        The dump whose kernels should compute the model.
    is_open : bool
        Whether another model is open, and stays open.
    again : bool
        Whether the model was to be reloaded.
    """
    if dump is not None and isinstance(error, (DumpFileError, SessionStateError)):
        hint = "Open the model without them."
        if is_open:
            hint = "The open model keeps its kernels."
        title = f"The kernels of the dump {dump_name(dump)} cannot be used"
        return Failure(title, str(error), hint)
    title = "The model cannot be reloaded" if again else "The model cannot be opened"
    hint = "The earlier model stays open." if is_open else ""
    return Failure(title, str(error) or type(error).__name__, hint, reload=again)


def describe_supply(graph: RuntimeGraph, supply: Supply, error: Exception) -> Failure:
    """Describe that a file cannot override an operator's outputs."""
    producers = (graph.operand(name).producer for name in supply.operands)
    name = next((producer.name for producer in producers if producer is not None), "")
    return Failure(f"The output of {name} was not supplied", str(error), operator=name)


def describe_passed_by(
    operators: Sequence[RuntimeOperator], records: Sequence[Record]
) -> Failure:
    """Describe which operators a run has skipped, and which ones they block.

    Parameters
    ----------
    operators : sequence of RuntimeOperator
        Skipped operators without a layer; at least one.
    records : sequence of Record
        Records of the pass.
    """
    first = operators[0]
    others = len(operators) - 1
    title = f"{first.name} cannot run"
    if others:
        title = f"{first.name} and {format_count(others, 'other')} cannot run"
    blocked = sum(record.status is OperatorStatus.BLOCKED for record in records)
    hint = "Supply its output from a file to continue the run."
    if blocked:
        downstream = format_count(blocked, "operator downstream is", "operators downstream are")
        hint = f"{downstream} blocked. {hint}"
    lacks_weights = isinstance(first.error, ModelFileError)
    reason = without_name(first.reason, first.name, first.type)
    return Failure(title, reason, hint, first.name, lacks_weights=lacks_weights)
