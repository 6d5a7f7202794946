"""An engine that answers nothing, to see what it is asked."""

from __future__ import annotations

import pytest


class SilentClient:
    """Numbers requests as `EngineClient` does, and keeps them pending."""

    def __init__(self):
        self.waiting, self.sent = {}, []
        self.is_process, self.spare = True, None

    def ask(self, make_request):
        run_id = len(self.sent) + 1
        self.waiting[run_id] = make_request(run_id)
        self.sent.append(self.waiting[run_id])
        return run_id

    def send(self, request):
        self.sent.append(request)

    def pending(self):
        return iter(self.waiting.items())

    def abandon(self):
        self.waiting.clear()

    @property
    def has_spare(self):
        return self.spare is not None

    def try_spare(self, make_request):
        self.spare = self.spare or []
        run_id = 100 + len(self.spare)
        self.spare.append(make_request(run_id))
        return run_id


@pytest.fixture
def client():
    return SilentClient()
