"""The backends' names and what they need, for whoever lists them and computes nothing."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
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
"""What each library's backend needs."""


def missing_packages(name: str) -> tuple[str, ...]:
    """What a backend needs and is not installed."""
    return tuple(package for package in PACKAGES.get(name, ()) if find_spec(package) is None)


def require_installed(name: str) -> None:
    """Make sure that there is a backend and its library is installed.

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
            f"backend {name} needs what is not installed: pip install {' '.join(missing)}"
        )


def installed_version(name: str) -> str:
    """Version of a backend's library; ``""`` where it is not installed or does not say."""
    if missing_packages(name):
        return ""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
