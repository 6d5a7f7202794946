"""A look behind a window's session, at the engine on its thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.session import Session
    from kuiper_studio.engine_service.served import Served
    from kuiper_studio.session import StudioSession

__all__ = ["engine_behind", "shows_what_it_holds"]


def engine_behind(session: StudioSession) -> Session | None:
    """The engine's session that a window's session shows."""
    return _served_behind(session).session


def shows_what_it_holds(session: StudioSession) -> bool:
    """Whether the window has the graph that the engine has, opened by the same request."""
    served = _served_behind(session)
    shown, held = session.graph, served.session.graph if served.session else None
    if shown is None or held is None:
        return shown is None and held is None
    return (
        session.snapshot.generation == served.generation
        and shown.file.versions == held.file.versions
        and [o.name for o in shown.operators] == [o.name for o in held.operators]
    )


def _served_behind(session: StudioSession) -> Served:
    return session._client._transport._server._served
