"""Recurrent layers of ONNX, whose weights are operands with all directions stacked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from engine.errors import InferStatus, LayerError, ParameterError, describe_shapes
from engine.layers.activations import sigmoid
from engine.layers.arguments import require_steps
from engine.layers.layer import OperatorCall, Outputs
from engine.layers.registry import register
from engine.layers.windows import working_dtype
from engine.values import Array

__all__ = ["gru", "lstm", "rnn"]

Function = Callable[[Array], Array]
States = tuple[Array, ...]


@dataclass(frozen=True, slots=True)
class _Direction:
    """Weights and functions of one direction; G is the number of gates times H.

    Attributes
    ----------
    w : ndarray of shape (G, I)
    r : ndarray of shape (G, H)
    of_input, of_state : ndarray of shape (G,)
        Biases.
    peephole : ndarray of shape (3, H)
        Contribution of the cell state to the gates i, o, f of an LSTM.
    functions : tuple of callable
    clip : float
        Limit of the absolute value of each function's argument.
    """

    w: Array
    r: Array
    of_input: Array
    of_state: Array
    peephole: Array
    functions: tuple[Function, ...]
    clip: float

    def limited(self, x: Array) -> Array:
        return np.clip(x, -self.clip, self.clip) if self.clip else x


Step = Callable[[Array, States, _Direction], States]


def _plain_step(gates: Array, states: States, way: _Direction) -> States:
    (hidden,) = states
    total = gates + way.of_input + hidden @ way.r.T + way.of_state
    return (way.functions[0](way.limited(total)),)


def _gru_step(gates: Array, states: States, way: _Direction, reset_behind: bool) -> States:
    (hidden,) = states
    f, g = way.functions
    gates = gates + way.of_input
    size = hidden.shape[-1]
    mixed = gates[:, : 2 * size] + hidden @ way.r[: 2 * size].T + way.of_state[: 2 * size]
    keep, reset = np.split(f(way.limited(mixed)), 2, -1)
    own, bias = way.r[2 * size :].T, way.of_state[2 * size :]
    behind = reset * (hidden @ own + bias)
    old = behind if reset_behind else (reset * hidden) @ own + bias
    new = g(way.limited(gates[:, 2 * size :] + old))
    return ((1 - keep) * new + keep * hidden,)


def _lstm_step(gates: Array, states: States, way: _Direction, coupled: bool) -> States:
    hidden, memory = states
    f, g, h = way.functions
    total = gates + way.of_input + hidden @ way.r.T + way.of_state
    entry, out, forget, new = np.split(total, 4, -1)
    entry = f(way.limited(entry + way.peephole[0] * memory))
    forget = 1 - entry if coupled else f(way.limited(forget + way.peephole[2] * memory))
    memory = forget * memory + entry * g(way.limited(new))
    out = f(way.limited(out + way.peephole[1] * memory))
    return out * h(memory), memory


# Functions with the defaults of their alpha and beta
_FUNCTIONS: Final[dict[str, tuple[Callable[..., Array], tuple[float, ...]]]] = {
    "affine": (lambda x, alpha, beta: alpha * x + beta, (1.0, 0.0)),
    "elu": (lambda x, alpha: np.where(x >= 0, x, alpha * np.expm1(np.minimum(x, 0))), (1.0,)),
    "hardsigmoid": (lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1), (0.2, 0.5)),
    "leakyrelu": (lambda x, alpha: np.where(x >= 0, x, alpha * x), (0.01,)),
    "relu": (lambda x: np.maximum(x, 0), ()),
    "scaledtanh": (lambda x, alpha, beta: alpha * np.tanh(beta * x), (1.0, 1.0)),
    "sigmoid": (sigmoid, ()),
    "softplus": (lambda x: np.logaddexp(0, x), ()),
    "softsign": (lambda x: x / (1 + np.abs(x)), ()),
    "tanh": (np.tanh, ()),
    "thresholdedrelu": (lambda x, alpha: np.where(x > alpha, x, 0), (1.0,)),
}


def _find_functions(names: Any, alphas: Any, betas: Any) -> list[Function]:
    """Return functions by name; alphas and betas are assigned in order."""
    given = (_list_numbers(alphas), _list_numbers(betas))
    result: list[Function] = []
    for name in names:
        if str(name).lower() not in _FUNCTIONS:
            raise ParameterError("activations", f"activation {name} is not known")
        function, defaults = _FUNCTIONS[str(name).lower()]
        numbers = [
            left.pop(0) if left else default
            for left, default in zip(given, defaults, strict=False)
        ]
        result.append(_bound(function, numbers))
    return result


def _bound(function: Callable[..., Array], numbers: list[float]) -> Function:
    return lambda x: function(x, *numbers)


def _list_numbers(given: Any) -> list[float]:
    return [] if given is None else np.atleast_1d(given).astype(float).tolist()


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of recurrent layer.

    Attributes
    ----------
    gates : int
    states : int
    functions : tuple of str
    """

    gates: int
    states: int
    functions: tuple[str, ...]


