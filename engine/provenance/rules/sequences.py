"""Recurrent layers: the gates of one step, and what an element of a sequence depends on."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from engine.layers.ncnn import recurrent as ncnn
from engine.layers.recurrent import GRU, LSTM, RNN, TRACED_LAYERS, make_traced
from engine.layers.recurrent_cells import (
    gru_cell,
    lstm_cell,
    lstm_step,
    rnn_cell,
    rnn_relu_cell,
)
from engine.provenance.arithmetic import (
    add_up,
    format_index,
    grid,
    make_factor,
    multiply,
    sum_error,
)
from engine.provenance.call import NoBreakdownError, Operand, take
from engine.provenance.records import Breakdown, Interval, Kind, Step
from engine.provenance.table import explains, locates

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from engine.layers.recurrent_cells import States
    from engine.provenance.call import Call
    from engine.provenance.records import Box, Factor, Terms
    from engine.values import Array

__all__ = [
    "RECURRENT",
    "Recurrent",
    "explain_cell",
    "explain_recurrent",
    "is_sequence",
    "locate_cell",
    "locate_recurrent",
    "read_recurrent",
    "read_states",
]

Recurrent: TypeAlias = RNN | GRU | LSTM
_NCNN: Final = (ncnn.RNN, ncnn.GRU, ncnn.LSTM)
RECURRENT: Final[tuple[Any, ...]] = (RNN, GRU, LSTM, *TRACED_LAYERS, *_NCNN)
_Vector: TypeAlias = "npt.NDArray[np.float64]"

_MOST_PRODUCTS: Final = 1 << 28  # of all steps before: half a second to compute again
_DRIFT: Final = 8.0  # a kernel may round otherwise than the steps that are computed again
_GATES: Final = {RNN: ("h",), GRU: ("r", "z", "n"), LSTM: ("i", "f", "g", "o")}
# Names for `make_traced`, and where ncnn has PyTorch's gates.
_NCNN_KINDS: Final[dict[Any, tuple[str, list[int]]]] = {
    ncnn.RNN: ("rnn_tanh", [0]), ncnn.GRU: ("gru", [0, 1, 2]), ncnn.LSTM: ("lstm", [0, 1, 3, 2])
}  # fmt: skip
_CELLS: Final[dict[Any, type[Recurrent]]] = {
    rnn_cell: RNN, rnn_relu_cell: RNN, gru_cell: GRU, lstm_cell: LSTM
}  # fmt: skip
_FORMULAS: Final = {
    RNN: "f(W · x + b + U · h before)",
    GRU: "(1 − z) · n + z · h before, gates of W · x + b and U · h before",
    LSTM: "o · tanh(f · c before + i · g), gates of W · x + b + U · h before",
}


class _Spot(NamedTuple):
    """Where in the layers an element comes from.

    Attributes
    ----------
    number : int
        Of the cell: layer by layer, in each the direction forwards first.
    step, sample, unit : int
    memory : bool
        Whether it is one of the states ``c`` of an LSTM.
    """

    number: int
    step: int
    sample: int
    unit: int
    memory: bool


class _Run(NamedTuple):
    """What a cell has at one step.

    Attributes
    ----------
    input : ndarray of shape (1, 1, I)
        Of the step: of the layer's input, or of what the layer below gives.
    before : tuple of ndarray of shape (1, P) or (1, H)
        The states that the step begins with.
    outputs : list of ndarray
        All outputs up to the step, and the states after it.
    """

    input: Array
    before: States
    outputs: list[Array]


class _Unit(NamedTuple):
    """What the gates of a unit are made of.

    Attributes
    ----------
    kind : type
        Of the layer.
    is_relu : bool
    terms : Terms
        The products of the input, gate by gate.
    kept : ndarray of shape (gates, P)
        The products of the state.
    shift : ndarray of shape (2, gates)
        The biases.
    old, cells : float
        The unit's state ``h`` and ``c`` before.
    memory : bool
        Whether ``c`` is explained.
    """

    kind: type[Recurrent]
    is_relu: bool
    terms: Terms
    kept: _Vector
    shift: _Vector
    old: float
    cells: float
    memory: bool


@locates(RNN, GRU, LSTM, *TRACED_LAYERS)
def locate_recurrent(call: Call, box: Box) -> Mapping[str, Box]:
    """Return a sample's sequence up to the element; all of it if it is read backwards, too."""
    layer = read_recurrent(call)
    x, states = read_states(call, layer)
    found: dict[str, Box] = {
        each.name: each.whole
        for each in call.arguments.get("params", ())
        if isinstance(each, Operand)
    }
    samples = box[0 if layer.batch_first and is_sequence(call, layer) else 1 % len(box)]
    for each in states:
        if each is not None:
            whole = each.whole
            found[each.name] = (whole[0], samples, whole[2]) if each.ndim == 3 else whole
    region = list(x.whole)
    time = 1 if x.ndim == 3 and layer.batch_first else 0
    if x.ndim == 3:
        region[1 - time] = samples
    if layer.directions == 1 and is_sequence(call, layer):
        region[time] = Interval(0, box[time].stop)
    found[x.name] = tuple(region)
    return found


