"""What is told of a group of operators: its facts, and the operands that enter and leave it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from engine.states import OperatorStatus
from engine.text import format_amount, format_bytes, format_count, format_duration, format_share
from kuiper_studio.item_models.operands import OperandRow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.runtime import RuntimeOperator
    from kuiper_studio.layout.groups import Group
    from kuiper_studio.session import StudioSession

__all__ = ["boundary_rows", "group_rows"]


def group_rows(session: StudioSession, group: Group) -> Iterator[tuple[str, str, str]]:
    """Iterate over the facts of a group, the types of its operators last.

    Yields
    ------
    (str, str, str)
        Name, value and meaning.
    """
    graph = session.graph
    if graph is None:
        return
    inside = slice(group.first, group.last + 1)
    records, costs = session.snapshot.records, session.costs
    yield "operators", f"{group.size}", "Consecutive in execution order"
    yield "indexes", f"#{group.first} to #{group.last}", "In execution order"
    if group.is_stack:
        yield "blocks", f"{len(group.children)}", "With equal operators, one after the other"
    ran = [record for record in records[inside] if record.status is OperatorStatus.EXECUTED]
    yield "run", f"{len(ran)} of {group.size}", "Operators that have run"
    if ran:
        seconds = sum(record.seconds for record in ran)
        share = format_share(seconds / (sum(record.seconds for record in records) or 1.0))
        yield "time", f"{format_duration(seconds)}, {share}", "Share of the time so far"
    macs = float(costs.macs[inside].sum())
    if macs:
        yield "MACs", format_amount(macs, "MAC"), "Multiply-accumulates of one run"
    for name, sizes, meaning in (
        ("weights", costs.weight_nbytes, "Bytes of the weights"),
        ("outputs", costs.output_nbytes, "Bytes of all outputs together"),
    ):
        if size := int(sizes[inside].sum()):
            yield name, format_bytes(size), meaning
    types = Counter(operator.type for operator in graph.operators[inside])
    for kind, count in types.most_common():
        yield kind, f"×{count}", format_count(count, "operator")


def boundary_rows(operators: Sequence[RuntimeOperator]) -> tuple[OperandRow, ...]:
    """Return the operands that enter and leave a group, with their peers outside.

    Parameters
    ----------
    operators : sequence of RuntimeOperator
        Of the group, in execution order.
    """
    inside = {operator.name for operator in operators}
    used = {each.name: each for operator in operators for each in operator.inputs}
    rows = [
        OperandRow(operand, "in", "", operand.producer)
        for operand in used.values()
        if operand.producer is None or operand.producer.name not in inside
    ]
    for operator in operators:
        for operand in operator.outputs:
            peers = {each.name: each for each in operand.consumers if each.name not in inside}
            outside = list(peers.values())
            if outside or not operand.consumers:
                rows.append(OperandRow(operand, "out", "", outside[0] if outside else None))
                rows += [OperandRow(operand, "", "", peer) for peer in outside[1:]]
    return tuple(rows)
