"""Compares what a window shows with a fresh session of NumPy."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

import engine
from engine.errors import EngineError, InferenceError
from engine.inputs import load_inputs, load_outputs
from engine.layers import layer_files, load_layers, unload_layers
from engine.states import OperatorStatus
from kuiper_studio.item_models import OperatorRole
from kuiper_studio.item_models.statuses import DisplayStatus
from kuiper_studio.session import RunState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.session import Session
    from kuiper_studio.graph_view.canvas import GraphCanvas
    from kuiper_studio.main_window import MainWindow
    from kuiper_studio.session import StudioSession

__all__ = ["differences"]

_SHOWN = {
    OperatorStatus.EXECUTED: {DisplayStatus.EXECUTED, DisplayStatus.SUPPLIED},
    OperatorStatus.FAILED: {DisplayStatus.FAILED},
    OperatorStatus.BLOCKED: {DisplayStatus.BLOCKED},
    OperatorStatus.UNSUPPORTED: {DisplayStatus.UNSUPPORTED},
}


def differences(window: MainWindow) -> Iterator[str]:
    """Return what an idle window shows wrong.

    Parameters
    ----------
    window : MainWindow
        Its session must be idle.
    """
    session = window.session
    snapshot, graph = session.snapshot, session.graph
    if graph is None:
        if snapshot.state is not RunState.EMPTY or len(snapshot.records):
            yield f"no model is open, and the state is {snapshot.state}"
        return
    yield from _of_views(window)
    if not all(version.is_current() for version in graph.file.versions):
        return  # the open model no longer exists
    fresh = _fresh(session)
    if fresh is None:
        return
    yield from _of_session(session, fresh)


def _fresh(session: StudioSession) -> Session | None:
    """Repeat the run in a session of NumPy; None without inputs."""
    graph = session.graph
    assert graph is not None
    _have_layers(session)
    bin_path = graph.bin_path
    loaded = engine.load(graph.param_path, bin_path)
    snapshot = session.snapshot
    # A library may get along with less memory: only a failure is to be the same within a bound.
    bound = session.memory.bound if snapshot.state is RunState.FAILED else None
    fresh = engine.Session(loaded, "numpy", snapshot.seed, memory_bound=bound)
    operands = loaded.input_operands
    if operands:
        if not snapshot.fed:
            return None
        sources = [session.inputs[operand.name] for operand in operands]
        try:
            values = load_inputs(sources, operands, session.image_options, session.input_shapes)
        except EngineError:
            return None  # the file no longer exists
        fresh.feed(values)
    for supply in snapshot.supplies:
        outputs = [loaded.operand(name) for name in supply.operands]
        fresh.override_all(load_outputs(supply.source, outputs), supply.source.text)
    for _ in snapshot.records:
        try:
            fresh.step()
        except InferenceError:
            break
    return fresh


def _have_layers(session: StudioSession) -> None:
    """Load the layer files of the window's engine in this process."""
    wanted = [file.path for file in session.workspace.layer_files]
    if wanted != [file.path for file in layer_files()]:
        unload_layers()
        for path in wanted:
            load_layers(path)


def _of_session(session: StudioSession, fresh: Session) -> Iterator[str]:
    snapshot = session.snapshot
    if snapshot.state.name != fresh.state.name:
        yield f"the state is {snapshot.state.name}, and should be {fresh.state.name}"
    if snapshot.position != fresh.position:
        yield f"the position is {snapshot.position}, and should be {fresh.position}"
    for record in snapshot.records:
        name = fresh.graph.operators[record.index].name
        expected = fresh.record(name)
        if expected is None:
            yield f"{name} has not run"
            continue
        if record.status is not expected.status:
            yield f"{name} is {record.status.name}, and should be {expected.status.name}"
        for operand in record.outputs:
            problem = _compare(session.fetch(operand), fresh.value(operand))
            if problem:
                yield f"operand {operand} of {name}: {problem}"


def _compare(found: object, expected: object) -> str:
    if not isinstance(expected, np.ndarray):
        return "" if type(found) is type(expected) else f"{found!r} instead of {expected!r}"
    if not isinstance(found, np.ndarray) or found.shape != expected.shape:
        return f"shape {getattr(found, 'shape', None)} instead of {expected.shape}"
    largest = float(np.nanmax(np.abs(np.where(np.isfinite(expected), expected, 0)), initial=0))
    # Sums of other libraries that cancel differ by 1e-5 of what they add, and dividing short
    # vectors by their length makes more of that.
    if np.allclose(found, expected, rtol=1e-4, atol=3e-4 * max(largest, 1), equal_nan=True):
        return ""
    return "other values"


def _of_views(window: MainWindow) -> Iterator[str]:
    session, graph = window.session, window.session.graph
    assert graph is not None
    model, canvas = window.operators_panel.model, window.graph_view.canvas
    if model.rowCount() != len(graph.operators):
        yield f"the table has {model.rowCount()} rows for {len(graph.operators)} operators"
        return
    shown: dict[str, DisplayStatus] = {}
    decided = set()
    for index, operator in enumerate(graph.operators):
        cell = model.index(index, 0)
        if cell.data(OperatorRole.OPERATOR).name != operator.name:
            yield f"row {index} of the table is {cell.data(OperatorRole.OPERATOR).name}"
        shown[operator.name] = cell.data(OperatorRole.CELLS).status
        record = session.record(operator.name)
        if record is None or session.is_current(operator.name):
            continue
        decided.add(operator.name)
        if shown[operator.name] not in _SHOWN[record.status]:
            yield f"the table shows {operator.name} as {shown[operator.name]!r}"
    if canvas.laid_out:
        yield from _of_boxes(canvas, shown, decided)
    if session.selected and session.selected not in {o.name for o in graph.operators}:
        yield f"{session.selected} is selected, which is not there"
    place, found = session.explaining.place, session.explaining.provenance
    if place is not None and place.operand not in graph.operands:
        yield f"an element of {place.operand} is explained, which is not there"
    if found is not None and found.breakdown is not None and not found.agrees:
        yield f"{found.operand}{list(found.index)} is explained by another value"
    if session.operand and session.operand not in graph.operands:
        yield f"operand {session.operand} is shown, which is not there"


def _of_boxes(
    canvas: GraphCanvas, shown: dict[str, DisplayStatus], decided: set[str]
) -> Iterator[str]:
    """Compare the boxes of what ran with the table; a closed group is a box of several."""
    members: dict[tuple[float, float], list[str]] = defaultdict(list)
    for name in shown:
        members[canvas.box_rect(name).topLeft().toTuple()].append(name)
    for names in members.values():
        drawn = canvas.box_state(names[0])
        expected = {shown[name] for name in names}
        if DisplayStatus.SUPPLIED in expected:  # a box marks it beside its status
            expected.add(DisplayStatus.EXECUTED)
        if not decided.isdisjoint(names) and drawn not in expected:
            yield f"the graph shows {names[0]} as {drawn!r}"
