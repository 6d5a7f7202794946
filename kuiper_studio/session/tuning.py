"""The tuning of kernels, which the engine does while nothing is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from kuiper_studio.engine_service.protocol import TuningRequest

if TYPE_CHECKING:
    from kuiper_studio.engine_service.protocol import Tuned
    from kuiper_studio.session.client import EngineClient
    from kuiper_studio.session.workspace import Workspace

__all__ = ["Tuning"]


class Tuning(QObject):
    """Whether the engine tunes kernels while it rests, and how far it has come.

    Parameters
    ----------
    client : EngineClient
        Tells the engine.
    workspace : Workspace
        Its log says when kernels are tuned, and which are wrong.

    Attributes
    ----------
    allowed : bool

    Signals
    -------
    progressed
        How far the engine has come, as a text; ``""`` when it does not tune.
    """

    progressed = Signal(str)

    def __init__(
        self, client: EngineClient, workspace: Workspace, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._client, self._workspace = client, workspace
        self.allowed = True

    def allow(self, *, allowed: bool) -> None:
        """Let the engine tune, or not; silent when nothing changes."""
        if allowed != self.allowed:
            self.allowed = allowed
            self._client.send(TuningRequest(allowed))
            negation = "" if allowed else "not "
            self._workspace.log("info", f"kernels are {negation}tuned at rest")
            self.progressed.emit("")

    def take(self, answer: Tuned) -> None:
        """Tell what the engine reports of the open model."""
        for kernel in answer.wrong:
            self._workspace.log(
                "warning",
                f"{kernel} computes other numbers than NumPy; open the input again to compute "
                "without it",
            )
        if answer.done == answer.total:
            self._workspace.log("info", "kernels are tuned; the next input uses the fastest")
            self.progressed.emit("")
        else:
            self.progressed.emit(f"Tuning kernels… {answer.done} of {answer.total}")
