"""The workers of one piece of work after the other."""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING, Any, Self

from engine.errors import SweepError
from engine.threads import thread_count

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from engine.datasets.progress import Run

__all__ = ["WorkerPool", "pool_of"]


class WorkerPool:
    """Workers that are started when the first work needs them, and serve all until the end.

    A context manager: they end with it. In between OpenMP and BLAS are limited to the threads
    of a worker by environment variables, which processes started meanwhile inherit.

    Parameters
    ----------
    workers : int, optional
        Processes on this machine; one a processor by default. With 0 there are none: all work
        runs in this process, without Dask.
    scheduler : str, optional
        Address of a Dask scheduler, such as ``tcp://host:8786``, whose workers are used.

    Attributes
    ----------
    count : int
        Processes on this machine.
    scheduler : str or None

    Raises
    ------
    SweepError
        If both are given.
    """

    def __init__(self, workers: int | None = None, scheduler: str | None = None) -> None:
        if scheduler is not None and workers is not None:
            raise SweepError(
                "a scheduler has its own workers: give its address or their number"
            )
        own = thread_count() if workers is None else workers
        self.count = own if scheduler is None else 0
        self.scheduler = scheduler
        self._opened = ExitStack()
        self._client: Any = None

    @property
    def is_here(self) -> bool:
        """Whether all work runs in this process."""
        return self.count == 0 and self.scheduler is None

    @property
    def sharing(self) -> int:
        """How many processes share the memory of this machine; 0 for those of a scheduler."""
        return max(self.count, 1) if self.scheduler is None else 0

    def client(self, folder: Path, run: Run) -> Any:  # noqa: ANN401 - Dask has no types
        """Return the client of the workers, which are started if they are not yet.

        Parameters
        ----------
        folder : Path
            Where a file may be written for a moment.
        run : Run

        Raises
        ------
        SweepError
            If they cannot be used.
        """
        if self._client is None:
            from engine.datasets.cluster import connected

            opened = connected(folder, self.count, self.scheduler, run)
            self._client = self._opened.enter_context(opened)
        return self._client

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client = None
        self._opened.close()


def pool_of(
    workers: int | WorkerPool | None, scheduler: str | None
) -> AbstractContextManager[WorkerPool]:
    """Return a context of a pool of its own, or of the given one, which goes on beyond it.

    Raises
    ------
    SweepError
        If there is a scheduler beside workers.
    """
    if isinstance(workers, WorkerPool) and scheduler is None:
        return nullcontext(workers)
    count = workers.count if isinstance(workers, WorkerPool) else workers
    return WorkerPool(count, scheduler)
