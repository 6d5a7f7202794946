"""Work in a process of its own, that is timed from here.

A thread pool, the memory of a process and the time to start can be measured in no other
way. The process imports a function by name, calls it with arguments to get ready, and then
does a slice of the work whenever it is asked to.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TextIO

from benchmarks.measure import Absent

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Process", "answer_of", "peak_memory"]

_REST = 0.1  # seconds; ONNX Runtime's threads wait awake for about 50 ms
_TESTS = Path(__file__).resolve().parent.parent


class Process:
    """A process that repeats some work.

    Parameters
    ----------
    make : callable
        Function of a module; called over there with `arguments`, it gives the work, which is
        a function without arguments. What it raises becomes `Absent` here.
    *arguments : str, int, float or None
    repeat : int
        How often the work is done in a slice.
    warming : int
        How often it is done before that without being counted, after a moment in which nobody
        works: threads of a library that has just had its turn in another process wait awake
        for a while, and would take the processors from this one.
    """

    def __init__(
        self, make: Callable[..., Any], *arguments: object, repeat: int = 1, warming: int = 0
    ) -> None:
        self._repeat, self._warming = repeat, warming
        self._process = _start(make, arguments, "repeat")
        answer = self._process.stdout.readline()
        if answer.strip() != "ready":
            self.close()
            raise Absent(answer.strip() or "the process ended by itself")

    def __call__(self) -> float:
        """Do a slice; the median of the seconds that each repetition took."""
        if self._warming:
            time.sleep(_REST)
        print(self._warming, self._repeat, file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def answer_of(work: Callable[..., Any], *arguments: object) -> Any:
    """Do some work in a process of its own, once; what it returns comes as JSON.

    Raises
    ------
    Absent
        With what it raised.
    """
    process = _start(work, arguments, "once")
    output, _ = process.communicate()
    if process.returncode:
        raise Absent(output.strip().splitlines()[-1] if output.strip() else "the process died")
    return json.loads(output.splitlines()[-1])


def peak_memory() -> float:
    """Most memory that this process has had so far, in MB."""
    if sys.platform == "linux":  # whose figure below is the parent's where that has more
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def _start(work: Callable[..., Any], arguments: tuple[object, ...], mode: str) -> Any:
    threads = str(len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count())
    path = os.pathsep.join(filter(None, [str(_TESTS), os.environ.get("PYTHONPATH", "")]))
    call = json.dumps([work.__module__, work.__qualname__, *arguments])
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.processes", mode, call],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": threads},
    )


def _main() -> None:
    module, name, *arguments = json.loads(sys.argv[2])
    answers = _answers_alone()
    try:
        result = getattr(importlib.import_module(module), name)(*arguments)
    except ModuleNotFoundError as exc:
        print(f"{exc.name} is not installed; `make bench` installs it", file=answers)
        raise SystemExit(1) from None
    except Exception as exc:
        print(" ".join(str(exc).split()) or type(exc).__name__, file=answers)
        raise SystemExit(1) from None
    if sys.argv[1] == "once":
        print(json.dumps(result), file=answers)
        return
    print("ready", file=answers)
    for line in sys.stdin:
        seconds = []
        warming, repeat = map(int, line.split())
        for _ in range(warming):
            result()
        for _ in range(repeat):
            started = time.perf_counter()
            result()
            seconds.append(time.perf_counter() - started)
        print(statistics.median(seconds), file=answers)


def _answers_alone() -> TextIO:
    """Take the standard output for the answers; what libraries print goes to the errors."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1, encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return answers


if __name__ == "__main__":
    _main()
