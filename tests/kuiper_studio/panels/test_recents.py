from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from PySide6.QtCore import QSettings

from kuiper_studio.panels.recents import (
    LIMIT,
    RecentModel,
    Recents,
    folder_text,
    from_json,
    to_json,
    when_text,
    with_model,
)

NOON = datetime(2025, 6, 13, 12, 0)


def model(name: str, *, pinned: bool = False) -> RecentModel:
    return RecentModel(f"/m/{name}", 3, "2025-06-01T10:00:00", pinned)


def names(entries) -> list[str]:
    return [Path(entry.path).name for entry in entries]


def test_the_latest_comes_first() -> None:
    entries = with_model((model("a"), model("b")), "/m/c", 7, NOON)
    assert names(entries) == ["c", "a", "b"]
    assert entries[0] == RecentModel("/m/c", 7, "2025-06-13T12:00:00")


def test_a_known_one_moves_and_stays_pinned() -> None:
    entries = with_model((model("a", pinned=True), model("b"), model("c")), "/m/c", 7, NOON)
    assert names(entries) == ["a", "c", "b"]
    entries = with_model(entries, "/m/a", 8, NOON)
    assert entries[0].pinned
    assert entries[0].operators == 8


def test_the_oldest_goes_but_not_a_pinned_one() -> None:
    full = (model("p", pinned=True), *(model(str(i)) for i in range(LIMIT - 1)))
    entries = with_model(full, "/m/new", 1, NOON)
    assert len(entries) == LIMIT
    assert names(entries)[:3] == ["p", "new", "0"]
    assert str(LIMIT - 2) not in names(entries)


def test_json_round_trip() -> None:
    entries = (model("a", pinned=True), model("ünï"))
    assert from_json(to_json(entries)) == entries


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("[]", 0),
        ('[{"path": "/m/a"}, {"path": 3}, 4, {"nothing": 1}, {"path": ""}]', 1),
        ('[{"path": "/m/a", "operators": "x", "opened": 5, "pinned": "yes"}]', 1),
    ],
)
def test_settings_are_not_trusted(text: str, count: int) -> None:
    entries = from_json(text)
    assert len(entries) == count
    assert all(entry.operators == 0 and not entry.pinned for entry in entries)


def test_unreadable_settings_begin_anew(caplog) -> None:
    assert from_json("{not json") == ()
    assert "is cleared" in caplog.text


@pytest.mark.parametrize(
    ("ago", "text"),
    [
        (timedelta(hours=2), "today 10:00"),
        (timedelta(days=1), "yesterday"),
        (timedelta(days=93), "12 March"),
        (timedelta(days=365), "13 June 2024"),
    ],
)
def test_when(ago: timedelta, text: str) -> None:
    assert when_text((NOON - ago).isoformat(), NOON) == text


def test_when_of_no_time() -> None:
    assert when_text("some day", NOON) == ""


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/home/ada/m.param", "~"),
        ("/home/ada/models/detect/m.param", "~/models/detect"),
        ("/media/usb/m.param", "/media/usb"),
    ],
)
def test_folder(path: str, text: str) -> None:
    assert folder_text(path, Path("/home/ada")) == text


def make_settings(tmp_path) -> QSettings:
    return QSettings(str(tmp_path / "settings.ini"), QSettings.Format.IniFormat)


def test_remembered_between_runs(qapp, tmp_path) -> None:
    settings = make_settings(tmp_path)
    recents = Recents(settings, lambda: NOON)
    recents.add("/m/a.param", 3)
    recents.add("/m/b.param", 4)
    recents.set_pinned("/m/a.param", pinned=True)
    settings.sync()
    again = Recents(make_settings(tmp_path), lambda: NOON)
    assert names(again.entries()) == ["a.param", "b.param"]
    assert again.entries() == recents.entries()


def test_changes_are_announced_once(qapp, tmp_path) -> None:
    recents = Recents(make_settings(tmp_path), lambda: NOON)
    heard = []
    recents.changed.connect(lambda: heard.append(names(recents.entries())))
    recents.add("/m/a.param", 3)
    recents.add("/m/a.param", 3)  # the same again, at the same time
    recents.add("/m/b.param", 3)
    recents.set_pinned("/m/a.param", pinned=True)
    recents.clear()
    recents.clear()
    recents.remove("/m/a.param")
    assert heard == [
        ["a.param"],
        ["b.param", "a.param"],
        ["a.param", "b.param"],
        ["a.param"],
        [],
    ]
