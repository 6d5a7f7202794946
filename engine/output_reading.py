"""Reads the outputs of a session: what they mean, chosen by what fits or by the user."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.errors import MeaningError, capitalized
from engine.logit_lens import look_through
from engine.meanings import Ends, OutputEnd, ReadingContext, all_readings, find_reading
from engine.meanings.readings.language import LENS, add_layers
from engine.meanings.results import Tokens
from engine.meanings.vocabulary import known_tokens
from engine.runtime.members import members_of
from engine.values import flatten_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from engine.meanings import Option, Reading
    from engine.meanings.registry import OptionValue
    from engine.meanings.results import Result
    from engine.runtime import RuntimeGraph, RuntimeOperand, RuntimeOperator
    from engine.session import Session
    from engine.values import Array, Value

__all__ = ["Meaning", "ReadingFit", "find_ends", "read_output"]

_CHOSEN_FROM: Final = 0.5  # the score from which a reading is chosen by itself
_MOST_TYPES: Final = 8
_MOST_PIECES: Final = 64


@dataclass(frozen=True, slots=True)
class ReadingFit:
    """How well a reading fits.

    Attributes
    ----------
    name, title : str
        Of the reading.
    score : float
    reason : str
    """

    name: str
    title: str
    score: float
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Meaning:
    """What the outputs mean.

    Attributes
    ----------
    reading : str
        Name of the reading; ``""`` if none was chosen.
    fits : tuple of ReadingFit
        All readings, the best first.
    options : tuple of Option
        Of the reading.
    values : mapping of str to value
        Of its options.
    result : Result or None
    reason : str
        Why there is no result.
    size : (int, int) or None
        Height and width of the model's input picture.
    samples : int
        Size of the batch.
    """

    reading: str
    fits: tuple[ReadingFit, ...]
    options: tuple[Option, ...] = ()
    values: Mapping[str, OptionValue] = field(default_factory=dict)
    result: Result | None = None
    reason: str = ""
    size: tuple[int, int] | None = None
    samples: int = 1

    @property
    def title(self) -> str:
        """Title of the reading; ``""`` if none was chosen."""
        return next((each.title for each in self.fits if each.name == self.reading), "")


def read_output(
    session: Session,
    reading: str = "",
    *,
    options: Mapping[str, OptionValue] | None = None,
    labels: tuple[str, ...] = (),
    sample: int = 0,
    check_cancelled: Callable[[], None] | None = None,
) -> Meaning:
    """Read the outputs of a session that has come to its end.

    Parameters
    ----------
    session : Session
    reading : str, optional
        Name of a reading; by default the one that fits best. If none fits well, the result says
        why and has no reading.
    options : mapping of str to value, optional
        Of the reading; those that it does not have are ignored.
    labels : tuple of str, optional
        Names of the classes.
    sample : int, optional
        Which one of the batch.
    check_cancelled : callable, optional
        Called between operators while evicted values are recomputed.

    Returns
    -------
    Meaning

    Raises
    ------
    MeaningError
        If there is no such reading.
    ValueNotComputedError
        If an output has no value yet.
    """
    chosen = find_reading(reading) if reading else None
    ends, arrays = find_ends(session, check_cancelled)
    fits = _find_fits(ends)
    if chosen is None and fits and fits[0].score >= _CHOSEN_FROM:
        chosen = find_reading(fits[0].name)
    if chosen is None:
        reason = "No meaning is known for these outputs. Choose one to try it."
        return Meaning("", fits, reason=reason, size=ends.size)
    samples = _samples(ends)
    try:
        values = _check_options(chosen, options or {})
        with np.errstate(all="ignore"):  # NaN and infinities are among what models give
            result = chosen.read(ReadingContext(ends, arrays, values, labels, sample))
            if isinstance(result, Tokens) and values.get(LENS) == "on":
                found = look_through(session, sample, result.position, check_cancelled)
                result = add_layers(
                    result,
                    found,
                    known_tokens(str(values["vocabulary"]), labels, result.words),
                )
    except MeaningError as exc:
        values, result, text = dict(options or {}), None, str(exc)
        reason = f"{capitalized(text)}."
    else:
        reason = ""
    return Meaning(
        chosen.name, fits, chosen.options_for(ends), values, result, reason, ends.size, samples
    )


def find_ends(
    session: Session, check_cancelled: Callable[[], None] | None = None
) -> tuple[Ends, tuple[Array, ...]]:
    """Return what is known of the outputs of a session, and their values.

    Values that are no arrays are left out.
    """
    graph = session.graph
    words = _words(graph)
    ends, arrays = [], []
    for operand in members_of(graph.output_operands):
        last = tuple(_find_last(operand))
        types, pieces = tuple([each.type for each in last]), _find_pieces(operand)
        is_projection = _is_projection(last)
        for value in flatten_value((session.value(operand.name, check_cancelled),)):
            if isinstance(value, np.ndarray):
                ends.append(
                    OutputEnd(
                        operand.name,
                        value.shape,
                        value.dtype.name,
                        types,
                        pieces,
                        is_projection,
                        value.shape[-1:] == (words,),
                    )
                )
                arrays.append(value)
    inputs = tuple(value for value in _inputs(session) if isinstance(value, np.ndarray))
    integers = any(value.dtype.kind in "iu" for value in inputs)
    found = Ends(tuple(ends), tuple(value.shape for value in inputs), integers)
    return found, tuple(arrays)


def _words(graph: RuntimeGraph) -> int | None:
    """Return the rows of the largest table of an input; None without one."""
    tables = [
        (operator.attributes.get("weight") or operator.tied_inputs[0]).shape
        for operator in graph.operators
        if operator.type.endswith("mbedding")
        and operator.inputs
        and operator.inputs[0].producer is not None
        and operator.inputs[0].producer.is_input
        and ("weight" in operator.attributes or operator.tied_inputs)
    ]
    rows = [shape[0] for shape in tables if shape and isinstance(shape[0], int)]
    return max(rows, default=None)


def _is_projection(last: tuple[RuntimeOperator, ...]) -> bool:
    """Whether the last linear layer adds no bias; at most a division by a norm follows."""
    linear = next((each for each in last[:2] if each.type == "nn.Linear"), None)
    return linear is not None and linear.params.get("bias") is False


def _find_last(operand: RuntimeOperand) -> Iterator[RuntimeOperator]:
    """Yield the operators that lead to an operand, the last one first."""
    for _ in range(_MOST_TYPES):
        producer = operand.producer
        if producer is None or producer.is_input:
            return
        yield producer
        if not producer.inputs:
            return
        operand = producer.inputs[0]


def _find_pieces(operand: RuntimeOperand) -> tuple[int, ...]:
    """Return the sizes of what an operand concatenates; empty if that is not known."""
    axes: set[int] = set()
    found: list[tuple[int | str | None, ...]] = []
    waiting = [operand]
    while waiting and len(found) < _MOST_PIECES:
        piece = waiting.pop()
        producer, shape = piece.producer, piece.shape
        dim = producer.params.get("dim") if producer is not None else None
        if shape is None or (piece is operand and not _is_join(producer)):
            return ()
        if producer is not None and _is_join(producer) and isinstance(dim, int):
            axes.add(dim % len(shape) if shape else 0)
            waiting += reversed(producer.inputs)
        else:
            found.append(shape)
    sizes = [shape[axis] for axis in axes for shape in found if axis < len(shape)]
    whole = tuple([size for size in sizes if isinstance(size, int)])
    return whole if len(axes) == 1 and len(whole) == len(found) else ()


def _is_join(operator: RuntimeOperator | None) -> bool:
    return operator is not None and operator.type == "torch.cat"


def _inputs(session: Session) -> Iterator[Value]:
    for operand in session.graph.input_operands:
        yield session.value(operand.name)


def _samples(ends: Ends) -> int:
    """Return the size of the batch that inputs and outputs share."""
    sizes = {shape[0] for shape in ends.inputs[:1] if shape}
    sizes |= {output.shape[0] for output in ends.outputs if output.shape}
    return sizes.pop() if len(sizes) == 1 else 1


def _find_fits(ends: Ends) -> tuple[ReadingFit, ...]:
    found = []
    for reading in all_readings():
        try:
            fit = reading.fits(ends)
            score, reason = float(fit.score), str(fit.reason)
        except Exception as exc:  # noqa: BLE001 - code of the user
            score, reason = 0.0, f"it failed: {exc}"
        found.append(ReadingFit(reading.name, reading.title, score, reason))
    return tuple(sorted(found, key=lambda each: -each.score))


def _check_options(
    reading: Reading, given: Mapping[str, OptionValue]
) -> dict[str, OptionValue]:
    return {
        option.name: option.check(given.get(option.name, option.default))
        for option in reading.options
    }
