"""Draws elements of a run and compares what is said of them with the engine's own numbers."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

import engine
from engine.errors import EngineError
from engine.provenance.backward import go_back
from engine.provenance.call import CANNOT, Call
from engine.provenance.records import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from engine.provenance.records import Provenance
    from engine.runtime import RuntimeOperator

__all__ = ["Findings", "Pair", "find_pairs", "try_pair"]

_STEP = 1e-5
_MOST_DERIVED = 1 << 22  # elements of an operator's tensors, for slopes
_LARGEST = 1e6
_REAL = "bifu"


@dataclass
class Pair:
    """A model and what it is run on.

    Attributes
    ----------
    name : str
    param : Path
    inputs : Path
    """

    name: str
    param: Path
    inputs: Path


@dataclass
class Findings:
    """Counts, and what is wrong.

    Attributes
    ----------
    operators : int
        That ran and have an output of real numbers.
    explained : int
        Elements with terms.
    fields, slopes : int
        Elements whose field, or whose slopes, were checked.
    unexplained, unfollowed : Counter of str
        Elements by type and reason.
    wrong, stopped : list of str
        What is wrong, and models that do not run to their end.
    milliseconds : dict of str to list of float
        Processor time of each explanation, by type.
    """

    operators: int = 0
    explained: int = 0
    fields: int = 0
    slopes: int = 0
    unexplained: Counter[str] = field(default_factory=Counter)
    unfollowed: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    milliseconds: dict[str, list[float]] = field(default_factory=dict)


def find_pairs(folder: Path) -> Iterator[Pair]:
    """Yield the pairs below a folder that have inputs, as they are named in the checks."""
    for param in sorted(folder.rglob("*.param")):
        stem = param.name.removesuffix(".param").removesuffix(".pnnx").removesuffix(".ncnn")
        for inputs in (param.parent / f"{stem}.inputs.npz", param.parent / "inputs.npz"):
            if inputs.exists():
                name = f"{param.parent.name}/{param.name}"
                yield Pair(name, param, inputs)
                break


def try_pair(
    pair: Pair, findings: Findings, rng: np.random.Generator, elements: int, backend: str
) -> None:
    """Run a pair, and try elements of each of its operators."""
    try:
        session = engine.Session(engine.load(pair.param), backend)
        with np.load(pair.inputs) as archive:
            arrays = [archive[name] for name in archive.files]
        if ".ncnn." in pair.param.name:  # it has no batch
            arrays = [each[0] if each.ndim else each for each in arrays]
        session.feed(arrays)
    except EngineError as exc:
        findings.wrong.append(f"{pair.name} does not open: {exc}")
        return
    try:
        session.run()
    except EngineError as exc:  # what ran before is tried
        findings.stopped.append(f"{pair.name} stops: {exc}")
    for operator in session.graph.operators:
        try_operator(pair.name, session, operator, findings, rng, elements)


def try_operator(
    model: str,
    session: engine.Session,
    operator: RuntimeOperator,
    findings: Findings,
    rng: np.random.Generator,
    elements: int,
) -> None:
    """Try elements of an operator's outputs."""
    if not operator.inputs:
        return
    counted = False
    for place, output in enumerate(operator.outputs):
        if not session.has_value(output.name):
            continue
        value = session.value(output.name)
        if not isinstance(value, np.ndarray) or value.dtype.kind not in _REAL or not value.size:
            continue
        counted = True
        for turn in range(elements):
            index = tuple(int(rng.integers(size)) for size in value.shape)
            where = f"{model}: {operator.type} {output.name}{list(index)}"
            started = time.process_time()
            try:
                found = engine.explain_element(session, output.name, index)
            except Exception as exc:
                findings.wrong.append(f"{where}: {type(exc).__name__}: {exc}")
                continue
            spent = 1000 * (time.process_time() - started)
            findings.milliseconds.setdefault(operator.type, []).append(spent)
            if found.kind is Kind.UNKNOWN:
                findings.unexplained[f"{operator.type}: {found.reason}"] += 1
            else:
                findings.explained += 1
                findings.wrong += [f"{where}: {text}" for text in check_terms(session, found)]
            text = check_sources(session, operator, place, found, rng)
            findings.fields += 1
            if text:
                findings.wrong.append(f"{where}: {text}")
            if turn < 2:  # their quotients take a pass each
                check_slopes(session, operator, place, index, where, findings, rng)
    findings.operators += counted


