"""Networks of ncnn, which share their working memory."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from engine.backends import heap

pytest.importorskip("ncnn")

from engine.backends.lowering import LoweringError
from engine.backends.ncnn_net import NcnnBackend, NcnnNet


@pytest.fixture
def compiled(operator):
    """A function that makes a 1x1 convolution: its weight and what ncnn does with images."""

    def make(channels, seed):
        rng = np.random.default_rng(seed)
        weight = rng.standard_normal((channels, channels, 1, 1)).astype(np.float32)
        image = rng.standard_normal((1, channels, 40, 40)).astype(np.float32)
        made = operator(
            "nn.Conv2d", [image], {"weight": weight}, bias=False, dilation=(1, 1), groups=1,
            in_channels=channels, kernel_size=(1, 1), out_channels=channels, padding=(0, 0),
            padding_mode="zeros", stride=(1, 1),
        )  # fmt: skip
        strategies = NcnnBackend().variants(made, [image])
        expected = np.tensordot(weight[:, :, 0, 0], image[0], 1)[np.newaxis]
        return next(iter(strategies.values()))(), image, expected

    return make


def test_several_threads_at_once(compiled):
    work = [compiled(channels, seed) for seed, channels in enumerate((16, 48, 33, 64))]

    def compute(index):
        run, image, expected = work[index]
        for _ in range(20):
            np.testing.assert_allclose(run([image])[0], expected, rtol=1e-4, atol=1e-4)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(compute, range(4))) == [None] * 4


def test_results_survive_freeing_memory(compiled):
    run, image, expected = compiled(32, 0)
    (result,) = run([image])
    heap.trim_libraries()
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(run([image])[0], expected, rtol=1e-4, atol=1e-4)


def test_a_system_without_files_in_memory(compiled, monkeypatch):
    monkeypatch.delattr(os, "memfd_create", raising=False)
    run, image, expected = compiled(32, 0)
    np.testing.assert_allclose(run([image])[0], expected, rtol=1e-4, atol=1e-4)


def test_a_system_without_names_of_open_files(compiled, monkeypatch, tmp_path, capfd):
    def elsewhere(_name):
        return os.open(tmp_path / "gone", os.O_WRONLY | os.O_CREAT)

    # As where /proc is not mounted: the file that ncnn is told to read is none of weights.
    monkeypatch.setattr(os, "memfd_create", elsewhere, raising=False)
    monkeypatch.setattr("engine.backends.ncnn_net._OPEN_FILE", str(tmp_path / "no-such-{}"))
    run, image, expected = compiled(32, 0)
    np.testing.assert_allclose(run([image])[0], expected, rtol=1e-4, atol=1e-4)
    assert capfd.readouterr().err == ""  # where ncnn says what it cannot open


def test_an_unknown_layer_is_refused(capfd):
    text = "7767517\n2 2\nInput in0 0 1 in0\nOfTomorrow layer 1 1 in0 out0 0=1\n"
    with pytest.raises(LoweringError, match="ncnn does not know a layer"):
        NcnnNet(text, [], 1)
    assert capfd.readouterr().err == ""
