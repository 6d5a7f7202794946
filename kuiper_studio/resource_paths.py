"""Finds icons, fonts, the style sheet and the samples, in a wheel and in a checkout."""

from __future__ import annotations

import logging
from functools import cache
from pathlib import Path

__all__ = ["home_folder", "load_fonts", "resources", "samples"]

_log = logging.getLogger(__name__)
_PACKAGE = Path(__file__).resolve().parent


def home_folder() -> Path:
    """The user's home; the root of the disk for a user who has none."""
    try:
        return Path.home()
    except RuntimeError:
        return Path(Path.cwd().anchor)


def resources() -> Path:
    """Return the folder of icons, fonts and the style sheet.

    Raises
    ------
    FileNotFoundError
        Neither the installed package nor a checkout around it has the folder.
    """
    return _locate("_resources", "resources")


def samples() -> Path:
    """Return the folder of the sample models.

    Raises
    ------
    FileNotFoundError
        Neither the installed package nor a checkout around it has the folder.
    """
    return _locate("_samples", "samples")


@cache
def load_fonts() -> tuple[str, ...]:
    """Register the fonts that come with the project; needs a running QGuiApplication.

    Returns
    -------
    tuple of str
        The available families, sorted. A file that Qt refuses is logged and skipped; the theme
        then uses the system's fonts.
    """
    # Imported here: the command line uses samples without Qt.
    from PySide6.QtGui import QFontDatabase  # noqa: TID251

    families: set[str] = set()
    for path in sorted((resources() / "fonts").glob("*.[ot]tf")):
        number = QFontDatabase.addApplicationFont(str(path))
        if number < 0:
            _log.warning("Qt cannot load the font %s", path.name)
        else:
            families.update(QFontDatabase.applicationFontFamilies(number))
    return tuple(sorted(families))


def _locate(packaged: str, in_checkout: str) -> Path:
    for folder in (_PACKAGE / packaged, _PACKAGE.parent / in_checkout):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"the folder {in_checkout!r} is missing from the installation")
