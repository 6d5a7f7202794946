"""Rollout of attentions in windows: what the queries of one take of the whole picture.

Each block mixes tokens within its windows only. The next block has other windows, shifted for
example, so that weights spread over the picture. Weights of all tokens for all would be large;
the shares of one window are followed from the last block to the first, over the cells of the
grid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine.attention.results import Place
from engine.attention.scores import compute_attention
from engine.attention.tokens import query_places
from engine.errors import LayerError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from engine.attention.finding import Attention
    from engine.attention.scores import Read
    from engine.attention.tokens import Layouts, TokenPlaces
    from engine.runtime import RuntimeGraph

__all__ = ["compute_window_rollout"]


def compute_window_rollout(
    graph: RuntimeGraph,
    blocks: Sequence[tuple[Attention, int]],
    read: Read,
    layouts: Layouts,
    window: int,
) -> npt.NDArray[np.float32]:
    """Compute the rollout of the queries of one window; see `scores.rollout`.

    Parameters
    ----------
    graph : RuntimeGraph
    blocks : sequence of (Attention, int)
        Attentions over the same grid and their heads, the first one first.
    read : callable
        Returns the value of an operand.
    layouts : callable
        Returns the layout of an operand, or None.
    window : int
        Of the last block.

    Returns
    -------
    ndarray of shape (T, ...), float32
        For each query what it takes of the grid, of the shape to which the last block's tokens
        fold. The sums are 1, unless windows reach beyond the grid.

    Raises
    ------
    LayerError
        If the grids are not the same, or there are too many weights.
    """
    flow: npt.NDArray[np.float64] | None = None
    for attention, heads in reversed(blocks):
        places = query_places(graph, attention, layouts)
        cells = _cells(places)
        if (
            places is None
            or cells is None
            or (flow is not None and flow.shape[1:] != cells.shape)
        ):
            raise LayerError("the blocks do not have the same grid")
        count = places.count
        if flow is None:
            tokens = np.zeros((count, places.samples, count))
            tokens[:, window] = np.eye(count)
        else:
            tokens = np.zeros((len(flow), places.samples, count))
            tokens.reshape(len(flow), -1)[:, cells] = flow
        weights = compute_attention(graph, attention, read, Place(heads)).weights
        if weights.shape[0] != places.samples or weights.shape[2:] != (count, count):
            raise LayerError(f"{places.samples} windows are too many for a rollout")
        mixed = weights.mean(1, dtype=np.float64)
        # The residual connection adds the token itself.
        shares = tokens / (mixed.sum(-1) + 1)
        mixed = np.matmul(shares.swapaxes(0, 1), mixed).swapaxes(0, 1)
        flow = (shares + mixed).reshape(len(shares), -1)[:, cells]
    if flow is None:
        raise ValueError("there is no block")
    return flow.astype(np.float32)


def _cells(places: TokenPlaces | None) -> npt.NDArray[np.int64] | None:
    """Return the number of the token at each cell of the grid."""
    if places is None or places.plan is None:
        return None
    numbers = np.arange(places.samples * places.count).reshape(places.plan.shape)
    return np.asarray(places.plan.fold(numbers), np.int64)
