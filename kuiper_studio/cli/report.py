"""Describes a model without running it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.cost import cost, memory
from engine.errors import UnsupportedOperatorError
from engine.plain import plain
from engine.text import format_amount, format_bytes, format_count, format_shape
from engine.values import ArrayMetadata
from kuiper_studio.cli.terminal import say, say_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from engine.runtime import RuntimeGraph, RuntimeOperand, RuntimeOperator
    from engine.session import Session

__all__ = ["format_operand", "is_unknown", "model_facts", "say_facts"]

_SHOWN_INDEXES: Final = 8


def model_facts(graph: RuntimeGraph, session: Session | None = None) -> dict[str, Any]:
    """Return the description of a model as strict JSON can hold it.

    Parameters
    ----------
    graph : RuntimeGraph
    session : Session, optional
        A session that has run: shapes, dtypes and costs are those of its values. Without it,
        and for values that it did not compute, they are the file's: None is an open dimension,
        a string a symbol.
    """
    rows = [_operator_facts(operator, session) for operator in graph.operators]
    taken = memory(graph, session)
    return {
        "source": str(graph.source_path),
        "param": str(graph.param_path),
        "bin": str(graph.bin_path) if graph.bin_path is not None else None,
        "inputs": [_operand_facts(operand, session) for operand in graph.input_operands],
        "outputs": [_operand_facts(operand, session) for operand in graph.output_operands],
        "operands": len(graph.operands),
        "parameters": sum(row["parameters"] for row in rows),
        "macs": sum(row["macs"] for row in rows),
        "flops": sum(row["flops"] for row in rows),
        "memory": {"values": taken.total, "needed": taken.needed},
        "unsupported": [
            {"index": op.index, "name": op.name, "type": op.type, "reason": op.reason}
            for op in graph.unsupported
        ],
        "export_faults": [
            {
                "index": fault.operator.index,
                "line": fault.operator.line,
                "certain": fault.certain,
                "sentence": fault.sentence,
            }
            for fault in graph.export_faults
        ],
        "random": [op.index for op in graph.operators if op.random],
        "operators": rows,
    }


def _operator_facts(operator: RuntimeOperator, session: Session | None) -> dict[str, Any]:
    spent = cost(operator, session)
    return {
        "index": operator.index,
        "name": operator.name,
        "type": operator.type,
        "params": plain(dict(operator.params)),
        "attributes": {
            key: {"shape": list(a.shape), "dtype": a.stored_dtype, "nbytes": a.nbytes}
            for key, a in operator.attributes.items()
        },
        "inputs": [operand.name for operand in operator.inputs],
        "outputs": [_operand_facts(operand, session) for operand in operator.outputs],
        "macs": spent.macs,
        "flops": spent.flops,
        "nbytes": spent.nbytes,
        "parameters": spent.parameters,
        "layer_file": str(operator.layer_file) if operator.layer_file is not None else None,
        "reason": operator.reason,
    }


def _operand_facts(operand: RuntimeOperand, session: Session | None) -> dict[str, Any]:
    shape, dtype = operand.shape, operand.dtype
    if session is not None and session.has_value(operand.name):
        facts = session.metadata(operand.name)
        if isinstance(facts, ArrayMetadata):
            shape, dtype = facts.shape, facts.dtype
    return {
        "name": operand.name,
        "shape": plain(shape),
        "dtype": dtype.name if dtype is not None else None,
    }


def say_facts(graph: RuntimeGraph, session: Session | None = None) -> None:
    """Print the description as a table; see `model_facts`."""
    facts = model_facts(graph, session)
    say(
        f"{graph.source_path.name}: {format_count(len(graph.operators), 'operator')}, "
        f"{format_count(len(graph.operands), 'operand')}, "
        f"{format_count(facts['parameters'], 'parameter')}, "
        f"{format_amount(facts['macs'], 'MAC')}"
    )
    if graph.conversion is not None:
        say(f"converted with pnnx: {graph.param_path}")
    if graph.bin_path is not None:
        say(f"weights: {graph.bin_path}")
    elif not graph.has_weights:
        say("weights: none found, structure only")
    for path, types in _own_types(graph).items():
        say(f"layers: {path}: {', '.join(types)}")
    for role in ("input", "output"):
        for operand in facts[f"{role}s"]:
            shown = format_operand(operand["shape"], operand["dtype"])
            say(f"{role}: {operand['name']} {shown}")
    say()
    rows = [("#", "type", "name", "output", "parameters", "MAC")]
    for row in facts["operators"]:
        shown = ", ".join(format_operand(o["shape"], o["dtype"]) for o in row["outputs"])
        count = format_count(row["parameters"]) if row["parameters"] else ""
        macs = format_amount(row["macs"], "").rstrip() if row["macs"] else ""
        rows.append((str(row["index"]), row["type"], row["name"], shown, count, macs))
    say_table(rows, right={0, 4, 5})
    _say_memory(facts["memory"])
    _say_random(graph)
    _say_unsupported(graph)
    _say_faults(facts)


def _say_memory(taken: Mapping[str, int]) -> None:
    """Print how much memory the values of a pass take, and the least that it needs."""
    if taken["values"]:
        say()
        say(
            f"a pass keeps {format_bytes(taken['values'])} of values; --memory-limit SIZE "
            f"keeps fewer, but at least the {format_bytes(taken['needed'])} that operators "
            "need at once"
        )


def _own_types(graph: RuntimeGraph) -> dict[Path, list[str]]:
    """Return, by layer file of the user, the types in the model that it computes."""
    types: dict[Path, list[str]] = {}
    for operator in graph.operators:
        if operator.layer_file is not None:
            of_file = types.setdefault(operator.layer_file, [])
            if operator.type not in of_file:
                of_file.append(operator.type)
    return types


def _say_random(graph: RuntimeGraph) -> None:
    """Print which operators draw random numbers."""
    indexes = [operator.index for operator in graph.operators if operator.random]
    if indexes:
        count = format_count(len(indexes), "operator is", "operators are")
        say()
        say(f"{count} random: {_format_indexes(indexes)}; --seed N sets the random seed")


def _format_indexes(indexes: Sequence[int]) -> str:
    shown = [str(index) for index in indexes[:_SHOWN_INDEXES]]
    if len(indexes) > _SHOWN_INDEXES:
        shown.append(f"and {len(indexes) - _SHOWN_INDEXES} more")
    return ", ".join(shown)


def _say_unsupported(graph: RuntimeGraph) -> None:
    """Print a line for each reason, with the operators that cannot run because of it."""
    together: dict[str, list[RuntimeOperator]] = {}
    for operator in graph.unsupported:
        together.setdefault(operator.reason, []).append(operator)
    if not together:
        return
    say()
    say(f"{format_count(len(graph.unsupported), 'operator')} cannot run:")
    for reason, operators in together.items():
        say(f"  {_format_indexes([operator.index for operator in operators])}: {reason}")
    if any(is_unknown(operator) for operator in graph.unsupported):
        say("use --layers FILE to load your own layers")


def _say_faults(facts: Mapping[str, Any]) -> None:
    """Print the faults of the export, except those that `_say_unsupported` has printed."""
    printed = {row["index"] for row in facts["unsupported"]}
    for fault in facts["export_faults"]:
        if fault["index"] not in printed:
            say()
            say(f"warning: {fault['sentence']}")


def is_unknown(operator: RuntimeOperator) -> bool:
    """Whether an operator cannot run because there is no layer for its type."""
    return isinstance(operator.error, UnsupportedOperatorError)


def format_operand(shape: Sequence[object] | None, dtype: str | None) -> str:
    """Format a shape and a dtype: ``1×3×224×224 float32``."""
    if shape is None:
        return "?"
    dims = format_shape(shape)
    return f"{dims} {dtype}" if dtype else dims
