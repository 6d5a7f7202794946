"""Recurrent layers: the gates of one step, and what an element of a sequence depends on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.layers.recurrent import GRU, LSTM, RNN
from engine.provenance.arithmetic import format_index, grid, multiply, sum_error
from engine.provenance.call import NoBreakdownError, Operand, take
from engine.provenance.records import Breakdown, Interval, Kind, Step
from engine.provenance.table import explains, locates

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from engine.provenance.call import Call
    from engine.provenance.records import Box

__all__ = ["explain_recurrent", "locate_recurrent"]

_MOST_PRODUCTS: Final = 1 << 26  # of all steps before, which are computed again
_GATES: Final = {RNN: ("h",), GRU: ("r", "z", "n"), LSTM: ("i", "f", "g", "o")}


@locates(RNN, GRU, LSTM)
def locate_recurrent(call: Call, box: Box) -> Mapping[str, Box]:
    """Return a sample's sequence up to the element; all of it if it is read backwards, too."""
    layer = call.layer
    found: dict[str, Box] = {each.name: each.whole for each in call.arrays}
    x = call.inputs[0]
    if not isinstance(layer, (RNN, GRU, LSTM)) or not isinstance(x, Operand):
        return found
    # With initial states, pnnx may write them first.
    if call.place or layer.states_first or len(call.arrays) > 1:
        return found
    time = 0 if x.ndim == 2 or not layer.batch_first else 1
    region = list(x.whole)
    if x.ndim == 3:
        region[1 - time] = box[1 - time]
    if layer.directions == 1:
        region[time] = Interval(0, box[time].stop)
    found[x.name] = tuple(region)
    return found


@explains(RNN, GRU, LSTM)
def explain_recurrent(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum the products of the gates, and compute the step from the state before it.

    The steps before are computed again in float64.
    """
    layer = call.layer
    if not isinstance(layer, (RNN, GRU, LSTM)):
        raise NoBreakdownError("this is no recurrent layer")
    x, cell = call.array("input"), layer.cells[0]
    plain = len(layer.cells) == 1 and cell.hr is None and len(call.arrays) == 1
    if not plain or call.place or layer.states_first or x.ndim != 3:
        raise NoBreakdownError(
            "only a layer of one direction without initial states has a breakdown"
        )
    unit, hidden = index[2], cell.hh.shape[1]
    step, sample = (index[1], index[0]) if layer.batch_first else (index[0], index[1])
    if step * (cell.ih.size + cell.hh.size) > _MOST_PRODUCTS:
        raise NoBreakdownError(f"{step} steps before are too many to compute again")
    before = _states_before(call, layer, sample, step)
    names = _GATES[type(layer)]
    rows = [gate * hidden + unit for gate in range(len(names))]
    size = cell.ih.shape[1]
    places = grid(range(len(rows)), range(size))
    lead = np.broadcast_to(np.array(index[:2]), (len(places), 2))
    inputs = take(x, "input", np.column_stack([lead, places[:, 1]]))
    at = np.column_stack([np.array(rows)[places[:, 0]], places[:, 1]])
    weights = take(cell.ih, "weight_ih_l0", at)
    terms = multiply([inputs, weights], (len(rows), size), ("gate", "input"))
    kept = np.asarray(cell.hh[rows], np.float64)
    states = kept @ before[0]
    shift = [np.zeros(len(rows)) if each is None else np.asarray(each[rows], np.float64)
             for each in (cell.bias_ih, cell.bias_hh)]  # fmt: skip
    sums = terms.partial_sums + shift[0]
    states = states + shift[1]
    old = float(before[0][unit])
    cells = float(before[1][unit]) if len(before) > 1 else 0.0
    total, steps = _finish(layer, call, sums, states, old, cells)
    steps = (
        *[Step(f"state's part of {name}", float(part))
          for name, part in zip(names, states, strict=True)],
        *steps,
    )  # fmt: skip
    magnitude = float(np.abs(terms.products).sum() + np.abs(kept @ np.diag(before[0])).sum())
    magnitude += float(np.abs(shift).sum()) + abs(cells) + 1
    # Errors of earlier steps come through the state.
    reach = 1 + math.sqrt(step) * (1 + float(np.abs(kept).sum()))
    error = sum_error(magnitude * reach, size + hidden, call.dtype, total)
    formula = f"y{format_index(index)} = {_FORMULAS[type(layer)]}"
    return Breakdown(Kind.GATES, formula, terms, total, error, steps=steps)


_FORMULAS: Final = {
    RNN: "f(W · x + b + U · h before)",
    GRU: "(1 − z) · n + z · h before, gates of W · x + b and U · h before",
    LSTM: "o · tanh(f · c before + i · g), gates of W · x + b + U · h before",
}


def _states_before(
    call: Call, layer: RNN | GRU | LSTM, sample: int, step: int
) -> tuple[npt.NDArray[np.float64], ...]:
    """Return the states before a step of one sample."""
    hidden = layer.cells[0].hh.shape[1]
    count = 2 if isinstance(layer, LSTM) else 1
    if not step:
        return tuple([np.zeros(hidden) for _ in range(count)])
    value = call.array("input").value
    if layer.batch_first:
        part = value[sample : sample + 1, :step]
    else:
        part = value[:step, sample : sample + 1]
    _, *states = layer.run(part.astype(np.float64), [None] * count)
    return tuple([np.asarray(state[0, 0], np.float64) for state in states])


def _finish(
    layer: RNN | GRU | LSTM,
    call: Call,
    inputs: npt.NDArray[np.float64],
    states: npt.NDArray[np.float64],
    old: float,
    cells: float,
) -> tuple[float, tuple[Step, ...]]:
    """Return the new state from the sums of the gates, and the gates."""
    gates = [float(a + b) for a, b in zip(inputs, states, strict=True)]
    if isinstance(layer, RNN):
        relu = call.operator.params.get("nonlinearity") == "relu"
        return (max(gates[0], 0.0) if relu else math.tanh(gates[0])), (Step("h before", old),)
    if isinstance(layer, GRU):
        r, z = _sigmoid(gates[0]), _sigmoid(gates[1])
        n = math.tanh(float(inputs[2]) + r * float(states[2]))
        found = Step("r", r), Step("z", z), Step("n", n), Step("h before", old)
        return (1 - z) * n + z * old, found
    i, f, o = (_sigmoid(gates[at]) for at in (0, 1, 3))
    g = math.tanh(gates[2])
    new = f * cells + i * g
    named = zip(("i", "f", "g", "o", "c before", "c"), (i, f, g, o, cells, new), strict=True)
    return o * math.tanh(new), tuple([Step(name, value) for name, value in named])


def _sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value)) if value > -700 else 0.0
