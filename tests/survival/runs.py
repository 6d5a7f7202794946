"""Sweeps by the command line, as the trials start, watch and end them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import psutil

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["SHARD", "Outcome", "Sweep", "kill", "make_inputs", "start_module", "wait_until"]

MODEL: Final = Path(__file__).resolve().parents[2] / "samples" / "digits" / "digits.pnnx.param"
SHARD: Final = 8
"""Inputs of a task."""
PATIENCE: Final = 900.0  # seconds after which something counts as hanging
HOLDER: Final = ".kuiper-*"  # folders of files that are being written
_LOOK: Final = 0.0005  # seconds


def make_inputs(folder: Path, count: int, rng: np.random.Generator) -> None:
    """Write random inputs of the sample of digits, a file each."""
    folder.mkdir()
    for number in range(count):
        np.save(folder / f"{number:05}.npy", rng.random((1, 1, 32, 32), np.float32))


class Outcome:
    """How a sweep ended.

    Attributes
    ----------
    status : int
        Exit status; negative for a signal.
    said : str
        What it wrote to standard error.
    """

    def __init__(self, status: int, said: str) -> None:
        self.status, self.said = status, said


class Sweep:
    """A sweep of the inputs into a folder, by the command line, in as many runs as it takes.

    Parameters
    ----------
    inputs, output : path
    options : sequence of str
        Of the command.
    """

    def __init__(self, inputs: Path, output: Path, options: Sequence[str] = ()) -> None:
        self.inputs, self.output = inputs, output
        self._options = [*options]
        self._process: subprocess.Popen[bytes] | None = None
        # In a folder of its own, which has room when the disk of the results is full.
        self._log = Path(tempfile.mkdtemp(dir=inputs.parent)) / "log"

    def start(self, *more: str) -> subprocess.Popen[bytes]:
        """Start a run."""
        with self._log.open("wb") as log:
            self._process = start_module(
                "kuiper_studio", "sweep", str(MODEL), "--inputs", str(self.inputs),
                "--output", str(self.output), "--shard", str(SHARD), "--batch", str(SHARD),
                "--dump", "--statistics", "--operators", "block3*", "pool", "classifier",
                "--backend", "numpy", *self._options, *more, stderr=log,
            )  # fmt: skip
        return self._process

    def finish(self) -> Outcome:
        """Wait for the end of the run."""
        assert self._process is not None
        status = self._process.wait(PATIENCE)
        return Outcome(status, self._log.read_text(errors="replace").strip())

    def end(self) -> None:
        """Kill the run, if it goes on."""
        if self._process is not None and self.is_running:
            kill([self._process])
            self._process.wait()

    @property
    def is_running(self) -> bool:
        """Whether the run goes on."""
        return self._process is not None and self._process.poll() is None

    def processes(self) -> list[psutil.Process]:
        """Return the processes of the run, beside the one that was started."""
        assert self._process is not None
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self._process.pid).children(recursive=True)
        return []

    def workers(self) -> list[psutil.Process]:
        """Return the processes that run inputs."""
        return [each for each in self.processes() if "spawn_main" in _command_of(each)]

    def shards(self) -> dict[str, tuple[int, int]]:
        """Return the results of tasks by name, with what changes when one is written."""
        found = {}
        for path in (self.output / "shards").glob("*.npz"):
            with suppress(FileNotFoundError):
                facts = path.stat()
                found[path.name] = (facts.st_ino, facts.st_mtime_ns)
        return found

    def wait_for(self, shards: int) -> None:
        """Wait until so many tasks are done."""
        wait_until(lambda: len(self.shards()) >= shards or not self.is_running)

    def results(self) -> dict[str, Any]:
        """Return everything that a sweep found, to compare."""
        summary = json.loads((self.output / "summary.json").read_bytes())
        found: dict[str, Any] = {
            "operands": summary["operands"],
            "done": summary["inputs"]["done"],
            "failed": summary["inputs"]["failed"],
        }
        with np.load(self.output / "statistics.npz") as arrays:
            found |= {f"statistics {name}": arrays[name].tobytes() for name in arrays.files}
        dump = self.output / "dump.zarr"
        for path in sorted(dump.rglob("*")):
            if path.is_file():
                found[f"dump {path.relative_to(dump)}"] = path.read_bytes()
        # It says how the inputs were given: as a folder or as a list.
        group = json.loads(found["dump zarr.json"])
        del group["attributes"]["kuiper_studio"]["source"]
        found["dump zarr.json"] = group
        return found


def _command_of(process: psutil.Process) -> str:
    with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
        return " ".join(process.cmdline())
    return ""


def start_module(module: str, *arguments: str, stderr: Any) -> subprocess.Popen[bytes]:
    """Start a module of this environment as a program."""
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def kill(processes: Sequence[psutil.Process | subprocess.Popen[bytes]]) -> None:
    """Kill processes at once, with those that they have started."""
    every: list[int] = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            below = psutil.Process(process.pid).children(recursive=True)
            every += [process.pid, *(each.pid for each in below)]
    for pid in every:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def wait_until(condition: Callable[[], bool], seconds: float = PATIENCE) -> bool:
    """Wait for a condition; return whether it holds in the end."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(_LOOK)
    return True
