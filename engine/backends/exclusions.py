"""Libraries that are excluded from certain operators.

A library that crashed or did not return is excluded from that operator: alone, in a subgraph,
and in every trial. Such operators have entries of their own in the tuning cache, because the
usual entries were measured with that library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.backends.kernel import REFERENCE
from engine.errors import SessionStateError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

__all__ = ["Exclusions", "describe_exclusion"]


class Exclusions(dict[str, frozenset[str]]):
    """Names of the excluded libraries by operator; empty for all others.

    Parameters
    ----------
    excluded : mapping of str to collection of str, optional
        Operators that the model does not have are ignored.
    libraries : iterable of str
        Libraries that may be excluded, installed or not.

    Raises
    ------
    SessionStateError
        If there is no such library, or it is NumPy, the fallback.
    """

    def __init__(
        self, excluded: Mapping[str, Collection[str]] | None, libraries: Iterable[str]
    ) -> None:
        known = frozenset(libraries)
        super().__init__({name: frozenset(given) for name, given in (excluded or {}).items()})
        for operator, given in self.items():
            if REFERENCE in given:
                raise SessionStateError(
                    f"numpy cannot be excluded for {operator!r}: it is the reference"
                )
            if unknown := given - known:
                raise SessionStateError(
                    f"there is no library {min(unknown)!r} to exclude for {operator!r}; "
                    f"choose among {', '.join(sorted(known))}"
                )

    def __missing__(self, operator: str) -> frozenset[str]:
        return frozenset()


def describe_exclusion(excluded: Collection[str]) -> str:
    """Describe excluded libraries for a key of the tuning cache; ``""`` for none."""
    return f"|without {' '.join(sorted(excluded))}" if excluded else ""
