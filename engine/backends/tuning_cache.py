"""The tuning cache: remembers the fastest kernels between sessions.

It is one small JSON file in the user's cache folder, void for another processor or other
versions of the libraries. A file that is damaged or cannot be written only costs measuring
again. What turns out to take other than was measured is measured anew by the next session.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import math
import platform
import threading
import time
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import numpy as np

from engine.atomic import write_file
from engine.backends.exclusions import describe_exclusion
from engine.cache import cache_folder
from engine.file_lock import locked
from engine.file_versions import read_regular
from engine.threads import thread_count

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from engine.runtime import RuntimeOperator
    from engine.values import Value

__all__ = ["SECONDS_OF_WAKING", "Expectation", "TuningCache", "describe_work", "key_of"]

T = TypeVar("T")
R = TypeVar("R")

# What an operator by itself takes in a pass beyond its time when it is tried again and again.
# Its threads sleep, and its code and memory are in no cache; and where anything else runs on
# the machine, a window that paints say, each waking has to wait for it. About 40 microseconds
# in a pass that nothing disturbs, several hundred in one beside a busy process.
SECONDS_OF_WAKING: Final = 100e-6
_SCHEMA: Final = 10  # also where kernels came or went, or compute otherwise than before
_MOST_ENTRIES: Final = 20_000
_LARGEST_FILE: Final = 64 << 20  # bytes
_SECONDS_BETWEEN_SAVES: Final = 5.0
_PATIENCE: Final = 2.0  # seconds; a process that writes needs some milliseconds
_PASSES: Final = 8  # of which the fastest is compared with what was measured
_TIMES: Final = 1.5


def describe_work(operator: RuntimeOperator) -> str:
    """Describe an operator by its type, parameters and weights' shapes."""
    described = [operator.type]
    described += [f"{name}={value}" for name, value in operator.params.items()]
    described += [f"@{name}={a.shape}{a.dtype}" for name, a in operator.attributes.items()]
    return "|".join(described)


def _describe_value(value: Value) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.shape}{value.dtype}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_describe_value, value))})"
    return repr(value)


def key_of(
    operator: RuntimeOperator, inputs: Sequence[Value], excluded: Collection[str] = ()
) -> str:
    """Return the key of an operator with inputs of these shapes and dtypes.

    Parameters
    ----------
    operator : RuntimeOperator
    inputs : sequence of Value
    excluded : collection of str, optional
        Libraries that must not compute it.
    """
    described = [describe_work(operator)]
    described += map(_describe_value, inputs)
    text = "|".join(described) + describe_exclusion(excluded)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _describe_machine() -> str:
    """Return the processor and library versions for which a cache is valid."""
    libraries = []
    for name in ("numpy", "onnxruntime", "ncnn"):
        with contextlib.suppress(PackageNotFoundError):
            libraries.append(f"{name} {version(name)}")
    return "; ".join(
        [platform.machine(), platform.processor(), f"{thread_count()} threads", *libraries]
    )


class _Entry(NamedTuple):
    """What is remembered of a key.

    Attributes
    ----------
    name : str
        What was fastest.
    seconds : float or None
        That it took, where that was measured.
    doubted : bool
        Whether it turned out otherwise, so that it is to be measured anew.
    """

    name: str
    seconds: float | None = None
    doubted: bool = False


