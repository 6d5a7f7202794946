"""Names of the backends and the packages they need, without importing any."""

from __future__ import annotations

from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from engine.errors import SessionStateError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "BACKEND_NAMES",
    "PACKAGES",
    "installed_version",
    "missing_packages",
    "require_installed",
]

BACKEND_NAMES: Final = ("auto", "numpy", "onnxruntime", "ncnn")
PACKAGES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"onnxruntime": ("onnxruntime", "onnx"), "ncnn": ("ncnn",)}
)
"""Packages that each library's backend needs."""


def missing_packages(name: str) -> tuple[str, ...]:
    """Return the packages that a backend needs and that are not installed."""
    return tuple(package for package in PACKAGES.get(name, ()) if find_spec(package) is None)


def require_installed(name: str) -> None:
    """Check that a backend exists and its library is installed.

    Raises
    ------
    SessionStateError
        If not.
    """
    if name not in BACKEND_NAMES:
        raise SessionStateError(
            f"there is no backend {name!r}; choose one of {', '.join(BACKEND_NAMES)}"
        )
    if missing := missing_packages(name):
        raise SessionStateError(
            f"backend {name} lacks packages: pip install {' '.join(missing)}"
        )


def installed_version(name: str) -> str:
    """Return the version of a backend's library; ``""`` if it is unknown."""
    if missing_packages(name):
        return ""
    # Here, for it imports much, and the window starts without.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return ""
