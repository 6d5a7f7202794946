"""Installed backends, the choices that ``auto`` remembers, and damaged caches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import engine
from engine import backend_names
from engine.backends import autotuner, libraries, make_kernels, missing_packages
from engine.backends.autotuner import Autotuner
from engine.backends.blas import one_blas_thread
from engine.backends.exclusions import Exclusions
from engine.backends.tuning_cache import Expectation, TuningCache, key_of
from engine.errors import SessionStateError
from engine.file_lock import locked

KERNEL = {"kernel_size": (3, 3), "bias": False, "padding": (1, 1)}


@pytest.fixture
def conv(operator):
    """A convolution that is large enough to be measured, and its inputs."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(1, 8, 32, 32)).astype(np.float32)
    weight = rng.normal(size=(8, 8, 3, 3)).astype(np.float32)
    return operator("nn.Conv2d", [x], {"weight": weight}, **KERNEL), [x]


@pytest.fixture
def measured(monkeypatch):
    """Operators that ``auto`` has measured."""
    seen = []
    original = Autotuner._measure

    def count(self, operator, inputs, key):
        seen.append(key)
        return original(self, operator, inputs, key)

    monkeypatch.setattr(Autotuner, "_measure", count)
    return seen


def tuned(autotuner, operator, inputs):
    """All trials in a row: the kernel."""
    trials = autotuner.tune(operator, inputs)
    try:
        while True:
            next(trials)
    except StopIteration as end:
        return end.value


def choose(tuning_cache, conv):
    built, inputs = conv
    autotuner = Autotuner(tuple(libraries().values()), tuning_cache, Exclusions(None, ()))
    name, compiled = tuned(autotuner, built, inputs)
    np.testing.assert_allclose(compiled(inputs)[0], built.forward(inputs)[0], atol=1e-3)
    return name


def test_remembered_between_sessions(tmp_path, conv, measured):
    path = tmp_path / "deep" / "kernels.json"
    first = TuningCache(path)
    name = choose(first, conv)
    first.save()
    assert choose(TuningCache(path), conv) == name
    assert len(measured) == 1
    assert json.loads(path.read_text())["backends"] == {key_of(*conv): name}


@pytest.mark.parametrize("kernel", ["numpy/one-thread", "onnxruntime/all-1", "ncnn/gemm"])
def test_a_remembered_kernel_is_not_measured(tmp_path, conv, measured, kernel):
    for library in libraries():
        pytest.importorskip(library)
    tuning_cache = TuningCache(tmp_path / "k.json")
    tuning_cache.put(key_of(*conv), kernel)
    assert choose(tuning_cache, conv) == kernel
    assert measured == []


@pytest.mark.parametrize("kernel", ["", "numpy", "tensorrt/fast", "ncnn/of-tomorrow", "/"])
def test_a_remembered_kernel_that_no_longer_exists_is_measured_again(
    tmp_path, conv, measured, kernel
):
    tuning_cache = TuningCache(tmp_path / "k.json")
    tuning_cache.put(key_of(*conv), kernel)
    assert tuning_cache.get(key_of(*conv)) == kernel
    assert choose(tuning_cache, conv) == tuning_cache.get(key_of(*conv)) != kernel
    assert len(measured) == 1


DAMAGED = [
    b"", b"{", b"\xff\xfe", b"[]", b"3", b"null", b"[" * 100_000, b'{"schema": 1}',
    b'{"schema": 1, "machine": "x", "backends": []}',
]  # fmt: skip


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_file_costs_measuring_again(tmp_path, conv, measured, content):
    path = tmp_path / "kernels.json"
    path.write_bytes(content)
    tuning_cache = TuningCache(path)
    name = choose(tuning_cache, conv)
    tuning_cache.save()
    assert len(measured) == 1
    assert TuningCache(path).get(key_of(*conv)) == name


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "kernels.json")
    tuning_cache = TuningCache(tmp_path / "kernels.json")
    assert tuning_cache.get("key") is None
    tuning_cache.put("key", "numpy/one-thread")
    tuning_cache.save()
    assert (tmp_path / "kernels.json").is_fifo()


def test_a_cache_without_a_table_is_ignored(tmp_path):
    path = tmp_path / "kernels.json"
    own = TuningCache(path)
    own.put("key", "numpy/one-thread")
    own.save()
    content = json.loads(path.read_text()) | {"backends": ["key"]}
    path.write_text(json.dumps(content))
    assert TuningCache(path).get("key") is None


