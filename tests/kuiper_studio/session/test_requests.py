"""What is pending, what is cancelled, and what of it did not end."""

from __future__ import annotations

import pytest

from kuiper_studio.engine_service.protocol import CancelRequest, CloseRequest, RestartRequest
from kuiper_studio.session import requests as module
from kuiper_studio.session.requests import Requests


@pytest.fixture
def requests(qapp, client, monkeypatch):
    monkeypatch.setattr(module, "_STOP_MS", 1)
    return Requests(client)


def test_what_is_pending(requests, client):
    assert requests.first is None
    one, two = requests.ask(RestartRequest), requests.ask(RestartRequest)
    assert [run_id for run_id, _ in requests.pending()] == [one, two]
    assert requests.first == RestartRequest(one)
    del client.waiting[one]
    assert requests.first == RestartRequest(two)
    assert requests.are_pending
    del client.waiting[two]
    assert not requests.are_pending


def test_cancelling_is_for_what_was_asked_before(requests, client):
    one = requests.ask(RestartRequest)
    requests.cancel()
    assert client.sent[-1] == CancelRequest(one)
    two = requests.ask(RestartRequest)
    assert requests.is_cancelled(one)
    assert not requests.is_cancelled(two)
    assert requests.are_pending  # until the engine has answered


def test_nothing_is_cancelled_twice(requests, client):
    requests.cancel()
    assert client.sent == []
    requests.ask(RestartRequest)
    requests.cancel()
    requests.cancel()
    assert [type(each) for each in client.sent] == [RestartRequest, CancelRequest]


def test_work_that_does_not_end_is_overdue(requests, qtbot):
    requests.ask(RestartRequest)
    with qtbot.waitSignal(requests.overdue):
        requests.stop()


def test_work_that_ended_is_not_overdue(requests, client, qtbot):
    requests.ask(RestartRequest)
    with qtbot.assertNotEmitted(requests.overdue, wait=50):
        requests.stop()
        client.waiting.clear()
        requests.ask(RestartRequest)  # asked later: nobody stopped it


def test_what_a_lost_engine_did_is_not_overdue(requests, qtbot):
    requests.ask(RestartRequest)
    with qtbot.assertNotEmitted(requests.overdue, wait=50):
        requests.stop()
        requests.forget_overdue()


def test_nobody_waits_for_a_model_to_close(requests, client, qtbot):
    requests.ask(RestartRequest)
    with qtbot.waitSignal(requests.overdue):  # but it has to be closed
        requests.close_model()
        assert list(client.waiting.values()) == [CloseRequest(client.sent[-1].run_id)]
        assert not requests.are_pending
