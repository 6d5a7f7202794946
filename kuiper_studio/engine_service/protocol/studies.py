"""Messages of long work whose result comes at its end: dumps, checks, comparisons."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from engine.comparison import Comparison
    from engine.dump import DumpOptions
    from engine.precision import FormatName, KeptOperators, Simulation
    from engine.self_check import SelfCheck
    from kuiper_studio.engine_service.protocol.sessions import Outputs, Plan, Status

__all__ = [
    "CompareRequest",
    "Compared",
    "CorrectRequest",
    "ExportRequest",
    "ExtractRequest",
    "Extracted",
    "OtherRun",
    "PrecisionRequest",
    "PrecisionResult",
    "ReferenceEntry",
    "ReportRequest",
    "SelfCheckRequest",
    "SelfChecked",
    "Simulated",
]


class ExportRequest(NamedTuple):
    """Write a dump of the computed values."""

    run_id: int
    path: Path
    options: DumpOptions


class SelfCheckRequest(NamedTuple):
    """Compare every backend with NumPy on the current model and inputs."""

    run_id: int
    tolerance: float


class SelfChecked(NamedTuple):
    """A self-check ended or was cancelled."""

    run_id: int
    found: SelfCheck
    status: Status


class OtherRun(NamedTuple):
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


class CompareRequest(NamedTuple):
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


class CorrectRequest(NamedTuple):
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


class ReportRequest(NamedTuple):
    """Write the last comparison as a page of HTML."""

    run_id: int
    path: Path


class ReferenceEntry(NamedTuple):
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


class ExtractRequest(NamedTuple):
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


class Extracted(NamedTuple):
    """Operators were written as a model of their own.

    Attributes
    ----------
    path : Path or None
        Of the folder; None if the work was cancelled.
    """

    run_id: int
    path: Path | None
    status: Status


class PrecisionRequest(NamedTuple):
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


class PrecisionResult(NamedTuple):
    """A format of lower precision.

    Attributes
    ----------
    simulation : Simulation
    kept : KeptOperators or None
        The choice of operators to keep in float32, where an error was wanted.
    """

    simulation: Simulation
    kept: KeptOperators | None = None


class Simulated(NamedTuple):
    """Formats were simulated.

    Attributes
    ----------
    results : tuple of PrecisionResult
        One per format; empty if the work was cancelled.
    """

    run_id: int
    results: tuple[PrecisionResult, ...]
    status: Status
