"""Files and folders that are whole or not there."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from engine.atomic import spoken, written_beside


def tree(folder: Path) -> dict[str, str]:
    """All files below a folder and what is in them; empty folders end in a slash."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_dir():
            if not any(path.iterdir()):
                found[f"{name}/"] = ""
        else:
            found[name] = path.read_text()
    return found


def write_folder(path: Path, text: str) -> None:
    path.mkdir()
    (path / "a").write_text(text)


def write_half(path: Path, error: BaseException, *, file: bool) -> None:
    if file:
        path.write_text("half")
    else:
        write_folder(path, "half")
    raise error


def test_a_new_file(tmp_path):
    with written_beside(tmp_path / "x") as partial:
        partial.write_text("new")
        assert not (tmp_path / "x").exists()
        assert partial.parent.parent == tmp_path  # same disk, so that renaming is enough
    assert tree(tmp_path) == {"x": "new"}


def test_a_file_is_replaced(tmp_path):
    (tmp_path / "x").write_text("old")
    with written_beside(tmp_path / "x") as partial:
        partial.write_text("new")
    assert tree(tmp_path) == {"x": "new"}


def test_a_folder_is_replaced_as_a_whole(tmp_path):
    write_folder(tmp_path / "x", "old")
    (tmp_path / "x" / "b").write_text("gone")
    with written_beside(tmp_path / "x") as partial:
        write_folder(partial, "new")
    assert tree(tmp_path) == {"x/a": "new"}


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
@pytest.mark.parametrize("before", ["nothing", "file", "folder"])
def test_a_failure_leaves_what_was_there(tmp_path, before, error):
    target = tmp_path / "x"
    if before == "file":
        target.write_text("old")
    elif before == "folder":
        write_folder(target, "old")
    earlier = tree(tmp_path)
    with pytest.raises(type(error)), written_beside(target) as partial:
        write_half(partial, error, file=before == "file")
    assert tree(tmp_path) == earlier


@pytest.mark.parametrize("failing", [1, 2])
def test_a_failed_exchange_puts_the_folder_back(tmp_path, monkeypatch, failing):
    write_folder(tmp_path / "x", "old")
    rename, calls = Path.rename, []

    def fail_once(self: Path, target: Path) -> Path:
        calls.append(target)
        if len(calls) == failing:
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail_once)
    with pytest.raises(KeyboardInterrupt), written_beside(tmp_path / "x") as partial:
        write_folder(partial, "new")
    assert tree(tmp_path) == {"x/a": "old"}


def test_what_cannot_be_put_back_is_kept(tmp_path, monkeypatch):
    write_folder(tmp_path / "x", "old")
    rename, calls = Path.rename, []

    def fail_after_one(self: Path, target: Path) -> Path:
        calls.append(target)
        if len(calls) > 1:
            raise OSError(errno.EIO, "broken")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail_after_one)
    with pytest.raises(OSError, match="broken"), written_beside(tmp_path / "x") as partial:
        write_folder(partial, "new")
    assert "old" in tree(tmp_path).values()


def test_a_folder_is_not_replaced_by_a_file(tmp_path):
    write_folder(tmp_path / "x", "old")
    with pytest.raises(IsADirectoryError), written_beside(tmp_path / "x") as partial:
        partial.write_text("new")
    assert tree(tmp_path) == {"x/a": "old"}


def test_a_file_is_not_replaced_by_a_folder(tmp_path):
    (tmp_path / "x").write_text("old")
    with pytest.raises(NotADirectoryError), written_beside(tmp_path / "x") as partial:
        write_folder(partial, "new")
    assert tree(tmp_path) == {"x": "old"}


def test_a_link_is_followed(tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "x").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "far" / "x")
    with written_beside(tmp_path / "link") as partial:
        partial.write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "far" / "x").read_text() == "new"


def test_a_device_is_left_alone(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="device or a pipe"), written_beside(pipe):
        pytest.fail("nothing is to be written")
    assert pipe.is_fifo()


def test_no_folder_to_write_in(tmp_path):
    with pytest.raises(FileNotFoundError), written_beside(tmp_path / "none" / "x"):
        pytest.fail("nothing is to be written")
    assert tree(tmp_path) == {}


@pytest.mark.parametrize(
    ("error", "words"),
    [
        pytest.param(OSError(errno.ENOSPC, "No space left"), "the disk is full", id="full"),
        pytest.param(OSError(errno.EACCES, "x", "/a"), "permission was denied", id="denied"),
        pytest.param(
            OSError(errno.EIO, "Input/output error"), "input/output error", id="other"
        ),
        pytest.param(
            OSError("12 requested and 4 written"), "12 requested and 4 written", id="odd"
        ),
        pytest.param(OSError(), "the system does not say why", id="nothing known"),
    ],
)
def test_spoken(error, words):
    assert spoken(error) == words
