"""What is opened, and what a model gets as soon as it is open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kuiper_studio.session.events import FilesNotice

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from pathlib import Path

    from engine.inputs import InputSource
    from kuiper_studio.engine_service.protocol import Supply
    from kuiper_studio.session.file_watch import FileChange

__all__ = ["LoadQueue", "Model", "Opening", "Wanted", "make_notice"]


@dataclass(frozen=True, slots=True)
class Model:
    """What is open or being opened.

    Attributes
    ----------
    path : Path
        The ``.param``, the ``.bin``, or their folder.
    bin : Path or None
    backend : str
        Who computes it.
    kernels_from : Path or None
        The dump whose kernels compute it, instead of the backend.
    """

    path: Path
    bin: Path | None
    backend: str
    kernels_from: Path | None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a model gets as soon as it is open.

    Attributes
    ----------
    sources, labels, breakpoints, selected, operand, shapes, supplies
        As the session has them.
    chosen_late : bool
        Whether the sources were chosen while another model was still there, which gets them
        if it stays.
    """

    sources: tuple[InputSource, ...] = ()
    labels: tuple[str, ...] = ()
    breakpoints: frozenset[str] = frozenset()
    selected: str = ""
    operand: str = ""
    shapes: tuple[str, ...] = ()
    supplies: tuple[tuple[str, InputSource] | Supply, ...] = ()
    chosen_late: bool = False


@dataclass(frozen=True, slots=True)
class Opening:
    """A model that is asked for.

    Attributes
    ----------
    model : Model
    wanted : Wanted
    takes_seed : bool
        Whether the seed is that of the dump whose kernels it gets.
    with_layers : bool
        Whether it is asked for only if the files of layers could be run.
    with_place : bool
        Whether it is run to where the one before stands when it is open.
    """

    model: Model
    wanted: Wanted
    takes_seed: bool = False
    with_layers: bool = False
    with_place: bool = False


class LoadQueue:
    """Models and files of layers that are asked for; the worker gets one of them at a time.

    So the window has taken in every model that the worker holds, with its inputs, before the
    worker goes on to what was asked for next, which may fail.

    Attributes
    ----------
    run_id : int
        Number of the request that the worker has; 0 for none.
    opening : Opening or None
        The model that it is for; None where it is for layers.
    prepared : Wanted
        What the model gets that is asked for next.
    """

    def __init__(self) -> None:
        self.run_id = 0
        self.opening: Opening | None = None
        self.prepared = Wanted()
        self._giving = False
        self._next: Opening | None = None
        self._layers: tuple[Path, ...] = ()

    @property
    def awaited(self) -> Opening | None:
        """The model that was asked for last and is not open yet."""
        return self._next or self.opening

    def ask(self, opening: Opening) -> None:
        """Want a model to be opened, and none that was wanted before and not begun."""
        self._next = opening

    def ask_for_layers(self, paths: tuple[Path, ...]) -> None:
        """Want files of layers to be run, before any model is opened."""
        self._layers = tuple(dict.fromkeys((*self._layers, *paths)))

    def change(self, change: Callable[[Opening], Opening]) -> None:
        """Want something else of the awaited model."""
        if self._next is not None:
            self._next = change(self._next)
        elif self.opening is not None:
            self.opening = change(self.opening)

    def take(self) -> Opening | tuple[Path, ...] | None:
        """What to ask the worker for now: a model, layers, or nothing."""
        if self.run_id or self._giving:
            return None
        if self._layers:
            paths, self._layers = self._layers, ()
            return paths
        self.opening, self._next = self._next, None
        return self.opening

    def answered(self) -> Opening | None:
        """The worker has answered; returns the model that it was asked for."""
        opening, self.opening = self.opening, None
        self.run_id = 0
        return opening

    def give(self, *, giving: bool) -> None:
        """Say whether an opened model is still to get its inputs."""
        self._giving = giving

    def layers_failed(self) -> None:
        """Forget the model that was to be opened with layers which cannot be had."""
        if self._next is not None and self._next.with_layers:
            self._next = None

    def clear(self) -> None:
        """Want nothing, and no answer."""
        self.run_id, self._giving = 0, False
        self.opening = self._next = None
        self.prepared = Wanted()
        self._layers = ()


def make_notice(changes: Sequence[FileChange], now: datetime, *, kept: bool) -> FilesNotice:
    """Say what became of the files of an open model.

    Parameters
    ----------
    changes : sequence of FileChange
        Not empty.
    now : datetime
    kept : bool
        Whether all weights of the model are there.
    """
    gone = [change.path.name for change in changes if change.version is None]
    names = " and ".join(gone or [change.path.name for change in changes])
    plural = len(gone or changes) > 1
    if gone:
        title = f"{names} {'are' if plural else 'is'} gone"
    else:
        title = f"{names} {'were' if plural else 'was'} written again at {now:%H:%M}"
    text = "The open model keeps what it was opened with."
    if not kept:
        text = (
            "The open model keeps what was read of it; operators whose weights were not read "
            "by then cannot run."
        )
    if gone:
        text += f" It can be reloaded when {'they are' if plural else 'the file is'} back."
    return FilesNotice(title, text, can_reload=not gone)
