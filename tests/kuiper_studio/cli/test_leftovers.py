"""What a killed process has left behind is told by the next command."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def left(tmp_path, monkeypatch):
    """A dump that was moved away when the process was killed that would have replaced it."""
    monkeypatch.setenv("KUIPER_STUDIO_CACHE", str(tmp_path / "cache"))
    holder, destination = tmp_path / ".kuiper-a b", tmp_path / "d"
    for name in ("new", "old"):
        (holder / name).mkdir(parents=True)
        (holder / name / "manifest.json").write_text(name)
    note = tmp_path / "cache" / "writing" / "a b.json"
    note.parent.mkdir(parents=True)
    note.write_text(json.dumps({"holder": str(holder), "destination": str(destination)}))
    return holder


def test_a_leftover_is_reported_until_it_is_restored(run, digits, left, tmp_path):
    earlier = f"'{left}/old'"
    for command in (("info", digits), ("ops", "nn.ReLU")):
        ended = run(*command)
        assert ended.status == 0
        assert ended.err == (
            f"kuiper-studio: a process was killed while it replaced {tmp_path}/d; "
            f"the earlier version is in {earlier}: mv {earlier} {tmp_path}/d restores it, "
            f"rm -r '{left}' removes it for good\n"
        )
    (left / "old").rename(tmp_path / "d")
    assert run("info", digits).err == ""
    assert not left.exists()
    assert (tmp_path / "d" / "manifest.json").read_text() == "old"


def test_a_leftover_whose_place_is_taken_is_reported_differently(run, digits, left, tmp_path):
    (tmp_path / "d").mkdir()
    ended = run("info", digits)
    assert ended.status == 0
    assert ended.err.endswith(
        f": move it where you want it, rm -r '{left}' removes it for good\n"
    )
