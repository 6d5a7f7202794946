"""Data sets: a sweep beside a plain loop, and beside PyTorch with hooks.

Not among the points, for it takes minutes:

    python -m benchmarks.data_sets digits --inputs 20000
    python -m benchmarks.data_sets resnet18 --inputs 2000 --models DIR

Inputs per second by the clock, and seconds of CPU with those of the workers, which other work
on the machine changes less. The loop runs `Session.run` on one input after the other, in this
process and with one thread, without and with the statistics of a sweep. PyTorch gathers range,
sum, squares, zeros and a histogram of 2048 bins of each module's output, which is less.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import numpy as np  # noqa: E402 - after its threads are limited

import engine  # noqa: E402
from engine.threads import limit_threads  # noqa: E402

_DIGITS = Path(__file__).parents[2] / "samples" / "digits" / "digits.pnnx.param"


def make_inputs(path: Path, count: int, shape: tuple[int, ...]) -> None:
    """Write random inputs, a few at a time."""
    rng = np.random.default_rng(0)
    array = np.lib.format.open_memmap(path, "w+", np.float32, (count, *shape))
    for begin in range(0, count, 100):
        part = array[begin : begin + 100]
        part[:] = rng.random(part.shape, np.float32)
    array.flush()


def measure(name, count, work):
    """Print inputs per second, and seconds of CPU."""

    def used():
        both = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        return sum(resource.getrusage(each).ru_utime for each in both)

    began, before = time.perf_counter(), used()
    work()
    seconds, cpu = time.perf_counter() - began, used() - before
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(
        f"{name:34} {count / seconds:8.1f} inputs/s {cpu / count * 1e3:8.2f} ms of CPU an input"
        f"   {memory} MB",
        flush=True,
    )


def plain_loop(model, inputs):
    """Run one input after the other, and read every operand."""
    limit_threads(1)
    session = engine.Session(engine.load(model))
    for item in inputs:
        session.feed([item[np.newaxis]])
        session.run()
        for operand in session.graph.operands:
            session.value(operand)
    limit_threads(None)


def with_hooks(models, name, inputs):
    """Run PyTorch, whose hooks gather statistics."""
    import torch

    from benchmarks.networks import built

    torch.set_num_threads(1)
    module = built(name)
    module.load_state_dict(torch.jit.load(str(models / f"{name}.pt")).state_dict())
    module.eval()
    totals = {}

    def gather(key, value):
        flat = value.detach().reshape(-1)
        low, high = torch.aminmax(flat)
        facts = (low, high, flat.double().sum(), (flat.double() ** 2).sum(), (flat == 0).sum())
        counts = torch.histc(flat, 2048)
        old = totals.get(key)
        totals[key] = (facts, counts if old is None else old[1] + counts)

    for key, each in module.named_modules():
        if not list(each.children()):
            each.register_forward_hook(lambda _m, _i, out, key=key: gather(key, out))
    with torch.no_grad():
        for item in inputs:
            module(torch.from_numpy(np.array(item[np.newaxis])))


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("network")
    parser.add_argument("--inputs", type=int, default=2000)
    parser.add_argument("--models", type=Path, default=Path("/tmp/models"))
    parser.add_argument("--only", nargs="+", default=["plain", "0", "1", "2", "torch"])
    arguments = parser.parse_args()
    digits = arguments.network == "digits"
    model = _DIGITS if digits else arguments.models / f"{arguments.network}.pnnx.param"
    shape = (1, 32, 32) if digits else (3, 224, 224)
    with tempfile.TemporaryDirectory(prefix="kuiper-studio-bench-") as folder:
        path, count = Path(folder, "inputs.npy"), arguments.inputs
        make_inputs(path, count, shape)
        inputs = np.load(path, mmap_mode="r")
        if "plain" in arguments.only:
            measure("loop of Session.run", count, lambda: plain_loop(model, inputs))
        for workers in (0, 1, 2):
            if str(workers) in arguments.only:
                where = "in one process" if not workers else f"{workers} workers"
                limit_threads(1 if not workers else None)
                out = Path(folder, f"out{workers}")
                measure(
                    f"sweep, {where}",
                    count,
                    lambda out=out, workers=workers: engine.sweep(
                        model, path, out, workers=workers
                    ),
                )
        if "torch" in arguments.only and not digits:
            measure(
                "PyTorch with hooks",
                count,
                lambda: with_hooks(arguments.models, arguments.network, inputs),
            )


if __name__ == "__main__":
    sys.exit(main())