_PLAIN: Final = _Kind(1, 1, ("Tanh",))
_GRU: Final = _Kind(3, 1, ("Sigmoid", "Tanh"))
_LSTM: Final = _Kind(4, 2, ("Sigmoid", "Tanh", "Tanh"))


def _run(
    kind: _Kind, step: Step, operands: tuple[Array, ...], call: OperatorCall, options: _Options
) -> Outputs:
    """Run one layer in its directions."""
    if len(operands) < 3:
        raise LayerError("input and weights are needed", InferStatus.kInferInputsEmpty)
    x, w, r = operands[:3]
    hidden = r.shape[-1]
    if w.ndim != 3 or r.shape[1:] != (kind.gates * hidden, hidden):
        raise LayerError(
            f"weights of shapes {describe_shapes([w.shape, r.shape])} do not fit",
            InferStatus.kInferArraySizeMismatch,
        )
    work = working_dtype(x.dtype)
    rest = _identify_optional(operands[3:], kind, hidden)
    sequence = (x.swapaxes(0, 1) if options.layout else x).astype(work, copy=False)
    steps, samples = sequence.shape[:2]
    lengths = rest.lengths if rest.lengths is not None else np.full(samples, steps)
    count = len(w)
    names = options.activations or kind.functions * count
    functions = _find_functions(names, options.activation_alpha, options.activation_beta)
    result = np.zeros((steps, count, samples, hidden), work)
    ends = []
    for number in range(count):
        bias = np.zeros((2, kind.gates * hidden), work)
        if rest.bias is not None:
            bias = rest.bias[number].reshape(2, -1).astype(work)
        peephole = np.zeros((3, hidden), work)
        if rest.peephole is not None:
            peephole = rest.peephole[number].reshape(3, -1).astype(work)
        way = _Direction(
            w[number].astype(work),
            r[number].astype(work),
            bias[0],
            bias[1],
            peephole,
            tuple(functions[number * len(kind.functions) :][: len(kind.functions)]),
            options.clip or 0.0,
        )
        begin = tuple(
            np.zeros((samples, hidden), work)
            if place >= len(rest.states)
            else (rest.states[place].swapaxes(0, 1) if options.layout else rest.states[place])[
                number
            ].astype(work)
            for place in range(kind.states)
        )
        backwards = options.direction == "reverse" or number == 1
        y, last = _scan(sequence, lengths, step, begin, way, backwards=backwards)
        result[:, number] = y
        ends.append(last)
    states = [np.stack(state) for state in zip(*ends, strict=True)]
    if options.layout:
        result = result.transpose(2, 0, 1, 3)
        states = [state.swapaxes(0, 1) for state in states]
    outputs = [array.astype(x.dtype, copy=False) for array in (result, *states)]
    # A file omits the sequence if only the last states are used.
    rank = len(call.output_shape or ())
    return Outputs(outputs[1:] if rank == states[0].ndim else outputs)


def _scan(
    x: Array, lengths: Array, step: Step, states: States, way: _Direction, *, backwards: bool
) -> tuple[Array, States]:
    """Run a direction over sequences of different lengths; outputs after their ends are 0."""
    require_steps(len(x), "steps of a sequence")
    gates = x @ way.w.T
    result = np.zeros((*x.shape[:2], states[0].shape[-1]), x.dtype)
    order = range(len(x))
    for time in reversed(order) if backwards else order:
        goes_on = (time < lengths)[:, np.newaxis]
        new = step(gates[time], states, way)
        states = tuple(
            np.where(goes_on, after, before) for after, before in zip(new, states, strict=True)
        )
        result[time] = np.where(goes_on, states[0], 0)
    return result, states


@dataclass(frozen=True, slots=True)
class _Optional:
    """Operands that may be missing."""

    bias: Array | None = None
    lengths: Array | None = None
    states: States = ()
    peephole: Array | None = None


