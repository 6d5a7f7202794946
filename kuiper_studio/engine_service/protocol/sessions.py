"""A session as both sides know it: model and plan, where it stands, what was computed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.states import ExecutedStep

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from engine.conversion.records import ConversionOptions
    from engine.inputs import ImageOptions, InputSource
    from engine.states import OperatorStatus, SessionState, StopReason
    from engine.values import ValueMetadata

__all__ = [
    "Model",
    "Outputs",
    "Plan",
    "Progress",
    "Record",
    "Status",
    "Supply",
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
class Record(ExecutedStep):
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
    def metadata(self) -> tuple[ValueMetadata, ...]:
        """Metadata of the outputs, in order."""
        return tuple(self.outputs.by_operand.values())
