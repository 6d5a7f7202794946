"""How much memory the engine may use, and whether it tunes kernels."""

from __future__ import annotations

import pytest

from kuiper_studio.engine_service.protocol import MemoryRequest, Tuned, TuningRequest
from kuiper_studio.session.memory import Memory
from kuiper_studio.session.tuning import Tuning
from kuiper_studio.session.workspace import Workspace


@pytest.fixture
def workspace(qapp):
    return Workspace()


@pytest.fixture
def memory(client, workspace):
    return Memory(client, workspace)


@pytest.fixture
def tuning(client, workspace):
    return Tuning(client, workspace)


def logged(workspace):
    return [(entry.level, entry.text) for entry in workspace.log_entries]


class TestMemory:
    def test_limit_and_bound_are_told_together(self, memory, client, workspace):
        memory.set_limit(1 << 20)
        memory.set_bound(1 << 30)
        assert (memory.limit, memory.bound) == (1 << 20, 1 << 30)
        assert client.sent == [MemoryRequest(1 << 20, None), MemoryRequest(1 << 20, 1 << 30)]
        assert memory.request == client.sent[-1]
        assert [text.rsplit(" ", 2)[0] for _, text in logged(workspace)] == [
            "memory limit",
            "memory bound",
        ]

    def test_nothing_is_told_when_nothing_changes(self, memory, client, workspace, qtbot):
        with qtbot.assertNotEmitted(memory.changed):
            memory.set_limit(None)
            memory.set_bound(None)
        assert client.sent == []
        assert logged(workspace) == []

    def test_none_is_described(self, memory, workspace, qtbot):
        memory.set_limit(1)
        memory.set_bound(1)
        with qtbot.waitSignals([memory.changed, memory.changed]):
            memory.set_limit(None)
            memory.set_bound(None)
        assert [text for _, text in logged(workspace)[2:]] == [
            "memory limit none",
            "memory bound half of the machine's memory",
        ]


class TestTuning:
    def test_it_is_told_once(self, tuning, client, workspace):
        tuning.allow(allowed=True)
        assert client.sent == []
        tuning.allow(allowed=False)
        tuning.allow(allowed=False)
        assert not tuning.allowed
        assert client.sent == [TuningRequest(allowed=False)]
        assert logged(workspace) == [("info", "kernels are not tuned at rest")]

    def test_progress_ends_when_all_are_tuned(self, tuning, workspace, qtbot):
        told = []
        tuning.progressed.connect(told.append)
        tuning.take(Tuned(1, 2, 3))
        tuning.take(Tuned(1, 3, 3))
        assert told == ["Tuning kernels… 2 of 3", ""]
        assert logged(workspace) == [
            ("info", "kernels are tuned; the next input uses the fastest")
        ]

    def test_a_wrong_kernel_is_a_warning(self, tuning, workspace):
        tuning.take(Tuned(1, 2, 3, ("ncnn/conv",)))
        ((level, text),) = logged(workspace)
        assert level == "warning"
        assert text.startswith("ncnn/conv computes other numbers than NumPy")
