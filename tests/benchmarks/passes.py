"""Full passes: ours, which keep every operand, beside PyTorch, ONNX Runtime and ncnn."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from benchmarks import peers
from benchmarks.measure import Absent, Row, alternate
from benchmarks.networks import NETWORKS
from benchmarks.processes import Process, answer_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from benchmarks.measure import Bench, Times

PASSES, WARMING = 5, 2  # in a turn, counted and before

OURS = "Kuiper Studio"
PYTORCH, HOOKS = "PyTorch", "PyTorch with hooks"
FUSED, EXPOSED = "ONNX Runtime, fused", "ONNX Runtime, every output"
EXTRACTED = "ncnn, every blob"

KEEPING = {
    HOOKS: peers.pytorch_keeping,
    EXPOSED: peers.onnx_runtime_keeping,
    EXTRACTED: peers.ncnn_keeping,
}
# What each network is beside besides, with the most that the ratio should be.
TARGETS = {HOOKS: 0.8}
FUSED_TARGETS = {"resnet18": 1.0}
SINGLE = "numpy", "onnxruntime", "ncnn"


def all_kept(bench: Bench) -> Iterator[Row | str]:
    """Every operand kept, whoever computes."""
    ratios: dict[str, float] = {}
    for name in bench.chosen(NETWORKS):
        makers = {OURS: peers.ours, **KEEPING, FUSED: peers.onnx_runtime}
        times, sentences = _measure(bench, name, makers)
        yield from sentences
        if times is None:
            continue
        for other in times.seconds:
            if other != OURS:
                target = FUSED_TARGETS.get(name) if other == FUSED else TARGETS.get(other)
                yield times.row(name, OURS, other, target)
        present = [other for other in KEEPING if other in times.seconds]
        if present:
            fastest = min(present, key=times.median)
            ratios[name] = times.ratio(OURS, fastest)
            yield times.row(
                f"{name}, the fastest that keeps all", OURS, fastest, 1.1, beside=fastest
            )
    if len(ratios) > 1:
        slower = [name for name, ratio in ratios.items() if ratio > 1]
        what = f"of {len(ratios)} networks slower than the fastest"
        yield Row(what, str(len(slower)), len(slower), 1, ", ".join(slower), unit="")


def numpy_alone(bench: Bench) -> Iterator[Row | str]:
    """The reference backend, beside PyTorch as it is."""
    for name, network in bench.chosen(NETWORKS).items():
        if not network.convolutional:
            continue
        makers = {OURS: peers.numpy_backend, PYTORCH: peers.pytorch}
        times, sentences = _measure(bench, name, makers)
        yield from sentences
        if times is not None and PYTORCH in times.seconds:
            yield times.row(f"{name}, NumPy alone", OURS, PYTORCH, 3.5)


def first_passes(bench: Bench) -> Iterator[Row | str]:
    """First passes with an empty tuning cache, beside the fastest single library's."""
    for name in bench.chosen(NETWORKS):
        try:
            folder = str(bench.model(f"{name}.pnnx.param").parent)
        except Absent as exc:
            yield f"  skipped: {exc}"
            continue
        runs = {
            backend: partial(answer_of, peers.first_pass, folder, name, backend)
            for backend in ("auto", *SINGLE)
        }
        times = alternate(runs, bench.rounds)
        fastest = min(SINGLE, key=times.median)
        yield times.row(name, "auto", fastest, 1.5, beside=f"{fastest}, kernels made")


def _measure(
    bench: Bench, name: str, makers: Mapping[str, Callable[..., object]]
) -> tuple[Times | None, list[str]]:
    """Measure all that are installed; a sentence for each that is not.

    Nothing is measured where the network is not there, or ours does not run.
    """
    try:
        folder = bench.model(f"{name}.pnnx.param").parent
    except Absent as exc:
        return None, [f"  skipped: {exc}"]
    sentences = []
    with ExitStack() as stack:
        runs = {}
        for what, make in makers.items():
            try:
                process = Process(make, str(folder), name, repeat=PASSES, warming=WARMING)
            except Absent as exc:
                if what == OURS:
                    return None, [f"  skipped: {name}: {exc}"]
                sentences.append(f"  {name}, {what} is left out: {exc}")
                continue
            runs[what] = stack.enter_context(process)
        return alternate(runs, bench.rounds), sentences
