"""What is said and remembered of an engine that ended."""

from __future__ import annotations

import signal

import numpy as np
import pytest

import engine
from engine import exclusions
from engine.activity import Activity
from engine.exclusions import ExclusionCache, model_key
from kuiper_studio.engine_service.transport import EngineLost
from kuiper_studio.session.losses import exclude_from_reference

NET = ("pnnx.Input in 0 1 0 #0=(2)f32", "nn.ReLU theirs 1 1 0 1", "pnnx.Output out 1 0 1")


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("KUIPER_STUDIO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(exclusions, "libraries", lambda: {"ncnn": "1.0"})
    monkeypatch.setattr(exclusions, "installed_version", {"ncnn": "1.0"}.__getitem__)
    return ExclusionCache()


def crashed(operator, kernel="ncnn/a"):
    return EngineLost(-signal.SIGSEGV, Activity(operator, kernel))


def test_a_library_that_crashed_in_a_reference(cache, make_pair):
    path = make_pair(*NET)
    failure = exclude_from_reference(path, crashed("theirs"))
    assert failure.title == "The engine ended in theirs of m.pnnx.param"
    assert "SIGSEGV" in failure.reason
    assert failure.hint.endswith("Compare again.")
    graph = engine.load(path)
    assert cache.load(model_key(graph.file)) == {"theirs": {"ncnn"}}
    # A comparison runs it without the library from now on.
    reference = engine.open_reference(path, [np.float32([-1, 2])], backend="ncnn")
    np.testing.assert_array_equal(reference.array("1"), [0, 2])


@pytest.mark.parametrize("lost", [crashed("ours"), crashed("theirs", "numpy")])
def test_a_crash_elsewhere_excludes_nothing(cache, make_pair, lost):
    assert exclude_from_reference(make_pair(*NET), lost) is None
    assert cache.is_empty


def test_a_reference_that_is_no_model(cache, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(2))
    assert exclude_from_reference(tmp_path / "x.npy", crashed("theirs")) is None
    assert exclude_from_reference(tmp_path / "gone.param", crashed("theirs")) is None
