"""Plants faults and counts first reasons."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - the field's own name

from engine.comparison.reasons import explain
from reasons.operators import make_operator
from reasons.plants import PLANTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.comparison.reasons import Reason
    from reasons.plants import Planted


@dataclass
class Outcome:
    """The reasons that were given for one fault.

    Attributes
    ----------
    name, seed
        Of the plant.
    wanted : set of str
    reasons : tuple of Reason
    """

    name: str
    seed: int
    wanted: set[str]
    reasons: tuple[Reason, ...]

    @property
    def is_right(self) -> bool:
        first = self.reasons[0].kind if self.reasons else None
        return first in self.wanted if self.wanted else first is None


def draw(name: str, seed: int) -> Planted:
    """Draw a fault; the same name and seed give the same fault."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    planted = PLANTS[name](rng)
    if planted.expected is None:  # a module of its own factor
        (x,) = planted.inputs
        planted.expected = F.pixel_shuffle(torch.from_numpy(x), 3).numpy()
    return planted


def outcomes(seeds: range, only: str = "") -> Iterator[Outcome]:
    """Plant each fault once for each seed."""
    for name in PLANTS:
        if only and only not in name:
            continue
        for seed in seeds:
            p = draw(name, seed)
            operator = make_operator(p.type, p.params, p.weights, p.inputs, p.names)
            yield Outcome(name, seed, p.kinds, explain(operator, p.inputs, p.expected))
