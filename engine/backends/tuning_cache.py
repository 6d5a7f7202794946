"""The tuning cache: which kernel was fastest, remembered between sessions.

It is one small JSON file in the user's cache folder, void for another processor or other
versions of the libraries. A file that is damaged or cannot be written only costs measuring
again.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import platform
import threading
import time
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.atomic import written_beside
from engine.backends.exclusions import describe_exclusion
from engine.cache import cache_folder
from engine.file_versions import read_regular
from engine.threads import thread_count

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from engine.runtime import RuntimeOperator
    from engine.values import Value

__all__ = ["TuningCache", "describe_work", "key_of"]

_SCHEMA: Final = 9  # also where kernels came or went, or compute otherwise than before
_MOST_ENTRIES: Final = 20_000
_LARGEST_FILE: Final = 64 << 20  # bytes
_SECONDS_BETWEEN_SAVES: Final = 5.0


def describe_work(operator: RuntimeOperator) -> str:
    """Describe what an operator computes: its type, parameters and weights' shapes."""
    described = [operator.type]
    described += [f"{name}={value}" for name, value in operator.params.items()]
    described += [f"@{name}={a.shape}{a.dtype}" for name, a in operator.attributes.items()]
    return "|".join(described)


def _described(value: Value) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.shape}{value.dtype}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_described, value))})"
    return repr(value)


def key_of(
    operator: RuntimeOperator, inputs: Sequence[Value], excluded: Collection[str] = ()
) -> str:
    """Name of an operator's work on inputs of these shapes and dtypes.

    Parameters
    ----------
    operator : RuntimeOperator
    inputs : sequence of Value
    excluded : collection of str, optional
        Libraries that must not do it.
    """
    described = [describe_work(operator)]
    described += map(_described, inputs)
    text = "|".join(described) + describe_exclusion(excluded)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _machine() -> str:
    """What voids a tuning cache: processor and libraries."""
    libraries = []
    for name in ("numpy", "onnxruntime", "ncnn"):
        with contextlib.suppress(PackageNotFoundError):
            libraries.append(f"{name} {version(name)}")
    return "; ".join(
        [platform.machine(), platform.processor(), f"{thread_count()} threads", *libraries]
    )


class TuningCache:
    """Fastest kernels by the key of what they compute.

    Parameters
    ----------
    path : Path, optional
        File; one in `cache_folder` without.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path if path is not None else cache_folder() / "kernels.json"
        self._machine = _machine()
        self._known: dict[str, str] | None = None
        self._changed = False
        self._saved = time.monotonic()
        # Sessions on several threads share the cache; put() saves while it holds the lock.
        self._lock = threading.RLock()
        atexit.register(self.save)

    def get(self, key: str) -> str | None:
        """Backend that was fastest, or None where that is not known."""
        with self._lock:
            return self._table().get(key)

    def put(self, key: str, backend: str) -> None:
        """Remember a backend."""
        with self._lock:
            self._table()[key] = backend
            self._changed = True
            if time.monotonic() - self._saved > _SECONDS_BETWEEN_SAVES:
                self.save()

    def save(self) -> None:
        """Write what is new."""
        with self._lock:
            if not self._changed:
                return
            self._changed, self._saved = False, time.monotonic()
            newest = list(self._table().items())[-_MOST_ENTRIES:]
            content = {"schema": _SCHEMA, "machine": self._machine, "backends": dict(newest)}
            with contextlib.suppress(OSError):
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with written_beside(self.path) as path:
                    path.write_text(json.dumps(content, indent=0), encoding="utf-8")

    def _table(self) -> dict[str, str]:
        if self._known is None:
            self._known = self._read()
        return self._known

    def _read(self) -> dict[str, str]:
        try:
            content = json.loads(read_regular(self.path, _LARGEST_FILE))
            if content["schema"] != _SCHEMA or content["machine"] != self._machine:
                return {}
            return {str(key): str(name) for key, name in content["backends"].items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return {}
