"""Sessions to dump: the digits sample, and one with whatever values a test wants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import engine
from engine.session import OperatorStatus, Session, StepRecord
from engine.store import StepOutputs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


@pytest.fixture(scope="session")
def digits(samples: Path) -> Session:
    """The digits sample, run to the end."""
    session = Session(engine.load(samples / "digits" / "digits.pnnx.param"))
    session.feed([np.load(samples / "digits" / "golden.npz")["0"]])
    session.run()
    return session


@pytest.fixture
def session_with(make_pair: Callable[..., Path]) -> Callable[..., Session]:
    """A function that makes a session whose operators have given the values named."""

    def make(
        values: Mapping[str, Any],
        operator_type: str = "test.Op",
        weights: Mapping[str, np.ndarray] | None = None,
    ) -> Session:
        lines = [
            f"{operator_type} op{index} 0 1 {name}" + "".join(_attributes(weights, index))
            for index, name in enumerate(values)
        ]
        session = Session(engine.load(make_pair(*lines, weights=weights)))
        for operator, (name, value) in zip(
            session.graph.operators, values.items(), strict=True
        ):
            outputs = StepOutputs({name: value})
            session._records[operator.name] = StepRecord(
                operator.index, operator, outputs, 0.001, OperatorStatus.EXECUTED, "numpy"
            )
        return session

    return make


def _attributes(weights: Mapping[str, np.ndarray] | None, index: int) -> list[str]:
    named = {k.partition(".")[2]: a for k, a in (weights or {}).items() if k[2] == str(index)}
    dtypes = {"float32": "f32", "float16": "f16", "int64": "i64", "bool": "bool"}
    return [
        f" @{key}=({','.join(map(str, a.shape))}){dtypes[a.dtype.name]}"
        for key, a in named.items()
    ]
