"""Where the queries and keys of an attention lie on a grid, by the layouts of its operands."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from engine.attention.finding import MODULES, NCNN_FUNCTION
from engine.axes import Axis, Kind, Layout, ViewPlan, plan_view

if TYPE_CHECKING:
    from engine.attention.finding import Attention
    from engine.runtime import RuntimeGraph
    from engine.values import Array

__all__ = ["TokenPlaces", "find_heads", "key_places", "query_places"]

_WITHOUT_BATCH: Final = frozenset({NCNN_FUNCTION, "ncnn.Softmax"})
_SEQUENCE: Final = frozenset({Kind.QUERY, Kind.KEY, Kind.TOKEN})
_ONE_OF: Final = {Kind.REGISTER_TOKEN: "register", Kind.BOX: "box", Kind.TOKEN: "token"}

Layouts: TypeAlias = Callable[[str], Layout | None]


@dataclass(frozen=True, slots=True)
class TokenPlaces:
    """The places of tokens on their grid.

    Attributes
    ----------
    samples : int
        Number of token sequences: of the batch, or of all its windows.
    count : int
        Number of tokens of a sequence.
    plan : ViewPlan or None
        How an array of a number per token folds to pictures; None without a grid.
    names : tuple of str
        What each token beside the grid is, such as ``class``, by its index; ``""`` for others.
    is_windowed : bool
        Whether a sequence is one window of a picture.
    """

    samples: int
    count: int
    plan: ViewPlan | None = None
    names: tuple[str, ...] = ()
    is_windowed: bool = False

    @property
    def grid(self) -> tuple[int, int] | None:
        """Rows and columns of a picture; None without a grid."""
        if self.plan is None:
            return None
        rows, columns = self.plan.folded_shape[-2:]
        return rows, columns

    @property
    def beside(self) -> tuple[int, ...]:
        """Tokens that are not on the grid: the class token, for example."""
        if self.plan is None:
            return ()
        return (*range(self.plan.starts[-1]), *range(self.plan.stops[-1], self.count))

    def name(self, token: int) -> str:
        """Name a token: ``class``, or its number."""
        named = self.names[token] if token < len(self.names) else ""
        return named or str(token)

    def place(self, sample: int, token: int) -> tuple[int, ...] | None:
        """Return the index of a token in the folded array; None for one beside the grid.

        Parameters
        ----------
        sample : int
            Below `samples`.
        token : int
            Below `count`.
        """
        if self.plan is None:
            return None
        lead = np.unravel_index(sample, self.plan.shape[:-1])
        return self.plan.place((*map(int, lead), token))

    def token_at(self, place: tuple[int, ...]) -> tuple[int, int]:
        """Return sample and token at an index in the folded array."""
        if self.plan is None:
            raise ValueError("the tokens have no grid")
        *lead, token = self.plan.index(place)
        flat = 0
        for size, position in zip(self.plan.shape, lead, strict=False):
            flat = flat * size + position
        return flat, token

    def fold(self, sample: int, values: Array, page: tuple[int, ...]) -> Array:
        """Lay one number per token of a sample on the grid.

        Parameters
        ----------
        sample : int
        values : ndarray of shape (count,)
        page : tuple of int
            Which picture: all but the last two of a `place`.

        Returns
        -------
        ndarray of shape `grid`, float64
            A new array; NaN where the sample has no token.
        """
        if self.plan is None:
            raise ValueError("the tokens have no grid")
        flat = np.full((self.samples, self.count), np.nan)
        flat[sample] = values
        picture: Array = self.plan.fold(flat.reshape(self.plan.shape))[page]
        return picture.copy()


def query_places(
    graph: RuntimeGraph, attention: Attention, layouts: Layouts
) -> TokenPlaces | None:
    """Return where the queries lie.

    Parameters
    ----------
    graph : RuntimeGraph
    attention : Attention
    layouts : callable
        Returns the layout of an operand, or None.

    Returns
    -------
    TokenPlaces or None
        None if the layout is not known.
    """
    return _places(graph, attention, layouts, attention.query, -2)


def key_places(
    graph: RuntimeGraph, attention: Attention, layouts: Layouts
) -> TokenPlaces | None:
    """Return where the keys lie; parameters and result as of `query_places`."""
    return _places(graph, attention, layouts, attention.key, -1)


def find_heads(graph: RuntimeGraph, attention: Attention, layouts: Layouts) -> int:
    """Return the number of heads; 0 if it is not known.

    The heads are the last of all dimensions before queries and keys, or the innermost factor of
    that dimension.
    """
    operator = graph.operator(attention.operator)
    if operator.type in MODULES:
        count = operator.params.get("num_heads")
        return count if isinstance(count, int) else 0
    layout = layouts(attention.weights or attention.query)
    if layout is None or len(layout.axes) < 2:
        return 0
    if len(layout.axes) == 2:
        return 1
    axis = layout.axes[-3]
    if axis.kind is Kind.HEAD or len(layout.axes) > 3 or operator.type in _WITHOUT_BATCH:
        return axis.size if isinstance(axis.size, int) else 0
    heads = [part.size for part in axis.factors if part.kind is Kind.HEAD]
    return heads[-1] if heads and isinstance(heads[-1], int) else 1


def _places(
    graph: RuntimeGraph, attention: Attention, layouts: Layouts, operand: str, place: int
) -> TokenPlaces | None:
    operator = graph.operator(attention.operator)
    layout = layouts(attention.weights or operand)
    if layout is None or len(layout.axes) < 2:
        return None
    axes = list(layout.axes)
    if operator.type in MODULES:
        is_first = operator.params.get("batch_first") is True
        tokens = axes.pop(-2 if is_first or len(axes) == 2 else -3)
        lead = axes[:-1]
    else:
        tokens, lead = axes[place if attention.weights else -2], axes[:-2]
        if operator.type in _WITHOUT_BATCH:
            lead = []  # there is no batch, only heads
        lead = [part for axis in lead for part in _without_heads(axis)]
    sizes = [axis.size for axis in (*lead, tokens)]
    shape = tuple([size for size in sizes if isinstance(size, int)])
    if len(shape) != len(sizes) or 0 in shape:
        return None
    return _make_places(lead, tokens)


def _without_heads(axis: Axis) -> tuple[Axis, ...]:
    """Return what a dimension before the queries has besides heads."""
    if axis.kind is Kind.HEAD:
        return ()
    if axis.kind is Kind.UNKNOWN and any(part.kind is Kind.HEAD for part in axis.factors):
        return tuple([part for part in axis.factors if part.kind is not Kind.HEAD])
    return (axis,)


def _make_places(lead: list[Axis], tokens: Axis) -> TokenPlaces:
    if tokens.kind in _SEQUENCE:
        tokens = replace(tokens, kind=Kind.TOKEN)
    lead = [part for axis in lead for part in _without_batch(axis)]
    axes = (*lead, tokens)
    shape = tuple([_size(axis) for axis in axes])
    plan = plan_view(Layout(axes), shape)
    if plan is not None and plan.has_channels:
        plan = None
    names: list[str] = []
    for segment in tokens.segments:
        count, word = _size(segment), "" if segment.grid else segment.kind.value
        if word and count > 1:
            word = _ONE_OF.get(segment.kind, word)
            names += [f"{word} {number}" for number in range(count)]
        else:
            names += [word] * count
    windowed = any(axis.kind is Kind.WINDOW for axis in lead)
    return TokenPlaces(math.prod(shape[:-1]), shape[-1], plan, tuple(names), windowed)


def _without_batch(axis: Axis) -> tuple[Axis, ...]:
    """Split the samples of a batch from their windows."""
    windows = math.prod([_size(part) for part in axis.factors])
    if axis.kind is not Kind.WINDOW or not axis.factors or _size(axis) % windows:
        return (axis,)
    samples = _size(axis) // windows
    return (axis,) if samples == 1 else (Axis(Kind.BATCH, samples), replace(axis, size=windows))


def _size(axis: Axis) -> int:
    return axis.size if isinstance(axis.size, int) else 1
