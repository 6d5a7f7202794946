"""Recurrent layers over whole sequences: plain, LSTM and GRU.

The input's contribution to the gates is computed for the whole sequence in one product. Then a
cell (see `engine.layers.recurrent_cells`) computes one step after the other.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Final

import numpy as np
from numpy.random import Generator
from typing_extensions import override

from engine.errors import InferStatus, LayerError, ParameterError, describe_shapes
from engine.layers.annotations import WeightOf
from engine.layers.arguments import require_steps
from engine.layers.dropout import drop
from engine.layers.layer import Outputs, PreparingLayer
from engine.layers.random_numbers import require_probability
from engine.layers.recurrent_cells import (
    Cell,
    CellWeights,
    States,
    gru_step,
    lstm_step,
    plain_step,
)
from engine.layers.registry import register
from engine.layers.windows import working_dtype
from engine.promotion import DType, promote_types
from engine.values import Array

__all__ = ["GRU", "LSTM", "RNN", "TRACED_LAYERS", "make_traced"]


def _scan(
    x: Array, cell: Cell, states: States, weights: CellWeights, *, backwards: bool
) -> tuple[Array, States]:
    """Run a cell over a sequence.

    Parameters
    ----------
    x : ndarray of shape (L, N, I)
    cell : callable
    states : tuple of ndarray of shape (N, P) or (N, H)
    weights : CellWeights
    backwards : bool
        Whether to start at the end; outputs keep the order of their inputs.

    Returns
    -------
    ndarray of shape (L, N, P), and the last states
    """
    require_steps(len(x), "steps of a sequence")
    gates = weights.of_input(x)
    result = np.empty((*x.shape[:2], states[0].shape[-1]), x.dtype)
    for step in range(len(x))[:: -1 if backwards else 1]:
        states = cell(gates[step], states, weights)
        result[step] = states[0]
    return result, states


def _run_layers(
    x: Array,
    cell: Cell,
    states: States,
    weights: list[CellWeights],
    directions: int,
    thin: Callable[[Array], Array] | None = None,
) -> tuple[Array, States]:
    """Run stacked layers, each in one or both directions.

    Parameters
    ----------
    x : ndarray of shape (L, N, I)
    cell : callable
    states : tuple of ndarray of shape (D * layers, N, P) or (D * layers, N, H)
    weights : list of CellWeights
        Of each direction of each layer.
    directions : int
        D.
    thin : callable, optional
        Drops elements of what one layer passes to the next.

    Returns
    -------
    ndarray of shape (L, N, D * P), and the last states in the shapes of `states`
    """
    last = []
    for first in range(0, len(weights), directions):
        outputs = []
        if first and thin is not None:
            x = thin(x)
        for number in range(first, first + directions):
            own = tuple(state[number] for state in states)
            y, own = _scan(x, cell, own, weights[number], backwards=number > first)
            outputs.append(y)
            last.append(own)
        x = outputs[0] if directions == 1 else np.concatenate(outputs, -1)
    return x, tuple(np.stack(state) for state in zip(*last, strict=True))


class _Recurrent(PreparingLayer[list[CellWeights]]):
    """Layers of one kind of cell over a sequence."""

    _gates: ClassVar[int]

    def __init__(
        self,
        weights: dict[str, Any],
        input_size: int | None,
        hidden_size: int | None,
        num_layers: int,
        bias: bool,
        batch_first: bool,
        bidirectional: bool,
        proj_size: int = 0,
    ) -> None:
        self.batch_first, self.directions = batch_first, 2 if bidirectional else 1
        # pnnx marks unoptimised graphs whose states are before the input like this.
        self.states_first = bool(weights.pop("pnnx_rnn_output_swapped", False))
        if num_layers < 1:
            raise ParameterError("num_layers", f"num_layers={num_layers} is less than 1")
        first = weights.get("weight_ih_l0")
        if not isinstance(first, np.ndarray) or first.ndim != 2:
            raise ParameterError("weight_ih_l0", "weight_ih_l0 is not a matrix, or missing")
        self._input_size = first.shape[1] if input_size is None else input_size
        self._hidden_size = (
            first.shape[0] // self._gates if hidden_size is None else hidden_size
        )
        self._output_size = proj_size or self._hidden_size
        self._weights = [
            self._select_weights(weights, number, suffix, bias=bias, projected=bool(proj_size))
            for number in range(num_layers)
            for suffix in ("", "_reverse")[: self.directions]
        ]
        if weights:
            name = next(iter(weights))
            raise ParameterError(name, f"{name!r} is not known to this layer")
        super().__init__()

    @property
    def cells(self) -> tuple[CellWeights, ...]:
        """The weights of each direction of each layer."""
        return tuple(self._weights)

    def _select_weights(
        self, weights: dict[str, Any], number: int, suffix: str, *, bias: bool, projected: bool
    ) -> CellWeights:
        """Select and check the weights of one direction of one layer."""
        width = self.directions * self._output_size if number else self._input_size
        gates = self._gates * self._hidden_size
        shapes: dict[str, tuple[int, ...]] = {
            "weight_ih": (gates, width),
            "weight_hh": (gates, self._output_size),
        }
        if bias:
            shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
        if projected:
            shapes |= {"weight_hr": (self._output_size, self._hidden_size)}
        found = {}
        for part, shape in shapes.items():
            name = f"{part}_l{number}{suffix}"
            array = weights.pop(name, None)
            if not isinstance(array, np.ndarray):
                raise ParameterError(name, f"the model has no attribute @{name}")
            if array.shape != shape:
                raise ParameterError(
                    name,
                    f"{name} has the shape {describe_shapes([array.shape])}, not "
                    f"{describe_shapes([shape])}",
                )
            found[part.removeprefix("weight_")] = array
        return CellWeights(**found)

    @property
    @abstractmethod
    def _cell(self) -> Cell:
        """The kind of cell."""

    def run(
        self,
        input: Array,
        states: list[Array | None],
        thin: Callable[[Array], Array] | None = None,
    ) -> tuple[Array, ...]:
        """Compute the output and the last states.

        Parameters
        ----------
        input : ndarray of shape (L, N, I), (N, L, I) or (L, I)
        states : list of ndarray of shape (D * layers, N, ...) or (D * layers, ...)
            None for zeros.
        thin : callable, optional
            Drops elements of what one layer passes to the next.

        Returns
        -------
        tuple of ndarray
        """
        input, *states = self.order_operands(input, states)
        if input.ndim not in {2, 3} or input.shape[-1] != self._input_size:
            raise LayerError(
                f"the input must have 3 dimensions (2 without a batch), the last of size "
                f"{self._input_size}; its shape is {describe_shapes([input.shape])}",
                InferStatus.kInferArraySizeMismatch,
            )
        dtype = promote_types(input.dtype, self._weights[0].ih.dtype)
        work = working_dtype(dtype)
        x = input.astype(work, copy=False)
        batched = input.ndim == 3
        if not batched:
            x = x[:, np.newaxis]
        elif self.batch_first:
            x = x.swapaxes(0, 1)
        if not len(x):
            raise LayerError("the sequence is empty", InferStatus.kInferInputsEmpty)
        sizes = (self._output_size, self._hidden_size)
        begin = tuple(
            self._make_state(state, (x.shape[1], size), work, batched=batched)
            for state, size in zip(states, sizes, strict=False)
        )
        y, last = _run_layers(x, self._cell, begin, self.prepared(work), self.directions, thin)
        if not batched:
            y, last = y[:, 0], tuple(state[:, 0] for state in last)
        elif self.batch_first:
            y = y.swapaxes(0, 1)
        results = (*last, y) if self.states_first else (y, *last)
        return tuple(result.astype(dtype, copy=False) for result in results)

    def run_cell(self, number: int, x: Array, states: States) -> tuple[Array, States]:
        """Run one direction of one layer over a sequence.

        Parameters
        ----------
        number : int
            Of the cell in `cells`.
        x : ndarray of shape (L, N, I)
        states : tuple of ndarray of shape (N, P) or (N, H)
            Of the same dtype.

        Returns
        -------
        ndarray of shape (L, N, P), and the last states
        """
        backwards = bool(number % self.directions)
        return _scan(x, self._cell, states, self.prepared(x.dtype)[number], backwards=backwards)

    def follow(self, number: int, x: Array, hidden: Array, memory: States) -> Array:
        """Run one direction of one layer, each step from a hidden state that is given.

        This is teacher forcing. A unit reads the others only by the hidden state, so a wrong
        number of one of its rows changes its own results alone.

        Parameters
        ----------
        number : int
            Of the cell in `cells`.
        x : ndarray of shape (L, N, I)
            In the order of the direction.
        hidden : ndarray of shape (L, N, P)
            Before each step, of the same dtype.
        memory : tuple of ndarray of shape (N, H)
            Other states before the first step, which are not given afterwards.

        Returns
        -------
        ndarray of shape (L, N, P)
        """
        weights = self.prepared(x.dtype)[number]
        gates = weights.of_input(x)
        if not memory:  # steps do not depend on each other
            rows = gates.reshape(-1, gates.shape[-1])
            (after,) = self._cell(rows, (hidden.reshape(rows.shape[0], -1),), weights)
            return after.reshape(hidden.shape)
        result = np.empty_like(hidden)
        for step, before in enumerate(hidden):
            states = self._cell(gates[step], (before, *memory), weights)
            result[step], memory = states[0], states[1:]
        return result

    def order_operands(self, first: Any, others: Sequence[Any]) -> list[Any]:
        """Order the operands as input, states; pnnx writes learnt states first.

        Parameters
        ----------
        first : ndarray
            Or anything with its `shape` and `ndim`, like the others.
        others : sequence of ndarray or None
        """
        given = [first, *(other for other in others if other is not None)]
        *front, last = given
        if not front or self._fits(given[0], given[1:]) or not self._fits(last, front):
            return [first, *others]
        return [last, *front]

    def _fits(self, input: Any, states: list[Any]) -> bool:
        """Return whether the shapes of input and states match."""
        if input.ndim not in {2, 3} or input.shape[-1] != self._input_size:
            return False
        samples = 0 if self.batch_first else 1
        batch = input.shape[samples : samples + 1] if input.ndim == 3 else ()
        sizes = (self._output_size, self._hidden_size)
        shapes = [(len(self._weights), *batch, size) for size in sizes]
        return all(s.shape == shape for s, shape in zip(states, shapes, strict=False))

    @override
    def prepare(self, dtype: DType) -> list[CellWeights]:
        """Prepare the weights of each layer and direction."""
        return [weights.ready(dtype) for weights in self._weights]

    def _make_state(
        self, state: Array | None, sizes: tuple[int, int], dtype: DType, *, batched: bool
    ) -> Array:
        """Return an initial state of shape (D * layers, N, size)."""
        shape = (len(self._weights), *sizes)
        if state is None:
            return np.zeros(shape, dtype)
        if not batched and state.ndim == 2:
            state = state[:, np.newaxis]
        if state.shape != shape:
            raise LayerError(
                f"a state has the shape {describe_shapes([state.shape])}, not "
                f"{describe_shapes([shape])}",
                InferStatus.kInferArraySizeMismatch,
            )
        return state.astype(dtype, copy=False)


@register("nn.RNN")
class RNN(_Recurrent):
    """Plain recurrent layers: ``torch.nn.RNN``.

    ``h[t] = tanh(weight_ih @ x[t] + bias_ih + weight_hh @ h[t - 1] + bias_hh)``; ``h`` is
    also the output, and the input of the next layer.

    Parameters
    ----------
    input_size, hidden_size : int, optional
        I and H.
    num_layers : int
    nonlinearity : str
        ``tanh`` or ``relu``.
    bias : bool
        Whether there are biases.
    batch_first : bool
        Whether shapes are (N, L, I) instead of (L, N, I).
    bidirectional : bool
        Whether each layer also runs backwards; then D is 2.
    **weights : ndarray
        ``weight_ih_lK`` of shape (H, I), ``weight_hh_lK`` of shape (H, H), ``bias_ih_lK``
        and ``bias_hh_lK`` of shape (H,) of layer K; from layer 1 on I is D * H. Names of the
        backward direction end in ``_reverse``.
    """

    _gates = 1

    def __init__(
        self,
        input_size: int | None = None,
        hidden_size: int | None = None,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        bidirectional: bool = False,
        dropout: float = 0.0,
        **weights: WeightOf[Any],
    ) -> None:
        self._kind, self.is_relu = plain_step(nonlinearity), nonlinearity == "relu"
        super().__init__(
            weights, input_size, hidden_size, num_layers, bias, batch_first, bidirectional
        )

    @property
    @override
    def _cell(self) -> Cell:
        return self._kind

    @override
    def forward(self, input: Array, hx: Array | None = None) -> Outputs:
        """Compute the outputs.

        Parameters
        ----------
        input : ndarray of shape (L, N, I)
            May lack the batch axis N.
        hx : ndarray of shape (D * layers, N, H), optional
            Initial state; zeros by default.

        Returns
        -------
        Outputs
            ndarray of shape (L, N, D * H), and the last states as `hx`.
        """
        return Outputs(self.run(input, [hx]))


@register("nn.GRU")
class GRU(_Recurrent):
    """Gated recurrent units: ``torch.nn.GRU``.

    Every weight stacks the gates ``r, z, n``: ``r = sigmoid(W_ir x + b_ir + W_hr h + b_hr)``,
    ``z`` likewise, ``n = tanh(W_in x + b_in + r * (W_hn h + b_hn))``, and ``h[t] = (1 - z) * n
    + z * h[t - 1]``.

    Parameters
    ----------
    input_size, hidden_size, num_layers, bias, batch_first, bidirectional
        As in ``nn.RNN``.
    **weights : ndarray
        As in ``nn.RNN``, with 3 H rows.
    """

    _gates = 3

    def __init__(
        self,
        input_size: int | None = None,
        hidden_size: int | None = None,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        bidirectional: bool = False,
        dropout: float = 0.0,
        **weights: WeightOf[Any],
    ) -> None:
        super().__init__(
            weights, input_size, hidden_size, num_layers, bias, batch_first, bidirectional
        )

    @property
    @override
    def _cell(self) -> Cell:
        return gru_step

    @override
    def forward(self, input: Array, hx: Array | None = None) -> Outputs:
        """Compute the outputs; parameters and result as in ``nn.RNN``."""
        return Outputs(self.run(input, [hx]))


@register("nn.LSTM")
class LSTM(_Recurrent):
    """Long short-term memory: ``torch.nn.LSTM``.

    Every weight stacks the gates ``i, f, g, o``: ``i = sigmoid(W_ii x + b_ii + W_hi h +
    b_hi)``, ``f`` and ``o`` likewise, ``g`` with tanh, ``c[t] = f * c[t - 1] + i * g`` and
    ``h[t] = o * tanh(c[t])``.

    Parameters
    ----------
    input_size, hidden_size, num_layers, bias, batch_first, bidirectional
        As in ``nn.RNN``.
    proj_size : int
        P: ``h`` is multiplied by ``weight_hr`` and has P numbers instead of H; 0 for none.
    **weights : ndarray
        As in ``nn.RNN``, with 4 H rows; ``weight_hr_lK`` of shape (P, H).
    """

    _gates = 4

    def __init__(
        self,
        input_size: int | None = None,
        hidden_size: int | None = None,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        bidirectional: bool = False,
        proj_size: int = 0,
        dropout: float = 0.0,
        **weights: WeightOf[Any],
    ) -> None:
        super().__init__(
            weights,
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            bidirectional,
            proj_size,
        )

    @property
    @override
    def _cell(self) -> Cell:
        return lstm_step

    @override
    def forward(self, input: Array, hx: Any = None, cx: Array | None = None) -> Outputs:
        """Compute the outputs.

        Parameters
        ----------
        input : ndarray of shape (L, N, I)
            May lack the batch axis N.
        hx : ndarray of shape (D * layers, N, P), optional
            Initial hidden state, or a pair of both states; zeros by default.
        cx : ndarray of shape (D * layers, N, H), optional
            Initial cell state.

        Returns
        -------
        Outputs
            ndarray of shape (L, N, D * P), and the last states as `hx` and `cx`.
        """
        if isinstance(hx, tuple):
            hx, cx = hx
        return Outputs(self.run(input, [hx, cx]))


# Layers of traced graphs

_TRACED: Final[dict[str, type[_Recurrent]]] = {
    "rnn_tanh": RNN,
    "rnn_relu": RNN,
    "gru": GRU,
    "lstm": LSTM,
}


TRACED_LAYERS: Final[dict[Callable[..., Outputs], str]] = {}
"""The name of each traced layer, by its code."""


def make_traced(
    name: str,
    weights: Sequence[Any],
    *,
    has_biases: bool,
    num_layers: int,
    bidirectional: bool,
    batch_first: bool,
) -> RNN | GRU | LSTM:
    """Make the layer of a traced graph, whose weights are a list.

    Parameters
    ----------
    name : str
        ``rnn_tanh``, ``rnn_relu``, ``gru`` or ``lstm``.
    weights : sequence of ndarray
        Of each direction of each layer; each has the same parts.
    has_biases, num_layers, bidirectional, batch_first
        As `bias` and the others of ``nn.RNN``.
    """
    options: dict[str, Any] = {"nonlinearity": name[4:]} if name.startswith("rnn") else {}
    per_direction = len(weights) // (num_layers * (2 if bidirectional else 1))
    parts = ["weight_ih", "weight_hh"] + ["bias_ih", "bias_hh"] * bool(has_biases)
    if per_direction > len(parts):
        parts.append("weight_hr")
        options["proj_size"] = len(weights[len(parts) - 1])
    names = (
        f"{part}_l{number}{suffix}"
        for number in range(num_layers)
        for suffix in ("", "_reverse")[: 2 if bidirectional else 1]
        for part in parts
    )
    layer: Any = _TRACED[name](
        num_layers=num_layers,
        bias=has_biases,
        batch_first=batch_first,
        bidirectional=bidirectional,
        **options,
        **dict(zip(names, weights, strict=True)),
    )
    return layer  # type: ignore[no-any-return]


def _make_traced(name: str) -> Callable[..., Outputs]:
    def compute(
        input: Array,
        hx: Any,
        params: tuple[Array, ...],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
        *,
        rng: Generator,
    ) -> Outputs:
        require_probability(dropout, "dropout")
        thin = partial(drop, p=dropout, rng=rng) if train and dropout else None
        layer = make_traced(
            name,
            params,
            has_biases=has_biases,
            num_layers=num_layers,
            bidirectional=bidirectional,
            batch_first=batch_first,
        )
        return Outputs(layer.run(input, list(hx) if isinstance(hx, tuple) else [hx], thin))

    return compute


def _register_traced() -> None:
    for name, layer in _TRACED.items():
        function = _make_traced(name)
        TRACED_LAYERS[function] = name
        function.__name__ = function.__qualname__ = name
        function.__doc__ = (
            f"A recurrent layer with all its weights as operands: ``nn.{layer.__name__}``.\n\n"
            "Parameters\n"
            "----------\n"
            "dropout : float\n"
            "    Share of what one layer hands to the next that is dropped by chance.\n"
            "train : bool\n"
            "    Without it nothing is dropped.\n"
        )
        unless = {"train": False, "dropout": 0, "num_layers": 1}
        register(f"aten::{name}", random_unless=unless)(function)


_register_traced()
