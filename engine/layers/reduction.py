"""Reductions: one number from all elements along some dimensions.

`reduce` normalises the dims, chooses the dtypes of the computation and of the result, and runs
a kernel from the table. Float16 and float32 are accumulated in float64 and rounded once. That
is at least as exact as PyTorch's pairwise sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.errors import InferStatus, LayerError
from engine.layers.arguments import as_dtype, axes_of, cast, require_order
from engine.layers.layer import Ints, Number, Outputs
from engine.layers.registry import register
from engine.layers.size import as_python
from engine.promotion import DEFAULT_INT, float_dtype
from engine.values import Array, Value

if TYPE_CHECKING:
    from engine.promotion import DType

__all__ = ["REDUCTIONS", "Reduction", "accumulator", "reduce", "var"]

Axes = tuple[int, ...]
Kernel = Callable[[Array, Axes, bool], Array]


@dataclass(frozen=True, slots=True)
class Reduction:
    """A reduction of the table.

    Attributes
    ----------
    summary : str
        What it computes, for its documentation.
    kernel : callable
        Called with an array, its axes, and whether to keep them with size 1.
    dtype : callable
        Maps the input's dtype to the result's.
    empty : bool
        Whether an empty tensor has a result.
    """

    summary: str
    kernel: Kernel
    dtype: Callable[[DType], DType]
    empty: bool = True

    @property
    def sentence(self) -> str:
        """The summary as the beginning of a sentence."""
        return self.summary[0].upper() + self.summary[1:]


def accumulator(dtype: DType) -> DType:
    """Return the dtype to accumulate in: 64 bits of the same kind; integers for bools."""
    return np.dtype({"f": np.float64, "c": np.complex128}.get(dtype.kind, np.int64))


def reduce(
    reduction: Reduction, input: Array, dim: Value, keepdim: bool, dtype: Value = None
) -> Array:
    """Run a reduction.

    Parameters
    ----------
    reduction : Reduction
    input : ndarray of any shape
    dim : int, ints or None
        None and the empty list mean all dimensions.
    keepdim : bool
        Keep the dimensions with size 1.
    dtype : str, optional
        Dtype to convert the input to first, and of the result.

    Raises
    ------
    LayerError
        If there is no such dim, or an empty tensor has no result.
    """
    wanted = as_dtype(dtype)
    if wanted is not None:
        input = cast(input, wanted)
    axes = axes_of(dim, input.ndim)
    if not reduction.empty and 0 in {input.shape[axis] for axis in axes}:
        raise LayerError("there are no elements to choose from", InferStatus.kInferInputsEmpty)
    own_dtype = reduction.dtype(input.dtype)
    with np.errstate(all="ignore"):
        return cast(np.asarray(reduction.kernel(input, axes, keepdim)), wanted or own_dtype)


# Kernels


def _sum(x: Array, axes: Axes, keepdim: bool) -> Array:
    return np.asarray(np.sum(x, axes, accumulator(x.dtype), keepdims=keepdim))


def _prod(x: Array, axes: Axes, keepdim: bool) -> Array:
    return np.asarray(np.prod(x, axes, accumulator(x.dtype), keepdims=keepdim))


def _mean(x: Array, axes: Axes, keepdim: bool) -> Array:
    return np.asarray(np.true_divide(_sum(x, axes, keepdim), _count(x, axes)))


def _nansum(x: Array, axes: Axes, keepdim: bool) -> Array:
    return _sum(np.where(np.isnan(x), x.dtype.type(0), x), axes, keepdim)


def _nanmean(x: Array, axes: Axes, keepdim: bool) -> Array:
    count = np.sum(~np.isnan(x), axes, keepdims=keepdim)
    return np.asarray(_nansum(x, axes, keepdim) / count)


def _amax(x: Array, axes: Axes, keepdim: bool) -> Array:
    require_order(x)
    return np.asarray(np.max(x, axes, keepdims=keepdim))


def _amin(x: Array, axes: Axes, keepdim: bool) -> Array:
    require_order(x)
    return np.asarray(np.min(x, axes, keepdims=keepdim))


def _all(x: Array, axes: Axes, keepdim: bool) -> Array:
    return np.asarray(np.all(x, axes, keepdims=keepdim))


def _any(x: Array, axes: Axes, keepdim: bool) -> Array:
    return np.asarray(np.any(x, axes, keepdims=keepdim))


def _logsumexp(x: Array, axes: Axes, keepdim: bool) -> Array:
    x = x.astype(accumulator(float_dtype(x.dtype)))
    # Shift by the largest real part, so that nothing overflows.
    peak = np.max(x.real, axes, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(peak), peak, 0)
    logs = np.log(np.sum(np.exp(x - shift), axes, keepdims=True)) + shift
    return np.asarray(logs if keepdim else np.squeeze(logs, axes))


def _count(x: Array, axes: Axes) -> int:
    return prod(x.shape[axis] for axis in axes)


# Dtypes of results


def _keep_dtype(dtype: DType) -> DType:
    return dtype


def _widen(dtype: DType) -> DType:
    return dtype if dtype.kind in "fc" else DEFAULT_INT


def _require_floating(dtype: DType) -> DType:
    if dtype.kind not in "fc":
        raise LayerError(f"there is no mean of {dtype} without a floating-point dtype")
    return dtype


def _truth_dtype(dtype: DType) -> DType:
    return dtype if dtype == np.uint8 else np.dtype(np.bool_)


REDUCTIONS: Final[dict[str, Reduction]] = {
    "sum": Reduction("sum of the elements", _sum, _widen),
    "nansum": Reduction("sum of the elements that are not NaN", _nansum, _widen),
    "mean": Reduction("mean of the elements", _mean, _require_floating),
    "nanmean": Reduction("mean of the elements that are not NaN", _nanmean, _require_floating),
    "prod": Reduction("product of the elements", _prod, _widen),
    "amax": Reduction("largest element", _amax, _keep_dtype, empty=False),
    "amin": Reduction("smallest element", _amin, _keep_dtype, empty=False),
    "all": Reduction("whether all elements are true", _all, _truth_dtype),
    "any": Reduction("whether any element is true", _any, _truth_dtype),
    "logsumexp": Reduction(
        "logarithm of the sum of the elements' exponentials", _logsumexp, float_dtype
    ),
}

_NOTES: Final = """{summary}: ``torch.{name}``.

    Parameters
    ----------
    input : ndarray of any shape
    dim : int or ints, optional
        Dimensions to reduce; all of them by default.
    keepdim : bool
        Keep them with size 1.{more}

    Returns
    -------
    ndarray
        {dtype} {nan}
    """

_NOTES_OF_DTYPE: Final[dict[Any, str]] = {
    _keep_dtype: "Of the input's dtype.",
    _widen: "Of the input's dtype; int64 for bools and integers.",
    _require_floating: "Of the input's dtype.",
    _truth_dtype: "Bool; uint8 for uint8.",
    float_dtype: "Of the input's dtype; float32 for bools and integers.",
}
_NOTES_OF_NAN: Final = {
    **dict.fromkeys(("nansum", "nanmean"), "NaN is left out."),
    **dict.fromkeys(("all", "any"), "NaN is true, for it is not zero."),
}
_NOTE_OF_DTYPE_ARGUMENT: Final = """
    dtype : str, optional
        Dtype to convert the input to first."""


def _make_with_dtype(reduction: Reduction) -> Callable[..., Array]:
    def compute(
        input: Array, dim: Ints | None = None, keepdim: bool = False, dtype: Value = None
    ) -> Array:
        return reduce(reduction, input, dim, keepdim, dtype)

    return compute


def _make_without_dtype(reduction: Reduction) -> Callable[..., Array]:
    def compute(input: Array, dim: Ints | None = None, keepdim: bool = False) -> Array:
        return reduce(reduction, input, dim, keepdim)

    return compute


def _register_all() -> None:
    """Register the ``torch.``, ``Tensor.`` and ``aten::`` types of the whole table."""
    for name, reduction in REDUCTIONS.items():
        converts = name in {"sum", "nansum", "mean", "nanmean", "prod"}
        function = (_make_with_dtype if converts else _make_without_dtype)(reduction)
        function.__name__ = function.__qualname__ = name
        function.__doc__ = _NOTES.format(
            name=name,
            summary=reduction.sentence,
            more=_NOTE_OF_DTYPE_ARGUMENT if converts else "",
            dtype=_NOTES_OF_DTYPE[reduction.dtype],
            nan=_NOTES_OF_NAN.get(name, "It is NaN if an element is NaN."),
        )
        register(f"torch.{name}", f"Tensor.{name}")(function)
        orders = ("input dtype", "input dim keepdim dtype") if converts else ()
        register(f"aten::{name}", operands=orders)(function)


_register_all()


# Spread

# One overload has a number, the correction, where another has a bool, whether to correct by 1.
_SPREAD_ORDERS: Final = ("input unbiased", "input dim unbiased keepdim")


@register("aten::var", operands=_SPREAD_ORDERS)
@register("torch.var", "Tensor.var")
def var(
    input: Array,
    dim: Ints | None = None,
    unbiased: bool | float | None = None,
    keepdim: bool = False,
    correction: Number | None = None,
) -> Array:
    """Variance of the elements: ``torch.var``.

    Parameters
    ----------
    input : ndarray of any shape
    dim : int or ints, optional
        Dimensions to reduce; all of them by default.
    unbiased : bool
        Divide by one less than the number of elements (the default), or by the number.
    keepdim : bool
        Keep the dimensions with size 1.
    correction : number, optional
        The divisor is the number of elements minus this.

    Returns
    -------
    ndarray of the input's dtype; of complex input, of its real dtype
        NaN if there are too few elements.
    """
    variance, _ = _spread(input, dim, unbiased, keepdim, correction)
    return cast(variance, _real_dtype(input))


@register("aten::std", operands=_SPREAD_ORDERS)
@register("torch.std", "Tensor.std")
def std(
    input: Array,
    dim: Ints | None = None,
    unbiased: bool | float | None = None,
    keepdim: bool = False,
    correction: Number | None = None,
) -> Array:
    """Standard deviation of the elements, the root of ``torch.var``: ``torch.std``.

    Parameters
    ----------
    input, dim, unbiased, keepdim, correction
        As in ``torch.var``.

    Returns
    -------
    ndarray of the input's dtype; of complex input, of its real dtype
    """
    variance, _ = _spread(input, dim, unbiased, keepdim, correction)
    return cast(np.sqrt(variance), _real_dtype(input))


@register("aten::var_mean", operands=_SPREAD_ORDERS)
@register("torch.var_mean")
def var_mean(
    input: Array,
    dim: Ints | None = None,
    unbiased: bool | float | None = None,
    keepdim: bool = False,
    correction: Number | None = None,
) -> Outputs:
    """Variance and mean of the elements: ``torch.var_mean``; as ``torch.var``."""
    variance, mean = _spread(input, dim, unbiased, keepdim, correction)
    return Outputs((cast(variance, _real_dtype(input)), cast(mean, input.dtype)))


@register("aten::std_mean", operands=_SPREAD_ORDERS)
@register("torch.std_mean")
def std_mean(
    input: Array,
    dim: Ints | None = None,
    unbiased: bool | float | None = None,
    keepdim: bool = False,
    correction: Number | None = None,
) -> Outputs:
    """Standard deviation and mean of the elements: ``torch.std_mean``; as ``torch.var``."""
    variance, mean = _spread(input, dim, unbiased, keepdim, correction)
    return Outputs((cast(np.sqrt(variance), _real_dtype(input)), cast(mean, input.dtype)))


def _spread(
    x: Array, dim: Value, unbiased: bool | float | None, keepdim: bool, correction: Value
) -> tuple[Array, Array]:
    """Variance and mean in 64 bits."""
    _require_floating(x.dtype)
    if correction is None:  # both have the same position in TorchScript's overloads
        correction = 1 if unbiased is None else unbiased
    lessened = float(as_python(correction))
    axes = axes_of(dim, x.ndim)
    with np.errstate(all="ignore"):
        mean = _mean(x, axes, keepdim=True)
        squares = np.square(np.abs(x - mean))
        total = np.sum(squares, axes, keepdims=True)
        variance = np.asarray(total / np.float64(max(0, _count(x, axes) - lessened)))
    if keepdim:
        return variance, mean
    return np.squeeze(variance, axes), np.squeeze(mean, axes)


def _real_dtype(x: Array) -> DType:
    return x.real.dtype
