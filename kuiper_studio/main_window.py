"""The main window: puts the views in their places and carries out the commands.

It holds no state of its own beyond what is remembered between runs; the views talk to the
session only, and what one view says to another goes through here.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import (
    QByteArray,
    QCoreApplication,
    QEvent,
    QPoint,
    QPointF,
    QSettings,
    Qt,
    Slot,
)
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import (
    QDockWidget,
    QFileDialog,
    QMainWindow,
    QMenu,
    QSplitter,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from engine.errors import EngineError, UnsupportedOperatorError
from engine.inputs import (
    IMAGE_SUFFIXES,
    parse_array_file,
    parse_seed,
    parse_source,
    read_labels,
)
from engine.shapes import parse_shapes
from engine.states import OperatorStatus
from engine.text import parse_bytes
from kuiper_studio.commands import COMMANDS, MENUS, FieldKeys, make_actions
from kuiper_studio.dialogs.command_palette import CommandPalette
from kuiper_studio.graph_view import GraphView
from kuiper_studio.graph_view.collector import SummaryCollector
from kuiper_studio.item_models.text import caption_text
from kuiper_studio.panels.dock_title import DockTitleBar
from kuiper_studio.panels.failure_banner import FailureBanner
from kuiper_studio.panels.files_banner import FilesBanner
from kuiper_studio.panels.input_panel import InputPanel
from kuiper_studio.panels.input_sizes import of_open_dimensions
from kuiper_studio.panels.log_panel import LogPanel
from kuiper_studio.panels.main_tool_bar import MainToolBar
from kuiper_studio.panels.operators_panel import OperatorsPanel
from kuiper_studio.panels.properties_panel import PropertiesPanel
from kuiper_studio.panels.recents import Recents
from kuiper_studio.panels.start_page import StartPage
from kuiper_studio.panels.status_bar import StatusBar
from kuiper_studio.panels.tabbed_panels import TabbedPanels
from kuiper_studio.panels.timeline_panel import TimelinePanel
from kuiper_studio.sample_models import SampleModel, find_samples
from kuiper_studio.session import Failure, RunState, StudioSession
from kuiper_studio.tensor_view import TensorView
from kuiper_studio.theme import Scheme, Theme

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent

    from engine.runtime import RuntimeGraph
    from engine.self_check import SelfCheck
    from kuiper_studio.dialogs.self_check_dialog import SelfCheckDialog
    from kuiper_studio.engine_service.summary import Summary
    from kuiper_studio.layout import Orientation
    from kuiper_studio.panels.panel import Panel

__all__ = ["MainWindow"]

# Changes when docks come or go: an older layout is not restored then.
_LAYOUT_VERSION: Final = 1
_PATIENCE_MS: Final = 40  # longer than from one repetition of a held key to the next
_MODEL_FILES: Final = "PNNX models (*.param *.bin);;All files (*)"
_ARRAY_FILES: Final = "NumPy files (*.npy *.npz);;All files (*)"
_DUMP_FILES: Final = "Dumps (manifest.json *.safetensors);;All files (*)"
_LAYER_FILES: Final = "Python (*.py);;All files (*)"
_SCHEME_OF: Final = {
    "view.themeSystem": Scheme.SYSTEM,
    "view.themeLight": Scheme.LIGHT,
    "view.themeDark": Scheme.DARK,
}


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
        self.recents = Recents(settings)
        self.recent_layers = Recents(settings, key="recentLayers")
        self.actions_by_id = make_actions(self, theme)
        FieldKeys(self)
        self._hidden_docks: list[QDockWidget] | None = None
        self._self_check: SelfCheckDialog | None = None
        self._restored = False
        self._make_views()
        self._make_central()
        self._make_docks()
        self._make_menus()
        self._make_bars()
        self._connect_actions()
        self._connect_session()
        self.resize(1440, 900)
        self._default_state = self.saveState(_LAYOUT_VERSION)
        self._restore()
        self._on_graph_changed()
        self._on_state_changed()
        self._on_theme_changed()

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
        self.start_page = StartPage(theme, find_samples(), self.recents)
        self.banner = FailureBanner(session, theme)
        self.files_banner = FilesBanner(session, theme)
        self.palette_popup = CommandPalette(session, theme, self)

    def _make_central(self) -> None:
        self._splitter = QSplitter(Qt.Orientation.Vertical)
        self._splitter.setObjectName("centralSplitter")
        self._splitter.setChildrenCollapsible(False)
        self._splitter.addWidget(self.graph_view)
        self._splitter.addWidget(self.tensor_view)
        self._splitter.setSizes([288, 408])
        self._splitter.setStretchFactor(1, 1)
        workspace = QWidget()
        column = QVBoxLayout(workspace)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.files_banner)
        column.addWidget(self.banner)
        column.addWidget(self._splitter, 1)
        self._stack = QStackedWidget()
        self._stack.setObjectName("central")
        self._stack.addWidget(self.start_page)
        self._stack.addWidget(workspace)
        self.setCentralWidget(self._stack)

    def _make_docks(self) -> None:
        self.setCorner(Qt.Corner.BottomLeftCorner, Qt.DockWidgetArea.BottomDockWidgetArea)
        self.setCorner(Qt.Corner.BottomRightCorner, Qt.DockWidgetArea.BottomDockWidgetArea)
        left, right = (
            Qt.DockWidgetArea.LeftDockWidgetArea,
            Qt.DockWidgetArea.RightDockWidgetArea,
        )
        bottom = Qt.DockWidgetArea.BottomDockWidgetArea
        self._docks = {
            panel.objectName(): self._make_dock(panel, area)
            for panel, area in (
                (self.operators_panel, left),
                (self.input_panel, left),
                (self.properties_panel, right),
            )
        }
        self._docks["timeline"] = self._make_bottom_dock()
        self.addDockWidget(bottom, self._docks["timeline"])
        horizontal, vertical = Qt.Orientation.Horizontal, Qt.Orientation.Vertical
        self.resizeDocks(
            [self._docks["operators"], self._docks["properties"]], [346, 274], horizontal
        )
        self.resizeDocks([self._docks["operators"], self._docks["input"]], [510, 190], vertical)
        self.resizeDocks([self._docks["timeline"]], [108], vertical)

    def _size_docks(self) -> None:
        """Give the docks the sizes they were designed for."""
        horizontal, vertical = Qt.Orientation.Horizontal, Qt.Orientation.Vertical
        docks = self._docks
        self.resizeDocks([docks["operators"], docks["properties"]], [346, 274], horizontal)
        self.resizeDocks([docks["operators"], docks["input"]], [410, 290], vertical)
        self.resizeDocks([docks["timeline"]], [134], vertical)

    def _make_dock(self, panel: Panel, area: Qt.DockWidgetArea) -> QDockWidget:
        dock = QDockWidget(panel.windowTitle(), self)
        dock.setObjectName(panel.objectName())
        bar = DockTitleBar.of(panel, self.theme)
        bar.close_requested.connect(dock.close)
        dock.setTitleBarWidget(bar)
        dock.setWidget(panel)
        self.addDockWidget(area, dock)
        return dock

    def _make_bottom_dock(self) -> QDockWidget:
        """Timeline and log share a dock, whose header are their tabs."""
        dock = QDockWidget("Timeline and log", self)
        dock.setObjectName(self.timeline_panel.objectName())
        dock.setTitleBarWidget(QWidget())
        dock.setWidget(TabbedPanels((self.timeline_panel, self.log_panel), self.theme, dock))
        return dock

    def _make_menus(self) -> None:
        for title, entries in MENUS.items():
            menu = self.menuBar().addMenu(title)
            menu.setToolTipsVisible(True)
            for entry in entries:
                if not entry:
                    menu.addSeparator()
                elif entry == "recent":
                    self._recent_menu = menu.addMenu("Open &recent")
                    self._recent_menu.aboutToShow.connect(self._fill_recent_menu)
                elif entry == "recentLayers":
                    self._recent_layers_menu = menu.addMenu("Recent layer &files")
                    self._recent_layers_menu.aboutToShow.connect(self._fill_recent_layers_menu)
                elif entry == "docks":
                    for dock in self._docks.values():
                        menu.addAction(dock.toggleViewAction())
                elif entry == "tensor":
                    self.tensor_view.fill_menu(menu)
                else:
                    menu.addAction(self.actions_by_id[entry])
        schemes = QActionGroup(self)
        for command in _SCHEME_OF:
            schemes.addAction(self.actions_by_id[command])
        self.addActions(list(self.actions_by_id.values()))

    def _make_bars(self) -> None:
        self.tool_bar = MainToolBar(self.session, self.theme, self.actions_by_id, self)
        self.tool_bar.search_requested.connect(self.show_palette)
        self.tool_bar.input_requested.connect(self.choose_input)
        self.addToolBar(self.tool_bar)
        self.status_bar = StatusBar(self.session, self.theme, self)
        self.setStatusBar(self.status_bar)

    def _connect_actions(self) -> None:
        session, graph = self.session, self.graph_view
        handlers: dict[str, Callable[[], None]] = {
            "file.open": self.choose_model,
            "file.openSample": self._open_default_sample,
            "file.openInput": self.choose_input,
            "file.openLabels": self.choose_labels,
            "file.loadLayers": self.choose_layers,
            "file.unloadLayers": session.unload_layers,
            "file.clearRecentLayers": self.recent_layers.clear,
            "file.reload": session.reload,
            "file.close": session.close_model,
            "file.exportDump": self.export_dump,
            "file.exportPicture": self.export_picture,
            "file.exportGraph": self.export_graph,
            "file.clearRecent": self.recents.clear,
            "file.quit": self.close_window,
            "edit.find": self._find,
            "view.fit": graph.fit,
            "view.zoomIn": graph.zoom_in,
            "view.zoomOut": graph.zoom_out,
            "view.zoomReset": graph.zoom_reset,
            "view.orientation": self._turn_orientation,
            "view.legend": self._toggle_legend,
            "view.centerCurrent": self._center_current,
            "view.toggleTheme": self._toggle_theme,
            "view.resetLayout": self.reset_layout,
            "view.fullScreen": self._toggle_full_screen,
            "view.commandPalette": self.show_palette,
            "debug.continue": session.resume,
            "debug.step": session.step,
            "debug.stepBack": session.step_back,
            "debug.runToSelected": self._run_to_selected,
            "debug.restart": session.restart,
            "debug.stop": session.stop,
            "debug.toggleBreakpoint": self._toggle_breakpoint,
            "debug.clearBreakpoints": session.clear_breakpoints,
            "debug.supplyOutput": self._supply_selected,
            "debug.withdrawOutput": self._withdraw_selected,
            "debug.seed": self.choose_seed,
            "debug.memoryLimit": self.choose_memory_limit,
            "debug.useKernels": self.choose_kernels,
            "debug.forgetKernels": session.forget_kernels,
            "debug.selfCheck": session.self_check,
            "debug.previousOperator": self._select_previous,
            "debug.nextOperator": self._select_next,
            "help.operator": self._explain_operator,
            "help.shortcuts": self._show_shortcuts,
            "help.about": self._show_about,
            "view.themeSystem": self._use_chosen_theme,
            "view.themeLight": self._use_chosen_theme,
            "view.themeDark": self._use_chosen_theme,
        }
        for command, handler in handlers.items():
            self.actions_by_id[command].triggered.connect(_without_argument(handler))

    def _connect_session(self) -> None:
        session, tensor = self.session, self.tensor_view
        session.graph_changed.connect(self._on_graph_changed)
        session.state_changed.connect(self._on_state_changed)
        session.position_changed.connect(self._on_state_changed)
        session.stepped.connect(self._on_values_dropped)
        session.selection_changed.connect(self._on_state_changed)
        session.failed.connect(self._on_failed)
        session.input_needed.connect(self._ask_for_input)
        session.inputs_changed.connect(self._remember_sizes)
        session.layers_changed.connect(self._on_layers_changed)
        session.self_checked.connect(self._on_self_checked)
        self.theme.changed.connect(self._on_theme_changed)
        self.start_page.open_requested.connect(self.choose_model)
        self.start_page.path_requested.connect(self.open_model)
        self.start_page.sample_requested.connect(self.open_sample)
        self.properties_panel.layers_requested.connect(self.choose_layers)
        self.properties_panel.seed_requested.connect(self.actions_by_id["debug.seed"].trigger)
        session.seed_changed.connect(self._on_seed_changed)
        session.memory_limit_changed.connect(self._on_memory_limit_changed)
        session.backend_changed.connect(self._on_state_changed)
        for banner in (self.banner, self.files_banner):
            banner.reload_requested.connect(self.actions_by_id["file.reload"].trigger)
        self.banner.reload_offered.connect(self.files_banner.give_way)
        self.banner.layers_requested.connect(self.choose_layers)
        self.banner.supply_requested.connect(self.choose_output)
        self.operators_panel.supply_requested.connect(self.choose_output)
        for dropped in (session.values_reset, session.stepped_back):
            dropped.connect(self._on_values_dropped)
        session.supplies_changed.connect(self._on_state_changed)
        self.graph_view.tensor_requested.connect(self.tensor_view.setFocus)
        self.graph_view.menu_requested.connect(self._on_graph_menu)
        tensor.hovered_changed.connect(self.status_bar.show_hovered)
        tensor.picked_changed.connect(self.status_bar.show_picked)
        tensor.range_changed.connect(self.status_bar.show_range)
        tensor.special_changed.connect(self.status_bar.show_special)
        tensor.zoom_changed.connect(self.status_bar.show_zoom)

    # Opening

    @Slot()
    def choose_model(self) -> None:
        """Ask for a model and open it."""
        path, _ = QFileDialog.getOpenFileName(
            self, "Open a PNNX model", self._folder("model"), _MODEL_FILES
        )
        if path:
            self.open_model(path)

    @Slot(str)
    def open_model(self, path: str | Path) -> None:
        """Open a pair by either of its files, or by its folder."""
        self.settings.setValue("folder/model", str(Path(path).parent))
        self.session.open(path)

    @Slot(object)
    def open_sample(self, sample: SampleModel) -> None:
        """Open a sample with its input."""
        self.session.prepare_source_list(sample.sources, sample.options)
        self.session.prepare_labels(sample.labels)
        self.session.open(sample.param)

    @Slot()
    def choose_input(self) -> None:
        """Ask for the files of the inputs, in order, and feed them."""
        patterns = " ".join(f"*{suffix}" for suffix in (".npy", ".npz", *IMAGE_SUFFIXES))
        paths, _ = QFileDialog.getOpenFileNames(
            self,
            "Choose the input",
            self._folder("input"),
            f"Inputs ({patterns});;All files (*)",
        )
        if paths:
            self.settings.setValue("folder/input", str(Path(paths[0]).parent))
            self.feed_files(paths)

    def feed_files(self, paths: Sequence[str]) -> None:
        """Feed files to the model's inputs, in order."""
        try:
            sources = [parse_source(path) for path in paths]
        except EngineError as exc:
            self.show_error("The input cannot be used", str(exc))
            return
        self.session.set_source_list(sources)

    @Slot()
    def choose_labels(self) -> None:
        """Ask for a file of class names."""
        path, _ = QFileDialog.getOpenFileName(
            self, "Choose class labels", self._folder("input"), "Text (*.txt);;All files (*)"
        )
        if path:
            self.use_labels(path)

    def use_labels(self, path: str) -> None:
        """Read class names, one a line."""
        try:
            self.session.set_labels(read_labels(Path(path)))
        except EngineError as exc:
            self.show_error("The labels cannot be used", str(exc))

    def _open_default_sample(self) -> None:
        found = find_samples()
        if found:
            self.open_sample(found[0])

    def _folder(self, kind: str) -> str:
        return str(self.settings.value(f"folder/{kind}", ""))

    @Slot()
    def choose_layers(self) -> None:
        """Ask for a Python file of layers and run it."""
        path, _ = QFileDialog.getOpenFileName(
            self, "Load layers of your own", self._folder("layers"), _LAYER_FILES
        )
        if path:
            self.load_layers(path)

    def load_layers(self, path: str | Path) -> None:
        """Run a Python file of layers; an open model gets them."""
        self.settings.setValue("folder/layers", str(Path(path).parent))
        self.session.load_layers(path)

    @Slot()
    def _fill_recent_menu(self) -> None:
        self._fill_recents(
            self._recent_menu, self.recents, "file.clearRecent", self._on_recent_triggered
        )

    @Slot()
    def _fill_recent_layers_menu(self) -> None:
        self._fill_recents(
            self._recent_layers_menu,
            self.recent_layers,
            "file.clearRecentLayers",
            self._on_recent_layers_triggered,
        )

    def _fill_recents(
        self, menu: QMenu, recents: Recents, clear: str, chosen: Callable[[], None]
    ) -> None:
        menu.clear()
        for place, recent in enumerate(recents.entries()):
            action = menu.addAction(f"&{(place + 1) % 10} {caption_text(recent.path)}")
            action.setData(str(recent.path))
            action.setEnabled(Path(recent.path).exists())
            action.triggered.connect(chosen)
        menu.addSeparator()
        menu.addAction(self.actions_by_id[clear])

    @Slot()
    def _on_recent_triggered(self) -> None:
        action = self.sender()
        if isinstance(action, QAction):
            self.open_model(str(action.data()))

    @Slot()
    def _on_recent_layers_triggered(self) -> None:
        action = self.sender()
        if isinstance(action, QAction):
            self.load_layers(str(action.data()))

    # Exporting

    @Slot()
    def export_dump(self) -> None:
        """Ask what to dump and where, and write it."""
        from kuiper_studio.dialogs.export_dialog import ExportDialog

        dialog = ExportDialog(self.session, self.theme, self._folder("dump"), self)
        if dialog.exec() and dialog.request is not None:
            path, options = dialog.request
            self.settings.setValue("folder/dump", str(path.parent))
            self.session.export_dump(path, options)

    @Slot()
    def export_picture(self) -> None:
        """Save the tensor view's picture."""
        path = self._ask_to_save("Save the tensor's picture", "tensor.png", "PNG (*.png)")
        if path is None:
            return
        if self.tensor_view.save_picture(path):
            self.session.announce(f"picture saved to {path}")
        else:
            self.show_error("The picture was not saved", f"{path} cannot be written.")

    @Slot()
    def export_graph(self) -> None:
        """Save the graph as a picture."""
        graph = self.session.graph
        if graph is None:
            return
        name = f"{graph.param_path.name.partition('.')[0]}.svg"
        path = self._ask_to_save("Save the graph", name, "SVG (*.svg);;PNG (*.png)")
        if path is None:
            return
        way: Orientation = "left-right"
        if self.graph_view.orientation == "top-down":
            way = "top-down"
        collector = SummaryCollector(self.session, graph, self)
        collector.finished.connect(partial(self._save_graph, graph, path, way))
        collector.start()

    def _save_graph(
        self,
        graph: RuntimeGraph,
        path: Path,
        way: Orientation,
        summaries: Mapping[int, Summary],
    ) -> None:
        from kuiper_studio.graph_view.render import render_graph

        try:
            drawn = render_graph(graph, path, self.theme, way, self.session, summaries)
        except EngineError as exc:
            self.show_error("The graph was not saved", str(exc))
            return
        self.session.announce(f"graph saved to {path} {drawn.note}".rstrip())

    def _ask_to_save(self, title: str, name: str, kinds: str) -> Path | None:
        start = str(Path(self._folder("dump")) / name)
        path, _ = QFileDialog.getSaveFileName(self, title, start, kinds)
        if not path:
            return None
        self.settings.setValue("folder/dump", str(Path(path).parent))
        return Path(path)

    # Sizes of inputs

    @Slot()
    def _ask_for_input(self) -> None:
        """Lead to what is missing before the model can run."""
        dock = self._docks["input"]
        dock.show()
        dock.raise_()
        self.input_panel.ask()

    @Slot()
    def _remember_sizes(self) -> None:
        """Keep what was said about dimensions that the model leaves open."""
        graph = self.session.graph
        if graph is None:
            return
        asked = of_open_dimensions(graph.input_operands, self.session.input_shapes)
        if asked:
            self.settings.setValue(self._sizes_key(graph), list(asked.texts))
        else:
            self.settings.remove(self._sizes_key(graph))

    def _restore_sizes(self, graph: RuntimeGraph) -> None:
        kept = self.settings.value(self._sizes_key(graph), [])
        texts = (
            [kept] if isinstance(kept, str) else list(kept) if isinstance(kept, list) else []
        )
        try:
            shapes = parse_shapes([str(text) for text in texts], graph.input_operands)
        except EngineError:
            return  # the model has changed
        self.session.set_shapes(shapes)

    @staticmethod
    def _sizes_key(graph: RuntimeGraph) -> str:
        path = str(graph.param_path.absolute()).encode()
        return f"sizes/{hashlib.sha256(path).hexdigest()[:16]}"

    # Debugging

    def _run_to_selected(self) -> None:
        if self.session.selected:
            self.session.run_to(self.session.selected)

    def _toggle_breakpoint(self) -> None:
        self.session.toggle_breakpoint(self.session.selected)

    @Slot(str)
    def choose_output(self, operator: str) -> None:
        """Ask for the file of an operator's output, and supply it."""
        path, _ = QFileDialog.getOpenFileName(
            self, f"Output of {operator}", self._folder("output"), _ARRAY_FILES
        )
        if path:
            self.supply_output(operator, path)

    def supply_output(self, operator: str, path: str) -> None:
        """Use a file instead of what an operator would compute."""
        self.settings.setValue("folder/output", str(Path(path).parent))
        try:
            source = parse_array_file(path)
        except EngineError as exc:
            self.show_error("The file cannot be used", str(exc))
            return
        self.session.supply(operator, source)

    def _supply_selected(self) -> None:
        self.choose_output(self.session.selected)

    def _withdraw_selected(self) -> None:
        self.session.withdraw(self.session.selected)

    def choose_seed(self) -> None:
        """Ask for the seed that operators that are random draw by."""
        from kuiper_studio.dialogs.seed_dialog import SeedDialog

        dialog = SeedDialog(self.session, self.theme, self)
        if dialog.exec():
            self.session.set_seed(dialog.seed)

    def choose_memory_limit(self) -> None:
        """Ask how much memory values may take, and how much of what is computed is kept."""
        from kuiper_studio.dialogs.memory_dialog import MemoryDialog

        dialog = MemoryDialog(self.session, self)
        if dialog.exec():
            self.session.set_memory_limit(dialog.limit)
            self.session.set_memory_bound(dialog.bound)

    def choose_kernels(self) -> None:
        """Ask for a dump whose kernels compute the model."""
        path, _ = QFileDialog.getOpenFileName(
            self, "Use the kernels of a dump", self._folder("dump"), _DUMP_FILES
        )
        if path:
            self.settings.setValue("folder/dump", str(Path(path).parent))
            self.session.use_kernels_of(path)

    def _select_previous(self) -> None:
        self._select_beside(-1)

    def _select_next(self) -> None:
        self._select_beside(1)

    def _select_beside(self, distance: int) -> None:
        graph = self.session.graph
        if graph is None or not self.session.selected:
            return
        place = graph.operator(self.session.selected).index + distance
        if 0 <= place < len(graph.operators):
            self.session.select(graph.operators[place].name)

    # Looking

    def show_palette(self) -> None:
        """Open the command palette."""
        self.palette_popup.open_with(self._all_actions())

    def _all_actions(self) -> list[QAction]:
        docks = [dock.toggleViewAction() for dock in self._docks.values()]
        return [*self.actions_by_id.values(), *docks, *self.tensor_view.actions()]

    def _find(self) -> None:
        self._docks["operators"].show()
        self.operators_panel.focus_filter()

    def _turn_orientation(self) -> None:
        self.graph_view.turn_orientation()

    def _toggle_legend(self) -> None:
        self._show_legend(shown=self.actions_by_id["view.legend"].isChecked())

    def _show_legend(self, *, shown: bool) -> None:
        self.settings.setValue("graph/legend", str(shown).lower())
        self.actions_by_id["view.legend"].setChecked(shown)
        self.graph_view.set_legend_visible(shown)

    def _center_current(self) -> None:
        current = self.session.current
        if current is not None:
            self.session.select(current.name)
            self.graph_view.center_on(current.name)

    def _toggle_theme(self) -> None:
        self._use_theme(Scheme.LIGHT if self.theme.dark else Scheme.DARK)

    def _use_chosen_theme(self) -> None:
        for command, scheme in _SCHEME_OF.items():
            if self.actions_by_id[command].isChecked():
                self._use_theme(scheme)

    def _use_theme(self, scheme: Scheme) -> None:
        self.settings.setValue("theme", scheme.value)
        self.theme.set_scheme(scheme)
        self._on_theme_changed()

    def reset_layout(self) -> None:
        """Put the docks back where they were made."""
        self.restoreState(self._default_state, _LAYOUT_VERSION)
        self._splitter.setSizes([288, 408])
        self._show_docks(shown=self.session.graph is not None)

    def _toggle_full_screen(self) -> None:
        if self.isFullScreen():
            self.showNormal()
        else:
            self.showFullScreen()

    def _explain_operator(self) -> None:
        self._docks["properties"].show()
        self._docks["properties"].raise_()
        self.properties_panel.explain()

    def _show_shortcuts(self) -> None:
        from kuiper_studio.dialogs.shortcuts import ShortcutsSheet

        ShortcutsSheet(self._all_actions(), self.theme, self).exec()

    def _show_about(self) -> None:
        from kuiper_studio.dialogs.about import AboutDialog

        AboutDialog(self.theme, self).exec()

    def show_error(self, title: str, reason: str) -> None:
        """Show what went wrong, where everything else that goes wrong is shown."""
        self.session.log("error", reason)
        self._on_failed(Failure(title, reason))

    def close_window(self) -> None:
        """Close the window."""
        self.close()

    # Answers to the session

    @Slot()
    def _on_graph_changed(self) -> None:
        graph = self.session.graph
        name = graph.param_path.name if graph is not None else ""
        self.setWindowTitle(f"{name} — Kuiper Studio" if name else "Kuiper Studio")
        self.banner.clear()
        if self._self_check is not None:
            self._self_check.close()  # its rows are another model's
        self._stack.setCurrentIndex(0 if graph is None else 1)
        self._show_docks(shown=graph is not None)
        if graph is not None:
            self._restore_sizes(graph)
            self.recents.add(graph.param_path, len(graph.operators))
            self.graph_view.setFocus()

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
        state = self.session.state
        ruled_out = self._ruled_out()
        for command in COMMANDS:
            # Once each: every change of an action is told to all menus, bars and buttons.
            enabled = state in command.states and command.id not in ruled_out
            self.actions_by_id[command.id].setEnabled(enabled)
        if state is RunState.RUNNING:
            self._on_values_dropped()

    def _ruled_out(self) -> set[str]:
        """Commands that have nothing to work on, whatever the state."""
        session, selected = self.session, self.session.selected
        ruled_out = set()
        if not session.layer_files:
            ruled_out.add("file.unloadLayers")
        if session.kernels_from is None:
            ruled_out.add("debug.forgetKernels")
        if not selected:
            ruled_out |= {"debug.runToSelected", "debug.toggleBreakpoint", "help.operator"}
        if not session.can_supply(selected):
            ruled_out.add("debug.supplyOutput")
        if not selected or not session.supplied_text(selected):
            ruled_out.add("debug.withdrawOutput")
        return ruled_out

    @Slot()
    def _on_values_dropped(self) -> None:
        """What was said about an operator holds no more."""
        if self.banner.concerns_operator:
            self.banner.clear()

    @Slot()
    def _on_layers_changed(self) -> None:
        for file in self.session.layer_files:
            self.recent_layers.add(file.path, len(file.types))
        if self.banner.concerns_layers:
            self.banner.clear()
        self.start_page.banner.clear()
        self._on_state_changed()

    @Slot()
    def _on_seed_changed(self) -> None:
        self.settings.setValue("seed", str(self.session.seed))

    @Slot()
    def _on_memory_limit_changed(self) -> None:
        for key, nbytes in (
            ("memoryLimit", self.session.memory_limit),
            ("memoryBound", self.session.memory_bound),
        ):
            self.settings.setValue(key, "" if nbytes is None else str(nbytes))

    @Slot(object)
    def _on_self_checked(self, found: SelfCheck) -> None:
        """Show the result beside the window, in the dialog that is open already if one is."""
        from kuiper_studio.dialogs.self_check_dialog import SelfCheckDialog

        dialog = self._self_check
        if dialog is None:
            dialog = self._self_check = SelfCheckDialog(self.theme, self)
            dialog.operator_chosen.connect(self.session.select)
            dialog.check_requested.connect(self.session.self_check)
            dialog.finished.connect(self._on_self_check_closed)
        dialog.show_result(found)
        dialog.show()
        dialog.raise_()

    @Slot()
    def _on_self_check_closed(self) -> None:
        self._self_check = None

    @Slot(object)
    def _on_failed(self, failure: Failure) -> None:
        if self.session.graph is None:
            self.start_page.show_failure(failure)
        else:
            self.banner.show_failure(failure)

    @Slot(str, QPoint)
    def _on_graph_menu(self, operator: str, place: QPoint) -> None:
        """Offer what can be done with an operator, or with the canvas."""
        commands = [
            "view.fit", "view.zoomReset", "view.orientation", "view.legend", "file.exportGraph",
        ]  # fmt: skip
        if operator:
            self.session.select(operator)
            commands = [
                "debug.runToSelected", "debug.toggleBreakpoint", "", "view.centerCurrent",
                "file.exportDump", "", "debug.supplyOutput", "debug.withdrawOutput",
            ]  # fmt: skip
            if self._lacks_layer(operator):
                commands += ["file.loadLayers"]
            commands += ["", "help.operator"]
        menu = QMenu(self)
        for command in commands:
            if command:
                menu.addAction(self.actions_by_id[command])
            else:
                menu.addSeparator()
        menu.popup(place)
        menu.aboutToHide.connect(menu.deleteLater)

    def _lacks_layer(self, operator: str) -> bool:
        graph = self.session.graph
        error = graph.operator(operator).error if graph is not None else None
        return isinstance(error, UnsupportedOperatorError)

    @Slot()
    def _on_theme_changed(self) -> None:
        for command, scheme in _SCHEME_OF.items():
            self.actions_by_id[command].setChecked(scheme is self.theme.scheme)

    # What is remembered between runs

    def _restore(self) -> None:
        geometry = self.settings.value("window/geometry")
        if isinstance(geometry, QByteArray):
            self.restoreGeometry(geometry)
        state = self.settings.value("window/state")
        if isinstance(state, QByteArray):
            self._restored = self.restoreState(state, _LAYOUT_VERSION)
        sizes = self.settings.value("window/splitter")
        if isinstance(sizes, QByteArray):
            self._splitter.restoreState(sizes)
        self._show_legend(shown=str(self.settings.value("graph/legend", "true")) != "false")
        with suppress(ValueError):  # of a file that somebody has written into
            self.session.set_seed(parse_seed(str(self.settings.value("seed", "0"))))
        limit, bound = (
            self._remembered_bytes("memoryLimit"),
            self._remembered_bytes("memoryBound"),
        )
        self.session.set_memory_limit(limit)
        self.session.set_memory_bound(bound)

    def _remembered_bytes(self, key: str) -> int | None:
        try:
            return parse_bytes(str(self.settings.value(key, "")))
        except ValueError:  # nothing was chosen, or somebody has written into the file
            return None

    def _remember(self) -> None:
        self._show_docks(shown=True)  # the layout is remembered with its docks
        self.settings.setValue("window/geometry", self.saveGeometry())
        self.settings.setValue("window/state", self.saveState(_LAYOUT_VERSION))
        self.settings.setValue("window/splitter", self._splitter.saveState())
        self.settings.sync()

    # Overrides of Qt methods

    @override
    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.UpdateRequest:
            # Requests for a layout go up one widget at a time, with a painting in between:
            # a step would paint most of the window five times.
            QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)
        return super().event(event)

    @override
    def closeEvent(self, event: QCloseEvent) -> None:
        self._remember()
        self.hide()  # the engine's thread ends with the operator that it is busy with
        self.session.close()
        super().closeEvent(event)

    @override
    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if event.mimeData().hasUrls():
            event.acceptProposedAction()

    @override
    def dropEvent(self, event: QDropEvent) -> None:
        paths = [url.toLocalFile() for url in event.mimeData().urls() if url.isLocalFile()]
        if not paths:
            return
        event.acceptProposedAction()
        operator = self._lacking_output_at(event.position())
        if operator and Path(paths[0]).suffix.lower() in {".npy", ".npz"}:
            self.supply_output(operator, paths[0])
        else:
            self.open_dropped(paths)

    def _lacking_output_at(self, place: QPointF) -> str:
        """The operator under a place of the window, if it cannot run."""
        canvas = self.graph_view.canvas
        point = canvas.mapFromGlobal(self.mapToGlobal(place))
        if not canvas.isVisible() or not canvas.rect().contains(point.toPoint()):
            return ""
        operator = self.graph_view.operator_at(point)
        cannot = {OperatorStatus.UNSUPPORTED, OperatorStatus.FAILED}
        return operator if operator and self.session.status(operator) in cannot else ""

    def open_dropped(self, paths: Sequence[str]) -> None:
        """Open what was dropped: a model, its folder, inputs, or labels."""
        models = [p for p in paths if Path(p).suffix in {".param", ".bin"} or Path(p).is_dir()]
        if models:
            models.sort(key=lambda p: Path(p).suffix != ".param")
            self.open_model(models[0])
        elif self.session.graph is None:
            names = ", ".join(Path(p).name for p in paths)
            self.show_error("Open a model first", f"{names} is no .param, .bin or folder.")
        elif Path(paths[0]).suffix.lower() == ".txt":
            self.use_labels(paths[0])
        else:
            self.feed_files(paths)


def _without_argument(handler: Callable[[], None]) -> Callable[[], None]:
    """QAction.triggered carries whether it is checked, which no handler here wants."""

    def call() -> None:
        handler()

    return call
