"""What the user has the engine find out about a run, beside running it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Signal

from engine.differences import TOLERANCE
from kuiper_studio.engine_service.protocol import (
    Compared,
    CompareRequest,
    CorrectRequest,
    Extracted,
    ExtractRequest,
    OtherRun,
    PrecisionRequest,
    Progress,
    ReportRequest,
    SelfChecked,
    SelfCheckRequest,
    Simulated,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from engine.precision import FormatName
    from engine.runtime import RuntimeGraph
    from kuiper_studio.engine_service.protocol import Request
    from kuiper_studio.session.comparing import Comparing
    from kuiper_studio.session.precision import Precision
    from kuiper_studio.session.workspace import Workspace

    Begin: TypeAlias = Callable[[Progress, Callable[[int], Request]], None]

__all__ = ["Studies"]

_LISTED: Final = 50  # of what may be as many as there are operators


class Studies(QObject):
    """Self-checks, comparisons, reproducers and simulations of the open model.

    They change no value, and nothing happens while the engine is busy or no model is open.

    Parameters
    ----------
    begin : callable
        Sends a request, with the progress that is shown meanwhile, unless the engine is busy.
    graph : callable
        Returns the open model; None for none.
    comparing : Comparing
        The comparison that is shown.
    precision : Precision
        The simulations that are shown.
    workspace : Workspace
        Its log says what was found.

    Signals
    -------
    self_checked
        A `SelfCheck` that was not cancelled.
    extracted
        Path of a folder to which operators were written.
    """

    self_checked = Signal(object)
    extracted = Signal(object)

    def __init__(
        self,
        begin: Begin,
        graph: Callable[[], RuntimeGraph | None],
        comparing: Comparing,
        precision: Precision,
        workspace: Workspace,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._begin, self._graph = begin, graph
        self._comparing, self._precision, self._workspace = comparing, precision, workspace
        self._takers: dict[type, Callable[..., None]] = {
            SelfChecked: self._on_self_checked,
            Compared: self._on_compared,
            Extracted: self._on_extracted,
            Simulated: self._on_simulated,
        }

    # Requests

    def self_check(self, tolerance: float = TOLERANCE) -> None:
        """Compare every backend with NumPy on the model and its inputs; see `self_checked`."""
        self._begin(
            Progress("Self-check", 0, self._operator_count()),
            lambda run_id: SelfCheckRequest(run_id, tolerance),
        )

    def compare(self, reference: str | Path | OtherRun, tolerance: float | None = None) -> None:
        """Compare the model and its inputs with a reference; see `Comparing`.

        Parameters
        ----------
        reference : str, Path or OtherRun
            What `engine.open_reference` opens, or another run of the model.
        tolerance : float, optional
            For float32, relative to the reference's largest element.
        """
        given = reference if isinstance(reference, OtherRun) else Path(reference)
        self._begin(
            Progress(f"Comparing with {given.name}"),
            lambda run_id: CompareRequest(run_id, given, tolerance),
        )

    def match_by_hand(self, operand: str, key: str | None) -> None:
        """Match an operand with a tensor of the reference, and compare again.

        The match is kept in a file beside the model.

        Parameters
        ----------
        operand : str
        key : str or None
            None for an operand that the reference does not have.
        """
        self._correct({**self._comparing.corrections, operand: key})

    def remove_match(self, operand: str) -> None:
        """Remove the match by hand of an operand, and compare again."""
        known = self._comparing.corrections
        self._correct({name: key for name, key in known.items() if name != operand})

    def undo_match(self) -> None:
        """Undo the last match by hand, or its removal, and compare again."""
        before = self._comparing.undone_corrections
        if before is not None:
            self._correct(before, undoes=True)

    def _correct(self, corrections: Mapping[str, str | None], *, undoes: bool = False) -> None:
        comparing = self._comparing
        if comparing.comparison is not None and corrections != comparing.corrections:
            self._begin(
                Progress("Comparing again"),
                lambda run_id: CorrectRequest(run_id, dict(corrections), undoes),
            )

    def write_report(self, path: str | Path) -> None:
        """Write the comparison as a page of HTML."""
        if self._comparing.comparison is not None:
            self._begin(
                Progress(f"Writing {Path(path).name}"),
                lambda run_id: ReportRequest(run_id, Path(path)),
            )

    def extract(
        self,
        operators: tuple[str, ...],
        path: str | Path,
        *,
        expects_reference: bool = False,
        overwrites: bool = False,
    ) -> None:
        """Write operators as a model of their own, with data and a check; see `extracted`.

        Parameters
        ----------
        operators : tuple of str
            Names, types or execution indexes, with ``*`` and ``?``.
        path : str or Path
            Of the folder.
        expects_reference : bool
            Whether the reference's tensors are expected, not ours.
        overwrites : bool
            Whether to replace what is a reproducer already.
        """
        folder = Path(path)
        self._begin(
            Progress(f"Writing {folder.name}"),
            lambda run_id: ExtractRequest(
                run_id, operators, folder, expects_reference, overwrites
            ),
        )

    def simulate_precision(
        self, formats: tuple[FormatName, ...], wanted_error: float | None = None
    ) -> None:
        """Simulate formats of lower precision; see `Precision`.

        Parameters
        ----------
        formats : tuple of str
        wanted_error : float, optional
            For which operators to keep in float32 are chosen.
        """
        self._begin(
            Progress("Simulating precision", 0, self._operator_count()),
            lambda run_id: PrecisionRequest(run_id, formats, wanted_error),
        )

    def _operator_count(self) -> int:
        graph = self._graph()
        return len(graph.operators) if graph is not None else 0

    # Replies

    def take(
        self, answer: SelfChecked | Compared | Extracted | Simulated, request: Request
    ) -> None:
        """Show and log what a study has found."""
        self._takers[type(answer)](answer, request)

    def _on_self_checked(self, answer: SelfChecked, _: Request) -> None:
        found, log = answer.found, self._workspace.log
        for comparison in found.differing[:_LISTED]:
            log("warning", f"self-check: {comparison.sentence}")
        log("info" if found.agrees else "warning", f"self-check: {found.summary}")
        if not found.cancelled:
            self.self_checked.emit(found)

    def _on_compared(self, answer: Compared, request: Request) -> None:
        comparison = answer.comparison
        if comparison is None:
            self._workspace.announce("the comparison was cancelled")
            return
        if answer.note:
            text = f"matches by hand are not kept: {answer.note}"
            self._workspace.announce(text, "warning")
        origins = ", ".join(origin.operator.name for origin in comparison.origins[:_LISTED])
        text = f"compared with {comparison.reference}: {comparison.verdict}"
        level = "info" if comparison.verdict == "same" else "warning"
        self._workspace.log(level, f"{text}, first in {origins}" if origins else text)
        correction = request if isinstance(request, CorrectRequest) else None
        self._comparing.show(answer, comparison, correction)

    def _on_extracted(self, answer: Extracted, _: Request) -> None:
        if answer.path is None:
            self._workspace.announce("no operators were extracted: it was cancelled")
            return
        self._workspace.announce(f"reproducer written to {answer.path}")
        self.extracted.emit(answer.path)

    def _on_simulated(self, answer: Simulated, _: Request) -> None:
        if not answer.results:
            self._workspace.announce("the simulation of precision was cancelled")
            return
        names = ", ".join(each.simulation.format.name for each in answer.results)
        self._workspace.log("info", f"simulated {names}")
        self._precision.show(answer.results)