class TuningCache:
    """Fastest kernels by key.

    Several processes may have one on the same file: each adds what it finds out.

    Parameters
    ----------
    path : Path, optional
        File; one in `cache_folder` without.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path if path is not None else cache_folder() / "kernels.json"
        self._machine = _describe_machine()
        self._known: dict[str, _Entry] | None = None
        self._new: dict[str, _Entry] = {}  # since the file was written
        self._saved = time.monotonic()
        # Sessions on several threads share the cache; put() saves while it holds the lock.
        self._lock = threading.RLock()
        atexit.register(self.save)

    def get(self, key: str) -> str | None:
        """Backend that was fastest, or None where that is not known or doubted."""
        with self._lock:
            entry = self._table().get(key)
            return entry.name if entry is not None and not entry.doubted else None

    def put(self, key: str, backend: str, seconds: float | None = None) -> None:
        """Remember a backend.

        Parameters
        ----------
        key : str
        backend : str
        seconds : float, optional
            That it took. Where the choice was doubted, no less than what that turned out to
            take is expected, so that it is not doubted for ever.
        """
        with self._lock:
            before = self._table().get(key)
            if before is not None and before.doubted and seconds is not None:
                seconds = max(seconds, before.seconds or 0.0)
            self._add(key, _Entry(backend, seconds))

    def expect(self, key: str) -> Expectation | None:
        """Watch what a remembered backend takes; None where it is not known what it took."""
        with self._lock:
            entry = self._table().get(key)
            if entry is None or entry.doubted or entry.seconds is None:
                return None
            return Expectation(self, key, entry.seconds)

    def doubt(self, key: str, seconds: float) -> None:
        """Have the next session measure anew what turned out to take other than it should."""
        with self._lock:
            entry = self._table().get(key)
            if entry is not None:
                self._add(key, _Entry(entry.name, seconds, doubted=True))

    def save(self, patience: float = _PATIENCE) -> None:
        """Add what is new to the file.

        Parameters
        ----------
        patience : float, optional
            Seconds to wait for another process that does the same.
        """
        with self._lock:
            if not self._new:
                return
            self._saved = time.monotonic()
            with contextlib.suppress(OSError):
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with locked(self.path.with_suffix(".lock"), patience) as held:
                    if held:
                        self._write()

    def _write(self) -> None:
        table = self._read()
        for key, entry in self._new.items():
            table.pop(key, None)  # what was found out last stands last
            table[key] = entry
        newest = dict(list(table.items())[-_MOST_ENTRIES:])
        content = {
            "schema": _SCHEMA,
            "machine": self._machine,
            "backends": {key: e.name for key, e in newest.items() if not e.doubted},
            "seconds": {k: e.seconds for k, e in newest.items() if e.seconds is not None},
            "doubted": {key: e.name for key, e in newest.items() if e.doubted},
        }
        write_file(self.path, json.dumps(content, indent=0).encode(), durable=False)
        self._known, self._new = newest, {}

    def _add(self, key: str, entry: _Entry) -> None:
        self._table()[key] = self._new[key] = entry
        if time.monotonic() - self._saved > _SECONDS_BETWEEN_SAVES:
            self.save(patience=0)  # a step waits for this

    def _table(self) -> dict[str, _Entry]:
        if self._known is None:
            self._known = self._read()
        return self._known

    def _read(self) -> dict[str, _Entry]:
        try:
            content = json.loads(read_regular(self.path, _LARGEST_FILE))
            if content["schema"] != _SCHEMA or content["machine"] != self._machine:
                return {}
            seconds = {key: float(s) for key, s in content.get("seconds", {}).items()}
            return {
                str(key): _Entry(str(name), seconds.get(key), doubted)
                for table, doubted in (("backends", False), ("doubted", True))
                for key, name in content.get(table, {}).items()
            }
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return {}


class Expectation:
    """Compares what a remembered backend takes with what was measured for it.

    Something else on the machine may disturb a measurement. Then all took longer and the
    fastest was so by chance, or it was disturbed less than the others: it turns out faster or
    slower than it was. The least time of several passes counts, which nothing has disturbed.

    Parameters
    ----------
    tuning_cache : TuningCache
    key : str
    seconds : float
        That were measured.
    """

    __slots__ = ("_cache", "_key", "_least", "_left", "_seconds")

    def __init__(self, tuning_cache: TuningCache, key: str, seconds: float) -> None:
        self._cache, self._key, self._seconds = tuning_cache, key, seconds
        self._least, self._left = math.inf, _PASSES

    def watch(self, compute: Callable[[T], R]) -> Callable[[T], R]:
        """Have a function tell what it takes, until that is known."""

        def run(inputs: T) -> R:
            if not self._left:
                return compute(inputs)
            started = time.perf_counter()
            results = compute(inputs)
            self.meet(time.perf_counter() - started)
            return results

        return run

    def meet(self, seconds: float) -> None:
        """Hear what a pass took."""
        if not self._left:
            return
        self._least, self._left = min(self._least, seconds), self._left - 1
        if self._left:
            return
        slower = self._least > _TIMES * self._seconds + SECONDS_OF_WAKING
        faster = _TIMES * self._least + SECONDS_OF_WAKING < self._seconds
        if slower or faster:
            self._cache.doubt(self._key, self._least)
