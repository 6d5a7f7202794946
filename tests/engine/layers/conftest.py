"""Fixtures for the tests of operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from engine.layers import OperatorCall, build_layer

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(scope="session")
def run() -> Callable[..., Any]:
    """A function that builds an operator's layer and computes it once.

    ``run(type, *operands, names=(), weights={}, seed=0, **params)``; operands and weights are
    handed in as read-only copies, as the runtime does. `seed` is for layers that are random.
    """

    def protected(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            value = value.copy()
            value.flags.writeable = False
        return value

    def compute(
        operator_type: str,
        *operands: Any,
        names: tuple[str, ...] = (),
        weights: dict[str, np.ndarray] | None = None,
        seed: int = 0,
        **params: Any,
    ) -> Any:
        call = OperatorCall(
            name="op",
            type=operator_type,
            params=params,
            attributes={k: protected(v) for k, v in (weights or {}).items()},
            input_names=names or ("",) * len(operands),
        )
        layer = build_layer(call)
        draws = {layer.generator: np.random.default_rng(seed)} if layer.generator else {}
        with np.errstate(all="ignore"):
            return layer.forward(*map(protected, operands), **draws)

    return compute
