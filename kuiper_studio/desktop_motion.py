"""Whether the desktop's user wants no animation."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from engine.file_versions import read_regular

__all__ = ["REDUCED_MOTION", "desktop_is_still"]

REDUCED_MOTION: Final = "KUIPER_STUDIO_REDUCED_MOTION"
"""A variable of the environment that comes before what the desktop says."""
_PORTAL: Final = "org.freedesktop.portal.Desktop"
_WAIT_MS: Final = 200
_LARGEST_FILE: Final = 1 << 20
# What the portal of a desktop knows: namespace, key, and the value without animation.
_PORTAL_KEYS: Final = (
    ("org.freedesktop.appearance", "reduced-motion", 1),
    ("org.gnome.desktop.interface", "enable-animations", False),
    ("org.kde.kdeglobals.KDE", "AnimationDurationFactor", "0"),
)
# The same in files below the configuration folder: section, key and value.
_FILES: Final = (
    ("gtk-4.0/settings.ini", "Settings", "gtk-enable-animations", ("0", "false")),
    ("gtk-3.0/settings.ini", "Settings", "gtk-enable-animations", ("0", "false")),
    ("kdeglobals", "KDE", "AnimationDurationFactor", ("0",)),
)


def desktop_is_still() -> bool:
    """Return whether animation is off in the environment, or in the settings of the desktop.

    Asks the desktop's portal, for a fifth of a second at most, then the files of GTK and KDE.
    """
    wanted = os.environ.get(REDUCED_MOTION, "")
    if wanted:
        return wanted not in ("0", "false", "no")
    return _portal_is_still() or _files_are_still()


def _portal_is_still() -> bool:
    if sys.platform != "linux" or not os.environ.get("DBUS_SESSION_BUS_ADDRESS"):
        return False
    with suppress(ImportError):
        from PySide6.QtDBus import QDBusConnection, QDBusMessage

        bus = QDBusConnection.sessionBus()
        registered = bus.interface().isServiceRegistered(_PORTAL) if bus.isConnected() else None
        if registered is None or not registered.value():  # nor start one
            return False
        for namespace, key, still in _PORTAL_KEYS:
            call = QDBusMessage.createMethodCall(
                _PORTAL,
                "/org/freedesktop/portal/desktop",
                "org.freedesktop.portal.Settings",
                "ReadOne",
            )
            call.setArguments([namespace, key])
            reply = bus.call(call, timeout=_WAIT_MS)
            if reply.type() is not QDBusMessage.MessageType.ReplyMessage:
                continue
            value = reply.arguments()[0]
            value = value.variant() if hasattr(value, "variant") else value
            if value == still:
                return True
    return False


def _files_are_still() -> bool:
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    for name, section, key, still in _FILES:
        from configparser import ConfigParser, Error

        parser = ConfigParser(interpolation=None, strict=False)
        with suppress(Error, OSError, UnicodeDecodeError):
            parser.read_string(read_regular(folder / name, _LARGEST_FILE).decode())
            if parser.get(section, key, fallback="").strip().lower() in still:
                return True
    return False
