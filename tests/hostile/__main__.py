"""Runs models that are made to do harm, and reports the harm."""

from __future__ import annotations

import argparse
import subprocess
import sys
import threading
from collections import Counter
from queue import Empty, Queue
from typing import IO, NamedTuple

from hostile.worker import BACKENDS

SECONDS = 30.0  # seconds that one model may take on one backend
WORKER = ("-m", "hostile.worker")  # arguments of Python
FILE_WORKER = ("-m", "hostile.file_worker")
WINDOW_WORKER = ("-m", "hostile.window_worker")
# For damaged files.
KINDS = ("ncnn", "recording", "dump", "arrays", "matches", "choices", "source")


class Finding(NamedTuple):
    """A model that did harm.

    Attributes
    ----------
    seed : int
    backend : str
    what : str
    """

    seed: int
    backend: str
    what: str


def watch(
    first: int,
    last: int,
    backends: tuple[str, ...] = BACKENDS,
    seconds: float = SECONDS,
    worker: tuple[str, ...] = WORKER,
) -> tuple[list[Finding], Counter[str]]:
    """Run the models of some seeds, each on each backend.

    Parameters
    ----------
    first, last : int
        Seeds.
    backends : tuple of str
    seconds : float
        Seconds after which a model counts as endless.
    worker : tuple of str
        Arguments of Python; the seeds and backends follow them.

    Returns
    -------
    findings : list of Finding
    outcomes : Counter
        Number of models by outcome: how many ran, and how many were refused.
    """
    findings: list[Finding] = []
    outcomes: Counter[str] = Counter()
    seed, todo = first, backends
    while seed <= last:
        # After a crash: the other backends of its seed, then all later seeds.
        until = last if todo == backends else seed
        command = [sys.executable, *worker, str(seed), str(until), ",".join(todo)]
        stopped = _run_worker(command, seconds, findings, outcomes)
        if stopped is None:
            seed, todo = until + 1, backends
            continue
        seed, backend = stopped
        todo = backends[backends.index(backend) + 1 :]
        if not todo:
            seed, todo = seed + 1, backends
    return findings, outcomes


def _run_worker(
    command: list[str], seconds: float, findings: list[Finding], outcomes: Counter[str]
) -> tuple[int, str] | None:
    """Run one worker; return the seed and backend at which it ended too early."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        lines: Queue[str | None] = Queue()
        assert process.stdout is not None
        threading.Thread(target=_collect, args=(process.stdout, lines), daemon=True).start()
        present: tuple[int, str] | None = None
        while True:
            try:
                # At first the process imports everything that the first model needs.
                line = lines.get(timeout=seconds if present else 4 * seconds)
            except Empty:
                process.kill()
                if present is None:
                    raise RuntimeError("a worker did not begin") from None
                findings.append(Finding(*present, f"endless: more than {seconds:g} s"))
                return present
            if line is None:
                break
            word, seed, backend, *rest = line.rstrip("\n").split(" ", 4)
            present = (int(seed), backend)
            if word == "end":
                outcome = rest[1]
                outcomes[outcome.split(":")[0].split(" ")[0]] += 1
                if not outcome.startswith(("ran", "refused")):
                    findings.append(Finding(int(seed), backend, outcome))
        process.wait()
    if process.returncode and present is not None:
        findings.append(Finding(*present, f"crashed: exit status {process.returncode}"))
        return present
    if process.returncode:
        raise RuntimeError(f"a worker did not begin: exit status {process.returncode}")
    return None


def _collect(stream: IO[str], lines: Queue[str | None]) -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="hostile", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="how many")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--backends", default=",".join(BACKENDS))
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--files", action="store_true", help="damaged files instead of models")
    instead.add_argument("--window", action="store_true", help="open the models in a window")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    given = parser.parse_args()
    ways, worker = tuple(given.backends.split(",")), WORKER
    if given.files:
        ways, worker = KINDS, FILE_WORKER
    elif given.window:
        worker = WINDOW_WORKER
    last = given.first + given.seeds - 1
    found, outcomes = watch(given.first, last, ways, given.seconds, worker)
    for finding in found:
        print(f"seed {finding.seed} {finding.backend}: {finding.what}")
    print(", ".join(f"{count} {word}" for word, count in outcomes.items()))
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
