"""What the log says of a model that was opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import without_name
from engine.text import format_count, format_duration

if TYPE_CHECKING:
    from engine.runtime import RuntimeGraph, RuntimeOperator

__all__ = ["describe_opened", "describe_unsupported"]


def describe_opened(graph: RuntimeGraph, seconds: float) -> str:
    """Return which files were opened, how many operators they have, and how long it took."""
    if graph.conversion is not None:
        earlier = " earlier" if graph.conversion.was_made_before else ""
        weights = f", converted with pnnx{earlier}"
    elif graph.bin_path:
        weights = f" and {graph.bin_path.name}"
    else:
        weights = ", structure only"
    count = format_count(len(graph.operators), "operator")
    return f"opened {graph.source_path.name}{weights}: {count} in {format_duration(seconds)}"


def describe_unsupported(graph: RuntimeGraph) -> list[str]:
    """Return a line for each reason why operators cannot run; it names a single operator."""
    alike: dict[str, list[RuntimeOperator]] = {}
    for operator in graph.unsupported:
        reason = without_name(operator.reason, operator.name, operator.type)
        alike.setdefault(reason, []).append(operator)
    return [
        f"{format_count(len(operators), 'operator')}: {reason}"
        if len(operators) > 1
        else operators[0].reason
        for reason, operators in alike.items()
    ]
