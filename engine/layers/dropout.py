"""Dropout: returns its input at inference, and drops elements while training.

The remaining elements are scaled so that the mean stays the same. Feature dropout drops whole
channels. Alpha dropout, made for SELU, replaces dropped elements by SELU's lowest value and
also keeps the variance.
"""

from __future__ import annotations

import math
import re
from typing import Final

import numpy as np
from numpy.random import Generator

from engine.errors import LayerError
from engine.layers.layer import OperatorCall, Outputs
from engine.layers.random_numbers import chances, require_floats, require_probability
from engine.layers.registry import register
from engine.values import Array

__all__ = ["drop", "dropout"]

# Each of these arguments alone makes dropout return its input.
_AT_REST: Final = {"training": False, "p": 0}

_SELU_LOWEST: Final = 1.7580993408473766  # SELU's lowest value, negated: scale times alpha


@register(
    "nn.Dropout", "F.dropout", "torch.dropout", "aten::dropout", random_unless=_AT_REST
)  # fmt: skip
def dropout(input: Array, p: float = 0.5, training: bool = False, *, rng: Generator) -> Array:
    """Drop elements at random while training: ``torch.nn.Dropout``.

    Parameters
    ----------
    input : ndarray of any shape
    p : float
        Probability that an element becomes 0; the others are divided by ``1 - p``.
    training : bool
        Whether to drop anything. pnnx does not write it for ``nn.Dropout``.

    Returns
    -------
    ndarray of the same shape
        `input` itself if nothing is dropped.
    """
    require_probability(p)
    return drop(input, p, rng) if training and p else input


@register(
    "nn.Dropout1d", "nn.Dropout2d", "nn.Dropout3d",
    "F.dropout1d", "F.dropout2d", "F.dropout3d", "F.dropoutnd",
    "torch.feature_dropout", "aten::feature_dropout",
    random_unless=_AT_REST,
)  # fmt: skip
def feature_dropout(
    input: Array, p: float = 0.5, training: bool = False, *, call: OperatorCall, rng: Generator
) -> Array:
    """Drop whole channels at random while training: ``torch.nn.Dropout2d``.

    Parameters
    ----------
    input : ndarray of shape (N, C, ...)
        ``Dropout1d`` and ``Dropout3d`` also take (C, L) and (C, D, H, W).
    p : float
        Probability that a channel becomes 0; the others are divided by ``1 - p``.
    training : bool
        Whether to drop anything. pnnx does not write it for ``nn.Dropout2d``.

    Returns
    -------
    ndarray of the same shape
        `input` itself if nothing is dropped.
    """
    require_probability(p)
    return drop(input, p, rng, _channels(input, call)) if training and p else input


@register(
    "nn.AlphaDropout", "F.alpha_dropout", "torch.alpha_dropout", "aten::alpha_dropout",
    random_unless=_AT_REST,
)  # fmt: skip
def alpha_dropout(
    input: Array, p: float = 0.5, training: bool = False, *, rng: Generator
) -> Array:
    """Drop elements at random while training, for SELU: ``torch.nn.AlphaDropout``.

    With ``a = 1 / sqrt((1 - p) * (1 + p * 1.7581 ** 2))``, kept elements become ``a * (x + p *
    1.7581)`` and dropped ones ``-a * (1 - p) * 1.7581``. This preserves mean 0 and variance 1.

    Parameters
    ----------
    input : ndarray of any shape
    p : float
        Probability that an element is dropped.
    training : bool
        Whether to drop anything. pnnx does not write it for ``nn.AlphaDropout``.

    Returns
    -------
    ndarray of the same shape
        `input` itself if nothing is dropped.
    """
    require_probability(p)
    return _drop_alpha(input, p, rng, input.shape) if training and p else input


@register(
    "nn.FeatureAlphaDropout", "F.feature_alpha_dropout", "torch.feature_alpha_dropout",
    "aten::feature_alpha_dropout",
    random_unless=_AT_REST,
)  # fmt: skip
def feature_alpha_dropout(
    input: Array, p: float = 0.5, training: bool = False, *, call: OperatorCall, rng: Generator
) -> Array:
    """Drop whole channels at random while training, for SELU: ``nn.FeatureAlphaDropout``.

    Parameters
    ----------
    input : ndarray of shape (N, C, ...)
    p, training
        As of ``nn.AlphaDropout``.

    Returns
    -------
    ndarray of the same shape
        `input` itself if nothing is dropped.
    """
    require_probability(p)
    if not training or not p:
        return input
    return _drop_alpha(input, p, rng, _channels(input, call))


@register("aten::native_dropout", random_unless={"train": False, "p": 0})
def native_dropout(input: Array, p: float, train: bool | None, *, rng: Generator) -> Outputs:
    """Drop elements at random, and return the mask: ``torch.native_dropout``.

    Parameters
    ----------
    input : ndarray of any shape
    p : float
        Probability that an element becomes 0; the others are divided by ``1 - p``.
    train : bool, optional
        Only False keeps all elements.

    Returns
    -------
    Outputs
        ndarray of the same shape, and a bool ndarray that is true for kept elements.
    """
    require_probability(p)
    if train is False or not p:
        return Outputs((input.copy(), np.ones(input.shape, np.bool_)))
    require_floats(input.dtype, "dropout", kinds="fc")
    kept = chances(rng, input.shape, 1 - p)
    return Outputs((_scale_kept(input, kept, p), kept))


def drop(input: Array, p: float, rng: Generator, shape: tuple[int, ...] | None = None) -> Array:
    """Drop elements at random.

    Parameters
    ----------
    input : ndarray of any shape
        Of floats.
    p : float
        Probability that an element becomes 0; the others are divided by ``1 - p``.
    rng : Generator
    shape : tuple of int, optional
        Shape of the random mask, which is broadcast to the input's.

    Returns
    -------
    ndarray of the same shape
        A new array. Dropped elements that are not finite become NaN, as in PyTorch.
    """
    require_floats(input.dtype, "dropout", kinds="fc")
    shape = input.shape if shape is None else shape
    kept = chances(rng, shape, 1 - p) if p < 1 else np.zeros((), np.bool_)
    return _scale_kept(input, kept, p)


def _scale_kept(input: Array, kept: Array, p: float) -> Array:
    scale = input.dtype.type(0 if p == 1 else 1 / (1 - p))
    result: Array = input * (kept * scale)
    return result


def _drop_alpha(input: Array, p: float, rng: Generator, shape: tuple[int, ...]) -> Array:
    if p == 1:
        return drop(input, p, rng)
    require_floats(input.dtype, "dropout", kinds="fc")
    kept = chances(rng, shape, 1 - p)
    scale = 1 / math.sqrt((1 + p * _SELU_LOWEST**2) * (1 - p))
    as_input = input.dtype.type
    shift = np.where(kept, as_input(scale * p * _SELU_LOWEST),
                     as_input(scale * (p - 1) * _SELU_LOWEST))  # fmt: skip
    result: Array = input * (kept * as_input(scale)) + shift
    return result


def _channels(input: Array, call: OperatorCall) -> tuple[int, ...]:
    """Shape of one number per channel: (N, C, 1, ...), or (C, 1, ...) without a batch."""
    rank = re.search(r"[13](?=d$)", call.type)
    leading = 1 if rank is not None and input.ndim == int(rank[0]) + 1 else 2
    if input.ndim < 2:
        raise LayerError(f"the input has {input.ndim} dimensions; channels take 2 or more")
    return input.shape[:leading] + (1,) * (input.ndim - leading)
