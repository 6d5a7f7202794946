"""Grids and combinations of elements."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.errors import LayerError, describe_shapes
from engine.layers.arguments import (
    PLACEMENT,
    as_dtype,
    as_int,
    require_array,
    require_ndim,
)
from engine.layers.registry import register
from engine.memory_bound import require_extent, require_memory
from engine.promotion import promote
from engine.values import Array, Value

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["cartesian_prod", "combinations", "meshgrid"]

_MOST_NUMBERS: Final = 1 << 25  # in all combinations; a few seconds in Python


@register("aten::meshgrid", operands=("tensors", "tensors indexing"))
@register("torch.meshgrid")
def meshgrid(*tensors: Value, indexing: str = "ij") -> tuple[Array, ...]:
    """Coordinates of every point of a grid: ``torch.meshgrid``.

    Parameters
    ----------
    *tensors : ndarray of shape (N,) or (), or one tuple of them
        Positions along each dimension of the grid; of one dtype.
    indexing : str
        ``ij``, or ``xy``, which exchanges the first two dimensions.

    Returns
    -------
    tuple of ndarray, as many as `tensors`
        Views in which elements share memory: the n-th changes along the n-th dimension.
    """
    arrays = _check_vectors(tensors)
    if indexing not in {"ij", "xy"}:
        raise LayerError(f"indexing={indexing} is neither ij nor xy")
    if len({array.dtype for array in arrays}) > 1:
        raise LayerError("the positions along the dimensions differ in dtype")
    exchanged = indexing == "xy" and len(arrays) > 1
    if exchanged:
        arrays[:2] = arrays[1::-1]
    shape = tuple(array.size for array in arrays)
    require_extent(shape, arrays[0].dtype)
    grids = [
        np.broadcast_to(array.reshape(-1, *(1,) * (len(shape) - axis - 1)), shape)
        for axis, array in enumerate(arrays)
    ]
    if exchanged:
        grids[:2] = grids[1::-1]
    return tuple(grids)


@register("aten::cartesian_prod", operands="tensors")
@register("torch.cartesian_prod")
def cartesian_prod(*tensors: Value) -> Array:
    """Cartesian product of vectors, as rows: ``torch.cartesian_prod``.

    Parameters
    ----------
    *tensors : ndarray of shape (N,), or one tuple of them

    Returns
    -------
    ndarray of shape (N * N * ..., number of vectors)
        A copy. A vector alone stays one.
    """
    grids = meshgrid(*promote(*_check_vectors(tensors)))
    if len(grids) == 1:
        return grids[0].copy()
    require_memory((grids[0].size, len(grids)), grids[0].dtype)
    return np.stack([grid.reshape(-1) for grid in grids], axis=1)


@register("torch.combinations", "aten::combinations")
def combinations(input: Array, r: int = 2, with_replacement: bool = False) -> Array:
    """All combinations of some elements of a vector, as rows: ``torch.combinations``.

    Parameters
    ----------
    input : ndarray of shape (N,)
    r : int
        Number of elements to choose.
    with_replacement : bool
        Whether an element may be chosen more than once.

    Returns
    -------
    ndarray of shape (number of combinations, r); (0,) if r is 0
        A copy.
    """
    require_ndim(input, 1)
    count = as_int(r, "r")
    if count < 0:
        raise LayerError(f"{count} elements cannot be chosen")
    if count == 0:
        return np.empty(0, input.dtype)
    if count > len(input) and not with_replacement:
        return np.empty((0, count), input.dtype)
    _require_few(len(input), count, with_replacement=with_replacement)
    choose = (
        itertools.combinations_with_replacement if with_replacement else itertools.combinations
    )
    places = np.array([*choose(range(len(input)), count)], np.int64).reshape(-1, count)
    return np.asarray(input[places])


def _require_few(size: int, chosen: int, *, with_replacement: bool) -> None:
    """Check the number of combinations, which grows fast."""
    places = size + chosen - 1 if with_replacement else size
    ways = 1
    for step in range(max(0, min(chosen, places - chosen))):
        ways = ways * (places - step) // (step + 1)
        if ways > _MOST_NUMBERS:
            break
    if ways * chosen > _MOST_NUMBERS:
        raise LayerError(
            f"the ways to choose {chosen} of {size} elements are more than {_MOST_NUMBERS} "
            "numbers"
        )


def _make_triangle(
    name: str, places: Callable[[int, int, int], tuple[Array, Array]]
) -> Callable[..., Array]:
    def indices(
        row: int,
        col: int,
        offset: int = 0,
        dtype: Value = "torch.long",
    ) -> Array:
        wanted = as_dtype(dtype) or np.dtype(np.int64)
        rows, cols = as_int(row, "row"), as_int(col, "col")
        return np.stack(places(rows, as_int(offset, "offset"), cols)).astype(wanted)

    indices.__name__ = indices.__qualname__ = f"{name}_indices"
    indices.__doc__ = f"""Places of a matrix's triangle: ``torch.{name}_indices``.

    Parameters
    ----------
    row, col : int
        Size of the matrix.
    offset : int
        Of the triangle's diagonal from the main one, above it if positive.
    dtype : str, optional
        Int64 by default.

    Returns
    -------
    integer ndarray of shape (2, number of places)
        Rows and columns, row by row.
    """
    return indices


for _name, _places in (("tril", np.tril_indices), ("triu", np.triu_indices)):
    register(f"torch.{_name}_indices", f"aten::{_name}_indices", unused=PLACEMENT)(
        _make_triangle(_name, _places)
    )


def _check_vectors(tensors: tuple[Value, ...]) -> list[Array]:
    members = tensors[0] if tensors and isinstance(tensors[0], tuple) else tensors
    arrays = [require_array(member, f"operand {i}") for i, member in enumerate(members)]
    if not arrays or any(array.ndim > 1 for array in arrays):
        shapes = describe_shapes(array.shape for array in arrays) or "none"
        raise LayerError(f"vectors are needed; the shapes are {shapes}")
    return [array.reshape(-1) for array in arrays]
