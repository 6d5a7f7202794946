"""Runs bundles of cases here and in PyTorch, and says which cases differ, and where."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import engine
from crosscheck.compare import array_of, difference
from crosscheck.export import Bundle, ExportError
from crosscheck.script import operand_values, variable
from engine.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import torch

    from crosscheck.specification import Drawn
    from engine.runtime import RuntimeGraph, RuntimeOperand, RuntimeOperator

__all__ = ["Outcome", "check_all"]

_ABSENT = object()


@dataclass
class Outcome:
    """What became of one case.

    Attributes
    ----------
    drawn : Drawn
    level : int
    fault : str
        ``""`` if everything agrees.
    types : set of str
        Operator types on the way to its results.
    compared : int
        Operands that were compared.
    """

    drawn: Drawn
    level: int
    fault: str = ""
    types: set[str] = field(default_factory=set)
    compared: int = 0


def check_all(
    bundles: Iterable[tuple[Sequence[Drawn], int]], *, jobs: int, keep: Path | None
) -> Iterator[Outcome]:
    """Check bundles of cases.

    Parameters
    ----------
    bundles : iterable of (sequence of Drawn, int)
        Cases and the level of optimisation to export them with.
    jobs : int
        How many pnnx may run at a time, beside the comparison.
    keep : Path, optional
        Where the files of cases that differ are left, each case exported alone.

    Yields
    ------
    Outcome
        In the order of the bundles.
    """
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(jobs) as pool:
        waiting = (
            (bundle, _begin(bundle, pool))
            for i, (drawn, level) in enumerate(bundles)
            for bundle in (Bundle(drawn, level, Path(scratch, str(i))),)
        )
        running = deque(islice(waiting, jobs + 1))
        while running:
            bundle, exported = running.popleft()
            for outcome in _check(bundle, exported(), pool):
                if outcome.fault and keep is not None:
                    _keep(outcome, keep, pool)
                yield outcome
            shutil.rmtree(bundle.folder, ignore_errors=True)
            running.extend(islice(waiting, 1))


def _begin(bundle: Bundle, pool: ThreadPoolExecutor) -> Callable[[], str]:
    """Trace, and leave the rest to a thread; what is given waits and says what went wrong.

    PyTorch traces, and Python collects warnings, in one thread only.
    """
    try:
        bundle.trace()
    except Exception as exc:
        said = f"the module cannot be traced: {type(exc).__name__}: {exc}".splitlines()[0]
        return lambda: said
    return pool.submit(_converted, bundle).result


def _converted(bundle: Bundle) -> str:
    try:
        bundle.convert()
    except ExportError as exc:
        return str(exc)
    return ""


def _check(bundle: Bundle, fault: str, pool: ThreadPoolExecutor) -> list[Outcome]:
    """Outcomes of a bundle; what goes wrong as a whole is looked for in its halves."""
    if not fault:
        outcomes = [Outcome(drawn, bundle.level) for drawn in bundle.drawn]
        fault = _run(bundle, outcomes)
        if not fault:
            return outcomes
    if len(bundle.drawn) == 1:
        return [Outcome(bundle.drawn[0], bundle.level, fault)]
    middle = len(bundle.drawn) // 2
    parts = {"a": bundle.drawn[:middle], "b": bundle.drawn[middle:]}
    halves = [Bundle(part, bundle.level, bundle.folder / n) for n, part in parts.items()]
    begun = [(half, _begin(half, pool)) for half in halves]
    return [outcome for half, said in begun for outcome in _check(half, said(), pool)]


def _keep(outcome: Outcome, place: Path, pool: ThreadPoolExecutor) -> None:
    """Leave the files of one case."""
    drawn = outcome.drawn
    folder = place / f"{drawn.spec.name}-{drawn.seed}-level{outcome.level}"
    _begin(Bundle([drawn], outcome.level, folder), pool)()
    (folder / "fault.txt").write_text(outcome.fault + "\n", encoding="utf-8")


# Running ---------------------------------------------------------------------------------


def _run(bundle: Bundle, outcomes: list[Outcome]) -> str:
    """Run a bundle and fill in the outcomes; say what spoils it as a whole."""
    try:
        graph = engine.load(bundle.param)
    except EngineError as exc:
        return f"the file does not open: {exc}"
    for other in (True, False) if bundle.drawn[0].case.other else (False,):
        fault = _compare(bundle, graph, outcomes, other=other)
        if fault:
            return fault
    return ""


def _compare(
    bundle: Bundle, graph: RuntimeGraph, outcomes: list[Outcome], *, other: bool
) -> str:
    inputs, expected = bundle.inputs(other=other), bundle.results(other=other)
    leaves = _leaves(graph)
    if len(leaves) != sum(map(len, expected)):
        return f"{len(leaves)} results, PyTorch gives {sum(map(len, expected))}"
    script: dict[str, Any] = {}
    if bundle.level == 2:  # below, pnnx writes scripts that Python does not read
        try:
            script = operand_values(bundle.script, inputs)
        except Exception as exc:
            return f"the script does not start: {exc}"
    values, failures = _values(graph, inputs)
    rest = iter(leaves)
    for outcome, wanted in zip(outcomes, expected, strict=True):
        results = dict(zip(islice(rest, len(wanted)), wanted, strict=True))
        operators = _ancestors(results)
        outcome.types.update(operator.type for operator in operators)
        judge = _Judge(values, failures, script, results, outcome.drawn.spec.tolerance)
        faults = list(filter(None, map(judge.fault_of, operators)))
        outcome.compared += judge.compared
        if faults and not outcome.fault:
            size = "at the other size, " if other else ""
            more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
            outcome.fault = f"{size}{faults[0]}{more}"
    return ""


def _values(
    graph: RuntimeGraph, inputs: Sequence[torch.Tensor]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Values of the operands that can be computed, and what went wrong by operator.

    A session stops at an operator that fails; here the cases beside it go on.
    """
    fed = graph.check_inputs([array_of(x.contiguous()) for x in inputs])
    values: dict[str, Any] = dict(fed)
    failures: dict[str, str] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for operator in graph.operators:
            names = [operand.name for operand in operator.inputs]
            if operator.is_input or operator.is_output or not values.keys() >= {*names}:
                continue
            try:
                results = operator.forward([values[name] for name in names])
            except EngineError as exc:
                failures[operator.name] = str(exc)
            else:
                values.update(zip((o.name for o in operator.outputs), results, strict=True))
    return values, failures


