"""Losses of ONNX: PyTorch's losses with ONNX's argument names."""

from __future__ import annotations

import numpy as np

from engine.layers.layer import Outputs
from engine.layers.losses import nll_loss
from engine.layers.registry import register
from engine.layers.softmax import log_softmax
from engine.values import Array

__all__ = ["softmax_cross_entropy_loss"]

_NOTHING = -(1 << 31)  # no class is ignored


@register("NegativeLogLikelihoodLoss")
def negative_log_likelihood_loss(
    input: Array,
    target: Array,
    weight: Array | None = None,
    reduction: str = "mean",
    ignore_index: int = _NOTHING,
) -> Array:
    """Negative log-likelihood of the right class: ONNX ``NegativeLogLikelihoodLoss``.

    Parameters
    ----------
    input : ndarray of shape (N, C, ...)
        Logarithms of probabilities.
    target : integer ndarray of shape (N, ...)
        Right classes.
    weight : ndarray of shape (C,), optional
        Weight of each class.
    reduction : str
        ``mean``, ``sum`` or ``none``.
    ignore_index : int
        Target to ignore.

    Returns
    -------
    ndarray of shape (), or of the target's shape with ``none``
    """
    return nll_loss(input, np.asarray(target, np.int64), weight, reduction, ignore_index)


@register("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy_loss(
    scores: Array,
    labels: Array,
    weights: Array | None = None,
    reduction: str = "mean",
    ignore_index: int = _NOTHING,
) -> Outputs:
    """Cross entropy of the softmax: ONNX ``SoftmaxCrossEntropyLoss``.

    Parameters
    ----------
    scores : ndarray of shape (N, C, ...)
        Unnormalised logarithms of probabilities.
    labels : integer ndarray of shape (N, ...)
        Right classes.
    weights : ndarray of shape (C,), optional
        Weight of each class.
    reduction, ignore_index
        As in ``NegativeLogLikelihoodLoss``.

    Returns
    -------
    ndarray of shape (), or of the labels' shape with ``none``
    ndarray of shape (N, C, ...)
        Logarithms of probabilities.
    """
    logs = log_softmax(scores, 1)
    loss = negative_log_likelihood_loss(logs, labels, weights, reduction, ignore_index)
    return Outputs((loss, logs))