@explains(*RECURRENT)
def explain_recurrent(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum the products of the gates, and compute the step from the state before it.

    The steps before, and the layers below, are computed again in float64. The same in float32
    shows how far rounding takes them.
    """
    layer = read_recurrent(call)
    x, states = read_states(call, layer)
    spot = _find_spot(call, layer, x, index)
    wide = _run(layer, x, states, spot, np.float64)
    narrow = _run(layer, x, states, spot, np.float32)
    drift = _DRIFT * max(
        float(np.abs(one - other).max())
        for one, other in zip(wide.outputs, narrow.outputs, strict=True)
    )
    if layer.cells[spot.number].hr is not None and not spot.memory:
        return _explain_projected(call, layer, spot, wide, index, drift)
    return _explain_gates(call, layer, x, spot, wide, index, drift)


@locates(*_NCNN)
def locate_ncnn_recurrent(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the rows up to an output's, those from it for a layer that runs backwards."""
    layer, (x, *states) = call.layer, call.arrays
    rows = Interval.whole(x.shape[0])
    direction = getattr(layer, "direction", 2)
    if not call.place and direction == 0:
        rows = Interval(0, box[0].stop)
    elif not call.place and direction == 1:
        rows = Interval(box[0].start, x.shape[0])
    return {**{each.name: each.whole for each in states}, x.name: (rows, x.whole[1])}


def read_recurrent(call: Call) -> Recurrent:
    """Return PyTorch's layer; that of a traced graph or of ncnn is made from its weights."""
    layer, given = call.layer, call.arguments
    if isinstance(layer, (RNN, GRU, LSTM)):
        return layer
    if isinstance(layer, _NCNN):
        return _read_ncnn(layer)
    weights = [each.value if isinstance(each, Operand) else each for each in given["params"]]
    if given["train"] and given["dropout"]:
        raise NoBreakdownError("a layer that drops at random has no breakdown")
    return make_traced(
        TRACED_LAYERS[call.layer_code],
        weights,
        has_biases=given["has_biases"],
        num_layers=given["num_layers"],
        bidirectional=given["bidirectional"],
        batch_first=given["batch_first"],
    )


def _read_ncnn(layer: Any) -> Recurrent:
    """Make PyTorch's layer of the weights of ncnn, which orders the gates otherwise."""
    if layer.direction == 1:
        raise NoBreakdownError("a layer that only runs backwards has no breakdown")
    name, order = _NCNN_KINDS[type(layer)]
    weights: list[Array] = []
    for place in range(layer.count):
        own = {key: np.asarray(array[place]) for key, array in layer.weights.items()}
        for key in ("weight_xc", "weight_hc"):
            by_gate = own[key].reshape(len(order), -1, own[key].shape[-1])
            weights.append(by_gate[order].reshape(own[key].shape))
        biases = own["bias_c"].reshape(-1, layer.hidden)
        inside = np.zeros_like(biases[: len(order)])
        if len(biases) > len(order):  # of GRU's new gate, inside of the product with another
            inside[-1] = biases[-1]
        weights += [biases[order].reshape(-1), inside.reshape(-1)]
        weights += [own["weight_hr"]] if "weight_hr" in own else []
    return make_traced(
        name,
        weights,
        has_biases=True,
        num_layers=1,
        bidirectional=layer.count == 2,
        batch_first=False,
    )


def read_states(call: Call, layer: Recurrent) -> tuple[Operand, list[Operand | None]]:
    """Return the input, and the initial states or None for zeros."""
    if isinstance(call.layer, _NCNN):
        sequence, *begin = call.arrays
        return sequence, [*begin, *[None] * (len(_states_of(layer)) - len(begin))]
    given: list[Any] = [call.arguments.get(name) for name in ("input", "hx", "cx")]
    if isinstance(given[1], tuple):
        given[1:] = given[1]
    if not all(each is None or isinstance(each, Operand) for each in given):
        raise NoBreakdownError("initial states in a list have no breakdown")
    count = len(_states_of(layer))
    x, *states = layer.order_operands(given[0], given[1 : 1 + count])
    return x, [*states, *[None] * (count - len(states))]


def _states_of(layer: Recurrent) -> tuple[str, ...]:
    return ("h", "c") if isinstance(layer, LSTM) else ("h",)


def is_sequence(call: Call, layer: Recurrent) -> bool:
    """Whether the output is that of all steps, not a last state."""
    return call.place == (len(_states_of(layer)) if layer.states_first else 0)


def _find_spot(call: Call, layer: Recurrent, x: Operand, index: tuple[int, ...]) -> _Spot:
    """Return which cell makes an element, at which step."""
    time = 1 if x.ndim == 3 and layer.batch_first else 0
    if not is_sequence(call, layer):
        number, *samples, unit = index
        step = 0 if number % layer.directions else x.shape[time] - 1
        memory = call.place == (1 if layer.states_first else 2)
        return _Spot(number, step, samples[0] if samples else 0, unit, memory)
    width = call.shape[-1] // layer.directions
    direction, unit = divmod(index[-1], width)
    number = len(layer.cells) - layer.directions + direction
    return _Spot(number, index[time], index[1 - time] if x.ndim == 3 else 0, unit, memory=False)


def _run(
    layer: Recurrent,
    x: Operand,
    states: list[Operand | None],
    spot: _Spot,
    dtype: type[np.floating[Any]],
) -> _Run:
    """Compute the layers below, and the steps before."""
    below = spot.number - spot.number % layer.directions
    sequence = x.value
    if x.ndim == 2:
        sequence = sequence[:, np.newaxis]
    elif layer.batch_first:
        sequence = sequence[spot.sample][:, np.newaxis]
    else:
        sequence = sequence[:, spot.sample : spot.sample + 1]
    if layer.directions == 1:
        sequence = sequence[: spot.step + 1]
    sizes = [cell.ih.size + cell.hh.size for cell in layer.cells]
    steps = len(sequence) - 1 - spot.step if spot.number > below else spot.step
    if len(sequence) * sum(sizes[:below]) + steps * sizes[spot.number] > _MOST_PRODUCTS:
        raise NoBreakdownError(f"{len(sequence)} steps are too many to compute again")
    sequence = sequence.astype(dtype)
    for first in range(0, below, layer.directions):
        parts = [
            layer.run_cell(number, sequence, _begin(layer, states, number, spot.sample, dtype))
            for number in range(first, first + layer.directions)
        ]
        sequence = np.concatenate([part for part, _ in parts], -1)
    past = sequence[spot.step + 1 :] if spot.number > below else sequence[: spot.step]
    last = sequence[spot.step : spot.step + 1]
    before = _begin(layer, states, spot.number, spot.sample, dtype)
    outputs = []
    if len(past):
        rows, before = layer.run_cell(spot.number, past, before)
        outputs.append(rows)
    row, after = layer.run_cell(spot.number, last, before)
    return _Run(last, before, [*outputs, row, *after])


def _begin(
    layer: Recurrent,
    states: list[Operand | None],
    number: int,
    sample: int,
    dtype: type[np.floating[Any]],
) -> States:
    """Return the initial states of a cell."""
    gates, hidden = layer.cells[number].hh.shape
    sizes = (hidden, gates // len(_GATES[type(layer)]))
    found = []
    for state, size in zip(states, sizes, strict=False):
        if state is None:
            found.append(np.zeros((1, size), dtype))
        else:
            row = state.value[number, sample] if state.ndim == 3 else state.value[number]
            found.append(row.astype(dtype)[np.newaxis])
    return tuple(found)


def _label(layer: Recurrent, part: str, number: int) -> str:
    level, direction = divmod(number, layer.directions)
    return f"{part}_l{level}{'_reverse' if direction else ''}"


def _explain_projected(
    call: Call, layer: Recurrent, spot: _Spot, run: _Run, index: tuple[int, ...], drift: float
) -> Breakdown:
    """Sum the results of all units of an LSTM times a row of its projection."""
    cell = layer.cells[spot.number]
    plain = cell.ready(np.dtype(np.float64))
    results = lstm_step(plain.of_input(run.input[0]), run.before, replace(plain, hr=None))[0][0]
    weights = _take_weight(call, layer, "hr", spot, grid([spot.unit], range(len(results))))
    name = weights.name
    factors = make_factor("o · tanh(c)", results), weights
    terms = multiply(factors, (len(results),), ("unit",))
    formula = f"y{format_index(index)} = Σ {name}[{spot.unit}, k] · (o · tanh(c))[k]"
    found = add_up(call, formula, terms)
    return replace(found, error=found.error + drift)


def _explain_gates(
    call: Call,
    layer: Recurrent,
    x: Operand,
    spot: _Spot,
    run: _Run,
    index: tuple[int, ...],
    drift: float,
) -> Breakdown:
    """Compute the gates of a unit, and from them its state."""
    cell = layer.cells[spot.number]
    names = _GATES[type(layer)]
    hidden = cell.hh.shape[0] // len(names)
    rows = [gate * hidden + spot.unit for gate in range(len(names))]
    found = _Unit(
        type(layer),
        isinstance(layer, RNN) and layer.is_relu,
        _products(call, layer, x, spot, run.input.reshape(-1), rows),
        np.asarray(cell.hh[rows], np.float64) * run.before[0][0],
        _shifts((cell.bias_ih, cell.bias_hh), rows),
        float(run.before[0][0, spot.unit]) if cell.hr is None else 0.0,
        float(run.before[1][0, spot.unit]) if len(run.before) > 1 else 0.0,
        spot.memory,
    )
    note = ""
    if len(layer.cells) > 1:
        level, direction = divmod(spot.number, layer.directions)
        note = f"; layer {level}{' backwards' if direction else ''}"
    return _from_gates(call, index, found, note, drift)


def _shifts(biases: tuple[Array | None, Array | None], rows: list[int]) -> _Vector:
    return np.array([
        np.zeros(len(rows)) if each is None else np.asarray(each[rows], np.float64)
        for each in biases
    ])  # fmt: skip


def _from_gates(
    call: Call, index: tuple[int, ...], unit: _Unit, note: str = "", drift: float = 0.0
) -> Breakdown:
    """Compute the state of a unit from the sums of its gates."""
    terms, kept, shift = unit.terms, unit.kept, unit.shift
    states = kept.sum(axis=1) + shift[1]
    total, steps = _finish(unit, terms.partial_sums + shift[0], states)
    if unit.memory:
        total = steps[-1].value
    steps = (
        *[Step(f"state's part of {name}", float(part))
          for name, part in zip(_GATES[unit.kind], states, strict=True)],
        *steps,
    )  # fmt: skip
    magnitude = float(np.abs(terms.products).sum() + np.abs(kept).sum() + np.abs(shift).sum())
    count = terms.shape[1] + kept.shape[1]
    error = drift + sum_error(magnitude + abs(unit.cells) + 1, count, call.dtype, total)
    text = "f · c before + i · g" if unit.memory else _FORMULAS[unit.kind]
    formula = f"y{format_index(index)} = {text}{note}"
    return Breakdown(Kind.GATES, formula, terms, total, error, steps=steps)


@explains(*_CELLS)
def explain_cell(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum the products of the gates of one step, and compute its state."""
    kind, given, x = _CELLS[call.layer_code], call.arguments, call.array("input")
    *lead, unit = index
    ih, hh = given["weight_ih"], _array(given["weight_hh"])
    gates = len(_GATES[kind])
    hidden = ih.shape[0] // gates
    rows = [gate * hidden + unit for gate in range(gates)]
    places = grid(range(gates), range(ih.shape[1]))
    samples = np.broadcast_to(np.array(lead, np.int64), (len(places), len(lead)))
    factors = (
        take(x, "input", np.column_stack([samples, places[:, 1]])),
        take(ih, "weight_ih", np.column_stack([np.array(rows)[places[:, 0]], places[:, 1]])),
    )
    before, cells = (
        np.zeros(hidden) if each is None else _array(each)[tuple(lead)].astype(np.float64)
        for each in _states_before(call)
    )
    found = _Unit(
        kind,
        call.layer_code is rnn_relu_cell or given.get("nonlinearity") == "relu",
        multiply(factors, (gates, ih.shape[1]), ("gate", "input")),
        np.asarray(hh[rows], np.float64) * before,
        _shifts((_array(given["bias_ih"]), _array(given["bias_hh"])), rows),
        float(before[unit]),
        float(cells[unit]),
        bool(call.place),
    )
    return _from_gates(call, index, found)


@locates(*_CELLS)
def locate_cell(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the samples of the input and of the states, and weights that are operands."""
    found: dict[str, Box] = {each.name: each.whole for each in call.arrays}
    states = _states_before(call)
    if not all(each is None or isinstance(each, Operand) for each in states):
        raise NoBreakdownError("states in a list are not followed")
    for each in (call.array("input"), *states):
        if each is not None:
            found[each.name] = (*box[:-1], each.whole[-1])
    return found


def _states_before(call: Call) -> tuple[Any, Any]:
    """Return the states ``h`` and ``c`` that a cell begins with; None for zeros."""
    state = call.arguments.get("hx")
    if isinstance(state, tuple):
        return state[0], state[1]
    return state, call.arguments.get("cx")


def _array(value: Any) -> Any:
    return value.value if isinstance(value, Operand) else value


def _take_weight(
    call: Call, layer: Recurrent, part: str, spot: _Spot, at: npt.NDArray[np.int64]
) -> Factor:
    """Take elements of a weight, from where the file has it."""
    if not isinstance(call.layer, _NCNN):
        name = _label(layer, f"weight_{part}", spot.number)
        return take(np.asarray(getattr(layer.cells[spot.number], part)), name, at)
    own: Any = call.layer
    name = {"ih": "weight_xc", "hr": "weight_hr"}[part]
    rows = at[:, 0]
    if part == "ih":
        gates, units = np.divmod(rows, own.hidden)
        rows = np.array(_NCNN_KINDS[type(own)][1])[gates] * own.hidden + units
    places = np.column_stack([np.full(len(at), spot.number), rows, at[:, 1]])
    return take(own.weights[name], name, places)


def _products(
    call: Call, layer: Recurrent, x: Operand, spot: _Spot, input: _Vector, rows: list[int]
) -> Terms:
    """Multiply the input of a step by the rows of a unit's gates."""
    places = grid(range(len(rows)), range(len(input)))
    at = np.column_stack([np.array(rows)[places[:, 0]], places[:, 1]])
    weights = _take_weight(call, layer, "ih", spot, at)
    if spot.number < layer.directions:
        lead = (spot.sample, spot.step) if layer.batch_first else (spot.step, spot.sample)
        given = lead if x.ndim == 3 else (spot.step,)
        fixed = np.broadcast_to(np.array(given), (len(places), len(given)))
        inputs = take(x, "input", np.column_stack([fixed, places[:, 1]]))
    else:
        level = spot.number // layer.directions
        inputs = make_factor(f"h of layer {level - 1}", input[places[:, 1]])
    return multiply([inputs, weights], (len(rows), len(input)), ("gate", "input"))


def _finish(unit: _Unit, inputs: _Vector, states: _Vector) -> tuple[float, tuple[Step, ...]]:
    """Return the new state from the sums of the gates, and the gates."""
    old = unit.old
    gates = [float(a + b) for a, b in zip(inputs, states, strict=True)]
    if unit.kind is RNN:
        return (max(gates[0], 0.0) if unit.is_relu else math.tanh(gates[0])), (
            Step("h before", old),
        )
    if unit.kind is GRU:
        r, z = _sigmoid(gates[0]), _sigmoid(gates[1])
        n = math.tanh(float(inputs[2]) + r * float(states[2]))
        found = Step("r", r), Step("z", z), Step("n", n), Step("h before", old)
        return (1 - z) * n + z * old, found
    i, f, o = (_sigmoid(gates[at]) for at in (0, 1, 3))
    g = math.tanh(gates[2])
    new = f * unit.cells + i * g
    named = zip(
        ("i", "f", "g", "o", "c before", "c"), (i, f, g, o, unit.cells, new), strict=True
    )
    return o * math.tanh(new), tuple([Step(name, value) for name, value in named])


def _sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value)) if value > -700 else 0.0
