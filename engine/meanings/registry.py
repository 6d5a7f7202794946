"""The registry of readings, and what each is made of."""

from __future__ import annotations

import importlib
import pkgutil
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, TypeVar

from typing_extensions import override

from engine.errors import MeaningError, RegistrationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from engine.meanings.ends import Ends, OutputEnd
    from engine.meanings.results import Result
    from engine.values import Array

__all__ = [
    "Fit",
    "Option",
    "OptionValue",
    "OutputReading",
    "Reading",
    "ReadingContext",
    "all_readings",
    "drop_readings",
    "find_reading",
    "register_reading",
    "registering_readings",
]

OptionValue = float | int | str
_Kind = TypeVar("_Kind", bound="type[Reading]")


@dataclass(frozen=True, slots=True)
class Fit:
    """How well a reading fits the outputs.

    Attributes
    ----------
    score : float
        From 0, not at all, to 1, no doubt. From 0.5 a reading is chosen by itself.
    reason : str
        What fits, or why nothing does, as the rest of a sentence.
    """

    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class Option:
    """Something that the user may set for a reading.

    Attributes
    ----------
    name : str
    title : str
    kind : {"fraction", "count", "choice", "file"}
        A number from 0 to 1; a whole number from `low` to `high`; one of `choices`; the path of
        a file, ``""`` for none.
    default : float, int or str
    tip : str
    choices : tuple of str
    low, high : int
    """

    name: str
    title: str
    kind: Literal["fraction", "count", "choice", "file"]
    default: OptionValue
    tip: str = ""
    choices: tuple[str, ...] = ()
    low: int = 0
    high: int = 0

    def check(self, value: OptionValue) -> OptionValue:
        """Return a value that was asked for.

        Raises
        ------
        MeaningError
            If it is none for this option.
        """
        wanted = f"{self.name} must be "
        if self.kind in {"choice", "file"}:
            if not isinstance(value, str):
                raise MeaningError(f"{wanted}text, not {value!r}")
            if self.kind == "choice" and value not in self.choices:
                raise MeaningError(f"{wanted}one of {', '.join(self.choices)}, not {value}")
            return value
        try:
            number = float(value) if self.kind == "fraction" else int(value)
        except (ValueError, OverflowError) as exc:
            raise MeaningError(f"{wanted}a number, not {value}") from exc
        low, high = (0, 1) if self.kind == "fraction" else (self.low, self.high)
        if not low <= number <= high:
            raise MeaningError(f"{wanted}from {low} to {high}, not {value}")
        return number


@dataclass(frozen=True, slots=True, eq=False)
class ReadingContext:
    """What a reading reads.

    Attributes
    ----------
    ends : Ends
    arrays : tuple of ndarray
        The values of the outputs.
    options : mapping of str to value
        Every option of the reading.
    labels : tuple of str
        The user's names of classes; empty without.
    sample : int
        Which one of the batch.
    """

    ends: Ends
    arrays: tuple[Array, ...]
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    sample: int = 0

    def number(self, name: str) -> float:
        """Return the value of an option that is a number."""
        return float(self.options[name])

    def text(self, name: str) -> str:
        """Return the value of an option that is text."""
        return str(self.options[name])

    def of_sample(self, place: int) -> Array:
        """Return what an output has for the sample; its first dimension is the batch.

        Parameters
        ----------
        place : int
            Of the output.

        Returns
        -------
        ndarray
            A view of the output.

        Raises
        ------
        MeaningError
            If the output is empty or a scalar.
        """
        array = self.arrays[place]
        if not array.ndim or not len(array):
            raise MeaningError(f"output {place} is empty")
        found: Array = array[min(self.sample, len(array) - 1)]
        return found


class Reading:
    """What outputs may mean; subclasses are registered by `register_reading`.

    Attributes
    ----------
    name : str
        Short, for the command line.
    title : str
        For people.
    options : tuple of Option
    """

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    options: ClassVar[tuple[Option, ...]] = ()

    def fits(self, ends: Ends) -> Fit:
        """Return how well the reading fits."""
        raise NotImplementedError

    def options_for(self, ends: Ends) -> tuple[Option, ...]:  # noqa: ARG002 - for subclasses
        """Return the options that have an effect; by default all."""
        return self.options

    def read(self, context: ReadingContext) -> Result:
        """Read the outputs.

        Raises
        ------
        MeaningError
            If they cannot be read like this.
        """
        raise NotImplementedError


class OutputReading(Reading):
    """A reading of one output; it chooses the one that fits best."""

    def fits_output(self, output: OutputEnd, ends: Ends) -> Fit:
        """Return how well it fits an output."""
        raise NotImplementedError

    def read_output(self, values: Array, output: OutputEnd, context: ReadingContext) -> Result:
        """Read an output: what it has for the sample."""
        raise NotImplementedError

    @override
    def fits(self, ends: Ends) -> Fit:
        """Return how well it fits the output that it fits best."""
        found = [self.fits_output(output, ends) for output in ends.outputs]
        return max(found, key=lambda fit: fit.score, default=Fit(0, "there is no output"))

    @override
    def read(self, context: ReadingContext) -> Result:
        """Read the output that it fits best."""
        ends = context.ends
        scores = [self.fits_output(output, ends).score for output in ends.outputs]
        if not scores or not max(scores):
            raise MeaningError(self.fits(ends).reason)
        place = scores.index(max(scores))
        return self.read_output(context.of_sample(place), ends.outputs[place], context)


_own: dict[str, Reading] = {}
_files: dict[Path, dict[str, Reading]] = {}
_recording: ContextVar[dict[str, Reading] | None] = ContextVar("recording", default=None)


def register_reading(kind: _Kind) -> _Kind:
    """Register a `Reading` class; a decorator.

    Raises
    ------
    RegistrationError
        If it is no reading, has no name, or its name is taken.
    """
    target: object = kind  # a file of the user may decorate anything
    if not (isinstance(target, type) and issubclass(target, Reading)):
        raise RegistrationError(f"{kind!r} is not a Reading class")
    if not kind.name or not kind.title:
        raise RegistrationError(f"{kind.__qualname__} needs a name and a title")
    table = _recording.get()
    taken = _own if table is None else {**_own, **table}
    if kind.name in taken:
        raise RegistrationError(f"a reading {kind.name!r} is already registered")
    (_own if table is None else table)[kind.name] = kind()
    return kind


@contextmanager
def registering_readings(file: Path) -> Iterator[dict[str, Reading]]:
    """Collect the readings that a file of the user registers in a block; all or none apply.

    Parameters
    ----------
    file : Path
        Resolved. Its earlier readings are replaced.
    """
    _complete()
    table: dict[str, Reading] = {}
    token = _recording.set(table)
    try:
        yield table
    finally:
        _recording.reset(token)
    _files[file] = table


def drop_readings(file: Path) -> None:
    """Remove the readings of a file of the user."""
    _files.pop(file, None)


def all_readings() -> tuple[Reading, ...]:
    """Return all readings: the engine's own, then those of the user's files."""
    _complete()
    merged = dict(_own)
    for table in list(_files.values()):
        merged.update(table)
    return tuple(merged.values())


def find_reading(name: str) -> Reading:
    """Return a reading by its name.

    Raises
    ------
    MeaningError
        If there is none.
    """
    for reading in all_readings():
        if reading.name == name:
            return reading
    known = ", ".join(each.name for each in all_readings())
    raise MeaningError(f"there is no reading {name!r}; there are {known}")


def _complete() -> None:
    package = importlib.import_module("engine.meanings.readings")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
