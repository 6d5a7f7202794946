"""Runs the campaign; see the package."""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import engine
from engine.errors import EngineError
from engine.pnnx import load as load_file
from engine.pnnx import save
from faults.plant import KINDS, plant
from faults.recording import record_network

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.session import Session
    from faults.plant import Planted

VISIBLE = 3e-4  # of the largest element; a smaller fault is no fault
SEVERAL = 4  # origins that still count as an answer


class Network:
    """A network, its true values by PyTorch, and our values of the true pair."""

    def __init__(self, folder: Path, name: str, scratch: Path) -> None:
        self.name, self.param = name, folder / f"{name}.pnnx.param"
        with np.load(folder / f"{name}.inputs.npz") as stored:
            self.inputs = [stored[key] for key in stored.files]
        self.reference = engine.open_reference(
            record_network(folder / f"{name}.pt", self.inputs, scratch / name)
        )
        self.true = self.session(self.param)

    def session(self, param: Path) -> Session:
        """Run a pair; one that fails stays where it is."""
        session = engine.Session(engine.load(param), backend="numpy")
        session.feed(self.inputs)
        with contextlib.suppress(EngineError):
            session.run()
        return session

    def is_visible(self, planted: Planted, faulty: Session) -> bool:
        """Whether the planted operator gives something else on its true inputs."""
        operator = faulty.graph.operator(planted.operator)
        if planted.kind == "activation_missing" and planted.also:
            return True
        try:
            results = operator.forward([self.true.value(o.name) for o in operator.inputs])
        except EngineError:
            return True
        for operand, result in zip(operator.outputs, results, strict=True):
            if not operand.consumers:
                continue
            truth = self.true.value(operand.name)
            if truth.shape != result.shape:
                return True
            if np.abs(truth - result).max() > VISIBLE * np.abs(truth).max():
                return True
        return False


def answer(planted: Planted, comparison: engine.Comparison) -> str:
    """Return ``exact``, ``among several``, ``wrong`` or ``missed``."""
    named = [origin.operator.name for origin in comparison.origins]
    right = {planted.operator, *planted.also}
    if not named:
        return "missed"
    if len(named) == 1 and named[0] in right and not comparison.origins[0].among:
        return "exact"
    around = [name for o in comparison.origins for name in (*(a.name for a in o.among),)]
    if len(named) <= SEVERAL and right & {*named, *around}:
        return "among several"
    return "wrong"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign; the exit status is 1 for a false origin."""
    parser = argparse.ArgumentParser(prog="python -m faults", description=__doc__)
    parser.add_argument("folder", metavar="FOLDER", type=Path)
    parser.add_argument("names", metavar="NAME", nargs="*")
    parser.add_argument("--each", type=int, default=2, help="faults of each kind and network")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", choices=tuple(KINDS), default=tuple(KINDS))
    options = parser.parse_args(arguments)
    names = options.names or sorted(p.stem for p in options.folder.glob("*.pt"))
    counts: Counter[str] = Counter()
    false = 0
    with tempfile.TemporaryDirectory() as scratch:
        for name in names:
            network = Network(options.folder, name, Path(scratch))
            clean = engine.compare(network.true, network.reference)
            false += len(clean.origins)
            print(
                f"{name}: clean {clean.verdict} {[o.text for o in clean.origins]}", flush=True
            )
            for kind in options.kinds:
                for number in range(options.each):
                    rng = np.random.default_rng([options.seed, number, *kind.encode()])
                    counts[_once(network, kind, rng, Path(scratch))] += 1
    total = sum(counts[word] for word in ("exact", "among several", "wrong", "missed"))
    for word, count in counts.most_common():
        print(f"{word:<16}{count:>5}" + (f" {count / total:.1%}" if word != "no place" else ""))
    print(f"false origins on clean pairs: {false}")
    return 1 if false else 0


def _once(network: Network, kind: str, rng: np.random.Generator, scratch: Path) -> str:
    graph = load_file(network.param)
    planted = plant(graph, kind, rng)
    if planted is None:
        return "no place"
    param = scratch / "faulty.pnnx.param"
    save(graph, param, scratch / "faulty.pnnx.bin")
    faulty = network.session(param)
    if not network.is_visible(planted, faulty):
        return "invisible"
    started = time.perf_counter()
    try:
        found = engine.compare(faulty, network.reference)
    except Exception:
        traceback.print_exc()
        return "wrong"
    seconds = time.perf_counter() - started
    word = answer(planted, found)
    if word != "exact":
        named = [
            (o.operator.name, o.operator.type, o.born, [a.name for a in o.among], o.text)
            for o in found.origins[:6]
        ]
        print(
            f"  {word}: {network.name} {kind} at {planted}: {named} {seconds:.1f} s", flush=True
        )
    return word


if __name__ == "__main__":
    sys.exit(main())
