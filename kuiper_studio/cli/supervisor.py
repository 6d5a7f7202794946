"""The process that the user started: it lets a child do the work, and outlives it.

Native code can end a process by a signal, without a word and with a status that tells a script
nothing. So every command works in a child process. When a signal ends that one, the user gets
one sentence: what happened, in which operator and library, and what to do. After a fault in a
library the command runs once more, without that library in that operator.

The child is forked before this process has imported more than a few small modules: memory that
both share and one of them writes is copied page by page, so a large process costs more to fork
than a new interpreter takes to start. Where the system cannot fork, or cannot tell who sent a
signal, commands work in the process itself. So does the window, whose engine has a process of
its own.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.activity import Activity, ActivityNote
from kuiper_studio.cli.commands import COMMANDS, FAILED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Run = Callable[[Sequence[str], "Supervision | None"], int]

__all__ = ["Supervision", "supervise"]

_WORDS: Final = {
    "SIGSEGV": "a segmentation fault",
    "SIGBUS": "a bus error",
    "SIGABRT": "an abort",
    "SIGFPE": "an arithmetic fault",
    "SIGILL": "an illegal instruction",
    "SIGTRAP": "a trap",
    "SIGSYS": "a forbidden system call",
    "SIGKILL": "a kill",
    "SIGXCPU": "the limit of processor time",
    "SIGXFSZ": "the limit of file sizes",
}
_FAULTS: Final = frozenset(
    {"SIGSEGV", "SIGBUS", "SIGABRT", "SIGFPE", "SIGILL", "SIGTRAP", "SIGSYS"}
)
_REQUESTS: Final = frozenset({"SIGINT", "SIGTERM", "SIGHUP"})
_REFERENCE: Final = "numpy"
_HAVE_BACKEND: Final = frozenset({"run", "dump"})  # commands with the option
_HAVE_MEMORY_LIMIT: Final = frozenset({"info", "run", "dump", "check"})
_PR_SET_PDEATHSIG: Final = 1


class Supervision(NamedTuple):
    """How a command that works in a child process is watched.

    Attributes
    ----------
    note : ActivityNote
        Where it notes what it computes.
    fault : Activity or None
        What ended a process that did the same before this one.
    """

    note: ActivityNote
    fault: Activity | None


def supervise(run: Run) -> int:
    """Run the command line of this process; a command works in a child.

    Parameters
    ----------
    run : callable
        Takes the arguments and how they are watched, and gives the exit status.

    Returns
    -------
    int
        Exit status, as of `run`. The process that watches ends here, with the status of its
        child, or 2 where a signal ended that.
    """
    arguments = sys.argv[1:]
    if not (arguments and arguments[0] in COMMANDS and _can_supervise()):
        return _work(run, arguments)
    note = ActivityNote()
    child = _fork()
    if not child:
        return _work(run, arguments, Supervision(note, None))
    status = _wait(child)
    fault = note.read()
    if status < 0 and fault is not None and _may_try_again(status, fault):
        _complain(f"{_describe(status, fault)}; trying again without it")
        note.clear()
        child = _fork()
        if not child:
            return _work(run, arguments, Supervision(note, fault))
        status = _wait(child)
    if status < 0:
        status = _report(arguments, status, note.read())
    os._exit(status)  # nothing here is to be tidied up, and that would copy pages


def _work(run: Run, arguments: Sequence[str], supervision: Supervision | None = None) -> int:
    if supervision is not None and signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return run(arguments, supervision)


def _can_supervise() -> bool:
    return hasattr(os, "fork") and hasattr(signal, "sigwaitinfo")


# Processes


def _fork() -> int:
    """Start a child; 0 in the child, and in this process where there can be no other."""
    # Signals must not get lost before this process waits for them.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _awaited())
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    parent = os.getpid()
    try:
        child = os.fork()
    except OSError:
        child = 0
    if not child:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback while it imports
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if os.getpid() != parent:
            _end_with(parent)
    return child


def _awaited() -> set[signal.Signals]:
    return {signal.SIGCHLD, *(signal.Signals[name] for name in _REQUESTS)}


def _end_with(parent: int) -> None:
    """Have this process killed when its parent is: whoever did that wants no work to go on."""
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def _wait(child: int) -> int:
    """Pass requests to end on to the child; its exit status, or minus the signal."""
    awaited = _awaited()
    while True:
        received = signal.sigwaitinfo(awaited)
        if received.si_signo == signal.SIGCHLD:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
        elif received.si_code <= 0:  # a process sent it; a terminal sends to both itself
            os.kill(child, received.si_signo)


# Messages


def _report(arguments: Sequence[str], status: int, activity: Activity | None) -> int:
    """Say by what the child was ended; the exit status for that."""
    if _name(status) in _REQUESTS:
        _complain("interrupted")
        return 128 - status
    _complain(f"{_describe(status, activity)}; {_advise(arguments, status, activity)}")
    return FAILED


def _complain(sentence: str) -> None:
    from kuiper_studio.cli.terminal import clear_line, complain

    clear_line()
    complain(sentence)


def _name(status: int) -> str:
    try:
        return signal.Signals(-status).name
    except ValueError:  # a real-time signal
        return f"signal {-status}"


def _may_try_again(status: int, activity: Activity) -> bool:
    return _name(status) in _FAULTS and activity.library != _REFERENCE


def _describe(status: int, activity: Activity | None) -> str:
    """Say what happened, and where."""
    name = _name(status)
    what = f"{_WORDS.get(name, 'a signal')} ({name})"
    if name == "SIGKILL":
        what += ", most likely for lack of memory,"
    if activity is None:
        return f"{what} ended the command outside of any operator"
    return f"{what} ended {activity.library} in operator {activity.operator!r}"


def _advise(arguments: Sequence[str], status: int, activity: Activity | None) -> str:
    """Say what the user may do about it."""
    in_library = activity is not None and activity.library != _REFERENCE
    options = []
    if _name(status) == "SIGKILL" and arguments[0] in _HAVE_MEMORY_LIMIT:
        options.append("--memory-limit SIZE")
    if in_library and arguments[0] in _HAVE_BACKEND:
        options.append("--backend numpy")
    if options:
        return f"try {' or '.join(options)}"
    if not in_library and any(argument.startswith("--layers") for argument in arguments):
        return "a layer of your own may be at fault"
    return "please report it"
