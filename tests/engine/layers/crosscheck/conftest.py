"""Runs an operator here and in PyTorch and compares everything that shows.

These tests call layers directly and go through grids as a whole: every dtype and pair of
dtypes, NaN, infinities and negative zero, tensors of no dimensions and no elements, dims from
either end, and what PyTorch refuses. ``tests/crosscheck`` looks at the same operators the other
way: few, random arguments of the ordinary kind, but through pnnx and the file that it writes,
which has no way to give most of these dtypes or a refusal; and as it needs pnnx and takes
minutes, it is no part of the tests that run each time. So a fault of the arithmetic shows here,
one of the names and forms that pnnx gives things shows there.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from engine.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable

_TOLERANCE = {
    np.dtype(np.float16): 2e-3,
    np.dtype(np.float32): 2e-6,
    np.dtype(np.complex64): 2e-6,
    np.dtype(np.float64): 1e-12,
    np.dtype(np.complex128): 1e-12,
}

_REFUSALS = (EngineError, RuntimeError, ArithmeticError, IndexError, TypeError, ValueError)


def _same(ours: Any, theirs: Any, where: str, loose: float) -> None:
    import torch

    if isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs), where
        for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            _same(one, other, f"{where}[{place}]", loose)
        return
    if not isinstance(theirs, torch.Tensor):
        assert ours == theirs, where
        return
    expected = theirs.resolve_conj().numpy()
    ours = np.asarray(ours)
    assert ours.shape == expected.shape, where
    assert ours.dtype == expected.dtype, where
    tolerance = _TOLERANCE.get(expected.dtype, 0.0) * loose
    np.testing.assert_allclose(ours, expected, rtol=tolerance, atol=tolerance, err_msg=where)


@pytest.fixture
def agree(run) -> Callable[..., None]:
    """A function that asserts that PyTorch gives the same, or refuses as we do.

    ``agree(type, *operands, function=None, loose=1, **params)``; `function` is PyTorch's,
    by default the one that the type names; a parameter ``dtype`` is its name.
    """
    torch = pytest.importorskip("torch")

    def tensor(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return torch.from_numpy(np.array(value))
        if isinstance(value, tuple) and any(isinstance(v, np.ndarray) for v in value):
            return tuple(map(tensor, value))
        return value

    def named(operator_type: str) -> Any:
        found = torch
        for name in operator_type.removeprefix("torch.").split("."):
            found = getattr(found, name)
        return found

    def check(
        operator_type: str,
        *operands: Any,
        function: Callable[..., Any] | None = None,
        loose: float = 1.0,
        **params: Any,
    ) -> None:
        theirs = {
            k: getattr(torch, v.removeprefix("torch.")) if k == "dtype" and v else v
            for k, v in params.items()
        }
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected = (function or named(operator_type))(*map(tensor, operands), **theirs)
        except _REFUSALS:
            with pytest.raises(_REFUSALS):
                run(operator_type, *operands, **params)
            return
        got = run(operator_type, *operands, **params)
        _same(got, expected, operator_type, loose)

    return check
