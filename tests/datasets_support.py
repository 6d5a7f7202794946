"""What the tests of data sets share."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import engine

DIGITS = Path(__file__).parents[1] / "samples" / "digits" / "digits.pnnx.param"
COUNT = 40


def all_values(model: Path, inputs: np.ndarray) -> dict[str, np.ndarray]:
    """Return the values of every operand, input by input, without the sweep."""
    session = engine.Session(engine.load(model))
    found: dict[str, list[np.ndarray]] = {}
    for item in [inputs[0], inputs[0], *inputs]:  # the first two choose the kernels
        session.feed([item[np.newaxis]])
        session.run()
        for name in session.graph.operands:
            found.setdefault(name, []).append(np.array(session.value(name)[0]))
    return {name: np.stack(values[2:]) for name, values in found.items()}
