"""Operators that reorder dimensions; all give views of their input."""

from __future__ import annotations

import numpy as np

from engine.errors import LayerError
from engine.layers.arguments import as_ints, axes_of, axis_of, require_ndim
from engine.layers.layer import Ints
from engine.layers.registry import register
from engine.values import Array

__all__ = ["movedim", "permute", "t", "transpose"]


@register("torch.permute", "Tensor.permute", "aten::permute")
def permute(input: Array, dims: Ints | None) -> Array:
    """Reorder the dimensions: ``torch.permute``.

    Parameters
    ----------
    input : ndarray of any shape
    dims : ints
        The dimensions of `input` in their new order, each one once.

    Returns
    -------
    ndarray
        A view of `input`.
    """
    numbers = as_ints(dims, "dims")
    if len(numbers) != input.ndim:
        raise LayerError(f"dims {numbers} do not order {input.ndim} dimensions")
    return input.transpose(axes_of(numbers, input.ndim, "dims"))


@register(
    *("torch.transpose", "Tensor.transpose", "aten::transpose"),
    *("torch.swapaxes", "Tensor.swapaxes", "aten::swapaxes"),
    *("torch.swapdims", "Tensor.swapdims", "aten::swapdims"),
)
def transpose(input: Array, dim0: int, dim1: int) -> Array:
    """Exchange two dimensions: ``torch.transpose``.

    Parameters
    ----------
    input : ndarray of any shape
    dim0, dim1 : int
        The two dimensions; negative ones count from the last.

    Returns
    -------
    ndarray
        A view of `input`.
    """
    first = axis_of(dim0, input.ndim, "dim0")
    second = axis_of(dim1, input.ndim, "dim1")
    return np.swapaxes(input, first, second) if input.ndim else input


@register("torch.t", "Tensor.t", "aten::t")
def t(input: Array) -> Array:
    """Transpose a matrix: ``torch.t``.

    Parameters
    ----------
    input : ndarray of shape (M, N), (N,) or ()

    Returns
    -------
    ndarray of shape (N, M); fewer dimensions stay as they are
        A view of `input`.
    """
    require_ndim(input, (0, 1, 2))
    return input.T


@register("aten::numpy_T")
def reverse_dims(input: Array) -> Array:
    """Reverse the order of the dimensions: ``Tensor.T``.

    Parameters
    ----------
    input : ndarray of any shape

    Returns
    -------
    ndarray of the reversed shape
        A view of `input`.
    """
    return input.T


@register("torch.movedim", "Tensor.movedim", "aten::movedim")
@register("torch.moveaxis", "Tensor.moveaxis", "aten::moveaxis")
def movedim(input: Array, source: Ints, destination: Ints) -> Array:
    """Move dimensions; the others keep their order: ``torch.movedim``.

    Parameters
    ----------
    input : ndarray of any shape
    source, destination : int or ints
        Both have the same length.

    Returns
    -------
    ndarray
        A view of `input`.
    """
    here, there = (
        axes_of(dims, input.ndim, name)
        for dims, name in ((source, "source"), (destination, "destination"))
    )
    if len(here) != len(there):
        raise LayerError(f"{len(here)} dimensions cannot move to {len(there)} positions")
    return np.moveaxis(input, here, there)


@register("torch.adjoint", "Tensor.adjoint", "aten::adjoint", "aten::mH", "aten::matrix_H")
def adjoint(input: Array) -> Array:
    """Transpose matrices and conjugate them: ``torch.adjoint``, ``Tensor.mH``, ``Tensor.H``.

    Parameters
    ----------
    input : ndarray of shape (..., M, N)

    Returns
    -------
    ndarray of shape (..., N, M)
        A copy; a view of `input` where it is real.
    """
    turned = matrix_transpose(input)
    return np.conj(turned) if turned.dtype.kind == "c" else turned


@register("aten::mT")
def matrix_transpose(input: Array) -> Array:
    """Transpose matrices, the last two dimensions: ``Tensor.mT``.

    Parameters
    ----------
    input : ndarray of shape (..., M, N)

    Returns
    -------
    ndarray of shape (..., N, M)
        A view of `input`.
    """
    if input.ndim == 1:
        raise LayerError("a vector cannot be transposed as a matrix")
    return np.swapaxes(input, -1, -2) if input.ndim else input
