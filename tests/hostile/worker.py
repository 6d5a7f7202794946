"""Runs the cases of some seeds in this process, and says so line by line.

The process may end at any line: who started it knows from the last one which model did it.
"""

from __future__ import annotations

import contextlib
import io
import resource
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import engine
from engine.cost import cost, memory
from engine.dump import DumpOptions, write_dump
from engine.errors import EngineError
from engine.inputs import InputSource, load_inputs
from engine.self_check import self_check
from engine.session import Session
from hostile.models import model_of, write_model

if TYPE_CHECKING:
    from collections.abc import Callable

BOUND: Final = 256 << 20  # bytes that values may take
ADDRESSES: Final = 6 << 30  # bytes of address space: what is taken beyond fails at once
ALLOWED: Final = 5 * BOUND  # that a model may add to what the process has taken at most
BACKENDS: Final = ("numpy", "onnxruntime", "ncnn", "auto")


def say(*words: object) -> None:
    """Write a line, at once."""
    print(*words, flush=True)


def peak() -> int:
    """Most bytes that the process has had in memory.

    Not by getrusage, which counts what the parent had when it made the process.
    """
    status = Path("/proc/self/status").read_text("ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


class Cases(Protocol):
    """What is run, by seed."""

    def run(self, seed: int, way: str) -> str:
        """Run the case of a seed in one of several ways; what came of it."""
        ...


class Models:
    """Runs models.

    Parameters
    ----------
    folder : Path
        Empty.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def run(self, seed: int, backend: str) -> str:
        """Run the model of a seed as a user would; what came of it."""
        folder = self._folder
        graph = engine.load(write_model(model_of(seed), folder), folder / "m.pnnx.bin")
        for operator in graph.operators:
            cost(operator)
        memory(graph)
        session = Session(graph, backend, memory_bound=BOUND)
        operands = graph.input_operands
        with session.within_bound():
            session.feed(load_inputs([InputSource("random")] * len(operands), operands))
        outcome = "ran"
        try:
            session.run()
            session.outputs()
        except EngineError as exc:
            outcome = f"refused: {exc}"
        if backend == "numpy":
            options = DumpOptions(format="folder", statistics_only=True, overwrite=True)
            write_dump(session, folder / "dump", options)
            if outcome == "ran":
                self_check(session)
        else:  # a second pass, in which operators are tried together
            with contextlib.suppress(EngineError):
                session.feed(
                    load_inputs([InputSource("random", seed=1)] * len(operands), operands)
                )
                session.run()
        return outcome


def main(make_cases: Callable[[Path], Cases]) -> None:
    """Run the seeds of the command line: first, last, and the backends, or other ways.

    Parameters
    ----------
    make_cases : callable
        Takes an empty folder.
    """
    first, last, ways = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3].split(",")
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    warnings.simplefilter("error")
    with tempfile.TemporaryDirectory() as name:
        cases = make_cases(Path(name))
        for seed in range(first, last + 1):
            for way in ways:
                say("begin", seed, way)
                before, started = peak(), time.perf_counter()
                try:
                    outcome = cases.run(seed, way)
                except EngineError as exc:
                    outcome = f"refused: {exc}"
                except Exception as exc:
                    outcome = f"unforeseen {type(exc).__name__}: {exc}"
                added = peak() - before
                if added > ALLOWED:
                    outcome = f"memory {added >> 20} MiB: {outcome}"
                say("end", seed, way, f"{time.perf_counter() - started:.2f}",
                    outcome.replace("\n", " "))  # fmt: skip


if __name__ == "__main__":
    with contextlib.redirect_stderr(io.StringIO()):  # libraries say much
        main(Models)
