"""The data set that is shown: what a sweep found, and the sweep that runs."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from PySide6.QtCore import QObject, QProcess, QTimer, Signal, Slot

from engine.errors import EngineError, SweepError
from kuiper_studio.engine_service.channel_totals import ChannelTotals

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from engine.datasets import OperandSummary, Sweep
    from engine.runtime import RuntimeGraph
    from kuiper_studio.engine_service.channels import ChannelView
    from kuiper_studio.engine_service.sweep_process import SweepJob

__all__ = ["Sweeping"]

_PROCESS: Final = "kuiper_studio.engine_service.sweep_process"
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
        The results that are shown; of the open model.
    progress : (int, int) or None
        Inputs that are done, and all of them; None while no sweep runs. (0, 0) before its first
        inputs are done.

    Signals
    -------
    changed
        Other results are shown, or none.
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
        self.progress: tuple[int, int] | None = None
        self._process: QProcess | None = None
        self._rest = b""
        self._end: dict[str, Any] = {}
        self._is_cancelled = False
        self._late = QTimer(self, singleShot=True, interval=_PATIENCE)
        self._late.timeout.connect(self._end_it)

    # Results

    def open(self, path: str | Path) -> None:
        """Show the results in a folder.

        Raises
        ------
        SweepError
            If there are none, or they are of another model.
        """
        from engine.datasets import open_sweep

        found = open_sweep(path)
        graph = self._graph()
        if graph is None or not _is_of(graph, found):
            raise SweepError(
                f"{path} holds a data set run through another model: {found.model.name}"
            )
        _ = found.operands  # read now, so that what is damaged is reported here
        self.found = found
        self.changed.emit()

    def clear(self) -> None:
        """Show no results; silent when there are none."""
        if self.found is not None:
            self.found = None
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
        channels = summary.channels
        axis = summary.channels.axis + len(view.shape) - len(summary.shape)
        if (
            view.plan is not None
            or view.axis != axis
            or view.shape[view.axis] != len(channels.dead)
        ):
            return None
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
        self._rest, self._end, self._is_cancelled = b"", {}, False
        self.progress = 0, 0
        process.start(sys.executable, ["-m", _PROCESS])
        process.write(job.to_line().encode())
        self.progressed.emit()

    def cancel(self) -> None:
        """End the sweep that runs; what is finished is kept in its folder."""
        if self._process is not None and not self._is_cancelled:
            self._is_cancelled = True
            self._process.closeWriteChannel()
            self._late.start()

    def forget(self) -> None:
        """Forget the results and end what runs: another model is open."""
        self.cancel()
        self.clear()

    def close(self) -> None:
        """End what runs, for the window closes."""
        process = self._process
        if process is not None:
            process.finished.disconnect(self._on_finished)
            process.errorOccurred.disconnect(self._on_error)
            process.closeWriteChannel()
            if not process.waitForFinished(1000):
                process.kill()
                process.waitForFinished(1000)
            self._drop()

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
        end, cancelled = self._end, self._is_cancelled
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


def _is_of(graph: RuntimeGraph, found: Sweep) -> bool:
    """Whether results are of the open model, by the content of its ``.param``."""
    from engine.dump.manifest import file_hash

    try:
        return file_hash(graph.param_path, _go_on) == found.model.sha256
    except OSError:
        return graph.param_path.name == found.model.name


def _go_on() -> None:
    """Nothing cancels the hashing of a small file."""
