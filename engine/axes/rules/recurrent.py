"""Recurrent layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.axes.factors import Rank
from engine.axes.layout import Kind
from engine.axes.registry import rule

if TYPE_CHECKING:
    from engine.axes.call import Call, Results

__all__: list[str] = []


@rule("lstm", "gru", "rnn")
def recur(call: Call) -> Results:
    """Follow a sequence in time."""
    dims, shape = call.first, call.shape
    if dims is None or shape is None or len(dims) != len(shape) or len(dims) not in {2, 3}:
        return []
    batch_first = call.param("batch_first") is True
    order = (Kind.BATCH, Kind.TIME) if batch_first else (Kind.TIME, Kind.BATCH)
    kinds = order if len(dims) == 3 else (Kind.TIME,)
    call.claim(dims, (*kinds, Kind.FEATURE), Rank.EXPECTED)
    made = (call.factors.make(shape[-1]),)
    call.factors.claim(made, Kind.FEATURE, Rank.EXPECTED)
    results: Results = [call.fit((*dims[:-1], made))]
    for place in range(1, len(call.shapes)):
        state = call.shapes[place]
        if state is None or len(state) != len(dims):
            results.append(None)
            continue
        last = call.factors.make_dims(state)
        names = (Kind.LAYER, Kind.BATCH) if len(dims) == 3 else (Kind.LAYER,)
        call.claim(last, (*names, Kind.FEATURE), Rank.EXPECTED)
        results.append(last)
    return results
