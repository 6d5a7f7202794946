"""Tool tips of boxes and edges, and the canvas's description for screen readers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.text import format_brief, format_count, format_dtype, format_duration, format_shape
from kuiper_studio.graph_view.glyphs import SPECIAL_MARKS
from kuiper_studio.graph_view.state import NONE
from kuiper_studio.item_models.comparison_rows import look_of
from kuiper_studio.item_models.statuses import STATUS_LOOKS, DisplayStatus

if TYPE_CHECKING:
    from kuiper_studio.graph_view.scene import Card
    from kuiper_studio.graph_view.state import SceneState
    from kuiper_studio.layout.groups import Group
    from kuiper_studio.session import StudioSession

__all__ = ["box_tip", "describe", "edge_tip", "group_tip"]


def box_tip(state: SceneState, session: StudioSession, box: int) -> str:
    """Return an operator's full name, type, status and, if it did not run, the reason."""
    shown = state.scene.boxes[box]
    if shown.card is not None:
        return _card_tip(state, box, shown.card)
    lines = [shown.name, f"{shown.type} · operator {shown.index}"]
    word = STATUS_LOOKS[state.shown(box)].text.lower()
    record = session.record(shown.name)
    reason = session.why_not_run(shown.name)
    if record is not None and record.seconds:
        word = f"{word} · {format_duration(record.seconds)} · {record.kernel}"
    supplied = session.supplied_text(shown.name)
    random = session.random_text(shown.name)
    dropped = _evicted_text(session, shown.operand)
    mark = state.marks.get(box)
    compared = mark.text if mark is not None else ""
    value = _value_text(state, box)
    return "\n".join(
        filter(None, (*lines, word, value, compared, random, supplied or reason, dropped))
    )


def _card_tip(state: SceneState, box: int, card: Card) -> str:
    """Return what a closed group holds, its state, and what to do with it."""
    lines = [group_tip(card.group)]
    word = STATUS_LOOKS[state.shown(box)].text.lower()
    executed = f"{int(state.executed[box])} of {format_count(card.group.size)} run"
    lines.append(" · ".join(filter(None, (word, executed))))
    if state.found is not None:
        lines.append(f"{int(state.found_counts[box])} marked by the search")
    mark = state.marks.get(box)
    lines += [_value_text(state, box), f"worst: {mark.text}" if mark is not None else ""]
    for each, count in zip(SPECIAL_MARKS, state.special_counts[:, box].tolist(), strict=True):
        lines.append(f"{each.text} in {format_count(count, 'operator')}" if count else "")
    lines.append("breakpoint inside" if box in state.breakpoints else "")
    lines.append("bookmark inside" if box in state.bookmarks else "")
    lines.append("double-click or Enter opens it")
    return "\n".join(filter(None, lines))


def group_tip(group: Group) -> str:
    """Return a group's full name and its operators."""
    lines = [
        group.name,
        f"{format_count(group.size, 'operator')}, {group.first} to {group.last}",
    ]
    if group.is_stack:
        lines.append(f"{format_count(len(group.children))} equal blocks")
    return "\n".join(lines)


def _value_text(state: SceneState, box: int) -> str:
    """Return the value that a box is coloured by; ``""`` where it is its family."""
    overlay = state.overlay
    return f"{overlay.title}: {overlay.text(box)}" if overlay is not None else ""


def _evicted_text(session: StudioSession, operand: str) -> str:
    """Return the note on an evicted value; ``""`` for a resident one or none."""
    if not session.is_evicted(operand):
        return ""
    return "evicted by the memory limit, recomputed when you look at it"


def edge_tip(state: SceneState, session: StudioSession, edge: int) -> str:
    """Return the operand of an edge, its shape and dtype, and its range if known."""
    shown = state.scene.edges[edge]
    boxes = state.scene.boxes
    metadata = session.tensors.metadata(shown.operand)
    shape = getattr(metadata, "shape", None)
    operand = session.graph.operand(shown.operand) if session.graph is not None else None
    if shape is None and operand is not None:
        shape = operand.shape
    dtype = getattr(metadata, "dtype", None)
    carried = format_dtype(dtype) if dtype is not None else shown.dtype
    carries = " ".join(filter(None, (format_shape(shape), carried)))
    lines = [
        f"operand {shown.operand}",
        carries,
        f"{boxes[shown.source].name} → {boxes[shown.target].name}",
    ]
    summary = state.summaries.get(shown.source)
    if summary is not None and boxes[shown.source].operand == shown.operand:
        if summary.low is not None and summary.high is not None:
            lines.append(
                f"range {format_brief(summary.low, 5)} … {format_brief(summary.high, 5)}"
            )
        lines.append(f"NaN {summary.nan} · Inf {summary.pinf + summary.ninf}")
    elif metadata is None:
        lines.append("not computed yet")
    row = session.comparing.rows.get(shown.operand)
    if row is not None:
        lines.append(f"beside the reference: {look_of(row).word}")
    lines.append(_evicted_text(session, shown.operand))
    if shown.count > 1:
        lines.append(f"used {format_count(shown.count, 'time')}")
    return "\n".join(filter(None, lines))


def describe(state: SceneState) -> str:
    """Return a description of the graph in a sentence or two."""
    count = state.scene.operator_count
    text = f"{format_count(count, 'operator')}, {state.count(DisplayStatus.EXECUTED)} executed."
    if state.marks:
        text += f" Beside the reference: {state.marks.count_text}."
    if state.found is not None:
        found = format_count(int(state.found_counts.sum()), "operator")
        text += f" {found} marked by the search."
    overlay = state.overlay
    if overlay is not None:
        text += f" Coloured by {overlay.title}: {overlay.range_text}."
    for name, box in (("Next", state.current), ("Selected", state.selected)):
        if box != NONE:
            shown = state.scene.boxes[box]
            if shown.card is not None:
                text += f" {name}: in {shown.name}, {shown.card.count_text}, closed."
                continue
            status = STATUS_LOOKS[state.shown(box)].text.lower()
            mark = state.marks.get(box)
            compared = f", {mark.text}" if mark is not None else ""
            value = f", {overlay.text(box)}" if overlay is not None else ""
            text += f" {name}: {shown.type} {shown.name}, {status}{compared}{value}."
    group = state.picked_group
    if group is not None:
        text += f" Selected group: {group.name}, {format_count(group.size, 'operator')}."
    return text
