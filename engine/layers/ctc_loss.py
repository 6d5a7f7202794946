"""Connectionist temporal classification: labels in order, at unknown times."""

from __future__ import annotations

import numpy as np

from engine.errors import InferStatus, LayerError, describe_shapes
from engine.layers.annotations import OperandOf
from engine.layers.arguments import as_int, as_ints, require_steps
from engine.layers.layer import Ints
from engine.layers.losses import Reduction, reduce_losses
from engine.layers.registry import register
from engine.values import Array

__all__ = ["ctc_loss"]


@register("F.ctc_loss", "aten::ctc_loss")
def ctc_loss(
    log_probs: Array,
    targets: Array,
    input_lengths: OperandOf[Array | Ints],
    target_lengths: OperandOf[Array | Ints],
    blank: int = 0,
    reduction: Reduction = "mean",
    zero_infinity: bool = False,
) -> Array:
    """Negative log-likelihood of label sequences at unknown times: ``F.ctc_loss``.

    Parameters
    ----------
    log_probs : ndarray of shape (T, N, C) or (T, C)
        Logarithms of the class probabilities at each time.
    targets : integer ndarray of shape (N, S), or of all labels concatenated
    input_lengths, target_lengths : integer ndarray of shape (N,) or (), or ints
        Number of time steps and of labels of each sample.
    blank : int
        Class that represents no label.
    reduction : str
        ``mean``, ``sum`` or ``none``. For ``mean`` each loss is first divided by its number of
        labels.
    zero_infinity : bool
        Whether an infinite loss becomes 0.

    Returns
    -------
    ndarray of shape (), or (N,) with ``none``
    """
    batch = log_probs[:, np.newaxis] if log_probs.ndim == 2 else log_probs
    times = np.array(as_ints(input_lengths, "input_lengths"), np.int64)
    lengths = np.array(as_ints(target_lengths, "target_lengths"), np.int64)
    if batch.ndim != 3 or len({batch.shape[1], len(times), len(lengths)}) > 1:
        shapes = describe_shapes([log_probs.shape, times.shape, lengths.shape])
        raise LayerError(
            f"log_probs and the lengths differ in their number of samples: {shapes}",
            InferStatus.kInferArraySizeMismatch,
        )
    labels = _labels(targets, lengths)
    none, classes = as_int(blank, "blank"), batch.shape[2]
    if not all(0 <= label < classes for label in np.append(none, np.concatenate(labels))):
        raise LayerError(f"a label is not one of the {classes} classes")
    if times.min(initial=0) < 0 or times.max(initial=0) > len(batch):
        raise LayerError(f"input_lengths must be from 0 to {len(batch)}")
    require_steps(int(times.sum()), "steps of sequences")
    wide = batch.astype(np.float64)
    losses = np.array(
        [
            _loss(wide[:count, sample], own, none)
            for sample, (count, own) in enumerate(zip(times, labels, strict=True))
        ]
    )
    if zero_infinity:
        losses[np.isinf(losses)] = 0
    if reduction in {"mean", 1}:
        losses = losses / np.maximum(lengths, 1)
    losses = losses.reshape(batch.shape[1:2] if log_probs.ndim == 3 else ())
    return reduce_losses(losses, reduction).astype(log_probs.dtype)


def _labels(targets: Array, lengths: Array) -> list[Array]:
    """Labels of each sample."""
    if targets.ndim == 2 and len(targets) == len(lengths):
        room = targets.shape[1] - lengths.max(initial=0)
        labels = [row[:length] for row, length in zip(targets, lengths, strict=True)]
    else:
        room = targets.size - lengths.sum()
        labels = np.split(targets.reshape(-1), np.cumsum(lengths))[:-1]
    if room < 0 or lengths.min(initial=0) < 0:
        raise LayerError(
            f"targets of shape {describe_shapes([targets.shape])} do not have as many labels "
            f"as target_lengths says: {', '.join(map(str, lengths))}",
            InferStatus.kInferArraySizeMismatch,
        )
    return labels


def _loss(steps: Array, labels: Array, blank: int) -> float:
    """Minus the logarithm of the probability of labels, with any blanks between them."""
    places = np.full(2 * len(labels) + 1, blank)
    places[1::2] = labels
    # The first blank may be skipped, and a blank between two different labels.
    skips = np.zeros(len(places), np.bool_)
    skips[1:2] = True
    skips[2:] = (places[2:] != blank) & (places[2:] != places[:-2])
    # Logarithms of the probability to be at each position. Two entries more are in front; the
    # second is the start.
    reached = np.full(2 + len(places), -np.inf)
    reached[1] = 0
    for step in steps:
        came = np.logaddexp(reached[2:], reached[1:-1])
        came = np.logaddexp(came, np.where(skips, reached[:-2], -np.inf))
        reached[2:], reached[1] = came + step[places], -np.inf
    return float(-np.logaddexp.reduce(reached[-2:]))
