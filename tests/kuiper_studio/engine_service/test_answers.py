"""What is computed for the window, also when something more urgent comes."""

from __future__ import annotations

import numpy as np
import pytest

from kuiper_studio.engine_service.answers import Answers
from kuiper_studio.engine_service.protocol import FetchRequest
from kuiper_studio.engine_service.served import Execution, Served

VALUE = np.arange(6, dtype=np.float32).reshape(2, 3)
REQUEST = FetchRequest(7, "1", 3, "value")


class Outputs:
    """Outputs that are computed again, and look whether to go on."""

    def fetch(self, name, check_cancelled):
        check_cancelled()
        return VALUE


class OneOperand(Served):
    """An open model with one execution."""

    def opened_session(self):
        return None

    def execution_of(self, name, serial):
        return Execution(serial, Outputs(), b"") if (name, serial) == ("1", 3) else None


class Desk:
    """Where the answers are made; it notes what comes out."""

    def __init__(self):
        self.sent, self.put_off = [], []
        self.is_urgent, self.cancelled = False, 0
        self.answers = Answers(
            OneOperand(),
            self.sent.append,
            self.put_off.append,
            lambda: self.is_urgent,
            lambda ticket: ticket <= self.cancelled,
        )


@pytest.fixture
def desk():
    desk = Desk()
    yield desk
    desk.answers.end()
    desk.answers.join()


def test_it_is_answered_after_something_more_urgent(desk):
    desk.is_urgent = True
    desk.answers.compute(REQUEST)
    assert (desk.sent, desk.put_off) == ([], [REQUEST])
    desk.is_urgent = False
    desk.answers.compute(desk.put_off.pop())
    (answer,) = desk.sent
    assert (answer.ticket, answer.found) == (7, True)
    np.testing.assert_array_equal(answer.result, VALUE)


@pytest.mark.parametrize("is_urgent", [False, True])
def test_what_is_cancelled_is_answered_without_a_value(desk, is_urgent):
    desk.cancelled, desk.is_urgent = 7, is_urgent
    desk.answers.compute(REQUEST)
    (answer,) = desk.sent
    assert (answer.ticket, answer.found, answer.reason, desk.put_off) == (7, False, "", [])


def test_a_value_of_an_earlier_pass_has_a_reason(desk):
    desk.answers.compute(FetchRequest(8, "1", 2, "value"))
    (answer,) = desk.sent
    assert (answer.ticket, answer.reason) == (8, "the value is of an earlier pass")
