"""Prints to a terminal, a pipe or a file, also if there is none of them."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, NoReturn

from engine.atomic import format_os_error
from engine.text import MINUS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tqdm import tqdm

__all__ = [
    "OutputError",
    "Terminated",
    "clear_line",
    "complain",
    "ended_by_signals",
    "flush",
    "forget_output",
    "prepare",
    "printable",
    "progress_shown",
    "say",
    "say_table",
]

_LONGEST_CELL: Final = 64
_PATIENCE: Final = 0.5  # seconds that work may take without a bar
_PLAIN_SIGNS: Final = str.maketrans({"×": "x", "…": "...", "µ": "u", MINUS: "-"})


class OutputError(Exception):
    """Standard output cannot be written."""


class Terminated(KeyboardInterrupt):
    """The process was asked to end.

    Attributes
    ----------
    number : int
        The signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def prepare() -> None:
    """Escape characters that the streams cannot encode, and silence the libraries' logs."""
    # Pillow logs what it also raises; without a handler Python would print it.
    logging.getLogger("PIL").addHandler(logging.NullHandler())
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def say(line: str = "") -> None:
    """Print a line of results.

    Raises
    ------
    BrokenPipeError
        If the reader has closed the pipe.
    OutputError
        If the line cannot be written.
    """
    if sys.stdout is None:  # started without one
        return
    try:
        sys.stdout.write(f"{_encodable(printable(line))}\n")
    except BrokenPipeError:
        raise
    except OSError as exc:
        raise OutputError(f"standard output cannot be written: {format_os_error(exc)}") from exc


def _encodable(text: str) -> str:
    """Replace our own special characters where the terminal lacks them."""
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return text.translate(_PLAIN_SIGNS)
    return text


def flush() -> None:
    """Write what is still buffered; raises the same errors as `say`."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as exc:
        raise OutputError(f"standard output cannot be written: {format_os_error(exc)}") from exc


def forget_output() -> None:
    """Discard what is still buffered, or the interpreter would report an error at exit."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def complain(sentence: str) -> None:
    """Print one line to standard error, if there is one."""
    if sys.stderr is not None:
        with suppress(OSError):
            words = " ".join(sentence.split())
            sys.stderr.write(f"kuiper-studio: {printable(words)}\n")
            sys.stderr.flush()


def clear_line() -> None:
    """Clear the progress bar that an ended process has left on the terminal."""
    if sys.stderr is not None and sys.stderr.isatty():
        with suppress(OSError):
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


@contextmanager
def progress_shown(title: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar with rate and time left, on a terminal only.

    Parameters
    ----------
    title : str
        The activity, e.g. ``running``.
    unit : str
        The things that are counted, in the plural.

    Yields
    ------
    callable
        Takes the number of things done, and of all.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    progress = _Progress(title, unit)
    try:
        yield progress.show
    finally:
        progress.close()


class _Progress:
    """A progress bar on standard error.

    Parameters
    ----------
    title, unit : str
        As in `progress_shown`.
    """

    def __init__(self, title: str, unit: str) -> None:
        self._title, self._unit = title, unit
        self._due = time.monotonic() + _PATIENCE
        self._bar: tqdm[NoReturn] | None = None

    def show(self, done: int, total: int) -> None:
        """Show how much is done; nothing during the first half second."""
        if self._bar is not None:
            self._bar.total = total
            self._bar.update(done - self._bar.n)
        elif time.monotonic() > self._due:
            self._bar = self._make(done, total)

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()

    def _make(self, done: int, total: int) -> tqdm[NoReturn]:
        from tqdm import tqdm

        tqdm.set_lock(threading.RLock())  # tqdm's own lock works across processes
        tqdm.monitor_interval = 0  # no monitoring thread
        return tqdm(
            desc=self._title,
            unit=f" {self._unit}",
            initial=done,
            total=total,
            leave=False,
            dynamic_ncols=True,
            file=sys.stderr,
        )


def printable(text: str) -> str:
    """Escape control characters: names come from files, and terminals obey such characters."""
    text = text.replace("\N{NO-BREAK SPACE}", " ")  # separates thousands
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def say_table(rows: Sequence[Sequence[str]], right: set[int]) -> None:
    """Print rows in columns, those in `right` right-aligned; long cells lose their middle."""
    shown = [[_elided(printable(cell)) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        cells = [
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        say("  ".join(cells).rstrip())


def _elided(text: str) -> str:
    if len(text) <= _LONGEST_CELL:
        return text
    half = _LONGEST_CELL // 2
    return f"{text[: half - 1]}…{text[-half:]}"


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Raise `Terminated` on a request to end, so that incomplete files are removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]

    def end(number: int, _frame: object) -> None:
        for each in earlier:  # a second request must not leave incomplete files behind
            signal.signal(each, signal.SIG_IGN)
        raise Terminated(number)

    earlier = {
        number: signal.signal(number, end)
        for number in numbers
        if signal.getsignal(number) is signal.SIG_DFL  # ignored, by nohup for example
    }
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