def test_choices_among_former_lowerings_do_not_count(tmp_path):
    """A choice from before the lowering of Sigmoid changed is void."""
    path = tmp_path / "kernels.json"
    own = TuningCache(path)
    own.put("key", "onnxruntime/all-1")
    own.save()
    content = json.loads(path.read_text())
    assert content["schema"] > 6
    path.write_text(json.dumps(content | {"schema": 6}))
    assert TuningCache(path).get("key") is None


def test_choices_of_another_machine_do_not_count(tmp_path, conv, measured):
    path = tmp_path / "kernels.json"
    mine = TuningCache(path)
    choose(mine, conv)
    mine.save()
    content = json.loads(path.read_text())
    content["machine"] = content["machine"].replace("numpy ", "numpy 0.")
    path.write_text(json.dumps(content))
    choose(TuningCache(path), conv)
    assert len(measured) == 2


def test_a_folder_that_cannot_be_written(tmp_path, conv):
    (tmp_path / "file").write_text("in the way")
    tuning_cache = TuningCache(tmp_path / "file" / "kernels.json")
    name = choose(tuning_cache, conv)
    tuning_cache.save()
    assert tuning_cache.get(key_of(*conv)) == name


def test_saving_without_new_entries(tmp_path):
    TuningCache(tmp_path / "kernels.json").save()
    assert list(tmp_path.iterdir()) == []


def test_the_newest_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("engine.backends.tuning_cache._MOST_ENTRIES", 3)
    tuning_cache = TuningCache(tmp_path / "kernels.json")
    for number in range(5):
        tuning_cache.put(str(number), "numpy")
    tuning_cache.save()
    assert list(json.loads(tuning_cache.path.read_text())["backends"]) == ["2", "3", "4"]


WRITER = """
import sys, time
from pathlib import Path
from engine.backends.tuning_cache import TuningCache

cache = TuningCache(Path(sys.argv[1]))
cache.get("nothing")  # all have read the file before any of them writes it
print("ready", flush=True)
sys.stdin.readline()
for number in range(200):
    cache.put(f"{sys.argv[2]}-{number}", "numpy", 1e-3)
    if number % 10 == 9:
        cache.save()
"""