def check_terms(session: engine.Session, found: Provenance) -> Iterator[str]:
    """Yield what is wrong with the terms of an element."""
    breakdown = found.breakdown
    if breakdown is None:
        return
    if not found.agrees:
        yield f"{found.value!r} is not {breakdown.total!r} within {breakdown.error:.3g}"
    dtype = np.dtype(found.dtype)
    unit = max(1e-3, 16 * float(np.finfo(dtype).eps)) if dtype.kind == "f" else 1e-3
    if breakdown.error > unit * (1 + abs(found.value)) and np.isfinite(found.value):
        size = np.abs(breakdown.terms.products).sum()
        if breakdown.error > unit * (1 + size):
            yield f"the stated error {breakdown.error:.3g} of {found.value!r} says nothing"
    terms = breakdown.terms
    if terms.products.shape != (int(np.prod(terms.shape)),):
        yield f"{terms.products.shape} products are arranged as {terms.shape}"
    if len(terms.axes) != len(terms.shape):
        yield f"axes {terms.axes} of {terms.shape}"
    whole = float(terms.products.sum()) + (breakdown.offset or 0.0)
    is_sum = breakdown.kind is Kind.SUM and dtype.kind == "f"
    if is_sum and abs(whole - breakdown.total) > 1e-9 * (1 + np.abs(terms.products).sum()):
        yield f"the products make {whole!r}, not {breakdown.total!r}"
    for factor in terms.factors:
        if not factor.is_operand:
            continue
        array = session.value(factor.name)
        inside = (factor.indices >= 0).all(axis=1)
        read = np.asarray(array[tuple(factor.indices[inside].T)]).reshape(-1)
        if not np.array_equal(read.astype(np.float64), factor.values[inside], equal_nan=True):
            yield f"factor {factor.name} has other numbers than the operand"


def check_sources(
    session: engine.Session,
    operator: RuntimeOperator,
    place: int,
    found: Provenance,
    rng: np.random.Generator,
) -> str:
    """Change all that lies outside of an element's sources; return what is wrong."""
    if operator.random or operator.layer is None:
        return ""
    kept: dict[str, Any] = {each.operand: each.slices for each in found.sources}
    values: list[Any] = []
    for each in operator.inputs:
        value = session.value(each.name)
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size:
            noise = np.asarray(value + rng.uniform(-1, 1, value.shape), value.dtype)
            if each.name in kept:
                noise[kept[each.name]] = value[kept[each.name]]
            value = noise
        values.append(value)
    try:
        with np.errstate(all="ignore"):
            before = operator.forward([session.value(each.name) for each in operator.inputs])
            after = operator.forward(values)
    except EngineError as exc:
        return f"the operator fails with noise outside its sources: {exc}"
    one, other = (np.asarray(each[place]) for each in (before, after))
    if one.shape != other.shape:
        return ""
    if not np.array_equal(one[found.index], other[found.index], equal_nan=True):
        change = abs(float(one[found.index]) - float(other[found.index]))
        if not change <= 1e-6 * (1 + abs(float(one[found.index]))):
            return f"noise outside its sources changes it by {change:.3g}"
    return ""


def check_slopes(
    session: engine.Session,
    operator: RuntimeOperator,
    place: int,
    index: tuple[int, ...],
    where: str,
    findings: Findings,
    rng: np.random.Generator,
) -> None:
    """Compare the derivative along a random direction with a quotient in float64."""
    values = [session.value(each.name) for each in operator.inputs]
    floats = [isinstance(each, np.ndarray) and each.dtype.kind == "f" for each in values]
    output = session.value(operator.outputs[place].name)
    size = sum(np.size(each) for each in values if isinstance(each, np.ndarray)) + output.size
    if not any(floats) or output.dtype.kind != "f" or size > _MOST_DERIVED or operator.random:
        return
    if any(is_float and np.abs(each).max(initial=0) > _LARGEST
           for each, is_float in zip(values, floats, strict=True)):  # fmt: skip
        return  # a step would be lost in rounding
    gradient = np.zeros(output.shape)
    gradient[index] = 1.0
    try:
        with np.errstate(all="ignore"):
            back = go_back(Call.of(session, operator, place), gradient)
    except CANNOT as exc:
        findings.unfollowed[f"{operator.type}: {exc}"] += 1
        return
    except Exception as exc:
        findings.wrong.append(f"{where}: slope: {type(exc).__name__}: {exc}")
        return
    directions = {
        each.name: rng.normal(size=value.shape)
        for each, value, is_float in zip(operator.inputs, values, floats, strict=True)
        if is_float
    }
    expected = sum(
        float((part * directions[name]).sum())
        for name, part in back.items()
        if name in directions
    )
    sides = []
    try:
        for step in (-_STEP, -_STEP / 8, 0.0, _STEP / 8, _STEP):
            moved = [
                value.astype(np.float64) + step * directions[each.name] if is_float else value
                for each, value, is_float in zip(operator.inputs, values, floats, strict=True)
            ]
            with np.errstate(all="ignore"):
                result = np.asarray(operator.forward(moved)[place])
            if result.dtype != np.float64:
                return  # a step would be lost in rounding
            sides.append(float(result[index]))
    except EngineError:
        return  # the operator does not take float64
    below, above = (sides[2] - sides[0]) / _STEP, (sides[4] - sides[2]) / _STEP
    near = (sides[3] - sides[1]) / (_STEP / 4)
    if abs(near - (below + above) / 2) > 1e-3 * (1 + abs(near)):
        return  # it bends within a step, as a norm of equal numbers does
    if not np.isfinite([below, above, expected]).all() or abs(below - above) > 1e-3 * (
        1 + abs(below)
    ):
        return  # a kink, or a pole
    findings.slopes += 1
    size = sum(float(np.linalg.norm(part)) for part in back.values())
    if abs((below + above) / 2 - expected) > 1e-4 * (1 + abs(expected) + size):
        findings.wrong.append(f"{where}: slope {expected:.6g} is not {(below + above) / 2:.6g}")
