"""Recurrent layers: from the last step back to the first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from engine.layers.recurrent import GRU, LSTM, RNN
from engine.provenance.call import NoBreakdownError
from engine.provenance.rules.sequences import (
    RECURRENT,
    is_sequence,
    read_recurrent,
    read_states,
)
from engine.provenance.slopes import accumulate, wide
from engine.provenance.table import passes_back

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.layers.recurrent_cells import CellWeights
    from engine.provenance.call import Call
    from engine.provenance.rules.sequences import Recurrent
    from engine.provenance.slopes import Gradient
    from engine.values import Array

_MOST_STATES = 1 << 24  # numbers that are kept of all steps; 8 bytes each


class _Steps(NamedTuple):
    """What a cell had at each step.

    Attributes
    ----------
    number : int
        Of the cell.
    inputs : ndarray of shape (L, N, I)
    before : list of tuple of ndarray
        The states that each step began with.
    order : range
        The steps in the order in which they were computed.
    """

    number: int
    inputs: Array
    before: list[tuple[Array, ...]]
    order: range


@passes_back(*RECURRENT)
def _recurred(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Go back through all steps of all layers."""
    layer = read_recurrent(call)
    x, states = read_states(call, layer)
    sequence = _steps_first(wide(x), layer)
    if len(sequence) * sequence.shape[1] * sum(len(each.hh) for each in layer.cells) > (
        _MOST_STATES
    ):
        raise NoBreakdownError(f"{len(sequence)} steps are too many to follow")
    begin = [
        _begin(layer, states, number, sequence.shape[1]) for number in range(len(layer.cells))
    ]
    runs: list[_Steps] = []
    for first in range(0, len(layer.cells), layer.directions):
        outputs = []
        for number in range(first, first + layer.directions):
            own, after = _run(layer, number, sequence, begin[number])
            runs.append(own)
            outputs.append(after)
        sequence = np.concatenate(outputs, -1)
    flowing = np.zeros(sequence.shape)
    by_state = [[np.zeros(each.shape) for each in begin[number]] for number in range(len(runs))]
    if is_sequence(call, layer):
        flowing = _steps_first(gradient, layer)
    else:
        kind = call.place - (0 if layer.states_first else 1)
        for number in range(len(runs)):
            by_state[number][kind] = np.atleast_2d(gradient[number])
    for first in reversed(range(0, len(runs), layer.directions)):
        parts = np.split(flowing, layer.directions, -1)
        flowing = np.zeros(runs[first].inputs.shape)
        for number, part in zip(range(first, first + layer.directions), parts, strict=True):
            flowing += _run_back(layer, runs[number], part, by_state[number])
    found: dict[str, Gradient] = {}
    accumulate(found, x.name, _as_given(flowing, layer, x.ndim))
    for at, state in enumerate(states):
        if state is not None:
            whole = np.stack([each[at] for each in by_state])
            accumulate(found, state.name, whole.reshape(state.shape))
    return found


def _steps_first(array: Array, layer: Recurrent) -> Array:
    if array.ndim == 2:
        return array[:, np.newaxis]
    return array.swapaxes(0, 1) if layer.batch_first else array


def _as_given(array: Array, layer: Recurrent, ndim: int) -> Array:
    if ndim == 2:
        return array[:, 0]
    return array.swapaxes(0, 1) if layer.batch_first else array


def _begin(layer: Recurrent, states: list[Any], number: int, samples: int) -> tuple[Array, ...]:
    """Return the states that a cell begins with; (N, P) and (N, H)."""
    cell = layer.cells[number]
    hidden = cell.hh.shape[1]
    units = cell.hr.shape[1] if cell.hr is not None else hidden
    return tuple([
        np.zeros((samples, size)) if state is None else np.atleast_2d(wide(state)[number])
        for state, size in zip(states, (hidden, units), strict=False)
    ])  # fmt: skip


def _run(
    layer: Recurrent, number: int, x: Array, states: tuple[Array, ...]
) -> tuple[_Steps, Array]:
    """Run a cell, and keep its states."""
    order = range(len(x))[:: -1 if number % layer.directions else 1]
    before: list[tuple[Array, ...]] = [()] * len(x)
    result = np.zeros((*x.shape[:2], states[0].shape[-1]))
    for step in order:
        before[step] = states
        row, states = layer.run_cell(number, x[step : step + 1], states)
        result[step] = row[0]
    return _Steps(number, x, before, order), result


def _run_back(
    layer: Recurrent, run: _Steps, gradient: Gradient, by_state: list[Gradient]
) -> Gradient:
    """Return the gradient by a cell's inputs; that by the states is replaced in place."""
    cell = layer.cells[run.number].ready(np.dtype(np.float64))
    gates = cell.of_input(run.inputs)
    result = np.zeros(run.inputs.shape)
    for step in reversed(run.order):
        own = gates[step]
        hidden = by_state[0] + gradient[step]
        before = run.before[step]
        if isinstance(layer, LSTM):
            by_gates, by_state[:] = _lstm_back(cell, own, before, hidden, by_state[1])
        elif isinstance(layer, GRU):
            by_gates, by_state[:] = _gru_back(cell, own, before, hidden)
        else:
            by_gates, by_state[:] = _plain_back(layer, cell, own, before, hidden)
        result[step] = by_gates @ cell.ih
    return result


def _plain_back(
    layer: RNN, cell: CellWeights, gates: Array, before: tuple[Array, ...], hidden: Gradient
) -> tuple[Gradient, list[Gradient]]:
    sums = gates + cell.of_state(before[0])
    slopes = (sums > 0) * 1.0 if layer.is_relu else 1 - np.square(np.tanh(sums))
    back = hidden * slopes
    return back, [back @ cell.hh]


def _gru_back(
    cell: CellWeights, gates: Array, before: tuple[Array, ...], hidden: Gradient
) -> tuple[Gradient, list[Gradient]]:
    (old,) = before
    reset, keep, new = np.split(gates, 3, -1)
    old_reset, old_keep, old_new = np.split(cell.of_state(old), 3, -1)
    r, z = _sigmoid(reset + old_reset), _sigmoid(keep + old_keep)
    n = np.tanh(new + r * old_new)
    by_new = hidden * (1 - z) * (1 - np.square(n))
    by_keep = hidden * (old - n) * z * (1 - z)
    by_reset = by_new * old_new * r * (1 - r)
    to_state = np.concatenate([by_reset, by_keep, by_new * r], -1)
    return (
        np.concatenate([by_reset, by_keep, by_new], -1),
        [hidden * z + to_state @ cell.hh],
    )


def _lstm_back(
    cell: CellWeights,
    gates: Array,
    before: tuple[Array, ...],
    hidden: Gradient,
    memory: Gradient,
) -> tuple[Gradient, list[Gradient]]:
    old, past = before
    entry, forget, new, out = np.split(gates + cell.of_state(old), 4, -1)
    i, f, o, g = _sigmoid(entry), _sigmoid(forget), _sigmoid(out), np.tanh(new)
    squashed = np.tanh(f * past + i * g)
    if cell.hr is not None:
        hidden = hidden @ cell.hr
    by_memory = memory + hidden * o * (1 - np.square(squashed))
    back = np.concatenate([
        by_memory * g * i * (1 - i), by_memory * past * f * (1 - f),
        by_memory * i * (1 - np.square(g)), hidden * squashed * o * (1 - o),
    ], -1)  # fmt: skip
    return back, [back @ cell.hh, by_memory * f]


def _sigmoid(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-x)))
