"""The result of an alignment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.comparison.matching import Match
    from engine.comparison.pairs import Numbers
    from engine.values import Value

__all__ = ["Alignment", "Born"]


@dataclass(frozen=True, slots=True)
class Born:
    """What is born at one of our operators: its error on the reference's inputs.

    Attributes
    ----------
    relative : float
        Distance from the reference's output, relative to its largest element; 1 if they cannot
        be compared.
    note : str
        Why they cannot be compared; ``""`` if they can.
    measured : bool
        Whether it ran at all.
    group : tuple of str
        Operands upstream that the reference does not show and nothing confirms: the difference
        may begin at one of them.
    """

    relative: float = 0.0
    note: str = ""
    measured: bool = True
    group: tuple[str, ...] = ()


@dataclass(slots=True)
class Alignment:
    """Which tensors of the reference are our operands', and what is born at each.

    Attributes
    ----------
    matches : dict of str to Match
        By operand.
    born : dict of str to Born
        By operand, for those that were matched and computed.
    shapes : dict of str to tuple of int
        By matched operand: the shape in which to read the reference's tensor.
    stand_ins : frozenset of str
        Operands that the reference does not show, confirmed by results downstream.
    computed : dict of str to Value
        What our operators give on the reference's values, by operand that it does not show.
    numbers : dict of str to Numbers
        Of our run's values, by matched operand, where the walk has measured them.
    by_chance : dict of str to str
        Tensors by operands that have their elements for this input only; these are no matches.
    remarks : dict of str to str
        On matches that could be chance, by operand.
    """

    matches: dict[str, Match] = field(default_factory=dict)
    born: dict[str, Born] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    stand_ins: frozenset[str] = frozenset()
    computed: dict[str, Value] = field(default_factory=dict)
    numbers: dict[str, Numbers] = field(default_factory=dict)
    by_chance: dict[str, str] = field(default_factory=dict)
    remarks: dict[str, str] = field(default_factory=dict)
