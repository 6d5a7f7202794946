"""Alternatives of what joins many numbers to one: means, sums and maxima, also of windows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from engine.comparison.reasons.case import DROPPED, Alternative
from engine.comparison.reasons.reason import Change

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.comparison.reasons.case import Case

__all__ = ["other_reductions"]

_POOLING: Final = re.compile(r"^(nn\.|F\.)(Adaptive|adaptive_)?(Max|Avg|max_|avg_)([Pp]ool.*)$")
_WORDS: Final = {"Max": "Avg", "Avg": "Max", "max_": "avg_", "avg_": "max_"}
_REDUCTIONS: Final = ("torch.mean", "torch.sum", "torch.amax", "torch.amin", "torch.prod")


def other_reductions(case: Case) -> Iterator[Alternative]:
    """Return other functions of the same numbers."""
    found = _POOLING.match(case.type)
    if found is not None:
        library, adaptive, word, rest = found.groups()
        other = f"{library}{adaptive or ''}{_WORDS[word]}{rest}"
        if adaptive:
            yield _of_type(case, other, {"return_indices": DROPPED})
        elif word.startswith(("A", "a")):
            dropped = dict.fromkeys(("count_include_pad", "divisor_override"), DROPPED)
            yield _of_type(case, other, {**dropped, "dilation": 1, "return_indices": False})
        else:
            dropped = dict.fromkeys(("dilation", "return_indices"), DROPPED)
            for counted in (True, False):
                yield _of_type(case, other, {**dropped, "count_include_pad": counted})
    elif case.type in _REDUCTIONS:
        for other in _REDUCTIONS:
            if other != case.type:
                yield _of_type(case, other, {"dtype": DROPPED})


def _of_type(case: Case, other: str, params: dict[str, object]) -> Alternative:
    return Alternative(
        "parameter", f"The reference computes {other} here, the file {case.type}. Use {other}.",
        (Change("type", other),), params, type=other,
    )  # fmt: skip
