"""Runs the models of some seeds in this process, and says so line by line.

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
from typing import Final

import engine
from engine.cost import cost, memory
from engine.dump import DumpOptions, write_dump
from engine.errors import EngineError
from engine.inputs import InputSource, load_inputs
from engine.self_check import self_check
from engine.session import Session
from hostile.models import model_of, write_model

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


def run(seed: int, backend: str, folder: Path) -> str:
    """Run the model of a seed as a user would; what came of it."""
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
            session.feed(load_inputs([InputSource("random", seed=1)] * len(operands), operands))
            session.run()
    return outcome


def main() -> None:
    """Run the seeds of the command line: first, last, and the backends."""
    first, last, backends = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3].split(",")
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    warnings.simplefilter("error")
    with tempfile.TemporaryDirectory() as name:
        for seed in range(first, last + 1):
            for backend in backends:
                say("begin", seed, backend)
                before, started = peak(), time.perf_counter()
                try:
                    outcome = run(seed, backend, Path(name))
                except EngineError as exc:
                    outcome = f"refused: {exc}"
                except Exception as exc:
                    outcome = f"unforeseen {type(exc).__name__}: {exc}"
                added = peak() - before
                if added > ALLOWED:
                    outcome = f"memory {added >> 20} MiB: {outcome}"
                say("end", seed, backend, f"{time.perf_counter() - started:.2f}",
                    outcome.replace("\n", " "))  # fmt: skip


if __name__ == "__main__":
    with contextlib.redirect_stderr(io.StringIO()):  # libraries say much
        main()
