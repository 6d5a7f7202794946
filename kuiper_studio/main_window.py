"""The main window: creates the views and connects them.

It has no state of its own except settings that are stored between runs. Views talk to the
session only; messages from one view to another go through here. Commands are rows of
`commands`. They call the session, a view, an object that carries commands out (`opening`,
`exporting`, `debugging`), or a method here.
"""

from __future__ import annotations

import sys
from functools import cached_property, partial
from importlib import import_module
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import (
    QByteArray,
    QCoreApplication,
    QEvent,
    QPoint,
    QPointF,
    QRect,
    QSettings,
    QSize,
    Qt,
    QTimer,
    Slot,
)
from PySide6.QtWidgets import (
    QDockWidget,
    QMainWindow,
    QMenu,
    QSplitter,
    QStackedWidget,
    QStyle,
    QTabBar,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from engine.states import OperatorStatus
from kuiper_studio.analyse_commands import AnalyseCommands
from kuiper_studio.command_state import command_state
from kuiper_studio.commands import Commands
from kuiper_studio.conditions import missing_of
from kuiper_studio.debug_commands import DebugCommands
from kuiper_studio.drop_commands import DropCommands
from kuiper_studio.export_commands import ExportCommands
from kuiper_studio.field_keys import FieldKeys
from kuiper_studio.file_dialogs import FileDialogs
from kuiper_studio.find_commands import FindCommands
from kuiper_studio.graph_view import GraphView
from kuiper_studio.group_commands import GroupCommands
from kuiper_studio.keymap import Keymap
from kuiper_studio.menus import MenuLetters, add_menu, make_menu
from kuiper_studio.open_commands import OpenCommands
from kuiper_studio.overlay_commands import OverlayCommands
from kuiper_studio.panels.dock_title import DockTitleBar
from kuiper_studio.panels.dropping import DropHint, dropped_paths, take_copy
from kuiper_studio.panels.export_faults_banner import ExportFaultsBanner
from kuiper_studio.panels.failure_banner import FailureBanner
from kuiper_studio.panels.files_banner import FilesBanner
from kuiper_studio.panels.input_panel import InputPanel
from kuiper_studio.panels.leftovers_banner import LeftoversBanner
from kuiper_studio.panels.log_panel import LogPanel
from kuiper_studio.panels.main_tool_bar import MainToolBar
from kuiper_studio.panels.operators_panel import OperatorsPanel
from kuiper_studio.panels.origin_banner import OriginBanner
from kuiper_studio.panels.panel import Panel
from kuiper_studio.panels.properties_panel import PropertiesPanel
from kuiper_studio.panels.result_dock import TITLES, ResultDock
from kuiper_studio.panels.status_bar import StatusBar
from kuiper_studio.panels.tabbed_panels import TabbedPanels
from kuiper_studio.panels.timeline_panel import TimelinePanel
from kuiper_studio.preference_commands import PreferenceCommands
from kuiper_studio.sample_models import find_samples
from kuiper_studio.selection_history import SelectionHistory
from kuiper_studio.session import Failure, RunState, StudioSession
from kuiper_studio.surfaces import MENUS, Surface
from kuiper_studio.sweep_commands import SweepCommands
from kuiper_studio.tensor_view import Side, TensorView
from kuiper_studio.turns import take_turn

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from PySide6.QtCore import QChildEvent
    from PySide6.QtGui import (
        QAction,
        QCloseEvent,
        QDragEnterEvent,
        QDragLeaveEvent,
        QDragMoveEvent,
        QDropEvent,
        QKeyEvent,
        QShowEvent,
    )

    from kuiper_studio.dialogs.command_palette import CommandPalette
    from kuiper_studio.engine_service.protocol import Progress
    from kuiper_studio.panels.attention_panel import AttentionPanel
    from kuiper_studio.panels.comparison_panel import ComparisonPanel
    from kuiper_studio.panels.data_set_panel import DataSetPanel
    from kuiper_studio.panels.history_panel import HistoryPanel
    from kuiper_studio.panels.output_panel import OutputPanel
    from kuiper_studio.panels.overlay_panel import OverlayPanel
    from kuiper_studio.panels.precision_panel import PrecisionPanel
    from kuiper_studio.panels.provenance_panel import ProvenancePanel
    from kuiper_studio.panels.start_page import StartPage
    from kuiper_studio.session.asking import Place
    from kuiper_studio.theme import Theme

__all__ = ["MainWindow"]

# Increase it when docks are added or removed, so that an older layout is not restored.
_LAYOUT_VERSION: Final = 5
_RESULT_WIDTH: Final = 448  # that all columns but the last need
_PRECISION_WIDTH: Final = 312  # at least, that no error is cut
_HISTORY_WIDTH: Final = 370  # at least, to see the values at the place
_OUTPUT_WIDTH: Final = 330  # at least, to see boxes on the picture
_PROVENANCE_WIDTH: Final = 330  # at least, for indices of four dimensions
_ROOM_TO_COMPARE: Final = 1400  # the width of a window that has as much to spare
_PANELS_MS: Final = 1000  # after opening a model, until panels are imported ahead
_PANELS: Final = (
    "weight_view", "provenance_panel", "output_panel", "comparison_panel", "history_panel",
    "overlay_panel", "attention_panel", "precision_panel", "data_set_panel",
)  # fmt: skip
_PATIENCE_MS: Final = 40  # longer than the repeat interval of a held key
_SIZE: Final = QSize(1440, 900)  # that the docks were designed for
_SHARE: Final = 0.94  # of either side of a larger screen, for a first window
# At the left and at the right: at least, and of the width.
_DOCK_WIDTHS: Final = ((346, 0.24), (274, 0.19))
_TIMELINE_HEIGHT: Final = 120
_RESULTS_OF_A_RUN: Final = ("comparison", "precision", "provenance", "history")  # their docks
_ORDER: Final = "operators/order"
_FRAME: Final = 8  # of a window manager, at most, below and at the sides
# What the banner of an origin offers, the likeliest first.
_FOR_ORIGIN: Final = (
    "analyse.worstElement", "analyse.nextOrigin", "analyse.report", "analyse.extract",
)  # fmt: skip


class MainWindow(QMainWindow):
    """The window.

    Parameters
    ----------
    session : StudioSession
        Closed with the window.
    theme : Theme
    settings : QSettings
        Where geometry, docks, theme and recent models are kept.
    """

    def __init__(self, session: StudioSession, theme: Theme, settings: QSettings) -> None:
        super().__init__()
        self.session, self.theme, self.settings = session, theme, settings
        session.setParent(self)
        self.setObjectName("mainWindow")
        self.setAcceptDrops(True)
        self.setDockNestingEnabled(True)
        self.commands = Commands(self, theme)
        self.actions_by_id = self.commands.actions
        FieldKeys(self, self.commands)
        self._hidden_docks: list[QDockWidget] | None = None
        self._start_page: StartPage | None = None
        self._restored = False
        self._dragged_over = ""  # the operator, if it cannot run
        self.file_dialogs = dialogs = FileDialogs(self, settings)
        self.opening = OpenCommands(session, settings, dialogs, self.commands, theme, self)
        self.debugging = DebugCommands(session, theme, settings, dialogs, self)
        self.history = SelectionHistory(session, self)
        self._make_views()
        self.analysing = AnalyseCommands(
            session, settings, dialogs, lambda: self.operators_panel.selected_operators, self
        )
        self.dropping = DropCommands(
            self.opening,
            self.debugging,
            self.analysing,
            self.actions_by_id["analyse.compare"],
        )
        self.sweeping = SweepCommands(session, settings, dialogs, self._shown_channel, self)
        self.finding = FindCommands(
            session,
            self.graph_view,
            lambda: self.operators_panel.selected_operators,
            self.actions_by_id,
            self,
        )
        self.overlaying = OverlayCommands(
            session, settings, dialogs, self.commands, self.graph_view, self
        )
        self.grouping = GroupCommands(
            session,
            settings,
            self.commands,
            self.graph_view,
            self.operators_panel,
            self.properties_panel,
            self,
        )
        self._docks: dict[str, QDockWidget] = {}
        self._shown_model: Path | None = None
        self.exporting = ExportCommands(
            session, theme, settings, dialogs, self.graph_view, self.tensor_view, self
        )
        self.preferences = PreferenceCommands(
            session,
            settings,
            theme,
            dialogs,
            self.commands,
            self.graph_view,
            self.debugging,
            self.exporting,
            self,
        )
        # In the order of Tab: the list, the graph and its tensor, then what tells of them.
        self._add_panel(self.operators_panel, Qt.DockWidgetArea.LeftDockWidgetArea)
        self._make_central()
        self._make_docks()
        self._make_menus()
        self._make_bars()
        self.commands.connect_all()
        self._connect_session()
        self._connect_views()
        self._use_keys()
        self.resize(_SIZE)
        self._default_state = self.saveState(_LAYOUT_VERSION)

    # Building

    def _make_views(self) -> None:
        session, theme = self.session, self.theme
        self.graph_view = GraphView(session, theme)
        self.tensor_view = TensorView(session, theme)
        self.operators_panel = OperatorsPanel(session, theme)
        self.properties_panel = PropertiesPanel(session, theme, patience=_PATIENCE_MS)
        self.input_panel = InputPanel(session, theme)
        self.log_panel = LogPanel(session, theme)
        self.timeline_panel = TimelinePanel(session, theme)
        self.banner = FailureBanner(session, theme)
        self.files_banner = FilesBanner(session, theme)
        self.export_faults_banner = ExportFaultsBanner(session, theme)
        self.leftovers_banner = LeftoversBanner(theme)
        offered = [self.actions_by_id[command] for command in _FOR_ORIGIN]
        self.origin_banner = OriginBanner(session, theme, offered)

    def _make_central(self) -> None:
        self._splitter = QSplitter(Qt.Orientation.Vertical)
        self._splitter.setObjectName("centralSplitter")
        self._splitter.setChildrenCollapsible(False)
        self._splitter.addWidget(self.graph_view)
        self._splitter.addWidget(self.tensor_view)
        self._splitter.setSizes([288, 408])
        workspace = QWidget()
        column = QVBoxLayout(workspace)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.files_banner)
        column.addWidget(self.export_faults_banner)
        column.addWidget(self.banner)
        column.addWidget(self._splitter, 1)
        self._stack = QStackedWidget()
        self._stack.setObjectName("central")
        self._workspace = workspace
        self._stack.addWidget(workspace)
        centre = QWidget()
        column = QVBoxLayout(centre)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.leftovers_banner)
        column.addWidget(self._stack, 1)
        self.setCentralWidget(centre)
        self._drop_hint = DropHint(self.theme, self)

    def _make_docks(self) -> None:
        self.setCorner(Qt.Corner.TopLeftCorner, Qt.DockWidgetArea.LeftDockWidgetArea)
        self.setCorner(Qt.Corner.TopRightCorner, Qt.DockWidgetArea.TopDockWidgetArea)
        self._origin_dock = self._make_origin_dock()
        self.addDockWidget(Qt.DockWidgetArea.TopDockWidgetArea, self._origin_dock)
        self.setCorner(Qt.Corner.BottomLeftCorner, Qt.DockWidgetArea.BottomDockWidgetArea)
        self.setCorner(Qt.Corner.BottomRightCorner, Qt.DockWidgetArea.BottomDockWidgetArea)
        self._add_panel(self.input_panel, Qt.DockWidgetArea.LeftDockWidgetArea)
        self._add_panel(self.properties_panel, Qt.DockWidgetArea.RightDockWidgetArea)
        self._make_result_docks()
        self._docks["timeline"] = self._make_bottom_dock()
        self.addDockWidget(Qt.DockWidgetArea.BottomDockWidgetArea, self._docks["timeline"])

    def _make_result_docks(self) -> None:
        """Make the docks of results, which are hidden and empty until there is a result."""
        panels: dict[str, Callable[[], Panel]] = {
            "comparison": lambda: self.comparison_panel,
            "precision": lambda: self.precision_panel,
            "provenance": lambda: self.provenance_panel,
            "attention": lambda: self.attention_panel,
            "history": lambda: self.history_panel,
            "overlay": lambda: self.overlay_panel,
            "output": lambda: self.output_panel,
            "dataSet": lambda: self.data_set_panel,
        }
        last = self._docks["properties"]
        for name in TITLES:
            dock = ResultDock(name, panels[name], last, self)
            self._add_dock(dock, Qt.DockWidgetArea.RightDockWidgetArea)
            self.tabifyDockWidget(last, dock)
            last = dock
        for name in TITLES:
            self._docks[name].hide()

    # What is made when it is first shown

    @property
    def start_page(self) -> StartPage:
        """What stands in the window without a model."""
        return self._start_page or self._make_start_page()

    def _make_start_page(self) -> StartPage:
        from kuiper_studio.panels.start_page import StartPage

        opening = self.opening
        page = StartPage(self.theme, find_samples(), opening.recent_models)
        self._start_page = page
        page.open_requested.connect(opening.choose_model)
        page.path_requested.connect(opening.open_model)
        page.dropped.connect(opening.open_dropped)
        page.sample_requested.connect(opening.open_sample)
        page.show_keys(self.commands.shown_keys)
        self._stack.addWidget(page)
        return page

    @cached_property
    def palette_popup(self) -> CommandPalette:
        """The command palette."""
        from kuiper_studio.dialogs.command_palette import CommandPalette

        return CommandPalette(self.session, self.theme, self)

    # Panels of results, each made when its dock is first shown

    @cached_property
    def comparison_panel(self) -> ComparisonPanel:
        """The comparison with a reference."""
        from kuiper_studio.panels.comparison_panel import ComparisonPanel

        panel, banner = ComparisonPanel(self.session, self.theme), self.origin_banner
        panel.leading.connect(self._paint_in_turns)
        panel.compare_requested.connect(self.analysing.compare)
        panel.report_requested.connect(self.analysing.write_report)
        panel.menu_requested.connect(self._show_comparison_menu)
        panel.match_requested.connect(self.analysing.match_by_hand)
        offered = ("analyse.compare", "analyse.report", "analyse.matchByHand")
        panel.follow(*(self.actions_by_id[each] for each in offered))
        banner.shown_changed.connect(lambda: panel.give_way(banner.is_shown))
        panel.give_way(banner.is_shown)
        self._add_result(panel)
        return panel

    @cached_property
    def precision_panel(self) -> PrecisionPanel:
        """What formats of lower precision lose."""
        from kuiper_studio.panels.precision_panel import PrecisionPanel

        panel = PrecisionPanel(self.session, self.theme)
        panel.simulation_requested.connect(self.actions_by_id["analyse.precision"].trigger)
        panel.save_requested.connect(self.analysing.save_precision)
        self._add_result(panel)
        return panel

    @cached_property
    def provenance_panel(self) -> ProvenancePanel:
        """Where an element comes from."""
        from kuiper_studio.panels.provenance_panel import ProvenancePanel

        panel = ProvenancePanel(self.session, self.theme)
        self._add_result(panel)
        return panel

    @cached_property
    def attention_panel(self) -> AttentionPanel:
        """Attentions of the model."""
        from kuiper_studio.panels.attention_panel import AttentionPanel

        panel = AttentionPanel(self.session, self.theme)
        self._add_result(panel)
        return panel

    @cached_property
    def history_panel(self) -> HistoryPanel:
        """What all operators have at a place."""
        from kuiper_studio.panels.history_panel import HistoryPanel

        panel = HistoryPanel(self.session, self.theme)
        panel.visit_chosen.connect(self._on_visit_chosen)
        self._add_result(panel)
        return panel

    @cached_property
    def overlay_panel(self) -> OverlayPanel:
        """The channel of the tensor view over the input picture."""
        from kuiper_studio.panels.overlay_panel import OverlayPanel

        tensor = self.tensor_view
        panel = OverlayPanel(self.session, self.theme, tensor.shown_plane)
        for changed in (tensor.range_changed, tensor.picked_changed):
            changed.connect(panel.refresh)
        tensor.hovered_changed.connect(lambda: panel.mark(tensor.hovered_cell))
        panel.element_chosen.connect(tensor.pick_element)
        self._add_result(panel)
        return panel

    @cached_property
    def output_panel(self) -> OutputPanel:
        """What the output of the model means."""
        from kuiper_studio.panels.output_panel import OutputPanel

        panel = OutputPanel(self.session, self.theme)
        self._add_result(panel)
        return panel

    @cached_property
    def data_set_panel(self) -> DataSetPanel:
        """What a data set did to the shown channel."""
        from kuiper_studio.panels.data_set_panel import DataSetPanel

        panel = DataSetPanel(self.session, self.theme, self._shown_channel)
        self.tensor_view.range_changed.connect(panel.refresh)
        panel.run_requested.connect(self.sweeping.ask)
        panel.page_requested.connect(self.sweeping.open_page)
        panel.input_chosen.connect(self.sweeping.open_input)
        panel.channel_chosen.connect(self.tensor_view.show_data_set_channel)
        self._add_result(panel)
        return panel

    def _add_result(self, panel: Panel) -> None:
        self._put_into_dock(panel)
        dock = self._docks[panel.objectName()]
        if isinstance(dock, ResultDock):
            dock.take_tab_place()

    # Docks

    def _size_docks(self) -> None:
        """Set the default sizes of the docks."""
        horizontal, vertical = Qt.Orientation.Horizontal, Qt.Orientation.Vertical
        docks = self._docks
        layout = self.layout()
        if layout is not None:
            layout.activate()  # sizes that are given before it are shared out anew
        left, right = (max(least, round(share * self.width())) for least, share in _DOCK_WIDTHS)
        self.resizeDocks([docks["operators"], docks["properties"]], [left, right], horizontal)
        self.resizeDocks([docks["operators"], docks["input"]], [335, 365], vertical)
        self.resizeDocks([docks["timeline"]], [_TIMELINE_HEIGHT], vertical)

    def _add_panel(self, panel: Panel, area: Qt.DockWidgetArea) -> None:
        dock = QDockWidget(panel.windowTitle(), self)
        dock.setObjectName(panel.objectName())
        self._add_dock(dock, area)
        self._put_into_dock(panel)

    def _add_dock(self, dock: QDockWidget, area: Qt.DockWidgetArea) -> None:
        dock.toggleViewAction().triggered.connect(dock.raise_)  # not only a tab behind others
        self.addDockWidget(area, dock)
        self._docks[dock.objectName()] = dock

    def _put_into_dock(self, panel: Panel) -> None:
        """Put a panel into the dock of its name, with a header."""
        dock = self._docks[panel.objectName()]
        bar = DockTitleBar.of(panel, self.theme)
        bar.close_requested.connect(dock.close)
        dock.setTitleBarWidget(bar)
        dock.setWidget(panel)

    def _make_origin_dock(self) -> QDockWidget:
        """Make the dock by which the banner of an origin lies over those at the right, too."""
        dock = QDockWidget(self.origin_banner.windowTitle(), self)
        dock.setObjectName(self.origin_banner.objectName())
        dock.setFeatures(QDockWidget.DockWidgetFeature.NoDockWidgetFeatures)
        dock.setTitleBarWidget(QWidget())
        dock.setWidget(self.origin_banner)
        dock.toggleViewAction().setVisible(False)  # the selection shows it
        dock.hide()
        return dock

    def _make_bottom_dock(self) -> QDockWidget:
        """Make the dock of timeline and log, whose header is their tabs."""
        dock = QDockWidget("Timeline and log", self)
        dock.setObjectName(self.timeline_panel.objectName())
        dock.setTitleBarWidget(QWidget())
        dock.setWidget(TabbedPanels((self.timeline_panel, self.log_panel), self.theme, dock))
        return dock

    def _make_menus(self) -> None:
        MenuLetters(self.menuBar())
        for surface in MENUS:
            self.commands.fill(add_menu(self.menuBar(), surface.value), surface)
        colors = make_menu(self)
        colors.aboutToShow.connect(partial(self.overlaying.fill_menu, colors))
        self.graph_view.header.offer_colors(colors)

    def fill_docks(self, menu: QMenu) -> None:
        """Fill a menu with the actions that show and hide docks."""
        menu.clear()
        for dock in self._docks.values():
            menu.addAction(dock.toggleViewAction())

    def _make_bars(self) -> None:
        self.tool_bar = MainToolBar(self.session, self.theme, self.actions_by_id, self)
        self.tool_bar.search_requested.connect(self.show_palette)
        self.tool_bar.input_requested.connect(self.opening.choose_input)
        self.addToolBar(self.tool_bar)
        self.status_bar = StatusBar(self.session, self.theme, self)
        self.setStatusBar(self.status_bar)

    def _connect_session(self) -> None:
        session = self.session
        session.graph_changed.connect(self._on_graph_changed)
        for changed in (
            session.settled, session.operand_changed, session.backend_changed,
            session.supplies_changed, session.comparing.changed, session.finding.changed,
            session.bookmarks.changed, session.undoing.changed, session.overlaying.changed,
            self.graph_view.canvas.groups_changed, self.tensor_view.strip.tabs.currentChanged,
        ):  # fmt: skip
            changed.connect(self._on_state_changed)
        for dropped in (session.stepped, session.values_reset, session.stepped_back):
            dropped.connect(self._on_values_dropped)
        session.comparing.arriving.connect(self._paint_in_turns)
        session.comparing.changed.connect(self._on_compared)
        session.precision.changed.connect(self._on_simulated)
        session.explaining.moved.connect(self._on_explained)
        session.tracing.moved.connect(self._on_traced)
        self.operators_panel.order_chosen.connect(self._on_order_chosen)
        session.failed.connect(self._on_failed)
        session.input_needed.connect(self._ask_for_input)
        session.inputs_changed.connect(self._on_inputs_changed)
        session.progress_changed.connect(self._on_progress_changed)
        session.workspace.layers_changed.connect(self._on_layers_changed)
        self.preferences.keys_changed.connect(self._use_keys)

    def _connect_views(self) -> None:
        opening, debugging, tensor = self.opening, self.debugging, self.tensor_view
        opening.input_refused.connect(self._on_input_refused)
        for carrier in (
            opening, self.exporting, debugging, self.analysing, self.overlaying,
            self.leftovers_banner, self.sweeping,
        ):  # fmt: skip
            carrier.failed.connect(self.show_error)
        self.properties_panel.layers_requested.connect(opening.choose_layers)
        self.properties_panel.seed_requested.connect(self.actions_by_id["debug.seed"].trigger)
        self.properties_panel.weight_requested.connect(tensor.show_weight)
        for banner in (self.banner, self.files_banner):
            banner.reload_requested.connect(self.actions_by_id["file.reload"].trigger)
        self.banner.reload_offered.connect(self.files_banner.give_way)
        self.banner.layers_requested.connect(opening.choose_layers)
        self.banner.weights_requested.connect(opening.choose_weights)
        self.banner.supply_requested.connect(debugging.choose_output)
        self.origin_banner.shown_changed.connect(self._on_origin_shown)
        self.analysing.open_requested.connect(opening.open_dropped)
        self.leftovers_banner.restored.connect(self._on_restored)
        self.leftovers_banner.removed.connect(self._on_removed)
        self.graph_view.tensor_requested.connect(tensor.setFocus)
        self.graph_view.menu_requested.connect(self._show_graph_menu)
        self.operators_panel.menu_requested.connect(self._show_operators_menu)
        self.timeline_panel.canvas.menu_requested.connect(self._show_timeline_menu)
        self._connect_tensor_view()

    def _connect_tensor_view(self) -> None:
        tensor = self.tensor_view
        for command in ("analyse.explain", "analyse.history", "analyse.overlay"):
            tensor.offer(self.actions_by_id[command])
        self.sweeping.started.connect(self._on_data_set_started)
        tensor.strip.sides.chosen.connect(self._on_side_chosen)
        tensor.hovered_changed.connect(self.status_bar.show_hovered)
        tensor.picked_changed.connect(self.status_bar.show_picked)
        tensor.range_changed.connect(self.status_bar.show_range)
        tensor.special_changed.connect(self.status_bar.show_special)
        tensor.zoom_changed.connect(self.status_bar.show_zoom)

    # Commands of the view

    def show_palette(self) -> None:
        """Open the command palette."""
        self.palette_popup.open_with(self._all_actions())

    def _all_actions(self) -> list[QAction]:
        docks = [dock.toggleViewAction() for dock in self._docks.values()]
        return [*self.actions_by_id.values(), *docks, *self.tensor_view.actions()]

    def copy(self) -> None:
        """Copy what has the focus, or else the selected operator's line."""
        focus = self.focusWidget()
        if self.tensor_view.isAncestorOf(focus):
            self._copy_value()
            return
        # Fields of text have this method, and tables that copy a line of their own.
        copy = getattr(focus, "copy", self.operators_panel.copy_line)
        copy()

    def _copy_value(self) -> None:
        """Copy what the tensor view has to copy, or tell why it has nothing."""
        pane = self.tensor_view.pane
        missing = missing_of(pane.actions_table["tensor.copy"])
        if missing:
            self.session.workspace.announce(f"nothing is copied: {missing}")
        else:
            pane.copying.copy_value()

    def filter_operators(self) -> None:
        """Show the list of operators and focus its filter."""
        self._docks["operators"].show()
        self.operators_panel.focus_filter()

    def toggle_legend(self) -> None:
        """Show or hide the legend of the graph, by the state of its action."""
        self._show_legend(shown=self.actions_by_id["view.legend"].isChecked())

    def _show_legend(self, *, shown: bool) -> None:
        self.settings.setValue("graph/legend", str(shown).lower())
        self.actions_by_id["view.legend"].setChecked(shown)
        self.graph_view.set_legend_visible(shown)

    def next_pane(self) -> None:
        """Move the focus to the next part of the window."""
        self._move_to_pane(1)

    def previous_pane(self) -> None:
        """Move the focus to the previous part of the window."""
        self._move_to_pane(-1)

    def _move_to_pane(self, step: int) -> None:
        results = [self._docks[name].widget() for name in TITLES]
        panes: list[Panel | GraphView | TensorView] = [
            self.operators_panel, self.input_panel, self.origin_banner, self.graph_view,
            self.tensor_view, self.properties_panel,
            *[panel for panel in results if isinstance(panel, Panel)],
            self.timeline_panel, self.log_panel,
        ]  # fmt: skip
        focused = self.focusWidget()
        held = [focused in (pane, *pane.findChildren(QWidget)) for pane in panes]
        place = held.index(True) if any(held) else -min(step, 0) - 1
        for distance in range(1, len(panes) + 1):
            target = _first_focusable(panes[(place + step * distance) % len(panes)])
            if target is not None:
                target.setFocus(Qt.FocusReason.TabFocusReason)
                return

    def center_current(self) -> None:
        """Select and centre the operator that runs next."""
        current = self.session.current
        if current is not None:
            self.session.select(current.name)
            self.graph_view.center_on(current.name)

    def reset_layout(self) -> None:
        """Move the docks back to their places."""
        for dock in self._docks.values():
            if self.tabifiedDockWidgets(dock):  # Qt would leave their tabs behind
                dock.hide()
        layout = self.layout()
        if layout is not None:
            layout.activate()
        self.restoreState(self._default_state, _LAYOUT_VERSION)
        self._on_origin_shown()
        self._size_docks()
        self._splitter.setSizes([288, 408])
        self._show_docks(shown=self.session.graph is not None)

    def toggle_full_screen(self) -> None:
        """Toggle full screen."""
        if self.isFullScreen():
            self.showNormal()
        else:
            self.showFullScreen()

    def explain_element(self) -> None:
        """Show where the picked element comes from."""
        self._ask_about_element(self.session.explain, "provenance", _PROVENANCE_WIDTH)

    def trace_element(self) -> None:
        """Show what all operators have at the place of the picked element."""
        self._ask_about_element(self.session.trace, "history", _HISTORY_WIDTH)

    def _ask_about_element(
        self, ask: Callable[[str, tuple[int, ...]], None], dock: str, least: int = 0
    ) -> None:
        """Ask about the chosen element; without one its dock says what to do."""
        chosen = self.tensor_view.chosen_element
        if chosen is None:
            self._show_result(dock, least)
            self.session.workspace.announce(
                "Click an element of the tensor, or press an arrow key in it"
            )
        else:
            ask(*chosen)

    def explain_operator(self) -> None:
        """Explain the selected operator's type."""
        self._docks["properties"].show()
        self._docks["properties"].raise_()
        self.properties_panel.explain()

    def show_shortcuts(self) -> None:
        """Show the sheet of shortcuts."""
        from kuiper_studio.dialogs.shortcuts import ShortcutsSheet

        ShortcutsSheet(self._all_actions(), self.theme, self).exec()

    @Slot()
    def _use_keys(self) -> None:
        """Give the commands the keys that are stored, and show them wherever keys are shown."""
        keymap = Keymap.stored(self.settings)
        self.commands.use_keys(keymap)
        shown = self.commands.shown_keys
        self.graph_view.show_keys(shown)
        self.tensor_view.use_keys(keymap, shown)
        if self._start_page is not None:
            self._start_page.show_keys(shown)

    def show_about(self) -> None:
        """Show version and licences."""
        from kuiper_studio.dialogs.about import AboutDialog

        AboutDialog(self.theme, self).exec()

    @Slot(str, str)
    def show_error(self, title: str, reason: str) -> None:
        """Report an error through the session, as every other error."""
        self._show_error(Failure(title, reason))

    @Slot(str)
    def _on_input_refused(self, reason: str) -> None:
        self._show_error(Failure("The input cannot be used", reason, concerns_input=True))

    def _show_error(self, failure: Failure) -> None:
        self.session.workspace.log("error", failure.reason)
        self._on_failed(failure)

    # Slots

    @Slot()
    def _on_graph_changed(self) -> None:
        graph = self.session.graph
        name = graph.source_path.name if graph is not None else ""
        self.setWindowTitle(f"{name} — Kuiper Studio" if name else "Kuiper Studio")
        self.banner.clear()
        self._show_central()
        self._show_docks(shown=graph is not None)
        if graph is not None and graph.source_path != self._shown_model:
            self._shown_model = graph.source_path
            self._close_results()
        self.leftovers_banner.look()  # of the last run, or of an engine that was ended
        if graph is not None:
            self.opening.restore_sizes(graph)
            self.opening.recent_models.add(graph.source_path, len(graph.operators))
            self.graph_view.keyboard_target().setFocus()
            QTimer.singleShot(_PANELS_MS, self._import_panels)

    @Slot()
    def _import_panels(self) -> None:
        """Import panels that come later while nobody waits for them, one a turn."""
        for name in _PANELS:
            module = f"kuiper_studio.panels.{name}"
            if module not in sys.modules:
                take_turn(self, partial(import_module, module))

    def _show_central(self) -> None:
        """Show the parts for a model, or the start page once the window is seen."""
        if self.session.graph is not None:
            self._stack.setCurrentWidget(self._workspace)
        elif self.isVisible():
            self._stack.setCurrentWidget(self.start_page)

    def _clear_start_page(self) -> None:
        """Take away what the start page says of a failure."""
        if self._start_page is not None:
            self._start_page.banner.clear()

    def _close_results(self) -> None:
        """Close the docks of results that another model had, which would be empty."""
        for name in _RESULTS_OF_A_RUN:
            self._docks[name].hide()

    def _show_docks(self, *, shown: bool) -> None:
        """The start page stands alone; with a model come the docks that were there before."""
        if shown and self._hidden_docks is not None:
            for dock in self._hidden_docks:
                dock.show()
            self._hidden_docks = None
            if not self._restored:
                self._size_docks()
                self._restored = True
        elif not shown and self._hidden_docks is None:
            self._hidden_docks = [d for d in self._docks.values() if not d.isHidden()]
            for dock in self._hidden_docks:
                dock.hide()

    @Slot()
    def _on_state_changed(self) -> None:
        self._update_commands()
        if self.session.state is RunState.RUNNING:
            self._on_values_dropped()
        if self.session.state is RunState.LOADING:
            self._clear_start_page()  # of the file before

    def _update_commands(self) -> None:
        self.commands.update(
            command_state(self.session, self.history, self.graph_view.canvas, self.tensor_view)
        )

    @Slot()
    def _paint_in_turns(self) -> None:
        """Let what is about to change everywhere be painted part by part."""
        names = ("comparison", "operators", "properties", "timeline")
        docks = [self._docks[name] for name in names]
        for part in (*docks, self.graph_view, self.tensor_view):
            part.setUpdatesEnabled(False)
            take_turn(part, partial(part.setUpdatesEnabled, True))  # noqa: FBT003 - Qt's

    @Slot()
    def _on_compared(self) -> None:
        """Show the comparison."""
        if self.session.comparing.comparison is not None:
            self._show_result("comparison")

    @Slot()
    def _on_origin_shown(self) -> None:
        self._origin_dock.setVisible(self.origin_banner.is_shown)

    @Slot()
    def _on_simulated(self) -> None:
        """Show the formats of lower precision."""
        if self.session.precision.results:
            self._show_result("precision", _PRECISION_WIDTH)

    @Slot(object)
    def _on_explained(self, place: Place) -> None:
        """Show where an element comes from, and the element."""
        self._show_result("provenance", _PROVENANCE_WIDTH)
        self.tensor_view.pick_element(place.operand, place.index)

    @Slot(object)
    def _on_traced(self, place: Place) -> None:
        """Show the history of a place, and the element."""
        self._show_result("history", _HISTORY_WIDTH)
        self.tensor_view.pick_element(place.operand, place.index)

    @Slot(object)
    def _on_visit_chosen(self, place: Place) -> None:
        """Show an element that another operator has at the place."""
        if self.session.show_producer(place.operand):
            self.tensor_view.pick_element(place.operand, place.index)

    def show_attention(self) -> None:
        """Show the attention of the selected operator, or of the first one."""
        self._show_result("attention")
        self.attention_panel.refresh()
        self.attention_panel.keyboard_target().setFocus()

    def show_overlay(self) -> None:
        """Show the channel of the tensor view over the input picture."""
        self._show_result("overlay")
        self.overlay_panel.refresh()

    def _shown_channel(self) -> tuple[str, int | None] | None:
        shown = self.tensor_view.shown_channel
        if shown is not None:
            return shown[0], self.tensor_view.data_set_channel
        operand = self.tensor_view.operand  # which may have no value yet
        return (operand, None) if operand else None

    @Slot()
    def _on_data_set_started(self) -> None:
        """Show the data set that runs, or that was opened."""
        self._show_result("dataSet")
        self.data_set_panel.refresh()

    def show_output(self) -> None:
        """Show what the output of the model means."""
        self._show_result("output", _OUTPUT_WIDTH)
        self.output_panel.refresh()
        self.output_panel.keyboard_target().setFocus()

    def _show_result(self, name: str, least: int = 0) -> None:
        """Show a dock, as wide as the window has room; `least` also where it has not."""
        dock = self._docks[name]
        if not dock.isVisible():
            dock.show()
            wanted = _RESULT_WIDTH if self.width() >= _ROOM_TO_COMPARE else least
            if dock.width() < wanted:
                self.resizeDocks([dock], [wanted], Qt.Orientation.Horizontal)
        if dock.isFloating() or dock.visibleRegion().isEmpty():
            dock.raise_()  # which paints all of it anew

    @Slot(str)
    def _on_order_chosen(self, order: str) -> None:
        self.settings.setValue(_ORDER, order)

    @Slot(object)
    def _on_side_chosen(self, side: Side) -> None:
        self.settings.setValue("compare/side", side.value)

    @Slot()
    def _on_values_dropped(self) -> None:
        """Clear the message about an operator, which is outdated."""
        if self.banner.concerns_operator:
            self.banner.clear()

    @Slot()
    def _on_inputs_changed(self) -> None:
        """Clear the message about an input: another one is there, or is tried."""
        if self.banner.concerns_input:
            self.session.dismiss_failure()
            self.banner.clear()

    @Slot(object)
    def _on_progress_changed(self, progress: Progress | None) -> None:
        """Only one study at a time; when it begins, clear the message about the last one."""
        self._update_commands()
        if progress is not None and self.banner.concerns_study:
            self.session.dismiss_failure()
            self.banner.clear()

    @Slot()
    def _on_layers_changed(self) -> None:
        for file in self.session.workspace.layer_files:
            self.opening.recent_layers.add(file.path, len(file.types))
        if self.banner.concerns_layers:
            self.banner.clear()
        self._clear_start_page()
        self._on_state_changed()

    @Slot(object)
    def _on_restored(self, place: Path) -> None:
        self.session.workspace.announce(f"{place.name} is restored")

    @Slot(object)
    def _on_removed(self, place: Path) -> None:
        self.session.workspace.announce(f"what was in {place.name} before is removed")

    @Slot(object)
    def _on_failed(self, failure: Failure) -> None:
        if self.session.graph is None:
            self.start_page.show_failure(failure)
        else:
            self.banner.show_failure(failure)

    @Slot()
    def _ask_for_input(self) -> None:
        """Show what the model needs before it can run."""
        dock = self._docks["input"]
        dock.show()
        dock.raise_()
        self.input_panel.ask()

    @Slot(object, QPoint)
    def _show_graph_menu(self, operator: str, point: QPoint) -> None:
        """Show the context menu of an operator of the graph, or of the canvas."""
        if operator:
            self._show_operator_menu(Surface.GRAPH_OPERATOR, operator, point)
        else:
            self.commands.popup(Surface.GRAPH, point)

    @Slot(object, QPoint)
    def _show_operators_menu(self, operator: str, point: QPoint) -> None:
        """Show the context menu of an operator of the list, or of the selected group."""
        if operator:
            self._show_operator_menu(Surface.OPERATORS, operator, point)
        else:
            self.commands.popup(Surface.GROUPS, point)

    @Slot(object, QPoint)
    def _show_timeline_menu(self, operator: str, point: QPoint) -> None:
        self._show_operator_menu(Surface.TIMELINE, operator, point)

    @Slot(object, QPoint)
    def _show_comparison_menu(self, operator: str, point: QPoint) -> None:
        self._show_operator_menu(Surface.COMPARISON, operator, point)

    def _show_operator_menu(self, surface: Surface, operator: str, point: QPoint) -> None:
        # Commands act on the selected operator.
        self.session.select(operator)
        self.commands.popup(surface, point)

    # Settings remembered between runs

    def fit_into(self, available: QRect) -> None:
        """Have the window with its frame lie in a part of the desktop.

        A window without a place of its own, the first one, takes most of a large screen.

        Parameters
        ----------
        available : QRect
            What a screen leaves to windows.
        """
        if self.isMaximized() or self.isFullScreen():
            return
        # The frame comes with the first showing, and is not known before.
        above = self.style().pixelMetric(QStyle.PixelMetric.PM_TitleBarHeight) + _FRAME
        room = available.adjusted(_FRAME, above, -_FRAME, -_FRAME)
        if not self.testAttribute(Qt.WidgetAttribute.WA_Moved):
            size = self.size().expandedTo(available.size() * _SHARE)
            self.resize(size.boundedTo(room.size()))  # the window manager finds the place
            return
        size = self.size().boundedTo(room.size())
        left = min(self.geometry().x(), room.right() + 1 - size.width())
        top = min(self.geometry().y(), room.bottom() + 1 - size.height())
        place = QPoint(max(room.left(), left), max(room.top(), top))
        self.setGeometry(QRect(place, size))

    def restore(self) -> None:
        """Take the places and sizes of the last run; called once, with the style sheet on.

        Qt would go on separating docks that were restored before by what its own style says.
        """
        geometry = self.settings.value("window/geometry")
        if isinstance(geometry, QByteArray):
            self.restoreGeometry(geometry)
        state = self.settings.value("window/state")
        if isinstance(state, QByteArray):
            self._restored = self.restoreState(state, _LAYOUT_VERSION)
            self._on_origin_shown()
        sizes = self.settings.value("window/splitter")
        if isinstance(sizes, QByteArray):
            self._splitter.restoreState(sizes)
        self._show_legend(shown=str(self.settings.value("graph/legend", "true")) != "false")
        self.preferences.restore()
        self.overlaying.restore()
        self.operators_panel.restore_order(str(self.settings.value(_ORDER, "")))
        side = self.settings.value("compare/side")
        if side in {each.value for each in Side}:
            self.tensor_view.sides.choose(Side(side))
        self.debugging.restore()
        self._on_graph_changed()
        self._on_state_changed()

    def _remember(self) -> None:
        self._show_docks(shown=True)  # the layout is stored with its docks
        self.settings.setValue("window/geometry", self.saveGeometry())
        self.settings.setValue("window/state", self.saveState(_LAYOUT_VERSION))
        self.settings.setValue("window/splitter", self._splitter.saveState())
        self.settings.sync()

    # Overrides of Qt methods

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        # What has the focus takes Esc first.
        clear = self.actions_by_id["edit.clearMarks"]
        if event.key() == Qt.Key.Key_Escape and clear.isEnabled():
            clear.trigger()
            return
        super().keyPressEvent(event)

    @override
    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.UpdateRequest:
            # Requests for a layout go up one widget at a time, with a painting in between:
            # a step would paint most of the window five times.
            QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)
        return super().event(event)

    @override
    def childEvent(self, event: QChildEvent) -> None:
        # Qt elides the tabs of docks, to "Pr…" where there are many.
        if event.type() == QEvent.Type.ChildPolished and isinstance(
            bar := event.child(), QTabBar
        ):
            bar.setElideMode(Qt.TextElideMode.ElideNone)
            bar.setUsesScrollButtons(True)
        super().childEvent(event)

    @override
    def setVisible(self, visible: bool) -> None:
        if visible and self.session.graph is None:
            self._stack.setCurrentWidget(self.start_page)
        super().setVisible(visible)

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        QTimer.singleShot(0, self.opening.ask_what_waits)

    @override
    def closeEvent(self, event: QCloseEvent) -> None:
        self._remember()
        self.hide()  # an engine's thread ends after its current operator
        self.leftovers_banner.close_down()
        self.session.close()
        super().closeEvent(event)

    @override
    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if dropped_paths(event):
            take_copy(event)
            self._say_drop(event)

    @override
    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        take_copy(event)
        # Once for each operator: to know what a file is for may need a look into it.
        if self._lacking_output_at(event.position()) != self._dragged_over:
            self._say_drop(event)

    @override
    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        self._drop_hint.say("")

    @override
    def dropEvent(self, event: QDropEvent) -> None:
        self._drop_hint.say("")
        paths = dropped_paths(event)
        if paths:
            take_copy(event)
            self.dropping.find(paths, self._lacking_output_at(event.position())).carry_out()

    def _say_drop(self, event: QDropEvent) -> None:
        self._dragged_over = self._lacking_output_at(event.position())
        found = self.dropping.find(dropped_paths(event), self._dragged_over)
        self._drop_hint.say(found.words)

    def _lacking_output_at(self, place: QPointF) -> str:
        """Return the operator at a position of the window, if it cannot run."""
        canvas = self.graph_view.canvas
        point = canvas.mapFromGlobal(self.mapToGlobal(place))
        if not canvas.isVisible() or not canvas.rect().contains(point.toPoint()):
            return ""
        operator = self.graph_view.operator_at(point)
        cannot = {OperatorStatus.UNSUPPORTED, OperatorStatus.FAILED}
        return operator if operator and self.session.status(operator) in cannot else ""


def _first_focusable(pane: Panel | GraphView | TensorView) -> QWidget | None:
    """What takes the keyboard in a part of the window; None where nothing does, or is seen."""
    widget = start = pane.keyboard_target()
    while True:
        takes_tab = widget.focusPolicy() & Qt.FocusPolicy.TabFocus
        inside = widget is pane or pane.isAncestorOf(widget)
        if inside and takes_tab and widget.isVisible() and widget.isEnabled():
            return widget
        following = widget.nextInFocusChain()
        if following is None or following is start:
            return None
        widget = following
