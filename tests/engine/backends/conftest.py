"""Operators to compute by several backends."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np  # noqa: TC002
import pytest

import engine
from engine.backends.tuning_cache import TuningCache

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from engine.runtime import RuntimeOperator

DTYPES = {"float32": "f32", "float64": "f64", "int64": "i64", "int32": "i32", "bool": "bool",
          "float16": "f16"}  # fmt: skip


def spelled(value: Any) -> str:
    """Format a parameter as pnnx does."""
    if isinstance(value, tuple):
        return f"({','.join(map(spelled, value))})"
    return f"{value:e}" if isinstance(value, float) else str(value)


def annotated(array: np.ndarray) -> str:
    return f"({','.join(map(str, array.shape))}){DTYPES[array.dtype.name]}"


@pytest.fixture
def operator(make_pair) -> Callable[..., RuntimeOperator]:
    """Return a function that makes an operator by reading it from a file.

    ``operator(type, inputs, weights, names, outputs=1, **params)``; its inputs are those of the
    graph, without annotations.
    """
    numbers = itertools.count()

    def make(
        operator_type: str,
        inputs: Sequence[np.ndarray],
        weights: Mapping[str, np.ndarray] | None = None,
        names: Sequence[str] = (),
        outputs: int = 1,
        **params: Any,
    ) -> RuntimeOperator:
        lines = [f"pnnx.Input in{i} 0 1 x{i}" for i in range(len(inputs))]
        given = " ".join(f"x{i}" for i in range(len(inputs)))
        taken = " ".join(f"y{i}" for i in range(outputs))
        said = [f"{key}={spelled(value)}" for key, value in params.items()]
        said += [f"@{key}={annotated(array)}" for key, array in (weights or {}).items()]
        said += [f"${name}=x{index}" for index, name in enumerate(names) if name]
        lines.append(
            f"{operator_type} op {len(inputs)} {outputs} {given} {taken} {' '.join(said)}"
        )
        lines += [f"pnnx.Output out{i} 1 0 y{i}" for i in range(outputs)]
        param = make_pair(
            *lines,
            weights={f"op.{key}": array for key, array in (weights or {}).items()},
            name=f"m{next(numbers)}",
        )
        found = engine.load(param).operator("op")
        assert found.error is None, found.reason
        return found

    return make


@pytest.fixture
def tuning_cache(tmp_path, monkeypatch):
    """A TuningCache for this test only."""
    own = TuningCache(tmp_path / "kernels.json")
    monkeypatch.setattr("engine.backends._tuning_cache", lambda: own)
    return own
