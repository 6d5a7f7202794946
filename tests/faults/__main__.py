"""Runs the campaign; see the package."""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import tempfile
import time
import traceback
import zlib
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import engine
from engine.errors import EngineError
from engine.pnnx import load as load_file
from engine.pnnx import save
from faults.plant import INPUT_KINDS, KINDS, plant, plant_in_input
from faults.recording import REFERENCES, record_network

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from engine.session import Session
    from faults.plant import Planted

VISIBLE = 3e-4  # share of the largest element; smaller changes do not count as faults
SEVERAL = 4  # most origins that still count as an answer
_PLACES = ("exact", "span", "several", "missed", "unseen")
_ANSWERS = (*_PLACES, "false", "right", "wrong", "none", "seconds")


class Network:
    """A network, our values of the correct pair, and a reference's values.

    Parameters
    ----------
    folder, name : path, str
        Its files are ``NAME.*``.
    kind : str
        Of the reference.
    scratch : path
    """

    def __init__(self, folder: Path, name: str, kind: str, scratch: Path) -> None:
        self.name, self.param = name, folder / f"{name}.pnnx.param"
        with np.load(folder / f"{name}.inputs.npz") as stored:
            self.inputs = [stored[key] for key in stored.files]
        self.true = self.session(self.param, self.inputs)
        self.reference = engine.open_reference(
            record_network(folder / name, kind, self.inputs, self.true, scratch / name / kind),
            self.inputs,
        )
        self.clean = engine.compare(self.true, self.reference)
        faults = self.true.graph.export_faults
        self.of_export = frozenset(each.operator.name for each in faults if each.certain)

    def session(self, param: Path, inputs: Sequence[np.ndarray]) -> Session:
        """Run a pair; after a failure the session stays at that operator."""
        session = engine.Session(engine.load(param), backend="numpy")
        session.feed(inputs)
        with contextlib.suppress(EngineError):
            session.run()
        return session

    def is_visible(self, planted: Planted, faulty: Session) -> bool:
        """Whether the planted operator returns another result on its correct inputs."""
        operator = faulty.graph.operator(planted.operator)
        known = self.true.graph.operands
        if any(operand.name not in known for operand in operator.outputs):
            consumers = [c for operand in operator.outputs for c in operand.consumers]
            return any(self._differs(o.name, faulty) for c in consumers for o in c.outputs)
        if operator.is_input:
            return True
        if planted.also:  # or its readers; constants that a sum adds may be exchanged
            computed = [o for o in faulty.graph.operators if o.type != "pnnx.Attribute"]
            shown = [o for each in computed for o in each.outputs]
            return any(o.name in known and self._differs(o.name, faulty) for o in shown)
        try:
            results = operator.forward([self.true.value(o.name) for o in operator.inputs])
        except EngineError:
            return True
        for operand, result in zip(operator.outputs, results, strict=True):
            if not operand.consumers:
                continue
            if _differ(self.true.value(operand.name), result):
                return True
        return False

    def is_seen(self, planted: Planted, faulty: Session) -> bool:
        """Whether the reference has a tensor that depends on the planted operator."""
        shown = {row.operand for row in self.clean.rows}
        reached = {planted.operator, *planted.also}
        for operator in faulty.graph.operators:  # in execution order
            above = {o.producer.name for o in operator.inputs if o.producer is not None}
            if operator.name in reached or above & reached:
                reached.add(operator.name)
                if shown.intersection(operand.name for operand in operator.outputs):
                    return True
        return False

    def _differs(self, operand: str, faulty: Session) -> bool:
        truth = self.true.value(operand)
        if not isinstance(truth, np.ndarray):
            return False
        if not faulty.has_value(operand) or not isinstance(faulty.value(operand), np.ndarray):
            return True
        return _differ(truth, faulty.value(operand))


def _differ(truth: np.ndarray, value: np.ndarray) -> bool:
    if truth.shape != value.shape:
        return True
    if "c" not in {truth.dtype.kind, value.dtype.kind}:
        truth, value = truth.astype(np.float64), value.astype(np.float64)
    with np.errstate(invalid="ignore"):  # masks have infinities
        return bool(
            np.abs(truth - value).max(initial=0) > VISIBLE * np.abs(truth).max(initial=0)
        )


class Answer(NamedTuple):
    """The result of a comparison, judged by the planted faults.

    Attributes
    ----------
    place : str
        ``exact``; ``span`` for one origin that names it among others; ``several`` for more
        origins; ``missed``; ``unseen`` if no tensor of the reference depends on it.
    reasons : list of str
        ``right``, ``wrong`` or ``none`` for each fault whose origin was named.
    false : int
        Number of origins where there is no fault.
    """

    place: str
    reasons: list[str]
    false: int


def answer(
    faults: Sequence[Planted], comparison: engine.Comparison, of_export: Collection[str] = ()
) -> Answer:
    """Judge a comparison by all faults of a model; the export may have faults of its own."""
    planted_in = {name for each in faults for name in (each.operator, *each.also)}
    beside = {*of_export} - planted_in
    origins = [each for each in comparison.origins if each.operator.name not in beside]
    places, reasons = [], []
    for planted in faults:
        right = {planted.operator, *planted.also}
        found = [o for o in origins if o.operator.name in right]
        around = [o for o in origins if right & {each.name for each in o.among}]
        if found and not found[0].among:
            places.append("exact")
        elif found or around:
            places.append("span")
        else:
            places.append("missed")
            continue
        first = (*found, *around)[0]
        kinds = [reason.kind for reason in first.reasons]
        wanted = planted.reasons.split(",")
        reasons.append("none" if not kinds else "right" if kinds[0] in wanted else "wrong")
        origins = [o for o in origins if o not in (*found, *around)]
    false = len(origins)
    if "missed" in places or false > SEVERAL:
        return Answer("missed", reasons, false)
    if false:
        return Answer("several", reasons, false)
    return Answer("exact" if set(places) == {"exact"} else "span", reasons, false)


