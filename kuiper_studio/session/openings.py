"""Asks the engine to open models, and to run the files of layers that they need."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kuiper_studio.engine_service.protocol import CancelRequest, LoadLayersRequest, OpenRequest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from engine.inputs import ImageOptions
    from kuiper_studio.engine_service.protocol import Request
    from kuiper_studio.session.client import EngineClient
    from kuiper_studio.session.memory import Memory
    from kuiper_studio.session.opening import Opening
    from kuiper_studio.session.requests import Requests
    from kuiper_studio.session.tuning import Tuning

__all__ = ["Openings"]


class Openings:
    """Models that are to be opened and are not open yet.

    Parameters
    ----------
    client : EngineClient
    requests : Requests
        What was asked before is cancelled.
    memory : Memory
    tuning : Tuning
        Settings with which the engine opens models.
    """

    def __init__(
        self, client: EngineClient, requests: Requests, memory: Memory, tuning: Tuning
    ) -> None:
        self._client, self._requests = client, requests
        self._memory, self._tuning = memory, tuning
        self._asked: dict[int, Opening] = {}  # by request
        self._after_layers: dict[int, Opening] = {}  # by the request that runs the files

    @property
    def awaited(self) -> Opening | None:
        """The last model that was asked for and is not open; None if there is none."""
        return next(reversed(self._asked.values()), None)

    def is_awaited(self, run_id: int) -> bool:
        """Return whether this request is to open a model that is not open."""
        return run_id in self._asked

    def ask_for(self, opening: Opening, options: ImageOptions, seed: int) -> None:
        """Request to open a model; replaces earlier requests that have not begun.

        Parameters
        ----------
        opening : Opening
        options : ImageOptions
            For pictures, where its plan has none.
        seed : int
            The random seed, unless it takes that of a dump.
        """
        self._requests.cancel()
        for run_id in list(self._asked)[1:]:
            self._client.send(CancelRequest(opening=run_id))
        plan = replace(opening.plan, options=opening.plan.options or options)

        def make(run_id: int) -> Request:
            self._asked[run_id] = opening
            return OpenRequest(
                run_id,
                opening.model,
                plan,
                None if opening.takes_seed else seed,
                self._memory.request,
                opening.keeps_place,
                self._tuning.allowed,
            )

        self._requests.ask(make)

    def load_layers(
        self, paths: Sequence[Path], loaded: Sequence[Path], then: Opening | None
    ) -> None:
        """Request to run files of layers.

        Parameters
        ----------
        paths : sequence of Path
        loaded : sequence of Path
            Those that the engine has.
        then : Opening or None
            What to open if that succeeds; see `take_after_layers`.
        """
        self._requests.cancel()
        files = tuple(paths)
        if self._client.has_spare:
            run_id = self._client.try_spare(lambda r: LoadLayersRequest(r, files))
        elif self._client.is_process and loaded:
            # Run all of them in a fresh interpreter; keep the engine until that succeeds.
            every = tuple(dict.fromkeys((*loaded, *files)))
            run_id = self._client.try_spare(lambda r: LoadLayersRequest(r, every))
        else:
            run_id = self._requests.ask(lambda r: LoadLayersRequest(r, files))
        if then is not None:
            self._after_layers[run_id] = then

    def take(self, run_id: int) -> Opening | None:
        """Return what a request was to open, and await it no more."""
        return self._asked.pop(run_id, None)

    def take_after_layers(self, run_id: int) -> Opening | None:
        """Return what is to be opened after a request that runs files, and forget it."""
        return self._after_layers.pop(run_id, None)

    def forget_asked(self) -> None:
        """Await no model: the engine that was asked is replaced."""
        self._asked.clear()

    def forget_after_layers(self) -> None:
        """Open nothing after files of layers."""
        self._after_layers.clear()

    def forget(self) -> None:
        """Await nothing."""
        self.forget_asked()
        self.forget_after_layers()
