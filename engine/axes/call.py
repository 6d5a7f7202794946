"""The view of one operator that its rule gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.axes.factors import Dim, Dims, Rank
from engine.axes.layout import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.axes.factors import Factors
    from engine.axes.layout import Size
    from engine.runtime import RuntimeOperator
    from engine.values import Value

__all__ = ["Call", "Results"]

Results = list[Dims | None]
"""Dimensions of the outputs, in order; None, also for missing ones, means new factors."""

_PLANES: Final = {
    1: (Kind.TIME,),
    2: (Kind.ROW, Kind.COLUMN),
    3: (Kind.DEPTH, Kind.ROW, Kind.COLUMN),
}


class Call:
    """An operator with the factors of its inputs and the shapes of its outputs.

    Attributes
    ----------
    operator : RuntimeOperator
    factors : Factors
    inputs : list of (Dims or None)
        None for an operand of unknown rank.
    shapes : list of (tuple of Size, or None)
        Of the outputs.
    has_batch : bool
        Whether values have a batch dimension; values of ncnn have none.
    """

    __slots__ = ("factors", "has_batch", "inputs", "operator", "shapes")

    def __init__(
        self,
        operator: RuntimeOperator,
        factors: Factors,
        inputs: list[Dims | None],
        shapes: list[tuple[Size, ...] | None],
        *,
        has_batch: bool,
    ) -> None:
        self.operator, self.factors = operator, factors
        self.inputs, self.shapes, self.has_batch = inputs, shapes, has_batch

    @property
    def first(self) -> Dims | None:
        """Dimensions of the first input."""
        return self.inputs[0] if self.inputs else None

    @property
    def shape(self) -> tuple[Size, ...] | None:
        """Shape of the first output."""
        return self.shapes[0] if self.shapes else None

    def input(self, name: str, place: int) -> Dims | None:
        """Return the dimensions of an input by PyTorch's name, or by index without names."""
        names = self.operator.input_names
        if name in names[: len(self.inputs)]:
            return self.inputs[names.index(name)]
        if any(names) or place >= len(self.inputs):
            return None
        return self.inputs[place]

    def param(self, name: str, default: Value = None) -> Value:
        """Return a parameter."""
        return self.operator.params.get(name, default)

    def integer(self, name: str, default: int) -> int:
        """Return a parameter as a whole number; `default` if it is none."""
        value = self.param(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else default

    def integers(self, name: str) -> tuple[int, ...] | None:
        """Return a parameter as whole numbers; None if it has others."""
        value = self.param(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return (value,)
        if not isinstance(value, tuple):
            return None
        found = tuple([item for item in value if isinstance(item, int)])
        return found if len(found) == len(value) else None

    def place(self, name: str, rank: int, default: int = 0) -> int | None:
        """Count a dimension from the front; None if it does not exist."""
        dim = self.integer(name, default)
        return dim % rank if -rank <= dim < rank else None

    def places(self, name: str, rank: int) -> tuple[int, ...] | None:
        """Count dimensions from the front; None if one does not exist."""
        dims = self.integers(name)
        if dims is None or any(not -rank <= dim < rank for dim in dims):
            return None
        return tuple([dim % rank for dim in dims])

    def fit(self, dims: Sequence[Dim], place: int = 0) -> Dims | None:
        """Return dimensions for an output; dimensions of another size get new factors."""
        shape = self.shapes[place] if place < len(self.shapes) else None
        if shape is None or len(shape) != len(dims):
            return None
        return tuple(
            [
                dim if self.factors.extent(dim) == size else self.factors.derive(dim, size)
                for dim, size in zip(dims, shape, strict=True)
            ]
        )

    def claim(self, dims: Dims, kinds: Sequence[Kind | None], rank: Rank) -> None:
        """Note evidence for dimensions; None is no evidence."""
        for dim, kind in zip(dims, kinds, strict=True):
            if kind is not None:
                self.factors.claim(dim, kind, rank)

    def claim_image(self, dims: Dims | None, spatial: int, *, mixes: bool = True) -> bool:
        """Note that dimensions are batch, channels and spatial dimensions.

        Parameters
        ----------
        dims : Dims or None
        spatial : int
            Number of spatial dimensions; images, signals and volumes have 1 to 3.
        mixes : bool, optional
            Whether channels are mixed. Otherwise they may also be several pictures, such as a
            mask for each query of a transformer.

        Returns
        -------
        bool
            Whether the number of dimensions fits.
        """
        if dims is None or spatial not in _PLANES or len(dims) - spatial not in {1, 2}:
            return False
        kinds = (Kind.FEATURE, *_PLANES[spatial])
        if len(dims) == spatial + 2:
            kinds = (Kind.BATCH, *kinds)
        # A signal may be a text: convolutions also run over tokens.
        rank = Rank.DECLARED if spatial > 1 else Rank.EXPECTED
        if spatial == 2 and len(dims) == 4 and len(dims[0]) > 1:
            self.factors.note_frames(dims[0])
        self.claim(dims[:-spatial], kinds[:-spatial], rank if mixes else Rank.GUESSED)
        if self._is_pointwise():
            rank = Rank.GUESSED
            if spatial == 1:  # without neighbours they have no order: points, or tokens
                kinds = (*kinds[:-1], Kind.TOKEN)
        elif spatial == 2 and self._is_line(dims[-2:]):
            rank = Rank.EXPECTED
        # The first of three spatial dimensions may be the time of a film.
        self.claim(
            dims[-spatial:], kinds[-spatial:], min(rank, Rank.STATED) if spatial == 3 else rank
        )
        return True

    def _is_line(self, sides: Dims) -> bool:
        """Whether an image has one row or one column only, as a text that is unfolded."""
        return [self.factors.extent(side) == 1 for side in sides] in (
            [True, False],
            [False, True],
        )

    def _is_pointwise(self) -> bool:
        """Whether it is a convolution of single positions, which need no neighbours."""
        names = ("kernel_size", "kernel_w", "kernel_h")
        sizes = [size for name in names for size in self.integers(name) or ()]
        return bool(sizes) and set(sizes) == {1}
