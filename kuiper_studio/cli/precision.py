"""Prints a precision simulation as a table or as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.plain import plain
from engine.precision import ncnn_lines
from engine.text import format_brief, format_count
from kuiper_studio.cli.terminal import say, say_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.precision import KeptOperators, Loss, OperatorPrecision, Simulation, Storage
    from engine.runtime import OperatorLabel

__all__ = ["precision_facts", "say_precision"]

_HEADS: Final = (
    "#", "type", "name", "headroom", "underflow", "weight error", "output error",
    "model error", "cumulative error",
)  # fmt: skip
_SHOWN: Final = 30


def precision_facts(found: Simulation, kept: KeptOperators | None) -> dict[str, Any]:
    """Return a simulation, and the operators to keep if any, as strict JSON can hold them."""
    facts: dict[str, Any] = {
        "format": found.format.name,
        "passes": found.passes,
        "output": _loss_facts(found.output),
        "operators": [_operator_facts(each) for each in found.by_harm],
    }
    if kept is not None:
        facts["keep"] = {
            "wanted_error": kept.wanted_error,
            "reached": kept.reached,
            "passes": kept.passes,
            "output": _loss_facts(kept.output),
            "spread": [plain(error) for error in kept.spread],
            "operators": _names(kept.kept),
            "steps": [
                {
                    "added": _names(step.added),
                    "removed": _names(step.removed),
                    "output": _loss_facts(step.output),
                }
                for step in kept.steps
            ],
            "ncnn": list(ncnn_lines(kept.kept, kept.format)),
        }
    return facts


def _operator_facts(each: OperatorPrecision) -> dict[str, Any]:
    return {
        "index": each.operator.index,
        "type": each.operator.type,
        "name": each.operator.name,
        "weights": _storage_facts(each.weights),
        "outputs": _storage_facts(each.outputs),
        "alone": _loss_facts(each.alone),
        "at_output": _loss_facts(each.at_output) if each.at_output is not None else None,
        "cumulative": _loss_facts(each.cumulative),
    }


def _storage_facts(storage: Storage | None) -> dict[str, Any] | None:
    if storage is None:
        return None
    return {
        "headroom": plain(storage.headroom),
        "underflow": storage.underflow,
        "loss": _loss_facts(storage.loss),
    }


def _loss_facts(loss: Loss) -> dict[str, Any]:
    return {
        "relative": plain(loss.relative),
        "snr_db": plain(loss.snr),
        "cosine": plain(loss.cosine),
    }


def _names(labels: Sequence[OperatorLabel]) -> list[str]:
    return [label.name for label in labels]


def say_precision(found: Simulation, kept: KeptOperators | None) -> None:
    """Print the most harmful operators, the total error, and the operators to keep."""
    shown = found.by_harm[:_SHOWN]
    say_table([_HEADS, *map(_row, shown)], right={0, *range(3, len(_HEADS))})
    more = len(found.operators) - len(shown)
    if more:
        say(f"and {format_count(more, 'operator')} with smaller errors; --json lists them")
    say()
    say(f"all in {found.format.name}: the model's output is {_off(found.output)}")
    if kept is None:
        return
    for step in kept.steps[1:]:
        what = f"keep {', '.join(_names(step.added))}" if step.added else ""
        what = what or f"no longer keep {', '.join(_names(step.removed))}"
        say(f"{what}: {_off(step.output)}")
    count = format_count(len(kept.kept), "operator")
    wanted = format_brief(kept.wanted_error)
    outcome = f"within {wanted}" if kept.reached else f"more than {wanted}"
    say(f"with {count} in float32: {_off(kept.output)}, {outcome}")
    low, high = map(format_brief, kept.spread)
    say(f"sums in other orders, as in another library, give {low} … {high}: the highest counts")
    lines = ncnn_lines(kept.kept, kept.format)
    if lines:
        scaled = kept.format.is_scaled
        say(
            "comment out these lines of ncnn2table's table:" if scaled
            else "add these options to the layers of the ncnn model:"
        )  # fmt: skip
    for line in lines:
        say(f"  {line}")


def _row(each: OperatorPrecision) -> tuple[str, ...]:
    outputs, weights = each.outputs, each.weights
    headroom = outputs.headroom if outputs is not None else None
    return (
        str(each.operator.index),
        each.operator.type,
        each.operator.name,
        format_brief(headroom) if headroom is not None else "",
        f"{outputs.underflow:.1%}" if outputs is not None else "",
        format_brief(weights.loss.relative, 2) if weights is not None else "",
        format_brief(each.alone.relative, 2),
        format_brief(each.at_output.relative, 2) if each.at_output is not None else "",
        format_brief(each.cumulative.relative, 2),
    )


def _off(loss: Loss) -> str:
    relative, snr = format_brief(loss.relative, 2), format_brief(loss.snr)
    return f"off by {relative} of its largest element, {snr} dB"
