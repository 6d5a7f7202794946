"""The banner over the centre that tells where the export is not what the model was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Slot

from engine.errors import capitalized
from engine.text import format_count
from kuiper_studio.panels.notice_strip import NoticeStrip

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from kuiper_studio.engine_service.protocol import FaultNote
    from kuiper_studio.session import StudioSession
    from kuiper_studio.theme import Theme

__all__ = ["ExportFaultsBanner"]


class ExportFaultsBanner(NoticeStrip):
    """Tells of the session's certain `export_faults`, one at a time, and goes to them.

    Suspicions are in the log only. The banner gives way to that of a failure, which names the
    fault if it comes from one.

    Parameters
    ----------
    session : StudioSession
    theme : Theme
    """

    def __init__(
        self, session: StudioSession, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__(theme, parent)
        self.setObjectName("exportFaults")
        self._session = session
        self._place = 0
        self._is_dismissed = False
        self._go_to, self._next = self.add_button("Go to operator"), self.add_button("Next")
        self._go_to.setToolTip("Select the operator that the export states wrongly")
        self._next.setToolTip("Tell of the next fault of the export")
        self._go_to.clicked.connect(self._select)
        self._next.clicked.connect(self._show_next)
        self.close_button.clicked.connect(self._dismiss)
        session.graph_changed.connect(self._start)
        session.export_faults_changed.connect(self._start)
        session.settled.connect(self._refresh)

    @Slot()
    def _start(self) -> None:
        self._place, self._is_dismissed = 0, False
        self._refresh()

    @Slot()
    def _dismiss(self) -> None:
        self._is_dismissed = True
        self._refresh()

    @Slot()
    def _select(self) -> None:
        faults = self._certain()
        if faults:
            self._session.select(faults[self._place].operator)

    @Slot()
    def _show_next(self) -> None:
        self._place = (self._place + 1) % max(1, len(self._certain()))
        self._refresh()

    def _certain(self) -> list[FaultNote]:
        return [fault for fault in self._session.export_faults if fault.certain]

    @Slot()
    def _refresh(self) -> None:
        faults = self._certain()
        if not faults or self._is_dismissed or self._session.failure is not None:
            self.clear()
            return
        fault = faults[self._place]
        title = "The export is not what the model was"
        if len(faults) > 1:
            title += f", at {format_count(len(faults), 'operator')}"
        text = f"{fault.operator}: {fault.what}. {capitalized(fault.remedy)}."
        self._next.setVisible(len(faults) > 1)
        self.show_notice(title, text)
