"""Recurrent layers: what an element of a sequence depends on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.layers.recurrent import GRU, LSTM, RNN
from engine.provenance.call import Operand
from engine.provenance.records import Interval
from engine.provenance.table import locates

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.provenance.call import Call
    from engine.provenance.records import Box

__all__ = ["locate_recurrent"]


@locates(RNN, GRU, LSTM)
def locate_recurrent(call: Call, box: Box) -> Mapping[str, Box]:
    """Return a sample's sequence up to the element; all of it if it is read backwards, too."""
    layer = call.layer
    found: dict[str, Box] = {each.name: each.whole for each in call.arrays}
    x = call.inputs[0]
    if not isinstance(layer, (RNN, GRU, LSTM)) or not isinstance(x, Operand):
        return found
    if call.place or layer.states_first:
        return found
    time = 0 if x.ndim == 2 or not layer.batch_first else 1
    region = list(x.whole)
    if x.ndim == 3:
        region[1 - time] = box[1 - time]
    if layer.directions == 1:
        region[time] = Interval(0, box[time].stop)
    found[x.name] = tuple(region)
    return found