class Campaign:
    """Plants faults into one network, and counts."""

    def __init__(self, network: Network, scratch: Path, seed: int) -> None:
        self._network, self._scratch, self._seed = network, scratch, seed

    def plant_all(
        self, kinds: Sequence[str], each: int, together: int
    ) -> Iterator[tuple[str, Answer, float]]:
        """Plant faults of each kind, together with others if a model gets several."""
        for kind in kinds:
            for number in range(each):
                key = zlib.crc32(f"{self._network.name} {kind}".encode())
                rng = np.random.default_rng([self._seed, number, key])
                others = [str(rng.choice(list(KINDS))) for _ in range(together - 1)]
                found = self._once([kind, *others], rng)
                if found is not None:
                    yield (kind, *found)

    def _once(
        self, kinds: Sequence[str], rng: np.random.Generator
    ) -> tuple[Answer, float] | None:
        network = self._network
        graph = load_file(network.param)
        inputs, faults = network.inputs, []
        for kind in kinds:
            if kind.startswith("input "):
                given = plant_in_input(graph, inputs, kind.removeprefix("input "), rng)
                if given is None:
                    return None
                planted, inputs = given
            else:
                taken = frozenset(n for p in faults for n in (p.operator, *p.also))
                planted = plant(graph, kind, rng, taken)
                if planted is None:
                    return None
            faults.append(planted)
        param = self._scratch / "faulty.pnnx.param"
        save(graph, param, self._scratch / "faulty.pnnx.bin")
        faulty = network.session(param, inputs)
        if not all(network.is_visible(planted, faulty) for planted in faults):
            return None
        if not any(network.is_seen(planted, faulty) for planted in faults):
            return Answer("unseen", [], 0), 0.0
        started = time.perf_counter()
        try:
            comparison = engine.compare(faulty, network.reference)
        except Exception:
            traceback.print_exc()
            return Answer("missed", [], 0), 0.0
        seconds = time.perf_counter() - started
        found = answer(faults, comparison, network.of_export)
        if found.place != "exact" or set(found.reasons) != {"right"}:
            self._tell(faults, comparison, found)
        return found, seconds

    def _tell(
        self, faults: Sequence[Planted], comparison: engine.Comparison, found: Answer
    ) -> None:
        print(f"  {found.place} {found.reasons} {self._network.name}", flush=True)
        for planted in faults:
            print(f"    planted {planted}")
        for origin in comparison.origins[:6]:
            reasons = [f"{r.kind} {r.explains:.4f}" for r in origin.reasons]
            among = [label.name for label in origin.among]
            print(f"    {origin.text} among {among}: {reasons}", flush=True)


def _print_table(title: str, counts: Mapping[str, Counter[str]]) -> None:
    print(f"\n{title:<24}{'faults':>8}" + "".join(f"{word:>9}" for word in _ANSWERS))
    total: Counter[str] = Counter()
    for name, row in counts.items():
        total.update(row)
        _print_row(name, row)
    _print_row("all", total)


def _print_row(name: str, row: Counter[str]) -> None:
    faults = sum(row[place] for place in _PLACES)
    cells = "".join(f"{row[word]:>9.0f}" for word in _ANSWERS)
    print(f"{name:<24}{faults:>8.0f}{cells}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign; the exit status is 1 for a false origin on a correct pair."""
    parser = argparse.ArgumentParser(prog="python -m faults", description=__doc__)
    kinds = (*KINDS, *(f"input {kind}" for kind in INPUT_KINDS))
    parser.add_argument("folder", metavar="FOLDER", type=Path)
    parser.add_argument("names", metavar="NAME", nargs="*")
    parser.add_argument("--each", type=int, default=2, help="faults of each kind and network")
    parser.add_argument("--together", type=int, default=1, help="faults in one model")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", choices=kinds, default=kinds)
    parser.add_argument("--reference", choices=REFERENCES, default="torch")
    options = parser.parse_args(arguments)
    names = options.names or sorted(p.stem for p in options.folder.glob("*.pt"))
    by_network: dict[str, Counter[str]] = defaultdict(Counter)
    by_kind: dict[str, Counter[str]] = defaultdict(Counter)
    false = 0
    with tempfile.TemporaryDirectory() as scratch:
        for name in names:
            try:
                network = Network(options.folder, name, options.reference, Path(scratch))
            except subprocess.CalledProcessError as exc:  # a layer that the library lacks
                print(f"{name}: {exc.stderr.decode().strip()}", flush=True)
                continue
            clean = network.clean
            false += sum(o.operator.name not in network.of_export for o in clean.origins)
            print(
                f"{name}: clean {clean.verdict} {[o.text for o in clean.origins]}", flush=True
            )
            campaign = Campaign(network, Path(scratch), options.seed)
            for kind, found, seconds in campaign.plant_all(
                options.kinds, options.each, options.together
            ):
                for row in (by_network[name], by_kind[kind]):
                    row[found.place] += 1
                    row["false"] += found.false
                    row["seconds"] += seconds
                    row.update(found.reasons)
    _print_table("by kind", by_kind)
    _print_table("by network", by_network)
    print(f"false origins on true pairs: {false}")
    return 1 if false else 0


if __name__ == "__main__":
    sys.exit(main())
