"""What the engine is asked in order to open a model."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.inputs import ImageOptions, InputSource
from kuiper_studio.engine_service.protocol import (
    CancelRequest,
    LoadLayersRequest,
    MemoryRequest,
    Model,
    OpenRequest,
    Plan,
)
from kuiper_studio.session.memory import Memory
from kuiper_studio.session.opening import Opening
from kuiper_studio.session.openings import Openings
from kuiper_studio.session.requests import Requests
from kuiper_studio.session.tuning import Tuning
from kuiper_studio.session.workspace import Workspace

A, B, C = (Opening(Model(Path(name), None, "auto", None)) for name in "abc")
ONE, TWO = Path("one.py"), Path("two.py")
SMALL, LARGE = ImageOptions(size=(2, 2)), ImageOptions(size=(9, 9))


@pytest.fixture
def memory(client, qapp):
    return Memory(client, Workspace())


@pytest.fixture
def tuning(client, qapp):
    return Tuning(client, Workspace())


@pytest.fixture
def openings(client, memory, tuning):
    return Openings(client, Requests(client), memory, tuning)


class TestModels:
    def test_the_engine_is_told_the_settings(self, openings, client, memory, tuning):
        memory.set_limit(5)
        tuning.allow(allowed=False)
        openings.ask_for(A, SMALL, seed=7)
        asked = client.sent[-1]
        assert isinstance(asked, OpenRequest)
        assert (asked.model, asked.plan) == (A.model, Plan(options=SMALL))
        assert (asked.seed, asked.memory, asked.tunes) == (7, MemoryRequest(5, None), False)

    def test_options_set_ahead_and_the_seed_of_a_dump_come_first(self, openings, client):
        plan = Plan((InputSource("random"),), LARGE)
        openings.ask_for(Opening(A.model, plan, takes_seed=True), SMALL, seed=7)
        assert client.sent[-1].plan == plan
        assert client.sent[-1].seed is None

    def test_the_last_one_is_awaited(self, openings):
        assert openings.awaited is None
        openings.ask_for(A, SMALL, 0)
        openings.ask_for(B, SMALL, 0)
        assert openings.awaited is B

    def test_one_that_has_not_begun_is_replaced(self, openings, client):
        openings.ask_for(A, SMALL, 0)
        openings.ask_for(B, SMALL, 0)  # A may have begun
        (number,) = (n for n, request in client.pending() if request.model is B.model)
        openings.ask_for(C, SMALL, 0)
        cancelled = [each for each in client.sent if isinstance(each, CancelRequest)]
        assert [each.opening for each in cancelled if each.opening] == [number]

    def test_one_that_is_taken_is_awaited_no_more(self, openings, client):
        openings.ask_for(A, SMALL, 0)
        (number,) = client.waiting
        assert openings.is_awaited(number)
        assert openings.take(number) is A
        assert not openings.is_awaited(number)
        assert openings.take(number) is None
        assert openings.awaited is None


class TestLayers:
    def test_the_first_files_run_in_the_engine(self, openings, client):
        openings.load_layers([ONE, TWO], [], None)
        assert [each.paths for each in client.waiting.values()] == [(ONE, TWO)]
        assert not client.has_spare

    def test_later_ones_run_with_the_others_in_another_process(self, openings, client):
        openings.load_layers([TWO, ONE], [ONE], None)
        assert client.spare == [LoadLayersRequest(100, (ONE, TWO))]
        openings.load_layers([Path("three.py")], [ONE], None)  # which has the others now
        assert client.spare[1].paths == (Path("three.py"),)
        assert not client.waiting

    def test_a_thread_has_no_other_interpreter(self, openings, client):
        client.is_process = False
        openings.load_layers([TWO], [ONE], None)
        assert [each.paths for each in client.waiting.values()] == [(TWO,)]

    def test_what_to_open_afterwards_is_taken_once(self, openings, client):
        openings.load_layers([ONE], [], A)
        (number,) = client.waiting
        assert openings.awaited is None  # nothing was asked for yet
        assert openings.take_after_layers(number) is A
        assert openings.take_after_layers(number) is None


def test_all_is_forgotten(openings, client):
    openings.load_layers([ONE], [], A)
    openings.ask_for(B, SMALL, 0)
    openings.forget()
    assert openings.awaited is None
    assert all(openings.take_after_layers(number) is None for number in client.waiting)
