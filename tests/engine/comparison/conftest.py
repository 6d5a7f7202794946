"""A small network, its session, and the tensors that it must give."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import engine
from comparison_network import LINES, make_weights, truth

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from engine.session import Session


@pytest.fixture
def image() -> np.ndarray:
    return np.random.default_rng(1).standard_normal((1, 3, 8, 8)).astype(np.float32)


@pytest.fixture
def make_session(make_pair: Callable[..., Path], image: np.ndarray) -> Callable[..., Session]:
    """A function that makes a session of the network, with changes of lines or weights."""

    def make(
        replace: Mapping[str, str] | None = None,
        weights: Mapping[str, np.ndarray] | None = None,
        name: str = "m",
    ) -> Session:
        lines = "\n".join(LINES)
        for old, new in (replace or {}).items():
            assert old in lines
            lines = lines.replace(old, new)
        pair = make_pair(
            *lines.split("\n"), weights={**make_weights(), **(weights or {})}, name=name
        )
        session = engine.Session(engine.load(pair), backend="numpy")
        session.feed([image])
        return session

    return make


@pytest.fixture
def tensors(image: np.ndarray) -> dict[str, np.ndarray]:
    return truth(image, make_weights())
