"""Memory: what a full pass takes at most, and what a memory limit costs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypedDict

from benchmarks.measure import Row
from benchmarks.processes import answer_of, peak_memory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.random import Generator

    from benchmarks.measure import Bench
    from engine.runtime import RuntimeGraph
    from engine.session import Session
    from engine.values import Value

MODEL = "resnet50.pnnx.param"
SEED = 0


class Peak(TypedDict):
    """Memory of a process that has run a full pass, in MB.

    `bare` is the most before anything of ours was imported, `imported` with the engine and
    the libraries.
    """

    bare: float
    imported: float
    peak: float
    weights: float
    operands: float


def rows(bench: Bench) -> Iterator[Row]:
    """Peaks with and without known kernels; then what looking at dropped values costs."""
    path = str(bench.model(MODEL))
    for what, backend, folder in (
        ("NumPy", "numpy", "numpy"),
        ("auto, nothing tuned", "auto", "auto"),
        ("auto, tuned", "auto", "auto"),
    ):
        cache = str(bench.folder / folder)
        if what.endswith(", tuned"):
            answer_of(tune, path, cache)
        found: Peak = answer_of(full_pass, path, backend, cache)
        allowed = found["weights"] + found["operands"]
        for start, name in (("bare", "the bare process"), ("imported", "what is imported")):
            yield Row(
                f"peak of a pass of resnet50 ({what})",
                f"{found['peak']:.0f} MB",
                found["peak"] - found[start] - allowed,
                200 if start == "imported" else None,
                f"{name} + weights + operands",
                f"{found[start] + allowed:.0f} MB",
                "MB",
            )
    for part in (2, 8, 32):
        for way in ("forwards", "backwards"):
            again, count = answer_of(computed_again, path, part, way)
            yield Row(
                f"look {way} at all values, 1/{part} of them kept",
                f"{again} computed",
                again / count,
                beside="values",
                other=str(count),
            )


def full_pass(path: str, backend: str, cache: str) -> Peak:
    """Run a model and keep everything; for a process of its own."""
    os.environ["KUIPER_STUDIO_CACHE"] = cache
    bare = peak_memory()
    import engine
    from engine.backends import usable_libraries
    from engine.values import value_nbytes

    graph = engine.load(path)
    if backend != "numpy":
        for library in usable_libraries():
            library.load(whole=True)
    session = _fed(graph, backend)
    imported = peak_memory()
    session.run()
    operands = sum(value_nbytes(session.value(name)) for name in graph.operands)
    weights = sum(a.nbytes for op in graph.operators for a in op.attributes.values())
    return {
        "bare": bare,
        "imported": imported,
        "peak": peak_memory(),
        "weights": weights / 1e6,
        "operands": operands / 1e6,
    }


def tune(path: str, cache: str) -> None:
    """Run a model and tune its kernels."""
    os.environ["KUIPER_STUDIO_CACHE"] = cache
    import engine

    graph = engine.load(path)
    session = _fed(graph, "auto")
    session.run()
    session.tune()


def computed_again(path: str, part: int, way: str) -> Sequence[int]:
    """Operators computed while all values are looked at, and the number of values."""
    import engine
    from engine.cost import memory
    from engine.runtime import RuntimeOperator

    forward = RuntimeOperator.forward
    calls: list[RuntimeOperator] = []

    def counted(
        operator: RuntimeOperator, inputs: Sequence[Value], generator: Generator | None = None
    ) -> tuple[Value, ...]:
        calls.append(operator)
        return forward(operator, inputs, generator)

    RuntimeOperator.forward = counted  # type: ignore[method-assign]
    graph = engine.load(path)
    session = _fed(graph, "numpy", memory(graph).total // part)
    session.run()
    calls.clear()
    names = [operand.name for operator in graph.operators for operand in operator.outputs]
    for name in names if way == "forwards" else names[::-1]:
        session.value(name)
    return len(calls), len(names)


def _fed(graph: RuntimeGraph, backend: str, limit: int | None = None) -> Session:
    import engine
    from engine.inputs import InputSource, load_inputs

    operands = graph.input_operands
    session = engine.Session(graph, backend, memory_limit=limit)
    session.feed(load_inputs([InputSource("random", seed=SEED)] * len(operands), operands))
    return session
