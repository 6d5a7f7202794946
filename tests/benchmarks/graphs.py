"""Models of thousands of operators, in shapes that real networks have and that are hard."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["SHAPES", "write_model"]

_BRANCHES: Final = 500


def write_model(path: Path, shape: str, count: int) -> Path:
    """Write the ``.param`` of a model without weights.

    Parameters
    ----------
    path : Path
    shape : str
        One of `SHAPES`.
    count : int
        Number of operators, its input and output among them.
    """
    takes = SHAPES[shape](count - 2)
    used = {source for sources in takes for source in sources}
    ends = [number for number in range(count - 1) if number not in used]
    lines = ["pnnx.Input in 0 1 0 #0=(1,8,4,4)f32"]
    for number, sources in enumerate(takes, 1):
        names = " ".join(map(str, sources))
        head = f"n{number} {len(sources)} 1 {names} {number}"
        kind = "nn.ReLU" if len(sources) == 1 else "pnnx.Expression"
        terms = ",".join(f"@{place}" for place in range(len(sources)))
        expression = "" if len(sources) == 1 else f" expr=add({terms})"
        lines.append(f"{kind} {head}{expression} #{number}=(1,8,4,4)f32")
    lines.append(f"pnnx.Output out {len(ends)} 0 {' '.join(map(str, ends))}")
    path.write_text("\n".join(["7767517", f"{len(lines)} {count - 1}", *lines, ""]))
    return path


def _chain(count: int) -> list[list[int]]:
    return [[number] for number in range(count)]


def _residual(count: int) -> list[list[int]]:
    """Blocks of three with a skip around each, and a longer skip around every tenth."""
    takes = []
    for number in range(count):
        sources = [number]
        if number >= 3 and number % 3 == 0:
            sources.append(number - 3)
        if number >= 30 and number % 30 == 1:
            sources.append(number - 30)
        takes.append(sources)
    return takes


def _dense(count: int) -> list[list[int]]:
    """Blocks of forty in which every second operator takes all that came before it."""
    takes = []
    for number in range(count):
        start = number - number % 40
        takes.append([*range(start, number, 2), number] if number % 2 else [number])
    return takes


def _fans(count: int) -> list[list[int]]:
    """Five hundred branches out of one operator and into the next one, again and again."""
    takes: list[list[int]] = []
    while len(takes) < count:
        start = len(takes)
        width = min(_BRANCHES, count - start)
        takes += [[start] for _ in range(width)]
        if len(takes) < count:
            takes.append(list(range(start + 1, start + 1 + width)))
    return takes


def _components(count: int) -> list[list[int]]:
    """Chains of nine that hang together by the input only."""
    return [[0 if number % 9 == 0 else number] for number in range(count)]


def _near(count: int) -> list[list[int]]:
    """Each takes one to three of the sixty before it, at random."""
    draw = random.Random(0)
    return [
        sorted({max(0, number - draw.randrange(60)) for _ in range(draw.randint(1, 3))})
        for number in range(count)
    ]


def _anywhere(count: int) -> list[list[int]]:
    """Each takes the one before it or one of the sixty, and every tenth one from anywhere."""
    draw = random.Random(0)
    takes = []
    for number in range(count):
        sources = {max(0, number - draw.randrange(8))}
        if number % 10 == 0:
            sources.add(draw.randrange(number + 1))
        takes.append(sorted(sources))
    return takes


SHAPES: Final[dict[str, Callable[[int], list[list[int]]]]] = {
    "chain": _chain,
    "residual": _residual,
    "dense": _dense,
    "fans of 500": _fans,
    "many short chains": _components,
    "random, near": _near,
    "random, far": _anywhere,
}
