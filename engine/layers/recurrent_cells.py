"""Recurrent cells: one step of a plain recurrent layer, an LSTM or a GRU.

A *cell* computes the next states from the current ones and the input's contribution to the
gates. The first state is always the hidden state, which is also the output.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from engine.errors import InferStatus, LayerError, ParameterError, describe_shapes
from engine.layers.annotations import OperandOf, WeightOf
from engine.layers.layer import Outputs
from engine.layers.registry import register
from engine.layers.windows import ready, working_dtype
from engine.promotion import DType, promote_types
from engine.values import Array, Value

__all__ = ["Cell", "CellWeights", "States", "gru_step", "lstm_step", "plain_step"]

States = tuple[Array, ...]


@dataclass(frozen=True, slots=True)
class CellWeights:
    """Weights of one direction of one layer; G is the number of gates times H.

    Attributes
    ----------
    ih : ndarray of shape (G, I)
    hh : ndarray of shape (G, P), where P is H without projection
    bias_ih, bias_hh : ndarray of shape (G,), or None
    hr : ndarray of shape (P, H), or None
        Projects the hidden state.
    """

    ih: Array
    hh: Array
    bias_ih: Array | None = None
    bias_hh: Array | None = None
    hr: Array | None = None

    def ready(self, dtype: DType) -> CellWeights:
        """Prepare the weights for a dtype."""
        arrays = (self.ih, self.hh, self.bias_ih, self.bias_hh, self.hr)
        return CellWeights(*(None if a is None else ready(a, dtype) for a in arrays))  # type: ignore[arg-type]

    def of_input(self, x: Array) -> Array:
        """Compute the contribution of the input (..., I) to the gates (..., G)."""
        return _affine(x, self.ih, self.bias_ih)

    def of_state(self, hidden: Array) -> Array:
        """Compute the contribution of the hidden state (N, P) to the gates (N, G)."""
        return _affine(hidden, self.hh, self.bias_hh)


Cell = Callable[[Array, States, CellWeights], States]


def _affine(x: Array, weight: Array, bias: Array | None) -> Array:
    result: Array = np.matmul(x.reshape(-1, x.shape[-1]), weight.T)
    if bias is not None:
        result += bias
    return result.reshape(*x.shape[:-1], -1)


def _sigmoid(x: Array) -> Array:
    result: Array = np.reciprocal(1 + np.exp(-x))
    return result


def _tanh_step(gates: Array, states: States, weights: CellWeights) -> States:
    return (np.tanh(gates + weights.of_state(states[0])),)


def _relu_step(gates: Array, states: States, weights: CellWeights) -> States:
    return (np.maximum(gates + weights.of_state(states[0]), 0),)


def lstm_step(gates: Array, states: States, weights: CellWeights) -> States:
    """Compute a step of long short-term memory.

    Parameters
    ----------
    gates : ndarray of shape (N, 4 H)
        Contribution of the input to the gates i, f, g, o.
    states : tuple of ndarray of shape (N, P) and (N, H)
    weights : CellWeights

    Returns
    -------
    tuple of ndarray of shape (N, P) and (N, H)
    """
    hidden, memory = states
    entry, forget, new, out = np.split(gates + weights.of_state(hidden), 4, -1)
    memory = _sigmoid(forget) * memory + _sigmoid(entry) * np.tanh(new)
    hidden = _sigmoid(out) * np.tanh(memory)
    if weights.hr is not None:
        hidden = np.matmul(hidden, weights.hr.T)
    return hidden, memory


def gru_step(gates: Array, states: States, weights: CellWeights) -> States:
    """Compute a step of a gated recurrent unit.

    Parameters
    ----------
    gates : ndarray of shape (N, 3 H)
        Contribution of the input to the gates r, z, n.
    states : tuple of one ndarray of shape (N, H)
    weights : CellWeights

    Returns
    -------
    tuple of one ndarray of shape (N, H)
    """
    (hidden,) = states
    reset, keep, new = np.split(gates, 3, -1)
    old_reset, old_keep, old_new = np.split(weights.of_state(hidden), 3, -1)
    share = _sigmoid(keep + old_keep)
    candidate = np.tanh(new + _sigmoid(reset + old_reset) * old_new)
    return (candidate + share * (hidden - candidate),)


_PLAIN_STEPS: Final[dict[str, Cell]] = {"tanh": _tanh_step, "relu": _relu_step}


def plain_step(nonlinearity: str) -> Cell:
    """Return the step of a plain recurrent layer.

    Parameters
    ----------
    nonlinearity : str
        ``tanh`` or ``relu``.

    Raises
    ------
    ParameterError
        For any other nonlinearity.
    """
    if nonlinearity not in _PLAIN_STEPS:
        raise ParameterError(
            "nonlinearity", f"nonlinearity={nonlinearity} is neither tanh nor relu"
        )
    return _PLAIN_STEPS[nonlinearity]


def _step(
    cell: Cell, input: Array, states: tuple[Value, ...], weights: CellWeights
) -> tuple[Array, ...]:
    dtype = promote_types(input.dtype, weights.ih.dtype)
    work = working_dtype(dtype)
    plain = weights.ready(work)
    x = np.atleast_2d(input).astype(work, copy=False)
    sizes = (weights.hh.shape[1], weights.hh.shape[1])
    begin = tuple(
        np.zeros((len(x), size), work)
        if state is None
        else np.atleast_2d(np.asarray(state, work))
        for state, size in zip(states, sizes, strict=False)
    )
    if x.shape[-1] != weights.ih.shape[1] or any(
        state.shape != (len(x), size) for state, size in zip(begin, sizes, strict=False)
    ):
        raise LayerError(
            f"input and states of shapes {describe_shapes([x.shape, begin[0].shape])} do not "
            f"fit weights of shapes {describe_shapes([weights.ih.shape, weights.hh.shape])}",
            InferStatus.kInferArraySizeMismatch,
        )
    after = cell(plain.of_input(x), begin, plain)
    return tuple(
        state.reshape(*input.shape[:-1], -1).astype(dtype, copy=False) for state in after
    )


@register("nn.RNNCell", "aten::rnn_tanh_cell")
def rnn_cell(
    input: Array,
    hx: Array | None = None,
    weight_ih: WeightOf[Any] = None,
    weight_hh: WeightOf[Any] = None,
    bias_ih: WeightOf[Array | None] = None,
    bias_hh: WeightOf[Array | None] = None,
    nonlinearity: str = "tanh",
    input_size: int | None = None,
    hidden_size: int | None = None,
    bias: bool = True,
) -> Array:
    """One step of a plain recurrent layer: ``torch.nn.RNNCell``.

    Parameters
    ----------
    input : ndarray of shape (N, I) or (I,)
    hx : ndarray of shape (N, H) or (H,), optional
        Zeros by default.
    weight_ih, weight_hh, bias_ih, bias_hh, nonlinearity
        As in a layer of ``nn.RNN``.

    Returns
    -------
    ndarray of shape (N, H) or (H,)
    """
    weights = CellWeights(weight_ih, weight_hh, bias_ih, bias_hh)
    return _step(plain_step(nonlinearity), input, (hx,), weights)[0]


@register("aten::rnn_relu_cell")
def rnn_relu_cell(
    input: Array,
    hx: Array,
    weight_ih: Array,
    weight_hh: Array,
    bias_ih: Array | None = None,
    bias_hh: Array | None = None,
) -> Array:
    """One step of a plain recurrent layer with ReLU; as ``nn.RNNCell``."""
    return rnn_cell(input, hx, weight_ih, weight_hh, bias_ih, bias_hh, "relu")


@register("nn.GRUCell", "aten::gru_cell")
def gru_cell(
    input: Array,
    hx: Array | None = None,
    weight_ih: WeightOf[Any] = None,
    weight_hh: WeightOf[Any] = None,
    bias_ih: WeightOf[Array | None] = None,
    bias_hh: WeightOf[Array | None] = None,
    input_size: int | None = None,
    hidden_size: int | None = None,
    bias: bool = True,
) -> Array:
    """One step of a gated recurrent unit: ``torch.nn.GRUCell``.

    Parameters and result as in ``nn.RNNCell``; weights as in a layer of ``nn.GRU``.
    """
    weights = CellWeights(weight_ih, weight_hh, bias_ih, bias_hh)
    return _step(gru_step, input, (hx,), weights)[0]


@register("nn.LSTMCell", "aten::lstm_cell")
def lstm_cell(
    input: Array,
    hx: OperandOf[Any] = None,
    weight_ih: WeightOf[Any] = None,
    weight_hh: WeightOf[Any] = None,
    bias_ih: WeightOf[Array | None] = None,
    bias_hh: WeightOf[Array | None] = None,
    cx: Array | None = None,
    input_size: int | None = None,
    hidden_size: int | None = None,
    bias: bool = True,
) -> Outputs:
    """One step of long short-term memory: ``torch.nn.LSTMCell``.

    Parameters
    ----------
    input : ndarray of shape (N, I) or (I,)
    hx : ndarray of shape (N, H) or (H,), optional
        Hidden state, or a pair of both states; zeros by default.
    cx : ndarray of shape (N, H) or (H,), optional
    weight_ih, weight_hh, bias_ih, bias_hh
        As in a layer of ``nn.LSTM``.

    Returns
    -------
    Outputs
        The next `hx` and `cx`.
    """
    states = hx if isinstance(hx, tuple) else (hx, cx)
    weights = CellWeights(weight_ih, weight_hh, bias_ih, bias_hh)
    return Outputs(_step(lstm_step, input, states, weights))
