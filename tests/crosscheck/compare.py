"""Whether two values of an operand are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

__all__ = ["array_of", "difference"]


def array_of(tensor: torch.Tensor) -> np.ndarray:
    """A tensor as the engine holds it: bfloat16 and quantised ones as float32."""
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.float()
    return tensor.detach().resolve_conj().resolve_neg().numpy()


def difference(got: Any, want: Any, tolerance: float) -> str:
    """Say how a value of the engine differs from PyTorch's.

    Parameters
    ----------
    got : Value
        Arrays, numbers, None, tuples of them.
    want : object
        Tensors, numbers, None, tuples and lists of them.
    tolerance : float
        For floating-point numbers, relative to each and to the largest.

    Returns
    -------
    str
        ``""`` if they agree.
    """
    if isinstance(want, (tuple, list)):
        if not isinstance(got, tuple) or len(got) != len(want):
            return f"{_kind(got)}, PyTorch gives {_kind(want)}"
        pairs = enumerate(zip(got, want, strict=True))
        found = ((i, difference(one, other, tolerance)) for i, (one, other) in pairs)
        return next((f"[{i}]: {text}" for i, text in found if text), "")
    if not isinstance(want, torch.Tensor):
        same = not isinstance(got, (tuple, np.ndarray)) or np.ndim(got) == 0
        return "" if same and got == want else f"{got!r}, PyTorch gives {want!r}"
    if not isinstance(got, np.ndarray):
        return f"{_kind(got)}, PyTorch gives {_kind(want)}"
    expected = array_of(want)
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return f"{_kind(got)}, PyTorch gives {_kind(expected)}"
    return _of_numbers(got, expected, tolerance)


def _of_numbers(got: np.ndarray, want: np.ndarray, tolerance: float) -> str:
    if want.dtype.kind not in "fc":
        wrong = got != want
        return f"{_places(wrong)}{_example(got, want, wrong)}" if wrong.any() else ""
    if want.dtype == np.float16:
        tolerance = max(tolerance, 2e-3)
    with np.errstate(all="ignore"):
        finite = np.abs(want[np.isfinite(want)])
        scale = max(float(finite.max(initial=0)), 0.1)
        near = np.isclose(got, want, rtol=tolerance, atol=tolerance * scale, equal_nan=True)
    if near.all():
        return ""
    return f"{_places(~near)}{_example(got, want, ~near)}"


def _places(wrong: np.ndarray) -> str:
    return f"{np.count_nonzero(wrong)} of {wrong.size} numbers differ"


def _example(got: np.ndarray, want: np.ndarray, wrong: np.ndarray) -> str:
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f", first at {place}: {got[place]!r}, PyTorch gives {want[place]!r}"


def _kind(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        value = array_of(value)
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, (tuple, list)):
        return f"a tuple of {len(value)}"
    return repr(value)
