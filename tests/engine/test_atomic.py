"""Files and folders that are whole or not there."""

from __future__ import annotations

import errno
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine import atomic
from engine.atomic import format_os_error, write_file, written_beside


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch) -> None:
    """A cache of its own: what is left behind on purpose is not for other tests to find."""
    monkeypatch.setenv("KUIPER_STUDIO_CACHE", str(tmp_path_factory.mktemp("cache")))


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
def test_a_failure_leaves_the_old_file(tmp_path, before, error):
    target = tmp_path / "x"
    if before == "file":
        target.write_text("old")
    elif before == "folder":
        write_folder(target, "old")
    earlier = tree(tmp_path)
    with pytest.raises(type(error)), written_beside(target) as partial:
        write_half(partial, error, file=before == "file")
    assert tree(tmp_path) == earlier


@pytest.fixture
def no_swap(monkeypatch):
    """A file system that exchanges two names in two steps only."""
    monkeypatch.setattr(atomic, "_swap", lambda *_: False)


def test_a_folder_is_replaced_in_two_steps(tmp_path, no_swap):
    test_a_folder_is_replaced_as_a_whole(tmp_path)


# Asked for the name, moved away, put in the place of it.
@pytest.mark.parametrize("failing", [1, 2, 3])
def test_a_failed_exchange_puts_the_folder_back(tmp_path, monkeypatch, no_swap, failing):
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


def test_a_folder_that_cannot_be_restored_is_kept(tmp_path, monkeypatch, no_swap):
    write_folder(tmp_path / "x", "old")
    rename, calls = Path.rename, []

    def fail_after_one(self: Path, target: Path) -> Path:
        calls.append(target)
        if len(calls) > 2:
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


@pytest.mark.parametrize("folder", [False, True])
def test_existing_files_are_not_replaced_without_overwrite(tmp_path, folder):
    """Also where it came while this was written."""

    def write(path: Path, text: str) -> None:
        if folder:
            write_folder(path, text)
        else:
            path.write_text(text)

    def write_late() -> None:
        with written_beside(tmp_path / "x", replace=False) as partial:
            write(partial, "mine")
            write(tmp_path / "x", "theirs")

    with pytest.raises(FileExistsError):
        write_late()
    assert tree(tmp_path) == ({"x/a": "theirs"} if folder else {"x": "theirs"})


def test_of_many_at_the_same_time_one_succeeds(tmp_path):
    together = threading.Barrier(8)

    def write(number: int) -> bool:
        try:
            with written_beside(tmp_path / "x", replace=False) as partial:
                write_folder(partial, str(number))
                together.wait()
        except FileExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        succeeded = list(threads.map(write, range(8)))
    assert succeeded.count(True) == 1
    assert tree(tmp_path) == {"x/a": str(succeeded.index(True))}


def test_many_replace_a_folder_at_the_same_time(tmp_path):
    write_folder(tmp_path / "x", "old")

    def write(number: int) -> None:
        for _ in range(20):
            with written_beside(tmp_path / "x", durable=False) as partial:
                write_folder(partial, str(number))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, range(4)))
    assert tree(tmp_path)["x/a"] in "0123"
    assert list(tree(tmp_path)) == ["x/a"]


def test_a_file_system_without_links(tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    with written_beside(tmp_path / "x", replace=False) as partial:
        partial.write_text("new")
    assert tree(tmp_path) == {"x": "new"}
    with (
        pytest.raises(FileExistsError),
        written_beside(tmp_path / "x", replace=False) as partial,
    ):
        partial.write_text("newer")
    assert tree(tmp_path) == {"x": "new"}


def test_everything_is_synced_before_the_rename(tmp_path, monkeypatch):
    """The files and folders of what is written, then the name, then the folder that has it."""
    events: list[str] = []
    fsync, rename = os.fsync, Path.rename

    def noted_sync(file: int) -> None:
        path = Path(f"/proc/self/fd/{file}").readlink()
        parts = path.relative_to(tmp_path).parts
        events.append("/".join("holder" if p.startswith(".kuiper-") else p for p in parts))
        fsync(file)

    def noted_rename(self: Path, target: Path) -> Path:
        events.append(f"-> {target.name}")
        return rename(self, target)

    if not Path("/proc/self/fd").is_dir():
        pytest.skip("no /proc here")
    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(Path, "rename", noted_rename)
    with written_beside(tmp_path / "x") as partial:
        write_folder(partial, "new")
        write_folder(partial / "b", "new")
    assert events == [
        "holder/new/a", "holder/new", "holder/new/b/a", "holder/new/b", "-> x", "",
    ]  # fmt: skip


def test_a_disk_that_fails_late_leaves_the_old_file(tmp_path, monkeypatch):
    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    (tmp_path / "x").write_text("old")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="full"):
        write_file(tmp_path / "x", b"new")
    assert tree(tmp_path) == {"x": "old"}


def test_a_check_of_the_replaced_folder_may_refuse(tmp_path):
    write_folder(tmp_path / "x", "old")
    seen = []

    def refuse(path: Path) -> None:
        seen.append(tree(path))
        raise OSError(errno.EBUSY, "no")

    with (
        pytest.raises(OSError, match="no"),
        written_beside(tmp_path / "x", check=refuse) as new,
    ):
        write_folder(new, "new")
    assert seen == [{"a": "old"}]
    assert tree(tmp_path) == {"x/a": "old"}


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
        pytest.param(OSError(), "the system gives no reason", id="nothing known"),
    ],
)
def test_errors_are_written_as_sentences(error, words):
    assert format_os_error(error) == words
