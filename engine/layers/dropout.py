"""Dropout, which does nothing at inference."""

from __future__ import annotations

from engine.errors import LayerError
from engine.layers.registry import register
from engine.values import Array

__all__ = ["dropout"]


@register(
    "nn.Dropout", "nn.Dropout1d", "nn.Dropout2d", "nn.Dropout3d",
    "nn.AlphaDropout", "nn.FeatureAlphaDropout",
    "F.dropout", "F.dropout1d", "F.dropout2d", "F.dropout3d", "F.dropoutnd",
    "F.alpha_dropout", "F.feature_alpha_dropout",
    "torch.dropout", "torch.alpha_dropout", "torch.feature_dropout",
    "torch.feature_alpha_dropout",
)  # fmt: skip
def dropout(input: Array, p: float = 0.5, training: bool = False) -> Array:
    """Hand the input on: ``torch.nn.Dropout`` and its kin at inference.

    Parameters
    ----------
    input : ndarray of any shape
    p : float
        Share of the values that training would drop.
    training : bool
        Must be False, unless `p` is 0.

    Returns
    -------
    ndarray of the same shape
        `input` itself.
    """
    if training and p > 0:
        raise LayerError("dropout with training=True is random; only inference is computed")
    return input
