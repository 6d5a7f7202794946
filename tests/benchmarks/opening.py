"""Opening: the weights must not be read, and long files must open in no time."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import engine
from benchmarks.measure import Row, alternate, timed
from benchmarks.processes import answer_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
    load = engine.load  # which imports what it needs
    before = _resident_memory()
    graph = load(path)
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
    return _chain(["nn.ReLU {name} 1 1 {x} {y} #{x}={shape} #{y}={shape}"])


def _mixed() -> list[str]:
    """Operators with parameters, named inputs and two inputs, in turn."""
    notes = "#{x}={shape} #{y}={shape}"
    pool = "kernel_size=(3,3) padding=(1,1) return_indices=False stride=(1,1)"
    size = "mode=nearest recompute_scale_factor=False size=(56,56)"
    kinds = [
        f"nn.ReLU {{name}} 1 1 {{x}} {{y}} {notes}",
        f"F.interpolate {{name}} 1 1 {{x}} {{y}} {size} $input={{x}} {notes}",
        f"pnnx.Expression {{name}} 2 1 0 {{x}} {{y}} expr=add(@0,@1) #0={SHAPE} {notes}",
        f"nn.MaxPool2d {{name}} 1 1 {{x}} {{y}} ceil_mode=False dilation=(1,1) {pool} {notes}",
    ]
    return _chain(kinds)


def _chain(kinds: Sequence[str]) -> list[str]:
    """Operators of these kinds in turn, spaced as pnnx does it."""
    last = OPERATORS - 2
    lines = [f"pnnx.Input in0 0 1 0 #0={SHAPE}"]
    lines += [
        kinds[i % len(kinds)].format(
            name=f"layer{i // 100}.{i % 100}", x=i - 1, y=i, shape=SHAPE
        )
        for i in range(1, last + 1)
    ]
    lines.append(f"pnnx.Output out0 1 0 {last} #{last}={SHAPE}")
    columns = (line.split(" ", 2) for line in lines)
    return [f"{kind:24} {name:24} {rest}" for kind, name, rest in columns]