def test_entries_of_several_processes_are_merged(tmp_path):
    path = tmp_path / "kernels.json"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, path, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        writer.stdin.write("\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    found = json.loads(path.read_text())
    expected = {f"{number}-{i}" for number in range(3) for i in range(200)}
    assert set(found["backends"]) == set(found["seconds"]) == expected


def test_another_process_that_writes_is_waited_for(tmp_path):
    path = tmp_path / "kernels.json"
    tuning_cache = TuningCache(path)
    tuning_cache.put("key", "numpy")
    with locked(path.with_suffix(".lock"), 0) as held:
        assert held
        started = time.monotonic()
        tuning_cache.save(patience=0.1)
        assert time.monotonic() - started >= 0.1
        assert not path.exists()
    tuning_cache.save()  # what could not be written is written the next time
    assert TuningCache(path).get("key") == "numpy"


def test_entries_of_other_processes_are_read_when_saving(tmp_path):
    mine, theirs = (TuningCache(tmp_path / "kernels.json") for _ in range(2))
    assert mine.get("theirs") is None
    theirs.put("theirs", "ncnn/gemm")
    theirs.save()
    mine.put("mine", "numpy")
    mine.save()
    assert mine.get("theirs") == "ncnn/gemm"


@pytest.mark.parametrize(
    ("measured", "passes", "doubted"),
    [
        pytest.param(10e-3, [10e-3] * 8, False, id="as measured"),
        pytest.param(10e-3, [15e-3] * 8, False, id="half as much again"),
        pytest.param(10e-3, [15.2e-3] * 8, True, id="slower"),
        pytest.param(10e-3, [30e-3] * 7 + [10e-3], False, id="disturbed but for once"),
        pytest.param(10e-3, [30e-3] * 7, False, id="too few passes"),
        pytest.param(10e-3, [30e-3] * 8 + [10e-3], True, id="later ones do not count"),
        pytest.param(15e-3, [9.8e-3] * 8, True, id="faster"),
        pytest.param(15e-3, [10e-3] * 8, False, id="a little faster"),
        pytest.param(20e-6, [100e-6] * 8, False, id="waking takes more than so little work"),
        pytest.param(20e-6, [140e-6] * 8, True, id="slower than waking"),
        pytest.param(100e-6, [10e-6] * 8, False, id="faster by less than waking takes"),
    ],
)
def test_a_choice_with_another_time_is_tuned_again(tmp_path, measured, passes, doubted):
    own = TuningCache(tmp_path / "kernels.json")
    own.put("key", "ncnn/gemm", measured)
    expectation = own.expect("key")
    for seconds in passes:
        expectation.meet(seconds)
    own.save()
    for tuning_cache in (own, TuningCache(own.path)):
        assert tuning_cache.get("key") == (None if doubted else "ncnn/gemm")
        assert (tuning_cache.expect("key") is None) == doubted


def test_a_doubt_about_a_repeated_choice_ends(tmp_path):
    """Beside other programs a kernel may always take longer than in trials."""
    tuning_cache = TuningCache(tmp_path / "kernels.json")
    for _ in range(2):  # sessions
        tuning_cache.put("key", "ncnn/gemm", 10e-3)
        expectation = tuning_cache.expect("key")
        for _ in range(8):
            expectation.meet(20e-3)
    assert tuning_cache.get("key") == "ncnn/gemm"


def test_a_choice_without_a_time_is_not_doubted(tmp_path):
    tuning_cache = TuningCache(tmp_path / "kernels.json")
    tuning_cache.put("key", "ncnn/gemm")
    assert tuning_cache.expect("key") is None
    assert tuning_cache.expect("other") is None


def test_a_kernel_reports_its_time(tmp_path, conv, monkeypatch):
    """In the session that measured it, and in one that remembers it."""
    for library in libraries():
        pytest.importorskip(library)
    heard: list[float] = []
    monkeypatch.setattr(Expectation, "meet", lambda _, seconds: heard.append(seconds))
    tuning_cache = TuningCache(tmp_path / "k.json")
    choose(tuning_cache, conv)
    choose(tuning_cache, conv)
    assert len(heard) == 2
    assert all(0 < seconds < 1 for seconds in heard)


def test_a_choice_in_doubt_is_measured(tmp_path, conv, measured):
    tuning_cache = TuningCache(tmp_path / "k.json")
    choose(tuning_cache, conv)
    tuning_cache.doubt(key_of(*conv), 1.0)
    choose(tuning_cache, conv)
    choose(tuning_cache, conv)
    assert len(measured) == 2


def test_many_threads_that_save(tmp_path):
    tuning_cache = TuningCache(tmp_path / "kernels.json")

    def work(start):
        for number in range(start, start + 50):
            tuning_cache.put(str(number), "numpy")
            tuning_cache.save()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(0, 200, 50), timeout=60))
    tuning_cache.save()
    assert set(TuningCache(tuning_cache.path)._read()) == set(map(str, range(200)))


@pytest.mark.parametrize("other", ["params", "shapes", "dtypes"])
def test_keys_distinguish_work(operator, conv, other):
    built, (x,) = conv
    weight = built.attributes["weight"].array
    params = KERNEL | ({"padding": (0, 0)} if other == "params" else {})
    inputs = {"shapes": [x[:, :, 1:]], "dtypes": [x.astype(np.float64)]}.get(other, [x])
    assert key_of(operator("nn.Conv2d", [x], {"weight": weight}, **params), inputs) != key_of(
        built, [x]
    )
    assert key_of(operator("nn.Conv2d", [x], {"weight": weight}, **KERNEL), [x + 1]) == key_of(
        built, [x]
    )


def test_special_numbers_are_not_remembered(tmp_path, operator):
    """NumPy computes NaN, but a library may compute the next inputs."""
    pytest.importorskip("onnxruntime")
    x = np.full((1, 8, 32, 32), np.nan, np.float32)
    pool = operator("nn.MaxPool2d", [x], kernel_size=2, stride=2, padding=0, dilation=1,
                    ceil_mode=False, return_indices=False)  # fmt: skip
    tuning_cache = TuningCache(tmp_path / "k.json")
    assert choose(tuning_cache, (pool, [x])) == "numpy/one-thread"
    assert tuning_cache.get(key_of(pool, [x])) is None


def test_numpy_computes_small_work(tmp_path, operator, measured):
    x = np.ones((4, 4), np.float32)
    assert choose(TuningCache(tmp_path / "k.json"), (operator("nn.ReLU", [x]), [x])) == "numpy"
    assert measured == []


