"""The trials: how each interrupts a sweep, and what must be right afterwards."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import psutil

from survival.runs import HOLDER, SHARD, Sweep, kill, start_module, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import numpy as np

__all__ = ["TRIALS", "SkippedError", "Trial", "TrialError"]

_STOPPED: Final = 2  # exit status of a sweep that says why it stops
_LATER: Final = 0.03  # seconds, at most, from a finished task to the interruption
_TRIES: Final = 12  # to hit a file while it is written
_DEATH: Final = 20.0  # seconds that processes have to notice that their client is gone


class TrialError(Exception):
    """What a trial found wrong."""


class SkippedError(Exception):
    """A trial that this machine does not allow."""


@dataclass
class Trial:
    """One interrupted sweep.

    Attributes
    ----------
    inputs : Path
        Folder of the inputs; a trial that changes them makes a copy.
    scratch : Path
        Folder of its own.
    expected : dict
        Results of an undisturbed sweep of the same inputs.
    rng : numpy.random.Generator
    where : str
        Where it was interrupted.
    before : int
        Tasks that were done then.
    again : int
        Of these, the ones that were computed again.
    after : int
        Tasks that were computed afterwards for the first time.
    """

    inputs: Path
    scratch: Path
    expected: dict[str, Any]
    rng: np.random.Generator
    where: str = ""
    before: int = 0
    again: int = 0
    after: int = 0
    _noted: dict[str, tuple[int, int]] = field(default_factory=dict)
    _sweeps: list[Sweep] = field(default_factory=list)

    @property
    def tasks(self) -> int:
        """Number of tasks of the sweep."""
        return -(-len(list(self.inputs.iterdir())) // SHARD)

    def sweep(
        self, *options: str, inputs: Path | None = None, output: Path | None = None
    ) -> Sweep:
        """Return the sweep that is interrupted."""
        sweep = Sweep(inputs or self.inputs, output or self.scratch / "out", options)
        self._sweeps.append(sweep)
        return sweep

    def close(self) -> None:
        """End what goes on."""
        for sweep in self._sweeps:
            sweep.end()

    def moment(self, sweep: Sweep) -> None:
        """Wait for a random moment in the middle of a run."""
        sweep.wait_for(int(self.rng.integers(1, self.tasks * 3 // 4)))
        time.sleep(float(self.rng.random()) * _LATER)

    def note(self, sweep: Sweep, where: str) -> None:
        """Note how far the sweep was when it was interrupted."""
        self._noted = sweep.shards()
        self.where, self.before = where, len(self._noted)

    def expect(self, sweep: Sweep, status: int, *words: str) -> None:
        """Wait for the end of a run, and check how it ended and what it said."""
        ended = sweep.finish()
        if ended.status != status or not all(word in ended.said for word in words):
            raise TrialError(
                f"status {ended.status} instead of {status}, wanted {words}: {ended.said}"
            )
        if status == _STOPPED and len(ended.said.splitlines()) != 1:
            raise TrialError(f"no single sentence: {ended.said}")

    def check(self, sweep: Sweep) -> None:
        """Compare the finished sweep with the undisturbed one, and count its tasks."""
        now = sweep.shards()
        self.again = sum(now.get(name) != facts for name, facts in self._noted.items())
        self.after = len(now.keys() - self._noted.keys())
        if len(now) != self.tasks:
            raise TrialError(f"{len(now)} results of {self.tasks} tasks")
        left = [*sweep.output.rglob(HOLDER)]
        if left:
            raise TrialError(f"unfinished files are left: {left[0]}")
        found = sweep.results()
        other = [name for name in self.expected if found.get(name) != self.expected[name]]
        if other or found.keys() != self.expected.keys():
            raise TrialError(f"other results: {', '.join(other[:4])}")


def _resume(trial: Trial, sweep: Sweep, *options: str) -> None:
    sweep.start("--resume", *options)
    trial.expect(sweep, 0)
    trial.check(sweep)


def kill_worker(trial: Trial) -> None:
    """Kill one worker of two, or both; the run goes on by itself."""
    sweep = trial.sweep("--workers", "2")
    sweep.start()
    trial.moment(sweep)
    workers = sweep.workers()
    count = int(trial.rng.integers(1, 3))
    chosen = [workers[int(place)] for place in trial.rng.permutation(len(workers))[:count]]
    kill(chosen)
    trial.note(sweep, f"{len(chosen)} of {len(workers)} workers killed")
    trial.expect(sweep, 0)
    trial.check(sweep)


def kill_client(trial: Trial) -> None:
    """Kill the command; its workers end too, and a new one goes on."""
    sweep = trial.sweep("--workers", "2")
    process = sweep.start()
    trial.moment(sweep)
    others = sweep.processes()
    process.kill()
    process.wait()
    trial.note(sweep, "the command killed")
    if not wait_until(lambda: not any(map(_is_alive, others)), _DEATH):
        raise TrialError("workers outlive the command")
    trial.note(sweep, trial.where)  # what its workers had finished by then counts too
    _resume(trial, sweep, "--workers", "2")


def _is_alive(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


@contextmanager
def _cluster(trial: Trial, name: str) -> Iterator[tuple[str, Any, list[Any]]]:
    """Start a scheduler and two workers by hand; yield its address and the processes."""
    place = trial.scratch / f"{name}.address"
    log = (trial.scratch / f"{name}.log").open("wb")
    scheduler = start_module(
        "dask", "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
        "--scheduler-file", str(place), stderr=log,
    )  # fmt: skip
    workers: list[subprocess.Popen[bytes]] = []
    try:
        wait_until(lambda: place.exists() and place.stat().st_size > 0)
        workers += [
            start_module(
                "dask", "worker", "--scheduler-file", str(place), "--nthreads", "1",
                "--no-dashboard", "--local-directory", str(trial.scratch), stderr=log,
            )
            for _ in range(2)
        ]  # fmt: skip
        address = _address_of(place)
        _wait_for_workers(address, 2)
        yield address, scheduler, workers
    finally:
        kill([scheduler, *workers])
        for each in (scheduler, *workers):
            each.wait()
        log.close()


def _address_of(place: Path) -> str:
    import json

    return str(json.loads(place.read_bytes())["address"])


def _wait_for_workers(address: str, count: int) -> None:
    import distributed

    with distributed.Client(address, set_as_default=False) as client:
        client.wait_for_workers(count, timeout=60)


def kill_scheduler(trial: Trial) -> None:
    """Kill the scheduler; the command says so, and a new scheduler goes on."""
    with _cluster(trial, "first") as (address, scheduler, _):
        sweep = trial.sweep()
        sweep.start("--scheduler", address)
        trial.moment(sweep)
        scheduler.kill()
        trial.note(sweep, "the scheduler killed")
        trial.expect(sweep, _STOPPED, "the connection to the scheduler", "--resume")
    trial.note(sweep, trial.where)  # workers end the tasks that they had
    with _cluster(trial, "second") as (address, _, _):
        _resume(trial, sweep, "--scheduler", address)


def lose_machine(trial: Trial) -> None:
    """Kill a worker that was started by hand, with its nanny; the other does its tasks."""
    with _cluster(trial, "only") as (address, _, workers):
        sweep = trial.sweep()
        sweep.start("--scheduler", address)
        trial.moment(sweep)
        kill([workers[int(trial.rng.integers(2))]])
        trial.note(sweep, "1 of 2 machines gone")
        trial.expect(sweep, 0)
        trial.check(sweep)


def _damage(path: Path, rng: np.random.Generator) -> str:
    """Make an input unreadable, in a random way; return its content as it was."""
    kind = str(rng.choice(["cut", "removed", "noise", "other shape"]))
    data = path.read_bytes()
    if kind == "removed":
        path.unlink()
    elif kind == "cut":
        path.write_bytes(data[: int(rng.integers(len(data)))])
    elif kind == "noise":
        path.write_bytes(rng.bytes(len(data)))
    else:
        path.write_bytes(data.replace(b"(1, 1, 32, 32)", b"(1, 1, 16, 64)"))
    return kind


@contextmanager
def _damaged(trial: Trial) -> Iterator[tuple[list[int], Callable[[], None]]]:
    """Damage some of the inputs, before their folder is listed."""
    names = sorted(trial.inputs.iterdir())
    # A removed file is listed where it was, by a list.
    chosen = sorted(trial.rng.permutation(len(names))[: int(trial.rng.integers(2, 6))].tolist())
    kept = {names[place]: names[place].read_bytes() for place in chosen}
    kinds = [_damage(path, trial.rng) for path in kept]
    trial.where = f"{len(chosen)} inputs: {', '.join(kinds)}"

    def mend() -> None:
        for path, data in kept.items():
            path.write_bytes(data)

    try:
        yield chosen, mend
    finally:
        mend()


def _listed(trial: Trial) -> Path:
    """Return a list of all inputs, also of those that are to be removed."""
    path = trial.scratch / "list.txt"
    path.write_text("".join(f"{name}\n" for name in sorted(trial.inputs.iterdir())))
    return path


def damage_inputs(trial: Trial) -> None:
    """Damage inputs; they are listed and passed over, and only their tasks run again."""
    sweep = trial.sweep("--workers", "0", inputs=_listed(trial))
    with _damaged(trial) as (chosen, mend):
        where = trial.where
        sweep.start()
        trial.expect(sweep, 0, f"{len(chosen)} inputs of")
        found = [each["index"] for each in sweep.results()["failed"]]
        if found != chosen:
            raise TrialError(f"it lists {found}, damaged are {chosen}")
        trial.note(sweep, where)
        mend()
        _resume(trial, sweep)
    _allow(trial, {place // SHARD for place in chosen})


def damage_inputs_strictly(trial: Trial) -> None:
    """Damage inputs; with --strict the first one stops the sweep."""
    sweep = trial.sweep("--workers", "2", "--strict", inputs=_listed(trial))
    with _damaged(trial) as (chosen, mend):
        where = f"{trial.where}, --strict"
        sweep.start()
        trial.expect(sweep, _STOPPED, "input ", ".npy")
        stopped = sweep.finish().said
        if not any(f"input {place}:" in stopped for place in chosen):
            raise TrialError(f"damaged are {chosen}, it says {stopped}")
        trial.note(sweep, where)
        mend()
        _resume(trial, sweep)


def _allow(trial: Trial, tasks: set[int]) -> None:
    """Allow tasks to be computed again, those whose inputs have changed, and no others."""
    if trial.again != len(tasks):
        raise TrialError(f"{trial.again} tasks were computed again, {len(tasks)} had changed")
    trial.where += f" (in {len(tasks)} tasks, mended)"
    trial.again = 0


def fill_disk(trial: Trial) -> None:
    """Let the disk of the results be full; when there is room again, the sweep goes on."""
    whole = sum(len(each) for each in trial.expected.values() if isinstance(each, bytes))
    room = int(whole * trial.rng.uniform(0.2, 0.8)) >> 10
    disk = trial.scratch / "disk"
    disk.mkdir()
    if _mount("-t", "tmpfs", "-o", f"size={room}k", "tmpfs", str(disk)):
        raise SkippedError("a tmpfs cannot be mounted by this user")
    try:
        sweep = trial.sweep("--workers", "2", output=disk / "out")
        sweep.start()
        trial.expect(sweep, _STOPPED, "the disk is full", "--resume")
        trial.note(sweep, f"full at {room} KiB")
        _mount("-o", "remount,size=4g", str(disk))
        _resume(trial, sweep)
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=False)


def _mount(*arguments: str) -> int:
    quiet = subprocess.DEVNULL
    return subprocess.run(["mount", *arguments], stderr=quiet, check=False).returncode


def interrupt_shard(trial: Trial) -> None:
    """Kill the command while it writes the result of a task."""
    first = int(trial.rng.integers(1, trial.tasks * 3 // 4))
    _interrupt(trial, "shards", first, "a shard half written")


def interrupt_dump(trial: Trial) -> None:
    """Kill the command while it writes a shard of the dump, or between two of them."""
    sweep = trial.sweep("--workers", "0")
    process = sweep.start()
    trial.moment(sweep)
    begun = len([*sweep.output.glob("dump.zarr/*/c/*")])
    wait_until(
        lambda: len([*sweep.output.glob("dump.zarr/*/c/*")]) > begun or not sweep.is_running
    )
    _end(process)
    trial.note(sweep, "a dump half written")
    arrays = len([*sweep.output.glob("dump.zarr/*/c")])
    written = len([*sweep.output.glob("dump.zarr/*/c/*")])
    trial.where += f" ({written} of {arrays * trial.tasks} parts)"
    _resume(trial, sweep)


def interrupt_summary(trial: Trial) -> None:
    """Kill the command while it writes the results of the whole sweep."""
    _interrupt(trial, "", trial.tasks, "the results half written")


def _interrupt(trial: Trial, folder: str, shards: int, where: str) -> None:
    """Kill a run while a file is being written to a folder of the results."""
    sweep = trial.sweep("--workers", "0")
    place = sweep.output / folder
    for _ in range(_TRIES):
        shutil.rmtree(sweep.output, ignore_errors=True)
        process = sweep.start()
        sweep.wait_for(shards)
        wait_until(lambda: any(place.glob(HOLDER)) or not sweep.is_running)
        time.sleep(float(trial.rng.random()) * 0.002)
        _end(process)
        left = [path for path in place.glob(f"{HOLDER}/*") if path.is_file()]
        if left and not (sweep.output / "summary.json").exists():
            size = left[0].stat().st_size
            trial.note(sweep, f"{where} ({size} bytes)")
            _resume(trial, sweep)
            return
    raise TrialError("no file was hit while it was written")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the command, whose child works, and wait until both are gone."""
    below: list[psutil.Process] = []
    with suppress(psutil.NoSuchProcess):
        below = psutil.Process(process.pid).children(recursive=True)
    with suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGKILL)
    process.wait()
    psutil.wait_procs(below, timeout=_DEATH)


TRIALS: Final[dict[str, Callable[[Trial], None]]] = {
    "worker": kill_worker,
    "client": kill_client,
    "scheduler": kill_scheduler,
    "machine": lose_machine,
    "inputs": damage_inputs,
    "strict": damage_inputs_strictly,
    "disk": fill_disk,
    "shard": interrupt_shard,
    "dump": interrupt_dump,
    "summary": interrupt_summary,
}
"""By name."""
