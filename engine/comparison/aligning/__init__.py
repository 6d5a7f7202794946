"""Aligns a session with a reference: which tensor is whose, and what is born where.

The method is a walk through our graph **on the reference's values**. Each of our operators
computes from the reference's tensors, not from ours. So a difference belongs to the operator
where it is found, whatever is wrong upstream: it is *born* there. A result with the elements of
a tensor of the reference is matched with it, and what reads the result goes on from it.

Three things make this more than a look-up. The reference shows other tensors than ours, because
it fuses operators or computes one in several calls. Two tensors may have the same elements. And
where an operator of ours is wrong, no tensor has the elements of its result.

1. **Walk** (`walk`, `content`). In execution order, each result is matched by the user's hand,
   by name or by its elements. Where nothing fits, our own result is its *stand-in*. If a result
   downstream then equals a tensor of the reference again, the stand-ins that it was computed
   from are *confirmed*: the reference only does not show them.
2. **Decide** (`decisions`). The first stand-in that nothing confirms is where ours differs, or
   where the walk went astray. `evidence` weighs what it may be: names, weights (`labels`),
   place (`structure`) and elements. A *trial* confirms one (`trials`): with the right tensor in
   its place, the operators downstream give tensors of the reference again. Before that,
   repairs are tried upstream: an input may be right only in the reference's own layout
   (`layout_repairs`), or be a tensor further down, where one side lacks a function (`shifts`).
   Then what follows is computed again, and the next one is decided.
3. **Resume** (`resuming`). Behind an operator that nothing can compute, the walk goes on from
   tensors that weights and matches downstream name.
4. **Finish** (`finishing`). Ends of the model, and what could not be computed.

`state` holds what is known meanwhile; `values` reads and computes; `ahead` computes on another
thread what the walk will ask for; `matches` stores a match and measures what is born; `calls`
is the reference's own graph; `result` is what comes out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.comparison.aligning.content import Content
from engine.comparison.aligning.decisions import Decisions
from engine.comparison.aligning.evidence import Evidence
from engine.comparison.aligning.finishing import Finishing
from engine.comparison.aligning.layout_repairs import LayoutRepairs
from engine.comparison.aligning.result import Alignment, Born
from engine.comparison.aligning.resuming import Resuming
from engine.comparison.aligning.shifts import Shifts
from engine.comparison.aligning.state import Sides
from engine.comparison.aligning.tools import Tools
from engine.comparison.aligning.walk import Walk

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.comparison.fingerprints import FingerprintIndex
    from engine.comparison.matching import Matcher
    from engine.comparison.references import Reference
    from engine.session import Session

__all__ = ["Alignment", "Born", "align"]

_MOST_REVISIONS: Final = 3  # each moves an origin to what its inputs are computed by


def align(
    session: Session,
    reference: Reference,
    index: FingerprintIndex,
    matcher: Matcher,
    tolerance: float,
    progress: Callable[[int, int], None] | None = None,
) -> Alignment:
    """Match the operands of a session with the tensors of a reference.

    Parameters
    ----------
    session : Session
        At its end.
    reference : Reference
    index : FingerprintIndex
        Of the reference.
    matcher : Matcher
    tolerance : float
        Relative distance up to which a value of our run stands for the reference's.
    progress : callable, optional
        Called with the number of operators done and the total; an exception ends the walk.
    """
    tools = Tools.of(Sides(session, reference, index, matcher, tolerance))
    walk = Walk(tools, Content(tools))
    layouts, shifts = LayoutRepairs(tools, walk), Shifts(tools, walk)
    decisions = Decisions(tools, walk, Evidence(tools), layouts, shifts)
    resuming = Resuming(tools, walk)
    walk.run(progress)
    walk.revise_near()
    decisions.decide_all(progress)
    if decisions.revise_confirmed():
        decisions.decide_all(progress)
    for _ in range(_MOST_REVISIONS):
        if not decisions.revise_origins():
            break
        decisions.decide_all(progress)
    while resuming.resume(progress):
        decisions.decide_all(progress)
    Finishing(tools, walk).finish()
    return tools.state.result
