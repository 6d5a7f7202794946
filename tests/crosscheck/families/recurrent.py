"""Recurrent networks and their cells."""

from __future__ import annotations

from torch import nn

from crosscheck.draw import Draw
from crosscheck.specification import Case, specs


class WithStates(nn.Module):
    """LSTM takes its states as a tuple."""

    def __init__(self, network: nn.Module, *, only_output: bool = False) -> None:
        super().__init__()
        self.network, self.only_output = network, only_output

    def forward(self, x, *states):
        if len(states) == 2:
            states = (states,)
        result = self.network(x, *states)
        return result[0] if self.only_output else result


@specs({name: (f"nn.{name}",) for name in ("LSTM", "GRU", "RNN")}, tolerance=1e-4)
def network(draw: Draw, name: str):
    size, hidden, layers = draw.integer(1, 4), draw.integer(2, 4), draw.integer(1, 3)
    options = draw.keywords(
        bias=draw.flag(), batch_first=draw.flag(), bidirectional=draw.flag(), dropout=0.3
    )
    projection = draw.integer(1, hidden - 1) if name == "LSTM" and draw.flag(0.3) else 0
    if projection:
        options["proj_size"] = projection
    if name == "RNN":
        options |= draw.keywords(nonlinearity=draw.one("tanh", "relu"))
    module = getattr(nn, name)(size, hidden, layers, **options)
    batch = draw.integer(1, 3)
    shape = [draw.integer(1, 5), batch]
    if options.get("batch_first"):
        shape.reverse()
    x = draw.normal(*shape, size)
    kind = draw.turn("plain", "states", "output")
    if kind == "states":
        lead = (layers * (2 if options.get("bidirectional") else 1), batch)
        states = [draw.normal(*lead, projection or hidden)]
        if name == "LSTM":
            states.append(draw.normal(*lead, hidden))
        return Case(WithStates(module), x, *states)
    return Case(WithStates(module, only_output=kind == "output"), x)


@specs({name: (f"nn.{name}",) for name in ("LSTM", "GRU", "RNN")}, tolerance=1e-4)
def unbatched(draw: Draw, name: str):
    size, hidden = draw.integer(1, 4), draw.integer(1, 4)
    module = getattr(nn, name)(size, hidden, bidirectional=draw.flag())
    return Case(WithStates(module), draw.normal(draw.integer(1, 5), size))


# With states: zeros of its own pnnx folds into wrong numbers. Not at level 0, where all weights
# of a cell have one name.
@specs(dict.fromkeys(("LSTMCell", "GRUCell", "RNNCell"), ()), levels=(1, 2))
def cell(draw: Draw, name: str):
    size, hidden = draw.integer(1, 4), draw.integer(1, 4)
    module = getattr(nn, name)(size, hidden, bias=draw.flag())
    batch = (draw.integer(1, 3),) if draw.flag(0.8) else ()
    states = [draw.normal(*batch, hidden) for _ in range(2 if name == "LSTMCell" else 1)]
    return Case(WithStates(module), draw.normal(*batch, size), *states)
