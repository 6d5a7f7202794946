"""Operators that draw from distributions given by their inputs.

See `engine.layers.random_numbers` for the generator.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from engine.errors import LayerError, describe_shapes
from engine.layers.arguments import as_int, axis_of, cast, require_ndim
from engine.layers.elementwise import Operand
from engine.layers.random_numbers import chances, require_floats
from engine.layers.registry import register
from engine.layers.softmax import softmax
from engine.promotion import float_dtype
from engine.values import Array, Value

__all__ = ["bernoulli", "binomial", "gumbel_softmax", "multinomial", "poisson"]


@register(
    "torch.bernoulli",
    "Tensor.bernoulli",
    "aten::bernoulli",
    "aten::bernoulli_",
    unused="generator",
)
def bernoulli(input: Array, p: Operand | None = None, *, rng: Generator) -> Array:
    """Ones at random with given probabilities, zeros elsewhere: ``torch.bernoulli``.

    Parameters
    ----------
    input : ndarray of any shape
        Probabilities, if there is no `p`.
    p : number, or ndarray that broadcasts to the input's shape, optional
        Probabilities.

    Returns
    -------
    ndarray of the input's shape and dtype
        A new array.
    """
    probability = np.asarray(input if p is None else p)
    if not np.all((probability >= 0) & (probability <= 1)):
        raise LayerError("a probability does not lie from 0 to 1")
    try:
        probability = np.broadcast_to(probability, input.shape)
    except ValueError:
        shapes = describe_shapes([probability.shape, input.shape])
        raise LayerError(f"cannot broadcast shapes {shapes}") from None
    return cast(np.asarray(chances(rng, input.shape, probability)), input.dtype)


@register("torch.multinomial", "Tensor.multinomial", "aten::multinomial", unused="generator")
def multinomial(
    input: Array,
    num_samples: Value,
    replacement: bool = False,
    *,
    rng: Generator,
) -> Array:
    """Draw indices by their weights: ``torch.multinomial``.

    Parameters
    ----------
    input : ndarray of shape (N, C) or (C,)
        Weights; they need not sum to 1.
    num_samples : int
        S, the number of draws per row.
    replacement : bool
        Whether an index may be drawn more than once.

    Returns
    -------
    int64 ndarray of shape (N, S) or (S,)
        In the order of drawing.
    """
    require_ndim(input, (1, 2))
    count = as_int(num_samples, "num_samples")
    require_floats(input.dtype, "multinomial weights")
    weights = np.atleast_2d(input.astype(np.float64))
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any(-1).all()):
        raise LayerError("the weights of a row must be finite, none negative, and not all 0")
    if count < 1 or (count > weights.shape[1] and not replacement):
        raise LayerError(
            f"cannot draw {count} of {weights.shape[1]} indices"
            + ("" if replacement else " without replacement")
        )
    if replacement:
        total = np.cumsum(weights, -1)
        drawn = rng.random((len(weights), count)) * total[:, -1:]
        found = [np.searchsorted(t, d, "right") for t, d in zip(total, drawn, strict=True)]
        # Rounding may give the very end, after which all weights are 0.
        last = weights.shape[1] - 1 - np.argmax(weights[:, ::-1] > 0, axis=1)
        places = np.minimum(np.stack(found), last[:, np.newaxis])
    else:
        # The smallest of several exponential variables is drawn with the variables' rates.
        times = rng.standard_exponential(weights.shape) / weights
        places = np.argsort(times, axis=-1, kind="stable")[:, :count]
    return np.asarray(places, np.int64).reshape((*input.shape[:-1], count))


@register("torch.poisson", "aten::poisson", unused="generator")
def poisson(input: Array, *, rng: Generator) -> Array:
    """Random counts of a Poisson distribution: ``torch.poisson``.

    Parameters
    ----------
    input : ndarray of any shape
        Rates of the distributions, not negative.

    Returns
    -------
    ndarray of the input's shape and dtype
    """
    require_floats(input.dtype, "a Poisson distribution")
    if not np.all(input >= 0):
        raise LayerError("a rate is negative or NaN")
    return cast(np.asarray(rng.poisson(input.astype(np.float64))), input.dtype)


@register("torch.binomial", "aten::binomial", unused="generator")
def binomial(count: Array, prob: Array, *, rng: Generator) -> Array:
    """Random numbers of successful trials: ``torch.binomial``.

    Parameters
    ----------
    count : ndarray of any shape
        Number of trials.
    prob : ndarray, broadcast with `count` to one shape
        Probability that a trial succeeds.

    Returns
    -------
    ndarray of the common shape, of the dtype of `count`
    """
    if not np.all((prob >= 0) & (prob <= 1)):
        raise LayerError("a probability does not lie from 0 to 1")
    if not np.all(count >= 0):
        raise LayerError("a number of trials is negative or NaN")
    drawn = rng.binomial(count.astype(np.int64), prob.astype(np.float64))
    return cast(np.asarray(drawn), count.dtype)


@register("aten::_standard_gamma", unused="generator")
def standard_gamma(input: Array, *, rng: Generator) -> Array:
    """Random numbers of gamma distributions of scale 1: ``torch.distributions.Gamma``.

    Parameters
    ----------
    input : ndarray of any shape
        Shape parameters of the distributions, which are their means and variances.

    Returns
    -------
    ndarray of the input's shape and dtype
    """
    return cast(_gamma(input, rng), input.dtype)


@register("aten::_sample_dirichlet", unused="generator")
def dirichlet(input: Array, *, rng: Generator) -> Array:
    """Random numbers of a Dirichlet distribution: ``torch.distributions.Dirichlet``.

    Parameters
    ----------
    input : ndarray of shape (..., K)
        Concentrations.

    Returns
    -------
    ndarray of the input's shape and dtype
    """
    drawn = _gamma(input, rng)
    return cast(np.asarray(drawn / drawn.sum(-1, keepdims=True)), input.dtype)


@register("F.gumbel_softmax")
def gumbel_softmax(
    logits: Array,
    tau: float = 1.0,
    hard: bool = False,
    eps: float = 1e-10,
    dim: int = -1,
    *,
    rng: Generator,
) -> Array:
    """Softmax after Gumbel noise: ``F.gumbel_softmax``.

    The index of the largest result follows the probabilities of the softmax of `logits`.

    Parameters
    ----------
    logits : ndarray of any shape
    tau : float
        Temperature: the lower, the closer to a single 1.
    hard : bool
        Whether to return one 1 and zeros.
    eps : float
        No effect, as in PyTorch.
    dim : int

    Returns
    -------
    ndarray of the same shape
    """
    dtype = float_dtype(logits.dtype)
    noise = rng.gumbel(size=logits.shape)
    axis = axis_of(dim, logits.ndim)
    soft = softmax(cast(np.asarray((logits + noise) / tau), dtype), dim=axis)
    if not hard:
        return soft
    result = np.zeros_like(soft)
    np.put_along_axis(result, np.expand_dims(soft.argmax(axis), axis), 1, axis)
    return result


def _gamma(input: Array, rng: Generator) -> Array:
    require_floats(input.dtype, "a gamma distribution")
    if not np.all(input > 0):
        raise LayerError("every concentration must be larger than 0")
    return np.asarray(rng.standard_gamma(input.astype(np.float64)))
