"""Every command of the window, one row each.

Menus, tool bar, context menus, shortcuts, command palette and tests are built from the rows.
An action's objectName is its command's id. To add a command, add a row, and the method that it
calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from PySide6.QtGui import QAction

from kuiper_studio.conditions import Condition, enable, need
from kuiper_studio.icons import icon
from kuiper_studio.keymap import Keymap, native_key, set_keys
from kuiper_studio.menus import make_menu
from kuiper_studio.session import RunState
from kuiper_studio.surfaces import Command, Place, Submenu, Surface, entries, fill_menu

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtCore import QObject, QPoint
    from PySide6.QtWidgets import QMenu, QWidget

    from kuiper_studio.theme import Theme

__all__ = ["COMMANDS", "SUBMENUS", "CommandState", "Commands", "make_actions"]


# When a command is enabled


@dataclass(frozen=True, slots=True)
class CommandState:
    """State that decides which commands are enabled, and which a context menu shows.

    Attributes
    ----------
    run : RunState
    is_stepping : bool
        Whether single steps are under way and nothing else.
    is_working : bool
        Whether the engine does something long that is no run, such as a comparison.
    selected : bool
        Whether an operator is selected; the next six are about that operator.
    has_output, has_weights : bool
    can_supply : bool
        Whether its output may be supplied.
    is_supplied : bool
        Whether its output is supplied.
    lacks_layer : bool
        Whether it cannot run because there is no layer for its type.
    shows_operand : bool
        Whether the tensor view follows an operand: of the selected operator, or of another.
    has_layer_files : bool
        Whether layers of the user are loaded.
    has_pinned_kernels : bool
        Whether the kernels of a dump are in use.
    is_compared, has_other_origin : bool
        Whether there is a comparison with a reference, and whether it has an origin that is
        not selected.
    has_theirs, has_worst : bool
        Whether the shown tensor is compared with one of the reference, and whether an element
        of it differs most from that.
    lacks_match : bool
        Whether an operand of the model has no tensor of the reference.
    is_matched_by_hand, can_undo_match : bool
        Whether an output of the selected operator is matched by hand, and whether the last
        such match can be undone.
    has_attention : bool
        Whether the model has an attention that is known.
    is_finding, has_found : bool
        Whether something is looked for, and whether operators were found.
    has_bookmarks : bool
    can_undo : bool
        Whether a change of bookmarks or breakpoints can be undone.
    is_overlaid : bool
        Whether operators are coloured by a quantity.
    has_groups, is_grouped : bool
        Whether the graph has groups, and whether they are shown.
    can_open_group, can_close_group : bool
        Whether a closed group is selected, and whether an open one is around the selection.
    can_go_back, can_go_forward : bool
        Whether another operator was selected before the present one, or before going back.
    """

    run: RunState
    is_stepping: bool = False
    is_working: bool = False
    selected: bool = False
    has_output: bool = False
    has_weights: bool = False
    can_supply: bool = False
    is_supplied: bool = False
    lacks_layer: bool = False
    shows_operand: bool = False
    has_layer_files: bool = False
    has_pinned_kernels: bool = False
    is_compared: bool = False
    has_other_origin: bool = False
    has_theirs: bool = False
    has_worst: bool = False
    lacks_match: bool = False
    is_matched_by_hand: bool = False
    can_undo_match: bool = False
    has_attention: bool = False
    is_finding: bool = False
    has_found: bool = False
    has_bookmarks: bool = False
    can_undo: bool = False
    is_overlaid: bool = False
    has_groups: bool = False
    is_grouped: bool = False
    can_open_group: bool = False
    can_close_group: bool = False
    can_go_back: bool = False
    can_go_forward: bool = False


def _run_is_not(missing: str, *states: RunState) -> Condition[CommandState]:
    """Return the condition that the run is in none of some states."""
    return need(lambda state: state.run not in states, missing)


def _has(name: str, missing: str) -> Condition[CommandState]:
    """Return the condition that an attribute of the state is true."""
    return need(attrgetter(name), missing)


def _runs_at_most_steps(state: CommandState) -> bool:
    return state.run is not RunState.RUNNING or state.is_stepping


def _is_at_leisure(state: CommandState) -> bool:
    return not state.is_working


def _has_unmatched(state: CommandState) -> bool:
    return state.has_output or state.lacks_match


_closable: Final = _run_is_not("no model is open", RunState.EMPTY)
_not_loading: Final = _run_is_not("the model is still being opened", RunState.LOADING)
_idle: Final = _run_is_not("the model is running", RunState.RUNNING)
_open: Final = _closable & _not_loading
_at_rest: Final = _open & _idle
_fed: Final = _run_is_not("the model has no input yet: File → Open input…", RunState.NEED_INPUT)
_begun: Final = _run_is_not("no operator has run yet", RunState.READY)
_not_failed: Final = _run_is_not(
    "an operator has failed: step back, or restart", RunState.FAILED
)
_not_finished: Final = _run_is_not(
    "the run is finished: step back, or restart", RunState.FINISHED
)
_free: Final = need(
    _is_at_leisure,
    "something else is still going on: wait for it, or cancel it in the status bar",
)
# Without an input a run asks for one.
_can_step: Final = (
    _open & need(_runs_at_most_steps, "the model is running") & _not_failed & _not_finished
)
_stoppable: Final = _open & _fed & _begun
_started: Final = _stoppable & _idle
_checkable_now: Final = _at_rest & _fed & _free

_compared: Final = _has("is_compared", "there is no comparison yet: Analyse → Compare…")
_is_compared: Final = _at_rest & _compared
_has_other_origin: Final = _compared & _has(
    "has_other_origin", "no other operator is the origin of a difference"
)
_has_theirs: Final = _is_compared & _has(
    "has_theirs", "the reference has no tensor that is compared with the shown one"
)
_has_worst: Final = _is_compared & _has(
    "has_worst", "the shown tensor has no element to compare with the reference's"
)
_selected: Final = _open & _has("selected", "no operator is selected")
_with_output: Final = _has("has_output", "the selected operator has no output")
_can_report: Final = _is_compared & _free
_can_match: Final = _can_report & _with_output
_can_match_any: Final = _can_report & need(_has_unmatched, "every operand is matched")
_is_matched_by_hand: Final = _can_match & _has(
    "is_matched_by_hand", "no output of the selected operator is matched by hand"
)
_can_undo_match: Final = _can_report & _has(
    "can_undo_match", "there is no match by hand to undo"
)
_can_extract: Final = _checkable_now & _selected
_can_run_to: Final = _selected & _idle & _not_failed
_has_output: Final = _selected & _with_output
_shows_operand: Final = _open & _has("shows_operand", "the tensor view shows no operand")
_has_weights: Final = _selected & _has("has_weights", "the selected operator has no weights")
_can_supply: Final = (
    _at_rest
    & _free
    & _selected
    & _has("can_supply", "the output of the selected operator cannot be supplied")
)
_is_supplied: Final = (
    _at_rest
    & _free
    & _selected
    & _has("is_supplied", "no output is supplied for the selected operator")
)
_lacks_layer: Final = _has("lacks_layer", "the selected operator has a layer")
_has_layer_files: Final = _has("has_layer_files", "no file of layers is loaded")
_has_attention: Final = _open & _has("has_attention", "no attention was found in this model")
_has_pinned_kernels: Final = _has("has_pinned_kernels", "no kernels of a dump are used")
_is_finding: Final = _open & _has("is_finding", "no operators are marked")
_has_found: Final = _open & _has("has_found", "nothing was looked for, or nothing found")
_has_bookmarks: Final = _open & _has("has_bookmarks", "this model has no bookmarks")
_can_undo: Final = _open & _has("can_undo", "no bookmark or breakpoint was changed")
_is_overlaid: Final = _open & _has(
    "is_overlaid", "operators are not coloured by a quantity: View → Colour by"
)
_has_groups: Final = _open & _has("has_groups", "this graph has no groups")
_is_grouped: Final = _open & _has("is_grouped", "the graph shows no groups")
_can_open_group: Final = _open & _has("can_open_group", "no closed group is selected")
_can_close_group: Final = _open & _has(
    "can_close_group", "no open group is around what is selected"
)
_can_go_back: Final = _open & _has("can_go_back", "nothing was selected before")
_can_go_forward: Final = _open & _has(
    "can_go_forward", "nothing was selected after: the selection did not go back"
)


_S: Final = Surface

COMMANDS: Final[tuple[Command[CommandState], ...]] = (
    Command("file.open", "&Open…", "Open a .param, .bin, .pt or .onnx", "opening.choose_model",
            (Place(_S.FILE, 1), Place(_S.TOOL_BAR, 1, with_text=True)), ("Ctrl+O",), "open"),
    Command("file.openSample", "Open &sample", "Open the sample model with its input",
            "opening.open_default_sample", (Place(_S.FILE, 1),)),
    Command("file.openInput", "Open &input…", "Choose the image or array to feed",
            "opening.choose_input", (Place(_S.FILE, 2),), ("Ctrl+I",), "image", _open),
    Command("file.openLabels", "Open &labels…",
            "Choose a text file with one class name per line", "opening.choose_labels",
            (Place(_S.FILE, 2),), enabled=_open),
    Command("file.loadLayers", "Load la&yers…", "Run a Python file with your own layers",
            "opening.choose_layers",
            (Place(_S.FILE, 3), Place(_S.GRAPH_OPERATOR, 3, 1, only_if=_lacks_layer)),
            icon="layers", enabled=_not_loading),
    Command("file.unloadLayers", "&Unload layers",
            "Use only the built-in layers again, as before a file of layers was run",
            "session.unload_layers", (Place(_S.FILE, 3, 2),), enabled=_has_layer_files),
    Command("file.exportDump", "Export &dump…", "Write every operator's tensors to files",
            "exporting.export_dump", (Place(_S.FILE, 4), Place(_S.GRAPH_OPERATOR, 2, 1)),
            ("Ctrl+E",), "export", _open),
    Command("file.exportPicture", "Export tensor as &picture…",
            "Save what the tensor view shows, for a report or an issue",
            "exporting.export_picture", (Place(_S.FILE, 4),), enabled=_open),
    Command("file.exportGraph", "Export &graph as picture…",
            "Save the whole graph as SVG, PNG or PDF", "exporting.export_graph",
            (Place(_S.FILE, 4), Place(_S.GRAPH, 1, 1)), ("Ctrl+Shift+E",), enabled=_open),
    Command("file.reload", "&Reload model",
            "Open the model and the layer files again, and run to the current operator",
            "session.reload", (Place(_S.FILE, 5),), ("Ctrl+R",), enabled=_open),
    Command("file.close", "&Close model", "Close the model", "session.close_model",
            (Place(_S.FILE, 5),), ("Ctrl+W",), enabled=_closable),
    Command("file.quit", "&Quit", "Close the window", "close", (Place(_S.FILE, 6),),
            ("Ctrl+Q",)),
    Command("file.clearRecent", "&Clear recent models", "Empty the list of recent models",
            "opening.recent_models.clear", (Place(_S.RECENT_MODELS),)),
    Command("file.clearRecentLayers", "&Clear recent layers",
            "Empty the list of recent layer files",
            "opening.recent_layers.clear", (Place(_S.RECENT_LAYERS),)),
    Command("edit.undo", "&Undo",
            "Undo the last change of bookmarks or breakpoints, also that all were removed",
            "finding.undo", (Place(_S.EDIT, 0),), ("Ctrl+Z",), enabled=_can_undo),
    Command("edit.find", "&Find…",
            "Find operators by name, type, shape, dtype, parameter, weight or value",
            "finding.find", (Place(_S.EDIT, 1), Place(_S.GRAPH, 2)), ("Ctrl+F",), "search",
            _open),
    Command("edit.findNext", "Find ne&xt", "Select the next operator that was found",
            "session.find_next", (Place(_S.EDIT, 1),), ("F3",), "chevron-down", _has_found),
    Command("edit.findPrevious", "Find pre&vious",
            "Select the previous operator that was found", "session.find_previous",
            (Place(_S.EDIT, 1),), ("Shift+F3",), "chevron-up", _has_found),
    Command("edit.markUpstream", "Mark up&stream",
            "Mark all that the selected operator depends on: where its numbers come from",
            "finding.mark_upstream",
            (Place(_S.EDIT, 2), Place(_S.GRAPH_OPERATOR, 2, 3), Place(_S.OPERATORS, 2, 3)),
            ("Ctrl+Shift+Left",), enabled=_selected),
    Command("edit.markDownstream", "Mark &downstream",
            "Mark all that depend on the selected operator: what a change here would reach",
            "finding.mark_downstream",
            (Place(_S.EDIT, 2), Place(_S.GRAPH_OPERATOR, 2, 3), Place(_S.OPERATORS, 2, 3)),
            ("Ctrl+Shift+Right",), enabled=_selected),
    Command("edit.markPaths", "Mark p&aths",
            "Mark the paths between the two operators selected in the list, or from the "
            "selected one to the next that you select", "finding.mark_paths",
            (Place(_S.EDIT, 2), Place(_S.GRAPH_OPERATOR, 2, 3), Place(_S.OPERATORS, 2, 3)),
            ("Ctrl+Shift+H",), enabled=_selected),
    Command("edit.clearMarks", "C&lear marks",
            "Mark no operators any more; Esc does the same", "finding.clear",
            (Place(_S.EDIT, 2), Place(_S.GRAPH, 2, only_if=_is_finding)), icon="clear",
            enabled=_is_finding),
    Command("edit.toggleBookmark", "Toggle &bookmark",
            "Set or remove the selected operator's bookmark, to come back to it by one key",
            "finding.toggle_bookmark",
            (Place(_S.EDIT, 3), Place(_S.GRAPH_OPERATOR, 1, 1), Place(_S.OPERATORS, 1, 1)),
            ("Ctrl+B",), "bookmark", _selected),
    Command("edit.nextBookmark", "Next b&ookmark", "Select the next bookmarked operator",
            "finding.next_bookmark", (Place(_S.EDIT, 3),), ("F2",), enabled=_has_bookmarks),
    Command("edit.previousBookmark", "Previous bookmark",
            "Select the previous bookmarked operator", "finding.previous_bookmark",
            (Place(_S.EDIT, 3),), ("Shift+F2",), enabled=_has_bookmarks),
    *(
        Command(f"edit.goToBookmark{number}", f"Go to bookmark {number}",
                f"Select bookmark {number} in execution order", "finding.go_to_bookmark",
                (Place(_S.BOOKMARKS),), (f"Ctrl+{number % 10}",), enabled=_has_bookmarks,
                argument=number)
        for number in range(1, 11)
    ),
    Command("edit.clearBookmarks", "Remove all bookmarks",
            "Remove the bookmarks of this model", "session.bookmarks.clear",
            (Place(_S.EDIT, 3, 2),), enabled=_has_bookmarks),
    Command("edit.filter", "F&ilter list",
            "Filter the list of operators, such as type:Conv ms>1", "filter_operators",
            (Place(_S.EDIT, 4),), ("Ctrl+Shift+F",), "filter", _open),
    Command("edit.filterByType", "Filter by this &type",
            "List the operators of the selected operator's type",
            "operators_panel.filter_by_type", (Place(_S.EDIT, 4), Place(_S.OPERATORS, 2, 1)),
            icon="filter", enabled=_selected),
    Command("edit.copy", "&Copy",
            "Copy the focused value, line or text, or else the selected "
            "operator's line", "copy", (Place(_S.EDIT, 5),), ("Ctrl+C",), "copy", _open),
    Command("edit.copyName", "Copy &name",
            "Copy the selected operator's name, as scripts and the command line take it",
            "operators_panel.copy_name", (Place(_S.EDIT, 5), Place(_S.OPERATORS, 2)),
            icon="copy", enabled=_selected),
    Command("edit.copyType", "Copy t&ype", "Copy the selected operator's type, to look it up",
            "operators_panel.copy_type", (Place(_S.EDIT, 5), Place(_S.OPERATORS, 2)),
            enabled=_selected),
    Command("view.commandPalette", "Co&mmand palette…",
            "Search operators and run a command by a few letters of its name",
            "show_palette", (Place(_S.EDIT, 6),), ("Ctrl+Shift+P",), "search"),
    Command("edit.preferences", "P&references…",
            "Theme, backend, memory, random seed and exports", "preferences.ask",
            (Place(_S.EDIT, 7),), ("Ctrl+,",), enabled=_not_loading),
    Command("view.resetLayout", "&Reset layout",
            "Move the docks back to their places, when one is lost or in the way",
            "reset_layout", (Place(_S.VIEW, 1),), enabled=_open),
    Command("view.fit", "&Fit graph", "Show the whole graph", "graph_view.fit",
            (Place(_S.VIEW, 2), Place(_S.GRAPH)), icon="fit", enabled=_open),
    Command("view.zoomIn", "Zoom &in", "Enlarge the graph", "graph_view.zoom_in",
            (Place(_S.VIEW, 2),), ("Ctrl+=", "Ctrl++"), "plus", _open),
    Command("view.zoomOut", "Zoom &out", "Shrink the graph", "graph_view.zoom_out",
            (Place(_S.VIEW, 2),), ("Ctrl+-",), "minus", _open),
    Command("view.zoomReset", "&100 %",
            "Show the graph at 100 %, where boxes have ranges and pictures",
            "graph_view.zoom_reset", (Place(_S.VIEW, 2), Place(_S.GRAPH)), ("Ctrl+Home",),
            enabled=_open),
    Command("view.orientation", "Change orient&ation",
            "Lay the graph out left-right or top-down, whichever fits the pane",
            "graph_view.turn_orientation",
            (Place(_S.VIEW, 2), Place(_S.GRAPH)), ("Ctrl+K",), enabled=_open),
    Command("view.legend", "Le&gend", "Explain the marks and colours of the graph, below it",
            "toggle_legend", (Place(_S.VIEW, 2), Place(_S.GRAPH)), enabled=_open,
            checkable=True),
    Command("view.groups", "&Show groups",
            "Show modules and equal blocks as one box each, or every operator",
            "grouping.toggle", (Place(_S.GROUPS, 1),), ("Ctrl+Shift+G",), enabled=_has_groups,
            checkable=True),
    Command("view.openGroup", "&Open group",
            "Show what is in the selected group, in its place; a double-click does too",
            "grouping.open", (Place(_S.GROUPS, 2), Place(_S.GRAPH, 3, only_if=_can_open_group)),
            ("Return",), "plus", _can_open_group, key_elsewhere=True),
    Command("view.closeGroup", "&Close group",
            "Close the group around what is selected: it is one box again",
            "grouping.close",
            (Place(_S.GROUPS, 2), Place(_S.GRAPH, 3, only_if=_can_close_group),
             Place(_S.GRAPH_OPERATOR, 2, 4, only_if=_can_close_group)),
            ("Backspace",), "minus", _can_close_group, key_elsewhere=True),
    Command("view.openAllGroups", "Open &all groups",
            "Show every operator, in the frames of its groups", "grouping.open_all",
            (Place(_S.GROUPS, 3),), enabled=_is_grouped),
    Command("view.closeAllGroups", "C&lose all groups",
            "Show only the outermost groups, to see the whole model again",
            "grouping.close_all", (Place(_S.GROUPS, 3),), enabled=_is_grouped),
    Command("view.colorByFamily", "&Family", "Colour operators by what they do",
            "overlaying.by_family", (Place(_S.COLOR_BY, 1),), enabled=_open, checkable=True),
    Command("view.colorByTime", "&Time",
            "Colour operators by their time in this run, to find the slow ones",
            "overlaying.by_time", (Place(_S.COLOR_BY, 2),), enabled=_open, checkable=True),
    Command("view.colorByMacs", "&Multiply-accumulates",
            "Colour operators by their multiply-accumulates: where the arithmetic is",
            "overlaying.by_macs",
            (Place(_S.COLOR_BY, 2),), enabled=_open, checkable=True),
    Command("view.colorByMemory", "Memory of &outputs",
            "Colour operators by the bytes of their outputs: where memory goes",
            "overlaying.by_memory",
            (Place(_S.COLOR_BY, 2),), enabled=_open, checkable=True),
    Command("view.colorByWeights", "&Weights",
            "Colour operators by the bytes of their weights: where the file is large",
            "overlaying.by_weights", (Place(_S.COLOR_BY, 2),), enabled=_open, checkable=True),
    Command("view.colorByZeros", "&Zeros",
            "Colour operators by the share of zeros in their outputs", "overlaying.by_zeros",
            (Place(_S.COLOR_BY, 3),), enabled=_open, checkable=True),
    Command("view.colorByLargest", "&Largest magnitude",
            "Colour operators by the largest absolute value of their outputs",
            "overlaying.by_largest", (Place(_S.COLOR_BY, 3),), enabled=_open, checkable=True),
    Command("view.colorByNonfinite", "&NaN and Inf",
            "Colour operators by whether their outputs have NaN or infinities",
            "overlaying.by_nonfinite", (Place(_S.COLOR_BY, 3),), enabled=_open, checkable=True),
    Command("view.colorByError", "&Difference",
            "Colour operators by how far they are from the reference", "overlaying.by_error",
            (Place(_S.COLOR_BY, 4),), enabled=_open, checkable=True),
    Command("view.colorByOwn", "Own n&umbers…",
            "Colour operators by numbers of a CSV or JSON file", "overlaying.by_own",
            (Place(_S.COLOR_BY, 4),), enabled=_open, checkable=True),
    Command("view.mostValue", "Go to the mo&st",
            "Select the operator with the largest value of what operators are coloured by",
            "overlaying.go_to_most", (Place(_S.COLOR_BY, 5),), ("Ctrl+M",),
            enabled=_is_overlaid),
    Command("view.nextValue", "Go to the ne&xt most",
            "Select the operator with the next smaller value of what the graph is coloured by",
            "overlaying.go_to_next_most",
            (Place(_S.COLOR_BY, 5),), ("Ctrl+Shift+M",), enabled=_is_overlaid),
    Command("view.centerCurrent", "Go to &next operator",
            "Centre the operator that runs next", "center_current",
            (Place(_S.VIEW, 4), Place(_S.GRAPH_OPERATOR, 2)), ("Ctrl+J",), "target", _open),
    Command("view.back", "Selection &back", "Select the operator that was selected before",
            "history.go_back", (Place(_S.VIEW, 4),), ("Alt+Left",), "chevron-left",
            _can_go_back),
    Command("view.forward", "Selection for&ward",
            "Select the operator that was selected before going back", "history.go_forward",
            (Place(_S.VIEW, 4),), ("Alt+Right",), "chevron-right", _can_go_forward),
    Command("view.sortByTime", "Sort operators by ti&me",
            "List the slowest operators first, or all in execution order again",
            "operators_panel.toggle_sort_by_time",
            (Place(_S.VIEW, 4), Place(_S.OPERATORS, 2, 2)), icon="histogram", enabled=_open),
    Command("view.showOutput", "Show o&utput",
            "Show the selected operator's first output in the tensor view",
            "operators_panel.show_output", (Place(_S.VIEW, 4), Place(_S.OPERATORS, 1, 1)),
            icon="image", enabled=_has_output),
    Command("view.nextPane", "Next &pane",
            "Move the focus to the next part of the window, without the mouse",
            "next_pane", (Place(_S.VIEW, 5),), ("F6",), enabled=_open),
    Command("view.previousPane", "Pre&vious pane",
            "Move the focus to the previous part of the window", "previous_pane",
            (Place(_S.VIEW, 5),), ("Shift+F6",), enabled=_open),
    Command("view.showWeight", "S&how weight in tensor view",
            "Show the selected operator's largest weight, or the focused one",
            "properties_panel.show_weight",
            (Place(_S.VIEW, 4), Place(_S.GRAPH_OPERATOR, 2, 2, only_if=_has_weights),
             Place(_S.OPERATORS, 1, 1, only_if=_has_weights)),
            icon="grid", enabled=_has_weights),
    Command("view.themeSystem", "&System theme", "Follow the desktop's theme",
            "preferences.use_system_theme", (Place(_S.VIEW, 6),), checkable=True),
    Command("view.themeLight", "&Light theme", "Use the light theme",
            "preferences.use_light_theme", (Place(_S.VIEW, 6),), checkable=True),
    Command("view.themeDark", "&Dark theme", "Use the dark theme",
            "preferences.use_dark_theme", (Place(_S.VIEW, 6),), checkable=True),
    Command("view.toggleTheme", "Switch &theme", "Switch between light and dark",
            "preferences.toggle_theme", (Place(_S.VIEW, 6), Place(_S.TOOL_BAR_END)),
            ("Ctrl+Shift+T",), "theme"),
    Command("view.fullScreen", "Full s&creen", "Use the whole screen", "toggle_full_screen",
            (Place(_S.VIEW, 7),), ("Shift+Alt+Return",), checkable=True),
    Command("debug.continue", "&Continue", "Run to the next breakpoint or the end",
            "session.resume", (Place(_S.DEBUG, 1), Place(_S.TOOL_BAR, 2, 1, with_text=True)),
            ("F5",), "continue", _can_step),
    Command("debug.step", "&Step",
            "Run one operator, and show what it computed", "session.step",
            (Place(_S.DEBUG, 1), Place(_S.TOOL_BAR, 2, with_text=True)), ("F10",), "step",
            _can_step),
    Command("debug.stepBack", "Step &back",
            "Undo the last step, to look at it once more", "session.step_back",
            (Place(_S.DEBUG, 1), Place(_S.TOOL_BAR, 2, -1)), ("F8", "Alt+["), "step-back",
            _started),
    Command("debug.runToSelected", "Run &to selected",
            "Run up to the selected operator, and stop before it", "debugging.run_to_selected",
            (Place(_S.DEBUG, 1), Place(_S.TOOL_BAR, 2, 2), Place(_S.GRAPH_OPERATOR),
             Place(_S.OPERATORS), Place(_S.TIMELINE)), ("Ctrl+F10",), "run-to", _can_run_to),
    Command("debug.restart", "&Restart",
            "Go to the first operator; the input and overrides stay", "session.restart",
            (Place(_S.DEBUG, 2), Place(_S.TOOL_BAR, 2, -2)), ("Ctrl+Shift+F5",), "restart",
            _stoppable),
    Command("debug.stop", "St&op", "Stop running; when stopped, go to the start",
            "session.stop", (Place(_S.DEBUG, 2), Place(_S.TOOL_BAR, 2, 3)), ("Shift+F5",),
            "stop", _stoppable),
    Command("debug.toggleBreakpoint", "To&ggle breakpoint",
            "Set or clear the selected operator's breakpoint: runs stop before it",
            "debugging.toggle_breakpoint",
            (Place(_S.DEBUG, 3), Place(_S.TOOL_BAR, 3), Place(_S.GRAPH_OPERATOR),
             Place(_S.OPERATORS), Place(_S.TIMELINE)), ("F9",), "breakpoint", _selected,
            icon_color="bp"),
    Command("debug.clearBreakpoints", "&Delete all breakpoints", "Delete every breakpoint",
            "session.clear_breakpoints", (Place(_S.DEBUG, 3),), ("Ctrl+Shift+F9",),
            enabled=_open),
    Command("debug.supplyOutput", "S&upply output…",
            "Use a .npy or .npz file as the selected operator's output",
            "debugging.supply_selected",
            (Place(_S.DEBUG, 4), Place(_S.GRAPH_OPERATOR, 3), Place(_S.OPERATORS, 1, 2)),
            icon="supply", enabled=_can_supply),
    Command("debug.withdrawOutput", "&Withdraw supplied output",
            "Compute the selected operator again", "debugging.withdraw_selected",
            (Place(_S.DEBUG, 4), Place(_S.GRAPH_OPERATOR, 3),
             Place(_S.OPERATORS, 1, 3, only_if=_is_supplied)), enabled=_is_supplied),
    Command("debug.seed", "R&andom seed…",
            "Set the random seed; the same seed gives the same numbers",
            "debugging.choose_seed",
            (Place(_S.DEBUG, 4),), icon="dice", enabled=_at_rest),
    Command("debug.memoryLimit", "&Memory…",
            "Limit the memory of values, for models that are larger than this machine",
            "debugging.choose_memory_limit", (Place(_S.DEBUG, 4),), icon="layers"),
    Command("debug.useKernels", "Use ker&nels of a dump…",
            "Use the kernels of an earlier dump, to get the same numbers again",
            "debugging.choose_kernels", (Place(_S.DEBUG, 5),), icon="pin", enabled=_at_rest),
    Command("debug.forgetKernels", "&Forget kernels of the dump",
            "Use the chosen backend again", "session.forget_kernels",
            (Place(_S.DEBUG, 5),), enabled=_has_pinned_kernels),
    Command("debug.selfCheck", "Self-chec&k…",
            "Compare every backend with NumPy, operator by operator",
            "session.studies.self_check",
            (Place(_S.DEBUG, 5),), enabled=_checkable_now),
    Command("debug.previousOperator", "Show &previous operator",
            "Select the operator before in execution order; nothing runs",
            "debugging.select_previous", (Place(_S.DEBUG, 6),),
            ("Ctrl+Left",), enabled=_open),
    Command("debug.nextOperator", "Show ne&xt operator",
            "Select the operator after in execution order; nothing runs",
            "debugging.select_next", (Place(_S.DEBUG, 6),), ("Ctrl+Right",), enabled=_open),
    Command("analyse.compare", "&Compare…",
            "Compare every operand with a reference: a dump, a recording or another model",
            "analysing.compare", (Place(_S.ANALYSE, 1),), icon="compare",
            enabled=_checkable_now),
    Command("analyse.nextOrigin", "&Next origin",
            "Select the next operator where a difference begins", "analysing.next_origin",
            (Place(_S.ANALYSE, 2),), ("F4",), enabled=_has_other_origin),
    Command("analyse.previousOrigin", "&Previous origin",
            "Select the previous operator where a difference begins",
            "analysing.previous_origin", (Place(_S.ANALYSE, 2),), ("Shift+F4",),
            enabled=_has_other_origin),
    Command("analyse.explain", "Where &does this number come from?",
            "Break the picked element down to the numbers that made it",
            "explain_element", (Place(_S.ANALYSE, 6),), ("P",), "target",
            _shows_operand),
    Command("analyse.history", "His&tory of this place",
            "Follow the place of the picked element through all operators",
            "trace_element", (Place(_S.ANALYSE, 6),), ("Shift+P",), enabled=_shows_operand),
    Command("analyse.overlay", "&Over the input",
            "Show the channel, or its error, see-through over the input picture",
            "show_overlay", (Place(_S.ANALYSE, 6),), ("Shift+O",), enabled=_shows_operand),
    Command("analyse.flicker", "&Flicker with reference",
            "Switch between the model's tensor and the reference's", "tensor_view.flicker",
            (Place(_S.ANALYSE, 2),), ("V",), enabled=_has_theirs),
    Command("analyse.worstElement", "Go to &worst element",
            "Pick the element that differs most, to see where in the tensor it is",
            "tensor_view.show_worst",
            (Place(_S.ANALYSE, 2), Place(_S.COMPARISON, 1)), ("Shift+V",),
            enabled=_has_worst),
    Command("analyse.matchByHand", "&Match by hand…",
            "Choose the reference's tensor that belongs to the selected operator",
            "analysing.match_by_hand",
            (Place(_S.ANALYSE, 3), Place(_S.COMPARISON, 2),
             Place(_S.GRAPH_OPERATOR, 4, only_if=_can_match),
             Place(_S.OPERATORS, 3, only_if=_can_match)), enabled=_can_match_any),
    Command("analyse.removeMatch", "Remove match by &hand",
            "Match the selected operator as if no hand had", "analysing.remove_match",
            (Place(_S.ANALYSE, 3), Place(_S.COMPARISON, 2)), enabled=_is_matched_by_hand),
    Command("analyse.undoMatch", "&Undo match by hand",
            "Undo the last match by hand, or its removal", "session.studies.undo_match",
            (Place(_S.ANALYSE, 3), Place(_S.COMPARISON, 2)), enabled=_can_undo_match),
    Command("analyse.report", "Save &report…",
            "Write the comparison as an HTML page, to send to somebody",
            "analysing.write_report", (Place(_S.ANALYSE, 5),), icon="save",
            enabled=_can_report),
    Command("analyse.extract", "&Extract operators…",
            "Write the selected operators as a model of their own, with data and a check",
            "analysing.extract",
            (Place(_S.ANALYSE, 4), Place(_S.COMPARISON, 3), Place(_S.GRAPH_OPERATOR, 4),
             Place(_S.OPERATORS, 3)), icon="export", enabled=_can_extract),
    Command("analyse.precision", "Prec&ision…",
            "Simulate storing weights and outputs in float16, bfloat16 or int8",
            "analysing.simulate_precision", (Place(_S.ANALYSE, 4),),
            enabled=_checkable_now),
    Command("analyse.attention", "&Attention",
            "Show the heads of an attention, and where a query looks", "show_attention",
            (Place(_S.ANALYSE, 4),), enabled=_has_attention),
    Command("analyse.output", "What the output mean&s",
            "Show what the output means: classes, boxes, a segmentation, a picture",
            "show_output", (Place(_S.ANALYSE, 4),), enabled=_open),
    Command("analyse.dataSet", "Data set…",
            "Run a data set through the model, or open what one held: ranges, dead channels",
            "sweeping.ask", (Place(_S.ANALYSE, 4),), enabled=_open),
    Command("analyse.clear", "C&lear comparison", "Remove the comparison and its marks",
            "session.comparing.clear", (Place(_S.ANALYSE, 5),), enabled=_is_compared),
    Command("help.operator", "What is this &operator?", "Explain the selected operator's type",
            "explain_operator", (Place(_S.HELP, 1), Place(_S.GRAPH_OPERATOR, 5)), ("F1",),
            "help", _selected),
    Command("help.shortcuts", "&Keyboard shortcuts",
            "All shortcuts on one sheet, with a box to search them",
            "show_shortcuts", (Place(_S.HELP, 2),), ("?",), "keyboard"),
    Command("help.about", "&About Kuiper Studio", "Version and licences", "show_about",
            (Place(_S.HELP, 2),), icon="info"),
)  # fmt: skip

SUBMENUS: Final = (
    Submenu("opening.fill_recent_models", Place(_S.FILE, 1, 1), "Open r&ecent"),
    Submenu("opening.fill_recent_layers", Place(_S.FILE, 3, 1), "Recent layer &files"),
    Submenu("finding.fill_bookmarks", Place(_S.EDIT, 3, 1), "Boo&kmarks"),
    Submenu("overlaying.fill_menu", Place(_S.VIEW, 3), "Colour b&y"),
    Submenu("overlaying.fill_menu", Place(_S.GRAPH), "Colour b&y"),
    Submenu("grouping.fill_menu", Place(_S.VIEW, 3), "Groups and bloc&ks"),
    Submenu("grouping.fill_menu", Place(_S.GRAPH), "Groups and bloc&ks"),
    Submenu("fill_docks", Place(_S.VIEW, 1, -1), "Pan&els"),
    Submenu("tensor_view.fill_menu", Place(_S.TENSOR)),
)


def make_actions(parent: QObject, theme: Theme) -> dict[str, QAction]:
    """Build the actions of all commands, by id."""
    return {command.id: _make_action(command, parent, theme) for command in COMMANDS}


def _make_action(command: Command[CommandState], parent: QObject, theme: Theme) -> QAction:
    action = QAction(command.text, parent)
    action.setObjectName(command.id)
    set_keys(action, command, Keymap())
    action.setStatusTip(command.tip)
    action.setCheckable(command.checkable)
    if command.icon:
        action.setIcon(icon(command.icon, theme, command.icon_color))
    return action


class Commands:
    """The actions of all commands: connects them to methods, and enables them.

    Parameters
    ----------
    window : QWidget
        The paths of `Command.calls` and `Submenu.fills` begin at it.
    theme : Theme

    Attributes
    ----------
    actions : dict of str to QAction
        By id.
    state : CommandState
        By which the actions are enabled now.
    keymap : Keymap
        What keys they have.
    """

    def __init__(self, window: QWidget, theme: Theme) -> None:
        self._window = window
        self.actions = make_actions(window, theme)
        self.state: CommandState | None = None
        self.keymap = Keymap()
        window.addActions(list(self.actions.values()))

    def connect_all(self) -> None:
        """Connect each action to its method; call this when the window is complete.

        Raises
        ------
        AttributeError
            If a row names a method that does not exist.
        """
        for command in COMMANDS:
            handler = attrgetter(command.calls)(self._window)
            if command.argument is not None:
                handler = partial(handler, command.argument)
            self.actions[command.id].triggered.connect(_without_argument(handler))

    def use_keys(self, keymap: Keymap) -> None:
        """Give the actions other keys."""
        if keymap == self.keymap:
            return
        self.keymap = keymap
        for command in COMMANDS:
            set_keys(self.actions[command.id], command, keymap)

    @property
    def shown_keys(self) -> dict[str, str]:
        """The key that is shown for each command, by id; ``""`` for none."""
        return {each.id: native_key(self.keymap.keys_of(each)) for each in COMMANDS}

    @property
    def field_keys(self) -> frozenset[str]:
        """Keys that a text field would take; it keeps the one that undoes typing."""
        keys = (key for command in COMMANDS for key in self.keymap.keys_of(command))
        return frozenset(
            key
            for key in keys
            if key.startswith("Ctrl+")
            and len(key) == len("Ctrl+E")
            and key[-1].isalpha()
            and key != "Ctrl+Z"
        )

    def update(self, state: CommandState) -> None:
        """Enable the commands that are possible now."""
        if state == self.state:
            return
        self.state = state
        for command in COMMANDS:
            # Qt signals only changes, each to all menus, bars and buttons.
            enable(self.actions[command.id], command.enabled.missing(state))

    def fill(self, menu: QMenu, surface: Surface) -> None:
        """Add the entries of a surface to a menu.

        Those whose `Place.only_if` does not hold are left out.
        """
        shown = [
            (place, entry)
            for place, entry in entries(surface, COMMANDS, SUBMENUS)
            if self.state is None or place.only_if(self.state)
        ]
        fill_menu(menu, shown, self.actions, self._window)

    def make_menu(self, surface: Surface) -> QMenu:
        """Build the context menu of a surface for the current state."""
        menu = make_menu(self._window)
        self.fill(menu, surface)
        return menu

    def popup(self, surface: Surface, point: QPoint) -> None:
        """Show the context menu of a surface at a global position."""
        menu = self.make_menu(surface)
        menu.popup(point)
        menu.aboutToHide.connect(menu.deleteLater)


def _without_argument(handler: Callable[[], object]) -> Callable[[], None]:
    """Drop the checked state that QAction.triggered carries: no handler here takes it."""

    def call() -> None:
        handler()

    return call
