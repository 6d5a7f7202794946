"""Takes in the values of a batch in a thread, while the next batch is computed.

NumPy and the libraries let other threads run while they compute. One batch is taken in at a
time, in order, and no other waits: the values of at most two batches are in memory, that which
is taken in and that which is computed. So results do not depend on timing.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from engine.threads import can_start_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Future
    from typing import TypeAlias

    from engine.values import Array

    Take: TypeAlias = Callable[[Sequence[int], Mapping[str, Array]], None]

__all__ = ["overlapped"]

# Seconds after which a thread that runs Python gives way. With Python's 5 ms an operator that
# takes 1 ms would wait for longer than it computes.
_GIVING_WAY: Final = 5e-5


@contextmanager
def overlapped(take: Take) -> Iterator[Take]:
    """Return a function that calls another one in a thread.

    It waits for the call before, and raises that one's error. The last call is done when the
    context ends; where the context ends by an error, that of the last call is dropped.

    Parameters
    ----------
    take : callable
        Takes the numbers of inputs, and their values.
    """
    if not can_start_threads():
        yield take
        return
    last: Future[None] | None = None

    def hand_over(indices: Sequence[int], values: Mapping[str, Array]) -> None:
        nonlocal last
        if last is not None:
            last.result()
        last = pool.submit(take, indices, values)

    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, _GIVING_WAY))
    try:
        with ThreadPoolExecutor(1, "gather") as pool:
            yield hand_over
            if last is not None:
                last.result()
    finally:
        sys.setswitchinterval(before)
