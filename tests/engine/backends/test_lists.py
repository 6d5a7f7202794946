"""Operands that are lists, and lists of lists: every backend takes what the reference takes."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from engine.backends.kernel import signature_of
from engine.backends.tuning_cache import key_of
from engine.errors import InferenceError
from engine.session import Session
from engine.values import MOST_MEMBERS, freeze

SPLIT = (
    "pnnx.Input in0 0 1 0 #0=(1,8,64,64)f32",
    "torch.split sp 1 1 0 1 dim=1 split_size_or_sections=2",
    "torch.cat ca 1 1 1 2 dim=1",
    "torch.stack st 1 1 1 3 dim=0",
    "pnnx.Output out0 1 0 2",
    "pnnx.Output out1 1 0 3",
)
BACKENDS = ("numpy", "onnxruntime", "ncnn", "auto")


@pytest.fixture
def started(make_pair):
    def start(backend, *lines):
        if backend in {"onnxruntime", "ncnn"}:
            pytest.importorskip(backend)
        return Session(engine.load(make_pair(*lines)), backend)

    return start


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_list_of_tensors(started, backend):
    x = np.arange(8 * 64 * 64, dtype=np.float32).reshape(1, 8, 64, 64)
    session = started(backend, *SPLIT)
    for factor in (1, 2, 3):  # after tuning operators may be fused
        session.feed([x * factor])
        session.run()
        session.tune()
        joined, stacked = session.outputs()
        np.testing.assert_array_equal(joined, x * factor)
        parts = (x * factor).reshape(1, 4, 2, 64, 64)
        np.testing.assert_array_equal(stacked, parts.swapaxes(0, 1))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_list_of_other_sizes_next_time(started, backend):
    session = started(
        backend,
        "pnnx.Input in0 0 1 0 #0=(?,8)f32",
        "torch.unbind u 1 1 0 1 dim=0",
        "torch.cat c 1 1 1 2 dim=0",
        "pnnx.Output out 1 0 2",
    )
    for rows in (2, 5, 2):
        x = np.arange(rows * 8, dtype=np.float32).reshape(rows, 8)
        session.feed([x])
        session.run()
        np.testing.assert_array_equal(session.outputs()[0], x.reshape(-1))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_list_instead_of_a_tensor(started, backend):
    """A library would take the list's arrays for constants."""
    session = started(
        backend,
        "pnnx.Input in0 0 1 0 #0=(2,64,64)f32",
        "torch.unbind u 1 1 0 1 dim=0",
        "torch.matmul m 2 1 0 1 2",
        "pnnx.Output out 1 0 2",
    )
    session.feed([np.ones((2, 64, 64), np.float32)])
    with pytest.raises(InferenceError, match="'m' failed on inputs 2×64×64, tuple of 2"):
        session.run()


class TestDescriptions:
    def test_signatures(self):
        a, b = np.zeros((2, 3), np.float32), np.ones((2, 3), np.float32)
        assert signature_of([(a, (b, 1))]) == signature_of([(b, (a, 1))])
        assert hash(signature_of([(a, (b, 1))]))
        different = [(a,), ((a,),), (a, a), (a.astype(np.float64),), (1,), (True,), (1.0,), ()]
        assert len({signature_of([value]) for value in different}) == len(different)

    def test_keys(self, make_pair):
        operator = engine.load(make_pair(*SPLIT[:3], "pnnx.Output o 1 0 2")).operators[2]
        a = np.random.default_rng(1).random((2, 3)).astype(np.float32)
        assert key_of(operator, [(a, a)]) == key_of(operator, [(a + 1, a)])
        assert key_of(operator, [(a, a)]) != key_of(operator, [(a, a.T)])


def nested(levels):
    value = (np.zeros(1),)
    for _ in range(levels):
        value = (value, value)
    return value


class TestFreezing:
    def test_lists_are_given_as_tuples(self):
        frozen = freeze([1, [np.float32(2), None], "x"])
        assert isinstance(frozen, tuple)
        assert frozen[1][0].dtype == np.float32
        assert frozen[::2] == (1, "x")

    def test_many_members(self):
        assert len(freeze([0] * MOST_MEMBERS)) == MOST_MEMBERS
        with pytest.raises(ValueError, match=f"more than {MOST_MEMBERS} members in all"):
            freeze([0] * (MOST_MEMBERS + 1))
        with pytest.raises(ValueError, match="members in all"):
            freeze([[0] * (MOST_MEMBERS // 2)] * 2)

    @pytest.mark.parametrize("levels", [13, 60, 5000])
    def test_twice_as_many_with_each_level(self, levels):
        with pytest.raises(ValueError, match="members in all"):
            freeze(nested(levels))
        assert len(freeze(nested(11))) == 2

    def test_deep_lists_are_refused(self):
        value: object = 1
        for _ in range(1000):
            value = [value]
        with pytest.raises(ValueError, match="more than 64 deep"):
            freeze(value)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("members", [2, 1])
def test_lists_of_lists_end(started, backend, members):
    lines = [
        f"prim::ListConstruct c{i} {members} 1 {f'{i - 1} ' * members}{i}" for i in range(1, 80)
    ]
    session = started(
        backend, "pnnx.Input in0 0 1 0 #0=(2,2)f32", *lines, "pnnx.Output out 1 0 79"
    )
    session.feed([np.ones((2, 2), np.float32)])
    what = "members in all" if members == 2 else "64 deep in one another"
    with pytest.raises(InferenceError, match=what):
        session.run()
