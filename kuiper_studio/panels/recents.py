"""Lists of recent models and layer files, stored between runs."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import QObject, Signal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from PySide6.QtCore import QSettings

__all__ = [
    "LIMIT",
    "RecentModel",
    "Recents",
    "folder_text",
    "from_json",
    "to_json",
    "when_text",
    "with_model",
]

LIMIT: Final = 10
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RecentModel:
    """A model that was opened.

    Attributes
    ----------
    path : str
        Absolute path of the ``.param``.
    operators : int
        For a layer file, the number of operator types that it registers.
    opened : str
        Local time in ISO 8601.
    pinned : bool
        Whether it always stays, and comes first.
    """

    path: str
    operators: int
    opened: str
    pinned: bool = False


def with_model(
    entries: Iterable[RecentModel], path: str, operators: int, now: datetime
) -> tuple[RecentModel, ...]:
    """Return the entries with a newly opened model first, after pinned ones.

    Beyond `LIMIT` the oldest unpinned entries are removed.
    """
    known = list(entries)
    pinned = any(entry.pinned for entry in known if entry.path == path)
    opened = RecentModel(path, operators, now.isoformat(timespec="seconds"), pinned)
    return _sort_entries([opened, *(entry for entry in known if entry.path != path)])


def _sort_entries(entries: list[RecentModel]) -> tuple[RecentModel, ...]:
    pinned = [entry for entry in entries if entry.pinned]
    others = [entry for entry in entries if not entry.pinned]
    return tuple((pinned + others)[: max(LIMIT, len(pinned))])


def to_json(entries: Iterable[RecentModel]) -> str:
    """Format entries for the settings."""
    return json.dumps([asdict(entry) for entry in entries])


def from_json(text: str) -> tuple[RecentModel, ...]:
    """Parse entries from the settings; skip invalid ones."""
    try:
        found = json.loads(text) if text else []
    except ValueError:
        _log.warning("the list of recent models cannot be read and is cleared")
        return ()
    return tuple(_entry(item) for item in found if _is_entry(item))


def _is_entry(item: Any) -> bool:  # noqa: ANN401 - whatever JSON had
    return isinstance(item, dict) and isinstance(item.get("path"), str) and bool(item["path"])


def _entry(item: dict[str, Any]) -> RecentModel:
    operators, opened = item.get("operators"), item.get("opened")
    return RecentModel(
        item["path"],
        operators if isinstance(operators, int) else 0,
        opened if isinstance(opened, str) else "",
        item.get("pinned") is True,
    )


def when_text(opened: str, now: datetime) -> str:
    """Format when a model was opened: ``today 14:02``, ``yesterday``, ``12 March``.

    The year is added if it is not `now`'s; an invalid time gives ``""``.
    """
    try:
        then = datetime.fromisoformat(opened)
    except ValueError:
        return ""
    days = (now.date() - then.date()).days
    if days == 0:
        return f"today {then:%H:%M}"
    if days == 1:
        return "yesterday"
    text = f"{then.day} {then:%B}"
    return text if then.year == now.year else f"{text} {then.year}"


def folder_text(path: str, home: Path) -> str:
    """Return the folder of a file, with the home folder as ``~``."""
    folder = Path(path).parent
    if home.name and folder.is_relative_to(home):  # not of who lives at the root
        inside = folder.relative_to(home).as_posix()
        return "~" if inside == "." else f"~/{inside}"
    return str(folder)


class Recents(QObject):
    """The list in the settings.

    Parameters
    ----------
    settings : QSettings
    clock : callable, optional
        Returns the current local time; for tests.
    key : str
        Key in the settings.

    Signals
    -------
    changed
        Entries were added, removed or pinned.
    """

    changed = Signal()

    def __init__(
        self,
        settings: QSettings,
        clock: Callable[[], datetime] = datetime.now,
        parent: QObject | None = None,
        key: str = "recents",
    ) -> None:
        super().__init__(parent)
        self._settings = settings
        self._clock = clock
        self._key = key
        self._entries = from_json(str(settings.value(key, "")))

    def now(self) -> datetime:
        """Return the current local time."""
        return self._clock()

    def entries(self) -> tuple[RecentModel, ...]:
        """The entries: pinned ones first, then the latest first."""
        return self._entries

    def add(self, path: str | Path, operators: int) -> None:
        """Add an opened model."""
        absolute = str(Path(path).absolute())
        self._store(with_model(self._entries, absolute, operators, self._clock()))

    def set_pinned(self, path: str, *, pinned: bool) -> None:
        """Pin or unpin an entry."""
        changed = [
            replace(entry, pinned=pinned) if entry.path == path else entry
            for entry in self._entries
        ]
        self._store(_sort_entries(changed))

    def remove(self, path: str) -> None:
        """Remove an entry."""
        self._store(tuple(entry for entry in self._entries if entry.path != path))

    def clear(self) -> None:
        """Remove all unpinned entries."""
        self._store(tuple(entry for entry in self._entries if entry.pinned))

    def _store(self, entries: tuple[RecentModel, ...]) -> None:
        if entries != self._entries:
            self._entries = entries
            self._settings.setValue(self._key, to_json(entries))
            self.changed.emit()
