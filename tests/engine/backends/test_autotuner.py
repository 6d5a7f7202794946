"""Which backends there are, what ``auto`` remembers, and files that do not help."""

from __future__ import annotations

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import engine
from engine import backend_names
from engine.backends import autotuner, libraries, make_kernels, missing_packages
from engine.backends.autotuner import Autotuner
from engine.backends.blas import one_blas_thread
from engine.backends.exclusions import Exclusions
from engine.backends.tuning_cache import TuningCache, key_of
from engine.errors import SessionStateError

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
    original = Autotuner._measured

    def count(self, operator, inputs, key):
        seen.append(key)
        return original(self, operator, inputs, key)

    monkeypatch.setattr(Autotuner, "_measured", count)
    return seen


def choose(tuning_cache, conv):
    built, inputs = conv
    autotuner = Autotuner(tuple(libraries().values()), tuning_cache, Exclusions(None, ()))
    name, compiled = autotuner.choose(built, inputs)
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
def test_what_is_known_is_not_measured(tmp_path, conv, measured, kernel):
    for library in libraries():
        pytest.importorskip(library)
    tuning_cache = TuningCache(tmp_path / "k.json")
    tuning_cache.put(key_of(*conv), kernel)
    assert choose(tuning_cache, conv) == kernel
    assert measured == []


@pytest.mark.parametrize("kernel", ["", "numpy", "tensorrt/fast", "ncnn/of-tomorrow", "/"])
def test_a_kernel_that_there_is_not_is_measured_anew(tmp_path, conv, measured, kernel):
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


def test_backends_that_are_no_table(tmp_path):
    path = tmp_path / "kernels.json"
    own = TuningCache(path)
    own.put("key", "numpy/one-thread")
    own.save()
    content = json.loads(path.read_text()) | {"backends": ["key"]}
    path.write_text(json.dumps(content))
    assert TuningCache(path).get("key") is None


def test_choices_among_other_forms_do_not_count(tmp_path):
    """What was fastest when Sigmoid was another node says nothing now."""
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


def test_saving_where_nothing_is_new(tmp_path):
    TuningCache(tmp_path / "kernels.json").save()
    assert list(tmp_path.iterdir()) == []


def test_the_newest_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("engine.backends.tuning_cache._MOST_ENTRIES", 3)
    tuning_cache = TuningCache(tmp_path / "kernels.json")
    for number in range(5):
        tuning_cache.put(str(number), "numpy")
    tuning_cache.save()
    assert list(json.loads(tuning_cache.path.read_text())["backends"]) == ["2", "3", "4"]


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
def test_keys_tell_work_apart(operator, conv, other):
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
    """What NumPy computes for NaN, a library may compute for what comes next."""
    pytest.importorskip("onnxruntime")
    x = np.full((1, 8, 32, 32), np.nan, np.float32)
    pool = operator("nn.MaxPool2d", [x], kernel_size=2, stride=2, padding=0, dilation=1,
                    ceil_mode=False, return_indices=False)  # fmt: skip
    tuning_cache = TuningCache(tmp_path / "k.json")
    assert choose(tuning_cache, (pool, [x])) == "numpy/one-thread"
    assert tuning_cache.get(key_of(pool, [x])) is None


def test_small_work_is_numpys(tmp_path, operator, measured):
    x = np.ones((4, 4), np.float32)
    assert choose(TuningCache(tmp_path / "k.json"), (operator("nn.ReLU", [x]), [x])) == "numpy"
    assert measured == []


def test_a_kernel_that_computes_something_else_is_no_candidate(tmp_path, conv, monkeypatch):
    """Found by comparing with NumPy before anything is timed."""
    monkeypatch.setattr(autotuner, "agrees", lambda found, expected: False)
    assert choose(TuningCache(tmp_path / "k.json"), conv) == "numpy/one-thread"


# Libraries that are missing or broken


@pytest.fixture
def lacking(monkeypatch):
    """A function that makes packages look as if they were not installed."""

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
    assert str(caught.value) == f"backend {name} needs what is not installed: {command}"
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
    """Pinned, it is told; otherwise it is passed over."""
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


def test_a_library_that_fails_after_all(conv, monkeypatch):
    """The reference computes, and the record does not say otherwise."""
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
    np.testing.assert_array_equal(found, built.forward(inputs)[0])


# NumPy's own threads


def blas_threads():
    from threadpoolctl import threadpool_info

    return [i["num_threads"] for i in threadpool_info() if "numpy" in i["filepath"]]


def test_one_blas_thread_from_one_thread_after_another():
    """A thread that is still alive, and set the number before, does not stop others."""
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
    """Whoever leaves last puts back how many there were."""
    before, inside = blas_threads(), threading.Barrier(2)

    def work(_):
        with one_blas_thread:
            inside.wait(30)
            return blas_threads()

    with ThreadPoolExecutor(2) as threads:
        for found in threads.map(work, range(2), timeout=60):
            assert set(found) <= {1}
    assert blas_threads() == before
