"""Recurrent layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import override

from engine.errors import LayerError, ParameterError, describe_shapes
from engine.layers.activations import sigmoid
from engine.layers.arguments import require_steps
from engine.layers.layer import Layer, NotInNumpyError, OperatorCall, Outputs
from engine.layers.ncnn.table import layer, require_weights
from engine.layers.windows import ready
from engine.ncnn.types import Params
from engine.values import Array

if TYPE_CHECKING:
    from collections.abc import Sequence

_FLOAT = np.dtype(np.float32)


class _Recurrent(Layer):
    """A cell that runs over the rows of its input, in one or both directions.

    Attributes
    ----------
    state_count : int
    """

    state_count = 1

    def __init__(self, call: OperatorCall, **given: Any) -> None:
        params = Params(call.params)
        if params.integer("int8_scale_term"):
            raise NotInNumpyError(
                "NumPy has no code for a quantised recurrent layer; choose the backend ncnn"
            )
        self.direction = params.integer("direction")
        self.outputs = params.size("num_output")
        self.hidden = params.size("hidden_size", self.outputs)
        self.weights = dict(call.attributes)
        if not 0 <= self.direction <= 2:
            raise ParameterError("direction", f"direction={self.direction} is unknown")
        require_weights(call)
        self.count = 2 if self.direction == 2 else 1

    def _step(
        self, gates: Array, states: tuple[Array, ...], weights: dict[str, Array]
    ) -> tuple[Array, ...]:
        """Return the next states, the first of which is the output."""
        raise NotImplementedError

    def _gates_of_input(self, x: Array, weights: dict[str, Array]) -> Array:
        return np.asarray(np.matmul(x, weights["weight_xc"].T) + weights["bias_c"].reshape(-1))

    def _require(self, shapes: Sequence[tuple[int, ...]]) -> None:
        size = self.weights["weight_xc"].shape[2]
        states = ((self.count, self.outputs), (self.count, self.hidden))[: self.state_count]
        fits = len(shapes[0]) == 2 and shapes[0][1] == size
        if not fits or tuple(shapes[1:]) not in {(), states}:
            raise LayerError(
                f"the layer takes rows of {size} numbers and maybe states of "
                f"{describe_shapes(states)}, not {describe_shapes(shapes)}"
            )

    def require_shapes(self, *shapes: tuple[int, ...]) -> None:
        """Check the operands' shapes."""
        self._require(shapes)

    @override
    def forward(self, *inputs: Array) -> Array | Outputs:
        self._require([array.shape for array in inputs])
        x, *given = inputs
        require_steps(len(x), "steps of a sequence")
        sizes = (self.outputs, self.hidden)[: self.state_count]
        started = given or [np.zeros((self.count, size), np.float32) for size in sizes]
        rows: list[Array] = []
        ends: list[tuple[Array, ...]] = []
        for place in range(self.count):
            weights = {key: ready(w[place], _FLOAT) for key, w in self.weights.items()}
            states = tuple(state[place] for state in started)
            result = np.empty((len(x), self.outputs), np.float32)
            gates = self._gates_of_input(x, weights)
            backwards = self.direction == 1 or place == 1
            for step in range(len(x))[:: -1 if backwards else 1]:
                states = self._step(gates[step], states, weights)
                result[step] = states[0]
            rows.append(result)
            ends.append(states)
        last = [np.stack(states) for states in zip(*ends, strict=True)]
        return Outputs([np.concatenate(rows, 1), *last])


@layer("LSTM")
class LSTM(_Recurrent):
    """Run a long short-term memory over the rows of the input.

    The gates are in the order input, forget, output, cell. If `hidden_size` differs from
    `num_output`, another weight projects the output.

    Parameters
    ----------
    **given
        Parameters and weights of ncnn.
    """

    state_count = 2

    @override
    def _step(
        self, gates: Array, states: tuple[Array, ...], weights: dict[str, Array]
    ) -> tuple[Array, ...]:
        hidden, cell = states
        total = gates + np.matmul(weights["weight_hc"], hidden)
        enter, forget, leave, fresh = total.reshape(4, -1)
        cell = sigmoid(forget) * cell + sigmoid(enter) * np.tanh(fresh)
        hidden = sigmoid(leave) * np.tanh(cell)
        if "weight_hr" in weights:
            hidden = np.matmul(weights["weight_hr"], hidden)
        return hidden, cell


@layer("GRU")
class GRU(_Recurrent):
    """Run a gated recurrent unit over the rows of the input.

    The gates are in the order reset, update, new. The new gate has a second bias, inside the
    product with the reset gate.

    Parameters
    ----------
    **given
        Parameters and weights of ncnn.
    """

    @override
    def _gates_of_input(self, x: Array, weights: dict[str, Array]) -> Array:
        bias = weights["bias_c"][:3].reshape(-1)
        return np.asarray(np.matmul(x, weights["weight_xc"].T) + bias)

    @override
    def _step(
        self, gates: Array, states: tuple[Array, ...], weights: dict[str, Array]
    ) -> tuple[Array, ...]:
        (hidden,) = states
        reset, update, fresh = gates.reshape(3, -1)
        own = np.matmul(weights["weight_hc"], hidden).reshape(3, -1)
        reset, update = sigmoid(reset + own[0]), sigmoid(update + own[1])
        fresh = np.tanh(fresh + reset * (own[2] + weights["bias_c"][3]))
        return (np.asarray((1 - update) * fresh + update * hidden),)


@layer("RNN")
class RNN(_Recurrent):
    """Run ``h = tanh(W x + V h + b)`` over the rows of the input.

    Parameters
    ----------
    **given
        Parameters and weights of ncnn.
    """

    @override
    def _step(
        self, gates: Array, states: tuple[Array, ...], weights: dict[str, Array]
    ) -> tuple[Array, ...]:
        (hidden,) = states
        return (np.tanh(gates + np.matmul(weights["weight_hc"], hidden)),)
