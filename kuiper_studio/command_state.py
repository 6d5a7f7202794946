"""Where the window stands, as far as commands depend on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import UnsupportedOperatorError
from kuiper_studio.commands import CommandState

if TYPE_CHECKING:
    from kuiper_studio.graph_view.canvas import GraphCanvas
    from kuiper_studio.selection_history import SelectionHistory
    from kuiper_studio.session import StudioSession
    from kuiper_studio.tensor_view import TensorView

__all__ = ["command_state"]


def command_state(
    session: StudioSession, history: SelectionHistory, canvas: GraphCanvas, tensors: TensorView
) -> CommandState:
    """Return what decides which commands are enabled.

    Parameters
    ----------
    session : StudioSession
    history : SelectionHistory
    canvas : GraphCanvas
        Its groups can be opened and closed.
    tensors : TensorView
        It may show a tensor of the reference beside the model's.
    """
    selected = session.selected
    graph = session.graph
    operator = graph.operator(selected) if graph is not None and selected else None
    return CommandState(
        session.state,
        is_stepping=session.is_stepping,
        is_working=session.progress is not None,
        selected=operator is not None,
        has_output=operator is not None and bool(operator.outputs),
        has_weights=operator is not None
        and any(weight.is_stored for weight in operator.attributes.values()),
        can_supply=session.can_supply(selected),
        is_supplied=operator is not None and bool(session.supplied_text(selected)),
        lacks_layer=operator is not None
        and isinstance(operator.error, UnsupportedOperatorError),
        shows_operand=bool(session.operand),
        has_layer_files=bool(session.workspace.layer_files),
        has_pinned_kernels=session.kernels_from is not None,
        is_compared=session.comparing.comparison is not None,
        has_other_origin=any(name != selected for name in session.comparing.origins),
        has_theirs=tensors.has_theirs,
        has_worst=tensors.has_worst,
        lacks_match=bool(session.comparing.lacking),
        is_matched_by_hand=operator is not None
        and any(each.name in session.comparing.corrections for each in operator.outputs),
        can_undo_match=session.comparing.undone_corrections is not None,
        has_attention=bool(session.attentions.found),
        is_finding=session.finding.is_on or bool(session.finding.start),
        has_found=bool(session.finding.operators),
        has_bookmarks=bool(session.bookmarks.names),
        can_undo=bool(session.undoing.last),
        is_overlaid=session.overlaying.is_on,
        has_groups=canvas.has_groups,
        is_grouped=canvas.is_grouped,
        can_open_group=canvas.can_open_group,
        can_close_group=canvas.can_close_group,
        can_go_back=history.can_go_back,
        can_go_forward=history.can_go_forward,
    )
