"""The tuning cache: remembers the fastest kernels between sessions.

It is one small JSON file in the user's cache folder, void for another processor or other
versions of the libraries. If the file is damaged or cannot be written, kernels are measured
again. If a kernel turns out faster or slower than measured, the next session measures it again.
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

# A single operator takes this much longer in a pass than in repeated trials. Its threads sleep,
# and its code and memory are in no cache. If another program runs, such as a window that
# paints, each waking thread waits for it. It is about 40 microseconds in an undisturbed pass,
# and several hundred beside a busy process.
SECONDS_OF_WAKING: Final = 100e-6
_SCHEMA: Final = 10  # raise it when kernels are added, removed or compute differently
_MOST_ENTRIES: Final = 20_000
_LARGEST_FILE: Final = 64 << 20  # bytes
_SECONDS_BETWEEN_SAVES: Final = 5.0
_PATIENCE: Final = 2.0  # seconds; a process that writes needs some milliseconds
_PASSES: Final = 8  # passes, of which the fastest is compared with the measured time
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
    """The remembered decision for a key.

    Attributes
    ----------
    name : str
        The fastest backend.
    seconds : float or None
        Its time, if it was measured.
    doubted : bool
        Whether its time turned out different, so that the next session measures again.
    """

    name: str
    seconds: float | None = None
    doubted: bool = False


class TuningCache:
    """Fastest kernels by key.

    Several processes may use the same file: each adds its own results.

    Parameters
    ----------
    path : Path, optional
        The file; by default one in `cache_folder`.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path if path is not None else cache_folder() / "kernels.json"
        self._machine = _describe_machine()
        self._known: dict[str, _Entry] | None = None
        self._new: dict[str, _Entry] = {}  # new entries since the file was written
        self._saved = time.monotonic()
        # Sessions on several threads share the cache; put() saves while it holds the lock.
        self._lock = threading.RLock()
        atexit.register(self.save)

    def get(self, key: str) -> str | None:
        """Return the fastest backend; None if it is unknown or in doubt."""
        with self._lock:
            entry = self._table().get(key)
            return entry.name if entry is not None and not entry.doubted else None

    def put(self, key: str, backend: str, seconds: float | None = None) -> None:
        """Remember the fastest backend.

        Parameters
        ----------
        key : str
        backend : str
        seconds : float, optional
            Its time. If the entry is in doubt, the larger of this and the time that raised the
            doubt is stored, so that the doubt ends.
        """
        with self._lock:
            before = self._table().get(key)
            if before is not None and before.doubted and seconds is not None:
                seconds = max(seconds, before.seconds or 0.0)
            self._add(key, _Entry(backend, seconds))

    def expect(self, key: str) -> Expectation | None:
        """Return a watch of a remembered backend's time; None if no time is stored."""
        with self._lock:
            entry = self._table().get(key)
            if entry is None or entry.doubted or entry.seconds is None:
                return None
            return Expectation(self, key, entry.seconds)

    def doubt(self, key: str, seconds: float) -> None:
        """Let the next session measure again, because the time differs from the stored one."""
        with self._lock:
            entry = self._table().get(key)
            if entry is not None:
                self._add(key, _Entry(entry.name, seconds, doubted=True))

    def save(self, patience: float = _PATIENCE) -> None:
        """Add the new entries to the file.

        Parameters
        ----------
        patience : float, optional
            Seconds to wait for another process that writes the file.
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
            table.pop(key, None)  # the newest entry is last
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
    """Compares a remembered backend's time with the time that was measured for it.

    Other programs may disturb a measurement. Then a backend may have won by chance, and turns
    out faster or slower than measured. The shortest time of several passes counts, because it
    is the least disturbed.

    Parameters
    ----------
    tuning_cache : TuningCache
    key : str
    seconds : float
        The measured time.
    """

    __slots__ = ("_cache", "_key", "_least", "_left", "_seconds")

    def __init__(self, tuning_cache: TuningCache, key: str, seconds: float) -> None:
        self._cache, self._key, self._seconds = tuning_cache, key, seconds
        self._least, self._left = math.inf, _PASSES

    def watch(self, compute: Callable[[T], R]) -> Callable[[T], R]:
        """Wrap a function so that it reports its time, until enough is known."""

        def run(inputs: T) -> R:
            if not self._left:
                return compute(inputs)
            started = time.perf_counter()
            results = compute(inputs)
            self.meet(time.perf_counter() - started)
            return results

        return run

    def meet(self, seconds: float) -> None:
        """Add the time of a pass."""
        if not self._left:
            return
        self._least, self._left = min(self._least, seconds), self._left - 1
        if self._left:
            return
        slower = self._least > _TIMES * self._seconds + SECONDS_OF_WAKING
        faster = _TIMES * self._least + SECONDS_OF_WAKING < self._seconds
        if slower or faster:
            self._cache.doubt(self._key, self._least)