def test_a_kernel_with_other_results_is_no_candidate(tmp_path, conv, monkeypatch):
    """Results are compared with NumPy's before a kernel is timed."""
    monkeypatch.setattr(autotuner, "agrees", lambda found, expected: False)
    assert choose(TuningCache(tmp_path / "k.json"), conv) == "numpy/one-thread"


# Libraries that are missing or broken


@pytest.fixture
def lacking(monkeypatch):
    """Return a function that hides packages."""

    def lack(*names):
        find = backend_names.find_spec
        monkeypatch.setattr(
            backend_names, "find_spec", lambda name: None if name in names else find(name)
        )

    return lack


@pytest.mark.parametrize(
    ("name", "missing", "command"),
    [
        ("ncnn", ("ncnn",), "pip install ncnn"),
        ("onnxruntime", ("onnx",), "pip install onnx"),
        ("onnxruntime", ("onnx", "onnxruntime"), "pip install onnxruntime onnx"),
    ],
)
def test_a_missing_library(lacking, conv, name, missing, command):
    lacking(*missing)
    built, inputs = conv
    with pytest.raises(SessionStateError) as caught:
        make_kernels(name, [built])
    assert str(caught.value) == f"backend {name} lacks packages: {command}"
    assert name not in libraries()
    assert set(missing_packages(name)) == set(missing)
    kernel = make_kernels("auto", [built])[0]
    kernel.prepare(inputs)
    assert not kernel.name.startswith(name)


def test_no_library_at_all(lacking, conv):
    lacking("ncnn", "onnx", "onnxruntime")
    built, inputs = conv
    kernel = make_kernels("auto", [built])[0]
    kernel.prepare(inputs)
    kernel(inputs)
    assert kernel.name == "numpy"


@pytest.mark.parametrize("name", ["ncnn", "onnxruntime"])
def test_a_broken_library(monkeypatch, conv, name):
    """As the chosen backend it is reported; otherwise it is skipped."""
    pytest.importorskip(name)
    library = libraries()[name]

    def load(*, whole):
        raise ImportError("libgomp.so.1: cannot open shared object file")

    monkeypatch.setattr(library, "load", load)
    built, inputs = conv
    with pytest.raises(SessionStateError) as caught:
        engine.backends.require_backend(name)
    assert str(caught.value) == (
        f"backend {name} cannot be loaded: libgomp.so.1: cannot open shared object file"
    )
    kernel = make_kernels("auto", [built])[0]
    kernel.prepare(inputs)
    assert not kernel.name.startswith(name)


def test_a_library_that_fails_after_its_choice(conv, monkeypatch):
    """The reference computes, and the record says so."""
    library = pytest.importorskip("onnxruntime") and libraries()["onnxruntime"]

    def failing(inputs):
        raise RuntimeError("out of something")

    monkeypatch.setattr(
        type(library), "variants", lambda *_: {"best": lambda: failing}, raising=True
    )
    built, inputs = conv
    kernel = make_kernels("onnxruntime", [built])[0]
    kernel.prepare(inputs)
    assert kernel.name == "onnxruntime/best"
    (found,) = kernel(inputs)
    assert kernel.name == "numpy/one-thread"
    # One thread may sum in another order than several do.
    np.testing.assert_allclose(found, built.forward(inputs)[0], rtol=0, atol=1e-4)


# NumPy's own threads


def blas_threads():
    from threadpoolctl import threadpool_info

    return [i["num_threads"] for i in threadpool_info() if "numpy" in i["filepath"]]


def test_one_blas_thread_from_one_thread_after_another():
    """A living thread that set the number before does not prevent others from setting it."""
    before = blas_threads()
    with ThreadPoolExecutor(1) as thread:
        thread.submit(one_blas_thread.__enter__).result(60)
        assert set(blas_threads()) <= {1}
        one_blas_thread.__exit__()
        assert blas_threads() == before
        with one_blas_thread:
            assert set(blas_threads()) <= {1}
    assert blas_threads() == before


def test_one_blas_thread_from_many_threads():
    """The last user restores the number of threads."""
    before, inside = blas_threads(), threading.Barrier(2)

    def work(_):
        with one_blas_thread:
            inside.wait(30)
            return blas_threads()

    with ThreadPoolExecutor(2) as threads:
        for found in threads.map(work, range(2), timeout=60):
            assert set(found) <= {1}
    assert blas_threads() == before
