"""A model that is being opened, and the notice of changed files of an open one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kuiper_studio.engine_service.protocol import Plan
from kuiper_studio.session.events import FilesNotice

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from pathlib import Path

    from engine.conversion.source_inputs import SourceInput
    from kuiper_studio.engine_service.protocol import Model
    from kuiper_studio.session.file_watch import FileChange

__all__ = ["Looks", "Opening", "SizesQuestion", "make_notice", "tell_changed_inputs"]


@dataclass(frozen=True, slots=True)
class Looks:
    """View state of a model that the engine does not have.

    Attributes
    ----------
    labels : tuple of str
    breakpoints : frozenset of str
    selected : str
        The selected operator; ``""`` for none.
    producer : str
        The operator whose output is shown as a tensor; ``""`` for none. Operands are
        numbers, which are others in another export.
    output : int
        Which of its outputs.
    """

    labels: tuple[str, ...] = ()
    breakpoints: frozenset[str] = frozenset()
    selected: str = ""
    producer: str = ""
    output: int = 0


@dataclass(frozen=True, slots=True)
class Opening:
    """A model that is being opened.

    Attributes
    ----------
    model : Model
    plan : Plan
        Its inputs and overrides.
    looks : Looks
    takes_seed : bool
        Whether to use the seed of the dump whose kernels compute it.
    keeps_place : bool
        Whether to run it to the position of the previous model.
    """

    model: Model
    plan: Plan = field(default_factory=Plan)
    looks: Looks = field(default_factory=Looks)
    takes_seed: bool = False
    keeps_place: bool = False


@dataclass(frozen=True, slots=True)
class SizesQuestion:
    """A model to convert, whose file does not say the sizes of its inputs.

    Attributes
    ----------
    opening : Opening
        That waits for them.
    inputs : tuple of SourceInput
        What the file says; empty where it says nothing.
    """

    opening: Opening
    inputs: tuple[SourceInput, ...]

    @property
    def path(self) -> Path:
        """The TorchScript or ONNX file."""
        return self.opening.model.path


def make_notice(changes: Sequence[FileChange], now: datetime, *, kept: bool) -> FilesNotice:
    """Describe the changed files of an open model.

    Parameters
    ----------
    changes : sequence of FileChange
        Not empty.
    now : datetime
    kept : bool
        Whether all weights of the model have been read or copied.
    """
    gone = [change for change in changes if change.version is None]
    plural = len(gone or changes) > 1
    if gone:
        title = f"{_names(gone)} {'are' if plural else 'is'} gone"
    else:
        title = f"{_written(changes)} at {now:%H:%M}"
    text = "The open model keeps what it was opened with."
    if not kept:
        text = (
            "The open model keeps what was read of it; operators whose weights were not read "
            "by then cannot run."
        )
    if gone:
        text += f" It can be reloaded when {'they are' if plural else 'the file is'} back."
    return FilesNotice(title, text, can_reload=not gone)


def tell_changed_inputs(changes: Sequence[FileChange]) -> str:
    """Say which files of inputs were written again; ``""`` for none.

    One that is gone is not told: nothing is to be read again.
    """
    written = [change for change in changes if change.version is not None]
    if not written:
        return ""
    what = "them" if len(written) > 1 else "it"
    return f"{_written(written)}; reloading reads {what}"


def _written(changes: Sequence[FileChange]) -> str:
    return f"{_names(changes)} {'were' if len(changes) > 1 else 'was'} written again"


def _names(changes: Sequence[FileChange]) -> str:
    return " and ".join(change.path.name for change in changes)
