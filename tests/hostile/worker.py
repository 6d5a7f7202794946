"""Runs the cases of some seeds in this process, and logs each in a line.

The process may end at any line. The last line tells its parent which model ended it.
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

import numpy as np

import engine
from engine.axes import infer_layouts, plan_view
from engine.cost import cost, memory
from engine.dump import DumpOptions, write_dump
from engine.errors import EngineError
from engine.inputs import InputSource, load_inputs
from engine.self_check import self_check
from engine.session import Session
from hostile.models import model_of, write_model

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.axes import Layout

BOUND: Final = 256 << 20  # bytes that values may take
ADDRESSES: Final = 6 << 30  # bytes of address space: allocations beyond it fail at once
ALLOWED: Final = 5 * BOUND  # bytes that a model may add to the peak of the process
BACKENDS: Final = ("numpy", "onnxruntime", "ncnn", "auto")
_LARGEST_FOLDED: Final = 1 << 20  # elements of values that are folded to pictures


def say(*words: object) -> None:
    """Write a line, at once."""
    print(*words, flush=True)


def peak() -> int:
    """Return the most bytes that the process has had in memory.

    Not by getrusage, which counts what the parent had when it made the process.
    """
    status = Path("/proc/self/status").read_text("ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


def look_at(session: Session, chosen: Mapping[str, Layout] | None = None) -> None:
    """Lay out the values of a session as the window does, and fold them to pictures.

    Parameters
    ----------
    session : Session
    chosen : mapping of str to Layout, optional
        By operand.
    """
    computed = [name for name in session.graph.operands if session.has_value(name)]
    values = {name: session.value(name) for name in computed}
    arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    shapes = {name: array.shape for name, array in arrays.items()}
    layouts = infer_layouts(session.graph, shapes, chosen)
    for name, layout in layouts.items():
        layout.text()
        array = arrays.get(name)
        if array is None or array.size > _LARGEST_FOLDED:
            continue
        plan = plan_view(layout, array.shape)
        if plan is None:
            continue
        folded = plan.fold(array)
        last = tuple(size - 1 for size in folded.shape)
        if folded.shape != plan.folded_shape or plan.place(plan.index(last)) != last:
            raise AssertionError(f"{name} is folded to another place")


class Cases(Protocol):
    """Cases to run, by seed."""

    def run(self, seed: int, way: str) -> str:
        """Run the case of a seed in one of several variants; return its outcome."""
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
        """Run the model of a seed as a user would; return its outcome."""
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
            infer_layouts(graph)
            look_at(session)
            options = DumpOptions(format="folder", statistics_only=True, overwrite=True)
            write_dump(session, folder / "dump", options)
            if outcome == "ran":
                self_check(session)
        else:  # a second pass, which tries fused operators
            with contextlib.suppress(EngineError):
                session.feed(
                    load_inputs([InputSource("random", seed=1)] * len(operands), operands)
                )
                session.run()
        return outcome


def main(make_cases: Callable[[Path], Cases]) -> None:
    """Run the seeds of the command line: first, last, and the backends or other variants.

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
    with contextlib.redirect_stderr(io.StringIO()):  # libraries log much
        main(Models)
