"""Loads and runs PNNX graphs; usable alone, without a window.

>>> import engine
>>> graph = engine.load("model.pnnx.param")  # doctest: +SKIP
>>> session = engine.Session(graph)  # doctest: +SKIP
>>> session.feed([image])  # doctest: +SKIP
>>> record = session.step()  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.runtime import GraphState, RuntimeGraph
from engine.session import OperatorStatus, Session, SessionState, StepRecord
from engine.tensor import Tensor

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "GraphState",
    "OperatorStatus",
    "RuntimeGraph",
    "Session",
    "SessionState",
    "StepRecord",
    "Tensor",
    "load",
]


def load(param_path: str | Path, bin_path: str | Path | None = None) -> RuntimeGraph:
    """Open a PNNX pair, ready to run.

    Parameters
    ----------
    param_path : path
        The ``.param`` file.
    bin_path : path, optional
        The ``.bin`` file; found by its content beside `param_path` when not given.

    Returns
    -------
    RuntimeGraph
        In state COMPLETE. Weights are mapped, not read.

    Raises
    ------
    ModelFileError
        With path, line and reason.
    """
    graph = RuntimeGraph(param_path, bin_path)
    graph.init()
    graph.build()
    return graph
