"""The formats of lower precision that were simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

if TYPE_CHECKING:
    from kuiper_studio.engine_service.protocol import PrecisionResult

__all__ = ["Precision"]


class Precision(QObject):
    """The last simulation of the present model and inputs.

    Attributes
    ----------
    results : tuple of PrecisionResult
        One per format; empty before anything was simulated, and after the inputs have changed.

    Signals
    -------
    changed
        There are other results, or none.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.results: tuple[PrecisionResult, ...] = ()

    def show(self, results: tuple[PrecisionResult, ...]) -> None:
        """Take over results; silent when there were none, and are none."""
        if results or self.results:
            self.results = results
            self.changed.emit()
