"""Finds the error in a ``.param`` file that could not be read.

It runs only after reading has failed, so clarity is more important than speed. The time is
still linear in the size of the file, which may be hostile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = [
    "explain_operands",
    "explain_operators",
    "explain_unknown_operand",
    "line_of_operator",
    "shorten",
]

_SHOWN_OF_CYCLE: Final = 6
_MOST_QUOTED: Final = 40  # characters


class _Line(NamedTuple):
    """The columns of an operator's line that connect it."""

    number: int
    name: str
    inputs: list[str]
    outputs: list[str]


def shorten(text: str) -> str:
    """Quote a piece of the file, cut if it is long."""
    return repr(text if len(text) <= _MOST_QUOTED else text[: _MOST_QUOTED - 1] + "…")


def line_of_operator(lines: Sequence[str], name: str) -> int:
    """Return the line number, from 1, of an operator."""
    return next(line.number for line in _readable(lines) if line.name == name)


def explain_operators(lines: Sequence[str]) -> tuple[str, int]:
    """Find a duplicate operator; return the message and the line."""
    first: dict[str, int] = {}
    second = next(
        line
        for line in _readable(lines)
        if first.setdefault(line.name, line.number) != line.number
    )
    place = first[second.name]
    return f"line {place} already has an operator named {second.name!r}", second.number


def explain_operands(lines: Sequence[str]) -> tuple[str, int]:
    """Find an output that is a duplicate; return the message and the line."""
    first: dict[str, tuple[int, int]] = {}
    operand, number = next(
        (operand, line.number)
        for line in _readable(lines)
        for place in enumerate(line.outputs)
        if "=" in (operand := place[1])
        or first.setdefault(operand, (line.number, place[0])) != (line.number, place[0])
    )
    if "=" in operand:
        return _no_operand(operand), number
    return f"line {first[operand][0]} already produces operand {operand!r}", number


def explain_unknown_operand(lines: Sequence[str], number: int, operand: str) -> str:
    """Return why an operand is missing when the operator of line `number` takes it."""
    if "=" in operand:
        return _no_operand(operand)
    operators = list(_readable(lines))
    taker = next(line for line in operators if line.number == number)
    if operand not in taker.inputs:
        return f"#{operand} annotates an operand that no line so far names"
    producers = {name: line for line in operators for name in line.outputs}
    if operand not in producers:
        return f"operator {taker.name!r} takes operand {operand!r}, which nothing produces"
    cycle = _find_cycle(operators, producers)
    if cycle:
        shown = cycle[:_SHOWN_OF_CYCLE] + ["…"] * (len(cycle) > _SHOWN_OF_CYCLE)
        return f"operators form a cycle: {' → '.join(shown)}"
    return (
        f"operator {taker.name!r} takes operand {operand!r} before line "
        f"{producers[operand].number} produces it; move that line up, producers come first"
    )


def _no_operand(token: str) -> str:
    return f"the line counts more operands than it names: {shorten(token)} is not an operand"


def _readable(lines: Sequence[str]) -> Iterator[_Line]:
    """Return the connections of every operator whose line can be parsed."""
    for number, text in enumerate(lines[2:], 3):
        # as bytes, whose blanks are C's
        columns = [column.decode() for column in text.encode().split()]
        try:
            taken, made = (int(count) for count in columns[2:4])
        except ValueError:
            continue
        first = 4 + max(taken, 0)
        yield _Line(number, columns[1], columns[4:first], columns[first : first + made])


def _find_cycle(operators: Sequence[_Line], producers: Mapping[str, _Line]) -> list[str]:
    """Return the operators of a cycle, with the first again at the end; empty for none."""
    consumers: dict[str, list[_Line]] = {}
    unmet = dict.fromkeys((line.number for line in operators), 0)
    for line in operators:
        for operand in line.inputs:
            if operand in producers:
                consumers.setdefault(operand, []).append(line)
                unmet[line.number] += 1
    ready = [line for line in operators if not unmet[line.number]]
    for line in ready:  # grows on the way
        for operand in set(line.outputs):
            for consumer in consumers.pop(operand, ()):
                unmet[consumer.number] -= 1
                if not unmet[consumer.number]:
                    ready.append(consumer)
    stuck = [line for line in operators if unmet[line.number]]
    return _walk_back(stuck, producers) if stuck else []


def _walk_back(stuck: Sequence[_Line], producers: Mapping[str, _Line]) -> list[str]:
    """Follow producers among operators that wait for each other."""
    numbers = {line.number for line in stuck}
    line = stuck[0]
    path: dict[int, str] = {}
    while line.number not in path:
        path[line.number] = line.name
        waits_for = (producers[name] for name in line.inputs if name in producers)
        line = next(other for other in waits_for if other.number in numbers)
    names = list(path.values())[list(path).index(line.number) :]
    return [names[0], *reversed(names[1:]), names[0]]
