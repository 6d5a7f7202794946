"""Runs a data set through a model in a process of its own, for the window.

``python -m kuiper_studio.engine_service.sweep_process`` reads a `SweepJob` from the first line
of its input; another line, or the end, cancels the sweep. It writes a JSON object a line:
``done`` and ``total``, a ``note``, and at the end ``finished`` or ``failed``.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, field, fields
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from engine.errors import EngineError
from engine.inputs import ImageOptions
from kuiper_studio.engine_service.priority import give_way

if TYPE_CHECKING:
    from typing import TextIO

__all__ = ["SweepJob", "image_options"]


@dataclass(frozen=True, slots=True)
class SweepJob:
    """What is to be run, as the window has it.

    Attributes
    ----------
    model, inputs, output : str
        As `engine.sweep` takes them.
    limit : int or None
    workers : int
        Processes; 0 for this one, without Dask.
    images : ImageOptions
    shapes : tuple of str
    backend, ncnn_options : str
    seed : int
    memory_bound : int or None
    layers : tuple of str
    """

    model: str
    inputs: str
    output: str
    limit: int | None = None
    workers: int = 0
    images: ImageOptions = field(default_factory=ImageOptions)
    shapes: tuple[str, ...] = ()
    backend: str = "auto"
    ncnn_options: str = "exact"
    seed: int = 0
    memory_bound: int | None = None
    layers: tuple[str, ...] = ()

    def to_line(self) -> str:
        """Return the job as a line of JSON."""
        return json.dumps(asdict(self)) + "\n"

    @classmethod
    def from_line(cls, line: str) -> SweepJob:
        """Read the line of `to_line`."""
        found = json.loads(line)
        found["images"] = image_options(found["images"])
        for name in ("shapes", "layers"):
            found[name] = tuple(found[name])
        return cls(**found)


def image_options(found: Any) -> ImageOptions:  # noqa: ANN401 - from JSON
    """Return how pictures become tensors, of what JSON has of it.

    Raises
    ------
    TypeError
        If it is something else.
    """
    known = {each.name for each in fields(ImageOptions)}
    options: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in dict(found).items()
        if name in known
    }
    return ImageOptions(**options)


def _say(**facts: object) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def _wait_for_the_end(lines: TextIO, cancelled: Event) -> None:
    lines.readline()
    cancelled.set()


def run(lines: TextIO) -> int:
    """Run the job of the first line; return the exit status."""
    from engine.datasets import SweepOptions, sweep

    job = SweepJob.from_line(lines.readline())
    cancelled = Event()
    Thread(target=_wait_for_the_end, args=(lines, cancelled), daemon=True).start()
    options = SweepOptions(
        limit=job.limit,
        images=job.images,
        shapes=job.shapes,
        backend=job.backend,
        ncnn_options=job.ncnn_options,
        seed=job.seed,
        memory_bound=job.memory_bound,
        layers=job.layers,
    )
    try:
        found = sweep(
            job.model,
            job.inputs,
            job.output,
            options,
            workers=job.workers,
            resume=True,
            progress=lambda done, total: _say(done=done, total=total),
            cancelled=cancelled.is_set,
            note=lambda text: _say(note=text),
        )
    except EngineError as exc:
        _say(failed="" if cancelled.is_set() else str(exc))
        return 2
    _say(finished=str(found.path))
    return 0


if __name__ == "__main__":
    give_way()
    sys.exit(run(sys.stdin))
