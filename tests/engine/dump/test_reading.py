"""What a dump says about itself, read again."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path

import pytest

from engine.dump import DumpOptions, kernels_of, read_manifest, seed_of, write_dump
from engine.errors import DumpFileError


@pytest.mark.parametrize("name", ["d", "d.safetensors", "folder.npz"])
def test_what_was_written(digits, tmp_path, name):
    options = DumpOptions(format="safetensors" if name.endswith("s") else "folder")
    write_dump(digits, tmp_path / name, options)
    manifest = read_manifest(tmp_path / name)
    assert manifest["backend"] == "auto"
    assert [row["name"] for row in manifest["operators"]] == [
        operator.name for operator in digits.graph.operators
    ]
    assert kernels_of(tmp_path / name) == {
        record.operator.name: record.kernel for record in digits.records
    }
    if name == "d":
        assert read_manifest(tmp_path / "d" / "manifest.json") == manifest


def header(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


DAMAGED = [
    ("none", None, "there is no such file or folder"),
    ("folder", None, "there is no such file or folder"),  # without a manifest in it
    ("m.json", b"{", "its manifest is damaged"),
    ("m.json", b"[" * 100_000, "its manifest is damaged"),
    ("m.json", b"\xff\xfe", "its manifest is damaged"),
    ("m.json", b"[]", "it is not a dump of Kuiper Studio"),
    ("m.json", b'{"schema": "other"}', "it is not a dump of Kuiper Studio"),
    ("d.npz", b"", "an .npz has no manifest; choose a dump that is a folder"),
    ("d.safetensors", b"", "its manifest is damaged"),
    ("d.safetensors", b"\xff" * 20, "its manifest is damaged"),
    ("d.safetensors", header(b"[1, 2]"), "its manifest is damaged"),
    ("d.safetensors", header(b'{"__metadata__": 3}'), "its manifest is damaged"),
    ("d.safetensors", header(b'{"__metadata__": {"a": "b"}}'), "it is not a dump of Kuiper"),
]


@pytest.mark.parametrize(("name", "content", "reason"), DAMAGED)
def test_no_dump(tmp_path, name, content, reason):
    (tmp_path / "folder").mkdir()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DumpFileError) as caught:
        kernels_of(tmp_path / name)
    assert caught.value.path == tmp_path / name
    assert str(caught.value).startswith(f"{tmp_path / name}: {reason}")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_manifests_of_every_version(tmp_path, version):
    """The second has no ``layers``, the first no ``bin_directory_sha256`` either."""
    manifest = {
        "schema": "kuiper-studio-dump",
        "version": version,
        "model": {"param": "m.param", "bin": None},
        "operators": [{"name": "conv", "kernel": "numpy"}],
        **({"layers": []} if version == 3 else {}),
    }
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    assert kernels_of(tmp_path) == {"conv": "numpy"}


@pytest.mark.parametrize("operators", [None, 3, [3], [{"name": "conv"}]])
def test_a_dump_that_does_not_say(tmp_path, operators):
    manifest = {"schema": "kuiper-studio-dump", "operators": operators}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(DumpFileError, match="its manifest has no kernels; write the dump"):
        kernels_of(tmp_path)


@pytest.mark.parametrize(
    ("more", "seed"), [({}, 0), ({"seed": 7}, 7), ({"seed": -1}, 0), ({"seed": "7"}, 0)]
)
def test_seed(tmp_path, more, seed):
    manifest = {"schema": "kuiper-studio-dump", **more}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    assert seed_of(tmp_path) == seed


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names")
@pytest.mark.parametrize("name", ["d", "m.json", "d.safetensors"])
def test_a_pipe_or_a_device_is_no_dump(tmp_path, name):
    """Nobody writes to the one, and the other never ends."""
    (tmp_path / "d").mkdir()
    os.mkfifo(tmp_path / "d" / "manifest.json" if name == "d" else tmp_path / name)
    for path in (tmp_path / name, Path("/dev/full")):
        if path.exists():
            with pytest.raises(DumpFileError, match="it is a device or a pipe, not a file"):
                kernels_of(path)


def test_a_manifest_that_is_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr("engine.dump.reading._LARGEST_MANIFEST", 10)
    (tmp_path / "manifest.json").write_text("{" + " " * 10)
    with pytest.raises(DumpFileError, match="it has more than 10 bytes"):
        kernels_of(tmp_path)
