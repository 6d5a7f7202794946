"""Opening: the weights must not be read, and long files must open in no time."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import engine
from benchmarks.measure import Row, alternate, timed
from benchmarks.processes import answer_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.measure import Bench

OPERATORS = 50_000
SHAPE = "(1,64,56,56)f32"


def rows(bench: Bench) -> Iterator[Row]:
    """Chains of 50 000 operators; then a network of 345 MB."""
    for name, lines in (("ReLU alone", _relus()), ("four types", _mixed())):
        path = bench.folder / f"{name.replace(' ', '_')}.pnnx.param"
        path.write_text(f"7767517\n{len(lines)} {len(lines) - 1}\n" + "\n".join(lines) + "\n")
        times = alternate(
            {
                "split": timed(lambda path=path: _split_lines(path)),
                "load": timed(lambda path=path: engine.load(path)),
                "use": timed(lambda path=path: engine.load(path).operators),
            },
            bench.rounds,
        )
        beside = "reading and splitting its lines"
        yield times.row(f"load 50 000 operators ({name})", "load", "split", 3, beside=beside)
        yield times.row("… and look at its operators", "use", "split", beside=beside)
    yield from _of_large_weights(bench)


def _of_large_weights(bench: Bench) -> Iterator[Row]:
    path = bench.model("vit_b_32.pnnx.param")
    alone = bench.folder / path.name
    shutil.copy(path, alone)
    times = alternate(
        {
            "load": timed(lambda: engine.load(path), 20),
            "alone": timed(lambda: engine.load(alone), 20),
        },
        bench.rounds,
    )
    yield times.row("load vit_b_32 (345 MB)", "load", "alone", 1.3, beside="its .param alone")
    grown = answer_of(memory_of_opening, str(path))
    yield Row("memory that opening vit_b_32 takes", f"{grown:.1f} MB", grown, 20, unit="MB")


def memory_of_opening(path: str) -> float:
    """Resident memory that `engine.load` adds, in MB; for a process of its own."""
    before = _resident_memory()
    graph = engine.load(path)
    grown = _resident_memory() - before
    del graph
    return grown


def _resident_memory() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def _split_lines(path: Path) -> None:
    for line in path.read_text(encoding="utf-8").splitlines():
        line.split()


def _relus() -> list[str]:
    return _chain(
        lambda i: (
            f"nn.ReLU                  relu_{i:<19} 1 1 {i - 1} {i} #{i - 1}={SHAPE} #{i}={SHAPE}"
        )
    )


def _mixed() -> list[str]:
    """Operators with parameters, named inputs and two inputs, in turn."""
    return _chain(
        lambda i: (
            f"nn.MaxPool2d             pool_{i:<19} 1 1 {i - 1} {i} ceil_mode=False "
            "dilation=(1,1) kernel_size=(3,3) padding=(1,1) return_indices=False stride=(1,1) "
            f"#{i - 1}={SHAPE} #{i}={SHAPE}",
            f"nn.ReLU                  relu_{i:<19} 1 1 {i - 1} {i} #{i - 1}={SHAPE} #{i}={SHAPE}",
            f"F.interpolate            F.interpolate_{i:<10} 1 1 {i - 1} {i} mode=nearest "
            f"recompute_scale_factor=False size=(56,56) $input={i - 1} "
            f"#{i - 1}={SHAPE} #{i}={SHAPE}",
            f"pnnx.Expression          pnnx_expr_{i:<14} 2 1 {i - 1} 0 {i} expr=add(@0,@1) "
            f"#{i - 1}={SHAPE} #0={SHAPE} #{i}={SHAPE}",
        )[i % 4]
    )


def _chain(line) -> list[str]:
    last = OPERATORS - 2
    return [
        f"pnnx.Input               in0                      0 1 0 #0={SHAPE}",
        *map(line, range(1, last + 1)),
        f"pnnx.Output              out0                     1 0 {last} #{last}={SHAPE}",
    ]
