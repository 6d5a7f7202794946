"""Einstein summation."""

from __future__ import annotations

import math

import numpy as np

from engine.errors import LayerError, describe_shapes
from engine.layers.arguments import cast, require_array, require_products
from engine.layers.reduction import accumulator
from engine.layers.registry import register
from engine.promotion import promote
from engine.values import Array, Value

__all__ = ["einsum"]


@register("aten::einsum", operands="equation operands _")
@register("torch.einsum")
def einsum(*operands: Value, equation: str | None = None) -> Array:
    """Multiply tensors and sum over letters that the result lacks: ``torch.einsum``.

    Parameters
    ----------
    *operands : ndarray, or one tuple of them
        Their dtypes are promoted to a common one. In TorchScript the equation is before the
        tuple, and a path may follow it, which has no effect.
    equation : str
        One letter per dimension, ``ij,jk->ik``. Without an arrow the result has the letters
        that occur once, in alphabetical order. ``...`` represents further dimensions.

    Returns
    -------
    ndarray
        Products are summed in 64 bits.
    """
    if equation is None:
        if len(operands) < 2 or not isinstance(operands[0], str):
            raise LayerError("there is no equation")
        equation, operands = operands[0], operands[1:2]
    members = operands
    if len(operands) == 1 and isinstance(operands[0], tuple):
        members = operands[0]
    arrays = promote(*(require_array(m, f"operand {i}") for i, m in enumerate(members)))
    if len(arrays) == 2:  # with more, the cost depends on the order of the products
        require_products(_count_indices(equation, arrays))
    wide = [array.astype(accumulator(array.dtype), copy=False) for array in arrays]
    try:
        product = np.einsum(equation, *wide, optimize=len(wide) > 1)
    except ValueError as exc:
        shapes = describe_shapes(array.shape for array in arrays)
        raise LayerError(f"equation {equation} does not fit shapes {shapes}: {exc}") from exc
    return cast(np.asarray(product), arrays[0].dtype)


def _count_indices(equation: str, arrays: tuple[Array, ...]) -> int:
    """Return the size of the index space of an equation."""
    sizes: dict[str, int] = {}
    terms = equation.replace(" ", "").partition("->")[0].split(",")
    for term, array in zip(terms, arrays, strict=False):
        before, _, after = term.partition("...")
        spread = [f"...{place}" for place in range(array.ndim - len(before) - len(after))]
        for label, size in zip([*before, *reversed(spread), *after], array.shape, strict=False):
            sizes[label] = max(size, sizes.get(label, 1))
    return math.prod(sizes.values())
