"""All that a user does in the real window, and how long nothing else is answered meanwhile."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.graphs import write_model
from benchmarks.measure import Absent, Row
from benchmarks.processes import answer_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.measure import Bench

NETWORKS: Final = (
    "resnet18",
    "unet",
    "vit_b_32",
    "swin_t",
    "detr",
    "whisper",
    "gpt2",
    "yolov8",
)
_LARGE: Final = "random, near"
_COUNT: Final = 10_000
_FRAME_MS: Final = 16.0
_PRINTED: Final = 8  # of a network, the slowest first
_REST: Final = 0.08  # seconds without work after which an answer is complete; timers wait less
_PATIENCE: Final = 60.0
_SIZE: Final = (1440, 900)
_STEPS: Final = 8
# What ends the window, changes all of it, or asks the user or the system.
_LEFT_OUT: Final = (
    "file.",
    "help.",
    "view.theme",
    "view.toggleTheme",
    "view.fullScreen",
    "debug.selfCheck",
    "analyse.clear",
)


def rows(bench: Bench) -> Iterator[Row | str]:
    """The slowest interactions of each network; a frame is the target of all of them."""
    for name in (n for n in NETWORKS if not bench.only or n in bench.only):
        try:
            path, inputs = (
                bench.model(f"{name}.{end}") for end in ("pnnx.param", "inputs.npz")
            )
        except Absent as exc:
            yield str(exc)
        else:
            yield from _of_model(name, path, str(inputs))
    if not bench.only:
        path = write_model(bench.folder / "graph.param", _LARGE, _COUNT)
        yield from _of_model("10 000 operators", path, "random")


def _of_model(name: str, path: Path, inputs: str) -> Iterator[Row]:
    found = answer_of(interact, str(path), inputs)
    worst = sorted(found, key=lambda what: max(found[what], default=0.0), reverse=True)
    late = sum(max(found[what]) > _FRAME_MS / 1e3 for what in found)
    yield Row(f"{name}: of {len(found)} interactions, longer than a frame", "", late, unit="")
    for what in worst[:_PRINTED]:
        middle = 1e3 * statistics.median(found[what])
        yield Row(f"… {what}", f"{middle:.1f} ms", 1e3 * max(found[what]), _FRAME_MS, unit="ms")


@dataclass
class Watch:
    """Turns of the event loop, each timed by the processor time of the GUI thread.

    Other work on the machine does not count, nor does that of other threads.
    """

    application: Any
    window: Any
    seconds: dict[str, list[float]] = field(default_factory=dict)

    @property
    def _works(self) -> bool:
        graph, session = self.window.graph_view.canvas, self.window.session
        return session.busy or (session.graph is not None and not graph.laid_out)

    def act(self, what: str, action: Callable[[], object]) -> None:
        """Do something, and note the longest turn until nothing is left to do."""
        started = time.thread_time()
        action()
        longest = time.thread_time() - started
        self.seconds.setdefault(what, []).append(max(longest, self.settle()))

    def settle(self) -> float:
        """Wait until all is answered and drawn; gives the longest turn."""
        longest, begun = 0.0, time.monotonic()
        rested = begun
        while time.monotonic() - rested < _REST and time.monotonic() - begun < _PATIENCE:
            started = time.thread_time()
            self.application.processEvents()
            took = time.thread_time() - started
            longest = max(longest, took)
            if took > 2e-4 or self._works:
                rested = time.monotonic()
            time.sleep(0.001)
        return longest


def interact(path: str, inputs: str) -> dict[str, list[float]]:
    """Seconds of the longest turn, for each time that something was done, by what it was."""
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from PySide6.QtCore import QSettings

    from kuiper_studio.app import make_application, make_window

    application = make_application()
    with tempfile.TemporaryDirectory() as folder:
        settings = QSettings(f"{folder}/settings.ini", QSettings.Format.IniFormat)
        window = make_window(path, [inputs], settings=settings, engine="process")
        window.resize(*_SIZE)
        window.show()
        watch = Watch(application, window)
        watch.settle()
        _User(window, watch, folder).do_all()
        window.close()
    return watch.seconds


class _User:
    """Does everything in a window; a command counts by its id, the rest by what is done."""

    def __init__(self, window: Any, watch: Watch, folder: str) -> None:
        self._window, self._watch, self._folder = window, watch, folder
        self._session = window.session
        names = [each.name for each in window.session.graph.operators]
        self._some = names[:: max(len(names) // _STEPS, 1)]

    def do_all(self) -> None:
        """Before the first step, while stepping, and at the end of the run."""
        self._step()
        self._point_at_graph()
        self._select()
        self._point_at_tensor()
        self._search()
        self._group()
        self._explain()
        self._show_tabs()
        self._compare()
        self._trigger_all()

    def _act(self, what: str, action: Callable[[], object]) -> None:
        self._watch.act(what, action)

    def _trigger(self, command: str) -> None:
        action = self._window.actions_by_id[command]
        if action.isEnabled():
            self._act(command, action.trigger)

    def _step(self) -> None:
        for _ in range(_STEPS):
            self._trigger("debug.step")
        for _ in range(3):
            self._trigger("debug.stepBack")
        self._session.select(self._some[len(self._some) // 2])
        self._trigger("debug.runToSelected")
        self._trigger("debug.restart")
        self._trigger("debug.continue")

    def _select(self) -> None:
        for name in self._some:
            self._act("an operator is selected", lambda name=name: self._session.select(name))
        graph = self._session.graph
        for name in self._some:
            for operand in graph.operator(name).inputs[:1]:
                self._act(
                    "an operand is shown",
                    lambda operand=operand: self._session.show_operand(operand.name),
                )
        for _ in range(3):
            self._trigger("view.back")
            self._trigger("debug.nextOperator")
            self._trigger("edit.toggleBookmark")
        self._trigger("view.forward")
        panel = self._window.operators_panel
        for key in ("Down", "PageDown", "End", "Home"):
            self._press(panel.table, key, "the list")
        for column in (*range(panel.model.columnCount()), -1):
            self._act("the list is sorted", lambda column=column: panel.sort_by(column))

    def _point_at_graph(self) -> None:
        from PySide6.QtCore import Qt

        canvas = self._window.graph_view.canvas
        for command in ("view.fit", "view.zoomReset"):
            self._trigger(command)
            where = f"graph, {command.removeprefix('view.')}"
            self._hover(canvas, f"mouse over the {where}")
            for notches in (1, 1, -1, -1):
                self._turn(canvas, f"wheel on the {where}", notches)
            for _ in range(4):
                self._act(f"pan of the {where}", lambda: canvas.viewport.pan(-60, -20))
            self._drag(canvas, f"drag of the {where}", Qt.MouseButton.MiddleButton)
        for key in ("Right", "Right", "Left"):
            self._press(canvas, key, "the graph")

    def _point_at_tensor(self) -> None:
        from PySide6.QtCore import Qt

        pane = self._window.tensor_view.pane
        for name in self._some[1:-1:3]:
            self._session.select(name)
            self._watch.settle()
            for canvas, what in (
                (pane.mosaic, "mosaic"), (pane.plane, "channel"), (pane.vector, "vector"),
            ):  # fmt: skip
                if canvas.isVisible():
                    self._hover(canvas, f"mouse over the {what}")
                    self._turn(canvas, f"wheel on the {what}", 1)
                    self._turn(canvas, f"wheel on the {what}", -1)
                    self._click(canvas, f"click on the {what}")
            for channel in (1, 2, 0):
                self._act("another channel", lambda channel=channel: pane.show_channel(channel))
            chosen = pane.range_bar.range_chosen
            for high in (1.0, 0.5):
                self._act("range", lambda chosen=chosen, high=high: chosen.emit(-high, high))
            if pane.plane.isVisible():
                loupe = pane.actions_table["tensor.loupe"]
                self._act("loupe", loupe.trigger)
                self._hover(pane.plane, "mouse with the loupe")
                self._act("loupe", loupe.trigger)
                left, held = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ShiftModifier
                self._drag(pane.plane, "rectangle", left, held)
            for action in pane.actions_table.all():
                self._trigger_twice(action)

    def _search(self) -> None:
        self._trigger("edit.find")
        field = self._window.graph_view.find_bar.field
        for text in ("conv", "kernel_size=(3,3)", "max > 100", "has nan", "*x*"):
            field.clear()
            for end in range(1, len(text) + 1):
                self._act(f"search for {text}", lambda text=text[:end]: _type(field, text))
            for command in ("edit.findNext", "edit.findPrevious"):
                self._trigger(command)
        self._trigger("edit.clearMarks")

    def _group(self) -> None:
        canvas = self._window.graph_view.canvas
        canvas.set_grouping(False)
        self._watch.settle()
        self._act("groups are shown", lambda: canvas.set_grouping(True))
        for _ in range(3):
            cards = [box.card for box in canvas._scene.boxes if box.card is not None]
            if not cards:
                break
            largest = max(cards, key=lambda card: card.group.size).group
            self._act("a group is selected", lambda group=largest: canvas.pick_group(group))
            self._trigger("view.openGroup")
        for command in ("view.closeGroup", "view.openAllGroups", "view.closeAllGroups"):
            self._trigger(command)
        self._act("groups are not shown", lambda: canvas.set_grouping(False))

    def _explain(self) -> None:
        tensor = self._window.tensor_view
        for name in self._some:
            self._session.select(name)
            self._watch.settle()
            array = tensor.pane.model.array
            if array is None:
                continue
            place = tuple(size // 2 for size in array.shape)
            self._act(
                "an element is picked", lambda place=place: tensor.pane.show_element(place)
            )
            for command in ("analyse.explain", "analyse.history"):
                self._trigger(command)
            self._act("provenance upstream", self._walk_upstream)
        for command in ("analyse.overlay", "analyse.output", "analyse.attention"):
            self._trigger(command)
        panel = self._window.attention_panel
        for query in (1, 3, 5):
            if panel.isVisible():
                self._act("a query of attention", lambda query=query: panel._pick(0, query))

    def _walk_upstream(self) -> None:
        panel = self._window.provenance_panel
        if panel.model.rowCount():
            panel.table.activated.emit(panel.model.index(0, 0))

    def _show_tabs(self) -> None:
        tensor = self._window.tensor_view
        for name in self._some[1:4]:
            self._session.select(name)
            self._watch.settle()
            self._act("a tab is added", tensor.lock)
        for index in (1, 2, 0, 1):
            self._act(
                "another tab", lambda index=index: tensor.strip.tabs.setCurrentIndex(index)
            )
        beside = tensor.pane.actions_table["tensor.beside"]
        if beside.isEnabled():
            self._act("tabs side by side", beside.trigger)
            for canvas in tensor.pane.parts.all_canvases:
                if canvas.isVisible():
                    self._hover(canvas, "mouse over linked tabs")
                    self._turn(canvas, "wheel on linked tabs", 1)
            self._act("tabs side by side", beside.trigger)
        for _ in tensor.locked:
            self._act("a tab is closed", lambda: tensor.close_tab(1))

    def _compare(self) -> None:
        from engine.dump import DumpOptions

        place = Path(self._folder, "reference")
        self._act("a dump", lambda: self._session.export_dump(place, DumpOptions()))
        self._act("a comparison", lambda: self._session.studies.compare(place, 0.0))
        for name in self._some[1:-1:3]:
            self._session.select(name)
            self._watch.settle()
            for _ in range(2):
                self._trigger("analyse.flicker")
            self._trigger("analyse.worstElement")

    def _trigger_all(self) -> None:
        # Some are made anew by others, as those of bookmarks are.
        for command in [action.objectName() for action in self._window._all_actions()]:
            actions = {each.objectName(): each for each in self._window._all_actions()}
            if command in actions and not command.startswith(_LEFT_OUT):
                self._trigger_twice(actions[command])

    def _trigger_twice(self, action: Any) -> None:
        """Trigger a command, and undo what can be checked."""
        from shiboken6 import isValid

        for _ in range(1 + action.isCheckable()):
            if isValid(action) and action.isEnabled() and not action.text().endswith("…"):
                self._act(action.objectName() or action.text(), action.trigger)

    def _hover(self, widget: Any, what: str) -> None:
        from PySide6.QtCore import QPoint
        from PySide6.QtTest import QTest

        for step in range(1, _STEPS):
            at = QPoint(widget.width() * step // _STEPS, widget.height() * (step % 5 + 1) // 7)
            self._act(what, lambda at=at: QTest.mouseMove(widget, at))

    def _turn(self, widget: Any, what: str, notches: int) -> None:
        from PySide6.QtCore import QPoint, QPointF, Qt
        from PySide6.QtGui import QWheelEvent
        from PySide6.QtWidgets import QApplication

        at = QPointF(widget.rect().center())
        event = QWheelEvent(
            at, widget.mapToGlobal(at), QPoint(), QPoint(0, 120 * notches),
            Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier,
            Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        self._act(what, lambda: QApplication.sendEvent(widget, event))

    def _click(self, widget: Any, what: str) -> None:
        from PySide6.QtCore import Qt
        from PySide6.QtTest import QTest

        left = Qt.MouseButton.LeftButton
        self._act(what, lambda: QTest.mouseClick(widget, left, pos=widget.rect().center()))

    def _drag(self, widget: Any, what: str, button: Any, *modifiers: Any) -> None:
        from PySide6.QtCore import QPoint
        from PySide6.QtTest import QTest

        middle = widget.rect().center()
        self._act(what, lambda: QTest.mousePress(widget, button, *modifiers, pos=middle))
        for step in range(1, 5):
            at = middle + QPoint(9 * step, 7 * step)
            self._act(what, lambda at=at: QTest.mouseMove(widget, at))
        self._act(what, lambda: QTest.mouseRelease(widget, button, *modifiers, pos=at))

    def _press(self, widget: Any, key: str, where: str) -> None:
        from PySide6.QtCore import Qt
        from PySide6.QtTest import QTest

        self._act(f"{key} in {where}", lambda: QTest.keyClick(widget, Qt.Key[f"Key_{key}"]))


def _type(field: Any, text: str) -> None:
    field.setText(text)
    field.textEdited.emit(text)
