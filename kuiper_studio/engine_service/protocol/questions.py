"""Requests with a ticket, for what the window looks at, and their answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from engine.attention import Attention
    from engine.axes import Layout
    from engine.provenance.records import GridCell
    from kuiper_studio.engine_service.channels import ChannelView

__all__ = [
    "AlignRequest",
    "Answer",
    "AttentionRequest",
    "DistancesWanted",
    "Evicted",
    "ExplainRequest",
    "FetchRequest",
    "MeaningRequest",
    "MeasureRequest",
    "TraceRequest",
    "WeightRequest",
]


class DistancesWanted(NamedTuple):
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


class FetchRequest(NamedTuple):
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


class MeasureRequest(NamedTuple):
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


class WeightRequest(NamedTuple):
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


class Evicted(NamedTuple):
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
