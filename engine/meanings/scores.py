"""Scores of classes: best ones, probabilities, sigmoid and softmax."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine.meanings.results import Row
from engine.text import format_aligned, format_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.values import Array

__all__ = ["are_probabilities", "best_scores", "probabilities", "sigmoid", "softmax"]


def are_probabilities(values: Array) -> bool:
    """Return whether scores are probabilities: not negative, with a sum of 1."""
    return bool((values >= 0).all() and abs(float(values.sum(dtype=np.float64)) - 1) < 1e-3)


def best_scores(
    values: Array,
    labels: Sequence[str],
    count: int = 5,
    *,
    as_percentages: bool | None = None,
    raw: Array | None = None,
) -> list[Row]:
    """Return the highest finite scores, best first.

    Parameters
    ----------
    values : ndarray of shape (K,)
    labels : sequence of K str, or empty
    count : int, optional
    as_percentages : bool, optional
        How scores are formatted; by default as percentages if they are probabilities.
    raw : ndarray of shape (K,), optional
        What the model gave, for `Row.detail`.

    Returns
    -------
    list of Row
    """
    finite = np.flatnonzero(np.isfinite(values))
    if not finite.size:
        return []
    best = finite
    if finite.size > count:  # sorting them all takes long where there are many
        least = np.partition(values[finite], -count)[-count]
        best = finite[values[finite] >= least]
    order = best[np.argsort(-values[best].astype(np.float64), kind="stable")][:count]
    certain = are_probabilities(values) if as_percentages is None else as_percentages
    top = float(values[order[0]])
    bottom = 0.0 if certain else min(0.0, float(values[finite].min()))
    shown = values[order].tolist()
    texts = [format_share(v) for v in shown] if certain else format_aligned(shown, 4)
    details = [""] * len(shown) if raw is None else format_aligned(raw[order].tolist(), 4)
    return [
        Row(
            entry,
            labels[entry] if labels else str(entry),
            text,
            value if certain else (value - bottom) / (top - bottom or 1.0),
            detail,
        )
        for entry, value, text, detail in zip(
            order.tolist(), shown, texts, details, strict=True
        )
    ]


def sigmoid(values: Array) -> Array:
    """Return 1 / (1 + exp(-values)) in float64."""
    found: Array = 0.5 + 0.5 * np.tanh(0.5 * values.astype(np.float64))
    return found


def softmax(values: Array) -> Array:
    """Return the softmax over the last dimension in float64."""
    wide = values.astype(np.float64)
    with np.errstate(invalid="ignore"):  # of infinities, which give NaN as in PyTorch
        powers = np.exp(wide - wide.max(axis=-1, keepdims=True, initial=-np.inf))
        found: Array = powers / powers.sum(axis=-1, keepdims=True)
    return found


def probabilities(values: Array) -> Array:
    """Return scores of independent classes: as they are in 0 to 1, else their sigmoid."""
    finite = values[np.isfinite(values)]
    if finite.size and finite.min() >= 0 and finite.max() <= 1:
        return values.astype(np.float64)
    return sigmoid(values)
