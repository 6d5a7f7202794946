"""The data set that is shown: what a sweep found, and the sweep that runs."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from PySide6.QtCore import QObject, QProcess, QTimer, Signal, Slot

from engine.errors import EngineError, SweepError
from kuiper_studio.background import Background, Done
from kuiper_studio.engine_service.channel_totals import ChannelTotals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from engine.datasets import OperandSummary, Sweep, SweptModel
    from engine.runtime import RuntimeGraph
    from kuiper_studio.engine_service.channels import ChannelView
    from kuiper_studio.engine_service.sweep_process import SweepJob

__all__ = ["Sweeping"]

_PROCESS: Final = "kuiper_studio.engine_service.sweep_process"
_TEXT: Final = "parameters"
_WEIGHTS: Final = "weights"
_PATIENCE: Final = 8000  # ms that a cancelled sweep has to end by itself


class Sweeping(QObject):
    """Runs sweeps in a process of their own, and holds the opened results.

    Parameters
    ----------
    graph : callable
        Returns the graph of the open model.

    Attributes
    ----------
    found : Sweep or None
        The results that are shown; of the open model, or of another version of it.
    difference : str
        What was another in that version: ``"weights"``, for example; ``""`` if it is this one,
        or not known yet.
    progress : (int, int) or None
        Inputs that are done, and all of them; None while no sweep runs. (0, 0) before its first
        inputs are done.
    is_cancelled : bool
        Whether the sweep that runs is about to end.
    stopped : (int, int) or None
        The progress of the last sweep, if it was cancelled and no results are shown since.

    Signals
    -------
    changed
        Other results are shown, or none, or it is known of which version they are.
    progressed
        A sweep has begun, gone on or ended.
    failed : str
        Why a sweep has failed.
    """

    changed = Signal()
    progressed = Signal()
    failed = Signal(str)

    def __init__(
        self, graph: Callable[[], RuntimeGraph | None], parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._graph = graph
        self.found: Sweep | None = None
        self.difference = ""
        self._background = Background(self)
        self._background.finished.connect(self._on_compared)
        self.progress: tuple[int, int] | None = None
        self._process: QProcess | None = None
        self._model: str | None = None  # that it runs, while it is the open one
        self._rest = b""
        self._end: dict[str, Any] = {}
        self.is_cancelled = False
        self.stopped: tuple[int, int] | None = None
        self._late = QTimer(self, singleShot=True, interval=_PATIENCE)
        self._late.timeout.connect(self._end_it)

    # Results

    def open(self, path: str | Path) -> None:
        """Show the results in a folder.

        Of which version of the model they are is known later: large weights are hashed on
        another thread.

        Raises
        ------
        SweepError
            If there are none, or they are of a model with other operators.
        """
        from engine.datasets import open_sweep

        found = open_sweep(path)
        operands = found.operands  # read now, so that what is damaged is reported here
        graph = self._graph()
        text = _hash_of(graph.param_path) if graph is not None else None
        if graph is None or not (text == found.model.sha256 or _fits(graph, operands)):
            raise SweepError(
                f"{path} holds a data set run through another model: {found.model.name}"
            )
        self.found, self.stopped = found, None
        self.difference = "" if text in {None, found.model.sha256} else _TEXT
        self._background.submit(found, _has_weights, found.model, graph.bin_path)
        self.changed.emit()

    def clear(self) -> None:
        """Show no results; silent when there are none."""
        if self.found is not None:
            self.found, self.difference = None, ""
            self.changed.emit()

    def operand(self, name: str) -> OperandSummary | None:
        """Return what an operand held over the data set; None if that is not known."""
        return self.found.operands.get(name) if self.found is not None else None

    def totals(self, name: str, view: ChannelView) -> ChannelTotals | None:
        """Return what the channels of an operand held over the data set, as they are viewed.

        None where the channels were others.
        """
        summary = self.operand(name)
        if summary is None or self.found is None or summary.channels.axis is None:
            return None
        if not self.has_channels_of(name, view):
            return None
        channels = summary.channels
        finite = channels.count - channels.nan - channels.inf
        inputs = self.found.inputs.done
        return ChannelTotals(
            inputs,
            int(channels.count[0]),
            channels.min,
            channels.max,
            channels.mean,
            np.nan_to_num(channels.std) ** 2 * finite,
            finite,
            channels.zeros,
            np.rint(channels.dead * inputs).astype(np.int64),
            np.arange(len(channels.dead)),
        )

    def has_channels_of(self, name: str, view: ChannelView) -> bool:
        """Return whether the channels of a view are those that the data set tells apart.

        Of folded tokens these are the features, counted over all tokens, also over those that
        are not on the grid.
        """
        summary = self.operand(name)
        if summary is None or summary.channels.axis is None:
            return False
        axis = summary.channels.axis + len(view.shape) - len(summary.shape)
        size = len(summary.channels.dead)
        if axis < 0 or view.shape[axis] != size:
            return False
        plan = view.plan
        if plan is None:
            return view.axis == axis
        first = sum(len(parts) for parts in plan.cells[:axis])
        return plan.cells[axis] == (size,) and plan.roles[view.axis].cells == (first,)

    # Running

    @property
    def is_running(self) -> bool:
        """Whether a sweep runs."""
        return self._process is not None

    def run(self, job: SweepJob) -> None:
        """Run a sweep, and show its results when it ends; ignored while one runs."""
        if self._process is not None:
            return
        process = self._process = QProcess(self)
        process.setProcessChannelMode(QProcess.ProcessChannelMode.SeparateChannels)
        process.readyReadStandardOutput.connect(self._on_said)
        process.finished.connect(self._on_finished)
        process.errorOccurred.connect(self._on_error)
        self._rest, self._end, self.is_cancelled = b"", {}, False
        self.progress, self.stopped = (0, 0), None
        self._model = job.model
        process.start(sys.executable, ["-m", _PROCESS])
        process.write(job.to_line().encode())
        self.progressed.emit()

    def cancel(self) -> None:
        """End the sweep that runs; what is finished is kept in its folder."""
        if self._process is not None and not self.is_cancelled:
            self.is_cancelled = True
            self._process.closeWriteChannel()
            self._late.start()
            self.progressed.emit()

    def forget(self) -> None:
        """Forget the results and end what runs: another model is open."""
        self.cancel()
        self._model = self.stopped = None
        self.clear()

    def close(self) -> None:
        """End what runs, for the window closes."""
        self._background.close()
        process = self._process
        if process is not None:
            process.finished.disconnect(self._on_finished)
            process.errorOccurred.disconnect(self._on_error)
            process.closeWriteChannel()
            if not process.waitForFinished(1000):
                process.kill()
                process.waitForFinished(1000)
            self._drop()

    @Slot(object)
    def _on_compared(self, done: Done) -> None:
        if done.key is self.found and done.result is False:
            text = self.difference
            self.difference = f"{text} and {_WEIGHTS}" if text else _WEIGHTS
            self.changed.emit()

    def _drop(self) -> None:
        self._late.stop()
        if self._process is not None:
            self._process.deleteLater()
        self._process, self.progress = None, None

    @Slot()
    def _end_it(self) -> None:
        if self._process is not None:
            self._process.kill()

    @Slot()
    def _on_said(self) -> None:
        if self._process is None:
            return
        *lines, self._rest = (
            self._rest + bytes(self._process.readAllStandardOutput().data())
        ).split(b"\n")
        for line in lines:
            self._take(line)

    def _take(self, line: bytes) -> None:
        try:
            said = json.loads(line)
        except ValueError:
            return  # of a library
        if not isinstance(said, dict):
            return
        if "done" in said:
            self.progress = int(said["done"]), int(said["total"])
            self.progressed.emit()
        elif "finished" in said or "failed" in said:
            self._end = said

    @Slot()
    def _on_error(self) -> None:
        process = self._process
        if process is not None and process.state() is QProcess.ProcessState.NotRunning:
            self._on_finished()

    @Slot()
    def _on_finished(self) -> None:
        process = self._process
        if process is None:
            return
        self._on_said()
        errors = bytes(process.readAllStandardError().data()).decode(errors="replace")
        end = self._end
        # Cancelled as its last results were written, it may still have finished.
        cancelled = self.is_cancelled and (self._model is None or "finished" not in end)
        if cancelled and self._model is not None:
            self.stopped = self.progress
        self._drop()
        self.progressed.emit()
        if cancelled:
            return
        if "finished" in end:
            try:
                self.open(str(end["finished"]))
            except EngineError as exc:
                self.failed.emit(str(exc))
            return
        lines = errors.split("\n")
        last = next((each for each in reversed(lines) if each.strip()), "its process ended")
        self.failed.emit(str(end.get("failed") or last))


def _fits(graph: RuntimeGraph, operands: Mapping[str, OperandSummary]) -> bool:
    """Whether a model has all operands of results, of the same operators."""
    for name, summary in operands.items():
        operand = graph.operands.get(name)
        producer = operand.producer if operand is not None else None
        if producer is None or (producer.name, producer.type) != (
            summary.operator, summary.type,
        ):  # fmt: skip
            return False
    return bool(operands)


def _has_weights(model: SweptModel, path: Path | None) -> bool | None:
    """Return whether weights are those of the results, on any thread; None if unreadable."""
    found = _hash_of(path) if path is not None else None
    if path is not None and found is None:
        return None
    return found == model.bin_sha256


def _hash_of(path: Path) -> str | None:
    from engine.dump.manifest import file_hash

    try:
        return file_hash(path, _go_on)
    except OSError:
        return None


def _go_on() -> None:
    """Nothing cancels the hashing of a file."""
