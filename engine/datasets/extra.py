"""The libraries of the extra ``datasets``, which the rest of the program does without."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from engine.errors import SweepError

__all__ = ["has_extra", "require_extra"]

_MODULES: Final = ("dask", "distributed", "numba", "zarr")


def has_extra() -> bool:
    """Whether Dask, Numba and Zarr are installed."""
    return not _missing()


def require_extra() -> None:
    """Check that Dask, Numba and Zarr are installed.

    Raises
    ------
    SweepError
        If one is not.
    """
    missing = _missing()
    if missing:
        raise SweepError(
            f"data sets need {', '.join(missing)}, not installed here: "
            "pip install 'kuiper-studio[datasets]'"
        )


def _missing() -> list[str]:
    return [name for name in _MODULES if find_spec(name) is None]
