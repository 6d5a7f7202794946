"""Runs the tasks of a sweep with Dask, and others that need the model of one.

Each worker loads the model once, by a plug-in, and runs one task at a time. The result of a
sweep's task stays on the worker, is merged with its neighbours there, and only the last one
comes here. At any time a few tasks for each worker are submitted, whatever the size of the data
set.
"""

from __future__ import annotations

import gc
import logging
import math
import os
import platform
import signal
import threading
import time
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Protocol

import dask
import distributed
import numpy as np
from distributed.comm.core import CommClosedError
from distributed.diagnostics.plugin import WorkerPlugin
from typing_extensions import override

from engine.backends.heap import trim_heap
from engine.datasets.plan import MergeTree, merge_results
from engine.datasets.shard import ShardRunner
from engine.datasets.unguarded import require_guard
from engine.dump.manifest import tool_version
from engine.errors import EngineError, SweepError
from engine.threads import limit_threads, thread_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from engine.datasets.plan import Result, SweepPlan
    from engine.datasets.progress import Run
    from engine.datasets.studies import Study

__all__ = [
    "Worker",
    "connected",
    "run_on_cluster",
    "run_tasks",
    "submit_ahead",
    "workers_prepared",
]

_PLUGIN: Final = "kuiper-studio-sweep"
_STUDIO: Final = "Kuiper Studio"
_THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_AHEAD: Final = 4  # submitted tasks for each worker
_PATIENCE: Final = 0.25  # seconds between looks at whether the sweep was cancelled
_COUNTING: Final = 5  # seconds between looks at how many workers there are
_WITHOUT_WORKERS: Final = 120  # seconds; a worker that has died may be started anew
_CONNECTING: Final = 10  # seconds
_LOGGERS: Final = ("distributed", "tornado", "asyncio")
_RESUMED: Final = "what is finished is kept, --resume goes on from there"


class Worker(Protocol):
    """What runs tasks in a worker."""

    def run(self, task: Any) -> Any:  # noqa: ANN401 - only who submits them knows
        """Run a task."""
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...


def run_on_cluster(
    plan: SweepPlan, client: distributed.Client, scheduler: str | None, run: Run
) -> Result:
    """Run all tasks of a sweep on workers.

    Parameters
    ----------
    plan : SweepPlan
    client : distributed.Client
        Of `connected`.
    scheduler : str or None
        Its address, if the workers are not our own.
    run : Run

    Raises
    ------
    SweepError
        If the workers cannot be used, were lost, or a task fails.
    """
    make = partial(ShardRunner, plan)
    with workers_prepared(make, client, scheduler):
        merge = partial(_merge, plan.studies)
        # Merging first keeps the memory of the workers small.
        tree: MergeTree[Any] = MergeTree(partial(client.submit, merge, priority=1, pure=False))
        submit_ahead(
            client,
            _run_task,
            range(plan.shards),
            _Workers(client).threads,
            tree.push,
            lambda number: run.advance(len(plan.range_of(number))),
            run.check,
        )
        result: Result = tree.finish().result()
        return result


def run_tasks(
    client: distributed.Client,
    tasks: Sequence[Any],
    finished: Callable[[Any], None],
    run: Run,
) -> list[Any]:
    """Run tasks whose results are small, and return these in the order of the tasks.

    Parameters
    ----------
    client : distributed.Client
        Whose workers are prepared.
    tasks : sequence
        For `Worker.run`.
    finished : callable
        Called with each result as soon as it is there.
    run : Run

    Raises
    ------
    SweepError
        If the workers were lost, or a task fails.
    """
    futures: list[Any] = []
    results: dict[int, Any] = {}

    def take(place: int) -> None:
        results[place] = futures[place].result()
        finished(results[place])

    threads = _Workers(client).threads
    submit_ahead(client, _run_task, tasks, threads, futures.append, take, run.check)
    return [results[place] for place in range(len(tasks))]


@contextmanager
def workers_prepared(
    make: Callable[[], Worker], client: distributed.Client, scheduler: str | None
) -> Iterator[None]:
    """Let workers prepare for tasks.

    Parameters
    ----------
    make : callable
        Returns what runs the tasks; called once in each worker.
    client : distributed.Client
        Of `connected`.
    scheduler : str or None
        Its address, if the workers are not our own.

    Raises
    ------
    SweepError
        If the workers cannot be used, or were lost.
    """
    with _losses_told(scheduler):
        try:
            _register(client, make, own=scheduler is None)
            yield
        finally:
            _unregister(client)  # also where it failed: new workers would fail to start


@contextmanager
def connected(
    folder: Path, workers: int, scheduler: str | None, run: Run
) -> Iterator[distributed.Client]:
    """Start processes of this machine, or connect to a scheduler; see `WorkerPool.client`."""
    with (
        _losses_told(scheduler),
        _quiet(),
        _client_of(folder, workers, scheduler, run) as client,
    ):
        _check_versions(client)
        yield client


