"""The programs that `benchmarks.data_sets` compares, each in a process of its own."""

from __future__ import annotations

import resource
import sys
import threading
import time
from pathlib import Path

import numpy as np

_ROOT = Path(__file__).resolve().parents[2]
_DIGITS = _ROOT / "samples" / "digits" / "digits.pnnx.param"
_QUARTERS = 4
_PAUSE = 0.2  # seconds between looks at the memory


_EDGE = 1 / 8  # of the inputs, at either end, which the steady rate leaves out


class _Watched:
    """Memory of this process and of its largest child, in MB, and when inputs were done."""

    def __init__(self):
        import psutil

        self._me = psutil.Process()
        self._ended = threading.Event()
        self._done = 0.0
        self._edges = []
        self.rows = [[0, 0] for _ in range(_QUARTERS)]
        self.most = [0, 0]

    def __enter__(self):
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()

    def progress(self, done, count):
        self._done = done / count
        if self._done >= _EDGE and (self._done <= 1 - _EDGE or len(self._edges) < 2):
            self._edges[1:] = [(done, time.perf_counter())]

    @property
    def steady_rate(self):
        """Inputs per second, without the first and the last eighth of them."""
        (begin, began), (end, ended) = self._edges
        return (end - begin) / (ended - began)

    def _watch(self):
        import psutil

        while not self._ended.wait(_PAUSE):
            sizes = []
            for each in self._me.children(recursive=True):
                try:
                    sizes.append(each.memory_info().rss)
                except psutil.Error:
                    continue  # it has just ended
            now = [self._me.memory_info().rss >> 20, max(sizes, default=0) >> 20]
            self.most = [max(pair) for pair in zip(self.most, now, strict=True)]
            quarter = min(int(self._done * _QUARTERS), _QUARTERS - 1)
            self.rows[quarter] = now


def measured(program: str, network: str, folder: str, models: str) -> dict:
    """Run one of the programs, in this process."""
    path = Path(folder, "inputs.npy")
    inputs = np.load(path, mmap_mode="r")
    model = _DIGITS if network == "digits" else Path(models, f"{network}.pnnx.param")
    kind, _, workers = program.partition(" ")
    with _Watched() as watched:
        began, before = time.perf_counter(), _used()
        if kind == "sweep":
            _sweep(model, path, Path(folder, program.replace(" ", "")), int(workers), watched)
        elif kind == "hooks":
            _hooks(network, models, inputs, watched)
        else:
            _loop(model, inputs, watched, is_read=kind == "loop")
        seconds, cpu = time.perf_counter() - began, _used() - before
    return {
        "rate": len(inputs) / seconds,
        "steady": watched.steady_rate,
        "cpu": cpu / len(inputs) * 1e3,
        "memory": watched.rows,
        "most": watched.most,
    }


def _used():
    both = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, both))


def _loop(model, inputs, watched, *, is_read):
    import engine
    from engine.threads import limit_threads

    limit_threads(1)
    session = engine.Session(engine.load(model))
    for number, item in enumerate(inputs):
        session.feed([item[np.newaxis]])
        session.run()
        if is_read:
            for operand in session.graph.operands:
                session.value(operand)
        watched.progress(number + 1, len(inputs))


def _sweep(model, path, output, workers, watched):
    import engine
    from engine.threads import limit_threads

    limit_threads(1)  # each worker gets as many
    engine.sweep(
        model, path, output, workers=workers, progress=watched.progress, overwrite=True
    )


def _hooks(network, models, inputs, watched):
    import torch

    from benchmarks.hooked import run_with_hooks
    from benchmarks.networks import built
    from engine.datasets.statistics import sample_size

    torch.set_num_threads(1)
    if network == "digits":
        sys.path.insert(0, str(_ROOT / "samples"))
        from recipes import DigitNet

        module = DigitNet()
    else:
        module = built(network)
        state = torch.jit.load(str(Path(models, f"{network}.pt"))).state_dict()
        module.load_state_dict(state)

    def counted():
        for number, item in enumerate(inputs):
            watched.progress(number + 1, len(inputs))
            yield item

    run_with_hooks(module, counted(), sample_size(len(inputs)))
