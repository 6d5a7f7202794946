"""Runs random actions on a window for some time, and reports wrong behaviour.

Prints each finding with the seed and the last actions. Exit status 1 if there is a finding.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QSettings, QTimer, QtMsgType, qInstallMessageHandler
from PySide6.QtWidgets import QApplication

from kuiper_studio.app import make_window
from soak.actions import Actions
from soak.cancels import cancel_comparisons, install_exporter, run_bad_exporters
from soak.checks import differences
from soak.kills import kill_engines
from soak.models import make_files, write_ncnn
from soak.rewrites import rewrite_models
from soak.settling import SETTLED, handle_events
from soak.traces import Traces

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from kuiper_studio.main_window import MainWindow

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
BEAT_MS = 20
HARMLESS = ("propagateSizeHints", "This plugin does not support")


class Soak:
    """A window, the actions on it, and the findings.

    Parameters
    ----------
    window : MainWindow
    actions : Actions
    allowed : float
        Seconds that the window may be unresponsive.
    """

    def __init__(self, window: MainWindow, actions: Actions, allowed: float) -> None:
        self.findings: list[str] = []
        self._allowed = allowed
        self.window, self._actions = window, actions
        self._latest: deque[str] = deque(maxlen=25)
        self._beat = time.monotonic()
        self._longest = 0.0
        self._heart = QTimer(window, interval=BEAT_MS)
        self._heart.timeout.connect(self._on_beat)
        self._heart.start()

    @property
    def longest(self) -> float:
        """Longest time in seconds that the window was unresponsive."""
        return self._longest

    def find(self, what: str) -> None:
        """Record a finding."""
        self.findings.append(what)
        print(f"FINDING: {what}", flush=True)
        for line in self._latest:
            print(f"    {line}", flush=True)

    def act(self, number: int, rng: np.random.Generator) -> None:
        """Run one action, then the event loop for some milliseconds."""
        try:
            text = self._actions.act()
        except Exception:
            self._latest.append(f"{number} (failed)")
            self.find(traceback.format_exc())
        else:
            self._latest.append(f"{number} {text} -> {self.window.session.state.name}")
        QApplication.processEvents()
        handle_events(lambda: False, float(rng.choice([0, 0.001, 0.005, 0.03])))

    def check(self) -> None:
        """Wait until the session is idle, and compare."""
        session = self.window.session
        if not session.wait_idle(SETTLED):
            self.find(f"busy for {SETTLED:.0f} s: {session.progress}")
            return
        try:
            for difference in differences(self.window):
                self.find(difference)
        except Exception:
            self.find(traceback.format_exc())

    def _on_beat(self) -> None:
        now = time.monotonic()
        late, self._beat = now - self._beat - BEAT_MS / 1000, now
        self._longest = max(self._longest, late)
        if late > self._allowed:
            self.find(f"the window did not answer for {late:.1f} s")
        # Check here, because a modal dialog runs its own event loop within an action.
        opened = QApplication.activePopupWidget() or QApplication.activeModalWidget()
        if opened is not None:
            opened.close()


def main() -> int:
    """Run the soak and return the exit status."""
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--actions", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, help="end after so long at the latest")
    parser.add_argument("--every", type=int, default=40, help="actions between comparisons")
    parser.add_argument("--longest", type=float, default=2.0, help="seconds without an answer")
    parser.add_argument(
        "--kills", type=int, metavar="N", help="instead: kill the engine so many times"
    )
    parser.add_argument(
        "--rewrites", type=int, metavar="N",
        help="instead: export an open model again, so many times at each kind of moment",
    )  # fmt: skip
    parser.add_argument(
        "--cancels", type=int, metavar="N", help="instead: cancel so many comparisons"
    )
    parser.add_argument(
        "--exports", type=int, metavar="N", help="instead: so many exporters that do harm"
    )
    parser.add_argument(
        "--models", type=Path, nargs="+", default=[], metavar="FILE", help="models to open too"
    )
    parser.add_argument("--engine", choices=("process", "thread"), default="process")
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    with tempfile.TemporaryDirectory(prefix="soak-", ignore_cleanup_errors=True) as folder:
        return _soak(arguments, rng, Path(folder))


def _campaign(
    arguments: argparse.Namespace,
    window: MainWindow,
    traces: Traces,
    folder: Path,
    rng: np.random.Generator,
) -> tuple[str, Iterator[str]] | None:
    """Return the description of the requested campaign, and its findings."""
    if arguments.kills:
        digits = SAMPLES / "digits" / "digits.pnnx.param"
        paths = [digits, write_ncnn(folder, rng, "killed")]
        found = kill_engines(window, paths, folder, rng, arguments.kills)
        return f"{arguments.kills} kills", found
    if arguments.rewrites:
        count = 3 * arguments.rewrites
        found = rewrite_models(window, folder, rng, arguments.rewrites)
        return f"{count} exports over the open model", found
    if arguments.cancels:
        found = cancel_comparisons(window, traces, folder, rng, arguments.cancels)
        return f"{arguments.cancels} cancelled comparisons", found
    if arguments.exports:
        found = run_bad_exporters(window, traces, folder, rng, arguments.exports)
        return f"{arguments.exports} exporters that do harm", found
    return None


def _act(arguments: argparse.Namespace, soak: Soak, rng: np.random.Generator) -> str:
    """Run random actions; return their number."""
    started, done = time.monotonic(), 0
    while done < arguments.actions:
        if arguments.seconds and time.monotonic() - started > arguments.seconds:
            break
        done += 1
        soak.act(done, rng)
        if done % arguments.every == 0:
            soak.check()
    soak.check()
    return f"{done} actions"


def _soak(arguments: argparse.Namespace, rng: np.random.Generator, folder: Path) -> int:
    traces = Traces(folder)
    if arguments.exports:
        install_exporter(folder)
    files = make_files(folder, SAMPLES, rng)
    files.models.extend(path.resolve() for path in arguments.models)
    settings = QSettings(str(folder / "settings.ini"), QSettings.Format.IniFormat)
    window = make_window(settings=settings, engine=arguments.engine)
    traces.keep()
    window.resize(1440, 900)
    window.show()
    soak = Soak(window, Actions(window, files, rng), arguments.longest)

    def on_exception(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        soak.find("".join(traceback.format_exception(kind, error, trace)))

    def on_message(kind: QtMsgType, _: object, text: str) -> None:
        if kind is not QtMsgType.QtDebugMsg and not any(word in text for word in HARMLESS):
            soak.find(f"Qt says: {text}")

    sys.excepthook = on_exception
    qInstallMessageHandler(on_message)
    started = time.monotonic()
    campaign = _campaign(arguments, window, traces, folder, rng)
    if campaign is None:
        done = _act(arguments, soak, rng)
    else:
        done, findings = campaign
        for finding in findings:
            soak.find(finding)
    window.close()
    for left in traces.left():
        soak.find(left)
    qInstallMessageHandler(None)
    for number, finding in enumerate(soak.findings, 1):
        print(f"finding {number}: {finding}")  # again, as a log may be cut off at its beginning
    print(
        f"seed {arguments.seed}: {done} in {time.monotonic() - started:.0f} s, "
        f"{len(soak.findings)} findings; the window did not answer for "
        f"{soak.longest:.2f} s at most"
    )
    return 1 if soak.findings else 0


if __name__ == "__main__":
    sys.exit(main())
