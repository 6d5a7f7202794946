"""Operators and kernels are announced before native code runs."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from engine.backends import fusion_autotuner, libraries
from engine.runtime import activity

pytest.importorskip("onnxruntime")
pytest.importorskip("ncnn")

CONV = "kernel_size=(3,3) stride=(1,1) padding=(1,1) dilation=(1,1) groups=1 padding_mode=zeros"
NETWORK = (
    "pnnx.Input in 0 1 0 #0=(1,8,32,32)f32",
    (
        f"nn.Conv2d conv 1 1 0 1 {CONV} bias=False in_channels=8 out_channels=8"
        " @weight=(8,8,3,3)f32"
    ),
    "nn.ReLU relu 1 1 1 2",
    (
        "nn.MaxPool2d pool 1 1 2 3 kernel_size=(2,2) stride=(2,2) padding=(0,0) dilation=(1,1)"
        " ceil_mode=False return_indices=False"
    ),
    "nn.Dropout drop 1 1 3 4",
    "pnnx.Output out 1 0 4",
)


@pytest.fixture
def network(make_pair):
    weight = np.random.default_rng(1).normal(size=(8, 8, 3, 3)).astype(np.float32)
    return engine.load(make_pair(*NETWORK, weights={"conv.weight": weight}))


@pytest.fixture
def announced():
    """The announcements, in order."""
    seen = []
    activity.watch(lambda operator, kernel: seen.append((operator, kernel)))
    yield seen
    activity.watch(None)


def image(seed):
    return np.random.default_rng(seed).normal(size=(1, 8, 32, 32)).astype(np.float32)


def computed(session):
    return [(r.operator.name, r.kernel) for r in session.records if r.kernel]


@pytest.fixture
def first_entries(monkeypatch, announced):
    """Programs of libraries, as (kernel, what was announced last) when they are made or run."""
    entries = []

    def spied(library):
        original = type(library).variants

        def variants(self, operator, inputs):
            entries.append((self.name, announced[-1]))

            def make(variant, made):
                name = f"{self.name}/{variant}"
                entries.append((name, announced[-1]))
                compiled = made()

                def run(inputs):
                    entries.append((name, announced[-1]))
                    return compiled(inputs)

                return run

            return {
                variant: lambda variant=variant, made=made: make(variant, made)
                for variant, made in original(self, operator, inputs).items()
            }

        monkeypatch.setattr(type(library), "variants", variants)

    for library in libraries().values():
        spied(library)
    return entries


@pytest.mark.parametrize("backend", ["auto", "onnxruntime", "ncnn"])
def test_each_entry_is_announced(network, tuning_cache, announced, first_entries, backend):
    session = engine.Session(network, backend)
    session.feed([image(1)])
    session.run()
    session.tune()
    assert first_entries
    for kernel, (_, said) in first_entries:
        assert said == kernel
    tried = {said for operator, said in announced if operator == "conv"}
    assert {said.partition("/")[0] for said in tried} >= {
        *({"onnxruntime", "ncnn"} if backend == "auto" else {backend})
    }
    assert [entry for entry in computed(session) if entry not in announced] == []


def test_numpy(network, announced):
    session = engine.Session(network, "numpy")
    session.feed([image(1)])
    session.run()
    assert announced == computed(session)


def test_random_operators_are_announced(make_pair, announced):
    pair = make_pair(
        "pnnx.Input in 0 1 0 #0=(4)f32",
        "torch.bernoulli draw 1 1 0 1 $input=0",
        "pnnx.Output out 1 0 1",
    )
    session = engine.Session(engine.load(pair))
    session.feed([np.full(4, 0.5, np.float32)])
    session.run()
    assert announced == [("draw", "numpy")]


def test_operators_computed_at_once(network, tuning_cache, announced, monkeypatch):
    monkeypatch.setattr(fusion_autotuner, "SECONDS_OF_WAKING", np.inf)
    session = engine.Session(network)
    for seed in (1, 2):
        session.feed([image(seed)])
        session.run()
        session.tune()
    kernel = session.record("conv").kernel
    assert kernel.endswith("@1-3")
    for _ in range(2):
        announced.clear()
        session.feed([image(3)])
        session.run()
        assert announced[0] == ("conv", kernel)
        assert kernel not in [name for _, name in announced[1:]]


def test_running_without_a_watcher(network, announced):
    activity.watch(None)
    session = engine.Session(network, "numpy")
    session.feed([image(1)])
    session.run()
    assert announced == []
