"""Data sets: sweeps beside a plain loop of `Session.run`, and beside PyTorch with hooks.

Not among the points, for it takes minutes to hours:

    python -m benchmarks.data_sets --models DIR
    python -m benchmarks.data_sets resnet18 --inputs 200 --rounds 3 --models DIR

The first measures 20 000 inputs of the digits sample and 2 000 of resnet18, as
`benchmarks.networks` exports it. Inputs are random numbers in an ``.npy``. In each round every
program runs once, in a process of its own with one thread that computes, or one a worker.
Ratios are those of one round. What is measured includes to open the model, to start the workers
and to write the results, but not to start Python. The programs:

run
    `Session.feed` and `Session.run` for one input after the other. Nothing is read: results in
    a library's own layout stay there.
loop
    The same, and `Session.value` of every operand: the plain loop that the others are compared
    with. It gathers nothing.
sweep
    `engine.sweep` without options, in one process or with so many workers. It gathers, for
    every operand and channel, counts, range, mean, variance, NaN, infinities, zeros, dead and
    saturated shares, the eight inputs that excite a channel most and least, unusual inputs, and
    a histogram of 2048 bins; hashes the inputs; and writes the results with their page.
hooks
    PyTorch, which gathers the same but for saturation: see `benchmarks.hooked`.

Columns: inputs per second by the clock; the same once everything has started, which leaves out
the first and the last eighth of the inputs; CPU of all its processes for an input, which other
work on the machine changes less; speed as a share of the loop's, by these three; memory of the
client and of the largest worker in MB after each quarter of the inputs, and at most.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.measure import Absent
from benchmarks.processes import answer_of
from benchmarks.swept import measured

_SHAPES = {"digits": (1, 32, 32)}
_COUNTS = {"digits": 20_000, "resnet18": 2_000}
_PROGRAMS = ("run", "loop", "sweep 0", "sweep 1", "sweep 2", "hooks")
_MEASURED = ("rate", "steady", "cpu")
_WANTED = (("sweep 1", "loop", 0.9), ("sweep 2", "sweep 1", 1.7), ("sweep 1", "hooks", 1.0))


def make_inputs(path: Path, count: int, shape: tuple[int, ...]) -> None:
    """Write random inputs, a few at a time."""
    rng = np.random.default_rng(0)
    array = np.lib.format.open_memmap(path, "w+", np.float32, (count, *shape))
    for begin in range(0, count, 100):
        part = array[begin : begin + 100]
        part[:] = rng.random(part.shape, np.float32)
    array.flush()


def compare(network, count, models, rounds, programs):
    """Measure programs in turns, and print their table."""
    print(f"\n{network}, {count} inputs, {rounds} rounds", flush=True)
    found = {program: [] for program in programs}
    with tempfile.TemporaryDirectory(prefix="kuiper-studio-bench-") as folder:
        make_inputs(Path(folder, "inputs.npy"), count, _SHAPES.get(network, (3, 224, 224)))
        for number in range(rounds):
            # Back and forth, so that what changes with time changes no ratio.
            for program in programs if number % 2 == 0 else programs[::-1]:
                try:
                    answer = answer_of(measured, program, network, folder, str(models))
                except Absent as exc:
                    print(f"{program}: {exc}", flush=True)
                    continue
                found[program].append(answer)
    _print_table({name: answers for name, answers in found.items() if answers})


def _print_table(found):
    print(
        f"{'':8} {'inputs/s':>9} {'steady':>8} {'CPU ms':>7} {'of loop':>8} {'steady':>7} "
        f"{'by CPU':>7}   "
        "client MB, a quarter each (most)   worker MB"
    )

    def ratio(one, other, key):
        pairs = zip(found[one], found[other], strict=False)
        way = -1 if key == "cpu" else 1
        return statistics.median((a[key] / b[key]) ** way for a, b in pairs)

    for name, answers in found.items():
        rate, steady, cpu = (
            statistics.median(each[key] for each in answers) for key in _MEASURED
        )
        ratios = (
            [f"{ratio(name, 'loop', key):.2f}" for key in _MEASURED]
            if "loop" in found
            else [""] * len(_MEASURED)
        )
        memory, most = answers[-1]["memory"], answers[-1]["most"]
        client, worker = (
            " ".join(f"{quarter[place]:5}" for quarter in memory) + f" ({most[place]})"
            for place in (0, 1)
        )
        print(
            f"{name:8} {rate:9.1f} {steady:8.1f} {cpu:7.2f} {ratios[0]:>8} {ratios[1]:>7} "
            f"{ratios[2]:>7}   {client:34} "
            f"{worker if name.startswith('sweep') and name != 'sweep 0' else ''}",
            flush=True,
        )
    for one, other, wanted in _WANTED:
        if one in found and other in found:
            value, whole = (ratio(one, other, key) for key in ("steady", "rate"))
            verdict = "holds" if value >= wanted else "does not hold"
            print(
                f"{one} / {other}: {value:.2f} ({whole:.2f} with start and end), "
                f"wanted {wanted}: {verdict}",
                flush=True,
            )


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("network", nargs="*", default=list(_COUNTS))
    parser.add_argument("--inputs", type=int)
    parser.add_argument("--models", type=Path, default=Path("/tmp/models"))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=_PROGRAMS, metavar="PROGRAM")
    arguments = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
    for network in arguments.network:
        count = arguments.inputs or _COUNTS.get(network, 200)
        compare(network, count, arguments.models, arguments.rounds, arguments.only)


if __name__ == "__main__":
    sys.exit(main())
