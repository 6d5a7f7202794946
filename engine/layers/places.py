"""Formats exceptions of a layer, with their position in a user's file."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Final

from engine.errors import EngineError, ParameterError
from engine.memory_bound import format_memory_error

__all__ = ["USER_PACKAGE", "reason_of", "user_place"]

# The modules of users' files by name, to distinguish their code from the engine's.
USER_PACKAGE: Final = "kuiper_user_layers"


def reason_of(error: BaseException) -> str:
    """Format an exception of a layer; never empty.

    Parameters
    ----------
    error : BaseException
        With its traceback.

    Returns
    -------
    str
        For code of a user's file, an unexpected exception has its class first and the line
        last: ``KeyError: 'scale' (my_layers.py:12)``.
    """
    kind = type(error).__name__
    text = error.reason if isinstance(error, ParameterError) else str(error)
    if isinstance(error, MemoryError):
        text = format_memory_error(error)
    place = user_place(error)
    if not place:
        return text or kind
    if not isinstance(error, EngineError):
        text = f"{kind}: {text}" if text else kind
    return f"{text} ({place})"


def user_place(error: BaseException) -> str:
    """Return an exception's position in a user's file: ``my_layers.py:12``.

    Parameters
    ----------
    error : BaseException
        With its traceback.

    Returns
    -------
    str
        The innermost line in a user's file; ``""`` if there is none.
    """
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        module, file = str(frame.f_globals.get("__name__")), frame.f_code.co_filename
        # An annotation is evaluated in the module too, but it is no line of the file.
        if module.startswith(f"{USER_PACKAGE}.") and file == frame.f_globals.get("__file__"):
            place = f"{Path(file).name}:{line}"
    return place