def _identify_optional(operands: tuple[Array, ...], kind: _Kind, hidden: int) -> _Optional:
    """Identify optional operands by dtype and shape."""
    matrices = [x for x in operands if x.ndim == 2]
    return _Optional(
        bias=next((x for x in matrices if x.shape[1] == 2 * kind.gates * hidden), None),
        lengths=next((x for x in operands if x.ndim == 1 and x.dtype.kind in "iu"), None),
        states=tuple(x for x in operands if x.ndim == 3),
        peephole=next((x for x in matrices if x.shape[1] == 3 * hidden), None),
    )


@dataclass(frozen=True, slots=True)
class _Options:
    """Parameters of all kinds of layers."""

    activations: tuple[str, ...] | None
    activation_alpha: Any
    activation_beta: Any
    clip: float | None
    direction: str
    layout: int


@register("RNN")
def rnn(
    *operands: Array,
    call: OperatorCall,
    hidden_size: int | None = None,
    direction: str = "forward",
    activations: Any = None,
    activation_alpha: Any = None,
    activation_beta: Any = None,
    clip: float | None = None,
    layout: int = 0,
) -> Outputs:
    """A plain recurrent layer: ONNX ``RNN``.

    Parameters
    ----------
    *operands : ndarray
        Input of shape (L, N, I), weights of shape (D, G, I) and (D, G, H). Optional: biases of
        shape (D, 2 G), int32 lengths of shape (N,), and initial states of shape (D, N, H).
    hidden_size : int, optional
        H; only for the file, the weights determine it.
    direction : str
        ``forward``, ``reverse`` or ``bidirectional``.
    activations : strings, optional
        Functions of each direction.
    activation_alpha, activation_beta : numbers, optional
        Parameters of the functions that have them.
    clip : float, optional
        Limit of the absolute value of each function's argument.
    layout : int
        Whether the sample axis is before the axes of steps and directions.

    Returns
    -------
    ndarray of shape (L, D, N, H)
    ndarray of shape (D, N, H)
        Last states.
    """
    options = _options(activations, activation_alpha, activation_beta, clip, direction, layout)
    return _run(_PLAIN, _plain_step, operands, call, options)


@register("GRU")
def gru(
    *operands: Array,
    call: OperatorCall,
    hidden_size: int | None = None,
    direction: str = "forward",
    linear_before_reset: int = 0,
    activations: Any = None,
    activation_alpha: Any = None,
    activation_beta: Any = None,
    clip: float | None = None,
    layout: int = 0,
) -> Outputs:
    """A layer of gated recurrent units, gates in the order z, r, h: ONNX ``GRU``.

    Parameters
    ----------
    *operands, hidden_size, direction, activations, activation_alpha, activation_beta, clip
        As in ``RNN``.
    linear_before_reset : int
        Whether the state is multiplied by its weight before the reset gate instead of after.
    layout : int
        Whether the sample axis is before the axes of steps and directions.

    Returns
    -------
    ndarray of shape (L, D, N, H)
    ndarray of shape (D, N, H)
        Last states.
    """
    options = _options(activations, activation_alpha, activation_beta, clip, direction, layout)

    def step(gates: Array, states: States, way: _Direction) -> States:
        return _gru_step(gates, states, way, bool(linear_before_reset))

    return _run(_GRU, step, operands, call, options)


@register("LSTM")
def lstm(
    *operands: Array,
    call: OperatorCall,
    hidden_size: int | None = None,
    direction: str = "forward",
    input_forget: int = 0,
    activations: Any = None,
    activation_alpha: Any = None,
    activation_beta: Any = None,
    clip: float | None = None,
    layout: int = 0,
) -> Outputs:
    """A layer of long short-term memory, gates in the order i, o, f, c: ONNX ``LSTM``.

    Parameters
    ----------
    *operands, hidden_size, direction, activations, activation_alpha, activation_beta, clip
        As in ``RNN``; initial cell states follow the states, and peepholes of shape (D, 3 H)
        are last.
    input_forget : int
        Whether input and forget gate are coupled, so that they sum to 1.
    layout : int
        Whether the sample axis is before the axes of steps and directions.

    Returns
    -------
    ndarray of shape (L, D, N, H)
    ndarray of shape (D, N, H)
        Last states.
    ndarray of shape (D, N, H)
        Last cell states.
    """
    options = _options(activations, activation_alpha, activation_beta, clip, direction, layout)

    def step(gates: Array, states: States, way: _Direction) -> States:
        return _lstm_step(gates, states, way, bool(input_forget))

    return _run(_LSTM, step, operands, call, options)


def _options(
    activations: Any, alpha: Any, beta: Any, clip: float | None, direction: str, layout: int
) -> _Options:
    names = (activations,) if isinstance(activations, str) else activations
    return _Options(names or None, alpha, beta, clip, direction, layout)
