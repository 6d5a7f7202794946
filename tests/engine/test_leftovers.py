"""What processes leave behind that are killed while they write."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from engine.atomic import written_beside
from engine.leftovers import find_leftovers

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")

# Writes a folder over another and is killed: while it writes, between the two renames of a file
# system that cannot exchange names, or right after them.
KILLED = """
import os, signal, sys
from pathlib import Path
from engine import atomic

def kill():
    os.kill(os.getpid(), signal.SIGKILL)

moment, target = sys.argv[1], Path(sys.argv[2])
rename, calls = Path.rename, []

def counted(self, target):
    calls.append(target)
    if len(calls) == 3 and moment == "between":
        kill()
    done = rename(self, target)
    if len(calls) == 3 and moment == "after":
        kill()
    return done

if moment != "swapped":
    atomic._swap = lambda *_: False
atomic.Path.rename = counted
if moment == "swapped":
    atomic.shutil.rmtree = lambda *_, **__: kill()
with atomic.written_beside(target) as partial:
    partial.mkdir()
    (partial / "a").write_text("new")
    if moment == "writing":
        kill()
"""


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("KUIPER_STUDIO_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def target(tmp_path) -> Path:
    folder = tmp_path / "place" / "dump"
    folder.mkdir(parents=True)
    (folder / "a").write_text("old")
    return folder


def kill_while_writing(moment: str, target: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", KILLED, moment, str(target)], check=False)
    assert ended.returncode == -signal.SIGKILL


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def notes(cache: Path) -> list[Path]:
    return list((cache / "writing").iterdir())


@pytest.mark.parametrize(
    ("moment", "text"), [("writing", "old"), ("after", "new"), ("swapped", "new")]
)
def test_useless_leftovers_are_removed(cache, target, moment, text):
    kill_while_writing(moment, target)
    assert len(names_in(target.parent)) == 2
    assert find_leftovers() == []
    assert names_in(target.parent) == ["dump"]
    assert (target / "a").read_text() == text
    assert notes(cache) == []


def test_a_replaced_folder_is_restored(cache, target):
    kill_while_writing("between", target)
    assert not target.exists()
    (leftover,) = find_leftovers()
    assert find_leftovers() == [leftover]  # until somebody decides
    assert leftover.destination == target
    assert (leftover.earlier / "a").read_text() == "old"
    leftover.restore()
    assert (target / "a").read_text() == "old"
    assert names_in(target.parent) == ["dump"]
    assert find_leftovers() == []
    assert notes(cache) == []


def test_a_replaced_folder_is_discarded(cache, target):
    kill_while_writing("between", target)
    (leftover,) = find_leftovers()
    leftover.discard()
    assert names_in(target.parent) == []
    assert find_leftovers() == []


def test_nothing_that_came_since_is_replaced(target):
    kill_while_writing("between", target)
    target.mkdir()
    (leftover,) = find_leftovers()
    with pytest.raises(FileExistsError, match="exists again; move it away first"):
        leftover.restore()
    assert (leftover.earlier / "a").read_text() == "old"


def test_a_working_process_is_left_alone(cache, target):
    with written_beside(target) as partial:
        partial.mkdir()
        assert find_leftovers() == []
        assert partial.is_dir()
        assert len(notes(cache)) == 1
    assert notes(cache) == []


def test_files_that_need_not_survive_are_not_noted(cache, target):
    with written_beside(target, durable=False) as partial:
        partial.mkdir()
        assert not cache.exists()


@pytest.mark.parametrize(
    "content",
    [
        "", "{", "[]", "[" * 100_000, '{"holder": 3}',
        '{"holder": "$/home", "destination": "$/x"}',
        '{"holder": "$/home/.kuiper-x", "destination": "$/x"}',
    ],
)  # fmt: skip
def test_a_note_that_is_damaged_removes_nothing_but_itself(cache, tmp_path, content):
    precious = tmp_path / "home" / ".kuiper-x" / "new"
    precious.mkdir(parents=True)
    (cache / "writing").mkdir(parents=True)
    (cache / "writing" / "n.json").write_text(content.replace("$", str(tmp_path)))
    assert find_leftovers() == []
    assert precious.is_dir()
    assert notes(cache) == []


def test_a_pipe_for_a_note(cache):
    (cache / "writing").mkdir(parents=True)
    os.mkfifo(cache / "writing" / "n.json")
    assert find_leftovers() == []


def test_a_cache_that_cannot_be_written(tmp_path, target, cache):
    cache.write_text("in the way")
    with written_beside(target) as partial:
        partial.mkdir()
    assert find_leftovers() == []
    assert names_in(target) == []


def test_a_note_says_where(cache, target):
    with written_beside(target) as partial:
        partial.mkdir()
        (note,) = notes(cache)
        assert json.loads(note.read_text()) == {
            "holder": str(partial.parent),
            "destination": str(target),
        }
