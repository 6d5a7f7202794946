"""Random actions of a user."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from engine.axes import Axis, Kind, Layout
from engine.dump import DumpOptions
from engine.errors import EngineError
from engine.inputs import ImageOptions, InputSource, parse_source
from engine.shapes import InputShapes
from kuiper_studio.tensor_view.layout_menu import grids_of
from soak.models import DUMPS, write_branches, write_ncnn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

    from engine.precision import FormatName
    from kuiper_studio.main_window import MainWindow
    from soak.models import Files

__all__ = ["Actions"]

T = TypeVar("T")

# Commands that open a system file dialog or quit the application.
_LEFT_OUT = frozenset({"file.quit", "help.manual", "help.reportIssue"})
_KEYS = (
    Qt.Key.Key_V, Qt.Key.Key_F4,
    Qt.Key.Key_F5, Qt.Key.Key_F8, Qt.Key.Key_F9, Qt.Key.Key_F10, Qt.Key.Key_Down, Qt.Key.Key_Up,
    Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Tab, Qt.Key.Key_Return, Qt.Key.Key_Escape,
    Qt.Key.Key_L, Qt.Key.Key_Plus, Qt.Key.Key_Minus, Qt.Key.Key_PageDown, Qt.Key.Key_Home,
)  # fmt: skip

_SHIFTED = (Qt.Key.Key_V, Qt.Key.Key_F4, Qt.Key.Key_F5)
_RESTED = 1.5  # seconds, after which an engine at rest tunes its kernels


class Actions:
    """Random actions on a window; reproducible by the seed, as far as threads allow.

    Parameters
    ----------
    window : MainWindow
    files : Files
    rng : numpy.random.Generator
    """

    def __init__(self, window: MainWindow, files: Files, rng: np.random.Generator) -> None:
        self._window, self._session = window, window.session
        self._files, self._rng = files, rng
        self._weighted: list[tuple[int, Callable[[], str]]] = [
            (6, self._open), (2, self._open_bad), (1, self._close), (3, self._reload),
            (8, self._feed), (3, self._set_shapes), (2, self._prepare), (12, self._step),
            (6, self._steps), (8, self._resume), (5, self._run_to), (5, self._step_back),
            (3, self._restart), (5, self._stop), (6, self._breakpoint), (12, self._select),
            (6, self._show_operand), (3, self._supply), (2, self._withdraw), (3, self._seed),
            (2, self._backend), (2, self._limit), (2, self._layers), (1, self._bad_layers),
            (1, self._unload), (2, self._export), (1, self._check), (3, self._rewrite),
            (8, self._command), (8, self._key), (4, self._click), (2, self._filter),
            (2, self._resize), (2, self._context_menu), (6, self._compare),
            (1, self._clear_comparison), (8, self._analyse), (1, self._report),
            (1, self._rest), (1, self._ncnn_options), (1, self._kernels), (1, self._bound),
            (3, self._match), (3, self._layout), (1, self._extract), (1, self._precision),
            (4, self._explain),
        ]  # fmt: skip
        total = sum(weight for weight, _ in self._weighted)
        self._chances = [weight / total for weight, _ in self._weighted]

    def act(self) -> str:
        """Run a random action; return its description."""
        place = int(self._rng.choice(len(self._weighted), p=self._chances))
        return self._weighted[place][1]()

    # Files

    def _open(self) -> str:
        path = self._one(self._files.models)
        if self._rng.random() < 0.7:
            self._session.next_model.set_sources([self._source()])
        if self._rng.random() < 0.1:
            path = path.with_suffix(".bin")
        if self._rng.random() < 0.2:
            self._window.opening.open_model(path)  # with the earlier choices for it
        else:
            self._session.open(path)
        return f"open {path.name}"

    def _open_bad(self) -> str:
        path = self._one(self._files.bad)
        self._session.open(path)
        return f"open {path.name}, which is no model"

    def _close(self) -> str:
        self._session.close_model()
        return "close the model"

    def _reload(self) -> str:
        self._session.reload()
        return "reload"

    def _rewrite(self) -> str:
        if self._rng.random() < 0.3:
            write_ncnn(self._files.folder, self._rng)
            return "export the ncnn pair again"
        write_branches(self._files.folder, self._rng)
        return "export the branches again"

    def _layers(self) -> str:
        self._session.load_layers(self._files.layers)
        return "load layers"

    def _bad_layers(self) -> str:
        self._session.load_layers(self._files.bad_layers)
        return "load bad layers"

    def _unload(self) -> str:
        self._session.unload_layers()
        return "unload layers"

    def _export(self) -> str:
        comparison = self._session.comparing.comparison
        compared = comparison.reference if comparison is not None else ""
        name = self._one([name for name in DUMPS if name != compared])  # that stays readable
        path = self._files.folder / name
        self._session.export_dump(path, DumpOptions(overwrite=True))
        return f"export to {path.name}"

    # Inputs

    def _feed(self) -> str:
        sources = [self._source() for _ in range(int(self._rng.integers(1, 3)))]
        self._session.set_source_list(sources)
        return f"feed {', '.join(source.text for source in sources)}"

    def _prepare(self) -> str:
        size = (int(self._rng.integers(2, 12)), int(self._rng.integers(2, 12)))
        self._session.set_inputs({}, ImageOptions(size=size))
        return f"image size {size}"

    def _set_shapes(self) -> str:
        graph = self._session.graph
        if graph is None or not graph.input_operands:
            return "no sizes to set"
        shapes = {}
        for operand in graph.input_operands:
            if operand.shape and self._rng.random() < 0.7:
                sizes = self._rng.integers(1, 9, len(operand.shape))
                shapes[operand.name] = tuple(int(size) for size in sizes)
        self._session.set_shapes(InputShapes(shapes))
        return f"sizes {shapes}"

    def _supply(self) -> str:
        operator = self._operator()
        if not operator:
            return "nothing to supply"
        path = self._one(self._files.arrays)
        try:
            self._session.supply(operator, parse_source(str(path)))
        except EngineError as exc:  # the file has not even a form
            return f"supply {operator}: {exc}"
        return f"supply {operator} from {path.name}"

    def _withdraw(self) -> str:
        operator = self._operator()
        if operator:
            self._session.withdraw(operator)
        return f"withdraw {operator}"

    # Running

    def _step(self) -> str:
        self._session.step()
        return "step"

    def _steps(self) -> str:
        count = int(self._rng.integers(2, 12))
        for _ in range(count):
            self._session.step()
        return f"{count} steps"

    def _resume(self) -> str:
        self._session.resume()
        return "continue"

    def _run_to(self) -> str:
        operator = self._operator()
        if operator:
            self._session.run_to(operator)
        return f"run to {operator}"

    def _step_back(self) -> str:
        self._session.step_back()
        return "step back"

    def _restart(self) -> str:
        self._session.restart()
        return "restart"

    def _stop(self) -> str:
        self._session.stop()
        return "stop"

    def _breakpoint(self) -> str:
        operator = self._operator()
        self._session.toggle_breakpoint(operator)
        return f"breakpoint {operator}"

    def _seed(self) -> str:
        seed = int(self._rng.integers(0, 5))
        self._session.set_seed(seed)
        return f"seed {seed}"

    def _backend(self) -> str:
        name = self._one(["auto", "numpy", "onnxruntime", "ncnn"])
        self._session.set_backend(name)
        return f"backend {name}"

    def _limit(self) -> str:
        limits: tuple[int | None, ...] = (None, 1000, 100_000)
        limit = self._one(limits)
        self._session.memory.set_limit(limit)
        return f"memory limit {limit}"

    def _check(self) -> str:
        self._session.studies.self_check()
        return "self-check"

    def _ncnn_options(self) -> str:
        options = self._one(["exact", "packing"])
        self._session.set_ncnn_options(options)
        return f"ncnn's options {options}"

    def _kernels(self) -> str:
        name = self._one(DUMPS)
        self._session.use_kernels_of(self._files.folder / name)
        return f"kernels of {name}"

    def _bound(self) -> str:
        bounds: tuple[int | None, ...] = (None, 1 << 20, 64 << 20)
        bound = self._one(bounds)
        self._session.memory.set_bound(bound)
        return f"memory bound {bound}"

    def _rest(self) -> str:
        QTest.qWait(int(1000 * _RESTED))
        return "rest"

    # Comparing

    def _compare(self) -> str:
        path = self._one([*self._files.references, *self._files.models])
        self._session.studies.compare(path, self._one([None, 1e-4, 0.0]))
        return f"compare with {path.name}"

    def _clear_comparison(self) -> str:
        self._window.actions_by_id["analyse.clear"].trigger()
        return "clear the comparison"

    def _analyse(self) -> str:
        names = ("nextOrigin", "previousOrigin", "flicker", "worstElement", "attention")
        name = f"analyse.{self._one(names)}"
        self._window.actions_by_id[name].trigger()
        return f"command {name}"

    def _explain(self) -> str:
        """Ask where an element comes from; the graph may state a size that it has not."""
        graph = self._session.graph
        names = list(graph.operands) if graph is not None else []
        if graph is None or not names:
            return "nothing to explain"
        name = self._one(names)
        sizes = [size for size in graph.operand(name).shape or () if isinstance(size, int)]
        index = tuple([int(self._rng.integers(max(size, 1))) for size in sizes])
        ask = self._one([self._session.explain, self._session.trace])
        ask(name, index)
        return f"{ask.__name__} {name}{list(index)}"

    def _report(self) -> str:
        self._session.studies.write_report(self._files.folder / "report.html")
        return "write the report"

    def _match(self) -> str:
        """Match by hand, but not in a folder of samples, where a file would be written."""
        path, rows = self._session.model_path, list(self._session.comparing.rows)
        if path is None or path.parent != self._files.folder or not rows:
            return "nothing to match"
        kind, operand = int(self._rng.integers(4)), self._one(rows)
        if kind == 0:
            self._session.studies.undo_match()
            return "undo a match by hand"
        if kind == 1:
            self._session.studies.remove_match(operand)
            return f"remove the match of {operand}"
        keys = [None, *(entry.key for entry in self._session.comparing.entries)]
        key = self._one(keys)
        self._session.studies.match_by_hand(operand, key)
        return f"match {operand} with {key}"

    def _extract(self) -> str:
        operators = (self._operator() or "*", self._one(["conv*", "relu", "nothing"]))
        expects = bool(self._rng.random() < 0.3)
        self._session.studies.extract(
            operators, self._files.folder / "cut", expects_reference=expects, overwrites=True
        )
        return f"extract {' and '.join(operators)}"

    def _precision(self) -> str:
        formats: tuple[FormatName, ...] = ("float16", "bfloat16", "int8", "int8-per-channel")
        wanted = self._one([None, 1e-3])
        self._session.studies.simulate_precision((self._one(formats),), wanted)
        return "simulate precision"

    # Views

    def _layout(self) -> str:
        """Say what the dimensions of the shown operand mean; at times that it is inferred."""
        operand, layouts = self._session.operand, self._session.layouts
        found = layouts.find(operand) if operand else None
        if found is None:
            return "no layout to change"
        if not found.axes or self._rng.random() < 0.3:
            layouts.choose(operand, None)
            return f"infer the layout of {operand}"
        place = int(self._rng.integers(len(found.axes)))
        size = found.axes[place].size
        grids = list(grids_of(size)) if isinstance(size, int) else []
        axis = self._one([*grids, Axis(self._one(list(Kind)), size)])
        layouts.choose(operand, Layout((*found.axes[:place], axis, *found.axes[place + 1 :])))
        return f"dimension {place} of {operand} is {axis.text()}"

    def _select(self) -> str:
        operator = self._operator()
        self._session.select(operator)
        return f"select {operator}"

    def _show_operand(self) -> str:
        graph = self._session.graph
        names = list(graph.operands) if graph is not None else []
        if not names:
            return "nothing to show"
        name = self._one(names)
        self._session.show_operand(name)
        return f"show operand {name}"

    def _command(self) -> str:
        actions = [
            action
            for action in self._window._all_actions()
            if action.objectName() and action.isEnabled() and not action.text().endswith("…")
            if action.objectName() not in _LEFT_OUT
        ]
        action = self._one(actions)
        action.trigger()
        return f"command {action.objectName()}"

    def _key(self) -> str:
        key = self._one(_KEYS)
        widget = QApplication.focusWidget() or self._window
        shift = key in _SHIFTED and self._rng.random() < 0.5
        held = Qt.KeyboardModifier.ShiftModifier if shift else Qt.KeyboardModifier.NoModifier
        QTest.keyClick(widget, key, held)
        return f"key {'Shift+' * shift}{key.name}"

    def _click(self) -> str:
        widget, at = self._place()
        QTest.mouseClick(widget, Qt.MouseButton.LeftButton, pos=at)
        return f"click {type(widget).__name__} at {at.x()}, {at.y()}"

    def _context_menu(self) -> str:
        widget, at = self._place()
        event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, at, widget.mapToGlobal(at))
        QApplication.sendEvent(widget, event)
        return f"context menu of {type(widget).__name__} at {at.x()}, {at.y()}"

    def _filter(self) -> str:
        text = self._one(["", "conv", "r1", "(", "zzz"])
        self._window.operators_panel.filter_box.setText(text)
        return f"filter {text!r}"

    def _resize(self) -> str:
        width, height = int(self._rng.integers(600, 2000)), int(self._rng.integers(400, 1100))
        self._window.resize(width, height)
        return f"resize to {width} by {height}"

    # Random choices

    def _place(self) -> tuple[QWidget, QPoint]:
        """Return a random point in a widget."""
        parts: tuple[QWidget, ...] = (
            self._window.graph_view.canvas,
            self._window.operators_panel.table.viewport(),
            self._window.tensor_view,
            self._window.timeline_panel,
            self._window.comparison_panel.table.viewport(),
            self._window.tensor_view.strip.sides,
        )
        widget = self._one(parts)
        x = int(self._rng.integers(max(widget.width(), 1)))
        y = int(self._rng.integers(max(widget.height(), 1)))
        return widget, QPoint(x, y)

    def _one(self, choices: Sequence[T]) -> T:
        return choices[int(self._rng.integers(len(choices)))]

    def _operator(self) -> str:
        graph = self._session.graph
        if graph is None or not graph.operators:
            return ""
        return self._one(graph.operators).name

    def _source(self) -> InputSource:
        if self._rng.random() < 0.5:
            return InputSource("random", seed=int(self._rng.integers(9)))
        if self._rng.random() < 0.5:
            return InputSource("constant", value=float(self._rng.integers(-3, 4)))
        path = self._one(self._files.arrays)
        return InputSource("npz" if path.suffix == ".npz" else "npy", path=path)