def _leaves(graph: RuntimeGraph) -> list[RuntimeOperand]:
    """Operands that the model returns, tuples taken apart."""
    leaves: list[RuntimeOperand] = []
    waiting = list(reversed(graph.output_operands))
    while waiting:
        operand = waiting.pop()
        producer = operand.producer
        if producer is not None and producer.type in {
            "prim::TupleConstruct", "prim::ListConstruct",
        }:  # fmt: skip
            waiting.extend(reversed(producer.inputs))
        else:
            leaves.append(operand)
    return leaves


def _ancestors(operands: Iterable[RuntimeOperand]) -> list[RuntimeOperator]:
    """Operators that operands come from, in execution order, without the model's inputs."""
    found: dict[int, RuntimeOperator] = {}
    waiting = [operand.producer for operand in operands]
    while waiting:
        operator = waiting.pop()
        if operator is not None and not operator.is_input and operator.index not in found:
            found[operator.index] = operator
            waiting.extend(operand.producer for operand in operator.inputs)
    return [found[index] for index in sorted(found)]


class _Judge:
    """Compares the operators of one case.

    Parameters
    ----------
    values : mapping of str to Value
        The engine's, by operand.
    failures : mapping of str to str
        What went wrong, by operator.
    script : mapping of str to object
        PyTorch's, by variable.
    results : mapping of RuntimeOperand to Tensor
        What the module returns.
    tolerance : float
    """

    def __init__(
        self,
        values: Mapping[str, Any],
        failures: Mapping[str, str],
        script: Mapping[str, Any],
        results: Mapping[RuntimeOperand, torch.Tensor],
        tolerance: float,
    ) -> None:
        self._values, self._failures, self._script = values, failures, script
        self._results, self._tolerance = results, tolerance
        self.compared = 0

    def fault_of(self, operator: RuntimeOperator) -> str:
        """What is wrong with an operator; ``""`` for nothing."""
        where = f"{operator.type} {operator.name}"
        if operator.name in self._failures:
            return f"{where}: {self._failures[operator.name]}"
        for operand in operator.outputs:
            text = self._fault_of_operand(operand)
            if text:
                return f"{where}, operand {operand.name}: {text}"
        return ""

    def _fault_of_operand(self, operand: RuntimeOperand) -> str:
        scripted = self._script.get(variable(operand.name), _ABSENT)
        want = self._results.get(operand, scripted)
        unused = operand not in self._results and not operand.consumers
        if unused or operand.name not in self._values or want is _ABSENT:
            return ""
        self.compared += 1
        got = self._values[operand.name]
        text = difference(got, want, self._tolerance)
        if text and operand in self._results and scripted is not _ABSENT:
            agrees = not difference(got, scripted, self._tolerance)
            text += " (the script of pnnx agrees with us)" if agrees else ""
        return text
