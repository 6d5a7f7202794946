"""The logit lens: what a language model would say after each of its layers.

The residual stream after a layer goes through the model's last norm and head, as its end does
(nostalgebraist, *interpreting GPT: the logit lens*, 2020).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engine.runtime import RuntimeGraph, RuntimeOperand, RuntimeOperator
    from engine.session import Session
    from engine.values import Array, Value

__all__ = ["find_lens", "look_through"]

_NORMS: Final = frozenset({"nn.LayerNorm", "F.layer_norm", "nn.RMSNorm", "F.rms_norm"})
_HEADS: Final = frozenset({"nn.Linear", "F.linear"})
_MOST_LAYERS: Final = 512


def find_lens(
    graph: RuntimeGraph,
) -> tuple[tuple[RuntimeOperator, ...], tuple[RuntimeOperand, ...]]:
    """Find the end of a language model, and the sums that would go through it.

    Parameters
    ----------
    graph : RuntimeGraph

    Returns
    -------
    tuple of RuntimeOperator
        Norm and head, in execution order; empty if the model does not end with them.
    tuple of RuntimeOperand
        The residual stream, the earliest sum first.
    """
    end: list[RuntimeOperator] = []
    operand = graph.output_operands[0] if graph.output_operands else None
    producer = operand.producer if operand is not None else None
    while producer is not None and producer.type in _NORMS | _HEADS:
        if len(producer.inputs) != 1 or (end and end[-1].type in _NORMS):
            break
        end.append(producer)
        operand = producer.inputs[0]
        producer = operand.producer
    if operand is None or not end or end[-1].type not in _NORMS or end[0].type not in _HEADS:
        return (), ()
    return tuple(end[::-1]), tuple(_find_stream(operand))[::-1]


def _find_stream(operand: RuntimeOperand) -> Iterator[RuntimeOperand]:
    """Yield the sums that lead to an operand, the last one first."""
    for _ in range(_MOST_LAYERS):
        producer = operand.producer
        if producer is None or len(producer.outputs) != 1:
            return
        yield operand
        if producer.type != "pnnx.Expression" or "add" not in str(producer.params.get("expr")):
            return
        # What is added was computed from the stream, so the stream is older.
        alike = [each for each in producer.inputs if each.shape == operand.shape]
        ages = [each.producer.index for each in alike if each.producer is not None]
        if len(alike) < 2 or len(ages) != len(alike):
            return
        operand = alike[ages.index(min(ages))]


def look_through(
    session: Session,
    sample: int,
    position: int,
    check_cancelled: Callable[[], None] | None = None,
) -> list[tuple[str, Array]]:
    """Return the scores of all tokens after each layer.

    Parameters
    ----------
    session : Session
        At its end; it does not change.
    sample, position : int
    check_cancelled : callable, optional
        Called between operators.

    Returns
    -------
    list of (str, ndarray of shape (vocabulary,))
        With the operand of each sum, the earliest first; empty without a lens.
    """
    end, stream = find_lens(session.graph)
    found = []
    for operand in stream:
        value = session.value(operand.name, check_cancelled)
        if not isinstance(value, np.ndarray) or value.ndim != 3:
            return []
        scores: Value = value[sample : sample + 1, position : position + 1]
        for operator in end:
            (scores,) = operator.forward([scores])
        found.append((operand.name, np.asarray(scores).reshape(-1)))
    return found
