"""Which libraries are kept out of which operators, remembered."""

from __future__ import annotations

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import engine
from engine import exclusions
from engine.activity import Activity
from engine.exclusions import ExclusionCache, model_key, operators_at_work


@pytest.fixture
def memory(tmp_path) -> ExclusionCache:
    return ExclusionCache(tmp_path / "cache" / "exclusions.json")


@pytest.fixture(autouse=True)
def installed(monkeypatch) -> dict[str, str]:
    versions = {"ncnn": "1.0", "onnxruntime": "2.0"}
    monkeypatch.setattr(exclusions, "libraries", lambda: versions)
    monkeypatch.setattr(exclusions, "installed_version", versions.__getitem__)
    return versions


def test_nothing_is_excluded_at_first(memory):
    assert memory.is_empty
    assert memory.load("m") == {}
    assert memory.load(None) == {}
    memory.forget("m")
    assert memory.is_empty


def test_another_process_loads_the_exclusions(memory):
    memory.remember("m", ["conv1"], "ncnn")
    memory.remember("m", ["conv1"], "onnxruntime")
    memory.remember("m", ["conv2"], "ncnn")
    memory.remember("n", ["conv1"], "ncnn")
    other = ExclusionCache(memory.path)
    assert not other.is_empty
    assert other.load("m") == {"conv1": {"ncnn", "onnxruntime"}, "conv2": {"ncnn"}}
    assert other.load("n") == {"conv1": {"ncnn"}}
    assert other.load("o") == {}


def test_one_operator_is_forgotten_or_all(memory):
    for operator in ("a", "b", "c"):
        memory.remember("m", [operator], "ncnn")
    memory.remember("n", ["a"], "ncnn")
    memory.forget("m", "b")
    memory.forget("m", "never there")
    assert memory.load("m") == {"a": {"ncnn"}, "c": {"ncnn"}}
    memory.forget("m")
    assert memory.load("m") == {}
    assert memory.load("n") == {"a": {"ncnn"}}
    memory.forget("n", "a")
    assert json.loads(memory.path.read_text())["models"] == {}


def test_a_newer_library_gets_another_chance(memory, installed):
    memory.remember("m", ["conv1"], "ncnn")
    memory.remember("m", ["conv1"], "onnxruntime")
    installed["ncnn"] = "1.1"
    assert memory.load("m") == {"conv1": {"onnxruntime"}}
    memory.remember("m", ["conv1"], "ncnn")
    assert memory.load("m") == {"conv1": {"ncnn", "onnxruntime"}}


def test_the_models_changed_last_are_kept(memory, monkeypatch):
    monkeypatch.setattr(exclusions, "_MOST_MODELS", 2)
    for model in ("m", "n", "m", "o"):
        memory.remember(model, ["conv1"], "ncnn")
    assert memory.load("n") == {}
    assert memory.load("m") == memory.load("o") == {"conv1": {"ncnn"}}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\x00",
        b"[" * 100_000,
        b"[]",
        b"null",
        b'{"schema": 1}',
        b'{"schema": 2, "models": {"m": {"conv1": {"ncnn": "1.0"}}}}',
        b'{"schema": 1, "models": []}',
        b'{"schema": 1, "models": {"m": [1]}}',
        b'{"schema": 1, "models": {"m": {"conv1": "ncnn"}}}',
        b'{"schema": 1, "models": {"m": {"conv1": {"ncnn": [1e999]}}}}',
        b'{"schema": 1, "models": {"m": {"conv1": {"": ""}}}}'.ljust(5 << 20),
    ],
)
def test_hostile_content_excludes_nothing_and_is_replaced(memory, content):
    memory.path.parent.mkdir()
    memory.path.write_bytes(content)
    assert memory.load("m") == {}
    memory.remember("m", ["conv2"], "ncnn")
    assert memory.load("m") == {"conv2": {"ncnn"}}


def test_only_libraries_that_are_installed_are_named(memory, installed):
    """A session refuses others."""
    memory.remember("m", ["conv1"], "ncnn")
    text = memory.path.read_text().replace("}", ', "numpy": "1.0", "pip": ""}', 1)
    memory.path.write_text(text)
    assert memory.load("m") == {"conv1": {"ncnn"}}
    installed["ncnn"] = ""
    del installed["onnxruntime"]
    assert memory.load("m") == {}


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    memory = ExclusionCache(tmp_path / "file" / "exclusions.json")
    memory.remember("m", ["conv1"], "ncnn")
    assert memory.load("m") == {}


def test_models_are_distinguished_by_content(make_pair, tmp_path):
    lines = (
        "pnnx.Attribute weight 0 1 w @data=(2)f32 #w=(2)f32",
        "pnnx.Output out 1 0 w",
    )
    one = make_pair(*lines, weights={"weight.data": np.zeros(2, np.float32)})
    (tmp_path / "copy").mkdir()
    for file in (one, one.with_suffix(".bin")):
        shutil.copy(file, tmp_path / "copy")
    copy = tmp_path / "copy" / one.name
    weights = make_pair(*lines, weights={"weight.data": np.ones(2, np.float32)}, name="n")
    text = make_pair(lines[0], lines[1].replace("out", "end"), name="o")
    keys = [model_key(engine.load(path).file) for path in (one, copy, weights)]
    keys.append(model_key(engine.load(text, one.with_suffix(".bin")).file))
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3


def test_a_rewritten_model_has_no_key(make_pair):
    path = make_pair("pnnx.Input in 0 1 x #x=(2)f32", "pnnx.Output out 1 0 x")
    graph = engine.load(path)
    path.write_text(path.read_text() + "\n")
    assert model_key(graph.file) is None
    path.unlink()
    assert model_key(graph.file) is None


def test_operators_at_work(make_pair):
    names = ["in", "a", "b", "c", "out"]
    lines = [f"nn.ReLU {name} 1 1 {i} {i + 1}" for i, name in enumerate(names[1:-1])]
    graph = engine.load(make_pair("pnnx.Input in 0 1 0", *lines, "pnnx.Output out 1 0 3"))
    assert operators_at_work(graph, Activity("b", "ncnn/all-2")) == ["b"]
    assert operators_at_work(graph, Activity("a", "ncnn/segment-2@1-2")) == ["a", "b"]
    assert operators_at_work(graph, Activity("a", "ncnn/segment")) == ["a"]
    assert operators_at_work(graph, Activity("a", "ncnn/segment-2@1-900")) == names[1:]


def test_exclusions_of_several_processes_are_merged(tmp_path):
    path = tmp_path / "exclusions.json"

    def remember(number: int) -> None:
        for index in range(10):
            ExclusionCache(path).remember(f"m{number}", [f"conv{index}"], "ncnn")

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(remember, range(3)))
    for number in range(3):
        assert ExclusionCache(path).load(f"m{number}") == {
            f"conv{index}": {"ncnn"} for index in range(10)
        }


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names")
def test_a_pipe_is_not_waited_for(memory):
    memory.path.parent.mkdir()
    os.mkfifo(memory.path)
    assert memory.load("m") == {}
    memory.remember("m", ["conv"], "ncnn")
    assert memory.path.is_fifo()