@contextmanager
def _losses_told(scheduler: str | None) -> Iterator[None]:
    """Turn what Dask raises where workers or the scheduler are lost into a sentence."""
    try:
        yield
    except (CommClosedError, CancelledError, TimeoutError) as exc:
        where = f"the scheduler at {scheduler}" if scheduler else "Dask"
        raise SweepError(f"the connection to {where} was lost; {_RESUMED}") from exc


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the logs of Dask here: what goes wrong is told in a sentence."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith(_LOGGERS)]
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _positive(text: str | None) -> int | None:
    """Return a number from the environment; None where it is none, or not above 0."""
    return (int(text) or None) if text is not None and text.isdecimal() else None


@contextmanager
def _limited_threads(most: int) -> Iterator[None]:
    """Set the variables that limit the threads of libraries, for the workers that are started.

    Workers that have more threads than processors spin most of the time. In Dask's
    configuration the limits would not hold, because it prefers what is set. A lower limit of
    the user stays.
    """
    before = {name: os.environ.get(name) for name in _THREADS}
    for name, value in before.items():
        os.environ[name] = str(min(most, _positive(value) or most))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _client_of(
    folder: Path, workers: int, scheduler: str | None, run: Run
) -> Iterator[distributed.Client]:
    if scheduler is not None:
        try:
            client = distributed.Client(scheduler, timeout=_CONNECTING, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as exc:
            raise SweepError(
                f"there is no scheduler at {scheduler}; dask scheduler starts one"
            ) from exc
        with client, client.as_current():
            if not client.scheduler_info()["workers"]:
                raise SweepError(
                    f"the scheduler at {scheduler} has no workers; start some with dask worker "
                    f"{scheduler} --nthreads 1"
                )
            _tell_dashboard(client, run)
            yield client
        return
    with (
        _limited_threads(max(1, thread_count() // workers)),
        dask.config.set(
            {
                # Its own has memory given back at once: a sweep takes half as long again.
                "distributed.nanny.pre-spawn-environ": {},
                "distributed.worker.daemon": True,
                # Looks at the stacks of a worker a hundred times a second, for a page that
                # nobody opens.
                "distributed.worker.profile.enabled": False,
                # After 15 s, by default, Dask gives up a worker that is started anew.
                "distributed.deploy.lost-worker-timeout": _WITHOUT_WORKERS,
            }
        ),
        _own_cluster(folder, workers) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        client.as_current(),
    ):
        _tell_dashboard(client, run)
        yield client


@contextmanager
def _own_cluster(folder: Path, workers: int) -> Iterator[distributed.LocalCluster]:
    """Start workers on this machine."""
    require_guard(folder)
    try:
        cluster = distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",  # any port: without one a port in use is an error
            silence_logs=logging.CRITICAL,
        )
    except RuntimeError as exc:
        raise SweepError(f"the workers cannot be started: {exc.__cause__ or exc}") from exc
    with cluster:
        yield cluster


def _tell_dashboard(client: distributed.Client, run: Run) -> None:
    if client.dashboard_link and find_spec("bokeh") is not None:
        run.tell(f"Dask shows its work at {client.dashboard_link}")


# Workers


class _ModelPlugin(WorkerPlugin):  # type: ignore[misc]  # Dask has no types
    """Loads the model on a worker, once.

    Parameters
    ----------
    make : callable
        Returns what runs the tasks.
    own : bool
        Whether the worker was started for this work.
    """

    name = _PLUGIN

    def __init__(self, make: Callable[[], Worker], *, own: bool) -> None:
        self._make, self._own = make, own
        self.runner: Worker | None = None

    @override
    def setup(self, worker: distributed.Worker) -> None:
        limit_threads(_positive(os.environ.get("OMP_NUM_THREADS")) or 1)
        if self._own and threading.current_thread() is threading.main_thread():
            # The terminal sends it to all processes; the client ends its workers.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.runner = self._make()

    @override
    def teardown(self, worker: distributed.Worker) -> None:
        if self.runner is not None:
            self.runner.close()
            # The model and its session have cycles, and other work needs the memory.
            self.runner = None
            gc.collect()
            trim_heap()
        if not self._own:
            limit_threads(None)


def _run_task(task: Any) -> Any:  # noqa: ANN401 - `Worker.run` knows it
    """Run a task, on a worker."""
    plugin = distributed.get_worker().plugins[_PLUGIN]
    if plugin.runner is None:
        raise SweepError("a worker has no model")
    return plugin.runner.run(task)


def _merge(studies: Sequence[Study], results: list[Result]) -> Result:
    return merge_results(studies, results)


def _versions() -> dict[str, str]:
    """Return versions by product: plain, for a worker of another version sends its own."""
    return {
        _STUDIO: tool_version(),
        "Python": platform.python_version(),
        # Another one may sum in another order.
        "NumPy": np.__version__,
        "Numba": version("numba"),
    }


def _series(product: str, version: str) -> list[str]:
    """Return the part of a version that all workers must share."""
    return version.split(".")[: None if product == _STUDIO else 2]


def _check_versions(client: distributed.Client) -> None:
    """Make sure that all workers have the versions of this process.

    Raises
    ------
    SweepError
        If one has not.
    """
    try:
        found: dict[str, dict[str, str]] = client.run(_versions)
    except (OSError, TimeoutError, CancelledError):
        raise
    except Exception as exc:  # where a worker lacks the module, Dask makes one of its text
        if not isinstance(exc, ImportError) and "ModuleNotFoundError" not in str(exc):
            raise
        raise SweepError(
            "a worker lacks Kuiper Studio: install kuiper-studio[datasets] "
            f"{tool_version()} for all of them"
        ) from exc
    mine = _versions()
    for address, theirs in found.items():
        others = [
            name
            for name in mine
            if _series(name, mine[name]) != _series(name, theirs.get(name, "unknown"))
        ]
        if others:
            has, this = (
                " and ".join(f"{name} {each.get(name, 'unknown')}" for name in others)
                for each in (theirs, mine)
            )
            raise SweepError(
                f"the worker at {address} has {has}, but the command {this}: all need the same"
            )


def _register(client: distributed.Client, make: Callable[[], Worker], *, own: bool) -> None:
    try:
        client.register_plugin(_ModelPlugin(make, own=own), name=_PLUGIN)
    except EngineError:
        raise
    except ImportError as exc:
        raise SweepError(f"a worker lacks a library: {exc}") from exc


def _unregister(client: distributed.Client) -> None:
    if client.status == "running":
        try:
            client.unregister_worker_plugin(_PLUGIN)
        except (OSError, ValueError, TimeoutError):
            return


# Tasks


class _Workers:
    """Looks now and then how many workers there are: some may go, and others come."""

    def __init__(self, client: distributed.Client) -> None:
        self._client = client
        self._threads = 0
        self._looked = -math.inf
        self._seen = time.monotonic()

    def threads(self) -> int:
        """Return the number of threads of all workers.

        Raises
        ------
        SweepError
            If there have been no workers for long.
        """
        now = time.monotonic()
        if now - self._looked < _COUNTING:
            return self._threads
        self._looked = now
        try:
            self._threads = sum(self._client.nthreads().values())
        except OSError as exc:
            raise CommClosedError from exc
        if self._threads:
            self._seen = now
        elif now - self._seen > _WITHOUT_WORKERS:
            raise SweepError(
                f"all workers have been gone for {_WITHOUT_WORKERS} seconds; {_RESUMED}"
            )
        return self._threads


def submit_ahead(
    client: distributed.Client,
    task: Callable[[Any], Any],
    given: Sequence[Any],
    threads: Callable[[], int],
    submitted: Callable[[Any], None],
    finished: Callable[[int], None],
    check: Callable[[], None] = lambda: None,
) -> None:
    """Submit tasks in their order, never many more than the workers can run.

    Parameters
    ----------
    client : distributed.Client
    task : callable
    given : sequence
        What each task takes.
    threads : callable
        Returns the number of threads of all workers.
    submitted : callable
        Called with the futures of the tasks in their order, before they are done.
    finished : callable
        Called with the place of each task that is done.
    check : callable, optional
        Called several times a second; its exception ends the work.
    """
    running: dict[Any, int] = {}
    done: SimpleQueue[Any] = SimpleQueue()  # to wait for a list of futures takes its length
    next_place = 0
    while next_place < len(given) or running:
        check()
        most = _AHEAD * max(1, threads())
        while next_place < len(given) and len(running) < most:
            future = client.submit(task, given[next_place], pure=False)
            running[future] = next_place
            future.add_done_callback(done.put)
            submitted(future)
            next_place += 1
        try:
            future = done.get(timeout=_PATIENCE)
        except Empty:
            _require_scheduler(client)
            continue
        if _is_finished(future):
            finished(running.pop(future))
        else:
            future.add_done_callback(done.put)


def _require_scheduler(client: distributed.Client) -> None:
    if client.status != "running":
        raise CommClosedError


def _is_finished(future: Any) -> bool:  # noqa: ANN401 - Dask's, without types
    """Return whether a task is finished; raise its error if it failed."""
    if future.status == "cancelled":
        raise CancelledError
    if future.status != "error":
        return bool(future.status == "finished")  # lost with its worker, it runs again
    error = future.exception()
    if isinstance(error, distributed.KilledWorker):
        raise SweepError(
            f"a task ended {error.allowed_failures + 1} workers, one after the other, most "
            "likely because memory ran out or a library crashed; try fewer workers or "
            f"--backend numpy; {_RESUMED}"
        )
    raise error
