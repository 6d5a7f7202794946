"""What a cross-check covered and found, as a table."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from engine.layers import registered_types
from engine.layers.registry import registration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crosscheck.check import Outcome
    from crosscheck.specification import Spec

__all__ = ["Report"]


class Report:
    """Counts outcomes.

    Parameters
    ----------
    specs : sequence of Spec
        What is being run.
    """

    def __init__(self, specs: Sequence[Spec]) -> None:
        self._specs = specs
        self._cases: Counter[str] = Counter()
        self._faults: Counter[str] = Counter()
        self._types: set[str] = set()
        self._operands = 0

    @property
    def cases(self) -> int:
        """How many cases ran."""
        return self._cases.total()

    @property
    def failed(self) -> int:
        """How many of them differ."""
        return self._faults.total()

    def faults(self, spec: Spec) -> int:
        """How many cases of a specification differ."""
        return self._faults[spec.name]

    def add(self, outcome: Outcome) -> None:
        """Count an outcome."""
        spec = outcome.drawn.spec
        self._cases[spec.name] += 1
        self._faults[spec.name] += bool(outcome.fault)
        self._operands += outcome.compared
        self._types |= outcome.types

    def summary(self, seconds: float) -> str:
        """The table: families, then operator types, then all of it."""
        families: dict[str, list[str]] = {}
        for spec in self._specs:
            families.setdefault(spec.name.partition(".")[0], []).append(spec.name)
        lines = ["", f"{'family':24}{'specs':>7}{'cases':>7}{'differ':>8}"]
        for family, names in families.items():
            cases = sum(self._cases[name] for name in names)
            faults = sum(self._faults[name] for name in names)
            lines.append(f"{family:24}{len(names):7}{cases:7}{faults:8}")
        return "\n".join([*lines, "", *self._coverage(), "", self._total(seconds)])

    def not_met(self) -> list[str]:
        """Types that have a layer, and that no case met."""
        return sorted({*registered_types()} - self._types)

    def _coverage(self) -> list[str]:
        known = set(registered_types())
        met = self._types & known
        codes, met_codes = {_code(name) for name in known}, {_code(name) for name in met}
        missed = {name for spec in self._specs for name in spec.types} - self._types
        return [
            f"operator types met: {len(self._types)}",
            f"of the {len(known)} with a layer: {len(met)}",
            f"of their {len(codes)} implementations: {len(met_codes)}",
            *([f"meant, not met: {' '.join(sorted(missed))}"] if missed else []),
        ]

    def _total(self, seconds: float) -> str:
        return (
            f"{self.cases} cases of {len(self._specs)} specifications, {self._operands} "
            f"operands compared, {self.failed} cases differ ({seconds:.0f} s)"
        )


def _code(operator_type: str) -> object:
    """What computes a type; several names often share it."""
    entry = registration(operator_type)
    return entry.target if entry is not None else None
