"""Runs a command in a child process, and explains how the child ended.

Native code can end a process by a signal, without a message and with an exit status that means
nothing to a script. So every command works in a child process. When a signal ends the child,
the user gets one sentence: what happened, in which operator and library, and what to do. After
a crash in a library the command runs once more, without that library in that operator.

The child is forked before this process has imported more than a few small modules: shared
memory is copied page by page when one of the two writes it, so forking a large process costs
more than starting a new interpreter. Where the system cannot fork, or cannot tell who sent a
signal, commands run in the process itself. So does the window, whose engine has its own.
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
    "SIGFPE": "an arithmetic exception",
    "SIGILL": "an illegal instruction",
    "SIGTRAP": "a trap",
    "SIGSYS": "a forbidden system call",
    "SIGKILL": "a kill",
    "SIGXCPU": "the CPU time limit",
    "SIGXFSZ": "the file size limit",
}
_FAULTS: Final = frozenset(
    {"SIGSEGV", "SIGBUS", "SIGABRT", "SIGFPE", "SIGILL", "SIGTRAP", "SIGSYS"}
)
_REQUESTS: Final = frozenset({"SIGINT", "SIGTERM", "SIGHUP"})
_REFERENCE: Final = "numpy"
_HAVE_BACKEND: Final = frozenset({"run", "dump"})  # commands that have --backend
_HAVE_MEMORY_LIMIT: Final = frozenset({"info", "run", "dump", "check"})
_PR_SET_PDEATHSIG: Final = 1


class Supervision(NamedTuple):
    """What the parent process shares with the child that runs a command.

    Attributes
    ----------
    note : ActivityNote
        Where the child notes the running kernel.
    fault : Activity or None
        What crashed the first child, if this is the second one.
    """

    note: ActivityNote
    fault: Activity | None


def supervise(run: Run) -> int:
    """Run the command line of this process; a command works in a child.

    Parameters
    ----------
    run : callable
        Takes the arguments and the supervision, and returns the exit status.

    Returns
    -------
    int
        Exit status of `run`. The parent process ends here with the status of its child, or with
        2 if a signal ended the child.
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
    os._exit(status)  # nothing to clean up, and cleaning up would copy pages


def _work(run: Run, arguments: Sequence[str], supervision: Supervision | None = None) -> int:
    if supervision is not None and signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return run(arguments, supervision)


def _can_supervise() -> bool:
    return hasattr(os, "fork") and hasattr(signal, "sigwaitinfo")


# Processes


def _fork() -> int:
    """Fork; return 0 in the child, and also where the system cannot fork."""
    # Blocked until this process waits for them, so that no signal is lost.
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
    """End this process when its parent ends, so that no work goes on unseen."""
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def _wait(child: int) -> int:
    """Wait for the child, passing on requests to end; its status, or minus the signal."""
    awaited = _awaited()
    while True:
        received = signal.sigwaitinfo(awaited)
        if received.si_signo == signal.SIGCHLD:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
        elif received.si_code <= 0:  # sent by a process; a terminal sends it to both
            os.kill(child, received.si_signo)


# Messages


def _report(arguments: Sequence[str], status: int, activity: Activity | None) -> int:
    """Print what ended the child; return the exit status for it."""
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
    """Return what happened, and where."""
    name = _name(status)
    what = f"{_WORDS.get(name, 'a signal')} ({name})"
    if name == "SIGKILL":
        what += ", most likely because memory ran out,"
    if activity is None:
        return f"{what} ended the command outside of any operator"
    return f"{what} ended {activity.library} in operator {activity.operator!r}"


def _advise(arguments: Sequence[str], status: int, activity: Activity | None) -> str:
    """Return what the user can do about it."""
    in_library = activity is not None and activity.library != _REFERENCE
    options = []
    if _name(status) == "SIGKILL" and arguments[0] in _HAVE_MEMORY_LIMIT:
        options.append("--memory-limit SIZE")
    if in_library and arguments[0] in _HAVE_BACKEND:
        options.append("--backend numpy")
    if options:
        return f"try {' or '.join(options)}"
    if not in_library and any(argument.startswith("--layers") for argument in arguments):
        return "one of your own layers may be at fault"
    return "please report it"
